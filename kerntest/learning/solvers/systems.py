"""The linear system that both methods solve again and again, for matrices in three forms.

Given the free rows F and the rows U at their upper bound, the ridge e and margins o, find beta and b with

    beta_U = C y_U,   f_F + e beta_F + b = y_F o_F,   sum beta = delta,   f = K beta:

    [K_FF + e  1] [beta_F]   [y_F o_F - K_FU beta_U]
    [1'        0] [b     ] = [delta - sum beta_U   ].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import lapack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.matrices import Matrix
    from kerntest.learning.solvers.problem import Problem

# Rows of the matrix made at once, and dropped, for coefficients whose rows are not kept.
BLOCK_ROWS = 256
ATTEMPTS = 6


class System(Protocol):
    """Solves for the target of given sets. `problem` is over the rows of the system."""

    problem: Problem

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, margins: Array) -> Target:
        """Return the point that the sets ask for; `ridge` has one entry for each free row."""
        ...

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        ...


Target = tuple["Array", "Array", float]
"""beta, f and b."""


def solve_positive(A: NDArray[np.floating], right: Array) -> Array:
    """Return A^-1 B for a symmetric positive definite A, with jitter where it is not quite; A may be overwritten.

    Raises
    ------
    LinAlgError
        If no small jitter makes it positive definite.
    """
    if A.dtype == np.float32:
        _, solved, failed = lapack.sposv(A, right.astype(np.float32), lower=1)
        if failed == 0:
            return np.asarray(solved, dtype=np.float64)
        A = A.astype(np.float64)
    size, jitter = len(A), 0.0
    diagonal = A.diagonal().copy()
    places = np.arange(size)
    for _ in range(ATTEMPTS):
        factor, failed = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=0)
        if failed == 0:
            return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])
        jitter = max(100.0 * jitter, 1e-14 * size * float(diagonal.max()))
        A[places, places] = diagonal + jitter
    raise LinAlgError("the matrix is not positive definite")


class _Bounded:
    """What the rows at their upper bound contribute, updated by what changed since the last time."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.at_upper = problem.signs * problem.costs
        self.coefficients = np.zeros(len(problem))

    def update(self, upper: NDArray[np.bool_]) -> tuple[Array, bool]:
        """Return the coefficients to add to the product (a change, or all of them), and whether it is a change."""
        wanted = np.where(upper, self.at_upper, 0.0)
        change = wanted - self.coefficients
        fresh = np.count_nonzero(change) >= np.count_nonzero(wanted)
        self.coefficients = wanted
        return (wanted, False) if fresh else (change, True)


def _bordered(solved: Array, bounded: float, total: float) -> tuple[Array, float]:
    """Return beta_F and b from the solutions for [y o - s, 1]."""
    b = (float(solved[:, 0].sum()) + bounded - total) / float(solved[:, 1].sum())
    return solved[:, 0] - b * solved[:, 1], b


class DenseSystem:
    """The whole matrix is there: a subset, or a small problem."""

    def __init__(self, K: Array, problem: Problem) -> None:
        self.K, self.problem = K, problem
        self._bounded = _Bounded(problem)
        self._product = np.zeros(len(problem))

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        chosen = np.flatnonzero(coefficients)
        if 3 * len(chosen) < len(coefficients):
            return np.asarray(coefficients[chosen] @ self.K[chosen])
        return np.asarray(self.K @ coefficients)

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, margins: Array) -> Target:
        """Return the point that the sets ask for."""
        change, adds = self._bounded.update(upper)
        product = self.outputs(change)
        self._product = self._product + product if adds else product
        u = self._bounded.coefficients
        rows = self.K[free]
        A = np.asfortranarray(rows[:, free])
        places = np.arange(len(free))
        A[places, places] += ridge
        right = np.empty((len(free), 2), order="F")
        right[:, 0] = self.problem.signs[free] * margins[free] - self._product[free]
        right[:, 1] = 1.0
        beta_free, b = _bordered(solve_positive(A, right), float(u.sum()), self.problem.total)
        beta = u.copy()
        beta[free] = beta_free
        return beta, self._product + beta_free @ rows, b


class FactorSystem:
    """K = G G' with few columns: everything costs n r."""

    def __init__(self, G: Array, problem: Problem) -> None:
        self.G, self.problem = G, problem
        self._bounded = _Bounded(problem)
        self._weights = np.zeros(G.shape[1])

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        return np.asarray(self.G @ (coefficients @ self.G))

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, margins: Array) -> Target:
        """Return the point that the sets ask for; by Woodbury's identity where rows outnumber columns."""
        change, adds = self._bounded.update(upper)
        chosen = np.flatnonzero(change)
        if 4 * len(chosen) < len(change):
            weights = change[chosen] @ self.G[chosen]
        else:
            weights = change @ self.G
        self._weights = self._weights + weights if adds else weights
        u = self._bounded.coefficients
        G = self.G[free]
        size, rank = G.shape
        right = np.empty((size, 2), order="F")
        right[:, 0] = self.problem.signs[free] * margins[free] - G @ self._weights
        right[:, 1] = 1.0
        if size <= rank:
            A = np.asfortranarray(G @ G.T)
            A[np.arange(size), np.arange(size)] += ridge
            solved = solve_positive(A, right)
        else:
            scaled = G / ridge[:, None]
            A = np.asfortranarray(G.T @ scaled)
            A[np.arange(rank), np.arange(rank)] += 1.0
            inner = solve_positive(A, np.asfortranarray(scaled.T @ right))
            solved = (right - G @ inner) / ridge[:, None]
        beta_free, b = _bordered(solved, float(u.sum()), self.problem.total)
        beta = u.copy()
        beta[free] = beta_free
        return beta, np.asarray(self.G @ (self._weights + beta_free @ G)), b


class CachedSystem:
    """Rows of the matrix are made when a row first becomes free, and kept.

    Parameters
    ----------
    matrix : Matrix
    members : ndarray of int, shape (m,)
        Which rows of the matrix take part.
    problem : Problem
        Over these rows.
    room : int
        Rows to make room for at first.
    dtype : type
        float32 halves memory and time where its digits are enough.
    """

    def __init__(
        self, matrix: Matrix, members: NDArray[np.intp], problem: Problem, *, room: int = 64, dtype: type = np.float64
    ) -> None:
        self.matrix, self.members, self.problem, self.dtype = matrix, members, problem, dtype
        self.single_solve = False
        self.used = 0
        size = len(members)
        self._whole = size == matrix.n
        self._kept = np.empty((min(room, size), size), dtype)
        self._place = np.full(size, -1)
        self._bounded = _Bounded(problem)
        self._product = np.zeros(size)

    def _rows(self, rows: NDArray[np.intp]) -> NDArray[np.floating]:
        columns: NDArray[np.intp] | slice = slice(None) if self._whole else self.members
        return self.matrix.block(self.members[rows], columns, self.dtype)

    def _ensure(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return where the rows are kept, after making those that are not."""
        new = rows[self._place[rows] < 0]
        if len(new):
            needed = self.used + len(new)
            if needed > len(self._kept):
                size = len(self.members)
                larger = np.empty((max(needed, min(size, 2 * len(self._kept))), size), self.dtype)
                larger[: self.used] = self._kept[: self.used]
                self._kept = larger
            for start in range(0, len(new), BLOCK_ROWS):
                part = new[start : start + BLOCK_ROWS]
                self._kept[self.used + start : self.used + start + len(part)] = self._rows(part)
            self._place[new] = np.arange(self.used, needed)
            self.used = needed
        return np.asarray(self._place[rows])

    def _kept_product(self, places: NDArray[np.intp], values: Array) -> Array:
        """Return values @ kept[places], without gathering rows where most are needed."""
        if 3 * len(places) > self.used:
            weights = np.zeros(self.used, self.dtype)
            weights[places] = values
            return np.asarray(weights @ self._kept[: self.used], dtype=np.float64)
        return np.asarray(values.astype(self.dtype) @ self._kept[places], dtype=np.float64)

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        chosen = np.flatnonzero(coefficients)
        places = self._place[chosen]
        kept = places >= 0
        result = np.zeros(len(coefficients))
        if kept.any():
            result += self._kept_product(places[kept], coefficients[chosen[kept]])
        others = chosen[~kept]
        for start in range(0, len(others), BLOCK_ROWS):
            part = others[start : start + BLOCK_ROWS]
            result += coefficients[part].astype(self.dtype) @ self._rows(part)
        return result

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, margins: Array) -> Target:
        """Return the point that the sets ask for."""
        change, adds = self._bounded.update(upper)
        product = self.outputs(change)
        self._product = self._product + product if adds else product
        u = self._bounded.coefficients
        places = self._ensure(free)
        most = 3 * len(free) > self.used
        rows = None if most else self._kept[places]
        A = self._kept[places[:, None], free] if rows is None else rows[:, free]
        right = np.empty((len(free), 2), order="F")
        right[:, 0] = self.problem.signs[free] * margins[free] - self._product[free]
        right[:, 1] = 1.0
        solved_in = np.float32 if self.dtype is np.float32 and self.single_solve else np.float64
        system = np.array(A.T, dtype=solved_in, order="F")
        diagonal = np.arange(len(free))
        system[diagonal, diagonal] += ridge
        beta_free, b = _bordered(solve_positive(system, right), float(u.sum()), self.problem.total)
        beta = u.copy()
        beta[free] = beta_free
        extra = self._kept_product(places, beta_free) if rows is None else beta_free.astype(self.dtype) @ rows
        return beta, self._product + extra, b
