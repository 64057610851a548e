"""Kernel ridge regression for every lambda at once, from one eigendecomposition.

The fit minimises sum_i w_i (y_i - f(x_i) - b)^2 + lambda |f|^2 with b free: f = sum_i alpha_i k(x_i, .), where

    (K + lambda W^-1) alpha + b 1 = y,    1' alpha = 0.

With s = sqrt(w), z = s (y - mean of y) and A = V D V' as in `CentredSpectrum`, u = alpha / s is V (D + lambda)^-1 V' z, and all
else follows: residuals lambda u / s, leave-one-out residuals u_i / (s_i G_ii) with G = V (D + lambda)^-1 V' (Wahba 1990,
chapter 4, with the intercept taken out), those of a fold F by solving G_FF e = u_F, generalised cross-validation, the
evidence of the Gaussian process y ~ N(b, t^2 (K + lambda W^-1)) with b and t^2 estimated (Rasmussen and Williams 2006,
sections 2.7 and 5.4), and effective degrees of freedom 1 + sum_j d_j / (d_j + lambda).

For very many rows, `CentreRidge` regresses in the span of a few centres by preconditioned conjugate gradients. With features
z(x) = P' k(C, x), P P' = K(C, C)^-1, the coefficients g minimise sum_i w_i (y_i - <g, z_i> - b)^2 + lambda |g|^2, that is
(Zc' W Zc + lambda) g = Zc' W y with Zc the centred features. The kernel values of all rows and centres are computed anew,
block by block, in every step, and never held. The preconditioner is the inverse of the same matrix for a random part of the
rows, times (all rows / part) (Rudi, Carratino and Rosasco 2017, "FALKON: An optimal large scale kernel method", take the
centres themselves as that part; a few times as many rows save most of the steps).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

from kerntest.dataclass import dataclass
from kerntest.engines.engine import Engine, enough_for
from kerntest.errors import UndecidedError
from kerntest.kernels.base import DensePairs, Points
from kerntest.matrices.expansion import Expansion, GivenExpansion, expanded
from kerntest.matrices.factor import as_points, kernel_factor, make_features
from kerntest.matrices.matrix import matrix_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.matrices.factor import FeatureMap

    Groups = NDArray[np.intp] | None
    Map = Callable[[Array], Array]
    Advanced = Callable[[float], None]

EPSILON, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
# Eigenvalues below so many units in the last place of the largest are rounding.
ROUNDING = 16.0
# Eigenvalues below minus this share of the largest are none: the kernel is not positive definite.
NEGATIVE = 1e-8
# Arrays of n x n numbers that are alive at once, at most: the matrix, the vectors, and what LAPACK works with.
DENSE_ARRAYS = 6
# Numbers of the temporary arrays of a rank-one update, or of squared eigenvectors, that are made at once.
STRIP = 2**20
# Values of a kernel whose sums are still numbers.
LARGEST_VALUE = 1e300
# From so many rows on, a factor of low rank is looked for; so many of them decide whether there may be one. It leaves
# this share of the trace: what rounding leaves of it anyway.
LEAST_ROWS, PROBED, FACTOR_TOLERANCE = 1000, 600, 1e-15
# Its columns, as shares of the rows and of the rows that decide.
MOST_COLUMNS, MOST_PROBED = 1 / 3, 0.75
# Steps of iterative refinement. What they add is rounding where it is below this share of what it is summed from, at so
# many rows of columns from different rows, whose numbers are so far from the middle, as multiples.
REFINEMENTS, NEGLIGIBLE = 2, 64 * EPSILON
PROBED_ROWS, REACHES = 50, (0.7, 1.5, 3.0)
# Kernel values of one block.
BLOCK = 2**19
# Steps at most, and the relative residual to stop at.
STEPS, TOLERANCE = 300, 1e-7
# The preconditioner sees so many rows for each centre, if there are so many: all, whose products of features take less than the
# steps that fewer rows would leave, but where these are made elsewhere.
ROWS_PER_CENTRE, ELSEWHERE = math.inf, 10
# Which share of the way that takes.
BEFORE_STEPS = 0.7
# Random signs that the trace of the hat matrix is estimated with.
PROBES = 16
STREAM = 5


@dataclass(frozen=True, eq=False)
class CentredSpectrum:
    """Orthonormal eigenvectors of A, as columns, that are orthogonal to s, with their eigenvalues in ascending order.

    With weights w, s = sqrt(w), S = diag(s) and P = I - s s' / |s|^2 the projection that centres, A = P S K S P; without
    weights it is H K H. `roots` are s. Eigenvalues below `floor` are 0 to rounding, and are 0 in `values`. `complete`
    says whether all n - 1 eigenvectors are there: the eigenvalues of those that are missing otherwise are 0.
    """

    roots: Array
    values: Array
    vectors: Array
    floor: float
    complete: bool

    @property
    def n_zero(self) -> int:
        """How many of the n - 1 eigenvalues are 0 to rounding."""
        return len(self.roots) - 1 - int(np.count_nonzero(self.values))


def dense_spectrum(K: Array, weights: Array) -> CentredSpectrum:
    """Return the whole spectrum of a kernel matrix, which is overwritten. Cost: 9 n^3 operations, five arrays of n x n.

    A reflection I - 2 v v' turns s into the first axis; what is left of S K S is the matrix on the n - 1 directions
    orthogonal to s. So no eigenvector is mixed with s, however many eigenvalues are 0.
    """
    roots = np.sqrt(weights)
    K *= roots[:, None]
    K *= roots
    v = roots / np.linalg.norm(roots)
    v[0] += 1.0
    v /= np.linalg.norm(v)
    along = K @ v
    both = 2.0 * along - 2.0 * (v @ along) * v
    _subtract(K, v, both)
    _subtract(K, both, v)
    # Unlike SciPy's, this one lets other threads run meanwhile.
    values, inner = np.linalg.eigh(K[1:, 1:])
    vectors = np.vstack([np.zeros(len(inner)), inner])
    del inner
    _subtract(vectors, v, 2.0 * (v @ vectors))
    largest = float(values.max(initial=0.0))
    floor = ROUNDING * EPSILON * max(largest, abs(float(K[0, 0])))
    if values.min(initial=0.0) < -max(NEGATIVE * largest, floor):
        what = "the kernel is not positive definite on these rows: the problem has no single solution"
        hint = "use a positive definite kernel, such as gaussian or laplacian"
        raise UndecidedError(what, hint=hint, code="undecided.not_positive_definite")
    return CentredSpectrum(roots, np.where(values > floor, values, 0.0), vectors, floor, complete=True)


def _subtract(A: Array, u: Array, w: Array) -> None:
    """Replace A by A - u w', some rows at a time."""
    step = max(1, STRIP // max(A.shape[1], 1))
    for start in range(0, len(A), step):
        A[start : start + step] -= np.outer(u[start : start + step], w)


def thin_spectrum(G: Array, weights: Array) -> CentredSpectrum:
    """Return the spectrum of G G', of which there are fewer columns than rows; G is overwritten. Cost: O(n m^2).

    The singular values of the centred G, by way of its m x m triangle: no digits are lost by squaring.
    """
    roots, scale = np.sqrt(weights), float(np.einsum("ij,ij->", G, G))
    G -= weights @ G / weights.sum()
    G *= roots[:, None]
    Q, R = np.linalg.qr(G)
    left, singular, _ = np.linalg.svd(R)
    values, vectors = np.square(singular[::-1]), Q @ left[:, ::-1]
    floor = ROUNDING * EPSILON * float(values[-1])
    # Directions that the columns hardly have are arbitrary, and need not be orthogonal to s.
    kept = values > max(floor, ROUNDING * EPSILON * 1e-3 * scale / max(len(G), 1))
    return CentredSpectrum(roots, values[kept], vectors[:, kept], floor, complete=False)


class RidgePath:
    """Ridge regressions of T targets on the n rows of a spectrum of r eigenvalues.

    `means` (T,) are the weighted means of the targets, `projected` (r, T) V' z with z = s (y - mean), and `missing` (n, T)
    z - V V' z: what targets have in directions in which the kernel sees nothing.
    """

    def __init__(self, spectrum: CentredSpectrum, targets: Array) -> None:
        self.spectrum, self.weights = spectrum, np.square(spectrum.roots)
        self.roots, self.values, self.vectors = spectrum.roots, spectrum.values, spectrum.vectors
        self.means: Array = self.weights @ targets / self.weights.sum()
        centred = self.roots[:, None] * (targets - self.means)
        self.projected: Array = self.vectors.T @ centred
        self.missing = np.zeros_like(centred) if spectrum.complete else centred - self.vectors @ self.projected
        # How many directions orthogonal to s the spectrum does not have.
        self.n_missing = len(self.roots) - 1 - len(self.values)

    def shares(self, lambdas: Array) -> Array:
        """Return lambda / (d_j + lambda), between 0 and 1, shape (r, L)."""
        return np.asarray(lambdas / (self.values[:, None] + lambdas))

    def free(self, lambdas: Array) -> Array:
        """Return n less the degrees of freedom: a sum of positive numbers, so that none is lost near 0, shape (L,)."""
        return np.asarray(self.shares(lambdas).sum(axis=0) + self.n_missing)

    def degrees(self, lambdas: Array) -> Array:
        """Return the effective degrees of freedom, the trace of the hat matrix, shape (L,)."""
        return len(self.roots) - self.free(lambdas)

    def condition(self, lambda_: float) -> float:
        """Return the condition number of A + lambda on the directions orthogonal to s."""
        least = float(self.values[0]) if self.spectrum.complete and len(self.values) else 0.0
        return (float(self.values.max(initial=0.0)) + lambda_) / (least + lambda_)

    def scaled_residuals(self, lambdas: Array) -> Array:
        """Return lambda u, the residuals times s, shape (n, T, L)."""
        kept = self.projected[:, :, None] * self.shares(lambdas)[:, None, :]
        return np.asarray(np.tensordot(self.vectors, kept, axes=1) + self.missing[:, :, None])

    def slack(self, lambdas: Array) -> Array:
        """Return lambda G_ii = 1 - h_ii, shape (n, L): a sum of positive numbers, so that none is lost near h_ii = 1."""
        shares, found = self.shares(lambdas), np.empty((len(self.roots), len(lambdas)))
        step = max(1, STRIP // max(len(shares), 1))
        for start in range(0, len(found), step):
            found[start : start + step] = np.square(self.vectors[start : start + step]) @ shares
        if not self.spectrum.complete:
            there = np.einsum("ij,ij->i", self.vectors, self.vectors) + self.weights / self.weights.sum()
            found += np.maximum(1.0 - there, 0.0)[:, None]
        return np.maximum(found, TINY)

    def left_out(self, lambdas: Array, groups: Groups = None) -> Array:
        """Return for each row its target less the prediction of the fit without it, or without its group, (n, T, L).

        Exact, and no refit: G_FF e = u_F (An, Liu and Venkatesh 2007, with the intercept taken out). The bandwidth and the
        scales of columns stay those of all rows. Cost: O(n r (T + 1) L), less than the eigendecomposition; for groups of m
        rows m times that.
        """
        scaled = self.scaled_residuals(lambdas)
        found = scaled / self.slack(lambdas)[:, None, :]
        for rows, place, G in self._on_groups(groups, lambdas):
            found[rows, :, place] = _solved(G, scaled[rows, :, place])
        return np.asarray(found / self.roots[:, None, None])

    def left_out_variances(self, lambda_: float, groups: Groups) -> Array:
        """Return the variance of s times each left-out residual in units of t^2, the diagonal of G_FF^-1, shape (n,)."""
        lambdas = np.array([lambda_])
        found: Array = lambda_ / self.slack(lambdas)[:, 0]
        for rows, _, G in self._on_groups(groups, lambdas):
            found[rows] = lambda_ * np.diagonal(_solved(G, np.eye(len(rows))))
        return found

    def _on_groups(self, groups: Groups, lambdas: Array) -> Iterator[tuple[NDArray[np.intp], int, Array]]:
        """Yield the rows of each group of several, the place of each lambda, and lambda G_FF of these rows."""
        shares, rest, of_rows = self.shares(lambdas), 0.0, np.empty(0) if groups is None else groups
        order = np.argsort(of_rows, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(of_rows[order])) + 1)
        for rows in (part for part in parts if len(part) > 1):
            vectors, roots = self.vectors[rows], self.roots[rows]
            if not self.spectrum.complete:
                rest = np.eye(len(rows)) - vectors @ vectors.T - np.outer(roots, roots) / self.weights.sum()
            for place, root in enumerate(np.sqrt(shares.T)):
                half = vectors * root
                # Of one array: half as many steps.
                yield rows, place, half @ half.T + rest

    def squared_errors(self, residuals: Array) -> Array:
        """Return the weighted mean square of residuals (n, T, L) for each target and lambda, shape (T, L)."""
        return np.asarray(np.tensordot(self.weights, np.square(residuals), axes=1) / self.weights.sum())

    def generalised(self, lambdas: Array) -> Array:
        """Return GCV = (mean square of the residuals) / (1 - df / n)^2 (Craven and Wahba 1979), shape (T, L)."""
        # Divided first: with a tiny lambda both are tiny.
        scaled = self.scaled_residuals(lambdas) / (self.free(lambdas) / len(self.roots))
        return np.asarray(np.square(scaled).sum(axis=0) / self.weights.sum())

    def scales(self, lambdas: Array) -> Array:
        """Return t^2, the estimated variance of the prior for each target, shape (T, L); t^2 lambda is that of noise."""
        fitted = np.square(self.projected).T @ (1.0 / (self.values[:, None] + lambdas))
        fitted += np.square(self.missing).sum(axis=0)[:, None] / lambdas
        return np.asarray(fitted / (len(self.roots) - 1))

    def log_evidence(self, lambdas: Array) -> Array:
        """Return log p(y) with b integrated out and t^2 at its best, shape (T, L).

            -(n-1)/2 (log(2 pi t^2) + 1) - 1/2 sum_j log(d_j + lambda) + sum_i log s_i - 1/2 log(sum_i w_i)

        The restricted likelihood of Patterson and Thompson (1971).
        """
        determinant = np.log(self.values[:, None] + lambdas).sum(axis=0) + self.n_missing * np.log(lambdas)
        densities = np.log(2.0 * math.pi * np.maximum(self.scales(lambdas), TINY)) + 1.0
        constant = np.log(self.roots).sum() - 0.5 * np.log(self.weights.sum())
        return np.asarray(constant - 0.5 * ((len(self.roots) - 1) * densities + determinant))

    def coefficients(self, lambda_: float, *, whole: bool = False) -> Array:
        """Return alpha, shape (n, T).

        Directions whose eigenvalue is 0 to rounding are left out unless the `whole` is asked for. They change f at none
        of the rows, but elsewhere by up to the root of their eigenvalue over lambda; and with a tiny lambda they drown f
        in rounding.
        """
        inner = self.projected / (self.values[:, None] + lambda_)
        found = self.vectors @ (inner if whole else np.where(self.values[:, None] > 0, inner, 0.0))
        return np.asarray((found + self.missing / lambda_ if whole else found) * self.roots[:, None])

    def posterior(self, lambda_: float, share: float) -> Array:
        """Return B, shape (n, q): the variance of f(x) + b is t^2 (lambda / sum w + kc(x, x) - |B' kc(., x)|^2).

        kc is the kernel centred with the weights. Directions with eigenvalues below `share` lambda are left out:
        that makes the variance larger by at most t^2 share kc(x, x).
        """
        kept = (self.values > 0) & (self.values >= share * lambda_)
        return np.asarray(self.roots[:, None] * self.vectors[:, kept] / np.sqrt(self.values[kept] + lambda_))


def _solved(G: Array, right: Array) -> Array:
    """Return G^-1 right of a positive definite matrix; the least squares where rounding has made it singular."""
    try:
        return np.asarray(cho_solve(cho_factor(G, lower=True, check_finite=False), right, check_finite=False))
    except LinAlgError:
        return np.asarray(lstsq(G, right, check_finite=False)[0])


@dataclass(frozen=True, eq=False)
class Regressions:
    """All ridge regressions of some rows with one kernel, or with features, of which `values` has those of the rows.

    `means` is the weighted mean over the rows i of k(x_i, .) at each row; with features their weighted mean.
    """

    rows: TrainingRows
    kernel: Kernel | None
    path: RidgePath
    means: Array
    features: FeatureMap | None = None
    values: Array | None = None

    def combined(self, alpha: Array) -> Array:
        """Return the coefficients of sum_i alpha_i k(x_i, .) over the rows, or over the features."""
        return alpha if self.values is None else np.asarray(self.values.T @ alpha)

    def function(self, alpha: Array, means: Array) -> Expansion | GivenExpansion:
        """Return f + b, where b is what takes its weighted mean to `means`."""
        coefficients, points = self.combined(alpha), self.rows.points
        intercepts = means - self.means @ coefficients
        if self.values is None and self.kernel is not None and isinstance(points, Points):
            return Expansion(self.kernel, points, coefficients, intercepts)
        return GivenExpansion(np.arange(len(coefficients)), coefficients, intercepts)

    def coefficients(self, lambda_: float) -> Array:
        """Return alpha as right as by solving the system itself, shape (n, T), for two products with the kernel matrix.

        The eigenvectors solve it without the directions whose eigenvalue is 0 to rounding, and then what is left of it,
        which the kernel itself tells, with them: iterative refinement. Where those directions are nothing but rounding, as
        with rows that are repeated or a linear kernel, they stay out.
        """
        path, rows = self.path, self.rows
        alpha = path.coefficients(lambda_)
        for _ in range(REFINEMENTS if lambda_ > path.spectrum.floor else 0):
            fitted = expanded(self.function(alpha, path.means), self.features, rows.points, Engine(1))
            rest = RidgePath(path.spectrum, rows.targets - fitted - lambda_ * alpha / path.weights[:, None])
            step = rest.coefficients(lambda_, whole=True)
            alpha += rest.coefficients(lambda_) if self._is_rounding(step) else step
        return alpha

    def _is_rounding(self, step: Array) -> bool:
        """Whether sum_i step_i k(x_i, .) is 0 to rounding, as far as rows tell that are none of those learnt from."""
        rows, prior = self.rows.points, self.features or self.kernel
        if not isinstance(rows, Points) or prior is None:
            return False
        points = rows.take(np.unique(np.linspace(0, len(rows) - 1, PROBED_ROWS).astype(np.intp)))
        numeric, codes = (values[_from_different_rows(values.shape)] for values in (points.numeric, points.codes))
        middle = numeric.mean(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            farther = np.concatenate([middle + reach * (numeric - middle) for reach in REACHES])
            probes = Points(farther, np.tile(codes, (len(REACHES), 1)))
            function = self.function(step, np.zeros(step.shape[1]))
            found = expanded(function, self.features, probes, Engine(1))
            lengths = np.sqrt(np.abs(prior.diagonal(rows))) @ np.abs(step)
            most = np.sqrt(np.abs(prior.diagonal(probes)))[:, None] * lengths
        return not np.any(np.abs(found) > NEGLIGIBLE * most)


def _from_different_rows(shape: tuple[int, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of a table whose columns come from different rows."""
    row, column = np.ogrid[: shape[0], : shape[1]]
    return (row + column) % shape[0], column


def weights_of(rows: TrainingRows) -> Array:
    """Return the weights of rows, 1 where there are none."""
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def solve(
    rows: TrainingRows, kernel: Kernel | None, features: str | None, seed: int, pairs: DensePairs | None
) -> Regressions:
    """Return all ridge regressions with a kernel, or without one of a matrix of its values.

    `pairs` are all pairs of the rows: several kernels share what is known of them.
    """
    points, made, values, thin, weights = rows.points, None, None, None, weights_of(rows)
    shares = weights / weights.sum()
    if kernel is None or not isinstance(points, Points):
        K = np.array(points)
    elif features is not None:
        made = make_features(features, kernel, points, seed)
        values = made(points, Engine(1))
        thin = values.copy()
    elif (thin := thin_factor(kernel, points)) is None:
        K = kernel.evaluate(pairs or DensePairs(points, points))
    if thin is not None:
        mean = shares @ thin
        means = mean if made is not None else thin @ mean
        return Regressions(rows, kernel, RidgePath(thin_spectrum(thin, weights), rows.targets), means, made, values)
    if not (np.abs(K).max() <= LARGEST_VALUE):
        named = "the precomputed matrix" if kernel is None else f"the kernel '{kernel}'"
        hint = "standardise the columns, or use a kernel that is bounded, such as gaussian"
        raise UndecidedError(f"{named} is too large for these rows", hint=hint, code="undecided.overflow")
    means = K @ shares
    return Regressions(rows, kernel, RidgePath(dense_spectrum(K, weights), rows.targets), means)


def thin_factor(kernel: Kernel, points: Points) -> Array | None:
    """Return G with K = G G' to rounding, shape (n, r), where r is at most a third of n; None where it is not.

    Few columns and wide kernels have such factors, whose spectrum takes n r^2 operations instead of n^3. Whether to look
    for one is decided on 600 rows.
    """
    n = len(points)
    if n < LEAST_ROWS or not kernel.positive_definite:
        return None
    some = points.take(np.linspace(0, n - 1, PROBED).astype(np.intp))
    for looked_at, most in ((some, int(MOST_PROBED * PROBED)), (points, int(MOST_COLUMNS * n))):
        factor = kernel_factor(kernel, looked_at, tolerance=FACTOR_TOLERANCE, most=min(most, int(MOST_COLUMNS * n)))
        if not factor.complete:
            return None
    return factor.columns


class CentreRidge:
    """A ridge regression on features of centres: weights g (r, T), the weighted mean of the features, residuals (n, T).

    By the rows of the preconditioner, `posterior` B has B B' near I - lambda (Zc' W Zc + lambda)^-1. `degrees` is the
    estimated trace of the hat matrix. Cost: n M kernel values a step, O(M^3) once; memory: a block for each thread, four
    arrays of M x M. Steps grow with the logarithm of the accuracy where the rows of the preconditioner are many times the
    effective degrees of freedom. `advanced` is told after each step which share of the way is done.
    """

    def __init__(
        self, features: FeatureMap, rows: TrainingRows, lambda_: float, engine: Engine, *, seed: int, advanced: Advanced
    ) -> None:
        points, landmarks, projection = as_points(rows.points), features.landmarks, features.projection
        numeric = np.concatenate([points.numeric, landmarks.numeric])
        matrix = matrix_of(features.kernel, Points(numeric, np.concatenate([points.codes, landmarks.codes])))
        targets, weights, n, centres = rows.targets, weights_of(rows), len(rows), len(landmarks)
        total, engine, step = float(weights.sum()), enough_for(engine, n * centres), max(16, BLOCK // centres)
        every = [slice(start, min(start + step, n)) for start in range(0, n, step)]

        def block(part: slice | NDArray[np.intp]) -> Array:
            return np.asarray(matrix.block(part, slice(n, n + centres)))

        means = weights @ targets / total
        right = np.column_stack([weights[:, None] * (targets - means), weights / total])
        first = projection.T @ np.asarray(sum(engine.map(lambda rows: block(rows).T @ right[rows], every)))
        mean = first[:, -1]

        def apply(g: Array) -> Array:
            coefficients = projection @ g

            def work(rows: slice) -> Array:
                K = block(rows)
                return np.asarray(K.T @ (weights[rows, None] * (K @ coefficients)))

            inner = np.asarray(sum(engine.map(work, every)))
            return np.asarray(projection.T @ inner - total * np.outer(mean, mean @ g) + lambda_ * g)

        rng = np.random.default_rng((seed, STREAM))
        count = min(n, (ROWS_PER_CENTRE if engine.name == "local" else ELSEWHERE) * centres)
        some = np.sort(rng.choice(n, int(count), replace=False))
        roots = np.sqrt(weights / weights[some].sum())

        def squares(rows: NDArray[np.intp]) -> Array:
            Z = np.column_stack([block(rows) @ projection, np.ones(len(rows))])
            Z *= roots[rows, None]
            return np.asarray(Z.T @ Z)

        # Not sent anywhere: the products may be larger than what they are made of.
        parts = np.split(some, range(step, len(some), step))

        def told(found: Iterable[Array]) -> Iterator[Array]:
            for done, one in enumerate(found, 1):
                advanced(BEFORE_STEPS * done / len(parts))
                yield one

        moments = np.asarray(sum(told(engine.here.map(squares, parts))))
        values, vectors = np.linalg.eigh(total * (moments[:-1, :-1] - np.outer(moments[-1, :-1], moments[-1, :-1])))
        values = np.maximum(values, 0.0)

        def precondition(residual: Array) -> Array:
            return np.asarray(vectors @ ((vectors.T @ residual) / (values[:, None] + lambda_)))

        probes = rng.choice([-1.0, 1.0], size=(len(mean), PROBES))
        right = np.column_stack([first[:, :-1], probes])
        solved, self.steps, self.converged = conjugate_gradients(
            apply, precondition, right, lambda share: advanced(BEFORE_STEPS + (1.0 - BEFORE_STEPS) * share)
        )
        self.weights = solved[:, : targets.shape[1]]
        coefficients = projection @ self.weights
        fitted = np.concatenate(list(engine.map(lambda rows: block(rows) @ coefficients, every)))
        self.mean, self.means = mean, means
        self.residuals = targets - means - (fitted - mean @ self.weights)
        left = float(np.vdot(probes, solved[:, targets.shape[1] :])) / PROBES
        self.degrees = 1.0 + len(mean) - lambda_ * left
        self.posterior = vectors * np.sqrt(values / (values + lambda_))
        self.condition = (float(values[-1]) + lambda_) / (float(values[0]) + lambda_)


def conjugate_gradients(
    apply: Map, precondition: Map, right: Array, advanced: Advanced = lambda _: None
) -> tuple[Array, int, bool]:
    """Return the solutions of a positive definite system for several right-hand sides, the steps, and whether all ended.

    Each has its own step length; all share the products. A side whose residual, in the norm of the preconditioner, has
    fallen to 1e-7 of what it was rests.
    """
    solution, residual = np.zeros_like(right), right.copy()
    direction = precondition(residual)
    energy = np.einsum("ij,ij->j", residual, direction)
    first = energy.copy()
    active = energy > 0.0
    steps, reached = 0, 0.0
    while active.any() and steps < STEPS:
        product = apply(direction[:, active])
        length = energy[active] / np.einsum("ij,ij->j", direction[:, active], product)
        solution[:, active] += length * direction[:, active]
        residual[:, active] -= length * product
        better = precondition(residual[:, active])
        after = np.einsum("ij,ij->j", residual[:, active], better)
        direction[:, active] = better + after / energy[active] * direction[:, active]
        energy[active] = after
        active &= energy > TOLERANCE**2 * first
        steps += 1
        if active.any():
            # Logarithms of residuals fall about as the steps go.
            way = np.log(energy[active] / first[active]) / (2.0 * math.log(TOLERANCE))
            reached = max(reached, min(float(way.min()), 1.0))
            advanced(reached)
    return solution, steps, not active.any()
