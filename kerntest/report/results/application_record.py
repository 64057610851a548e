"""What predicting and projecting the rows of a file report, field by field their JSON."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from kerntest.data.column_types import date_text
from kerntest.dataclass import dataclass
from kerntest.errors import counted, listed, option, shown_value
from kerntest.report.results.record import Record, Result
from kerntest.report.summaries.words import COLUMNS_SHOWN, Summary, chosen_text, name_list, number, percent, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

CLASSES_SHOWN = 12
# Values of a column in a message.
VALUES_SHOWN = 5
# Of such a share of the rows it is told that they are outside of the training rows, if none of them is very far.
OUTSIDE_SHARE = 0.5


@dataclass(frozen=True)
class UnknownLevels(Record):
    """Values of a column that no training row had, at most 20, as they were met, and how many rows hold one."""

    column: str
    values: tuple[str, ...]
    rows: int

    @property
    def shown(self) -> str:
        """The first few values in quotes."""
        return listed([shown_value(value) for value in self.values], VALUES_SHOWN)

    def told(self, data: str, model: str) -> str:
        """Return what a reader must know of them."""
        met = f"{data}: column {self.column!r} holds {self.shown}, unknown to {model}"
        return f"{met}, in {counted(self.rows, 'row')}: taken as different from every known value"


@dataclass(frozen=True)
class OutsideValues(Record):
    """Values of a column of numbers or dates (in days since 1970-01-01) far beyond those of the training rows.

    How many rows hold one, and how many of them one that is farther from these than twice their range, or than the kernel
    reaches; the ends of such values, and those of the training rows; and how far the kernel reaches in this column, if that
    decides.
    """

    column: str
    kind: str
    rows: int
    farther: int
    lowest: float
    highest: float
    training_low: float
    training_high: float
    reach: float | None = None

    def plus(self, other: OutsideValues) -> OutsideValues:
        """Return those of the next rows too."""
        rows, farther = self.rows + other.rows, self.farther + other.farther
        lowest, highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        reach = self.reach if self.reach is not None else other.reach
        return replace(self, rows=rows, farther=farther, lowest=lowest, highest=highest, reach=reach)

    def tells(self, rows: int) -> bool:
        """Say whether a reader of what was made of so many rows should know."""
        return self.farther > 0 or self.rows >= OUTSIDE_SHARE * rows

    def told(self, data: str, consequence: str) -> str:
        """Return what a reader must know of them, and what follows."""
        shown = date_text if self.kind == "date" else number
        low, high, first, last = map(shown, (self.lowest, self.highest, self.training_low, self.training_high))
        held = low if low == high else f"{low} to {high}"
        days = " days" if self.kind == "date" else ""
        reach = "" if self.reach is None else f", beyond which the kernel reaches by {number(self.reach)}{days}"
        return (
            f"{data}: column {self.column!r} is {held} in {counted(self.rows, 'row')}, far from the {first} to {last} "
            f"of the training rows{reach}: {consequence}"
        )


@dataclass(frozen=True)
class NumberSummary(Record):
    """Predicted numbers: their range and their mean."""

    minimum: float
    mean: float
    maximum: float


@dataclass(frozen=True)
class ColumnError(Record):
    """How far pre-images are from the values of a column.

    `rmse` is of numbers, in their own units, and of dates in days; `changed` of categories: the share of rows whose
    category is another.
    """

    column: str
    rmse: float | None = None
    changed: float | None = None


@dataclass(frozen=True, kw_only=True)
class ApplicationReport(Result):
    """A model applied to a table.

    Parameters
    ----------
    schema : str
    model, kind : str
        The file of the model, and which learner wrote it.
    data : str
    rows : int
        Rows of the data; with `where` or `sample` those that were chosen.
    chosen_by : str or None
        How they were chosen.
    incomplete : int
        Rows with a missing value, left out or left without a value of the model.
    unknown_rows, outside_rows : int
        Rows with any value in `unknown`, and with any in `outside`.
    output : str or None
        The file; None for the standard output.
    columns : tuple of str
        Of the output.
    columns_ignored : tuple of str
        Of the data, which the model does not use.
    unknown : tuple of UnknownLevels
    outside : tuple of OutsideValues
        Of columns of numbers and dates, what is far beyond the training rows.
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
    chosen_by: str | None
    incomplete: int
    unknown_rows: int
    outside_rows: int
    output: str | None
    columns: tuple[str, ...]
    columns_ignored: tuple[str, ...]
    unknown: tuple[UnknownLevels, ...]
    outside: tuple[OutsideValues, ...]
    warnings: tuple[str, ...]
    version: str
    seconds: float
    LAST = ("output", "columns", "columns_ignored", "unknown", "outside", "warnings", "version", "seconds")

    @abstractmethod
    def in_words(self) -> Summary:
        """Return what was done, in words."""

    def told(self, title: str, does: str, own: list[tuple[str, str]], decision: str) -> Summary:
        """Return what a model `does`, what it was applied to, and lines of its `own`."""
        lines = [
            ("model", f"{visible(self.model)}: {self.kind}, {does}"),
            ("data", f"{visible(self.data)}: {counted(self.rows, 'row')}{chosen_text(None, self.chosen_by)}"),
            ("not used", self.columns_ignored and name_list(self.columns_ignored)),
            *own,
            ("incomplete", self.incomplete and f"{counted(self.incomplete, 'row')} with missing values"),
            ("output", self.output and visible(self.output)),
            ("columns", name_list(self.columns)),
        ]
        there = tuple((label, str(text)) for label, text in lines if text)
        decision = f"{decision.format(counted(self.rows, 'row'))}."
        return Summary(title, there, decision, tuple(map(visible, self.warnings)), answer="Result")


@dataclass(frozen=True, kw_only=True)
class PredictionReport(ApplicationReport):
    """A model applied to a table: what it predicts.

    Parameters
    ----------
    schema : str
        "kerntest.predict/1".
    task, target
        What the model predicts.
    predicted : int
        Rows with a prediction.
    predictions : mapping of str to int, or None
        How many rows got each class; of a one-class model "true" for rows like the training rows, "false" for outliers.
    outliers : float or None
        Of a one-class model: their share of the rows with a prediction.
    numbers : NumberSummary or None
        Of a regression with one target.
    by_target : mapping of str to NumberSummary, or None
        Of a regression with several.
    probability : bool or None
        Of a support vector machine: whether it has probabilities, asked for or not.
    """

    task: str
    target: str | None
    predicted: int
    predictions: Mapping[str, int] | None = None
    outliers: float | None = None
    numbers: NumberSummary | None = None
    by_target: Mapping[str, NumberSummary] | None = None
    probability: bool | None = None

    def in_words(self) -> Summary:
        """Return what was predicted, in words."""
        lines = []
        if self.predictions is not None:
            called = {"true": "like the training rows (true)", "false": "outliers (false)"}
            called = called if self.task == "one-class" else {}
            counts = [(called.get(name, name), count) for name, count in self.predictions.items()]
            frequent = sorted(counts, key=lambda item: -item[1])
            lines.append(
                ("predicted", listed([f"{visible(name)} {count:,}" for name, count in frequent], CLASSES_SHOWN))
            )
        ranges = {"": self.numbers} if self.numbers else self.by_target or {}
        for name, one in ranges.items():
            text = f"{number(one.minimum)} to {number(one.maximum)}, mean {number(one.mean)}"
            lines.append(("predicted", f"{visible(name)}: {text}" if name else text))
        target = "" if self.target is None else f", predicts {visible(self.target)}"
        if self.probability and not any(name.startswith("p:") for name in self.columns):
            target += f", has probabilities ({option('proba', True)} writes them)"
        return self.told("Prediction", f"{self.task}{target}", lines, f"{self.predicted:,} of {{}} have a prediction")


@dataclass(frozen=True, kw_only=True)
class TransformReport(ApplicationReport):
    """Components applied to a table.

    Parameters
    ----------
    schema : str
        "kerntest.transform/1".
    transformed : int
        Rows with scores or a pre-image.
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
    """

    transformed: int
    components: int
    residual: float | None
    reconstructed: bool
    reconstruction_error: float | None
    by_column: tuple[ColumnError, ...]
    not_converged: int

    def in_words(self) -> Summary:
        """Return what was done, in words."""
        lines = []
        if self.reconstruction_error is not None:
            lines.append(("error", f"{number(self.reconstruction_error)} from row to pre-image, in scaled units (RMS)"))
            for place, one in enumerate(self.by_column[:COLUMNS_SHOWN]):
                text = f"{number(one.rmse)} (RMS)" if one.rmse is not None else f"{percent(one.changed or 0.0)} changed"
                lines.append(("" if place else "by column", f"{visible(one.column)}: {text}"))
            if (more := len(self.by_column) - COLUMNS_SHOWN) > 0:
                lines.append(("", f"and {more:,} more"))
        if self.residual is not None:
            lines.append(("residual", f"{number(self.residual)} in feature space (mean square)"))
        title, what = ("Reconstruction", "a pre-image") if self.reconstructed else ("Projection", "scores")
        done = f"{self.transformed:,} of {{}} have {what}"
        return self.told(title, counted(self.components, "component"), lines, done)
