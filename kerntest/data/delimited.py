"""CSV bytes to a table: every column's type is decided on all of its values."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import types

from kerntest.data.dialect import find_open_quote, find_ragged, row_lines, sniff_delimiter, split_header
from kerntest.data.selection import Patterns, match_names
from kerntest.data.suspicion import doubted, is_number
from kerntest.data.table import Table, refuse_duplicates
from kerntest.data.typed import column_of
from kerntest.data.wording import counted
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.source import Source

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "n/a", "#N/A")
_BLOCK_BYTES = 1 << 20
_LARGEST_BLOCK = (1 << 31) - 1
_VISIBLE = re.compile(rb"\S")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ENCODED = pa.dictionary(pa.int32(), pa.string())


def _members(symbols: bytes) -> NDArray[np.bool_]:
    """Return the table that says of each octet whether it is one of the symbols."""
    table = np.zeros(256, dtype=bool)
    table[list(symbols)] = True
    return table


_BLANK = _members(b" \t")
_SIGN = _members(b"+-")
_AFTER_LEADING_ZERO = _members(b"0123456789xX")


def read_delimited(source: Source, categorical: Patterns = None) -> Table:
    """Parse CSV bytes.

    Raises
    ------
    DataError
        The bytes are not UTF-8 text, or not a table with a header and at least one row.
    UsageError
        `categorical` names a column that is not there.
    """
    data = _checked_text(source)
    delimiter = sniff_delimiter(data)
    _refuse_open_quote(data, delimiter, source.name)
    try:
        header, start, n_header_lines = split_header(data, delimiter)
    except csv.Error as error:
        raise DataError(
            f"the header of {source.name} cannot be read: it does not end, or a carriage return stands in it",
            hint="the first line names the columns; every line should end in the same way",
            code="data.malformed_csv",
            where={"file": source.name, "line": 1},
        ) from error
    names, warnings = _checked_header(header, source.name)
    if not _VISIBLE.search(data, start):
        raise DataError(
            f"{source.name} has a header but no rows",
            hint="the first line names the columns, each line after it is a row",
            code="data.no_rows",
            where={"file": source.name},
        )
    forced = match_names(categorical, names, source.name)
    body = _Body(data=data, start=start, delimiter=delimiter, names=tuple(names), table_name=source.name)
    arrow = body.typed(forced)
    bare = Table(
        name=source.name,
        columns=(),
        n_rows=arrow.num_rows,
        format="csv",
        sha256=source.sha256,
        delimiter=delimiter,
        warnings=tuple(warnings),
        lines=row_lines(data, start, n_header_lines, arrow.num_rows),
    )
    columns = []
    for name, values in zip(names, arrow.columns, strict=True):
        column = column_of(name, values, source.name)
        columns.append(column if column.kind != "text" or name in forced else doubted(column, bare))
    return replace(bare, columns=tuple(columns))


def _checked_text(source: Source) -> bytes:
    """Return the bytes without byte order mark, once they are known to be UTF-8 text that is not blank."""
    data = source.parts[0][1]
    where: dict[str, str | int] = {"file": source.name}
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(
            f"{source.name} is UTF-16, not UTF-8",
            hint="convert it: iconv -f UTF-16 -t UTF-8",
            code="data.not_utf8",
            where=where,
        )
    if b"\0" in data:
        raise DataError(
            f"{source.name} is neither CSV nor Parquet: it holds binary data",
            hint="CSV is UTF-8 text; Parquet begins with the letters PAR1",
            code="data.not_text",
            where=where,
        )
    if not data.isascii():
        _check_utf8(data, source.name)
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if not _VISIBLE.search(data):
        raise DataError(f"{source.name} is empty", hint="it has no text", code="data.empty_file", where=where)
    # Lines of old Macintosh files end in a carriage return alone.
    return data if b"\n" in data else data.replace(b"\r", b"\n")


def _check_utf8(data: bytes, name: str) -> None:
    """Refuse bytes that are not UTF-8: pyarrow would take a Latin-1 column for binary without a word."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8",
            hint="if it is Latin-1, convert it: iconv -f LATIN1 -t UTF-8",
            code="data.not_utf8",
            where={"file": name, "line": line},
        ) from error


def _checked_header(header: list[str], table_name: str) -> tuple[list[str], list[str]]:
    """Return the column names and the warnings about them; refuse names that occur twice."""
    names, warnings = [], []
    for position, field in enumerate(header, start=1):
        name = field.strip()
        if not name:
            name = f"unnamed_{position}"
            warnings.append(
                f"column {position} of {table_name} has no name and is called '{name}'; "
                f"if it numbers the rows, leave it out with --exclude {name}"
            )
        names.append(name)
    refuse_duplicates(names, table_name)
    if all(is_number(name) for name in names):
        warnings.append(f"the first line of {table_name} was taken as the header, but all its names are numbers")
    return names, warnings


@dataclass(frozen=True, slots=True)
class _Body:
    """The rows of a CSV file, as bytes that can be parsed again with other types in mind."""

    data: bytes
    start: int
    delimiter: str
    names: tuple[str, ...]
    table_name: str

    def typed(self, forced: Sequence[str]) -> Any:
        """Return the Arrow table with every column typed on all of its values; `forced` are text.

        Arrow infers the types, and loosens them when a later block does not fit. It takes 001 and 0x1f for numbers,
        though, and knows times of day: such columns are read again as text.
        """
        inferred = self.parse(dict.fromkeys(forced, _ENCODED))
        numeric = [
            field.name for field in inferred.schema if types.is_integer(field.type) or types.is_floating(field.type)
        ]
        again: list[str] = []
        if numeric:
            as_typed = self.parse(dict.fromkeys(numeric, pa.string()), only=numeric)
            again = [name for name in numeric if any(map(_has_leading_zero, as_typed[name].chunks))]
        again += [field.name for field in inferred.schema if not _is_expected(field.type)]
        if again:
            reread = self.parse(dict.fromkeys(again, _ENCODED), only=again)
            for name in again:
                inferred = inferred.set_column(self.names.index(name), name, reread[name])
        return inferred

    def parse(self, column_types: dict[str, Any], only: Sequence[str] = ()) -> Any:
        """Return the Arrow table of the columns `only` (default: all); columns without a given type get one inferred."""
        convert = arrow_csv.ConvertOptions(
            column_types=column_types,
            include_columns=list(only),
            null_values=list(MISSING),
            strings_can_be_null=True,
            true_values=_spellings("true"),
            false_values=_spellings("false"),
            auto_dict_encode=True,
            auto_dict_max_cardinality=_LARGEST_BLOCK,
            check_utf8=False,
        )
        try:
            try:
                return self._read(convert, _BLOCK_BYTES)
            except pa.ArrowInvalid as error:
                # A row longer than a block makes Arrow give up; one block for the whole file takes it.
                if "straddling" not in str(error):
                    raise
                return self._read(convert, min(len(self.data), _LARGEST_BLOCK))
        except pa.ArrowException as error:
            raise self._malformed(error) from error

    def _read(self, convert: Any, block_bytes: int) -> Any:
        """Run Arrow's parser over the rows."""
        return arrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(self.data)[self.start :]),
            read_options=arrow_csv.ReadOptions(column_names=list(self.names), block_size=block_bytes),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=convert,
        )

    def _malformed(self, error: Exception) -> DataError:
        """Return the error for text that Arrow cannot parse, with the line that Arrow does not tell."""
        expected = len(self.names)
        ragged = find_ragged(self.data, self.delimiter, expected)
        if ragged is None:
            return DataError(
                f"{self.table_name} is malformed CSV: {str(error).splitlines()[0]}",
                hint="open it in a text editor, or write it anew",
                code="data.malformed_csv",
                where={"file": self.table_name},
            )
        line, found = ragged
        return DataError(
            f"{self.table_name}, line {line}: expected {counted(expected, 'field')}, found {found:,}",
            hint=f"the header has {counted(expected, 'name')}; the delimiter was taken to be {self.delimiter!r}",
            code="data.ragged_rows",
            where={"file": self.table_name, "line": line},
        )


def _refuse_open_quote(data: bytes, delimiter: str, table_name: str) -> None:
    """Refuse a quote that is never closed: the parser would take the rest of the file for one value."""
    line = find_open_quote(data, delimiter)
    if line is not None:
        raise DataError(
            f"{table_name}, line {line}: a quote is opened and never closed",
            hint='close it, or double it (""), or quote the whole field',
            code="data.open_quote",
            where={"file": table_name, "line": line},
        )


def _is_expected(kind: Any) -> bool:
    """Say whether an inferred type is one that we keep; the others (times of day) are text."""
    known = (types.is_null, types.is_integer, types.is_floating, types.is_boolean, types.is_date, types.is_timestamp)
    return types.is_dictionary(kind) or any(is_kind(kind) for is_kind in known)


def _has_leading_zero(chunk: Any) -> bool:
    """Say whether a value of an Arrow string array begins like ``001`` or ``0x1f``, after blanks and a sign."""
    _, offsets_buffer, octets_buffer = chunk.buffers()
    if octets_buffer is None or octets_buffer.size == 0:
        return False
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    octets = np.frombuffer(octets_buffer, dtype=np.uint8)
    begin, end = offsets[:-1], offsets[1:]
    begin, end = _at_least_two(offsets[:-1], offsets[1:])
    while (blank := _BLANK[octets[begin]]).any():
        begin, end = _at_least_two(begin + blank, end)
    begin, _ = _at_least_two(begin + _SIGN[octets[begin]], end)
    return bool(np.any((octets[begin] == ord("0")) & _AFTER_LEADING_ZERO[octets[begin + 1]]))


def _at_least_two(begin: NDArray[np.int32], end: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the spans of at least two octets: a leading zero has something after it."""
    long_enough = end - begin >= 2
    return begin[long_enough], end[long_enough]


def _spellings(word: str) -> list[str]:
    """Return the word in every mixture of lower and upper case."""
    return ["".join(letters) for letters in product(*((letter, letter.upper()) for letter in word))]
