"""Both sides of the shifts on a device: lines of matrices that float32 holds well.

Off the diagonal, an entry is kept as what is left of it after something has been taken out that is known in float64,
about the means of its two rows (their effects a):

    K_ij = a_i + a_j + K'_ij

What is left has the size of the centred matrix, and so has its rounding; effects common to all lines would add up. The
diagonals are not on the device at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.inference.lags import window
from kerntest.kernels.on_device import DenseOnDevice, DeviceRows, LagsOnDevice, evaluated, refuse_host_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.device import Device, DeviceArray
    from kerntest.inference.lags import Block
    from kerntest.inference.stacks import KernelStack
    from kerntest.kernels.base import Array, Kernel, Points
    from kerntest.kernels.on_device import DevicePairs

# The mean over so many rows, evenly spread, tells the effect of a row well enough.
MEAN_ROWS = 256
# Entries of which means are taken at a time.
MEAN_ENTRIES = 2**24


class KernelsOnDevice:
    """Kernel matrices less the effects of their rows, zero on the diagonal.

    Parameters
    ----------
    stack : KernelStack
    n, circle : int
        Rows, and how many of them lie on the circle.
    device : Device

    Raises
    ------
    UndecidedError
        If a kernel needs functions that devices do not have.
    """

    def __init__(self, stack: KernelStack, n: int, circle: int, device: Device) -> None:
        self.members = stack.members
        self.n, self.circle, self.device, self.stack = n, circle, device, stack
        sources = list(stack.placed(0))
        refuse_host_only([kernel for _, _, kernels in sources for kernel in kernels])
        self._effects = np.stack(
            [each for points, _, kernels in sources for each in row_effects(kernels, points, device)]
        )
        self._rings: dict[tuple[int, int], DeviceRows] = {}
        self._sent: dict[int, DeviceArray] = {}

    def effects(self, order: int) -> Array:
        """Return a of every matrix along the places of one order, shape (members, n)."""
        return self._effects[:, self._places(order)]

    def _places(self, order: int) -> NDArray[np.intp]:
        return next(self.stack.placed(order))[1]

    def moved(self, along_first: Array, order: int) -> Array:
        """Return values along the places of the first order, shape (members, n), along those of another."""
        by_row = np.empty_like(along_first)
        by_row[:, self._places(0)] = along_first
        return by_row[:, self._places(order)]

    def lines(self, order: int, block: Block) -> Iterator[DeviceArray]:
        """Yield the block's entries of one member after another, shape (block.count, circle)."""
        effects = self._laid_effects(order)
        number = 0
        for source, (points, places, kernels) in enumerate(self.stack.placed(order)):
            pairs = self._pairs(order, source, points, places, block)
            for kernel in kernels:
                here, there = self._sides(effects[number, :], block, self.device.window)
                yield evaluated(kernel, pairs) - here - there
                number += 1

    def _laid_effects(self, order: int) -> DeviceArray:
        if order not in self._sent:
            self._sent[order] = self.device.send(laid_out(self.effects(order), self.circle))
        return self._sent[order]

    def _sides(self, laid: Any, block: Block, window: Callable[[Any, int], Any]) -> tuple[Any, Any]:
        """Return the effects of both rows of each pair of a block."""
        return laid[None, : self.circle], met(laid, block, self.circle, window)

    def _pairs(self, order: int, source: int, points: Points, places: NDArray[np.intp], block: Block) -> DevicePairs:
        circle = self.circle
        if block.kind == "fixed":
            start = circle + block.start
            fixed = DeviceRows(points, places[start : start + block.count], self.device)
            return DenseOnDevice(fixed, DeviceRows(points, places[:circle], self.device))
        if (order, source) not in self._rings:
            # Lags reach at most half the circle beyond its end.
            around = np.arange(circle + circle // 2) % circle
            self._rings[order, source] = DeviceRows(points, places[around], self.device)
        return LagsOnDevice(self._rings[order, source], block.start, block.count, circle)

    def exact_lines(self, order: int, block: Block) -> Iterator[Array]:
        """Yield the same from numpy in float64."""
        effects = laid_out(self.effects(order), self.circle)
        out = np.empty((block.count, self.circle))
        for member in self.stack.lines(order, block, out):
            here, there = self._sides(effects[member], block, window)
            yield out - here - there

    def fixed_entries(self, order: int) -> Array:
        """Return the entries between fixed rows, zero on the diagonal, shape (members, fixed, fixed), in float64."""
        effects = self.effects(order)[:, self.circle :]
        entries = self.stack.fixed_entries(order) - effects[:, :, None] - effects[:, None, :]
        places = np.arange(entries.shape[1])
        entries[:, places, places] = 0.0
        return entries

    def diagonals(self, order: int) -> Array:
        """Return the diagonals of the matrices themselves along the places of one order, shape (members, n)."""
        found = [
            kernel.diagonal(points)[places]
            for points, places, kernels in self.stack.placed(order)
            for kernel in kernels
        ]
        return np.stack(found)


def row_effects(kernels: Sequence[Kernel], points: Points, device: Device) -> Iterator[Array]:
    """Yield a with K_ij about a_i + a_j for each kernel, shape (n,), as the device has it.

    Cost: O(256 n p) operations on the device.
    """
    n = len(points)
    some = np.unique(np.linspace(0, n - 1, min(n, MEAN_ROWS)).astype(np.intp))
    across = DeviceRows(points, some, device)
    means = np.empty((len(kernels), n))
    height = MEAN_ENTRIES // len(some)
    for start in range(0, n, height):
        part = np.arange(start, min(start + height, n))
        pairs = DenseOnDevice(DeviceRows(points, part, device), across)
        for kernel, mean in zip(kernels, means, strict=True):
            mean[part] = device.fetch(device.xp.mean(evaluated(kernel, pairs), axis=1))
    for mean in means:
        effects = mean - mean[some].mean() / 2.0
        effects[~np.isfinite(effects)] = 0.0
        yield effects.astype(device.precision).astype(np.float64)


def laid_out(values: Array, circle: int) -> Array:
    """Return values along the places, shape (..., n), as around the circle, half around it again, then of fixed rows."""
    return np.concatenate([values[..., :circle], values[..., : circle // 2], values[..., circle:]], axis=-1)


def met(laid: Any, block: Block, circle: int, window: Callable[[Any, int], Any]) -> Any:
    """Return the values of the other row of each pair of a block: of what `laid_out` returned for one matrix."""
    if block.kind == "fixed":
        start = circle + circle // 2 + block.start
        return laid[start : start + block.count][:, None]
    return window(laid[block.start : block.start + circle + block.count - 1], block.count)
