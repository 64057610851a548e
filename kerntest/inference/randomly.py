"""Ordinary random relabellings, for those who must: one product of the kernel matrix with all labellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.sides import ORDER_STREAM
from kerntest.matrices.matrix import sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.sides import Labels
    from kerntest.inference.statistic import LabelMatrix
    from kerntest.kernels.base import Array, Kernel, Points

# Labellings in one product: the strips of a sweep hold as many numbers for each row.
TOGETHER = 256


def random_sums(
    kernels: Sequence[Kernel],
    points: Points,
    label: LabelMatrix,
    labellings: Sequence[Labels],
    *,
    engine: Engine,
    progress: Progress | None = None,
) -> Array:
    """Return <K_f, B_g> for every kernel f and labelling g.

    With a the labelling, the entry of B is bilinear in the labels of its two rows, so that
    <K, B> = c2 a'Ka + 2 c1 a'K1 + c0 1'K1 over i != j, and a sum over the diagonal.

    Parameters
    ----------
    kernels : sequence of F Kernel
    points : Points
        n rows.
    label : LabelMatrix
    labellings : sequence of R ndarray of uint8, shape (n,)
    engine : Engine
    progress : callable, optional
        Called with (parts done, parts in all).

    Returns
    -------
    ndarray, shape (F, R)

    Notes
    -----
    Cost: O(F n^2 (p R / 256 + R)) time, O(256 n) numbers for each strip under way.
    """
    none, one, both = label.between
    constant, slope, product = none, one - none, both - 2.0 * one + none
    sums = np.empty((len(kernels), len(labellings)))
    starts = range(0, len(labellings), TOGETHER)
    for number, kernel in enumerate(kernels):
        diagonal = kernel.diagonal(points)
        for part, start in enumerate(starts):
            labels = np.column_stack(labellings[start : start + TOGETHER]).astype(np.float64)
            vectors = np.column_stack([labels, np.ones(len(points))])
            swept = sweep(kernel, points, vectors, engine).product
            with_labels, rows = swept[:, :-1], swept[:, -1]
            on_diagonal = label.diagonal[0] * diagonal.sum() + (label.diagonal[1] - label.diagonal[0]) * (
                diagonal @ labels
            )
            sums[number, start : start + TOGETHER] = (
                product * np.einsum("ig,ig->g", labels, with_labels)
                + 2.0 * slope * (rows @ labels)
                + constant * rows.sum()
                + on_diagonal
            )
            if progress is not None:
                progress(number * len(starts) + part + 1, len(kernels) * len(starts))
    return sums


def random_orders(labels: Labels, orders: int, seed: int) -> tuple[NDArray[np.intp], list[Labels]]:
    """Return a random order of the rows, and the labels along it in `orders` orders of which the first is the true one."""
    rng = np.random.default_rng((seed, ORDER_STREAM))
    order = rng.permutation(len(labels))
    observed = labels[order]
    return order, [observed] + [rng.permutation(observed) for _ in range(orders - 1)]
