"""One pass over the rows for an independence test on explicit features: sums that fit together piece by piece.

With z_x and z_y the features of the two variables of a row, a = |z_x|^2 and b = |z_y|^2, the pass adds up the products
of all entries of s = (1, z_x, a, z_y, b). Moving the origin of the features to their mean is linear in s,

    g = z_x - m,    d = |g|^2 = a - 2 <m, z_x> + |m|^2,

so that one congruence of the summed matrix gives the sums over the centred features g, d of x and h, e of y:

    <HKH, HLH>     = |sum_i g_i h_i'|^2
    <U(K), U(L)>   = <HKH, HLH> - n/(n-2) sum_i d_i e_i + sum_i d_i sum_i e_i / ((n-1)(n-2))

for the kernel matrices K and L that the features stand for; nothing of size n is ever held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.statistic import Effect, effect_size, factor
from kerntest.kernels.base import Points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kerntest.engines.base import Engine, Item, Progress
    from kerntest.kernels.base import Array, Columns
    from kerntest.matrices.factor import FeatureMap

# Kernel values of the rows under way in one thread: 2 MB, which stay in the cache (measured: twice as fast as 8 MB).
HELD_ENTRIES = 2**18
FEWEST_TOGETHER = 64


@dataclass(frozen=True, slots=True, eq=False)
class SideFeatures:
    """Features of one of the two variables of a row.

    Parameters
    ----------
    columns : Columns
        Which columns of the row the variable is.
    origin : ndarray, shape (p,)
        What is taken from its numeric columns before the kernel sees them.
    features : FeatureMap
        r features.
    centre : ndarray, shape (r,)
        A value near their mean, taken from them: the sums then keep their digits.
    """

    columns: Columns
    origin: Array
    features: FeatureMap
    centre: Array

    @property
    def rank(self) -> int:
        """The number of features r."""
        return self.features.size

    def points(self, rows: Points) -> Points:
        """Return the variable at rows, as its kernel sees it."""
        return variable_at(rows, self.columns, self.origin)

    def __call__(self, rows: Points) -> Array:
        """Return z - centre, shape (n, r). Cost: O(n M (p + r)) time for M landmarks."""
        values = self.features.of_block(self.points(rows))
        values -= self.centre
        return values


def variable_at(rows: Points, columns: Columns, origin: Array) -> Points:
    """Return some columns of rows, the origin taken from the numeric ones."""
    chosen = rows.select(columns)
    return Points(chosen.numeric - origin, chosen.codes)


@dataclass(frozen=True, slots=True, eq=False)
class PairFeatures:
    """Features of both variables."""

    x: SideFeatures
    y: SideFeatures

    @property
    def width(self) -> int:
        """The length of s."""
        return self.x.rank + self.y.rank + 3

    @property
    def height(self) -> int:
        """How many rows are taken together."""
        landmarks = max(len(side.features.projection) for side in (self.x, self.y))
        return max(FEWEST_TOGETHER, HELD_ENTRIES // max(landmarks, self.width))

    def rows_of_sums(self, rows: Points) -> Array:
        """Return s = (1, z_x, a, z_y, b) of every row, shape (n, width)."""
        result = np.empty((len(rows), self.width))
        result[:, 0] = 1.0
        for side, place in zip((self.x, self.y), places(self.x.rank, self.y.rank), strict=True):
            values = result[:, place.start : place.stop - 1]
            values[...] = side(rows)
            np.einsum("ir,ir->i", values, values, out=result[:, place.stop - 1])
        return result


def places(rank_x: int, rank_y: int) -> tuple[slice, slice]:
    """Return where (z_x, a) and (z_y, b) stand in s."""
    return slice(1, rank_x + 2), slice(rank_x + 2, rank_x + rank_y + 3)


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """The summed products of all entries of s.

    Parameters
    ----------
    gram : ndarray, shape (width, width)
        sum_i s_i s_i'; its first entry is the number of rows.
    rank_x, rank_y : int
    """

    gram: Array
    rank_x: int
    rank_y: int

    @classmethod
    def empty(cls, features: PairFeatures) -> PairSums:
        """Return the sums over no rows."""
        return cls(np.zeros((features.width, features.width)), features.x.rank, features.y.rank)

    def __add__(self, other: PairSums) -> PairSums:
        """Return the sums over the rows of both."""
        return replace(self, gram=self.gram + other.gram)

    @property
    def n(self) -> int:
        """The number of rows."""
        return round(float(self.gram[0, 0]))

    def centred(self) -> CentredSums:
        """Return the sums with the mean of the features as their origin. Cost: O((r_x + r_y)^3) time."""
        n, width = self.gram[0, 0], len(self.gram)
        gram, shift = self.gram, np.eye(width)
        # Twice: what is left of the means after once is rounding.
        for _ in range(2):
            moved = np.eye(width)
            for place in places(self.rank_x, self.rank_y):
                values, square = slice(place.start, place.stop - 1), place.stop - 1
                mean = gram[0, values] / n
                moved[0, values] = -mean
                moved[0, square] = mean @ mean
                moved[values, square] = -2.0 * mean
            gram, shift = moved.T @ gram @ moved, shift @ moved
        first, second = places(self.rank_x, self.rank_y)
        means = [-shift[0, place.start : place.stop - 1] for place in (first, second)]
        return CentredSums(
            n=self.n,
            x=SideSums(self.n, gram[first, first], means[0]),
            y=SideSums(self.n, gram[second, second], means[1]),
            crossed=gram[first, second],
        )


@dataclass(frozen=True, slots=True, eq=False)
class SideSums:
    """Sums over the centred features g of one variable, with d = |g|^2.

    Parameters
    ----------
    n : int
        Rows.
    gram : ndarray, shape (r + 1, r + 1)
        sum_i (g_i, d_i)(g_i, d_i)'.
    mean : ndarray, shape (r,)
        What was taken from the features to centre them.
    """

    n: int
    gram: Array
    mean: Array

    @property
    def scatter(self) -> Array:
        """S = sum_i g_i g_i', shape (r, r): its eigenvalues other than 0 are those of HKH."""
        return self.gram[:-1, :-1]

    @property
    def trace(self) -> float:
        """sum_i d_i."""
        return float(np.trace(self.scatter))

    @property
    def diagonal_square(self) -> float:
        """sum_i d_i^2."""
        return float(self.gram[-1, -1])

    @property
    def with_diagonal(self) -> Array:
        """sum_i d_i g_i, shape (r,)."""
        return self.gram[:-1, -1]

    @property
    def hollow_square(self) -> float:
        """<U(K), U(K)>."""
        return hollow(float(np.vdot(self.scatter, self.scatter)), self.diagonal_square, self.trace**2, self.n)


@dataclass(frozen=True, slots=True, eq=False)
class CentredSums:
    """Sums over the centred features of both variables.

    Parameters
    ----------
    n : int
        Rows.
    x, y : SideSums
    crossed : ndarray, shape (r_x + 1, r_y + 1)
        sum_i (g_i, d_i)(h_i, e_i)'.
    """

    n: int
    x: SideSums
    y: SideSums
    crossed: Array

    def inner(self, *, hollow_matrices: bool) -> float:
        """Return <HKH, HLH>, or <U(K), U(L)>."""
        cross = self.crossed[:-1, :-1]
        whole = float(np.vdot(cross, cross))
        if not hollow_matrices:
            return whole
        return hollow(whole, float(self.crossed[-1, -1]), self.x.trace * self.y.trace, self.n)

    def dependence(self) -> Effect:
        """Return both estimates of HSIC and the effect size, for the kernels that the features stand for."""
        unbiased = self.inner(hollow_matrices=True)
        return Effect(
            unbiased=factor(self.n, "unbiased") * unbiased,
            biased=factor(self.n, "biased") * self.inner(hollow_matrices=False),
            effect_size=effect_size(unbiased, self.x.hollow_square, self.y.hollow_square),
        )


def hollow(whole: float, diagonals: float, traces: float, n: int) -> float:
    """Return <U(K), U(L)> from <HKH, HLH>, sum_i d_i e_i and sum_i d_i sum_i e_i."""
    return whole - n / (n - 2) * diagonals + traces / ((n - 1) * (n - 2))


def piece_sums(features: PairFeatures, read: Callable[[Item], Iterable[Points]], piece: Item) -> PairSums:
    """Return the sums over the rows of one piece of a file.

    Parameters
    ----------
    features : PairFeatures
    read : callable
        Gives the rows of a piece, some at a time.
    piece : object

    Notes
    -----
    Cost: O(n (M (p + r) + (r_x + r_y)^2)) time, O((r_x + r_y)^2) memory beside a few thousand rows of features.
    """
    total = np.zeros((features.width, features.width))
    for rows in read(piece):
        for some in in_blocks(rows, features.height):
            values = features.rows_of_sums(some)
            # One array twice: the product is then known to be symmetric, and takes half the time.
            total += values.T @ values
    return PairSums(total, features.x.rank, features.y.rank)


def in_blocks(rows: Points, height: int) -> Iterator[Points]:
    """Yield rows, `height` at a time."""
    for start in range(0, len(rows), height):
        some = slice(start, start + height)
        yield Points(rows.numeric[some], rows.codes[some])


def pair_sums(
    features: PairFeatures,
    pieces: Iterable[Item],
    read: Callable[[Item], Iterable[Points]],
    engine: Engine,
    progress: Progress | None = None,
    *,
    total: int | None = None,
) -> PairSums:
    """Return the sums over all rows.

    Parameters
    ----------
    features : PairFeatures
    pieces : iterable
        Parts of the files that can be read by themselves.
    read : callable
        Gives the rows of a piece; it may be called in another process.
    engine : Engine
    progress : callable, optional
    total : int, optional
        Number of pieces, where `pieces` has no length.

    Notes
    -----
    Cost: as of `piece_sums`, side by side. Added in the order of the pieces: the same on any number of threads.
    """
    sums = PairSums.empty(features)
    for part in engine.map(partial(piece_sums, features, read), pieces, progress, total=total):
        sums = sums + part
    return sums
