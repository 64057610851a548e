"""The two-sample statistic under permutations of whole blocks of rows.

The rows of X and of Y, each in random order, are cut into blocks of one size. Permuting the blocks is a group of
relabellings, so that the p-value over random members of it, or over all of them, is exact (Domingo-Enrich, Dwivedi and
Mackey 2025, "Cheap permutation testing"). With M_ab the sum of a kernel over the rows of block a against those of b,
its diagonal left out, and u = 1 for the blocks that a relabelling g puts into X,

    <K, B_g> = c2 u'Mu + 2 c1 u'M1 + c0 1'M1 + (a sum over the diagonal of K)

so that each kernel value is computed once whatever the number of relabellings, and F kernels share the distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.base import enough_for
from kerntest.inference.sides import ORDER_STREAM
from kerntest.kernels.base import DensePairs, Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.sides import Labels
    from kerntest.inference.statistic import LabelMatrix
    from kerntest.kernels.base import Array, Kernel
    from kerntest.matrices.factor import Factor

# Blocks of both files together at most, where both can have so many, and of the smaller one at least: with more the power
# grows no further (measured).
BLOCKS, FEWEST = 200, 32
# Blocks of a file that relabellings move, where it has many more rows than the other; its other rows keep their file.
MOST = 512
# Rows of a tile. Smaller ones would stay in the second-level cache, and threads would wait for the interpreter (measured).
TILE = 400
# So many different relabellings are all used, however few were asked for: then the p-value hangs on no seed.
ALL = 5000
# Relabellings that are summed by one product.
TOGETHER = 1024


@dataclass(frozen=True, slots=True, eq=False)
class BlockedRows:
    """The rows of two samples in blocks.

    Parameters
    ----------
    order : ndarray of int, shape (n,)
        Which row stands at each place: block after block, those that are moved first.
    starts : ndarray of int, shape (b + 1,)
        Where each block starts, and n.
    in_x : ndarray of bool, shape (b,)
    free : int
        How many blocks are moved; all of one size.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    in_x: NDArray[np.bool_]
    free: int

    @classmethod
    def of(cls, labels: Labels, seed: int) -> BlockedRows:
        """Return the rows in random blocks, by sizes alone as many as `BLOCKS` says."""
        order = np.random.default_rng((seed, ORDER_STREAM)).permutation(len(labels))
        sides = [order[labels[order] == label] for label in (1, 0)]
        n = [len(side) for side in sides]
        size = max(1, min(-(-sum(n) // BLOCKS), min(n) // FEWEST))
        free = [min(count // size, MOST) for count in n]
        moved = [side[: count * size] for side, count in zip(sides, free, strict=True)]
        kept = [side[count * size :] for side, count in zip(sides, free, strict=True)]
        # Rows that keep their file are one block of it.
        sizes = [size] * sum(free) + [len(rows) for rows in kept if len(rows)]
        in_x = np.repeat([True, False, True, False], [*free, *(min(len(rows), 1) for rows in kept)])
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        return cls(np.concatenate([*moved, *kept]), starts, in_x, sum(free))

    def summed(self, values: Array) -> Array:
        """Return the sums over each block of numbers or vectors, one a row."""
        return np.asarray(np.add.reduceat(values[self.order], self.starts[:-1], axis=0))

    def relabellings(self, at_least: int, seed: int) -> NDArray[np.bool_]:
        """Return which of the moved blocks are in X: all ways to choose them where they are few, else random ones.

        Returns
        -------
        ndarray of bool, shape (R, free)
            The observed one first; R = `at_least`, or the number of all ways if it is smaller, or at most 5,000.
        """
        observed = self.in_x[: self.free]
        in_x = int(observed.sum())
        if math.comb(self.free, in_x) <= max(at_least, ALL):
            # The observed blocks of X come first in the order of the places, hence first among the combinations.
            chosen = np.array(list(combinations(range(self.free), in_x)), dtype=np.intp)
            moved = np.zeros((len(chosen), self.free), dtype=np.bool_)
            np.put_along_axis(moved, chosen, values=True, axis=1)
            return moved
        rng = np.random.default_rng((seed, ORDER_STREAM, 1))
        moved = rng.permuted(np.tile(observed, (at_least, 1)), axis=1)
        moved[0] = observed
        return moved


def block_sums(
    kernels: Sequence[Kernel], points: Points, blocks: BlockedRows, engine: Engine, progress: Progress | None = None
) -> Array:
    """Return the sums of every kernel over the pairs of different rows of two blocks, shape (F, b, b).

    Pairs of rows in different tiles stand above the diagonal twice and not below it: all that is wanted is u'Mu.

    Parameters
    ----------
    kernels : sequence of F Kernel
        Those whose bandwidths halve from one to the next cost a few multiplications each.
    points : Points
        n rows.
    blocks : BlockedRows
    engine : Engine
    progress : callable, optional

    Notes
    -----
    Cost: O(n^2 (p + F) / 2) time, O(F b^2) memory. Sums have a fixed order.
    """
    placed = points.take(blocks.order)
    count = len(blocks.in_x)
    engine = enough_for(engine, len(kernels) * len(points) ** 2 / 2)
    # Columns side by side in memory, as the tiles walk down them.
    placed = Points(np.asfortranarray(placed.numeric), np.asfortranarray(placed.codes)).sent(engine)
    work = _Strips(tuple(kernels), placed, tuple(_tiles(blocks, TILE * placed.scale)), count)
    sums = np.zeros((len(kernels), count, count))
    tiles = range(len(work.tiles))
    for number, strip in zip(tiles, engine.map(work, tiles, progress), strict=True):
        first = work.tiles[number].first
        sums[:, first : first + strip.shape[1], first:] += strip
    return sums


@dataclass(frozen=True, slots=True)
class _Tile:
    """Rows [start, stop): `blocks` whole blocks from number `first` on, or a part of one."""

    start: int
    stop: int
    first: int
    blocks: int


def _tiles(blocks: BlockedRows, most: int) -> list[_Tile]:
    """Return the rows in tiles of whole blocks of one size, or of parts of a block that is larger than a tile."""
    tiles: list[_Tile] = []
    size = int(blocks.starts[1])
    together = max(1, most // size)
    number = 0
    while number < len(blocks.in_x):
        last = min(number + together, blocks.free) if number < blocks.free else number + 1
        start, stop = int(blocks.starts[number]), int(blocks.starts[last])
        if last > number + 1:
            tiles.append(_Tile(start, stop, number, last - number))
        else:
            tiles += [_Tile(some, min(some + most, stop), number, 1) for some in range(start, stop, most)]
        number = last
    return tiles


@dataclass(frozen=True, slots=True, eq=False)
class _Strips:
    """The work on one tile of rows against itself and all after it."""

    kernels: tuple[Kernel, ...]
    points: Points
    tiles: tuple[_Tile, ...]
    count: int

    def __call__(self, number: int) -> Array:
        """Return the sums over its blocks and those from its first on, shape (F, blocks of the tile, ...)."""
        rows = self.tiles[number]
        here = self.points.take(slice(rows.start, rows.stop))
        sums = np.zeros((len(self.kernels), rows.blocks, self.count - rows.first))
        for columns in self.tiles[number:]:
            pairs = DensePairs(here, self.points.take(slice(columns.start, columns.stop)))
            pairs.halve_bandwidths()
            left = columns.first - rows.first
            for member, kernel in enumerate(self.kernels):
                values = kernel.evaluate(pairs)
                found = _summed(values, rows.blocks, columns.blocks)
                # A tile above the diagonal stands for its mirror image too.
                found = found - _summed_diagonal(values, rows.blocks) if columns is rows else 2.0 * found
                sums[member, :, left : left + columns.blocks] += found
        return sums


def _summed(values: Array, high: int, wide: int) -> Array:
    """Return the sums over high x wide equal parts of a matrix."""
    h, w = values.shape
    some: Array = values if high == h else values.reshape(high, h // high, w).sum(axis=1)
    return some if wide == w else some.reshape(high, wide, w // wide).sum(axis=2)


def _summed_diagonal(values: Array, blocks: int) -> Array:
    """Return the sums over the diagonals of the blocks on the diagonal, on the diagonal of a matrix."""
    return np.diag(np.diagonal(values).reshape(blocks, -1).sum(axis=1))


def factor_sums(factor: Factor, points: Points, kernel: Kernel, blocks: BlockedRows) -> Array:
    """Return the same sums of one kernel matrix K = G G'. Cost: O(n r + b^2 r) time."""
    columns = blocks.summed(factor.columns)
    return np.asarray(columns @ columns.T - np.diag(blocks.summed(kernel.diagonal(points))))


def relabelled_sums(
    sums: Array,
    diagonals: Array,
    label: LabelMatrix,
    blocks: BlockedRows,
    relabellings: NDArray[np.bool_],
    *,
    engine: Engine,
) -> Array:
    """Return <K_f, B_g> for every kernel f and relabelling g.

    Parameters
    ----------
    sums : ndarray, shape (F, b, b)
        As from `block_sums`.
    diagonals : ndarray, shape (F, b)
        The diagonal of every kernel matrix, summed over each block.
    label : LabelMatrix
    blocks : BlockedRows
    relabellings : ndarray of bool, shape (R, free)
    engine : Engine

    Returns
    -------
    ndarray, shape (F, R)

    Notes
    -----
    Cost: O(F R b^2) time.
    """
    none, one, both = label.between
    constant, slope, product = none, one - none, both - 2.0 * one + none
    on_y, on_x = label.diagonal
    fixed = blocks.in_x[blocks.free :]
    starts = range(0, len(relabellings), TOGETHER)
    labels = [
        np.hstack([part, np.broadcast_to(fixed, (len(part), len(fixed)))]).astype(np.float64)
        for part in (relabellings[start : start + TOGETHER] for start in starts)
    ]

    def of_kernel(member: int) -> Array:
        matrix, diagonal = sums[member], diagonals[member]
        rows = (matrix.sum(axis=1) + matrix.sum(axis=0)) / 2.0
        level = constant * rows.sum() + on_y * diagonal.sum()
        weights = 2.0 * slope * rows + (on_x - on_y) * diagonal
        return np.concatenate(
            [product * np.einsum("gb,gb->g", some @ matrix, some) + some @ weights + level for some in labels]
        )

    # Small products of matrices that are here: on threads of this process.
    return np.stack(list(engine.here.map(of_kernel, range(len(sums)))))
