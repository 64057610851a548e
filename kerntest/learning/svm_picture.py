"""What a picture of a machine shows: regions, the ROC curve and the confusion matrix; or a fit; and the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.kernels.base import Points
from kerntest.learning.grid_picture import grid_picture
from kerntest.learning.machine_picture import outlier_panels, regression_panels
from kerntest.learning.scores import roc_auc, roc_curve
from kerntest.report.decision_plot import DecisionPicture
from kerntest.report.learning_plot import ConfusionPicture, RocCurve, RocPicture, SearchPicture, learning_figure
from kerntest.report.plot import picture_bytes
from kerntest.report.svm_summary import svm_sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.svm_learner import JudgedMachine
    from kerntest.learning.training_rows import TrainingRows
    from kerntest.report.svm_record import SvmResult

GRID_POINTS = 300
# The grid covers this share of the rows, with a margin.
COVERED = 0.99
MOST_CURVES = 8
OUTLIER_CLASSES = ("outliers", "inliers")


def svm_picture(result: SvmResult, judged: JudgedMachine, kind: str, engine: Engine) -> bytes:
    """Return a picture of a machine as "png", "svg" or "pdf"."""
    if result.task == "regress":
        panels: list[Any] = [*regression_panels(judged, engine)]
    elif result.task == "one-class":
        panels = [*(_regions(judged, engine) for _ in range(_over_two_columns(judged))), *outlier_panels(judged)]
    else:
        panels = _classifier_panels(result, judged, engine)
    search = _search(result)
    if search is not None:
        panels.append(search)
    return picture_bytes(learning_figure(tuple(panels), _title(result)), kind)


def _title(result: SvmResult) -> str:
    """Return what the picture says in a line."""
    sentence = svm_sentence(result).removesuffix(".")
    return sentence if result.target is None else f"{result.target}: {sentence}"


def _over_two_columns(judged: JudgedMachine) -> bool:
    """Say whether the rows have two columns of numbers and no others."""
    encoder = judged.rows.encoder
    return encoder is not None and not encoder.category_names and len(encoder.numeric_names) == 2


def _classifier_panels(result: SvmResult, judged: JudgedMachine, engine: Engine) -> list[Any]:
    """Return the decision regions over two columns, the ROC curve and the confusion matrix."""
    panels: list[Any] = [_regions(judged, engine)] if _over_two_columns(judged) else []
    panels.append(_roc(judged))
    if result.confusion is not None:
        panels.append(ConfusionPicture(np.array(result.confusion), result.classes, f"{result.judged_on} rows"))
    return panels


def _regions(judged: JudgedMachine, engine: Engine) -> DecisionPicture:
    """Return the decision regions over two columns, in their own units."""
    rows, encoder = judged.rows, judged.rows.encoder
    if encoder is None or not isinstance(rows.points, Points):
        message = "regions need columns"
        raise TypeError(message)
    spread = np.array([column.spread for column in encoder.numeric])
    centre = np.array([column.centre for column in encoder.numeric])
    test = _numeric(judged.test)
    every = rows.points.numeric if test is None else np.concatenate([rows.points.numeric, test])
    tail = (1.0 - COVERED) / 2.0
    low, high = np.quantile(every, [tail, 1.0 - tail], axis=0)
    margin = 0.1 * (high - low) + 1e-9
    across, up = (np.linspace(a, b, GRID_POINTS) for a, b in zip(low - margin, high + margin, strict=True))
    mesh = np.meshgrid(across, up)
    scores = judged.fit.model.scores(Points.of(np.column_stack([part.ravel() for part in mesh])), engine)
    support = np.zeros(len(rows), dtype=bool)
    support[judged.fit.support] = True
    nothing = np.empty((0, 2))
    return DecisionPicture(
        columns=(encoder.numeric_names[0], encoder.numeric_names[1]),
        grid=(across * spread[0] + centre[0], up * spread[1] + centre[1]),
        predicted=_places(judged, scores).reshape(mesh[0].shape),
        # The scores of an outlier detector have a boundary, but no margin.
        scores=scores[:, 0].reshape(mesh[0].shape) if rows.classes and scores.shape[1] == 1 else None,
        classes=OUTLIER_CLASSES if rows.classes is None else rows.classes.names,
        rows=rows.points.numeric * spread + centre,
        labels=_places(judged, judged.train_scores) if rows.classes is None else rows.codes,
        support=support & (judged.options.method == "svm"),
        test_rows=nothing if test is None else test * spread + centre,
        test_labels=_test_places(judged),
    )


def _places(judged: JudgedMachine, scores: Array) -> NDArray[np.intp]:
    """Return the predicted classes; of an outlier detector 0 for outliers and 1 for the others."""
    model = judged.fit.model
    return model.codes(scores) if judged.rows.classes is not None else (scores[:, 0] >= 0).astype(np.intp)


def _test_places(judged: JudgedMachine) -> NDArray[np.intp]:
    """Return the classes of the test rows, or what an outlier detector takes them for."""
    if judged.test is None or judged.test_scores is None:
        return np.empty(0, dtype=np.intp)
    return _places(judged, judged.test_scores) if judged.test.classes is None else judged.test.codes


def _numeric(rows: TrainingRows | None) -> Array | None:
    return rows.points.numeric if rows is not None and isinstance(rows.points, Points) else None


def _roc(judged: JudgedMachine) -> RocPicture:
    """Return the ROC curve of the second of two classes, or of each class against all others."""
    seen, scores = judged.seen
    names = () if seen.classes is None else seen.classes.names
    codes = seen.codes
    by_class = judged.fit.model.class_scores(scores)
    curves = []
    for place in (1,) if len(names) == 2 else range(len(names)):
        of_class = by_class if by_class.ndim == 1 else by_class[:, place]
        area = roc_auc(codes == place, of_class)
        if area is None:
            continue
        false, true, _ = roc_curve(codes == place, of_class)
        curves.append(RocCurve(names[place], place, false, true, area))
    return RocPicture(tuple(curves[:MOST_CURVES]), f"{'train' if judged.test is None else 'test'} rows")


def _search(result: SvmResult) -> SearchPicture | None:
    """Return the grid of costs and bandwidths, where there were several of either."""
    grid = result.grid
    if grid is None:
        return None
    return grid_picture(
        grid.cells,
        [cell.C for cell in grid.cells],
        [cell.mean for cell in grid.cells],
        grid.chosen,
        name="C",
        score=f"{grid.score} over {grid.folds} folds",
    )
