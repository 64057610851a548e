"""The centred kernel matrix HKH as an operator: one triangle of K, in strips that are kept or evaluated anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.setting import allowed_bytes
from kerntest.learning.solvers.matrices import GivenMatrix

if TYPE_CHECKING:
    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.matrices import Matrix

# Entries of one strip: small enough that its kernel values are in the cache when they are used.
STRIP = 2**18
FEWEST_ROWS = 16
# Triangles of more bytes than this are evaluated anew for every product.
KEPT_BYTES = 2**31
USUAL_PASSES = 12


class CentredMatrix:
    """HKH for a kernel matrix K of n rows, H = I - 11'/n.

    A strip holds rows a..b of the upper triangle, K[a:b, a:n]; by symmetry it serves the rows below too, so that half of
    the entries are evaluated, kept and read. H is applied to vectors, never to the matrix.

    Parameters
    ----------
    matrix : Matrix
    engine : Engine
    kept_bytes : int, optional
        At most so many bytes of the triangle are kept, all of it or none; 2 GB, or what is allowed, by default.
    progress : callable, optional
        Told of the strips of each product.

    Attributes
    ----------
    n : int
    row_means : ndarray, shape (n,)
        Of K.
    trace : float
        Of HKH: sum_i K_ii - sum_ij K_ij / n.
    rounding : float
        Eigenvalues up to this may be rounding errors of the products.
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
        """Return HKH times vectors, shape (n, b).

        Notes
        -----
        Cost: n^2 b flops; n^2 / 2 kernel values as well where the triangle is not kept.
        """
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
