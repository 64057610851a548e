"""Which kernels an independence test uses on each side, and which pairs of them are judged together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kerntest.errors import UsageError
from kerntest.inference.family import BandwidthOption, Family, check_bandwidth, choose_kernels
from kerntest.kernels.bandwidth import BandwidthChooser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.inference.variables import Variable
    from kerntest.kernels.base import Kernel

# Bandwidths that each kernel may have on each side, by the number of rows: the cost of a family has a term
# (pairs of kernels) x n^2.
THINNING = ((2_000, None), (10_000, 4), (50_000, 2), (None, 1))


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

    Raises
    ------
    UsageError, UndecidedError
        As in `choose_kernels`.
    """
    n = len(variables[0].points)
    most = next(allowed for rows, allowed in THINNING if rows is None or n <= rows)
    families: list[Family] = []
    settled: list[UsageError] = []
    for kernel, variable in zip(kernels, variables, strict=True):
        choose = partial(
            choose_kernels,
            numeric_names=variable.numeric_names,
            category_names=variable.category_names,
            chooser=BandwidthChooser(variable.points, seed),
            single=single,
        )
        try:
            family = choose(kernel, bandwidth, most=most)
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
    pairs = _judged_together(first, second)
    rules = list(dict.fromkeys(family.rule for family in families))
    thinning = _in_words(n, most) if len(pairs) > 1 and check_bandwidth(bandwidth) == "auto" else ""
    return PairFamily(first, second, pairs, "; ".join(rules), thinning)


def _judged_together(first: Family, second: Family) -> tuple[tuple[int, int], ...]:
    """Return every pair of kernels of one kind, or every pair where one side has a single kind.

    A dependence that a Gaussian sees on one side is seen by a Gaussian on the other too: mixed pairs would double the
    family for nothing (measured).
    """
    every = [(f, g) for f in range(len(first.kernels)) for g in range(len(second.kernels))]
    if len(set(first.kinds)) == 1 or len(set(second.kinds)) == 1:
        return tuple(every)
    return tuple((f, g) for f, g in every if first.kinds[f] == second.kinds[g])


def _in_words(n: int, most: int | None) -> str:
    allowed = "every bandwidth of the grid" if most is None else f"at most {most} bandwidths a kernel and side"
    return (
        f"{n:,} rows: {allowed} (all up to 2,000 rows, at most 4 a kernel and side up to 10,000, 2 up to 50,000, "
        "1 beyond)"
    )
