"""The two-sample statistic by direct sums: both estimators of MMD^2, its standard error, and the effect size.

Everything comes from one sweep over the kernel matrix, whose products with the label and with ones give the sums
within X, within Y and between them, row by row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.labels import label_matrix
from kerntest.inference.sides import Labels
from kerntest.matrices.factor import FEW_ROWS, low_rank_factor
from kerntest.matrices.matrix import sweep

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.inference.sides import Labels
    from kerntest.kernels.base import Array, Kernel, Points


@dataclass(frozen=True, slots=True, eq=False)
class Discrepancy:
    """How far two samples are apart under one kernel.

    Parameters
    ----------
    unbiased, biased : float
        Both estimates of MMD^2 (Gretton et al. 2012, eqs. 3 and 5); the unbiased one may be negative.
    standard_error : float
        Of sqrt(unbiased), by the first-order term of its variance; nan where unbiased <= 0. It holds where the
        distributions differ clearly and means nothing near 0, where that term vanishes.
    effect_size : float
        sqrt(max(r, 0)), r = <A, B> / sqrt(<A, A> <B, B>) with both matrices U-centred: a correlation between the
        kernel matrix and the label, corrected for chance.
    witness : ndarray, shape (n,)
        mean_x k(z, x) - mean_y k(z, y) at every row z, the row itself left out: positive where X is denser.
    """

    unbiased: float
    biased: float
    standard_error: float
    effect_size: float
    witness: Array


def discrepancy(kernel: Kernel, points: Points, labels: Labels, engine: Engine) -> Discrepancy:
    """Return both estimates of MMD^2, the standard error and the effect size.

    Parameters
    ----------
    kernel : Kernel
    points : Points
        n rows.
    labels : ndarray of uint8, shape (n,)
        1 for the rows of X, 0 for those of Y; at least two of each.
    engine : Engine

    Notes
    -----
    Cost: O(n^2 p / 2) time, O(n) memory; O(n r^2) time for a matrix of low rank r.
    """
    in_x = labels == 1
    n_x, n_y = int(in_x.sum()), int((~in_x).sum())
    n = n_x + n_y
    product, total_square = _swept(kernel, points, np.column_stack([in_x, np.ones(n)]).astype(np.float64), engine)
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
    witness_x = to_x[in_x] / (n_x - 1) - to_y[in_x] / n_y
    witness_y = to_x[~in_x] / n_x - to_y[~in_x] / (n_y - 1)
    variance = 4.0 * (witness_x.var() / n_x + witness_y.var() / n_y)
    error = math.sqrt(variance / unbiased) / 2.0 if unbiased > 0 else math.nan
    witness = np.empty(n)
    witness[in_x], witness[~in_x] = witness_x, witness_y
    effect = _effect_size(unbiased, (n_x, n_y), total_square, to_all @ to_all, to_all.sum())
    return Discrepancy(float(unbiased), float(biased), error, effect, witness)


def _effect_size(
    unbiased: float, sizes: tuple[int, int], total_square: float, squared_rows: float, total: float
) -> float:
    """Return the effect size from the sums of a hollow kernel matrix: of its squares, its squared row sums, and all."""
    n = sum(sizes)
    # <U(K), U(K)> (Szekely and Rizzo 2014).
    norm = total_square - 2.0 / (n - 2) * squared_rows + total**2 / ((n - 1) * (n - 2))
    label = label_matrix(*sizes, "unbiased")
    scale = math.sqrt(max(norm, 0.0) * label.squared_norm)
    correlation = unbiased / label.factor / scale if scale > 0 else 0.0
    return math.sqrt(min(max(correlation, 0.0), 1.0))


def effect_of_levels(K: Array | None, counts_x: Array, counts_y: Array) -> float:
    """Return the effect size, as of `discrepancy`, between samples of a few different rows.

    Parameters
    ----------
    K : ndarray, shape (d, d), or None
        A kernel between the different rows, with k(x, x) = 1; None for delta, whose matrix has ones on its diagonal only.
    counts_x, counts_y : ndarray, shape (d,)
        How often each is in X and in Y.

    Notes
    -----
    Cost: O(d^2) time.
    """
    counts = counts_x + counts_y
    n_x, n_y = int(counts_x.sum()), int(counts_y.sum())
    to_x, to_all = (counts_x, counts - 1.0) if K is None else (K @ counts_x, K @ counts - 1.0)
    squares = counts if K is None else np.square(K) @ counts
    within_x, between = counts_x @ to_x - n_x, counts_y @ to_x
    within_y = counts_y @ to_all - between
    unbiased = within_x / (n_x * (n_x - 1)) + within_y / (n_y * (n_y - 1)) - 2.0 * between / (n_x * n_y)
    total_square = float(counts @ squares) - n_x - n_y
    return _effect_size(float(unbiased), (n_x, n_y), total_square, float(counts @ to_all**2), float(counts @ to_all))


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
