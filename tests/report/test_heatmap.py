"""Pictures of a screen: all pairs of columns, and all columns with a target."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from kerntest.report.heatmap import BARS_DRAWN, abridged, pairs_figure, ranking_figure
from kerntest.report.plot import COLOUR_Y, NEUTRAL, picture_bytes

HOSTILE = ["price $ per $", "two\nlines", "x" * 100, "$\\frac{1}{0$", "", "a\tb\x1b[31m", "\\$", "_^{}"]
MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def screen(columns, seed=0):
    """Return names, effect sizes and adjusted p-values of all pairs of some columns."""
    rng = np.random.default_rng(seed)
    names = [f"column_number_{place}_with_a_long_name" for place in range(columns)]
    effect = np.triu(rng.random((columns, columns)), 1)
    p = np.triu(rng.random((columns, columns)) ** 3, 1)
    return names, effect + effect.T, p + p.T


def dots(axis):
    """Return the cells (row, column) that carry a dot."""
    (scatter,) = [drawn for drawn in axis.collections if type(drawn).__name__ == "PathCollection"]
    return {(round(float(y) + 0.1), round(float(x) - 0.1)) for x, y in scatter.get_offsets()}


def tick_labels(axis, which):
    return [label.get_text() for label in getattr(axis, f"get_{which}ticklabels")()]


@pytest.mark.parametrize("columns", [1, 2, 60])
def test_maps_are_drawn_for_any_number_of_columns(columns):
    made = pairs_figure(*screen(columns), 0.05, "All pairs")
    made.draw_without_rendering()
    assert len(tick_labels(made.axes[0], "x")) == columns
    # The map is a square: the bar of colours beside it takes more room than the legend below.
    assert made.get_figwidth() > made.get_figheight()


@pytest.mark.parametrize(("kind", "whole"), [("png", True), ("svg", False), ("pdf", True)])
def test_every_format_is_drawn(kind, whole):
    names, effect, p = screen(4)
    effect[1, 2] = effect[2, 1] = np.nan
    made = (
        pairs_figure(names, effect, p, 0.05, "All pairs")
        if whole
        else ranking_figure(names, effect[0], p[0], 0.05, "With the target")
    )
    assert picture_bytes(made, kind).startswith(MAGIC[kind])


@pytest.mark.parametrize("columns", [8, 20])
def test_significant_pairs_are_marked_and_no_others(columns):
    names, effect, p = screen(columns)
    p[0, 1] = p[1, 0] = 0.05
    effect[2, 3] = effect[3, 2] = p[2, 3] = p[3, 2] = np.nan
    made = pairs_figure(names, effect, p, 0.05, "All pairs")
    expected = {(i, j) for i in range(columns) for j in range(columns) if i != j and p[i, j] <= 0.05}
    assert (0, 1) in expected
    assert dots(made.axes[0]) == expected
    labels = [text.get_text() for text in made.legends[0].get_texts()]
    assert labels == [f"adjusted p <= 0.05: {len(expected) // 2} pairs", "not tested"]


def test_values_are_written_where_there_is_room():
    names, effect, p = screen(12)
    effect[4, 7] = effect[7, 4] = np.nan
    written = pairs_figure(names, effect, p, 0.05, "All pairs").axes[0].texts
    assert len(written) == 12 * 11 - 2
    for text in written:
        column, row = text.get_position()
        assert text.get_text() == f"{effect[row, column]:.2f}"
    assert not pairs_figure(*screen(13), 0.05, "All pairs").axes[0].texts


def test_what_was_not_tested_is_no_colour_of_the_map():
    names, effect, p = screen(4)
    p[0, 3] = p[3, 0] = np.nan
    np.fill_diagonal(effect, 1.0)
    drawn = pairs_figure(names, effect, p, 0.05, "").axes[0].collections
    (mesh,) = [layer for layer in drawn if type(layer).__name__ == "QuadMesh"]
    masked = np.ma.getmaskarray(mesh.get_array()).reshape(4, 4)
    np.testing.assert_array_equal(masked, np.eye(4, dtype=bool) | np.isnan(p))


def test_labels_thin_out_before_they_overlap():
    assert len(tick_labels(pairs_figure(*screen(40), 0.05, "").axes[0], "y")) == 40
    names, effect, p = screen(300)
    made = pairs_figure(names, effect, p, 0.05, "")
    labels = tick_labels(made.axes[0], "y")
    assert 50 < len(labels) < 300
    assert made.get_figheight() < 20
    assert labels[1] in {abridged(name, 20) for name in names[2:4]}


def test_hostile_names_are_shown_as_they_are():
    count = len(HOSTILE)
    _, effect, p = screen(count)
    title = "All pairs of $\\frac{1}{0$ and \n " + "y" * 300  # as a formula it could not be drawn
    made = pairs_figure(HOSTILE, effect, p, 0.05, title)
    made.draw_without_rendering()
    labels = tick_labels(made.axes[0], "x")
    assert labels == tick_labels(made.axes[0], "y")
    assert labels[1] == "two\\nlines"
    assert labels[2] == "x" * 12 + "…" + "x" * 11
    ranked = ranking_figure(HOSTILE, effect[0], p[0], 0.05, title)
    ranked.draw_without_rendering()


def test_nothing_tested_can_be_drawn():
    for columns in (1, 12):
        nothing = np.full((columns, columns), np.nan)
        names = screen(columns)[0]
        made = pairs_figure(names, nothing, nothing, 0.05, "All pairs")
        assert dots(made.axes[0]) == set()
        made.draw_without_rendering()
        made = ranking_figure(names, nothing[0], nothing[0], 0.05, "With the target")
        assert not made.axes[0].patches
        made.draw_without_rendering()


def test_bars_are_ranked_and_coloured():
    names = ["c", "a", "untested", "b", "tie"]
    effect = np.array([0.2, 0.9, np.nan, 0.5, 0.5])
    p = np.array([0.4, 1e-300, np.nan, 0.06, 0.05])
    axis = ranking_figure(names, effect, p, 0.05, "With the target").axes[0]
    assert tick_labels(axis, "y") == ["a", "tie", "b", "c"]
    assert [bar.get_width() for bar in axis.patches] == [0.9, 0.5, 0.5, 0.2]
    from matplotlib.colors import to_rgba  # noqa: PLC0415 - optional

    colours = [to_rgba(colour) for colour in (COLOUR_Y, COLOUR_Y, NEUTRAL, NEUTRAL)]
    assert [bar.get_facecolor() for bar in axis.patches] == colours
    assert [text.get_text() for text in axis.texts] == [
        "0.90   p = 1e-300",
        "0.50   p = 0.05",
        "0.50   p = 0.06",
        "0.20   p = 0.4",
    ]
    assert axis.get_title(loc="left") == "4 columns, 1 not tested"


def test_a_p_value_that_underflowed_is_not_shown_as_0():
    axis = ranking_figure(["a"], np.array([1.0]), np.array([0.0]), 0.05, "").axes[0]
    assert axis.texts[0].get_text() == "1.00   p < 1e-300"


def test_columns_of_one_name_each_have_their_bar():
    names = ["x" * 50 + "a" * 50] * 3
    axis = ranking_figure(names, np.array([0.1, 0.2, 0.3]), np.full(3, 0.5), 0.05, "").axes[0]
    assert len({bar.get_y() for bar in axis.patches}) == 3


def test_a_long_ranking_says_that_it_is_cut():
    names, effect, p = screen(60)
    axis = ranking_figure(names, effect[0], p[0], 0.05, "").axes[0]
    assert len(axis.patches) == BARS_DRAWN
    assert [bar.get_width() for bar in axis.patches] == sorted(effect[0], reverse=True)[:BARS_DRAWN]
    assert axis.get_title(loc="left") == "first 30 of 60 columns"


def test_names_are_cut_in_the_middle():
    assert abridged("price", 5) == "price"
    assert abridged("balance_of_2021", 9) == "bala…2021"
    assert abridged("balance_of_2021", 8) == "bala…021"
    assert abridged("a\nb", 4) == "a\\nb"
