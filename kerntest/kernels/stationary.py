"""Kernels of the difference x - y: the further apart two rows, the smaller the value; k(x, x) = 1.

All are infinitely divisible (each is the characteristic function of an infinitely divisible distribution), so any
positive power of them is positive definite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from kerntest.kernels.algebra import POSITIVE, Atom, BandwidthAtom, Domain, argument
from kerntest.kernels.base import shaped

if TYPE_CHECKING:
    from kerntest.kernels.algebra import Kind
    from kerntest.kernels.base import Array, Metric, Pairs

# Beyond 100 the kernel differs from a gaussian by less than 1 % and the Bessel function overflows.
SMOOTHNESS = Domain("positive and at most 100", lambda value: 0 < value <= 100)


class Stationary(BandwidthAtom):
    """A kernel that falls with distance / bandwidth, from 1 to 0; its Fourier transform is positive everywhere."""

    kind: ClassVar[Kind] = "numeric"
    metric: ClassVar[Metric] = "euclidean"


@dataclass(frozen=True, slots=True)
class Gaussian(Stationary):
    """k(x, y) = exp(-|x - y|^2 / (2 s^2))."""

    name: ClassVar[str] = "gaussian"
    formula: ClassVar[str] = "exp(-|x-y|^2 / (2 bandwidth^2))"
    squarings: ClassVar[int] = 2
    remark: ClassVar[str] = "smooth; sees all differences, best those at the scale of the bandwidth"

    @property
    def gamma(self) -> float | None:
        """The same bandwidth as other libraries write it, 1/(2 s^2); None while it is open."""
        return None if self.bandwidth is None else 1 / (2 * self.bandwidth**2)

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        values = np.multiply(pairs.squared_distance(), -1 / (2 * bandwidth**2))
        return np.exp(values, out=values)


@dataclass(frozen=True, slots=True)
class Laplacian(Stationary):
    """k(x, y) = exp(-|x - y|_1 / s), with the sum of the absolute differences as distance."""

    name: ClassVar[str] = "laplacian"
    formula: ClassVar[str] = "exp(-|x-y|_1 / bandwidth)"
    squarings: ClassVar[int] = 1
    remark: ClassVar[str] = "rougher than the gaussian: better at narrow differences; sum of absolute differences"
    metric: ClassVar[Metric] = "manhattan"

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        return pairs.exponential_manhattan(bandwidth)


@dataclass(frozen=True, slots=True)
class Laplacian2(Stationary):
    """k(x, y) = exp(-|x - y|_2 / s), with the Euclidean distance."""

    name: ClassVar[str] = "laplacian2"
    formula: ClassVar[str] = "exp(-|x-y|_2 / bandwidth)"
    squarings: ClassVar[int] = 1
    remark: ClassVar[str] = "the laplacian with the Euclidean distance; matern with nu=0.5"

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        values = pairs.distance()
        np.multiply(values, -1 / bandwidth, out=values)
        return np.exp(values, out=values)


@dataclass(frozen=True, slots=True)
class StudentT(Stationary):
    """k(x, y) = (1 + |x - y|^2 / (df s^2))^(-(df + 1)/2): a gaussian with heavy tails; towards infinite df the gaussian."""

    name: ClassVar[str] = "student-t"
    formula: ClassVar[str] = "(1 + |x-y|^2 / (df bandwidth^2))^(-(df+1)/2)"
    remark: ClassVar[str] = "heavy tails: sees near and far differences together"

    df: float = argument(POSITIVE, 1.0)

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        scaled = np.multiply(pairs.squared_distance(), 1 / (self.df * bandwidth**2))
        return _inverse_power_of_one_plus(scaled, (self.df + 1) / 2)


@dataclass(frozen=True, slots=True)
class RationalQuadratic(Stationary):
    """k(x, y) = (1 + |x - y|^2 / (2 alpha s^2))^(-alpha): gaussians of all bandwidths; the smaller alpha, the wider the mix."""

    name: ClassVar[str] = "rational-quadratic"
    formula: ClassVar[str] = "(1 + |x-y|^2 / (2 alpha bandwidth^2))^(-alpha)"
    remark: ClassVar[str] = "a mixture of gaussians of many bandwidths"

    alpha: float = argument(POSITIVE, 1.0)

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        scaled = np.multiply(pairs.squared_distance(), 1 / (2 * self.alpha * bandwidth**2))
        return _inverse_power_of_one_plus(scaled, self.alpha)


def _inverse_power_of_one_plus(values: Array, exponent: float) -> Array:
    """Return (1 + values)^(-exponent), in place; by logarithms, which keep the digits of small values."""
    if exponent == 1:
        values += 1
        return np.divide(1, values, out=values)
    np.log1p(values, out=values)
    np.multiply(values, -exponent, out=values)
    return np.exp(values, out=values)


@dataclass(frozen=True, slots=True)
class Matern(Stationary):
    """k(x, y) = 2^(1-nu) / Gamma(nu) z^nu K_nu(z) with z = sqrt(2 nu) |x - y| / s.

    Closed forms for nu = 0.5, 1.5 and 2.5 (Rasmussen and Williams 2006, eqs. 4.16 and 4.17); the Bessel function K_nu
    otherwise, at some hundred times the cost.
    """

    name: ClassVar[str] = "matern"
    formula: ClassVar[str] = "2^(1-nu)/Gamma(nu) z^nu K_nu(z), z = sqrt(2 nu) |x-y| / bandwidth"
    remark: ClassVar[str] = "between laplacian2 (nu=0.5) and gaussian (nu large); fast for nu = 0.5, 1.5, 2.5"

    nu: float = argument(SMOOTHNESS, 1.5)

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        z = pairs.distance()
        np.multiply(z, math.sqrt(2 * self.nu) / bandwidth, out=z)
        # exp(-1000) is zero in float64 and so is the kernel; beyond, the polynomial in front of it could overflow.
        np.minimum(z, 1000.0, out=z)
        polynomials = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1 / 3, 1.0, 1.0)}
        if self.nu not in polynomials:
            return _bessel_matern(z, self.nu)
        factor = polynomials[self.nu][0] * np.ones_like(z)
        for coefficient in polynomials[self.nu][1:]:
            factor *= z
            factor += coefficient
        np.negative(z, out=z)
        np.exp(z, out=z)
        return np.multiply(z, factor, out=z)


def _bessel_matern(z: Array, nu: float) -> Array:
    """Return 2^(1-nu) / Gamma(nu) z^nu K_nu(z), in logarithms so that no factor overflows alone.

    Where K_nu itself overflows, z is zero or small against nu and the series 1 - q/(nu-1) + q^2/(2 (nu-1) (nu-2)) - ... with
    q = z^2/4 has converged after a few terms.
    """
    from scipy.special import gammaln, kve  # noqa: PLC0415  # 0.2 s of import that only this branch needs

    values = np.ones_like(z)
    # On all of z, zeros included: scipy 1.17 crashes when this function is given a mask.
    bessel = kve(nu, z)
    usual = np.isfinite(bessel)
    logarithm = (1 - nu) * math.log(2) - float(gammaln(nu)) - z[usual]
    logarithm += nu * np.log(z[usual]) + np.log(bessel[usual])
    values[usual] = np.exp(logarithm)
    q = z[~usual] ** 2 / 4
    term = np.ones_like(q)
    for order in range(1, min(20, math.ceil(nu))):
        term *= -q / (order * (nu - order))
        values[~usual] += term
    return values


@dataclass(frozen=True, slots=True)
class Periodic(Atom):
    """k(x, y) = exp(-2 sum_c sin^2(pi (x_c - y_c) / period) / s^2).

    A product over the columns c of exp-sine-squared kernels, each positive definite on the line, hence positive
    definite in any dimension. It cannot tell x from x + period, so it is not characteristic. Each factor is
    exp((cos - 1) / s^2) with a positive definite cosine, hence infinitely divisible. Its bandwidth has no unit: it measures
    the sine, not the data, and is never chosen from the data.
    """

    name: ClassVar[str] = "periodic"
    formula: ClassVar[str] = "exp(-2 sum_c sin^2(pi (x_c-y_c) / period) / bandwidth^2)"
    remark: ClassVar[str] = "for seasons and angles; blind to shifts by whole periods, so not characteristic"
    kind: ClassVar[Kind] = "numeric"
    infinitely_divisible = True

    period: float = argument(POSITIVE, 1.0)
    bandwidth: float = argument(POSITIVE, 1.0)

    def evaluate(self, pairs: Pairs) -> Array:
        """Return k(x, y) for every pair."""
        total: Array | None = None
        for difference in pairs.differences():
            # The sine of a large multiple of pi has lost its digits; the size first keeps k(x, y) = k(y, x) exactly.
            np.abs(difference, out=difference)
            np.remainder(difference, self.period, out=difference)
            np.multiply(difference, math.pi / self.period, out=difference)
            np.sin(difference, out=difference)
            np.square(difference, out=difference)
            total = difference if total is None else np.add(total, difference, out=total)
        if total is None:
            return np.ones(pairs.shape)
        np.multiply(total, -2 / self.bandwidth**2, out=total)
        return shaped(np.exp(total, out=total), pairs.shape)
