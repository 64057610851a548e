"""Two samples by features: their sums over blocks of random rows, and MMD under permutations of the blocks.

Permuting whole blocks of rows that lie in random order is a group of relabellings, so that the test is exact under
exchangeability (Domingo-Enrich, Dwivedi and Mackey 2025, "Cheap permutation testing").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.facts import mixed
from kerntest.errors import DataError, UndecidedError, UsageError
from kerntest.inference.family import Family
from kerntest.inference.nulls.permutation import judge, tie_tolerance
from kerntest.inference.relabelling.permuted_blocks import TwoSamples
from kerntest.inference.sides import ORDER_STREAM, Sample
from kerntest.inference.statistic import Effect, LabelMatrix, centred_inner, effect_size
from kerntest.inference.verdict import (
    Verdict,
    curve_verdict,
    degenerate,
    permutation_null,
    refuse_overflow,
    relabelling_warning,
)
from kerntest.kernels.base import DensePairs, Points
from kerntest.kernels.elementary import Gaussian, Laplacian, Laplacian2, Linear, Matern, RationalQuadratic, StudentT
from kerntest.matrices.factor import FEATURE_STREAM, FeatureMap, nystroem, parse_features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine
    from kerntest.inference.sides import Estimator, Options
    from kerntest.kernels.base import Array, Kernel

# Blocks of both files together, and those of the smaller one at least.
BLOCKS, FEWEST_BLOCKS = 1000, 50
# Free blocks of a file that has many more rows than the other; its other rows keep their file, in so many blocks.
MOST_BLOCKS, FIXED_BLOCKS = 2000, 50
FEWEST_ROWS = 200
# How much smaller than wanted blocks may be for the sake of fewer rows beyond the last whole one.
ROUNDER = 0.9
# Tells the random orders of rows from other streams of the same seed.
ASSIGNMENT_STREAM = 5
ROUNDS = 8
# Kernel values computed together: they and their distances stay in the second-level cache of a core.
TOGETHER = 2**15
# Relabellings that are summed by one product.
RELABELLED_TOGETHER = 1024
# Nystroem features of an eigenvalue of K(C, C) below this share of the largest cost time and show nothing, and their
# inverses would enlarge rounding. Each would add less than this share to k(x, x), on average over the landmarks.
SMALLEST_SHARE = 1e-7
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


@dataclass(frozen=True, slots=True)
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
    def count(self) -> int:
        """All blocks."""
        return self.free + self.fixed

    def of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the block of each place in a random order: free ones first."""
        blocks = places // self.size
        beyond = places - self.free * self.size
        late = np.flatnonzero(beyond >= 0)
        blocks[late] = self.free + beyond[late] * self.fixed // max(self.fixed_rows, 1)
        return blocks

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of rows of each block, shape (free + fixed,)."""
        # Fixed block j holds the places r with floor(r fixed / rows) = j.
        starts = -(-np.arange(self.fixed + 1) * self.fixed_rows // max(self.fixed, 1))
        return np.concatenate([np.full(self.free, self.size), np.diff(starts)])


def plan_blocks(n: Sequence[int], names: Sequence[str]) -> tuple[Blocks, Blocks]:
    """Return how the rows of two files lie in blocks of one size; DataError if a file has too few rows for blocks."""
    for count, name in zip(n, names, strict=True):
        if count < FEWEST_ROWS:
            raise DataError(
                f"{name} has {count:,} rows; with features a test needs at least {FEWEST_ROWS} in each table",
                hint="--method exact takes any number",
                code="data.too_few_rows",
                where={"file": name},
            )
    most = max(1, min(sum(n) // BLOCKS, min(n) // FEWEST_BLOCKS))
    sizes = np.arange(max(1, math.ceil(ROUNDER * most)), most + 1)[::-1]
    size = int(sizes[int(np.argmin(sum(np.where(count // sizes > MOST_BLOCKS, 0, count % sizes) for count in n)))])
    free = [min(count // size, MOST_BLOCKS) for count in n]
    x, y = (
        Blocks(count, some, size, min(count - some * size, FIXED_BLOCKS)) for count, some in zip(n, free, strict=True)
    )
    return x, y


def family_features(text: str, kernels: Sequence[Kernel], sample: Points, seed: int) -> tuple[FeatureMap, ...]:
    """Return features for the kernels of a family: on shared landmarks, the first different rows of a random sample.

    Random waves are cosines and sines, so that |z(x)|^2 = 1.
    """
    kind, count = parse_features(text)
    for kernel in kernels:
        refuse_indefinite(kernel)
    if kind == "fourier":
        half, p, nothing = max(1, count // 2), sample.numeric.shape[1], sample.take(slice(0, 0))
        waves = (np.tile(_frequencies(kernel, p, half, seed), 2) for kernel in kernels)
        phases = np.repeat([0.0, -np.pi / 2], half)
        return tuple(FeatureMap(kind, kernel, nothing, W, phases) for kernel, W in zip(kernels, waves, strict=True))
    landmarks = sample.take(distinct_rows(sample)[:count])
    return tuple(nystroem(kernel, landmarks, SMALLEST_SHARE) for kernel in kernels)


def distinct_rows(points: Points) -> NDArray[np.intp]:
    """Return the first of each set of equal rows, in their order: a second one as a landmark shows nothing more."""
    whole = np.column_stack([points.numeric, points.codes])
    return np.sort(np.unique(whole, axis=0, return_index=True)[1]) if len(whole) else np.arange(0)


def refuse_indefinite(kernel: Kernel) -> None:
    """Refuse a kernel that no features stand for."""
    if not kernel.positive_definite:
        raise UsageError(
            f"the kernel '{kernel}' is not positive definite: no features stand for it",
            hint="--method exact takes it, or choose another kernel",
            code="usage.features",
        )


def _frequencies(kernel: Kernel, p: int, count: int, seed: int) -> Array:
    """Return random frequencies whose cosines average to the kernel (Rahimi and Recht 2007), shape (p, count).

    The Laplacian is a product of characteristic functions of Cauchy variables; the others are mixtures of Gaussians
    of random scale: of chi-square for the Matern family, of Gamma for powers of 1 + |x - y|^2.
    """
    rng = np.random.default_rng((seed, FEATURE_STREAM))
    scale = float(getattr(kernel, "bandwidth", None) or 1.0)
    if isinstance(kernel, Laplacian):
        return rng.standard_cauchy(size=(p, count)) / scale
    normal = rng.normal(size=(p, count))
    if isinstance(kernel, Gaussian):
        return normal / scale
    if isinstance(kernel, Laplacian2 | Matern):
        nu = kernel.nu if isinstance(kernel, Matern) else 0.5
        return normal / (np.sqrt(rng.chisquare(2 * nu, count) / (2 * nu)) * scale)
    if isinstance(kernel, RationalQuadratic):
        return normal * np.sqrt(rng.gamma(kernel.alpha, 1 / kernel.alpha, count)) / scale
    if isinstance(kernel, StudentT):
        return normal * np.sqrt(rng.gamma((kernel.df + 1) / 2, 2 / kernel.df, count)) / scale
    raise UsageError(
        f"random Fourier features are for kernels of differences of numbers, not for '{kernel}'",
        hint="--features nystroem:300 is for every kernel",
        code="usage.features",
    )


@dataclass(frozen=True, slots=True, eq=False)
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
        return self.blocks[source].count, len(self.features), self.width

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
        for start, stop in pairwise([*range(0, len(block), step), len(block)]):
            own, some = block[start:stop], whole.take(slice(count + start, count + stop))
            starts = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))
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

    def __init__(self, features: FeatureMap, sums: Sequence[Array], blocks: Sequence[Blocks], sample: Points) -> None:
        self.features, self.sample = features, sample
        both = np.concatenate(sums)
        both = both @ features.projection if len(features.landmarks) else both
        self.sizes = np.concatenate([each.sizes() for each in blocks])
        self.mean = both.sum(axis=0) / self.sizes.sum()
        self.sums = both - self.sizes[:, None] * self.mean
        in_x = np.repeat([True, False], [each.count for each in blocks])
        # Which blocks are of X, which of Y, and which are moved: of these, 1 in X and 0 in Y.
        self.sides, self.n = (in_x, ~in_x), tuple(each.n for each in blocks)
        self.free = np.concatenate([np.arange(each.count) < each.free for each in blocks])
        self.labels = in_x[self.free].astype(np.float64)

    @cached_property
    def sampled(self) -> Array:
        """Features of some rows, drawn at random."""
        return self.features.of_block(self.sample)

    @property
    def means(self) -> Array:
        """Mean features of each block, shape (s, r)."""
        return np.asarray(self.sums / self.sizes[:, None])

    def observed(self, estimator: Estimator) -> float:
        """Return the estimate as the files are."""
        return float(self._estimates(estimator, self.labels[None])[0])

    def relabelled(self, estimator: Estimator, relabellings: int, seed: int) -> Array:
        """Return the estimate under random permutations of the free blocks, the identity first, the same for every kernel."""
        rng = np.random.default_rng((seed, ORDER_STREAM))
        values = np.empty(relabellings)
        for start in range(0, relabellings, RELABELLED_TOGETHER):
            count = min(RELABELLED_TOGETHER, relabellings - start)
            labels = rng.permuted(np.tile(self.labels, (count, 1)), axis=1)
            if start == 0:
                labels[0] = self.labels
            values[start : start + count] = self._estimates(estimator, labels)
        return values

    def _estimates(self, estimator: Estimator, labels: Array) -> Array:
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

    def effect(self) -> Effect:
        """Return what the kernel measures.

        <A, A> / (n (n - 3)) of the effect size estimates the same number whatever n is (Szekely and Rizzo 2014): it is that
        of m sampled rows. The standard error is that of `discrepancy`, from the spread of the witness function between the
        blocks of a file.
        """
        unbiased, (n_x, n_y) = self.observed("unbiased"), self.n
        m, n, label = len(self.sampled), n_x + n_y, LabelMatrix(n_x, n_y, "unbiased")
        Z = self.sampled - self.sampled.mean(axis=0)
        own = np.einsum("ir,ir->i", Z, Z)
        # Rows of the kernel matrix without its diagonal sum to -|z|^2.
        norm = centred_inner(np.square(Z.T @ Z).sum() - own @ own, own @ own, own.sum() ** 2, m, hollow=True)
        size = effect_size(unbiased / label.factor, norm / (m * (m - 3)) * n * (n - 3), label.squared_norm)
        error = math.nan
        if unbiased > 0:
            witness = self.means @ self.sums[self.sides[0]].sum(axis=0) * (1 / n_x + 1 / n_y)
            spread = sum(
                float(witness[self.free & side].var(ddof=1)) / n for side, n in zip(self.sides, self.n, strict=True)
            )
            error = math.sqrt(float(self.sizes[self.free][0]) * spread / unbiased)
        return Effect(unbiased, self.observed("biased"), size, error)


def permuted_verdict(family: Family, blocked: Sequence[Blocked], options: Options, engine: Engine) -> Verdict:
    """Judge the family over random permutations of the blocks together."""
    asked = options.permutations

    def relabelled(member: Blocked) -> Array:
        return member.relabelled(options.estimator, max(asked, OTHER_RELABELLINGS), options.seed)

    values = np.stack(list(engine.here.map(relabelled, blocked)))
    refuse_overflow(family.kernels, values)
    tolerances = np.array([member.tolerance(options.estimator) for member in blocked])
    judged = judge(values[:, :asked], tolerances, options.judge, family.halvings)
    # A few relabellings can all give one value: only others tell what the kernel sees.
    if judged.degenerate.all() and judge(values, tolerances).degenerate.all():
        raise degenerate(family.kernels[0])
    null = permutation_null(judged, asked, asked, resampling="permuted blocks of random rows")
    warnings = relabelling_warning(judged.p_value, asked, options.alpha)
    effect = blocked[judged.selected].effect()
    return Verdict(judged.p_value, family.members[judged.selected], effect, null, warnings=warnings, judged=judged)


def block_curve_verdict(family: Family, blocked: Sequence[Blocked], options: Options, engine: Engine) -> Verdict:
    """Judge one kernel by a curve: the mean features of the blocks are rows, all of one weight, of a linear kernel."""
    (one,) = blocked
    refuse_overflow(family.kernels, one.sums.reshape(1, -1))
    means, labels = Points.of(one.means[one.free]), one.labels.astype(np.uint8)
    rows = Sample(means, np.empty(0), np.empty(0), (), (), labels=labels, origin=np.arange(len(means)))
    try:
        found = curve_verdict(TwoSamples(options, engine.here, None, rows), Family(((Linear(),),)))
    except UndecidedError as error:
        if error.code != "undecided.degenerate_kernel":
            raise
        raise degenerate(family.kernels[0]) from None
    warnings, fixed = found.warnings, int(one.sizes[~one.free].sum())
    if fixed:
        beyond = f"{fixed:,} rows beyond them enter the estimates and not the p-value"
        warnings = (*warnings, f"the {options.null} null looks at whole blocks: {beyond}")
    return replace(found, kernels=family.members[0], found=one.effect(), warnings=warnings)
