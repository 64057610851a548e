"""Columns to the arrays that a kernel sees: numbers beside category codes, without columns that cannot tell anything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column

# A text column with more different values than this share of the rows identifies rows.
IDENTIFIES_ROWS = 0.9
# Whole numbers from here on are not all told apart as floating-point numbers.
EXACT_INTEGERS = 2.0**53
_FEWEST_ROWS_TO_TELL = 20


@dataclass(frozen=True, slots=True, eq=False)
class Arranged:
    """Columns of n rows as arrays.

    Parameters
    ----------
    numeric : ndarray of float64, shape (n, p)
        Numbers and dates as they are.
    codes : ndarray of int64, shape (n, q)
        Text and boolean columns as positions in their sorted levels.
    numeric_names, category_names : tuple of str
        Names of the p and q columns.
    levels : tuple of tuple of str
        Sorted levels of each of the q columns.
    left_out : tuple of str
        Columns that cannot tell anything: constant, or different in every row.
    warnings : tuple of str
        Why they were left out.
    """

    numeric: NDArray[np.float64]
    codes: NDArray[np.int64]
    numeric_names: tuple[str, ...]
    category_names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether no column is left."""
        return not self.numeric_names and not self.category_names


def arrange(columns: Sequence[Column], n_rows: int) -> Arranged:
    """Lay columns without missing values side by side, numbers apart from categories.

    Parameters
    ----------
    columns : sequence of Column
        `n_rows` values each.
    n_rows : int
    """
    left_out: list[str] = []
    warnings: list[str] = []
    numeric: list[Column] = []
    categories: list[Column] = []
    for column in map(recoded, columns):
        warning = reason_to_leave_out(column)
        if warning:
            left_out.append(column.name)
            warnings.append(warning)
        else:
            (categories if column.is_category else numeric).append(column)
    return Arranged(
        numeric=np.column_stack([column.values for column in numeric]) if numeric else np.empty((n_rows, 0)),
        codes=np.column_stack([column.values for column in categories])
        if categories
        else np.empty((n_rows, 0), dtype=np.int64),
        numeric_names=tuple(column.name for column in numeric),
        category_names=tuple(column.name for column in categories),
        levels=tuple(column.levels for column in categories),
        left_out=tuple(left_out),
        warnings=tuple(warnings),
    )


def recoded(column: Column) -> Column:
    """Return a category column with the levels that occur, sorted; others as they are."""
    if not column.is_category:
        return column
    used = sorted({column.levels[code] for code in np.unique(column.values)})
    position = {level: code for code, level in enumerate(used)}
    codes = np.array([position.get(level, -1) for level in column.levels], dtype=np.int64)
    return replace(column, values=codes[column.values], levels=tuple(used))


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
