"""Columns brought to one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def standardize(
    numeric: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Bring every column to mean 0 and standard deviation 1 (divisor n).

    Two passes over the deviations keep the digits of columns with a large offset, and a power of two taken out first
    keeps squares from overflowing; both are exact where plain arithmetic would be.

    Parameters
    ----------
    numeric : ndarray of float64, shape (n, p)
        Finite values, n >= 1; not modified.

    Returns
    -------
    scaled : ndarray of float64, shape (n, p)
        ``(numeric - mean) / scale``.
    mean : ndarray of float64, shape (p,)
        Mean of each column.
    scale : ndarray of float64, shape (p,)
        Standard deviation of each column; 1 for a constant column, whose scaled values are 0.

    Notes
    -----
    Cost: O(n p) time and memory.
    """
    largest = np.abs(numeric).max(axis=0, initial=0.0)
    exponent = np.frexp(largest)[1]
    deviation = np.ldexp(numeric, -exponent)
    constant = deviation.max(axis=0, initial=-np.inf) == deviation.min(axis=0, initial=np.inf)
    centre = np.where(constant, deviation[0], deviation.mean(axis=0))
    deviation -= centre
    correction = deviation.mean(axis=0)
    deviation -= correction
    spread = np.where(constant, 1.0, np.sqrt(np.mean(deviation * deviation, axis=0)))
    scale = np.where(constant, 1.0, np.ldexp(spread, exponent))
    return deviation / spread, np.ldexp(centre + correction, exponent), scale
