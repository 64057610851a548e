"""The problem that every support vector machine is, what certifies a solution of it, and the linear system on the way.

    minimise over w, b    1/2 |w|^2 + sum_i C_i max(0, o_i - y_i (f_i + b)) + b delta,    f_i = <w, phi(x_i)>,

with signs y_i, margins o_i, costs C_i. Its dual, with coefficients beta_i = y_i a_i and f = K beta, is

    maximise over a       sum_i o_i a_i - 1/2 beta' K beta,    0 <= a_i <= C_i,    sum_i beta_i = delta.

Classification has o = 1 and delta = 0; epsilon regression two rows for each case, with signs 1 and -1 and margins
z - epsilon and -z - epsilon; the one-class machine o = 0, y = 1 and delta = nu n. See Boser, Guyon and Vapnik (1992);
Schoelkopf and Smola (2002), chapters 7 to 9.

Every method solves the same system again and again. Given the free rows F and the rows U at their upper bound, the ridge e
and margins o, it finds beta and b with

    beta_U = C y_U,   f_F + e beta_F + b = y_F o_F,   sum beta = delta,   f = K beta:

    [K_FF + e  1] [beta_F]   [y_F o_F - K_FU beta_U]
    [1'        0] [b     ] = [delta - sum beta_U   ].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass as compiled
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from scipy.linalg import blas

from kerntest.dataclass import dataclass
from kerntest.learning.solvers.positive import refined_single, solve_positive

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.matrices.matrix import Entries, Matrix

# beta, f and b.
Target: TypeAlias = "tuple[Array, Array, float]"

# Coefficients within this share of a bound are at the bound.
AT_BOUND = 1e-12
# The sum of the coefficients may be wrong by so much of the sum of their sizes.
ROUNDING = 1e-14
# Entries of the matrix made at once.
BLOCK = 2**18
# Gathering a row costs about as much as multiplying by so many.
GATHER = 4
# Conjugate gradients are for free rows that are more than this part of all, for as many products as there are rows over this
# at most, and at least so many. On the way they leave this share of the squared residual, at last so much of a margin, in
# units of what the ridge would.
SOME, PRODUCTS, LEAST_PRODUCTS, ROUGHLY, LEFT = 4, 20, 50, 0.01, 4.0
# Most of so many rows are not gathered: a copy of them would be as large as the matrix.
MANY_ROWS = 2000
# Ridges from which on single precision is enough for a system.
SINGLE_RIDGE = 1e-3
# A system of a factor is refined where rounding may leave more of a margin than such a share of the ridge, at most so often.
LOST, REFINEMENTS = 1e-4, 3
# Entries of products of more columns are fetched rather than made again.
FETCHED_COLUMNS = 40


@dataclass(frozen=True, eq=False)
class Problem:
    """Signs y (1 or -1), costs C and margins o of n rows, and the sum of the coefficients, delta."""

    signs: Array
    costs: Array
    margins: Array
    total: float = 0.0

    def __len__(self) -> int:
        return len(self.signs)

    def rows(self, chosen: NDArray[np.intp], share: float = 1.0) -> Problem:
        """Return the problem of some rows, with costs multiplied by `share` to stand for all."""
        return Problem(self.signs[chosen], self.costs[chosen] * share, self.margins[chosen], self.total)

    def slack(self, outputs: Array, intercept: float) -> Array:
        """Return o - y (f + b): positive inside the margin."""
        return self.margins - self.signs * (outputs + intercept)

    def feasible(self, coefficients: Array) -> Array:
        """Return coefficients with 0 <= a <= C and the right sum, next to those given; near bounds they are put on them.

        What clipping and rounding took from the sum goes to the free coefficient with most room, so that f changes by one
        row of K; where it has too little, to all free ones in proportion to their room, then to all.
        """
        y, C = self.signs, self.costs
        a = np.clip(y * coefficients, 0.0, C)
        a[a < AT_BOUND * C] = 0.0
        np.copyto(a, C, where=a > C * (1.0 - AT_BOUND))
        for _ in range(4):
            excess = float(y @ a) - self.total
            if abs(excess) <= ROUNDING * float(a.sum()):
                break
            # Lowering the sum: positive signs go down, negative ones up.
            down = (y > 0) == (excess > 0)
            free = (a > 0) & (a < C)
            room = np.where(down, a, C - a)
            if free.any():
                room[~free] = 0.0
            most = int(np.argmax(room))
            if abs(excess) < 0.5 * room[most]:
                a[most] += -abs(excess) if down[most] else abs(excess)
                continue
            available = float(room.sum())
            if available <= 0:
                break
            share = min(abs(excess) / available, 1.0)
            a = np.clip(a + np.where(down, -share, share) * room, 0.0, C)
        return np.asarray(y * a)

    def intercept(self, coefficients: Array, outputs: Array) -> float:
        """Return the intercept: the mean over free rows where it is optimal, else the nearest that is.

        The primal objective is convex and piecewise linear in b with a break at v_i = y_i o_i - f_i for every row; its slope is
        delta minus the costs of the rows with y = 1 right of b plus those with y = -1 left of it.
        """
        breaks = self.signs * self.margins - outputs
        order = np.argsort(breaks, kind="stable")
        # Left of all breaks every row with y = 1 pays and falls with b.
        start = self.total - float(self.costs[self.signs > 0].sum())
        slopes = start + np.cumsum(self.costs[order])
        tolerance = 1e-12 * float(self.costs.sum())
        first, last = np.searchsorted(slopes, -tolerance), np.searchsorted(slopes, tolerance, side="right")
        low, high = (float(breaks[order[min(int(place), len(order) - 1)]]) for place in (first, last))
        a = self.signs * coefficients
        free = (a > 0) & (a < self.costs)
        return min(max(float(breaks[free].mean()), low), high) if free.any() else 0.5 * (low + high)

    def _violation(self, coefficients: Array, outputs: Array) -> float:
        """Return max_up v - min_down v for v_i = y_i o_i - f_i, at least 0: no pair of rows can gain at a solution.

        beta may rise in rows `up`, fall in rows `down`; an intercept that suits all lies between. See Keerthi et al. (2001).
        """
        v = self.signs * self.margins - outputs
        a, positive = self.signs * coefficients, self.signs > 0
        up = np.where(positive, a < self.costs, a > 0)
        down = np.where(positive, a > 0, a < self.costs)
        if not up.any() or not down.any():
            return 0.0
        return max(float(v[up].max() - v[down].min()), 0.0)

    def certified(
        self, coefficients: Array, outputs: Array, *, tolerance: float, iterations: int, method: str
    ) -> Solution:
        """Return a solution with its duality gap; `coefficients` are feasible, `outputs` computed exactly."""
        intercept = self.intercept(coefficients, outputs)
        square, hinge = float(coefficients @ outputs), np.maximum(self.slack(outputs, intercept), 0.0)
        primal = 0.5 * square + float(self.costs @ hinge) + intercept * self.total
        dual = float(self.margins @ (self.signs * coefficients)) - 0.5 * square
        gap = (primal - dual) / max(abs(primal), np.finfo(np.float64).tiny)
        certificate = (primal, dual, max(float(gap), 0.0), self._violation(coefficients, outputs))
        return Solution(coefficients, intercept, outputs, *certificate, iterations, bool(gap <= tolerance), method)


# Of many classes there are tens of thousands: made by methods of its own in a quarter of the time.
@compiled(frozen=True, slots=True, eq=False)
class Solution:
    """Coefficients beta, intercept b and outputs K beta, with their certificate.

    `gap` is the difference of the objectives over the primal one; None where the matrix is not positive semi-definite: then
    it bounds nothing. `violation` says by how much the intercepts that two rows allow contradict one another, `converged`
    whether the gap (the violation, where there is none) is within the tolerance, `method` which way the solver went.
    """

    coefficients: Array
    intercept: float
    outputs: Array
    objective: float = math.nan
    dual_objective: float = math.nan
    gap: float | None = None
    violation: float = math.nan
    iterations: int = 0
    converged: bool = True
    method: str = ""


def _product(values: Array, A: Entries) -> Array:
    """Return values @ A in the precision of A, without the rows of zeros where they are many."""
    chosen, values = values.nonzero()[0], values.astype(A.dtype, copy=False)
    product = values[chosen] @ A.take(chosen, axis=0) if GATHER * len(chosen) < len(values) else values @ A
    return np.asarray(product, dtype=np.float64)


class TooLongError(Exception):
    """Systems have taken more than they may: another way is to be tried."""


@dataclass()
class Counter:
    """How many systems were solved for one problem, the multiplications that these took, and may take."""

    used: int = 0
    spent: float = 0.0
    most: float = math.inf

    def spend(self, multiplications: float) -> None:
        """Count what is about to be done."""
        self.spent += multiplications
        if self.spent > self.most:
            raise TooLongError


class System(ABC):
    """Solves for the target of given sets, over the rows of a problem.

    What the coefficients at their upper bound multiply to is kept up to date: K beta_U, or G' beta_U of a factor.
    """

    # Whether the target is only on the way: single precision may solve where the matrix is in it, products solve roughly.
    rough = False

    def __init__(self, problem: Problem, counter: Counter, size: int, diagonal: Array) -> None:
        self.problem, self.counter = problem, counter
        # What fills the coefficient of a row up to its cost, if nothing else moves.
        self.reach = problem.costs * diagonal
        self.product = np.zeros(size)
        self._bounded, self._sum = np.zeros(len(problem)), 0.0
        self._at_upper = problem.signs * problem.costs
        self._rounding = ROUNDING * float(problem.costs.sum())

    def at(self, problem: Problem) -> Self:
        """Return the system of the same rows at other costs; what is kept of the matrix serves both."""
        other = copy(self)
        System.__init__(other, problem, Counter(), len(self.product), self.reach / self.problem.costs)
        return other

    def attainable(self, free: NDArray[np.intp], upper: NDArray[np.bool_], beyond: float = 0.0) -> bool:
        """Say whether free coefficients can make up the sum within bounds so many times farther apart, but for rounding."""
        self._bound(upper)
        ends, left = self._at_upper[free], self.problem.total - self._sum
        most, whole = float(np.add.reduce(np.maximum(ends, 0.0))), float(np.add.reduce(ends))
        room = beyond * (2.0 * most - whole) + self._rounding
        return whole - most - room <= left <= most + room

    def _enough(self, A: Entries, ridge: Array) -> bool:
        """Say whether a system may be solved in the precision in which its matrix is."""
        return A.dtype == np.float64 or self.rough or float(ridge[0]) >= SINGLE_RIDGE

    def _work(self, free: int) -> float:
        """Return the multiplications that the target of so many free rows takes."""
        return free**3 / 3 + free * len(self.problem)

    @abstractmethod
    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""

    def _multiplied(self, coefficients: Array) -> Array:
        """Return what is kept of coefficients."""
        return self.outputs(coefficients)

    @abstractmethod
    def _gathered(self, free: NDArray[np.intp]) -> tuple[NDArray[Any], Array]:
        """Return what the free rows are solved with, and their K_FU beta_U."""

    @abstractmethod
    def _solved(self, rows: NDArray[Any], free: NDArray[np.intp], ridge: Array, right: Array) -> Array:
        """Return (K_FF + e)^-1 right."""

    @abstractmethod
    def _completed(self, rows: NDArray[Any], beta: Array, beta_free: Array) -> Array:
        """Return K beta."""

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, wanted: Array) -> Target:
        """Return the point that the sets ask for; `ridge` has one entry for each free row, `wanted` is y o."""
        self.counter.used += 1
        self.counter.spend(self._work(len(free)))
        self._bound(upper)
        if not len(free):
            f = self.outputs(self._bounded)
            return self._bounded, f, self.problem.intercept(self._bounded, f)
        rows, product = self._gathered(free)
        right = np.ones((2, len(free)))
        np.subtract(wanted[free], product, out=right[0])
        solved = self._solved(rows, free, ridge, right.T)
        sums = np.add.reduce(solved, axis=0)
        b = (float(sums[0]) + self._sum - self.problem.total) / float(sums[1])
        beta_free = solved[:, 0] - b * solved[:, 1]
        beta = self._bounded.copy()
        beta[free] = beta_free
        return beta, self._completed(rows, beta, beta_free), b

    def conjugated(
        self,
        beta: Array,
        inside: Array,
        ridge: Array,
        asked: Array,
        *,
        most: int,
        within: float,
        share: float = 0.0,
        solve: Callable[[Array], Array] | None = None,
    ) -> tuple[Target, bool]:
        """Return the point that `most` conjugate gradients over the rows `inside`, which are 1, lead to, and whether that is enough.

        Of y o - f - e beta - b is left no more than `within`, or a share of its square. What nearly solves makes them few.
        """
        self.counter.used += 1
        ones = inside if solve is None else solve(inside)
        count = float(inside @ ones)
        beta = beta + (self.problem.total - float(beta.sum())) / count * ones
        f, direction, before, enough = self.outputs(beta), np.zeros(len(beta)), math.inf, -1.0
        for left in reversed(range(most)):
            residual = (asked - f - ridge * beta) * inside
            b = float(residual @ ones) / count
            residual -= b * inside
            step = residual if solve is None else solve(residual)
            square = float(residual @ step)
            enough = share * square if enough < 0.0 else enough
            reached = square <= enough or float(np.abs(residual).max()) <= within
            if reached or not left:
                break
            self.counter.spend(float(len(beta)) ** 2)
            direction = step + square / before * direction
            product = self.outputs(direction)
            curvature = float(direction @ product + direction @ (ridge * direction))
            if curvature <= 0.0:
                break
            beta, f, before = beta + square / curvature * direction, f + square / curvature * product, square
        return (beta, f, b), reached

    def _bound(self, upper: NDArray[np.bool_]) -> None:
        """Take the rows that are at their upper bound now; only what changed is multiplied, where that is less."""
        wanted = self._at_upper * upper
        changed = np.count_nonzero(wanted != self._bounded)
        if changed:
            few = changed < np.count_nonzero(upper)
            product = self._multiplied(wanted - self._bounded if few else wanted)
            self.product = self.product + product if few else product
            self._bounded, self._sum = wanted, float(np.add.reduce(wanted))


def raised(A: Entries, ridge: Array | float) -> Entries:
    """Return the array, contiguous and symmetric, with a ridge on its diagonal, in the order that LAPACK wants."""
    A.reshape(-1)[:: len(A) + 1] += ridge
    return A.T


class DenseSystem(System):
    """The whole matrix is there, in double or single precision: a subset, or a problem that is not large."""

    def __init__(self, K: Entries, problem: Problem, counter: Counter) -> None:
        super().__init__(problem, counter, len(problem), K.diagonal())
        self.K = K

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        return _product(coefficients, self.K)

    def _gathered(self, free: NDArray[np.intp]) -> tuple[Entries, Array]:
        many = len(free) >= MANY_ROWS and 2 * len(free) > len(self.K)
        return self.K if many else self.K.take(free, axis=0), self.product[free]

    def _solved(self, rows: Entries, free: NDArray[np.intp], ridge: Array, right: Array) -> Array:
        if rows is not self.K:
            A = rows.take(free, axis=1)
            return solve_positive(raised(A if self._enough(A, ridge) else A.astype(np.float64), ridge), right)
        single: Entries = np.empty((len(free), len(free)), np.float32)
        step = BLOCK // len(rows) + 1
        for start in range(0, len(free), step):
            part = slice(start, start + step)
            single[part] = rows[free[part]].take(free, axis=1)
        if rows.dtype == np.float32 and self._enough(rows, ridge):
            return solve_positive(raised(single, ridge), right)

        def times(values: Array) -> Array:
            every = np.zeros((len(rows), values.shape[1]))
            every[free] = values
            return np.asarray((rows @ every)[free] + ridge[:, None] * values)

        if rows.dtype == np.float64 and (refined := refined_single(raised(single, ridge), times, right)) is not None:
            return refined
        return solve_positive(raised(rows[np.ix_(free, free)].astype(np.float64, copy=False), ridge), right)

    def _completed(self, rows: Entries, beta: Array, beta_free: Array) -> Array:
        if rows is self.K:
            return self.product + self.outputs(beta - self._bounded)
        return np.asarray(self.product + beta_free.astype(rows.dtype, copy=False) @ rows)


class NearlyDiagonalSystem(DenseSystem):
    """The whole matrix is there, and so near to a diagonal one that conjugate gradients need few products with it."""

    def __init__(self, K: Array, problem: Problem, counter: Counter) -> None:
        super().__init__(K, problem, counter)
        self._beta, self._slow = np.zeros(len(problem)), False

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta, from one triangle."""
        return np.asarray(blas.dsymv(1.0, self.K.T, coefficients))

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, wanted: Array) -> Target:
        """Return the point that the sets ask for: where most rows are free by conjugate gradients from the last one on.

        On the way they take most of the residual y o - f - e beta - b, at last they leave no more of a margin than some
        ridges would. Directions have the sum 0.
        """
        if self._slow or len(free) * SOME < len(wanted):
            return super().target(free, upper, ridge, wanted)
        inside = np.zeros(len(wanted))
        inside[free] = 1.0
        beta = np.where(upper, self._at_upper, self._beta * inside)
        # What is left of the margins at last, so that no hinge pays for it: they are moved by as much, without a ridge.
        within = 0.0 if self.rough else LEFT * float(ridge[0]) * float(np.abs(beta[free]).mean())
        asked, e = (wanted, ridge[0] * inside) if self.rough else (wanted + within * self.problem.signs, 0.0 * inside)
        most = max(LEAST_PRODUCTS, len(free) // PRODUCTS)
        found, reached = self.conjugated(beta, inside, e, asked, within=within, share=ROUGHLY * self.rough, most=most)
        self._slow, self._beta = not reached, found[0]
        return found if reached else super().target(free, upper, ridge, wanted)


class FactorSystem(System):
    """K = G G' with few columns: everything costs n r."""

    def __init__(self, G: Array, problem: Problem, counter: Counter) -> None:
        super().__init__(problem, counter, G.shape[1], np.einsum("ir,ir->i", G, G))
        self.G = G

    def _work(self, free: int) -> float:
        n, columns = map(float, self.G.shape)
        return free * columns * min(free, columns) + n * columns

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        return np.asarray(self.G @ self._multiplied(coefficients))

    def _multiplied(self, coefficients: Array) -> Array:
        return _product(coefficients, self.G)

    def _gathered(self, free: NDArray[np.intp]) -> tuple[Array, Array]:
        rows = self.G[free]
        return rows, rows @ self.product

    def _solved(self, rows: Array, free: NDArray[np.intp], ridge: Array, right: Array) -> Array:
        """Return the solutions; by Woodbury's identity where rows outnumber columns."""
        del free
        if len(rows) <= rows.shape[1]:
            return solve_positive(raised(rows @ rows.T, ridge), right)
        # The product of an array with its own transpose takes half the work of another.
        roots, wanted = np.sqrt(ridge)[:, None], np.abs(right).max()
        scaled, right = rows / roots, right / roots
        A = raised(scaled.T @ scaled, 1.0)
        rounding = float(np.finfo(np.float64).eps * np.trace(A) * wanted)

        def by(values: Array) -> Array:
            return np.asarray(values - scaled @ solve_positive(A.copy(order="F"), scaled.T @ values))

        solved = by(right)
        # What rounding may leave of margins would be more than the ridge does.
        for _ in range(REFINEMENTS if rounding > LOST * float(ridge.min()) else 0):
            residual = right - solved - scaled @ (scaled.T @ solved)
            solved += by(residual)
            if float(np.abs(residual * roots).max()) <= LOST * float(ridge.min()):
                break
        return np.asarray(solved / roots)

    def _completed(self, rows: Array, beta: Array, beta_free: Array) -> Array:
        del beta
        return np.asarray(self.G @ (self.product + beta_free @ rows))


class CachedSystem(System):
    """Rows of the matrix are made when a row first becomes free, and kept.

    `members` are the rows of the matrix that take part, in their order. Single precision halves memory and time where
    its digits are enough. Rows beyond `kept_bytes` are not kept but made again for each product.
    """

    def __init__(
        self,
        matrix: Matrix,
        members: NDArray[np.intp],
        problem: Problem,
        counter: Counter,
        *,
        kept_bytes: int,
        dtype: type = np.float64,
    ) -> None:
        size = len(members)
        super().__init__(problem, counter, size, matrix.diagonal[members])
        self.matrix, self.members, self.dtype = matrix, members, dtype
        self._columns: NDArray[np.intp] | slice = slice(None) if size == matrix.n else members
        # Rows in the order in which they came; memory is taken only for those that are there.
        most = min(size, kept_bytes // (np.dtype(dtype).itemsize * max(size, 1)))
        self._kept: NDArray[Any] = np.empty((most, size), dtype)
        self._used, self._place, self._step = 0, np.full(size, -1), max(16, BLOCK // max(size, 1))

    def _kept_product(self, places: NDArray[np.intp], values: Array) -> Array:
        """Return values @ kept[places], without gathering rows where most are needed."""
        weights: NDArray[Any] = np.zeros(self._used, self.dtype)
        weights[places] = values
        return np.asarray(_product(weights, self._kept[: self._used]), dtype=np.float64)

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        chosen = coefficients.nonzero()[0]
        places = self._place[chosen]
        kept = places >= 0
        result, others = self._kept_product(places[kept], coefficients[chosen[kept]]), chosen[~kept]
        for start in range(0, len(others), self._step):
            part = others[start : start + self._step]
            rows = self.matrix.block(self.members[part], self._columns, self.dtype)
            result += coefficients[part].astype(self.dtype) @ rows
        return result

    def _gathered(self, free: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
        """Make and keep the free rows as far as there is room, and return where they are kept, -1 where they are not."""
        new = free[self._place[free] < 0][: len(self._kept) - self._used]
        for start in range(0, len(new), self._step):
            made = new[start : start + self._step]
            end = self._used + len(made)
            self.matrix.block(self.members[made], self._columns, self.dtype, self._kept[self._used : end])
            self._place[made] = np.arange(self._used, end)
            self._used = end
        return self._place[free], self.product[free]

    def _solved(self, rows: NDArray[np.intp], free: NDArray[np.intp], ridge: Array, right: Array) -> Array:
        # Entries are made again where that takes less time than to fetch them, or where there was no room.
        made = self.matrix.quick and self.matrix.columns_each <= FETCHED_COLUMNS
        if made or (rows < 0).any():
            A = self.matrix.block(self.members[free], self.members[free], self.dtype)
        else:
            A = self._kept[rows[:, None], free]
        return solve_positive(raised(A if self._enough(A, ridge) else A.astype(np.float64), ridge), right)

    def _completed(self, rows: NDArray[np.intp], beta: Array, beta_free: Array) -> Array:
        kept = bool((rows >= 0).all())
        return self.product + (self._kept_product(rows, beta_free) if kept else self.outputs(beta - self._bounded))
