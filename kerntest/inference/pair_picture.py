"""What a picture of an independence test shows, from its analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.inference.coco import coco, coco_function
from kerntest.inference.pairing import swapped
from kerntest.inference.picture import LINE_POINTS, null_picture
from kerntest.kernels.base import Points
from kerntest.report.pair_plot import (
    ColumnPicture,
    FunctionPicture,
    LagsPicture,
    PairPicture,
    SidePicture,
    pair_picture_figure,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.inference.coco import Coco
    from kerntest.inference.pair_analysis import IndependenceAnalysis
    from kerntest.inference.variables import Variable
    from kerntest.kernels.base import Array, Kernel

# For so many rows, the witness functions of any kernels are found in seconds.
ROWS_DRAWN = 2000
PICTURE_STREAM = 4
# The axes show all rows, unless they would have to be so many times as long as for 99 % of the rows.
FAR = 4.0


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
        analysis.relabelled,
        observed=result.statistic,
        p_value=result.p_value,
        statistic=names[result.statistic_name],
        title="If x and y were independent",
    )
    rows = _drawn_rows(n, result.provenance.seed)
    variables = [variable.take(rows) for variable in analysis.paired.variables]
    found = _functions(analysis.kernels, variables)
    functions = (None, None) if found is None else ((found.f, found.alpha), (found.g, found.beta))
    x, y = (
        _side(letter, analysis.paired.variables[k], rows, used, function=_Function(analysis.kernels[k], *functions[k]))
        for k, (letter, used) in enumerate((("x", result.columns_x), ("y", result.columns_y)))
    )
    return PairPicture(
        null=null,
        x=x,
        y=y,
        correlation=found.correlation if found is not None and found.value > 0 else None,
        rows=f"{len(rows):,} of {n:,} rows" if len(rows) < n else "",
        lags=_lags(analysis),
        title=result.decision,
    )


def _drawn_rows(n: int, seed: int) -> NDArray[np.intp]:
    """Return the rows that are drawn: all, or 2,000 at random in their order."""
    if n <= ROWS_DRAWN:
        return np.arange(n)
    rng = np.random.default_rng((seed, PICTURE_STREAM))
    return np.sort(rng.choice(n, ROWS_DRAWN, replace=False))


def _functions(kernels: tuple[Kernel, Kernel], variables: list[Variable]) -> Coco | None:
    """Return the witness functions; None where a kernel may have no space of functions."""
    if not all(kernel.positive_definite for kernel in kernels):
        return None
    return coco(kernels[0], variables[0].points, kernels[1], variables[1].points)


def _side(
    letter: str,
    variable: Variable,
    rows: NDArray[np.intp],
    kernel: Kernel,
    used: tuple[str, ...],
    function: tuple[Array, Array] | None,
) -> SidePicture:
    """Return what is shown of x or y: `used` are the columns that its kernel sees, `function` f with its alpha."""
    drawn = variable.take(rows)
    if len(used) > 1:
        several = None if function is None else FunctionPicture(function[0], np.empty(0), np.empty(0))
        return SidePicture(letter, len(used), None, several)
    place = variable.names.index(used[0])
    p = len(variable.numeric_names)
    if place >= p:
        return _category_side(letter, variable, drawn, place - p, kernel, function)
    centre, spread = variable.centre[place], variable.spread[place]
    scaled = variable.points.numeric[:, place]
    low, high = _limits(scaled)
    values = drawn.points.numeric[:, place] * spread + centre
    column = ColumnPicture(used[0], values, (low * spread + centre, high * spread + centre))
    if function is None:
        return SidePicture(letter, 1, column, None)
    at_rows, coefficients = function
    grid = np.linspace(low, high, LINE_POINTS)
    points = _elsewhere(drawn.points, LINE_POINTS)
    points.numeric[:, place] = grid
    curve = coco_function(kernel, drawn.points, coefficients, points)
    return SidePicture(letter, 1, column, FunctionPicture(at_rows, grid * spread + centre, curve))


def _category_side(
    letter: str,
    variable: Variable,
    drawn: Variable,
    place: int,
    kernel: Kernel,
    function: tuple[Array, Array] | None,
) -> SidePicture:
    """Return what is shown of a side with one category column: its levels in the order of the function."""
    levels = variable.levels[place]
    counts = np.bincount(variable.points.codes[:, place], minlength=len(levels))
    curve, order = np.empty(0), np.arange(len(levels))
    if function is not None:
        points = _elsewhere(drawn.points, len(levels))
        points.codes[:, place] = order
        curve = coco_function(kernel, drawn.points, function[1], points)
        order = np.argsort(curve, kind="stable")
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    column = ColumnPicture(
        variable.category_names[place],
        rank[drawn.points.codes[:, place]],
        (-0.5, len(levels) - 0.5),
        tuple(levels[code] for code in order),
        tuple(counts[order].tolist()),
    )
    shown = None if function is None else FunctionPicture(function[0], np.arange(float(len(levels))), curve[order])
    return SidePicture(letter, 1, column, shown)


def _elsewhere(points: Points, count: int) -> Points:
    """Return so many copies of the first row, for a column of it to vary: the kernel sees that column only."""
    return Points(np.repeat(points.numeric[:1], count, axis=0), np.repeat(points.codes[:1], count, axis=0))


def _limits(values: Array) -> tuple[float, float]:
    """Return the ends of an axis for these values with a margin: of all, unless a few lie far away from the others."""
    low, high = float(values.min()), float(values.max())
    inner = np.quantile(values, [0.005, 0.995])
    if inner[1] > inner[0] and high - low > FAR * (inner[1] - inner[0]):
        low, high = float(inner[0]), float(inner[1])
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def _lags(analysis: IndependenceAnalysis) -> LagsPicture | None:
    """Return the statistic at every shift that the test used."""
    result, shifted = analysis.result, analysis.relabelled
    if result.lags is None or shifted is None:
        return None
    n, minimum = analysis.paired.n, result.lags.minimum
    # The series that the test put first stood still: seen from the other one, the shifts run backwards.
    statistics = shifted[:0:-1] if swapped(analysis.paired) else shifted[1:]
    lags = np.arange(minimum, n - minimum + 1)
    lags = np.where(lags <= n // 2, lags, lags - n)
    order = np.argsort(lags)
    strongest = (result.lags.strongest, result.lags.statistic_at_strongest)
    return LagsPicture(lags[order], statistics[order], minimum, result.statistic, strongest)
