"""Pictures of a two-sample test: the null distribution, the witness function and the columns that differ."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.inference.explain.differences import common_number, moved
from kerntest.inference.explain.witness import witness_at
from kerntest.inference.sides import names_apart
from kerntest.kernels.base import Points
from kerntest.report.panels import (
    COLOUR_X,
    COLOUR_Y,
    LEGEND,
    NEUTRAL,
    abridged,
    bin_edges,
    bins,
    draw_bar,
    draw_bars,
    draw_curve,
    evenly,
    figure,
    in_rows,
    literal,
    matplotlib,
    named,
    write_dates,
)
from kerntest.report.summaries.words import number, percent, shortened_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.data.table import Table
    from kerntest.inference.exact import TwoSampleAnalysis
    from kerntest.kernels.base import Array
    from kerntest.report.panels import Panel
    from kerntest.report.results.record import ColumnEffect, Null

LINE_POINTS, MAP_POINTS = 400, 90
# Columns of which both distributions are drawn, values of a column of categories, and bars.
DISTRIBUTIONS, VALUES, BARS_DRAWN = 6, 6, 20
NAME_DRAWN = 28


def draw_null(axis: Any, analysis: Any, *, statistic: str, title: str, noun: str) -> None:
    """Draw the null distribution, relabelled or a curve, with the observed statistic; of several kernels the clearest's."""
    result, relabelled = analysis.result, analysis.verdict.relabelled
    members = 0 if result.family is None else len(result.family.members)
    if relabelled is None:
        axis.fill_between(*null_curve(result.null), color=NEUTRAL, alpha=0.45, linewidth=0, label="null distribution")
    else:
        edges = bin_edges(relabelled, int(np.clip(np.sqrt(len(relabelled)), 20, 80)))
        label = f"{len(relabelled):,} relabellings"
        axis.hist(relabelled, bins=edges, color=NEUTRAL, alpha=0.55, density=True, label=label)
    observed = f"observed, p = {number(result.p_value)}" + (f" of all {members}" if members else "")
    axis.axvline(result.statistic, color=COLOUR_Y, linewidth=2, label=observed)
    axis.set_xlabel(statistic + (f" of the clearest of {members} {noun}" if members else ""))
    axis.set_ylabel("density")
    axis.set_title(title, fontsize=10)
    axis.margins(x=0.06)
    axis.set_ylim(bottom=0)
    axis.locator_params(axis="x", nbins=5)
    axis.legend(**LEGEND)


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


def two_sample_figure(analysis: TwoSampleAnalysis) -> Any:
    """Return a figure of a test: null distribution, witness function and, if explained, effects and the first columns."""
    result = analysis.result
    columns = () if result.explanation is None else result.explanation.columns
    names = _legend_names(*names_apart(analysis.tables))
    statistic, title = f"MMD$^2$ ({result.estimator})", "If there were no difference"
    panels: list[Panel] = [
        partial(draw_null, analysis=analysis, statistic=statistic, title=title, noun="kernels"),
        partial(_draw_witness, analysis=analysis, names=names),
    ]
    if columns:
        panels.append(partial(_draw_effects, columns=columns))
    drawn = in_rows(
        [partial(_draw_column, effect=one, tables=analysis.tables, names=names) for one in columns[:DISTRIBUTIONS]], 3
    )
    caption = f"The witness function is that of the kernel {shortened_kernel(result.kernel)}"
    return figure([panels, *drawn], result.decision, width=5.2, heights=[4.2] + [2.9] * len(drawn), caption=caption)


def _legend_names(*names: str) -> list[str]:
    """Return names of samples for a legend: of a long path the end, with X or Y where both have the same one."""
    cut = [name if len(name) <= NAME_DRAWN else f"…{name[1 - NAME_DRAWN :]}" for name in names]
    told = cut if cut[0] != cut[1] else [f"{letter}: {name}" for letter, name in zip("XY", cut, strict=True)]
    return [literal(name) for name in told]


def _draw_samples(axis: Any, samples: Sequence[Array], edges: Array, names: Sequence[str], alpha: float = 0.5) -> None:
    """Draw the densities of both samples."""
    for values, colour, name in zip(samples, (COLOUR_X, COLOUR_Y), names, strict=True):
        axis.hist(values, bins=edges, color=colour, alpha=alpha, density=True, label=name)


def _draw_witness(axis: Any, analysis: TwoSampleAnalysis, names: Sequence[str]) -> None:
    """Draw the witness function over one or two columns, or its values at the rows where there are more."""
    sample, in_x = analysis.sample, analysis.sample.labels == 1
    if sample.category_names or len(sample.numeric_names) > 2:
        values = analysis.verdict.found.witness
        edges = np.linspace(values.min(), values.max(), bins(len(values)))
        _draw_samples(axis, (values[in_x], values[~in_x]), edges, names)
        axis.axvline(0.0, color="black", linewidth=0.8)
        axis.set_xlabel("witness function at the rows")
        axis.set_ylabel("density")
        axis.set_title("Left: more typical of Y. Right: more typical of X", fontsize=10)
        axis.legend(**LEGEND)
        return
    # Far outliers would squeeze everything else: the grid covers 99 % of the rows with a margin.
    low, high = np.quantile(sample.points.numeric, [0.005, 0.995], axis=0)
    margin, count = 0.08 * (high - low) + 1e-12, LINE_POINTS if len(low) == 1 else MAP_POINTS
    scaled = [np.linspace(a, b, count) for a, b in zip(low - margin, high + margin, strict=True)]
    grid = [g * s + c for g, s, c in zip(scaled, sample.spread, sample.centre, strict=True)]
    mesh = np.meshgrid(*scaled)
    at = Points.of(np.column_stack([part.ravel() for part in mesh]))
    values = witness_at(analysis.verdict.kernels[0], sample, at).reshape(mesh[0].shape)
    rows = sample.points.numeric * sample.spread + sample.centre
    axis.set_xlabel(named(sample.numeric_names[0]))
    if len(grid) == 1:
        _draw_samples(
            axis, (rows[in_x, 0], rows[~in_x, 0]), np.linspace(grid[0][0], grid[0][-1], bins(len(rows))), names, 0.35
        )
        axis.set_ylabel("density of the rows")
        draw_curve(axis, grid[0], values, "witness function")
    else:
        axis.set_ylabel(named(sample.numeric_names[1]))
        reach = float(np.abs(values).max()) or 1.0
        drawn = axis.contourf(*grid, values, levels=np.linspace(-reach, reach, 22), cmap="RdBu", alpha=0.75)
        axis.contour(*grid, values, levels=[0.0], colors="black", linewidths=0.8)
        for own, marker, colour, name in zip((rows[in_x], rows[~in_x]), "o^", (COLOUR_X, COLOUR_Y), names, strict=True):
            across, up = own[evenly(len(own))].T
            style = {"marker": marker, "color": colour, "edgecolor": "white", "linewidth": 0.4}
            axis.scatter(across, up, s=16, label=name, **style)
        draw_bar(axis, drawn, "witness function", shrink=1.0, ticks=matplotlib("ticker").MaxNLocator(6))
        axis.legend(**LEGEND)
    axis.set_title("Above 0: X is denser. Below: Y is", fontsize=10)


def _draw_effects(axis: Any, columns: tuple[ColumnEffect, ...]) -> None:
    """Draw a bar for each of the first columns, the first on top."""
    shown = columns[:BARS_DRAWN][::-1]
    sizes = np.array([column.effect_size for column in shown])
    colours = [COLOUR_Y if column.p_adjusted <= 0.05 else NEUTRAL for column in shown]
    texts = [f"p = {number(column.p_adjusted, 2)}" for column in shown]
    draw_bars(axis, [abridged(column.column, 24) for column in shown], sizes, texts, color=colours)
    axis.set_xlim(0.0, 1.3 * max(*sizes, 0.05))
    axis.set_xlabel("effect size (coloured: corrected p <= 0.05)")
    more = f" (first {len(shown)} of {len(columns)})" if len(columns) > len(shown) else ""
    axis.set_title(f"Each column alone{more}", fontsize=10)


def _draw_column(axis: Any, effect: ColumnEffect, tables: tuple[Table, Table], names: Sequence[str]) -> None:
    """Draw what both samples hold in a column, as shares of their rows; of categories those whose shares moved most."""
    x, y = (table[effect.column] for table in tables)
    if x.is_category:
        values, *shares = zip(*moved(x, y)[:VALUES], strict=True)
        for share, colour, name, offset in zip(shares, (COLOUR_X, COLOUR_Y), names, (-0.2, 0.2), strict=True):
            axis.bar(np.arange(len(values)) + offset, share, width=0.4, color=colour, label=name)
        axis.set_xticks(range(len(values)), [named(value, 10) for value in values])
    else:
        common = common_number(x, y)
        drawn = [one.values if common is None else one.values[one.values != common] for one in (x, y)]
        if len(both := np.concatenate(drawn)):
            # Far outliers would squeeze everything else: drawn is where 99 % of the rows lie.
            edges = bin_edges(np.clip(both, *np.quantile(both, [0.005, 0.995])), bins(len(both)))
            for own, whole, colour, name in zip(drawn, (x, y), (COLOUR_X, COLOUR_Y), names, strict=True):
                weights = np.full(len(own), 1.0 / max(len(whole.values), 1))
                axis.hist(own, edges, weights=weights, color=colour, alpha=0.5, label=name)
            if x.kind != "date" or not write_dates(axis.xaxis, edges[0], edges[-1]):
                axis.locator_params(axis="x", nbins=6)
        if effect.x is not None and effect.y is not None and effect.x.value is not None:
            shares_of = " and ".join(percent(one.share or 0.0) for one in (effect.x, effect.y))
            axis.set_xlabel(literal(f"not drawn: {effect.x.value} in {shares_of} of the rows"), fontsize=9)
    told = f"effect {number(effect.effect_size, 2)}, p = {number(effect.p_adjusted, 2)}"
    axis.set_title(f"{named(effect.column)}: {told}", fontsize=10)
    axis.set_ylabel("share of the rows")
    axis.margins(y=0.25)
    axis.legend(frameon=False, fontsize=8)
