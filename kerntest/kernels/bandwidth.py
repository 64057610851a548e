"""Bandwidths from the data: the median heuristic, and a geometric grid around it.

Every rule looks at the pooled rows as a set and at nothing else. It is blind to which row came from which sample, so
that a permutation test keeps its level, and does not depend on the order of the rows in the files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.kernels.base import Array, Columns, DensePairs, Kernel, Metric, Points, left_factor

EXACT_ROWS = 2000
SAMPLED_PAIRS = 100_000
# Pairs drawn are looked at so many at a time: few enough for wide tables to fit into memory.
CHUNK = 10_000
# Distances of so many rows to as many stay in the second-level cache of a core.
ROWS = 256
# Squared distances up to this share of the largest squared norm are computed again without cancellation.
DOUBTFUL = 1e-9
# The grid begins at half the 5 % quantile of the distances.
LOW = 0.05
SPREAD = 2.0
# An exponent of two that is nearer than this to a whole number is one: distances are right to 1e-12 or so.
REACHED = 1e-9
# So many distances are sorted at the end of the search for their median.
FEW_LEFT = 20_000
# Bandwidths outside this range cannot be squared, or divided by, without leaving the range of doubles.
SMALLEST, LARGEST = 1e-70, 1e69
# Tells the stream of sampled pairs from other streams of the same seed.
PAIR_STREAM = 1
ROW_STREAM = 3


@dataclass(frozen=True, slots=True)
class Distances:
    """Quantiles of the non-zero distances between pooled rows, in one metric."""

    low: float
    median: float


class BandwidthChooser:
    """Finds bandwidths for the rows of one test.

    Distances are exact over all pairs up to 2,000 rows, and beyond that over 100,000 random pairs, drawn from a
    stream of their own.

    Parameters
    ----------
    points : Points
        The pooled rows.
    seed : int
        Seed of the pairs that are drawn.
    """

    def __init__(self, points: Points, seed: int) -> None:
        self.points = points
        self.seed = seed
        self._known: dict[tuple[Metric, Columns | None], Distances] = {}

    def distances(self, metric: Metric, columns: Columns | None) -> Distances:
        """Return quantiles of the distances in `metric` over the named columns (None: all).

        Raises
        ------
        UndecidedError
            If all rows are equal in these columns.
        """
        key = (metric, columns)
        if key not in self._known:
            points = self.points if columns is None else self.points.select(columns)
            # Rows too far apart for numbers have infinite distances, which are refused below.
            with np.errstate(over="ignore", invalid="ignore"):
                found = pair_distances(points, metric, self.seed)
            # Sorting is faster than to find quantiles by partition.
            found.sort()
            found = found[np.searchsorted(found, 0.0, side="right") :]
            if not len(found):
                raise UndecidedError(
                    "no bandwidth can be chosen: all pairs of rows that were looked at are equal",
                    hint="give the bandwidth as a number, such as --bandwidth 1",
                    code="undecided.no_distance",
                )
            quantiles = _quantiles(found)
            if not (quantiles.low > SMALLEST and quantiles.median < LARGEST):
                raise UndecidedError(
                    "no bandwidth can be chosen: distances between rows are beyond the range of numbers",
                    hint="--scale standardize keeps them in range",
                    code="undecided.distance_range",
                )
            self._known[key] = quantiles
        return self._known[key]

    def median(self, metric: Metric, columns: Columns | None) -> float:
        """Return the median heuristic: the median of the non-zero distances in the kernel's own metric."""
        if (metric, columns) not in self._known:
            points = self.points if columns is None else self.points.select(columns)
            if metric != "mismatches" and points.numeric.shape[1] == 1:
                median = median_distance(self._some(np.sort(points.numeric[:, 0])))
                if SMALLEST < median < LARGEST:
                    return median
        return self.distances(metric, columns).median

    def _some(self, values: Array) -> Array:
        """Return all values of a column, or 2,000 of more: two million pairs."""
        n = len(values)
        if n <= EXACT_ROWS:
            return values
        chosen: Array = values[np.random.default_rng((self.seed, ROW_STREAM)).permutation(n)[:EXACT_ROWS]]
        return chosen

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


def _quantiles(found: Array) -> Distances:
    """Return quantiles of distances in ascending order, NaN or infinite where distances are."""
    places = np.array([LOW, 0.5]) * (len(found) - 1)
    below = places.astype(np.intp)
    above = np.minimum(below + 1, len(found) - 1)
    with np.errstate(invalid="ignore"):
        low, median = found[below] + (places - below) * (found[above] - found[below])
    return Distances(float(low), float(median))


def median_distance(values: Array) -> float:
    """Return the median of the non-zero distances between numbers, without forming them; 0 where all are equal.

    Parameters
    ----------
    values : ndarray, shape (n,)

    Notes
    -----
    Cost: O(n log n) time for each of some 30 halvings. In ascending order the distances from each number grow, so
    that a sorted search counts those up to a bound.
    """
    ascending = np.sort(values)
    n = len(ascending)
    rows = np.arange(n)
    # Behind its copies, the first number that differs from each.
    first = np.searchsorted(ascending, ascending, side="right")
    total = int((n - first).sum())
    if total == 0:
        return 0.0
    low, high = 0.0, float(ascending[-1] - ascending[0])
    wanted = (total - 1) // 2, total // 2
    below = above = 0
    reached = first
    while True:
        middle = 0.5 * (low + high)
        ends = np.maximum(np.searchsorted(ascending, ascending + middle, side="right"), first)
        count = int((ends - first).sum())
        if count <= wanted[0]:
            low, below, reached = middle, count, ends
        elif count > wanted[1]:
            high, above = middle, count
        else:
            break
        if (above or total) - below <= FEW_LEFT or not low < 0.5 * (low + high) < high:
            break
    # Few enough are left between the bounds to look at each: those after `reached`, up to `high`. A few more do no
    # harm, and rounding in the sums must not leave any out.
    slack = 4.0 * np.finfo(np.float64).eps * float(np.abs(ascending).max())
    ends = np.maximum(np.searchsorted(ascending, ascending + (high + slack), side="right"), reached)
    counts = ends - reached
    left = np.repeat(rows, counts)
    right = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(reached, counts)
    remaining = np.sort(ascending[right] - ascending[left])
    return float(0.5 * (remaining[wanted[0] - below] + remaining[min(wanted[1] - below, len(remaining) - 1)]))


def pair_distances(points: Points, metric: Metric, seed: int) -> Array:
    """Return the distances between rows: of all pairs up to 2,000 rows, else of 100,000 random pairs of the sorted rows.

    Cost: O(min(n^2 / 2, 100,000) p) time, and O(p n log n) to sort.
    """
    n = len(points)
    if n <= EXACT_ROWS:
        points = Points(np.asfortranarray(points.numeric), np.asfortranarray(points.codes))
        distances = np.empty(n * (n - 1) // 2)
        done = 0
        for start in range(0, n, ROWS):
            stop = min(start + ROWS, n)
            here = points.take(slice(start, stop))
            corner = _distance(DensePairs(here, here), metric)[np.triu_indices(stop - start, 1)]
            distances[done : done + len(corner)] = corner
            done += len(corner)
            for across in range(stop, n, ROWS):
                block = _distance(DensePairs(here, points.take(slice(across, min(across + ROWS, n)))), metric)
                distances[done : done + block.size] = block.ravel()
                done += block.size
        return distances
    # The pairs that are drawn must not tell where a row stood: two samples stand one after the other.
    points = points.take(np.lexsort([*points.codes.T, *points.numeric.T]))
    rng = np.random.default_rng((seed, PAIR_STREAM))
    left = rng.integers(0, n, SAMPLED_PAIRS)
    # A partner other than the row itself, each equally likely.
    right = (left + rng.integers(1, n, SAMPLED_PAIRS)) % n
    chunks = [slice(start, start + CHUNK) for start in range(0, SAMPLED_PAIRS, CHUNK)]
    return np.concatenate(
        [_distance_row_by_row(points.take(left[chunk]), points.take(right[chunk]), metric) for chunk in chunks]
    )


def _distance(pairs: DensePairs, metric: Metric) -> Array:
    if metric == "euclidean":
        return np.sqrt(_squared_distance(pairs))
    if metric == "manhattan":
        return pairs.manhattan()
    differing: Array = pairs.mismatches().copy()
    for difference in pairs.differences():
        differing += difference != 0
    return differing


def _squared_distance(pairs: DensePairs) -> Array:
    """Return squared distances that are 0 exactly where two rows are equal: rounding must not count as a distance."""
    squared = pairs.squared_distance().copy()
    norms = pairs.x.whole.derive("left factor", left_factor)[:, -2]
    left, right = np.nonzero(squared <= DOUBTFUL * norms.max())
    again = np.zeros(len(left))
    for x, y in zip(pairs.x.numeric.T, pairs.y.numeric.T, strict=True):
        again += np.square(x[left] - y[right])
    squared[left, right] = again
    return squared


def _distance_row_by_row(x: Points, y: Points, metric: Metric) -> Array:
    difference = x.numeric - y.numeric
    if metric == "euclidean":
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", difference, difference)))
    if metric == "manhattan":
        return np.asarray(np.abs(difference).sum(axis=1))
    return np.asarray((x.codes != y.codes).sum(axis=1) + (difference != 0).sum(axis=1), dtype=np.float64)
