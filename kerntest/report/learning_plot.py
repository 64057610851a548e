"""Pictures of a learner: decision regions, ROC curves, confusion, cross-validation. Needs matplotlib, the extra `plot`."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kerntest.report.component_plot import ComponentPicture, ScreePicture, draw_components, draw_scree
from kerntest.report.decision_plot import DecisionPicture, class_colour, draw_decision, evenly, write_title
from kerntest.report.heatmap import COLOUR_MAP, HATCHED, PALEST, abridged
from kerntest.report.plot import COLOUR_Y, NEUTRAL, figure_class, literal
from kerntest.report.regression_plot import (
    FitPicture,
    ResidualPicture,
    TruthPicture,
    draw_fit,
    draw_residuals,
    draw_truth,
)
from kerntest.report.score_plot import ScorePicture, draw_scores
from kerntest.report.summaries.words import number, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

PANEL_WIDTH, PANEL_HEIGHT, POINTS_PER_INCH = 5.4, 4.6, 72
CURVES_DRAWN, CURVE_POINTS = 8, 2000
# Up to so many cells a side, there is room for what they say.
CELLS_WITH_SHARES, CELLS_WITH_TEXT, CELLS_PARTED, LABELS_DRAWN = 6, 12, 20, 30
# On cells darker than this, white has more contrast.
WHITE_ABOVE = 0.68


@dataclass(frozen=True, slots=True, eq=False)
class RocCurve:
    """One ROC curve.

    Parameters
    ----------
    name : str
        The class whose rows are the positive ones.
    place : int
        Its place among the classes, from which it has its colour.
    false_positive_rate, true_positive_rate : ndarray, shape (t,)
        Ascending, from 0 to 1.
    area : float
        Under the curve.
    """

    name: str
    place: int
    false_positive_rate: NDArray[np.float64]
    true_positive_rate: NDArray[np.float64]
    area: float


@dataclass(frozen=True, slots=True, eq=False)
class RocPicture:
    """ROC curves: one for two classes, or one for each class against all others.

    Parameters
    ----------
    curves : tuple of RocCurve
        The first eight are drawn.
    rows : str
        Which rows were judged, such as "test rows".
    """

    curves: tuple[RocCurve, ...]
    rows: str = "rows"


@dataclass(frozen=True, slots=True, eq=False)
class ConfusionPicture:
    """Rows by their true and their predicted class.

    Parameters
    ----------
    counts : ndarray of int, shape (c, c)
        True classes down, predicted classes across.
    classes : tuple of str
    rows : str
        Which rows were judged, such as "test rows".
    """

    counts: NDArray[np.integer]
    classes: tuple[str, ...]
    rows: str = "rows"


@dataclass(frozen=True, slots=True, eq=False)
class SearchPicture:
    """The scores of cross-validation over two options.

    Parameters
    ----------
    names : (str, str)
        Of the option across and of the one up, such as "bandwidth" and "C".
    across, up : ndarray, shape (a,) and (u,)
        The values that were tried, ascending.
    scores : ndarray, shape (u, a)
        NaN where a fit failed.
    chosen : (int, int)
        Row and column of the cell that was chosen.
    score : str
        What the scores are.
    smaller_is_better : bool
        Whether they are errors.
    heading : str
        How they were found.
    """

    names: tuple[str, str]
    across: NDArray[np.float64]
    up: NDArray[np.float64]
    scores: NDArray[np.float64]
    chosen: tuple[int, int]
    score: str
    smaller_is_better: bool = False
    heading: str = "Cross-validation"


LearningPicture: TypeAlias = (
    DecisionPicture
    | RocPicture
    | ConfusionPicture
    | SearchPicture
    | FitPicture
    | TruthPicture
    | ResidualPicture
    | ScorePicture
    | ComponentPicture
    | ScreePicture
)


def learning_figure(pictures: Sequence[LearningPicture], title: str) -> Any:
    """Return a matplotlib figure with one panel for each picture, at most three side by side.

    Parameters
    ----------
    pictures : sequence of pictures, see `LearningPicture`
        At least one.
    title : str

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    columns = len(pictures) if len(pictures) <= 3 else 2
    lines = -(-len(pictures) // columns)
    made = figure_class()(figsize=(PANEL_WIDTH * columns, PANEL_HEIGHT * lines + 0.4), layout="constrained")
    made.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
    for place, picture in enumerate(pictures):
        _DRAWN_BY[type(picture)](made.add_subplot(lines, columns, place + 1), picture)
    width = int(made.get_figwidth() * POINTS_PER_INCH / (0.62 * 11))
    wrapped = textwrap.wrap(visible(title), width, max_lines=4, placeholder=" …")
    made.suptitle("\n".join(literal(line) for line in wrapped), fontsize=11)
    return made


def draw_roc(axis: Any, picture: RocPicture) -> None:
    """Draw ROC curves with their areas, and the diagonal of scores that know nothing."""
    shown = picture.curves[:CURVES_DRAWN]
    axis.plot([0, 1], [0, 1], color=NEUTRAL, linewidth=0.9, linestyle="dotted")
    for curve in shown:
        kept = evenly(len(curve.false_positive_rate), CURVE_POINTS)
        axis.plot(
            curve.false_positive_rate[kept],
            curve.true_positive_rate[kept],
            color=class_colour(curve.place),
            linewidth=1.6,
            label=f"AUC {curve.area:.3f}: {literal(abridged(curve.name, 24))}",
            clip_on=False,
        )
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    axis.set_xlabel("false positive rate")
    axis.set_ylabel("true positive rate")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="lower right", frameon=True, framealpha=0.85, edgecolor="none", fontsize=8)
    heading = "ROC curve" if len(picture.curves) == 1 else "ROC curves, each class against all others"
    more = f"first {len(shown)} of {len(picture.curves)} classes" if len(picture.curves) > len(shown) else ""
    write_title(axis, heading, more, picture.rows)


def draw_confusion(axis: Any, picture: ConfusionPicture) -> None:
    """Draw the confusion matrix: colours are shares of the true class, the numbers in the cells are rows."""
    counts = picture.counts
    support = counts.sum(axis=1, keepdims=True)
    shares = np.where(support > 0, counts / np.maximum(support, 1), np.nan)
    _draw_cells(axis, shares, 0.0, 1.0, "share of the true class")
    if len(counts) <= CELLS_WITH_TEXT:
        wide = len(counts) <= CELLS_WITH_SHARES
        texts = [[_cell_text(int(count), int(line.sum()), with_share=wide) for count in line] for line in counts]
        _write_cells(axis, texts, shares, size=8.5)
    names = [abridged(name, 18) for name in picture.classes]
    _label_cells(axis, names, names)
    axis.invert_yaxis()
    axis.set_xlabel("predicted class")
    axis.set_ylabel("true class")
    right, total = int(np.trace(counts)), int(counts.sum())
    write_title(axis, f"Confusion: {right:,} of {total:,} {literal(picture.rows)} predicted correctly")


def draw_search(axis: Any, picture: SearchPicture) -> None:
    """Draw the scores of cross-validation, dark where they are good, and frame the cell that was chosen."""
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - only to draw

    goodness = -picture.scores if picture.smaller_is_better else picture.scores
    low, high = _shaded(goodness[np.isfinite(goodness)])
    limits = (-high, -low) if picture.smaller_is_better else (low, high)
    _draw_cells(axis, picture.scores, *limits, picture.score, reverse=picture.smaller_is_better)
    if max(picture.scores.shape) <= CELLS_WITH_TEXT:
        _write_cells(axis, _score_texts(picture.scores), (goodness - low) / (high - low), size=7.5)
    _label_cells(axis, [number(value, 3) for value in picture.across], [number(value, 3) for value in picture.up])
    row, column = picture.chosen
    axis.add_patch(
        Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=COLOUR_Y, linewidth=2.4, clip_on=False)
    )
    names = [abridged(name, 24) for name in picture.names]
    axis.set_xlabel(literal(names[0]))
    axis.set_ylabel(literal(names[1]))
    chosen = zip(names, (picture.across[column], picture.up[row]), strict=True)
    best = ", ".join(f"{name} = {number(value)}" for name, value in chosen)
    write_title(axis, f"{picture.heading}: {number(picture.scores[row, column])} at the framed cell", best)


_DRAWN_BY: dict[type, Callable[[Any, Any], None]] = {
    DecisionPicture: draw_decision,
    RocPicture: draw_roc,
    ConfusionPicture: draw_confusion,
    SearchPicture: draw_search,
    FitPicture: draw_fit,
    TruthPicture: draw_truth,
    ResidualPicture: draw_residuals,
    ScorePicture: draw_scores,
    ComponentPicture: draw_components,
    ScreePicture: draw_scree,
}


def _draw_cells(
    axis: Any, values: NDArray[np.float64], low: float, high: float, label: str, *, reverse: bool = False
) -> None:
    """Draw a heat map of one hue, with its bar; cells without a value show a hatched ground."""
    from matplotlib import colormaps  # noqa: PLC0415 - only to draw
    from matplotlib.colors import ListedColormap  # noqa: PLC0415 - only to draw
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - only to draw

    lines, columns = values.shape
    shades = np.linspace(PALEST, 1.0, 256)
    axis.add_patch(Rectangle((-0.5, -0.5), columns, lines, zorder=0, **HATCHED))
    drawn = axis.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(lines + 1) - 0.5,
        np.ma.masked_invalid(values),
        cmap=ListedColormap(colormaps[COLOUR_MAP](shades[::-1] if reverse else shades)),
        vmin=low,
        vmax=high,
        edgecolors="white",
        linewidth=0.5 if max(lines, columns) <= CELLS_PARTED else 0.0,
    )
    axis.set_xlim(-0.5, columns - 0.5)
    axis.set_ylim(-0.5, lines - 0.5)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    below, above = np.nanmin(values, initial=low) < low, np.nanmax(values, initial=high) > high
    extend = {(True, False): "min", (False, True): "max"}.get((bool(below), bool(above)), "neither")
    bar = axis.figure.colorbar(drawn, ax=axis, shrink=0.8, aspect=25, pad=0.02, extend=extend)
    bar.set_label(literal(abridged(label, 40)))
    bar.outline.set_visible(False)


def _write_cells(axis: Any, texts: Sequence[Sequence[str]], darkness: NDArray[np.float64], *, size: float) -> None:
    """Write a text into each cell, white on dark cells, grey where it is nothing."""
    for row, line in enumerate(texts):
        for column, text in enumerate(line):
            colour = "white" if darkness[row, column] > WHITE_ABOVE else NEUTRAL if text == "0" else "black"
            axis.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)


def _label_cells(axis: Any, across: Sequence[str], up: Sequence[str]) -> None:
    """Name the columns and the lines of a map; of many every so manieth."""
    for which, labels in (("x", across), ("y", up)):
        step = max(1, -(-len(labels) // LABELS_DRAWN))
        places = range(0, len(labels), step)
        size = 8.0 if len(places) <= CELLS_WITH_TEXT else 6.0
        crowded = which == "x" and sum(len(label) + 2 for label in labels) > 50
        style = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        getattr(axis, f"set_{which}ticks")(places, [literal(labels[place]) for place in places], fontsize=size, **style)


def _cell_text(count: int, support: int, *, with_share: bool) -> str:
    """Return what a cell of a confusion matrix says: rows and, below, their share of the true class."""
    if count == 0 or not with_share:
        return f"{count:,}"
    # Only what is all is called 100 %, and only what is nothing would be 0 %.
    share = "<1%" if count < 0.01 * support else f"{min(count / support, 1.0 if count == support else 0.99):.0%}"
    return f"{count:,}\n{share}"


def _shaded(goodness: NDArray[np.float64]) -> tuple[float, float]:
    """Return between which values shades differ: the poor ones are all pale, so that the good ones can be compared."""
    if not len(goodness):
        return 0.0, 1.0
    worst, middle, best = (float(value) for value in np.quantile(goodness, [0.0, 0.5, 1.0]))
    low = max(worst, best - 3.0 * (best - middle)) if best > middle else worst
    return (low, best) if low < best else (best - 0.5, best + 0.5)


def _score_texts(scores: NDArray[np.float64]) -> list[list[str]]:
    """Return scores with as many decimals as give the largest three digits; nothing where there is none."""
    largest = float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))
    decimals = 2 - int(np.floor(np.log10(largest))) if largest > 0 else 0

    def text(value: float) -> str:
        if not np.isfinite(value):
            return ""
        return f"{value:.{max(decimals, 0)}f}" if -2 <= decimals <= 5 else number(value, 3)

    return [[text(value) for value in line] for line in scores]
