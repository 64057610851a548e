"""The end of every way: exact coefficients of the free rows, one exact pass over all rows, the certificate.

The rows that may be free are solved alone, in double precision, with the others held at their bounds. One pass over
the support vectors then gives all outputs, and with them the duality gap. Where it is not yet small enough, the rows
that violate their margins join and the same is done again; as rows only join, and each turn is optimal over them,
the dual objective never falls. Where few rows join, they change their sets one after another.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.linalg import LinAlgError

from kerntest.learning.solvers.active_set import Sets, active_set, newton, single_changes
from kerntest.learning.solvers.problem import Problem, Solution, certify, feasible
from kerntest.learning.solvers.systems import DenseSystem, solve_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.active_set import Point
    from kerntest.learning.solvers.systems import Counter
    from kerntest.matrices.matrix import Matrix

# Turns, rows that may join in one, and systems of the active set method without progress.
TURNS, JOIN, PATIENCE = 40, 50, 3
# Where so few rows were wrong they change one after another.
FEW_WRONG = 20
# Turns without a smaller gap after which no further one will help.
IDLE = 4
# The ridge leaves so much of the tolerance; a cost counts as at most so many times the largest coefficient.
RIDGE_SHARE, COST_SHARE = 0.05, 100.0
# Least ridge, as a share of the largest diagonal entry, and that with which refinement solves for residuals: a factor
# of equal rows keeps no more digits of a smaller one than rounding leaves.
LEAST_RIDGE, REFINING_RIDGE = 1e-13, 1e-10
# Bytes for each entry of the matrix of the free rows: itself, and its factor.
ENTRY_BYTES = 24


class Finish:
    """Certifies a guess, and improves it until the relative duality gap is within the tolerance."""

    def __init__(self, exact: Matrix, problem: Problem, tolerance: float, counter: Counter, kept_bytes: int) -> None:
        self.exact, self.problem, self.tolerance, self.counter = exact, problem, tolerance, counter
        self.most = math.isqrt(kept_bytes // ENTRY_BYTES)
        # A ridge below this is lost in rounding beside the matrix.
        largest = max(float(exact.diagonal.max(initial=0.0)), np.finfo(np.float64).tiny)
        self.least_ridge, self.refining_ridge = LEAST_RIDGE * largest, REFINING_RIDGE * largest
        self.refinements, self.wrong = 0, 0
        self.violation = 0.1 * tolerance

    def solution(self, guess: Point, width: float, exact: bool) -> Solution:
        """Return the certified solution, the best one met where the certificate was not reached.

        `exact` says whether the guess has outputs of the exact matrix in double precision; `width` is that of the band from
        which Newton's method goes on over the free rows, 0 if their sets are right already.
        """
        problem, working, upper, turns, idle = self.problem, guess.sets.free.copy(), guess.sets.upper, 0, 0
        beta, f, best = feasible(problem, guess.coefficients), None, None
        if exact:
            change = beta - guess.coefficients
            f = guess.outputs + self.exact.outputs(change) if np.count_nonzero(change) else guess.outputs
            best = self._certified(beta, f, guess.method)
        while best is None or not best.converged:
            rows = np.flatnonzero(working)
            if turns == TURNS or len(rows) > self.most:
                break
            turns += 1
            try:
                b = guess.intercept if best is None else best.intercept
                beta, f = self._turn(rows, upper, beta, f, b=b, width=width)
            except LinAlgError:
                if best is None:
                    raise
                break
            found = self._certified(beta, f, guess.method)
            better = best is None or gap_of(found) < gap_of(best)
            # After rows have joined, the gap may widen for a while.
            idle = 0 if better or self.wrong else idle + 1
            best = found if better or best is None else best
            if idle > IDLE:
                break
            # Rows that violate their margins join; if there are none, the systems were not exact enough.
            slack = problem.slack(f, found.intercept)
            a = problem.signs * beta
            upper, width = a >= problem.costs, 0.0
            # A row between its bounds is wrong on either side of its margin.
            wrong = np.where(upper, -slack, np.where(a > 0, np.abs(slack), slack))
            wrong[working] = 0.0
            self.wrong = count = int(np.count_nonzero(wrong > self.violation))
            if count:
                # As many that are nearly wrong join too: they will be wrong next.
                wrong[working] = -np.inf
                most = min(2 * count + JOIN, len(wrong) - len(rows))
                working[np.argpartition(-wrong, most - 1)[:most]] = True
            else:
                self.refinements, self.violation = self.refinements + 2, 0.1 * self.violation
        return best or self._certified(beta, self.exact.outputs(beta), guess.method + ", unfinished")

    def _turn(
        self, rows: NDArray[np.intp], upper: NDArray[np.bool_], beta: Array, f: Array | None, *, b: float, width: float
    ) -> tuple[Array, Array]:
        """Return coefficients that are optimal over some rows, the others at their bounds, and all outputs."""
        problem, fixed = self.problem, beta.copy()
        if f is None:
            fixed = np.where(upper, problem.signs * problem.costs, 0.0)
        fixed[rows] = 0.0
        wanted, positive = problem.total - float(fixed.sum()), problem.signs[rows] > 0
        costs = problem.costs[rows]
        if f is None and not -costs[~positive].sum() <= wanted <= costs[positive].sum():
            # Coefficients of these rows cannot have the right sum within their bounds.
            return beta, self.exact.outputs(beta)
        K = self.exact.block(rows, rows)
        product = self.exact.outputs(fixed, rows) if f is None else f[rows] - K @ beta[rows]
        part = Problem(problem.signs[rows], costs, problem.margins[rows] - problem.signs[rows] * product, wanted)
        inside = fixed.copy()
        if len(rows):
            inside[rows] = self._solved(K, part, beta[rows], b=b, width=width)
        new = feasible(problem, inside)
        if f is not None:
            return new, f + self.exact.outputs(new - beta)
        outside = np.ones(len(problem), dtype=bool)
        outside[rows] = False
        if not np.array_equal(new[outside], fixed[outside]):
            return new, self.exact.outputs(new)
        outputs = np.empty(len(problem))
        outputs[rows], outputs[outside] = product + K @ new[rows], self.exact.outputs(new, np.flatnonzero(outside))
        return new, outputs

    def _solved(self, K: Array, part: Problem, beta: Array, *, b: float, width: float) -> Array:
        """Return the coefficients that solve a dense problem."""
        system, tolerance, a = DenseSystem(K, part, self.counter), self.violation, part.signs * beta
        # A ridge of e leaves slacks e a, which cost about 2 e C of the objective.
        largest = float(self.problem.costs.max())
        largest = min(largest, COST_SHARE * float(np.abs(beta).max(initial=0.0)) or largest)
        ridge = max(RIDGE_SHARE * self.tolerance / largest, self.least_ridge)
        point = None
        if not width and 0 < self.wrong <= FEW_WRONG:
            point = single_changes(system, beta, ridge=ridge, tolerance=tolerance)
        elif not width:
            sets = Sets((a > 0) & (a < part.costs), a >= part.costs)
            point, _ = active_set(system, sets, start=ridge, end=ridge, tolerance=tolerance, patience=PATIENCE)
        if point is None or not point.reached:
            width = width or 0.01
            point = newton(system, beta, K @ beta, b, start=width, steps=200, finish=(ridge, tolerance))
        return self._refined(system, point.coefficients, ridge)

    def _refined(self, system: DenseSystem, beta: Array, ridge: float) -> Array:
        """Return coefficients with the same sets, freed of what the ridge and rounding have done to them.

        Iterative refinement: the residual of f + b = y o on the free rows is solved for with the ridge, again and
        again; each turn takes out nearly all that the ridge left in. As they are where a coefficient would leave its
        bounds.
        """
        problem = system.problem
        a = problem.signs * beta
        free = np.flatnonzero((a > 0) & (a < problem.costs))
        if not self.refinements or not len(free):
            return beta
        self.counter.used += 1
        K = system.K[np.ix_(free, free)]
        A = np.asfortranarray(K)
        A[np.diag_indices(len(free))] += max(ridge, self.refining_ridge)
        inverse = solve_positive(A, np.asfortranarray(np.eye(len(free))))
        ones = inverse.sum(axis=1)
        wanted = (problem.signs * problem.margins)[free]
        f, new = system.outputs(beta)[free], beta.copy()
        b = float((wanted - f).mean())
        for _ in range(self.refinements):
            step = inverse @ (wanted - f - b)
            change = (float(step.sum()) - (problem.total - float(new.sum()))) / float(ones.sum())
            step -= change * ones
            new[free] += step
            b += change
            f += K @ step
        inside = problem.signs[free] * new[free]
        return new if ((inside > 0) & (inside < problem.costs[free])).all() else beta

    def _certified(self, beta: Array, f: Array, method: str) -> Solution:
        return certify(self.problem, beta, f, tolerance=self.tolerance, iterations=self.counter.used, method=method)


def gap_of(solution: Solution) -> float:
    """Return the relative duality gap, infinite where there is none."""
    return math.inf if solution.gap is None else solution.gap
