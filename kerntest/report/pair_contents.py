"""What a picture of an independence test shows: numbers and names, ready to be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kerntest.report.plot import NullPicture


@dataclass(frozen=True, slots=True, eq=False)
class PairColumn:
    """The only column of one side.

    Parameters
    ----------
    name : str
    values : ndarray, shape (n,)
        At the rows that are drawn, in its own units; of a category column the places of its levels.
    limits : (float, float)
        Around most of the rows, where a few lie far away.
    levels : tuple of str
        Of a category column, in the order in which they are drawn; empty for numbers.
    counts : tuple of int
        How many rows have each level.
    dates : bool
        Whether the numbers are days since 1970-01-01.
    """

    name: str
    values: NDArray[np.float64]
    limits: tuple[float, float]
    levels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    dates: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class FunctionPicture:
    """One of the two witness functions.

    Parameters
    ----------
    at_rows : ndarray, shape (n,)
        At the rows that are drawn.
    grid, curve : ndarray, shape (g,)
        The function over a single column; for a category column at each of its levels. Empty where there are several.
    """

    at_rows: NDArray[np.float64]
    grid: NDArray[np.float64]
    curve: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SidePicture:
    """One of the two variables.

    Parameters
    ----------
    letter : "x" or "y"
    columns : int
        How many it has.
    column : PairColumn or None
        Where it is one.
    function : FunctionPicture or None
        None where the kernels have no space of functions.
    """

    letter: str
    columns: int
    column: PairColumn | None
    function: FunctionPicture | None


@dataclass(frozen=True, slots=True, eq=False)
class LagsPicture:
    """The statistic of two series against the shift of one of them.

    Parameters
    ----------
    lags : ndarray of int, shape (s,)
        Ascending: those that stand for independence.
    statistics : ndarray, shape (s,)
    minimum : int
        Smaller shifts, either way, do not.
    observed : float
        The statistic at shift 0.
    strongest : (int, float)
        The shift with the largest statistic of all, and that statistic.
    """

    lags: NDArray[np.int64]
    statistics: NDArray[np.float64]
    minimum: int
    observed: float
    strongest: tuple[int, float]


@dataclass(frozen=True, slots=True, eq=False)
class PairPicture:
    """What a picture of an independence test shows.

    Parameters
    ----------
    null : NullPicture
    x, y : SidePicture
    correlation : float or None
        Of the witness functions over the rows that are drawn; None where there are none, or they are 0.
    rows : str
        Which rows are drawn, in words, where they are not all.
    lags : LagsPicture or None
        For time series.
    kernels, title : str
    """

    null: NullPicture
    x: SidePicture
    y: SidePicture
    correlation: float | None
    rows: str
    lags: LagsPicture | None
    kernels: str
    title: str
