"""Pieces of tables that are read one at a time, and what becomes of their rows: typed columns, then points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.blocks import BlockTable
from kerntest.data.kinds import as_text
from kerntest.data.table import Column, Kind, Table
from kerntest.errors import DataError
from kerntest.kernels.base import Points

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Rows that are typed and worked on together: fewer of many columns, so that their values take no more than 16 MB.
BATCH_ROWS, BATCH_VALUES = 1 << 16, 1 << 21
# What is read ahead of all columns of a Parquet file together, and of one of them.
AHEAD_BYTES, MOST_AHEAD = 1 << 25, 1 << 20
TRUTH = frozenset({"true", "false"})


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """Neighbouring row groups of a Parquet file.

    Parameters
    ----------
    location : Path
    shown : str
        How messages call the file where several are read as one table; else empty.
    groups : tuple of int
    offset : int
        Rows of the file before them.
    """

    location: Path
    shown: str
    groups: tuple[int, ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Some rows of an input, one after another, which can be read without the others.

    Parameters
    ----------
    source : int
        Which input: 0, or 1 of two.
    number : int
        Its place among the pieces of the input.
    rows_before : int
        Rows of the input before it.
    n_rows : int
        Rows in it.
    held : Table or ParquetPart
        The rows, or where they are.
    used_before : int
        Rows of the input before it that are used; 0 before the survey has counted them.
    """

    source: int
    number: int
    rows_before: int
    n_rows: int
    held: Table | ParquetPart
    used_before: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """One column that is read.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "text", "date"}
        What it is for the test.
    forced : bool
        Whether it is to be taken as text whatever it holds.
    """

    name: str
    kind: Kind
    forced: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """How columns become what kernels see.

    Parameters
    ----------
    numeric_names, category_names : tuple of str
        Columns in the order of `Points`.
    centre, spread : ndarray, shape (p,)
        A number v becomes (v - centre) / spread.
    levels : tuple of tuple of str
        Sorted levels of each category column; the code of a value is its place among them.
    """

    numeric_names: tuple[str, ...]
    category_names: tuple[str, ...]
    centre: Array
    spread: Array
    levels: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, numeric ones first."""
        return self.numeric_names + self.category_names

    def points(self, table: Table) -> Points:
        """Return the rows of a table without missing values as points, scaled."""
        columns = {column.name: column for column in table.columns}
        numeric = np.empty((table.n_rows, len(self.numeric_names)), order="F")
        for place, name in enumerate(self.numeric_names):
            np.subtract(columns[name].values, self.centre[place], out=numeric[:, place])
            numeric[:, place] /= self.spread[place]
        codes = np.empty((table.n_rows, len(self.category_names)), dtype=np.int64, order="F")
        for place, name in enumerate(self.category_names):
            codes[:, place] = coded(columns[name], self.levels[place])
        return Points(numeric, codes)


def coded(column: Column, levels: Sequence[str]) -> NDArray[np.int64]:
    """Return a category column's values as places in other levels, which hold all of its own that occur."""
    if not column.levels:
        return np.full(len(column.values), -1, dtype=np.int64)
    places = np.searchsorted(np.array(levels, dtype=object), np.array(column.levels, dtype=object))
    found: NDArray[np.int64] = places[column.values]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class RowReader:
    """Reads pieces, here or in another process: it holds no open file.

    Parameters
    ----------
    names : tuple of str
        How messages call each input.
    wanted : tuple of Wanted
        The columns.
    layout : Layout or None
        None before the survey has found it.
    """

    names: tuple[str, ...]
    wanted: tuple[Wanted, ...]
    layout: Layout | None = None

    def tables(self, piece: Piece) -> Iterator[Table]:
        """Yield the wanted columns of all rows of a piece, in the kinds that the values have.

        Raises
        ------
        DataError
            If a file is damaged.
        """
        if isinstance(piece.held, Table):
            tables: Iterator[Table] = iter([piece.held])
        else:
            tables = _parquet_tables(piece.held, self.names[piece.source], self.wanted)
        kinds = {one.name: one.kind for one in self.wanted}
        for table in tables:
            columns = tuple(_as_wanted(table[name], kind) for name, kind in kinds.items())
            yield replace(table, columns=columns)

    def read(self, piece: Piece) -> Iterator[Points]:
        """Yield the points of a piece, a few at a time, without the rows that lack a value.

        Parameters
        ----------
        piece : Piece
            Of `Survey.pieces`.
        """
        if self.layout is None:
            message = "rows have no layout before the survey"
            raise RuntimeError(message)
        for table in self.tables(piece):
            kept = complete_rows(table)
            used = table if kept is None else table.take(kept)
            if used.n_rows:
                yield self.layout.points(used)


def batch_rows(columns: int) -> int:
    """Return how many rows of so many columns are worked on together."""
    return min(BATCH_ROWS, max(1, BATCH_VALUES // max(columns, 1)))


def complete_rows(table: Table) -> NDArray[np.bool_] | None:
    """Return which rows have every value; None where all have."""
    complete: NDArray[np.bool_] | None = None
    for column in table.columns:
        missing = column.missing
        if missing.any():
            complete = ~missing if complete is None else complete & ~missing
    return complete


def _as_wanted(column: Column, kind: Kind) -> Column:
    """Return a column in the kind that is wanted where that changes nothing; else as it is."""
    if kind == "boolean" and column.kind == "text" and TRUTH.issuperset(map(str.lower, column.levels)):
        # True and true are one value in a column of truth values.
        return replace(_relabelled(column, {level: level.lower() for level in column.levels}), kind="boolean")
    if kind == "text" and column.kind == "boolean":
        return as_text(column)
    if column.kind != kind and column.missing.all():
        missing = -1 if kind in {"boolean", "text"} else np.nan
        dtype = np.int64 if kind in {"boolean", "text"} else np.float64
        return Column(column.name, kind, np.full(len(column.values), missing, dtype=dtype))
    return column


def _relabelled(column: Column, renamed: Mapping[str, str]) -> Column:
    levels = tuple(sorted(set(renamed.values())))
    place = np.array([levels.index(renamed[level]) for level in column.levels] + [-1], dtype=np.int64)
    return replace(column, values=place[column.values], levels=levels)


def _parquet_tables(part: ParquetPart, name: str, wanted: Sequence[Wanted]) -> Iterator[Table]:
    """Yield the wanted columns of row groups, however large they are, a batch at a time."""
    import pyarrow as pa  # noqa: PLC0415 - 70 ms that an array does not need
    from pyarrow import parquet  # noqa: PLC0415 - the same

    from kerntest.data.formats.parquet import malformed_parquet  # noqa: PLC0415 - the same
    from kerntest.data.in_memory import column_of  # noqa: PLC0415 - the same

    offset, ahead = part.offset, min(MOST_AHEAD, AHEAD_BYTES // len(wanted))
    try:
        with parquet.ParquetFile(part.location, pre_buffer=False, buffer_size=ahead) as file:
            batches: Iterator[Any] = file.iter_batches(
                batch_size=batch_rows(len(wanted)),
                row_groups=list(part.groups),
                columns=[one.name for one in wanted],
                use_threads=False,
            )
            for batch in batches:
                # Damage can hide in text.
                batch.validate(full=True)
                arrow = pa.table(batch)
                columns = tuple(column_of(one.name, arrow[one.name], name, as_category=one.forced) for one in wanted)
                yield BlockTable(name, columns, batch.num_rows, "parquet", offset=offset, part=part.shown)
                offset += batch.num_rows
    except FileNotFoundError as error:
        raise DataError(
            f"{part.shown or name} is not to be seen at {part.location} from where it is read",
            hint="put the data on storage that all workers see under the same path",
            code="data.unseen_by_worker",
            where={"file": part.shown or name},
        ) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise malformed_parquet(part.shown or name, error) from error
