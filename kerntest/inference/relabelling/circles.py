"""Relabellings that shift several circles, each on its own.

What changes places stands on circles: clusters of one size in a random order, row by row alike, or single rows. Shifts of
every circle by its own step are a group of relabellings p, and with i on circle c and j on circle d

    <A, B_p> = sum_cd S_cd(t_c, t_d),    S_cd(s, t) = sum_ij A[i, j] B[i + s, j + t]

where S_cd is a circular correlation in two dimensions: one transform of the entries between two circles of both matrices
serves all relabellings. Rows that keep their place are a circle of length 1.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import accumulate, combinations_with_replacement, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.inference.relabelling.designs import are_all, orders_of
from kerntest.inference.relabelling.shifts import SMALL_CIRCLE, circle_orders, is_smooth
from kerntest.inference.statistic import centring_divisors
from kerntest.kernels.base import DensePairs
from kerntest.matrices.passes import TILE, Centring, sweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress
    from kerntest.kernels.base import Array, Kernel, Points


# Of few clusters the relabellings of one order are too much alike: so many orders at most, one more for so many clusters
# less (measured: then p-values of other seeds are as far apart as those of random permutations).
MOST_ORDERS, CLUSTERS_OF_ORDERS = 8, 3000
# Up to so many pairs of clusters of two circles, for each order, all products of their entries are less than transforms; more
# than the second number would fill the memory.
FEW_PLACES, MOST_PLACES = 16, 640
# Products that are looked up together; and pieces of work, each of which looks up all.
LOOKED_UP, SHARES = 2**20, 16


class Circles(NamedTuple):
    """What stands on circles, one after another: of circle c `positions[c]` rows of each of `lengths[c]` clusters.

    Every order shifts other neighbours of B along A: of each circle which cluster stands where, the first as they are.
    `steps`, shape (R, C), are the shifts of all circles in every relabelling of an order, the first none.
    """

    lengths: list[int]
    positions: list[int]
    orders: list[list[NDArray[np.intp]]]
    steps: NDArray[np.intp]

    @classmethod
    def of(cls, rows: Sequence[NDArray[np.intp]], at_least: int, rng: np.random.Generator) -> Self:
        """Return circles of rows, each of shape (positions, clusters), that give so many relabellings, or all there are.

        Where circles have few shifts all of them are used, in each of some orders.
        """
        lengths = [some.shape[1] for some in rows]
        as_they_are, shifts = [np.arange(length) for length in lengths], math.prod(lengths)
        needed = max(-(-at_least // shifts), usual_orders(sum(lengths)))
        if are_all(math.prod(map(orders_of, lengths)), at_least):
            orders = [[np.array(one) for one in order] for order in product(*map(circle_orders, lengths))]
        else:
            orders = [as_they_are, *([rng.permutation(one) for one in lengths] for _ in range(needed - 1))]
        # Of few shifts all.
        if are_all(shifts * len(orders), at_least) or shifts <= -(-at_least // len(orders)):
            steps = np.array(list(product(*map(range, lengths))))
        else:
            steps = rng.integers(lengths, size=(-(-at_least // len(orders)), len(lengths)))
            steps[0] = 0
        return cls(lengths, [len(some) for some in rows], orders, steps)

    def moved(self, circle: int) -> NDArray[np.intp]:
        """Return which cluster of B meets each of A on a circle, of every order in all steps, shape (C, R, length)."""
        there = (np.arange(self.lengths[circle]) + self.steps[:, [circle]]) % self.lengths[circle]
        return np.stack([order[circle][there] for order in self.orders])

    def parts(self) -> list[list[slice]]:
        """Return the places of each circle, whole positions together of about so many rows as a tile has."""
        counts = [length * high for length, high in zip(self.lengths, self.positions, strict=True)]
        ends = pairwise(accumulate(counts, initial=0))
        return [_cut(*both, max(1, TILE // one) * one) for one, both in zip(self.lengths, ends, strict=True)]


def usual_orders(clusters: int) -> int:
    """Return in how many orders so many clusters are shifted, unless they need more."""
    return min(MOST_ORDERS, 1 + -(-CLUSTERS_OF_ORDERS // clusters))


def by_products(places: int, orders: int) -> bool:
    """Say whether of so many pairs of clusters of two circles, in so many orders, products are less than transforms."""
    return places <= min(MOST_PLACES, FEW_PLACES * max(orders, MOST_ORDERS))


def on_circles(clusters: NDArray[np.intp], rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Return the rows of clusters of one size, shape (clusters, size), on circles in a random order."""
    ends = list(accumulate(_lengths(len(clusters))))
    return [piece.T for piece in np.split(rng.permutation(clusters), ends[:-1])]


def _lengths(count: int) -> list[int]:
    """Return into circles of which lengths, at which transforms are fast, so many clusters are halved."""
    if count <= SMALL_CIRCLE and is_smooth(count):
        return [count]
    return _lengths(count - count // 2) + _lengths(count // 2)


def centring_of(kernel: Kernel, points: Points, engine: Engine, *, hollow: bool) -> Centring:
    """Return how the matrix of a kernel is centred. Cost: O(n^2 p / 2) time."""
    n = len(points)
    rows = sweep(kernel, points, np.ones((n, 1)), engine).product[:, 0]
    rows = rows if hollow else rows + kernel.diagonal(points)
    centre, grand = centring_divisors(n, hollow=hollow)
    return Centring(rows / centre, float(rows.sum()) / grand, hollow)


@dataclass(frozen=True)
class Entries:
    """The entries of some kernels between rows along the circles, as they are or centred.

    With `clusters`, shape (n,), ascending from 0, their sums over pairs of clusters, which then stand on the circles.
    """

    kernels: Sequence[Kernel]
    points: Points
    centrings: Sequence[Centring] | None = None
    clusters: NDArray[np.intp] | None = None

    def between(self, here: slice, there: slice) -> list[Array]:
        """Return those between some places and others, of each kernel; they may be read only."""
        if self.clusters is None:
            return list(self._of_rows(here, there))
        sums = np.zeros((len(self.kernels), here.stop - here.start, there.stop - there.start))
        tiles = (self._tiles(self.clusters, places) for places in (here, there))
        for rows, columns in product(*tiles):
            (down, first), (across, second) = (_starts(self.clusters[some]) for some in (rows, columns))
            for S, values in zip(sums, self._of_rows(rows, columns), strict=True):
                added = np.add.reduceat(np.add.reduceat(values, across, axis=1), down, axis=0)
                S[np.ix_(first - here.start, second - there.start)] += added
        return list(sums)

    def _of_rows(self, rows: slice, columns: slice) -> Iterator[Array]:
        """Yield the entries between some rows and others of one kernel after another."""
        pairs = DensePairs(self.points.take(rows), self.points.take(columns))
        pairs.halve_bandwidths()
        for number, kernel in enumerate(self.kernels):
            values = kernel.evaluate(pairs)
            if self.centrings is not None:
                row, grand, hollow = (getattr(self.centrings[number], name) for name in ("row", "grand", "hollow"))
                values = values - row[rows, None]
                values -= row[columns] - grand
                if hollow and rows == columns:
                    np.fill_diagonal(values, 0.0)
            yield values

    @staticmethod
    def _tiles(clusters: NDArray[np.intp], places: slice) -> list[slice]:
        """Return the rows of some clusters, as many together as a tile has."""
        start, stop = np.searchsorted(clusters, [places.start, places.stop]).tolist()
        return _cut(start, stop, TILE)


def _starts(clusters: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where among some rows clusters begin, and which."""
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    return starts, clusters[starts]


def _cut(start: int, stop: int, step: int) -> list[slice]:
    """Return slices of so many places."""
    return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]


def circle_sums(
    first: Entries,
    second: Entries,
    circles: Circles,
    pairs: Sequence[tuple[int, int]],
    *,
    engine: Engine,
    progress: Progress | None = None,
) -> Array:
    """Return <A_f, B_g> of pairs (f, g) of kernels of both sides in every order under all steps, shape (pairs, C R).

    Cost: O(n^2 (p + log n) (F + C G) / 2 + C n^2 P / 2) time for C orders, n x n never.
    """
    parts, lengths = circles.parts(), circles.lengths

    pieces: list[tuple[tuple[int, int], list[tuple[slice, slice]]]] = []
    for c, d in combinations_with_replacement(range(len(lengths)), 2):
        # Entries between different rows stand on both sides of the diagonal: half of the tiles of a circle with itself do.
        tiles = [some for some in product(parts[c], parts[d]) if some[0].start <= some[1].start]
        shares = SHARES if by_products(lengths[c] * lengths[d], len(circles.orders)) else 1
        pieces += [((c, d), tiles[share::shares]) for share in range(min(shares, len(tiles)))]

    def between(piece: tuple[tuple[int, int], list[tuple[slice, slice]]]) -> Array:
        """Return what some entries between two circles contribute, shape (C, pairs, R)."""
        (c, d), tiles = piece
        shaped = partial(_shaped, lengths=(lengths[c], lengths[d]))
        entries = (
            (shaped(first.between(*some)) * (1.0 if some[0] == some[1] else 2.0), shaped(second.between(*some)))
            for some in tiles
        )
        few = by_products(lengths[c] * lengths[d], len(circles.orders))
        return (_by_products if few else _by_transforms)(entries, circles, (c, d), pairs)

    total = np.zeros((len(circles.orders), len(pairs), len(circles.steps)))
    for sums in engine.here.map(between, pieces, progress):
        total += sums
    return np.moveaxis(total, 0, 1).reshape(len(pairs), -1)


def _shaped(values: Sequence[Array], lengths: tuple[int, int]) -> Array:
    """Return entries of some kernels by position and cluster on both circles, shape (F, positions, m, positions, k)."""
    (high, wide), (m, k) = values[0].shape, lengths
    return np.stack(values).reshape(len(values), high // m, m, wide // k, k)


def _by_transforms(
    tiles: Iterator[tuple[Array, Array]], circles: Circles, both: tuple[int, int], pairs: Sequence[tuple[int, int]]
) -> Array:
    """Return sums over two circles from the correlations of their tiles, shape (C, pairs, R)."""
    c, d = both
    size, steps = (circles.lengths[c], circles.lengths[d]), circles.steps
    spectra = np.zeros((len(circles.orders), len(pairs), size[0], size[1] // 2 + 1), dtype=np.complex128)
    # Of length 1 there is nothing to transform.
    transformed = partial(np.fft.rfftn, axes=(2, 4) if size[0] > 1 else (4,))
    for left, right in tiles:
        fixed = np.conj(transformed(left))
        for found, order in zip(spectra, circles.orders, strict=True):
            moved = transformed(right.take(order[c], axis=2).take(order[d], axis=4))
            for place, (f, g) in enumerate(pairs):
                found[place] += np.einsum("aibj,aibj->ij", fixed[f], moved[g])
    return np.fft.irfft2(spectra, s=size)[:, :, steps[:, c], steps[:, d]]


def _by_products(
    tiles: Iterator[tuple[Array, Array]], circles: Circles, both: tuple[int, int], pairs: Sequence[tuple[int, int]]
) -> Array:
    """Return the same from the products of every entry between their clusters with every other, of which there are few."""
    left, right = next(tiles)
    products = np.tensordot(left, right, axes=((1, 3), (1, 3)))
    for left, right in tiles:
        products += np.tensordot(left, right, axes=((1, 3), (1, 3)))
    m, k = (circles.lengths[one] for one in both)
    tables = np.ascontiguousarray(np.moveaxis(products, 3, 1)).reshape(len(left), len(right), -1)
    here, there = circles.moved(both[0]).reshape(-1, m, 1), circles.moved(both[1]).reshape(-1, 1, k)
    own = np.arange(m * k).reshape(m, k) * (m * k)
    sums = np.empty((len(pairs), len(here)))
    for some in _cut(0, len(here), max(1, LOOKED_UP // (m * k))):
        places = own + here[some] * k + there[some]
        for found, (f, g) in zip(sums, pairs, strict=True):
            found[some] = tables[f, g].take(places).sum(axis=(1, 2))
    return np.swapaxes(sums.reshape(len(pairs), len(circles.orders), -1), 0, 1)
