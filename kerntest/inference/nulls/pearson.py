"""Curves of Pearson's system: a Gamma through three moments (type III), and any of them through four.

Mean, variance and skewness are the exact ones of the permutation distribution (moments.py); the kurtosis is that of a
few thousand relabellings, so that a tail far beyond 1 / relabellings leans on an estimate. Measured against long
permutation runs (tests/benchmarks/nulls.py): right to a few per cent at the 5 % and 1 % points, to 30 % at 0.1 %.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from kerntest.kernels.base import Array

# Below this skewness the distribution is a Gaussian to more digits than a tail needs.
NEARLY_GAUSSIAN = 1e-4
# Above this value of -log(tail) the tail is too near the smallest double for its logarithm to be taken.
DEEP = 600.0
# Steps of the continued fraction: that far out, each shrinks the error a hundredfold or more.
STEPS = 8
# Nodes of the double-exponential quadrature: more change no digit shown.
NODES = 801
REACH = 4.0


def log_upper_tail(z: ArrayLike, skewness: ArrayLike) -> Array:
    """Return log P(Z >= z) for Pearson III with mean 0, standard deviation 1 and the given skewness, which broadcast.

    With k = 4 / skewness^2, Z = (G - k) / sqrt(k) for G a Gamma variable of shape k. Deep tails, beyond the range of
    doubles, come from the continued fraction of the incomplete Gamma function (DLMF 8.9.2, its even part). A negative
    skewness counts as 0: the statistics here lean to the right, and a Gaussian tail errs on the safe side.
    """
    from scipy.special import gammaincc, log_ndtr  # noqa: PLC0415 - takes 0.2 s to load

    z, skewness = np.broadcast_arrays(np.asarray(z, dtype=np.float64), np.asarray(skewness, dtype=np.float64))
    gaussian = skewness < NEARLY_GAUSSIAN
    shape = 4.0 / np.square(np.where(gaussian, 1.0, skewness))
    x = np.maximum(shape + z * np.sqrt(shape), 0.0)
    with np.errstate(divide="ignore"):
        tail = np.log(gammaincc(shape, x))
    deep = (tail < -DEEP) & (x > shape)
    if np.any(deep):
        tail = np.where(deep, _log_deep_tail(shape, x), tail)
    log_tail: Array = np.where(gaussian, log_ndtr(-z), tail)
    return log_tail


def _log_deep_tail(shape: Array, x: Array) -> Array:
    """Return log(Gamma(k, x) / Gamma(k)) for x far above k; meaningless elsewhere."""
    from scipy.special import gammaln  # noqa: PLC0415 - takes 0.2 s to load

    x = np.maximum(x, shape + 1.0)
    fraction = x - shape + (2 * STEPS + 1)
    for step in range(STEPS, 0, -1):
        fraction = x - shape + (2 * step - 1) - step * (step - shape) / fraction
    deep: Array = shape * np.log(x) - x - gammaln(shape) - np.log(fraction)
    return deep


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
        return float(np.exp(log_upper_tail(z, skewness)))
    c0 = (4.0 * beta2 - 3.0 * beta1) / scale
    c1 = skewness * (beta2 + 3.0) / scale
    log_density, lower, upper = _curve(c0, c1, c2)
    if z >= upper:
        return float(np.finfo(np.float64).tiny)
    if z <= lower:
        return 1.0
    # Both sides of z, relative to one height, so that neither a deep tail nor its complement cancels.
    peak = float(log_density(np.array([_mode(c1, lower, upper)]))[0])
    above = _integral(lambda x: np.exp(log_density(x) - peak), z, upper)
    below = _integral(lambda x: np.exp(log_density(x) - peak), z, lower)
    if not above + below > 0:
        # All of the curve is in a point, as far as doubles can tell: the skewness has swallowed everything.
        return float(np.exp(log_upper_tail(z, skewness)))
    return max(above / (above + below), float(np.finfo(np.float64).tiny))


def _mode(c1: float, lower: float, upper: float) -> float:
    """Return a point near the highest one that is inside the support."""
    inside_lower = lower + 1e-3 if math.isfinite(lower) else -math.inf
    inside_upper = upper - 1e-3 if math.isfinite(upper) else math.inf
    return min(max(-c1, inside_lower), inside_upper)


def _curve(c0: float, c1: float, c2: float) -> tuple[Callable[[Array], Array], float, float]:
    """Return log p up to a constant, and the ends of the interval around 0 where c0 + c1 z + c2 z^2 is positive."""
    discriminant = c1**2 - 4.0 * c0 * c2
    # -(z + c1) = -D' / (2 c2) - (c1 - c1 / (2 c2)), with D = c0 + c1 z + c2 z^2.
    slope = c1 - c1 / (2.0 * c2)
    if discriminant < 0:
        root = math.sqrt(-discriminant)

        def type_four(x: Array) -> Array:
            angle = np.arctan((2.0 * c2 * x + c1) / root)
            return np.asarray(-np.log(c0 + c1 * x + c2 * x**2) / (2.0 * c2) - slope * 2.0 / root * angle)

        return type_four, -math.inf, math.inf
    root = math.sqrt(discriminant)
    first, second = sorted(((-c1 - root) / (2.0 * c2), (-c1 + root) / (2.0 * c2)))
    lower = max((r for r in (first, second) if r < 0), default=-math.inf)
    upper = min((r for r in (first, second) if r > 0), default=math.inf)

    def between_roots(x: Array) -> Array:
        # D = c2 (x - first)(x - second); the integral of 1 / D is log|(x - second) / (x - first)| / (c2 (second - first)).
        to_first, to_second = np.log(np.abs(x - first)), np.log(np.abs(x - second))
        ratio = (to_second - to_first) / (c2 * (second - first)) if second > first else np.zeros_like(x)
        return np.asarray(-(to_first + to_second) / (2.0 * c2) - slope * ratio)

    return between_roots, lower, upper


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
