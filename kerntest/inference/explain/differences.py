"""Where two samples differ: which columns, and which rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.column_types import date_text
from kerntest.data.columns import standardize
from kerntest.data.missing import GAP, PRESENCE, presence_name
from kerntest.engines.engine import Engine, part_of
from kerntest.engines.plan import added
from kerntest.errors import UndecidedError, counted
from kerntest.inference.family import Family, KernelChooser
from kerntest.inference.nulls.permutation import SAME, descending, first_of, judge, standardised, tie_tolerance
from kerntest.inference.relabelling.designs import BLOCKS, BlockedRows, Cosets, cosets_needed, different_relabellings
from kerntest.inference.relabelling.permuted_blocks import TwoSamples
from kerntest.inference.screens.many_pairs import step_down
from kerntest.inference.sides import names_apart
from kerntest.inference.statistic import discrepancy, effect_of_levels
from kerntest.inference.work_of_tests import Step, blocked_bytes, step_of_test
from kerntest.kernels.bandwidth import LARGEST, SMALLEST, BandwidthChooser, median_distance
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.elementary import Delta, Gaussian
from kerntest.report.results import two_sample_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table
    from kerntest.engines.engine import Progress
    from kerntest.inference.sides import Options, Sample
    from kerntest.inference.verdict import Verdict
    from kerntest.kernels.base import Array, Kernel

# How many of the most typical rows of each sample are shown.
ROWS_SHOWN = 5
# Bandwidths of a column of numbers: its median, and so many halves of that in all. The median alone does not see that one
# hump has become two.
BANDWIDTHS = 3
# Of a column of numbers the share that one number holds is told where it is at least this.
COMMON = 0.5
# So many different values of a column of numbers are told apart.
LEVELS = 500
# Calls of numpy for each column while the kernels of a test are chosen.
CALLS_OF_CHOICE, CALLS_OF_COLUMN = 1000.0, 3000.0
# Pairs of rows times columns in all tests of the columns without one: each takes as long as the test itself.
NUMBERS_WITHOUT = 100_000_000


def explained(
    test: TwoSamples, verdict: Verdict, read: Sequence[Table], used: Sequence[Table]
) -> two_sample_record.Explanation:
    """Return which columns differ, and the most typical rows, of tables as they were read and the rows of them in use."""
    columns = explain_columns(test, read, used)
    if len(columns) == 1:
        columns = (_as_tested(columns[0], verdict),)
    return two_sample_record.Explanation(columns, typical_rows(test.sample, verdict, used))


def _as_tested(column: two_sample_record.ColumnEffect, verdict: Verdict) -> two_sample_record.ColumnEffect:
    """Return a single column with what the test says, which is about it alone."""
    p_value, z = verdict.p_value, column.z
    if verdict.relabelled is not None:
        z = float(standardised(verdict.relabelled[None], np.zeros(1))[0][0, 0])
    own: Any = {"kernel": str(verdict.kernels[0]), "z": z, "effect_size": verdict.found.effect_size}
    return replace(column, p_value=p_value, p_adjusted=p_value, **own)


def explain_columns(
    test: TwoSamples, read: Sequence[Table], used: Sequence[Table]
) -> tuple[two_sample_record.ColumnEffect, ...]:
    """Test each column alone, and all without it, and return the columns by how much they differ.

    A column of numbers has Gaussians at its own median bandwidth, a half and a quarter of it, a column of categories
    delta; its z is the largest of theirs. Where gaps are information, a column of numbers is tested over the rows that hold one:
    where they are is the column beside it. All share permutations of blocks of rows, so that the step-down maximum of z over
    the columns (Westfall and Young 1993, algorithm 4.1) controls exactly the chance of naming any column that does not
    differ, with the dependence between columns taken into account.

    Cost: O(n log n + C b d^2 + R b^2) time for each column of d different values, over R relabellings of b blocks in C
    cosets, and a default test for each of the columns that `columns_left_out` counts.
    """
    sample, options, parts = test.sample, test.options, parts_of_explanation(test.sample)
    columns, first, told = len(sample.names), columns_left_out(sample), part_of(test.progress, 1, parts)
    cosets = list(Cosets(sample, options.permutations, options.seed))
    work = partial(_column_alone, test, cosets)
    found = []
    for one in test.engine.here.map(work, range(columns)):
        found.append(one)
        if told is not None and not first:
            told(len(found), columns)
    z, effect_sizes = np.stack([largest for _, largest, _ in found]), np.array([size for _, _, size in found])
    order = descending(z[:, 0], SAME * np.maximum(1.0, np.abs(z[:, 0])))
    order = order[descending(effect_sizes[order], SAME)]
    without: dict[int, float] = {}
    for done, place in enumerate(order[:first].tolist(), 1):
        told = part_of(test.progress, done, parts)
        without[place] = _p_value(sample.with_columns({*range(columns)} - {place}), options, test.engine, told)
    of_all = z[:, 0], np.mean(z >= z[:, :1], axis=1), step_down(z), effect_sizes
    differing, weights = [], _weights(sample)
    for place in order.tolist():
        name, (z_clearest, alone, adjusted, size) = sample.names[place], (float(each[place]) for each in of_all)
        numbers = z_clearest, alone, adjusted, without.get(place), size
        holding = contents(name, read, used, weights)
        differing.append(two_sample_record.ColumnEffect(name, found[place][0], *numbers, *holding))
    return tuple(differing)


def _weights(sample: Sample) -> tuple[Array | None, Array | None]:
    """Return what rows of X and of Y weigh so that both sides have as much of every stratum, as in the test; None for 1."""
    design = sample.design
    if design is None or design.swaps or not design.strata.any():
        return None, None
    strata = int(design.strata.max()) + 1
    n_x, n_y = (np.bincount(design.strata[sample.labels == side], minlength=strata) for side in (1, 0))
    both = []
    for side, others in ((1, n_y), (0, n_x)):
        rows, weights = np.flatnonzero(sample.labels == side), np.empty(np.count_nonzero(sample.labels == side))
        weights[sample.origin[rows]] = (others / (n_x + n_y))[design.strata[rows]]
        both.append(weights)
    return both[0], both[1]


def columns_left_out(sample: Sample) -> int:
    """Return for how many columns all others are tested without it: by sizes alone, as these tests take longest."""
    columns, n = len(sample.names), len(sample.points)
    return min(columns, 2 * NUMBERS_WITHOUT // (n**2 * columns)) if columns > 1 else 0


def parts_of_explanation(sample: Sample) -> int:
    """Return in how many parts of about the same work a test is done and explained."""
    return 1 + max(1, columns_left_out(sample))


def explanation_work(sample: Sample, options: Options) -> tuple[Step, ...]:
    """Return what `explain_columns` takes."""
    columns, first, n = len(sample.names), columns_left_out(sample), len(sample.points)
    every, blocks = (*sample.points.numeric.T, *sample.points.codes.T), float(min(n, 2 * BLOCKS))
    # Asked for counts too, numpy.ma is not loaded.
    sizes = np.minimum([len(np.unique(one, return_counts=True)[0]) for one in every], float(LEVELS))
    # Values of the levels of a column, their sums over pairs of blocks, and these under every relabelling.
    times = cosets_needed(sample, BlockedRows.of(sample.labels, options.seed, sample.design), options.permutations)
    sums = times * float(((2.0 * blocks + sizes) * blocks * sizes).sum())
    relabelled = columns * options.permutations * blocks**2
    alone = added({"product": sums + relabelled, "exp": float((sizes**2).sum())}, times=float(BANDWIDTHS))
    each = {"call": CALLS_OF_COLUMN + 500.0 * times, "entry": 60.0 * n * times}
    alone = added(alone, added(each, times=float(columns)))
    what, held = f"tests of {counted(columns, 'column')} alone", partial(_bytes_of_columns, n, columns, options)
    tests = [Step.sure(what, held, alone)]
    if first:
        others = sample.with_columns(set(range(1, columns)))
        test = step_of_test([(others.points, _family(others, options).kernels)], options, cosets=times)
        which = "each" if first == columns else f"each of the first {first}"
        what = f"tests of all columns without {which}"
        low, high = (
            added(work, {"call": CALLS_OF_CHOICE * columns}, times=float(first)) for work in (test.work, test.most)
        )
        tests.append(Step(what, test.held, low, high))
    return tuple(tests)


def _bytes_of_columns(n: int, columns: int, options: Options, threads: int) -> float:
    """Return the bytes that the tests of columns alone take: z of each under every relabelling, and sums of those under way."""
    return (
        8.0 * columns * options.permutations * 3 + blocked_bytes(n, BANDWIDTHS, options.permutations, threads) * threads
    )


def _column_alone(
    test: TwoSamples, cosets: Sequence[tuple[BlockedRows, NDArray[np.bool_]]], place: int
) -> tuple[str, Array, float]:
    """Return which kernel sees the column at this place most clearly, the largest z under each relabelling, the effect size.

    Sums over pairs of rows of two blocks come from kernels of the column's few different values, not of pairs of rows.
    """
    sample, n, p = test.sample, len(test.sample.points), len(test.sample.numeric_names)
    kernels: Sequence[Kernel] = [Delta()]
    matrices: list[Array | None] = [None]
    there = _there(sample, place)
    codes = np.zeros(n, dtype=np.intp)
    if place < p:
        values, codes[there] = levels(sample.points.numeric[there, place])
        bandwidth = _bandwidth(sample.points.numeric[there, place], test.options.seed)
        kernels = [Gaussian(bandwidth * 2.0**-halvings) for halvings in range(BANDWIDTHS)]
        matrices = [kernel(Points.of(values)) for kernel in kernels]
    else:
        values, codes = np.unique(sample.points.codes[:, place - p], return_inverse=True)
    points = Points.of(values[codes]) if place < p else sample.with_columns({place}).points
    alone, size, relabelled = replace(test, engine=Engine(1)), len(values), []
    design, weights = sample.design, None if there.all() else there.astype(np.float64)
    weights = weights if design is None else design.weights(sample.labels, there)
    for every, moved_blocks in cosets:
        blocks = every._replace(weights=weights)
        held = np.bincount(blocks.of_rows() * size + codes, weights=blocks.weights, minlength=len(blocks.sizes) * size)
        held = held.reshape(len(blocks.sizes), size).astype(np.float64)
        own = blocks.own(np.ones(n))
        sums = np.stack([held @ (held.T if K is None else K @ held.T) - np.diag(own) for K in matrices])
        diagonals = np.broadcast_to(own, sums.shape[:2])
        relabelled.append(alone.over_blocks(kernels, points, (sums, diagonals), blocks, moved_blocks))
    z, _ = standardised(np.hstack(relabelled), np.full(len(kernels), tie_tolerance(1.0, n, float(n))))
    clearest = first_of(z[:, 0], np.arange(len(z)))
    if design is not None:
        within = design.units if design.swaps else design.strata
        there &= np.isin(within, np.intersect1d(*(within[there & (sample.labels == side)] for side in (0, 1))))
    in_y, in_x = (np.bincount(codes[there & (sample.labels == side)], minlength=size).astype(float) for side in (0, 1))
    effect, rows = 0.0, np.flatnonzero(there)
    # A column that has hardly any values in one sample has none to compare.
    if min(in_x.sum(), in_y.sum()) > 1 and design is not None:
        some = points.take(rows), sample.labels[rows], Engine(1), design.take(rows)
        effect = discrepancy(kernels[clearest], *some).effect_size
    elif min(in_x.sum(), in_y.sum()) > 1:
        effect = effect_of_levels(matrices[clearest], in_x, in_y)
    return str(kernels[clearest]), z.max(axis=0), effect


def _there(sample: Sample, place: int) -> NDArray[np.bool_]:
    """Return which rows hold a value in the column at this place, and not what fills its gap."""
    told = dict(zip(sample.category_names, zip(sample.levels, sample.points.codes.T, strict=True), strict=True))
    found, codes = told.get(presence_name(sample.names[place]), ((), None))
    if codes is None or found != PRESENCE:
        return np.ones(len(sample.points), dtype=bool)
    return np.asarray(codes == PRESENCE.index("present"))


def levels(values: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the different values of a column and which of them each row has; many are rounded to some hundred means.

    Means of neighbours: groups hold about as many rows, and as many different values, as each other, so that a value of
    many rows stands alone. Blind to the samples, so that tests stay exact.
    """
    different, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(different) <= LEVELS:
        return different, codes
    before = (np.cumsum(counts) - counts) / len(values) + np.arange(len(different)) / len(different)
    groups = np.unique((before * (LEVELS / 2)).astype(np.intp), return_inverse=True)[1]
    means = np.bincount(groups, weights=counts * different) / np.bincount(groups, weights=counts)
    return means, groups[codes]


def _bandwidth(values: Array, seed: int) -> float:
    """Return the median bandwidth of a column of numbers; where hardly any two rows differ, of its different values."""
    try:
        return BandwidthChooser(Points.of(values), seed).median("euclidean", Columns((0,), ()))
    except UndecidedError:
        different = median_distance(np.unique(values))
        return different if SMALLEST < different < LARGEST else 1.0


def _p_value(sample: Sample, options: Options, engine: Engine, progress: Progress | None) -> float:
    """Return the p-value of the default test of a sample."""
    family = _family(sample, options)
    relabelled = TwoSamples(options, engine, progress, sample).relabelled(family, options.permutations)
    return judge(relabelled.sums, relabelled.tolerances, options.judge, family.exponents).p_value


def _family(sample: Sample, options: Options) -> Family:
    """Return the kernels of the default test of a sample."""
    chooser = KernelChooser(sample, options.seed, relabellings=different_relabellings(sample, options))
    return chooser.family("auto", "auto", single=False)


def contents(
    name: str, read: Sequence[Table], used: Sequence[Table], weights: Sequence[Array | None] = (None, None)
) -> Iterator[two_sample_record.ColumnContents]:
    """Yield what a column holds in X and in Y: missing values as they were read, all else in the weighted rows that were used.

    Dates in ISO form, with hour and minute where it is not midnight.
    """
    # Gaps that are information are filled: what is there is told.
    gaps, there = presence_name(name), PRESENCE.index("present")
    own = [table[gaps].values == there if gaps in table.names else np.ones(table.n_rows, dtype=bool) for table in used]
    taken = [one if one.any() else ~one for one in own]
    x, y = (table[name].take(one) for table, one in zip(used, taken, strict=True))
    weights = [some if some is None else some[one] for some, one in zip(weights, taken, strict=True)]
    missing = [float(np.mean(_gaps(table[name]) if one.all() else ~one)) for table, one in zip(read, own, strict=True)]
    if x.is_category:
        level, *shares = moved(x, y, weights)[0]
        for empty, holding in zip(missing, shares, strict=True):
            yield two_sample_record.ColumnContents(empty, value=level, share=holding)
        return
    common, is_date = common_number(x, y), x.kind == "date"

    def told(number: float) -> float | str:
        return date_text(number)[: len("1970-01-01T00:00")] if is_date else float(number)

    for values, weight, empty in zip((x.values, y.values), weights, missing, strict=True):
        mean, deviation = _mean_and_deviation(values, weight)
        # Without weights between two values where those tell no one.
        how: Any = {} if weight is None else {"weights": weight, "method": "inverted_cdf"}
        lower, median, upper = (told(one) for one in np.quantile(values, [0.25, 0.5, 0.75], **how).tolist())
        value = None if common is None else str(told(common)) if is_date else f"{common:.15g}"
        share = None if common is None else float(np.average(values == common, weights=weight))
        yield two_sample_record.ColumnContents(empty, told(mean), deviation, lower, median, upper, value, share)


def _mean_and_deviation(values: Array, weights: Array | None) -> tuple[float, float]:
    """Return the mean and the standard deviation, divisor n - 1, of weighted rows."""
    _, (centre,), (spread,) = standardize(values[:, None])
    if np.ptp(values) == 0:
        return float(centre), 0.0
    z, unbiased = (values - centre) / spread, float(np.sqrt(len(values) / (len(values) - 1)))
    mean = float(np.average(z, weights=weights))
    square = float(np.average((z - mean) ** 2, weights=weights))
    return float(centre + mean * spread), float(spread * np.sqrt(square)) * unbiased


def _gaps(column: Column) -> NDArray[np.bool_]:
    """Return which rows have no value, also where that is a category of its own."""
    gaps = (
        column.values == column.levels.index(GAP) if GAP in column.levels else np.zeros(len(column.values), dtype=bool)
    )
    return np.asarray(column.missing | gaps)


def common_number(x: Column, y: Column) -> float | None:
    """Return the number, or day, that a large share of all rows hold, such as 0 in a column of counts; None without one."""
    different, counts = np.unique(np.concatenate([x.values, y.values]), return_counts=True)
    most = int(np.argmax(counts))
    return float(different[most]) if counts[most] >= COMMON * counts.sum() else None


def moved(x: Column, y: Column, weights: Sequence[Array | None] = (None, None)) -> list[tuple[str, float, float]]:
    """Return each value of a column of categories with its shares of the weighted X and Y, the one that moved most first.

    Of values that moved alike the last in order: of two values the second, as true behind false.
    """
    in_x, in_y = (
        dict(zip(one.levels, np.bincount(one.values, weights=some, minlength=len(one.levels)).tolist(), strict=True))
        for one, some in zip((x, y), weights, strict=True)
    )
    n_x, n_y = sum(in_x.values()), sum(in_y.values())
    values = sorted({*x.levels, *y.levels}, reverse=True)
    counts = [(value, in_x.get(value, 0), in_y.get(value, 0)) for value in values]
    # Whole numbers, or nearly: what moved alike must not hang on rounding.
    counts.sort(key=lambda one: -round(abs(one[1] * n_y - one[2] * n_x), 6))
    return [(value, of_x / n_x, of_y / n_y) for value, of_x, of_y in counts]


def typical_rows(sample: Sample, verdict: Verdict, tables: Sequence[Table]) -> tuple[two_sample_record.TypicalRow, ...]:
    """Return the rows that are most typical of X, then those of Y, by the witness function."""
    witness, (kernel,), sizes = verdict.found.witness, verdict.kernels, np.bincount(sample.labels, minlength=2)
    # Its value at a row is the product of a row of K with the weights of the means.
    norm = float(np.sqrt(len(witness) * (1.0 / sizes).sum()))
    rounding = tie_tolerance(float(np.abs(kernel.diagonal(sample.points)).max()), 1, norm)
    rows = []
    for table, name, side, sign in zip(tables, names_apart(tables), (1, 0), (1.0, -1.0), strict=True):
        members, numbers = np.flatnonzero(sample.labels == side), table.numbers()
        for row in members[descending(sign * witness[members], rounding)[:ROWS_SHOWN]]:
            place = int(sample.origin[row])
            line = None if table.lines is None else int(table.lines[place])
            file = None if table.file_of is None else table.files[table.file_of[place]]
            rows.append(two_sample_record.TypicalRow(name, int(numbers[place]), line, float(witness[row]), file))
    return tuple(rows)
