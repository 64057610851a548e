"""Bandwidths from the data: the median heuristic, and a geometric grid around it.

Every rule looks at the pooled rows as a set and at nothing else. It is blind to which row came from which sample, so
that a permutation test keeps its level, and does not depend on the order of the rows in the files.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from kerntest.errors import UndecidedError, option
from kerntest.kernels.base import Array, Columns, DensePairs, Kernel, Metric, Pairs, Points, RowPairs, left_factor

EXACT_ROWS, SAMPLED_PAIRS = 2000, 100_000
# Pairs drawn are looked at so many at a time: few enough for wide tables to fit into memory.
CHUNK = 10_000
# Distances of so many rows to as many stay in the second-level cache of a core.
ROWS = 256
# Squared distances up to this share of the largest squared norm are computed again without cancellation.
DOUBTFUL = 1e-9
# The grid begins at half the 5 % quantile of the distances.
LOW, SPREAD = 0.05, 2.0
# An exponent of two that is nearer than this to a whole number is one: distances are right to 1e-12 or so.
REACHED = 1e-9
# So many distances are sorted at the end of the search for their median.
FEW_LEFT = 20_000
# Bandwidths outside this range cannot be squared, or divided by, without leaving the range of doubles.
SMALLEST, LARGEST = 1e-70, 1e69
# Tells the streams of sampled pairs and rows from other streams of the same seed.
PAIR_STREAM, ROW_STREAM = 1, 3


class Distances(NamedTuple):
    """Quantiles of the non-zero distances between pooled rows, in one metric."""

    low: float
    median: float


class BandwidthChooser:
    """Finds bandwidths for the pooled rows of one test.

    Distances are exact over all pairs up to 2,000 rows, and beyond that over 100,000 random pairs, drawn from a
    stream of their own.
    """

    def __init__(self, points: Points, seed: int) -> None:
        self.points, self.seed = points, seed
        self._known: dict[tuple[Metric, Columns | None], Distances] = {}

    def _seen(self, columns: Columns | None) -> Points:
        return self.points if columns is None else self.points.select(columns)

    def distances(self, metric: Metric, columns: Columns | None) -> Distances:
        """Return quantiles of the distances in `metric` over the named columns (None: all), if not all rows are equal there."""
        key = (metric, columns)
        if key not in self._known:
            # Rows too far apart for numbers have infinite distances, which are refused below.
            with np.errstate(over="ignore", invalid="ignore"):
                # Sorting is faster than to find quantiles by partition.
                found = pair_distances(self._seen(columns), metric, self.seed)
                found.sort()
                found = found[np.searchsorted(found, 0.0, side="right") :]
                quantiles = Distances(_quantile(found, LOW), _quantile(found, 0.5)) if len(found) else None
            if quantiles is None:
                hint = f"give the bandwidth as a number, such as {option('bandwidth', 1)}"
                raise _no_bandwidth("all pairs of rows that were looked at are equal", hint, "no_distance")
            if not (quantiles.low > SMALLEST and quantiles.median < LARGEST):
                hint = f"{option('scale', 'standardize')} keeps them in range"
                raise _no_bandwidth("distances between rows are beyond the range of numbers", hint, "distance_range")
            self._known[key] = quantiles
        return self._known[key]

    def moments(self, columns: Columns | None) -> Array:
        """Return means, and below them the covariance with divisor n, of numeric columns (None: all). Cost: O(n p^2)."""
        rows = self._seen(columns).numeric
        means = rows.mean(axis=0)
        return np.vstack([means, (rows - means).T @ (rows - means) / len(rows)])

    def median(self, metric: Metric, columns: Columns | None) -> float:
        """Return the median heuristic: the median of the non-zero distances in the kernel's own metric."""
        points = self._seen(columns)
        if (metric, columns) not in self._known and metric != "mismatches" and points.numeric.shape[1] == 1:
            values = np.sort(points.numeric[:, 0])
            if len(values) > EXACT_ROWS:
                # Two million pairs.
                rng = np.random.default_rng((self.seed, ROW_STREAM))
                values = values[rng.permutation(len(values))[:EXACT_ROWS]]
            median = median_distance(values)
            if SMALLEST < median < LARGEST:
                return median
        return self.distances(metric, columns).median

    def log_finest(self, kernel: Kernel) -> float:
        """Return j where 2^j medians are half the 5 % quantile of the distances in the kernel's own metric.

        Distances between numeric columns, or between categories where the kernel sees nothing else; with several groups of
        columns the smallest j. A whole number where rounding has left it a little beside one.
        """
        asked: list[tuple[Metric, Columns | None]] = []

        def note(metric: Metric, columns: Columns | None) -> float:
            asked.append((metric, columns))
            return 1.0

        kernel.resolve(note)
        numeric = [question for question in asked if question[0] != "mismatches"]
        found = [self.distances(metric, columns) for metric, columns in numeric or asked]
        finest = min(float(np.log2(one.low / SPREAD / one.median)) for one in found)
        return round(finest) if abs(finest - round(finest)) <= REACHED else finest


def _no_bandwidth(message: str, hint: str, code: str) -> UndecidedError:
    return UndecidedError(f"no bandwidth can be chosen: {message}", hint=hint, code=f"undecided.{code}")


def _quantile(ascending: Array, share: float) -> float:
    place = share * (len(ascending) - 1)
    below, above = ascending[int(place)], ascending[min(int(place) + 1, len(ascending) - 1)]
    return float(below + (place - int(place)) * (above - below))


def median_distance(values: Array) -> float:
    """Return the median of the non-zero distances between numbers, without forming them; 0 where all are equal.

    Cost: O(n log n) time for each of some 30 halvings. In ascending order the distances from each number grow, so
    that a sorted search counts those up to a bound.
    """
    ascending = np.sort(values)
    n = len(ascending)
    # Behind its copies, the first number that differs from each.
    first = np.searchsorted(ascending, ascending, side="right")
    total = int((n - first).sum())
    if total == 0:
        return 0.0
    low, high = 0.0, float(ascending[-1] - ascending[0])
    wanted = (total - 1) // 2, total // 2
    below, above, reached = 0, total, first
    # Until few are left between the bounds, or no number is.
    while above - below > FEW_LEFT and low < (middle := 0.5 * (low + high)) < high:
        ends = np.maximum(np.searchsorted(ascending, ascending + middle, side="right"), first)
        count = int((ends - first).sum())
        if count <= wanted[0]:
            low, below, reached = middle, count, ends
        elif count > wanted[1]:
            high, above = middle, count
        else:
            break
    # Those after `reached`, up to `high`, are looked at. A few more do no harm, and rounding in the sums must not leave
    # any out.
    slack = 4.0 * np.finfo(np.float64).eps * float(np.abs(ascending).max())
    ends = np.maximum(np.searchsorted(ascending, ascending + (high + slack), side="right"), reached)
    counts = ends - reached
    left = np.repeat(np.arange(n), counts)
    right = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(reached, counts)
    remaining = np.sort(ascending[right] - ascending[left])
    return float(0.5 * (remaining[wanted[0] - below] + remaining[min(wanted[1] - below, len(remaining) - 1)]))


def pair_distances(points: Points, metric: Metric, seed: int) -> Array:
    """Return the distances between rows: of all pairs up to 2,000 rows, else of 100,000 random pairs of the sorted rows.

    Where all of these are equal, those between the different rows. Cost: O(min(n^2 / 2, 100,000) p) time, and O(p n log n) to sort.
    """
    n = len(points)
    if n <= EXACT_ROWS:
        points = points.by_columns()
        parts = [points.take(slice(start, start + ROWS)) for start in range(0, n, ROWS)]
        blocks = []
        for x, y in combinations_with_replacement(parts, 2):
            block = _distances(DensePairs(x, y), metric)
            blocks.append(block[~np.tri(len(x), dtype=np.bool_)] if x is y else block.ravel())
        return np.concatenate(blocks)
    # The pairs that are drawn must not tell where a row stood: two samples stand one after the other.
    points = points.take(np.lexsort([*points.codes.T, *points.numeric.T]))
    rng = np.random.default_rng((seed, PAIR_STREAM))
    left = rng.integers(0, n, SAMPLED_PAIRS)
    # A partner other than the row itself, each equally likely.
    right = (left + rng.integers(1, n, SAMPLED_PAIRS)) % n
    chunks = [slice(start, start + CHUNK) for start in range(0, SAMPLED_PAIRS, CHUNK)]
    drawn = (RowPairs(points.take(left[chunk]), points.take(right[chunk])) for chunk in chunks)
    found = np.concatenate([_distances(pairs, metric) for pairs in drawn])
    if found.any():
        return found
    # In their order equal rows follow one another.
    first = np.flatnonzero(np.diff(points.numeric, axis=0).any(axis=1) | np.diff(points.codes, axis=0).any(axis=1)) + 1
    return pair_distances(points.take(np.concatenate([[0], first[: EXACT_ROWS - 1]])), metric, seed)


def _distances(pairs: Pairs, metric: Metric) -> Array:
    """Return distances that are 0 exactly where two rows are equal: rounding must not count as a distance."""
    if metric == "manhattan":
        return pairs.manhattan()
    if metric == "mismatches":
        return pairs.all_mismatches()
    squared = pairs.squared_distance().copy()
    if isinstance(pairs, DensePairs):
        norms = pairs.x.whole.derive(left_factor)[:, -2]
        left, right = np.nonzero(squared <= DOUBTFUL * norms.max())
        squared[left, right] = RowPairs(pairs.x.take(left), pairs.y.take(right)).squared_distance()
    return np.sqrt(squared)
