"""What came of projecting a table on components: the record that `kerntest transform` reports, field by field its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kerntest.report.record import Record
from kerntest.report.summary import Summary, counted, name_list, number, percent, visible

if TYPE_CHECKING:
    from kerntest.report.prediction_report import UnknownLevels

COLUMNS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class ColumnError(Record):
    """How far pre-images are from the values of a column.

    Parameters
    ----------
    column : str
    rmse : float or None
        Of numbers, in their own units; of dates in days.
    changed : float or None
        Of categories: the share of rows whose category is another.
    """

    column: str
    rmse: float | None
    changed: float | None


@dataclass(frozen=True, slots=True)
class TransformReport(Record):
    """Components applied to a table.

    Parameters
    ----------
    schema : str
        "kerntest.transform/1".
    model, kind
        The file of the model, and which learner wrote it.
    data : str
    rows : int
        Rows of the data.
    transformed : int
        Rows with scores or a pre-image.
    incomplete : int
        Rows with a missing value, left out or left empty.
    components : int
        How many were used.
    residual : float or None
        Mean of |phi(x) - P phi(x)|^2; without reconstruction and `residual`, None.
    reconstructed : bool
        Whether pre-images were written.
    reconstruction_error : float or None
        Root mean square distance between rows and their pre-images, in scaled units; a changed category counts as 1.
    by_column : tuple of ColumnError
        Of pre-images.
    not_converged : int
        Pre-images for which the fixed point was not reached.
    output : str or None
        The file; None for the standard output.
    columns : tuple of str
        Of the output.
    columns_ignored : tuple of str
        Of the data, which the model does not use.
    unknown : tuple of UnknownLevels
    warnings : tuple of str
    version : str
        Of kerntest.
    seconds : float
    """

    schema: str
    command: str
    model: str
    kind: str
    data: str
    rows: int
    transformed: int
    incomplete: int
    components: int
    residual: float | None
    reconstructed: bool
    reconstruction_error: float | None
    by_column: tuple[ColumnError, ...]
    not_converged: int
    output: str | None
    columns: tuple[str, ...]
    columns_ignored: tuple[str, ...]
    unknown: tuple[UnknownLevels, ...]
    warnings: tuple[str, ...]
    version: str
    seconds: float


def transform_summary(report: TransformReport) -> Summary:
    """Return what was done, in words."""
    lines = [
        ("model", f"{visible(report.model)}: {report.kind}, {counted(report.components, 'component')}"),
        ("data", f"{visible(report.data)}: {counted(report.rows, 'row')}"),
    ]
    if report.columns_ignored:
        lines.append(("not used", name_list(report.columns_ignored)))
    if report.reconstruction_error is not None:
        lines.append(("error", f"{number(report.reconstruction_error)} from row to pre-image, in scaled units (RMS)"))
        label = "by column"
        count = len(report.by_column)
        shown = count if count <= COLUMNS_SHOWN + 1 else COLUMNS_SHOWN
        for one in report.by_column[:shown]:
            text = f"{number(one.rmse)} (RMS)" if one.rmse is not None else f"{percent(one.changed or 0.0)} changed"
            lines.append((label, f"{visible(one.column)}: {text}"))
            label = ""
        if count > shown:
            lines.append(("", f"and {count - shown:,} more"))
    if report.residual is not None:
        lines.append(("residual", f"{number(report.residual)} in feature space (mean square)"))
    if report.incomplete:
        lines.append(("incomplete", f"{counted(report.incomplete, 'row')} with missing values"))
    if report.output is not None:
        lines.append(("output", visible(report.output)))
    lines.append(("columns", name_list(report.columns)))
    what = "a pre-image" if report.reconstructed else "scores"
    decision = f"{report.transformed:,} of {counted(report.rows, 'row')} have {what}."
    title = "Reconstruction" if report.reconstructed else "Projection"
    warnings = tuple(visible(warning) for warning in report.warnings)
    return Summary(title, tuple(lines), decision, warnings, answer="Result")
