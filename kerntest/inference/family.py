"""Which kernels a test uses: the named one, or a family that is judged by one p-value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Literal, TypeAlias

from kerntest.errors import UsageError, suggest
from kerntest.kernels.base import BandwidthRule, Columns, Kernel, Metric
from kerntest.kernels.binding import bind
from kerntest.kernels.discrete import Hamming
from kerntest.kernels.stationary import Gaussian, Laplacian
from kerntest.kernels.text import parse_kernel

if TYPE_CHECKING:
    from kerntest.kernels.bandwidth import BandwidthChooser

BandwidthOption: TypeAlias = Literal["auto", "median"] | float | Sequence[float]

# How many bandwidths each kernel of a family may have, by the number of pooled rows. The cost of a family is (members)
# x n^2; many rows see a difference at bandwidths far from the best one too.
THINNING = ((10_000, None), (50_000, 4), (None, 2))


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
        How the family depends on the number of rows, in words; empty for a single kernel.
    kinds : tuple of int
        For each kernel, from which of the kernels before their bandwidths were chosen it comes.
    halvings : tuple of int
        For each kernel of a grid, how many factors of two its bandwidths lie below the median; else 0.
    """

    kernels: tuple[Kernel, ...]
    unused: tuple[str, ...]
    rule: str
    thinning: str
    kinds: tuple[int, ...]
    halvings: tuple[int, ...]


def choose_kernels(
    kernel: Kernel | str,
    bandwidth: BandwidthOption,
    *,
    numeric_names: Sequence[str],
    category_names: Sequence[str],
    chooser: BandwidthChooser,
    single: bool,
    most: int | None = None,
) -> Family:
    """Return the kernels of a test.

    Parameters
    ----------
    kernel : Kernel or str
        A kernel, its text, or "auto": Gaussian and Laplacian (hamming where there are only categories).
    bandwidth : "auto", "median", float or sequence of float
        For every bandwidth that the kernel leaves open. "auto" is a geometric grid around the median.
    numeric_names, category_names : sequence of str
        Columns of the data.
    chooser : BandwidthChooser
        Knows the distances between the rows.
    single : bool
        The null has no joint p-value: one kernel only; "auto" is then the Gaussian at the median.
    most : int, optional
        Bandwidths that each kernel of a grid may have, if fewer than the number of rows allows.

    Raises
    ------
    UsageError
        If the kernel or bandwidth makes no sense, or a family was asked for where only one kernel can be judged.
    UndecidedError
        If no bandwidth can be found.
    """
    chosen = check_bandwidth(bandwidth)
    bound = [bind(base, numeric_names, category_names) for base in _bases(kernel, bool(numeric_names), single=single)]
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
        return _grid(bases, unused, chooser, most)
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


def _bases(kernel: Kernel | str, has_numbers: bool, *, single: bool) -> list[Kernel]:
    """Return the kernels before their bandwidths are chosen."""
    if isinstance(kernel, Kernel):
        return [kernel]
    if not isinstance(kernel, str):
        raise UsageError(f"a kernel is a text or a Kernel, not {kernel!r}", code="usage.kernel_text")
    if kernel.strip().lower() != "auto":
        return [parse_kernel(kernel)]
    if not has_numbers:
        return [Hamming()]
    return [Gaussian()] if single else [Gaussian(), Laplacian()]


def _at(base: Kernel, number: float, chooser: BandwidthChooser, has_numbers: bool) -> Kernel:
    """Return `base` at a bandwidth given as a number, which is meant for the numeric columns where there are any."""

    def rule(metric: Metric, columns: Columns | None) -> float:
        return chooser.median(metric, columns) if has_numbers and metric == "mismatches" else number

    return base.resolve(rule)


def _grid(bases: list[Kernel], unused: tuple[str, ...], chooser: BandwidthChooser, most: int | None) -> Family:
    """Return every base kernel at its median bandwidths times powers of two."""
    n = len(chooser.points)
    limit = next(allowed for rows, allowed in THINNING if rows is None or n <= rows)
    if most is not None:
        limit = most if limit is None else min(limit, most)
    # One column of categories, or of two numbers, has one distance: then some members are equal.
    distinct: dict[Kernel, tuple[int, int]] = {}
    for kind, base in enumerate(bases):
        for exponent in reversed(_thinned(chooser.exponents(base), limit)):
            kernel = base.resolve(_times_median(2.0**exponent, chooser))
            distinct.setdefault(kernel, (kind, max(-exponent, 0)))
    kinds, halvings = zip(*distinct.values(), strict=True)
    rule = "geometric grid by factors of 2 around the median"
    thinning = f"{n:,} rows: every bandwidth of the grid"
    if limit is not None:
        rule += f", thinned to {limit} a kernel"
        thinning = f"{n:,} rows: at most {limit} bandwidths a kernel"
    thinning += " (all up to 10,000 rows, at most 4 a kernel up to 50,000, at most 2 beyond)"
    return Family(tuple(distinct), unused, rule, thinning, kinds, halvings)


def _times_median(factor: float, chooser: BandwidthChooser) -> BandwidthRule:
    """Return the rule of a multiple of the median."""
    return lambda metric, columns: factor * chooser.median(metric, columns)


def _thinned(exponents: list[int], limit: int | None) -> list[int]:
    """Return at most `limit` of the exponents, evenly spread over the range without its two ends."""
    if limit is None or len(exponents) <= limit:
        return exponents
    step = len(exponents) / limit
    return [exponents[int((place + 0.5) * step)] for place in range(limit)]
