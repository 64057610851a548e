"""Two tables with the same columns to the arrays that a two-sample test takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.missing import apply_missing
from kerntest.data.table import Column, Table
from kerntest.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A text column with more different values than this share of the rows identifies rows.
IDENTIFIES_ROWS = 0.9
# Whole numbers from here on are not all told apart as floating-point numbers.
EXACT_INTEGERS = 2.0**53
_FEWEST_ROWS_TO_TELL = 20
_FEWEST_ROWS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """The rows of two tables, one below the other, as arrays.

    Parameters
    ----------
    numeric : ndarray of float64, shape (n_x + n_y, p)
        Numbers and dates as they are, the rows of x first.
    codes : ndarray of int64, shape (n_x + n_y, q)
        Text and boolean columns as positions in their sorted levels.
    numeric_names, category_names : tuple of str
        Names of the p and q columns.
    levels : tuple of tuple of str
        Sorted levels of each of the q columns, of both tables together.
    n_x, n_y : int
        Rows of each table.
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
    n_x: int
    n_y: int
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]


def pool(x: Table, y: Table) -> Pooled:
    """Lay the rows of x above those of y.

    Parameters
    ----------
    x, y : Table
        As `match_tables` returns them: the same names and kinds in the same order, without missing values.

    Raises
    ------
    DataError
        A table has fewer than two rows or a missing value, or no column is left.
    """
    for table in (x, y):
        _refuse_too_few_rows(table)
        apply_missing(table, "error")
    left_out: list[str] = []
    warnings: list[str] = []
    numeric: dict[str, NDArray[np.float64]] = {}
    codes: dict[str, tuple[NDArray[np.int64], tuple[str, ...]]] = {}
    for in_x, in_y in zip(x.columns, y.columns, strict=True):
        column = _laid_below(in_x, in_y)
        warning = reason_to_leave_out(column)
        if warning:
            left_out.append(column.name)
            warnings.append(warning)
        elif column.is_category:
            codes[column.name] = (column.values, column.levels)
        else:
            numeric[column.name] = column.values
    if not numeric and not codes:
        raise _no_columns(x, y, warnings)
    n_rows = x.n_rows + y.n_rows
    return Pooled(
        numeric=np.column_stack(list(numeric.values())) if numeric else np.empty((n_rows, 0)),
        codes=np.column_stack([values for values, _ in codes.values()])
        if codes
        else np.empty((n_rows, 0), dtype=np.int64),
        numeric_names=tuple(numeric),
        category_names=tuple(codes),
        levels=tuple(levels for _, levels in codes.values()),
        n_x=x.n_rows,
        n_y=y.n_rows,
        left_out=tuple(left_out),
        warnings=tuple(warnings),
    )


def _refuse_too_few_rows(table: Table) -> None:
    """Refuse a table that cannot vary."""
    if table.n_rows < _FEWEST_ROWS:
        raise DataError(
            f"{table.name} has {table.n_rows} row{'' if table.n_rows == 1 else 's'}; "
            f"the test needs at least {_FEWEST_ROWS} in each table",
            hint="give it more rows",
            code="data.too_few_rows",
            where={"file": table.name},
        )


def _laid_below(in_x: Column, in_y: Column) -> Column:
    """Return one column of both tables' values, categories coded by their levels taken together."""
    if not in_x.is_category:
        return Column(in_x.name, in_x.kind, np.concatenate([in_x.values, in_y.values]))
    levels = tuple(sorted({column.levels[code] for column in (in_x, in_y) for code in np.unique(column.values)}))
    position = {level: code for code, level in enumerate(levels)}
    codes = [
        np.array([position.get(level, -1) for level in column.levels], dtype=np.int64)[column.values]
        for column in (in_x, in_y)
    ]
    return Column(in_x.name, in_x.kind, np.concatenate(codes), levels)


def reason_to_leave_out(column: Column) -> str | None:
    """Return why the pooled column cannot tell anything about the two tables; None if it can."""
    n_rows = len(column.values)
    if column.values.min() == column.values.max():
        if not column.is_category and abs(column.values[0]) >= EXACT_INTEGERS:
            return (
                f"column {column.name!r} has one value in all rows, to the 16 digits of a number, and is left out; "
                "--categorical takes every digit"
            )
        return f"column {column.name!r} has one value in all rows and is left out"
    n_levels = len(column.levels)
    if column.kind == "text" and n_rows >= _FEWEST_ROWS_TO_TELL and n_levels > IDENTIFIES_ROWS * n_rows:
        return (
            f"column {column.name!r} has {n_levels:,} different values in {n_rows:,} rows: "
            "it identifies rows and is left out"
        )
    return None


def _no_columns(x: Table, y: Table, warnings: list[str]) -> DataError:
    """Return the error for two tables of which no column can be compared."""
    return DataError(
        f"no column of {x.name} and {y.name} is left to compare: {'; '.join(warnings)}",
        hint="a column must hold at least two different values, and not one per row",
        code="data.no_columns",
        where={"file": x.name},
    )
