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


Identity: TypeAlias = tuple[int, tuple[float, ...]]


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


def canonical_rows(groups: Sequence[Arranged]) -> NDArray[np.intp]:
    """Return the rows in ascending order of their values, columns compared in an order of what they hold.

    What follows then depends on the rows as a set: not on their order in the files, nor on the names or the order of
    columns. Of two groups the one that `canonical_first` puts first comes first where columns hold the same values.

    Parameters
    ----------
    groups : sequence of Arranged

    Notes
    -----
    Cost: O(p n log n) time for p columns in all.
    """
    columns = [column for group in groups for column in _identified(group)]
    columns.sort(key=lambda column: column[0])
    # lexsort takes the most important key last.
    return np.lexsort([values for _, values in reversed(columns)])


def canonical_first(x: Arranged, y: Arranged) -> bool:
    """Say whether x comes first when the two are put into an order that does not depend on which is called x."""
    first, second = (sorted(identity for identity, _ in _identified(group)) for group in (x, y))
    if first != second:
        return first < second
    # Nothing but how rows are paired tells the two apart: the smaller table of sorted rows comes first.
    return _sorted_rows(x, y) <= _sorted_rows(y, x)


def _sorted_rows(x: Arranged, y: Arranged) -> list[list[float]]:
    columns = [*x.numeric.T, *x.codes.T, *y.numeric.T, *y.codes.T]
    order = np.lexsort(columns[::-1])
    rows: list[list[float]] = np.column_stack(columns)[order].tolist()
    return rows


def reordered(group: Arranged, rows: NDArray[np.intp]) -> Arranged:
    """Return arranged columns at these rows."""
    return replace(group, numeric=group.numeric[rows], codes=group.codes[rows])


def _identified(group: Arranged) -> list[tuple[Identity, NDArray[Any]]]:
    """Return every column with what tells it from others: its sorted values, brought to one scale.

    They are rounded, so that a column in other units, equal after scaling but for its last digits, is the same.
    """
    identified: list[tuple[Identity, NDArray[Any]]] = []
    for kind, columns in enumerate((group.numeric, group.codes)):
        for values in columns.T:
            scaled = standardize(np.sort(values)[:, None].astype(np.float64))[0][:, 0]
            identified.append(((kind, tuple(np.round(scaled, 5).tolist())), values))
    return identified
