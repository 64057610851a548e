"""p-values without resampling: a curve for the null distribution of <A, B>, whatever the two matrices are.

A two-sample test (kernel matrix and label) and an independence test (two kernel matrices) hand over a `MatrixPair`;
each curve is a function of it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kerntest.inference.nulls.gamma import gamma_moments, gamma_p_value
from kerntest.inference.nulls.moments import Invariants, Moments, moments_p_value, permutation_moments
from kerntest.inference.nulls.pearson import pearson_tail
from kerntest.inference.nulls.spectral import spectral_p_value
from kerntest.report import record

if TYPE_CHECKING:
    from kerntest.errors import UndecidedError
    from kerntest.inference.nulls.spectral import Spectrum
    from kerntest.inference.sides import NullMethod
    from kerntest.kernels.base import Array

# The kurtosis of the Pearson null comes from at least so many relabellings.
KURTOSIS_RELABELLINGS = 5000


class MatrixPair(Protocol):
    """The two centred matrices A and B of a test."""

    @property
    def n(self) -> int:
        """Return the number of rows."""
        ...

    @property
    def value(self) -> float:
        """Return the observed <A, B>."""
        ...

    @property
    def factor(self) -> float:
        """Return what turns <A, B> into the statistic."""
        ...

    @property
    def rounding(self) -> float:
        """Return how far rounding can move <A, B>."""
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


def curve_p_value(method: NullMethod, pair: MatrixPair, *, permutations: int) -> tuple[float, record.Null]:
    """Return the p-value of <A, B> by the curve that `method` names, and how it was found.

    Raises
    ------
    UndecidedError
        If no relabelling changes the statistic, or there are too few rows for the curve.
    OverflowError
        If a sum is beyond the range of numbers.
    """
    if method == "pearson":
        return _pearson(pair, permutations)
    return {"moments": _moments, "gamma": _gamma, "spectral": _spectral}[method](pair)


def _moments(pair: MatrixPair) -> tuple[float, record.Null]:
    moments, exact = _exact_moments(pair)
    null = _null("moments", pair, moments, "exact" if exact else "stochastic")
    return moments_p_value(pair.value, moments), null


def _exact_moments(pair: MatrixPair) -> tuple[Moments, bool]:
    a, b, exact = pair.invariants()
    moments = permutation_moments(a, b, pair.n)
    if not moments.standard_deviation > pair.rounding:
        raise pair.degenerate()
    return moments, exact


def _pearson(pair: MatrixPair, permutations: int) -> tuple[float, record.Null]:
    moments, exact = _exact_moments(pair)
    sums = pair.relabelled(max(KURTOSIS_RELABELLINGS, permutations))
    kurtosis = float(np.mean((sums - sums.mean()) ** 4) / sums.var() ** 2)
    z = (pair.value - moments.mean) / moments.standard_deviation
    null = _null("pearson", pair, moments, "exact" if exact else "stochastic")
    null = replace(null, permutations=len(sums), kurtosis=kurtosis)
    return pearson_tail(z, moments.skewness, kurtosis), null


def _gamma(pair: MatrixPair) -> tuple[float, record.Null]:
    n = pair.n
    a, b = _not_constant(pair)
    mean_square = pair.squared_products() / (n * (n - 1))
    p_value = gamma_p_value(pair.value, a.trace, b.trace, mean_square, n)
    mean, variance = gamma_moments(a.trace, b.trace, mean_square, n)
    moments = Moments(mean * n**2, math.sqrt(variance) * n**2, 2.0 * math.sqrt(variance) / mean)
    return max(p_value, float(np.finfo(np.float64).tiny)), _null("gamma", pair, moments, None)


def _spectral(pair: MatrixPair) -> tuple[float, record.Null]:
    _not_constant(pair)
    a, b, exact = pair.spectra()
    powers = [
        float((a.values**k) @ a.multiplicities) * float((b.values**k) @ b.multiplicities) / pair.n**k for k in (1, 2, 3)
    ]
    deviation = math.sqrt(2.0 * powers[1])
    moments = Moments(powers[0], deviation, 8.0 * powers[2] / deviation**3)
    p_value = spectral_p_value(pair.value, a, b, pair.n)
    return p_value, _null("spectral", pair, moments, "exact" if exact else "leading eigenvalues")


def _not_constant(pair: MatrixPair) -> tuple[Invariants, Invariants]:
    """Return the invariants up to second order, unless they say that no relabelling changes the statistic."""
    a, b = pair.first_invariants()
    if not permutation_moments(a, b, pair.n).standard_deviation > pair.rounding:
        raise pair.degenerate()
    return a, b


def _null(method: str, pair: MatrixPair, moments: Moments, trace: str | None) -> record.Null:
    """Return the record of a null whose moments are those of <A, B>."""
    return record.Null(
        method=method,
        permutations=None,
        requested=None,
        p_floor=None,
        exact=False,
        resampling=None,
        orders=None,
        mean=pair.factor * moments.mean,
        standard_deviation=pair.factor * moments.standard_deviation,
        skewness=moments.skewness,
        trace=trace,
    )
