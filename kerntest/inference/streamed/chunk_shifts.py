"""The independence statistic of explicit features under a group of relabellings, for any number of rows.

Rows in a random order are cut into chunks of L rows. A shift t moves the rows of y cyclically by t inside all chunks at
once, which makes L relabellings, and with g and h the centred features of x and y

    <HKH, HLH>(t) = sum_ab S_ab(t)^2,    S(t) = sum_chunks c sum_i g(c, i) h(c, i + t mod L)'

is one Fourier transform along every chunk and one small complex product for each frequency:

    S = irfft( sum_c conj(rfft(g(c, .))) rfft(h(c, .))' ).

d = |g|^2 and e = |h|^2 ride along as one more feature for the U-centring. Rows beyond the last whole chunk keep their
partner: still a group, so that the p-value over the shifts is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kerntest.inference.shifts import circle_length
from kerntest.inference.streamed.feature_sums import hollow
from kerntest.kernels.base import Points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.streamed.feature_sums import CentredSums, PairFeatures, SideFeatures, SideSums
    from kerntest.kernels.base import Array

Spectrum: TypeAlias = "NDArray[np.complex128]"
# Entries of the features of the chunks that are transformed together (32 MB): many chunks make fast products.
HELD_ENTRIES = 2**22
FEWEST_CHUNKS = 8
# Frequencies of one product.
LINES = 32


@dataclass(frozen=True, slots=True)
class Chunks:
    """How n rows are cut.

    Parameters
    ----------
    n : int
        Rows.
    length : int
        L, rows in a chunk, and shifts.
    """

    n: int
    length: int

    @classmethod
    def of(cls, n: int, permutations: int) -> Chunks:
        """Return chunks with at least `permutations` shifts, of a length that the transform is fast at.

        Of fewer rows they are one chunk of nearly all.
        """
        length = permutations
        while length < n and circle_length(length) != length:
            length += 1
        return cls(n, length if length < n else circle_length(n))

    @property
    def count(self) -> int:
        """Whole chunks."""
        return self.n // self.length

    @property
    def fixed(self) -> int:
        """Rows that keep their partner."""
        return self.n - self.count * self.length

    def together(self, width: int) -> int:
        """Return how many chunks of so many features are transformed together."""
        return max(FEWEST_CHUNKS, HELD_ENTRIES // (self.length * width))


def spectrum_bytes(chunks: Chunks, features: PairFeatures) -> int:
    """Return the memory that the shifts take."""
    lines, width = chunks.length // 2 + 1, features.width
    held = min(chunks.together(width), max(chunks.count, 1)) * width
    return 16 * lines * (features.x.rank + 1) * (features.y.rank + 1) + held * (8 * chunks.length + 16 * lines)


def shifted_inner(
    features: PairFeatures,
    sums: CentredSums,
    blocks: Iterable[Points],
    chunks: Chunks,
    *,
    engine: Engine,
    hollow_matrices: bool,
    progress: Progress | None = None,
) -> Array:
    """Return <HKH, HLH>, or <U(K), U(L)>, for every shift.

    Parameters
    ----------
    features : PairFeatures
    sums : CentredSums
        Over the same n rows.
    blocks : iterable of Points
        The rows in random order, some at a time.
    chunks : Chunks
    engine : Engine
        Threads of this process.
    hollow_matrices : bool
        U-centring.
    progress : callable, optional
        Called with the chunks done and all.

    Returns
    -------
    ndarray, shape (L,)

    Notes
    -----
    Cost: O(n (M (p + r) + (r_x + r_y) log L + r_x r_y)) time, 8 L r_x r_y bytes. Sums have a fixed order.
    """
    shifted = _ShiftedSums.empty(features, chunks)
    done = 0
    for rows in regrouped(blocks, chunks.together(features.width) * chunks.length):
        first, second = (
            _centred(side, own, rows, features.height, engine)
            for side, own in ((features.x, sums.x), (features.y, sums.y))
        )
        done += shifted.add(first, second, engine)
        if progress is not None:
            progress(done, chunks.count)
    return shifted.inner(sums, hollow_matrices=hollow_matrices)


@dataclass(frozen=True, slots=True, eq=False)
class _ShiftedSums:
    """Sums over the rows so far; changed in place.

    Parameters
    ----------
    length : int
        L.
    spectrum : ndarray of complex, shape (L // 2 + 1, r_x + 1, r_y + 1)
        Of S, with d and e as last features.
    fixed : ndarray, shape (r_x + 1, r_y + 1)
        Of the rows that keep their partner.
    """

    length: int
    spectrum: Spectrum
    fixed: Array

    @classmethod
    def empty(cls, features: PairFeatures, chunks: Chunks) -> _ShiftedSums:
        shape = (features.x.rank + 1, features.y.rank + 1)
        return cls(chunks.length, np.zeros((chunks.length // 2 + 1, *shape), dtype=np.complex128), np.zeros(shape))

    def add(self, first: Array, second: Array, engine: Engine) -> int:
        """Take in rows, whole chunks first; return how many chunks these are."""
        count = len(first) // self.length
        whole = count * self.length
        if count:
            left, right = (_transformed(rows[:whole], count, engine) for rows in (first, second))
            np.conj(left, out=left)

            def work(start: int) -> None:
                some = slice(start, start + LINES)
                self.spectrum[some] += np.matmul(left[some].transpose(0, 2, 1), right[some])

            _run(work, range(0, len(self.spectrum), LINES), engine)
        self.fixed[...] += first[whole:].T @ second[whole:]
        return count

    def inner(self, sums: CentredSums, *, hollow_matrices: bool) -> Array:
        """Return the inner product of the centred matrices for every shift."""
        result = np.zeros(self.length)
        for place in range(len(self.fixed) - 1):
            shifted = np.fft.irfft(self.spectrum[:, place, :-1], n=self.length, axis=0)
            shifted += self.fixed[place, :-1]
            result += np.einsum("ta,ta->t", shifted, shifted)
        if not hollow_matrices:
            return result
        diagonals = np.fft.irfft(self.spectrum[:, -1, -1], n=self.length) + self.fixed[-1, -1]
        return hollow(result, diagonals, sums.x.trace * sums.y.trace, sums.n)


def _centred(side: SideFeatures, sums: SideSums, rows: Points, height: int, engine: Engine) -> Array:
    """Return (g, d) of every row, shape (n, r + 1)."""
    result = np.empty((len(rows), side.rank + 1))

    def work(start: int) -> None:
        some = slice(start, start + height)
        values = side(Points(rows.numeric[some], rows.codes[some]))
        values -= sums.mean
        result[some, :-1] = values
        np.einsum("ir,ir->i", values, values, out=result[some, -1])

    _run(work, range(0, len(rows), height), engine)
    return result


def _transformed(rows: Array, count: int, engine: Engine) -> Spectrum:
    """Return the transforms along every chunk, shape (L // 2 + 1, count, r + 1)."""
    length, width = len(rows) // count, rows.shape[1]
    result = np.empty((length // 2 + 1, count, width), dtype=np.complex128)

    def work(chunk: int) -> None:
        result[:, chunk] = np.fft.rfft(rows[chunk * length : (chunk + 1) * length], axis=0)

    _run(work, range(count), engine)
    return result


def _run(work: Callable[[int], None], items: range, engine: Engine) -> None:
    """Do pieces of work that write their results where they belong."""
    for _ in engine.here.map(work, items):
        pass


def regrouped(blocks: Iterable[Points], height: int) -> Iterator[Points]:
    """Yield the same rows, `height` at a time; the last may be fewer."""
    held: list[Points] = []
    count = 0
    for block in blocks:
        start = 0
        while count + len(block) - start >= height:
            stop = start + height - count
            yield _joined([*held, _part(block, start, stop)])
            held, count, start = [], 0, stop
        if start < len(block):
            held.append(_part(block, start, len(block)))
            count += len(block) - start
    if held:
        yield _joined(held)


def _part(rows: Points, start: int, stop: int) -> Points:
    return Points(rows.numeric[start:stop], rows.codes[start:stop])


def _joined(parts: list[Points]) -> Points:
    if len(parts) == 1:
        return parts[0]
    return Points(np.concatenate([part.numeric for part in parts]), np.concatenate([part.codes for part in parts]))
