"""Tests of many pairs over the same rows: matrices, their transforms and the relabellings are shared by all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.nulls.curves import moments_p_value
from kerntest.inference.nulls.invariants import kernel_invariants, low_rank_invariants, permutation_moments
from kerntest.inference.nulls.permutation import scores, tie_tolerance
from kerntest.inference.relabelling.shifts import circle_length, low_rank_sums, orders_needed, shift_sums
from kerntest.inference.sides import ORDER_STREAM
from kerntest.inference.statistic import CORRELATIONS_PER_ROW, Effect, low_rank_dependence
from kerntest.matrices.factor import low_rank
from kerntest.matrices.lags import KernelStack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.nulls.invariants import Invariants
    from kerntest.inference.sides import Options
    from kerntest.kernels.base import Array, Kernel, Points
    from kerntest.matrices.factor import LowRank

# Matrices whose transforms are held together: pairs are done a square of so many matrices at a time,
TOGETHER = 32
# or of fewer, so that all relabelled statistics of a square are so many numbers (128 MB).
HELD_NUMBERS = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class ScreenedPair:
    """What a pair measures, its p-values by moments and over relabellings, and -log p under each of these if it is kept.

    There is no p-value by moments where no relabelling changes the statistic.
    """

    effect: Effect
    p_value: float | None
    p_permutation: float
    permutations: int
    scores: Array | None


@dataclass(frozen=True, slots=True, eq=False)
class _Matrix:
    """What all pairs of a kernel matrix share: its diagonal, its centring's invariants, and HKH where it has low rank."""

    points: Points
    kernel: Kernel
    diagonal: Array
    invariants: Invariants
    low_rank: LowRank | None

    @classmethod
    def of(cls, points: Points, kernel: Kernel, options: Options, engine: Engine) -> _Matrix:
        """Return what is shared; of a matrix of low rank without a sweep over all of it."""
        factor = low_rank(kernel, points)
        invariants = None if factor is None else low_rank_invariants(factor, hollow=options.hollow)
        if invariants is None:
            invariants = kernel_invariants(kernel, points, engine, hollow=options.hollow, seed=options.seed)[0]
        return cls(points, kernel, kernel.diagonal(points), invariants, factor)


def screen(
    sides: Sequence[tuple[Points, Kernel]],
    pairs: Sequence[tuple[int, int]],
    options: Options,
    engine: Engine,
    *,
    keep: bool = False,
    progress: Progress | None = None,
) -> list[ScreenedPair]:
    """Return the test of every pair of sides over the same n >= 4 rows, all with the same relabellings.

    `keep` says whether what these give is kept, as scores. Progress counts the sides, then squares of pairs.
    Cost: O(P n^2 + n^2 log n P^2 / 32 + pairs n^2 / 4) time for P sides; matrices are never held.
    """
    n = len(sides[0][0])
    circle = circle_length(n)
    rng = np.random.default_rng((options.seed, ORDER_STREAM))
    orders = [rng.permutation(n) for _ in range(orders_needed(options.permutations, circle))]
    together = max(1, min(TOGETHER, int(np.sqrt(HELD_NUMBERS / (len(orders) * circle)))))
    squares: dict[tuple[int, int], list[int]] = {}
    for index, (a, b) in enumerate(pairs):
        squares.setdefault((a // together, b // together), []).append(index)
    steps = len(sides) + len(squares)
    told = progress or (lambda _done, _all: None)
    matrices = []
    for points, kernel in sides:
        matrices.append(_Matrix.of(points, kernel, options, engine))
        told(len(matrices), steps)
    found: dict[int, ScreenedPair] = {}
    for number, members in enumerate(squares.values(), len(sides) + 1):
        both = [(matrices[pairs[index][0]], matrices[pairs[index][1]]) for index in members]
        measured = _measured(both, orders, options, engine)
        for index, (x, y), (effect, sums) in zip(members, both, measured, strict=True):
            tolerance = tie_tolerance(float(np.abs(x.diagonal).max()), n, float(np.abs(y.diagonal).max()) * n)
            moments = permutation_moments(x.invariants, y.invariants, n)
            found[index] = ScreenedPair(
                effect,
                moments_p_value(float(sums[0]), moments) if moments.standard_deviation > tolerance else None,
                float(np.mean(sums >= sums[0] - tolerance)),
                len(sums),
                scores(sums[None], np.array([tolerance]))[0][0] if keep else None,
            )
        told(number, steps)
    return [found[index] for index in range(len(pairs))]


def _measured(
    pairs: Sequence[tuple[_Matrix, _Matrix]], orders: Sequence[NDArray[np.intp]], options: Options, engine: Engine
) -> Iterator[tuple[Effect, Array]]:
    """Yield what every pair measures, and <A, B> under every relabelling, the observed first.

    By correlations of factors if all pairs have them and they cost less than the lags of the matrices, which pairs share.
    """
    n, hollow = len(orders[0]), options.hollow
    circle = circle_length(n)
    left, right = (list(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
    factors = [(x.low_rank, y.low_rank) for x, y in pairs if x.low_rank is not None and y.low_rank is not None]
    needed = sum(x.rank * y.rank for x, y in factors)
    if len(factors) == len(pairs) and needed <= CORRELATIONS_PER_ROW * n * len({*left, *right}) / 2:
        for one, other in factors:
            sums = low_rank_sums(one, other, orders, circle, hollow=hollow, engine=engine)
            yield low_rank_dependence(one, other), sums.ravel()
        return
    first, second = (
        KernelStack([(one.points, (one.kernel,)) for one in side], some, circle, hollow=hollow, centred_by_rows=True)
        for side, some in ((left, orders[:1]), (right, orders))
    )
    found = shift_sums(first, second, n=n, circle=circle, orders=len(orders), engine=engine)
    on_x, on_y = (np.stack([one.diagonal[orders[0]] for one in side]) for side in (left, right))
    effects, values = found.measured(on_x, on_y, hollow=hollow), found.centred(orders, hollow=hollow)
    for x, y in pairs:
        f, g = left.index(x), right.index(y)
        yield effects[f][g], values[f, g].ravel()
