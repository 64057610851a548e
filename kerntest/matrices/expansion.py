"""Functions that are sums of kernels: what every learner here ends with, f_j(x) = sum_i coefficients_ij k(x_i, x) + b_j."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np

from kerntest.engines.engine import Engine, enough_for
from kerntest.kernels.base import DensePairs, Points
from kerntest.matrices.factor import BLOCK as FEATURES_BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array, Kernel
    from kerntest.matrices.factor import FeatureMap

# Kernel values of one block: so many stay in the second-level cache of a core.
BLOCK = 2**18


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """J functions over the same m centres, of a kernel bound to their columns; coefficients have shape (m, J)."""

    kernel: Kernel
    centres: Points
    coefficients: Annotated[Array, 2]
    intercepts: Annotated[Array, 1]

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        fits = self.coefficients.shape == (len(self.centres), len(self.intercepts))
        return None if fits else "its centres, coefficients and intercepts do not fit together"


@dataclass(frozen=True, slots=True, eq=False)
class GivenExpansion:
    """The same for features or a precomputed matrix: `columns` says which of theirs the coefficients belong to."""

    columns: NDArray[np.intp]
    coefficients: Annotated[Array, 2]
    intercepts: Annotated[Array, 1]

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        fits = self.coefficients.shape == (len(self.columns), len(self.intercepts))
        known = self.columns.min(initial=0) >= 0
        return None if fits and known else "its centres, coefficients and intercepts do not fit together"


def expanded(
    expansion: Expansion | GivenExpansion, features: FeatureMap | None, points: Points | Array, engine: Engine
) -> Array:
    """Return functions at n points, a block of them at a time, or at rows of a precomputed matrix, shape (n, J)."""
    values: Callable[[Points], Array]
    if isinstance(expansion, Expansion):
        values, block = partial(_against, expansion.kernel, expansion.centres), BLOCK
        engine = enough_for(engine, len(points) * len(expansion.centres))
    elif features is not None:
        values, block = features.of_block, FEATURES_BLOCK
    else:
        return np.asarray(np.asarray(points)[:, expansion.columns] @ expansion.coefficients + expansion.intercepts)
    rows = as_points(points)
    step = max(16, block // max(len(expansion.coefficients), 1))
    parts = [slice(start, start + step) for start in range(0, len(rows), step)]
    result = np.empty((len(rows), len(expansion.intercepts)))
    products = engine.map(lambda part: values(rows.take(part)) @ expansion.coefficients, parts)
    for part, product in zip(parts, products, strict=True):
        result[part] = product
    result += expansion.intercepts
    return result


def sum_of_kernels(kernel: Kernel, centres: Points, weights: Array, points: Points) -> Array:
    """Return sum_i w_i k(c_i, x) at n points, shape (n,)."""
    return expanded(Expansion(kernel, centres, weights[:, None], np.zeros(1)), None, points, Engine(1))[:, 0]


def _against(kernel: Kernel, centres: Points, points: Points) -> Array:
    return kernel.evaluate(DensePairs(points, centres))


def as_points(rows: Points | Array) -> Points:
    """Return rows that are points as such; TypeError if they are rows of a matrix."""
    if not isinstance(rows, Points):
        message = "this model takes points, not rows of a matrix"
        raise TypeError(message)
    return rows
