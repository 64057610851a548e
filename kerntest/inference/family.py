"""Which kernels a test uses: the named one, or a family that is judged by one p-value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from kerntest.errors import UsageError, suggest
from kerntest.kernels.base import BandwidthRule, Columns, Kernel, Metric
from kerntest.kernels.columns import Additive, bind, is_additive
from kerntest.kernels.discrete import Hamming
from kerntest.kernels.stationary import Gaussian, Laplacian
from kerntest.kernels.text import parse_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.kernels.bandwidth import BandwidthChooser

Exponents: TypeAlias = "Callable[[Kernel, BandwidthChooser], list[int]]"
BandwidthOption: TypeAlias = Literal["auto", "median"] | float | Sequence[float]

# Bandwidths of a family are the median of a kernel's own distances times powers of two: from half the 5 % quantile of
# the distances, but not below 2^FINEST, to 2^WIDEST; with one column or two, where wide members say the same again, to
# 2^WIDEST_OF_FEW. Chosen on some fifty problems, see tests/benchmarks.
FINEST, WIDEST, WIDEST_OF_FEW, FEW_COLUMNS = -7, 3, 1, 2
# The exponents of additive members, of which few columns have none, and the fewest that any other kernel has.
ADDITIVE_EXPONENTS = (3, 2, 0, -2)
FEWEST_EXPONENTS = 3
# The covariance of members under relabelling takes so many relabellings a member.
RELABELLINGS_PER_MEMBER = 10


@dataclass(frozen=True, slots=True)
class Family:
    """Kernels with every bandwidth chosen.

    Parameters
    ----------
    kernels : tuple of Kernel
        Bound to the columns of the data.
    unused : tuple of str
        Columns that no kernel sees.
    rule : str
        How the bandwidths were chosen, in words.
    thinning : str
        How the family depends on the numbers of rows and relabellings, in words; empty for a single kernel.
    kinds : tuple of int
        For each kernel, from which of the kernels before their bandwidths were chosen it comes.
    exponents : tuple of int
        For each kernel of a grid, the j of its bandwidths, 2^j medians; else 0.
    """

    kernels: tuple[Kernel, ...]
    unused: tuple[str, ...]
    rule: str
    thinning: str
    kinds: tuple[int, ...]
    exponents: tuple[int, ...]

    @property
    def halvings(self) -> NDArray[np.intp]:
        """How many factors of two the bandwidths of each kernel lie below the median."""
        return np.maximum(-np.array(self.exponents, dtype=np.intp), 0)


def choose_kernels(
    kernel: Kernel | str,
    bandwidth: BandwidthOption,
    *,
    numeric_names: Sequence[str],
    category_names: Sequence[str],
    chooser: BandwidthChooser,
    single: bool,
    exponents: Exponents | None = None,
    relabellings: int | None = None,
) -> Family:
    """Return the kernels of a test.

    Parameters
    ----------
    kernel : Kernel or str
        A kernel, its text, or "auto": Gaussian, Laplacian, and additive where there are several columns (hamming
        where there are only categories).
    bandwidth : "auto", "median", float or sequence of float
        For every bandwidth that the kernel leaves open. "auto" is a geometric grid around the median.
    numeric_names, category_names : sequence of str
        Columns of the data.
    chooser : BandwidthChooser
        Knows the distances between the rows.
    single : bool
        The null has no joint p-value: one kernel only; "auto" is then the Gaussian at the median.
    exponents : callable, optional
        From a kernel and the chooser to the exponents of its grid; those of a two-sample test by default.
    relabellings : int, optional
        How many different ones there are, where a family must be thinned to what these can carry.

    Raises
    ------
    UsageError
        If the kernel or bandwidth makes no sense, or a family was asked for where only one kernel can be judged.
    UndecidedError
        If no bandwidth can be found.
    """
    chosen = check_bandwidth(bandwidth)
    bound = [
        bind(base, numeric_names, category_names)
        for base in _bases(kernel, len(numeric_names), len(category_names), single=single)
    ]
    bases, unused = [one.kernel for one in bound], bound[0].unused
    if not any(base.free for base in bases):
        if chosen != "auto":
            raise UsageError(
                f"the kernel '{kernel}' leaves no bandwidth open: --bandwidth has nothing to set",
                hint="leave out one of the two",
                code="usage.bandwidth_twice",
            )
        return _plain(bases, unused, "in the kernel", range(len(bases)))
    if chosen == "median" or (chosen == "auto" and single):
        kernels = [base.resolve(chooser.median) for base in bases]
        return _plain(kernels, unused, "median heuristic", range(len(bases)))
    if chosen == "auto":
        most = None if relabellings is None else members_carried(relabellings)
        return _grid(bases, unused, chooser, exponents or two_sample_exponents, most)
    if single and len(chosen) > 1:
        raise UsageError(
            "this null judges one kernel: give one bandwidth",
            hint="--null permutation judges several bandwidths together",
            code="usage.bandwidth_family",
        )
    kernels = [_at(base, number, chooser, bool(numeric_names)) for base in bases for number in chosen]
    kinds = [kind for kind in range(len(bases)) for _ in chosen]
    return _plain(kernels, unused, "as given: " + ", ".join(f"{number:g}" for number in chosen), kinds)


def choose_kernel(
    kernel: Kernel | str,
    bandwidth: BandwidthOption,
    *,
    numeric_names: Sequence[str],
    category_names: Sequence[str],
    chooser: BandwidthChooser,
) -> Family:
    """Return one kernel as `choose_kernels` does; "median" is no contradiction to a kernel that leaves nothing open."""
    choose = partial(
        choose_kernels, numeric_names=numeric_names, category_names=category_names, chooser=chooser, single=True
    )
    try:
        return choose(kernel, bandwidth)
    except UsageError as error:
        if error.code != "usage.bandwidth_twice" or bandwidth != "median":
            raise
        return choose(kernel, "auto")


def _plain(kernels: Sequence[Kernel], unused: tuple[str, ...], rule: str, kinds: Sequence[int]) -> Family:
    """Return kernels that are no grid as a family."""
    return Family(tuple(kernels), unused, rule, "", tuple(kinds), (0,) * len(kernels))


def check_bandwidth(bandwidth: BandwidthOption) -> Literal["auto", "median"] | tuple[float, ...]:
    """Return the rule, or the numbers one by one; refuse what is neither a rule nor positive and finite.

    Raises
    ------
    UsageError
        As above.
    """
    if isinstance(bandwidth, str):
        if bandwidth not in ("auto", "median"):
            meant = suggest(bandwidth, ("auto", "median"))
            raise UsageError(
                f"'{bandwidth}' is no bandwidth",
                hint=f"did you mean '{meant}'?" if meant else "use auto, median, a number, or several numbers",
                code="usage.bandwidth",
            )
        return bandwidth
    given = tuple(bandwidth) if isinstance(bandwidth, Iterable) else (bandwidth,)
    if not given:
        raise UsageError("no bandwidth was given", hint="use auto, median or numbers", code="usage.bandwidth")
    for number in given:
        if not (isinstance(number, Real) and math.isfinite(number) and number > 0):
            raise UsageError(
                f"a bandwidth must be positive and finite, not {number}",
                hint="bandwidths are in the units of the scaled columns: 1 is one standard deviation",
                code="usage.bandwidth",
            )
    return tuple(float(number) for number in given)


def _bases(kernel: Kernel | str, numbers: int, categories: int, *, single: bool) -> list[Kernel]:
    """Return the kernels before their bandwidths are chosen, for so many columns of numbers and of categories."""
    if isinstance(kernel, Kernel):
        return [kernel]
    if not isinstance(kernel, str):
        raise UsageError(
            f"a kernel is a text or a Kernel, not {kernel!r}",
            hint="such as 'gaussian(1.5) + linear'",
            code="usage.kernel_text",
        )
    if kernel.strip().lower() != "auto":
        return [parse_kernel(kernel)]
    if not numbers:
        return [Hamming()]
    if single:
        return [Gaussian()]
    return [Gaussian(), Laplacian(), *([Additive()] if numbers + categories > 1 else [])]


def _at(base: Kernel, number: float, chooser: BandwidthChooser, has_numbers: bool) -> Kernel:
    """Return `base` at a bandwidth given as a number, which is meant for the numeric columns where there are any."""

    def rule(metric: Metric, columns: Columns | None) -> float:
        return chooser.median(metric, columns) if has_numbers and metric == "mismatches" else number

    return base.resolve(rule)


def _grid(
    bases: list[Kernel], unused: tuple[str, ...], chooser: BandwidthChooser, exponents: Exponents, most: int | None
) -> Family:
    """Return every base kernel at its median bandwidths times powers of two, from wide to narrow."""
    wanted = [(kind, exponent) for kind, base in enumerate(bases) for exponent in exponents(base, chooser)]
    if most is not None and most < len(wanted):
        wanted = [wanted[place] for place in nearest_first([(abs(j), kind) for kind, j in wanted], most)]
    else:
        most = None
    # One column of categories, or of two numbers, has one distance: then some members are equal.
    distinct: dict[Kernel, tuple[int, int]] = {}
    for kind, exponent in wanted:
        distinct.setdefault(bases[kind].resolve(_times_median(2.0**exponent, chooser)), (kind, exponent))
    kinds, powers = zip(*distinct.values(), strict=True)
    rule = "geometric grid by factors of 2 around the median"
    return Family(tuple(distinct), unused, rule, in_words("every bandwidth, however many rows", most), kinds, powers)


def nearest_first(distances: Sequence[tuple[int, ...]], most: int) -> list[int]:
    """Return the places of at most so many members, those nearest to the median, in their order."""
    return sorted(sorted(range(len(distances)), key=lambda place: distances[place])[:most])


def two_sample_exponents(base: Kernel, chooser: BandwidthChooser) -> list[int]:
    """Return the j of the bandwidths 2^j medians of a kernel in a two-sample test, in descending order."""
    points = chooser.points
    few = points.numeric.shape[1] + points.codes.shape[1] <= FEW_COLUMNS
    if is_additive(base):
        return [] if few else list(ADDITIVE_EXPONENTS)
    widest = WIDEST_OF_FEW if few else WIDEST
    finest = min(max(math.floor(chooser.log_finest(base)), FINEST), widest - FEWEST_EXPONENTS + 1)
    return list(range(widest, finest - 1, -1))


def members_carried(relabellings: int) -> int:
    """Return how many members so many different relabellings can judge together."""
    return max(1, relabellings // RELABELLINGS_PER_MEMBER)


def in_words(rule: str, most: int | None) -> str:
    """Return by which rule of sizes a family has its members."""
    if most is None:
        return rule
    return f"{rule}, at most {most:,}: one for each ten relabellings, those nearest to the median first"


def _times_median(factor: float, chooser: BandwidthChooser) -> BandwidthRule:
    """Return the rule of a multiple of the median."""
    return lambda metric, columns: factor * chooser.median(metric, columns)
