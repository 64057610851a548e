"""From a guess to a certified duality gap, by an active set method in double precision on the exact matrix.

The rows that may be free are solved alone, with the others held at their bounds, and one pass over the support vectors
gives all outputs, and with them the duality gap. Where it is not yet small enough, the rows that violate their margins
join and the same is done again; as rows only join, and each turn is optimal over them, the dual objective never falls.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import lapack

from kerntest.learning.solvers import problem as systems
from kerntest.learning.solvers.active_set import Falling, Point, Sets, active_set, newton
from kerntest.learning.solvers.positive import solve_positive
from kerntest.learning.solvers.problem import Problem, Solution
from kerntest.matrices.factor import pivoted_factor
from kerntest.matrices.matrix import FactorMatrix, Repeated

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.matrices.matrix import Matrix

# Turns, rows that may join in one, and systems of the active set method without progress.
TURNS, JOIN, PATIENCE = 100, 50, 3
# Turns without a smaller gap after which no further one will help.
IDLE = 4
# The ridge leaves so much of the tolerance at last, and at first, of at most so many rows, so much that refinements take out.
# A cost counts as at most so many times the largest coefficient.
RIDGE_SHARE, FIRST_SHARE, REFINEMENTS, REFINED_ROWS, COST_SHARE = 0.05, 5.0, 2, 1000, 100.0
# The width of the band to solve a part anew from, and the least ridge that it stands for.
AGAIN_WIDTH, AGAIN_RIDGE = 0.01, 1e-3
# Least ridge, as a share of the largest diagonal entry, and that with which refinement solves for residuals: a factor
# of equal rows keeps no more digits of a smaller one than rounding leaves.
LEAST_RIDGE, REFINING_RIDGE = 1e-13, 1e-10
# Rows by which the pivots of a factor are chosen first, one in how many it may have columns, where it saves more than its turns
# cost, and where it is said to be short, and by how much of what margins may be violated it may change outputs.
SAMPLED, FACTOR_COLUMNS, LEADING, SHORT, FACTOR_SHARE = 400, 4, 8, 16, 0.1
# The ridge about the last coefficients, as a share of the largest diagonal entry; by how much it changes; the largest.
NEARNESS, NEARER, FARTHEST = 1e-3, 0.17, 10.0
# By how much of that ridge a factor may change entries.
NEARNESS_SHARE = 0.03
# Bytes for each entry of the matrix of the free rows: itself, and its factor.
ENTRY_BYTES = 24


class Finish:
    """What certifies guesses at the solution of one problem."""

    def __init__(
        self, matrix: Matrix, problem: Problem, counter: systems.Counter, tolerance: float, kept_bytes: int
    ) -> None:
        self.matrix, self.problem, self.counter = matrix, problem, counter
        self.tolerance, self.kept_bytes, self.largest = tolerance, kept_bytes, float(problem.costs.max())
        diagonal = max(float(matrix.diagonal.max(initial=0.0)), np.finfo(np.float64).tiny)
        self.first_nearness = NEARNESS * diagonal
        # The factor of so many rows, which only join, that was let have so many columns, and by how much it may change entries.
        self._kept: tuple[int, int, Array | None, float] = 0, 0, None, 0.0
        # Whether problems are solved about the last coefficients without a factor, as where the active set method has not got there.
        self.hard = False
        # Whether a factor has led; for how many turns the ridge stays what it is, and for how many where one fails next.
        self.led, self.held, self.hold = False, 0, 1
        self.least_ridge, self.refining_ridge = LEAST_RIDGE * diagonal, REFINING_RIDGE * diagonal

    def certified(self, guess: Point, width: float, exact: bool) -> Solution:
        """Return the certified solution, the best one met where the certificate was not reached.

        `exact` says whether the guess has outputs of the exact matrix in double precision; `width` is that of the band from
        which Newton's method goes on over the free rows, 0 if their sets are right already.
        """
        problem, working, upper, turns, idle = self.problem, guess.sets.free.copy(), guess.sets.upper, 0, 0
        few = np.count_nonzero(working) <= REFINED_ROWS
        self.refinements, self.share = (REFINEMENTS, FIRST_SHARE) if few else (0, RIDGE_SHARE)
        self.wrong, self.violation, self.nearness = 0, 0.1 * self.tolerance, self.first_nearness
        beta, f, best = problem.feasible(guess.coefficients), None, None
        if exact:
            change = beta - guess.coefficients
            f = guess.outputs + self.matrix.outputs(change) if np.count_nonzero(change) else guess.outputs
            best = self._certified(beta, f, guess.method)
        elif not few and self._factor(every := np.flatnonzero(working), len(every) // SHORT) is None:
            # Shorter factors do where outputs are exact: one more pass takes less than systems of long ones.
            f = self.matrix.outputs(beta)
            best = self._certified(beta, f, guess.method)
        self.ahead = _Ahead(best)
        while best is None or not best.converged:
            rows, factor = self._selected(working)
            if turns == TURNS or (factor is None and ENTRY_BYTES * len(rows) ** 2 > self.kept_bytes):
                break
            turns += 1
            try:
                b = guess.intercept if best is None else best.intercept
                origin = self.ahead.origin() if self.hard or factor is not None else None
                beta, f = self._turn(rows, upper, *(origin or (beta, f)), b=b, width=width, factor=factor)
            except LinAlgError:
                if best is None:
                    raise
                break
            found = self._certified(beta, f, guess.method)
            self.ahead.saw(found)
            better = best is None or gap_of(found) < gap_of(best)
            # After rows have joined, the gap may widen for a while.
            idle = 0 if better or self.wrong else idle + 1
            best = found if better or best is None else best
            if idle > IDLE:
                break
            # Rows that violate their margins join; if there are none, the systems were not exact enough, or coefficients settle still.
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
            elif origin is None:
                self.refinements, self.violation = self.refinements + REFINEMENTS, 0.1 * self.violation
                self.share = max(0.1 * self.share, RIDGE_SHARE)
        return best or self._certified(beta, self.matrix.outputs(beta), guess.method + ", unfinished")

    def _turn(
        self,
        rows: NDArray[np.intp],
        upper: NDArray[np.bool_],
        beta: Array,
        f: Array | None,
        *,
        b: float,
        width: float,
        factor: Array | None,
    ) -> tuple[Array, Array]:
        """Return coefficients that are optimal over some rows, the others at their bounds, and all outputs."""
        problem, origin = self.problem, beta
        if f is None:
            origin = np.where(upper, problem.signs * problem.costs, 0.0)
            origin[rows] = 0.0
        own, signs, costs = origin[rows], problem.signs[rows], problem.costs[rows]
        wanted = problem.total - float(origin.sum()) + float(own.sum())
        if f is None and not -costs[signs < 0].sum() <= wanted <= costs[signs > 0].sum():
            # Coefficients of these rows cannot have the right sum within their bounds.
            return beta, self.matrix.outputs(beta)
        f = self.matrix.outputs(origin) if f is None else f
        inside = origin.copy()
        if len(rows):
            # What the others make of these outputs; what a factor leaves out of them stays as it is.
            K = self.matrix.square(rows) if factor is None else factor
            given = f[rows] - (K @ own if factor is None else K @ (own @ K))
            part = Problem(signs, costs, problem.margins[rows] - signs * given, wanted)
            if factor is None:
                inside[rows] = self._solved(systems.DenseSystem(K, part, self.counter), beta[rows], b=b, width=width)
            else:
                system = systems.FactorSystem(K, part, self.counter)
                inside[rows] = self._nearby(system, beta[rows], b=b, width=width).coefficients
        new = problem.feasible(inside)
        return new, f + self.matrix.outputs(new - origin)

    def _selected(self, working: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Array | None]:
        """Return the rows to solve for, with a factor where they are many and it is short enough.

        Where outputs are exact, one that leaves out more does, for more turns: it is to be shorter, but where there are as many
        without. What it led to is nearly right: from there on systems are for rows about the margin, as where there is no room.
        """
        rows, last = np.flatnonzero(working), self.ahead.last
        room = ENTRY_BYTES * len(rows) ** 2 <= self.kept_bytes
        if room and len(rows) <= REFINED_ROWS:
            return rows, None
        shorter = room and last is not None and not self.led and not self.hard
        factor = self._factor(rows, len(rows) // (LEADING if shorter else FACTOR_COLUMNS), near=last is not None)
        self.led |= factor is not None
        if factor is None and last is not None and (self.led or not room):
            rows, self.ahead = _undecided(self.problem, last), _Ahead(last)
            working[:] = False
            working[rows] = True
        return rows, factor

    def _factor(self, rows: NDArray[np.intp], most: int, *, near: bool = False) -> Array | None:
        """Return G with K = G G' for some rows, None where it has more columns.

        But for rounding, or, where only changes `near` the last coefficients go by it, for less than the ridge there.
        """
        if isinstance(self.matrix, FactorMatrix):
            return self.matrix.columns[rows] if self.matrix.columns.shape[1] <= most else None
        error = max(self.violation * FACTOR_SHARE / float(self.problem.costs[rows].sum()), self.least_ridge)
        error = max(error, NEARNESS_SHARE * self.nearness) if near else error
        size, limit, kept, known = self._kept
        # What is as exact does, and where there is none, there is none that is more exact and no longer.
        if size != len(rows) or (error < known if kept is not None else error > known or most > limit):
            sample = np.linspace(0, len(rows) - 1, SAMPLED, dtype=np.intp)
            kept = pivoted_factor(Repeated(self.matrix, rows), error, most, sample)
            self._kept = len(rows), most, kept, error
        return kept

    def _solved(self, system: systems.DenseSystem, beta: Array, *, b: float, width: float) -> Array:
        """Return the coefficients that solve a dense problem."""
        part, tolerance, a = system.problem, self.violation, system.problem.signs * beta
        # A ridge of e leaves slacks e a, which cost about 2 e C of the objective.
        largest = min(self.largest, COST_SHARE * float(np.abs(beta).max(initial=0.0)) or self.largest)
        ridge = max(self.share * self.tolerance / largest, self.least_ridge)
        point = None
        if not width and not self.hard:
            sets = Sets((a > 0) & (a < part.costs), a >= part.costs)
            point, _ = active_set(system, sets, Falling(ridge, ridge, 1.0, tolerance), patience=PATIENCE)
            # Rows that lie next to one another change sides by turns, as do those of which very many functions are as good.
            self.hard = not point.reached
        if self.hard:
            point = self._nearby(system, beta, b=b, width=width)
            if point.reached:
                return point.coefficients
        if point is None or not point.reached:
            start = width or max(AGAIN_WIDTH, AGAIN_RIDGE * largest)
            point = self._newton(system, beta, b, start, ridge)
        return self._refined(system, point.coefficients, ridge)

    def _newton(self, system: systems.System, beta: Array, b: float, start: float, ridge: float) -> Point:
        """Return the point that Newton's method leads to from a width on."""
        return newton(system, beta, system.outputs(beta), b, start=start, steps=200, finish=(ridge, self.violation))

    def _nearby(self, system: systems.System, beta: Array, *, b: float, width: float) -> Point:
        """Return the solution of a problem with a ridge about the last coefficients, which leaves nothing behind where they settle.

        The proximal point method; see Rockafellar (1976). The ridge grows until the active set method gets there.
        """
        part, failed = system.problem, False
        if width:
            beta = self._newton(system, beta, b, width, self.nearness).coefficients
        a = np.clip(part.signs * beta, 0.0, part.costs)
        while True:
            near = system.at(replace(part, margins=part.margins + self.nearness * a))
            sets = Sets((a > 0) & (a < part.costs), a >= part.costs)
            falling = Falling(self.nearness, self.nearness, 1.0, self.violation)
            point, _ = active_set(near, sets, falling, patience=PATIENCE)
            self.counter.used += near.counter.used
            failed |= not point.reached
            if point.reached or self.nearness > FARTHEST * float(system.reach.max()):
                if failed:
                    self.held, self.hold = self.hold, 2 * self.hold
                self.nearness *= 1.0 if self.held else NEARER
                self.held = max(self.held - 1, 0)
                return point
            self.nearness /= NEARER

    def _refined(self, system: systems.DenseSystem, beta: Array, ridge: float) -> Array:
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
        solved = _solver(A)
        ones = solved(np.ones(len(free)))
        wanted = (problem.signs * problem.margins)[free]
        f, new = system.outputs(beta)[free], beta.copy()
        b = float((wanted - f).mean())
        for _ in range(self.refinements):
            step = solved(wanted - f - b)
            change = (float(step.sum()) - (problem.total - float(new.sum()))) / float(ones.sum())
            step -= change * ones
            new[free] += step
            b += change
            f += K @ step
        inside = problem.signs[free] * new[free]
        return new if ((inside > 0) & (inside < problem.costs[free])).all() else beta

    def _certified(self, beta: Array, f: Array, method: str) -> Solution:
        used = self.counter.used
        return self.problem.certified(beta, f, tolerance=self.tolerance, iterations=used, method=method)


class _Ahead:
    """Turns about the last coefficients start from beyond these, by what the turn before has changed, and soon go farther.

    See Nesterov (1983), and Gueler (1992) for the proximal point method. Where the dual objective falls it begins anew.
    """

    def __init__(self, last: Solution | None) -> None:
        self.last, self.before, self.pace = last, last, 1.0

    def saw(self, found: Solution) -> None:
        """Take what a turn has found."""
        if self.last is None or found.dual_objective < self.last.dual_objective:
            self.last, self.pace = found, 1.0
        self.last, self.before = found, self.last

    def origin(self) -> tuple[Array, Array] | None:
        """Return where to start from, with its outputs; None before there is a solution."""
        if self.last is None or self.before is None:
            return None
        last, before, pace = self.last, self.before, self.pace
        self.pace = 0.5 + math.sqrt(0.25 + pace**2)
        share = (pace - 1.0) / self.pace
        coefficients = last.coefficients + share * (last.coefficients - before.coefficients)
        return coefficients, last.outputs + share * (last.outputs - before.outputs)


def _undecided(problem: Problem, found: Solution) -> NDArray[np.intp]:
    """Return the free rows, and a quarter as many of those at their bounds that are closest to contradict them."""
    a, slack = problem.signs * found.coefficients, problem.slack(found.outputs, found.intercept)
    wrong = np.where(a >= problem.costs, -slack, np.where(a > 0, np.inf, slack))
    most = min(int(1.25 * np.count_nonzero(np.isinf(wrong))) + JOIN, len(wrong))
    return np.sort(np.argpartition(-wrong, most - 1)[:most])


def _solver(A: Array) -> Callable[[Array], Array]:
    """Return what multiplies by the inverse of a symmetric positive definite matrix, which may need jitter."""
    lower, failed = lapack.dpotrf(A, lower=1)
    if failed:
        return solve_positive(A, np.asfortranarray(np.eye(len(A)))).__matmul__
    return lambda right: np.asarray(lapack.dpotrs(lower, right, lower=1)[0])


def gap_of(solution: Solution) -> float:
    """Return the relative duality gap, infinite where there is none."""
    return math.inf if solution.gap is None else solution.gap
