"""Which relabellings of two samples there are: blocks of their rows that change places whole.

The rows of X and of Y, each in random order, are cut into blocks of one size. Permuting the blocks is a group of
relabellings, so that the p-value over random members of it, or over all of them, is exact (Domingo-Enrich, Dwivedi and
Mackey 2025, "Cheap permutation testing"). What blocks there are is random too, so that many relabellings are those of some
cosets of such groups. Where rows belong together, as those of a patient do, a block is one cluster or some; within strata,
blocks of one stratum change places; of pairs the two sides of some pairs do.
"""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kerntest.inference.sides import ORDER_STREAM, Labels, Options, Sample

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Blocks of both files together at most, where both can have so many, and of the smaller one at least: with more the power
# grows no further (measured). Of strata each has the share of the least, but this many.
BLOCKS, FEWEST, FEWEST_OF_STRATUM = 200, 32, 4
# Blocks of a file that relabellings move, where it has many more rows than the other; its other rows keep their file.
MOST = 512
# So many different relabellings are all used, however few were asked for: then the p-value hangs on no seed.
ALL = 5000
# Of more places there are more orders than anybody can ask for.
MANY_PLACES = 20
# Relabellings of one set of blocks: with so many the error of their draw is about that of the blocks (measured).
OF_COSET = 1000
# Sets of blocks at most; of few rows, as many as have so many pairs of rows in all.
MOST_COSETS, PAIRS_OF_COSETS = 20, 2 * 10**9
# Numbers that are put into the order of the blocks together.
GATHERED = 2**21
# More ways to choose rows than anybody can ask for, which there are from so many of twice as many on.
MANY_SPLITS, MANY_CHOSEN = 10**11, 20


# Squared standard errors from which on sizes of clusters differ beyond chance.
UNEVEN = 4.0
# And of mean sizes this far apart, as a share of them all. Of 400 null tables with 9 parts of 10 of the variance between clusters
# kernels together rejected 13 to 28 at 5 % where means differed by 2, 5 or 10 % (8 and 40, or 12 and 12 clusters, of 4 or 10
# rows), and 21 to 23 of clusters of one size; hsic 24 of 12 and 12 clusters at 10 %, and 22.
UNLIKE = 0.1


class Design(NamedTuple):
    """What moves together, and within what, of the rows of two samples.

    `units`, shape (n,), are clusters, each in one sample; with `swaps` they are in both, and their rows of X and of Y change
    places. `strata`, shape (n,), are codes from 0; a unit is in one of them. `words` say what relabellings do.
    """

    units: NDArray[np.intp]
    strata: NDArray[np.intp]
    swaps: bool
    words: str

    @property
    def n_units(self) -> int | None:
        """How many clusters, or pairs, there are; None where rows move one by one."""
        units = int(self.units.max()) + 1
        return units if units < len(self.units) else None

    def take(self, rows: NDArray[np.intp]) -> Design:
        """Return the design of some of the rows, with codes from 0 again."""
        units, strata = (np.unique(one[rows], return_inverse=True)[1] for one in (self.units, self.strata))
        return self._replace(units=units, strata=strata)

    def weights(self, labels: Labels, there: NDArray[np.bool_] | None = None) -> Array | None:
        """Return what rows weigh, those that are there; None where it is 1.

        Of a case of pairs with a and b rows those of X weigh 2 b / (a + b), as within strata, and those of Y the rest: the mean
        embeddings of both sides then weigh as much, and what cases differ in cancels.
        """
        sides, told = 2 * self.units + labels, np.ones(len(labels)) if there is None else there.astype(np.float64)
        counts = np.bincount(sides, weights=told, minlength=2 * int(self.units.max()) + 2)
        if self.swaps and not (counts[::2] == counts[1::2]).all():
            return np.asarray(told * 2.0 * counts[sides ^ 1] / np.maximum(counts[sides] + counts[sides ^ 1], 1.0))
        return None if there is None or there.all() else told

    def ways(self, labels: Labels) -> int:
        """Return how many relabellings there are, or 10^11 if there are more."""
        if self.swaps:
            return int(min(2 ** min(int(self.units.max()) + 1, 40), MANY_SPLITS))
        _, first = np.unique(self.units, return_index=True)
        counts = np.bincount(self.strata[first]), np.bincount(self.strata[first], weights=labels[first])
        ways = 1
        for n, n_x in np.array(counts, dtype=np.intp).T.tolist():
            ways = min(ways * splits_of(n, n_x), MANY_SPLITS)
        return ways

    def uneven(self, labels: Labels) -> bool:
        """Say whether clusters of X have more rows than those of Y, or fewer, or pairs more of one side, beyond chance and by much.

        Relabelled, larger ones are in both samples: kernels together tell that from how these are, one by one hardly. Not of
        pairs, where the difference of the means of a case has mean 0 whatever their numbers are.
        """
        n_x, n = np.bincount(self.units, weights=labels), np.bincount(self.units)
        in_x = n_x > 0
        if not self.swaps and abs(n[in_x].mean() - n[~in_x].mean()) <= UNLIKE * n.mean():
            return False
        differences = 2.0 * n_x - n if self.swaps else (np.sign(n_x) - np.mean(n_x > 0)) * (n - n.mean())
        return float(differences.sum()) ** 2 > UNEVEN * float(np.square(differences).sum())

    def relabelled(self, labels: Labels, rng: np.random.Generator) -> Labels:
        """Return other labels of all rows: those of units of a stratum at random, or of the two sides of each pair."""
        units = self.units
        if self.swaps:
            return labels ^ rng.integers(2, size=int(units.max()) + 1, dtype=labels.dtype)[units]
        first = np.unique(units, return_index=True)[1]
        strata = self.strata[first]
        moved = np.empty_like(labels[first])
        moved[np.argsort(strata, kind="stable")] = labels[first][np.lexsort((rng.random(len(first)), strata))]
        return moved[units]


def ways_of(sample: Sample) -> int:
    """Return how many relabellings two samples have, or 10^11 if there are more."""
    if sample.design is not None:
        return sample.design.ways(sample.labels)
    return splits_of(len(sample.labels), int(sample.labels.sum()))


def different_relabellings(sample: Sample, options: Options) -> int:
    """Return how many different relabellings a test has: as many as were asked for, or all there are."""
    ways = ways_of(sample)
    return ways if are_all(ways, options.permutations) else options.permutations


def splits_of(n: int, chosen: int) -> int:
    """Return in how many ways so many of n rows can be chosen, or 10^11 if there are more: of many rows that has 10^5 digits."""
    few = min(chosen, n - chosen)
    return min(math.comb(n, min(few, MANY_CHOSEN)), MANY_SPLITS)


def are_all(ways: int, asked: int) -> bool:
    """Say whether all of so many different relabellings are used where so many are asked for."""
    return ways <= max(asked, ALL)


def orders_of(places: int) -> int:
    """Return in how many orders so many places can be taken; of more than 20 only that these are many."""
    return math.factorial(min(places, MANY_PLACES))


def different_orders(codes: Sequence[Hashable]) -> Iterator[tuple[int, ...]]:
    """Yield the places of codes in one of all orders each that look different, first as they stand."""

    def of(left: list[int]) -> Iterator[tuple[int, ...]]:
        if not left:
            yield ()
        # Of each code its first place, in the order in which they stand.
        for first in sorted({codes[place]: place for place in reversed(left)}.values()):
            yield from ((first, *others) for others in of([place for place in left if place != first]))

    return of(list(range(len(codes))))


class BlockedRows(NamedTuple):
    """The rows of two samples in blocks.

    `order` says which row stands at each place, block after block, those first that are moved: `free` of them. `starts`,
    shape (b + 1,), says where each block starts, and n; `in_x` and `strata`, shape (b,), what it is part of. With `swaps`
    every two of the moved ones are the sides of the same pairs. `weights`, shape (n,), are those of rows, None for 1.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    in_x: NDArray[np.bool_]
    strata: NDArray[np.intp]
    free: int
    swaps: bool = False
    weights: Array | None = None

    @classmethod
    def of(cls, labels: Labels, seed: int, design: Design | None = None) -> BlockedRows:
        """Return the rows in random blocks, by sizes alone as many as `BLOCKS` says."""
        n, rng = len(labels), np.random.default_rng((seed, ORDER_STREAM))
        if design is None:
            none = np.zeros(n, dtype=np.intp)
            return cls._cut(np.arange(n), labels, none, rng)
        if not design.swaps:
            return cls._cut(design.units, labels, design.strata, rng)
        order = rng.permutation(int(design.units.max()) + 1)
        together = -(-len(order) // BLOCKS)
        bundle = np.empty(len(order), dtype=np.intp)
        bundle[order] = np.arange(len(order)) // together
        block = 2 * bundle[design.units] + (labels == 0)
        sizes = np.bincount(block)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        in_x = np.arange(len(sizes)) % 2 == 0
        strata = np.zeros(len(sizes), dtype=np.intp)
        order, weights = np.argsort(block, kind="stable"), design.weights(labels)
        return cls(order, starts, in_x, strata, len(sizes), swaps=True, weights=weights)

    @classmethod
    def _cut(
        cls, units: NDArray[np.intp], labels: Labels, strata: NDArray[np.intp], rng: np.random.Generator
    ) -> BlockedRows:
        """Return units of one sample each in random blocks of some units of one stratum."""
        _, first, units = np.unique(units, return_index=True, return_inverse=True)
        order = rng.permutation(len(first))
        label, stratum = labels[first][order], strata[first][order]
        count = int(stratum.max()) + 1
        fewest = FEWEST if count == 1 else max(FEWEST_OF_STRATUM, FEWEST // count)
        moved: list[tuple[NDArray[np.intp], int]] = []
        kept: list[tuple[NDArray[np.intp], int]] = []
        told: tuple[list[tuple[bool, int]], list[tuple[bool, int]]] = [], []
        for one in range(count):
            sides = [order[(label == side) & (stratum == one)] for side in (1, 0)]
            size = block_size(len(order), min(map(len, sides)), fewest)
            for side, in_x in zip(sides, (True, False), strict=True):
                free = min(len(side) // size, MOST)
                if free:
                    moved.append((side[: free * size], size))
                    told[0].extend([(in_x, one)] * free)
                # Rows that keep their file are one block of it.
                if free * size < len(side):
                    kept.append((side[free * size :], len(side) - free * size))
                    told[1].append((in_x, one))
        placed = np.concatenate([some for some, _ in (*moved, *kept)])
        height = np.concatenate([np.full(len(some) // size, size) for some, size in (*moved, *kept)])
        rank = np.empty(len(placed), dtype=np.intp)
        rank[placed] = np.arange(len(placed))
        sizes = np.add.reduceat(np.bincount(units)[placed], np.concatenate([[0], np.cumsum(height)[:-1]]))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        in_x, of_block = np.array([*told[0], *told[1]], dtype=np.intp).T
        return cls(np.argsort(rank[units], kind="stable"), starts, in_x == 1, of_block, len(told[0]))

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many rows each block has, shape (b,)."""
        return np.diff(self.starts)

    @property
    def total_weights(self) -> Array:
        """What the rows of each block weigh, shape (b,)."""
        return self.summed(np.ones(len(self.order)))

    def of_rows(self) -> NDArray[np.intp]:
        """Return the block of each row, shape (n,)."""
        found = np.empty(len(self.order), dtype=np.intp)
        found[self.order] = np.repeat(np.arange(len(self.in_x)), self.sizes)
        return found

    @property
    def ways(self) -> int:
        """How many relabellings permutations of the moved blocks are."""
        if self.swaps:
            return int(2 ** (self.free // 2))
        observed, strata = self.in_x[: self.free], self.strata[: self.free]
        counts = np.bincount(strata), np.bincount(strata, weights=observed)
        return math.prod(math.comb(n, n_x) for n, n_x in np.array(counts, dtype=np.intp).T.tolist())

    @property
    def even(self) -> bool:
        """Whether all moved blocks have one size."""
        return bool((self.sizes[: self.free] == self.starts[1]).all())

    def summed(self, values: Array) -> Array:
        """Return the sums over each block of numbers or vectors, one a row, times the weights of rows."""
        if values.ndim > 1 and values.size > GATHERED:
            step = max(1, GATHERED // len(values))
            parts = (values[:, start : start + step] for start in range(0, values.shape[1], step))
            return np.concatenate([self.summed(part) for part in parts], axis=1)
        if self.weights is not None:
            values = (values.T * self.weights).T
        return np.asarray(np.add.reduceat(values[self.order], self.starts[:-1], axis=0))

    def unevenness(self, values: NDArray[np.intp], count: int) -> float:
        """Return how unlike blocks are in how often they have each of so many values, about 1 by chance; of rows in their order."""
        shape = len(self.in_x), count
        places = np.repeat(np.arange(shape[0]), self.sizes) * count + values
        found = np.bincount(places, minlength=math.prod(shape)).reshape(shape)
        expected = np.outer(self.sizes, found.sum(axis=0)) / len(values)
        return float((np.square(found - expected) / expected).sum() / max((shape[0] - 1) * (count - 1), 1))

    def own(self, diagonal: Array) -> Array:
        """Return the sums over each block of the diagonal of a matrix whose rows and columns are both weighted."""
        return self.summed(diagonal if self.weights is None else diagonal * self.weights)

    def relabellings(self, at_least: int, seed: int) -> NDArray[np.bool_]:
        """Return which of the moved blocks are in X, shape (R, free), the observed ones first.

        All ways to choose them where there are at most 5,000, or as many as are asked for; else random ones.
        """
        rng, every = np.random.default_rng((seed, ORDER_STREAM, 1)), are_all(self.ways, at_least)
        if self.swaps:
            pairs = self.free // 2
            if every:
                swapped = np.array(list(product([False, True], repeat=pairs)), dtype=np.bool_)
            else:
                swapped = rng.random((at_least, pairs)) < 0.5
                swapped[0] = False
            return np.stack([~swapped, swapped], axis=2).reshape(len(swapped), self.free)
        observed, strata = self.in_x[: self.free], self.strata[: self.free]
        groups = [np.flatnonzero(strata == one) for one in range(int(strata.max()) + 1)]
        if every:
            # The observed blocks of X come first in the order of the places, hence first among the combinations.
            each = [self._chosen(some, int(observed[some].sum())) for some in groups]
            chosen = [np.concatenate(some) for some in product(*each)]
            moved = np.zeros((self.ways, self.free), dtype=np.bool_)
            np.put_along_axis(moved, np.array(chosen, dtype=np.intp), values=True, axis=1)
            return moved
        moved = np.tile(observed, (at_least, 1))
        for some in groups:
            if len(groups) == 1:
                # In place: of millions there is no room for two.
                rng.permuted(moved, axis=1, out=moved)
            else:
                moved[:, some] = rng.permuted(moved[:, some], axis=1)
        moved[0] = observed
        return moved

    @staticmethod
    def _chosen(places: NDArray[np.intp], count: int) -> Iterator[NDArray[np.intp]]:
        """Yield all ways to choose so many of some places."""
        for chosen in combinations(places.tolist(), count):
            yield np.array(chosen, dtype=np.intp)


def block_size(n: int, fewer: int, fewest: int) -> int:
    """Return how many of n units a block has, of which the smaller sample has `fewer`, and is to have so many blocks."""
    return max(1, min(-(-n // BLOCKS), fewer // fewest))


def cosets_needed(sample: Sample, blocks: BlockedRows, relabellings: int) -> int:
    """Return how many sets of random blocks so many relabellings have: one, where each unit is a block that moves."""
    if _moved_units(blocks) == _units(sample):
        return 1
    return min(-(-relabellings // OF_COSET), max(MOST_COSETS, PAIRS_OF_COSETS // len(sample.labels) ** 2))


def _units(sample: Sample) -> int:
    """Return how many rows, clusters or pairs two samples have."""
    return len(sample.labels) if sample.design is None else int(sample.design.units.max()) + 1


def _moved_units(blocks: BlockedRows) -> int:
    """Return how many blocks, or pairs of them, are moved."""
    return blocks.free // 2 if blocks.swaps else blocks.free


def block_variance(free: int, rows: tuple[int, int], kept: tuple[int, int]) -> float:
    """Return the variance of the z of an observed statistic over one set of random blocks, of which so many are free.

    As though mean and deviation had been estimated from them; and where some rows of X and Y keep their sample, relabelled
    means differ by what the others happen to be, whose square counts.
    """
    (n_x, n_y), (k_x, k_y) = rows, kept
    moved = n_x + n_y - k_x - k_y
    offset = (k_y / n_y - k_x / n_x) ** 2 / moved + k_x / n_x**2 + k_y / n_y**2
    return 1.0 / free + float((offset / (1.0 / n_x + 1.0 / n_y)) ** 2)


class Cosets:
    """At least so many relabellings of two samples, as permutations of the blocks of one labelling after another.

    The first labelling is the observed one; each further one labels all rows anew at random, by the design if there is one, and
    has blocks of its own. If X and Y come from one distribution, all labellings are exchangeable with the observed one, and so are the relabellings within
    each, as many for every one, so that the share of those that reach the observed statistic is an exact p-value.
    """

    def __init__(self, sample: Sample, relabellings: int, seed: int) -> None:
        self.sample, self.seed = sample, seed
        self.first = BlockedRows.of(sample.labels, seed, sample.design)
        self.every = are_all(self.first.ways, relabellings)
        self.count = 1 if self.every else cosets_needed(sample, self.first, relabellings)
        # As many of each: else they would not be alike.
        self.each = self.first.ways if self.every else -(-relabellings // self.count)

    def variance(self, relabellings: int) -> float:
        """Return what random blocks add to the variance of the z of an observed statistic over so many relabellings."""
        blocks, free = self.first, _moved_units(self.first)
        if free == _units(self.sample):
            return 0.0
        in_x, sizes = blocks.in_x[blocks.free :], blocks.sizes[blocks.free :]
        kept = int(sizes[in_x].sum()), int(sizes[~in_x].sum())
        return block_variance(free, self.sample.sizes, kept) / cosets_needed(self.sample, blocks, relabellings)

    def __iter__(self) -> Iterator[tuple[BlockedRows, NDArray[np.bool_]]]:
        """Yield the blocks of every labelling, with which of the moved ones are in X, as `BlockedRows.relabellings`."""
        yield self.first, self.first.relabellings(self.each, self.seed)
        rng, observed, design = (
            np.random.default_rng((self.seed, ORDER_STREAM, 2)),
            self.sample.labels,
            self.sample.design,
        )
        for _ in range(1, self.count):
            labels = rng.permutation(observed) if design is None else design.relabelled(observed, rng)
            seed = int(rng.integers(2**63))
            blocks = BlockedRows.of(labels, seed, design)
            yield blocks, blocks.relabellings(self.each, seed)
