"""CSV files as text: checked, with their headers told from their rows, and several laid one below the other."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np

from kerntest.data.formats.dialect import (
    AS_USUAL,
    CsvOptions,
    find_open_quote,
    find_ragged,
    names_rows,
    ragged_hint,
    row_lines,
    sniff_delimiter,
    split_header,
    split_separator,
)
from kerntest.data.messages import counted, listed
from kerntest.data.table import no_header_hint
from kerntest.engines.plan import BYTES_A_VALUE, bytes_to_read, refuse_to_read
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_VISIBLE = re.compile(rb"\S")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Octets that Windows uses for quotes and the euro sign, and Latin-1 for control characters.
_WINDOWS_ONLY = re.compile(rb"[\x80-\x9f]")


@dataclass(frozen=True, slots=True)
class CsvPart:
    """One file: its text, and where in it the header ends."""

    name: str
    data: bytes
    header: tuple[str, ...]
    start: int
    n_header_lines: int

    @property
    def has_rows(self) -> bool:
        """Whether anything stands below the header."""
        return _VISIBLE.search(self.data, self.start) is not None

    @property
    def n_lines_of_rows(self) -> int:
        """Lines below the header, 0 where they are all blank."""
        return self.data.count(b"\n", self.start) + (not self.data.endswith(b"\n")) if self.has_rows else 0


def read_parts(
    contents: Sequence[tuple[str, bytes]], options: CsvOptions = AS_USUAL
) -> tuple[tuple[CsvPart, ...], str]:
    """Return the files as text, and the delimiter, which is the first one's."""
    parts: list[CsvPart] = []
    delimiter, size, n_values = ",", 0, 0
    for name, content in contents:
        plain = b"".join(utf8_lines(io.BytesIO(content), name, options)) if options.transcodes else content
        data, separator = split_separator(_checked_text(name, plain))
        if not parts:
            delimiter = options.delimiter or separator or sniff_delimiter(data)
        if bytes_to_read() is not None:
            n_values += data.count(delimiter.encode()) + data.count(b"\n")
            size += len(data)
            refuse_to_read(size + BYTES_A_VALUE * n_values, name)
        _refuse_open_quote(data, delimiter, name)
        parts.append(_split(name, data, delimiter, header=options.header))
        if _stripped(parts[-1]) != _stripped(parts[0]):
            raise _headers_differ(parts[0], parts[-1], delimiter)
    return tuple(parts), delimiter


def _stripped(part: CsvPart) -> list[str]:
    """Return the fields of the header without blanks around them."""
    return [field.strip() for field in part.header]


def _headers_differ(first: CsvPart, other: CsvPart, delimiter: str) -> DataError:
    """Return the error for a file whose header is not that of the first."""
    names, others = _stripped(first), _stripped(other)
    lacking = [name for name in names if name not in others]
    added = [name for name in others if name and name not in names]
    if lacking or added:
        pieces = [f"it lacks {listed(lacking, 5)}"] * bool(lacking) + [f"it has {listed(added, 5)}"] * bool(added)
    else:
        pieces = ["the columns stand in another order"]
    own = sniff_delimiter(other.data)
    if own != delimiter:
        pieces.append(f"its delimiter seems to be {own!r}, not {delimiter!r}")
    return DataError(
        f"{other.name} has another header than {first.name}: {'; '.join(pieces)}",
        hint=no_header_hint(lacking, added) or "files that are read together need one header and one delimiter",
        code="data.headers_differ",
        where={"file": other.name, "line": 1},
    )


def header_of(data: bytes, delimiter: str, *, header: bool) -> tuple[tuple[str, ...], int, int]:
    """Return the names of the columns, where the rows begin, and how many lines stand before them.

    Without a header the columns are x1, x2 and so on. Row names for which the header has no name, as R writes them, have
    the empty name.
    """
    fields, start, n_lines = split_header(data, delimiter)
    if not header:
        return tuple(f"x{number}" for number in range(1, len(fields) + 1)), 0, 0
    return (*[""] * names_rows(fields, data[start : start + (1 << 17)], delimiter), *fields), start, n_lines


def utf8_lines(stream: IO[bytes], name: str, options: CsvOptions) -> Iterator[bytes]:
    """Yield the lines of a text as UTF-8; comments are blank, so that lines keep their numbers."""
    done, quoted = 0, False
    text = io.TextIOWrapper(stream, options.encoding or "utf-8-sig", newline="")
    try:
        for line in text:
            if options.comment is not None and not quoted and line.startswith(options.comment):
                yield line[len(line.rstrip("\r\n")) :].encode()
            else:
                quoted ^= line.count('"') % 2 == 1
                yield line.encode()
            done += 1
    except UnicodeError as error:
        raise DataError(
            f"{name} is not {options.encoding or 'UTF-8'} text, in line {done + 1} or after it",
            hint="--encoding names the encoding, such as latin-1 or utf-16",
            code="data.not_in_encoding",
            where={"file": name, "line": done + 1},
        ) from error
    finally:
        # The stream is closed by its owner.
        text.detach()


def _split(name: str, data: bytes, delimiter: str, *, header: bool) -> CsvPart:
    """Tell the header of one file from its rows."""
    try:
        names, start, n_header_lines = header_of(data, delimiter, header=header)
    except csv.Error as error:
        raise DataError(
            f"the header of {name} cannot be read: it does not end, or a carriage return stands in it",
            hint="the first line names the columns; every line should end in the same way",
            code="data.malformed_csv",
            where={"file": name, "line": 1},
        ) from error
    return CsvPart(name, data, names, start, n_header_lines)


def joined_rows(parts: Sequence[CsvPart]) -> tuple[bytes, int]:
    """Return the text of all rows, and where in it they begin; one file is not copied."""
    if len(parts) == 1:
        return parts[0].data, parts[0].start
    rows = (part.data[part.start :] for part in parts if part.has_rows)
    return b"".join(text if text.endswith(b"\n") else text + b"\n" for text in rows), 0


def row_places(
    parts: Sequence[CsvPart], rows: bytes, n_rows: int
) -> tuple[NDArray[np.int64] | None, NDArray[np.int32] | None]:
    """Return the line on which each row begins, and of several files which one; None where it cannot be told."""
    if len(parts) == 1:
        return row_lines(rows, parts[0].start, parts[0].n_header_lines, n_rows), None
    lines = row_lines(rows, 0, 0, n_rows)
    if lines is None:
        return None, None
    lengths = np.array([part.n_lines_of_rows for part in parts], dtype=np.int64)
    ends = np.cumsum(lengths)
    file_of = np.searchsorted(ends, lines, side="left")
    header_lines = np.array([part.n_header_lines for part in parts], dtype=np.int64)
    return lines + (header_lines - ends + lengths)[file_of], file_of.astype(np.int32)


def _checked_text(name: str, data: bytes) -> bytes:
    """Return the bytes without byte order mark, once they are known to be UTF-8 text that is not blank."""
    where: dict[str, str | int] = {"file": name}
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(
            f"{name} is UTF-16, not UTF-8",
            hint="--encoding utf-16 reads it",
            code="data.not_utf8",
            where=where,
        )
    if b"\0" in data:
        raise DataError(
            f"{name} is neither CSV nor Parquet: it holds binary data",
            hint="CSV is UTF-8 text; Parquet begins with the letters PAR1",
            code="data.not_text",
            where=where,
        )
    if not data.isascii():
        _check_utf8(data, name)
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if not _VISIBLE.search(data):
        raise DataError(f"{name} is empty", hint="it has no text", code="data.empty_file", where=where)
    # Lines of old Macintosh files end in a carriage return alone.
    return data if b"\n" in data else data.replace(b"\r", b"\n")


def _check_utf8(data: bytes, name: str) -> None:
    """Refuse bytes that are not UTF-8: pyarrow would take a Latin-1 column for binary without a word."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        encoding, title = ("windows-1252", "Windows-1252") if _WINDOWS_ONLY.search(data) else ("latin-1", "Latin-1")
        raise DataError(
            f"{name}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8",
            hint=f"if it is {title}, --encoding {encoding} reads it",
            code="data.not_utf8",
            where={"file": name, "line": line},
        ) from error


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


def expected_from(n_fields: int, *, header: bool) -> str:
    """Say where the number of fields was taken from."""
    return (
        f"the header has {counted(n_fields, 'name')}" if header else f"the first row has {counted(n_fields, 'field')}"
    )


def malformed(
    parts: Sequence[CsvPart], delimiter: str, table_name: str, error: Exception, *, header: bool
) -> DataError:
    """Return the error for text that Arrow cannot parse, with the file and line that Arrow does not tell."""
    expected = len(parts[0].header)
    for part in parts:
        ragged = find_ragged(part.data, delimiter, expected)
        if ragged is not None:
            line, found = ragged
            return DataError(
                f"{part.name}, line {line}: expected {counted(expected, 'field')}, found {found:,}",
                hint=ragged_hint(part.data, delimiter, expected_from(expected, header=header)),
                code="data.ragged_rows",
                where={"file": part.name, "line": line},
            )
    return DataError(
        f"{table_name} is malformed CSV: {str(error).splitlines()[0]}",
        hint="open it in a text editor, or write it anew",
        code="data.malformed_csv",
        where={"file": table_name},
    )
