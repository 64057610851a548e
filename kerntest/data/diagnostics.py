"""What in the data would make a test mislead: columns that count or follow time, uneven tables, rows that are there twice.

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

Columns that another column all but determines, a code beside its name, say nothing new and are not asked.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.facts import FEWEST_ROWS, TableFacts, counts_rows, mixed
from kerntest.dataclass import dataclass
from kerntest.errors import counted, listed, one_line, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.columns import Arranged
    from kerntest.data.facts import NumberFacts
    from kerntest.data.table import Column, Kind, Table

    Keys = NDArray[np.uint64]
    # Numbers, NaN where they are missing; or the codes of categories.
    Values = NDArray[np.float64] | NDArray[np.int64]

LARGEST_RATIO = 20
LARGEST_SHARE = 0.1
SIGNIFICANT = 0.01
_FAR_MORE = 5
# Of splitmix64 (Steele, Lea and Flood 2014).
_ODD, _MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(29)
_COUNTS = "counts the rows or identifies them: its whole numbers are all different and run in one direction"
_COUNTS_IN_EACH = _COUNTS.replace("its", "in each table its")


def misleading(tables: Sequence[Table], pooled: Arranged) -> list[str]:
    """Return what a reader must know before believing a two-sample test of these tables, whose complete rows are pooled."""
    sides = slice(pooled.n_x), slice(pooled.n_x, None)
    rows = [[*pooled.numeric[side].T, *pooled.codes[side].T] for side in sides]
    return list(two_sample_warnings([TableFacts.of(table) for table in tables], pooled.numeric_names, rows))


def two_sample_warnings(
    facts: Sequence[TableFacts], numeric_names: Sequence[str], rows: Sequence[Sequence[Values]]
) -> Iterator[str]:
    """Yield the same from facts about two tables, and from the columns of their rows or of a sample of them."""
    (x, y), names = facts, [one_line(one.name) for one in facts]
    dropped = [one.rows - one.used for one in facts]
    p_value = proportions_p_value(dropped[0], x.rows, dropped[1], y.rows)
    if p_value < SIGNIFICANT:
        shares = [_percent(count / one.rows) for count, one in zip(dropped, facts, strict=True)]
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
    for one, columns in zip(facts, rows, strict=True):
        yield from copies_warning(columns, name=one.name, total=one.used)
    keys = [_joined(_hashed(columns)) for columns in rows]
    repeated = [_share_among(np.sort(other), own) for own, other in (keys, keys[::-1])]
    if max(repeated) > LARGEST_SHARE and _share_more_than_chance(*keys):
        own = 0 if repeated[0] >= repeated[1] else 1
        some = [f"{len(each):,}" for each in keys]
        found = f"{_percent(repeated[own])} of those of {names[own]} are also in {names[1 - own]}"
        if sum(map(len, keys)) < x.used + y.used:
            found = (
                f"{_percent(repeated[own])} of {some[own]} sampled rows of {names[own]} are also among "
                f"{some[1 - own]} of {names[1 - own]}"
            )
        yield (
            f"the files share rows: {found}; the samples are not independent, and the p-value is not valid; "
            "take the shared rows out of one of them"
        )
    elif len(keys[0]) >= FEWEST_ROWS and np.array_equal(keys[0], keys[1]) and (keys[0] != keys[0][0]).any():
        yield "the files have the same rows in the same order: of one file twice nothing can be tested; compare different ones"


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


def _percent(share: float) -> str:
    """Return a share in per cent: ``"12 %"``."""
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else "less than 1 %"


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


def copies_of(columns: Sequence[Values], *, total: int | None = None) -> Copies | None:
    """Return which rows are copies of one another; None where chance explains all equal rows."""
    if _all_different(columns):
        return None
    hashed = _hashed(columns)
    group, sizes = _grouped(_joined(hashed))
    n, pairs = len(group), float(_pairs(sizes).sum())
    if not pairs:
        return None
    if not _in_fine_column(columns, group, sizes):
        asked = _telling(hashed, group)
        # Columns of one value say nothing.
        if not asked or not (
            _in_all_columns(hashed, group, asked) or _beside_neighbours(columns, hashed, group, asked)
        ):
            return None
    return Copies(group, 2.0 * pairs * ((n if total is None else total) - 1) / (n * (n - 1)))


def copies_warning(columns: Sequence[Values], *, name: str | None = None, total: int | None = None) -> list[str]:
    """Return the warning of a test whose rows are copies enough to matter."""
    found = copies_of(columns, total=total)
    if found is None or found.inflation <= LARGEST_INFLATION:
        return []
    where, n = "" if name is None else f"{one_line(name)}: ", len(found.group)
    said = f"{where}{counted(found.repeats, 'row')} of {n:,}"
    if total is None or n >= total:
        said += " repeat another row"
    else:
        said += f" sampled ones repeat another row, so that a row is there {1 + found.inflation:.3g} times on average"
    return [f"{said}: the test takes copies for independent rows, and its p-value is then too small; keep one of each"]


def _share_among(ascending: Keys, keys: Keys) -> float:
    """Return the share of keys that are among others; np.isin imports numpy.ma, 13 ms of a small test."""
    place = np.minimum(np.searchsorted(ascending, keys), len(ascending) - 1)
    return float(np.mean(ascending[place] == keys))


def _hashed(columns: Sequence[Values]) -> list[Keys]:
    """Return for each column numbers that are equal for equal values, and whose sums over columns tell rows apart."""
    hashed = []
    for place, column in enumerate(columns, start=1):
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
    if len(columns) == 1 and np.var(sizes) > MOST_UNEQUAL * (np.mean(sizes) - 1.0):
        return False
    for numbers in [np.asarray(column, dtype=np.float64) for column in columns if _is_number(column)]:
        # Counts keep np.unique from importing numpy.ma, 13 ms of a small test.
        different, _ = np.unique(numbers, return_counts=True)
        expected = _expected_ties(numbers, different) if len(different) >= TELLS_ROWS * len(sizes) else None
        # One value that stands for many rows, such as 0, counts once.
        if expected is not None and _improbable(len(np.unique(numbers[repeated])), expected):
            return True
    return False


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
    usual = float(np.median(pairs[pairs > 0]))
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
