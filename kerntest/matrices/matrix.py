"""Kernel matrices as operators, never whole: blocks of entries, products, centring; and their leading eigenpairs.

Eigenpairs are found by the Lanczos method with full reorthogonalisation, or by LAPACK.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.engines.engine import Engine, Progress, allowed_bytes, one_blas_thread
from kerntest.kernels.base import (
    ROUNDING_UNITS,
    Array,
    DensePairs,
    Kernel,
    Points,
    right_factor,
)
from kerntest.kernels.elementary import Gaussian
from kerntest.kernels.exponential import exponential

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Rows: TypeAlias = "NDArray[np.intp] | slice"
Entries: TypeAlias = "NDArray[Any]"

# Entries of one block or strip: small enough that its kernel values are in the cache when they are used.
STRIP = 2**18
FEWEST_ROWS = 16
# Squared distances from the mean, in units of 2 s^2, up to which products in single precision keep the digits of
# exp(-d^2/2s^2); and up to which double precision is sure to keep twelve digits of it.
SINGLE_RANGE, EXPANDED = 30.0, 1e4
# Beyond so much rounding in an exponent, exponents within it are those of equal rows.
BLURRED = 1e-13
# Triangles of more bytes than this are evaluated anew for every product.
KEPT_BYTES = 2**31
USUAL_PASSES = 12


class Matrix(ABC):
    """A symmetric matrix of n rows, a block of entries at a time."""

    n: int
    diagonal: Array
    # Whether single precision keeps its digits, and whether entries are made as fast as they are read.
    single = quick = False
    # Columns of the products that entries are made of.
    columns_each = 0

    @abstractmethod
    def block(self, rows: Rows, columns: Rows, dtype: type = np.float64, out: Entries | None = None) -> Entries:
        """Return the entries of some rows and columns, in `out` (of this dtype) or as a new array."""

    def rows(self, rows: NDArray[np.intp]) -> Entries:
        """Return whole rows, shape (len(rows), n)."""
        return self.block(rows, slice(None))

    def products(self, columns: NDArray[np.intp], coefficients: Array, rows: NDArray[np.intp] | None = None) -> Array:
        """Return K[rows, columns] @ coefficients, 2 MB of entries at a time, which stay in the cache of a core."""
        n = self.n if rows is None else len(rows)
        result = np.zeros(n)
        if not len(columns) or not n:
            return result
        step = min(n, max(FEWEST_ROWS, STRIP // len(columns)))
        block = np.empty((step, len(columns)))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            chosen = part if rows is None else rows[part]
            result[part] = self.block(chosen, columns, out=block[: part.stop - start]) @ coefficients
        return result

    def outputs(self, coefficients: Array, rows: NDArray[np.intp] | None = None) -> Array:
        """Return (K beta)[rows], all of them without `rows`; coefficients of 0 cost nothing."""
        chosen = np.flatnonzero(coefficients)
        if rows is not None or not self.quick:
            return self.products(chosen, coefficients[chosen], rows)
        # Of the entries of two rows with coefficients one is made.
        outputs, others, step = (
            np.zeros(self.n),
            np.ones(self.n, dtype=bool),
            STRIP // (2 * len(chosen) + 1) + FEWEST_ROWS,
        )
        others[chosen] = False
        rest = np.flatnonzero(others)
        outputs[rest] = self.products(chosen, coefficients[chosen], rest)
        for start in range(0, len(chosen), step):
            strip, below = chosen[start : start + step], chosen[start + step :]
            entries = self.block(strip, chosen[start:])
            outputs[strip] += entries @ coefficients[chosen[start:]]
            outputs[below] += coefficients[strip] @ entries[:, len(strip) :]
        return outputs

    def square(self, rows: NDArray[np.intp], dtype: type = np.float64) -> Entries:
        """Return the entries of ascending rows with one another; of two that are equal one is made."""
        n = len(rows)
        K: Entries = np.empty((n, n), dtype)
        step = STRIP // (4 * n + 1) + 4 * FEWEST_ROWS
        for start in range(0, n, step):
            end = min(start + step, n)
            columns = slice(start, None) if n == self.n else rows[start:]
            self.block(rows[start:end], columns, dtype, K[start:end, start:])
            K[end:, start:end] = K[start:end, end:].T
        return K


def _as_asked(entries: Entries, dtype: type, out: Entries | None) -> Entries:
    """Return entries in `out`, or as a new array of this dtype."""
    if out is None:
        return np.array(entries, dtype=dtype)
    out[:] = entries
    return out


class KernelMatrix(Matrix):
    """The matrix of any kernel."""

    def __init__(self, kernel: Kernel, points: Points) -> None:
        self.kernel, self.points, self.n = kernel, points, len(points)
        self.diagonal = kernel.diagonal(points).astype(np.float64)

    def block(self, rows: Rows, columns: Rows, dtype: type = np.float64, out: Entries | None = None) -> Entries:
        """Return the entries of some rows and columns."""
        pairs = DensePairs(self.points.take(rows), self.points.take(columns))
        return _as_asked(self.kernel.evaluate(pairs), dtype, out)

    def rows(self, rows: NDArray[np.intp]) -> Array:
        """Return whole rows, one at a time as slices, which share what the points have derived from all of them."""
        points = self.points
        single = [self.kernel.evaluate(DensePairs(points.take(slice(i, i + 1)), points)) for i in rows.tolist()]
        found = np.concatenate(single)
        # A row's distance to itself may be rounding, which a narrow kernel would take for a distance.
        found[np.arange(len(rows)), rows] = self.diagonal[rows]
        return found


class GaussianMatrix(Matrix):
    """The matrix of a Gaussian of numbers: a block is one matrix product and one exponential, in place.

    exp(-|x - y|^2 / 2s^2) = exp(<u(x), v(y)>) with two columns appended to the scaled rows.
    """

    quick = True

    def __init__(self, kernel: Gaussian, points: Points) -> None:
        scaled = points.numeric / (math.sqrt(2.0) * kernel.chosen_bandwidth)
        self.n, self.diagonal, self.columns_each = len(points), np.ones(len(points)), scaled.shape[1]
        # What `left_factor` is, less its sign, has the same columns.
        right = np.ascontiguousarray(right_factor(scaled))
        left = 2.0 * right
        left[:, -2], left[:, -1] = -right[:, -1], -1.0
        self._factors: dict[type, tuple[Entries, Entries]] = {np.float64: (left, right)}
        self.largest = float(right[:, -1].max(initial=0.0))
        self.single = True
        rounding = ROUNDING_UNITS * float(np.finfo(np.float64).eps) * self.largest
        self._equal = rounding if rounding > BLURRED else 0.0

    def block(self, rows: Rows, columns: Rows, dtype: type = np.float64, out: Entries | None = None) -> Entries:
        """Return the entries of some rows and columns."""
        exact = dtype == np.float64 or self.largest >= SINGLE_RANGE
        kept = np.float64 if exact else dtype
        if kept not in self._factors:
            left, right = self._factors[np.float64]
            self._factors[kept] = left.astype(kept), right.astype(kept)
        left, right = self._factors[kept]
        if kept == dtype:
            product = np.matmul(left[rows], right[columns].T, out=out)
        else:
            # Large squares cancel in double precision; of what is left, a strip at a time, single precision is enough.
            left, right = left[rows], right[columns].T
            product = np.empty((len(left), right.shape[1]), dtype) if out is None else out
            step = STRIP // (right.shape[1] + 1) + 4 * FEWEST_ROWS
            for start in range(0, len(left), step):
                np.copyto(product[start : start + step], left[start : start + step] @ right, casting="same_kind")
        if self._equal:
            # Large costs multiply what rounding makes of the zeros, which differ with the shape of the block.
            product[product > -self._equal] = 0.0
        # Rounding may leave values above 1 by its own size: clipping them would take as long as the exponential.
        return exponential(product, out=product) if dtype is np.float64 else np.asarray(np.exp(product, out=product))


class GivenMatrix(Matrix):
    """A matrix that is there: a precomputed Gram matrix."""

    def __init__(self, matrix: Array) -> None:
        self.matrix, self.n = matrix, len(matrix)
        self.diagonal = matrix.diagonal().astype(np.float64)

    def block(self, rows: Rows, columns: Rows, dtype: type = np.float64, out: Entries | None = None) -> Entries:
        """Return the entries of some rows and columns."""
        if isinstance(rows, slice) or isinstance(columns, slice):
            return _as_asked(self.matrix[rows][:, columns], dtype, out)
        # One gather of the entries: whole rows would be copied first otherwise.
        return _as_asked(self.matrix[rows[:, None], columns], dtype, out)

    def square(self, rows: NDArray[np.intp], dtype: type = np.float64) -> Entries:
        """Return the entries of ascending rows with one another: of all rows the matrix itself."""
        return self.matrix if len(rows) == self.n and self.matrix.dtype == dtype else super().square(rows, dtype)


class Repeated(Matrix):
    """A matrix whose rows stand for rows of another one: regression has two rows for each case."""

    def __init__(self, matrix: Matrix, origin: NDArray[np.intp]) -> None:
        self.matrix, self.origin, self.n = matrix, origin, len(origin)
        self.diagonal = matrix.diagonal[origin]
        self.single, self.quick, self.columns_each = matrix.single, matrix.quick, matrix.columns_each

    def block(self, rows: Rows, columns: Rows, dtype: type = np.float64, out: Entries | None = None) -> Entries:
        """Return the entries of some rows and columns."""
        return self.matrix.block(self.origin[rows], self.origin[columns], dtype, out)

    def products(self, columns: NDArray[np.intp], coefficients: Array, rows: NDArray[np.intp] | None = None) -> Array:
        """Return K[rows, columns] @ coefficients: those of one row are summed, and its products are made once."""
        there, place = np.unique(self.origin[columns], return_inverse=True)
        asked, back = np.unique(self.origin if rows is None else self.origin[rows], return_inverse=True)
        every = None if len(asked) == self.matrix.n else asked
        summed = np.asarray(np.bincount(place, coefficients, len(there)), dtype=np.float64)
        return self.matrix.products(there, summed, every)[back]


class FactorMatrix(Matrix):
    """The matrix G G'."""

    def __init__(self, columns: Array) -> None:
        self.columns, self.n = columns, len(columns)
        self.diagonal = np.einsum("ir,ir->i", columns, columns)

    def block(self, rows: Rows, columns: Rows, dtype: type = np.float64, out: Entries | None = None) -> Entries:
        """Return the entries of some rows and columns."""
        return _as_asked(self.columns[rows] @ self.columns[columns].T, dtype, out)

    def products(self, columns: NDArray[np.intp], coefficients: Array, rows: NDArray[np.intp] | None = None) -> Array:
        """Return K[rows, columns] @ coefficients, without the entries."""
        weights = coefficients @ self.columns[columns]
        return np.asarray((self.columns if rows is None else self.columns[rows]) @ weights)


def matrix_of(kernel: Kernel, points: Points) -> Matrix:
    """Return the matrix of a kernel on some rows, in the form that evaluates fastest."""
    if isinstance(kernel, Gaussian) and points.numeric.shape[1]:
        fast = GaussianMatrix(kernel, points)
        # Expanded squares are wrong by so many units in the last place of the largest: as much as the exponent is.
        if fast.largest < EXPANDED or points.expandable:
            return fast
    return KernelMatrix(kernel, points)


def is_definite(K: Array) -> bool:
    """Say whether a symmetric matrix is positive semi-definite to rounding. Cost: n^3 / 3."""
    shift = 1e-8 * max(float(np.abs(K.diagonal()).max(initial=0.0)), np.finfo(np.float64).tiny)
    try:
        np.linalg.cholesky(K + shift * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return False
    return True


def strip_edges(n: int) -> list[tuple[int, int]]:
    """Return the rows a to b of strips of a triangle, K[a:b, a:n], of about equally many entries; they depend on n alone."""
    edges, a = list[tuple[int, int]](), 0
    while a < n:
        b = min(n, a + max(FEWEST_ROWS, STRIP // (n - a)))
        edges.append((a, b))
        a = b
    return edges


class CentredMatrix:
    """HKH for a kernel matrix K of n rows, H = I - 11'/n.

    A strip holds rows a..b of the upper triangle, K[a:b, a:n]; by symmetry it serves the rows below too, so that half of
    the entries are evaluated, kept and read. H is applied to vectors, never to the matrix. Of the triangle all is kept
    or none: at most 2 GB, or what is allowed. Eigenvalues up to `rounding` may be rounding errors
    of the products.
    """

    def __init__(self, matrix: Matrix, engine: Engine, *, progress: Progress | None = None) -> None:
        # Strips are kept in this process, and what one adds is almost as large as what it is made of.
        self.n, self._matrix, self._engine = matrix.n, matrix, engine.here
        self._edges = strip_edges(self.n)
        self._kept: dict[int, Array] | None = {} if 4 * matrix.n**2 <= allowed_bytes(KEPT_BYTES) else None
        self._progress, self._passes = progress, 0
        sums = self._times(np.ones((self.n, 1)))[:, 0]
        self.row_means = sums / self.n
        self.trace = float(matrix.diagonal.sum() - self.row_means.sum())
        self.rounding = 4.0 * float(np.finfo(np.float64).eps) * float(np.abs(sums).max(initial=0.0))

    def __call__(self, vectors: Array) -> Array:
        """Return HKH times vectors, shape (n, b); n^2 / 2 kernel values as well where the triangle is not kept."""
        product = self._times(vectors - vectors.mean(axis=0))
        product -= product.mean(axis=0)
        return product

    def dense(self) -> Array:
        """Return HKH as an array of its own, shape (n, n)."""
        centred = np.empty((self.n, self.n))
        for a, b in self._edges:
            strip = self._strip(a, b)
            centred[a:b, a:] = strip
            centred[b:, a:b] = strip[:, b - a :].T
        centred -= self.row_means
        centred -= self.row_means[:, None]
        centred += self.row_means.mean()
        return centred

    def _advanced(self, done: int, strips: int) -> None:
        """Say how far the work is, as if there were a usual number of passes; nobody knows before."""
        if self._progress is not None:
            total = strips * max(USUAL_PASSES, self._passes + 1)
            self._progress((self._passes - 1) * strips + done, total)

    def _strip(self, a: int, b: int) -> Array:
        """Return K[a:b, a:n]."""
        if isinstance(self._matrix, GivenMatrix):
            return self._matrix.matrix[a:b, a:]
        if self._kept is not None and a in self._kept:
            return self._kept[a]
        strip: Array = self._matrix.block(slice(a, b), slice(a, None))
        if self._kept is not None:
            self._kept[a] = strip
        return strip

    def _times(self, vectors: Array) -> Array:
        """Return K times vectors; summed in the order of the strips, however many threads there are."""
        self._passes += 1

        def work(edge: tuple[int, int]) -> tuple[Array, Array]:
            a, b = edge
            strip = self._strip(a, b)
            return strip @ vectors[a:], strip[:, b - a :].T @ vectors[a:b]

        product = np.zeros(vectors.shape)
        for (a, b), (own, below) in zip(self._edges, self._engine.map(work, self._edges, self._advanced), strict=True):
            product[a:b] += own
            product[b:] += below
        return product


# Eigenpairs

Operator: TypeAlias = "Callable[[Array, NDArray[np.intp]], Array]"
EigenSolver: TypeAlias = Literal["auto", "lanczos", "dense"]
SOLVERS: tuple[EigenSolver, ...] = get_args(EigenSolver)
# LAPACK is as fast for matrices up to so many rows, or where so large a share of all eigenvectors is wanted.
DENSE_ROWS, DENSE_SHARE = 200, 0.15
# Smaller matrices are not worth sharing among threads, which would wait for one another.
SHARED_ROWS = 1000
# Residual |A v - theta v| at which to stop, and what is left of a vector that is rounding, relative to the largest
# eigenvalue; and eigenvalues below this share of it are numerically zero.
ACCURACY, EXHAUSTED, ZERO = 1e-12, 1e-13, 1e-12
# Vectors applied together: one pass over the matrix serves them all.
NARROWEST, WIDEST, SPARE = 4, 24, 2
# Columns of the basis, in blocks, at which it is condensed to the best ones; and steps at which to give up.
BLOCKS, STEPS = 30, 300
# Of single vectors, convergence is looked at after so many steps each: it takes an eigendecomposition of its own.
CHECKED = 4
START_STREAM = 5
# Entries of an eigenvector that differ in size by less than this share are equal: what is 1e-12 off in the matrix is
# 1e-8 off in the vectors of eigenvalues that differ by 1e-4.
EQUAL_ENTRIES = 1e-8


@dataclass(frozen=True, eq=False)
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
    with nullcontext() if dense and n > SHARED_ROWS else one_blas_thread():
        found = _dense(matrix, wanted) if dense else _block_lanczos(matrix, wanted, seed)
    kept = found.values > max(ZERO * float(found.values.max(initial=0.0)), matrix.rounding)
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
    largest = vectors[largest_entries(vectors), np.arange(vectors.shape[1])]
    return np.asarray(vectors * np.where(largest < 0, -1.0, 1.0))


def _dense(matrix: CentredMatrix, wanted: int) -> Eigenpairs:
    """Return eigenpairs by LAPACK: of all of them, for its routine for a few misses multiple eigenvalues."""
    from scipy.linalg import eigh  # noqa: PLC0415 - scipy.linalg takes 0.1 s to load

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

    def operator(vectors: Array, _: NDArray[np.intp]) -> Array:
        return matrix(vectors[0].T).T[None]

    room = max(BLOCKS * width, 3 * wanted)
    found = lanczos(operator, drawn(), wanted, rank=rank, room=room, trace=matrix.trace, drawn=drawn)
    smallest, converged = float(found.smallest[0]), bool(found.converged[0])
    return Eigenpairs(found.values[0], found.vectors[0].T, smallest, "lanczos", converged)


@dataclass(frozen=True, eq=False)
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
    found = Leading(
        np.zeros((count, wanted)), np.zeros((count, wanted, n)), np.zeros(count), np.zeros(count, dtype=bool)
    )
    # Orthonormal vectors Q of each operator A, as rows, and the projection T = Q A Q'.
    numbers, Q, T = np.arange(count), np.empty((count, 0, n)), np.empty((count, 0, 0))
    fresh = _new_vectors(Q, start)
    for step in range(1, steps + 1):
        known, Q = Q.shape[1], np.concatenate([Q, fresh], axis=1)
        rest, overlaps = _reduced(Q, operator(fresh, numbers))
        T = np.concatenate([np.concatenate([T, overlaps[:, :known]], axis=2), overlaps.transpose(0, 2, 1)], axis=1)
        fresh, coupling = _orthonormal(rest, EXHAUSTED * np.abs(np.diagonal(T, axis1=1, axis2=2)).max(axis=1))
        size = Q.shape[1]
        unknown, full = rank - size, size + fresh.shape[1] > most
        if width > 1 or step % CHECKED == 0 or step == steps or full or not unknown or not fresh.shape[1]:
            theta, weights = np.linalg.eigh(T)
            scale = np.abs(theta).max(axis=1)
            residuals = np.linalg.norm(coupling @ weights[:, -rest.shape[1] :, -wanted:], axis=1)
            converged = (residuals <= accuracy * scale[:, None]).all(axis=1) & (size >= wanted)
            if drawn is not None and not fresh.shape[1] and not converged[0]:
                left = trace - float(np.maximum(theta, 0.0).sum())
                converged |= left <= ZERO * scale[0] and theta[0, 0] >= -ZERO * scale[0]
                fresh = drawn()
            converged |= not unknown
            done = converged | (step == steps)
            # What is known of those that are done, the largest first.
            best = slice(None, -min(wanted, size) - 1, -1)
            vectors = np.matmul(weights[done][:, :, best].transpose(0, 2, 1), Q[done])
            found.vectors[numbers[done], : vectors.shape[1]] = vectors
            found.values[numbers[done], : vectors.shape[1]] = theta[done, best]
            found.smallest[numbers[done]], found.converged[numbers[done]] = theta[done, 0], converged[done]
            if done.all():
                break
            if done.any():
                numbers, Q, T, fresh, theta, weights = (one[~done] for one in (numbers, Q, T, fresh, theta, weights))
            if full:
                kept = min(size - 1, wanted + width)
                Q = weights[:, :, -kept:].transpose(0, 2, 1) @ Q
                T = np.eye(kept) * theta[:, None, -kept:]
        # What is left of images is small where they are exhausted, and by then as much in the basis as rounding is.
        fresh = _new_vectors(Q, fresh[:, :unknown])
    return found


def _reduced(Q: Array, vectors: Array) -> tuple[Array, Array]:
    """Return vectors less their projections on the rows of Q, and their inner products with these."""
    overlaps = np.matmul(Q, vectors.transpose(0, 2, 1))
    return vectors - np.matmul(overlaps.transpose(0, 2, 1), Q), overlaps


def _new_vectors(Q: Array, start: Array) -> Array:
    """Return orthonormal vectors orthogonal to the rows of Q; those of images have been reduced once before."""
    rest = _reduced(Q, start)[0]
    if rest.shape[1] == 1:
        return _unit(rest, np.zeros(len(rest)))[0]
    return np.asarray(np.linalg.qr(rest.transpose(0, 2, 1))[0].transpose(0, 2, 1))


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
