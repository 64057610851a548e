"""Models applied to files of any size, a block of rows at a time: `predict_file` and `transform_file`.

Both go one way: blocks of rows are read, their columns typed and checked as the model has them, encoded, given what the
model makes of them, and written. What differs is which columns a model writes, see `ModelColumns`.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
import pyarrow as pa

from kerntest import __version__
from kerntest.data.columns import match_names
from kerntest.data.read import open_blocks
from kerntest.data.table import Column, Table
from kerntest.engines.engine import PROGRAM_BYTES, Engine, engine_of, plan_wanted, tell
from kerntest.errors import DataError, ModelError, UsageError, counted, listed, one_of, telling
from kerntest.kernels.base import Points
from kerntest.learning.components.kpca_fit import KpcaModel
from kerntest.learning.machines.ridge_fit import RidgeModel
from kerntest.learning.machines.svm_fit import SvmModel
from kerntest.learning.model_file import model_of, read_model
from kerntest.learning.rows.model_outputs import COMMANDS, ROW, ComponentColumns, RidgeColumns, Sums, SvmColumns
from kerntest.report.results.application_record import PredictionReport, TransformReport, UnknownLevels
from kerntest.report.write import open_rows, rows_format

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager
    from os import PathLike
    from typing import BinaryIO, Unpack

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.formats.dialect import CsvWords
    from kerntest.data.table import BlockReader, Piece, Pieces, RowBlock
    from kerntest.engines.engine import Progress
    from kerntest.learning.model_file import ModelFile
    from kerntest.learning.rows.encoding import Unknown
    from kerntest.learning.rows.model_outputs import ModelColumns
    from kerntest.report.write import RowWriter

MissingRule: TypeAlias = Literal["error", "drop", "empty"]
UnknownRule: TypeAlias = Literal["error", "ignore"]
# What a model finds on the way to its values may be many numbers a row: so many rows are taken at a time.
SLICE_ROWS = 1 << 12
# What applying takes for each thread (measured: 50 to 80 MB).
PIECE_BYTES = 70 * 10**6
# Values of a column that are told.
VALUES_TOLD = 20


@telling
def predict_file(
    model: str | PathLike[str],
    data: str | PathLike[str],
    *,
    output: str | PathLike[str] | BinaryIO | None = None,
    proba: bool = False,
    decision: bool = False,
    std: bool = False,
    interval: float | None = None,
    keep: Patterns = None,
    missing: MissingRule = "error",
    unknown: UnknownRule = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    block: int | None = None,
    **csv: Unpack[CsvWords],
) -> PredictionReport:
    """Apply a model to the rows of a file, which need not fit into memory.

    Parameters
    ----------
    model : path
        A file that `train_svm`, `train_ridge`, `SVM.save` or `KernelRidge.save` wrote.
    data : path or "-"
        CSV or Parquet, as `read_table` takes it; its columns are found by name, in any order, and others are ignored.
    output : path or binary file
        A .csv or .parquet file, whole or not there at all; or an open file, which gets CSV. None: the standard output.
    proba : bool
        Also the probability of each class, in columns `p:CLASS`, where the model was fitted with probabilities.
    decision : bool
        Also the decision function: `decision`, or `decision:A|B` for each pair of classes (above 0 for B).
    std : bool
        Of a ridge regression, whose predictions have the names of their targets: also the standard deviation of new
        values, in columns `TARGET_std`.
    interval : float, optional
        Of a ridge regression: also the ends of intervals that hold new values with this probability, in columns
        `TARGET_low` and `TARGET_high` after `TARGET_std`.
    keep : str or sequence of str, optional
        Columns of the data to hand through, as in `mmd_test`; of CSV their text. None by default.
    missing : {"error", "drop", "empty"}
        Rows with a missing value: refused, left out, or left without a prediction.
    unknown : {"error", "ignore"}
        Categories that no training row had: refused, or taken as different from every known one.
    threads : int, optional
    progress : callable, optional
    block : int, optional
        Bytes of CSV or rows of Parquet that are handled at a time; the predictions do not depend on it.
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    PredictionReport

    Warns
    -----
    DataWarning
        Of each of the `warnings` of the result.

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
    Pieces of the data are worked on side by side; the workers of a cluster read the row groups of Parquet themselves.
    The rows, their order and their classes are the same on every engine and for every number of threads or workers;
    numbers agree to 1e-10 of their scale.

    Cost: O(rows x support vectors x columns) time; memory for a few blocks, whatever the size of the data. CSV with
    decimal commas and without `decimal="."` is an exception, see `open_blocks`.
    """
    started = time.perf_counter()
    file = _read(model, "predict")
    columns: ModelColumns
    if file.kind == "svm":
        columns = SvmColumns(model_of(file, SvmModel), file.name, proba, decision, std or interval is not None)
    else:
        refused = "--proba" if proba else "--decision" if decision else None
        columns = RidgeColumns(model_of(file, RidgeModel), file.name, std, interval, refused)
    rows = open_blocks(os.fspath(data), **columns.encoder.csv(csv), block_bytes=block)
    told = _RowWork(columns, missing, unknown).told(rows, output, keep, engine_of(threads), progress)
    return PredictionReport(**told, predicted=told["rows"] - told["incomplete"], seconds=time.perf_counter() - started)


@telling
def transform_file(
    model: str | PathLike[str],
    data: str | PathLike[str],
    *,
    output: str | PathLike[str] | BinaryIO | None = None,
    components: int | None = None,
    reconstruct: bool = False,
    residual: bool = False,
    keep: Patterns = None,
    missing: MissingRule = "error",
    unknown: UnknownRule = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    block: int | None = None,
    **csv: Unpack[CsvWords],
) -> TransformReport:
    """Project the rows of a file, which need not fit into memory, on the components of a model.

    Parameters
    ----------
    model : path
        A file that `train_kpca` or `KernelPCA.save` wrote.
    data : path or "-"
        CSV or Parquet, as `read_table` takes it; its columns are found by name, in any order, and others are ignored.
    output : path or binary file
        A .csv or .parquet file, whole or not there at all; or an open file, which gets CSV. None: the standard output.
    components : int, optional
        How many of the components to use; all by default.
    reconstruct : bool
        Write pre-images of the projections, in the columns and units of the data, instead of scores.
    residual : bool
        Also how far each row is from its projection in feature space, squared, in a column `residual`.
    keep, missing, unknown, threads, progress, block
        As in `predict_file`.
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    TransformReport

    Warns
    -----
    DataWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    ModelError
        If the model cannot be read, or is no model of components.
    DataError
        If the data cannot be read or do not fit the model, or the output cannot be written.
    UsageError
        If an option makes no sense, or the kernel has no pre-images here.

    Notes
    -----
    Pieces of the data are worked on side by side, as `predict_file` does.

    Cost: O(rows x centres x columns) time, for pre-images some ten to a hundred times; memory for a few blocks.
    """
    started = time.perf_counter()
    file = _read(model, "transform")
    fitted = model_of(file, KpcaModel)
    if components is not None:
        if not 1 <= components <= fitted.n_components:
            raise UsageError(
                f"{file.name} has {counted(fitted.n_components, 'component')}, not {components:,}",
                hint="fit it again with more --components",
                code="usage.components",
            )
        fitted = fitted.first(components)
    columns = ComponentColumns(fitted, file.name, reconstruct, residual)
    rows = open_blocks(os.fspath(data), **columns.encoder.csv(csv), block_bytes=block)
    told = _RowWork(columns, missing, unknown).told(rows, output, keep, engine_of(threads), progress)
    return TransformReport(**told, transformed=told["rows"] - told["incomplete"], seconds=time.perf_counter() - started)


def _read(model: str | PathLike[str], command: str) -> ModelFile:
    """Return the file of a model that a command applies."""
    file = read_model(model)
    if COMMANDS.get(file.kind) != command:
        lacks = "this kerntest cannot predict with" if command == "predict" else "has no components to project on"
        ways = {"svm": "predict {} DATA` predicts with it", "kpca": "transform {} DATA` projects rows with it"}
        way = ways.get("svm" if file.kind == "ridge" else file.kind, "inspect {}` says what it holds")
        raise ModelError(
            f"{file.name} holds a model of kind {file.kind!r}, which {lacks}",
            hint=f"`kerntest {way.format(file.name)}",
            code="model.kind",
            where={"file": file.name},
        )
    return file


@dataclass(slots=True, eq=False)
class Applied:
    """What came of rows: how many there were, how many were complete, and what is told of those."""

    rows: int = 0
    done: int = 0
    columns: tuple[str, ...] = ()
    unknown: dict[str, Unknown] = field(default_factory=dict)
    sums: dict[str, Sums] = field(default_factory=dict)

    def add(self, other: Applied) -> None:
        """Take in what came of the next rows."""
        self.rows += other.rows
        self.done += other.done
        self.columns = other.columns
        for name, one in other.unknown.items():
            met = self.unknown.get(name, replace(one, values=(), n_rows=0))
            values = tuple(dict.fromkeys((*met.values, *(one.values if len(met.values) < VALUES_TOLD else ()))))
            self.unknown[name] = replace(met, values=values, n_rows=met.n_rows + one.n_rows)
        for name, sums in other.sums.items():
            self.sums.setdefault(name, Sums()).add(sums)


def _kept(keep: Patterns, reader: BlockReader, columns: ModelColumns) -> tuple[str, ...]:
    """Return the columns of the data to hand through."""
    names = tuple(match_names(keep, reader.names, reader.name))
    for name in names:
        if name == ROW or columns.takes(name):
            raise UsageError(
                f"column {name!r} of {reader.name} cannot be kept beside the {columns.made}s, "
                "which have columns of such names",
                hint="rename it in the data, or name the others in --keep",
                code="usage.keep",
                where={"file": reader.name, "column": name},
            )
    return names


@dataclass(frozen=True, slots=True, eq=False)
class _RowWork:
    """What is done with the rows of a piece, wherever that is."""

    columns: ModelColumns
    missing: MissingRule
    unknown: UnknownRule
    kept: tuple[str, ...] = ()
    located: Callable[[RowBlock], Table] = attrgetter("table")
    threads: int = 1

    def __post_init__(self) -> None:
        """Refuse rules that there are not."""
        one_of("missing", self.missing, ("error", "drop", "empty"))
        one_of("unknown", self.unknown, ("error", "ignore"))

    def told(
        self,
        rows: AbstractContextManager[BlockReader],
        output: str | PathLike[str] | BinaryIO | None,
        keep: Patterns,
        engine: Engine,
        progress: Progress | None,
    ) -> dict[str, Any]:
        """Write the columns of the model for the rows of a file; return what every report tells of them."""
        columns, encoder = self.columns, self.columns.encoder
        named = os.fspath(output) if isinstance(output, (str, os.PathLike)) else None
        if named is not None:
            rows_format(named)
        with rows as reader:
            reader.written = encoder.written
            work = replace(self, kept=_kept(keep, reader, columns), located=reader.located)
            # A column that is not there is told before any row is read.
            empty = tuple(Column(name, "number", np.empty(0)) for name in reader.names)
            encoder.select(Table(reader.name, empty, 0, reader.format), name=columns.shown)
            engine = work.planned(reader, engine)
            with open_rows(output) as writer:
                applied = work.run(reader, engine, writer, progress)
            told = columns.told(applied.sums)
            return {
                "schema": f"kerntest.{columns.command}/1",
                "command": columns.command,
                "model": columns.shown,
                "kind": columns.model.KIND,
                "data": reader.name,
                "rows": applied.rows,
                "incomplete": applied.rows - applied.done,
                "output": named,
                "columns": applied.columns,
                "columns_ignored": tuple(name for name in reader.names if name not in {*encoder.names, *work.kept}),
                "unknown": tuple(
                    UnknownLevels(name, one.values[:VALUES_TOLD], one.n_rows) for name, one in applied.unknown.items()
                ),
                "warnings": work.warnings(reader, applied, told),
                "version": __version__,
                **told,
            }

    def _pieces(self, reader: BlockReader, engine: Engine) -> Pieces:
        kinds = {column.name: column.kind for column in self.columns.encoder.columns}
        return reader.pieces(kinds, self.kept, engine.threads)

    def planned(self, reader: BlockReader, engine: Engine) -> Engine:
        """Tell the plan to whoever listens, and return the engine with as many threads as the memory allows.

        Where somebody listens, the first piece is worked on for it: the others are taken to be like it.
        """
        if engine.memory is not None and engine.name == "local":
            most = max(1, (engine.memory - PROGRAM_BYTES) // PIECE_BYTES)
            engine = Engine(min(engine.threads, most), engine.memory)
        if plan_wanted(reader.total):
            started = time.perf_counter()
            blocks, done = self(next(iter(self._pieces(reader, engine).items)))
            share = min(1.0, max(done, 1) / max(reader.total, 1))
            seconds = (time.perf_counter() - started) / share
            exact = reader.format == "parquet"
            rows = reader.total if exact else round(sum(one.rows for _, one in blocks) / share)
            about = "" if exact or share == 1.0 else "about "
            step = f"{self.columns.made}s of {about}{rows:,} rows, a block of them at a time"
            held = (engine.threads if engine.name == "local" else 1) * PIECE_BYTES
            tell(
                self.columns.command,
                rows,
                len(self.columns.encoder.columns),
                steps=(step,),
                held=held,
                operations={},
                engine=engine,
                besides=seconds / engine.threads,
            )
        return engine

    def run(self, reader: BlockReader, engine: Engine, writer: RowWriter, progress: Progress | None) -> Applied:
        """Write what the model makes of every row, in the order of the rows; the first one that does not fit is told."""
        pieces = self._pieces(reader, engine)
        runner = engine if pieces.count > 1 else engine.here
        # Few pieces leave threads idle, which may help inside of them.
        inside = -(-runner.threads // max(1, pieces.count)) if runner is engine.here else 1
        results = runner.map(replace(self, threads=inside), pieces.items, total=pieces.count)
        applied = Applied()
        with closing(cast("Generator[tuple[list[tuple[Any, Applied]], int]]", results)):
            for blocks, done in results:
                for table, one in blocks:
                    writer.write(table)
                    applied.add(one)
                if progress is not None:
                    progress(min(done, reader.total), reader.total)
        if self.missing == "drop" and not applied.done:
            raise DataError(
                f"every row of {reader.name} has a missing value",
                hint=f"--missing empty gives every row, without a {self.columns.made}",
                code="data.no_rows_left",
                where={"file": reader.name},
            )
        return applied

    def __call__(self, piece: Piece) -> tuple[list[tuple[Any, Applied]], int]:
        """Return the rows to write of each block of a piece, what came of them, and how much is done with the piece."""
        return [self._of_block(block) for block in piece.blocks()], piece.done

    def _of_block(self, block: RowBlock) -> tuple[Any, Applied]:
        """Return the rows to write of a block, and what came of them."""
        table = block.table
        complete = np.flatnonzero(~self._incomplete(table, block))
        points, strange = self._encoded(table, complete, block)
        made, sums = self._slicewise(points)
        written = complete if self.missing == "drop" else np.arange(table.n_rows)
        # Where what was made of each row stands; nowhere of those that are incomplete.
        place = np.full(table.n_rows, -1, dtype=np.intp)
        place[complete] = np.arange(len(complete))
        there = pa.array(place[written], mask=place[written] < 0)
        kept = block.kept if len(written) == table.n_rows else block.kept.take(pa.array(written))
        columns = {ROW: pa.array(block.first_row + written + 1, pa.int64())}
        columns |= {name: kept[name] for name in kept.column_names}
        columns |= {name: one.take(there) for name, one in made.items()}
        unknown = {one.column.name: one for one in strange}
        return pa.table(columns), Applied(table.n_rows, len(complete), tuple(columns), unknown, sums)

    def _encoded(self, table: Table, complete: NDArray[np.intp], block: RowBlock) -> tuple[Points, tuple[Unknown, ...]]:
        """Return the complete rows as the model takes them; an error tells the line on which it stands."""
        if not len(complete):
            width, categories = len(self.columns.encoder.numeric), len(self.columns.encoder.categories)
            return Points(np.empty((0, width)), np.empty((0, categories), dtype=np.int64)), ()
        encode = partial(self.columns.encoder.transform, name=self.columns.shown, unknown=self.unknown)
        try:
            return encode(table if len(complete) == table.n_rows else table.take(complete))
        except DataError as error:
            try:
                encode(self.located(block).take(complete))
            except DataError as located:
                raise located from None
            raise error from None

    def _slicewise(self, points: Points) -> tuple[dict[str, Any], dict[str, Sums]]:
        """Return what the model makes of rows, a slice at a time."""
        alone = Engine(1)
        starts = range(0, max(len(points), 1), SLICE_ROWS)
        slices = [points.take(slice(start, start + SLICE_ROWS)) for start in starts]
        made = list(Engine(self.threads).map(lambda some: self.columns(some, alone), slices))
        sums: dict[str, Sums] = {}
        for _, values in made:
            for name, one in values.items():
                sums.setdefault(name, Sums()).add(Sums.of(one))
        return {name: pa.concat_arrays([columns[name] for columns, _ in made]) for name in made[0][0]}, sums

    def _incomplete(self, table: Table, block: RowBlock) -> NDArray[np.bool_]:
        """Return which rows lack a value that the model needs."""
        masks = {column.name: column.missing for column in table.columns if column.problem is None}
        incomplete = np.zeros(table.n_rows, dtype=bool)
        for mask in masks.values():
            incomplete |= mask
        if self.missing == "error" and incomplete.any():
            row = int(np.argmax(incomplete))
            names = [name for name, mask in masks.items() if mask[row]]
            located = self.located(block)
            what = f"column {names[0]!r} has" if len(names) == 1 else f"columns {listed(names, 5)} have"
            raise DataError(
                f"{table.name}, {located.place(row)}: {what} no value, and the model needs one",
                hint=f"--missing drop leaves such rows out; --missing empty gives them without a {self.columns.made}",
                code="data.missing_values",
                where={**located.where(row), "column": names[0]},
            )
        return incomplete

    def warnings(self, reader: BlockReader, applied: Applied, told: dict[str, Any]) -> tuple[str, ...]:
        """Return what a reader of the output must know."""
        warnings = list(reader.warnings)
        if incomplete := applied.rows - applied.done:
            what = "left out" if self.missing == "drop" else f"without a {self.columns.made}"
            warnings.append(f"{reader.name}: {counted(incomplete, 'row')} with missing values {what}")
        warnings += [one.warning(reader.name, self.columns.shown) for one in applied.unknown.values()]
        if unsettled := told.get("not_converged"):
            what = counted(unsettled, "pre-image")
            warnings.append(f"{what} did not settle: the best row met is written for each of them")
        return tuple(warnings)
