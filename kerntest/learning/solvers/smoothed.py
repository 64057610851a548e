"""Machines to choose by: the hinge is quadratic over a band about the margin, and one cost starts from the one before.

No certificate is made: rows that are held out fall on the same side of machines whose margins differ by a share of a tenth.
From a solution at a smaller cost the active set method takes some five systems; on matrices of low rank it may cycle:
there, and from there on, it is Newton's method that goes on from the solution. Of many rows the first cost starts from a
part of them, and rows of the matrix are made, in single precision, when they are first in the band.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lapack

from kerntest.learning.solvers.active_set import Falling, Point, Sets, active_set, newton
from kerntest.learning.solvers.positive import solve_positive
from kerntest.learning.solvers.problem import (
    CachedSystem,
    Counter,
    DenseSystem,
    Problem,
    Solution,
    System,
    raised,
)
from kerntest.matrices.matrix import strip_edges

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Target
    from kerntest.matrices.matrix import Entries, Matrix

# The width of the band in units of the margin: at .02 systems are twice as many, and no cell of a grid scores otherwise by
# more than a row in two hundred. What margins may be violated by, as a share of it.
WIDTH, VIOLATION = 0.1, 0.1
# Systems of the active set method without progress, and of Newton's method in all.
PATIENCE, STEPS = 4, 60
SMOOTHED, NEWTON = "smoothed", "smoothed, Newton"
# Rows of a matrix that is made whole, of 18 MB, and about so many of the part that the first cost of more starts from.
WHOLE_ROWS, PART = 1500, 1000
# Bytes of matrices that machines to choose by keep.
CHOOSING_BYTES = 25 * 10**7
# Bytes of a triangle for each entry of the matrix. A factorisation of q rows takes as long as q^3 / (33 n^2) products with it:
# conjugate gradients may take as many, if these are a few, up to so many, and leave so much of the width of the band. Where that
# is not enough a factor in single precision makes them few, of a ridge that grows until there is one.
TRIANGLE_BYTES, PRODUCTS, LEAST_PRODUCTS, MOST_PRODUCTS, LEFT, LARGER = 2, 33, 8, 80, 0.02, 10.0
# Sum of coefficients from which on single precision is too coarse for the next, ten times larger cost.
SINGLE_SUM = 1e4


# What is found from nothing, in units of a cost times a diagonal entry; the longest step to the first cost of many rows and to
# larger ones, from what counts as the cost before the first, and what rounding may make of it.
EASY, STEP, FIRST, ROUNDING = 10.0, 10.0, 0.1, 1e-9


class TriangleSystem(System):
    """One triangle of the matrix is there, in single precision, by strips of K[a:b, a:n]: a product reads them once.

    Few free rows are gathered and solved for, of many conjugate gradients find a point within a share of the margin.
    """

    def __init__(self, matrix: Matrix, problem: Problem, counter: Counter) -> None:
        super().__init__(problem, counter, matrix.n, matrix.diagonal)
        n, edges, start = matrix.n, strip_edges(matrix.n), 0
        # All in one piece, which the system has back at once when it is freed.
        every: Entries = np.empty(sum((b - a) * (n - a) for a, b in edges), np.float32)
        self.strips: list[tuple[int, Entries]] = []
        for a, b in edges:
            end = start + (b - a) * (n - a)
            strip = every[start:end].reshape(b - a, n - a)
            self.strips.append((a, matrix.block(slice(a, b), slice(a, None), np.float32, strip)))
            start = end
        # Whether sums are in single precision, too, and whether conjugate gradients need no factor.
        self.single, self.easy, self._beta = True, True, np.zeros(n)

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        dtype: Any = np.float32 if self.single else np.float64
        x, result = coefficients.astype(dtype), np.zeros(len(coefficients))
        for a, strip in self.strips:
            own: Entries = strip.astype(dtype, copy=False)
            b = a + len(strip)
            result[a:b] += own @ x[a:]
            result[b:] += x[a:b] @ own[:, b - a :]
        return result

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, wanted: Array) -> Target:
        """Return the point that the sets ask for; of many free rows by conjugate gradients from the last one on."""
        most = len(free) ** 3 // (PRODUCTS * len(wanted) ** 2)
        if most < LEAST_PRODUCTS:
            found = super().target(free, upper, ridge, wanted)
        else:
            inside, e = np.zeros((2, len(wanted)))
            inside[free], e[free] = 1.0, ridge
            beta, reached = np.where(upper, self._at_upper, self._beta * inside), False
            towards = partial(self.conjugated, inside=inside, ridge=e, asked=wanted, within=LEFT * WIDTH)
            if self.easy:
                found, reached = towards(beta, most=min(most, MOST_PRODUCTS))
                # Larger costs take more of them.
                self.easy, beta = reached, found[0]
            if not reached:
                found, _ = towards(beta, most=MOST_PRODUCTS, solve=self._nearly(free, ridge))
        self._beta = found[0]
        return found

    def _nearly(self, free: NDArray[np.intp], ridge: Array) -> Callable[[Array], Array]:
        """Return what solves for free rows as well as single precision can, with a larger ridge where that is needed."""
        failed = 1
        while failed:
            lower, failed = lapack.spotrf(raised(self._gathered(free)[0], ridge), lower=1, overwrite_a=1, clean=0)
            ridge = LARGER * ridge

        def solve(right: Array) -> Array:
            solved = np.zeros(len(right))
            solved[free] = lapack.spotrs(lower, right[free].astype(np.float32), lower=1)[0]
            return solved

        return solve

    def _gathered(self, free: NDArray[np.intp]) -> tuple[Entries, Array]:
        A: Entries = np.empty((len(free), len(free)), np.float32)
        for a, strip in self.strips:
            low, high = np.searchsorted(free, (a, a + len(strip))).tolist()
            np.take(strip[free[low:high] - a], free[low:] - a, axis=1, out=A[low:high, low:], mode="clip")
            A[high:, low:high] = A[low:high, high:].T
        return A, self.product[free]

    def _solved(self, rows: Entries, free: NDArray[np.intp], ridge: Array, right: Array) -> Array:
        del free
        return solve_positive(raised(rows if self.single else rows.astype(np.float64), ridge), right)

    def _completed(self, rows: Entries, beta: Array, beta_free: Array) -> Array:
        del rows, beta_free
        return self.product + self.outputs(beta - self._bounded)


class CostPath:
    """The machines of one matrix at one cost after another, each larger than the one before.

    Without the whole matrix, so many bytes of its rows are kept.
    """

    def __init__(self, matrix: Matrix, whole: Array | None, kept_bytes: int) -> None:
        self.matrix, self.whole, self.kept_bytes = matrix, whole, kept_bytes
        if whole is None and matrix.n <= WHOLE_ROWS and 8 * matrix.n**2 <= kept_bytes:
            self.whole = matrix.square(np.arange(matrix.n))
        self._system: CachedSystem | None = None
        self._triangle: TriangleSystem | None = None
        self._last: Solution | None = None
        self._cost = FIRST

    def at(self, problem: Problem) -> Solution:
        """Return the machine of a smoothed hinge, without a certificate.

        Cost: |F|^3 / 3 + n |F| for each of some five systems with |F| rows in the band.
        """
        start, found = self._last, None
        cost, many = float(self.matrix.diagonal.max() * problem.costs.max()), len(problem) > WHOLE_ROWS
        if many and cost > STEP * self._cost * (1.0 + ROUNDING):
            start = self.at(replace(problem, costs=problem.costs / STEP))
        elif many and start is None:
            start = self._of_part(problem)
        if start is not None and start.method != NEWTON:
            single = float(np.abs(start.coefficients).sum()) < SINGLE_SUM
            found = _continued(self._system_of(problem, single=single), start)
        if found is None and self._last is None and cost > EASY:
            # What nothing leads to, a smaller cost does.
            start = self.at(replace(problem, costs=problem.costs / STEP))
        if found is None:
            # A line search does not end well in single precision.
            found = _descended(self._system_of(problem, single=False), start)
        self._last, self._cost = found, cost
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
        if TRIANGLE_BYTES * len(problem) ** 2 <= self.kept_bytes:
            triangle = self._triangle or TriangleSystem(self.matrix, problem, Counter())
            self._triangle = triangle.at(problem)
            self._triangle.single = single
            return self._triangle
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
