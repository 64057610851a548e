"""What can be told about a CSV file from its text alone: delimiter, header, and the line on which each row begins."""

from __future__ import annotations

import csv
import io
import re
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

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

    Parameters
    ----------
    data : bytes
        UTF-8 text from the header on; the first 64 KiB and 100 records are looked at.
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

    Raises
    ------
    csv.Error
        The first record does not end within reason.
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
    """Say whether the rows begin with a name that the header has no name for, as R writes them.

    Parameters
    ----------
    header : sequence of str
    rows : bytes
        UTF-8 text below the header; the first 64 KiB and 100 records are looked at.
    delimiter : str
    """
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
    """Return the line on which each row begins, counted from 1; None where it cannot be told.

    Parameters
    ----------
    data : bytes
        The text.
    start : int
        Where the header ends.
    n_header_lines : int
        Lines up to there.
    n_rows : int
        Rows that the parser found.

    Notes
    -----
    A file without quoted newlines and blank lines has as many lines as rows. Otherwise a newline ends a row when an
    even number of quotes stands before it. Cost: O(bytes) time.
    """
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
