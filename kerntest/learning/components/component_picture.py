"""The picture of principal components: the rows in the first two, and the scree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.report.panels import (
    COLOUR_X,
    NEUTRAL,
    bins,
    class_colour,
    class_marks,
    draw_bar,
    evenly,
    legend_below,
    named,
    point_size,
    scatter_classes,
    thinning,
    write_dates,
    write_title,
)
from kerntest.report.summaries.words import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.data.table import Column
    from kerntest.kernels.base import Array

# From dark to light, and no hue that some cannot tell from another.
NUMBER_MAP = "viridis"
COMPONENTS_DRAWN, LABELLED = 50, 12
# The line is so near to a bar, in shares of its height.
CLOSE = 0.04
# Farther numbers have no place on an axis of matplotlib.
LARGEST_DRAWN = 1e307


def draw_components(axis: Any, scores: Array, ratios: Sequence[float], color: Column | None) -> None:
    """Draw the rows in the plane of the first two components, or on the only one, coloured by a column."""
    shown, flat = evenly(len(scores)), scores.shape[1] == 1
    remark = thinning(len(shown), len(scores))
    values = None if color is None else color.values
    if color is not None and values is not None and not color.is_category:
        values = np.clip(values, -LARGEST_DRAWN, LARGEST_DRAWN)
    names = [f"pc{place} ({percent(ratio)} of the variance)" for place, ratio in enumerate(ratios, start=1)]
    rows, size = scores[shown], max(point_size(len(shown)), 10.0)
    style = {"s": size, "edgecolor": "white", "linewidth": 0.015 * size}
    axis.set_xlabel(names[0])
    axis.set_ylabel("rows" if flat else names[1])
    if not flat:
        for line in (axis.axhline, axis.axvline):
            line(0.0, color=NEUTRAL, linewidth=0.6, linestyle="dotted", zorder=0)
    if color is None or values is None or color.is_category:
        if flat:
            remark = ""
            places = np.unique(values) if values is not None else [0]
            parts = [scores[values == place, 0] if values is not None else scores[:, 0] for place in places]
            look = {"stacked": True, "color": [class_colour(place) for place in places], "edgecolor": "white"}
            axis.hist(parts, bins=bins(len(scores)), linewidth=0.3, **look)
        elif values is not None:
            scatter_classes(axis, rows, values[shown], size)
        else:
            axis.scatter(*rows.T, color=COLOUR_X, **style)
        if color is not None:
            marks = class_marks(color.levels, **({"marker": "s"} if flat else {}))
            legend_below(axis, marks, ncols=4, title=named(color.name), title_fontsize=8.5)
    else:
        if flat:
            axis.scatter(rows[:, 0], values[shown], color=COLOUR_X, **style)
            axis.set_ylabel(named(color.name))
            of_values = axis.yaxis
        else:
            drawn = axis.scatter(*rows.T, c=values[shown], cmap=NUMBER_MAP, **style)
            of_values = draw_bar(axis, drawn, color.name).ax.yaxis
        if color.kind == "date":
            write_dates(of_values, values.min(), values.max())
    write_title(axis, "Rows on the component" if flat else "Rows in the first two components", remark)


def draw_scree(axis: Any, ratios: Sequence[float], explained: float) -> None:
    """Draw the share of the variance that each component explains as bars, and their sum as a line."""
    shown = np.array(ratios[:COMPONENTS_DRAWN])
    places, sums = np.arange(1, len(shown) + 1), np.cumsum(shown)
    axis.bar(places, 100.0 * shown, width=0.7, color=COLOUR_X, alpha=0.85, label="each")
    axis.plot(places, 100.0 * sums, color="black", linewidth=1.2, marker="o", markersize=3.5, label="together")
    for place, share, total in zip(places, shown, sums, strict=True) if len(shown) <= LABELLED else ():
        # Inside the bar where the line would be in the way.
        inside = total - share <= CLOSE * sums[-1]
        look = {"va": "top", "color": "white"} if inside else {"va": "bottom", "color": "black"}
        offset = {"xytext": (0, -5 if inside else 2), "textcoords": "offset points"}
        axis.annotate(f"{100 * share:.3g}", (place, 100.0 * share), ha="center", fontsize=7.5, **look, **offset)
    axis.set(xlim=(0.4, len(shown) + 0.6), ylim=(0, min(100.0, 118.0 * float(sums[-1]))))
    axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axis.set(xlabel="component", ylabel="% of the variance")
    axis.legend(loc="upper left", frameon=False, fontsize=8, ncols=2)
    more = "" if len(shown) == len(ratios) else f"the first {len(shown)} of {len(ratios)}"
    write_title(axis, f"Scree: {percent(explained)} explained", more)
