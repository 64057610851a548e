"""What a picture of a fitted regression shows: the fit over one column or predictions, residuals, the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.learning.pictures import fit_picture, grid_picture, over_one_column
from kerntest.report.learning_plot import SearchPicture, learning_figure
from kerntest.report.plot import picture_bytes
from kerntest.report.regression_plot import ResidualPicture, TruthPicture
from kerntest.report.ridge_summary import left_out_rows, ridge_sentence
from kerntest.report.summary import number, percent

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Points
    from kerntest.learning.pictures import Curve
    from kerntest.learning.ridge_judge import JudgedRidge
    from kerntest.report.regression_plot import FitPicture
    from kerntest.report.ridge_record import RidgeResult

TARGETS_DRAWN = 3


def ridge_picture(result: RidgeResult, judged: JudgedRidge, kind: str, engine: Engine) -> bytes:
    """Return a picture of a regression as "png", "svg" or "pdf": one or two panels for each of the first targets."""
    panels: list[Any] = []
    several = len(judged.rows.names) > 1
    for place in range(min(len(judged.rows.names), TARGETS_DRAWN)):
        panels.append(_fit(judged, place, engine) if over_one_column(judged.rows.encoder) else _truth(judged, place))
        if not several:
            panels.append(_residuals(judged, place))
    search = _search(result)
    if search is not None:
        panels.append(search)
    title = f"{', '.join(result.targets)}: {ridge_sentence(result)}"
    return picture_bytes(learning_figure(tuple(panels), title), kind)


def _fit(judged: JudgedRidge, place: int, engine: Engine) -> FitPicture:
    """Return the fit over the one column there is, with the intervals of new values."""
    rows, test, model = judged.rows, judged.test, judged.fit.model

    def curve(grid: Points) -> Curve:
        mean = model.predicted(grid, engine)[:, place]
        if model.spread is None:
            return mean, None, None
        reach = model.reach(judged.interval) * model.deviations(grid, engine)[:, place]
        return mean, mean - reach, mean + reach

    return fit_picture(
        rows.encoder,
        rows.names[place],
        (rows.points, rows.targets[:, place]),
        None if test is None else (test.points, test.targets[:, place]),
        curve,
        band=f"{percent(judged.interval)} interval of new values",
        remark=f"lambda {number(model.lambda_)}, {number(judged.fit.degrees, 3)} effective degrees of freedom",
    )


def _truth(judged: JudgedRidge, place: int) -> TruthPicture:
    """Return predictions of test rows, or of training rows each left out, against the truth."""
    model, fit = judged.fit.model, judged.fit
    reach: Any = None
    covered = None
    if judged.test is not None and judged.test_predicted is not None:
        truth, predicted = judged.test.targets[:, place], judged.test_predicted[:, place]
        if judged.test_spread is not None:
            reach = model.reach(judged.interval) * judged.test_spread[:, place]
        covered = judged.test_metrics[place].coverage
        rows = "test rows"
    else:
        truth = judged.rows.targets[:, place]
        predicted, rows = fit.fitted[:, place], "training rows"
        if fit.left_out is not None and fit.left_out_spread is not None:
            predicted, rows = truth - fit.left_out[:, place], left_out_rows(together=judged.rows.clusters is not None)
            reach = model.reach(judged.interval) * fit.left_out_spread[:, place]
            covered = float(np.mean(np.abs(truth - predicted) <= reach))
    return TruthPicture(judged.rows.names[place], truth, predicted, reach, judged.interval, rows, covered)


def _residuals(judged: JudgedRidge, place: int) -> ResidualPicture:
    """Return the residuals of the same rows as `_truth`."""
    seen = _truth(judged, place)
    residuals = seen.truth - seen.predicted
    rmse = float(np.sqrt(np.mean(np.square(residuals))))
    return ResidualPicture(judged.rows.names[place], seen.predicted, residuals, seen.rows, rmse)


def _search(result: RidgeResult) -> SearchPicture | None:
    """Return the grid of lambdas and bandwidths, where there were several of either."""
    grid = result.grid
    if grid is None:
        return None
    headings = {"loo": "Leave-one-out", "gcv": "GCV", "cv": f"{grid.folds} folds", "evidence": "Evidence"}
    return grid_picture(
        grid.cells,
        [cell.lambda_ for cell in grid.cells],
        [cell.score for cell in grid.cells],
        grid.chosen,
        name="lambda",
        score=grid.score,
        heading=headings[grid.criterion],
        smaller_is_better=True,
    )
