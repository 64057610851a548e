"""All pairs of columns over the same rows: matrices and transforms of a column are made once and shared by its pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.dependence import effect_size, factor
from kerntest.inference.family import BandwidthOption, choose_kernel
from kerntest.inference.invariants import first_invariants, kernel_invariants
from kerntest.inference.nulls.moments import Invariants, moments_p_value, permutation_moments
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.order import ORDER_STREAM
from kerntest.inference.relabelling import centred_sums
from kerntest.inference.shifts import circle_length, orders_needed, shift_sums
from kerntest.inference.stacks import KernelStack
from kerntest.kernels.bandwidth import BandwidthChooser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.labels import Estimator
    from kerntest.inference.shifts import ShiftSums
    from kerntest.inference.variables import Variable
    from kerntest.kernels.base import Array, Kernel, Points

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
    """

    kernel: Kernel
    points: Points
    invariants: Invariants
    norm: float
    diagonal: Array


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
        One column each, n >= 4 rows in canonical order, none of them constant.
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
    invariants = kernel_invariants(chosen, points, engine, hollow=hollow, seed=options.seed)[0]
    norm = invariants.trace_square if hollow else first_invariants(chosen, points, engine, hollow=True).trace_square
    return ScreenedColumn(chosen, points, invariants, norm, chosen.diagonal(points))


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
    circle = circle_length(n)
    hollow = options.estimator == "unbiased"
    left, right = (sorted({pair[side] for pair in pairs}) for side in (0, 1))
    first, second = (
        KernelStack(
            [(known[k].points, (known[k].kernel,)) for k in side], orders, circle, hollow=hollow, centred_by_rows=True
        )
        for side, orders in ((left, places[:1]), (right, places))
    )
    sums = shift_sums(first, second, n=n, circle=circle, orders=len(places), engine=engine)
    observed = _both_estimates(sums, [known[k] for k in left], [known[k] for k in right], places[0], hollow=hollow)
    values = centred_sums(sums, places, circle, hollow=hollow)
    scale = factor(n, options.estimator)
    for a, b in pairs:
        x, y = known[a], known[b]
        f, g = left.index(a), right.index(b)
        relabelled = values[f, g].ravel()
        tolerance = tie_tolerance(float(np.abs(x.diagonal).max()), n, float(np.abs(y.diagonal).max()) * n)
        moments = permutation_moments(x.invariants, y.invariants, n)
        varies = moments.standard_deviation > tolerance
        unbiased, biased = observed[0][f, g], observed[1][f, g]
        yield ScreenedPair(
            unbiased=float(unbiased) * factor(n, "unbiased"),
            biased=float(biased) * factor(n, "biased"),
            effect_size=effect_size(float(unbiased), x.norm, y.norm),
            p_value=moments_p_value(float(relabelled[0]), moments) if varies else None,
            p_permutation=float(np.mean(relabelled >= relabelled[0] - tolerance)),
            permutations=len(relabelled),
            relabelled=scale * relabelled if keep else None,
            tolerance=scale * tolerance,
        )


def _both_estimates(
    sums: ShiftSums,
    left: Sequence[ScreenedColumn],
    right: Sequence[ScreenedColumn],
    place: NDArray[np.intp],
    *,
    hollow: bool,
) -> tuple[Array, Array]:
    """Return the observed <U(K), U(L)> and <HKH, HLH> of all pairs, from sums with or without the diagonals."""
    n = len(place)
    on_x, on_y = (np.stack([column.diagonal[place] for column in side]) for side in (left, right))
    raw = sums.values[:, :, 0, 0]
    both = on_x @ on_y.T
    without, whole = (raw, raw + both) if hollow else (raw - both, raw)
    rows_x, rows_y = (
        (rows, rows + diagonal) if hollow else (rows - diagonal, rows)
        for rows, diagonal in ((sums.rows_first, on_x), (sums.rows_second, on_y))
    )
    totals = [np.outer(rows_x[k].sum(axis=1), rows_y[k].sum(axis=1)) for k in (0, 1)]
    unbiased = without - 2.0 / (n - 2) * (rows_x[0] @ rows_y[0].T) + totals[0] / ((n - 1) * (n - 2))
    biased = whole - 2.0 / n * (rows_x[1] @ rows_y[1].T) + totals[1] / n**2
    return unbiased, biased


def _tell(progress: Progress | None, done: int, steps: int) -> None:
    if progress is not None:
        progress(done, steps)
