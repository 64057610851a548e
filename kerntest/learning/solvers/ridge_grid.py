"""Ridge regressions of rows for every lambda and bandwidth of a grid, and which of them a criterion chooses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from kerntest.engines.engine import Engine
from kerntest.engines.setting import allowed_bytes
from kerntest.errors import UndecidedError
from kerntest.kernels.base import DensePairs, Points
from kerntest.learning.cross_validation import draw_folds
from kerntest.learning.rows.training_rows import at_multiples
from kerntest.learning.solvers.ridge_path import DENSE_ARRAYS, RidgePath, dense_spectrum, thin_spectrum
from kerntest.learning.ties import smoothest
from kerntest.matrices.expansion import Expansion, GivenExpansion, as_points, expanded
from kerntest.matrices.factor import kernel_factor, make_features, parse_features
from kerntest.report.results.ridge_record import RidgeCell, RidgeGrid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.matrices.factor import FeatureMap

Criterion: TypeAlias = Literal["loo", "gcv", "cv", "evidence"]
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
# Steps of iterative refinement. What they add is rounding where it is below this share of what it is summed from, at so
# many rows of columns from different rows, whose numbers are so far from the middle, as multiples.
REFINEMENTS = 2
ROUNDING = 64 * float(np.finfo(np.float64).eps)
PROBES, REACHES = 50, (0.7, 1.5, 3.0)


@dataclass(frozen=True, slots=True, eq=False)
class Regressions:
    """All ridge regressions of some rows with one kernel.

    `means` is the weighted mean over the rows i of k(x_i, .) at each row, `middle` its own mean; with features, of which
    `values` has those of the rows, their weighted mean and its squared length.
    """

    rows: TrainingRows
    kernel: Kernel | None
    path: RidgePath
    means: Array
    middle: float
    features: FeatureMap | None = None
    values: Array | None = None

    def combined(self, alpha: Array) -> Array:
        """Return the coefficients of sum_i alpha_i k(x_i, .) over the rows, or over the features."""
        return alpha if self.values is None else np.asarray(self.values.T @ alpha)

    def function(self, alpha: Array, means: Array) -> Expansion | GivenExpansion:
        """Return f + b, where b is what takes its weighted mean to `means`."""
        coefficients, points = self.combined(alpha), self.rows.points
        intercepts = means - self.means @ coefficients
        if self.values is None and self.kernel is not None and isinstance(points, Points):
            return Expansion(self.kernel, points, coefficients, intercepts)
        return GivenExpansion(np.arange(len(coefficients)), coefficients, intercepts)

    def coefficients(self, lambda_: float) -> Array:
        """Return alpha as right as by solving the system itself, shape (n, T), for two products with the kernel matrix.

        The eigenvectors solve it without the directions whose eigenvalue is 0 to rounding, and then what is left of it,
        which the kernel itself tells, with them: iterative refinement. Where those directions are nothing but rounding, as
        with rows that are repeated or a linear kernel, they stay out.
        """
        path, rows = self.path, self.rows
        alpha = path.coefficients(lambda_)
        if lambda_ <= path.spectrum.floor:
            return alpha
        for _ in range(REFINEMENTS):
            fitted = expanded(self.function(alpha, path.means), self.features, rows.points, Engine(1))
            left = rows.targets - fitted - lambda_ * alpha / np.square(path.spectrum.roots)[:, None]
            rest = RidgePath.of(path.spectrum, left)
            step = rest.coefficients(lambda_, whole=True)
            alpha += rest.coefficients(lambda_) if self._is_rounding(step) else step
        return alpha

    def _is_rounding(self, step: Array) -> bool:
        """Whether sum_i step_i k(x_i, .) is 0 to rounding, as far as rows tell that are none of those learnt from."""
        rows, prior = self.rows.points, self.features or self.kernel
        if not isinstance(rows, Points) or prior is None:
            return False
        points = rows.take(np.unique(np.linspace(0, len(rows) - 1, PROBES).astype(np.intp)))
        numeric, codes = (values[_elsewhere(*values.shape)] for values in (points.numeric, points.codes))
        middle = numeric.mean(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            probes = Points(
                np.concatenate([middle + reach * (numeric - middle) for reach in REACHES]),
                np.tile(codes, (len(REACHES), 1)),
            )
            function = self.function(step, np.zeros(step.shape[1]))
            found = expanded(function, self.features, probes, Engine(1))
            lengths = np.sqrt(np.abs(prior.diagonal(rows))) @ np.abs(step)
            most = np.sqrt(np.abs(prior.diagonal(probes)))[:, None] * lengths
        return not np.any(np.abs(found) > ROUNDING * most)


def _elsewhere(n: int, columns: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of a table whose columns come from different rows."""
    return (np.arange(n)[:, None] + np.arange(columns)) % n, np.arange(columns)


def choose(
    rows: TrainingRows,
    units: Array,
    engine: Engine,
    *,
    criterion: Criterion,
    lambda_: float | None,
    multiples: Sequence[float],
    features: str | None,
    folds: int,
    seed: int,
    progress: Progress | None = None,
) -> tuple[float, Regressions, RidgeGrid]:
    """Return the lambda that the criterion chooses, the regressions of the chosen bandwidth, and the grid.

    The regressions are of targets that are brought to `units`, the scores of the grid are not.

    The grid has the lambda that is given, or 20 of them, and open bandwidths at multiples of their median, if there are any.
    Cost: one eigendecomposition for each bandwidth, 9 n^3 operations, which serves all lambdas.
    """
    points, chosen = rows.points, rows.chosen
    kernels: Sequence[Kernel | None] = [rows.kernel]
    if chosen is not None and multiples:
        kernels = at_multiples(chosen, multiples, as_points(points), seed)
    multiples = multiples or (1.0,)
    lambdas = _lambdas(rows) if lambda_ is None else np.array([lambda_])
    parts = draw_folds(len(rows), folds, seed, clusters=rows.clusters) if criterion == "cv" else None
    # Distances are computed once, for all bandwidths.
    pairs = DensePairs(points, points) if isinstance(points, Points) and features is None else None

    def work(kernel: Kernel | None) -> tuple[Regressions, Array, Array]:
        found = solve(rows, kernel, features, seed, pairs)
        path = found.path
        if criterion == "loo":
            scores = path.squared_errors(path.leave_one_out(lambdas, rows.clusters))
        elif criterion == "gcv":
            scores = path.generalised(lambdas)
        elif parts is not None:
            scores = path.squared_errors(path.cross_validated(lambdas, parts))
        else:
            scores = -path.log_evidence(lambdas)
        return found, scores, path.degrees(lambdas)

    # The path of a bandwidth is the largest thing here: only that of the best one so far is kept.
    tables, degrees = [], []
    kept: tuple[int, Regressions] | None = None
    for place, (found, scores, df) in enumerate(_few_at_once(rows, engine, features).map(work, kernels, progress)):
        tables.append(_joined(scores, rows, criterion))
        degrees.append(df)
        best = _best(tables, lambdas, multiples)
        if best // len(lambdas) == place:
            kept = (place, found)
        del found
    at, which = divmod(best, len(lambdas))
    if kept is None or kept[0] != at:
        kept = (at, work(kernels[at])[0])
    score, tables = _in_units(tables, rows, units, criterion)
    cells = tuple(
        RidgeCell(
            lambda_=float(lambdas[j]),
            multiple=multiples[i],
            bandwidth=getattr(kernel, "bandwidth", None),
            kernel="precomputed" if kernel is None else str(kernel),
            score=float(tables[i][j]),
            effective_df=float(degrees[i][j]),
        )
        for i, kernel in enumerate(kernels)
        for j in range(len(lambdas))
    )
    counted = folds if criterion == "cv" else None
    grid = RidgeGrid(criterion, score, counted, len(rows), TIES, cells, best)
    return float(lambdas[which]), kept[1], grid


def solve(
    rows: TrainingRows, kernel: Kernel | None, features: str | None, seed: int, pairs: DensePairs | None
) -> Regressions:
    """Return all ridge regressions with a kernel, or without one of a matrix of its values.

    `pairs` are all pairs of the rows: several kernels share what is known of them.
    """
    weights, points = rows.weights, rows.points
    shares = np.full(len(rows), 1.0 / len(rows)) if weights is None else weights / weights.sum()
    if kernel is None or not isinstance(points, Points):
        K = np.array(points)
    elif features is not None:
        made = make_features(features, kernel, points, seed)
        values = made(points, Engine(1))
        mean = shares @ values
        path = RidgePath.of(thin_spectrum(values.copy(), weights), rows.targets)
        return Regressions(rows, kernel, path, mean, float(mean @ mean), made, values)
    else:
        thin = thin_factor(kernel, points)
        if thin is not None:
            mean = shares @ thin
            means = thin @ mean
            path = RidgePath.of(thin_spectrum(thin, weights), rows.targets)
            return Regressions(rows, kernel, path, means, float(mean @ mean))
        K = kernel.evaluate(pairs or DensePairs(points, points))
    if not (np.abs(K).max() <= LARGEST_VALUE):
        named = "the precomputed matrix" if kernel is None else f"the kernel '{kernel}'"
        raise UndecidedError(
            f"{named} is too large for these rows",
            hint="standardise the columns, or use a kernel that is bounded, such as gaussian",
            code="undecided.overflow",
        )
    means = K @ shares
    spectrum = dense_spectrum(K, weights)
    if not spectrum.definite:
        raise UndecidedError(
            "the kernel is not positive definite on these rows: the problem has no single solution",
            hint="use a positive definite kernel, such as gaussian or laplacian",
            code="undecided.not_positive_definite",
        )
    return Regressions(rows, kernel, RidgePath.of(spectrum, rows.targets), means, float(shares @ means))


def thin_factor(kernel: Kernel, points: Points) -> Array | None:
    """Return G with K = G G' to rounding, shape (n, r), where r is at most a third of n; None where it is not.

    Few columns and wide kernels have such factors, whose spectrum takes n r^2 operations instead of n^3. Whether to look
    for one is decided on 600 rows.
    """
    n = len(points)
    if n < LEAST_ROWS or not kernel.positive_definite:
        return None
    most = int(MOST_COLUMNS * n)
    some = points.take(np.linspace(0, n - 1, PROBED).astype(np.intp))
    probed = kernel_factor(kernel, some, tolerance=FACTOR_TOLERANCE, most=min(most, int(MOST_PROBED * PROBED)))
    if not probed.complete:
        return None
    factor = kernel_factor(kernel, points, tolerance=FACTOR_TOLERANCE, most=most)
    return factor.columns if factor.complete else None


def _lambdas(rows: TrainingRows) -> Array:
    """Return the lambdas to try, 20 around the power of ten nearest to the variance of the kernel.

    Of weighted rows, that times their mean weight: lambda / w_i is what stands beside the kernel of a row.
    """
    if rows.kernel is None or not isinstance(rows.points, Points):
        K = np.asarray(rows.points)
    else:
        some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), SIZE_ROWS)).astype(np.intp))
        K = rows.kernel(rows.points.take(some))
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


def _few_at_once(rows: TrainingRows, engine: Engine, features: str | None) -> Engine:
    """Return an engine that works on no more matrices at once than there is memory for."""
    columns = len(rows) if features is None else min(len(rows), parse_features(features)[1])
    need, allowed = DENSE_ARRAYS * 8 * len(rows) * columns, allowed_bytes(MEMORY)
    if need > allowed:
        raise UndecidedError(
            f"the kernel matrix of {len(rows):,} rows needs {need / 1e9:.1f} GB, and {allowed / 1e9:.3g} GB are the most",
            hint="--features nystroem:2000 is for very many rows",
            code="undecided.memory",
        )
    return Engine(max(1, min(engine.threads, allowed // need)))


def _joined(scores: Array, rows: TrainingRows, criterion: Criterion) -> Array:
    """Return one score for each lambda from those of the targets, shape (T, L): an RMSE, or a sum of log evidences."""
    if criterion == "evidence":
        return np.asarray(scores.sum(axis=0))
    if len(scores) == 1:
        return np.asarray(np.sqrt(scores[0]))
    return np.asarray(np.sqrt((scores / variances(rows)[:, None]).mean(axis=0)))


def _in_units(tables: list[Array], rows: TrainingRows, units: Array, criterion: Criterion) -> tuple[str, list[Array]]:
    """Return what the scores are, and the scores of targets in their own units."""
    if criterion == "evidence":
        return "negative log evidence", [table + (len(rows) - 1) * float(np.log(units).sum()) for table in tables]
    if len(rows.names) > 1:
        return "relative RMSE", tables
    return "RMSE", [table * float(units[0]) for table in tables]


def _best(tables: Sequence[Array], lambdas: Array, multiples: Sequence[float]) -> int:
    """Return the place of the best cell; of equal ones the largest lambda, then the largest bandwidth."""
    widths = np.repeat(multiples[: len(tables)], len(lambdas))
    return smoothest(np.concatenate(tables), [np.tile(lambdas, len(tables)), widths])


def variances(rows: TrainingRows) -> Array:
    """Return the weighted variances of the targets, shape (T,)."""
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    centred = rows.targets - weights @ rows.targets / weights.sum()
    return np.asarray(weights @ np.square(centred) / weights.sum())
