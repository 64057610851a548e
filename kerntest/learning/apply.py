"""Models applied to files of any size, a block of rows at a time: `predict_file` and `transform_file`.

Both go one way: blocks of rows are read, their columns typed and checked as the model has them, encoded, given what the
model makes of them, and written. What differs is which columns a model writes, see `ModelColumns`.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import field, replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
import pyarrow as pa

from kerntest import __version__
from kerntest.data.columns import match_names, split_patterns, units_differ
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.read import open_blocks
from kerntest.data.table import Column, Table, in_arrow
from kerntest.data.written_values import date_form
from kerntest.dataclass import dataclass
from kerntest.engines.engine import CURRENT, PROGRAM_BYTES, Engine, engine_of
from kerntest.engines.plan import plan_wanted, tell
from kerntest.errors import (
    DataError,
    UsageError,
    counted,
    listed,
    one_of,
    option,
    shown_argument,
    telling,
    whole_number,
)
from kerntest.learning.rows.model_outputs import Sums, columns_to_write
from kerntest.learning.work_of_fits import work_of_rows
from kerntest.report.results.application_record import OutsideValues, PredictionReport, TransformReport, UnknownLevels
from kerntest.report.write import open_rows, rows_format

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from os import PathLike
    from typing import BinaryIO, Unpack

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.formats.dialect import SeededWords
    from kerntest.data.row_choice import RowChoice
    from kerntest.data.table import BlockReader, Piece, Pieces, RowBlock
    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Points
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.model_outputs import ModelColumns
    from kerntest.report.write import RowWriter

MissingRule: TypeAlias = Literal["error", "drop", "empty"]
UnknownRule: TypeAlias = Literal["error", "ignore"]
# What a model finds on the way to its values may be many numbers a row: so many rows are taken at a time.
SLICE_ROWS = 1 << 12
# What applying takes for each thread (measured: 50 to 80 MB).
PIECE_BYTES = 35 * 10**6
# The same of Parquet, and the share of a row group.
PARQUET_BYTES, GROUP_SHARE = 70 * 10**6, 0.6
# Values of a column that are told.
VALUES_TOLD = 20
# Columns with values far from the training rows that are told one by one.
OUTSIDE_TOLD = 3

if TYPE_CHECKING:

    class RowOptions(SeededWords, total=False):
        """What both functions take besides, as `_applied` does."""

        output: str | PathLike[str] | BinaryIO | None
        keep: Patterns
        missing: MissingRule
        unknown: UnknownRule
        threads: int | None
        progress: Progress | None
        block: int | None


@telling
def predict_file(
    model: str | PathLike[str],
    data: str | PathLike[str],
    *,
    proba: bool = False,
    decision: bool = False,
    std: bool = False,
    interval: float | None = None,
    **options: Unpack[RowOptions],
) -> PredictionReport:
    """Apply a model to the rows of a file, which need not fit into memory.

    Parameters
    ----------
    model : path
        A file that `train_svm`, `train_ridge`, `SVM.save` or `KernelRidge.save` wrote.
    data : path or "-"
        CSV or Parquet, as `read_table` takes it; its columns are found by name, in any order, and others are ignored.
    output : path or binary file
        A .csv, .parquet or .jsonl file, whole or not there at all; or an open file, which gets CSV. None: the standard output.
    proba : bool
        Also the probability of each class, in columns `p:CLASS`, where the model was fitted with probabilities.
    decision : bool
        Also the decision function: `decision`, or `decision:A|B` for each pair of classes (above 0 for B).
    std : bool
        Of a ridge regression, whose predictions have the names of their targets (`TARGET_predicted` where the target is
        kept): also the standard deviation of new values, in columns `TARGET_std`.
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
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    PredictionReport

    Warns
    -----
    KerntestWarning
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
    asked = {"proba": proba, "decision": decision, "std": std, "interval": interval}
    return PredictionReport(**_applied("predict", model, data, asked, **options))


@telling
def transform_file(
    model: str | PathLike[str],
    data: str | PathLike[str],
    *,
    components: int | None = None,
    reconstruct: bool = False,
    residual: bool = False,
    side: Literal["x", "y"] | None = None,
    **options: Unpack[RowOptions],
) -> TransformReport:
    """Project the rows of a file, which need not fit into memory, on the components of a model.

    Parameters
    ----------
    model : path
        A file that `train_kpca`, `train_unmix`, `train_cca` or `save` of their classes wrote.
    data : path or "-"
        CSV or Parquet, as `read_table` takes it; its columns are found by name, in any order, and others are ignored.
    output : path or binary file
        A .csv, .parquet or .jsonl file, whole or not there at all; or an open file, which gets CSV. None: the standard output.
    components : int, optional
        How many of the components to use; all by default.
    reconstruct : bool
        Write pre-images of the projections, in the columns and units of the data, instead of scores.
    residual : bool
        Also how far each row is from its projection in feature space, squared, in a column `residual`.
    side : "x" or "y", optional
        Of canonical correlations, the functions of one side alone.
    keep, missing, unknown, threads, progress, block
        As in `predict_file`.
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    TransformReport

    Warns
    -----
    KerntestWarning
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
    asked = {"components": components, "reconstruct": reconstruct, "residual": residual, "side": side}
    return TransformReport(**_applied("transform", model, data, asked, **options))


def _applied(
    command: str,
    model: str | PathLike[str],
    data: str | PathLike[str],
    asked: dict[str, Any],
    *,
    output: str | PathLike[str] | BinaryIO | None = None,
    keep: Patterns = None,
    missing: MissingRule = "error",
    unknown: UnknownRule = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    block: int | None = None,
    **csv: Unpack[SeededWords],
) -> dict[str, Any]:
    """Write what is asked of a model for the rows of a file, and return what is reported."""
    if not isinstance(data, (str, os.PathLike)):
        told = f"data must be text or a path, not {shown_argument(data)}"
        classes = "KernelPCA, KernelICA or KernelCCA" if command == "transform" else "SVM or KernelRidge"
        hint = f"load(model).{command}(data) of {classes} takes arrays and frames"
        raise UsageError(told, hint=hint, code="usage.data")
    started, columns = time.perf_counter(), columns_to_write(model, command, asked)
    encoder = columns.encoder
    one_of("missing", missing, ("error", "drop", "empty"))
    one_of("unknown", unknown, ("error", "ignore"))
    if block is not None:
        whole_number("block", block, at_least=1)
    named = os.fspath(output) if isinstance(output, (str, os.PathLike)) else None
    if named == "" or (named is None and output is not None and not callable(getattr(output, "write", None))):
        odd = f"output must be a path or an open file, not {shown_argument(output)}"
        raise UsageError(odd, hint="None is the standard output", code="usage.output")
    if named is not None:
        rows_format(named)
    # What the caller does not say of the file is as in the training table.
    csv["na"] = encoder.na if csv.get("na") is None else csv["na"]
    choice = CsvOptions.of(**csv).choice
    with open_blocks(os.fspath(data), **csv, block_bytes=block) as reader:
        # Dates that are written otherwise now are as the caller says.
        first, either = date_form(csv.get("dayfirst")), [date_form(one) for one in (True, False)]
        reader.written = {
            column.name: first if first and column.written in either else column.written
            for column in encoder.columns
            if column.written
        }
        columns = replace(columns, kept=tuple(match_names(keep, reader.names, reader.name)))
        literal, taken = split_patterns(keep), {columns.row, *columns.names}
        replaced = [name for name in columns.kept if name in taken]
        if name := next((one for one in replaced if one in literal), None):
            raise UsageError(
                f"column {name!r} of {reader.name} cannot be kept beside the {columns.made}s, which have columns of such names",
                hint=f"rename it in the data, or leave it out of {option('keep')}",
                code="usage.keep",
                where={"file": reader.name, "column": name},
            )
        lost = (
            [f"{listed(replaced)} of {reader.name} not kept: what is written has columns so called"] if replaced else []
        )
        columns = replace(columns, kept=tuple(name for name in columns.kept if name not in taken))
        if choice.where is not None:
            choice = choice.known(reader.head(()))
        work = _RowWork(columns, missing, unknown, choice)
        # A column that is not there is told before any row is read.
        empty = tuple(Column(name, "number", np.empty(0)) for name in reader.names)
        encoder.select(Table(reader.name, empty, 0, reader.format), name=columns.shown)
        lost += _as_written_here(reader, encoder, columns.shown)
        engine = work.planned(reader, engine_of(threads))
        with open_rows(output) as writer:
            applied = work.run(reader, engine, writer, progress)
        told = columns.told(applied.sums)
        return {
            "schema": f"kerntest.{command}/1",
            "command": command,
            "model": columns.shown,
            "kind": columns.MODEL.KIND,
            "data": reader.name,
            "rows": applied.rows,
            "chosen_by": choice.said or None,
            columns.DONE: applied.done,
            "incomplete": applied.rows - applied.done,
            "unknown_rows": applied.unknown_rows,
            "outside_rows": applied.outside_rows,
            "output": named,
            "columns": applied.columns,
            "columns_ignored": tuple(name for name in reader.names if name not in {*encoder.names, *columns.kept}),
            "unknown": tuple(applied.unknown.values()),
            "outside": tuple(applied.outside.values()),
            "warnings": (*reader.warnings, *lost, *work.warnings(reader.name, applied, told.get("not_converged", 0))),
            "version": __version__,
            "seconds": time.perf_counter() - started,
            **told,
        }


def _as_written_here(reader: BlockReader, encoder: Encoder, shown: str) -> list[str]:
    """Take numbers that were plain in training as the first rows write them, as test rows are read; warn of units and offsets."""
    plain = [
        Column(one.name, "date" if one.kind == "date" else "number", np.empty(0), written=one.written)
        for one in encoder.columns
        if one.kind == "date" or (one.kind == "number" and not one.written)
    ]
    if not plain:
        return []
    try:
        head = reader.head(()).select([one.name for one in plain])
    except DataError:
        # A row above may be the first that does not fit.
        return []
    reader.written = {one.name: one.written for one in head.columns if one.kind == "number" and one.written} | dict(
        reader.written
    )
    return list(units_differ(Table(shown, tuple(plain), 0, reader.format), head))


@dataclass(eq=False)
class Applied:
    """What came of rows: how many there were, how many were complete, and what is told of those."""

    rows: int = 0
    done: int = 0
    unknown_rows: int = 0
    outside_rows: int = 0
    columns: tuple[str, ...] = ()
    unknown: dict[str, UnknownLevels] = field(default_factory=dict)
    outside: dict[str, OutsideValues] = field(default_factory=dict)
    sums: dict[str, Sums] = field(default_factory=dict)

    def add(self, other: Applied) -> None:
        """Take in what came of the next rows."""
        self.rows += other.rows
        self.done += other.done
        self.unknown_rows += other.unknown_rows
        self.outside_rows += other.outside_rows
        self.columns = other.columns
        for name, one in other.unknown.items():
            met = self.unknown.get(name, UnknownLevels(name, (), 0))
            values = tuple(dict.fromkeys((*met.values, *one.values)))[:VALUES_TOLD]
            self.unknown[name] = UnknownLevels(name, values, met.rows + one.rows)
        for name, some in other.outside.items():
            self.outside[name] = self.outside[name].plus(some) if name in self.outside else some
        for name, sums in other.sums.items():
            self.sums[name] = self.sums.get(name, Sums()).plus(sums)


def _bytes_of(reader: BlockReader, columns: int) -> tuple[int, int]:
    """Return the bytes of a piece under way, and of a row group whose pages are decoded of so many columns."""
    if reader.format != "parquet":
        return PIECE_BYTES, 0
    return PARQUET_BYTES, int(GROUP_SHARE * reader.largest_group * min(columns / len(reader.names), 1.0))


@dataclass(frozen=True, eq=False)
class _RowWork:
    """What is done with the rows of a piece, wherever that is."""

    columns: ModelColumns
    missing: MissingRule
    unknown: UnknownRule
    choice: RowChoice
    threads: int = 1

    def _pieces(self, reader: BlockReader, keep: Sequence[str], engine: Engine) -> Pieces:
        kinds = {column.name: column.kind for column in self.columns.encoder.columns}
        return self.choice.pieces(reader, kinds, keep, engine.threads)

    def planned(self, reader: BlockReader, engine: Engine) -> Engine:
        """Tell the plan to whoever listens, and return the engine with as many threads as the memory allows.

        How much of a CSV file a row is the text of the first piece tells: the other rows are taken to be like it.
        """
        each, once = _bytes_of(reader, len(self.columns.encoder.columns) + len(self.columns.kept))
        if engine.memory is not None and engine.name == "local":
            most = max(1, (engine.memory - PROGRAM_BYTES - once) // each)
            engine = Engine(min(engine.threads, most), engine.memory)
        if plan_wanted(reader.total):
            counted_rows, rows, about = reader.format == "parquet", reader.total, ""
            size = float(8 * len(reader.names) * rows)
            if not counted_rows:
                pieces = self._pieces(reader, reader.names, engine).items
                blocks, whole, size = list(next(pieces).blocks()), next(pieces, None) is None, float(reader.total)
                rows = sum(block.table.n_rows for block in blocks)
                text = sum(block.kept.nbytes - 3 * block.kept.num_columns * block.kept.num_rows for block in blocks)
                if not whole:
                    rows, about = int(float(f"{rows * max(1.0, size / max(text, 1)):.2g}")), "about "
            low, high = work_of_rows(self.columns, rows, size)
            threads = engine.threads if engine.name == "local" else 1
            piece, taken = each if low != high else min(each, 30 * size), CURRENT.get().taken(0.0) + once
            tell(
                self.columns.COMMAND,
                rows,
                len(self.columns.encoder.columns),
                steps=(f"{self.columns.made}s of {about}{rows:,} rows, a block of them at a time",),
                memory=(taken + piece, taken + threads * piece),
                work=low,
                most=high,
                engine=engine,
            )
        return engine

    def run(self, reader: BlockReader, engine: Engine, writer: RowWriter, progress: Progress | None) -> Applied:
        """Write what the model makes of every row, in the order of the rows; the first one that does not fit is told."""
        pieces = self._pieces(reader, self.columns.kept, engine)
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
        if not applied.rows:
            raise self.choice.nothing_left(reader.name)
        if self.missing == "drop" and not applied.done:
            raise DataError(
                f"every row of {reader.name} has a missing value",
                hint=f"{option('missing', 'empty')} gives every row, without a {self.columns.made}",
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
        complete = np.flatnonzero(~self._incomplete(table))
        whole = table if len(complete) == table.n_rows else table.take(complete)
        encode = self.columns.encoder.transform
        points, strange = encode(whole, name=self.columns.shown, unknown=self.unknown)
        made, sums = self._slicewise(points)
        written = complete if self.missing == "drop" else np.arange(table.n_rows)
        # Where what was made of each row stands; nowhere of those that are incomplete.
        place = np.full(table.n_rows, -1, dtype=np.intp)
        place[complete] = np.arange(len(complete))
        there = in_arrow(place[written], place[written] < 0)
        kept = block.kept if len(written) == table.n_rows else block.kept.take(in_arrow(written))
        columns = {self.columns.row: in_arrow(block.first_row + table.numbers()[written])}
        columns |= {name: kept[name] for name in kept.column_names}
        columns |= {name: one.take(there) for name, one in made.items()}
        unknown = {one.column: one for one in strange}
        far, far_rows = self.columns.model.outside(points)
        outside = {one.column: one for one in far}
        counts = table.n_rows, len(complete), int((points.codes < 0).any(axis=1).sum()), far_rows
        return pa.table(columns), Applied(*counts, tuple(columns), unknown, outside, sums)

    def _slicewise(self, points: Points) -> tuple[dict[str, Any], dict[str, Sums]]:
        """Return what the model makes of rows, a slice at a time."""
        alone = Engine(1)
        starts = range(0, max(len(points), 1), SLICE_ROWS)
        slices = [points.take(slice(start, start + SLICE_ROWS)) for start in starts]
        made = list(Engine(self.threads).map(lambda some: self.columns(some, alone), slices))
        sums: dict[str, Sums] = {}
        for _, values in made:
            for name, one in values.items():
                sums[name] = sums.get(name, Sums()).plus(Sums.of(one))
        return {name: pa.concat_arrays([columns[name] for columns, _ in made]) for name in made[0][0]}, sums

    def _incomplete(self, table: Table) -> NDArray[np.bool_]:
        """Return which rows lack a value that the model needs."""
        gaps = {spec.name for spec in self.columns.encoder.columns if spec.takes_gaps}
        masks = {one.name: one.missing for one in table.columns if one.problem is None and one.name not in gaps}
        incomplete: NDArray[np.bool_] = np.any([np.zeros(table.n_rows, dtype=bool), *masks.values()], axis=0)
        if self.missing == "error" and incomplete.any():
            row = int(np.argmax(incomplete))
            names = [name for name, mask in masks.items() if mask[row]]
            what = f"column {names[0]!r} has" if len(names) == 1 else f"columns {listed(names, 5)} have"
            raise DataError(
                f"{table.name}, {table.place(row)}: {what} no value, and the model needs one",
                hint=f"{option('missing', 'drop')} leaves such rows out; {option('missing', 'empty')} gives them without a {self.columns.made}",
                code="data.missing_values",
                where={**table.where(row), "column": names[0]},
            )
        return incomplete

    def warnings(self, data: str, applied: Applied, unsettled: int) -> Iterator[str]:
        """Yield what a reader of the output must know."""
        yield from self.columns.warnings
        if incomplete := applied.rows - applied.done:
            what = "left out" if self.missing == "drop" else f"without a {self.columns.made}"
            yield f"{data}: {counted(incomplete, 'row')} with missing values {what}"
        yield from (one.told(data, self.columns.shown) for one in applied.unknown.values())
        if odd := [one for one in applied.outside.values() if one.tells(applied.done)]:
            consequence = self.columns.model.far_off
            yield from (one.told(data, consequence) for one in odd[:OUTSIDE_TOLD])
            if more := [repr(one.column) for one in odd[OUTSIDE_TOLD:]]:
                yield f"{data}: so {'is' if len(more) == 1 else 'are'} values of {listed(more, OUTSIDE_TOLD)}"
        if unsettled:
            yield f"{counted(unsettled, 'pre-image')} did not settle: the best row met is written for each of them"


# Options of both are shown with those of each.
_COMMON = [one for one in signature(_applied).parameters.values() if one.kind is not Parameter.POSITIONAL_OR_KEYWORD]
for _function in (predict_file, transform_file):
    _shown = signature(_function)
    vars(_function)["__signature__"] = _shown.replace(parameters=[*list(_shown.parameters.values())[:-1], *_COMMON])
