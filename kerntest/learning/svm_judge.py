"""How good a fitted machine is: on the rows it has learned from, on those it has not seen, beside the nearest mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.kernels.base import Points
from kerntest.learning.metrics import classification_metrics, regression_metrics
from kerntest.learning.svm_fit import Rows, SvmFit, fit_rows
from kerntest.learning.training import numbers_of
from kerntest.report.learning_record import ClassificationMetrics, RegressionMetrics
from kerntest.report.svm_record import Baseline, SvmResult

if TYPE_CHECKING:
    from os import PathLike

    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.svm_model import SvmModel
    from kerntest.learning.svm_options import SvmOptions
    from kerntest.learning.training import Labelled
    from kerntest.report.record import Provenance
    from kerntest.report.svm_record import GridSearch

# A relative duality gap above this says nothing good of a machine.
USABLE_GAP = 0.1
# A share of support vectors at which a machine has learned the rows by heart.
NEARLY_ALL = 0.9
# So few rows say nothing of how classes are predicted. Classes are unequal if one has such a share of the rows, and a machine
# is little better than that one if it gets no larger share of the others right.
FEWEST_JUDGED, UNEQUAL, LITTLE_BETTER = 20, 0.75, 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A fitted machine with its scores.

    Parameters
    ----------
    rows : Rows
        The training part.
    test : Rows or None
    fit : SvmFit
    kernel : Kernel
    options : SvmOptions
    train_scores, test_scores : ndarray
    train_metrics, test_metrics : record or None
    baseline : Baseline or None
    warnings : tuple of str
    """

    rows: Rows
    test: Rows | None
    fit: SvmFit
    kernel: Kernel
    options: SvmOptions
    train_scores: Array
    test_scores: Array | None
    train_metrics: ClassificationMetrics | RegressionMetrics | None
    test_metrics: ClassificationMetrics | RegressionMetrics | None
    baseline: Baseline | None
    warnings: tuple[str, ...]


def judge(
    rows: Rows,
    fit: SvmFit,
    tested: Labelled | None,
    *,
    options: SvmOptions,
    kernel: Kernel,
    engine: Engine,
    found: GridSearch | None = None,
) -> Judged:
    """Return a fitted machine, which a search may have found, judged on its training rows and on others.

    Raises
    ------
    DataError
        If the others do not fit the training rows.
    """
    model = fit.model
    train_scores = model.scores(rows.points, engine)
    test: Rows | None = None
    test_scores: Array | None = None
    warnings: list[str] = []
    if tested is not None:
        test, warnings = _encoded(tested, rows)
        test_scores = model.scores(test.points, engine)
    baseline = _baseline(rows, test or rows, options, kernel, engine)
    train_metrics = _metrics(model, rows, train_scores)
    test_metrics = None if test is None or test_scores is None else _metrics(model, test, test_scores)
    warnings += fit_warnings(rows, fit, searched=found is not None and len(found.cells) > 1)
    warnings += _warnings(train_metrics, test_metrics, options, found)
    return Judged(
        rows,
        test,
        fit,
        kernel,
        options,
        train_scores,
        test_scores,
        train_metrics,
        test_metrics,
        baseline,
        tuple(warnings),
    )


def _encoded(tested: Labelled, rows: Rows) -> tuple[Rows, list[str]]:
    """Return other rows as the machine takes them."""
    if rows.encoder is None:
        message = "a table has an encoder"
        raise TypeError(message)
    found = rows.encoder.transform(tested.features, name="the training part")
    codes, numbers = None, None
    if tested.target is not None and rows.classes is not None:
        codes = rows.classes.codes(tested.target, tested.read.name)
    elif tested.target is not None:
        numbers = numbers_of(tested.target, tested.read.name)
    return Rows(found.points, rows.encoder, codes, numbers, rows.classes, rows.target), [
        *tested.warnings,
        *found.warnings,
    ]


def _metrics(model: SvmModel, rows: Rows, scores: Array) -> ClassificationMetrics | RegressionMetrics | None:
    if rows.codes is not None and rows.classes is not None:
        probabilities = model.probabilities(scores) if model.sigmoids else None
        return classification_metrics(
            rows.codes,
            model.codes(scores),
            model.class_scores(scores),
            rows.classes.names,
            probabilities=probabilities,
        )
    if rows.numbers is not None:
        return regression_metrics(rows.numbers, scores[:, 0])
    return None


def _baseline(rows: Rows, judged_by: Rows, options: SvmOptions, kernel: Kernel, engine: Engine) -> Baseline | None:
    """Return the nearest mean with the same kernel, on the rows that the machine is judged by."""
    if rows.codes is None or not isinstance(rows.points, Points) or options.features is not None:
        return None
    plain = replace(
        options, method="mean", probability=False, nu=None, hard_margin=False, class_weight=None, features=None
    )
    model = fit_rows(rows, kernel, plain, engine).model
    found = _metrics(model, judged_by, model.scores(judged_by.points, engine))
    if not isinstance(found, ClassificationMetrics):
        return None
    return Baseline("nearest mean", found.accuracy, found.balanced_accuracy)


def fit_warnings(rows: Rows, fit: SvmFit, *, searched: bool = False) -> list[str]:
    """Return what a reader must know of how a machine was fitted; `searched` if a grid has found its options."""
    warnings = []
    if fit.machines and fit.gap is None:
        state = "" if fit.converged else ", and SMO stopped before it was reached"
        warnings.append(
            "the kernel is not positive definite: the machine is a stationary point of a problem without a single "
            f"solution{state}"
        )
    if fit.gap is not None and not fit.converged:
        state = "usable, not exact" if fit.gap <= USABLE_GAP else "far from the best; a smaller --C is easier to reach"
        warnings.append(f"the solver stopped at a relative duality gap of {fit.gap:.1e}: the machine is {state}")
    if rows.numbers is not None and not len(fit.support):
        warnings.append("every row is predicted as the same number: no error is larger than --epsilon")
    if fit.gap is None and not fit.machines and not fit.converged and rows.codes is not None:
        warnings.append("the perceptron still makes mistakes on the training rows: the classes may not be separable")
    of_numbers = rows.encoder is None or rows.encoder.numeric_names
    if of_numbers and fit.machines and len(fit.support) >= NEARLY_ALL * len(rows) and len(rows) >= 50:
        warnings.append(
            f"{len(fit.support):,} of {len(rows):,} training rows are support vectors: the kernel may be too narrow, or "
            f"the columns say little of the target{'' if searched else '; --grid looks for better'}"
        )
    return warnings


def _warnings(
    train: ClassificationMetrics | RegressionMetrics | None,
    test: ClassificationMetrics | RegressionMetrics | None,
    options: SvmOptions,
    found: GridSearch | None,
) -> list[str]:
    """Return what a reader must know before trusting what a machine is judged by."""
    warnings = []
    judged = train if test is None else test
    if isinstance(judged, ClassificationMetrics) and judged.n >= FEWEST_JUDGED:
        largest = max(judged.classes, key=lambda one: one.support)
        predicted = [one.name for one in judged.classes if one.precision is not None]
        share = largest.support / judged.n
        way_out = ""
        if options.method == "svm" and options.nu is None and options.class_weight is None and share >= UNEQUAL:
            way_out = "; --class-weight balanced makes the smaller classes count"
        if len(predicted) == 1:
            warnings.append(f"every row is predicted as {predicted[0]!r}{way_out}")
        elif way_out and judged.accuracy - share <= LITTLE_BETTER * (1.0 - share):
            warnings.append(f"{largest.name!r} for every row would be right as often, or nearly so{way_out}")
    if test is None and train is not None:
        numbers = "accuracy and classes" if isinstance(train, ClassificationMetrics) else "RMSE, MAE and r2"
        warnings.append(
            "judged on the rows that it has learned from, which is too good; --test-fraction 0.3 holds rows out"
            if found is None
            else f"{numbers} are of the rows that it has learned from, which is too good; the decision is "
            f"of rows held out in {found.folds} folds"
        )
    return warnings


def svm_result(
    judged: Judged,
    *,
    found: GridSearch | None,
    left_out: tuple[str, ...],
    cluster: str | None,
    warnings: tuple[str, ...],
    output: str | PathLike[str] | None,
    provenance: Provenance,
) -> SvmResult:
    """Return the record of a fitted machine."""
    fit, rows, options = judged.fit, judged.rows, judged.options
    metrics = judged.train_metrics if judged.test is None else judged.test_metrics
    classified = metrics if isinstance(metrics, ClassificationMetrics) else None
    regressed = metrics if isinstance(metrics, RegressionMetrics) else None
    scores = judged.train_scores if judged.test_scores is None else judged.test_scores
    intercepts = [float(b) for b in fit.model.expansion.intercepts]
    seen = () if rows.encoder is None else rows.encoder.names
    return SvmResult(
        schema="kerntest.svm/1",
        command="svm",
        task=options.task,
        method=options.method,
        target=rows.target,
        classes=() if rows.classes is None else rows.classes.names,
        n_train=len(rows),
        n_test=0 if judged.test is None else len(judged.test),
        judged_on="train" if judged.test is None else "test",
        accuracy=None if classified is None else classified.accuracy,
        balanced_accuracy=None if classified is None else classified.balanced_accuracy,
        roc_auc=None if classified is None else classified.roc_auc,
        confusion=None if classified is None else classified.confusion,
        rmse=None if regressed is None else regressed.rmse,
        r2=None if regressed is None else regressed.r2,
        outliers=float(np.mean(scores[:, 0] < 0)) if options.task == "one-class" else None,
        train=judged.train_metrics,
        test=judged.test_metrics,
        baseline=judged.baseline,
        kernel=str(judged.kernel),
        bandwidth=getattr(judged.kernel, "bandwidth", None),
        gamma=getattr(judged.kernel, "gamma", None),
        C=fit.C,
        nu=options.nu if options.task != "one-class" or options.nu is not None else 0.1,
        lambda_=None if fit.C is None else 1.0 / (2.0 * len(rows) * fit.C),
        n_support=len(fit.support),
        n_bounded=fit.n_bounded,
        objective=fit.objective,
        dual_objective=fit.dual_objective,
        duality_gap=fit.gap,
        intercept=intercepts[0] if len(intercepts) == 1 else tuple(intercepts),
        iterations=fit.iterations,
        converged=fit.converged,
        features=options.features,
        feature_error=fit.feature_error,
        probability=bool(fit.model.sigmoids),
        grid=found,
        model=None if output is None else str(output),
        columns=tuple(name for name in seen if name not in left_out),
        columns_left_out=left_out,
        cluster=cluster,
        n_clusters=None if rows.clusters is None else len(np.unique(rows.clusters)),
        warnings=warnings,
        provenance=provenance,
    )
