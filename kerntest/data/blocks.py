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
from typing import TYPE_CHECKING, Any

from kerntest.data.compression import compression_of, unpacking
from kerntest.data.numerals import Decimal, check_decimal
from kerntest.data.paths import Found, find_files, open_file
from kerntest.data.source import PARQUET_MAGIC
from kerntest.data.table import Table
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

    from kerntest.data.table import Kind

_STDIN = "<stdin>"


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

    @property
    @abstractmethod
    def done(self) -> int:
        """How much of `total` has been read."""

    @abstractmethod
    def blocks(self, kinds: Mapping[str, Kind], keep: Sequence[str] = ()) -> Iterator[Block]:
        """Yield all rows.

        Parameters
        ----------
        kinds : mapping of str to {"number", "boolean", "text", "date"}
            The columns to type, and what each is to become. Values that cannot become so leave a column of text.
        keep : sequence of str
            The columns to hand through.

        Raises
        ------
        DataError
            If the file is malformed.

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
            spooled = stack.enter_context(_spooled(sys.stdin.buffer))
            shown, found = _STDIN, Found(((_STDIN, spooled),))
        elif str(path):
            shown, found = str(path), find_files(path, str(path))
        else:
            raise DataError(
                "the name of the file is empty", code="data.missing_file", hint="name a file, or - for stdin"
            )
        files, warnings = found.files, found.warnings
        if _is_parquet(*files[0]):
            from kerntest.data.parquet_blocks import ParquetBlocks  # noqa: PLC0415 - 90 ms that a CSV does not need

            plain = [(name, stack.enter_context(_unpacked(name, location))) for name, location in files]
            yield stack.enter_context(ParquetBlocks.opened(shown, plain, warnings, block_bytes))
        else:
            from kerntest.data.csv_blocks import CsvBlocks  # noqa: PLC0415 - the same the other way round

            yield CsvBlocks(shown, files, warnings, decimal, block_bytes)


@contextmanager
def _spooled(stream: BinaryIO) -> Iterator[Path]:
    """Copy a stream into a temporary file, which can be read more than once."""
    with tempfile.TemporaryDirectory(prefix="kerntest-") as folder:
        copy = Path(folder) / "input"
        with copy.open("wb") as file:
            copyfileobj(stream, file, 1 << 20)
        yield copy


@contextmanager
def _unpacked(name: str, location: Path) -> Iterator[Path]:
    """Give a file without its compression: itself, or a temporary copy."""
    with open_file(location, name) as file:
        method = compression_of(file.read(4))
        if method is None:
            yield location
            return
        file.seek(0)
        with _spooled(unpacking(file, method)) as copy:
            yield copy


def _is_parquet(name: str, location: Path) -> bool:
    """Say whether a file begins like Parquet, compressed or not."""
    with open_file(location, name) as file:
        head = file.read(4)
        method = compression_of(head)
        if method is None:
            return head == PARQUET_MAGIC
        file.seek(0)
        try:
            return bool(unpacking(file, method).read(4) == PARQUET_MAGIC)
        except (OSError, EOFError):
            # Damaged: whoever reads it says so.
            return False
