"""All pairs of columns over the same rows: matrices and transforms of a column are made once and shared by its pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kerntest.inference.family import BandwidthOption, choose_kernel
from kerntest.inference.nulls.invariants import first_invariants, kernel_invariants, low_rank_invariants
from kerntest.inference.nulls.moments import Invariants, moments_p_value, permutation_moments
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.relabelling.shifts import circle_length, low_rank_sums, orders_needed, shift_sums
from kerntest.inference.sides import ORDER_STREAM
from kerntest.inference.statistic import CORRELATIONS_PER_ROW, effect_size, factor, inner
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.matrices.factor import low_rank
from kerntest.matrices.lags import KernelStack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.sides import Estimator, Variable
    from kerntest.kernels.base import Array, Kernel, Points
    from kerntest.matrices.factor import LowRank

# Columns whose transforms are held together: pairs are done a square of so many columns at a time,
TOGETHER = 32
# or of fewer, so that all relabelled statistics of a square are so many numbers (128 MB).
HELD_NUMBERS = 2**24


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """How every pair is tested."""

    kernel: Kernel | str
    bandwidth: BandwidthOption
    estimator: Estimator
    permutations: int
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class ScreenedPair:
    """What was found for one pair of columns.

    Parameters
    ----------
    unbiased, biased : float
        Both estimates of HSIC.
    effect_size : float
        sqrt of the normalised statistic.
    p_value : float or None
        By the moments of the permutation distribution; None where no relabelling changes the statistic.
    p_permutation : float
    permutations : int
    relabelled : ndarray, shape (R,), or None
        The statistic under every relabelling, where it was asked for.
    tolerance : float
        How far rounding can move it.
    """

    unbiased: float
    biased: float
    effect_size: float
    p_value: float | None
    p_permutation: float
    permutations: int
    relabelled: Array | None
    tolerance: float


@dataclass(frozen=True, slots=True, eq=False)
class ScreenedColumn:
    """One column with its kernel and what its pairs share.

    Parameters
    ----------
    kernel : Kernel
    points : Points
    invariants : Invariants
        Of the centred matrix.
    norm : float
        <U(K), U(K)>.
    diagonal : ndarray, shape (n,)
    low_rank : LowRank or None
        The centred matrix as a product of few columns, where it has that form.
    """

    kernel: Kernel
    points: Points
    invariants: Invariants
    norm: float
    diagonal: Array
    low_rank: LowRank | None


def screen(
    columns: Sequence[Variable],
    pairs: Sequence[tuple[int, int]],
    options: ScreenOptions,
    engine: Engine,
    *,
    keep: bool = False,
    progress: Progress | None = None,
) -> tuple[list[ScreenedPair], list[Kernel]]:
    """Test pairs of columns over the same rows, all with the same relabellings.

    Parameters
    ----------
    columns : sequence of P Variable
        One column each, n >= 4 rows, none of them constant.
    pairs : sequence of (int, int)
        Which to test.
    options : ScreenOptions
    engine : Engine
    keep : bool
        Whether to keep the relabelled statistics.
    progress : callable, optional
        Called with (columns and squares of pairs done, all of them).

    Returns
    -------
    list of ScreenedPair
        In the order of `pairs`.
    list of Kernel
        Of every column.

    Notes
    -----
    Cost: O(P n^2 + n^2 log n P^2 / 32 + pairs n^2 / 4) time; matrices are never held.
    """
    n = len(columns[0].points)
    circle = circle_length(n)
    rng = np.random.default_rng((options.seed, ORDER_STREAM))
    places = [rng.permutation(n) for _ in range(orders_needed(options.permutations, circle))]
    together = max(1, min(TOGETHER, int(np.sqrt(HELD_NUMBERS / (len(places) * circle)))))
    squares = _squares(pairs, together)
    steps = len(columns) + len(squares)
    known: list[ScreenedColumn] = []
    for place, column in enumerate(columns):
        known.append(_column(column, options, engine))
        _tell(progress, place + 1, steps)
    found: list[ScreenedPair | None] = [None] * len(pairs)
    for number, members in enumerate(squares):
        chosen = [pairs[index] for index in members]
        for index, result in zip(members, _square(known, chosen, places, options, engine, keep=keep), strict=True):
            found[index] = result
        _tell(progress, len(columns) + number + 1, steps)
    return [result for result in found if result is not None], [one.kernel for one in known]


def _squares(pairs: Sequence[tuple[int, int]], together: int) -> list[list[int]]:
    """Return the positions of the pairs, those of the same few columns together."""
    squares: dict[tuple[int, int], list[int]] = {}
    for index, (a, b) in enumerate(pairs):
        squares.setdefault((a // together, b // together), []).append(index)
    return list(squares.values())


def _column(column: Variable, options: ScreenOptions, engine: Engine) -> ScreenedColumn:
    """Return the kernel of one column and what its pairs share."""
    kernel = options.kernel if column.numeric_names else "auto"
    chosen = choose_kernel(
        kernel,
        options.bandwidth,
        numeric_names=column.numeric_names,
        category_names=column.category_names,
        chooser=BandwidthChooser(column.points, options.seed),
    ).kernels[0]
    hollow = options.estimator == "unbiased"
    points = column.points
    factor = low_rank(chosen, points)
    invariants = None if factor is None else low_rank_invariants(factor, hollow=hollow)
    if invariants is None:
        invariants = kernel_invariants(chosen, points, engine, hollow=hollow, seed=options.seed)[0]
    if hollow:
        norm = invariants.trace_square
    elif factor is not None:
        norm = inner(factor, factor, hollow=True)
    else:
        norm = first_invariants(chosen, points, engine, hollow=True).trace_square
    return ScreenedColumn(chosen, points, invariants, norm, chosen.diagonal(points), factor)


def _square(
    known: Sequence[ScreenedColumn],
    pairs: Sequence[tuple[int, int]],
    places: Sequence[NDArray[np.intp]],
    options: ScreenOptions,
    engine: Engine,
    *,
    keep: bool,
) -> Iterator[ScreenedPair]:
    """Yield what is found for some pairs of a few columns."""
    n = len(places[0])
    scale = factor(n, options.estimator)
    hollow = options.estimator == "unbiased"
    factors = _factors(known, pairs, n)
    measured = (
        _by_lines(known, pairs, places, engine, hollow=hollow)
        if factors is None
        else _by_factors(factors, places, engine, hollow=hollow)
    )
    for (a, b), (unbiased, biased, relabelled, doubt) in zip(pairs, measured, strict=True):
        x, y = known[a], known[b]
        tolerance = tie_tolerance(float(np.abs(x.diagonal).max()), n, float(np.abs(y.diagonal).max()) * n) + doubt
        moments = permutation_moments(x.invariants, y.invariants, n)
        varies = moments.standard_deviation > tolerance
        yield ScreenedPair(
            unbiased=unbiased * factor(n, "unbiased"),
            biased=biased * factor(n, "biased"),
            effect_size=effect_size(unbiased, x.norm, y.norm),
            p_value=moments_p_value(float(relabelled[0]), moments) if varies else None,
            p_permutation=float(np.mean(relabelled >= relabelled[0] - tolerance)),
            permutations=len(relabelled),
            relabelled=scale * relabelled if keep else None,
            tolerance=scale * tolerance,
        )


# Observed <U(K), U(L)> and <HKH, HLH>, the one that is tested under every relabelling, and how far it may be off beyond
# the rounding of float64.
Measured: TypeAlias = "tuple[float, float, Array, float]"


def _factors(
    known: Sequence[ScreenedColumn], pairs: Sequence[tuple[int, int]], n: int
) -> list[tuple[LowRank, LowRank]] | None:
    """Return the factors of every pair if their correlations cost less than the lags of columns, which pairs share."""
    factors = [
        (x, y) for x, y in ((known[a].low_rank, known[b].low_rank) for a, b in pairs) if x is not None and y is not None
    ]
    columns = len({place for pair in pairs for place in pair})
    correlations = sum(x.rank * y.rank for x, y in factors)
    least = len(factors) == len(pairs) and correlations <= CORRELATIONS_PER_ROW * n * columns / 2
    return factors if least else None


def _by_factors(
    factors: Sequence[tuple[LowRank, LowRank]], places: Sequence[NDArray[np.intp]], engine: Engine, *, hollow: bool
) -> Iterator[Measured]:
    """Yield what is measured for each pair, from factors of low rank."""
    circle = circle_length(len(places[0]))
    for x, y in factors:
        values = low_rank_sums(x, y, places, circle, hollow=hollow, engine=engine)
        yield inner(x, y, hollow=True), inner(x, y, hollow=False), values.ravel(), 0.0


def _by_lines(
    known: Sequence[ScreenedColumn],
    pairs: Sequence[tuple[int, int]],
    places: Sequence[NDArray[np.intp]],
    engine: Engine,
    *,
    hollow: bool,
) -> Iterator[Measured]:
    """Yield what is measured for each pair, from the lines of all columns."""
    n = len(places[0])
    circle = circle_length(n)
    left, right = (sorted({pair[side] for pair in pairs}) for side in (0, 1))
    first, second = (
        KernelStack(
            [(known[k].points, (known[k].kernel,)) for k in side], orders, circle, hollow=hollow, centred_by_rows=True
        )
        for side, orders in ((left, places[:1]), (right, places))
    )
    sums = shift_sums(first, second, n=n, circle=circle, orders=len(places), engine=engine)
    on_x, on_y = (np.stack([known[k].diagonal[places[0]] for k in side]) for side in (left, right))
    found = sums.measured(on_x, on_y, hollow=hollow)
    values = sums.centred(places, hollow=hollow)
    for a, b in pairs:
        f, g = left.index(a), right.index(b)
        one = found[f][g]
        yield one.unbiased / factor(n, "unbiased"), one.biased / factor(n, "biased"), values[f, g].ravel(), 0.0


def _tell(progress: Progress | None, done: int, steps: int) -> None:
    if progress is not None:
        progress(done, steps)
