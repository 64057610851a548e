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
from numpy.typing import NDArray
from scipy.linalg import lapack

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Problem
    from kerntest.matrices.matrix import Matrix

# Entries of the matrix made at once.
BLOCK = 2**18
# Gathering a row costs about as much as multiplying by so many.
GATHER = 3
ATTEMPTS = 6


class System(Protocol):
    """Solves for the target of given sets. `problem` is over the rows of the system.

    `single_solve` allows to solve in single precision, where the matrix is in it.
    """

    problem: Problem
    single_solve: bool

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, margins: Array) -> Target:
        """Return the point that the sets ask for; `ridge` has one entry for each free row."""
        ...

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        ...


Kept = NDArray[np.floating]
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
    _, solved, failed = lapack.dposv(A, right, lower=1)
    if failed == 0:
        return np.asarray(solved)
    size, jitter = len(A), 0.0
    diagonal = A.diagonal().copy()
    places = np.arange(size)
    for _ in range(ATTEMPTS):
        jitter = max(100.0 * jitter, 1e-14 * size * float(diagonal.max()))
        A[places, places] = diagonal + jitter
        _, solved, failed = lapack.dposv(A, right, lower=1)
        if failed == 0:
            return np.asarray(solved)
    raise LinAlgError("the matrix is not positive definite")


class _Bounded:
    """The rows at their upper bound: their coefficients, and what they are multiplied to, kept up to date."""

    def __init__(self, problem: Problem, product: Array) -> None:
        self.at_upper = problem.signs * problem.costs
        self.coefficients = np.zeros(len(problem))
        self.sum = 0.0
        self.product = product

    def update(self, upper: NDArray[np.bool_], multiplied: Callable[[Array], Array]) -> None:
        """Take the rows that are at their upper bound now; only what changed is multiplied, where that is less."""
        wanted = np.where(upper, self.at_upper, 0.0)
        change = wanted - self.coefficients
        changed = np.count_nonzero(change)
        if not changed:
            return
        few = changed < np.count_nonzero(wanted)
        self.product = self.product + multiplied(change) if few else multiplied(wanted)
        self.coefficients, self.sum = wanted, float(wanted.sum())


def _right_side(problem: Problem, free: NDArray[np.intp], margins: Array, product: Array) -> Array:
    """Return [y o - s, 1] for the free rows."""
    right = np.ones((2, len(free)))
    np.multiply(problem.signs[free], margins[free], out=right[0])
    right[0] -= product
    return right.T


def _raised(A: NDArray[np.floating], ridge: Array | float) -> NDArray[np.floating]:
    """Return the array, contiguous and symmetric, with a ridge on its diagonal, in the order that LAPACK wants."""
    A.reshape(-1)[:: len(A) + 1] += ridge
    return A.T


def _bordered(solved: Array, bounded: float, total: float) -> tuple[Array, float]:
    """Return beta_F and b from the solutions for [y o - s, 1]."""
    sums = np.add.reduce(solved, axis=0)
    b = (float(sums[0]) + bounded - total) / float(sums[1])
    return solved[:, 0] - b * solved[:, 1], b


class DenseSystem:
    """The whole matrix is there: a subset, or a small problem."""

    def __init__(self, K: Array, problem: Problem) -> None:
        self.K, self.problem, self.single_solve = K, problem, False
        self._bounded = _Bounded(problem, np.zeros(len(problem)))

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        chosen = coefficients.nonzero()[0]
        if 3 * len(chosen) < len(coefficients):
            return np.asarray(coefficients[chosen] @ self.K.take(chosen, axis=0))
        return np.asarray(self.K @ coefficients)

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, margins: Array) -> Target:
        """Return the point that the sets ask for."""
        bounded = self._bounded
        bounded.update(upper, self.outputs)
        rows = self.K.take(free, axis=0)
        right = _right_side(self.problem, free, margins, bounded.product[free])
        solved = solve_positive(_raised(rows.take(free, axis=1), ridge), right)
        beta_free, b = _bordered(solved, bounded.sum, self.problem.total)
        beta = bounded.coefficients.copy()
        beta[free] = beta_free
        return beta, bounded.product + beta_free @ rows, b


class FactorSystem:
    """K = G G' with few columns: everything costs n r."""

    def __init__(self, G: NDArray[np.floating], problem: Problem) -> None:
        self.G, self.problem, self.single_solve = G, problem, False
        self._bounded = _Bounded(problem, np.zeros(G.shape[1]))

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        return np.asarray(self.G @ self._weights(coefficients))

    def _weights(self, coefficients: Array) -> Array:
        """Return G' beta."""
        chosen = coefficients.nonzero()[0]
        if 4 * len(chosen) < len(coefficients):
            return np.asarray(coefficients[chosen] @ self.G[chosen])
        return np.asarray(coefficients @ self.G)

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, margins: Array) -> Target:
        """Return the point that the sets ask for; by Woodbury's identity where rows outnumber columns."""
        bounded = self._bounded
        bounded.update(upper, self._weights)
        G = self.G[free]
        size, rank = G.shape
        right = _right_side(self.problem, free, margins, G @ bounded.product)
        if size <= rank:
            solved = solve_positive(_raised(G @ G.T, ridge), right)
        else:
            scaled = G / ridge[:, None]
            inner = solve_positive(_raised(G.T @ scaled, 1.0), scaled.T @ right)
            solved = (right - G @ inner) / ridge[:, None]
        beta_free, b = _bordered(solved, bounded.sum, self.problem.total)
        beta = bounded.coefficients.copy()
        beta[free] = beta_free
        return beta, np.asarray(self.G @ (bounded.product + beta_free @ G)), b


class CachedSystem:
    """Rows of the matrix are made when a row first becomes free, and kept.

    Parameters
    ----------
    matrix : Matrix
    members : ndarray of int, shape (m,)
        Which rows of the matrix take part, in their order.
    problem : Problem
        Over these rows.
    dtype : type
        float32 halves memory and time where its digits are enough.
    kept_bytes : int or None
        Rows beyond it are not kept but made again for each product.
    """

    def __init__(
        self,
        matrix: Matrix,
        members: NDArray[np.intp],
        problem: Problem,
        *,
        dtype: type = np.float64,
        kept_bytes: int | None = None,
    ) -> None:
        self.matrix, self.members, self.problem, self.dtype = matrix, members, problem, dtype
        self.single_solve = False
        self.used = 0
        size = len(members)
        self._whole = size == matrix.n
        self._most = size if kept_bytes is None else min(size, kept_bytes // (np.dtype(dtype).itemsize * max(size, 1)))
        # Rows in chunks, as they came: a larger array would have to be filled again. There is room in the last one.
        self._chunks: list[Kept] = []
        self._room = 0
        # Entries among kept rows, side by side: gathered from whole rows they would be scattered over memory.
        self._square: Kept = np.empty((0, 0), dtype)
        self._order = np.empty(0, dtype=np.intp)
        self._place = np.full(size, -1)
        self._bounded = _Bounded(problem, np.zeros(size))

    def _rows(self, rows: NDArray[np.intp], out: NDArray[np.floating] | None = None) -> NDArray[np.floating]:
        columns: NDArray[np.intp] | slice = slice(None) if self._whole else self.members
        return self.matrix.block(self.members[rows], columns, self.dtype, out)

    def _ensure(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return where the rows are kept, after making those that are not; -1 where there is no room."""
        new = rows[self._place[rows] < 0][: self._most - self.used]
        step = max(16, BLOCK // len(self.members))
        done = 0
        while done < len(new):
            if not self._room:
                self._room = min(max(len(new) - done, self.used), self._most - self.used)
                self._chunks.append(np.empty((self._room, len(self.members)), self.dtype))
            chunk = self._chunks[-1]
            count = min(step, self._room, len(new) - done)
            made, first = new[done : done + count], len(chunk) - self._room
            added = self._rows(made, chunk[first : first + count])
            if not self.matrix.quick:
                self._extend(made, added)
            self._place[made] = np.arange(self.used, self.used + count)
            self.used, self._room, done = self.used + count, self._room - count, done + count
        return np.asarray(self._place[rows])

    def _extend(self, new: NDArray[np.intp], rows: NDArray[np.floating]) -> None:
        """Take the entries among the rows that were kept and the new ones."""
        used, needed = self.used, self.used + len(new)
        if needed > len(self._square):
            size = max(needed, min(self._most, 2 * len(self._square)))
            larger: Kept = np.empty((size, size), self.dtype)
            larger[:used, :used] = self._square[:used, :used]
            self._square = larger
        self._order = np.concatenate([self._order, new])
        added = rows.take(self._order, axis=1)
        self._square[used:needed, :needed] = added
        self._square[:used, used:needed] = added[:, :used].T

    def _kept_product(self, places: NDArray[np.intp], values: Array) -> Array:
        """Return values @ kept[places], without gathering rows where most are needed."""
        weights: Kept = np.zeros(self.used, self.dtype)
        weights[places] = values
        result = np.zeros(len(self.members))
        start = 0
        for chunk in self._chunks:
            part = weights[start : start + len(chunk)]
            start += len(chunk)
            chosen = part.nonzero()[0]
            if GATHER * len(chosen) > len(part):
                result += part @ chunk[: len(part)]
            elif len(chosen):
                result += part[chosen] @ chunk.take(chosen, axis=0)
        return result

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        chosen = coefficients.nonzero()[0]
        places = self._place[chosen]
        kept = places >= 0
        result = np.zeros(len(coefficients))
        if kept.any():
            result += self._kept_product(places[kept], coefficients[chosen[kept]])
        others = chosen[~kept]
        step = max(16, BLOCK // max(len(coefficients), 1))
        for start in range(0, len(others), step):
            part = others[start : start + step]
            result += coefficients[part].astype(self.dtype) @ self._rows(part)
        return result

    def _among(self, free: NDArray[np.intp], places: NDArray[np.intp]) -> NDArray[np.floating]:
        """Return K[F, F]: made again where that takes less time than to fetch it."""
        if self.matrix.quick:
            rows = self.members[free]
            return self.matrix.block(rows, rows, self.dtype)
        kept = places >= 0
        if kept.all():
            return self._square.take(places, axis=0).take(places, axis=1)
        A: Kept = np.empty((len(free), len(free)), self.dtype)
        inside, others = np.flatnonzero(kept), np.flatnonzero(~kept)
        A[inside[:, None], inside] = self._square[places[inside][:, None], places[inside]]
        A[others] = self.matrix.block(self.members[free[others]], self.members[free], self.dtype)
        A[inside[:, None], others] = A[others[:, None], inside].T
        return A

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, margins: Array) -> Target:
        """Return the point that the sets ask for."""
        bounded = self._bounded
        bounded.update(upper, self.outputs)
        places = self._ensure(free)
        right = _right_side(self.problem, free, margins, bounded.product[free])
        A = self._among(free, places)
        if self.dtype is np.float32 and not self.single_solve:
            A = A.astype(np.float64)
        beta_free, b = _bordered(solve_positive(_raised(A, ridge), right), bounded.sum, self.problem.total)
        beta = bounded.coefficients.copy()
        beta[free] = beta_free
        kept = bool((places >= 0).all())
        part = self._kept_product(places, beta_free) if kept else self.outputs(beta - bounded.coefficients)
        return beta, bounded.product + part, b
