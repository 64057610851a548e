"""What a model file holds, drawn for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from kerntest.cli.console import drawn
from kerntest.cli.table_view import NARROWEST
from kerntest.report.summary import counted, name_list, number, percent, shortened_kernel, visible
from kerntest.report.svm_summary import TITLES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kerntest.report.model_report import ModelColumn, ModelReport

KIND_TITLES = {"ridge": "Kernel ridge regression", "kpca": "Kernel principal components"}


def model_text(report: ModelReport, *, width: int, colour: bool) -> str:
    """Return a model drawn as a table: the same content in any width, with or without colour."""
    width = max(width, NARROWEST)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(overflow="fold")
    for label, text in _lines(report):
        grid.add_row(Text(f"  {label}"), Text(text))
    title = (TITLES | KIND_TITLES).get(report.method or report.kind, report.kind)
    parts: list[RenderableType] = [Text(f"{visible(report.name)}: {title}", style="bold"), grid]
    if report.columns:
        parts.append(_columns(report.columns))
    return drawn(Group(*parts), width=width, colour=colour)


def _lines(report: ModelReport) -> list[tuple[str, str]]:
    """Return what the model is, as labelled lines."""
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
    return lines


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


def _columns(columns: tuple[ModelColumn, ...]) -> RenderableType:
    """Return the columns that new rows need, one below the other."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("  column", overflow="fold", style="cyan")
    table.add_column("type", no_wrap=True)
    table.add_column("values", overflow="fold")
    for column in columns:
        table.add_row(Text(f"  {visible(column.name)}"), Text(column.kind), Text(_values(column)))
    return table


def _values(column: ModelColumn) -> str:
    """Return the levels of a category, the scaling of a number."""
    if column.levels is not None:
        return f"{len(column.levels):,}: {name_list(column.levels)}"
    written = "" if column.written is None else f", written as {column.written}"
    if column.centre is None or column.spread is None or (column.centre, column.spread) == (0.0, 1.0):
        return f"as it is{written}"
    days = " (days since 1970-01-01)" if column.kind == "date" else ""
    return f"mean {number(column.centre)}, sd {number(column.spread)}{days}{written}"
