"""Tables and typed columns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kerntest.data.written_values import FORMS, Form, form_of
from kerntest.dataclass import dataclass
from kerntest.errors import DataError, KerntestError, UsageError, bad_file, listed, option, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray


Kind = Literal["number", "boolean", "text", "date"]
# Words that stand for a missing value in CSV; an empty field always does.
MISSING = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None", "n/a", "#N/A")
# Whole numbers from here on are not all told apart as floating-point numbers.
EXACT_INTEGERS = 2.0**53


@dataclass(frozen=True)
class ColumnProblem:
    """Why a column cannot be used as it is; raised only when somebody uses it.

    Reading happens before selection, and a column that is left out must not fail the run.
    """

    error: DataError
    # What its values are meant to be; None of a type that cannot be used even as text.
    kind: Kind | None = None


@dataclass(frozen=True)
class Remark:
    """What a reader should know of how a column was read."""

    said: str
    example: str = ""
    # Whether these are numbers with a unit, which may be left as text.
    dressed: bool = False


@dataclass(frozen=True, eq=False)
class Column:
    """One named, typed column of n values.

    Parameters
    ----------
    name : str
        As in the header.
    kind : {"number", "boolean", "text", "date"}
        What all values of the column are.
    values : ndarray, shape (n,)
        float64 with NaN for missing (number; date: days since 1970-01-01), or int64 codes into `levels` with -1
        for missing (boolean, text).
    levels : tuple of str
        The different values of a boolean or text column, sorted; empty for number and date.
    problem : ColumnProblem, optional
        Why the column cannot be used as it is.
    written : str
        In which form its numbers or dates were written, of `forms`; empty for plain ones.
    emptied_by : str
        The word, such as None, for which many values of a text column in CSV are missing; empty where few are.
    remarks : tuple of Remark
    digits : ndarray, shape (n,), optional
        Whole numbers of which some lie beyond 2^53, with every digit; of a text column those that it is made of.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    levels: tuple[str, ...] = ()
    problem: ColumnProblem | None = None
    written: str = ""
    emptied_by: str = ""
    remarks: tuple[Remark, ...] = ()
    digits: NDArray[Any] | None = None

    @property
    def form(self) -> Form:
        """The form in which its numbers or dates are written; plain dates have the year first."""
        return form_of(self.written, self.kind)

    @property
    def is_category(self) -> bool:
        """Whether the values are codes into `levels`."""
        return self.kind in {"boolean", "text"}

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Mask of the missing values, shape (n,)."""
        missing: NDArray[np.bool_] = self.values < 0 if self.is_category else np.isnan(self.values)
        return missing

    @cached_property
    def range(self) -> tuple[float, float]:
        """The least and the largest value or code, not a number where a number is missing or there is none."""
        if not len(self.values):
            return math.nan, math.nan
        return float(self.values.min()), float(self.values.max())

    @property
    def n_missing(self) -> int:
        """Number of missing values."""
        return 0 if self.range[0] >= (0 if self.is_category else -math.inf) else int(np.count_nonzero(self.missing))

    @property
    def level_counts(self) -> NDArray[np.int64]:
        """How often each of the levels occurs."""
        counts: NDArray[np.int64] = np.bincount(self.values[self.values >= 0], minlength=len(self.levels))
        return counts

    @property
    def used_levels(self) -> set[str]:
        """The levels that occur."""
        return {self.levels[code] for code in self.level_counts.nonzero()[0]}

    def take(self, rows: NDArray[Any]) -> Column:
        """Return the column at these rows (indices or a mask); the levels stay."""
        return replace(self, values=self.values[rows], digits=None if self.digits is None else self.digits[rows])


@dataclass(frozen=True, eq=False)
class Table:
    """Typed columns of equal length, and where they came from.

    Parameters
    ----------
    name : str
        How messages call it: the path as typed, ``"<stdin>"``, or ``"x"`` and ``"y"`` for arrays.
    columns : tuple of Column
        In the order of the file.
    n_rows : int
        Number of rows.
    format : str
        ``"csv"``, ``"parquet"``, ``"json"``, ``"array"`` or ``"frame"``.
    sha256 : str or None
        Digest of the file's bytes as stored, of several files of their digests (see `Source`); None for arrays and
        frames.
    delimiter : str or None
        Between the fields of a CSV file.
    notes : tuple of str
        What a reader should know about how the table was read, its columns aside.
    lines : ndarray of int64, shape (n_rows,), optional
        Line of the file on which each row begins, counted from 1; None where there are no lines.
    rows : ndarray of int64, shape (n_rows,), optional
        The number of each row, counted from 1, where others were left out; None where none were.
    files : tuple of str
        The files that were read, in order; empty for arrays and frames.
    file_of : ndarray of int32, shape (n_rows,), optional
        Which of several files each row comes from; None where there is one, or where it cannot be told.
    compression : str or None
        "gzip", "zstd", "bzip2" or "xz", where the files were compressed.
    size : int or None
        Bytes of all files together, as stored.
    na : tuple of str
        Words that stood for a missing value in CSV.
    has_missing : bool
        Whether values may be missing, in any column.
    chosen_from : int or None
        The rows of the table before some of them were chosen; None where all were taken.
    chosen_by : str
        How they were chosen, in words.
    offset, part
        Of some rows of a file: how many stand before them, and which of several files it is.
    whole : Table, optional
        With all columns and rows, where these are some of its columns.
    """

    name: str
    columns: tuple[Column, ...]
    n_rows: int
    format: str
    sha256: str | None = None
    delimiter: str | None = None
    notes: tuple[str, ...] = ()
    lines: NDArray[np.int64] | None = None
    rows: NDArray[np.int64] | None = None
    files: tuple[str, ...] = ()
    file_of: NDArray[np.int32] | None = None
    compression: str | None = None
    size: int | None = None
    na: tuple[str, ...] = MISSING
    has_missing: bool = True
    chosen_from: int | None = None
    chosen_by: str = ""
    offset: int = 0
    part: str = ""
    whole: Table | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return dict(zip(self.names, self.columns, strict=True))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know about how the table and the columns that are left of it were read."""
        found: dict[str, list[tuple[str, Remark]]] = {}
        for column in self.columns:
            for remark in column.remarks:
                found.setdefault(remark.said, []).append((column.name, remark))
        lines = []
        for said, told in found.items():
            names, first = [name for name, _ in told], told[0][1]
            where = f" in {listed(names)} ({first.example})" if first.example else ""
            kept = f"; {option('categorical', names)} keeps them as text" if first.dressed else ""
            lines.append(f"{self.name}: {said}{where}{kept}")
        return (*self.notes, *lines)

    def __getitem__(self, name: str) -> Column:
        return self._named(name)

    def select(self, names: Sequence[str]) -> Table:
        """Return the table of these columns, in this order; UsageError for a name that is not there."""
        if tuple(names) == self.names:
            return self
        return replace(self, columns=tuple(map(self._named, names)), whole=self.whole or self)

    def with_all_columns(self) -> Table:
        """Return these rows with the columns that were left out, too."""
        return self if self.whole is None else self.whole.take(self.whole.places_of(self.numbers()))

    def places_of(self, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return where the rows stand that had these numbers in the table as it was read."""
        if self.rows is None:
            return numbers - 1
        order = np.argsort(self.rows)
        return np.asarray(order[np.searchsorted(self.rows, numbers, sorter=order)])

    def _named(self, name: str) -> Column:
        if not isinstance(name, str) or name not in self._by_name:
            raise unknown_column(name, self.name, self.names)
        return self._by_name[name]

    def take(self, rows: NDArray[Any]) -> Table:
        """Return the table at these rows (indices or a mask)."""
        columns = tuple(column.take(rows) for column in self.columns)
        n_rows = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        lines, file_of = (None if places is None else places[rows] for places in (self.lines, self.file_of))
        return replace(self, columns=columns, n_rows=n_rows, lines=lines, rows=self.numbers()[rows], file_of=file_of)

    def numbers(self) -> NDArray[np.int64]:
        """Return the number of each row in the table as it was read, counted from 1."""
        return np.arange(1, self.n_rows + 1) if self.rows is None else self.rows

    def place(self, row: int) -> str:
        """Return where row `row` (counted from 0) stands, for a message: ``"line 37"`` or, without lines, ``"row 36"``.

        Of several files it says which: ``"line 37 of part-2.csv"``.
        """
        unit, number, part = self._at(row)
        return f"{unit} {number} of {part}" if part else f"{unit} {number}"

    def where(self, row: int) -> dict[str, str | int]:
        """Return where row `row` (counted from 0) stands, for a program."""
        unit, number, part = self._at(row)
        return {"file": part or self.name, unit: number}

    def _at(self, row: int) -> tuple[str, int, str]:
        """Return whether lines or rows are counted, at which one a row stands, and in which of several files."""
        part = self.part if self.file_of is None else self.files[self.file_of[row]]
        if self.lines is not None:
            return "line", int(self.lines[row]), part
        number = self.offset + int(self.numbers()[row])
        if self.file_of is None or self.rows is not None:
            # Where rows were left out, it is not known how many each file has.
            return "row", number, self.part
        return "row", number - int(np.argmax(self.file_of == self.file_of[row])), part


def unknown_column(name: str, table_name: str, names: Sequence[str], said: str = "") -> UsageError:
    """Return the error for a column that is not there: did you mean this one, or else here they all are."""
    close = suggest(name, tuple(names))
    shown = listed([f'"{one}"' if "," in one else one for one in names], 20)
    values = [one for one in names if any(form.read(one) is not None for form in FORMS)]
    # Years, or places from 0 on, are names.
    in_order = all(map(str.isdecimal, values)) and values == sorted(values, key=int)
    no_header = f"{no_header_hint(values)}; " if 2 * len(values) >= len(names) and not in_order else ""
    hint = f"did you mean {close!r}?" if close else comment_hint(names) or f"{no_header}the columns are {shown}"
    if whole := next((one for one in names if name in map(str.strip, one.split(",")) and "," in one), None):
        hint = f"""a name with a comma is written in double quotes, '"{whole}"'"""
    where = {"file": table_name, "column": name}
    said = said or f"column {name!r} is not in {table_name}"
    return UsageError(said, hint=hint, code="usage.unknown_column", where=where)


def comment_hint(names: Sequence[str]) -> str:
    """Return the hint for a file whose first line seems to be a comment; else nothing."""
    commented = bool(names) and names[0].startswith("#")
    return f"if lines that begin with # are comments, {option('comment', '#')} leaves them out" if commented else ""


def no_header_hint(names: Sequence[str], others: Sequence[str] | None = None) -> str:
    """Return the hint for names, of two files where there are others, of which some are numbers or dates; else nothing."""
    odd = all(any(form.read(name) is not None for name in some for form in FORMS) for some in (names, others or names))
    return f"if the first line is a row and not a header, {option('header', False)} says so" if odd else ""


def told_apart(names: Sequence[str], others: Sequence[str]) -> str:
    """Return how the columns of a further file differ from those of the first; nothing where they do not."""
    told = {
        "it lacks": [one for one in names if one not in others],
        "it has": [one for one in others if one not in names],
    }
    pieces = [f"{verb} {listed(some, 5)}" for verb, some in told.items() if some]
    return "; ".join(pieces) or ("" if list(names) == list(others) else "its columns stand in another order")


def refuse_duplicates(names: Sequence[str], table_name: str) -> None:
    """Refuse a table in which a column name occurs twice: columns are told apart by name."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        said = f"has more than one column named {listed([repr(name) for name in repeated])}"
        hint = no_header_hint(names) or "give every column a name of its own"
        raise bad_file(table_name, said, hint=hint, code="data.duplicate_columns", column=repeated[0])


def refuse_empty(table_name: str, n_rows: int, n_columns: int) -> None:
    """Refuse a table without rows or without columns."""
    if n_rows == 0 or n_columns == 0:
        said, code = ("has no columns", "data.no_columns") if n_columns == 0 else ("has no rows", "data.no_rows")
        raise bad_file(table_name, said, hint="a table needs at least one column and one row", code=code)


# Tables larger than memory: files read as blocks of rows, whose columns are typed as a caller asks. `read_table` decides
# the type of a column on all of its values, which takes the whole file; here the caller says what a column must be, so
# that a row means the same whatever block it is in.


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows, one after another."""

    table: Table
    kept: Any
    first_row: int


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows that can be worked on apart from all others, in another thread or process.

    `done` tells how much of the reader's `total` is done once this piece and all before it are. What stopped the reading
    is the last piece, so that an error in the rows before it is met first.
    """

    read: RowBlock | KerntestError | Callable[[], Iterator[RowBlock]]
    done: int

    def blocks(self) -> Iterator[RowBlock]:
        """Yield the rows of the piece; DataError if they are malformed, or not to be seen from here."""
        if isinstance(self.read, KerntestError):
            raise self.read
        yield from (self.read,) if isinstance(self.read, RowBlock) else self.read()


@dataclass(frozen=True, eq=False)
class Pieces:
    """All rows in order, to be gone through once."""

    items: Iterator[Piece]
    count: int


def loaded(blocks: Iterator[tuple[RowBlock, int]]) -> Iterator[Piece]:
    """Yield blocks, with how much is done after each, as pieces while they are read."""
    try:
        for block, done in blocks:
            yield Piece(block, done)
    except KerntestError as error:
        yield Piece(error, 0)


class BlockReader(ABC):
    """The rows of one file or several, block by block.

    Attributes
    ----------
    name, format : str
        As in `Table`.
    names : tuple of str
        Of all columns.
    warnings : tuple of str
    total : int
        Size of the work: bytes of CSV, rows of Parquet.
    largest_group : int
        Bytes of the largest row group of Parquet, unpacked.
    written : mapping of str to str
        In which forms columns of numbers and dates are written, where not plainly; to be set by who knows it.
    categorical : frozenset of str
        Columns that are text whatever they hold, where blocks have types of their own; to be set by who knows it.
    """

    name: str
    format: str
    names: tuple[str, ...]
    warnings: tuple[str, ...]
    total: int
    largest_group: int = 0
    written: Mapping[str, str] = MappingProxyType({})
    categorical: frozenset[str] = frozenset()

    @abstractmethod
    def head(self, categorical: Sequence[str]) -> Table:
        """Return the first rows of all columns, of which some are text, typed the way a whole file is."""

    @abstractmethod
    def pieces(self, kinds: Mapping[str, Kind], keep: Sequence[str] = (), at_once: int = 1) -> Pieces:
        """Return all rows, in pieces whose blocks are the same whatever the pieces are."""


def in_arrow(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers, truth values or texts in Arrow, some of them missing: `pyarrow.array` would load pandas for that, in 0.2 s."""
    import pyarrow as pa  # noqa: PLC0415 - tables of arrays need none

    if values.dtype == object:
        texts = [text.encode() for text in values.tolist()]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        return pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))])
    there = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    held = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [there, pa.py_buffer(held)])
