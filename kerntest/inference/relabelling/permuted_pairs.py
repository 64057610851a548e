"""Two variables under every relabelling: the rows of y shifted along those of x, permuted at random, or moved in time."""

from __future__ import annotations

import math
from dataclasses import field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.errors import UndecidedError, UsageError, option
from kerntest.inference.family import Family, most_members
from kerntest.inference.relabelling.designs import are_all, different_orders, orders_of
from kerntest.inference.relabelling.shifts import (
    circle_length,
    correlated_pairs,
    correlations_needed,
    cyclic_orders,
    low_rank_sums,
    shift_sums,
)
from kerntest.inference.sides import ORDER_STREAM, Estimator, Options, Resampling
from kerntest.inference.statistic import (
    Effect,
    GroupEffects,
    between_groups,
    dependence,
    factor,
    group_factor,
    group_label,
    low_rank_dependence,
)
from kerntest.inference.verdict import (
    MORE,
    MORE_ROWS,
    ExactTest,
    Relabelled,
    TestedPair,
    degenerate,
    floor_of_shifts,
    memory_of_shifts,
)
from kerntest.kernels.base import Array, Kernel, Points
from kerntest.kernels.elementary import Gaussian, Linear
from kerntest.kernels.text import is_additive, plain
from kerntest.matrices.different import few_different
from kerntest.matrices.factor import FEW_ROWS, LEFT_OUT, TOLERANCE, Factor, centred_factor, low_rank_factor
from kerntest.matrices.passes import KernelStack
from kerntest.report.results.independence_record import Lags
from kerntest.report.results.record import ALL_PERMUTATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Engine, Progress
    from kerntest.inference.nulls.permutation import Judged

# Entries of a strip of a relabelled matrix (half a megabyte).
STRIP_ENTRIES = 2**16
# Random permutations that one piece of work judges.
TOGETHER = 16


class _Member(NamedTuple):
    """A kernel of one side on its rows, or what stands for its matrix, and the centred matrix of low rank if it is known."""

    points: Points
    kernel: Kernel
    low_rank: Factor | None = None


# The kernels of both sides, members as places in these, and random orders of the rows.
Sides: TypeAlias = "Sequence[Sequence[_Member]]"
Pairs: TypeAlias = "Sequence[tuple[int, int]]"
Orders: TypeAlias = "Sequence[NDArray[np.intp]]"


@dataclass(frozen=True, eq=False)
class TwoVariables(ExactTest):
    """x and y under random orders of their rows, and cyclic shifts of y in each; row i of both is the same case."""

    points: tuple[Points, Points]

    usual: ClassVar[Resampling] = "shifts"
    # Fewer rows have fewer than some thousand pairings.
    fewest_for_curves: ClassVar[int] = 8

    def sides(self, kernels: tuple[Kernel, ...]) -> list[tuple[Kernel, Points]]:
        """Return the kernel and the rows of x and of y."""
        return list(zip(kernels, self.points, strict=True))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.points[0])

    @property
    def factor(self) -> float:
        """What turns <A, B> into HSIC."""
        return factor(self.n, self.options.estimator)

    def effect(self, kernels: tuple[Kernel, ...]) -> Effect:
        """Return what a pair of kernels measures."""
        return dependence(kernels[0], self.points[0], kernels[1], self.points[1], self.engine)

    def degenerate(self, kernels: tuple[Kernel, ...]) -> UndecidedError:
        """Return the error for kernels under which no pairing changes the statistic, with what works if something does."""
        error = super().degenerate(kernels)
        if self.options.hollow and self.exchangeable:
            biased = replace(self, options=replace(self.options, estimator="biased"), progress=None)
            if TestedPair(biased, kernels).varies():
                error.hint = (
                    f"{option('estimator', 'biased')} can test them: where a single row differs from all others, the unbiased estimate "
                    "is 0 for every pairing"
                )
        return error

    @property
    def circle(self) -> int:
        """How many of the rows are shifted."""
        return circle_length(self.n)

    @property
    def stride(self) -> int:
        """Which shifts are relabellings: those by a multiple of so many rows."""
        return 1

    @property
    def dense(self) -> int:
        """Of how many rows random permutations hold whole matrices; 0 where they hold none."""
        return self.n

    @property
    def cosets(self) -> int:
        """In how many random orders relabellings are all shifts, where no more are asked for."""
        return 1

    @property
    def places(self) -> int:
        """How many pairs of clusters there are, if all products of entries between them serve all relabellings."""
        return 0

    def orders(self, at_least: int) -> Orders:
        """Return random orders of the rows whose shifts are at least so many relabellings."""
        return cyclic_orders(self.n, at_least, self.options.seed)[1]

    @property
    def ways(self) -> int:
        """How many different relabellings there are, as far as anybody can ask for them."""
        return orders_of(self.n)

    @property
    def complete(self) -> bool:
        """Whether all different relabellings are used."""
        return are_all(self.ways, self.options.permutations)

    def different(self, relabellings: int) -> int:
        """Return how many different relabellings a test has: as many as are asked for or are shifts, or all there are."""
        if self.complete:
            return self.ways
        shifted = 1 if self.options.resampling == "random" else self.circle // self.stride
        return min(max(relabellings, shifted), self.ways)

    def relabelled(self, family: Family, at_least: int) -> Relabelled:
        """Return <A, B> of all pairs under at least so many relabellings.

        Cost: of shifts as in `shift_sums`, or as in `low_rank_sums` where that is less; of random permutations
        O(F G n^2) time each and 8 (F + G) n^2 bytes.
        """
        tolerances = np.array([self.rounding(kernels) for kernels in family.members])
        effects: list[Effect] = []
        randomly = self.options.resampling == "random"
        orders = [] if randomly else self.orders(at_least)
        with np.errstate(over="ignore", invalid="ignore"):
            if randomly:
                sums = self._permuted(family, at_least)
            else:
                sums, doubt, effects = self._shifted(family, orders)
                sums = sums[:, :: self.stride]
                tolerances += doubt
        used, every = sums.shape[1], self.complete
        return Relabelled(
            sums,
            tolerances,
            ALL_PERMUTATIONS if every else "random permutations" if randomly else "cyclic shifts",
            self.different(used),
            1.0 / used,
            MORE_ROWS if every else MORE,
            orders=None if randomly or every else len(orders),
            effects=effects,
        )

    def _shifted(self, family: Family, orders: Orders) -> tuple[Array, Array, list[Effect]]:
        """Return the sums of all pairs over all shifts, their doubt beyond rounding, and what they measure if it is known.

        Pairs whose correlations of factors spare the lines of a matrix and cost less take these, all of them or none.
        """
        sides = [self._members(family, side) for side in (0, 1)]
        pairs = pairs_of(family)
        # What factors of a family leave out counts in the tolerance for ties.
        share = LEFT_OUT if len(pairs) > 1 else TOLERANCE
        factors = [
            {place: one.low_rank for place, one in enumerate(side) if one.low_rank is not None} for side in sides
        ]
        ranks = [{place: float(one.rank) for place, one in known.items()} for known in factors]
        both = {(f, g): (factors[0][f], factors[1][g]) for f, g in pairs if f in ranks[0] and g in ranks[1]}
        needed = {pair: float(correlations_needed(*some, share).sum()) for pair, some in both.items()}
        correlated = {pair: both[pair] for pair in correlated_pairs(self.n, ranks, pairs, needed)}
        lined = [pair for pair in pairs if pair not in correlated]
        values = self._by_lines(sides, lined, orders) if lined else {}
        doubt = dict.fromkeys(pairs, 0.0)
        for pair, (x, y) in correlated.items():
            told: Any = {"engine": self.engine, "progress": None if lined else self.progress, "tolerance": share}
            sums = low_rank_sums(x, y, orders, self.circle, hollow=self.options.hollow, **told)
            # Through the engine, which holds BLAS to one thread.
            values[pair] = sums.ravel(), next(self.engine.here.map(lambda both: low_rank_dependence(*both), [(x, y)]))
            # The trace of what is left out of one matrix, times the trace of the other, bounds what it could add.
            trace_x, trace_y = float(x.lengths.sum()), float(y.lengths.sum())
            doubt[pair] = x.residual * trace_y + y.residual * trace_x + share * trace_x * trace_y
        found = [values[pair] for pair in pairs]
        return np.stack([sums for sums, _ in found]), np.array(list(doubt.values())), [effect for _, effect in found]

    def _by_lines(self, sides: Sides, pairs: Pairs, orders: Orders) -> dict[tuple[int, int], tuple[Array, Effect]]:
        """Return the sums of some pairs over all shifts from the lines of both matrices, and what they measure."""
        kept = [sorted(set(side)) for side in zip(*pairs, strict=True)]
        stacks = [
            KernelStack(
                _sources([side[k] for k in some]), drawn, self.circle, hollow=self.options.hollow, centred_by_rows=True
            )
            for side, some, drawn in zip(sides, kept, (orders[:1], orders), strict=True)
        ]
        places = [(kept[0].index(f), kept[1].index(g)) for f, g in pairs]
        found = shift_sums(*stacks, engine=self.engine, progress=self.progress, pairs=places)
        effects, values = found.effects(), found.centred()
        return {pair: (values[f, g].ravel(), effects[f][g]) for pair, (f, g) in zip(pairs, places, strict=True)}

    def _members(self, family: Family, side: int) -> list[_Member]:
        """Return the kernels of one side, and which matrices are products of few columns.

        Of many rows, additive kernels are linear kernels of their factors: a product of two takes fewer steps than an
        exponential for every column. Gaussians on one column have factors too, for correlations with other factors, as all
        kernels of few different rows have; and a single pair of kernels may have this form whatever they are.
        """
        points, single = self.points[side], len(family.members) == 1
        many = len(points) > FEW_ROWS
        # Of more columns the correlations of two factors would be more than the lines of their matrices.
        repeated = many and few_different(points, math.sqrt(len(points))) is not None

        def member(kernel: Kernel) -> _Member:
            additive = many and is_additive(kernel)
            smooth = many and points.numeric.shape[1] == 1 and isinstance(plain(kernel), Gaussian)
            tried = single or additive or smooth or repeated
            known = low_rank_factor(kernel, points, TOLERANCE if single else LEFT_OUT) if tried else None
            if known is None:
                return _Member(points, kernel)
            rows = (Points.of(known.columns), Linear()) if additive else (points, kernel)
            return _Member(*rows, centred_factor(known))

        return list(self.engine.here.map(member, family.sides()[side]))

    def _matrices(self, family: Family) -> list[Array]:
        """Return the matrices of all kernels of x and of y, of which those of y are permuted, shape (F, m, m)."""
        return [
            np.stack([centred_matrix(kernel(points), self.options.estimator) for kernel in kernels])
            for kernels, points in zip(family.sides(), self.points, strict=True)
        ]

    def _permutations(self, at_least: int) -> list[NDArray[np.intp]]:
        """Return which row of y is paired with each row of x, the identity first."""
        return self._orders_of_all(np.arange(self.n), at_least)

    def _orders_of_all(self, codes: NDArray[Any], at_least: int) -> list[NDArray[np.intp]]:
        """Return orders of what codes tell apart, as it stands first: random ones, or all that are different."""
        if self.complete:
            return [np.array(one) for one in different_orders(codes.tolist())]
        rng = np.random.default_rng((self.options.seed, ORDER_STREAM))
        return [np.arange(len(codes)), *(rng.permutation(len(codes)) for _ in range(at_least - 1))]

    def _permuted(self, family: Family, at_least: int) -> Array:
        """Return <A, B> of all pairs when row p(i) of y is paired with row i of x, for the identity and random p."""
        left, right = self._matrices(family)
        n = left.shape[1]
        height = max(1, STRIP_ENTRIES // n)
        # Of symmetric matrices a triangle of strips says all; each is made where it is summed, and stays in the cache.
        twice = np.where(np.arange(n) < height, 1.0, 2.0)
        strips = [
            (start, (left[:, start : start + height, start:] * twice[: n - start]).reshape(len(left), -1))
            for start in range(0, n, height)
        ]
        every = self._permutations(at_least)
        parts = [every[start : start + TOGETHER] for start in range(0, len(every), TOGETHER)]

        def work(part: Sequence[NDArray[np.intp]]) -> Array:
            sums = np.zeros((len(left), len(right), len(part)))
            for (number, p), (member, matrix), (start, strip) in product(enumerate(part), enumerate(right), strips):
                sums[:, member, number] += strip @ matrix[p[start : start + height]].take(p[start:], axis=1).ravel()
            return sums

        # Whole matrices stay where they are: other processes would each need a copy.
        sums = np.concatenate(list(self.engine.here.map(work, parts, self.progress)), axis=2)
        return np.stack([sums[pair] for pair in pairs_of(family)])


@dataclass(frozen=True, eq=False)
class SeveralSamples(TwoVariables):
    """The rows of k samples and which sample each is of: points are those of the rows, and of `group_label`."""

    codes: NDArray[np.intp]
    found: dict[Kernel, GroupEffects] = field(default_factory=dict)

    @classmethod
    def of(
        cls, options: Options, engine: Engine, progress: Progress | None, points: Points, codes: NDArray[np.intp]
    ) -> Self:
        """Return the test of rows against their groups."""
        label = Points.of(group_label(codes, hollow=options.hollow))
        return cls(options, engine, progress, (points, label), codes)

    @property
    def factor(self) -> float:
        """What turns <A, B> into the mean of MMD^2 over pairs of rows of different groups."""
        return group_factor(np.bincount(self.codes), hollow=self.options.hollow)

    def groups(self, kernel: Kernel) -> GroupEffects:
        """Return what a kernel measures between the groups."""
        if kernel not in self.found:
            self.found[kernel] = between_groups(kernel, self.points[0], self.codes, self.engine)
        return self.found[kernel]

    def effect(self, kernels: tuple[Kernel, ...]) -> Effect:
        """Return what a kernel measures between all groups together."""
        return self.groups(kernels[0]).together

    def relabelled(self, family: Family, at_least: int) -> Relabelled:
        """Return <A, B> under every relabelling; what is measured then is HSIC, which is of no use here."""
        return super().relabelled(family, at_least)._replace(effects=())

    def degenerate(self, kernels: tuple[Kernel, ...]) -> UndecidedError:
        """Return the error for a kernel that sees nothing; that of the groups is nobody's choice."""
        return degenerate(kernels[0])


@dataclass(frozen=True, eq=False)
class TwoSeries(TwoVariables):
    """Two stationary series: the order of the rows is kept (Chwialkowski and Gretton 2014).

    Rows that follow one another depend on one another, so that they cannot be put into a random order. Shifting one
    series against the other along the circle keeps the dependence within each and breaks that between them. The p-value
    (1 + #{T(t) >= T(0)}) / n over all shifts is asymptotic: it needs stationary series much longer than their memory.

    Where shifts by less than `minimum` rows are left out, which are like none, the p-value is
    (m + #{T(t) >= T(0)}) / (m + shifts): only each m-th says something new, and without its neighbours T(0) exceeds all
    others in one of shifts / m cases.
    """

    min_lag: int | None = None
    exchangeable: ClassVar[bool] = False

    @property
    def circle(self) -> int:
        """How many rows are shifted: all of them."""
        return self.n

    @property
    def minimum(self) -> int:
        """The smallest shift that stands for independence."""
        return self.min_lag or 1

    @property
    def shifts(self) -> int:
        """How many shifts stand for independence."""
        return self.n - 2 * self.minimum + 1

    def different(self, relabellings: int) -> int:
        """Return how many shifts stand for independence, and none among them; at least 1."""
        del relabellings
        return max(self.shifts + 1, 1)

    def relabelled(self, family: Family, at_least: int) -> Relabelled:
        """Return <A, B> of all pairs, observed and for the shifts from `minimum` to n - minimum rows."""
        del at_least
        if 2 * self.minimum > self.n:
            raise UsageError(
                f"no shift of {self.n:,} rows is at least {self.minimum:,} rows away from both ends",
                hint=f"{option('min-lag')} may be at most {self.n // 2}",
                code="usage.min_lag",
            )
        with np.errstate(over="ignore", invalid="ignore"):
            every, doubt, effects = self._shifted(family, [np.arange(self.n)])
        used = every[:, self.minimum : self.n - self.minimum + 1]
        memory = float(np.mean(memory_of_shifts(every, self.minimum)))
        return Relabelled(
            np.hstack([every[:, :1], used]),
            np.array([self.rounding(kernels) for kernels in family.members]) + doubt,
            "cyclic shifts of the series",
            self.shifts + 1,
            memory / (self.shifts + memory),
            self._way_out(every) if memory / (self.shifts + memory) > self.options.alpha else MORE_ROWS,
            exact=False,
            effects=effects,
            every=every,
            memory=memory,
        )

    def _way_out(self, every: Array) -> str:
        """Return what helps where no p-value is small enough: the largest minimum, about, with which the test can reject, and surely."""
        minimum, alpha = self.minimum, self.options.alpha
        while minimum > 1 and floor_of_shifts(every, minimum) > alpha:
            minimum -= max(1, minimum // 20)
        if floor_of_shifts(every, minimum) > alpha:
            return "it takes longer series"
        # More shifts may judge more members, whose memory is not known.
        sure = minimum if len(every) < most_members(self.shifts + 1) else 1
        return f"it takes longer series, or {option('min-lag', sure)}" + f"; up to about {minimum} may do" * (
            minimum > sure
        )

    def lags(self, relabelled: Relabelled, judged: Judged) -> Lags | None:
        """Return at which shift the statistic that is told, of the clearest pair, is largest."""
        every = (relabelled.sums if relabelled.every is None else relabelled.every)[judged.selected]
        rounding = 2.0 * float(relabelled.tolerances[judged.selected])
        strongest = np.flatnonzero(every >= every.max() - rounding)
        # A shift by more than half the circle is one in the other direction. Of several the shortest, forwards before
        # backwards.
        signed = min(
            (int(lag if lag <= self.n // 2 else lag - self.n) for lag in strongest), key=lambda lag: (abs(lag), lag < 0)
        )
        at_strongest = float(self.factor * every[signed])
        return Lags(self.minimum, self.shifts, signed, at_strongest, relabelled.memory)


def pairs_of(family: Family) -> list[tuple[int, int]]:
    """Return the members as places in the kernels of both sides."""
    first, second = family.sides()
    return [(first.index(kernel_x), second.index(kernel_y)) for kernel_x, kernel_y in family.members]


def _sources(members: Sequence[_Member]) -> list[tuple[Points, list[Kernel]]]:
    """Return kernels with their rows, neighbours on the same rows together: these share distances."""
    sources: list[tuple[Points, list[Kernel]]] = []
    for one in members:
        if sources and sources[-1][0] is one.points:
            sources[-1][1].append(one.kernel)
        else:
            sources.append((one.points, [one.kernel]))
    return sources


def centred_matrix(K: NDArray[Any], estimator: Estimator) -> Array:
    """Return HKH, or the U-centring of K, as a new array."""
    n = len(K)
    A: Array = np.array(K, dtype=np.float64)
    if estimator == "biased":
        A -= A.mean(axis=0)
        A -= A.mean(axis=1, keepdims=True)
        return A
    np.fill_diagonal(A, 0.0)
    rows = A.sum(axis=1)
    A -= rows / (n - 2)
    A -= (rows / (n - 2))[:, None]
    A += rows.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(A, 0.0)
    return A
