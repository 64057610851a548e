"""The second pass of a streamed two-sample test: sums of features over blocks of rows drawn at random.

Permuting whole blocks of rows that lie in random order is a group of relabellings, so that the test is exact in finite
samples under exchangeability (Domingo-Enrich, Dwivedi and Mackey 2025, "Cheap permutation testing").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import DataError
from kerntest.inference.streamed.assignment import Blocks, RandomOrder
from kerntest.inference.streamed.block_features import TOGETHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.streamed.block_features import BlockFeatures
    from kerntest.inference.streamed.rows import Piece, RowReader
    from kerntest.kernels.base import Array

# Blocks of both files together, and those of the smaller one at least.
BLOCKS, FEWEST_BLOCKS = 1000, 50
# Free blocks of a file that has many more rows than the other; its other rows keep their file, in so many blocks.
MOST_BLOCKS, FIXED_BLOCKS = 2000, 50
FEWEST_ROWS = 200
# How much smaller than wanted blocks may be for the sake of fewer rows beyond the last whole one.
ROUNDER = 0.9


def plan_blocks(n: Sequence[int], names: Sequence[str]) -> tuple[Blocks, Blocks]:
    """Return how the rows of two files lie in blocks of one size.

    Parameters
    ----------
    n : pair of int
        Rows.
    names : pair of str
        For messages.

    Raises
    ------
    DataError
        If a file has too few rows for blocks.
    """
    for count, name in zip(n, names, strict=True):
        if count < FEWEST_ROWS:
            raise DataError(
                f"{name} has {count:,} rows; with features a test needs at least {FEWEST_ROWS} in each table",
                hint="--method exact takes any number",
                code="data.too_few_rows",
                where={"file": name},
            )
    most = max(1, min(sum(n) // BLOCKS, min(n) // FEWEST_BLOCKS))
    sizes = np.arange(max(1, math.ceil(ROUNDER * most)), most + 1)[::-1]
    size = int(sizes[int(np.argmin(sum(np.where(count // sizes > MOST_BLOCKS, 0, count % sizes) for count in n)))])
    return _blocks(n[0], size), _blocks(n[1], size)


def _blocks(n: int, size: int) -> Blocks:
    free = min(n // size, MOST_BLOCKS)
    return Blocks(n, free, size, min(n - free * size, FIXED_BLOCKS))


@dataclass(frozen=True, slots=True, eq=False)
class BlockSummer:
    """The work of the second pass on one piece.

    Parameters
    ----------
    reader : RowReader
    features : BlockFeatures
    blocks : pair of Blocks
    seed : int
    """

    reader: RowReader
    features: BlockFeatures
    blocks: tuple[Blocks, Blocks]
    seed: int

    def __call__(self, piece: Piece) -> tuple[int, Array]:
        """Return which input the piece is of, and its sums, shape (blocks, F, D).

        Notes
        -----
        Cost: O(m M (p + F)) time for m rows; memory for the sums and a batch of rows.
        """
        blocks = self.blocks[piece.source]
        order = RandomOrder(blocks.n, self.seed, piece.source)
        sums = np.zeros((blocks.count, len(self.features.kernels), self.features.width))
        before = piece.used_before
        step = max(64, TOGETHER // self.features.width)
        for points in self.reader.read(piece):
            block = blocks.of(order.places(np.arange(before, before + len(points))))
            before += len(points)
            together = np.argsort(block, kind="stable")
            summed, block = self.features.over(points.take(together)), block[together]
            for start, stop in pairwise([*range(0, len(block), step), len(block)]):
                own = block[start:stop]
                starts = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))
                # Each block occurs once among the starts: no two of them are added to one place.
                sums[own[starts]] += summed(start, stop, starts)
        return piece.source, sums


def block_sums(
    work: BlockSummer, pieces: Iterable[Piece], engine: Engine, progress: Progress | None, *, total: int
) -> tuple[Array, Array]:
    """Return the sums over the blocks of both inputs, each of shape (blocks, F, D).

    Sums of pieces are added in the order of the pieces: they do not depend on what runs side by side.
    """
    shape = (len(work.features.kernels), work.features.width)
    x, y = (np.zeros((blocks.count, *shape)) for blocks in work.blocks)
    for source, sums in engine.map(work, pieces, progress, total=total):
        (y if source else x)[:] += sums
    return x, y
