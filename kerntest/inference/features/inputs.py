"""Inputs of any size: files that are read in pieces, as often as one goes through them, or tables in memory."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data import columns as table_columns
from kerntest.data import source as sources
from kerntest.data.column_types import as_text
from kerntest.data.gaps import apply_missing
from kerntest.data.read import begins_as, blocks_of, located_files, read_table
from kerntest.data.row_choice import EVERY_ROW
from kerntest.data.table import Piece, Pieces, RowBlock, Table, refuse_empty
from kerntest.errors import DataError, option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kerntest.data.facts import TableFacts
    from kerntest.data.missing import MissingPolicy
    from kerntest.data.row_choice import RowChoice
    from kerntest.data.table import Kind
    from kerntest.inference.sides import Reading

# A CSV file up to this size is read at once, like every table of the exact test.
SMALL_BYTES = 1 << 24
# Blocks of a larger one, of which the first tells the types of columns. A block must hold its longest row.
CSV_BLOCK_BYTES = 1 << 22
# Rows that are typed and worked on together: fewer of many columns, so that their values take no more than 16 MB.
BATCH_ROWS, BATCH_VALUES = 1 << 16, 1 << 21


class Input:
    """One input: a reader of files in pieces with the first rows of all columns as its head; or a table in memory."""

    def __init__(
        self, head: Table, reader: Any = None, found: sources.Found | None = None, choice: RowChoice = EVERY_ROW
    ) -> None:
        self.head, self.reader, self.warnings, self.choice = head, reader, head.warnings, choice
        self.stored = () if found is None else found.files
        # Whether the types of the head are those of all rows; which columns are text after all, and where that is seen.
        self.settled = reader is None or head.format != "csv"
        self.texts: dict[str, str] = {}
        self._used = self.head

    def count(self) -> int:
        """Return the number of rows, counted if need be."""
        if self.reader is None:
            return self.head.n_rows
        if self.settled and not self.choice:
            return int(self.reader.total)
        pieces = self.choice.pieces(self.reader, {self.head.names[0]: "text"}).items
        return sum(block.table.n_rows for piece in pieces for block in piece.blocks())

    def turned(self, found: TableFacts) -> bool:
        """Take columns that are text in some rows for text from the beginning; say whether there are any."""
        for name, other in found.others.items():
            present = found.rows - found.missing[name]
            other.refuse_stray(present - found.strange[name], present)
            # Of texts in typed files the first rows told how they are written.
            if name in self.texts or (self.settled and not self.head[name].written):
                raise DataError(
                    f"column {name!r} of {found.name} is {other.column.kind} in some of its rows only",
                    hint=f"{option('categorical', [name])} takes it as text; {option('exclude', [name])} leaves it out",
                    code="data.types_differ",
                    where={"file": found.name, "column": name},
                )
            self.texts[name] = other.place
        columns = (as_text(column) if column.name in found.others else column for column in self.head.columns)
        self.head = replace(self.head, columns=tuple(columns))
        return bool(found.others)

    def settle(self, matched: Table, missing: MissingPolicy) -> None:
        """Take the columns that are used, and the forms in which they are written, which another input may have told."""
        self._used, self.warnings = matched, matched.warnings
        if self.reader is not None:
            self.reader.written = {column.name: column.written for column in matched.columns if column.written}
            self.reader.categorical |= {column.name for column in matched.columns if column.kind == "text"}
        elif missing == "error":
            # All rows are here, so that missing values are refused at once.
            apply_missing(matched, missing)

    def pieces(self, kinds: Mapping[str, Kind], at_once: int) -> Pieces:
        """Return some columns of all rows, in pieces of which so many are worked on side by side."""
        height = min(BATCH_ROWS, max(1, BATCH_VALUES // len(kinds)))
        if self.reader is None:
            table = self._used.select(list(kinds))
            return Pieces(_slices(table, height), -(-table.n_rows // height))
        self.choice = self.choice.settled(self.reader, at_once)
        if self.settled:
            self.reader.rows = height
            return self.choice.pieces(self.reader, kinds, at_once=at_once)
        # Truth values are texts until all of them have been seen.
        known: dict[str, Kind] = {name: "text" if kind == "boolean" else kind for name, kind in kinds.items()}
        pieces = self.choice.pieces(self.reader, known)
        # Bytes that are compressed make more blocks.
        return Pieces(pieces.items, max(2, pieces.count))

    def digest(self) -> str | None:
        """Return the digest of the files as stored, as `read_table` does; None for data in memory."""
        return sources.digest_of(_stored_bytes(*file) for file in self.stored) if self.stored else self.head.sha256


def _slices(table: Table, height: int) -> Iterator[Piece]:
    for start in range(0, table.n_rows, height):
        part = table.take(np.arange(start, min(start + height, table.n_rows)))
        if part.lines is None:
            part = Table(part.name, part.columns, part.n_rows, part.format, offset=start)
        yield Piece(RowBlock(part, None, start), start + part.n_rows)


def _stored_bytes(name: str, location: Path) -> Iterator[bytes]:
    with sources.open_file(location, name) as file:
        yield from sources.chunks_of(file)


@contextmanager
def open_input(data: Any, name: str, reading: Reading) -> Iterator[Input]:
    """Open files that are read in pieces, or data in memory, which messages call by `name`; errors as in `read_table`."""
    csv, whole = reading.csv, partial(read_table, categorical=reading.categorical, **reading.csv.words())
    if isinstance(data, Input):
        # Opened before, by who wanted to see its columns.
        yield data
        return
    if not isinstance(data, (str, Path)):
        yield Input(whole(data, name=None if isinstance(data, Table) else name))
        return
    with ExitStack() as stack:
        shown, found = located_files(data, stack)
        form, size, methods = begins_as(*found.files[0]), 0, set()
        for part, location in found.files:
            with sources.open_file(location, part) as file:
                methods.add(sources.compression_of(file.read(sources.MAGIC_BYTES)) or "")
                size += file.seek(0, os.SEEK_END)
        if form == "json" or (form == "csv" and size <= SMALL_BYTES // (8 if any(methods) else 1)):
            yield Input(whole(found.files[0][1] if found.copied else data, name=shown))
            return
        block_bytes = CSV_BLOCK_BYTES if form == "csv" else None
        reader: Any = blocks_of(shown, found, form, csv, stack, block_bytes=block_bytes)
        # Names that are not there are refused before any row is read.
        texts = table_columns.match_names(reading.categorical, reader.names, shown)
        refuse_empty(reader.name, reader.total, len(reader.names))
        head = reader.head(texts)
        files, compression = tuple(part for part, _ in found.files), ", ".join(sorted(methods - {""})) or None
        # Rows of CSV are not counted beforehand.
        chosen_from = reader.total if csv.choice and form != "csv" else None
        head = replace(head, files=files, compression=compression, chosen_by=csv.choice.said, chosen_from=chosen_from)
        yield Input(head, reader, found, csv.choice.known(head))
