"""Files of a test: its witness functions as tables, and pictures of its null distribution, rows, witness and columns.

w(z) = mean_x k(z, x) - mean_y k(z, y) is positive where X is denser and negative where Y is; MMD is its norm (Gretton
et al. 2012, section 2.3). f(x) and g(y) of unit norm have the largest covariance, see `cross_covariance`.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kerntest.errors import UsageError
from kerntest.inference import exact
from kerntest.inference.explain.cross_covariance import CrossCovariance, witness_function
from kerntest.inference.explain.differences import common_number, moved
from kerntest.inference.sides import names_apart
from kerntest.kernels.base import Points
from kerntest.matrices.expansion import sum_of_kernels
from kerntest.report import panels
from kerntest.report.panels import COLOUR_X, COLOUR_Y, NEUTRAL, draw_curve, legend_below, named, write_title
from kerntest.report.summaries.words import number, percent, shortened_kernel
from kerntest.report.write import ROW_FORMATS, STANDARD_OUTPUT, check_writable, open_rows, written_together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from kerntest.data.table import Table
    from kerntest.inference.sides import Variable
    from kerntest.kernels.base import Array
    from kerntest.report.results.record import Null
    from kerntest.report.results.two_sample_record import ColumnEffect

LINE_POINTS, MAP_POINTS = 400, 90
# Columns of which both distributions are drawn, values of a column of categories, and bars.
DISTRIBUTIONS, VALUES, BARS_DRAWN = 6, 6, 20
NAME_DRAWN = 28
# Of bars of two samples over each other.
OPACITY = 0.45
# For so many rows, the witness functions of any kernels are found in seconds.
ROWS_DRAWN = 2000
PICTURE_STREAM = 4
# Axes reach so many times the distance of the 5 % and 95 % quantiles beyond them; further away lie outliers.
FAR = 1.0
# So many values at even steps, such as 0 and 1, are named one by one.
VALUES_NAMED = 8
# With more levels on an axis, single rows cannot be told from one another.
LEVELS_ON_AXIS, LEVELS_DRAWN = 12, 20
# Columns with so few different values have one point for all equal rows; of so few points, the rows are written.
FEW_VALUES, COUNTS_WRITTEN = 25, 40
PANEL_HEIGHT = 4.0
# Places of rows of one category side by side: the golden ratio fills any number of them evenly.
GOLDEN, JITTER = 0.6180339887498949, 0.32


# Files


class Files:
    """The witness function and the picture of a test, each for a path or not at all; refused before the test runs."""

    def __init__(self, witness: str | PathLike[str] | None, plot: str | PathLike[str] | None) -> None:
        self.witness, self.plot = (None if path is None else os.fspath(path) for path in (witness, plot))
        if self.witness is not None:
            if self.witness != STANDARD_OUTPUT and Path(self.witness).suffix.lower() not in ROW_FORMATS:
                raise UsageError(
                    f"the witness function cannot be written into {self.witness}",
                    hint="end its name in .csv or .parquet, or .jsonl",
                    code="usage.witness",
                    where={"file": self.witness},
                )
            check_writable(self.witness)
        if self.plot is not None:
            panels.check_picture(self.plot)

    def write(self, columns: Callable[[], Mapping[str, Any]], figure: Callable[[], Any]) -> None:
        """Write both, or neither."""
        with written_together():
            if self.witness is not None:
                with open_rows(self.witness) as rows:
                    rows.write(_without_lines(columns()))
            if self.plot is not None:
                panels.write_picture(self.plot, figure())

    def write_of(self, analysis: exact.TwoSampleAnalysis | exact.IndependenceAnalysis) -> None:
        """Write those of a test."""
        if isinstance(analysis, exact.TwoSampleAnalysis):
            self.write(partial(sample_columns, analysis), partial(two_sample_figure, analysis))
        else:
            self.write(partial(pair_columns, analysis), partial(pair_figure, analysis))


def _without_lines(columns: Mapping[str, Any]) -> Any:
    """Return columns as an Arrow table, with no lines below 0."""
    import pyarrow as pa  # noqa: PLC0415 - only to write

    return pa.table({**columns, "line": pa.array(columns["line"], mask=columns["line"] < 0)})


def sample_columns(analysis: exact.TwoSampleAnalysis) -> dict[str, Any]:
    """Return the leave-one-out witness function at every row that was used, in the order of the tables, X first."""
    sample, tables = analysis.sample, analysis.tables
    order = np.lexsort([sample.origin, 1 - sample.labels.astype(np.int64)])
    return {
        "sample": np.repeat(names_apart(tables), [table.n_rows for table in tables]),
        "row": np.concatenate([table.numbers() for table in tables]),
        "line": np.concatenate(list(map(_lines, tables))),
        "witness": analysis.verdict.found.witness[order],
    }


def pair_columns(analysis: exact.IndependenceAnalysis) -> dict[str, Any]:
    """Return f(x) and g(y) of the reported kernels at every row that was used, in the order of the table."""
    origin, points = analysis.paired.origin, tuple(one.points for one in analysis.paired.variables)
    found = CrossCovariance(analysis.verdict.kernels, points).functions()
    return {"row": origin + 1, "line": _lines(analysis.groups.tables[0])[origin], "f": found.f, "g": found.g}


def _lines(table: Table) -> NDArray[np.intp]:
    """Return the line of each row in a CSV file; -1 in others."""
    return np.full(table.n_rows, -1) if table.lines is None else np.asarray(table.lines)


# The null distribution


def draw_null(axis: Any, analysis: Any, *, statistic: str, title: str, noun: str) -> None:
    """Draw the null distribution, relabelled or a curve, with the observed statistic; of several kernels the clearest's."""
    result, relabelled = analysis.result, analysis.verdict.relabelled
    members = 0 if result.family is None else len(result.family.members)
    if relabelled is None:
        axis.fill_between(*null_curve(result.null), color=NEUTRAL, alpha=0.45, linewidth=0, label="null distribution")
    else:
        edges = panels.bin_edges(relabelled, int(np.clip(np.sqrt(len(relabelled)), 20, 80)))
        label = f"{len(relabelled):,} relabellings"
        axis.hist(relabelled, bins=edges, color=NEUTRAL, alpha=0.55, density=True, label=label)
    observed = f"observed, p = {number(result.p_value)}" + (f" of all {members}" if members else "")
    axis.axvline(result.statistic, color=COLOUR_Y, linewidth=2, label=observed)
    name = statistic + (f" of the clearest of {members} {noun}" if members else "")
    axis.set(xlabel=name, ylabel="density", xmargin=0.06, ylim=(0, None))
    write_title(axis, title)
    axis.locator_params(axis="x", nbins=5)
    legend_below(axis, axis.get_legend_handles_labels()[0], ncols=2)


def null_curve(null: Null) -> tuple[Array, Array]:
    """Return abscissae and density of a Pearson III curve through the moments of a null."""
    mean, deviation, skewness = null.mean or 0.0, null.standard_deviation or 1.0, null.skewness or 0.0
    # A Gamma variable of this shape has that skewness; mirrored where it is negative.
    shape = 4.0 / max(abs(skewness), 1e-3) ** 2
    z = np.linspace(-min(3.5, np.sqrt(shape)), 5.0, 400)[1:]
    x = shape + z * np.sqrt(shape)
    log_density = (shape - 1.0) * np.log(np.maximum(x, 1e-300)) - x
    density = np.exp(log_density - log_density.max())
    return mean + np.copysign(deviation, skewness) * z, density / (density.sum() * deviation * (z[1] - z[0]))


# Two samples


def two_sample_figure(analysis: exact.TwoSampleAnalysis) -> Any:
    """Return a figure of a test: null distribution, witness function and, if explained, effects and the first columns."""
    result, names = analysis.result, [named(name, NAME_DRAWN) for name in _short_names(analysis.tables)]
    columns = () if result.explanation is None else result.explanation.columns
    statistic, title = f"MMD$^2$ ({result.estimator})", "If there were no difference"
    first: list[panels.Panel] = [
        partial(draw_null, analysis=analysis, statistic=statistic, title=title, noun="kernels"),
        partial(_draw_witness, analysis=analysis, names=names),
    ]
    if columns:
        effects, p = np.array([(one.effect_size, one.p_adjusted) for one in columns]).T
        ranked = [one.column for one in columns]
        first.append(partial(draw_effects, names=ranked, effects=effects, p=p, alpha=result.alpha))
    each = [partial(_draw_column, effect=one, tables=analysis.tables, names=names) for one in columns[:DISTRIBUTIONS]]
    drawn = panels.in_rows(each, 3)
    caption = f"The witness function is that of the kernel {shortened_kernel(result.kernel)}"
    heights = [4.2] + [2.9] * len(drawn)
    return panels.figure([first, *drawn], result.decision, width=5.2, heights=heights, caption=caption)


def _short_names(tables: Sequence[Table]) -> Sequence[str]:
    """Return the names of X and Y; of groups of one file without the file."""
    x, y = (name.split(", ") for name in names_apart(tables))
    while min(len(x), len(y)) > 1 and x[0] == y[0]:
        x, y = x[1:], y[1:]
    return [", ".join(parts) for parts in (x, y)]


def _draw_samples(
    axis: Any, samples: Sequence[Array], rows: Sequence[int], edges: Array, names: Sequence[str], **style: Any
) -> None:
    """Draw the distributions of both samples, as shares of so many rows of each."""
    for values, n, colour, name in zip(samples, rows, (COLOUR_X, COLOUR_Y), names, strict=True):
        axis.hist(values, edges, weights=np.full(len(values), 1.0 / n), color=colour, label=name, alpha=OPACITY)
    x, y = map(panels.matplotlib("colors").to_rgb, (COLOUR_X, COLOUR_Y))
    # Y over X over white.
    both = [OPACITY * of_y + (1.0 - OPACITY) * (1.0 - OPACITY * (1.0 - of_x)) for of_x, of_y in zip(x, y, strict=True)]
    axis.scatter([], [], marker="s", s=40, color=[both], label="both")
    axis.set(ylabel="share of the rows", **style)


def _draw_witness(axis: Any, analysis: exact.TwoSampleAnalysis, names: Sequence[str]) -> None:
    """Draw the witness function over one or two columns, or its values at the rows where there are more."""
    sample, in_x = analysis.sample, analysis.sample.labels == 1
    if sample.category_names or len(sample.names) > 2:
        values = analysis.verdict.found.witness
        both, told = (values[in_x], values[~in_x]), "witness function at the rows"
        _draw_samples(axis, both, sample.sizes, panels.bin_edges(values), names, xlabel=told)
        axis.axvline(0.0, color="black", linewidth=0.8)
        write_title(axis, "Left: more typical of {1}\nRight: more typical of {0}".format(*names))
        legend_below(axis, axis.get_legend_handles_labels()[0], ncols=2)
        return
    count = LINE_POINTS if len(sample.names) == 1 else MAP_POINTS
    scaled = np.stack([_span(column, count) for column in sample.points.numeric.T])
    mesh = np.meshgrid(*scaled)
    weights = np.where(in_x, 1.0 / in_x.sum(), -1.0 / (~in_x).sum())
    at = Points.of(np.column_stack([part.ravel() for part in mesh]))
    values = sum_of_kernels(analysis.verdict.kernels[0], sample.points, weights, at).reshape(mesh[0].shape)
    grid, columns = (
        part * sample.spread[:, None] + sample.centre[:, None] for part in (scaled, sample.points.numeric.T)
    )
    ends = [line[[0, -1]] for line in grid]
    if len(grid) == 1:
        edges = _edges(columns[0], ends[0])
        ends = [_around(edges, ends[0])]
        _draw_samples(axis, (columns[0, in_x], columns[0, ~in_x]), sample.sizes, edges, names)
        draw_curve(axis, grid[0], values, "witness function")
    else:
        reach = float(np.abs(values).max()) or 1.0
        drawn = axis.contourf(*grid, values, levels=np.linspace(-reach, reach, 22), cmap="RdBu", alpha=0.75)
        axis.contour(*grid, values, levels=[0.0], colors="black", linewidths=0.8)
        for side, marker, colour, name in zip((in_x, ~in_x), "o^", (COLOUR_X, COLOUR_Y), names, strict=True):
            own = columns[:, side]
            style = {"marker": marker, "color": colour, "edgecolor": "white", "linewidth": 0.4}
            axis.scatter(*own[:, panels.evenly(own.shape[1])], s=16, label=name, **style)
        panels.draw_bar(axis, drawn, "witness function", ticks=panels.matplotlib("ticker").MaxNLocator(6))
        legend_below(axis, axis.get_legend_handles_labels()[0], ncols=2)
    for which, name, limits, own in zip("xy", sample.names, ends, columns, strict=False):
        _set_axis(axis, which, name, limits, own, is_date=analysis.tables[0][name].kind == "date")
    write_title(axis, "Above 0: {} is denser\nBelow: {} is".format(*names))


def draw_effects(
    axis: Any, names: Sequence[str], effects: Array, p: Array, alpha: float, *, heading: str = "Each column alone"
) -> None:
    """Draw a bar for each of the first columns, the first on top."""
    shown = np.arange(min(BARS_DRAWN, len(names)))[::-1]
    texts = [f"{effects[place]:.2f}   p = {number(p[place], 2)}" for place in shown]
    colours = np.where(p[shown] <= alpha, COLOUR_Y, NEUTRAL)
    panels.draw_bars(axis, [panels.abridged(names[place], 24) for place in shown], effects[shown], texts, color=colours)
    widest = 1.45 * float(effects.max(initial=0.05))
    # Beyond 1, which is the most, is room for texts alone.
    axis.set_xlim(0.0, widest)
    axis.set(
        xticks=[one for one in axis.get_xticks() if one <= min(widest, 1.0)],
        xlabel=f"effect size (coloured: corrected p <= {number(alpha)})",
    )
    more = f"first {len(shown)} of {len(names)}" if len(shown) < len(names) else ""
    write_title(axis, heading, more)


def _draw_column(axis: Any, effect: ColumnEffect, tables: Sequence[Table], names: Sequence[str]) -> None:
    """Draw what both samples hold in a column, as shares of their rows; of categories those whose shares moved most."""
    x, y = (table[effect.column] for table in tables)
    if x.is_category:
        values, *shares = zip(*moved(x, y)[:VALUES], strict=True)
        for share, colour, name, offset in zip(shares, (COLOUR_X, COLOUR_Y), names, (-0.2, 0.2), strict=True):
            axis.bar(np.arange(len(values)) + offset, share, width=0.4, color=colour, label=name)
        axis.set_xticks(range(len(values)), [named(value, 10) for value in values])
        axis.set_ylabel("share of the rows")
    else:
        # Of few values each has a bar, and its share can be read.
        edges = panels.edges_of_values(np.concatenate([x.values, y.values]))
        common = common_number(x, y) if edges is None else None
        drawn = [one.values[one.values != common] for one in (x, y)]
        if len(both := np.concatenate(drawn)):
            edges = panels.bin_edges(_span(both, 2), panels.bins(len(both))) if edges is None else edges
            _draw_samples(axis, drawn, (len(x.values), len(y.values)), edges, names)
            _set_axis(axis, "x", "", edges[[0, -1]], both, is_date=x.kind == "date")
        if common is not None and effect.x is not None and effect.y is not None:
            shares_of = " and ".join(percent(one.share or 0.0) for one in (effect.x, effect.y))
            axis.set_xlabel(panels.literal(f"not drawn: {effect.x.value} in {shares_of} of the rows"), fontsize=9)
    told = f"effect {number(effect.effect_size, 2)}, p = {number(effect.p_adjusted, 2)}"
    write_title(axis, f"{named(effect.column)}: {told}")
    axis.set_ymargin(0.25)
    axis.legend(frameon=False, fontsize=8)


# Two variables


def pair_figure(analysis: exact.IndependenceAnalysis) -> Any:
    """Return a figure of a test: null distribution, rows, witness functions and, for series, the lags.

    The witness functions are the pair f(x), g(y) of unit norm with the largest covariance, for the reported kernels;
    of more than 2,000 rows, those of 2,000 drawn at random.
    """
    result, n, kernels = analysis.result, analysis.paired.n, analysis.verdict.kernels
    rows = np.arange(n)
    if n > ROWS_DRAWN:
        rng = np.random.default_rng((result.provenance.seed, PICTURE_STREAM))
        rows = np.sort(rng.choice(n, ROWS_DRAWN, replace=False))
    x, y = Side(analysis, 0, rows), Side(analysis, 1, rows)
    heading, remark, caption = "The rows", panels.thinning(len(rows), n), ""
    name = result.statistic_name
    statistic = f"HSIC ({result.estimator})" if name == "hsic" else name.upper()
    title = "If x and y were independent"
    drawn: list[panels.Panel] = [partial(draw_null, analysis=analysis, statistic=statistic, title=title, noun="pairs")]
    # Others have no space of functions.
    if functions := all(kernel.positive_definite for kernel in kernels):
        found = CrossCovariance(kernels, (x.drawn, y.drawn), "kcc" if name == "kcc" else "coco").functions()
        x.take_function(found.f, partial(witness_function, kernels[0], x.drawn, found.alpha))
        y.take_function(found.g, partial(witness_function, kernels[1], y.drawn, found.beta))
        told = f"; f(x) and g(y) have correlation {number(found.correlation, 2)}"
        heading += told if found.value > 0 else ": no function of x varies with one of y"
        caption = f"f(x) and g(y) are those of the kernels {shortened_kernel(result.kernel)}"
    if x.alone and y.alone and max(len(x.levels), len(y.levels)) <= LEVELS_ON_AXIS:
        drawn.append(partial(_draw_rows, x=x, y=y, heading=heading, remark=remark))
    elif functions:
        drawn.append(partial(_draw_functions_of_rows, x=x, y=y, heading=heading, remark=remark))
    if functions:
        drawn += [partial(a.draw_function, other=b.name, remark=remark) for a, b in ((x, y), (y, x))]
    lines: list[Sequence[panels.Panel]] = [drawn[start : start + 2] for start in range(0, len(drawn), 2)]
    if result.lags is not None and analysis.verdict.relabelled is not None:
        statistics = analysis.verdict.relabelled[1:]
        lines.append([partial(_draw_lags, result=result, n=n, statistics=statistics, name=statistic)])
    return panels.figure(lines, result.decision, heights=PANEL_HEIGHT, caption=caption)


class Side:
    """One of the two variables: the only column that its kernel sees, if it is one, and its witness function.

    `values` are those of the column at the rows, of categories the places of their levels. Several columns of categories
    with few combinations are one whose levels are these.
    """

    def __init__(self, analysis: exact.IndependenceAnalysis, which: int, rows: NDArray[np.intp]) -> None:
        whole: Variable = analysis.paired.variables[which]
        self.name, self.colour = (("f(x)", COLOUR_X), ("g(y)", COLOUR_Y))[which]
        self.drawn, self.function = whole.take(rows).points, np.zeros(len(rows))
        self.used = (analysis.result.columns_x, analysis.result.columns_y)[which]
        self.alone, self.levels, centre, spread = len(self.used) == 1, tuple[str, ...](), 0.0, 1.0
        self.name_of_columns, self.at_levels = ", ".join(self.used), cast("Points | None", None)
        if not self.alone:
            self._combine(whole, rows)
            return
        self.place, p = whole.names.index(self.used[0]), len(whole.numeric_names)
        self.is_date = analysis.groups.tables[which][self.used[0]].kind == "date"
        if self.place < p:
            values, centre = whole.points.numeric[:, self.place], whole.centre[self.place]
            spread, self.scaled = whole.spread[self.place], _span(values, LINE_POINTS)
        else:
            self.place -= p
            codes, self.levels = whole.points.codes[:, self.place], whole.levels[self.place]
            self.scaled, values = np.arange(1.0 * len(self.levels)), codes.astype(np.float64)
            self.counts = np.bincount(codes, minlength=len(self.levels))
        self.grid, self.values = self.scaled * spread + centre, values[rows] * spread + centre
        self.limits = self.grid[[0, -1]] + ([-0.6, 0.6] if self.levels else 0.0)
        if not self.levels:
            self.edges = _edges(values * spread + centre, self.limits)
            self.limits = _around(self.edges, self.limits)

    def _combine(self, whole: Variable, rows: NDArray[np.intp]) -> None:
        """Take the combinations of several columns of categories, where they are few, for the levels of one."""
        if not {*self.used} <= {*whole.category_names}:
            return
        places = [whole.category_names.index(name) for name in self.used]
        codes, first, combined, counts = np.unique(
            whole.points.codes[:, places], axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        if len(codes) > LEVELS_DRAWN:
            return
        self.alone, self.is_date, self.counts = True, False, counts
        self.levels = tuple(
            ", ".join(whole.levels[place][code] for place, code in zip(places, one, strict=True)) for one in codes
        )
        self.values, self.at_levels = combined.ravel()[rows].astype(np.float64), whole.take(first).points
        self.limits = np.array([-0.6, len(codes) - 0.4])

    def take_function(self, at_rows: Array, function: Callable[[Points], Array]) -> None:
        """Keep the witness function at the rows and over the only column."""
        self.function = at_rows
        if self.alone:
            self.curve = function(self._at() if self.at_levels is None else self.at_levels)

    def _at(self) -> Points:
        """Return rows along the only column: the kernel sees this only, and the others may be those of the first row."""
        points = self.drawn.take(np.zeros(len(self.grid), dtype=np.intp))
        (points.codes if self.levels else points.numeric)[:, self.place] = self.scaled
        return points

    def set_axis(self, axis: Any, which: str) -> NDArray[np.bool_]:
        """Label an axis with the column, and return which rows lie beyond it."""
        low, high = self.limits
        _set_axis(axis, which, self.name_of_columns, self.limits, self.values, is_date=self.is_date)
        if self.levels:
            panels.write_levels(axis, which, [panels.abridged(level, 14) for level in self.levels])
        return np.asarray((self.values < low) | (self.values > high))

    def places(self) -> Array:
        """Return the places of the rows on an axis; rows of one level are laid beside each other."""
        beside = JITTER * (2.0 * ((np.arange(len(self.values)) * GOLDEN) % 1.0) - 1.0)
        return self.values + beside if self.levels else self.values

    def draw_function(self, axis: Any, other: str, remark: str) -> None:
        """Draw the witness function over its column, or its values at the rows where there are several."""
        told = ""
        if self.levels:
            # Those with the largest values of either sign.
            shown = np.argsort(-np.abs(self.curve), kind="stable")[:LEVELS_DRAWN]
            shown = shown[np.argsort(self.curve[shown], kind="stable")]
            names = [f"{panels.abridged(self.levels[place], 20)}  ({self.counts[place]:,})" for place in shown]
            panels.draw_bars(axis, names, self.curve[shown], color=self.colour, alpha=0.8)
            axis.set(xlabel=self.name, ylabel=named(self.name_of_columns))
            told = f"{len(shown)} of {len(self.curve):,} levels" if len(shown) < len(self.curve) else ""
        elif self.alone:
            axis.hist(self.values, bins=self.edges, color=self.colour, alpha=0.3, label="rows")
            self.set_axis(axis, "x")
            axis.set_ylabel("rows")
            draw_curve(axis, self.grid, self.curve, self.name)
        else:
            axis.hist(self.function, bins=panels.bin_edges(self.function), color=self.colour, alpha=0.5)
            axis.set(xlabel=f"{self.name} at the rows", ylabel="rows")
            told = f"{len(self.used):,} columns"
        if self.levels or not self.alone:
            axis.axvline(0.0, color="black", linewidth=0.8)
        what = f"high where {other} tends to be high" if self.function.any() else "0 everywhere"
        write_title(axis, f"{self.name}: {what}", told, remark)


def _span(values: Array, count: int) -> Array:
    """Return numbers along an axis for these values with a margin: of all, unless a few lie far away from the others."""
    low, inner_low, inner_high, high = np.quantile(values, [0.0, 0.05, 0.95, 1.0])
    if (reach := FAR * (inner_high - inner_low)) > 0:
        low, high = max(low, inner_low - reach), min(high, inner_high + reach)
    margin = 0.06 * (high - low) + 1e-12
    return np.linspace(low - margin, high + margin, count)


def _edges(values: Array, limits: Array) -> Array:
    """Return the edges of bins between limits: of few values at even steps, of one bin for each."""
    edges = panels.edges_of_values(values)
    return np.linspace(limits[0], limits[1], panels.bins(len(values)) + 1) if edges is None else edges


def _around(edges: Array, limits: Array) -> Array:
    """Return the limits of an axis that has all bins."""
    return np.array([min(edges[0], limits[0]), max(edges[-1], limits[1])])


def _set_axis(axis: Any, which: str, name: str, limits: Array, values: Array, *, is_date: bool) -> None:
    """Name an axis between these limits, with few numbers at it, or dates; of few values at even steps, with these."""
    axis.set(**{f"{which}label": named(name), f"{which}lim": limits})
    edges = None if is_date else panels.edges_of_values(values)
    if edges is not None and len(edges) <= VALUES_NAMED + 1:
        different = np.unique(values)
        axis.set(**{f"{which}ticks": different[(limits[0] <= different) & (different <= limits[1])]})
    elif not is_date or not panels.write_dates(getattr(axis, f"{which}axis"), *limits):
        axis.locator_params(axis=which, nbins=6)


def _draw_rows(axis: Any, x: Side, y: Side, heading: str, remark: str) -> None:
    """Draw the rows in the two columns, coloured by f(x) g(y), whose mean over the rows is the covariance."""
    pairs, products = np.column_stack([x.values, y.values]), x.function * y.function
    drawn, sizes = np.column_stack([x.places(), y.places()]), np.full(len(pairs), panels.point_size(len(pairs)))
    places, first, counts = np.unique(pairs, axis=0, return_index=True, return_counts=True)
    values_each = max(len(np.unique(x.values)), len(np.unique(y.values)))
    if values_each <= FEW_VALUES and len(places) < len(pairs):
        drawn, products = places, products[first]
        # The largest fill half of the distance to the next.
        widest = min(24.0, 0.45 * PANEL_HEIGHT * panels.POINTS_PER_INCH / values_each)
        sizes = np.maximum(widest**2 * counts / counts.max(), 6.0)
        for place, count, size in zip(places, counts, sizes, strict=True) if len(places) <= COUNTS_WRITTEN else ():
            panels.write_beside(axis, f"{count:,}", place, np.sqrt(size) / 2 + 2)
    # The most telling rows lie on top.
    order, reach = np.argsort(np.abs(products), kind="stable"), float(np.abs(products).max())
    shades = {"c": products[order], "cmap": "RdBu", "vmin": -reach or -1.0, "vmax": reach or 1.0}
    points = axis.scatter(*drawn[order].T, s=sizes[order], linewidth=0.4, edgecolor=NEUTRAL, **shades)
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
    size = panels.point_size(len(x.drawn))
    axis.scatter(x.function, y.function, s=size, color=NEUTRAL, alpha=0.8, edgecolor="white", linewidth=0.3)
    axis.set(xlabel=x.name, ylabel=y.name)
    write_title(axis, heading, remark)


def _draw_lags(axis: Any, result: Any, n: int, statistics: Array, name: str) -> None:
    """Draw the statistic against the lag; the lags between, which do not stand for independence, are shaded."""
    minimum, strongest = result.lags.minimum, result.lags.strongest
    lags = np.arange(minimum, n - minimum + 1)
    later = lags <= n // 2
    for side, shift in ((~later, n), (later, 0)):
        axis.plot(lags[side] - shift, statistics[side], color=NEUTRAL, linewidth=1.0)
    axis.axvspan(-minimum + 0.5, minimum - 0.5, color=NEUTRAL, alpha=0.15, linewidth=0)
    axis.axhline(result.statistic, color=COLOUR_Y, linewidth=0.8, linestyle=":")
    axis.plot([0], [result.statistic], "o", color=COLOUR_Y, label="observed, lag 0")
    if strongest:
        at, label = result.lags.statistic_at_strongest, f"largest of all, lag {strongest:+,}"
        axis.plot([strongest], [at], "^", color=COLOUR_X, label=label)
    axis.set(xlabel="lag: row i of x with row i + lag of y", ylabel=name, xmargin=0.01)
    axis.legend(frameon=False, fontsize=8, loc="upper right")
    few = f"Lags of {minimum:,} rows and more stand for independence; grey: those below"
    write_title(axis, few if minimum > 1 else "All lags but 0 stand for independence")
