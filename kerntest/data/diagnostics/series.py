"""Series: columns of which neighbouring rows are alike, in time or where no column tells it, but in no table that is merely sorted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.diagnostics.cases import says_clock, says_time, within_years
from kerntest.data.facts import NumberFacts, counts_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.diagnostics.copies import Values
    from kerntest.data.table import Column, Table

# Neighbouring rows are alike from so many standard errors of the serial correlation on, or where a column tells the time;
SERIAL_ERRORS, IN_TIME = 6.0, 3.5
# Where a column tells the time, both sides of a test that rejects follow it by so many, which chance makes in 1 of 2,000 tables.
FOLLOWING = 2.0
# in tables of so many rows, or of so many whose years or dates are told.
FEWEST_ROWS_IN_SERIES, FEWEST_IN_TIME = 30, 15
# and beyond any order in which a table is sorted from so many of the local one, or where there are many rows from that.
LOCAL_ERRORS, LEAST_LOCAL = 3.0, 0.25
# Where no column tells the time, what follows it has a local one above this.
STRONG = 0.5
# Equal values in stretches of so many rows on average are groups, and an order goes on for so many steps.
LONG_STRETCH, FEWEST_IN_ORDER = 20, 20
# Time goes on that rises by so many times as much as it falls back.
GOES_ON = 4.0
# What has so many more steps in one direction than in the other, of all, does not wander.
ONE_WAY = 0.4
# The critical values of Dickey and Fuller, many rows: of the slope at 10 %, with an intercept, and of a trend beside it at 2 %.
UNIT_ROOT, TREND = -2.57, 3.2
# So many steps of a series of years have one gap at most.
FEW_GAPS = 8
# Categories that follow one another less than this inflate nothing. Where no column tells the time, each of a series returns so
# often, on average, for stretches whose lengths vary by this share of their mean: those of a design are alike.
LEAST_REPEATED, RETURNS, UNEVEN = 0.05, 4, 0.6


def alike_neighbours(
    columns: Sequence[Column],
    table: Table,
    rows: NDArray[np.intp] | None = None,
    *,
    local: float = LEAST_LOCAL,
    timed: bool = False,
    errors: float = IN_TIME,
) -> list[str]:
    """Return the names of the columns that neighbouring rows have alike, of a table or of some of its rows, in time by so many errors.

    A table that is sorted, by a group or by numbers, is no series: there a value is as far from the next one as from the
    one after it. In a series it is nearer, and categories return beside numbers most of which wander. A column that says the
    time, or else what makes rows `timed`, settles the question; then neighbours may also be as far from the median, as in
    times of large changes and of small ones.
    """
    found = [(column, column.values[~column.missing if rows is None else rows]) for column in columns]
    if timed or in_time(table):
        return [
            column.name
            for column, values in found
            if (categories_repeat(values, errors) if column.is_category else _follow(values, errors))
        ]
    least = SERIAL_ERRORS, FEWEST_ROWS_IN_SERIES
    runs = [
        (column, values)
        for column, values in found
        if (
            categories_repeat(values, *least) and _return(values)
            if column.is_category
            else runs_in_order(values, *least)
        )
    ]
    if not runs:
        return []
    sorts, numbers = sorting(table), [one for one in table.columns if _is_plain(one) and not counts_rows(one.values)]
    wander = any(column.is_category for column, _ in runs) and most_follow(numbers, table, wandering=True)
    return [
        column.name
        for column, values in runs
        if (
            wander
            if column.is_category
            else counts_rows(values)
            or (_locally_alike(values, local) and (column.name not in sorts or _comes_back(values)))
        )
    ]


def categories_repeat(values: NDArray[Any], errors: float, rows: int = FEWEST_IN_TIME) -> bool:
    """Say whether rows have the category of the one before them oftener than by chance, by so many standard errors.

    The correlation from row to row of vectors that say which category each is, whose covariance is S: its error is
    (tr S^2 / n)^(1/2) / tr S.
    """
    if len(values) < rows:
        return False
    shares = np.unique(values, return_counts=True)[1] / len(values)
    square = float(shares @ shares)
    rest = 1.0 - square
    if rest <= 0.0:
        return False
    spread = math.sqrt((square - 2.0 * float(np.sum(shares**3)) + square**2) / max(len(values), FEWEST_ROWS_IN_SERIES))
    repeated = (np.count_nonzero(values[1:] == values[:-1]) / (len(values) - 1) - square) / rest
    return bool(repeated > max(errors * spread / rest, LEAST_REPEATED))


def _return(values: NDArray[Any]) -> bool:
    """Say whether categories return, for stretches of uneven lengths: those of groups stand together, and of designs are alike."""
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    lengths = np.diff(np.r_[starts, len(values)])
    often = len(lengths) >= max(RETURNS * len(np.unique(values, return_counts=True)[0]), FEWEST_IN_ORDER)
    return often and bool(lengths.std() > UNEVEN * lengths.mean())


def _follow(values: Values, errors: float) -> bool:
    """Say whether numbers are correlated from row to row in time by so many errors, or their distances from the median."""
    if len(values) < FEWEST_IN_TIME:
        return False
    return any(runs_in_order(some, errors) for some in (values, np.abs(values - np.median(values))))


def most_follow(
    columns: Sequence[Column], table: Table, local: float = STRONG, *, wandering: bool = False
) -> list[str]:
    """Return the names of the columns that neighbouring rows have alike, by far, if these are half of the numbers at least.

    If they are to be `wandering`, orders and designs do not count.
    """
    numbers = [one for one in columns if not one.is_category]
    alike = alike_neighbours([one for one in numbers if not wandering or wanders(one)], table, local=local)
    return alike if 2 * len(alike) >= len(numbers) else []


def wanders(column: Column) -> bool:
    """Say whether numbers go up and down, through many values: those of an order with ties, or a design, go one way and jump back."""
    values = column.values[~column.missing]
    steps = np.sign(np.diff(values)).astype(np.intp)
    many = len(np.unique(values, return_counts=True)[0]) >= FEWEST_IN_ORDER
    return column.kind == "number" and many and abs(int(steps.sum())) <= ONE_WAY * int(np.count_nonzero(steps))


def is_series(column: Column) -> bool:
    """Say whether numbers wander, and each is nearer to the next one than to the one after it."""
    return wanders(column) and _locally_alike(column.values[~column.missing], LEAST_LOCAL)


def _comes_back(values: Values) -> bool:
    """Say whether a table is sorted by these only within groups in which the same return, as the day of a month and a year do."""
    return not _in_one_direction(np.diff(values)) and 2 * len(np.unique(values, return_counts=True)[0]) <= len(values)


def no_series(tables: Sequence[Table], rows: NDArray[np.intp], *, rejects: bool) -> Iterator[str]:
    """Yield warnings about columns, at some rows, that are no stationary series: that run one way, or wander in all tables."""
    wandering: list[list[str]] = [[] for _ in tables]
    for own, table in zip(wandering, tables, strict=True):
        for column in (column for column in table.columns if not column.is_category):
            if NumberFacts.of(values := column.values[rows]).runs:
                yield (
                    f"column {column.name!r} runs in one direction like a time or a counter: that is no stationary series, and the "
                    "p-value is not valid; test its changes from row to row, or leave it out"
                )
            elif _dickey_fuller(values) > UNIT_ROOT or TREND < abs(_dickey_fuller(values, trend=True)) < math.inf:
                own.append(column.name)
    if rejects and all(wandering):
        yield (
            f"{' and '.join(repr(names[0]) for names in wandering)} wander like random walks or follow a trend, by the test of Dickey "
            "and Fuller: of two such series the p-value is far too small; test their changes from row to row"
        )


def _dickey_fuller(values: NDArray[np.float64], *, trend: bool = False) -> float:
    """Return the t statistic of the slope of the steps on the values they start from, with an intercept and earlier steps.

    As many of these as Akaike's criterion chooses (Said and Dickey 1984; at most 12 (n / 100)^(1/4), Schwert 1989). Of a
    trend it is that of the slope on the time, beside the others (Dickey and Fuller 1981). Minus infinity of too few rows.
    """
    steps = np.diff(values)
    most = min(int(12.0 * (len(values) / 100.0) ** 0.25), len(steps) // 10)
    if len(steps) < FEWEST_ROWS_IN_SERIES or steps.std() == 0.0:
        return -math.inf
    earlier = [steps[most - lag : len(steps) - lag] for lag in range(1, most + 1)]
    time = [np.arange(len(steps) - most, dtype=np.float64)] * trend
    columns = np.column_stack([*time, values[most:-1], *earlier, steps[most:]])
    columns -= columns.mean(axis=0)
    columns /= np.maximum(columns.std(axis=0), np.finfo(np.float64).tiny)
    n, products = len(columns), columns.T @ columns
    best, found = math.inf, -math.inf
    for count in range(1 + trend, most + 2 + trend):
        try:
            inverse = np.linalg.inv(products[:count, :count])
        except np.linalg.LinAlgError:
            break
        slopes = inverse @ products[:count, -1]
        rest = float(products[-1, -1] - slopes @ products[:count, -1])
        if rest <= 0.0 or inverse[0, 0] <= 0.0:
            break
        if (criterion := n * math.log(rest) + 2.0 * count) < best:
            best, found = criterion, float(slopes[0]) / math.sqrt(rest / (n - count - 1) * float(inverse[0, 0]))
    return found


def longer_than_steps(dates: Column) -> str:
    """Return a stretch of time that holds some ten of the steps of dates."""
    step = float(np.median(np.diff(np.unique(dates.values[~dates.missing], return_counts=True)[0])))
    return next(
        name for most, name in ((0.5, "days"), (8.0, "months"), (100.0, "years"), (math.inf, "decades")) if step < most
    )


def in_time(table: Table) -> list[Column]:
    """Return the columns that tell the time of the rows, which follow it, each by itself or, as month and day, together."""
    plain = [column for column in table.columns if _is_plain(column)]
    return [column for column in plain if _is_time(column)] or _time_in_parts(plain)


def _time_in_parts(columns: Sequence[Column]) -> list[Column]:
    """Return columns called by units of time of which one rises throughout, and each other where those before stay the same."""
    called = [
        one for one in columns if says_time(one.name) and not one.missing.any() and len(one.values) >= FEWEST_IN_TIME
    ]
    steps = {one.name: np.diff(one.values) for one in called}
    found: list[Column] = []
    ends = np.zeros(len(called[0].values) - 1 if called else 0, dtype=np.bool_)
    while nested := [one for one in called if one not in found and _rises(steps[one.name][~ends])]:
        # The longest unit first.
        found.append(min(nested, key=lambda one: np.count_nonzero(steps[one.name])))
        ends |= steps[found[-1].name] != 0
    often = np.count_nonzero(ends) * LONG_STRETCH > len(ends)
    return found if often and any((steps[one.name] < 0).any() for one in found) else []


def _rises(steps: NDArray[np.float64]) -> bool:
    return bool((steps >= 0).all() and (steps > 0).any())


def falls_back(table: Table) -> tuple[Column, NDArray[np.intp]] | None:
    """Return a column that tells the time, and after which rows it turns back although no other unit of time goes on there."""
    plain = [one for one in table.columns if _is_plain(one) and not one.missing.any()]
    clocks = [one for one in plain if one.kind == "date" or says_clock(one.name) or _counts_years(one.values)]
    steps = {one.name: np.diff(one.values) for one in plain if one in clocks or says_time(one.name)}
    # The newest row may stand first.
    forwards = {name: own * (np.sign(np.sign(own).sum()) or 1.0) for name, own in steps.items()}
    for clock in sorted(clocks, key=lambda one: np.count_nonzero(forwards[one.name] < 0)):
        own = forwards[clock.name]
        falls = np.flatnonzero(own < 0)
        # A few rows may stand in another order, as polls that overlap.
        if own.any() and -GOES_ON * own[falls].sum() < own[own > 0].sum():
            return None
        going_on = [other[falls] > 0 for name, other in forwards.items() if name != clock.name]
        if len(falls) and not np.any([np.zeros(len(falls), dtype=bool), *going_on], axis=0).all():
            return clock, falls
    return None


def _counts_years(values: Values) -> bool:
    """Say whether numbers are years that go on one by one, by half of the rows at least."""
    if (
        len(values) < FEWEST_IN_TIME
        or not within_years(np.sort(values.astype(np.float64)))
        or (values != np.floor(values)).any()
    ):
        return False
    steps = np.diff(values)
    return max(int(np.count_nonzero(steps == one)) for one in (1.0, -1.0)) * 2 >= len(steps)


def runs_in_order(values: NDArray[Any], errors: float, rows: int = FEWEST_IN_TIME) -> bool:
    """Say whether numbers of so many rows are correlated from row to row by so many standard errors, or count the rows."""
    if len(values) < rows:
        return False
    if counts_rows(values):
        return True
    ranks = _ranks(values)
    ranks -= ranks.mean()
    total = float(ranks @ ranks)
    # Of few independent rows it is below 0 in the mean and varies less than 1 / n: of 15 it exceeds this less than once in 1,000.
    error = 1.0 / math.sqrt(max(len(ranks), FEWEST_ROWS_IN_SERIES))
    return total > 0 and float(ranks[1:] @ ranks[:-1]) / total > errors * error


def _ranks(values: Values) -> NDArray[np.float64]:
    """Return the ranks of values, equal ones alike: their place in the file would make a series of any column with ties."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - 0.5 * (counts + 1))[place])


def _locally_alike(values: Values, least: float) -> bool:
    """Say whether a value is nearer to the next one than to the one after it, whatever level or trend both are on.

    In ranks r, sum (r_(i+2) - r_i)^2 / sum (r_(i+1) - r_i)^2 - 1 is the serial correlation of an autoregressive series,
    and 0 of independent values around a trend, with a standard error of (2 / n)^(1/2).
    """
    ranks, n = _ranks(values), len(values)
    near, far = (float(np.square(ranks[step:] - ranks[:-step]).mean()) for step in (1, 2))
    changes = np.count_nonzero(np.diff(ranks))
    return bool(changes * LONG_STRETCH > n) and far > (1.0 + max(least, LOCAL_ERRORS * math.sqrt(2.0 / n))) * near


def _is_plain(column: Column) -> bool:
    return column.problem is None and not column.is_category


def _is_time(column: Column) -> bool:
    """Say whether numbers of ascending rows tell the time: dates, years, or even steps that do not just count the rows."""
    values = column.values[~column.missing]
    steps = np.diff(values)
    if len(values) < FEWEST_IN_TIME or steps.min() < 0 or np.count_nonzero(steps) * LONG_STRETCH <= len(values):
        return False
    # The second half of a table begins its numbers of rows anywhere.
    even = steps.max() - steps.min() <= 1e-6 * steps.max() and (steps.max() != 1 or says_time(column.name))
    # In few rows even steps may be those of a dose.
    even &= len(values) >= FEWEST_ROWS_IN_SERIES or within_years(values)
    return column.kind == "date" or bool(even) or are_years(values)


def are_years(values: Values) -> bool:
    """Say whether numbers of ascending rows are years, of one row or of several each."""
    if len(values) < FEWEST_IN_TIME or not within_years(values):
        return False
    steps = np.diff(values)
    # Periods of a series of years have gaps between them.
    single = steps == 1.0
    return bool((single | (steps == 0.0)).all() and steps.any()) or bool(
        steps.min() > 0.0 and np.count_nonzero(~single) * FEW_GAPS <= len(steps)
    )


def sorting(table: Table) -> set[str]:
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
