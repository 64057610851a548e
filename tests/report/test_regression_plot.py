"""Pictures of a regression: the fit with its band, predictions against the truth, residuals."""

import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from kerntest.report.learning_plot import SearchPicture, draw_search, learning_figure
from kerntest.report.plot import POINTS_DRAWN, figure_class, picture_bytes
from kerntest.report.regression_plot import (
    FitPicture,
    ResidualPicture,
    TruthPicture,
    draw_fit,
    draw_residuals,
    draw_truth,
)

HOSTILE = ("price $ per $", "two\nlines", "x" * 100, "$\\frac{1}{0$", "\\$", "_^{}")


def axis():
    return figure_class()(figsize=(4, 3)).subplots()


def fit_picture(n=30, tests=10, **changes):
    rng = np.random.default_rng(0)
    across = np.linspace(-3, 3, 50)
    values = {
        "names": ("x", "y"),
        "across": across,
        "mean": np.sin(across),
        "low": np.sin(across) - 1,
        "high": np.sin(across) + 1,
        "band": "90 % interval of new values",
        "rows": rng.uniform(-3, 3, (n, 2)),
        "test_rows": rng.uniform(-3, 3, (tests, 2)),
        "remark": "lambda 0.1",
    }
    return FitPicture(**(values | changes))


def truth_picture(n=30, **changes):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=n)
    values = {
        "target": "y",
        "truth": truth,
        "predicted": 0.8 * truth,
        "reach": np.full(n, 0.5),
        "interval": 0.9,
        "rows": "test rows",
        "covered": 0.8,
    }
    return TruthPicture(**(values | changes))


def legend_of(drawn):
    return [text.get_text() for text in drawn.get_legend().get_texts()]


def test_a_fit_shows_band_rows_and_function():
    drawn = axis()
    draw_fit(drawn, fit_picture())
    assert legend_of(drawn) == ["90 % interval of new values", "training rows", "test rows", "fit"]
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("x", "y")
    assert "lambda 0.1" in drawn.get_title()
    np.testing.assert_allclose(drawn.get_xlim(), (-3, 3), rtol=1e-12)


def test_a_fit_without_intervals_or_test_rows_shows_neither():
    drawn = axis()
    draw_fit(drawn, fit_picture(low=None, high=None, tests=0))
    assert legend_of(drawn) == ["training rows", "fit"]


def test_of_very_many_rows_some_are_drawn():
    drawn = axis()
    draw_fit(drawn, fit_picture(n=3 * POINTS_DRAWN))
    assert max(len(collection.get_offsets()) for collection in drawn.collections) <= POINTS_DRAWN


def test_predictions_show_their_intervals_and_the_diagonal():
    drawn = axis()
    draw_truth(drawn, truth_picture())
    assert "90 % intervals hold 80 %" in drawn.get_title()
    across, up = drawn.lines[0].get_data()
    np.testing.assert_array_equal(across, up)
    assert len(drawn.containers) == 1
    plain = axis()
    draw_truth(plain, truth_picture(reach=None, covered=None))
    assert not plain.containers
    assert "intervals" not in plain.get_title()


def test_residuals_lie_around_zero():
    rng = np.random.default_rng(0)
    drawn = axis()
    draw_residuals(drawn, ResidualPicture("y", rng.normal(size=20), rng.normal(size=20), "test rows", 1.0))
    low, high = drawn.get_ylim()
    assert low == -high
    assert "RMSE 1" in drawn.get_title()
    assert [line.get_ydata()[0] for line in drawn.lines] == [0.0, -1.0, 1.0]


def test_one_row_and_equal_rows_can_be_drawn():
    for n in (1, 5):
        same = np.ones(n)
        draw_truth(axis(), truth_picture(truth=same, predicted=same, reach=same))
        draw_residuals(axis(), ResidualPicture("y", same, np.zeros(n), "test rows", 0.0))


def test_a_search_says_how_its_scores_were_found():
    picture = SearchPicture(
        ("bandwidth", "lambda"),
        np.array([1.0, 2.0]),
        np.array([0.1, 1.0]),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        (0, 0),
        "RMSE",
        smaller_is_better=True,
        heading="Leave-one-out",
    )
    drawn = axis()
    draw_search(drawn, picture)
    assert drawn.get_title().startswith("Leave-one-out: 1 at the framed cell")


# Of these each stands at every place: the others differ from them in what `literal` does, which is one for all places.
@pytest.mark.parametrize("names", [[HOSTILE[2]] * 8, [HOSTILE[3]] * 8, [*HOSTILE, *HOSTILE[:2]]])
def test_names_of_any_kind_can_be_drawn(names):
    pictures = (
        fit_picture(names=(names[0], names[1]), remark=names[2]),
        truth_picture(target=names[3], rows=names[4]),
        ResidualPicture(names[5], np.arange(3.0), np.arange(3.0), names[6], 1.0),
    )
    assert picture_bytes(learning_figure(pictures, names[7]), "svg")


def test_a_picture_says_not_when_it_was_drawn_and_its_parts_keep_their_names():
    one, other = (picture_bytes(learning_figure((fit_picture(),), "title"), "svg").decode() for _ in range(2))
    names = [re.findall(r'(?:id|href)="([^"]+)"', text) for text in (one, other)]
    assert names[0] == names[1] != []
    assert "<dc:date>" not in one
    pdf = picture_bytes(learning_figure((fit_picture(),), "title"), "pdf")
    assert b"CreationDate" not in pdf
