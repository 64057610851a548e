"""Tails of the Pearson III distribution: a Gamma with any mean, standard deviation and skewness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from kerntest.kernels.base import Array

# Below this skewness the distribution is a Gaussian to more digits than a tail needs.
NEARLY_GAUSSIAN = 1e-4
# Above this value of -log(tail) the tail is too near the smallest double for its logarithm to be taken.
DEEP = 600.0
# Steps of the continued fraction: that far out, each shrinks the error a hundredfold or more.
STEPS = 8


def log_upper_tail(z: ArrayLike, skewness: ArrayLike) -> Array:
    """Return log P(Z >= z) for Pearson III with mean 0, standard deviation 1 and the given skewness.

    With k = 4 / skewness^2, Z = (G - k) / sqrt(k) for G a Gamma variable of shape k. Deep tails, beyond the range of
    doubles, come from the continued fraction of the incomplete Gamma function (DLMF 8.9.2, its even part). A negative
    skewness counts as 0: the statistics here lean to the right, and a Gaussian tail errs on the safe side.

    Parameters
    ----------
    z, skewness : array_like
        Broadcast against each other.
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
