"""Random subsets of the rows of a support vector machine, and what they say of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Problem

# The matrix has numerically full rank if so many of its pivots stand out.
PROBE_ROWS, PROBE_TOLERANCE, FULL_RANK = 256, 1e-2, 0.85
# Newton's method takes the rows of a subset whose slack is above minus this: without a row, outputs may change there.
NEAR_MARGIN = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """What a subset says of all rows: coefficients of its members, and the intercept."""

    members: NDArray[np.intp]
    coefficients: Array
    intercept: float

    def order(self, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return all n rows in random order, the members first."""
        others = np.ones(n, dtype=bool)
        others[self.members] = False
        return np.concatenate([self.members, rng.permutation(np.flatnonzero(others))])


def random_subset(signs: Array, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return random rows, of both signs where there are both."""
    members = rng.choice(len(signs), size, replace=False)
    for sign in (1.0, -1.0):
        if not (signs[members] == sign).any():
            some = np.flatnonzero(signs == sign)[:2]
            members[: len(some)] = some
    return np.unique(members)


def levels(first: int, n: int, factor: int, most: int) -> list[int]:
    """Return the sizes of the subsets between the first and all rows, and n."""
    sizes = []
    size = first
    # A subset that is nearly all rows is not worth its systems.
    while 2.0 * factor * size < n and size < most:
        size = min(factor * size, most)
        sizes.append(size)
    return [*sizes, n]


def near_margin(problem: Problem, f: Array, b: float, coefficients: Array) -> NDArray[np.intp]:
    """Return the rows near the margin or beyond it, and those in use; all if they are most."""
    near = (problem.slack(f, b) > -NEAR_MARGIN) | (coefficients != 0)
    return np.flatnonzero(near) if near.mean() < 0.8 else np.arange(len(near))


def full_rank(K: Array) -> bool:
    """Say whether nearly all pivots of some rows stand out."""
    size = min(len(K), PROBE_ROWS)
    scale = float(K.diagonal()[:size].max())
    rank = lapack.dpstrf(np.asfortranarray(K[:size, :size]), lower=1, tol=PROBE_TOLERANCE * scale)[2]
    return bool(rank >= FULL_RANK * size)
