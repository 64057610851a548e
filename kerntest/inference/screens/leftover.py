"""What some columns leave of others: kernel ridge regression, of the features of one kernel matrix on those of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.engine import one_blas_thread
from kerntest.matrices.factor import Factor, centred, centred_factor, kernel_factor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kerntest.kernels.base import Kernel, Points

# A factor leaves this share of the trace, or has so many columns, and no more than this share of the rows.
SHARE_LEFT, MOST_FEATURES, MOST_OF_ROWS = 1e-4, 200, 0.25
# Penalties that are tried, as shares of the largest eigenvalue.
PENALTIES = np.logspace(0, -12, 49)
# Directions with less than this share of the largest singular value are rounding.
SMALLEST = 1e-7


@one_blas_thread()
def features_of(kernel: Kernel, points: Points) -> Factor:
    """Return the centred matrix of a kernel as a product of few columns, near it. Cost: O(n r^2) time, O(n r) memory."""
    most = max(1, min(MOST_FEATURES, int(MOST_OF_ROWS * len(points))))
    return centred_factor(kernel_factor(kernel, points, tolerance=SHARE_LEFT, most=most))


class Leftover:
    """The map R = I - U D U' of ridge regression on features, with the penalty of least generalised error for a target.

    `share` is tr(R^2) / (n - 1), which is what the variance of independent errors keeps.
    """

    @one_blas_thread()
    def __init__(self, regressors: Iterable[tuple[Points, Kernel]], target: Factor) -> None:
        G = np.hstack([features_of(kernel, points).columns for points, kernel in regressors])
        U, s, _ = np.linalg.svd(G, full_matrices=False)
        self.U, squares = U[:, s > SMALLEST * s[0]], np.square(s[s > SMALLEST * s[0]])
        n, along = len(G), np.square(self.U.T @ target.columns).sum(axis=1)
        kept = squares / (squares + squares[:1] * PENALTIES[:, None])
        errors = target.lengths.sum() - (1 - np.square(1 - kept)) @ along
        self.D = kept[np.argmin(errors / np.square(n - 1 - kept.sum(axis=1)))]
        self.share = 1.0 - float((2 * self.D - np.square(self.D)).sum()) / (n - 1)

    @one_blas_thread()
    def of(self, factor: Factor) -> Factor:
        """Return R K R for K = G G'."""
        return Factor(centred(factor.columns - self.U @ (self.D[:, None] * (self.U.T @ factor.columns))))
