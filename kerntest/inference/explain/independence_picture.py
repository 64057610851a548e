"""The picture of an independence test: the null distribution, the rows, the witness functions and the lags of series."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.inference.explain.two_sample_picture import LINE_POINTS, draw_null
from kerntest.kernels.base import Points
from kerntest.report.panels import (
    COLOUR_X,
    COLOUR_Y,
    NEUTRAL,
    POINTS_PER_INCH,
    abridged,
    bin_edges,
    bins,
    draw_bars,
    draw_curve,
    figure,
    named,
    point_size,
    write_beside,
    write_dates,
    write_levels,
    write_title,
)
from kerntest.report.summaries.words import number, shortened_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.inference.exact import IndependenceAnalysis
    from kerntest.inference.sides import Variable
    from kerntest.kernels.base import Array
    from kerntest.report.panels import Panel

# For so many rows, the witness functions of any kernels are found in seconds.
ROWS_DRAWN = 2000
PICTURE_STREAM = 4
# Axes reach so many times the distance of the 5 % and 95 % quantiles beyond them; further away lie outliers.
FAR = 2.0
# With more levels on an axis, single rows cannot be told from one another.
LEVELS_ON_AXIS, LEVELS_DRAWN = 12, 20
# Columns with so few different values have one point for all equal rows; of so few points, the rows are written.
FEW_VALUES, COUNTS_WRITTEN = 25, 40
PANEL_HEIGHT, LAGS_DRAWN = 4.0, 4000
# Places of rows of one category side by side: the golden ratio fills any number of them evenly.
GOLDEN, JITTER = 0.6180339887498949, 0.32


def pair_figure(analysis: IndependenceAnalysis) -> Any:
    """Return a figure of a test: null distribution, rows, witness functions and, for series, the lags.

    The witness functions are the pair f(x), g(y) of unit norm with the largest covariance, for the reported kernels;
    of more than 2,000 rows, those of 2,000 drawn at random.
    """
    result, n = analysis.result, analysis.paired.n
    statistic = {"hsic": f"HSIC ({result.estimator})", "coco": "COCO"}[result.statistic_name]
    title = "If x and y were independent"
    panels: list[Panel] = [partial(draw_null, analysis=analysis, statistic=statistic, title=title, noun="pairs")]
    rows = _drawn_rows(n, result.provenance.seed)
    remark = f"{len(rows):,} of {n:,} rows" if len(rows) < n else ""
    x, y, heading = _sides(analysis, rows)
    if x.column and y.column and max(len(x.levels), len(y.levels)) <= LEVELS_ON_AXIS:
        panels.append(partial(_draw_rows, x=x, y=y, heading=heading, remark=remark))
    elif x.function is not None:
        panels.append(partial(_draw_functions_of_rows, x=x, y=y, heading=heading, remark=remark))
    if x.function is not None:
        panels += [
            partial(x.draw_function, other=y.name, remark=remark),
            partial(y.draw_function, other=x.name, remark=remark),
        ]
    lines = [panels[start : start + 2] for start in range(0, len(panels), 2)]
    if result.lags is not None and analysis.verdict.relabelled is not None:
        shifted = partial(_draw_lags, result=result, n=n, statistics=analysis.verdict.relabelled[1:], name=statistic)
        lines.append([shifted])
    caption = f"f(x) and g(y) are those of the kernels {shortened_kernel(result.kernel)}"
    return figure(lines, result.decision, heights=PANEL_HEIGHT, caption="" if x.function is None else caption)


def _drawn_rows(n: int, seed: int) -> NDArray[np.intp]:
    """Return the rows that are drawn: all, or 2,000 at random in their order."""
    if n <= ROWS_DRAWN:
        return np.arange(n)
    return np.sort(np.random.default_rng((seed, PICTURE_STREAM)).choice(n, ROWS_DRAWN, replace=False))


def _sides(analysis: IndependenceAnalysis, rows: NDArray[np.intp]) -> tuple[Side, Side, str]:
    """Return both sides with their witness functions, unless a kernel has no space of functions, and what these say."""
    kernels, (whole_x, whole_y) = analysis.verdict.kernels, analysis.paired.variables
    x, y = Side(analysis, 0, whole_x, rows), Side(analysis, 1, whole_y, rows)
    if not all(kernel.positive_definite for kernel in kernels):
        return x, y, "The rows"
    from kerntest.inference.explain.coco import CrossCovariance, coco_function  # noqa: PLC0415 - scipy.linalg takes 0.1 s to load

    found = CrossCovariance(kernels, (x.drawn, y.drawn)).functions()
    x.take_function(found.f, partial(coco_function, kernels[0], x.drawn, found.alpha))
    y.take_function(found.g, partial(coco_function, kernels[1], y.drawn, found.beta))
    if found.value <= 0:
        return x, y, "The rows: no function of x varies with one of y"
    return x, y, f"The rows; f(x) and g(y) have correlation {number(found.correlation, 2)}"


class Side:
    """One of the two variables: the only column that its kernel sees, if it is one, and its witness function.

    A column of categories has the places of their levels for values, in ascending order of the function.
    """

    def __init__(self, analysis: IndependenceAnalysis, which: int, whole: Variable, rows: NDArray[np.intp]) -> None:
        self.name, self.colour = (("f(x)", COLOUR_X), ("g(y)", COLOUR_Y))[which]
        self.drawn = whole.take(rows).points
        self.function: Array | None = None
        self.grid = self.curve = self.values = np.empty(0)
        self.levels: tuple[str, ...] = ()
        used = (analysis.result.columns_x, analysis.result.columns_y)[which]
        self.columns, self.column = len(used), used[0] if len(used) == 1 else ""
        if not self.column:
            return
        self.place, p = whole.names.index(self.column), len(whole.numeric_names)
        if self.place < p:
            self.centre, self.spread = whole.centre[self.place], whole.spread[self.place]
            self.ends = _limits(whole.points.numeric[:, self.place])
            self.limits = self.ends * self.spread + self.centre
            self.values = self.drawn.numeric[:, self.place] * self.spread + self.centre
            self.is_date = analysis.groups.tables[which][self.column].kind == "date"
        else:
            self.place -= p
            self.levels = whole.levels[self.place]
            self.limits = np.array([-0.6, len(self.levels) - 0.4])
            self.values = self.drawn.codes[:, self.place].astype(np.float64)
            self.counts = np.bincount(whole.points.codes[:, self.place], minlength=len(self.levels))

    def take_function(self, at_rows: Array, function: Callable[[Points], Array]) -> None:
        """Keep the witness function at the rows and over the only column, whose levels it orders."""
        self.function = at_rows
        if not self.column:
            return
        # The kernel sees this column only: the others may be those of the first row.
        numeric, codes = self.drawn.numeric[:1], self.drawn.codes[:1]
        count = len(self.levels) or LINE_POINTS
        points = Points(np.repeat(numeric, count, axis=0), np.repeat(codes, count, axis=0))
        if not self.levels:
            low, high = self.ends
            points.numeric[:, self.place] = scaled = np.linspace(low, high, count)
            self.grid, self.curve = scaled * self.spread + self.centre, function(points)
            return
        points.codes[:, self.place] = np.arange(count)
        curve = function(points)
        order = np.argsort(curve, kind="stable")
        self.curve, self.counts = curve[order], self.counts[order]
        self.levels = tuple(self.levels[code] for code in order)
        self.values = np.argsort(order)[self.drawn.codes[:, self.place]].astype(np.float64)

    def set_axis(self, axis: Any, which: str) -> NDArray[np.bool_]:
        """Label an axis with the column, and return which rows lie beyond it."""
        low, high = self.limits
        if self.levels:
            write_levels(axis, which, [abridged(level, 12 if which == "x" else 16) for level in self.levels])
        elif not self.is_date or not write_dates(getattr(axis, f"{which}axis"), low, high):
            whole = bool(np.allclose(self.values, np.round(self.values), rtol=1e-12, atol=1e-9))
            axis.locator_params(axis=which, nbins=7, integer=whole)
        axis.set(**{f"{which}label": named(self.column), f"{which}lim": (low, high)})
        return np.asarray((self.values < low) | (self.values > high))

    def places(self) -> Array:
        """Return the places of the rows on an axis; rows of one level are laid beside each other."""
        beside = JITTER * (2.0 * ((np.arange(len(self.values)) * GOLDEN) % 1.0) - 1.0)
        return self.values + beside if self.levels else self.values

    def draw_function(self, axis: Any, other: str, remark: str) -> None:
        """Draw the witness function over its column, or its values at the rows where there are several."""
        at_rows, told = self.function if self.function is not None else np.empty(0), ""
        if not self.column:
            axis.hist(at_rows, bins=bin_edges(at_rows), color=self.colour, alpha=0.5)
            axis.axvline(0.0, color="black", linewidth=0.8)
            axis.set_xlabel(f"{self.name} at the rows")
            told = f"{self.columns:,} columns"
        elif self.levels:
            # Those with the largest values of either sign.
            shown = np.sort(np.argsort(-np.abs(self.curve), kind="stable")[:LEVELS_DRAWN])
            names = [f"{abridged(self.levels[place], 20)}  ({self.counts[place]:,})" for place in shown]
            draw_bars(axis, names, self.curve[shown], color=self.colour, alpha=0.8)
            axis.axvline(0.0, color="black", linewidth=0.8)
            axis.set_xlabel(self.name)
            axis.set_ylabel(named(self.column))
            told = f"{len(shown)} of {len(self.curve):,} levels" if len(shown) < len(self.curve) else ""
        else:
            # Rows far away fall into no bin.
            edges = np.linspace(self.limits[0], self.limits[1], bins(len(self.values)) + 1)
            axis.hist(self.values, bins=edges, color=self.colour, alpha=0.3, label="rows")
            self.set_axis(axis, "x")
            draw_curve(axis, self.grid, self.curve, self.name)
        if not self.levels:
            axis.set_ylabel("rows")
            axis.locator_params(axis="y", integer=True)
        what = f"high where {other} tends to be high" if at_rows.any() else "0 everywhere"
        write_title(axis, f"{self.name}: {what}", told, remark)


def _limits(values: Array) -> Array:
    """Return the ends of an axis for these values with a margin: of all, unless a few lie far away from the others."""
    low, high = float(values.min()), float(values.max())
    inner_low, inner_high = np.quantile(values, [0.05, 0.95])
    reach = FAR * float(inner_high - inner_low)
    if reach > 0:
        low, high = max(low, inner_low - reach), min(high, inner_high + reach)
    margin = 0.06 * (high - low)
    return np.array([low - margin, high + margin])


def _draw_rows(axis: Any, x: Side, y: Side, heading: str, remark: str) -> None:
    """Draw the rows in the two columns, coloured by f(x) g(y), whose mean over the rows is the covariance."""
    pairs = np.column_stack([x.values, y.values])
    products = np.zeros(len(pairs)) if x.function is None or y.function is None else x.function * y.function
    drawn, sizes = np.column_stack([x.places(), y.places()]), np.full(len(pairs), point_size(len(pairs)))
    places, first, counts = np.unique(pairs, axis=0, return_index=True, return_counts=True)
    values_each = max(len(np.unique(x.values)), len(np.unique(y.values)))
    if values_each <= FEW_VALUES and len(places) < len(pairs):
        drawn, products = places, products[first]
        # The largest fill half of the distance to the next.
        widest = min(24.0, 0.45 * PANEL_HEIGHT * POINTS_PER_INCH / values_each)
        sizes = np.maximum(widest**2 * counts / counts.max(), 6.0)
        for place, count, size in zip(places, counts, sizes, strict=True) if len(places) <= COUNTS_WRITTEN else ():
            write_beside(axis, f"{count:,}", place, np.sqrt(size) / 2 + 2)
    reach = float(np.abs(products).max())
    shades: dict[str, Any] = {"color": NEUTRAL, "edgecolor": "white"}
    # The most telling rows lie on top.
    order = np.argsort(np.abs(products), kind="stable")
    if reach > 0:
        shades = {"c": products[order], "cmap": "RdBu", "vmin": -reach, "vmax": reach, "edgecolor": NEUTRAL}
    points = axis.scatter(*drawn[order].T, s=sizes[order], linewidth=0.4, **shades)
    if reach > 0:
        # Beside its own axis: one of the layout would take room from all the panels of the column.
        bar = axis.figure.colorbar(points, cax=axis.inset_axes((1.03, 0.0, 0.035, 1.0)))
        bar.set_label("f(x) g(y)")
        bar.outline.set_visible(False)
    beyond = np.count_nonzero(x.set_axis(axis, "x") | y.set_axis(axis, "y"))
    write_title(axis, heading, remark, f"{beyond:,} beyond the axes" if beyond else "")


def _draw_functions_of_rows(axis: Any, x: Side, y: Side, heading: str, remark: str) -> None:
    """Draw f(x) against g(y) at the rows."""
    axis.axhline(0.0, color="black", linewidth=0.6, linestyle=":")
    axis.axvline(0.0, color="black", linewidth=0.6, linestyle=":")
    size = point_size(len(x.drawn))
    axis.scatter(x.function, y.function, s=size, color=NEUTRAL, alpha=0.8, edgecolor="white", linewidth=0.3)
    axis.set(xlabel=x.name, ylabel=y.name)
    write_title(axis, heading, remark)


def _draw_lags(axis: Any, result: Any, n: int, statistics: Array, name: str) -> None:
    """Draw the statistic against the lag; the lags between, which do not stand for independence, are shaded."""
    minimum, strongest = result.lags.minimum, result.lags.strongest
    lags = np.arange(minimum, n - minimum + 1)
    lags = np.where(lags <= n // 2, lags, lags - n)
    for side in (lags < 0, lags > 0):
        order = np.argsort(lags[side])
        drawn = outline(lags[side][order], statistics[side][order])
        axis.plot(*drawn, color=NEUTRAL, linewidth=1.0, marker="." if len(drawn[0]) < 60 else None)
    axis.axvspan(-minimum + 0.5, minimum - 0.5, color=NEUTRAL, alpha=0.15, linewidth=0)
    axis.axhline(result.statistic, color=COLOUR_Y, linewidth=0.8, linestyle=":")
    axis.plot([0], [result.statistic], "o", color=COLOUR_Y, label="observed, lag 0", linestyle="none")
    if strongest:
        style = {"color": COLOUR_X, "markersize": 6, "linestyle": "none"}
        label = f"largest of all, lag {strongest:+,}"
        axis.plot([strongest], [result.lags.statistic_at_strongest], "^", label=label, **style)
    axis.set(xlabel="lag: row i of x with row i + lag of y", ylabel=name)
    axis.margins(x=0.01)
    axis.legend(frameon=False, fontsize=8, loc="upper right")
    axis.set_title(f"Lags of {minimum:,} rows and more stand for independence; grey: those below", fontsize=10)


def outline(lags: NDArray[np.int64], values: Array) -> tuple[NDArray[np.int64], Array]:
    """Return a line that looks the same, of `LAGS_DRAWN` points at most: the extremes of each stretch of lags."""
    if len(lags) <= LAGS_DRAWN:
        return lags, values
    starts = np.linspace(0, len(lags), LAGS_DRAWN // 2, endpoint=False).astype(np.intp)
    both = np.column_stack([np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)])
    return np.repeat(lags[starts], 2), both.ravel()
