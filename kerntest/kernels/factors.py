"""Kernel matrices as products of a few columns, K ~ G G', without forming them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from kerntest.kernels.base import DensePairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array, Kernel, Points

# The first pivots are taken one at a time: the rows that stand out most are then often neighbours, one of which makes
# the others superfluous. Later several together, which is one matrix product instead of many.
SINGLE_PIVOTS = 64
TOGETHER = 32
# Room for so many columns at first; twice as many when it is full.
ROOM = 128
# A row is taken along with others while it stands out at least so much of what the first of them does.
STANDS_OUT = 0.5
# Diagonals below minus this share of the largest are no rounding: the kernel is not positive definite.
NEGATIVE = 1e-8
# Diagonals that differ by less than this share are equal to rounding, until hardly anything is left of them.
EQUAL = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A matrix of low rank near a kernel matrix: K ~ G G', and K - G G' is positive semi-definite.

    Parameters
    ----------
    columns : ndarray, shape (n, r)
        G.
    residual : float
        tr(K - G G'), which bounds every entry and every eigenvalue of the difference.
    complete : bool
        Whether the residual is within the tolerance. Never for a kernel that is not known to be positive definite: a
        small trace then says nothing of the other entries.
    """

    columns: Array
    residual: float
    complete: bool


def kernel_factor(kernel: Kernel, points: Points, *, tolerance: float = 1e-12, most: int = 1000) -> Factor:
    """Return an incomplete Cholesky factor of a kernel matrix.

    With d the diagonal of K - G G', the next pivot is the row i with the largest d_i; its column of G is
    (K_.i - G G_i.') / sqrt(d_i). Fine and Scheinberg (2001), "Efficient SVM training using low-rank kernel
    representations"; Bach and Jordan (2002), "Kernel independent component analysis".

    Parameters
    ----------
    kernel : Kernel
    points : Points
        n rows.
    tolerance : float
        The share of the trace of K at which to stop.
    most : int
        The largest number of columns.

    Returns
    -------
    Factor
        Not complete if `most` columns are too few, if the kernel overflows, or where a diagonal turns negative, as it
        does for kernels that are not positive definite.

    Notes
    -----
    Cost: O(n r (p + r)) time, O(n r) memory; K is never formed.
    """
    n = len(points)
    left = kernel.diagonal(points).astype(np.float64)
    trace, largest = float(left.sum()), float(left.max(initial=0.0))
    most = min(most, n)
    transposed = np.empty((min(most, ROOM), n))
    rank, width = 0, 1
    while math.isfinite(trace) and rank < most and left.sum() > tolerance * trace:
        width = min(width, most - rank)
        if rank + width > len(transposed):
            transposed = np.concatenate([transposed, np.empty((min(rank, most - rank), n))])
        candidates = _largest(left, width)
        wanted = _kernel_rows(kernel, points, candidates)
        wanted -= transposed[:rank, candidates].T @ transposed[:rank]
        pivots, found = _eliminate(wanted, candidates, left[candidates])
        transposed[rank : rank + len(pivots)] = found
        rank += len(pivots)
        left -= np.einsum("rn,rn->n", found, found)
        left[pivots] = 0.0
        if not left.min() > -NEGATIVE * largest:
            break
        np.maximum(left, 0.0, out=left)
        if rank >= SINGLE_PIVOTS:
            # Twice as many next time if all of them served.
            width = min(2 * width, TOGETHER) if len(pivots) == width else len(pivots)
    residual = float(left.sum())
    complete = kernel.positive_definite and math.isfinite(trace) and left.min(initial=0.0) >= 0.0
    return Factor(transposed[:rank].T.copy(), residual, bool(complete and residual <= tolerance * trace))


def _largest(left: Array, width: int) -> NDArray[np.intp]:
    """Return the rows with the largest diagonals; of those equal to rounding the first, whatever the processor."""
    least = np.partition(left, len(left) - width)[len(left) - width]
    larger = np.flatnonzero(left > least * (1.0 + EQUAL))
    tied = np.flatnonzero((left >= least * (1.0 - EQUAL)) & (left <= least * (1.0 + EQUAL)))
    return np.concatenate([larger, tied[: width - len(larger)]])


def centred(columns: Array) -> Array:
    """Return the columns minus their means: with K ~ G G', that is HG, and HKH ~ HG (HG)'.

    Parameters
    ----------
    columns : ndarray, shape (n, r)

    Returns
    -------
    ndarray, shape (n, r)
    """
    moved: Array = columns - columns.mean(axis=0)
    return moved


def _kernel_rows(kernel: Kernel, points: Points, rows: NDArray[np.intp]) -> Array:
    """Return some rows of the kernel matrix, shape (len(rows), n)."""
    # One at a time as slices, which share what the points have derived from all rows.
    single = [kernel.evaluate(DensePairs(points.take(slice(i, i + 1)), points)) for i in rows.tolist()]
    found = np.concatenate(single)
    # A row's distance to itself may be rounding, which a narrow kernel would take for a distance.
    found[np.arange(len(rows)), rows] = kernel.diagonal(points.take(rows))
    return found


def _eliminate(wanted: Array, candidates: NDArray[np.intp], left: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the pivots among the candidates, at least one, and the columns of G that belong to them, as rows.

    Parameters
    ----------
    wanted : ndarray, shape (c, n)
        The rows of K - G G' that belong to the candidates.
    candidates : ndarray of int, shape (c,)
    left : ndarray, shape (c,)
        Their diagonals.
    """
    if len(candidates) == 1:
        return candidates, wanted / np.sqrt(left)
    block = wanted[:, candidates]
    np.fill_diagonal(block, left)
    lower, order, rank, _ = dpstrf(block, tol=STANDS_OUT * left.max(), lower=1)
    kept = order[:rank] - 1
    found: Array = solve_triangular(lower[:rank, :rank], wanted[kept], lower=True, check_finite=False)
    return candidates[kept], found
