"""Kernel methods on tables: two-sample tests with exact p-values, from Python and from the shell."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kerntest.data.table import Table as Table
    from kerntest.errors import KerntestError as KerntestError
    from kerntest.inference.independence import IndependenceResult as IndependenceResult
    from kerntest.inference.independence import hsic_test as hsic_test
    from kerntest.inference.inspection import inspect_table as inspect_table
    from kerntest.inference.joint import JointResult as JointResult
    from kerntest.inference.joint import hsic_joint as hsic_joint
    from kerntest.inference.screen import ScreenResult as ScreenResult
    from kerntest.inference.screen import hsic_pairs as hsic_pairs
    from kerntest.inference.selection import SelectionResult as SelectionResult
    from kerntest.inference.selection import hsic_select as hsic_select
    from kerntest.inference.two_sample import TwoSampleResult as TwoSampleResult
    from kerntest.inference.two_sample import mmd_test as mmd_test
    from kerntest.kernels.text import parse_kernel as parse_kernel
    from kerntest.report.table_report import TableReport as TableReport

__version__ = "0.1.0"

# Where each public name lives. Importing kerntest itself must stay instant (no numpy): names are fetched on first use.
_HOME = {
    "IndependenceResult": "kerntest.inference.independence",
    "KerntestError": "kerntest.errors",
    "JointResult": "kerntest.inference.joint",
    "ScreenResult": "kerntest.inference.screen",
    "SelectionResult": "kerntest.inference.selection",
    "Table": "kerntest.data.table",
    "TableReport": "kerntest.report.table_report",
    "TwoSampleResult": "kerntest.inference.two_sample",
    "hsic_joint": "kerntest.inference.joint",
    "hsic_pairs": "kerntest.inference.screen",
    "hsic_select": "kerntest.inference.selection",
    "hsic_test": "kerntest.inference.independence",
    "inspect_table": "kerntest.inference.inspection",
    "mmd_test": "kerntest.inference.two_sample",
    "parse_kernel": "kerntest.kernels.text",
    "read_table": "kerntest.data.read",
}

__all__ = [
    "IndependenceResult",
    "JointResult",
    "KerntestError",
    "ScreenResult",
    "SelectionResult",
    "Table",
    "TableReport",
    "TwoSampleResult",
    "__version__",
    "hsic_joint",
    "hsic_pairs",
    "hsic_select",
    "hsic_test",
    "inspect_table",
    "mmd_test",
    "parse_kernel",
    "read_table",
]


def __getattr__(name: str) -> Any:
    """Fetch a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        message = f"module 'kerntest' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
