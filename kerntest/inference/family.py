"""Which kernels a test uses: the named ones, or a family that is judged by one p-value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from kerntest.errors import UsageError, one_of, option, positive
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import BandwidthRule, Columns, Kernel, Metric, Points
from kerntest.kernels.elementary import Additive, Gaussian, Hamming, Laplacian
from kerntest.kernels.text import bind, is_additive, parse_kernel, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.data.columns import Arranged
    from kerntest.inference.sides import Variable

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
# How many bandwidths Gaussian, Laplacian and additive kernels have on each side of an independence test, by the number of
# rows: a family costs about n^2 log n for each kernel of a side, and n^2 for each pair.
THINNING: tuple[tuple[float, tuple[int, int, int]], ...] = (
    (2_000, (3, 3, 3)),
    (10_000, (3, 1, 1)),
    (50_000, (2, 1, 1)),
    (math.inf, (1, 1, 1)),
)
BY_ROWS = "3 bandwidths a kernel and side up to 2,000, then 3 of the first and 1 of others up to 10,000, 2 and 1 up to 50,000, 1 beyond"
# Their exponents go from near half the 5 % quantile of the distances to twice the median, which smooth dependences need
# (measured on hyppo's twenty simulations, and on a dozen problems of several columns).
WIDEST_OF_PAIRS, FINEST_OF_PAIRS, NEVER_WIDER = 1, -4, -1
# How far beyond that quantile the finest Gaussian stays, and the finest of any other kernel goes.
ABOVE, BELOW = 1, -1
ADDITIVE_EXPONENTS_OF_PAIRS = (1, -1, -3)
GAUSSIAN, ADDITIVE = 0, 2
IN_THE_KERNEL = "in the kernel"


class Family(NamedTuple):
    """Kernels with every bandwidth chosen, bound to the columns of the data.

    A member is one kernel for each side that has one. `left_out` are the columns of each side that no kernel sees; `rule`
    says how the bandwidths were chosen, `thinning` how the family depends on the numbers of rows and relabellings (empty
    for a single member). `kinds` says from which of the kernels before their bandwidths were chosen a member of one side
    comes, `exponents` the j of its bandwidths, 2^j medians, for each side.
    """

    members: tuple[tuple[Kernel, ...], ...]
    left_out: tuple[tuple[str, ...], ...] = ((),)
    rule: str = ""
    thinning: str = ""
    kinds: tuple[int, ...] = ()
    exponents: tuple[tuple[int, ...], ...] = ()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of a family of one side."""
        return tuple(kernel for (kernel,) in self.members)

    @property
    def unused(self) -> tuple[str, ...]:
        """The columns that no kernel sees."""
        return tuple(name for names in self.left_out for name in names)

    def sides(self) -> list[list[Kernel]]:
        """Return the different kernels of each side."""
        return [list(dict.fromkeys(kernels)) for kernels in zip(*self.members, strict=True)]


def all_equal(points: Points | Arranged) -> bool:
    """Say whether all rows are equal: then any relabelling leaves the statistic as it is, whatever the kernel."""
    return all(bool((one == one[:1]).all()) for one in (points.numeric, points.codes))


class KernelChooser:
    """Chooses the kernels of one side, in units of the distances between its rows.

    `exponents` gives the grid of a kernel, by default that of a two-sample test; a family is thinned to what so many
    different relabellings can carry.
    """

    def __init__(
        self, variable: Variable, seed: int, *, exponents: Exponents | None = None, relabellings: int | None = None
    ) -> None:
        self.names = variable.numeric_names, variable.category_names
        self.points, self.bandwidths = variable.points, BandwidthChooser(variable.points, seed)
        self.median = cache(self.bandwidths.median)
        self.exponents = exponents or two_sample_exponents
        self.relabellings = relabellings

    def family(self, kernel: Kernel | str, bandwidth: BandwidthOption, *, single: bool, idle: bool = False) -> Family:
        """Return the kernels of a test.

        "auto" is Gaussian, Laplacian, and additive where there are several columns (hamming where there are only
        categories), on a geometric grid around the median; with `single`, where the null has no joint p-value, the
        Gaussian at the median. With `idle` a bandwidth may be given that the kernel has no use for.
        """
        chosen = check_bandwidth(bandwidth)
        bound = [bind(base, *self.names) for base in _bases(kernel, *map(len, self.names), single=single)]
        bases, unused = [one.kernel.whitened(self.bandwidths.moments) for one in bound], bound[0].unused
        if chosen == "auto" and not single and any(base.free for base in bases):
            return self._grid(bases, unused)
        kinds: Sequence[int] = range(len(bases))
        if not any(base.free for base in bases):
            if chosen != "auto" and not idle:
                raise idle_bandwidth(kernel)
            kernels, rule = bases, IN_THE_KERNEL
        elif isinstance(chosen, str):
            kernels, rule = [base.resolve(self.median) for base in bases], "median heuristic"
        elif single and len(chosen) > 1:
            raise UsageError(
                "this null judges one kernel: give one bandwidth",
                hint=f"{option('null', 'permutation')} judges several bandwidths together",
                code="usage.bandwidth_family",
            )
        else:
            kernels = [self._at(base, number) for base in bases for number in chosen]
            kinds = [kind for kind in kinds for _ in chosen]
            rule = "as given: " + ", ".join(f"{number:g}" for number in chosen)
        return Family(tuple((one,) for one in kernels), (unused,), rule, "", tuple(kinds), ((0,),) * len(kernels))

    def _at(self, base: Kernel, number: float) -> Kernel:
        """Return `base` at a bandwidth given as a number, which is meant for the numeric columns where there are any."""

        def rule(metric: Metric, columns: Columns | None) -> float:
            of_others = self.names[0] and metric == "mismatches" and not all_equal(self.points)
            return self.median(metric, columns) if of_others else number

        return base.resolve(rule)

    def _grid(self, bases: list[Kernel], unused: tuple[str, ...]) -> Family:
        """Return every base kernel at its median bandwidths times powers of two, from wide to narrow."""
        wanted = [(kind, j) for kind, base in enumerate(bases) for j in self.exponents(base, self.bandwidths)]
        far = [(abs(exponent), kind) for kind, exponent in wanted]
        wanted, thinning = carried(wanted, far, self.relabellings, "every bandwidth, however many rows")

        def times(factor: float) -> BandwidthRule:
            return lambda metric, columns: factor * self.median(metric, columns)

        # One column of categories, or of two numbers, has one distance: then some members are equal.
        distinct: dict[Kernel, tuple[int, int]] = {}
        for kind, exponent in wanted:
            distinct.setdefault(bases[kind].resolve(times(2.0**exponent)), (kind, exponent))
        return Family(
            tuple((kernel,) for kernel in distinct),
            (unused,),
            "geometric grid by factors of 2 around the median",
            thinning,
            tuple(kind for kind, _ in distinct.values()),
            tuple((exponent,) for _, exponent in distinct.values()),
        )


def choose_pair(
    kernels: tuple[Kernel | str, Kernel | str],
    bandwidth: BandwidthOption,
    variables: Sequence[Variable],
    *,
    seed: int,
    single: bool,
    relabellings: int | None = None,
) -> Family:
    """Return the pairs of kernels of an independence test; each side as `KernelChooser` does."""
    n, automatic = len(variables[0].points), check_bandwidth(bandwidth) == "auto"
    choosers = [KernelChooser(variable, seed, exponents=independence_exponents) for variable in variables]
    # A kernel that names its own bandwidth is fine as long as the other leaves one open.
    first, second = sides = [
        chooser.family(kernel, bandwidth, single=single, idle=True)
        for chooser, kernel in zip(choosers, kernels, strict=True)
    ]
    if not automatic and all(side.rule == IN_THE_KERNEL for side in sides):
        raise idle_bandwidth(kernels[0])
    pairs, thinning = _judged_together(first, second), ""
    if automatic and len(pairs) > 1:
        far = [(abs(first.exponents[f][0]) + abs(second.exponents[g][0]), first.kinds[f]) for f, g in pairs]
        pairs, thinning = carried(pairs, far, relabellings, f"{n:,} rows: by their number ({BY_ROWS})")
    return Family(
        tuple((*first.members[f], *second.members[g]) for f, g in pairs),
        (*first.left_out, *second.left_out),
        "; ".join(dict.fromkeys(side.rule for side in sides)),
        thinning,
        exponents=tuple((*first.exponents[f], *second.exponents[g]) for f, g in pairs),
    )


def _judged_together(first: Family, second: Family) -> list[tuple[int, int]]:
    """Return every pair of kernels of one kind, or every pair where one side has a single kind.

    A dependence that a Gaussian sees on one side is seen by a Gaussian on the other too: mixed pairs would double the
    family for nothing (measured). Over one column an additive kernel is a Gaussian.
    """
    every = list(np.ndindex(len(first.members), len(second.members)))
    if len(set(first.kinds)) == 1 or len(set(second.kinds)) == 1:
        return every

    def kind(side: Family, other: Family, place: int) -> set[int]:
        own = side.kinds[place]
        return {own, ADDITIVE} if own == GAUSSIAN and ADDITIVE not in side.kinds and ADDITIVE in other.kinds else {own}

    return [(f, g) for f, g in every if kind(first, second, f) & kind(second, first, g)]


def idle_bandwidth(kernel: Kernel | str) -> UsageError:
    """Return the error for a bandwidth beside a kernel that has no use for it."""
    return UsageError(
        f"the kernel '{kernel}' leaves no bandwidth open: {option('bandwidth')} has nothing to set",
        hint="leave out one of the two",
        code="usage.bandwidth_twice",
    )


def check_bandwidth(bandwidth: BandwidthOption) -> Literal["auto", "median"] | tuple[float, ...]:
    """Return the rule, or the numbers one by one; refuse what is neither a rule nor positive and finite."""
    if isinstance(bandwidth, str):
        one_of("bandwidth", bandwidth, ("auto", "median"))
        return bandwidth
    given = tuple(bandwidth) if isinstance(bandwidth, Iterable) else (bandwidth,)
    if not given:
        raise UsageError("no bandwidth was given", hint="use auto, median or numbers", code="usage.bandwidth")
    for number in given:
        positive("bandwidth", number)
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


def most_members(relabellings: int) -> int:
    """Return how many members so many different relabellings can judge together."""
    return max(1, relabellings // RELABELLINGS_PER_MEMBER)


def carried(
    members: list[tuple[int, int]], far: Sequence[tuple[int, int]], relabellings: int | None, rule: str
) -> tuple[list[tuple[int, int]], str]:
    """Return the members that so many different relabellings can judge together, nearest to the median, and the rule in words."""
    most = len(members) if relabellings is None else most_members(relabellings)
    if most >= len(members):
        return members, rule
    kept = sorted(sorted(range(len(members)), key=far.__getitem__)[:most])
    rule = f"{rule}, at most {most:,}: one for each ten relabellings, those nearest to the median first"
    return [members[place] for place in kept], rule


def two_sample_exponents(base: Kernel, chooser: BandwidthChooser) -> list[int]:
    """Return the j of the bandwidths 2^j medians of a kernel in a two-sample test, in descending order."""
    points = chooser.points
    few = points.numeric.shape[1] + points.codes.shape[1] <= FEW_COLUMNS
    if is_additive(base):
        return [] if few else list(ADDITIVE_EXPONENTS)
    widest = WIDEST_OF_FEW if few else WIDEST
    finest = min(max(math.floor(chooser.log_finest(base)), FINEST), widest - FEWEST_EXPONENTS + 1)
    return list(range(widest, finest - 1, -1))


def independence_exponents(base: Kernel, chooser: BandwidthChooser) -> list[int]:
    """Return the j of the bandwidths 2^j medians of a kernel in an independence test, in descending order."""
    gaussians, others, additives = next(counts for rows, counts in THINNING if len(chooser.points) <= rows)
    if is_additive(base):
        return list(ADDITIVE_EXPONENTS_OF_PAIRS) if additives > 1 else [0]
    is_gaussian = isinstance(plain(base), Gaussian)
    # Half the 5 % quantile of the distances, at most the median.
    finest = min(max(math.ceil(chooser.log_finest(base)), FINEST_OF_PAIRS), 0) + (ABOVE if is_gaussian else BELOW)
    steps = np.linspace(min(finest, NEVER_WIDER), WIDEST_OF_PAIRS, 3)
    exponents = sorted({math.floor(step + 0.5) for step in steps}, reverse=True)
    # So many of them: the middle one, or the ends and what lies evenly between.
    count = min(gaussians if is_gaussian else others, len(exponents))
    return [exponents[int((place + 0.5) * len(exponents) / count)] for place in range(count)]
