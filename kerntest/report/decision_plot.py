"""Pictures of a classifier over two columns: its regions, its margin and its rows. Needs matplotlib, the extra `plot`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.report.heatmap import abridged
from kerntest.report.plot import NEUTRAL, POINTS_DRAWN, literal
from kerntest.report.summaries.words import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Okabe and Ito, in an order in which the first few differ most. One marker fewer than colours: together they tell 56
# classes apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
# How much of a class's colour is left in its region: rows must stand out from it.
TINT = 0.25
CLASSES_IN_LEGEND = 8
LINES: dict[float, tuple[str, float]] = {-1.0: ("dashed", 0.9), 0.0: ("solid", 1.6), 1.0: ("dashed", 0.9)}


@dataclass(frozen=True, slots=True, eq=False)
class DecisionPicture:
    """What a classifier predicts over two columns, and the rows it was fitted to.

    Parameters
    ----------
    columns : (str, str)
        Across and up.
    grid : (ndarray, ndarray)
        Ascending abscissae of shapes (g,) and (h,), in the units of the columns.
    predicted : ndarray of int, shape (h, g)
        Class at each point of the grid, as its place in `classes`.
    scores : ndarray, shape (h, g), or None
        Of the second of two classes; None for more classes, or where no boundary and margin are to be drawn.
    classes : tuple of str
    rows : ndarray, shape (n, 2)
        Rows of the fit.
    labels : ndarray of int, shape (n,)
        Their classes.
    support : ndarray of bool, shape (n,)
        Which are support vectors.
    test_rows, test_labels : ndarray, shape (m, 2) and (m,)
        Rows held out from the fit; m may be 0.
    remark : str
        What the reader must know, such as the values of other columns.
    """

    columns: tuple[str, str]
    grid: tuple[NDArray[np.float64], NDArray[np.float64]]
    predicted: NDArray[np.integer]
    scores: NDArray[np.float64] | None
    classes: tuple[str, ...]
    rows: NDArray[np.float64]
    labels: NDArray[np.integer]
    support: NDArray[np.bool_]
    test_rows: NDArray[np.float64]
    test_labels: NDArray[np.integer]
    remark: str = ""


def class_colour(place: int) -> str:
    """Return the colour of a class."""
    return COLOURS[place % len(COLOURS)]


def evenly(count: int, most: int) -> NDArray[np.intp]:
    """Return at most so many of `count` places, evenly spread, both ends among them."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(np.intp)


def write_title(axis: Any, heading: str, *remarks: str) -> None:
    """Write what a panel shows, with remarks in brackets on a line of their own."""
    told = "; ".join(literal(abridged(remark, 70)) for remark in remarks if remark)
    axis.set_title(f"{heading}\n({told})" if told else heading, fontsize=10)


def draw_decision(axis: Any, picture: DecisionPicture) -> None:
    """Draw the regions of the classes, the boundary and the margin, rows of the fit, support vectors and test rows.

    Notes
    -----
    Cost: O(g h) and O(n). At most 2,000 rows of either part are drawn; then the title says so.
    """
    _draw_regions(axis, picture)
    lines = _draw_lines(axis, picture)
    shown, shown_tests = (evenly(len(rows), POINTS_DRAWN) for rows in (picture.rows, picture.test_rows))
    size = float(np.clip(5000.0 / max(len(shown) + len(shown_tests), 1), 12.0, 26.0))
    support = picture.rows[shown[picture.support[shown]]]
    _scatter(axis, picture.rows[shown], picture.labels[shown], size, filled=True)
    _scatter(axis, picture.test_rows[shown_tests], picture.test_labels[shown_tests], size, filled=False)
    ring = {"facecolor": "none", "edgecolor": "black", "linewidth": 0.5 if size < 20 else 0.7}
    axis.scatter(support[:, 0], support[:, 1], s=3.0 * size, zorder=2.5, **ring)
    across, up = picture.grid
    axis.set_xlim(across[0], across[-1])
    axis.set_ylim(up[0], up[-1])
    axis.set_xlabel(literal(abridged(picture.columns[0], 40)))
    axis.set_ylabel(literal(abridged(picture.columns[1], 40)))
    axis.spines[["top", "right"]].set_visible(False)
    thinned = [
        thinning(len(shown), len(picture.rows), "row"),
        thinning(len(shown_tests), len(picture.test_rows), "test row"),
    ]
    write_title(axis, "Regions of the classes", picture.remark, *thinned, _beyond(picture))
    axis.legend(
        handles=_handles(picture, lines),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=3,
        frameon=False,
        fontsize=8,
        handletextpad=0.5,
        columnspacing=1.2,
    )


def _draw_regions(axis: Any, picture: DecisionPicture) -> None:
    """Fill each class's region with its colour, pale; between more than two classes draw a thin line."""
    from matplotlib.colors import ListedColormap, to_rgb  # noqa: PLC0415 - only to draw

    count = len(picture.classes)
    colours = [1.0 - TINT * (1.0 - np.array(to_rgb(class_colour(place)))) for place in range(count)]
    across, up = picture.grid
    if picture.scores is not None:
        # Levels beyond the scores and the margin: every point lies in one of two bands that meet at 0.
        reach = 1.0 + max(1.0, float(np.abs(picture.scores).max()))
        axis.contourf(across, up, picture.scores, levels=[-reach, 0.0, reach], colors=colours[:2], zorder=0)
        return
    axis.pcolormesh(
        across,
        up,
        picture.predicted,
        shading="nearest",
        cmap=ListedColormap(colours),
        vmin=-0.5,
        vmax=count - 0.5,
        zorder=0,
        rasterized=True,
    )
    there = np.unique(picture.predicted)
    for place in there if len(there) > 1 else []:
        inside = (picture.predicted == place).astype(np.float64)
        axis.contour(across, up, inside, levels=[0.5], colors="black", linewidths=0.7, zorder=0.5)


def _draw_lines(axis: Any, picture: DecisionPicture) -> list[float]:
    """Draw the scores -1, 0 and 1 where they occur, and return them."""
    if picture.scores is None:
        return []
    low, high = picture.scores.min(), picture.scores.max()
    drawn = [level for level in LINES if low < level < high]
    for level in drawn:
        style, width = LINES[level]
        axis.contour(
            *picture.grid,
            picture.scores,
            levels=[level],
            colors="black",
            linestyles=style,
            linewidths=width,
            zorder=1,
        )
    return drawn


def _scatter(axis: Any, rows: NDArray[np.float64], labels: NDArray[np.integer], size: float, *, filled: bool) -> None:
    """Draw rows in the colour and with the marker of their class; rows that are not filled are hollow."""
    for place in np.unique(labels):
        own, colour = rows[labels == place], class_colour(place)
        # A hollow mark needs a strong line, a filled one a thin bright edge that parts it from its neighbours.
        style = (
            {"color": colour, "edgecolor": "white", "linewidth": 0.015 * size}
            if filled
            else {"facecolor": "white", "edgecolor": colour, "linewidth": 0.6 + 0.02 * size}
        )
        axis.scatter(own[:, 0], own[:, 1], s=size, marker=class_marker(place), zorder=2.0 if filled else 3.0, **style)


def class_marker(place: int) -> str:
    """Return the marker of a class."""
    return MARKERS[place % len(MARKERS)]


def thinning(shown: int, rows: int, noun: str) -> str:
    """Return that not all rows are drawn, as a remark."""
    return f"{shown:,} of {counted(rows, noun)} drawn" if shown < rows else ""


def _beyond(picture: DecisionPicture) -> str:
    """Return how many rows lie outside the grid, as a remark."""
    both = np.concatenate([picture.rows, picture.test_rows])
    low, high = ([axis[end] for axis in picture.grid] for end in (0, -1))
    outside = int(((both < low) | (both > high)).any(axis=1).sum())
    return f"{counted(outside, 'row')} beyond" if outside else ""


def legend_name(name: str) -> str:
    """Return a class's name as a legend shows it: matplotlib passes over what starts with an underscore."""
    shown = literal(abridged(name, 20))
    return f" {shown}" if shown.startswith("_") else shown


def _handles(picture: DecisionPicture, lines: list[float]) -> list[Any]:
    """Return what stands in the legend: classes, support vectors, test rows and lines."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - only to draw

    def mark(label: str, **style: Any) -> Any:
        return Line2D([], [], linestyle="none", label=label, **style)

    shown = picture.classes[:CLASSES_IN_LEGEND]
    handles = [
        mark(legend_name(name), marker=class_marker(place), color=class_colour(place), markersize=5)
        for place, name in enumerate(shown)
    ]
    if len(picture.classes) > len(shown):
        handles.append(mark(f"and {len(picture.classes) - len(shown)} more", marker="none"))
    if picture.support.any():
        label = counted(int(np.count_nonzero(picture.support)), "support vector")
        handles.append(mark(label, marker="o", markerfacecolor="none", markeredgecolor="black", markersize=7.5))
    if len(picture.test_rows):
        handles.append(
            mark(
                counted(len(picture.test_rows), "test row"),
                marker="o",
                markerfacecolor="white",
                markeredgecolor=NEUTRAL,
                markersize=5,
            )
        )
    if 0.0 in lines:
        handles.append(Line2D([], [], color="black", linewidth=LINES[0.0][1], label="boundary"))
    if -1.0 in lines or 1.0 in lines:
        handles.append(Line2D([], [], color="black", linestyle="dashed", linewidth=0.9, label="margin (scores -1, 1)"))
    return handles
