"""A model applied to the rows of a file piece by piece: what predicting and projecting share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeAlias, TypeVar, cast

import numpy as np
import pyarrow as pa

from kerntest.data.selection import match_names
from kerntest.data.wording import counted, listed
from kerntest.engines.local import LocalEngine
from kerntest.engines.memory import PROGRAM_BYTES
from kerntest.engines.plan import tell
from kerntest.engines.setting import plan_wanted
from kerntest.errors import DataError, UsageError
from kerntest.learning.predicted_columns import written_table
from kerntest.learning.strangers import Strangers, known_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from numpy.typing import NDArray

    from kerntest.data.blocks import Block, BlockReader, BlockTable, Piece
    from kerntest.data.selection import Patterns
    from kerntest.data.table import Table
    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Points
    from kerntest.learning.encoding import Encoded, Encoder
    from kerntest.learning.prediction_output import Sink

MissingRule: TypeAlias = Literal["error", "drop", "empty"]
UnknownRule: TypeAlias = Literal["error", "ignore"]
ROW = "row"
# What a model finds on the way to its values may be many numbers a row: so many rows are taken at a time.
SLICE_ROWS = 1 << 12
# What applying takes for each thread (measured: 50 to 80 MB).
PIECE_BYTES = 70 * 10**6


class Tally(Protocol):
    """What a report tells of the values that rows were given."""

    def add(self, other: Self) -> None:
        """Take note of the next rows: of blocks in the order of the rows, so that sums do not depend on who computes."""


TallyT = TypeVar("TallyT", bound=Tally)


@dataclass(frozen=True, slots=True, eq=False)
class Found(Generic[TallyT]):
    """What a model gives for n rows.

    Parameters
    ----------
    columns : mapping of str to pyarrow.Array, each of n values
    n : int
    tally : Tally
    """

    columns: Mapping[str, Any]
    n: int
    tally: TallyT


def kept_columns(keep: Patterns, reader: BlockReader, taken: Callable[[str], bool], made: str) -> list[str]:
    """Return the columns to hand through.

    Parameters
    ----------
    keep : str, sequence of str or None
    reader : BlockReader
    taken : callable
        Whether the output has a column of this name itself.
    made : str
        What the model makes, such as "predictions".

    Raises
    ------
    UsageError
        If a name is not there, or taken.
    """
    names = match_names(keep, reader.names, reader.name)
    for name in names:
        if name == ROW or taken(name):
            raise UsageError(
                f"column {name!r} of {reader.name} cannot be kept beside the {made}, which have columns of such names",
                hint="rename it in the data, or name the others in --keep",
                code="usage.keep",
                where={"file": reader.name, "column": name},
            )
    return names


def check_columns(reader: BlockReader, encoder: Encoder, shown: str) -> None:
    """Refuse a table without a column that the model needs, before any row of it is read."""
    from kerntest.data.table import Column, Table  # noqa: PLC0415 - for this check alone

    empty = tuple(Column(name, "number", np.empty(0)) for name in reader.names)
    encoder.select(Table(reader.name, empty, 0, reader.format), name=shown)


@dataclass(frozen=True, slots=True, eq=False)
class _Given(Generic[TallyT]):
    """What came of one block."""

    table: Any
    rows: int
    done: int
    strangers: Strangers
    tally: TallyT


@dataclass(frozen=True, slots=True, eq=False)
class _PieceGiven(Generic[TallyT]):
    """What came of one piece: of its blocks, and how much is done with it."""

    blocks: list[_Given[TallyT]]
    done: int


@dataclass(slots=True, eq=False)
class Applied(Generic[TallyT]):
    """What came of all rows.

    Parameters
    ----------
    tally : Tally
    rows : int
    done : int
        Rows that were given something.
    columns : tuple of str
        Of the output.
    strangers : Strangers
    """

    tally: TallyT
    rows: int = 0
    done: int = 0
    columns: tuple[str, ...] = ()
    strangers: Strangers = field(default_factory=Strangers)

    def add(self, given: _Given[TallyT]) -> None:
        """Take note of the next block."""
        self.tally.add(given.tally)
        self.rows += given.rows
        self.done += given.done
        self.columns = tuple(given.table.column_names)
        self.strangers.add(given.strangers)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RowWork(ABC, Generic[TallyT]):
    """What is done with the rows of a piece, wherever that is.

    Parameters
    ----------
    encoder : Encoder
    shown : str
        How messages call the model.
    kept : tuple of str
        Columns to hand through.
    missing, unknown : str
        The rules.
    made : str
        What the model makes of a row, such as "prediction".
    located : callable
        As `BlockReader.located`.
    threads : int
        For one piece.
    """

    encoder: Encoder
    shown: str
    kept: tuple[str, ...]
    missing: MissingRule
    unknown: UnknownRule
    made: str
    located: Callable[[Block], BlockTable]
    threads: int = 1

    @abstractmethod
    def found(self, points: Points | None, engine: Engine) -> Found[TallyT]:
        """Return what the model gives for a few rows; None for no rows, which still have their columns."""

    @abstractmethod
    def nothing(self) -> TallyT:
        """Return the tally of no rows."""

    def prepared(self, command: str, reader: BlockReader, engine: Engine) -> Engine:
        """Tell the plan to whoever listens, and return the engine with as many threads as the memory allows.

        Parameters
        ----------
        command : str
        reader : BlockReader
        engine : Engine

        Notes
        -----
        Cost: where somebody listens, that of the first piece: the others are taken to be like it.
        """
        if engine.memory is not None and engine.name == "local":
            most = max(1, (engine.memory - PROGRAM_BYTES) // PIECE_BYTES)
            engine = LocalEngine(min(engine.threads, most), engine.memory)
        if plan_wanted(reader.total):
            started = time.perf_counter()
            kinds = {column.name: column.kind for column in self.encoder.columns}
            given = self(next(iter(reader.pieces(kinds, self.kept, engine.threads).items)))
            share = min(1.0, max(given.done, 1) / max(reader.total, 1))
            seconds = (time.perf_counter() - started) / share
            rows = reader.total if reader.format == "parquet" else round(sum(one.rows for one in given.blocks) / share)
            about = "" if reader.format == "parquet" or share == 1.0 else "about "
            step = f"{self.made}s of {about}{rows:,} rows, a block of them at a time"
            held = (engine.threads if engine.name == "local" else 1) * PIECE_BYTES
            told = seconds / engine.threads
            tell(command, rows, len(kinds), steps=(step,), held=held, operations={}, engine=engine, besides=told)
        return engine

    def run(self, reader: BlockReader, engine: Engine, sink: Sink, progress: Progress | None) -> Applied[TallyT]:
        """Apply the model to every row and write what it gives, in the order of the rows.

        Raises
        ------
        DataError
            If rows do not fit the model: the first one that does not.
        """
        kinds = {column.name: column.kind for column in self.encoder.columns}
        pieces = reader.pieces(kinds, self.kept, engine.threads)
        runner = engine if pieces.count > 1 else engine.here
        # Few pieces leave threads idle, which may help inside of them.
        inside = -(-runner.threads // max(1, pieces.count)) if runner is engine.here else 1
        results = runner.map(replace(self, threads=inside), pieces.items, total=pieces.count)
        applied = Applied(self.nothing())
        with closing(cast("Generator[_PieceGiven[TallyT]]", results)):
            for piece in results:
                for given in piece.blocks:
                    sink.write(given.table)
                    applied.add(given)
                if progress is not None:
                    progress(min(piece.done, reader.total), reader.total)
        if self.missing == "drop" and not applied.done:
            raise DataError(
                f"every row of {reader.name} has a missing value",
                hint=f"--missing empty gives every row, without a {self.made}",
                code="data.no_rows_left",
                where={"file": reader.name},
            )
        return applied

    def __call__(self, piece: Piece) -> _PieceGiven[TallyT]:
        """Read a piece and apply the model to its rows."""
        return _PieceGiven([self._given(block) for block in piece.blocks()], piece.done)

    def _given(self, block: Block) -> _Given[TallyT]:
        """Return what came of a block."""
        table = known_levels(block.table, self.encoder)
        incomplete = self._incomplete(table, block)
        complete = np.flatnonzero(~incomplete)
        found, strangers = self._found(table, complete, block)
        written = complete if self.missing == "drop" else np.arange(table.n_rows)
        place = np.full(table.n_rows, -1, dtype=np.intp)
        place[complete] = np.arange(len(complete))
        output = written_table(found.columns, block.first_row + written + 1, block.kept, written, place[written])
        return _Given(output, table.n_rows, found.n, strangers, found.tally)

    def _found(self, table: BlockTable, complete: NDArray[np.intp], block: Block) -> tuple[Found[TallyT], Strangers]:
        """Return what the model gives for the complete rows; an error tells the line on which it stands."""
        if not len(complete):
            return self.found(None, LocalEngine(1)), Strangers()
        whole = len(complete) == table.n_rows
        chosen = table if whole else table.take(complete)
        try:
            points = self._encoded(chosen).points
        except DataError as error:
            raise self._located_error(error, complete, block) from None
        return self._slicewise(points), Strangers.met(self.encoder, chosen, points.codes)

    def _slicewise(self, points: Points) -> Found[TallyT]:
        """Return what the model gives for rows, found a slice at a time."""
        alone = LocalEngine(1)
        parts = [points.take(slice(start, start + SLICE_ROWS)) for start in range(0, len(points), SLICE_ROWS)]
        found = list(LocalEngine(self.threads).map(lambda part: self.found(part, alone), parts))
        tally = self.nothing()
        for one in found:
            tally.add(one.tally)
        columns = {name: pa.concat_arrays([one.columns[name] for one in found]) for name in found[0].columns}
        return Found(columns, len(points), tally)

    def _located_error(self, error: DataError, complete: NDArray[np.intp], block: Block) -> DataError:
        """Return an error about a block with the line on which it stands."""
        try:
            self._encoded(known_levels(self.located(block), self.encoder).take(complete))
        except DataError as located:
            return located
        return error

    def _encoded(self, table: Table) -> Encoded:
        return self.encoder.transform(table, name=self.shown, unknown=self.unknown)

    def _incomplete(self, table: BlockTable, block: Block) -> NDArray[np.bool_]:
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
                hint=f"--missing drop leaves such rows out; --missing empty gives them without a {self.made}",
                code="data.missing_values",
                where={**located.where(row), "column": names[0]},
            )
        return incomplete

    def warnings(self, reader: BlockReader, applied: Applied[TallyT]) -> tuple[str, ...]:
        """Return what a reader of the output must know."""
        warnings = list(reader.warnings)
        incomplete = applied.rows - applied.done
        if incomplete:
            what = "left out" if self.missing == "drop" else f"without a {self.made}"
            warnings.append(f"{reader.name}: {counted(incomplete, 'row')} with missing values {what}")
        return (*warnings, *applied.strangers.warnings(reader.name, self.shown))

    def ignored(self, reader: BlockReader) -> tuple[str, ...]:
        """Return the columns of the data that nobody asked for."""
        known = {*self.encoder.names, *self.kept}
        return tuple(name for name in reader.names if name not in known)
