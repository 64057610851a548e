"""A CSV file as a table."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import types

from kerntest.data.columns import Patterns, match_names
from kerntest.data.formats.csv_parts import CsvPart, joined_rows, malformed, read_parts, row_places
from kerntest.data.formats.dialect import (
    AS_USUAL,
    CsvOptions,
    read_numerals,
)
from kerntest.data.in_memory import column_of
from kerntest.data.kinds import understood, with_remark, with_words, without_blanks
from kerntest.data.messages import listed
from kerntest.data.rows import infinity
from kerntest.data.table import Column, Remark, Table, form_of, is_number, refuse_duplicates
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.formats.dialect import Decimal
    from kerntest.data.source import Source


_BLOCK_BYTES = 1 << 20
_LARGEST_BLOCK = (1 << 31) - 1
_ENCODED = pa.dictionary(pa.int32(), pa.string())


def _members(symbols: bytes) -> NDArray[np.bool_]:
    """Return the table that says of each octet whether it is one of the symbols."""
    table = np.zeros(256, dtype=bool)
    table[list(symbols)] = True
    return table


_BLANK = _members(b" \t")
_SIGN = _members(b"+-")
_AFTER_LEADING_ZERO = _members(b"0123456789xX")


def read_delimited(source: Source, categorical: Patterns = None, options: CsvOptions = AS_USUAL) -> Table:
    """Parse CSV bytes; several files are laid one below the other and typed together."""
    parts, delimiter = read_parts(source.parts, options)
    names, notes, remarks = checked_header(parts[0].header, parts[0].name)
    if not any(part.has_rows for part in parts):
        raise DataError(
            f"{source.name} has a header but no rows",
            hint="the first line names the columns, each line after it is a row",
            code="data.no_rows",
            where={"file": source.name},
        )
    forced = match_names(categorical, names, source.name)
    body = _Body(*joined_rows(parts), delimiter, parts[0].header, tuple(names), parts, source.name, options)
    arrow = body.typed(forced)
    lines, file_of = row_places(parts, body.data, arrow.num_rows)
    bare = Table(
        name=source.name,
        columns=(),
        n_rows=arrow.num_rows,
        format="csv",
        sha256=source.sha256,
        delimiter=delimiter,
        lines=lines,
        files=tuple(part.name for part in parts),
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
        text.name: with_remark(text, _meant(column, bare, options.decimal, body.as_typed), bare)
        for text, column in zip(free, in_numbers, strict=True)
    }
    table = replace(
        bare,
        columns=tuple(
            replace(column, remarks=(*remarks.get(name, ()), *column.remarks)) for name, column in columns.items()
        ),
        notes=(*source.warnings, *notes, *_told_of_blanks(columns, bare), *_told_of_header(columns, bare)),
    )
    return with_words(table, body.as_typed)


def _meant(
    column: Column, table: Table, decimal: Decimal, as_typed: Callable[[Sequence[str]], Sequence[Column]]
) -> Column:
    """Return a column as its values are meant; one that is strange among numbers with commas may be so in other signs."""
    if column.kind != "text":
        return replace(
            column, problem=column.problem or infinity(column, table, lambda row: _typed(column, row, as_typed))
        )
    found = understood(replace(column, problem=None), table, decimal)
    return found if column.problem is None or found.kind != "text" else column


def _typed(column: Column, row: int, as_typed: Callable[[Sequence[str]], Sequence[Column]]) -> str:
    """Return a value of a column as it stands in the file."""
    (text,) = as_typed([column.name])
    value: str = text.levels[text.values[row]]
    return value.strip()


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
    return [
        (
            f"the first line of {table.name} was taken as the header, but {listed(list(found), 3)} "
            f"{'is a value' if len(found) == 1 else 'are values'} like those below; --no-header reads it as a row"
        )
    ]


def _as_value(name: str, column: Column) -> float | None:
    """Return the name of a column of numbers or dates as a value of it; None where it is none."""
    if column.is_category:
        return None
    form = form_of(column.written or ("date, year first" if column.kind == "date" else ""))
    value = form.read(name)
    return form.read(name.replace(",", ".")) if value is None and column.kind == "number" else value


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
    names, notes = [], []
    remarks: dict[str, tuple[Remark, ...]] = {}
    for position, field in enumerate(header, start=1):
        name = field.strip()
        if not name and position == 1 and len(header) > 1:
            notes.append(f"the first column of {table_name} has no name: it is taken for row names and left out")
            continue
        if not name:
            name = f"unnamed_{position}"
            remarks[name] = (
                Remark(
                    f"column {position} has no name and is called '{name}'; "
                    f"if it numbers the rows, leave it out with --exclude {name}"
                ),
            )
        names.append(name)
    refuse_duplicates(names, table_name)
    if names[0].startswith("# "):
        # Lines below with a delimiter, comments or not, are no rows with names.
        notes = [note for note in notes if "has no name" not in note]
        notes.append(
            f"the first line of {table_name} was taken as the header, but it begins with #: if that is a comment, "
            "--comment '#' leaves it out"
        )
    if all(map(is_number, names)) and not _like_years(names):
        notes.append(
            f"the first line of {table_name} was taken as the header, but all its names are numbers; --no-header reads it as a row"
        )
    return names, notes, remarks


def all_names(header: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return a name for every field of a row: that of an index is none of the columns'."""
    index = "index"
    while index in names:
        index += "_"
    return [index] * (len(header) - len(names)) + list(names)


@dataclass(frozen=True, slots=True)
class _Body:
    """The rows of a CSV file, as bytes that can be parsed again with other types in mind."""

    data: bytes
    start: int
    delimiter: str
    header: tuple[str, ...]
    names: tuple[str, ...]
    parts: tuple[CsvPart, ...]
    table_name: str
    options: CsvOptions

    def as_typed(self, names: Sequence[str]) -> list[Column]:
        """Return columns as text, each value as it stands in the file but for blanks around it; only empty fields are missing."""
        arrow = self.parse(dict.fromkeys(names, _ENCODED), only=names, na=())
        return [without_blanks(column_of(name, arrow[name], self.table_name)) for name in names]

    def typed(self, forced: Sequence[str]) -> Any:
        """Return the Arrow table with every column typed on all of its values; `forced` are text.

        Arrow infers the types, and loosens them when a later block does not fit. It takes 001 and 0x1f for numbers,
        though, and knows times of day: such columns are read again as text. So is text where words for a missing value
        are quoted: there they are text, which they are not among numbers.
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
        quoted = (
            b'"' in self.data and self.options.na and re.search(_quoted_word(self.options.na), self.data) is not None
        )
        if quoted:
            again += [field.name for field in inferred.schema if types.is_dictionary(field.type)]
        if again:
            reread = self.parse(dict.fromkeys(again, _ENCODED), only=again, quoted_words=not quoted)
            for name in again:
                inferred = inferred.set_column(self.names.index(name), name, reread[name])
        return inferred

    def parse(
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
        try:
            try:
                return self._read(convert, _BLOCK_BYTES)
            except pa.ArrowInvalid as error:
                # A row longer than a block makes Arrow give up; one block for the whole file takes it.
                if "straddling" not in str(error):
                    raise
                return self._read(convert, min(len(self.data), _LARGEST_BLOCK))
        except pa.ArrowException as error:
            raise malformed(self.parts, self.delimiter, self.table_name, error, header=self.options.header) from error

    def _read(self, convert: Any, block_bytes: int) -> Any:
        """Run Arrow's parser over the rows."""
        return arrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(self.data)[self.start :]),
            # Arrow's threads, still starting when a short program ends, abort it; one block has no use for them.
            read_options=arrow_csv.ReadOptions(
                column_names=all_names(self.header, self.names),
                block_size=block_bytes,
                use_threads=len(self.data) > block_bytes,
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=convert,
        )


def _quoted_word(words: Sequence[str]) -> bytes:
    """Return the regular expression of a word between quotes."""
    return b'"(?:' + b"|".join(re.escape(word.encode()) for word in words) + b')"'


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
