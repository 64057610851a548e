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
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Coefficients within this share of a bound are at the bound.
AT_BOUND = 1e-12
# The sum of the coefficients may be wrong by so much of the sum of their sizes.
ROUNDING = 1e-14


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


def best_intercept(problem: Problem, outputs: Array) -> tuple[float, float]:
    """Return the interval of intercepts that minimise the primal objective for these outputs.

    The objective is convex and piecewise linear in b with a break at v_i = y_i o_i - f_i for every row; its slope is
    delta minus the costs of the rows with y = 1 right of b plus those with y = -1 left of it.
    """
    breaks = problem.signs * problem.margins - outputs
    order = np.argsort(breaks, kind="stable")
    costs = problem.costs[order]
    # Left of all breaks every row with y = 1 pays and falls with b.
    start = problem.total - float(problem.costs[problem.signs > 0].sum())
    slopes = start + np.cumsum(costs)
    tolerance = 1e-12 * float(problem.costs.sum())
    first = int(np.searchsorted(slopes, -tolerance))
    last = int(np.searchsorted(slopes, tolerance, side="right"))
    first, last = min(first, len(order) - 1), min(last, len(order) - 1)
    return float(breaks[order[first]]), float(breaks[order[last]])


def intercept_of(problem: Problem, coefficients: Array, outputs: Array) -> float:
    """Return the intercept: the mean over free rows where it is optimal, else the nearest that is."""
    low, high = best_intercept(problem, outputs)
    a = problem.signs * coefficients
    free = (a > 0) & (a < problem.costs)
    if not free.any():
        return 0.5 * (low + high)
    mean = float((problem.signs * problem.margins - outputs)[free].mean())
    return min(max(mean, low), high)


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


class Budget:
    """Counts systems solved, and says when there have been enough of them, or of time since the first."""

    def __init__(self, systems: int | None = None, seconds: float | None = None) -> None:
        self.used = 0
        self._most = systems
        self._end = None if seconds is None else time.monotonic() + seconds

    def count(self) -> None:
        """Count one more system."""
        self.used += 1

    @property
    def spent(self) -> bool:
        """Whether there have been enough."""
        if self._most is not None and self.used >= self._most:
            return True
        return self._end is not None and time.monotonic() > self._end
