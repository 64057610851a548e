"""Ridge regressions of rows: the lambda and the bandwidth that a criterion chooses, and the model of that cell.

Every bandwidth is solved through eigenvalues, once for all lambdas; very many rows by conjugate gradients.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, InitVar, asdict, dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, cast, get_args

import numpy as np
from scipy.special import stdtrit

from kerntest.engines.engine import Engine, allowed_bytes
from kerntest.errors import UndecidedError, UsageError, one_of, option, whole_number
from kerntest.kernels.base import DensePairs, Points
from kerntest.learning.cross_validation import draw_folds, named, smoothest
from kerntest.learning.intervals import UnevenCoverage, covered_share, effective_clusters
from kerntest.learning.learner import FittedModel, LearnerOptions, first_flaw, sized
from kerntest.learning.scores import regression_metrics, root_mean_square
from kerntest.learning.solvers.least_squares import DENSE_ARRAYS, CentreRidge, Regressions, solve, weights_of
from kerntest.matrices import factor
from kerntest.matrices.expansion import GivenExpansion, expanded
from kerntest.report.results.learning_record import IntervalMetrics, RidgeCell, RidgeGrid, TargetFit

if TYPE_CHECKING:
    from collections.abc import Sequence, Sized

    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Codes, Kernel
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.learning.solvers.least_squares import Groups

Criterion: TypeAlias = Literal["loo", "gcv", "cv", "evidence"]
FOLDS = 5
# Bandwidths as multiples of the median, in fifths of a decade, and lambdas as multiples of the size of the kernel, in
# halves of a decade.
MULTIPLES = tuple(float(f"{10.0 ** (k / 5):.2g}") for k in range(-5, 5))
LAMBDAS = tuple(float(f"{10.0 ** (k / 2):.3g}") for k in range(-13, 7))
TIES = "the best score; of equal ones the smoothest: the largest lambda, then the largest bandwidth"
# Bytes that the matrices of all bandwidths at work may have together.
MEMORY = 4 * 10**9
# Rows that the size of a kernel is estimated from.
SIZE_ROWS = 1000
# What is smaller or larger is lost beside eigenvalues, which are squared and divided by.
LAMBDA_LIMITS = 1e-75, 1e75
# Directions of the posterior that change a variance by less than this share of k(x, x) are not kept.
NEGLIGIBLE = 1e-9
# Up to so many rows times squared features, a bandwidth is solved through eigenvalues; beyond by conjugate gradients. So it
# is beyond so many values of Nystroem features, which are held: 300,000 rows of 200 took 4 GB.
DIRECT, DIRECT_VALUES = 19 * 10**9, 2 * 10**7
# Of two and three clusters, intervals of fewer degrees of freedom than these held 96 to 100 % where 90 % were asked for.
LEAST_DEGREES = 3.0
# Rows on which lambda and bandwidth are chosen then.
CHOOSING_ROWS = 2000
# Matrices of the size of the features that a bandwidth takes; beside them of the square of their number, and numbers of each row
# for each lambda.
FEATURE_ARRAYS, SQUARE_ARRAYS, SCORED_ARRAYS = 7, 8, 5
CHOOSING_STREAM = 6


@dataclass(eq=False, repr=False)
class RidgeOptions(LearnerOptions):
    """What kind of regression; each as in `KernelRidge`."""

    # `lambda_` of a regression is that of its fit: what was asked for is kept behind it.
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
        vars(self)["lambda_"] = lambda_
        one_of("criterion", self.criterion, get_args(Criterion))
        super().__post_init__()
        if self.penalty is not None:
            hint = "values far above those of the kernel give the mean, far below a function through all rows"
            sized("lambda", self.penalty, LAMBDA_LIMITS, hint)
        if self.cv is not None:
            whole_number("cv", self.cv, at_least=2)
            both = f"{option('cv', self.cv)} and {option('criterion', self.criterion)}"
            self.refuse(self.criterion not in {"loo", "cv"}, both, f"{option('criterion', 'cv')} chooses by folds")

    @property
    def penalty(self) -> float | None:
        """The lambda that was asked for."""
        given: float | None = vars(self)["lambda_"]
        return given

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


@dataclass(frozen=True, slots=True)
class NewClusters:
    """What intervals for rows of new clusters take: degrees of freedom, of the clusters, and factors of the deviations of each target.

    These are the root mean squares of left-out rows in units of their deviations, at least 1: rows of a cluster err alike,
    which the noise of rows is not.
    """

    degrees: float
    factors: tuple[float, ...]

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        fits = self.degrees >= 1.0 and all(one >= 1.0 for one in self.factors)
        return None if fits else "degrees of freedom and factors must be at least 1"

    @classmethod
    def of(cls, errors: Array, spread: Array, clusters: Codes) -> NewClusters:
        """Return what rows left out with their clusters tell, by errors and deviations of shape (n, T)."""
        ratios = np.divide(errors, spread, out=np.zeros_like(errors), where=spread > 0)
        factors = np.maximum(np.sqrt(np.square(ratios).mean(axis=0)), 1.0)
        return cls(max(effective_clusters(clusters) - 1.0, LEAST_DEGREES), tuple(factors.tolist()))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RidgeModel(FittedModel):
    """What a fitted regression predicts T targets with.

    The scales are t, the standard deviations of the priors; that of the noise of a row of weight w is t sqrt(lambda / w). New
    rows have the mean weight, so that weights may be in any units.
    """

    targets: tuple[str, ...]
    lambda_: float
    scales: Annotated[Array, 1]
    spread: Spread | None = None
    uneven: tuple[UnevenCoverage, ...] = ()
    clustered: NewClusters | None = None
    mean_weight: float | None = None
    KIND: ClassVar[str] = "ridge"
    CALLED: ClassVar[str] = "a ridge regression"
    FAR_OFF: ClassVar[str] = "predictions there may be wild, and go back to the mean farther off"
    PREDICTS: ClassVar[bool] = True

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        count, spread = len(self.targets), self.spread
        names_fit = count and len(set(self.targets)) == count == len(self.expansion.intercepts)
        spread_fits = spread is None or len(spread.coefficients) == len(self.expansion.coefficients)
        return first_flaw(
            {
                "targets must be the names of its predictions, all different": not names_fit,
                "its scales and targets do not fit together": len(self.scales) != count or (self.scales < 0).any(),
                "what its intervals follow from does not fit its centres": not spread_fits,
                "lambda must be a positive number": self.lambda_ <= 0,
                "the mean weight must be a positive number": self.mean_weight is not None and self.mean_weight <= 0,
                "its factors and targets do not fit together": self.clustered and len(self.clustered.factors) != count,
            }
        )

    def deviations(self, points: Points | Array, engine: Engine, *, noise: bool = True) -> Array:
        """Return the standard deviation of new values at n rows, shape (n, T); without noise, of the function itself."""
        if self.spread is None or not isinstance(points, Points):
            told, hint = (
                "this model keeps nothing for standard deviations",
                f"fit it to columns, without {option('intervals', False)}",
            )
            raise UsageError(told, hint=hint, code="usage.no_intervals")
        prior: Any = self.features or self.kernel
        functions = replace(self.expansion, coefficients=self.spread.coefficients, intercepts=self.spread.intercepts)
        found = expanded(functions, self.features, points, engine)
        variance = self.spread.floor + prior.diagonal(points) - 2.0 * found[:, 0]
        variance -= np.einsum("ij,ij->i", found[:, 1:], found[:, 1:])
        np.maximum(variance, 0.0, out=variance)
        if noise:
            variance += self.lambda_ / (self.mean_weight or 1.0)
        factors = self.clustered.factors if self.clustered is not None and noise else 1.0
        return np.asarray(np.sqrt(variance)[:, None] * self.scales * factors)

    @property
    def noise(self) -> Array:
        """Standard deviations of the noise, of rows of the mean weight, shape (T,)."""
        return np.asarray(self.scales * np.sqrt(self.lambda_ / (self.mean_weight or 1.0)))

    def reach(self, probability: float) -> float:
        """Return how many standard deviations an interval reaches to each side: Student's t, for t^2 is estimated."""
        # From the lower tail, whose probability has all its digits where 0.5 + 0.5 P would be 1.
        degrees = max(self.n_train - 1, 1) if self.clustered is None else self.clustered.degrees
        return -float(stdtrit(degrees, 0.5 * (1.0 - probability)))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RidgeFit:
    """A model, and what it took; `iterations` are of conjugate gradients, None with eigenvalues.

    `left_out` are targets less the predictions by all other rows, `left_out_spread` the standard deviations of these.
    """

    model: RidgeModel
    grid: RidgeGrid
    targets: tuple[TargetFit, ...]
    # Whether lambda and the bandwidth were given.
    fixed: tuple[bool, bool]
    fitted: Array
    effective_df: float
    condition_number: float
    n_zero: int
    left_out: Array | None = None
    left_out_spread: Array | None = None
    log_evidence: float | None = None
    iterations: int | None = None
    converged: bool = True
    warnings: tuple[str, ...] = ()

    @property
    def loo_rmse(self) -> float | None:
        """Root mean squared error of leave-one-out; of several targets the root mean square of theirs."""
        return None if self.left_out is None else root_mean_square(np.array([one.loo_rmse for one in self.targets]))


def fit_ridge(rows: TrainingRows, options: RidgeOptions, progress: Progress | None = None) -> RidgeFit:
    """Return the regression whose lambda and bandwidth the criterion chooses; those that are given are the only ones tried."""
    # Squares neither overflow nor vanish in units near the spread of a target; powers of two cost no digit.
    half = 0.5 * rows.targets.max(axis=0) - 0.5 * rows.targets.min(axis=0)
    exponents = np.round(np.log2(np.maximum(half, np.finfo(np.float64).tiny)))
    units = np.exp2(np.clip(exponents, -1000, 1000))
    search = _Search(replace(rows, targets=rows.targets / units), units, options)
    if not is_direct(rows, options.features):
        return search.through_centres(progress)
    chosen = search.choose(search.rows, options.features, progress)
    # Inside the engine, so that BLAS has no more threads than were asked for.
    return next(iter(options.engine.here.map(lambda _: search.from_path(*chosen), [0])))


def _nothing(done: int, total: int) -> None:
    """Tell nobody."""


def is_direct(rows: Sized, features: str | None) -> bool:
    """Say whether eigenvalues find a regression; of many rows times features, conjugate gradients do."""
    width = width_of(rows, features, whole=0)
    held = features is not None and factor.parse_features(features)[0] == "nystroem"
    return len(rows) * width**2 <= DIRECT and (not held or len(rows) * width <= DIRECT_VALUES)


def width_of(rows: Sized, features: str | None, whole: int) -> int:
    """Return how many features rows have, or how many columns their whole matrix."""
    return whole if features is None else min(factor.parse_features(features)[1], len(rows))


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """The search for the regression of targets x units."""

    rows: TrainingRows
    units: Array
    options: RidgeOptions

    def choose(
        self, rows: TrainingRows, features: str | None, progress: Progress | None
    ) -> tuple[float, Regressions, RidgeGrid]:
        """Return the lambda that the criterion chooses on some rows, the regressions of the chosen bandwidth, and the grid.

        The scores of the grid are those of targets x units. It has the lambda that is given, or 20 of them, and open
        bandwidths at multiples of their median, if there are any.
        Cost: one eigendecomposition for each bandwidth, 9 n^3 operations, which serves all lambdas.
        """
        points, options, criterion, several = rows.points, self.options, self.options.chosen_by, len(rows.names) > 1
        kernels: Sequence[Kernel | None] = [rows.kernel]
        multiples: tuple[float, ...] = (1.0,)
        if rows.chosen is not None and not options.fixed(rows)[1]:
            multiples = MULTIPLES
            kernels = rows.chosen.at_multiples(multiples)
        lambdas = _lambdas(rows) if options.penalty is None else np.array([options.penalty])
        folds, groups = None, rows.clusters
        if criterion == "cv":
            folds = FOLDS if options.cv is None else options.cv
            groups = draw_folds(len(rows), folds, options.seed, clusters=groups)
        # Distances are computed once, for all bandwidths.
        pairs = DensePairs(points, points) if isinstance(points, Points) and features is None else None

        def work(kernel: Kernel | None) -> tuple[Regressions, Array, Array]:
            found = solve(rows, kernel, features, options.seed, pairs)
            return found, self._scores(found, lambdas, groups), found.path.degrees(lambdas)

        # The path of a bandwidth is the largest thing here: only that of the best one so far is kept.
        scores, degrees = np.empty((2, 0))
        kept: tuple[int, Regressions] | None = None
        engine = few_at_once(rows, features, self.options.engine)
        for found, of_one, df in engine.map(work, kernels, progress):
            place = len(scores) // len(lambdas)
            scores, degrees = np.append(scores, of_one), np.append(degrees, df)
            orders = [np.tile(lambdas, place + 1), np.repeat(multiples[: place + 1], len(lambdas))]
            best = smoothest(scores, orders)
            at, which = divmod(best, len(lambdas))
            if at == place:
                kept = (place, found)
            del found
        if kept is None or kept[0] != at:
            kept = (at, work(kernels[at])[0])
        if criterion == "evidence":
            called, scores = "negative log evidence", scores + self._log_units()
        else:
            called, scores = ("relative RMSE", scores) if several else ("RMSE", scores * self.units[0])
        cells = []
        told = zip(product(zip(multiples, kernels, strict=True), lambdas), scores, degrees, strict=True)
        for ((multiple, kernel), penalty), score, df in told:
            cells.append(RidgeCell(float(penalty), *named(multiple, kernel), float(score), float(df)))
        grid = RidgeGrid(called, folds, TIES, tuple(cells), best, criterion, len(rows))
        return float(lambdas[which]), kept[1], grid

    def _scores(self, found: Regressions, lambdas: Array, groups: Groups) -> Array:
        """Return what the criterion says of each lambda, the less the better; errors of several targets by their variances."""
        path, criterion, rows = found.path, self.options.chosen_by, found.rows
        if criterion == "evidence":
            return np.asarray(-path.log_evidence(lambdas).sum(axis=0))
        by_gcv = criterion == "gcv"
        errors = path.generalised(lambdas) if by_gcv else path.squared_errors(path.left_out(lambdas, groups))
        sizes = variances(rows) if len(rows.names) > 1 else np.ones(1)
        return np.asarray(np.sqrt((errors / sizes[:, None]).mean(axis=0)))

    def from_path(self, lambda_: float, found: Regressions, grid: RidgeGrid) -> RidgeFit:
        """Return the regression at the chosen lambda, all of it from the eigendecomposition."""
        rows, path, features = found.rows, found.path, found.features
        lambdas, spread = np.array([lambda_]), None
        if self.options.intervals and isinstance(rows.points, Points):
            first = path.weights / path.weights.sum() if features is None else found.means
            posterior = found.combined(path.posterior(lambda_, NEGLIGIBLE))
            spread = _spread(first, posterior, found.means, lambda_ / float(path.weights.sum()))
        expansion = found.function(found.coefficients(lambda_), path.means)
        scales, left_out = np.sqrt(path.scales(lambdas)[:, 0]), path.left_out(lambdas, rows.clusters)
        unsure = path.left_out_variances(lambda_, rows.clusters) / path.weights
        if features is not None and found.values is not None:
            # New values are also uncertain in what the features do not see of k(x, x), see `FeatureMap.diagonal`.
            seen = np.einsum("ij,ij->i", found.values, found.values)
            unsure += np.maximum(features.diagonal(factor.as_points(rows.points)) - seen, 0.0)
        unsure, clustered = np.sqrt(unsure)[:, None] * scales, None
        if rows.clusters is not None:
            clustered = NewClusters.of(left_out[:, :, 0], unsure, rows.clusters)
            unsure *= clustered.factors
        model = RidgeModel.of(
            rows,
            targets=rows.names,
            lambda_=lambda_,
            expansion=expansion,
            scales=scales,
            spread=spread,
            features=features,
            clustered=clustered,
        )
        return self._fit(
            model,
            grid,
            path.scaled_residuals(lambdas)[:, :, 0] / path.roots[:, None],
            np.sqrt(path.generalised(lambdas)[:, 0]),
            path.squared_errors(left_out)[:, 0],
            left_out=left_out[:, :, 0] * self.units,
            left_out_spread=unsure * self.units,
            effective_df=float(path.degrees(lambdas)[0]),
            log_evidence=float(path.log_evidence(lambdas).sum()) - self._log_units(),
            condition_number=path.condition(lambda_),
            n_zero=path.spectrum.n_zero,
        )

    def through_centres(self, progress: Progress | None) -> RidgeFit:
        """Return the regression in the span of some rows; lambda and bandwidth are chosen on a part of the rows.

        lambda is the variance of the noise in units of that of the prior, which does not depend on the number of rows.
        """
        rows, options, n = self.rows, self.options, len(self.rows)
        points, rng = factor.as_points(rows.points), np.random.default_rng((options.seed, CHOOSING_STREAM))
        some = rows.take(np.sort(rng.choice(n, min(n, CHOOSING_ROWS), replace=False)))

        told = progress or _nothing
        # Choosing is told as a third of the way, the steps after it as the rest.
        lambda_, chosen, grid = self.choose(some, None, lambda done, total: told(done, 3 * total))
        features = options.features or ""
        made = factor.make_features(features, cast("Kernel", chosen.kernel), points, options.seed)
        if made.kind != "nystroem":
            hint = f"{option('features', f'nystroem:{made.size}')} is for very many rows"
            raise UndecidedError(f"{features} is too much for {n:,} rows", hint=hint, code="undecided.memory")

        def advanced(share: float) -> None:
            told(100 + round(200 * share), 300)

        found = CentreRidge(made, rows, lambda_, self.options.engine, seed=options.seed, advanced=advanced)
        weights, means = weights_of(rows), found.means
        total = float(weights.sum())
        # The same as t^2 of the evidence: z' (A + lambda)^-1 z = z' (residuals) / lambda.
        energy = np.einsum("nt,nt->t", weights[:, None] * (rows.targets - means), found.residuals)
        scales = np.sqrt(np.maximum(energy, 0.0) / lambda_ / (n - 1))
        expansion = GivenExpansion(np.arange(len(found.weights)), found.weights, means - found.mean @ found.weights)
        spread = _spread(found.mean, found.posterior, found.mean, lambda_ / total) if options.intervals else None
        model = RidgeModel.of(
            rows, targets=rows.names, lambda_=lambda_, expansion=expansion, scales=scales, spread=spread, features=made
        )
        return self._fit(
            model,
            grid,
            found.residuals,
            np.sqrt(weights @ np.square(found.residuals) / total) / (1.0 - found.degrees / n),
            effective_df=found.degrees,
            condition_number=found.condition,
            n_zero=n - 1 - len(found.mean),
            iterations=found.steps,
            converged=found.converged,
        )

    def _log_units(self) -> float:
        """Return by how much the density of y = unit x y' on the n - 1 directions that matter differs from that of y'."""
        return (len(self.rows) - 1) * float(np.log(self.units).sum())

    def _fit(
        self, model: RidgeModel, grid: RidgeGrid, residuals: Array, gcv: Array, loo: Array | None = None, **found: Any
    ) -> RidgeFit:
        """Return a regression of targets x units with what is known of each; `loo` are the mean squares of leave-one-out."""
        rows, units, function = self.rows, self.units, model.expansion
        function = replace(function, coefficients=function.coefficients * units, intercepts=function.intercepts * units)
        weight = None if rows.weights is None else float(np.mean(rows.weights))
        model = replace(model, expansion=function, scales=model.scales * units, mean_weight=weight)
        fitted, nothing = (rows.targets - residuals) * units, [None] * len(units)
        fits = map(
            TargetFit,
            rows.names,
            function.intercepts.tolist(),
            nothing if loo is None else (np.sqrt(loo) * units).tolist(),
            nothing if loo is None else (1.0 - loo / variances(rows)).tolist(),
            *((gcv * units).tolist(), model.noise.tolist(), model.scales.tolist()),
            map(interval_metrics, (rows.targets * units).T, fitted.T),
            nothing,
        )
        fixed = self.options.fixed(rows)
        return RidgeFit(model=model, grid=grid, targets=tuple(fits), fixed=fixed, fitted=fitted, **found)


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
        size = float(np.mean(np.diagonal(K)) - np.mean(K)) * float(np.mean(weights_of(rows)))
    power = round(math.log10(size)) if math.isfinite(size) and size > 0 else 0
    return np.array([float(f"{share * 10.0**power:.3g}") for share in LAMBDAS])


def matrices_at_once(rows: Sized, features: str | None, engine: Engine) -> tuple[int, int]:
    """Return the bytes that the matrices of one bandwidth take, and for how many bandwidths at once there is room."""
    n, width = len(rows), width_of(rows, features, len(rows))
    need = 8 * n * DENSE_ARRAYS * width
    if features is not None:
        # Of few features what is left out of the rows for each lambda is larger than these.
        scored = len(LAMBDAS) * SCORED_ARRAYS + 2 * width
        need = 8 * (n * max(FEATURE_ARRAYS * width, scored) + SQUARE_ARRAYS * width**2)
    most = min(engine.threads, allowed_bytes(MEMORY) // need)
    # Whether one fits into what is allowed is told with all else that takes memory, before anything is computed.
    return need, most if engine.memory is None else max(1, most)


def few_at_once(rows: Sized, features: str | None, engine: Engine) -> Engine:
    """Return an engine that works on no more matrices at once than there is memory for."""
    n, (need, most) = len(rows), matrices_at_once(rows, features, engine)
    if most:
        return Engine(most)
    what = (
        f"the eigenvalues of the kernel matrix of {n:,} rows take several matrices of its size, {need / 1e9:.1f} GB, and "
        f"{allowed_bytes(MEMORY) / 1e9:.3g} GB are the most"
    )
    raise UndecidedError(
        what, hint=f"{option('features', 'nystroem:2000')} is for very many rows", code="undecided.memory"
    )


def variances(rows: TrainingRows) -> Array:
    """Return the weighted variances of the targets, shape (T,)."""
    weights = weights_of(rows)
    centred = rows.targets - weights @ rows.targets / weights.sum()
    return np.asarray(weights @ np.square(centred) / weights.sum())


def _spread(first: Array, posterior: Array, means: Array, least: float) -> Spread:
    """Return what variances follow from, with a(x) of the coefficients `first`; `least` is lambda / sum w."""
    intercepts = np.concatenate([[0.0], -(means @ posterior)])
    return Spread(np.column_stack([first, posterior]), intercepts, least + float(means @ first))


def interval_metrics(truth: Array, predicted: Array, reach: Array | None = None) -> IntervalMetrics:
    """Return how well a target is predicted, with intervals that reach so far to each side."""
    covered = None if reach is None else covered_share(truth - predicted, reach)
    return IntervalMetrics(**asdict(regression_metrics(truth, predicted)), coverage=covered)
