"""Correlations of pairs of columns, to stand beside a kernel test: Pearson, Spearman, Kendall.

They see straight lines (Pearson) and monotone relations (Spearman, Kendall); where a kernel test finds a dependence and
they are near 0, it is of another kind. By numpy alone: pandas and scipy.stats would take longer to load than a screen of
a small table takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.rows import standardize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Entries of one block of pairs: what a pair needs then stays in the cache.
BLOCK = 2**17
# Runs of this many entries are compared one by one before runs are merged.
SHORT_RUN = 8


def correlations(columns: Array, pairs: Sequence[tuple[int, int]]) -> Array:
    """Return Pearson's r, Spearman's rho and Kendall's tau-b of pairs of columns (n, p), shape (3, pairs).

    NaN where a column holds one value. Large offsets and values up to 1e300 lose no digits. Cost: O(p n log n) and
    O(n log n) for each pair.
    """
    n, p = columns.shape
    found = np.full((3, len(pairs)), np.nan)
    if n < 2:
        return found
    codes, ranks, tied = np.empty((p, n), np.int64), np.empty((p, n)), np.empty(p, np.int64)
    for place, column in enumerate(columns.T):
        _, codes[place], counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks[place] = (np.cumsum(counts) - (counts - 1) / 2)[codes[place]]
        tied[place] = (counts * (counts - 1) // 2).sum()
    scaled = [np.ascontiguousarray(standardize(values)[0].T) for values in (columns, ranks.T)]
    step = max(1, BLOCK // n)
    for start in range(0, len(pairs), step):
        block = slice(start, start + step)
        first, second = np.transpose(pairs[block])
        found[:2, block] = [np.vecdot(values[first], values[second]) / n for values in scaled]
        found[2, block] = _kendall(codes, tied, first, second)
    constant = tied == n * (n - 1) // 2
    found[:, [constant[a] or constant[b] for a, b in pairs]] = np.nan
    return np.clip(found, -1.0, 1.0, out=found)


def _kendall(
    codes: NDArray[np.int64], tied: NDArray[np.int64], first: NDArray[np.intp], second: NDArray[np.intp]
) -> Array:
    """Return tau_b = (P - Q) / sqrt((T - T_x) (T - T_y)) (Kendall 1945).

    Of T pairs of rows, P are concordant, Q discordant, T_x and T_y tied. A pair is discordant where it is out of order
    in y after sorting by x, and merging sorted runs counts such pairs as it goes (Knight 1966).
    """
    n = codes.shape[1]
    total, bits = n * (n - 1) // 2, n.bit_length()
    # One key orders the rows by x and, where x is tied, by y.
    keys = codes[first] << bits | codes[second]
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


def _inversions(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many pairs of entries, all in [0, n), of each row stand in descending order. Cost: O(n log n) a row."""
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
