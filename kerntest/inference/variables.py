"""Random variables of an independence test: groups of columns over the same rows, each with kernels of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kerntest.data.scaling import standardize
from kerntest.kernels.base import Columns, Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.arranging import Arranged
    from kerntest.inference.options import Scale
    from kerntest.kernels.base import Array


Identity: TypeAlias = tuple[str, bool, tuple[float, ...]]


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
    named : bool
        Whether the names are those of the data; columns of an array have none of their own.
    """

    points: Points
    centre: Array
    spread: Array
    numeric_names: tuple[str, ...]
    category_names: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...] = ()
    named: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, numeric ones first."""
        return self.numeric_names + self.category_names

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
            self.named,
        )


def variable_of(arranged: Arranged, scale: Scale, *, named: bool = True) -> Variable:
    """Return arranged columns as a variable, scaled; `named` as in `Variable`."""
    numeric = arranged.numeric
    centre, spread = np.zeros(numeric.shape[1]), np.ones(numeric.shape[1])
    if scale == "standardize":
        numeric, centre, spread = standardize(numeric)
    points = Points(numeric, arranged.codes)
    return Variable(points, centre, spread, arranged.numeric_names, arranged.category_names, arranged.levels, named)


def canonical_rows(variables: Sequence[Variable]) -> NDArray[np.intp]:
    """Return the rows in ascending order of their values, columns compared in the order of their names.

    What follows then depends on the rows as a set, not on their order in the files.

    Notes
    -----
    Cost: O(p n log n) time for p columns in all.
    """
    columns = [column for variable in variables for column in _identified(variable)]
    columns.sort(key=lambda column: column[0])
    # lexsort takes the most important key last.
    return np.lexsort([values for _, values in reversed(columns)])


def canonical_first(x: Variable, y: Variable) -> bool:
    """Say whether x comes first when the two are put into an order that does not depend on which is called x."""
    first, second = (sorted(identity for identity, _ in _identified(variable)) for variable in (x, y))
    return first <= second


def _identified(variable: Variable) -> list[tuple[Identity, NDArray[Any]]]:
    """Return every column with what tells it from others: its name, or else what it holds.

    Values are rounded, so that a column in other units, equal after scaling but for its last digits, is the same.
    """
    p = len(variable.numeric_names)
    identified: list[tuple[Identity, NDArray[Any]]] = []
    for place, values in enumerate([*variable.points.numeric.T, *variable.points.codes.T]):
        largest = float(np.abs(values).max()) or 1.0
        held = np.round(np.sort(values) / largest, 6)
        name = variable.names[place] if variable.named else ""
        identified.append(((name, place >= p, tuple(held.tolist())), values))
    return identified
