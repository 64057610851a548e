"""The one way of every exact test: what it takes, counted before it runs, and the record of what it found."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

import kerntest
from kerntest.data.diagnostics import copies_warning
from kerntest.engines import engine as engines
from kerntest.errors import UndecidedError, UsageError, one_of, option
from kerntest.inference.nulls.moments import EXACT_TRACE_ROWS, PROBES
from kerntest.inference.relabelling import shifts
from kerntest.inference.relabelling.permuted_blocks import BLOCKS, TOGETHER_ROWS
from kerntest.inference.verdict import Verdict, judged_together
from kerntest.kernels.text import why_not_characteristic
from kerntest.matrices.factor import FEW_ROWS, low_rank_factor
from kerntest.matrices.passes import HELD_ENTRIES, plan_blocks
from kerntest.report.results import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kerntest.data.table import Table
    from kerntest.engines.engine import Engine
    from kerntest.inference.family import Family
    from kerntest.inference.sides import Groups, Options, Paired, Sample
    from kerntest.inference.statistic import Effect
    from kerntest.kernels.base import Kernel, Points
    from kerntest.report.results.independence_record import IndependenceResult

Statistic: TypeAlias = Literal["hsic", "coco"]
Side: TypeAlias = "tuple[Points, Sequence[Kernel]]"

# Rows on which it is looked up whether a matrix has few columns.
SAMPLED = 4800
# Of measured peaks: what tiles and FFT take besides the arrays of a block, finished pieces that wait, copies of the sums
# while they are judged, and of vectors while a matrix is multiplied with them.
BLOCK_SHARE, UNDER_WAY, SUMS, SWEPT = 1.3, 3, 8, 8
# A tile of the matrices of a two-sample test with the arrays that go with it.
TILE_BYTES = 2**22
# The same of blocks of many matrices, in bytes for each entry.
STACKED_BYTES = 24.0
# Random permutations work on whole matrices: so many entries of all of them together (1 GB).
DENSE_ENTRIES = 2**27
# A piece of a file, and each of its columns.
PIECE_BYTES, COLUMN_BYTES = 90 * 10**6, 3 * 10**6
ABOUT_COLUMNS = "test fewer columns, or a part of the rows"


class TwoSampleAnalysis(NamedTuple):
    """A two-sample test with what it was made from, for pictures and the witness function: `tables` has the rows used."""

    result: record.TwoSampleResult
    verdict: Verdict
    sample: Sample
    tables: tuple[Table, ...]


class IndependenceAnalysis(NamedTuple):
    """An independence test with what it was made from, for pictures and witness functions."""

    result: IndependenceResult
    verdict: Verdict
    paired: Paired
    groups: Groups


class RunOfTest:
    """One run of a test: its options as they fit the null and the statistic, where it is computed, and its record."""

    def __init__(self, options: Options, threads: int | None, statistic: Statistic = "hsic") -> None:
        self.started, self.engine = time.perf_counter(), engines.engine_of(threads)
        self.options, self.adapted = options, tuple[str, ...]()
        if statistic == "coco":
            self.options = replace(options, estimator="biased")
        elif options.null == "gamma" and options.estimator == "unbiased":
            self.options = replace(options, estimator="biased")
            self.adapted = ("the Gamma null is a law of the biased statistic: that one is tested and reported",)

    def provenance(
        self, tables: Sequence[Table], rows_used: Sequence[int], asked: tuple[Kernel | str, ...], rule: str
    ) -> record.Provenance:
        """Return what is needed to run a test of some rows of tables again and get the same numbers."""
        texts = [str(kernel) for kernel in asked]
        same = len(set(texts)) == 1
        return record.Provenance(
            version=kerntest.__version__,
            seed=self.options.seed,
            inputs=tuple(record.InputRecord.of(one, rows) for one, rows in zip(tables, rows_used, strict=False)),
            kernel=texts[0] if same else "; ".join(f"{name}: {text}" for name, text in zip("xy", texts, strict=True)),
            bandwidth=rule,
            scale=self.options.scale,
            dtype=self.engine.dtype,
            threads=self.engine.threads,
            libraries=record.library_versions(),
            seconds=time.perf_counter() - self.started,
            engine=self.engine.name,
            device=self.engine.device,
        )

    def fields(
        self, verdict: Verdict, family: Family, member: Callable[..., Any], warnings: Sequence[str]
    ) -> dict[str, Any]:
        """Return the fields that the records of all tests of two sides have."""
        return {
            "statistic": verdict.found.estimate(self.options.estimator) if verdict.coco is None else verdict.coco,
            "estimator": self.options.estimator,
            "p_value": verdict.p_value,
            "alpha": self.options.alpha,
            "effect_size": verdict.found.effect_size,
            "null": verdict.null,
            "family": judged_together(family, verdict.judged, self.options.judge, member),
            "warnings": (*warnings, *kernel_warnings(family, verdict.kernels), *self.adapted, *verdict.warnings),
        }

    def prepare(
        self, command: str, sides: Sequence[Side], columns: int, *, further: Sequence[Step] = (), coco: bool = False
    ) -> None:
        """Tell the plan of a test, and of what is computed further, and find the engine on which it fits into the memory.

        A side has rows and the kernels over them; of one side the other is the label.
        """
        n, count = len(sides[0][0]), sum(len(kernels) for _, kernels in sides)
        steps = step_of_test(sides, columns, self.options, coco=coco), *further

        def held(threads: int) -> float:
            return engines.TABLE_BYTES * float(n) * columns + max(step.held(threads) for step in steps)

        self.engine = engines.fitting(
            self.engine,
            held,
            what=f"the exact test of {n:,} rows takes",
            hint=f"{option('method', 'features')} takes any number of rows",
        )
        most = math.isqrt(engines.allowed_bytes(8 * DENSE_ENTRIES) // (8 * count))
        if self.options.resampling == "random" and len(sides) > 1 and self.options.null == "permutation" and n > most:
            raise UndecidedError(
                f"random permutations of {count} kernels hold whole matrices: {n:,} rows are more than {most:,}",
                hint=f"{option('resampling', 'shifts')} has no such limit"
                + ("; or name one kernel for each side" if count > 2 else ""),
                code="undecided.memory",
            )
        if engines.plan_wanted(n):
            ranks = low_ranks(sides) if self.options.null == "permutation" else None
            steps = step_of_test(sides, columns, self.options, ranks, coco=coco), *further
            operations: Counter[str] = Counter()
            for step in steps:
                operations.update(step.operations)
            engines.tell(
                command,
                n,
                columns,
                steps=tuple(step.what for step in steps),
                held=held(self.engine.threads if self.engine.name == "local" else 1),
                operations=operations,
                engine=self.engine,
            )


def by_features(method: str, features: str | None, exact_only: Mapping[str, bool]) -> bool:
    """Say whether a test goes by features; refuse features where it does not, and what needs kernel matrices where it does."""
    one_of("method", method, ("exact", "features"))
    if method == "exact" and features is not None:
        raise UsageError(
            f"features {features!r} need method features",
            hint=f"add {option('method', 'features')}, or leave out {option('features')}",
            code="usage.method",
        )
    for one in [one for one, given in exact_only.items() if given and method == "features"]:
        raise UsageError(
            f"{one} needs {option('method', 'exact')}",
            hint=f"leave out {one}, or {option('method', 'features')}",
            code="usage.method",
        )
    return method == "features"


def minimum_effect(minimum: float, kernel: Kernel, found: Effect, alpha: float) -> record.MinimumEffect:
    """Return whether the lower Gaussian confidence bound of MMD reaches a minimum; without a standard error it is 0."""
    from statistics import NormalDist  # noqa: PLC0415 - 3 ms that only this needs

    mmd = math.sqrt(max(found.unbiased, 0.0))
    error = found.standard_error if math.isfinite(found.standard_error) else None
    lower = 0.0 if error is None else max(mmd + NormalDist().inv_cdf(alpha) * error, 0.0)
    return record.MinimumEffect(minimum, str(kernel), mmd, error, lower, lower >= minimum)


# What a reader must know before believing a test


def kernel_warnings(family: Family, kernels: tuple[Kernel, ...]) -> list[str]:
    """Return warnings where the kernels do not see everything."""
    warnings = []
    if family.unused:
        names = ", ".join(family.unused)
        warnings.append(f"columns that the kernel does not name are left out: {names} (add '*: ...' to use them)")
    # What the reported kernels do not see, others of their family may.
    all_seen = any(all(kernel.characteristic for kernel in member) for member in family.members)
    statistic, square, sides = ("HSIC", "", ("x: ", "y: ")) if len(kernels) > 1 else ("MMD", "^2", ("",))
    for kernel, side in zip(kernels, sides, strict=True):
        reason = None if all_seen else why_not_characteristic(kernel)
        if reason is not None:
            warnings.append(f"{side}{reason}".replace("MMD", statistic))
        if not kernel.positive_definite:
            warnings.append(
                f"{side}the kernel '{kernel}' is not positive definite: {statistic}{square} is then no squared distance "
                "and may be negative; the p-value is valid all the same"
            )
    return warnings


def paired_copies(paired: Paired) -> list[str]:
    """Return the warning about copies among the rows of a test."""
    points = [one.points for one in paired.variables]
    return copies_warning([column for one in points for column in (*one.numeric.T, *one.codes.T)])


# What a test takes


class Step(NamedTuple):
    """What is computed: in words, the bytes that it holds on so many threads beside the rows, and its operations."""

    what: str
    held: Callable[[int], float]
    operations: Mapping[str, float]


def low_ranks(sides: Sequence[Side]) -> list[int] | None:
    """Return the columns of all matrices of each side as products of few, by a sample of the rows; None if one is not."""
    n, ranks = len(sides[0][0]), []
    rows = np.unique(np.linspace(0, n - 1, SAMPLED).astype(np.intp))
    for points, kernels in sides if n > FEW_ROWS else ():
        factors = [low_rank_factor(kernel, points.take(rows)) for kernel in kernels]
        ranks += [sum(factor.columns.shape[1] for factor in factors if factor is not None)]
        if None in factors:
            return None
    return ranks or None


def step_of_test(
    sides: Sequence[Side], columns: int, options: Options, ranks: Sequence[int] | None = None, *, coco: bool = False
) -> Step:
    """Return what a test takes; of matrices that are products of few columns, if their ranks are known."""
    n, paired, permutations = len(sides[0][0]), len(sides) > 1, options.permutations
    first, second = len(sides[0][1]), len(sides[-1][1]) if paired else 1
    matrices, pairs = first + second * paired, float(n) ** 2
    passes = {"distance": len(sides) * pairs, "product": columns * pairs, "kernel": matrices * pairs}
    counted = f"{first} + {second}" if paired else f"{first}"
    counted += f" kernel {'matrix' if max(first, second) == 1 else 'matrices'}"
    if options.null != "permutation":
        # So many vectors a matrix is multiplied with, and the diagonal beside those of a cubic trace.
        vectors = {"moments": 2 * PROBES, "pearson": 2 * PROBES, "spectral": PROBES}.get(options.null, 0)
        vectors = n if vectors and n <= EXACT_TRACE_ROWS else vectors
        beside = n > EXACT_TRACE_ROWS and options.null != "spectral"
        # Sums, then the sums of squares and of products, then what the vectors need.
        operations = {"distance": 4.0 * matrices * pairs, "product": 2.0 * matrices * vectors * pairs}
        relabelled = step_of_test(sides, columns, replace(options, null="permutation")).held

        def held(threads: int) -> float:
            curve = swept_bytes(n, vectors + beside, threads) if vectors else 0.0
            return curve + (relabelled(threads) if options.null == "pearson" else 0.0)

        return Step(f"{counted} in tiles, for the {options.null} null", held, operations)
    if options.resampling == "random" and paired and not coco:
        what = f"{counted} whole, under {permutations:,} random permutations"
        operations = passes | {"relabelled": 6.0 * permutations * first * second * pairs}
        return Step(what, lambda _: 8.0 * matrices * pairs, operations)
    if options.resampling == "random":
        what = f"{counted} in tiles, under {permutations:,} random permutations"
        operations = passes | {"product": (columns + permutations * matrices) * pairs}
        return Step(what, lambda threads: swept_bytes(n, min(TOGETHER_ROWS, permutations) + 1, threads), operations)
    few = None if ranks is None else {"product": 1e4 * n * matrices + 150.0 * n * math.prod(ranks)}
    way = "in tiles" if few is None else "as products of few columns"
    if not paired:
        what = f"{counted} {way}, summed over blocks of rows, under {permutations:,} permutations of these"
        products = columns * pairs + permutations * first * float(min(n, 2 * BLOCKS)) ** 2
        return Step(what, partial(blocked_bytes, n, first, permutations), few or passes | {"product": products})
    circle = shifts.circle_length(n)
    orders, blocks = shifts.orders_needed(permutations, circle), plan_blocks(circle, n - circle)
    if few is None:
        way = f"a block of lags at a time, {len(blocks):,} block{'' if len(blocks) == 1 else 's'}"
    operations = passes | {"lag": (first + second * orders) * pairs, "pair": first * second * orders * pairs}
    held = partial(shifted_bytes, n, first, second, orders)
    if coco:
        what = f"{counted} as products of few columns, under {permutations:,} random permutations"
        return Step(what, held, passes | {"relabelled": 6.0 * permutations * pairs})
    return Step(f"{counted} {way}, under {orders * circle:,} cyclic relabellings", held, few or operations)


def swept_bytes(n: int, vectors: int, threads: int) -> float:
    """Return the bytes that products of a matrix with so many vectors take: one set for each strip under way."""
    return 8.0 * n * vectors * (threads + SWEPT)


def blocked_bytes(n: int, matrices: int, permutations: int, threads: int) -> float:
    """Return the bytes that sums of so many matrices over blocks of rows take."""
    return 8.0 * matrices * (SUMS * min(n, 2 * BLOCKS) ** 2 + permutations) + TILE_BYTES * threads


def shifted_bytes(n: int, first: int, second: int, orders: int, threads: int) -> float:
    """Return the bytes that sums over shifts take, as `shift_sums` goes.

    Transforms of the second side are held for some orders, of the first where it multiplies all at once.
    """
    circle, stacked = shifts.circle_length(n), first >= shifts.MANY and second * orders >= shifts.MANY
    lines = max(block.count for block in plan_blocks(circle, n - circle, first + second if stacked else 1))
    together = second * min(orders, max(1, shifts.HELD_ENTRIES // (second * circle * lines)))
    blocks = BLOCK_SHARE * threads * ((2 + first if stacked else 3) + together) * lines * circle
    spectra = (threads + UNDER_WAY) * first * together * circle
    return 8.0 * (blocks + spectra + SUMS * first * second * orders * circle)


def held_by_stacks(rows: int, matrices: int, engine: Engine) -> float:
    """Return the bytes that blocks of lines of many matrices take while they are under way."""
    return STACKED_BYTES * min(HELD_ENTRIES, 128 * rows * matrices) * engine.threads


def piece_bytes(columns: int) -> int:
    """Return what a piece of a file takes while it is read and worked on (in Parquet its pages too)."""
    return PIECE_BYTES + COLUMN_BYTES * columns
