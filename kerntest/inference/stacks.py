"""Matrices over the rows of a test, laid out in lines for the shifts: kernel matrices, alone or many together."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kerntest.inference.lags import Block, LaidOut
from kerntest.kernels.base import Array, DensePairs, Kernel, Points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine


class Stack(Protocol):
    """Symmetric matrices over the same rows, in one or more orders of them. The first order is the observed.

    `centred_by_rows` says whether their row sums are wanted, for a centring after the sums.
    """

    members: int
    centred_by_rows: bool

    def lines(self, order: int, block: Block, out: Array) -> Iterator[int]:
        """Write the block's entries of one member after another into `out`, shape (block.count, circle).

        Yields the number of the member that `out` holds.
        """
        ...

    def fixed_entries(self, order: int) -> Array:
        """Return the entries between fixed rows in one order, shape (members, fixed, fixed)."""
        ...


class KernelStack:
    """Kernel matrices, several kernels on the same columns or kernels on different columns of the same rows.

    Parameters
    ----------
    sources : sequence of (Points, sequence of Kernel)
        n rows each, in one shared order; kernels of one source share its distances, and those whose bandwidths halve from
        one to the next their values.
    orders : sequence of ndarray of int, shape (n,)
        Which row stands at each place, one array per order.
    circle : int
        How many places lie on the circle.
    hollow : bool
        Whether the diagonals are set to zero (for the unbiased estimator).
    centred_by_rows : bool
        Whether row sums are wanted.
    """

    def __init__(
        self,
        sources: Sequence[tuple[Points, Sequence[Kernel]]],
        orders: Sequence[NDArray[np.intp]],
        circle: int,
        *,
        hollow: bool = False,
        centred_by_rows: bool = False,
    ) -> None:
        self.members = sum(len(kernels) for _, kernels in sources)
        self.centred_by_rows = centred_by_rows
        self._hollow = hollow
        self._sources, self._orders, self._circle = sources, orders, circle
        self._kernels = [tuple(kernels) for _, kernels in sources]
        self._laid = [[LaidOut(points.take(order), circle) for points, _ in sources] for order in orders]

    def __reduce__(self) -> tuple[Callable[..., KernelStack], tuple[Any, ...]]:
        """To other processes rows travel once, to be laid out there in every order."""
        return _stacked, (self._sources, self._orders, self._circle, self._hollow, self.centred_by_rows)

    def sent(self, engine: Engine) -> KernelStack:
        """Return the stack with its rows where an engine computes."""
        there = copy(self)
        there._laid = [[rows.sent(engine) for rows in of_order] for of_order in self._laid]  # noqa: SLF001 - made here
        return there

    def lines(self, order: int, block: Block, out: Array) -> Iterator[int]:
        """Write the block's entries of one member after another into `out`; yields its number."""
        number = 0
        for rows, kernels in zip(self._laid[order], self._kernels, strict=True):
            # Kept alive, the tiles share their distances between the kernels; a single kernel needs no such memory.
            kept = list(rows.tiles(block)) if len(kernels) > 1 else None
            for pairs, _ in kept or ():
                pairs.halve_bandwidths()
            for kernel in kernels:
                for pairs, columns in kept if kept is not None else rows.tiles(block):
                    out[:, columns] = kernel.evaluate(pairs)
                if self._hollow and block.kind == "lags" and block.start == 0:
                    out[0] = 0.0
                yield number
                number += 1

    def fixed_entries(self, order: int) -> Array:
        """Return the entries between fixed rows in one order, shape (members, fixed, fixed)."""
        entries: list[NDArray[Any]] = []
        for rows, kernels in zip(self._laid[order], self._kernels, strict=True):
            pairs = DensePairs(rows.fixed, rows.fixed)
            entries += [kernel.evaluate(pairs) for kernel in kernels]
        stacked: Array = np.stack(entries)
        if self._hollow:
            places = np.arange(stacked.shape[1])
            stacked[:, places, places] = 0.0
        return stacked


def _stacked(
    sources: Sequence[tuple[Points, Sequence[Kernel]]],
    orders: Sequence[NDArray[np.intp]],
    circle: int,
    hollow: bool,
    centred_by_rows: bool,
) -> KernelStack:
    return KernelStack(sources, orders, circle, hollow=hollow, centred_by_rows=centred_by_rows)
