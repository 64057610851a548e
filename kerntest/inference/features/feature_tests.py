"""Both tests by features, for any number of rows: a survey of the inputs, sums of features over all rows, a verdict.

The sums are those over blocks of random rows for two samples, and of products for two variables; all else is one way.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kerntest.data.diagnostics import copies_warning, counters
from kerntest.data.table import Table
from kerntest.engines.engine import Engine
from kerntest.errors import DataError, UsageError, listed
from kerntest.inference import exact
from kerntest.inference.family import Family, KernelChooser, choose_pair, two_sample_exponents
from kerntest.inference.features.block_sums import (
    Blocked,
    BlockSums,
    block_curve_verdict,
    family_features,
    permuted_verdict,
    plan_blocks,
)
from kerntest.inference.features.product_sums import ProductSums, SideFeatures, speaking_rows
from kerntest.inference.features.two_passes import Input, Survey, open_input
from kerntest.inference.nulls.approximations import curve_p_value
from kerntest.inference.relabelling.permuted_pairs import centred_matrix
from kerntest.inference.sides import FEWEST_ROWS, Groups, Reading, read_pair, too_few_rows
from kerntest.inference.verdict import Verdict, overflow
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.elementary import Linear
from kerntest.kernels.text import is_additive
from kerntest.matrices.factor import feature_error
from kerntest.report.results import record
from kerntest.report.results.independence_record import PairApproximation
from kerntest.report.summaries.words import percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kerntest.engines.engine import Progress
    from kerntest.inference.family import BandwidthOption
    from kerntest.inference.sides import Options, Variable
    from kerntest.kernels.bandwidth import BandwidthChooser
    from kerntest.kernels.base import Array, Kernel
    from kerntest.matrices.factor import FeatureMap

# What a record is made of, by place and by name.
Found: TypeAlias = "tuple[tuple[exact.RunOfTest, Verdict, Family, record.Provenance], dict[str, Any]]"

# Landmarks of a two-sample test, and of each side of a test of independence.
TWO_SAMPLE_FEATURES, SIDE_FEATURES = "nystroem:300", "nystroem:200"
# Rows on which features are compared with the kernel.
TWO_SAMPLE_ERROR_ROWS, SIDE_ERROR_ROWS = 800, 1000
# Some hundred features leave out much of what kernels see whose bandwidth is below so many factors of two of the median.
NARROWEST = -1
# The features leave out so much of a kernel matrix that this should be known.
LARGE_ERROR = 0.1


def _errors(features: FeatureMap, rows: Points, Z: Array) -> tuple[float, float]:
    """Return what features Z of some rows leave out of their kernel K.

    The root mean square of Z Z' - K over pairs of different rows; and |A - A_z| / |A| in the Frobenius norm, A and A_z the
    centred K and Z Z'.
    """
    K = features.kernel(rows)
    apart = Z @ Z.T - K
    exact, centred = centred_matrix(K, "biased"), centred_matrix(apart, "biased")
    size = float(np.linalg.norm(exact))
    kernel_error = float(np.sqrt(np.mean(np.square(apart[~np.eye(len(K), dtype=bool)]))))
    return kernel_error, float(np.linalg.norm(centred)) / size if size > 0 else 0.0


def _side_errors(features: FeatureMap, rows: Points, seed: int) -> tuple[float, float]:
    """Return the same of one side, the first over pairs of some random rows, each with itself too."""
    few = rows.take(slice(SIDE_ERROR_ROWS))
    return feature_error(features, rows, Engine(1), seed), _errors(features, few, features.of_block(few))[1]


def _large_error(subject: str, error: float) -> list[str]:
    """Return a warning where the features leave out much of the kernel."""
    warning = (
        f"{subject} features leave out {percent(error)} of what the kernel sees; the test is valid, but sees less: ask for "
        "more --features, or a larger bandwidth"
    )
    return [warning] if error > LARGE_ERROR else []


@np.errstate(over="ignore", invalid="ignore")
def mmd_by_features(
    x: Any,
    y: Any,
    options: Options,
    *,
    features: str,
    kernel: Kernel | str,
    bandwidth: BandwidthOption,
    min_effect: float | None,
    reading: Reading,
    threads: int | None,
    progress: Progress | None,
) -> Found:
    """Run the test of `mmd_test` with ``method="features"``, and return what its record is made of. Cost: O(n M (p + F)) time, M features of F kernels."""
    found = Survey("mmd", options, features, threads, progress)
    options = found.options
    # Landmarks are rows of the sample, and others show how far the features are from the kernel.
    sampled = found.number + TWO_SAMPLE_ERROR_ROWS if found.kind == "nystroem" else 0
    with found.over((x, y), reading, sampled):
        blocks = plan_blocks(found.n, found.names)
        family, extra = _two_sample_kernels(found, kernel, bandwidth, measured=min_effect is not None)
        kernels = (*family.kernels, *extra)
        if all(isinstance(one, Linear) for one in kernels):
            # Only to the linear kernel every origin is the same; a far one would take its digits away.
            mean = found.sample.points.numeric.mean(axis=0)
            points = Points(found.sample.points.numeric - mean, found.sample.points.codes)
            centre = found.sample.centre + mean * found.sample.spread
            found.sample = replace(found.sample, points=points, centre=centre)
        maps = family_features(found.features, kernels, found.sample.points, options.seed)
        work = BlockSums(maps, blocks, options.seed)
        numbers = sum(math.prod(work.shape(source)) for source in range(2))

        def held(threads: int) -> float:
            # Each piece under way has the sums once, and the result too.
            return 8.0 * numbers * (threads + 3)

        step = f"{work.width:,} features of each of {len(kernels)} kernels, summed over blocks of rows"
        operations = {"kernel": 3.0 * len(kernels) * work.width * sum(found.n)}
        sums = found.sums(work, step=step, held=held, operations=operations)
    blocked = [
        Blocked(features, [some[:, member] for some in sums], blocks, found.sample.points)
        for member, features in enumerate(maps)
    ]
    judged = permuted_verdict if options.null == "permutation" else block_curve_verdict
    verdict = judged(family, blocked[: len(family.members)], options, found.engine)
    chosen = blocked[kernels.index(verdict.kernels[0])]
    # Errors are those of rows that are no landmarks where there are enough.
    rows_sampled, landmarks = len(chosen.sample), len(chosen.features.landmarks)
    first = landmarks if rows_sampled > landmarks + TWO_SAMPLE_ERROR_ROWS // 2 else 0
    others = slice(first, first + TWO_SAMPLE_ERROR_ROWS)
    errors = _errors(chosen.features, chosen.sample.take(others), chosen.sampled[others])
    minimum = None
    if min_effect is not None:
        minimum = exact.minimum_effect(min_effect, kernels[-1], blocked[-1].effect(), options.alpha)
    large = _large_error(f"the {found.features}", errors[1])
    verdict = replace(verdict, warnings=(*large, *verdict.warnings))
    rule = f"{family.rule}, on {rows_sampled:,} sampled rows" if family.thinning else family.rule
    free, fixed_rows = sum(each.free for each in blocks), sum(each.fixed_rows for each in blocks)
    return (found, verdict, family, found.provenance(found.tables, found.n, (kernel,), rule)), {
        "n": found.n,
        "columns": found.columns,
        "left_out": found.left_out,
        "minimum": minimum,
        "warnings": found.warnings,
        "method": "features",
        "approximation": record.Approximation(
            found.features, found.kind, work.width, *errors, rows_sampled, free, blocks[0].size, fixed_rows
        ),
    }


def _two_sample_kernels(
    found: Survey, kernel: Kernel | str, bandwidth: BandwidthOption, *, measured: bool
) -> tuple[Family, tuple[Kernel, ...]]:
    """Return the kernels that are judged, as many as the exact test has, and of several the one that effects are measured by."""

    def exponents(base: Kernel, chooser: BandwidthChooser) -> list[int]:
        """Those of the exact test that features can stand for; random waves only for all columns together."""
        exponents = [] if found.kind == "fourier" and is_additive(base) else two_sample_exponents(base, chooser)
        return [exponent for exponent in exponents if exponent >= NARROWEST]

    options = found.options
    chooser = KernelChooser(found.sample, options.seed, exponents=exponents, relabellings=options.permutations)
    family = chooser.family(kernel, bandwidth, single=options.null != "permutation")
    if family.thinning:
        rule = f"{sum(found.n):,} rows: bandwidths of the exact test from half the median on"
        family = replace(family, thinning=rule)
    alone = not measured or len(family.kernels) == 1
    return family, () if alone else chooser.family("auto", "median", single=True).kernels


@np.errstate(over="ignore", invalid="ignore")
def hsic_by_features(
    x: Any,
    y: Any,
    options: Options,
    *,
    features: str,
    kernels: tuple[Kernel | str, Kernel | str],
    bandwidth: BandwidthOption,
    reading: Reading,
    threads: int | None,
    progress: Progress | None,
) -> Found:
    """Run the test of `hsic_test` with ``method="features"``, and return what its record is made of. Cost: O(n (M (p + r) + r^2)) time, r of M features a side."""
    found = Survey("hsic", options, features, threads, progress)
    if options.null in {"permutation", "pearson"}:
        raise UsageError(
            f"--null {options.null} needs relabelled values that the features do not give",
            hint="with --method features the null is moments, gamma or spectral",
            code="usage.method",
        )
    if not isinstance(bandwidth, str) and np.size(bandwidth) > 1:
        raise UsageError(
            "features stand for one pair of kernels: give one bandwidth",
            hint="--method exact judges several bandwidths together",
            code="usage.method",
        )
    options = found.options
    with _opened_groups(x, y, reading) as (data, groups):
        names = [name for table in groups.tables for name in table.names]
        whole = replace(reading, columns=names, exclude=None, categorical=reading.categorical if y is None else ())
        with found.over((data,), whole, 2 * found.number):
            n, m = found.n[0], len(found.sample.points)
            columns, variables = _sides(groups, found)
            rows = speaking_rows(n, m, options.seed)
            first = [min(map(found.columns.index, variable.names)) for variable in variables]
            if first[1] < first[0]:
                # Which rows speak for a side does not depend on which of the two is called x.
                rows.reverse()
            chosen = [variable.take(some) for variable, some in zip(variables, rows, strict=True)]
            family = choose_pair(kernels, bandwidth, chosen, seed=options.seed, single=True)
            left, right = (
                SideFeatures.of(found.features, kernel, side, variable.points, options.seed)
                for kernel, side, variable in zip(family.members[0], columns, chosen, strict=True)
            )
            work = ProductSums((left, right))
            ranks = left.map.size, right.map.size
            width = sum(ranks)
            (gram,) = found.sums(
                work,
                step=f"products of {ranks[0]:,} + {ranks[1]:,} features, for the {options.null} null",
                held=lambda threads: 8.0 * width**2 * (threads + 2),
                operations={"kernel": 1.0 * width * n, "product": 1.0 * width**2 * n},
            )
    pair = work.pair(gram, found.sample.points, options.estimator)
    for centred in (pair.x, pair.y):
        if not np.isfinite(centred.gram).all():
            raise overflow(centred.kernel)
    p_value, null = curve_p_value(options.null, pair)
    # On rows that had no say in the features.
    others = [side.points(found.sample.points.take(some)) for side, some in zip(work.sides, rows[::-1], strict=True)]
    (kernel_x, matrix_x), (kernel_y, matrix_y) = (
        _side_errors(side.map, some, options.seed) for side, some in zip(work.sides, others, strict=True)
    )
    few_rows = f"the variance of the Gamma null is that of {m:,} rows drawn at random"
    doubts = (
        *_large_error("x: the", matrix_x),
        *_large_error("y: the", matrix_y),
        *([few_rows] if options.null == "gamma" and m < n else ()),
    )
    verdict = Verdict(p_value, family.members[0], pair.effect(), null, warnings=doubts)
    errors = kernel_x, kernel_y, matrix_x, matrix_y
    return (found, verdict, family, found.provenance(found.tables, found.n, kernels, family.rule)), {
        "groups": groups,
        "unused": [found.left_out] * 2,
        "n": n,
        "warnings": (
            *groups.warnings,
            *(text for text in found.warnings if text not in groups.warnings),
            *exact.series_warning([exact.runs_of(table.columns) for table in groups.tables]),
            *(text for table in groups.tables for text in counters(table.columns)),
            *copies_warning([*found.sample.points.numeric.T, *found.sample.points.codes.T], total=n),
        ),
        "method": "features",
        "approximation": PairApproximation(found.features, found.kind, *ranks, *errors, m),
    }


@contextmanager
def _opened_groups(x: Any, y: Any, reading: Reading) -> Iterator[tuple[Input, Groups]]:
    """Give an input with its two groups of columns, as its first rows show them."""
    if y is None:
        name = None if isinstance(x, Table) else "data"
        with open_input(x, name, reading.categorical, reading.csv) as data:
            yield data, read_pair(data.head, None, replace(reading, categorical=()))
        return
    if any(isinstance(one, (str, Path)) for one in (x, y)):
        raise UsageError(
            "--method features reads one file with the columns of both sides",
            hint="join the two files row by row into one, and name the columns with --x and --y",
            code="usage.method",
        )
    # Two tables whose rows pair are one; a name that both have is followed by that of its table.
    groups, tables = read_pair(x, y, reading), []
    both = set(groups.tables[0].names) & set(groups.tables[1].names)
    for table, letter in zip(groups.tables, "xy", strict=True):
        columns = [
            replace(column, name=f"{column.name} of {letter}" if column.name in both else column.name, remarks=())
            for column in table.columns
        ]
        tables.append(replace(table, columns=tuple(columns)))
    name = " and ".join(dict.fromkeys(table.name for table in tables))
    joined = replace(tables[0], name=name, columns=(*tables[0].columns, *tables[1].columns), notes=())
    yield Input(joined), Groups((joined,), tuple(tables), groups.warnings)


def _sides(groups: Groups, found: Survey) -> tuple[list[Columns], list[Variable]]:
    """Return which columns of the rows are x and which y, and what the sample is of them; DataError if there are none."""
    n, sample, p = found.n[0], found.sample, len(found.sample.numeric_names)
    if n < FEWEST_ROWS:
        raise too_few_rows(groups, n, dropped=found.rows[0] > n)
    columns, variables = [], []
    for table in groups.tables:
        places = [place for place, name in enumerate(sample.names) if name in table.names]
        if not places:
            raise DataError(
                f"no column is left to test among {listed(table.names)} of {table.name}: {'; '.join(found.warnings)}",
                hint="a column must hold at least two different values, and not one per row",
                code="data.no_columns",
                where={"file": table.name},
            )
        columns.append(Columns(tuple(k for k in places if k < p), tuple(k - p for k in places if k >= p)))
        variables.append(sample.with_columns(set(places)))
    return columns, variables
