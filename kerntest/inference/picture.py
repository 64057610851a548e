"""What a picture of a two-sample test shows, from its analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.inference.explain import common_number, moved
from kerntest.inference.sides import names_apart
from kerntest.inference.witness import witness_at
from kerntest.kernels.base import Points
from kerntest.report.plot import ColumnPicture, NullPicture, WitnessPicture, figure
from kerntest.report.summary import shortened_kernel

if TYPE_CHECKING:
    from kerntest.data.table import Table
    from kerntest.inference.exact import TwoSampleAnalysis
    from kerntest.inference.sides import Sample
    from kerntest.kernels.base import Array, Kernel
    from kerntest.report.record import ColumnEffect, Null

LINE_POINTS = 400
MAP_POINTS = 90
# Columns of which both distributions are drawn, and values of a column of categories.
DISTRIBUTIONS, VALUES = 6, 6


def two_sample_figure(analysis: TwoSampleAnalysis) -> Any:
    """Return a matplotlib figure of a test: null distribution, witness function and, if explained, the first columns.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    result = analysis.result
    columns = () if result.explanation is None else result.explanation.columns
    null = null_picture(
        result.null,
        analysis.verdict.relabelled,
        observed=result.statistic,
        p_value=result.p_value,
        statistic=f"MMD$^2$ ({result.estimator})",
        title="If there were no difference",
        members=0 if result.family is None else len(result.family.members),
        noun="kernels",
    )
    caption = f"The witness function is that of the kernel {shortened_kernel(result.kernel)}"
    drawn = [_column(effect, analysis.tables) for effect in columns[:DISTRIBUTIONS]]
    return figure(null, _witness(analysis), columns, drawn, title=result.decision, caption=caption)


def _column(effect: ColumnEffect, tables: tuple[Table, Table]) -> ColumnPicture:
    """Return what both samples hold in a column; of categories those whose shares moved most."""
    x, y = (table[effect.column] for table in tables)
    if not x.is_category:
        common = common_number(x, y)
        rest = [one.values if common is None else one.values[one.values != common] for one in (x, y)]
        return ColumnPicture(effect, rest[0], rest[1], dates=x.kind == "date")
    values, in_x, in_y = zip(*moved(x, y)[:VALUES], strict=True)
    return ColumnPicture(effect, np.array(in_x), np.array(in_y), values)


def null_picture(
    null: Null,
    relabelled: Array | None,
    *,
    observed: float,
    p_value: float,
    statistic: str,
    title: str,
    members: int = 0,
    noun: str = "",
) -> NullPicture:
    """Return the relabelled statistics, or without them a Pearson III curve through the moments of the null.

    Parameters
    ----------
    null : Null
    relabelled : ndarray, shape (R,), or None
    observed, p_value : float
    statistic, title : str
        As in `NullPicture`.
    members, noun : int, str
        How many kernels, or pairs of them, the p-value judges; 0 for one, whose statistic is drawn.
    """
    judged = f" of all {members}" if members else ""
    statistic += f" of the clearest of {members} {noun}" if members else ""
    if relabelled is not None:
        return NullPicture(relabelled, None, observed, p_value, statistic, title, judged)
    mean, deviation = null.mean or 0.0, null.standard_deviation or 1.0
    skewness = null.skewness or 0.0
    # A Gamma variable of this shape has that skewness; mirrored where it is negative.
    shape = 4.0 / max(abs(skewness), 1e-3) ** 2
    z = np.linspace(-min(3.5, np.sqrt(shape)), 5.0, 400)[1:]
    x = shape + z * np.sqrt(shape)
    log_density = (shape - 1.0) * np.log(np.maximum(x, 1e-300)) - x
    density = np.exp(log_density - log_density.max())
    step = deviation * (z[1] - z[0])
    curve = (mean + np.copysign(deviation, skewness) * z, density / (density.sum() * step))
    return NullPicture(np.empty(0), curve, observed, p_value, statistic, title, judged)


def _witness(analysis: TwoSampleAnalysis) -> WitnessPicture:
    sample, kernel = analysis.sample, analysis.verdict.kernels[0]
    names = names_apart(analysis.tables)
    in_x = sample.labels == 1
    if not sample.category_names and len(sample.numeric_names) in {1, 2}:
        rows = sample.points.numeric * sample.spread + sample.centre
        grid, values = _on_grid(sample, kernel)
        own_units = tuple(g * s + c for g, s, c in zip(grid, sample.spread, sample.centre, strict=True))
        return WitnessPicture(sample.numeric_names, own_units, values, rows[in_x], rows[~in_x], names)
    at_rows = analysis.verdict.found.witness[:, None]
    return WitnessPicture((), (), np.empty(0), at_rows[in_x], at_rows[~in_x], names)


def _on_grid(sample: Sample, kernel: Kernel) -> tuple[tuple[Array, ...], Array]:
    """Return a grid over the middle of the rows, and the witness function there."""
    count = LINE_POINTS if len(sample.numeric_names) == 1 else MAP_POINTS
    # Far outliers would squeeze everything else: the grid covers 99 % of the rows with a margin.
    low, high = np.quantile(sample.points.numeric, [0.005, 0.995], axis=0)
    margin = 0.08 * (high - low) + 1e-12
    grid = tuple(np.linspace(a, b, count) for a, b in zip(low - margin, high + margin, strict=True))
    if len(grid) == 1:
        return grid, witness_at(kernel, sample, Points.of(grid[0]))
    across, up = np.meshgrid(*grid)
    points = Points.of(np.column_stack([across.ravel(), up.ravel()]))
    return grid, witness_at(kernel, sample, points).reshape(across.shape)
