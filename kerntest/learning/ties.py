"""Ties: of numbers that are equal to rounding, which one counts.

Sums of floats have no bits to promise: two of them that are equal by their formulas may differ by rounding, by another
amount on another processor. So nothing here hangs on a difference that rounding could have made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# Scores of a grid that differ by less than this share of the best are equal: they come from systems of a condition of
# up to 1e7.
EQUAL_SCORES = 1e-9
# Sums that differ by less than this share of their largest term are equal.
EQUAL_SUMS = 1e-10


def smoothest(scores: Array, orders: Sequence[Array]) -> int:
    """Return the place of the lowest score; of scores equal to nine digits the one that is last by the orders given.

    Parameters
    ----------
    scores : ndarray, shape (m,)
    orders : sequence of ndarray, shape (m,)
        The first decides, then the next.
    """
    best = float(scores.min())
    ties = np.flatnonzero(scores <= best + EQUAL_SCORES * abs(best))
    return int(ties[np.lexsort([order[ties] for order in reversed(orders)])[-1]])


def largest_first(values: Array, count: int, slack: Array | float) -> NDArray[np.intp]:
    """Return the places of the largest values of each row, descending, of equal ones the first, shape (n, count).

    Parameters
    ----------
    values : ndarray, shape (n, m)
    count : int
        At most m.
    slack : float, or ndarray, shape (n, 1)
        Values that differ by no more are equal.
    """
    left = values.copy()
    rows = np.arange(len(values))
    found = np.empty((len(values), count), dtype=np.intp)
    for turn in range(count):
        found[:, turn] = np.argmax(left >= left.max(axis=1, keepdims=True) - slack, axis=1)
        left[rows, found[:, turn]] = -np.inf
    return found


def levelled(values: Array) -> Array:
    """Return values with those that are equal but for rounding made equal.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Such as scores: rounding is a share of the largest.
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    finite = ascending[np.isfinite(ascending)]
    with np.errstate(over="ignore", invalid="ignore"):
        new = np.diff(ascending) > EQUAL_SUMS * float(np.abs(finite).max(initial=0.0))
    firsts = np.flatnonzero(np.append(True, new)) if len(values) else np.empty(0, dtype=np.intp)
    level: Array = values.copy()
    level[order] = np.repeat(ascending[firsts], np.diff(np.append(firsts, len(values))))
    return level
