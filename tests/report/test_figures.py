"""What all pictures share: formats, names of any kind, titles, dates and bins."""

import re
from itertools import pairwise

import numpy as np
import pytest
from pictures import HOSTILE, panels, tick_labels

pytest.importorskip("matplotlib")

from matplotlib import font_manager as manager
from matplotlib.text import Text

from kerntest.report.panels import (
    _fonts_with,
    abridged,
    bin_edges,
    class_look,
    draw_bars,
    evenly,
    figure,
    in_rows,
    label_cells,
    write_dates,
    write_picture,
)

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def bars(axis):
    draw_bars(axis, [abridged(name, 20) for name in HOSTILE], np.arange(8.0), [f"{place}" for place in range(8)])
    axis.set_title("bars")


@pytest.mark.parametrize("kind", MAGIC)
def test_a_picture_says_not_when_it_was_drawn_and_its_parts_keep_their_names(kind, tmp_path):
    title = "A model of $\\frac{1}{0$ and \n " + "y" * 400
    for name in ("one", "two"):
        write_picture(tmp_path / f"{name}.{kind}", figure([[bars]], title, caption=HOSTILE[3] * 40))
    drawn, again = (path.read_bytes() for path in tmp_path.iterdir())
    assert drawn.startswith(MAGIC[kind])
    assert len(drawn) > 3000
    assert drawn == again
    assert not re.search(rb"<dc:date>|CreationDate", drawn)


def test_names_are_shown_as_they_are_and_bars_of_equal_names_are_two():
    made = figure([[bars]], "$x$", caption="z" * 500)
    (axis,) = panels(made)
    # One backslash keeps a dollar from starting a formula; a second one would be seen.
    assert tick_labels(axis, "y")[:2] == ["price \\$ per \\$", "two\\nlines"]
    assert made.get_suptitle() == "\\$x\\$"
    # A caption takes a few lines before it is cut.
    assert made.get_supxlabel().splitlines() == [*["z" * 70] * 3, "…"]
    assert len({bar.get_y() for bar in axis.patches}) == 8


def test_panels_stand_in_rows_and_one_alone_fills_its_row():
    assert in_rows([bars] * 5, 3) == [[bars] * 3, [bars, bars, None]]
    made = figure([[bars, bars], [bars]], "")
    with pytest.warns(UserWarning, match="Glyph"):
        made.draw_without_rendering()
    first, second, alone = (axis.get_position() for axis in panels(made))
    assert first.y0 == second.y0 > alone.y1
    assert alone.x1 - alone.x0 > 0.8 > second.x0 > first.x1


@pytest.mark.parametrize(("low", "high"), [(24000, 168000), (-0.123456, -0.123411), (0, 3), (1.2e9, 1.9e9)])
def test_numbers_below_a_panel_do_not_run_together(low, high):
    def line(axis):
        axis.plot([low, high], [0, 1])
        axis.set_title("line")

    made = figure([[line, line]], "", width=3.8)
    made.draw_without_rendering()
    for axis in panels(made):
        boxes = [one.get_window_extent() for one in axis.get_xticklabels() if one.get_text()]
        boxes = [box for box in boxes if axis.bbox.x0 <= (box.x0 + box.x1) / 2 <= axis.bbox.x1]
        assert len(boxes) >= 2
        # At least half of a digit is between them.
        assert all(one.x1 + 4 < after.x0 for one, after in pairwise(boxes))


def test_what_is_compared_stays_in_one_line_of_a_title():
    for words in range(2, 40):
        title = figure([[bars]], f"{'word ' * words}(corrected by Holm, alpha = 0.05). p <= 0.01").get_suptitle()
        assert "alpha = 0.05)." in title
        assert "p <= 0.01" in title


@pytest.mark.parametrize(
    ("name", "most", "shown"),
    [
        ("price", 5, "price"),
        ("balance_of_2021", 8, "bala…021"),
        ("a\nb", 4, "a\\nb"),
    ],
)
def test_names_are_cut_in_the_middle(name, most, shown):
    assert abridged(name, most) == shown


def test_evenly_spread_places():
    np.testing.assert_array_equal(evenly(3, 5), [0, 1, 2])
    for count, most in ((10, 4), (1001, 1000), (5, 5)):
        places = evenly(count, most)
        assert len(np.unique(places)) == most
        assert (places[0], places[-1]) == (0, count - 1)


def test_many_classes_are_told_apart_by_colour_and_marker():
    assert len({tuple(class_look(place).values()) for place in range(56)}) == 56


def test_labels_of_many_cells_thin_out():
    made = figure([[lambda axis: label_cells(axis, [f"class {k}" for k in range(100)], list("abc"))]], "")
    assert tick_labels(made.axes[0], "x") == [f"class {k}" for k in range(0, 100, 4)]
    assert made.axes[0].get_xticks().tolist() == list(range(0, 100, 4))
    assert tick_labels(made.axes[0], "y") == list("abc")


@pytest.mark.parametrize(("days", "known"), [((19_723, 19_823), True), ((2_932_800, 2_933_000), False)])
def test_days_are_written_as_dates_where_the_calendar_has_them(days, known):
    def draw(axis):
        axis.plot(days, [0, 1])
        assert write_dates(axis.xaxis, *days) == known

    made = figure([[draw]], "")
    made.draw_without_rendering()
    texts = [made.axes[0].xaxis.get_offset_text().get_text(), *tick_labels(made.axes[0], "x")]
    assert any("2024" in text for text in texts) == known


@pytest.mark.parametrize("value", [0.0, 0.25, -1e-9])
def test_bins_have_a_width_even_where_values_differ_by_rounding(value):
    values = np.array([value, np.nextafter(value, 1.0), value])
    edges = bin_edges(values, 20)
    assert (np.diff(edges) > 0).all()
    assert np.histogram(values, edges)[0].sum() == 3


def drawn_with(letters, folder):
    """Draw a title with letters, and return the texts and the families of their fonts."""
    made = figure([[lambda axis: axis.set_title(letters)]], "a title")
    write_picture(folder / "p.png", made)
    return {one.get_text(): one.get_fontfamily() for one in made.findobj(Text) if one.get_text()}


def test_letters_that_the_font_lacks_are_drawn_by_another_or_told(tmp_path, monkeypatch):
    plain = drawn_with("plain", tmp_path)
    # Of the fonts that come with matplotlib one has this letter, another has a box for every one.
    found = drawn_with("\ue0a2", tmp_path)
    assert set(plain) - {"plain"} <= set(found)
    assert plain["a title"] == ["sans-serif"]
    none = drawn_with("\U00013000", tmp_path)
    assert any(text.startswith("Boxes are letters that no font of this machine has: 1 of them") for text in none)
    assert not any(text.startswith("Boxes") for text in plain)
    fonts = [
        font
        for font in manager.fontManager.ttflist
        if font.name in {"STIXGeneral", "DejaVu Sans", "Last Resort High-Efficiency"}
    ]
    monkeypatch.setattr(manager.fontManager, "ttflist", fonts)
    letter = next(chr(code) for code in charmap("STIXGeneral") if code not in charmap("DejaVu Sans"))
    assert _fonts_with({letter}) == (["STIXGeneral"], set())
    assert _fonts_with({letter, "\U00013000"}) == (["STIXGeneral"], {"\U00013000"})
    shown = drawn_with(letter, tmp_path)
    assert shown[letter] == shown["a title"] == ["sans-serif", "STIXGeneral"]
    assert not any(text.startswith("Boxes") for text in shown)


def charmap(family):
    return manager.get_font(manager.findfont(family)).get_charmap()
