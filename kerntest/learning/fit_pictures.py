"""Pictures of a regression, a search and components: fit, predictions against the truth, residuals, scores of a grid, scree."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from kerntest.kernels.base import Points
from kerntest.learning.scores import covered_share, root_mean_square
from kerntest.matrices.factor import as_points
from kerntest.report import panels
from kerntest.report.results.learning_record import RidgeGrid
from kerntest.report.summaries.learner_summary import kpca_sentence, ridge_sentence
from kerntest.report.summaries.words import number, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kerntest.data.table import Column
    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.machines.ridge_fit import RidgeFit
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.report.results.learning_record import GridSearch, KpcaResult, RidgeResult

# Points of a curve over a column, which goes beyond the rows by this share of their range to either side.
CURVE_POINTS, MARGIN = 400, 0.05
TARGETS_DRAWN = 3

# Mean, lower and upper end of the band at some points.
Curve: TypeAlias = "tuple[Array, Array | None, Array | None]"
Band: TypeAlias = "Callable[[Points], Curve]"


class Predicted(NamedTuple):
    """What was judged: a target, its values and those predicted, which rows they are, and intervals of a probability."""

    name: str
    truth: Array
    found: Array
    rows: str
    reach: Array | None = None
    interval: float = 0.0


def ridge_panels(
    result: RidgeResult, fit: RidgeFit, parts: Sequence[TrainingRows], judged: Sequence[Predicted], engine: Engine
) -> tuple[list[panels.Panel], str]:
    """Return a panel for each of the first targets, two for a single one, and the grid, and their title."""
    model, interval, drawn = fit.model, result.interval, list[panels.Panel]()
    remark = f"lambda {number(result.lambda_)}, {number(result.effective_df, 3)} effective degrees of freedom"

    def band(grid: Points, place: int) -> Curve:
        mean = model.scores(grid, engine)[:, place]
        if model.spread is None:
            return mean, None, None
        reach = model.reach(interval) * model.deviations(grid, engine)[:, place]
        return mean, mean - reach, mean + reach

    for place, own in enumerate(judged[:TARGETS_DRAWN]):
        curve = partial(band, place=place)
        drawn.append(
            fit_panel(own, parts, place, curve, band=f"{percent(interval)} interval of new values", remark=remark)
        )
    if len(judged) == 1:
        drawn.append(partial(draw_residuals, judged=judged[0]))
    return [*drawn, *grid_panels(result.grid)], f"{', '.join(result.targets)}: {ridge_sentence(result)}"


def fit_panel(own: Predicted, parts: Sequence[TrainingRows], place: int, curve: Band, **told: str) -> panels.Panel:
    """Return the function with its band over one column of numbers; of other rows predictions over the truth."""
    encoder = parts[0].encoder
    if encoder is None or len(encoder.columns) > 1 or not encoder.numeric:
        return partial(draw_truth, judged=own)
    return partial(draw_fit, parts=parts, place=place, curve=curve, **told)


def grid_panels(grid: GridSearch | RidgeGrid | None) -> list[panels.Panel]:
    """Return the panel of a grid of several cells."""
    return [partial(draw_search, grid=grid)] if grid is not None and len(grid.cells) > 1 else []


def draw_fit(axis: Any, parts: Sequence[TrainingRows], place: int, curve: Band, *, band: str, remark: str) -> None:
    """Draw the function of the one column there is, the band that holds new values, and the rows."""
    spec, name = cast("Encoder", parts[0].encoder).numeric[0], parts[0].names[place]
    scaled = [as_points(one.points).numeric[:, 0] for one in parts]
    every = np.concatenate(scaled)
    margin = MARGIN * float(np.ptp(every))
    grid = np.linspace(every.min() - margin, every.max() + margin, CURVE_POINTS)
    mean, low, high = curve(Points.of(grid))
    grid = grid * spec.spread + spec.centre
    if low is not None and high is not None:
        axis.fill_between(grid, low, high, color=panels.COLOUR_X, alpha=0.18, linewidth=0, label=band)
    kept = [panels.evenly(len(one)) for one in scaled]
    size = panels.point_size(sum(map(len, kept)))
    looks: list[dict[str, Any]] = [
        {"s": size, "color": panels.NEUTRAL, "alpha": 0.7, "linewidth": 0, "label": "training rows"},
        {"s": 1.3 * size, "facecolor": "none", "edgecolor": panels.COLOUR_Y, "linewidth": 0.8, "label": "test rows"},
    ]
    for one, across, shown, look in zip(parts, scaled, kept, looks, strict=False):
        axis.scatter(across[shown] * spec.spread + spec.centre, one.targets[shown, place], **look)
    axis.plot(grid, mean, color=panels.COLOUR_X, linewidth=1.8, label="fit")
    axis.set(xlim=(grid[0], grid[-1]), xlabel=panels.named(spec.name, 46), ylabel=panels.named(name, 46))
    if spec.kind == "date":
        panels.write_dates(axis.xaxis, grid[0], grid[-1])
    axis.legend(**panels.LEGEND)
    panels.write_title(axis, "Fit and rows", remark)


def draw_truth(axis: Any, judged: Predicted) -> None:
    """Draw predictions over the truth with their intervals, and the line where both agree."""
    name, whole, found, rows, reach, interval = judged
    shown = panels.evenly(len(whole))
    truth, predicted = whole[shown], found[shown]
    both = np.concatenate([truth, predicted])
    margin = 0.04 * (float(np.ptp(both)) or 1.0)
    ends = [float(both.min()) - margin, float(both.max()) + margin]
    axis.plot(ends, ends, color=panels.NEUTRAL, linewidth=0.9, linestyle="dotted")
    if reach is not None and len(shown) <= panels.POINTS_DRAWN // 4:
        style = {"fmt": "none", "ecolor": panels.COLOUR_X, "alpha": 0.25, "linewidth": 0.8}
        axis.errorbar(truth, predicted, yerr=reach[shown], **style)
    axis.scatter(truth, predicted, s=panels.point_size(len(shown)), color=panels.COLOUR_X, alpha=0.75, linewidth=0)
    axis.set(xlim=ends, xlabel=panels.named(name, 30), ylabel=f"predicted {panels.named(name, 30)}")
    held = "" if reach is None else f"{percent(interval)} intervals hold {percent(covered_share(whole - found, reach))}"
    panels.write_title(axis, f"Predicted and true: {panels.literal(rows)}", held)


def draw_residuals(axis: Any, judged: Predicted) -> None:
    """Draw residuals over predictions, with lines at 0 and at the root mean square to both sides."""
    name, truth, predicted, rows, *_ = judged
    residuals, shown = truth - predicted, panels.evenly(len(truth))
    rmse = root_mean_square(residuals)
    axis.axhline(0.0, color=panels.NEUTRAL, linewidth=0.9)
    for height in (-rmse, rmse):
        axis.axhline(height, color=panels.NEUTRAL, linewidth=0.9, linestyle="dotted")
    style = {"s": panels.point_size(len(shown)), "color": panels.COLOUR_X, "alpha": 0.75, "linewidth": 0}
    axis.scatter(predicted[shown], residuals[shown], **style)
    largest = 1.08 * float(np.abs(residuals[shown]).max(initial=rmse)) or 1.0
    short = panels.named(name, 30)
    axis.set(ylim=(-largest, largest), xlabel=f"predicted {short}", ylabel=f"{short} - predicted")
    panels.write_title(axis, f"Residuals: {panels.literal(rows)}", f"dotted: RMSE {number(rmse)}")


CRITERIA = {"loo": "Leave-one-out", "gcv": "GCV", "evidence": "Evidence"}


def draw_search(axis: Any, grid: GridSearch | RidgeGrid) -> None:
    """Draw the scores of a grid, dark where they are good, and frame the chosen cell."""
    if isinstance(grid, RidgeGrid):
        name, score, sign = "lambda", grid.score, -1.0
        heading = CRITERIA.get(grid.criterion, f"{grid.folds} folds")
        told = [(cell.lambda_, cell.score) for cell in grid.cells]
    else:
        name, score, sign, heading = "C", f"{grid.score} over {grid.folds} folds", 1.0, "Cross-validation"
        told = [(cell.C, cell.mean) for cell in grid.cells]
    multiples, widths = zip(*((cell.multiple, cell.bandwidth) for cell in grid.cells), strict=True)
    values, found = zip(*told, strict=True)
    columns, places = np.unique(multiples, return_inverse=True)
    up, lines = np.unique(values, return_inverse=True)
    scores = np.full((len(up), len(columns)), np.nan)
    scores[lines, places] = found
    known = None not in widths
    across = [dict(zip(multiples, widths, strict=True))[multiple] or multiple for multiple in columns.tolist()]
    goodness = sign * scores
    low, high = _shaded(goodness[np.isfinite(goodness)])
    ends = sorted((sign * low, sign * high))
    panels.draw_cells(axis, scores, ends[0], ends[1], score, reverse=sign < 0)
    if max(scores.shape) <= panels.CELLS_WITH_TEXT:
        panels.write_cells(axis, _score_texts(scores), (goodness - low) / (high - low), size=7.5)
    panels.label_cells(axis, [number(value, 3) for value in across], [number(value, 3) for value in up])
    row, column = lines[grid.chosen], places[grid.chosen]
    frame = {"fill": False, "edgecolor": panels.COLOUR_Y, "linewidth": 2.4, "clip_on": False}
    axis.add_patch(panels.matplotlib("patches").Rectangle((column - 0.5, row - 0.5), 1, 1, **frame))
    option = "bandwidth" if known else "bandwidth / median"
    axis.set(xlabel=option, ylabel=name)
    best = f"{option} = {number(across[column])}, {name} = {number(up[row])}"
    panels.write_title(axis, f"{heading}: {number(scores[row, column])} at the framed cell", best)


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


# From dark to light, and no hue that some cannot tell from another.
NUMBER_MAP = "viridis"
COMPONENTS_DRAWN, LABELLED = 50, 12
# The line is so near to a bar, in shares of its height.
CLOSE = 0.04
# Farther numbers have no place on an axis of matplotlib.
LARGEST_DRAWN = 1e307


def component_panels(result: KpcaResult, scores: Array, color: Column | None) -> tuple[list[panels.Panel], str]:
    """Return the rows in the first two components and the scree, and their title."""
    ratios = result.explained_variance_ratio
    rows = partial(draw_components, scores=scores, ratios=ratios[:2], color=color)
    scree = partial(draw_scree, ratios=ratios, explained=result.explained)
    return [rows, scree], f"{result.provenance.inputs[0].name}: {kpca_sentence(result)}"


def draw_components(axis: Any, scores: Array, ratios: Sequence[float], color: Column | None) -> None:
    """Draw the rows in the plane of the first two components, or on the only one, coloured by a column."""
    shown, flat = panels.evenly(len(scores)), scores.shape[1] == 1
    remark = panels.thinning(len(shown), len(scores))
    values = None if color is None else color.values
    if color is not None and not color.is_category:
        values = np.clip(color.values, -LARGEST_DRAWN, LARGEST_DRAWN)
    names = [f"pc{place} ({percent(ratio)} of the variance)" for place, ratio in enumerate(ratios, start=1)]
    rows, size = scores[shown], max(panels.point_size(len(shown)), 10.0)
    style = {"s": size, "edgecolor": "white", "linewidth": 0.015 * size}
    axis.set_xlabel(names[0])
    axis.set_ylabel("rows" if flat else names[1])
    if not flat:
        for line in (axis.axhline, axis.axvline):
            line(0.0, color=panels.NEUTRAL, linewidth=0.6, linestyle="dotted", zorder=0)
    if color is None or values is None or color.is_category:
        if flat:
            remark = ""
            codes = np.zeros(len(scores)) if values is None else values
            places = np.unique(codes).astype(int).tolist()
            parts = [scores[codes == place, 0] for place in places]
            look = {
                "stacked": True,
                "color": [panels.class_look(place)["color"] for place in places],
                "edgecolor": "white",
            }
            axis.hist(parts, bins=panels.bins(len(scores)), linewidth=0.3, **look)
        elif values is not None:
            panels.scatter_classes(axis, rows, values[shown], size)
        else:
            axis.scatter(*rows.T, color=panels.COLOUR_X, **style)
        if color is not None:
            marks = panels.class_marks(color.levels, **({"marker": "s"} if flat else {}))
            panels.legend_below(axis, marks, ncols=4, title=panels.named(color.name), title_fontsize=8.5)
    else:
        if flat:
            axis.scatter(rows[:, 0], values[shown], color=panels.COLOUR_X, **style)
            axis.set_ylabel(panels.named(color.name))
            of_values = axis.yaxis
        else:
            drawn = axis.scatter(*rows.T, c=values[shown], cmap=NUMBER_MAP, **style)
            of_values = panels.draw_bar(axis, drawn, color.name).ax.yaxis
        if color.kind == "date":
            panels.write_dates(of_values, values.min(), values.max())
    panels.write_title(axis, "Rows on the component" if flat else "Rows in the first two components", remark)


def draw_scree(axis: Any, ratios: Sequence[float], explained: float) -> None:
    """Draw the share of the variance that each component explains as bars, and their sum as a line."""
    shown = np.array(ratios[:COMPONENTS_DRAWN])
    places, sums = np.arange(1, len(shown) + 1), np.cumsum(shown)
    axis.bar(places, 100.0 * shown, width=0.7, color=panels.COLOUR_X, alpha=0.85, label="each")
    axis.plot(places, 100.0 * sums, color="black", linewidth=1.2, marker="o", markersize=3.5, label="together")
    for place, share, total in zip(places, shown, sums, strict=True) if len(shown) <= LABELLED else ():
        # Inside the bar where the line would be in the way.
        inside = total - share <= CLOSE * sums[-1]
        look = {"va": "top", "color": "white"} if inside else {"va": "bottom", "color": "black"}
        offset = {"xytext": (0, -5 if inside else 2), "textcoords": "offset points"}
        axis.annotate(f"{100 * share:.3g}", (place, 100.0 * share), ha="center", fontsize=7.5, **look, **offset)
    axis.set(xlim=(0.4, len(shown) + 0.6), ylim=(0, min(100.0, 118.0 * float(sums[-1]))))
    axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axis.set(xlabel="component", ylabel="% of the variance")
    axis.legend(loc="upper left", frameon=False, fontsize=8, ncols=2)
    more = "" if len(shown) == len(ratios) else f"the first {len(shown)} of {len(ratios)}"
    panels.write_title(axis, f"Scree: {percent(explained)} explained", more)
