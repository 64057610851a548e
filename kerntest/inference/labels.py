"""The label of a two-sample test as the second kernel matrix of the one statistic.

With a = 1 for the m rows of X and 0 for the n - m of Y, L = a a' and B its centring, both estimators are <K, B> times
a factor: centring is an orthogonal projection, so that K itself needs none.

    biased     B = HLH    MMD_b^2 = (1/m + 1/(n-m))^2 <K, B>
    unbiased   B = U(L)   MMD_u^2 = (1/(m(m-1)) + 1/((n-m)(n-m-1)) + 2/(m(n-m))) <K, B>
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kerntest.inference.sides import Estimator
    from kerntest.kernels.base import Array


@dataclass(frozen=True, slots=True)
class LabelMatrix:
    """The entries of B: it has one value for each kind of pair.

    Parameters
    ----------
    n_x, n_y : int
        Rows of X and of Y.
    between : ndarray, shape (3,)
        B_ij for i != j, by the number of the two rows that belong to X: none, one, both.
    diagonal : ndarray, shape (2,)
        B_ii for a row of Y and for a row of X.
    factor : float
        The estimate of MMD^2 is `factor` * <K, B>.
    """

    n_x: int
    n_y: int
    between: Array
    diagonal: Array
    factor: float

    @property
    def hollow(self) -> bool:
        """Whether B is a U-centring, with a zero diagonal."""
        return not self.diagonal.any()

    @property
    def squared_norm(self) -> float:
        """Return <B, B>."""
        n_x, n_y = self.n_x, self.n_y
        off = np.array([n_y * (n_y - 1), 2 * n_x * n_y, n_x * (n_x - 1)]) @ self.between**2
        return float(off + np.array([n_y, n_x]) @ self.diagonal**2)


def label_matrix(n_x: int, n_y: int, estimator: Estimator) -> LabelMatrix:
    """Return the centred label matrix of the estimator. Needs n_x, n_y >= 2."""
    n = n_x + n_y
    if estimator == "biased":
        inside, outside = 1.0 - n_x / n, -n_x / n
        between = np.array([outside**2, inside * outside, inside**2])
        return LabelMatrix(n_x, n_y, between, between[[0, 2]], (1 / n_x + 1 / n_y) ** 2)
    total = n_x * (n_x - 1) / ((n - 1) * (n - 2))
    per_row = (n_x - 1) / (n - 2)
    between = np.array([total, total - per_row, 1.0 + total - 2.0 * per_row])
    factor = 1 / (n_x * (n_x - 1)) + 1 / (n_y * (n_y - 1)) + 2 / (n_x * n_y)
    return LabelMatrix(n_x, n_y, between, np.zeros(2), factor)
