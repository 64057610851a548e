"""The picture of a screen: a heat map of all pairs of columns, or a ranking of columns with a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.report.panels import (
    CELLS_WITH_TEXT,
    COLOUR_Y,
    HATCHED,
    NEUTRAL,
    POINTS_PER_INCH,
    abridged,
    draw_bars,
    draw_cells,
    figure,
    mark,
    matplotlib,
    named,
    write_cells,
)
from kerntest.report.summaries.words import counted, number, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.kernels.base import Array
    from kerntest.report.results.independence_record import ScreenResult

BARS_DRAWN = 30


def screen_figure(result: ScreenResult) -> Any:
    """Return a figure of a screen: a heat map, or a ranking where there is a target."""
    effect, p = np.array([(pair.effect_size, pair.p_adjusted) for pair in result.pairs], dtype=np.float64).T
    if result.target is not None:
        return ranking_figure([pair.x for pair in result.pairs], effect, p, result.alpha, result.decision)
    place = {name: k for k, name in enumerate(result.columns)}
    i, j = ([place[name] for name in names] for names in zip(*((one.x, one.y) for one in result.pairs), strict=True))
    table = np.full((2, len(place), len(place)), np.nan)
    table[:, i, j] = table[:, j, i] = effect, p
    return pairs_figure(list(place), table[0], table[1], result.alpha, result.decision)


def pairs_figure(names: Sequence[str], effect: Array, adjusted_p: Array, alpha: float, title: str) -> Any:
    """Return a heat map of the effect sizes of all pairs of columns, significant pairs marked.

    It grows with the columns, up to a limit; legible to about 60 of them.
    """
    columns = len(names)
    # Cells of 0.6 inch, smaller with many columns.
    side = max(float(np.clip(0.6 * columns, 2.4, 9.0)), min(0.17 * columns, 16.0))
    cell = POINTS_PER_INCH * side / max(columns, 1)
    size, longest = float(np.clip(0.75 * cell, 5.0, 9.0)), 24 if columns <= CELLS_WITH_TEXT else 20
    room = min(longest, max((len(visible(name)) for name in names), default=0)) * 0.6 * size / POINTS_PER_INCH

    def draw(axis: Any) -> None:
        tested = ~np.isnan(effect) & ~np.isnan(adjusted_p) & ~np.eye(columns, dtype=np.bool_)
        shown = np.where(tested, effect, np.nan)
        draw_cells(axis, shown, 0.0, 1.0, "effect size")
        for place in np.arange(columns) - 0.5:
            axis.add_patch(matplotlib("patches").Rectangle((place, place), 1, 1, color="white", lw=0, zorder=0.5))
        if columns <= CELLS_WITH_TEXT:
            write_cells(axis, [["" if np.isnan(one) else f"{one:.2f}" for one in line] for line in shown], shown)
        significant = tested & (adjusted_p <= alpha)
        _mark(axis, significant, cell)
        ticks = range(0, columns, max(1, int(np.ceil(1.1 * size / cell))))
        labels = [named(names[place], longest) for place in ticks]
        axis.set_xticks(ticks, labels, rotation=90, fontsize=size)
        axis.set_yticks(ticks, labels, fontsize=size)
        axis.set_ylim(columns - 0.5, -0.5)
        axis.set_aspect("equal")
        pairs = counted(int(np.count_nonzero(np.triu(significant))), "pair")
        handles = [mark(f"adjusted p <= {number(alpha)}: {pairs}", marker="o", color=COLOUR_Y)]
        if (~tested).sum() > columns:
            handles.append(matplotlib("patches").Patch(label="not tested", **HATCHED))
        axis.figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)

    return figure([[draw]], title, width=side + room + 1.4, heights=side + room + 0.7)


def _mark(axis: Any, significant: Any, cell: float) -> None:
    """Put a dot into each significant cell; where cells have values, into their upper right corner."""
    rows, columns = np.nonzero(significant)
    away = 0.34 if len(significant) <= CELLS_WITH_TEXT else 0.0
    diameter = float(np.clip(0.32 * cell, 1.5, 6.0))
    style = {"color": COLOUR_Y, "edgecolor": "white", "linewidth": 0.08 * diameter}
    axis.scatter(columns + away, rows - away, s=diameter**2, **style)


def ranking_figure(names: Sequence[str], effect: Array, adjusted_p: Array, alpha: float, title: str) -> Any:
    """Return a ranking of the columns that depend most on a target: a bar for each, the largest on top."""
    (tested,) = np.nonzero(~np.isnan(effect) & ~np.isnan(adjusted_p))
    # Equal effects by p-value, then in the order of the table.
    shown = tested[np.lexsort([adjusted_p[tested], -effect[tested]])][:BARS_DRAWN]

    def draw(axis: Any) -> None:
        texts = [f"{effect[place]:.2f}   {_p_text(adjusted_p[place])}" for place in shown]
        colours = np.where(adjusted_p[shown] <= alpha, COLOUR_Y, NEUTRAL)
        draw_bars(axis, [abridged(names[place], 32) for place in shown], effect[shown], texts, color=colours)
        axis.set(xlim=(0, 1), ylim=(max(len(shown), 1) - 0.4, -0.6))
        axis.set_xlabel("effect size; beside it the adjusted p-value")
        drawn = f"first {len(shown)} of " if len(shown) < len(tested) else ""
        untested = f", {len(names) - len(tested)} not tested" if len(tested) < len(names) else ""
        axis.set_title(f"{drawn}{counted(len(tested), 'column')}{untested}", fontsize=9, loc="left")
        handles = [
            matplotlib("patches").Patch(color=colour, label=f"adjusted p {sign} {number(alpha)}")
            for sign, colour in (("<=", COLOUR_Y), (">", NEUTRAL))
        ]
        axis.figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)

    return figure([[draw]], title, width=7.0, heights=1.1 + 0.26 * max(len(shown), 3))


def _p_text(p: float) -> str:
    """Return an adjusted p-value, which may have underflowed."""
    return f"p = {number(p, 2)}" if p > 0 else "p < 1e-300"
