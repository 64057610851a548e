"""Two methods that look for the free rows: the active set method on the dual with a ridge, and Newton's on the primal.

Given a guess of which rows are free and which at their upper bound, the point that these sets ask for tells which
rows were guessed wrong: coefficients beyond their bounds, margins violated. All of them change
sets at once. On matrices of full rank it ends after 9 to 20 systems at every cost; on matrices of low rank it may cycle,
and says so: Newton's method on the smoothed hinge is for them. See Hintermueller, Ito and Kunisch (2003).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kerntest.dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Problem, System

# While the ridge is large, margins may be violated by so much.
LOOSE = 0.1
# The ridge is lowered when at most this share of the free rows is still guessed wrong.
NEARLY = 0.1
# Where fewer than one in so many of the rows at their bounds are free, and no coefficients within so many times the room that
# these leave have the right sum, the sets are guessed anew.
FEW, FAR = 16, 4.0
# Outputs below so much on average say little: each row may go where it would go alone.
FAINT = 0.5
# Steps in one stage; steps that only rounding keeps from being descents.
STAGE_STEPS, ROUNDING_STEPS = 120, 30
# A stage but the last is over when a full step changed so few of the free rows.
SETTLED = 0.1
# A stage that nothing finishes exactly is also over when the step is so short.
STUCK_STEP = 1e-5
# What a line search may leave of the slope that it starts from.
ENOUGH = 0.1
# From this width down, each stage ends with an attempt of the active set method to finish.
FINISH_WIDTH, FINISH_FACTOR, FINISH_PATIENCE = 0.31, 0.5, 2


class Sets(NamedTuple):
    """Which rows are free and which at their upper bound; the others are at zero."""

    free: NDArray[np.bool_]
    upper: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
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


class Falling(NamedTuple):
    """A ridge that falls from `start` to `end` by a factor, and by how much margins may be violated at the end."""

    start: float
    end: float
    factor: float
    tolerance: float


def active_set(
    system: System,
    sets: Sets,
    falling: Falling,
    *,
    patience: int = 6,
    most_freed: int | None = None,
    abort: float = math.inf,
    jump: float = math.inf,
    single: bool = False,
) -> tuple[Point, Point | None]:
    """Return the last point, and the one at which the ridge was last lowered (a good start for another method).

    The sets are the first guess, and changed. The ridge falls by its factor; by the square of that, and so on, while no
    guess is wrong. It gives up beyond `abort` wrong guesses,
    or after `patience` systems without a new fewest number of them. At most so many rows become free at once, where each
    costs a row of the matrix; a row whose violation is more than `jump` times what fills it goes straight to its other bound. `single` says whether the last ridge, too, may be solved for in single precision.
    """
    problem = system.problem
    y, C, o = problem.signs, problem.costs, problem.margins
    wanted, largest, n = y * o, float(C.max()), len(y)
    free, upper = sets.free, sets.upper
    (ridge, end, factor, tolerance), left, fewest = falling, patience, n + 1
    ridges, faster = np.full(n, ridge), factor
    good: Point | None = None
    beta = np.where(upper, y * C, 0.0)
    while True:
        last = ridge <= end
        system.rough = single or not last
        chosen = _chosen(system, free, upper, beta, stuck=2 * left <= patience)
        beta, f, b = system.target(chosen, upper, ridges[: len(chosen)], wanted)
        a = y[chosen] * beta[chosen]
        high = a > C[chosen]
        leaving = high | (a < 0)
        # By how much each row outside F contradicts its side of the margin.
        violation = o - y * (f + b)
        np.subtract(ridge * C, violation, out=violation, where=upper)
        violation[chosen] = 0.0
        back = violation > (tolerance if last else max(tolerance, min(LOOSE, 10.0 * ridge * largest)))
        wrong = int(np.count_nonzero(leaving)) + int(np.count_nonzero(back))
        left = patience if wrong < fewest else left - 1
        fewest = min(fewest, wrong)
        reached = wrong == 0 and last
        if reached or left < 0 or wrong > abort:
            return Point(beta, f, b, Sets(free, upper), reached, ridge), good
        nearly = wrong <= NEARLY * len(chosen) and not last
        if nearly:
            good = Point(beta, f, b, Sets(free.copy(), upper.copy()), False, ridge)
        if wrong:
            free[chosen[leaving]] = False
            upper[chosen[high]] = True
            if jump < math.inf:
                jumping = back & (violation > jump * system.reach)
                upper ^= jumping
                back ^= jumping
                violation[jumping] = 0.0
            most = n if most_freed is None else max(most_freed, len(chosen) // 2)
            if int(np.count_nonzero(back)) > most:
                back = np.zeros(n, dtype=bool)
                back[np.argpartition(-violation, most)[:most]] = True
            free |= back
            upper &= ~free
        if nearly:
            # Faster and faster while nothing is wrong.
            faster = factor if wrong else faster * faster
            ridge, fewest, left = max(end, faster * ridge), n + 1, patience
            ridges = np.full(n, ridge)


def _chosen(
    system: System, free: NDArray[np.bool_], upper: NDArray[np.bool_], beta: Array, *, stuck: bool
) -> NDArray[np.intp]:
    """Return the free rows, guessed anew where sums within bounds are far off; what is not, next systems mostly set right."""
    chosen = free.nonzero()[0]
    stuck = stuck or not len(chosen)
    few = stuck or FEW * len(chosen) < np.count_nonzero(upper)
    if few and not system.attainable(chosen, upper, 0.0 if stuck else FAR):
        _regroup(system, free, upper, beta)
        chosen = free.nonzero()[0]
    return chosen


def _regroup(system: System, free: NDArray[np.bool_], upper: NDArray[np.bool_], beta: Array) -> None:
    """Free the rows that beta leaves so close to their margin that they may end within bounds; the others go to one."""
    problem = system.problem
    a = np.clip(problem.signs * beta, 0.0, problem.costs)
    beta = problem.signs * a
    f = system.outputs(beta)
    # The slack of a row as if it were at zero is what it can take in.
    slack = problem.slack(f, problem.intercept(beta, f))
    share = slack + a / problem.costs * system.reach
    inside = (share > 0) & (share < system.reach)
    if float(np.abs(f).mean()) < FAINT:
        free[:], upper[:] = inside, share >= system.reach
    else:
        free |= inside
    free[np.argmin(np.abs(slack))] = True
    upper &= ~free


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
    problem, end = system.problem, min(start, end if finish is None else finish[1])
    y, C, largest = problem.signs, problem.costs, float(problem.costs.max())
    h, taken, inner, rounding, predicted = start, 0, 0, 0, False
    # Outputs with their intercept: sums of coefficients do not change but by rounding.
    g, band = f + b, _Band.of(problem, h)
    z = band.slack(g)
    sets = band.sets(z)
    while True:
        taken += 1
        free = _free_rows(system, sets, z, band.above)
        beta_new, f_new, b_new = system.target(free, sets.upper, band.ridges[free], band.wanted)
        f_new += b_new
        z_new = band.slack(f_new)
        there, direction, along, moved = band.sets(z_new), beta_new - beta, f_new - g, z - z_new
        changed = _changed(sets, there, moved)
        slopes = float(beta @ along), float(direction @ along)
        step = _line_search((z, z_new), moved, band.weights * moved, slopes, h) if changed else 1.0
        if step == 0.0 and predicted:
            # Sets that lead nowhere say that the band is too narrow for them.
            sets, predicted = band.sets(z), False
            continue
        predicted = False
        if step == 0.0 and rounding < ROUNDING_STEPS:
            # Only rounding keeps this from being a descent: a plain step of the active set.
            rounding, step = rounding + 1, 1.0
        if step == 1.0:
            beta, g, b, z, sets = beta_new, f_new, b_new, z_new, there
        else:
            beta, g, b, z = beta + step * direction, g + step * along, b + step * (b_new - b), z - step * moved
            sets = band.sets(z)
        inner += 1
        over = taken == steps
        few = changed <= SETTLED * len(free)
        # In single precision the last few rows may go to and fro without end; of rows that are all at their bounds a narrower
        # band says more.
        stuck = finish is None and few and step < STUCK_STEP
        settled = step == 1.0 and (not len(free) or (few and h > end))
        if not (changed == 0 or inner >= STAGE_STEPS or step == 0.0 or over or stuck or settled):
            continue
        if finish is not None and h <= FINISH_WIDTH and step == 1.0:
            ways = Falling(max(finish[0], h * FINISH_FACTOR / largest), finish[0], FINISH_FACTOR, finish[1])
            guess, abort = Sets(there.free.copy(), there.upper.copy()), len(free) + 10
            point, good = active_set(system, guess, ways, patience=FINISH_PATIENCE, abort=abort)
            if point.reached:
                return point
            if good is not None:
                # Where it got to, a band as wide as its ridge is nearly right.
                beta, b, h = good.coefficients, good.intercept, min(h, good.ridge * largest / factor)
                g, there = good.outputs + b, good.sets
        if h <= end or over:
            a = np.clip(y * beta, 0.0, C)
            change = y * a - beta
            f = g - b + system.outputs(change) if change.any() else g - b
            return Point(y * a, f, b, Sets((a > 0) & (a < C), a >= C), changed == 0, h / largest)
        h, inner, predicted = max(h * factor, end), 0, True
        # What is free and what is at its bound stays so for the first step of a narrower band.
        band = _Band.of(problem, h)
        z, sets = band.slack(g), there


class _Band(NamedTuple):
    """A band about the margin: how far it reaches `above`, y o and ridges for it, and costs over its width h."""

    problem: Problem
    h: float
    above: float
    level: Array
    wanted: Array
    ridges: Array
    weights: Array

    @classmethod
    def of(cls, problem: Problem, h: float) -> _Band:
        # It lies symmetric about the margin while it is narrow, and not far above while it is wide.
        above = min(h / 2, 0.25)
        level = problem.margins + above
        return cls(problem, h, above, level, problem.signs * level, h / problem.costs, problem.costs / h)

    def slack(self, outputs: Array) -> Array:
        """Return by how much rows are below its upper end, by outputs with their intercept."""
        return self.level - self.problem.signs * outputs

    def sets(self, z: Array) -> Sets:
        """Return the rows inside, and those beyond."""
        upper = z >= self.h
        return Sets((z > 0) ^ upper, upper)


def _free_rows(system: System, sets: Sets, z: Array, above: float) -> NDArray[np.intp]:
    """Return the free rows; the one next to the margin becomes free where bounds alone do not have the right sum."""
    free = sets.free.nonzero()[0]
    if not len(free) and not system.attainable(free, sets.upper):
        free = np.array([np.argmin(np.abs(z - above))])
        sets.free[free], sets.upper[free] = True, False
    return free


def _changed(sets: Sets, there: Sets, moved: Array) -> int:
    """Return how many rows are in another set; a row that was freed because none was may be without having moved."""
    changed = int(np.count_nonzero((there.upper ^ sets.upper) | (there.free ^ sets.free)))
    return changed if changed and moved.any() else 0


def _line_search(
    ends: tuple[Array, Array], moved: Array, weighted: Array, slopes: tuple[float, float], h: float
) -> float:
    """Return the step in (0, 1] that nearly minimises the smoothed objective along the direction; 0 if it does not descend.

    Its derivative is piecewise linear and grows. A whole step is taken where it leaves little of the derivative at 0, else a
    root is found by regula falsi (Illinois), to the same share.
    """
    (linear, quadratic), (z, at_end) = slopes, ends
    f_low = linear - float(_clipped(z, h) @ weighted)
    f_high = linear + quadratic - float(_clipped(at_end, h) @ weighted)
    enough = ENOUGH * abs(f_low)
    if f_high <= max(enough, 1e-12 * abs(linear) + 1e-300):
        return 1.0
    if f_low >= 0:
        return 0.0
    # Rows below the band at both ends of the way add nothing, those above it the same everywhere.
    highest, lowest = np.maximum(z, at_end), np.minimum(z, at_end)
    linear -= h * float(np.add.reduce(weighted[lowest >= h]))
    crossing = ((highest > 0) & (lowest < h)).nonzero()[0]
    z, moved, weighted = z[crossing], moved[crossing], weighted[crossing]
    low, high, s = 0.0, 1.0, 1.0
    for _ in range(25):
        s = (low * f_high - high * f_low) / (f_high - f_low)
        value = linear + s * quadratic - float(_clipped(z - s * moved, h) @ weighted)
        if abs(value) < enough:
            break
        if value < 0:
            low, f_low, f_high = s, value, 0.5 * f_high
        else:
            high, f_high, f_low = s, value, 0.5 * f_low
    return s


def _clipped(z: Array, h: float) -> Array:
    """Return numbers clipped to the band."""
    return np.minimum(np.maximum(z, 0.0), h)
