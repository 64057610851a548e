"""Support vector machines as learners: their rows, fits, judgements and records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.engine import Engine, allowed_bytes
from kerntest.errors import DataError, UsageError
from kerntest.kernels.base import Points
from kerntest.learning.cross_validation import (
    draw_folds,
    grid_search,
    held_out,
    sparse_classes_warning,
    telling_of_folds,
)
from kerntest.learning.learner import Learner
from kerntest.learning.machines.svm_fit import (
    ONE_CLASS_NU,
    Machines,
    SvmFit,
    SvmModel,
    check_nu,
    largest_nu,
)
from kerntest.learning.rows.targets import Classes, hardly_classes, target_of, told_of_dates, varied_numbers_of
from kerntest.learning.rows.training_rows import at_multiples, encoded_rows, read_labelled
from kerntest.learning.scores import classification_metrics, fit_sigmoid, regression_metrics
from kerntest.learning.solvers.hinge import KEPT_BYTES
from kerntest.matrices.factor import parse_features
from kerntest.report.results.learning_record import Baseline, ClassificationMetrics, RegressionMetrics, SvmResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column
    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.machines.svm import SvmOptions
    from kerntest.learning.rows.training_rows import Labelled, TrainingOptions, TrainingRows
    from kerntest.learning.solvers.problem import Solution
    from kerntest.report.results.learning_record import GridSearch

# Half the range of targets: the solver squares their products with costs.
SMALLEST_TARGET, LARGEST_TARGET = 1e-75, 1e75
# Folds whose held-out scores probabilities are fitted to.
PROBABILITY_FOLDS = 5
# Costs, and bandwidths as multiples of the median; the relative duality gap of the machines of a grid.
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
GRID_TOLERANCE = 1e-3
# How far a nu stays below the largest one, where rounding decides.
BELOW_LARGEST = 1e-9
# Beyond so many different numbers, and this share of the rows, numbers are hardly classes.
MANY_CLASSES, MANY_SHARE = 20, 0.1
# And beyond this share, with fewer than two rows of a class, nothing is: every pair of classes would be fitted in vain.
HARDLY_REPEATED = 0.5
# A relative duality gap above this says nothing good of a machine.
USABLE_GAP = 0.1
# A share of support vectors at which a machine has learned the rows by heart.
NEARLY_ALL = 0.9
# So few rows say nothing of how classes are predicted. Classes are unequal if one has such a share of the rows, and a machine
# is little better than that one if it gets no larger share of the others right.
FEWEST_JUDGED, UNEQUAL, LITTLE_BETTER = 20, 0.75, 0.1


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """Rows with the scores that a machine gives them, and how well they are predicted, if anything is."""

    rows: TrainingRows
    scores: Array
    metrics: ClassificationMetrics | RegressionMetrics | None


def scored(model: SvmModel, rows: TrainingRows, engine: Engine) -> ScoredRows:
    """Return rows with their scores."""
    scores = model.scores(rows.points, engine)
    if rows.classes is None:
        return ScoredRows(rows, scores, regression_metrics(rows.targets[:, 0], scores[:, 0]) if rows.names else None)
    probabilities = model.probabilities(scores) if model.sigmoids else None
    codes, by_class = model.codes(scores), model.class_scores(scores)
    names = rows.classes.names
    return ScoredRows(
        rows, scores, classification_metrics(rows.codes, codes, by_class, names, probabilities=probabilities)
    )


@dataclass(frozen=True, slots=True, eq=False)
class JudgedMachine:
    """A fitted machine on the rows that it has learned from and on others, beside the nearest mean."""

    fit: SvmFit
    train: ScoredRows
    test: ScoredRows | None
    baseline: Baseline | None
    warnings: tuple[str, ...]

    @property
    def seen(self) -> ScoredRows:
        """The rows that it is judged by."""
        return self.test or self.train


class SvmLearner(Learner[SvmFit, JudgedMachine, SvmResult]):
    """Support vector machines, their cost and bandwidth as they are or by cross-validation."""

    COMMAND, ESTIMATOR = "svm", "SVM"

    def __init__(
        self, options: SvmOptions, target: str | None = None, *, grid: bool = False, cv: int | None = None
    ) -> None:
        self.options: SvmOptions = options
        self.target = target
        self.grid = grid
        self.folds = 5 if grid and cv is None else cv
        self.classifies = options.task == "classify"

    def read(self, data: Any, reading: TrainingOptions) -> Labelled:
        """Return a table with its target, if it has one."""
        return read_labelled(data, () if self.target is None else (self.target,), reading)

    def rows(self, labelled: Labelled) -> TrainingRows:
        """Return the rows of a table as a machine takes them."""
        return self.with_targets(encoded_rows(labelled, self.options), labelled.targets, labelled.read.name)

    def target_columns(self, y: Any) -> tuple[str, ...]:
        """Return the name of the target, where y is one."""
        return (y,) if isinstance(y, str) and self.options.task != "one-class" else ()

    def target_values(self, y: Any, n: int) -> tuple[Column, ...]:
        """Return the target of n rows."""
        if self.options.task == "one-class":
            return ()
        if y is None:
            raise UsageError(f"task={self.options.task!r} needs y", hint="fit(X, y)", code="usage.target")
        return (target_of(y, n),)

    def with_targets(self, rows: TrainingRows, targets: Sequence[Column], table: str) -> TrainingRows:
        """Return rows with numbers or classes to predict."""
        if not targets:
            return rows
        (target,) = targets
        rows = replace(rows, names=(target.name,))
        if not self.classifies:
            numbers = _target_numbers(target, table)[:, None]
            return replace(rows, targets=numbers, warnings=(*rows.warnings, *told_of_dates(targets)))
        classes = Classes.of(target, table)
        count, n = len(classes.names), len(rows)
        if count > max(MANY_CLASSES, HARDLY_REPEATED * n):
            raise hardly_classes(target, count, table)
        warnings = rows.warnings
        if classes.kind == "number" and count > max(MANY_CLASSES, MANY_SHARE * n):
            told = f"column {target.name!r} has {count:,} different numbers in {n:,} rows, each taken for a class"
            warnings += (f"{told}; --task regress predicts numbers",)
        return replace(rows, codes=classes.codes(target, table), classes=classes, warnings=warnings)

    def cost(self, rows: TrainingRows, engine: Engine) -> tuple[str, str, float, dict[str, float]]:
        """Return how it is solved in a word and in a sentence, the bytes that are held then, and operations by their kind."""
        del engine
        n, options, fits = len(rows), self.options, 1
        if options.features is None:
            step, held = f"kernel matrix of {n:,} rows", min(8.0 * n * n, allowed_bytes(KEPT_BYTES))
            kind, count = "distance", 8.0 * n * n
        else:
            size = parse_features(options.features)[1]
            step, held = f"{size:,} features of {n:,} rows", 4.0 * 8 * n * size
            kind, count = "product", 5.0 * n * size**2
        if self.folds is not None:
            step += f", {self.folds} folds" + (", for a grid of costs and bandwidths" if self.grid else "")
            fits += self.folds * (len(COSTS) * len(MULTIPLES) if self.grid else 1)
        return options.method, step, held, {kind: fits * count}

    def fit(self, rows: TrainingRows, engine: Engine, progress: Progress | None = None) -> SvmFit:
        """Return the fitted machine, with probabilities where they were asked for."""
        cost, found = self.options.C, None
        warnings: tuple[str, ...] = ()
        if self.folds is not None:
            folds, warnings = _folds(rows, self.folds, self.options.seed)
            found, kernel = self._search(rows, folds, engine, progress)
            cost, rows = found.cells[found.chosen].C, rows.with_kernel(kernel)
        # A search has told how far it is; one fit more is little beside it.
        fit = Machines(rows, self.options, engine).fit(cost, progress=progress if found is None else None)
        fit = replace(fit, search=found, warnings=warnings)
        if not self.options.probability:
            return fit
        scores, pairs = self._held_out_scores(rows, cost, engine), fit.model.pairs
        sigmoids = []
        for place, (i, j) in enumerate(pairs):
            members = (rows.codes == i) | (rows.codes == j)
            second = rows.codes[members] == j
            sigmoids.append(fit_sigmoid(scores[members, place], second, through_threshold=len(pairs) == 1))
        return replace(fit, model=replace(fit.model, sigmoids=tuple(sigmoids)))

    def fitted(self, fit: SvmFit) -> SvmOptions:
        """Return the options with the cost and the kernel that a grid has chosen."""
        if not self.grid or fit.search is None:
            return self.options
        cell = fit.search.cells[fit.search.chosen]
        return replace(self.options, C=cell.C, kernel=cell.kernel, bandwidth="median")

    def _search(
        self, rows: TrainingRows, folds: NDArray[np.intp], engine: Engine, progress: Progress | None
    ) -> tuple[GridSearch, Kernel | None]:
        """Return the scores of the options as they are, or of a grid of costs and bandwidths, and the kernel of the best."""
        options = self.options
        if options.task == "one-class":
            raise UsageError(
                "one class has no score to cross-validate by",
                hint="leave out --grid and --cv; --nu sets the share of outliers",
                code="usage.grid",
            )
        check_nu(rows, options.nu)
        costs: tuple[float, ...] = (options.C,)
        kernels: dict[float, Kernel | None] = {1.0: rows.kernel}
        if self.grid:
            # Which cell is best does not hang on the last digits of a machine; a score of the options as they are may.
            options = replace(options, tolerance=max(options.tolerance, GRID_TOLERANCE))
            if options.nu is None and not options.hard_margin and options.method == "svm":
                costs = COSTS
            if rows.chosen is not None and rows.chosen.free.free and isinstance(rows.points, Points):
                found = at_multiples(rows.chosen, MULTIPLES, rows.points, options.seed)
                kernels = dict(zip(MULTIPLES, found, strict=True))

        search = grid_search(
            rows,
            folds,
            kernels,
            costs,
            lambda part, held: _scores(part, held, costs, options),
            engine=engine,
            score="accuracy" if self.classifies else "negative RMSE",
            progress=progress,
        )
        return search, kernels[search.cells[search.chosen].multiple]

    def _held_out_scores(self, rows: TrainingRows, cost: float, engine: Engine) -> Array:
        """Return the scores of every row by a machine that has not seen it: what probabilities are fitted to."""
        try:
            folds, _ = _folds(rows, PROBABILITY_FOLDS, self.options.seed)
        except DataError as error:
            raise DataError(
                f"--probability holds rows out: {error.message}",
                hint=f"leave it out, or give at least {PROBABILITY_FOLDS} rows, and 2 of each class",
                code=error.code,
                where=error.where,
            ) from error
        alone = Engine(1)

        def work(fold: int) -> Array:
            part, held = held_out(rows, folds, fold)
            with telling_of_folds(rows.kernel):
                return Machines(part, _feasible(self.options, part), alone).fit(cost).model.scores(held.points, alone)

        found = list(engine.map(work, range(PROBABILITY_FOLDS)))
        scores = np.empty((len(rows), found[0].shape[1]))
        for fold, part in enumerate(found):
            scores[folds == fold] = part
        return scores

    def judge(self, rows: TrainingRows, fit: SvmFit, test: TrainingRows | None, engine: Engine) -> JudgedMachine:
        """Return a machine judged on its training rows and on others, beside the nearest mean."""
        train, baseline = scored(fit.model, rows, engine), None
        tested = None if test is None else scored(fit.model, test, engine)
        if rows.classes is not None and isinstance(rows.points, Points) and self.options.features is None:
            mean = Machines(rows.with_kernel(fit.kernel), self.options, engine, "mean").fit(1.0)
            found = scored(mean.model, test or rows, engine).metrics
            if isinstance(found, ClassificationMetrics):
                baseline = Baseline("nearest mean", found.accuracy, found.balanced_accuracy)
        warnings = (*fit_warnings(rows, fit), *self._warnings(fit, (tested or train).metrics, on_train=test is None))
        return JudgedMachine(fit, train, tested, baseline, warnings)

    def _warnings(
        self, fit: SvmFit, metrics: ClassificationMetrics | RegressionMetrics | None, *, on_train: bool
    ) -> list[str]:
        """Return what a reader must know before trusting what a machine is judged by."""
        warnings, options = [], self.options
        if isinstance(metrics, ClassificationMetrics) and metrics.n >= FEWEST_JUDGED:
            largest = max(metrics.classes, key=lambda one: one.support)
            predicted = [one.name for one in metrics.classes if one.precision is not None]
            share, way_out = largest.support / metrics.n, ""
            if options.method == "svm" and options.nu is None and options.class_weight is None and share >= UNEQUAL:
                way_out = "; --class-weight balanced makes the smaller classes count"
            if len(predicted) == 1:
                warnings.append(f"every row is predicted as {predicted[0]!r}{way_out}")
            elif way_out and metrics.accuracy - share <= LITTLE_BETTER * (1.0 - share):
                warnings.append(f"{largest.name!r} for every row would be right as often, or nearly so{way_out}")
        if on_train and metrics is not None:
            numbers = "accuracy and classes" if isinstance(metrics, ClassificationMetrics) else "RMSE, MAE and r2"
            warnings.append(
                "judged on the rows that it has learned from, which is too good; --test-fraction 0.3 holds rows out"
                if fit.search is None
                else f"{numbers} are of the rows that it has learned from, which is too good; the decision is "
                f"of rows held out in {fit.search.folds} folds"
            )
        return warnings

    def result(self, judged: JudgedMachine, learned: Labelled, known: dict[str, Any]) -> SvmResult:
        """Return the record of a fitted machine."""
        fit, options, rows, one_class = judged.fit, self.options, judged.train.rows, self.options.task == "one-class"
        del learned
        metrics, intercepts = judged.seen.metrics, tuple(fit.model.expansion.intercepts.tolist())
        same = ("C", "n_bounded", "objective", "dual_objective", "iterations", "converged")
        judgement = ("accuracy", "balanced_accuracy", "roc_auc", "confusion", "rmse", "r2")
        known |= {name: getattr(fit, name) for name in same}
        known |= {name: getattr(metrics, name, None) for name in judgement}
        return SvmResult(
            **known,
            task=options.task,
            method=options.method,
            target=fit.model.target,
            classes=() if rows.classes is None else rows.classes.names,
            outliers=float(np.mean(judged.seen.scores[:, 0] < 0)) if one_class else None,
            train=judged.train.metrics,
            test=None if judged.test is None else judged.test.metrics,
            baseline=judged.baseline,
            nu=ONE_CLASS_NU if one_class and options.nu is None else options.nu,
            lambda_=None if fit.C is None else 1.0 / (2.0 * len(rows) * fit.C),
            n_support=len(fit.support),
            duality_gap=fit.gap,
            intercept=intercepts[0] if len(intercepts) == 1 else intercepts,
            probability=bool(fit.model.sigmoids),
            grid=fit.search,
        )

    def picture(self, result: SvmResult, judged: JudgedMachine, learned: Labelled, kind: str, engine: Engine) -> bytes:
        """Return a picture as "png", "svg" or "pdf"."""
        from kerntest.learning.machines.decision_pictures import svm_picture  # noqa: PLC0415 - only to draw

        del learned
        return svm_picture(result, judged, self.options.epsilon, kind, engine)


def _target_numbers(target: Column, table: str) -> Array:
    """Return numbers to predict; refuse those of which the solver could not square the products."""
    numbers = varied_numbers_of(target, table)
    half = float(numbers.max()) / 2 - float(numbers.min()) / 2
    if not SMALLEST_TARGET <= half <= LARGEST_TARGET:
        size = "large" if half > 1 else "small"
        raise DataError(
            f"column {target.name!r} of {table} has numbers too {size} to learn: they range over {half:.3g} to either side",
            hint="bring them to other units",
            code="data.target_size",
            where={"file": table, "column": target.name},
        )
    return numbers


def _folds(rows: TrainingRows, count: int, seed: int) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Return the fold of each row, by class where there are classes, and warnings."""
    if rows.classes is None:
        return draw_folds(len(rows), count, seed, clusters=rows.clusters), ()
    names = rows.classes.names
    folds = draw_folds(len(rows), count, seed, labels=rows.codes, classes=names, clusters=rows.clusters)
    warning = sparse_classes_warning(rows.codes, count, names, rows.clusters)
    return folds, () if warning is None else (warning,)


def _scores(part: TrainingRows, held: TrainingRows, costs: Sequence[float], options: SvmOptions) -> list[float]:
    """Return the score of machines of every cost on rows held out."""
    alone, results = Engine(1), []
    machines = Machines(part, _feasible(options, part), alone)
    start: tuple[Solution, ...] | None = None
    for cost in costs:
        fitted = machines.fit(cost, start)
        # From a smaller cost to the next a start saves half the work, but not where the matrix has low rank.
        start = fitted.solutions if all("factor" not in one.method for one in fitted.solutions) else None
        scores = fitted.model.scores(held.points, alone)
        if held.classes is not None:
            results.append(float(np.mean(fitted.model.codes(scores) == held.codes)))
        else:
            results.append(-float(np.sqrt(np.mean((scores[:, 0] - held.targets[:, 0]) ** 2))))
    return results


def _feasible(options: SvmOptions, part: TrainingRows) -> SvmOptions:
    """Return the options for a part of the rows: a nu that all rows allow is brought down to what the part allows.

    The shares of the classes differ from fold to fold by a row, and with them the largest nu.
    """
    if options.nu is None or not 0 < (largest := largest_nu(part)[0]) < options.nu:
        return options
    return replace(options, nu=largest * (1.0 - BELOW_LARGEST))


def fit_warnings(rows: TrainingRows, fit: SvmFit) -> list[str]:
    """Return what a reader must know of how a machine was fitted."""
    searched = fit.search is not None and len(fit.search.cells) > 1
    warnings = []
    pairs = rows.classes is not None and fit.model.method == "svm"
    if pairs and fit.gap is None:
        state = "" if fit.converged else ", and SMO stopped before it was reached"
        warnings.append(
            "the kernel is not positive definite: the machine is a stationary point of a problem without a single "
            f"solution{state}"
        )
    if fit.gap is not None and not fit.converged:
        state = "usable, not exact" if fit.gap <= USABLE_GAP else "far from the best; a smaller --C is easier to reach"
        warnings.append(f"the solver stopped at a relative duality gap of {fit.gap:.1e}: the machine is {state}")
    if rows.names and rows.classes is None and not len(fit.support):
        warnings.append("every row is predicted as the same number: no error is larger than --epsilon")
    if fit.model.method == "perceptron" and not fit.converged:
        warnings.append("the perceptron still makes mistakes on the training rows: the classes may not be separable")
    of_numbers = rows.encoder is None or rows.encoder.numeric_names
    if of_numbers and pairs and len(fit.support) >= NEARLY_ALL * len(rows) and len(rows) >= 50:
        # A narrow kernel needs every row; a small cost holds every row at its bound.
        cause = (
            "the cost may be too small" if fit.n_bounded >= NEARLY_ALL * len(rows) else "the kernel may be too narrow"
        )
        warnings.append(
            f"{len(fit.support):,} of {len(rows):,} training rows are support vectors: {cause}, or the columns say little "
            f"of the target{'' if searched else '; --grid looks for better'}"
        )
    return warnings
