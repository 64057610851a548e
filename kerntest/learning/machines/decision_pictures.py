"""Pictures of a classifier or an outlier detector: its regions over two columns, ROC curves, confusion and scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kerntest.errors import counted
from kerntest.kernels.base import Points
from kerntest.learning import fit_pictures
from kerntest.learning.scores import roc_auc, roc_curve
from kerntest.matrices.factor import as_points
from kerntest.report import panels
from kerntest.report.summaries.learner_summary import svm_sentence
from kerntest.report.summaries.words import number, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.machines.svm_fit import SvmFit, SvmOptions
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.report.results.learning_record import ClassificationMetrics, RegressionMetrics, SvmResult

# Points of a grid over two columns, along each; it covers this share of the rows, with a margin.
GRID_POINTS, COVERED = 300, 0.99
CURVES_DRAWN, CURVE_POINTS = 8, 2000
# Up to so many classes, cells have room for shares.
CELLS_WITH_SHARES = 6
SCORE_BINS = 40
OUTLIER_CLASSES = ("outliers", "inliers")
# How much of a class's colour is left in its region: rows must stand out from it.
TINT = 0.25
LINES: dict[float, tuple[str, float]] = {0.0: ("solid", 1.6), -1.0: ("dashed", 0.9), 1.0: ("dashed", 0.9)}


Metrics: TypeAlias = "ClassificationMetrics | RegressionMetrics | None"


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """Rows with the scores that a machine gives them, and how well they are predicted, if anything is."""

    rows: TrainingRows
    scores: Array
    metrics: Metrics


def svm_panels(
    result: SvmResult, fit: SvmFit, parts: Sequence[ScoredRows], options: SvmOptions
) -> tuple[list[panels.Panel], str]:
    """Return the panels of a machine judged on its training rows and on the last part, and their title."""
    model, seen, engine, rows = fit.model, parts[-1], options.engine, f"{result.judged_on} rows"
    encoder, drawn = model.encoder, list[panels.Panel]()
    if result.task == "regress":
        epsilon, targets = options.epsilon, [one.rows for one in parts]

        def curve(grid: Points) -> tuple[Array, Array, Array]:
            mean = model.scores(grid, engine)[:, 0]
            return mean, mean - epsilon, mean + epsilon

        band = f"tube of epsilon {number(epsilon)}"
        remark = f"{counted(len(fit.support), 'support vector')} on or outside the tube"
        shown = "test rows" if len(parts) > 1 else "training rows"
        own = fit_pictures.Predicted(result.target or "", seen.rows.targets[:, 0], seen.scores[:, 0], shown)
        drawn += [fit_pictures.fit_panel(own, targets, 0, curve, band=band, remark=remark)]
        drawn += [partial(fit_pictures.draw_residuals, judged=own)]
    elif encoder is not None and not encoder.categories and len(encoder.numeric) == 2:
        drawn.append(Regions(fit, parts, encoder, engine).draw)
    if result.task == "one-class":
        drawn.append(partial(draw_scores, parts=[one.scores for one in parts], alike=model.alike))
    if result.confusion is not None:
        names, by_class = result.classes, model.class_scores(seen.scores)
        drawn.append(partial(draw_roc, codes=seen.rows.codes, by_class=by_class, names=names, rows=rows))
        drawn.append(partial(draw_confusion, counts=np.array(result.confusion), classes=names, rows=rows))
    drawn += fit_pictures.grid_panels(result.grid)
    sentence = svm_sentence(result)
    return drawn, sentence if result.target is None else f"{result.target}: {sentence}"


class Regions:
    """What a classifier or an outlier detector predicts over a grid of two columns, and the rows that it is of."""

    def __init__(self, fit: SvmFit, parts: Sequence[ScoredRows], encoder: Encoder, engine: Engine) -> None:
        rows, model = parts[0].rows, fit.model
        spread, centre = np.array([(column.spread, column.centre) for column in encoder.numeric]).T
        points = [as_points(one.rows.points).numeric for one in parts]
        tail = (1.0 - COVERED) / 2.0
        low, high = np.quantile(np.concatenate(points), [tail, 1.0 - tail], axis=0)
        margin = 0.1 * (high - low) + 1e-9
        across, up = (np.linspace(a, b, GRID_POINTS) for a, b in zip(low - margin, high + margin, strict=True))
        mesh = np.meshgrid(across, up)
        scores = model.scores(Points.of(np.column_stack([part.ravel() for part in mesh])), engine)

        def predicted(found: Array) -> NDArray[np.intp]:
            """Return classes; of an outlier detector 0 for outliers and 1 for the others."""
            return model.alike(found).astype(np.intp) if model.classes is None else model.codes(found)

        def labels(scored: ScoredRows) -> NDArray[np.intp]:
            return predicted(scored.scores) if scored.rows.classes is None else scored.rows.codes

        self.columns, self.grid = encoder.names, (across * spread[0] + centre[0], up * spread[1] + centre[1])
        self.predicted = predicted(scores).reshape(mesh[0].shape)
        # The scores of an outlier detector have a boundary, but no margin; those of several classes neither.
        self.scores = scores[:, 0].reshape(mesh[0].shape) if rows.classes and scores.shape[1] == 1 else None
        self.classes = OUTLIER_CLASSES if rows.classes is None else rows.classes.names
        self.rows = [(own * spread + centre, labels(one)) for own, one in zip(points, parts, strict=True)]
        self.support = np.zeros(len(rows), dtype=bool)
        self.support[fit.support] = model.method == "svm"

    def draw(self, axis: Any) -> None:
        """Draw the regions, the boundary and the margin, rows of the fit, support vectors and test rows."""
        self._fill(axis)
        handles = [*panels.class_marks(self.classes), *self._row_marks(), *self._draw_lines(axis)]
        kept = [panels.evenly(len(points)) for points, _ in self.rows]
        size = max(panels.point_size(sum(map(len, kept))), 12.0)
        remarks = []
        for (points, labels), shown, noun in zip(self.rows, kept, ("row", "test row"), strict=False):
            panels.scatter_classes(axis, points[shown], labels[shown], size, hollow=noun == "test row")
            remarks.append(panels.thinning(len(shown), len(points), noun))
        rings = self.rows[0][0][kept[0][self.support[kept[0]]]]
        ring = {"facecolor": "none", "edgecolor": "black", "linewidth": 0.5 if size < 20 else 0.7}
        axis.scatter(rings[:, 0], rings[:, 1], s=3.0 * size, zorder=2.5, **ring)
        low, high = ([line[end] for line in self.grid] for end in (0, -1))
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axis.set(xlabel=panels.named(self.columns[0]), ylabel=panels.named(self.columns[1]))
        every = np.concatenate([points for points, _ in self.rows])
        outside = int(((every < low) | (every > high)).any(axis=1).sum())
        remarks.append(f"{counted(outside, 'row')} beyond" if outside else "")
        panels.write_title(axis, "Regions of the classes", *remarks)
        panels.legend_below(axis, handles, ncols=3)

    def _fill(self, axis: Any) -> None:
        """Fill each class's region with its colour, pale; between more than two classes draw a thin line."""
        colors, count = panels.matplotlib("colors"), len(self.classes)
        colours = [
            1.0 - TINT * (1.0 - np.array(colors.to_rgb(panels.class_look(place)["color"]))) for place in range(count)
        ]
        if self.scores is not None:
            # Levels beyond the scores and the margin: every point lies in one of two bands that meet at 0.
            reach = 1.0 + max(1.0, float(np.abs(self.scores).max()))
            axis.contourf(*self.grid, self.scores, levels=[-reach, 0.0, reach], colors=colours[:2], zorder=0)
            return
        style = {"shading": "nearest", "cmap": colors.ListedColormap(colours), "rasterized": True, "zorder": 0}
        axis.pcolormesh(*self.grid, self.predicted, vmin=-0.5, vmax=count - 0.5, **style)
        there = np.unique(self.predicted)
        for place in there if len(there) > 1 else []:
            inside = (self.predicted == place).astype(np.float64)
            axis.contour(*self.grid, inside, levels=[0.5], colors="black", linewidths=0.7, zorder=0.5)

    def _draw_lines(self, axis: Any) -> list[Any]:
        """Draw the scores -1, 0 and 1 where they occur, and return what stands for them in the legend."""
        if self.scores is None:
            return []
        handles = {}
        for level, (style, width) in LINES.items():
            if self.scores.min() < level < self.scores.max():
                look = {"colors": "black", "linestyles": style, "linewidths": width, "zorder": 1}
                axis.contour(*self.grid, self.scores, levels=[level], **look)
                label = "margin (scores -1, 1)" if level else "boundary"
                handles[label] = panels.mark(label, color="black", linestyle=style, linewidth=width)
        return list(handles.values())

    def _row_marks(self) -> list[Any]:
        """Return what stands for support vectors and test rows in the legend."""
        vectors, marks = int(np.count_nonzero(self.support)), []
        if vectors:
            marks.append((counted(vectors, "support vector"), "none", "black", 7.5))
        if len(self.rows) > 1:
            marks.append((counted(len(self.rows[1][0]), "test row"), "white", panels.NEUTRAL, 5))
        return [
            panels.mark(label, marker="o", markerfacecolor=face, markeredgecolor=edge, markersize=size)
            for label, face, edge, size in marks
        ]


def draw_roc(axis: Any, codes: NDArray[np.intp], by_class: Array, names: Sequence[str], rows: str) -> None:
    """Draw the ROC curve of the second of two classes, or of each class against all others, and the diagonal."""
    axis.plot([0, 1], [0, 1], color=panels.NEUTRAL, linewidth=0.9, linestyle="dotted")
    count = 0
    for place in (1,) if len(names) == 2 else range(len(names)):
        scores = by_class if by_class.ndim == 1 else by_class[:, place]
        area = roc_auc(codes == place, scores)
        if area is None:
            continue
        count += 1
        if count <= CURVES_DRAWN:
            false, true = roc_curve(codes == place, scores)
            kept = panels.evenly(len(false), CURVE_POINTS)
            label = f"AUC {area:.3f}: {panels.named(names[place], 24)}"
            style = {"color": panels.class_look(place)["color"], "linewidth": 1.6, "clip_on": False}
            axis.plot(false[kept], true[kept], label=label, **style)
    axis.set(xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="true positive rate")
    axis.legend(**panels.LEGEND, loc="lower right")
    heading = "ROC curve" if count == 1 else "ROC curves, each class against all others"
    more = f"first {CURVES_DRAWN} of {count} classes" if count > CURVES_DRAWN else ""
    panels.write_title(axis, heading, more, rows)


def draw_confusion(axis: Any, counts: NDArray[np.integer], classes: Sequence[str], rows: str) -> None:
    """Draw true classes down and predicted ones across: colours are shares of the true class, numbers are rows."""
    support = counts.sum(axis=1, keepdims=True)
    shares = np.where(support > 0, counts / np.maximum(support, 1), np.nan)
    panels.draw_cells(axis, shares, 0.0, 1.0, "share of the true class")
    if len(counts) <= panels.CELLS_WITH_TEXT:
        wide = len(counts) <= CELLS_WITH_SHARES
        texts = [[_cell_text(int(count), int(line.sum()), with_share=wide) for count in line] for line in counts]
        panels.write_cells(axis, texts, shares, size=8.5)
    names = [panels.abridged(name, 18) for name in classes]
    panels.label_cells(axis, names, names)
    axis.invert_yaxis()
    axis.set(xlabel="predicted class", ylabel="true class")
    right, total = int(np.trace(counts)), int(counts.sum())
    panels.write_title(axis, f"Confusion: {right:,} of {total:,} {panels.literal(rows)} predicted correctly")


def _cell_text(count: int, support: int, *, with_share: bool) -> str:
    """Return what a cell of a confusion matrix says: rows and, below, their share of the true class."""
    if count == 0 or not with_share:
        return f"{count:,}"
    # Only what is all is called 100 %, and only what is nothing would be 0 %.
    share = "<1%" if count < 0.01 * support else f"{min(count / support, 1.0 if count == support else 0.99):.0%}"
    return f"{count:,}\n{share}"


def draw_scores(axis: Any, parts: Sequence[Array], alike: Callable[[Array], NDArray[np.bool_]]) -> None:
    """Draw the share of training and of test rows by their score, and the line below which rows are outliers."""
    edges = np.histogram_bin_edges(np.concatenate(parts), bins=SCORE_BINS)
    for scores, name, colour in zip(parts, ("training row", "test row"), panels.COLOURS, strict=False):
        label = f"{counted(len(scores), name)}: {percent(float(np.mean(~alike(scores))))} outliers"
        weights = np.full(len(scores), 1.0 / len(scores))
        axis.hist(scores[:, 0], bins=edges, weights=weights, color=colour, alpha=0.45, label=label)
    axis.axvline(0.0, color="black", linewidth=1.1)
    axis.set(xlabel="score (decision function)", ylabel="share of the rows")
    axis.legend(**panels.LEGEND)
    panels.write_title(axis, "Scores of the rows", "below 0: outliers")
