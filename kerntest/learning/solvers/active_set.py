"""Three methods that look for the free rows: two active set methods on the dual with a ridge, and Newton's on the primal.

Given a guess of which rows are free and which at their upper bound, the point that these sets ask for tells which
rows were guessed wrong: coefficients beyond their bounds, margins violated. In the primal-dual method all of them change
sets at once. On matrices of full rank it ends after 9 to 20 systems at every cost; on matrices of low rank it may cycle,
and says so: Newton's method on the smoothed hinge is for them. See Hintermueller, Ito and Kunisch (2003). Where few rows
are still guessed wrong, the primal method puts them right a row at a time; it never cycles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.learning.solvers.problem import feasible

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Problem
    from kerntest.learning.solvers.systems import System

# While the ridge is large, margins may be violated by so much.
LOOSE = 0.1
# The ridge is lowered when at most this share of the free rows is still guessed wrong.
NEARLY = 0.1
# Rows join together whose violation is at least this share of the worst.
JOINING = 0.5
# Systems of single changes at most, and free rows in all of them.
MOST_CHANGES, MOST_ROWS = 60, 20_000
# Steps in one stage; steps that only rounding keeps from being descents.
STAGE_STEPS, ROUNDING_STEPS = 120, 30
# A stage but the last is over when a full step changed so few of the free rows.
SETTLED = 0.1
# A stage that nothing finishes exactly is also over when the step is so short.
STUCK_STEP = 1e-5
# From this width down, each stage ends with an attempt of the active set method to finish.
FINISH_WIDTH, FINISH_FACTOR, FINISH_PATIENCE = 0.31, 0.3, 2
# From this one down, and with so few free rows, they change one after another.
SINGLE_WIDTH, SINGLE_ROWS = 0.02, 300


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

    `reached` says whether the sets are those of the point, `ridge` is the one in force, `method` how it was found.
    """

    coefficients: Array
    outputs: Array
    intercept: float
    sets: Sets
    reached: bool = False
    ridge: float = 0.0
    method: str = ""


def active_set(
    system: System,
    sets: Sets,
    *,
    start: float,
    end: float,
    tolerance: float,
    factor: float = 1.0,
    patience: int = 6,
    most_freed: int | None = None,
    abort: float = math.inf,
    jump: Array | float = math.inf,
    single: bool = False,
) -> tuple[Point, Point | None]:
    """Return the last point, and the one at which the ridge was last lowered (a good start for another method).

    The sets are the first guess, and changed. The ridge falls from `start` to `end` by `factor`; by its square, and so on,
    while no guess is wrong. At the end margins may be violated by the `tolerance`. It gives up beyond `abort` wrong guesses,
    or after `patience` systems without a new fewest number of them. At most so many rows become free at once, where each
    costs a row of the matrix; a row whose violation is larger than its `jump` goes straight to its other bound: C_i K_ii is
    what fills it if nothing else moves. `single` says whether the last ridge, too, may be solved for in single precision.
    """
    problem = system.problem
    y, C, o = problem.signs, problem.costs, problem.margins
    largest = float(C.max())
    free, upper = sets.free, sets.upper
    ridge, faster, left, fewest = start, factor, patience, len(y) + 1
    good: Point | None = None
    while True:
        last = ridge <= end
        system.single_solve = single or not last
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
        allowed = tolerance if last else max(tolerance, min(LOOSE, 10.0 * ridge * largest))
        back = violation > allowed
        wrong = int(np.count_nonzero(leaving)) + int(np.count_nonzero(back))
        jumping = back & (violation > jump)
        back &= ~jumping
        violation[jumping] = 0.0
        most = len(y) if most_freed is None else max(most_freed, len(chosen) // 2)
        if int(np.count_nonzero(back)) > most:
            back = np.zeros(len(y), dtype=bool)
            back[np.argpartition(-violation, most)[:most]] = True
        if wrong == 0 and last:
            return Point(beta, f, b, Sets(free, upper), True, ridge), good
        left = patience if wrong < fewest else left - 1
        fewest = min(fewest, wrong)
        if left < 0 or wrong > abort:
            return Point(beta, f, b, Sets(free, upper), False, ridge), good
        nearly = wrong <= NEARLY * len(chosen) and not last
        if nearly:
            good = Point(beta, f, b, Sets(free.copy(), upper.copy()), False, ridge)
        free[chosen[leaving]] = False
        upper[chosen[high]] = True
        free |= back
        upper &= ~back
        upper ^= jumping
        if nearly:
            # Faster and faster while nothing is wrong.
            faster = factor if wrong else faster * faster
            ridge, fewest, left = max(end, faster * ridge), len(y) + 1, patience


def single_changes(system: System, beta: Array, *, ridge: float, tolerance: float) -> Point:
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
    return Point(y * a, system.outputs(y * a), b, Sets(free, upper), False, ridge)


def _freed_pair(system: System, upper: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the pair of rows whose margins contradict one another most, where every row is at a bound."""
    problem = system.problem
    v = problem.signs * problem.margins - system.outputs(np.where(upper, problem.signs * problem.costs, 0.0))
    rising = (problem.signs > 0) ^ upper
    i = int(np.argmax(np.where(rising, v, -np.inf)))
    j = int(np.argmin(np.where(rising, np.inf, v)))
    return np.unique([i, j])


def newton(
    system: System,
    beta: Array,
    f: Array,
    b: float,
    *,
    start: float,
    factor: float = 0.1,
    end: float = math.inf,
    steps: int = 600,
    finish: tuple[float, float] | None = None,
) -> Point:
    """Return the point that the primal problem with a smoothed hinge leads to, from beta, f = K beta and b.

    The hinge becomes quadratic over a band of width h, which narrows from `start` to `end` by `factor`. For every h the primal
    objective is convex and once differentiable, so that the method always converges; each step solves a system over the band
    alone, and is followed by an exact line search. It is at its best on matrices of low rank, where the active set method may
    cycle. See Chapelle (2007), "Training a support vector machine in the primal"; Keerthi and DeCoste (2005).

    It ends after so many `steps` with what there is. `finish` is the ridge and the tolerance of the active set method that
    makes the point exact, where it gets there.
    """
    end = min(start, end if finish is None else finish[1])
    problem = system.problem
    y, C = problem.signs, problem.costs
    h, taken, inner, rounding = start, 0, 0, 0
    signed = y * (f + b)
    while True:
        taken += 1
        # The band lies symmetric about the margin while it is narrow, and not far above while it is wide.
        above = min(h / 2, 0.25)
        margins = problem.margins + above
        z = margins - signed
        sets = _band(z, h)
        free = sets.free.nonzero()[0]
        if not len(free):
            free = np.array([np.argmin(np.abs(z - above))])
            sets.free[free], sets.upper[free] = True, False
        beta_new, f_new, b_new = system.target(free, sets.upper, h / C[free], margins)
        signed_new = y * (f_new + b_new)
        moved = signed_new - signed
        there = _band(margins - signed_new, h)
        differ = (there.upper != sets.upper) | (there.free != sets.free)
        changed = int(np.count_nonzero(differ))
        step = 1.0
        if changed:
            along = f_new - f
            linear = float(beta @ along) + problem.total * (b_new - b)
            quadratic = float((beta_new - beta) @ along)
            step = _line_search(problem, z, moved, linear=linear, quadratic=quadratic, h=h)
        if step == 0.0 and rounding < ROUNDING_STEPS:
            # Only rounding keeps this from being a descent: a plain step of the active set.
            rounding, step = rounding + 1, 1.0
        if step == 1.0:
            beta, f, b, signed = beta_new, f_new, b_new, signed_new
        else:
            beta, f, b = beta + step * (beta_new - beta), f + step * (f_new - f), b + step * (b_new - b)
            signed = signed + step * moved
        inner += 1
        over = taken == steps
        # In single precision the last few rows may go to and fro without end.
        few = changed <= SETTLED * len(free)
        stuck = finish is None and few and step < STUCK_STEP
        enough = stuck or (few and step == 1.0 and h > end)
        if not (changed == 0 or inner >= STAGE_STEPS or step == 0.0 or over or enough):
            continue
        if finish is not None and h <= FINISH_WIDTH and step == 1.0:
            point = _finished(system, there, beta, size=len(free), h=h, finish=finish)
            if point.reached:
                return point
        if h <= end or over:
            a = np.clip(y * beta, 0.0, C) if changed == 0 else C * np.clip((margins - signed) / h, 0.0, 1.0)
            return _feasible_point(system, Point(beta, f, b, sets, changed == 0, h / float(C.max())), a)
        h, inner = max(h * factor, end), 0


def _band(z: Array, h: float) -> Sets:
    """Return the rows inside the band, and those beyond it."""
    upper = z >= h
    return Sets((z > 0) & ~upper, upper)


def _finished(system: System, sets: Sets, beta: Array, *, size: int, h: float, finish: tuple[float, float]) -> Point:
    """Return the exact point if the active set method gets there from these sets, or few changes of them do."""
    ridge, tolerance = finish
    if h <= SINGLE_WIDTH and size <= SINGLE_ROWS:
        return single_changes(system, feasible(system.problem, beta), ridge=ridge, tolerance=tolerance)
    start = max(ridge, h * FINISH_FACTOR / float(system.problem.costs.max()))
    return active_set(
        system,
        sets.copy(),
        start=start,
        end=ridge,
        tolerance=tolerance,
        factor=FINISH_FACTOR,
        patience=FINISH_PATIENCE,
        abort=size + 10,
    )[0]


def _feasible_point(system: System, point: Point, a: Array) -> Point:
    """Return the point with coefficients y a, its sets and outputs theirs."""
    C = system.problem.costs
    coefficients = system.problem.signs * a
    change = coefficients - point.coefficients
    f = point.outputs + system.outputs(change) if change.any() else point.outputs
    sets = Sets((a > 0) & (a < C), a >= C)
    return Point(coefficients, f, point.intercept, sets, point.reached, point.ridge)


def _line_search(problem: Problem, z: Array, moved: Array, *, linear: float, quadratic: float, h: float) -> float:
    """Return the step in (0, 1] that minimises the smoothed objective along the direction; 0 if it does not descend.

    Its derivative is piecewise linear and grows: a root is found by regula falsi (Illinois), to 1 % of what it is at 0.
    """
    # Rows below the band at both ends of the way add nothing, those above it the same everywhere.
    at_end = z - moved
    highest, lowest = np.maximum(z, at_end), np.minimum(z, at_end)
    crossing = ((highest > 0) & (lowest < h)).nonzero()[0]
    linear -= float(problem.costs @ np.where(lowest >= h, moved, 0.0))
    z, moved = z[crossing], moved[crossing]
    weighted = (problem.costs[crossing] * moved) / h
    inside = np.empty(len(z))

    def slope(s: float) -> float:
        np.multiply(moved, -s, out=inside)
        np.add(inside, z, out=inside)
        np.maximum(inside, 0.0, out=inside)
        np.minimum(inside, h, out=inside)
        return linear + s * quadratic - float(inside @ weighted)

    at_one = slope(1.0)
    if at_one <= 1e-12 * abs(linear) + 1e-300:
        return 1.0
    at_zero = slope(0.0)
    if at_zero >= 0:
        return 0.0
    low, high, f_low, f_high = 0.0, 1.0, at_zero, at_one
    s = 1.0
    for _ in range(25):
        s = (low * f_high - high * f_low) / (f_high - f_low)
        value = slope(s)
        if abs(value) < 1e-2 * abs(at_zero):
            break
        if value < 0:
            low, f_low, f_high = s, value, 0.5 * f_high
        else:
            high, f_high, f_low = s, value, 0.5 * f_low
    return s
