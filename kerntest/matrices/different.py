"""Which rows differ: those of tables of counts and of categories are few, and what is found of one is found of all its copies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Points

# Entries that are weighed at once: so many stay in the second-level cache of a core.
BLOCK_ENTRIES = 2**18
# Rows are few in units of the root of all; so many times as many of them tell whether there are more.
FEW, TOLD_BY = 1.5, 2
Few: TypeAlias = "tuple[Points, NDArray[np.intp]]"
_KNOWN: WeakKeyDictionary[Points, dict[float, Few | None]] = WeakKeyDictionary()


def equal_rows(columns: Sequence[NDArray[Any]], share: float = 1.0) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Return the first of equal rows, in their order, and the place among these of what each of n rows equals.

    None where no fewer than such a share of the rows are different. Cost: O(n (p + log n)).
    """
    n, before = len(columns[0]), 0
    sums = np.zeros(n)
    with np.errstate(over="ignore", invalid="ignore"):
        for some in columns:
            weights = np.sin(np.arange(1.0, some.shape[1] + 1) + before)
            before += some.shape[1]
            step = max(16, BLOCK_ENTRIES // max(some.shape[1], 1))
            # Each row by itself: sums of equal ones are equal to the last bit, and hardly ever those of others.
            for start in range(0, n, step):
                part = slice(start, start + step)
                sums[part] += (some[part] * weights).sum(axis=1)
    ordered = np.sort(sums)
    if 1 + np.count_nonzero(ordered[1:] > ordered[:-1]) >= share * n:
        return None
    _, first, place = np.unique(sums, return_index=True, return_inverse=True)
    if not all(np.array_equal(some[first][place], some) for some in columns):
        _, first, place = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[place.ravel()]


def few_different(points: Points, most: float | None = None) -> Few | None:
    """Return the different rows, and which of them each row is; None where these are more than so many, usually 1.5 sqrt(n).

    Cost: O(sqrt(n) (p + log n)) where they are. What is known of rows is kept as long as these are.
    """
    n = len(points)
    most, known = FEW * math.sqrt(n) if most is None else most, _KNOWN.setdefault(points, {})
    if most not in known:
        known[most] = _few_different(points, most)
    return known[most]


def _few_different(points: Points, most: float) -> Few | None:
    n, columns = len(points), (points.numeric, points.codes)
    # Some of the rows have no more different ones than all.
    step = max(1, int(n / (TOLD_BY * most + 1)))
    some = [one[::step] for one in columns]
    if step > 1 and equal_rows(some, (most + 1) / len(some[0])) is None:
        return None
    found = equal_rows(columns, (most + 1) / n) if n else None
    return None if found is None else (points.take(found[0]), found[1])
