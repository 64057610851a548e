"""Two tables with the same columns to the arrays that a two-sample test takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.arranging import arrange
from kerntest.data.missing import apply_missing
from kerntest.data.table import Column, Table
from kerntest.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    columns = [_laid_below(in_x, in_y) for in_x, in_y in zip(x.columns, y.columns, strict=True)]
    arranged = arrange(columns, x.n_rows + y.n_rows)
    if arranged.empty:
        raise _no_columns(x, y, list(arranged.warnings))
    return Pooled(
        numeric=arranged.numeric,
        codes=arranged.codes,
        numeric_names=arranged.numeric_names,
        category_names=arranged.category_names,
        levels=arranged.levels,
        n_x=x.n_rows,
        n_y=y.n_rows,
        left_out=arranged.left_out,
        warnings=arranged.warnings,
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


def _no_columns(x: Table, y: Table, warnings: list[str]) -> DataError:
    """Return the error for two tables of which no column can be compared."""
    return DataError(
        f"no column of {x.name} and {y.name} is left to compare: {'; '.join(warnings)}",
        hint="a column must hold at least two different values, and not one per row",
        code="data.no_columns",
        where={"file": x.name},
    )
