"""A factor of low rank of a large matrix: pivots from a sample, extended to all rows, then to the rows that it missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import blas, lapack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array
    from kerntest.learning.solvers.matrices import Matrix

WORST, ROUNDS = 200, 8


def pivoted_factor(matrix: Matrix, tolerance: float, most: int, sample: NDArray[np.intp]) -> Array | None:
    """Return G with 0 <= (K - G G')_ii <= tolerance; None if that takes more than `most` columns.

    Pivots come from the Cholesky factorisation of a sample; then the rows with the largest residual take part, until
    none is left (Fine and Scheinberg 2001, without the loop over columns).

    Notes
    -----
    Cost: O(n r^2) time in few matrix products, O(n r) memory.
    """
    n = matrix.n
    candidates = sample
    residual = matrix.diagonal.copy()
    # Only what is written is ever in memory.
    G, rank = np.empty((n, most)), 0
    for _ in range(ROUNDS):
        K = np.asarray(matrix.block(candidates, candidates), dtype=np.float64)
        known = G[candidates, :rank]
        K -= known @ known.T
        L, order, added, _info = lapack.dpstrf(K.T, lower=1, tol=tolerance, overwrite_a=1)
        if added == 0:
            break
        if rank + added > most:
            return None
        pivots = candidates[order[:added] - 1]
        columns = np.asarray(matrix.block(slice(None), pivots), dtype=np.float64)
        if rank:
            columns -= G[:, :rank] @ G[pivots, :rank].T
        # In place: the transpose is in the order that BLAS wants.
        blas.dtrsm(1.0, L[:added, :added], columns.T, lower=1, overwrite_b=1)
        residual -= np.einsum("ij,ij->i", columns, columns)
        G[:, rank : rank + added] = columns
        rank += added
        missed = np.flatnonzero(residual > tolerance)
        if not len(missed):
            return G[:, :rank]
        worst = np.argsort(-residual[missed], kind="stable")[:WORST]
        candidates = missed[worst]
    return None
