"""Passes over the lines of two sides on a device: the spectra of their products, row sums and sums of squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.lags import Block, halved_lines
from kerntest.inference.shifts import MANY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kerntest.engines.base import Progress
    from kerntest.engines.device import Device, DeviceArray
    from kerntest.inference.device_sides import KernelsOnDevice
    from kerntest.kernels.base import Array

# Lines of one block: sums over them stay in the precision of the device.
LINES = 128
# Bytes that a float32 entry of a block takes at most, with the values, distances and transforms of one matrix under way.
BYTES_PER_ENTRY = 72
# Transforms of the second side are held for so many bytes at most: orders beyond that are done in further passes.
HELD_BYTES = 2**33


class DeviceMargins:
    """Row sums and sums of squares of the matrices of one side, in float64 on the device.

    Parameters
    ----------
    members, n, circle : int
    device : Device
    """

    def __init__(self, members: int, n: int, circle: int, device: Device) -> None:
        self.circle, self.device = circle, device
        self._rings = [device.zeros((circle,)) for _ in range(members)]
        self._reached = [device.zeros((2 * circle,)) for _ in range(members)]
        self._fixed = [device.zeros((n - circle,)) for _ in range(members)]
        self._squares = [device.zeros(()) for _ in range(members)]

    def add(self, member: int, values: DeviceArray, block: Block) -> None:
        """Add what a block of lines, shape (block.count, circle), contributes to those of one matrix."""
        xp, wide = self.device.xp, self.device.doubled
        once = halved_lines(block, self.circle)
        squares = wide(xp.sum(values * values, axis=1))
        weighted = 2.0 * xp.sum(squares) - sum(squares[line] for line in once)
        self._squares[member] = self._squares[member] + weighted
        self._rings[member] = self._rings[member] + wide(xp.sum(values, axis=0))
        if block.kind == "fixed":
            self._fixed[member][block.start : block.start + block.count] = wide(xp.sum(values, axis=1))
            return
        # The mirror image: K[i + k, i] belongs to the row at i + k. The last line may hold both already.
        mirrored = block.count - len(once)
        if mirrored:
            reached = self.device.shifted_sum(values[:mirrored, :])
            self._reached[member][block.start : block.start + reached.shape[0]] += wide(reached)

    def fetch(self) -> Margins:
        """Return them in this process."""
        fetch, circle = self.device.fetch, self.circle
        rows = []
        for ring, reached, fixed in zip(self._rings, self._reached, self._fixed, strict=True):
            around = fetch(reached)
            rows.append(np.concatenate([fetch(ring) + around[:circle] + around[circle:], fetch(fixed)]))
        squares = np.array([float(one) for one in self._squares])
        return Margins(np.array(rows), squares)


@dataclass(frozen=True, slots=True, eq=False)
class Margins:
    """Row sums, shape (members, n), and sums of squares, shape (members,), of matrices with a zero diagonal."""

    rows: Array
    squares: Array

    def with_fixed(self, entries: Array) -> Margins:
        """Return those with the entries between fixed rows, shape (members, fixed, fixed)."""
        rows = self.rows.copy()
        rows[:, rows.shape[1] - entries.shape[1] :] += entries.sum(axis=2)
        return Margins(rows, self.squares + np.square(entries).sum(axis=(1, 2)))


class DeviceLines:
    """Two sides over the same circle.

    Parameters
    ----------
    first, second : KernelsOnDevice
        F matrices in one order, G in several.
    n, circle : int
    device : Device
    """

    def __init__(self, first: KernelsOnDevice, second: KernelsOnDevice, n: int, circle: int, device: Device) -> None:
        self.first, self.second, self.n, self.circle, self.device = first, second, n, circle, device

    def blocks(self, held: int) -> list[Block]:
        """Return blocks that cover all pairs of different rows with at least one of them on the circle.

        Parameters
        ----------
        held : int
            Matrices whose transforms are held together.

        Raises
        ------
        UndecidedError
            If not even one line fits into the memory of the device.
        """
        most = self.circle // 2
        line = (BYTES_PER_ENTRY + 4.0 * held) * self.circle * np.dtype(self.device.precision).itemsize / 4
        lines = self.device.most(line, LINES, f"one line of {self.n:,} rows")
        lags = [Block("lags", start, min(lines, most + 1 - start)) for start in range(1, most + 1, lines)]
        fixed = self.n - self.circle
        return lags + [Block("fixed", start, min(lines, fixed - start)) for start in range(0, fixed, lines)]

    def sums(self, orders: int, progress: Progress | None) -> tuple[Array, Margins, Margins]:
        """Return sum A_ij B_{i+t, j+t} over the pairs of `blocks`, and the margins of both sides over them.

        Returns
        -------
        values : ndarray, shape (F, G, orders, circle)
        first, second : Margins
            Of the first side, and of the second in the first order.
        """
        F, G = self.first.members, self.second.members
        values = np.empty((F, G, orders, self.circle))
        of_first = DeviceMargins(F, self.n, self.circle, self.device)
        of_second = DeviceMargins(G, self.n, self.circle, self.device)
        together = max(1, min(orders, HELD_BYTES // (8 * LINES * self.circle * G)))
        blocks = self.blocks(F + G * together)
        done, total = 0, -(-orders // together) * len(blocks)
        for start in range(0, orders, together):
            some = range(start, min(start + together, orders))
            spectrum = _Spectrum(F, G * len(some), self.circle, self.device)
            for block in blocks:
                margins = (of_first, of_second) if start == 0 else (None, None)
                self._add_block(spectrum, block, some, margins)
                done += 1
                if progress is not None:
                    progress(done, total)
            values[:, :, some.start : some.stop] = spectrum.correlations().reshape(F, G, len(some), -1)
        return values, of_first.fetch(), of_second.fetch()

    def block_sums(self, block: Block) -> Array:
        """Return what one block adds to the sums in the first order, shape (F, G, circle)."""
        spectrum = _Spectrum(self.first.members, self.second.members, self.circle, self.device)
        self._add_block(spectrum, block, range(1), (None, None))
        return spectrum.correlations()

    def exact_block_sums(self, block: Block) -> Array:
        """Return the same from numpy in float64."""
        left = [np.fft.rfft(values) for values in self.first.exact_lines(0, block)]
        found = np.empty((len(left), self.second.members, self.circle))
        for g, values in enumerate(self.second.exact_lines(0, block)):
            values[halved_lines(block, self.circle)] *= 0.5
            right = np.fft.rfft(values)
            for f, transformed in enumerate(left):
                crossed = np.einsum("kf,kf->f", np.conj(transformed), right)
                found[f, g] = 2.0 * np.fft.irfft(crossed, n=self.circle)
        return found

    def _add_block(
        self,
        spectrum: _Spectrum,
        block: Block,
        orders: range,
        margins: tuple[DeviceMargins | None, DeviceMargins | None],
    ) -> None:
        """Add the products of a block of lines to the spectrum, and its entries to the margins."""
        halved = halved_lines(block, self.circle)
        right: list[list[DeviceArray]] = [[] for _ in range(self.second.members)]
        for order in orders:
            for g, values in enumerate(self.second.lines(order, block)):
                if order == 0 and margins[1] is not None:
                    margins[1].add(g, values, block)
                right[g].append(self._transformed(values, halved))
        others = [one for of_member in right for one in of_member]
        spectrum.add(self._left(block, margins[0]), others)

    def _left(self, block: Block, margins: DeviceMargins | None) -> Iterable[DeviceArray]:
        for f, values in enumerate(self.first.lines(0, block)):
            if margins is not None:
                margins.add(f, values, block)
            yield self.device.xp.fft.rfft(values, axis=1)

    def _transformed(self, values: DeviceArray, halved: Sequence[int]) -> DeviceArray:
        """Return conjugate transforms of lines, half of those that would count twice."""
        xp = self.device.xp
        if halved:
            weights = np.ones((values.shape[0], 1))
            weights[list(halved)] = 0.5
            values = values * self.device.send(weights)
        return xp.conj(xp.fft.rfft(values, axis=1))


class _Spectrum:
    """Half of sum_k w_k rfft(A_k) conj(rfft(B_k)) for F matrices on one side and J on the other, in complex128."""

    def __init__(self, first: int, second: int, circle: int, device: Device) -> None:
        self.device, self.circle, self.shape = device, circle, (first, second)
        self._stacked = first >= MANY and second >= MANY
        self._sums: dict[tuple[int, int], DeviceArray] = {}

    def add(self, lefts: Iterable[DeviceArray], rights: Sequence[DeviceArray]) -> None:
        """Add the products of the lines of a block, from arrays of shape (lines, frequencies)."""
        xp = self.device.xp
        if not self._stacked:
            for f, left in enumerate(lefts):
                for j, right in enumerate(rights):
                    self._add((f, j), xp.sum(left * right, axis=0))
            return
        # One matrix product for each frequency, over the lines.
        first = xp.permute_dims(xp.stack(list(lefts)), (2, 0, 1))
        products = xp.matmul(first, xp.permute_dims(xp.stack(rights), (2, 1, 0)))
        for f in range(self.shape[0]):
            for j in range(self.shape[1]):
                self._add((f, j), products[:, f, j])

    def _add(self, place: tuple[int, int], part: DeviceArray) -> None:
        part = self.device.doubled(part)
        self._sums[place] = self._sums[place] + part if place in self._sums else part

    def correlations(self) -> Array:
        """Return the sums for every shift, shape (F, J, circle)."""
        xp, (first, second) = self.device.xp, self.shape
        found = np.empty((first, second, self.circle))
        for (f, j), spectrum in self._sums.items():
            found[f, j] = self.device.fetch(2.0 * xp.fft.irfft(xp.conj(spectrum), n=self.circle, axis=-1))
        return found
