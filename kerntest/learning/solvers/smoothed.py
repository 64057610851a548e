"""Machines to choose by: the hinge is quadratic over a band about the margin, and one cost starts from the one before.

No certificate is made: rows that are held out fall on the same side of machines whose margins differ by a share of a tenth.
The whole matrix is there. From a solution at a smaller cost the active set method takes some five systems; on matrices of
low rank it may cycle: there, and from there on, it is Newton's method that goes on from the solution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.learning.solvers.active_set import Falling, Sets, active_set, newton
from kerntest.learning.solvers.problem import Counter, DenseSystem, Solution

if TYPE_CHECKING:
    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Problem

# The width of the band in units of the margin: at .02 systems are twice as many, and no cell of a grid scores otherwise by
# more than a row in two hundred. What margins may be violated by, as a share of it.
WIDTH, VIOLATION = 0.1, 0.1
# Systems of the active set method without progress, and of Newton's method in all.
PATIENCE, STEPS = 4, 60
NEWTON = "smoothed, Newton"


def solve_smoothed(K: Array, problem: Problem, start: Solution | None = None) -> Solution:
    """Return the machine of a smoothed hinge, without a certificate, from that of the same rows at a smaller cost.

    Cost: |F|^3 / 3 + n |F| for each of some five systems with |F| rows in the band.
    """
    system, zero, ridge = DenseSystem(K, problem, Counter()), np.zeros(len(problem)), WIDTH / float(problem.costs.max())
    beta, f, b = (zero, zero, 0.0) if start is None else (start.coefficients, start.outputs, start.intercept)
    point, method = None, NEWTON
    if start is not None and start.method != NEWTON:
        a = problem.signs * beta / problem.costs
        upper = a >= (1.0 - 1e-9) * a.max()
        falling = Falling(ridge, ridge, 1.0, VIOLATION * WIDTH)
        point, method = active_set(system, Sets((a > 0) & ~upper, upper), falling, patience=PATIENCE)[0], "smoothed"
    if point is None or not point.reached:
        point, method = newton(system, beta, f, b, start=WIDTH, end=WIDTH, steps=STEPS), NEWTON
    if start is None:
        method = "smoothed"
    coefficients, used = point.coefficients, system.counter.used
    return Solution(coefficients, point.intercept, point.outputs, iterations=used, method=method)
