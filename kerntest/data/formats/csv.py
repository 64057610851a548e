"""CSV as typed columns, whole or in blocks of rows: both are text whose columns Arrow types on all of its values."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from io import BytesIO
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import types

from kerntest.data import column_types
from kerntest.data.column_types import column_of
from kerntest.data.columns import Patterns, infinity, match_names
from kerntest.data.formats import dialect
from kerntest.data.formats.dialect import AS_USUAL, CsvFile, CsvOptions
from kerntest.data.missing import with_words
from kerntest.data.source import Found, Source, open_file, unpacked_stream
from kerntest.data.table import BlockReader, Column, Pieces, Remark, RowBlock, Table, loaded
from kerntest.data.written_values import (
    OFFSET,
    PLAIN,
    THOUSANDS,
    form_of,
    has_comma,
    is_number,
    marked_number,
    present_counts,
)
from kerntest.dataclass import dataclass
from kerntest.engines.engine import BYTES_A_VALUE, bytes_to_read, refuse_to_read
from kerntest.errors import DataError, bad_file, listed, option

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from numpy.typing import NDArray

    from kerntest.data.table import Kind

_BLOCK_BYTES = 1 << 20
_LARGEST_BLOCK = (1 << 31) - 1
_ENCODED = pa.dictionary(pa.int32(), pa.string())
_WHOLE, _BEYOND_64_BITS = re.compile(r"[+-]?\d+", re.ASCII).fullmatch, 2.0**63
_LEADING_ZERO = r"^[ \t]*[+-]?0[0-9xX]"


@dataclass(frozen=True)
class _Rows:
    """Rows of CSV files with one header, as text that can be parsed again with other types in mind."""

    text: bytes
    start: int
    files: Sequence[CsvFile]
    names: Sequence[str]
    table_name: str
    options: CsvOptions

    def as_typed(self, names: Sequence[str]) -> list[Column]:
        """Return columns as text, each value as it stands in the file but for blanks around it; only empty fields are missing."""
        arrow = self.parsed(dict.fromkeys(names, _ENCODED), na=())
        return [column_types.without_blanks(column_of(name, arrow[name], self.table_name)) for name in names]

    def columns(self, texts: Collection[str], only: Sequence[str] = ()) -> dict[str, Column]:
        """Return columns, by default all, typed on all of their values; `texts` are text.

        Arrow infers the types, and loosens them when a later block does not fit. It takes 001 and 0x1f for numbers,
        though, and knows times of day: such columns are read again as text. So is text where words for a missing value
        are quoted: there they are text, which they are not among numbers.
        """
        na, names = self.options.na, list(only or self.names)
        inferred = self.parsed(dict.fromkeys(names, None) | dict.fromkeys(texts, _ENCODED))
        numeric = [one.name for one in inferred.schema if types.is_integer(one.type) or types.is_floating(one.type)]
        again = [one.name for one in inferred.schema if types.is_time(one.type)]
        if numeric and self._may_lead_with_zero():
            import pyarrow.compute as pc  # noqa: PLC0415 - 35 ms that most files do not need

            as_typed = self.parsed(dict.fromkeys(numeric, pa.string()))
            again += [
                name for name in numeric if pc.any(pc.match_substring_regex(as_typed[name], _LEADING_ZERO)).as_py()
            ]
        word = b'"(?:' + b"|".join(re.escape(word.encode()) for word in na) + b')"'
        if quoted := b'"' in self.text and bool(na) and re.search(word, self.text) is not None:
            again += [one.name for one in inferred.schema if types.is_dictionary(one.type)]
        reread = self.parsed(dict.fromkeys(again, _ENCODED), quoted_words=not quoted) if again else {}
        found = {
            name: column_types.without_blanks(
                column_of(name, (reread if name in again else inferred)[name], self.table_name), na
            )
            for name in names
        }
        # Of whole numbers beyond 64 bits Arrow keeps 16 digits.
        return found | {
            one.name: self._with_digits(found[one.name])
            for one in inferred.schema
            if types.is_floating(one.type) and one.name not in again
        }

    def _with_digits(self, column: Column) -> Column:
        """Return numbers with every digit, if they are whole and one is beyond 64 bits."""
        if not _BEYOND_64_BITS <= np.fmax.reduce(np.abs(column.values), initial=0.0) < np.inf:
            return column
        (typed,) = self.as_typed([column.name])
        whole = [int(level) if _WHOLE(level) else None for level in typed.levels]
        digits = np.array([*whole, None], dtype=object)[typed.values]
        digits[column.missing] = 0
        return column if None in digits else replace(column, digits=digits)

    def _may_lead_with_zero(self) -> bool:
        """Say whether some value may begin like 001 or 0x1f."""
        zero, before = rb"[+-]?0[0-9xX]", {b" ", b"\t", b"\r", b"\n", b'"', self.files[0].delimiter.encode()}
        # One after the other: a pattern that begins with one octet is found faster than one of several.
        inside = (re.compile(re.escape(one) + zero).search(self.text, max(self.start - 1, 0)) for one in before)
        return any(inside) or re.match(zero, self.text) is not None

    def parsed(self, kinds: Mapping[str, Any], *, na: Sequence[str] | None = None, quoted_words: bool = True) -> Any:
        """Return the Arrow table of some columns; one without a type gets one inferred."""
        convert = arrow_csv.ConvertOptions(
            column_types={name: one for name, one in kinds.items() if one is not None},
            include_columns=list(kinds),
            null_values=["", *(self.options.na if na is None else na)],
            strings_can_be_null=True,
            quoted_strings_can_be_null=quoted_words,
            true_values=_spellings("true"),
            false_values=_spellings("false"),
            auto_dict_encode=True,
            auto_dict_max_cardinality=_LARGEST_BLOCK,
            check_utf8=False,
        )
        header, index = self.files[0].header, "index"
        while index in self.names:
            index += "_"
        # A row longer than a block makes Arrow give up; one block for all takes it.
        for block_bytes in (_BLOCK_BYTES, min(len(self.text), _LARGEST_BLOCK)):
            try:
                return arrow_csv.read_csv(
                    pa.BufferReader(pa.py_buffer(self.text)[self.start :]),
                    # Arrow's threads, still starting when a short program ends, abort it; one block has no use for them.
                    read_options=arrow_csv.ReadOptions(
                        column_names=[index] * (len(header) - len(self.names)) + list(self.names),
                        block_size=block_bytes,
                        use_threads=len(self.text) > block_bytes,
                    ),
                    parse_options=arrow_csv.ParseOptions(delimiter=self.files[0].delimiter, newlines_in_values=True),
                    convert_options=convert,
                )
            except pa.ArrowException as error:
                trouble = error
                if "straddling" not in str(error):
                    break
        # Arrow does not tell the file and the line.
        for file in self.files:
            file.refuse_open_quote()
            file.refuse_ragged(header=self.options.header)
        said, hint = f"is malformed CSV: {str(trouble).splitlines()[0]}", "open it in a text editor, or write it anew"
        raise bad_file(self.table_name, said, hint=hint, code="data.malformed_csv") from trouble


def _spellings(word: str) -> list[str]:
    """Return the word in every mixture of lower and upper case."""
    return ["".join(letters) for letters in product(*((letter, letter.upper()) for letter in word))]


def no_rows_below(name: str) -> DataError:
    """Return the error for a header with nothing below it."""
    hint = "the first line names the columns, each line after it is a row"
    return bad_file(name, "has a header but no rows", hint=hint, code="data.no_rows")


# A whole table.


def read_delimited(source: Source, categorical: Patterns = None, options: CsvOptions = AS_USUAL) -> Table:
    """Parse CSV bytes; several files are laid one below the other and typed together."""
    files = _files_of(source, options)
    names, notes, remarks = dialect.checked_header(files[0])
    filled = [file for file in files if dialect.VISIBLE.search(file.data, file.start)]
    if not filled:
        raise no_rows_below(source.name)
    forced = match_names(categorical, names, source.name)
    text, start = filled[0].data, filled[0].start
    if len(filled) > 1 or filled[0].spaced:
        texts = (file.below for file in filled)
        text, start = b"".join(text if text.endswith(b"\n") else text + b"\n" for text in texts), 0
    rows = _Rows(text, start, files, names, source.name, options)
    columns = rows.columns(forced)
    n_rows = len(columns[names[0]].values)
    lines, file_of = _places(files, filled, n_rows)
    bare = Table(source.name, (), n_rows, "csv", delimiter=files[0].delimiter, na=options.na)
    told = (*notes, *_told_of_blanks(columns, bare, header=options.header), *_told_of_header(columns, bare))
    has_missing = any(column.n_missing for column in columns.values())
    bare = replace(
        source.described(bare, told, [0] * len(files)), lines=lines, file_of=file_of, has_missing=has_missing
    )
    free = [column for name, column in columns.items() if name not in forced]
    in_numbers = read_numerals(free, bare, options.decimal, rows.as_typed)
    columns |= {
        text.name: column_types.told_apart(column_types.with_remark(text, _meant(column, bare, rows), bare))
        for text, column in zip(free, in_numbers, strict=True)
    }
    told_of_each = (replace(one, remarks=(*remarks.get(name, ()), *one.remarks)) for name, one in columns.items())
    return with_words(replace(bare, columns=tuple(told_of_each)), rows.as_typed)


def _files_of(source: Source, options: CsvOptions) -> list[CsvFile]:
    """Return files that are read as one table; the delimiter is the first one's."""
    files: list[CsvFile] = []
    size = 0
    for name, content in source.parts:
        plain = b"".join(dialect.utf8_lines(BytesIO(content), name, options)) if options.transcodes else content
        files.append(dialect.csv_file(name, plain, options, files[0] if files else None))
        if bytes_to_read() is not None:
            n_values = plain.count(files[0].delimiter.encode()) + plain.count(b"\n")
            size += len(plain) + BYTES_A_VALUE * n_values
            refuse_to_read(size, name)
    return files


def _places(
    files: Sequence[CsvFile], filled: Sequence[CsvFile], n_rows: int
) -> tuple[NDArray[np.int64] | None, NDArray[np.int32] | None]:
    """Return the line on which each row begins, and of several files which one; None where it cannot be told."""
    n_lines = [file.data.count(b"\n", file.start) + (not file.data.endswith(b"\n")) for file in filled]
    lines = [
        np.arange(count) if sum(n_lines) == n_rows else dialect.row_lines(file.below, file.delimiter)
        for file, count in zip(filled, n_lines, strict=True)
    ]
    if sum(map(len, lines)) != n_rows:
        return None, None
    places = np.concatenate([own + file.n_header_lines + 1 for own, file in zip(lines, filled, strict=True)])
    file_of = np.repeat(np.array([files.index(file) for file in filled], dtype=np.int32), [len(own) for own in lines])
    return places, file_of if len(files) > 1 else None


def _meant(column: Column, table: Table, rows: _Rows) -> Column:
    """Return a column as its values are meant; one that is strange among numbers with commas may be so in other signs."""
    if column.kind == "text":
        options, plain = rows.options, replace(column, problem=None)
        found = column_types.understood(plain, table, options.decimal, dayfirst=options.dayfirst)
        return found if column.problem is None or found.kind != "text" else column
    return replace(column, problem=column.problem or infinity(column, table, rows.as_typed))


def _told_of_blanks(columns: Mapping[str, Column], table: Table, *, header: bool) -> list[str]:
    """Return the warning about a lone column whose values all have as many words as its name, or numbers, or parts with gaps between."""
    (name, column), *others = columns.items()
    if others or not column.levels:
        return []
    first = name if header else column.levels[0]
    told, words, parts = f"{table.name} was read as one column, {name!r}", len(first.split()), len(_parts(first))
    # Without a name texts may be of several words.
    numbers = header or all(map(is_number, " ".join(column.levels).split()))
    # Names of rows may have none.
    if (
        words > 1
        and numbers
        and {len(level.split()) for level in column.levels} in ({words}, {words + (header and words > 2)})
    ):
        return [f"{told}; {option('delimiter', 'space')} reads its words as {words} columns"]
    if parts > 1 and all(len(_parts(level)) > 1 for level in column.levels):
        way_out = f"write it as CSV first, such as by pandas.read_fwf({table.name!r}).to_csv"
        return [f"{told}: it looks like columns of fixed width, which are not read; {way_out}"]
    return []


def _parts(text: str) -> list[str]:
    return text.split("  ")


def _told_of_header(columns: Mapping[str, Column], table: Table) -> list[str]:
    """Return the warning about names that are numbers or dates among the values below them: they are a row's."""
    found = {name: value for name, column in columns.items() if (value := _as_value(name, column)) is not None}
    # A row has a number wherever those below have one, unless it is missing.
    names = [name for name, column in columns.items() if not (column.is_category or name in found or name in table.na)]
    named = any(not name.startswith("unnamed_") for name in names)
    if not found or named or dialect.like_years(tuple(found)) or all(map(is_number, columns)):
        return []
    among = 0
    for name, value in found.items():
        present = columns[name].values[np.isfinite(columns[name].values)]
        if len(present):
            low, high = present.min(), present.max()
            # The first of running numbers lies beside the others.
            step = (high - low) / max(1, len(present) - 1)
            among += bool(low - 1.5 * step <= value <= high + 1.5 * step)
    if 2 * among < len(found):
        return []
    are = "is a value" if len(found) == 1 else "are values"
    said = f"{listed(list(found), 3)} {are} like those below; {option('header', False)} reads it as a row"
    return [f"{dialect.as_header(table.name)} {said}"]


def _as_value(name: str, column: Column) -> float | None:
    """Return the name of a column of numbers or dates as a value of it; None where it is none."""
    if column.is_category:
        return None
    value = column.form.read(name)
    return column.form.read(name.replace(",", ".")) if value is None and column.kind == "number" else value


# Blocks of rows. A whole file decides the type of a column on all of its values; here the caller says what it must be.

# Of a file not larger than this everything is checked before the first block; of others each block as it comes.
SMALL_BYTES = 1 << 24
_HEAD_BYTES = 1 << 20
# Of rows that tell the types of columns.
_TYPED_BYTES = 1 << 22


class CsvBlocks(BlockReader):
    """The rows of CSV files with one header."""

    format = "csv"

    def __init__(self, name: str, found: Found, options: CsvOptions, block_bytes: int | None, stack: ExitStack) -> None:
        # What is read here is UTF-8 without comments.
        self.name, self._options = name, replace(options, encoding=None, comment=None)
        self._block_bytes, self._stack = block_bytes or _BLOCK_BYTES, stack
        self._files: list[CsvFile] = []
        # Whether the first times of a column have one, by its form.
        self._offsets: dict[str, str] = {}
        for shown, location in found.files:
            self._files.append(self._opened(shown, location))
        names, warned, _ = dialect.checked_header(self._files[0])
        self.names, self.warnings = tuple(names), (*found.warnings, *warned)
        self._sizes = [location.stat().st_size for _, location in found.files]
        self.total = sum(self._sizes)

    def _opened(self, shown: str, location: Path) -> CsvFile:
        """Read the header of a file, and all of a small one, whatever is wrong with it."""
        with open_file(location, shown) as file:
            head = unpacked_stream(file, shown).read(SMALL_BYTES)
        if not head:
            raise bad_file(shown, "is empty", hint="it has 0 bytes", code="data.empty_file")
        if not (whole := len(head) < SMALL_BYTES):
            head = head[: head.rfind(b"\n", 0, _HEAD_BYTES) + 1] or head[:_HEAD_BYTES]
        found = dialect.csv_file(shown, head, self._options, self._files[0] if self._files else None, whole=whole)
        return replace(found, data=b"", location=location, start=found.start + len(head) - len(found.data))

    def head(self, categorical: Sequence[str]) -> Table:
        """Return the first rows of all columns, of which some are text, typed the way a whole file is."""
        file, lines, size = self._files[0], list[bytes](), 0
        with file.opened(0) as (stream, _):
            for line in dialect.utf8_lines(stream, file.name, self._options):
                lines.append(line)
                size += len(line)
                # A quoted value may have several lines.
                if size > _TYPED_BYTES and b"".join(lines).count(b'"') % 2 == 0:
                    break
        source = Source(self.name, "csv", ((file.name, b"".join(lines)),), sha256="", size=0)
        head = read_delimited(source, categorical, self._options)
        return replace(head, notes=tuple(dict.fromkeys((*self.warnings, *head.notes))))

    def pieces(self, kinds: Mapping[str, Kind], keep: Sequence[str] = (), at_once: int = 1) -> Pieces:
        """Return all rows; where one begins is known only by who reads all before it, so they are read here."""
        del at_once
        return Pieces(loaded(self._blocks(kinds, keep)), -(-self.total // self._block_bytes))

    def _blocks(self, kinds: Mapping[str, Kind], keep: Sequence[str]) -> Iterator[tuple[RowBlock, int]]:
        """Yield all rows, and the bytes read; numbers with a decimal comma are looked at as a whole first."""
        commas = self._with_decimal_commas([name for name, kind in kinds.items() if kind == "number"])
        plain = {"", OFFSET.name}
        texts = [
            name
            for name, kind in kinds.items()
            if kind not in {"number", "date"} or self.written.get(name, "") not in plain
        ]
        first_row = offset = 0
        part = ""
        for file, line, rows, done in self._parts():
            if len(self._files) > 1 and part != file.name:
                part, offset = file.name, 0
            typed = rows.columns(texts, [*kinds] or self.names[:1])
            n_rows = len(next(iter(typed.values())).values)
            if not n_rows:
                continue
            lines = line + 1 + dialect.row_lines(rows.text, file.delimiter)
            bare = Table(self.name, (), n_rows, "csv", delimiter=file.delimiter, na=self._options.na)
            bare = replace(bare, offset=offset, part=part, lines=lines if len(lines) == n_rows else None)
            columns = tuple(
                commas[name].take(np.arange(first_row, first_row + n_rows))
                if name in commas
                else self._as_asked(typed[name], kind, bare, rows)
                for name, kind in kinds.items()
            )
            kept = rows.parsed(dict.fromkeys(keep, pa.string()), na=()) if keep else pa.table({})
            yield RowBlock(replace(bare, columns=columns), kept, first_row), done
            first_row += n_rows
            offset += n_rows
        if not first_row:
            raise no_rows_below(self.name)

    def _as_asked(self, column: Column, kind: Kind, table: Table, rows: _Rows) -> Column:
        """Return a column of what was asked for, or of text where some value cannot be that."""
        written = self.written.get(column.name, "")
        if kind not in {"number", "date"}:
            return column
        if column.kind == kind or column.missing.all():
            if kind == column.kind == "date" and column.written != self._offsets.setdefault(
                column.name, column.written
            ):
                (text,) = rows.as_typed([column.name])
                held = "values above have"
                return replace(text, problem=column_types.offset_problem(text, table, range(len(text.levels)), held))
            nothing = Column(column.name, kind, np.full(len(column.values), np.nan))
            asked = column if column.kind == kind else nothing
            problem = infinity(asked, table, rows.as_typed)
            if problem is None or not is_number(str(problem.error.where["value"])):
                return asked
            # 1e400 stays as it is typed, so that a message can show it.
            return replace(rows.as_typed([column.name])[0], problem=problem)
        if column.kind != "text":
            return rows.columns([column.name], [column.name])[column.name]
        found = column_types.in_form(column, form_of(written, kind), table.na)
        if found is None and not written and kind == "number" and self._options.decimal == ".":
            found = _in_notation(column, table, ".")
        return found or column

    def _with_decimal_commas(self, numbers: Sequence[str]) -> Mapping[str, Column]:
        """Return columns of numbers as they are read from the whole file, where commas may stand in them."""
        decimal, plain = self._options.decimal, [name for name in numbers if not self.written.get(name)]
        if not plain or decimal == "." or (decimal == "auto" and self._files[0].delimiter == ","):
            return {}
        # A comma in one value says how those of the whole column are to be read.
        if decimal == "auto" and not any(
            "," in level
            for _, _, rows, _ in self._parts()
            for column in rows.columns((), plain).values()
            for level in column.levels
        ):
            return {}
        contents = []
        for file in self._files:
            with file.opened(0) as (stream, _):
                contents.append((file.name, stream.read()))
        whole = read_delimited(Source(self.name, "csv", tuple(contents), "", self.total), None, self._options)
        self.warnings = (*self.warnings, *(text for text in whole.warnings if text not in self.warnings))
        return {name: whole[name] for name in plain}

    def _parts(self) -> Iterator[tuple[CsvFile, int, _Rows, int]]:
        """Yield rows of each file in order, with the lines of the file before them and the bytes of all files read."""
        before = 0
        for file, size in zip(self._files, self._sizes, strict=True):
            # An error keeps who reads alive, and the file open, longer than anybody wants it.
            for line, text, done in self._stack.enter_context(closing(file.parts(self._block_bytes))):
                dialect.refuse_not_utf8(file.name, text, line)
                if dialect.VISIBLE.search(text):
                    rows = _Rows(text, 0, [file], self.names, self.name, self._options)
                    yield file, line, rows, before + done
            before += size


# Numbers with a decimal comma, or a comma between thousands.

# 1,234 and 1.234: a fraction of three digits or a group of three.
_EITHER = {mark: re.compile(rf"[ \t]*[+-]?[1-9]\d{{0,2}}[{mark}]\d{{3}}[ \t]*", re.ASCII).fullmatch for mark in ",."}


def read_numerals(
    columns: Sequence[Column],
    table: Table,
    decimal: dialect.Decimal,
    as_typed: Callable[[Sequence[str]], Sequence[Column]],
) -> list[Column]:
    """Return the columns with those as numbers that are numbers in another notation, and remarks on them."""
    if decimal == "auto" and table.delimiter == ",":
        return list(columns)
    mark = "," if decimal == "auto" else decimal
    texts = {column.name: column for column in columns if column.kind == "text"}
    found = {name: one for name, text in texts.items() if (one := _in_notation(text, table, mark)) is not None}
    sure = any(_holds(texts[name], mark) and not _is_ambiguous(texts[name], mark) for name in found)
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
    return bool(np.any(np.abs(np.modf(column.values)[0]) > 0))


def _holds(column: Column, mark: str) -> bool:
    """Say whether the mark stands in some value of a text column."""
    return any(mark in level for level in column.levels)


def _is_ambiguous(column: Column, mark: str) -> bool:
    """Say whether the mark, wherever it stands in a column of text, could be decimal or between thousands."""
    marked = [level for level in column.levels if mark in level or THOUSANDS[mark] in level]
    return bool(marked) and all(map(_EITHER[mark], marked))


def _in_notation(column: Column, table: Table, mark: str) -> Column | None:
    """Return the text column as numbers; with a problem where less than half are none, and None where more are none.

    Only a column in which the notation shows is taken: one with a comma before a fraction, say.
    """
    counts, levels = present_counts(column, table.na), column.levels
    total, numbers = int(counts.sum()), [marked_number(level, mark) for level in levels]
    strange = [k for k, number in enumerate(numbers) if number is None and counts[k]]
    n_strange = int(counts[strange].sum())
    # Other numbers among the strange values may say that this is not the notation.
    contradicts = any(is_number(levels[k]) or has_comma(levels[k]) for k in strange)
    shows = any(number is not None and set(",.") & set(level) for level, number in zip(levels, numbers, strict=True))
    few = n_strange <= (1 - column_types.NEARLY_ALL) * total + 1e-9 if contradicts else 2 * n_strange < total
    if not shows or not few:
        return None
    if strange:
        return replace(
            column, problem=column_types.stray_problem(column, table, strange, total - n_strange, total, form=PLAIN)
        )
    return Column(column.name, "number", np.array([*numbers, None], dtype=np.float64)[column.values])


def _remark(text: Column) -> Remark:
    """Return what is told of a column of text that was read as numbers with a decimal comma: sure, or a guess."""
    either = next((mark for mark in ",." if _is_ambiguous(text, mark)), "")
    example = next(level for level in text.levels if any(mark in level for mark in either or ",.")).strip()
    read, other = (f"{marked_number(example, point):.15g}" for point in (",", "." if either else ","))
    if not either:
        return Remark("numbers with a decimal comma were read as such", f"{example} is {read}")
    return Remark(
        f"{example} in column {text.name!r} was read as {read}, but could be {other}; {option('decimal', '.')} reads it so, "
        f"{option('exclude', [text.name])} leaves the column out"
    )
