"""Predictions for the rows of a file: what the models of all learners that predict have in common."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

import kerntest
from kerntest.learning.rowwise import RowWork, TallyT
from kerntest.report.prediction_report import NumberSummary, PredictionReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kerntest.data.blocks import BlockReader
    from kerntest.learning.rowwise import Applied


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to write besides predictions; each as in `predict_file`."""

    proba: bool = False
    decision: bool = False
    std: bool = False
    interval: float | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What a report tells of the model and of its predictions; each as in `PredictionReport`."""

    kind: str
    task: str
    target: str | None
    predictions: Mapping[str, int] | None = None
    numbers: NumberSummary | None = None
    by_target: Mapping[str, NumberSummary] | None = None


@dataclass(slots=True)
class Range:
    """The range and the mean of numbers that come block by block."""

    total: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    count: int = 0

    def take(self, values: Any) -> None:
        """Take note of further numbers."""
        if len(values):
            array = np.asarray(values)
            self.total += float(array.sum())
            self.low, self.high = min(self.low, float(array.min())), max(self.high, float(array.max()))
            self.count += len(array)

    def add(self, other: Range) -> None:
        """Take note of what came of the next block."""
        self.total += other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.count += other.count

    def summary(self) -> NumberSummary | None:
        """Return the summary; None of no numbers."""
        return NumberSummary(self.low, self.total / self.count, self.high) if self.count else None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Predicting(RowWork[TallyT], Generic[TallyT]):
    """Predictions for the rows of a file, and what is told of them.

    Parameters
    ----------
    wanted : Wanted
    """

    wanted: Wanted

    @abstractmethod
    def told(self, tally: TallyT) -> Told:
        """Return what the report tells."""

    def report(self, applied: Applied[TallyT], reader: BlockReader, output: Any, started: float) -> PredictionReport:
        """Return what came of it."""
        told = self.told(applied.tally)
        named = output is not None and not hasattr(output, "write")
        return PredictionReport(
            schema="kerntest.predict/1",
            command="predict",
            model=self.shown,
            kind=told.kind,
            task=told.task,
            target=told.target,
            data=reader.name,
            rows=applied.rows,
            predicted=applied.done,
            incomplete=applied.rows - applied.done,
            predictions=told.predictions,
            numbers=told.numbers,
            by_target=told.by_target,
            output=os.fspath(output) if named else None,
            columns=applied.columns,
            columns_ignored=self.ignored(reader),
            unknown=applied.strangers.records(),
            warnings=self.warnings(reader, applied),
            version=kerntest.__version__,
            seconds=time.perf_counter() - started,
        )
