"""What a null says of a family of kernels: the verdict, the record of the null, and what to warn of."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.engines.engine import machine_bytes, show_memory
from kerntest.errors import UndecidedError, counted, either, option
from kerntest.inference.family import Family, all_equal, most_members
from kerntest.inference.nulls.approximations import MatrixPair, curve_p_value
from kerntest.inference.nulls.moments import CentredKernel, CentredLabel
from kerntest.inference.nulls.permutation import JUDGES, Judged, judge, tie_tolerance
from kerntest.kernels.algebra import has_bandwidth, overflow
from kerntest.matrices.passes import CentredProduct, sweep
from kerntest.report.results import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.sides import Judge, Options, Resampling
    from kerntest.inference.statistic import Effect, LabelMatrix
    from kerntest.kernels.base import Array, Kernel, Points
    from kerntest.report.results.independence_record import Lags

# What random blocks add to the variance of the z of an observed statistic, by the number of relabellings.
BlockVariance: TypeAlias = "Callable[[int], float]"

# What helps where relabellings are too few: more of them, if there are no other words.
MORE, MORE_ROWS = "", "it takes more rows"
DEGENERATE = "undecided.degenerate_kernel"
ASYMPTOTIC = (
    "the p-value of a shift test is asymptotic: it holds for stationary series that are much longer than they remember "
    "their past"
)
# One series may follow the other with a delay of so many rows, or of this share of them.
SHORT_DELAY, SHARE_OF_ROWS = 10, 0.05
# So many times as far above its mean the statistic at another lag is told where the test rejects, too.
FAR_ABOVE = 2.0
# Autocorrelations below this are those of noise; they are looked at up to lags of this share of the shifts.
FORGOTTEN, LOOKED_AT = 0.05, 0.25
# Of each member of a family under each relabelling, while they are judged: the statistic, and it in standard deviations.
JUDGED_BYTES = 16.0
# No more than so many times as many are advised at once, and none where they leave this share of the error.
MOST_MORE, HARDLY = 20.0, 0.9
# As many sets of blocks as that error is worth beside what their shares vary by.
EXPECTED = 4.0


class Relabelled(NamedTuple):
    """<A, B> of every member of a family over one set of relabellings, shape (P, R), the observed one first.

    `tolerances` say how far rounding can move a sum, `resampling` what the relabellings are; `different` of them can be
    different, `floor` is the smallest p-value, `way_out` what helps where that is too large. `orders` counts random orders
    with as many relabellings each, `effects` what the members measure where it is known, `every` all shifts of series, of
    which `memory` in a row say as much as one; `block_variance` says of so many relabellings what random blocks add to the
    variance of z.
    """

    sums: Array
    tolerances: Array
    resampling: str
    different: int
    floor: float
    way_out: str
    orders: int | None = None
    exact: bool = True
    effects: Sequence[Effect] = ()
    every: Array | None = None
    memory: float = 1.0
    block_variance: BlockVariance | None = None


class Verdict(NamedTuple):
    """What a null says: the kernels that are reported, one for each side that has one, and what they measure.

    `relabelled` is the statistic of these under every relabelling, the observed first; `judged` the family, where several
    were judged together.
    """

    p_value: float
    kernels: tuple[Kernel, ...]
    found: Effect
    null: record.Null
    relabelled: Array | None = None
    warnings: tuple[str, ...] = ()
    judged: Judged | None = None
    spectral: float | None = None
    penalties: tuple[float, float] | None = None
    witness_correlation: float | None = None
    lags: Lags | None = None


@dataclass(frozen=True, eq=False)
class ExactTest(ABC):
    """Two sides under a null: the kernels and rows of both, and relabellings of the second against the first.

    MMD^2 or HSIC is `factor` * <A, B>. `usual` are the relabellings that are taken where no others are asked for.
    """

    options: Options
    engine: Engine
    progress: Progress | None

    usual: ClassVar[Resampling]
    # Whether any permutation of the rows is a relabelling, and of how few rows a curve is not near to all of them.
    exchangeable: ClassVar[bool] = True
    # What a relabelling takes that is held.
    relabelling_bytes: ClassVar[float] = 0.0
    fewest_for_curves: ClassVar[int] = 0

    @property
    def label(self) -> LabelMatrix | None:
        """The matrix of the second side, where it is the label."""
        return None

    @abstractmethod
    def sides(self, kernels: tuple[Kernel, ...]) -> list[tuple[Kernel, Points]]:
        """Return the kernel and the rows of both sides."""

    @property
    @abstractmethod
    def factor(self) -> float:
        """What turns <A, B> into the statistic."""

    @abstractmethod
    def relabelled(self, family: Family, at_least: int) -> Relabelled:
        """Return <A, B> of all members under at least so many shared relabellings."""

    @abstractmethod
    def effect(self, kernels: tuple[Kernel, ...]) -> Effect:
        """Return what kernels measure, if it is in the range of numbers."""

    def degenerate(self, kernels: tuple[Kernel, ...]) -> UndecidedError:
        """Return the error for kernels under which no relabelling changes the statistic, with what works if something does."""
        return degenerate(*kernels)

    def measured(self, kernels: tuple[Kernel, ...]) -> Effect:
        """Return what kernels measure, unless it is beyond the range of numbers."""
        found = self.effect(kernels)
        if not math.isfinite(found.estimate(self.options.estimator)):
            raise overflow(kernels[0])
        return found

    def rounding(self, kernels: tuple[Kernel, ...]) -> float:
        """Return how far rounding can move <A, B>."""
        a, b = (float(np.abs(kernel.diagonal(points)).max()) for kernel, points in self.sides(kernels))
        n = len(self.sides(kernels)[0][1])
        return tie_tolerance(a, n, b * n)

    def lags(self, relabelled: Relabelled, judged: Judged) -> Lags | None:
        """Return where series see most."""
        del relabelled, judged
        return None


def verdict_of(test: ExactTest, family: Family, causes: Iterable[str] = ()) -> Verdict:
    """Judge all members of a family over shared relabellings, or one by the curve that the null names.

    Of `causes` the first one is the hint where no kernel sees anything: such as a value beside which all others look alike.
    """
    try:
        # Of rows that are all equal no curve is needed.
        permuted = test.options.null == "permutation" or all_equal(test.sides(family.members[0])[0][1])
        return (permutation_verdict if permuted else curve_verdict)(test, family)
    except UndecidedError as error:
        if error.code == DEGENERATE:
            error.hint = next(iter(causes), error.hint)
        raise


def permutation_verdict(test: ExactTest, family: Family) -> Verdict:
    """Judge all members of a family over shared relabellings."""
    options = test.options
    refuse_too_many(len(family.members), options.permutations, beside=test.relabelling_bytes)
    relabelled = test.relabelled(family, options.permutations)
    finite = np.isfinite(relabelled.sums).all(axis=1)
    if not finite.all():
        # Values that overflow are refused where they are computed, by the name of their kernel: here it is sums.
        raise overflow(family.members[int(np.argmin(finite))][0])
    judged = judge(relabelled.sums, relabelled.tolerances, options.judge, family.exponents)
    judged = judged.remembering(relabelled.memory, relabelled.sums.shape[1])
    # A few relabellings of a few rows can all give one value (p = 1): all permutations tell what the kernels see.
    if judged.degenerate.all() and not (
        all_equal(test.sides(family.members[0])[0][1])
        or (test.exchangeable and any(TestedPair(test, kernels).varies() for kernels in family.members))
    ):
        raise test.degenerate(family.members[0])
    chosen, lags = judged.selected, test.lags(relabelled, judged)
    asymptotic = () if lags is None else _of_series(lags, relabelled, judged, options, family)
    few = relabelling_warning(
        judged.p_value,
        relabelled.different,
        options.alpha,
        relabelled.way_out,
        relabelled.floor,
        error=monte_carlo_error(judged.p_value, relabelled, family, options.judge),
    )
    null = permutation_null(
        judged,
        relabelled.sums.shape[1],
        options.permutations if relabelled.exact else None,
        scale=test.factor,
        method="permutation" if relabelled.exact else "shift",
        resampling=relabelled.resampling,
        p_floor=relabelled.floor,
        orders=relabelled.orders,
        exact=relabelled.exact,
    )
    return Verdict(
        judged.p_value,
        family.members[chosen],
        relabelled.effects[chosen] if relabelled.effects else test.measured(family.members[chosen]),
        null,
        test.factor * relabelled.sums[chosen],
        (*asymptotic, *few),
        judged,
        lags=lags,
    )


def curve_verdict(test: ExactTest, family: Family) -> Verdict:
    """Judge one member by the curve that the null names."""
    options, (kernels,) = test.options, family.members
    found = test.measured(kernels)
    pair = TestedPair(test, kernels, found.estimate(options.estimator) / test.factor)
    try:
        p_value, null = curve_p_value(options.null, pair)
    except OverflowError as error:
        raise overflow(kernels[0]) from error
    warnings: tuple[str, ...] = ()
    if pair.n < test.fewest_for_curves:
        warnings = (
            f"of {pair.n} rows no curve follows the few possible values: {option('null', 'permutation')} is exact",
        )
    return Verdict(p_value, kernels, found, null, warnings=warnings)


def permutation_null(
    judged: Judged, used: int, requested: int | None, *, scale: float = 1.0, **fields: Any
) -> record.Null:
    """Return the record of a null of relabellings: the moments are `scale` times those of the selected member."""
    chosen = judged.selected
    named: dict[str, Any] = {"method": "permutation", "p_floor": 1.0 / used, "exact": True} | fields
    return record.Null(
        **named,
        permutations=used,
        requested=requested,
        mean=float(scale * judged.mean[chosen]),
        standard_deviation=float(scale * judged.standard_deviation[chosen]),
        skewness=float(judged.skewness[chosen]),
    )


def judged_together(
    family: Family, judged: Judged | None, how: Judge, of_member: Callable[..., Any]
) -> record.FamilyRecord | None:
    """Return the record of a family that was judged, and of its members: their kernels, z, p-value and excess.

    None for a single member.
    """
    if judged is None or len(family.members) < 2:
        return None
    excess = [None] * len(judged.z) if judged.excess is None else judged.excess.tolist()
    members = tuple(
        of_member(*map(str, kernels), float(z), float(p), u)
        for kernels, z, p, u in zip(family.members, judged.z, judged.p_values, excess, strict=True)
    )
    return record.FamilyRecord(how, JUDGES[how], members, family.thinning, judged.p_clearest)


class TestedPair(MatrixPair):
    """The centred matrices A and B of one member of a family."""

    def __init__(self, test: ExactTest, kernels: tuple[Kernel, ...], value: float = 0.0) -> None:
        self.test, self.kernels, self.value = test, kernels, value
        sides, options = test.sides(kernels), test.options
        self.n, self.factor, self.rounding = len(sides[0][1]), test.factor, test.rounding(kernels)
        told: Any = {"hollow": options.hollow, "seed": options.seed, "progress": test.progress}
        self.x, self.y = (CentredKernel(*side, test.engine, **told) for side in sides)
        self.matrices = self.x, self.y if test.label is None else CentredLabel(test.label)

    def squared_products(self) -> float:
        """Return sum_{i != j} (A_ij B_ij)^2."""
        x, y = self.x, self.y
        points, centred = CentredProduct.of(y.kernel, y.points, y.centring[0], None)
        rows, product = CentredProduct.of(x.kernel, x.points, x.centring[0], (centred, points))
        return sweep(product, rows, np.zeros((self.n, 0)), x.engine, progress=x.progress).total_square

    def relabelled(self, at_least: int) -> Array:
        """Return <A, B> under at least so many relabellings of the usual kind."""
        test = self.test
        asked = max(at_least, test.options.permutations)
        usual = replace(test, options=replace(test.options, resampling=test.usual, permutations=asked), progress=None)
        sums: Array = usual.relabelled(Family((self.kernels,)), asked).sums[0]
        return sums

    def degenerate(self) -> UndecidedError:
        """Return the error for kernels under which no relabelling changes the statistic."""
        return self.test.degenerate(self.kernels)


# Warnings and refusals


class MonteCarloError(NamedTuple):
    """The standard error of a p-value over other seeds, by the number of relabellings: that of a share, and that of blocks.

    `blocks` is what a unit of `variance`, which random blocks add to the variance of z, adds to that of the p-value.
    """

    p_value: float
    blocks: float = 0.0
    variance: BlockVariance | None = None
    of_family: bool = False

    def __call__(self, relabellings: int) -> float:
        """Return the standard error."""
        added = 0.0 if self.variance is None else self.blocks * self.variance(relabellings)
        return math.sqrt(self.p_value * (1.0 - self.p_value) / relabellings + added)


def monte_carlo_error(p: float, relabelled: Relabelled, family: Family, how: Judge) -> MonteCarloError:
    """Return the error of a p-value as sizes tell it; of several sets of blocks also by how p-values of each alone vary."""
    variance, sums, orders = relabelled.block_variance, relabelled.sums, relabelled.orders or 1
    used = sums.shape[1]
    if variance is None or not 0.0 < p < 1.0 or not (added := variance(used)):
        return MonteCarloError(p)
    several = len(family.members) > 1
    from statistics import NormalDist  # noqa: PLC0415 - 3 ms that only this needs

    z = NormalDist().inv_cdf(p)
    # As though mean and deviation of z had been estimated from the blocks. Measured over 32 seeds at p = .02 to .13, shares
    # of that: of one kernel .3 to 1, .7 in the middle (39 cases of 12 kinds of rows, light and heavy tails, few values, 1 to
    # 50 columns), of `auto` .4 to 2.1, .9 in the middle (19), where most rows of Y keep their sample .3 to 4, .9 (22).
    blocks = NormalDist().pdf(z) ** 2 * (1.0 + z**2 / 2.0)
    if orders > 1:
        # Each by a rule of its own: in a family what is judged by hangs on the blocks, too.
        alone = [
            judge(np.hstack([sums[:, :1], part]), relabelled.tolerances, how, family.exponents).p_value
            for part in np.split(sums, orders, axis=1)
        ]
        expected = MonteCarloError(p, blocks, variance)(used) ** 2
        found = float(np.var(alone, ddof=1)) / orders
        together = (EXPECTED * expected + (orders - 1) * found) / (EXPECTED + orders - 1)
        blocks = max(0.0, together - p * (1.0 - p) / used) / added
    return MonteCarloError(p, blocks, variance, several)


def relabelling_warning(
    p_value: float,
    used: int,
    alpha: float,
    way_out: str = MORE,
    floor: float | None = None,
    *,
    error: MonteCarloError | None = None,
) -> tuple[str, ...]:
    """Return a warning where the relabellings are too few: to reject at all, or to tell the p-value from alpha."""
    floor = 1.0 / used if floor is None else floor
    if floor > alpha:
        warning = (
            f"the smallest p-value that {counted(used, 'relabelling')} can give is {floor:.3g}, above alpha = "
            f"{alpha:g}: the test cannot reject; " + (way_out or f"use more {option('permutations')}")
        )
        return (warning,)
    error = error or MonteCarloError(p_value)
    distance, now = abs(p_value - alpha), error(used)
    # Without a way to more relabellings these are all, and their p-value has no Monte-Carlo error. Where none of them
    # reaches the observed one, its error is not known.
    if way_out != MORE or p_value <= floor or distance > 2.0 * now:
        return ()
    enough, most = _round_number_above(used), _round_number_above(MOST_MORE * used)
    while enough < most and 2.0 * error(enough) >= distance:
        enough = _round_number_above(enough)
    warning = (
        f"alpha = {alpha:g} lies within two Monte-Carlo standard errors (about {now:.2g} each"
        f"{', at times twice that, as kernels are judged together' * error.of_family}) of the p-value, so that other "
        "relabellings might decide otherwise"
    )
    if error(enough) > HARDLY * now:
        return (f"{warning}, however many there are",)
    return (f"{warning}: {option('permutations', enough)} would tell more surely",)


def _of_series(lags: Lags, relabelled: Relabelled, judged: Judged, options: Options, family: Family) -> tuple[str, ...]:
    """Return what to know of a shift test: where one series may follow the other, which is not what it tests."""
    if relabelled.every is None:
        return (ASYMPTOTIC,)
    delay, every, alpha = abs(lags.strongest), relabelled.every, options.alpha
    excess = every[judged.selected] - every[judged.selected].mean()
    seen = judged.p_value <= alpha and float(excess.max()) < FAR_ABOVE * float(excess[0])
    if seen or not 0 < delay <= max(SHORT_DELAY, SHARE_OF_ROWS * every.shape[1]):
        return (ASYMPTOTIC,)
    later, earlier = ("y", "x") if lags.strongest > 0 else ("x", "y")
    rows, minimum = counted(delay, "row"), 2 * delay
    told = (
        f"rows of the same time are tested, and the statistic is largest where {later} is taken {rows} later than {earlier}: to test "
        f"that delay, put beside each {earlier} the {later} of {rows} later, best in other data than those that showed it"
    )
    # Rows of the same time may be alike because of that delay, but for which nothing comes near.
    if (
        judged.p_value > alpha
        and lags.minimum <= delay
        and 2 * minimum <= every.shape[1]
        and floor_of_shifts(every, minimum) <= alpha
        and _from_minimum(relabelled, minimum, options, family) <= alpha
    ):
        told += f"; for rows of the same time, {option('min-lag', minimum)} keeps that delay out of the null"
    return ASYMPTOTIC, told


def _from_minimum(relabelled: Relabelled, minimum: int, options: Options, family: Family) -> float:
    """Return the p-value of the shifts from another minimum on."""
    every: Any = relabelled.every
    sums = np.hstack([every[:, :1], every[:, minimum : every.shape[1] - minimum + 1]])
    judged = judge(sums, relabelled.tolerances, options.judge, family.exponents)
    return judged.remembering(float(np.mean(memory_of_shifts(every, minimum))), sums.shape[1]).p_value


def memory_of_shifts(every: Array, minimum: int) -> list[float]:
    """Return of how many shifts in a row one says as much as all, from a minimum on, for each member: 1 where none are left out."""
    if minimum == 1:
        return [1.0]
    return [_memory(values[minimum : len(values) - minimum + 1]) for values in every]


def floor_of_shifts(every: Array, minimum: int) -> float:
    """Return the smallest p-value of shifts from a minimum on; where these are too few for all members, at most."""
    memories, shifts = memory_of_shifts(every, minimum), int(every.shape[1]) - 2 * minimum + 1
    memory = float(np.mean(memories) if len(every) <= most_members(shifts + 1) else max(memories))
    return memory / (shifts + memory)


def _memory(values: Array) -> float:
    """Return how many values in a row say as much as one: 1 + 2 sum_k r_k of autocorrelations r_k up to the first small one."""
    rest = values - values.mean()
    total, size = 1.0, float(rest @ rest)
    for lag in range(1, int(LOOKED_AT * len(rest)) + 1):
        r = float(rest[:-lag] @ rest[lag:]) / size if size > 0.0 else 0.0
        if r < FORGOTTEN:
            break
        total += 2.0 * r
    return total


def refuse_too_many(members: int, relabellings: int, *, beside: float = 0.0) -> None:
    """Refuse relabellings, of so many bytes each, that this machine cannot hold with their statistics."""
    each, most = JUDGED_BYTES * members + beside, machine_bytes()
    if each * relabellings > most:
        few = 10 ** int(math.log10(most / 4 / each))
        raise UndecidedError(
            f"the statistics of {counted(members, 'kernel')} under {relabellings:,} relabellings take "
            f"{show_memory(each * relabellings)}, and this machine has {show_memory(most)}",
            hint=f"{option('permutations', few)} is enough for p-values down to {1 / few:g}; {option('null', 'moments')} has no floor",
            code="undecided.memory",
        )


def _round_number_above(number: float) -> int:
    """Return the least of 1, 2, 5, 10, 20, ... that is larger."""
    power = int(10.0 ** math.floor(math.log10(number)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power > number)


def refuse_overflow(kernels: Sequence[Kernel], sums: Iterable[NDArray[Any]]) -> None:
    """Refuse sums that are not finite, naming the kernel."""
    for kernel, values in zip(kernels, sums, strict=True):
        if not np.isfinite(values).all():
            raise overflow(kernel)


def degenerate(*kernels: Kernel) -> UndecidedError:
    """Return the error for kernels, one for each side that has one, under which no relabelling changes the statistic."""
    named = " and ".join(f"'{kernel}'" for kernel in kernels)
    subject = (
        f"the kernels {named} give one value of the statistic only, whichever rows are paired"
        if len(kernels) > 1
        else f"the kernel {named} finds all pairs of different rows equally similar, or these rows allow one value of the "
        "statistic only"
    )
    cause = f"kernel that cannot tell them apart: {either('--kernel gaussian', 'a Gaussian')} can"
    if any(map(has_bandwidth, kernels)):
        median = either("--kernel gaussian --bandwidth median", "kernel='gaussian' with bandwidth='median'")
        cause = f"bandwidth far below or above their distances: {median} is within them"
    return UndecidedError(
        f"{subject}: nothing can be tested",
        hint=f"too few different rows do this, or a {cause}",
        code=DEGENERATE,
    )
