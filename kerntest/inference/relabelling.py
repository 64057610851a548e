"""The independence statistic under every relabelling: cyclic shifts of the rows of y, or random permutations of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.setting import allowed_bytes
from kerntest.errors import UndecidedError
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.shifts import (
    ShiftSums,
    circle_length,
    correlations_needed,
    low_rank_sums,
    orders_needed,
    shift_sums,
)
from kerntest.inference.sides import ORDER_STREAM
from kerntest.inference.statistic import Effect, factor, low_rank_dependence, low_rank_pair
from kerntest.matrices.factor import FEW_ROWS, LEFT_OUT
from kerntest.matrices.lags import KernelStack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.sides import Estimator, Resampling
    from kerntest.kernels.base import Array, Kernel, Points
    from kerntest.matrices.factor import LowRank

# Random permutations work on whole matrices: so many entries of all of them together (1 GB).
DENSE_ENTRIES = 2**27
# Random permutations that one piece of work judges.
TOGETHER = 16
# What lines of one matrix of a family cost in correlations a row, and what they cost more for each column that they are
# made of (measured: 4 ns an entry of a correlation, 5 of a line and 0.075 for each column; half as many lines as rows).
LINES, LINES_PER_COLUMN = 0.6, 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Relabelled:
    """Sums <A_f, B_g> of centred kernel matrices over one set of relabellings.

    Parameters
    ----------
    sums : ndarray, shape (F, G, R)
        [:, :, 0] is the observed pairing of rows.
    factor : float
        The estimate of HSIC is `factor` * <A, B>.
    tolerances : ndarray, shape (F, G)
        How far rounding can move a sum.
    resampling : str
        What the relabellings are, in words.
    orders : int or None
        Random orders of the rows, for shifts.
    dependences : (F, G) nested sequences of Effect or None, or None
        What every wanted pair measures, where the shifts have summed up all that it takes.
    """

    sums: Array
    factor: float
    tolerances: Array
    resampling: str
    orders: int | None
    dependences: Sequence[Sequence[Effect | None]] | None = None


Source = tuple["Points", "Sequence[Kernel]"]
Factors = tuple["Sequence[LowRank | None]", "Sequence[LowRank | None]"]


def _members(side: Sequence[Source], places: Sequence[int]) -> list[Source]:
    """Return the sources of some members of a side, in their order."""
    found: list[Source] = []
    start = 0
    for points, kernels in side:
        kept = [kernel for place, kernel in enumerate(kernels, start) if place in places]
        start += len(kernels)
        if kept:
            found.append((points, kept))
    return found


def _low_rank(first: Sequence[Source], second: Sequence[Source], engine: Engine) -> tuple[LowRank, LowRank] | None:
    """Return both matrices as products of few columns, for one kernel on either side that has this form."""
    if [len(kernels) for side in (first, second) for _, kernels in side] != [1, 1]:
        return None
    (x, (kernel_x,)), (y, (kernel_y,)) = first[0], second[0]
    return low_rank_pair(kernel_x, x, kernel_y, y, engine)


def relabelled_sums(
    first: Sequence[Source],
    second: Sequence[Source],
    *,
    estimator: Estimator,
    relabellings: int,
    seed: int,
    engine: Engine,
    resampling: Resampling = "shifts",
    progress: Progress | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    factors: Factors | None = None,
) -> Relabelled:
    """Return <A_f, B_g> for all pairs of kernels, or for some, and shared relabellings.

    Parameters
    ----------
    first, second : sequence of (Points, sequence of Kernel)
        n >= 4 rows each, row i of all of them being the same case. F kernels in all on one side, G on the other.
    estimator : "unbiased" or "biased"
        Which centring.
    relabellings : int
        How many at least, the identity among them.
    seed : int
    engine : Engine
    resampling : "shifts" or "random"
    progress : callable, optional
    pairs : sequence of (int, int), optional
        The pairs that are wanted, where not all are.
    factors : (F LowRank or None, G LowRank or None), optional
        The centred matrices that are known as products of few columns, for correlations of these instead of lines.

    Raises
    ------
    UndecidedError
        If random permutations would take more than 1 GB.

    Notes
    -----
    Cost: of shifts as in `shift_sums`, or as in `low_rank_sums` where that is less; of random permutations O(F G n^2) time each and 8 (F + G) n^2 bytes.
    """
    n = len(first[0][0])
    rng = np.random.default_rng((seed, ORDER_STREAM))
    orders: int | None = None
    left_out = (0.0, 0.0)
    doubt: Array | float = 0.0
    dependences = None
    if resampling == "random":
        permutations = [np.arange(n)] + [rng.permutation(n) for _ in range(relabellings - 1)]
        sums = _random_sums(first, second, permutations, estimator=estimator, engine=engine, progress=progress)
    else:
        circle = circle_length(n)
        orders = orders_needed(relabellings, circle)
        order = rng.permutation(n)
        places = [order] + [rng.permutation(n) for _ in range(orders - 1)]
        pair = _low_rank(first, second, engine)
        if pair is not None:
            hollow = estimator == "unbiased"
            low = low_rank_sums(*pair, places, circle, hollow=hollow, engine=engine, progress=progress)
            sums = low.reshape(1, 1, -1)
            left_out = pair[0].residual, pair[1].residual
        else:
            sums, doubt, dependences = _by_shifts(
                first,
                second,
                places,
                circle=circle,
                estimator=estimator,
                engine=engine,
                progress=progress,
                pairs=pairs,
                factors=factors,
            )
    largest_x, largest_y = (
        np.array([np.abs(kernel.diagonal(points)).max() for points, kernels in side for kernel in kernels])
        for side in (first, second)
    )
    tolerances = np.array([[tie_tolerance(float(a), n, float(b) * n) for b in largest_y] for a in largest_x])
    # The trace of what is left out of one matrix, times a bound on the norm of the other, bounds what it could add.
    tolerances += n * (left_out[0] * largest_y[None, :] + left_out[1] * largest_x[:, None])
    tolerances += doubt
    words = "random permutations" if orders is None else "cyclic shifts"
    return Relabelled(sums, factor(n, estimator), tolerances, words, orders, dependences)


def _by_shifts(
    first: Sequence[Source],
    second: Sequence[Source],
    places: Sequence[NDArray[np.intp]],
    *,
    circle: int,
    estimator: Estimator,
    engine: Engine,
    progress: Progress | None,
    pairs: Sequence[tuple[int, int]] | None,
    factors: Factors | None,
) -> tuple[Array, Array, list[list[Effect | None]] | None]:
    """Return the sums over all shifts, shape (F, G, R), the doubt of each pair beyond rounding, and what it measures."""
    n, hollow = len(places[0]), estimator == "unbiased"
    shape = tuple(sum(len(kernels) for _, kernels in side) for side in (first, second))
    wanted = list(pairs or np.ndindex(*shape))
    correlated = [] if factors is None else _cheaper_by_factors(factors, wanted)
    by_factors = {(one, other) for one, other, _, _ in correlated}
    lined = [pair for pair in wanted if pair not in by_factors]
    sums, doubt = np.zeros((*shape, len(places) * circle)), np.zeros(shape)
    measured: list[list[Effect | None]] = [[None] * shape[1] for _ in range(shape[0])]
    if lined:
        f, g = (sorted(set(side)) for side in zip(*lined, strict=True))
        here, there = _members(first, f), _members(second, g)
        found = _shift_sums(
            here,
            there,
            places[0],
            places,
            circle=circle,
            estimator=estimator,
            engine=engine,
            progress=progress,
            pairs=[(f.index(one), g.index(other)) for one, other in lined],
        )
        if n > FEW_ROWS:
            on_x, on_y = (
                np.stack([kernel.diagonal(points)[places[0]] for points, kernels in side for kernel in kernels])
                for side in (here, there)
            )
            of_lines = found.measured(on_x, on_y, hollow=hollow)
            for one, other in lined:
                measured[one][other] = of_lines[f.index(one)][g.index(other)]
        values = found.centred(places, hollow=hollow)
        sums[np.ix_(f, g)] = values.reshape(len(f), len(g), -1)
    for one, other, x, y in correlated:
        low = low_rank_sums(x, y, places, circle, hollow=hollow, engine=engine, tolerance=LEFT_OUT)
        sums[one, other] = low.ravel()
        # The trace of what is left out of one matrix, times the trace of the other, bounds what it could add.
        trace_x, trace_y = float(x.lengths.sum()), float(y.lengths.sum())
        doubt[one, other] = x.residual * trace_y + y.residual * trace_x + LEFT_OUT * trace_x * trace_y
        # Through the engine, which holds BLAS to one thread.
        measured[one][other] = next(engine.here.map(lambda both: low_rank_dependence(*both), [(x, y)]))
    return sums, doubt, measured if n > FEW_ROWS else None


def _cheaper_by_factors(factors: Factors, wanted: Sequence[tuple[int, int]]) -> list[tuple[int, int, LowRank, LowRank]]:
    """Return the pairs whose correlations spare the lines of a matrix and cost less, with their factors; all or none."""
    possible = {
        (f, g): (x, y) for f, g in wanted if (x := factors[0][f]) is not None and (y := factors[1][g]) is not None
    }
    lined = [pair for pair in wanted if pair not in possible]
    needless = [{pair[side] for pair in possible} - {pair[side] for pair in lined} for side in (0, 1)]
    spared = sum(
        len(one.columns) * (LINES + LINES_PER_COLUMN * one.rank)
        for side, members in zip(factors, needless, strict=True)
        for member in members
        if (one := side[member]) is not None
    )
    chosen = [(f, g, x, y) for (f, g), (x, y) in possible.items() if f in needless[0] or g in needless[1]]
    needed = sum(int(correlations_needed(x, y, LEFT_OUT).sum()) for _, _, x, y in chosen)
    return chosen if needed <= spared else []


def shifted_statistics(
    first: Sequence[Source],
    second: Sequence[Source],
    order: NDArray[np.intp],
    places: Sequence[NDArray[np.intp]],
    *,
    circle: int,
    estimator: Estimator,
    engine: Engine,
    progress: Progress | None = None,
) -> Array:
    """Return <A_f, B_g> for every shift of every order of the rows of the second side.

    Parameters
    ----------
    first, second, estimator, engine, progress
        As in `relabelled_sums`.
    order : ndarray of int, shape (n,)
        Which row stands at each place on the first side.
    places : sequence of ndarray of int, shape (n,)
        The same for the second side, in each of C orders; the first is `order`.
    circle : int
        Rows that lie on the circle.

    Returns
    -------
    ndarray, shape (F, G, C * circle)
    """
    found = _shift_sums(
        first, second, order, places, circle=circle, estimator=estimator, engine=engine, progress=progress
    )
    values = found.centred(places, hollow=estimator == "unbiased")
    return values.reshape(*values.shape[:2], -1)


def _shift_sums(
    first: Sequence[Source],
    second: Sequence[Source],
    order: NDArray[np.intp],
    places: Sequence[NDArray[np.intp]],
    *,
    circle: int,
    estimator: Estimator,
    engine: Engine,
    progress: Progress | None,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> ShiftSums:
    """Return the sums over the matrices as they are, or with zero diagonals."""
    hollow = estimator == "unbiased"
    stack = KernelStack(first, [order], circle, hollow=hollow, centred_by_rows=True)
    others = KernelStack(second, places, circle, hollow=hollow, centred_by_rows=True)
    return shift_sums(
        stack,
        others,
        n=len(order),
        circle=circle,
        orders=len(places),
        engine=engine,
        progress=progress,
        pairs=pairs,
    )


def refuse_whole(n: int, count: int) -> None:
    """Refuse so many whole matrices of n rows where they would take too much memory.

    Raises
    ------
    UndecidedError
        As above.
    """
    most = math.isqrt(allowed_bytes(8 * DENSE_ENTRIES) // (8 * count))
    if n > most:
        matrices = "two kernels" if count == 2 else f"{count} kernels"
        raise UndecidedError(
            f"random permutations of {matrices} hold whole matrices: {n:,} rows are more than {most:,}",
            hint="--resampling shifts has no such limit" + ("" if count == 2 else "; or name one kernel for each side"),
            code="undecided.memory",
        )


def _random_sums(
    first: Sequence[Source],
    second: Sequence[Source],
    permutations: Sequence[NDArray[np.intp]],
    *,
    estimator: Estimator,
    engine: Engine,
    progress: Progress | None,
) -> Array:
    """Return <A_f, B_g> when row p(i) of the second side is paired with row i of the first, for every p."""
    n = len(permutations[0])
    refuse_whole(n, sum(len(kernels) for side in (first, second) for _, kernels in side))
    left = _centred_matrices(first, estimator).reshape(-1, n * n)
    right = _centred_matrices(second, estimator)
    parts = [permutations[start : start + TOGETHER] for start in range(0, len(permutations), TOGETHER)]

    def work(part: Sequence[NDArray[np.intp]]) -> Array:
        sums = np.empty((len(left), len(right), len(part)))
        for number, p in enumerate(part):
            for member, matrix in enumerate(right):
                sums[:, member, number] = left @ matrix[p][:, p].ravel()
        return sums

    # Whole matrices stay where they are: other processes would each need a copy.
    return np.concatenate(list(engine.here.map(work, parts, progress)), axis=2)


def _centred_matrices(side: Sequence[Source], estimator: Estimator) -> Array:
    """Return the centred matrices of all kernels of a side, shape (members, n, n)."""
    return np.stack([centred_matrix(kernel(points), estimator) for points, kernels in side for kernel in kernels])


def centred_matrix(K: NDArray[Any], estimator: Estimator) -> Array:
    """Return HKH, or the U-centring of K, as a new array."""
    n = len(K)
    A: Array = np.array(K, dtype=np.float64)
    if estimator == "biased":
        A -= A.mean(axis=0)
        A -= A.mean(axis=1, keepdims=True)
        return A
    np.fill_diagonal(A, 0.0)
    rows = A.sum(axis=1)
    A -= rows / (n - 2)
    A -= (rows / (n - 2))[:, None]
    A += rows.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(A, 0.0)
    return A
