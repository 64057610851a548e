"""Clusters, strata and pairs that are not independent: that follow time, or are of cases of several of them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.columns import laid_below
from kerntest.data.diagnostics.cases import (
    INFLATED,
    RARE,
    beyond_groups,
    case_columns,
    means_of_groups,
    says_time,
    within_years,
)
from kerntest.data.diagnostics.misleading import places_among_values
from kerntest.data.diagnostics.series import (
    FEWEST_ROWS_IN_SERIES,
    IN_TIME,
    alike_neighbours,
    in_time,
    is_series,
    runs_in_order,
)
from kerntest.errors import listed, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table

# So many pairs can reject.
FEWEST_PAIRED = 6
# Means differ where they do so less often by chance.
BY_CHANCE = 1e-3
# The shares of so many categories are looked at.
COMMONEST = 10


def dependent_strata(
    used: Sequence[Table], read: Sequence[Table], strata: str, same: Callable[[str], str] | None
) -> Iterator[str]:
    """Yield a warning where rows within strata follow time, or strata are cases of which each differs in its own way."""
    if told := list(_strata_in_time(used, read, strata, same)):
        yield from told
        return
    whole = [of.take(of.places_of(one.numbers())) for one, of in zip(used, _whole(read), strict=True)]
    named = (one.column.name for one in case_columns(whole[0], used[0].columns) if one.sure)
    if strata in named and difference_varies(used, whole, strata, within=True):
        yield (
            f"the difference varies from one {strata!r} to another more than rows by chance: strata ask of these alone; "
            f"{option('paired', [strata])} asks whether it holds of others, too"
        )


def _whole(read: Sequence[Table]) -> list[Table]:
    return [one.with_all_columns() for one in read]


def _strata_in_time(
    used: Sequence[Table], read: Sequence[Table], strata: str, same: Callable[[str], str] | None
) -> Iterator[str]:
    """Yield a warning where rows of two groups of one table follow each other within strata, in what is compared and in the group.

    What is compared is looked at within the groups: where these differ, rows of one are alike.
    """
    whole = read[0].whole
    if whole is None or whole is not read[1].whole or same is None:
        yield from _strata_of_files_in_time(used, read, strata)
        return
    numbers = numbers_of(used)
    order = np.argsort(numbers)
    _, stratum, _ = np.unique(
        whole[strata].values[whole.places_of(numbers[order])], return_inverse=True, return_counts=True
    )
    group = np.repeat([0, 1], [one.n_rows for one in used])[order]
    both = (laid_below(*(some[one.name] for some in used)).take(order) for one in used[0].columns)
    stays, cells = _follow_within(group, stratum), 2 * stratum + group
    alike = [
        one.name
        for one in both
        if not one.is_category
        and _follow_within(one.values, cells)
        # Where groups change from row to row, rows of one are a series if those of the other between them are not of it.
        and (
            stays
            or (is_series(one.take(np.argsort(cells, kind="stable"))) and _follow_within(one.values, cells, stratum))
        )
    ]
    if alike:
        rows = (
            "neighbouring rows are of one group and alike" if stays else "rows of one group are alike one after another"
        )
        way_out = f"{same(strata) or option('paired', [strata])} relabels whole cases"
        if stratum.max() + 1 < FEWEST_PAIRED:
            # So few strata are no cases.
            together = f"{option('cluster', ['stretch'])} beside {option('strata', [strata])}"
            way_out = f"number stretches of rows within each {strata!r} in a column 'stretch': {together} relabels them together"
        yield (
            f"within {strata!r} {rows} in {listed(list(map(repr, alike)))}: if they follow each other in time they do not "
            f"change places, and the p-value is far too small; {way_out}"
        )


def within_strata(tables: Sequence[Table], read: Sequence[Table], strata: str) -> tuple[list[Table], list[Table]]:
    """Return tables as they were read, and what columns of them are beyond the means of strata, as `dependent_rows` asks."""
    whole = _whole(read)
    beyond: list[Table] = []
    for table, of in zip(tables, whole, strict=True):
        stratum, times = places_among_values(of[strata]), {strata, *(one.name for one in in_time(of))}
        columns = (
            one if one.name in times else beyond_groups(one, np.ones(len(stratum), dtype=np.bool_), stratum)
            for one in table.columns
            if one.name != strata
        )
        beyond.append(replace(table, columns=tuple(columns)))
    return whole, beyond


def difference_varies(tables: Sequence[Table], whole: Sequence[Table], name: str, *, within: bool = False) -> bool:
    """Say whether the difference of two tables varies from case to case in some column, as chance would not make it vary.

    Where d is the difference of the means of a case, of a rows in one table and b in the other, the mean of a b / (a + b)
    times the square of d less its mean is the variance of rows if these are independent. Else it inflates what a test takes
    that variance to be: of all rows, or `within` cases.
    """
    from scipy.special import fdtrc  # noqa: PLC0415 - few tables have such a column

    if any(name not in one.names for one in whole) or whole[0][name].kind != whole[1][name].kind:
        return False
    both, group = laid_below(*(one[name] for one in whole)), np.repeat([0, 1], [one.n_rows for one in whole])
    columns = [
        laid_below(one, tables[1][one.name])
        for one in tables[0].columns
        if one.name != name and one.name in tables[1].names and one.kind == tables[1][one.name].kind
    ]
    for column in columns:
        known = np.flatnonzero(~(column.missing | both.missing))
        case = np.unique(both.values[known], return_inverse=True, return_counts=True)[1]
        counts = np.bincount(2 * case + group[known], minlength=2 * int(case.max(initial=-1) + 1)).reshape(-1, 2)
        shared = counts.min(axis=1) > 0
        pairs, rows = int(shared.sum()), int(counts[shared].sum())
        if pairs < FEWEST_PAIRED or rows < 3 * pairs or 2 * rows < len(group):
            continue
        values = beyond_groups(column, np.ones(len(group), dtype=np.bool_), group).values[known]
        means = means_of_groups(values, 2 * case + group[known], counts.size).reshape(-1, 2)
        rest = (values - means[case, group[known]])[shared[case]]
        weights, apart = (counts.prod(axis=1) / counts.sum(axis=1))[shared], np.subtract(*means.T)[shared]
        squares = float(weights @ np.square(apart - weights @ apart / weights.sum()))
        varies, inside = squares / (pairs - 1), float(rest @ rest)
        chance = (inside + squares) / (rows - pairs - 1) if within else float(np.square(values).mean())
        unlikely = fdtrc(pairs - 1, rows - 2 * pairs, varies * (rows - 2 * pairs) / max(inside, 1e-300))
        if varies > INFLATED * chance and unlikely * len(columns) < RARE:
            return True
    return False


def _strata_of_files_in_time(used: Sequence[Table], read: Sequence[Table], strata: str) -> Iterator[str]:
    """Yield a warning where rows of two files, each in time, follow each other within strata in what is compared."""
    alike: list[list[str]] = []
    for table, whole in zip(used, (one.with_all_columns() for one in read), strict=True):
        times = {one.name for one in in_time(whole)}
        stratum = places_among_values(whole[strata].take(whole.places_of(table.numbers())))
        numbers = [one for one in table.columns if times and one.name not in times and not one.is_category]
        alike.append([one.name for one in numbers if _follow_within(one.values, stratum)])
    if names := [name for name in alike[0] if name in alike[1]]:
        yield (
            f"within {strata!r} neighbouring rows are alike in {listed(list(map(repr, names)))}: they follow each other in time and "
            "do not change places with those of the other file, and the p-value is far too small"
        )


def _follow_within(values: NDArray[Any], groups: NDArray[np.intp], strata: NDArray[np.intp] | None = None) -> bool:
    """Say whether residuals from the means of groups are correlated with the next one of their group, beyond chance.

    With `strata`, beyond how they are with that next to them in their stratum where it is of another group. In a group of m
    independent rows the correlation is -1 / m of their variance on average.
    """
    rest = values - means_of_groups(values, groups)[groups]
    left, right = _next_to(groups)
    pairs, total = len(left), float(rest @ rest)
    if pairs < FEWEST_ROWS_IN_SERIES or total == 0.0:
        return False
    found = float(rest[left] @ rest[right]) / total + float((1.0 / np.bincount(groups)[groups[left]]).mean())
    errors = 1.0 / pairs
    if strata is not None:
        left, right = _next_to(strata)
        across = groups[left] != groups[right]
        left, right = left[across], right[across]
        # By chance about half of them are.
        if 4 * len(left) < max(pairs, FEWEST_ROWS_IN_SERIES):
            return False
        found -= max(float(rest[left] @ rest[right]) / len(left) * pairs / total, 0.0)
        errors += 1.0 / len(left)
    return found > IN_TIME * math.sqrt(errors)


def clusters_out_of_order(sides: Sequence[Table], table: Table, cluster: str, *, rejects: bool) -> Iterator[str]:
    """Yield a warning where rows of clusters change places with those of another time, by their order in the file.

    In the order of time they do where each cluster has other times, which matters where both sides follow these.
    """
    units = places_among_values(table[cluster])
    left, right = _next_to(units)
    if any(all((one.values[left] == one.values[right]).all() for one in side.columns) for side in sides):
        return
    size, place = np.bincount(units)[units], _places_within(units, np.arange(len(units)))
    known = size * len(units) + place
    tested, unlike = {cluster, *chain.from_iterable(side.names for side in sides)}, list[str]()
    for one in table.columns:
        if one.name in tested or one.problem is not None or one.is_category or one.missing.any():
            continue
        time, ascending = places_among_values(one), np.unique(one.values, return_counts=True)[0]
        if _tells_time(one) and len(np.unique(units * len(ascending) + time, return_counts=True)[0]) == len(units):
            # Clusters of one size have the rows of each time in the same place.
            known_places = len(np.unique(known, return_counts=True)[0])
            ranked = np.unique(known * len(units) + _places_within(units, time), return_counts=True)[0]
            if len(ranked) == known_places:
                at_places = np.unique(known * len(ascending) + time, return_counts=True)[0]
                if rejects and len(at_places) > known_places and all(_follows_times(side, time) for side in sides):
                    yield (
                        f"rows of {cluster!r} change places by their order, and those in one place have different {one.name!r}: "
                        f"what all have in common at one time is taken for dependence; {option('where')} takes times that all have"
                    )
                return
            unlike.append(one.name)
    if unlike:
        yield (
            f"rows of {cluster!r} change places by their order in the file, which is not that of {unlike[0]!r}: what all "
            f"have in common at one time is taken for dependence; sort the file by {unlike[0]!r}"
        )


def _follows_times(side: Table, time: NDArray[np.intp]) -> bool:
    """Say whether the means of some column of numbers differ between times that rows share, beyond chance."""
    from scipy.special import fdtrc  # noqa: PLC0415 - takes 0.2 s to load

    n, count = len(time), int(time.max()) + 1
    for column in side.columns:
        if column.is_category or count in {1, n}:
            continue
        fitted = means_of_groups(column.values, time)[time]
        between, within = np.square(fitted - column.values.mean()).sum(), np.square(column.values - fitted).sum()
        if within > 0.0 and fdtrc(count - 1, n - count, between / (count - 1) / (within / (n - count))) < BY_CHANCE:
            return True
    return False


def _places_within(groups: NDArray[np.intp], values: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the place of each row in its group, in the order of some values."""
    order, sizes = np.lexsort((values, groups)), np.bincount(groups)
    found = np.empty(len(groups), dtype=np.intp)
    found[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return found


def _next_to(groups: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows that have one of their group after them, and these."""
    order = np.argsort(groups, kind="stable")
    near = groups[order[:-1]] == groups[order[1:]]
    return order[:-1][near], order[1:][near]


def clusters_in_time(columns: Sequence[Column], table: Table, cluster: str, errors: float = IN_TIME) -> Iterator[str]:
    """Yield a warning where clusters are rows, or follow time and their means follow one another, by so many standard errors."""
    places = places_among_values(table[cluster])
    if len(places) > 1 and places.max() + 1 == len(places):
        yield f"each {cluster!r} has one row: what relabels clusters relabels rows, and takes them for independent"
        return
    own = table[cluster]
    # In time numbers of stretches only grow.
    stretches = in_time(table.with_all_columns()) and np.diff(own.values).min(initial=0) >= 0
    if not (stretches or _tells_time(own)):
        return
    whole = [one for one in columns if len(one.values) == len(places) and not one.missing.any()]
    alike = [one.name for one in whole if any(runs_in_order(some, errors) for some in _means(one, places))]
    if alike:
        yield (
            f"{cluster!r} follows time, and neighbouring ones are alike in {listed(list(map(repr, alike)))}: what relabels them "
            f"takes them for independent, and the p-value is far too small; {option('time-series', True)} of hsic tests series, as the means of each are"
        )


def _tells_time(column: Column) -> bool:
    """Say whether values are dates, or whole numbers that are years or called so."""
    if column.is_category or column.missing.any():
        return False
    ascending = np.unique(column.values, return_counts=True)[0]
    whole = bool((ascending == np.floor(ascending)).all())
    return column.kind == "date" or (whole and (says_time(column.name) or within_years(ascending)))


def _means(column: Column, units: NDArray[np.intp]) -> Iterator[NDArray[np.float64]]:
    """Yield the mean of each unit, or the share of each of the commonest categories in it."""
    commonest = np.bincount(column.values).argsort()[-COMMONEST:] if column.is_category else ()
    shares = map(column.values.__eq__, commonest) if column.is_category else [column.values]
    yield from (means_of_groups(np.asarray(one, dtype=np.float64), units) for one in shares)


def numbers_of(tables: Sequence[Table]) -> NDArray[np.int64]:
    """Return the numbers of the rows of all tables in the table that they were read from."""
    return np.concatenate([one.numbers() for one in tables])


def dependent_pairs(
    used: Sequence[Table], read: Sequence[Table], pairs: NDArray[np.intp], paired: str
) -> Iterator[str]:
    """Yield a warning where differences within pairs are alike in neighbouring pairs, or in those of one case.

    `pairs` are those of the rows of both tables, one below the other, by the column `paired`.
    """
    n_x, count = used[0].n_rows, int(pairs.max()) + 1
    of_x, of_y = pairs[:n_x], pairs[n_x:]
    first = np.zeros(count, dtype=np.intp)
    first[of_x[::-1]] = np.arange(n_x)[::-1]
    # Pairs in the order of their rows of X.
    own = np.argsort(first)
    first = first[own]
    differences = [
        replace(
            one, values=(means_of_groups(one.values, of_x, count) - means_of_groups(other.values, of_y, count))[own]
        )
        for one, other in zip(used[0].columns, used[1].columns, strict=True)
        if one.kind == "number"
    ]
    whole, made = read[0].with_all_columns(), {one.name for one in differences}
    rows = whole.take(whole.places_of(used[0].numbers()[first]))
    table = replace(rows, columns=(*(one for one in rows.columns if one.name not in made), *differences))
    if alike := alike_neighbours(differences, table):
        # Pairs of stretches are of ones that are too short.
        longer = f"longer stretches of rows than those of {paired!r}" if count < len(of_x) else "stretches of rows"
        yield (
            f"differences within neighbouring pairs are alike in {listed(list(map(repr, alike)))}: if the rows are a series in time, "
            f"the p-value is far too small; number {longer} in a column 'stretch': {option('paired', ['stretch'])} swaps them together"
        )
        return
    for cases in case_columns(table, differences):
        if cases.sure and cases.inflated(1.0, max(cases.alike.values())):
            yield (
                f"differences within pairs of the same {cases.column.name!r} are alike, and the test takes pairs for "
                f"independent: {option('paired', [cases.column.name])} swaps them together"
            )
            return
