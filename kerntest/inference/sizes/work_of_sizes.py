"""What the size of a difference takes, or the smallest shift of one column that a test would have found, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.plan import UNITS, added
from kerntest.inference.relabelling.designs import BLOCKS
from kerntest.inference.sizes.location import FEWER, RELABELLINGS, ROUNDS, STRIP, relabellings_at, size_of_part
from kerntest.inference.sizes.margins import drawn_units
from kerntest.inference.work_of_tests import Step
from kerntest.kernels.counting import work_of_values
from kerntest.matrices.different import few_different
from kerntest.matrices.passes import kept_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.engines.plan import Work
    from kerntest.inference.sides import Sample
    from kerntest.kernels.base import Kernel, Points

# Arrays of a strip of rows beside those that are kept, and of the weights of relabellings.
SUMMED, WEIGHTS = 4.0, 10.0
# Calls of numpy for each kernel and form.
CALLS_OF_FORM = 800.0


def size_work(sample: Sample, kernels: Sequence[Kernel], seed: int, alpha: float) -> Step:
    """Return what the size of a difference takes, or the shift that would have been found: one or the other."""
    n = len(sample.points)
    s = float(min(2 * size_of_part(sample, n), n))
    _, units, _, chosen = drawn_units(sample, seed)
    blocks = min(s, BLOCKS, float(units.max()) + 1.0)
    shifts, shifted = shift_work(sample.points, kernels, s, blocks, alpha)
    # Of units that are drawn all rows take part.
    some, drawn = float(len(chosen)), float(np.isin(units, chosen).sum())
    one = work_of_values(kernels[:1], sample.points)
    sized = added(added(one, {"entry": 8.0}, times=n**2 / 2), {"entry": 30.0 * drawn**2})
    sized = added(sized, {"product": 2.0 * some**3})
    what = "the size of the difference, or the shift that would have been found"
    helds = shifted, 8.0 * (4.0 * drawn**2 + drawn * some + 2.0 * some**2)
    low, high = least_and_most(sized, shifts)
    return Step(what, lambda _: max(helds), low, high, lambda _: min(helds))


def shift_work(
    points: Points, kernels: Sequence[Kernel], s: float, blocks: float, alpha: float
) -> tuple[Sequence[Work], float]:
    """Return what the shift that would have been found takes of s rows in blocks, least and most, and the bytes it holds."""
    count, few = float(len(kernels)), few_different(points, FEWER * blocks)
    weighed_rows = blocks if few is None else len(few[0])
    products = count * weighed_rows
    values = added(work_of_values(kernels, points), times=s**2)
    weighed = {"product": products * weighed_rows, "entry": 8.0 * products}
    # Forms: one of rows that are not moved; then one to three at each of some rounds.
    shifts = [
        added(
            {"call": CALLS_OF_FORM * count * forms},
            added(values, times=1.0 + forms),
            added(weighed, times=float(relabellings_at(alpha) + forms * RELABELLINGS)),
        )
        for forms in (1.0 + ROUNDS / 3, 2.0 + 3.0 * ROUNDS)
    ]
    # A strip of the rows, sums over blocks, and what is weighed by relabellings.
    strip = (kept_together(kernels) + SUMMED) * min(float(STRIP), s**2)
    return shifts, 8.0 * (strip + products * weighed_rows + WEIGHTS * weighed_rows * relabellings_at(alpha))


def least_and_most(sized: Work, shifts: Sequence[Work]) -> list[Work]:
    """Return the least and the most of the size of a difference, or of the shift that would have been found."""
    ends = zip((min, max), shifts, strict=True)
    return [{unit: of(sized.get(unit, 0.0), shift.get(unit, 0.0)) for unit in UNITS} for of, shift in ends]
