"""How large MMD is under a kernel chosen beforehand: bounds, an interval, and whether it is within a margin.

With Delta = mu_P - mu_Q and eps the error of its estimate, of covariance C, the unbiased estimate of MMD^2 is |Delta + eps|^2
less the mean of |eps|^2. For a Gaussian eps that has the cumulants (Imhof 1961, for quadratic forms)

    k1 = MMD^2,    k2 = 4 <Delta, C Delta> + 2 tr C^2,    k3 = 24 <Delta, C^2 Delta> + 8 tr C^3

whatever MMD is, 0 too, where the first terms vanish and the normal law of large samples does not hold. Its law is the
Pearson III curve of these, and a bound of MMD is the number at which the observed estimate is a quantile: the tests of
equivalence of Liu and Gandy (2026), with the critical value of the law at the margin itself.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from kerntest.errors import UsageError, option, shown_argument
from kerntest.kernels.algebra import Normalised
from kerntest.kernels.base import DensePairs
from kerntest.kernels.elementary import Dot
from kerntest.report.results.two_sample_record import ENOUGH_ERRORS, MOST_TIMES_ROWS, Interval, Margin, MinimumEffect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.inference.sides import Sample
    from kerntest.inference.sizes.location import ShiftsOfColumns
    from kerntest.inference.statistic import Effect
    from kerntest.kernels.base import Array, Kernel, Points

Answered: TypeAlias = "dict[str, MinimumEffect | Margin]"

# What hangs on pairs and triples of rows comes from so many rows of both tables, or all: of more it matters little.
SAMPLED = 1000
# Tells its draws from other streams of the same seed.
STREAM = 7
# Products with the square of a matrix that find its largest eigenvalue, to a few percent.
POWERS = 6
# Up to such a skewness the law is normal; far below it the difference is rounding.
SYMMETRIC = 1e-6
# Halvings of an interval that holds a bound.
HALVINGS = 60
# What features may leave out of the kernel (Frobenius norm of the centred matrix) where they bound MMD from above, and nothing
# need be said of it.
MOST_LEFT_OUT = 0.1
# Below this quantile where distributions are equal, an estimate is unusual: one standard deviation of a normal law.
USUAL = 0.16


class Asked(NamedTuple):
    """What is asked of the size of a difference: the margin within which samples are the same, or the smallest effect that matters.

    Each an MMD, or a text such as "0.2sd": that of a shift of one column by so many standard deviations.
    """

    margin: float | str | None = None
    min_effect: float | str | None = None

    def check(self) -> None:
        """Refuse what is no number, or both."""
        for name, value in self._asdict().items():
            if value is not None:
                _amount(name, value)
        if self.margin is not None and self.min_effect is not None:
            raise UsageError(
                f"{option('margin')} and {option('min-effect')} exclude each other",
                hint=f"{option('min-effect')} asks whether the difference is surely as large, {option('margin')} also whether it "
                "is surely smaller",
                code="usage.margin",
            )

    def names(self) -> Iterator[str]:
        """Yield the options that were given."""
        yield from (option(name.replace("_", "-")) for name, value in self._asdict().items() if value is not None)

    @property
    def _given(self) -> tuple[str, float | str] | None:
        """The name of what was asked, and its value."""
        return next(((name, value) for name, value in self._asdict().items() if value is not None), None)

    def check_limit(self, kernel: Kernel, points: Points) -> None:
        """Refuse an MMD that no two samples can have under such a kernel: all would be the same within it."""
        amount, is_shift = (0.0, False) if self._given is None else _amount(*self._given)
        if self._given is None or is_shift or amount < (most := largest_mmd(kernel, points)):
            return
        name, never = option(self._given[0].replace("_", "-")), "exceed" if self.margin is not None else "reach"
        raise UsageError(
            f"{name} of {amount:g} is an MMD that no two samples can {never}: under this kernel it is at most {most:.4g}",
            hint=f"'{amount:g}sd' is the MMD of a shift of one column by {amount:g} standard deviations",
            code=f"usage.{self._given[0]}",
            where={"value": str(self._given[1])},
        )

    def answered(
        self, law: Law, measure: Kernel, shifts: ShiftsOfColumns, alpha: float, sizes: Sequence[int]
    ) -> Answered:
        """Return the records of what was asked, and in which column a shift of which size has such an MMD."""
        if self._given is None:
            return {}
        amount, is_shift = _amount(*self._given)
        least, shift, column = shifts.asked(amount) if is_shift else (amount, *shifts.of_mmd(amount))
        mmd, lower = math.sqrt(max(law.estimate, 0.0)), law.bound(1.0 - alpha) if law.rejects(alpha) else 0.0
        told: Any = {"asked": str(self._given[1]), "kernel": str(measure), "mmd": mmd, "lower_bound": lower}
        units = None if column is None or shift is None else shifts.in_units(column, shift)
        told |= {"column": column, "standard_deviations": shift, "shift": units}
        if self.margin is None:
            error = math.sqrt(law.variance(mmd)) / 2.0 / mmd if mmd > 0 else None
            found = MinimumEffect(minimum=least, standard_error=error, reached=lower >= least, **told)
            return {"minimum_effect": found}
        upper = law.bound(alpha)
        # Where rows do not vary at all, a shift by their deviation is none.
        verdict = "same" if upper < least or upper == 0.0 else "differ" if lower > least else "undecided"
        told |= {"margin": least, "upper_bound": upper, "verdict": verdict}
        if verdict == "undecided":
            told["rows_to_decide"] = law.rows_to_decide(least, alpha, sizes)
        if verdict == "undecided" and lower == 0.0:
            equal = Law(law.found._replace(unbiased=0.0), law.errors, left_out=law.left_out)
            told["rows_if_equal"] = equal.rows_to_decide(least, alpha, sizes)
        return {"margin": Margin(**told)}


def largest_mmd(kernel: Kernel, points: Points) -> float:
    """Return the largest MMD that two samples can have: sqrt(2 k(x, x)), or twice sqrt(k(x, x)) where k may be negative."""
    if not _bounded(kernel):
        return math.inf
    return math.sqrt((4.0 if _has_products(kernel) else 2.0) * float(kernel.diagonal(points).max(initial=0.0)))


def _bounded(kernel: Kernel) -> bool:
    return isinstance(kernel, Normalised) or not (isinstance(kernel, Dot) or not all(map(_bounded, kernel.parts)))


def _has_products(kernel: Kernel) -> bool:
    return isinstance(kernel, Dot) or any(map(_has_products, kernel.parts))


def _rounded_up(number: float) -> int:
    """Return a whole number of two digits, and zeros."""
    unit = int(10 ** max(math.floor(math.log10(number)) - 1, 0))
    return math.ceil(number / unit) * unit


def _amount(name: str, value: float | str) -> tuple[float, bool]:
    """Return a margin as a number, and whether it is one of standard deviations."""
    text = str(value).strip().casefold()
    try:
        number = float(text.removesuffix("sd"))
    except ValueError:
        number = math.nan
    if isinstance(value, bool) or not 0 < number < math.inf:
        raise UsageError(
            f"{name} must be positive and finite, or standard deviations such as '0.2sd', not {shown_argument(value)}",
            hint="an MMD lies between 0 and 1.4; '0.2sd' is that of a shift of one column by 0.2 standard deviations",
            code=f"usage.{name}",
        )
    return number, text.endswith("sd")


class Errors(NamedTuple):
    """What the errors of both mean embeddings are like.

    `square` and `cube` are tr C^2 and tr C^3, `largest` the largest eigenvalue of C, `twice` <D, C^2 D> for the estimate D of
    Delta. `unseen` is what rows of kinds that a small sample does not hold may add to <D, C D>, and at most to it over |D|^2. `freedom` is how many degrees the variance has (Welch 1947), `relative` the standard deviation of the logarithm
    of the squared effect size in that of the logarithm of MMD^2.
    """

    square: float
    cube: float
    largest: float
    twice: float
    freedom: float
    relative: float = 1.0
    unseen: tuple[float, float] = (0.0, 0.0)


NO_ERRORS = Errors(0.0, 0.0, 0.0, 0.0, math.inf)


class Law:
    """The law of the unbiased estimate of MMD^2, as far as the observed one, `found`, and its errors tell it.

    <Delta, C Delta> / MMD^2 is taken from the estimates of both, at most the largest eigenvalue of C: that it adds the
    errors of Delta errs on the safe side, where MMD is small. Of a few rows no law of a variance holds: a difference is bounded
    from below where a test of this p-value finds one, and no MMD is above `most`, the largest that two samples have. Features
    see less of MMD than there is: where they have `left_out` much of the kernel, they bound it from below alone.
    """

    def __init__(
        self, found: Effect, errors: Errors, p_value: float = 0.0, most: float = math.inf, left_out: float = 0.0
    ) -> None:
        self.estimate, self.errors = found.unbiased, errors
        self.found, self.p_value, self.most, self.left_out = found, p_value, most, left_out
        above = max(found.unbiased, np.finfo(np.float64).tiny)
        unseen, of_unseen = errors.unseen
        # Of rows that are all equal rounding leaves less than nothing.
        self.once = min(max(found.variance, 0.0) / 4.0 / above, errors.largest) + min(unseen / above, of_unseen)
        self.twice = min(errors.twice / above, errors.largest * self.once)

    @property
    def sees_enough(self) -> bool:
        """Whether features see so much of the kernel that they bound MMD from above."""
        return self.left_out <= MOST_LEFT_OUT

    def rejects(self, alpha: float) -> bool:
        """Say whether the test finds a difference; one of several is asked at alpha over their number."""
        return self.p_value <= alpha * (1.0 + 1e-9)

    def variance(self, mmd: float) -> float:
        """Return k2."""
        return 4.0 * self.once * mmd**2 + 2.0 * self.errors.square

    def quantile(self, mmd: float, level: float) -> float:
        """Return the quantile of the estimate, by Wilson and Hilferty (1931) and with Student's for the normal one."""
        from statistics import NormalDist  # noqa: PLC0415 - 3 ms that only this needs

        variance, z = self.variance(mmd), NormalDist().inv_cdf(level)
        z *= 1.0 + (z**2 + 1.0) / (4.0 * self.errors.freedom)
        skewness = (24.0 * self.twice * mmd**2 + 8.0 * self.errors.cube) / variance**1.5 if variance > 0 else 0.0
        if skewness > SYMMETRIC:
            z = 2.0 / skewness * (max(1.0 + skewness * z / 6.0 - skewness**2 / 36.0, 0.0) ** 3 - 1.0)
        return mmd**2 + math.sqrt(variance) * z

    def bound(self, level: float) -> float:
        """Return the MMD of which the estimate is the quantile, or 0: an upper bound of MMD for a small level.

        Of an estimate far below what equal distributions give, which says no more than that they are equal, the upper bound is
        that of the least of one standard deviation (Cowan et al. 2011, "Power-constrained limits").
        """
        estimate = max(self.estimate, self.quantile(0.0, USUAL)) if level < USUAL else self.estimate
        below, above = 0.0, math.sqrt(max(self.estimate, 0.0)) + math.sqrt(self.variance(0.0)) + self.errors.largest
        while self.quantile(above, level) < estimate:
            below, above = above, 2.0 * above
        for _ in range(HALVINGS):
            middle = (below + above) / 2.0
            below, above = (middle, above) if self.quantile(middle, level) < estimate else (below, middle)
        if level < 0.5 and self.left_out > 0.0:
            below = below / math.sqrt(1.0 - self.left_out) if self.sees_enough else math.inf
        return min(below, self.most)

    def of_more_rows(self, times: float) -> Law:
        """Return the law of so many times as many rows of both samples, where the estimate is what it is, or 0 if below."""
        errors, unseen = self.errors, (self.errors.unseen[0] / times**2, self.errors.unseen[1] / times**2)
        square, cube, largest = errors.square / times**2, errors.cube / times**3, errors.largest / times
        told = Errors(square, cube, largest, errors.twice / times**2, errors.freedom * times, errors.relative, unseen)
        found = self.found
        found = found._replace(unbiased=max(found.unbiased, 0.0), variance=found.variance / times)
        # Of a difference that there is the p-value is a power of the number of rows.
        return Law(found, told, self.p_value**times, self.most, self.left_out)

    def rows_to_decide(self, margin: float, alpha: float, sizes: Sequence[int]) -> tuple[int, int] | None:
        """Return how many rows of both samples decide about a margin where the estimate stays as it is; None for too many."""
        estimate = max(self.estimate, 0.0)

        def decides(times: float) -> bool:
            law = self.of_more_rows(times)
            if estimate < margin**2:
                return self.sees_enough and law.quantile(margin, alpha) > estimate
            return law.rejects(alpha) and law.quantile(margin, 1.0 - alpha) < estimate

        low, high = 1.0, float(MOST_TIMES_ROWS)
        if not decides(high):
            return None
        for _ in range(HALVINGS // 2):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if decides(middle) else (middle, high)
        return _rounded_up(high * sizes[0]), _rounded_up(high * sizes[1])

    def interval(self, found: Effect, kernel: Kernel, alpha: float) -> Interval:
        """Return the interval of MMD and of the effect size at level 1 - alpha, where MMD^2 is far enough from 0."""
        mmd = math.sqrt(max(self.estimate, 0.0))
        deviation = math.sqrt(self.variance(mmd))
        ratio = self.estimate / deviation if deviation > 0 else None
        told = Interval(str(kernel), 1.0 - alpha, mmd, found.effect_size, ratio)
        if ratio is None or ratio <= ENOUGH_ERRORS or not self.rejects(alpha):
            return told
        low, high = self.bound(1.0 - alpha / 2.0), self.bound(alpha / 2.0)
        sizes = (found.effect_size * (one / mmd) ** self.errors.relative for one in (low, high))
        least, most = (min(size, 1.0) for size in sizes)
        return replace(told, lower=low, upper=high, effect_size_lower=least, effect_size_upper=most)


def errors_of(kernel: Kernel, sample: Sample, found: Effect, seed: int) -> Errors:
    """Return what the errors of mean embeddings are like, from what a kernel found in two samples.

    With w_i the weight of row i in the difference of means, units u (rows, clusters, pairs), k~ the kernel less its means over
    the rows of each cell (a sample, or a stratum of one), and f the witness function,

        G_uv = sum_{i in u, j in v} w_i w_j k~(i, j),    d_u = sum_{i in u} w_i (f_i - its mean in the cell)

    tr C^2 = sum_{u != v} G_uv^2, <D, C^2 D> = sum_{u != v} d_u G_uv d_v, and so on. Cost: O(s^2 p + s^3) time and O(s^2)
    memory for s <= 1,000 units.
    """
    n = len(sample.labels)
    cells, units, groups, chosen = drawn_units(sample, seed)
    given = None if sample.design is None else sample.design.weights(sample.labels)
    of_rows = np.ones(n) if given is None else given
    counts = np.bincount(cells, weights=of_rows)
    shares = counts[::2] * counts[1::2] / (counts[::2] + counts[1::2])
    signed = np.stack([-shares, shares], axis=1).ravel() / shares.sum() / counts
    in_group, drawn = np.bincount(groups).astype(np.float64), np.maximum(np.bincount(groups[chosen]), 1.0)
    kept = np.isin(units, chosen)
    cell, unit = cells[kept], np.searchsorted(chosen, units[kept])
    group = groups[chosen]
    member, by_unit = np.eye(len(counts))[cell] * of_rows[kept, None], np.argsort(unit, kind="stable")
    starts = np.searchsorted(unit[by_unit], np.arange(len(chosen)))
    freedom = drawn / np.maximum(drawn - 1.0, 1.0) * in_group / drawn
    weights = of_rows[kept] * signed[cell] * np.sqrt(freedom)[group][unit]

    def centred(values: Array) -> Array:
        return np.asarray(values - (member / member.sum(axis=0)).T.dot(values)[cell])

    def summed(values: Array) -> Array:
        """Return the sums over the rows of each unit."""
        return np.asarray(np.add.reduceat(values[by_unit], starts, axis=0))

    points = sample.points.take(np.flatnonzero(kept))
    K = kernel.evaluate(DensePairs(points, points))
    slopes = summed(weights * centred(found.witness[kept]))
    apart = centred(centred(K).T)
    # A row that was not seen may be as far from its own sample as the other one is, where all that were seen are equal.
    farthest = max(float(np.diagonal(apart).max()), found.biased)
    G = summed(summed(apart * weights[:, None] * weights).T)
    np.fill_diagonal(G, 0.0)
    squared = G @ G
    vector = squared[:, int(np.argmax(np.diagonal(squared)))]
    for _ in range(POWERS):
        vector = squared @ (vector / (np.abs(vector).max() or 1.0))
    norm = float(vector @ vector)
    spread = np.bincount(group, weights=np.square(slopes), minlength=len(in_group))
    seen, most = spread, 0.0
    if len(in_group) == 2:
        # Two more units in each sample, at both ends of the witness function (after Agresti and Coull 1998, who add
        # observations to shares): a small one may hold no row of a kind that it would have.
        ends = np.array([found.witness.min(), found.witness.max()])
        means = np.bincount(cells, weights=of_rows * found.witness) / counts
        each = np.square(signed * counts / in_group) * in_group / (in_group + 2.0)
        seen = spread * in_group / (in_group + 2.0) + each * np.square(ends - means[:, None]).sum(axis=1)
        most = 2.0 * float(each.sum()) * farthest
    degrees = float((np.square(seen) / np.maximum(in_group - 1.0, 1.0)).sum())
    # How the norm of the kernel matrix, centred over all rows, varies: rows that stand for others weigh as much as these.
    share = counts[cell] / member.sum(axis=0)[cell] / n
    means = K @ share
    squares = np.square(K - means[:, None] - means + share @ means) @ share
    own = summed(centred(squares)) * np.sqrt(in_group / drawn)[group] * 2.0 / n / (share @ squares or 1.0)
    # Of rows that are all equal rounding leaves less than nothing.
    square, linear = max(float(np.trace(squared)), 0.0), float(np.square(slopes).sum())
    ratio = float(np.square(2.0 * slopes - found.unbiased * own / 2.0).sum())
    return Errors(
        square,
        cube=max(float((squared * G).sum()), 0.0),
        largest=math.sqrt(max(float(vector @ squared @ vector), 0.0) / norm) if norm > 0 else 0.0,
        twice=max(float(slopes @ G @ slopes), 0.0),
        freedom=seen.sum() ** 2 / degrees if degrees > 0 else math.inf,
        relative=math.sqrt((2.0 * square + ratio) / (2.0 * square + 4.0 * linear)) if square + linear > 0 else 1.0,
        unseen=(max(float((seen - spread).sum()), 0.0), most),
    )


def drawn_units(
    sample: Sample, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the cell and the unit of each row, the group of each unit, and the units that are drawn of each group."""
    design, n = sample.design, len(sample.labels)
    units, strata = (np.arange(n), np.zeros(n, dtype=np.intp)) if design is None else (design.units, design.strata)
    cells = 2 * strata + sample.labels.astype(np.intp)
    # Units are drawn of each cell, of pairs of all, and stand for all of it.
    _, first, units = np.unique(units, return_index=True, return_inverse=True)
    groups = strata[first] if design is not None and design.swaps else cells[first]
    return cells, units, groups, _drawn(groups, n, seed)


def _drawn(groups: NDArray[np.intp], rows: int, seed: int) -> NDArray[np.intp]:
    """Return units of about `SAMPLED` of the rows in ascending order, as many of each group as it has, and two of each at least."""
    counts = np.bincount(groups)
    enough = min(max(SAMPLED * len(groups) // rows, 1), len(groups))
    most = bisect_left(range(int(counts.max()) + 1), enough, key=lambda m: int(np.minimum(counts, m).sum()))
    order = np.random.default_rng((seed, STREAM)).permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[place < max(most, 2)])
