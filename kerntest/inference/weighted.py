"""A centred kernel matrix times another kernel matrix, entry by entry, laid out in lines for the shifts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.lags import Block, LaidOut, window
from kerntest.kernels.base import Array, DensePairs, Kernel, Points

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kerntest.inference.sweep import Centring


class CentredProduct:
    """The matrix K o U(L) with zero diagonal, or U(L) alone: a `Stack` of one member in one order.

    Parameters
    ----------
    factor : (Points, Kernel) or None
        n rows and the kernel of K.
    target : (Points, Kernel)
        The same of L.
    centring : Centring
        The U-centring of L.
    order : ndarray of int, shape (n,)
        Which row stands at each place.
    circle : int
        How many places lie on the circle.
    """

    members = 1
    centred_by_rows = False

    def __init__(
        self,
        factor: tuple[Points, Kernel] | None,
        target: tuple[Points, Kernel],
        centring: Centring,
        order: NDArray[np.intp],
        circle: int,
    ) -> None:
        sides = [target] if factor is None else [target, factor]
        self._kernels = [kernel for _, kernel in sides]
        self._laid = [LaidOut(points.take(order), circle) for points, _ in sides]
        rows = centring.row[order]
        self._fixed_rows = rows[circle:]
        self._rows = rows[np.arange(circle + circle // 2 + 1) % circle]
        self._grand = centring.grand

    def lines(self, order: int, block: Block, out: Array) -> Iterator[int]:
        """Write the block's entries into `out`, shape (block.count, circle); yields 0."""
        del order
        for place, (kernel, laid) in enumerate(zip(self._kernels, self._laid, strict=True)):
            for pairs, columns in laid.tiles(block):
                if place == 0:
                    out[:, columns] = kernel.evaluate(pairs)
                    out[:, columns] -= self._row_means(block, columns)
                else:
                    out[:, columns] *= kernel.evaluate(pairs)
        if block.kind == "lags" and block.start == 0:
            out[0] = 0.0
        yield 0

    def _row_means(self, block: Block, columns: slice) -> Array:
        """Return what centring takes from the entries of a tile."""
        here = self._rows[columns][None, :] - self._grand
        if block.kind == "fixed":
            return here + self._fixed_rows[block.start : block.start + block.count, None]
        met = self._rows[columns.start + block.start : columns.stop + block.start + block.count - 1]
        means: Array = here + window(met, block.count)
        return means

    def fixed_entries(self, order: int) -> Array:
        """Return the entries between fixed rows, shape (1, fixed, fixed)."""
        del order
        entries: Array = np.asarray(-self._fixed_rows[:, None] - self._fixed_rows[None, :] + self._grand)
        for place, (kernel, laid) in enumerate(zip(self._kernels, self._laid, strict=True)):
            values = kernel.evaluate(DensePairs(laid.fixed, laid.fixed))
            entries = entries + values if place == 0 else entries * values
        np.fill_diagonal(entries, 0.0)
        return entries[None]
