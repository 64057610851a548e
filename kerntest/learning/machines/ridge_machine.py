"""Ridge regressions of rows: the lambda and the bandwidth that a criterion chooses, and the model of that cell.

Every bandwidth is solved through eigenvalues, once for all lambdas; very many rows by conjugate gradients.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

import numpy as np
from scipy.special import stdtrit

from kerntest.data.messages import counted, one_of, positive, whole_number
from kerntest.engines.engine import Engine
from kerntest.errors import UndecidedError, UsageError
from kerntest.kernels.base import Points
from kerntest.learning.estimator import LearnerOptions
from kerntest.learning.scores import covered_share, regression_metrics
from kerntest.learning.solvers.falkon import centre_ridge
from kerntest.learning.solvers.ridge_grid import MULTIPLES, Criterion, Regressions, choose, variances
from kerntest.learning.solvers.ridge_path import ROUNDING
from kerntest.matrices.expansion import Expansion, GivenExpansion, as_points, expanded
from kerntest.matrices.factor import FeatureMap, feature_error, make_features, parse_features
from kerntest.matrices.matrix import matrix_of
from kerntest.report.results.ridge_record import IntervalMetrics, TargetFit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.report.results.ridge_record import RidgeGrid

FOLDS = 5
# What is smaller or larger is lost beside eigenvalues, which are squared and divided by.
SMALLEST_LAMBDA, LARGEST_LAMBDA = 1e-75, 1e75
# Directions of the posterior that change a variance by less than this share of k(x, x) are not kept.
NEGLIGIBLE = 1e-9
# Systems with a larger condition number are told of: rounding is then seen in the fit.
ILL_CONDITIONED = 1e12
# Up to so many rows times squared features, a bandwidth is solved through eigenvalues; beyond by conjugate gradients.
DIRECT = 2 * 10**10
# Rows on which lambda and bandwidth are chosen then.
CHOOSING_ROWS = 2000
CHOOSING_STREAM = 6


@dataclass(eq=False, repr=False)
class RidgeOptions(LearnerOptions):
    """What kind of regression; each as in `KernelRidge`."""

    # `penalty` is what was asked for: `lambda_` of a regression is that of its fit.
    lambda_: InitVar[float | None] = None
    kernel: Kernel | str = "gaussian"
    _: KW_ONLY
    bandwidth: str | float = "auto"
    criterion: Criterion = "loo"
    cv: int | None = None
    intervals: bool = True
    BANDWIDTHS = ("auto", "median")

    def __post_init__(self, lambda_: float | None) -> None:
        """Refuse what cannot be."""
        self.penalty = lambda_
        one_of("criterion", self.criterion, get_args(Criterion))
        super().__post_init__()
        if self.penalty is not None:
            positive("lambda", self.penalty)
            if not SMALLEST_LAMBDA <= self.penalty <= LARGEST_LAMBDA:
                raise UsageError(
                    f"lambda must be between {SMALLEST_LAMBDA:g} and {LARGEST_LAMBDA:g} in size, not {self.penalty:g}",
                    hint="values far above those of the kernel give the mean, far below a function through all rows",
                    code="usage.lambda",
                )
        if self.cv is not None:
            whole_number("cv", self.cv, at_least=2)
            both = f"--cv {self.cv} and --criterion {self.criterion}"
            self._refuse((self.criterion not in {"loo", "cv"}, both, "--criterion cv chooses by folds"))

    @property
    def chosen_by(self) -> Criterion:
        """What chooses: folds where their number is given, else the criterion."""
        return self.criterion if self.cv is None else "cv"

    def fixed(self, rows: TrainingRows) -> tuple[bool, bool]:
        """Return whether lambda and the bandwidth are given."""
        return self.penalty is not None, self.bandwidth != "auto" or rows.chosen is None or not rows.chosen.free.free


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What the variance of predictions follows from, over the centres or the features of the predictions.

    With a(x) = sum_i w_i k(x_i, x) / sum w, and c(x) the q functions of the posterior,

        var(f(x) + b) = t^2 (floor + k(x, x) - 2 a(x) - |c(x)|^2),    floor = lambda / sum w + mean of a.

    The coefficients, shape (m, 1 + q), and intercepts are those of a and of c.
    """

    coefficients: Annotated[Array, 2]
    intercepts: Annotated[Array, 1]
    floor: float

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        fits = 0 < len(self.intercepts) == self.coefficients.shape[1]
        return None if fits else "what its intervals follow from does not fit together"


@dataclass(frozen=True, slots=True, eq=False)
class RidgeModel:
    """What a fitted regression predicts T targets with.

    The scales are t, the standard deviations of the priors; that of the noise is t sqrt(lambda).
    """

    encoder: Encoder | None
    expansion: Expansion | GivenExpansion
    targets: tuple[str, ...]
    lambda_: float
    scales: Annotated[Array, 1]
    n_train: int
    spread: Spread | None = None
    features: FeatureMap | None = None
    KIND: ClassVar[str] = "ridge"
    CALLED: ClassVar[str] = "a ridge regression"

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        count = len(self.targets)
        if not count or len(set(self.targets)) < count or count != len(self.expansion.intercepts):
            return "targets must be the names of its predictions, all different"
        if len(self.scales) != count or (self.scales < 0).any():
            return "its scales and targets do not fit together"
        if self.spread is not None and len(self.spread.coefficients) != len(self.expansion.coefficients):
            return "what its intervals follow from does not fit its centres"
        return None if self.lambda_ > 0 else "lambda must be a positive number"

    def predicted(self, points: Points | Array, engine: Engine) -> Array:
        """Return predictions for n rows, shape (n, T)."""
        return expanded(self.expansion, self.features, points, engine)

    def deviations(self, points: Points | Array, engine: Engine, *, noise: bool = True) -> Array:
        """Return the standard deviation of new values at n rows, shape (n, T); without noise, of the function itself."""
        if self.spread is None or not isinstance(points, Points):
            what = "keeps nothing for intervals" if isinstance(points, Points) else "was fitted to a matrix"
            raise UsageError(
                f"this model {what}: it has no standard deviations",
                hint="fit it without --no-intervals" if isinstance(points, Points) else "fit it to columns",
                code="usage.no_intervals",
            )
        prior: Any = self.features or getattr(self.expansion, "kernel", None)
        functions = replace(self.expansion, coefficients=self.spread.coefficients, intercepts=self.spread.intercepts)
        found = expanded(functions, self.features, points, engine)
        variance = self.spread.floor + prior.diagonal(points) - 2.0 * found[:, 0]
        variance -= np.einsum("ij,ij->i", found[:, 1:], found[:, 1:])
        np.maximum(variance, 0.0, out=variance)
        if noise:
            variance += self.lambda_
        return np.asarray(np.sqrt(variance)[:, None] * self.scales)

    @property
    def noise(self) -> Array:
        """Standard deviations of the noise, of rows of weight 1, shape (T,)."""
        return np.asarray(self.scales * np.sqrt(self.lambda_))

    def reach(self, probability: float) -> float:
        """Return how many standard deviations an interval reaches to each side: Student's t, for t^2 is estimated."""
        # From the lower tail, whose probability has all its digits where 0.5 + 0.5 P would be 1.
        return -float(stdtrit(max(self.n_train - 1, 1), 0.5 * (1.0 - probability)))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RidgeFit:
    """A model, and what it took; `iterations` are of conjugate gradients, None with eigenvalues.

    `left_out` are targets less the predictions by all other rows, and `loo_r2` is what these explain of the variance.
    """

    model: RidgeModel
    grid: RidgeGrid
    fixed: tuple[bool, bool]
    fitted: Array
    gcv_rmse: Array
    degrees: float
    condition: float
    n_zero: int
    left_out: Array | None = None
    left_out_spread: Array | None = None
    loo_rmse: Array | None = None
    loo_r2: Array | None = None
    log_evidence: float | None = None
    iterations: int | None = None
    converged: bool = True
    feature_error: float | None = None
    warnings: tuple[str, ...] = ()


def fit_ridge(rows: TrainingRows, options: RidgeOptions, engine: Engine, progress: Progress | None = None) -> RidgeFit:
    """Return the regression whose lambda and bandwidth the criterion chooses; those that are given are the only ones tried."""
    # Squares neither overflow nor vanish in units near the spread of a target; powers of two cost no digit.
    half = 0.5 * rows.targets.max(axis=0) - 0.5 * rows.targets.min(axis=0)
    exponents = np.round(np.log2(np.maximum(half, np.finfo(np.float64).tiny)))
    units = np.exp2(np.clip(exponents, -1000, 1000))
    plain, features = replace(rows, targets=rows.targets / units), options.features
    chooser = partial(
        choose,
        criterion=options.chosen_by,
        lambda_=options.penalty,
        multiples=() if options.fixed(rows)[1] else MULTIPLES,
        folds=FOLDS if options.cv is None else options.cv,
        seed=options.seed,
    )
    if features is not None and len(rows) * min(parse_features(features)[1], len(rows)) ** 2 > DIRECT:
        return _through_centres(plain, units, features, options, chooser, engine=engine, progress=progress)
    lambda_, found, grid = chooser(plain, units, engine, features=features, progress=progress)
    # Inside the engine, so that BLAS has no more threads than were asked for.
    return next(iter(engine.here.map(lambda _: _from_path(found, units, lambda_, grid, options), [0])))


def _spread(first: Array, posterior: Array, means: Array, floor: float) -> Spread:
    return Spread(np.column_stack([first, posterior]), np.concatenate([[0.0], -(means @ posterior)]), floor)


def _from_path(found: Regressions, units: Array, lambda_: float, grid: RidgeGrid, options: RidgeOptions) -> RidgeFit:
    """Return the regression of targets x units at the chosen lambda, all of it from the eigendecomposition."""
    rows, path, lambdas, features = found.rows, found.path, np.array([lambda_]), found.features
    expansion = found.function(found.coefficients(lambda_) * units, path.means * units)
    spread = None
    if options.intervals and isinstance(rows.points, Points):
        weights, posterior = np.square(path.spectrum.roots), found.combined(path.posterior(lambda_, NEGLIGIBLE))
        first = weights / weights.sum() if found.values is None else found.means
        spread = _spread(first, posterior, found.means, lambda_ / float(weights.sum()) + found.middle)
    scales = np.sqrt(path.scales(lambdas)[:, 0]) * units
    roots = path.spectrum.roots[:, None]
    left_out = path.leave_one_out(lambdas, rows.clusters)
    of_rows = scales * np.sqrt(path.left_out_variances(lambda_, rows.clusters))[:, None] / roots
    error = None
    if features is not None and found.values is not None:
        points = as_points(rows.points)
        # New values are also uncertain in what the features do not see of k(x, x), see `FeatureMap.diagonal`.
        unseen = features.diagonal(points) - np.einsum("ij,ij->i", found.values, found.values)
        of_rows = np.hypot(of_rows, scales * np.sqrt(np.maximum(unseen, 0.0))[:, None])
        error = feature_error(features, points, Engine(1), options.seed)
    squares = path.squared_errors(left_out)[:, 0]
    return RidgeFit(
        model=RidgeModel(rows.encoder, expansion, rows.names, lambda_, scales, len(rows), spread, features),
        grid=grid,
        fixed=options.fixed(rows),
        fitted=(rows.targets - path.scaled_residuals(lambdas)[:, :, 0] / roots) * units,
        left_out=left_out[:, :, 0] * units,
        left_out_spread=of_rows,
        loo_rmse=np.sqrt(squares) * units,
        loo_r2=1.0 - squares / variances(rows),
        gcv_rmse=np.sqrt(path.generalised(lambdas)[:, 0]) * units,
        degrees=float(path.degrees(lambdas)[0]),
        # The density of y = unit x y' on the n - 1 directions that matter.
        log_evidence=float(path.log_evidence(lambdas).sum()) - (len(rows) - 1) * float(np.log(units).sum()),
        condition=path.condition(lambda_),
        n_zero=path.spectrum.n_zero,
        feature_error=error,
    )


def _through_centres(
    rows: TrainingRows,
    units: Array,
    features: str,
    options: RidgeOptions,
    chooser: Callable[..., Any],
    *,
    engine: Engine,
    progress: Progress | None,
) -> RidgeFit:
    """Return the regression of targets x units in the span of some rows; lambda and bandwidth are chosen on a part of the rows.

    lambda is the variance of the noise in units of that of the prior, which does not depend on the number of rows.
    """
    n, points = len(rows), as_points(rows.points)
    rng = np.random.default_rng((options.seed, CHOOSING_STREAM))
    some = rows.take(np.sort(rng.choice(n, min(n, CHOOSING_ROWS), replace=False)))

    # Choosing is told as a third of the way, the steps after it as the rest.
    def choosing(done: int, total: int) -> None:
        if progress is not None:
            progress(done, 3 * total)

    def advanced(share: float) -> None:
        if progress is not None:
            progress(100 + round(200 * share), 300)

    lambda_, chosen, grid = chooser(some, units, engine, features=None, progress=choosing)
    if chosen.kernel is None:
        message = "columns have a kernel"
        raise TypeError(message)
    made = make_features(features, chosen.kernel, points, options.seed)
    if made.kind != "nystroem":
        raise UndecidedError(
            f"{features} is too much for {n:,} rows",
            hint=f"--features nystroem:{made.size} is for very many rows",
            code="undecided.memory",
        )
    centres, m = made.landmarks, len(made.landmarks)
    matrix = matrix_of(
        chosen.kernel,
        Points(np.concatenate([centres.numeric, points.numeric]), np.concatenate([centres.codes, points.codes])),
    )

    def block(part: slice | NDArray[np.intp]) -> Array:
        rows = slice(m + part.start, m + part.stop) if isinstance(part, slice) else m + part
        return np.asarray(matrix.block(rows, slice(0, m)))

    weights = np.ones(n) if rows.weights is None else rows.weights
    found = centre_ridge(
        block,
        made.projection,
        targets=rows.targets,
        weights=weights,
        lambda_=lambda_,
        engine=engine,
        seed=options.seed,
        advanced=advanced,
    )
    total = float(weights.sum())
    means = weights @ rows.targets / total
    intercepts = (means - found.mean @ found.weights) * units
    expansion = GivenExpansion(np.arange(len(found.weights)), found.weights * units, intercepts)
    # The same as t^2 of the evidence: z' (A + lambda)^-1 z = z' (residuals) / lambda.
    energy = np.einsum("nt,nt->t", weights[:, None] * (rows.targets - means), found.residuals)
    scales = np.sqrt(np.maximum(energy, 0.0) / lambda_ / (n - 1)) * units
    spread = None
    if options.intervals:
        spread = _spread(found.mean, found.posterior, found.mean, lambda_ / total + float(found.mean @ found.mean))
    return RidgeFit(
        model=RidgeModel(rows.encoder, expansion, rows.names, lambda_, scales, n, spread, made),
        grid=grid,
        fixed=options.fixed(rows),
        fitted=(rows.targets - found.residuals) * units,
        gcv_rmse=np.sqrt(weights @ np.square(found.residuals) / total) / (1.0 - found.degrees / n) * units,
        degrees=found.degrees,
        condition=found.condition,
        n_zero=n - 1 - len(found.mean),
        iterations=found.steps,
        converged=found.converged,
        feature_error=feature_error(made, points, engine, options.seed),
    )


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRidge:
    """A regression judged target by target; test rows are `predicted`, and `reach` is half of the length of their intervals."""

    rows: TrainingRows
    test: TrainingRows | None
    fit: RidgeFit
    interval: float
    predicted: Array | None
    reach: Array | None
    targets: tuple[TargetFit, ...]
    warnings: tuple[str, ...]


def judged_ridge(
    rows: TrainingRows, fit: RidgeFit, test: TrainingRows | None, interval: float, engine: Engine
) -> JudgedRidge:
    """Return a regression judged on its training rows and on others, with intervals of a probability."""
    model, predicted, reach = fit.model, None, None
    if test is not None:
        predicted = model.predicted(test.points, engine)
        if model.spread is not None:
            reach = model.reach(interval) * model.deviations(test.points, engine)
    targets = tuple(
        TargetFit(
            name=name,
            intercept=float(model.expansion.intercepts[place]),
            loo_rmse=None if fit.loo_rmse is None else float(fit.loo_rmse[place]),
            loo_r2=None if fit.loo_r2 is None else float(fit.loo_r2[place]),
            gcv_rmse=float(fit.gcv_rmse[place]),
            noise=float(model.noise[place]),
            scale=float(model.scales[place]),
            train=_metrics(rows, fit.fitted, None, place),
            test=None if test is None or predicted is None else _metrics(test, predicted, reach, place),
        )
        for place, name in enumerate(rows.names)
    )
    return JudgedRidge(rows, test, fit, interval, predicted, reach, targets, fit_warnings(rows, fit))


def _metrics(rows: TrainingRows, predicted: Array, reach: Array | None, place: int) -> IntervalMetrics:
    """Return how well a target is predicted."""
    truth, found = rows.targets[:, place], predicted[:, place]
    one = regression_metrics(truth, found)
    share = None if reach is None else covered_share(truth - found, reach[:, place])
    return IntervalMetrics(one.n, one.rmse, one.mae, one.r2, one.max_error, share)


def fit_warnings(rows: TrainingRows, fit: RidgeFit) -> tuple[str, ...]:
    """Return what a reader must know before trusting the regression."""
    # A lambda that is rounding itself cannot stand in for the eigenvalues that are.
    without = chosen = ""
    if fit.n_zero and fit.condition * np.finfo(np.float64).eps * ROUNDING >= 1:
        without = f", without the {counted(fit.n_zero, 'direction')} whose eigenvalue is 0 to rounding"
    named = ("lambda and the bandwidth were", "lambda was", "the bandwidth was")
    fixed_lambda, fixed_bandwidth = fit.fixed
    if not (fixed_lambda and fixed_bandwidth):
        chosen = f"; {named[2 * fixed_lambda + fixed_bandwidth]} chosen on {fit.grid.n_rows:,} of them"
    best = fit.grid.cells[fit.grid.chosen]
    lambdas, multiples = ({getattr(cell, name) for cell in fit.grid.cells} for name in ("lambda_", "multiple"))
    useful = not fixed_bandwidth and best.lambda_ < max(lambdas)
    cases = (
        (
            fit.condition > ILL_CONDITIONED,
            (
                f"the system is ill-conditioned (condition number {fit.condition:.1e}): it was solved through its "
                f"eigenvalues{without}; a larger --lambda is safer"
            ),
        ),
        (
            not fit.converged,
            (
                f"conjugate gradients stopped after {fit.iterations} steps before they had converged: the regression is "
                "usable, not exact; a larger --lambda or fewer features help"
            ),
        ),
        (
            fit.iterations is not None,
            (
                f"leave-one-out of {len(rows):,} rows is not computed with conjugate gradients: generalised cross-validation "
                f"stands for it{chosen}"
            ),
        ),
        (
            not fixed_lambda and best.lambda_ >= max(lambdas),
            f"the best lambda is the largest of the grid, {best.lambda_:g}: the columns may say little of the target",
        ),
        (
            not fixed_lambda and best.lambda_ <= min(lambdas),
            f"the best lambda is the smallest of the grid, {best.lambda_:g}: a smaller --lambda may be better still",
        ),
        (
            useful and best.multiple >= max(multiples),
            "the best bandwidth is the largest of the grid: a larger --bandwidth, or --kernel linear, may be better still",
        ),
        (
            useful and best.multiple <= min(multiples),
            "the best bandwidth is the smallest of the grid; --kernel laplacian2 suits rougher functions",
        ),
    )
    return tuple(text for applies, text in cases if applies)
