"""From the rows of a ridge regression to its model: through eigenvalues, or for very many rows through centres."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.local import LocalEngine
from kerntest.errors import UndecidedError
from kerntest.kernels.base import Points
from kerntest.learning.expansion import Expansion, GivenExpansion, expanded
from kerntest.learning.ridge_fit import choose
from kerntest.learning.ridge_model import RidgeModel, Spread
from kerntest.learning.solvers.falkon import centre_ridge
from kerntest.learning.solvers.ridge_path import RidgePath
from kerntest.matrices.factor import feature_error, make_features, parse_features
from kerntest.matrices.matrix import matrix_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array
    from kerntest.learning.kernel_choice import ChosenKernel
    from kerntest.learning.ridge_data import RidgeRows
    from kerntest.learning.ridge_fit import Choice, Solved
    from kerntest.learning.ridge_options import RidgeOptions
    from kerntest.report.ridge_record import RidgeGrid

# Directions of the posterior that change a variance by less than this share of k(x, x) are not kept.
NEGLIGIBLE = 1e-9
# Steps of iterative refinement. What they add is rounding where it is below this share of what it is summed from, at so
# many rows of columns from different rows, whose numbers are so far from the middle, as multiples.
REFINEMENTS = 2
ROUNDING = 64 * float(np.finfo(np.float64).eps)
PROBES, REACHES = 50, (0.7, 1.5, 3.0)
# Up to so many rows times squared features, a bandwidth is solved through eigenvalues; beyond by conjugate gradients.
DIRECT = 2 * 10**10
# Rows on which lambda and bandwidth are chosen then.
CHOOSING_ROWS = 2000
CHOOSING_STREAM = 6


@dataclass(frozen=True, slots=True, eq=False)
class RidgeFit:
    """A model, and what it took.

    Parameters
    ----------
    model : RidgeModel
    grid : RidgeGrid
    spreads : ndarray, shape (T,)
        Standard deviations of the targets.
    fitted : ndarray, shape (n, T)
        Predictions for the training rows.
    left_out : ndarray, shape (n, T), or None
        Targets less the predictions by all other rows.
    left_out_spread : ndarray, shape (n, T), or None
        Standard deviations of these.
    loo_rmse : ndarray, shape (T,), or None
    gcv_rmse : ndarray, shape (T,)
    degrees : float
    log_evidence : float or None
    condition : float
    n_zero : int
    iterations : int or None
        Of conjugate gradients; None with eigenvalues.
    converged : bool
    feature_error : float or None
    """

    model: RidgeModel
    grid: RidgeGrid
    spreads: Array
    fitted: Array
    left_out: Array | None
    left_out_spread: Array | None
    loo_rmse: Array | None
    gcv_rmse: Array
    degrees: float
    log_evidence: float | None
    condition: float
    n_zero: int
    iterations: int | None
    converged: bool
    feature_error: float | None


def fit_ridge(
    rows: RidgeRows,
    chosen: ChosenKernel | None,
    options: RidgeOptions,
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> RidgeFit:
    """Return the regression whose lambda and bandwidth the criterion chooses.

    Raises
    ------
    UndecidedError
        If the kernel is not positive definite, or the matrix does not fit into memory.
    """
    # Squares neither overflow nor vanish in units near the spread of a target; powers of two cost no digit.
    units = _units(rows.targets)
    plain = replace(rows, targets=rows.targets / units)
    if options.features is not None and isinstance(rows.points, Points):
        count = min(parse_features(options.features)[1], len(rows))
        if len(rows) * count**2 > DIRECT:
            return _in_units(_through_centres(plain, chosen, options, engine, progress), units)
    choice = choose(plain, chosen, options, engine, features=options.features, progress=progress)
    return _in_units(_from_path(plain, choice, options, engine), units)


def _units(targets: Array) -> Array:
    """Return for each target the power of two next to half its range, shape (T,)."""
    half = 0.5 * targets.max(axis=0) - 0.5 * targets.min(axis=0)
    exponents = np.clip(np.round(np.log2(np.maximum(half, np.finfo(np.float64).tiny))), -1000, 1000)
    units: Array = np.exp2(exponents)
    return units


def _in_units(fit: RidgeFit, units: Array) -> RidgeFit:
    """Return a regression on targets / units as that on the targets."""
    model = fit.model
    expansion = replace(
        model.expansion,
        coefficients=model.expansion.coefficients * units,
        intercepts=model.expansion.intercepts * units,
    )
    # The density of y = unit x y' on the n - 1 directions that matter.
    moved = (model.n_train - 1) * float(np.log(units).sum())
    cells = fit.grid.cells
    if fit.grid.score == "RMSE":
        cells = tuple(replace(cell, score=cell.score * float(units[0])) for cell in cells)
    elif fit.grid.criterion == "evidence":
        shift = (fit.grid.n_rows - 1) * float(np.log(units).sum())
        cells = tuple(replace(cell, score=cell.score + shift) for cell in cells)
    return replace(
        fit,
        model=replace(model, expansion=expansion, scales=model.scales * units),
        grid=replace(fit.grid, cells=cells),
        spreads=fit.spreads * units,
        fitted=fit.fitted * units,
        left_out=None if fit.left_out is None else fit.left_out * units,
        left_out_spread=None if fit.left_out_spread is None else fit.left_out_spread * units,
        loo_rmse=None if fit.loo_rmse is None else fit.loo_rmse * units,
        gcv_rmse=fit.gcv_rmse * units,
        log_evidence=None if fit.log_evidence is None else fit.log_evidence - moved,
    )


def _spreads(rows: RidgeRows) -> Array:
    """Return the weighted standard deviations of the targets, shape (T,)."""
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    centred = rows.targets - weights @ rows.targets / weights.sum()
    spreads: Array = np.sqrt(weights @ np.square(centred) / weights.sum())
    return spreads


def _from_path(rows: RidgeRows, choice: Choice, options: RidgeOptions, engine: Engine) -> RidgeFit:
    """Return the regression at the chosen lambda, all of it from the eigendecomposition."""
    # Inside the engine, so that BLAS has no more threads than were asked for.
    return next(iter(engine.here.map(lambda _: _finished(rows, choice, options), [0])))


def _finished(rows: RidgeRows, choice: Choice, options: RidgeOptions) -> RidgeFit:
    solved, lambda_ = choice.solved, choice.lambda_
    path, lambdas = solved.path, np.array([choice.lambda_])
    alpha = _coefficients(rows, solved, lambda_)
    posterior = None
    if options.intervals and isinstance(rows.points, Points):
        posterior = path.posterior(lambda_, NEGLIGIBLE)
    floor = lambda_ / float(np.sum(np.square(path.spectrum.roots))) + solved.middle
    expansion = _function(rows, solved, alpha, path.means)
    spread = None
    if posterior is not None and solved.values is not None:
        inner = solved.values.T @ posterior
        spread = _spread(solved.means, inner, solved.means @ inner, floor)
    elif posterior is not None:
        shares = np.square(path.spectrum.roots) / np.sum(np.square(path.spectrum.roots))
        spread = _spread(shares, posterior, solved.means @ posterior, floor)
    scales = np.sqrt(path.scales(lambdas)[:, 0])
    model = RidgeModel(rows.encoder, expansion, rows.names, lambda_, scales, len(rows), spread, solved.features)
    left_out = path.leave_one_out(lambdas, rows.clusters)
    roots = path.spectrum.roots[:, None]
    of_rows = scales * np.sqrt(path.left_out_variances(lambda_, rows.clusters))[:, None] / roots
    error = None
    if solved.features is not None and solved.values is not None and isinstance(rows.points, Points):
        # New values are also uncertain in what the features do not see of k(x, x), see `FeatureMap.diagonal`.
        unseen = solved.features.diagonal(rows.points) - np.einsum("ij,ij->i", solved.values, solved.values)
        of_rows = np.hypot(of_rows, scales * np.sqrt(np.maximum(unseen, 0.0))[:, None])
        error = feature_error(solved.features, rows.points, LocalEngine(1), options.seed)
    return RidgeFit(
        model=model,
        grid=choice.grid,
        spreads=_spreads(rows),
        fitted=rows.targets - path.scaled_residuals(lambdas)[:, :, 0] / roots,
        left_out=left_out[:, :, 0],
        left_out_spread=of_rows,
        loo_rmse=np.sqrt(path.squared_errors(left_out)[:, 0]),
        gcv_rmse=np.sqrt(path.generalised(lambdas)[:, 0]),
        degrees=float(path.degrees(lambdas)[0]),
        log_evidence=float(path.log_evidence(lambdas).sum()),
        condition=path.condition(lambda_),
        n_zero=path.spectrum.n_zero,
        iterations=None,
        converged=True,
        feature_error=error,
    )


def _function(rows: RidgeRows, solved: Solved, alpha: Array, means: Array) -> Expansion | GivenExpansion:
    """Return f + b, where b is what takes its weighted mean to `means`."""
    if solved.values is not None:
        weights = solved.values.T @ alpha
        return GivenExpansion(np.arange(len(weights)), weights, means - solved.means @ weights)
    intercepts = means - solved.means @ alpha
    if isinstance(rows.points, Points) and solved.kernel is not None:
        return Expansion(solved.kernel, rows.points, alpha, intercepts)
    return GivenExpansion(np.arange(len(alpha)), alpha, intercepts)


def _coefficients(rows: RidgeRows, solved: Solved, lambda_: float) -> Array:
    """Return alpha as right as by solving the system itself, shape (n, T).

    The eigenvectors solve it without the directions whose eigenvalue is 0 to rounding, and then what is left of it,
    which the kernel itself tells, with them: iterative refinement. Where those directions are nothing but rounding, as
    with rows that are repeated or a linear kernel, they stay out.

    Notes
    -----
    Cost: two products with the kernel matrix.
    """
    path, engine = solved.path, LocalEngine(1)
    alpha = path.coefficients(lambda_)
    if lambda_ <= path.spectrum.floor:
        return alpha
    for _ in range(REFINEMENTS):
        fitted = expanded(_function(rows, solved, alpha, path.means), solved.features, rows.points, engine)
        left = rows.targets - fitted - lambda_ * alpha / np.square(path.spectrum.roots)[:, None]
        rest = RidgePath.of(path.spectrum, left)
        step = rest.coefficients(lambda_, whole=True)
        alpha += rest.coefficients(lambda_) if _is_rounding(rows, solved, step) else step
    return alpha


def _is_rounding(rows: RidgeRows, solved: Solved, step: Array) -> bool:
    """Whether sum_i step_i k(x_i, .) is 0 to rounding, as far as rows tell that are none of those learnt from."""
    prior = solved.features or solved.kernel
    if not isinstance(rows.points, Points) or prior is None:
        return False
    some = np.unique(np.linspace(0, len(rows) - 1, PROBES).astype(np.intp))
    points = rows.points.take(some)
    numeric = points.numeric[_elsewhere(*points.numeric.shape)]
    codes = points.codes[_elsewhere(*points.codes.shape)]
    middle = numeric.mean(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        probes = Points(
            np.concatenate([middle + reach * (numeric - middle) for reach in REACHES]),
            np.tile(codes, (len(REACHES), 1)),
        )
        function = _function(rows, solved, step, np.zeros(step.shape[1]))
        found = expanded(function, solved.features, probes, LocalEngine(1))
        lengths = np.sqrt(np.abs(prior.diagonal(rows.points))) @ np.abs(step)
        most = np.sqrt(np.abs(prior.diagonal(probes)))[:, None] * lengths
    return not np.any(np.abs(found) > ROUNDING * most)


def _elsewhere(n: int, columns: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of a table whose columns come from different rows."""
    return (np.arange(n)[:, None] + np.arange(columns)) % n, np.arange(columns)


def _spread(first: Array, posterior: Array, offsets: Array, floor: float) -> Spread:
    return Spread(np.column_stack([first, posterior]), np.concatenate([[0.0], -offsets]), floor)


def _shared_progress(progress: Progress | None) -> tuple[Progress | None, Callable[[float], None] | None]:
    """Return what is told of choosing, a third of the way, and of the steps after it."""
    if progress is None:
        return None, None
    return lambda done, total: progress(done, 3 * total), lambda share: progress(100 + round(200 * share), 300)


def _through_centres(
    rows: RidgeRows, chosen: ChosenKernel | None, options: RidgeOptions, engine: Engine, progress: Progress | None
) -> RidgeFit:
    """Return the regression in the span of some rows; lambda and bandwidth are chosen on a part of the rows.

    lambda is the variance of the noise in units of that of the prior, which does not depend on the number of rows.
    """
    points = rows.points
    if not isinstance(points, Points) or chosen is None or options.features is None:
        message = "features are made from columns"
        raise TypeError(message)
    n = len(rows)
    rng = np.random.default_rng((options.seed, CHOOSING_STREAM))
    some = np.sort(rng.choice(n, min(n, CHOOSING_ROWS), replace=False))
    choosing, advanced = _shared_progress(progress)
    choice = choose(rows.take(some), chosen, options, engine, progress=choosing)
    lambda_ = choice.lambda_
    if choice.kernel is None:
        message = "columns have a kernel"
        raise TypeError(message)
    features = make_features(options.features, choice.kernel, points, options.seed)
    if features.kind != "nystroem":
        raise UndecidedError(
            f"{options.features} is too much for {n:,} rows",
            hint=f"--features nystroem:{features.size} is for very many rows",
            code="undecided.memory",
        )
    landmarks = features.landmarks
    joined = Points(
        np.concatenate([landmarks.numeric, points.numeric]), np.concatenate([landmarks.codes, points.codes])
    )
    matrix, m = matrix_of(choice.kernel, joined), len(landmarks)

    def block(part: slice | NDArray[np.intp]) -> Array:
        rows = slice(m + part.start, m + part.stop) if isinstance(part, slice) else m + part
        return np.asarray(matrix.block(rows, slice(0, m)))

    weights = np.ones(n) if rows.weights is None else rows.weights
    found = centre_ridge(
        block,
        features.projection,
        targets=rows.targets,
        weights=weights,
        lambda_=lambda_,
        engine=engine,
        seed=options.seed,
        advanced=advanced,
    )
    total = float(weights.sum())
    means = weights @ rows.targets / total
    expansion = GivenExpansion(np.arange(len(found.weights)), found.weights, means - found.mean @ found.weights)
    # The same as t^2 of the evidence: z' (A + lambda)^-1 z = z' (residuals) / lambda.
    energy = np.einsum("nt,nt->t", weights[:, None] * (rows.targets - means), found.residuals)
    scales = np.sqrt(np.maximum(energy, 0.0) / lambda_ / (n - 1))
    spread = None
    if options.intervals:
        floor = lambda_ / total + float(found.mean @ found.mean)
        spread = _spread(found.mean, found.posterior, found.mean @ found.posterior, floor)
    model = RidgeModel(rows.encoder, expansion, rows.names, lambda_, scales, n, spread, features)
    squares = weights @ np.square(found.residuals) / total
    return RidgeFit(
        model=model,
        grid=choice.grid,
        spreads=_spreads(rows),
        fitted=rows.targets - found.residuals,
        left_out=None,
        left_out_spread=None,
        loo_rmse=None,
        gcv_rmse=np.sqrt(squares) / (1.0 - found.degrees / n),
        degrees=found.degrees,
        log_evidence=None,
        condition=found.condition,
        n_zero=n - 1 - len(found.mean),
        iterations=found.steps,
        converged=found.converged,
        feature_error=feature_error(features, points, engine, options.seed),
    )
