"""What a picture of a test shows, from its analysis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.inference.explain.differences import common_number, moved
from kerntest.inference.explain.witness import witness_at
from kerntest.inference.sides import names_apart
from kerntest.kernels.base import Points
from kerntest.report.pair_contents import FunctionPicture, LagsPicture, PairColumn, PairPicture, SidePicture
from kerntest.report.pair_plot import pair_picture_figure
from kerntest.report.plot import ColumnPicture, NullPicture, WitnessPicture, figure
from kerntest.report.summaries.words import shortened_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.data.table import Table
    from kerntest.inference.exact import IndependenceAnalysis, TwoSampleAnalysis
    from kerntest.inference.explain.coco import Coco
    from kerntest.inference.sides import Sample, Variable
    from kerntest.kernels.base import Array, Kernel
    from kerntest.report.results.record import ColumnEffect, Null

LINE_POINTS = 400
MAP_POINTS = 90
# Columns of which both distributions are drawn, and values of a column of categories.
DISTRIBUTIONS, VALUES = 6, 6
# For so many rows, the witness functions of any kernels are found in seconds.
ROWS_DRAWN = 2000
PICTURE_STREAM = 4
# Axes reach so many times the distance of the 5 % and 95 % quantiles beyond them; further away lie outliers.
FAR = 2.0


def two_sample_figure(analysis: TwoSampleAnalysis) -> Any:
    """Return a matplotlib figure of a test: null distribution, witness function and, if explained, the first columns."""
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
    return figure(null, _two_sample_witness(analysis), columns, drawn, title=result.decision, caption=caption)


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

    `members` and `noun` say how many kernels, or pairs of them, the p-value judges; 0 for one, whose statistic is drawn.
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


def _two_sample_witness(analysis: TwoSampleAnalysis) -> WitnessPicture:
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


@dataclass(frozen=True, slots=True, eq=False)
class _Witness:
    """A witness function: its kernel, its values at the rows that are drawn, and its coefficients."""

    kernel: Kernel
    at_rows: Array
    coefficients: Array

    def at(self, drawn: Points, points: Points) -> Array:
        """Return the function of the rows that are drawn elsewhere."""
        from kerntest.inference.explain.coco import coco_function  # noqa: PLC0415 - scipy.linalg takes 0.1 s to load

        return coco_function(self.kernel, drawn, self.coefficients, points)


def pair_figure(analysis: IndependenceAnalysis) -> Any:
    """Return a matplotlib figure of a test: null distribution, rows, witness functions and, for series, the lags.

    The witness functions are the pair f(x), g(y) of unit norm with the largest covariance, for the reported kernels;
    of more than 2,000 rows, those of 2,000 drawn at random.
    """
    return pair_picture_figure(pair_picture(analysis))


def pair_picture(analysis: IndependenceAnalysis) -> PairPicture:
    """Return what `pair_figure` draws."""
    result, n = analysis.result, analysis.paired.n
    names = {"hsic": f"HSIC ({result.estimator})", "coco": "COCO"}
    null = null_picture(
        result.null,
        analysis.verdict.relabelled,
        observed=result.statistic,
        p_value=result.p_value,
        statistic=names[result.statistic_name],
        title="If x and y were independent",
        members=0 if result.family is None else len(result.family.members),
        noun="pairs",
    )
    rows = _drawn_rows(n, result.provenance.seed)
    first, second = analysis.paired.variables
    found = _functions(analysis.verdict.kernels, first.take(rows), second.take(rows))
    f = g = None
    if found is not None:
        f = _Witness(analysis.verdict.kernels[0], found.f, found.alpha)
        g = _Witness(analysis.verdict.kernels[1], found.g, found.beta)
    return PairPicture(
        null=null,
        x=_side("x", first, result.columns_x, rows, f, table=analysis.groups.tables[0]),
        y=_side("y", second, result.columns_y, rows, g, table=analysis.groups.tables[1]),
        correlation=found.correlation if found is not None and found.value > 0 else None,
        rows=f"{len(rows):,} of {n:,} rows" if len(rows) < n else "",
        lags=_lags(analysis),
        kernels=result.kernel,
        title=result.decision,
    )


def _drawn_rows(n: int, seed: int) -> NDArray[np.intp]:
    """Return the rows that are drawn: all, or 2,000 at random in their order."""
    if n <= ROWS_DRAWN:
        return np.arange(n)
    rng = np.random.default_rng((seed, PICTURE_STREAM))
    return np.sort(rng.choice(n, ROWS_DRAWN, replace=False))


def _functions(kernels: tuple[Kernel, ...], x: Variable, y: Variable) -> Coco | None:
    """Return the witness functions; None where a kernel may have no space of functions."""
    if not all(kernel.positive_definite for kernel in kernels):
        return None
    from kerntest.inference.explain.coco import coco  # noqa: PLC0415 - scipy.linalg takes 0.1 s to load

    return coco(kernels[0], x.points, kernels[1], y.points)


def _side(
    letter: str,
    whole: Variable,
    used: tuple[str, ...],
    rows: NDArray[np.intp],
    witness: _Witness | None,
    *,
    table: Table,
) -> SidePicture:
    """Return what is shown of x or y, where `used` are the columns that its kernel sees."""
    drawn = whole.take(rows)
    if len(used) == 1:
        place = whole.names.index(used[0])
        p = len(whole.numeric_names)
        if place >= p:
            return SidePicture(letter, 1, *_levels(whole, drawn, place - p, witness))
        column, function = _number_column(whole, drawn, place, witness)
        kind = next(one.kind for one in table.columns if one.name == used[0])
        return SidePicture(letter, 1, replace(column, dates=kind == "date"), function)
    nowhere = np.empty(0)
    return SidePicture(
        letter, len(used), None, None if witness is None else FunctionPicture(witness.at_rows, nowhere, nowhere)
    )


def _number_column(
    whole: Variable, drawn: Variable, place: int, witness: _Witness | None
) -> tuple[PairColumn, FunctionPicture | None]:
    """Return a numeric column and the function over it."""
    centre, spread = whole.centre[place], whole.spread[place]
    low, high = _limits(whole.points.numeric[:, place])
    values = drawn.points.numeric[:, place] * spread + centre
    column = PairColumn(whole.numeric_names[place], values, (low * spread + centre, high * spread + centre))
    if witness is None:
        return column, None
    grid = np.linspace(low, high, LINE_POINTS)
    points = _elsewhere(drawn.points, LINE_POINTS)
    points.numeric[:, place] = grid
    curve = witness.at(drawn.points, points)
    return column, FunctionPicture(witness.at_rows, grid * spread + centre, curve)


def _levels(
    whole: Variable, drawn: Variable, place: int, witness: _Witness | None
) -> tuple[PairColumn, FunctionPicture | None]:
    """Return a category column and the function at its levels, in ascending order of the function."""
    levels = whole.levels[place]
    order, function = np.arange(len(levels)), None
    if witness is not None:
        points = _elsewhere(drawn.points, len(levels))
        points.codes[:, place] = order
        curve = witness.at(drawn.points, points)
        order = np.argsort(curve, kind="stable")
        function = FunctionPicture(witness.at_rows, np.arange(float(len(levels))), curve[order])
    rank = np.empty(len(levels))
    rank[order] = np.arange(len(levels))
    counts = np.bincount(whole.points.codes[:, place], minlength=len(levels))
    column = PairColumn(
        whole.category_names[place],
        rank[drawn.points.codes[:, place]],
        (-0.5, len(levels) - 0.5),
        tuple(levels[code] for code in order),
        tuple(counts[order].tolist()),
    )
    return column, function


def _elsewhere(points: Points, count: int) -> Points:
    """Return so many copies of the first row, for a column of it to vary: the kernel sees that column only."""
    return Points(np.repeat(points.numeric[:1], count, axis=0), np.repeat(points.codes[:1], count, axis=0))


def _limits(values: Array) -> tuple[float, float]:
    """Return the ends of an axis for these values with a margin: of all, unless a few lie far away from the others."""
    low, high = float(values.min()), float(values.max())
    inner_low, inner_high = np.quantile(values, [0.05, 0.95])
    reach = FAR * float(inner_high - inner_low)
    if reach > 0:
        low, high = max(low, inner_low - reach), min(high, inner_high + reach)
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def _lags(analysis: IndependenceAnalysis) -> LagsPicture | None:
    """Return the statistic at every shift that the test used."""
    result, shifted = analysis.result, analysis.verdict.relabelled
    if result.lags is None or shifted is None:
        return None
    n, minimum = analysis.paired.n, result.lags.minimum
    statistics = shifted[1:]
    lags = np.arange(minimum, n - minimum + 1)
    lags = np.where(lags <= n // 2, lags, lags - n)
    order = np.argsort(lags)
    strongest = (result.lags.strongest, result.lags.statistic_at_strongest)
    return LagsPicture(lags[order], statistics[order], minimum, result.statistic, strongest)
