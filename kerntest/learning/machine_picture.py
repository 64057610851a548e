"""What a picture of a support vector regression or of an outlier detector shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.kernels.base import Points
from kerntest.report.regression_plot import FitPicture, ResidualPicture, TruthPicture
from kerntest.report.score_plot import ScorePicture
from kerntest.report.summary import counted, number

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.svm_fit import Rows
    from kerntest.learning.svm_judge import Judged

CURVE_POINTS = 400
# The curve goes beyond the rows by this share of their range, to either side.
MARGIN = 0.05


def regression_panels(judged: Judged, engine: Engine) -> list[FitPicture | TruthPicture | ResidualPicture]:
    """Return the fit with its tube over the one column there is, or predictions against the truth; and residuals."""
    seen, scores = (
        (judged.rows, judged.train_scores)
        if judged.test is None or judged.test_scores is None
        else (judged.test, judged.test_scores)
    )
    truth, predicted = _numbers(seen), scores[:, 0]
    name = judged.rows.target or "target"
    rows = "training rows" if judged.test is None else "test rows"
    residuals = truth - predicted
    rmse = float(np.sqrt(np.mean(np.square(residuals))))
    encoder = judged.rows.encoder
    one_column = encoder is not None and len(encoder.columns) == 1 and len(encoder.numeric_names) == 1
    first = (
        _fit(judged, name, engine)
        if one_column
        else TruthPicture(name, truth, predicted, None, 0.0, rows, covered=None)
    )
    return [first, ResidualPicture(name, predicted, residuals, rows, rmse)]


def outlier_panels(judged: Judged) -> list[ScorePicture]:
    """Return the scores of the rows."""
    test = np.empty(0) if judged.test_scores is None else judged.test_scores[:, 0]
    return [ScorePicture(judged.train_scores[:, 0], test)]


def _fit(judged: Judged, name: str, engine: Engine) -> FitPicture:
    """Return the fit over the one column there is, in its own units, with the tube inside which errors are free."""
    encoder, rows = judged.rows.encoder, judged.rows
    if encoder is None or not isinstance(rows.points, Points):
        message = "a fit is drawn over a column"
        raise TypeError(message)
    spec = encoder.numeric[0]
    tested = np.empty((0, 2)) if judged.test is None else _pairs(judged.test)
    own = _pairs(rows)
    every = np.concatenate([own[:, 0], tested[:, 0]])
    margin = MARGIN * float(np.ptp(every))
    grid = np.linspace(every.min() - margin, every.max() + margin, CURVE_POINTS)
    mean = judged.fit.model.scores(Points.of(grid), engine)[:, 0]
    epsilon = judged.options.epsilon

    def in_units(pairs: Array) -> Array:
        return np.column_stack([pairs[:, 0] * spec.spread + spec.centre, pairs[:, 1]])

    return FitPicture(
        names=(spec.name, name),
        across=grid * spec.spread + spec.centre,
        mean=mean,
        low=mean - epsilon,
        high=mean + epsilon,
        band=f"tube of epsilon {number(epsilon)}",
        rows=in_units(own),
        test_rows=in_units(tested),
        remark=f"{counted(len(judged.fit.support), 'support vector')} on or outside the tube",
    )


def _pairs(rows: Rows) -> Array:
    """Return the one column and the target, shape (n, 2)."""
    numeric = rows.points.numeric if isinstance(rows.points, Points) else rows.points
    return np.column_stack([numeric[:, 0], _numbers(rows)])


def _numbers(rows: Rows) -> Array:
    if rows.numbers is None:
        message = "a regression has a target of numbers"
        raise TypeError(message)
    return rows.numbers
