"""Columns that name cases of several rows, such as a patient or a country over the years.

A column of texts or of numbers may name cases if it has several rows of each value. It does for sure

* if it is called so;
* if with another column, such as a year, it tells all rows apart although by chance many would be equal in both: texts, or
  numbers of which equal ones stand together;
* if there are as many rows of each value, nearly, as chance would hardly draw, for a design has chosen them: texts, or whole
  numbers that are no years;
* if it is whole numbers in the order of the file.

Of others that matters which some column, or the sample, never changes within: then rows are drawn, or treated, by cases. Rows
of a case are alike in other columns, those of the next number not as much: not so where the order of numbers means something.
Where no column names them like that, neighbouring rows in which one stays the same may be a case.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kerntest.data.column_types import as_label
from kerntest.data.facts import NumberFacts, explained_share
from kerntest.errors import either, option, rows_alike

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.diagnostics.copies import Values
    from kerntest.data.table import Column, Table

# Cases that a column must name at least, and one that is called so, and rows of each on average; where these are texts or it is
# called so, half of the cases may have lost one of two rows.
FEWEST_CASES, FEWEST_CALLED, FEWEST_OF_CASE, FEWEST_OF_NAMED = 10, 5, 2.0, 1.5
# Where a column never changes within a case, so many cases, in whose order it changes such a share of as often as by chance, and
# so often, at least; texts of so many with so few rows may be cases rather than kinds.
FEWEST_FIXED, CHANGES, FEWEST_CHANGES, FEW_OF_CASE = 20, 0.5, 3, 20
# Of values that stay the same from row to row each stands in so many places on average if it names a case, or comes back.
ONCE, COME_BACK = 1.05, 1.5
# Lines of an order: rows are equal by chance so seldom in one column, and stay so this often at least, and as seldom change;
# with it nearly all stay in another, in which equal values of the first apart are less often equal.
UNLIKELY, STAYING, ALL_STAY, ALIKE_APART, MOSTLY = 0.1, 0.15, 0.95, 0.9, 0.6
# Means of the same cases in two tables have a correlation above this.
OTHERS = 0.3
# So many relabellings of cases can reject.
FEWEST_WAYS = 20
# What a column of cases is called, as a word of its name; and how names of columns that tell of cases end.
KINDS = re.compile(r"(?:class|type|group|kind|status|category|gender|sex|age)$")
CALLED = re.compile(
    r"(?:^|[^a-z])(?:(?:sub|subj|subject|patient|person|participant|respondent|individual|animal|household|study|case)?_?id"
    r"|subj|subject|patient|participant|respondent|individual|animal|household)(?:$|[^a-z])"
)
# And what one of time is.
TIME = re.compile(
    r"(?:^|[^a-z])(?:date|day|week|month|quarter|year|hour|minute|time|timestamp|period|trend|t)s?(?:$|[^a-z])"
)
# Of time itself, which starts again in no series as the days of a month do.
CLOCK = re.compile(r"(?:date|datetime|time|timestamp|year|yr|period|trend|t)")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Rows of a case are alike if chance makes them so with less than this probability, and of what names cases for sure, with
# less than the second; where nothing else is known of the other side, if cases explain so much;
IMPROBABLE, RARE, ALIKE = 1e-3, 0.02, 0.2
# else if they make the variance of a difference so many times as large as it is of independent rows (Moulton 1986).
INFLATED = 1.3
# Of numbers, two cases next to each other share less than this of the variance between cases, and so in the order of the file.
SHARED_WITH_NEXT, SHARED_IN_PLACE, SHARED_IF_APART = 0.75, 0.6, 0.9
# Of cases that stand together as large a share has several rows at least.
SEVERAL = 0.25
# Whole numbers within these are years.
YEARS = 1500.0, 2200.0
# Columns that go with cases which are numbered anew in each value of another one.
FEWEST_TOGETHER = 2
# Rows that are looked at, and of these first.
MOST_ROWS, FIRST_ROWS = 20_000, 200


class Cases(NamedTuple):
    """A column that names cases, for sure or not, with the rows of a case that a row is in on average.

    `alike` are columns in which rows of a case are alike, with the share of the variance that lies between cases, and `fixed`
    those that never change within a case.
    """

    column: Column
    sure: bool
    size: float
    alike: dict[str, float]
    fixed: set[str]

    def told(self, way_out: str, table: Table, *sides: Sequence[Column]) -> str:
        """Return the warning of a test of two sides of a table, with the way out if there is one."""
        few = "they are too few, or of too different sizes, to change places, and the p-value may be far too small"
        return takes_rows_for_independent(self.column.name, way_out if self.can_move(*sides) else few, table)

    def can_move(self, *sides: Sequence[Column]) -> bool:
        """Say whether enough cases, or cases of one size, can change places in a test of two sides."""
        _, first, places, sizes = np.unique(
            self.column.values, return_index=True, return_inverse=True, return_counts=True
        )
        own, rows = first[places], slice(len(places))
        fixed = any(all((one.values[rows] == one.values[own]).all() for one in side) for side in sides)
        moved = [len(sizes)] if fixed else np.unique(sizes, return_counts=True)[1].tolist()
        return sum(math.lgamma(count + 1.0) for count in moved) >= math.log(FEWEST_WAYS)

    def inflate(self, x: Iterable[str], y: Iterable[str]) -> bool:
        """Say whether a test of some columns against others takes far too few cases for many rows."""
        x, y = {*x}, {*y}
        shares = [max((self.alike.get(name, 0.0) for name in side), default=0.0) for side in (x, y)]
        return (self.sure or bool(self.fixed & (x | y))) and self.inflated(*shares)

    def inflated(self, x: float, y: float) -> bool:
        """Say whether so large shares on both sides inflate the variance of a difference."""
        return 1.0 + (self.size - 1.0) * x * y > INFLATED


def takes_rows_for_independent(name: str, way_out: str, table: Table) -> str:
    """Return the warning of a test about a column that names cases of several rows of a table, with the way out if there is one."""
    other = starts_again(name, table)
    told = (way_out or "the p-value may be far too small") if other is None else names_together(name, other)
    return f"{rows_alike(name)}, and the test takes rows for independent: {told}"


def names_together(name: str, other: str, *, sure: bool = True) -> str:
    """Return what names cases whose numbers start again in each value of another column."""
    again = f"the values of {name!r} start again in each {other!r}"
    return f"{f'{again}, and' if sure else f'if {again},'} a column of both together, in {option('cluster')}, names the cases"


def starts_again(name: str, table: Table) -> str | None:
    """Return the column in each value of which cases are numbered anew, as patients are in each of several centres.

    No column is the same in all rows of a number, but two are, which vary, in those of a number and a value of the other
    column, which does not determine them. Of columns that are not called so that is often chance.
    """
    if (
        not is_called_so(name)
        or name not in table.names
        or table[name].problem is not None
        or table.n_rows < FEWEST_OF_CASE
    ):
        return None
    codes = dict[str, Any]()
    for one in (column for column in table.columns if column.problem is None):
        _, places, sizes = np.unique(one.values[:MOST_ROWS], return_inverse=True, return_counts=True)
        if one.name == name or _equal_by_chance(sizes) <= ALIKE_APART:
            codes[one.name] = places
    own = codes.pop(name)
    if not codes or any(_same_within(own, one) for one in codes.values()):
        return None
    numbers = int(own.max()) + 1
    for other, of in codes.items():
        values = int(of.max()) + 1
        both = np.unique(own * values + of, return_inverse=True, return_counts=True)[1]
        if values <= numbers and COME_BACK * numbers <= both.max() + 1 <= len(own) / FEWEST_OF_CASE:
            told = (one for one in codes if one != other and not _same_within(of, codes[one]))
            if sum(_same_within(both, codes[one]) for one in told) >= FEWEST_TOGETHER:
                return other
    return None


def _first_of_each(groups: NDArray[np.intp]) -> NDArray[np.intp]:
    first = np.empty(int(groups.max()) + 1, dtype=np.intp)
    first[groups[::-1]] = np.arange(len(groups))[::-1]
    return first


def _same_within(groups: NDArray[np.intp], values: Values) -> bool:
    """Say whether all rows of each group have one value; few rows tell of most columns that they change."""
    own = _first_of_each(groups)[groups]
    return all(bool((values[part] == values[own[part]]).all()) for part in (slice(0, FIRST_ROWS), slice(None)))


def ways_with_shared_cases(name: str, same: Callable[[str], str] | None, *, within: bool, instead: str = "") -> str:
    """Return which test of two samples that share cases answers which question, if any: `within` cases where these can be strata, `instead` of an option."""
    whole = either("hsic with --x file", "hsic_test with x_columns='file'") + f" and {option('cluster', [name])}"
    whole = f"{whole}, of one file with a column 'file'," if same is None else same(name)
    ways = [f"{whole} exchanges whole cases"] if whole else []
    if within:
        ways.append(
            f"{option('strata', [name])}{instead} asks what differs within one case, if its rows follow no time"
        )
    return "; ".join(ways)


def case_columns(
    table: Table, columns: Sequence[Column], *, apart: Callable[[Column], bool] | None = None, unsure: bool = False
) -> Iterator[Cases]:
    """Yield the columns of a table that name cases, with those of some columns in which rows of a case are alike.

    Besides those for sure, and those within whose cases one of the columns never changes: those that are `apart`, where one
    that is among the columns is alike in its cases itself; and where `unsure` all texts, or numbers that stand together: of
    those among the columns the texts of many values with few rows each.
    """
    used, first = {column.name for column in columns}, np.arange(min(table.n_rows, MOST_ROWS))
    looked = [column.take(first) for column in columns if column.is_category or not runs(column)]
    plain, known = (
        [column.take(first) for column in map(as_label, table.columns) if column.problem is None],
        dict[str, Any](),
    )
    candidates = [(column, *found) for column in plain if (found := _cases(column)) is not None]
    for column, levels, together, names in sorted(candidates, key=lambda one: not one[2]):
        number = not column.is_category
        told_apart, called = together and _tells_rows_apart(column, levels, plain, known), is_called_so(column.name)
        sure = told_apart or (names and (called or _chosen(levels) or (number and together and _in_order(column))))
        others = [one for one in looked if one.name != column.name]
        fixed = _fixed(column, levels, others) if names and not sure else set[str]()
        divided = apart is not None and names and not sure and not fixed and apart(column)
        count = int(levels.max()) + 1
        many = unsure and not number and column.name in used and FEWEST_FIXED <= count >= len(levels) / FEW_OF_CASE
        if sure or fixed or divided or many or (unsure and together and column.name not in used):
            # Levels of one column within those of another are no wonder unless these name cases.
            some = [one for one in others if sure or divided or many or not one.is_category or one.name in fixed]
            most = RARE if sure else IMPROBABLE
            shared = SHARED_IF_APART if told_apart else SHARED_WITH_NEXT
            alike = _alike(column, levels, some, most, shared if number and not called else math.inf)
            if (
                not alike
                and told_apart
                and not within_years(np.unique(column.values[~column.missing], return_counts=True)[0])
            ):
                # Numbers in the order of a treatment may say nothing within it.
                alike = _alike_within(column, levels, plain, some)
            # What is tested itself is the same in all rows of a case.
            if apart is not None and column.name in used and (alike or told_apart or (sure and not number)):
                alike[column.name] = 1.0
            if alike:
                sizes = np.bincount(levels)
                yield Cases(table[column.name], sure, float(sizes @ sizes) / len(levels), alike, fixed)


def case_column(table: Table, x: Sequence[Column], y: Sequence[Column]) -> Cases | None:
    """Return the first column that names cases of which a test of x against y takes far too few for many rows."""
    sides = [[column.name for column in side] for side in (x, y)]
    return next((one for one in case_columns(table, [*x, *y]) if one.inflate(*sides)), None)


def cases_in_place(table: Table, columns: Sequence[Column], sorts: set[str]) -> Iterator[Cases]:
    """Yield columns of a table that neighbouring rows of one case have alike: not those it is sorted by.

    If no value comes back they name the cases, for sure. Else rows of a case are alike beyond what all rows of that value share.
    """
    first = np.arange(min(table.n_rows, MOST_ROWS))
    looked = [one.take(first) for one in columns if one.name not in sorts and (one.is_category or not runs(one))]
    plain = [one.take(first) for one in map(as_label, table.columns) if one.problem is None and one.name not in sorts]
    for column in plain:
        present = ~column.missing
        steps = np.sign(np.diff(column.values[present]))
        changes = np.count_nonzero(steps)
        if abs(int(steps.sum())) == changes or not FEWEST_FIXED <= changes + 1 <= len(steps) / FEWEST_OF_CASE:
            continue
        _, levels, sizes = np.unique(column.values[present], return_inverse=True, return_counts=True)
        cases = np.concatenate([[0], np.cumsum(steps != 0)])
        rows = np.bincount(cases)
        size, often = float(rows @ rows) / len(cases), (changes + 1) / len(sizes)
        names = bool(often <= ONCE)
        if not names:
            by_chance = len(steps) * (1.0 - _equal_by_chance(sizes))
            if often < COME_BACK or changes > CHANGES * by_chance or size > FEW_OF_CASE:
                continue
        # A value such as 0 that most rows of a sorted column have makes no cases of others that are all different.
        elif len(cases) > FEW_OF_CASE * len(sizes) or np.count_nonzero(rows > 1) < SEVERAL * len(rows):
            continue
        beyond = [beyond_groups(one, present, levels * (not names)) for one in looked if one.name != column.name]
        shared = SHARED_WITH_NEXT if names else SHARED_IN_PLACE
        alike = _alike(column, cases, beyond, IMPROBABLE, shared)
        if any(one.name == column.name for one in looked):
            alike[column.name] = 1.0
        if alike:
            yield Cases(column, names, size, alike, {column.name})
    yield from _cases_of_lines(table, columns, sorts)


def _cases_of_lines(table: Table, columns: Sequence[Column], sorts: set[str]) -> Iterator[Cases]:
    """Yield columns of which neighbouring rows have a rare value in common, and with it all of another column: lines of an order.

    Where the first changes the second is what it is by chance, so that the table is sorted by neither; and the first does not
    determine it.
    """
    first = np.arange(min(table.n_rows, MOST_ROWS))
    if len(first) < FEWEST_FIXED * FEWEST_OF_CASE:
        return
    whole = (one.take(first) for one in map(as_label, table.columns) if one.problem is None and one.name not in sorts)
    plain = [one for one in whole if not one.missing.any()]
    stays = [one.values[1:] == one.values[:-1] for one in plain]
    by_chance = [_equal_by_chance(np.unique(one.values, return_counts=True)[1]) for one in plain]
    used = {one.name for one in columns}
    for column, stay, equal in zip(plain, stays, by_chance, strict=True):
        if equal > UNLIKELY or not STAYING <= stay.mean() <= 1.0 - STAYING:
            continue
        # A single value that stays, such as 0, may determine others.
        staying = np.unique(column.values[1:][stay], return_inverse=True, return_counts=True)[2]
        if staying.max() > MOSTLY * staying.sum():
            continue
        lines = [
            one.name
            for one, other, chance in zip(plain, stays, by_chance, strict=True)
            if chance <= MOSTLY and other[stay].mean() >= ALL_STAY and other[~stay].mean() <= chance + UNLIKELY
        ]
        # Rows of one value apart from each other tell what it determines.
        order = np.argsort(column.values, kind="stable")
        apart = np.flatnonzero((np.diff(column.values[order]) == 0) & (np.diff(order) > FEW_OF_CASE))
        left, right = order[apart], order[apart + 1]
        free = [
            one.name
            for one in plain
            if one.name in lines
            and len(left) >= FEWEST_FIXED
            and (one.values[left] == one.values[right]).mean() < ALIKE_APART
        ]
        if column.name in lines and free:
            sizes = np.bincount(np.cumsum(~stay)).astype(np.float64)
            yield Cases(
                column,
                False,
                float(sizes @ sizes / sizes.sum()),
                dict.fromkeys(used.intersection(lines), 1.0),
                {column.name},
            )


def _equal_by_chance(sizes: NDArray[np.intp]) -> float:
    """Return the probability that two rows are equal, of so many with each value."""
    n = int(sizes.sum())
    return float(sizes @ (sizes - 1)) / (n * (n - 1))


def beyond_groups(column: Column, rows: NDArray[np.bool_], levels: NDArray[np.intp]) -> Column:
    """Return what numbers, or whether a row is of the level of most rows, are beyond the means of levels of some rows."""
    values, present = column.values.astype(np.float64), ~column.missing
    if column.is_category and present.any():
        values = (values == np.bincount(column.values[present]).argmax()).astype(np.float64)
    both = np.flatnonzero(present & rows)
    of = np.zeros(len(values), dtype=np.intp)
    of[rows] = levels
    rest, of = np.full(len(values), np.nan), of[both]
    rest[both] = values[both] - means_of_groups(values[both], of)[of]
    return replace(column, kind="number", values=rest, levels=())


def means_of_groups(values: Values, groups: NDArray[np.intp], count: int = 0) -> NDArray[np.float64]:
    """Return the mean of each group, of so many at least; 0 of empty ones."""
    sizes = np.bincount(groups, minlength=count)
    return np.asarray(np.bincount(groups, values, count) / np.maximum(sizes, 1))


def runs(column: Column) -> bool:
    """Say whether numbers never turn back: those of rows of a sorted table are alike."""
    present = column.values[~column.missing]
    return len(present) > 0 and (facts := NumberFacts.of(present)).runs and facts.up + facts.down > 0


def _in_order(column: Column) -> bool:
    return NumberFacts.of(column.values[~column.missing]).counts_cases


def is_called_so(name: str) -> bool:
    """Say whether a name is that of a column of cases: id, Subject, patient_id."""
    plain = CAMEL.sub("_", name).lower()
    return CALLED.search(plain) is not None and KINDS.search(plain) is None


def says_time(name: str) -> bool:
    """Say whether a name is that of a column of time: ordinal_date, Week."""
    return TIME.search(CAMEL.sub("_", name).lower()) is not None


def says_clock(name: str) -> bool:
    """Say whether a column is called time, year or date, which do not start again in a series."""
    return CLOCK.fullmatch(name.lower()) is not None


def _cases(column: Column) -> tuple[NDArray[np.intp], bool, bool] | None:
    """Return the case of each row that names one; None if there are no cases.

    And whether it is a text or equal numbers stand together, and whether a text or whole numbers, which name cases.
    """
    present = column.values[~column.missing]
    called_so = is_called_so(column.name)
    fewest = FEWEST_CALLED if called_so else FEWEST_CASES
    rows = FEWEST_OF_NAMED if called_so or column.is_category else FEWEST_OF_CASE
    if len(present) < rows * fewest:
        return None
    changes = int(np.count_nonzero(present[1:] != present[:-1]))
    names = column.is_category or (column.kind == "number" and bool((present == np.floor(present)).all()))
    # Of most columns of numbers this says that they are no names.
    if not names and changes > len(present) / FEWEST_OF_CASE:
        return None
    # Counts keep np.unique from importing numpy.ma, 13 ms of a small test.
    _, levels, counts = np.unique(present, return_inverse=True, return_counts=True)
    together = column.is_category or changes == len(counts) - 1
    # As many say as much as those of one size (Kish 1965): half of the rows may be of none.
    alike = len(present) ** 2 / float(counts @ counts) >= fewest / 2
    several = alike and fewest <= len(counts) <= len(present) / rows
    # Of few numbers, which may be answers, cases have as many rows each as a design gives them, or rows that stand together.
    several = several and (together or len(counts) >= FEWEST_CASES or _chosen(levels))
    return (levels, together, names) if several and (together or names) else None


def _fixed(column: Column, levels: NDArray[np.intp], others: Sequence[Column]) -> set[str]:
    """Return the names of the columns that never change within a case."""
    count, found = int(levels.max()) + 1, set[str]()
    if count < FEWEST_FIXED:
        return found
    first, present = _first_of_each(levels), np.flatnonzero(~column.missing)
    for other in others:
        values = other.values[present]
        if not _same_within(levels, values):
            continue
        of_cases = values[first]
        _, sizes = np.unique(of_cases, return_counts=True)
        # Neither another name of the cases nor parts of their order are properties of them.
        by_chance = (count - 1) * (1.0 - _equal_by_chance(sizes))
        steps = np.diff(of_cases)
        one_way = not other.is_category and abs(int(np.sign(steps).sum())) == np.count_nonzero(steps)
        few = np.count_nonzero(steps) < max(CHANGES * by_chance, FEWEST_CHANGES)
        in_order = not column.is_category and (few or one_way)
        if len(sizes) > 1 and not in_order and not (other.is_category and 2 * len(sizes) > count):
            found.add(other.name)
    return found


def _chosen(levels: NDArray[np.intp]) -> bool:
    """Say whether numbers of rows of cases are more equal than chance makes them, by the dispersion test of Poisson.

    The cube root of chi-square is about normal (Wilson and Hilferty 1931).
    """
    sizes, free = np.bincount(levels), int(levels.max())
    unlike = float(np.square(sizes - sizes.mean()).sum() / sizes.mean()) / free
    normal = (unlike ** (1 / 3) - 1.0 + 2.0 / (9 * free)) / math.sqrt(2.0 / (9 * free))
    return 0.5 * math.erfc(-normal / math.sqrt(2.0)) < IMPROBABLE


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
            known[one.name] = places, _equal_by_chance(counts)
        places, q = known[one.name]
        if math.exp(-pairs * q) * len(others) < IMPROBABLE:
            keys = np.sort(levels * np.intp(len(places)) + places[present])
            if (keys[1:] != keys[:-1]).all():
                return True
    return False


def _alike(
    column: Column, levels: NDArray[np.intp], measured: Sequence[Column], most: float, shared: float
) -> dict[str, float]:
    """Return the columns in which rows of one case are alike, with the share of the variance between cases.

    Of cases whose order says nothing, two next to each other share half of it in some column: in others, such as the treatment
    by which patients are numbered, they may share all.
    """
    found, named = dict[str, float](), False
    for one in measured:
        values = one.values[~column.missing]
        known = values >= 0 if one.is_category else np.isfinite(values)
        values, places = values[known], np.unique(levels[known], return_inverse=True, return_counts=True)[1]
        groups = int(places.max(initial=-1)) + 1
        if not 1 < groups < len(places) or values.min() == values.max():
            continue
        # Another name of the cases is no property of them.
        if one.is_category and 2 * len(np.unique(values, return_counts=True)[0]) > groups:
            continue
        beyond, p_value = explained(places, values)
        if p_value * len(measured) < most:
            found[one.name] = beyond
            named = named or explained(places // 2, values)[0] < shared * beyond
    return found if named else {}


def _alike_within(
    column: Column, levels: NDArray[np.intp], columns: Sequence[Column], measured: Sequence[Column]
) -> dict[str, float]:
    """Return the columns in which rows of one case are alike beyond another that never changes within it, of few values."""
    present, cases = ~column.missing, int(levels.max()) + 1
    for other in columns:
        if other.name == column.name or other.missing[present].any():
            continue
        _, of, sizes = np.unique(other.values[present], return_inverse=True, return_counts=True)
        own = np.zeros(cases, dtype=np.intp)
        own[levels] = of
        if 1 < len(sizes) <= cases / FEWEST_OF_CASE and (own[levels] == of).all():
            beyond = [beyond_groups(one, present, of) for one in measured if one.name != other.name]
            if alike := _alike(column, levels, beyond, RARE, SHARED_IF_APART):
                return alike
    return {}


def explained(places: NDArray[np.intp], values: Values) -> tuple[float, float]:
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


def within_years(ascending: Values) -> bool:
    """Say whether numbers may be years."""
    return bool(YEARS[0] <= ascending[0] <= ascending[-1] <= YEARS[1])


def are_others(cases: Cases, read: Sequence[Table]) -> bool:
    """Say whether numbers name other cases in each of two tables: what rows of one have in common is not the same in both."""
    alike, means = max(cases.alike, key=cases.alike.__getitem__), list[dict[float, float]]()
    for whole in read:
        if not {alike, cases.column.name} <= {*whole.names}:
            return False
        one, of = whole[alike], whole[cases.column.name]
        if one.is_category or of.is_category:
            return False
        known = ~(one.missing | of.missing)
        values, places = np.unique(of.values[known], return_inverse=True, return_counts=True)[:2]
        means.append(dict(zip(values.tolist(), means_of_groups(one.values[known], places).tolist(), strict=True)))
    shared = sorted(means[0].keys() & means[1].keys())
    if len(shared) < FEWEST_FIXED or not cases.inflated(1.0, cases.alike[alike]):
        return False
    of_x, of_y = (np.array([own[one] for one in shared]) for own in means)
    spread = float(of_x.std() * of_y.std())
    return spread > 0.0 and float(np.mean((of_x - of_x.mean()) * (of_y - of_y.mean()))) < OTHERS * spread
