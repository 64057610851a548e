"""Pictures of principal components."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgba

from kerntest.report.component_plot import COMPONENTS_DRAWN, ComponentPicture, ScreePicture, draw_components, draw_scree
from kerntest.report.decision_plot import COLOURS
from kerntest.report.learning_plot import learning_figure
from kerntest.report.plot import POINTS_DRAWN, figure_class, picture_bytes

RATIOS = (0.4, 0.25, 0.1)


def axis():
    return figure_class()().add_subplot()


def picture(n=60, width=2, **changes):
    made = {"scores": np.random.default_rng(0).normal(size=(n, width)), "ratios": RATIOS[:width]}
    return ComponentPicture(**(made | changes))


def texts(drawn):
    legend = drawn.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def test_the_axes_say_how_much_each_component_explains():
    drawn = axis()
    draw_components(drawn, picture())
    assert drawn.get_xlabel() == "pc1 (40 % of the variance)"
    assert drawn.get_ylabel() == "pc2 (25 % of the variance)"
    assert sum(len(part.get_offsets()) for part in drawn.collections) == 60
    assert drawn.get_legend() is None


def test_categories_have_colours_and_a_legend_with_the_name_of_the_column():
    codes = np.arange(60) % 3
    drawn = axis()
    draw_components(drawn, picture(color="kind $", values=codes, classes=("a", "_b", "c")))
    assert texts(drawn) == ["a", " _b", "c"]
    assert drawn.get_legend().get_title().get_text() == r"kind \$"
    assert [tuple(part.get_facecolor()[0]) for part in drawn.collections] == [to_rgba(one) for one in COLOURS[:3]]
    assert [len(part.get_offsets()) for part in drawn.collections] == [20, 20, 20]


def test_many_categories_are_counted_in_the_legend():
    drawn = axis()
    draw_components(
        drawn, picture(color="k", values=np.arange(60) % 12, classes=tuple(f"class {place}" for place in range(12)))
    )
    assert texts(drawn)[-1] == "and 4 more"


def test_numbers_have_a_bar_and_dates_are_written_as_such():
    made = figure_class()(layout="constrained")
    drawn = made.add_subplot()
    draw_components(drawn, picture(color="price", values=np.linspace(5, 9, 60)))
    bar = made.axes[1]
    assert bar.get_ylabel() == "price"
    assert drawn.collections[0].get_array().max() == 9
    made = figure_class()(layout="constrained")
    draw_components(made.add_subplot(), picture(color="day", values=np.linspace(20_000, 20_100, 60), dates=True))
    made.canvas.draw()
    labels = [label.get_text() for label in made.axes[1].get_yticklabels()]
    assert any(label.startswith("2024-") for label in labels)


def test_of_very_many_rows_some_are_drawn_and_it_is_said():
    drawn = axis()
    draw_components(drawn, picture(n=POINTS_DRAWN + 500))
    assert len(drawn.collections[0].get_offsets()) == POINTS_DRAWN
    assert "2,000 of 2,500 rows drawn" in drawn.get_title()


@pytest.mark.parametrize(
    "colouring",
    [{}, {"color": "k", "values": np.arange(60) % 2, "classes": ("a", "b")}, {"color": "n", "values": np.arange(60.0)}],
    ids=["none", "categories", "numbers"],
)
def test_one_component_alone_is_drawn_too(colouring):
    drawn = axis()
    draw_components(drawn, picture(width=1, **colouring))
    assert drawn.get_xlabel() == "pc1 (40 % of the variance)"
    assert drawn.get_ylabel() == ("n" if colouring.get("color") == "n" else "rows")
    heights = sum(patch.get_height() for patch in drawn.patches)
    assert heights in {60, 60 + 30, 0}


def test_the_scree_shows_each_share_and_their_sum():
    drawn = axis()
    draw_scree(drawn, ScreePicture(RATIOS, 0.75))
    np.testing.assert_allclose([bar.get_height() for bar in drawn.patches], [40, 25, 10], rtol=1e-12, atol=0)
    np.testing.assert_allclose(drawn.lines[0].get_ydata(), [40, 65, 75], rtol=1e-12, atol=0)
    assert drawn.get_title() == "Scree: 75 % explained"
    assert [text.get_text() for text in drawn.texts] == ["40", "25", "10"]


def test_of_very_many_components_the_first_are_drawn_and_it_is_said():
    drawn = axis()
    ratios = tuple(np.full(80, 0.01))
    draw_scree(drawn, ScreePicture(ratios, 0.8))
    assert len(drawn.patches) == COMPONENTS_DRAWN
    assert "the first 50 of 80" in drawn.get_title()


HOSTILE = ("price $ per $", "two\nlines", "x" * 100, "$\\frac{1}{0$", "", "_^{}")


# Of the first two each stands at every place: the others differ from them in what `literal` does, one for all places.
@pytest.mark.parametrize(
    ("kind", "names"), [("svg", [HOSTILE[2]] * 6), ("pdf", [HOSTILE[3]] * 6), ("png", [*HOSTILE[3:], *HOSTILE[:3]])]
)
def test_any_name_can_be_drawn(kind, names):
    color, *classes, title = names
    rows = picture(color=color, values=np.arange(60) % 4, classes=(*classes[:3], f"{classes[3]}2"))
    assert picture_bytes(learning_figure((rows, ScreePicture(RATIOS, 0.75)), title), kind)
