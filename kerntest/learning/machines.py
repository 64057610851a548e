"""Support vector machines on a matrix: two classes, pairs of classes, numbers, one class."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.linalg import LinAlgError

from kerntest.engines.setting import allowed_bytes
from kerntest.errors import UndecidedError, UsageError
from kerntest.learning.solvers.hinge import KEPT_BYTES, solve_hinge
from kerntest.learning.solvers.problem import Problem, Solution
from kerntest.learning.solvers.smo import solve_indefinite
from kerntest.matrices.matrix import Repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array
    from kerntest.matrices.matrix import Matrix

# The costs at which a machine without errors is looked for, and the share of the cost that a coefficient may have.
HARD_COSTS, REACHED = (1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6, 1e8), 0.99
# Slack of a hard margin that is rounding.
HARD_SLACK = 1e-4
# Halvings of the search for the cost of a nu, and widenings of where it is looked for: costs from 1e-12 to 1e9.
NU_STEPS, WIDENINGS = 60, 7


@dataclass(frozen=True, slots=True)
class Costs:
    """What a violation of the margin costs.

    Parameters
    ----------
    C : float
        The cost; infinite for a hard margin.
    nu : float or None
        Instead of C: the share of support vectors that is aimed at.
    weights : ndarray, shape (classes,), or None
        Factors of C for each class.
    """

    C: float
    nu: float | None
    weights: Array | None


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """One machine: which of two classes, and its solution over its rows.

    Parameters
    ----------
    pair : (int, int)
        The classes it tells apart; scores above 0 are for the second.
    rows : ndarray of int, shape (m,)
        Its rows among all training rows.
    solution : Solution
    C : float
        The cost, found where nu was given.
    """

    pair: tuple[int, int]
    rows: NDArray[np.intp]
    solution: Solution
    C: float


def fit_pairs(
    matrix: Matrix,
    codes: NDArray[np.intp],
    classes: int,
    costs: Costs,
    engine: Engine,
    *,
    tolerance: float,
    seed: int,
    names: Sequence[str],
    start: Sequence[Machine] | None = None,
    factor: Array | None = None,
    definite: bool = True,
    progress: Progress | None = None,
) -> list[Machine]:
    """Return a machine for every pair of classes.

    Parameters
    ----------
    matrix : Matrix
        n training rows.
    codes : ndarray of int, shape (n,)
        Class of each row.
    classes : int
    costs : Costs
    engine : Engine
    tolerance : float
        Relative duality gap.
    seed : int
    names : sequence of str
        What the classes are called, for errors.
    start : sequence of Machine, optional
        Machines of similar costs.
    factor : ndarray, shape (n, r), optional
        G with K = G G'.
    definite : bool
        Whether the matrix is positive semi-definite; else SMO finds a stationary point.
    progress : callable, optional
        Called after each pair with how many are done, and how many there are.
    """
    members = [np.flatnonzero(codes == k) for k in range(classes)]
    pairs = list(combinations(range(classes), 2))

    def work(place: int) -> Machine:
        i, j = pairs[place]
        rows = np.sort(np.concatenate([members[i], members[j]]))
        signs = np.where(codes[rows] == j, 1.0, -1.0)
        weights = np.ones(len(rows)) if costs.weights is None else costs.weights[codes[rows]]
        part = matrix if len(rows) == matrix.n else Repeated(matrix, rows)
        known = None if start is None else start[place].solution
        G = None if factor is None else factor[rows]
        pair, C = (names[i], names[j]), costs.C

        def at(cost: float) -> Solution:
            problem = Problem(signs, cost * weights, np.ones(len(rows)))
            return _solved(part, problem, tolerance=tolerance, seed=seed, start=known, factor=G, definite=definite)

        if costs.nu is not None:
            solution, C = _by_nu(part, signs, costs.nu, tolerance=tolerance, seed=seed, names=pair)
        elif math.isinf(costs.C):
            solution = _hard(at, signs, pair)
        else:
            solution = at(costs.C)
        return Machine((i, j), rows, solution, C)

    # All pairs share one matrix, which may be there whole.
    return list(engine.here.map(work, range(len(pairs)), progress))


def _solved(
    matrix: Matrix,
    problem: Problem,
    *,
    tolerance: float,
    seed: int,
    start: Solution | None = None,
    factor: Array | None = None,
    definite: bool = True,
) -> Solution:
    """Return the solution; of a matrix that is not positive semi-definite, a stationary point by SMO."""
    if not definite:
        return solve_indefinite(matrix, problem)
    try:
        kept = min(KEPT_BYTES, allowed_bytes(KEPT_BYTES))
        return solve_hinge(matrix, problem, tolerance=tolerance, seed=seed, start=start, factor=factor, kept_bytes=kept)
    except LinAlgError as error:
        raise UndecidedError(
            "the kernel is not positive definite on these rows: the problem has no single solution",
            hint="use a positive definite kernel, such as gaussian or laplacian",
            code="undecided.not_positive_definite",
        ) from error


def _hard(at: Callable[[float], Solution], signs: Array, names: tuple[str, str]) -> Solution:
    """Return the machine without errors: that of any cost which no coefficient reaches, the least of some.

    Raises
    ------
    UndecidedError
        If coefficients grow with every cost: the classes cannot be separated.
    """
    for cost in HARD_COSTS:
        solution = at(cost)
        slack = 1.0 - signs * (solution.outputs + solution.intercept)
        free = float(np.abs(solution.coefficients).max()) < REACHED * cost
        if free and solution.converged and float(slack.max()) <= HARD_SLACK:
            return solution
    raise UndecidedError(
        f"no hard margin was found between {names[0]!r} and {names[1]!r}: this kernel cannot separate them without errors",
        hint="a finite --C allows errors; a smaller --bandwidth separates more",
        code="undecided.not_separable",
    )


def _by_nu(
    matrix: Matrix, signs: Array, nu: float, *, tolerance: float, seed: int, names: tuple[str, str]
) -> tuple[Solution, float]:
    """Return the nu-machine: the C-machine whose coefficients are the share nu of their bounds (Chang and Lin 2001).

    sum a(C) / (C n) falls with C: its root is found by regula falsi (Illinois) on log C.

    Raises
    ------
    UsageError
        If nu is infeasible, or below the share that any C leaves.
    """
    n = len(signs)
    fewest = int(min((signs > 0).sum(), (signs < 0).sum()))
    largest = 2.0 * fewest / n
    if nu > largest * (1 + 1e-12):
        raise UsageError(
            f"nu = {nu:g} is infeasible: {names[0]!r} and {names[1]!r} allow at most {largest:.4g}",
            hint=f"--nu {math.floor(largest * 1000) / 1000:g}, or class weights with --C",
            code="usage.nu",
        )
    solved: dict[float, Solution] = {}

    def excess(log_c: float) -> float:
        C = math.exp(log_c)
        problem = Problem(signs, np.full(n, C), np.ones(n))
        solved[log_c] = _solved(matrix, problem, tolerance=0.1 * tolerance, seed=seed)
        return float(np.abs(solved[log_c].coefficients).sum()) / (C * n) - nu

    best = _root(excess, math.log(1e-3), math.log(1e3), accuracy=1e-7 * nu)
    if best is None:
        dearest = max(solved)
        share = float(np.abs(solved[dearest].coefficients).sum()) / (math.exp(dearest) * n)
        raise UsageError(
            f"nu = {nu:g} is too small for {names[0]!r} and {names[1]!r}: even a cost of {math.exp(dearest):.1g} leaves a "
            f"share of {share:.3g}",
            hint=f"--nu {_rounded_up(share):g} or more, or --C with a cost",
            code="usage.nu",
        )
    found = solved[best]
    converged = found.gap is None or found.gap <= tolerance
    return replace(found, converged=converged), math.exp(best)


def _rounded_up(share: float) -> float:
    """Return the next larger number of two digits."""
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    return (math.floor(share / unit) + 1) * unit


def _root(falling: Callable[[float], float], low: float, high: float, *, accuracy: float) -> float | None:
    """Return where a falling function is 0, to an accuracy of its value; None if it stays above."""
    at_low, at_high = falling(low), falling(high)
    for _ in range(WIDENINGS):
        if at_low < 0:
            low, high, at_high = low - 3.0, low, at_low
            at_low = falling(low)
        elif at_high > 0:
            low, high, at_low = high, high + 2.0, at_high
            at_high = falling(high)
    if at_high > 0:
        return None
    best = low if abs(at_low) < abs(at_high) else high
    if min(abs(at_low), abs(at_high)) < accuracy:
        return best
    for _ in range(NU_STEPS):
        if high - low < 1e-10:
            break
        middle = high - at_high * (high - low) / (at_high - at_low)
        # Not too near to an end, or the other end would never move.
        best = min(max(middle, low + 0.01 * (high - low)), high - 0.01 * (high - low))
        found = falling(best)
        if abs(found) < accuracy:
            break
        if found > 0:
            low, at_low, at_high = best, found, 0.5 * at_high
        else:
            high, at_high, at_low = best, found, 0.5 * at_low
    return best


def fit_numbers(
    matrix: Matrix, target: Array, C: float, epsilon: float, *, tolerance: float, seed: int, definite: bool = True
) -> tuple[Solution, Array]:
    """Return epsilon support vector regression (Drucker et al. 1997), and its coefficients, shape (n,).

    Targets are brought to standard deviation 1 for the solver; C and epsilon are those of the target's own units.

    Notes
    -----
    Every case has two rows: one for being too low, one for being too high.
    """
    n = len(target)
    centre, spread = float(target.mean()), float(target.std()) or 1.0
    z = (target - centre) / spread
    signs = np.repeat([1.0, -1.0], n)
    margins = np.concatenate([z, -z]) - epsilon / spread
    problem = Problem(signs, np.full(2 * n, C / spread), margins)
    solution = _solved(
        Repeated(matrix, np.tile(np.arange(n), 2)), problem, tolerance=tolerance, seed=seed, definite=definite
    )
    coefficients = spread * (solution.coefficients[:n] + solution.coefficients[n:])
    scaled = replace(
        solution,
        intercept=spread * solution.intercept + centre,
        objective=spread**2 * solution.objective,
        dual_objective=spread**2 * solution.dual_objective,
    )
    return scaled, coefficients


def fit_one_class(matrix: Matrix, nu: float, *, tolerance: float, seed: int, definite: bool = True) -> Solution:
    """Return the one-class machine (Schoelkopf et al. 2001): coefficients up to 1 with sum nu n, b = -rho."""
    n = matrix.n
    problem = Problem(np.ones(n), np.ones(n), np.zeros(n), total=nu * n)
    return _solved(matrix, problem, tolerance=tolerance, seed=seed, definite=definite)
