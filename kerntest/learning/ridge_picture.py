"""What a picture of a fitted regression shows: the fit over one column or predictions, residuals, the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.kernels.base import Points
from kerntest.learning.grid_picture import grid_picture
from kerntest.report.learning_plot import SearchPicture, learning_figure
from kerntest.report.plot import picture_bytes
from kerntest.report.regression_plot import FitPicture, ResidualPicture, TruthPicture
from kerntest.report.ridge_summary import ridge_sentence
from kerntest.report.summary import number, percent

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.learning.ridge_data import RidgeRows
    from kerntest.learning.ridge_judge import JudgedRidge
    from kerntest.report.ridge_record import RidgeResult

CURVE_POINTS = 400
# The curve goes beyond the rows by this share of their range, to either side.
MARGIN = 0.05
TARGETS_DRAWN = 3


def ridge_picture(result: RidgeResult, judged: JudgedRidge, kind: str, engine: Engine) -> bytes:
    """Return a picture of a regression as "png", "svg" or "pdf": one or two panels for each of the first targets."""
    panels: list[Any] = []
    several = len(judged.rows.names) > 1
    for place in range(min(len(judged.rows.names), TARGETS_DRAWN)):
        panels.append(_fit(judged, place, engine) if _one_column(judged.rows) else _truth(judged, place))
        if not several:
            panels.append(_residuals(judged, place))
    search = _search(result)
    if search is not None:
        panels.append(search)
    title = f"{', '.join(result.targets)}: {ridge_sentence(result)}"
    return picture_bytes(learning_figure(tuple(panels), title), kind)


def _one_column(rows: RidgeRows) -> bool:
    """Say whether the rows have one column, of numbers."""
    encoder = rows.encoder
    return encoder is not None and len(encoder.columns) == 1 and len(encoder.numeric_names) == 1


def _fit(judged: JudgedRidge, place: int, engine: Engine) -> FitPicture:
    """Return the fit over the one column there is, in its own units."""
    rows, encoder, test = judged.rows, judged.rows.encoder, judged.test
    if encoder is None or not isinstance(rows.points, Points):
        message = "a fit is drawn over a column"
        raise TypeError(message)
    spec = encoder.numeric[0]
    tested = test.points.numeric[:, 0] if test is not None and isinstance(test.points, Points) else np.empty(0)
    every = np.concatenate([rows.points.numeric[:, 0], tested])
    margin = MARGIN * float(np.ptp(every))
    grid = Points.of(np.linspace(every.min() - margin, every.max() + margin, CURVE_POINTS))
    model = judged.fit.model
    mean = model.predicted(grid, engine)[:, place]
    low = high = None
    if model.spread is not None:
        reach = model.reach(judged.interval) * model.deviations(grid, engine)[:, place]
        low, high = mean - reach, mean + reach

    def pairs(numeric: Any, targets: Any) -> Any:
        return np.column_stack([numeric * spec.spread + spec.centre, targets])

    truth = np.empty(0) if test is None else test.targets[:, place]
    return FitPicture(
        names=(spec.name, rows.names[place]),
        across=grid.numeric[:, 0] * spec.spread + spec.centre,
        mean=mean,
        low=low,
        high=high,
        band=f"{percent(judged.interval)} interval of new values",
        rows=pairs(rows.points.numeric[:, 0], rows.targets[:, place]),
        test_rows=pairs(tested, truth),
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
            predicted, rows = truth - fit.left_out[:, place], "rows left out, one at a time"
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
