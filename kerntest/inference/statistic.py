"""The one statistic <A, B> of two centred matrices: HSIC, and MMD^2, whose second matrix is that of the label.

    biased     A = HKH     HSIC_b = <A, B> / n^2            MMD_b^2 = (1/m + 1/(n-m))^2 <A, B>
    unbiased   A = U(K)    HSIC_u = <A, B> / (n (n - 3))    MMD_u^2 = (1/(m(m-1)) + 1/((n-m)(n-m-1)) + 2/(m(n-m))) <A, B>

(Gretton et al. 2005, 2008, 2012; Song et al. 2012, eq. 5). With a = 1 for the m rows of X and 0 for the others, L = a a' is
the matrix of the label. With the diagonals left out before U-centring (Szekely and Rizzo 2014), and r and s the row sums,

    <A, B> = sum_ij K_ij L_ij - 2/c sum_i r_i s_i + sum_i r_i sum_i s_i / g,    c = n - 2, g = (n - 1)(n - 2), or n and n^2
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kerntest.engines.engine import Engine, enough_for, one_blas_thread
from kerntest.kernels.base import DensePairs
from kerntest.kernels.text import is_additive
from kerntest.matrices.factor import BLOCK, FEW_ROWS, Factor, low_rank, low_rank_factor, row_blocks
from kerntest.matrices.passes import sum_tiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.inference.relabelling.designs import Design
    from kerntest.inference.sides import Estimator, Labels
    from kerntest.kernels.base import Array, Kernel, Points

# Rows of units that are compared with each other at once.
UNITS = 400
# One correlation of two columns of factors costs about what one line of lags does on both sides.
CORRELATIONS_PER_ROW = 1.0
# Shares of the norms below which a product of centred matrices is what rounding leaves of them.
ROUNDING = 1e-15


class Effect(NamedTuple):
    """What kernels measure: both estimates of HSIC or MMD^2 (the unbiased one may be negative), and the effect size.

    That is sqrt(max(r, 0)), r = <A, B> / sqrt(<A, A> <B, B>) with both matrices U-centred: a correlation between the two
    matrices, corrected for chance; of samples, of a row that is of each of them as probably. Of two samples also the variance of the unbiased estimate by its first-order term (nan
    where a sample, or a stratum of it, is one unit), and the witness function mean_x k(z, x) - mean_y k(z, y) at every row
    z, the row itself left out: positive where X is denser.
    """

    unbiased: float
    biased: float
    effect_size: float
    variance: float = math.nan
    witness: Array = np.empty(0)

    @property
    def standard_error(self) -> float:
        """The standard error of sqrt(unbiased), which means nothing near 0; nan where that is 0."""
        return math.sqrt(self.variance / self.unbiased) / 2.0 if self.unbiased > 0 else math.nan

    def estimate(self, estimator: Estimator) -> float:
        """Return one of both estimates."""
        return self.unbiased if estimator == "unbiased" else self.biased


def factor(n: int, estimator: Estimator) -> float:
    """Return the number by which <A, B> is the estimate of HSIC."""
    return 1.0 / n**2 if estimator == "biased" else 1.0 / (n * (n - 3))


def centring_divisors(n: int, *, hollow: bool) -> tuple[int, int]:
    """Return c and g."""
    return (n - 2, (n - 1) * (n - 2)) if hollow else (n, n**2)


def centred_inner(product: Any, crossed: Any, totals: Any, n: int, *, hollow: bool) -> Any:
    """Return <A, B> from sum_ij K_ij L_ij, sum_i r_i s_i and sum_i r_i sum_i s_i; of all pairs of matrices at once."""
    centre, grand = centring_divisors(n, hollow=hollow)
    return product - 2.0 / centre * crossed + totals / grand


def effect_size(product: float, norm_x: float, norm_y: float) -> float:
    """Return sqrt(max(r, 0)) for r = product / sqrt(norm_x norm_y); 0 where a norm vanishes, or r is what rounding leaves."""
    scale = math.sqrt(max(norm_x, 0.0)) * math.sqrt(max(norm_y, 0.0))
    return math.sqrt(min(product / scale, 1.0)) if scale > 0 and product > ROUNDING * scale else 0.0


# Two kernels


def dependence(kernel_x: Kernel, x: Points, kernel_y: Kernel, y: Points, engine: Engine) -> Effect:
    """Return how two variables depend; row i of x belongs to row i of y, n >= 4.

    Cost: O(n^2 p / 2) time for p columns in all, O(n) memory; of matrices of low ranks r_x and r_y, O(n (r_x + r_y)^2).
    """
    # Of few rows the factors of an additive kernel, several for each column, take longer to find than the sums.
    additive = is_additive(kernel_x) or is_additive(kernel_y)
    pair = None if additive and len(x) <= FEW_ROWS else low_rank_pair(kernel_x, x, kernel_y, y, engine)
    if pair is not None:
        # For so small products more threads only wait.
        with one_blas_thread():
            return low_rank_dependence(*pair)

    def sums(K: Array, L: Array) -> tuple[list[Array], list[Any]]:
        return [K, L], [np.vdot(K, L), np.vdot(K, K), np.vdot(L, L)]

    matrices = [(kernel_x, x, None), (kernel_y, y, None)]
    rows, totals = sum_tiles(matrices, sums, [np.ones((len(x), 1))] * 2, enough_for(engine, len(x) ** 2))
    product, *squares = totals[:, None]
    diagonals = kernel_x.diagonal(x)[None], kernel_y.diagonal(y)[None]
    return dependences(product[None], (rows[0].T, rows[1].T), (squares[0], squares[1]), diagonals)[0][0]


def dependences(
    product: Array, rows: tuple[Array, Array], squares: tuple[Array, Array], diagonals: tuple[Array, Array]
) -> list[list[Effect]]:
    """Return what all pairs of F and G matrices without their diagonals measure.

    From sum_ij K_ij L_ij, shape (F, G); their row sums, shapes (F, n) and (G, n); their sums of squares, shapes (F,) and
    (G,); and the diagonals that were left out, shapes (F, n) and (G, n).
    """
    n = rows[0].shape[1]

    def inner(product: Array, rows_x: Array, rows_y: Array, *, hollow: bool) -> Array:
        totals = np.outer(rows_x.sum(axis=1), rows_y.sum(axis=1))
        return np.asarray(centred_inner(product, rows_x @ rows_y.T, totals, n, hollow=hollow))

    unbiased = inner(product, *rows, hollow=True)
    whole = product + diagonals[0] @ diagonals[1].T
    biased = inner(whole, rows[0] + diagonals[0], rows[1] + diagonals[1], hollow=False)
    norms_x, norms_y = (
        centred_inner(square, np.square(row).sum(axis=1), row.sum(axis=1) ** 2, n, hollow=True)
        for square, row in zip(squares, rows, strict=True)
    )
    scales = factor(n, "unbiased"), factor(n, "biased")

    def effect(f: int, g: int) -> Effect:
        size = effect_size(float(unbiased[f, g]), float(norms_x[f]), float(norms_y[g]))
        return Effect(scales[0] * float(unbiased[f, g]), scales[1] * float(biased[f, g]), size)

    return [[effect(f, g) for g in range(len(norms_y))] for f in range(len(norms_x))]


def low_rank_pair(
    kernel_x: Kernel, x: Points, kernel_y: Kernel, y: Points, engine: Engine
) -> tuple[Factor, Factor] | None:
    """Return both matrices as products of few columns; None where the lags of whole matrices cost less."""
    first, second = engine.here.map(lambda side: low_rank(*side), [(kernel_x, x), (kernel_y, y)])
    if first is None or second is None or first.rank * second.rank > CORRELATIONS_PER_ROW * len(x):
        return None
    return first, second


def low_rank_dependence(first: Factor, second: Factor) -> Effect:
    """Return how two variables depend, from HKH = G G' and HLH = F F'. Cost: O(n (r_x + r_y)^2) time."""
    G, F, d, e = first.columns, second.columns, first.diagonal, second.diagonal
    product = np.square(G.T @ F).sum() - d @ e
    squares = [np.atleast_1d(np.square(M.T @ M).sum() - diagonal @ diagonal) for M, diagonal in ((G, d), (F, e))]
    return dependences(np.atleast_2d(product), (-d[None], -e[None]), (squares[0], squares[1]), (d[None], e[None]))[0][0]


# A kernel and the label


class LabelMatrix(NamedTuple):
    """The matrix L = a a' of the label, centred: `hollow` by U-centring. The estimate of MMD^2 is `factor` * <A, B>."""

    n_x: int
    n_y: int
    estimator: Estimator

    @property
    def hollow(self) -> bool:
        """Whether the diagonal is zero."""
        return self.estimator == "unbiased"

    @property
    def row(self) -> int:
        """The sum of a row of X, before centring."""
        return self.n_x - self.hollow

    @property
    def factor(self) -> float:
        """What turns <A, B> into MMD^2."""
        n_x, n_y = self.n_x, self.n_y
        if not self.hollow:
            return (1 / n_x + 1 / n_y) ** 2
        return 1 / (n_x * (n_x - 1)) + 1 / (n_y * (n_y - 1)) + 2 / (n_x * n_y)

    @property
    def squared_norm(self) -> float:
        """Return <B, B>."""
        return float(self.inner(self.n_x * self.row, self.n_x * self.row, self.n_x * self.row))

    def inner(self, product: Any, along: Any, total: Any) -> Any:
        """Return <A, B> from a'K a, the sum of the row sums of K over the rows of X, and over all rows."""
        crossed, totals = self.row * along, self.n_x * self.row * total
        return centred_inner(product, crossed, totals, self.n_x + self.n_y, hollow=self.hollow)


def discrepancy(kernel: Kernel, points: Points, labels: Labels, engine: Engine, design: Design | None = None) -> Effect:
    """Return how far two samples are apart: 1 is the label of X, 0 that of Y; at least two rows of each.

    With strata s of a design it is the mean of mu_x - mu_y of each, weighted by m_s n_s / (m_s + n_s). The unbiased estimate
    leaves out pairs of rows of one cluster, or of one pair, and the standard error is that of sums over these. Rows of pairs
    have the weights of their design.

    Cost: O(n^2 p / 2) time, O(n) memory; O(n r^2) time for a matrix of low rank r.
    """
    if design is not None:
        return _within_strata(kernel, points, labels, engine, design)
    in_x = labels == 1
    n_x, n_y = int(in_x.sum()), int((~in_x).sum())
    sums = _swept(kernel, points, 1 - labels.astype(np.intp), 2, engine)
    (to_x, to_y), diagonal = sums.to_groups.T, kernel.diagonal(points)
    to_all = to_x + to_y
    unbiased, biased = (
        label.factor * float(label.inner((to_x + own)[in_x].sum(), (to_all + own)[in_x].sum(), (to_all + own).sum()))
        for label, own in ((LabelMatrix(n_x, n_y, "unbiased"), 0.0), (LabelMatrix(n_x, n_y, "biased"), diagonal))
    )
    if kernel.positive_definite:
        biased = max(biased, 0.0)  # but for rounding it is
    # The witness function at each row, left out of its own mean: its spread within each sample drives the error.
    witness = np.where(in_x, to_x / (n_x - 1) - to_y / n_y, to_x / n_x - to_y / (n_y - 1))
    variance = 4.0 * float(witness[in_x].var(ddof=1) / n_x + witness[~in_x].var(ddof=1) / n_y)
    return Effect(unbiased, biased, sums.effect(unbiased), variance, witness)


def _within_strata(kernel: Kernel, points: Points, labels: Labels, engine: Engine, design: Design) -> Effect:
    """Return the same under a design, by means over pairs of rows of different units. Cost: O(n^2 (p + S) / 2) time for S strata."""
    cells = 2 * design.strata + labels
    count = 2 * int(design.strata.max()) + 2
    own_weights = design.weights(labels)
    weights = np.ones(len(cells)) if own_weights is None else own_weights
    member, diagonal = np.eye(count)[cells] * weights[:, None], kernel.diagonal(points)
    by_cell = _swept(kernel, points, cells, count, engine)
    product, counts = by_cell.to_groups, member.sum(axis=0)
    if own_weights is not None:
        (product,), _ = sum_tiles([(kernel, points, None)], lambda K: ([K], [0.0]), [member], engine)
    n_y, n_x = counts.reshape(-1, 2).T
    shares = n_x * n_y / (n_x + n_y)
    shares /= shares.sum()
    signed = np.stack([-shares, shares], axis=1).ravel()
    whole = product + diagonal[:, None] * member
    together, of_unit = (
        unit_sums(some, points, design.units, cells, count, weights=own_weights) for some in (kernel, None)
    )
    sums, own, pairs = (member.T @ some for some in (whole, together, np.broadcast_to(counts, member.shape)))
    unbiased = float(signed @ means_apart(sums, own, pairs, member.T @ of_unit) @ signed)
    biased = float(signed @ (sums / pairs) @ signed)
    biased = max(biased, 0.0) if kernel.positive_definite else biased
    # The witness function at each row, its unit left out of the means.
    witness = means_apart(whole, together, np.broadcast_to(counts, whole.shape), of_unit) @ signed
    # A cell of one unit says nothing of the spread between units.
    units = np.bincount(np.unique(np.column_stack([cells, design.units]), axis=0)[:, 0], minlength=count)
    freedom = np.sqrt(units / np.maximum(units - 1.0, 1.0))
    centred = weights * (signed / counts * freedom)[cells] * (witness - (member.T @ witness / counts)[cells])
    spread = 4.0 * float(np.square(np.bincount(design.units, weights=centred)).sum())
    variance = spread if units.min() > 1 else math.nan
    # Rows of Y have the even cells.
    effect = by_cell.merged(np.arange(count) % 2).effect(unbiased)
    return Effect(unbiased, biased, effect, variance, witness)


def means_apart(sums: Array, own: Array, pairs: Array, own_pairs: Array) -> Array:
    """Return means over pairs of rows of different units, from sums and numbers of all and of those of the same unit.

    Of all pairs where there are no others.
    """
    apart = pairs > own_pairs
    return np.asarray(np.where(apart, sums - own, sums) / np.where(apart, pairs - own_pairs, pairs))


def unit_sums(
    kernel: Kernel | None,
    points: Points,
    units: NDArray[np.intp],
    parts: NDArray[np.intp],
    count: int,
    *,
    weights: Array | None = None,
) -> Array:
    """Return the sums of each row of a kernel over the rows of its own unit in each part, shape (n, count).

    Each times its weight, if they have any; without a kernel their numbers. Cost: O(n (p + UNITS)) time, or O(m^2) for each unit of m > UNITS rows.
    """
    if units.max() + 1 == len(units):
        # Each row is a unit of its own.
        own = np.ones(len(units)) if kernel is None else kernel.diagonal(points)
        return np.asarray(np.eye(count)[parts] * (own if weights is None else own * weights)[:, None])
    order = np.argsort(units, kind="stable")
    sorted_units, placed, found = units[order], points.take(order), np.zeros((len(units), count))
    ends = np.append(np.flatnonzero(np.diff(sorted_units)) + 1, len(units))
    start = 0
    while start < len(units):
        # Whole units of some rows together, or one that has more.
        stop = int(ends[max(np.searchsorted(ends, start + UNITS, side="right") - 1, np.searchsorted(ends, start + 1))])
        for first in range(start, stop, UNITS):
            rows, columns = slice(first, min(first + UNITS, stop)), slice(start, stop)
            same = (sorted_units[rows, None] == sorted_units[columns]).astype(np.float64)
            if kernel is not None:
                same *= kernel.evaluate(DensePairs(placed.take(rows), placed.take(columns)))
            if weights is not None:
                same *= weights[order[columns]]
            found[order[rows]] = same @ np.eye(count)[parts[order[columns]]]
        start = stop
    return found


class SumsOfGroups(NamedTuple):
    """Sums of a kernel without its diagonal over the rows of k groups: of each row, shape (n, k), and of its squares by groups.

    `rows` says how many rows of each group a row stands for, shape (n, k).
    """

    rows: Array
    to_groups: Array
    squares: Array

    @classmethod
    def of_factor(cls, G: Array, diagonal: Array, codes: NDArray[np.intp], count: int) -> SumsOfGroups:
        """Return those of G G' with this diagonal; the codes say which group each row is of."""
        member = np.eye(count)[codes]
        products = np.zeros((count, G.shape[1], G.shape[1]))
        for rows in row_blocks(len(G), G.shape[1], BLOCK):
            for group in range(count):
                some = G[rows][codes[rows] == group]
                products[group] += some.T @ some
        grams = products.reshape(count, -1)
        squares = grams @ grams.T - np.diag(member.T @ diagonal**2)
        return cls(member, G @ (G.T @ member) - diagonal[:, None] * member, squares)

    def merged(self, into: NDArray[np.intp]) -> SumsOfGroups:
        """Return the sums of fewer groups; `into` says of each the number of that which it is a part of."""
        member = np.eye(int(into.max()) + 1)[into]
        return SumsOfGroups(self.rows @ member, self.to_groups @ member, member.T @ self.squares @ member)

    def effect(self, *distances: float) -> float:
        """Return the effect size of groups, from MMD^2 of every two.

        That is sqrt(max(r, 0)), r = HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L)), where L says which rows are of one group, of a row
        that is of each group with probability 1 / k: so it does not depend on how many rows each has.

            HSIC(K, L) = sum_{g<h} MMD^2(g, h) / k^3,    HSIC(L, L) = (k - 1) / k^2

        HSIC(K, K) is the mean of K_ij^2 - 2 K_ij K_il + K_ij K_lm over different rows, of weights w (Song et al. 2012, eq. 4).
        """
        counts = self.rows.sum(axis=0)
        k, w = len(counts), 1.0 / (len(counts) * counts)
        p2, p3, p4 = (float(counts @ w**power) for power in (2, 3, 4))
        along, square = (
            self.to_groups @ w,
            [float(one @ self.squares @ other) for one, other in ((w, w), (w, w**2), (w**2, w**2))],
        )
        sums = [float(self.rows @ w**power @ along**times) for power, times in ((1, 1), (1, 2), (2, 2))]
        pairs = square[0] / (1.0 - p2)
        triples = (sums[1] - square[1]) / (1.0 - 3.0 * p2 + 2.0 * p3)
        quadruples = sums[0] ** 2 - 4.0 * sums[2] + 2.0 * square[2]
        quadruples /= 1.0 - 6.0 * p2 + 8.0 * p3 + 3.0 * p2**2 - 6.0 * p4
        norm = pairs - 2.0 * triples + quadruples
        return effect_size(sum(distances) / k**3, norm, (k - 1.0) / k**2)


def effect_of_levels(K: Array | None, counts_x: Array, counts_y: Array) -> float:
    """Return the effect size between samples of d different rows, which X and Y have so often; O(d^2) time.

    K is a kernel between the different rows, with k(x, x) = 1; None for delta, whose matrix has ones on its diagonal only.
    """
    # Each row of X and of Y by itself, as the sums leave it out.
    counts = np.concatenate([counts_x, counts_y])
    rows = np.zeros((len(counts), 2))
    rows[: len(counts_x), 0], rows[len(counts_x) :, 1] = counts_x, counts_y
    held = np.column_stack([counts_x, counts_y])
    to, squares = (held, held) if K is None else (K @ held, np.square(K) @ held)
    own = np.repeat(np.eye(2), len(counts_x), axis=0)
    sums = SumsOfGroups(rows, np.tile(to, (2, 1)) - own, held.T @ squares - np.diag(held.sum(axis=0)))
    within, between = (rows.T @ sums.to_groups).diagonal(), float(held[:, 0] @ to[:, 1])
    n_x, n_y = rows.sum(axis=0)
    unbiased = within[0] / (n_x * (n_x - 1)) + within[1] / (n_y * (n_y - 1)) - 2.0 * between / (n_x * n_y)
    return sums.effect(float(unbiased))


def _swept(kernel: Kernel, points: Points, codes: NDArray[np.intp], count: int, engine: Engine) -> SumsOfGroups:
    """Return the sums of a kernel matrix over groups that the codes name."""
    member = np.eye(count)[codes]
    # For so small products more threads only wait.
    with one_blas_thread():
        factor = low_rank_factor(kernel, points) if len(points) > FEW_ROWS else None
        if factor is not None:
            return SumsOfGroups.of_factor(factor.columns, factor.diagonal, codes, count)

    def both(K: Array) -> tuple[list[Array], list[Any]]:
        return [K, K * K], [0.0]

    engine = enough_for(engine, len(points) ** 2 / 2)
    (to_groups, squared), _ = sum_tiles([(kernel, points, None)], both, [member, member], engine)
    return SumsOfGroups(member, to_groups, member.T @ squared)


# A kernel and several groups


class GroupEffects(NamedTuple):
    """What a kernel measures between k groups: all together, and of every two both estimates of MMD^2 and the effect size.

    All together it is the mean of MMD^2 over the pairs of rows of different groups, sum_{g<h} n_g n_h MMD^2(g, h) over the
    number of these; arrays have the shape (k, k).
    """

    together: Effect
    unbiased: Array
    biased: Array
    effect_sizes: Array


def group_label(codes: NDArray[np.intp], *, hollow: bool) -> Array:
    """Return columns whose inner products are the matrix L of k groups, at least two rows each, shape (n, k).

    L_ij = 1 / (n_g - 1) where i and j are both in group g, by the biased estimate 1 / n_g: then <A, B> is a multiple of
    the mean in `GroupEffects`, as `group_factor` says, and where all groups have as many rows L is that of the delta kernel.
    """
    counts = np.bincount(codes)
    return np.asarray(np.eye(len(counts))[codes] / np.sqrt(counts - hollow))


def group_factor(counts: NDArray[np.intp], *, hollow: bool) -> float:
    """Return what turns <A, B> into the mean of MMD^2 over pairs of rows of different groups."""
    n = int(counts.sum())
    return (n - hollow) / ((n**2 - float(np.square(counts).sum())) / 2)


def between_groups(kernel: Kernel, points: Points, codes: NDArray[np.intp], engine: Engine) -> GroupEffects:
    """Return how far k groups are apart: `codes` from 0 say which a row is in. Cost: O(n^2 (p + k) / 2) time, O(n k) memory."""
    counts = np.bincount(codes)
    n_g, member = counts.astype(np.float64), np.eye(len(counts))[codes]
    by_group = _swept(kernel, points, codes, len(counts), engine)
    to_groups, squares = by_group.to_groups, by_group.squares
    sums = member.T @ to_groups
    own = np.diag(member.T @ kernel.diagonal(points))
    pairs = np.outer(n_g, n_g)
    means = [sums / (pairs - np.diag(n_g)), (sums + own) / pairs]
    unbiased, biased = (np.add.outer(np.diag(mean), np.diag(mean)) - 2.0 * mean for mean in means)
    if kernel.positive_definite:
        biased = np.maximum(biased, 0.0)  # but for rounding it is
    sizes = np.zeros_like(sums)
    for g, h in combinations(range(len(counts)), 2):
        rows, two = np.isin(codes, (g, h)), [g, h]
        of_two = SumsOfGroups(member[rows][:, two], to_groups[rows][:, two], squares[np.ix_(two, two)])
        sizes[g, h] = sizes[h, g] = of_two.effect(float(unbiased[g, h]))
    weights = np.triu(pairs, 1) / np.triu(pairs, 1).sum()
    mean = float((weights * unbiased).sum())
    effect = by_group.effect(float(np.triu(unbiased, 1).sum()))
    return GroupEffects(Effect(mean, float((weights * biased).sum()), effect), unbiased, biased, sizes)
