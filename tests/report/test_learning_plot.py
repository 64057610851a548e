"""Pictures of a learner: decision regions, ROC curves, confusion, cross-validation."""

import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgba

from kerntest.report.decision_plot import (
    COLOURS,
    LINES,
    MARKERS,
    TINT,
    DecisionPicture,
    class_colour,
    draw_decision,
    evenly,
)
from kerntest.report.learning_plot import (
    CELLS_WITH_SHARES,
    CELLS_WITH_TEXT,
    CURVE_POINTS,
    CURVES_DRAWN,
    ConfusionPicture,
    RocCurve,
    RocPicture,
    SearchPicture,
    draw_confusion,
    draw_roc,
    draw_search,
    learning_figure,
)
from kerntest.report.plot import COLOUR_Y, POINTS_DRAWN, figure_class, picture_bytes

HOSTILE = ("price $ per $", "two\nlines", "x" * 100, "$\\frac{1}{0$", "", "a\tb\x1b[31m", "\\$", "_^{}")
MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def decision(count=2, n=60, tests=20, **changes):
    """Return a made-up classifier whose score is x + y over the square [-2, 2]."""
    rng = np.random.default_rng(0)
    across, up = np.linspace(-2, 2, 41), np.linspace(-2, 2, 31)
    scores = across + up[:, None]
    # Several classes: equal stripes along the diagonal.
    edges = np.linspace(-4, 4, count + 1)[1:-1]
    rows, test_rows = rng.uniform(-2, 2, (n, 2)), rng.uniform(-2, 2, (tests, 2))
    made = {
        "columns": ("age", "price"),
        "grid": (across, up),
        "predicted": np.digitize(scores, edges),
        "scores": scores if count == 2 else None,
        "classes": tuple(f"class {place}" for place in range(count)),
        "rows": rows,
        "labels": np.digitize(rows.sum(axis=1), edges),
        "support": np.abs(rows.sum(axis=1)) < 1,
        "test_rows": test_rows,
        "test_labels": np.digitize(test_rows.sum(axis=1), edges),
    }
    return DecisionPicture(**(made | changes))


def roc(classes=1, points=50, names=None):
    rate = np.linspace(0, 1, points)
    return RocPicture(
        tuple(
            RocCurve(
                names[place] if names else f"class {place}", place, rate, rate ** (1 / (place + 2)), 0.5 + place / 50
            )
            for place in range(classes)
        ),
        "test rows",
    )


def confusion(classes=3, names=None):
    counts = np.random.default_rng(1).integers(1, 20, (classes, classes))
    return ConfusionPicture(counts, names or tuple(f"class {place}" for place in range(classes)), "test rows")


def search(lines=4, columns=5, **changes):
    made = {
        "names": ("bandwidth", "C"),
        "across": 2.0 ** np.arange(columns),
        "up": 10.0 ** np.arange(lines),
        "scores": np.random.default_rng(2).uniform(0.6, 0.99, (lines, columns)),
        "chosen": (1, 2),
        "score": "accuracy",
    }
    return SearchPicture(**(made | changes))


def drawn(draw, picture):
    """Return the axis into which a picture was drawn."""
    made = figure_class()()
    axis = made.subplots()
    draw(axis, picture)
    return axis


def layers(axis, kind):
    return [layer for layer in axis.collections if type(layer).__name__ == kind]


def scatters(axis):
    """Return (points, face, edge) of every scatter with points."""
    return [
        (np.asarray(layer.get_offsets()), layer.get_facecolor(), layer.get_edgecolor())
        for layer in layers(axis, "PathCollection")
        if len(layer.get_offsets())
    ]


def legend(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def tick_labels(axis, which):
    return [label.get_text() for label in getattr(axis, f"get_{which}ticklabels")()]


@pytest.mark.parametrize(("panels", "kind"), [(1, "pdf"), (2, "svg"), (3, "png")])
def test_any_number_of_panels_is_drawn_in_every_format(panels, kind):
    made = learning_figure([decision(3), search(), roc(3)][:panels], "A model")
    assert picture_bytes(made, kind).startswith(MAGIC[kind])
    # Colour bars have axes of their own.
    assert len([axis for axis in made.axes if axis.get_title()]) == panels


def test_hostile_names_are_shown_as_they_are():
    classes = len(HOSTILE)
    pictures = [
        decision(classes, classes=HOSTILE, columns=HOSTILE[2:4], remark=HOSTILE[3]),
        roc(classes, names=HOSTILE),
        confusion(classes, names=HOSTILE),
        search(names=HOSTILE[:2], score=HOSTILE[3]),
    ]
    made = learning_figure(pictures, "A model of $\\frac{1}{0$ and \n " + "y" * 400)
    made.draw_without_rendering()
    assert "two\\nlines" in tick_labels(made.axes[2], "x")
    for axis in made.axes[:2]:
        assert any("_^{}" in text for text in legend(axis))
    # One backslash keeps a dollar from starting a formula; a second one would be seen.
    assert "price \\$ per \\$ = 4" in made.axes[4].get_title()


def test_boundary_and_margin_are_drawn_where_the_scores_say():
    axis = drawn(draw_decision, decision())
    lines = [layer for layer in layers(axis, "QuadContourSet") if not layer.filled]
    assert [float(layer.levels[0]) for layer in lines] == list(LINES)
    for layer in lines:
        for path in layer.get_paths():
            np.testing.assert_allclose(path.vertices.sum(axis=1), layer.levels[0], rtol=0, atol=1e-9)
    assert {"boundary", "margin (scores -1, 1)"} < set(legend(axis))


def test_lines_that_do_not_occur_are_not_drawn():
    base = decision()
    for scores, expected in ((base.scores / 100, [0.0]), (base.scores + 4.5, [1.0]), (np.full((31, 41), 3.0), [])):
        axis = drawn(draw_decision, decision(scores=scores))
        lines = [layer for layer in layers(axis, "QuadContourSet") if not layer.filled]
        assert [float(layer.levels[0]) for layer in lines] == expected
        assert ("boundary" in legend(axis)) == (0.0 in expected)


def test_two_regions_meet_at_score_0():
    axis = drawn(draw_decision, decision())
    (filled,) = [layer for layer in layers(axis, "QuadContourSet") if layer.filled]
    assert filled.levels[1] == 0.0
    assert filled.levels[0] < -4.0
    assert filled.levels[2] > 4.0
    for place, colour in enumerate(filled.get_facecolor()):
        tinted = 1 - TINT * (1 - np.array(to_rgba(COLOURS[place])[:3]))
        np.testing.assert_allclose(colour[:3], tinted, rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_regions_of_several_classes_have_their_colours(classes):
    picture = decision(classes, scores=None)
    axis = drawn(draw_decision, picture)
    (mesh,) = layers(axis, "QuadMesh")
    shown = mesh.cmap(mesh.norm(mesh.get_array())).reshape(*picture.predicted.shape, 4)
    for place in range(classes):
        tinted = 1 - TINT * (1 - np.array(to_rgba(class_colour(place))[:3]))
        cells = shown[picture.predicted == place][:, :3]
        np.testing.assert_allclose(cells, np.broadcast_to(tinted, cells.shape), rtol=1e-6)


def test_a_single_region_has_no_boundary():
    picture = decision(3, predicted=np.full((31, 41), 1))
    assert not layers(drawn(draw_decision, picture), "QuadContourSet")


def test_rows_have_the_colour_of_their_class_and_test_rows_are_hollow():
    picture = decision(3)
    found = scatters(drawn(draw_decision, picture))
    for place in range(3):
        colour = to_rgba(COLOURS[place])
        (filled,) = [points for points, face, _ in found if len(face) and tuple(face[0]) == colour]
        np.testing.assert_array_equal(filled, picture.rows[picture.labels == place])
        (hollow,) = [points for points, _, edge in found if len(edge) and tuple(edge[0]) == colour]
        np.testing.assert_array_equal(hollow, picture.test_rows[picture.test_labels == place])


def test_support_vectors_are_ringed_and_no_others():
    picture = decision()
    (rings,) = [points for points, face, _ in scatters(drawn(draw_decision, picture)) if len(face) == 0]
    np.testing.assert_array_equal(rings, picture.rows[picture.support])
    assert f"{picture.support.sum()} support vectors" in legend(drawn(draw_decision, picture))


def test_what_is_not_there_is_not_in_the_legend():
    picture = decision(tests=0, support=np.zeros(60, dtype=bool))
    assert legend(drawn(draw_decision, picture)) == ["class 0", "class 1", "boundary", "margin (scores -1, 1)"]


def test_many_classes_are_told_apart_by_colour_and_marker():
    marks = {(class_colour(place), MARKERS[place % len(MARKERS)]) for place in range(56)}
    assert len(marks) == 56
    texts = legend(drawn(draw_decision, decision(20)))
    assert texts[8] == "and 12 more"


def test_of_many_rows_some_are_drawn_and_the_title_says_so():
    picture = decision(n=3 * POINTS_DRAWN, tests=10)
    axis = drawn(draw_decision, picture)
    assert "(2,000 of 6,000 rows drawn)" in axis.get_title()
    filled = [points for points, _, edge in scatters(axis) if len(edge) and tuple(edge[0]) == to_rgba("white")]
    assert sum(map(len, filled)) == POINTS_DRAWN


def test_rows_beyond_the_grid_are_counted():
    # Three of the fit and one of the test lie outside of [-2, 2], two of them on both axes.
    rows = np.array([[0.0, 0.0], [2.0, -2.0], [3.0, 0.0], [3.0, 3.0], [-3.0, 3.0]])
    test_rows = np.array([[0.0, 1.0], [0.0, -2.5]])
    changes = {"rows": rows, "labels": np.zeros(5, dtype=int), "support": np.zeros(5, dtype=bool)}
    picture = decision(**changes, test_rows=test_rows, test_labels=np.zeros(2, dtype=int), remark="size at its mean")
    axis = drawn(draw_decision, picture)
    assert axis.get_title() == "Regions of the classes\n(size at its mean; 4 rows beyond)"
    assert axis.get_xlim() == (-2, 2)


def test_evenly_spread_places():
    np.testing.assert_array_equal(evenly(3, 5), [0, 1, 2])
    for count, most in ((10, 4), (1001, 1000), (5, 5)):
        places = evenly(count, most)
        assert len(np.unique(places)) == most
        assert (places[0], places[-1]) == (0, count - 1)


def test_roc_curves_go_from_corner_to_corner_in_the_colour_of_their_class():
    axis = drawn(draw_roc, roc(3))
    _diagonal, *curves = axis.lines
    for place, line in enumerate(curves):
        assert line.get_color() == COLOURS[place]
        np.testing.assert_array_equal(line.get_xydata()[[0, -1]], [[0, 0], [1, 1]])
    assert legend(axis) == ["AUC 0.500: class 0", "AUC 0.520: class 1", "AUC 0.540: class 2"]
    assert axis.get_title() == "ROC curves, each class against all others\n(test rows)"
    assert drawn(draw_roc, roc()).get_title() == "ROC curve\n(test rows)"


def test_long_and_many_roc_curves_are_cut():
    axis = drawn(draw_roc, roc(CURVES_DRAWN + 3, points=5 * CURVE_POINTS))
    assert len(axis.lines) == 1 + CURVES_DRAWN
    assert "first 8 of 11 classes" in axis.get_title()
    for line in axis.lines[1:]:
        assert len(line.get_xdata()) == CURVE_POINTS
        np.testing.assert_array_equal(line.get_xydata()[[0, -1]], [[0, 0], [1, 1]])


@pytest.mark.parametrize("classes", [2, CELLS_WITH_SHARES, CELLS_WITH_SHARES + 1, CELLS_WITH_TEXT, 40])
def test_cells_of_a_confusion_matrix_say_their_rows_where_there_is_room(classes):
    picture = confusion(classes)
    axis = drawn(draw_confusion, picture)
    assert len(axis.texts) == (classes**2 if classes <= CELLS_WITH_TEXT else 0)
    for text in axis.texts:
        column, row = text.get_position()
        lines = text.get_text().splitlines()
        assert lines[0] == str(picture.counts[row, column])
        assert len(lines) == (2 if classes <= CELLS_WITH_SHARES else 1)
    right = np.trace(picture.counts)
    assert axis.get_title() == f"Confusion: {right:,} of {picture.counts.sum():,} test rows predicted correctly"


def test_true_classes_are_down_and_shares_are_theirs():
    counts = np.array([[999, 1, 0], [0, 50, 50], [0, 0, 0]])
    axis = drawn(draw_confusion, ConfusionPicture(counts, ("a", "b", "c")))
    texts = {text.get_position()[::-1]: text.get_text() for text in axis.texts}
    assert texts[0, 0] == "999\n99%"  # not 100 %: one is missing
    assert texts[0, 1] == "1\n<1%"
    assert texts[1, 2] == "50\n50%"
    assert texts[2, 2] == "0"
    assert axis.get_ylim()[0] > axis.get_ylim()[1]
    (mesh,) = layers(axis, "QuadMesh")
    shares = mesh.get_array().reshape(3, 3)
    np.testing.assert_allclose(shares[:2], [[0.999, 0.001, 0], [0, 0.5, 0.5]], rtol=1e-12)
    assert np.ma.getmaskarray(shares)[2].all()  # a class without rows has no shares


def test_labels_of_many_classes_thin_out():
    axis = drawn(draw_confusion, confusion(100))
    assert 20 <= len(tick_labels(axis, "x")) <= 30


def test_the_chosen_cell_is_framed():
    picture = search()
    axis = drawn(draw_search, picture)
    (frame,) = [patch for patch in axis.patches if patch.get_edgecolor() == to_rgba(COLOUR_Y)]
    assert (frame.get_xy(), frame.get_width(), frame.get_height()) == ((1.5, 0.5), 1, 1)
    assert axis.get_title().endswith("(bandwidth = 4, C = 10)")
    assert tick_labels(axis, "x") == ["1", "2", "4", "8", "16"]
    assert tick_labels(axis, "y") == ["1", "10", "100", "1000"]
    assert axis.get_ylim()[0] < axis.get_ylim()[1]
    texts = {text.get_position()[::-1]: text.get_text() for text in axis.texts}
    for place, score in np.ndenumerate(picture.scores):
        assert texts[place] == f"{score:.3f}"


@pytest.mark.parametrize("smaller_is_better", [False, True])
def test_the_best_cell_is_the_darkest(smaller_is_better):
    picture = search(smaller_is_better=smaller_is_better)
    (mesh,) = layers(drawn(draw_search, picture), "QuadMesh")
    brightness = mesh.cmap(mesh.norm(picture.scores))[..., :3].sum(axis=2)
    best = picture.scores.argmin() if smaller_is_better else picture.scores.argmax()
    assert brightness.argmin() == best
    assert brightness.ravel()[best] < np.delete(brightness.ravel(), best).min()


def test_one_disaster_does_not_hide_the_differences_between_the_others():
    scores = np.array([[0.90, 0.91], [0.92, 0.1]])
    axis = drawn(draw_search, search(2, 2, scores=scores, chosen=(1, 0)))
    (mesh,) = layers(axis, "QuadMesh")
    assert mesh.norm.vmin > 0.8
    assert axis.figure.axes[1].get_ylim()[0] > 0.8


def test_failed_fits_are_hatched_and_nothing_is_written_there():
    scores = search().scores.copy()
    scores[3, 4] = np.nan
    axis = drawn(draw_search, search(scores=scores))
    (mesh,) = layers(axis, "QuadMesh")
    np.testing.assert_array_equal(np.ma.getmaskarray(mesh.get_array()).reshape(4, 5), np.isnan(scores))
    assert [text.get_text() for text in axis.texts if text.get_position() == (4, 3)] == [""]


@pytest.mark.parametrize(
    ("scores", "pattern"),
    [
        (np.full((1, 1), 0.5), r"0\.500"),
        (np.zeros((2, 2)), "0"),
        (np.full((2, 2), np.nan), ""),
        (np.array([[1234.5, 99.0]]), r"\d+"),
        (np.array([[3.2e-9, 1e-9]]), r"\d(\.\d)?e-09"),
        (np.array([[1.0, 0.5], [0.25, 1.0]]), r"\d\.\d\d"),
    ],
)
def test_scores_of_any_size_are_drawn(scores, pattern):
    lines, columns = scores.shape
    picture = search(lines, columns, scores=scores, chosen=(0, 0))
    made = learning_figure([picture], "")
    made.draw_without_rendering()
    assert all(re.fullmatch(pattern, text.get_text()) for text in made.axes[0].texts)
    assert len(made.axes[0].texts) == scores.size


def test_large_searches_have_no_texts():
    picture = search(30, 60, chosen=(29, 59))
    made = learning_figure([picture], "A wide search")
    assert not made.axes[0].texts
    made.draw_without_rendering()
