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
    G = np.empty((n, 0))
    for _ in range(ROUNDS):
        K = np.asarray(matrix.block(candidates, candidates), dtype=np.float64)
        if G.shape[1]:
            K -= G[candidates] @ G[candidates].T
        L, order, rank, _info = lapack.dpstrf(np.asfortranarray(K), lower=1, tol=tolerance)
        if rank == 0:
            break
        if G.shape[1] + rank > most:
            return None
        pivots = candidates[order[:rank] - 1]
        columns = np.asarray(matrix.block(slice(None), pivots), dtype=np.float64)
        if G.shape[1]:
            columns -= G @ G[pivots].T
        added = blas.dtrsm(
            1.0, np.asfortranarray(L[:rank, :rank]), np.asfortranarray(columns), side=1, lower=1, trans_a=1
        )
        residual -= np.einsum("ij,ij->i", added, added)
        G = np.ascontiguousarray(np.hstack([G, added]))
        missed = np.flatnonzero(residual > tolerance)
        if not len(missed):
            return G
        worst = np.argsort(-residual[missed], kind="stable")[:WORST]
        candidates = missed[worst]
    return None
