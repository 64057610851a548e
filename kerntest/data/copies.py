"""Which equal rows are copies of one another, and not equal by chance: one rule for every test and every learner.

Rows are equal by chance where their columns have few values, or values that go together. Copies are rows that are equal
in columns that nothing would make equal:

* A column of numbers that are far apart for their rounding has hardly a tie by chance. Where its ties are ties of whole
  rows, and more of them than chance makes (Poisson, below 1e-3), these rows are copies.
* Of columns of few values, how often rows meet is asked of the columns themselves. Take rows that are equal in all columns
  but one. However strongly the columns depend on one another, some of these differ in that one: by the frequencies of its
  values two rows differ in it with probability 1 - q, and dependence may halve that. Copies never differ. So there are
  copies if for each column such rows are equal more often than (1 + q) / 2 allows, with a probability below 1e-3. Every
  set of such rows counts once, by the share of its pairs that are equal in everything, so that one frequent pattern (all
  zero, all "agree") proves nothing; the bound on the tail is that of Hoeffding (1963) for means in [0, 1].

Columns that another column all but determines, a code beside its name, say nothing new and are not asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.wording import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Keys = NDArray[np.uint64]
    # Numbers, NaN where they are missing; or the codes of categories.
    Values = NDArray[np.float64] | NDArray[np.int64]

# What happens by chance with less than this probability is not taken for chance; its quantile of the normal distribution.
IMPROBABLE, IMPROBABLE_Z = 1e-3, 3.0902
# Different numbers of a column, in all and between its quartiles, from which on its rounding can be told.
FEWEST_VALUES, FEWEST_STEPS = 20, 10
# Share of the smallest steps between the quartiles above which rounding alone makes ties.
CROWDED = 0.5
# Share of the different rows that a column without ties tells apart.
TELLS_ROWS = 0.9
# How much of the way from chance to certainty a column goes that another one all but determines.
DETERMINED = 0.8
# Columns that are asked: what so many cannot tell apart, more of them hardly do.
MOST_ASKED = 12
# Copies matter to a test where they make the variance of a mean larger by more than this share (Kish 1965).
LARGEST_INFLATION = 0.125
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """Rows of which some are copies of others.

    Parameters
    ----------
    group : ndarray of int, shape (n,)
        Equal for copies of one row, and only for them; from 0 without gaps.
    inflation : float
        By how much copies make the variance of a mean larger: 1 where every row is there twice.
    """

    group: NDArray[np.intp]
    inflation: float

    @property
    def repeats(self) -> int:
        """How many rows repeat another one, the first of each not counted."""
        return len(self.group) - 1 - int(self.group.max())


def copies_of(columns: Sequence[Values], *, total: int | None = None) -> Copies | None:
    """Return which rows are copies of one another; None where chance explains all equal rows.

    Parameters
    ----------
    columns : sequence of ndarray, shape (n,)
        float64 of numbers (missing ones are equal), or int64 codes of categories; at least one.
    total : int, optional
        Of how many rows these are a random sample.

    Notes
    -----
    Cost: O(n log n) for each column; where rows are equal, some ten times that. Equal rows are found by a 64-bit hash of
    their values: among a million rows, two different ones share it with a probability below 1e-7.
    """
    hashed = _hashed(columns)
    group, sizes = _grouped(_joined(hashed))
    n, pairs = len(group), float(_pairs(sizes).sum())
    if not pairs or not (_in_fine_column(columns, group, sizes) or _in_coarse_columns(hashed, group)):
        return None
    return Copies(group, 2.0 * pairs * ((n if total is None else total) - 1) / (n * (n - 1)))


def copies_warning(columns: Sequence[Values], *, name: str | None = None, total: int | None = None) -> list[str]:
    """Return the warning of a test whose rows are copies enough to matter.

    Parameters
    ----------
    columns, total
        As in `copies_of`.
    name : str, optional
        Of the table, where there are two.
    """
    found = copies_of(columns, total=total)
    if found is None or found.inflation <= LARGEST_INFLATION:
        return []
    n = len(found.group)
    sampled = total is not None and n < total
    return [
        f"{'' if name is None else f'{one_line(name)}: '}{counted(found.repeats, 'row')} of {n:,}"
        f"{' sampled ones' if sampled else ''} repeat another row"
        + (f", so that a row is there {1 + found.inflation:.3g} times on average" if sampled else "")
        + ": the test takes copies for independent rows, and its p-value is then too small; keep one of each"
    ]


def row_keys(columns: Sequence[Values]) -> Keys:
    """Return a number for each row that is equal for equal rows, and hardly ever for others."""
    return _joined(_hashed(columns))


def _hashed(columns: Sequence[Values]) -> list[Keys]:
    """Return for each column numbers that are equal for equal values, and whose sums over columns tell rows apart."""
    hashed = []
    for place, column in enumerate(columns, start=1):
        if column.dtype.kind == "f":
            # + 0.0 makes -0.0 the same as 0.0, which compare equal; there are many kinds of NaN.
            bits = np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)
        else:
            bits = column.astype(np.uint64)
        # The mixing step of splitmix64 (Steele, Lea and Flood 2014), modulo 2^64, from another start for each column.
        keys = (bits + np.uint64(place * int(_ODD) % 2**64)) * _ODD
        for _ in range(2):
            keys = (keys ^ (keys >> _SHIFT)) * _MIX
        hashed.append(keys ^ (keys >> _SHIFT))
    return hashed


def _joined(hashed: Sequence[Keys]) -> Keys:
    """Return the sum over columns, modulo 2^64."""
    total = np.zeros_like(hashed[0])
    for keys in hashed:
        total += keys
    return total


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
    for column in columns:
        if column.dtype.kind != "f":
            continue
        numbers = np.asarray(column, dtype=np.float64)
        different = np.unique(numbers)
        expected = _expected_ties(numbers, different)
        if expected is None or len(different) < TELLS_ROWS * len(sizes):
            continue
        # One value that stands for many rows, such as 0, counts once. The quantile of the Poisson distribution is that of
        # Cornish and Fisher.
        ties = len(np.unique(numbers[repeated]))
        if ties > expected + IMPROBABLE_Z * math.sqrt(expected) + (IMPROBABLE_Z**2 - 1.0) / 6.0:
            return True
    return False


def _expected_ties(values: NDArray[np.float64], different: NDArray[np.float64]) -> float | None:
    """Return how many numbers of a column have ties by chance, at least 1; None where they are close for their rounding.

    The rounding is the smallest step between two of them. Between the quartiles, numbers rounded coarsely fill most of
    the possible places, and then meet by chance: of places of which a share f is filled at random, f + (1 - f) log(1 - f)
    are so more than once.
    """
    if len(different) < FEWEST_VALUES:
        return None
    low, high = np.nanquantile(values, [0.25, 0.75])
    smallest = float(np.nanmin(np.diff(different)))
    places = (high - low) / smallest + 1.0 if smallest > 0 else math.inf
    inside = np.count_nonzero((different >= low) & (different <= high))
    if inside <= FEWEST_STEPS or inside >= CROWDED * places:
        return None
    filled = inside / places
    # As many are outside the quartiles.
    return max(1.0, 2.0 * inside * (1.0 + (1.0 / filled - 1.0) * math.log1p(-filled))) if filled else 1.0


def _in_coarse_columns(hashed: Sequence[Keys], group: NDArray[np.intp]) -> bool:
    """Say whether rows that are equal in all columns but one are equal in that one more often than chance makes them."""
    asked = _telling(hashed, group)
    if len(asked) < 2:
        return False
    rows = _joined([column for column, _ in asked])
    return all(_too_equal(rows - column, group, chance) for column, chance in asked)


def _telling(hashed: Sequence[Keys], group: NDArray[np.intp]) -> list[tuple[Keys, float]]:
    """Return the columns that no other one determines, with the chance that two rows are equal in each, finest first.

    Copies are equal in all columns. So what a column determines is seen where it is equal in rows that are not.
    """
    whole = _pairs(np.array([len(group)])).sum()
    places = [_grouped(column) for column in hashed]
    chances = np.array([_pairs(sizes).sum() / whole for _, sizes in places])
    kept: list[tuple[Keys, float]] = []
    for place in np.argsort(chances, kind="stable"):
        column, chance = places[place][0], float(chances[place])
        if chance == 1.0 or len(kept) == MOST_ASKED:
            break
        settled = chance + DETERMINED * (1.0 - chance)
        if all(_agreement(other, column, unlike=group)[0] <= settled for other, _ in kept):
            kept.append((hashed[place], chance))
    return kept


def _too_equal(others: Keys, group: NDArray[np.intp], chance: float) -> bool:
    """Say whether rows with equal keys are in the same group more often than dependence on the keys explains."""
    share, count = _agreement(others, group)
    allowed = 0.5 * (1.0 + chance)
    if share <= allowed:
        return False
    apart = share * math.log(share / allowed)
    if share < 1.0:
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
