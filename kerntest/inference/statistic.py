"""The one statistic <A, B> of two centred matrices: HSIC, and MMD^2, whose second matrix is that of the label.

    biased     A = HKH     HSIC_b = <A, B> / n^2            MMD_b^2 = (1/m + 1/(n-m))^2 <A, B>
    unbiased   A = U(K)    HSIC_u = <A, B> / (n (n - 3))    MMD_u^2 = (1/(m(m-1)) + 1/((n-m)(n-m-1)) + 2/(m(n-m))) <A, B>

(Gretton et al. 2005, 2008, 2012; Song et al. 2012, eq. 5). With a = 1 for the m rows of X and 0 for the others, L = a a' is
the matrix of the label; centring is an orthogonal projection, so that one of the two matrices may stay as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.engine import enough_for
from kerntest.kernels.base import Array, DensePairs, Kernel, Points
from kerntest.kernels.groups import is_additive
from kerntest.matrices.factor import FEW_ROWS, low_rank, low_rank_factor
from kerntest.matrices.matrix import TILE, sweep

if TYPE_CHECKING:
    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.sides import Estimator, Labels
    from kerntest.matrices.factor import LowRank
    from kerntest.matrices.matrix import Centring

# One correlation of two columns of factors costs about what one line of lags does on both sides.
CORRELATIONS_PER_ROW = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """What kernels measure: both estimates of HSIC or MMD^2 (the unbiased one may be negative), and the effect size.

    That is sqrt(max(r, 0)), r = <A, B> / sqrt(<A, A> <B, B>) with both matrices U-centred: a correlation between the two
    matrices, corrected for chance. Of two samples also the standard error of sqrt(unbiased), by the first-order term of
    its variance, which means nothing near 0 (nan where unbiased <= 0), and the witness function mean_x k(z, x) -
    mean_y k(z, y) at every row z, the row itself left out: positive where X is denser.
    """

    unbiased: float
    biased: float
    effect_size: float
    standard_error: float = math.nan
    witness: Array = field(default_factory=lambda: np.empty(0))

    def estimate(self, estimator: Estimator) -> float:
        """Return one of both estimates."""
        return self.unbiased if estimator == "unbiased" else self.biased


# The label


@dataclass(frozen=True, slots=True)
class LabelMatrix:
    """The centred matrix B of the label, which has one value for each kind of pair.

    `between` has B_ij for i != j by the number of the two rows that belong to X: none, one, both; `diagonal` B_ii for a
    row of Y and of X. The estimate of MMD^2 is `factor` * <K, B>.
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


def discrepancy(kernel: Kernel, points: Points, labels: Labels, engine: Engine) -> Effect:
    """Return how far two samples are apart: 1 is the label of X, 0 that of Y; at least two rows of each.

    Cost: O(n^2 p / 2) time, O(n) memory; O(n r^2) time for a matrix of low rank r.
    """
    in_x = labels == 1
    n_x, n_y = int(in_x.sum()), int((~in_x).sum())
    product, total_square = _swept(kernel, points, np.column_stack([in_x, np.ones(n_x + n_y)]), engine)
    to_x, to_all = product.T
    to_y = to_all - to_x
    diagonal = kernel.diagonal(points)
    within_x, within_y, between = to_x[in_x].sum(), to_y[~in_x].sum(), to_y[in_x].sum()
    unbiased = within_x / (n_x * (n_x - 1)) + within_y / (n_y * (n_y - 1)) - 2.0 * between / (n_x * n_y)
    biased = (
        (within_x + diagonal[in_x].sum()) / n_x**2
        + (within_y + diagonal[~in_x].sum()) / n_y**2
        - 2.0 * between / (n_x * n_y)
    )
    if kernel.positive_definite:
        biased = max(biased, 0.0)  # but for rounding it is
    # The witness function at each row, left out of its own mean: its spread within each sample drives the error.
    witness = np.where(in_x, to_x / (n_x - 1) - to_y / n_y, to_x / n_x - to_y / (n_y - 1))
    variance = 4.0 * (witness[in_x].var() / n_x + witness[~in_x].var() / n_y)
    error = math.sqrt(variance / unbiased) / 2.0 if unbiased > 0 else math.nan
    effect = label_effect(unbiased, (n_x, n_y), total_square, to_all @ to_all, to_all.sum())
    return Effect(float(unbiased), float(biased), effect, error, witness)


def label_effect(
    unbiased: float, sizes: tuple[int, int], total_square: float, squared_rows: float, total: float
) -> float:
    """Return the effect size of two samples.

    From sums over the kernel matrix without its diagonal: of its squares, its squared row sums, and all entries.
    """
    n = sum(sizes)
    label = label_matrix(*sizes, "unbiased")
    norm = total_square - 2.0 / (n - 2) * squared_rows + total**2 / ((n - 1) * (n - 2))
    return effect_size(unbiased / label.factor, norm, label.squared_norm)


def effect_of_levels(K: Array | None, counts_x: Array, counts_y: Array) -> float:
    """Return the effect size between samples of d different rows, which X and Y have so often; O(d^2) time.

    K is a kernel between the different rows, with k(x, x) = 1; None for delta, whose matrix has ones on its diagonal only.
    """
    counts = counts_x + counts_y
    n_x, n_y = int(counts_x.sum()), int(counts_y.sum())
    to_x, to_all = (counts_x, counts - 1.0) if K is None else (K @ counts_x, K @ counts - 1.0)
    squares = counts if K is None else np.square(K) @ counts
    within_x, between = counts_x @ to_x - n_x, counts_y @ to_x
    within_y = counts_y @ to_all - between
    unbiased = within_x / (n_x * (n_x - 1)) + within_y / (n_y * (n_y - 1)) - 2.0 * between / (n_x * n_y)
    total_square = float(counts @ squares) - n_x - n_y
    return label_effect(float(unbiased), (n_x, n_y), total_square, float(counts @ to_all**2), float(counts @ to_all))


def _swept(kernel: Kernel, points: Points, vectors: Array, engine: Engine) -> tuple[Array, float]:
    """Return the product of the kernel matrix without its diagonal with some vectors, and the sum of its squares."""
    # Through the engine, which holds BLAS to one thread: for so small products more of them only wait.
    alone = engine.here.map(lambda _: _by_factor(kernel, points, vectors), [0])
    found = next(alone) if len(points) > FEW_ROWS else None
    if found is not None:
        return found
    swept = sweep(kernel, points, vectors, engine)
    return swept.product, swept.total_square


def _by_factor(kernel: Kernel, points: Points, vectors: Array) -> tuple[Array, float] | None:
    """Return the same from a factor of low rank; None where the matrix has none."""
    factor = low_rank_factor(kernel, points)
    if factor is None:
        return None
    G = factor.columns
    on_diagonal = np.einsum("ir,ir->i", G, G)
    total_square = float(np.square(G.T @ G).sum()) - float(on_diagonal @ on_diagonal)
    return G @ (G.T @ vectors) - on_diagonal[:, None] * vectors, total_square


# Two kernels


def factor(n: int, estimator: Estimator) -> float:
    """Return the number by which <A, B> is the estimate of HSIC."""
    return 1.0 / n**2 if estimator == "biased" else 1.0 / (n * (n - 3))


def dependence(kernel_x: Kernel, x: Points, kernel_y: Kernel, y: Points, engine: Engine) -> Effect:
    """Return how two variables depend; row i of x belongs to row i of y, n >= 4.

    Cost: O(n^2 p / 2) time for p columns in all, O(n) memory; of matrices of low ranks r_x and r_y, O(n (r_x + r_y)^2).
    """
    # Of few rows the factors of an additive kernel, several for each column, take longer to find than the sums.
    additive = is_additive(kernel_x) or is_additive(kernel_y)
    pair = None if additive and len(x) <= FEW_ROWS else low_rank_pair(kernel_x, x, kernel_y, y, engine)
    if pair is not None:
        # Through the engine, which holds BLAS to one thread: for so small products more of them only wait.
        return next(engine.here.map(lambda both: low_rank_dependence(*both), [pair]))
    sums = pair_sums(kernel_x, x, kernel_y, y, engine)
    return dependences(
        np.array([[sums.product]]),
        (sums.rows_k[None], sums.rows_l[None]),
        (np.array([sums.square_k]), np.array([sums.square_l])),
        (kernel_x.diagonal(x)[None], kernel_y.diagonal(y)[None]),
    )[0][0]


def dependences(
    product: Array, rows: tuple[Array, Array], squares: tuple[Array, Array], diagonals: tuple[Array, Array]
) -> list[list[Effect]]:
    """Return what all pairs of F and G matrices without their diagonals measure.

    From sum_ij K_ij L_ij, shape (F, G); their row sums, shapes (F, n) and (G, n); their sums of squares, shapes (F,) and
    (G,); and the diagonals that were left out, shapes (F, n) and (G, n).
    """
    n = rows[0].shape[1]
    hollow = centred_products(product, *rows, hollow=True)
    whole = product + diagonals[0] @ diagonals[1].T
    biased = centred_products(whole, rows[0] + diagonals[0], rows[1] + diagonals[1], hollow=False)
    norms = [
        [
            float(centred_products(square[None, None], row[None], row[None], hollow=True)[0, 0])
            for square, row in members
        ]
        for members in (zip(squares[0], rows[0], strict=True), zip(squares[1], rows[1], strict=True))
    ]
    return [
        [
            Effect(
                unbiased=factor(n, "unbiased") * float(hollow[f, g]),
                biased=factor(n, "biased") * float(biased[f, g]),
                effect_size=effect_size(float(hollow[f, g]), norm_x, norm_y),
            )
            for g, norm_y in enumerate(norms[1])
        ]
        for f, norm_x in enumerate(norms[0])
    ]


def centred_products(product: Array, rows_x: Array, rows_y: Array, *, hollow: bool) -> Array:
    """Return <U(K), U(L)> from sums without the diagonals (Szekely and Rizzo 2014), or <HKH, HLH> from sums with them.

    From sum_ij K_ij L_ij, shape (F, G), and the row sums, shapes (F, n) and (G, n).
    """
    centre, grand = centring_divisors(rows_x.shape[1], hollow=hollow)
    crossed: Array = product - 2.0 / centre * (rows_x @ rows_y.T)
    return crossed + np.outer(rows_x.sum(axis=1), rows_y.sum(axis=1)) / grand


def centring_divisors(n: int, *, hollow: bool) -> tuple[int, int]:
    """Return by what row sums, and the sum of all entries, are divided to centre a matrix."""
    return (n - 2, (n - 1) * (n - 2)) if hollow else (n, n**2)


def effect_size(product: float, norm_x: float, norm_y: float) -> float:
    """Return sqrt(max(r, 0)) for r = product / sqrt(norm_x norm_y); 0 where a norm vanishes."""
    scale = math.sqrt(max(norm_x, 0.0)) * math.sqrt(max(norm_y, 0.0))
    return math.sqrt(min(max(product / scale, 0.0), 1.0)) if scale > 0 else 0.0


# Matrices of low rank


def low_rank_pair(
    kernel_x: Kernel, x: Points, kernel_y: Kernel, y: Points, engine: Engine
) -> tuple[LowRank, LowRank] | None:
    """Return both matrices as products of few columns; None where the lags of whole matrices cost less."""
    first, second = engine.here.map(lambda side: low_rank(*side), [(kernel_x, x), (kernel_y, y)])
    worthwhile = first is not None and second is not None and first.rank * second.rank <= CORRELATIONS_PER_ROW * len(x)
    return (first, second) if worthwhile and first is not None and second is not None else None


def low_rank_dependence(first: LowRank, second: LowRank) -> Effect:
    """Return how two variables depend, from factors of both matrices. Cost: O(n (r_x + r_y)^2) time."""
    n = len(first.columns)
    hollow = inner(first, second, hollow=True)
    norm_x, norm_y = inner(first, first, hollow=True), inner(second, second, hollow=True)
    return Effect(
        unbiased=factor(n, "unbiased") * hollow,
        biased=factor(n, "biased") * inner(first, second, hollow=False),
        effect_size=effect_size(hollow, norm_x, norm_y),
    )


def inner(first: LowRank, second: LowRank, *, hollow: bool) -> float:
    """Return <HKH, HLH>, or <U(K), U(L)> of the hollow matrices. Cost: O(n r_K r_L) time."""
    whole = float(np.square(first.columns.T @ second.columns).sum())
    if not hollow:
        return whole
    n = len(first.columns)
    crossed = float(first.diagonal @ second.diagonal)
    return whole - n / (n - 2) * crossed + grand_part(first, second)


def grand_part(first: LowRank, second: LowRank) -> float:
    """Return what U-centring adds for the traces of both matrices."""
    n = len(first.columns)
    return float(first.diagonal.sum()) * float(second.diagonal.sum()) / ((n - 1) * (n - 2))


# Tiles of two matrices


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """Sums over two matrices K and L without their diagonals: of rows, of K_ij L_ij, of squares, of (A_ij B_ij)^2."""

    rows_k: Array
    rows_l: Array
    product: float
    square_k: float
    square_l: float
    mixed_square: float


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

    The mixed squares are those of the centrings A and B, where they are given. Cost: O(n^2 p / 2) time, O(n) memory for
    each strip under way. Sums have a fixed order.
    """
    n = len(x)
    # Columns side by side in memory, as the tiles walk down them.
    sides = [
        (kernel, Points(np.asfortranarray(points.numeric), np.asfortranarray(points.codes)))
        for kernel, points in ((kernel_x, x), (kernel_y, y))
    ]
    # A strip of a small matrix is one tile high; of a large one a few, so that strips stay few.
    height = TILE * max(1, n // (64 * TILE))

    def strip(start: int) -> tuple[Array, Array]:
        """Return the sums over the rows from `start` on against themselves and all rows after them."""
        stop = min(start + height, n)
        rows, totals = np.zeros((2, n - start)), np.zeros(4)
        for top in range(start, stop, TILE):
            for left in range(top, n, TILE):
                down, across = slice(top, min(top + TILE, stop)), slice(left, min(left + TILE, n))
                tiles = [
                    kernel.evaluate(DensePairs(points.take(down), points.take(across))) for kernel, points in sides
                ]
                # A tile off the diagonal stands for its mirror image too.
                mirrored = left > top
                for total, tile in zip(rows, tiles, strict=True):
                    if not mirrored:
                        np.fill_diagonal(tile, 0.0)
                    total[top - start : down.stop - start] += tile.sum(axis=1)
                    if mirrored:
                        total[left - start : across.stop - start] += tile.sum(axis=0)
                K, L = tiles
                mixed = 0.0 if centrings is None else _mixed_square((K, L), centrings, down, across)
                totals += (1 + mirrored) * np.array([np.vdot(K, L), np.vdot(K, K), np.vdot(L, L), mixed])
        return rows, totals

    rows, totals, starts = np.zeros((2, n)), np.zeros(4), range(0, n, height)
    for start, part in zip(starts, enough_for(engine, n**2).map(strip, list(starts), progress), strict=True):
        rows[:, start:] += part[0]
        totals += part[1]
    return PairSums(*rows, *(float(total) for total in totals))


def _mixed_square(
    tiles: tuple[Array, Array], centrings: tuple[Centring, Centring], down: slice, across: slice
) -> float:
    """Return the sum of (A_ij B_ij)^2 over one tile, its diagonal left out."""
    A, B = (
        tile - centring.row[down, None] - (centring.row[across] - centring.grand)
        for tile, centring in zip(tiles, centrings, strict=True)
    )
    A *= B
    if down.start == across.start:
        np.fill_diagonal(A, 0.0)
    return float(np.vdot(A, A))
