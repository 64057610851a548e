"""Pictures of many tests at once: all pairs of columns, or all columns with a target. Needs matplotlib."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.report.plot import COLOUR_Y, NEUTRAL, figure_class, literal
from kerntest.report.summaries.words import counted, number, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.report.results.independence_record import ScreenResult

# One hue from pale to dark: no colour vision is needed to read it, and no grey occurs in it. Its palest part is left
# out, so that an effect of 0 is not the blank of the diagonal.
COLOUR_MAP, PALEST = "Blues", 0.12
HATCHED: dict[str, Any] = {"facecolor": "#D9D9D9", "edgecolor": "#9A9A9A", "hatch": "////", "linewidth": 0}
# Up to so many columns, the cells have room for their values; on darker cells than this, white has more contrast.
COLUMNS_WITH_VALUES, WHITE_ABOVE = 12, 0.68
BARS_DRAWN = 30
POINTS_PER_INCH = 72


def screen_figure(result: ScreenResult) -> Any:
    """Return a matplotlib figure of a screen: a heat map, or a ranking where there is a target."""
    if result.target is not None:
        effect, p = np.array([(pair.effect_size, pair.p_adjusted) for pair in result.pairs], dtype=np.float64).T
        return ranking_figure([pair.x for pair in result.pairs], effect, p, result.alpha, result.decision)
    place = {name: k for k, name in enumerate(result.columns)}
    effect, p = np.full((2, len(place), len(place)), np.nan)
    for pair in result.pairs:
        i, j = place[pair.x], place[pair.y]
        effect[i, j] = effect[j, i] = np.nan if pair.effect_size is None else pair.effect_size
        p[i, j] = p[j, i] = np.nan if pair.p_adjusted is None else pair.p_adjusted
    return pairs_figure(list(place), effect, p, result.alpha, result.decision)


def pairs_figure(
    names: Sequence[str], effect: NDArray[np.float64], adjusted_p: NDArray[np.float64], alpha: float, title: str
) -> Any:
    """Return a matplotlib figure of all pairs of columns: a heat map of effect sizes, significant pairs marked.

    Cost: O(p^2). The picture grows with p, up to a limit; legible to about 60 columns.
    """
    columns = len(names)
    side = _map_side(columns)
    cell = POINTS_PER_INCH * side / max(columns, 1)
    label_size, longest, step = _labels(columns, cell)
    room = min(longest, max((len(visible(name)) for name in names), default=0)) * 0.6 * label_size / POINTS_PER_INCH
    made = figure_class()(figsize=(side + room + 1.4, side + room + 1.1), layout="constrained")
    axis = made.subplots()
    tested = ~np.isnan(effect) & ~np.isnan(adjusted_p) & ~np.eye(columns, dtype=np.bool_)
    significant = tested & (adjusted_p <= alpha)
    drawn = _draw_cells(axis, effect, tested, cell)
    if columns <= COLUMNS_WITH_VALUES:
        _write_values(axis, effect, tested)
    _mark(axis, significant, cell)
    shown = range(0, columns, step)
    labels = [literal(abridged(names[place], longest)) for place in shown]
    axis.set_xticks(shown, labels, rotation=90, fontsize=label_size)
    axis.set_yticks(shown, labels, fontsize=label_size)
    bar = made.colorbar(drawn, ax=axis, shrink=0.7, aspect=25, pad=0.02)
    bar.set_label("effect size")
    bar.outline.set_visible(False)
    handles = [_significant_handle(int(np.count_nonzero(np.triu(significant))), alpha)]
    if (~tested).sum() > columns:
        handles.append(_untested_handle())
    made.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    _write_title(made, title)
    return made


def ranking_figure(
    names: Sequence[str], effect: NDArray[np.float64], adjusted_p: NDArray[np.float64], alpha: float, title: str
) -> Any:
    """Return a matplotlib figure of the columns that depend most on a target: a bar for each, the largest on top."""
    (tested,) = np.nonzero(~np.isnan(effect) & ~np.isnan(adjusted_p))
    # Equal effects by p-value, then in the order of the table.
    ranked = tested[np.lexsort([adjusted_p[tested], -effect[tested]])]
    shown = ranked[:BARS_DRAWN]
    made = figure_class()(figsize=(7.0, 1.5 + 0.26 * max(len(shown), 3)), layout="constrained")
    axis = made.subplots()
    heights = np.arange(len(shown))
    significant = adjusted_p[shown] <= alpha
    axis.barh(heights, effect[shown], height=0.72, color=np.where(significant, COLOUR_Y, NEUTRAL))
    for height, place in zip(heights, shown, strict=True):
        p_text = f"p = {number(adjusted_p[place], 2)}" if adjusted_p[place] > 0 else "p < 1e-300"
        axis.annotate(
            f"{effect[place]:.2f}   {p_text}",
            (effect[place], height),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axis.set_yticks(heights, [literal(abridged(names[place], 32)) for place in shown], fontsize=8)
    axis.set_xlim(0, 1)
    axis.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    axis.set_xlabel("effect size; beside it the adjusted p-value")
    axis.tick_params(axis="y", length=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(_coverage(len(shown), len(tested), len(names)), fontsize=9, loc="left")
    made.legend(handles=_bar_handles(alpha), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    _write_title(made, title)
    return made


def abridged(text: str, most: int) -> str:
    """Return printable text of at most `most` characters, cut in the middle: names often differ at their ends."""
    text = visible(text)
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def _map_side(columns: int) -> float:
    """Return the side of the map in inches: cells of 0.6 inch, smaller with many columns."""
    return max(float(np.clip(0.6 * columns, 2.4, 9.0)), min(0.17 * columns, 16.0))


def _labels(columns: int, cell: float) -> tuple[float, int, int]:
    """Return the size of the labels in points, their longest length, and every how many columns there is one."""
    size = float(np.clip(0.75 * cell, 5.0, 9.0))
    longest = 24 if columns <= COLUMNS_WITH_VALUES else 20
    return size, longest, max(1, int(np.ceil(1.1 * size / cell)))


def _draw_cells(axis: Any, effect: NDArray[np.float64], tested: NDArray[np.bool_], cell: float) -> Any:
    """Draw the map and return what the colour bar needs: untested cells show the hatched ground, the diagonal none."""
    from matplotlib import colormaps  # noqa: PLC0415 - only to draw
    from matplotlib.colors import ListedColormap  # noqa: PLC0415 - only to draw
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - only to draw

    columns = len(effect)
    edges = np.arange(columns + 1) - 0.5
    axis.add_patch(Rectangle((-0.5, -0.5), columns, columns, zorder=0, **HATCHED))
    for place in edges[:-1]:
        axis.add_patch(Rectangle((place, place), 1, 1, color="white", linewidth=0, zorder=0.5))
    drawn = axis.pcolormesh(
        edges,
        edges,
        np.ma.array(effect, mask=~tested),
        cmap=ListedColormap(colormaps[COLOUR_MAP](np.linspace(PALEST, 1.0, 256))),
        vmin=0,
        vmax=1,
        edgecolors="white",
        linewidth=min(0.5, 0.03 * cell),
    )
    axis.set_xlim(-0.5, columns - 0.5)
    axis.set_ylim(columns - 0.5, -0.5)
    axis.set_aspect("equal")
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    return drawn


def _write_values(axis: Any, effect: NDArray[np.float64], tested: NDArray[np.bool_]) -> None:
    for row, column in np.argwhere(tested):
        value = effect[row, column]
        colour = "white" if value > WHITE_ABOVE else "black"
        axis.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)


def _mark(axis: Any, significant: NDArray[np.bool_], cell: float) -> None:
    """Put a dot into each significant cell; where cells have values, into their upper right corner."""
    rows, columns = np.nonzero(significant)
    away = 0.34 if len(significant) <= COLUMNS_WITH_VALUES else 0.0
    diameter = float(np.clip(0.32 * cell, 1.5, 6.0))
    axis.scatter(
        columns + away, rows - away, s=diameter**2, color=COLOUR_Y, edgecolor="white", linewidth=0.08 * diameter
    )


def _significant_handle(count: int, alpha: float) -> Any:
    from matplotlib.lines import Line2D  # noqa: PLC0415 - only to draw

    label = f"adjusted p <= {number(alpha)}: {counted(count, 'pair')}"
    return Line2D([], [], linestyle="none", marker="o", color=COLOUR_Y, markersize=5, label=label)


def _untested_handle() -> Any:
    from matplotlib.patches import Patch  # noqa: PLC0415 - only to draw

    return Patch(label="not tested", **HATCHED)


def _bar_handles(alpha: float) -> list[Any]:
    from matplotlib.patches import Patch  # noqa: PLC0415 - only to draw

    text = number(alpha)
    return [
        Patch(color=COLOUR_Y, label=f"adjusted p <= {text}"),
        Patch(color=NEUTRAL, label=f"adjusted p > {text}"),
    ]


def _coverage(shown: int, tested: int, columns: int) -> str:
    """Return which columns have a bar, as a title."""
    parts = [counted(tested, "column") if shown == tested else f"first {shown} of {counted(tested, 'column')}"]
    if tested < columns:
        parts.append(f"{columns - tested} not tested")
    return ", ".join(parts)


def _write_title(made: Any, title: str) -> None:
    """Write the title over the figure, in as many lines as it takes."""
    size = 11
    width = int(made.get_figwidth() * POINTS_PER_INCH / (0.62 * size))
    made.suptitle("\n".join(literal(line) for line in textwrap.wrap(visible(title), width)), fontsize=size)
