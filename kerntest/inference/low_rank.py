"""Kernel matrices of low rank under every relabelling: without n^2.

A smooth kernel on one column, or any kernel on few different rows, has a matrix of some tens of columns: K = G G' to
the last digits. With the columns of G and H centred, HKH = G G' and HLH = H H', and for every shift t

    <HKH, HLH>(t) = sum_ab ( sum_i G_ia H_{i+t,b} )^2

needs r_K r_L circular correlations of length n. U-centring takes out the diagonals d and e of both as well:

    <U(K), U(L)>(t) = <HKH, HLH>(t) - n/(n-2) sum_i d_i e_{i+t} + sum_i d_i sum_i e_i / ((n-1)(n-2))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kerntest.engines.base import PIECES, enough_for, in_pieces
from kerntest.matrices.factor import TOLERANCE, LowRank, low_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array, Kernel, Points

    Spectrum: TypeAlias = NDArray[np.complex128]

# One correlation costs about what one line of lags does on both sides: forming it, and its transform.
CORRELATIONS_PER_ROW = 1.0
# Entries of the correlations under way in one thread (4 MB).
HELD_ENTRIES = 2**19


def low_rank_pair(
    kernel_x: Kernel, x: Points, kernel_y: Kernel, y: Points, engine: Engine
) -> tuple[LowRank, LowRank] | None:
    """Return both matrices as products of few columns; None where the lags of whole matrices cost less."""

    def work(side: tuple[Kernel, Points]) -> LowRank | None:
        return low_rank(*side)

    first, second = engine.here.map(work, [(kernel_x, x), (kernel_y, y)])
    return (first, second) if first is not None and second is not None and worthwhile(first, second) else None


def worthwhile(first: LowRank, second: LowRank) -> bool:
    """Say whether the correlations cost less than the lags of both matrices."""
    return first.rank * second.rank <= CORRELATIONS_PER_ROW * len(first.columns)


def inner(first: LowRank, second: LowRank, *, hollow: bool) -> float:
    """Return <HKH, HLH>, or <U(K), U(L)> of the hollow matrices. Cost: O(n r_K r_L) time."""
    whole = float(np.square(first.columns.T @ second.columns).sum())
    if not hollow:
        return whole
    n = len(first.columns)
    crossed = float(first.diagonal @ second.diagonal)
    return whole - n / (n - 2) * crossed + _grand(first, second)


def _grand(first: LowRank, second: LowRank) -> float:
    n = len(first.columns)
    return float(first.diagonal.sum()) * float(second.diagonal.sum()) / ((n - 1) * (n - 2))


def low_rank_sums(
    first: LowRank,
    second: Sequence[LowRank],
    circle: int,
    *,
    hollow: bool,
    engine: Engine,
    progress: Progress | None = None,
    tolerance: float = TOLERANCE,
) -> Array:
    """Return the inner product of the centred matrices for every shift of every order of the second.

    Parameters
    ----------
    first : LowRank
        n rows in a random order.
    second : sequence of C LowRank
        The other matrix in each order of its rows; the first is the order of `first`.
    circle : int
        Rows n' that lie on the circle; the others keep their partner.
    hollow : bool
        U-centring instead of HKH.
    engine : Engine
    progress : callable, optional
    tolerance : float
        The share of the product of both traces that may be left out of a sum.

    Returns
    -------
    ndarray, shape (C, circle)

    Notes
    -----
    Cost: O(C r_K r_L n' log n') time, O((r_K + C r_L) n) memory. Sums have a fixed order.
    """
    engine = enough_for(engine, float(first.rank) * sum(moved.rank for moved in second) * circle)
    sums = _correlated(first, second, circle, engine=engine, progress=progress, tolerance=tolerance)
    return sums - _diagonal_part(first, second, circle) if hollow else sums


def _diagonal_part(first: LowRank, second: Sequence[LowRank], circle: int) -> Array:
    """Return what U-centring takes out of the sums, shape (C, circle): the diagonals of both matrices."""
    n = len(first.columns)
    part = np.empty((len(second), circle))
    ahead = np.conj(np.fft.rfft(first.diagonal[:circle]))
    for order, moved in enumerate(second):
        crossed = np.fft.irfft(ahead * np.fft.rfft(moved.diagonal[:circle]), n=circle)
        crossed += float(first.diagonal[circle:] @ moved.diagonal[circle:])
        part[order] = n / (n - 2) * crossed - _grand(first, moved)
    return part


def correlations_needed(first: LowRank, second: LowRank, tolerance: float) -> NDArray[np.intp]:
    """Return with how many columns of H, from the longest on, each column of G is to be correlated.

    A squared correlation is at most the product of both squared lengths: the pairs with the smallest products are left
    out as long as they add up to no more than a share of the product of both traces. Of columns whose lengths decay
    geometrically that is half of them.
    """
    lengths, others = first.lengths, np.sort(second.lengths)[::-1]
    bounds = np.outer(lengths, others)
    ordered = np.sort(bounds, axis=None)
    left_out = np.searchsorted(np.cumsum(ordered), tolerance * lengths.sum() * others.sum(), side="right")
    least = ordered[left_out] if left_out < len(ordered) else np.inf
    return np.asarray((bounds >= least).sum(axis=1), dtype=np.intp)


def _correlated(
    first: LowRank,
    second: Sequence[LowRank],
    circle: int,
    *,
    engine: Engine,
    progress: Progress | None,
    tolerance: float,
) -> Array:
    """Return <HKH, HLH> for every shift of every order, shape (C, circle)."""
    needed = correlations_needed(first, second[0], tolerance).tolist()
    longest = np.argsort(-second[0].lengths, kind="stable")
    others = [moved.columns[:, longest] for moved in second]
    left = np.conj(np.fft.rfft(np.ascontiguousarray(first.columns[:circle].T), axis=1))
    right = [np.fft.rfft(np.ascontiguousarray(columns[:circle].T), axis=1) for columns in others]
    fixed = first.columns[circle:], [columns[circle:] for columns in others]
    height = max(1, HELD_ENTRIES // circle)
    send = engine.send
    work = _Correlations(send(left), [*map(send, right)], (send(fixed[0]), [*map(send, fixed[1])]), circle)
    pieces = [
        (order, piece)
        for order in range(len(second))
        for piece in in_pieces(
            [
                (a, slice(start, min(start + height, count)))
                for a, count in enumerate(needed)
                for start in range(0, count, height)
            ],
            max(1, PIECES // len(second)),
        )
    ]
    sums = np.zeros((len(second), circle))
    for (order, _), found in zip(pieces, engine.map(work, pieces, progress), strict=True):
        sums[order] += found
    return sums


@dataclass(frozen=True, slots=True, eq=False)
class _Correlations:
    """The work on some columns of the first factor, each with some of the second's: sums of squared correlations.

    Parameters
    ----------
    left : ndarray, shape (r_K, circle // 2 + 1)
        Conjugate transforms of the columns of G.
    right : sequence of ndarray, shape (r_L, circle // 2 + 1)
        Transforms of the columns of H in every order.
    fixed : (ndarray, sequence of ndarray)
        The rows of G, and of H in every order, that keep their partner.
    circle : int
    """

    left: Spectrum
    right: Sequence[Spectrum]
    fixed: tuple[Array, Sequence[Array]]
    circle: int

    def __call__(self, piece: tuple[int, Sequence[tuple[int, slice]]]) -> Array:
        """Return the sums for every shift of one order over pairs (column of G, columns of H), shape (circle,)."""
        order, pairs = piece
        first, second = self.fixed[0], self.fixed[1][order]
        total = np.zeros(self.circle)
        for a, some in pairs:
            crossed = np.fft.irfft(self.left[a] * self.right[order][some], n=self.circle, axis=1)
            if len(first):
                crossed += (first[:, a] @ second[:, some])[:, None]
            np.square(crossed, out=crossed)
            total += crossed.sum(axis=0)
        return total
