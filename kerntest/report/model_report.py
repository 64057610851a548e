"""What a model file holds: the record that `kerntest inspect MODEL` writes, field by field its JSON."""

from __future__ import annotations

from dataclasses import dataclass

from kerntest.report.record import Record
from kerntest.report.summary import (
    ResultTable,
    Summary,
    counted,
    name_list,
    number,
    percent,
    shortened_kernel,
    visible,
)
from kerntest.report.svm_summary import TITLES


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


KIND_TITLES = {"ridge": "Kernel ridge regression", "kpca": "Kernel principal components"}


def model_summary(report: ModelReport) -> Summary:
    """Return what a model is, and the columns that new rows need."""
    lines: list[tuple[str, str]] = []
    if report.task is not None:
        target = "" if report.target is None else f", predicts {visible(report.target)}"
        lines.append(("task", f"{report.task}{target}"))
    if report.classes:
        lines.append(("classes", f"{len(report.classes):,}: {name_list(report.classes)}"))
    if report.kernel is not None:
        lines.append(("kernel", visible(shortened_kernel(report.kernel))))
    if report.features is not None:
        lines.append(("features", report.features))
    lines += _fitted_lines(report)
    if report.scale is not None:
        lines.append(("scale", report.scale))
    lines.append(("format", f"version {report.format_version}, written by kerntest {visible(report.kerntest_version)}"))
    lines.append(("file", f"{counted(report.bytes, 'byte')}, sha256 {report.sha256[:16]}..."))
    columns = ResultTable(
        (("column", "name"), ("type", "word"), ("values", "text")),
        tuple((visible(column.name), column.kind, _values(column)) for column in report.columns),
    )
    title = (TITLES | KIND_TITLES).get(report.method or report.kind, report.kind)
    return Summary(f"{visible(report.name)}: {title}", tuple(lines), "", (), (columns,) if report.columns else ())


def _fitted_lines(report: ModelReport) -> list[tuple[str, str]]:
    """Return what was learned, each kind of model in its own words."""
    lines: list[tuple[str, str]] = []
    if report.n_support is not None:
        lines.append(("support", counted(report.n_support, "training row")))
    if report.intercepts:
        lines.append(("intercept", name_list([number(one) for one in report.intercepts])))
    if report.eigenvalues:
        shares = name_list([percent(ratio) for ratio in report.explained_variance_ratio])
        lines.append(("components", f"{len(report.eigenvalues):,}: {shares} of the variance"))
    if report.lambda_ is not None:
        lines.append(("lambda", number(report.lambda_)))
        lines.append(("intervals", "yes" if report.intervals else "no; it was fitted with --no-intervals"))
    if report.task == "classify":
        lines.append(("probability", "yes" if report.probability else "no; --probability fits them"))
    return lines


def _values(column: ModelColumn) -> str:
    """Return the levels of a category, the scaling of a number."""
    if column.levels is not None:
        return f"{len(column.levels):,}: {name_list(column.levels)}"
    written = "" if column.written is None else f", written as {column.written}"
    if column.centre is None or column.spread is None or (column.centre, column.spread) == (0.0, 1.0):
        return f"as it is{written}"
    days = " (days since 1970-01-01)" if column.kind == "date" else ""
    return f"mean {number(column.centre)}, sd {number(column.spread)}{days}{written}"
