"""Rows that are not independent: what tests, of two samples and of dependence, tell of cases of several rows and of series."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.column_types import as_text
from kerntest.data.diagnostics.cases import (
    IMPROBABLE,
    are_others,
    beyond_groups,
    case_column,
    case_columns,
    cases_in_place,
    explained,
    longer_than_steps,
    means_of_groups,
    runs,
    says_time,
    takes_rows_for_independent,
    ways_with_shared_cases,
    within_years,
)
from kerntest.data.diagnostics.misleading import (
    COUNTS,
    IDENTIFIES,
    balanced,
    identifies_rows,
    left_out_with,
    places_among_values,
)
from kerntest.data.facts import NumberFacts, counts_rows
from kerntest.data.table import Column
from kerntest.errors import either, listed, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.diagnostics.cases import Cases
    from kerntest.data.diagnostics.copies import Values
    from kerntest.data.table import Table


def counters(columns: Iterable[Column]) -> list[str]:
    """Return the warnings about columns of one table that count its rows, missing values aside."""
    numbers = [column for column in columns if column.kind == "number"]
    counting = {one.name: COUNTS for one in numbers if counts_rows(one.values[~one.missing])}
    naming = {one.name: IDENTIFIES for one in numbers if one.name not in counting and identifies_rows(one)}
    return [left_out_with(name, trouble) for name, trouble in (counting | naming).items()]


# Neighbouring rows are alike from so many standard errors of the serial correlation on, or where a column tells the time;
SERIAL_ERRORS, IN_TIME = 6.0, 3.5
# in tables of so many rows, or of so many whose years or dates are told.
FEWEST_ROWS_IN_SERIES, FEWEST_IN_TIME = 30, 15
# and beyond any order in which a table is sorted from so many of the local one, or where there are many rows from that.
LOCAL_ERRORS, LEAST_LOCAL = 3.0, 0.25
# Equal values in stretches of so many rows on average are groups, and an order goes on for so many steps.
LONG_STRETCH, FEWEST_IN_ORDER = 20, 20
# The critical value of Dickey and Fuller at 10 %, many rows and an intercept.
UNIT_ROOT = -2.57
# So many steps of a series of years have one gap at most.
FEW_GAPS = 8


def dependent_rows(
    read: Sequence[Table],
    tables: Sequence[Table],
    same: Callable[[str], str] | None = None,
    *,
    stratified: bool = False,
) -> Iterator[str]:
    """Yield a warning where rows of one case, which is in one of two tables, are alike, or else rows that are neighbours in time.

    `tables` are those of the columns that are tested, of tables as they were read; their first rows will do. Of groups of one
    table, `same` is what asks of whole cases whether they differ.
    """
    whole = [one.with_all_columns() for one in read]
    for one, of in zip(tables, whole, strict=True):
        for cases in case_columns(of, one.columns, apart=lambda column: _apart(column.name, whole) == 1.0):
            name, apart = cases.column.name, _apart(cases.column.name, whole)
            others = same is None and apart < 1.0 and cases.sure and are_others(cases, whole)
            if not (others or cases.inflated(apart, max(cases.alike.values()))) or _is_series(cases, of, cases.alike):
                continue
            together = f"{option('cluster', [name])} relabels them together"
            way = f"{together}, if those of each file have values of their own" if others else together
            if apart < 1.0 and not others:
                way = ways_with_shared_cases(name, same, stratified=stratified)
            if others or apart == 1.0 or (cases.sure and apart >= 0.0):
                yield takes_rows_for_independent(name, way)
                return
    looked = [list(zip(tables, whole, strict=True))]
    if (table := read[0].whole) is not None and table is read[1].whole:
        # Of groups of one table the whole follows time, or else each.
        looked.insert(0, [(table.select([name for name in tables[0].names if name in table.names]), table)])
    for some in looked:
        in_order = [(one, of) for one, of in some if in_time(of)]
        alike = [(names[0], one.name) for one, of in in_order if (names := alike_neighbours(_not_numbering(one), of))]
        if alike:
            dates = (one for _, of in in_order for one in in_time(of) if one.kind == "date")
            such = next(
                (f", as {longer_than_steps(one)} of {one.name!r}," for one in dates),
                ", differently in each file," * (same is None),
            )
            told, way = f"number stretches of rows{such} in a column 'stretch'", ""
            if same is not None:
                # Stretches of one group are long, and begin and end.
                sizes = [one.n_rows for one in tables]
                group = np.repeat([0, 1], sizes)[np.argsort(_numbers(tables))]
                way = same("stretch") if np.count_nonzero(np.diff(group)) * LONG_STRETCH > 2 * min(sizes) else ""
            way_out = f"{told}: {way or option('cluster', ['stretch'])} relabels them together"
            where = f" of {listed([one for _, one in alike])}"
            yield series_warning(list(dict.fromkeys(name for name, _ in alike)), way_out, where)
            return
    yield from islice(_groups_of_cases_in_place(read, tables, same), 1)


def _not_numbering(table: Table) -> list[Column]:
    """Return the columns that neither tell the time nor count the rows."""
    times = {one.name for one in in_time(table)}
    return [one for one in table.columns if one.name not in times and (one.is_category or not counts_rows(one.values))]


def _apart(name: str, tables: Sequence[Table]) -> float:
    """Return how far cases are in one of two tables: 1 if all are, 0 if not more than by chance, -1 if one table is of one case."""
    if any(name not in one.names for one in tables):
        return 0.0
    columns = [one[name] for one in tables]
    if any(one.is_category for one in columns):
        columns = [as_text(one) for one in columns]
        known = {
            level: place
            for place, level in enumerate(dict.fromkeys(chain.from_iterable(one.levels for one in columns)))
        }
        values = [np.array([known[level] for level in one.levels])[one.values[~one.missing]] for one in columns]
    else:
        values = [one.values[~one.missing] for one in columns]
    _, places, sizes = np.unique(np.concatenate(values), return_inverse=True, return_counts=True)
    sample = np.repeat([0.0, 1.0], list(map(len, values)))
    in_y = np.bincount(places, weights=sample)
    own = [int(np.count_nonzero(in_y == of)) for of in (0, sizes)]
    if sum(own) == len(sizes):
        # One case of one sample is none to compare with those of the other, nor within cases.
        return 1.0 if min(own) > 1 else -1.0
    beyond, p_value = explained(places, sample)
    return beyond if p_value < IMPROBABLE else 0.0


def _is_series(cases: Cases, table: Table, names: Iterable[str]) -> bool:
    """Say whether cases are times, of which neighbouring ones are alike, too, in some columns."""
    timed = cases.column.name in {one.name for one in in_time(table)}
    return timed and bool(alike_neighbours([table[name] for name in names if name in table.names], table))


def clusters_in_time(columns: Sequence[Column], table: Table, cluster: str) -> Iterator[str]:
    """Yield a warning where clusters are rows, or follow time and their means follow one another in some columns of numbers."""
    places = places_among_values(table[cluster])
    if len(places) > 1 and places.max() + 1 == len(places):
        yield f"each {cluster!r} has one row: what relabels clusters relabels rows, and takes them for independent"
        return
    timed = in_time(table)
    # In time numbers of stretches only grow.
    if not timed or np.diff(table[cluster].values).min(initial=0) < 0:
        return
    means = (
        (one.name, means_of_groups(one.values, places))
        for one in columns
        if not one.is_category and len(one.values) == len(places) and not one.missing.any()
    )
    alike = [name for name, some in means if _runs_in_order(some, IN_TIME, FEWEST_IN_TIME)]
    if alike:
        yield (
            f"{cluster!r} follows time, and neighbouring ones are alike in {listed(list(map(repr, alike)))}: what relabels them "
            f"takes them for independent, and the p-value is far too small; {option('time-series', True)} of hsic tests series"
        )


def strata_in_time(
    used: Sequence[Table], read: Sequence[Table], strata: str, same: Callable[[str], str] | None
) -> Iterator[str]:
    """Yield a warning where rows of two groups of one table follow each other within strata, in what is compared and in the group.

    What is compared is looked at within the groups: where these differ, rows of one are alike.
    """
    whole = read[0].whole
    if whole is None or whole is not read[1].whole or same is None:
        yield from _strata_of_files_in_time(used, read, strata)
        return
    numbers = _numbers(used)
    order = np.argsort(numbers)
    _, stratum, _ = np.unique(
        whole[strata].values[whole.places_of(numbers[order])], return_inverse=True, return_counts=True
    )
    group = np.repeat([0, 1], [one.n_rows for one in used])[order]
    if not _follow_within(group.astype(np.float64), stratum):
        return
    columns = ((one.name, np.concatenate([some[one.name].values for some in used])[order]) for one in used[0].columns)
    alike = [
        name
        for name, values in columns
        if not used[0][name].is_category and _follow_within(values, 2 * stratum + group)
    ]
    if alike:
        way = same(strata)
        yield (
            f"within {strata!r} neighbouring rows are of one group and alike in {listed(list(map(repr, alike)))}: if they follow "
            f"each other in time they do not change places, and the p-value is far too small"
            + (f"; {way} relabels whole cases" if way else "")
        )


def within_strata(tables: Sequence[Table], read: Sequence[Table], strata: str) -> tuple[list[Table], list[Table]]:
    """Return tables as they were read, and what columns of them are beyond the means of strata, as `dependent_rows` asks."""
    whole: list[Table] = [one.with_all_columns() for one in read]
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


def _groups_of_cases_in_place(
    read: Sequence[Table], tables: Sequence[Table], same: Callable[[str], str] | None
) -> Iterator[str]:
    """Yield the warning of two groups of a table in one of which are all rows of a case, or nearly, that stand together."""
    table = read[0].whole
    if table is None or table is not read[1].whole or same is None:
        return
    numbers, values = _numbers(tables), np.full(table.n_rows, np.nan)
    values[table.places_of(numbers)] = np.repeat([0.0, 1.0], [one.n_rows for one in tables])
    group = Column("", "number", values)
    whole = replace(table, columns=(*table.columns, group))
    tested = [table[name] for name in tables[0].names if name in table.names]
    for pair, cases in alike_in_place(whole, [*tested, group], [([group.name], [one.name]) for one in tested]):
        yield in_place_warning(pair, cases, same)


def _numbers(tables: Sequence[Table]) -> NDArray[np.int64]:
    return np.concatenate([one.numbers() for one in tables])


def _follow_within(values: Values, groups: NDArray[np.intp]) -> bool:
    """Say whether residuals from the means of groups are correlated with the next one of their group, beyond chance.

    In a group of m independent rows the correlation is -1 / m of their variance on average.
    """
    order = np.argsort(groups, kind="stable")
    values, groups = values[order].astype(np.float64), groups[order]
    sizes = np.bincount(groups)
    rest = values - means_of_groups(values, groups)[groups]
    next_to, total = groups[1:] == groups[:-1], float(rest @ rest)
    pairs = int(np.count_nonzero(next_to))
    if pairs < FEWEST_ROWS_IN_SERIES or total == 0.0:
        return False
    found = float((rest[1:] * rest[:-1])[next_to].sum()) / total
    by_chance = -float((1.0 / sizes[groups[1:]])[next_to].sum()) / pairs
    return (found - by_chance) * math.sqrt(pairs) > IN_TIME


def order_warnings(
    sides: Sequence[tuple[Table, Table]], *, rejects: bool, rows: NDArray[np.intp] | None = None
) -> list[str]:
    """Return what a reader must know of the order of the rows: sides, each in the table it was read from, that follow it."""
    cases, alike = None, list[list[str]]()
    if rejects:
        alike = [alike_neighbours(side.columns, read, rows) for side, read in sides]
        found = (case_column(read, *(side.columns for side, _ in sides)) for _, read in sides)
        times = {one.name for _, read in sides for one in in_time(read)} if all(alike) else set[str]()
        cases = next((one for one in found if one is not None and one.column.name not in times), None)
    named, told = [names[0] for names in alike if names] if cases is None and all(alike) else [], list[str]()
    if cases is not None:
        told = [
            cases.told(
                f"{option('cluster', [cases.column.name])} relabels them together", *(side.columns for side, _ in sides)
            )
        ]
    elif named:
        told = [series_warning(named, f"{option('time-series', True)} tests series")]
    elif rejects:
        pair = sides[0][0].names, sides[1][0].names
        columns = [column for side, _ in sides for column in side.columns]
        in_place = alike_in_place(sides[0][1], columns, [pair])
        told = [in_place_warning(*one, lambda name: option("cluster", [name])) for one in islice(in_place, 1)]
    elif sides[0][1] is sides[1][1]:
        told = [*balanced(sides[0][0], sides[1][0], sides[0][1])]
    return [*told, *counters(column for side, _ in sides for column in side.columns if column.name not in named)]


def pair_warnings(found: Sequence[tuple[str, str]], columns: Sequence[Column], table: Table) -> Iterator[str]:
    """Yield warnings where pairs of columns were found because rows are of few cases or a series, or where columns count."""

    def tested(pair: tuple[str, str], *design: str) -> str:
        words = (option("x", [pair[0]]), option("y", [pair[1]]), *design)
        return either(" ".join(words), f"hsic_test with {', '.join(words)}")

    named = case_columns(table, columns) if found else ()
    in_cases = (
        (cases, (x, y))
        for cases in named
        for x, y in found
        if cases.inflate([x], [y]) and not _is_series(cases, table, (x, y))
    )
    series = {*alike_neighbours(columns, table)} if found else set[str]()
    in_series = [pair for pair in found if {*pair} <= series]
    # What only rises, such as the time, is no series to test.
    rising = {column.name for column in columns if not column.is_category and runs(column)}
    testable = next((pair for pair in in_series if not {*pair} & rising), None)
    if (case := next(in_cases, None)) is not None:
        cases, pair = case
        way_out = f"{tested(pair, option('cluster', [cases.column.name]))} relabels them together"
        yield cases.told(way_out, *([one for one in columns if one.name == name] for name in pair))
    elif in_series:
        way_out = f"{option('time-series', True)} tests two series"
        if testable is not None:
            way_out = f"{tested(testable, option('time-series', True))} tests series"
        yield series_warning(list(dict.fromkeys(chain.from_iterable(in_series))), way_out)
    elif found:
        in_place = alike_in_place(table, columns, [([x], [y]) for x, y in found])
        if (one := next(in_place, None)) is not None:
            yield in_place_warning(*one, lambda name: tested(one[0], option("cluster", [name])))
    yield from counters(column for column in columns if column.name not in series)


def series_warning(names: Sequence[str], way_out: str, where: str = "") -> str:
    """Return the warning about columns, of some files, that neighbouring rows have alike.

    Two unrelated random walks look dependent to every test that takes rows for independent.
    """
    return _too_small(f"neighbouring rows are alike in {listed([repr(name) for name in names])}{where}", way_out)


def _too_small(said: str, way_out: str) -> str:
    return (
        f"{said}: if the rows are a series in time, or several are of one case, the p-value is far too small; {way_out}; "
        "of each case, keep one row"
    )


def alike_in_place(
    table: Table, columns: Sequence[Column], pairs: Sequence[tuple[Sequence[str], Sequence[str]]]
) -> Iterator[tuple[tuple[str, str], Cases]]:
    """Yield one column of each side of a pair that cases whose rows stand together have alike, with these."""
    if in_time(table):
        return
    for cases in cases_in_place(table, columns, _sorting(table)):
        for sides in pairs:
            known = [[name for name in side if name in cases.alike] for side in sides]
            if all(known):
                x, y = (max(side, key=lambda name: cases.alike[name]) for side in known)
                if cases.inflated(cases.alike[x], cases.alike[y]):
                    yield (x, y), cases


def in_place_warning(pair: tuple[str, str], cases: Cases, cluster: Callable[[str], str]) -> str:
    """Return the warning of a test about cases whose rows stand together; `cluster` is what relabels those of a column."""
    name = cases.column.name
    if cases.sure:
        way_out = cluster(name)
        return (
            takes_rows_for_independent(name, f"{way_out} relabels them together")
            if way_out
            else takes_rows_for_independent(name, ways_with_shared_cases(name, cluster))
        )
    way_out = f"number the cases in a column 'case': {cluster('case')} relabels them together"
    return _too_small(in_place_words(pair, cases), way_out)


def in_place_words(pair: tuple[str, str], cases: Cases) -> str:
    """Return the words for what neighbouring rows have alike, and where."""
    stays = "" if cases.column.name in pair else f" where {cases.column.name!r} stays the same"
    return f"neighbouring rows are alike in {listed([repr(one) for one in pair if one])}{stays}"


def alike_neighbours(
    columns: Sequence[Column], table: Table, rows: NDArray[np.intp] | None = None, *, local: float = LEAST_LOCAL
) -> list[str]:
    """Return the names of the columns, of a table or of some of its rows, that neighbouring rows have alike.

    A table that is sorted, by a group or by numbers, is no series: there a value is as far from the next one as from the
    one after it. In a series it is nearer. A column that says the time settles the question.
    """
    found = [(column, column.values[~column.missing if rows is None else rows]) for column in columns]
    timed = bool(in_time(table))
    least = (IN_TIME, FEWEST_IN_TIME) if timed else (SERIAL_ERRORS, FEWEST_ROWS_IN_SERIES)
    runs = [(column, values) for column, values in found if not column.is_category and _runs_in_order(values, *least)]
    if timed or not runs:
        return [column.name for column, _ in runs]
    sorts = _sorting(table)
    return [
        column.name
        for column, values in runs
        if counts_rows(values) or (_locally_alike(values, local) and (column.name not in sorts or _comes_back(values)))
    ]


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
            elif _dickey_fuller(values) > UNIT_ROOT:
                own.append(column.name)
    if rejects and all(wandering):
        yield (
            f"{' and '.join(repr(names[0]) for names in wandering)} wander like random walks, which the test of Dickey and Fuller "
            "does not rule out: of two such series the p-value is far too small; test their changes from row to row"
        )


def _dickey_fuller(values: NDArray[np.float64]) -> float:
    """Return the t statistic of the slope of the steps on the values they start from, with an intercept (1979)."""
    before, steps = values[:-1] - values[:-1].mean(), np.diff(values)
    size = float(before @ before)
    if size == 0.0 or len(before) < FEWEST_ROWS_IN_SERIES:
        return -math.inf
    slope = float(before @ steps) / size
    rest = steps - steps.mean() - slope * before
    error = math.sqrt(float(rest @ rest) / (len(before) - 2) / size)
    return slope / error if error > 0 else -math.inf


def in_time(table: Table) -> list[Column]:
    """Return the columns that tell the time of the rows, which follow it."""
    return [column for column in table.columns if _is_plain(column) and _is_time(column)]


def _runs_in_order(values: NDArray[np.float64], errors: float, rows: int) -> bool:
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
