"""Two samples by features: their sums over blocks of random rows, and MMD under permutations of the blocks.

Permuting whole blocks of rows that lie in random order is a group of relabellings, so that the test is exact under
exchangeability (Domingo-Enrich, Dwivedi and Mackey 2025, "Cheap permutation testing").
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.facts import mixed
from kerntest.dataclass import dataclass
from kerntest.engines.plan import count_wanted
from kerntest.errors import UndecidedError, UsageError, bad_file, option
from kerntest.inference import verdict
from kerntest.inference.family import Family, KernelChooser, two_sample_exponents
from kerntest.inference.features import two_passes
from kerntest.inference.features.work_of_features import (
    RELABELLED_TOGETHER,
    TOGETHER,
    work_of_judging,
    work_of_sums,
)
from kerntest.inference.method import FEWEST_IN_BLOCKS
from kerntest.inference.nulls.permutation import first_of, judge, tie_tolerance
from kerntest.inference.relabelling.permuted_blocks import TwoSamples
from kerntest.inference.sides import ORDER_STREAM, Sample
from kerntest.inference.sizes.location import ShiftsOfColumns, smallest_shift
from kerntest.inference.sizes.margins import MOST_LEFT_OUT, Asked, Errors, Law, largest_mmd
from kerntest.inference.statistic import Effect, LabelMatrix, SumsOfGroups, centred_inner
from kerntest.kernels import elementary
from kerntest.kernels.base import DensePairs, Points
from kerntest.kernels.text import is_additive
from kerntest.matrices.factor import FEATURE_STREAM, FeatureMap, nystroem, parse_features
from kerntest.report.results import two_sample_record
from kerntest.report.summaries.words import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.inference.family import BandwidthOption
    from kerntest.inference.sides import Estimator, Options, Variable
    from kerntest.kernels.bandwidth import BandwidthChooser
    from kerntest.kernels.base import Array, Kernel

# Landmarks, and rows on which features are compared with the kernel.
FEATURES, ERROR_ROWS = "nystroem:300", 800
# Some hundred features leave out much of what kernels see whose bandwidth is below so many factors of two of the median.
NARROWEST = -1
# Blocks of both files together, and those of the smaller one at least.
BLOCKS, FEWEST_BLOCKS = 1000, 50
# Free blocks of a file that has many more rows than the other; its other rows keep their file, in so many blocks.
MOST_BLOCKS, FIXED_BLOCKS = 2000, 50
# How much smaller than wanted blocks may be for the sake of fewer rows beyond the last whole one.
ROUNDER = 0.9
# Tells the random orders of rows from other streams of the same seed.
ASSIGNMENT_STREAM = 5
ROUNDS = 8
# Random relabellings that show whether a kernel can tell any two apart, where those of the test cannot.
OTHER_RELABELLINGS = 100


def random_places(rows: NDArray[np.integer], n: int, seed: int, stream: int) -> NDArray[np.int64]:
    """Return the places of some rows in a pseudo-random order of n, which takes no memory.

    A Feistel network on the bits of a number is a permutation whatever its round function is (Luby and Rackoff 1988).
    Numbers that it takes beyond n are sent through it again until they come back (cycle walking, Black and Rogaway 2002):
    twice on average at most.
    """
    keys = np.random.default_rng((seed, ASSIGNMENT_STREAM, stream)).integers(0, 2**64, ROUNDS, dtype=np.uint64)
    # At least one bit on either side.
    bits = max(2, (n - 1).bit_length())
    low_bits = np.uint64(bits // 2)
    low_mask, high_mask = ((np.uint64(1) << np.uint64(half)) - np.uint64(1) for half in (bits // 2, bits - bits // 2))

    def walked(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        low, high = values & low_mask, values >> low_bits
        for number, key in enumerate(keys):
            if number % 2:
                low = low ^ (mixed(high ^ key) & low_mask)
            else:
                high = high ^ (mixed(low ^ key) & high_mask)
        return (high << low_bits) | low

    places = walked(rows.astype(np.uint64))
    while len(outside := np.flatnonzero(places >= n)):
        places[outside] = walked(places[outside])
    return places.astype(np.int64)


@dataclass(frozen=True)
class Blocks:
    """How n rows of one table lie in blocks: `free` ones of `size` rows each, and a few `fixed` that keep their table."""

    n: int
    free: int
    size: int
    fixed: int

    @property
    def fixed_rows(self) -> int:
        """Rows beyond the free blocks."""
        return self.n - self.free * self.size

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of rows of each block, free ones first, shape (free + fixed,)."""
        starts = -(-np.arange(self.fixed + 1) * self.fixed_rows // max(self.fixed, 1))
        return np.concatenate([np.full(self.free, self.size), np.diff(starts)])

    def of(self, places: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the block of each place in a random order."""
        return np.searchsorted(np.cumsum(self.sizes), places, side="right")


def plan_blocks(n: Sequence[int], names: Sequence[str]) -> tuple[Blocks, Blocks]:
    """Return how the rows of two files lie in blocks of one size; DataError if a file has too few rows for blocks."""
    for count, name in zip(n, names, strict=True):
        if count < FEWEST_IN_BLOCKS:
            said = f"has {count:,} rows; with features a test needs at least {FEWEST_IN_BLOCKS} in each table"
            raise bad_file(
                name,
                said,
                hint=f"{option('method', 'exact')} without {option('features')} takes any number",
                code="data.too_few_rows",
            )
    most = max(1, min(sum(n) // BLOCKS, min(n) // FEWEST_BLOCKS))
    sizes = np.arange(max(1, math.ceil(ROUNDER * most)), most + 1)[::-1]
    size = int(sizes[int(np.argmin(sum(np.where(count // sizes > MOST_BLOCKS, 0, count % sizes) for count in n)))])

    def blocks(count: int) -> Blocks:
        free = min(count // size, MOST_BLOCKS)
        return Blocks(count, free, size, min(count - free * size, FIXED_BLOCKS))

    return blocks(n[0]), blocks(n[1])


def family_features(text: str, kernels: Sequence[Kernel], sample: Points, seed: int) -> tuple[FeatureMap, ...]:
    """Return features for the kernels of a family: on shared landmarks, the first different rows of a random sample.

    Random waves are cosines and sines, so that |z(x)|^2 = 1.
    """
    kind, count = parse_features(text)
    two_passes.refuse_indefinite(kernels)
    if kind == "fourier":
        half, nothing = max(1, count // 2), sample.take(slice(0, 0))
        phases = np.repeat([0.0, -np.pi / 2], half)
        waves = (np.tile(_frequencies(kernel, sample.numeric.shape[1], half, seed), 2) for kernel in kernels)
        return tuple(FeatureMap(kind, kernel, nothing, W, phases) for kernel, W in zip(kernels, waves, strict=True))
    landmarks = sample.take(two_passes.distinct_rows(sample)[:count])
    return tuple(nystroem(kernel, landmarks, two_passes.SMALLEST_SHARE) for kernel in kernels)


def _frequencies(kernel: Kernel, p: int, count: int, seed: int) -> Array:
    """Return random frequencies whose cosines average to the kernel (Rahimi and Recht 2007), shape (p, count).

    The Laplacian is a product of characteristic functions of Cauchy variables; the others are mixtures of Gaussians
    of random scale: of chi-square for the Matern family, of Gamma for powers of 1 + |x - y|^2.
    """
    rng = np.random.default_rng((seed, FEATURE_STREAM))
    scale = float(getattr(kernel, "bandwidth", None) or 1.0)
    if isinstance(kernel, elementary.Laplacian):
        return rng.standard_cauchy(size=(p, count)) / scale
    normal = rng.normal(size=(p, count))
    if isinstance(kernel, elementary.Gaussian):
        return normal / scale
    if isinstance(kernel, elementary.Laplacian2 | elementary.Matern):
        nu = kernel.nu if isinstance(kernel, elementary.Matern) else 0.5
        return normal / (np.sqrt(rng.chisquare(2 * nu, count) / (2 * nu)) * scale)
    if isinstance(kernel, elementary.RationalQuadratic):
        return normal * np.sqrt(rng.gamma(kernel.alpha, 1 / kernel.alpha, count)) / scale
    if isinstance(kernel, elementary.StudentT):
        return normal * np.sqrt(rng.gamma((kernel.df + 1) / 2, 2 / kernel.df, count)) / scale
    raise UsageError(
        f"random Fourier features are for kernels of differences of numbers, not for '{kernel}'",
        hint=f"{option('features', 'nystroem:300')} is for every kernel",
        code="usage.features",
    )


@dataclass(frozen=True, eq=False)
class BlockSums:
    """The second pass of a two-sample test: sums of the features of F kernels over blocks of random rows.

    Nystroem features z(x) = P' k(C, x) are linear in the values k(C, x), so that these are summed, and P is applied to
    few sums in the end. The kernels share the landmarks C, and with them the distances.
    """

    features: tuple[FeatureMap, ...]
    blocks: tuple[Blocks, Blocks]
    seed: int

    @property
    def width(self) -> int:
        """Values D of each kernel: landmarks, or random features."""
        return len(self.features[0].landmarks) or self.features[0].size

    def shape(self, source: int) -> tuple[int, int, int]:
        """Return the shape of the sums over an input, (blocks, F, D)."""
        return len(self.blocks[source].sizes), len(self.features), self.width

    def add(self, total: Array, rows: Points, source: int, before: int) -> None:
        """Add m rows of an input, so many of it before them. Cost: O(m M (p + F)) time."""
        blocks, step = self.blocks[source], max(64, TOGETHER // self.width)
        block = blocks.of(random_places(np.arange(before, before + len(rows)), blocks.n, self.seed, source))
        together = np.argsort(block, kind="stable")
        block, rows, landmarks = block[together], rows.take(together), self.features[0].landmarks
        # Slices of one whole share what kernels derive from rows.
        numeric = np.asfortranarray(np.concatenate([landmarks.numeric, rows.numeric]))
        codes = np.asfortranarray(np.concatenate([landmarks.codes, rows.codes]))
        whole, count = Points(numeric, codes), len(landmarks)
        for start in range(0, len(block), step):
            own = block[start : start + step]
            some = whole.take(slice(count + start, count + start + len(own)))
            starts = np.flatnonzero(np.diff(own, prepend=-1))
            pairs = DensePairs(some, whole.take(slice(0, count)))
            if count:
                pairs.halve_bandwidths()
            for member, one in enumerate(self.features):
                values = one.kernel.evaluate(pairs) if count else one.of_block(some)
                # Each block occurs once among the starts: no two of them are added to one place.
                total[own[starts], member] += np.add.reduceat(values, starts, axis=0)


class Blocked:
    """Centred sums of the features of one kernel over s blocks, those of X first; relabellings permute the free ones.

    With S the sum of the centred features of the rows of X, so that -S is that of Y, n_x and n_y rows,

        MMD_b^2 = (1/n_x + 1/n_y)^2 |S|^2
        MMD_u^2 = (|S|^2 - Q_x) / P_x + (|S|^2 - Q_y) / P_y + 2 |S|^2 / (n_x n_y) + c

    where Q sums |S_a|^2 over the blocks a of a file and P counts its pairs of rows in different blocks: an unbiased
    estimate that leaves out the pairs of rows within a block, one in as many as there are blocks. Pairs of rows in blocks
    of different sizes n_a do not weigh the same, so that the mean m that was taken out leaves something behind,
    c = 2 sum_a <m, S_a> ((n_x - n_a) / P_x - 1/n_x) over the blocks of X and the same for Y: 0 for blocks of one size.
    """

    def __init__(
        self,
        features: FeatureMap,
        sums: Array,
        blocks: Sequence[Blocks],
        sample: Points,
        sample_of_each: Sequence[Points],
    ) -> None:
        self.features, self.sample, self.sample_of_each = features, sample, sample_of_each
        sums = sums @ features.projection if len(features.landmarks) else sums
        self.sizes = np.concatenate([each.sizes for each in blocks])
        self.mean = sums.sum(axis=0) / self.sizes.sum()
        self.sums = sums - self.sizes[:, None] * self.mean
        in_x = np.repeat([True, False], [len(each.sizes) for each in blocks])
        # Which blocks are of X, which of Y, and which are moved: of these, 1 in X and 0 in Y.
        self.sides, self.n = (in_x, ~in_x), tuple(each.n for each in blocks)
        self.free = np.concatenate([np.arange(len(each.sizes)) < each.free for each in blocks])
        self.labels = in_x[self.free].astype(np.float64)
        # Mean features of each block.
        self.means: Array = self.sums / self.sizes[:, None]

    @cached_property
    def sampled(self) -> Array:
        """Features of some rows, drawn at random."""
        return self.features.of_block(self.sample)

    def relabelled(self, estimator: Estimator, relabellings: int, seed: int) -> Array:
        """Return the estimate under random permutations of the free blocks, the identity first, the same for every kernel."""
        rng = np.random.default_rng((seed, ORDER_STREAM))
        values = []
        for start in range(0, relabellings, RELABELLED_TOGETHER):
            count = min(RELABELLED_TOGETHER, relabellings - start)
            labels = rng.permuted(np.tile(self.labels, (count, 1)), axis=1)
            if not start:
                labels[0] = self.labels
            values.append(self.estimates(estimator, labels))
        return np.concatenate(values)

    def errors(self, effect: Effect) -> Errors:
        """Return what the errors of mean features are like, by the covariance of those of the sampled rows."""
        Z, scale, n = self.sampled - self.sampled.mean(axis=0), sum(1.0 / n for n in self.n), sum(self.n)
        products = Z.T @ Z
        C = scale * products / (len(Z) - 1)
        # The squares of each row of Z Z', of which none is formed.
        squared, own = C @ C, np.einsum("ir,ir->i", Z @ products, Z) / len(Z)
        twice = float(self.difference @ squared @ self.difference)
        # Whose logarithm the effect size divides by: its error is about independent of that of MMD^2.
        variance, square = effect.variance + 2.0 * float(np.trace(squared)), max(effect.unbiased, 0.0) ** 2
        more = float(own.var() / own.mean() ** 2) / n if own.any() else 0.0
        relative = math.sqrt(1.0 + more * square / variance) if variance > 0 else 1.0
        freedom = float(min(np.count_nonzero(self.free & side) for side in self.sides) - 1)
        return Errors(
            float(np.trace(squared)),
            float((squared * C).sum()),
            float(np.linalg.eigvalsh(C)[-1]),
            twice,
            max(freedom, 1.0),
            relative,
        )

    def estimates(self, estimator: Estimator, labels: Array) -> Array:
        """Return the estimates for labellings of the free blocks, shape (R, free blocks)."""
        (n_x, n_y), free = self.n, self.free
        in_x = labels @ self.sums[free] + self.sums[self.sides[0] & ~free].sum(axis=0)
        square = np.einsum("gr,gr->g", in_x, in_x)
        if estimator == "biased":
            return np.asarray((1 / n_x + 1 / n_y) ** 2 * square)
        own, slope = np.einsum("ar,ar->a", self.sums, self.sums), 2.0 * (self.sums @ self.mean)
        estimates = 2 / (n_x * n_y) * square
        for side, n, label in zip(self.sides, self.n, (labels, 1.0 - labels), strict=True):
            pairs = n**2 - float(np.square(self.sizes[side].astype(np.float64)).sum())
            # What a block adds where it is in this file.
            added = slope * ((n - self.sizes) / pairs - 1 / n) - own / pairs
            estimates += square / pairs + label @ added[free] + added[side & ~free].sum()
        return np.asarray(estimates)

    def tolerance(self, estimator: Estimator) -> float:
        """Return how far rounding can move an estimate between two relabellings that are equal."""
        s_x = int(self.sides[0].sum())
        label = LabelMatrix(s_x, len(self.sums) - s_x, estimator)
        largest = float(np.square(self.means).sum(axis=1).max())
        return label.factor * tie_tolerance(largest, len(self.sums), math.sqrt(label.squared_norm))

    @cached_property
    def moments(self) -> tuple[float, float]:
        """The trace of the covariance of the features, and the mean square of the U-centred matrix, of m sampled rows.

        <A, A> / (n (n - 3)) estimates the same number whatever n is (Szekely and Rizzo 2014).
        """
        Z, m = self.sampled - self.sampled.mean(axis=0), len(self.sampled)
        own = np.einsum("ir,ir->i", Z, Z)
        # Rows of the kernel matrix without its diagonal sum to -|z|^2.
        square = centred_inner(np.square(Z.T @ Z).sum() - own @ own, own @ own, own.sum() ** 2, m, hollow=True)
        return float(own.sum()) / (m - 1), square / (m * (m - 3))

    def strength(self) -> float:
        """Return the square of the effect size up to a factor, from all sums alone: blocks, and the order of rows, have no part.

        MMD_b^2 less what it is on average where nothing differs, in units of the deviation that it has then.
        """
        trace, square = self.moments
        excess = float(self.estimates("biased", self.labels[None])[0]) - sum(1 / n for n in self.n) * trace
        return excess / math.sqrt(square) if square > 0 else 0.0

    def effect(self) -> Effect:
        """Return what the kernel measures.

        The variance is that of `discrepancy`, from the spread of the witness function between the blocks of a file.
        """
        unbiased, biased = (float(self.estimates(one, self.labels[None])[0]) for one in ("unbiased", "biased"))
        each = [self.features.of_block(some) for some in self.sample_of_each]
        G, codes = np.concatenate(each), np.repeat([0, 1], [len(one) for one in each])
        size = SumsOfGroups.of_factor(G, np.einsum("ir,ir->i", G, G), codes, 2).effect(unbiased)
        witness = self.means @ self.difference
        spread = sum(witness[self.free & side].var(ddof=1) / n for side, n in zip(self.sides, self.n, strict=True))
        return Effect(unbiased, biased, size, 4.0 * float(self.sizes[self.free][0]) * float(spread))

    @property
    def difference(self) -> Array:
        """Mean features of X less those of Y."""
        return np.asarray(self.sums[self.sides[0]].sum(axis=0) * sum(1 / n for n in self.n))


@np.errstate(over="ignore", invalid="ignore")
def mmd_by_features(
    x: Any,
    y: Any,
    run: two_passes.Survey,
    result: Callable[..., two_sample_record.TwoSampleResult],
    *,
    kernel: Kernel | str,
    bandwidth: BandwidthOption,
    asked: Asked,
    tests: int = 1,
) -> two_sample_record.TwoSampleResult:
    """Return the `result` of `mmd_test` with ``method="features"``, one of so many `tests`.

    Cost: O(n M (p + F)) time, M features of F kernels.
    """
    options = run.options
    # Landmarks are rows of the sample, and others show how far the features are from the kernel.
    with run.over((x, y), run.number + ERROR_ROWS if run.kind == "nystroem" else 0):
        blocks = plan_blocks(run.n, run.names)

        def looked_at(rows: Variable) -> tuple[Variable, Family, BlockSums]:
            """Return a sample, the kernels that are judged, and the features of all of them, as the sample tells them."""
            family, extra = _kernels(run, rows, kernel, bandwidth)
            kernels = (*family.kernels, *extra)
            if all(isinstance(one, elementary.Linear) for one in kernels):
                # Only to the linear kernel every origin is the same; a far one would take its digits away.
                mean = rows.points.numeric.mean(axis=0)
                points = Points(rows.points.numeric - mean, rows.points.codes)
                rows = replace(rows, points=points, centre=rows.centre + mean * rows.spread)
            asked.check_limit(kernels[-1], rows.points)
            maps = family_features(run.features, kernels, rows.points, options.seed)
            return rows, family, BlockSums(maps, blocks, options.seed)

        if count_wanted(sum(run.n)):
            rows, _, planned = looked_at(run.sample)
            told = max(options.permutations, OTHER_RELABELLINGS), options.alpha / tests
            holding, after = work_of_judging(planned, rows.points, *told)
            run.plan_sums(*work_of_sums(planned, run.n), judged=holding, passes=3, after=after)
        run.draw_by_values()
        run.sample, family, work = looked_at(run.sample)
        sample, maps, sums = run.sample.points, work.features, run.sums(work)
    kernels = [one.kernel for one in maps]
    blocked = [
        Blocked(one, np.concatenate([some[:, member] for some in sums]), blocks, sample, run.sample_of_each)
        for member, one in enumerate(maps)
    ]
    judged = _permuted if options.null == "permutation" else _by_curve
    found = judged(family, blocked[: len(family.members)], options, run.engine)
    chosen = blocked[kernels.index(found.kernels[0])]
    # Errors are those of rows that are no landmarks where there are enough.
    landmarks = len(chosen.features.landmarks)
    first = landmarks if len(sample) > landmarks + ERROR_ROWS // 2 else 0
    others = slice(first, first + ERROR_ROWS)
    errors, (_, left_out) = (
        two_passes.errors(one.features, sample.take(others), one.sampled[others]) for one in (chosen, blocked[-1])
    )
    sized = _sized(run.sample, family, blocked[-1], found, options, asked=asked, tests=tests, left_out=left_out)
    warnings = two_passes.large_error(f"the {run.features}", errors[1])
    if asked.margin is not None and left_out > MOST_LEFT_OUT:
        unseen = f"the {run.features} features leave out {percent(left_out)} of what the kernel of the margin sees"
        warnings.append(
            f"{unseen}: they bound MMD from below alone, and nothing is the same; ask for more {option('features')}"
        )
    found = found._replace(warnings=(*warnings, *found.warnings))
    rule = f"{family.rule}, on {len(sample):,} sampled rows" if family.thinning else family.rule
    free, fixed_rows = sum(each.free for each in blocks), sum(each.fixed_rows for each in blocks)
    numbers = len(sample), free, blocks[0].size, fixed_rows
    return result(
        run,
        found,
        family,
        run.provenance(run.tables, run.n, (kernel,), rule),
        n=run.n,
        columns=run.columns,
        left_out=run.left_out,
        sized=sized,
        warnings=(*run.warnings, *run.apart(rejects=found.p_value <= options.alpha)),
        method="features",
        approximation=two_sample_record.Approximation(run.features, run.kind, work.width, *errors, *numbers),
    )


def _sized(
    rows: Variable,
    family: Family,
    measured: Blocked,
    found: verdict.Verdict,
    options: Options,
    *,
    asked: Asked,
    tests: int,
    left_out: float,
) -> dict[str, Any]:
    """Return how large the difference is under the kernel that effects are measured by, or the shift that would have been found."""
    measure, alpha = measured.features.kernel, options.alpha / tests
    if found.p_value > alpha and not any(one is not None for one in asked):
        return {"smallest_shift": smallest_shift(family, measure, rows, measured.n, options=options, alpha=alpha)}
    effect = measured.effect()
    law = Law(effect, measured.errors(effect), found.p_value, largest_mmd(measure, rows.points), left_out)
    answered = asked.answered(law, measure, ShiftsOfColumns(measure, rows), alpha, measured.n)
    return {"interval": law.interval(effect, measure, alpha)} | answered


def _kernels(
    run: two_passes.Survey, sample: Variable, kernel: Kernel | str, bandwidth: BandwidthOption
) -> tuple[Family, tuple[Kernel, ...]]:
    """Return the kernels that are judged, as many as the exact test has, and of several the one that effects are measured by."""

    def exponents(base: Kernel, chooser: BandwidthChooser) -> list[int]:
        """Those of the exact test that features can stand for; random waves only for all columns together."""
        exponents = [] if run.kind == "fourier" and is_additive(base) else two_sample_exponents(base, chooser)
        return [exponent for exponent in exponents if exponent >= NARROWEST]

    options = run.options
    chooser = KernelChooser(sample, options.seed, exponents=exponents, relabellings=options.permutations)
    try:
        family = chooser.family(kernel, bandwidth, single=options.null != "permutation")
    except UndecidedError as error:
        if error.code == "undecided.no_distance":
            # A random sample has no row of rare values.
            error.hint = f"{option('method', 'exact')} looks at all rows, or {error.hint}"
        raise
    if family.thinning:
        rule = f"{sum(run.n):,} rows: bandwidths of the exact test from half the median on"
        family = family._replace(thinning=rule)
    return family, () if len(family.kernels) == 1 else chooser.family(kernel, "median", single=True, idle=True).kernels


def _permuted(family: Family, blocked: Sequence[Blocked], options: Options, engine: Engine) -> verdict.Verdict:
    """Judge the family over random permutations of the blocks together."""
    asked = options.permutations
    verdict.refuse_too_many(len(blocked), asked)

    def relabelled(member: Blocked) -> Array:
        return member.relabelled(options.estimator, max(asked, OTHER_RELABELLINGS), options.seed)

    values = np.stack(list(engine.here.map(relabelled, blocked)))
    verdict.refuse_overflow(family.kernels, values)
    tolerances = np.array([member.tolerance(options.estimator) for member in blocked])
    judged = judge(values[:, :asked], tolerances, options.judge, family.exponents)
    # A few relabellings can all give one value: only others tell what the kernel sees.
    if judged.degenerate.all() and judge(values, tolerances).degenerate.all():
        raise verdict.degenerate(family.kernels[0])
    # Relabellings of other blocks would tell kernels that see about as much in another order.
    strengths = np.array([member.strength() for member in blocked])
    seen = np.flatnonzero(~judged.degenerate) if not judged.degenerate.all() else np.arange(len(blocked))
    judged = judged._replace(selected=first_of(strengths / (np.abs(strengths).max() or 1.0), seen))
    null = verdict.permutation_null(judged, asked, asked, resampling="permuted blocks of random rows")
    warnings, chosen = verdict.relabelling_warning(judged.p_value, asked, options.alpha), judged.selected
    effect = blocked[chosen].effect()
    return verdict.Verdict(judged.p_value, family.members[chosen], effect, null, warnings=warnings, judged=judged)


def _by_curve(family: Family, blocked: Sequence[Blocked], options: Options, engine: Engine) -> verdict.Verdict:
    """Judge one kernel by a curve: the mean features of the blocks are rows, all of one weight, of a linear kernel."""
    (one,), linear = blocked, Family(((elementary.Linear(),),))
    verdict.refuse_overflow(family.kernels, one.sums.reshape(1, -1))
    means, labels = Points.of(one.means[one.free]), one.labels.astype(np.uint8)
    rows = Sample(means, np.empty(0), np.empty(0), (), (), labels=labels, origin=np.arange(len(means)))
    try:
        found = verdict.curve_verdict(TwoSamples(options, engine.here, None, rows), linear)
    except UndecidedError as error:
        if error.code != "undecided.degenerate_kernel":
            raise
        raise verdict.degenerate(family.kernels[0]) from None
    warnings, fixed = found.warnings, int(one.sizes[~one.free].sum())
    if fixed:
        beyond = f"{fixed:,} rows beyond them enter the estimates and not the p-value"
        warnings = (*warnings, f"the {options.null} null looks at whole blocks: {beyond}")
    return found._replace(kernels=family.members[0], found=one.effect(), warnings=warnings)
