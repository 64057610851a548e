"""What an exact test computes and holds, counted before it runs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.plan import TABLE_BYTES, fitting, plan_wanted, tell
from kerntest.inference.nulls.invariants import EXACT_TRACE_ROWS, PROBES
from kerntest.inference.relabelling.pairings import refuse_whole
from kerntest.inference.relabelling.permuted_blocks import BLOCKS, TOGETHER_ROWS
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


@dataclass(frozen=True, slots=True)
class Further:
    """What an exact test computes besides: in words, how many matrices are held at once, and its operations."""

    what: str
    matrices: int
    operations: Mapping[str, float]


@dataclass(frozen=True, slots=True)
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
    def matrices(self) -> tuple[int, int]:
        """How many matrices stand on each side."""
        counts = [len(kernels) for _, kernels in self.sides]
        return counts[0], (counts[1] if len(counts) > 1 else 1)


def prepare(work: Work, engine: Engine) -> Engine:
    """Tell the plan of a test to whoever listens, and return the engine on which it fits into the memory."""
    engine = fitting(
        engine,
        lambda threads: _held(work, threads),
        what=f"the exact test of {work.rows:,} rows takes",
        hint=ABOUT_FEATURES,
    )
    if work.options.resampling == "random" and len(work.sides) > 1 and work.options.null == "permutation":
        refuse_whole(work.rows, sum(work.matrices))
    if plan_wanted(work.rows):
        ranks = _ranks(work)
        operations = Counter(operations_of(work, ranks))
        for one in work.further:
            operations.update(one.operations)
        tell(
            work.command,
            work.rows,
            work.columns,
            steps=(_step(work, low_rank=ranks is not None), *(one.what for one in work.further)),
            held=_held(work, engine.threads if engine.name == "local" else 1),
            operations=operations,
            engine=engine,
        )
    return engine


def _held(work: Work, threads: int) -> float:
    """Return about the bytes that a test holds: the rows, the blocks under way, and the sums."""
    held: float = TABLE_BYTES * work.rows * work.columns
    null = work.options.null
    if null in {"permutation", "pearson"} or work.further:
        held += _of_relabellings(work, threads)
    if null in {"moments", "pearson"}:
        held += _of_sweeps(work.rows, work.rows if work.rows <= EXACT_TRACE_ROWS else 2 * PROBES + 1, threads)
    elif null == "spectral":
        held += _of_sweeps(work.rows, work.rows if work.rows <= EXACT_TRACE_ROWS else PROBES, threads)
    return held


def _of_relabellings(work: Work, threads: int) -> float:
    """Return the bytes that sums over relabellings take."""
    n, (first, second) = work.rows, work.matrices
    if work.options.resampling == "random":
        if len(work.sides) > 1:
            return 8.0 * n * n * (first + second)
        return _of_sweeps(n, min(TOGETHER_ROWS, work.options.permutations) + 1, threads)
    if len(work.sides) == 1:
        first = max([first, *(one.matrices for one in work.further)])
        sums = min(n, 2 * BLOCKS) ** 2 * first
        return 8.0 * (SUMS * sums + first * work.options.permutations) + TILE_BYTES * threads
    circle = circle_length(n)
    orders = orders_needed(work.options.permutations, circle) if work.options.null == "permutation" else 1
    stacked = first >= MANY and second * orders >= MANY
    lines = max(block.count for block in plan_blocks(circle, n - circle, first + second if stacked else 1))
    # As `shift_sums` goes: transforms of the second side are held for some orders, of the first where it multiplies
    # all at once.
    together = second * min(orders, max(1, TRANSFORMED_ENTRIES // (second * circle * lines)))
    arrays = (2 + first if stacked else 3) + together
    blocks = BLOCK_SHARE * threads * arrays * lines * circle
    spectra = (threads + UNDER_WAY) * first * together * circle
    return 8.0 * (blocks + spectra + SUMS * first * second * orders * circle)


def _of_sweeps(n: int, vectors: int, threads: int) -> float:
    """Return the bytes that products of a matrix with so many vectors take: one set for each strip under way."""
    return 8.0 * n * vectors * (threads + SWEPT)


def _step(work: Work, *, low_rank: bool) -> str:
    """Return in words what will be computed."""
    first, second = work.matrices
    what = "matrix" if max(first, second) == 1 else "matrices"
    counted = f"{first} kernel {what}" if len(work.sides) == 1 else f"{first} + {second} kernel {what}"
    circle, permutations = circle_length(work.rows), work.options.permutations
    if work.options.null != "permutation":
        return f"{counted} in tiles, for the {work.options.null} null"
    if work.options.resampling == "random":
        whole = "whole" if len(work.sides) > 1 else "in tiles"
        return f"{counted} {whole}, under {permutations:,} random permutations"
    if len(work.sides) == 1:
        way = "as products of few columns" if low_rank else "in tiles"
        return f"{counted} {way}, summed over blocks of rows, under {permutations:,} permutations of these"
    blocks = len(plan_blocks(circle, work.rows - circle))
    way = f"a block of lags at a time, {blocks:,} block{'' if blocks == 1 else 's'}"
    if low_rank:
        way = "as products of few columns"
    return f"{counted} {way}, under {orders_needed(permutations, circle) * circle:,} cyclic relabellings"


def operations_of(work: Work, ranks: Sequence[int] | None = None) -> dict[str, float]:
    """Return how many operations of which kind a test takes."""
    n, permutations, null = work.rows, work.options.permutations, work.options.null
    pairs, (first, second) = float(n * n), work.matrices
    sides = len(work.sides)
    matrices = first + second * (sides - 1)
    passes = {"distance": sides * pairs, "product": work.columns * pairs, "kernel": matrices * pairs}
    if work.statistic == "coco":
        return passes | {"relabelled": 6.0 * permutations * pairs}
    if null != "permutation":
        vectors = {"moments": 2 * PROBES, "pearson": 2 * PROBES, "spectral": PROBES}.get(null, 0)
        if n <= EXACT_TRACE_ROWS and vectors:
            vectors = n
        # Sums, then the sums of squares and of products, then what the vectors need.
        return {"distance": 4.0 * matrices * pairs, "product": 2.0 * matrices * vectors * pairs}
    if work.options.resampling == "random":
        if sides == 1:
            return passes | {"product": (work.columns + permutations * matrices) * pairs}
        return passes | {"relabelled": 6.0 * permutations * first * second * pairs}
    if ranks is not None:
        return {"product": 1e4 * n * matrices + 150.0 * n * math.prod(ranks)}
    if sides == 1:
        return passes | {"product": work.columns * pairs + permutations * first * float(min(n, 2 * BLOCKS)) ** 2}
    orders = orders_needed(permutations, circle_length(n))
    return passes | {"lag": (first + second * orders) * pairs, "pair": first * second * orders * pairs}


def held_by_stacks(rows: int, matrices: int, engine: Engine) -> float:
    """Return the bytes that blocks of lines of many matrices take while they are under way."""
    return STACKED_BYTES * min(HELD_ENTRIES, 128 * rows * matrices) * engine.threads


def piece_bytes(columns: int) -> int:
    """Return what a piece of a file takes while it is read and worked on (in Parquet its pages too)."""
    return PIECE_BYTES + COLUMN_BYTES * columns


def pieces_read_twice(count: int) -> str:
    """Return in words what both passes over files read."""
    return f", in {count:,} piece{'' if count == 1 else 's'} read twice"


def _ranks(work: Work) -> list[int] | None:
    """Return the columns of all matrices of each side as products of few, as a sample of the rows shows; None where one is not."""
    if work.rows <= FEW_ROWS or work.options.null != "permutation":
        return None
    rows = np.unique(np.linspace(0, work.rows - 1, SAMPLED).astype(np.intp))
    ranks = []
    for points, kernels in work.sides:
        factors = [low_rank_factor(kernel, points.take(rows)) for kernel in kernels]
        if None in factors:
            return None
        ranks.append(sum(factor.columns.shape[1] for factor in factors if factor is not None))
    return ranks
