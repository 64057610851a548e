"""Pearson's, Spearman's and Kendall's correlations of many pairs of columns.

By numpy alone: pandas and scipy.stats would take longer to load than a screen of a small table takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.columns import standardize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Entries of one block of pairs whose correlations are computed: what a pair needs then stays in the cache.
BLOCK = 2**17


def correlations(columns: Mapping[int, NDArray[Any]], pairs: Sequence[tuple[int, int]], n: int) -> Array:
    """Return Pearson's r, Spearman's rho and Kendall's tau-b of pairs of columns of n rows, shape (3, pairs).

    NaN where a column is not there or holds one value. Large offsets and values up to 1e300 lose no digits.
    Cost: O(p n log n) for p columns and O(n log n) for each pair.
    """
    found = np.full((3, len(pairs)), np.nan)
    if n < 2:
        return found
    # One column after another: of many rows these are much memory.
    codes, tied = np.empty((len(columns), n), np.int32 if n < 2**31 else np.int64), []
    scaled = np.empty((2, len(columns), n))
    for row, column in enumerate(columns.values()):
        _, codes[row], counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[codes[row]]
        for own, one in zip(scaled, (column, ranks), strict=True):
            own[row] = standardize(one.astype(np.float64)[:, None])[0][:, 0]
        tied.append((counts * (counts - 1) // 2).sum())
    place = {name: row for row, name in enumerate(columns) if tied[row] < n * (n - 1) // 2}
    numbers = [index for index, pair in enumerate(pairs) if place.keys() >= {*pair}]
    if not numbers:
        return found
    step = max(1, BLOCK // n)
    for start in range(0, len(numbers), step):
        block = numbers[start : start + step]
        first, second = np.array([[place[name] for name in pairs[index]] for index in block]).T
        found[:2, block] = [np.vecdot(one[first], one[second]) / n for one in scaled]
        found[2, block] = _kendall(codes, np.array(tied), first, second)
    return np.clip(found, -1.0, 1.0, out=found)


def _kendall(codes: NDArray[Any], tied: NDArray[np.int64], first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
    """Return tau_b = (P - Q) / sqrt((T - T_x) (T - T_y)) (Kendall 1945).

    Of T pairs of rows, P are concordant, Q discordant, T_x and T_y tied. A pair is discordant where it is out of order
    in y after sorting by x, and merging sorted runs counts such pairs as it goes (Knight 1966).
    """
    n = codes.shape[1]
    total, bits = n * (n - 1) // 2, n.bit_length()
    # One key orders the rows by x and, where x is tied, by y.
    keys = codes[first].astype(np.int64) << bits | codes[second]
    keys.sort(axis=1)
    discordant = _inversions(keys & ((1 << bits) - 1))
    # The k-th entry of a run of equal keys makes k pairs with those before it.
    places = np.arange(n)
    starts = np.where(np.diff(keys, axis=1, prepend=-1) > 0, places, 0)
    tied_in_both = (places - np.maximum.accumulate(starts, axis=1)).sum(axis=1)
    untied = total - tied[first] - tied[second] + tied_in_both
    scale = (total - tied[first]).astype(np.float64) * (total - tied[second])
    balance: Array = (untied - 2 * discordant) / np.sqrt(np.where(scale > 0, scale, 1.0))
    return balance


def _inversions(entries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many pairs of entries, all in [0, n), of each row stand in descending order. Cost: O(n log n) a row."""
    q, n = entries.shape
    width, length = 1 << (n - 1).bit_length(), 1
    runs, found = np.pad(entries, ((0, 0), (0, width - n)), constant_values=n), np.zeros(q, dtype=np.int64)
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
