"""What a two-sample test by features takes, counted: its sums, and what is made of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kerntest.engines.plan import added
from kerntest.errors import counted
from kerntest.inference.relabelling.designs import BLOCKS
from kerntest.inference.sizes.location import PART
from kerntest.inference.sizes.work_of_sizes import least_and_most, shift_work
from kerntest.inference.work_of_tests import DRAWN_ENTRIES
from kerntest.kernels.algebra import terms
from kerntest.kernels.counting import work_of_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kerntest.engines.plan import Work
    from kerntest.inference.features.block_sums import BlockSums
    from kerntest.kernels.base import Points

# Relabellings that are summed by one product.
RELABELLED_TOGETHER = 1024
# Kernel values computed together: they and their distances stay in the second-level cache of a core; calls of numpy for each term of a kernel on these, and steps over the entries of each
# column of categories beside those that are counted (measured).
TOGETHER, CALLS_OF_TERM, ENTRIES_OF_CATEGORIES = 2**15, 40.0, 24.0
# What earlier arrays leave in pieces too small for these (measured).
SCATTERED = 2 * 10**7


def work_of_sums(work: BlockSums, n: Sequence[int]) -> tuple[str, Callable[[int], float], Work]:
    """Return what is summed, the bytes that this holds on so many threads, and its units of work."""
    # Each piece under way has the sums once, and the result too.
    held, maps = 8.0 * sum(math.prod(work.shape(source)) for source in range(2)), work.features
    # Nystroem features are summed before their projection, and share the distances to the landmarks.
    centres, rows, kernels = maps[0].landmarks, float(sum(n)), [one.kernel for one in maps]
    each: Work = {
        "entry": ENTRIES_OF_CATEGORIES * centres.codes.shape[1],
        "call": CALLS_OF_TERM * sum(map(len, map(terms, kernels))) / TOGETHER,
    }
    values = added(work_of_values(kernels, centres, halved=True), each, times=rows * len(centres))
    made = [values] if len(centres) else [one.work(rows) for one in maps]
    step = f"{work.width:,} features of {counted(len(maps), 'kernel')}, summed over blocks of rows"
    return (
        step,
        lambda threads: SCATTERED + held * (threads + 3),
        added(*made, {"entry": 2.0 * len(maps) * work.width * rows}),
    )


def work_of_judging(
    work: BlockSums, sample: Points, relabellings: int, alpha: float
) -> tuple[Callable[[int], float], list[Work]]:
    """Return what follows the sums, its bytes and its work, least and most: relabellings, and the size of a difference or the shift that would have been found."""
    maps, m = work.features, float(len(sample))
    blocks = float(sum(work.shape(source)[0] for source in range(2)))
    sizes, last = float(sum(one.size for one in maps)), maps[-1]
    squares = float(sum(one.size**2 for one in maps))
    # Of the sampled rows features and their covariance.
    judged = added(
        *(one.work(m) for one in maps),
        {"product": blocks * sizes * (work.width + relabellings) + m * squares},
        {"entry": DRAWN_ENTRIES * relabellings * blocks * len(maps)},
    )
    sized = added(last.work(2.0 * m), {"product": m * last.size * (m + last.size)})
    shifts, shifted = shift_work(sample, [one.kernel for one in maps], min(2.0 * PART[1], m), BLOCKS, alpha)
    sums = sum(math.prod(work.shape(source)) for source in range(2))
    labels = min(relabellings, RELABELLED_TOGETHER) * (2.0 * blocks + work.width)
    # Sums and mean features; of the sampled rows features of each kernel, and of those that are reported of each sample too.
    kept, reported = SCATTERED + 8.0 * (3.0 * sums + m * sizes), max(8.0 * 3.0 * m * last.size, shifted)
    works: list[Work] = [added(judged, one) for one in least_and_most(sized, shifts)]
    return lambda threads: kept + max(8.0 * threads * labels, reported), works
