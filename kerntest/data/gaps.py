"""Rows with missing values: refused, with what can be done, or left out, with what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import DataError, counted, listed, one_line, option, shown_value, taken_as_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.missing import MissingPolicy
    from kerntest.data.table import Column, Table


def apply_missing(
    table: Table,
    policy: MissingPolicy,
    needed: Collection[str] = (),
    whole: Collection[str] | None = None,
    *,
    beside: Sequence[Column] = (),
    among: Sequence[Table] = (),
    able: bool = True,
) -> tuple[Table, int]:
    """Refuse missing values, or leave out the rows that have one, in any column or in those that must be whole.

    Columns that are needed, or stand `beside`, must keep more than one value; what else is left is `able` to be used, or not.
    What to leave out is told of all tables `among` which it is one.
    """
    columns = [column for column in table.columns if whole is None or column.name in whole]
    counts = {column.name: count for column in columns if (count := column.n_missing)}
    if not counts:
        return table, 0
    incomplete = np.any([column.missing for column in columns], axis=0)
    if policy == "error":
        parting = [
            one
            for one in (*(one for one in table.columns if one.name in needed), *beside)
            if one.range[0] < one.range[1]
        ]
        able = able and not incomplete.all() and all(np.ptp(one.values[~incomplete]) > 0 for one in parting)
        raise missing_error(table, counts, int(np.argmax(incomplete)), needed, table.n_rows, able=able)
    if incomplete.all():
        others = [one.columns for one in among if one is not table]
        out = [name for some in (columns, *others) for name in in_the_way(some, needed)]
        raise no_rows_left(table.name, counts, list(dict.fromkeys(out)), needed)
    return table.take(~incomplete), int(np.count_nonzero(incomplete))


# Columns are in the way where no more than this share of the rows is complete.
FEW_LEFT = 0.1
# Missing values that cost more than this share of the rows are told: a report says how many rows are used.
MANY_LOST = 0.1


def lost_rows(
    table_name: str, dropped: int, n_rows: int, counts: Mapping[str, int], needed: Collection[str] = ()
) -> list[str]:
    """Return the warning where missing values cost many rows, and which column costs most."""
    if dropped <= MANY_LOST * n_rows:
        return []
    said = f"{table_name}: {counted(dropped, 'row')} of {n_rows:,} with missing values left out"
    emptiest = max(counts, key=counts.__getitem__)
    keeps = counts[emptiest] > 0 and emptiest not in needed
    return [f"{said}; {option('exclude', [emptiest])} keeps more of them" if keeps else said]


def rows_with_all(columns: Sequence[Column]) -> NDArray[np.intp]:
    """Return the rows in which all of some columns have a value."""
    return np.flatnonzero(~np.any([column.missing for column in columns], axis=0))


def longest_stretch(table: Table, kept: NDArray[np.intp]) -> str:
    """Return where the most of the rows that are kept follow one another, in words; empty of a single one."""
    ends = np.r_[0, np.flatnonzero(np.diff(table.numbers()[kept]) != 1) + 1, len(kept)]
    longest = int(np.argmax(np.diff(ends)))
    first, last = ends[longest], ends[longest + 1] - 1
    return f"the longest from {table.place(kept[first])} to {table.place(kept[last])}" if last > first else ""


def without_value(lost: int, names: Sequence[str]) -> list[str]:
    """Return the warning of rows that are left out for want of a value that says what belongs together."""
    said = f"{counted(lost, 'row')} without a value of {listed(list(map(repr, names)))} left out"
    return [said] if lost else []


def lost_to_each(columns: Sequence[Column]) -> dict[str, int]:
    """Return how many rows each of some columns alone makes incomplete."""
    single = np.sum([column.missing for column in columns], axis=0) == 1
    return {column.name: int(np.count_nonzero(column.missing & single)) for column in columns}


def in_the_way(columns: Sequence[Column], needed: Collection[str] = ()) -> list[str]:
    """Return which columns leave hardly a row complete, the emptiest first; none where those that are needed do."""
    rest = sorted(columns, key=lambda one: one.n_missing, reverse=True)
    found: list[str] = []
    while rest and np.mean(np.any([one.missing for one in rest], axis=0)) > 1.0 - FEW_LEFT:
        if not (others := [one for one in rest if one.name not in needed and one.n_missing]):
            return []
        found.append(others[0].name)
        rest.remove(others[0])
    return found


def no_rows_left(
    table_name: str, counts: Mapping[str, int], in_the_way: Sequence[str], needed: Collection[str] = ()
) -> DataError:
    """Return the error for a table of which every row has a missing value, some columns of which are in the way."""
    # The emptiest first.
    counts = dict(sorted(counts.items(), key=lambda one: -one[1]))
    emptiest = next(iter(counts))
    those = "that column" if len(in_the_way) == 1 else "those columns"
    ways = [f"{option('exclude', in_the_way)} leaves {those} out"] if in_the_way else []
    if counts.keys().isdisjoint(needed):
        ways.append(f"{option('missing', 'indicator')} keeps every row")
    hint = ", ".join(ways) or f"column {emptiest!r} is needed: fill it in"
    said, where = f"every row of {table_name} has a missing value: {_per_column(counts)}", {"column": emptiest}
    return DataError(said, hint=hint, code="data.no_rows_left", where={"file": table_name, **where})


def missing_error(
    table: Table, counts: dict[str, int], first_row: int, needed: Collection[str], n_rows: int, *, able: bool = True
) -> DataError:
    """Return the error that counts the missing values of so many rows, column by column.

    Where rows without gaps are not `able` to be used, it is no way out to leave the others out.
    """
    ways = [f"{option('missing', 'drop')} leaves those rows out"] if able else []
    empty = [name for name in counts if counts[name] == n_rows]
    if wanted := next((name for name in empty if name in needed), None):
        ways = [f"column {wanted!r} is needed and has no values: fill it in"]
    elif empty:
        # No row would be left.
        ways = [f"{option('exclude', empty)} leaves out what has no values"]
        ways += [f"then {option('missing', 'drop')} rows that miss others"] if len(empty) < len(counts) else []
    # Leaving other columns out does not help where one that is needed has missing values too.
    elif counts.keys().isdisjoint(needed):
        left_out = f"; {option('exclude', list(counts))} leaves the {'columns' if len(counts) > 1 else 'column'} out"
        others = {one.name for one in table.columns} - {*counts, *needed}
        ways.append(f"{option('missing', 'indicator')} keeps them{left_out if others else ''}")
    hint = ", ".join(ways) or "fill them in"
    if word := next((column.emptied_by for column in table.columns if column.emptied_by), None):
        hint += f"; if {shown_value(word)} is a value, {taken_as_value(word, table.na)}"
    missing = counted(sum(counts.values()), "missing value") + (" (NaN)" if table.format == "array" else "")
    said = f"{table.name} has {missing}: {_per_column(counts)} (the first in {table.place(first_row)})"
    where = {**table.where(first_row), "column": next(iter(counts))}
    return DataError(said, hint=hint, code="data.missing_values", where=where)


def _per_column(counts: Mapping[str, int]) -> str:
    """Return the counts as ``price 10, city 2``."""
    return listed([f"{one_line(name)} {count:,}" for name, count in counts.items()])
