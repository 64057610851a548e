"""Principal directions of rows given as explicit features, which need not fit into memory together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from kerntest.learning.solvers.eigen import SHARED_ROWS, ZERO
from kerntest.learning.ties import largest_entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array

# Entries of one block of features, and rows from whose mean deviations are taken.
BLOCK, FIRST = 2**19, 256


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Orthonormal directions of largest variance.

    Parameters
    ----------
    values : ndarray, shape (k,)
        Of Z'HZ, descending: those of HZZ'H other than 0.
    axes : ndarray, shape (r, k)
        The score largest in size of the rows is positive on each.
    mean : ndarray, shape (r,)
        Of the rows.
    trace : float
    """

    values: Array
    axes: Array
    mean: Array
    trace: float


def leading_directions(
    rows: Callable[[slice], Array],
    n: int,
    count: int,
    engine: Engine,
    *,
    projected: Callable[[slice, Array], Array] | None = None,
    progress: Progress | None = None,
) -> Directions:
    """Return the leading eigenvectors of Z'HZ, for the features Z of n rows.

    Parameters
    ----------
    rows : callable
        From a slice of the rows to their features, shape (b, r).
    n : int
    count : int
        How many; fewer are returned where the rank is less.
    engine : Engine
    projected : callable, optional
        From a slice and axes, shape (r, k), to the products of features and axes, where that is cheaper.
    progress : callable, optional

    Notes
    -----
    Products are those of deviations from the mean of the first rows, so that far-off rows keep the digits in which they
    differ, and the mean of all is put right afterwards: each feature is computed once. Cost: O(n r^2 + r^3) time, O(r^2)
    memory for each thread.
    """
    first = rows(slice(0, min(n, FIRST)))
    width, near = first.shape[1], first.mean(axis=0)
    step = max(64, BLOCK // max(width, 1))
    parts = [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def scatter(part: slice) -> tuple[Array, Array]:
        moved = rows(part) - near
        return moved.T @ moved, moved.sum(axis=0)

    products, rest = np.zeros((width, width)), np.zeros(width)
    # Not sent anywhere: for wide features the products are larger than what they are made of.
    for product, remainder in engine.here.map(scatter, parts, progress):
        products += product
        rest += remainder
    products -= np.outer(rest, rest) / n
    mean = near + rest / n
    with threadpool_limits(limits=None if width > SHARED_ROWS else 1, user_api="blas"):
        values, vectors = np.linalg.eigh(products)
    wanted = min(count, n - 1)
    values, axes = values[::-1][:wanted], vectors[:, ::-1][:, :wanted]
    kept = values > ZERO * float(values.max(initial=0.0))
    values, axes = values[kept], axes[:, kept]
    return Directions(
        values,
        axes * _signs(projected or (lambda part, onto: rows(part) @ onto), parts, mean, axes, engine),
        mean,
        float(np.trace(products)),
    )


def _signs(
    projected: Callable[[slice, Array], Array], parts: list[slice], mean: Array, axes: Array, engine: Engine
) -> Array:
    """Return the sign of the score that is largest in size on each axis, shape (k,): as of the eigenvectors of HZZ'H."""

    def extreme(part: slice) -> Array:
        scores = projected(part, axes) - mean @ axes
        return np.asarray(scores[largest_entries(scores), np.arange(axes.shape[1])])

    if not axes.shape[1]:
        return np.ones(0)
    extremes = np.stack(list(engine.here.map(extreme, parts)))
    largest = extremes[largest_entries(extremes), np.arange(axes.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)
