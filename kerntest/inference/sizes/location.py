"""Shifts in location of one column: the MMD that they make, and the smallest one that a test finds.

A relabelling g of rows among which nothing differs, its rows of X then moved by delta in one column, is what a test would see:

    MMD^2_g(delta) = u'K(delta, delta) u + v'K(0, 0) v - 2 u'K(delta, 0) v,    u and v the weights of rows of X and of Y

whose scores, by the rule that judged the family, are compared with those of MMD^2_g(0).
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kerntest.engines.engine import one_blas_thread
from kerntest.errors import UsageError
from kerntest.inference.nulls.permutation import scorer
from kerntest.inference.relabelling.designs import BlockedRows
from kerntest.inference.relabelling.permuted_blocks import own_weights
from kerntest.inference.sides import Sample
from kerntest.kernels.base import DensePairs, Points
from kerntest.matrices.different import few_different
from kerntest.report.results.two_sample_record import SmallestShift

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.inference.family import Family
    from kerntest.inference.sides import Options, Variable
    from kerntest.kernels.base import Array, Kernel

# The power with which a shift is found.
POWER = 0.8
# Shifts below so many standard deviations are none to speak of.
LEAST_SHIFT = 0.005
# Pairs of rows and columns that tell the MMD of a shift, and rows of a table, least and most.
PAIRS, FEWEST, MOST = 10**7, 60, 1000
# Rows of each sample that tell which shift has an MMD, halvings that find it, and standard deviations beyond which none has.
FEW_MOVED, BISECTIONS, FARTHEST_SHIFT = 300, 10, 100.0
# Rows of each sample of a part of the rows, least and most: an eighth of all, and relabellings of them. Of clusters so many at
# least, for as many rows as that may take: fewer do not tell how much they vary.
PART, RELABELLINGS, MOST_RELABELLINGS = (80, 400), 400, 4000
CLUSTERS, ROWS_OF_CLUSTERS = 40, 800
# A column in which values are tied has fewer different ones than this share of its rows.
TIED = 0.8
# Where no value has as large a share of the rows ties may stay as values move by steps.
RARE = 0.1
# Rows are repeated in columns in which there are at most so many different ones of all, or of those of a random pairing.
REPEATED, GOING_TOGETHER = 0.5, 0.7
# Rows keep values that vary so little between clusters: those of others would make these differ, which no test would miss.
ALIKE = 0.5
# Rows that tell whether a kernel is one of differences.
FEW = 20
# Of so few blocks of moved rows, and rows in them, so many relabellings are judged each by itself.
FEW_BLOCKS, FEW_ROWS, JUDGED = 48, 150, 20
# So many of the relabellings at least tell what a small alpha asks for.
EXCEEDING = 20
# Tells the draw of a part from other streams of the same seed.
STREAM = 8
# A first guess of the shift, in units of sqrt((1/n_x + 1/n_y) sqrt(p)); it is tried so often, or until the power is so near.
GUESS, ROUNDS, NEAR_ENOUGH = 3.0, 6, 0.06
# Squares of shifts that are tried one after another are at most so many times as large or small; a power that says nothing.
FARTHEST, NEARLY_SURE = 3.0, 0.975
# So many columns, of a shift of which the square of MMD is above such a share of the largest, are tried.
COLUMNS, SEEN = 8, 1e-9
# The search for shares of values that many rows share: halvings, and a slope beyond which all rows have the largest one.
TILTINGS, STEEPEST = 30, 1e6
# Pairs of rows of which the values are made together.
STRIP = 2**17
# Different rows are weighed where they are fewer than this share of the blocks.
FEWER = 0.5
# Rows that are shifted scale the columns and choose the bandwidths, too, which hides a part of it: of m rows, clusters or pairs of
# the smaller sample 0.8 (1 / m - 1 / 30) of what is told, as measured.
HIDDEN, NONE_HIDDEN = 0.8, 30
# No relabelling changes what varies less than this, in units of the largest value.
UNCHANGED = 1e-12


def parts_of(rows: Variable) -> list[NDArray[np.intp]]:
    """Return the places of the rows of X and of Y; of rows that do not tell, all of them."""
    labels = getattr(rows, "labels", np.ones(len(rows.points), dtype=np.uint8))
    return [places for places in (np.flatnonzero(labels == label) for label in (1, 0)) if len(places)]


def deviations_within(rows: Variable) -> Array:
    """Return the standard deviation of each numeric column within the samples, as of Cohen's d, in units of `points`.

    With strata within these, too, as of a trial in blocks: of what a stratum and the sample, by as much in all, leave of it.
    """
    n, design = len(rows.points), getattr(rows, "design", None)
    strata = np.zeros(n, dtype=np.intp) if design is None else design.strata
    order, sizes = np.argsort(strata, kind="stable"), np.bincount(strata)
    rest = np.column_stack([getattr(rows, "labels", np.zeros(n)), rows.points.numeric])[order]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rest -= np.repeat(np.add.reduceat(rest, starts, axis=0) / sizes[:, None], sizes, axis=0)
    label, rest = rest[:, 0], rest[:, 1:]
    square = float(label @ label)
    if square > 0.0:
        rest = rest - np.outer(label, label @ rest / square)
    freedom = n - len(sizes) - (square > 0.0)
    return np.asarray(np.sqrt(np.square(rest).sum(axis=0) / max(freedom, 1)))


def moved(points: Points, column: int, by: float) -> Points:
    """Return rows with one numeric column moved."""
    numeric = points.numeric.copy()
    numeric[:, column] += by
    return Points(numeric, points.codes)


def squared_mmds(kernel: Kernel, rows: Variable, deviations: float, most: int = MOST, only: int | None = None) -> Array:
    """Return MMD^2 between rows and the same rows moved in one column, for each numeric column or one, shape (p,).

    The mean over both samples, so that their difference has no part in it. Cost: O(p s^2) time for `most` rows of each, fewer of very many columns.
    """
    spread, parts = deviations_within(rows), parts_of(rows)
    columns = range(len(spread)) if only is None else [only]
    most = int(min(max(math.sqrt(PAIRS / max(len(columns), 1)), FEWEST), most))
    found = np.zeros(len(spread))
    for places in parts:
        own = rows.points.take(places[_spaced(len(places), most)])
        pairs = len(own) * (len(own) - 1)

        def means(x: Points, y: Points, pairs: int = pairs) -> Array:
            K = kernel.evaluate(DensePairs(x, y))
            return np.array([float(K.sum() - np.trace(K)) / pairs, K.mean()])

        for column in columns:
            other = moved(own, column, float(deviations * spread[column]))
            unbiased, biased = means(own, own) + means(other, other) - 2.0 * means(own, other)
            # Of a few rows the first may be below 0 by chance, the other is not.
            found[column] += float(unbiased if unbiased > 0.0 or len(own) > FEW_ROWS else biased) / len(parts)
    return found


class ShiftsOfColumns(NamedTuple):
    """The MMD between rows and the same rows moved in one column, by standard deviations, where a kernel sees that least."""

    kernel: Kernel
    rows: Variable

    def asked(self, deviations: float) -> tuple[float, float, str]:
        """Return the MMD of a shift, the shift, and the column in which it is least; 0 of numbers that do not vary."""
        squares = squared_mmds(self.kernel, self.rows, deviations)
        column = least_seen(squares)
        largest = float(np.abs(self.rows.points.numeric).max(initial=0.0))
        if column is None and len(squares) and (deviations_within(self.rows) <= UNCHANGED * largest).all():
            column = 0
        if column is None:
            none = f"{str(self.kernel)!r} sees none" if self.rows.numeric_names else "here all are categories"
            said = f"a shift in standard deviations is one of a column of numbers, and {none}"
            hint = "give an MMD, such as 0.1: it is between 0 and 1.4, and without a margin the report has it"
            raise UsageError(said, hint=hint, code="usage.margin")
        return math.sqrt(squares[column]), deviations, self.rows.numeric_names[column]

    def of_mmd(self, mmd: float) -> tuple[float | None, str | None]:
        """Return about which shift has an MMD, and the column in which that is least; no shift where none has as large a one."""
        column = least_seen(squared_mmds(self.kernel, self.rows, 1.0, FEWEST)) if self.rows.numeric_names else None
        if column is None:
            return None, None
        low, high = 0.0, 1.0
        while self._squared(column, high) < mmd**2:
            if high > FARTHEST_SHIFT:
                return None, self.rows.numeric_names[column]
            low, high = high, 2.0 * high
        # MMD^2 is about a parabola near 0.
        for _ in range(BISECTIONS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self._squared(column, middle) >= mmd**2 else (middle, high)
        return (low + high) / 2.0, self.rows.numeric_names[column]

    def in_units(self, column: str, deviations: float) -> float:
        """Return a shift of a column in the units of it."""
        place = self.rows.numeric_names.index(column)
        return float(deviations * deviations_within(self.rows)[place] * self.rows.spread[place])

    def _squared(self, column: int, deviations: float) -> float:
        return float(squared_mmds(self.kernel, self.rows, deviations, FEW_MOVED, column)[column])


def _spaced(n: int, most: int) -> NDArray[np.intp]:
    """Return at most so many places, as far apart as can be."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(np.intp)


def least_seen(squares: Array) -> int | None:
    """Return the column in which a shift is seen least; None where the kernel sees none at all."""
    seen = np.flatnonzero(squares > 1e-9 * max(float(squares.max(initial=0.0)), 1e-300))
    return int(seen[np.argmin(squares[seen])]) if len(seen) else None


def smallest_shift(
    family: Family, measure: Kernel, rows: Variable, sizes: Sequence[int], *, options: Options, alpha: float
) -> SmallestShift | None:
    """Return the smallest shift of one column that a test of so many rows finds with power 0.8, or None where there is none.

    Of the few columns in which `measure` sees it least that in which the test does. A part of the rows is moved, by shifts
    that are as many standard errors there. Cost: O(F (s^2 p + R b^2)) time for s <= 800 rows in b <= 200 blocks.
    """
    squares = squared_mmds(measure, rows, 1.0, FEWEST) if rows.numeric_names else np.empty(0)
    if least_seen(squares) is None:
        return None
    part, spreads = _part(rows, sizes, options.seed), deviations_within(rows)
    error = math.sqrt(1.0 / part.sizes[0] + 1.0 / part.sizes[1])
    guess = GUESS * error * len(rows.numeric_names) ** 0.25
    # So small products are slower on several threads.
    with one_blas_thread():
        test = MovedTest(part, family, options, alpha)
        if test.reached is None:
            return None
        seen = [column for column in np.argsort(squares).tolist() if squares[column] > SEEN * squares.max()]
        column = min(seen[:COLUMNS], key=lambda one: test.scored(one, guess * spreads[one]))
        by = _reached(lambda by: test.power(column, by), guess * float(spreads[column]), alpha)
    if by is None:
        return None
    units = np.arange(len(rows.points)) if (design := getattr(rows, "design", None)) is None else design.units
    # Asked for counts too, numpy.ma is not loaded.
    fewest = min(len(np.unique(units[places], return_counts=True)[0]) for places in parts_of(rows))
    hidden = HIDDEN * max(1.0 / fewest - 1.0 / NONE_HIDDEN, 0.0)
    deviations = test.mean_shift(column, by) / spreads[column] * math.sqrt(1.0 / sizes[0] + 1.0 / sizes[1]) / error
    deviations *= 1.0 + hidden
    if deviations < LEAST_SHIFT:
        # Of no size to speak of nothing is said.
        return None
    return SmallestShift(float(deviations), rows.numeric_names[column], POWER, test.of_shares(column))


def relabellings_at(alpha: float) -> int:
    """Return how many relabellings a shift is looked for under."""
    return min(max(RELABELLINGS, math.ceil(EXCEEDING / alpha)), MOST_RELABELLINGS)


class MovedTest:
    """A family that judges two samples under relabellings g, before and after the rows of X are moved.

    `reached` is the score above which the test rejects at level alpha where no row is moved; None where no relabelling changes
    anything, or where these are too few.
    """

    def __init__(self, part: Sample, family: Family, options: Options, alpha: float) -> None:
        self.kernels, self.clustered = family.kernels, part.design is not None and part.design.n_units is not None
        self.blocks = BlockedRows.of(part.labels, options.seed, part.design)
        self.points = part.points.take(self.blocks.order)
        self.weights = None if self.blocks.weights is None else self.blocks.weights[self.blocks.order]
        self.draws = np.random.default_rng((options.seed, STREAM, 1)).random((2, len(self.points)))
        most = relabellings_at(alpha)
        labels = self.blocks.relabellings(most, options.seed)
        # All that there are, in their order, or as many as were asked for.
        labels = labels[_spaced(len(labels), most)]
        fixed = np.broadcast_to(
            self.blocks.in_x[self.blocks.free :], (len(labels), len(self.blocks.in_x) - self.blocks.free)
        )
        weights = own_weights(np.hstack([labels, fixed]).astype(np.float64), self.blocks).weights
        # A small alpha asks for many to tell which score is beyond it, and not for more to tell a power.
        some = weights[_spaced(len(labels), RELABELLINGS)]
        self.weights_of_null, self.of_x, self.of_y = weights, np.maximum(some, 0.0), np.maximum(-some, 0.0)
        every = np.vstack([self.of_x, self.of_y, weights])
        (forms,) = self._forms(self.points, self.points, every, every)
        self.within, self.in_y, values = np.split(forms, [len(some), 2 * len(some)], axis=1)
        # So many of the relabellings may reach the statistic where it is small enough to reject.
        self.enough = math.floor(alpha * len(labels) * (1.0 + 1e-12))
        self.judge, self.exponents = options.judge, family.exponents
        self.reached: float | None = None
        self.seen = values.std(axis=1) > UNCHANGED * np.abs(values).max(axis=1)
        if self.enough and self.seen.any():
            self.score = self._scorer(values)
            self.reached = self._rejecting(self.score(values[self.seen]))

    def _scorer(self, values: Array) -> Callable[[Array], Array]:
        """Return what scores statistics beside relabelled ones, shape (F, R)."""
        exponents = [one for one, used in zip(self.exponents, self.seen, strict=False) if used]
        return scorer(values[self.seen], self.judge, exponents)

    def _rejecting(self, scores: Array) -> float:
        """Return the score that rejects among those of relabellings."""
        enough = max(self.enough * len(scores) // len(self.weights_of_null), 1)
        return float(np.partition(scores, -enough)[-enough])

    def power(self, column: int, by: float) -> float:
        """Return how many of the relabellings are rejected once their rows of X are moved in a column."""
        if self.reached is None:
            return 0.0
        # A small alpha, as of one of many pairs, takes too many relabellings to judge each by itself.
        few = (
            self.blocks.free <= FEW_BLOCKS
            and len(self.points) <= FEW_ROWS
            and len(self.weights_of_null) <= RELABELLINGS
        )
        there = self.shifted(column, by)
        values = self._values(there)
        power = float(np.mean(self.score(values) > self.reached))
        if not (few or POWER - NEAR_ENOUGH < power <= NEARLY_SURE):
            return power
        # Relabelled are rows of which some are moved: they vary more, which tells near the power that is looked for. Of few rows
        # it matters which ones: each relabelling is judged by itself.
        judged = _spaced(len(self.of_x), JUDGED if few else 1)
        found = zip(judged.tolist(), self._beside(there, judged), strict=True)
        return float(
            np.mean([self._rejected(values[:, [one] if few else slice(None)], beside) for one, beside in found])
        )

    def _rejected(self, values: Array, beside: Array) -> float:
        """Return which share of the statistics is rejected beside others, all of shape (F, R)."""
        null, own = np.split(self._scorer(beside)(np.hstack([beside[self.seen], values])), [beside.shape[1]])
        return float(np.mean(own > self._rejecting(null)))

    def _beside(self, there: Points, judged: NDArray[np.intp]) -> Iterator[Array]:
        """Yield the statistics of all relabellings of rows of which one relabelling's X is moved, for each of some."""
        n, sides = len(self.points), (self.points, there)
        in_x = [np.repeat(self.of_x[one] > 0, self.blocks.sizes) for one in judged]
        both = Points(np.vstack([one.numeric for one in sides]), np.vstack([one.codes for one in sides]))
        if len(judged) == 1:
            some = both.take(np.arange(n) + n * in_x[0])
            yield from self._forms(some, some, self.weights_of_null, self.weights_of_null)
            return
        # The values of both are made once.
        pairs = DensePairs(both, both)
        pairs.halve_bandwidths()
        every = np.stack([kernel.evaluate(pairs) for kernel in self.kernels])
        # So often half of the relabellings do.
        W = self.weights_of_null[:: 2 if self.enough > 1 else 1]
        for rows in (np.arange(n) + n * one for one in in_x):
            K = self._summed(every[:, rows[:, None], rows])
            yield np.einsum("fgb,gb->fg", W @ K, W)

    def _summed(self, K: Array, some: slice = slice(None)) -> Array:
        """Return the sums of matrices over pairs of blocks, the last two axes, of which the first has the rows of some blocks."""
        starts = self.blocks.starts[:-1]
        down = starts[some] - starts[some.start or 0]
        if self.weights is not None:
            first = starts[some.start or 0]
            K = K * self.weights[first : first + K.shape[-2], None] * self.weights
        if len(starts) == K.shape[-1]:
            return K
        return np.asarray(np.add.reduceat(np.add.reduceat(K, down, axis=-2), starts, axis=-1))

    def scored(self, column: int, by: float) -> float:
        """Return the score that is reached with power 0.8 once their rows of X are moved in a column: means would be of the largest."""
        scores = self.score(self._values(self.shifted(column, by)))
        below = int((1.0 - POWER) * len(scores))
        return float(np.partition(scores, below)[below])

    def _values(self, there: Points) -> Array:
        """Return the statistics of relabellings whose rows of X are moved, shape (F, R)."""
        apart, scale = np.ptp(there.numeric - self.points.numeric, axis=0), np.abs(there.numeric).max(axis=0)
        # Rows that are moved together are to each other what they were.
        together = self._of_differences and (apart <= UNCHANGED * scale).all()
        in_x = self.within if together else self._forms(there, there, self.of_x, self.of_x)[0]
        (between,) = self._forms(there, self.points, self.of_x, self.of_y)
        return np.asarray((in_x + self.in_y - 2.0 * between)[self.seen])

    def shifted(self, column: int, by: float) -> Points:
        """Return the rows moved in a column by as much on average; of values that many rows share the shares change.

        Rows of rare values that are whole steps apart move by such steps. Of others kernels would see that ties are broken, that
        a rare value is common, or that other columns do not go with a value, which no real shift does: shares p_k of values
        become as p_k exp(t r_k), r_k their mean ranks, as few far ones would make all of a mean; rows keep their order, and one
        whose value changes takes from some row of that value the columns that repeat with it. Others stay: copies would be seen.
        """
        levels, places, counts = self._levels(column)
        shares, step = counts / len(places), self._moves_by(column)
        if step is not None:
            whole = step * np.floor(by / step + self.draws[0]) if step else by
            numeric = self.points.numeric.copy()
            numeric[:, column] += whole
            return Points(numeric, self.points.codes)
        ranks = np.cumsum(shares) - shares / 2.0

        def tilted(t: float) -> Array:
            weights = shares * np.exp(t * (ranks - ranks[-1]))
            return np.asarray(weights / weights.sum())

        low, high, wanted = 0.0, 1.0, float(shares @ levels) + by
        while tilted(high) @ levels < wanted and high < STEEPEST:
            low, high = high, 2.0 * high
        for _ in range(TILTINGS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if tilted(middle) @ levels >= wanted else (middle, high)
        # The rank of each row, drawn among those of its value.
        own = (np.cumsum(shares) - shares)[places] + self.draws[0] * shares[places]
        above = np.minimum(np.searchsorted(np.cumsum(tilted(high)), own, side="right"), len(levels) - 1)
        some = (np.cumsum(counts) - counts)[above] + (self.draws[1] * counts[above]).astype(np.intp)
        some = np.where(above == places, np.arange(len(places)), np.argsort(places, kind="stable")[some])
        numeric, codes = self.points.numeric.copy(), self.points.codes.copy()
        with_numbers, with_codes = self._repeated_with(column, places)
        numeric[:, with_numbers], codes[:, with_codes] = numeric[some][:, with_numbers], codes[some][:, with_codes]
        numeric[:, column] = levels[above]
        return Points(numeric, codes)

    def _levels(self, column: int) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
        return np.unique(self.points.numeric[:, column], return_inverse=True, return_counts=True)

    def _moves_by(self, column: int) -> float | None:
        """Return the steps by which the values of a column move, 0 where any will do; None where only their shares can."""
        levels, places, counts = self._levels(column)
        if len(levels) > TIED * len(places):
            return 0.0
        step = _step(levels) if counts.max() < RARE * len(places) else None
        return None if step is None or any(one.any() for one in self._repeated_with(column, places)) else step

    def of_shares(self, column: int) -> bool:
        """Whether a shift of a column is one of the shares of its values."""
        return self._moves_by(column) is None

    def _repeated_with(self, column: int, places: NDArray[np.intp]) -> list[NDArray[np.bool_]]:
        """Return which other columns of numbers and of codes rows share with others of the same value, those of few values first."""
        n, mixed = len(places), np.argsort(self.draws[1])
        kept = np.zeros(self.points.numeric.shape[1] + self.points.codes.shape[1], dtype=np.bool_)
        for one, values in ((one, values) for one, values in self._tied if one != column):
            (pairs, count), (_, at_random) = _numbered(places * n + values), _numbered(places * n + values[mixed])
            if count <= max(REPEATED * n, GOING_TOGETHER * at_random):
                places, kept[one] = pairs, True
        return np.split(kept, [self.points.numeric.shape[1]])

    @cached_property
    def _tied(self) -> list[tuple[int, NDArray[np.intp]]]:
        """The columns of numbers and of codes in which values are tied, those of few first, and the place of each row's value."""
        columns = (_numbered(one) for one in (*self.points.numeric.T, *self.points.codes.T))
        of_few = ((one, of) for one, of in enumerate(columns) if of[1] <= TIED * len(of[0]))
        tied = [(one, of[0]) for one, of in of_few if not (self.clustered and self.blocks.unevenness(*of) < ALIKE)]
        return sorted(tied, key=lambda one: int(one[1].max()))

    def mean_shift(self, column: int, by: float) -> float:
        """Return by how much rows are moved on average."""
        return float((self.shifted(column, by).numeric - self.points.numeric)[:, column].mean())

    def _forms(self, x: Points, y: Points, left: Array, *right: Array) -> list[Array]:
        """Return left' M right for weights of blocks, M the sums of each kernel over pairs of blocks of x and y, shape (F, R).

        Where different rows are fewer than blocks these are weighed.
        """
        most = FEWER * len(self.blocks.in_x)
        of_x, of_y = few_different(x, most), few_different(y, most)
        if of_x is not None and of_y is not None:
            (x, in_x), (y, in_y) = of_x, of_y
            left, right = left @ self._counts(in_x), tuple(one @ self._counts(in_y) for one in right)
        whole = of_x is None or of_y is None
        starts = self.blocks.starts if whole else np.arange(len(x) + 1)
        matrices = np.empty((len(self.kernels), left.shape[1], right[0].shape[1]))
        # A strip of the rows at a time: the distances and values that kernels share are held for one.
        step = max(1, STRIP * (len(starts) - 1) // (len(x) * len(y)))
        for first in range(0, len(starts) - 1, step):
            some = slice(first, min(first + step, len(starts) - 1))
            pairs = DensePairs(x.take(slice(int(starts[some.start]), int(starts[some.stop]))), y)
            pairs.halve_bandwidths()
            for matrix, kernel in zip(matrices, self.kernels, strict=True):
                K = kernel.evaluate(pairs)
                matrix[some] = self._summed(K, some) if whole else K

        def forms(matrix: Array) -> list[Array]:
            product = left @ matrix
            return [np.einsum("gb,gb->g", product, other) for other in right]

        return [np.stack(each) for each in zip(*map(forms, matrices), strict=True)]

    def _counts(self, places: NDArray[np.intp]) -> Array:
        """Return how many rows of each block are each of the different rows, shape (b, d)."""
        shape = len(self.blocks.in_x), int(places.max()) + 1
        of_rows = np.repeat(np.arange(shape[0]), self.blocks.sizes)
        found = np.bincount(of_rows * shape[1] + places, weights=self.weights, minlength=math.prod(shape))
        return np.asarray(found.reshape(shape), dtype=np.float64)

    @cached_property
    def _of_differences(self) -> bool:
        """Whether all kernels are of differences between numbers."""
        here = self.points.take(slice(0, FEW))
        there = Points(here.numeric + self.points.numeric.std(axis=0), here.codes)
        pairs = [DensePairs(some, some) for some in (here, there)]
        values = ([one.evaluate(some) for some in pairs] for one in self.kernels)
        return all(np.allclose(one, other, rtol=1e-6, atol=1e-9) for one, other in values)


def _step(levels: Array) -> float | None:
    """Return the step of which all differences of some values are multiples; None where it is not the smallest of them."""
    gaps = np.diff(levels)
    steps = gaps / gaps.min()
    return float(gaps.min()) if (np.abs(steps - np.round(steps)) < 1e-3 * np.maximum(steps, 1.0)).all() else None


def _numbered(values: NDArray[Any]) -> tuple[NDArray[np.intp], int]:
    """Return the place of each value among the different ones, and how many these are."""
    # Asked for counts too, it does not load numpy.ma: 13 ms of a small test.
    levels, places, _ = np.unique(values, return_inverse=True, return_counts=True)
    return places, len(levels)


def size_of_part(rows: Variable, n: int) -> int:
    """Return how many rows of each sample are moved, of n in both; of a design those of enough whole units."""
    most, design = min(max(n // 8, PART[0]), PART[1]), rows.design if isinstance(rows, Sample) else None
    if design is None or design.n_units is None:
        return most
    return max(most, min(CLUSTERS * len(design.units) // design.n_units, ROWS_OF_CLUSTERS))


def _part(rows: Variable, sizes: Sequence[int], seed: int) -> Sample:
    """Return a part of the rows as two samples, with whole units of a design; rows that tell of no sample as two at random."""
    most = size_of_part(rows, sum(sizes))
    rng = np.random.default_rng((seed, STREAM))
    if not isinstance(rows, Sample):
        n_x, n_y = (min(size, most, len(rows.points) // 2) for size in sizes)
        some = rng.permutation(len(rows.points))[: n_x + n_y]
        told = {one.name: getattr(rows, one.name) for one in fields(rows)} | {"points": rows.points.take(some)}
        return Sample(**told, labels=(np.arange(n_x + n_y) < n_x).astype(np.uint8), origin=some)
    design, labels = rows.design, rows.labels
    units = np.arange(len(labels)) if design is None else design.units
    order = rng.permutation(int(units.max()) + 1)[units]
    # The place in a random order of the last unit that is taken, so that about as many rows are.
    last = [
        np.sort(order[labels == label])[min(size, most) - 1]
        for label, size in zip((0, 1), rows.sizes[::-1], strict=True)
    ]
    if design is not None and design.swaps:
        last = [min(last)] * 2
    kept = np.flatnonzero(order <= np.array(last)[labels])
    design = None if design is None else design.take(kept)
    return replace(rows.take(kept), labels=labels[kept], origin=rows.origin[kept], design=design)


def _reached(power: Callable[[float], float], by: float, alpha: float) -> float | None:
    """Return the shift at which a power is reached; the probit of a power is about a line in the square of the shift."""
    from statistics import NormalDist  # noqa: PLC0415 - 3 ms that only this needs

    probit = NormalDist().inv_cdf
    wanted, low, high = probit(POWER), (0.0, probit(alpha)), (math.inf, math.inf)
    for _ in range(ROUNDS):
        found, square = power(by), by**2
        point = square, probit(min(max(found, 0.01), 0.99))
        if found < POWER and high[0] == math.inf and POWER - found >= NEAR_ENOUGH:
            low, square = point, square * FARTHEST
        elif found > NEARLY_SURE:
            # It says only that the shift is too large.
            high, square = point, max(square / FARTHEST, (low[0] + square) / 2.0 if low[0] else 0.0)
        else:
            # Through what was known before, on the other side if there is something, and this point.
            (a, p), (b, q) = (point, high) if found < POWER and high[0] < math.inf else (low, point)
            square = a + (b - a) * (wanted - p) / (q - p)
            low, high = (point, high) if found < POWER else (low, point)
        by = math.sqrt(square)
        if abs(found - POWER) < NEAR_ENOUGH:
            return by
    return by if high[0] < math.inf else None
