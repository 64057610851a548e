"""What a model file holds: the record that `kerntest inspect MODEL` writes, field by field its JSON."""

from __future__ import annotations

from dataclasses import dataclass

from kerntest.report.record import Record


@dataclass(frozen=True, slots=True)
class ModelColumn(Record):
    """A column that a model was fitted to.

    Parameters
    ----------
    name : str
    kind : str
        "number", "boolean", "text" or "date".
    levels : tuple of str or None
        The values of text and booleans.
    centre, spread : float or None
        Of numbers, and of dates in days since 1970-01-01: a value v became (v - centre) / spread.
    written : str or None
        In which form the values are read from text, such as "percent" or "date, day first"; None for plain ones.
    """

    name: str
    kind: str
    levels: tuple[str, ...] | None
    centre: float | None
    spread: float | None
    written: str | None = None


@dataclass(frozen=True, slots=True)
class ModelReport(Record):
    """A model file.

    Parameters
    ----------
    schema : str
        "kerntest.model/1".
    name : str
        The file.
    kind : str
        Which learner wrote it: "svm", "ridge", "kpca".
    format_version : int
    kerntest_version : str
    task, method : str or None
    target : str or None
    classes : tuple of str
        Sorted; empty where there are none.
    columns : tuple of ModelColumn
        What new rows need.
    scale : str or None
        "standardize" or "none".
    kernel : str or None
    features : str or None
        Explicit features instead of the kernel, such as "nystroem:100".
    n_support : int or None
        Training rows that the model keeps; none with explicit features.
    intercepts : tuple of float
        One for each decision function.
    probability : bool
        Whether it predicts probabilities.
    lambda_ : float or None
        Of a ridge regression.
    intervals : bool
        Whether it predicts intervals.
    eigenvalues : tuple of float
        Of principal components, of HKH.
    explained_variance_ratio : tuple of float
        The same relative to the trace of HKH.
    bytes : int
    sha256 : str
    """

    schema: str
    command: str
    name: str
    kind: str
    format_version: int
    kerntest_version: str
    task: str | None
    method: str | None
    target: str | None
    classes: tuple[str, ...]
    columns: tuple[ModelColumn, ...]
    scale: str | None
    kernel: str | None
    features: str | None
    n_support: int | None
    intercepts: tuple[float, ...]
    probability: bool
    lambda_: float | None
    intervals: bool
    eigenvalues: tuple[float, ...]
    explained_variance_ratio: tuple[float, ...]
    bytes: int
    sha256: str
