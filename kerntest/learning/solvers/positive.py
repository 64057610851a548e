"""Positive definite systems: in single precision with refinement where they are large, with jitter where rounding spoils them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import lapack

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# From so many rows on a system is solved by a factor in single precision, in half of the time, if refinement leaves so little
# of the right side, and each of its steps no more than such a share of what was left.
MIXED_ROWS, REFINED, CONVERGING = 600, 1e-10, 0.1
# Factorisations, each with more jitter than the one before.
ATTEMPTS = 7


def solve_positive(A: NDArray[np.floating], right: Array) -> Array:
    """Return A^-1 B for a symmetric positive definite A, with jitter where it is not quite; A may be overwritten.

    LinAlgError says that no small jitter makes it positive definite.
    """
    if len(A) >= MIXED_ROWS and A.dtype == np.float64:
        refined = refined_single(A.astype(np.float32, order="F"), A.__matmul__, right)
        if refined is not None:
            return refined
    diagonal = A.diagonal().copy()
    solve = lapack.dposv if A.dtype == np.float64 else lapack.sposv
    _, solved, failed = solve(A, right.astype(A.dtype, copy=False), lower=1, overwrite_a=1)
    if failed == 0:
        return np.asarray(solved, dtype=np.float64)
    # What lies above the diagonal is still as it was.
    above, jitter = np.triu(A, 1).astype(np.float64), 0.0
    for _ in range(ATTEMPTS):
        again = np.asfortranarray(above + above.T)
        np.fill_diagonal(again, diagonal + jitter)
        _, solved, failed = lapack.dposv(again, right, lower=1, overwrite_a=1)
        if failed == 0:
            return np.asarray(solved)
        jitter = max(100.0 * jitter, 1e-14 * len(A) * float(diagonal.max()))
    raise LinAlgError("the matrix is not positive definite")


def refined_single(single: NDArray[np.float32], times: Callable[[Array], Array], right: Array) -> Array | None:
    """Return A^-1 B by a factor in single precision, and refinement in double by A; None where that does not get there."""
    lower, failed = lapack.spotrf(single, lower=1, overwrite_a=1, clean=0)
    solved, left, before = np.zeros(right.shape), right, math.inf
    scale = float(np.abs(right).max(initial=0.0))
    while not failed:
        size = float(np.abs(left).max(initial=0.0))
        if size <= REFINED * scale:
            return solved
        if not size < CONVERGING * before:
            break
        before = size
        # What is left is brought to the range of single precision.
        step, failed = lapack.spotrs(lower, (left / size).astype(np.float32), lower=1)
        solved += size * step.astype(np.float64)
        left = right - times(solved)
    return None
