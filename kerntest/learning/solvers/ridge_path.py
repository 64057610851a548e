"""Kernel ridge regression for every lambda at once, from one eigendecomposition.

The fit minimises sum_i w_i (y_i - f(x_i) - b)^2 + lambda |f|^2 with b free: f = sum_i alpha_i k(x_i, .), where

    (K + lambda W^-1) alpha + b 1 = y,    1' alpha = 0.

With s = sqrt(w), z = s (y - mean of y) and A = V D V' as in `CentredSpectrum`, u = alpha / s is V (D + lambda)^-1 V' z, and all
else follows: residuals lambda u / s, leave-one-out residuals u_i / (s_i G_ii) with G = V (D + lambda)^-1 V' (Wahba 1990,
chapter 4, with the intercept taken out), those of a fold F by solving G_FF e = u_F, generalised cross-validation, the
evidence of the Gaussian process y ~ N(b, t^2 (K + lambda W^-1)) with b and t^2 estimated (Rasmussen and Williams 2006,
sections 2.7 and 5.4), and effective degrees of freedom 1 + sum_j d_j / (d_j + lambda).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Eigenvalues below so many units in the last place of the largest are rounding.
ROUNDING = 16.0
# Eigenvalues below minus this share of the largest are none: the kernel is not positive definite.
NEGATIVE = 1e-8
# Arrays of n x n numbers that are alive at once, at most: the matrix, the vectors, and what LAPACK works with.
DENSE_ARRAYS = 6
# Numbers of the temporary arrays of a rank-two update, or of squared eigenvectors, that are made at once.
STRIP = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class CentredSpectrum:
    """Orthonormal eigenvectors of A, as columns, that are orthogonal to s, with their eigenvalues in ascending order.

    With weights w, s = sqrt(w), S = diag(s) and P = I - s s' / |s|^2 the projection that centres, A = P S K S P; without
    weights it is H K H. `roots` are s; `complete` says whether all n - 1 eigenvectors are there: the eigenvalues of those
    that are missing otherwise are 0. What is below `floor` is 0 to rounding, and is 0 in `values`; `lowest` is the smallest
    eigenvalue as it was computed, which may be negative.
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


def dense_spectrum(K: Array, weights: Array | None = None) -> CentredSpectrum:
    """Return the whole spectrum of a kernel matrix, which is overwritten. Cost: 9 n^3 operations, five arrays of n x n.

    A reflection turns s into the first axis; what is left of S K S is the matrix on the n - 1 directions orthogonal to
    s. So no eigenvector is mixed with s, however many eigenvalues are 0.
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


def thin_spectrum(G: Array, weights: Array | None = None) -> CentredSpectrum:
    """Return the spectrum of G G', of which there are fewer columns than rows; G is overwritten. Cost: O(n m^2).

    The singular values of the centred G, by way of its m x m triangle: no digits are lost by squaring.
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


def _honest(roots: Array, values: Array, vectors: Array, *, complete: bool, scale: float) -> CentredSpectrum:
    """Return the spectrum with eigenvalues that are rounding set to 0."""
    largest = max(float(values[-1]) if len(values) else 0.0, scale)
    floor = ROUNDING * float(np.finfo(np.float64).eps) * largest
    lowest = float(values[0]) if len(values) else 0.0
    return CentredSpectrum(roots, np.where(values > floor, values, 0.0), vectors, complete, floor, lowest)


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


@dataclass(frozen=True, slots=True, eq=False)
class RidgePath:
    """Ridge regressions of T targets on one kernel matrix of n rows and r eigenvalues.

    `means` (T,) are the weighted means of the targets, `centred` (n, T) z = s (y - mean), `projected` (r, T) V' z, and
    `missing` (n, T) z - V V' z: what targets have in directions in which the kernel sees nothing.
    """

    spectrum: CentredSpectrum
    means: Array
    centred: Array
    projected: Array
    missing: Array

    @classmethod
    def of(cls, spectrum: CentredSpectrum, targets: Array) -> RidgePath:
        """Return the regressions of targets, shape (n, T), on the rows of a spectrum."""
        roots = spectrum.roots
        weights = np.square(roots)
        means = weights @ targets / weights.sum()
        centred = roots[:, None] * (targets - means)
        projected = spectrum.vectors.T @ centred
        missing = np.zeros_like(centred) if spectrum.complete else centred - spectrum.vectors @ projected
        return cls(spectrum, means, centred, projected, missing)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.centred)

    def shares(self, lambdas: Array) -> Array:
        """Return lambda / (d_j + lambda), between 0 and 1, shape (r, L)."""
        values: Array = lambdas / (self.spectrum.values[:, None] + lambdas)
        return values

    def degrees(self, lambdas: Array) -> Array:
        """Return the effective degrees of freedom, the trace of the hat matrix, shape (L,)."""
        values = self.spectrum.values[:, None]
        degrees: Array = 1.0 + (values / (values + lambdas)).sum(axis=0)
        return degrees

    def condition(self, lambda_: float) -> float:
        """Return the condition number of A + lambda on the directions orthogonal to s."""
        whole = self.spectrum.complete and len(self.spectrum.values) > 0
        least = float(self.spectrum.values[0]) if whole else 0.0
        return (self.spectrum.largest + lambda_) / (least + lambda_)

    def scaled_residuals(self, lambdas: Array) -> Array:
        """Return lambda u, the residuals times s, shape (n, T, L)."""
        shares = self.shares(lambdas)
        n, targets = self.centred.shape
        kept = (self.projected[:, :, None] * shares[:, None, :]).reshape(len(shares), targets * len(lambdas))
        found: Array = (self.spectrum.vectors @ kept).reshape(n, targets, len(lambdas))
        if not self.spectrum.complete:
            found += self.missing[:, :, None]
        return found

    def slack(self, lambdas: Array) -> Array:
        """Return lambda G_ii = 1 - h_ii, shape (n, L): a sum of positive numbers, so that none is lost near h_ii = 1."""
        shares = self.shares(lambdas)
        vectors = self.spectrum.vectors
        found = np.empty((self.n, len(lambdas)))
        step = max(1, STRIP // max(vectors.shape[1], 1))
        for start in range(0, self.n, step):
            rows = slice(start, start + step)
            found[rows] = np.square(vectors[rows]) @ shares
        if not self.spectrum.complete:
            found += self.spectrum.rest[:, None]
        return np.maximum(found, np.finfo(np.float64).tiny)

    def leave_one_out(self, lambdas: Array, clusters: NDArray[np.intp] | None = None) -> Array:
        """Return for each row its target less the prediction of the fit without it, or without its cluster, (n, T, L).

        Cost: O(n r (T + 1) L): all lambdas together cost less than the eigendecomposition. For clusters of m rows m times
        that.
        """
        if clusters is not None:
            return self.cross_validated(lambdas, clusters)
        found = self.scaled_residuals(lambdas) / self.slack(lambdas)[:, None, :]
        residuals: Array = found / self.spectrum.roots[:, None, None]
        return residuals

    def left_out_variances(self, lambda_: float, clusters: NDArray[np.intp] | None) -> Array:
        """Return the variance of s times each leave-one-out residual in units of t^2, the diagonal of G_FF^-1, shape (n,)."""
        found: Array = lambda_ / self.slack(np.array([lambda_]))[:, 0]
        for rows in [] if clusters is None else _members(clusters):
            if len(rows) > 1:
                (G,) = self._on_fold(rows, self.shares(np.array([lambda_])))
                found[rows] = lambda_ * np.diagonal(_solved(G, np.eye(len(rows))))
        return found

    def cross_validated(self, lambdas: Array, folds: NDArray[np.intp]) -> Array:
        """Return for each row its target less the prediction of the fit without its fold, shape (n, T, L).

        Exact, and no refit: G_FF e = u_F (An, Liu and Venkatesh 2007, with the intercept taken out). The bandwidth
        and the scales of columns stay those of all rows. Cost: O(n^2 r L / k) for k folds.
        """
        scaled = self.scaled_residuals(lambdas)
        result = self.leave_one_out(lambdas)
        shares = self.shares(lambdas)
        for rows in _members(folds):
            if len(rows) == 1:
                continue
            for place, G in enumerate(self._on_fold(rows, shares)):
                result[rows, :, place] = _solved(G, scaled[rows, :, place]) / self.spectrum.roots[rows, None]
        return result

    def _on_fold(self, rows: NDArray[np.intp], shares: Array) -> Iterator[Array]:
        """Yield lambda G_FF of the rows of a fold for each lambda."""
        vectors, roots = self.spectrum.vectors[rows], self.spectrum.roots[rows]
        rest: Array | float = 0.0
        if not self.spectrum.complete:
            total = float(np.sum(np.square(self.spectrum.roots)))
            rest = np.eye(len(rows)) - vectors @ vectors.T - np.outer(roots, roots) / total
        for place in range(shares.shape[1]):
            yield (vectors * shares[:, place]) @ vectors.T + rest

    def squared_errors(self, residuals: Array) -> Array:
        """Return the weighted mean square of residuals (n, T, L) for each target and lambda, shape (T, L)."""
        weights = np.square(self.spectrum.roots)
        found: Array = np.tensordot(weights, np.square(residuals), axes=(0, 0)) / weights.sum()
        return found

    def generalised(self, lambdas: Array) -> Array:
        """Return GCV = (mean square of the residuals) / (1 - df / n)^2 (Craven and Wahba 1979), shape (T, L)."""
        free = (self.shares(lambdas).sum(axis=0) + self._n_missing) / self.n
        # Divided first: with a tiny lambda both are tiny.
        squares = np.square(self.scaled_residuals(lambdas) / free).sum(axis=0)
        found: Array = squares / np.sum(np.square(self.spectrum.roots))
        return found

    def scales(self, lambdas: Array) -> Array:
        """Return t^2, the estimated variance of the prior for each target, shape (T, L); t^2 lambda is that of noise."""
        fitted = np.square(self.projected).T @ (1.0 / (self.spectrum.values[:, None] + lambdas))
        if not self.spectrum.complete:
            fitted += np.square(self.missing).sum(axis=0)[:, None] / lambdas
        found: Array = fitted / (self.n - 1)
        return found

    def log_evidence(self, lambdas: Array) -> Array:
        """Return log p(y) with b integrated out and t^2 at its best, shape (T, L).

            -(n-1)/2 (log(2 pi t^2) + 1) - 1/2 sum_j log(d_j + lambda) + sum_i log s_i - 1/2 log(sum_i w_i)

        The restricted likelihood of Patterson and Thompson (1971).
        """
        n = self.n
        determinant = np.log(self.spectrum.values[:, None] + lambdas).sum(axis=0) + self._n_missing * np.log(lambdas)
        scales = np.maximum(self.scales(lambdas), np.finfo(np.float64).tiny)
        roots = self.spectrum.roots
        constant = float(np.log(roots).sum()) - 0.5 * math.log(float(np.sum(np.square(roots))))
        found: Array = -0.5 * (n - 1) * (np.log(2.0 * math.pi * scales) + 1.0) - 0.5 * determinant + constant
        return found

    def coefficients(self, lambda_: float, *, whole: bool = False) -> Array:
        """Return alpha, shape (n, T).

        Directions whose eigenvalue is 0 to rounding are left out unless the `whole` is asked for. They change f at none
        of the rows, but elsewhere by up to the root of their eigenvalue over lambda; and with a tiny lambda they drown f
        in rounding.
        """
        kept = slice(None) if whole else self._kept
        inner = self.projected[kept] / (self.spectrum.values[kept, None] + lambda_)
        found: Array = self.spectrum.vectors[:, kept] @ inner
        if whole:
            found += self.missing / lambda_
        found *= self.spectrum.roots[:, None]
        return found

    def posterior(self, lambda_: float, share: float) -> Array:
        """Return B, shape (n, q): the variance of f(x) + b is t^2 (lambda / sum w + kc(x, x) - |B' kc(., x)|^2).

        kc is the kernel centred with the weights. Directions with eigenvalues below `share` lambda are left out:
        that makes the variance larger by at most t^2 share kc(x, x).
        """
        kept = self._kept & (self.spectrum.values >= share * lambda_)
        found: Array = self.spectrum.roots[:, None] * self.spectrum.vectors[:, kept]
        found /= np.sqrt(self.spectrum.values[kept] + lambda_)
        return found

    @property
    def _kept(self) -> NDArray[np.bool_]:
        return self.spectrum.values > 0

    @property
    def _n_missing(self) -> int:
        """Number of directions orthogonal to s that the spectrum does not have."""
        return self.n - 1 - len(self.spectrum.values)


def _members(folds: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of each fold."""
    order = np.argsort(folds, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(folds[order])) + 1)


def _solved(G: Array, right: Array) -> Array:
    """Return G^-1 right of a positive definite matrix; the least squares where rounding has made it singular."""
    try:
        found = cho_solve(cho_factor(G, lower=True, check_finite=False), right, check_finite=False)
    except LinAlgError:
        found = lstsq(G, right, check_finite=False)[0]
    return np.asarray(found)
