"""Fitted ridge regressions in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.report.summaries.learner_summary import (
    PARTS,
    error_sentence,
    judged_rows,
    learner_notes,
    learner_summary,
)
from kerntest.report.summaries.words import (
    Cell,
    ResultTable,
    Summary,
    counted,
    name_list,
    number,
    percent,
    visible,
)

if TYPE_CHECKING:
    from kerntest.report.results.ridge_record import IntervalMetrics, RidgeCell, RidgeGrid, RidgeResult

CRITERIA = {
    "loo": "exact leave-one-out",
    "gcv": "generalised cross-validation",
    "cv": "exact {folds}-fold cross-validation",
    "evidence": "the evidence of the Gaussian process",
}


def ridge_summary(result: RidgeResult) -> Summary:
    """Return a fitted regression in words."""
    lines = [("lambda", f"{number(result.lambda_)}, lambda/n = {number(result.lambda_per_row)}")]
    if result.grid is not None:
        lines.append(("chosen by", criterion_text(result)))
    lines += [("solver", _solver_text(result)), *_judgement_lines(result)]
    tables = (_grid_table(result.grid),) if result.grid is not None and len(result.grid.cells) > 1 else ()
    targets, sentence = name_list(result.targets), ridge_sentence(result)
    return learner_summary(result, "Kernel ridge regression", lines, sentence, target=targets, tables=tables)


def _grid_table(grid: RidgeGrid) -> ResultTable:
    """Return the scores of a grid: lambdas down, bandwidths across."""
    lambdas = sorted({cell.lambda_ for cell in grid.cells})
    cells = {(cell.multiple, cell.lambda_): cell for cell in grid.cells}
    chosen = grid.cells[grid.chosen]
    headings = {
        cell.multiple: number(cell.multiple) if cell.bandwidth is None else number(cell.bandwidth, 3)
        for cell in sorted(grid.cells, key=lambda cell: cell.multiple)
    }

    def shown(cell: RidgeCell) -> Cell:
        text = number(cell.score, 4)
        return Cell(f"*{text}", "chosen") if cell is chosen else Cell(text)

    of = "bandwidths" if chosen.bandwidth is not None else "bandwidths / median"
    return ResultTable(
        (("lambda", "word"), *((heading, "number") for heading in headings.values())),
        tuple((number(one), *(shown(cells[multiple, one]) for multiple in headings)) for one in lambdas),
        f"Grid, {grid.score}, {of} across (* chosen):",
        (f"tie rule: {grid.tie_rule}",),
        keep=headings[chosen.multiple],
    )


def ridge_sentence(result: RidgeResult) -> str:
    """Return how good a regression is, as a sentence."""
    if len(result.targets) > 1:
        left_out = result.judged_on == "train" and result.loo_r2 is not None
        r2 = result.loo_r2 if left_out else result.r2
        rows = left_out_rows(together=result.n_clusters is not None) if left_out else judged_rows(result)
        explained = "unknown" if r2 is None else number(r2)
        return f"Predictions of {rows} have r2 = {explained}, the mean over {len(result.targets)} targets."
    if result.judged_on == "train" and result.loo_rmse is not None:
        return error_sentence(
            f"{left_out_rows(together=result.n_clusters is not None)},", result.loo_rmse, result.loo_r2
        )
    return error_sentence(judged_rows(result), result.rmse, result.r2)


def left_out_rows(*, together: bool) -> str:
    """Return the rows that are predicted by a fit without them."""
    return f"rows left out, one {'cluster ' if together else ''}at a time"


def ridge_notes(result: RidgeResult) -> list[str]:
    """Return what was found out and chosen on the way to a regression, one line each."""
    return learner_notes(result)


def criterion_text(result: RidgeResult) -> str:
    """Return what chose lambda and the bandwidth, and how good the best cell is."""
    grid = result.grid
    if grid is None:
        return ""
    best = grid.cells[grid.chosen]
    of = f" of {grid.n_rows:,} rows" if grid.n_rows < result.n_train else ""
    return (
        f"{CRITERIA[grid.criterion].format(folds=grid.folds)}{of}: {grid.score} {number(best.score)}, "
        f"the best of {len(grid.cells)} cells"
    )


def _solver_text(result: RidgeResult) -> str:
    how = f"{number(result.effective_df)} effective degrees of freedom, condition number {result.condition_number:.2g}"
    if result.solver == "eigenvalues":
        return how
    state = "" if result.converged else ", not converged"
    return f"{how}, {counted(result.iterations, 'step')} of conjugate gradients{state}"


def _judgement_lines(result: RidgeResult) -> list[tuple[str, str]]:
    """Return how good the regression is: on test rows, left out, on training rows; of several targets each."""
    if len(result.targets) > 1:
        lines = []
        for fit in result.fits:
            judged = fit.train if fit.test is None else fit.test
            lines.append((visible(fit.name)[:20], _metrics_text(judged, result)))
        return [*lines, *_training_lines(result)]
    fit = result.fits[0]
    judged = result.train if result.test is None else result.test
    lines = [("RMSE", _rmse_text(judged, result.judged_on))]
    lines.append(("", f"MAE {number(judged.mae)}, largest error {number(judged.max_error)}"))
    if judged.r2 is not None:
        lines.append(("r2", number(judged.r2)))
    if judged.coverage is not None:
        share = f"{percent(judged.coverage)} of {counted(judged.n, f'{PARTS[result.judged_on]} row')}"
        lines.append(("intervals", f"of {percent(result.interval)} hold {share}"))
    elif result.loo_coverage is not None:
        held = percent(result.loo_coverage)
        lines.append(
            (
                "intervals",
                f"of {percent(result.interval)} hold {held} of {left_out_rows(together=result.n_clusters is not None)}",
            )
        )
    lines.append(("noise", f"standard deviation {number(fit.noise)}, estimated from the training rows"))
    return [*lines, *_training_lines(result)]


def _training_lines(result: RidgeResult) -> list[tuple[str, str]]:
    lines = []
    if len(result.targets) == 1 and result.loo_rmse is not None:
        lines.append(
            (
                "left out",
                f"RMSE {number(result.loo_rmse)} of training {left_out_rows(together=result.n_clusters is not None)}",
            )
        )
    elif len(result.targets) == 1:
        lines.append(("left out", f"RMSE {number(result.gcv_rmse)} by generalised cross-validation"))
    if result.judged_on == "test" and len(result.targets) == 1:
        explained = "" if result.train.r2 is None else f", r2 {number(result.train.r2)}"
        lines.append(("training", f"RMSE {number(result.train.rmse)}{explained}"))
    return lines


def _rmse_text(judged: IntervalMetrics, part: str) -> str:
    return f"{number(judged.rmse)} on {counted(judged.n, f'{PARTS[part]} row')}"


def _metrics_text(judged: IntervalMetrics, result: RidgeResult) -> str:
    parts = [f"RMSE {_rmse_text(judged, result.judged_on)}"]
    if judged.r2 is not None:
        parts.append(f"r2 {number(judged.r2)}")
    if judged.coverage is not None:
        parts.append(f"intervals of {percent(result.interval)} hold {percent(judged.coverage)}")
    return ", ".join(parts)
