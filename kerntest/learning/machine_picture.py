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
    from kerntest.kernels.base import Points
    from kerntest.learning.fit_picture import Curve
    from kerntest.learning.svm_learner import JudgedMachine
    from kerntest.report.regression_plot import FitPicture


def regression_panels(judged: JudgedMachine, engine: Engine) -> list[FitPicture | TruthPicture | ResidualPicture]:
    """Return the fit with its tube over the one column there is, or predictions against the truth; and residuals."""
    seen, scores = judged.seen
    truth, predicted = seen.targets[:, 0], scores[:, 0]
    name = judged.rows.names[0]
    rows = "training rows" if judged.test is None else "test rows"
    residuals = truth - predicted
    rmse = float(np.sqrt(np.mean(np.square(residuals))))
    first = (
        _fit(judged, name, engine)
        if over_one_column(judged.rows.encoder)
        else TruthPicture(name, truth, predicted, None, 0.0, rows, covered=None)
    )
    return [first, ResidualPicture(name, predicted, residuals, rows, rmse)]


def outlier_panels(judged: JudgedMachine) -> list[ScorePicture]:
    """Return the scores of the rows."""
    test = np.empty(0) if judged.test_scores is None else judged.test_scores[:, 0]
    return [ScorePicture(judged.train_scores[:, 0], test)]


def _fit(judged: JudgedMachine, name: str, engine: Engine) -> FitPicture:
    """Return the fit over the one column there is, with the tube inside which errors are free."""
    rows, test, epsilon = judged.rows, judged.test, judged.options.epsilon

    def curve(grid: Points) -> Curve:
        mean = judged.fit.model.scores(grid, engine)[:, 0]
        return mean, mean - epsilon, mean + epsilon

    return fit_picture(
        rows.encoder,
        name,
        (rows.points, rows.targets[:, 0]),
        None if test is None else (test.points, test.targets[:, 0]),
        curve,
        band=f"tube of epsilon {number(epsilon)}",
        remark=f"{counted(len(judged.fit.support), 'support vector')} on or outside the tube",
    )
