"""Active set methods on the dual with a ridge: the primal-dual one, where many rows change sets at once, and the primal one.

Given a guess of which rows are free and which at their upper bound, the point that these sets ask for tells which
rows were guessed wrong: coefficients beyond their bounds, margins violated. All of them change sets at once. On
matrices of full rank it ends after 9 to 20 systems at every cost; on matrices of low rank it may cycle, and says so.
See Hintermueller, Ito and Kunisch (2003). Where few rows are still guessed
wrong, the primal method puts them right a row at a time; it never cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Budget
    from kerntest.learning.solvers.systems import System

# While the ridge is large, margins may be violated by so much.
LOOSE = 0.1
# The ridge is lowered when at most this share of the free rows is still guessed wrong.
NEARLY = 0.1
# Rows join together whose violation is at least this share of the worst.
JOINING = 0.5
# Systems of single changes at most, and free rows in all of them.
MOST_CHANGES, MOST_ROWS = 60, 20_000


@dataclass(slots=True, eq=False)
class Sets:
    """Which rows are free and which at their upper bound; the others are at zero."""

    free: NDArray[np.bool_]
    upper: NDArray[np.bool_]

    def copy(self) -> Sets:
        """Return sets that can be changed."""
        return Sets(self.free.copy(), self.upper.copy())


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Coefficients, outputs and intercept, with the sets that led there.

    `reached` says whether the sets are those of the point; `ridge` is the one in force.
    """

    coefficients: Array
    outputs: Array
    intercept: float
    sets: Sets
    reached: bool
    ridge: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the ridge falls, and when to give up."""

    start: float
    end: float
    # What the ridge is multiplied by; by its square, and so on, while no guess is wrong.
    factor: float
    # Violation of a margin that is accepted at the end.
    tolerance: float
    # Systems in a row without a new fewest number of wrong guesses.
    patience: int = 6
    # Rows that may become free at once, where each costs a row of the matrix.
    most_freed: int | None = None
    # Give up at once beyond so many wrong guesses.
    abort: int | None = None
    # A row whose violation is larger goes straight to its other bound: C_i K_ii is what fills it if nothing else moves.
    jump: Array | None = None
    # Whether the last ridge, too, may be solved for in single precision.
    single: bool = False


def active_set(system: System, sets: Sets, schedule: Schedule, budget: Budget) -> tuple[Point, Point | None]:
    """Return the last point, and the one at which the ridge was last lowered (a good start for another method).

    The sets are the first guess, and changed. When the budget is spent it ends with what there is.
    """
    problem = system.problem
    y, C, o = problem.signs, problem.costs, problem.margins
    largest = float(C.max())
    free, upper = sets.free, sets.upper
    ridge, factor, patience, fewest = schedule.start, schedule.factor, schedule.patience, len(y) + 1
    good: Point | None = None
    while True:
        budget.count()
        last = ridge <= schedule.end
        system.single_solve = schedule.single or not last
        chosen = np.flatnonzero(free)
        if not len(chosen):
            chosen = _freed_pair(system, upper)
            free[chosen], upper[chosen] = True, False
        beta, f, b = system.target(chosen, upper, np.full(len(chosen), ridge), o)
        a = (y * beta)[chosen]
        low, high = a < 0, a > C[chosen]
        leaving = low | high
        # By how much each row outside F contradicts its side of the margin.
        z = o - y * (f + b)
        violation = np.where(upper, ridge * C - z, z)
        violation[chosen] = 0.0
        allowed = schedule.tolerance if last else max(schedule.tolerance, min(LOOSE, 10.0 * ridge * largest))
        back = violation > allowed
        returning = int(np.count_nonzero(back))
        wrong = int(np.count_nonzero(leaving)) + returning
        jumping = back if schedule.jump is None else back & (violation > schedule.jump)
        if schedule.jump is not None:
            back &= ~jumping
            violation[jumping] = 0.0
            returning = int(np.count_nonzero(back))
        if schedule.most_freed is not None and returning > max(schedule.most_freed, len(chosen) // 2):
            back = _worst(violation, max(schedule.most_freed, len(chosen) // 2))
        if wrong == 0 and last:
            return Point(beta, f, b, Sets(free, upper), True, ridge), good
        patience = schedule.patience if wrong < fewest else patience - 1
        fewest = min(fewest, wrong)
        if patience < 0 or (schedule.abort is not None and wrong > schedule.abort) or budget.spent:
            return Point(beta, f, b, Sets(free, upper), False, ridge), good
        nearly = wrong <= NEARLY * len(chosen) and not last
        if nearly:
            good = Point(beta, f, b, Sets(free.copy(), upper.copy()), False, ridge)
        free[chosen[leaving]] = False
        upper[chosen[high]] = True
        free |= back
        upper &= ~back
        if schedule.jump is not None:
            upper ^= jumping
        if nearly:
            # Faster and faster while nothing is wrong.
            factor = schedule.factor if wrong else factor * factor
            ridge, fewest, patience = max(schedule.end, factor * ridge), len(y) + 1, schedule.patience


def single_changes(system: System, beta: Array, *, ridge: float, tolerance: float, budget: Budget) -> Point:
    """Return the optimum from feasible coefficients by changes of one row after another: the primal active set method.

    The coefficients go towards the target of their sets as far as the bounds allow, and the row in the way leaves F;
    where the target is reached, the rows that violate their margins most join. The dual objective never falls. After
    too many systems `reached` is false.
    """
    problem = system.problem
    y, C = problem.signs, problem.costs
    a = y * beta
    upper = a >= C
    free = (a > 0) & ~upper
    size = max(int(np.count_nonzero(free)), 1)
    for _ in range(max(1, min(MOST_CHANGES, MOST_ROWS // size))):
        budget.count()
        chosen = free.nonzero()[0]
        if not len(chosen):
            chosen = _freed_pair(system, upper)
            free[chosen], upper[chosen] = True, False
        target, f, b = system.target(chosen, upper, np.full(len(chosen), ridge), problem.margins)
        now = a[chosen]
        change = (y * target)[chosen] - now
        room = np.where(change < 0, now, C[chosen] - now)
        # The share of the way to the target at which each row meets its bound; 1 where it does not.
        shares = np.divide(room, np.abs(change), out=np.ones(len(chosen)), where=room < np.abs(change))
        first = int(np.argmin(shares))
        if shares[first] < 1.0:
            row, rising = chosen[first], bool(change[first] > 0)
            a[chosen] += shares[first] * change
            a[row] = C[row] if rising else 0.0
            free[row], upper[row] = False, rising
        else:
            a = y * target
            z = problem.slack(f, b)
            violation = np.where(upper, ridge * C - z, z)
            violation[chosen] = 0.0
            worst = float(violation.max())
            if worst <= tolerance:
                return Point(target, f, b, Sets(free, upper), True, ridge)
            joining = violation >= JOINING * worst
            free |= joining
            upper &= ~joining
        if budget.spent:
            break
    return Point(y * a, system.outputs(y * a), b, Sets(free, upper), False, ridge)


def _freed_pair(system: System, upper: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the pair of rows whose margins contradict one another most, where every row is at a bound."""
    problem = system.problem
    v = problem.signs * problem.margins - system.outputs(np.where(upper, problem.signs * problem.costs, 0.0))
    rising = (problem.signs > 0) ^ upper
    i = int(np.argmax(np.where(rising, v, -np.inf)))
    j = int(np.argmin(np.where(rising, np.inf, v)))
    return np.unique([i, j])


def _worst(violation: Array, most: int) -> NDArray[np.bool_]:
    """Return the rows that violate most."""
    kept = np.zeros(len(violation), dtype=bool)
    kept[np.argpartition(-violation, most)[:most]] = True
    return kept
