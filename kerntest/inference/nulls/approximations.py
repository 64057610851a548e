"""p-values without resampling: a curve for the null distribution of <A, B>, whatever the two matrices are.

A two-sample test (kernel matrix and label) and an independence test (two kernel matrices) hand over a `MatrixPair`;
each curve makes a p-value of it. A new one is a function and a line in `CURVES`.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.inference.nulls.moments import NEGLIGIBLE, Invariants, Moments, Spectrum, permutation_moments
from kerntest.inference.nulls.pearson import log_upper_tail, pearson_tail
from kerntest.report.results import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.kernels.base import Array

# The kurtosis of the Pearson null comes from at least so many relabellings.
KURTOSIS_RELABELLINGS = 5000
# The variance of Gretton's Gamma is positive from so many rows on.
GAMMA_ROWS = 6


class MatrixPair(Protocol):
    """The two centred matrices A and B of a test, the observed <A, B>, and how far rounding can move it."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def value(self) -> float:
        """The observed <A, B>."""

    @property
    def factor(self) -> float:
        """What turns <A, B> into the statistic."""

    @property
    def rounding(self) -> float:
        """How far rounding can move <A, B>."""

    def invariants(self) -> tuple[Invariants, Invariants, bool]:
        """Return the invariants of A and of B, and whether their cubic traces are exact."""

    def first_invariants(self) -> tuple[Invariants, Invariants]:
        """Return the invariants up to second order only; those of third order are 0."""

    def spectra(self) -> tuple[Spectrum, Spectrum, bool]:
        """Return the eigenvalues of A and of B, and whether all are exact."""

    def squared_products(self) -> float:
        """Return sum_{i != j} (A_ij B_ij)^2."""

    def relabelled(self, at_least: int) -> Array:
        """Return <A, B> under at least so many relabellings."""

    def degenerate(self) -> UndecidedError:
        """Return the error for a statistic that no relabelling changes."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The upper tail of a curve at <A, B>, and the moments of the curve; what the record says of how they were found."""

    p_value: float
    moments: Moments
    trace: str | None = None
    permutations: int | None = None
    kurtosis: float | None = None


def three_moments(pair: MatrixPair) -> Tail:
    """Pearson III through the exact mean, variance and skewness of the permutation distribution."""
    a, b, exact = pair.invariants()
    moments = _varying(pair, a, b)
    return Tail(moments_p_value(pair.value, moments), moments, "exact" if exact else "stochastic")


def moments_p_value(value: float, moments: Moments) -> float:
    """Return the upper tail at `value` of the Pearson III curve through the moments; never 0."""
    z = (value - moments.mean) / moments.standard_deviation
    return max(math.exp(float(log_upper_tail(z, moments.skewness))), sys.float_info.min)


def four_moments(pair: MatrixPair) -> Tail:
    """Fit a curve of Pearson's system to these three and the kurtosis of some thousand relabellings."""
    tail = three_moments(pair)
    moments, sums = tail.moments, pair.relabelled(KURTOSIS_RELABELLINGS)
    kurtosis = float(np.mean((sums - sums.mean()) ** 4) / sums.var() ** 2)
    z = (pair.value - moments.mean) / moments.standard_deviation
    return Tail(pearson_tail(z, moments.skewness, kurtosis), moments, tail.trace, len(sums), kurtosis)


def gretton_gamma(pair: MatrixPair) -> Tail:
    """Gretton's Gamma: two moments of the biased statistic, asymptotic.

    For HSIC_b = <A, B> / n^2 (Gretton et al. 2007, eqs. 9 and Theorem 4)

        mean = tr A tr B / (n (n-1)^2)                    for unit diagonals: (1 - mu_x)(1 - mu_y) / n
        variance = 2 (n-4)(n-5) / (n (n-1)(n-2)(n-3)) * mean_{i != j} (A_ij B_ij)^2

    and n HSIC_b is taken for a Gamma variable with these two moments. The notes' two-sample case is B from the delta kernel
    of the label, which doubles HLH; any factor of B cancels in the p-value. Known weakness, measured against long
    permutation runs (tests/benchmarks/nulls.py): two moments do not fix the tail. At the exact 5 % point it gives 0.043 to
    0.052, at the 1 % point 0.006 to 0.010, at the 0.1 % point 0.0003 to 0.0008: it rejects up to three times too often
    there.
    """
    n = pair.n
    a, b = pair.first_invariants()
    _varying(pair, a, b)
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
    return Tail(max(p_value, sys.float_info.min), moments)


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
    a, b, exact = pair.spectra()
    powers = [
        float((a.values**k) @ a.multiplicities) * float((b.values**k) @ b.multiplicities) / pair.n**k for k in (1, 2, 3)
    ]
    deviation = math.sqrt(2.0 * powers[1])
    moments = Moments(powers[0], deviation, 8.0 * powers[2] / deviation**3)
    p_value = spectral_p_value(pair.value, a, b, pair.n)
    return Tail(p_value, moments, "exact" if exact else "leading eigenvalues")


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
    return UndecidedError(f"the Gamma null needs {needed}", hint="use --null permutation", code="undecided.gamma")


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
    if w == 0 or v / w <= 0:
        return 0.5
    from scipy.special import log_ndtr  # noqa: PLC0415 - takes 0.2 s to load

    log_tail = float(log_ndtr(-(w + math.log(v / w) / w)))
    return min(max(math.exp(log_tail), sys.float_info.min), 1.0)


def _saddlepoint(x: float, weights: Array, counts: Array) -> float:
    """Return t with K'(t) = x, by bisection inside the interval where all 1 - 2 w t are positive."""

    def excess(t: float) -> float:
        return float(counts @ (weights / (1.0 - 2.0 * t * weights))) - x

    # K' grows from the mean at 0 to infinity at the pole on this side of it.
    side = 1.0 if excess(0.0) < 0 else -1.0
    pole = side / max(2.0 * float((side * weights).max()), sys.float_info.min)
    near, far = 0.0, side * min(1.0 / math.sqrt(2.0 * float(weights**2 @ counts)), abs(pole) / 2.0)
    while side * excess(far) < 0:
        near, far = far, side * min(2.0 * abs(far), (abs(far) + abs(pole)) / 2.0)
    for _ in range(200):
        middle = 0.5 * (near + far)
        if middle in (near, far):
            break
        near, far = (middle, far) if side * excess(middle) < 0 else (near, middle)
    return 0.5 * (near + far)
