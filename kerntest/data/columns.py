"""Names, ranges and patterns of columns; the columns that two tables share."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.forms import is_number
from kerntest.data.kinds import as_text, settled
from kerntest.data.messages import listed, option_value, shown_value
from kerntest.data.rows import check_usable
from kerntest.data.table import Column, Table, comment_hint, no_header_hint, unknown_column
from kerntest.errors import DataError, UsageError, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    named = _named(columns, table.names, table.name)
    excluded = set(match_names(exclude, table.names, table.name))
    kept = [name for name in named if name not in excluded]
    if not kept:
        raise _nothing_selected(table.name)
    return table.select(kept)


def _named(columns: Patterns, names: Sequence[str], table_name: str) -> list[str]:
    """Return the names that `columns` means; all where it is None or an empty sequence."""
    if not columns and columns != "":
        return list(names)
    return match_names(columns, names, table_name)


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
    in_x, in_y = _of_same_kinds(*map(check_usable, _decided_together(in_x, in_y)))
    return in_x, in_y, (*warnings, *units_differ(in_x, in_y), *_none_in_common(in_x, in_y))


def _decided_together(x: Table, y: Table) -> tuple[Table, Table]:
    """Return both tables where each column that is text in one of them is what the values of both say."""
    pairs = [settled(columns, (x, y)) for columns in zip(x.columns, y.columns, strict=True)]
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


def _as_texts(table: Table, names: set[str]) -> Table:
    """Return the table with those of its columns that are named as text."""
    return replace(
        table, columns=tuple(as_text(column) if column.name in names else column for column in table.columns)
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two tables whose columns are told apart by name."""

    x: Table
    y: Table

    def named(self, columns: Patterns) -> tuple[list[str], list[str]]:
        """Return the names that `columns` means in x and in y; a name (not a wildcard) must be in both."""
        if not columns and columns != "":
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
                    hint=_did_you_mean(pattern, lacking),
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
        error = unknown_column(missing_name(pattern, names), self.x.name, names)
        if self.x.name == self.y.name:
            return error
        message = f"column {missing_name(pattern, names)!r} is in neither {self.x.name} nor {self.y.name}"
        return UsageError(message, hint=error.hint, code=error.code, where=error.where)

    def _columns_differ(self, only_x: list[str], only_y: list[str], *, shared: bool) -> DataError:
        """Return the error that lists which columns are only in one table."""
        if self.x.format == self.y.format == "array":
            widths = f"{len(self.x.columns)} and {len(self.y.columns)}"
            return DataError(
                f"{self.x.name} and {self.y.name} have {widths} columns",
                hint="hand over arrays with the same columns in the same order",
                code="data.columns_differ",
            )
        if not shared:
            return DataError(
                f"{self.x.name} and {self.y.name} have no column in common",
                hint=comment_hint(self.x.names)
                or comment_hint(self.y.names)
                or no_header_hint(only_x, only_y)
                or f"{self.x.name} has {listed(only_x)}; {self.y.name} has {listed(only_y)}",
                code="data.columns_differ",
            )
        return DataError(
            f"{self.x.name} and {self.y.name} have different columns: {self._listed(only_x, only_y)}",
            hint=no_header_hint(only_x, only_y)
            or f"--common uses the shared ones; --exclude {option_value([*only_x, *only_y])} leaves these out; "
            "--columns names those to use",
            code="data.columns_differ",
        )

    def _listed(self, only_x: list[str], only_y: list[str]) -> str:
        """Return which columns are only in which table."""
        each = [(table.name, only) for table, only in ((self.x, only_x), (self.y, only_y)) if only]
        return "; ".join(f"only in {name}: {listed(only)}" for name, only in each)


def _did_you_mean(name: str, table: Table) -> str:
    """Return a hint for a name that a table lacks."""
    close = suggest(name, table.names)
    return f"did you mean {close!r}?" if close else f"the columns are {listed(table.names, 20)}"


def _of_same_kinds(x: Table, y: Table) -> tuple[Table, Table]:
    """Return both tables with equal kinds column by column: an empty column takes the other's, text takes booleans."""
    pairs = [_agreed(in_x, in_y) for in_x, in_y in zip(x.columns, y.columns, strict=True)]
    differing = [pair for pair in pairs if pair[0].kind != pair[1].kind]
    if differing:
        raise _types_differ(differing, x, y)
    return replace(x, columns=tuple(pair[0] for pair in pairs)), replace(y, columns=tuple(pair[1] for pair in pairs))


def _agreed(in_x: Column, in_y: Column) -> tuple[Column, Column]:
    """Return two columns of one kind where that can be had without guessing."""
    if in_x.kind == in_y.kind:
        return in_x, in_y
    if in_x.missing.all():
        return _empty_like(in_x, in_y), in_y
    if in_y.missing.all():
        return in_x, _empty_like(in_y, in_x)
    if in_x.is_category and in_y.is_category:
        return as_text(in_x), as_text(in_y)
    return in_x, in_y


def _empty_like(column: Column, model: Column) -> Column:
    """Return an entirely missing column of the model's kind."""
    missing = -1 if model.is_category else np.nan
    return Column(column.name, model.kind, np.full(len(column.values), missing, dtype=model.values.dtype), model.levels)


def _types_differ(differing: list[tuple[Column, Column]], x: Table, y: Table) -> DataError:
    """Return the error for columns of different kinds: the first in full, the others by name."""
    in_x, in_y = differing[0]
    name = in_x.name
    examples = [example for column, table in ((in_x, x), (in_y, y)) if (example := _what_made_it_text(column, table))]
    others = [pair[0].name for pair in differing[1:]]
    word = option_value([pair[0].name for pair in differing])
    return DataError(
        f"column {name!r} is {in_x.kind} in {x.name} and {in_y.kind} in {y.name}"
        + (f" ({'; '.join(examples)})" if examples else "")
        + (f"; the types of {listed(others)} differ too" if others else ""),
        hint=f"--categorical {word} compares as text; --exclude {word} leaves out",
        code="data.types_differ",
        where={"file": y.name, "column": name},
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
    wanted = set(match_names(categorical, table.names, table.name))
    columns = tuple(as_text(column) if column.name in wanted else column for column in table.columns)
    return replace(table, columns=columns)
