"""Names, ranges and patterns of columns; the columns that two tables share."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.column_types import as_text, settled
from kerntest.data.rows import check_usable
from kerntest.data.table import Column, Table, comment_hint, no_header_hint, unknown_column
from kerntest.data.written_values import is_number
from kerntest.errors import DataError, UsageError, listed, option_value, shown_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

Patterns = str | Sequence[str] | None


def split_patterns(patterns: Patterns) -> list[str]:
    """Return the single patterns: a text is split at its commas, outside double quotes; blanks around are dropped."""
    if patterns is None:
        return []
    if isinstance(patterns, str):
        # A list may be wrapped over several lines of a script: every line adds its names.
        lines = csv.reader(io.StringIO(patterns, newline=""), skipinitialspace=True)
        return [field.strip() for fields in lines for field in fields if field.strip()]
    return [str(pattern) for pattern in patterns]


def find(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that one pattern means, in the order of `names`; empty where it means none.

    A name that exists wins over being a pattern. ``*`` stands for any characters; ``size:weight`` for the names from
    the one to the other, inclusive, and an end left out for the first or the last name.
    """
    if pattern in names:
        return [pattern]
    if ":" in pattern:
        found = _find_range(pattern, list(names))
        if found:
            return found
    if "*" in pattern:
        wildcard = re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)
        return [name for name in names if wildcard.fullmatch(name)]
    return []


def _find_range(pattern: str, names: list[str]) -> list[str]:
    """Return the names of a range; a name may itself contain colons, so every colon is tried."""
    for colon in (match.start() for match in re.finditer(":", pattern)):
        first, last = pattern[:colon].strip(), pattern[colon + 1 :].strip()
        if (first and first not in names) or (last and last not in names) or not (first or last):
            continue
        start = names.index(first) if first else 0
        stop = names.index(last) if last else len(names) - 1
        if start > stop:
            raise UsageError(
                f"the range {pattern!r} runs backwards: {first!r} stands after {last!r}",
                hint=f"write {last}:{first}",
                code="usage.backward_range",
                where={"column": pattern},
            )
        return names[start : stop + 1]
    return []


def missing_name(pattern: str, names: Sequence[str]) -> str:
    """Return the part of a pattern that is not there: of a range with one good end, the other end."""
    if pattern.count(":") == 1:
        absent = [end for end in (part.strip() for part in pattern.split(":")) if end and end not in names]
        if len(absent) == 1:
            return absent[0]
    return pattern


def match_names(patterns: Patterns, names: Sequence[str], table_name: str) -> list[str]:
    """Return all names that the patterns mean, in the order of `names`."""
    wanted: set[str] = set()
    for pattern in split_patterns(patterns):
        found = find(pattern, names)
        if not found:
            raise unknown_column(missing_name(pattern, names), table_name, names)
        wanted.update(found)
    return [name for name in names if name in wanted]


# Categories that a reader can compare.
FEW_LEVELS = 20
_LIKE_A_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def select_columns(table: Table, columns: Patterns = None, exclude: Patterns = None) -> Table:
    """Return the table of the columns named, without those excluded, in the order of the table."""
    return check_usable(named_columns(table, columns, exclude))


def named_columns(table: Table, columns: Patterns = None, exclude: Patterns = None) -> Table:
    """Return the same, whether the columns can be used or not."""
    named = table.names if _is_all(columns) else match_names(columns, table.names, table.name)
    excluded = set(match_names(exclude, table.names, table.name))
    kept = [name for name in named if name not in excluded]
    if not kept:
        raise _nothing_selected(table.name)
    return table.select(kept)


def _is_all(columns: Patterns) -> bool:
    """Say whether all columns are meant, which no text says."""
    return not columns and columns != ""


def _nothing_selected(where: str) -> UsageError:
    """Return the error for options that leave no column."""
    return UsageError(
        f"no column of {where} is selected",
        hint="name at least one in --columns, and exclude fewer",
        code="usage.no_columns",
    )


def match_tables(
    x: Table,
    y: Table,
    *,
    columns: Patterns = None,
    exclude: Patterns = None,
    common: bool = False,
    categorical: Patterns = (),
) -> tuple[Table, Table, tuple[str, ...]]:
    """Return both tables with the same columns, in the order of x, of the same kinds."""
    pair = _Pair(x, y)
    from_x, from_y = pair.named(columns)
    excluded, texts = pair.in_either(exclude), pair.in_either(categorical)
    shared, warnings = pair.shared(
        [name for name in from_x if name not in excluded],
        [name for name in from_y if name not in excluded],
        common=common,
    )
    in_x, in_y = (_as_texts(table.select(shared), texts) for table in (x, y))
    # A column that is text in one of them is what the values of both say.
    in_x, in_y = _both(lambda *columns: settled(columns, (x, y)), in_x, in_y)
    in_x, in_y = _both(_agreed, check_usable(in_x), check_usable(in_y))
    differing = [
        columns for columns in zip(in_x.columns, in_y.columns, strict=True) if columns[0].kind != columns[1].kind
    ]
    if differing:
        raise _types_differ(differing, in_x, in_y)
    return in_x, in_y, (*warnings, *units_differ(in_x, in_y), *_none_in_common(in_x, in_y))


def _both(change: Callable[[Column, Column], tuple[Column, Column]], x: Table, y: Table) -> tuple[Table, Table]:
    """Return both tables with each pair of columns changed."""
    pairs = [change(*columns) for columns in zip(x.columns, y.columns, strict=True)]
    return replace(x, columns=tuple(pair[0] for pair in pairs)), replace(y, columns=tuple(pair[1] for pair in pairs))


def units_differ(x: Table, y: Table) -> Iterator[str]:
    """Yield a warning for each column of numbers that have a unit in x or in y; DataError where both have, and differ."""
    for in_x, in_y in zip(x.columns, y.columns, strict=True):
        units = [column.form.unit if column.kind == "number" else "" for column in (in_x, in_y)]
        if units[0] == units[1]:
            continue
        ways = [f"as {column.written or 'plain number'} in {table.name}" for column, table in ((in_x, x), (in_y, y))]
        said = f"column {in_x.name!r} is written {' and '.join(ways)}"
        if all(units):
            raise DataError(
                said,
                hint=f"bring both to one unit, or leave the column out with --exclude {option_value([in_x.name])}",
                code="data.units_differ",
                where={"file": y.name, "column": in_x.name},
            )
        yield f"{said}: check that the units agree"


def _none_in_common(x: Table, y: Table) -> Iterator[str]:
    """Yield a warning for each column of few categories of which none is in both tables."""
    for in_x, in_y in zip(x.columns, y.columns, strict=True):
        levels = (in_x.levels, in_y.levels)
        if all(0 < len(some) <= FEW_LEVELS for some in levels) and not set(in_x.levels) & set(in_y.levels):
            told = [f"{listed(some, 3)} in {table.name}" for some, table in zip(levels, (x, y), strict=True)]
            yield f"column {in_x.name!r} has no value in common: {', '.join(told)}; check that they are spelt alike"


def _as_texts(table: Table, names: Collection[str]) -> Table:
    """Return the table with those of its columns that are named as text."""
    columns = tuple(as_text(column) if column.name in names else column for column in table.columns)
    return replace(table, columns=columns)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two tables whose columns are told apart by name."""

    x: Table
    y: Table

    def named(self, columns: Patterns) -> tuple[list[str], list[str]]:
        """Return the names that `columns` means in x and in y; a name (not a wildcard) must be in both."""
        if _is_all(columns):
            return list(self.x.names), list(self.y.names)
        found_x: set[str] = set()
        found_y: set[str] = set()
        for pattern in split_patterns(columns):
            in_x, in_y = find(pattern, self.x.names), find(pattern, self.y.names)
            if not in_x and not in_y:
                raise self._in_neither(pattern)
            if not (in_x and in_y) and "*" not in pattern:
                lacking, having = (self.y, self.x) if in_x else (self.x, self.y)
                raise UsageError(
                    f"column {missing_name(pattern, lacking.names)!r} is not in {lacking.name}, only in {having.name}",
                    hint=unknown_column(pattern, lacking.name, lacking.names).hint,
                    code="usage.unknown_column",
                    where={"file": lacking.name, "column": pattern},
                )
            found_x.update(in_x)
            found_y.update(in_y)
        return [name for name in self.x.names if name in found_x], [name for name in self.y.names if name in found_y]

    def shared(self, from_x: list[str], from_y: list[str], *, common: bool) -> tuple[list[str], tuple[str, ...]]:
        """Return the names in both lists, and the warning about the others; without `common` there may be none."""
        if not from_x and not from_y:
            raise _nothing_selected(f"{self.x.name} and {self.y.name}")
        both = set(from_x) & set(from_y)
        only_x, only_y = ([name for name in names if name not in both] for names in (from_x, from_y))
        if not only_x and not only_y:
            return from_x, ()
        if not (common and both):
            raise self._columns_differ(only_x, only_y, shared=bool(both))
        left_out = f"columns in one table only are left out: {self._listed(only_x, only_y)}"
        return [name for name in from_x if name in both], (left_out,)

    def in_either(self, patterns: Patterns) -> set[str]:
        """Return the names that the patterns mean in x or y; each must mean one somewhere."""
        wanted: set[str] = set()
        for pattern in split_patterns(patterns):
            found = {*find(pattern, self.x.names), *find(pattern, self.y.names)}
            if not found:
                raise self._in_neither(pattern)
            wanted |= found
        return wanted

    def _in_neither(self, pattern: str) -> UsageError:
        """Return the error for a name that no table has."""
        names = tuple(dict.fromkeys((*self.x.names, *self.y.names)))
        name = missing_name(pattern, names)
        error = unknown_column(name, self.x.name, names)
        if self.x.name == self.y.name:
            return error
        message = f"column {name!r} is in neither {self.x.name} nor {self.y.name}"
        return UsageError(message, hint=error.hint, code=error.code, where=error.where)

    def _columns_differ(self, only_x: list[str], only_y: list[str], *, shared: bool) -> DataError:
        """Return the error that lists which columns are only in one table."""
        x, y = self.x, self.y
        no_header = no_header_hint(only_x, only_y)
        if x.format == y.format == "array":
            message = f"have {len(x.columns)} and {len(y.columns)} columns"
            hint = "hand over arrays with the same columns in the same order"
        elif not shared:
            message, comment = "have no column in common", comment_hint(x.names) or comment_hint(y.names)
            hint = comment or no_header or f"{x.name} has {listed(only_x)}; {y.name} has {listed(only_y)}"
        else:
            message = f"have different columns: {self._listed(only_x, only_y)}"
            hint = no_header or (
                f"--common uses the shared ones; --exclude {option_value([*only_x, *only_y])} leaves these out; "
                "--columns names those to use"
            )
        return DataError(f"{x.name} and {y.name} {message}", hint=hint, code="data.columns_differ")

    def _listed(self, only_x: list[str], only_y: list[str]) -> str:
        """Return which columns are only in which table."""
        each = [(table.name, only) for table, only in ((self.x, only_x), (self.y, only_y)) if only]
        return "; ".join(f"only in {name}: {listed(only)}" for name, only in each)


def _agreed(in_x: Column, in_y: Column) -> tuple[Column, Column]:
    """Return two columns of one kind where that can be had without guessing."""
    if in_x.kind == in_y.kind:
        return in_x, in_y
    if in_x.missing.all():
        nothing = np.full(len(in_x.values), -1 if in_y.is_category else np.nan, dtype=in_y.values.dtype)
        return Column(in_x.name, in_y.kind, nothing, in_y.levels), in_y
    if in_y.missing.all():
        return _agreed(in_y, in_x)[::-1]
    if in_x.is_category and in_y.is_category:
        return as_text(in_x), as_text(in_y)
    return in_x, in_y


def _types_differ(differing: Sequence[tuple[Column, Column]], x: Table, y: Table) -> DataError:
    """Return the error for columns of different kinds: the first in full, the others by name."""
    in_x, in_y = differing[0]
    names = [pair[0].name for pair in differing]
    examples = [example for column, table in ((in_x, x), (in_y, y)) if (example := _what_made_it_text(column, table))]
    return DataError(
        f"column {in_x.name!r} is {in_x.kind} in {x.name} and {in_y.kind} in {y.name}"
        + (f" ({'; '.join(examples)})" if examples else "")
        + (f"; the types of {listed(names[1:])} differ too" if names[1:] else ""),
        hint=f"--categorical {option_value(names)} compares as text; --exclude {option_value(names)} leaves out",
        code="data.types_differ",
        where={"file": y.name, "column": in_x.name},
    )


def _what_made_it_text(column: Column, table: Table) -> str | None:
    """Return the first value of a text column that is neither number nor date, and where it stands."""
    if column.kind != "text":
        return None
    # One more place at the end: code -1 (missing) finds it.
    odd = np.array([not (is_number(level) or _LIKE_A_DATE.match(level)) for level in column.levels] + [False])
    row = int(np.argmax(odd[column.values] if odd.any() else column.values >= 0))
    return f"{table.name}, {table.place(row)}: {shown_value(column.levels[column.values[row]])}"


def with_categories(table: Table, categorical: Patterns) -> Table:
    """Return the table with the columns that `categorical` names as text; UsageError for one that is not there."""
    return _as_texts(table, match_names(categorical, table.names, table.name))
