"""Between which numbers the columns of the training rows were, and which values of other rows are far beyond.

What is far a kernel with a bandwidth says itself: beyond it a function of such kernels goes back to its mean, however wide
the column ranges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.kernels.base import DensePairs, Points
from kerntest.report.results.application_record import OutsideValues

if TYPE_CHECKING:
    from kerntest.kernels.base import Array, Kernel
    from kerntest.learning.rows.encoding import Encoder

# Of fewer training rows the ends say little of the next rows.
FEWEST_ROWS = 20
# Values are told that are beyond a range by so many standard deviations and by twice its width; where half of the rows are, half
# of the width is enough. Of 2,092 random splits of R packages' tables, 70 to 30 %, 1 % have such values in the test part.
FAR, WIDTHS, WIDTHS_OF_MANY = 3.0, 2.0, 0.5
# Where a kernel is looked at far off, in standard deviations, and what is next to nothing there.
FAR_OFF, NOTHING = 1e6, 1e-2
# A kernel reaches as far as it keeps this share: for a Gaussian its bandwidth. Of 70,000 rows in 360 test parts of ten tables of
# R packages, learned by ridge regression and machines from one column or from all, 0.06 % are beyond that, and of no table 0.6 %.
REACHED, HALVINGS = math.exp(-0.5), 60


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


def values_outside(
    ranges: tuple[ColumnRange, ...], encoder: Encoder, points: Points, kernel: Kernel | None = None
) -> tuple[tuple[OutsideValues, ...], int]:
    """Return of each column the values of other rows that are far beyond its range, or farther than a kernel reaches, and how many rows hold one.

    Cost: two passes where there are none.
    """
    known, found, rows = {one.column: one for one in ranges}, [], np.zeros(len(points), dtype=bool)
    if not known or not len(points):
        return (), 0
    ends = points.numeric.min(axis=0).tolist(), points.numeric.max(axis=0).tolist()
    beyond = np.zeros(len(encoder.numeric))
    for k, (spec, lowest, highest) in enumerate(zip(encoder.numeric, *ends, strict=True)):
        if (own := known.get(spec.name)) is not None:
            first, last = (end * spec.spread + spec.centre for end in (lowest, highest))
            beyond[k] = max(own.low - first, last - own.high, 0.0) / spec.spread
    if not beyond.any():
        return (), 0
    reaches = _reaches(kernel, encoder, beyond)
    for place in np.flatnonzero(beyond).tolist():
        spec = encoder.numeric[place]
        own, reach = known[spec.name], float(reaches[place]) * spec.spread
        low, high, width = own.low, own.high, own.high - own.low
        near, far = min(WIDTHS_OF_MANY * width, reach), max(FAR * own.spread, WIDTHS * width)
        if beyond[place] * spec.spread <= near:
            continue
        values = points.numeric[:, place] * spec.spread + spec.centre
        off = np.maximum(low - values, values - high)
        outside = values[off > near]
        if len(outside):
            rows |= off > near
            ends_outside = _rounded(outside.min(), outside.max())
            counts = len(outside), int((off > min(far, reach)).sum())
            told = float(f"{reach:.6g}") if reach < far else None
            found.append(
                OutsideValues(spec.name, spec.kind, *counts, ends_outside[0], ends_outside[1], low, high, told)
            )
    return tuple(found), int(rows.sum())


def _reaches(kernel: Kernel | None, encoder: Encoder, beyond: Array) -> Array:
    """Return how far a kernel that goes to 0 reaches in each column of numbers, infinity where that is as far as it is looked at."""
    reaches = np.full(len(beyond), np.inf)
    if (
        kernel is None
        or not (short := _kept(kernel, encoder, beyond) <= REACHED).any()
        or not vanishes(kernel, encoder)
    ):
        return reaches
    low, high = np.zeros(len(beyond)), np.where(short, beyond, 0.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        fallen = _kept(kernel, encoder, middle) <= REACHED
        low, high = np.where(fallen, low, middle), np.where(fallen, middle, high)
    return np.where(short, high, np.inf)


def _rounded(*values: float) -> list[float]:
    """Return numbers without the last digits, twelve after the first of the largest, which scaling them has made."""
    largest = max(map(abs, values))
    places = 11 - math.floor(math.log10(largest)) if largest else 0
    # Not minus 0.
    return [round(float(value), places) + 0.0 for value in values]


def vanishes(kernel: Kernel, encoder: Encoder) -> bool:
    """Say whether a kernel goes to 0 where any column of numbers of a row is far from those of another."""
    return bool((_kept(kernel, encoder, np.full(len(encoder.numeric), FAR_OFF)) <= NOTHING).all())


def _kept(kernel: Kernel, encoder: Encoder, distances: Array) -> Array:
    """Return the share of its value that a kernel keeps where one column of numbers is so far off, infinity where it overflows."""
    here, codes = np.ones((1, len(distances))), np.zeros((1, len(encoder.categories)), dtype=int)
    rows = Points(np.vstack([here, here + np.diag(distances)]), np.repeat(codes, 1 + len(distances), axis=0))
    try:
        values = np.abs(kernel.evaluate(DensePairs(rows, rows.take(slice(1))))[:, 0])
    except UndecidedError:
        return np.full(len(distances), np.inf)
    return values[1:] / values[0] if values[0] > 0 else np.full(len(distances), np.inf)
