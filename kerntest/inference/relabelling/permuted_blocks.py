"""Two samples under permutations of whole blocks of rows, or of all rows.

The rows of X and of Y, each in random order, are cut into blocks of one size. Permuting the blocks is a group of
relabellings, so that the p-value over random members of it, or over all of them, is exact (Domingo-Enrich, Dwivedi and
Mackey 2025, "Cheap permutation testing"). With M_ab the sum of a kernel over the rows of block a against those of b,
its diagonal left out, and u = 1 for the blocks that a relabelling g puts into X,

    <K, B_g> = c2 u'Mu + 2 c1 u'M1 + c0 1'M1 + (a sum over the diagonal of K)

so that each kernel value is computed once whatever the number of relabellings, and F kernels share the distances.
"""

from __future__ import annotations

import math
from itertools import combinations, zip_longest
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.engines.engine import Engine, Progress, enough_for, of_triangle
from kerntest.errors import counted
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.sides import ORDER_STREAM, Labels, Options, Resampling, Sample
from kerntest.inference.statistic import Effect, LabelMatrix, discrepancy
from kerntest.inference.verdict import MORE, MORE_ROWS, ExactTest, Relabelled
from kerntest.kernels.algebra import terms
from kerntest.kernels.base import Array, DensePairs, Kernel, Points
from kerntest.kernels.elementary import Linear
from kerntest.matrices.factor import FEW_ROWS, LEFT_OUT, low_rank_factor
from kerntest.matrices.passes import sweep
from kerntest.report.results import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.inference.family import Family

# Blocks of both files together at most, where both can have so many, and of the smaller one at least: with more the power
# grows no further (measured).
BLOCKS, FEWEST = 200, 32
# Blocks of a file that relabellings move, where it has many more rows than the other; its other rows keep their file.
MOST = 512
# Rows of a tile. Smaller ones would stay in the second-level cache, and threads would wait for the interpreter (measured).
TILE = 400
# So many different relabellings are all used, however few were asked for: then the p-value hangs on no seed.
ALL = 5000
# More ways to choose rows than anybody can ask for, which there are from so many of twice as many on.
MANY_SPLITS, MANY_CHOSEN = 10**11, 20
# Relabellings of blocks, and of all rows, that are summed by one product.
TOGETHER, TOGETHER_ROWS = 1024, 256


@dataclass(frozen=True, eq=False)
class TwoSamples(ExactTest):
    """The pooled rows of two samples under relabellings: which of them, or of their blocks, belong to X."""

    sample: Sample

    usual: ClassVar[Resampling] = "blocks"

    def sides(self, kernels: tuple[Kernel, ...]) -> list[tuple[Kernel, Points]]:
        """Return the kernel and the pooled rows, and what gives the matrix of the label."""
        return [(kernels[0], self.sample.points), (Linear(), Points.of(self.sample.labels.astype(np.float64)))]

    @property
    def label(self) -> LabelMatrix:
        """The matrix of the second side."""
        return LabelMatrix(*self.sample.sizes, self.options.estimator)

    @property
    def factor(self) -> float:
        """What turns <A, B> into MMD^2."""
        return self.label.factor

    def effect(self, kernels: tuple[Kernel, ...]) -> Effect:
        """Return what a kernel measures."""
        return discrepancy(kernels[0], self.sample.points, self.sample.labels, self.engine)

    def relabelled(self, family: Family, at_least: int) -> Relabelled:
        """Return <A, B> of all kernels over shared relabellings: permuted blocks of rows, or of rows if asked for."""
        kernels, sample, options = family.kernels, self.sample, self.options
        points, n = sample.points, len(sample.points)
        left_out, diagonals = np.zeros(len(kernels)), [kernel.diagonal(points) for kernel in kernels]
        resampling, complete = "random permutations", False
        with np.errstate(over="ignore", invalid="ignore"):
            if options.resampling == "random":
                sums = self._by_rows(kernels, at_least)
            else:
                blocks = BlockedRows.of(sample.labels, options.seed)
                moved = blocks.relabellings(at_least, options.seed)
                between, left_out = self._between_blocks(kernels, blocks)
                own = np.stack([blocks.summed(diagonal) for diagonal in diagonals])
                sums = relabelled_sums(between, own, self.label, blocks, moved, engine=self.engine)
                if len(moved) == splits_of(n, sample.sizes[0]):
                    resampling, complete = record.ALL_PERMUTATIONS, True
                elif blocks.free < n:
                    resampling = f"permuted blocks of {counted(int(blocks.starts[1]), 'random row')}"
        # A sum over all pairs of rows, their labels not centred, before the sums over rows are taken out.
        tolerances = np.array([tie_tolerance(float(diagonal.max()), n, float(n)) for diagonal in diagonals])
        # The trace of what a factor leaves out, times the norm of B, bounds what it could add.
        tolerances += left_out * math.sqrt(self.label.squared_norm)
        # Samples of one size may change places.
        ties = 2 if complete and self.label.n_x == self.label.n_y else 1
        used = sums.shape[1]
        return Relabelled(sums, tolerances, resampling, used, ties / used, MORE_ROWS if complete else MORE)

    def _between_blocks(self, kernels: Sequence[Kernel], blocks: BlockedRows) -> tuple[Array, Array]:
        """Return the sums over pairs of blocks, shape (F, b, b), and the trace that factors leave out of each matrix.

        The terms of sums each on its own: those whose matrix is of low rank by its factor, the others together, tile by
        tile.
        """
        points = self.sample.points
        sums, left_out = np.zeros((len(kernels), *2 * blocks.in_x.shape)), np.zeros(len(kernels))
        chains: dict[tuple[str, int], list[tuple[int, Kernel]]] = {}
        for place, kernel in enumerate(kernels):
            for number, term in enumerate(terms(kernel)):
                chains.setdefault((str(kernel).partition("(")[0], number), []).append((place, term))

        def by_factors(chain: list[tuple[int, Kernel]]) -> list[tuple[Array, float]]:
            found: list[tuple[Array, float]] = []
            # From wide to narrow: where a bandwidth is too narrow for a factor, the next of the same kind is too.
            for _, term in chain if len(points) > FEW_ROWS else ():
                factor = low_rank_factor(term, points, LEFT_OUT)
                if factor is None:
                    break
                columns = blocks.summed(factor.columns)
                between = columns @ columns.T - np.diag(blocks.summed(term.diagonal(points)))
                found.append((between, factor.residual))
            return found

        whole: list[list[tuple[int, Kernel]]] = []
        # Few rows have no factors: no threads are started for that.
        engine = self.engine.here if len(points) > FEW_ROWS else Engine(1)
        known = engine.map(by_factors, list(chains.values()))
        for chain, found in zip(chains.values(), known, strict=True):
            for (place, _), (between, residual) in zip(chain, found, strict=False):
                sums[place] += between
                left_out[place] += residual
            whole.append(chain[len(found) :])
        # The widest of all first: those with one kernel of the categories follow one another, and share its values.
        in_turn = [one for some in zip_longest(*whole) for one in some if one is not None]
        if in_turn:
            over_tiles = block_sums([term for _, term in in_turn], points, blocks, self.engine, self.progress)
            for (place, _), between in zip(in_turn, over_tiles, strict=True):
                sums[place] += between
        return sums, left_out

    def _by_rows(self, kernels: Sequence[Kernel], relabellings: int) -> Array:
        """Return <A, B> of all kernels under random permutations of all rows, the observed labels first, shape (F, R).

        Cost: O(F n^2 (p R / 256 + R)) time, O(256 n) numbers for each strip under way.
        """
        order, labels = random_orders(self.sample.labels, relabellings, self.options.seed)
        points = self.sample.points.take(order)
        sums = np.empty((len(kernels), relabellings))
        parts = range(0, relabellings, TOGETHER_ROWS)
        for number, kernel in enumerate(kernels):
            diagonal = kernel.diagonal(points)
            for part, start in enumerate(parts):
                some = np.array(labels[start : start + TOGETHER_ROWS], dtype=np.float64)
                swept = sweep(kernel, points, np.vstack([some, np.ones(len(points))]).T, self.engine).product.T
                sums[number, start : start + len(some)] = label_sums(some, swept[:-1], swept[-1], diagonal, self.label)
                if self.progress is not None:
                    self.progress(number * len(parts) + part + 1, len(kernels) * len(parts))
        return sums


def different_relabellings(labels: Labels, options: Options) -> int:
    """Return how many different relabellings a test has: as many as were asked for, or as there are splits of its rows."""
    splits = splits_of(len(labels), int(labels.sum()))
    return splits if splits <= ALL else min(options.permutations, splits)


def splits_of(n: int, chosen: int) -> int:
    """Return in how many ways so many of n rows can be chosen, or 10^11 if there are more: of many rows that has 10^5 digits."""
    few = min(chosen, n - chosen)
    return min(math.comb(n, min(few, MANY_CHOSEN)), MANY_SPLITS)


def random_orders(labels: Labels, orders: int, seed: int) -> tuple[NDArray[np.intp], list[Labels]]:
    """Return a random order of the rows, and the labels along it in `orders` orders of which the first is the true one."""
    rng = np.random.default_rng((seed, ORDER_STREAM))
    order = rng.permutation(len(labels))
    observed = labels[order]
    return order, [observed] + [rng.permutation(observed) for _ in range(orders - 1)]


def label_sums(labels: Array, times_labels: Array, rows: Array, diagonal: Array, label: LabelMatrix) -> Array:
    """Return <K, B_g> for labels g of rows, or of blocks of rows, shape (R, b).

    From the products of the labels with K, or with its sums over blocks, without the diagonal; its row sums; and the diagonal.
    """
    forms: Array = np.einsum("gb,gb->g", times_labels, labels)
    if not label.hollow:
        rows = rows + diagonal
        forms += labels @ diagonal
    sums: Array = label.inner(forms, labels @ rows, rows.sum())
    return sums


class BlockedRows(NamedTuple):
    """The rows of two samples in blocks.

    `order` says which row stands at each place, block after block, those first that are moved: `free` of them, all of one
    size. `starts`, shape (b + 1,), says where each block starts, and n.
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
        """Return which of the moved blocks are in X, shape (R, free), the observed ones first.

        All ways to choose them where there are at most 5,000, or as many as are asked for; else random ones.
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

    Pairs of rows in different tiles stand above the diagonal twice and not below it: all that is wanted is u'Mu. Kernels
    whose bandwidths halve from one to the next cost a few multiplications each.

    Cost: O(n^2 (p + F) / 2) time, O(F b^2) memory. Sums have a fixed order.
    """
    engine, count = enough_for(engine, len(kernels) * len(points) ** 2 / 2), len(blocks.in_x)
    placed = points.take(blocks.order).by_columns().sent(engine)
    tiles = _tiles(blocks, TILE * placed.scale)

    def strip(number: int) -> Array:
        """Return the sums over the blocks of a tile and those from its first on, shape (F, blocks of the tile, ...)."""
        rows, own = tiles[number]
        here, high = placed.take(rows), own.stop - own.start
        sums = np.zeros((len(kernels), high, count - own.start))
        for columns, others in tiles[number:]:
            pairs = DensePairs(here, placed.take(columns))
            pairs.halve_bandwidths()
            for member, kernel in enumerate(kernels):
                values = kernel.evaluate(pairs)
                found = _summed(values, high, others.stop - others.start)
                # A tile above the diagonal stands for its mirror image too.
                alone = np.diag(np.diagonal(values).reshape(high, -1).sum(axis=1)) if columns is rows else -found
                found = found - alone
                sums[member, :, others.start - own.start : others.stop - own.start] += found
        return sums

    sums = np.zeros((len(kernels), count, count))
    for (_, own), some in zip(tiles, engine.map(strip, range(len(tiles)), of_triangle(progress)), strict=True):
        sums[:, own, own.start :] += some
    return sums


def _tiles(blocks: BlockedRows, most: int) -> list[tuple[slice, slice]]:
    """Return the rows and the blocks of tiles: whole blocks of one size, or parts of a block that is larger than a tile."""
    tiles = []
    together = max(1, most // int(blocks.starts[1]))
    # Equally large ones: what stands below the diagonal in those on it is computed for nothing.
    together = -(-blocks.free // -(-blocks.free // together))
    number = 0
    while number < len(blocks.in_x):
        last = min(number + together, blocks.free) if number < blocks.free else number + 1
        start, stop = int(blocks.starts[number]), int(blocks.starts[last])
        step = most if last == number + 1 else stop - start
        tiles += [(slice(some, min(some + step, stop)), slice(number, last)) for some in range(start, stop, step)]
        number = last
    return tiles


def _summed(values: Array, high: int, wide: int) -> Array:
    """Return the sums over high x wide equal parts of a matrix."""
    h, w = values.shape
    some: Array = values if high == h else values.reshape(high, h // high, w).sum(axis=1)
    # As a product: the sums of `sum` over so few neighbours take ten times as long.
    return some if wide == w else some.reshape(high, wide, w // wide) @ np.ones_like(some, shape=w // wide)


def relabelled_sums(
    sums: Array,
    diagonals: Array,
    label: LabelMatrix,
    blocks: BlockedRows,
    relabellings: NDArray[np.bool_],
    *,
    engine: Engine,
) -> Array:
    """Return <K_f, B_g> for every kernel f and relabelling g of the moved blocks, shape (F, R). Cost: O(F R b^2) time.

    From sums as of `block_sums`, and the diagonal of every kernel matrix, summed over each block.
    """
    fixed = blocks.in_x[blocks.free :]
    labels = [
        np.hstack([part, np.broadcast_to(fixed, (len(part), len(fixed)))]).astype(np.float64)
        for part in (relabellings[start : start + TOGETHER] for start in range(0, len(relabellings), TOGETHER))
    ]

    def of_kernel(member: int) -> Array:
        matrix = sums[member]
        rows = (matrix.sum(axis=1) + matrix.sum(axis=0)) / 2.0
        return np.concatenate([label_sums(some, some @ matrix, rows, diagonals[member], label) for some in labels])

    # Small products of matrices that are here: on threads of this process.
    return np.stack(list(engine.here.map(of_kernel, range(len(sums)))))
