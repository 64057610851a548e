"""Classical coefficients of dependence, to stand beside a kernel test: Pearson, Spearman, Kendall.

They see straight lines (Pearson) and monotone relations (Spearman, Kendall); where a kernel test finds a dependence and
they are near 0, it is of another kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.scaling import standardize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Entries of one block of pairs: what a pair needs then stays in the cache.
BLOCK = 2**17
# Runs of this many entries are compared one by one before runs are merged.
SHORT_RUN = 8


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The coefficients of one pair of columns, each in [-1, 1]; None where a column is constant or has one row.

    Parameters
    ----------
    pearson : float or None
        Product-moment correlation.
    spearman : float or None
        Product-moment correlation of the ranks, tied values at their average rank.
    kendall : float or None
        Tau-b: concordant minus discordant pairs of rows, corrected for ties.
    """

    pearson: float | None
    spearman: float | None
    kendall: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The order of the values of several columns.

    Parameters
    ----------
    codes : ndarray of int64, shape (p, n)
        How many different values of the column are smaller.
    average : ndarray, shape (p, n)
        Average rank, counted from 1.
    tied : ndarray of int64, shape (p,)
        Pairs of rows with equal values.
    constant : ndarray of bool, shape (p,)
        Whether the column has fewer than two different values.
    """

    codes: NDArray[np.int64]
    average: Array
    tied: NDArray[np.int64]
    constant: NDArray[np.bool_]


def coefficients_of_pairs(columns: Array, pairs: Sequence[tuple[int, int]]) -> list[Coefficients]:
    """Return the coefficients of pairs of columns. Each column is scaled and ranked once.

    Large offsets and values up to 1e300 lose no digits: see `kerntest.data.scaling.standardize`.

    Parameters
    ----------
    columns : ndarray, shape (n, p)
        Finite values.
    pairs : sequence of (int, int)
        Positions of columns.

    Returns
    -------
    list of Coefficients
        In the order of `pairs`.

    Notes
    -----
    Cost: O(p n log n) and O(n log n) for each pair; about 50 n p bytes.
    """
    n, _ = columns.shape
    if n < 2:
        return [Coefficients(None, None, None) for _ in pairs]
    rows = np.ascontiguousarray(columns.T, dtype=np.float64)
    places = np.asarray(pairs, dtype=np.intp).reshape(-1, 2)
    ranks = rank_columns(rows)
    found = np.stack([_correlations(rows, places), _correlations(ranks.average, places), _kendall(ranks, places)])
    undefined = ranks.constant[places[:, 0]] | ranks.constant[places[:, 1]]
    return [
        Coefficients(None, None, None) if without else Coefficients(*values)
        for without, values in zip(undefined, found.T.tolist(), strict=True)
    ]


def rank_columns(columns: Array) -> Ranks:
    """Return the order of the values of each column.

    Parameters
    ----------
    columns : ndarray, shape (p, n)
        One column in each row of the array.

    Notes
    -----
    Cost: O(p n log n).
    """
    p, n = columns.shape
    ranks = Ranks(np.empty((p, n), np.int64), np.empty((p, n)), np.empty(p, np.int64), np.empty(p, np.bool_))
    for place, column in enumerate(columns):
        different, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks.codes[place] = codes
        ranks.average[place] = (np.cumsum(counts) - (counts - 1) / 2)[codes]
        ranks.tied[place] = (counts * (counts - 1) // 2).sum()
        ranks.constant[place] = len(different) < 2
    return ranks


def _correlations(columns: Array, pairs: NDArray[np.intp]) -> Array:
    """Return Pearson's correlation of pairs of columns (the rows of the array); 0 where one is constant."""
    scaled = standardize(columns.T)[0].T
    found = np.empty(len(pairs))
    for block in _blocks(pairs, columns.shape[1]):
        first, second = pairs[block].T
        found[block] = np.vecdot(scaled[first], scaled[second])
    found /= columns.shape[1]
    return np.clip(found, -1.0, 1.0, out=found)


def _kendall(ranks: Ranks, pairs: NDArray[np.intp]) -> Array:
    """Return tau-b of pairs of columns; 0 where one is constant.

    With P concordant and Q discordant pairs of rows, T pairs in all, and T_x, T_y of them tied in x and in y (Kendall
    1945):

        tau_b = (P - Q) / sqrt((T - T_x) (T - T_y))

    A pair is discordant where it is out of order in y after sorting by x, and merging sorted runs counts such pairs as
    it goes (Knight 1966).
    """
    n = ranks.codes.shape[1]
    total = n * (n - 1) // 2
    bits = n.bit_length()
    found = np.empty(len(pairs))
    for block in _blocks(pairs, n):
        first, second = pairs[block].T
        # One key orders the rows by x and, where x is tied, by y.
        keys = ranks.codes[first] << bits | ranks.codes[second]
        keys.sort(axis=1)
        discordant = _inversions(keys & ((1 << bits) - 1))
        tied_first, tied_second = ranks.tied[first], ranks.tied[second]
        untied = total - tied_first - tied_second + _tied_pairs(keys)
        scale = (total - tied_first).astype(np.float64) * (total - tied_second)
        found[block] = (untied - 2 * discordant) / np.sqrt(np.where(scale > 0, scale, 1.0))
    return np.clip(found, -1.0, 1.0, out=found)


def _blocks(pairs: NDArray[np.intp], n: int) -> Iterator[slice]:
    step = max(1, BLOCK // n)
    for start in range(0, len(pairs), step):
        yield slice(start, start + step)


def _tied_pairs(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many pairs of entries of each ascending row are equal."""
    places = np.arange(keys.shape[1])
    # The k-th entry of a run of equal ones makes k pairs with those before it.
    starts = np.where(np.diff(keys, axis=1, prepend=-1) > 0, places, 0)
    tied: NDArray[np.int64] = (places - np.maximum.accumulate(starts, axis=1)).sum(axis=1)
    return tied


def _inversions(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many pairs of entries of each row stand in descending order.

    Parameters
    ----------
    rows : ndarray of int64, shape (q, n)
        Entries in [0, n).

    Notes
    -----
    Cost: O(q n log n). Runs are merged in pairs, all rows and runs of a length at once.
    """
    q, n = rows.shape
    width = SHORT_RUN << max(0, (n - 1) // SHORT_RUN).bit_length()
    padded = np.full((q, width), n)
    padded[:, :n] = rows
    runs = padded.reshape(q, -1, SHORT_RUN)
    found = np.zeros(q, dtype=np.int64)
    for lag in range(1, SHORT_RUN):
        found += np.count_nonzero(runs[..., :-lag] > runs[..., lag:], axis=(1, 2))
    runs.sort(axis=2)
    length = SHORT_RUN
    while length < width:
        # The last bit of an entry tells the right run from the left: equal entries keep their order.
        halves = runs.reshape(-1, 2, length) << 1
        halves[:, 1] |= 1
        merged = halves.reshape(-1, 2 * length)
        merged.sort(axis=1, kind="stable")  # merges two ascending runs in linear time
        # An entry of the right run at place k, with r others before it, comes after k - r of the left run.
        in_order = (merged & 1) @ np.arange(2 * length) - length * (length - 1) // 2
        found += (length * length - in_order).reshape(q, -1).sum(axis=1)
        runs = merged >> 1
        length *= 2
    return found
