"""Rows that are not independent: several of one case, such as a patient or a country over the years, and those of a series.

A column names cases if it has several rows of each level, which are alike in other columns, and

* it is a text, or numbers of which equal ones stand together; and, where asked,
* with another column, such as a year, it tells all rows apart although by chance many would be equal in both;
* or it is a text with as many rows of each level, nearly, as chance would hardly draw: a design has chosen them;
* or it is whole numbers, in order or with such numbers of rows but no years, and rows of one are alike as those of the next one
  are not: not so if order means something.
"""

from __future__ import annotations

import math
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.column_types import as_text
from kerntest.data.diagnostics.misleading import COUNTS, left_out_with
from kerntest.data.facts import NumberFacts, counts_rows, explained_share
from kerntest.errors import either, listed, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.diagnostics.copies import Values
    from kerntest.data.table import Column, Table

# Cases that a column must name at least, and rows of each on average.
FEWEST_CASES, FEWEST_OF_CASE = 10, 2.0
# Rows of a case are alike if chance makes them so with less than this probability, and cases explain so much;
IMPROBABLE, ALIKE = 1e-3, 0.2
# and, of numbers in order, if of the variance between cases two next to each other share less than this.
SHARED_WITH_NEXT = 0.75
# Rows that are looked at.
MOST_ROWS = 20_000


def case_columns(
    table: Table, columns: Sequence[Column], *, sure: bool = True, itself: bool = False
) -> Iterator[tuple[Column, set[str]]]:
    """Yield the columns of a table that name cases, each with those of some columns in which rows of a case are alike.

    Unless `sure`, a column that is not one of these need not tell rows apart with another one, nor be numbers in order. One
    that is one of these is alike in its cases `itself`, where a test takes it so.
    """
    used, first = {column.name for column in columns}, np.arange(min(table.n_rows, MOST_ROWS))
    looked = [column.take(first) for column in columns if column.is_category or not _runs(column)]
    plain, known = [column.take(first) for column in table.columns if column.problem is None], dict[str, Any]()
    # Numbers in no order may be what is measured of cases that another column names.
    for loose, levels, column in sorted(filter(None, map(_cases, plain)), key=itemgetter(0)):
        told_apart = not loose and (
            _tells_rows_apart(column, levels, plain, known) or (column.is_category and _chosen(levels))
        )
        in_order = loose or (
            not told_apart and column.kind == "number" and NumberFacts.of(column.values[~column.missing]).counts_cases
        )
        # Levels of one column within those of another are no wonder unless these name cases.
        others = [one for one in looked if one.name != column.name and (told_apart or not one.is_category)]
        if told_apart or in_order or (not sure and column.name not in used):
            ordered = in_order and (sure or loose or column.name in used)
            alike = {*_alike(column, levels, others, in_order=ordered)}
            # What is tested itself is the same in all rows of a case.
            if alike := alike | ({column.name} & used if itself and told_apart else set()):
                yield table[column.name], alike


def case_column(table: Table, groups: Sequence[Sequence[Column]], *, sure: bool = True) -> Column | None:
    """Return the first column that names cases whose rows are alike in some column of each group of columns."""
    found = case_columns(table, [column for group in groups for column in group], sure=sure)
    hit = (column for column, alike in found if all(any(one.name in alike for one in group) for group in groups))
    return next(hit, None)


def _runs(column: Column) -> bool:
    """Say whether numbers never turn back: those of rows of a sorted table are alike."""
    present = column.values[~column.missing]
    return len(present) > 0 and (facts := NumberFacts.of(present)).runs and facts.up + facts.down > 0


def _cases(column: Column) -> tuple[bool, NDArray[np.intp], Column] | None:
    """Return whether numbers name cases in no order, the case of each row that names one, and the column, if it may name any."""
    present = column.values[~column.missing]
    if len(present) < FEWEST_OF_CASE * FEWEST_CASES:
        return None
    changes = int(np.count_nonzero(present[1:] != present[:-1]))
    named = column.is_category or (column.kind == "number" and bool((present == np.floor(present)).all()))
    # Of most columns of numbers this says that they are no names.
    if not named and changes > len(present) / FEWEST_OF_CASE:
        return None
    # Counts keep np.unique from importing numpy.ma, 13 ms of a small test.
    values, levels, counts = np.unique(present, return_inverse=True, return_counts=True)
    if not FEWEST_CASES <= len(counts) <= len(present) / FEWEST_OF_CASE:
        return None
    loose = not column.is_category and changes != len(counts) - 1
    if loose and not (named and _chosen(levels) and not _within_years(values)):
        return None
    return loose, levels, column


def _chosen(levels: NDArray[np.intp]) -> bool:
    """Say whether numbers of rows of each level are more equal than chance makes them, by the dispersion test of Poisson.

    Below its mean the distribution function of chi-square is x^f e^-x / f! (1 + x / (f + 1) + ...), of half of each: no scipy.
    """
    sizes = np.bincount(levels)
    free, x = 0.5 * (len(sizes) - 1), 0.5 * float(np.square(sizes - sizes.mean()).sum()) / float(sizes.mean())
    if not 0.0 < x < free:
        return x == 0.0
    term = total = 1.0
    for step in range(1, 1000):
        term *= x / (free + step)
        total += term
        if term < 1e-6 * total:
            break
    return math.exp(free * math.log(x) - x - math.lgamma(free + 1.0)) * total < IMPROBABLE


def _tells_rows_apart(
    column: Column, levels: NDArray[np.intp], columns: Sequence[Column], known: dict[str, Any]
) -> bool:
    """Say whether rows of one case all differ in a number or a date, in which so many pairs of rows would not by chance.

    Two rows are equal in it with probability q, so that none of m pairs is with probability exp(-m q). Places of values
    among those of their column, and q, are kept as `known`.
    """
    present, sizes = ~column.missing, np.bincount(levels)
    pairs = 0.5 * float(sizes @ (sizes - 1))
    others = [one for one in columns if one.name != column.name and not one.is_category]
    for one in others:
        if one.name not in known:
            _, places, counts = np.unique(one.values, return_inverse=True, return_counts=True)
            known[one.name] = places, float(counts @ (counts - 1)) / (len(places) * (len(places) - 1))
        places, q = known[one.name]
        if math.exp(-pairs * q) * len(others) < IMPROBABLE:
            keys = np.sort(levels * np.intp(len(places)) + places[present])
            if (keys[1:] != keys[:-1]).all():
                return True
    return False


def _alike(column: Column, levels: NDArray[np.intp], measured: Sequence[Column], *, in_order: bool) -> Iterator[str]:
    """Yield the names of the columns in which rows of one case are alike."""
    for one in measured:
        values = one.values[~column.missing]
        known = values >= 0 if one.is_category else np.isfinite(values)
        values, places = values[known], np.unique(levels[known], return_inverse=True, return_counts=True)[1]
        if len(places) == 0 or len(places) <= (groups := int(places.max()) + 1) or values.min() == values.max():
            continue
        # Another name of the cases is no property of them.
        if one.is_category and 2 * len(np.unique(values, return_counts=True)[0]) > groups:
            continue
        beyond, p_value = _explained(places, values)
        if beyond <= ALIKE or p_value * len(measured) >= IMPROBABLE:
            continue
        # Of cases whose order says nothing, two next to each other share half of the variance between cases.
        if not in_order or _explained(places // 2, values)[0] < SHARED_WITH_NEXT * beyond:
            yield one.name


def _explained(places: NDArray[np.intp], values: Values) -> tuple[float, float]:
    """Return which share of a variance lies between cases, less what chance explains, and the p-value that there is one.

    Of numbers by the F test; of levels the variance is that of Gini, and the test that of Light and Margolin (1971).
    """
    from scipy.special import chdtrc, fdtrc  # noqa: PLC0415 - few tables have such a column

    n, groups = len(places), int(places.max()) + 1
    if values.dtype.kind == "f":
        share = min(explained_share(places, values.astype(np.float64)), 1.0 - 1e-12)
        p_value = fdtrc(groups - 1, n - groups, share / (groups - 1) / ((1.0 - share) / (n - groups)))
    else:
        _, levels, sizes = np.unique(values, return_inverse=True, return_counts=True)
        cells = np.unique(places * np.intp(len(sizes)) + levels, return_counts=True)
        within = np.bincount(cells[0] // len(sizes), weights=cells[1].astype(np.float64) ** 2) / np.bincount(places)
        total = n - float(sizes @ sizes) / n
        share = 1.0 - (n - float(within.sum())) / total
        p_value = chdtrc((len(sizes) - 1) * (groups - 1), (n - 1) * (len(sizes) - 1) * share)
    # By chance (groups - 1) / (n - 1).
    return 1.0 - (1.0 - share) * (n - 1) / (n - groups), float(p_value)


def cases_warning(name: str, way_out: str = "") -> str:
    """Return the warning of a test about a column that names cases of several rows."""
    return _takes_rows_for_independent(name, f"{way_out or option('cluster', [name])} relabels them together")


def _takes_rows_for_independent(name: str, way_out: str) -> str:
    return f"rows with the same {name!r} are alike, and the test takes rows for independent: {way_out}"


def _design_warning(name: str) -> str:
    """Return the hint at a column that names cases by design, whether their rows are seen to be alike or not."""
    told = f"the same {name!r} stands in several rows, by design it seems: if these are of one case, such as a patient"
    return f"{told}, {option('cluster', [name])} relabels them together"


def _by_design(table: Table) -> Iterator[tuple[Column, NDArray[np.intp]]]:
    """Yield the columns that tell the rows of a table apart with another one, such as a visit, and the case of each row."""
    first, known = np.arange(min(table.n_rows, MOST_ROWS)), dict[str, Any]()
    plain = [column.take(first) for column in table.columns if column.problem is None]
    for loose, levels, column in filter(None, map(_cases, plain)):
        if not loose and _tells_rows_apart(column, levels, plain, known):
            yield column, levels


def _constant(columns: Sequence[Column], cases: Column, levels: NDArray[np.intp]) -> bool:
    """Say whether some columns are properties of cases: the same in all rows of each, and in several cases."""
    first = np.unique(levels, return_index=True)[1]
    for column in columns:
        values = column.values[: len(cases.missing)][~cases.missing]
        several = 2 <= len(np.unique(values, return_counts=True)[0]) <= len(first) / 2
        if not several or (values != values[first][levels]).any():
            return False
    return True


def ways_with_shared_cases(name: str, same: Callable[[str], str] | None) -> str:
    """Return which test of two samples that share cases answers which question, that of whole cases first."""
    whole = either("hsic with --x file", "hsic_test with x_columns='file'") + f" and {option('cluster', [name])}"
    whole = f"{whole}, of one file with a column 'file'," if same is None else same(name)
    return f"{whole} asks the same of whole cases; {option('strata', [name])} asks what differs within one case"


def counters(columns: Iterable[Column]) -> list[str]:
    """Return the warnings about columns of one table that count its rows, missing values aside."""
    numbers = ((column.name, column.values[~column.missing]) for column in columns if column.kind == "number")
    return [left_out_with(name, COUNTS) for name, values in numbers if counts_rows(values)]


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
# Whole numbers that run from step to step within these are years.
YEARS = 1500.0, 2200.0
# So many steps of a series of years have one gap at most.
FEW_GAPS = 8


def dependent_rows(
    read: Sequence[Table], tables: Sequence[Table], same: Callable[[str], str] | None = None
) -> Iterator[str]:
    """Yield a warning where rows of one case, which is in one of two tables, are alike, or else rows that are neighbours in time.

    `tables` are those of the columns that are tested, of tables as they were read; their first rows will do. Of groups of one
    table, `same` is what asks of whole cases whether they differ.
    """
    whole = [one.with_all_columns() for one in read]
    for sure in (True, False):
        for one, of in zip(tables, whole, strict=True):
            for cases, _ in case_columns(of, one.columns, sure=sure, itself=sure):
                if (apart := _apart(cases.name, whole)) == 1.0:
                    yield cases_warning(cases.name)
                    return
                if sure and apart > ALIKE:
                    yield _takes_rows_for_independent(cases.name, ways_with_shared_cases(cases.name, same))
                    return
    if (
        name := next((one.name for one, _ in _by_design(whole[0]) if _apart(one.name, whole) == 1.0), None)
    ) is not None:
        yield _design_warning(name)
        return
    looked = [list(zip(tables, whole, strict=True))]
    if (table := read[0].whole) is not None and table is read[1].whole:
        # Of groups of one table the whole follows time, or else each.
        looked.insert(0, [(table.select([name for name in tables[0].names if name in table.names]), table)])
    for some in looked:
        in_order = [(one, of) for one, of in some if in_time(of)]
        alike = [(names[0], one.name) for one, of in in_order if (names := alike_neighbours(one.columns, of))]
        if alike:
            told = "number stretches of rows, differently in each file, in a column 'stretch'"
            way_out = f"{told}: {option('cluster', ['stretch'])} relabels them together"
            yield series_warning(
                list(dict.fromkeys(name for name, _ in alike)), way_out, listed([one for _, one in alike])
            )
            return


def _apart(name: str, tables: Sequence[Table]) -> float:
    """Return how far cases are in one of two tables: 1 if all are, 0 if not more than by chance."""
    if any(name not in one.names for one in tables):
        return 0.0
    columns = [as_text(one[name]) for one in tables]
    texts = [np.array(one.levels, dtype=object)[one.values[~one.missing]] for one in columns]
    if not {*texts[0]} & {*texts[1]}:
        return 1.0
    _, places = np.unique(np.concatenate(texts).astype(str), return_inverse=True)
    beyond, p_value = _explained(places, np.repeat([0.0, 1.0], list(map(len, texts))))
    return beyond if p_value < IMPROBABLE else 0.0


def order_warnings(
    sides: Sequence[tuple[Table, Table]], *, rejects: bool, rows: NDArray[np.intp] | None = None
) -> list[str]:
    """Return what a reader must know of the order of the rows: sides, each in the table it was read from, that follow it."""
    cases, alike = None, list[list[str]]()
    if rejects:
        cases = next(filter(None, (case_column(read, [side.columns for side, _ in sides]) for _, read in sides)), None)
        alike = [alike_neighbours(side.columns, read, rows) for side, read in sides]
    named, told = [names[0] for names in alike if names] if cases is None and all(alike) else [], list[str]()
    designed = None
    if rejects and cases is None:
        found = ((side, *one) for side, read in sides for one in _by_design(read) if side.n_rows == read.n_rows)
        constant = (cases.name for side, cases, levels in found if _constant(side.columns, cases, levels))
        designed = next(constant, None)
    if cases is not None:
        told = [cases_warning(cases.name)]
    elif designed is not None:
        told = [_design_warning(designed)]
    elif named:
        told = [series_warning(named, f"{option('time-series', True)} tests series")]
    return [*told, *counters(column for side, _ in sides for column in side.columns if column.name not in named)]


def pair_warnings(found: Sequence[tuple[str, str]], columns: Sequence[Column], table: Table) -> Iterator[str]:
    """Yield warnings where pairs of columns were found because rows are of few cases or a series, or where columns count."""

    def tested(pair: tuple[str, str], *design: str) -> str:
        words = (option("x", [pair[0]]), option("y", [pair[1]]), *design)
        return either(" ".join(words), f"hsic_test with {', '.join(words)}")

    named = case_columns(table, columns) if found else ()
    in_cases = ((cases.name, pair) for cases, alike in named for pair in found if {*pair} <= alike)
    series = {*alike_neighbours(columns, table)} if found else set[str]()
    in_series = [pair for pair in found if {*pair} <= series]
    # What only rises, such as the time, is no series to test.
    rising = {column.name for column in columns if not column.is_category and _runs(column)}
    testable = next((pair for pair in in_series if not {*pair} & rising), None)
    if (case := next(in_cases, None)) is not None:
        yield cases_warning(case[0], tested(case[1], option("cluster", [case[0]])))
    elif in_series:
        way_out = f"{option('time-series', True)} tests two series"
        if testable is not None:
            way_out = f"{tested(testable, option('time-series', True))} tests series"
        yield series_warning(list(dict.fromkeys(chain.from_iterable(in_series))), way_out)
    yield from counters(column for column in columns if column.name not in series)


def series_warning(names: Sequence[str], way_out: str, where: str = "") -> str:
    """Return the warning about columns, of some files, that neighbouring rows have alike.

    Two unrelated random walks look dependent to every test that takes rows for independent.
    """
    return (
        f"neighbouring rows are alike in {listed([repr(name) for name in names])}{where and f' of {where}'}: if the rows are a series in time, or "
        f"several are of one case, the p-value is far too small; {way_out}; of each case, keep one row"
    )


def alike_neighbours(columns: Sequence[Column], table: Table, rows: NDArray[np.intp] | None = None) -> list[str]:
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
        if counts_rows(values) or (column.name not in sorts and _locally_alike(values))
    ]


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


def follows_time(column: Column, table: Table) -> bool:
    """Say whether neighbouring rows of a table in time are alike in a column of it: nearer, or of the same level oftener."""
    if not in_time(table):
        return False
    if not column.is_category:
        return bool(alike_neighbours([column], table))
    levels = column.values[~column.missing]
    _, counts = np.unique(levels, return_counts=True)
    # Two rows have the same level with probability q.
    n, q = len(levels), float(np.sum((counts / max(len(levels), 1)) ** 2))
    same = np.count_nonzero(levels[1:] == levels[:-1])
    return n >= FEWEST_IN_TIME and q < 1.0 and bool(same > n * q + IN_TIME * math.sqrt(n * q * (1.0 - q)))


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


def _is_time(column: Column) -> bool:
    """Say whether numbers of ascending rows tell the time: dates, years, or even steps that do not just count the rows."""
    values = column.values[~column.missing]
    steps = np.diff(values)
    if len(values) < FEWEST_IN_TIME or steps.min() < 0 or np.count_nonzero(steps) * LONG_STRETCH <= len(values):
        return False
    even = steps.max() - steps.min() <= 1e-6 * steps.max() and (steps.max() != 1 or values[0] > 1)
    # In few rows even steps may be those of a dose.
    even &= len(values) >= FEWEST_ROWS_IN_SERIES or _within_years(values)
    return column.kind == "date" or bool(even) or are_years(values)


def are_years(values: Values) -> bool:
    """Say whether numbers of ascending rows are years, of one row or of several each."""
    if len(values) < FEWEST_IN_TIME or not _within_years(values):
        return False
    steps = np.diff(values)
    # Periods of a series of years have gaps between them.
    single = steps == 1.0
    return bool((single | (steps == 0.0)).all() and steps.any()) or bool(
        steps.min() > 0.0 and np.count_nonzero(~single) * FEW_GAPS <= len(steps)
    )


def _within_years(ascending: Values) -> bool:
    return bool(YEARS[0] <= ascending[0] <= ascending[-1] <= YEARS[1])


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
