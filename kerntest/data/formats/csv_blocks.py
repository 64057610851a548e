"""CSV in blocks of rows, whatever its size."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from kerntest.data.column_types import BLANKS, in_form, without_blanks
from kerntest.data.formats.csv import all_names, checked_header, no_rows_below, read_delimited, read_numerals
from kerntest.data.formats.dialect import CsvFile, csv_file, malformed_csv
from kerntest.data.in_memory import column_of
from kerntest.data.source import open_file, open_source, unpacked_stream
from kerntest.data.table import BlockReader, Pieces, RowBlock, Table, loaded
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from kerntest.data.formats.dialect import CsvOptions
    from kerntest.data.table import Column, Kind

BLOCK_BYTES = 1 << 20
# A row longer than a block makes Arrow give up: then blocks become larger, up to this.
LARGEST_BLOCK = 1 << 30
# Of a file not larger than this everything is checked before the first block; of others each block as it comes.
SMALL_BYTES = 1 << 24
_HEAD_BYTES = 1 << 20


class CsvBlocks(BlockReader):
    """The rows of CSV files with one header."""

    format = "csv"

    def __init__(
        self,
        name: str,
        files: Sequence[tuple[str, Path]],
        warnings: tuple[str, ...],
        options: CsvOptions,
        block_bytes: int | None,
    ) -> None:
        self.name, self._options, self._where = name, options, files
        self._block_bytes = block_bytes or BLOCK_BYTES
        self._files: list[CsvFile] = []
        for shown, location in files:
            self._files.append(self._opened(shown, location))
        self._delimiter, header = self._files[0].delimiter, self._files[0].header
        names, warned, self.remarks = checked_header(header, self._files[0].name)
        self.names, self._fields = tuple(names), all_names(header, names)
        self.warnings = (*warnings, *warned)
        self.total = sum(location.stat().st_size for _, location in files)
        self._before = 0
        self._seen: list[BinaryIO] = []

    def _opened(self, shown: str, location: Path) -> CsvFile:
        """Read the header of a file, and all of a small one, whatever is wrong with it."""
        with open_file(location, shown) as file:
            head = unpacked_stream(file, shown).read(SMALL_BYTES)
        if not head:
            raise DataError(f"{shown} is empty", hint="it has 0 bytes", code="data.empty_file", where={"file": shown})
        if not (whole := len(head) < SMALL_BYTES):
            head = head[: head.rfind(b"\n", 0, _HEAD_BYTES) + 1] or head[:_HEAD_BYTES]
        options = replace(self._options, encoding=None, comment=None)
        found = csv_file(shown, head, options, self._files[0] if self._files else None, whole=whole)
        return replace(found, data=b"", location=location, start=found.start + len(head) - len(found.data))

    @property
    def done(self) -> int:
        """Bytes read, as they are stored."""
        return self._before + sum(file.tell() for file in self._seen if not file.closed)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out open files: elsewhere this says on which lines rows stand, and reads no blocks."""
        return {**self.__dict__, "_seen": []}

    def pieces(self, kinds: Mapping[str, Kind], keep: Sequence[str] = (), at_once: int = 1) -> Pieces:
        """Return all rows; where one begins is known only by who reads all before it, so they are read here."""
        del at_once
        return Pieces(loaded(self._blocks(kinds, keep), lambda _: self.done), -(-self.total // self._block_bytes))

    def _blocks(self, kinds: Mapping[str, Kind], keep: Sequence[str] = ()) -> Iterator[RowBlock]:
        """Yield all rows; numbers with a decimal comma are looked at as a whole first."""
        numbers = [name for name, kind in kinds.items() if kind == "number" and not self.written.get(name)]
        commas = self._with_decimal_commas(numbers)
        first_row = 0
        typed = self._batches(list(kinds), self._options.na)
        # As typed, NA is NA; that a word for a missing value was quoted is known only to who reads it as missing.
        as_typed = self._batches(list(keep)) if keep else repeat((None, 0, None))
        for (file, offset, batch), (_, _, kept) in zip(typed, as_typed, strict=False):
            rows = np.arange(first_row, first_row + batch.num_rows)
            part = file.name if len(self._files) > 1 else ""
            na = self._options.na
            bare = Table(self.name, (), len(rows), "csv", delimiter=self._delimiter, offset=offset, part=part, na=na)
            columns = tuple(
                commas[name].take(rows)
                if commas is not None and name in commas.names
                else self._typed(name, batch[name], kind, bare)
                for name, kind in kinds.items()
            )
            yield RowBlock(replace(bare, columns=columns), batch.select([]) if kept is None else kept, first_row)
            first_row += batch.num_rows
        if not first_row:
            raise no_rows_below(self.name)

    def _typed(self, name: str, texts: Any, kind: Kind, table: Table) -> Column:
        """Return a column of what was asked for, or of text where some value cannot be that."""
        # Words for a missing value are text only in text, and only between quotes.
        if kind not in {"number", "date"}:
            return without_blanks(column_of(name, texts, table.name), table.na)
        written, decimal = self.written.get(name), self._options.decimal
        texts = pc.utf8_trim(texts, BLANKS)
        present = pc.if_else(pc.is_in(texts, value_set=pa.array(("", *table.na))), pa.scalar(None, pa.string()), texts)
        if not written and not (kind == "number" and _any_like(present, _LEADING_ZERO)):
            for wanted in (pa.float64(),) if kind == "number" else _DATES:
                found = _cast(present, wanted)
                # 1e400 stays as it is typed, so that a message can show it.
                if found is not None and not (
                    kind == "number" and _any_like(present.filter(pc.is_inf(found)), "[0-9]")
                ):
                    return column_of(name, found, table.name)
        text = column_of(name, present, table.name)
        if written or kind == "date":
            return in_form(text, written or "date, year first") or text
        return text if decimal != "." else read_numerals([text], table, decimal, lambda _: ())[0]

    def _with_decimal_commas(self, numbers: Sequence[str]) -> Table | None:
        """Return columns of numbers as they are read from the whole file, where commas may stand in them."""
        options = self._options
        if not numbers or options.decimal == "." or (options.decimal == "auto" and self._delimiter == ","):
            return None
        if options.decimal == "auto" and not any(_has_comma(batch) for _, _, batch in self._batches(numbers)):
            return None
        # A comma in one value says how those of the whole column are to be read.
        location = self.name
        if len(self._where) == 1:
            # Perhaps a copy, which is UTF-8 without comments.
            location, options = str(self._where[0][1]), replace(options, encoding=None, comment=None)
        whole = read_delimited(open_source(location, self.name), None, options)
        self.warnings = (*self.warnings, *(text for text in whole.warnings if text not in self.warnings))
        return whole.select(numbers)

    def _batches(self, names: Sequence[str], na: Sequence[str] = ()) -> Iterator[tuple[CsvFile, int, Any]]:
        """Yield columns as text, a block at a time, with the rows of the file before it; words of `na` are missing."""
        self._before = 0
        for file, (_, location) in zip(self._files, self._where, strict=True):
            before, offset, size = self._before, 0, self._block_bytes
            while size:
                try:
                    with file.opened(file.start, self._seen) as stream:
                        for batch in _after(self._reader(stream, names, size, na), offset):
                            yield file, offset, batch
                            offset += batch.num_rows
                    size = 0
                except pa.ArrowException as error:
                    if "straddling" not in str(error) or size >= LARGEST_BLOCK:
                        raise malformed_csv([file], file.name, error, header=self._options.header) from error
                    size *= 8
            self._before = before + location.stat().st_size
            self._seen.clear()

    def _reader(self, stream: Any, names: Sequence[str], block_bytes: int, na: Sequence[str]) -> Iterator[Any]:
        """Run Arrow's parser over rows, without guessing any type."""
        first = stream.read(1 << 16)
        if not first.strip():
            # Arrow takes no text without rows.
            rest = stream.read(1)
            if not rest:
                return
            first += rest
        reader = arrow_csv.open_csv(
            pa.PythonFile(_Prefixed(first, stream), mode="r"),
            read_options=arrow_csv.ReadOptions(column_names=self._fields, block_size=block_bytes, use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(self._fields, pa.string()),
                include_columns=list(names) or [self.names[0]],
                null_values=list(na),
                strings_can_be_null=bool(na),
                quoted_strings_can_be_null=False,
                check_utf8=True,
            ),
        )
        with reader:
            for batch in reader:
                if batch.num_rows:
                    yield pa.table(batch)

    def located(self, block: RowBlock) -> Table:
        """Return the table of a block with the lines on which its rows stand."""
        bare = block.table
        file = next(one for one in self._files if not bare.part or one.name == bare.part)
        try:
            lines = [line for line, _ in islice(file.records(), bare.offset, bare.offset + bare.n_rows)]
        except (csv.Error, DataError):
            return bare
        return replace(bare, lines=np.array(lines, dtype=np.int64)) if len(lines) == bare.n_rows else bare


class _Prefixed(io.RawIOBase):
    """A stream of which the beginning has been read already."""

    def __init__(self, first: bytes, stream: Any) -> None:
        self._first, self._stream = first, stream

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if not self._first:
            return bytes(self._stream.read(size))
        taken, self._first = (self._first, b"") if size < 0 else (self._first[:size], self._first[size:])
        return taken

    def readable(self) -> bool:
        """Say so to Arrow."""
        return True


def _after(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Yield batches without the first rows."""
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(rows)
        rows = max(0, rows - batch.num_rows)


def _has_comma(batch: Any) -> bool:
    """Say whether a comma stands in any value."""
    return any(pc.any(pc.match_substring(column, ",")).as_py() for column in batch.columns)


_DATES = (pa.date32(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"))
_LEADING_ZERO = r"^[+-]?0[0-9xX]"


def _any_like(texts: Any, pattern: str) -> bool:
    """Say whether a text matches; a value like 001 is a name, and makes the column one of text."""
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _cast(texts: Any, kind: Any) -> Any:
    """Return texts as another type; None where one of them is not of it."""
    try:
        return pc.cast(texts, kind)
    except pa.ArrowException:
        return None
