"""Many small problems at once: those of pairs of classes with few rows each, as stacked arrays of like size.

One system of twenty rows takes microseconds, and the interpreter a hundred times as long around it. Here every step of the
active set method is taken by all problems of a stack together; each is certified by its own duality gap. Problems are
filled up to the size of the largest with rows of no cost, which are never free.

A few steps of pairs of coefficients, as many as there are rows, show which rows are free and which at their bounds; from there
nearly all problems are settled by one to three systems of the active set method. What is not begins again with more steps of
pairs, and what is left is for the solver of single problems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from kerntest.learning.solvers.pairs import LEAST_CURVATURE
from kerntest.learning.solvers.problem import AT_BOUND, ROUNDING, Solution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Problems of at most so many rows are stacked, so many entries of their matrices at once: they stay in the cache of a core.
MOST_ROWS, ENTRIES = 64, 2**18
# And of so many one that has the others beside it is solved by itself.
MOST_SINGLE = 600
# Of like size are problems of at least this share of the rows of the largest, and some fewer still.
ALIKE, FEW = 0.75, 4
# The ridge leaves so much of the tolerance, and is at least this share of the largest diagonal entry.
RIDGE_SHARE, LEAST_RIDGE = 0.05, 1e-13
# Steps of pairs before the active set method, for each row; the second for what the first does not settle.
STEPS = 1, 4
# Systems without a new fewest number of wrong guesses after which a problem is given up.
PATIENCE = 3
# Coefficients within this share of a bound are taken to be at it after steps of pairs.
NEAR = 1e-9


class Stack(NamedTuple):
    """P problems of up to m rows: their matrices (P, m, m), signs and costs (P, m), costs of 0 where there is no row."""

    matrices: Array
    signs: Array
    costs: Array

    def some(self, chosen: NDArray[np.intp]) -> Stack:
        """Return some of the problems."""
        return Stack(*(one[chosen] for one in self))


def stacks(sizes: NDArray[np.intp]) -> list[list[int]]:
    """Return which problems to solve together: of like size, so many that their matrices stay in the cache; large ones alone."""
    order, found = np.argsort(sizes, kind="stable"), []
    ascending = sizes[order]
    while len(order):
        most = int(ascending[-1])
        together = 1 if most > MOST_ROWS else max(1, ENTRIES // most**2)
        first = max(len(order) - together, int(np.searchsorted(ascending, ALIKE * most - FEW)))
        found.append(order[first:].tolist())
        order, ascending = order[:first], ascending[:first]
    return found


def _last_ridge(largest: Array, diagonal: float, tolerance: float) -> Array:
    """Return the ridge that leaves hardly anything of the tolerance at some largest costs."""
    return np.maximum(RIDGE_SHARE * tolerance / largest, LEAST_RIDGE * diagonal)


def solve_stack(stack: Stack, tolerance: float) -> dict[int, Solution]:
    """Return the certified solutions by the places of their problems, all with margins of 1 and the sum 0; not all are found.

    Cost: O(m^3) for each of some three systems of a problem.
    """
    largest, diagonal = stack.costs.max(axis=1), float(stack.matrices.diagonal(axis1=1, axis2=2).max())
    last = _last_ridge(largest, diagonal, tolerance)
    found, left = dict[int, Solution](), np.arange(len(largest))
    for steps in STEPS:
        part = stack.some(left)
        try:
            beta, systems = _active_sets(
                part, *_by_pairs(part, steps * stack.signs.shape[1]), last[left], 0.1 * tolerance
            )
        except LinAlgError:
            break
        certified = zip(left.tolist(), _certified(part, beta, systems, tolerance), strict=True)
        found |= {place: solution for place, solution in certified if solution.converged}
        left = np.array([place for place in left.tolist() if place not in found], dtype=np.intp)
        if not len(left):
            break
    return found


def _by_pairs(stack: Stack, steps: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows are free and which at their upper bound after so many steps, as `pairs.descend`'s."""
    matrices, y, C = stack
    problems, diagonal = np.arange(len(y)), matrices.diagonal(axis1=1, axis2=2).copy()
    beta, v, high = np.zeros(y.shape), y.copy(), np.where(y > 0, C, 0.0)
    low = high - C
    least = LEAST_CURVATURE * float(diagonal.max())
    for _ in range(steps):
        i = np.where(beta < high, v, -np.inf).argmax(axis=1)
        row = matrices[problems, i]
        above = v[problems, i, None] - np.where(beta > low, v, np.inf)
        curvature = np.maximum(diagonal[problems, i, None] + diagonal - 2.0 * row, least)
        j = (np.square(np.maximum(above, 0.0)) / curvature).argmax(axis=1)
        step = np.minimum(above[problems, j] / curvature[problems, j], high[problems, i] - beta[problems, i])
        step = np.maximum(np.minimum(step, beta[problems, j] - low[problems, j]), 0.0)
        beta[problems, i] += step
        beta[problems, j] -= step
        v -= step[:, None] * (row - matrices[problems, j])
    a = y * beta
    upper = (a > C * (1.0 - NEAR)) & (C > 0)
    return (a > C * NEAR) & ~upper, upper


def _active_sets(
    stack: Stack, free: NDArray[np.bool_], upper: NDArray[np.bool_], ridge: Array, violation: float
) -> tuple[Array, NDArray[np.intp]]:
    """Return the coefficients of the last sets of each problem, and how many systems that took.

    See `active_set.active_set`, whose steps these are, at its last ridge.
    """
    count, m = stack.signs.shape
    coefficients, systems = np.zeros((count, m)), np.zeros(count, dtype=np.intp)
    fewest, patience, going = np.full(count, m + 1), np.full(count, PATIENCE), np.arange(count)
    while len(going):
        part, F, U, e = stack.some(going), free[going], upper[going], ridge[going]
        systems[going] += 1
        beta, f, b = _target(part, F, U, e)
        coefficients[going] = beta
        a, slack = part.signs * beta, 1.0 - part.signs * (f + b[:, None])
        low, high = F & (a < 0), F & (a > part.costs)
        back = ~F & (part.costs > 0) & (np.where(U, e[:, None] * part.costs - slack, slack) > violation)
        wrong = np.count_nonzero(low | high | back, axis=1)
        patience[going] = np.where(wrong < fewest[going], PATIENCE, patience[going] - 1)
        fewest[going] = np.minimum(fewest[going], wrong)
        free[going], upper[going] = (F & ~(low | high)) | back, (U & ~back) | high
        going = going[(wrong > 0) & (patience[going] >= 0)]
    return coefficients, systems


def _target(
    stack: Stack, free: NDArray[np.bool_], upper: NDArray[np.bool_], ridge: Array
) -> tuple[Array, Array, Array]:
    """Return beta, f and b that the sets ask for, as `problem.System.target`."""
    matrices, y, C = stack
    bounded, places = np.where(upper, y * C, 0.0), np.arange(y.shape[1])
    right = np.stack([np.where(free, y - _products(matrices, bounded), 0.0), free.astype(np.float64)], axis=2)
    A = matrices * (free[:, :, None] & free[:, None, :])
    A[:, places, places] += np.where(free, ridge[:, None], 1.0)
    solved = np.linalg.solve(A, right)
    sums = solved.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        b = (sums[:, 0] + bounded.sum(axis=1)) / sums[:, 1]
    beta = bounded
    some = free.any(axis=1)
    beta[some] += solved[some, :, 0] - b[some, None] * solved[some, :, 1]
    f = _products(matrices, beta)
    if not some.all():
        b[~some] = _intercepts(y[~some], C[~some], beta[~some], f[~some])
    return beta, f, b


def _products(matrices: Array, vectors: Array) -> Array:
    """Return K v of each problem."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def _intercepts(y: Array, C: Array, beta: Array, f: Array) -> Array:
    """Return the intercept of each problem, as `problem.Problem.intercept`."""
    breaks = y - f
    order = np.argsort(breaks, axis=1, kind="stable")
    slopes = np.cumsum(np.take_along_axis(C, order, axis=1), axis=1)
    slopes -= np.where(y > 0, C, 0.0).sum(axis=1, keepdims=True)
    tolerance = 1e-12 * C.sum(axis=1, keepdims=True)
    ends = [
        np.minimum(np.count_nonzero(one, axis=1), y.shape[1] - 1) for one in (slopes < -tolerance, slopes <= tolerance)
    ]
    ascending = np.take_along_axis(breaks, order, axis=1)
    low, high = (np.take_along_axis(ascending, one[:, None], axis=1)[:, 0] for one in ends)
    a = y * beta
    free = (a > 0) & (a < C)
    count = np.count_nonzero(free, axis=1)
    mean = np.where(free, breaks, 0.0).sum(axis=1) / np.maximum(count, 1)
    return np.where(count > 0, np.clip(mean, low, high), 0.5 * (low + high))


def _certified(stack: Stack, beta: Array, systems: NDArray[np.intp], tolerance: float) -> Iterator[Solution]:
    """Yield the solution of each problem next to some coefficients, with its certificate, as `problem.Problem.certified`."""
    matrices, y, C = stack
    a = np.clip(y * beta, 0.0, C)
    a[a < AT_BOUND * C] = 0.0
    np.copyto(a, C, where=a > C * (1.0 - AT_BOUND))
    # What clipping and rounding took from the sum goes to the coefficient with most room for it.
    excess = (y * a).sum(axis=1)
    down = (y > 0) == (excess > 0)[:, None]
    room = np.where((a > 0) & (a < C), np.where(down, a, C - a), 0.0)
    problems, most = np.arange(len(a)), np.argmax(room, axis=1)
    fits = np.abs(excess) <= 0.5 * room[problems, most]
    a[problems, most] -= np.where(fits, excess, 0.0) * y[problems, most]
    fits |= np.abs(excess) <= ROUNDING * a.sum(axis=1)
    beta = y * a
    f = _products(matrices, beta)
    b = _intercepts(y, C, beta, f)
    square = np.einsum("pi,pi->p", beta, f)
    hinge = np.maximum(1.0 - y * (f + b[:, None]), 0.0)
    primal = 0.5 * square + np.einsum("pi,pi->p", C, hinge)
    dual = a.sum(axis=1) - 0.5 * square
    gap = np.maximum((primal - dual) / np.maximum(np.abs(primal), np.finfo(np.float64).tiny), 0.0)
    converged = fits & (gap <= tolerance)
    told = (one.tolist() for one in (b, primal, dual, gap, systems, converged))
    sizes = np.count_nonzero(C, axis=1).tolist()
    for own, outputs, size, *one in zip(beta, f, sizes, *told, strict=True):
        intercept, high, low, share, used, reached = one
        certificate = high, low, share, np.nan, used, reached
        yield Solution(own[:size], intercept, outputs[:size], *certificate, "stacked")
