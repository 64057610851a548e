"""The problem that every support vector machine is, and what certifies a solution of it.

    minimise over w, b    1/2 |w|^2 + sum_i C_i max(0, o_i - y_i (f_i + b)) + b delta,    f_i = <w, phi(x_i)>,

with signs y_i, margins o_i, costs C_i. Its dual, with coefficients beta_i = y_i a_i and f = K beta, is

    maximise over a       sum_i o_i a_i - 1/2 beta' K beta,    0 <= a_i <= C_i,    sum_i beta_i = delta.

Classification has o = 1 and delta = 0; epsilon regression two rows for each case, with signs 1 and -1 and margins
z - epsilon and -z - epsilon; the one-class machine o = 0, y = 1 and delta = nu n. See Boser, Guyon and Vapnik (1992);
Schoelkopf and Smola (2002), chapters 7 to 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.matrices.matrix import Matrix

# Coefficients within this share of a bound are at the bound.
AT_BOUND = 1e-12
# The sum of the coefficients may be wrong by so much of the sum of their sizes.
ROUNDING = 1e-14
# What a curvature that is not positive is replaced by, in units of the largest diagonal entry.
LEAST_CURVATURE = 1e-12
# Steps of pairs, in units of the number of rows, and at least so many; bytes of the rows of the matrix that are kept.
STEPS, LEAST_STEPS, PAIRS_KEPT_BYTES = 100, 100_000, 2 * 10**8


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Signs y (1 or -1), costs C and margins o of n rows, and the sum of the coefficients, delta."""

    signs: Array
    costs: Array
    margins: Array
    total: float = 0.0

    def __len__(self) -> int:
        return len(self.signs)

    def rows(self, chosen: NDArray[np.intp], share: float = 1.0) -> Problem:
        """Return the problem of some rows, with costs multiplied by `share` to stand for all."""
        return Problem(self.signs[chosen], self.costs[chosen] * share, self.margins[chosen], self.total)

    def slack(self, outputs: Array, intercept: float) -> Array:
        """Return o - y (f + b): positive inside the margin."""
        return self.margins - self.signs * (outputs + intercept)

    def primal(self, coefficients: Array, outputs: Array, intercept: float) -> float:
        """Return the primal objective, for f = K beta."""
        hinge = np.maximum(self.slack(outputs, intercept), 0.0)
        return 0.5 * float(coefficients @ outputs) + float(self.costs @ hinge) + intercept * self.total

    def dual(self, coefficients: Array, outputs: Array) -> float:
        """Return the dual objective, for f = K beta and feasible coefficients."""
        return float(self.margins @ (self.signs * coefficients)) - 0.5 * float(coefficients @ outputs)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Coefficients beta, intercept b and outputs K beta, with their certificate.

    `gap` is the difference of the objectives over the primal one; None where the matrix is not positive semi-definite: then
    it bounds nothing. `violation` says by how much the intercepts that two rows allow contradict one another, `converged`
    whether the gap (the violation, where there is none) is within the tolerance, `method` which way the solver went.
    """

    coefficients: Array
    intercept: float
    outputs: Array
    objective: float = math.nan
    dual_objective: float = math.nan
    gap: float | None = None
    violation: float = math.nan
    iterations: int = 0
    converged: bool = True
    method: str = ""


def feasible(problem: Problem, coefficients: Array) -> Array:
    """Return coefficients with 0 <= a <= C and the right sum, next to those given; near bounds they are put on them.

    What clipping and rounding took from the sum goes to the free coefficient with most room, so that f changes by one
    row of K; where it has too little, to all free ones in proportion to their room, then to all.
    """
    y, C = problem.signs, problem.costs
    a = np.clip(y * coefficients, 0.0, C)
    a[a < AT_BOUND * C] = 0.0
    np.copyto(a, C, where=a > C * (1.0 - AT_BOUND))
    for _ in range(4):
        excess = float(y @ a) - problem.total
        if abs(excess) <= ROUNDING * float(a.sum()):
            break
        # Lowering the sum: positive signs go down, negative ones up.
        down = (y > 0) == (excess > 0)
        free = (a > 0) & (a < C)
        room = np.where(down, a, C - a)
        if free.any():
            room[~free] = 0.0
        most = int(np.argmax(room))
        if abs(excess) < 0.5 * room[most]:
            a[most] += -abs(excess) if down[most] else abs(excess)
            continue
        available = float(room.sum())
        if available <= 0:
            break
        share = min(abs(excess) / available, 1.0)
        a = np.clip(a + np.where(down, -share, share) * room, 0.0, C)
    return np.asarray(y * a)


def intercept_of(problem: Problem, coefficients: Array, outputs: Array) -> float:
    """Return the intercept: the mean over free rows where it is optimal, else the nearest that is.

    The primal objective is convex and piecewise linear in b with a break at v_i = y_i o_i - f_i for every row; its slope is
    delta minus the costs of the rows with y = 1 right of b plus those with y = -1 left of it.
    """
    breaks = problem.signs * problem.margins - outputs
    order = np.argsort(breaks, kind="stable")
    # Left of all breaks every row with y = 1 pays and falls with b.
    start = problem.total - float(problem.costs[problem.signs > 0].sum())
    slopes = start + np.cumsum(problem.costs[order])
    tolerance = 1e-12 * float(problem.costs.sum())
    first, last = np.searchsorted(slopes, -tolerance), np.searchsorted(slopes, tolerance, side="right")
    low, high = (float(breaks[order[min(int(place), len(order) - 1)]]) for place in (first, last))
    a = problem.signs * coefficients
    free = (a > 0) & (a < problem.costs)
    return min(max(float(breaks[free].mean()), low), high) if free.any() else 0.5 * (low + high)


def violation(problem: Problem, coefficients: Array, outputs: Array) -> float:
    """Return max_up v - min_down v for v_i = y_i o_i - f_i, at least 0: no pair of rows can gain at a solution.

    beta may rise in rows `up`, fall in rows `down`; an intercept that suits all lies between. See Keerthi et al. (2001).
    """
    v = problem.signs * problem.margins - outputs
    a, positive = problem.signs * coefficients, problem.signs > 0
    up = np.where(positive, a < problem.costs, a > 0)
    down = np.where(positive, a > 0, a < problem.costs)
    if not up.any() or not down.any():
        return 0.0
    return max(float(v[up].max() - v[down].min()), 0.0)


def certify(
    problem: Problem, coefficients: Array, outputs: Array, *, tolerance: float, iterations: int, method: str
) -> Solution:
    """Return a solution with its duality gap; `coefficients` are feasible, `outputs` computed exactly."""
    intercept = intercept_of(problem, coefficients, outputs)
    primal = problem.primal(coefficients, outputs, intercept)
    dual = problem.dual(coefficients, outputs)
    gap = (primal - dual) / max(abs(primal), np.finfo(np.float64).tiny)
    return Solution(
        coefficients=coefficients,
        intercept=intercept,
        outputs=outputs,
        objective=primal,
        dual_objective=dual,
        gap=max(float(gap), 0.0),
        violation=violation(problem, coefficients, outputs),
        iterations=iterations,
        converged=bool(gap <= tolerance),
        method=method,
    )


def solve_indefinite(
    matrix: Matrix,
    problem: Problem,
    *,
    tolerance: float = 1e-3,
    kept_bytes: int = PAIRS_KEPT_BYTES,
) -> Solution:
    """Return a stationary point of a matrix that is not positive semi-definite, with its `violation` in place of a gap.

    Sequential minimal optimisation: two coefficients move at a time, the one that may rise with the largest
    v_i = y_i o_i - f_i, and of those that may fall the one that gains most by the second-order estimate. Where the curvature
    K_ii + K_jj - 2 K_ij is not positive, a small positive number takes its place, and the pair moves until a bound stops it.
    The end is a stationary point: no pair can gain. The problem is not convex then, and no duality gap bounds what is lost.
    See Fan, Chen and Lin (2005); Lin and Lin (2003) on kernels like the sigmoid.

    Rows of the matrix used longest ago make room for others. Cost: O(n) for each pair, and n kernel values for each row that
    is not kept.
    """
    n, iterations = len(problem), 0
    # A start with the right sum, few coefficients not zero: rows of its sign filled one after the other.
    sign = np.sign(problem.total)
    wanted = np.where(problem.signs * sign > 0, problem.costs, 0.0)
    beta = np.asarray(sign * np.clip(abs(problem.total) - (np.cumsum(wanted) - wanted), 0.0, wanted))
    v = problem.signs * problem.margins - matrix.outputs(beta)
    # beta lies between these.
    high = np.where(problem.signs > 0, problem.costs, 0.0)
    low = high - problem.costs
    diagonal = matrix.diagonal
    least = LEAST_CURVATURE * max(float(np.abs(diagonal).max()), np.finfo(np.float64).tiny)

    @lru_cache(maxsize=max(2, kept_bytes // (8 * n)))
    def row_of(i: int) -> Array:
        return np.asarray(matrix.rows(np.array([i]))[0])

    while iterations < max(STEPS * n, LEAST_STEPS):
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
        iterations += 1
    # What many steps added up is computed once more.
    f = matrix.outputs(beta)
    found = certify(
        problem, beta, f, tolerance=tolerance, iterations=iterations, method="sequential minimal optimisation"
    )
    return replace(found, gap=None, converged=found.violation <= 1.01 * tolerance)


def _moved(value: float, step: float, low: float, high: float) -> float:
    """Return value + step, exactly at a bound where it is next to one."""
    value += step
    near = AT_BOUND * (high - low)
    return low if value < low + near else high if value > high - near else value
