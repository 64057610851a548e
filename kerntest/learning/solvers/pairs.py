"""Sequential minimal optimisation: two coefficients move at a time.

The one that may rise with the largest v_i = y_i o_i - f_i, and of those that may fall the one that gains most by the
second-order estimate. A pair takes microseconds where a system takes milliseconds: a few hundred lead to the neighbourhood of
a solution, which other methods start from. Where the matrix is not positive semi-definite they lead to a stationary point. See
Fan, Chen and Lin (2005); Lin and Lin (2003) on kernels like the sigmoid.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kerntest.learning.solvers.problem import AT_BOUND

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Problem, Solution
    from kerntest.matrices.matrix import Entries, Matrix

# What a curvature that is not positive is replaced by, in units of the largest diagonal entry.
LEAST_CURVATURE = 1e-12
# Steps of pairs, in units of the number of rows, and at least so many; bytes of the rows of the matrix that are kept.
STEPS, LEAST_STEPS, PAIRS_KEPT_BYTES = 100, 100_000, 2 * 10**8


def descend(
    row_of: Callable[[int], Entries],
    diagonal: Array,
    problem: Problem,
    start: Array,
    v: Entries,
    *,
    tolerance: float,
    most: int,
) -> tuple[Array, int]:
    """Return coefficients after at most so many pairs, fewer where no pair contradicts itself by more than the tolerance.

    `v` = y o - K beta is that of the start, and moves along in its own precision.
    """
    dtype, taken = v.dtype.type, 0
    high = np.where(problem.signs > 0, problem.costs, 0.0)
    low = high - problem.costs
    # What keeps a row from being chosen to rise, and to fall.
    at_high, at_low = (
        np.where(start < high, 0.0, -np.inf).astype(dtype),
        np.where(start > low, 0.0, np.inf).astype(dtype),
    )
    least = dtype(LEAST_CURVATURE * max(float(np.abs(diagonal).max()), float(np.finfo(np.float64).tiny)))
    sizes, above, curvature, gain = diagonal.astype(dtype), *np.empty((3, len(v)), dtype)
    beta, highs, lows, own = start.tolist(), high.tolist(), low.tolist(), diagonal.tolist()
    while taken < most:
        np.add(v, at_high, out=above)
        i = int(above.argmax())
        np.add(v, at_low, out=above)
        np.subtract(v[i], above, out=above)
        np.maximum(above, 0.0, out=above)
        row = row_of(i)
        np.multiply(row, -2.0, out=curvature)
        curvature += sizes
        curvature += own[i]
        np.maximum(curvature, least, out=curvature)
        np.multiply(above, above, out=gain)
        gain /= curvature
        j = int(gain.argmax())
        between = float(above[j])
        # The pair that gains most may contradict itself less than another one does.
        if between <= tolerance and float(above.max()) <= tolerance:
            break
        step = min(between / float(curvature[j]), highs[i] - beta[i], beta[j] - lows[j])
        for k, value in ((i, beta[i] + step), (j, beta[j] - step)):
            near = AT_BOUND * (highs[k] - lows[k])
            beta[k] = moved = lows[k] if value < lows[k] + near else highs[k] if value > highs[k] - near else value
            at_high[k], at_low[k] = 0.0 if moved < highs[k] else -np.inf, 0.0 if moved > lows[k] else np.inf
        np.subtract(row, row_of(j), out=gain)
        gain *= step
        np.subtract(v, gain, out=v)
        taken += 1
    return np.array(beta), taken


def filled(problem: Problem) -> Array:
    """Return a start with the right sum, few coefficients not zero: rows of its sign filled one after the other."""
    sign = np.sign(problem.total)
    wanted = np.where(problem.signs * sign > 0, problem.costs, 0.0)
    return np.asarray(sign * np.clip(abs(problem.total) - (np.cumsum(wanted) - wanted), 0.0, wanted))


def solve_indefinite(
    matrix: Matrix, problem: Problem, *, tolerance: float = 1e-3, kept_bytes: int = PAIRS_KEPT_BYTES
) -> Solution:
    """Return a stationary point of a matrix that is not positive semi-definite, with its `violation` in place of a gap.

    Where the curvature K_ii + K_jj - 2 K_ij is not positive, a small positive number takes its place, and the pair moves
    until a bound stops it. The end is a stationary point: no pair can gain. The problem is not convex then, and no duality gap
    bounds what is lost.

    Rows of the matrix used longest ago make room for others. Cost: O(n) for each pair, and n kernel values for each row that
    is not kept.
    """
    n, start = len(problem), filled(problem)
    v = problem.signs * problem.margins - matrix.outputs(start)

    @lru_cache(maxsize=max(2, kept_bytes // (8 * n)))
    def row_of(i: int) -> Array:
        return np.asarray(matrix.rows(np.array([i]))[0])

    most = max(STEPS * n, LEAST_STEPS)
    beta, taken = descend(row_of, matrix.diagonal, problem, start, v, tolerance=tolerance, most=most)
    # What many steps added up is computed once more.
    method = "sequential minimal optimisation"
    found = problem.certified(beta, matrix.outputs(beta), tolerance=tolerance, iterations=taken, method=method)
    return replace(found, gap=None, converged=found.violation <= 1.01 * tolerance)
