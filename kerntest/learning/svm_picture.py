"""What a picture of a fitted machine shows: decision regions or the ROC curve, the confusion matrix, the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.errors import UsageError
from kerntest.kernels.base import Points
from kerntest.learning.metrics import roc_auc, roc_curve
from kerntest.report.decision_plot import DecisionPicture
from kerntest.report.learning_plot import ConfusionPicture, RocCurve, RocPicture, SearchPicture, learning_figure
from kerntest.report.plot import picture_bytes

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.svm_fit import Rows
    from kerntest.learning.svm_judge import Judged
    from kerntest.report.svm_record import SvmResult

GRID_POINTS = 300
# The grid covers this share of the rows, with a margin.
COVERED = 0.99
MOST_CURVES = 8


def svm_picture(result: SvmResult, judged: Judged, kind: str, engine: Engine) -> bytes:
    """Return a picture of a classifier as "png", "svg" or "pdf".

    Raises
    ------
    UsageError
        If the machine is no classifier.
    """
    if judged.rows.classes is None:
        raise UsageError(
            f"--plot draws classifiers, not --task {result.task}", hint="leave out --plot", code="usage.picture"
        )
    panels: list[Any] = []
    two = judged.rows.encoder is not None and not judged.rows.encoder.category_names
    if two and judged.rows.encoder is not None and len(judged.rows.encoder.numeric_names) == 2:
        panels.append(_regions(judged, engine))
    panels.append(_roc(judged))
    if result.confusion is not None:
        panels.append(ConfusionPicture(np.array(result.confusion), result.classes, f"{result.judged_on} rows"))
    search = _search(result)
    if search is not None:
        panels.append(search)
    share = 0.0 if result.accuracy is None else 100.0 * result.accuracy
    rows = result.n_test if result.judged_on == "test" else result.n_train
    title = f"{result.target}: {share:.3g} % of {rows:,} {result.judged_on} rows are classified correctly"
    return picture_bytes(learning_figure(tuple(panels), title), kind)


def _regions(judged: Judged, engine: Engine) -> DecisionPicture:
    """Return the decision regions over two columns, in their own units."""
    rows, encoder, classes = judged.rows, judged.rows.encoder, judged.rows.classes
    if encoder is None or classes is None or not isinstance(rows.points, Points) or rows.codes is None:
        message = "regions need a classifier of columns"
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
    one_score = scores.shape[1] == 1
    nothing = np.empty((0, 2))
    return DecisionPicture(
        columns=(encoder.numeric_names[0], encoder.numeric_names[1]),
        grid=(across * spread[0] + centre[0], up * spread[1] + centre[1]),
        predicted=judged.fit.model.codes(scores).reshape(mesh[0].shape),
        scores=scores[:, 0].reshape(mesh[0].shape) if one_score else None,
        classes=classes.names,
        rows=rows.points.numeric * spread + centre,
        labels=rows.codes,
        support=support & (judged.options.method == "svm"),
        test_rows=nothing if test is None else test * spread + centre,
        test_labels=np.empty(0, dtype=np.intp)
        if judged.test is None or judged.test.codes is None
        else judged.test.codes,
    )


def _numeric(rows: Rows | None) -> Array | None:
    return rows.points.numeric if rows is not None and isinstance(rows.points, Points) else None


def _roc(judged: Judged) -> RocPicture:
    """Return the ROC curve of the second of two classes, or of each class against all others."""
    seen = judged.rows if judged.test is None else judged.test
    scores = judged.train_scores if judged.test_scores is None else judged.test_scores
    names = () if judged.rows.classes is None else judged.rows.classes.names
    codes = np.zeros(len(scores), dtype=np.intp) if seen.codes is None else seen.codes
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
    """Return the grid of costs and bandwidths, where there were several of both."""
    if result.grid is None:
        return None
    cells = result.grid.cells
    costs = sorted({cell.C for cell in cells})
    multiples = sorted({cell.multiple for cell in cells})
    if len(costs) < 2 and len(multiples) < 2:
        return None
    scores = np.full((len(costs), len(multiples)), np.nan)
    widths = {cell.multiple: cell.bandwidth for cell in cells}
    for cell in cells:
        scores[costs.index(cell.C), multiples.index(cell.multiple)] = cell.mean
    best = cells[result.grid.chosen]
    known = [widths[multiple] for multiple in multiples]
    named = "bandwidth" if all(width is not None for width in known) else "bandwidth / median"
    across = np.array([multiple if width is None else width for multiple, width in zip(multiples, known, strict=True)])
    chosen = (costs.index(best.C), multiples.index(best.multiple))
    return SearchPicture(
        (named, "C"), across, np.array(costs), scores, chosen, f"{result.grid.score} over {result.grid.folds} folds"
    )
