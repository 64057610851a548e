"""Between which numbers the columns of the training rows were, and which values of other rows are far beyond."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.kernels.base import DensePairs, Points
from kerntest.report.results.application_record import OutsideValues

if TYPE_CHECKING:
    from kerntest.kernels.base import Kernel
    from kerntest.learning.rows.encoding import Encoder

# Of fewer training rows the ends say little of the next rows.
FEWEST_ROWS = 20
# Values are told that are beyond a range by so many standard deviations and by twice its width; where half of the rows are, half
# of the width is enough. Of 2,092 random splits of R packages' tables, 70 to 30 %, 1 % have such values in the test part.
FAR, WIDTHS, WIDTHS_OF_MANY = 3.0, 2.0, 0.5
# Where a kernel is looked at far off, in standard deviations, and what is next to nothing there.
FAR_OFF, NOTHING = 1e6, 1e-2


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The ends of a column of numbers or dates in the training rows, and its standard deviation, in its own units."""

    column: str
    low: float
    high: float
    spread: float

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        return None if self.low <= self.high and self.spread >= 0 else "low must not be above high, nor spread below 0"


def ranges_of(encoder: Encoder, points: Points) -> tuple[ColumnRange, ...]:
    """Return the ranges of the training rows; nothing of very few."""
    if len(points) < FEWEST_ROWS or not encoder.numeric:
        return ()
    scaled, widths = points.numeric, [one.spread for one in encoder.numeric]
    with np.errstate(over="ignore", invalid="ignore"):
        spreads = np.ones(len(widths)) if encoder.scale == "standardize" else scaled.std(axis=0)
        ends = np.stack([scaled.min(axis=0), scaled.max(axis=0), spreads]) * widths
        ends[:2] += [one.centre for one in encoder.numeric]
    return tuple(
        ColumnRange(spec.name, *_rounded(low, high), *_rounded(spread))
        for spec, (low, high, spread) in zip(encoder.numeric, ends.T.tolist(), strict=True)
        if all(map(math.isfinite, (low, high, spread)))
    )


def values_outside(ranges: tuple[ColumnRange, ...], encoder: Encoder, points: Points) -> tuple[OutsideValues, ...]:
    """Return of each column the values of other rows that are far beyond its range. Cost: two passes where there are none."""
    known, found = {one.column: one for one in ranges}, []
    if not known or not len(points):
        return ()
    ends = points.numeric.min(axis=0).tolist(), points.numeric.max(axis=0).tolist()
    for place, (spec, lowest, highest) in enumerate(zip(encoder.numeric, *ends, strict=True)):
        if (own := known.get(spec.name)) is None:
            continue
        low, high, width = own.low, own.high, own.high - own.low
        near, far = WIDTHS_OF_MANY * width, max(FAR * own.spread, WIDTHS * width)
        if low - near <= lowest * spec.spread + spec.centre and highest * spec.spread + spec.centre <= high + near:
            continue
        values = points.numeric[:, place] * spec.spread + spec.centre
        off = np.maximum(low - values, values - high)
        outside = values[off > near]
        if len(outside):
            ends_outside = _rounded(outside.min(), outside.max())
            counts = len(outside), int((off > far).sum())
            found.append(OutsideValues(spec.name, spec.kind, *counts, ends_outside[0], ends_outside[1], low, high))
    return tuple(found)


def _rounded(*values: float) -> list[float]:
    """Return numbers without the last digits, twelve after the first of the largest, which scaling them has made."""
    largest = max(map(abs, values))
    places = 11 - math.floor(math.log10(largest)) if largest else 0
    # Not minus 0.
    return [round(float(value), places) + 0.0 for value in values]


def vanishes(kernel: Kernel, encoder: Encoder) -> bool:
    """Say whether a kernel goes to 0 where any column of numbers of a row is far from those of another."""
    here, codes = np.ones((1, len(encoder.numeric))), np.zeros((1, len(encoder.categories)), dtype=int)
    far = FAR_OFF * np.eye(here.shape[1])
    rows = Points(np.vstack([here, here + far]), np.repeat(codes, 1 + len(far), axis=0))
    try:
        values = kernel.evaluate(DensePairs(rows, rows.take(slice(1))))[:, 0]
    except UndecidedError:
        # It overflows.
        return False
    return bool((np.abs(values[1:]) <= NOTHING * abs(values[0])).all())
