"""Tables larger than memory: files read as blocks of rows, whose columns are typed as a caller asks.

`read_table` decides the type of a column on all of its values, which takes the whole file. Here the caller says what a
column must be, so that a row means the same whatever block it is in.
"""

from __future__ import annotations

import sys
import tempfile
from abc import ABC, abstractmethod
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from typing import TYPE_CHECKING, Any, Protocol

from kerntest.data.compression import compression_of, unpacking
from kerntest.data.numerals import Decimal, check_decimal
from kerntest.data.paths import Found, find_files, open_file
from kerntest.data.source import PARQUET_MAGIC
from kerntest.data.table import Table
from kerntest.errors import DataError, KerntestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from _typeshed import SupportsRead

    from kerntest.data.table import Kind

STDIN = "<stdin>"


@dataclass(frozen=True, slots=True, eq=False)
class BlockTable(Table):
    """The typed columns of some rows of a file.

    Parameters
    ----------
    offset : int
        Rows of the file before these.
    part : str
        Name of the file where there are several, else empty.
    """

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
class Block:
    """Some rows, one after another.

    Parameters
    ----------
    table : BlockTable
        The columns that were asked for, typed.
    kept : pyarrow.Table
        The columns to be handed through, as they are; of CSV text as typed.
    first_row : int
        Rows of all files before this block.
    """

    table: BlockTable
    kept: Any
    first_row: int


class Piece(Protocol):
    """Rows that can be worked on apart from all others, in another thread or another process.

    Attributes
    ----------
    done : int
        How much of the reader's `total` is done once this piece and all before it are.
    """

    @property
    def done(self) -> int:
        """As above."""

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of the piece; DataError if they are malformed, or not to be seen from here."""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A block that was read already, as a piece."""

    block: Block
    done: int

    def blocks(self) -> Iterator[Block]:
        """Yield the block."""
        yield self.block


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """What stopped the reading, as the last piece: so that an error in the rows before it is met first."""

    error: KerntestError
    done: int = 0

    def blocks(self) -> Iterator[Block]:
        """Raise the error."""
        raise self.error


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """All rows in order, to be gone through once.

    Parameters
    ----------
    items : iterator of Piece
    count : int
        How many there are, or about how many.
    """

    items: Iterator[Piece]
    count: int


def loaded(blocks: Iterator[Block], done: Callable[[Block], int]) -> Iterator[Piece]:
    """Yield blocks as pieces while they are read.

    Parameters
    ----------
    blocks : iterator of Block
    done : callable
        Gives `Piece.done`, of the block that has just been read.
    """
    while True:
        try:
            block = next(blocks, None)
        except KerntestError as error:
            yield Failed(error)
            return
        if block is None:
            return
        yield Loaded(block, done(block))


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
    """

    name: str
    format: str
    names: tuple[str, ...]
    warnings: tuple[str, ...]
    total: int

    @abstractmethod
    def pieces(self, kinds: Mapping[str, Kind], keep: Sequence[str] = (), at_once: int = 1) -> Pieces:
        """Return all rows, in pieces whose blocks are the same whatever the pieces are.

        Parameters
        ----------
        kinds : mapping of str to {"number", "boolean", "text", "date"}
            The columns to type, and what each is to become. Values that cannot become so leave a column of text.
        keep : sequence of str
            The columns to hand through.
        at_once : int
            How many pieces will be worked on side by side. Where there are several, what can be read by those who
            work on it is left to them.

        Raises
        ------
        DataError
            If the files do not fit together. Malformed rows raise it when their piece is read.

        Notes
        -----
        Cost: O(size) time; memory for a few blocks.
        """

    @abstractmethod
    def located(self, block: Block) -> BlockTable:
        """Return the table of a block with the lines on which its rows stand; slow, for messages."""


@contextmanager
def open_blocks(
    path: str | Path, *, decimal: Decimal = "auto", block_bytes: int | None = None
) -> Iterator[BlockReader]:
    """Open a file, those of a glob, a folder of Parquet, or stdin (``"-"``) for reading block by block.

    Parameters
    ----------
    path : str or Path
    decimal : {"auto", ".", ","}
        As in `read_table`. Numbers with a decimal comma are understood by looking at the whole column, so that such
        columns are read into memory.
    block_bytes : int, optional
        Bytes of CSV, or rows of Parquet, in a block.

    Raises
    ------
    DataError
        If a file is missing, unreadable, or neither CSV nor Parquet; or the files do not fit together.
    """
    check_decimal(decimal)
    with ExitStack() as stack:
        if str(path) == "-":
            copy = stack.enter_context(spooled(sys.stdin.buffer))
            shown, found = STDIN, Found(((STDIN, copy),))
        elif str(path):
            shown, found = str(path), find_files(path, str(path))
        else:
            raise DataError(
                "the name of the file is empty", code="data.missing_file", hint="name a file, or - for stdin"
            )
        files, warnings = found.files, found.warnings
        if is_parquet(*files[0]):
            from kerntest.data.parquet_blocks import ParquetBlocks  # noqa: PLC0415 - 90 ms that a CSV does not need

            plain = [(name, stack.enter_context(unpacked_file(name, location)), location) for name, location in files]
            copied = str(path) == "-"
            yield ParquetBlocks(
                shown, [(name, one, copied or one != given) for name, one, given in plain], warnings, block_bytes
            )
        else:
            from kerntest.data.csv_blocks import CsvBlocks  # noqa: PLC0415 - the same the other way round

            yield CsvBlocks(shown, files, warnings, decimal, block_bytes)


@contextmanager
def spooled(stream: SupportsRead[bytes]) -> Iterator[Path]:
    """Copy a stream into a temporary file, which can be read more than once."""
    with tempfile.TemporaryDirectory(prefix="kerntest-") as folder:
        copy = Path(folder) / "input"
        with copy.open("wb") as file:
            copyfileobj(stream, file, 1 << 20)
        yield copy


@contextmanager
def unpacked_file(name: str, location: Path) -> Iterator[Path]:
    """Give a file without its compression: itself, or a temporary copy."""
    with open_file(location, name) as file:
        method = compression_of(file.read(4))
        if method is None:
            yield location
            return
        file.seek(0)
        with spooled(unpacking(file, name, method)) as copy:
            yield copy


def is_parquet(name: str, location: Path) -> bool:
    """Say whether a file begins like Parquet, compressed or not."""
    with open_file(location, name) as file:
        head = file.read(4)
        method = compression_of(head)
        if method is None:
            return head == PARQUET_MAGIC
        file.seek(0)
        try:
            return bool(unpacking(file, name, method).read(4) == PARQUET_MAGIC)
        except DataError:
            # Damaged: whoever reads it says so.
            return False
