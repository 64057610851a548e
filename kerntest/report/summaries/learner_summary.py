"""Fitted learners in words: what all of them say alike, support vector machines, and principal components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from kerntest.report.results.learning_record import ClassificationMetrics, RegressionMetrics
from kerntest.report.summaries.words import (
    Cell,
    ResultTable,
    Summary,
    counted,
    input_notes,
    input_text,
    name_list,
    number,
    percent,
    run_note,
    shortened_kernel,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kerntest.report.results.learning_record import (
        GridCell,
        GridSearch,
        KpcaResult,
        RidgeCell,
        RidgeGrid,
        RidgeResult,
        SvmResult,
    )

    LearnerResult: TypeAlias = SvmResult | RidgeResult | KpcaResult

PARTS = {"train": "training", "test": "test"}
TITLES = {"svm": "Support vector machine", "mean": "Nearest-mean classifier", "perceptron": "Kernel perceptron"}
TASKS = {"classify": "", "regress": " for numbers", "one-class": " for one class"}
# More classes than this are left to --json: nobody reads a larger matrix in a terminal.
CLASSES_SHOWN = 12
LONGEST_NAME = 20


def learner_summary(
    result: LearnerResult,
    title: str,
    lines: Sequence[tuple[str, str]],
    sentence: str,
    *,
    target: str | None = None,
    tables: Sequence[ResultTable] = (),
    answer: str = "Decision",
) -> Summary:
    """Return a fit in words, `lines` its own between the kernel and the model."""
    inputs, cluster = result.provenance.inputs, getattr(result, "cluster", None)
    head = [("data", input_text(inputs[0]))]
    if len(inputs) > 1:
        head.append(("test data", input_text(inputs[1])))
    elif result.n_test:
        head.append(("", f"{result.n_train:,} to learn from, {result.n_test:,} held out to judge by"))
    if target is not None:
        head.append(("target", target))
    if cluster is not None:
        told = f"{getattr(result, 'n_clusters', 0):,} among the training rows, none of them parted"
        head.append(("clusters", f"{visible(cluster)}: {told}"))
    head += [("columns", name_list(result.columns)), ("kernel", visible(shortened_kernel(result.kernel)))]
    if getattr(result, "weights", None) is not None:
        head.append(("weights", visible(getattr(result, "weights", ""))))
    if result.features is not None:
        kind, _, count = result.features.partition(":")
        name = {"nystroem": "Nystroem", "fourier": "random Fourier"}.get(kind, kind)
        error = (
            "" if result.feature_error is None else f", kernel values off by {number(result.feature_error, 2)} (RMS)"
        )
        head.append(("features", f"{count} {name} features{error}"))
    model = [] if result.model is None else [("model", visible(result.model))]
    warnings = tuple(visible(warning) for warning in result.warnings)
    return Summary(title, (*head, *lines, *model), visible(sentence), warnings, tuple(tables), answer)


def judged_rows(result: LearnerResult) -> str:
    """Return the rows that a result is judged on, such as "20 test rows"."""
    rows = result.n_train if result.judged_on == "train" else result.n_test
    return counted(rows, f"{PARTS[result.judged_on]} row")


def learner_notes(result: LearnerResult) -> list[str]:
    """Return what was found out and chosen on the way to a model, one line each."""
    provenance, grid = result.provenance, getattr(result, "grid", None)
    notes = [*input_notes(provenance), f"columns used: {name_list(result.columns, shown=None)}"]
    if result.columns_left_out:
        notes.append(f"columns left out: {name_list(result.columns_left_out, shown=None)}")
    notes.append(f"kernel {provenance.kernel}, bandwidth: {provenance.bandwidth}, scale {provenance.scale}")
    notes.append(f"kernel as resolved: {result.kernel}")
    if grid is not None:
        notes.append(f"of the grid was chosen {grid.tie_rule}")
    notes += [f"seed {provenance.seed}", run_note(provenance)]
    return [visible(note) for note in notes]


def error_sentence(rows: str, rmse: float, r2: float | None) -> str:
    """Return how good predictions of numbers are, as a sentence."""
    explained = "" if r2 is None else f", r2 = {number(r2)}"
    return f"Predictions of {rows} are off by {number(rmse)} (root mean square{explained})."


def svm_summary(result: SvmResult) -> Summary:
    """Return a fitted machine in words."""
    target, judged, tables = result.target, result.train if result.judged_on == "train" else result.test, []
    if target is not None:
        target = visible(target) + (f": {name_list(result.classes)}" if result.classes else "")
    lines = _cost_lines(result)
    if result.grid is not None:
        several = len(result.grid.cells) > 1
        lines.append(("chosen by" if several else "validated", _grid_text(result.grid)))
        tables += [_grid_table(result.grid)] if several else []
    lines += _solver_lines(result)
    if isinstance(judged, ClassificationMetrics):
        lines += _class_lines(result, judged)
        tables += _class_tables(judged, result.judged_on)
    elif isinstance(judged, RegressionMetrics):
        lines += _number_lines(result, judged)
    elif result.outliers is not None:
        lines.append(("outliers", f"{percent(result.outliers)} of the {PARTS[result.judged_on]} rows"))
    title = TITLES[result.method] + TASKS[result.task]
    return learner_summary(result, title, lines, svm_sentence(result), target=target, tables=tables)


def _grid_table(grid: GridSearch) -> ResultTable:
    """Return the scores of a grid: bandwidths down, costs across."""
    costs = sorted({cell.C for cell in grid.cells})
    cells = {(cell.multiple, cell.C): cell for cell in grid.cells}
    chosen, accuracy = grid.cells[grid.chosen], grid.score == "accuracy"

    def shown(cell: GridCell) -> Cell:
        text = f"{100 * cell.mean:.1f}" if accuracy else number(-cell.mean)
        return Cell(f"*{text}", "chosen") if cell is chosen else Cell(text)

    rows: list[tuple[str | Cell, ...]] = []
    for multiple in sorted({cell.multiple for cell in grid.cells}):
        bandwidth = cells[multiple, costs[0]].bandwidth
        size = f"{number(multiple)} x median" if bandwidth is None else number(bandwidth)
        rows.append((size, *(shown(cells[multiple, cost]) for cost in costs)))
    return ResultTable(
        (("bandwidth", "word"), *_numbers(f"C = {number(cost)}" for cost in costs)),
        tuple(rows),
        f"Grid, mean {'accuracy in %' if accuracy else 'RMSE'} over {grid.folds} folds (* chosen):",
        (f"tie rule: {grid.tie_rule}",),
        keep=f"C = {number(chosen.C)}",
    )


def _numbers(headings: Iterable[str]) -> list[tuple[str, Literal["number"]]]:
    """Return columns of numbers."""
    return [(heading, "number") for heading in headings]


def _class_tables(judged: ClassificationMetrics, part: str) -> list[ResultTable]:
    """Return precision, recall and F1 of each class, and where its rows went."""
    more, classes = max(len(judged.classes) - CLASSES_SHOWN, 0), list(judged.classes)
    if more:
        # The most frequent ones where there are too many, in the order of the classes.
        least = sorted(classes, key=lambda one: -one.support)[CLASSES_SHOWN:]
        classes = [one for one in classes if one not in least]
    names = [visible(one.name) for one in classes]
    names = [name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..." for name in names]
    rows = []
    for name, one in zip(names, classes, strict=True):
        shares = ("-" if value is None else f"{value:.3f}" for value in (one.precision, one.recall, one.f1))
        rows.append((name, f"{one.support:,}", *shares))
    by_class = ResultTable(
        (("class", "name"), *_numbers(("rows", "precision", "recall", "F1"))),
        tuple(rows),
        f"Classes, on the {PARTS[part]} rows:",
        (f"and {more:,} more classes: --json has all, with the confusion matrix",) if more else (),
    )
    if more:
        return [by_class]
    confusion = ResultTable(
        (("", "name"), *_numbers(names)),
        tuple(
            (name, *(Cell(f"{count:,}", "right" if row == column else "") for column, count in enumerate(counts)))
            for row, (name, counts) in enumerate(zip(names, judged.confusion, strict=True))
        ),
        "Confusion matrix, true classes down, predicted ones across:",
        lettered=True,
    )
    return [by_class, confusion]


def svm_sentence(result: SvmResult) -> str:
    """Return how good a machine is, as a sentence."""
    rows, accuracy, rmse, r2, against = judged_rows(result), result.accuracy, result.rmse, result.r2, ""
    if result.grid is not None and result.judged_on == "train":
        rows, r2 = f"rows held out in {result.grid.folds} folds", None
        accuracy, rmse = (result.grid.mean, None) if result.grid.score == "accuracy" else (None, -result.grid.mean)
    elif result.baseline is not None and result.method != "mean":
        against = f" ({result.baseline.method}: {percent(result.baseline.accuracy)})"
    if accuracy is not None:
        return f"{percent(accuracy)} of {rows} are classified correctly{against}."
    if rmse is not None:
        return error_sentence(rows, rmse, r2)
    return f"{percent(result.outliers or 0.0)} of {rows} are outliers."


def _cost_lines(result: SvmResult) -> list[tuple[str, str]]:
    """Return the cost in both of its conventions, or nu."""
    if result.method != "svm":
        return []
    parts = [] if result.nu is None else [f"nu = {number(result.nu)}"]
    if result.C is not None and result.lambda_ is not None:
        parts += [f"C = {number(result.C)}", f"lambda = 1/(2 n C) = {number(result.lambda_)}"]
    return [("cost", ", ".join(parts) or "hard margin: no training row may be on the wrong side")]


def _grid_text(grid: GridSearch) -> str:
    """Return how the options were judged."""
    best, accuracy = grid.cells[grid.chosen], grid.score == "accuracy"
    score = f"{percent(best.mean)} correct" if accuracy else f"RMSE {number(-best.mean)}"
    if best.standard_error is not None:
        score += f" +- {percent(best.standard_error) if accuracy else number(best.standard_error)}"
    of = f", the best of {len(grid.cells)}" if len(grid.cells) > 1 else ""
    return f"{grid.folds}-fold cross-validation of the training rows: {score}{of}"


def _solver_lines(result: SvmResult) -> list[tuple[str, str]]:
    """Return what the machine consists of and how surely it is the best one."""
    if result.method == "mean":
        return []
    support = f"{result.n_support:,} of {counted(result.n_train, 'training row')}"
    if result.method == "perceptron":
        settled = "converged" if result.converged else "not converged"
        return [("support", support), ("solver", f"{settled} after {counted(result.iterations, 'correction')}")]
    settled = "converged" if result.converged else "NOT converged"
    gap = "" if result.duality_gap is None else f": duality gap {number(result.duality_gap, 2)} of the objective"
    lines = [
        ("support", f"{support}, {result.n_bounded:,} of them at the bound"),
        ("solver", f"{settled}{gap}, {counted(result.iterations, 'linear system')}"),
    ]
    if result.objective is not None and result.dual_objective is not None:
        lines.append(("objective", f"{number(result.objective, 6)}, dual {number(result.dual_objective, 6)}"))
    return [*lines, ("intercept", number(result.intercept))] if isinstance(result.intercept, float) else lines


def _class_lines(result: SvmResult, judged: ClassificationMetrics) -> list[tuple[str, str]]:
    """Return how good a classifier is on the rows that it is judged by, and on those that it has learned."""
    low, high = (percent(end) for end in judged.accuracy_interval)
    interval = f", 95 % interval {low} to {high}" if result.judged_on == "test" else ""
    rows = counted(judged.n, f"{PARTS[result.judged_on]} row")
    lines = [
        ("accuracy", f"{percent(judged.accuracy)} of {rows}{interval}"),
        ("", f"balanced {percent(judged.balanced_accuracy)}, mean F1 {number(judged.macro_f1)}"),
    ]
    if judged.roc_auc is not None:
        lines.append(("ROC AUC", number(judged.roc_auc)))
    if judged.log_loss is not None and judged.brier is not None:
        lines.append(("probability", f"log loss {number(judged.log_loss)}, Brier score {number(judged.brier)}"))
    if result.judged_on == "test" and isinstance(result.train, ClassificationMetrics):
        lines.append(("training", f"{percent(result.train.accuracy)} of {counted(result.train.n, 'training row')}"))
    if (best := result.baseline) is not None and result.method != "mean":
        balanced = percent(best.balanced_accuracy)
        lines.append(("baseline", f"{best.method}: {percent(best.accuracy)}, balanced {balanced}"))
    return lines


def _number_lines(result: SvmResult, judged: RegressionMetrics) -> list[tuple[str, str]]:
    """Return how good a regression is on the rows that it is judged by, and on those that it has learned."""
    rows = counted(judged.n, f"{PARTS[result.judged_on]} row")
    lines = [
        ("RMSE", f"{number(judged.rmse)} on {rows}"),
        ("MAE", f"{number(judged.mae)}, largest error {number(judged.max_error)}"),
    ]
    if judged.r2 is not None:
        lines.append(("r2", number(judged.r2)))
    if result.judged_on == "test" and isinstance(result.train, RegressionMetrics):
        lines.append(("training", _trained(result.train)))
    return lines


def _trained(train: RegressionMetrics) -> str:
    """Return how good a regression is on the rows that it has learned."""
    return f"RMSE {number(train.rmse)}{'' if train.r2 is None else f', r2 {number(train.r2)}'}"


CRITERIA = {
    "loo": "exact leave-one-out",
    "gcv": "generalised cross-validation",
    "cv": "exact {folds}-fold cross-validation",
    "evidence": "the evidence of the Gaussian process",
}


def ridge_summary(result: RidgeResult) -> Summary:
    """Return a fitted regression in words."""
    lines = [("lambda", f"{number(result.lambda_)}, lambda/n = {number(result.lambda_per_row)}")]
    if (grid := result.grid) is not None:
        of = f" of {grid.n_rows:,} rows" if grid.n_rows < result.n_train else ""
        best = f"{grid.score} {number(grid.cells[grid.chosen].score)}, the best of {len(grid.cells)} cells"
        lines.append(("chosen by", f"{CRITERIA[grid.criterion].format(folds=grid.folds)}{of}: {best}"))
    how = f"{number(result.effective_df)} effective degrees of freedom, condition number {result.condition_number:.2g}"
    if result.solver != "eigenvalues":
        state = "" if result.converged else ", not converged"
        how += f", {counted(result.iterations, 'step')} of conjugate gradients{state}"
    lines += [("solver", how), *_ridge_lines(result)]
    tables = [] if grid is None or len(grid.cells) < 2 else [_penalty_table(grid)]
    targets, sentence = name_list(result.targets), ridge_sentence(result)
    return learner_summary(result, "Kernel ridge regression", lines, sentence, target=targets, tables=tables)


def _penalty_table(grid: RidgeGrid) -> ResultTable:
    """Return the scores of a grid: lambdas down, bandwidths across."""
    cells = {(cell.multiple, cell.lambda_): cell for cell in grid.cells}
    multiples, lambdas = (sorted(set(values)) for values in zip(*cells, strict=True))
    chosen = grid.cells[grid.chosen]
    widths = [cells[multiple, lambdas[0]].bandwidth for multiple in multiples]
    headings = [
        number(multiple) if width is None else number(width, 3)
        for multiple, width in zip(multiples, widths, strict=True)
    ]

    def shown(cell: RidgeCell) -> Cell:
        text = number(cell.score, 4)
        return Cell(f"*{text}", "chosen") if cell is chosen else Cell(text)

    of = "bandwidths" if chosen.bandwidth is not None else "bandwidths / median"
    return ResultTable(
        (("lambda", "word"), *_numbers(headings)),
        tuple((number(one), *(shown(cells[multiple, one]) for multiple in multiples)) for one in lambdas),
        f"Grid, {grid.score}, {of} across (* chosen):",
        (f"tie rule: {grid.tie_rule}",),
        keep=headings[multiples.index(chosen.multiple)],
    )


def ridge_sentence(result: RidgeResult) -> str:
    """Return how good a regression is, as a sentence."""
    judged, several = result.test or result.train, len(result.targets) > 1
    rows, rmse, r2 = judged_rows(result), judged.rmse, judged.r2
    if result.judged_on == "train" and result.loo_rmse is not None:
        rows, rmse, r2 = left_out_rows(together=result.n_clusters is not None), result.loo_rmse, result.loo_r2
        rows += "" if several else ","
    if not several:
        return error_sentence(rows, rmse, r2)
    explained = "unknown" if r2 is None else number(r2)
    return f"Predictions of {rows} have r2 = {explained}, the mean over {len(result.targets)} targets."


def left_out_rows(*, together: bool) -> str:
    """Return the rows that are predicted by a fit without them."""
    return f"rows left out, one {'cluster ' if together else ''}at a time"


def _ridge_lines(result: RidgeResult) -> list[tuple[str, str]]:
    """Return how good the regression is: on test rows, left out, on training rows; of several targets each."""
    lines, left_out = list[tuple[str, str]](), left_out_rows(together=result.n_clusters is not None)
    for fit in result.fits:
        judged = fit.train if fit.test is None else fit.test
        rows = counted(judged.n, f"{PARTS[result.judged_on]} row")
        error, covered, of = f"{number(judged.rmse)} on {rows}", judged.coverage, f" of {rows}"
        if len(result.fits) > 1:
            parts = [f"RMSE {error}"] + ([] if judged.r2 is None else [f"r2 {number(judged.r2)}"])
            parts += [] if covered is None else [f"intervals of {percent(result.interval)} hold {percent(covered)}"]
            lines.append((visible(fit.name)[:20], ", ".join(parts)))
            continue
        lines += [("RMSE", error), ("", f"MAE {number(judged.mae)}, largest error {number(judged.max_error)}")]
        lines += [] if judged.r2 is None else [("r2", number(judged.r2))]
        if covered is None:
            covered, of = result.loo_coverage, f" of {left_out}"
        if covered is not None:
            lines.append(("intervals", f"of {percent(result.interval)} hold {percent(covered)}{of}"))
        lines.append(("noise", f"standard deviation {number(fit.noise)}, estimated from the training rows"))
        loo = f"{number(result.gcv_rmse)} by generalised cross-validation"
        if result.loo_rmse is not None:
            loo = f"{number(result.loo_rmse)} of training {left_out}"
        lines.append(("left out", f"RMSE {loo}"))
        lines += [("training", _trained(result.train))] if result.judged_on == "test" else []
    return lines


# How sure a column must go with a component to be named, and how many are.
CLEAR, NAMED = 0.3, 3
# More components than this are left to --json.
SHOWN = 12
SOLVERS = {
    "lanczos": "Lanczos",
    "dense": "dense eigendecomposition",
    "covariance": "eigendecomposition of the covariance matrix",
}


def kpca_summary(result: KpcaResult) -> Summary:
    """Return components in words."""
    lines = [("solver", SOLVERS[result.solver])]
    if result.test is not None:
        lines.append(("test rows", f"{percent(result.test.explained)} of their variance"))
    title = "Principal components" if result.kernel == "linear" else "Kernel principal components"
    return learner_summary(result, title, lines, kpca_sentence(result), tables=(_components(result),), answer="Result")


def _components(result: KpcaResult) -> ResultTable:
    """Return eigenvalues, shares of the variance, and the columns that each component goes with."""
    rows = []
    together = 0.0
    for place, (value, ratio) in enumerate(zip(result.eigenvalues, result.explained_variance_ratio, strict=True)):
        together += ratio
        shares = (f"{100 * ratio:.1f}", f"{100 * together:.1f}")
        rows.append((f"pc{place + 1}", number(value), *shares, goes_with(result, place)))
    more = len(rows) - SHOWN
    numbers = ("eigenvalue", "% of variance", "together")
    return ResultTable(
        (("component", "word"), *_numbers(numbers), ("goes with (correlation)", "text")),
        tuple(rows[:SHOWN]),
        "Components:",
        (f"and {more:,} more, in all {100 * together:.1f} %: --json has them",) if more > 0 else (),
    )


def kpca_sentence(result: KpcaResult) -> str:
    """Return how much of the variance the components explain, as a sentence."""
    where = "" if result.kernel == "linear" else " in feature space"
    verb = "explains" if result.components == 1 else "explain"
    return f"{counted(result.components, 'component')} {verb} {percent(result.explained)} of the variance{where}."


def kpca_notes(result: KpcaResult) -> list[str]:
    """Return what was found out and chosen on the way to the components, one line each."""
    return [*learner_notes(result), f"trace of HKH: {number(result.trace)}"]


def goes_with(result: KpcaResult, component: int) -> str:
    """Return the columns that go clearly with a component, the clearest first, with their correlation."""
    found = [
        (value, association)
        for association in result.associations
        if (value := association.values[component]) is not None and abs(value) >= CLEAR
    ]
    found.sort(key=lambda pair: -abs(pair[0]))
    told = [f"{visible(one.column)} ({value:.2f})" for value, one in found[:NAMED]]
    return ", ".join(told) or "-"
