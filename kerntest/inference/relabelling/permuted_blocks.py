"""Two samples under permutations of whole blocks of rows, as `designs` says, or of all rows.

With M_ab the sum of a kernel over the rows of block a against those of b, its diagonal left out, and u = 1 for the blocks
that a relabelling g puts into X,

    <K, B_g> = c2 u'Mu + 2 c1 u'M1 + c0 1'M1 + (a sum over the diagonal of K)

so that each kernel value is computed once for all relabellings of the same blocks, and F kernels share the distances. Where
relabellings change the numbers of rows, or move them within strata s only, the statistic is made of its own numbers:

    MMD^2 = w'Mw + what makes it unbiased,    w = pi_s (u / m_s - (1 - u) / n_s),    pi_s ~ m_s n_s / (m_s + n_s)

with m_s and n_s rows of X and Y, which is the label centred within strata: a change of their mix alone changes nothing.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.engines.engine import Engine, Progress, enough_for, of_triangle, part_of
from kerntest.errors import UndecidedError, counted, option
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.relabelling.designs import BLOCKS, BlockedRows, Cosets, ways_of
from kerntest.inference.sides import ORDER_STREAM, Labels, Resampling, Sample
from kerntest.inference.statistic import Effect, LabelMatrix, discrepancy, means_apart, unit_sums
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

# Rows of a tile. Smaller ones would stay in the second-level cache, and many threads would wait for the interpreter.
TILE = 640
# Relabellings of blocks, and of all rows, that are summed by one product.
TOGETHER_BLOCKS, TOGETHER_ROWS = 1024, 256
# Sums over pairs of blocks that are held at a time: where blocks are many, as within many strata, those of some kernels.
HELD_SUMS = 5 * 10**6
# A number of rows whose square is none either, and can be divided by.
NO_ROWS = 1e-100


@dataclass(frozen=True, eq=False)
class TwoSamples(ExactTest):
    """The pooled rows of two samples under relabellings: which of them, or of their blocks, belong to X."""

    sample: Sample

    usual: ClassVar[Resampling] = "blocks"
    relabelling_bytes: ClassVar[float] = float(BLOCKS)

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
        sample = self.sample
        return discrepancy(kernels[0], sample.points, sample.labels, self.engine, sample.design)

    def relabelled(self, family: Family, at_least: int) -> Relabelled:
        """Return <A, B> of all kernels over shared relabellings: permuted blocks of rows, or of rows if asked for."""
        sample, options = self.sample, self.options
        design, n = sample.design, len(sample.points)
        diagonals = [kernel.diagonal(sample.points) for kernel in family.kernels]
        # A sum over all pairs of rows, their labels not centred, before the sums over rows are taken out.
        tolerances = np.array([tie_tolerance(float(diagonal.max()), n, float(n)) for diagonal in diagonals])
        with np.errstate(over="ignore", invalid="ignore"):
            if options.resampling == "random":
                sums = self._by_rows(family.kernels, at_least)
                return Relabelled(sums, tolerances, "random permutations", at_least, 1.0 / at_least, MORE)
            cosets = Cosets(sample, at_least, options.seed)
            sums, left_out = self._by_blocks(family.kernels, diagonals, cosets)
        # The trace of what a factor leaves out, times the norm of B, bounds what it could add.
        tolerances += left_out * math.sqrt(self.label.squared_norm)
        used, ties, words = sums.shape[1], 1, "random permutations"
        if complete := used == ways_of(sample):
            # Samples of one size may change places.
            moved = cosets.first.relabellings(used, options.seed)
            ties += int(np.count_nonzero((moved == ~moved[0]).all(axis=1)))
        if design is not None:
            words = f"all {design.words}" if complete else design.words
        elif complete:
            words = record.ALL_PERMUTATIONS
        elif cosets.first.free < n:
            words = f"permuted blocks of {counted(int(cosets.first.starts[1]), 'random row')}"
        if design is not None and ties / used > options.alpha:
            raise UndecidedError(
                f"{counted(used, 'relabelling')} by {design.words} cannot give a p-value below {ties / used:.2g}, and "
                f"alpha is {options.alpha:g}",
                hint="more clusters would" + (f"; or a larger {option('alpha')}" if ties < used else ""),
                code="undecided.floor",
            )
        orders, way_out = cosets.count if cosets.count > 1 else None, MORE_ROWS if cosets.every else MORE
        return Relabelled(
            sums, tolerances, words, used, ties / used, way_out, orders=orders, block_variance=cosets.variance
        )

    def _by_blocks(self, kernels: Sequence[Kernel], diagonals: Sequence[Array], cosets: Cosets) -> tuple[Array, Array]:
        """Return <A, B> of all kernels under permutations of blocks, shape (F, R), and the traces that factors leave out.

        Cost: a pass over the kernel values for each of the cosets.
        """
        sums, left_out = np.empty((len(kernels), cosets.count * cosets.each)), np.empty(len(kernels))
        for place, (blocks, moved) in enumerate(cosets):
            columns = slice(place * cosets.each, (place + 1) * cosets.each)
            together = kernels_together(len(kernels), len(blocks.in_x))
            parts = range(0, len(kernels), together)
            for part, start in enumerate(parts):
                some = slice(start, start + together)
                progress = part_of(self.progress, place * len(parts) + part, cosets.count * len(parts))
                between, left_out[some] = self._between_blocks(kernels[some], blocks, progress)
                own = np.stack([blocks.own(diagonal) for diagonal in diagonals[some]])
                sums[some, columns] = self.over_blocks(kernels[some], self.sample.points, (between, own), blocks, moved)
                # Gone before the next are made.
                del between
        return sums, left_out

    def over_blocks(
        self,
        kernels: Sequence[Kernel],
        points: Points,
        sums: tuple[Array, Array],
        blocks: BlockedRows,
        moved: NDArray[np.bool_],
    ) -> Array:
        """Return <K_f, B_g> for every kernel f and relabelling g of the moved blocks, shape (F, R). Cost: O(F R b^2) time.

        From sums as of `add_block_sums`, and those of the diagonal of every kernel matrix over each block.
        """
        design, fixed = self.sample.design, blocks.in_x[blocks.free :]
        found = np.empty((len(kernels), len(moved)))
        own = design is not None or blocks.weights is not None
        if own:
            units = self._unit_sums(kernels, points, sums[1], blocks)

        for start in range(0, len(moved), TOGETHER_BLOCKS):
            part = moved[start : start + TOGETHER_BLOCKS]
            labels = np.hstack([part, np.broadcast_to(fixed, (len(part), len(fixed)))]).astype(np.float64)
            weighed = own_weights(labels, blocks) if own else None

            def of_kernel(
                member: int, start: int = start, labels: Array = labels, weighed: Weighed | None = weighed
            ) -> None:
                matrix, diagonal = (some[member] for some in sums)
                if weighed is None:
                    rows = (matrix.sum(axis=1) + matrix.sum(axis=0)) / 2.0
                    of_labels = label_sums(labels, labels @ matrix, rows, diagonal, self.label)
                else:
                    of_labels = own_sums(labels, weighed, (matrix, diagonal), units[member], self.label)
                found[member, start : start + TOGETHER_BLOCKS] = of_labels

            # Small products of matrices that are here: on threads of this process.
            for _ in self.engine.here.map(of_kernel, range(len(kernels))):
                pass
        return found

    def _unit_sums(
        self, kernels: Sequence[Kernel], points: Points, diagonals: Array, blocks: BlockedRows
    ) -> list[tuple[Array, Array]]:
        """Return the sums of each kernel over pairs of rows of one unit, and their numbers: by pairs of blocks, shape (b, b).

        Of each block, shape (b,), where every row is a unit of its own.
        """
        design = self.sample.design
        if design is None or design.n_units is None:
            numbers = blocks.own(np.ones(len(blocks.order)))
            return [(diagonal, numbers) for diagonal in diagonals]

        def summed(kernel: Kernel | None) -> Array:
            among = points, design.units, blocks.of_rows(), len(blocks.in_x)
            return blocks.summed(unit_sums(kernel, *among, weights=blocks.weights))

        numbers, together = summed(None), self.engine.here.map(summed, kernels)
        return [(own, numbers) for own in together]

    def _between_blocks(
        self, kernels: Sequence[Kernel], blocks: BlockedRows, progress: Progress | None
    ) -> tuple[Array, Array]:
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
                if (one := _by_factor(term, points, blocks)) is None:
                    break
                found.append(one)
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
            add_block_sums(sums, in_turn, points, blocks, engine=self.engine, progress=progress)
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


def _by_factor(kernel: Kernel, points: Points, blocks: BlockedRows) -> tuple[Array, float] | None:
    """Return the sums over pairs of blocks and the trace that is left out, if there is a factor; which is gone afterwards."""
    if (factor := low_rank_factor(kernel, points, LEFT_OUT)) is None:
        return None
    columns = blocks.summed(factor.columns)
    between = columns @ columns.T
    between[np.diag_indices_from(between)] -= blocks.own(kernel.diagonal(points))
    return between, factor.residual


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


class Weighed(NamedTuple):
    """Labels of blocks, shape (R, b), as weights w of relabellings that are each normalised by its own numbers of rows.

    With the blocks of each stratum, the share of it, shape (S, R), and its numbers of rows of X and Y, shape (S, 2, R); and
    whether blocks are the sides of pairs. Of rows with weights, the `precision` 4 / n sum_s m_s n_s / (m_s + n_s), shape (R,).
    """

    weights: Array
    of_strata: list[NDArray[np.intp]]
    shares: Array
    rows: Array
    swaps: bool
    precision: Array | None


def own_weights(labels: Array, blocks: BlockedRows) -> Weighed:
    """Return what labels of blocks weigh."""
    of_strata = [np.flatnonzero(blocks.strata == one) for one in range(int(blocks.strata.max()) + 1)]
    sizes = blocks.total_weights
    rows = np.stack([np.stack([labels[:, c] @ sizes[c], (1.0 - labels[:, c]) @ sizes[c]]) for c in of_strata])
    # A sample may have no row that weighs anything.
    rows = np.maximum(rows, NO_ROWS)
    shares = rows[:, 0] * rows[:, 1] / rows.sum(axis=1)
    precision = shares.sum(axis=0)
    shares /= precision
    weights = np.zeros_like(labels)
    for places, (m, n), share in zip(of_strata, rows, shares, strict=True):
        u = labels[:, places]
        weights[:, places] = u * (share / m)[:, None] - (1.0 - u) * (share / n)[:, None]
    precision *= 4.0 / max(sizes.sum(), NO_ROWS)
    return Weighed(weights, of_strata, shares, rows, blocks.swaps, None if blocks.weights is None else precision)


def own_sums(
    labels: Array,
    weighed: Weighed,
    sums: tuple[Array, Array],
    units: tuple[Array, Array],
    label: LabelMatrix,
) -> Array:
    """Return <K, B_g> for labels g of blocks within strata, shape (R, b), each normalised by its own numbers of rows.

    From the sums of K over pairs of blocks, as of `add_block_sums`, and its diagonal; and those over pairs of rows of one
    unit with the numbers of such pairs. Where rows have weights, times the precision, so that relabellings that give a sample
    few rows vary as others do; and nothing comes from strata in which no two units of a sample have rows.
    """
    (matrix, diagonal), (weights, of_strata, shares, rows, swaps, precision) = sums, weighed
    corrections = np.zeros(len(labels))
    for places, (m, n), share in zip(of_strata, rows, shares, strict=True) if label.hollow else ():
        u, v, within = labels[:, places], 1.0 - labels[:, places], np.ix_(places, places)
        own = (matrix[within] + matrix[within].T) / 2.0 + np.diag(diagonal[places])
        together, number = (np.diag(some[places]) if some.ndim == 1 else some[within] for some in units)
        # Only of pairs rows of one unit are on both sides.
        crossed = [(u, v, m * n, -2.0)] if swaps else []
        added, told = np.zeros(len(labels)), np.ones(len(labels), dtype=bool)
        for left, right, pairs, times in [(u, u, m * m, 1.0), (v, v, n * n, 1.0), *crossed]:
            every, same, count = (np.einsum("gb,gb->g", left @ one, right) for one in (own, together, number))
            added += times * share**2 * (means_apart(every, same, pairs, count) - every / pairs)
            told &= pairs > count
        if precision is not None:
            w = weights[:, places]
            added = np.where(told, added, -np.einsum("gb,gb->g", w @ own, w))
        corrections += added
    forms: Array = np.einsum("gb,gb->g", weights @ matrix, weights) + np.square(weights) @ diagonal + corrections
    return forms / label.factor * (1.0 if precision is None else precision)


def kernels_together(kernels: int, blocks: int) -> int:
    """Return of how many kernels sums over pairs of so many blocks are held at a time."""
    return min(kernels, max(1, HELD_SUMS // blocks**2))


def add_block_sums(
    sums: Array,
    members: Sequence[tuple[int, Kernel]],
    points: Points,
    blocks: BlockedRows,
    *,
    engine: Engine,
    progress: Progress | None = None,
) -> None:
    """Add the sums of every kernel over the pairs of different rows of two blocks to its place in `sums`, shape (F, b, b).

    Pairs of rows in different tiles stand above the diagonal twice and not below it: all that is wanted is u'Mu. Kernels
    whose bandwidths halve from one to the next cost a few multiplications each.

    Cost: O(n^2 (p + F) / 2) time, O(F b^2) memory. Sums have a fixed order.
    """
    kernels = [kernel for _, kernel in members]
    engine, count = enough_for(engine, len(kernels) * len(points) ** 2 / 2), len(blocks.in_x)
    if not blocks.even:
        engine = engine.here
    placed = points.take(blocks.order).by_columns().sent(engine)
    weights = None if blocks.weights is None else blocks.weights[blocks.order]
    tiles = _tiles(blocks, TILE * placed.scale)
    summed = _summed if blocks.even else partial(_summed_unevenly, blocks)

    def strip(number: int) -> Array:
        """Return the sums over the blocks of a tile and those from its first on, shape (F, blocks of the tile, ...)."""
        rows, own = tiles[number]
        here, high = placed.take(rows), own.stop - own.start
        strips = np.zeros((len(kernels), high, count - own.start))
        for columns, others in tiles[number:]:
            pairs = DensePairs(here, placed.take(columns))
            pairs.halve_bandwidths()
            for member, kernel in enumerate(kernels):
                values = kernel.evaluate(pairs)
                if weights is not None:
                    values = values * weights[rows, None] * weights[columns]
                found = summed(values, own, others)
                # A tile above the diagonal stands for its mirror image too.
                alone = np.diag(summed(np.diagonal(values)[:, None], own, None)[:, 0]) if columns is rows else -found
                found = found - alone
                strips[member, :, others.start - own.start : others.stop - own.start] += found
        return strips

    for (_, own), strips in zip(tiles, engine.map(strip, range(len(tiles)), of_triangle(progress)), strict=True):
        for (place, _), some in zip(members, strips, strict=True):
            sums[place, own, own.start :] += some


def _tiles(blocks: BlockedRows, most: int) -> list[tuple[slice, slice]]:
    """Return the rows and the blocks of tiles: whole blocks, as many in each, or parts of a block that is larger than a tile."""
    tiles = []
    together = max(1, most // int(blocks.sizes[: blocks.free].max()))
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


def _summed(values: Array, down: slice, across: slice | None) -> Array:
    """Return the sums over equal parts of the rows of a matrix, and of its columns, as many as there are blocks."""
    h, w = values.shape
    high, wide = down.stop - down.start, w if across is None else across.stop - across.start
    some: Array = values if high == h else values.reshape(high, h // high, w).sum(axis=1)
    # As a product: the sums of `sum` over so few neighbours take ten times as long.
    return some if wide == w else some.reshape(high, wide, w // wide) @ np.ones_like(some, shape=w // wide)


def _summed_unevenly(blocks: BlockedRows, values: Array, down: slice, across: slice | None) -> Array:
    """Return the same over blocks of any sizes."""
    for axis, some in enumerate((down, across)):
        if some is not None and some.stop - some.start > 1:
            starts = blocks.starts[some] - blocks.starts[some.start]
            values = np.add.reduceat(values, starts, axis=axis)
        elif some is not None:
            values = values.sum(axis=axis, keepdims=True)
    return values
