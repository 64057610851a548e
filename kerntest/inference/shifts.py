"""All cyclic relabellings at once.

The rows stand in a random order on a circle of length n. Relabelling by a shift t pairs row i of the kernel matrix K
with row i + t of the matrix B. Lag by lag, the sums over all shifts are circular correlations, so that

    S(t) = sum_ij K_ij B_{i+t, j+t} = irfft( sum_k w_k conj(rfft(K_k)) rfft(B_k) )(t),    K_k(i) = K[i, (i + k) mod n],

with k = 0 .. floor(n/2) and weights w_k from symmetry: n relabellings for O(n^2 log n), about what it takes to form
the kernel matrices once. Shifts are a group of relabellings, so that the p-value over them is exact.

Where n has a large prime factor, transforms would be several times slower: the circle then takes the first n' rows of
the random order, and the few others keep their partner under every shift. This is still a group. More than n'
relabellings come from further random orders of the rows of B (cosets of the group), with the transforms of K reused.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerntest.inference.lags import Block, LaidOut, halved_lines, plan_blocks
from kerntest.kernels.base import Array, DensePairs, Kernel, Points

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kerntest.engines.base import Engine, Progress

Spectrum: TypeAlias = NDArray[np.complex128]

# pocketfft has fast code for factors up to 5 and tolerable code up to 19 (measured: below 4.5 ns an entry, against 2.4
# for powers of 2, 3 and 5 and 10 to 25 beyond). Small circles are fast enough whatever their factors.
LARGEST_FACTOR = 19
SMALL_CIRCLE = 512
# Transforms of B held at once (32 MB): orders beyond that are done in further passes.
HELD_ENTRIES = 2**22


class Side(Protocol):
    """The matrix B, laid out in lines like K, in one or more orders of its rows. The first order is the observed."""

    def lines(self, order: int, block: Block, out: Array) -> None:
        """Write the block's entries in one order into `out`, shape (block.count, circle)."""
        ...

    def fixed_entries(self, order: int) -> Array:
        """Return the entries between fixed rows in one order."""
        ...


def circle_length(n: int) -> int:
    """Return the largest length up to n that the Fourier transform is fast at; n itself when it is small."""
    if n <= SMALL_CIRCLE:
        return n
    length = n
    while not _is_smooth(length):
        length -= 1
    return length


def _is_smooth(number: int) -> bool:
    for prime in (2, 3, 5, 7, 11, 13, 17, LARGEST_FACTOR):
        while number % prime == 0:
            number //= prime
    return number == 1


def orders_needed(relabellings: int, circle: int) -> int:
    """Return how many random orders give at least `relabellings` relabellings."""
    return -(-relabellings // circle)


@dataclass(frozen=True, slots=True)
class _Pass:
    """One block of lines, for some of the orders."""

    block: Block
    first_order: int
    last_order: int


def shift_sums(
    kernels: Sequence[Kernel],
    points: Points,
    side: Side,
    *,
    circle: int,
    orders: int,
    engine: Engine,
    progress: Progress | None = None,
) -> Array:
    """Return <K_f, B_g> for every kernel f and every relabelling g.

    Parameters
    ----------
    kernels : sequence of F Kernel
        Evaluated on the same pairs, so that they share distances.
    points : Points
        n rows in their random order, the first `circle` of them on the circle.
    side : Side
        The matrix B in each order.
    circle, orders : int
        Length of the circle n' and number of orders C.
    engine : Engine
        Where blocks of lags are computed.
    progress : callable, optional
        Called with (blocks done, blocks in all).

    Returns
    -------
    ndarray, shape (F, C, n')
        [:, 0, 0] is the observed labelling, [:, c, t] the order c shifted by t.

    Notes
    -----
    Cost: O(F n^2 (p + log n) + C n^2 log n) time for p columns, O(64 n) to O(128 n) numbers per thread; never n x n.
    Sums have a fixed order: the result does not depend on the number of threads.
    """
    rows = LaidOut(points, circle)
    blocks = plan_blocks(circle, len(rows.fixed))
    held = max(1, HELD_ENTRIES // (circle * max(block.count for block in blocks)))
    result = np.empty((len(kernels), orders, circle))
    for first in range(0, orders, held):
        last = min(first + held, orders)
        passes = [_Pass(block, first, last) for block in blocks]
        work = _block_spectrum(kernels, rows, side)
        spectrum = np.zeros((len(kernels), last - first, circle // 2 + 1), dtype=np.complex128)
        for partial in engine.map(work, passes, _shifted(progress, first, held, orders, len(blocks))):
            spectrum += partial
        np.conj(spectrum, out=spectrum)
        spectrum *= 2.0
        result[:, first:last] = np.fft.irfft(spectrum, n=circle, axis=-1)
    if len(rows.fixed):
        result += _fixed_sums(kernels, rows.fixed, side, orders)[:, :, None]
    return result


def _block_spectrum(kernels: Sequence[Kernel], rows: LaidOut, side: Side) -> Callable[[_Pass], Spectrum]:
    """Return the work on one block: half of sum_k w_k rfft(K_k) conj(rfft(B_k)), shape (F, orders, circle // 2 + 1)."""
    scratch = _Scratch()
    frequencies = rows.circle // 2 + 1

    def work(item: _Pass) -> Spectrum:
        block, orders = item.block, range(item.first_order, item.last_order)
        values = scratch.array("values", (block.count, rows.circle), np.float64)
        others = scratch.array("others", (len(orders), block.count, frequencies), np.complex128)
        for place, order in enumerate(orders):
            side.lines(order, block, values)
            np.fft.rfft(values, axis=1, out=others[place])
        np.conj(others, out=others)
        others[:, halved_lines(block, rows.circle)] *= 0.5
        # Kept alive, the tiles share their distances between the kernels; a single kernel needs no such memory.
        kept = list(rows.tiles(block)) if len(kernels) > 1 else None
        transformed = scratch.array("transformed", (block.count, frequencies), np.complex128)
        partial = np.empty((len(kernels), len(orders), frequencies), dtype=np.complex128)
        for number, kernel in enumerate(kernels):
            for pairs, columns in kept if kept is not None else rows.tiles(block):
                values[:, columns] = kernel.evaluate(pairs)
            np.fft.rfft(values, axis=1, out=transformed)
            np.einsum("kf,ckf->cf", transformed, others, out=partial[number])
        return partial

    return work


class _Scratch(threading.local):
    """Arrays that a thread uses again for each block: fresh ones would cost as much as the arithmetic, page by page."""

    def __init__(self) -> None:
        self._held: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
        """Return an array of that shape whose contents are whatever was left in it."""
        size = math.prod(shape)
        if name not in self._held or self._held[name].size < size:
            self._held[name] = np.empty(size, dtype=dtype)
        return self._held[name][:size].reshape(shape)


def _fixed_sums(kernels: Sequence[Kernel], fixed: Points, side: Side, orders: int) -> Array:
    """Return the part of each sum that no shift changes: pairs of fixed rows. Shape (F, orders)."""
    entries = np.stack([side.fixed_entries(order) for order in range(orders)])
    pairs = DensePairs(fixed, fixed)
    return np.stack([np.einsum("ij,cij->c", kernel.evaluate(pairs), entries) for kernel in kernels])


def _shifted(progress: Progress | None, first: int, held: int, orders: int, blocks: int) -> Progress | None:
    """Return `progress` as seen by one of several passes over the blocks."""
    if progress is None:
        return None
    done_before = first // held * blocks
    total = -(-orders // held) * blocks
    return lambda done, _: progress(done_before + done, total)
