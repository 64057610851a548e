"""Inputs of a streamed test: what is known of one before its rows are read, and the pieces that it can be read in."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.blocks import BlockTable
from kerntest.data.columns import match_names
from kerntest.data.formats.dialect import CsvOptions
from kerntest.data.kinds import with_words
from kerntest.data.read import STDIN, begins_as, open_blocks, read_table, spooled, unpacked_file
from kerntest.data.rows import apply_missing
from kerntest.data.source import MAGIC_BYTES, Found, compression_of, find_files, open_file
from kerntest.data.source import Source as Bytes
from kerntest.data.table import Kind, Table, refuse_duplicates
from kerntest.errors import DataError
from kerntest.inference.streamed.rows import ParquetPart, Piece, batch_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kerntest.data.blocks import Block, BlockReader
    from kerntest.inference.sides import MissingPolicy, Reading

# A CSV file up to this size is read at once, like every table of the exact test.
SMALL_BYTES = 1 << 24
# Blocks of a larger one. A block must hold its longest row.
CSV_BLOCK_BYTES = 1 << 22
# Rows from which the types of columns are told, of a schema or of the first block of CSV.
HEAD_ROWS = 1000
# Small row groups are read together up to so many rows.
PIECE_ROWS = 1 << 16


class Source(ABC):
    """One input.

    Attributes
    ----------
    name, format : str
        As in `Table`.
    head : Table
        The first rows, all columns, or all rows.
    warnings : tuple of str
    stored : sequence of (str, Path)
        The files as stored, for their digest; none of data in memory.
    compression : str or None
    """

    name: str
    format: str
    head: Table
    warnings: tuple[str, ...]
    stored: Sequence[tuple[str, Path]] = ()
    compression: str | None = None
    # Whether the types of the head are those of all rows.
    settled = True

    @abstractmethod
    def pieces(self, source: int, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        """Yield all rows in pieces.

        Parameters
        ----------
        source : int
            The number of this input.
        kinds : mapping of str to Kind
            The columns, and what each is to become where the input does not say.
        """

    @property
    @abstractmethod
    def n_pieces(self) -> int:
        """How many pieces there are, about."""

    def settle(self, matched: Table, missing: MissingPolicy) -> None:
        """Take the columns that are used, where all rows are in memory; files are read anew."""
        del matched, missing

    def digest(self) -> str | None:
        """Return the digest of the files as stored, as `read_table` does; None for data in memory."""
        digests = []
        for shown, location in self.stored:
            found = hashlib.sha256()
            with open_file(location, shown) as file:
                while chunk := file.read(1 << 20):
                    found.update(chunk)
            digests.append(found.hexdigest())
        if len(digests) < 2:
            return digests[0] if digests else None
        return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode("ascii")).hexdigest()


class HeldSource(Source):
    """A table in memory."""

    def __init__(self, table: Table) -> None:
        self.name, self.format, self.head, self.warnings = table.name, table.format, table, table.warnings
        self.compression = table.compression
        self._used = table

    def settle(self, matched: Table, missing: MissingPolicy) -> None:
        """Take the columns as they were matched; all rows are here, so that missing ones are refused at once."""
        if missing == "error":
            apply_missing(matched, missing)
        self._used, self.warnings = matched, matched.warnings

    def digest(self) -> str | None:
        """Return the digest that was found when the table was read."""
        return self.head.sha256

    @property
    def n_pieces(self) -> int:
        """How many pieces there are, about."""
        return -(-self._used.n_rows // min(PIECE_ROWS, batch_rows(len(self._used.columns))))

    def pieces(self, source: int, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        """Yield all rows in pieces."""
        table = self._used.select(list(kinds))
        height = min(PIECE_ROWS, batch_rows(len(kinds)))
        for number, start in enumerate(range(0, table.n_rows, height)):
            part = table.take(np.arange(start, min(start + height, table.n_rows)))
            if part.lines is None:
                part = BlockTable(part.name, part.columns, part.n_rows, part.format, offset=start)
            yield Piece(source, number, start, part.n_rows, part)


class ParquetSource(Source):
    """Parquet files, whose row groups can be read one by one."""

    format = "parquet"

    def __init__(self, name: str, files: Sequence[tuple[str, Path]], found: Found, reading: Reading) -> None:
        from pyarrow import parquet  # noqa: PLC0415 - 70 ms that an array does not need

        from kerntest.data.formats.parquet import PANDAS_INDEX, malformed_parquet  # noqa: PLC0415 - the same

        self.name, self.stored = name, found.files
        self._parts: list[tuple[ParquetPart, int]] = []
        schema: Any = None
        for shown, location in files:
            try:
                with parquet.ParquetFile(location) as file:
                    metadata, own = file.metadata, file.schema_arrow
            except (OSError, ValueError) as error:  # Arrow's own errors are of these kinds
                raise malformed_parquet(shown, error) from error
            schema = own if schema is None else schema
            _refuse_other_schema(schema, own, (files[0][0], shown))
            part = shown if len(files) > 1 else ""
            sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
            self._parts += [
                (
                    ParquetPart(location.absolute(), part, groups, sum(sizes[: groups[0]])),
                    sum(sizes[group] for group in groups),
                )
                for groups in _together(sizes)
            ]
        names = [str(one) for one in schema.names]
        refuse_duplicates(names, name)
        labels = [one for one in names if PANDAS_INDEX.fullmatch(one)]
        self.warnings = (
            *found.warnings,
            *(f"{one!r} of {name} holds the row labels of pandas and is left out" for one in labels),
        )
        self._names = [one for one in names if one not in labels]
        self.n_rows = sum(rows for _, rows in self._parts)
        if not self.n_rows or not self._names:
            raise DataError(
                f"{name} has no {'rows' if self._names else 'columns'}",
                hint="a table needs at least one column and one row",
                code="data.no_rows" if self._names else "data.no_columns",
                where={"file": name},
            )
        self.head = self._first_rows(reading)

    def _first_rows(self, reading: Reading) -> Table:
        import pyarrow as pa  # noqa: PLC0415 - 70 ms that an array does not need
        from pyarrow import parquet  # noqa: PLC0415 - the same

        from kerntest.data.formats.parquet import malformed_parquet  # noqa: PLC0415 - the same
        from kerntest.data.in_memory import table_of_arrow  # noqa: PLC0415 - the same

        part, _ = self._parts[0]
        try:
            with parquet.ParquetFile(part.location) as file:
                batch = next(file.iter_batches(batch_size=HEAD_ROWS, row_groups=list(part.groups), columns=self._names))
                batch.validate(full=True)
                arrow = pa.table(batch)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise malformed_parquet(part.shown or self.name, error) from error
        return table_of_arrow(arrow, name=self.name, file_format="parquet", categorical=reading.categorical)

    @property
    def n_pieces(self) -> int:
        """How many pieces there are."""
        return len(self._parts)

    def pieces(self, source: int, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        """Yield all rows in pieces: row groups, small ones together."""
        del kinds
        before = 0
        for number, (part, rows) in enumerate(self._parts):
            yield Piece(source, number, before, rows, part)
            before += rows


def _together(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield runs of row groups, each of enough rows to be worth a piece of work."""
    run: list[int] = []
    rows = 0
    for group, size in enumerate(sizes):
        if not size:
            continue
        run.append(group)
        rows += size
        if rows >= PIECE_ROWS:
            yield tuple(run)
            run, rows = [], 0
    if run:
        yield tuple(run)


def _refuse_other_schema(first: Any, other: Any, names: tuple[str, str]) -> None:
    """Refuse a further file whose columns are not those of the first."""
    if other.equals(first):
        return
    differing = [
        one
        for one in (*first.names, *other.names)
        if one not in first.names or one not in other.names or first.field(one).type != other.field(one).type
    ]
    if not differing and first.names == other.names:
        # Only what is noted beside the columns differs.
        return
    what = f"column {differing[0]!r}" if differing else "the order of the columns"
    raise DataError(
        f"{names[1]} has other columns or types than {names[0]}",
        hint=f"Parquet files that are read together need one schema; these differ in {what}",
        code="data.schemas_differ",
        where={"file": names[1]},
    )


class CsvSource(Source):
    """CSV files, read from the beginning to the end; the types of columns are told from the first block."""

    format = "csv"
    settled = False

    def __init__(self, reader: Any, stored: Sequence[tuple[str, Path]], reading: Reading) -> None:
        self.name, self.stored, self._reader = reader.name, stored, reader
        self.compression = _compression(stored)
        # Names that are not there are refused before any row is read.
        match_names(reading.categorical, reader.names, reader.name)
        block = next(_blocks(reader, dict.fromkeys(reader.names, "text"), reader.names))
        head = _typed_again(block, reading)
        self.delimiter = block.table.delimiter
        self.head = replace(
            head,
            columns=tuple(
                replace(column, remarks=(*reader.remarks.get(column.name, ()), *column.remarks))
                for column in head.columns
            ),
            files=tuple(name for name, _ in stored),
            delimiter=self.delimiter,
            notes=tuple(dict.fromkeys((*reader.warnings, *head.notes))),
        )
        self.warnings = self.head.warnings

    def settle(self, matched: Table, missing: MissingPolicy) -> None:
        """Take the forms in which columns are written, which another input may have told."""
        del missing
        self._reader.written = {column.name: column.written for column in matched.columns if column.written}
        self.warnings = matched.warnings

    @property
    def n_pieces(self) -> int:
        """How many pieces there are, about."""
        return max(2, -(-int(self._reader.total) // CSV_BLOCK_BYTES))

    def pieces(self, source: int, kinds: Mapping[str, Kind]) -> Iterator[Piece]:
        """Yield all rows as they are read."""
        # Truth values are texts until all of them have been seen.
        asked: dict[str, Kind] = {name: "text" if kind == "boolean" else kind for name, kind in kinds.items()}
        for number, block in enumerate(_blocks(self._reader, asked)):
            yield Piece(source, number, block.first_row, block.table.n_rows, block.table)


def _blocks(reader: BlockReader, kinds: Mapping[str, Kind], keep: Sequence[str] = ()) -> Iterator[Block]:
    """Yield the blocks of a file in order."""
    for piece in reader.pieces(kinds, keep).items:
        yield from piece.blocks()


def _typed_again(block: Block, reading: Reading) -> Table:
    """Return columns of text typed the way a whole file is: as CSV in which all values are quoted."""
    import io  # noqa: PLC0415 - beside those below

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
    source = Bytes(table.name, "csv", ((table.name, stream.getvalue()),), sha256="", size=0)
    head = read_delimited(
        source, reading.categorical, CsvOptions(reading.csv.decimal, reading.csv.na, delimiter=table.delimiter)
    )
    if head.n_rows < table.n_rows:
        # Rows of one empty value are blank lines.
        return head
    kept = block.kept.slice(0, table.n_rows)
    return with_words(head, lambda names: [without_blanks(column_of(name, kept[name], table.name)) for name in names])


def _compression(stored: Sequence[tuple[str, Path]]) -> str | None:
    """Return how files are compressed, as `read_table` says it."""
    methods = set()
    for shown, location in stored:
        with open_file(location, shown) as file:
            methods.add(compression_of(file.read(MAGIC_BYTES)) or "")
    return ", ".join(sorted(methods - {""})) or None


@contextmanager
def open_source(source: Any, name: str | None, reading: Reading) -> Iterator[Source]:
    """Open an input: files that are read in pieces, or data in memory.

    Parameters
    ----------
    source : path, "-", ndarray, DataFrame, pyarrow Table or Table
    name : str or None
        How messages call data in memory.
    reading : Reading

    Raises
    ------
    DataError, UsageError
        As `read_table` does.
    """
    if isinstance(source, Source):
        # Opened before, by who wanted to see its columns.
        yield source
        return
    if not isinstance(source, (str, Path)):
        yield HeldSource(read_table(source, name=name, categorical=reading.categorical, **reading.csv.words()))
        return
    with ExitStack() as stack:
        if str(source) == "-":
            import sys  # noqa: PLC0415 - stdin as it is now

            shown, found = STDIN, Found(((STDIN, stack.enter_context(spooled(sys.stdin.buffer))),))
        elif str(source):
            shown, found = str(source), find_files(source, str(source))
        else:
            raise DataError(
                "the name of the file is empty", code="data.missing_file", hint="name a file, or - for stdin"
            )
        form = begins_as(*found.files[0])
        if form == "parquet":
            plain = [(part, stack.enter_context(unpacked_file(part, location))) for part, location in found.files]
            opened = ParquetSource(shown, plain, found, reading)
            opened.compression = _compression(found.files)
            yield opened
            return
        on_disk = str(found.files[0][1]) if shown == STDIN else source
        size = sum(_size(location) for _, location in found.files)
        if form == "json" or size <= SMALL_BYTES // (8 if _compression(found.files) else 1):
            yield HeldSource(read_table(on_disk, name=shown, categorical=reading.categorical, **reading.csv.words()))
            return
        reader: Any = stack.enter_context(open_blocks(on_disk, **reading.csv.words(), block_bytes=CSV_BLOCK_BYTES))
        reader.name = shown
        yield CsvSource(reader, found.files, reading)


def _size(location: Path) -> int:
    try:
        return location.stat().st_size
    except OSError:
        # Whoever reads it says what is wrong.
        return 0
