"""Sweeps over a kernel matrix and correlations of factors on a device: see `sweep` and `low_rank`.

Entries have the precision of the device, or float64 where some of them show that this is too coarse; products and sums
are float64. Correlations are float64 altogether: they are few.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kerntest.kernels.on_device import DenseOnDevice, DeviceRows, evaluated, refuse_host_only

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.engines.base import Progress
    from kerntest.engines.device import Device, DeviceArray
    from kerntest.inference.low_rank import LowRank
    from kerntest.inference.sweep import Centring
    from kerntest.kernels.base import Array, Kernel, Points

# Entries of one strip, and bytes that each takes at most with all that is computed from it.
STRIP_ENTRIES = 2**27
BYTES_PER_ENTRY = 64
# The rows whose entries are compared with float64, and how far these may be off, in standard deviations of what is left
# of them after centring.
CHECKED_ROWS = 64
COARSE = 1e-4
# Entries of the correlations under way.
CORRELATED_ENTRIES = 2**26


class DeviceSweep:
    """Sums over strips of a symmetric matrix M: some rows against themselves and all rows after them.

    Parameters
    ----------
    kernel : Kernel
    points : Points
        n rows.
    vectors : ndarray, shape (n, q)
    weights : ndarray, shape (n, r)
    centring : Centring or None
    cubes : bool
        As in `sweep`.
    device : Device
        Its `error` is raised to that of the entries.

    Raises
    ------
    UndecidedError
        If the kernel needs functions that devices do not have, or one row does not fit into the memory of the device.

    Notes
    -----
    Cost: O(n^2 (p + q + r) / 2) operations on the device.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        device: Device,
        *,
        vectors: Array,
        weights: Array,
        centring: Centring | None,
        cubes: bool,
    ) -> None:
        refuse_host_only([kernel])
        asked, error = device, _error(kernel, points, device)
        if device.precision == "float32" and not error <= COARSE:
            device, error = device.in_double(), 0.0
        self.kernel, self.points, self.centring, self.device, self.cubes = kernel, points, centring, device, cubes
        asked.error = max(asked.error, error)
        n = len(points)
        self.vectors, self.weights = device.send(vectors, "float64"), device.send(weights, "float64")
        self.means = None if centring is None else device.send(centring.row, "float64")
        self.height = device.most(BYTES_PER_ENTRY * n, max(1, min(n, STRIP_ENTRIES // n)), f"a row of {n:,} entries")

    def run(self, progress: Progress | None) -> tuple[Array, float, Array, float]:
        """Return M V, sum M_ij^2, (M o M) W and, where it is wanted, sum M_ij^3."""
        n = len(self.points)
        products, squares = (self.device.zeros(tuple(each.shape)) for each in (self.vectors, self.weights))
        total_square = cube_sum = 0.0
        starts = range(0, n, self.height)
        for done, start in enumerate(starts, start=1):
            stop = min(start + self.height, n)
            strip = self._strip(start, stop)
            square = strip * strip
            self._add_product(products, strip, self.vectors, start)
            self._add_product(squares, square, self.weights, start)
            total_square += self._both_triangles(square)
            if self.cubes:
                cube_sum += self._both_triangles(square * strip)
            if progress is not None:
                progress(done, len(starts))
        return self.device.fetch(products), total_square, self.device.fetch(squares), cube_sum

    def _add_product(self, total: DeviceArray, strip: DeviceArray, vectors: DeviceArray, start: int) -> None:
        """Add the product of a strip, and of its mirror image below the diagonal, with some vectors."""
        xp, stop = self.device.xp, start + strip.shape[0]
        if not vectors.shape[1]:
            return
        total[start:stop, :] += xp.matmul(strip, vectors[start:, :])
        total[stop:, :] += xp.matmul(xp.matrix_transpose(strip[:, stop - start :]), vectors[start:stop, :])

    def _both_triangles(self, strip: DeviceArray) -> float:
        """Return the sum over a strip and over its mirror image."""
        xp = self.device.xp
        return 2.0 * float(xp.sum(strip)) - float(xp.sum(strip[:, : strip.shape[0]]))

    def _strip(self, start: int, stop: int) -> DeviceArray:
        """Return the rows [start, stop) of M from their diagonal on."""
        xp, device = self.device.xp, self.device
        here, after = (DeviceRows(self.points, np.arange(start, last), device) for last in (stop, len(self.points)))
        strip = device.doubled(evaluated(self.kernel, DenseOnDevice(here, after)))
        if self.means is not None and self.centring is not None:
            strip = strip - self.means[start:stop][:, None] - (self.means[start:][None, :] - self.centring.grand)
        if self.centring is None or self.centring.hollow:
            down = xp.arange(stop - start, device=device.place)
            square = strip[:, : stop - start]
            strip[:, : stop - start] = xp.where(down[:, None] == down[None, :], xp.zeros_like(square), square)
        return strip


def _error(kernel: Kernel, points: Points, device: Device) -> float:
    """Return how far entries of some rows are from those in float64, in standard deviations of them after centring."""
    n = len(points)
    some = np.unique(np.linspace(0, n - 1, min(n, CHECKED_ROWS)).astype(np.intp))
    apart = ~np.eye(len(some), dtype=bool)
    rows = DeviceRows(points, some, device)
    with np.errstate(over="ignore", invalid="ignore"):
        exact = kernel(points.take(some))
        off = np.abs(device.fetch(evaluated(kernel, DenseOnDevice(rows, rows))) - exact)[apart].max(initial=0.0)
        means = (exact * apart).sum(axis=1) / (len(some) - 1)
        spread = float((exact - means[:, None] - means[None, :])[apart].std())
    if off == 0:
        return 0.0
    return float(off / spread) if spread > 0 else math.inf


def device_correlations(
    first: LowRank, second: Sequence[LowRank], circle: int, device: Device, progress: Progress | None
) -> Array:
    """Return sum_ab (sum_i G_ia H_{i+t,b})^2 for every shift of every order of H, shape (C, circle).

    Cost: O(C r_K r_L n' log n') operations on the device, in float64.
    """
    xp = device.xp
    ring, fixed = _on_ring(first, circle, device)
    ahead = xp.conj(xp.fft.rfft(ring, axis=1))
    sums = np.empty((len(second), circle))
    height = max(1, CORRELATED_ENTRIES // circle)
    for order, moved in enumerate(second):
        others, fixed_others = _on_ring(moved, circle, device)
        around = xp.fft.rfft(others, axis=1)
        # What the fixed rows add to each correlation, whatever the shift.
        still = xp.matmul(fixed, xp.matrix_transpose(fixed_others))
        total = device.zeros((circle,))
        for a in range(first.rank):
            for start in range(0, moved.rank, height):
                some = slice(start, start + height)
                crossed = xp.fft.irfft(ahead[a, :][None, :] * around[some, :], n=circle, axis=1)
                crossed = crossed + still[a, some][:, None]
                total = total + xp.sum(crossed * crossed, axis=0)
        sums[order] = device.fetch(total)
        if progress is not None:
            progress(order + 1, len(second))
    return sums


def _on_ring(matrix: LowRank, circle: int, device: Device) -> tuple[DeviceArray, DeviceArray]:
    """Return the columns of a factor as rows on the device: those on the circle, and the others."""
    columns = matrix.columns.T
    return device.send(columns[:, :circle], "float64"), device.send(columns[:, circle:], "float64")
