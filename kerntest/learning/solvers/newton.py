"""Newton's method on the primal problem with a smoothed hinge, with an exact line search.

The hinge becomes quadratic over a band of width h, which is lowered in stages. For every h the primal objective is
convex and once differentiable, so that the method always converges; each step solves a system over the band alone.
It is at its best on matrices of low rank, where the active set method may cycle. See Chapelle (2007), "Training a
support vector machine in the primal"; Keerthi and DeCoste (2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.learning.solvers.active_set import Point, Schedule, Sets, active_set, single_changes
from kerntest.learning.solvers.problem import feasible

if TYPE_CHECKING:
    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Budget, Problem
    from kerntest.learning.solvers.systems import System

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


@dataclass(frozen=True, slots=True)
class Widths:
    """How the band narrows: from `start` to `end`, by `factor`; `steps` at most in all.

    `finish` is the schedule end (ridge) and tolerance of the active set method that finishes; None without.
    """

    start: float
    end: float
    factor: float
    steps: int = 600
    finish: tuple[float, float] | None = None


def newton(system: System, beta: Array, f: Array, b: float, *, widths: Widths, budget: Budget) -> Point:
    """Return the point that the smoothed problem leads to, exact where the active set method could finish.

    Starts at beta, f = K beta and b; when the budget is spent it ends with what there is.
    """
    problem = system.problem
    y, C = problem.signs, problem.costs
    h, steps, inner, rounding = widths.start, 0, 0, 0
    signed = y * (f + b)
    while True:
        steps += 1
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
        budget.count()
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
        over = steps >= widths.steps or budget.spent
        # In single precision the last few rows may go to and fro without end.
        few = changed <= SETTLED * len(free)
        stuck = widths.finish is None and few and step < STUCK_STEP
        enough = stuck or (few and step == 1.0 and h > widths.end)
        if not (changed == 0 or inner >= STAGE_STEPS or step == 0.0 or over or enough):
            continue
        if widths.finish is not None and h <= FINISH_WIDTH and step == 1.0:
            point = (
                _finished(system, there, len(free), h=h, finish=widths.finish, budget=budget)
                if h > SINGLE_WIDTH or len(free) > SINGLE_ROWS
                else _finished_singly(system, beta, finish=widths.finish, budget=budget)
            )
            if point is not None:
                return point
        if h <= widths.end or over:
            a = np.clip(y * beta, 0.0, C) if changed == 0 else C * np.clip((margins - signed) / h, 0.0, 1.0)
            return _feasible_point(system, Point(beta, f, b, sets, changed == 0, h / float(C.max())), a)
        h, inner = max(h * widths.factor, widths.end), 0


def _band(z: Array, h: float) -> Sets:
    """Return the rows inside the band, and those beyond it."""
    upper = z >= h
    return Sets((z > 0) & ~upper, upper)


def _finished(
    system: System, sets: Sets, size: int, *, h: float, finish: tuple[float, float], budget: Budget
) -> Point | None:
    """Return the exact point if the active set method gets there from these sets."""
    end, tolerance = finish
    start = max(end, h * FINISH_FACTOR / float(system.problem.costs.max()))
    schedule = Schedule(start, end, FINISH_FACTOR, tolerance, FINISH_PATIENCE, abort=size + 10)
    point = active_set(system, sets.copy(), schedule, budget)[0]
    return point if point.reached else None


def _finished_singly(system: System, beta: Array, *, finish: tuple[float, float], budget: Budget) -> Point | None:
    """Return the exact point if few changes of the sets lead there."""
    ridge, tolerance = finish
    start = feasible(system.problem, beta)
    point = single_changes(system, start, ridge=ridge, tolerance=tolerance, budget=budget)
    return point if point.reached else None


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
