"""Columns that count, follow time or name the tables, uneven tables, rows in both: what would make a test of two tables mislead."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.columns import laid_below
from kerntest.data.diagnostics.cases import is_called_so
from kerntest.data.diagnostics.copies import in_percent
from kerntest.data.facts import counts_rows
from kerntest.data.missing import in_tables
from kerntest.errors import listed, none_in_common, one_line, option, rows_alike

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.facts import NumberFacts, TableFacts
    from kerntest.data.table import Column, Kind, Table

LARGEST_RATIO = 20
SIGNIFICANT = 0.01
# Values that no other table has tell it apart with so many rows of each on average, where chance would put rows of one value
# into two of them.
ROWS_OF_VALUE = 2
# And so many rows in all tables, if they all had those of the smallest.
ROWS_IN_ALL = 8
# Of fewer rows that would be expected to be left out of one table, or kept, the normal law does not hold (Cochran 1954).
FEWEST_EXPECTED = 5.0
# Pairs that a column names at least, and its first values, among which most columns have equal ones.
FEWEST_PAIRS, FIRST_VALUES = 6, 100
# How a warning of several columns begins.
EACH = "each of the columns"
COUNTS = "counts the rows or identifies them: its whole numbers are all different and run in one direction"
IDENTIFIES = "is called like one that identifies the rows, and its whole numbers are all different"
FEWEST_NAMED = 3
# What a column is called that numbers rows, besides those that may name cases.
NUMBERING = re.compile(
    r"row(?:[ _]?(?:names?|numbers?|num|no|nr|index))?|index|unnamed: ?\d+|obs(?:[ _]?(?:no|nr|num|number))?"
)
_COUNTS_IN_EACH = COUNTS.replace("its", "in each table its")


def two_sample_warnings(facts: Sequence[TableFacts], used: Sequence[str], pairs: str | None = None) -> Iterator[str]:
    """Yield what a reader must know before believing a two-sample test, from facts about two tables of which some columns are used.

    `pairs` is the column that may name pairs of their rows.
    """
    (x, y), names = facts, [one_line(one.name) for one in facts]
    dropped = [one.rows - one.used for one in facts]
    p_value = proportions_p_value(dropped[0], x.rows, dropped[1], y.rows)
    if p_value < SIGNIFICANT:
        shares = [in_percent(count / one.rows) for count, one in zip(dropped, facts, strict=True)]
        emptiest = max(x.kinds, key=lambda name: x.missing[name] + y.missing[name])
        yield (
            f"missing values cost {names[0]} {shares[0]} of its rows and {names[1]} {shares[1]} (p {f'= {p_value:.2g}' if p_value > 0.0 else '< 1e-300'}): what is "
            f"left may differ for that reason alone; {option('missing', 'indicator')} keeps all rows, and "
            f"{option('exclude', [emptiest])} keeps some of them"
        )
    (few, small), (many, large) = sorted(zip((x.used, y.used), names, strict=True), key=lambda table: table[0])
    if many > LARGEST_RATIO * few:
        yield (
            f"{large} has {many / few:.0f} times as many rows as {small}: what the test can see is set by the {few:,} rows "
            "of the smaller one; give it more rows"
        )
    if pairs is not None and pairs in used and NUMBERING.fullmatch(pairs.lower()):
        yield (
            f"column {pairs!r} numbers the rows of both samples: leave it out with {option('exclude', [pairs])}; only if rows of one "
            f"number are of one case, as before and after, {option('paired', [pairs])} compares each with its own"
        )
    elif pairs is not None:
        otherwise = f"; else leave it out with {option('exclude', [pairs])}" if pairs in used else ""
        yield (
            f"column {pairs!r} has values that are in both samples, once in each: if rows of one value are of one case, as before "
            f"and after, they are not independent: {option('paired', [pairs])} compares each with its own{otherwise}"
        )
    troubles = {
        name: _time_trouble(x.kinds[name], x.numbers[name], y.numbers[name], names)
        for name in x.numbers
        if name in used and name != pairs
    }
    yield from left_out_with({name: trouble for name, trouble in troubles.items() if trouble is not None})


def column_of_pairs(tables: Sequence[Table], used: Sequence[str]) -> str | None:
    """Return the column that may name pairs of rows: each value once in a table, and mostly in the other, too.

    One that only counts the rows, and is not used, is a name of cases if it is called so.
    """
    for name in tables[0].names:
        if any(name not in one.names for one in tables):
            continue
        columns = [one[name] for one in tables]
        x, y = map(_different, columns)
        if 2 * len(x & y) > max(len(x), len(y), 2 * FEWEST_PAIRS - 1) and (
            name in used
            or is_called_so(name)
            or columns[0].is_category
            or not counts_rows(columns[0].values[~columns[0].missing])
        ):
            return name
    return None


def _different(column: Column) -> set[str] | set[float]:
    """Return the values of a column of categories, whole numbers or dates; none where some are equal."""
    values = column.values[~column.missing]
    named = column.problem is None and (column.is_category or bool((values == values.round()).all()))
    if not named or len({*values[:FIRST_VALUES].tolist()}) < min(len(values), FIRST_VALUES):
        return set()
    found = column.used_levels if column.is_category else {*values.tolist()}
    return found if len(found) == len(values) else set()


def telling_apart(facts: Sequence[TableFacts], used: Sequence[str], told: Sequence[str]) -> Iterator[str]:
    """Yield a warning where columns tell tables apart, but where one has `told` that they name cases, or share no value."""
    kinds = facts[0].kinds
    telling = [name for name in kinds if name in used and _tells_apart(name, facts) and not _is_told(name, told)]
    if telling and len(used) > 1:
        several = len(telling) > 1
        both = "both" if len(facts) == 2 else "two of them"
        yield (
            f"column{'s' * several} {listed(list(map(repr, telling)))} {'each alone tell' if several else 'alone tells'} the samples "
            f"apart: no value is in {both}; if {'they are other names' if several else 'it is another name'} of them, such as a code or "
            f"a batch, leave {'them' if several else 'it'} out with {option('exclude', in_tables(telling, kinds))}"
        )


def _is_told(name: str, told: Sequence[str]) -> bool:
    return any(
        text.startswith((rows_alike(name), none_in_common(name))) or ("alone tell" in text and repr(name) in text)
        for text in told
    )


def _tells_apart(name: str, facts: Sequence[TableFacts]) -> bool:
    """Say whether categories or codes, in several rows each, are all in one of some tables, and chance would not do that.

    Of L values, as often each, that happens in L! / (L_1! L_2! ...) of n! / (n_1! n_2! ...) ways to share rows out to tables.
    """
    values = [one.levels.get(name) or one.codes.get(name) for one in facts]
    # Of dates it is told that they differ.
    if not all(values) or facts[0].kinds[name] == "date":
        return False
    several = [some for some in values if some]
    L, n = [len(some) for some in several], [one.used for one in facts]
    of_value = min(rows / some for some, rows in zip(L, n, strict=True))
    if sum(L) != len(set().union(*several)) or of_value < ROWS_OF_VALUE or len(n) * min(n) < ROWS_IN_ALL:
        return False
    return _log_ways(L) - _log_ways(n) <= math.log(SIGNIFICANT)


def _log_ways(counts: Sequence[int]) -> float:
    """Return the logarithm of a multinomial coefficient."""
    return math.lgamma(sum(counts) + 1) - sum(math.lgamma(one + 1) for one in counts)


def identifies_rows(column: Column) -> bool:
    """Say whether a column of whole numbers, all different, is called like one that names rows."""
    values = column.values[~column.missing]
    called = is_called_so(column.name) or NUMBERING.fullmatch(column.name.lower()) is not None
    different = np.unique(values, return_counts=True)[1] if called and column.kind == "number" else values[:0]
    return len(values) == len(different) >= FEWEST_NAMED and bool((values == np.floor(values)).all())


def identifiers(tables: Sequence[Table], used: Sequence[str], told: Sequence[str]) -> Iterator[str]:
    """Yield a warning of the columns used that identify the rows of both tables, and of which nothing is told yet."""
    said = [text for text in told if text.startswith(("column ", EACH))]
    columns = zip(*(one.select(used).columns for one in tables), strict=True)
    names = [both[0].name for both in columns if all(map(identifies_rows, both))]
    yield from left_out_with(
        dict.fromkeys([name for name in names if not any(repr(name) in text for text in said)], IDENTIFIES)
    )


def left_out_with(troubles: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning of each trouble with the columns that are in it."""
    for trouble in dict.fromkeys(troubles.values()):
        names = [name for name, own in troubles.items() if own == trouble]
        which, it = (
            (f"{EACH} {listed(list(map(repr, names)))}", "them") if len(names) > 1 else (f"column {names[0]!r}", "it")
        )
        yield f"{which} {trouble}; leave {it} out with {option('exclude', names, most=None)}"


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
    """Return the two-sided p-value that two proportions are equal: by the z-test with the pooled variance, of few hits by Fisher's."""
    pooled = (hits_x + hits_y) / (n_x + n_y)
    variance = pooled * (1 - pooled) * (1 / n_x + 1 / n_y)
    p_value = math.erfc(abs(hits_x / n_x - hits_y / n_y) / math.sqrt(2 * variance)) if variance else 1.0
    if p_value >= SIGNIFICANT or min(pooled, 1 - pooled) * min(n_x, n_y) >= FEWEST_EXPECTED:
        return p_value
    from scipy.stats import fisher_exact  # noqa: PLC0415 - it takes 0.5 s to load, and few tables need it

    return float(fisher_exact([[hits_x, n_x - hits_x], [hits_y, n_y - hits_y]]).pvalue)


def balanced(x: Table, y: Table, table: Table) -> Iterator[str]:
    """Yield a warning where all rows of x occur with all of y equally often, as in a table of counts."""
    sides = [_different_rows(side.columns) for side in (x, y)]
    different = [int(places.max()) + 1 for places in sides]
    counts = np.unique(sides[0] * x.n_rows + sides[1], return_counts=True)[1]
    if min(different) > 1 and len(counts) == math.prod(different) and counts.min() == counts.max():
        used = {*x.names, *y.names}
        counting = [one.name for one in table.columns if one.name not in used and _may_count(one)]
        told = (
            f"{listed([*map(repr, x.names)])} and {listed([*map(repr, y.names)])} are in all combinations equally often"
        )
        ways = f"; {_if_it_counts(counting[0])}" if counting else ""
        yield f"{told}, by a design or in a table of counts: they say nothing of dependence{ways}"


def tables_of_counts(tables: Sequence[Table], used: Sequence[str]) -> Iterator[str]:
    """Yield a warning where two tables have all combinations of some columns, once each, and a column that may count them."""
    both = [laid_below(*(one[name] for one in tables)) for name in tables[0].names if _is_shared(name, tables)]
    counting = [one.name for one in both if _may_count(one)]
    cells, n_x, factors = 1, tables[0].n_rows, []
    for one in both:
        levels = int(places_among_values(one).max()) + 1
        if one.name in used and one.name not in counting and levels < len(one.values):
            factors.append(one)
            cells *= levels
    if counting and 1 < cells == n_x == tables[1].n_rows:
        rows = _different_rows(factors)
        if all(len({*some.tolist()}) == cells for some in (rows[:n_x], rows[n_x:])):
            yield (
                f"both samples have {listed([repr(one.name) for one in factors])} in all combinations, once each, by a design or as "
                f"tables of counts: {_if_it_counts(counting[0])}"
            )


def _is_shared(name: str, tables: Sequence[Table]) -> bool:
    """Say whether both of two tables have a column, of one kind."""
    return name in tables[1].names and tables[0][name].kind == tables[1][name].kind


def _if_it_counts(name: str) -> str:
    return f"if {name!r} counts cases, repeat each row so often"


def _different_rows(columns: Sequence[Column]) -> NDArray[np.intp]:
    """Return the place of each row among the different ones."""
    places = np.zeros(len(columns[0].values), dtype=np.intp)
    for column in columns:
        both = places * (len(places) + 1) + places_among_values(column)
        places = np.unique(both, return_inverse=True, return_counts=True)[1]
    return places


def places_among_values(column: Column) -> NDArray[np.intp]:
    """Return the place of each row's value among the different ones."""
    return np.asarray(np.unique(column.values, return_inverse=True, return_counts=True)[1], dtype=np.intp)


def _may_count(column: Column) -> bool:
    """Say whether a column is of whole numbers that are no factor, of values equally often, and do not number the rows."""
    values = column.values[~column.missing]
    if column.kind != "number" or not len(values) or values.min() < 0 or (values != np.floor(values)).any():
        return False
    counts = np.unique(values, return_counts=True)[1]
    if len(counts) == len(values):
        return float(np.ptp(values)) >= len(values) and not identifies_rows(column)
    return bool(counts.min() < counts.max())
