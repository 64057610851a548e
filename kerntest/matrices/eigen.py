"""The largest eigenvalues of a centred kernel matrix: block Lanczos with full reorthogonalisation, or LAPACK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array
    from kerntest.matrices.matrix import CentredMatrix

Operator: TypeAlias = "Callable[[Array, NDArray[np.intp]], Array]"
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
# Entries of an eigenvector that differ in size by less than this share are equal: what is 1e-12 off in the matrix is
# 1e-8 off in the vectors of eigenvalues that differ by 1e-4.
EQUAL_ENTRIES = 1e-8


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


def largest_entries(vectors: Array) -> NDArray[np.intp]:
    """Return for each column the place of the entry largest in size, of equal ones the first, shape (k,)."""
    sizes = np.abs(vectors)
    return np.asarray(np.argmax(sizes >= (1.0 - EQUAL_ENTRIES) * sizes.max(axis=0), axis=0))


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


# Convergence is looked at after so many steps each: it takes an eigendecomposition of its own.
CHECKED = 4
# Room for so many vectors at first, and whenever it is full.
ROOM = 16


@dataclass(frozen=True, slots=True, eq=False)
class Leading:
    """The largest eigenvalue of each operator, and its eigenvector.

    Parameters
    ----------
    values : ndarray, shape (b,)
    vectors : ndarray, shape (b, m)
        Of unit length.
    """

    values: Array
    vectors: Array


def leading_eigenvalues(operator: Operator, start: Array, *, accuracy: float) -> Leading:
    """Return the largest eigenvalue of operators B_k, each symmetric and positive semi-definite.

    Some eigenvalue lies within the residual |B a - theta a| of theta; it is the largest unless the start has no part in
    its direction.

    Parameters
    ----------
    operator : callable
        Maps vectors, shape (b, m), and the numbers k of their operators, shape (b,), to B_k a, shape (b, m).
    start : ndarray, shape (b, m)
        A generic vector for each operator.
    accuracy : float
        The residual, relative to the eigenvalue, at which to stop.

    Notes
    -----
    Cost: t <= m applications of each operator, O(b m t^2) time and O(b m t) memory beside. An operator whose
    eigenvalue has converged is set aside while others go on.
    """
    count, size = start.shape
    values, vectors = np.zeros(count), np.zeros((count, size))
    basis = _Bases.of(start)
    for step in range(1, size + 1):
        basis.advance(operator)
        if step % CHECKED and step < size:
            continue
        theta, weights = basis.largest()
        residual = basis.below[:, step - 1] * np.abs(weights[:, -1])
        done = (residual <= accuracy * theta) | (step == size)
        values[basis.numbers[done]] = theta[done]
        vectors[basis.numbers[done]] = np.matmul(weights[done, None, :], basis.vectors[done, :step])[:, 0]
        basis.keep(~done)
        if not len(basis.numbers):
            break
    return Leading(values, vectors)


@dataclass(slots=True, eq=False)
class _Bases:
    """The Lanczos vectors of the operators that have not converged, and the tridiagonal matrices between them."""

    numbers: NDArray[np.intp]
    vectors: Array
    diagonal: Array
    below: Array
    steps: int = 0

    @classmethod
    def of(cls, start: Array) -> _Bases:
        """Begin with one vector for each operator."""
        count, size = start.shape
        basis = cls(np.arange(count), np.empty((count, 0, size)), np.empty((count, 0)), np.empty((count, 0)))
        basis._make_room()
        basis.vectors[:, 0] = start / np.linalg.norm(start, axis=1, keepdims=True)
        return basis

    def advance(self, operator: Operator) -> None:
        """Apply every operator to its last vector; what is new in the result is the next vector."""
        last = self.steps
        vectors = self.vectors[:, : last + 1]
        found, overlaps = _reduced(operator(vectors[:, last], self.numbers), vectors)
        # Once more, for what rounding has left.
        found, _ = _reduced(found, vectors)
        self.diagonal[:, last] = overlaps[:, last]
        length = np.linalg.norm(found, axis=1)
        new = length > EXHAUSTED * self.diagonal[:, : last + 1].max(axis=1)
        self.below[:, last] = np.where(new, length, 0.0)
        self.steps += 1
        if self.steps == self.vectors.shape[1]:
            self._make_room()
        # Where nothing is new the sequence ends in zeros.
        inverse = np.divide(1.0, length, out=np.zeros_like(length), where=new)
        np.multiply(found, inverse[:, None], out=self.vectors[:, self.steps])

    def largest(self) -> tuple[Array, Array]:
        """Return the largest eigenvalue of each tridiagonal matrix, shape (b,), and its eigenvector, (b, steps)."""
        steps = np.arange(self.steps)
        tridiagonal = np.zeros((len(self.numbers), self.steps, self.steps))
        tridiagonal[:, steps, steps] = self.diagonal[:, : self.steps]
        tridiagonal[:, steps[1:], steps[:-1]] = self.below[:, : self.steps - 1]
        eigenvalues, eigenvectors = np.linalg.eigh(tridiagonal)
        return eigenvalues[:, -1], eigenvectors[:, :, -1]

    def keep(self, wanted: NDArray[np.bool_]) -> None:
        """Drop the operators that are not wanted."""
        if wanted.all():
            return
        for name in ("numbers", "vectors", "diagonal", "below"):
            setattr(self, name, getattr(self, name)[wanted])

    def _make_room(self) -> None:
        for name in ("vectors", "diagonal", "below"):
            values = getattr(self, name)
            more = np.empty((values.shape[0], ROOM, *values.shape[2:]))
            setattr(self, name, np.concatenate([values, more], axis=1))


def _reduced(found: Array, vectors: Array) -> tuple[Array, Array]:
    """Return each vector less its projections on orthonormal ones, shape (b, t, m), and its inner products with them."""
    overlaps = np.matmul(vectors, found[:, :, None])
    return found - np.matmul(overlaps.transpose(0, 2, 1), vectors)[:, 0], overlaps[:, :, 0]


# Entries of one block of features, and rows from whose mean deviations are taken.
BLOCK, FIRST = 2**19, 256


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Orthonormal directions of largest variance.

    Parameters
    ----------
    values : ndarray, shape (k,)
        Of Z'HZ, descending: those of HZZ'H other than 0.
    axes : ndarray, shape (r, k)
        The score largest in size of the rows is positive on each.
    mean : ndarray, shape (r,)
        Of the rows.
    trace : float
    """

    values: Array
    axes: Array
    mean: Array
    trace: float


def leading_directions(
    rows: Callable[[slice], Array],
    n: int,
    count: int,
    engine: Engine,
    *,
    projected: Callable[[slice, Array], Array] | None = None,
    progress: Progress | None = None,
) -> Directions:
    """Return the leading eigenvectors of Z'HZ, for the features Z of n rows.

    Parameters
    ----------
    rows : callable
        From a slice of the rows to their features, shape (b, r).
    n : int
    count : int
        How many; fewer are returned where the rank is less.
    engine : Engine
    projected : callable, optional
        From a slice and axes, shape (r, k), to the products of features and axes, where that is cheaper.
    progress : callable, optional

    Notes
    -----
    Products are those of deviations from the mean of the first rows, so that far-off rows keep the digits in which they
    differ, and the mean of all is put right afterwards: each feature is computed once. Cost: O(n r^2 + r^3) time, O(r^2)
    memory for each thread.
    """
    first = rows(slice(0, min(n, FIRST)))
    width, near = first.shape[1], first.mean(axis=0)
    step = max(64, BLOCK // max(width, 1))
    parts = [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def scatter(part: slice) -> tuple[Array, Array]:
        moved = rows(part) - near
        return moved.T @ moved, moved.sum(axis=0)

    products, rest = np.zeros((width, width)), np.zeros(width)
    # Not sent anywhere: for wide features the products are larger than what they are made of.
    for product, remainder in engine.here.map(scatter, parts, progress):
        products += product
        rest += remainder
    products -= np.outer(rest, rest) / n
    mean = near + rest / n
    with threadpool_limits(limits=None if width > SHARED_ROWS else 1, user_api="blas"):
        values, vectors = np.linalg.eigh(products)
    wanted = min(count, n - 1)
    values, axes = values[::-1][:wanted], vectors[:, ::-1][:, :wanted]
    kept = values > ZERO * float(values.max(initial=0.0))
    values, axes = values[kept], axes[:, kept]
    return Directions(
        values,
        axes * _signs(projected or (lambda part, onto: rows(part) @ onto), parts, mean, axes, engine),
        mean,
        float(np.trace(products)),
    )


def _signs(
    projected: Callable[[slice, Array], Array], parts: list[slice], mean: Array, axes: Array, engine: Engine
) -> Array:
    """Return the sign of the score that is largest in size on each axis, shape (k,): as of the eigenvectors of HZZ'H."""

    def extreme(part: slice) -> Array:
        scores = projected(part, axes) - mean @ axes
        return np.asarray(scores[largest_entries(scores), np.arange(axes.shape[1])])

    if not axes.shape[1]:
        return np.ones(0)
    extremes = np.stack(list(engine.here.map(extreme, parts)))
    largest = extremes[largest_entries(extremes), np.arange(axes.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)
