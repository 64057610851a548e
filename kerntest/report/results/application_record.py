"""What predicting and projecting the rows of a file report, field by field their JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kerntest.report.results.record import Record
from kerntest.report.summaries.words import Summary, counted, name_list, number, percent, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

CLASSES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class UnknownLevels(Record):
    """Values of a column that no training row had.

    Parameters
    ----------
    column : str
    values : tuple of str
        At most 20 of them, in the order in which they were met.
    rows : int
        Rows that hold one.
    """

    column: str
    values: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class NumberSummary(Record):
    """Predicted numbers: their range and their mean."""

    minimum: float
    mean: float
    maximum: float


@dataclass(frozen=True, slots=True)
class PredictionReport(Record):
    """A model applied to a table.

    Parameters
    ----------
    schema : str
        "kerntest.predict/1".
    model, kind, task, target
        The file of the model, which learner wrote it, and what it predicts.
    data : str
    rows : int
        Rows of the data.
    predicted : int
        Rows with a prediction.
    incomplete : int
        Rows with a missing value, left out or left without a prediction.
    predictions : mapping of str to int, or None
        How many rows got each class; of a one-class model "true" for rows like the training rows, "false" for outliers.
    numbers : NumberSummary or None
        Of a regression with one target.
    by_target : mapping of str to NumberSummary, or None
        Of a regression with several.
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
    task: str
    target: str | None
    data: str
    rows: int
    predicted: int
    incomplete: int
    predictions: Mapping[str, int] | None
    numbers: NumberSummary | None
    by_target: Mapping[str, NumberSummary] | None
    output: str | None
    columns: tuple[str, ...]
    columns_ignored: tuple[str, ...]
    unknown: tuple[UnknownLevels, ...]
    warnings: tuple[str, ...]
    version: str
    seconds: float


def prediction_summary(report: PredictionReport) -> Summary:
    """Return what was predicted, in words."""
    target = "" if report.target is None else f", predicts {visible(report.target)}"
    lines = []
    if report.predictions is not None:
        frequent = sorted(report.predictions.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{visible(name)} {count:,}" for name, count in frequent[:CLASSES_SHOWN])
        more = len(frequent) - CLASSES_SHOWN
        lines.append(("predicted", shown + (f" and {more:,} more classes" if more > 0 else "")))
    if report.numbers is not None:
        lines.append(("predicted", _range_text(report.numbers)))
    for name, numbers in (report.by_target or {}).items():
        lines.append(("predicted", f"{visible(name)}: {_range_text(numbers)}"))
    decision = f"{report.predicted:,} of {counted(report.rows, 'row')} have a prediction."
    return _summary(report, "Prediction", f"{report.task}{target}", lines, decision)


def _summary(
    report: PredictionReport | TransformReport, title: str, does: str, own: list[tuple[str, str]], decision: str
) -> Summary:
    """Return what a model `does`, what it was applied to, and lines of its `own`."""
    lines = [
        ("model", f"{visible(report.model)}: {report.kind}, {does}"),
        ("data", f"{visible(report.data)}: {counted(report.rows, 'row')}"),
    ]
    if report.columns_ignored:
        lines.append(("not used", name_list(report.columns_ignored)))
    lines += own
    if report.incomplete:
        lines.append(("incomplete", f"{counted(report.incomplete, 'row')} with missing values"))
    if report.output is not None:
        lines.append(("output", visible(report.output)))
    lines.append(("columns", name_list(report.columns)))
    warnings = tuple(visible(warning) for warning in report.warnings)
    return Summary(title, tuple(lines), decision, warnings, answer="Result")


def _range_text(numbers: NumberSummary) -> str:
    low, mean, high = (number(one) for one in (numbers.minimum, numbers.mean, numbers.maximum))
    return f"{low} to {high}, mean {mean}"


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
    lines = []
    if report.reconstruction_error is not None:
        lines.append(("error", f"{number(report.reconstruction_error)} from row to pre-image, in scaled units (RMS)"))
        count = len(report.by_column)
        shown = count if count <= COLUMNS_SHOWN + 1 else COLUMNS_SHOWN
        for place, one in enumerate(report.by_column[:shown]):
            text = f"{number(one.rmse)} (RMS)" if one.rmse is not None else f"{percent(one.changed or 0.0)} changed"
            lines.append(("" if place else "by column", f"{visible(one.column)}: {text}"))
        if count > shown:
            lines.append(("", f"and {count - shown:,} more"))
    if report.residual is not None:
        lines.append(("residual", f"{number(report.residual)} in feature space (mean square)"))
    title, what = ("Reconstruction", "a pre-image") if report.reconstructed else ("Projection", "scores")
    decision = f"{report.transformed:,} of {counted(report.rows, 'row')} have {what}."
    return _summary(report, title, counted(report.components, "component"), lines, decision)
