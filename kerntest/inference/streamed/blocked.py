"""The two-sample statistic and its relabellings from sums of features over blocks.

With S the sum of the centred features of the rows of X, so that -S is that of Y, n_x and n_y rows,

    MMD_b^2 = (1/n_x + 1/n_y)^2 |S|^2
    MMD_u^2 = (|S|^2 - Q_x) / P_x + (|S|^2 - Q_y) / P_y + 2 |S|^2 / (n_x n_y) + c

where Q sums |S_a|^2 over the blocks a of a file and P counts its pairs of rows in different blocks: an unbiased
estimate that leaves out the pairs of rows within a block, one in as many as there are blocks. Pairs of rows in blocks of
different sizes n_a do not weigh the same, so that the mean m that was taken out leaves something behind,
c = 2 sum_a <m, S_a> ((n_x - n_a) / P_x - 1/n_x) over the blocks of X and the same for Y: 0 for blocks of one size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.sides import ORDER_STREAM
from kerntest.inference.statistic import label_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.inference.sides import Estimator
    from kerntest.inference.streamed.assignment import Blocks
    from kerntest.kernels.base import Array

# Relabellings that are summed by one product.
TOGETHER = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Blocked:
    """Sums of the features of one kernel over the blocks of two files, centred.

    Parameters
    ----------
    sums : ndarray, shape (s, r)
        The blocks of X, then those of Y.
    mean : ndarray, shape (r,)
        What was taken out of the features of every row.
    sizes : ndarray of int, shape (s,)
        Rows of each block.
    in_x, free : ndarray of bool, shape (s,)
        Whether a block is of X, and whether relabellings move it; those that they move are of equal size.
    """

    sums: Array
    mean: Array
    sizes: NDArray[np.int64]
    in_x: NDArray[np.bool_]
    free: NDArray[np.bool_]

    @classmethod
    def of(cls, x: Array, y: Array, blocks: tuple[Blocks, Blocks]) -> Blocked:
        """Return the sums over both files with the mean of all rows taken out."""
        sizes = np.concatenate([each.sizes() for each in blocks])
        sums = np.concatenate([x, y])
        mean = sums.sum(axis=0) / sizes.sum()
        counts = [each.count for each in blocks]
        free = np.concatenate([np.arange(each.count) < each.free for each in blocks])
        in_x = np.repeat([True, False], counts)
        return cls(sums - sizes[:, None] * mean, mean, sizes, in_x, free)

    @property
    def n(self) -> tuple[int, int]:
        """Rows of X and of Y."""
        return int(self.sizes[self.in_x].sum()), int(self.sizes[~self.in_x].sum())

    @property
    def means(self) -> Array:
        """Mean features of each block, shape (s, r)."""
        means: Array = self.sums / self.sizes[:, None]
        return means

    def observed(self, estimator: Estimator) -> float:
        """Return the estimate as the files are."""
        return float(self._estimates(estimator, self.in_x[self.free].astype(np.float64)[None])[0])

    def relabelled(self, estimator: Estimator, relabellings: int, seed: int) -> Array:
        """Return the estimate under random permutations of the free blocks, the identity first, shape (R,).

        Parameters
        ----------
        estimator : "unbiased" or "biased"
        relabellings : int
            R.
        seed : int
            The same permutations for every kernel.

        Notes
        -----
        Cost: O(R s r) time.
        """
        rng = np.random.default_rng((seed, ORDER_STREAM))
        observed = self.in_x[self.free].astype(np.float64)
        values = np.empty(relabellings)
        for start in range(0, relabellings, TOGETHER):
            count = min(TOGETHER, relabellings - start)
            labels = rng.permuted(np.tile(observed, (count, 1)), axis=1)
            if start == 0:
                labels[0] = observed
            values[start : start + count] = self._estimates(estimator, labels)
        return values

    def _estimates(self, estimator: Estimator, labels: Array) -> Array:
        """Return the estimates for labellings of the free blocks, shape (R, free blocks)."""
        n_x, n_y = self.n
        fixed_in_x = self.in_x & ~self.free
        in_x = labels @ self.sums[self.free] + self.sums[fixed_in_x].sum(axis=0)
        square = np.einsum("gr,gr->g", in_x, in_x)
        if estimator == "biased":
            biased: Array = (1 / n_x + 1 / n_y) ** 2 * square
            return biased
        pairs = self.sizes.astype(np.float64) ** 2
        pairs_x, pairs_y = n_x**2 - pairs[self.in_x].sum(), n_y**2 - pairs[~self.in_x].sum()
        own, slope = np.einsum("ar,ar->a", self.sums, self.sums), self.sums @ self.mean
        # What a block adds where it is in X, and where it is in Y.
        to_x = 2.0 * slope * ((n_x - self.sizes) / pairs_x - 1 / n_x) - own / pairs_x
        to_y = 2.0 * slope * ((n_y - self.sizes) / pairs_y - 1 / n_y) - own / pairs_y
        fixed = to_x[fixed_in_x].sum() + to_y[~self.in_x & ~self.free].sum()
        estimates: Array = (1 / pairs_x + 1 / pairs_y + 2 / (n_x * n_y)) * square + fixed
        estimates += labels @ to_x[self.free] + (1.0 - labels) @ to_y[self.free]
        return estimates

    def tolerance(self, estimator: Estimator) -> float:
        """Return how far rounding can move an estimate between two relabellings that are equal."""
        s_x = int(self.in_x.sum())
        label = label_matrix(s_x, len(self.in_x) - s_x, estimator)
        largest = float(np.square(self.means).sum(axis=1).max())
        return label.factor * tie_tolerance(largest, len(self.in_x), math.sqrt(label.squared_norm))

    def standard_error(self, unbiased: float) -> float:
        """Return that of sqrt(unbiased), nan where it is not positive.

        By the first-order term of its variance, as `discrepancy`, from the spread of the witness function between
        the blocks of a file.
        """
        if not unbiased > 0:
            return math.nan
        n_x, n_y = self.n
        difference = self.sums[self.in_x].sum(axis=0) * (1 / n_x + 1 / n_y)
        witness = self.means @ difference
        size = float(self.sizes[self.free][0])
        variance = sum(
            4.0 * size * float(witness[self.free & side].var(ddof=1)) / n
            for side, n in ((self.in_x, n_x), (~self.in_x, n_y))
        )
        return math.sqrt(variance / unbiased) / 2.0
