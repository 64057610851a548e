"""A CSV file as a table: every column typed on all of its values."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import types

from kerntest.data.column_types import (
    NEARLY_ALL,
    present_counts,
    stray_problem,
    understood,
    with_remark,
    with_words,
    without_blanks,
)
from kerntest.data.columns import Patterns, match_names
from kerntest.data.formats.dialect import AS_USUAL, CsvFile, CsvOptions, csv_files, malformed_csv
from kerntest.data.in_memory import column_of
from kerntest.data.rows import infinity
from kerntest.data.table import Column, Remark, Table, refuse_duplicates
from kerntest.data.written_values import THOUSANDS, has_comma, is_number, marked_number
from kerntest.errors import DataError, listed, option_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.formats.dialect import Decimal
    from kerntest.data.source import Source

_BLOCK_BYTES = 1 << 20
_LARGEST_BLOCK = (1 << 31) - 1
_ENCODED = pa.dictionary(pa.int32(), pa.string())
_LINE_FEED, _CARRIAGE_RETURN, _QUOTE, _ZERO = b'\n\r"0'
_VISIBLE = re.compile(rb"\S")


def read_delimited(source: Source, categorical: Patterns = None, options: CsvOptions = AS_USUAL) -> Table:
    """Parse CSV bytes; several files are laid one below the other and typed together."""
    files = csv_files(source.parts, options)
    names, notes, remarks = checked_header(files[0].header, files[0].name)
    if not any(map(_has_rows, files)):
        raise no_rows_below(source.name)
    forced = match_names(categorical, names, source.name)
    body = _Body(*_joined_rows(files), files, tuple(names), source.name, options)
    arrow = body.typed(forced)
    lines, file_of = _row_places(files, arrow.num_rows)
    bare = Table(
        name=source.name,
        columns=(),
        n_rows=arrow.num_rows,
        format="csv",
        sha256=source.sha256,
        delimiter=files[0].delimiter,
        lines=lines,
        files=tuple(file.name for file in files),
        file_of=file_of,
        compression=source.compression,
        size=source.size,
        na=options.na,
    )
    columns = {
        name: without_blanks(column_of(name, values, source.name), options.na)
        for name, values in zip(names, arrow.columns, strict=True)
    }
    bare = replace(bare, has_missing=any(column.n_missing for column in columns.values()))
    free = [column for name, column in columns.items() if name not in forced]
    in_numbers = read_numerals(free, bare, options.decimal, body.as_typed)
    columns |= {
        text.name: with_remark(text, _meant(column, bare, body), bare)
        for text, column in zip(free, in_numbers, strict=True)
    }
    told = tuple(replace(one, remarks=(*remarks.get(name, ()), *one.remarks)) for name, one in columns.items())
    told_of_all = (*source.warnings, *notes, *_told_of_blanks(columns, bare), *_told_of_header(columns, bare))
    return with_words(replace(bare, columns=told, notes=told_of_all), body.as_typed)


def no_rows_below(name: str) -> DataError:
    """Return the error for a header with nothing below it."""
    return DataError(
        f"{name} has a header but no rows",
        hint="the first line names the columns, each line after it is a row",
        code="data.no_rows",
        where={"file": name},
    )


def _meant(column: Column, table: Table, body: _Body) -> Column:
    """Return a column as its values are meant; one that is strange among numbers with commas may be so in other signs."""
    if column.kind == "text":
        found = understood(replace(column, problem=None), table, body.options.decimal)
        return found if column.problem is None or found.kind != "text" else column

    def typed(row: int) -> str:
        (text,) = body.as_typed([column.name])
        return str(text.levels[text.values[row]])

    return replace(column, problem=column.problem or infinity(column, table, typed))


def _told_of_blanks(columns: Mapping[str, Column], table: Table) -> list[str]:
    """Return the warning about a lone column whose values all have as many words as its name."""
    (name, column), *others = columns.items()
    words = len(name.split())
    if others or words < 2 or not column.levels or any(len(level.split()) != words for level in column.levels):
        return []
    return [f"{table.name} was read as one column, {name!r}; --delimiter space reads its words as {words} columns"]


def _told_of_header(columns: Mapping[str, Column], table: Table) -> list[str]:
    """Return the warning about names that are numbers or dates among the values below them: they are a row's."""
    found = {name: value for name, column in columns.items() if (value := _as_value(name, column)) is not None}
    # A row has a number wherever those below have one, unless it is missing.
    names = [name for name, column in columns.items() if not (column.is_category or name in found or name in table.na)]
    named = any(not name.startswith("unnamed_") for name in names)
    if not found or named or _like_years(tuple(found)) or all(map(is_number, columns)):
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
    return [f"{_as_header(table.name)} {listed(list(found), 3)} {are} like those below; --no-header reads it as a row"]


def _as_header(name: str) -> str:
    return f"the first line of {name} was taken as the header, but"


def _as_value(name: str, column: Column) -> float | None:
    """Return the name of a column of numbers or dates as a value of it; None where it is none."""
    if column.is_category:
        return None
    value = column.form.read(name)
    return column.form.read(name.replace(",", ".")) if value is None and column.kind == "number" else value


def _like_years(names: Sequence[str]) -> bool:
    """Say whether three names or more are whole numbers that run evenly, or years in order, as in a wide table."""
    if len(names) < 3 or not all(name.isdecimal() for name in names):
        return False
    values = np.array([float(name) for name in names])
    steps = np.diff(values)
    years = values.min() >= 1500 and values.max() <= 2200
    return bool(steps.all() and ((steps == steps[0]).all() or (years and abs(np.sign(steps).sum()) == len(steps))))


def checked_header(
    header: Sequence[str], table_name: str
) -> tuple[list[str], list[str], dict[str, tuple[Remark, ...]]]:
    """Return the column names, notes about them all and remarks about some; refuse names that occur twice.

    A first column without a name is an index, as pandas and R write it, and not among the names.
    """
    names, notes = [field.strip() for field in header], []
    remarks: dict[str, tuple[Remark, ...]] = {}
    has_index = not names[0] and len(names) > 1
    for position, name in enumerate(names, start=1):
        if not name and not (has_index and position == 1):
            names[position - 1] = new = f"unnamed_{position}"
            said = f"column {position} has no name and is called '{new}'; "
            remarks[new] = (Remark(f"{said}if it numbers the rows, leave it out with --exclude {new}"),)
    names = names[has_index:]
    refuse_duplicates(names, table_name)
    if names[0].startswith("# "):
        # Lines below with a delimiter, comments or not, are no rows with names.
        notes.append(f"{_as_header(table_name)} it begins with #: if that is a comment, --comment '#' leaves it out")
    elif has_index:
        notes.append(f"the first column of {table_name} has no name: it is taken for row names and left out")
    if all(map(is_number, names)) and not _like_years(names):
        notes.append(f"{_as_header(table_name)} all its names are numbers; --no-header reads it as a row")
    return names, notes, remarks


def all_names(header: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return a name for every field of a row: that of an index is none of the columns'."""
    index = "index"
    while index in names:
        index += "_"
    return [index] * (len(header) - len(names)) + list(names)


def _has_rows(file: CsvFile) -> bool:
    """Say whether anything stands below the header."""
    return _VISIBLE.search(file.data, file.start) is not None


def _joined_rows(files: Sequence[CsvFile]) -> tuple[bytes, int]:
    """Return the text of all rows, and where in it they begin; one file is not copied."""
    if len(files) == 1:
        return files[0].data, files[0].start
    rows = (file.data[file.start :] for file in files if _has_rows(file))
    return b"".join(text if text.endswith(b"\n") else text + b"\n" for text in rows), 0


def _row_places(files: Sequence[CsvFile], n_rows: int) -> tuple[NDArray[np.int64] | None, NDArray[np.int32] | None]:
    """Return the line on which each row begins, and of several files which one; None where it cannot be told."""
    n_lines = [
        file.data.count(b"\n", file.start) + (not file.data.endswith(b"\n")) if _has_rows(file) else 0 for file in files
    ]
    if sum(n_lines) == n_rows:
        rows = [np.arange(count, dtype=np.int64) for count in n_lines]
    else:
        rows = [
            _begins(file.data, file.start) if count else np.arange(0)
            for file, count in zip(files, n_lines, strict=True)
        ]
    if sum(map(len, rows)) != n_rows:
        return None, None
    lines = np.concatenate([place + file.n_header_lines + 1 for place, file in zip(rows, files, strict=True)])
    file_of = np.repeat(np.arange(len(files), dtype=np.int32), [len(place) for place in rows])
    return lines, file_of if len(files) > 1 else None


def _begins(data: bytes, start: int) -> NDArray[np.int64]:
    """Return the lines below `start`, counted from 0, that are not blank and do not begin within quotes."""
    octets = np.frombuffer(data, dtype=np.uint8, offset=start)
    ends = np.append(np.flatnonzero(octets == _LINE_FEED), octets.size)
    begins = np.concatenate([[0], ends[:-1] + 1])
    inside = np.searchsorted(np.flatnonzero(octets == _QUOTE), begins) % 2 == 1
    length = ends - begins
    blank = (length == 0) | ((length == 1) & (octets[begins % max(octets.size, 1)] == _CARRIAGE_RETURN))
    return np.flatnonzero(~inside & ~blank)


@dataclass(frozen=True, slots=True)
class _Body:
    """The rows of CSV files, as bytes that can be parsed again with other types in mind."""

    data: bytes
    start: int
    files: Sequence[CsvFile]
    names: tuple[str, ...]
    table_name: str
    options: CsvOptions

    def as_typed(self, names: Sequence[str]) -> list[Column]:
        """Return columns as text, each value as it stands in the file but for blanks around it; only empty fields are missing."""
        arrow = self._parse(dict.fromkeys(names, _ENCODED), only=names, na=())
        return [without_blanks(column_of(name, arrow[name], self.table_name)) for name in names]

    def typed(self, forced: Sequence[str]) -> Any:
        """Return the Arrow table with every column typed on all of its values; `forced` are text.

        Arrow infers the types, and loosens them when a later block does not fit. It takes 001 and 0x1f for numbers,
        though, and knows times of day: such columns are read again as text. So is text where words for a missing value
        are quoted: there they are text, which they are not among numbers.
        """
        inferred = self._parse(dict.fromkeys(forced, _ENCODED))
        numeric = [one.name for one in inferred.schema if types.is_integer(one.type) or types.is_floating(one.type)]
        again: list[str] = []
        if numeric:
            as_typed = self._parse(dict.fromkeys(numeric, pa.string()), only=numeric)
            again = [name for name in numeric if any(map(_has_leading_zero, as_typed[name].chunks))]
        again += [one.name for one in inferred.schema if types.is_time(one.type)]
        word = b'"(?:' + b"|".join(re.escape(word.encode()) for word in self.options.na) + b')"'
        quoted = b'"' in self.data and self.options.na and re.search(word, self.data) is not None
        if quoted:
            again += [one.name for one in inferred.schema if types.is_dictionary(one.type)]
        if again:
            reread = self._parse(dict.fromkeys(again, _ENCODED), only=again, quoted_words=not quoted)
            for name in again:
                inferred = inferred.set_column(self.names.index(name), name, reread[name])
        return inferred

    def _parse(
        self,
        column_types: dict[str, Any],
        only: Sequence[str] = (),
        *,
        na: Sequence[str] | None = None,
        quoted_words: bool = True,
    ) -> Any:
        """Return the Arrow table of the columns `only` (default: all); columns without a given type get one inferred."""
        convert = arrow_csv.ConvertOptions(
            column_types=column_types,
            include_columns=list(only or self.names),
            null_values=["", *(self.options.na if na is None else na)],
            strings_can_be_null=True,
            quoted_strings_can_be_null=quoted_words,
            true_values=_spellings("true"),
            false_values=_spellings("false"),
            auto_dict_encode=True,
            auto_dict_max_cardinality=_LARGEST_BLOCK,
            check_utf8=False,
        )
        # A row longer than a block makes Arrow give up; one block for the whole file takes it.
        for block_bytes in (_BLOCK_BYTES, min(len(self.data), _LARGEST_BLOCK)):
            try:
                return arrow_csv.read_csv(
                    pa.BufferReader(pa.py_buffer(self.data)[self.start :]),
                    # Arrow's threads, still starting when a short program ends, abort it; one block has no use for them.
                    read_options=arrow_csv.ReadOptions(
                        column_names=all_names(self.files[0].header, self.names),
                        block_size=block_bytes,
                        use_threads=len(self.data) > block_bytes,
                    ),
                    parse_options=arrow_csv.ParseOptions(delimiter=self.files[0].delimiter, newlines_in_values=True),
                    convert_options=convert,
                )
            except pa.ArrowException as error:
                trouble = error
                if "straddling" not in str(error):
                    break
        raise malformed_csv(self.files, self.table_name, trouble, header=self.options.header) from trouble


def _has_leading_zero(chunk: Any) -> bool:
    """Say whether a value of an Arrow string array begins like ``001`` or ``0x1f``, after blanks and a sign."""
    _, offsets_buffer, octets_buffer = chunk.buffers()
    if octets_buffer is None or octets_buffer.size == 0:
        return False
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    octets = np.frombuffer(octets_buffer, dtype=np.uint8)
    begin, end = _at_least_two(offsets[:-1], offsets[1:])
    while (blank := _BLANK[octets[begin]]).any():
        begin, end = _at_least_two(begin + blank, end)
    begin, _ = _at_least_two(begin + _SIGN[octets[begin]], end)
    return bool(np.any((octets[begin] == _ZERO) & _AFTER_LEADING_ZERO[octets[begin + 1]]))


def _members(symbols: bytes) -> NDArray[np.bool_]:
    """Return the table that says of each octet whether it is one of the symbols."""
    return np.isin(np.arange(256), list(symbols))


_BLANK, _SIGN, _AFTER_LEADING_ZERO = map(_members, (b" \t", b"+-", b"0123456789xX"))


def _at_least_two(begin: NDArray[np.int32], end: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the spans of at least two octets: a leading zero has something after it."""
    long_enough = end - begin >= 2
    return begin[long_enough], end[long_enough]


def _spellings(word: str) -> list[str]:
    """Return the word in every mixture of lower and upper case."""
    return ["".join(letters) for letters in product(*((letter, letter.upper()) for letter in word))]


# Numbers with a decimal comma, or a comma between thousands.

# 1,234 and 1.234: a fraction of three digits or a group of three.
_EITHER = {mark: re.compile(rf"[ \t]*[+-]?[1-9]\d{{0,2}}[{mark}]\d{{3}}[ \t]*", re.ASCII).fullmatch for mark in ",."}


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
    present = column.values[np.isfinite(column.values)]
    return bool(np.any(present != np.floor(present)))


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
    counts = present_counts(column, table.na)
    total = int(counts.sum())
    numbers = np.full(len(column.levels) + 1, np.nan)
    strange: list[int] = []
    n_strange = 0
    shows = contradicts = False
    for index, level in enumerate(column.levels):
        if (number := marked_number(level, mark)) is not None:
            numbers[index] = number
            shows = shows or "," in level or "." in level
        elif counts[index]:
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
    either = next((mark for mark in ",." if _is_ambiguous(text, mark)), "")
    example = next(level for level in text.levels if any(mark in level for mark in either or ",.")).strip()
    read, other = (f"{marked_number(example, point):.15g}" for point in (",", "." if either else ","))
    if not either:
        return Remark("numbers with a decimal comma were read as such", f"{example} is {read}")
    return Remark(
        f"{example} in column {text.name!r} was read as {read}, but could be {other}; --decimal . reads it so, "
        f"--exclude {option_value([text.name])} leaves the column out"
    )
