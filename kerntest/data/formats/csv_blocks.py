"""CSV in blocks of rows, whatever its size."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kerntest.data.in_memory import column_of
from kerntest.data.kinds import BLANKS, in_form, without_blanks
from kerntest.data.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from kerntest.data.table import Kind, Table

from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING

from pyarrow import csv as arrow_csv

from kerntest.data.blocks import BlockReader, BlockTable, Pieces, RowBlock, loaded
from kerntest.data.formats.csv import all_names, checked_header, read_delimited
from kerntest.data.formats.csv_parts import expected_from, header_of, read_parts
from kerntest.data.formats.dialect import Decimal, ragged_hint, read_numerals, sniff_delimiter, split_separator
from kerntest.data.messages import counted
from kerntest.data.source import MAGIC_BYTES, compression_of, open_file, open_source, unpacking
from kerntest.data.table import no_header_hint
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from kerntest.data.formats.dialect import CsvOptions
    from kerntest.data.table import Kind, Table

BLOCK_BYTES = 1 << 20
# A row longer than a block makes Arrow give up: then blocks become larger, up to this.
LARGEST_BLOCK = 1 << 30
# Of a file not larger than this everything is checked before the first block; of others each block as it comes.
SMALL_BYTES = 1 << 24
_HEAD_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _File:
    """One CSV file whose header is known."""

    shown: str
    location: Path
    header: tuple[str, ...]
    start: int
    n_header_lines: int

    @contextmanager
    def rows(self, seen: list[BinaryIO]) -> Iterator[Any]:
        """Open the text below the header; `seen` gets the file as stored, whose position tells how far one is."""
        with open_file(self.location, self.shown) as file:
            stream = unpacked_stream(file, self.shown)
            seen[:] = [file]
            skipped = self.start
            while skipped and (head := stream.read(min(skipped, 1 << 20))):
                skipped -= len(head)
            yield stream


def unpacked_stream(file: BinaryIO, shown: str) -> Any:
    """Return a file without its compression, whose damage becomes a DataError."""
    method = compression_of(file.read(MAGIC_BYTES))
    file.seek(0)
    return file if method is None else unpacking(file, shown, method)


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
        self.name, self._options = name, options
        self._block_bytes = block_bytes or BLOCK_BYTES
        self._where = files
        self._delimiter = ""
        self._files: list[_File] = []
        for shown, location in files:
            self._files.append(self._opened(shown, location))
        names, warned, self.remarks = checked_header(self._files[0].header, self._files[0].shown)
        self.names = tuple(names)
        self._fields = all_names(self._files[0].header, names)
        self.warnings = (*warnings, *warned)
        self.total = sum(location.stat().st_size for _, location in files)
        self._before = 0
        self._seen: list[BinaryIO] = []

    def _opened(self, shown: str, location: Path) -> _File:
        """Read the header of a file, and all of a small one, whatever is wrong with it."""
        with open_file(location, shown) as file:
            head = unpacked_stream(file, shown).read(SMALL_BYTES)
            whole = len(head) < SMALL_BYTES
        if not head:
            raise DataError(f"{shown} is empty", hint="it has 0 bytes", code="data.empty_file", where={"file": shown})
        head = head if whole else head[:_HEAD_BYTES]
        bare, separator = split_separator(head.removeprefix(_BYTE_ORDER_MARK))
        if whole or b"\0" in head:
            parts, delimiter = read_parts([(shown, head)], replace(self._options, encoding=None, comment=None))
            header, start, lines = list(parts[0].header), parts[0].start, parts[0].n_header_lines
        else:
            try:
                delimiter = self._options.delimiter or separator or sniff_delimiter(bare)
                names, start, lines = header_of(bare, delimiter, header=self._options.header)
                header = list(names)
            except (UnicodeDecodeError, csv.Error):
                read_parts([(shown, head)])
                raise
        start += len(head) - len(bare)
        self._delimiter = self._delimiter or delimiter
        opened = _File(shown, location, tuple(header), start, lines)
        first = self._files[0] if self._files else opened
        if delimiter != self._delimiter or _stripped(opened) != _stripped(first):
            raise DataError(
                f"{shown} has another header than {first.shown}",
                hint=no_header_hint(_stripped(first), _stripped(opened))
                or "files that are read together need one header and one delimiter",
                code="data.headers_differ",
                where={"file": shown, "line": 1},
            )
        return opened

    @property
    def done(self) -> int:
        """Bytes read, as they are stored."""
        try:
            return self._before + sum(file.tell() for file in self._seen)
        except ValueError:  # closed
            return self._before

    def __getstate__(self) -> dict[str, Any]:
        """Leave out open files: elsewhere this says on which lines rows stand, and reads no blocks."""
        return {**self.__dict__, "_seen": []}

    def pieces(self, kinds: Mapping[str, Kind], keep: Sequence[str] = (), at_once: int = 1) -> Pieces:
        """Return all rows; where one begins is known only by who reads all before it, so they are read here."""
        del at_once
        return Pieces(loaded(self.blocks(kinds, keep), lambda _: self.done), -(-self.total // self._block_bytes))

    def blocks(self, kinds: Mapping[str, Kind], keep: Sequence[str] = ()) -> Iterator[RowBlock]:
        """Yield all rows; numbers with a decimal comma are looked at as a whole first."""
        numbers = [name for name, kind in kinds.items() if kind == "number" and not self.written.get(name)]
        commas = self._with_decimal_commas(numbers)
        first_row = 0
        typed = self._batches(list(kinds), self._options.na)
        # As typed, NA is NA; that a word for a missing value was quoted is known only to who reads it as missing.
        as_typed = self._batches(list(keep)) if keep else repeat((None, 0, None))
        for (file, offset, batch), (_, _, kept) in zip(typed, as_typed, strict=False):
            bare = self._bare(file, offset, batch.num_rows)
            columns = []
            for name, kind in kinds.items():
                if commas is not None and name in commas.names:
                    columns.append(commas[name].take(np.arange(first_row, first_row + batch.num_rows)))
                else:
                    written = self.written.get(name, "")
                    columns.append(typed_column(name, batch[name], kind, bare, self._options.decimal, written=written))
            yield RowBlock(replace(bare, columns=tuple(columns)), batch.select([]) if kept is None else kept, first_row)
            first_row += batch.num_rows
        if not first_row:
            raise DataError(
                f"{self.name} has a header but no rows",
                hint="the first line names the columns, each line after it is a row",
                code="data.no_rows",
                where={"file": self.name},
            )

    def _bare(self, file: _File, offset: int, n_rows: int) -> BlockTable:
        part = file.shown if len(self._files) > 1 else ""
        return BlockTable(
            self.name, (), n_rows, "csv", delimiter=self._delimiter, offset=offset, part=part, na=self._options.na
        )

    def _with_decimal_commas(self, numbers: Sequence[str]) -> Table | None:
        """Return columns of numbers as they are read from the whole file, where commas may stand in them."""
        if not numbers or self._options.decimal == "." or (self._options.decimal == "auto" and self._delimiter == ","):
            return None
        if self._options.decimal == "auto" and not any(_has_comma(batch) for _, _, batch in self._batches(numbers)):
            return None
        # A comma in one value says how those of the whole column are to be read.
        options = self._options
        location = self.name
        if len(self._where) == 1:
            # Perhaps a copy, which is UTF-8 without comments.
            location, options = str(self._where[0][1]), replace(options, encoding=None, comment=None)
        whole = read_delimited(open_source(location, self.name), None, options)
        self.warnings = (*self.warnings, *(text for text in whole.warnings if text not in self.warnings))
        return whole.select(numbers)

    def _batches(self, names: Sequence[str], na: Sequence[str] = ()) -> Iterator[tuple[_File, int, Any]]:
        """Yield columns as text, a block at a time, with the rows of the file before it; words of `na` are missing."""
        before = 0
        for file in self._files:
            self._before = before
            offset, size = 0, self._block_bytes
            while size:
                try:
                    with file.rows(self._seen) as stream:
                        for batch in _after(self._reader(stream, names, size, na), offset):
                            yield file, offset, batch
                            offset += batch.num_rows
                    size = 0
                except pa.ArrowException as error:
                    if "straddling" not in str(error) or size >= LARGEST_BLOCK:
                        raise self._malformed(file, error) from error
                    size *= 8
            before += file.location.stat().st_size
            self._before = before
            self._seen.clear()

    def _reader(self, stream: Any, names: Sequence[str], block_bytes: int, na: Sequence[str]) -> Iterator[Any]:
        """Run Arrow's parser over rows, without guessing any type."""
        if not (first := stream.read(1 << 16)).strip():
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

    def located(self, block: RowBlock) -> BlockTable:
        """Return the table of a block with the lines on which its rows stand."""
        bare = block.table
        file = next(one for one in self._files if not bare.part or one.shown == bare.part)
        try:
            with file.rows([]) as stream:
                records = _records(stream, self._delimiter, file.n_header_lines)
                lines = [line for line, _ in islice(records, bare.offset, bare.offset + bare.n_rows)]
        except (csv.Error, UnicodeDecodeError, DataError):
            return bare
        return replace(bare, lines=np.array(lines, dtype=np.int64)) if len(lines) == bare.n_rows else bare

    def _malformed(self, file: _File, error: Exception) -> DataError:
        """Return the error for text that Arrow cannot parse, with the line that Arrow does not tell."""
        expected = len(self._fields)
        try:
            with file.rows([]) as stream:
                for line, record in _records(stream, self._delimiter, file.n_header_lines, strict=True):
                    if len(record) != expected:
                        return self._ragged(file, line, len(record))
        except UnicodeDecodeError:
            return self._not_utf8(file)
        except _BrokenRecordError as reason:
            if "unexpected end of data" in str(reason):
                return DataError(
                    f"{file.shown}, line {reason.line}: a quote is opened and never closed",
                    hint='close it, or double it (""), or quote the whole field',
                    code="data.open_quote",
                    where={"file": file.shown, "line": reason.line},
                )
        return DataError(
            f"{file.shown} is malformed CSV: {str(error).splitlines()[0]}",
            hint="open it in a text editor, or write it anew",
            code="data.malformed_csv",
            where={"file": file.shown},
        )

    def _ragged(self, file: _File, line: int, found: int) -> DataError:
        """Return the error for a row with too few or too many fields."""
        expected = len(self._fields)
        with file.rows([]) as stream:
            head = stream.read(_HEAD_BYTES)
        return DataError(
            f"{file.shown}, line {line}: expected {counted(expected, 'field')}, found {found:,}",
            hint=ragged_hint(head, self._delimiter, expected_from(expected, header=self._options.header)),
            code="data.ragged_rows",
            where={"file": file.shown, "line": line},
        )

    def _not_utf8(self, file: _File) -> DataError:
        """Return the error for the first line that is not UTF-8."""
        number = file.n_header_lines
        with file.rows([]) as stream:
            for number, line in enumerate(_lines(stream), start=file.n_header_lines + 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    return DataError(
                        f"{file.shown}, line {number}: byte 0x{line[error.start]:02x} is not UTF-8",
                        hint="--encoding says what it is, such as latin-1",
                        code="data.not_utf8",
                        where={"file": file.shown, "line": number},
                    )
        return DataError(
            f"{file.shown} is not UTF-8", hint="--encoding says what it is, such as latin-1", code="data.not_utf8"
        )


class _BrokenRecordError(csv.Error):
    """A record that cannot be read, and the line on which it begins."""

    def __init__(self, reason: csv.Error, line: int) -> None:
        super().__init__(str(reason))
        self.line = line


class _Prefixed:
    """A stream of which the beginning has been read already."""

    closed = False

    def __init__(self, first: bytes, stream: Any) -> None:
        self._first, self._stream = first, stream

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if not self._first:
            return bytes(self._stream.read(size))
        taken, self._first = (self._first, b"") if size < 0 else (self._first[:size], self._first[size:])
        return taken

    def close(self) -> None:
        """Leave the stream to its owner."""


def _after(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Yield batches without the first rows."""
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(rows)
        rows = max(0, rows - batch.num_rows)


def _has_comma(batch: Any) -> bool:
    """Say whether a comma stands in any value."""
    import pyarrow.compute as pc  # noqa: PLC0415 - 30 ms that a CSV with points does not need

    return any(pc.any(pc.match_substring(column, ",")).as_py() for column in batch.columns)


def _lines(stream: Any) -> Iterator[bytes]:
    """Yield lines, with their ends."""
    rest = b""
    while chunk := stream.read(1 << 20):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _records(
    stream: Any, delimiter: str, n_header_lines: int, *, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield the records that are not blank, with the lines on which they begin."""
    reader = csv.reader((line.decode("utf-8") for line in _lines(stream)), delimiter=delimiter, strict=strict)
    line = n_header_lines + 1
    try:
        for record in reader:
            if record:
                yield line, record
            line = n_header_lines + reader.line_num + 1
    except csv.Error as error:
        raise _BrokenRecordError(error, line) from error


def _stripped(file: _File) -> list[str]:
    return [field.strip() for field in file.header]


_DATES = (pa.date32(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"))


_LEADING_ZERO = r"^[+-]?0[0-9xX]"


def typed_column(name: str, texts: Any, kind: Kind, table: Table, decimal: Decimal, *, written: str = "") -> Column:
    """Return a column of what was asked for, or of text where some value cannot be that."""
    # Words for a missing value are text only in text, and only between quotes.
    if kind not in {"number", "date"}:
        return without_blanks(column_of(name, texts, table.name), table.na)
    texts = pc.utf8_trim(texts, BLANKS)
    present = pc.if_else(pc.is_in(texts, value_set=pa.array(("", *table.na))), pa.scalar(None, pa.string()), texts)
    if written:
        text = column_of(name, present, table.name)
        return in_form(text, written) or text
    if kind == "number":
        return _numbers(name, present, table, decimal)
    for date in _DATES:
        if (found := _cast(present, date)) is not None:
            return column_of(name, found, table.name)
    text = column_of(name, present, table.name)
    return in_form(text, "date, year first") or text


def _numbers(name: str, present: Any, table: Table, decimal: Decimal) -> Column:
    """Return numbers; a value like 001 is a name, and makes the column one of text."""
    if not pc.any(pc.match_substring_regex(present, _LEADING_ZERO)).as_py():
        found = _cast(present, pa.float64())
        # 1e400 stays as it is typed, so that a message can show it.
        if (
            found is not None
            and not pc.any(pc.and_(pc.is_inf(found), pc.match_substring_regex(present, "[0-9]"))).as_py()
        ):
            return column_of(name, found, table.name)
    text = column_of(name, present, table.name)
    if decimal != ".":
        return text
    return read_numerals([text], table, decimal, lambda _: ())[0]


def _cast(texts: Any, kind: Any) -> Any:
    """Return texts as another type; None where one of them is not of it."""
    try:
        return pc.cast(texts, kind)
    except pa.ArrowException:
        return None
