"""What a picture of a support vector regression or of an outlier detector shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.learning.fit_picture import fit_picture, over_one_column
from kerntest.report.regression_plot import ResidualPicture, TruthPicture
from kerntest.report.score_plot import ScorePicture
from kerntest.report.summary import counted, number

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.fit_picture import Curve
    from kerntest.learning.svm_fit import Rows
    from kerntest.learning.svm_judge import Judged
    from kerntest.report.regression_plot import FitPicture


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
    first = (
        _fit(judged, name, engine)
        if over_one_column(judged.rows.encoder)
        else TruthPicture(name, truth, predicted, None, 0.0, rows, covered=None)
    )
    return [first, ResidualPicture(name, predicted, residuals, rows, rmse)]


def outlier_panels(judged: Judged) -> list[ScorePicture]:
    """Return the scores of the rows."""
    test = np.empty(0) if judged.test_scores is None else judged.test_scores[:, 0]
    return [ScorePicture(judged.train_scores[:, 0], test)]


def _fit(judged: Judged, name: str, engine: Engine) -> FitPicture:
    """Return the fit over the one column there is, with the tube inside which errors are free."""
    rows, test, epsilon = judged.rows, judged.test, judged.options.epsilon

    def curve(grid: Points) -> Curve:
        mean = judged.fit.model.scores(grid, engine)[:, 0]
        return mean, mean - epsilon, mean + epsilon

    return fit_picture(
        rows.encoder,
        name,
        (rows.points, _numbers(rows)),
        None if test is None else (test.points, _numbers(test)),
        curve,
        band=f"tube of epsilon {number(epsilon)}",
        remark=f"{counted(len(judged.fit.support), 'support vector')} on or outside the tube",
    )


def _numbers(rows: Rows) -> Array:
    if rows.numbers is None:
        message = "a regression has a target of numbers"
        raise TypeError(message)
    return rows.numbers
