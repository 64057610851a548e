"""Pictures of a regression, a search, components and sources: fit, truth, residuals, scores of a grid, scree, mixtures."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from kerntest.data.column_types import as_text
from kerntest.kernels.base import Points
from kerntest.learning.intervals import covered_share
from kerntest.learning.scores import root_mean_square
from kerntest.matrices.factor import as_points
from kerntest.report import panels
from kerntest.report.results.learning_record import GridSearch, RidgeGrid
from kerntest.report.summaries.component_summary import cca_sentence, kpca_sentence, unmix_sentence
from kerntest.report.summaries.learner_summary import ridge_sentence
from kerntest.report.summaries.words import number, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column
    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.machines.ridge_fit import RidgeFit
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.report.results.component_record import CcaResult, KpcaResult, UnmixResult
    from kerntest.report.results.learning_record import Importance, RidgeResult

# Points of a curve over a column, which goes beyond the rows by this share of their range to either side.
CURVE_POINTS, MARGIN = 400, 0.05
# So far from the rows, in ranges of their target, a fit over one column is drawn.
FARTHEST = 0.5
TARGETS_DRAWN, COLUMNS_DRAWN, BARS_OF_ROOM = 3, 20, 6

# What is predicted at some points, and by how much its band reaches to either side, if there is one.
Curve: TypeAlias = "Callable[[Points], tuple[Array, Array | float | None]]"


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

    def curve(grid: Points, place: int) -> tuple[Array, Array | None]:
        mean = model.scores(grid, engine)[:, place]
        if model.spread is None:
            return mean, None
        return mean, model.reach(interval) * model.deviations(grid, engine)[:, place]

    band = f"{percent(interval)} interval of new values"
    for place, own in enumerate(judged[:TARGETS_DRAWN]):
        drawn.append(fit_panel(own, parts, place, partial(curve, place=place), band=band, remark=remark))
    if len(judged) == 1:
        drawn.append(partial(draw_residuals, judged=judged[0]))
    return [*drawn, *grid_panels(result.grid, result.cluster)], f"{', '.join(result.targets)}: {ridge_sentence(result)}"


def fit_panel(own: Predicted, parts: Sequence[TrainingRows], place: int, curve: Curve, **told: str) -> panels.Panel:
    """Return the function with its band over one column of numbers; of other rows predictions over the truth."""
    encoder = parts[0].encoder
    if encoder is None or len(encoder.columns) > 1 or not encoder.numeric:
        return partial(draw_truth, judged=own)
    return partial(draw_fit, parts=parts, place=place, curve=curve, **told)


def grid_panels(grid: GridSearch | RidgeGrid | None, cluster: str | None = None) -> list[panels.Panel]:
    """Return the panel of a grid of several cells; where there are clusters, one of them is left out at a time."""
    return [partial(draw_search, grid=grid, cluster=cluster)] if grid is not None and len(grid.cells) > 1 else []


def importance_panels(importance: Importance | None) -> list[panels.Panel]:
    """Return the panel of what several columns are worth."""
    if importance is None or len(importance.columns) < 2 or importance.none:
        return []
    return [partial(draw_importance, importance=importance)]


def draw_importance(axis: Any, importance: Importance) -> None:
    """Draw what the columns are worth as bars, the most on top, with two standard errors to each side."""
    shown = importance.columns[:COLUMNS_DRAWN][::-1]
    unit = 1.0 if importance.score == "RMSE" else 100.0
    sizes, errors = (
        unit * np.array([getattr(one, name) for one in shown], dtype=np.float64) for name in ("mean", "standard_error")
    )
    known = bool(np.isfinite(errors).all())
    style: dict[str, Any] = {
        "color": panels.COLOUR_X,
        "alpha": 0.85,
        "ecolor": "black",
        "capsize": 2.5,
        "error_kw": {"linewidth": 1.0},
    }
    panels.draw_bars(
        axis, [panels.named(one.name, 24) for one in shown], sizes, xerr=2.0 * errors if known else None, **style
    )
    # Few bars are no wider than several.
    axis.set_ylim(min(-0.6, len(shown) - BARS_OF_ROOM), len(shown) - 0.4)
    axis.axvline(0.0, color="black", linewidth=0.8)
    axis.set(xlabel=f"% of {importance.score} lost" if unit > 1 else "rise of the RMSE")
    more = "" if len(shown) == len(importance.columns) else f"the first {len(shown)} of {len(importance.columns):,}, "
    told = f"{more}bars of error: 2 standard errors" if known else more.removesuffix(", ")
    panels.write_title(axis, "Columns shuffled, one at a time", told)


def draw_fit(axis: Any, parts: Sequence[TrainingRows], place: int, curve: Curve, *, band: str, remark: str) -> None:
    """Draw the function of the one column there is, the band that holds new values, and the rows."""
    spec, name = cast("Encoder", parts[0].encoder).numeric[0], parts[0].names[place]
    scaled = [as_points(one.points).numeric[:, 0] for one in parts]
    every = np.concatenate(scaled)
    margin = MARGIN * float(np.ptp(every))
    grid = np.linspace(every.min() - margin, every.max() + margin, CURVE_POINTS)
    mean, half = curve(Points.of(grid))
    grid = grid * spec.spread + spec.centre
    if half is not None:
        axis.fill_between(grid, mean - half, mean + half, color=panels.COLOUR_X, alpha=0.18, linewidth=0, label=band)
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
    # A fit that runs away from the rows leaves the picture.
    truth, (bottom, top) = np.concatenate([one.targets[:, place] for one in parts]), axis.get_ylim()
    beyond = FARTHEST * float(np.ptp(truth))
    axis.set(ylim=(max(bottom, float(truth.min()) - beyond), min(top, float(truth.max()) + beyond)))
    if spec.kind == "date":
        panels.write_dates(axis.xaxis, grid[0], grid[-1])
    axis.legend(**panels.LEGEND)
    panels.write_title(axis, "Fit and rows", remark)


def draw_truth(axis: Any, judged: Predicted) -> None:
    """Draw predictions over the truth with their intervals, and the line where both agree."""
    name, truth, found, rows, reach, interval = judged
    low, high = float(min(truth.min(), found.min())), float(max(truth.max(), found.max()))
    margin = 0.04 * (high - low or 1.0)
    ends, shown = [low - margin, high + margin], panels.evenly(len(truth))
    axis.plot(ends, ends, color=panels.NEUTRAL, linewidth=0.9, linestyle="dotted")
    if reach is not None and len(shown) <= panels.POINTS_DRAWN // 4:
        style = {"fmt": "none", "ecolor": panels.COLOUR_X, "alpha": 0.25, "linewidth": 0.8}
        axis.errorbar(truth[shown], found[shown], yerr=reach[shown], **style)
    _scatter(axis, truth[shown], found[shown])
    axis.set(xlim=ends, xlabel=panels.named(name, 30), ylabel=f"predicted {panels.named(name, 30)}")
    held = "" if reach is None else f"{percent(interval)} intervals hold {percent(covered_share(truth - found, reach))}"
    panels.write_title(axis, f"Predicted and true: {panels.literal(rows)}", held)


def draw_residuals(axis: Any, judged: Predicted) -> None:
    """Draw residuals over predictions, with lines at 0 and at the root mean square to both sides."""
    residuals, shown = judged.truth - judged.found, panels.evenly(len(judged.truth))
    rmse = root_mean_square(residuals)
    for height in (0.0, -rmse, rmse):
        axis.axhline(height, color=panels.NEUTRAL, linewidth=0.9, linestyle="dotted" if height else "solid")
    _scatter(axis, judged.found[shown], residuals[shown])
    largest = 1.08 * float(np.abs(residuals[shown]).max(initial=rmse)) or 1.0
    short = panels.named(judged.name, 30)
    axis.set(ylim=(-largest, largest), xlabel=f"predicted {short}", ylabel=f"{short} - predicted")
    panels.write_title(axis, f"Residuals: {panels.literal(judged.rows)}", f"dotted: RMSE {number(rmse)}")


def _scatter(axis: Any, across: Array, up: Array) -> None:
    axis.scatter(across, up, s=panels.point_size(len(up)), color=panels.COLOUR_X, alpha=0.75, linewidth=0)


CRITERIA = {"loo": "Leave-one-out", "gcv": "GCV", "evidence": "Evidence"}


def draw_search(axis: Any, grid: GridSearch | RidgeGrid, cluster: str | None = None) -> None:
    """Draw the scores of a grid, dark where they are good, those given up in brackets, and frame the chosen cell.

    Negative errors show as errors, as they do in the text.
    """
    called = grid.score.removeprefix("negative ")
    # The score of a regression's lambda is an error as it is.
    turned = -1.0 if isinstance(grid, GridSearch) and called != grid.score else 1.0
    sign = turned * grid.SIGN
    heading, score = "Cross-validation", f"{called} over {grid.folds} folds"
    if isinstance(grid, RidgeGrid):
        heading, score = CRITERIA.get(grid.criterion, f"{grid.folds} folds"), grid.score
        heading = heading if cluster is None else heading.replace("-one-", "-one-cluster-")
    (option, columns), name, best = grid.columns, grid.OPTION.rstrip("_"), grid.best
    scores = turned * np.array([[getattr(cell, grid.SCORE) for cell in cells] for cells in columns]).T
    goodness = sign * scores
    worst, middle, highest = (float(value) for value in np.quantile(goodness, [0.0, 0.5, 1.0]))
    # The poor ones are all pale, so that the good ones can be compared.
    shades = min(3.0 * (highest - middle) or math.inf, highest - worst or 1.0)
    low, high = sorted((sign * highest, sign * (highest - shades)))
    panels.draw_cells(axis, scores, low, high, score, reverse=sign < 0)
    if max(scores.shape) <= panels.CELLS_WITH_TEXT:
        texts = [[number(value, 3) for value in line] for line in scores.tolist()]
        if isinstance(grid, GridSearch):
            for place, cell in enumerate(grid.cells):
                column, row = divmod(place, len(scores))
                if cell.folds < grid.folds:
                    texts[row][column] = f"({texts[row][column]})"
        panels.write_cells(axis, texts, 1.0 - (highest - goodness) / shades, size=7.5)
    across = [number(cells[0].bandwidth or cells[0].multiple, 3) for cells in columns]
    panels.label_cells(axis, across, [number(getattr(cell, grid.OPTION), 3) for cell in columns[0]])
    column, row = divmod(grid.chosen, len(scores))
    frame = {"fill": False, "edgecolor": panels.COLOUR_Y, "linewidth": 2.4, "clip_on": False}
    axis.add_patch(panels.matplotlib("patches").Rectangle((column - 0.5, row - 0.5), 1, 1, **frame))
    axis.set(xlabel=option, ylabel=name)
    chosen = f"{option} = {number(best.bandwidth or best.multiple)}, {name} = {number(getattr(best, grid.OPTION))}"
    panels.write_title(axis, f"{heading}: {number(scores[row, column])} at the framed cell", chosen)


# From dark to light, and no hue that some cannot tell from another.
NUMBER_MAP = "viridis"
COMPONENTS_DRAWN, LABELLED = 50, 12
# Farther numbers have no place on an axis of matplotlib.
LARGEST_DRAWN = 1e307


def component_panels(result: KpcaResult, scores: Array, color: Column | None) -> tuple[list[panels.Panel], str]:
    """Return the rows in the first two components and the scree, and their title."""
    ratios = result.explained_variance_ratio
    rows = partial(draw_components, scores=scores, ratios=ratios[:2], color=color)
    scree = partial(draw_scree, ratios=ratios, explained=result.explained)
    return [rows, scree], f"{result.provenance.inputs[0].name}: {kpca_sentence(result)}"


def draw_components(axis: Any, scores: Array, ratios: Sequence[float], color: Column | None) -> None:
    """Draw the rows in the plane of the first two components, or in their order on the only one, coloured by a column."""
    shown, alone = panels.evenly(len(scores)), scores.shape[1] == 1
    rows = np.column_stack([scores, np.arange(1, len(scores) + 1)])[shown, :2]
    names = [f"pc{place} ({percent(ratio)} of the variance)" for place, ratio in enumerate(ratios, start=1)]
    axis.set(xlabel=names[0], ylabel="row" if alone else names[1])
    for line in (axis.axvline,) if alone else (axis.axvline, axis.axhline):
        line(0.0, color=panels.NEUTRAL, linewidth=0.6, linestyle="dotted", zorder=0)
    _coloured(axis, rows, shown, color)
    heading = "Rows on the component" if alone else "Rows in the first two components"
    panels.write_title(axis, heading, panels.thinning(len(shown), len(scores)))


def _numbers_classes(column: Column) -> bool:
    """Say whether numbers are those of classes, as 0 and 1 or digits: whole ones, no more than a legend has room for."""
    present = np.unique(column.values[~column.missing])
    whole = column.kind == "number" and bool(np.all(present == np.floor(present)))
    return whole and len(present) <= panels.CLASSES_IN_LEGEND


def _coloured(axis: Any, rows: Array, shown: NDArray[np.intp], color: Column | None) -> None:
    """Draw some rows as points, coloured by a column."""
    size = max(panels.point_size(len(shown)), 10.0)
    style = {"s": size, "edgecolor": "white", "linewidth": 0.015 * size}
    if color is not None and _numbers_classes(color):
        color = as_text(color)
    if color is None:
        axis.scatter(*rows.T, color=panels.COLOUR_X, **style)
        return
    known, marks = ~color.missing[shown], list[Any]()
    if not known.all():
        grey = {"color": panels.NEUTRAL, "marker": "o"}
        axis.scatter(*rows[~known].T, **style, **grey)
        marks = [panels.mark("missing", **grey)]
    rows, shown = rows[known], shown[known]
    if color.is_category:
        panels.scatter_classes(axis, rows, color.values[shown], size)
        marks = [*panels.class_marks(color.levels), *marks]
        panels.legend_below(axis, marks, ncols=4, title=panels.named(color.name), title_fontsize=8.5)
        return
    if marks:
        panels.legend_below(axis, marks)
    if len(rows):
        values = np.clip(color.values, -LARGEST_DRAWN, LARGEST_DRAWN)[shown]
        bar = panels.draw_bar(axis, axis.scatter(*rows.T, c=values, cmap=NUMBER_MAP, **style), color.name)
        if color.kind == "date":
            panels.write_dates(bar.ax.yaxis, values.min(), values.max())


def draw_scree(axis: Any, ratios: Sequence[float], explained: float) -> None:
    """Draw the share of the variance that each component explains as bars, and their sum as a line."""
    shown = 100.0 * np.array(ratios[:COMPONENTS_DRAWN])
    places, sums = np.arange(1, len(shown) + 1), np.cumsum(shown)
    bars = axis.bar(places, shown, width=0.7, color=panels.COLOUR_X, alpha=0.85, label="each")
    axis.plot(places, sums, color="black", linewidth=1.2, marker="o", markersize=3.5, label="together")
    if len(shown) <= LABELLED:
        axis.bar_label(bars, fmt="%.3g", padding=4, fontsize=7.5)
    axis.set(xlim=(0.4, len(shown) + 0.6), ylim=(0, 1.18 * float(sums[-1])))
    axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axis.set(xlabel="component", ylabel="% of the variance")
    axis.legend(loc="upper left", frameon=False, fontsize=8, ncols=2)
    more = "" if len(shown) == len(ratios) else f"the first {len(shown)} of {len(ratios)}"
    panels.write_title(axis, f"Scree: {percent(explained)} explained", more)


SOURCES_DRAWN = 12


def source_panels(
    result: UnmixResult, columns: Array, sources: Array, matrices: tuple[Array, Array], color: Column | None
) -> tuple[list[panels.Panel], str]:
    """Return the two columns that depend most on each other, the first two sources, the mixing matrix, and their title."""
    names = [list(result.columns), [one.name for one in result.sources]]
    drawn: list[panels.Panel] = []
    most_dependent = max(combinations(range(len(matrices[0])), 2), key=lambda pair: float(matrices[0][pair]))
    shown = (
        ("Columns that depend most", columns, most_dependent, matrices[0], names[0]),
        ("Sources that make most of the variance", sources, (0, 1), matrices[1], names[1]),
    )
    for heading, values, two, found, called in shown:
        told = f"HSIC {number(float(found[two]), 2)}"
        own = [called[one] for one in two]
        drawn.append(partial(draw_pair, rows=values[:, two], names=own, heading=heading, remark=told, color=color))
    drawn.append(partial(draw_mixing, result=result))
    return drawn, f"{result.provenance.inputs[0].name}: {unmix_sentence(result)}"


def draw_pair(axis: Any, rows: Array, *, names: Sequence[str], heading: str, remark: str, color: Column | None) -> None:
    """Draw rows in the plane of two columns, in standard deviations."""
    shown = panels.evenly(len(rows))
    _coloured(axis, rows[shown], shown, color)
    axis.set(xlabel=f"{panels.named(names[0], 30)} (sd)", ylabel=f"{panels.named(names[1], 30)} (sd)")
    panels.write_title(axis, heading, remark, panels.thinning(len(shown), len(rows)))


def draw_mixing(axis: Any, result: UnmixResult) -> None:
    """Draw the correlations of the columns with the sources as cells."""
    sources = result.sources[:SOURCES_DRAWN]
    columns = result.associations[: 2 * SOURCES_DRAWN]
    values = np.array([[one.values[place] or 0.0 for place in range(len(sources))] for one in columns])
    panels.draw_cells(axis, np.abs(values), 0.0, 1.0, "correlation, without its sign")
    if max(values.shape) <= panels.CELLS_WITH_TEXT:
        panels.write_cells(
            axis, [[f"{value:.2f}" for value in line] for line in values.tolist()], np.abs(values), size=7.5
        )
    panels.label_cells(axis, [one.name for one in sources], [panels.named(one.column, 24) for one in columns])
    axis.invert_yaxis()
    left = [f"{len(columns)} of {len(result.columns)} columns"] * (len(columns) < len(result.columns))
    left += [f"{len(sources)} of {result.components} sources"] * (len(sources) < result.components)
    panels.write_title(axis, "What the sources make of the columns", ", ".join(left))


def pair_panels(result: CcaResult, scores: Array) -> tuple[list[panels.Panel], str]:
    """Return the first pair on rows held out, the correlations of all pairs, those of each lambda, and their title."""
    held = "test rows" if result.n_test else "rows left out" if result.folds else "training rows"
    drawn: list[panels.Panel] = [
        partial(draw_variates, scores=scores, rows=held),
        partial(draw_correlations, result=result),
    ]
    if result.lambdas:
        drawn.append(partial(draw_lambdas, result=result))
    return drawn, f"{result.provenance.inputs[0].name}: {cca_sentence(result)}"


def draw_variates(axis: Any, scores: Array, rows: str) -> None:
    """Draw rows in the plane of the functions of the first pair."""
    shown = panels.evenly(len(scores))
    _coloured(axis, scores[shown], shown, None)
    axis.set(xlabel="x1, a function of x", ylabel="y1, a function of y")
    panels.write_title(axis, f"The first pair on {rows}", panels.thinning(len(shown), len(scores)))


def draw_correlations(axis: Any, result: CcaResult) -> None:
    """Draw the correlation of each pair on the training rows, left out and on test rows."""
    pairs = result.pairs[:COMPONENTS_DRAWN]
    places = np.arange(1, len(pairs) + 1)
    kinds = (
        ("train", "training rows", panels.NEUTRAL),
        ("left_out", "left out", panels.COLOUR_X),
        ("test", "test rows", panels.COLOUR_Y),
    )
    marks: list[Any] = []
    for name, label, colour in kinds:
        values = [getattr(pair, name) for pair in pairs]
        if all(value is not None for value in values):
            marks += axis.plot(places, values, color=colour, marker="o", markersize=5, linewidth=1.2, label=label)
    axis.axhline(0.0, color=panels.NEUTRAL, linewidth=0.6, linestyle="dotted", zorder=0)
    axis.set(xlim=(0.6, len(pairs) + 0.4), xlabel="pair", ylabel="correlation")
    axis.set_ylim(top=1.05)
    axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    panels.legend_below(axis, marks, ncols=3)
    panels.write_title(axis, "Correlations of the pairs")


def draw_lambdas(axis: Any, result: CcaResult) -> None:
    """Draw the correlation of the first pair on rows left out against lambda."""
    cells = np.array([(one.lambda_, one.correlation) for one in result.lambdas])
    axis.semilogx(*cells.T, color=panels.COLOUR_X, marker="o", markersize=3.5, linewidth=1.2)
    axis.axvline(result.lambda_, color="black", linewidth=0.8, linestyle="dashed")
    axis.set(xlabel="lambda, a share of the variance of each side", ylabel="correlation of the first pair, left out")
    panels.write_title(axis, f"Lambda {number(result.lambda_)} is chosen", f"{result.folds} folds")
