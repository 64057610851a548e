"""Products with doubly centred kernel matrices, in whichever form is cheap: a factor of low rank, or the whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UndecidedError, UsageError
from kerntest.inference.factors import centred, kernel_factor
from kerntest.inference.verdict import overflow
from kerntest.kernels.base import DensePairs

if TYPE_CHECKING:
    from kerntest.kernels.base import Array, Kernel, Points

# Up to so many rows a kernel matrix is held whole where its rank is not low.
DENSE_ROWS = 2000
# The largest rank of a kernel matrix of more rows.
MOST_COLUMNS = 1000
# Below this rank a factor is wanted even if it has more columns than half the rows.
SMALL_RANK = 150
# Beyond, the product of two traces overflows.
LARGEST_TRACE = 1e150


@dataclass(frozen=True, slots=True, eq=False)
class CentredKernel(ABC):
    """A doubly centred kernel matrix HKH as a product P S P', P from a space of m numbers to the n rows.

    Vectors are the rows of an array, or one such row alone.

    Parameters
    ----------
    trace : float
        tr K, before centring.
    """

    trace: float

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows n."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The dimension m."""

    def from_rows(self, values: Array) -> Array:
        """Return P' v: shape (b, n) to (b, m)."""
        return values

    def to_rows(self, values: Array) -> Array:
        """Return P v: shape (b, m) to (b, n)."""
        return values

    def metric(self, values: Array) -> Array:
        """Return S v: shape (b, m) to (b, m)."""
        return values

    def times(self, values: Array) -> Array:
        """Return HKH v: shape (b, n) to (b, n)."""
        return self.to_rows(self.metric(self.from_rows(values)))


@dataclass(frozen=True, slots=True, eq=False)
class LowRank(CentredKernel):
    """HKH = G G': P is G, S the identity.

    Parameters
    ----------
    columns : ndarray, shape (n, m)
        G.
    """

    columns: Array

    @property
    def rows(self) -> int:
        """The number of rows n."""
        return self.columns.shape[0]

    @property
    def size(self) -> int:
        """The dimension m."""
        return self.columns.shape[1]

    def from_rows(self, values: Array) -> Array:
        """Return G' v."""
        return values @ self.columns

    def to_rows(self, values: Array) -> Array:
        """Return G v."""
        return values @ self.columns.T


@dataclass(frozen=True, slots=True, eq=False)
class Whole(CentredKernel):
    """HKH itself: S is the matrix, P the identity.

    Parameters
    ----------
    matrix : ndarray, shape (n, n)
        HKH.
    """

    matrix: Array

    @property
    def rows(self) -> int:
        """The number of rows n."""
        return len(self.matrix)

    @property
    def size(self) -> int:
        """The dimension m = n."""
        return len(self.matrix)

    def metric(self, values: Array) -> Array:
        """Return HKH v."""
        return values @ self.matrix


def centred_kernel(kernel: Kernel, points: Points) -> CentredKernel:
    """Return HKH, as a factor where its rank is low and whole where not.

    Parameters
    ----------
    kernel : Kernel
    points : Points
        n rows.

    Raises
    ------
    UsageError
        If the kernel is not known to be positive definite.
    UndecidedError
        If it overflows, or has more than 2,000 rows and no low rank.

    Notes
    -----
    Cost: O(n r^2) time and O(n r) memory for rank r; O(n^2) more of both where the rank is above n / 2, up to 2,000
    rows.
    """
    n = len(points)
    if not kernel.positive_definite:
        raise UsageError(
            f"the constrained covariance needs positive definite kernels, which '{kernel}' may not be",
            hint="--statistic hsic, or another kernel",
            code="usage.indefinite_kernel",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        trace = float(kernel.diagonal(points).sum())
    if not trace < LARGEST_TRACE:
        raise overflow(kernel)
    if n > DENSE_ROWS and not kernel_factor(kernel, points.take(slice(None, None, n // DENSE_ROWS))).complete:
        # A rank that a few of the rows exceed, all of them exceed: this spares a long wait.
        raise _high_rank(kernel, n)
    most = MOST_COLUMNS if n > DENSE_ROWS else max(n // 2, min(n, SMALL_RANK))
    factor = kernel_factor(kernel, points, most=most)
    if factor.complete:
        return LowRank(trace, centred(factor.columns) if factor.columns.size else np.zeros((n, 1)))
    if n > DENSE_ROWS:
        raise _high_rank(kernel, n)
    K = kernel.evaluate(DensePairs(points, points))
    means = K.mean(axis=0)
    K -= means
    K -= (means - means.mean())[:, None]
    return Whole(trace, K)


def _high_rank(kernel: Kernel, n: int) -> UndecidedError:
    return UndecidedError(
        f"the constrained covariance of more than {DENSE_ROWS:,} rows needs kernels of low rank (few columns, or large "
        f"bandwidths); the rank of '{kernel}' on these {n:,} rows is above {MOST_COLUMNS:,}",
        hint="--statistic hsic",
        code="undecided.coco_rank",
    )
