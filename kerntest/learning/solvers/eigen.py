"""The largest eigenvalues of a centred kernel matrix: block Lanczos with full reorthogonalisation, or LAPACK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from kerntest.learning.ties import largest_entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.centred import CentredMatrix

EigenSolver: TypeAlias = Literal["auto", "lanczos", "dense"]
SOLVERS: tuple[EigenSolver, ...] = get_args(EigenSolver)
# LAPACK is as fast for matrices up to so many rows, or where so large a share of all eigenvectors is wanted.
DENSE_ROWS, DENSE_SHARE = 200, 0.15
# Smaller matrices are not worth sharing among threads, which would wait for one another.
SHARED_ROWS = 1000
# Residual |A v - theta v| at which to stop, and what is left of a vector that is rounding, relative to the largest
# eigenvalue.
ACCURACY, EXHAUSTED = 1e-12, 1e-13
# Eigenvalues below this share of the largest are numerically zero.
ZERO = 1e-12
# Vectors applied together: one pass over the matrix serves them all.
NARROWEST, WIDEST, SPARE = 4, 24, 2
# Columns of the basis, in blocks, at which it is condensed to the best ones; and steps at which to give up.
BLOCKS, STEPS = 30, 300
START_STREAM = 5


@dataclass(frozen=True, slots=True, eq=False)
class Eigenpairs:
    """The largest eigenvalues, descending, with orthonormal eigenvectors.

    Parameters
    ----------
    values : ndarray, shape (k,)
    vectors : ndarray, shape (n, k)
        The entry largest in size of each is positive.
    smallest : float
        The least eigenvalue seen: at least the smallest of the matrix.
    solver : "lanczos" or "dense"
    converged : bool
    """

    values: Array
    vectors: Array
    smallest: float
    solver: Literal["lanczos", "dense"]
    converged: bool = True


def leading_eigenpairs(matrix: CentredMatrix, count: int, *, solver: EigenSolver = "auto", seed: int = 0) -> Eigenpairs:
    """Return the largest eigenvalues of HKH that are not numerically zero.

    Parameters
    ----------
    matrix : CentredMatrix
        HKH of n rows; its rank is at most n - 1.
    count : int
        How many; fewer are returned where the rank is less.
    solver : "auto", "lanczos" or "dense"
    seed : int
        Of the vectors that Lanczos starts with.

    Returns
    -------
    Eigenpairs
        Those above 1e-12 of the largest and above rounding.

    Notes
    -----
    Cost: n^2 (count + 2) flops for each of some ten steps, and O(n m^2) for a basis of m vectors (Lanczos); about 9 n^3
    and two n x n arrays (dense).
    """
    n = matrix.n
    wanted = min(count, n - 1)
    if wanted < 1:
        return Eigenpairs(np.empty(0), np.empty((n, 0)), 0.0, "dense")
    dense = solver == "dense" or (solver == "auto" and (n <= DENSE_ROWS or wanted > DENSE_SHARE * n))
    # What Lanczos does between the products is small in any case.
    with threadpool_limits(limits=None if dense and n > SHARED_ROWS else 1, user_api="blas"):
        found = _dense(matrix, wanted) if dense else _lanczos(matrix, wanted, seed)
    largest = float(found.values.max(initial=0.0))
    kept = found.values > max(ZERO * largest, matrix.rounding)
    # Rounding mixes the constant vector, whose eigenvalue is 0, into those of small eigenvalues.
    vectors = found.vectors[:, kept]
    vectors = vectors - vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=0)
    return Eigenpairs(found.values[kept], signed(vectors), found.smallest, found.solver, found.converged)


def signed(vectors: Array) -> Array:
    """Return vectors with the sign that makes the entry largest in size positive; of equal ones the first counts."""
    largest = largest_entries(vectors)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return np.asarray(vectors * np.where(signs == 0, 1.0, signs))


def _dense(matrix: CentredMatrix, wanted: int) -> Eigenpairs:
    """Return eigenpairs by LAPACK: of all of them, for its routine for a few misses multiple eigenvalues."""
    values, vectors = eigh(matrix.dense(), overwrite_a=True, check_finite=False, driver="evd")
    best = slice(None, -wanted - 1, -1)
    return Eigenpairs(values[best], vectors[:, best], float(values[0]), "dense")


def _lanczos(matrix: CentredMatrix, wanted: int, seed: int) -> Eigenpairs:
    """Return eigenpairs by block Lanczos."""
    return block_lanczos(matrix, matrix.n, wanted, trace=matrix.trace, seed=seed)


def block_lanczos(
    operator: Callable[[Array], Array], n: int, wanted: int, *, trace: float, seed: int = 0, block: int | None = None
) -> Eigenpairs:
    """Return the largest eigenvalues of a symmetric operator whose eigenvectors have mean zero.

    A block of vectors finds eigenvalues of a multiplicity up to its width; where the space that it spans under the
    operator is exhausted, new vectors join. The basis is condensed to the best Ritz vectors when it is full (thick
    restart, Wu and Simon 2000).

    Parameters
    ----------
    operator : callable
        From vectors, shape (n, b), to their images.
    n : int
    wanted : int
    trace : float
        Of the operator: nothing more is looked for once it is explained.
    seed : int
    block : int, optional
        Width of a block.
    """
    width = min(block or min(max(wanted + SPARE, NARROWEST), WIDEST), n - 1)
    most = min(n - 1, max(BLOCKS * width, 3 * wanted))
    rng = np.random.default_rng((seed, START_STREAM))
    basis = _Basis(n, most + width)
    fresh = basis.new_vectors(rng.normal(size=(n, width)))
    theta, weights = np.empty(0), np.empty((0, 0))
    converged = False
    for _ in range(STEPS):
        rest = basis.extend(fresh, operator(fresh))
        theta, weights = basis.ritz()
        scale = float(np.abs(theta).max())
        fresh, coupling = _orthonormal(rest, EXHAUSTED * scale)
        residuals = np.linalg.norm(coupling @ weights[-rest.shape[1] :, -wanted:], axis=0)
        enough = basis.size >= wanted
        if enough and bool((residuals <= ACCURACY * scale).all()):
            converged = True
            break
        unknown = n - 1 - basis.size
        if not fresh.shape[1]:
            left = trace - float(np.maximum(theta, 0.0).sum())
            fresh = rng.normal(size=(n, width))
            converged = left <= ZERO * scale and bool(theta[0] >= -ZERO * scale)
        converged |= not unknown
        if converged:
            break
        # What is left of images is small where they are exhausted, and by then as much in the basis as rounding is.
        fresh = basis.new_vectors(fresh[:, :unknown])
        if basis.size + fresh.shape[1] > most:
            basis.condense(theta, weights, min(basis.size - 1, wanted + width))
            theta, weights = theta[-basis.size :], np.eye(basis.size)
    best = slice(None, -wanted - 1, -1)
    return Eigenpairs(theta[best], basis.vectors @ weights[:, best], float(theta.min()), "lanczos", converged)


class _Basis:
    """Orthonormal vectors Q and the projection T = Q'AQ of an operator A on them."""

    def __init__(self, n: int, room: int) -> None:
        self._vectors = np.empty((n, 0))
        self._room = room
        self._projected = np.zeros((room, room))
        self.size = 0

    @property
    def vectors(self) -> Array:
        """Q, shape (n, size)."""
        return self._vectors[:, : self.size]

    def new_vectors(self, start: Array) -> Array:
        """Return orthonormal vectors of mean zero with no part in the basis."""
        return np.asarray(np.linalg.qr(self._reduced(start - start.mean(axis=0))[0])[0])

    def extend(self, fresh: Array, image: Array) -> Array:
        """Take vectors in, given what the operator makes of them; return what of that is new."""
        self._append(fresh)
        rest, overlaps = self._reduced(image)
        new = slice(self.size - fresh.shape[1], self.size)
        self._projected[: self.size, new] = overlaps
        self._projected[new, : self.size] = overlaps.T
        return rest

    def ritz(self) -> tuple[Array, Array]:
        """Return the eigenvalues of T, ascending, and its eigenvectors, shape (size, size)."""
        values, vectors = np.linalg.eigh(self._projected[: self.size, : self.size])
        return values, vectors

    def condense(self, theta: Array, weights: Array, kept: int) -> None:
        """Replace the basis by its best Ritz vectors."""
        best = self.vectors @ weights[:, -kept:]
        self._projected[:] = 0.0
        self._projected[np.arange(kept), np.arange(kept)] = theta[-kept:]
        self._vectors[:, :kept] = best
        self.size = kept

    def _append(self, fresh: Array) -> None:
        grown = self.size + fresh.shape[1]
        if grown > self._vectors.shape[1]:
            room = min(self._room, max(2 * self._vectors.shape[1], grown))
            wider = np.empty((len(self._vectors), max(room, grown)), order="F")
            wider[:, : self.size] = self.vectors
            self._vectors = wider
        self._vectors[:, self.size : grown] = fresh
        self.size = grown

    def _reduced(self, image: Array) -> tuple[Array, Array]:
        """Return vectors less their projections on the basis, and their inner products with it; twice, for rounding."""
        overlaps = self.vectors.T @ image
        rest = image - self.vectors @ overlaps
        again = self.vectors.T @ rest
        return rest - self.vectors @ again, overlaps + again


def _orthonormal(vectors: Array, least: float) -> tuple[Array, Array]:
    """Return an orthonormal basis U of vectors W longer than `least`, and U'W."""
    left, lengths, right = np.linalg.svd(vectors, full_matrices=False)
    kept = lengths > least
    return left[:, kept], lengths[kept, None] * right[kept]
