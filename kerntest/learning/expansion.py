"""Functions that are sums of kernels: what every learner here ends with, f_j(x) = sum_i coefficients_ij k(x_i, x) + b_j."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from kerntest.engines.base import enough_for
from kerntest.kernels.base import DensePairs, Points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array, Kernel

# Kernel values of one block: so many stay in the second-level cache of a core.
BLOCK = 2**18


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """J functions over the same centres.

    Parameters
    ----------
    kernel : Kernel
        Bound to the columns of the centres.
    centres : Points
        m rows.
    coefficients : ndarray, shape (m, J)
    intercepts : ndarray, shape (J,)
    """

    kernel: Kernel
    centres: Points
    coefficients: Annotated[Array, 2]
    intercepts: Annotated[Array, 1]

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        fits = self.coefficients.shape == (len(self.centres), len(self.intercepts))
        return None if fits else "its centres, coefficients and intercepts do not fit together"

    def __call__(self, points: Points, engine: Engine) -> Array:
        """Return the functions at n points, shape (n, J).

        Notes
        -----
        Cost: O(n m (p + J)) time, 2 MB for each thread besides the result.
        """
        n, m = len(points), len(self.centres)
        result = np.empty((n, len(self.intercepts)))
        if not m:
            result[:] = self.intercepts
            return result
        step = max(16, BLOCK // m)
        starts = list(range(0, n, step))

        def work(start: int) -> Array:
            pairs = DensePairs(points.take(slice(start, start + step)), self.centres)
            values: Array = self.kernel.evaluate(pairs) @ self.coefficients
            return values

        engine = enough_for(engine, n * m)
        for start, values in zip(starts, engine.map(work, starts), strict=True):
            result[start : start + step] = values
        result += self.intercepts
        return result


@dataclass(frozen=True, slots=True, eq=False)
class GivenExpansion:
    """The same for a precomputed matrix: `columns` says which of its columns the coefficients belong to."""

    columns: NDArray[np.intp]
    coefficients: Annotated[Array, 2]
    intercepts: Annotated[Array, 1]

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        fits = self.coefficients.shape == (len(self.columns), len(self.intercepts))
        known = self.columns.min(initial=0) >= 0
        return None if fits and known else "its centres, coefficients and intercepts do not fit together"

    def __call__(self, matrix: Array, engine: Engine) -> Array:
        """Return the functions at the rows of a matrix of kernel values, shape (n, J)."""
        del engine
        values: Array = matrix[:, self.columns] @ self.coefficients + self.intercepts
        return values
