"""Figures of panels, and what panels have in common. Needs matplotlib, the extra `plot`.

A panel is a function that draws into an axis. Tests and learners draw their own; six kinds make them all: histograms,
curves over a column, rows in a plane, regions of a plane, cells of a table, and bars.
"""

from __future__ import annotations

import io
import os
import re
import textwrap
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerntest.engines.engine import doing
from kerntest.errors import MissingExtraError, UsageError, counted
from kerntest.report.summaries.words import visible
from kerntest.report.write import STANDARD_OUTPUT, check_writable, write_file

Array: TypeAlias = NDArray[np.float64]
Panel: TypeAlias = Callable[[Any], None]

# Okabe and Ito, which people with any colour vision tell apart, in an order in which the first few differ most, and a
# violet and a brown as far from these as they are from one another: as many as a legend names. Seven markers with ten
# colours tell 70 classes apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442", "#4800A8", "#603000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
COLOUR_X, COLOUR_Y, NEUTRAL = *COLOURS[:2], "#7A7A7A"
# One hue from pale to dark: no colour vision is needed to read it, and no grey occurs in it. Its palest part is left
# out, so that a value of 0 is not the blank of a diagonal. On darker cells than this, white has more contrast.
SHADES, PALEST, WHITE_ABOVE = "Blues", 0.12, 0.68
HATCHED: dict[str, Any] = {"facecolor": "#D9D9D9", "edgecolor": "#9A9A9A", "hatch": "////", "linewidth": 0}
LEGEND: dict[str, Any] = {"framealpha": 0.85, "edgecolor": "none", "fontsize": 8}
# By their endings, and what leaves out when a picture was drawn.
FORMATS: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
POINTS_PER_INCH, TITLE_SIZE, CAPTION_PER_INCH, CAPTION_LINES = 72, 11, 13, 4
# Of the width of a panel, that of its axis at least; points that a digit takes there.
SHARE_OF_AXIS, LETTER = 0.7, 6.4
# As many numbers as matplotlib writes below an axis.
MOST_NUMBERS = 9
_COMPARED = re.compile(r"\S+ (=|<=|>=|<|>) \S+")
POINTS_DRAWN, CLASSES_IN_LEGEND = 2000, 10
# Up to so many cells a side, there is room for what they say; of more than these, every so manieth is named.
CELLS_WITH_TEXT, CELLS_PARTED, CELLS_NAMED = 12, 20, 30
# What matplotlib warns of when it draws a letter as a box.
_LACKING = re.compile(r"Glyph (\d+) .* missing from")
# Fonts of boxes for all letters, and of coloured pictures, which cannot be drawn; fonts that are likely to have any letter.
_NO_LETTERS, FONTS_LOOKED_AT = re.compile("Last ?Resort|Colou?r|Adobe Blank", re.IGNORECASE), 200
_MANY_LETTERS = re.compile(
    "CJK|Unicode|Noto Sans|Source Han|Gothic|Hei|Hiragino|Meiryo|PingFang|Unifont|Symbola", re.IGNORECASE
)
# Days of the years that the calendar of matplotlib has: 1 to 9999.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896


def matplotlib(module: str) -> Any:
    """Return a module of matplotlib, which is loaded by pictures only."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise MissingExtraError(
            "pictures need matplotlib, which is not installed",
            hint="`pip install '.[plot]'` in the folder of kerntest, or `pip install matplotlib`",
        ) from error


def figure(
    rows: Sequence[Sequence[Panel | None]],
    title: str,
    *,
    width: float = 5.4,
    heights: Sequence[float] | float = 4.0,
    caption: str = "",
) -> Any:
    """Return a figure of rows of panels, `width` inches each; a panel alone in its row fills it, None stays empty."""
    columns = max(map(len, rows))
    heights = list(heights) if isinstance(heights, Sequence) else [heights] * len(rows)
    # Drawn without a window or a global state.
    made = matplotlib("figure").Figure(figsize=(width * columns, sum(heights) + 0.4), layout="constrained")
    made.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
    grid = made.add_gridspec(len(rows), columns, height_ratios=heights)
    for line, panels in enumerate(rows):
        for place, draw in enumerate(panels):
            if draw is not None:
                axis = made.add_subplot(grid[line, place if len(panels) > 1 else slice(None)])
                axis.spines[["top", "right"]].set_visible(False)
                draw(axis)
                _space_ticks(axis, width * (columns if len(panels) == 1 else 1))
    room = int(width * columns * POINTS_PER_INCH / (0.58 * TITLE_SIZE))
    # What is compared stays in one line.
    together = _COMPARED.sub(lambda found: found[0].replace(" ", "\xa0"), visible(title))
    wrapped = textwrap.wrap(together, room, max_lines=4, placeholder=" …")
    made.suptitle("\n".join(literal(line.replace("\xa0", " ")) for line in wrapped), fontsize=TITLE_SIZE)
    if caption:
        most = int(width * columns * CAPTION_PER_INCH)
        wrapped = textwrap.wrap(visible(caption), most, max_lines=CAPTION_LINES, placeholder=" …")
        made.supxlabel("\n".join(map(literal, wrapped)), fontsize=9)
    return made


def _space_ticks(axis: Any, width: float) -> None:
    """Leave room between the numbers below a panel, of which matplotlib thinks that they have three digits."""
    ticker, below = matplotlib("ticker"), axis.xaxis
    if not isinstance(below.get_major_locator(), ticker.AutoLocator):
        return
    low, high = sorted(axis.get_xlim())
    seen = [place for place in below.get_majorticklocs() if low <= place <= high]
    longest = max(map(len, below.get_major_formatter().format_ticks(seen)), default=0)
    room = int(width * SHARE_OF_AXIS * POINTS_PER_INCH / (LETTER * (longest + 1)))
    # The layout comes later, and with it may more numbers.
    if room < MOST_NUMBERS:
        below.set_major_locator(ticker.MaxNLocator(max(2, room), steps=[1, 2, 2.5, 5, 10]))


def in_rows(panels: Sequence[Panel], columns: int) -> list[list[Panel | None]]:
    """Return panels in rows, the last one filled with empty places."""
    filled = [*panels, *[None] * (-len(panels) % columns)]
    return [filled[start : start + columns] for start in range(0, len(filled), columns)]


def side_by_side(panels: Sequence[Panel], title: str) -> Any:
    """Return a figure of panels, at most three side by side."""
    return figure(in_rows(panels, len(panels) if len(panels) <= 3 else 2), title, heights=4.6)


def check_picture(path: str | os.PathLike[str]) -> None:
    """Refuse, before anything is computed, a name that is none of a picture, or that nothing can be written under."""
    if _ending(path) not in FORMATS:
        raise UsageError(
            f"a picture cannot be drawn into {os.fspath(path)}",
            hint="end its name in .png, .svg or .pdf",
            code="usage.picture",
            where={"file": os.fspath(path)},
        )
    matplotlib("figure")
    check_writable(os.fspath(path))


def _ending(path: str | os.PathLike[str]) -> str:
    """Return the ending of the name of a picture; the standard output takes a .png."""
    return ".png" if os.fspath(path) == STANDARD_OUTPUT else Path(path).suffix.lower()


def write_picture(path: str | os.PathLike[str], made: Any) -> None:
    """Write a figure in the format that a name asks for, without the time of drawing and with names that stay."""
    ending, stream = _ending(path), io.BytesIO()
    with doing(f"drawing {os.fspath(path)}"):
        _save(made, stream, {"format": ending[1:], "dpi": 150, "metadata": FORMATS[ending]})
    write_file(os.fspath(path), stream.getvalue())


def _save(made: Any, stream: io.BytesIO, told: dict[str, Any]) -> None:
    """Write a figure, again with other fonts where letters are lacking."""
    with import_module("matplotlib").rc_context({"svg.hashsalt": "kerntest"}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made.savefig(stream, **told)
        # Only who has drawn a picture knows which letters its font lacks.
        lacking = {chr(int(found[1])) for one in caught if (found := _LACKING.match(str(one.message)))}
        if not lacking:
            return
        families, boxes = _fonts_with(lacking)
        for text in made.findobj(matplotlib("text").Text):
            text.set_fontfamily([*text.get_fontfamily(), *families])
        if boxes:
            told_of = f"Boxes are letters that no font of this machine has: {len(boxes)} of them"
            made.text(0.004, 0.998, told_of, fontsize=7, va="top", color=NEUTRAL)
        stream.seek(0)
        stream.truncate()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.savefig(stream, **told)


def _fonts_with(letters: set[str]) -> tuple[list[str], set[str]]:
    """Return the families of fonts of this machine that have these letters between them, and letters that none has."""
    manager, left, families = matplotlib("font_manager"), {*letters}, list[str]()
    # Those first that are likely to; the upright and regular one of each family.
    plain = sorted(manager.fontManager.ttflist, key=lambda one: (one.style != "normal", abs(int(one.weight) - 400)))
    fonts = {font.name: font for font in reversed(plain) if not _NO_LETTERS.search(font.name)}.values()
    for font in sorted(fonts, key=lambda one: (_MANY_LETTERS.search(one.name) is None, one.name))[:FONTS_LOOKED_AT]:
        codes: dict[int, int] = {}
        # A font that cannot be read has nothing.
        with suppress(Exception):
            codes = manager.get_font(font.fname).get_charmap()
        if found := {letter for letter in left if ord(letter) in codes}:
            families.append(font.name)
            left -= found
        if not left:
            break
    return families, left


def literal(text: str) -> str:
    """Return text that matplotlib shows as it is: a dollar would start a formula."""
    return visible(text).replace("$", r"\$")


def abridged(text: str, most: int) -> str:
    """Return printable text of at most `most` characters, cut in the middle: names often differ at their ends."""
    text = visible(text)
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def named(text: str, most: int = 40) -> str:
    """Return a name as a picture shows it."""
    return literal(abridged(text, most))


def write_title(axis: Any, heading: str, *remarks: str) -> None:
    """Write what a panel shows, with remarks in brackets on a line of their own."""
    told = "; ".join(named(remark, 70) for remark in remarks if remark)
    axis.set_title(f"{heading}\n({told})" if told else heading, fontsize=10)


def write_dates(axis: Any, low: float, high: float) -> bool:
    """Write days since 1970-01-01 as dates, if the calendar of matplotlib, which counts them so too, has them."""
    known = FIRST_DAY < low < high < LAST_DAY
    if known:
        dates = matplotlib("dates")
        axis.set_major_locator(locator := dates.AutoDateLocator(minticks=3, maxticks=6))
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))
    return known


def write_levels(
    axis: Any, which: str, names: Sequence[str], places: Sequence[int] | None = None, **style: Any
) -> None:
    """Write names at 0, 1, 2, ... or other places of an axis, aslant where they are crowded across."""
    if which == "x" and sum(len(name) + 2 for name in names) > 60:
        style |= {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    at = range(len(names)) if places is None else places
    getattr(axis, f"set_{which}ticks")(at, [literal(name) for name in names], **({"fontsize": 8} | style))


def evenly(count: int, most: int = POINTS_DRAWN) -> NDArray[np.intp]:
    """Return at most so many of `count` places, evenly spread, both ends among them."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(np.intp)


def thinning(shown: int, rows: int, noun: str = "row") -> str:
    """Return that not all rows are drawn, as a remark."""
    return f"{shown:,} of {counted(rows, noun)} drawn" if shown < rows else ""


def point_size(count: int) -> float:
    """Return the size of so many points."""
    return float(np.clip(5000.0 / max(count, 1), 8.0, 26.0))


MOST_BINS = 45


def bins(rows: int) -> int:
    """Return into how many bins a histogram of so many rows is divided."""
    return int(np.clip(1.3 * np.sqrt(rows), 10, MOST_BINS))


def edges_of_values(values: Array) -> Array | None:
    """Return the edges of bins that have one value each, in their middle: of values at few even steps; None of others."""
    different = np.unique(values)
    steps = (different - different[0]) / np.diff(different).min() if len(different) > 1 else np.zeros(1)
    if not 0 < steps[-1] < MOST_BINS or np.abs(steps - np.rint(steps)).max() > 1e-6:
        return None
    step = (different[-1] - different[0]) / np.rint(steps[-1])
    return np.asarray(different[0] + step * (np.arange(np.rint(steps[-1]) + 2) - 0.5))


def bin_edges(values: Array, count: int | None = None) -> Array:
    """Return the edges of bins over values, of a width even where all values are equal but for rounding."""
    low, high = float(values.min()), float(values.max())
    narrowest = 1e-6 * max(abs(low), abs(high)) or 1e-6
    if high - low < narrowest:
        low, high = (low + high - narrowest) / 2, (low + high + narrowest) / 2
    return np.linspace(low, high, (count or bins(len(values))) + 1)


def draw_curve(axis: Any, grid: Array, values: Array, name: str) -> None:
    """Draw a function over what an axis shows, with a scale of its own: 0 at mid height, so that its sign can be read."""
    above = axis.twinx()
    above.spines["top"].set_visible(False)
    (line,) = above.plot(grid, values, color="black", linewidth=1.6, label=name)
    above.axhline(0.0, color="black", linewidth=0.6, linestyle=":")
    above.set_ylabel(name)
    reach = 1.15 * float(np.abs(values).max()) or 1.0
    above.set_ylim(-reach, reach)
    legend_below(axis, [*axis.get_legend_handles_labels()[0], line], ncols=3)


def draw_bars(axis: Any, names: Sequence[str], sizes: Array, texts: Sequence[str] = (), **style: Any) -> None:
    """Draw a bar for each name, by place, since shortened names may be equal, with a text at its end."""
    axis.barh(range(len(names)), sizes, **({"height": 0.72} | style))
    write_levels(axis, "y", names)
    axis.tick_params(axis="y", length=0)
    for place, text in enumerate(texts):
        write_beside(axis, text, (sizes[place], place), 3)


def write_beside(axis: Any, text: str, place: Any, points: float) -> None:
    """Write a text so many points to the right of a place."""
    axis.annotate(text, place, xytext=(points, 0), textcoords="offset points", va="center", fontsize=8)


def draw_cells(axis: Any, values: Array, low: float, high: float, label: str, *, reverse: bool = False) -> None:
    """Draw a heat map of one hue, with its bar; cells without a value show a hatched ground."""
    lines, columns = values.shape
    shades = np.linspace(PALEST, 1.0, 256)[:: -1 if reverse else 1]
    axis.add_patch(matplotlib("patches").Rectangle((-0.5, -0.5), columns, lines, zorder=0, **HATCHED))
    drawn = axis.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(lines + 1) - 0.5,
        np.ma.masked_invalid(values),
        cmap=matplotlib("colors").ListedColormap(import_module("matplotlib").colormaps[SHADES](shades)),
        vmin=low,
        vmax=high,
        edgecolors="white",
        linewidth=0.5 if max(lines, columns) <= CELLS_PARTED else 0.0,
    )
    axis.set(xlim=(-0.5, columns - 0.5), ylim=(-0.5, lines - 0.5))
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    below, above = bool(np.nanmin(values, initial=low) < low), bool(np.nanmax(values, initial=high) > high)
    draw_bar(axis, drawn, label, extend=("neither", "max", "min", "both")[2 * below + above])


def draw_bar(axis: Any, drawn: Any, label: str, **style: Any) -> Any:
    """Say beside an axis which colour is which number, and return the bar."""
    bar = axis.figure.colorbar(drawn, ax=axis, **({"shrink": 0.8, "aspect": 25, "pad": 0.02} | style))
    bar.set_label(named(label))
    bar.outline.set_visible(False)
    return bar


def write_cells(axis: Any, texts: Sequence[Sequence[str]], darkness: Array, *, size: float = 8.0) -> None:
    """Write a text into each cell, white on dark cells, grey where it is nothing."""
    for row, line in enumerate(texts):
        for column, text in enumerate(line):
            colour = "white" if darkness[row, column] > WHITE_ABOVE else NEUTRAL if text == "0" else "black"
            axis.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)


def label_cells(axis: Any, across: Sequence[str], up: Sequence[str]) -> None:
    """Name the columns and the lines of a map; of many every so manieth."""
    for which, names in (("x", across), ("y", up)):
        step = max(1, -(-len(names) // CELLS_NAMED))
        places = range(0, len(names), step)
        write_levels(axis, which, names[::step], places, fontsize=8.0 if len(places) <= CELLS_WITH_TEXT else 6.0)


def class_look(place: int) -> dict[str, str]:
    """Return the colour and the marker of a class."""
    return {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}


def scatter_classes(axis: Any, rows: Array, codes: NDArray[Any], size: float, *, hollow: bool = False) -> None:
    """Draw rows in the colour and with the marker of their class; test rows are hollow, and lie on top."""
    for place in np.unique(codes):
        own, look = rows[codes == place], class_look(place)
        # A hollow mark needs a strong line, a filled one a thin bright edge that parts it from its neighbours.
        edge = {"edgecolor": "white", "linewidth": 0.015 * size, "zorder": 2.0}
        if hollow:
            edge = {"edgecolor": look.pop("color"), "facecolor": "white", "linewidth": 0.6 + 0.02 * size, "zorder": 3.0}
        axis.scatter(own[:, 0], own[:, 1], s=size, **look, **edge)


def mark(label: str, **style: Any) -> Any:
    """Return a mark for a legend."""
    return matplotlib("lines").Line2D([], [], label=label, **({"linestyle": "none", "markersize": 5} | style))


def class_marks(names: Sequence[str], **style: Any) -> list[Any]:
    """Return the marks of the first classes; matplotlib passes over names that start with an underscore."""
    shown = [named(name, 20) for name in names[:CLASSES_IN_LEGEND]]
    marks = [
        mark(f" {name}" if name[:1] == "_" else name, **(class_look(place) | style)) for place, name in enumerate(shown)
    ]
    more = len(names) - len(shown)
    return [*marks, mark(f"and {more} more", marker="none")] if more else marks


def legend_below(axis: Any, handles: Sequence[Any], **style: Any) -> None:
    """Write a legend below the panel: over the rows it would hide some."""
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15), "handletextpad": 0.5, "columnspacing": 1.2}
    axis.legend(handles=handles, frameon=False, fontsize=8, **place, **style)
