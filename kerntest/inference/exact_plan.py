"""What an exact test computes and holds, counted before it runs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kerntest.engines.engine import TABLE_BYTES, fitting, plan_wanted, tell
from kerntest.inference.nulls.moments import EXACT_TRACE_ROWS, PROBES
from kerntest.inference.relabelling.permuted_blocks import BLOCKS, TOGETHER_ROWS
from kerntest.inference.relabelling.permuted_pairs import refuse_whole
from kerntest.inference.relabelling.shifts import HELD_ENTRIES as TRANSFORMED_ENTRIES
from kerntest.inference.relabelling.shifts import MANY, circle_length, orders_needed
from kerntest.matrices.factor import FEW_ROWS, low_rank_factor
from kerntest.matrices.lags import HELD_ENTRIES, plan_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kerntest.engines.engine import Engine
    from kerntest.inference.sides import Options
    from kerntest.kernels.base import Kernel, Points

# Rows on which it is looked up whether a matrix has few columns.
SAMPLED = 4800
# Of measured peaks: what tiles and FFT take besides the arrays of a block, finished pieces that wait, copies of the sums
# while they are judged, and of vectors while a matrix is multiplied with them.
BLOCK_SHARE = 1.3
UNDER_WAY = 3
SUMS = 8
SWEPT = 8
# A tile of the matrices of a two-sample test with the arrays that go with it.
TILE_BYTES = 2**22
# The same of blocks of many matrices, in bytes for each entry.
STACKED_BYTES = 24.0
# A piece of a file, and each of its columns.
PIECE_BYTES, COLUMN_BYTES = 90 * 10**6, 3 * 10**6

ABOUT_FEATURES = "--method features takes any number of rows"
ABOUT_COLUMNS = "test fewer columns, or a part of the rows"


class Further(NamedTuple):
    """What an exact test computes besides: in words, how many matrices are held at once, and its operations."""

    what: str
    matrices: int
    operations: Mapping[str, float]


@dataclass(frozen=True)
class Work:
    """An exact test as far as its cost goes: the kernels over the rows, on one side (the other is the label) or on two."""

    command: str
    sides: Sequence[tuple[Points, Sequence[Kernel]]]
    columns: int
    options: Options
    statistic: str = "hsic"
    further: Sequence[Further] = ()

    @property
    def rows(self) -> int:
        """Number of rows n."""
        return len(self.sides[0][0])

    @property
    def paired(self) -> bool:
        """Whether both sides have kernels."""
        return len(self.sides) > 1

    @property
    def matrices(self) -> tuple[int, int]:
        """How many matrices stand on each side."""
        return len(self.sides[0][1]), len(self.sides[1][1]) if self.paired else 1

    @property
    def vectors(self) -> int:
        """How many vectors a null without relabellings multiplies a matrix with."""
        probes = {"moments": 2 * PROBES, "pearson": 2 * PROBES, "spectral": PROBES}.get(self.options.null, 0)
        return self.rows if probes and self.rows <= EXACT_TRACE_ROWS else probes

    @property
    def orders(self) -> int:
        """Random orders that the shifts take."""
        wanted = self.options.permutations if self.options.null == "permutation" else 1
        return orders_needed(wanted, circle_length(self.rows))

    @cached_property
    def ranks(self) -> list[int] | None:
        """The columns of all matrices of each side as products of few, as a sample of the rows shows; None where one is not."""
        if self.rows <= FEW_ROWS or self.options.null != "permutation":
            return None
        rows = np.unique(np.linspace(0, self.rows - 1, SAMPLED).astype(np.intp))
        ranks = []
        for points, kernels in self.sides:
            factors = [low_rank_factor(kernel, points.take(rows)) for kernel in kernels]
            known = [factor.columns.shape[1] for factor in factors if factor is not None]
            if len(known) < len(factors):
                return None
            ranks.append(sum(known))
        return ranks

    def held(self, threads: int) -> float:
        """Return about the bytes that a test holds: the rows, the blocks under way, and the sums."""
        held = TABLE_BYTES * float(self.rows) * self.columns
        if self.options.null in {"permutation", "pearson"} or self.further:
            held += self._relabelled(threads)
        if self.vectors:
            # With the diagonal beside the vectors of a cubic trace.
            beside = self.rows > EXACT_TRACE_ROWS and self.options.null != "spectral"
            held += self._swept(self.vectors + beside, threads)
        return held

    def _swept(self, vectors: int, threads: int) -> float:
        """Return the bytes that products of a matrix with so many vectors take: one set for each strip under way."""
        return 8.0 * self.rows * vectors * (threads + SWEPT)

    def _relabelled(self, threads: int) -> float:
        """Return the bytes that sums over relabellings take."""
        n, (first, second), permutations = self.rows, self.matrices, self.options.permutations
        if self.options.resampling == "random":
            whole = 8.0 * n * n * (first + second)
            return whole if self.paired else self._swept(min(TOGETHER_ROWS, permutations) + 1, threads)
        if not self.paired:
            first = max([first, *(one.matrices for one in self.further)])
            sums = min(n, 2 * BLOCKS) ** 2 * first
            return 8.0 * (SUMS * sums + first * permutations) + TILE_BYTES * threads
        circle, orders = circle_length(n), self.orders
        stacked = first >= MANY and second * orders >= MANY
        lines = max(block.count for block in plan_blocks(circle, n - circle, first + second if stacked else 1))
        # As `shift_sums` goes: transforms of the second side are held for some orders, of the first where it multiplies
        # all at once.
        together = second * min(orders, max(1, TRANSFORMED_ENTRIES // (second * circle * lines)))
        blocks = BLOCK_SHARE * threads * ((2 + first if stacked else 3) + together) * lines * circle
        spectra = (threads + UNDER_WAY) * first * together * circle
        return 8.0 * (blocks + spectra + SUMS * first * second * orders * circle)

    def step(self) -> str:
        """Return in words what will be computed."""
        n, permutations, (first, second) = self.rows, self.options.permutations, self.matrices
        count = f"{first} + {second}" if self.paired else f"{first}"
        counted = f"{count} kernel {'matrix' if max(first, second) == 1 else 'matrices'}"
        if self.options.null != "permutation":
            return f"{counted} in tiles, for the {self.options.null} null"
        if self.options.resampling == "random":
            whole = "whole" if self.paired else "in tiles"
            return f"{counted} {whole}, under {permutations:,} random permutations"
        few = "as products of few columns" if self.ranks is not None else ""
        if not self.paired:
            way = few or "in tiles"
            return f"{counted} {way}, summed over blocks of rows, under {permutations:,} permutations of these"
        circle = circle_length(n)
        blocks = len(plan_blocks(circle, n - circle))
        way = few or f"a block of lags at a time, {blocks:,} block{'' if blocks == 1 else 's'}"
        return f"{counted} {way}, under {self.orders * circle:,} cyclic relabellings"

    def operations(self, ranks: Sequence[int] | None = None) -> dict[str, float]:
        """Return how many operations of which kind a test takes; of matrices of low rank, if their ranks are known."""
        n, permutations, (first, second) = self.rows, self.options.permutations, self.matrices
        pairs, sides = float(n * n), len(self.sides)
        matrices = first + second * (sides - 1)
        passes = {"distance": sides * pairs, "product": self.columns * pairs, "kernel": matrices * pairs}
        if self.statistic == "coco":
            return passes | {"relabelled": 6.0 * permutations * pairs}
        if self.options.null != "permutation":
            # Sums, then the sums of squares and of products, then what the vectors need.
            return {"distance": 4.0 * matrices * pairs, "product": 2.0 * matrices * self.vectors * pairs}
        if self.options.resampling == "random" and self.paired:
            return passes | {"relabelled": 6.0 * permutations * first * second * pairs}
        if self.options.resampling == "random":
            return passes | {"product": (self.columns + permutations * matrices) * pairs}
        if ranks is not None:
            return {"product": 1e4 * n * matrices + 150.0 * n * math.prod(ranks)}
        if not self.paired:
            return passes | {"product": self.columns * pairs + permutations * first * float(min(n, 2 * BLOCKS)) ** 2}
        lines = first + second * self.orders
        return passes | {"lag": lines * pairs, "pair": first * second * self.orders * pairs}


def prepare(work: Work, engine: Engine) -> Engine:
    """Tell the plan of a test to whoever listens, and return the engine on which it fits into the memory."""
    engine = fitting(engine, work.held, what=f"the exact test of {work.rows:,} rows takes", hint=ABOUT_FEATURES)
    if work.options.resampling == "random" and work.paired and work.options.null == "permutation":
        refuse_whole(work.rows, sum(work.matrices))
    if plan_wanted(work.rows):
        operations = Counter(work.operations(work.ranks))
        for one in work.further:
            operations.update(one.operations)
        tell(
            work.command,
            work.rows,
            work.columns,
            steps=(work.step(), *(one.what for one in work.further)),
            held=work.held(engine.threads if engine.name == "local" else 1),
            operations=operations,
            engine=engine,
        )
    return engine


def held_by_stacks(rows: int, matrices: int, engine: Engine) -> float:
    """Return the bytes that blocks of lines of many matrices take while they are under way."""
    return STACKED_BYTES * min(HELD_ENTRIES, 128 * rows * matrices) * engine.threads


def piece_bytes(columns: int) -> int:
    """Return what a piece of a file takes while it is read and worked on (in Parquet its pages too)."""
    return PIECE_BYTES + COLUMN_BYTES * columns


def pieces_read_twice(count: int) -> str:
    """Return in words what both passes over files read."""
    return f", in {count:,} piece{'' if count == 1 else 's'} read twice"
