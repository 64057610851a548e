"""Columns to arrays: missing values, pooling, scaling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from kerntest.data.column_types import value_problem
from kerntest.data.table import Column, ColumnProblem, Table
from kerntest.data.written_values import is_number
from kerntest.errors import DataError, counted, listed, one_line, option_value, shown_value, taken_as_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Table


def check_usable(table: Table) -> Table:
    """Return the table if all of its columns can be used as they are (missing values aside)."""
    for column in table.columns:
        if column.problem is not None:
            raise column.problem.error()
        if (problem := infinity(column, table)) is not None:
            raise problem.error()
    return table


def infinity(column: Column, table: Table, typed: Callable[[int], str] | None = None) -> ColumnProblem | None:
    """Return the problem of a column of numbers with an infinity in it; None without."""
    infinite = np.isinf(column.values) if column.kind == "number" else np.zeros(0, dtype=bool)
    if not infinite.any():
        return None
    row = int(np.argmax(infinite))
    value = str(column.values[row]) if typed is None else typed(row)
    beyond = "beyond 1.8e308, the largest number" if is_number(value) else "not a finite number"
    return value_problem(
        column,
        table,
        row,
        f"which is {beyond} ({counted(int(np.count_nonzero(infinite)), 'such value')})",
        value=value,
        hint=f"correct it, or leave the column out with --exclude {option_value([column.name])}",
        code="data.infinite_values",
    )


def apply_missing(table: Table, policy: Literal["error", "drop"], needed: Collection[str] = ()) -> tuple[Table, int]:
    """Refuse missing values, or leave out the rows that have one."""
    counts = {column.name: column.n_missing for column in table.columns}
    counts = {name: count for name, count in counts.items() if count}
    if not counts:
        return table, 0
    incomplete: NDArray[np.bool_] = np.zeros(table.n_rows, dtype=bool)
    for column in table.columns:
        incomplete |= column.missing
    if policy == "error":
        raise missing_error(table, counts, int(np.argmax(incomplete)), needed)
    n_dropped = int(np.count_nonzero(incomplete))
    if n_dropped == table.n_rows:
        raise no_rows_left(table.name, counts, needed)
    return table.take(~incomplete), n_dropped


def no_rows_left(table_name: str, counts: Mapping[str, int], needed: Collection[str]) -> DataError:
    """Return the error for a table of which every row has a missing value."""
    emptiest = max(counts, key=lambda name: counts[name])
    way_out = f"--exclude {option_value([emptiest])} leaves that column out"
    return DataError(
        f"every row of {table_name} has a missing value: {_per_column(counts)}",
        hint=f"column {emptiest!r} is needed: fill it in" if emptiest in needed else way_out,
        code="data.no_rows_left",
        where={"file": table_name, "column": emptiest},
    )


def missing_error(table: Table, counts: dict[str, int], first_row: int, needed: Collection[str]) -> DataError:
    """Return the error that counts the missing values, column by column."""
    # Leaving other columns out does not help where one that is needed has missing values too.
    others = [] if any(name in needed for name in counts) else list(counts)
    columns = "column" if len(others) == 1 else "columns"
    word = next((column.emptied_by for column in table.columns if column.emptied_by), None)
    taken = "" if word is None else f"; if {shown_value(word)} is a value, {taken_as_value(word, table.na)}"
    excluded = f"; --exclude {option_value(others)} leaves the {columns} out" if others else ""
    return DataError(
        f"{table.name} has {counted(sum(counts.values()), 'missing value')}: {_per_column(counts)} "
        f"(the first in {table.place(first_row)})",
        hint=f"--missing drop leaves those rows out{excluded}{taken}",
        code="data.missing_values",
        where={**table.where(first_row), "column": next(iter(counts))},
    )


def _per_column(counts: Mapping[str, int]) -> str:
    """Return the counts as ``price 10, city 2``."""
    return listed([f"{one_line(name)} {count:,}" for name, count in counts.items()])


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
    scale = np.where(constant, 1.0, np.ldexp(spread, exponent))
    return deviation / spread, np.ldexp(centre + correction, exponent), scale


# A text column with more different values than this share of the rows identifies rows.
IDENTIFIES_ROWS = 0.9
# Whole numbers from here on are not all told apart as floating-point numbers.
EXACT_INTEGERS = 2.0**53
_FEWEST_ROWS_TO_TELL = 20


_FEWEST_ROWS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Arranged:
    """Columns of n rows as arrays; of two tables one below the other the first `n_x` rows are those of x."""

    numeric: NDArray[np.float64]
    codes: NDArray[np.int64]
    numeric_names: tuple[str, ...]
    category_names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    n_x: int = 0

    @property
    def empty(self) -> bool:
        """Whether no column is left."""
        return not self.numeric_names and not self.category_names

    @property
    def n_y(self) -> int:
        """Rows of the second of two tables."""
        return len(self.numeric) - self.n_x


def arrange(columns: Sequence[Column], n_rows: int) -> Arranged:
    """Lay columns without missing values side by side, numbers apart from categories."""
    told = [(column, reason_to_leave_out(column)) for column in map(recoded, columns)]
    kept = [column for column, warning in told if not warning]
    numeric, categories = ([column for column in kept if column.is_category == wanted] for wanted in (False, True))
    return Arranged(
        numeric=np.column_stack([np.empty((n_rows, 0)), *(column.values for column in numeric)]),
        codes=np.column_stack([np.empty((n_rows, 0), dtype=np.int64), *(column.values for column in categories)]),
        numeric_names=tuple(column.name for column in numeric),
        category_names=tuple(column.name for column in categories),
        levels=tuple(column.levels for column in categories),
        left_out=tuple(column.name for column, warning in told if warning),
        warnings=tuple(warning for _, warning in told if warning),
    )


def pool(x: Table, y: Table) -> Arranged:
    """Lay the rows of x above those of y."""
    for table in (x, y):
        if table.n_rows < _FEWEST_ROWS:
            raise DataError(
                f"{table.name} has {counted(table.n_rows, 'row')}; the test needs at least {_FEWEST_ROWS} in each table",
                hint="give it more rows",
                code="data.too_few_rows",
                where={"file": table.name},
            )
        apply_missing(table, "error")
    columns = [laid_below(*pair) for pair in zip(x.columns, y.columns, strict=True)]
    arranged = arrange(columns, x.n_rows + y.n_rows)
    if arranged.empty:
        raise DataError(
            f"no column of {x.name} and {y.name} is left to compare: {'; '.join(arranged.warnings)}",
            hint="a column must hold at least two different values, and not one per row",
            code="data.no_columns",
            where={"file": x.name},
        )
    return replace(arranged, n_x=x.n_rows)


def laid_below(*columns: Column) -> Column:
    """Return one column of the values of several, categories coded by those of their levels that occur, sorted."""
    first = columns[0]
    if not first.is_category:
        return Column(first.name, first.kind, np.concatenate([column.values for column in columns]))
    levels = tuple(sorted({column.levels[code] for column in columns for code in np.unique(column.values)}))
    position = {level: code for code, level in enumerate(levels)}
    codes = [
        np.array([position.get(level, -1) for level in column.levels], dtype=np.int64)[column.values]
        for column in columns
    ]
    return Column(first.name, first.kind, np.concatenate(codes), levels)


def recoded(column: Column) -> Column:
    """Return a category column with the levels that occur, sorted; others as they are."""
    if not column.is_category:
        return column
    laid = laid_below(column)
    return replace(column, values=laid.values, levels=laid.levels)


def reason_to_leave_out(column: Column) -> str | None:
    """Return why a column cannot tell anything in a test; None if it can."""
    constant = column.values.min() == column.values.max()
    value = float(column.values[0]) if constant and not column.is_category else 0.0
    return reason_from_facts(
        column.name,
        column.kind,
        n_rows=len(column.values),
        n_levels=len(column.levels),
        constant=bool(constant),
        value=value,
    )


def reason_from_facts(name: str, kind: str, *, n_rows: int, n_levels: int, constant: bool, value: float) -> str | None:
    """Return the same from what is known of a column: its kind, its levels, and the number that it is if it is one."""
    if constant:
        if abs(value) >= EXACT_INTEGERS:
            return (
                f"column {name!r} has one value in all rows to the 16 digits of a number (--categorical "
                "takes every digit) and is left out"
            )
        return f"column {name!r} has one value in all rows and is left out"
    if kind == "text" and n_rows >= _FEWEST_ROWS_TO_TELL and n_levels > IDENTIFIES_ROWS * n_rows:
        return (
            f"column {name!r} has {n_levels:,} different values in {n_rows:,} rows: it identifies rows and is left out"
        )
    return None
