"""Names, ranges and patterns of columns; the columns that two tables share."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.column_types import (
    as_label,
    as_text,
    column_of,
    first_row,
    identifies_rows,
    settled,
    told_apart,
    unusable,
    value_problem,
)
from kerntest.data.gaps import apply_missing
from kerntest.data.table import (
    EXACT_INTEGERS,
    Column,
    ColumnProblem,
    Table,
    comment_hint,
    no_header_hint,
    refuse_duplicates,
    refuse_empty,
    unknown_column,
)
from kerntest.data.written_values import FORMS, OFFSET, is_number, strange_levels
from kerntest.dataclass import dataclass
from kerntest.errors import (
    DataError,
    UsageError,
    bad_file,
    counted,
    listed,
    none_in_common,
    option,
    shown_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from numpy.typing import NDArray


Patterns = str | Sequence[str] | None


def split_patterns(patterns: Patterns) -> list[str]:
    """Return the single patterns: a text is split at its commas, outside double quotes; blanks around are dropped."""
    if patterns is None:
        return []
    if isinstance(patterns, str):
        # A list may be wrapped over several lines of a script: every line adds its names.
        lines = csv.reader(io.StringIO(patterns, newline=""), skipinitialspace=True)
        return [field.strip() for fields in lines for field in fields if field.strip()]
    # A single name may be a number: columns of an array are called 0, 1, ...
    return [str(pattern) for pattern in (patterns if isinstance(patterns, Iterable) else [patterns])]


def find(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that one pattern means, in the order of `names`; empty where it means none.

    A name that exists wins over being a pattern. ``*`` stands for any characters; ``size:weight`` for the names from
    the one to the other, inclusive, and an end left out for the first or the last name.
    """
    if pattern in names:
        return [pattern]
    # A name may itself contain colons, so every colon is tried.
    for colon in re.finditer(":", pattern):
        ends = pattern[: colon.start()].strip(), pattern[colon.end() :].strip()
        if not any(ends) or any(end and end not in names for end in ends):
            continue
        start, stop = (names.index(end) if end else default for end, default in zip(ends, (0, -1), strict=True))
        if start > stop % len(names):
            said, hint = f"{ends[0]!r} stands after {ends[1]!r}", f"write {ends[1]}:{ends[0]}"
            said, where = f"the range {pattern!r} runs backwards: {said}", {"column": pattern}
            raise UsageError(said, hint=hint, code="usage.backward_range", where=where)
        return list(names[start : stop % len(names) + 1])
    wildcard = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
    return [name for name in names if wildcard.fullmatch(name)]


def _missing_name(pattern: str, names: Sequence[str]) -> str:
    """Return the part of a pattern that is not there: of a range with one good end, the other end."""
    absent = [end for end in map(str.strip, pattern.split(":")) if end and end not in names]
    return absent[0] if pattern.count(":") == 1 and len(absent) == 1 else pattern


def match_names(patterns: Patterns, names: Sequence[str], table_name: str) -> list[str]:
    """Return all names that the patterns mean, in the order of `names`."""
    (wanted,) = _meant_in(patterns, (table_name, names))
    return [name for name in names if name in wanted]


def _meant_in(patterns: Patterns, *tables: tuple[str, Sequence[str]], in_all: bool = False) -> list[set[str]]:
    """Return the names that patterns mean in each table: each means one somewhere, `in_all` (no wildcard) in every table."""
    meant: list[set[str]] = [set() for _ in tables]
    for pattern in split_patterns(patterns):
        found = [find(pattern, names) for _, names in tables]
        if not any(found):
            every = tuple(dict.fromkeys(name for _, names in tables for name in names))
            missing, where = _missing_name(pattern, every), list(dict.fromkeys(name for name, _ in tables))
            said = f"in neither {' nor '.join(where)}" if len(where) > 1 else f"not in {where[0]}"
            raise unknown_column(missing, where[0], every, f"column {missing!r} is {said}")
        if in_all and not all(found) and "*" not in pattern:
            place = found.index([])
            (lacking, names), having = tables[place], tables[1 - place][0]
            said = f"column {_missing_name(pattern, names)!r} is not in {lacking}, only in {having}"
            raise unknown_column(pattern, lacking, names, said)
        for own, some in zip(meant, found, strict=True):
            own.update(some)
    return meant


# Categories that a reader can compare.
FEW_LEVELS = 20


def named_columns(table: Table, columns: Patterns = None, exclude: Patterns = None) -> Table:
    """Return the table of the columns named, without those excluded, in the order of the table; some may be of no use."""
    named = table.names if is_all(columns) else match_names(columns, table.names, table.name)
    excluded = set(match_names(exclude, table.names, table.name))
    if not (kept := [name for name in named if name not in excluded]):
        raise _nothing_selected(table)
    return table.select(kept)


def is_all(columns: Patterns) -> bool:
    """Say whether all columns are meant, which no text and no list says, be they empty."""
    return columns is None or (isinstance(columns, tuple) and not columns)


def _nothing_selected(*tables: Table) -> UsageError:
    """Return the error for options that leave no column."""
    hint = f"name at least one in {option('columns')}, and exclude fewer"
    told = f"no column of {' and '.join(table.name for table in tables)} is selected"
    return UsageError(told, hint=hint, code="usage.no_columns", where={"file": tables[0].name})


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
    tables = (x.name, x.names), (y.name, y.names)
    named = [x.names, y.names] if is_all(columns) else _meant_in(columns, *tables, in_all=True)
    excluded, texts = (set().union(*_meant_in(patterns, *tables)) for patterns in (exclude, categorical))
    from_x, from_y = (
        [name for name in table.names if name in set(some) - excluded]
        for table, some in zip((x, y), named, strict=True)
    )
    if not from_x and not from_y:
        raise _nothing_selected(x, y)
    shared = set(from_x) & set(from_y)
    only_x, only_y = ([name for name in names if name not in shared] for names in (from_x, from_y))
    told = [(table.name, only) for table, only in ((x, only_x), (y, only_y)) if only]
    differ = "; ".join(f"only in {name}: {listed(only)}" for name, only in told)
    if differ and not (common and shared):
        raise _columns_differ(x, y, (only_x, only_y), differ if shared else "")
    in_x, in_y = (_as_texts(table.select([name for name in from_x if name in shared]), texts) for table in (x, y))
    in_x, in_y = _both(_with_every_digit, in_x, in_y)
    # A column that is text in one of them is what the values of both say.
    in_x, in_y = _both(lambda *columns: settled(columns, (x, y)), in_x, in_y)
    in_x, in_y = _both(_agreed, check_usable(in_x), check_usable(in_y))
    pairs = zip(in_x.columns, in_y.columns, strict=True)
    if differing := [pair for pair in pairs if pair[0].kind != pair[1].kind]:
        raise _types_differ(differing, in_x, in_y)
    warnings = [f"columns in one table only are left out: {differ}"] if differ else []
    return in_x, in_y, (*warnings, *units_differ(in_x, in_y), *_none_in_common(in_x, in_y))


def _both(change: Callable[[Column, Column], tuple[Column, Column]], x: Table, y: Table) -> tuple[Table, Table]:
    """Return both tables with each pair of columns changed."""
    pairs = [change(*columns) for columns in zip(x.columns, y.columns, strict=True)]
    return replace(x, columns=tuple(pair[0] for pair in pairs)), replace(y, columns=tuple(pair[1] for pair in pairs))


def _with_every_digit(in_x: Column, in_y: Column) -> tuple[Column, Column]:
    """Return whole numbers as text in both tables if they are in one, or if those of one would equal others of the other."""
    for one, other in ((in_x, in_y), (in_y, in_x)):
        if one.kind == "text" and one.digits is not None and other.kind == "number" and _has_every_digit(other):
            return as_text(in_x), as_text(in_y)
    return told_apart(in_x, [in_y]), told_apart(in_y, [in_x])


def _has_every_digit(column: Column) -> bool:
    """Say whether numbers are whole, and their digits are known."""
    present = column.values[~column.missing]
    return column.digits is not None or bool(np.all((np.abs(present) < EXACT_INTEGERS) & (present % 1 == 0)))


def units_differ(x: Table, y: Table) -> Iterator[str]:
    """Yield a warning for each column of numbers that have a unit in x or in y, or of times that have a UTC offset there.

    DataError where both have a unit, and these differ.
    """
    for in_x, in_y in zip(x.columns, y.columns, strict=True):
        offsets = {one.form == OFFSET: table.name for one, table in ((in_x, x), (in_y, y)) if one.kind == "date"}
        if len(offsets) == 2:
            told = f"has UTC offsets in {offsets[True]} and none in {offsets[False]}, where times are taken as those of UTC"
            yield f"column {in_x.name!r} {told}: check that they are"
        units = [column.form.unit if column.kind == "number" else "" for column in (in_x, in_y)]
        if units[0] == units[1]:
            continue
        ways = [f"as {column.written or 'plain number'} in {table.name}" for column, table in ((in_x, x), (in_y, y))]
        said = f"column {in_x.name!r} is written {' and '.join(ways)}"
        if all(units):
            hint = f"bring both to one unit, or leave the column out with {option('exclude', [in_x.name])}"
            raise DataError(said, hint=hint, code="data.units_differ", where={"file": y.name, "column": in_x.name})
        yield f"{said}: check that the units agree"


def _none_in_common(x: Table, y: Table) -> Iterator[str]:
    """Yield a warning for each column of few categories of which none is in both tables."""
    for in_x, in_y in zip(x.columns, y.columns, strict=True):
        levels = (in_x.levels, in_y.levels)
        if all(0 < len(some) <= FEW_LEVELS for some in levels) and not set(in_x.levels) & set(in_y.levels):
            told = [f"{listed(some, 3)} in {table.name}" for some, table in zip(levels, (x, y), strict=True)]
            way_out = f"check that they are spelt alike, or leave it out with {option('exclude', [in_x.name])}"
            yield f"{none_in_common(in_x.name)}: {', '.join(told)}; {way_out}"


def _as_texts(table: Table, names: Collection[str]) -> Table:
    """Return the table with those of its columns that are named as text."""
    if not names:
        return table
    columns = tuple(as_text(column) if column.name in names else column for column in table.columns)
    return replace(table, columns=columns)


def _columns_differ(x: Table, y: Table, only: tuple[list[str], list[str]], differ: str) -> DataError:
    """Return the error for columns that are only in one table; `differ` says which, empty if no column is in both."""
    no_header = no_header_hint(*only)
    if x.format == y.format == "array":
        message = f"have {len(x.columns)} and {len(y.columns)} columns"
        hint = "hand over arrays with the same columns in the same order"
    elif not differ:
        message, comment = "have no column in common", comment_hint(x.names) or comment_hint(y.names)
        hint = comment or no_header or f"{x.name} has {listed(only[0])}; {y.name} has {listed(only[1])}"
    else:
        message = f"have different columns: {differ}"
        hint = no_header or (
            f"{option('common', True)} uses the shared ones; {option('exclude', [*only[0], *only[1]])} leaves these out; "
            f"{option('columns')} names those to use"
        )
    return DataError(f"{x.name} and {y.name} {message}", hint=hint, code="data.columns_differ")


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
    said = f"column {in_x.name!r} is {in_x.kind} in {x.name} and {in_y.kind} in {y.name}"
    said += f" ({'; '.join(examples)})" if examples else ""
    said += f"; the types of {listed(names[1:])} differ too" if names[1:] else ""
    way = f"{option('categorical', names)} compares as text"
    if {in_x.kind, in_y.kind} == {"boolean", "number"}:
        # As text these have nothing in common.
        way = f"write {in_x.name!r} alike in both, as true and false or as 1 and 0"
    hint = f"{way}; {option('exclude', names)} leaves out"
    return DataError(said, hint=hint, code="data.types_differ", where={"file": y.name, "column": in_x.name})


def _what_made_it_text(column: Column, table: Table) -> str | None:
    """Return the first value of a text column that is neither number nor date, and where it stands."""
    if column.kind != "text":
        return None
    row = first_row(column, strange_levels(column, table.na, FORMS) or range(len(column.levels)))
    return f"{table.name}, {table.place(row)}: {shown_value(column.levels[column.values[row]])}"


def with_categories(table: Table, categorical: Patterns) -> Table:
    """Return the table with the columns that `categorical` names as text; UsageError for one that is not there."""
    return _as_texts(table, match_names(categorical, table.names, table.name))


def table_of(
    name: str, file_format: str, n_rows: int, columns: Sequence[tuple[str, Any]], categorical: Patterns
) -> Table:
    """Return the table of Arrow columns; None stands for one of mixed Python objects."""
    names = [column_name for column_name, _ in columns]
    refuse_empty(name, n_rows, len(names))
    refuse_duplicates(names, name)
    texts = match_names(categorical, names, name)
    typed = tuple(
        unusable(one, n_rows, "holds values of mixed or unknown types", name)
        if data is None
        else column_of(one, data, name, as_category=one in texts)
        for one, data in columns
    )
    return Table(name, typed, n_rows, file_format)


# Columns as arrays: missing values, pooling, scaling.


def check_usable(table: Table, labels: Collection[str] = ()) -> Table:
    """Return the table if all of its columns can be used as they are (missing values aside), or as `labels` that tell rows apart."""
    if any(one.problem is not None and one.name in labels for one in table.columns):
        table = replace(table, columns=tuple(as_label(one) if one.name in labels else one for one in table.columns))
    for column in table.columns:
        if column.problem is not None:
            raise column.problem.error
        if (problem := infinity(column, table)) is not None:
            raise problem.error
    return table


def infinity(
    column: Column, table: Table, as_typed: Callable[[Sequence[str]], Sequence[Column]] | None = None
) -> ColumnProblem | None:
    """Return the problem of a column of numbers with an infinity in it, shown as it is typed; None without."""
    if column.kind != "number" or all(map(math.isfinite, column.range)):
        return None
    if not (infinite := np.isinf(column.values)).any():
        return None
    row = int(np.argmax(infinite))
    value = str(column.values[row])
    if as_typed is not None:
        (text,) = as_typed([column.name])
        value = text.levels[text.values[row]]
    beyond = "beyond 1.8e308, the largest number" if is_number(value) else "not a finite number"
    said = f"which is {beyond} ({counted(int(np.count_nonzero(infinite)), 'such value')})"
    hint = f"correct it, or leave the column out with {option('exclude', [column.name])}"
    return value_problem(column, table, row, said, value=value, hint=hint, code="data.infinite_values")


def standardize(
    numeric: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Bring every column to mean 0 and standard deviation 1 (divisor n).

    Two passes over the deviations keep the digits of columns with a large offset, and a power of two taken out first
    keeps squares from overflowing; both are exact where plain arithmetic would be.
    """
    largest = np.abs(numeric).max(axis=0, initial=0.0)
    exponent = np.frexp(largest)[1]
    deviation = np.ldexp(numeric, -exponent)
    constant = deviation.max(axis=0, initial=-np.inf) == deviation.min(axis=0, initial=np.inf)
    centre = np.where(constant, deviation[0], deviation.mean(axis=0))
    deviation -= centre
    correction = deviation.mean(axis=0)
    deviation -= correction
    spread = np.where(constant, 1.0, np.sqrt(np.mean(deviation * deviation, axis=0)))
    scale = np.ldexp(spread, np.where(constant, 0, exponent))
    return deviation / spread, np.ldexp(centre + correction, exponent), scale


_FEWEST_ROWS = 2
ONE_VALUE = "has one value in all rows"


@dataclass(frozen=True, eq=False)
class Arranged:
    """Columns of n rows as arrays; of two tables one below the other the first `n_x` rows are those of x."""

    numeric: NDArray[np.float64]
    codes: NDArray[np.int64]
    numeric_names: tuple[str, ...]
    category_names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    # Of each column that is left out, in words.
    reasons: Mapping[str, str]
    n_x: int = 0

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that cannot tell anything."""
        return tuple(self.reasons)

    @property
    def warnings(self) -> list[str]:
        """Why columns are left out."""
        return told_of_left_out(self.reasons)

    @property
    def empty(self) -> bool:
        """Whether no column is left."""
        return not self.numeric_names and not self.category_names

    @property
    def n_y(self) -> int:
        """Rows of the second of two tables."""
        return len(self.numeric) - self.n_x


def arrange(columns: Sequence[Column], n_rows: int, *, keep_equal: bool = False) -> Arranged:
    """Lay columns without missing values side by side, numbers apart from categories; rows that are all equal if that is asked."""
    told = [(column, reason_to_leave_out(column)) for column in map(laid_below, columns)]
    if keep_equal and all(reason == _left_out(column.name, ONE_VALUE) for column, reason in told):
        told = [(column, None) for column, _ in told]
    kept = [column for column, reason in told if not reason]
    numeric, categories = ([column for column in kept if column.is_category == wanted] for wanted in (False, True))
    return Arranged(
        numeric=np.column_stack([np.empty((n_rows, 0)), *(column.values for column in numeric)]),
        codes=np.column_stack([np.empty((n_rows, 0), dtype=np.int64), *(column.values for column in categories)]),
        numeric_names=tuple(column.name for column in numeric),
        category_names=tuple(column.name for column in categories),
        levels=tuple(column.levels for column in categories),
        reasons={column.name: reason for column, reason in told if reason},
    )


def pool(x: Table, y: Table, *, keep_equal: bool = False) -> Arranged:
    """Lay the rows of x above those of y; rows that are all equal, in which nothing is left to compare, if that is asked."""
    for table in (x, y):
        if table.n_rows < _FEWEST_ROWS:
            said = f"has {counted(table.n_rows, 'row')}; the test needs at least {_FEWEST_ROWS} in each table"
            raise bad_file(table.name, said, hint="give it more rows", code="data.too_few_rows")
        apply_missing(table, "error")
    columns = [laid_below(*pair) for pair in zip(x.columns, y.columns, strict=True)]
    arranged = arrange(columns, x.n_rows + y.n_rows, keep_equal=keep_equal)
    if arranged.empty:
        said = f"no column of {x.name} and {y.name} is left to compare: {'; '.join(arranged.warnings)}"
        hint = "a column must hold at least two different values, and not one per row"
        raise DataError(said, hint=hint, code="data.no_columns", where={"file": x.name})
    return replace(arranged, n_x=x.n_rows)


def laid_below(*columns: Column) -> Column:
    """Return one column of the values of several, categories coded by those of their levels that occur, sorted."""
    first = columns[0]
    if not first.is_category:
        values = np.concatenate([one.values for one in columns])
        return replace(first, values=values, digits=None) if len(columns) > 1 else first
    levels = tuple(sorted(set().union(*(column.used_levels for column in columns))))
    position = {level: code for code, level in enumerate(levels)}
    codes = [
        # The last place is that of code -1.
        np.array([*(position.get(level, -1) for level in column.levels), -1], dtype=np.int64)[column.values]
        for column in columns
    ]
    return replace(first, values=np.concatenate(codes), levels=levels, digits=None)


def reason_to_leave_out(column: Column) -> str | None:
    """Return why a column cannot tell anything in a test; None if it can."""
    constant = column.range[0] == column.range[1]
    value = float(column.values[0]) if constant and not column.is_category and column.digits is None else 0.0
    n_rows, n_levels = len(column.values), len(column.levels)
    return reason_from_facts(column.name, column.kind, n_rows=n_rows, n_levels=n_levels, constant=constant, value=value)


def identifiers_with_gaps(tables: Sequence[Table]) -> dict[str, str]:
    """Return which columns of tables of the same columns identify rows and have gaps, and why they are left out: no row need be for them."""
    found = {}
    for columns in zip(*(table.columns for table in tables), strict=True):
        if columns[0].kind == "text" and any(column.n_missing for column in columns):
            present = laid_below(*(column.take(~column.missing) for column in columns))
            if len(present.levels) > 1 and (reason := reason_to_leave_out(present)):
                found[present.name] = reason
    return found if len(found) < len(tables[0].names) else {}


def told_of_left_out(reasons: Mapping[str, str]) -> list[str]:
    """Return why columns are left out, those of one value together."""
    constant = [name for name, reason in reasons.items() if reason == _left_out(name, ONE_VALUE)]
    if len(constant) < 2:
        return [*reasons.values()]
    together = f"columns {listed([repr(name) for name in constant])} have one value each in all rows and are left out"
    return [together, *(reason for name, reason in reasons.items() if name not in constant)]


def reason_from_facts(name: str, kind: str, *, n_rows: int, n_levels: int, constant: bool, value: float) -> str | None:
    """Return the same from what is known of a column: its kind, its levels, and the number that it is if it is one."""
    reason = ""
    if constant:
        reason = ONE_VALUE
        if abs(value) >= EXACT_INTEGERS:
            reason += f" to the 16 digits of a number ({option('categorical')} takes every digit)"
    elif kind == "text" and identifies_rows(n_levels, n_rows):
        reason = f"has {min(n_levels, n_rows):,} different values in {n_rows:,} rows: it identifies rows"
    return _left_out(name, reason) if reason else None


def _left_out(name: str, reason: str) -> str:
    return f"column {name!r} {reason} and is left out"
