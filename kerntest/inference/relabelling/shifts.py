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

A smooth kernel on one column, or any kernel on few different rows, has a matrix of some tens of columns: K = G G' to
the last digits. With the columns of G and H centred, HKH = G G' and HLH = H H', and r_K r_L correlations of length n do:

    <HKH, HLH>(t) = sum_ab ( sum_i G_ia H_{i+t,b} )^2
    <U(K), U(L)>(t) = <HKH, HLH>(t) - n/(n-2) sum_i d_i e_{i+t} + sum_i d_i sum_i e_i / ((n-1)(n-2))

where U-centring takes out the diagonals d and e of both.
"""

from __future__ import annotations

import math
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerntest.dataclass import dataclass
from kerntest.engines.engine import PIECES, Engine, Progress, enough_for, in_pieces
from kerntest.inference.relabelling.designs import are_all, orders_of
from kerntest.inference.sides import ORDER_STREAM
from kerntest.inference.statistic import Effect, centring_divisors, dependences
from kerntest.matrices.factor import TOLERANCE, Factor
from kerntest.matrices.passes import Block, KernelStack, add_row_sums, plan_blocks, square_sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kerntest.kernels.base import Array

Spectrum: TypeAlias = NDArray[np.complex128]
# A spectrum, and for the first and the second side the row sums, shape (members, n), and sums of squares of its matrices.
Partial: TypeAlias = tuple[NDArray[Any], ...]
# A block of lines, and for which of the orders.
Pass: TypeAlias = tuple[Block, range]

# pocketfft has fast code for factors up to 5 and tolerable code up to 19 (measured: below 4.5 ns an entry, against 2.4
# for powers of 2, 3 and 5 and 10 to 25 beyond). Small circles are fast enough whatever their factors.
LARGEST_FACTOR = 19
# Of large factors transforms take so many times as much more, by others of lengths that it is fast at (Bluestein).
BY_LONGER = 8.0
SMALL_CIRCLE = 512
# Transforms of B held at once (32 MB): orders beyond that are done in further passes.
HELD_ENTRIES = 2**22
# From so many matrices on both sides, one matrix product for each frequency can beat a product for each pair.
MANY = 4
# It takes so many products of all pairs, and of two more matrices on both sides, in the time of one pair (measured).
TOGETHER = 2.5
# What lines of one matrix of a family cost in correlations a row, and what they cost more for each column that they are
# made of (measured: 4 ns an entry of a correlation, 5 of a line and 0.075 for each column; half as many lines as rows).
LINES, LINES_PER_COLUMN = 0.6, 0.01
# Entries of the correlations of factors under way in one thread (4 MB).
CORRELATED_ENTRIES = 2**19


def circle_length(n: int) -> int:
    """Return the largest length up to n that the Fourier transform is fast at; n itself when it is small."""
    if n <= SMALL_CIRCLE:
        return n
    length = n
    while not is_smooth(length):
        length -= 1
    return length


def is_smooth(number: int) -> bool:
    """Say whether the Fourier transform is fast at a length: whether there is tolerable code for its prime factors."""
    return max(_factors(number), default=1) <= LARGEST_FACTOR


def _factors(number: int) -> list[int]:
    """Return the prime factors."""
    found, prime = list[int](), 2
    while prime * prime <= number:
        while number % prime == 0:
            number //= prime
            found.append(prime)
        prime += 1
    return [*found, number] if number > 1 else found


def transform_work(circle: int) -> float:
    """Return what an entry of transforms of such a length takes, in units of one of 4,000 entries (measured)."""
    fast, slow = math.log2(circle) - 1.0, sum(prime for prime in _factors(circle) if prime > 5)
    return (fast + min(slow / 4.0, BY_LONGER * fast)) / 10.0


def orders_needed(relabellings: int, circle: int) -> int:
    """Return in how many orders shifts give at least `relabellings` relabellings, or all there are."""
    ways = orders_of(circle)
    return ways // circle if are_all(ways, relabellings) else -(-relabellings // circle)


def circle_orders(length: int) -> list[tuple[int, ...]]:
    """Return the orders on a circle that no shift makes of each other, first as they stand."""
    return [(0, *others) for others in permutations(range(1, length))]


def cyclic_orders(n: int, relabellings: int, seed: int) -> tuple[int, list[NDArray[np.intp]]]:
    """Return the length of the circle of n rows, and as many random orders of them as the relabellings take, or all there are."""
    circle = circle_length(n)
    if are_all(orders_of(n), relabellings):
        return circle, [np.array(one) for one in circle_orders(n)]
    rng = np.random.default_rng((seed, ORDER_STREAM))
    return circle, [rng.permutation(n) for _ in range(orders_needed(relabellings, circle))]


class ShiftSums(NamedTuple):
    """Sums over all relabellings of two stacks, and what centring them needs.

    `values`, shape (F, G, C, n'), holds <A_f, B_g> in the order c shifted by t; [:, :, 0, 0] is observed. Row sums of both
    sides, shapes (F, n) and (G, n), stand along the places of the first order; squares are sums of squared entries.
    """

    stacks: tuple[KernelStack, KernelStack]
    values: Array
    rows: tuple[Array, Array]
    squares: tuple[Array, Array]

    def effects(self) -> list[list[Effect]]:
        """Return what every pair measures, from the observed sums."""
        product, rows, squares = self.values[:, :, 0, 0], list(self.rows), list(self.squares)
        diagonals = self.stacks[0].diagonals(), self.stacks[1].diagonals()
        if not self.stacks[0].hollow:
            product = product - diagonals[0] @ diagonals[1].T
            for side, own in enumerate(diagonals):
                rows[side], squares[side] = rows[side] - own, squares[side] - np.square(own).sum(axis=1)
        return dependences(product, (rows[0], rows[1]), (squares[0], squares[1]), diagonals)

    def centred(self) -> Array:
        """Return the sums over the centred matrices instead, in place: HKH, or U(K) of matrices with a zero diagonal."""
        values, circle, n = self.values, self.values.shape[-1], self.stacks[0].n
        orders, rows_x = self.stacks[1].orders, self.rows[0]
        back = np.argsort(orders[0])
        rows_y = np.stack([self.rows[1][:, back[order]] for order in orders], axis=1)
        # sum_i r_i s_{i+t} of the row sums, for every order and shift.
        left = np.conj(np.fft.rfft(rows_x[:, :circle], axis=-1))
        right = np.fft.rfft(rows_y[:, :, :circle], axis=-1)
        crossed = np.fft.irfft(left[:, None, None] * right[None], n=circle, axis=-1)
        if circle < n:
            crossed += np.einsum("fi,gci->fgc", rows_x[:, circle:], rows_y[:, :, circle:])[..., None]
        centre, grand = centring_divisors(n, hollow=self.stacks[0].hollow)
        crossed *= 2.0 / centre
        values -= crossed
        values += (np.outer(rows_x.sum(axis=1), self.rows[1].sum(axis=1)) / grand)[:, :, None, None]
        return values


def shift_sums(
    first: KernelStack,
    second: KernelStack,
    *,
    engine: Engine,
    progress: Progress | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> ShiftSums:
    """Return <A_f, B_g> for all pairs of matrices, or for some (others mean nothing), and every relabelling.

    F matrices over n rows in one order, G over the same rows in C orders of which the first is that of `first`.

    Cost: O((F + G C) n^2 (p + log n) + F G C n^2) time for p columns; O(64 n) to O(128 n) numbers per thread for
    one matrix on either side, up to 2^23 for more, and F G C n for the result; never n x n. Sums have a fixed order:
    the result does not depend on the number of threads.
    """
    n, circle, orders = second.n, second.circle, len(second.orders)
    wanted = tuple(np.ndindex(first.members, second.members)) if pairs is None else tuple(pairs)
    matrices = second.members * orders
    stacked = min(first.members, matrices) >= MANY
    stacked &= (first.members + 2) * (matrices + 2) <= TOGETHER * len(wanted) * orders
    together = first.members + second.members if stacked else 1
    blocks = plan_blocks(circle, n - circle, max(together, first.kept, second.kept))
    held = max(1, HELD_ENTRIES // (second.members * circle * max(block.count for block in blocks)))
    values = np.empty((first.members, second.members, orders, circle))
    engine = enough_for(engine, (first.members + matrices) * n * circle / 2)
    work = _Lines((first.sent(engine), second.sent(engine)), wanted, stacked=stacked)
    passes = [range(start, min(start + held, orders)) for start in range(0, orders, held)]
    pieces = [piece for some in passes for piece in in_pieces([(block, some) for block in blocks])]
    results = engine.map(work, pieces, progress)
    margins: Partial = ()
    for some in passes:
        # Kept in the layout in which blocks hand it over.
        total = _added(islice(results, len(pieces) // len(passes)))
        margins = margins or total[1:]
        spectrum = np.ascontiguousarray(total[0]).reshape(first.members, second.members, len(some), -1)
        np.conj(spectrum, out=spectrum)
        spectrum *= 2.0
        values[:, :, some.start : some.stop] = np.fft.irfft(spectrum, n=circle, axis=-1)
    # Progress of a piece is told when the next one is asked for.
    next(results, None)
    rows, squares = margins[::2], margins[1::2]
    if n > circle:
        fixed_first = first.fixed_entries(0)
        fixed_second = np.stack([second.fixed_entries(order) for order in range(orders)])
        values += np.einsum("fij,cgij->fgc", fixed_first, fixed_second)[..., None]
        for side, entries in enumerate((fixed_first, fixed_second[0])):
            rows[side][:, circle:] += entries.sum(axis=2)
            np.add(squares[side], np.square(entries).sum(axis=(1, 2)), out=squares[side])
    return ShiftSums((first, second), values, (rows[0], rows[1]), (squares[0], squares[1]))


def _added(partials: Iterator[Partial]) -> Partial:
    """Return the sums of all, in the arrays of the first."""
    total = next(partials)
    for some in partials:
        for one, more in zip(total, some, strict=True):
            np.add(one, more, out=one)
    return total


@dataclass(frozen=True, eq=False)
class _Lines:
    """The work on neighbouring blocks of two stacks, for the pairs that are wanted: one after another, or `stacked`.

    What they add together is handed over: half of sum_k w_k rfft(A_k) conj(rfft(B_k)) and, in the pass that holds the first
    order, row sums and squares.
    """

    sides: tuple[KernelStack, KernelStack]
    wanted: Sequence[tuple[int, int]]
    stacked: bool

    @property
    def circle(self) -> int:
        """Entries of a line."""
        return self.sides[0].circle

    def _spectra(self, *shape: int) -> Spectrum:
        """Return room for transforms of so many lines, where the rows are."""
        shape = (*shape, self.circle // 2 + 1)
        return np.empty_like(self.sides[0].rows(), shape=shape, dtype=np.complex128, order="C")

    def __call__(self, passes: Sequence[Pass]) -> Partial:
        """Return the sums over the blocks, in their order."""
        return _added(map(self._of_block, passes))

    def _of_block(self, item: Pass) -> Partial:
        """Return what one block adds to the spectrum, shape (F, G C, frequencies), to row sums and to squares."""
        margins = [sums for side in self.sides for sums in (np.zeros((side.members, side.n)), np.zeros(side.members))]
        return (self._by_frequency if self.stacked else self._by_pair)(item, margins), *margins

    def _lines(self, side: int, order: int, item: Pass, margins: list[Array]) -> Iterator[tuple[int, Array]]:
        """Yield the number of each matrix of a side with the block's lines of it."""
        (block, orders), stack = item, self.sides[side]
        values = np.empty_like(stack.rows(), shape=(block.count, self.circle), order="C")
        for member in stack.lines(order, block, values):
            if order == 0 and orders.start == 0 and stack.centred_by_rows:
                rows, squares = margins[2 * side : 2 * side + 2]
                add_row_sums(rows[member], values, block, self.circle)
                squares[member] += square_sum(values, block, self.circle)
            yield member, values

    def _by_pair(self, item: Pass, margins: list[Array]) -> Spectrum:
        """Take one pair of matrices after another."""
        block, orders = item
        others = self._spectra(self.sides[1].members, len(orders), block.count)
        for place, order in enumerate(orders):
            for member, lines in self._lines(1, order, item, margins):
                np.fft.rfft(lines, axis=1, out=others[member, place])
        np.conj(others, out=others)
        others[:, :, block.halved(self.circle)] *= 0.5
        together = others.reshape(-1, *others.shape[2:])
        transformed, product = self._spectra(2, block.count)
        spectrum = np.zeros((self.sides[0].members, len(together), others.shape[3]), dtype=np.complex128)
        for member, lines in self._lines(0, 0, item, margins):
            np.fft.rfft(lines, axis=1, out=transformed)
            for place, partner in enumerate(together):
                if (member, place // len(orders)) in self.wanted:
                    # In two steps: `einsum` takes twice as long.
                    np.multiply(transformed, partner, out=product)
                    np.add.reduce(product, axis=0, out=spectrum[member, place])
        return spectrum

    def _by_frequency(self, item: Pass, margins: list[Array]) -> Spectrum:
        """Take all pairs as one matrix product for each frequency, over the lines of the block."""
        block, orders = item
        transformed = self._spectra(block.count)
        # Frequencies first: one matrix product for each.
        left, right = (
            np.empty_like(transformed, shape=(transformed.shape[1], matrices, block.count), dtype=np.complex128)
            for matrices in (self.sides[0].members, self.sides[1].members * len(orders))
        )
        for place, order in enumerate(orders):
            for member, lines in self._lines(1, order, item, margins):
                np.fft.rfft(lines, axis=1, out=transformed)
                np.conj(transformed.T, out=right[:, member * len(orders) + place])
        right[:, :, block.halved(self.circle)] *= 0.5
        for member, lines in self._lines(0, 0, item, margins):
            np.fft.rfft(lines, axis=1, out=transformed)
            left[:, member] = transformed.T
        return np.asarray(np.matmul(left, right.transpose(0, 2, 1)).transpose(1, 2, 0))


# Correlations of the columns of factors


def low_rank_sums(
    first: Factor,
    second: Factor,
    places: Sequence[NDArray[np.intp]],
    circle: int,
    *,
    hollow: bool,
    engine: Engine,
    progress: Progress | None = None,
    tolerance: float = TOLERANCE,
) -> Array:
    """Return the inner product of the centred matrices for every shift of every order of the second, shape (C, circle).

    `places` says which row stands at each place in each order; the first is that of the first matrix. A share `tolerance`
    of the product of both traces may be left out of a sum.

    Cost: O(C r_K r_L n' log n') time, O((r_K + C r_L) n) memory. Sums have a fixed order.
    """
    engine = enough_for(engine, float(first.rank) * second.rank * len(places) * circle)
    needed = correlations_needed(first, second, tolerance).tolist()
    longest = np.argsort(-second.lengths, kind="stable")
    still = first.columns[places[0]]
    moved = [second.columns[place][:, longest] for place in places]
    left = np.conj(np.fft.rfft(np.ascontiguousarray(still[:circle].T), axis=1))
    right = [np.fft.rfft(np.ascontiguousarray(columns[:circle].T), axis=1) for columns in moved]
    height, send = max(1, CORRELATED_ENTRIES // circle), engine.send
    ahead, behind, fixed = send(left), [*map(send, right)], send(still[circle:])
    met = [send(columns[circle:]) for columns in moved]

    def work(piece: tuple[int, Sequence[tuple[int, slice]]]) -> Array:
        """Return the sums for every shift of one order over pairs (column of G, columns of H), shape (circle,)."""
        order, pairs = piece
        total = np.zeros(circle)
        for a, some in pairs:
            crossed = np.fft.irfft(ahead[a] * behind[order][some], n=circle, axis=1)
            if len(fixed):
                crossed += (fixed[:, a] @ met[order][:, some])[:, None]
            np.square(crossed, out=crossed)
            total += crossed.sum(axis=0)
        return total

    some = [
        (a, slice(start, min(start + height, count)))
        for a, count in enumerate(needed)
        for start in range(0, count, height)
    ]
    each = max(1, PIECES // len(places))
    pieces = [(order, piece) for order in range(len(places)) for piece in in_pieces(some, each)]
    sums = np.zeros((len(places), circle))
    for (order, _), found in zip(pieces, engine.map(work, pieces, progress), strict=True):
        sums[order] += found
    if hollow:
        n, d, e = len(still), first.diagonal[places[0]], second.diagonal
        transformed = np.conj(np.fft.rfft(d[:circle]))
        for order, place in enumerate(places):
            crossed = np.fft.irfft(transformed * np.fft.rfft(e[place[:circle]]), n=circle)
            crossed += float(d[circle:] @ e[place[circle:]])
            sums[order] -= n / (n - 2) * crossed - float(d.sum()) * float(e.sum()) / ((n - 1) * (n - 2))
    return sums


def correlated_pairs(
    n: int,
    ranks: Sequence[Mapping[int, float]],
    pairs: Sequence[tuple[int, int]],
    needed: Mapping[tuple[int, int], float],
) -> list[tuple[int, int]]:
    """Return the pairs whose correlations spare the lines of a matrix and cost less; all or none.

    Of the matrices of n rows that are products of few columns `ranks` says how many these are, for each side, and `needed`
    how many correlations a pair of them takes.
    """
    needless = [{pair[side] for pair in needed} - {pair[side] for pair in {*pairs} - {*needed}} for side in (0, 1)]
    spared = sum(
        n * (LINES + LINES_PER_COLUMN * known[place])
        for known, places in zip(ranks, needless, strict=True)
        for place in places
    )
    chosen = [pair for pair in needed if pair[0] in needless[0] or pair[1] in needless[1]]
    return chosen if sum(needed[pair] for pair in chosen) <= spared else []


def correlations_needed(first: Factor, second: Factor, tolerance: float) -> NDArray[np.intp]:
    """Return with how many columns of H, from the longest on, each column of G is to be correlated.

    A squared correlation is at most the product of both squared lengths: the pairs with the smallest products are left
    out as long as they add up to no more than a share of the product of both traces. Of columns whose lengths decay
    geometrically that is half of them.
    """
    lengths, others = first.lengths, np.sort(second.lengths)[::-1]
    bounds = np.outer(lengths, others)
    ordered = np.sort(bounds, axis=None)
    left_out = np.searchsorted(np.cumsum(ordered), tolerance * lengths.sum() * others.sum(), side="right")
    least = ordered[left_out] if left_out < len(ordered) else np.inf
    return np.asarray((bounds >= least).sum(axis=1), dtype=np.intp)
