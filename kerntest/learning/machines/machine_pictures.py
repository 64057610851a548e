"""What pictures of machines and regressions show: decisions, the ROC curve and the confusion matrix, fits, scores, grids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from kerntest.kernels.base import Points
from kerntest.learning.scores import covered_share, roc_auc, roc_curve, root_mean_square
from kerntest.matrices.expansion import as_points
from kerntest.report.decision_plot import DecisionPicture
from kerntest.report.learning_plot import ConfusionPicture, RocCurve, RocPicture, SearchPicture, learning_figure
from kerntest.report.plot import picture_bytes
from kerntest.report.regression_plot import FitPicture, ResidualPicture, TruthPicture
from kerntest.report.score_plot import ScorePicture
from kerntest.report.summaries.learner_summary import svm_sentence
from kerntest.report.summaries.ridge_summary import left_out_rows, ridge_sentence
from kerntest.report.summaries.words import counted, number, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.machines.ridge_machine import JudgedRidge
    from kerntest.learning.machines.svm_learner import JudgedMachine, ScoredRows
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.report.results.learning_record import SvmResult
    from kerntest.report.results.ridge_record import RidgeGrid, RidgeResult

# Points of a curve over a column, which goes beyond the rows by this share of their range to either side.
CURVE_POINTS, MARGIN = 400, 0.05
# Points of a grid over two columns, along each; it covers this share of the rows, with a margin.
GRID_POINTS, COVERED = 300, 0.99
MOST_CURVES = 8
TARGETS_DRAWN = 3
OUTLIER_CLASSES = ("outliers", "inliers")

# Mean, lower and upper end of the band at some points.
Curve: TypeAlias = "tuple[Array, Array | None, Array | None]"


class GridSquare(Protocol):
    """What every cell of a grid has: its multiple of the median bandwidth, and the bandwidth of a kernel that has one."""

    @property
    def multiple(self) -> float: ...  # noqa: D102 - as above

    @property
    def bandwidth(self) -> float | None: ...  # noqa: D102 - as above


def grid_picture(
    cells: Sequence[GridSquare],
    values: Sequence[float],
    scores: Sequence[float],
    chosen: int,
    *,
    name: str,
    score: str,
    heading: str = "Cross-validation",
    smaller_is_better: bool = False,
) -> SearchPicture | None:
    """Return the scores of a grid, bandwidths across and the values of another option up; None of one cell."""
    if len(cells) < 2:
        return None
    up, multiples = sorted(set(values)), sorted({cell.multiple for cell in cells})
    table = np.full((len(up), len(multiples)), np.nan)
    for cell, value, one in zip(cells, values, scores, strict=True):
        table[up.index(value), multiples.index(cell.multiple)] = one
    widths = {cell.multiple: cell.bandwidth for cell in cells}
    across = [widths[multiple] for multiple in multiples]
    named = "bandwidth" if all(width is not None for width in across) else "bandwidth / median"
    return SearchPicture(
        (named, name),
        np.array([multiple if width is None else width for multiple, width in zip(multiples, across, strict=True)]),
        np.array(up),
        table,
        (up.index(values[chosen]), multiples.index(cells[chosen].multiple)),
        score,
        smaller_is_better=smaller_is_better,
        heading=heading,
    )


def over_one_column(encoder: Encoder | None) -> bool:
    """Say whether rows have one column, of numbers."""
    return encoder is not None and len(encoder.columns) == 1 and len(encoder.numeric_names) == 1


def fit_picture(
    encoder: Encoder | None,
    target: str,
    rows: tuple[Points | Array, Array],
    test: tuple[Points | Array, Array] | None,
    curve: Callable[[Points], Curve],
    *,
    band: str,
    remark: str,
) -> FitPicture:
    """Return the fit over the one column there is, with the band of a curve, and rows with their targets."""
    if encoder is None:
        message = "a fit is drawn over a column"
        raise TypeError(message)
    spec = encoder.numeric[0]
    own, tested = _pairs(*rows), np.empty((0, 2)) if test is None else _pairs(*test)
    every = np.concatenate([own[:, 0], tested[:, 0]])
    margin = MARGIN * float(np.ptp(every))
    grid = np.linspace(every.min() - margin, every.max() + margin, CURVE_POINTS)
    mean, low, high = curve(Points.of(grid))
    scale, shift = np.array([spec.spread, 1.0]), np.array([spec.centre, 0.0])
    return FitPicture(
        names=(spec.name, target),
        across=grid * spec.spread + spec.centre,
        mean=mean,
        low=low,
        high=high,
        band=band,
        rows=own * scale + shift,
        test_rows=tested * scale + shift,
        remark=remark,
    )


def _pairs(points: Points | Array, target: Array) -> Array:
    """Return the one column and the target, shape (n, 2)."""
    return np.column_stack([points.numeric[:, 0] if isinstance(points, Points) else points[:, 0], target])


def svm_picture(result: SvmResult, judged: JudgedMachine, epsilon: float, kind: str, engine: Engine) -> bytes:
    """Return a picture of a machine as "png", "svg" or "pdf"."""
    encoder = judged.train.rows.encoder
    flat = encoder is not None and not encoder.category_names and len(encoder.numeric_names) == 2
    panels: list[Any] = [_regions(judged, engine)] if flat and result.task != "regress" else []
    if result.task == "regress":
        panels += _regression_panels(judged, epsilon, engine)
    elif result.task == "one-class":
        test = np.empty(0) if judged.test is None else judged.test.scores[:, 0]
        panels.append(ScorePicture(judged.train.scores[:, 0], test))
    else:
        panels.append(_roc(judged))
        if result.confusion is not None:
            panels.append(ConfusionPicture(np.array(result.confusion), result.classes, f"{result.judged_on} rows"))
    if (grid := result.grid) is not None:
        costs, means = [cell.C for cell in grid.cells], [cell.mean for cell in grid.cells]
        score = f"{grid.score} over {grid.folds} folds"
        search = grid_picture(grid.cells, costs, means, grid.chosen, name="C", score=score)
        panels += [] if search is None else [search]
    sentence = svm_sentence(result).removesuffix(".")
    title = sentence if result.target is None else f"{result.target}: {sentence}"
    return picture_bytes(learning_figure(tuple(panels), title), kind)


def _regions(judged: JudgedMachine, engine: Engine) -> DecisionPicture:
    """Return the decision regions over two columns, in their own units."""
    rows = judged.train.rows
    encoder = rows.encoder
    if encoder is None or not isinstance(rows.points, Points):
        message = "regions need columns"
        raise TypeError(message)
    spread = np.array([column.spread for column in encoder.numeric])
    centre = np.array([column.centre for column in encoder.numeric])
    own, test, labels = rows.points.numeric, np.empty((0, 2)), np.empty(0, dtype=np.intp)
    if judged.test is not None:
        test = as_points(judged.test.rows.points).numeric
        labels = _places(judged, judged.test)
    tail = (1.0 - COVERED) / 2.0
    low, high = np.quantile(np.concatenate([own, test]), [tail, 1.0 - tail], axis=0)
    margin = 0.1 * (high - low) + 1e-9
    across, up = (np.linspace(a, b, GRID_POINTS) for a, b in zip(low - margin, high + margin, strict=True))
    mesh = np.meshgrid(across, up)
    scores = judged.fit.model.scores(Points.of(np.column_stack([part.ravel() for part in mesh])), engine)
    support = np.zeros(len(rows), dtype=bool)
    support[judged.fit.support] = judged.fit.model.method == "svm"
    return DecisionPicture(
        columns=(encoder.numeric_names[0], encoder.numeric_names[1]),
        grid=(across * spread[0] + centre[0], up * spread[1] + centre[1]),
        predicted=_predicted(judged, scores).reshape(mesh[0].shape),
        # The scores of an outlier detector have a boundary, but no margin.
        scores=scores[:, 0].reshape(mesh[0].shape) if rows.classes and scores.shape[1] == 1 else None,
        classes=OUTLIER_CLASSES if rows.classes is None else rows.classes.names,
        rows=own * spread + centre,
        labels=_places(judged, judged.train),
        support=support,
        test_rows=test * spread + centre,
        test_labels=labels,
    )


def _places(judged: JudgedMachine, scored: ScoredRows) -> NDArray[np.intp]:
    """Return the classes of rows, or what an outlier detector takes them for."""
    return _predicted(judged, scored.scores) if scored.rows.classes is None else scored.rows.codes


def _predicted(judged: JudgedMachine, scores: Array) -> NDArray[np.intp]:
    """Return the predicted classes; of an outlier detector 0 for outliers and 1 for the others."""
    model = judged.fit.model
    return (scores[:, 0] >= 0).astype(np.intp) if model.classes is None else model.codes(scores)


def _roc(judged: JudgedMachine) -> RocPicture:
    """Return the ROC curve of the second of two classes, or of each class against all others."""
    seen, scores = judged.seen.rows, judged.seen.scores
    names = () if seen.classes is None else seen.classes.names
    by_class = judged.fit.model.class_scores(scores)
    curves = []
    for place in (1,) if len(names) == 2 else range(len(names)):
        of_class = by_class if by_class.ndim == 1 else by_class[:, place]
        area = roc_auc(seen.codes == place, of_class)
        if area is not None:
            false, true, _ = roc_curve(seen.codes == place, of_class)
            curves.append(RocCurve(names[place], place, false, true, area))
    return RocPicture(tuple(curves[:MOST_CURVES]), f"{'train' if judged.test is None else 'test'} rows")


def _regression_panels(
    judged: JudgedMachine, epsilon: float, engine: Engine
) -> list[FitPicture | TruthPicture | ResidualPicture]:
    """Return the fit with its tube over the one column there is, or predictions against the truth; and residuals."""
    rows = judged.train.rows
    test = None if judged.test is None else judged.test.rows
    name, truth, predicted = rows.names[0], judged.seen.rows.targets[:, 0], judged.seen.scores[:, 0]
    shown = "training rows" if test is None else "test rows"
    residuals = truth - predicted
    second = ResidualPicture(name, predicted, residuals, shown, float(np.sqrt(np.mean(np.square(residuals)))))
    if not over_one_column(rows.encoder):
        return [TruthPicture(name, truth, predicted, None, 0.0, shown, covered=None), second]

    def curve(grid: Points) -> Curve:
        mean = judged.fit.model.scores(grid, engine)[:, 0]
        return mean, mean - epsilon, mean + epsilon

    first = fit_picture(
        rows.encoder,
        name,
        (rows.points, rows.targets[:, 0]),
        None if test is None else (test.points, test.targets[:, 0]),
        curve,
        band=f"tube of epsilon {number(epsilon)}",
        remark=f"{counted(len(judged.fit.support), 'support vector')} on or outside the tube",
    )
    return [first, second]


def ridge_picture(result: RidgeResult, judged: JudgedRidge, kind: str, engine: Engine) -> bytes:
    """Return a picture as "png", "svg" or "pdf": one panel for each of the first targets, two for a single one, and the grid."""
    panels, names = list[Any](), judged.rows.names
    for place in range(min(len(names), TARGETS_DRAWN)):
        truth = _truth(judged, place)
        panels.append(_ridge_fit(judged, place, engine) if over_one_column(judged.rows.encoder) else truth)
        if len(names) == 1:
            residuals = truth.truth - truth.predicted
            rmse = root_mean_square(residuals)
            panels.append(ResidualPicture(truth.target, truth.predicted, residuals, truth.rows, rmse))
    grid = None if result.grid is None else _ridge_grid(result.grid)
    title = f"{', '.join(result.targets)}: {ridge_sentence(result)}"
    return picture_bytes(learning_figure(tuple(panels if grid is None else [*panels, grid]), title), kind)


def _ridge_fit(judged: JudgedRidge, place: int, engine: Engine) -> FitPicture:
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
    fit, rows, reach = judged.fit, judged.rows, judged.reach
    truth, predicted, seen = rows.targets, fit.fitted, "training rows"
    if judged.test is not None and judged.predicted is not None:
        truth, predicted, seen = judged.test.targets, judged.predicted, "test rows"
    elif fit.left_out is not None and fit.left_out_spread is not None:
        predicted, seen = truth - fit.left_out, left_out_rows(together=rows.clusters is not None)
        reach = fit.model.reach(judged.interval) * fit.left_out_spread
    own, found, half = truth[:, place], predicted[:, place], None if reach is None else reach[:, place]
    covered = None if half is None else covered_share(own - found, half)
    return TruthPicture(rows.names[place], own, found, half, judged.interval, seen, covered)


def _ridge_grid(grid: RidgeGrid) -> SearchPicture | None:
    """Return the grid of lambdas and bandwidths."""
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
