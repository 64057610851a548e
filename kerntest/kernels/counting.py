"""What a value of a kernel takes, counted: the kernel is evaluated on a few rows by arrays that count the steps over them."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.kernels.algebra import terms
from kerntest.kernels.base import DensePairs, Points

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kerntest.kernels.base import Array, Kernel

# So many rows on both sides; they are none of the table, so that no values of it decide.
ROWS = 4
# Terms of a sum that are evaluated, about.
TERMS = 8
# Steps over the entries that writing distances takes, the product of thin matrices included (measured).
DISTANCE = 12
# Functions that take as long as so many exponentials.
EXPONENTIALS = dict.fromkeys(("exp", "log", "log1p", "expm1", "sin", "cos", "remainder", "power"), 1) | {"kve": 70}


class _CountingArray(np.ndarray[Any, Any]):
    """An array whose steps are counted."""

    counts: Counter[str]

    def __array_finalize__(self, other: Any) -> None:
        """Count together with the array that this one comes from."""
        self.counts = other.counts if isinstance(other, _CountingArray) else Counter()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        """Compute as numpy does, and count a step for each entry."""
        counted = next(one for one in (*inputs, *(out or ())) if isinstance(one, _CountingArray))
        plain = [one.view(np.ndarray) if isinstance(one, _CountingArray) else one for one in inputs]
        if out is not None:
            options["out"] = tuple(one.view(np.ndarray) if isinstance(one, _CountingArray) else one for one in out)
        result = getattr(ufunc, method)(*plain, **options)
        steps = max(np.size(one) for one in (result, *plain))
        exponentials = EXPONENTIALS.get(ufunc.__name__)
        counted.counts["entry" if exponentials is None else "exp"] += (exponentials or 1) * steps
        if out is not None:
            return out[0]
        return _counting(result, counted.counts) if isinstance(result, np.ndarray) else result


def _counting(array: Array, counts: Counter[str]) -> Array:
    view = array.view(_CountingArray)
    view.counts = counts
    return view


class _CountingPairs(DensePairs):
    """All pairs of two sets of rows, and what is made of them counted."""

    def __init__(self, x: Points, y: Points, counts: Counter[str]) -> None:
        super().__init__(x, y)
        self.counts, self.size = counts, math.prod(self.shape)

    def over(self, x: Points, y: Points) -> _CountingPairs:
        """Return all pairs of these rows."""
        return _CountingPairs(x, y, self.counts)

    def _counted(self, values: Array, **units: float) -> Array:
        self.counts.update({unit: count * self.size for unit, count in units.items()})
        return _counting(values, self.counts)

    def _inner_product(self) -> Array:
        return self._counted(super()._inner_product(), product=self.x.numeric.shape[1], entry=1)

    def _squared_distance(self) -> Array:
        return self._counted(super()._squared_distance(), product=self.x.numeric.shape[1] + 2, entry=DISTANCE)

    def _mismatches(self) -> Array:
        return self._counted(super()._mismatches(), entry=2 * self.x.codes.shape[1])

    def _zeros(self) -> Array:
        return self._counted(super()._zeros(), entry=1)

    def differences(self) -> Iterator[Array]:
        """Yield x_c - y_c for each numeric column c."""
        for difference in super().differences():
            yield self._counted(difference, entry=1)


def work_of_values(kernels: Sequence[Kernel], points: Points, *, halved: bool = False) -> dict[str, float]:
    """Return the units of work of a value of each kernel for one pair of rows such as these, distances shared.

    `halved` as `Pairs.halve_bandwidths`. It hangs on the numbers of columns alone.
    """
    counts: Counter[str] = Counter()
    numbers = np.random.default_rng(0).normal(size=(2 * ROWS, points.numeric.shape[1]))
    rows = Points(numbers, np.zeros((2 * ROWS, points.codes.shape[1]), dtype=np.int64), expandable=True)
    pairs = _CountingPairs(rows.take(slice(ROWS)), rows.take(slice(ROWS, None)), counts)
    if halved:
        pairs.halve_bandwidths()
    with np.errstate(all="ignore"):
        for kernel in kernels:
            # The many terms of a sum are alike: a few of them stand for all.
            every, before = terms(kernel), counts.copy()
            some = every[:: max(1, len(every) // TERMS)]
            for term in some:
                term.evaluate(pairs)
            for unit in counts:
                counts[unit] += round((len(every) / len(some) - 1.0) * (counts[unit] - before[unit]))
            counts["entry"] += (len(every) - 1) * pairs.size
    return {unit: count / ROWS**2 for unit, count in counts.items()}
