"""The picture of a regression over the one column there is, in the units of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kerntest.kernels.base import Points
from kerntest.report.regression_plot import FitPicture

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.kernels.base import Array
    from kerntest.learning.encoding import Encoder

CURVE_POINTS = 400
# The curve goes beyond the rows by this share of their range, to either side.
MARGIN = 0.05

# Mean, lower and upper end of the band at some points.
Curve: TypeAlias = "tuple[Array, Array | None, Array | None]"
# Points and a target of each.
Seen: TypeAlias = "tuple[Points | Array, Array]"


def over_one_column(encoder: Encoder | None) -> bool:
    """Say whether rows have one column, of numbers."""
    return encoder is not None and len(encoder.columns) == 1 and len(encoder.numeric_names) == 1


def fit_picture(
    encoder: Encoder | None,
    target: str,
    rows: Seen,
    test: Seen | None,
    curve: Callable[[Points], Curve],
    *,
    band: str,
    remark: str,
) -> FitPicture:
    """Return the fit over the one column there is.

    Parameters
    ----------
    encoder : Encoder
        Of that column.
    target : str
        Name of the target.
    rows, test : (Points, ndarray of shape (n,))
        Training rows, and test rows if there are any, with the target.
    curve : callable
        From g points to the mean and to the ends of the band, each of shape (g,).
    band, remark : str
        As in `FitPicture`.

    Raises
    ------
    TypeError
        If the rows have no column, but are a matrix.
    """
    if encoder is None:
        message = "a fit is drawn over a column"
        raise TypeError(message)
    spec = encoder.numeric[0]
    own = _pairs(*rows)
    tested = np.empty((0, 2)) if test is None else _pairs(*test)
    every = np.concatenate([own[:, 0], tested[:, 0]])
    margin = MARGIN * float(np.ptp(every))
    grid = np.linspace(every.min() - margin, every.max() + margin, CURVE_POINTS)
    mean, low, high = curve(Points.of(grid))

    def in_units(pairs: Array) -> Array:
        return np.column_stack([pairs[:, 0] * spec.spread + spec.centre, pairs[:, 1]])

    return FitPicture(
        names=(spec.name, target),
        across=grid * spec.spread + spec.centre,
        mean=mean,
        low=low,
        high=high,
        band=band,
        rows=in_units(own),
        test_rows=in_units(tested),
        remark=remark,
    )


def _pairs(points: Points | Array, target: Array) -> Array:
    """Return the one column and the target, shape (n, 2)."""
    if not isinstance(points, Points):
        message = "a fit is drawn over a column"
        raise TypeError(message)
    return np.column_stack([points.numeric[:, 0], target])
