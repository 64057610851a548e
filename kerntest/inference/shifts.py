"""All cyclic relabellings at once.

The rows stand in a random order on a circle of length n. Relabelling by a shift t pairs row i of the matrix A with row
i + t of the matrix B. Lag by lag, the sums over all shifts are circular correlations, so that

    S(t) = sum_ij A_ij B_{i+t, j+t} = irfft( sum_k w_k conj(rfft(A_k)) rfft(B_k) )(t),    A_k(i) = A[i, (i + k) mod n],

with k = 0 .. floor(n/2) and weights w_k from symmetry: n relabellings for O(n^2 log n), about what it takes to form
the matrices once. Shifts are a group of relabellings, so that the p-value over them is exact.

Where n has a large prime factor, transforms would be several times slower: the circle then takes the first n' rows of
the random order, and the few others keep their partner under every shift. This is still a group. More than n'
relabellings come from further random orders of the rows of B (cosets of the group), with the transforms of A reused.

Several matrices on each side (kernels of a family, columns of a table) share their transforms over all pairs.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerntest.engines.base import enough_for, in_pieces
from kerntest.matrices.lags import Block, KernelStack, add_row_sums, halved_lines, plan_blocks, square_sum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array

Spectrum: TypeAlias = NDArray[np.complex128]

# pocketfft has fast code for factors up to 5 and tolerable code up to 19 (measured: below 4.5 ns an entry, against 2.4
# for powers of 2, 3 and 5 and 10 to 25 beyond). Small circles are fast enough whatever their factors.
LARGEST_FACTOR = 19
SMALL_CIRCLE = 512
# Transforms of B held at once (32 MB): orders beyond that are done in further passes.
HELD_ENTRIES = 2**22
# From so many matrices on both sides, one matrix product for each frequency can beat a product for each pair.
MANY = 4
# It takes so many products of all pairs, and of two more matrices on both sides, in the time of one pair (measured).
TOGETHER = 2.5


@dataclass(frozen=True, slots=True, eq=False)
class ShiftSums:
    """Sums over all relabellings, and the row sums that centring needs.

    Parameters
    ----------
    values : ndarray, shape (F, G, C, n')
        <A_f, B_g> in the order c shifted by t; [:, :, 0, 0] is observed.
    rows_first : ndarray, shape (F, n)
        Row sums of every A_f, along the places of the first order.
    rows_second : ndarray, shape (G, n)
        The same of every B_g.
    squares_first : ndarray, shape (F,)
        sum_ij A_ij^2.
    squares_second : ndarray, shape (G,)
        The same of every B_g.
    """

    values: Array
    rows_first: Array
    rows_second: Array
    squares_first: Array
    squares_second: Array


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


@dataclass(frozen=True, slots=True, eq=False)
class _Partial:
    """What some blocks add: to the spectra, and (in the pass that holds the first order) to the sums of each side."""

    spectrum: Spectrum
    first: _Margins
    second: _Margins

    def add(self, other: _Partial) -> None:
        """Add what other blocks add."""
        # Kept in the layout in which blocks hand it over.
        np.add(self.spectrum, other.spectrum, out=self.spectrum)
        self.first.add(other.first)
        self.second.add(other.second)


@dataclass(frozen=True, slots=True, eq=False)
class _Margins:
    """Row sums and sums of squares of the matrices of one side, where they are wanted.

    Parameters
    ----------
    rows : ndarray, shape (members, n)
    squares : ndarray, shape (members,)
    """

    rows: Array
    squares: Array

    @classmethod
    def of(cls, side: KernelStack, n: int) -> _Margins:
        """Return those of nothing yet."""
        return cls(np.zeros((side.members, n)), np.zeros(side.members))

    def add_lines(self, member: int, values: Array, block: Block, circle: int) -> None:
        """Add what a block of lines contributes to those of one matrix."""
        add_row_sums(self.rows[member], values, block, circle)
        self.squares[member] += square_sum(values, block, circle)

    def add(self, other: _Margins) -> None:
        """Add those of other blocks."""
        np.add(self.rows, other.rows, out=self.rows)
        np.add(self.squares, other.squares, out=self.squares)


def shift_sums(
    first: KernelStack,
    second: KernelStack,
    *,
    n: int,
    circle: int,
    orders: int,
    engine: Engine,
    progress: Progress | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> ShiftSums:
    """Return <A_f, B_g> for all pairs of matrices, or for some, and every relabelling.

    Parameters
    ----------
    first : KernelStack
        F matrices A_f over n rows in one order.
    second : KernelStack
        G matrices B_g over the same rows, in `orders` orders of which the first is that of `first`.
    n, circle, orders : int
        Rows, length of the circle n' and number of orders C.
    engine : Engine
        Where blocks of lags are computed.
    progress : callable, optional
        Called with (pieces done, pieces in all).
    pairs : sequence of (int, int), optional
        The f and g that are wanted, where not all are: the sums of the others mean nothing.

    Notes
    -----
    Cost: O((F + G C) n^2 (p + log n) + F G C n^2) time for p columns; O(64 n) to O(128 n) numbers per thread for
    one matrix on either side, up to 2^23 for more, and F G C n for the result; never n x n. Sums have a fixed order:
    the result does not depend on the number of threads.
    """
    wanted = tuple(np.ndindex(first.members, second.members)) if pairs is None else tuple(pairs)
    matrices = second.members * orders
    stacked = min(first.members, matrices) >= MANY
    stacked &= (first.members + 2) * (matrices + 2) <= TOGETHER * len(wanted) * orders
    blocks = plan_blocks(circle, n - circle, first.members + second.members if stacked else 1)
    held = max(1, HELD_ENTRIES // (second.members * circle * max(block.count for block in blocks)))
    values = np.empty((first.members, second.members, orders, circle))
    of_first, of_second = _Margins.of(first, n), _Margins.of(second, n)
    engine = enough_for(engine, (first.members + second.members * orders) * n * circle / 2)
    work = _Summed((_StackedBlock if stacked else _SingleBlock)(first, second, circle, n, wanted).sent(engine))
    for start in range(0, orders, held):
        stop = min(start + held, orders)
        pieces = in_pieces([_Pass(block, start, stop) for block in blocks])
        total: _Partial | None = None
        for partial in engine.map(work, pieces, _shifted(progress, start, held, orders, len(pieces))):
            if total is None:
                total = partial
            else:
                total.add(partial)
        if total is not None:
            of_first.add(total.first)
            of_second.add(total.second)
            spectrum = np.ascontiguousarray(total.spectrum).reshape(first.members, second.members, stop - start, -1)
            np.conj(spectrum, out=spectrum)
            spectrum *= 2.0
            values[:, :, start:stop] = np.fft.irfft(spectrum, n=circle, axis=-1)
    if n > circle:
        fixed_first = first.fixed_entries(0)
        fixed_second = np.stack([second.fixed_entries(order) for order in range(orders)])
        values += np.einsum("fij,cgij->fgc", fixed_first, fixed_second)[..., None]
        for margins, entries in ((of_first, fixed_first), (of_second, fixed_second[0])):
            margins.rows[:, circle:] += entries.sum(axis=2)
            np.add(margins.squares, np.square(entries).sum(axis=(1, 2)), out=margins.squares)
    return ShiftSums(values, of_first.rows, of_second.rows, of_first.squares, of_second.squares)


@dataclass(frozen=True, slots=True, eq=False)
class _Summed:
    """The work on some neighbouring blocks: what they add together, so that one spectrum is handed over for all."""

    one: Callable[[_Pass], _Partial]

    def __call__(self, passes: Sequence[_Pass]) -> _Partial:
        """Return the sums over the blocks, in their order."""
        total = self.one(passes[0])
        for item in passes[1:]:
            total.add(self.one(item))
        return total


class _Blocks:
    """Work on one block of two stacks, with arrays that each thread uses again."""

    def __init__(
        self, first: KernelStack, second: KernelStack, circle: int, n: int, wanted: tuple[tuple[int, int], ...]
    ) -> None:
        self.first, self.second, self.circle, self.n, self.wanted = first, second, circle, n, wanted
        self.scratch = _Scratch(np.empty(0))

    def sent(self, engine: Engine) -> Self:
        """Compute where an engine does; return itself."""
        self.first, self.second = self.first.sent(engine), self.second.sent(engine)
        self.scratch = _Scratch(engine.send(np.empty(0)))
        return self

    def __reduce__(self) -> tuple[type[_Blocks], tuple[Any, ...]]:
        """Other processes have arrays of their own."""
        return type(self), (self.first, self.second, self.circle, self.n, self.wanted)

    @property
    def frequencies(self) -> int:
        """How many frequencies a line has."""
        return self.circle // 2 + 1

    def margins(self) -> tuple[_Margins, _Margins]:
        """Return the sums of both sides over nothing yet."""
        return _Margins.of(self.first, self.n), _Margins.of(self.second, self.n)


class _SingleBlock(_Blocks):
    """Half of sum_k w_k rfft(A_k) conj(rfft(B_k)) over the lines of a block, for one pair after another."""

    def __call__(self, item: _Pass) -> _Partial:
        """Return what the block adds."""
        first, second, circle, block = self.first, self.second, self.circle, item.block
        orders, frequencies = range(item.first_order, item.last_order), self.frequencies
        values = self.scratch.array("values", (block.count, circle), np.float64)
        others = self.scratch.array("others", (second.members, len(orders), block.count, frequencies), np.complex128)
        of_first, of_second = self.margins()
        for place, order in enumerate(orders):
            for member in second.lines(order, block, values):
                if order == 0 and second.centred_by_rows:
                    of_second.add_lines(member, values, block, circle)
                np.fft.rfft(values, axis=1, out=others[member, place])
        np.conj(others, out=others)
        others[:, :, halved_lines(block, circle)] *= 0.5
        together = others.reshape(-1, block.count, frequencies)
        transformed = self.scratch.array("transformed", (block.count, frequencies), np.complex128)
        product = self.scratch.array("product", (block.count, frequencies), np.complex128)
        spectrum = np.zeros((first.members, len(together), frequencies), dtype=np.complex128)
        for member in first.lines(0, block, values):
            if item.first_order == 0 and first.centred_by_rows:
                of_first.add_lines(member, values, block, circle)
            np.fft.rfft(values, axis=1, out=transformed)
            for place, partner in enumerate(together):
                if (member, place // len(orders)) in self.wanted:
                    # In two steps: `einsum` takes twice as long.
                    np.multiply(transformed, partner, out=product)
                    np.add.reduce(product, axis=0, out=spectrum[member, place])
        return _Partial(spectrum, of_first, of_second)


class _StackedBlock(_Blocks):
    """The same as one matrix product for each frequency, over the lines of the block."""

    def __call__(self, item: _Pass) -> _Partial:
        """Return what the block adds."""
        first, second, circle, block = self.first, self.second, self.circle, item.block
        orders, frequencies = range(item.first_order, item.last_order), self.frequencies
        values = self.scratch.array("values", (block.count, circle), np.float64)
        transformed = self.scratch.array("transformed", (block.count, frequencies), np.complex128)
        left = self.scratch.array("left", (frequencies, first.members, block.count), np.complex128)
        right = self.scratch.array("right", (frequencies, second.members * len(orders), block.count), np.complex128)
        of_first, of_second = self.margins()
        for place, order in enumerate(orders):
            for member in second.lines(order, block, values):
                if order == 0 and second.centred_by_rows:
                    of_second.add_lines(member, values, block, circle)
                np.fft.rfft(values, axis=1, out=transformed)
                np.conj(transformed.T, out=right[:, member * len(orders) + place])
        right[:, :, halved_lines(block, circle)] *= 0.5
        for member in first.lines(0, block, values):
            if item.first_order == 0 and first.centred_by_rows:
                of_first.add_lines(member, values, block, circle)
            np.fft.rfft(values, axis=1, out=transformed)
            left[:, member] = transformed.T
        spectrum = np.matmul(left, right.transpose(0, 2, 1))
        return _Partial(np.asarray(spectrum.transpose(1, 2, 0)), of_first, of_second)


class _Scratch(threading.local):
    """Arrays that a thread uses again for each block: fresh ones would cost as much as the arithmetic, page by page."""

    def __init__(self, like: Array) -> None:
        self._like = like
        self._held: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
        """Return an array of that shape whose contents are whatever was left in it."""
        size = math.prod(shape)
        if name not in self._held or self._held[name].size < size:
            self._held[name] = np.empty_like(self._like, shape=size, dtype=dtype)
        return self._held[name][:size].reshape(shape)


def _shifted(progress: Progress | None, first: int, held: int, orders: int, pieces: int) -> Progress | None:
    """Return `progress` as seen by one of several passes over the pieces."""
    if progress is None:
        return None
    done_before = first // held * pieces
    total = -(-orders // held) * pieces
    return lambda done, _: progress(done_before + done, total)
