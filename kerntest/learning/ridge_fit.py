"""Fitting a ridge regression: the spectrum of each bandwidth, the grid, and the model of the cell that is chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.local import LocalEngine
from kerntest.engines.setting import allowed_bytes
from kerntest.errors import UndecidedError
from kerntest.kernels.base import DensePairs, Points
from kerntest.learning.cross_validation import draw_folds
from kerntest.learning.kernel_choice import at_multiples
from kerntest.learning.ridge_options import AUTO
from kerntest.learning.solvers.ridge_path import DENSE_ARRAYS, RidgePath, dense_spectrum, thin_spectrum
from kerntest.learning.ties import smoothest
from kerntest.matrices.factor import kernel_factor, make_features, parse_features
from kerntest.report.ridge_record import RidgeCell, RidgeGrid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.kernel_choice import ChosenKernel
    from kerntest.learning.ridge_data import RidgeRows
    from kerntest.learning.ridge_options import RidgeOptions
    from kerntest.matrices.factor import FeatureMap

# Bandwidths as multiples of the median, in fifths of a decade, and lambdas as multiples of the size of the kernel, in
# halves of a decade.
MULTIPLES = tuple(float(f"{10.0 ** (k / 5):.2g}") for k in range(-5, 5))
LAMBDAS = tuple(float(f"{10.0 ** (k / 2):.3g}") for k in range(-13, 7))
TIES = "the best score; of equal ones the smoothest: the largest lambda, then the largest bandwidth"
# Bytes that the matrices of all bandwidths at work may have together.
MEMORY = 4 * 10**9
# Rows that the size of a kernel is estimated from.
SIZE_ROWS = 1000
# Values of a kernel whose sums are still numbers.
LARGEST_VALUE = 1e300
# From so many rows on, a factor of low rank is looked for; so many of them decide whether there may be one. It leaves
# this share of the trace: what rounding leaves of it anyway.
LEAST_ROWS, PROBED, FACTOR_TOLERANCE = 1000, 600, 1e-15
# Its columns, as shares of the rows and of the rows that decide.
MOST_COLUMNS, MOST_PROBED = 1 / 3, 0.75


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """All ridge regressions with one kernel.

    Parameters
    ----------
    kernel : Kernel or None
    path : RidgePath
    means : ndarray, shape (n,), or (M,) with features
        Weighted mean over the rows i of k(x_i, .) at each row; with features their weighted mean.
    middle : float
        The mean of `means`; with features the squared length of their mean.
    features : FeatureMap or None
    values : ndarray, shape (n, M), or None
        Those of the features.
    """

    kernel: Kernel | None
    path: RidgePath
    means: Array
    middle: float
    features: FeatureMap | None = None
    values: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The cell that was chosen, and what it was chosen from."""

    lambda_: float
    kernel: Kernel | None
    solved: Solved
    grid: RidgeGrid


def choose(
    rows: RidgeRows,
    chosen: ChosenKernel | None,
    options: RidgeOptions,
    engine: Engine,
    *,
    features: str | None = None,
    progress: Progress | None = None,
) -> Choice:
    """Return the lambda and the bandwidth that the criterion chooses; those that are given are the only ones tried.

    Parameters
    ----------
    rows : RidgeRows
        n rows.
    chosen : ChosenKernel or None
        None for a precomputed matrix.
    options : RidgeOptions
    engine : Engine
    features : str, optional
        Explicit features, such as "nystroem:500".
    progress : callable, optional

    Raises
    ------
    UndecidedError
        If the kernel is not positive definite or sees nothing, or the matrix does not fit into memory.

    Notes
    -----
    Cost: one eigendecomposition for each bandwidth, 9 n^3 operations, which serves all lambdas.
    """
    kernels, multiples = kernels_of(rows, chosen, options)
    lambdas = lambdas_of(rows, chosen, options)
    folds = (
        draw_folds(len(rows), options.folds, options.seed, clusters=rows.clusters)
        if options.criterion == "cv"
        else None
    )
    alone = LocalEngine(1)
    # Distances are computed once, for all bandwidths.
    pairs = None if not isinstance(rows.points, Points) or features else DensePairs(rows.points, rows.points)

    def work(kernel: Kernel | None) -> tuple[Solved, Array, Array]:
        solved = solve(rows, kernel, features, options.seed, alone, pairs=pairs)
        path = solved.path
        if options.criterion == "loo":
            scores = path.squared_errors(path.leave_one_out(lambdas, rows.clusters))
        elif options.criterion == "gcv":
            scores = path.generalised(lambdas)
        elif folds is not None:
            scores = path.squared_errors(path.cross_validated(lambdas, folds))
        else:
            scores = -path.log_evidence(lambdas)
        return solved, scores, path.degrees(lambdas)

    # The path of a bandwidth is the largest thing here: only that of the best one so far is kept.
    tables, degrees = [], []
    kept: tuple[int, Solved] | None = None
    for place, (solved, scores, df) in enumerate(_few_at_once(rows, engine, features).map(work, kernels, progress)):
        tables.append(_joined(scores, rows, options))
        degrees.append(df)
        best = _best(tables, lambdas, multiples) // len(lambdas)
        if best == place:
            kept = (place, solved)
        del solved
    best = _best(tables, lambdas, multiples)
    at, which = divmod(best, len(lambdas))
    if kept is None or kept[0] != at:
        kept = (at, work(kernels[at])[0])
    cells = tuple(
        RidgeCell(
            lambda_=float(lambdas[j]),
            multiple=multiples[i],
            bandwidth=getattr(kernels[i], "bandwidth", None),
            kernel="precomputed" if kernels[i] is None else str(kernels[i]),
            score=float(tables[i][j]),
            effective_df=float(degrees[i][j]),
        )
        for i in range(len(kernels))
        for j in range(len(lambdas))
    )
    named = "negative log evidence" if options.criterion == "evidence" else "RMSE"
    if len(rows.names) > 1 and options.criterion != "evidence":
        named = "relative RMSE"
    counted = options.folds if options.criterion == "cv" else None
    grid = RidgeGrid(options.criterion, named, counted, len(rows), TIES, cells, best)
    return Choice(float(lambdas[which]), kernels[at], kept[1], grid)


def solve(
    rows: RidgeRows,
    kernel: Kernel | None,
    features: str | None,
    seed: int,
    engine: Engine,
    *,
    pairs: DensePairs | None = None,
) -> Solved:
    """Return all ridge regressions with a kernel.

    Parameters
    ----------
    rows : RidgeRows
    kernel : Kernel or None
        None for a matrix of kernel values.
    features : str or None
    seed : int
    engine : Engine
    pairs : DensePairs, optional
        All pairs of the rows, where several kernels share what is known of them.

    Raises
    ------
    UndecidedError
        If the kernel is not positive definite, or cannot be evaluated.
    """
    weights = rows.weights
    shares = np.full(len(rows), 1.0 / len(rows)) if weights is None else weights / weights.sum()
    if features is not None and kernel is not None and isinstance(rows.points, Points):
        made = make_features(features, kernel, rows.points, seed)
        values = made(rows.points, engine)
        mean = shares @ values
        path = RidgePath.of(thin_spectrum(values.copy(), weights), rows.targets)
        return Solved(kernel, path, mean, float(mean @ mean), made, values)
    if kernel is not None and isinstance(rows.points, Points):
        thin = low_rank(kernel, rows.points)
        if thin is not None:
            mean = shares @ thin
            means = thin @ mean
            return Solved(kernel, RidgePath.of(thin_spectrum(thin, weights), rows.targets), means, float(mean @ mean))
        K = kernel.evaluate(DensePairs(rows.points, rows.points) if pairs is None else pairs)
    else:
        K = np.array(rows.points)
    if not (np.abs(K).max() <= LARGEST_VALUE):
        named = "the precomputed matrix" if kernel is None else f"the kernel '{kernel}'"
        raise UndecidedError(
            f"{named} is too large for these rows",
            hint="standardise the columns, or use a kernel that is bounded, such as gaussian",
            code="undecided.overflow",
        )
    means = K @ shares
    middle = float(shares @ means)
    spectrum = dense_spectrum(K, weights)
    if not spectrum.definite:
        raise UndecidedError(
            "the kernel is not positive definite on these rows: the problem has no single solution",
            hint="use a positive definite kernel, such as gaussian or laplacian",
            code="undecided.not_positive_definite",
        )
    return Solved(kernel, RidgePath.of(spectrum, rows.targets), means, middle)


def low_rank(kernel: Kernel, points: Points) -> Array | None:
    """Return G with K = G G' to rounding, shape (n, r), where r is at most a third of n; None where it is not.

    Few columns and wide kernels have such factors, whose spectrum takes n r^2 operations instead of n^3. Whether to look
    for one is decided on 600 rows.
    """
    n = len(points)
    if n < LEAST_ROWS or not kernel.positive_definite:
        return None
    some = points.take(np.linspace(0, n - 1, PROBED).astype(np.intp))
    most = int(MOST_COLUMNS * n)
    if not _factor_is_thin(kernel, some, min(most, int(MOST_PROBED * PROBED))):
        return None
    factor = kernel_factor(kernel, points, tolerance=FACTOR_TOLERANCE, most=most)
    return factor.columns if factor.complete else None


def _factor_is_thin(kernel: Kernel, points: Points, most: int) -> bool:
    return kernel_factor(kernel, points, tolerance=FACTOR_TOLERANCE, most=most).complete


def kernels_of(
    rows: RidgeRows, chosen: ChosenKernel | None, options: RidgeOptions
) -> tuple[list[Kernel | None], tuple[float, ...]]:
    """Return the kernels to try, and the bandwidths of each as a multiple of the median."""
    if chosen is None or not isinstance(rows.points, Points):
        return [None], (1.0,)
    if options.bandwidth != AUTO or not chosen.free.free:
        return [chosen.kernel], (1.0,)
    return list(at_multiples(chosen, MULTIPLES, rows.points, options.seed)), MULTIPLES


def lambdas_of(rows: RidgeRows, chosen: ChosenKernel | None, options: RidgeOptions) -> Array:
    """Return the lambdas to try: that given, or 20 around the power of ten nearest to the variance of the kernel.

    Of weighted rows, that times their mean weight: lambda / w_i is what stands beside the kernel of a row.
    """
    if options.lambda_ is not None:
        return np.array([options.lambda_])
    if chosen is None or not isinstance(rows.points, Points):
        K = np.asarray(rows.points)
    else:
        some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), SIZE_ROWS)).astype(np.intp))
        K = chosen.kernel(Points(rows.points.numeric[some], rows.points.codes[some]))
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.mean(np.diagonal(K)) - np.mean(K))
    if rows.weights is not None:
        size *= float(np.mean(rows.weights))
    if not (math.isfinite(size) and size > 0):
        return np.array(LAMBDAS)
    return np.array([float(f"{share * 10.0 ** round(math.log10(size)):.3g}") for share in LAMBDAS])


def dense_bytes(n: int, engine: Engine) -> float:
    """Return the bytes that the matrices of n rows take which are under way together."""
    need = DENSE_ARRAYS * 8 * n * n
    return float(need * max(1, min(engine.threads, allowed_bytes(MEMORY) // need)))


def _few_at_once(rows: RidgeRows, engine: Engine, features: str | None) -> Engine:
    """Return an engine that works on no more matrices at once than there is memory for."""
    columns = len(rows) if features is None else min(len(rows), parse_features(features)[1])
    need = DENSE_ARRAYS * 8 * len(rows) * columns
    allowed = allowed_bytes(MEMORY)
    if need > allowed:
        raise UndecidedError(
            f"the kernel matrix of {len(rows):,} rows needs {need / 1e9:.1f} GB, and {allowed / 1e9:.3g} GB are the most",
            hint="--features nystroem:2000 is for very many rows",
            code="undecided.memory",
        )
    return LocalEngine(max(1, min(engine.threads, allowed // need)))


def _joined(scores: Array, rows: RidgeRows, options: RidgeOptions) -> Array:
    """Return one score for each lambda from those of the targets, shape (T, L): an RMSE, or a sum of log evidences."""
    if options.criterion == "evidence":
        joined: Array = scores.sum(axis=0)
        return joined
    if len(scores) == 1:
        root: Array = np.sqrt(scores[0])
        return root
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    means = weights @ rows.targets / weights.sum()
    variances = weights @ np.square(rows.targets - means) / weights.sum()
    relative: Array = np.sqrt((scores / variances[:, None]).mean(axis=0))
    return relative


def _best(tables: Sequence[Array], lambdas: Array, multiples: Sequence[float]) -> int:
    """Return the place of the best cell; of equal ones the largest lambda, then the largest bandwidth."""
    scores = np.concatenate(tables)
    widths = np.repeat(multiples[: len(tables)], len(lambdas))
    return smoothest(scores, [np.tile(lambdas, len(tables)), widths])
