"""The invariants of a centred kernel matrix of low rank, without n^2.

With M = W C W' for W of shape (n, q), and D its diagonal:

    sum_ij M_ij^2 = tr(N N),  tr M^3 = tr(N N N)    for N = C W'W
    sum_ij M_ij^3 = sum_abc T_abc^2                 for T_abc = sum_i W_ia W_ib W_ic and C = I, signs elsewhere

HKH = G G' is one such matrix. Its U-centring A is another but for its diagonal, which is zero: with the diagonal d of
G G' and row means r = -d / (n - 2), A = G G' - r 1' - 1 r' + g 1 1' beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.nulls.moments import Invariants

if TYPE_CHECKING:
    from kerntest.kernels.base import Array
    from kerntest.matrices.factor import LowRank

# The cubes cost q^3 products a row: more than the n kernel values that they save beyond so many per row.
CUBES_PER_ROW = 40
# A cubic trace with a doubt beyond this share of |A|^3 is computed otherwise.
CANCELLED = 1e-10


def low_rank_invariants(factor: LowRank, *, hollow: bool) -> Invariants | None:
    """Return the invariants of the centring of a kernel matrix.

    Parameters
    ----------
    factor : LowRank
        HKH = G G' of n >= 4 rows and rank r.
    hollow : bool
        U-centring instead of HKH.

    Returns
    -------
    Invariants or None
        None where a sweep over the whole matrix costs less, or where centring takes nearly all of the matrix away and
        the factor has too few digits left.

    Notes
    -----
    Cost: O(n r^3) time, O(n r) memory.
    """
    n, rank = factor.columns.shape
    if rank**3 > CUBES_PER_ROW * n:
        return None
    return _of_hollow(factor) if hollow else _of_double_centred(factor)


def trace_cube(factor: LowRank, *, hollow: bool) -> tuple[float, float]:
    """Return tr A^3 of the centring of a kernel matrix, and how far rounding can move it. Cost: O(n r^2) time."""
    eps = float(np.finfo(np.float64).eps)
    if not hollow:
        S = factor.columns.T @ factor.columns
        cube = float(np.vdot(S @ S, S))
        return cube, eps * abs(cube)
    terms = _hollow_cube(_Hollow.of(factor))
    return sum(terms), eps * sum(abs(term) for term in terms)


def _of_double_centred(factor: LowRank) -> Invariants:
    """Return the invariants of HKH = G G'."""
    G, d = factor.columns, factor.diagonal
    S = G.T @ G
    return Invariants(
        trace=float(d.sum()),
        trace_square=float(np.vdot(S, S)),
        diagonal_square=float(d @ d),
        diagonal_cube=float((d**3).sum()),
        # sum_i d_i sum_j A_ij^2 with sum_j A_ij^2 = G_i S G_i'.
        diagonal_with_square=float(d @ np.einsum("ir,ir->i", G @ S, G)),
        diagonal_form=float(np.square(G.T @ d).sum()),
        trace_cube=trace_cube(factor, hollow=False)[0],
        entry_cubes=_entry_cubes(G, np.ones(G.shape[1])),
    )


def _of_hollow(factor: LowRank) -> Invariants | None:
    """Return the invariants of the U-centring, whose diagonal is zero."""
    A = _Hollow.of(factor)
    square = float(np.trace(A.N @ A.N)) - float(A.diagonal @ A.diagonal)
    cube, doubt = trace_cube(factor, hollow=True)
    if not doubt <= CANCELLED * max(square, 0.0) ** 1.5:
        return None
    values, vectors = np.linalg.eigh(A.C[-2:, -2:])
    signed = np.column_stack([A.W[:, :-2], A.W[:, -2:] @ (vectors * np.sqrt(np.abs(values)))])
    signs = np.concatenate([np.ones(A.W.shape[1] - 2), np.sign(values)])
    entry_cubes = _entry_cubes(signed, signs) - float((A.diagonal**3).sum())
    return Invariants(0.0, square, 0.0, 0.0, 0.0, 0.0, cube, entry_cubes)


@dataclass(frozen=True, slots=True, eq=False)
class _Hollow:
    """U(K) = W C W' minus its diagonal; N = C W'W."""

    W: Array
    C: Array
    N: Array
    diagonal: Array

    @classmethod
    def of(cls, factor: LowRank) -> _Hollow:
        """Return it from HKH = G G'."""
        n, rank = factor.columns.shape
        row = -factor.diagonal / (n - 2)
        grand = float(row.sum()) / (n - 1)
        # r 1' = (r t)(1/t)', with both of one length: where all entries are tiny, sums of cubes of r +- 1 would cancel.
        length = float(np.linalg.norm(row))
        t = np.sqrt(np.sqrt(n) / length) if length > 0 else 1.0
        W = np.column_stack([factor.columns, row * t, np.full(n, 1.0 / t)])
        C = np.eye(rank + 2)
        C[rank:, rank:] = [[0.0, -1.0], [-1.0, grand * t**2]]
        return cls(W, C, C @ (W.T @ W), factor.diagonal - 2.0 * row + grand)


def _hollow_cube(A: _Hollow) -> tuple[float, float, float]:
    """Return the terms of tr (M - D)^3 = tr M^3 - 3 tr M^2 D + 2 tr D^3, with (M^2)_ii = W_i N C W_i'."""
    on_square = np.einsum("ir,ir->i", A.W @ (A.N @ A.C), A.W)
    return (
        float(np.trace(A.N @ A.N @ A.N)),
        -3.0 * float(on_square @ A.diagonal),
        2.0 * float((A.diagonal**3).sum()),
    )


def _entry_cubes(W: Array, signs: Array) -> float:
    """Return sum_ij M_ij^3 for M = W diag(signs) W'.

    That is sum_abc s_a s_b s_c T_abc^2, T_abc = sum_i W_ia W_ib W_ic. T has no order: of each a only b, c >= a are
    computed, and stand for all orders of the three.
    """
    across = np.ascontiguousarray(W.T)
    total = 0.0
    for a, (column, sign) in enumerate(zip(across, signs, strict=True)):
        squares = np.square((across[a:] * column) @ across[a:].T)
        squares *= sign * np.outer(signs[a:], signs[a:])
        # Three orders of each (b, c), or of the (a, c) that are met twice; one of (a, a, a).
        squares[1:, 1:] *= 3.0
        squares[0, 1:] *= 1.5
        squares[1:, 0] *= 1.5
        total += float(squares.sum())
    return total
