"""What a picture of an independence test shows, from its analysis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.inference.coco import coco, coco_function
from kerntest.inference.picture import LINE_POINTS, null_picture
from kerntest.kernels.base import Points
from kerntest.report.pair_contents import ColumnPicture, FunctionPicture, LagsPicture, PairPicture, SidePicture
from kerntest.report.pair_plot import pair_picture_figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.data.table import Table
    from kerntest.inference.coco import Coco
    from kerntest.inference.exact import IndependenceAnalysis
    from kerntest.inference.sides import Variable
    from kerntest.kernels.base import Array, Kernel

# For so many rows, the witness functions of any kernels are found in seconds.
ROWS_DRAWN = 2000
PICTURE_STREAM = 4
# Axes reach so many times the distance of the 5 % and 95 % quantiles beyond them; further away lie outliers.
FAR = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class _Witness:
    """A witness function: its kernel, its values at the rows that are drawn, and its coefficients."""

    kernel: Kernel
    at_rows: Array
    coefficients: Array


def pair_figure(analysis: IndependenceAnalysis) -> Any:
    """Return a matplotlib figure of a test: null distribution, rows, witness functions and, for series, the lags.

    The witness functions are the pair f(x), g(y) of unit norm with the largest covariance, for the reported kernels;
    of more than 2,000 rows, those of 2,000 drawn at random.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Notes
    -----
    Cost: that of `coco` for at most 2,000 rows.
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
) -> tuple[ColumnPicture, FunctionPicture | None]:
    """Return a numeric column and the function over it."""
    centre, spread = whole.centre[place], whole.spread[place]
    low, high = _limits(whole.points.numeric[:, place])
    values = drawn.points.numeric[:, place] * spread + centre
    column = ColumnPicture(whole.numeric_names[place], values, (low * spread + centre, high * spread + centre))
    if witness is None:
        return column, None
    grid = np.linspace(low, high, LINE_POINTS)
    points = _elsewhere(drawn.points, LINE_POINTS)
    points.numeric[:, place] = grid
    curve = coco_function(witness.kernel, drawn.points, witness.coefficients, points)
    return column, FunctionPicture(witness.at_rows, grid * spread + centre, curve)


def _levels(
    whole: Variable, drawn: Variable, place: int, witness: _Witness | None
) -> tuple[ColumnPicture, FunctionPicture | None]:
    """Return a category column and the function at its levels, in ascending order of the function."""
    levels = whole.levels[place]
    order, function = np.arange(len(levels)), None
    if witness is not None:
        points = _elsewhere(drawn.points, len(levels))
        points.codes[:, place] = order
        curve = coco_function(witness.kernel, drawn.points, witness.coefficients, points)
        order = np.argsort(curve, kind="stable")
        function = FunctionPicture(witness.at_rows, np.arange(float(len(levels))), curve[order])
    rank = np.empty(len(levels))
    rank[order] = np.arange(len(levels))
    counts = np.bincount(whole.points.codes[:, place], minlength=len(levels))
    column = ColumnPicture(
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
