"""Many small problems at once: those of pairs of classes with few rows each, as stacked arrays of like size.

One system of twenty rows takes microseconds, and the interpreter a hundred times as long around it. Here every step of the
active set method is taken by all problems of a stack together; each is certified by its own duality gap. Problems are
filled up to the size of the largest with rows of no cost, which are never free.

From all rows free, without a ridge to speak of, nearly all problems are settled after two to five systems. What cycles
starts again with a ridge that falls, then with one that falls slowly, and what is left is for the solver of single problems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from kerntest.learning.solvers.problem import AT_BOUND, ROUNDING, Solution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Problems of at most so many rows are stacked, so many entries of their matrices at once: they stay in the cache of a core.
MOST_ROWS, ENTRIES = 64, 2**18
# Of like size are problems of at least this share of the rows of the largest, and some fewer still.
ALIKE, FEW = 0.75, 4
# The ridge leaves so much of the tolerance, and is at least this share of the largest diagonal entry.
RIDGE_SHARE, LEAST_RIDGE = 0.05, 1e-13
# A ridge that falls starts at the larger of this and 1 / C, by the first of these factors and, where that cycles too, the second.
FIRST_RIDGE, FASTER, SLOWER = 0.3, 0.1, 0.3
# While it is large, margins may be violated by so much at most, and it falls when so few of the free rows are wrong.
LOOSE, NEARLY = 0.1, 0.1
# Systems without a new fewest number of wrong guesses after which a problem is given up.
PATIENCE = 3


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


def solve_stack(stack: Stack, tolerance: float) -> dict[int, Solution]:
    """Return the certified solutions by the places of their problems, all with margins of 1 and the sum 0; not all are found.

    Cost: O(m^3) for each of some three systems of a problem.
    """
    largest, diagonal = stack.costs.max(axis=1), float(stack.matrices.diagonal(axis1=1, axis2=2).max())
    last = np.maximum(RIDGE_SHARE * tolerance / largest, LEAST_RIDGE * diagonal)
    found, left = dict[int, Solution](), np.arange(len(largest))
    wide = np.maximum(FIRST_RIDGE, 1.0 / largest)
    for first, factor in ((last, 1.0), (wide, FASTER), (wide, SLOWER)):
        part = stack.some(left)
        try:
            beta, systems = _active_sets(part, first[left], last[left], factor, 0.1 * tolerance)
        except LinAlgError:
            break
        certified = zip(left.tolist(), _certified(part, beta, systems, tolerance), strict=True)
        found |= {place: solution for place, solution in certified if solution.converged}
        left = np.array([place for place in left.tolist() if place not in found], dtype=np.intp)
        if not len(left):
            break
    return found


def _active_sets(
    stack: Stack, ridge: Array, last: Array, factor: float, violation: float
) -> tuple[Array, NDArray[np.intp]]:
    """Return the coefficients of the last sets of each problem, and how many systems that took.

    See `active_set.active_set`, whose steps these are.
    """
    matrices, y, C = stack
    count, m = y.shape
    coefficients, systems = np.zeros((count, m)), np.zeros(count, dtype=np.intp)
    there, largest = C > 0, C.max(axis=1)
    all_free, all_upper = there.copy(), np.zeros((count, m), dtype=bool)
    ridge, fewest, patience = ridge.copy(), np.full(count, m + 1), np.full(count, PATIENCE)
    going = np.arange(count)
    while len(going):
        K, sign, cost, e = matrices[going], y[going], C[going], ridge[going]
        free, upper = all_free[going], all_upper[going]
        systems[going] += 1
        beta, f, b = _target(Stack(K, sign, cost), free, upper, e)
        a, slack = sign * beta, 1.0 - sign * (f + b[:, None])
        low, high = free & (a < 0), free & (a > cost)
        final = e <= last[going]
        allowed = np.where(final, violation, np.maximum(violation, np.minimum(LOOSE, 10.0 * e * largest[going])))
        back = ~free & there[going] & (np.where(upper, e[:, None] * cost - slack, slack) > allowed[:, None])
        wrong = np.count_nonzero(low | high | back, axis=1)
        fewer = wrong < fewest[going]
        patience[going] = np.where(fewer, PATIENCE, patience[going] - 1)
        fewest[going] = np.minimum(fewest[going], wrong)
        coefficients[going] = beta
        over = (final & (wrong == 0)) | (patience[going] < 0)
        lowered = ~final & (wrong <= NEARLY * np.count_nonzero(free, axis=1))
        all_free[going], all_upper[going] = (free & ~(low | high)) | back, (upper & ~back) | high
        ridge[going] = np.where(lowered, np.maximum(factor * e, last[going]), e)
        fewest[going[lowered]], patience[going[lowered]] = m + 1, PATIENCE
        going = going[~over]
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
