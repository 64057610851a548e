"""The label of a two-sample test as the second kernel matrix of the one statistic.

With a = 1 for the m rows of X and 0 for the n - m of Y, L = a a' and B its centring, both estimators are <K, B> times
a factor: centring is an orthogonal projection, so that K itself needs none.

    biased     B = HLH    MMD_b^2 = (1/m + 1/(n-m))^2 <K, B>
    unbiased   B = U(L)   MMD_u^2 = (1/(m(m-1)) + 1/((n-m)(n-m-1)) + 2/(m(n-m))) <K, B>
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerntest.inference.lags import Block, window
from kerntest.inference.low_rank import LowRank

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kerntest.kernels.base import Array

Estimator: TypeAlias = Literal["unbiased", "biased"]
Labels: TypeAlias = NDArray[np.uint8]


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


def low_rank_label(labels: Labels) -> LowRank:
    """Return the centred label matrix as a product of one column: HLH = (Ha) (Ha)'."""
    column = labels.astype(np.float64)
    column -= column.mean()
    return LowRank(column[:, None], column**2, residual=0.0)


class LabelSide:
    """The label matrix laid out like the kernel matrix, once for every random order of the labels.

    Parameters
    ----------
    matrix : LabelMatrix
        Its entries.
    orders : sequence of ndarray of uint8, shape (n,)
        The labels along the rows, one array per order; the first is the observed one.
    circle : int
        How many rows lie on the circle; the others are fixed.
    """

    members = 1
    # The label matrix is centred as it is.
    centred_by_rows = False

    def __init__(self, matrix: LabelMatrix, orders: Sequence[Labels], circle: int) -> None:
        self.matrix = matrix
        self.orders = orders
        self.circle = circle

    def lines(self, order: int, block: Block, out: Array) -> Iterator[int]:
        """Write the block's entries of B in one order into `out`, shape (block.count, circle); yields 0."""
        self._write(order, block, out)
        yield 0

    def _write(self, order: int, block: Block, out: Array) -> None:
        labels = self.orders[order]
        ring = labels[: self.circle]
        if block.kind == "fixed":
            others = labels[self.circle + block.start : self.circle + block.start + block.count]
            out[:] = self.matrix.between[others[:, None] + ring[None, :]]
            return
        # The entry is bilinear in the two labels: ring * slope(other) + level(other), two passes over the block.
        around = ring[np.arange(block.start, block.start + self.circle + block.count - 1) % self.circle]
        none, one, both = self.matrix.between
        slope = np.where(around, both - one, one - none)
        level = np.where(around, one, none)
        np.multiply(window(slope, block.count), ring.astype(np.float64), out=out)
        out += window(level, block.count)
        if block.start == 0:
            out[0] = self.matrix.diagonal[ring]

    def fixed_entries(self, order: int) -> Array:
        """Return the entries of B between fixed rows in one order, shape (1, n - circle, n - circle)."""
        labels = self.orders[order][self.circle :]
        entries: Array = self.matrix.between[labels[:, None] + labels[None, :]]
        np.fill_diagonal(entries, self.matrix.diagonal[labels])
        return entries[None]
