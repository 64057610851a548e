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

from kerntest.learning.solvers.active_set import Point, Schedule, Sets, active_set

if TYPE_CHECKING:
    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.budget import Budget
    from kerntest.learning.solvers.problem import Problem
    from kerntest.learning.solvers.systems import System

# Steps in one stage; steps that only rounding keeps from being descents.
STAGE_STEPS, ROUNDING_STEPS = 120, 30
# From this width down, each stage ends with an attempt of the active set method to finish.
FINISH_WIDTH, FINISH_FACTOR, FINISH_PATIENCE = 0.31, 0.3, 2


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


def newton(system: System, beta: Array, f: Array, b: float, widths: Widths, budget: Budget) -> Point:
    """Return the point that the smoothed problem leads to, exact where the active set method could finish.

    Parameters
    ----------
    system : System
    beta, f : ndarray, shape (n,)
        Where to start, f = K beta.
    b : float
    widths : Widths
    budget : Budget
        Ends with what there is when it is spent.
    """
    problem = system.problem
    y, C = problem.signs, problem.costs
    h, steps, inner, rounding = widths.start, 0, 0, 0
    while True:
        steps += 1
        # The band lies symmetric about the margin while it is narrow, and not far above while it is wide.
        margins = problem.margins + min(h / 2, 0.25)
        z = margins - y * (f + b)
        upper = z >= h
        band = (z > 0) & ~upper
        if not band.any():
            nearest = int(np.argmin(np.abs(z - min(h / 2, 0.25))))
            band[nearest], upper[nearest] = True, False
        free = np.flatnonzero(band)
        beta_new, f_new, b_new = system.target(free, upper, h / C[free], margins)
        budget.count()
        moved = y * (f_new + b_new - f - b)
        z_new = z - moved
        upper_new = z_new >= h
        band_new = (z_new > 0) & ~upper_new
        changed = int(np.count_nonzero(upper_new != upper)) + int(np.count_nonzero(band_new != band))
        same = changed == 0
        step = 1.0
        if not same:
            along = f_new - f
            linear = float(beta @ along) + problem.total * (b_new - b)
            step = _line_search(problem, z, moved, linear, float((beta_new - beta) @ along), h)
        if step == 0.0 and rounding < ROUNDING_STEPS:
            # Only rounding keeps this from being a descent: a plain step of the active set.
            rounding, step = rounding + 1, 1.0
        if step == 1.0:
            beta, f, b = beta_new, f_new, b_new
        elif step > 0:
            beta, f, b = beta + step * (beta_new - beta), f + step * (f_new - f), b + step * (b_new - b)
        inner += 1
        stage_done = same or inner >= STAGE_STEPS or step == 0.0 or steps >= widths.steps or budget.spent
        stage_done = stage_done or (h > widths.end and step == 1.0 and changed <= 0.1 * len(free))
        if not stage_done:
            continue
        if widths.finish is not None and h <= FINISH_WIDTH and step == 1.0:
            end, tolerance = widths.finish
            start = max(end, h * FINISH_FACTOR / float(C.max()))
            schedule = Schedule(start, end, FINISH_FACTOR, tolerance, FINISH_PATIENCE, abort=len(free) + 10)
            point = active_set(system, Sets(band_new.copy(), upper_new.copy()), schedule, budget)[0]
            if point.reached:
                return point
        if h <= widths.end or steps >= widths.steps or budget.spent:
            a = np.clip(y * beta, 0.0, C) if same else C * np.clip((margins - y * (f + b)) / h, 0.0, 1.0)
            change = y * a - beta
            if change.any():
                f = f + system.outputs(change)
            return Point(y * a, f, b, Sets((a > 0) & (a < C), a >= C), same, h / float(C.max()))
        h, inner = max(h * widths.factor, widths.end), 0


def _line_search(problem: Problem, z: Array, moved: Array, linear: float, quadratic: float, h: float) -> float:
    """Return the step in (0, 1] that minimises the smoothed objective along the direction; 0 if it does not descend.

    Its derivative is piecewise linear and grows: a root is found by regula falsi (Illinois), to 1 % of what it is at 0.
    """
    weighted = (problem.costs * moved) / h
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
