"""Rows that are not independent: what tests, of two samples and of dependence, tell of cases of several rows and of series."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.column_types import as_text
from kerntest.data.columns import laid_below
from kerntest.data.diagnostics.cases import (
    IMPROBABLE,
    Cases,
    are_others,
    beyond_groups,
    case_column,
    case_columns,
    cases_in_place,
    explained,
    runs,
    says_time,
    takes_rows_for_independent,
    ways_with_shared_cases,
)
from kerntest.data.diagnostics.dependent_units import difference_varies, numbers_of
from kerntest.data.diagnostics.misleading import (
    COUNTS,
    IDENTIFIES,
    balanced,
    identifies_rows,
    left_out_with,
    telling_apart,
)
from kerntest.data.diagnostics.series import (
    FOLLOWING,
    LONG_STRETCH,
    alike_neighbours,
    falls_back,
    in_time,
    longer_than_steps,
    most_follow,
    sorting,
    wanders,
)
from kerntest.data.facts import TableFacts, counts_rows
from kerntest.data.gaps import longest_stretch, rows_with_all
from kerntest.data.table import Column
from kerntest.errors import counted, either, listed, option, rows_alike

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Table


# Where time turns back, series have so many rows on average, and fewer are in no order.
FEWEST_IN_SERIES = 4


def counters(columns: Iterable[Column], alone: Collection[str] = ()) -> list[str]:
    """Return the warnings about columns of one table that count its rows, missing values aside; some are `alone` on a side."""
    numbers = [column for column in columns if column.kind == "number"]
    counting = {one.name: COUNTS for one in numbers if counts_rows(one.values[~one.missing])}
    naming = {one.name: IDENTIFIES for one in numbers if one.name not in counting and identifies_rows(one)}
    troubles = counting | naming
    ordered = [
        f"column {name!r} {told}; it is their order that is tested" for name, told in troubles.items() if name in alone
    ]
    return [*left_out_with({name: told for name, told in troubles.items() if name not in alone}), *ordered]


def groups_warnings(tables: Sequence[Table], used: Sequence[str], told: Sequence[str]) -> list[str]:
    """Return what is not told of pairs of groups: columns that count the rows of all, or tell all groups apart."""
    # Whether a value is missing is used too, and is no column of a table.
    untold = [name for name in tables[0].names if name in used and not any(repr(name) in text for text in told)]
    together = (laid_below(*(one[name] for one in tables)) for name in untold)
    return [*counters(together), *telling_apart([TableFacts.of(one, gaps=True) for one in tables], used, told)]


def dependent_rows(
    read: Sequence[Table],
    tables: Sequence[Table],
    same: Callable[[str], str] | None = None,
    within: Callable[[str], bool] = lambda _: True,
) -> Iterator[str]:
    """Yield a warning where rows of one case, which is in one of two tables, are alike, or else rows that are neighbours in time.

    `tables` are those of the columns that are tested, of tables as they were read; their first rows will do. Of groups of one
    table, `same` is what asks of whole cases whether they differ; `within` says whether those of a column can be strata.
    """
    whole = [one.with_all_columns() for one in read]
    told = chain(
        _rows_of_cases(read, tables, whole, same, within),
        _rows_of_series(read, tables, whole, same),
        _groups_of_cases_in_place(read, tables, same, within),
    )
    yield from islice(told, 1)


def _rows_of_cases(
    read: Sequence[Table],
    tables: Sequence[Table],
    whole: Sequence[Table],
    same: Callable[[str], str] | None,
    within: Callable[[str], bool],
) -> Iterator[str]:
    """Yield a warning for each column of cases whose rows are alike: first of those that are each in one of two tables, else unlike in both."""
    told = list[tuple[bool, str]]()
    for cases, of in _cases_of(read, tables, whole, of_both=same is not None):
        name, apart = cases.column.name, _apart(cases.column.name, whole)
        others = same is None and apart < 1.0 and cases.sure and are_others(cases, whole)
        shared = cases.sure and 0.0 <= apart < 1.0 and not others and not says_time(name)
        varies = shared and difference_varies(tables, whole, name)
        inflated = others or varies or cases.inflated(apart, max(cases.alike.values()))
        if not inflated or _is_series(cases, of, cases.alike):
            continue
        together = f"{option('cluster', [name])} relabels them together"
        way = f"{together}, if those of each file have values of their own" if others else together
        if apart < 1.0 and not others:
            way = ways_with_shared_cases(name, same, within=within(name))
        if varies:
            way = f"{option('paired', [name])} compares whole cases, each with itself"
        if others or apart == 1.0 or (cases.sure and apart >= 0.0):
            told.append((apart == 1.0, takes_rows_for_independent(name, way, read[0].whole or of)))
    yield from (text for _, text in sorted(told, key=lambda one: not one[0]))


def _cases_of(
    read: Sequence[Table], tables: Sequence[Table], whole: Sequence[Table], *, of_both: bool
) -> Iterator[tuple[Cases, Table]]:
    """Yield columns of cases of two tables, and where they are groups of one those that are for sure of both, beyond their means."""
    looked: list[tuple[Sequence[Column], Table]] = [(one.columns, of) for one, of in zip(tables, whole, strict=True)]
    if of_both and read[0].whole is not None and read[0].whole is read[1].whole:
        # Each group may have too few cases.
        numbers = numbers_of(whole)
        order = np.argsort(numbers)
        both = read[0].whole.take(read[0].whole.places_of(numbers[order]))
        label, names = np.repeat([0, 1], [one.n_rows for one in whole])[order], tables[0].names
        every = np.ones(len(label), dtype=np.bool_)
        looked.append(([beyond_groups(one, every, label) for one in both.columns if one.name in names], both))
    for place, (columns, of) in enumerate(looked):
        for cases in case_columns(of, columns, apart=lambda column: _apart(column.name, whole) == 1.0):
            if cases.sure or place < len(tables):
                yield cases, of


def _rows_of_series(
    read: Sequence[Table], tables: Sequence[Table], whole: Sequence[Table], same: Callable[[str], str] | None
) -> Iterator[str]:
    """Yield a warning where neighbouring rows of a table, or of the whole of which both are groups, are alike in time."""
    table, sizes = read[0].whole, [one.n_rows for one in tables]
    looked = [list(zip(tables, whole, strict=True))]
    # Rows of groups of one table stand in long stretches, or change from one to another.
    changes = np.count_nonzero(np.diff(np.repeat([0, 1], sizes)[np.argsort(numbers_of(tables))])) * (same is not None)
    short = changes * LONG_STRETCH > 2 * min(sizes)
    if table is not None and table is read[1].whole:
        # Of these the whole follows time, or else each.
        looked.insert(0, [(table.select([name for name in tables[0].names if name in table.names]), table)])
    for some in looked:
        in_order = [(one, of, alike_neighbours(_not_numbering(one), of)) for one, of in some if in_time(of)]
        if not in_order and not short and (same is None or len(some) == 1):
            # Nothing tells the time, and both follow it.
            in_order = [(one, of, most_follow(_not_numbering(one), of, wandering=True)) for one, of in some]
            in_order *= all(names for _, _, names in in_order)
        alike = [(names[0], one.name) for one, _, names in in_order if names]
        if alike:
            dates = (one for _, of, _ in in_order for one in in_time(of) if one.kind == "date")
            such = next(
                (f", as {longer_than_steps(one)} of {one.name!r}," for one in dates),
                ", differently in each file," * (same is None),
            )
            way_out = f"number stretches of rows{such} in a column 'stretch': {option('cluster', ['stretch'])} relabels them together"
            if same is not None and short and (call := same("stretch")):
                # Stretches of groups that change from row to row follow one another as rows do.
                clock = {one.name for _, of, _ in in_order for one in in_time(of)}
                clocks = [name for name in tables[0].names if name in clock]
                asked = [option("exclude", clocks)] * bool(clocks) + [option("time-series", True)]
                way_out = (
                    f"{call.replace(option('cluster', ['stretch']), either(' ', ', ').join(asked))} tests two series"
                )
            where = f" of {listed([one for _, one in alike])}"
            yield series_warning(list(dict.fromkeys(name for name, _ in alike)), way_out, where)


def _not_numbering(table: Table) -> list[Column]:
    """Return the columns that neither tell the time nor count the rows."""
    times = {one.name for one in in_time(table)}
    return [one for one in table.columns if one.name not in times and (one.is_category or not counts_rows(one.values))]


def _apart(name: str, tables: Sequence[Table]) -> float:
    """Return how far cases are in one of two tables: 1 if all are, 0 if not more than by chance, -1 if one table is of one case."""
    if any(name not in one.names for one in tables):
        return 0.0
    columns = [one[name] for one in tables]
    if any(one.is_category or one.digits is not None for one in columns):
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


def _groups_of_cases_in_place(
    read: Sequence[Table],
    tables: Sequence[Table],
    same: Callable[[str], str] | None,
    within: Callable[[str], bool],
) -> Iterator[str]:
    """Yield the warning of two groups of a table in one of which are all rows of a case, or nearly, that stand together."""
    table = read[0].whole
    if table is None or table is not read[1].whole or same is None:
        return
    numbers, values = numbers_of(tables), np.full(table.n_rows, np.nan)
    values[table.places_of(numbers)] = np.repeat([0.0, 1.0], [one.n_rows for one in tables])
    group = Column("", "number", values)
    whole = replace(table, columns=(*table.columns, group))
    tested = [table[name] for name in tables[0].names if name in table.names]
    for pair, cases in alike_in_place(whole, [*tested, group], [([group.name], [one.name]) for one in tested]):
        yield in_place_warning(pair, cases, table, same, within)


def order_warnings(
    sides: Sequence[tuple[Table, Table]], *, rejects: bool, rows: NDArray[np.intp] | None = None, without: str = ""
) -> list[str]:
    """Return what a reader must know of the order of the rows: sides, each in the table it was read from, that follow it.

    What has a way for them goes `without` options that were given.
    """
    cases, alike = None, list[list[str]]()
    leaving = f", without {without}," if without else ""
    if rejects:
        alike = [
            alike_neighbours(_beyond_time(side, other), read, rows, errors=FOLLOWING)
            for (side, read), other in zip(sides, sides[::-1], strict=True)
        ]
        found = (case_column(read, *(side.columns for side, _ in sides)) for _, read in sides)
        times = {one.name for _, read in sides for one in in_time(read)} if all(alike) else set[str]()
        cases = next((one for one in found if one is not None and one.column.name not in times), None)
    named, told = [names[0] for names in alike if names] if cases is None and all(alike) else [], list[str]()
    if cases is not None:
        told = [
            cases.told(
                f"{option('cluster', [cases.column.name])}{leaving} relabels them together",
                sides[0][1],
                *(side.columns for side, _ in sides),
            )
        ]
    elif named:
        told = [series_warning(named, _as_series(sides, rows, leaving))]
    elif rejects:
        pair = sides[0][0].names, sides[1][0].names
        columns = [column for side, _ in sides for column in side.columns]
        in_place = alike_in_place(sides[0][1], columns, [pair])
        told = [
            in_place_warning(*one, sides[0][1], lambda name: option("cluster", [name]) + leaving)
            for one in islice(in_place, 1)
        ]
        if not told and (named := _beside_series(sides, rows)):
            told = [series_warning(named, _as_series(sides, rows, leaving))]
    elif sides[0][1] is sides[1][1]:
        told = [*balanced(sides[0][0], sides[1][0], sides[0][1])]
    alone = {side.names[0] for side, _ in sides if len(side.columns) == 1}
    every = (column for side, _ in sides for column in side.columns)
    return [*told, *counters((column for column in every if column.name not in named), alone)]


def _beyond_time(side: Table, other: tuple[Table, Table]) -> Sequence[Column]:
    """Return the columns of a side, less its means over the values of the other where that is a unit of time that returns."""
    others, read = other
    one = others.columns[0]
    returns = len(others.columns) == 1 and one.name in {each.name for each in in_time(read)}
    if not returns or (np.diff(one.values) >= 0).all() or one.missing.any() or side.n_rows != others.n_rows:
        return side.columns
    levels = np.unique(one.values, return_inverse=True, return_counts=True)[1]
    return [beyond_groups(each, ~one.missing, levels) for each in side.columns]


def several_series(sides: Sequence[tuple[Table, Table]], rows: NDArray[np.intp], *, rejects: bool) -> Iterator[str]:
    """Yield what is wrong with the order of rows that are tested as one series: several are, or they follow no time."""
    tested = [[column.take(rows) for column in side.columns] for side, _ in sides]
    for table in (read.take(rows) for _, read in sides[: 1 + (sides[0][1] is not sides[1][1])]):
        times = in_time(table)
        if times and not np.all([np.diff(one.values) == 0 for one in times], axis=0).any():
            continue
        back = None if times else falls_back(table)
        named = [
            one for one in table.columns if back is not None and np.array_equal(np.flatnonzero(_changes(one)), back[1])
        ]
        if back is not None and (named or table.n_rows >= FEWEST_IN_SERIES * (len(back[1]) + 1)):
            said = f"{back[0].name!r} starts again {counted(len(back[1]), 'time')}"
            cases = next((Cases(one, True, 1.0, {}, set()) for one in named), None)
        else:
            cases = case_column(table, *tested) if rejects else None
            if cases is not None and (
                says_time(cases.column.name) or not (times or back or _stand_together(cases.column))
            ):
                cases = None
            said = "" if cases is None else rows_alike(cases.column.name)
        if said:
            ways = [f"{option('where')} tests one of them"]
            if cases is not None and cases.can_move(*tested):
                leaving = f"{option('cluster', [cases.column.name])}, without {option('time-series', True)},"
                ways.insert(0, f"{leaving} relabels each as a whole")
            yield f"{said}: the rows are several series, and the shift test takes them for one; {', '.join(ways)}"
        elif back is not None:
            said = f"the rows are not in the order of {back[0].name!r}: if it tells their time"
            yield f"{said}, shifts of them are none in time; sort the file by it"


def _changes(column: Column) -> NDArray[np.bool_]:
    return np.asarray(column.values[1:] != column.values[:-1])


def _stand_together(column: Column) -> bool:
    """Say whether equal values do."""
    return int(np.count_nonzero(_changes(column))) < len(np.unique(column.values, return_counts=True)[0])


def _as_series(sides: Sequence[tuple[Table, Table]], rows: NDArray[np.intp] | None, leaving: str) -> str:
    """Return which test of both sides, at some rows, is one of series."""
    kept = rows_with_all([column for side, _ in sides for column in side.columns]) if rows is None else rows
    return _without_gaps(sides[0][1], kept) + f"{option('time-series', True)}{leaving} tests series"


def _without_gaps(table: Table, kept: NDArray[np.intp]) -> str:
    """Return what series of the rows that are kept must have first: no row left out between two of them."""
    if (np.diff(table.numbers()[kept]) == 1).all():
        return ""
    stretch = longest_stretch(table, kept)
    return f"of rows without gaps{f', {stretch}' if stretch else ''}, or once gaps are filled in, "


def _beside_series(sides: Sequence[tuple[Table, Table]], rows: NDArray[np.intp] | None) -> list[str]:
    """Return one column of each side where one follows time by far, and the other in how large it is, or a little; else none."""
    for own, other in (sides, sides[::-1]):
        some = [(side, read if rows is None else read.take(rows)) for side, read in (own, other)]
        # Where a value is missing is no column of the table.
        far, near = ([of[one.name] for one in side.columns if one.name in of.names] for side, of in some)
        if alike := most_follow(far, some[0][1], wandering=True):
            beside = alike_neighbours(list(filter(wanders, near)), some[1][1], timed=True)
            if beside:
                return sorted((alike[0], beside[0]), key=[*sides[0][0].names, *sides[1][0].names].index)
    return []


def pair_warnings(found: Sequence[tuple[str, str]], columns: Sequence[Column], table: Table) -> Iterator[str]:
    """Yield warnings where pairs of columns were found because rows are of few cases or a series, or where columns count."""

    def tested(pair: tuple[str, str], *design: str, by: str = "", gaps: str = "") -> str:
        names = {*pair, by} & {*table.names}
        dropped = [option("missing", "drop")] * (not gaps and any(table[name].missing.any() for name in names))
        words = (option("x", [pair[0]]), option("y", [pair[1]]), *design, *dropped)
        return either(" ".join(words), f"hsic_test with {', '.join(words)}")

    named = case_columns(table, columns) if found else ()
    in_cases = (
        (cases, (x, y))
        for cases in named
        for x, y in found
        if cases.inflate([x], [y]) and not _is_series(cases, table, (x, y))
    )
    series = {*alike_neighbours(columns, table)} if found else set[str]()
    if found and most_follow(columns, table, wandering=True):
        series |= {*alike_neighbours(list(filter(wanders, columns)), table, timed=True)}
    in_series = [pair for pair in found if {*pair} <= series]
    # What only rises, such as the time, is no series to test.
    rising = {column.name for column in columns if not column.is_category and runs(column)}
    testable = next((pair for pair in in_series if not {*pair} & rising), None)
    if (case := next(in_cases, None)) is not None:
        cases, pair = case
        way_out = f"{tested(pair, option('cluster', [cases.column.name]), by=cases.column.name)} relabels them together"
        yield cases.told(way_out, table, *([one for one in columns if one.name == name] for name in pair))
    elif in_series:
        way_out = f"{option('time-series', True)} tests two series"
        if testable is not None:
            gaps = _without_gaps(table, rows_with_all([table[name] for name in {*testable} & {*table.names}]))
            way_out = f"{gaps}{tested(testable, option('time-series', True), gaps=gaps)} tests series"
        yield series_warning(list(dict.fromkeys(chain.from_iterable(in_series))), way_out)
    elif found:
        in_place = alike_in_place(table, columns, [([x], [y]) for x, y in found])
        if (one := next(in_place, None)) is not None:
            yield in_place_warning(*one, table, lambda name: tested(one[0], option("cluster", [name]), by=name))
    yield from counters(
        column for column in columns if case is not None or all(column.name not in one for one in in_series)
    )


def series_warning(names: Sequence[str], way_out: str, where: str = "") -> str:
    """Return the warning about columns, of some files, that neighbouring rows have alike.

    Two unrelated random walks look dependent to every test that takes rows for independent.
    """
    which = listed([repr(name) for name in dict.fromkeys(names)])
    both = " of both files" if len({*names}) < len(names) else ""
    return _too_small(f"neighbouring rows are alike in {which}{both}{where}", way_out)


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
    for cases in cases_in_place(table, columns, sorting(table)):
        for sides in pairs:
            known = [[name for name in side if name in cases.alike] for side in sides]
            if all(known):
                x, y = (max(side, key=lambda name: cases.alike[name]) for side in known)
                if cases.inflated(cases.alike[x], cases.alike[y]):
                    yield (x, y), cases


def in_place_warning(
    pair: tuple[str, str],
    cases: Cases,
    table: Table,
    cluster: Callable[[str], str],
    within: Callable[[str], bool] = lambda _: False,
) -> str:
    """Return the warning of a test about cases of a table whose rows stand together; `cluster` is what relabels those of a column."""
    name = cases.column.name
    if cases.sure:
        way_out = f"{cluster(name)} relabels them together" if cluster(name) else ""
        way_out = way_out or ways_with_shared_cases(name, cluster, within=within(name))
        return takes_rows_for_independent(name, way_out, table)
    way_out = f"number the cases in a column 'case': {cluster('case')} relabels them together"
    return _too_small(in_place_words(pair, cases), way_out)


def in_place_words(pair: tuple[str, str], cases: Cases) -> str:
    """Return the words for what neighbouring rows have alike, and where."""
    stays = "" if cases.column.name in pair else f" where {cases.column.name!r} stays the same"
    return f"neighbouring rows are alike in {listed([repr(one) for one in pair if one])}{stays}"
