"""Inputs of any size: what their first rows show, and all of their rows in pieces."""

from __future__ import annotations

import hashlib
import io
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from kerntest.data.blocks import BlockTable, Loaded, Pieces, RowBlock
from kerntest.data.columns import match_names
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.kinds import with_words
from kerntest.data.read import begins_as, located_files, open_blocks, read_table, unpacked_file
from kerntest.data.rows import apply_missing
from kerntest.data.source import MAGIC_BYTES, Source, compression_of, open_file
from kerntest.data.table import Kind, Table, refuse_empty

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kerntest.data.columns import Patterns
    from kerntest.data.source import Found

# A CSV file up to this size is read at once, like every table of the exact test.
SMALL_BYTES = 1 << 24
# Blocks of a larger one. A block must hold its longest row.
CSV_BLOCK_BYTES = 1 << 22
# Rows from which the types of columns are told, of a schema or of the first block of CSV.
HEAD_ROWS = 1000
# Rows that are typed and worked on together: fewer of many columns, so that their values take no more than 16 MB.
BATCH_ROWS, BATCH_VALUES = 1 << 16, 1 << 21


class Input:
    """One input: files that are read in pieces, or a table in memory.

    Parameters
    ----------
    head : Table
        The first rows, all columns, or all rows.
    reader : CsvBlocks or ParquetBlocks, optional
        Of files; else all rows are in the head.
    found : Found, optional
        The files as stored.
    """

    def __init__(self, head: Table, reader: Any = None, found: Found | None = None) -> None:
        self.head, self.reader, self.warnings = head, reader, head.warnings
        self.stored = () if found is None else found.files
        if found is not None:
            self.head = replace(
                head, files=tuple(name for name, _ in found.files), compression=_compression(found.files)
            )
        self._used = self.head

    @property
    def settled(self) -> bool:
        """Whether the types of the head are those of all rows."""
        return self.reader is None or self.head.format != "csv"

    def settle(self, matched: Table, missing: Literal["error", "drop"]) -> None:
        """Take the columns that are used, and the forms in which they are written, which another input may have told."""
        self._used, self.warnings = matched, matched.warnings
        if self.reader is not None:
            self.reader.written = {column.name: column.written for column in matched.columns if column.written}
        elif missing == "error":
            # All rows are here, so that missing values are refused at once.
            apply_missing(matched, missing)

    def pieces(self, kinds: Mapping[str, Kind], at_once: int) -> Pieces:
        """Return some columns of all rows, in pieces of which so many are worked on side by side."""
        height = min(BATCH_ROWS, max(1, BATCH_VALUES // len(kinds)))
        if self.reader is None:
            table = self._used.select(list(kinds))
            return Pieces(_slices(table, height), -(-table.n_rows // height))
        if self.settled:
            self.reader.rows = height
            pieces: Pieces = self.reader.pieces(kinds, at_once=at_once)
            return pieces
        # Truth values are texts until all of them have been seen.
        asked: dict[str, Kind] = {name: "text" if kind == "boolean" else kind for name, kind in kinds.items()}
        pieces = self.reader.pieces(asked)
        # Bytes that are compressed make more blocks.
        return Pieces(pieces.items, max(2, pieces.count))

    def digest(self) -> str | None:
        """Return the digest of the files as stored, as `read_table` does; None for data in memory."""
        if not self.stored:
            return self.head.sha256
        digests = []
        for shown, location in self.stored:
            found = hashlib.sha256()
            with open_file(location, shown) as file:
                while chunk := file.read(1 << 20):
                    found.update(chunk)
            digests.append(found.hexdigest())
        if len(digests) == 1:
            return digests[0]
        return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode("ascii")).hexdigest()


def _slices(table: Table, height: int) -> Iterator[Loaded]:
    for start in range(0, table.n_rows, height):
        part = table.take(np.arange(start, min(start + height, table.n_rows)))
        if part.lines is None:
            part = BlockTable(part.name, part.columns, part.n_rows, part.format, offset=start)
        yield Loaded(RowBlock(cast("BlockTable", part), None, start), start + part.n_rows)


def _compression(files: Sequence[tuple[str, Path]]) -> str | None:
    """Return how files are compressed, as `read_table` says it."""
    methods = set()
    for shown, location in files:
        with open_file(location, shown) as file:
            methods.add(compression_of(file.read(MAGIC_BYTES)) or "")
    return ", ".join(sorted(methods - {""})) or None


@contextmanager
def open_input(data: Any, name: str | None, categorical: Patterns, csv: CsvOptions) -> Iterator[Input]:
    """Open files that are read in pieces, or data in memory, which messages call by `name`; errors as in `read_table`."""
    if isinstance(data, Input):
        # Opened before, by who wanted to see its columns.
        yield data
        return
    whole = partial(read_table, categorical=categorical, **csv.words())
    if not isinstance(data, (str, Path)):
        yield Input(whole(data, name=name))
        return
    with ExitStack() as stack:
        shown, found = located_files(data, stack)
        form = begins_as(*found.files[0])
        path = str(found.files[0][1]) if str(data) == "-" else data
        if form == "parquet":
            yield _parquet_input(shown, found, categorical, stack)
        elif form == "json" or _size(found) <= SMALL_BYTES // (8 if _compression(found.files) else 1):
            yield Input(whole(path, name=shown))
        else:
            blocks = open_blocks(path, **csv.words(), block_bytes=CSV_BLOCK_BYTES)
            yield _csv_input(stack.enter_context(blocks), shown, found, categorical, csv)


def _size(found: Found) -> int:
    try:
        return sum(location.stat().st_size for _, location in found.files)
    except OSError:
        # Whoever reads them says what is wrong.
        return 0


def _parquet_input(shown: str, found: Found, categorical: Patterns, stack: ExitStack) -> Input:
    from kerntest.data.formats.parquet import (  # noqa: PLC0415 - 70 ms that an array does not need
        PANDAS_INDEX,
        ParquetBlocks,
        refuse_other_schema,
    )

    plain = [(name, stack.enter_context(unpacked_file(name, location)), location) for name, location in found.files]
    # A copy is read by this process alone.
    copied = shown != str(found.files[0][1]) and len(plain) == 1
    reader = ParquetBlocks(
        shown, [(name, one, copied or one != location) for name, one, location in plain], found.warnings, None
    )
    first, *others = reader.schemas
    for other in others:
        refuse_other_schema(first, other)
    refuse_empty(shown, reader.total, len(reader.names))
    reader.categorical = frozenset(match_names(categorical, reader.names, shown))
    labels = [one for one in first[1].names if PANDAS_INDEX.fullmatch(one)]
    left_out = (f"{one!r} of {shown} holds the row labels of pandas and is left out" for one in labels)
    reader.rows = HEAD_ROWS
    head = _first_block(reader).table
    return Input(replace(head, notes=(*found.warnings, *left_out)), reader, found)


def _csv_input(reader: Any, shown: str, found: Found, categorical: Patterns, options: CsvOptions) -> Input:
    reader.name = shown
    # Names that are not there are refused before any row is read.
    match_names(categorical, reader.names, shown)
    block = _first_block(reader, reader.names)
    head = _typed_again(block, categorical, options)
    columns = tuple(
        replace(column, remarks=(*reader.remarks.get(column.name, ()), *column.remarks)) for column in head.columns
    )
    notes = tuple(dict.fromkeys((*reader.warnings, *head.notes)))
    return Input(replace(head, columns=columns, delimiter=block.table.delimiter, notes=notes), reader, found)


def _first_block(reader: Any, keep: Sequence[str] = ()) -> RowBlock:
    """Return the first rows of all columns, as texts where the file does not say more."""
    pieces = reader.pieces(dict.fromkeys(reader.names, "text"), keep)
    block: RowBlock = next(iter(next(iter(pieces.items)).blocks()))
    return block


def _typed_again(block: RowBlock, categorical: Patterns, options: CsvOptions) -> Table:
    """Return columns of text typed the way a whole file is: as CSV in which all values are quoted."""
    import pyarrow as pa  # noqa: PLC0415 - 70 ms that an array does not need
    from pyarrow import csv  # noqa: PLC0415 - the same

    from kerntest.data.formats.csv import read_delimited  # noqa: PLC0415 - the same
    from kerntest.data.in_memory import column_of  # noqa: PLC0415 - the same
    from kerntest.data.kinds import without_blanks  # noqa: PLC0415 - the same

    table = block.table.take(np.arange(min(block.table.n_rows, 50 * HEAD_ROWS)))
    texts = {
        column.name: pa.array(np.array([*column.levels, None], dtype=object)[column.values], pa.string())
        for column in table.columns
    }
    stream = io.BytesIO()
    csv.write_csv(pa.table(texts), stream, csv.WriteOptions(delimiter=table.delimiter, quoting_style="all_valid"))
    source = Source(table.name, "csv", ((table.name, stream.getvalue()),), sha256="", size=0)
    again = CsvOptions(options.decimal, options.na, delimiter=table.delimiter)
    head = read_delimited(source, categorical, again)
    if head.n_rows < table.n_rows:
        # Rows of one empty value are blank lines.
        return head
    kept = block.kept.slice(0, table.n_rows)
    return with_words(head, lambda names: [without_blanks(column_of(name, kept[name], table.name)) for name in names])
