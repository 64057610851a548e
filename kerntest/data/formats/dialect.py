"""How a CSV file is written: delimiter, header, decimal mark, missing words."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, TYPE_CHECKING, Literal, TypedDict

import numpy as np

from kerntest.data.columns import Patterns, split_patterns
from kerntest.data.kinds import NEARLY_ALL, has_comma, present_counts, stray_problem
from kerntest.data.messages import option_value
from kerntest.data.source import PARQUET_MAGIC, find_files, format_of_head, head_of
from kerntest.data.table import MISSING, Column, Remark, Table, is_number
from kerntest.errors import UsageError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Unpack

    from numpy.typing import NDArray

    from kerntest.data.table import Table

Decimal = Literal["auto", ".", ","]
DECIMALS: tuple[Decimal, ...] = ("auto", ".", ",")
_WORDS = ("tab", "space", "comma", "semicolon", "bar")
_NAMED = dict(zip((*_WORDS, "\\t"), "\t ,;|\t", strict=True))
_ENCODINGS = ("utf-8", "latin-1", "windows-1252", "utf-16", "iso-8859-15", "shift-jis", "gb18030")


class CsvWords(TypedDict, total=False):
    """The options of `CsvOptions` as keyword arguments."""

    decimal: Decimal
    na: Patterns
    delimiter: str | None
    encoding: str | None
    header: bool
    comment: str | None


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How CSV is written."""

    decimal: Decimal = "auto"
    na: tuple[str, ...] = MISSING
    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True
    comment: str | None = None

    @property
    def transcodes(self) -> bool:
        """Whether the bytes are not the text in UTF-8 without comments."""
        return self.encoding is not None or self.comment is not None

    @classmethod
    def of(cls, **words: Unpack[CsvWords]) -> CsvOptions:
        """Return the options that keyword arguments mean."""
        for name in words.keys() - CsvWords.__optional_keys__:
            raise TypeError(f"unexpected keyword argument {name!r}")
        decimal = words.get("decimal", "auto")
        if decimal not in DECIMALS:
            close = suggest(str(decimal), DECIMALS)
            raise _refused(
                f"decimal must be auto, '.' or ',', not {decimal!r}",
                f"did you mean {close!r}?" if close else "auto tells it from the values",
                decimal,
            )
        na, comment = words.get("na"), words.get("comment") or None
        if comment is not None and ("\n" in comment or "\r" in comment or '"' in comment):
            raise _refused(f"comment must be a few characters such as #, not {comment!r}", "# is usual", comment)
        return cls(
            decimal,
            MISSING if na is None else tuple(dict.fromkeys(split_patterns(na))),
            _delimiter(words.get("delimiter")),
            _encoding(words.get("encoding")),
            words.get("header", True),
            comment,
        )

    def words(self) -> CsvWords:
        """Return the keyword arguments that mean these options."""
        return {
            "decimal": self.decimal,
            "na": self.na,
            "delimiter": self.delimiter,
            "encoding": self.encoding,
            "header": self.header,
            "comment": self.comment,
        }


def _delimiter(text: str | None) -> str | None:
    """Return the character that --delimiter means."""
    if text is None:
        return None
    character = _NAMED.get(text.casefold(), text)
    if len(character) != 1 or not character.isascii() or character.isalnum() or character in '"\n\r\0.+-_':
        raise _refused(
            f"delimiter must be one character such as ; or one of {', '.join(_WORDS)}, not {text!r}",
            "leave it out, and it is found by looking at the first rows",
            text,
        )
    return character


def _encoding(name: str | None) -> str | None:
    """Return the name of an encoding that Python knows."""
    if name is None:
        return None
    try:
        # Of the codecs some are no encodings: only text becomes bytes.
        "a".encode(name)
    except (LookupError, ValueError, TypeError):
        close = suggest(name.casefold(), _ENCODINGS)
        raise _refused(
            f"no encoding is called {name!r}",
            f"did you mean {close!r}?" if close else f"known are, among others, {', '.join(_ENCODINGS)}",
            name,
        ) from None
    return name


def _refused(message: str, hint: str, value: object) -> UsageError:
    """Return the error for an option that has no meaning."""
    return UsageError(message, hint=hint, code="usage.choice", where={"value": str(value)})


AS_USUAL = CsvOptions()


DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_BYTES = 65_536
_SAMPLE_RECORDS = 100
_SEPARATOR = re.compile(rb"\"?sep=([^\w\s\".+-]|\t| )\1*\"?[ \t]*(?=\r?\n)", re.IGNORECASE)
_NUMBER_SIGN = re.compile(rb"^#", re.MULTILINE)
_LINE_FEED, _CARRIAGE_RETURN, _QUOTE = 10, 13, 34


def sniff_delimiter(data: bytes) -> str:
    """Return the delimiter that splits the first lines most consistently; comma where none does.

    `csv.Sniffer` fails on files of one column and may answer with a letter; here there are four candidates, and
    the one wins under which most records have as many fields as the header, then the one with more fields.
    """
    sample = data[:_SAMPLE_BYTES].decode("utf-8", errors="ignore")
    cut = len(data) > _SAMPLE_BYTES
    best, best_score = ",", (0.0, 1)
    for delimiter in DELIMITERS:
        widths = _widths(sample, delimiter, cut=cut)
        if not widths or widths[0] < 2:
            continue
        rows = widths[1:]
        agreement = sum(width == widths[0] for width in rows) / len(rows) if rows else 1.0
        if (agreement, widths[0]) > best_score:
            best, best_score = delimiter, (agreement, widths[0])
    return best


def split_separator(data: bytes) -> tuple[bytes, str | None]:
    """Return the text without Excel's first line, such as ``sep=;``, of which the end stays, and the delimiter it names."""
    found = _SEPARATOR.match(data)
    return (data, None) if found is None else (data[found.end() :], found[1].decode())


def ragged_hint(data: bytes, delimiter: str, shown: str) -> str:
    """Return the hint for a row with too few or too many fields; `shown` says how many fields were expected, and why."""
    if _NUMBER_SIGN.search(data):
        return f"if lines that begin with # are comments, --comment '#' leaves them out; {shown}"
    return f"{shown}; the delimiter was taken to be {delimiter!r}"


def _widths(sample: str, delimiter: str, *, cut: bool) -> list[int]:
    """Return the number of fields of the sample's first records; the last is dropped where the sample is cut."""
    widths: list[int] = []
    for record in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter):
        if record:
            widths.append(len(record))
        if len(widths) > _SAMPLE_RECORDS:
            return widths
    return widths[:-1] if cut and len(widths) > 1 else widths


def split_header(data: bytes, delimiter: str) -> tuple[list[str], int, int]:
    """Return the fields of the first record, where the bytes after it begin, and how many lines were read for it.

    Blank lines before the header are skipped; a quoted newline in a name is part of the name.
    """
    consumed = 0

    def lines() -> Iterator[str]:
        nonlocal consumed
        for line in io.BytesIO(data):
            consumed += len(line)
            yield line.decode("utf-8")

    reader = csv.reader(lines(), delimiter=delimiter)
    for record in reader:
        if any(field.strip() for field in record) or len(record) > 1:
            return record, consumed, reader.line_num
    return [], consumed, reader.line_num


def names_rows(header: Sequence[str], rows: bytes, delimiter: str) -> bool:
    """Say whether the rows begin with a name that the header has no name for, as R writes them."""
    cut = len(rows) > _SAMPLE_BYTES
    sample = rows[:_SAMPLE_BYTES].decode("utf-8", errors="ignore")
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    try:
        records = [record for record in islice(reader, _SAMPLE_RECORDS) if record]
    except csv.Error:
        return False
    if cut and len(records) > 1 and len(records) < _SAMPLE_RECORDS:
        records.pop()
    # A delimiter at the end of every row makes one field more, too.
    return (
        bool(records)
        and all(len(record) == len(header) + 1 for record in records)
        and any(record[-1].strip() for record in records)
    )


def row_lines(data: bytes, start: int, n_header_lines: int, n_rows: int) -> NDArray[np.int64] | None:
    """Return the line on which each row begins, counted from 1; None where it cannot be told."""
    n_lines = data.count(b"\n", start) + (not data.endswith(b"\n"))
    if n_lines == n_rows:
        return np.arange(n_header_lines + 1, n_header_lines + 1 + n_rows, dtype=np.int64)
    octets = np.frombuffer(data, dtype=np.uint8, offset=start)
    ends = np.flatnonzero(octets == _LINE_FEED)
    if octets[-1] != _LINE_FEED:
        ends = np.append(ends, octets.size)
    begins = np.concatenate([[0], ends[:-1] + 1])
    quotes = np.flatnonzero(octets == _QUOTE)
    inside = np.searchsorted(quotes, begins) % 2 == 1
    length = ends - begins
    blank = (length == 0) | ((length == 1) & (octets[begins % octets.size] == _CARRIAGE_RETURN))
    rows = np.flatnonzero(~inside & ~blank)
    return rows + n_header_lines + 1 if rows.size == n_rows else None


def find_ragged(data: bytes, delimiter: str, n_columns: int) -> tuple[int, int] | None:
    """Return the line and the number of fields of the first record without `n_columns` fields; None without such.

    The slow way, for the message only: the fast parser does not know lines.
    """
    reader = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), delimiter=delimiter)
    line = 1
    try:
        for record in reader:
            if record and len(record) != n_columns:
                return line, len(record)
            line = reader.line_num + 1
    except csv.Error:
        return None
    return None


def find_open_quote(data: bytes, delimiter: str) -> int | None:
    """Return the line of the record in which a quote is opened and never closed; None without such."""
    if data.count(b'"') % 2 == 0:
        return None
    reader = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for _ in reader:
            line = reader.line_num + 1
    except csv.Error as error:
        return line if "unexpected end of data" in str(error) else None
    return None


_HEAD_BYTES = 1 << 16


def header_names(path: str | Path) -> tuple[str, ...]:
    """Return the column names of a CSV or Parquet file, or of the first one that a glob or a folder means.

    Stdin and everything that is no regular file has none, since reading it would take its data away or wait for it.
    """
    if str(path) in {"", "-"}:
        return ()
    location = find_files(path, str(path)).files[0][1]
    if not location.is_file():
        return ()
    with location.open("rb") as file:
        if file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC:
            return _parquet_names(file)
        file.seek(0)
        head = head_of(file, _HEAD_BYTES)
    return _csv_names(head)


def _parquet_names(file: IO[bytes]) -> tuple[str, ...]:
    """Return the names in the schema, which stands at the end of the file."""
    from pyarrow import parquet  # noqa: PLC0415 - 90 ms that a CSV does not need

    return tuple(parquet.read_schema(file).names)


def _json_names(head: bytes) -> tuple[str, ...]:
    """Return the names in the first object of JSON lines."""
    try:
        return tuple(json.loads(head.split(b"\n", 1)[0]))
    except ValueError:
        return ()


def _csv_names(head: bytes) -> tuple[str, ...]:
    """Return the names in the first record of the beginning of a CSV file."""
    # A line that the beginning cuts may end within a character.
    if format_of_head(head) == "json":
        return _json_names(head)
    text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="ignore").encode("utf-8")
    try:
        text, separator = split_separator(text)
        fields, _, _ = split_header(text, separator or sniff_delimiter(text))
    except csv.Error:
        return ()
    names = [field.strip() or f"unnamed_{position}" for position, field in enumerate(fields, start=1)]
    # A first column without a name is an index.
    return tuple(names[1:] if len(names) > 1 and not fields[0].strip() else names)


_EXPONENT = r"(?:[eE][+-]?\d+)?"
# Neither reading takes a number with a leading zero such as 007,5: that is a name.
_WHOLE = r"(?:0|[1-9]\d*)"


@dataclass(frozen=True, slots=True)
class _Notation:
    """One way to write numbers: the mark before the fraction, and the one between groups of thousands."""

    decimal: str
    thousands: str

    def matcher(self) -> Callable[[str], re.Match[str] | None]:
        """Return the function that says whether a text is a number in this notation."""
        point, group = re.escape(self.decimal), re.escape(self.thousands)
        whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|{_WHOLE})"
        number = rf"[ \t]*[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+){_EXPONENT}[ \t]*"
        return re.compile(number, re.ASCII).fullmatch

    def value(self, text: str) -> float:
        """Return the number that a text in this notation is."""
        return float(text.replace(self.thousands, "").replace(self.decimal, "."))


_NOTATIONS = {",": _Notation(",", "."), ".": _Notation(".", ",")}
# 1,234 and 1.234: a fraction of three digits or a group of three.
_EITHER = {
    mark: re.compile(rf"[ \t]*[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}[ \t]*", re.ASCII).fullmatch for mark in ",."
}


def read_numerals(
    columns: Sequence[Column],
    table: Table,
    decimal: Decimal,
    as_typed: Callable[[Sequence[str]], Sequence[Column]],
) -> list[Column]:
    """Return the columns with those as numbers that are numbers in another notation, and remarks on them."""
    if decimal == "auto" and table.delimiter == ",":
        return list(columns)
    mark = "," if decimal == "auto" else decimal
    read = {column.name: _in_notation(column, table, mark) for column in columns if column.kind == "text"}
    found = {name: column for name, column in read.items() if column is not None}
    texts = {column.name: column for column in columns if column.name in found}
    sure = [name for name, column in texts.items() if _holds(column, mark) and not _is_ambiguous(column, mark)]
    if decimal == "auto" and not sure:
        # 1.234.567 alone may be the number of a version; beside a decimal comma it is 1234567.
        found = {name: column for name, column in found.items() if _holds(texts[name], mark)}
    if mark == "," and (sure or decimal == ","):
        # In such a file 1.234 is 1234 unless its column says otherwise, and so the parser took it for a fraction.
        pointed = [column.name for column in columns if column.kind == "number" and _has_fractions(column)]
        for column in as_typed(pointed) if pointed else ():
            if _is_ambiguous(column, ".") and (in_thousands := _in_notation(column, table, ",")) is not None:
                found[column.name], texts[column.name] = in_thousands, column
    if decimal == "auto":
        found = {
            name: replace(column, remarks=(_remark(texts[name]),)) if column.kind == "number" else column
            for name, column in found.items()
        }
    return [found.get(column.name, column) for column in columns]


def _has_fractions(column: Column) -> bool:
    """Say whether some number of the column is not whole."""
    present = column.values[np.isfinite(column.values)]
    return bool(np.any(present != np.floor(present)))


def _holds(column: Column, mark: str) -> bool:
    """Say whether the mark stands in some value of a text column."""
    return any(mark in level for level in column.levels)


def _is_ambiguous(column: Column, mark: str) -> bool:
    """Say whether the mark, wherever it stands in a column of text, could be decimal or between thousands."""
    marked = [level for level in column.levels if mark in level or _NOTATIONS[mark].thousands in level]
    return bool(marked) and all(map(_EITHER[mark], marked))


def _in_notation(column: Column, table: Table, mark: str) -> Column | None:
    """Return the text column as numbers; with a problem where less than half are none, and None where more are none.

    Only a column in which the notation shows is taken: one with a comma before a fraction, say.
    """
    notation = _NOTATIONS[mark]
    is_numeral = notation.matcher()
    counts = present_counts(column, table.na)
    total = int(counts.sum())
    numbers = np.full(len(column.levels) + 1, np.nan)
    strange: list[int] = []
    n_strange = 0
    shows = contradicts = False
    for index, level in enumerate(column.levels):
        if is_numeral(level):
            numbers[index] = notation.value(level)
            shows = shows or notation.decimal in level or notation.thousands in level
            continue
        if not counts[index]:
            continue
        strange.append(index)
        n_strange += int(counts[index])
        # Other numbers among the strange values may say that this is not the notation.
        contradicts = contradicts or is_number(level) or has_comma(level)
        if 2 * n_strange >= total or (contradicts and n_strange > (1 - NEARLY_ALL) * total + 1e-9):
            return None
    if not shows:
        return None
    if strange:
        return replace(column, problem=stray_problem(column, table, strange, total - n_strange, total))
    return Column(column.name, "number", numbers[column.values])


def _remark(text: Column) -> Remark:
    """Return what is told of a column of text that was read as numbers with a decimal comma: sure, or a guess."""
    commas, points = _NOTATIONS[","], _NOTATIONS["."]
    for mark in ",.":
        if _is_ambiguous(text, mark):
            example = _example(text, mark)
            return Remark(
                f"{example} in column {text.name!r} was read as {commas.value(example):.15g}, but could be "
                f"{points.value(example):.15g}; --decimal . reads it so, --exclude {option_value([text.name])} leaves the "
                "column out"
            )
    example = _example(text, ",.")
    return Remark("numbers with a decimal comma were read as such", f"{example} is {commas.value(example):.15g}")


def _example(column: Column, marks: str) -> str:
    """Return the first value of a text column with one of the marks in it."""
    return next(level for level in column.levels if any(mark in level for mark in marks)).strip()
