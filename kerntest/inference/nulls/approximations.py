"""p-values without resampling: a curve for the null distribution of <A, B>, whatever the two matrices are.

A two-sample test (kernel matrix and label) and an independence test (two kernel matrices) hand over a `MatrixPair`;
each curve makes a p-value of it. A new one is a function and a line in `CURVES`.
"""

from __future__ import annotations

import cmath
import math
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from kerntest.errors import UndecidedError, option
from kerntest.inference.nulls.moments import NEGLIGIBLE, Invariants, Moments, Spectrum, permutation_moments
from kerntest.report.results import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from kerntest.kernels.base import Array

# The kurtosis of the Pearson null comes from at least so many relabellings.
KURTOSIS_RELABELLINGS = 5000
# The variance of Gretton's Gamma is positive from so many rows on.
GAMMA_ROWS = 6
# Below this skewness the distribution is a Gaussian to more digits than a tail needs.
NEARLY_GAUSSIAN = 1e-4
# And beyond this it is of few outcomes.
MOST_SKEWED = 5.0
# A Gamma with so many times too small a deviation is none of what the relabellings give.
TOO_NARROW = 2.0
# The smallest p-value that is told: none is 0.
SMALLEST = sys.float_info.min
# Stands for the distance of two roots that are equal, times c2.
TINY_ROOT = 1e-9
# Nodes of the double-exponential quadrature: more change no digit shown.
NODES = 801
REACH = 4.0


class MatrixUnderNull(Protocol):
    """One of the two centred matrices of a test."""

    def invariants(self) -> tuple[Invariants, bool]:
        """Return the invariants, and whether the cubic trace is exact."""

    def first_invariants(self) -> Invariants:
        """Return the invariants up to second order; those of third order may be 0."""

    def spectrum(self) -> tuple[Spectrum, bool]:
        """Return the eigenvalues, and whether all are exact."""


class MatrixPair(ABC):
    """The two centred matrices A and B of a test over n rows.

    `value` is the observed <A, B>, `rounding` how far rounding can move it, `factor` what turns it into the statistic.
    """

    n: int
    value: float
    rounding: float
    factor: float
    matrices: tuple[MatrixUnderNull, MatrixUnderNull]

    @abstractmethod
    def squared_products(self) -> float:
        """Return sum_{i != j} (A_ij B_ij)^2."""

    @abstractmethod
    def relabelled(self, at_least: int) -> Array:
        """Return <A, B> under at least so many relabellings."""

    @abstractmethod
    def degenerate(self) -> UndecidedError:
        """Return the error for a statistic that no relabelling changes."""

    def first_invariants(self) -> tuple[Invariants, Invariants]:
        """Return the invariants of A and of B up to second order."""
        return self.matrices[0].first_invariants(), self.matrices[1].first_invariants()

    def varies(self) -> bool:
        """Whether some permutation of the rows changes the statistic, by its exact variance over all of them."""
        return permutation_moments(*self.first_invariants(), self.n).standard_deviation > self.rounding


class Tail(NamedTuple):
    """The upper tail of a curve at <A, B>, and the moments of the curve; what the record says of how they were found."""

    p_value: float
    moments: Moments
    trace: str | None = None
    permutations: int | None = None
    kurtosis: float | None = None


def three_moments(pair: MatrixPair) -> Tail:
    """Pearson III through the exact mean, variance and skewness of the permutation distribution."""
    (a, exact_a), (b, exact_b) = (one.invariants() for one in pair.matrices)
    moments = _varying(pair, a, b)
    p_value = bounded(moments_p_value(pair.value, moments), pair.value, moments)
    return Tail(p_value, moments, "exact" if exact_a and exact_b else "stochastic")


def moments_p_value(value: float, moments: Moments) -> float:
    """Return the upper tail at `value` of the Pearson III curve through the moments; never 0."""
    z = (value - moments.mean) / moments.standard_deviation
    return float(upper_tail(z, moments.skewness))


def bounded(p_value: float, value: float, moments: Moments) -> float:
    """Return a p-value, and no less than 1 / (1 + z^2) where the skewness is beyond that of sums of squares, 2 sqrt(2).

    Few outcomes, as of columns that are nearly constant, are most of such a distribution, and no curve: the bound of Cantelli
    (1928) holds for all of them.
    """
    return max(p_value, _cantelli(value, moments)) if moments.skewness > MOST_SKEWED else p_value


def _cantelli(value: float, moments: Moments) -> float:
    z = max((value - moments.mean) / moments.standard_deviation, 0.0)
    return 1.0 / (1.0 + z * z)


def four_moments(pair: MatrixPair) -> Tail:
    """Fit a curve of Pearson's system to these three and the kurtosis of some thousand relabellings."""
    tail = three_moments(pair)
    moments, sums = tail.moments, pair.relabelled(KURTOSIS_RELABELLINGS)
    kurtosis = float(np.mean((sums - sums.mean()) ** 4) / sums.var() ** 2)
    z = (pair.value - moments.mean) / moments.standard_deviation
    p_value = bounded(pearson_tail(z, moments.skewness, kurtosis), pair.value, moments)
    return Tail(p_value, moments, tail.trace, len(sums), kurtosis)


def gretton_gamma(pair: MatrixPair) -> Tail:
    """Gretton's Gamma: two moments of the biased statistic, asymptotic.

    For HSIC_b = <A, B> / n^2 (Gretton et al. 2007, eqs. 9 and Theorem 4)

        mean = tr A tr B / (n (n-1)^2)                    for unit diagonals: (1 - mu_x)(1 - mu_y) / n
        variance = 2 (n-4)(n-5) / (n (n-1)(n-2)(n-3)) * mean_{i != j} (A_ij B_ij)^2

    and n HSIC_b is taken for a Gamma variable with these two moments. The notes' two-sample case is B from the delta kernel
    of the label, which doubles HLH; any factor of B cancels in the p-value. Known weakness, measured against long
    permutation runs (tests/benchmarks/nulls.py): two moments do not fix the tail. At the exact 5 % point it gives 0.043 to
    0.052, at the 1 % point 0.006 to 0.010, at the 0.1 % point 0.0003 to 0.0008: it rejects up to three times too often
    there. Where its deviation is far below the exact one, as of a flag of a row or two, whose few outcomes are no sum of
    many squares, the p-value is no less than Cantelli's bound by the exact moments.
    """
    n = pair.n
    a, b = pair.first_invariants()
    exact = _varying(pair, a, b)
    if n < GAMMA_ROWS:
        raise _no_gamma(f"at least {GAMMA_ROWS} rows")
    mean = a.trace * b.trace / (n * (n - 1) ** 2)
    squares = pair.squared_products() / (n * (n - 1))
    variance = 2.0 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3)) * squares
    if not (mean > 0 and variance > 0):
        raise _no_gamma("a positive mean and variance")
    from scipy.special import gammaincc  # noqa: PLC0415 - takes 0.2 s to load

    p_value = float(gammaincc(mean**2 / variance, max(pair.value, 0.0) / n**2 * mean / variance))
    moments = Moments(mean * n**2, math.sqrt(variance) * n**2, 2.0 * math.sqrt(variance) / mean)
    # Of few rows the formula of the paper is too small anyway.
    usual = math.sqrt((n - 1) * (n - 2) / ((n - 4) * (n - 5))) * moments.standard_deviation
    if exact.standard_deviation > TOO_NARROW * usual:
        p_value = max(p_value, _cantelli(pair.value, exact))
    return Tail(max(p_value, SMALLEST), moments)


def chi_squares(pair: MatrixPair) -> Tail:
    """Return the tail of the weighted sum of chi-squares that <A, B> tends to.

    Under the null hypothesis <A, B> is close to (1/n) sum_ij lambda_i mu_j z_ij^2, with lambda and mu the eigenvalues of A
    and B and z_ij independent standard Gaussians (Gretton et al. 2009; Zhang et al. 2012). With U-centring the traces are
    zero and the same sum is centred by itself. Measured against long permutation runs (tests/benchmarks/nulls.py): for
    the unbiased statistic right to a tenth at the 5 % and 1 % points from n = 200 on, to a fifth at 0.1 %; at n = 40 up to
    a sixth too small. For the biased statistic as good in few dimensions, but where the eigenvalues decay slowly (many
    dimensions, small bandwidths) its variance is too large: p-values come out too large by a factor of 2 at the 5 % point
    and 10 at 0.1 %.
    """
    _varying(pair, *pair.first_invariants())
    (a, exact_a), (b, exact_b) = (one.spectrum() for one in pair.matrices)
    powers = [
        float((a.values**k) @ a.multiplicities) * float((b.values**k) @ b.multiplicities) / pair.n**k for k in (1, 2, 3)
    ]
    deviation = math.sqrt(2.0 * powers[1])
    moments = Moments(powers[0], deviation, 8.0 * powers[2] / deviation**3)
    p_value = spectral_p_value(pair.value, a, b, pair.n)
    return Tail(p_value, moments, "exact" if exact_a and exact_b else "leading eigenvalues")


CURVES: dict[str, Callable[[MatrixPair], Tail]] = {
    "moments": three_moments,
    "gamma": gretton_gamma,
    "spectral": chi_squares,
    "pearson": four_moments,
}


def curve_p_value(method: str, pair: MatrixPair) -> tuple[float, record.Null]:
    """Return the p-value of <A, B> by the curve that `method` names, and how it was found.

    UndecidedError says that no relabelling changes the statistic or that there are too few rows for the curve,
    OverflowError that a sum is beyond the range of numbers.
    """
    tail = CURVES[method](pair)
    null = record.Null(
        method,
        permutations=tail.permutations,
        mean=pair.factor * tail.moments.mean,
        standard_deviation=pair.factor * tail.moments.standard_deviation,
        skewness=tail.moments.skewness,
        trace=tail.trace,
        kurtosis=tail.kurtosis,
    )
    return tail.p_value, null


def _varying(pair: MatrixPair, a: Invariants, b: Invariants) -> Moments:
    """Return the moments over all relabellings, unless they say that none changes the statistic."""
    moments = permutation_moments(a, b, pair.n)
    if not moments.standard_deviation > pair.rounding:
        raise pair.degenerate()
    return moments


def _no_gamma(needed: str) -> UndecidedError:
    return UndecidedError(
        f"the Gamma null needs {needed}", hint=f"use {option('null', 'permutation')}", code="undecided.gamma"
    )


# Weighted sums of chi-squares


def spectral_p_value(value: float, a: Spectrum, b: Spectrum, n: int) -> float:
    """Return the upper tail at <A, B> = `value` of (1/n) sum_ij lambda_i mu_j z_ij^2, in O(r s) for r and s eigenvalues."""
    weights = np.multiply.outer(a.values, b.values).ravel() / n
    counts = np.multiply.outer(a.multiplicities, b.multiplicities).ravel()
    kept = (np.abs(weights) > NEGLIGIBLE * np.abs(weights).max()) & (counts > 0)
    return weighted_chi_square_tail(value, weights[kept], counts[kept])


def weighted_chi_square_tail(x: float, weights: Array, counts: Array) -> float:
    """Return P(sum_i w_i C_i > x), C_i chi-squares with `counts` degrees of freedom, by the saddlepoint formula.

    Lugannani and Rice's formula as in Kuonen (1999): the relative error is a few per cent at most, far into the tail
    too. Negative weights are allowed.
    """
    if not weights.min() < 0 and x <= 0:
        return 1.0
    mean = float(weights @ counts)
    deviation = math.sqrt(2.0 * float(weights**2 @ counts))
    z = (x - mean) / deviation
    if abs(z) >= 1e-3:
        return _lugannani_rice(x, weights, counts)
    # The formula is 0/0 at the mean: go around it.
    below, above = (_lugannani_rice(mean + side * deviation, weights, counts) for side in (-1e-3, 1e-3))
    return below + (above - below) * (z + 1e-3) / 2e-3


def _lugannani_rice(x: float, weights: Array, counts: Array) -> float:
    """Return the saddlepoint tail away from the mean. K(t) = -1/2 sum counts log(1 - 2 w t) is the cumulant function."""
    t = _saddlepoint(x, weights, counts)
    factors = 1.0 - 2.0 * t * weights
    cumulant = -0.5 * float(counts @ np.log(factors))
    curvature = 2.0 * float(counts @ (weights / factors) ** 2)
    w = math.copysign(math.sqrt(max(2.0 * (t * x - cumulant), 0.0)), t)
    v = t * math.sqrt(curvature)
    from scipy.special import log_ndtr  # noqa: PLC0415 - takes 0.2 s to load

    log_tail = float(log_ndtr(-(w + math.log(v / w) / w)))
    return min(max(math.exp(log_tail), SMALLEST), 1.0)


def _saddlepoint(x: float, weights: Array, counts: Array) -> float:
    """Return t with K'(t) = x, by bisection inside the interval where all 1 - 2 w t are positive."""

    def excess(t: float) -> float:
        return float(counts @ (weights / (1.0 - 2.0 * t * weights))) - x

    # K' grows from the mean at 0 to infinity at the pole on this side of it.
    side = 1.0 if excess(0.0) < 0 else -1.0
    pole = side / max(2.0 * float((side * weights).max()), SMALLEST)
    near, far = 0.0, side * min(1.0 / math.sqrt(2.0 * float(weights**2 @ counts)), abs(pole) / 2.0)
    while side * excess(far) < 0:
        near, far = far, side * min(2.0 * abs(far), (abs(far) + abs(pole)) / 2.0)
    for _ in range(200):
        middle = 0.5 * (near + far)
        if middle in (near, far):
            break
        near, far = (middle, far) if side * excess(middle) < 0 else (near, middle)
    return 0.5 * (near + far)


# Curves of Pearson's system: a Gamma through three moments (type III), and any of them through four


def upper_tail(z: ArrayLike, skewness: ArrayLike) -> Array:
    """Return P(Z >= z), never 0, for Pearson III with mean 0, standard deviation 1 and the given skewness; they broadcast.

    With k = 4 / skewness^2, Z = (G - k) / sqrt(k) for G a Gamma variable of shape k. A negative skewness counts as 0: the
    statistics here lean to the right, and a Gaussian tail errs on the safe side.
    """
    from scipy.special import gammaincc, ndtr  # noqa: PLC0415 - takes 0.2 s to load

    z, skewness = np.asarray(z, dtype=np.float64), np.asarray(skewness, dtype=np.float64)
    gaussian = skewness < NEARLY_GAUSSIAN
    shape = 4.0 / np.square(np.where(gaussian, 1.0, skewness))
    tail = np.where(gaussian, ndtr(-z), gammaincc(shape, np.maximum(shape + z * np.sqrt(shape), 0.0)))
    return np.asarray(np.maximum(tail, SMALLEST))


def pearson_tail(z: float, skewness: float, kurtosis: float) -> float:
    """Return P(Z >= z) for the Pearson curve with mean 0, variance 1 and the given skewness and kurtosis, 3 for a Gaussian.

    The curve is the density p with p'/p = -(z + c1) / (c0 + c1 z + c2 z^2) (Pearson 1895; Stuart and Ord, section 6.2).
    The logarithm of p has a closed form; its integrals are taken by double-exponential quadrature, which copes with
    infinite ends and with ends where p is infinite. A kurtosis below what the skewness allows, skewness^2 + 1, is raised.
    """
    beta1, beta2 = skewness**2, max(kurtosis, skewness**2 + 1.0 + 1e-6)
    scale = 10.0 * beta2 - 12.0 * beta1 - 18.0
    c2 = (2.0 * beta2 - 3.0 * beta1 - 6.0) / scale if scale else 0.0
    if abs(c2) < 1e-5 or scale <= 0:
        # Type III is the border between bounded and unbounded curves. Beyond the second condition no curve has moments.
        return float(upper_tail(z, skewness))
    c0 = (4.0 * beta2 - 3.0 * beta1) / scale
    c1 = skewness * (beta2 + 3.0) / scale
    log_density, lower, upper = _curve(c0, c1, c2)
    if z >= upper:
        return SMALLEST
    if z <= lower:
        return 1.0
    # Both sides of z, relative to one height, so that neither a deep tail nor its complement cancels.
    peak = float(log_density(np.array([min(max(-c1, lower + 1e-3), upper - 1e-3)]))[0])
    above = _integral(lambda x: np.exp(log_density(x) - peak), z, upper)
    below = _integral(lambda x: np.exp(log_density(x) - peak), z, lower)
    if not above + below > 0:
        # All of the curve is in a point, as far as doubles can tell: the skewness has swallowed everything.
        return float(upper_tail(z, skewness))
    return max(above / (above + below), SMALLEST)


def _curve(c0: float, c1: float, c2: float) -> tuple[Callable[[Array], Array], float, float]:
    """Return log p up to a constant, and the ends of the interval around 0 where c0 + c1 z + c2 z^2 is positive.

    With r and s the roots, log p = a log|z - r| + b log|z - s| by partial fractions, complex ones where r and s are.
    """
    root = cmath.sqrt(c1**2 - 4.0 * c0 * c2) or TINY_ROOT
    roots = np.array([-c1 - root, -c1 + root]) / (2.0 * c2)
    powers = np.array([roots[0] + c1, -roots[1] - c1]) / root

    def log_density(x: Array) -> Array:
        return np.asarray((powers @ np.log(x - roots[:, None])).real)

    real = roots.real[roots.imag == 0]
    return log_density, max(real[real < 0], default=-math.inf), min(real[real > 0], default=math.inf)


def _integral(function: Callable[[Array], Array], start: float, end: float) -> float:
    """Return the integral over the interval between `start` and `end`, in either order; `end` may be infinite.

    Double-exponential quadrature (Takahasi and Mori 1974): the trapezoidal rule after a change of variable that makes
    the integrand fall off doubly exponentially at both ends.
    """
    u = np.linspace(-REACH, REACH, NODES)
    step = u[1] - u[0]
    inner = 0.5 * math.pi * np.sinh(u)
    derivative = 0.5 * math.pi * np.cosh(u)
    if math.isinf(end):
        distance = np.exp(inner)
        jacobian = distance * derivative
        x = start + math.copysign(1.0, end) * distance
    else:
        length = abs(end - start)
        # Distance from `end`, kept apart from x so that it does not round to zero beside it.
        distance = length / (1.0 + np.exp(2.0 * inner))
        jacobian = length * derivative / (2.0 * np.cosh(inner) ** 2)
        x = end + math.copysign(1.0, start - end) * distance
        kept = (distance > 0) & (x != end) & (x != start)
        x, jacobian = x[kept], jacobian[kept]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        values = function(x) * jacobian
    return float(np.sum(values[np.isfinite(values)]) * step)
