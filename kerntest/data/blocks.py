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
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from kerntest.data.compression import MAGIC_BYTES, compression_of, head_of, unpacking
from kerntest.data.csv_options import CsvOptions, CsvWords
from kerntest.data.paths import Found, find_files, open_file
from kerntest.data.source import HEAD_BYTES, Format, format_of_head, open_source
from kerntest.data.table import Table
from kerntest.errors import DataError, KerntestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Unpack

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
def open_blocks(path: str | Path, *, block_bytes: int | None = None, **csv: Unpack[CsvWords]) -> Iterator[BlockReader]:
    """Open a file, those of a glob, a folder of Parquet, or stdin (``"-"``) for reading block by block.

    Parameters
    ----------
    path : str or Path
    block_bytes : int, optional
        Bytes of CSV, or rows of Parquet, in a block.
    **csv
        As in `read_table`. Numbers with a decimal comma are understood by looking at the whole column, so that such
        columns are read into memory.

    Raises
    ------
    DataError
        If a file is missing, unreadable, or neither CSV nor Parquet; or the files do not fit together.
    """
    options = CsvOptions.of(**csv)
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
        form, whole = begins_as(*files[0]), None
        if form == "json":
            from kerntest.data.json_lines import parquet_of_json  # noqa: PLC0415 - 90 ms that a CSV does not need

            whole = open_source(files[0][1] if str(path) == "-" else path, shown)
            copy = stack.enter_context(parquet_of_json(whole))
            files, form = ((shown, copy),), "parquet"
        if form == "parquet":
            from kerntest.data.parquet_blocks import ParquetBlocks  # noqa: PLC0415 - 90 ms that a CSV does not need

            plain = [(name, stack.enter_context(unpacked_file(name, location)), location) for name, location in files]
            copied = str(path) == "-" or whole is not None
            yield ParquetBlocks(
                shown, [(name, one, copied or one != given) for name, one, given in plain], warnings, block_bytes
            )
        else:
            from kerntest.data.csv_blocks import CsvBlocks  # noqa: PLC0415 - the same the other way round

            if options.transcodes:
                files = tuple(
                    (name, stack.enter_context(_in_utf8(name, location, options))) for name, location in files
                )
            yield CsvBlocks(shown, files, warnings, options, block_bytes)


@contextmanager
def _in_utf8(name: str, location: Path, options: CsvOptions) -> Iterator[Path]:
    """Give a CSV file as UTF-8 without comments: a temporary copy."""
    from kerntest.data.csv_parts import utf8_lines  # noqa: PLC0415 - few files need it

    with tempfile.TemporaryDirectory(prefix="kerntest-") as folder:
        copy = Path(folder) / "input"
        with unpacked_file(name, location) as plain, open_file(plain, name) as file, copy.open("wb") as written:
            written.writelines(utf8_lines(file, name, options))
        yield copy


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
        method = compression_of(file.read(MAGIC_BYTES))
        if method is None:
            yield location
            return
        file.seek(0)
        with spooled(unpacking(file, name, method)) as copy:
            yield copy


def begins_as(name: str, location: Path) -> Format:
    """Tell the format of a file from its beginning, compressed or not; of a damaged one, whoever reads it says so."""
    with open_file(location, name) as file:
        return format_of_head(head_of(file, HEAD_BYTES))
