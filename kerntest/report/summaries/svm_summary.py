"""Fitted support vector machines in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.report.results.learning_record import ClassificationMetrics, RegressionMetrics
from kerntest.report.summaries.learner_summary import (
    PARTS,
    cluster_lines,
    data_lines,
    error_sentence,
    features_text,
    judged_rows,
    learner_notes,
)
from kerntest.report.summaries.words import (
    Cell,
    ResultTable,
    Summary,
    counted,
    name_list,
    number,
    percent,
    shortened_kernel,
    visible,
)

if TYPE_CHECKING:
    from kerntest.report.results.svm_record import GridCell, GridSearch, SvmResult

# More classes than this are left to --json: nobody reads a larger matrix in a terminal.
CLASSES_SHOWN = 12
LONGEST_NAME = 20
TITLES = {
    "svm": "Support vector machine",
    "mean": "Nearest-mean classifier",
    "perceptron": "Kernel perceptron",
}


def svm_summary(result: SvmResult) -> Summary:
    """Return a fitted machine in words."""
    lines = [
        *data_lines(result, _target_text(result)),
        *cluster_lines(result.cluster, result.n_clusters),
        ("columns", name_list(result.columns)),
        ("kernel", visible(shortened_kernel(result.kernel))),
    ]
    if result.features is not None:
        lines.append(("features", features_text(result)))
    lines += _cost_lines(result)
    if result.grid is not None:
        lines.append(("chosen by" if len(result.grid.cells) > 1 else "validated", _grid_text(result)))
    lines += [*_solver_lines(result), *_judgement_lines(result)]
    if result.model is not None:
        lines.append(("model", visible(result.model)))
    title = TITLES[result.method]
    if result.task != "classify":
        title += " for numbers" if result.task == "regress" else " for one class"
    warnings = tuple(visible(warning) for warning in result.warnings)
    tables: list[ResultTable] = []
    if result.grid is not None and len(result.grid.cells) > 1:
        tables.append(_grid_table(result.grid))
    judged = result.train if result.judged_on == "train" else result.test
    if isinstance(judged, ClassificationMetrics):
        tables += _class_tables(judged, result.judged_on)
    return Summary(title, tuple(lines), visible(svm_sentence(result)), warnings, tuple(tables))


def _grid_table(grid: GridSearch) -> ResultTable:
    """Return the scores of a grid: bandwidths down, costs across."""
    costs = sorted({cell.C for cell in grid.cells})
    cells = {(cell.multiple, cell.C): cell for cell in grid.cells}
    chosen = grid.cells[grid.chosen]

    def shown(cell: GridCell) -> Cell:
        text = f"{100 * cell.mean:.1f}" if grid.score == "accuracy" else number(-cell.mean)
        return Cell(f"*{text}", "chosen") if cell is chosen else Cell(text)

    rows: list[tuple[str | Cell, ...]] = []
    for multiple in sorted({cell.multiple for cell in grid.cells}):
        bandwidth = cells[multiple, costs[0]].bandwidth
        size = f"{number(multiple)} x median" if bandwidth is None else number(bandwidth)
        rows.append((size, *(shown(cells[multiple, cost]) for cost in costs)))
    return ResultTable(
        (("bandwidth", "word"), *((f"C = {number(cost)}", "number") for cost in costs)),
        tuple(rows),
        f"Grid, mean {'accuracy in %' if grid.score == 'accuracy' else 'RMSE'} over {grid.folds} folds (* chosen):",
        (f"tie rule: {grid.tie_rule}",),
        keep=f"C = {number(chosen.C)}",
    )


def _class_tables(judged: ClassificationMetrics, part: str) -> list[ResultTable]:
    """Return precision, recall and F1 of each class, and where its rows went."""
    total = len(judged.classes)
    # The most frequent ones where there are too many, in the order of the classes.
    shown = sorted(sorted(range(total), key=lambda k: (-judged.classes[k].support, k))[:CLASSES_SHOWN])
    names = [visible(judged.classes[k].name) for k in shown]
    names = [name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..." for name in names]
    more = total - len(shown)
    rows = []
    for name, one in zip(names, (judged.classes[k] for k in shown), strict=True):
        shares = ("-" if value is None else f"{value:.3f}" for value in (one.precision, one.recall, one.f1))
        rows.append((name, f"{one.support:,}", *shares))
    by_class = ResultTable(
        (("class", "name"), *((heading, "number") for heading in ("rows", "precision", "recall", "F1"))),
        tuple(rows),
        f"Classes, on the {PARTS[part]} rows:",
        (f"and {more:,} more classes: --json has all, with the confusion matrix",) if more else (),
    )
    if more:
        return [by_class]
    confusion = ResultTable(
        (("", "name"), *((name, "number") for name in names)),
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
    rows = judged_rows(result)
    if result.grid is not None and result.judged_on == "train":
        rows, mean = f"rows held out in {result.grid.folds} folds", result.grid.mean
        return (
            f"{percent(mean)} of {rows} are classified correctly."
            if result.grid.score == "accuracy"
            else error_sentence(rows, -mean, None)
        )
    if result.accuracy is not None:
        against = ""
        if result.baseline is not None and result.method != "mean":
            against = f" ({result.baseline.method}: {percent(result.baseline.accuracy)})"
        return f"{percent(result.accuracy)} of {rows} are classified correctly{against}."
    if result.rmse is not None:
        return error_sentence(rows, result.rmse, result.r2)
    share = percent(result.outliers or 0.0)
    return f"{share} of {rows} are outliers."


def svm_notes(result: SvmResult) -> list[str]:
    """Return what was found out and chosen on the way to a machine, one line each."""
    return learner_notes(result, None if result.grid is None else result.grid.tie_rule)


def _target_text(result: SvmResult) -> str | None:
    """Return the target, with its classes."""
    if result.target is None:
        return None
    target = visible(result.target)
    return f"{target}: {name_list(result.classes)}" if result.classes else target


def _cost_lines(result: SvmResult) -> list[tuple[str, str]]:
    """Return the cost in both of its conventions, or nu."""
    if result.method != "svm":
        return []
    parts = [] if result.nu is None else [f"nu = {number(result.nu)}"]
    if result.C is not None:
        parts.append(f"C = {number(result.C)}")
        if result.lambda_ is not None:
            parts.append(f"lambda = 1/(2 n C) = {number(result.lambda_)}")
    elif result.nu is None:
        parts.append("hard margin: no training row may be on the wrong side")
    return [("cost", ", ".join(parts))]


def _grid_text(result: SvmResult) -> str:
    """Return how the options were judged."""
    grid = result.grid
    if grid is None:
        return ""
    best = grid.cells[grid.chosen]
    if grid.score == "accuracy":
        score = f"{percent(best.mean)} correct"
        spread = None if best.standard_error is None else percent(best.standard_error)
    else:
        score = f"RMSE {number(-best.mean)}"
        spread = None if best.standard_error is None else number(best.standard_error)
    error = "" if spread is None else f" +- {spread}"
    how = f"{grid.folds}-fold cross-validation of the training rows"
    return f"{how}: {score}{error}" + (f", the best of {len(grid.cells)}" if len(grid.cells) > 1 else "")


def _solver_lines(result: SvmResult) -> list[tuple[str, str]]:
    """Return what the machine consists of and how surely it is the best one."""
    if result.method == "mean":
        return []
    bounded = "" if result.method != "svm" else f", {result.n_bounded:,} of them at the bound"
    lines = [("support", f"{result.n_support:,} of {counted(result.n_train, 'training row')}{bounded}")]
    if result.method == "perceptron":
        settled = "converged" if result.converged else "not converged"
        return [*lines, ("solver", f"{settled} after {counted(result.iterations, 'correction')}")]
    settled = "converged" if result.converged else "NOT converged"
    gap = "" if result.duality_gap is None else f": duality gap {number(result.duality_gap, 2)} of the objective"
    lines.append(("solver", f"{settled}{gap}, {counted(result.iterations, 'linear system')}"))
    if result.objective is not None and result.dual_objective is not None:
        lines.append(("objective", f"{number(result.objective, 6)}, dual {number(result.dual_objective, 6)}"))
    if isinstance(result.intercept, float):
        lines.append(("intercept", number(result.intercept)))
    return lines


def _judgement_lines(result: SvmResult) -> list[tuple[str, str]]:
    """Return how good the machine is on the rows that it is judged by, and on those that it has learned."""
    judged = result.train if result.judged_on == "train" else result.test
    if isinstance(judged, ClassificationMetrics):
        return _class_lines(result, judged)
    if isinstance(judged, RegressionMetrics):
        return _number_lines(result, judged)
    return (
        []
        if result.outliers is None
        else [("outliers", f"{percent(result.outliers)} of the {PARTS[result.judged_on]} rows")]
    )


def _class_lines(result: SvmResult, judged: ClassificationMetrics) -> list[tuple[str, str]]:
    low, high = (percent(end) for end in judged.accuracy_interval)
    interval = f", 95 % interval {low} to {high}" if result.judged_on == "test" else ""
    lines = [
        ("accuracy", f"{percent(judged.accuracy)} of {counted(judged.n, f'{PARTS[result.judged_on]} row')}{interval}")
    ]
    lines.append(("", f"balanced {percent(judged.balanced_accuracy)}, mean F1 {number(judged.macro_f1)}"))
    if judged.roc_auc is not None:
        lines.append(("ROC AUC", number(judged.roc_auc)))
    if judged.log_loss is not None and judged.brier is not None:
        lines.append(("probability", f"log loss {number(judged.log_loss)}, Brier score {number(judged.brier)}"))
    if result.judged_on == "test" and isinstance(result.train, ClassificationMetrics):
        lines.append(("training", f"{percent(result.train.accuracy)} of {counted(result.train.n, 'training row')}"))
    if result.baseline is not None and result.method != "mean":
        balanced = percent(result.baseline.balanced_accuracy)
        lines.append(
            ("baseline", f"{result.baseline.method}: {percent(result.baseline.accuracy)}, balanced {balanced}")
        )
    return lines


def _number_lines(result: SvmResult, judged: RegressionMetrics) -> list[tuple[str, str]]:
    lines = [("RMSE", f"{number(judged.rmse)} on {counted(judged.n, f'{PARTS[result.judged_on]} row')}")]
    lines.append(("MAE", f"{number(judged.mae)}, largest error {number(judged.max_error)}"))
    if judged.r2 is not None:
        lines.append(("r2", number(judged.r2)))
    if result.judged_on == "test" and isinstance(result.train, RegressionMetrics):
        explained = "" if result.train.r2 is None else f", r2 {number(result.train.r2)}"
        lines.append(("training", f"RMSE {number(result.train.rmse)}{explained}"))
    return lines
