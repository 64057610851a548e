"""Functions that are sums of kernels: what every learner ends with, f_j(x) = sum_i coefficients_ij k(x_i, x) + b_j."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.engines.engine import Engine, enough_for
from kerntest.kernels.base import Array, DensePairs, Kernel, Points
from kerntest.matrices.different import equal_rows
from kerntest.matrices.factor import BLOCK, as_points, row_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.matrices.factor import FeatureMap

# Kernel values of one block: so many stay in the second-level cache of a core.
EXPANSION_BLOCK = 2**18


class _Functions:
    """What both expansions share: coefficients of shape (m, J), or of pairs of classes.

    With `owners`, the class of each of the m centres, they have shape (m, classes): what a centre of class i has in the
    function that tells i from j stands in column j. So 300 classes of 10 rows have a megabyte and not a gigabyte.
    """

    __slots__ = ()
    coefficients: Array
    intercepts: Array
    owners: tuple[int, ...]

    def _fits(self, centres: int) -> bool:
        """Say whether there are so many centres, and coefficients and intercepts for each function."""
        width = len(self.intercepts)
        if self.owners:
            width = max(self.coefficients.shape[1], max(self.owners) + 1)
        functions = width * (width - 1) // 2 if self.owners else width
        owned = len(self.owners) in {0, centres}
        return owned and self.coefficients.shape == (centres, width) and len(self.intercepts) == functions

    def of(self, values: Array) -> Array:
        """Return the functions at n rows from their values at the centres, shape (n, m)."""
        if not self.owners:
            return np.asarray(values @ self.coefficients + self.intercepts)
        return in_pairs(values, self.coefficients, np.array(self.owners)) + self.intercepts


def in_pairs(values: Array, coefficients: Array, owners: NDArray[np.intp]) -> Array:
    """Return sum_{s of i} v_s c_sj + sum_{s of j} v_s c_si for the pairs of classes (0, 1), (0, 2) ..., shape (n, J)."""
    count, places = coefficients.shape[1], np.arange(coefficients.shape[1])
    # The pair (i, j) stands at before[i] + j.
    before = places * (2 * count - places - 3) // 2 - 1
    # A line for each pair: what is added to many pairs stands together.
    result = np.zeros((count * (count - 1) // 2, len(values)))
    for own in range(count):
        members = np.flatnonzero(owners == own)
        product = coefficients[members].T @ values.T[members]
        result[before[own] + own + 1 : before[own] + count] += product[own + 1 :]
        result[before[:own] + own] += product[:own]
    return result.T


@dataclass(frozen=True, eq=False)
class Expansion(_Functions):
    """J functions over the same m centres, of a kernel bound to their columns."""

    kernel: Kernel
    centres: Points
    coefficients: Annotated[Array, 2]
    intercepts: Annotated[Array, 1]
    owners: tuple[int, ...] = ()

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        fits = self._fits(len(self.centres))
        return None if fits else "its centres, coefficients and intercepts do not fit together"

    def merged(self) -> tuple[Expansion, NDArray[np.intp]]:
        """Return the same functions with one centre for equal ones (of a class), and the place of each of the m centres.

        Cost: O(m (p + log m)) where all are different.
        """
        own = np.array(self.owners).reshape(-1, 1) if self.owners else np.empty((len(self.centres), 0))
        if (found := equal_rows([self.centres.numeric, self.centres.codes, own])) is None:
            return self, np.arange(len(self.centres))
        first, place = found
        coefficients = np.zeros((len(first), self.coefficients.shape[1]))
        np.add.at(coefficients, place, self.coefficients)
        owners = tuple(np.array(self.owners)[first].tolist()) if self.owners else ()
        return replace(self, centres=self.centres.take(first), coefficients=coefficients, owners=owners), place


@dataclass(frozen=True, eq=False)
class GivenExpansion(_Functions):
    """The same for features or a precomputed matrix: `columns` says which of theirs the coefficients belong to."""

    columns: NDArray[np.intp]
    coefficients: Annotated[Array, 2]
    intercepts: Annotated[Array, 1]
    owners: tuple[int, ...] = ()

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        fits = self._fits(len(self.columns)) and self.columns.min(initial=0) >= 0
        return None if fits else "its centres, coefficients and intercepts do not fit together"


def expanded(
    expansion: Expansion | GivenExpansion,
    features: FeatureMap | None,
    points: Points | Array,
    engine: Engine,
    then: Callable[[Array], NDArray[Any]] | None = None,
) -> NDArray[Any]:
    """Return functions at n points, a block of them at a time, or at rows of a precomputed matrix, shape (n, J).

    Or what `then` makes of those of each block: of very many functions there is never more than a block.
    """
    block = EXPANSION_BLOCK if isinstance(expansion, Expansion) else BLOCK
    if isinstance(expansion, Expansion):
        engine = enough_for(engine, len(points) * len(expansion.centres))
    elif features is None:
        engine = engine.here

    def work(part: slice) -> NDArray[Any]:
        if isinstance(expansion, Expansion):
            values = expansion.kernel.evaluate(DensePairs(as_points(points).take(part), expansion.centres))
        elif features is not None:
            values = features.of_block(as_points(points).take(part))
        else:
            values = np.asarray(points)[part, expansion.columns]
        made = expansion.of(values)
        return made if then is None else then(made)

    parts = row_blocks(len(points), len(expansion.coefficients), block) or [slice(0)]
    result: NDArray[Any] | None = None
    for part, made in zip(parts, engine.map(work, parts), strict=True):
        if result is None:
            result = np.empty((len(points), *made.shape[1:]), made.dtype)
        result[part] = made
    return np.asarray(result)


def sum_of_kernels(kernel: Kernel, centres: Points, weights: Array, points: Points) -> Array:
    """Return sum_i w_i k(c_i, x) at n points, shape (n,)."""
    return expanded(Expansion(kernel, centres, weights[:, None], np.zeros(1)), None, points, Engine(1))[:, 0]
