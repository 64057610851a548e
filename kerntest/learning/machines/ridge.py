"""Kernel ridge regression: `KernelRidge`, and `train_ridge`, from a file to a judged, saved model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kerntest.data.columns import match_names, split_patterns
from kerntest.engines.engine import HEAP_BYTES
from kerntest.errors import DataError, UsageError, counted, either, option, positive
from kerntest.learning import scores
from kerntest.learning.estimator import Estimator, not_fitted
from kerntest.learning.fit_pictures import Predicted, ridge_panels
from kerntest.learning.intervals import covered_share, told_below_zero, told_of_coverage, uneven_coverage
from kerntest.learning.learner import Judgement, Learner, trains, values_for_name
from kerntest.learning.learner import train as train_learner
from kerntest.learning.machines import ridge_fit
from kerntest.learning.machines.ridge_fit import RidgeFit, RidgeModel, RidgeOptions
from kerntest.learning.rows import targets as outcomes
from kerntest.learning.rows.training_rows import read_labelled
from kerntest.learning.solvers.least_squares import ROUNDING
from kerntest.learning.work_of_fits import Cost, cost_of_ridge, work_of_spectra
from kerntest.report.results.learning_record import RidgeResult
from kerntest.report.summaries.learner_summary import left_out_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kerntest.data.table import Column
    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Codes
    from kerntest.learning.rows.training_rows import Labelled, TrainingOptions, TrainingRows
    from kerntest.report.results.learning_record import RidgeGrid, TargetFit

    Names: TypeAlias = str | Sequence[str] | None

# Systems with a larger condition number are told of: rounding is then seen in the fit.
ILL_CONDITIONED = 1e12
# The edge of a grid is told where its best cell is better by this share than all before the edge.
GAIN = 0.01


class KernelRidge(RidgeOptions, Estimator[RidgeModel, RidgeFit]):
    """Kernel ridge regression with a free intercept, and the Gaussian process that it is the mean of.

    Minimises sum_i w_i (y_i - f(x_i) - b)^2 + lambda |f|^2. What is not given is chosen by exact leave-one-out (or
    another criterion) over 10 bandwidths and 20 lambdas, from one eigendecomposition for each bandwidth.

    Parameters
    ----------
    lambda_ : float, optional
        As in (K + lambda I) alpha = y - b. Chosen if not given.
    kernel : Kernel or str
        A kernel or its text; "precomputed" for rows of a matrix of kernel values.
    bandwidth : "auto", "median" or float
        For bandwidths that the kernel leaves open; "auto" chooses a multiple of the median, from 0.1 to 6.3.
    criterion : "loo", "gcv", "cv" or "evidence"
        What chooses: exact leave-one-out, generalised cross-validation, exact k-fold cross-validation, or the evidence
        of the Gaussian process. Of equal cells the smoothest: the largest lambda, then the largest bandwidth. A row is left
        out with its copies.
    cv : int, optional
        Folds of "cv", the criterion where they are given; 5 by default. They judge a lambda and a bandwidth that are given too.
    features : str, optional
        "nystroem:M" or "fourier:M": for very many rows, which are taken beyond some 4,900 rows, or 10,600 with one
        bandwidth, with a warning; "none" insists on the kernel matrix.
    intervals : bool
        Whether to keep what standard deviations need: as many numbers again as the kernel matrix has, at most.
    scale : "standardize", "together" or "none"
        Whether numeric columns are brought to mean 0 and standard deviation 1 of the training rows, each or by one scale.
    seed : int
    threads : int, optional
    unknown : "error" or "ignore"
        What to do with categories of new rows that no training row had: "ignore" takes them as different from all others,
        as `kerntest predict --unknown ignore` does, and as folds need that lack one.

    Notes
    -----
    Cost of `fit`: 9 n^3 operations for each bandwidth, and 40 n^2 bytes at once.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> regression = KernelRidge().fit(X, y)
    >>> mean, deviation = regression.predict(np.array([[0.0], [1.0]]), return_std=True)
    >>> bool(np.abs(mean - np.sin([0.0, 1.0])).max() < 0.05)
    True
    >>> bool(0.05 < regression.noise_[0] < 0.15)
    True
    """

    MODEL, CALLED, SHOWN, SEVERAL = RidgeModel, "this regression is", {"lambda_": "lambda_"}, True
    _estimator_type = "regressor"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelRidge:
        """Fit to n rows.

        Parameters
        ----------
        X : path, ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
            The columns; with kernel="precomputed" the matrix of kernel values, shape (n, n).
        y : str, list of str, or numbers of shape (n,) or (n, T)
            The targets: columns of X, or values.
        sample_weight : sequence of n numbers, optional
            A row of weight 2 counts like two rows in the fit, and is left out as one; of weight 0 it is not there.

        Warns
        -----
        KerntestWarning
            Of what is to be known before the model is used.

        Raises
        ------
        UsageError, DataError, UndecidedError
            If the options, the rows or the kernel do not allow it.
        """
        return self._learned(RidgeLearner(self), X, y, sample_weight)

    @property
    def lambda_(self) -> float:
        """The lambda of the fit."""
        return self.model.lambda_

    @property
    def noise_(self) -> Array:
        """Estimated standard deviation of the noise for each target, shape (T,)."""
        return self.model.noise

    @property
    def grid_(self) -> RidgeGrid:
        """The lambdas and bandwidths tried, with their scores."""
        return self._fitted().grid

    @property
    def loo_rmse_(self) -> float | None:
        """Root mean squared error of leave-one-out; of several targets the root mean square of theirs."""
        return self._fitted().loo_rmse

    @property
    def effective_df_(self) -> float:
        """Trace of the hat matrix, the intercept counting 1."""
        return self._fitted().effective_df

    def predict(self, X: Any, *, return_std: bool = False, noise: bool = True) -> Any:
        """Return predictions, shape (n,), or (n, T) for several targets.

        Parameters
        ----------
        X : as in `fit`, m rows
        return_std : bool
            Also return standard deviations of the same shape.
        noise : bool
            Whether these are of a new value, with its noise, or of the function alone.
        """
        points = self._points(X)
        mean = self._shaped(self.model.scores(points, self.engine))
        return (mean, self._shaped(self.model.deviations(points, self.engine, noise=noise))) if return_std else mean

    def predict_interval(self, X: Any, probability: float = 0.9) -> tuple[Array, Array]:
        """Return where new values lie with this probability: their lower and upper ends.

        Student's t with n - 1 degrees of freedom about the prediction, by the Gaussian process.
        """
        positive("interval", probability, below=1.0)
        mean, deviation = self.predict(X, return_std=True)
        reach = self.model.reach(probability) * deviation
        return mean - reach, mean + reach

    def score(self, X: Any, y: Any) -> float:
        """Return r2; of several targets the mean of theirs."""
        predicted = self.model.scores(self._points(X), self.engine)
        truth = self._truth(y, len(predicted))
        metrics = [ridge_fit.interval_metrics(*one) for one in zip(truth.T, predicted.T, strict=True)]
        return scores.over_targets(metrics).r2 or 0.0

    def _truth(self, y: Any, n: int) -> Array:
        truth, count = [outcomes.numbers_of(one, "y") for one in outcomes.given_targets(y, n)], len(self.model.targets)
        if len(truth) != count:
            what = f"y has {counted(len(truth), 'target')}, and the regression predicts {count:,}"
            raise DataError(what, hint="hand over the targets of the fit, in their order", code="data.wrong_shape")
        return np.column_stack(truth)

    def _fitted(self) -> RidgeFit:
        if self.fit_ is None:
            raise not_fitted("this regression was not fitted here", "a model file keeps what predicts")
        return self.fit_

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if len(self.model.targets) == 1 else values


@trains(RidgeOptions)
def train_ridge(
    train: Any, target: str | Sequence[str], *, weights: str | None = None, interval: float = 0.9, **options: Any
) -> RidgeResult:
    """Fit a kernel ridge regression to a table, judge it, and save it.

    Parameters
    ----------
    train : path, "-", ndarray, DataFrame, pyarrow Table or kerntest.Table
        The rows to learn from.
    target : str or sequence of str
        The column to predict, or several.
    test : as train, optional
        Rows to judge by. Columns are found by name.
    test_fraction : float, optional
        Instead of `test`: the share of the rows of `train` that is held out.
    output : path, optional
        File for the model; an existing one is replaced only with `force`.
    plot : path, optional
        PNG, SVG or PDF file: the fit with its band over one numeric column, or else what was predicted and what was
        there; the residuals; the grid.
    lambda_, kernel, bandwidth, criterion, cv, features, intervals, scale, seed
        As in `KernelRidge`.
    weights : str, optional
        A column of weights of rows, which is not learned from. Errors on test rows all count alike.
    interval : float
        Probability of the predictive intervals whose coverage is told.
    columns, exclude, categorical, missing
        As in `mmd_test`: which columns and rows.
    cluster : str, optional
        A column, such as a patient or a shop, whose rows of one value stay together in test parts and folds, and are left
        out together. It is not learned from. Copies of a row stay together without it.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    RidgeResult

    Warns
    -----
    KerntestWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError, DataError, UndecidedError
        If the options, the rows or the kernel do not allow it.
    """
    learner = RidgeLearner(RidgeOptions.taken_from(options), target, weights, interval)
    return train_learner(learner, train, **options)


class RidgeLearner(Learner[RidgeFit, RidgeResult]):
    """Regressions of one target or several, with a column of weights, and intervals of a probability."""

    COMMAND, ESTIMATOR, RESULT, WEIGHTED = "ridge", "KernelRidge", RidgeResult, True
    # Steps over n M values find them. On 5,000 rows of a rough function 1,000 landmarks lost 0.013 of r2, and 2,000 lost 0.006.
    LANDMARKS = 2e8, 1, 2000
    work = work_of_spectra

    def __init__(
        self, options: RidgeOptions, target: Names = None, weights: str | None = None, interval: float = 0.9
    ) -> None:
        positive("interval", interval, below=1.0)
        self.options: RidgeOptions = options
        self.target, self.weights, self.interval = target, weights, interval

    def read(self, data: Any, reading: TrainingOptions) -> Labelled:
        """Return a table with its targets, and the weights beside it."""
        table = reading.read(data)
        if not isinstance(self.target, Iterable):
            what = f"target must be the name of a column, or a list of names, not {self.target!r}"
            raise UsageError(what, hint=f"the columns are {', '.join(table.names[:12])}", code="usage.target")
        texts = [self.target] if isinstance(self.target, str) else [str(one) for one in self.target]
        if not isinstance(self.target, str) and len(texts) == table.n_rows and not {*texts} & {*table.names}:
            raise values_for_name(self.target, self.ESTIMATOR)
        # A text may name several with commas between them, unless it is a name.
        patterns = [one for text in texts for one in ([text] if text in table.names else split_patterns(text))]
        names = tuple(match_names(patterns, table.names, table.name))
        if not names:
            raise UsageError(
                f"{option('target')} names no column", hint="name the column to predict", code="usage.target"
            )
        if self.weights in names:
            both = f"column {self.weights!r} cannot be both target and weight"
            raise UsageError(both, hint="name another one", code="usage.weights")
        beside = () if self.weights is None else (self.weights,)
        return read_labelled(table, names, reading, beside=beside, check=outcomes.numbers_of)

    def rows(self, labelled: Labelled) -> TrainingRows:
        """Return the rows of a table that have a weight; refuse a criterion that has nothing to choose."""
        rows, criterion = super().rows(labelled), self.options.criterion
        # From Python it is let pass.
        if self.target is not None and all(self.options.fixed(rows)) and criterion != "loo":
            what = f"{option('criterion', criterion)} has nothing to choose: lambda and the bandwidth are given"
            raise UsageError(
                what, hint=f"leave out {option('criterion')}, or {option('lambda')}", code="usage.criterion"
            )
        if rows.clusters is not None and rows.clusters.min() == rows.clusters.max():
            one = "all rows that are learned from are in one cluster, which cannot be left out: they are, one at a time"
            return replace(rows, clusters=None, warnings=(*rows.warnings, one))
        return rows

    def with_targets(self, rows: TrainingRows, targets: Sequence[Column], table: str) -> TrainingRows:
        """Return rows with numbers to predict."""
        names, warnings = tuple(column.name for column in targets), (*rows.warnings, *outcomes.told_of_dates(targets))
        return replace(rows, names=names, targets=outcomes.numbers_to_learn(targets, table), warnings=warnings)

    def cost(self, rows: TrainingRows) -> Cost:
        """Return what the spectra of all kernels take; refuse a matrix for which there is no room at all."""
        options, n, held = self.options, len(rows), 0.0
        several = rows.chosen is not None and not options.fixed(rows)[1]
        kernels = rows.chosen.at_multiples(ridge_fit.MULTIPLES) if several and rows.chosen else [rows.kernel]
        direct = ridge_fit.is_direct(rows, options.features)
        if options.features is None or (several and direct):
            need, most = ridge_fit.matrices_at_once(rows, options.features, options.engine)
            # Of several the best so far is kept: of matrices with the distances, of features in two arrays, and where these are
            # so small that the C library keeps them, the room of another one.
            size = 8 * n * ridge_fit.width_of(rows, options.features, n)
            kept = (3 if options.features is not None and size < HEAP_BYTES else 2) * size * several
            held = float(need * max(1, min(most, len(kernels))) + kept)
            if options.engine.memory is None:
                ridge_fit.few_at_once(rows, options.features, options.engine)
        told: Any = {
            "features": options.features,
            "chosen_on": min(n, ridge_fit.CHOOSING_ROWS),
            "direct": direct,
        }
        folds, told["left_out"] = options.cv or ridge_fit.FOLDS, np.empty(0)
        if options.chosen_by == "cv":
            told["left_out"] = np.full(folds, 1.0 / folds)
        elif options.chosen_by == "loo" and rows.clusters is not None:
            told["left_out"] = np.bincount(rows.clusters) / n
        lambdas = len(ridge_fit.LAMBDAS) if options.penalty is None else 1
        return cost_of_ridge(kernels, rows.points, lambdas=lambdas, held=held, **told)

    def fit(self, rows: TrainingRows, progress: Progress | None = None) -> RidgeFit:
        """Return the regression that the criterion chooses."""
        fit = ridge_fit.fit_ridge(rows, self.options, progress)
        if fit.left_out is not None and fit.left_out_spread is not None:
            predicted, reach = rows.targets - fit.left_out, fit.model.reach(self.interval) * fit.left_out_spread
            # Without a row the prediction of its equals is the lower the higher it is: of few different ones that is all there is.
            few = [2 * len(np.unique(np.round(one / (np.ptp(one) or 1.0), 9))) <= len(rows) for one in fit.fitted.T]
            columns = zip(rows.names, np.where(few, fit.fitted, predicted).T, fit.left_out.T, reach.T, strict=True)
            known = [one for one, target in zip(columns, fit.targets, strict=True) if (target.loo_r2 or 0.0) > 0.0]
            told: Any = {"interval": self.interval, "clusters": rows.clusters}
            uneven = chain.from_iterable(uneven_coverage(*one, **told) for one in known)
            fit = replace(fit, model=replace(fit.model, uneven=tuple(uneven)))
        return replace(fit, warnings=fit_warnings(rows, fit))

    def rule(self, rows: TrainingRows) -> str:
        """Return how the bandwidth was chosen, in words."""
        if self.options.fixed(rows)[1]:
            return super().rule(rows)
        return f"the best multiple of the median, by {self.options.chosen_by}"

    def judge(
        self, rows: TrainingRows, fit: RidgeFit, test: TrainingRows | None, learned: Labelled
    ) -> Judgement[RidgeResult]:
        """Return how good a regression is on its training rows, on those left out, and on others."""
        model, options, targets, interval = fit.model, self.options, fit.targets, self.interval
        cluster = None if learned.cluster is None else learned.cluster.name
        left_out = left_out_rows(cluster, together=rows.clusters is not None)
        truth, found, shown, reach = rows.targets, fit.fitted, "training rows", None
        covered = loo_r2 = test_metrics = None
        if fit.left_out is not None and fit.left_out_spread is not None:
            found, shown = truth - fit.left_out, left_out
            reach = model.reach(interval) * fit.left_out_spread
            covered = covered_share(fit.left_out, reach)
            loo_r2 = float(np.mean([one.loo_r2 for one in targets]))
        if test is not None:
            truth, found, shown, reach = test.targets, model.scores(test.points, options.engine), "test rows", None
            if model.spread is not None:
                reach = model.reach(interval) * model.deviations(test.points, options.engine)
        halves = [None] * len(targets) if reach is None else list(reach.T)
        judged = [
            Predicted(rows.names[place], truth[:, place], found[:, place], shown, half, interval)
            for place, half in enumerate(halves)
        ]
        train = scores.over_targets([one.train for one in targets])
        if test is not None:
            metrics = [ridge_fit.interval_metrics(one.truth, one.found, one.reach) for one in judged]
            targets = tuple(replace(one, test=own) for one, own in zip(targets, metrics, strict=True))
            test_metrics = scores.over_targets(metrics)
        grid = _judged_by_folds(fit, loo_r2)
        # Folds that were asked for judge a single cell too.
        unjudged = all(fit.fixed) and fit.grid.folds is None
        same = ("loo_rmse", "effective_df", "log_evidence", "condition_number", "n_zero", "converged")
        fields = {name: getattr(fit, name) for name in same} | {
            "target": rows.names[0],
            "targets": rows.names,
            "rmse": (test_metrics or train).rmse,
            "r2": (test_metrics or train).r2,
            "lambda_": model.lambda_,
            "lambda_per_row": model.lambda_ / len(rows),
            "criterion": "none" if unjudged else options.chosen_by,
            "loo_r2": loo_r2,
            "loo_coverage": covered,
            "gcv_rmse": scores.root_mean_square(np.array([one.gcv_rmse for one in targets])),
            "interval": interval,
            "train": train,
            "test": test_metrics,
            "fits": targets,
            "solver": "eigenvalues" if fit.iterations is None else "conjugate gradients",
            "iterations": fit.iterations or 0,
            "weights": self.weights,
            "grid": None if unjudged else grid,
        }
        parts = [one for one in (rows, test) if one is not None]
        drawn = partial(ridge_panels, fit=fit, parts=parts, judged=judged, engine=options.engine)
        dates = {column.name for column in learned.targets if column.kind == "date"}
        told = [one.told(left_out, date=one.target in dates) for one in model.uneven]
        warnings = self._warnings(judged, targets, grid, (test or rows).clusters)
        # Of intervals of one width the transformation is told once.
        for one in judged:
            uneven = any(uneven.target == one.name for uneven in model.uneven)
            if one.reach is not None and one.name not in dates and not uneven:
                warnings += told_below_zero(one.name, one.truth, one.found - one.reach, interval, one.rows)
        if test is None and fit.grid.criterion in {"loo", "cv"}:
            held = left_out if fit.grid.folds is None else f"rows held out in {fit.grid.folds} folds"
            way = f", and intervals are too narrow by as much; {option('criterion', 'evidence')} chooses less by chance"
            if chosen := scores.told_of_choice(len(fit.grid.cells), len(rows), rows.clusters, way):
                warnings.append(f"the decision is of {held}{chosen}")
        return Judgement(fields, drawn, [*warnings, *told])

    def _warnings(
        self, judged: Sequence[Predicted], targets: Sequence[TargetFit], grid: RidgeGrid, clusters: Codes | None
    ) -> list[str]:
        """Return what a reader must know of predictions of rows held out, or left out, and of their intervals."""
        warnings = list[str]()
        for own, target in zip(judged, targets, strict=True):
            r2 = target.loo_r2 if target.test is None else target.test.r2
            n = len(own.truth)
            rows = own.rows if target.test is None else f"{n:,} {own.rows}"
            folds = target.test is None and len(targets) == 1 and grid.r2 is not None
            by = (grid.r2, f"rows held out in {grid.folds} folds") if folds else (r2, rows)
            errors = np.square(own.truth - own.found)
            worst = 0.0 if folds or not errors.any() else float(errors.max() / errors.sum())
            warnings += scores.told_of_errors(own.name, *by, worst)
            if len(np.unique(own.truth)) == 2:
                way = either("`kerntest svm`", "train_svm")
                warnings.append(
                    f"{own.name!r} has two values: {way} predicts which of them, and is judged by how often it is right"
                )
            if own.reach is not None:
                held = np.abs(own.truth - own.found) <= own.reach
                warnings += told_of_coverage(own.name, held, self.interval, rows, clusters)
        return warnings


def _judged_by_folds(fit: RidgeFit, loo_r2: float | None) -> RidgeGrid:
    """Return the grid with what its best cell explains of rows held out in folds, if it was judged by them."""
    grid, loo_rmse = fit.grid, fit.loo_rmse
    score = grid.best.score
    if grid.folds is None or loo_r2 is None or loo_rmse is None:
        return grid
    # Of several targets the score is relative to their spread; of one that follows from what leave-one-out explains.
    if len(fit.targets) > 1:
        return replace(grid, r2=1.0 - score * score)
    ratio = score / loo_rmse if loo_rmse else 1.0
    return replace(grid, rmse=score, r2=1.0 - (1.0 - loo_r2) * ratio * ratio)


def _at_edge(grid: RidgeGrid, name: str, end: Callable[[Iterable[float]], float]) -> bool:
    """Say whether the best cell is at an end of the grid, and better than those before it by so much that it matters."""
    edge = end(getattr(cell, name) for cell in grid.cells)
    before = min((cell.score for cell in grid.cells if getattr(cell, name) != edge), default=math.inf)
    return bool(getattr(grid.best, name) == edge) and before - grid.best.score > GAIN * abs(grid.best.score)


def fit_warnings(rows: TrainingRows, fit: RidgeFit) -> tuple[str, ...]:
    """Return what a reader must know before trusting the regression."""
    without, (fixed_lambda, fixed_bandwidth) = "", fit.fixed
    condition = fit.condition_number
    # A lambda that is rounding itself cannot stand in for the eigenvalues that are.
    if fit.n_zero and condition * np.finfo(np.float64).eps * ROUNDING >= 1:
        without = f", without the {counted(fit.n_zero, 'direction')} whose eigenvalue is 0 to rounding"
    chosen = "" if all(fit.fixed) else f"; what was not given was chosen on {fit.grid.n_rows:,} of them"
    best = fit.grid.best
    lambdas = {cell.lambda_ for cell in fit.grid.cells}
    highest = not fixed_lambda and best.lambda_ == max(lambdas)
    lowest = not fixed_lambda and _at_edge(fit.grid, "lambda_", min)
    useful = not fixed_bandwidth and best.lambda_ < max(lambdas)
    widest, narrowest = (useful and _at_edge(fit.grid, "multiple", end) for end in (max, min))
    cases = {
        f"the system is ill-conditioned (condition number {condition:.1e}): it was solved through its eigenvalues"
        f"{without}; a larger {option('lambda')} is safer": condition > ILL_CONDITIONED,
        f"conjugate gradients stopped after {fit.iterations} steps before they had converged: the regression is usable, "
        f"not exact; a larger {option('lambda')} or fewer features help": not fit.converged,
        f"leave-one-out of {len(rows):,} rows is not computed with conjugate gradients: generalised cross-validation "
        f"stands for it{chosen}": fit.iterations is not None,
        f"the best lambda is the largest of the grid, {best.lambda_:g}: the columns may say little of the target": highest,
        f"the best lambda is the smallest of the grid, {best.lambda_:g}: a smaller {option('lambda')} may be better still": lowest,
        f"the best bandwidth is the largest of the grid: a larger {option('bandwidth')}, or {option('kernel', 'linear')}, may be better still": widest,
        f"the best bandwidth is the smallest of the grid; {option('kernel', 'laplacian2')} suits rougher functions": narrowest,
    }
    return tuple(text for text, applies in cases.items() if applies)
