"""Machines to choose by: the hinge is quadratic over a band about the margin, and one cost starts from the one before.

No certificate is made: rows that are held out fall on the same side of machines whose margins differ by a share of a tenth.
From a solution at a smaller cost the active set method takes some five systems; on matrices of low rank it may cycle:
there, and from there on, it is Newton's method that goes on from the solution. Of many rows the first cost starts from a
part of them, and rows of the matrix are made, in single precision, when they are first in the band.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.learning.solvers.active_set import Falling, Point, Sets, active_set, newton
from kerntest.learning.solvers.problem import CachedSystem, Counter, DenseSystem, Problem, Solution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import System
    from kerntest.matrices.matrix import Matrix

# The width of the band in units of the margin: at .02 systems are twice as many, and no cell of a grid scores otherwise by
# more than a row in two hundred. What margins may be violated by, as a share of it.
WIDTH, VIOLATION = 0.1, 0.1
# Systems of the active set method without progress, and of Newton's method in all.
PATIENCE, STEPS = 4, 60
SMOOTHED, NEWTON = "smoothed", "smoothed, Newton"
# Rows of a matrix that is made whole, of 18 MB, and about so many of the part that the first cost of more starts from.
WHOLE_ROWS, PART = 1500, 1000
# Sum of coefficients from which on single precision is too coarse for the next, ten times larger cost.
SINGLE_SUM = 1e4


# What is found from nothing, in units of a cost times a diagonal entry; a step on the way to larger ones.
EASY, STEP = 10.0, 10.0


class CostPath:
    """The machines of one matrix at one cost after another, each larger than the one before.

    Without the whole matrix, so many bytes of its rows are kept.
    """

    def __init__(self, matrix: Matrix, whole: Array | None, kept_bytes: int) -> None:
        self.matrix, self.whole, self.kept_bytes = matrix, whole, kept_bytes
        if whole is None and matrix.n <= WHOLE_ROWS and 8 * matrix.n**2 <= kept_bytes:
            self.whole = matrix.square(np.arange(matrix.n))
        self._system: CachedSystem | None = None
        self._last: Solution | None = None

    def at(self, problem: Problem) -> Solution:
        """Return the machine of a smoothed hinge, without a certificate.

        Cost: |F|^3 / 3 + n |F| for each of some five systems with |F| rows in the band.
        """
        start, found = self._last, None
        if start is None and len(problem) > WHOLE_ROWS:
            start = self._of_part(problem)
        if start is not None and start.method != NEWTON:
            single = float(np.abs(start.coefficients).sum()) < SINGLE_SUM
            found = _continued(self._system_of(problem, single=single), start)
        if found is None and self._last is None and float(self.matrix.diagonal.max() * problem.costs.max()) > EASY:
            # What nothing leads to, a smaller cost does.
            start = self.at(replace(problem, costs=problem.costs / STEP))
        if found is None:
            # A line search does not end well in single precision.
            found = _descended(self._system_of(problem, single=False), start)
        self._last = found
        return found

    def _of_part(self, problem: Problem) -> Solution:
        """Return the machine of evenly spaced rows of either sign, with costs that stand for all, as one of all rows."""
        step = len(problem) // PART
        signs = [np.flatnonzero(problem.signs == sign) for sign in (-1.0, 1.0)]
        rows: NDArray[np.intp] = np.sort(np.concatenate([own[::step] for own in signs]))
        part = problem.rows(rows, step)
        found = _descended(DenseSystem(self.matrix.square(rows), part, Counter()), None)
        coefficients = np.zeros(len(problem))
        coefficients[rows] = found.coefficients
        return Solution(coefficients, found.intercept, self.matrix.outputs(coefficients), method=SMOOTHED)

    def _system_of(self, problem: Problem, *, single: bool) -> System:
        """Return the system of the rows at other costs; entries that are kept serve all of them."""
        if self.whole is not None:
            return DenseSystem(self.whole, problem, Counter())
        dtype = np.float32 if single else np.float64
        if self._system is None or self._system.dtype != dtype:
            every, kept = np.arange(len(problem)), self.kept_bytes
            self._system = CachedSystem(self.matrix, every, problem, Counter(), kept_bytes=kept, dtype=dtype)
        else:
            self._system = self._system.at(problem)
        self._system.rough = True
        return self._system


def _continued(system: System, start: Solution) -> Solution | None:
    """Return the machine by the active set method from another one of the same rows; None where it cycles."""
    problem = system.problem
    ridge = WIDTH / float(problem.costs.max())
    # What the slack of a row makes of its coefficient, as a share of its cost.
    share = problem.slack(start.outputs, start.intercept) / WIDTH
    sets = Sets((share > 0) & (share < 1.0), share >= 1.0)
    point, _ = active_set(system, sets, Falling(ridge, ridge, 1.0, VIOLATION * WIDTH), patience=PATIENCE, single=True)
    return _solution(system, point, SMOOTHED) if point.reached else None


def _descended(system: System, start: Solution | None) -> Solution:
    """Return the machine by Newton's method from another one, or from nothing."""
    zero = np.zeros(len(system.problem))
    beta, f, b = (zero, zero, 0.0) if start is None else (start.coefficients, start.outputs, start.intercept)
    point = newton(system, beta, f, b, start=WIDTH, end=WIDTH, steps=STEPS)
    return _solution(system, point, SMOOTHED if start is None else NEWTON)


def _solution(system: System, point: Point, method: str) -> Solution:
    used = system.counter.used
    return Solution(point.coefficients, point.intercept, point.outputs, iterations=used, method=method)
