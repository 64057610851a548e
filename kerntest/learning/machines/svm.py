"""Support vector machines: `SVM`, to fit, predict, save and load, and `train_svm`, from a file to a judged, saved model."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.engine import Engine, doing
from kerntest.errors import DataError, UsageError, one_of, option, whole_number
from kerntest.learning import cross_validation as folding
from kerntest.learning.estimator import Estimator, only_if
from kerntest.learning.learner import Judgement, Learner, trains, values_for_name
from kerntest.learning.learner import train as train_learner
from kerntest.learning.machines.decision_pictures import ScoredRows, svm_panels
from kerntest.learning.machines.svm_fit import HARD_COSTS, ONE_CLASS_NU, Machines, SvmFit, pilot
from kerntest.learning.machines.svm_model import SvmModel
from kerntest.learning.machines.svm_options import SvmOptions
from kerntest.learning.machines.svm_search import MEASURES, Search, baseline_of, sigmoids, told_of_baseline
from kerntest.learning.machines.svm_warnings import class_warnings, fit_warnings, told_of_units
from kerntest.learning.rows import targets as outcomes
from kerntest.learning.rows.training_rows import read_labelled
from kerntest.learning.scores import classification_metrics, regression_metrics, told_of_choice, told_of_errors
from kerntest.learning.work_of_fits import Cost, cost_of_machines, work_of_machines
from kerntest.report.results.learning_record import Baseline, ClassificationMetrics, SvmResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column
    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.machines.decision_pictures import Metrics
    from kerntest.learning.rows.training_rows import Labelled, TrainingOptions, TrainingRows
    from kerntest.learning.scores import Sigmoid

# Half the range of targets: the solver squares their products with costs.
SMALLEST_TARGET, LARGEST_TARGET = 1e-75, 1e75
# Folds whose held-out scores probabilities are fitted to.
PROBABILITY_FOLDS = 5
# Costs, and bandwidths as multiples of the median.
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
# Beyond so many different numbers, and this share of the rows, numbers are hardly classes.
MANY_CLASSES, MANY_SHARE = 20, 0.1
# And beyond this share, with fewer than two rows of a class, nothing is: every pair of classes would be fitted in vain.
HARDLY_REPEATED = 0.5


class SVM(SvmOptions, Estimator[SvmModel, SvmFit]):
    """Kernel support vector machine for two classes, several classes (one against one), numbers, or one class.

    Parameters
    ----------
    C : float
        Cost of a violation of the margin: 1/2 |w|^2 + C sum(slack). Of a regression it is in units of the target, whose
        standard deviation is a good first guess.
    kernel : Kernel or str
        A kernel or its text; "precomputed" for rows of a matrix of kernel values.
    bandwidth : "median" or float
        For bandwidths that the kernel leaves open.
    task : "classify", "regress" or "one-class"
    nu : float, optional
        Instead of C: an upper bound for the share of margin errors and a lower one for that of support vectors. For
        "one-class" the share of training rows to call outliers, 0.1 by default.
    hard_margin : bool
        No errors at all; refused where the classes cannot be separated.
    epsilon : float
        Errors of a regression up to this, in units of the target, cost nothing.
    class_weight : "balanced", mapping or str, optional
        Factors of C for each class.
    method : "svm", "mean" or "perceptron"
        The machine, or the nearest mean embedding or the kernel perceptron with the same kernel, which is the structured
        one and averaged where there are several classes.
    probability : bool
        Also fit probabilities, to scores of rows held out in five folds, copies of a row in one: of classes as frequent as
        in these rows, with a `class_weight` too. What is predicted stays the decision of the machine, which with a
        `class_weight`, and of three classes or more by votes of pairs, need not be the most probable class.
    features : str, optional
        "nystroem:M" or "fourier:M": explicit features, taken beyond some 55,000 rows, 31,600 for numbers, unless
        "none" insists on the kernel.
    scale : "standardize", "together" or "none"
        Whether numeric columns are brought to mean 0 and standard deviation 1 of the training rows, each or by one scale.
    tolerance : float
        Relative duality gap.
    seed, threads : int, optional
    unknown : "error" or "ignore"
        What to do with categories of new rows that no training row had: "ignore" takes them as different from all others,
        as `kerntest predict --unknown ignore` does, and as folds need that lack one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.where((X**2).sum(axis=1) > 1.4, "outside", "inside")
    >>> machine = SVM(C=10).fit(X, y)
    >>> machine.predict(np.array([[0.0, 0.0], [2.0, 2.0]])).tolist()
    ['inside', 'outside']
    """

    MODEL, CALLED, SHOWN = SvmModel, "this machine is", {name: name for name in ("task", "method", "probability")}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SVM:
        """Fit to n rows.

        Parameters
        ----------
        X : path, ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
            The columns; with kernel="precomputed" the matrix of kernel values, shape (n, n).
        y : str, or sequence of n labels or numbers
            The target: a column of X, or values. Not needed for "one-class".
        sample_weight : sequence of n numbers, optional
            Factors of C for each row: a row of weight 2 counts like two rows in the fit, and of weight 0 it is not there.

        Warns
        -----
        KerntestWarning
            Of what is to be known before the model is used.

        Raises
        ------
        UsageError, DataError, UndecidedError
            If the options, the rows or the kernel do not allow it.
        """
        return self._learned(SvmLearner(self), X, y, sample_weight)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the classes, sorted; only classifiers have them."""
        if self._model is None or self.model.classes is None:
            raise AttributeError("only a fitted classifier has classes_")
        return self.model.classes.values(np.arange(len(self.model.classes.names)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return a class, a number, or whether each row is like the training rows, 1 or -1 (one-class), shape (n,)."""
        found = self._scores(X, self.model.predicted)
        return np.where(found, 1, -1) if self.task == "one-class" else found

    @only_if(lambda self: self.task != "regress", "a regression has no decision_function: predict gives its numbers")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores, above 0 for the second of two classes; of several, one for each, the largest for what is predicted.

        Shape (n,), or (n, classes) for more than two. Of one class they are below 0 for outliers.
        """
        model = self.model

        def by_class(scores: Array) -> Array:
            found = model.class_scores(scores)
            if found.ndim == 2:
                # Of equal votes the first class is predicted.
                predicted = np.arange(len(found)), model.codes(scores)
                found[predicted] = np.nextafter(found.max(axis=1), np.inf)
            return found

        if self.task == "classify":
            return self._scores(X, by_class)
        scores = self._scores(X)
        # What the solver leaves on the boundary is on neither side.
        return np.where(model.alike(scores), np.maximum(scores[:, 0], 0.0), scores[:, 0])

    def pair_scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of all machines, shape (n, J), or (n,) where there is one.

        They are one for each pair of classes, above 0 for the second one; of method="mean" one for each class, and so of a
        perceptron for several.
        """
        return self.model.decision(self._scores(X))

    @only_if(
        lambda self: self.probability if self._model is None else self._model.sigmoids,
        "this machine has no probabilities: fit it with probability=True",
    )
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every class, shape (n, classes).

        Of two classes without a `class_weight` the most probable one is what `predict` says.
        """
        return self._scores(X, self.model.probabilities)

    @only_if(lambda self: self.task == "one-class", "only a machine of one class has score_samples")
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return what `decision_function` does, before `offset_` is taken off."""
        return np.asarray(self.decision_function(X) + self.offset_)

    @only_if(lambda self: self.task == "one-class", "only a machine of one class has fit_predict")
    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.intp]:
        """Fit to n rows, and return which are like the others, 1, and which are not, -1."""
        return np.asarray(self.fit(X, y).predict(X))

    @property
    def offset_(self) -> float:
        """What a row of one class must reach."""
        if self.task != "one-class":
            raise AttributeError("only a machine of one class has an offset_")
        return -float(self.model.expansion.intercepts[0])

    @only_if(lambda self: self.task != "one-class", "a machine of one class has no score: nothing says what is right")
    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy; of a regression r2."""
        model = self.model
        found = self._scores(X, None if model.classes is None else model.codes)
        truth = self._truth(y, len(found))
        if model.classes is None:
            return regression_metrics(truth[:, 0], found[:, 0]).r2 or 0.0
        return float(np.mean(found == truth))

    def _truth(self, y: Any, n: int) -> NDArray[Any]:
        truth, classes = outcomes.target_of(y, n), self.model.classes
        return outcomes.numbers_of(truth, "y")[:, None] if classes is None else classes.codes(truth, "y")

    @property
    def _estimator_type(self) -> str:
        return {"classify": "classifier", "regress": "regressor", "one-class": "outlier_detector"}[self.task]

    def _scores(self, X: Any, then: Callable[[Array], NDArray[Any]] | None = None) -> NDArray[Any]:
        return self.model.scores(self._points(X), self.engine, then)


@trains(SvmOptions)
def train_svm(
    train: Any,
    target: str | None = None,
    *,
    grid: bool = False,
    cv: int | None = None,
    select_by: str = "accuracy",
    **options: Any,
) -> SvmResult:
    """Fit a support vector machine to a table, judge it, and save it.

    Parameters
    ----------
    train : path, "-", ndarray, DataFrame, pyarrow Table or kerntest.Table
        The rows to learn from.
    target : str, optional
        The column to predict; none for task="one-class".
    test : as train, optional
        Rows to judge by. Columns are found by name.
    test_fraction : float, optional
        Instead of `test`: the share of the rows of `train` that is held out, drawn by class.
    output : path, optional
        File for the model; an existing one is replaced only with `force`.
    grid : bool
        Choose C and the bandwidth by cross-validation inside the training part (the test part is not touched).
    cv : int, optional
        Folds; 5 by default with `grid`. Without `grid`: the cross-validated score of the options as they are.
    select_by : "accuracy", "balanced-accuracy", "f1", "auc" or "log-loss"
        What classes are judged by in the folds: f1 is the mean over the classes, log-loss that of `probability`.
    plot : path, optional
        PNG, SVG or PDF file: decision regions for two columns, else the ROC curve and the confusion matrix.
    C, kernel, bandwidth, task, nu, hard_margin, epsilon, class_weight, method, probability, features, scale, tolerance, seed
        As in `SVM`.
    columns, exclude, categorical, missing
        As in `mmd_test`: which columns and rows.
    cluster : str, optional
        A column, such as a patient or a shop, whose rows of one value stay together in test parts and folds. It is not
        learned from. Copies of a row stay together without it.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    SvmResult

    Warns
    -----
    KerntestWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError, DataError, UndecidedError
        If the options, the rows or the kernel do not allow it.
    """
    if isinstance(target, (list, tuple)) or hasattr(target, "__array__"):
        raise values_for_name(target, "SVM")
    machine = SvmOptions.taken_from(options)
    if (target is None) != (machine.task == "one-class"):
        told = f"{option('task', machine.task)} {'needs' if target is None else 'has no'} {option('target')}"
        hint = f"{option('target')} names the column to predict" if target is None else "leave one of them out"
        raise UsageError(told, hint=hint, code="usage.target")
    return train_learner(SvmLearner(machine, target, grid=grid, cv=cv, select_by=select_by), train, **options)


class SvmLearner(Learner[SvmFit, SvmResult]):
    """Support vector machines, their cost and bandwidth as they are or by cross-validation."""

    COMMAND, ESTIMATOR, RESULT, WEIGHTED, work = "svm", "SVM", SvmResult, True, work_of_machines

    def __init__(
        self,
        options: SvmOptions,
        target: str | None = None,
        *,
        grid: bool = False,
        cv: int | None = None,
        select_by: str = "accuracy",
    ) -> None:
        if cv is not None:
            whole_number("cv", cv, at_least=2)
        self.options: SvmOptions = options
        self.target, self.grid, self.folds, self.select_by = target, grid, 5 if grid and cv is None else cv, select_by
        self.supervised, self.classifies = options.task != "one-class", options.task == "classify"
        if self.folds is not None and not self.supervised:
            hint = f"leave out {option('grid', True)} and {option('cv')}; {option('nu')} sets the share of outliers"
            raise UsageError("one class has no score to cross-validate by", hint=hint, code="usage.grid")
        one_of("select_by", select_by, tuple(MEASURES))
        if select_by == "accuracy":
            return
        told = option("select-by")
        options.refuse(self.folds is None, f"{told} and no folds", f"add {option('grid', True)} or {option('cv')}")
        options.refuse(not self.classifies, f"{told} and {option('task', options.task)}", "it is for classes")
        unfit = select_by == "log-loss" and options.method == "mean"
        options.refuse(
            unfit, f"{option('select-by', 'log-loss')} and {option('method', 'mean')}", "it has no probabilities"
        )

    @property
    def splits(self) -> bool:
        """Whether rows are held out on the way."""
        return self.folds is not None or self.options.probability

    def read(self, data: Any, reading: TrainingOptions) -> Labelled:
        """Return a table with its target, if it has one."""
        check = outcomes.Classes.of if self.classifies else outcomes.numbers_of
        return read_labelled(data, () if self.target is None else (self.target,), reading, check=check)

    def with_targets(self, rows: TrainingRows, targets: Sequence[Column], table: str) -> TrainingRows:
        """Return rows with numbers or classes to predict."""
        if not targets:
            return rows
        (target,), n = targets, len(rows)
        rows = replace(rows, names=(target.name,))
        if not self.classifies:
            numbers = outcomes.numbers_to_learn(targets, table)[:, 0]
            half = float(numbers.max()) / 2 - float(numbers.min()) / 2
            if not SMALLEST_TARGET <= half <= LARGEST_TARGET:
                size = "large" if half > 1 else "small"
                what = f"has numbers too {size} to learn: they range over {half:.3g} to either side"
                raise outcomes.unfit(target, table, what, "bring them to other units", "data.target_size")
            warnings = (*rows.warnings, *outcomes.told_of_dates(targets))
            return replace(rows, targets=numbers[:, None], warnings=warnings)
        classes = outcomes.Classes.of(target, table)
        count = len(classes.names)
        if count > (most := max(MANY_CLASSES, int(HARDLY_REPEATED * n))):
            raise outcomes.hardly_classes(target, count, table, min(most, outcomes.MOST_CLASSES))
        many = classes.kind == "number" and count > max(MANY_CLASSES, MANY_SHARE * n)
        told = f"column {target.name!r} has {count:,} different numbers in {n:,} rows, each taken for a class"
        warnings = (*rows.warnings, *([f"{told}; {option('task', 'regress')} predicts numbers"] if many else []))
        return replace(rows, codes=classes.codes(target, table), classes=classes, warnings=warnings)

    def cost(self, rows: TrainingRows) -> Cost:
        """Return what the machines take, and a search."""
        options, different = self.options, rows if self.options.method == "perceptron" else rows.merged()[0]
        sizes = [len(different)]
        if rows.classes is not None:
            counts = np.bincount(different.codes, minlength=len(rows.classes.names)).tolist()
            sizes = [one + other for one, other in combinations(counts, 2)] if options.method == "svm" else []
        cells, judged = 1, (0, 0)
        if self.folds is not None:
            search = self._grid(rows, np.arange(len(rows)) % self.folds)
            cells = len(search.cells)
            judged = search.judged() if cells > 1 else judged
        told: Any = {"features": options.features, "method": options.method, "folds": self.folds, "cells": cells}
        told["different"] = len(different)
        # Costs are searched for nu, and tried one after another for a hard margin.
        tried = len(HARD_COSTS) if options.hard_margin or (options.nu is not None and self.classifies) else 1
        told |= {
            "again": PROBABILITY_FOLDS if options.probability else 0,
            "pilot": pilot(rows, options),
            "tried": tried,
        }
        return cost_of_machines(rows.kernel, rows.points, sizes, **told, judged=judged)

    def fit(self, rows: TrainingRows, progress: Progress | None = None) -> SvmFit:
        """Return the fitted machine, with probabilities where they were asked for."""
        options, search, warnings = self.options.feasible(rows, whole=True), None, list[str]()
        if self.folds is not None:
            folds, warnings = folding.folds_of(rows, self.folds, options.seed)
            grid = self._grid(rows, folds)
            search = grid.found(options.engine, progress)
            options, progress = replace(options, C=search.best.C), None
            rows = rows.with_kernel(grid.kernel_at(search.best.multiple))
        # A search tells how far it is; no more is known of one fit.
        with nullcontext() if search is None else doing("fitting all rows"):
            fit = Machines(rows, options, options.engine).fit(options.C, progress=progress)
        if options.probability:
            fit = replace(fit, model=replace(fit.model, sigmoids=self._sigmoids(rows, options)))
        fit = replace(fit, search=search)
        fit = replace(fit, units=tuple(told_of_units(rows, fit, options)))
        return replace(fit, warnings=(*warnings, *fit_warnings(rows, fit, search, options)))

    def fitted(self, fit: SvmFit) -> SvmOptions:
        """Return the options with the cost and the kernel that a grid has chosen."""
        if not self.grid or fit.search is None:
            return self.options
        return replace(self.options, C=fit.search.best.C, kernel=fit.search.best.kernel, bandwidth="median")

    def _grid(self, rows: TrainingRows, folds: NDArray[np.intp]) -> Search:
        """Return the search for the best of the costs and of the multiples of the bandwidths, or of the options as they are."""
        options, several, chosen = self.options, False, rows.chosen
        costs: tuple[float, ...] = (options.C,)
        multiples: tuple[float, ...] = (1.0,)
        if self.grid:
            if options.nu is None and not options.hard_margin and options.method == "svm":
                costs = COSTS
            if several := chosen is not None and bool(chosen.free.free):
                multiples = MULTIPLES

        def kernel_at(multiple: float) -> Kernel | None:
            return chosen.at_multiples([multiple])[0] if several and chosen is not None else rows.kernel

        grid = multiples, costs
        return Search(rows, folds, kernel_at, grid, options, select_by=self.select_by, widening=self.grid)

    def _sigmoids(self, rows: TrainingRows, options: SvmOptions) -> tuple[Sigmoid, ...]:
        """Return what makes probabilities of scores, fitted to those of every row by a machine that has not seen it."""
        try:
            folds, _ = folding.folds_of(rows, PROBABILITY_FOLDS, options.seed)
        except DataError as error:
            told, where = f"{option('probability', True)} holds rows out: {error.message}", error.where
            hint = f"leave it out, or give at least {PROBABILITY_FOLDS} rows, and 2 of each class"
            raise DataError(told, hint=hint, code=error.code, where=where) from error
        alone = Engine(1)

        def work(fold: int) -> Array:
            part, held = folding.held_out(rows, np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
            with folding.telling_of_folds(rows.kernel):
                model = Machines(part, options.feasible(part), alone).fit(options.C).model
                return model.scores(held.points, alone, model.pair_scores)

        pairs = list(combinations(range(len(rows.classes.names) if rows.classes else 0), 2))
        scores = np.empty((len(rows), len(pairs)))
        for fold, found in enumerate(options.engine.map(work, range(PROBABILITY_FOLDS))):
            scores[folds == fold] = found
        return sigmoids(pairs, rows.codes, scores, weighted=options.weights is not None)

    def judge(
        self, rows: TrainingRows, fit: SvmFit, test: TrainingRows | None, learned: Labelled
    ) -> Judgement[SvmResult]:
        """Return how good a machine is on its training rows and on others, beside a simple one."""
        del learned
        options, model = self.options, fit.model
        parts = [self._scored(model, one) for one in (rows, test) if one is not None]
        train, seen = parts[0].metrics, parts[-1]
        intercepts = tuple(model.expansion.intercepts.tolist())
        same = ("C", "n_support", "n_bounded", "objective", "dual_objective", "iterations", "converged")
        shown = ("accuracy", "balanced_accuracy", "roc_auc", "confusion", "rmse", "r2")
        fields = {name: getattr(fit, name) for name in same}
        fields |= {name: getattr(seen.metrics, name, None) for name in shown}
        fields |= {name: getattr(model, name) for name in ("task", "method", "target", "probability")}
        fields |= {
            "classes": () if rows.classes is None else rows.classes.names,
            "outliers": None if self.supervised else float(np.mean(~model.alike(seen.scores))),
            "train": train,
            "test": None if test is None else seen.metrics,
            "baseline": None if rows.classes is None else self._baseline(rows, model, test),
            "nu": options.nu if self.supervised else options.nu or ONE_CLASS_NU,
            "lambda_": None if fit.C is None else 1.0 / (2.0 * len(rows) * fit.C),
            "duality_gap": fit.gap,
            "intercept": intercepts[0] if len(intercepts) == 1 else intercepts,
            "grid": fit.search,
        }
        drawn = partial(svm_panels, fit=fit, parts=parts, options=options)
        # A cost that holds the machine back is told, and then the columns are not to blame.
        warnings = self._warnings(fit, seen.metrics, rows.clusters, tested=test is not None, blamed=not fit.units)
        judged = (fit.search if test is None else None, seen.metrics, self.select_by)
        asked: Any = {"grid": self.grid, "weighted": self.options.weights is not None}
        warnings += told_of_baseline(fields["baseline"], *judged, n=len(rows if test is None else test), **asked)
        return Judgement(fields, drawn, warnings)

    def _baseline(self, rows: TrainingRows, model: SvmModel, test: TrainingRows | None) -> Baseline:
        """Return what predicts better of two simple classifiers: test rows, or those held out in folds, or what it has learned."""
        rows = rows.with_kernel(model.kernel)
        parts = [(rows, rows if test is None else test)]
        if test is None and self.folds is not None:
            folds, _ = folding.folds_of(rows, self.folds, self.options.seed)
            parts = [
                folding.held_out(rows, np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
                for fold in range(self.folds)
            ]
        # Test rows have no log-loss without probabilities.
        known = test is None or model.probability or self.select_by != "log-loss"
        return baseline_of(parts, self.options, self.select_by if known else "accuracy")

    def _scored(self, model: SvmModel, rows: TrainingRows) -> ScoredRows:
        """Return rows with their scores, and how well they are predicted, if anything is."""
        if rows.classes is None:
            scores = model.scores(rows.points, self.options.engine)
            metrics = regression_metrics(rows.targets[:, 0], scores[:, 0]) if rows.names else None
            return ScoredRows(rows, scores, metrics)

        def judged(scores: Array) -> Array:
            parts = [model.codes(scores), model.class_scores(scores)]
            return np.column_stack([*parts, model.probabilities(scores)] if model.probability else parts)

        found, count = model.scores(rows.points, self.options.engine, judged), len(rows.classes.names)
        width = 1 if count == 2 else count
        codes, given = found[:, 0].astype(np.intp), found[:, 1 + width :] if model.probability else None
        scores = found[:, 1] if count == 2 else found[:, 1 : 1 + width] if given is None else given
        told: Any = {"probabilities": given, "clusters": rows.clusters}
        return ScoredRows(rows, scores, classification_metrics(rows.codes, codes, scores, rows.classes.names, **told))

    def _warnings(
        self, fit: SvmFit, metrics: Metrics, clusters: NDArray[np.intp] | None, *, tested: bool, blamed: bool
    ) -> list[str]:
        """Return what a reader must know before trusting what a machine is judged by."""
        warnings = []
        if isinstance(metrics, ClassificationMetrics):
            warnings = class_warnings(metrics, self.options)
        elif tested and blamed and metrics is not None:
            worst = metrics.max_error**2 / (metrics.n * metrics.rmse**2) if metrics.rmse else 0.0
            warnings += told_of_errors(str(fit.model.target), metrics.r2, f"{metrics.n:,} test rows", worst)
        if not tested and metrics is not None:
            told = "the rows that it has learned from, which is too good"
            numbers = "accuracy and classes" if self.classifies else "RMSE, MAE and r2"
            warnings.append(
                f"judged on {told}; {option('test-fraction', 0.3)} holds rows out"
                if fit.search is None
                else f"{numbers} are of {told}; the decision is of rows held out in {fit.search.folds} folds"
                f"{told_of_choice(len(fit.search.cells), fit.model.n_train, clusters)}"
            )
        return warnings
