"""Kernel matrices as solvers see them: blocks of entries, in double or single precision, never all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kerntest.kernels.base import ROUNDING_UNITS, Array, DensePairs, Kernel, Points, left_factor, right_factor
from kerntest.kernels.stationary import Gaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Entries of one block of outputs.
BLOCK = 2**18
# Squared distances from the mean, in units of 2 s^2, up to which single precision keeps the digits of exp(-d^2/2s^2).
SINGLE_RANGE = 30.0
# And up to which double precision is sure to keep twelve digits of it.
EXPANDED = 1e4
# Beyond so much rounding in an exponent, exponents within it are those of equal rows.
BLURRED = 1e-13


class Matrix(Protocol):
    """A symmetric positive semi-definite matrix of n rows.

    `single` says whether single precision keeps its digits; `quick`, whether entries are made as fast as they are read.
    """

    n: int
    diagonal: Array
    single: bool
    quick: bool

    def block(
        self,
        rows: NDArray[np.intp] | slice,
        columns: NDArray[np.intp] | slice,
        dtype: type = np.float64,
        out: NDArray[np.floating] | None = None,
    ) -> NDArray[np.floating]:
        """Return the entries of some rows and columns, in `out` (of this dtype) or as a new array."""
        ...


class GaussianMatrix:
    """The matrix of a Gaussian of numbers: a block is one matrix product and one exponential, in place.

    exp(-|x - y|^2 / 2s^2) = exp(<u(x), v(y)>) with two columns appended to the scaled rows.
    """

    quick = True

    def __init__(self, kernel: Gaussian, points: Points) -> None:
        scale = 1.0 / (math.sqrt(2.0) * float(kernel.bandwidth or 1.0))
        scaled = points.numeric * scale
        self.n = len(points)
        self.diagonal = np.ones(self.n)
        self._left = np.ascontiguousarray(-left_factor(scaled))
        self._right = np.ascontiguousarray(right_factor(scaled))
        self.largest = float(self._right[:, -1].max(initial=0.0))
        self.single = self.largest < SINGLE_RANGE
        rounding = ROUNDING_UNITS * float(np.finfo(np.float64).eps) * self.largest
        self._equal = rounding if rounding > BLURRED else 0.0
        self._singles: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    def block(
        self,
        rows: NDArray[np.intp] | slice,
        columns: NDArray[np.intp] | slice,
        dtype: type = np.float64,
        out: NDArray[np.floating] | None = None,
    ) -> NDArray[np.floating]:
        """Return the entries of some rows and columns."""
        left: NDArray[np.floating] = self._left
        right: NDArray[np.floating] = self._right
        if dtype is np.float32:
            if self._singles is None:
                self._singles = (self._left.astype(np.float32), self._right.astype(np.float32))
            left, right = self._singles
        product = np.matmul(left[rows], right[columns].T, out=out)
        if self._equal:
            # Large costs multiply what rounding makes of the zeros, which differ with the shape of the block.
            product[product > -self._equal] = 0.0
        # Rounding may leave values above 1 by its own size: clipping them would take as long as the exponential.
        return np.asarray(np.exp(product, out=product))


class KernelMatrix:
    """The matrix of any kernel."""

    single = quick = False

    def __init__(self, kernel: Kernel, points: Points) -> None:
        self.kernel, self.points = kernel, points
        self.n = len(points)
        self.diagonal = kernel.diagonal(points).astype(np.float64)

    def block(
        self,
        rows: NDArray[np.intp] | slice,
        columns: NDArray[np.intp] | slice,
        dtype: type = np.float64,
        out: NDArray[np.floating] | None = None,
    ) -> NDArray[np.floating]:
        """Return the entries of some rows and columns."""
        values = self.kernel.evaluate(DensePairs(self.points.take(rows), self.points.take(columns)))
        return _written(values, dtype, out)


class GivenMatrix:
    """A matrix that is there: a precomputed Gram matrix."""

    single = quick = False

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.n = len(matrix)
        self.diagonal = matrix.diagonal().astype(np.float64)

    def block(
        self,
        rows: NDArray[np.intp] | slice,
        columns: NDArray[np.intp] | slice,
        dtype: type = np.float64,
        out: NDArray[np.floating] | None = None,
    ) -> NDArray[np.floating]:
        """Return the entries of some rows and columns."""
        if isinstance(rows, slice) or isinstance(columns, slice):
            return _written(self.matrix[rows][:, columns], dtype, out)
        # One gather of the entries: whole rows would be copied first otherwise.
        return _written(self.matrix[rows[:, None], columns], dtype, out)


class Repeated:
    """A matrix whose rows stand for rows of another one: regression has two rows for each case."""

    def __init__(self, matrix: Matrix, origin: NDArray[np.intp]) -> None:
        self.matrix, self.origin = matrix, origin
        self.n = len(origin)
        self.diagonal = matrix.diagonal[origin]
        self.single, self.quick = matrix.single, matrix.quick

    def block(
        self,
        rows: NDArray[np.intp] | slice,
        columns: NDArray[np.intp] | slice,
        dtype: type = np.float64,
        out: NDArray[np.floating] | None = None,
    ) -> NDArray[np.floating]:
        """Return the entries of some rows and columns."""
        return self.matrix.block(self.origin[rows], self.origin[columns], dtype, out)


def _written(values: Array, dtype: type, out: NDArray[np.floating] | None) -> NDArray[np.floating]:
    """Return the values in `out`, or as an array of their own."""
    if out is None:
        return np.array(values, dtype=dtype)
    out[:] = values
    return out


def matrix_of(kernel: Kernel, points: Points) -> Matrix:
    """Return the matrix of a kernel on some rows, in the form that evaluates fastest."""
    if isinstance(kernel, Gaussian) and points.numeric.shape[1]:
        fast = GaussianMatrix(kernel, points)
        # Expanded squares are wrong by so many units in the last place of the largest: as much as the exponent is.
        if fast.largest < EXPANDED or points.expandable:
            return fast
    return KernelMatrix(kernel, points)


def products(
    matrix: Matrix,
    columns: NDArray[np.intp],
    coefficients: Array,
    rows: NDArray[np.intp] | None = None,
) -> Array:
    """Return K[rows, columns] @ coefficients, a block of rows at a time.

    Notes
    -----
    Cost: O(rows x columns) kernel values, 2 MB at a time, which stay in the cache of a core.
    """
    n = matrix.n if rows is None else len(rows)
    result = np.zeros(n)
    if not len(columns) or not n:
        return result
    step = min(n, max(16, BLOCK // len(columns)))
    block = np.empty((step, len(columns)))
    for start in range(0, n, step):
        stop = min(start + step, n)
        chosen: NDArray[np.intp] | slice = slice(start, stop) if rows is None else rows[start:stop]
        result[start:stop] = matrix.block(chosen, columns, out=block[: stop - start]) @ coefficients
    return result
