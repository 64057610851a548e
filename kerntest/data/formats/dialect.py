"""How a CSV file is written: options, delimiter, header, where its rows end, and what of its text cannot be read."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypedDict, cast

import numpy as np

from kerntest.data.columns import Patterns, split_patterns
from kerntest.data.row_choice import RowChoice
from kerntest.data.source import find_files, format_of_head, head_of, open_file, unpacked_stream
from kerntest.data.table import MISSING, Remark, comment_hint, no_header_hint, refuse_duplicates, told_apart
from kerntest.data.written_values import is_number
from kerntest.dataclass import dataclass
from kerntest.errors import DataError, UsageError, bad_file, counted, option, shown_argument, suggest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from typing import Unpack

    from numpy.typing import NDArray

Decimal = Literal["auto", ".", ","]
DECIMALS: tuple[Decimal, ...] = ("auto", ".", ",")
_WORDS = ("tab", "space", "comma", "semicolon", "bar")
_NAMED = dict(zip((*_WORDS, "\\t"), "\t ,;|\t", strict=True))
_USUAL = {"delimiter": ";", "encoding": "latin-1", "comment": "#"}
_ENCODINGS = ("utf-8", "latin-1", "windows-1252", "utf-16", "iso-8859-15", "shift-jis", "gb18030")


class CsvWords(TypedDict, total=False):
    """The options of `CsvOptions` as keyword arguments, where there is a seed beside them."""

    decimal: Decimal
    na: Patterns
    delimiter: str | None
    encoding: str | None
    header: bool
    comment: str | None
    dayfirst: bool | None
    where: str | None
    sample: int | None


class SeededWords(CsvWords, total=False):
    """The options of `CsvOptions` as keyword arguments."""

    seed: int


@dataclass(frozen=True)
class CsvOptions:
    """How CSV is written; and which rows of any table are read, as `RowChoice` has it."""

    decimal: Decimal = "auto"
    na: tuple[str, ...] = MISSING
    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True
    comment: str | None = None
    dayfirst: bool | None = None
    where: str | None = None
    sample: int | None = None
    seed: int = 0

    @property
    def choice(self) -> RowChoice:
        """Which rows are read."""
        return RowChoice(self.where, self.sample, self.seed)

    @property
    def transcodes(self) -> bool:
        """Whether the bytes are not the text in UTF-8 without comments, and with one delimiter between fields."""
        return self.encoding is not None or self.comment is not None or self.delimiter == " "

    @classmethod
    def of(cls, **words: Unpack[SeededWords]) -> CsvOptions:
        """Return the options that keyword arguments mean."""
        if all(vars(AS_USUAL).get(word, words) is value for word, value in words.items()):
            return AS_USUAL
        for word in ("delimiter", "encoding", "comment"):
            if not isinstance(typed := words.get(word), str | None):
                odd = f"{word} must be text, not {shown_argument(typed)}"
                raise UsageError(odd, hint=f"write {word}={_USUAL[word]!r}, or leave it out", code="usage.choice")
        if not isinstance(words.get("header", True), bool):
            odd = f"header must be True or False, not {shown_argument(words.get('header'))}"
            raise UsageError(odd, hint="by default the first line names the columns", code="usage.choice")
        if not isinstance(words.get("dayfirst"), bool | None):
            odd = f"dayfirst must be True, False or None, not {shown_argument(words.get('dayfirst'))}"
            raise UsageError(odd, hint="by default the values tell", code="usage.choice")
        given = cls(**cast("Any", words))
        comment, encoding = given.comment or None, given.encoding
        delimiter = None if given.delimiter is None else _NAMED.get(given.delimiter.casefold(), given.delimiter)
        close = None if encoding is None else suggest(str(encoding).casefold(), _ENCODINGS)
        wrong = {
            "decimal": (not isinstance(given.decimal, str) or given.decimal not in DECIMALS)
            and (
                f"decimal must be auto, '.' or ',', not {shown_argument(given.decimal)}",
                "auto tells it from the values",
            ),
            "comment": set(comment or "") & set('\n\r"')
            and (f"comment must be a few characters such as #, not {comment!r}", "# is usual"),
            "delimiter": delimiter is not None
            and (len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '"\n\r\0.+-_')
            and (
                f"delimiter must be one character such as ; or one of {', '.join(_WORDS)}, not {delimiter!r}",
                "leave it out, and it is found by looking at the first rows",
            ),
            "encoding": not _is_encoding(encoding or "utf-8")
            and (
                f"no encoding is called {encoding!r}",
                f"did you mean {close!r}?" if close else f"known are, among others, {', '.join(_ENCODINGS)}",
            ),
        }
        # The first that the caller names is told.
        for word, value in words.items():
            if told := wrong.get(word):
                raise UsageError(told[0], hint=told[1], code="usage.choice", where={"value": str(value)})
        given.choice.check()
        na = MISSING if words.get("na") is None else tuple(dict.fromkeys(split_patterns(words.get("na"))))
        return replace(given, na=na, delimiter=delimiter, comment=comment)

    def words(self) -> SeededWords:
        """Return the keyword arguments that mean these options."""
        return cast("SeededWords", dict(vars(self)))


def _is_encoding(name: str) -> bool:
    """Say whether text becomes bytes by this codec."""
    try:
        return bool("a".encode(name))
    except (LookupError, ValueError, TypeError):
        return False


AS_USUAL = CsvOptions()


DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_BYTES = 65_536
_SAMPLE_RECORDS = 100
_SEPARATOR = re.compile(rb"\"?sep=([^\w\s\".+-]|\t| )\1*\"?[ \t]*(?=\r?\n)", re.IGNORECASE)
VISIBLE = re.compile(rb"\S")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Octets that Windows uses for quotes and the euro sign, and Latin-1 for control characters.
_WINDOWS_ONLY = re.compile(rb"[\x80-\x9f]")
# What Orange calls the types of columns, and their roles.
_ORANGE_TYPES = frozenset(b"c d s t continuous discrete string time".split())
_ORANGE_ROLES = frozenset([b"", *b"class meta ignore i m c weight".split()])
# A field between quotes, or spaces.
_SPACES = re.compile(r'(?<![^ ])("(?:[^"]|"")*")(?![^ ])| +')
# A share of quotes: others are typed wrongly, or escaped in another way.
_NEARLY_ALL = 0.9
_LINE_FEED, _CARRIAGE_RETURN, _QUOTE = b'\n\r"'


def _first_records(data: bytes, delimiter: str, **words: Any) -> list[list[str]]:
    """Return the first records that are not blank, without the last where the sample may cut it."""
    sample = io.StringIO(data[:_SAMPLE_BYTES].decode("utf-8", errors="ignore"), newline="")
    records = list(islice(filter(None, csv.reader(sample, delimiter=delimiter, **words)), _SAMPLE_RECORDS + 1))
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


def _has_blanks_before_quotes(data: bytes, delimiter: str) -> bool:
    """Say whether fields are quoted after a delimiter and blanks, as in ``1, "a, b", 2``.

    Nearly all quotes that follow blanks are closed before the next delimiter or line, and without these blanks all records
    have as many fields as the first.
    """
    if b' "' not in data[:_SAMPLE_BYTES]:
        return False
    mark = re.escape(delimiter.encode())
    quoted = re.finditer(b"(" + mark + rb' +)?"(?:[^"]|"")*"( *(?=[\r\n]|\Z|' + mark + b"))?", data[:_SAMPLE_BYTES])
    closed = [found[2] is not None for found in quoted if found[1]]
    if not closed or sum(closed) < _NEARLY_ALL * len(closed):
        return False
    spaced, as_it_is = (_first_records(data, delimiter, skipinitialspace=skips) for skips in (True, False))
    alike = [[field.lstrip(" ") for field in record] for record in as_it_is] == spaced
    return len({*map(len, spaced)}) == 1 and not alike


def _split_header(data: bytes, delimiter: str, *, spaced: bool) -> tuple[list[str], int, int]:
    """Return the fields of the first record that is not blank, where the bytes after it begin, and its last line."""
    lines = (line.decode("utf-8") for line in io.BytesIO(data))
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=spaced)
    header = next((record for record in reader if any(map(str.strip, record)) or len(record) > 1), [])
    return header, sum(map(len, islice(io.BytesIO(data), reader.line_num))), reader.line_num


def _typed_by_orange(text: bytes) -> int:
    """Return how many bytes below the names are the lines of Orange that give the type and the role of each column."""
    lines = list(islice(io.BytesIO(text), 2))
    if len(lines) < 2:
        return 0
    types, roles = ([field.strip().lower() for field in line.split(b"\t")] for line in lines)
    # Of a discrete one all values may stand there.
    typed = any(one in _ORANGE_TYPES for one in types) and all(
        one in _ORANGE_TYPES or b" " in one or not one for one in types
    )
    return sum(map(len, lines)) if typed and b"" in roles and _ORANGE_ROLES.issuperset(roles) else 0


def _names_rows(header: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Say whether the rows begin with a name that the header has no name for, as R writes them."""
    # A delimiter at the end of every row makes one field more, too.
    return any(record[-1].strip() for record in records) and {*map(len, records)} == {len(header) + 1}


def row_ends(text: bytes, delimiter: str, *, spaced: bool = False) -> NDArray[np.intp]:
    """Return where the line feeds stand that end a row: those that are not between quotes."""
    octets = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(octets == _LINE_FEED)
    if b'"' not in text:
        return ends
    quotes, beside = (
        np.flatnonzero(octets == _QUOTE),
        np.isin(np.arange(256), [*b'\n\r"', ord(delimiter), *(b" " * spaced)]),
    )
    opening, closing = quotes[::2], quotes[1::2]
    if beside[octets[opening[opening > 0] - 1]].all() and beside[octets[closing[closing < octets.size - 1] + 1]].all():
        return np.asarray(ends[np.searchsorted(quotes, ends) % 2 == 0])
    # Some open nothing, as in 5" pipe.
    lines = (line.decode("utf-8", "replace") for line in io.BytesIO(text))
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=spaced)
    try:
        numbers = [reader.line_num - 1 for _ in reader]
    except csv.Error:
        return ends[:0]
    return ends[[number for number in numbers if number < len(ends)]]


def row_lines(text: bytes, delimiter: str) -> NDArray[np.int64]:
    """Return the lines, counted from 0, on which rows begin; blank lines are none."""
    octets, feeds = np.frombuffer(text, dtype=np.uint8), row_ends(text, delimiter)
    begins = np.concatenate([[0], feeds + 1])
    lengths = np.append(feeds, octets.size) - begins
    blank = (lengths == 0) | ((lengths == 1) & (octets[begins % max(octets.size, 1)] == _CARRIAGE_RETURN))
    return np.asarray(np.searchsorted(np.flatnonzero(octets == _LINE_FEED), begins[~blank]))


@dataclass(frozen=True, eq=False)
class CsvFile:
    """One file: its text, or where that is stored, and where in it the header ends; with `spaced` blanks precede quotes.

    The header of a `typed` one has two lines more, as Orange writes it.
    """

    name: str
    data: bytes
    delimiter: str
    header: tuple[str, ...] = ()
    start: int = 0
    n_header_lines: int = 0
    location: Path | None = None
    spaced: bool = False
    typed: bool = False

    def unspaced(self, text: bytes) -> bytes:
        """Return rows without the blanks before quotes, where there are such."""
        if not self.spaced:
            return text
        before = rb"^ +(?=\")|(?<=" + re.escape(self.delimiter.encode()) + rb") +(?=\")"
        return re.sub(rb'("(?:[^"]|"")*")|' + before, lambda found: found[1] or b"", text, flags=re.MULTILINE)

    @property
    def below(self) -> bytes:
        """The text below the header."""
        return self.unspaced(self.data[self.start :])

    @contextmanager
    def opened(self, start: int) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """Open the text from `start` on, and the file as stored, whose position tells how far one is."""
        with io.BytesIO(self.data) if self.location is None else open_file(self.location, self.name) as file:
            stream = file if self.location is None else unpacked_stream(file, self.name)
            stream.read(start)
            yield stream, file

    def parts(self, size: int) -> Generator[tuple[int, bytes, int]]:
        """Yield the rows in parts of about this size: lines of the file before each, its text, and bytes read so far."""
        with self.opened(self.start) as (stream, stored):
            rest, line = b"", self.n_header_lines
            # A row longer than a part makes it longer.
            while more := stream.read(max(size, len(rest))):
                rest += more
                ends = row_ends(rest, self.delimiter, spaced=self.spaced) if b'"' in rest else [rest.rfind(b"\n")]
                if len(ends) and (cut := int(ends[-1]) + 1):
                    yield line, self.unspaced(rest[:cut]), stored.tell()
                    line += rest.count(b"\n", 0, cut)
                    rest = rest[cut:]
            if rest:
                yield line, self.unspaced(rest), stored.tell()

    def records(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield the records below the header that are not blank, with the lines on which they begin; slow, for messages.

        A quote that is never closed is refused: the rest of the file would be one value.
        """
        with self.opened(self.start) as (stream, _):
            text = io.TextIOWrapper(stream, "utf-8", "surrogateescape", newline="")
            reader = csv.reader(text, delimiter=self.delimiter, strict=strict, skipinitialspace=self.spaced)
            line = self.n_header_lines + 1
            # Nothing but the rest of a file behind a quote is longer; Python's own limit is 128 KB.
            usual = csv.field_size_limit(1 << 27)
            try:
                for record in reader:
                    if record:
                        yield line, record
                    line = self.n_header_lines + reader.line_num + 1
            except csv.Error as error:
                if "unexpected end of data" in str(error) or "field limit" in str(error):
                    hint = 'close it, or double it (""), or quote the whole field'
                    said = "a quote is opened and never closed"
                    raise bad_file(self.name, said, hint=hint, code="data.open_quote", line=line) from None
            finally:
                csv.field_size_limit(usual)

    def refuse_open_quote(self) -> None:
        """Refuse a quote that is never closed."""
        for _ in self.records(strict=True):
            pass

    def refuse_ragged(self, *, header: bool) -> None:
        """Refuse a row that has not as many fields as the header, or as the first row."""
        what, noun = ("header", "name") if header else ("first row", "field")
        hint, delimiter = f"the {what} has {counted(len(self.header), noun)}", f"taken to be {self.delimiter!r}"
        for line, row in self.records():
            if len(row) != len(self.header):
                comment = comment_hint(self.header) or comment_hint(row)
                hint = f"{comment}; {hint}" if comment else f"{hint}; the delimiter was {delimiter}"
                said = f"expected {counted(len(self.header), 'field')}, found {len(row):,}"
                raise bad_file(self.name, said, hint=hint, code="data.ragged_rows", line=line)


def csv_file(name: str, content: bytes, options: CsvOptions, first: CsvFile | None, *, whole: bool = True) -> CsvFile:
    """Return a file from its text or the beginning of it; refuse what is no text, and a header unlike that of the first."""
    data = _checked_text(name, content)
    # Excel names the delimiter in a first line such as ``sep=;``, of which the end stays.
    if separator := _SEPARATOR.match(data):
        data = data[separator.end() :]
    told = separator and separator[1].decode()
    delimiter = first.delimiter if first else options.delimiter or told or sniff_delimiter(data)
    spaced = _has_blanks_before_quotes(data, delimiter)
    file = CsvFile(name, data, delimiter, spaced=spaced)
    if whole and data.count(b'"') % 2:
        file.refuse_open_quote()
    try:
        fields, start, n_lines = _split_header(data, delimiter, spaced=spaced)
    except csv.Error as error:
        said = "the header cannot be read: it does not end, or a carriage return stands in it"
        hint = "the first line names the columns; every line should end in the same way"
        raise bad_file(name, said, hint=hint, code="data.malformed_csv", line=1) from error
    if not fields:
        raise _empty(name)
    if options.header:
        records: list[list[str]] = []
        with suppress(csv.Error):
            records = _first_records(data[start : start + 2 * _SAMPLE_BYTES], delimiter, skipinitialspace=spaced)
        header = (*[""] * _names_rows(fields, records), *fields)
        below = _typed_by_orange(data[start:]) if delimiter == "\t" else 0
        file = replace(
            file, header=header, start=start + below, n_header_lines=n_lines + 2 * (below > 0), typed=below > 0
        )
    else:
        file = replace(file, header=tuple(f"x{number}" for number in range(1, len(fields) + 1)))
    if first is not None:
        _refuse_other_header(first, file)
    return file


def _refuse_other_header(first: CsvFile, other: CsvFile) -> None:
    """Refuse a file whose header is not that of the first, but for blanks around the names."""
    names, others = ([field.strip() for field in file.header] for file in (first, other))
    if not (difference := told_apart(names, others)):
        return
    if (own := sniff_delimiter(other.data)) != first.delimiter:
        difference += f"; its delimiter seems to be {own!r}, not {first.delimiter!r}"
    no_header = no_header_hint([*{*names} - {*others}], [*{*others} - {*names}])
    hint = no_header or "files that are read together need one header and one delimiter"
    said = f"{other.name} has another header than {first.name}: {difference}"
    raise DataError(said, hint=hint, code="data.headers_differ", where={"file": other.name, "line": 1})


def checked_header(file: CsvFile) -> tuple[list[str], list[str], dict[str, tuple[Remark, ...]]]:
    """Return the column names, notes about them all and remarks about some; refuse names that occur twice.

    A first column without a name is an index, as pandas and R write it, and not among the names.
    """
    names, notes, table_name = [field.strip() for field in file.header], [], file.name
    remarks: dict[str, tuple[Remark, ...]] = {}
    has_index = not names[0] and len(names) > 1
    for place in range(has_index, len(names)):
        if not names[place]:
            names[place] = new = f"unnamed_{place + 1}"
            said = f"column {place + 1} has no name and is called '{new}'; "
            remarks[new] = (Remark(f"{said}if it numbers the rows, leave it out with {option('exclude', [new])}"),)
    names = names[has_index:]
    refuse_duplicates(names, table_name)
    if file.typed:
        notes.append(
            f"lines {file.n_header_lines - 1} and {file.n_header_lines} of {table_name}, which give types and roles of columns, are left out"
        )
    if names[0].startswith("# "):
        # Lines below with a delimiter, comments or not, are no rows with names.
        notes.append(
            f"{as_header(table_name)} it begins with #: if that is a comment, {option('comment', '#')} leaves it out"
        )
    elif has_index:
        notes.append(f"the first column of {table_name} has no name and is left out; with a name it is used")
    if all(map(is_number, names)) and not like_years(names):
        notes.append(f"{as_header(table_name)} all its names are numbers; {option('header', False)} reads it as a row")
    return names, notes, remarks


def as_header(name: str) -> str:
    """Return the beginning of what is told of a doubtful header."""
    return f"the first line of {name} was taken as the header, but"


def like_years(names: Sequence[str]) -> bool:
    """Say whether three names or more are whole numbers that run evenly, or years in order, as in a wide table."""
    if len(names) < 3 or not all(name.isdecimal() for name in names):
        return False
    values = np.array([float(name) for name in names])
    steps = np.diff(values)
    years = values.min() >= 1500 and values.max() <= 2200
    return bool(steps.all() and ((steps == steps[0]).all() or (years and abs(np.sign(steps).sum()) == len(steps))))


def header_names(path: str | Path) -> tuple[str, ...]:
    """Return the column names of a CSV or Parquet file, or of the first one that a glob or a folder means.

    Stdin and everything that is no regular file has none, since reading it would take its data away or wait for it.
    """
    location = find_files(path, str(path)).files[0][1] if str(path) not in {"", "-"} else Path()
    if not location.is_file():
        return ()
    with location.open("rb") as file:
        head = head_of(file, _SAMPLE_BYTES)
    try:
        if (form := format_of_head(head)) == "parquet":
            from pyarrow import parquet  # noqa: PLC0415 - 90 ms that a CSV does not need

            return tuple(parquet.read_schema(location).names)
        if form == "json":
            return tuple(json.loads(head.split(b"\n", 1)[0]))
        # A line that the beginning cuts may end within a character.
        text = head.partition(b"\0")[0].decode("utf-8", errors="ignore").encode("utf-8")
        return tuple(checked_header(csv_file(str(path), text, AS_USUAL, None, whole=False))[0])
    except ValueError:
        return ()


def _aligned(line: str) -> str:
    """Return a line whose fields are aligned by spaces with one between them, but within quotes, and none before the first."""
    fields = line.rstrip("\r\n")
    return _SPACES.sub(lambda found: found[1] or " ", fields).strip(" ") + line[len(fields) :]


def utf8_lines(stream: IO[bytes], name: str, options: CsvOptions) -> Iterator[bytes]:
    """Yield the lines of a text as UTF-8; comments are blank, so that lines keep their numbers; of spaces one is left."""
    done, quoted = 0, False
    text = io.TextIOWrapper(stream, options.encoding or "utf-8-sig", newline="")
    try:
        for line in text:
            if options.comment is not None and not quoted and line.startswith(options.comment):
                yield line[len(line.rstrip("\r\n")) :].encode()
            else:
                quoted ^= line.count('"') % 2 == 1
                yield (_aligned(line) if options.delimiter == " " else line).encode()
            done += 1
    except UnicodeError as error:
        said = f"{name} is not {options.encoding or 'UTF-8'} text, in line {done + 1} or after it"
        hint = f"{option('encoding')} names the encoding, such as latin-1 or utf-16"
        where: dict[str, str | int] = {"file": name, "line": done + 1}
        raise DataError(said, hint=hint, code="data.not_in_encoding", where=where) from error
    finally:
        # The stream is closed by its owner.
        text.detach()


def _checked_text(name: str, data: bytes) -> bytes:
    """Return the bytes without byte order mark, once they are known to be UTF-8 text that is not blank."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise bad_file(
            name, "is UTF-16, not UTF-8", hint=f"{option('encoding', 'utf-16')} reads it", code="data.not_utf8"
        )
    if b"\0" in data:
        said = "is neither CSV nor Parquet: it holds binary data"
        raise bad_file(name, said, hint="CSV is UTF-8 text; Parquet begins with the letters PAR1", code="data.not_text")
    refuse_not_utf8(name, data)
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if not VISIBLE.search(data):
        raise _empty(name)
    # Lines of old Macintosh files end in a carriage return alone.
    return data if b"\n" in data else data.replace(b"\r", b"\n")


def _empty(name: str) -> DataError:
    return bad_file(name, "is empty", hint="it has no text", code="data.empty_file")


def refuse_not_utf8(name: str, data: bytes, n_lines_before: int = 0) -> None:
    """Refuse bytes that are not UTF-8: pyarrow would take a Latin-1 column for binary without a word."""
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = n_lines_before + data.count(b"\n", 0, error.start) + 1
        encoding, title = ("windows-1252", "Windows-1252") if _WINDOWS_ONLY.search(data) else ("latin-1", "Latin-1")
        said, hint = (
            f"byte 0x{data[error.start]:02x} is not UTF-8",
            f"if it is {title}, {option('encoding', encoding)} reads it",
        )
        raise bad_file(name, said, hint=hint, code="data.not_utf8", line=line) from error
