"""Tables larger than memory: files read as blocks of rows, whose columns are typed as a caller asks.

`read_table` decides the type of a column on all of its values, which takes the whole file. Here the caller says what a
column must be, so that a row means the same whatever block it is in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kerntest.data.table import Table
from kerntest.errors import KerntestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kerntest.data.table import Kind


@dataclass(frozen=True, slots=True, eq=False)
class BlockTable(Table):
    """The typed columns of some rows of a file."""

    offset: int = 0
    part: str = ""

    def place(self, row: int) -> str:
        """Return where row `row` of the block stands in its file."""
        place = f"row {self.offset + row + 1}" if self.lines is None else f"line {self.lines[row]}"
        return f"{place} of {self.part}" if self.part else place

    def where(self, row: int) -> dict[str, str | int]:
        """Return the same for a program."""
        file = self.part or self.name
        if self.lines is None:
            return {"file": file, "row": self.offset + row + 1}
        return {"file": file, "line": int(self.lines[row])}


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Some rows, one after another."""

    table: BlockTable
    kept: Any
    first_row: int


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """All rows in order, to be gone through once."""

    items: Iterator[Piece]
    count: int


def loaded(blocks: Iterator[RowBlock], done: Callable[[RowBlock], int]) -> Iterator[Piece]:
    """Yield blocks as pieces while they are read."""
    try:
        for block in blocks:
            yield Piece(block, done(block))
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
    written : mapping of str to str
        In which forms columns of numbers and dates are written, where not plainly; to be set by who knows it.
    """

    name: str
    format: str
    names: tuple[str, ...]
    warnings: tuple[str, ...]
    total: int
    written: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def pieces(self, kinds: Mapping[str, Kind], keep: Sequence[str] = (), at_once: int = 1) -> Pieces:
        """Return all rows, in pieces whose blocks are the same whatever the pieces are."""

    @abstractmethod
    def located(self, block: RowBlock) -> BlockTable:
        """Return the table of a block with the lines on which its rows stand; slow, for messages."""
