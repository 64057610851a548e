"""The witness function: where the samples differ.

w(z) = mean_x k(z, x) - mean_y k(z, y) is positive where X is denser and negative where Y is; MMD is its norm (Gretton
et al. 2012, section 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.kernels.base import DensePairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.inference.sample import Sample
    from kerntest.kernels.base import Array, Kernel, Points

# Entries of one block of kernel values.
BLOCK = 2**20


def witness_at(kernel: Kernel, sample: Sample, points: Points) -> Array:
    """Return the witness function at any points, scaled like the sample.

    Parameters
    ----------
    kernel : Kernel
    sample : Sample
        n rows.
    points : Points
        m points.

    Returns
    -------
    ndarray, shape (m,)

    Notes
    -----
    Cost: O(m n p) time, 8 MB.
    """
    in_x = sample.labels == 1
    weights = np.where(in_x, 1.0 / in_x.sum(), -1.0 / (~in_x).sum())
    values = np.empty(len(points))
    step = max(1, BLOCK // len(sample.points))
    for start in range(0, len(points), step):
        block = DensePairs(points.take(slice(start, start + step)), sample.points)
        values[start : start + step] = kernel.evaluate(block) @ weights
    return values


@dataclass(frozen=True, slots=True, eq=False)
class WitnessTable:
    """The leave-one-out witness function at every row, in the order of the tables, X first.

    Parameters
    ----------
    sample : tuple of str, of length n
        "x" or "y".
    row : ndarray of int, shape (n,)
        Data row in its own table, counted from 1, after rows with missing values were dropped.
    witness : ndarray, shape (n,)
    """

    sample: tuple[str, ...]
    row: NDArray[np.intp]
    witness: Array


def witness_table(sample: Sample, witness: Array) -> WitnessTable:
    """Return the witness values of a sample in the order of its tables.

    Parameters
    ----------
    sample : Sample
    witness : ndarray, shape (n,)
        In the order of the sample.
    """
    order = np.lexsort([sample.origin, 1 - sample.labels.astype(np.int64)])
    names = tuple("x" if label else "y" for label in sample.labels[order])
    return WitnessTable(names, sample.origin[order] + 1, witness[order])
