"""Kernel methods on tables: tests with exact p-values, and support vector machines, from Python and from the shell."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kerntest.data.table import Table as Table
    from kerntest.engines import compute_on as compute_on
    from kerntest.errors import DataWarning as DataWarning
    from kerntest.errors import KerntestError as KerntestError
    from kerntest.errors import KerntestWarning as KerntestWarning
    from kerntest.inference.independence import hsic_test as hsic_test
    from kerntest.inference.screens.joint import hsic_joint as hsic_joint
    from kerntest.inference.screens.pairwise import hsic_pairs as hsic_pairs
    from kerntest.inference.screens.selection import hsic_select as hsic_select
    from kerntest.inference.two_sample import mmd_test as mmd_test
    from kerntest.kernels.text import parse_kernel as parse_kernel
    from kerntest.learning.apply import predict_file as predict_file
    from kerntest.learning.apply import transform_file as transform_file
    from kerntest.learning.components.cca import KernelCCA as KernelCCA
    from kerntest.learning.components.cca import train_cca as train_cca
    from kerntest.learning.components.kpca import KernelPCA as KernelPCA
    from kerntest.learning.components.kpca import train_kpca as train_kpca
    from kerntest.learning.components.unmix import KernelICA as KernelICA
    from kerntest.learning.components.unmix import train_unmix as train_unmix
    from kerntest.learning.machines.ridge import KernelRidge as KernelRidge
    from kerntest.learning.machines.ridge import train_ridge as train_ridge
    from kerntest.learning.machines.svm import SVM as SVM
    from kerntest.learning.machines.svm import train_svm as train_svm
    from kerntest.learning.rows.model_outputs import inspect_model as inspect_model
    from kerntest.report.results.application_record import PredictionReport as PredictionReport
    from kerntest.report.results.application_record import TransformReport as TransformReport
    from kerntest.report.results.component_record import CcaResult as CcaResult
    from kerntest.report.results.component_record import KpcaResult as KpcaResult
    from kerntest.report.results.component_record import UnmixResult as UnmixResult
    from kerntest.report.results.groups_record import GroupsResult as GroupsResult
    from kerntest.report.results.independence_record import IndependenceResult as IndependenceResult
    from kerntest.report.results.independence_record import JointResult as JointResult
    from kerntest.report.results.independence_record import ScreenResult as ScreenResult
    from kerntest.report.results.independence_record import SelectionResult as SelectionResult
    from kerntest.report.results.inspection_record import ModelReport as ModelReport
    from kerntest.report.results.inspection_record import TableReport as TableReport
    from kerntest.report.results.inspection_record import inspect_table as inspect_table
    from kerntest.report.results.learning_record import RidgeResult as RidgeResult
    from kerntest.report.results.learning_record import SvmResult as SvmResult
    from kerntest.report.results.two_sample_record import TwoSampleResult as TwoSampleResult

__version__ = "0.1.0"

# What each module has of the public names. Importing kerntest itself must stay instant (no numpy): names are fetched on
# first use.
_PUBLIC: dict[str, tuple[str, ...]] = {
    "data.read": ("read_table",),
    "data.table": ("Table",),
    "engines": ("compute_on",),
    "errors": ("DataWarning", "KerntestError", "KerntestWarning"),
    "inference.independence": ("hsic_test",),
    "inference.screens.joint": ("hsic_joint",),
    "inference.screens.pairwise": ("hsic_pairs",),
    "inference.screens.selection": ("hsic_select",),
    "inference.two_sample": ("mmd_test",),
    "kernels.text": ("parse_kernel",),
    "learning.apply": ("predict_file", "transform_file"),
    "learning.components.cca": ("KernelCCA", "train_cca"),
    "learning.components.kpca": ("KernelPCA", "train_kpca"),
    "learning.components.unmix": ("KernelICA", "train_unmix"),
    "learning.machines.ridge": ("KernelRidge", "train_ridge"),
    "learning.machines.svm": ("SVM", "train_svm"),
    "learning.rows.model_outputs": ("inspect_model",),
    "report.results.application_record": ("PredictionReport", "TransformReport"),
    "report.results.component_record": ("CcaResult", "KpcaResult", "UnmixResult"),
    "report.results.groups_record": ("GroupsResult",),
    "report.results.independence_record": ("IndependenceResult", "JointResult", "ScreenResult", "SelectionResult"),
    "report.results.inspection_record": ("ModelReport", "TableReport", "inspect_table"),
    "report.results.learning_record": ("RidgeResult", "SvmResult"),
    "report.results.two_sample_record": ("TwoSampleResult",),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - names, as mypy knows


def __getattr__(name: str) -> Any:
    """Fetch a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        message = f"module 'kerntest' has no attribute {name!r}"
        raise AttributeError(message)
    # What loads is no garbage: looking for some meanwhile takes 3 % of the time of a small test.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return getattr(import_module(f"kerntest.{_HOME[name]}"), name)
    finally:
        if collecting:
            gc.enable()


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
