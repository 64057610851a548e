"""Random variables of an independence test: groups of columns over the same rows, each with kernels of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.scaling import standardize
from kerntest.kernels.base import Columns, Points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.data.arranging import Arranged
    from kerntest.inference.options import Scale
    from kerntest.kernels.base import Array


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """One random variable, of one column or several, as kernels see it.

    Parameters
    ----------
    points : Points
        n rows, scaled.
    centre, spread : ndarray, shape (p,)
        A numeric column is (points.numeric * spread + centre) in its own units.
    numeric_names, category_names : tuple of str
    levels : tuple of tuple of str
        What the codes of each category column stand for.
    """

    points: Points
    centre: Array
    spread: Array
    numeric_names: tuple[str, ...]
    category_names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, numeric ones first."""
        return self.numeric_names + self.category_names

    def at(self, points: Points) -> Variable:
        """Return the variable at other points."""
        return replace(self, points=points)

    def take(self, rows: NDArray[np.intp]) -> Variable:
        """Return the variable at these rows, scaled as before."""
        points = Points(self.points.numeric[rows], self.points.codes[rows])
        return replace(self, points=points)

    def with_column(self, place: int) -> Variable:
        """Return one of its columns, numeric ones counted first, as a variable."""
        p = len(self.numeric_names)
        columns = Columns((place,), ()) if place < p else Columns((), (place - p,))
        chosen = self.points.select(columns)
        numeric, categories = list(columns.numeric), list(columns.categories)
        return Variable(
            Points(chosen.numeric, chosen.codes),
            self.centre[numeric],
            self.spread[numeric],
            tuple(self.numeric_names[k] for k in numeric),
            tuple(self.category_names[k] for k in categories),
            tuple(self.levels[k] for k in categories),
        )


def variable_of(arranged: Arranged, scale: Scale) -> Variable:
    """Return arranged columns as a variable, scaled."""
    numeric = arranged.numeric
    centre, spread = np.zeros(numeric.shape[1]), np.ones(numeric.shape[1])
    if scale == "standardize":
        numeric, centre, spread = standardize(numeric)
    points = Points(numeric, arranged.codes)
    return Variable(points, centre, spread, arranged.numeric_names, arranged.category_names, arranged.levels)
