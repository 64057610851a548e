"""All cyclic relabellings at once, on a device: see `kerntest.inference.shifts` for what is summed.

The device holds float32 lines, transforms them and sums their products over a block; sums over blocks are complex128.
What was taken out of the entries before (see `device_sides`) is put back in float64, in closed form. Rounding of an
entry is the same for all relabellings: it makes another symmetric matrix close to K. What differs between
relabellings is the rounding of the transforms, in units of the entries less their mean; it is measured against
float64 on some lines. Where that is too much for the statistic, as with kernels that are nearly constant or beyond the
range of float32, all is done once more in float64 on the device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.device_lines import DeviceLines
from kerntest.inference.device_sides import KernelsOnDevice
from kerntest.inference.lags import Block
from kerntest.inference.shifts import ShiftSums
from kerntest.inference.stacks import KernelStack

if TYPE_CHECKING:
    from kerntest.engines.base import Progress
    from kerntest.engines.device import Device
    from kerntest.inference.device_lines import Margins
    from kerntest.inference.stacks import Stack
    from kerntest.kernels.base import Array

# Lines at each of two places whose sums are compared with float64.
CHECKED_LINES = 4
# How far rounding may move a sum: so many times what those lines let expect (seen: half of that), and beside that,
# since few lines may hold nothing of a sparse matrix, so many units of the rounding of transforms.
SAFETY = 2.0
UNITS = 4.0
# Sums are computed in float64 if rounding may move them by more than so many of their standard deviations, or if more
# than such a share of them is so near to the observed one that rounding decides which is larger.
COARSE = 1e-3
NEAR_TIES = 3e-5


def device_takes(first: Stack, second: Stack) -> bool:
    """Say whether a device can lay out both sides."""
    return isinstance(first, KernelStack) and isinstance(second, KernelStack)


def device_shift_sums(
    first: Stack,
    second: Stack,
    *,
    n: int,
    circle: int,
    orders: int,
    device: Device,
    progress: Progress | None = None,
) -> ShiftSums:
    """Return <A_f, B_g> for all pairs of matrices and every relabelling.

    Parameters
    ----------
    first : KernelStack
        F matrices A_f over n rows in one order.
    second : KernelStack
        G matrices B_g, in `orders` orders of which the first is that of `first`.
    n, circle, orders : int
    device : Device
        Its `error` is raised to that of these sums.
    progress : callable, optional
        Called with (blocks handed to the device, blocks in all).

    Raises
    ------
    UndecidedError
        If a kernel needs functions that the device does not have, or not even one line fits into its memory.
    TypeError
        If a side is of another class: ask `device_takes`.

    Notes
    -----
    Cost: O((F + G C) n^2 (p + log n) + F G C n^2) operations on the device. They are passes over its memory: some 120
    bytes an entry for each matrix, 16 for each pair of matrices; three times that where float32 is too coarse. Memory:
    9 KB a row for one matrix on either side, less where the device has less.
    """
    # What float32 cannot hold is found out by the errors that it leaves.
    with np.errstate(over="ignore", invalid="ignore"):
        found, error = _summed(first, second, n=n, circle=circle, orders=orders, device=device, progress=progress)
        if device.precision == "float32" and not (error.moved <= COARSE and error.near_ties <= NEAR_TIES):
            wide = device.in_double()
            found, error = _summed(first, second, n=n, circle=circle, orders=orders, device=wide, progress=progress)
    device.error = max(device.error, error.measured)
    return found


@dataclass(frozen=True, slots=True)
class _Error:
    """How far sums are off, as measured, and how far they may be moved: in standard deviations over the shifts.

    `near_ties` is the share of the shifts that may thereby come to stand on the other side of the observed sum.
    """

    measured: float
    moved: float
    near_ties: float


def _summed(
    first: Stack, second: Stack, *, n: int, circle: int, orders: int, device: Device, progress: Progress | None
) -> tuple[ShiftSums, _Error]:
    """Return the sums in the precision of the device."""
    if not isinstance(first, KernelStack) or not isinstance(second, KernelStack):
        raise TypeError(f"{type(first).__name__} and {type(second).__name__} are not for a device")
    left, right = (KernelsOnDevice(stack, n, circle, device) for stack in (first, second))
    lines = DeviceLines(left, right, n, circle, device)
    values, of_first, of_second = lines.sums(orders, progress)
    fixed = left.fixed_entries(0), [right.fixed_entries(order) for order in range(orders)]
    values += np.stack([np.einsum("fij,gij->fg", fixed[0], entries) for entries in fixed[1]], axis=2)[..., None]
    of_first, of_second = of_first.with_fixed(fixed[0]), of_second.with_fixed(fixed[1][0])
    found = _with_effects(left, right, values, (of_first, of_second))
    measured = _measured(lines)
    centred = _centred(found, right, hollow=first.hollow)
    spread = centred.std(axis=(2, 3))
    expected = np.sqrt(np.outer(of_first.squares, of_second.squares)) / n
    doubt = SAFETY * measured + UNITS * math.log2(circle) * device.rounding * expected
    # Where no shift changes a sum, float64 has to say so.
    units = np.where(spread > 0, spread, np.inf), np.where(spread > 0, spread, np.finfo(np.float64).tiny)
    near = np.abs(centred - centred[:, :, :1, :1]) <= doubt[:, :, None, None]
    near[:, :, 0, 0] = False
    off, moved = (float(np.max(by / unit)) for by, unit in zip((measured, doubt), units, strict=True))
    error = _Error(off, moved, float(near.mean(axis=(2, 3)).max()))
    return replace(found, doubt=doubt), error


def _with_effects(
    left: KernelsOnDevice, right: KernelsOnDevice, values: Array, margins: tuple[Margins, Margins]
) -> ShiftSums:
    """Return <K, L> from the sums of K'_ij L'_ij, which are changed.

    With b the effects of L and r', s' the row sums of K' and L', over i != j

        sum K_ij L_ij = sum K'_ij L'_ij + 2 sum_i (r'_i + (n - 2) a_i) b_i + 2 sum_i a_i s'_i + 2 sum_i a_i sum_i b_i.
    """
    n, circle, orders = left.n, left.circle, range(values.shape[2])
    a, b = left.effects(0), np.stack([right.effects(order) for order in orders], axis=1)
    rows_y = np.stack([right.moved(margins[1].rows, order) for order in orders], axis=1)
    values += correlated(2.0 * (margins[0].rows + (n - 2) * a), b, circle)
    values += correlated(2.0 * a, rows_y, circle)
    values += 2.0 * np.outer(a.sum(axis=1), b[:, 0].sum(axis=1))[:, :, None, None]
    on_x, on_y = left.diagonals(0), np.stack([right.diagonals(order) for order in orders], axis=1)
    if not (left.stack.hollow or right.stack.hollow):
        values += correlated(on_x, on_y, circle)
    of_x = _restored(margins[0], a, on_x * (not left.stack.hollow))
    of_y = _restored(margins[1], b[:, 0], on_y[:, 0] * (not right.stack.hollow))
    return ShiftSums(values, of_x[0], of_y[0], of_x[1], of_y[1])


def _restored(margins: Margins, effects: Array, diagonal: Array) -> tuple[Array, Array]:
    """Return row sums and sums of squares of matrices with the effects of their rows and their diagonals."""
    n, total = effects.shape[1], effects.sum(axis=1)
    rows = margins.rows + (n - 2) * effects + total[:, None] + diagonal
    squares = margins.squares + 4.0 * (effects * margins.rows).sum(axis=1)
    squares += 2.0 * (n - 2) * np.square(effects).sum(axis=1) + 2.0 * total**2
    return rows, squares + np.square(diagonal).sum(axis=1)


def correlated(left: Array, right: Array, circle: int) -> Array:
    """Return sum_i x_i y_{i+t} over the circle and what follows it, for every shift t of the circle.

    Parameters
    ----------
    left : ndarray, shape (F, n)
    right : ndarray, shape (G, C, n)
    circle : int

    Returns
    -------
    ndarray, shape (F, G, C, circle)
    """
    ahead = np.conj(np.fft.rfft(left[:, :circle]))
    around = np.fft.rfft(right[:, :, :circle])
    found: Array = np.fft.irfft(ahead[:, None, None] * around[None], n=circle)
    found += np.einsum("fi,gci->fgc", left[:, circle:], right[:, :, circle:])[..., None]
    return found


def _measured(lines: DeviceLines) -> Array:
    """Return the largest error of a sum, shape (F, G), as some lines in float64 let expect it.

    Errors of different lines are independent: what is common to all lines has been taken out of them.
    """
    most, (F, G) = lines.circle // 2, (lines.first.members, lines.second.members)
    largest = np.zeros((F, G))
    for start in {1, max(1, most // 2)}:
        block = Block("lags", start, min(CHECKED_LINES, most + 1 - start))
        error = np.abs(lines.block_sums(block) - lines.exact_block_sums(block)).max(axis=2)
        largest = np.maximum(largest, error / math.sqrt(block.count))
    every: Array = largest * math.sqrt(most + lines.n - lines.circle)
    return every


def _centred(found: ShiftSums, right: KernelsOnDevice, *, hollow: bool) -> Array:
    """Return the sums as they are after centring, but for what no relabelling changes, shape (F, G, orders, circle)."""
    n, orders = right.n, range(found.values.shape[2])
    rows = np.stack([right.moved(found.rows_second, order) for order in orders], axis=1)
    centred: Array = found.values - 2.0 / (n - 2 if hollow else n) * correlated(found.rows_first, rows, right.circle)
    return centred
