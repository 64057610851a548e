"""The linear system that every method solves again and again, for matrices in three forms.

Given the free rows F and the rows U at their upper bound, the ridge e and margins o, find beta and b with

    beta_U = C y_U,   f_F + e beta_F + b = y_F o_F,   sum beta = delta,   f = K beta:

    [K_FF + e  1] [beta_F]   [y_F o_F - K_FU beta_U]
    [1'        0] [b     ] = [delta - sum beta_U   ].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import lapack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.problem import Problem
    from kerntest.matrices.matrix import Entries, Matrix

# beta, f and b.
Target: TypeAlias = "tuple[Array, Array, float]"

# Entries of the matrix made at once.
BLOCK = 2**18
# Gathering a row costs about as much as multiplying by so many.
GATHER = 4
# Factorisations, each with more jitter than the one before.
ATTEMPTS = 7


def solve_positive(A: NDArray[np.floating], right: Array) -> Array:
    """Return A^-1 B for a symmetric positive definite A, with jitter where it is not quite; A may be overwritten.

    LinAlgError says that no small jitter makes it positive definite.
    """
    if A.dtype == np.float32:
        _, solved, failed = lapack.sposv(A, right.astype(np.float32), lower=1)
        if failed == 0:
            return np.asarray(solved, dtype=np.float64)
        A = A.astype(np.float64)
    diagonal, places, jitter = A.diagonal().copy(), np.arange(len(A)), 0.0
    for _ in range(ATTEMPTS):
        _, solved, failed = lapack.dposv(A, right, lower=1)
        if failed == 0:
            return np.asarray(solved)
        jitter = max(100.0 * jitter, 1e-14 * len(A) * float(diagonal.max()))
        A[places, places] = diagonal + jitter
    raise LinAlgError("the matrix is not positive definite")


def _product(values: Array, A: Entries) -> Array:
    """Return values @ A, without the rows of zeros where they are many."""
    chosen = values.nonzero()[0]
    if GATHER * len(chosen) < len(values):
        return np.asarray(values[chosen] @ A.take(chosen, axis=0))
    return np.asarray(values @ A)


@dataclass(slots=True)
class Counter:
    """How many systems were solved for one problem."""

    used: int = 0


class System(ABC):
    """Solves for the target of given sets, over the rows of a problem.

    What the coefficients at their upper bound multiply to is kept up to date: K beta_U, or G' beta_U of a factor.
    """

    # Whether single precision may solve, where the matrix is in it.
    single_solve = False

    def __init__(self, problem: Problem, counter: Counter, size: int) -> None:
        self.problem, self.counter = problem, counter
        self.product = np.zeros(size)
        self._bounded = np.zeros(len(problem))
        self._at_upper = problem.signs * problem.costs

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

    def target(self, free: NDArray[np.intp], upper: NDArray[np.bool_], ridge: Array, margins: Array) -> Target:
        """Return the point that the sets ask for; `ridge` has one entry for each free row."""
        self.counter.used += 1
        self._bound(upper)
        rows, product = self._gathered(free)
        right = np.ones((2, len(free)))
        np.multiply(self.problem.signs[free], margins[free], out=right[0])
        right[0] -= product
        solved = self._solved(rows, free, ridge, right.T)
        sums = np.add.reduce(solved, axis=0)
        b = (float(sums[0]) + float(self._bounded.sum()) - self.problem.total) / float(sums[1])
        beta_free = solved[:, 0] - b * solved[:, 1]
        beta = self._bounded.copy()
        beta[free] = beta_free
        return beta, self._completed(rows, beta, beta_free), b

    def _bound(self, upper: NDArray[np.bool_]) -> None:
        """Take the rows that are at their upper bound now; only what changed is multiplied, where that is less."""
        wanted = np.where(upper, self._at_upper, 0.0)
        change = wanted - self._bounded
        changed = np.count_nonzero(change)
        if changed:
            few = changed < np.count_nonzero(wanted)
            self.product = self.product + self._multiplied(change) if few else self._multiplied(wanted)
            self._bounded = wanted


def _raised(A: Entries, ridge: Array | float) -> Entries:
    """Return the array, contiguous and symmetric, with a ridge on its diagonal, in the order that LAPACK wants."""
    A.reshape(-1)[:: len(A) + 1] += ridge
    return A.T


class DenseSystem(System):
    """The whole matrix is there: a subset, or a small problem."""

    def __init__(self, K: Array, problem: Problem, counter: Counter) -> None:
        super().__init__(problem, counter, len(problem))
        self.K = K

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        return _product(coefficients, self.K)

    def _gathered(self, free: NDArray[np.intp]) -> tuple[Array, Array]:
        return self.K.take(free, axis=0), self.product[free]

    def _solved(self, rows: Array, free: NDArray[np.intp], ridge: Array, right: Array) -> Array:
        return solve_positive(_raised(rows.take(free, axis=1), ridge), right)

    def _completed(self, rows: Array, beta: Array, beta_free: Array) -> Array:
        del beta
        return self.product + beta_free @ rows


class FactorSystem(System):
    """K = G G' with few columns: everything costs n r."""

    def __init__(self, G: Array, problem: Problem, counter: Counter) -> None:
        super().__init__(problem, counter, G.shape[1])
        self.G = G

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
            return solve_positive(_raised(rows @ rows.T, ridge), right)
        scaled = rows / ridge[:, None]
        inner = solve_positive(_raised(rows.T @ scaled, 1.0), scaled.T @ right)
        return np.asarray((right - rows @ inner) / ridge[:, None])

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
        super().__init__(problem, counter, size)
        self.matrix, self.members, self.dtype = matrix, members, dtype
        self._columns: NDArray[np.intp] | slice = slice(None) if size == matrix.n else members
        self._most = min(size, kept_bytes // (np.dtype(dtype).itemsize * max(size, 1)))
        # Rows in the order in which they came; memory is taken only for those that are there.
        self._kept: NDArray[Any] = np.empty((self._most, size), dtype)
        self.used = 0
        # Entries among kept rows, side by side: gathered from whole rows they would be scattered over memory.
        self._square: NDArray[Any] = np.empty((0, 0), dtype)
        self._order = np.empty(0, dtype=np.intp)
        self._place = np.full(size, -1)

    def _ensure(self, rows: NDArray[np.intp]) -> None:
        """Make and keep the rows that are not kept, as far as there is room."""
        new = rows[self._place[rows] < 0][: self._most - self.used]
        step = max(16, BLOCK // len(self.members))
        for start in range(0, len(new), step):
            made = new[start : start + step]
            end = self.used + len(made)
            added = self.matrix.block(self.members[made], self._columns, self.dtype, self._kept[self.used : end])
            if not self.matrix.quick:
                self._extend(made, added)
            self._place[made] = np.arange(self.used, end)
            self.used = end

    def _extend(self, new: NDArray[np.intp], rows: Entries) -> None:
        """Take the entries among the rows that were kept and the new ones."""
        used, needed = self.used, self.used + len(new)
        if needed > len(self._square):
            size = max(needed, min(self._most, 2 * len(self._square)))
            larger: NDArray[Any] = np.empty((size, size), self.dtype)
            larger[:used, :used] = self._square[:used, :used]
            self._square = larger
        self._order = np.concatenate([self._order, new])
        added = rows.take(self._order, axis=1)
        self._square[used:needed, :needed] = added
        self._square[:used, used:needed] = added[:, :used].T

    def _kept_product(self, places: NDArray[np.intp], values: Array) -> Array:
        """Return values @ kept[places], without gathering rows where most are needed."""
        weights: NDArray[Any] = np.zeros(self.used, self.dtype)
        weights[places] = values
        return np.asarray(_product(weights, self._kept[: self.used]), dtype=np.float64)

    def outputs(self, coefficients: Array) -> Array:
        """Return K beta."""
        chosen = coefficients.nonzero()[0]
        places = self._place[chosen]
        kept = places >= 0
        result = self._kept_product(places[kept], coefficients[chosen[kept]])
        others = chosen[~kept]
        step = max(16, BLOCK // max(len(coefficients), 1))
        for start in range(0, len(others), step):
            part = others[start : start + step]
            rows = self.matrix.block(self.members[part], self._columns, self.dtype)
            result += coefficients[part].astype(self.dtype) @ rows
        return result

    def _gathered(self, free: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
        """Return where the free rows are kept, -1 where there is no room."""
        self._ensure(free)
        return self._place[free], self.product[free]

    def _solved(self, rows: NDArray[np.intp], free: NDArray[np.intp], ridge: Array, right: Array) -> Array:
        A = self._among(free, rows)
        if self.dtype is np.float32 and not self.single_solve:
            A = A.astype(np.float64)
        return solve_positive(_raised(A, ridge), right)

    def _among(self, free: NDArray[np.intp], places: NDArray[np.intp]) -> Entries:
        """Return K[F, F]: made again where that takes less time than to fetch it, or where there was no room."""
        if self.matrix.quick or (places < 0).any():
            rows = self.members[free]
            return self.matrix.block(rows, rows, self.dtype)
        return self._square.take(places, axis=0).take(places, axis=1)

    def _completed(self, rows: NDArray[np.intp], beta: Array, beta_free: Array) -> Array:
        kept = bool((rows >= 0).all())
        return self.product + (self._kept_product(rows, beta_free) if kept else self.outputs(beta - self._bounded))
