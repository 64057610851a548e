"""Fitted learners in words: what all of them say alike, machines and ridge regressions."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from kerntest.errors import counted, either, listed, option
from kerntest.report.results import learning_record as records
from kerntest.report.results.component_record import CcaResult, KpcaResult, UnmixResult
from kerntest.report.summaries import words
from kerntest.report.summaries.words import ResultTable, name_list, number, percent, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    # What has no text is not told.
    Lines: TypeAlias = Sequence[tuple[str, str | None]]

PARTS = {"train": "training", "test": "test"}
TITLES = {"svm": "Support vector machine", "mean": "Nearest-mean classifier", "perceptron": "Kernel perceptron"}
# What columns are worth where classes have weights.
BALANCED = "balanced accuracy"
TASKS = {"classify": "", "regress": " for numbers", "one-class": " for one class"}
# More classes than this are left to --json: nobody reads a larger matrix in a terminal.
CLASSES_SHOWN = 12
GIVEN_UP = "in brackets: given up after fewer folds, or a first look"
ABOVE = "; by chance that may be above the best"
# Of more rows of a grid those beside the chosen one are shown, so many above and below.
MOST_ROWS, ROWS_BESIDE = 10, 3
# Standard errors that chance hardly goes beyond.
SURELY = 3.0
# Seconds that given up cells must have saved to be told.
LEAST_SAVED = 1.0


def learner_summary(
    result: records.LearnerResult,
    title: str,
    lines: Lines,
    sentence: str,
    *,
    target: str | None = None,
    tables: Sequence[ResultTable] = (),
) -> words.Summary:
    """Return a fit in words, `lines` its own between the kernel and the model."""
    first, *others = result.provenance.inputs
    weights, cluster, n_clusters = (getattr(result, name, None) for name in ("weights", "cluster", "n_clusters"))
    features, split, tested = None, result.n_test and not others, getattr(result, "n_test_clusters", None)
    held = f" and {tested:,} among the test rows" if tested else ""
    if result.feature_error is not None:
        features = f"{result.features}, kernel values off by {number(result.feature_error, 2)} (RMS)"
    asks = (
        f"; predict writes probabilities with {option('proba', True)}" if getattr(result, "probability", False) else ""
    )
    told = [
        ("data", words.input_text(first)),
        *(("test data", words.input_text(one)) for one in others),
        ("", f"{result.n_train:,} to learn from, {result.n_test:,} held out to judge by" if split else None),
        ("target", target),
        (
            "clusters",
            cluster and f"{visible(cluster)}: {n_clusters or 0:,} among the training rows{held}, none of them parted",
        ),
        ("columns", name_list(result.columns)),
        ("kernel", visible(words.shortened_kernel(result.kernel))),
        ("weights", weights and visible(weights)),
        ("features", features),
        *lines,
        ("model", result.model and f"{visible(result.model)}{asks}"),
    ]
    shown = tuple((label, text) for label, text in told if text)
    answer = "Result" if isinstance(result, CcaResult | KpcaResult | UnmixResult) else "Decision"
    return words.Summary(title, shown, visible(sentence), tuple(map(visible, result.warnings)), tuple(tables), answer)


def learner_notes(result: records.LearnerResult) -> list[str]:
    """Return what was found out and chosen on the way to a model, one line each."""
    provenance, grid = result.provenance, getattr(result, "grid", None)
    notes = [*words.input_notes(provenance), f"columns used: {name_list(result.columns, shown=None)}"]
    if result.columns_left_out:
        notes.append(f"columns left out: {name_list(result.columns_left_out, shown=None)}")
    notes.append(f"kernel {provenance.kernel}, bandwidth: {provenance.bandwidth}, scale {provenance.scale}")
    notes.append(f"kernel as resolved: {result.kernel}")
    notes += [] if grid is None else [f"of the grid was chosen {grid.tie_rule}"]
    notes += [f"trace of HKH: {number(result.trace)}"] if isinstance(result, KpcaResult) else []
    return [visible(note) for note in (*notes, f"seed {provenance.seed}", words.run_note(provenance))]


def part_rows(result: records.LearnerResult) -> str:
    """Return the rows that a result is judged on, such as "20 test rows"."""
    rows = result.n_train if result.judged_on == "train" else result.n_test
    return counted(rows, f"{PARTS[result.judged_on]} row")


def _error_sentence(rows: str, rmse: float, r2: float | None, weighted: str = "") -> str:
    """Return how good predictions of numbers are, as a sentence."""
    explained = "" if r2 is None else f", r2 = {number(r2)}"
    return f"Predictions of {rows} are off by {number(rmse)} ({weighted}root mean square{explained})."


def _error_lines(judged: records.RegressionMetrics, rows: str) -> Lines:
    """Return how good a regression is on the rows that it is judged by."""
    return [
        ("RMSE", f"{number(judged.rmse)} on {rows}"),
        ("", f"MAE {number(judged.mae)}, largest error {number(judged.max_error)}"),
        ("r2", None if judged.r2 is None else number(judged.r2)),
    ]


def _trained_line(result: records.SvmResult | records.RidgeResult) -> tuple[str, str | None]:
    """Return how good a fit is on the rows that it has learned, if it is judged by others."""
    train, told = result.train, None
    if isinstance(train, records.ClassificationMetrics):
        told = f"{percent(train.accuracy)} of {counted(train.n, 'training row')}"
    elif train is not None:
        told = f"RMSE {number(train.rmse)}{'' if train.r2 is None else f', r2 {number(train.r2)}'}"
    return "training", None if result.judged_on == "train" else told


def number_columns(headings: Iterable[str]) -> list[tuple[str, Literal["number"]]]:
    """Return columns of numbers."""
    return [(heading, "number") for heading in headings]


def _grid_table(grid: records.Grid, scores: Sequence[str], called: str) -> list[ResultTable]:
    """Return the scores of a grid of several cells, as texts: an option down, bandwidths across."""
    if len(scores) < 2:
        return []
    (option, columns), given_up = grid.columns, any(text.startswith("(") for text in scores)
    texts = [words.Cell(text) for text in scores]
    texts[grid.chosen] = words.Cell(f"*{scores[grid.chosen]}", "chosen")
    values = [number(getattr(cell, grid.OPTION)) for cell in columns[0]]
    chosen, told = grid.chosen % len(values), [f"tie rule: {grid.tie_rule}"]
    near = [place for place in range(len(values)) if len(values) <= MOST_ROWS or abs(place - chosen) <= ROWS_BESIDE]
    if more := len(values) - len(near):
        told.insert(0, f"and {more:,} more: {either('--json', 'to_dict()')} has them")
    if given_up:
        told.append(GIVEN_UP + ABOVE * (max(cell.mean for cell in grid.cells) > grid.cells[grid.chosen].mean))
    widths = [number(cells[0].bandwidth or cells[0].multiple, 3) for cells in columns]
    return [
        ResultTable(
            ((grid.OPTION.rstrip("_"), "word"), *number_columns(widths)),
            tuple((values[place], *texts[place :: len(values)]) for place in near),
            f"Grid, {called}, {option.replace('bandwidth', 'bandwidths')} across (* chosen):",
            tuple(told),
            keep=widths[grid.chosen // len(values)],
        )
    ]


def svm_summary(result: records.SvmResult) -> words.Summary:
    """Return a fitted machine in words."""
    target, judged, grid = result.target, result.train if result.judged_on == "train" else result.test, result.grid
    rows, lines, tables = part_rows(result), [_cost_line(result)], list[ResultTable]()
    if target is not None:
        target = visible(target) + (f": {_classes_text(result.classes)}" if result.classes else "")
    if grid is not None:
        name, in_percent = grid.score.removeprefix("negative "), grid.score.endswith("accuracy")
        texts = [f"{100 * cell.mean:.1f}" if in_percent else number(abs(cell.mean)) for cell in grid.cells]
        # The score of a cell that was given up stands in brackets.
        texts = [one if cell.folds == grid.folds else f"({one})" for one, cell in zip(texts, grid.cells, strict=True)]
        name += " in %" if in_percent else ""
        lines.append(("chosen by" if len(texts) > 1 else "validated", _grid_text(grid)))
        tables += _grid_table(grid, texts, f"mean {name} over {grid.folds} folds")
    lines += _solver_lines(result)
    if isinstance(judged, records.ClassificationMetrics):
        lines += _class_lines(result, judged, rows)
        tables += _class_tables(judged, result.judged_on)
    elif isinstance(judged, records.RegressionMetrics):
        lines += [*_error_lines(judged, rows), _trained_line(result)]
    elif result.outliers is not None:
        lines.append(("outliers", f"{percent(result.outliers)} of the {PARTS[result.judged_on]} rows"))
    lines += importance_lines(result)
    tables += importance_tables(result)
    title = TITLES[result.method] + TASKS[result.task]
    return learner_summary(result, title, lines, svm_sentence(result), target=target, tables=tables)


def _classes_text(classes: Sequence[str]) -> str:
    """Return the classes in order; of many numbers that they are taken for classes."""
    if len(classes) > CLASSES_SHOWN and all(one.removeprefix("-").replace(".", "", 1).isdigit() for one in classes):
        return f"{len(classes):,} numbers, each taken for a class ({option('task', 'regress')} predicts numbers)"
    return name_list(_in_order(classes))


def svm_sentence(result: records.SvmResult) -> str:
    """Return how good a machine is, as a sentence, by what its options were chosen by."""
    rows, grid, against, r2 = part_rows(result), result.grid, "", result.r2
    name = "accuracy" if grid is None or grid.score == "negative RMSE" else grid.score
    judged = result.train if result.test is None else result.test
    value = getattr(judged, records.SCORES[name], None)
    rmse = result.rmse
    if grid is not None and result.judged_on == "train":
        rows, r2, value, rmse = f"rows held out in {grid.folds} folds", grid.r2, abs(grid.mean), abs(grid.mean)
    elif value is None:
        # Without probabilities there is no log-loss of test rows.
        name, value = "accuracy", result.accuracy
    if result.baseline is not None:
        other = result.baseline.score if grid is not None and name == grid.score else result.baseline.accuracy
        against = f" ({result.baseline.method}: {_score_text(name, other)})"
        # Weights of classes cost accuracy, and are there for all classes alike.
        weighted = getattr(result.importance, "score", "") == BALANCED
        if name == "accuracy" and weighted and isinstance(judged, records.ClassificationMetrics):
            balanced, simple = percent(judged.balanced_accuracy), percent(result.baseline.balanced_accuracy)
            against += f", balanced {balanced} ({simple})"
    if result.task == "one-class":
        return f"{percent(result.outliers or 0.0)} of {rows} are outliers."
    if result.task == "regress":
        return _error_sentence(rows, rmse or 0.0, r2)
    shown = _score_text(name, value or 0.0)
    if name == "accuracy":
        return f"{shown} of {rows} are classified correctly{against}."
    return f"The {name.removeprefix('negative ')} of {rows} is {shown}{against}."


def _score_text(name: str, value: float) -> str:
    """Return the value of a score: shares in percent."""
    return percent(value) if name.endswith("accuracy") else number(abs(value))


def _cost_line(result: records.SvmResult) -> tuple[str, str | None]:
    """Return the cost in both of its conventions, or nu."""
    parts = [] if result.nu is None else [f"nu = {number(result.nu)}"]
    if result.C is not None and result.lambda_ is not None:
        parts += [f"C = {number(result.C)}", f"lambda = 1/(2 n C) = {number(result.lambda_)}"]
    told = ", ".join(parts) or "hard margin: no training row may be on the wrong side"
    return "cost", told if result.method == "svm" else None


def _grid_score(grid: records.GridSearch) -> tuple[str, str, str]:
    """Return what cells were judged by, and in words the mean of the best and its standard error."""
    name, best = grid.score.removeprefix("negative "), grid.best
    error = "" if best.standard_error is None else f" +- {_score_text(name, best.standard_error)}"
    return name, _score_text(name, best.mean), error


def _grid_text(grid: records.GridSearch) -> str:
    """Return how the options were judged."""
    name, mean, error = _grid_score(grid)
    score = f"{mean} correct{error}" if name == "accuracy" else f"{name} {mean}{error}"
    of, planned = f", the best of {len(grid.cells)}" if len(grid.cells) > 1 else "", len(grid.cells) * grid.folds
    if grid.fits < planned:
        looks = f" and a first look at {len(grid.cells):,}" if any(cell.folds == 0 for cell in grid.cells) else ""
        of += f"; cells that fell behind were given up: {grid.fits:,} fits{looks} in place of {planned:,}"
        if grid.seconds_saved >= LEAST_SAVED:
            of += f", which saved {words.show_times(grid.seconds_saved, grid.seconds_saved)}"
    if grid.beyond:
        steps = [f"{edge}{f' ({count} times)' if count > 1 else ''}" for edge, count in Counter(grid.beyond).items()]
        of += f"; the grid went beyond its {listed(steps)}"
    return f"{grid.folds}-fold cross-validation of the training rows: {score}{of}"


def _solver_lines(result: records.SvmResult) -> Lines:
    """Return what the machine consists of and how surely it is the best one."""
    if result.method == "mean":
        return []
    # Equal rows are one.
    support = f"{result.n_support:,} different ones of {counted(result.n_train, 'training row')}"
    if result.method == "perceptron":
        settled = "converged" if result.converged else "not converged"
        averaged = ", structured and averaged" if len(result.classes) > 2 else ""
        return [
            ("support", support),
            ("solver", f"{settled} after {counted(result.iterations, 'correction')}{averaged}"),
        ]
    settled = "converged" if result.converged else "NOT converged"
    gap = "" if result.duality_gap is None else f": duality gap {number(result.duality_gap, 2)} of the objective"
    objectives = [number(one, 6) for one in (result.objective, result.dual_objective) if one is not None]
    return [
        ("support", f"{support}, {result.n_bounded:,} of them at the bound"),
        ("solver", f"{settled}{gap}, {counted(result.iterations, 'linear system')}"),
        ("objective", ", dual ".join(objectives)),
        ("intercept", number(result.intercept) if isinstance(result.intercept, float) else None),
    ]


def _class_lines(result: records.SvmResult, judged: records.ClassificationMetrics, rows: str) -> Lines:
    """Return how good a classifier is on the rows that it is judged by, and on those that it has learned."""
    interval = ""
    if result.judged_on == "test" and judged.accuracy_interval is not None:
        low, high = map(percent, judged.accuracy_interval)
        over = f" over {result.n_test_clusters:,} clusters" if result.cluster and result.n_test_clusters else ""
        interval = f", 95 % interval {low} to {high}{over}"
    # What is copied from the report is copied line by line.
    probability, nearest, known = None, None, f" of {rows}" if result.judged_on == "train" else ""
    if judged.log_loss is not None and judged.brier is not None:
        probability = f"log loss {number(judged.log_loss)}, Brier score {number(judged.brier)}{known}"
    if (best := result.baseline) is not None:
        held = " of rows held out" if result.grid is not None and result.judged_on == "train" else ""
        nearest = f"{best.method}: {percent(best.accuracy)}{held}, balanced {percent(best.balanced_accuracy)}"
    return [
        ("accuracy", f"{percent(judged.accuracy)} of {rows}{interval}"),
        ("", f"balanced {percent(judged.balanced_accuracy)}, mean F1 {number(judged.macro_f1)}"),
        ("ROC AUC", None if judged.roc_auc is None else f"{number(judged.roc_auc)}{known}"),
        ("probability", probability),
        _trained_line(result),
        ("baseline", nearest),
    ]


# More columns than this are left to --json.
COLUMNS_SHOWN = 10
# And of more decimal places the first digits are told.
MOST_PLACES = 5


def importance_lines(result: Any) -> list[tuple[str, str]]:
    """Return the line of columns none of which counts, of a result or of a model."""
    importance = result.importance
    if importance is None or not importance.none:
        return []
    changes = "the RMSE stays" if importance.score == "RMSE" else f"no {importance.score} is lost"
    told = f"no column counts: {changes} where one is shuffled, of {importance.rows:,} rows held out"
    return [("worth", "; ".join([told, *_by_another_score(result)]))]


def _by_another_score(result: Any) -> list[str]:
    """Return what must be known where options were chosen by another score than columns are worth."""
    score, grid = result.importance.score, getattr(result, "grid", None)
    if score == "RMSE" or grid is None or grid.score == score:
        return []
    return [f"in {score}, not in {grid.score}, by which options were chosen: a column may count in that alone"]


def importance_tables(result: records.PredictorResult) -> list[ResultTable]:
    """Return what the columns are worth, the most first."""
    importance = result.importance
    if importance is None or len(importance.columns) < 2 or importance.none:
        return []
    accuracy, more = importance.score != "RMSE", len(importance.columns) - COLUMNS_SHOWN
    texts = importance_texts(importance)
    rows = tuple((visible(one.name), *texts[one.name]) for one in importance.columns[:COLUMNS_SHOWN])
    lost = f"{importance.score} lost, in %," if accuracy else "rise of the RMSE"
    alike = ", as many of each class," if importance.score == BALANCED else ""
    some = "" if importance.rows == result.n_test else f"{alike} drawn from {result.n_test:,}, by a bound on the work"
    heading = f"Columns: {lost} where one is shuffled, of {importance.rows:,} test rows{some}:"
    notes = [f"and {more:,} more: {either('--json', 'to_dict()')} has them"] if more > 0 else []
    notes += _by_another_score(result)
    columns = number_columns(("lost" if accuracy else "rise", "+-"))
    return [ResultTable((("column", "name"), *columns), rows, heading, tuple(notes))]


def importance_texts(importance: records.Importance) -> dict[str, tuple[str, str]]:
    """Return by name what columns are worth, and the standard error of that, with the digits that the largest of them leaves."""
    largest = max((one.standard_error or 0.0 for one in importance.columns), default=0.0)
    unit, places = (1.0, 2) if importance.score == "RMSE" else (100.0, 1)
    if importance.score == "RMSE" and largest > 0:
        places = 1 - math.floor(math.log10(largest))

    def written(value: float | None) -> str:
        if value is None:
            return "-"
        return f"{unit * value:,.{max(places, 0)}f}" if places <= MOST_PLACES else number(value, 3)

    return {one.name: (written(one.mean), written(one.standard_error)) for one in importance.columns}


def _in_order(names: Sequence[str]) -> list[str]:
    """Return names as people count."""
    return [names[place] for place in words.natural_order(names)]


def _class_tables(judged: records.ClassificationMetrics, part: str) -> list[ResultTable]:
    """Return precision, recall and F1 of each class, and where its rows went."""
    order = words.natural_order([one.name for one in judged.classes])
    shown = sorted(sorted(order, key=lambda place: -judged.classes[place].support)[:CLASSES_SHOWN], key=order.index)
    more, classes = len(order) - len(shown), [judged.classes[place] for place in shown]
    names = [visible(one.name) for one in classes]
    rows, counts = list[tuple[str, ...]](), list[tuple[str | words.Cell, ...]]()
    for name, one in zip(names, classes, strict=True):
        shares = ("-" if value is None else f"{value:.3f}" for value in (one.precision, one.recall, one.f1))
        rows.append((name, f"{one.support:,}", *shares))
    columns, heading = number_columns(("rows", "precision", "recall", "F1")), f"Classes, on the {PARTS[part]} rows:"
    left = (
        (f"and {more:,} more classes: {either('--json', 'to_dict()')} has all, with the confusion matrix",)
        if more
        else ()
    )
    by_class = ResultTable((("class", "name"), *columns), tuple(rows), heading, left)
    if more:
        return [by_class]
    for name, row in zip(names, shown, strict=True):
        line = judged.confusion[row]
        cells = (words.Cell(f"{line[place]:,}", "right" if row == place else "") for place in shown)
        counts.append((name, *cells))
    heading = "Confusion matrix, true classes down, predicted ones across:"
    return [by_class, ResultTable((("", "name"), *number_columns(names)), tuple(counts), heading, lettered=True)]


CRITERIA = {
    "loo": "exact leave-one-out",
    "gcv": "generalised cross-validation",
    "cv": "exact {folds}-fold cross-validation",
    "evidence": "the evidence of the Gaussian process",
}


def ridge_summary(result: records.RidgeResult) -> words.Summary:
    """Return a fitted regression in words."""
    tables, chosen = list[ResultTable](), None
    if (grid := result.grid) is not None:
        of = f" of {grid.n_rows:,} rows" if grid.n_rows < result.n_train else ""
        score = f"{_weighted(result)}{grid.score}"
        best = f"{score} {number(grid.best.score)}" + (
            f", the best of {len(grid.cells)} cells" if len(grid.cells) > 1 else ""
        )
        how_chosen = CRITERIA[grid.criterion].format(folds=grid.folds)
        if result.cluster is not None:
            how_chosen = how_chosen.replace("leave-one-out", "leave-one-cluster-out")
        elif result.n_clusters is not None:
            how_chosen += ", copies of a row together"
        chosen = f"{how_chosen}{of}: {best}"
        tables = _grid_table(grid, [number(cell.score) for cell in grid.cells], score)
    how = f"{number(result.effective_df)} effective degrees of freedom, condition number {result.condition_number:.2g}"
    if result.solver != "eigenvalues":
        state = "" if result.converged else ", not converged"
        how += f", {counted(result.iterations, 'step')} of conjugate gradients{state}"
    lines = [
        ("lambda", f"{number(result.lambda_)}, lambda/n = {number(result.lambda_per_row)}"),
        ("chosen by" if result.grid is None or len(result.grid.cells) > 1 else "judged by", chosen),
        ("solver", how),
        *(_single_lines(result) if len(result.fits) == 1 else _target_lines(result)),
        *importance_lines(result),
    ]
    tables += importance_tables(result)
    targets, sentence = name_list(result.targets), ridge_sentence(result)
    return learner_summary(result, "Kernel ridge regression", lines, sentence, target=targets, tables=tables)


def _weighted(result: records.RidgeResult) -> str:
    """Return how errors of rows left out count; those of test rows, and of training rows, count once each."""
    return "" if result.weights is None else "weighted "


def ridge_sentence(result: records.RidgeResult) -> str:
    """Return how good a regression is, as a sentence."""
    judged, several = result.test or result.train, len(result.targets) > 1
    rows, rmse, r2, weighted = part_rows(result), judged.rmse, judged.r2, ""
    if result.judged_on == "train" and result.loo_rmse is not None:
        rows = f"{left_out_rows(result.cluster, together=result.n_clusters is not None)},"
        rmse, r2 = result.loo_rmse, result.loo_r2
        if result.grid is not None and result.grid.r2 is not None:
            rows, r2 = f"rows left out in {result.grid.folds} folds", result.grid.r2
            rmse = rmse if result.grid.rmse is None else result.grid.rmse
        weighted = _weighted(result)
    if not several:
        return _error_sentence(rows, rmse, r2, weighted)
    explained = "unknown" if r2 is None else number(r2)
    return f"Predictions of {rows} have r2 = {explained}, the mean over {len(result.targets)} targets."


def left_out_rows(cluster: str | None, *, together: bool) -> str:
    """Return the rows that are predicted by a fit without them, and without those that stay together with them."""
    one = "one cluster at a time" if cluster is not None else "each with its copies" if together else "one at a time"
    return f"rows left out, {one}"


def _target_lines(result: records.RidgeResult) -> Lines:
    """Return how good a regression of several targets is for each of them."""
    lines = []
    for fit in result.fits:
        judged = fit.test or fit.train
        parts = [f"RMSE {number(judged.rmse)} on {part_rows(result)}"]
        parts += [] if judged.r2 is None else [f"r2 {number(judged.r2)}"]
        if judged.coverage is not None:
            parts.append(f"intervals of {percent(result.interval)} hold {percent(judged.coverage)}")
        lines.append((visible(fit.name)[:20], ", ".join(parts)))
    return lines


def _too_wide(coverage: float, interval: float, n: int) -> bool:
    """Say whether intervals miss less than a third of the rows that they should, by more than chance explains."""
    error = math.sqrt(interval * (1.0 - interval) / n)
    return 3.0 * (1.0 - coverage) <= 1.0 - interval and coverage - interval > SURELY * error


def _single_lines(result: records.RidgeResult) -> Lines:
    """Return how good a regression of one target is: on test rows, left out, and on training rows."""
    (fit,), left_out, rows = (
        result.fits,
        left_out_rows(result.cluster, together=result.n_clusters is not None),
        part_rows(result),
    )
    judged, weighted = fit.test or fit.train, _weighted(result)
    mean = " of a row of the mean weight" if weighted else ""
    covered, of = (judged.coverage, rows) if judged.coverage is not None else (result.loo_coverage, left_out)
    loo = f"{number(result.gcv_rmse)} by generalised cross-validation"
    if result.loo_rmse is not None:
        loo = f"{number(result.loo_rmse)} of training {left_out}"
    held = None
    if covered is not None:
        count = (result.n_test_clusters or result.n_test) if result.test else (result.n_clusters or result.n_train)
        held = f"of {percent(result.interval)} hold {percent(covered)} of {of}"
        held += ": they are too wide" if _too_wide(covered, result.interval, count) else ""
    return [
        *_error_lines(judged, f"{rows}, each of them counted once" if weighted else rows),
        ("intervals", held),
        ("noise", f"standard deviation {number(fit.noise)}{mean}, estimated from the training rows"),
        ("left out", f"{weighted}RMSE {loo}"),
        _trained_line(result),
    ]
