"""Pictures of a regression and of a search: the fit over a column, predictions against the truth, residuals, scores of a grid."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kerntest.kernels.base import Points
from kerntest.learning.scores import covered_share, root_mean_square
from kerntest.matrices.factor import as_points
from kerntest.report.panels import (
    CELLS_WITH_TEXT,
    COLOUR_X,
    COLOUR_Y,
    LEGEND,
    NEUTRAL,
    POINTS_DRAWN,
    draw_cells,
    evenly,
    label_cells,
    literal,
    matplotlib,
    named,
    picture_bytes,
    point_size,
    side_by_side,
    write_cells,
    write_title,
)
from kerntest.report.summaries.learner_summary import left_out_rows, ridge_sentence
from kerntest.report.summaries.words import number, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.machines.ridge_fit import JudgedRidge
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.report.panels import Panel
    from kerntest.report.results.learning_record import RidgeResult

# Points of a curve over a column, which goes beyond the rows by this share of their range to either side.
CURVE_POINTS, MARGIN = 400, 0.05
TARGETS_DRAWN = 3

# Mean, lower and upper end of the band at some points.
Curve: TypeAlias = "tuple[Array, Array | None, Array | None]"


def ridge_picture(result: RidgeResult, judged: JudgedRidge, kind: str, engine: Engine) -> bytes:
    """Return a picture as "png", "svg" or "pdf": one panel for each of the first targets, two for a single one, and the grid."""
    fit, rows, reach, seen = judged.fit, judged.rows, judged.reach, "training rows"
    truth, predicted = rows.targets, fit.fitted
    if judged.test is not None and judged.predicted is not None:
        truth, predicted, seen = judged.test.targets, judged.predicted, "test rows"
    elif fit.left_out is not None and fit.left_out_spread is not None:
        predicted, seen = truth - fit.left_out, left_out_rows(together=rows.clusters is not None)
        reach = fit.model.reach(judged.interval) * fit.left_out_spread
    panels: list[Panel] = []
    for place, name in enumerate(rows.names[:TARGETS_DRAWN]):
        own = (name, truth[:, place], predicted[:, place], seen)
        half = None if reach is None else reach[:, place]
        if over_one_column(rows.encoder):
            panels.append(_ridge_fit(judged, place, engine))
        else:
            panels.append(partial(draw_truth, judged=own, reach=half, interval=judged.interval))
        if len(rows.names) == 1:
            panels.append(partial(draw_residuals, judged=own))
    if (grid := result.grid) is not None and len(grid.cells) > 1:
        headings = {"loo": "Leave-one-out", "gcv": "GCV", "cv": f"{grid.folds} folds", "evidence": "Evidence"}
        cells = [(cell.multiple, cell.bandwidth, cell.lambda_, cell.score) for cell in grid.cells]
        told = {"name": "lambda", "score": grid.score, "heading": headings[grid.criterion]}
        panels.append(partial(draw_search, cells=cells, chosen=grid.chosen, smaller_is_better=True, **told))
    return picture_bytes(side_by_side(panels, f"{', '.join(result.targets)}: {ridge_sentence(result)}"), kind)


def _ridge_fit(judged: JudgedRidge, place: int, engine: Engine) -> Panel:
    """Return the fit over the one column there is, with the intervals of new values."""
    rows, test, model = judged.rows, judged.test, judged.fit.model

    def curve(grid: Points) -> Curve:
        mean = model.predicted(grid, engine)[:, place]
        if model.spread is None:
            return mean, None, None
        reach = model.reach(judged.interval) * model.deviations(grid, engine)[:, place]
        return mean, mean - reach, mean + reach

    band = f"{percent(judged.interval)} interval of new values"
    remark = f"lambda {number(model.lambda_)}, {number(judged.fit.effective_df, 3)} effective degrees of freedom"
    return partial(draw_fit, rows=rows, test=test, place=place, curve=curve, band=band, remark=remark)


def over_one_column(encoder: Encoder | None) -> bool:
    """Say whether rows have one column, of numbers."""
    return encoder is not None and len(encoder.columns) == 1 and len(encoder.numeric_names) == 1


def draw_fit(
    axis: Any,
    rows: TrainingRows,
    test: TrainingRows | None,
    place: int,
    curve: Callable[[Points], Curve],
    *,
    band: str,
    remark: str,
) -> None:
    """Draw the function of the one column there is, the band that holds new values, and the rows."""
    if rows.encoder is None:
        message = "a fit is drawn over a column"
        raise TypeError(message)
    spec = rows.encoder.numeric[0]
    parts = [one for one in (rows, test) if one is not None]
    scaled = [as_points(one.points).numeric[:, 0] for one in parts]
    every = np.concatenate(scaled)
    margin = MARGIN * float(np.ptp(every))
    grid = np.linspace(every.min() - margin, every.max() + margin, CURVE_POINTS)
    mean, low, high = curve(Points.of(grid))
    grid = grid * spec.spread + spec.centre
    if low is not None and high is not None:
        axis.fill_between(grid, low, high, color=COLOUR_X, alpha=0.18, linewidth=0, label=band)
    kept = [evenly(len(one)) for one in scaled]
    size = point_size(sum(map(len, kept)))
    looks: list[dict[str, Any]] = [
        {"s": size, "color": NEUTRAL, "alpha": 0.7, "linewidth": 0, "label": "training rows"},
        {"s": 1.3 * size, "facecolor": "none", "edgecolor": COLOUR_Y, "linewidth": 0.8, "label": "test rows"},
    ]
    for one, across, shown, look in zip(parts, scaled, kept, looks, strict=False):
        axis.scatter(across[shown] * spec.spread + spec.centre, one.targets[shown, place], **look)
    axis.plot(grid, mean, color=COLOUR_X, linewidth=1.8, label="fit")
    axis.set(xlim=(grid[0], grid[-1]), xlabel=named(spec.name, 46), ylabel=named(rows.names[place], 46))
    axis.legend(**LEGEND)
    write_title(axis, "Fit and rows", remark)


# What was judged: the target, its values and those predicted, and which rows they are.
Predicted: TypeAlias = "tuple[str, Array, Array, str]"


def draw_truth(axis: Any, judged: Predicted, reach: Array | None = None, interval: float = 0.0) -> None:
    """Draw predictions over the truth with their intervals, and the line where both agree."""
    name, whole, found, rows = judged
    shown = evenly(len(whole))
    truth, predicted = whole[shown], found[shown]
    low, high = float(min(truth.min(), predicted.min())), float(max(truth.max(), predicted.max()))
    margin = 0.04 * (high - low or 1.0)
    ends = [low - margin, high + margin]
    axis.plot(ends, ends, color=NEUTRAL, linewidth=0.9, linestyle="dotted")
    if reach is not None and len(shown) <= POINTS_DRAWN // 4:
        style = {"fmt": "none", "ecolor": COLOUR_X, "alpha": 0.25, "linewidth": 0.8}
        axis.errorbar(truth, predicted, yerr=reach[shown], **style)
    axis.scatter(truth, predicted, s=point_size(len(shown)), color=COLOUR_X, alpha=0.75, linewidth=0)
    axis.set(xlim=ends, xlabel=named(name, 30), ylabel=f"predicted {named(name, 30)}")
    held = "" if reach is None else f"{percent(interval)} intervals hold {percent(covered_share(whole - found, reach))}"
    write_title(axis, f"Predicted and true: {literal(rows)}", held)


def draw_residuals(axis: Any, judged: Predicted) -> None:
    """Draw residuals over predictions, with lines at 0 and at the root mean square to both sides."""
    name, truth, predicted, rows = judged
    residuals, shown = truth - predicted, evenly(len(truth))
    rmse = root_mean_square(residuals)
    axis.axhline(0.0, color=NEUTRAL, linewidth=0.9)
    for side in (-1.0, 1.0):
        axis.axhline(side * rmse, color=NEUTRAL, linewidth=0.9, linestyle="dotted")
    style = {"s": point_size(len(shown)), "color": COLOUR_X, "alpha": 0.75, "linewidth": 0}
    axis.scatter(predicted[shown], residuals[shown], **style)
    largest = 1.08 * float(np.abs(residuals[shown]).max(initial=rmse)) or 1.0
    axis.set(ylim=(-largest, largest), xlabel=f"predicted {named(name, 30)}", ylabel=f"{named(name, 30)} - predicted")
    write_title(axis, f"Residuals: {literal(rows)}", f"dotted: RMSE {number(rmse)}")


def draw_search(
    axis: Any,
    cells: Sequence[tuple[float, float | None, float, float]],
    chosen: int,
    *,
    name: str,
    score: str,
    heading: str = "Cross-validation",
    smaller_is_better: bool = False,
) -> None:
    """Draw the scores of a grid, dark where they are good, and frame the chosen cell.

    A cell is its multiple of the median bandwidth, its bandwidth if it has one, the value of the option up, and its score.
    """
    multiples, up = sorted({cell[0] for cell in cells}), sorted({cell[2] for cell in cells})
    places = [(up.index(value), multiples.index(multiple)) for multiple, _, value, _ in cells]
    scores = np.full((len(up), len(multiples)), np.nan)
    for place, cell in zip(places, cells, strict=True):
        scores[place] = cell[3]
    widths = {multiple: width for multiple, width, _, _ in cells}
    known = all(width is not None for width in widths.values())
    across = [widths[multiple] or multiple for multiple in multiples]
    goodness = -scores if smaller_is_better else scores
    low, high = _shaded(goodness[np.isfinite(goodness)])
    draw_cells(axis, scores, *((-high, -low) if smaller_is_better else (low, high)), score, reverse=smaller_is_better)
    if max(scores.shape) <= CELLS_WITH_TEXT:
        write_cells(axis, _score_texts(scores), (goodness - low) / (high - low), size=7.5)
    label_cells(axis, [number(value, 3) for value in across], [number(value, 3) for value in up])
    row, column = places[chosen]
    frame = {"fill": False, "edgecolor": COLOUR_Y, "linewidth": 2.4, "clip_on": False}
    axis.add_patch(matplotlib("patches").Rectangle((column - 0.5, row - 0.5), 1, 1, **frame))
    option = "bandwidth" if known else "bandwidth / median"
    axis.set(xlabel=option, ylabel=name)
    best = f"{option} = {number(across[column])}, {name} = {number(up[row])}"
    write_title(axis, f"{heading}: {number(scores[row, column])} at the framed cell", best)


def _shaded(goodness: Array) -> tuple[float, float]:
    """Return between which values shades differ: the poor ones are all pale, so that the good ones can be compared."""
    if not len(goodness):
        return 0.0, 1.0
    worst, middle, best = (float(value) for value in np.quantile(goodness, [0.0, 0.5, 1.0]))
    low = max(worst, best - 3.0 * (best - middle)) if best > middle else worst
    return (low, best) if low < best else (best - 0.5, best + 0.5)


def _score_texts(scores: Array) -> list[list[str]]:
    """Return scores with as many decimals as give the largest three digits; nothing where there is none."""
    largest = float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))
    decimals = 2 - int(np.floor(np.log10(largest))) if largest > 0 else 0

    def text(value: float) -> str:
        if not np.isfinite(value):
            return ""
        return f"{value:.{max(decimals, 0)}f}" if -2 <= decimals <= 5 else number(value, 3)

    return [[text(value) for value in line] for line in scores]
