"""The independence statistic by direct sums: both estimators of HSIC and the effect size.

With A and B the centred kernel matrices of x and y (Gretton et al. 2005, 2008; Song et al. 2012, eq. 5)

    biased     HSIC_b = <HKH, HLH> / n^2
    unbiased   HSIC_u = <U(K), U(L)> / (n (n - 3))

Everything comes from one pass over the tiles of both matrices, or from factors of low rank where they have them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.base import enough_for
from kerntest.inference.low_rank import inner, low_rank_pair
from kerntest.kernels.additive import is_additive
from kerntest.kernels.base import Array, DensePairs, Kernel, Points
from kerntest.matrices.factor import FEW_ROWS
from kerntest.matrices.matrix import TILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.sides import Estimator
    from kerntest.matrices.factor import LowRank
    from kerntest.matrices.matrix import Centring


@dataclass(frozen=True, slots=True)
class Dependence:
    """How dependent two variables are under one pair of kernels.

    Parameters
    ----------
    unbiased, biased : float
        Both estimates of HSIC; the unbiased one may be negative.
    effect_size : float
        sqrt(max(r, 0)), r = <A, B> / sqrt(<A, A> <B, B>) with both matrices U-centred: a correlation between the
        two kernel matrices, corrected for chance.
    """

    unbiased: float
    biased: float
    effect_size: float


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """Sums over two kernel matrices K and L without their diagonals.

    Parameters
    ----------
    rows_k, rows_l : ndarray, shape (n,)
        Row sums.
    product, square_k, square_l : float
        sum_ij K_ij L_ij, sum K_ij^2, sum L_ij^2.
    mixed_square : float
        sum_ij (A_ij B_ij)^2 over i != j for the centrings A and B, where they were given; else 0.
    """

    rows_k: Array
    rows_l: Array
    product: float
    square_k: float
    square_l: float
    mixed_square: float


def factor(n: int, estimator: Estimator) -> float:
    """Return the number by which <A, B> is the estimate of HSIC."""
    return 1.0 / n**2 if estimator == "biased" else 1.0 / (n * (n - 3))


def dependence(kernel_x: Kernel, x: Points, kernel_y: Kernel, y: Points, engine: Engine) -> Dependence:
    """Return both estimates of HSIC and the effect size.

    Parameters
    ----------
    kernel_x, kernel_y : Kernel
    x, y : Points
        n >= 4 rows each; row i of x belongs to row i of y.
    engine : Engine

    Notes
    -----
    Cost: O(n^2 p / 2) time for p columns in all, O(n) memory; of matrices of low ranks r_x and r_y, O(n (r_x + r_y)^2).
    """
    n = len(x)
    # Of few rows the factors of an additive kernel, several for each column, take longer to find than the sums.
    additive = is_additive(kernel_x) or is_additive(kernel_y)
    pair = None if additive and n <= FEW_ROWS else low_rank_pair(kernel_x, x, kernel_y, y, engine)
    if pair is not None:
        # Through the engine, which holds BLAS to one thread: for so small products more of them only wait.
        return next(engine.here.map(lambda both: low_rank_dependence(*both), [pair]))
    sums = pair_sums(kernel_x, x, kernel_y, y, engine)
    on_x, on_y = kernel_x.diagonal(x), kernel_y.diagonal(y)
    hollow = u_centred(sums.product, sums.rows_k, sums.rows_l)
    full_x, full_y = sums.rows_k + on_x, sums.rows_l + on_y
    biased = sums.product + float(on_x @ on_y) - 2.0 / n * float(full_x @ full_y)
    biased += float(full_x.sum()) * float(full_y.sum()) / n**2
    norm_x = u_centred(sums.square_k, sums.rows_k, sums.rows_k)
    norm_y = u_centred(sums.square_l, sums.rows_l, sums.rows_l)
    return Dependence(
        unbiased=factor(n, "unbiased") * hollow,
        biased=factor(n, "biased") * biased,
        effect_size=effect_size(hollow, norm_x, norm_y),
    )


def low_rank_dependence(first: LowRank, second: LowRank) -> Dependence:
    """Return the same from factors of both matrices. Cost: O(n (r_x + r_y)^2) time."""
    n = len(first.columns)
    hollow = inner(first, second, hollow=True)
    norm_x, norm_y = inner(first, first, hollow=True), inner(second, second, hollow=True)
    return Dependence(
        unbiased=factor(n, "unbiased") * hollow,
        biased=factor(n, "biased") * inner(first, second, hollow=False),
        effect_size=effect_size(hollow, norm_x, norm_y),
    )


def effect_size(product: float, norm_x: float, norm_y: float) -> float:
    """Return sqrt(max(r, 0)) for r = product / sqrt(norm_x norm_y); 0 where a norm vanishes."""
    scale = math.sqrt(max(norm_x, 0.0)) * math.sqrt(max(norm_y, 0.0))
    return math.sqrt(min(max(product / scale, 0.0), 1.0)) if scale > 0 else 0.0


def u_centred(product: float, rows_k: Array, rows_l: Array) -> float:
    """Return <U(K), U(L)> from sums over the matrices without their diagonals (Szekely and Rizzo 2014)."""
    n = len(rows_k)
    total = float(rows_k.sum()) * float(rows_l.sum())
    return product - 2.0 / (n - 2) * float(rows_k @ rows_l) + total / ((n - 1) * (n - 2))


def pair_sums(
    kernel_x: Kernel,
    x: Points,
    kernel_y: Kernel,
    y: Points,
    engine: Engine,
    *,
    centrings: tuple[Centring, Centring] | None = None,
    progress: Progress | None = None,
) -> PairSums:
    """Return sums over two kernel matrices in one pass over their tiles, each unordered pair of rows once.

    Parameters
    ----------
    kernel_x, x, kernel_y, y, engine
        As in `dependence`.
    centrings : (Centring, Centring), optional
        Of K and L, for `mixed_square`.
    progress : callable, optional

    Notes
    -----
    Cost: O(n^2 p / 2) time, O(n) memory for each strip under way. Sums have a fixed order.
    """
    n = len(x)
    sides = ((kernel_x, _by_columns(x)), (kernel_y, _by_columns(y)))
    # A strip of a small matrix is one tile high; of a large one a few, so that strips stay few.
    height = TILE * max(1, n // (64 * TILE))
    starts = list(range(0, n, height))

    def strip(start: int) -> PairSums:
        return _strip(sides, start, min(start + height, n), n, centrings)

    rows = [np.zeros(n), np.zeros(n)]
    totals = np.zeros(4)
    engine = enough_for(engine, n**2)
    for start, part in zip(starts, engine.map(strip, starts, progress), strict=True):
        rows[0][start:] += part.rows_k
        rows[1][start:] += part.rows_l
        totals += (part.product, part.square_k, part.square_l, part.mixed_square)
    return PairSums(rows[0], rows[1], *(float(total) for total in totals))


def _by_columns(points: Points) -> Points:
    """Return the rows with columns side by side in memory, as the tiles walk down them."""
    return Points(np.asfortranarray(points.numeric), np.asfortranarray(points.codes))


def _strip(
    sides: Sequence[tuple[Kernel, Points]], start: int, stop: int, n: int, centrings: tuple[Centring, Centring] | None
) -> PairSums:
    """Return the sums over the rows [start, stop) against themselves and all rows after them."""
    rows = [np.zeros(n - start), np.zeros(n - start)]
    totals = np.zeros(4)
    for top in range(start, stop, TILE):
        down = slice(top, min(top + TILE, stop))
        here = slice(down.start - start, down.stop - start)
        for left in range(top, n, TILE):
            across = slice(left, min(left + TILE, n))
            there = slice(across.start - start, across.stop - start)
            K, L = (kernel.evaluate(DensePairs(points.take(down), points.take(across))) for kernel, points in sides)
            # A tile off the diagonal stands for its mirror image too.
            mirrored = left > top
            for total, tile in zip(rows, (K, L), strict=True):
                if not mirrored:
                    np.fill_diagonal(tile, 0.0)
                total[here] += tile.sum(axis=1)
                if mirrored:
                    total[there] += tile.sum(axis=0)
            mixed = 0.0 if centrings is None else _mixed_square((K, L), centrings, down, across)
            totals += (1 + mirrored) * np.array([np.vdot(K, L), np.vdot(K, K), np.vdot(L, L), mixed])
    return PairSums(rows[0], rows[1], *(float(total) for total in totals))


def _mixed_square(
    tiles: tuple[Array, Array], centrings: tuple[Centring, Centring], down: slice, across: slice
) -> float:
    """Return the sum of (A_ij B_ij)^2 over one tile, its diagonal left out; the tiles are changed in place no more."""
    A, B = (
        tile - centring.row[down, None] - (centring.row[across] - centring.grand)
        for tile, centring in zip(tiles, centrings, strict=True)
    )
    A *= B
    if down.start == across.start:
        np.fill_diagonal(A, 0.0)
    return float(np.vdot(A, A))
