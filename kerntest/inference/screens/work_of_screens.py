"""What screens of columns take, counted: units of work, and bytes."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kerntest.engines.plan import added
from kerntest.inference.nulls.moments import CUBES_PER_ROW, EXACT_TRACE_ROWS, PROBES
from kerntest.inference.relabelling import shifts
from kerntest.inference.screens import leftover
from kerntest.inference.statistic import CORRELATIONS_PER_ROW
from kerntest.inference.work_of_tests import (
    CALLS_OF_COLUMN,
    LINED_ENTRIES,
    NEEDED,
    PAIRED_ENTRIES,
    SWEEPS,
    SWEPT_ENTRIES,
    work_of_factor,
)
from kerntest.kernels.counting import work_of_values
from kerntest.matrices.factor import MOST_COLUMNS, TOLERANCE, expected_rank
from kerntest.matrices.passes import HELD_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from kerntest.engines.engine import Engine
    from kerntest.engines.plan import Work
    from kerntest.kernels.base import Kernel, Points

# Columns, by their places.
Pair: TypeAlias = "tuple[int, int]"

# Matrices whose transforms are held together: pairs of columns are done a square of so many matrices at a time.
TOGETHER = 32
# Squares of pairs are smaller where all their relabelled statistics would be more numbers than these (128 MB), and from so many
# on factors are forgotten that a square does not need.
HELD_NUMBERS = 2**24
# From so many sets of rows, sets are tested side by side.
MANY_SETS = 4
# All measured. Columns of the factor of a smooth kernel on one column, and of a column with values far from all others, in units
# of the usual share of correlations; calls of numpy for a pair of columns, and the steps over its rows, with sorting.
USUAL_RANK, LONG_RANK, CALLS_OF_PAIR, ENTRIES_OF_PAIR = 30, 400, 1500.0, 8.0
# The same of a column in each set of rows.
CALLS_OF_SIDE, ENTRIES_OF_SIDE = 12_000.0, 2000.0
# Columns of factors of more rows than these are in no cache, and take so many times as long again from 16 times as many on.
WARM_ROWS, COLD = 2.0**16, 1.6
# Of so many sets of rows a plan looks at each, of more at some of them.
SETS_LOOKED_AT = 500
# Lines of many matrices: steps over their transforms to lie by frequency, and what products for each frequency take.
TURNED, MULTIPLIED = 1.0, 4.0
# Steps over the entries of a factor, for each of its columns, while cubes of the entries of its matrix are summed.
CUBED_ENTRIES = 8.0
# Joint tests: of the entries of a strip those that are found at other places, where not among few; steps over those of each
# group and of all; calls for a strip and group, and for a relabelling; and of measured peaks strips under way.
TAKEN, ENTRIES_OF_GROUP, ENTRIES_OF_STRIP, CALLS_OF_STRIP, CALLS_OF_RELABELLING, STRIPS_UNDER_WAY = (
    0.4,
    3.0,
    2.0,
    8.0,
    20.0,
    5,
)
# Of measured peaks: blocks of many matrices, in bytes for each entry, and vectors of blocks of lines under way.
STACKED_BYTES, LINES_UNDER_WAY = 18.0, 64
# A factor while it is made and what earlier ones leave in pieces too small for it, in units of itself; what correlations take of a column, in numbers for each row.
FACTOR_UNDER_WAY, CORRELATED = 10.0, 3.0


class Screened(NamedTuple):
    """A column of a screen: its rows, its kernel, and about how many columns its matrix has as a product of few."""

    points: Points
    kernel: Kernel
    rank: float

    @classmethod
    def of(cls, points: Points, kernel: Kernel) -> Self:
        """Look how many columns there are."""
        most = MOST_COLUMNS * math.sqrt(len(points))
        return cls(points, kernel, expected_rank(kernel, points, TOLERANCE, most)[1])


def by_factors(ranks: Mapping[int, float], pairs: Sequence[Pair], n: int, times: float = 1.0) -> bool:
    """Return whether pairs over the same rows go by correlations of factors: where all do, and that costs less than lags.

    Of so many `times` as many correlations: ranks of some columns are known from others.
    """
    needed = times * sum(ranks[a] * ranks[b] for a, b in pairs)
    return needed <= CORRELATIONS_PER_ROW * n * len({*chain(*pairs)}) / 2


class PairsOfRows(NamedTuple):
    """Pairs of columns over the same n rows, which are tested together in squares, under so many orders."""

    n: int
    squares: Sequence[Sequence[Pair]]
    orders: int


def work_of_pairs(columns: Mapping[int, Screened], sets: Sequence[PairsOfRows]) -> Work:
    """Return what a screen of pairs of columns takes; of very many sets of rows some stand for those next to them in size."""
    values = {place: work_of_values([column.kernel], column.points) for place, column in columns.items()}
    if not sets:
        return {}
    step = -(-len(sets) // SETS_LOOKED_AT)
    some = sorted(sets, key=lambda one: one.n)[step // 2 :: step]
    works = [_work_over(columns, values, one) for one in some]
    if len(sets) > 1:
        # Every set chooses its rows, and the bandwidths of its columns.
        sides = [(one.n, len({*chain.from_iterable(chain.from_iterable(one.squares))})) for one in some]
        works += [{"call": CALLS_OF_SIDE * count, "entry": ENTRIES_OF_SIDE * n * count} for n, count in sides]
    return added(*works, times=len(sets) / len(some))


def _work_over(columns: Mapping[int, Screened], values: Mapping[int, Work], some: PairsOfRows) -> Work:
    """Return what pairs of columns over the same rows take."""
    n, squares, orders = some
    entries, transformed = float(n) ** 2 / 2, shifts.transform_work(shifts.circle_length(n))
    places = {*chain.from_iterable(chain.from_iterable(squares))}
    ranks = {place: columns[place].rank for place in places}
    works = [_matrix_of_screen(n, columns[place], values[place]) for place in places]
    sorting = ENTRIES_OF_PAIR * n * math.log2(max(n, 2))
    pair = {"call": CALLS_OF_PAIR, "entry": sorting, "fft": 2.0 * transformed * orders * n}
    works.append(added(pair, times=float(sum(map(len, squares)))))
    for pairs in squares:
        if by_factors(ranks, pairs, n):
            correlations = NEEDED * sum(ranks[a] * ranks[b] for a, b in pairs)
            sides = sum(ranks[a] + orders * ranks[b] for a, b in pairs)
            works.append(added({"fft": transformed, "entry": 3.0}, times=correlations * orders * n))
            works.append(added({"fft": transformed, "gather": 3.0}, times=sides * n))
            continue
        left, right = ({*side} for side in zip(*pairs, strict=True))
        matrices = len(right) * orders
        stacked = min(len(left), matrices) >= shifts.MANY
        line = {"entry": LINED_ENTRIES, "fft": transformed, "gather": TURNED if stacked else 0.0}
        times = [(place, 1) for place in left] + [(place, orders) for place in right]
        works += [added(values[place], line, times=count * entries) for place, count in times]
        each = (
            {"product": MULTIPLIED * len(left) * matrices}
            if stacked
            else {"entry": PAIRED_ENTRIES * len(pairs) * orders}
        )
        works.append(added(each, times=entries))
    return added(*works, times=1.0 + COLD * min(max(math.log2(max(n, 1) / WARM_ROWS) / 4.0, 0.0), 1.0))


def _matrix_of_screen(n: int, column: Screened, value: Work) -> Work:
    """Return what the factor of a column, if it has one, and the invariants of its centring take."""
    entries, rank = float(n) ** 2 / 2, column.rank
    found = added(work_of_factor(rank, column.kernel, column.points), times=n / len(column.points))
    if math.isfinite(rank):
        found = added(found, {"product": 4.0 * n * rank**2, "spectrum": rank**3})
        if rank**3 <= CUBES_PER_ROW * n:
            return added(found, {"product": n * rank**3 / 3, "entry": CUBED_ENTRIES * n * rank**2, "call": 10.0 * rank})
    probes = n if n <= EXACT_TRACE_ROWS else 5 * PROBES
    swept = added(value, {"entry": SWEPT_ENTRIES}, times=SWEEPS * entries)
    return added(found, swept, {"product": 2.0 * probes * entries})


def work_of_selection(n: int, candidates: int, steps: int, orders: int, rank: int = USUAL_RANK) -> Work:
    """Return what so many steps of forward selection take, of candidates with factors of such a `rank`.

    Of each candidate its effect, and its lines under all shifts, in the first; a factor and its correlations in the others.
    """
    value = {"product": 4.0, "exp": 1.0, "entry": 3.0}
    effect = added(value, value, {"entry": 2 * SWEPT_ENTRIES})
    transformed = shifts.transform_work(shifts.circle_length(n))
    lines = added(value, {"entry": LINED_ENTRIES + PAIRED_ENTRIES, "fft": transformed}, times=float(orders))
    first = added(added(effect, lines, times=0.75 * n**2 * candidates), {"call": 300.0 * candidates})
    works = [first, added(effect, times=0.75 * n**2 * (steps - 1))]
    for step in range(2, steps + 1):
        # With each column there are more features, up to the most.
        most = min(leftover.MOST_FEATURES, max(1.0, leftover.MOST_OF_ROWS * n), USUAL_RANK * step)
        correlated = {"fft": NEEDED * most * rank * orders * transformed, "product": 3 * most**2, "exp": most}
        of_one = added({"call": 300.0 + CALLS_OF_COLUMN * most, "spectrum": most**3}, added(correlated, times=float(n)))
        works.append(added(of_one, times=candidates - step + 1.0))
    return added(*works)


class JointGroups(NamedTuple):
    """The groups of a joint test of n rows: how many different rows each has, and the rows of a strip of the first matrix."""

    n: int
    groups: Sequence[tuple[Points, Kernel]]
    different: Sequence[int]
    strip: int

    def work(self, permutations: int) -> Work:
        """Return what it takes: the matrix of the different rows of each group, and half of that of all rows, relabelled."""
        n, strip, others = float(self.n), min(self.strip, self.n), self.different[1:]
        made = [
            added(work_of_values([kernel], points), times=float(m) ** 2)
            for (points, kernel), m in zip(self.groups, self.different, strict=True)
        ]
        # Whole rows of the different ones are moved, and single entries of these: those of few stay in the cache.
        moved = {
            "gather": sum(TAKEN * min(1.0, m / strip) + m / n for m in others),
            "entry": ENTRIES_OF_GROUP * len(others) + ENTRIES_OF_STRIP,
        }
        calls = {"call": CALLS_OF_STRIP * len(self.different) * math.ceil(n / strip) + CALLS_OF_RELABELLING}
        return added(*made, added(added(moved, times=n * (n + strip) / 2), calls, times=permutations))

    def held(self, permutations: int, threads: int) -> float:
        """Return the bytes: strips of half of the first matrix, the others or, before these, that one whole, and the relabellings."""
        n, strip, (first, *others) = float(self.n), min(self.strip, self.n), [float(m) ** 2 for m in self.different]
        strips = n * (n + strip) / 2 + STRIPS_UNDER_WAY * threads * n * strip
        return 8.0 * (max(first, sum(others)) + strips) + 4.0 * permutations * len(others) * n


def bytes_of_pairs(
    columns: Mapping[int, Screened], sets: Sequence[PairsOfRows], engine: Engine, *, target: bool
) -> tuple[float, float]:
    """Return the bytes, least and most, that a screen takes beside its columns: factors of a set of rows, or blocks of lines.

    Of many sets as many are under way as there are threads. With a target the statistics of all pairs are kept.
    """
    ranks = {place: column.rank if math.isfinite(column.rank) else 0.0 for place, column in columns.items()}
    beside = len(sets) >= MANY_SETS

    def held(some: PairsOfRows, times: float) -> float:
        n, squares, orders = some
        places = {*chain.from_iterable(chain.from_iterable(squares))}
        factored = [by_factors({place: columns[place].rank for place in places}, pairs, n, times) for pairs in squares]
        own = sorted(ranks[place] for place in places)
        of_square = max(sum(ranks[place] for place in {*chain(*pairs)}) for pairs in squares)
        factors = of_square if n * of_square > HELD_NUMBERS else min(sum(own), HELD_NUMBERS / n + of_square)
        # Of factors that are correlated both are there in the order of the rows, transposed and transformed.
        transformed = max(FACTOR_UNDER_WAY * own[-1], 3.0 * orders * sum(own[-2:]) * any(factored))
        threads = 1 if beside else engine.threads
        # A target has one matrix on its side: no stack.
        stacks = 0.0 if all(factored) else held_by_stacks(n, 2 if target else len(places), threads)
        screened = LINES_UNDER_WAY + factors + transformed
        # The rows of each column, scaled.
        return 8.0 * n * (len(places) + max(screened, CORRELATED * len(places))) + stacks

    largest = sorted(sets, key=lambda some: some.n * sum(map(len, some.squares)))[-SETS_LOOKED_AT:] if columns else ()
    many = engine.threads if beside else 1
    # Those that are under way together need not be at their largest together.
    least, most = (
        sum(sorted(held(one, times) for one in largest)[-count:]) for times, count in ((0.5, 1), (2.0, many))
    )
    kept = 8.0 * max((some.n for some in sets), default=0) * sum(len(one) for some in sets for one in some.squares)
    kept *= target
    return least + kept, most + kept


def held_by_stacks(rows: int, matrices: int, threads: int) -> float:
    """Return the bytes that blocks of lines of many matrices take while they are under way."""
    return STACKED_BYTES * min(HELD_ENTRIES, 128 * rows * matrices) * threads


def leftover_bytes(rows: int, orders: int) -> float:
    """Return the bytes of the features of a regression and their decomposition, and of transforms of features."""
    return 8.0 * rows * leftover.MOST_FEATURES * (8 + 2 * orders)
