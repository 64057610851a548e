"""What pictures of regressions and of outlier detectors show."""

import numpy as np
import pandas as pd
import pytest
from tolerances import assert_close

from kerntest import train_svm
from kerntest.report.decision_plot import DecisionPicture
from kerntest.report.learning_plot import SearchPicture, learning_figure
from kerntest.report.regression_plot import FitPicture, ResidualPicture, TruthPicture
from kerntest.report.score_plot import ScorePicture

pytest.importorskip("matplotlib")


def table(columns: int) -> pd.DataFrame:
    rng = np.random.default_rng(columns)
    X = 100.0 + 10.0 * rng.normal(size=(60, columns))
    return pd.DataFrame(X, columns=[f"x{place}" for place in range(columns)]).assign(y=np.sin(X[:, 0] / 5.0))


@pytest.fixture
def panels(monkeypatch):
    """The panels of the last picture."""
    seen = []

    def drawn(pictures, title):
        seen[:] = [title, *pictures]
        return learning_figure(pictures, title)

    monkeypatch.setattr("kerntest.learning.machines.machine_pictures.learning_figure", drawn)
    return seen


@pytest.fixture
def undrawn(monkeypatch):
    """Let pictures be a few octets: tests of reports draw such panels."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, stream, **_options: stream.write(b"a picture"))


def test_a_regression_over_one_column_shows_its_tube_in_the_units_of_the_table(panels, tmp_path):
    data = table(1)
    result = train_svm(
        data, target="y", task="regress", epsilon=0.25, C=10.0, test_fraction=0.25, plot=tmp_path / "fit.png"
    )
    title, fit, residuals = panels
    assert isinstance(fit, FitPicture)
    assert isinstance(residuals, ResidualPicture)
    assert (tmp_path / "fit.png").stat().st_size > 10_000
    np.testing.assert_allclose(fit.high - fit.low, 0.5, rtol=1e-12)
    np.testing.assert_allclose(fit.low, fit.mean - 0.25, rtol=1e-12, atol=1e-12)
    drawn = np.concatenate([fit.rows, fit.test_rows])
    np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(data["x0"]), rtol=1e-12)
    assert fit.across[0] < data["x0"].min() < data["x0"].max() < fit.across[-1]
    assert residuals.rows == "test rows"
    assert residuals.rmse == pytest.approx(result.rmse, rel=1e-12)
    assert f"{len(fit.test_rows)} test rows" in title


@pytest.mark.usefixtures("undrawn")
def test_a_regression_over_several_columns_shows_predictions_residuals_and_the_grid(panels, tmp_path, monkeypatch):
    monkeypatch.setattr("kerntest.learning.machines.svm_learner.COSTS", (1.0, 10.0))
    train_svm(table(3), target="y", task="regress", grid=True, cv=2, plot=tmp_path / "truth.svg")
    _, truth, residuals, search = panels
    assert (type(truth), type(search)) == (TruthPicture, SearchPicture)
    np.testing.assert_allclose(residuals.residuals, truth.truth - truth.predicted, rtol=0, atol=1e-12)
    assert truth.rows == "training rows"


def test_an_outlier_detector_over_two_columns_shows_where_rows_are_outliers(panels, tmp_path):
    data = table(2).drop(columns="y")
    test = data + 25.0
    result = train_svm(data, task="one-class", nu=0.2, test=test, plot=tmp_path / "outliers.png")
    title, regions, scores = panels
    assert isinstance(regions, DecisionPicture)
    assert isinstance(scores, ScorePicture)
    assert regions.classes == ("outliers", "inliers")
    assert regions.scores is None
    assert np.mean(scores.test < 0) == result.outliers
    np.testing.assert_array_equal(regions.labels, scores.train >= 0)
    np.testing.assert_array_equal(regions.test_labels, scores.test >= 0)
    assert "of 60 test rows are outliers" in title
    # The grid covers 99 % of all rows, and a tenth more on either side.
    for line, values in zip(regions.grid, np.concatenate([data, test]).T, strict=True):
        low, high = np.quantile(values, [0.005, 0.995])
        margin = 0.1 * (high - low)
        assert_close(line[[0, -1]], [low - margin, high + margin])


@pytest.mark.usefixtures("undrawn")
def test_an_outlier_detector_over_more_columns_shows_its_scores(panels, tmp_path):
    train_svm(table(3), task="one-class", plot=tmp_path / "scores.pdf")
    title, scores = panels
    assert isinstance(scores, ScorePicture)
    assert len(scores.test) == 0
    assert "10 % of 60 training rows are outliers" in title
