"""How a CSV file is written: options, delimiter, header, and what of its text cannot be read."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypedDict, cast

from kerntest.data.columns import Patterns, split_patterns
from kerntest.data.source import PARQUET_MAGIC, find_files, format_of_head, head_of, open_file, unpacked_stream
from kerntest.data.table import MISSING, no_header_hint
from kerntest.engines.engine import BYTES_A_VALUE, bytes_to_read, refuse_to_read
from kerntest.errors import DataError, UsageError, counted, listed, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO, Unpack

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
        for word in words:
            if word not in CsvWords.__annotations__:
                raise TypeError(f"unexpected keyword argument {word!r}")
        given = cls(**cast("Any", words))
        if given.decimal not in DECIMALS:
            close = suggest(str(given.decimal), DECIMALS)
            raise _refused(
                f"decimal must be auto, '.' or ',', not {given.decimal!r}",
                f"did you mean {close!r}?" if close else "auto tells it from the values",
                given.decimal,
            )
        comment = given.comment or None
        if comment is not None and set(comment) & set('\n\r"'):
            raise _refused(f"comment must be a few characters such as #, not {comment!r}", "# is usual", comment)
        na = MISSING if words.get("na") is None else tuple(dict.fromkeys(split_patterns(words.get("na"))))
        delimiter, encoding = _delimiter(given.delimiter), _encoding(given.encoding)
        return replace(given, na=na, delimiter=delimiter, encoding=encoding, comment=comment)

    def words(self) -> CsvWords:
        """Return the keyword arguments that mean these options."""
        return cast("CsvWords", asdict(self))


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
    try:
        # Of the codecs some are no encodings: only text becomes bytes.
        "a".encode(name or "utf-8")
    except (LookupError, ValueError, TypeError):
        close = suggest(str(name).casefold(), _ENCODINGS)
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
_VISIBLE = re.compile(rb"\S")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Octets that Windows uses for quotes and the euro sign, and Latin-1 for control characters.
_WINDOWS_ONLY = re.compile(rb"[\x80-\x9f]")


def _first_records(data: bytes, delimiter: str) -> list[list[str]]:
    """Return the first records that are not blank, without the last where the sample may cut it."""
    sample = io.StringIO(data[:_SAMPLE_BYTES].decode("utf-8", errors="ignore"), newline="")
    records = list(islice(filter(None, csv.reader(sample, delimiter=delimiter)), _SAMPLE_RECORDS + 1))
    cut = len(data) > _SAMPLE_BYTES and 1 < len(records) <= _SAMPLE_RECORDS
    return records[:-1] if cut else records


def sniff_delimiter(data: bytes) -> str:
    """Return the delimiter that splits the first lines most consistently; comma where none does.

    `csv.Sniffer` fails on files of one column and may answer with a letter; here there are four candidates, and
    the one wins under which most records have as many fields as the header, then the one with more fields.
    """

    def score(delimiter: str) -> tuple[float, int]:
        width, *widths = map(len, _first_records(data, delimiter) or [[]])
        if width < 2:
            return 0.0, 1
        return (sum(other == width for other in widths) / len(widths) if widths else 1.0), width

    return max(DELIMITERS, key=score)


def split_separator(data: bytes) -> tuple[bytes, str | None]:
    """Return the text without Excel's first line, such as ``sep=;``, of which the end stays, and the delimiter it names."""
    found = _SEPARATOR.match(data)
    return (data, None) if found is None else (data[found.end() :], found[1].decode())


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
    header = next((record for record in reader if any(map(str.strip, record)) or len(record) > 1), [])
    return header, consumed, reader.line_num


def _names_rows(header: Sequence[str], rows: bytes, delimiter: str) -> bool:
    """Say whether the rows begin with a name that the header has no name for, as R writes them."""
    try:
        records = _first_records(rows, delimiter)
    except csv.Error:
        return False
    # A delimiter at the end of every row makes one field more, too.
    return any(record[-1].strip() for record in records) and {*map(len, records)} == {len(header) + 1}


@dataclass(frozen=True, slots=True, eq=False)
class CsvFile:
    """One file: its text, or where that is stored, and where in it the header ends."""

    name: str
    data: bytes
    delimiter: str
    header: tuple[str, ...] = ()
    start: int = 0
    n_header_lines: int = 0
    location: Path | None = None

    @contextmanager
    def opened(self, start: int, seen: list[BinaryIO] | None = None) -> Iterator[IO[bytes]]:
        """Open the text from `start` on; `seen` gets the file as stored, whose position tells how far one is."""
        if self.location is None:
            whole = io.BytesIO(self.data)
            whole.seek(start)
            yield whole
            return
        with open_file(self.location, self.name) as file:
            if seen is not None:
                seen[:] = [file]
            stream = unpacked_stream(file, self.name)
            while start and (head := stream.read(min(start, 1 << 20))):
                start -= len(head)
            yield stream

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the records below the header that are not blank, with the lines on which they begin."""
        with self.opened(self.start) as stream:
            reader = self._reader(stream)
            line = self.n_header_lines + 1
            for record in reader:
                if record:
                    yield line, record
                line = self.n_header_lines + reader.line_num + 1

    def _reader(self, stream: IO[bytes], *, strict: bool = False) -> Any:
        return csv.reader(
            io.TextIOWrapper(stream, "utf-8", "surrogateescape", newline=""), delimiter=self.delimiter, strict=strict
        )

    def refuse_open_quote(self) -> None:
        """Refuse a quote that is never closed: the parser would take the rest of the file for one value."""
        with self.opened(self.start) as stream:
            reader, line = self._reader(stream, strict=True), self.n_header_lines + 1
            try:
                for _ in reader:
                    line = self.n_header_lines + reader.line_num + 1
            except csv.Error as error:
                if "unexpected end of data" in str(error):
                    raise DataError(
                        f"{self.name}, line {line}: a quote is opened and never closed",
                        hint='close it, or double it (""), or quote the whole field',
                        code="data.open_quote",
                        where={"file": self.name, "line": line},
                    ) from None

    def refuse_ragged(self, *, header: bool) -> None:
        """Refuse a row that has not as many fields as the header, or as the first row; slow, for the message."""
        expected = len(self.header)
        try:
            line, found = next(((line, len(row)) for line, row in self.records() if len(row) != expected), (0, 0))
        except csv.Error:
            return
        if not line:
            return
        said = counted(expected, "name" if header else "field")
        said = f"the {'header' if header else 'first row'} has {said}"
        with self.opened(0) as stream:
            comments = any(text.startswith(b"#") for text in stream)
        raise DataError(
            f"{self.name}, line {line}: expected {counted(expected, 'field')}, found {found:,}",
            hint=f"if lines that begin with # are comments, --comment '#' leaves them out; {said}"
            if comments
            else f"{said}; the delimiter was taken to be {self.delimiter!r}",
            code="data.ragged_rows",
            where={"file": self.name, "line": line},
        )


def malformed_csv(files: Sequence[CsvFile], name: str, error: Exception, *, header: bool) -> DataError:
    """Return the error for text that Arrow cannot parse, with the file and line that Arrow does not tell."""
    try:
        for file in files:
            n_quotes = 0
            with file.opened(0) as stream:
                for number, line in enumerate(stream):
                    _refuse_not_utf8(file.name, line, number)
                    n_quotes += line.count(b'"')
            if n_quotes % 2:
                file.refuse_open_quote()
            file.refuse_ragged(header=header)
    except DataError as found:
        return found
    return DataError(
        f"{name} is malformed CSV: {str(error).splitlines()[0]}",
        hint="open it in a text editor, or write it anew",
        code="data.malformed_csv",
        where={"file": name},
    )


def csv_files(contents: Iterable[tuple[str, bytes]], options: CsvOptions = AS_USUAL) -> list[CsvFile]:
    """Return files that are read as one table; the delimiter is the first one's."""
    files: list[CsvFile] = []
    size = 0
    for name, content in contents:
        plain = b"".join(utf8_lines(io.BytesIO(content), name, options)) if options.transcodes else content
        files.append(csv_file(name, plain, options, files[0] if files else None))
        if bytes_to_read() is not None:
            n_values = plain.count(files[0].delimiter.encode()) + plain.count(b"\n")
            size += len(plain) + BYTES_A_VALUE * n_values
            refuse_to_read(size, name)
    return files


def csv_file(name: str, content: bytes, options: CsvOptions, first: CsvFile | None, *, whole: bool = True) -> CsvFile:
    """Return a file from its text or the beginning of it; refuse what is no text, and a header unlike that of the first."""
    data, separator = split_separator(_checked_text(name, content))
    delimiter = first.delimiter if first else options.delimiter or separator or sniff_delimiter(data)
    file = CsvFile(name, data, delimiter)
    if whole and data.count(b'"') % 2:
        file.refuse_open_quote()
    try:
        fields, start, n_lines = split_header(data, delimiter)
    except csv.Error as error:
        raise DataError(
            f"the header of {name} cannot be read: it does not end, or a carriage return stands in it",
            hint="the first line names the columns; every line should end in the same way",
            code="data.malformed_csv",
            where={"file": name, "line": 1},
        ) from error
    if not fields:
        raise _empty(name)
    if options.header:
        # Row names for which the header has no name, as R writes them, have the empty name.
        unnamed = [""] * _names_rows(fields, data[start : start + 2 * _SAMPLE_BYTES], delimiter)
        file = replace(file, header=(*unnamed, *fields), start=start, n_header_lines=n_lines)
    else:
        file = replace(file, header=tuple(f"x{number}" for number in range(1, len(fields) + 1)))
    if first is not None:
        _refuse_other_header(first, file)
    return file


def _refuse_other_header(first: CsvFile, other: CsvFile) -> None:
    """Refuse a file whose header is not that of the first, but for blanks around the names."""
    names, others = ([field.strip() for field in file.header] for file in (first, other))
    if names == others:
        return
    lacking = [name for name in names if name not in others]
    added = [name for name in others if name and name not in names]
    pieces = [f"{verb} {listed(some, 5)}" for verb, some in (("it lacks", lacking), ("it has", added)) if some]
    pieces = pieces or ["the columns stand in another order"]
    own = sniff_delimiter(other.data)
    if own != first.delimiter:
        pieces.append(f"its delimiter seems to be {own!r}, not {first.delimiter!r}")
    raise DataError(
        f"{other.name} has another header than {first.name}: {'; '.join(pieces)}",
        hint=no_header_hint(lacking, added) or "files that are read together need one header and one delimiter",
        code="data.headers_differ",
        where={"file": other.name, "line": 1},
    )


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


def _checked_text(name: str, data: bytes) -> bytes:
    """Return the bytes without byte order mark, once they are known to be UTF-8 text that is not blank."""
    where: dict[str, str | int] = {"file": name}
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        hint = "--encoding utf-16 reads it"
        raise DataError(f"{name} is UTF-16, not UTF-8", hint=hint, code="data.not_utf8", where=where)
    if b"\0" in data:
        raise DataError(
            f"{name} is neither CSV nor Parquet: it holds binary data",
            hint="CSV is UTF-8 text; Parquet begins with the letters PAR1",
            code="data.not_text",
            where=where,
        )
    _refuse_not_utf8(name, data)
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if not _VISIBLE.search(data):
        raise _empty(name)
    # Lines of old Macintosh files end in a carriage return alone.
    return data if b"\n" in data else data.replace(b"\r", b"\n")


def _empty(name: str) -> DataError:
    return DataError(f"{name} is empty", hint="it has no text", code="data.empty_file", where={"file": name})


def _refuse_not_utf8(name: str, data: bytes, n_lines_before: int = 0) -> None:
    """Refuse bytes that are not UTF-8: pyarrow would take a Latin-1 column for binary without a word."""
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = n_lines_before + data.count(b"\n", 0, error.start) + 1
        encoding, title = ("windows-1252", "Windows-1252") if _WINDOWS_ONLY.search(data) else ("latin-1", "Latin-1")
        raise DataError(
            f"{name}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8",
            hint=f"if it is {title}, --encoding {encoding} reads it",
            code="data.not_utf8",
            where={"file": name, "line": line},
        ) from error


def header_names(path: str | Path) -> tuple[str, ...]:
    """Return the column names of a CSV or Parquet file, or of the first one that a glob or a folder means.

    Stdin and everything that is no regular file has none, since reading it would take its data away or wait for it.
    """
    location = find_files(path, str(path)).files[0][1] if str(path) not in {"", "-"} else Path()
    if not location.is_file():
        return ()
    with location.open("rb") as file:
        if file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC:
            from pyarrow import parquet  # noqa: PLC0415 - 90 ms that a CSV does not need

            return tuple(parquet.read_schema(file).names)
        file.seek(0)
        head = head_of(file, _SAMPLE_BYTES)
    try:
        if format_of_head(head) == "json":
            return tuple(json.loads(head.split(b"\n", 1)[0]))
        # A line that the beginning cuts may end within a character.
        head = head.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", errors="ignore").encode("utf-8")
        text, separator = split_separator(head)
        fields, _, _ = split_header(text, separator or sniff_delimiter(text))
    except (csv.Error, ValueError):
        return ()
    names = [field.strip() or f"unnamed_{position}" for position, field in enumerate(fields, start=1)]
    # A first column without a name is an index.
    return tuple(names[1:] if len(names) > 1 and not fields[0].strip() else names)
