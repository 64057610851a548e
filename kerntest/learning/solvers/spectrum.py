"""Eigenvalues and eigenvectors of a centred kernel matrix, rows weighted: what every ridge regression on it follows from.

With weights w, s = sqrt(w), S = diag(s) and P = I - s s' / |s|^2 the projection that centres, the matrix is
A = P S K S P; without weights it is H K H. s itself is always in its null space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Eigenvalues below so many units in the last place of the largest are rounding.
ROUNDING = 16.0
# Eigenvalues below minus this share of the largest are none: the kernel is not positive definite.
NEGATIVE = 1e-8
# Arrays of n x n numbers that are alive at once, at most: the matrix, the vectors, and what LAPACK works with.
DENSE_ARRAYS = 6
# Numbers of the temporary arrays of a rank-two update.
STRIP = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Orthonormal eigenvectors of A that are orthogonal to s, with their eigenvalues.

    Parameters
    ----------
    roots : ndarray, shape (n,)
        s, the roots of the weights of the rows, all positive.
    values : ndarray, shape (r,)
        Eigenvalues, not negative, in ascending order.
    vectors : ndarray, shape (n, r)
    complete : bool
        Whether r = n - 1; the eigenvalues of the directions that are missing otherwise are 0.
    floor : float
        What is below is 0 to rounding, and is 0 in `values`.
    lowest : float
        The smallest eigenvalue as it was computed, which may be negative.
    """

    roots: Array
    values: Array
    vectors: Array
    complete: bool
    floor: float
    lowest: float

    @property
    def largest(self) -> float:
        """The largest eigenvalue; 0 if there is none."""
        return float(self.values[-1]) if len(self.values) else 0.0

    @property
    def n_zero(self) -> int:
        """How many of the n - 1 eigenvalues are 0 to rounding."""
        return len(self.roots) - 1 - int(np.count_nonzero(self.values))

    @property
    def definite(self) -> bool:
        """Whether A is positive semi-definite to rounding."""
        return self.lowest >= -max(NEGATIVE * self.largest, self.floor)

    @property
    def rest(self) -> Array:
        """For each row the squared length of what it has in directions that are missing, shape (n,)."""
        if self.complete:
            return np.zeros(len(self.roots))
        there = np.einsum("ij,ij->i", self.vectors, self.vectors)
        constant = np.square(self.roots) / np.sum(np.square(self.roots))
        missing: Array = np.maximum(1.0 - there - constant, 0.0)
        return missing


def dense_spectrum(K: Array, weights: Array | None = None) -> Spectrum:
    """Return the whole spectrum of a kernel matrix, which is overwritten.

    A reflection turns s into the first axis; what is left of S K S is the matrix on the n - 1 directions orthogonal to
    s. So no eigenvector is mixed with s, however many eigenvalues are 0.

    Parameters
    ----------
    K : ndarray, shape (n, n)
        Symmetric.
    weights : ndarray, shape (n,), optional
        Positive.

    Notes
    -----
    Cost: 9 n^3 operations, five arrays of n x n.
    """
    n = len(K)
    roots = np.ones(n) if weights is None else np.sqrt(weights)
    if weights is not None:
        K *= roots[:, None]
        K *= roots
    mirror = _mirror(roots)
    common = _reflect_both_sides(K, mirror)
    # Unlike SciPy's, this one lets other threads run meanwhile.
    values, inner = np.linalg.eigh(K[1:, 1:])
    del K
    vectors = np.empty((n, n - 1))
    vectors[0] = 0.0
    vectors[1:] = inner
    del inner
    _reflect(vectors, mirror)
    return _honest(roots, values, vectors, complete=True, scale=common)


def thin_spectrum(G: Array, weights: Array | None = None) -> Spectrum:
    """Return the spectrum of G G', of which there are fewer columns than rows; G is overwritten.

    Parameters
    ----------
    G : ndarray, shape (n, m)
        Features of the rows, or an incomplete Cholesky factor.
    weights : ndarray, shape (n,), optional

    Notes
    -----
    The singular values of the centred G, by way of its m x m triangle: no digits are lost by squaring.
    Cost: O(n m^2).
    """
    roots = np.ones(len(G)) if weights is None else np.sqrt(weights)
    scale = float(np.einsum("ij,ij->", G, G))
    centred = np.square(roots) @ G / np.sum(np.square(roots))
    G -= centred
    if weights is not None:
        G *= roots[:, None]
    Q, R = np.linalg.qr(G)
    left, singular, _ = np.linalg.svd(R)
    values = np.square(singular[::-1])
    vectors = Q @ left[:, ::-1]
    # Directions that the columns hardly have are arbitrary, and need not be orthogonal to s.
    kept = values > ROUNDING * np.finfo(np.float64).eps * max(float(values[-1]), 1e-3 * scale / max(len(G), 1))
    return _honest(roots, values[kept], vectors[:, kept], complete=False, scale=0.0)


def _honest(roots: Array, values: Array, vectors: Array, *, complete: bool, scale: float) -> Spectrum:
    """Return the spectrum with eigenvalues that are rounding set to 0."""
    largest = max(float(values[-1]) if len(values) else 0.0, scale)
    floor = ROUNDING * float(np.finfo(np.float64).eps) * largest
    lowest = float(values[0]) if len(values) else 0.0
    return Spectrum(roots, np.where(values > floor, values, 0.0), vectors, complete, floor, lowest)


def _mirror(roots: Array) -> Array:
    """Return the unit vector v for which I - 2 v v' takes s / |s| to the first axis, up to its sign."""
    v = roots / np.linalg.norm(roots)
    v[0] += np.copysign(1.0, v[0])
    normed: Array = v / np.linalg.norm(v)
    return normed


def _reflect_both_sides(K: Array, v: Array) -> float:
    """Replace K by (I - 2 v v') K (I - 2 v v'), and return what stands in its corner: the part along s."""
    p = K @ v
    w = 2.0 * p - 2.0 * float(v @ p) * v
    step = max(1, STRIP // len(K))
    for start in range(0, len(K), step):
        rows = slice(start, start + step)
        K[rows] -= np.outer(v[rows], w)
        K[rows] -= np.outer(w[rows], v)
    return abs(float(K[0, 0]))


def _reflect(vectors: Array, v: Array) -> None:
    """Replace V by (I - 2 v v') V."""
    along = 2.0 * (v @ vectors)
    step = max(1, STRIP // max(vectors.shape[1], 1))
    for start in range(0, len(vectors), step):
        rows: NDArray[np.intp] | slice = slice(start, start + step)
        vectors[rows] -= np.outer(v[rows], along)
