"""The leading eigenpairs of symmetric operators: Lanczos with full reorthogonalisation, or LAPACK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress
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
# Of single vectors, convergence is looked at after so many steps each: it takes an eigendecomposition of its own.
CHECKED = 4
# Room for so many vectors at first.
ROOM = 16
START_STREAM = 5
# Entries of an eigenvector that differ in size by less than this share are equal: what is 1e-12 off in the matrix is
# 1e-8 off in the vectors of eigenvalues that differ by 1e-4.
EQUAL_ENTRIES = 1e-8
# Entries of one block of features, and rows from whose mean deviations are taken.
BLOCK, FIRST = 2**19, 256


@dataclass(frozen=True, slots=True, eq=False)
class Eigenpairs:
    """The largest eigenvalues (k,), descending, with orthonormal eigenvectors (n, k); `smallest` is the least one seen."""

    values: Array
    vectors: Array
    smallest: float
    solver: Literal["lanczos", "dense"]
    converged: bool = True


def leading_eigenpairs(matrix: CentredMatrix, count: int, *, solver: EigenSolver = "auto", seed: int = 0) -> Eigenpairs:
    """Return the largest eigenvalues of HKH that are above 1e-12 of the largest and above rounding.

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
        found = _dense(matrix, wanted) if dense else _block_lanczos(matrix, wanted, seed)
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


def _block_lanczos(matrix: CentredMatrix, wanted: int, seed: int) -> Eigenpairs:
    """Return eigenpairs by Lanczos from random vectors of mean zero, like all eigenvectors that count."""
    rank = matrix.n - 1
    width = min(max(wanted + SPARE, NARROWEST), WIDEST, rank)
    rng = np.random.default_rng((seed, START_STREAM))

    def drawn() -> Array:
        start = rng.normal(size=(matrix.n, width))
        return np.asarray((start - start.mean(axis=0)).T[None])

    found = lanczos(
        lambda vectors, _: matrix(vectors[0].T).T[None],
        drawn(),
        wanted,
        rank=rank,
        room=max(BLOCKS * width, 3 * wanted),
        trace=matrix.trace,
        drawn=drawn,
    )
    smallest, converged = float(found.smallest[0]), bool(found.converged[0])
    return Eigenpairs(found.values[0], found.vectors[0].T, smallest, "lanczos", converged)


@dataclass(frozen=True, slots=True, eq=False)
class Leading:
    """The k largest eigenvalues of b operators (b, k), descending, with eigenvectors (b, k, n); the least ones seen (b,)."""

    values: Array
    vectors: Array
    smallest: Array
    converged: NDArray[np.bool_]


def lanczos(
    operator: Operator,
    start: Array,
    wanted: int = 1,
    *,
    accuracy: float = ACCURACY,
    rank: int | None = None,
    room: int | None = None,
    trace: float = np.inf,
    drawn: Callable[[], Array] | None = None,
) -> Leading:
    """Return the largest eigenvalues of symmetric operators A_k side by side, by the block Lanczos method.

    The operator maps vectors, shape (b, w, n), and the numbers k of their operators, shape (b,), to their images; those
    that have converged, to the `accuracy` relative to the largest, are applied no more. A block of w vectors finds
    eigenvalues of a multiplicity up to w; where the space that it spans is exhausted, new vectors are `drawn` (of one
    operator) until its `trace` is explained. The basis is condensed to the best Ritz vectors when it has no more `room`
    (thick restart, Wu and Simon 2000). Blocks of several vectors are for one operator.
    """
    count, width, n = start.shape
    rank = n if rank is None else rank
    most, steps = (rank, rank) if room is None else (min(rank, room), STEPS)
    basis = _Basis(count, n)
    found = Leading(
        np.zeros((count, wanted)), np.zeros((count, wanted, n)), np.zeros(count), np.zeros(count, dtype=bool)
    )
    fresh = basis.new_vectors(start)
    for step in range(1, steps + 1):
        rest = basis.extend(fresh, operator(fresh, basis.numbers))
        fresh, coupling = _orthonormal(rest, EXHAUSTED * basis.scale)
        unknown = rank - basis.size
        full = basis.size + fresh.shape[1] > most
        if width > 1 or step % CHECKED == 0 or step == steps or full or not unknown or not fresh.shape[1]:
            theta, weights = basis.ritz()
            scale = np.abs(theta).max(axis=1)
            residuals = np.linalg.norm(coupling @ weights[:, -rest.shape[1] :, -wanted:], axis=1)
            done = (residuals <= accuracy * scale[:, None]).all(axis=1) & (basis.size >= wanted)
            if drawn is not None and not fresh.shape[1] and not done[0]:
                left = trace - float(np.maximum(theta, 0.0).sum())
                done |= left <= ZERO * scale[0] and theta[0, 0] >= -ZERO * scale[0]
                fresh = drawn()
            done |= not unknown
            _take(found, basis, theta, weights, done if step < steps else np.ones_like(done))
            found.converged[basis.numbers[done]] = True
            if done.all():
                break
            if done.any():
                basis.keep(~done)
                fresh, theta, weights = fresh[~done], theta[~done], weights[~done]
            if full:
                basis.condense(theta, weights, min(basis.size - 1, wanted + width))
        # What is left of images is small where they are exhausted, and by then as much in the basis as rounding is.
        fresh = basis.new_vectors(fresh[:, :unknown])
    return found


def _take(found: Leading, basis: _Basis, theta: Array, weights: Array, done: NDArray[np.bool_]) -> None:
    """Write down the eigenpairs of the operators that are done."""
    if not done.any():
        return
    numbers, best = basis.numbers[done], slice(None, -min(found.values.shape[1], basis.size) - 1, -1)
    values = theta[done, best]
    found.values[numbers, : values.shape[1]] = values
    vectors = np.matmul(weights[done][:, :, best].transpose(0, 2, 1), basis.vectors[done])
    found.vectors[numbers, : values.shape[1]] = vectors
    found.smallest[numbers] = theta[done, 0]


class _Basis:
    """Orthonormal vectors Q of many operators A side by side, as rows, and the projections T = Q A Q'."""

    def __init__(self, count: int, n: int) -> None:
        self.numbers: NDArray[np.intp] = np.arange(count)
        self._vectors, self._projected = np.empty((count, ROOM, n)), np.zeros((count, ROOM, ROOM))
        self.size = 0

    @property
    def vectors(self) -> Array:
        """Q, shape (b, size, n)."""
        return self._vectors[:, : self.size]

    @property
    def scale(self) -> Array:
        """About the largest eigenvalue in size, shape (b,)."""
        found: Array = np.abs(np.diagonal(self._projected, axis1=1, axis2=2)).max(axis=1)
        return found

    def new_vectors(self, start: Array) -> Array:
        """Return orthonormal vectors with no part in the basis."""
        rest = self._reduced(start)[0]
        if rest.shape[1] == 1:
            return _unit(rest, np.zeros(len(rest)))[0]
        return np.asarray(np.linalg.qr(rest.transpose(0, 2, 1))[0].transpose(0, 2, 1))

    def extend(self, fresh: Array, image: Array) -> Array:
        """Take vectors in, given what the operators make of them; return what of that is new."""
        known, grown = self.size, self.size + fresh.shape[1]
        if grown > self._vectors.shape[1]:
            self._grow(max(grown, 2 * self._vectors.shape[1]))
        self._vectors[:, known:grown] = fresh
        self.size = grown
        rest, overlaps = self._reduced(image)
        self._projected[:, :grown, known:grown] = overlaps
        self._projected[:, known:grown, :grown] = overlaps.transpose(0, 2, 1)
        return rest

    def ritz(self) -> tuple[Array, Array]:
        """Return the eigenvalues of T, ascending, and its eigenvectors, shape (b, size, size)."""
        values, vectors = np.linalg.eigh(self._projected[:, : self.size, : self.size])
        return values, vectors

    def condense(self, theta: Array, weights: Array, kept: int) -> None:
        """Replace the basis by its best Ritz vectors."""
        best = weights[:, :, -kept:].transpose(0, 2, 1) @ self.vectors
        self._projected[:] = 0.0
        self._projected[:, np.arange(kept), np.arange(kept)] = theta[:, -kept:]
        self._vectors[:, :kept] = best
        self.size = kept

    def keep(self, wanted: NDArray[np.bool_]) -> None:
        """Drop the operators that are not wanted."""
        self.numbers = self.numbers[wanted]
        self._vectors, self._projected = self._vectors[wanted], self._projected[wanted]

    def _grow(self, room: int) -> None:
        count, _, n = self._vectors.shape
        vectors, projected = np.empty((count, room, n)), np.zeros((count, room, room))
        vectors[:, : self.size], projected[:, : self.size, : self.size] = (
            self.vectors,
            self._projected[:, : self.size, : self.size],
        )
        self._vectors, self._projected = vectors, projected

    def _reduced(self, image: Array) -> tuple[Array, Array]:
        """Return vectors less their projections on the basis, and their inner products with it; twice, for rounding."""
        overlaps = np.matmul(self.vectors, image.transpose(0, 2, 1))
        rest = image - np.matmul(overlaps.transpose(0, 2, 1), self.vectors)
        again = np.matmul(self.vectors, rest.transpose(0, 2, 1))
        return rest - np.matmul(again.transpose(0, 2, 1), self.vectors), overlaps + again


def _orthonormal(vectors: Array, least: Array) -> tuple[Array, Array]:
    """Return orthonormal rows U that span the vectors W longer than `least`, and U W'."""
    if vectors.shape[1] == 1:
        unit, lengths = _unit(vectors, least)
        # Where nothing is new the sequence ends in zeros; where nowhere is, at once.
        return (unit if lengths.any() else unit[:, :0]), (lengths if lengths.any() else lengths[:, :0])
    left, lengths, right = np.linalg.svd(vectors[0], full_matrices=False)
    kept = lengths > least[0]
    return right[None, kept], (lengths[kept, None] * left.T[kept])[None]


def _unit(vectors: Array, least: Array) -> tuple[Array, Array]:
    """Return single vectors, shape (b, 1, n), at unit length, and their lengths; 0 for those not longer than `least`."""
    lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
    new = lengths > least[:, None, None]
    lengths = np.where(new, lengths, 0.0)
    return vectors * np.divide(1.0, lengths, out=np.zeros_like(lengths), where=new), lengths


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Orthonormal axes (r, k) of largest variance and their eigenvalues (k,); the mean of the rows (r,), the trace of Z'HZ."""

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
    """Return the leading eigenvectors of Z'HZ, for the features Z that `rows` gives for a slice of the n rows.

    `projected` gives their products with axes, where that is cheaper. Products are those of deviations from the mean of
    the first rows, so that far-off rows keep the digits in which they differ, and the mean of all is put right afterwards:
    each feature is computed once. Cost: O(n r^2 + r^3) time, O(r^2) memory for each thread.
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
