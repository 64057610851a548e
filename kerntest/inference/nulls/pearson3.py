"""Tails of the Pearson III distribution: a Gamma with any mean, standard deviation and skewness."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc, gammaln, log_ndtr

from kerntest.kernels.base import Array

# Below this skewness the distribution is a Gaussian to more digits than a tail needs.
NEARLY_GAUSSIAN = 1e-4
# Above this value of -log(tail) the tail is too near the smallest double for its logarithm to be taken.
DEEP = 600.0


def log_upper_tail(z: ArrayLike, skewness: ArrayLike) -> Array:
    """Return log P(Z >= z) for Pearson III with mean 0, standard deviation 1 and the given skewness.

    With k = 4 / skewness^2, Z = (G - k) / sqrt(k) for G a Gamma variable of shape k. Deep tails, beyond the range of
    doubles, are continued by the asymptotic series of the incomplete Gamma function (DLMF 8.11.2). A negative
    skewness counts as 0: the statistics here lean to the right, and a Gaussian tail errs on the safe side.

    Parameters
    ----------
    z, skewness : array_like
        Broadcast against each other.
    """
    z, skewness = np.broadcast_arrays(np.asarray(z, dtype=np.float64), np.asarray(skewness, dtype=np.float64))
    gaussian = skewness < NEARLY_GAUSSIAN
    shape = 4.0 / np.square(np.where(gaussian, 1.0, skewness))
    x = np.maximum(shape + z * np.sqrt(shape), 0.0)
    with np.errstate(divide="ignore"):
        tail = np.log(gammaincc(shape, x))
    deep = (tail < -DEEP) & (x > shape)
    if deep.any():
        k, v = shape[deep], x[deep]
        # Three terms of the series are exact to 1e-6 in the logarithm this far out.
        series = 1.0 + (k - 1.0) / v * (1.0 + (k - 2.0) / v * (1.0 + (k - 3.0) / v))
        tail[deep] = (k - 1.0) * np.log(v) - v - gammaln(k) + np.log(np.maximum(series, 1.0))
    return np.where(gaussian, log_ndtr(-z), tail)
