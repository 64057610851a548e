"""Values that cannot enter the arithmetic: missing ones, infinities, and columns with a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from kerntest.data.forms import is_number
from kerntest.data.table import Problem
from kerntest.data.wording import counted, listed, one_line, option_value, shown_value, taken_as_value
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table


def check_usable(table: Table) -> Table:
    """Return the table if all of its columns can be used as they are (missing values aside).

    Raises
    ------
    DataError
        A column holds a value that is not a number among numbers, an infinity, or a type that we do not know.
    """
    for column in table.columns:
        if column.problem is not None:
            raise column.problem.error()
        if (problem := infinity(column, table)) is not None:
            raise problem.error()
    return table


def infinity(column: Column, table: Table, typed: Callable[[int], str] | None = None) -> Problem | None:
    """Return the problem of a column of numbers with an infinity in it; None without.

    Parameters
    ----------
    column : Column
    table : Table
    typed : callable, optional
        Gives the value of a row as it stands in the file.
    """
    infinite = np.isinf(column.values) if column.kind == "number" else np.zeros(0, dtype=bool)
    if not infinite.any():
        return None
    row = int(np.argmax(infinite))
    value = str(column.values[row]) if typed is None else typed(row)
    beyond = is_number(value)
    return Problem(
        f"{table.name}, {table.place(row)}: column {column.name!r} holds {shown_value(value)}, which is "
        f"{'beyond 1.8e308, the largest number' if beyond else 'not a finite number'} "
        f"({counted(int(np.count_nonzero(infinite)), 'such value')})",
        hint=f"correct it, or leave the column out with --exclude {option_value([column.name])}",
        code="data.infinite_values",
        where={**table.where(row), "column": column.name, "value": value},
        curable=True,
    )


def apply_missing(table: Table, policy: Literal["error", "drop"], needed: Collection[str] = ()) -> tuple[Table, int]:
    """Refuse missing values, or leave out the rows that have one.

    Parameters
    ----------
    table : Table
        The columns that will be used.
    policy : {"error", "drop"}
        What to do about missing values.
    needed : collection of str
        Columns that cannot be left out, such as a target: no hint says so.

    Returns
    -------
    table : Table
        Without missing values.
    n_dropped : int
        Rows left out.

    Raises
    ------
    DataError
        There are missing values under ``"error"``, or in every row under ``"drop"``.
    """
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
