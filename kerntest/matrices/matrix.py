"""Kernel matrices as operators: blocks of entries, products, sums and centring, never the whole matrix."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from kerntest.engines.engine import Engine, Progress, allowed_bytes, enough_for
from kerntest.kernels.base import (
    ROUNDING_UNITS,
    Array,
    Columns,
    DensePairs,
    Kernel,
    Pairs,
    Points,
    left_factor,
    right_factor,
)
from kerntest.kernels.elementary import Gaussian

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


Rows: TypeAlias = "NDArray[np.intp] | slice"
Entries: TypeAlias = "NDArray[Any]"

# Entries of one block or strip: small enough that its kernel values are in the cache when they are used.
STRIP = 2**18
FEWEST_ROWS = 16
# Squared distances from the mean, in units of 2 s^2, up to which single precision keeps the digits of exp(-d^2/2s^2).
SINGLE_RANGE = 30.0
# And up to which double precision is sure to keep twelve digits of it.
EXPANDED = 1e4
# Beyond so much rounding in an exponent, exponents within it are those of equal rows.
BLURRED = 1e-13
# Triangles of more bytes than this are evaluated anew for every product.
KEPT_BYTES = 2**31
USUAL_PASSES = 12
# A tile of 256 x 256 entries takes half a megabyte: its few arrays stay in the second-level cache of a core.
TILE = 256


class Matrix(ABC):
    """A symmetric matrix of n rows, a block of entries at a time."""

    n: int
    diagonal: Array
    # Whether single precision keeps its digits, and whether entries are made as fast as they are read.
    single = quick = False

    @abstractmethod
    def entries(self, rows: Rows, columns: Rows) -> Entries:
        """Return the entries of some rows and columns, which may be those of the matrix itself."""

    def block(self, rows: Rows, columns: Rows, dtype: type = np.float64, out: Entries | None = None) -> Entries:
        """Return the entries of some rows and columns, in `out` (of this dtype) or as a new array."""
        values = self.entries(rows, columns)
        if out is None:
            return np.array(values, dtype=dtype)
        out[:] = values
        return out

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
            stop = min(start + step, n)
            chosen: Rows = slice(start, stop) if rows is None else rows[start:stop]
            result[start:stop] = self.block(chosen, columns, out=block[: stop - start]) @ coefficients
        return result

    def outputs(self, coefficients: Array, rows: NDArray[np.intp] | None = None) -> Array:
        """Return (K beta)[rows], all of them without `rows`; coefficients of 0 cost nothing."""
        chosen = np.flatnonzero(coefficients)
        return self.products(chosen, coefficients[chosen], rows)


class KernelMatrix(Matrix):
    """The matrix of any kernel."""

    def __init__(self, kernel: Kernel, points: Points) -> None:
        self.kernel, self.points = kernel, points
        self.n = len(points)
        self.diagonal = kernel.diagonal(points).astype(np.float64)

    def entries(self, rows: Rows, columns: Rows) -> Array:
        """Return the entries of some rows and columns."""
        return self.kernel.evaluate(DensePairs(self.points.take(rows), self.points.take(columns)))

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
        scale = 1.0 / (math.sqrt(2.0) * float(kernel.bandwidth or 1.0))
        scaled = points.numeric * scale
        self.n = len(points)
        self.diagonal = np.ones(self.n)
        self._factors: dict[type, tuple[Entries, Entries]] = {
            np.float64: (np.ascontiguousarray(-left_factor(scaled)), np.ascontiguousarray(right_factor(scaled)))
        }
        self.largest = float(self._factors[np.float64][1][:, -1].max(initial=0.0))
        self.single = self.largest < SINGLE_RANGE
        rounding = ROUNDING_UNITS * float(np.finfo(np.float64).eps) * self.largest
        self._equal = rounding if rounding > BLURRED else 0.0

    def entries(self, rows: Rows, columns: Rows) -> Entries:
        """Return the entries of some rows and columns."""
        return self.block(rows, columns)

    def block(self, rows: Rows, columns: Rows, dtype: type = np.float64, out: Entries | None = None) -> Entries:
        """Return the entries of some rows and columns."""
        if dtype not in self._factors:
            left, right = self._factors[np.float64]
            self._factors[dtype] = left.astype(dtype), right.astype(dtype)
        left, right = self._factors[dtype]
        product = np.matmul(left[rows], right[columns].T, out=out)
        if self._equal:
            # Large costs multiply what rounding makes of the zeros, which differ with the shape of the block.
            product[product > -self._equal] = 0.0
        # Rounding may leave values above 1 by its own size: clipping them would take as long as the exponential.
        return np.asarray(np.exp(product, out=product))


class GivenMatrix(Matrix):
    """A matrix that is there: a precomputed Gram matrix."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.n = len(matrix)
        self.diagonal = matrix.diagonal().astype(np.float64)

    def entries(self, rows: Rows, columns: Rows) -> Array:
        """Return the entries of some rows and columns."""
        if isinstance(rows, slice) or isinstance(columns, slice):
            return self.matrix[rows][:, columns]
        # One gather of the entries: whole rows would be copied first otherwise.
        return self.matrix[rows[:, None], columns]


class Repeated(Matrix):
    """A matrix whose rows stand for rows of another one: regression has two rows for each case."""

    def __init__(self, matrix: Matrix, origin: NDArray[np.intp]) -> None:
        self.matrix, self.origin = matrix, origin
        self.n = len(origin)
        self.diagonal = matrix.diagonal[origin]
        self.single, self.quick = matrix.single, matrix.quick

    def entries(self, rows: Rows, columns: Rows) -> Entries:
        """Return the entries of some rows and columns."""
        return self.matrix.entries(self.origin[rows], self.origin[columns])

    def block(self, rows: Rows, columns: Rows, dtype: type = np.float64, out: Entries | None = None) -> Entries:
        """Return the entries of some rows and columns."""
        return self.matrix.block(self.origin[rows], self.origin[columns], dtype, out)


def matrix_of(kernel: Kernel, points: Points) -> Matrix:
    """Return the matrix of a kernel on some rows, in the form that evaluates fastest."""
    if isinstance(kernel, Gaussian) and points.numeric.shape[1]:
        fast = GaussianMatrix(kernel, points)
        # Expanded squares are wrong by so many units in the last place of the largest: as much as the exponent is.
        if fast.largest < EXPANDED or points.expandable:
            return fast
    return KernelMatrix(kernel, points)


class CentredMatrix:
    """HKH for a kernel matrix K of n rows, H = I - 11'/n.

    A strip holds rows a..b of the upper triangle, K[a:b, a:n]; by symmetry it serves the rows below too, so that half of
    the entries are evaluated, kept and read. H is applied to vectors, never to the matrix. Of the triangle all is kept
    or none: at most `kept_bytes`, 2 GB, or what is allowed, by default. Eigenvalues up to `rounding` may be rounding errors
    of the products.
    """

    def __init__(
        self, matrix: Matrix, engine: Engine, *, kept_bytes: int | None = None, progress: Progress | None = None
    ) -> None:
        kept_bytes = allowed_bytes(KEPT_BYTES) if kept_bytes is None else kept_bytes
        self.n = matrix.n
        # Strips are kept in this process, and what one adds is almost as large as what it is made of.
        self._matrix, self._engine = matrix, engine.here
        self._edges = _edges(matrix.n)
        self._kept: dict[int, Array] | None = {} if 4 * matrix.n**2 <= kept_bytes else None
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
        strip: Array = np.asarray(self._matrix.block(slice(a, b), slice(a, None)), dtype=np.float64)
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


def _edges(n: int) -> list[tuple[int, int]]:
    """Return where strips of about equally many entries begin and end; it depends on n alone."""
    edges, a = [], 0
    while a < n:
        b = min(n, a + max(FEWEST_ROWS, STRIP // (n - a)))
        edges.append((a, b))
        a = b
    return edges


@dataclass(frozen=True, slots=True)
class Centring:
    """How K becomes its centring A: A_ij = K_ij - row_i - row_j + grand, `hollow` with a zero diagonal (U-centring)."""

    row: Array
    grand: float
    hollow: bool


@dataclass(frozen=True, slots=True)
class CentredProduct(Kernel):
    """The kernel of A o L off its diagonal, A a centring of K: its rows carry their part of the centring as a column."""

    name: ClassVar[str] = "centred product"
    formula: ClassVar[str] = "(k(x,y) - r(x) - r(y) + g) l(x,y)"
    positive_definite: ClassVar[bool] = False
    characteristic: ClassVar[bool] = False
    kernel: Kernel
    columns: Columns
    row: Columns
    grand: float
    factor: tuple[Kernel, Columns] | None

    @classmethod
    def of(
        cls, kernel: Kernel, points: Points, centring: Centring, factor: tuple[Kernel, Points] | None
    ) -> tuple[Points, CentredProduct]:
        """Return rows side by side and the kernel of them; without L if there is no factor."""
        parts = [points, Points.of(centring.row), *([] if factor is None else [factor[1]])]
        places, numeric, codes = [], 0, 0
        for part in parts:
            after = numeric + part.numeric.shape[1], codes + part.codes.shape[1]
            places.append(Columns(tuple(range(numeric, after[0])), tuple(range(codes, after[1]))))
            numeric, codes = after
        joined = Points(np.hstack([part.numeric for part in parts]), np.hstack([part.codes for part in parts]))
        return joined, cls(
            kernel, places[0], places[1], centring.grand, None if factor is None else (factor[0], places[2])
        )

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the entries."""
        rows = pairs.restrict(self.row)
        values = self.kernel.evaluate(pairs.restrict(self.columns))
        values -= rows.at_x(rows.x.numeric[:, 0]) + (rows.at_y(rows.y.numeric[:, 0]) - self.grand)
        if self.factor is not None:
            kernel, columns = self.factor
            values *= kernel.evaluate(pairs.restrict(columns))
        return values

    def diagonal(self, points: Points) -> Array:
        """Return zeros: nothing is asked of the diagonal."""
        return np.zeros(len(points))


@dataclass(frozen=True, slots=True)
class Sweep:
    """Sums over a symmetric matrix M: M V, sum_ij M_ij^2, sum_j M_ij^2 W_jk, and sum_ij M_ij^3 if it was asked for."""

    product: Array
    total_square: float
    squares: Array
    cubes: float


def sweep(
    kernel: Kernel,
    points: Points,
    vectors: Array,
    engine: Engine,
    *,
    centring: Centring | None = None,
    square_vectors: Array | None = None,
    cubes: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Return products with V and sums of the kernel matrix without its diagonal, or of its centring, diagonal included.

    `square_vectors` are W. Cost: O(n^2 (p + q) / 2) time for q vectors, O(n q) memory for each strip under way.
    """
    weights = np.zeros((len(points), 0)) if square_vectors is None else square_vectors

    def sums(M: Array) -> tuple[list[Array], list[Any]]:
        if not cubes and square_vectors is None:
            return [M], [np.vdot(M, M), 0.0]
        square = M * M
        return [M, square], [np.vdot(M, M), np.vdot(square, M) if cubes else 0.0]

    engine = enough_for(engine, len(points) ** 2 / 2)
    tiles = [(kernel, points, centring)]
    (product, squares), (total_square, cube_sum) = sum_tiles(tiles, sums, [vectors, weights], engine, progress)
    return Sweep(product, float(total_square), squares, float(cube_sum))


def sum_tiles(
    matrices: Sequence[tuple[Kernel, Points, Centring | None]],
    sums: Callable[..., tuple[Sequence[Array], Sequence[Any]]],
    vectors: Sequence[Array],
    engine: Engine,
    progress: Progress | None = None,
) -> tuple[list[Array], Array]:
    """Return sums over matrices on the same n rows, one strip of tiles after another, each unordered pair of rows once.

    Of the tiles of all matrices `sums` makes symmetric ones, which are multiplied with the vectors, and numbers to add up.
    A strip is the rows [start, stop) against themselves and all rows after them. Sums have a fixed order.
    """
    n = len(vectors[0])
    # Columns side by side in memory, as the tiles walk down them.
    placed = [
        (kernel, Points(np.asfortranarray(points.numeric), np.asfortranarray(points.codes)).sent(engine), centring)
        for kernel, points, centring in matrices
    ]
    tile = TILE * placed[0][1].scale
    # A strip of a small matrix is one tile high; of a large one a few, so that strips stay few.
    height = tile * max(1, n // (64 * tile))
    multiplied = [engine.send(some) for some in vectors]

    def strip(start: int) -> tuple[list[Array], Array]:
        products, totals = [np.zeros((n - start, some.shape[1])) for some in vectors], np.zeros(1)
        for top in range(start, min(start + height, n), tile):
            rows = slice(top, min(top + tile, n))
            for left in range(top, n, tile):
                columns = slice(left, min(left + tile, n))
                made, numbers = sums(*(_tile(*matrix, rows, columns) for matrix in placed))
                # A tile off the diagonal stands for its mirror image too.
                mirrored = left > top
                for product, M, V in zip(products, made, multiplied, strict=False):
                    product[rows.start - start : rows.stop - start] += M @ V[columns]
                    if mirrored:
                        product[columns.start - start : columns.stop - start] += M.T @ V[rows]
                totals = totals + (1 + mirrored) * np.array([float(one) for one in numbers])
        return products, totals

    starts = list(range(0, n, height))
    products, totals = [np.zeros(some.shape) for some in vectors], np.zeros(1)
    for start, (parts, numbers) in zip(starts, engine.map(strip, starts, progress), strict=True):
        for product, part in zip(products, parts, strict=True):
            product[start:] += part
        totals = totals + numbers
    return products, totals


def _tile(kernel: Kernel, points: Points, centring: Centring | None, rows: slice, columns: slice) -> Array:
    """Return the entries of a kernel matrix, or of its centring, for some rows and columns."""
    tile = kernel.evaluate(DensePairs(points.take(rows), points.take(columns)))
    if centring is not None:
        tile -= centring.row[rows, None]
        tile -= centring.row[columns] - centring.grand
    if rows.start == columns.start and (centring is None or centring.hollow):
        np.fill_diagonal(tile, 0.0)
    return tile
