"""What Arrow reads as tables: Parquet, whole or row group by row group, and JSON lines."""

from __future__ import annotations

import json
import platform
import re
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json
from pyarrow import parquet

from kerntest.data.column_types import as_written, column_of, texts_understood
from kerntest.data.columns import Patterns, match_names, table_of
from kerntest.data.source import PARQUET_MAGIC, Source, half_of_memory, too_large, unreadable
from kerntest.data.table import (
    BlockReader,
    Piece,
    Pieces,
    RowBlock,
    Table,
    loaded,
    refuse_duplicates,
    refuse_empty,
    told_apart,
)
from kerntest.dataclass import dataclass
from kerntest.engines.engine import refuse_to_read
from kerntest.errors import DataError, bad_file, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Kind

# What is read ahead of all columns of a file together, and of one of them.
AHEAD_BYTES, MOST_AHEAD = 1 << 25, 1 << 20


# Whole tables.


def read_parquet(source: Source, categorical: Patterns = None, *, dayfirst: bool | None = None) -> Table:
    """Parse Parquet bytes; several parts (of a folder) are laid one below the other."""
    tables = [_parsed(name, content) for name, content in source.parts]
    for (name, _), table in zip(source.parts, tables, strict=True):
        refuse_other_schema((source.parts[0][0], tables[0].schema), (name, table.schema))
    arrow = pa.concat_tables(tables)
    labels, left_out = _row_labels(arrow.column_names, source.name)
    columns = [one for one in zip(arrow.column_names, arrow.columns, strict=True) if one[0] not in labels]
    table = table_of(source.name, "parquet", arrow.num_rows, columns, categorical)
    table = source.described(table, left_out, [len(part) for part in tables])
    return texts_understood(
        table, [*match_names(categorical, table.names, table.name), *_categories(arrow.schema)], dayfirst
    )


def _categories(schema: Any) -> list[str]:
    """Return the columns of categories, which are no texts to be read."""
    return [name for name, kind in zip(schema.names, schema.types, strict=True) if pa.types.is_dictionary(kind)]


def _row_labels(names: Sequence[str], table_name: str) -> tuple[list[str], tuple[str, ...]]:
    """Return the columns of row labels that pandas writes, and a warning for each."""
    labels = [name for name in names if re.fullmatch(r"__index_level_\d+__", name)]
    return labels, tuple(f"{name!r} of {table_name} holds the row labels of pandas and is left out" for name in labels)


def _parsed(name: str, content: bytes) -> Any:
    """Return the Arrow table of one file's bytes; whatever Arrow objects to is a DataError."""
    with _decoding(name):
        if len(content) < 3 * len(PARQUET_MAGIC) or not content.endswith(PARQUET_MAGIC):
            raise EOFError
        file = parquet.ParquetFile(pa.BufferReader(content))
        metadata, limit = file.metadata, half_of_memory()
        # Run lengths make billions of equal values very small, and every column becomes an array of eight bytes a row.
        unpacked = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
        arrays = 8 * metadata.num_rows * metadata.num_columns
        if max(unpacked, arrays) > limit:
            raise too_large(name, limit)
        refuse_to_read(unpacked + arrays, name)
        table = file.read()
        # Damage can hide in text: check it here, and decode the names, before anybody stumbles over them.
        table.validate(full=True)
        str(table.schema)
    return table


@contextmanager
def _decoding(name: str) -> Iterator[None]:
    """Turn whatever Arrow objects to in a file into our errors."""
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable(name, error) from error
        said, hint = one_line(str(error).partition("\n")[0]), "copy or write it again, with the usual options"
        if isinstance(error, EOFError) or re.search("footer|end of", said):
            said = "it is truncated or damaged"
        raise bad_file(name, f"is malformed Parquet: {said}", hint=hint, code="data.malformed_parquet") from error


def refuse_other_schema(first: tuple[str, Any], other: tuple[str, Any], names: Sequence[str] | None = None) -> None:
    """Refuse a further file, by its name and schema, in which columns, by default all, are not those of the first."""
    # A damaged file may have a name twice, which a schema finds no field for.
    known, found = (dict(zip(one.names, one.types, strict=True)) for one in (first[1], other[1]))
    wanted = list(known if names is None else names)
    difference = told_apart(wanted, list(found) if names is None else [name for name in wanted if name in found])
    changed = next((name for name in wanted if not difference and found[name] != known[name]), None)
    if changed is not None:
        difference = f"column {changed!r} is {found[changed]}, not {known[changed]}"
    if difference:
        said = f"has other columns or types than {first[0]}: {difference}"
        hint, column = (
            "Parquet files that are read together need one schema",
            {} if changed is None else {"column": changed},
        )
        raise bad_file(other[0], said, hint=hint, code="data.schemas_differ", **column)


# Row group by row group.


@dataclass(frozen=True)
class _SeenFile:
    """One file, as it was when the work began."""

    shown: str
    location: str
    n_rows: int
    node: str
    copied: bool

    def opened(self, columns: int) -> parquet.ParquetFile:
        """Open the file to read so many columns."""
        with _decoding(self.shown):
            try:
                state = Path(self.location).stat()
            except FileNotFoundError:
                raise self._gone() from None
            metadata = _footer(self.location, state.st_size, state.st_mtime_ns)
            ahead = min(MOST_AHEAD, AHEAD_BYTES // columns)
            file = parquet.ParquetFile(self.location, metadata=metadata, pre_buffer=False, buffer_size=ahead)
        if metadata.num_rows != self.n_rows:
            said = f"had {self.n_rows:,} rows when the work began, and has {metadata.num_rows:,} now"
            hint = "run it again when nobody writes to the file"
            raise bad_file(self.shown, said, hint=hint, code="data.changed")
        return file

    def _gone(self) -> DataError:
        """Return the error for a file that was there when the work began."""
        said, code = f"was there when the work began, and is gone from {self.location}", "data.missing_file"
        hint = "leave the data where they are until the work ends; all workers must see them under this path"
        if (here := platform.node()) != self.node:
            said = f"is at {self.location} on {self.node}, and the worker on {here} does not see it"
            hint, code = "put the data on storage that all workers see under the same path", "data.unseen_by_worker"
        return bad_file(self.shown, said, hint=hint, code=code)


@lru_cache(maxsize=8)
def _footer(location: str, size: int, changed: int) -> Any:
    """Return what a file says of its row groups, of which there may be many: read once in a process."""
    del size, changed
    return parquet.read_metadata(location)


@dataclass(frozen=True)
class _Stretch:
    """The blocks of row groups one after another that begin at their rows from `start` on, before `stop`.

    Before the row groups come `offset` rows of the file, and `first_row` of all files.
    """

    file: _SeenFile
    groups: range
    offset: int
    first_row: int
    start: int
    stop: int


@dataclass(frozen=True)
class _Layout:
    """What blocks are made of rows."""

    name: str
    typed: tuple[str, ...]
    kept: tuple[str, ...]
    size: int
    several: bool
    categorical: frozenset[str]
    written: Mapping[str, str]

    def blocks(self, stretches: Sequence[_Stretch]) -> Iterator[RowBlock]:
        """Yield the rows of stretches; a file stays open while rows of it are read."""
        columns = list(dict.fromkeys((*self.typed, *self.kept)))
        for seen, some in groupby(stretches, lambda stretch: stretch.file):
            with seen.opened(len(columns)) as file:
                for stretch in some:
                    batches = file.iter_batches(self.size, row_groups=list(stretch.groups), columns=columns)
                    yield from self._of_stretch(batches, stretch)

    def _of_stretch(self, batches: Iterator[Any], stretch: _Stretch) -> Iterator[RowBlock]:
        at, shown = 0, stretch.file.shown
        while at < stretch.stop:
            with _decoding(shown):
                batch = next(batches, None)
                if batch is None:
                    return
                if at >= stretch.start:
                    # Damage can hide in text.
                    batch.validate(full=True)
            if batch.num_rows and at >= stretch.start:
                table = pa.table(batch)
                columns = tuple(
                    column_of(name, table[name], self.name, as_category=name in self.categorical) for name in self.typed
                )
                typed = Table(self.name, columns, len(table), "parquet", offset=stretch.offset + at)
                typed = as_written(replace(typed, part=shown if self.several else ""), self.written)
                yield RowBlock(typed, table.select(list(self.kept)), stretch.first_row + at)
            at += batch.num_rows


BLOCK_ROWS = 1 << 16
# Rows that tell the types of columns.
HEAD_ROWS = 1000
# A piece of work has so many blocks at most, fewer where there would be less than so many pieces for each worker.
PIECE_BLOCKS, PIECES_EACH = 4, 4
# Who works on a part of a large row group decodes what stands before it, too: no group is cut into more parts.
GROUP_PARTS = 16


class ParquetBlocks(BlockReader):
    """The rows of Parquet files; columns are found by name in each, and have the types of its schema."""

    format = "parquet"

    def __init__(
        self,
        name: str,
        files: Sequence[tuple[str, Path, bool]],
        warnings: tuple[str, ...],
        block_rows: int | None,
        *,
        dayfirst: bool | None = None,
    ) -> None:
        self.name, self.warnings, self.dayfirst = name, warnings, dayfirst
        self.rows = block_rows or BLOCK_ROWS
        self._schemas: list[tuple[str, Any]] = []
        self._stretches: list[_Stretch] = []
        self.total, self.largest_group = 0, 0
        for shown, location, copied in files:
            self._add(shown, location, copied=copied)
        names = [str(one) for one in self._schemas[0][1].names]
        refuse_duplicates(names, name)
        labels, self.left_out = _row_labels(names, name)
        self.names = tuple(one for one in names if one not in labels)
        refuse_empty(name, self.total, 1)

    def _add(self, shown: str, location: Path, *, copied: bool) -> None:
        """Take note of a file and of its row groups, small ones together."""
        with _decoding(shown):
            with parquet.ParquetFile(location, pre_buffer=False) as opened:
                metadata, schema = opened.metadata, opened.schema_arrow
            # Damage can hide in names.
            str(schema)
            groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
            sizes = [group.num_rows for group in groups]
            self.largest_group = max([self.largest_group, *(group.total_byte_size for group in groups)])
        self._schemas.append((shown, schema))
        file = _SeenFile(shown, str(Path(location).absolute()), metadata.num_rows, platform.node(), copied)
        offset = first = rows = 0
        for place, size in enumerate([*sizes, self.rows + 1]):
            if rows and rows + size > self.rows:
                self._stretches.append(_Stretch(file, range(first, place), offset, self.total + offset, 0, rows))
                offset, first, rows = offset + rows, place, 0
            rows += size
        self.total += metadata.num_rows

    def head(self, categorical: Sequence[str]) -> Table:
        """Return the first rows of all columns, of which some are text from now on, in the types that Parquet has."""
        self.categorical, rows, self.rows = frozenset(categorical), self.rows, HEAD_ROWS
        pieces = self.pieces(dict.fromkeys(self.names, "text"))
        self.rows = rows
        head = next(iter(next(iter(pieces.items)).blocks())).table
        head = texts_understood(head, [*categorical, *_categories(self._schemas[0][1])], self.dayfirst)
        return replace(head, notes=(*self.warnings, *self.left_out))

    def pieces(self, kinds: Mapping[str, Kind], keep: Sequence[str] = (), at_once: int = 1) -> Pieces:
        """Return all rows; the types are those of the files, whatever is asked for."""
        layout = _Layout(
            self.name, tuple(kinds), tuple(keep), self.rows, len(self._schemas) > 1, self.categorical, self.written
        )
        for other in self._schemas[1:]:
            refuse_other_schema(self._schemas[0], other, [*kinds, *keep])
        n_blocks = sum(map(self._n_blocks, self._stretches))
        together = max(1, min(PIECE_BLOCKS, n_blocks // (PIECES_EACH * at_once)))
        jobs = [(True, self._stretches)] if at_once == 1 else self._jobs(together)
        count = sum(sum(map(self._n_blocks, job)) if stays else 1 for stays, job in jobs)
        return Pieces(self._apart(layout, jobs), count)

    def _n_blocks(self, stretch: _Stretch) -> int:
        return -(-(stretch.stop - stretch.start) // self.rows)

    def _jobs(self, together: int) -> list[tuple[bool, list[_Stretch]]]:
        """Return what is read as one piece: whether by this process alone, and stretches of about so many blocks."""
        jobs: list[tuple[bool, list[_Stretch]]] = []
        room = 0
        for whole in self._stretches:
            n_blocks = self._n_blocks(whole)
            stays = whole.file.copied or n_blocks > GROUP_PARTS * PIECE_BLOCKS
            step = whole.stop if stays else self.rows * max(together, -(-n_blocks // GROUP_PARTS))
            for start in range(0, whole.stop, step):
                stop = min(start + step, whole.stop)
                if stays or stop - start > room:
                    jobs.append((stays, []))
                    room = 0 if stays else self.rows * together
                jobs[-1][1].append(replace(whole, start=start, stop=stop))
                room -= stop - start
        return jobs

    def _apart(self, layout: _Layout, jobs: Sequence[tuple[bool, Sequence[_Stretch]]]) -> Iterator[Piece]:
        for stays, job in jobs:
            if stays:
                yield from loaded((block, block.first_row + block.table.n_rows) for block in layout.blocks(job))
            else:
                yield Piece(partial(layout.blocks, job), job[-1].first_row + job[-1].stop)


# JSON lines.

_LARGEST_BLOCK = (1 << 31) - 1
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OFFSET = r":\d\d(?:Z|[+-]\d\d(?::?\d\d)?)"
_HAS_OFFSET = re.compile(_OFFSET.encode() + b'"').search
# How Arrow tells what it objects to: rows are counted from 0, and blank lines are none.
_IN_ROW = re.compile(r"JSON parse error: (?:Column\(/(.*?)\) )?(.*?)\.? in row (\d+)")


def read_json_lines(source: Source, categorical: Patterns = None, *, dayfirst: bool | None = None) -> Table:
    """Parse JSON lines; several files are laid one below the other, and a name that a line lacks is missing there."""
    arrow, lines, n_rows = _joined(source)
    columns = list(zip(arrow.column_names, arrow.columns, strict=True))
    table = source.described(table_of(source.name, "json", len(arrow), columns, categorical), (), n_rows)
    table = replace(table, lines=lines, file_of=None if lines is None else table.file_of, na=())
    return texts_understood(table, match_names(categorical, table.names, source.name), dayfirst)


@contextmanager
def parquet_of_json(source: Source) -> Iterator[Path]:
    """Give JSON lines as a temporary Parquet file, which can be read in pieces."""
    with tempfile.TemporaryDirectory(prefix="kerntest-") as folder:
        copy = Path(folder) / "input.parquet"
        parquet.write_table(_joined(source)[0], copy)
        yield copy


def _joined(source: Source) -> tuple[Any, NDArray[np.int64] | None, list[int]]:
    """Return the Arrow table of all files, on which line each row stands, and how many rows each file has."""
    tables = [_parsed_json(name, content) for name, content in source.parts]
    try:
        arrow = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise _malformed(source.name, str(error)) from error
    lines, n_rows = [_present(content) for _, content in source.parts], [len(table) for table in tables]
    numbers = np.array([number for some in lines for number, _ in some], dtype=np.int64)
    return arrow, numbers if n_rows == [*map(len, lines)] else None, n_rows


def _present(content: bytes) -> list[tuple[int, bytes]]:
    """Return the lines that are not blank, with their numbers."""
    return [(number, line) for number, line in enumerate(content.split(b"\n"), start=1) if line.strip()]


def _parsed_json(name: str, content: bytes) -> Any:
    """Return the Arrow table of one file."""
    # A type is told from all values of a column, and a line may be as long as it likes.
    options = arrow_json.ReadOptions(block_size=min(len(content) + 1, _LARGEST_BLOCK), use_threads=False)
    try:
        text = content.removeprefix(_BYTE_ORDER_MARK)
        table = arrow_json.read_json(pa.BufferReader(text), options)
        times = [one.name for one in table.schema if pa.types.is_timestamp(one.type)]
        if not times or not _HAS_OFFSET(content):
            return table
        schema = arrow_json.ParseOptions(explicit_schema=pa.schema(dict.fromkeys(times, pa.string())))
        return _with_offsets(table, arrow_json.read_json(pa.BufferReader(text), options, schema).select(times))
    except pa.ArrowException as error:
        trouble, lines = str(error), _present(content)
        for number, line in lines:
            try:
                held = json.loads(line.removeprefix(_BYTE_ORDER_MARK))
            except ValueError as reason:
                raise _malformed(name, str(reason).replace("line 1 ", ""), line=number) from error
            if not isinstance(held, dict):
                raise _malformed(name, "it holds no object", line=number) from error
        found = _IN_ROW.match(trouble)
        if found is None or int(found[3]) >= len(lines):
            raise _malformed(name, trouble) from error
        subject = f"column {found[1]!r} " if found[1] else ""
        raise _malformed(name, f"{subject}{found[2].rstrip('.')}", line=lines[int(found[3])][0]) from error


def _with_offsets(table: Any, texts: Any) -> Any:
    """Return the table with times that all have a UTC offset as such, and as text those of which some have one.

    Arrow moves times to UTC, and does not tell which.
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - 35 ms that most files do not need

    for name in texts.column_names:
        found = pc.match_substring_regex(texts[name], _OFFSET + "$")
        if pc.any(found).as_py():
            times = table[name].cast(pa.timestamp("s", "UTC")) if pc.all(found).as_py() else texts[name]
            table = table.set_column(table.column_names.index(name), name, times)
    return table


def _malformed(name: str, reason: str, **line: int) -> DataError:
    """Return the error for text that is not JSON lines."""
    first = reason.splitlines()[0] if reason else "it cannot be read"
    hint = "each line is one object, and each name has values of one type"
    said = f"{'malformed' if line else 'is malformed'} JSON: {first}"
    return bad_file(name, said, hint=hint, code="data.malformed_json", **line)
