"""Which kernels an independence test uses on each side, and which pairs of them are judged together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UsageError
from kerntest.inference.family import (
    BandwidthOption,
    Family,
    check_bandwidth,
    choose_kernels,
    in_words,
    members_carried,
    nearest_first,
)
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.columns import is_additive, plain
from kerntest.kernels.stationary import Gaussian

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.inference.sides import Variable
    from kerntest.kernels.base import Kernel

# How many bandwidths Gaussian, Laplacian and additive kernels have on each side, by the number of rows: a family costs
# about n^2 log n for each kernel of a side, and n^2 for each pair.
THINNING: tuple[tuple[float, tuple[int, int, int]], ...] = (
    (2_000, (3, 3, 3)),
    (10_000, (3, 1, 1)),
    (50_000, (2, 1, 1)),
    (math.inf, (1, 1, 1)),
)
BY_ROWS = "3 bandwidths a kernel and side up to 2,000, then 3 of the first and 1 of others up to 10,000, 2 and 1 up to 50,000, 1 beyond"
# Their exponents go from near half the 5 % quantile of the distances to twice the median, which smooth dependences need
# (measured on hyppo's twenty simulations, and on a dozen problems of several columns).
WIDEST, FINEST, NEVER_WIDER = 1, -4, -1
# How far beyond that quantile the finest Gaussian stays, and the finest of any other kernel goes.
ABOVE, BELOW = 1, -1
ADDITIVE_EXPONENTS = (1, -1, -3)
GAUSSIAN, ADDITIVE = 0, 2


@dataclass(frozen=True, slots=True)
class PairFamily:
    """Kernels for both sides, every bandwidth chosen.

    Parameters
    ----------
    first, second : Family
        The kernels of each side.
    pairs : tuple of (int, int)
        Which are judged together: positions in the two families.
    rule : str
        How the bandwidths were chosen, in words.
    thinning : str
        How the family depends on the number of rows, in words; empty for a single pair.
    """

    first: Family
    second: Family
    pairs: tuple[tuple[int, int], ...]
    rule: str
    thinning: str

    @property
    def halvings(self) -> NDArray[np.intp]:
        """How many factors of two the bandwidths of each pair lie below their medians, both sides added."""
        f, g = np.array(self.pairs).T
        halvings: NDArray[np.intp] = self.first.halvings[f] + self.second.halvings[g]
        return halvings

    def kernels(self, pair: int) -> tuple[Kernel, Kernel]:
        """Return the kernels of one of the pairs."""
        f, g = self.pairs[pair]
        return self.first.kernels[f], self.second.kernels[g]


def choose_pair(
    kernels: tuple[Kernel | str, Kernel | str],
    bandwidth: BandwidthOption,
    variables: Sequence[Variable],
    *,
    seed: int,
    single: bool,
    relabellings: int | None = None,
) -> PairFamily:
    """Return the kernels of an independence test.

    Parameters
    ----------
    kernels : (Kernel or str, Kernel or str)
        For each side, as in `choose_kernels`.
    bandwidth : "auto", "median", float or sequence of float
        For every bandwidth that the kernels leave open.
    variables : (Variable, Variable)
    seed : int
        Of the pairs of rows that the median heuristic looks at beyond 2,000 rows.
    single : bool
        The null has no joint p-value: one pair of kernels only.
    relabellings : int, optional
        How many different ones there are: a family of a grid is thinned to what they can carry.

    Raises
    ------
    UsageError, UndecidedError
        As in `choose_kernels`.
    """
    n = len(variables[0].points)
    families: list[Family] = []
    settled: list[UsageError] = []
    for kernel, variable in zip(kernels, variables, strict=True):
        choose = partial(
            choose_kernels,
            numeric_names=variable.numeric_names,
            category_names=variable.category_names,
            chooser=BandwidthChooser(variable.points, seed),
            single=single,
            exponents=independence_exponents,
        )
        try:
            family = choose(kernel, bandwidth)
        except UsageError as error:
            if error.code != "usage.bandwidth_twice":
                raise
            # A kernel that names its own bandwidth is fine as long as the other leaves one open.
            settled.append(error)
            family = choose(kernel, "auto")
        families.append(family)
    if len(settled) == len(kernels):
        raise settled[0]
    first, second = families
    pairs, most = _judged_together(first, second), None
    automatic = len(pairs) > 1 and check_bandwidth(bandwidth) == "auto"
    if automatic and relabellings is not None and members_carried(relabellings) < len(pairs):
        most = members_carried(relabellings)
        far = [(abs(first.exponents[f]) + abs(second.exponents[g]), first.kinds[f]) for f, g in pairs]
        pairs = tuple(pairs[place] for place in nearest_first(far, most))
    rules = list(dict.fromkeys(family.rule for family in families))
    return PairFamily(
        first,
        second,
        pairs,
        "; ".join(rules),
        in_words(f"{n:,} rows: by their number ({BY_ROWS})", most) if automatic else "",
    )


def _judged_together(first: Family, second: Family) -> tuple[tuple[int, int], ...]:
    """Return every pair of kernels of one kind, or every pair where one side has a single kind.

    A dependence that a Gaussian sees on one side is seen by a Gaussian on the other too: mixed pairs would double the
    family for nothing (measured). Over one column an additive kernel is a Gaussian.
    """
    every = [(f, g) for f in range(len(first.kernels)) for g in range(len(second.kernels))]
    if len(set(first.kinds)) == 1 or len(set(second.kinds)) == 1:
        return tuple(every)

    def kind(side: Family, other: Family, place: int) -> set[int]:
        own = side.kinds[place]
        return {own, ADDITIVE} if own == GAUSSIAN and ADDITIVE not in side.kinds and ADDITIVE in other.kinds else {own}

    return tuple((f, g) for f, g in every if kind(first, second, f) & kind(second, first, g))


def independence_exponents(base: Kernel, chooser: BandwidthChooser) -> list[int]:
    """Return the j of the bandwidths 2^j medians of a kernel in an independence test, in descending order."""
    gaussians, others, additives = next(counts for rows, counts in THINNING if len(chooser.points) <= rows)
    if is_additive(base):
        return list(ADDITIVE_EXPONENTS) if additives > 1 else [0]
    is_gaussian = isinstance(plain(base), Gaussian)
    # Half the 5 % quantile of the distances, at most the median.
    finest = min(max(math.ceil(chooser.log_finest(base)), FINEST), 0) + (ABOVE if is_gaussian else BELOW)
    steps = np.linspace(min(finest, NEVER_WIDER), WIDEST, 3)
    return _spread(
        sorted({math.floor(step + 0.5) for step in steps}, reverse=True), gaussians if is_gaussian else others
    )


def _spread(exponents: list[int], count: int) -> list[int]:
    """Return so many of the exponents: the middle one, or the ends and what lies evenly between."""
    if count >= len(exponents):
        return exponents
    step = len(exponents) / count
    return [exponents[int((place + 0.5) * step)] for place in range(count)]
