"""Rows for points of feature space: pre-images by the fixed point of Mika et al. (1999).

A projection P is a weighted sum of the images of the centres, P = sum_i g_i phi(x_i). Its pre-image is the row z whose
own image is nearest to it,

    |phi(z) - P|^2 = k(z, z) - 2 sum_i g_i k(x_i, z) + |P|^2.

For kernels of distances k(z, z) is 1, and the gradient of k(x, z) in column c of z is -w_c(x, z) (z_c - x_c) with
w_c >= 0. A row z at which the sum is stationary is therefore a weighted mean of the centres in each column,

    z_c = sum_i g_i w_c(x_i, z) x_ic / sum_i g_i w_c(x_i, z),

in which w is the Gaussian itself in Mika et al. It is repeated until it stays; of a category the level that gives the
largest sum is taken. The sum may have several maxima, and the weighted mean collapses where its weights cancel: so every
row starts from the best of several places, goes on from the next one after a collapse, and never ends further from P than
where it began.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from kerntest.errors import UsageError
from kerntest.kernels import elementary as kernels
from kerntest.kernels.algebra import Constant, OnColumns, Power, Product, Sum
from kerntest.kernels.base import DensePairs, Points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array, Codes, Kernel

# Rounds of the fixed point, and the largest step of a number at which it stays, relative to the spread of its column.
ROUNDS, STAYS = 200, 1e-8
# Places to start from besides the row itself: the centres whose scores are nearest.
PLACES = 3
# A weighted mean whose weights cancel to this share of their sizes has collapsed.
CANCELLED = 1e-9
# Sums that differ by less than this share of their largest term are equal.
EQUAL_SUMS = 1e-10
# By so much of itself a sum may fall by rounding.
ROUNDING = 1e-12
# Kernel values of one block of rows.
BLOCK = 2**19
UNKNOWN = -1
HINT = "kernels of distances have: gaussian, laplacian, laplacian2, student-t, rational-quadratic, matern; linear alone"
# Where a distance is 0 the weights of kernels with a kink there have none: as if it were this share of the bandwidth.
KINK = 1e-6

# Kernels whose w is the same in all columns.
Radial: TypeAlias = (
    kernels.Gaussian | kernels.StudentT | kernels.RationalQuadratic | kernels.Laplacian2 | kernels.Matern
)
# Numeric columns with w(x_i, z) of b rows z and m centres, shape (b, m), the same in these columns.
Attraction: TypeAlias = "tuple[tuple[int, ...], Array]"


class PreImages(NamedTuple):
    """Rows for n projections, scaled as the training rows, and where the fixed point stayed; elsewhere the best row met."""

    points: Points
    converged: NDArray[np.bool_]


def _nearest(scores: Array, nearby: Array) -> NDArray[np.intp]:
    """Return for n scores the places of the nearest ones nearby, the nearest first, shape (places, n)."""
    lengths, own_lengths = np.einsum("ij,ij->i", nearby, nearby), np.einsum("ij,ij->i", scores, scores)
    # Of centres equally near to rounding those that come first.
    slack = EQUAL_SUMS * (own_lengths[:, None] + lengths.max(initial=0.0))
    return largest_first(2.0 * scores @ nearby.T - lengths, min(PLACES, len(nearby)), slack).T


def largest_first(values: Array, count: int, slack: Array | float) -> NDArray[np.intp]:
    """Return the places of the largest values of each row, descending, of those equal up to a slack the first, (n, count)."""
    left, found = values.copy(), np.empty((len(values), count), dtype=np.intp)
    for turn in range(count):
        found[:, turn] = np.argmax(left >= left.max(axis=1, keepdims=True) - slack, axis=1)
        np.put_along_axis(left, found[:, [turn]], -np.inf, axis=1)
    return found


class PreImageSearch:
    """The search for rows whose images are nearest to sums of the images of m centres; refuse a kernel without pre-images."""

    def __init__(self, kernel: Kernel, centres: Points) -> None:
        self.kernel, self.centres = kernel, centres
        if not isinstance(kernel, kernels.Linear):
            nothing = centres.take(slice(0, 0))
            attractions(kernel, DensePairs(nothing, nothing))
        spread = centres.numeric.max(axis=0, initial=-np.inf) - centres.numeric.min(axis=0, initial=np.inf)
        self.stays = STAYS * np.maximum(spread, np.finfo(np.float64).tiny)

    def find(self, weights: Array, scores: Array, nearby: Array, engine: Engine, start: Points | None) -> PreImages:
        """Return the pre-images of sums with weights of shape (n, m).

        The linear kernel has the least squares solution, sum_i g_i x_i. Other searches start from the centres whose scores,
        `nearby`, are nearest, and from n rows of `start`; some ten to a hundred rounds of O(n m p) each.
        """
        n, step, centres = len(weights), max(8, BLOCK // max(len(self.centres), 1)), self.centres
        if isinstance(self.kernel, kernels.Linear):
            codes = np.zeros((n, centres.codes.shape[1]), dtype=np.int64)
            return PreImages(Points(weights @ centres.numeric, codes), np.ones(n, dtype=bool))
        parts = [slice(first, first + step) for first in range(0, max(n, 1), step)]

        def work(part: slice) -> tuple[Array, Codes, NDArray[np.bool_]]:
            places = [] if start is None else [start.take(part)]
            places += [centres.take(rows) for rows in _nearest(scores[part], nearby)]
            return self.ends(weights[part], places)

        numeric, codes, converged = map(np.concatenate, zip(*engine.map(work, parts), strict=True))
        return PreImages(Points(numeric, codes), converged)

    def ends(self, weights: Array, places: list[Points]) -> tuple[Array, Codes, NDArray[np.bool_]]:
        """Return the best rows, numbers and codes, from the best place of each on, and where the fixed point stayed."""
        values = np.stack([self._value(place, weights) for place in places])
        order = largest_first(values.T, len(places), EQUAL_SUMS * np.abs(values).max(axis=0)[:, None]).T
        numeric, codes = np.stack([place.numeric for place in places]), np.stack([place.codes for place in places])
        first = (order[0], np.arange(len(weights)))
        best, best_codes, reached = numeric[first], codes[first], values[first]
        settled, converged = np.zeros((2, len(weights)), dtype=bool)
        for turn in order:
            left = np.flatnonzero(~settled)
            if not len(left):
                break
            rows = Points(numeric[turn[left], left], codes[turn[left], left])
            sound, stayed = self._fixed_point(rows, weights[left])
            value = self._value(rows, weights[left])
            better = sound & (value >= reached[left] - ROUNDING * np.abs(reached[left]))
            done = left[better]
            best[done], best_codes[done], reached[done] = rows.numeric[better], rows.codes[better], value[better]
            settled[done], converged[done] = True, stayed[better]
        return best, best_codes, converged

    def _value(self, rows: Points, weights: Array) -> Array:
        """Return sum_i g_i k(x_i, z) for rows z."""
        return np.asarray(np.einsum("ij,ij->i", weights, self.kernel.evaluate(DensePairs(rows, self.centres))))

    def _fixed_point(self, rows: Points, weights: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Move rows to where weighted means lead; return where these never cancelled, and where they stayed too."""
        sound, stayed = np.ones(len(weights), dtype=bool), np.zeros(len(weights), dtype=bool)
        active = np.arange(len(weights))
        for _ in range(ROUNDS):
            if not len(active):
                break
            here, pulling = rows.take(active), weights[active]
            moved, uncancelled = self._mean(here, pulling)
            changed = self._levels(Points(moved, here.codes), pulling)
            still = (np.abs(moved - here.numeric) <= self.stays).all(axis=1) & (changed == here.codes).all(axis=1)
            rows.numeric[active], rows.codes[active] = moved, changed
            sound[active], stayed[active] = uncancelled, still & uncancelled
            active = active[uncancelled & ~still]
        return sound, stayed

    def _mean(self, rows: Points, weights: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the weighted means of the centres, and where their weights do not cancel."""
        # Sums of weights times centres, of weights, and of their sizes; columns that attract nothing stay.
        sums, total, size = np.zeros((3, *rows.numeric.shape))
        seen = np.zeros(rows.numeric.shape[1], dtype=bool)
        for columns, one in attractions(self.kernel, DensePairs(rows, self.centres)):
            at, pulls = list(columns), weights * one
            seen[at] = True
            sums[:, at] += pulls @ self.centres.numeric[:, at]
            total[:, at] += pulls.sum(axis=1, keepdims=True)
            size[:, at] += np.abs(pulls).sum(axis=1, keepdims=True)
        sound = (total > CANCELLED * size) | ~seen
        return np.where(sound & seen, sums / np.where(sound & seen, total, 1.0), rows.numeric), sound.all(axis=1)

    def _levels(self, rows: Points, weights: Array) -> Codes:
        """Return the best level of each category, one column after another.

        A kernel of categories knows only whether two are equal: two kernel values for each centre, with the row's level
        taken as equal to its own and as unlike any, say what every level would give.
        """
        codes = rows.codes.copy()
        for column, levels in enumerate(self.centres.codes.T):
            unlike, alike = codes.copy(), self.centres.codes.copy()
            unlike[:, column] = alike[:, column] = UNKNOWN
            here = Points(rows.numeric, unlike)
            gain = self.kernel.evaluate(DensePairs(here, Points(self.centres.numeric, alike)))
            gain -= self.kernel.evaluate(DensePairs(here, self.centres))
            gain *= weights
            slack = EQUAL_SUMS * np.abs(gain).sum(axis=1, keepdims=True)
            there = np.unique(levels)
            codes[:, column] = there[largest_first(gain @ (levels[:, None] == there), 1, slack)[:, 0]]
        return codes


def attractions(kernel: Kernel, pairs: DensePairs, columns: tuple[int, ...] | None = None) -> list[Attraction]:
    """Return weights of the numeric columns that the kernel sees, which add up; refuse a kernel that has none."""
    columns = tuple(range(pairs.x.numeric.shape[1])) if columns is None else columns
    if isinstance(kernel, Radial):
        return [(columns, _radial(kernel, pairs))]
    if isinstance(kernel, kernels.Laplacian):
        # Of a sum of absolute differences: k / (s |z_c - x_c|), its own for each column.
        values, moved = kernel.evaluate(pairs), zip(columns, pairs.differences(), strict=True)
        return [((column,), _with_kink(values, np.abs(one), kernel.chosen_bandwidth)) for column, one in moved]
    if isinstance(kernel, (Constant, kernels.Hamming, kernels.Delta)):
        return []
    if isinstance(kernel, OnColumns) and not isinstance(kernel, kernels.Mahalanobis):
        if kernel.only_sees_ties:
            raise _refused(kernel, "of numbers has no pre-images: it only tells equal ones from others")
        inner = tuple(columns[place] for place in kernel.columns.numeric)
        return attractions(kernel.kernel, pairs.restrict(kernel.columns), inner)
    if isinstance(kernel, Sum):
        return [found for part in kernel.parts for found in attractions(part, pairs, columns)]
    if isinstance(kernel, Product):
        # Of k_1 k_2 ... those of each factor times the other factors.
        factors = [part.evaluate(pairs) for part in kernel.parts]
        return [
            (own, math.prod((*factors[:place], *factors[place + 1 :]), start=weights))
            for place, part in enumerate(kernel.parts)
            for own, weights in attractions(part, pairs, columns)
        ]
    if isinstance(kernel, Power) and kernel.exponent >= 1.0:
        outer = kernel.exponent * kernel.kernel.evaluate(pairs) ** (kernel.exponent - 1.0)
        return [(own, weights * outer) for own, weights in attractions(kernel.kernel, pairs, columns)]
    alone = "has pre-images only by itself, not beside categories and other kernels"
    raise _refused(kernel, alone if isinstance(kernel, kernels.Linear) else "has no pre-images")


def _refused(kernel: Kernel, why: str) -> UsageError:
    return UsageError(f"the kernel '{kernel}' {why}", hint=HINT, code="usage.no_preimages")


def _radial(kernel: Radial, pairs: DensePairs) -> Array:
    """Return w = -2 dk/d(d^2) up to a positive factor that is the same for all pairs.

    Those of a Matern kernel of smoothness nu are one of smoothness nu - 1: with z = sqrt(2 nu) d / s,
    d/dz [z^nu K_nu(z)] = -z^nu K_(nu-1)(z), and K_(nu-1) = K_(1-nu).
    """
    bandwidth = kernel.chosen_bandwidth
    if isinstance(kernel, kernels.Gaussian):
        return kernel.evaluate(pairs) / bandwidth**2
    if isinstance(kernel, kernels.Laplacian2):
        return _with_kink(kernel.evaluate(pairs), pairs.distance(), bandwidth)
    if isinstance(kernel, (kernels.StudentT, kernels.RationalQuadratic)):
        degrees = kernel.df if isinstance(kernel, kernels.StudentT) else 2.0 * kernel.alpha
        twice, scale = degrees + isinstance(kernel, kernels.StudentT), degrees * bandwidth**2
        return kernel.evaluate(pairs) * (twice / scale) / (1.0 + pairs.squared_distance() / scale)
    nu = kernel.nu
    if nu > 1.0:
        rougher = kernels.Matern(bandwidth * math.sqrt((nu - 1.0) / nu), nu=nu - 1.0)
        return rougher.evaluate(pairs) * (nu / ((nu - 1.0) * bandwidth**2))
    from scipy.special import kve  # noqa: PLC0415 - 0.2 s of import that only this branch needs

    z = np.maximum(pairs.distance() * (math.sqrt(2.0 * nu) / bandwidth), KINK)
    factor = 2.0 ** (1.0 - nu) / math.gamma(nu) * 2.0 * nu / bandwidth**2
    return np.asarray(kve(1.0 - nu, z) * np.exp(-z) * z ** (nu - 1.0) * factor)


def _with_kink(values: Array, distances: Array, bandwidth: float) -> Array:
    """Return exp(-d / s) / (s d): a centre that is hit attracts strongly, not infinitely."""
    return values / (bandwidth * np.maximum(distances, KINK * bandwidth))
