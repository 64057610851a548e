"""Parquet as a table, whole or row group by row group."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from kerntest.data.blocks import BlockReader, BlockTable, Pieces, RowBlock, loaded
from kerntest.data.in_memory import column_of, table_of_arrow
from kerntest.data.messages import listed
from kerntest.data.source import PARQUET_MAGIC, Source, half_of_memory, too_large, unreadable
from kerntest.data.table import refuse_duplicates
from kerntest.engines.plan import refuse_to_read
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.blocks import Piece
    from kerntest.data.columns import Patterns
    from kerntest.data.table import Kind, Table

# pandas writes its row labels as columns of this name.
PANDAS_INDEX = re.compile(r"__index_level_\d+__")
# What is read ahead of all columns of a file together, and of one of them.
AHEAD_BYTES, MOST_AHEAD = 1 << 25, 1 << 20


def read_parquet(source: Source, categorical: Patterns = None) -> Table:
    """Parse Parquet bytes; several parts (of a folder) are laid one below the other."""
    tables = [(name, _parse(name, content)) for name, content in source.parts]
    first_name, first = tables[0]
    for name, table in tables[1:]:
        if not table.schema.equals(first.schema):
            raise _other_schema(first_name, name, _difference(first.schema, table.schema))
    arrow = pa.concat_tables([table for _, table in tables])
    labels = [name for name in arrow.column_names if PANDAS_INDEX.fullmatch(name)]
    warnings = tuple(f"{name!r} of {source.name} holds the row labels of pandas and is left out" for name in labels)
    table = table_of_arrow(
        arrow.drop_columns(labels) if labels else arrow,
        name=source.name,
        file_format="parquet",
        sha256=source.sha256,
        warnings=(*source.warnings, *warnings),
        categorical=categorical,
    )
    return replace(
        table,
        files=tuple(name for name, _ in source.parts),
        file_of=_file_of([part.num_rows for _, part in tables]),
        compression=source.compression,
        size=source.size,
    )


def _file_of(n_rows: list[int]) -> NDArray[np.int32] | None:
    """Return which of several files each row comes from; None where there is one."""
    return None if len(n_rows) == 1 else np.repeat(np.arange(len(n_rows), dtype=np.int32), n_rows)


def _parse(name: str, content: bytes) -> Any:
    """Return the Arrow table of one file's bytes; whatever Arrow objects to is a DataError."""
    where = {"file": name}
    if len(content) < 3 * len(PARQUET_MAGIC) or not content.endswith(PARQUET_MAGIC):
        raise DataError(
            f"{name} begins like Parquet but does not end like it: it is truncated",
            hint="copy or write it again",
            code="data.malformed_parquet",
            where=where,
        )
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        _refuse_too_large(name, file.metadata)
        table = file.read()
        # Damage can hide in text: check it here, and decode the names, before anybody stumbles over them.
        table.validate(full=True)
        str(table.schema)
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise malformed_parquet(name, error) from error
    return table


def malformed_parquet(name: str, error: Exception) -> DataError:
    """Return the error for whatever Arrow objects to."""
    foreign = isinstance(error, NotImplementedError)
    return DataError(
        f"{name} is malformed Parquet: it {'needs what is not read here' if foreign else 'is truncated or damaged'}",
        hint="write it again, with the usual options" if foreign else "copy or write it again",
        code="data.malformed_parquet",
        where={"file": name},
    )


def _refuse_too_large(name: str, metadata: Any) -> None:
    """Refuse a file that would fill half of the memory: run lengths make billions of equal values very small."""
    limit = half_of_memory()
    unpacked = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
    # Every column becomes an array of eight bytes a row.
    arrays = 8 * metadata.num_rows * metadata.num_columns
    if limit is not None and max(unpacked, arrays) > limit:
        raise too_large(name, limit)
    refuse_to_read(unpacked + arrays, name)


def refuse_other_schema(first: tuple[str, Any], other: tuple[str, Any]) -> None:
    """Refuse a further file, by its name and schema, whose columns are not those of the first."""
    # Files may differ in what is noted beside the columns.
    if first[1].names != other[1].names or first[1].types != other[1].types:
        raise _other_schema(first[0], other[0], _difference(first[1], other[1]))


def _other_schema(first_name: str, name: str, difference: str) -> DataError:
    return DataError(
        f"{name} has other columns or types than {first_name}",
        hint=f"Parquet files that are read together need one schema; these differ in {difference}",
        code="data.schemas_differ",
        where={"file": name},
    )


def _difference(first: Any, other: Any) -> str:
    """Return the first column in which two schemas differ."""
    for name in (*first.names, *other.names):
        kinds = [schema.field(name).type if name in schema.names else None for schema in (first, other)]
        if kinds[0] != kinds[1]:
            return f"column {name!r}"
    return "the order of the columns"


@dataclass(frozen=True, slots=True)
class SeenFile:
    """One file, as it was when the work began."""

    shown: str
    location: str
    n_rows: int
    node: str
    copied: bool

    def opened(self, columns: int) -> parquet.ParquetFile:
        """Open the file to read so many columns."""
        try:
            state = Path(self.location).stat()
            metadata = _footer(self.location, state.st_size, state.st_mtime_ns)
            file = parquet.ParquetFile(
                self.location, metadata=metadata, pre_buffer=False, buffer_size=min(MOST_AHEAD, AHEAD_BYTES // columns)
            )
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
    """Row groups one after another, from whose first row on blocks are counted."""

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
    """What blocks are made of rows."""

    name: str
    typed: tuple[str, ...]
    kept: tuple[str, ...]
    size: int
    several: bool
    categorical: frozenset[str] = frozenset()

    @property
    def columns(self) -> list[str]:
        """All columns to read."""
        return list(dict.fromkeys((*self.typed, *self.kept)))

    def blocks(self, file: parquet.ParquetFile, stretch: Stretch) -> Iterator[RowBlock]:
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
                yield RowBlock(self._typed(table, span, at), table.select(list(self.kept)), span.first_row + at)
            at += batch.num_rows

    def _typed(self, table: Any, span: Span, at: int) -> BlockTable:
        columns = tuple(
            column_of(name, table[name], self.name, as_category=name in self.categorical) for name in self.typed
        )
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

    def blocks(self) -> Iterator[RowBlock]:
        """Read the rows."""
        for stretch in self.stretches:
            with stretch.span.file.opened(len(self.layout.columns)) as file:
                yield from self.layout.blocks(file, stretch)


BLOCK_ROWS = 1 << 16
# A piece of work has so many blocks at most, fewer where there would be less than so many pieces for each worker.
PIECE_BLOCKS, PIECES_EACH = 4, 4
# Who works on a part of a large row group decodes what stands before it, too: no group is cut into more parts.
GROUP_PARTS = 16


class ParquetBlocks(BlockReader):
    """The rows of Parquet files; columns are found by name in each, and have the types of its schema."""

    format = "parquet"
    # Columns that are to be text whatever they hold.
    categorical: frozenset[str] = frozenset()

    def __init__(
        self, name: str, files: Sequence[tuple[str, Path, bool]], warnings: tuple[str, ...], block_rows: int | None
    ) -> None:
        self.name, self.warnings = name, warnings
        self.rows = block_rows or BLOCK_ROWS
        self._files: list[tuple[SeenFile, Any]] = []
        self._spans: list[Span] = []
        self.total = 0
        for shown, location, copied in files:
            self._add(shown, location, copied=copied)
        names = [str(one) for one in self._files[0][1].names]
        refuse_duplicates(names, name)
        self.names = tuple(one for one in names if not PANDAS_INDEX.fullmatch(one))
        if not self.total:
            raise DataError(
                f"{name} has no rows",
                hint="a table needs at least one column and one row",
                code="data.no_rows",
                where={"file": name},
            )

    def _add(self, shown: str, location: Path, *, copied: bool) -> None:
        """Take note of a file and of its row groups."""
        try:
            with parquet.ParquetFile(location, pre_buffer=False) as opened:
                metadata, schema = opened.metadata, opened.schema_arrow
            # Damage can hide in names.
            str(schema)
            sizes = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
        except (pa.ArrowException, OSError, ValueError) as error:
            raise malformed_parquet(shown, error) from error
        file = SeenFile(shown, str(Path(location).absolute()), metadata.num_rows, platform.node(), copied)
        self._files.append((file, schema))
        offset = first = rows = 0
        for place, size in enumerate([*sizes, self.rows + 1]):
            if rows and rows + size > self.rows:
                self._spans.append(Span(file, range(first, place), rows, offset, self.total + offset))
                offset, first, rows = offset + rows, place, 0
            rows += size
        self.total += metadata.num_rows

    @property
    def schemas(self) -> list[tuple[str, Any]]:
        """The name and the schema of every file."""
        return [(file.shown, schema) for file, schema in self._files]

    def pieces(self, kinds: Mapping[str, Kind], keep: Sequence[str] = (), at_once: int = 1) -> Pieces:
        """Return all rows; the types are those of the files, whatever is asked for."""
        layout = Layout(self.name, tuple(kinds), tuple(keep), self.rows, len(self._files) > 1, self.categorical)
        for file, schema in self._files:
            self._check(file.shown, schema, layout.columns)
        n_blocks = sum(self._blocks_of(span) for span in self._spans)
        if at_once == 1:
            stretches = [Stretch(span, 0, span.n_rows) for span in self._spans]
            return Pieces(self._read_here(layout, stretches), n_blocks)
        together = max(1, min(PIECE_BLOCKS, n_blocks // (PIECES_EACH * at_once)))
        jobs = self._jobs(together)
        count = sum(self._blocks_of(job[0].span) if self._stays(job[0].span) else 1 for job in jobs)
        return Pieces(self._apart(layout, jobs), count)

    def _blocks_of(self, span: Span) -> int:
        return -(-span.n_rows // self.rows)

    def _stays(self, span: Span) -> bool:
        """Whether rows are read by this process and nobody else."""
        return span.file.copied or self._blocks_of(span) > GROUP_PARTS * PIECE_BLOCKS

    def _jobs(self, together: int) -> list[tuple[Stretch, ...]]:
        """Return stretches, those in one piece side by side, of about so many blocks."""
        jobs: list[tuple[Stretch, ...]] = []
        room = 0
        for span in self._spans:
            if self._stays(span):
                jobs.append((Stretch(span, 0, span.n_rows),))
                room = 0
                continue
            step = self.rows * max(together, -(-self._blocks_of(span) // GROUP_PARTS))
            for start in range(0, span.n_rows, step):
                stretch = Stretch(span, start, min(start + step, span.n_rows))
                if stretch.n_rows <= room:
                    jobs[-1] = (*jobs[-1], stretch)
                else:
                    jobs.append((stretch,))
                    room = self.rows * together
                room -= stretch.n_rows
        return jobs

    def _apart(self, layout: Layout, jobs: list[tuple[Stretch, ...]]) -> Iterator[Piece]:
        for job in jobs:
            if self._stays(job[0].span):
                yield from self._read_here(layout, job)
            else:
                yield ParquetPiece(layout, job)

    def _read_here(self, layout: Layout, stretches: Sequence[Stretch]) -> Iterator[Piece]:
        """Yield pieces that are read already."""

        def blocks() -> Iterator[RowBlock]:
            left = iter(stretches)
            stretch = next(left, None)
            while stretch is not None:
                # A file stays open while its rows are read.
                current = stretch.span.file
                with current.opened(len(layout.columns)) as file:
                    while stretch is not None and stretch.span.file is current:
                        yield from layout.blocks(file, stretch)
                        stretch = next(left, None)

        return loaded(blocks(), lambda block: block.first_row + block.table.n_rows)

    @staticmethod
    def located(block: RowBlock) -> BlockTable:
        """Return the table of a block: Parquet has no lines."""
        return block.table

    def _check(self, shown: str, schema: Any, wanted: Sequence[str]) -> None:
        """Refuse a further file that lacks a column, or a column whose type changes on its way through."""
        first, first_schema = self._files[0]
        lacking = [name for name in wanted if name not in schema.names]
        if lacking:
            raise DataError(
                f"{shown} has other columns than {first.shown}: it lacks {listed(lacking, 5)}",
                hint="Parquet files that are read together need the same columns",
                code="data.schemas_differ",
                where={"file": shown},
            )
        for name in wanted:
            kinds = [one.field(name).type for one in (first_schema, schema)]
            if kinds[0] != kinds[1]:
                raise DataError(
                    f"{shown} has other types than {first.shown}: column {name!r} is {kinds[1]}, not {kinds[0]}",
                    hint="Parquet files that are read together need one schema",
                    code="data.schemas_differ",
                    where={"file": shown, "column": name},
                )
