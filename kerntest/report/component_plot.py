"""Pictures of principal components: the rows in the first two, and the scree. Needs matplotlib, the extra `plot`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.report.decision_plot import (
    CLASSES_IN_LEGEND,
    class_colour,
    class_marker,
    evenly,
    legend_name,
    thinning,
    write_title,
)
from kerntest.report.heatmap import abridged
from kerntest.report.plot import COLOUR_X, NEUTRAL, POINTS_DRAWN, bins, literal
from kerntest.report.summaries.words import percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

# From dark to light, and no hue that some cannot tell from another.
NUMBER_MAP = "viridis"
COMPONENTS_DRAWN, LABELLED = 50, 12
# The line is so near to a bar, in shares of its height.
CLOSE = 0.04


@dataclass(frozen=True, slots=True, eq=False)
class ComponentPicture:
    """Rows in the first two components, or in the only one.

    Parameters
    ----------
    scores : ndarray, shape (n, 1) or (n, 2)
    ratios : tuple of float
        Share of the variance that each of them explains.
    color : str or None
        Name of the column that colours the rows.
    values : ndarray, shape (n,), or None
        Its values: numbers, or codes into `classes`.
    classes : tuple of str
        Its categories; empty for numbers.
    dates : bool
        Whether the numbers are days since 1970-01-01.
    """

    scores: NDArray[np.float64]
    ratios: tuple[float, ...]
    color: str | None = None
    values: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()
    dates: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ScreePicture:
    """The share of the variance that each component explains, descending, and that of all together."""

    ratios: tuple[float, ...]
    explained: float


def draw_components(axis: Any, picture: ComponentPicture) -> None:
    """Draw the rows in the plane of the components, with a legend of categories or a bar of numbers.

    Notes
    -----
    Cost: O(n). At most 2,000 rows are drawn; then the title says so.
    """
    names = [f"pc{place} ({percent(ratio)} of the variance)" for place, ratio in enumerate(picture.ratios, start=1)]
    axis.set_xlabel(names[0])
    axis.spines[["top", "right"]].set_visible(False)
    if picture.scores.shape[1] == 1:
        _draw_histogram(axis, picture)
        return
    axis.set_ylabel(names[1])
    n = len(picture.scores)
    shown = evenly(n, POINTS_DRAWN)
    size = float(np.clip(5000.0 / max(len(shown), 1), 10.0, 26.0))
    style = {"s": size, "edgecolor": "white", "linewidth": 0.015 * size}
    rows = picture.scores[shown]
    for which in (axis.axhline, axis.axvline):
        which(0.0, color=NEUTRAL, linewidth=0.6, linestyle="dotted", zorder=0)
    if picture.values is None:
        axis.scatter(rows[:, 0], rows[:, 1], color=COLOUR_X, **style)
    elif picture.classes:
        codes = picture.values[shown]
        for place in np.unique(codes):
            own = rows[codes == place]
            axis.scatter(own[:, 0], own[:, 1], color=class_colour(place), marker=class_marker(place), **style)
        _write_legend(axis, picture)
    else:
        drawn = axis.scatter(rows[:, 0], rows[:, 1], c=picture.values[shown], cmap=NUMBER_MAP, **style)
        _write_bar(axis, drawn, picture)
    write_title(axis, "Rows in the first two components", thinning(len(shown), n, "row"))


def draw_scree(axis: Any, picture: ScreePicture) -> None:
    """Draw the shares as bars, and their sum as a line."""
    shown = np.array(picture.ratios[:COMPONENTS_DRAWN])
    places = np.arange(1, len(shown) + 1)
    sums = np.cumsum(shown)
    axis.bar(places, 100.0 * shown, width=0.7, color=COLOUR_X, alpha=0.85, label="each")
    axis.plot(places, 100.0 * sums, color="black", linewidth=1.2, marker="o", markersize=3.5, label="together")
    if len(shown) <= LABELLED:
        for place, share, total in zip(places, shown, sums, strict=True):
            # Inside the bar where the line would be in the way.
            inside = total - share <= CLOSE * sums[-1]
            axis.annotate(
                f"{100 * share:.3g}",
                (place, 100.0 * share),
                (0, -5 if inside else 2),
                textcoords="offset points",
                ha="center",
                va="top" if inside else "bottom",
                color="white" if inside else "black",
                fontsize=7.5,
            )
    axis.set_xlim(0.4, len(shown) + 0.6)
    axis.set_ylim(0, min(100.0, 118.0 * float(sums[-1])))
    axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axis.set_xlabel("component")
    axis.set_ylabel("% of the variance")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="upper left", frameon=False, fontsize=8, ncols=2)
    more = "" if len(shown) == len(picture.ratios) else f"the first {len(shown)} of {len(picture.ratios)}"
    write_title(axis, f"Scree: {percent(picture.explained)} explained", more)


def _draw_histogram(axis: Any, picture: ComponentPicture) -> None:
    """Draw how the rows lie on the only component, those of each category above the others."""
    values = picture.scores[:, 0]
    if picture.classes and picture.values is not None:
        codes = picture.values
        places = [int(place) for place in np.unique(codes)]
        parts = [values[codes == place] for place in places]
        colours = [class_colour(place) for place in places]
        axis.hist(parts, bins=bins(len(values)), stacked=True, color=colours, edgecolor="white", linewidth=0.3)
        _write_legend(axis, picture)
        write_title(axis, "Rows on the component")
    elif picture.values is not None:
        shown = evenly(len(values), POINTS_DRAWN)
        axis.scatter(values[shown], picture.values[shown], s=14, color=COLOUR_X, edgecolor="white", linewidth=0.3)
        axis.set_ylabel(literal(abridged(picture.color or "", 40)))
        if picture.dates:
            _as_dates(axis.yaxis)
        write_title(axis, "Rows on the component", thinning(len(shown), len(values), "row"))
        return
    else:
        axis.hist(values, bins=bins(len(values)), color=COLOUR_X, edgecolor="white", linewidth=0.3)
        write_title(axis, "Rows on the component")
    axis.set_ylabel("rows")


def _write_legend(axis: Any, picture: ComponentPicture) -> None:
    """Name the categories below the panel: over the rows it would hide some."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - only to draw

    shown = picture.classes[:CLASSES_IN_LEGEND]
    flat = picture.scores.shape[1] == 1
    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker="s" if flat else class_marker(place),
            color=class_colour(place),
            markersize=5,
            label=legend_name(name),
        )
        for place, name in enumerate(shown)
    ]
    if len(picture.classes) > len(shown):
        more = f"and {len(picture.classes) - len(shown)} more"
        handles.append(Line2D([], [], linestyle="none", marker="none", label=more))
    axis.legend(
        handles=handles,
        title=literal(abridged(picture.color or "", 40)),
        title_fontsize=8.5,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=4,
        frameon=False,
        fontsize=8,
        handletextpad=0.3,
        columnspacing=1.2,
    )


def _write_bar(axis: Any, drawn: Any, picture: ComponentPicture) -> None:
    """Say which colour is which number."""
    bar = axis.figure.colorbar(drawn, ax=axis, shrink=0.8, aspect=25, pad=0.02)
    bar.set_label(literal(abridged(picture.color or "", 40)))
    bar.outline.set_visible(False)
    if picture.dates:
        _as_dates(bar.ax.yaxis)


def _as_dates(axis: Any) -> None:
    """Write days since 1970-01-01 as dates."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator  # noqa: PLC0415 - only to draw

    axis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda day, _: str(np.datetime64(int(day), "D"))))
