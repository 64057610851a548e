"""Rows for points of feature space: pre-images by the fixed point of Mika et al. (1999).

A projection P is a weighted sum of the images of the centres, P = sum_i g_i phi(x_i). Its pre-image is the row z whose
own image is nearest to it,

    |phi(z) - P|^2 = k(z, z) - 2 sum_i g_i k(x_i, z) + |P|^2.

For kernels of distances k(z, z) is 1, and numbers are found by a weighted mean that is repeated until it stays (see
`attraction`); of a category the level that gives the largest sum is taken. The sum may have several maxima, and the
weighted mean collapses where its weights cancel: so every row starts from the best of several places, goes on from the
next one after a collapse, and never ends further from P than where it began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.kernels.base import DensePairs, Points
from kerntest.kernels.dot import Linear
from kerntest.learning.attraction import attractions, check_attracts
from kerntest.learning.ties import EQUAL_SUMS, largest_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array, Codes, Kernel

# Rounds of the fixed point, and the largest step of a number at which it stays, relative to the spread of its column.
ROUNDS, STAYS = 200, 1e-8
# Places to start from besides the row itself: the centres whose scores are nearest.
PLACES = 3
# A weighted mean whose weights cancel to this share of their sizes has collapsed.
CANCELLED = 1e-9
# By so much of itself a sum may fall by rounding.
ROUNDING = 1e-12
# Kernel values of one block of rows.
BLOCK = 2**19
UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class PreImages:
    """Rows for n projections.

    Parameters
    ----------
    points : Points
        n rows, scaled as the training rows.
    converged : ndarray of bool, shape (n,)
        Where the fixed point was reached; elsewhere the row is the best one met.
    rounds : int
        At most so many were made.
    """

    points: Points
    converged: NDArray[np.bool_]
    rounds: int


@dataclass(frozen=True, slots=True, eq=False)
class Projections:
    """Points of feature space: sums of the images of m centres.

    Parameters
    ----------
    centres : Points
        x_i.
    weights : ndarray, shape (n, m)
        g, for n points.
    scores : ndarray, shape (n, J)
    centre_scores : ndarray, shape (m, J)
        Centres whose scores are near are places to start from.
    """

    centres: Points
    weights: Array
    scores: Array
    centre_scores: Array


def preimages(kernel: Kernel, projections: Projections, engine: Engine, start: Points | None = None) -> PreImages:
    """Return the pre-images of n points of feature space.

    Parameters
    ----------
    kernel : Kernel
        Linear, or of distances, with every bandwidth chosen.
    projections : Projections
    engine : Engine
    start : Points, optional
        n rows to start from as well: those that were projected.

    Raises
    ------
    UsageError
        If the kernel has no pre-images here.

    Notes
    -----
    For the linear kernel the least squares solution, sum_i g_i x_i. Otherwise some ten to a hundred rounds of O(n m p)
    each.
    """
    centres, weights = projections.centres, projections.weights
    n = len(weights)
    if isinstance(kernel, Linear):
        codes = np.zeros((n, centres.codes.shape[1]), dtype=np.int64)
        return PreImages(Points(weights @ centres.numeric, codes), np.ones(n, dtype=bool), 0)
    check_attracts(kernel)
    step = max(8, BLOCK // max(len(centres), 1))
    parts = [slice(first, min(first + step, n)) for first in range(0, n, step)]
    spread = centres.numeric.max(axis=0, initial=-np.inf) - centres.numeric.min(axis=0, initial=np.inf)

    def work(part: slice) -> PreImages:
        own = None if start is None else start.take(part)
        search = _Search(kernel, centres, weights[part], STAYS * np.maximum(spread, np.finfo(np.float64).tiny))
        return search.run(_places(centres, projections.scores[part], projections.centre_scores, own))

    found = list(engine.map(work, parts))
    if not found:
        return PreImages(centres.take(slice(0, 0)), np.ones(0, dtype=bool), 0)
    numeric = np.concatenate([one.points.numeric for one in found])
    codes = np.concatenate([one.points.codes for one in found])
    converged = np.concatenate([one.converged for one in found])
    return PreImages(Points(numeric, codes), converged, max(one.rounds for one in found))


def _places(centres: Points, scores: Array, nearby: Array, own: Points | None) -> list[Points]:
    """Return places to start from, each n rows: the rows themselves, and the centres with the nearest scores."""
    lengths, own_lengths = np.einsum("ij,ij->i", nearby, nearby), np.einsum("ij,ij->i", scores, scores)
    # Of centres equally near to rounding those that come first.
    slack = EQUAL_SUMS * (own_lengths[:, None] + lengths.max(initial=0.0))
    nearest = largest_first(2.0 * scores @ nearby.T - lengths, min(PLACES, len(centres)), slack)
    places = [] if own is None else [own]
    return [*places, *(Points(centres.numeric[rows], centres.codes[rows]) for rows in nearest.T)]


@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """Where weighted means have led to, whether they stay there, whether they never cancelled, after how many rounds."""

    rows: Points
    stayed: NDArray[np.bool_]
    sound: NDArray[np.bool_]
    rounds: int


class _Search:
    """The search for the pre-images of some points."""

    def __init__(self, kernel: Kernel, centres: Points, weights: Array, stays: Array) -> None:
        self.kernel, self.centres, self.weights, self.stays = kernel, centres, weights, stays
        self.levels = [_members(column) for column in centres.codes.T]

    def run(self, places: list[Points]) -> PreImages:
        """Return the best rows, from the best place of each on."""
        values = np.stack([self._value(place, slice(None)) for place in places])
        order = largest_first(values.T, len(places), EQUAL_SUMS * np.abs(values).max(axis=0)[:, None]).T
        n = len(self.weights)
        numeric = np.stack([place.numeric for place in places])
        codes = np.stack([place.codes for place in places])
        first = (order[0], np.arange(n))
        best, reached = Points(numeric[first].copy(), codes[first].copy()), values[first]
        settled, converged = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        rounds = 0
        for turn in order:
            left = np.flatnonzero(~settled)
            if not len(left):
                break
            begin = (turn[left], left)
            end = self._fixed_point(Points(numeric[begin].copy(), codes[begin].copy()), left)
            value = self._value(end.rows, left)
            better = end.sound & (value >= reached[left] - ROUNDING * np.abs(reached[left]))
            rows = left[better]
            best.numeric[rows], best.codes[rows] = end.rows.numeric[better], end.rows.codes[better]
            reached[rows], settled[rows], converged[rows] = value[better], True, end.stayed[better]
            rounds = max(rounds, end.rounds)
        return PreImages(best, converged, rounds)

    def _value(self, rows: Points, which: NDArray[np.intp] | slice) -> Array:
        """Return sum_i g_i k(x_i, z) for rows z."""
        values = self.kernel.evaluate(DensePairs(rows, self.centres))
        return np.asarray(np.einsum("ij,ij->i", self.weights[which], values))

    def _fixed_point(self, rows: Points, which: NDArray[np.intp]) -> _End:
        """Return where the weighted means lead to from rows, which are written over."""
        numeric, codes = rows.numeric, rows.codes
        stayed, sound = np.zeros(len(which), dtype=bool), np.ones(len(which), dtype=bool)
        active = np.arange(len(which))
        made = 0
        while len(active) and made < ROUNDS:
            made += 1
            here, weights = Points(numeric[active], codes[active]), self.weights[which[active]]
            moved, uncancelled = self._mean(here, weights)
            changed = self._levels(Points(moved, here.codes), weights)
            still = (np.abs(moved - here.numeric) <= self.stays).all(axis=1) & (changed == here.codes).all(axis=1)
            numeric[active], codes[active] = moved, changed
            sound[active], stayed[active] = uncancelled, still & uncancelled
            active = active[uncancelled & ~still]
        return _End(rows, stayed, sound, made)

    def _mean(self, rows: Points, weights: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the weighted means of the centres, and where their weights do not cancel."""
        moved, sound = rows.numeric.copy(), np.ones(len(rows), dtype=bool)
        if not moved.shape[1]:
            return moved, sound
        for one in attractions(self.kernel, DensePairs(rows, self.centres)):
            pulls = weights * one.weights
            total, size = pulls.sum(axis=1), np.abs(pulls).sum(axis=1)
            sound &= total > CANCELLED * size
            safe = np.where(total > CANCELLED * size, total, 1.0)
            moved[:, one.columns] = (pulls @ self.centres.numeric[:, one.columns]) / safe[:, None]
        return moved, sound

    def _levels(self, rows: Points, weights: Array) -> Codes:
        """Return the best level of each category, one column after another.

        A kernel of categories knows only whether two are equal: two kernel values for each centre, with the row's level
        taken as equal to its own and as unlike any, say what every level would give.
        """
        codes = rows.codes.copy()
        for column, members in enumerate(self.levels):
            unlike = codes.copy()
            unlike[:, column] = UNKNOWN
            alike = self.centres.codes.copy()
            alike[:, column] = UNKNOWN
            here = Points(rows.numeric, unlike)
            gain = self.kernel.evaluate(DensePairs(here, Points(self.centres.numeric, alike)))
            gain -= self.kernel.evaluate(DensePairs(here, self.centres))
            gain *= weights
            slack = EQUAL_SUMS * np.abs(gain).sum(axis=1, keepdims=True)
            codes[:, column] = members.values[largest_first(gain @ members.indicator, 1, slack)[:, 0]]
        return codes


@dataclass(frozen=True, slots=True, eq=False)
class _Members:
    """The levels of a category that centres have, and who has which: shape (m, levels)."""

    values: Codes
    indicator: Array


def _members(column: Codes) -> _Members:
    values, place = np.unique(column, return_inverse=True)
    indicator = np.zeros((len(column), len(values)))
    indicator[np.arange(len(column)), place] = 1.0
    return _Members(values, indicator)
