"""p-values without resampling: a curve for the null distribution of <A, B>, whatever the two matrices are.

A two-sample test (kernel matrix and label) and an independence test (two kernel matrices) hand over a `MatrixPair`;
each curve makes a p-value of it. A new one is a class and a line in `CURVES`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.inference.nulls.moments import Invariants, Moments, moments_p_value, permutation_moments
from kerntest.inference.nulls.pearson import pearson_tail
from kerntest.inference.nulls.spectral import spectral_p_value
from kerntest.report.results import record

if TYPE_CHECKING:
    from kerntest.inference.nulls.spectral import Spectrum
    from kerntest.kernels.base import Array

# The kurtosis of the Pearson null comes from at least so many relabellings.
KURTOSIS_RELABELLINGS = 5000
# The variance of Gretton's Gamma is positive from so many rows on.
GAMMA_ROWS = 6


class MatrixPair(Protocol):
    """The two centred matrices A and B of a test."""

    @property
    def n(self) -> int:
        """Number of rows."""
        ...

    @property
    def value(self) -> float:
        """The observed <A, B>."""
        ...

    @property
    def factor(self) -> float:
        """What turns <A, B> into the statistic."""
        ...

    @property
    def rounding(self) -> float:
        """How far rounding can move <A, B>."""
        ...

    def invariants(self) -> tuple[Invariants, Invariants, bool]:
        """Return the invariants of A and of B, and whether their cubic traces are exact."""
        ...

    def first_invariants(self) -> tuple[Invariants, Invariants]:
        """Return the invariants up to second order only; those of third order are 0."""
        ...

    def spectra(self) -> tuple[Spectrum, Spectrum, bool]:
        """Return the eigenvalues of A and of B, and whether all are exact."""
        ...

    def squared_products(self) -> float:
        """Return sum_{i != j} (A_ij B_ij)^2."""
        ...

    def relabelled(self, at_least: int) -> Array:
        """Return <A, B> under at least so many relabellings."""
        ...

    def degenerate(self) -> UndecidedError:
        """Return the error for a statistic that no relabelling changes."""
        ...


@dataclass(frozen=True, slots=True)
class Tail:
    """The upper tail of a curve at <A, B>, and the moments of the curve; what the record says of how they were found."""

    p_value: float
    moments: Moments
    trace: str | None
    permutations: int | None = None
    kurtosis: float | None = None


class Curve(ABC):
    """A curve for the null distribution of <A, B>. `needs` names what it asks a `MatrixPair` for."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]

    @abstractmethod
    def tail(self, pair: MatrixPair, permutations: int) -> Tail:
        """Return the tail at the observed value."""


class ThreeMoments(Curve):
    """Pearson III through the exact mean, variance and skewness of the permutation distribution."""

    name = "moments"
    needs: ClassVar[tuple[str, ...]] = ("invariants",)

    def tail(self, pair: MatrixPair, permutations: int) -> Tail:
        """Return the tail at the observed value."""
        del permutations
        moments, trace = self._moments(pair)
        return Tail(moments_p_value(pair.value, moments), moments, trace)

    @staticmethod
    def _moments(pair: MatrixPair) -> tuple[Moments, str]:
        a, b, exact = pair.invariants()
        moments = permutation_moments(a, b, pair.n)
        if not moments.standard_deviation > pair.rounding:
            raise pair.degenerate()
        return moments, "exact" if exact else "stochastic"


class FourMoments(ThreeMoments):
    """A curve of Pearson's system through these three and the kurtosis of some thousand relabellings."""

    name = "pearson"
    needs = ("invariants", "relabelled")

    def tail(self, pair: MatrixPair, permutations: int) -> Tail:
        """Return the tail at the observed value."""
        moments, trace = self._moments(pair)
        sums = pair.relabelled(max(KURTOSIS_RELABELLINGS, permutations))
        kurtosis = float(np.mean((sums - sums.mean()) ** 4) / sums.var() ** 2)
        z = (pair.value - moments.mean) / moments.standard_deviation
        return Tail(pearson_tail(z, moments.skewness, kurtosis), moments, trace, len(sums), kurtosis)


class GrettonGamma(Curve):
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

    name = "gamma"
    needs = ("first_invariants", "squared_products")

    def tail(self, pair: MatrixPair, permutations: int) -> Tail:
        """Return the tail at the observed value."""
        del permutations
        n = pair.n
        a, b = _not_constant(pair)
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
        return Tail(max(p_value, float(np.finfo(np.float64).tiny)), moments, None)


class ChiSquares(Curve):
    """The weighted sum of chi-squares that <A, B> tends to."""

    name = "spectral"
    needs = ("first_invariants", "spectra")

    def tail(self, pair: MatrixPair, permutations: int) -> Tail:
        """Return the tail at the observed value."""
        del permutations
        _not_constant(pair)
        a, b, exact = pair.spectra()
        powers = [
            float((a.values**k) @ a.multiplicities) * float((b.values**k) @ b.multiplicities) / pair.n**k
            for k in (1, 2, 3)
        ]
        deviation = math.sqrt(2.0 * powers[1])
        moments = Moments(powers[0], deviation, 8.0 * powers[2] / deviation**3)
        p_value = spectral_p_value(pair.value, a, b, pair.n)
        return Tail(p_value, moments, "exact" if exact else "leading eigenvalues")


CURVES: dict[str, Curve] = {
    curve.name: curve for curve in (ThreeMoments(), GrettonGamma(), ChiSquares(), FourMoments())
}


def curve_p_value(method: str, pair: MatrixPair, *, permutations: int) -> tuple[float, record.Null]:
    """Return the p-value of <A, B> by the curve that `method` names, and how it was found.

    UndecidedError says that no relabelling changes the statistic or that there are too few rows for the curve,
    OverflowError that a sum is beyond the range of numbers.
    """
    tail = CURVES[method].tail(pair, permutations)
    null = record.Null(
        method=method,
        permutations=tail.permutations,
        requested=None,
        p_floor=None,
        exact=False,
        resampling=None,
        orders=None,
        mean=pair.factor * tail.moments.mean,
        standard_deviation=pair.factor * tail.moments.standard_deviation,
        skewness=tail.moments.skewness,
        trace=tail.trace,
        kurtosis=tail.kurtosis,
    )
    return tail.p_value, null


def _not_constant(pair: MatrixPair) -> tuple[Invariants, Invariants]:
    """Return the invariants up to second order, unless they say that no relabelling changes the statistic."""
    a, b = pair.first_invariants()
    if not permutation_moments(a, b, pair.n).standard_deviation > pair.rounding:
        raise pair.degenerate()
    return a, b


def _no_gamma(needed: str) -> UndecidedError:
    return UndecidedError(f"the Gamma null needs {needed}", hint="use --null permutation", code="undecided.gamma")
