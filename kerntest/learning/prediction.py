"""A model applied to a table of any size: `predict_file`."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

import kerntest
from kerntest.data.blocks import open_blocks
from kerntest.data.selection import match_names
from kerntest.data.wording import counted, listed
from kerntest.engines.local import LocalEngine
from kerntest.errors import DataError, ModelError, UsageError
from kerntest.learning.modelfile import read_model
from kerntest.learning.predicted_columns import PredictedColumns, predicted_columns
from kerntest.learning.prediction_output import Sink, file_format, open_sink
from kerntest.learning.strangers import Strangers, known_levels
from kerntest.learning.svm_file import svm_of
from kerntest.learning.svm_options import one_of
from kerntest.report.prediction_report import NumberSummary, PredictionReport

if TYPE_CHECKING:
    from os import PathLike
    from typing import BinaryIO

    from numpy.typing import NDArray

    from kerntest.data.blocks import Block, BlockReader, BlockTable
    from kerntest.data.numerals import Decimal
    from kerntest.data.selection import Patterns
    from kerntest.data.table import Table
    from kerntest.engines.base import Engine, Progress
    from kerntest.learning.encoding import Encoded, Encoder
    from kerntest.learning.svm_model import SvmModel

MissingRule: TypeAlias = Literal["error", "drop", "empty"]
UnknownRule: TypeAlias = Literal["error", "ignore"]
ROW = "row"


def predict_file(
    model: str | PathLike[str],
    data: str | PathLike[str],
    *,
    output: str | PathLike[str] | BinaryIO | None = None,
    proba: bool = False,
    decision: bool = False,
    keep: Patterns = None,
    missing: MissingRule = "error",
    unknown: UnknownRule = "error",
    decimal: Decimal = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    block: int | None = None,
) -> PredictionReport:
    """Apply a model to the rows of a file, which need not fit into memory.

    Parameters
    ----------
    model : path
        A file that `train_svm` or `SVM.save` wrote.
    data : path or "-"
        CSV or Parquet, as `read_table` takes it; its columns are found by name, in any order, and others are ignored.
    output : path or binary file
        A .csv or .parquet file, whole or not there at all; or an open file, which gets CSV. None: the standard output.
    proba : bool
        Also the probability of each class, in columns `p:CLASS`, where the model was fitted with probabilities.
    decision : bool
        Also the decision function: `decision`, or `decision:A|B` for each pair of classes (above 0 for B).
    keep : str or sequence of str, optional
        Columns of the data to hand through, as in `mmd_test`; of CSV their text. None by default.
    missing : {"error", "drop", "empty"}
        Rows with a missing value: refused, left out, or left without a prediction.
    unknown : {"error", "ignore"}
        Categories that no training row had: refused, or taken as different from every known one.
    decimal : {"auto", ".", ","}
        As in `read_table`.
    threads : int, optional
    progress : callable, optional
    block : int, optional
        Bytes of CSV or rows of Parquet that are handled at a time; the predictions do not depend on it.

    Returns
    -------
    PredictionReport

    Raises
    ------
    ModelError
        If the model cannot be read, or is one that predicts nothing.
    DataError
        If the data cannot be read or do not fit the model, or the output cannot be written.
    UsageError
        If an option makes no sense, or asks for what the model does not have.

    Notes
    -----
    Cost: O(rows x support vectors x columns) time; memory for a few blocks, whatever the size of the data. CSV with
    decimal commas and without `decimal="."` is an exception, see `open_blocks`.
    """
    started = time.perf_counter()
    one_of("missing", missing, ("error", "drop", "empty"))
    one_of("unknown", unknown, ("error", "ignore"))
    engine = LocalEngine(threads)
    shown = os.fspath(model)
    fitted = _load(model, shown, proba=proba)
    if output is not None and not hasattr(output, "write"):
        file_format(os.fspath(output))
    encoder = _encoder(fitted, shown)
    with open_blocks(os.fspath(data), decimal=decimal, block_bytes=block) as reader:
        kept = _kept(keep, reader)
        _check_columns(reader, encoder, shown)
        work = _Work(fitted, encoder, shown, engine, kept, missing, unknown, proba, decision)
        with open_sink(output) as sink:
            work.run(reader, sink, progress)
        return work.report(reader, output, started)


def _load(model: str | PathLike[str], shown: str, *, proba: bool) -> SvmModel:
    """Return the model of a file that can do what is asked for."""
    file = read_model(model)
    if file.kind != "svm":
        raise ModelError(
            f"{shown} holds a model of kind {file.kind!r}, which this kerntest cannot predict with",
            hint="`kerntest inspect` says what a model holds",
            code="model.kind",
            where={"file": shown},
        )
    fitted = svm_of(file)
    if proba and not fitted.sigmoids:
        raise UsageError(
            f"{shown} has no probabilities",
            hint="fit it with `kerntest svm ... --probability`"
            if fitted.task == "classify"
            else "they are for models of classes; --decision gives the decision function",
            code="usage.no_probabilities",
        )
    return fitted


def _encoder(model: SvmModel, shown: str) -> Encoder:
    if model.encoder is None:
        raise ModelError(
            f"{shown} was fitted to a matrix of kernel values, not to columns",
            hint="predict with it from Python: SVM.load(path).predict(K)",
            code="model.precomputed",
            where={"file": shown},
        )
    return model.encoder


def _kept(keep: Patterns, reader: BlockReader) -> list[str]:
    """Return the columns to hand through; refuse one whose name the predictions take."""
    names = match_names(keep, reader.names, reader.name)
    for name in names:
        if name in {ROW, "prediction", "decision"} or name.startswith(("decision:", "p:")):
            raise UsageError(
                f"column {name!r} of {reader.name} cannot be kept beside the predictions, which have columns of such names",
                hint="rename it in the data, or name the others in --keep",
                code="usage.keep",
                where={"file": reader.name, "column": name},
            )
    return names


def _check_columns(reader: BlockReader, encoder: Encoder, shown: str) -> None:
    """Refuse a table without a column that the model needs, before any row of it is read."""
    from kerntest.data.table import Column, Table  # noqa: PLC0415 - for this check alone

    empty = tuple(Column(name, "number", np.empty(0)) for name in reader.names)
    encoder.select(Table(reader.name, empty, 0, reader.format), name=shown)


@dataclass(slots=True, eq=False)
class _Work:
    """One run over the data: what is asked for, and what was met on the way."""

    model: SvmModel
    encoder: Encoder
    shown: str
    engine: Engine
    kept: list[str]
    missing: MissingRule
    unknown: UnknownRule
    proba: bool
    decision: bool
    rows: int = 0
    predicted: int = 0
    counts: dict[Any, int] = field(default_factory=dict)
    total: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    columns: tuple[str, ...] = ()
    strangers: Strangers = field(default_factory=Strangers)

    def run(self, reader: BlockReader, sink: Sink, progress: Progress | None) -> None:
        """Predict every row and write it."""
        kinds = {column.name: column.kind for column in self.encoder.columns}
        for block in reader.blocks(kinds, self.kept):
            sink.write(self._predicted(block, reader))
            if progress is not None:
                progress(min(reader.done, reader.total), reader.total)
        if self.missing == "drop" and not self.predicted:
            raise DataError(
                f"every row of {reader.name} has a missing value",
                hint="--missing empty gives every row, without predictions",
                code="data.no_rows_left",
                where={"file": reader.name},
            )

    def _predicted(self, block: Block, reader: BlockReader) -> Any:
        """Return the output for a block, as an Arrow table."""
        table = known_levels(block.table, self.encoder)
        incomplete = self._incomplete(table, block, reader)
        complete = np.flatnonzero(~incomplete)
        found = self._scored(table, complete, block, reader)
        written = complete if self.missing == "drop" else np.arange(table.n_rows)
        place = np.full(table.n_rows, -1, dtype=np.intp)
        place[complete] = np.arange(len(complete))
        self._count(found, table.n_rows)
        output = found.arrow(block.first_row + written + 1, block.kept, written, place[written])
        self.columns = tuple(output.column_names)
        return output

    def _scored(
        self, table: BlockTable, complete: NDArray[np.intp], block: Block, reader: BlockReader
    ) -> PredictedColumns:
        """Return the predictions for the complete rows; an error tells the line on which it stands."""
        whole = len(complete) == table.n_rows
        chosen = table if whole else table.take(complete)
        try:
            points = self._encoded(chosen) if len(complete) else None
        except DataError as error:
            raise self._located(error, complete, block, reader) from None
        if points is None:
            return predicted_columns(self.model, None, proba=self.proba, decision=self.decision)
        scores = self.model.scores(points.points, self.engine)
        self.strangers.meet(self.encoder, chosen, points.points.codes)
        return predicted_columns(self.model, scores, proba=self.proba, decision=self.decision)

    def _located(self, error: DataError, complete: NDArray[np.intp], block: Block, reader: BlockReader) -> DataError:
        """Return an error about a block with the line on which it stands."""
        try:
            self._encoded(known_levels(reader.located(block), self.encoder).take(complete))
        except DataError as located:
            return located
        return error

    def _encoded(self, table: Table) -> Encoded:
        return self.encoder.transform(table, name=self.shown, unknown=self.unknown)

    def _incomplete(self, table: BlockTable, block: Block, reader: BlockReader) -> NDArray[np.bool_]:
        """Return which rows lack a value that the model needs."""
        masks = {column.name: column.missing for column in table.columns if column.problem is None}
        incomplete = np.zeros(table.n_rows, dtype=bool)
        for mask in masks.values():
            incomplete |= mask
        if self.missing == "error" and incomplete.any():
            row = int(np.argmax(incomplete))
            names = [name for name, mask in masks.items() if mask[row]]
            located = reader.located(block)
            what = f"column {names[0]!r} is" if len(names) == 1 else f"columns {listed(names, 5)} are"
            raise DataError(
                f"{reader.name}, {located.place(row)}: {what} missing, and the model needs it",
                hint="--missing drop leaves such rows out; --missing empty gives them without a prediction",
                code="data.missing_values",
                where={**located.where(row), "column": names[0]},
            )
        return incomplete

    def _count(self, found: PredictedColumns, n_rows: int) -> None:
        self.rows += n_rows
        self.predicted += found.n
        if self.model.task == "regress":
            if found.n:
                values = np.asarray(found.prediction)
                self.total += float(values.sum())
                self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
            return
        for name, count in found.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count

    def report(self, reader: BlockReader, output: Any, started: float) -> PredictionReport:
        """Return what came of it."""
        known = {*self.encoder.names, *self.kept}
        numbers = None
        if self.model.task == "regress" and self.predicted:
            numbers = NumberSummary(self.low, self.total / self.predicted, self.high)
        incomplete = self.rows - self.predicted
        warnings = list(reader.warnings)
        if incomplete:
            what = "left out" if self.missing == "drop" else "without a prediction"
            warnings.append(f"{reader.name}: {counted(incomplete, 'row')} with missing values {what}")
        warnings += self.strangers.warnings(reader.name, self.shown)
        named = output is not None and not hasattr(output, "write")
        return PredictionReport(
            schema="kerntest.predict/1",
            command="predict",
            model=self.shown,
            kind="svm",
            task=self.model.task,
            target=self.model.target,
            data=reader.name,
            rows=self.rows,
            predicted=self.predicted,
            incomplete=incomplete,
            predictions=None if self.model.task == "regress" else self.counts,
            numbers=numbers,
            output=os.fspath(output) if named else None,
            columns=self.columns,
            columns_ignored=tuple(name for name in reader.names if name not in known),
            unknown=self.strangers.records(),
            warnings=tuple(warnings),
            version=kerntest.__version__,
            seconds=time.perf_counter() - started,
        )
