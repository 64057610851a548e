"""Columns that count or follow time, uneven tables, neighbours that are alike: what would make a test mislead."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.diagnostics.copies import in_percent
from kerntest.data.facts import TableFacts, counts_rows
from kerntest.errors import listed, one_line, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.columns import Arranged
    from kerntest.data.diagnostics.copies import Values
    from kerntest.data.facts import NumberFacts
    from kerntest.data.table import Column, Kind, Table

LARGEST_RATIO = 20
SIGNIFICANT = 0.01
_COUNTS = "counts the rows or identifies them: its whole numbers are all different and run in one direction"
_COUNTS_IN_EACH = _COUNTS.replace("its", "in each table its")


def misleading(tables: Sequence[Table], pooled: Arranged) -> list[str]:
    """Return what a reader must know before believing a two-sample test of these tables, whose complete rows are pooled."""
    return list(two_sample_warnings([TableFacts.of(table) for table in tables], pooled.numeric_names))


def two_sample_warnings(facts: Sequence[TableFacts], numeric_names: Sequence[str]) -> Iterator[str]:
    """Yield the same from facts about two tables."""
    (x, y), names = facts, [one_line(one.name) for one in facts]
    dropped = [one.rows - one.used for one in facts]
    p_value = proportions_p_value(dropped[0], x.rows, dropped[1], y.rows)
    if p_value < SIGNIFICANT:
        shares = [in_percent(count / one.rows) for count, one in zip(dropped, facts, strict=True)]
        emptiest = max(x.kinds, key=lambda name: x.missing[name] + y.missing[name])
        yield (
            f"missing values cost {names[0]} {shares[0]} of its rows and {names[1]} {shares[1]} (p = {p_value:.2g}): what is "
            f"left may differ for that reason alone; {option('missing', 'indicator')} keeps all rows, "
            f"{option('exclude', [emptiest])} more"
        )
    (few, small), (many, large) = sorted(zip((x.used, y.used), names, strict=True), key=lambda table: table[0])
    if many > LARGEST_RATIO * few:
        yield (
            f"{large} has {many / few:.0f} times as many rows as {small}: what the test can see is set by the {few:,} rows "
            "of the smaller one; give it more rows"
        )
    for name in [name for name in x.kinds if name in numeric_names]:
        trouble = _time_trouble(x.kinds[name], x.numbers[name], y.numbers[name], names)
        if trouble is not None:
            yield _left_out_with(name, trouble)


def counters(columns: Iterable[Column]) -> list[str]:
    """Return the warnings about columns of one table that count its rows, missing values aside."""
    numbers = ((column.name, column.values[~column.missing]) for column in columns if column.kind == "number")
    return [_left_out_with(name, _COUNTS) for name, values in numbers if counts_rows(values)]


# Neighbouring rows are alike from so many standard errors of the serial correlation on,
SERIAL_ERRORS, FEWEST_ROWS_IN_SERIES = 6.0, 30
# and beyond any order in which a table is sorted from so many of the local one, or where there are many rows from that.
LOCAL_ERRORS, LEAST_LOCAL = 3.0, 0.25
# Equal values in stretches of so many rows on average are groups, and an order goes on for so many steps.
LONG_STRETCH, FEWEST_IN_ORDER = 20, 20
# Whole numbers that run from step to step within these are years.
YEARS = 1500.0, 2200.0


def order_warnings(
    sides: Sequence[tuple[Table, Table]], *, rejects: bool, rows: NDArray[np.intp] | None = None
) -> list[str]:
    """Return what a reader must know of the order of the rows: sides, each in the table it was read from, that follow it."""
    alike = [alike_neighbours(side.columns, read, rows) for side, read in sides] if rejects else []
    named = [names[0] for names in alike if names]
    told = [series_warning(named, f"{option('time-series', True)} tests series")] if alike and all(alike) else []
    others = (column for side, _ in sides for column in side.columns if not told or column.name not in named)
    return [*told, *counters(others)]


def series_warning(names: Sequence[str], way_out: str) -> str:
    """Return the warning about columns that neighbouring rows have alike.

    Two unrelated random walks look dependent to every test that takes rows for independent.
    """
    return (
        f"neighbouring rows are alike in {listed([repr(name) for name in names])}: if the rows are a series in time, or "
        f"several are of one case, the p-value is far too small; {way_out}; of each case, keep one row"
    )


def alike_neighbours(columns: Sequence[Column], table: Table, rows: NDArray[np.intp] | None = None) -> list[str]:
    """Return the names of the columns, of a table or of some of its rows, that neighbouring rows have alike.

    A table that is sorted, by a group or by numbers, is no series: there a value is as far from the next one as from the
    one after it. In a series it is nearer. A column that says the time settles the question.
    """
    found = [(column, column.values[~column.missing if rows is None else rows]) for column in columns]
    runs = [(column, values) for column, values in found if not column.is_category and _runs_in_order(values)]
    if not runs or any(_is_time(column.values[~column.missing]) for column in table.columns if _is_plain(column)):
        return [column.name for column, _ in runs]
    sorts = _sorting(table)
    return [
        column.name
        for column, values in runs
        if counts_rows(values) or (column.name not in sorts and _locally_alike(values))
    ]


def _runs_in_order(values: NDArray[np.float64]) -> bool:
    """Say whether numbers are correlated from row to row, or count the rows."""
    if len(values) < FEWEST_ROWS_IN_SERIES:
        return False
    if counts_rows(values):
        return True
    ranks = _ranks(values)
    ranks -= ranks.mean()
    total = float(ranks @ ranks)
    return total > 0 and float(ranks[1:] @ ranks[:-1]) / total * math.sqrt(len(ranks)) > SERIAL_ERRORS


def _ranks(values: Values) -> NDArray[np.float64]:
    """Return the ranks of values, equal ones alike: their place in the file would make a series of any column with ties."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - 0.5 * (counts + 1))[place])


def _locally_alike(values: Values) -> bool:
    """Say whether a value is nearer to the next one than to the one after it, whatever level or trend both are on.

    In ranks r, sum (r_(i+2) - r_i)^2 / sum (r_(i+1) - r_i)^2 - 1 is the serial correlation of an autoregressive series,
    and 0 of independent values around a trend, with a standard error of (2 / n)^(1/2).
    """
    ranks, n = _ranks(values), len(values)
    near, far = (float(np.square(ranks[step:] - ranks[:-step]).mean()) for step in (1, 2))
    changes = np.count_nonzero(np.diff(ranks))
    return bool(changes * LONG_STRETCH > n) and far > (1.0 + max(LEAST_LOCAL, LOCAL_ERRORS * math.sqrt(2.0 / n))) * near


def _is_plain(column: Column) -> bool:
    return column.problem is None and not column.is_category


def _is_time(values: Values) -> bool:
    """Say whether numbers of ascending rows tell the time: dates, years, or even steps that do not just count the rows."""
    steps = np.diff(values)
    changes = np.unique(steps)
    if len(values) < FEWEST_ROWS_IN_SERIES or changes[0] < 0 or np.count_nonzero(steps) * LONG_STRETCH <= len(values):
        return False
    even = changes[-1] - changes[0] <= 1e-6 * changes[-1]
    return bool(even and (changes[-1] != 1 or values[0] > 1)) or are_years(values)


def are_years(values: Values) -> bool:
    """Say whether numbers of ascending rows are years, of one row or of several each."""
    if len(values) < FEWEST_ROWS_IN_SERIES or not (YEARS[0] <= values[0] <= values[-1] <= YEARS[1]):
        return False
    steps = np.diff(values)
    return bool(np.isin(steps, (0.0, 1.0)).all() and np.count_nonzero(steps) * LONG_STRETCH > len(values))


def _sorting(table: Table) -> set[str]:
    """Return the columns of numbers by which a table is sorted: within groups that stand together, and one within another."""
    plain = {column.name: column.values for column in table.columns if _is_plain(column)}
    steps = {name: np.diff(values) for name, values in plain.items()}
    ends = np.zeros(max(table.n_rows - 1, 0), dtype=bool)
    for column in table.columns:
        changes = column.values[1:] != column.values[:-1]
        if column.problem is None and np.count_nonzero(changes) * LONG_STRETCH <= table.n_rows:
            ends |= changes
    found: set[str] = set()
    while sorts := [name for name, own in steps.items() if name not in found and _in_one_direction(own[~ends])]:
        found.add(sorts[0])
        ends |= steps[sorts[0]] != 0
    return found


def _in_one_direction(steps: NDArray[np.float64]) -> bool:
    """Say whether steps, where there are any, lead up or down throughout."""
    moves = steps[~np.isnan(steps) & (steps != 0)]
    return len(moves) >= FEWEST_IN_ORDER and abs(int(np.sign(moves).sum())) == len(moves)


def _left_out_with(name: str, trouble: str) -> str:
    return f"column {name!r} {trouble}; leave it out with {option('exclude', [name])}"


def _time_trouble(kind: Kind, x: NumberFacts, y: NumberFacts, names: Sequence[str]) -> str | None:
    """Return why a column of numbers or dates differs between any two batches; None if it need not."""
    counts = x.counts_rows and y.counts_rows
    what = "is a date" if kind == "date" else "counts the rows" if counts else None
    if what is None and x.runs and y.runs:
        what = "runs in one direction like a time or a counter"
    if what is not None and (x.high < y.low or y.high < x.low):
        below, above = names if x.high < y.low else names[::-1]
        return f"{what}, and all of it in {above} lies above all of it in {below}: any two batches differ in it"
    if kind == "date":
        return "is a date: time itself differs between any two batches, so that a difference in it says little"
    return _COUNTS_IN_EACH if counts else None


def proportions_p_value(hits_x: int, n_x: int, hits_y: int, n_y: int) -> float:
    """Return the two-sided p-value of the z-test that two proportions are equal, with the pooled variance."""
    pooled = (hits_x + hits_y) / (n_x + n_y)
    variance = pooled * (1 - pooled) * (1 / n_x + 1 / n_y)
    return math.erfc(abs(hits_x / n_x - hits_y / n_y) / math.sqrt(2 * variance)) if variance else 1.0
