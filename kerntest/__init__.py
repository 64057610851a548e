"""Kernel methods on tables: tests with exact p-values, and support vector machines, from Python and from the shell."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kerntest.data.table import Table as Table
    from kerntest.engines import compute_on as compute_on
    from kerntest.errors import DataWarning as DataWarning
    from kerntest.errors import KerntestError as KerntestError
    from kerntest.inference.independence import hsic_test as hsic_test
    from kerntest.inference.screens.joint import hsic_joint as hsic_joint
    from kerntest.inference.screens.pairwise import hsic_pairs as hsic_pairs
    from kerntest.inference.screens.selection import hsic_select as hsic_select
    from kerntest.inference.two_sample import mmd_test as mmd_test
    from kerntest.kernels.text import parse_kernel as parse_kernel
    from kerntest.learning.apply import predict_file as predict_file
    from kerntest.learning.apply import transform_file as transform_file
    from kerntest.learning.components.kpca import KernelPCA as KernelPCA
    from kerntest.learning.components.kpca import train_kpca as train_kpca
    from kerntest.learning.machines.ridge import KernelRidge as KernelRidge
    from kerntest.learning.machines.ridge import train_ridge as train_ridge
    from kerntest.learning.machines.svm import SVM as SVM
    from kerntest.learning.machines.svm import train_svm as train_svm
    from kerntest.learning.rows.model_outputs import inspect_model as inspect_model
    from kerntest.report.results.application_record import PredictionReport as PredictionReport
    from kerntest.report.results.application_record import TransformReport as TransformReport
    from kerntest.report.results.independence_record import IndependenceResult as IndependenceResult
    from kerntest.report.results.independence_record import JointResult as JointResult
    from kerntest.report.results.independence_record import ScreenResult as ScreenResult
    from kerntest.report.results.independence_record import SelectionResult as SelectionResult
    from kerntest.report.results.inspection_record import ModelReport as ModelReport
    from kerntest.report.results.inspection_record import TableReport as TableReport
    from kerntest.report.results.inspection_record import inspect_table as inspect_table
    from kerntest.report.results.learning_record import KpcaResult as KpcaResult
    from kerntest.report.results.learning_record import RidgeResult as RidgeResult
    from kerntest.report.results.learning_record import SvmResult as SvmResult
    from kerntest.report.results.record import TwoSampleResult as TwoSampleResult

__version__ = "0.1.0"

# Where each public name lives. Importing kerntest itself must stay instant (no numpy): names are fetched on first use.
_HOME = {
    "DataWarning": "kerntest.errors",
    "IndependenceResult": "kerntest.report.results.independence_record",
    "KerntestError": "kerntest.errors",
    "JointResult": "kerntest.report.results.independence_record",
    "KernelPCA": "kerntest.learning.components.kpca",
    "KernelRidge": "kerntest.learning.machines.ridge",
    "KpcaResult": "kerntest.report.results.learning_record",
    "ModelReport": "kerntest.report.results.inspection_record",
    "PredictionReport": "kerntest.report.results.application_record",
    "RidgeResult": "kerntest.report.results.learning_record",
    "SVM": "kerntest.learning.machines.svm",
    "ScreenResult": "kerntest.report.results.independence_record",
    "SelectionResult": "kerntest.report.results.independence_record",
    "SvmResult": "kerntest.report.results.learning_record",
    "Table": "kerntest.data.table",
    "TableReport": "kerntest.report.results.inspection_record",
    "TransformReport": "kerntest.report.results.application_record",
    "TwoSampleResult": "kerntest.report.results.record",
    "compute_on": "kerntest.engines",
    "hsic_joint": "kerntest.inference.screens.joint",
    "hsic_pairs": "kerntest.inference.screens.pairwise",
    "hsic_select": "kerntest.inference.screens.selection",
    "hsic_test": "kerntest.inference.independence",
    "inspect_model": "kerntest.learning.rows.model_outputs",
    "inspect_table": "kerntest.report.results.inspection_record",
    "mmd_test": "kerntest.inference.two_sample",
    "parse_kernel": "kerntest.kernels.text",
    "predict_file": "kerntest.learning.apply",
    "read_table": "kerntest.data.read",
    "train_kpca": "kerntest.learning.components.kpca",
    "train_ridge": "kerntest.learning.machines.ridge",
    "train_svm": "kerntest.learning.machines.svm",
    "transform_file": "kerntest.learning.apply",
}

__all__ = [
    "SVM",
    "DataWarning",
    "IndependenceResult",
    "JointResult",
    "KernelPCA",
    "KernelRidge",
    "KerntestError",
    "KpcaResult",
    "ModelReport",
    "PredictionReport",
    "RidgeResult",
    "ScreenResult",
    "SelectionResult",
    "SvmResult",
    "Table",
    "TableReport",
    "TransformReport",
    "TwoSampleResult",
    "__version__",
    "compute_on",
    "hsic_joint",
    "hsic_pairs",
    "hsic_select",
    "hsic_test",
    "inspect_model",
    "inspect_table",
    "mmd_test",
    "parse_kernel",
    "predict_file",
    "read_table",
    "train_kpca",
    "train_ridge",
    "train_svm",
    "transform_file",
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
