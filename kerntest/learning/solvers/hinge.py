"""Support vector machines: from a random subset to all rows, and to a certified duality gap.

A random subset of some hundred rows is solved first, with costs raised to stand for all. It tells whether the matrix
has numerically full rank: then the active set method goes on, else Newton's method on the smoothed hinge. Each is the
other's fallback. The rows of the subset that mattered are where the whole problem starts, by one of three ways:

    active set   rows of the matrix are made for free coefficients only, in single precision where it is enough
    factor       K = G G' with few columns: everything costs n r (low rank, many rows)
    levels       Newton on larger and larger subsets, then on all rows

All ends with the active set method in double precision on the exact matrix, which certifies the solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import lapack

from kerntest.learning.solvers.active_set import Point, Schedule, Sets, active_set
from kerntest.learning.solvers.matrices import products
from kerntest.learning.solvers.newton import Widths, newton
from kerntest.learning.solvers.nystroem import pivoted_factor
from kerntest.learning.solvers.problem import Problem, Solution, certify, feasible
from kerntest.learning.solvers.systems import CachedSystem, DenseSystem, FactorSystem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.matrices import Matrix

# Rows of the first subset: a sixth of all, within these bounds.
FEWEST, MOST = 100, 400
# The matrix has numerically full rank if so many of its pivots stand out.
PROBE_ROWS, PROBE_TOLERANCE, FULL_RANK = 256, 1e-2, 0.85
# From so many rows on, a matrix of low rank is replaced by a factor of at most a sixteenth as many columns.
FACTOR_ROWS, FACTOR_SHARE = 4000, 16
# Beyond so many rows the active set method would free too many at once.
ACTIVE_SET_ROWS = 40_000
# Newton's method takes all rows up to here, and those near the margin beyond.
NEWTON_ROWS = 12_000
MOST_FREED = 400
# The violation of a margin that the way to the last step works with.
ROUGH = 3e-4
# Sum of coefficients beyond which single precision is too coarse.
SINGLE_SUM = 3e4
# Bytes that kept rows of the matrix may take.
KEPT_BYTES = 10**9


@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """What a subset says of all rows: coefficients of its members, and the intercept."""

    members: NDArray[np.intp]
    coefficients: Array
    intercept: float


@dataclass(frozen=True, slots=True, eq=False)
class _Guess:
    """Sets of all rows to finish from, coefficients to fall back on, and how they were found."""

    sets: Sets
    coefficients: Array
    intercept: float
    systems: int
    method: str


def solve_hinge(
    matrix: Matrix,
    problem: Problem,
    *,
    tolerance: float = 1e-6,
    seed: int = 0,
    factor: Array | None = None,
    start: Solution | None = None,
    kept_bytes: int = KEPT_BYTES,
) -> Solution:
    """Return a solution with its certificate.

    Parameters
    ----------
    matrix : Matrix
        n rows, positive semi-definite.
    problem : Problem
    tolerance : float
        Relative duality gap to reach.
    seed : int
        Of the random subsets.
    factor : ndarray, shape (n, r), optional
        G with K = G G' exactly, as the linear kernel has.
    start : Solution, optional
        Of a similar problem over the same rows.
    kept_bytes : int
        Memory for rows of the matrix; beyond it the result is what was reached, and says so.

    Raises
    ------
    LinAlgError
        If the matrix is not positive semi-definite.

    Notes
    -----
    Cost: |F|^3 / 3 + n |F| for each of some 10 to 60 systems with |F| free rows, and n kernel values for each row
    that was ever free; never n x n beyond a few hundred rows.
    """
    solver = _Solver(matrix, problem, tolerance, np.random.default_rng((seed, 0)), kept_bytes)
    if start is not None:
        guess = solver.from_start(start)
    elif factor is not None:
        guess = solver.by_exact_factor(factor)
    else:
        guess = solver.from_nothing()
    return solver.finish(guess)


class _Solver:
    """The ways of one problem."""

    def __init__(
        self, matrix: Matrix, problem: Problem, tolerance: float, rng: np.random.Generator, kept_bytes: int
    ) -> None:
        self.matrix, self.problem, self.rng = matrix, problem, rng
        self.tolerance = tolerance
        self.kept_bytes = kept_bytes
        self.n = len(problem)
        self.largest = float(problem.costs.max())
        # Ridge and violation on the way, and at the end: a ridge e leaves a relative gap of about 2 e C.
        self.rough_end = min(1e-5, 1e-4 * ROUGH / 0.3 / self.largest * 0.3)
        self.end = 0.05 * tolerance / self.largest
        self.violation = 0.1 * tolerance
        self.systems = 0

    # -- the ways ---------------------------------------------------------------------------------------------------

    def from_nothing(self) -> _Guess:
        """Return a guess from a random subset on."""
        size = min(MOST, max(FEWEST, self.n // 6))
        if self.n <= 2 * size:
            return self._whole()
        members = self._subset(size)
        problem = self.problem.rows(members, self.n / size)
        K = np.asarray(self.matrix.block(members, members), dtype=np.float64)
        full = _full_rank(K)
        point = self._first(K, problem, full=full, last=False)
        full = full and point.reached
        first = _Start(members, point.coefficients, point.intercept)
        if not full and self.n >= FACTOR_ROWS:
            tolerance = min(1e-4, self.tolerance) / float(self.problem.costs.sum())
            G = pivoted_factor(self.matrix, tolerance, self.n // FACTOR_SHARE, self.rng)
            if G is not None:
                return self._by_factor(G, first)
        if full and self.n <= ACTIVE_SET_ROWS:
            guess = self._by_active_set(first)
            if guess is not None:
                return guess
        return self._by_levels(first)

    def from_start(self, start: Solution) -> _Guess:
        """Return a guess from the solution of a similar problem: free and bounded rows stay what they were."""
        a = self.problem.signs * start.coefficients
        share = a / max(float(a.max(initial=0.0)), np.finfo(np.float64).tiny)
        upper = share >= 1.0 - 1e-9
        free = (share > 0) & ~upper
        sets = Sets(free, upper)
        return _Guess(sets, np.clip(a, 0.0, self.problem.costs) * self.problem.signs, start.intercept, 0, "start")

    def by_exact_factor(self, G: Array) -> _Guess:
        """Return a guess where a factor is exact."""
        zero = np.zeros(self.n)
        widths = self._widths(max(1.0, 0.01 * self.largest), ROUGH, 0.1, finish=True)
        point = newton(FactorSystem(G, self.problem), zero, zero, 0.0, widths)
        return self._guess(point, "exact factor")

    def _whole(self) -> _Guess:
        """Return a guess from the dense matrix of a small problem."""
        K = np.asarray(self.matrix.block(slice(None), slice(None)), dtype=np.float64)
        return self._guess(self._first(K, self.problem, full=_full_rank(K), last=True), "dense")

    def _first(self, K: Array, problem: Problem, *, full: bool, last: bool) -> Point:
        """Return the solution of a dense problem, exact if it is the last one."""
        m, largest = len(problem), float(problem.costs.max())
        system = DenseSystem(K, problem)
        if full:
            end = (self.rough_end, ROUGH) if last else (0.01, 0.1)
            schedule = Schedule(max(0.3, 1.0 / largest), end[0], 0.03, end[1])
            point = active_set(system, Sets(np.ones(m, dtype=bool), np.zeros(m, dtype=bool)), schedule)[0]
            self.systems += point.systems
            if point.reached:
                return point
        zero = np.zeros(m)
        end = ROUGH if last else max(0.1, min(5.0, 1e-3 * largest))
        widths = self._widths(max(1.0, 0.01 * largest), end, 0.1, finish=last)
        point = newton(system, zero, zero, 0.0, widths)
        self.systems += point.systems
        return replace(point, reached=False) if full else point

    def _by_active_set(self, first: _Start) -> _Guess | None:
        """Return a guess by the active set method over all rows; None where it fails and leaves no start."""
        single = self.matrix.single and float(np.abs(first.coefficients).sum()) < SINGLE_SUM
        system = CachedSystem(
            self.matrix,
            np.arange(self.n),
            self.problem,
            room=2 * len(first.members),
            dtype=np.float32 if single else np.float64,
        )
        free = np.zeros(self.n, dtype=bool)
        free[first.members[first.coefficients != 0]] = True
        schedule = Schedule(0.01, self.rough_end, 0.03, ROUGH, most_freed=MOST_FREED)
        point, good = active_set(system, Sets(free, np.zeros(self.n, dtype=bool)), schedule)
        self.systems += point.systems
        if point.reached:
            return self._guess(point, "active set")
        if good is None:
            return None
        f = self._exact(good.coefficients)
        width = max(min(good.ridge * self.largest, 4.0), 0.1)
        last = newton(
            CachedSystem(self.matrix, np.arange(self.n), self.problem, room=512),
            good.coefficients,
            f,
            good.intercept,
            self._widths(width, ROUGH, 0.1, finish=True),
        )
        return self._guess(last, "active set, then Newton")

    def _by_factor(self, G: Array, first: _Start) -> _Guess:
        """Return a guess for the problem of the factor, from larger and larger subsets to the rows near the margin."""
        problem, n = self.problem, self.n
        members, beta, b = first.members, first.coefficients, first.intercept
        weights = beta @ G[members]
        while 6 * len(members) < n:
            members, beta = self._enlarged(members, beta, 6 * len(members))
            part = problem.rows(members, n / len(members))
            largest = float(part.costs.max())
            rows = G[members]
            widths = self._widths(max(0.1, min(5.0, 1e-3 * largest)), 0.03, 0.3, finish=False, steps=100)
            point = newton(FactorSystem(rows, part), beta, rows @ weights, b, widths)
            self.systems += point.systems
            beta, b = point.coefficients, point.intercept
            weights = beta @ rows
        coefficients = np.zeros(n)
        coefficients[members] = beta
        width = 0.03 if len(members) > len(first.members) else max(0.1, min(5.0, 1e-3 * self.largest))
        active = problem.slack(G @ weights, b) > -0.5
        active |= coefficients != 0
        for _ in range(20):
            if active.mean() > 0.8:
                active[:] = True
            rows_at = np.flatnonzero(active)
            rows, part = G[rows_at], problem.rows(rows_at)
            point = newton(
                FactorSystem(rows, part),
                coefficients[rows_at],
                rows @ weights,
                b,
                self._widths(width, ROUGH, 0.1, finish=True),
            )
            self.systems += point.systems
            coefficients = np.zeros(n)
            coefficients[rows_at] = point.coefficients
            b = point.intercept
            weights = point.coefficients @ rows
            slack = problem.slack(G @ weights, b)
            if not (~active & (slack > ROUGH)).any():
                break
            active |= slack > -0.2
            width = 0.03
        return self._spread(point, rows_at, "factor")

    def _by_levels(self, first: _Start) -> _Guess:
        """Return a guess by Newton's method on larger and larger subsets, then on the rows near the margin."""
        problem, n = self.problem, self.n
        members, beta, b = first.members, first.coefficients, first.intercept
        while 3 * len(members) < n and len(members) < 6000:
            before, known = members, beta
            members, beta = self._enlarged(members, beta, min(3 * len(members), 6000))
            part = problem.rows(members, n / len(members))
            chosen = np.flatnonzero(known)
            f = products(self.matrix, before[chosen], known[chosen], members)
            width = max(0.1, min(5.0, 1e-3 * float(part.costs.max())))
            end = 0.1 if 3 * len(members) >= n else width
            system = CachedSystem(self.matrix, members, part, room=256)
            point = newton(system, beta, f, b, self._widths(width, end, 0.1, finish=False, steps=100))
            self.systems += point.systems
            beta, b = point.coefficients, point.intercept
        coefficients = np.zeros(n)
        coefficients[members] = beta
        f = self._exact(coefficients)
        active = np.ones(n, dtype=bool) if n <= NEWTON_ROWS else problem.slack(f, b) > -0.3
        active |= coefficients != 0
        width = max(0.1, min(5.0, 1e-3 * self.largest))
        for _ in range(20):
            rows_at = np.flatnonzero(active)
            part = problem.rows(rows_at)
            system = CachedSystem(self.matrix, rows_at, part, room=256)
            widths = self._widths(width, ROUGH, 0.1, finish=True)
            point = newton(system, coefficients[rows_at], f[rows_at], b, widths)
            self.systems += point.systems
            coefficients = np.zeros(n)
            coefficients[rows_at] = point.coefficients
            b = point.intercept
            f[rows_at] = point.outputs
            outside = np.flatnonzero(~active)
            chosen = np.flatnonzero(coefficients)
            f[outside] = products(self.matrix, chosen, coefficients[chosen], outside)
            slack = problem.slack(f, b)
            if not (slack[outside] > ROUGH).any():
                break
            active |= slack > -0.1
            width = 0.01
        return self._spread(point, rows_at, "levels")

    # -- the end ----------------------------------------------------------------------------------------------------

    def finish(self, guess: _Guess) -> Solution:
        """Return the certified solution: exact sets, in double precision, on the exact matrix."""
        free = int(guess.sets.free.sum())
        if 8 * self.n * free > self.kept_bytes:
            return self._certified(guess.coefficients, None, guess.method + ", unfinished")
        system = CachedSystem(self.matrix, np.arange(self.n), self.problem, room=free + 64)
        start = self.end if guess.method != "start" else max(self.end, 1e-3 / self.largest)
        # On a matrix of low rank a wrong guess can free hundreds of rows: Newton's method then gets there sooner.
        schedule = Schedule(start, self.end, 0.03, self.violation, patience=3, abort=free + 10)
        try:
            point = active_set(system, guess.sets.copy(), schedule)[0]
            self.systems += point.systems
            found = self._certified(point.coefficients, system, guess.method)
            if found.converged:
                return found
        except LinAlgError:
            found = None
        f = system.outputs(guess.coefficients)
        width = 0.03 if guess.method != "start" else max(0.1, min(5.0, 1e-3 * self.largest))
        widths = Widths(width, 0.1 * self.violation, 0.1, 200, (self.end, self.violation))
        point = newton(system, guess.coefficients, f, guess.intercept, widths)
        self.systems += point.systems
        again = self._certified(point.coefficients, system, guess.method + ", Newton")
        return again if found is None or again.gap < found.gap else found

    def _certified(self, coefficients: Array, system: CachedSystem | None, method: str) -> Solution:
        """Return feasible coefficients with their certificate."""
        beta = feasible(self.problem, coefficients)
        outputs = self._exact(beta) if system is None else system.outputs(beta)
        return certify(self.problem, beta, outputs, tolerance=self.tolerance, iterations=self.systems, method=method)

    # -- pieces -----------------------------------------------------------------------------------------------------

    def _exact(self, coefficients: Array) -> Array:
        """Return K beta in double precision."""
        chosen = np.flatnonzero(coefficients)
        return products(self.matrix, chosen, coefficients[chosen])

    def _widths(self, start: float, end: float, factor: float, *, finish: bool, steps: int = 600) -> Widths:
        end = min(start, end)
        return Widths(start, end, factor, steps, (self.rough_end, ROUGH) if finish else None)

    def _subset(self, size: int) -> NDArray[np.intp]:
        """Return random rows, of both signs where there are both."""
        members = self.rng.choice(self.n, size, replace=False)
        for sign in (1.0, -1.0):
            if not (self.problem.signs[members] == sign).any():
                some = np.flatnonzero(self.problem.signs == sign)[:2]
                members[: len(some)] = some
        return np.unique(members)

    def _enlarged(self, members: NDArray[np.intp], beta: Array, size: int) -> tuple[NDArray[np.intp], Array]:
        """Return the members with more random rows, whose coefficients are zero."""
        others = np.setdiff1d(np.arange(self.n), members, assume_unique=True)
        added = self.rng.choice(others, size - len(members), replace=False)
        return np.concatenate([members, added]), np.concatenate([beta, np.zeros(len(added))])

    def _guess(self, point: Point, method: str) -> _Guess:
        return _Guess(point.sets, point.coefficients, point.intercept, self.systems, method)

    def _spread(self, point: Point, rows: NDArray[np.intp], method: str) -> _Guess:
        """Return the point of some rows as one of all."""
        coefficients = np.zeros(self.n)
        coefficients[rows] = point.coefficients
        free, upper = np.zeros(self.n, dtype=bool), np.zeros(self.n, dtype=bool)
        free[rows], upper[rows] = point.sets.free, point.sets.upper
        return _Guess(Sets(free, upper), coefficients, point.intercept, self.systems, method)


def _full_rank(K: Array) -> bool:
    """Say whether nearly all pivots of some rows stand out."""
    size = min(len(K), PROBE_ROWS)
    scale = float(K.diagonal()[:size].max())
    rank = lapack.dpstrf(np.asfortranarray(K[:size, :size]), lower=1, tol=PROBE_TOLERANCE * scale)[2]
    return bool(rank >= FULL_RANK * size)
