"""Rows that are there twice, or in two tables: copies of one another, and not equal by chance.

Which equal rows are copies of one another, and not equal by chance, is one rule for every test and every learner. Rows are
equal by chance where their columns have few values, or values that go together. Copies are rows that are equal in columns
that nothing would make equal:

* A column of numbers that are far apart for their rounding has hardly a tie by chance; of few different numbers, if they have
  digits that nobody would choose. Where its ties are ties of whole rows, and more of them than chance makes (Poisson, below
  1e-3), these rows are copies. Of one column alone, round numbers among others would look so too: they are there in very
  different numbers, which copies are not.
* Of columns of few values, how often rows meet is asked of the columns themselves. Take rows that are equal in all columns
  but one. However strongly the columns depend on one another, some of these differ in that one: by the frequencies of its
  values two rows differ in it with probability 1 - q, and dependence may halve that. Copies never differ. So there are
  copies if for each column such rows are equal more often than (1 + q) / 2 allows, with a probability below 1e-3. Every
  set of such rows counts once, by the share of its pairs that are equal in everything, so that one frequent pattern (all
  zero, all "agree") proves nothing; the bound on the tail is that of Hoeffding (1963) for means in [0, 1].
* Of numbers with many values, rows that are equal in one are compared with rows in which it is next to equal: if columns
  depend on one another, these are nearly as often equal in all else. Copies are so far more often, beyond three times and
  what chance adds to that.
* Where nearly all rows stand in stretches of as many equal ones, some of which return elsewhere, no sorting has made them
  so, and chance would make stretches of other lengths.

Columns that another column all but determines, a code beside its name, say nothing new and are not asked.

A test of some columns of a table knows the others: rows that differ in one of these are different rows, whatever they have in
common in those that are tested. Only a column that counts the rows tells no rows apart: copies have numbers of their own, too.
Rows that differ may be of one case all the same, which a column names that is equal where they are.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.facts import FEWEST_ROWS, counts_rows, mixed
from kerntest.dataclass import dataclass
from kerntest.errors import counted, one_line, option

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.columns import Arranged
    from kerntest.data.table import Table

    Keys = NDArray[np.uint64]
    # Numbers, NaN where they are missing; or the codes of categories.
    Values = NDArray[np.float64] | NDArray[np.int64]
    # The columns of a table that a test does not use, one after another: the name, and the values at some rows of the test.
    Unused = Callable[[], Iterator[tuple[str, Callable[[NDArray[np.intp]], Values]]]]

# Of splitmix64 (Steele, Lea and Flood 2014).
_ODD, _MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(29)
LARGEST_SHARE = 0.1
_FAR_MORE = 5
# Of rows that are there as often each, one after another: so many stretches of them hold this share of all, and so many return.
FEWEST_STRETCHES, IN_STRETCHES, FEWEST_RETURNS = 20, 0.8, 5
# What happens by chance with less than this probability is not taken for chance; its quantile of the normal distribution.
IMPROBABLE, IMPROBABLE_Z = 1e-3, 3.0902
# Different numbers of a column, in all and between its quartiles, from which on its rounding can be told.
FEWEST_VALUES, FEWEST_STEPS = 20, 10
# Share of the smallest steps between the quartiles above which rounding alone makes ties.
CROWDED = 0.5
# Of fewer values than that, digits that the middle one is written with if nobody chose them, of those that any float has.
FEWEST_DIGITS, DIGITS_HELD = 4, 6
# Numbers of copies have a variance below their mean, or near it where they were drawn; favourite numbers one far above.
MOST_UNEQUAL = 1.6
# A column says nothing of rows that are equal if it has one value in such a share of them.
SAME_IN_MOST = 0.5
# Share of the different rows that a column without ties tells apart.
TELLS_ROWS = 0.9
# How much of the way from chance to certainty a column goes that another one all but determines.
DETERMINED = 0.8
# Rows with equal numbers may be equal in all else so many times as often as rows with numbers next to each other, of which
# so many pairs are added to those seen. Numbers that are compared so.
NEIGHBOURS_ALIKE, UNSEEN, MOST_NUMBERS = 3.0, 3.0, 4
# Columns that are asked: what so many cannot tell apart, more of them hardly do.
MOST_ASKED = 12
# Copies matter to a test where they make the variance of a mean larger by more than this share (Kish 1965).
LARGEST_INFLATION = 0.125
# Rows that are equal are of one case where a column is equal in so many of them, which has so many values, and so many of a group.
OF_ONE_CASE, FEWEST_CASES, SHARE_OF_CASES = 0.95, 5, 0.5
# Columns after which rows are compared that may all differ by then.
AT_ONCE = 8


@dataclass(frozen=True, eq=False)
class Copies:
    """Rows of which some are copies of others."""

    group: NDArray[np.intp]
    inflation: float

    @property
    def repeats(self) -> int:
        """How many rows repeat another one, the first of each not counted."""
        return len(self.group) - 1 - int(self.group.max())


def unused(sides: Iterable[tuple[Table, NDArray[np.int64], Collection[str]]]) -> Unused:
    """Return what yields the columns that a test does not use: what gives their values at some of its rows.

    Of each side: a table, the numbers of its rows that are tested, and the columns that are used.
    """
    known: dict[int, tuple[Table, NDArray[np.int64], set[str]]] = {}
    for table, numbers, names in sides:
        whole = table.whole or table
        known.setdefault(id(whole), (whole, numbers, set()))[2].update(names)

    def columns() -> Iterator[tuple[str, Callable[[NDArray[np.intp]], Values]]]:
        for whole, numbers, names in known.values():
            rows = whole.places_of(numbers)
            for column in whole.columns:
                if column.name in names or (column.kind == "number" and counts_rows(column.values[~column.missing])):
                    continue
                yield column.name, partial(_at, column.values, rows)

    return columns


def _at(values: Values, rows: NDArray[np.intp], places: NDArray[np.intp]) -> Values:
    return values[rows[places]]


def copies_of(columns: Sequence[Values], *, total: int | None = None, others: Unused | None = None) -> Copies | None:
    """Return which rows are copies of one another; None where chance explains all equal rows.

    `others` are columns that tell rows apart, too; they are read of rows alone that the first do not tell apart.
    """
    if _all_different(columns):
        return None
    hashed = _hashed(columns)
    keys = _joined(hashed).copy()
    group, sizes = _grouped(keys)
    if others is not None:
        repeated, more = np.flatnonzero(sizes[group] > 1), []
        for _, further in others():
            # Mostly few columns tell all rows apart.
            if not len(repeated):
                return None
            more.append(further)
            keys[repeated] += _hashed([further(repeated)], first=len(columns) + len(more))[0]
            place, times = _grouped(keys[repeated])
            repeated = repeated[times[place] > 1]
        # What rows have in common is judged by all columns.
        columns = [*columns, *(further(np.arange(len(keys))) for further in more)]
        hashed += _hashed(columns[len(hashed) :], first=len(hashed) + 1)
        group, sizes = _grouped(keys)
    n, pairs = len(group), float(_pairs(sizes).sum())
    if not pairs:
        return None
    if not _in_fine_column(columns, group, sizes) and not _in_place(group, len(sizes)):
        asked = _telling(hashed, group)
        # Columns of one value say nothing.
        if not asked or not (
            _in_all_columns(hashed, group, asked) or _beside_neighbours(columns, hashed, group, asked)
        ):
            return None
    return Copies(group, 2.0 * pairs * ((n if total is None else total) - 1) / (n * (n - 1)))


def copies_warning(
    columns: Sequence[Values],
    *,
    name: str | None = None,
    total: int | None = None,
    others: Unused | None = None,
    has_others: bool = False,
) -> list[str]:
    """Return the warning of a test whose rows are copies enough to matter; the table may have others that are not known."""
    found = copies_of(columns, total=total, others=others)
    case = None
    if found is None and others is not None and (found := copies_of(columns, total=total)) is not None:
        # What tells rows apart may be of one case all the same: where they are equal, so is its name.
        case = _case_of(found.group, others)
        found = None if case is None else found
    if found is None or found.inflation <= LARGEST_INFLATION:
        return []
    where, n = "" if name is None else f"{one_line(name)}: ", len(found.group)
    if case is not None:
        told = f"{where}{counted(found.repeats, 'row')} of {n:,} {'has' if found.repeats == 1 else 'have'} the values of another"
        way_out = f"keep one of each, or {option('cluster', [case])} says that they belong together"
        return [
            f"{told} with the same {case!r}: the test takes them for independent, and its p-value is then too small; {way_out}"
        ]
    said = f"{where}{counted(found.repeats, 'row')} of {n:,}"
    if total is None or n >= total:
        said += " repeat another row"
    else:
        said += f" sampled ones repeat another row, so that a row is there {1 + found.inflation:.3g} times on average"
    if has_others:
        said += " in the columns tested; where the others do not tell them apart"
    return [f"{said}: the test takes copies for independent rows, and its p-value is then too small; keep one of each"]


def _case_of(group: NDArray[np.intp], others: Unused) -> str | None:
    """Return the first column that is equal where rows are in one group, and mostly differs between groups."""
    order = np.argsort(group, kind="stable")
    places = order[np.bincount(group)[group[order]] > 1]
    together, groups = group[places][1:] == group[places][:-1], len(np.unique(group[places]))
    for name, values in others():
        found = values(places)
        equal = found[1:] == found[:-1]
        if equal[together].mean() > OF_ONE_CASE and len(np.unique(found)) > max(FEWEST_CASES, groups * SHARE_OF_CASES):
            return name
    return None


def repeated_in(tables: Sequence[Table], pooled: Arranged) -> Iterator[str]:
    """Yield the warnings about rows of two tables that are pooled."""
    names = pooled.numeric_names + pooled.category_names
    sides = slice(pooled.n_x), slice(pooled.n_x, None)
    rows = [
        (table.name, [*pooled.numeric[side].T, *pooled.codes[side].T], table.n_rows)
        for table, side in zip(tables, sides, strict=True)
    ]
    yield from repeated_rows(rows, [unused([(table, table.numbers(), names)]) for table in tables])


def repeated_rows(
    tables: Sequence[tuple[str, Sequence[Values], int]],
    others: Sequence[Unused] | None = None,
    *,
    has_others: bool = False,
) -> Iterator[str]:
    """Yield the warnings about rows of two tables: of each its name, the columns of its rows or of some, and how many are used."""
    for place, (name, columns, used) in enumerate(tables):
        own = None if others is None else others[place]
        yield from copies_warning(columns, name=name, total=used, others=own, has_others=has_others)
    names, rows, used_rows = zip(*tables, strict=True)
    # Numbers of rows are the same in both, whatever the rows are.
    told = [place for place, both in enumerate(zip(*rows, strict=True)) if not all(map(_numbers_rows, both))]
    some = [[side[place] for place in told] if told else side for side in rows]
    but = ", but for numbers of rows," if 0 < len(told) < len(rows[0]) else ""
    yield from shared_rows([one_line(name) for name in names], some, sum(used_rows), but)


def _numbers_rows(values: Values) -> bool:
    return values.dtype.kind == "f" and counts_rows(np.asarray(values, dtype=np.float64))


def same_in_pairs(pooled: Arranged, units: NDArray[np.intp]) -> Iterator[str]:
    """Yield a warning where two tables have the same rows in every pair: `units`, of X, then of Y, are their codes."""
    n = pooled.n_x
    columns = np.column_stack([pooled.numeric, pooled.codes, units]).T
    x, y = (side[:, np.lexsort(side)] for side in (columns[:, :n], columns[:, n:]))
    if n >= FEWEST_ROWS and np.array_equal(x, y) and (x[:-1] != x[:-1, :1]).any():
        yield "the files have the same rows in every pair: they are one and the same; compare different ones"


def is_one_twice(pooled: Arranged) -> bool:
    """Say whether two tables are the same rows in the same order, enough of them not to be so by chance."""
    n = pooled.n_x
    return FEWEST_ROWS <= n == pooled.n_y and all((one[:n] == one[n:]).all() for one in (pooled.numeric, pooled.codes))


def shared_rows(names: Sequence[str], rows: Sequence[Sequence[Values]], used: int, but: str = "") -> Iterator[str]:
    """Yield a warning where two tables, so many rows used in all, have rows in common that are not equal by chance."""
    keys = [_joined(_hashed(columns)) for columns in rows]
    repeated = [_share_among(np.sort(other), own) for own, other in (keys, keys[::-1])]
    if len(keys[0]) >= FEWEST_ROWS and np.array_equal(keys[0], keys[1]) and (keys[0] != keys[0][0]).any():
        same = f"the files have the same rows{but} in the same order"
        if _laid_out(keys[0]):
            yield f"{same}, by a design if they are not one and the same: they say nothing of a difference"
        else:
            yield f"{same}: they are one and the same, and the p-value is not valid; compare different ones"
    elif max(repeated) > LARGEST_SHARE and _share_more_than_chance(*keys):
        own = 0 if repeated[0] >= repeated[1] else 1
        some = [f"{len(each):,}" for each in keys]
        found = f"{in_percent(repeated[own])} of those of {names[own]} are also in {names[1 - own]}"
        if sum(map(len, keys)) < used:
            found = (
                f"{in_percent(repeated[own])} of {some[own]} sampled rows of {names[own]} are also among "
                f"{some[1 - own]} of {names[1 - own]}"
            )
        yield (
            f"the files share rows: {found}; the samples are not independent, and the p-value is not valid; "
            f"take the shared rows out of one of them, or of cases that are in both, {option('paired', ['NAME'])} compares within each"
        )


def same_first_rows(tables: Sequence[Table]) -> Iterator[str]:
    """Yield a warning where the first rows of two tables are the same in the same order, though samples of all hardly meet."""
    n = min(one.n_rows for one in tables)
    both = [(x, y) for x, y in zip(*(one.columns for one in tables), strict=True) if not _numbers_rows(x.values)]
    texts = [[np.asarray(one.levels)[one.values] if one.is_category else one.values for one in pair] for pair in both]
    if n < FEWEST_ROWS or not all(np.array_equal(x[:n], y[:n], equal_nan=x.dtype.kind == "f") for x, y in texts):
        return
    keys = _joined(_hashed([x.values[:n] for x, _ in both])) if both else np.zeros(n, dtype=np.uint64)
    if (keys != keys[0]).any() and not _laid_out(keys):
        yield (
            f"the first {n:,} rows of the files are the same in the same order: if all are, the files are one and the same, "
            "and the p-value is not valid; compare different ones"
        )


def _laid_out(keys: Keys) -> bool:
    """Say whether the different rows, fewer than half of all, stand in blocks or come round in turn, as in a design."""
    different = len(np.unique(keys))
    in_blocks = np.count_nonzero(np.diff(keys)) + 1 == different
    return 2 * different <= len(keys) and (in_blocks or bool((keys[different:] == keys[:-different]).all()))


def _share_more_than_chance(in_x: Keys, in_y: Keys) -> bool:
    """Say whether rows of one table equal rows of the other far more often than rows of the same table do.

    Rows that chance makes equal, because they hold few or coarsely rounded values, are so within the tables as well.
    """
    n_x, n_y = len(in_x), len(in_y)
    if min(n_x, n_y) < FEWEST_ROWS:
        return False
    _, position = np.unique(np.concatenate([in_x, in_y]), return_inverse=True)
    counts_x, counts_y = (np.bincount(some, minlength=int(position.max()) + 1) for some in np.split(position, [n_x]))
    # One more, since none seen does not mean that there can be none.
    share = (_pairs(counts_x).sum() + _pairs(counts_y).sum() + 1) / (n_x * (n_x - 1) / 2 + n_y * (n_y - 1) / 2)
    return bool((counts_x * counts_y).sum() > _FAR_MORE * share * n_x * n_y)


def in_percent(share: float) -> str:
    """Return a share in per cent: ``"12 %"``."""
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else "less than 1 %"


def _share_among(ascending: Keys, keys: Keys) -> float:
    """Return the share of keys that are among others; np.isin imports numpy.ma, 13 ms of a small test."""
    place = np.minimum(np.searchsorted(ascending, keys), len(ascending) - 1)
    return float(np.mean(ascending[place] == keys))


def _hashed(columns: Sequence[Values], first: int = 1) -> list[Keys]:
    """Return for each column numbers that are equal for equal values, and whose sums over columns tell rows apart."""
    hashed = []
    for place, column in enumerate(columns, start=first):
        # + 0.0 makes -0.0 the same as 0.0, which compare equal; there are many kinds of NaN.
        number = np.where(np.isnan(column), np.nan, column + 0.0) if _is_number(column) else column.astype(np.int64)
        # Groups are numbered by these: with others, a seed would draw other parts of tables with copied rows.
        keys = (number.view(np.uint64) + np.uint64(place * int(_ODD) % 2**64)) * _ODD
        for _ in range(2):
            keys = (keys ^ (keys >> _SHIFT)) * _MIX
        hashed.append(keys ^ (keys >> _SHIFT))
    return hashed


def _all_different(columns: Sequence[Values]) -> bool:
    """Say whether weighted sums of the columns tell all rows apart: equal rows have equal ones, or not a number."""
    sums, last = np.zeros(len(columns[0])), len(columns) + 1
    with np.errstate(over="ignore", invalid="ignore"):
        for place, column in enumerate(columns, start=2):
            sums += column * (1.0 / math.sqrt(place))
            # Mostly a few columns do.
            if place % AT_ONCE == 0 or place == last:
                ordered = np.sort(sums)
                if (ordered[1:] > ordered[:-1]).all():
                    return True
    return False


def _joined(hashed: Sequence[Keys]) -> Keys:
    """Return the sum over columns, modulo 2^64: the same for equal rows, and hardly ever for others."""
    return np.asarray(sum(hashed[1:], hashed[0]))


def _grouped(keys: Keys) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the group of each row, equal keys together, and the sizes of the groups."""
    _, group, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    return group.astype(np.intp), sizes.astype(np.intp)


def _pairs(sizes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the number of pairs in groups of so many rows."""
    return 0.5 * sizes * (sizes - 1.0)


def _in_fine_column(columns: Sequence[Values], group: NDArray[np.intp], sizes: NDArray[np.intp]) -> bool:
    """Say whether rows are equal although a column tells nearly all rows apart and has hardly a tie by chance."""
    repeated = sizes[group] > 1
    # Where the others are mostly one value, as amounts are 0, it is one column, and the most frequent row, all 0, counts once.
    first = np.unique(group[repeated], return_index=True)[1]
    several = sum(_most_frequent(column[repeated][first]) < SAME_IN_MOST for column in columns) > 1
    once = np.sort(sizes)[: len(sizes) - (len(columns) > 1)]
    if not several and len(once) and np.var(once) > MOST_UNEQUAL * (np.mean(once) - 1.0):
        return False
    for numbers in [np.asarray(column, dtype=np.float64) for column in columns if _is_number(column)]:
        # Counts keep np.unique from importing numpy.ma, 13 ms of a small test.
        different, _ = np.unique(numbers, return_counts=True)
        expected = _expected_ties(numbers, different) if len(different) >= TELLS_ROWS * len(sizes) else None
        # One value that stands for many rows, such as 0, counts once.
        if expected is not None and _improbable(len(np.unique(numbers[repeated])), expected):
            return True
    return False


def _in_place(group: NDArray[np.intp], different: int) -> bool:
    """Say whether nearly all rows stand in stretches of as many equal ones, some of which return: no order makes them so."""
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    lengths = np.diff(np.r_[starts, len(group)])
    usual = int(np.bincount(lengths).argmax())
    if usual < 2 or np.count_nonzero(lengths == usual) < max(FEWEST_STRETCHES, IN_STRETCHES * len(lengths)):
        return False
    # Two stretches of equal rows may meet.
    regular = lengths[lengths % usual == 0].sum() >= IN_STRETCHES * len(group)
    return bool(regular and len(lengths) - different >= FEWEST_RETURNS)


def _most_frequent(column: Values) -> float:
    """Return the share of the values that is the most frequent one."""
    return float(np.unique(column, return_counts=True)[1].max()) / len(column)


def _expected_ties(values: NDArray[np.float64], different: NDArray[np.float64]) -> float | None:
    """Return how many numbers of a column have ties by chance; None where they are close for their rounding.

    The rounding is the smallest step between two of them. Between the quartiles, numbers rounded coarsely fill most of
    the possible places, and then meet by chance: of places of which a share f is filled at random, f + (1 - f) log(1 - f)
    are so more than once.
    """
    different = different[np.isfinite(different)]
    if len(different) < 2:
        return None
    few = len(different) < FEWEST_VALUES
    low, high = (different[0], different[-1]) if few else np.nanquantile(values, [0.25, 0.75])
    with np.errstate(over="ignore", invalid="ignore"):
        places = (high - low) / np.diff(different).min() + 1.0
    inside = np.count_nonzero((different >= low) & (different <= high))
    if inside >= CROWDED * places:
        return None
    if few or inside <= FEWEST_STEPS:
        # Of chosen levels there are ties whatever lies between them.
        return 0.0 if sorted(map(_digits, different))[len(different) // 2] >= FEWEST_DIGITS else None
    filled = inside / places
    # As many are outside the quartiles.
    return 2.0 * inside * (1.0 + (1.0 / filled - 1.0) * math.log1p(-filled)) if filled else 0.0


def _digits(value: float) -> int:
    """Return with how many digits a number is written: 3 for 0.0125."""
    return len(f"{value:.{DIGITS_HELD - 1}e}".partition("e")[0].lstrip("-").replace(".", "").rstrip("0"))


def _in_all_columns(hashed: Sequence[Keys], group: NDArray[np.intp], asked: Mapping[int, float]) -> bool:
    """Say whether rows that are equal in all columns but one are equal in that one more often than chance makes them."""
    rows = _joined([hashed[place] for place in asked])
    return len(asked) > 1 and all(_too_equal(rows - hashed[place], group, chance) for place, chance in asked.items())


def _beside_neighbours(
    columns: Sequence[Values], hashed: Sequence[Keys], group: NDArray[np.intp], asked: Mapping[int, float]
) -> bool:
    """Say whether rows equal in a number are far oftener equal in all else than rows with numbers next to each other.

    Where two numbers rise and fall together, neighbours are one step further in both.
    """
    ranks = {place: np.unique(columns[place], return_inverse=True)[1] for place in asked if _is_number(columns[place])}
    ranks = dict([(place, rank) for place, rank in ranks.items() if rank.max() >= FEWEST_VALUES - 1][:MOST_NUMBERS])
    if len(ranks) < 2:
        return False
    steps = dict(zip(ranks, mixed(np.arange(len(ranks), dtype=np.uint64))[:, None], strict=True))
    keys = _joined(hashed)
    for place, rank in ranks.items():
        keys += rank.astype(np.uint64) * steps[place] - hashed[place]
    cells, counts = np.unique(keys, return_counts=True)
    pairs = _pairs(np.bincount(group))
    # Not by `median`, which loads masked arrays.
    some = np.sort(pairs[pairs > 0])
    usual = float(some[(len(some) - 1) // 2] + some[len(some) // 2]) / 2
    # No row counts for more than the usual one.
    found = float(np.minimum(pairs, usual).sum()) / usual
    for place, rank in ranks.items():
        sideways = [
            np.zeros(1, dtype=np.uint64),
            *(step for other in ranks if other != place for step in (steps[other], -steps[other])),
        ]
        alike = max(_pairs_at(cells, counts, steps[place] + step) for step in sideways)
        sizes = np.bincount(rank)
        # Some are added: none seen does not mean that there can be none.
        share = (alike + UNSEEN) / float(sizes[1:] @ sizes[:-1])
        if not _improbable(found, NEIGHBOURS_ALIKE * share * float(_pairs(sizes).sum()) / usual):
            return False
    return True


def _is_number(column: Values) -> bool:
    return column.dtype.kind == "f"


def _pairs_at(cells: Keys, counts: NDArray[np.intp], step: Keys) -> float:
    """Return how many pairs of rows are in cells that lie so far apart, of sorted cells with so many rows."""
    place = np.minimum(np.searchsorted(cells, cells + step), len(cells) - 1)
    return float(counts @ (counts[place] * (cells[place] == cells + step)))


def _improbable(count: float, expected: float) -> bool:
    """Say whether so many are more than chance gives, by the quantile of the Poisson distribution (Cornish and Fisher)."""
    # One value that stands for many rows, such as 0, is no copy.
    mean = max(1.0, expected)
    return count > mean + IMPROBABLE_Z * math.sqrt(mean) + (IMPROBABLE_Z**2 - 1.0) / 6.0


def _telling(hashed: Sequence[Keys], group: NDArray[np.intp]) -> dict[int, float]:
    """Return the columns that no other one determines, with the chance that two rows are equal in each, finest first.

    Copies are equal in all columns. So what a column determines is seen where it is equal in rows that are not.
    """
    whole = _pairs(np.array([len(group)])).sum()
    places = [_grouped(column) for column in hashed]
    chances = np.array([_pairs(sizes).sum() / whole for _, sizes in places])
    kept: dict[int, float] = {}
    for place in np.argsort(chances, kind="stable"):
        chance = float(chances[place])
        if chance == 1.0 or len(kept) == MOST_ASKED:
            break
        settled = chance + DETERMINED * (1.0 - chance)
        if all(_agreement(hashed[other], places[place][0], unlike=group)[0] <= settled for other in kept):
            kept[int(place)] = chance
    return kept


def _too_equal(others: Keys, group: NDArray[np.intp], chance: float) -> bool:
    """Say whether rows with equal keys are in the same group more often than dependence on the keys explains."""
    share, count = _agreement(others, group)
    allowed = 0.5 * (1.0 + chance)
    apart = share * math.log(share / allowed) if share > allowed else 0.0
    if allowed < share < 1.0:
        apart += (1.0 - share) * math.log((1.0 - share) / (1.0 - allowed))
    return math.exp(-count * apart) < IMPROBABLE


def _agreement(keys: Keys, group: NDArray[np.intp], *, unlike: NDArray[np.intp] | None = None) -> tuple[float, int]:
    """Return the share of pairs with equal keys that are in one group, the mean over the keys that rows share; and how many.

    Of keys that rows of different groups `unlike` share, where these are given; 1 if there are none.
    """
    place, sizes = _grouped(keys)
    shared = sizes > 1
    if unlike is not None:
        first = np.empty(len(sizes), dtype=np.intp)
        first[place] = unlike
        shared &= np.bincount(place, weights=unlike != first[place]) > 0
    if not shared.any():
        return 1.0, 0
    within, counts = np.unique(place * np.intp(group.max() + 1) + group, return_counts=True)
    equal = np.bincount(within // np.intp(group.max() + 1), weights=_pairs(counts), minlength=len(sizes))
    return float(np.mean(equal[shared] / _pairs(sizes)[shared])), int(np.count_nonzero(shared))
