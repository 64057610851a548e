"""Pictures of a classifier or an outlier detector: its regions over two columns, ROC curves, confusion and scores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kerntest.dataclass import dataclass
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
    from kerntest.learning.machines.svm_fit import SvmFit
    from kerntest.learning.machines.svm_options import SvmOptions
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


Metrics: TypeAlias = "ClassificationMetrics | RegressionMetrics | None"


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with the scores that a machine gives them, of classes one for each, and how well they are predicted, if they are."""

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

        def curve(grid: Points) -> tuple[Array, float]:
            return model.scores(grid, engine)[:, 0], epsilon

        band = f"tube of epsilon {number(epsilon)}"
        remark = f"{counted(fit.n_support, 'support vector')} on or outside the tube"
        shown = "test rows" if len(parts) > 1 else "training rows"
        own = fit_pictures.Predicted(result.target or "", seen.rows.targets[:, 0], seen.scores[:, 0], shown)
        drawn += [fit_pictures.fit_panel(own, targets, 0, curve, band=band, remark=remark)]
        drawn += [partial(fit_pictures.draw_residuals, judged=own)]
    elif encoder is not None and not encoder.categories and len(encoder.numeric) == 2:
        drawn.append(partial(draw_regions, fit=fit, parts=parts, encoder=encoder, engine=engine))
    if result.task == "one-class":
        drawn.append(partial(draw_scores, parts=[one.scores for one in parts], alike=model.alike))
    if result.confusion is not None:
        names, by_class = result.classes, seen.scores
        drawn.append(partial(draw_roc, codes=seen.rows.codes, by_class=by_class, names=names, rows=rows))
        drawn.append(partial(draw_confusion, counts=np.array(result.confusion), classes=names, rows=rows))
    drawn += fit_pictures.grid_panels(result.grid)
    sentence = svm_sentence(result)
    return drawn, sentence if result.target is None else f"{result.target}: {sentence}"


def draw_regions(axis: Any, fit: SvmFit, parts: Sequence[ScoredRows], encoder: Encoder, engine: Engine) -> None:
    """Draw what is predicted over two columns: regions, boundary and margin, rows, support vectors and test rows."""
    model, spread, centre = fit.model, *np.array([(column.spread, column.centre) for column in encoder.numeric]).T
    points = [as_points(one.rows.points).numeric for one in parts]
    tail = (1.0 - COVERED) / 2.0
    low, high = np.quantile(np.concatenate(points), [tail, 1.0 - tail], axis=0)
    margin = 0.1 * (high - low) + 1e-9
    mesh = np.stack(np.meshgrid(*np.linspace(low - margin, high + margin, GRID_POINTS).T), axis=-1)
    several = model.classes is not None and len(model.classes.names) > 2
    scores = model.scores(Points.of(mesh.reshape(-1, 2)), engine, model.codes if several else None)
    across, up = grid = np.moveaxis(mesh * spread + centre, -1, 0)

    def labels(scores: Array, rows: TrainingRows | None = None) -> NDArray[np.intp]:
        """Return true classes, or those predicted; of an outlier detector 0 for outliers and 1 for the others."""
        if model.classes is None:
            return model.alike(scores).astype(np.intp)
        if rows is not None:
            return rows.codes
        return scores.astype(np.intp) if several else model.codes(scores)

    classes = OUTLIER_CLASSES if model.classes is None else model.classes.names
    handles, remarks, colors = panels.class_marks(classes), [], panels.matplotlib("colors")
    tints = [
        1.0 - TINT * (1.0 - np.array(colors.to_rgb(panels.class_look(place)["color"]))) for place in range(len(classes))
    ]
    regions = labels(scores).reshape(across.shape)
    style = {"shading": "nearest", "cmap": colors.ListedColormap(tints), "rasterized": True, "zorder": 0}
    axis.pcolormesh(across, up, regions, vmin=-0.5, vmax=len(classes) - 0.5, **style)
    kept = [panels.evenly(len(one)) for one in points]
    size, every = max(panels.point_size(sum(map(len, kept))), 12.0), np.concatenate(points) * spread + centre
    for own, one, shown, noun in zip(points, parts, kept, ("row", "test row"), strict=False):
        some, codes = own[shown] * spread + centre, labels(one.scores, one.rows)[shown]
        panels.scatter_classes(axis, some, codes, size, hollow=noun == "test row")
        remarks.append(panels.thinning(len(shown), len(own), noun))
    support = np.intersect1d(fit.support, kept[0]) if model.method == "svm" else np.empty(0, dtype=np.intp)
    ring = {"facecolor": "none", "edgecolor": "black", "linewidth": 0.5 if size < 20 else 0.7}
    axis.scatter(*every[support].T, s=3.0 * size, zorder=2.5, **ring)
    if len(support):
        label = counted(fit.n_support, "support vector")
        handles.append(panels.mark(label, marker="o", markerfacecolor="none", markeredgecolor="black", markersize=7.5))
    if len(parts) > 1:
        look = {"markerfacecolor": "white", "markeredgecolor": panels.NEUTRAL}
        handles.append(panels.mark(counted(len(points[1]), "test row"), marker="o", **look))
    if model.classes is not None and not several and scores.shape[1] == 1:
        handles += _draw_margin(axis, grid, scores.reshape(across.shape))
    else:
        # An outlier detector has no margin; of several classes each has a line around its region.
        for place in np.unique(regions)[1:]:
            axis.contour(across, up, regions == place, levels=[0.5], colors="black", linewidths=0.7, zorder=0.5)
    ends = grid[:, [0, -1], [0, -1]]
    names = [panels.named(name) for name in encoder.names]
    axis.set(xlim=ends[0], ylim=ends[1], xlabel=names[0], ylabel=names[1])
    outside = int(((every < ends[:, 0]) | (every > ends[:, 1])).any(axis=1).sum())
    panels.write_title(axis, "Regions of the classes", *remarks, f"{counted(outside, 'row')} beyond" if outside else "")
    panels.legend_below(axis, handles, ncols=3)


def _draw_margin(axis: Any, grid: Array, scores: Array) -> list[Any]:
    """Draw the scores -1, 0 and 1 where they occur, and return what stands for them in the legend."""
    handles = {}
    for level in (0.0, -1.0, 1.0):
        if scores.min() < level < scores.max():
            label, style, width = ("margin (scores -1, 1)", "dashed", 0.9) if level else ("boundary", "solid", 1.6)
            axis.contour(*grid, scores, levels=[level], colors="black", linestyles=style, linewidths=width, zorder=1)
            handles[label] = panels.mark(label, color="black", linestyle=style, linewidth=width)
    return list(handles.values())


def draw_roc(axis: Any, codes: NDArray[np.intp], by_class: Array, names: Sequence[str], rows: str) -> None:
    """Draw the ROC curve of the second of two classes, or of each class against all others, and the diagonal."""
    axis.plot([0, 1], [0, 1], color=panels.NEUTRAL, linewidth=0.9, linestyle="dotted")
    areas = {}
    for place in (1,) if len(names) == 2 else range(len(names)):
        scores = by_class if by_class.ndim == 1 else by_class[:, place]
        if (area := roc_auc(codes == place, scores)) is not None:
            areas[place] = area, scores
    count = len(areas)
    # Of many classes those that are hardest to tell from the others, in the order of all.
    shown = sorted(sorted(areas, key=lambda one: areas[one][0])[:CURVES_DRAWN])
    for rank, place in enumerate(shown):
        area, scores = areas[place]
        false, true = roc_curve(codes == place, scores)
        kept = panels.evenly(len(false), CURVE_POINTS)
        label = f"class {panels.named(names[place], 24)}, AUC {area:.3f}"
        # The colour of the class, as long as each has one of its own.
        colour = panels.class_look(place if count <= CURVES_DRAWN else rank)["color"]
        style = {"color": colour, "linewidth": 1.6, "clip_on": False}
        axis.plot(false[kept], true[kept], label=label, **style)
    axis.set(xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="true positive rate")
    panels.legend_below(axis, axis.get_legend_handles_labels()[0], ncols=1 if count == 1 else 2)
    heading = "ROC curve" if count == 1 else "ROC curves, each class against all others"
    more = f"{CURVES_DRAWN} of {count} classes, those of the smallest areas" if count > CURVES_DRAWN else ""
    panels.write_title(axis, heading, more, rows)


def draw_confusion(axis: Any, counts: NDArray[np.integer], classes: Sequence[str], rows: str) -> None:
    """Draw true classes down and predicted ones across: colours are shares of the true class, numbers are rows."""
    support = counts.sum(axis=1, keepdims=True)
    shares = np.where(support > 0, counts / np.maximum(support, 1), np.nan)
    panels.draw_cells(axis, shares, 0.0, 1.0, "share of the true class")
    if len(counts) <= panels.CELLS_WITH_TEXT:
        wide = len(counts) <= CELLS_WITH_SHARES
        texts = [
            [
                f"{count:,}\n{percent(share)}" if wide and count else f"{count:,}"
                for count, share in zip(*line, strict=True)
            ]
            for line in zip(counts.tolist(), shares.tolist(), strict=True)
        ]
        panels.write_cells(axis, texts, shares, size=8.5)
    names = [panels.abridged(name, 18) for name in classes]
    panels.label_cells(axis, names, names)
    axis.invert_yaxis()
    axis.set(xlabel="predicted class", ylabel="true class")
    right, total = int(np.trace(counts)), int(counts.sum())
    panels.write_title(axis, f"Confusion: {right:,} of {total:,} {panels.literal(rows)} predicted correctly")


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
