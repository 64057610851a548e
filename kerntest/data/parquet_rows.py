"""Rows of Parquet files that can be read one apart from the other: what is sent to whoever works on them."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from kerntest.data.blocks import Block, BlockTable
from kerntest.data.parquet import malformed_parquet
from kerntest.data.paths import unreadable
from kerntest.data.typed import column_of
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class SeenFile:
    """One file, as it was when the work began.

    Parameters
    ----------
    shown : str
        How messages call it.
    location : str
        Where it is, from the root: workers may stand in another folder.
    n_rows : int
    node : str
        The machine that saw it.
    copied : bool
        Whether it is a copy that only this process should read.
    """

    shown: str
    location: str
    n_rows: int
    node: str
    copied: bool

    def opened(self) -> parquet.ParquetFile:
        """Open the file.

        Raises
        ------
        DataError
            If it is not there, or another file, or malformed.
        """
        try:
            state = Path(self.location).stat()
            metadata = _footer(self.location, state.st_size, state.st_mtime_ns)
            file = parquet.ParquetFile(self.location, metadata=metadata, pre_buffer=False, buffer_size=1 << 20)
        except FileNotFoundError:
            raise self._gone() from None
        except PermissionError as error:
            raise unreadable(self.shown, error) from error
        except (pa.ArrowException, OSError, ValueError) as error:
            raise malformed_parquet(self.shown, error) from error
        if file.metadata.num_rows != self.n_rows:
            raise DataError(
                f"{self.shown} had {self.n_rows:,} rows when the work began, and has {file.metadata.num_rows:,} now",
                hint="run it again when nobody writes to the file",
                code="data.changed",
                where={"file": self.shown},
            )
        return file

    def _gone(self) -> DataError:
        """Return the error for a file that was there when the work began."""
        here = platform.node()
        if here != self.node:
            return DataError(
                f"the worker on {here} does not see {self.shown}, which is at {self.location} on {self.node}",
                hint="put the data on storage that all workers see under the same path",
                code="data.unseen_by_worker",
                where={"file": self.shown},
            )
        return DataError(
            f"{self.shown} was there when the work began, and is gone from {self.location}",
            hint="leave the data where they are until the work ends; all workers must see them under this path",
            code="data.missing_file",
            where={"file": self.shown},
        )


@lru_cache(maxsize=8)
def _footer(location: str, size: int, changed: int) -> Any:
    """Return what a file says of its row groups, of which there may be many: read once in a process."""
    del size, changed
    return parquet.read_metadata(location)


@dataclass(frozen=True, slots=True)
class Span:
    """Row groups one after another, from whose first row on blocks are counted.

    Parameters
    ----------
    file : SeenFile
    groups : range
    n_rows : int
    offset, first_row : int
        Rows of the file, and of all files, before them.
    """

    file: SeenFile
    groups: range
    n_rows: int
    offset: int
    first_row: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """The blocks of a span that begin at the rows from `start` on, before `stop`."""

    span: Span
    start: int
    stop: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    @property
    def end(self) -> int:
        """Rows of all files up to the end of these."""
        return self.span.first_row + self.stop


@dataclass(frozen=True, slots=True)
class Layout:
    """What blocks are made of rows.

    Parameters
    ----------
    name : str
        Of the table.
    typed, kept : tuple of str
        Columns.
    size : int
        Rows of a block.
    several : bool
        Whether there are several files.
    """

    name: str
    typed: tuple[str, ...]
    kept: tuple[str, ...]
    size: int
    several: bool

    @property
    def columns(self) -> list[str]:
        """All columns to read."""
        return list(dict.fromkeys((*self.typed, *self.kept)))

    def blocks(self, file: parquet.ParquetFile, stretch: Stretch) -> Iterator[Block]:
        """Yield the blocks of a stretch of an open file."""
        span, at = stretch.span, 0
        batches = file.iter_batches(batch_size=self.size, row_groups=list(span.groups), columns=self.columns)
        while at < stretch.stop:
            try:
                batch = next(batches, None)
                if batch is None:
                    return
                if at >= stretch.start:
                    # Damage can hide in text.
                    batch.validate(full=True)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise malformed_parquet(span.file.shown, error) from error
            if batch.num_rows and at >= stretch.start:
                table = pa.table(batch)
                yield Block(self._typed(table, span, at), table.select(list(self.kept)), span.first_row + at)
            at += batch.num_rows

    def _typed(self, table: Any, span: Span, at: int) -> BlockTable:
        columns = tuple(column_of(name, table[name], self.name) for name in self.typed)
        part = span.file.shown if self.several else ""
        return BlockTable(self.name, columns, table.num_rows, "parquet", offset=span.offset + at, part=part)


@dataclass(frozen=True, slots=True, eq=False)
class ParquetPiece:
    """Rows that whoever works on them reads from the files."""

    layout: Layout
    stretches: tuple[Stretch, ...]

    @property
    def done(self) -> int:
        """Rows of all files up to the end of these."""
        return self.stretches[-1].end

    def blocks(self) -> Iterator[Block]:
        """Read the rows."""
        for stretch in self.stretches:
            with stretch.span.file.opened() as file:
                yield from self.layout.blocks(file, stretch)
