"""Pictures of an independence test. Needs matplotlib, the extra `plot`."""

from __future__ import annotations

import textwrap
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.report.heatmap import abridged
from kerntest.report.plot import (
    COLOUR_X,
    COLOUR_Y,
    NEUTRAL,
    bin_edges,
    bins,
    draw_caption,
    draw_null,
    figure_class,
    literal,
)
from kerntest.report.summaries.words import number, shortened_kernel, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.report.pair_contents import FunctionPicture, LagsPicture, PairColumn, PairPicture, SidePicture

COLOURS, NAMES = {"x": COLOUR_X, "y": COLOUR_Y}, {"x": "f(x)", "y": "g(y)"}
LEVELS_DRAWN = 20
# With more levels on an axis, single rows cannot be told from one another.
LEVELS_ON_AXIS = 12
# Columns with so few different values have one point for all equal rows; of so few points, the rows are written.
FEW_VALUES, COUNTS_WRITTEN = 25, 40
LAGS_DRAWN = 4000
PANEL_WIDTH, PANEL_HEIGHT, POINTS_PER_INCH = 5.4, 4.0, 72
# Days of the years that the calendar of matplotlib has: 1 to 9999.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
# Places of rows of one category side by side: the golden ratio fills any number of them evenly.
GOLDEN, JITTER = 0.6180339887498949, 0.32


def pair_picture_figure(picture: PairPicture) -> Any:
    """Return a matplotlib figure: the null distribution, the rows, both witness functions and, for series, the lags.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    panels = _panels(picture)
    wide = picture.lags is not None
    columns = 1 if len(panels) == 1 and not wide else 2
    lines = -(-len(panels) // columns) + wide
    made = figure_class()(figsize=(PANEL_WIDTH * columns, PANEL_HEIGHT * lines + 0.4), layout="constrained")
    grid = made.add_gridspec(lines, columns)
    for place, draw in enumerate(panels):
        alone = place == len(panels) - 1 and columns == 2 and place % 2 == 0
        axis = made.add_subplot(grid[place // columns, slice(None) if alone else place % columns])
        axis.spines[["top", "right"]].set_visible(False)
        draw(made, axis)
    if picture.lags is not None:
        axis = made.add_subplot(grid[-1, :])
        axis.spines[["top", "right"]].set_visible(False)
        _draw_lags(axis, picture.lags, picture.null.statistic)
    width = int(made.get_figwidth() * POINTS_PER_INCH / (0.54 * 11))
    lines_of_title = textwrap.wrap(visible(picture.title), width, max_lines=4, placeholder=" …")
    made.suptitle("\n".join(literal(line) for line in lines_of_title), fontsize=11)
    if picture.x.function is not None:
        draw_caption(made, f"f(x) and g(y) are those of the kernels {shortened_kernel(picture.kernels)}")
    return made


def _panels(picture: PairPicture) -> list[Callable[[Any, Any], None]]:
    """Return what draws each panel on a figure and an axis: the rows and the functions as far as there are any."""

    def null(_: Any, axis: Any) -> None:
        draw_null(axis, picture.null)

    panels: list[Callable[[Any, Any], None]] = [null]
    x, y = picture.x, picture.y
    if x.column and y.column and max(len(x.column.levels), len(y.column.levels)) <= LEVELS_ON_AXIS:
        panels.append(partial(_draw_rows, picture=picture, x=x.column, y=y.column))
    elif x.function and y.function:
        panels.append(partial(_draw_functions_of_rows, picture=picture, f=x.function.at_rows, g=y.function.at_rows))
    if x.function and y.function:
        panels.append(partial(_draw_function, side=x, function=x.function, other="g(y)", rows=picture.rows))
        panels.append(partial(_draw_function, side=y, function=y.function, other="f(x)", rows=picture.rows))
    return panels


def _draw_rows(made: Any, axis: Any, picture: PairPicture, x: PairColumn, y: PairColumn) -> None:
    """Draw the rows in the two columns, coloured by f(x) g(y), whose mean over the rows is the covariance."""
    f, g = picture.x.function, picture.y.function
    products = f.at_rows * g.at_rows if f and g else np.zeros(len(x.values))
    across, up, sizes = _side_by_side(x), _side_by_side(y), np.full(len(x.values), _point_size(len(x.values)))
    pairs = np.column_stack([x.values, y.values])
    places, first, counts = np.unique(pairs, axis=0, return_index=True, return_counts=True)
    values_each = max(len(np.unique(x.values)), len(np.unique(y.values)))
    if values_each <= FEW_VALUES and len(places) < len(pairs):
        across, up = places.T
        products = products[first]
        # The largest fill half of the distance to the next.
        widest = min(24.0, 0.45 * PANEL_HEIGHT * POINTS_PER_INCH / values_each)
        sizes = np.maximum(widest**2 * counts / counts.max(), 6.0)
        if len(places) <= COUNTS_WRITTEN:
            _write_counts(axis, places, counts, sizes)
    reach = float(np.abs(products).max())
    # The most telling rows lie on top.
    order = np.argsort(np.abs(products), kind="stable")
    shades: dict[str, Any] = {"color": NEUTRAL, "edgecolor": "white"}
    if reach > 0:
        shades = {"c": products[order], "cmap": "RdBu", "vmin": -reach, "vmax": reach, "edgecolor": NEUTRAL}
    drawn = axis.scatter(across[order], up[order], s=sizes[order], linewidth=0.4, **shades)
    if reach > 0:
        # Beside its own axis: one of the layout would take room from all the panels of the column.
        bar = made.colorbar(drawn, cax=axis.inset_axes((1.03, 0.0, 0.035, 1.0)))
        bar.set_label("f(x) g(y)")
        bar.outline.set_visible(False)
    beyond = _set_axis(axis, "x", x) | _set_axis(axis, "y", y)
    outside = f"{np.count_nonzero(beyond):,} beyond the axes" if beyond.any() else ""
    axis.set_title(_title(_rows_title(picture), picture.rows, outside), fontsize=10)


def _write_counts(
    axis: Any, places: NDArray[np.float64], counts: NDArray[np.int64], sizes: NDArray[np.float64]
) -> None:
    """Write how many rows each point stands for at its right."""
    for place, count, size in zip(places, counts, sizes, strict=True):
        offset = (np.sqrt(size) / 2 + 2, 0)
        axis.annotate(f"{count:,}", place, xytext=offset, textcoords="offset points", va="center", fontsize=8)


def _draw_functions_of_rows(
    _: Any, axis: Any, picture: PairPicture, f: NDArray[np.float64], g: NDArray[np.float64]
) -> None:
    """Draw f(x) against g(y) at the rows."""
    axis.axhline(0.0, color="black", linewidth=0.6, linestyle=":")
    axis.axvline(0.0, color="black", linewidth=0.6, linestyle=":")
    axis.scatter(f, g, s=_point_size(len(f)), color=NEUTRAL, alpha=0.8, edgecolor="white", linewidth=0.3)
    axis.set_xlabel("f(x)")
    axis.set_ylabel("g(y)")
    axis.set_title(_title(_rows_title(picture), picture.rows), fontsize=10)


def _draw_function(_: Any, axis: Any, side: SidePicture, function: FunctionPicture, other: str, rows: str) -> None:
    """Draw a witness function over its column, or its values at the rows where there are several."""
    name, colour = NAMES[side.letter], COLOURS[side.letter]
    remark = ""
    if side.column is None:
        _draw_values(axis, function.at_rows, name, colour)
        remark = f"{side.columns:,} columns"
    elif side.column.levels:
        shown = _draw_levels(axis, side.column, function.curve, name, colour)
        remark = f"{shown} of {len(function.curve):,} levels" if shown < len(function.curve) else ""
    else:
        _draw_curve(axis, side.column, function, name, colour)
    what = f"high where {other} tends to be high" if function.at_rows.any() else "0 everywhere"
    axis.set_title(_title(f"{name}: {what}", remark, rows), fontsize=10)


def _draw_values(axis: Any, values: NDArray[np.float64], name: str, colour: str) -> None:
    axis.hist(values, bins=bin_edges(values, bins(len(values))), color=colour, alpha=0.5)
    axis.axvline(0.0, color="black", linewidth=0.8)
    axis.set_xlabel(f"{name} at the rows")
    _count_rows(axis)


def _draw_levels(axis: Any, column: PairColumn, values: NDArray[np.float64], name: str, colour: str) -> int:
    """Draw a bar for each level, and return for how many: those with the largest values of either sign."""
    shown = np.sort(np.argsort(-np.abs(values), kind="stable")[:LEVELS_DRAWN])
    places = np.arange(len(shown))
    axis.barh(places, values[shown], height=0.72, color=colour, alpha=0.8)
    labels = [f"{literal(abridged(column.levels[place], 20))}  ({column.counts[place]:,})" for place in shown]
    axis.set_yticks(places, labels, fontsize=8 if len(shown) > 10 else 9)
    axis.tick_params(axis="y", length=0)
    axis.axvline(0.0, color="black", linewidth=0.8)
    axis.set_xlabel(name)
    axis.set_ylabel(literal(abridged(column.name, 40)))
    return len(shown)


def _draw_curve(axis: Any, column: PairColumn, function: FunctionPicture, name: str, colour: str) -> None:
    low, high = column.limits
    edges = np.linspace(low, high, bins(len(column.values)) + 1)
    # Rows far away fall into no bin.
    axis.hist(column.values, bins=edges, color=colour, alpha=0.3, label="rows")
    _set_axis(axis, "x", column)
    _count_rows(axis)
    above = axis.twinx()
    above.spines["top"].set_visible(False)
    (line,) = above.plot(function.grid, function.curve, color="black", linewidth=1.6, label=name)
    above.axhline(0.0, color="black", linewidth=0.6, linestyle=":")
    above.set_ylabel(name)
    # Zero at mid height, so that its sign can be read.
    reach = 1.15 * float(np.abs(function.curve).max()) or 1.0
    above.set_ylim(-reach, reach)
    handles, _ = axis.get_legend_handles_labels()
    above.legend(handles=[*handles, line], framealpha=0.85, edgecolor="none", fontsize=8)


def _count_rows(axis: Any) -> None:
    axis.set_ylabel("rows")
    axis.locator_params(axis="y", integer=True)


def _draw_lags(axis: Any, lags: LagsPicture, statistic: str) -> None:
    """Draw the statistic against the lag; the lags between, which do not stand for independence, are shaded."""
    for signed in (lags.lags < 0, lags.lags > 0):
        drawn = _outline(lags.lags[signed], lags.statistics[signed])
        axis.plot(*drawn, color=NEUTRAL, linewidth=1.0, marker="." if len(drawn[0]) < 60 else None)
    axis.axvspan(-lags.minimum + 0.5, lags.minimum - 0.5, color=NEUTRAL, alpha=0.15, linewidth=0)
    axis.axhline(lags.observed, color=COLOUR_Y, linewidth=0.8, linestyle=":")
    axis.plot([0], [lags.observed], "o", color=COLOUR_Y, label="observed, lag 0", linestyle="none")
    lag, largest = lags.strongest
    if lag:
        label = f"largest of all, lag {lag:+,}"
        axis.plot([lag], [largest], "^", color=COLOUR_X, markersize=6, label=label, linestyle="none")
    axis.set_xlabel("lag: row i of x with row i + lag of y")
    axis.set_ylabel(statistic)
    axis.margins(x=0.01)
    axis.legend(frameon=False, fontsize=8, loc="upper right")
    axis.set_title(f"Lags of {lags.minimum:,} rows and more stand for independence; grey: those below", fontsize=10)


def _outline(lags: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return a line that looks the same, of `LAGS_DRAWN` points at most: the extremes of each stretch of lags."""
    if len(lags) <= LAGS_DRAWN:
        return lags, values
    starts = np.linspace(0, len(lags), LAGS_DRAWN // 2, endpoint=False).astype(np.intp)
    both = np.column_stack([np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)])
    return np.repeat(lags[starts], 2), both.ravel()


def _side_by_side(column: PairColumn) -> NDArray[np.float64]:
    """Return the places of rows on an axis; rows of one level are laid beside each other."""
    if not column.levels:
        return column.values
    return column.values + JITTER * (2.0 * ((np.arange(len(column.values)) * GOLDEN) % 1.0) - 1.0)


def _set_axis(axis: Any, which: str, column: PairColumn) -> NDArray[np.bool_]:
    """Label an axis with a column, and return which rows lie beyond it."""
    axis.set(**{f"{which}label": literal(abridged(column.name, 40))})
    if column.levels:
        places = np.arange(len(column.levels))
        short = 12 if which == "x" else 16
        labels = [literal(abridged(level, short)) for level in column.levels]
        crowded = which == "x" and sum(len(label) + 2 for label in labels) > 60
        style = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        getattr(axis, f"set_{which}ticks")(places, labels, fontsize=8, **style)
        axis.set(**{f"{which}lim": (-0.6, len(places) - 0.4)})
        return np.zeros(len(column.values), dtype=np.bool_)
    low, high = column.limits
    if column.dates and FIRST_DAY < low < high < LAST_DAY:
        _write_dates(axis.xaxis if which == "x" else axis.yaxis)
    else:
        whole = bool(np.allclose(column.values, np.round(column.values), rtol=1e-12, atol=1e-9))
        axis.locator_params(axis=which, nbins=7, integer=whole)
    axis.set(**{f"{which}lim": (low, high)})
    beyond: NDArray[np.bool_] = (column.values < low) | (column.values > high)
    return beyond


def _write_dates(axis: Any) -> None:
    """Write days as dates; matplotlib counts them from 1970-01-01 too."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415 - only to draw

    locator: Any = AutoDateLocator(maxticks=6)  # type: ignore[no-untyped-call]  # not annotated there
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]  # not annotated there


def _point_size(rows: int) -> float:
    return float(np.clip(4000.0 / rows, 6.0, 26.0))


def _rows_title(picture: PairPicture) -> str:
    """Return the title of the rows, with the correlation of the functions where there are any."""
    if picture.x.function is None:
        return "The rows"
    if picture.correlation is None:
        return "The rows: no function of x varies with one of y"
    return f"The rows; f(x) and g(y) have correlation {number(picture.correlation, 2)}"


def _title(*parts: str) -> str:
    """Return what a panel shows, with remarks in brackets on a line of their own."""
    remarks = "; ".join(part for part in parts[1:] if part)
    return f"{parts[0]}\n({remarks})" if remarks else parts[0]
