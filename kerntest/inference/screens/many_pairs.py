"""Many tests of the columns of one table: what they share, pairs over the same rows, p-values adjusted for their number.

An adjusted p-value is at most alpha exactly where the procedure at level alpha rejects. A NaN is a test that could not
be made: it stays NaN, and it is not counted in the family.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from kerntest.data.columns import check_usable, match_names
from kerntest.data.diagnostics.dependent_rows import counters
from kerntest.engines.engine import one_blas_thread
from kerntest.engines.plan import count_wanted, taken_by_rows, tell
from kerntest.errors import UsageError, either, option
from kerntest.inference.exact import RunOfTest, paired_copies
from kerntest.inference.family import BandwidthOption, KernelChooser
from kerntest.inference.nulls.approximations import moments_p_value
from kerntest.inference.nulls.moments import CentredKernel, low_rank_invariants, permutation_moments
from kerntest.inference.nulls.permutation import scores_among_others, tie_tolerance
from kerntest.inference.relabelling.shifts import cyclic_orders, low_rank_sums, shift_sums
from kerntest.inference.screens.work_of_screens import HELD_NUMBERS, TOGETHER
from kerntest.inference.sides import Groups, pair_up, read_one
from kerntest.inference.statistic import CORRELATIONS_PER_ROW, low_rank_dependence
from kerntest.kernels.base import Points
from kerntest.matrices.different import few_different
from kerntest.matrices.factor import low_rank
from kerntest.matrices.passes import KernelStack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from kerntest.data.columns import Patterns
    from kerntest.engines.engine import Engine, Progress
    from kerntest.engines.plan import Work
    from kerntest.inference.family import Family
    from kerntest.inference.nulls.moments import Invariants
    from kerntest.inference.sides import Options, Reading, Variable
    from kerntest.inference.statistic import Effect
    from kerntest.kernels.base import Array, Kernel
    from kerntest.matrices.factor import Factor

Correction: TypeAlias = Literal["holm", "bh", "none"]

# With which probability relabellings leave open less than a p-value by moments, where they contradict it.
CONTRADICTED = 1e-4
# Numbers of rows are as far from their centre up to this share.
SAME_DISTANCE = 1e-9
# A matrix and its invariants take the time of so many pairs.
SIDE_IN_PAIRS = 6


class Screen(RunOfTest):
    """What all tests of columns of one table share: the table, their options, and where they are computed."""

    n: int
    warnings: tuple[str, ...]
    left_out: tuple[str, ...]

    def __init__(
        self,
        data: Any,
        options: Options,
        threads: int | None,
        reading: Reading,
        *,
        kernel: Kernel | str = "gaussian",
        bandwidth: BandwidthOption = "median",
    ) -> None:
        super().__init__(options, threads)
        self.reading, self.asked, self.bandwidth = reading, kernel, bandwidth
        if not isinstance(bandwidth, str) and np.size(bandwidth) > 1:
            way = either("a single test, with --x and --y,", "hsic_test")
            message = "many tests judge each column by one kernel: give one bandwidth"
            raise UsageError(message, hint=f"{way} judges several together", code="usage.bandwidth_family")
        self.table = read_one(data, reading)
        self.excluded = self.matching(reading.exclude)

    def matching(self, patterns: Patterns) -> list[str]:
        """Return the columns that are named."""
        return match_names(patterns, self.table.names, self.table.name)

    def names(self, patterns: Patterns) -> list[str]:
        """Return the columns that are named, but for those that are excluded."""
        return [name for name in self.matching(patterns) if name not in self.excluded]

    def refusal(self, message: str, hint: str, code: str, **where: str) -> UsageError:
        """Return the error for columns that cannot be tested together."""
        return UsageError(message, hint=hint, code=f"usage.{code}", where={"file": self.table.name, **where})

    def paired(self, groups: Sequence[Sequence[str]]) -> tuple[Variable, ...]:
        """Return groups of columns over the same rows."""
        table = self.table
        tables = tuple(check_usable(table.select(names)) for names in groups)
        warnings = table.select(list(dict.fromkeys(name for names in groups for name in names))).warnings
        paired = pair_up(
            Groups((table,), tables, warnings).with_gaps(self.reading.missing), self.reading.missing, self.options.scale
        )
        count = (text for one in tables for text in counters(one.columns))
        self.n, self.warnings = paired.n, (*warnings, *paired.warnings, *count, *paired_copies(paired, tables))
        self.left_out = tuple(name for one in paired.arranged for name in one.left_out)
        return paired.variables

    def kernel(self, variable: Variable, kernel: Kernel | str | None = None) -> Family:
        """Return the kernel of some columns, by default the one that was asked for."""
        chooser = KernelChooser(variable, self.options.seed)
        idle = isinstance(self.bandwidth, str)
        return chooser.family(kernel or self.asked, self.bandwidth, single=True, idle=idle)

    def plan(
        self,
        columns: int,
        step: str,
        held: float | tuple[float, float],
        work: Work,
        most: Work | None = None,
    ) -> None:
        """Tell what the rows of so many columns will take beside themselves, or refuse to."""
        if count_wanted(self.n):
            # What every pair needs, loaded before it is told what the program takes.
            import scipy.linalg  # noqa: F401, PLC0415 - small tests of other kinds load none
        least, largest = held if isinstance(held, tuple) else (held, held)
        rows = taken_by_rows(self.n, columns)
        tell(
            "hsic",
            self.n,
            columns,
            steps=(step,),
            memory=(rows + least, rows + largest),
            work=work,
            most=most,
            engine=self.engine,
            refusal=(
                f"this test of {self.n:,} rows takes",
                f"test fewer columns, or {option('sample', 5000)} of the rows",
            ),
        )

    def told(self, *more: str, used: int | None = None) -> dict[str, Any]:
        """Return the fields that all records have, with more warnings; so many rows are used by some test, if not all."""
        return {
            "command": "hsic",
            "alpha": self.options.alpha,
            "n": self.n,
            "columns_left_out": self.left_out,
            "warnings": tuple(dict.fromkeys((*self.warnings, *more))),
            "provenance": self.provenance(
                [self.table], [self.n if used is None else used], (self.asked,), str(self.bandwidth)
            ),
        }


# Pairs over the same rows


class _Matrix:
    """What all pairs of a kernel matrix share: its largest diagonal, its centring's invariants, and HKH where it has low rank."""

    def __init__(self, points: Points, kernel: Kernel, options: Options, engine: Engine) -> None:
        self.points, self.kernel = points, kernel
        self.largest = float(np.abs(kernel.diagonal(points)).max())
        # Which of two values each row has, where there are no more.
        few = few_different(points, 2.0) if kernel.positive_definite else None
        self.of_two = None if few is None else few[1]
        self.has_factor, self.rank = self.low_rank is not None, 0 if self.low_rank is None else self.low_rank.rank
        # Of low rank without a sweep over all of the matrix.
        found = self.low_rank and low_rank_invariants(self.low_rank, hollow=options.hollow)
        self.invariants: Invariants = (
            found
            or CentredKernel(kernel, _bare(points), engine, hollow=options.hollow, seed=options.seed).invariants()[0]
        )

    @cached_property
    def low_rank(self) -> Factor | None:
        """HKH as a product of few columns, made again where it was forgotten; None where it has no such form."""
        return low_rank(self.kernel, _bare(self.points))

    @property
    def factor(self) -> Factor:
        """The same where it has."""
        return cast("Factor", self.low_rank)


def _bare(points: Points) -> Points:
    """Return the same rows, to hold by themselves what is computed of them, and no longer than they are used."""
    return Points(points.numeric, points.codes)


class _Matrices:
    """The matrices of some sides, made when they are wanted: of many factors those of others are forgotten then, and made again."""

    def __init__(self, sides: Sequence[tuple[Points, Kernel]], options: Options, engine: Engine) -> None:
        self.sides, self.options, self.engine, self.made = sides, options, engine, dict[int, _Matrix]()

    def of(self, pairs: Sequence[tuple[int, int]], told: Callable[[int], None]) -> list[tuple[_Matrix, _Matrix]]:
        """Return those of some pairs, and tell how many were made in all."""
        places, held = {*chain(*pairs)}, [one for one in self.made.values() if "low_rank" in vars(one)]
        if sum(len(one.points) * one.rank for one in held) > HELD_NUMBERS:
            for place in self.made.keys() - places:
                vars(self.made[place]).pop("low_rank", None)
        for place in sorted(places - self.made.keys()):
            self.made[place] = _Matrix(*self.sides[place], self.options, self.engine)
            told(len(self.made))
        return [(self.made[a], self.made[b]) for a, b in pairs]


# The products are small: threads of BLAS would wait for one another more than they compute.
@one_blas_thread()
def screen(
    sides: Sequence[tuple[Points, Kernel]],
    pairs: Sequence[tuple[int, int]],
    options: Options,
    engine: Engine,
    *,
    keep: bool = False,
    progress: Progress | None = None,
) -> list[tuple[dict[str, Any], Array | None]]:
    """Return the test of every pair of sides over the same n >= 4 rows, all with the same relabellings.

    Of each what it measures and its p-values, by the names of the record, and -log p under each relabelling where `keep`
    says so. There is no p-value by moments where no relabelling changes the statistic. Progress counts the pairs, and the
    sides as so many pairs as they take the time of.

    Cost: O(P n^2 + n^2 log n P^2 / 32 + pairs n^2 / 4) time for P sides; matrices are never held, and of factors
    those of a square of pairs.
    """
    if not pairs:
        return []
    n = len(sides[0][0])
    circle, orders = cyclic_orders(n, options.permutations, options.seed)
    squares = in_squares(pairs, len(orders) * circle)
    told = progress or (lambda _done, _all: None)
    steps, matrices = SIDE_IN_PAIRS * len(sides) + len(pairs), _Matrices(sides, options, engine)
    found: dict[int, tuple[dict[str, Any], Array | None]] = {}
    # One array: many, each made after its factors, would leave no room for the next ones where these were.
    kept = np.empty((len(pairs), len(orders) * circle)) if keep else None

    def made(count: int) -> None:
        told(SIDE_IN_PAIRS * count + len(found), steps)

    for members in squares:
        both = matrices.of([pairs[index] for index in members], made)
        measured = _measured(both, orders, circle, options, engine)
        for index, (x, y), (effect, sums) in zip(members, both, measured, strict=True):
            tolerance = tie_tolerance(x.largest, n, y.largest * n)
            moments = permutation_moments(x.invariants, y.invariants, n)
            p_permutation = float(np.mean(sums >= sums[0] - tolerance))
            p_value = None
            if moments.standard_deviation > tolerance:
                p_value = two_values_p_value(x.of_two, y.of_two, hollow=options.hollow)
                p_value = p_value or _checked(moments_p_value(float(sums[0]), moments), p_permutation, len(sums))
            record = {
                "hsic_unbiased": effect.unbiased,
                "hsic_biased": effect.biased,
                "effect_size": effect.effect_size,
                "p_value": p_value,
                "p_permutation": p_permutation,
                "permutations": len(sums),
            }
            if kept is not None:
                kept[index] = scores_among_others(sums[None], np.array([tolerance]))[0]
            found[index] = record, None if kept is None else kept[index]
        made(len(matrices.made))
    return [found[index] for index in range(len(pairs))]


def _measured(
    both: Sequence[tuple[_Matrix, _Matrix]],
    orders: Sequence[NDArray[np.intp]],
    circle: int,
    options: Options,
    engine: Engine,
) -> Iterator[tuple[Effect, Array]]:
    """Yield what every pair measures, and <A, B> under every relabelling, the observed first."""
    n = len(both[0][0].points)
    left, right = (list(dict.fromkeys(side)) for side in zip(*both, strict=True))
    needed, factored = sum(x.rank * y.rank for x, y in both), all(one.has_factor for one in (*left, *right))
    # Correlations of factors, where all pairs have them and they cost less than the lags that matrices share.
    if factored and needed <= CORRELATIONS_PER_ROW * n * len({*left, *right}) / 2:
        for one, other in both:
            sums = low_rank_sums(one.factor, other.factor, orders, circle, hollow=options.hollow, engine=engine)
            yield low_rank_dependence(one.factor, other.factor), sums.ravel()
        return
    first, second = (
        KernelStack(
            [(one.points, (one.kernel,)) for one in side], some, circle, hollow=options.hollow, centred_by_rows=True
        )
        for side, some in ((left, orders[:1]), (right, orders))
    )
    shifted = shift_sums(first, second, engine=engine)
    effects, values = shifted.effects(), shifted.centred()
    for x, y in both:
        f, g = left.index(x), right.index(y)
        yield effects[f][g], values[f, g].ravel()


def two_values_p_value(
    first: NDArray[np.intp] | None, second: NDArray[np.intp] | None, *, hollow: bool
) -> float | None:
    """Return the exact p-value of HSIC between two columns of two values each, over all permutations; None of others.

    The statistic depends on the number a of rows with a one in both alone, which is hypergeometric. For indicators with sums
    r and s it grows with |a - r s / n|, U-centred with |a - 1/2 - (r - 1) (s - 1) / (n - 2)|, whatever the kernels are.
    """
    if first is None or second is None:
        return None
    from scipy.special import gammaln  # noqa: PLC0415 - takes 0.2 s to load

    n, r, s = len(first), int(first.sum()), int(second.sum())
    both = np.arange(max(0, r + s - n), min(r, s) + 1)
    counts = np.array([both, r - both, s - both, n - r - s + both])
    log_shares = -gammaln(counts + 1.0).sum(axis=0)
    shares = np.exp(log_shares - log_shares.max())
    centre = 0.5 + (r - 1) * (s - 1) / (n - 2) if hollow else r * s / n
    reached = abs(int(first @ second) - centre) * (1.0 - SAME_DISTANCE)
    return float(shares[np.abs(both - centre) >= reached].sum() / shares.sum())


def _checked(p_value: float, among: float, relabellings: int) -> float:
    """Return a p-value by moments, or by relabellings where it is below all that their number leaves open.

    Of columns that are nearly constant a few outcomes are most of the null, which is no curve then.
    """
    count = round(among * relabellings)
    if count < 2 or p_value >= among:
        return p_value
    from scipy.special import betaincinv  # noqa: PLC0415 - few need it

    # The lower bound of Clopper and Pearson (1934).
    return among if p_value < float(betaincinv(count, relabellings - count + 1, CONTRADICTED)) else p_value


def in_squares(pairs: Sequence[tuple[int, int]], relabellings: int) -> list[list[int]]:
    """Return the places of pairs of two parts of the columns, which are tested together."""
    together, squares = (
        max(1, min(TOGETHER, int(np.sqrt(HELD_NUMBERS / relabellings)))),
        dict[tuple[int, int], list[int]](),
    )
    for index, (a, b) in enumerate(pairs):
        squares.setdefault((a // together, b // together), []).append(index)
    return list(squares.values())


# p-values adjusted for the number of tests


def adjusted(p: ArrayLike, correction: Correction) -> Array:
    """Return p-values in [0, 1] or NaN, adjusted by the named procedure, each at its own place."""
    result = np.array(p, dtype=np.float64)
    (tested,) = np.nonzero(~np.isnan(result))
    order = tested[np.argsort(result[tested], kind="stable")]
    result[order] = np.minimum(PROCEDURES[correction](result[order]), 1.0)
    return result


def holm(ascending: Array) -> Array:
    """Return max_{j <= i} (m - j + 1) p_(j): bounds the chance of any false rejection, whatever the dependence (Holm 1979)."""
    return np.maximum.accumulate(np.arange(len(ascending), 0, -1) * ascending)


def benjamini_hochberg(ascending: Array) -> Array:
    """Return min_{j >= i} (m / j) p_(j): bounds the expected share of false rejections among all.

    Where the tests are independent or positively dependent (Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001).
    """
    # The ratio first: it is 1 for the last, so that rounding takes no adjusted value below its own p.
    inflated = len(ascending) / np.arange(1, len(ascending) + 1) * ascending
    return np.minimum.accumulate(inflated[::-1])[::-1]


PROCEDURES: dict[Correction, Callable[[Array], Array]] = {"holm": holm, "bh": benjamini_hochberg, "none": np.copy}


def step_down(scores: Array | Sequence[Array]) -> Array:
    """Return p-values adjusted by the step-down maximum (Westfall and Young 1993, algorithm 4.1), shape (F,).

    `scores` (R,) of each of F are on one scale over shared relabellings, larger meaning further from the null; the first is observed.
    """
    order = np.argsort([-float(one[0]) for one in scores], kind="stable")
    # Maxima over each score and all that are observed below it.
    result, largest = np.empty(len(scores)), np.full_like(scores[0], -np.inf)
    for place in order[::-1]:
        np.maximum(largest, scores[place], out=largest)
        result[place] = np.mean(largest >= scores[place][0])
    result[order] = np.maximum.accumulate(result[order])
    return result
