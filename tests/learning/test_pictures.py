"""Pictures of learners: regions, ROC curves, confusion, fits, predictions, residuals, searches, scores, components."""

import functools
import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from pictures import HOSTILE, drawn_by, layers, legend, panel, panels, points, scatters, texts, tick_labels

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgba

from kerntest import SVM, KernelRidge, train_kpca, train_ridge, train_svm, train_unmix
from kerntest.learning.fit_pictures import Predicted, draw_residuals, draw_scree, draw_search, draw_truth
from kerntest.learning.machines.decision_pictures import draw_confusion, draw_roc
from kerntest.learning.scores import roc_auc
from kerntest.report.panels import CLASSES_IN_LEGEND, COLOUR_Y, COLOURS, NEUTRAL, POINTS_DRAWN, figure
from kerntest.report.results.learning_record import GridCell, GridSearch, RidgeCell, RidgeGrid

TINT = 0.25


def drawn(draw, *values, **options):
    """Return the axis into which a panel was drawn."""
    made = figure([[lambda axis: draw(axis, *values, **options)]], "")
    made.draw_without_rendering()
    return made.axes[0]


def numbers(columns, rows=60):
    rng = np.random.default_rng(columns)
    X = 100.0 + 10.0 * rng.normal(size=(rows, columns))
    return pd.DataFrame(X, columns=[f"x{place}" for place in range(columns)]).assign(y=np.sin(X[:, 0] / 5.0))


def classes(names, columns=2, rows=80):
    rng = np.random.default_rng(len(names))
    codes = rng.integers(0, len(names), rows)
    X = rng.normal(size=(rows, columns)) + codes[:, None]
    return pd.DataFrame(X, columns=[f"x{place}" for place in range(columns)]).assign(kind=np.array(list(names))[codes])


def tinted(place):
    return 1 - TINT * (1 - np.array(to_rgba(COLOURS[place % len(COLOURS)])[:3]))


def test_boundary_and_margin_are_drawn_where_the_scores_say():
    data = classes("ab")
    result, made = drawn_by(train_svm, data, target="kind", kernel="gaussian(1)", C=10.0)
    axis = panel(made, "Regions of the classes")
    (mesh,), lines = layers(axis, "QuadMesh"), layers(axis, "QuadContourSet")
    np.testing.assert_allclose(mesh.cmap(mesh.norm([0, 1]))[:, :3], [tinted(0), tinted(1)], rtol=1e-6)
    assert [float(line.levels[0]) for line in lines] == [0.0, -1.0, 1.0]
    machine = SVM(kernel="gaussian(1)", C=10.0).fit(data[["x0", "x1"]], data["kind"])
    for line in lines:
        vertices = np.concatenate([path.vertices for path in line.get_paths()])
        scores = machine.decision_function(pd.DataFrame(vertices, columns=["x0", "x1"]))
        np.testing.assert_allclose(scores, float(line.levels[0]), rtol=0, atol=0.01)
    told = ["a", "b", f"{result.n_support} support vectors", "boundary", "margin (scores -1, 1)"]
    assert legend(axis) == told
    (rings,) = [found for found, face, _ in scatters(axis) if len(face) == 0]
    assert len(rings) == result.n_support
    # The grid covers 99 % of the rows, and a tenth more on either side.
    low, high = np.quantile(data[["x0", "x1"]], [0.005, 0.995], axis=0)
    ends = np.array([axis.get_xlim(), axis.get_ylim()]).T
    np.testing.assert_allclose(ends, [low - 0.1 * (high - low), high + 0.1 * (high - low)], rtol=1e-7)


@pytest.mark.parametrize(("C", "seen"), [(1e-4, [0.0]), (10.0, [0.0, -1.0, 1.0])])
def test_lines_that_do_not_occur_are_not_drawn(C, seen):
    even = classes("ab").groupby("kind").head(30)
    _, made = drawn_by(train_svm, even, target="kind", C=C, kernel="linear")
    axis = panel(made, "Regions of the classes")
    assert [float(line.levels[0]) for line in layers(axis, "QuadContourSet")] == seen
    assert ("boundary" in legend(axis), "margin (scores -1, 1)" in legend(axis)) == (0.0 in seen, 1.0 in seen)


@pytest.mark.parametrize("names", ["abc", [f"_{place:02}" for place in range(12)]])
def test_regions_and_rows_of_several_classes_have_their_colours(names):
    data = classes(names, rows=100)
    _, made = drawn_by(train_svm, data, target="kind", test_fraction=0.2, method="mean")
    axis = panel(made, "Regions of the classes")
    (mesh,) = layers(axis, "QuadMesh")
    assert len(layers(axis, "QuadContourSet")) == len(np.unique(mesh.get_array())) - 1
    shown = mesh.cmap(mesh.norm(np.arange(len(names))))[:, :3]
    np.testing.assert_allclose(shown, [tinted(place) for place in range(len(names))], rtol=1e-6)
    filled = {tuple(edge[0]): [] for _, _, edge in scatters(axis)}
    for found, face, edge in scatters(axis):
        hollow = tuple(face[0]) == to_rgba("white")
        filled[tuple(edge[0])].append(len(found))
        colour = tuple((edge if hollow else face)[0])
        for row in found:
            (kind,) = data.loc[np.isclose(data[["x0", "x1"]], row).all(axis=1), "kind"]
            assert colour == to_rgba(COLOURS[names.index(kind) % len(COLOURS)])
    assert sum(filled[to_rgba("white")]) == 80
    assert sum(map(sum, filled.values())) == 100
    first = names[0]
    assert legend(axis)[0] == (f" {first}" if first[0] == "_" else first)
    assert ("and 2 more" in legend(axis)) == (len(names) == 12)
    assert "20 test rows" in legend(axis)


def test_of_many_rows_some_are_drawn_and_the_title_says_so():
    data = classes("ab", rows=POINTS_DRAWN + 500)
    _, made = drawn_by(train_svm, data, target="kind", method="mean")
    axis = panel(made, "Regions of the classes")
    low, high = np.array([axis.get_xlim(), axis.get_ylim()]).T
    beyond = ((data[["x0", "x1"]] < low) | (data[["x0", "x1"]] > high)).any(axis=1).sum()
    assert axis.get_title().endswith(f"(2,000 of 2,500 rows drawn; {beyond} rows beyond)")
    assert len(points(axis)) == POINTS_DRAWN


def test_an_outlier_detector_shows_where_rows_are_outliers_and_their_scores():
    data = numbers(2).drop(columns="y")
    result, made = drawn_by(train_svm, data, task="one-class", nu=0.2, test=data + 25.0)
    regions, scores = panels(made)
    assert legend(regions)[:2] == ["outliers", "inliers"]
    assert not {"boundary", "margin (scores -1, 1)"} & set(legend(regions))
    rows = {to_rgba(COLOURS[place]): 0 for place in (0, 1)}
    for found, face, edge in scatters(regions):
        if len(face) and tuple(edge[0]) in rows:
            rows[tuple(edge[0])] += len(found)
    assert list(rows.values()) == [round(60 * result.outliers), 60 - round(60 * result.outliers)]
    assert legend(scores)[1].startswith("60 test rows: ")
    assert sum(patch.get_height() for patch in scores.patches) == pytest.approx(2.0)
    assert "of 60 test rows are outliers" in made.get_suptitle()
    _, made = drawn_by(train_svm, numbers(3).drop(columns="y"), task="one-class")
    assert legend(made.axes[0]) == ["60 training rows: 3.3 % outliers"]


def test_roc_curves_go_from_corner_to_corner_in_the_colour_of_their_class():
    rng = np.random.default_rng(0)
    codes, by_class = rng.integers(0, 11, 9000), rng.normal(size=(9000, 11))
    names = [f"class {place}" for place in range(11)]
    axis = drawn(draw_roc, codes, by_class, names, "test rows")
    title = "ROC curves, each class against all others\n(8 of 11 classes, those of the smallest areas; test rows)"
    assert axis.get_title() == title
    areas = [roc_auc(codes == place, by_class[:, place]) for place in range(11)]
    hardest = sorted(np.argsort(areas, kind="stable")[:8].tolist())
    assert [line.get_label().removeprefix("class ").rpartition(", AUC ")[0] for line in axis.lines[1:]] == [
        names[place] for place in hardest
    ]
    for place, line in enumerate(axis.lines[1:]):
        assert line.get_color() == COLOURS[place]
        assert len(line.get_xdata()) <= 2000
        np.testing.assert_array_equal(line.get_xydata()[[0, -1]], [[0, 0], [1, 1]])
    axis = drawn(draw_roc, np.arange(4) // 2, np.array([0.0, 2.0, 1.0, 3.0]), ["a", "b"], "train rows")
    assert (axis.get_title(), legend(axis)) == ("ROC curve\n(train rows)", ["class b, AUC 0.750"])
    # It hides no curve.
    assert axis.get_legend().get_window_extent().y1 < axis.get_window_extent().y0


def test_pictures_count_support_vectors_as_the_report_does():
    data = pd.concat([classes("abc")] * 2)
    result, made = drawn_by(train_svm, data, target="kind")
    assert f"{result.n_support} support vectors" in legend(panel(made, "Regions of the classes"))
    assert result.n_support <= len(data) / 2


@pytest.mark.parametrize("count", [2, 6, 7, 12, 40])
def test_cells_of_a_confusion_matrix_say_their_rows_where_there_is_room(count):
    counts = np.random.default_rng(1).integers(1, 20, (count, count))
    axis = drawn(draw_confusion, counts, [f"class {place}" for place in range(count)], "test rows")
    written = texts(axis)
    assert len(written) == (count**2 if count <= 12 else 0)
    for place, text in written.items():
        assert text.splitlines()[0] == str(counts[place])
        assert len(text.splitlines()) == (2 if count <= 6 else 1)
    right = f"{np.trace(counts):,} of {counts.sum():,}"
    assert axis.get_title() == f"Confusion: {right} test rows predicted correctly"


def test_true_classes_are_down_and_shares_are_theirs():
    counts = np.array([[999, 1, 0], [0, 50, 50], [0, 0, 0]])
    axis = drawn(draw_confusion, counts, HOSTILE[:3], "rows")
    written = texts(axis)
    assert written[0, 0] == "999\n99.9 %"  # not 100 %: one is missing
    assert (written[0, 1], written[1, 2], written[2, 2]) == ("1\n0.1 %", "50\n50 %", "0")
    assert axis.get_ylim()[0] > axis.get_ylim()[1]
    assert tick_labels(axis, "x")[1] == "two\\nlines"
    (mesh,) = layers(axis, "QuadMesh")
    shares = mesh.get_array().reshape(3, 3)
    np.testing.assert_allclose(shares[:2], [[0.999, 0.001, 0], [0, 0.5, 0.5]], rtol=1e-12)
    assert np.ma.getmaskarray(shares)[2].all()  # a class without rows has no shares


def search(scores, chosen=0, *, smaller_is_better=False):
    """Return a drawn search over two bandwidths, 1 and 2, and powers of ten."""
    values = np.transpose(scores)
    cells = [(10.0**up, k + 1.0, k + 1.0, "", one) for k, line in enumerate(values) for up, one in enumerate(line)]
    grid = GridSearch("accuracy", 5, "", tuple(GridCell(*cell, None, 5) for cell in cells), chosen, 0.0)
    if smaller_is_better:
        grid = RidgeGrid("RMSE", None, "", tuple(RidgeCell(*cell, 1.0) for cell in cells), chosen, "loo", 60)
    return drawn(draw_search, grid)


def test_the_chosen_cell_is_framed_and_said():
    axis = search([[0.91, 0.95], [0.625, 0.5], [0.7, 0.8]], 2)
    (frame,) = [patch for patch in axis.patches if patch.get_edgecolor() == to_rgba(COLOUR_Y)]
    assert (frame.get_xy(), frame.get_width(), frame.get_height()) == ((-0.5, 1.5), 1, 1)
    assert axis.get_title() == "Cross-validation: 0.7 at the framed cell\n(bandwidth = 1, C = 100)"
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("bandwidth", "C")
    assert (tick_labels(axis, "x"), tick_labels(axis, "y")) == (["1", "2"], ["1", "10", "100"])
    written = texts(axis)
    assert [[written[row, column] for column in (0, 1)] for row in (0, 1, 2)] == [
        ["0.91", "0.95"],
        ["0.625", "0.5"],
        ["0.7", "0.8"],
    ]


def test_cells_given_up_stand_in_brackets_and_negative_errors_show_as_errors():
    cells = [GridCell(1.0, 1.0, 1.0, "", -50.0, 1.0, 5), GridCell(10.0, 1.0, 1.0, "", -60.0, 1.0, 5)]
    cells += [GridCell(1.0, 2.0, 2.0, "", -80.0, None, 0), GridCell(10.0, 2.0, 2.0, "", -70.0, 1.0, 2)]
    axis = drawn(draw_search, GridSearch("negative RMSE", 5, "", tuple(cells), 0, -50.0))
    written = texts(axis)
    assert [written[0, 0], written[1, 0], written[0, 1], written[1, 1]] == ["50", "60", "(80)", "(70)"]
    assert axis.get_title() == "Cross-validation: 50 at the framed cell\n(bandwidth = 1, C = 1)"
    (mesh,) = layers(axis, "QuadMesh")
    assert axis.figure.axes[1].get_ylabel() == "RMSE over 5 folds"
    shade = mesh.to_rgba(mesh.get_array()).reshape(-1, 4)[:, :3].sum(axis=1)
    assert shade.argmin() == 0
    # A negative log evidence is what is written: the smaller, the better.
    lambdas = tuple(RidgeCell(10.0**up, 1.0, 1.0, "", value, 1.0) for up, value in enumerate((-12.0, 30.0)))
    axis = drawn(draw_search, RidgeGrid("negative log evidence", None, "", lambdas, 0, "evidence", 60))
    assert [texts(axis)[row, 0] for row in (0, 1)] == ["-12", "30"]
    assert axis.figure.axes[1].get_ylabel() == "negative log evidence"


@pytest.mark.parametrize("smaller_is_better", [False, True])
def test_the_best_cell_is_the_darkest(smaller_is_better):
    scores = np.random.default_rng(2).uniform(0.6, 0.99, (4, 2))
    (mesh,) = layers(search(scores, smaller_is_better=smaller_is_better), "QuadMesh")
    brightness = mesh.cmap(mesh.norm(scores))[..., :3].sum(axis=2).ravel()
    best = scores.argmin() if smaller_is_better else scores.argmax()
    assert brightness.argmin() == best
    assert brightness[best] < np.delete(brightness, best).min()


def test_one_disaster_does_not_hide_the_differences_between_the_others():
    axis = search([[0.90, 0.91], [0.92, 0.1]])
    (mesh,) = layers(axis, "QuadMesh")
    assert mesh.norm.vmin > 0.8
    assert axis.figure.axes[1].get_ylim()[0] > 0.8
    # Cells too small for texts have none.
    assert not search(np.random.default_rng(0).random((30, 2))).texts


@pytest.mark.parametrize(
    ("train", "options", "band"),
    [
        (train_svm, {"task": "regress", "epsilon": 0.25, "C": 10.0}, "tube of epsilon 0.25"),
        (train_ridge, {}, "90 % interval of new values"),
    ],
)
def test_a_regression_over_one_column_shows_its_band_in_the_units_of_the_table(train, options, band):
    data = numbers(1)
    _, made = drawn_by(train, data, target="y", test_fraction=0.25, render=True, **options)
    fit, residuals, *_ = panels(made)
    assert legend(fit) == [band, "training rows", "test rows", "fit"]
    assert (fit.get_xlabel(), fit.get_ylabel()) == ("x0", "y")
    np.testing.assert_allclose(points(fit), sorted(data[["x0", "y"]].to_numpy().tolist()), rtol=1e-12)
    low, high = fit.get_xlim()
    margin = 0.05 * np.ptp(data["x0"])
    np.testing.assert_allclose([low, high], [data["x0"].min() - margin, data["x0"].max() + margin], rtol=1e-12)
    (path,) = layers(fit, "FillBetweenPolyCollection")[0].get_paths()
    (line,) = [one for one in fit.lines if one.get_label() == "fit"]
    mean, ends = line.get_ydata(), path.vertices[:, 1]
    assert (ends.min(), ends.max()) < (mean.min(), ends.max())
    if train is train_svm:
        np.testing.assert_allclose([ends.min(), ends.max()], [mean.min() - 0.25, mean.max() + 0.25], rtol=1e-12)
    rms = np.sqrt(np.mean(np.square(np.array(points(residuals))[:, 1])))
    assert [line.get_ydata()[0] for line in residuals.lines] == pytest.approx([0.0, -rms, rms], rel=1e-12)
    assert residuals.get_title().startswith("Residuals: test rows\n(dotted: RMSE ")


def test_a_column_of_dates_has_dates_below_it():
    days = pd.date_range("2024-03-01", periods=60)
    _, made = drawn_by(train_ridge, numbers(1).assign(x0=days), target="y", render=True)
    assert any("Apr" in text for text in tick_labels(panels(made)[0], "x"))


def test_a_fit_that_runs_away_from_the_rows_leaves_the_picture():
    x = np.linspace(0.0, 1.0, 60)
    frame = pd.DataFrame({"x": x, "y": np.sin(6 * x) + 0.3 * np.random.default_rng(0).normal(size=60)})
    _, made = drawn_by(train_ridge, frame[:40], target="y", test=frame[40:], kernel="polynomial(8)", lambda_=1e-6)
    (low, high), line = made.axes[0].get_ylim(), made.axes[0].lines[-1]
    assert np.abs(line.get_ydata()).max() > 3.0
    assert -4.0 < low < -1.0 < 1.0 < high < 4.0


def test_without_intervals_or_test_rows_a_fit_shows_neither():
    _, made = drawn_by(train_svm, numbers(1), target="y", task="regress", epsilon=0.1)
    assert legend(made.axes[0]) == ["tube of epsilon 0.1", "training rows", "fit"]
    _, made = drawn_by(train_ridge, numbers(1), target="y", intervals=False)
    assert legend(made.axes[0]) == ["training rows", "fit"]


def test_a_regression_over_several_columns_shows_predictions_residuals_and_the_grid():
    _, made = drawn_by(train_ridge, numbers(3), target="y")
    truth, residuals, grid = panels(made)
    assert re.fullmatch(r"Predicted and true: .*\n\(90 % intervals hold [0-9.]+ %\)", truth.get_title())
    left_out = KernelRidge().fit(numbers(3), "y").fit_.left_out[:, 0]
    for found in (np.subtract(*np.transpose(points(truth))), np.array(points(residuals))[:, 1]):
        np.testing.assert_allclose(sorted(found), sorted(left_out), rtol=0, atol=1e-7)
    assert grid.get_title().startswith("Leave-one-out: ")
    _, made = drawn_by(train_ridge, numbers(3), target="y,x1,x2", kernel="gaussian + linear")
    assert [axis.get_ylabel() for axis in panels(made)[:3]] == ["x1", "x2", "y"]
    # A kernel with two scales has multiples of its bandwidths.
    assert "bandwidth / median = " in panel(made, "Leave-one-out: ").get_title()
    _, made = drawn_by(train_ridge, numbers(1).assign(who=np.arange(60) // 4), target="y", cluster="who")
    assert panel(made, "Leave-one-cluster-out: ")


@pytest.mark.parametrize("rows", [1, 5, 3 * POINTS_DRAWN])
def test_few_and_equal_and_very_many_rows_can_be_drawn(rows):
    same = np.ones(rows)
    for axis in (
        drawn(draw_truth, Predicted(HOSTILE[3], same, same, HOSTILE[5], same, 0.5)),
        drawn(draw_residuals, Predicted(HOSTILE[0], same, same, HOSTILE[3])),
    ):
        assert len(points(axis)) == min(rows, POINTS_DRAWN)
    low, high = axis.get_ylim()
    assert low == -high
    assert [line.get_ydata()[0] for line in axis.lines] == [0.0, 0.0, 0.0]


COMPONENTS = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc")).assign(
    kind=[["a", "_b", "c $"][place % 3] for place in range(60)],
    many=[f"class {place % 12:02}" for place in range(60)],
    price=np.linspace(5, 9, 60),
    day=pd.date_range("2024-03-01", periods=60),
    huge=np.linspace(-1.0, 1.0, 60) * 1.7e308,
    digit=[float(place % 10) for place in range(60)],
    count=[float(place % 11) for place in range(60)],
    half=[place % 2 / 2 for place in range(60)],
)


def components(color=None, count=2):
    others = [name for name in COMPONENTS.columns[3:] if name != color]
    return drawn_by(
        train_kpca, COMPONENTS.drop(columns=others), color=color, components=count, kernel="gaussian", render=True
    )


@pytest.mark.parametrize("color", [None, "kind", "many", "digit", "price", "day", "huge", "count", "half"])
def test_rows_lie_in_the_plane_of_two_components_and_have_the_colour_of_a_column(color):
    result, made = components(color)
    axis, scree = panels(made)
    first, second = result.explained_variance_ratio
    assert axis.get_xlabel() == f"pc1 ({100 * first:.3g} % of the variance)"
    assert axis.get_ylabel() == f"pc2 ({100 * second:.3g} % of the variance)"
    assert len(points(axis)) == 60
    told = {
        "kind": [" _b", "a", "c \\$"],
        "many": [*(f"class {k:02}" for k in range(10)), "and 2 more"],
        # A few whole numbers are those of classes.
        "digit": list("0123456789"),
    }
    if color in told:
        assert axis.get_legend().get_title().get_text() == color
        assert legend(axis) == told[color]
        faces = [tuple(face[0]) for _, face, _ in scatters(axis)]
        assert faces == [to_rgba(COLOURS[place % len(COLOURS)]) for place in range(len(faces))]
        assert len({*faces[:CLASSES_IN_LEGEND]}) == min(len(faces), CLASSES_IN_LEGEND)
    elif color is not None:
        (bar,) = [one for one in made.axes if one.get_label() == "<colorbar>"]
        assert bar.get_ylabel() == color
        dated = any("Mar" in text for text in tick_labels(bar, "y"))
        assert dated == (color == "day")
        largest = {"price": 9, "day": 19_842, "huge": 1e307, "count": 10, "half": 0.5}[color]
        assert axis.collections[0].get_array().max() == largest
    np.testing.assert_allclose([bar.get_height() for bar in scree.patches], [100 * first, 100 * second], rtol=1e-12)
    np.testing.assert_allclose(scree.lines[0].get_ydata(), [100 * first, 100 * (first + second)], rtol=1e-12)


@functools.cache
def without_a_colour(train):
    return train(COMPONENTS[["a", "b", "c"]], components=2)


@pytest.mark.parametrize("missing", ["error", "drop", "indicator"])
@pytest.mark.parametrize("color", ["kind", "digit", "price", "day"])
def test_rows_without_a_colour_stay_and_are_grey(color, missing):
    table = COMPONENTS[["a", "b", "c", color]].copy()
    table.loc[[0, 7, 30], color] = None
    for train in (train_kpca, train_unmix):
        result, made = drawn_by(train, table, color=color, missing=missing, components=2, render=True)
        bare = without_a_colour(train)
        assert result.n_train == bare.n_train == 60
        # The last pair of unmixed columns is drawn like the first.
        axis = next(one for one in panels(made) if one.get_legend() is not None)
        assert len(points(axis)) == 60
        grey = [own for own, face, _ in scatters(axis) if tuple(face[0]) == to_rgba(NEUTRAL)]
        assert [len(own) for own in grey] == [3]
        assert legend(axis)[-1] == "missing"
        if train is train_kpca:
            np.testing.assert_allclose(result.eigenvalues, bare.eigenvalues, rtol=1e-12)


@pytest.mark.parametrize("color", [None, "kind", "price", "huge"])
def test_one_component_alone_is_drawn_over_the_rows(color):
    axis = panel(components(color, 1)[1], "Rows on the component")
    assert axis.get_ylabel() == "row"
    assert sorted(row for _, row in points(axis)) == list(range(1, 61))


def test_of_very_many_components_the_first_are_drawn():
    axis = drawn(draw_scree, (0.998, 0.001), 0.999)
    # The legend stands above a bar of nearly all of the variance.
    assert axis.get_legend().get_window_extent().y0 > axis.patches[0].get_window_extent().y1
    axis = drawn(draw_scree, (0.01,) * 80, 0.8)
    assert len(axis.patches) == 50
    assert axis.get_title() == "Scree: 80 % explained\n(the first 50 of 80)"
    assert [text.get_text() for text in drawn(draw_scree, (0.4, 0.25, 0.1), 0.75).texts] == ["40", "25", "10"]


# What is seen without one kind of cones, of linear light (Machado, Oliveira and Fernandes 2009).
CONES = {
    "all": np.eye(3),
    "no long": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no medium": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no short": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


@pytest.mark.parametrize("cones", CONES)
def test_the_colours_of_a_legend_differ_for_any_colour_vision(cones):
    def lab(colour):
        value = np.array(to_rgba(colour)[:3])
        light = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
        seen = np.clip(CONES[cones] @ light, 0.0, 1.0)
        xyz = [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8729]] @ seen
        x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])

    assert len(COLOURS) >= CLASSES_IN_LEGEND
    apart = [np.linalg.norm(lab(a) - lab(b)) for a, b in combinations(COLOURS, 2)]
    # A difference of 2.3 can just be seen; those of Okabe and Ito are 16 and more.
    assert min(apart) > 16.0
