"""Two variables by features: one sum over all rows, and the two centred kernel matrices that it stands for.

With z_x and z_y the features of the two variables of a row, a = |z_x|^2 and b = |z_y|^2, what is summed are the products
of all entries of s = (1, z_x, a, z_y, b). Nothing of size n is ever held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.features.block_sums import distinct_rows, refuse_indefinite
from kerntest.inference.nulls.invariants import Invariants, Spectrum
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.statistic import Effect, effect_size, factor
from kerntest.inference.verdict import degenerate_pair
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Linear
from kerntest.matrices.factor import make_features

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.errors import UndecidedError
    from kerntest.inference.sides import Estimator
    from kerntest.kernels.base import Array, Columns, Kernel
    from kerntest.matrices.factor import FeatureMap

# Kernel values of the rows under way in one thread: 2 MB, which stay in the cache (measured: twice as fast as 8 MB).
HELD_ENTRIES, FEWEST_TOGETHER = 2**18, 64
# Tells the stream that splits the sample from other streams of the same seed.
SPLIT_STREAM = 6
MOST_DRAWN = 10**9 - 1
# Nystroem features of an eigenvalue of K(C, C) below this share of the largest cost time and show nothing: they are left
# out. Each would add less than this share to k(x, x), on average over the landmarks.
SMALLEST_SHARE = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class SideFeatures:
    """Features of one of the two variables of a row, of some of its columns.

    `origin` is taken from the numeric columns before the kernel sees them, `centre` (near the mean of the features) from
    the features: the sums then keep their digits.
    """

    columns: Columns
    origin: Array
    map: FeatureMap
    centre: Array

    def points(self, rows: Points) -> Points:
        """Return the variable at rows, as its kernel sees it."""
        chosen = rows.select(self.columns)
        return Points(chosen.numeric - self.origin, chosen.codes)

    def __call__(self, rows: Points) -> Array:
        """Return z - centre, shape (n, r). Cost: O(n M (p + r)) time for M landmarks."""
        values = self.map.of_block(self.points(rows))
        values -= self.centre
        return values


@dataclass(frozen=True, slots=True, eq=False)
class ProductSums:
    """The second pass of a test of independence: sums of the products of all entries of s = (1, z_x, a, z_y, b)."""

    sides: tuple[SideFeatures, SideFeatures]

    @property
    def places(self) -> tuple[slice, slice]:
        """Where (z_x, a) and (z_y, b) stand in s."""
        end = self.sides[0].map.size + 2
        return slice(1, end), slice(end, end + self.sides[1].map.size + 1)

    @property
    def width(self) -> int:
        """The length of s."""
        return self.sides[0].map.size + self.sides[1].map.size + 3

    def shape(self, source: int = 0) -> tuple[int, int]:
        """Return the shape of the sums."""
        del source
        return self.width, self.width

    def add(self, total: Array, rows: Points, source: int = 0, before: int = 0) -> None:
        """Add sum_i s_i s_i' over some rows. Cost: O(n (M (p + r) + (r_x + r_y)^2)) time."""
        del source, before
        landmarks = max(len(side.map.projection) for side in self.sides)
        height = max(FEWEST_TOGETHER, HELD_ENTRIES // max(landmarks, self.width))
        for start in range(0, len(rows), height):
            some = Points(rows.numeric[start : start + height], rows.codes[start : start + height])
            s = np.ones((len(some), self.width))
            for side, place in zip(self.sides, self.places, strict=True):
                values = s[:, place.start : place.stop - 1]
                values[...] = side(some)
                np.einsum("ir,ir->i", values, values, out=s[:, place.stop - 1])
            # One array twice: the product is then known to be symmetric, and takes half the time.
            total += s.T @ s

    def pair(self, gram: Array, sample: Points, estimator: Estimator) -> FeaturePair:
        """Return both matrices from the sums over all rows, the mean of the features taken out. Cost: O((r_x + r_y)^3) time.

        Moving the origin is linear in s: with g = z_x - m, d = |g|^2 = a - 2 <m, z_x> + |m|^2.
        """
        n, shift = gram[0, 0], np.eye(self.width)
        # Twice: what is left of the means after once is rounding.
        for _ in range(2):
            moved = np.eye(self.width)
            for place in self.places:
                values, square = slice(place.start, place.stop - 1), place.stop - 1
                mean = gram[0, values] / n
                moved[0, values] = -mean
                moved[0, square] = mean @ mean
                moved[values, square] = -2.0 * mean
            gram, shift = moved.T @ gram @ moved, shift @ moved
        sides = []
        for side, place in zip(self.sides, self.places, strict=True):
            sampled = side(sample) + shift[0, place.start : place.stop - 1]
            sides.append(CentredSide(side.map.kernel, round(float(n)), gram[place, place], sampled))
        return FeaturePair(sides[0], sides[1], gram[self.places], estimator)


@dataclass(frozen=True, eq=False)
class CentredSide:
    """One kernel matrix K that features stand for, from sums over its centred features g and d = |g|^2.

    With S = sum_i g_i g_i' and HKH = G G'

        tr HKH = tr S,  sum_ij (HKH)_ij^2 = |S|^2,  tr (HKH)^3 = tr S^3,  sum_ij d_i (HKH)_ij d_j = |sum_i d_i g_i|^2

    come from the sums alone, exactly. What is left, sums of cubes of single entries and with them of d, has a share of
    order 1/n in the third moment (the triangles tr A^3 have the rest): it is scaled up from sampled rows, exact where these
    are all rows.

    Parameters
    ----------
    kernel : Kernel
    n : int
        Rows.
    gram : ndarray, shape (r + 1, r + 1)
        sum_i (g_i, d_i)(g_i, d_i)'.
    sampled : ndarray, shape (m, r)
        g of rows drawn at random.
    """

    kernel: Kernel
    n: int
    gram: Array
    sampled: Array

    @cached_property
    def diagonal(self) -> Array:
        """D of the sampled rows."""
        return np.asarray(np.einsum("ir,ir->i", self.sampled, self.sampled))

    @property
    def scatter(self) -> Array:
        """S, shape (r, r): its eigenvalues other than 0 are those of HKH."""
        return self.gram[:-1, :-1]

    @property
    def trace(self) -> float:
        """sum_i d_i."""
        return float(np.trace(self.scatter))

    @property
    def hollow_square(self) -> float:
        """<U(K), U(K)>."""
        return _hollow(float(np.vdot(self.scatter, self.scatter)), float(self.gram[-1, -1]), self.trace**2, self.n)

    def entries(self, *, hollow: bool) -> Array:
        """Return the entries of HKH, or of U(K), between the sampled rows, shape (m, m); their diagonal is set to 0.

        U(K)_ij = <g_i, g_j> + (d_i + d_j) / (n - 2) - tr / ((n - 1)(n - 2)), with the trace of all n rows.
        """
        entries: Array = self.sampled @ self.sampled.T
        if hollow:
            entries += (self.diagonal[:, None] + self.diagonal) / (self.n - 2)
            entries -= self.trace / ((self.n - 1) * (self.n - 2))
        np.fill_diagonal(entries, 0.0)
        return entries

    def over_pairs(self, entries: Array) -> float:
        """Return the sum over all pairs of n different rows that one over the sampled rows stands for."""
        m = len(entries)
        return float(entries.sum()) * (self.n * (self.n - 1)) / (m * (m - 1))

    def over_rows(self, values: Array) -> float:
        """Return the sum over all n rows that one over the sampled rows stands for."""
        return float(values.mean()) * self.n

    def first_invariants(self, *, hollow: bool) -> Invariants:
        """Return the invariants of HKH, or of U(K), up to second order, which are exact; the others are 0."""
        if hollow:
            return Invariants(0.0, self.hollow_square, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        square = float(np.vdot(self.scatter, self.scatter))
        return Invariants(self.trace, square, float(self.gram[-1, -1]), 0.0, 0.0, 0.0, 0.0, 0.0)

    def invariants(self, *, hollow: bool) -> Invariants:
        """Return the invariants of HKH, or of U(K). Cost: O(r^3 + m r^2 + m^2 r) time, O(m^2) memory."""
        first, entries = self.first_invariants(hollow=hollow), self.entries(hollow=hollow)
        cubes = self.over_pairs(np.square(entries) * entries)
        if hollow:
            return replace(first, trace_cube=self._hollow_trace_cube(), entry_cubes=cubes)
        S, d = self.scatter, self.diagonal
        on_square = np.einsum("ir,ir->i", self.sampled @ S, self.sampled)
        diagonal_cube = self.over_rows(d**3)
        return replace(
            first,
            diagonal_cube=diagonal_cube,
            diagonal_with_square=self.over_rows(d * on_square),
            diagonal_form=float(self.gram[:-1, -1] @ self.gram[:-1, -1]),
            trace_cube=float(np.vdot(S @ S, S)),
            entry_cubes=cubes + diagonal_cube,
        )

    def _hollow_trace_cube(self) -> float:
        """Return tr U(K)^3 = tr (M - D)^3 = tr M^3 - 3 tr M^2 D + 2 tr D^3 of M = W C W', W = (G, row, 1), row = -d / (n - 2)."""
        n, rank, row = self.n, len(self.scatter), -self.diagonal / (self.n - 2)
        grand = -self.trace / ((n - 2) * (n - 1))
        C = np.eye(rank + 2)
        C[rank:, rank:] = [[0.0, -1.0], [-1.0, grand]]
        # Of (g, d, 1): the features are centred, so that they have no sum.
        products = np.zeros((rank + 2, rank + 2))
        products[: rank + 1, : rank + 1] = self.gram
        products[rank, rank + 1] = products[rank + 1, rank] = self.trace
        products[rank + 1, rank + 1] = n
        scale = np.ones(rank + 2)
        scale[rank] = -1.0 / (n - 2)
        N = C @ (scale[:, None] * products * scale)
        W = np.column_stack([self.sampled, row, np.ones(len(row))])
        D = self.diagonal - 2.0 * row + grand
        on_square = np.einsum("ir,ir->i", W @ (N @ C), W)
        return float(np.trace(N @ N @ N)) - 3.0 * self.over_rows(D * on_square) + 2.0 * self.over_rows(D**3)

    def spectrum(self, *, hollow: bool) -> Spectrum:
        """Return the eigenvalues of HKH that are not 0; or those of U(K), as if its diagonal were the same in every row."""
        values: Array = np.asarray(np.linalg.eigvalsh(self.scatter), dtype=np.float64)
        if not hollow:
            return Spectrum(values, np.ones(len(values)))
        mean, rest = self.trace / self.n, max(self.n - len(values), 0)
        return Spectrum(np.append(values - mean, -mean), np.append(np.ones(len(values)), rest))


@dataclass(frozen=True, slots=True, eq=False)
class FeaturePair:
    """Two centred kernel matrices that features stand for: a `MatrixPair`.

    `crossed` is sum_i (g_i, d_i)(h_i, e_i)' over the centred features of x and y.
    """

    x: CentredSide
    y: CentredSide
    crossed: Array
    estimator: Estimator

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.x.n

    @property
    def hollow(self) -> bool:
        """Whether the matrices are U-centred."""
        return self.estimator == "unbiased"

    @property
    def factor(self) -> float:
        """What turns <A, B> into HSIC."""
        return factor(self.n, self.estimator)

    @property
    def value(self) -> float:
        """The observed <A, B>."""
        return self.inner(hollow=self.hollow)

    @property
    def rounding(self) -> float:
        """How far rounding can move <A, B>."""
        return tie_tolerance(float(self.x.diagonal.max()), self.n, float(self.y.diagonal.max()) * self.n)

    def inner(self, *, hollow: bool) -> float:
        """Return <HKH, HLH> = |sum_i g_i h_i'|^2, or <U(K), U(L)>."""
        cross = self.crossed[:-1, :-1]
        whole = float(np.vdot(cross, cross))
        return _hollow(whole, float(self.crossed[-1, -1]), self.x.trace * self.y.trace, self.n) if hollow else whole

    def effect(self) -> Effect:
        """Return both estimates of HSIC and the effect size, for the kernels that the features stand for."""
        unbiased = self.inner(hollow=True)
        return Effect(
            unbiased=factor(self.n, "unbiased") * unbiased,
            biased=factor(self.n, "biased") * self.inner(hollow=False),
            effect_size=effect_size(unbiased, self.x.hollow_square, self.y.hollow_square),
        )

    def invariants(self) -> tuple[Invariants, Invariants, bool]:
        """Return the invariants of both matrices; the cubic traces are exact but for a share of 1/n."""
        return self.x.invariants(hollow=self.hollow), self.y.invariants(hollow=self.hollow), True

    def first_invariants(self) -> tuple[Invariants, Invariants]:
        """Return the invariants up to second order."""
        return self.x.first_invariants(hollow=self.hollow), self.y.first_invariants(hollow=self.hollow)

    def spectra(self) -> tuple[Spectrum, Spectrum, bool]:
        """Return the eigenvalues of both matrices, and whether all are exact."""
        return self.x.spectrum(hollow=self.hollow), self.y.spectrum(hollow=self.hollow), not self.hollow

    def squared_products(self) -> float:
        """Return sum_{i != j} (A_ij B_ij)^2, scaled up from the sampled rows."""
        product = self.x.entries(hollow=self.hollow) * self.y.entries(hollow=self.hollow)
        return self.x.over_pairs(np.square(product))

    def relabelled(self, at_least: int) -> Array:
        """Refuse: the features of no row are held."""
        raise NotImplementedError(at_least)

    def degenerate(self) -> UndecidedError:
        """Return the error for kernels that cannot tell rows apart."""
        return degenerate_pair(self.x.kernel, self.y.kernel)


def _hollow(whole: float, diagonals: float, traces: float, n: int) -> float:
    """Return <U(K), U(L)> from <HKH, HLH>, sum_i d_i e_i and sum_i d_i sum_i e_i."""
    return whole - n / (n - 2) * diagonals + traces / ((n - 1) * (n - 2))


def side_features(text: str, kernel: Kernel, columns: Columns, rows: Points, seed: int) -> SideFeatures:
    """Return features of one variable, chosen on some of its rows, in random order."""
    refuse_indefinite(kernel)
    origin = np.zeros(len(columns.numeric))
    if isinstance(kernel, Linear):
        # Only to that one every origin is the same; a far one would take its digits away.
        origin = rows.numeric.mean(axis=0)
    points = Points(rows.numeric - origin, rows.codes)
    features = make_features(text, kernel, points.take(distinct_rows(points)), seed)
    if features.kind == "nystroem":
        # Columns of the projection are eigenvectors over the roots of their eigenvalues.
        inverse = np.square(features.projection).sum(axis=0)
        kept = inverse * SMALLEST_SHARE <= inverse.min()
        features = replace(features, projection=np.ascontiguousarray(features.projection[:, kept]))
    return SideFeatures(columns, origin, features, features.of_block(points).mean(axis=0))


def speaking_rows(n: int, sampled: int, seed: int) -> list[NDArray[np.intp]]:
    """Return which rows of a random sample speak for one side, and which for the other: as if drawn apart from all n rows.

    What is chosen for a side (bandwidth, landmarks) then does not depend on how rows are paired. Two sets of h rows, each
    drawn by itself from n, share a hypergeometric number of rows: as many are shared here. Each is in random order.
    """
    rng = np.random.default_rng((seed, SPLIT_STREAM))
    if sampled >= n:
        return [rng.permutation(n), rng.permutation(n)]
    half = sampled // 2
    # numpy draws from fewer than 1e9 rows: of more none is shared, but for one chance in a thousand.
    shared = int(rng.hypergeometric(half, min(n, MOST_DRAWN) - half, half))
    order = rng.permutation(sampled)
    return [order[:half], rng.permutation(order[half - shared : 2 * half - shared])]
