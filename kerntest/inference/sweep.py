"""One pass over a kernel matrix in tiles, each unordered pair of rows once: products with a few vectors and sums.

The matrix is never held. A piece of work is a strip: the rows [start, stop) against themselves and all rows after
them; a tile above the diagonal counts for both of its triangles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.base import enough_for
from kerntest.kernels.base import Array, DensePairs, Kernel, Points

if TYPE_CHECKING:
    from kerntest.engines.base import Engine, Progress

# A tile of 256 x 256 entries takes half a megabyte: its few arrays stay in the second-level cache of a core.
TILE = 256


@dataclass(frozen=True, slots=True)
class Centring:
    """How a kernel matrix K becomes its centring A: A_ij = K_ij - row_i - row_j + grand.

    Parameters
    ----------
    row : ndarray, shape (n,)
    grand : float
    hollow : bool
        Whether the diagonal of A is zero (U-centring).
    """

    row: Array
    grand: float
    hollow: bool


@dataclass(frozen=True, slots=True)
class Sweep:
    """Sums over a symmetric matrix M.

    Parameters
    ----------
    product : ndarray, shape (n, q)
        M V.
    total_square : float
        sum_ij M_ij^2.
    squares : ndarray, shape (n, r)
        sum_j M_ij^2 W_jk, W the `square_vectors`.
    cubes : float
        sum_ij M_ij^3; 0 unless they were asked for.
    """

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
    """Return products and sums of the kernel matrix without its diagonal, or of its centring.

    Parameters
    ----------
    kernel : Kernel
    points : Points
        n rows.
    vectors : ndarray, shape (n, q)
        V.
    engine : Engine
    centring : Centring, optional
        M is this centring of K, diagonal included; without it, M is K with a zero diagonal.
    square_vectors : ndarray, shape (n, r), optional
        W, to be multiplied by the squares of the entries.
    cubes : bool
        Whether to sum cubes too.
    progress : callable, optional

    Notes
    -----
    Cost: O(n^2 (p + q) / 2) time, O(n q) memory for each strip under way. Sums have a fixed order.
    """
    n = len(points)
    # Columns side by side in memory, as the tiles walk down them.
    points = Points(np.asfortranarray(points.numeric), np.asfortranarray(points.codes))
    engine = enough_for(engine, n**2 / 2)
    points = points.sent(engine)
    tile = TILE * points.scale
    # A strip of a small matrix is one tile high; of a large one a few, so that strips stay few.
    height = tile * max(1, n // (64 * tile))
    starts = list(range(0, n, height))
    weights = np.zeros((n, 0)) if square_vectors is None else square_vectors
    work = _Strips(kernel, points, engine.send(vectors), engine.send(weights), centring, height, tile, cubes)
    product, squares, total_square, cube_sum = np.zeros(vectors.shape), np.zeros(weights.shape), 0.0, 0.0
    for start, strip in zip(starts, engine.map(work, starts, progress), strict=True):
        product[start:] += strip.product
        squares[start:] += strip.squares
        total_square += strip.total_square
        cube_sum += strip.cubes
    return Sweep(product, total_square, squares, cube_sum)


@dataclass(frozen=True, slots=True, eq=False)
class _Strips:
    """The work on one strip; its results cover the rows from the start of the strip on."""

    kernel: Kernel
    points: Points
    vectors: Array
    weights: Array
    centring: Centring | None
    height: int
    width: int
    cubes: bool

    def tile(self, rows: slice, columns: slice) -> Array:
        """Return the entries of M for some rows and columns."""
        tile = self.kernel.evaluate(DensePairs(self.points.take(rows), self.points.take(columns)))
        centring = self.centring
        if centring is not None:
            tile -= centring.row[rows, None]
            tile -= centring.row[columns] - centring.grand
        if rows.start == columns.start and (centring is None or centring.hollow):
            np.fill_diagonal(tile, 0.0)
        return tile

    def __call__(self, start: int) -> Sweep:
        """Return the sums over the strip that begins at row `start`."""
        n = len(self.points)
        product = np.zeros((n - start, self.vectors.shape[1]))
        squares = np.zeros((n - start, self.weights.shape[1]))
        total_square = cube_sum = 0.0
        for top in range(start, min(start + self.height, n), self.width):
            rows = slice(top, min(top + self.width, n))
            here = slice(rows.start - start, rows.stop - start)
            for left in range(top, n, self.width):
                columns = slice(left, min(left + self.width, n))
                there = slice(columns.start - start, columns.stop - start)
                tile = self.tile(rows, columns)
                # A tile off the diagonal stands for its mirror image too.
                mirrored = left > top
                product[here] += tile @ self.vectors[columns]
                if mirrored:
                    product[there] += tile.T @ self.vectors[rows]
                total_square += (1 + mirrored) * float(np.vdot(tile, tile))
                if self.weights.shape[1] or self.cubes:
                    square = tile * tile
                    squares[here] += square @ self.weights[columns]
                    if mirrored:
                        squares[there] += square.T @ self.weights[rows]
                    if self.cubes:
                        cube_sum += (1 + mirrored) * float(np.vdot(square, tile))
        return Sweep(product, total_square, squares, cube_sum)
