"""Sequential minimal optimisation: for kernels whose matrix is not positive semi-definite.

Two coefficients move at a time: the one that may rise with the largest v_i = y_i o_i - f_i, and of those that may fall
the one that gains most by the second-order estimate. Where the curvature K_ii + K_jj - 2 K_ij is not positive, a small
positive number takes its place, and the pair moves until a bound stops it. The end is a stationary point: no pair can
gain. The problem is not convex then, and no duality gap bounds what is lost. See Fan, Chen and Lin (2005); Lin and Lin
(2003) on kernels like the sigmoid.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kerntest.learning.solvers.problem import AT_BOUND, Budget, Solution, intercept_of, violation

if TYPE_CHECKING:
    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Problem
    from kerntest.matrices.matrix import Matrix

# What a curvature that is not positive is replaced by, in units of the largest diagonal entry.
LEAST_CURVATURE = 1e-12
# Steps, in units of the number of rows, and at least so many.
STEPS, LEAST_STEPS = 100, 100_000
KEPT_BYTES = 2 * 10**8


def solve_indefinite(
    matrix: Matrix,
    problem: Problem,
    *,
    tolerance: float = 1e-3,
    kept_bytes: int = KEPT_BYTES,
    max_steps: int | None = None,
    max_seconds: float | None = None,
) -> Solution:
    """Return a stationary point, with `violation` of the optimality conditions in place of a gap.

    At most `max_steps` pairs are moved, the larger of 100 n and 100,000 without it; rows of the matrix used longest ago
    make room for others. Cost: O(n) for each pair, and n kernel values for each row that is not kept.
    """
    n = len(problem)
    budget = Budget(max(STEPS * n, LEAST_STEPS) if max_steps is None else max_steps, max_seconds)
    beta = _start(problem)
    v = problem.signs * problem.margins - matrix.outputs(beta)
    # beta lies between these.
    high = np.where(problem.signs > 0, problem.costs, 0.0)
    low = high - problem.costs
    diagonal = matrix.diagonal
    least = LEAST_CURVATURE * max(float(np.abs(diagonal).max()), np.finfo(np.float64).tiny)

    @lru_cache(maxsize=max(2, kept_bytes // (8 * n)))
    def row_of(i: int) -> Array:
        return np.asarray(matrix.rows(np.array([i]))[0])

    while not budget.spent:
        rising = np.where(beta < high, v, -np.inf)
        i = int(np.argmax(rising))
        above = rising[i] - np.where(beta > low, v, np.inf)
        if float(above.max()) <= tolerance:
            break
        row = row_of(i)
        curvature = np.maximum(diagonal[i] + diagonal - 2.0 * row, least)
        j = int(np.argmax(np.where(above > 0, above * above / curvature, -1.0)))
        step = min(above[j] / curvature[j], high[i] - beta[i], beta[j] - low[j])
        beta[i], beta[j] = _moved(beta[i], step, low[i], high[i]), _moved(beta[j], -step, low[j], high[j])
        v -= step * (row - row_of(j))
        budget.count()
    # What many steps added up is computed once more.
    f = matrix.outputs(beta)
    intercept = intercept_of(problem, beta, f)
    left = violation(problem, beta, f)
    return Solution(
        coefficients=beta,
        intercept=intercept,
        outputs=f,
        objective=problem.primal(beta, f, intercept),
        dual_objective=problem.dual(beta, f),
        gap=None,
        violation=left,
        iterations=budget.used,
        converged=left <= 1.01 * tolerance,
        method="sequential minimal optimisation",
    )


def _moved(value: float, step: float, low: float, high: float) -> float:
    """Return value + step, exactly at a bound where it is next to one."""
    value += step
    near = AT_BOUND * (high - low)
    return low if value < low + near else high if value > high - near else value


def _start(problem: Problem) -> Array:
    """Return coefficients with the right sum, few of them not zero: rows of its sign filled one after the other."""
    wanted = np.where(problem.signs * np.sign(problem.total) > 0, problem.costs, 0.0)
    filled = np.concatenate([[0.0], np.cumsum(wanted)])
    return np.asarray(np.sign(problem.total) * np.clip(abs(problem.total) - filled[:-1], 0.0, wanted))
