"""The one way of every exact test: what it takes, counted before it runs, and the record of what it found."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

import kerntest
from kerntest.data.diagnostics import copies_warning
from kerntest.data.facts import counts_rows
from kerntest.engines import engine as engines
from kerntest.errors import UndecidedError, UsageError, listed, one_of
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

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table
    from kerntest.engines.engine import Engine
    from kerntest.inference.family import Family
    from kerntest.inference.sides import Groups, Options, Paired, Sample
    from kerntest.inference.statistic import Effect
    from kerntest.kernels.base import Array, Kernel, Points
    from kerntest.report.results.independence_record import IndependenceResult

Statistic: TypeAlias = Literal["hsic", "coco"]

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
ABOUT_FEATURES = "--method features takes any number of rows"
ABOUT_COLUMNS = "test fewer columns, or a part of the rows"

# Neighbouring rows that are this much alike, in standard errors of the serial correlation, are no random sample.
SERIAL_ERRORS = 6.0
FEWEST_ROWS_IN_SERIES = 30


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


def by_features(method: str, features: str | None, exact_only: Mapping[str, bool]) -> bool:
    """Say whether a test goes by features; refuse features where it does not, and what needs kernel matrices where it does."""
    one_of("method", method, ("exact", "features"))
    if method == "exact" and features is not None:
        raise UsageError(
            f"features {features!r} need method features",
            hint="add --method features, or leave out --features",
            code="usage.method",
        )
    for option in [option for option, given in exact_only.items() if given and method == "features"]:
        raise UsageError(
            f"{option} needs --method exact", hint=f"leave out {option}, or --method features", code="usage.method"
        )
    return method == "features"


def minimum_effect(minimum: float, kernel: Kernel, found: Effect, alpha: float) -> record.MinimumEffect:
    """Return whether the lower Gaussian confidence bound of MMD reaches a minimum; without a standard error it is 0."""
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


def series_warning(alike: Sequence[Sequence[str]]) -> list[str]:
    """Return a warning where some columns of both sides, named here, are alike from row to row.

    Two unrelated random walks look dependent to every test that takes rows for independent.
    """
    names = listed([repr(names[0]) for names in alike if names])
    warning = (
        f"neighbouring rows are alike in {names}: if the rows are a series in time, the p-value is far too small; "
        "--time-series tests series"
    )
    return [warning] if all(alike) else []


def runs_of(columns: Sequence[Column], rows: NDArray[np.intp] | None = None) -> list[str]:
    """Return the names of the columns that are correlated from row to row, missing values left out, or over some rows."""
    return [
        column.name
        for column in columns
        if not column.is_category and _runs_in_order(column.values[~column.missing if rows is None else rows])
    ]


def _runs_in_order(values: Array) -> bool:
    """Say whether numbers are correlated from row to row, or count the rows."""
    if len(values) < FEWEST_ROWS_IN_SERIES:
        return False
    if counts_rows(values):
        return True
    # Equal values have equal ranks: their place in the file would make a series of any column with ties.
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts + 1))[place]
    ranks -= ranks.mean()
    total = float(ranks @ ranks)
    return total > 0 and float(ranks[1:] @ ranks[:-1]) / total * np.sqrt(len(ranks)) > SERIAL_ERRORS


def paired_copies(paired: Paired) -> list[str]:
    """Return the warning about copies among the rows of a test."""
    points = [one.points for one in paired.variables]
    return copies_warning([column for one in points for column in (*one.numeric.T, *one.codes.T)])


# What a test takes


class Further(NamedTuple):
    """What an exact test computes besides: in words, how many matrices are held at once, and its operations."""

    what: str
    matrices: int
    operations: Mapping[str, float]


class Work:
    """An exact test as far as its cost goes: the kernels over the rows, on one side (the other is the label) or on two."""

    def __init__(
        self,
        command: str,
        sides: Sequence[tuple[Points, Sequence[Kernel]]],
        columns: int,
        options: Options,
        *,
        further: Sequence[Further] = (),
        coco: bool = False,
    ) -> None:
        self.command, self.sides, self.columns, self.options = command, sides, columns, options
        self.further, self.coco = further, coco
        self.rows, self.paired = len(sides[0][0]), len(sides) > 1
        self.first, self.second = len(sides[0][1]), len(sides[1][1]) if self.paired else 1
        self.permuted, self.at_random = options.null == "permutation", options.resampling == "random"
        self.circle = shifts.circle_length(self.rows)
        self.orders = shifts.orders_needed(options.permutations if self.permuted else 1, self.circle)
        # So many vectors a null without relabellings multiplies a matrix with.
        probes = {"moments": 2 * PROBES, "pearson": 2 * PROBES, "spectral": PROBES}.get(options.null, 0)
        self.vectors = self.rows if probes and self.rows <= EXACT_TRACE_ROWS else probes

    def prepared(self, engine: Engine) -> Engine:
        """Tell the plan of a test to whoever listens, and return the engine on which it fits into the memory."""
        what = f"the exact test of {self.rows:,} rows takes"
        engine = engines.fitting(engine, self.held, what=what, hint=ABOUT_FEATURES)
        count = self.first + self.second
        most = math.isqrt(engines.allowed_bytes(8 * DENSE_ENTRIES) // (8 * count))
        if self.at_random and self.paired and self.permuted and self.rows > most:
            matrices = "two kernels" if count == 2 else f"{count} kernels"
            raise UndecidedError(
                f"random permutations of {matrices} hold whole matrices: {self.rows:,} rows are more than {most:,}",
                hint="--resampling shifts has no such limit"
                + ("" if count == 2 else "; or name one kernel for each side"),
                code="undecided.memory",
            )
        if engines.plan_wanted(self.rows):
            ranks = self.ranks()
            operations = Counter(self.operations(ranks))
            for one in self.further:
                operations.update(one.operations)
            engines.tell(
                self.command,
                self.rows,
                self.columns,
                steps=(self.step(few=ranks is not None), *(one.what for one in self.further)),
                held=self.held(engine.threads if engine.name == "local" else 1),
                operations=operations,
                engine=engine,
            )
        return engine

    def ranks(self) -> list[int] | None:
        """Return the columns of all matrices of each side as products of few, by a sample of the rows; None if one is not."""
        if self.rows <= FEW_ROWS or not self.permuted:
            return None
        rows, ranks = np.unique(np.linspace(0, self.rows - 1, SAMPLED).astype(np.intp)), []
        for points, kernels in self.sides:
            factors = [low_rank_factor(kernel, points.take(rows)) for kernel in kernels]
            ranks += [sum(factor.columns.shape[1] for factor in factors if factor is not None)]
            if None in factors:
                return None
        return ranks

    def held(self, threads: int) -> float:
        """Return about the bytes that a test holds: the rows, the blocks under way, and the sums."""
        held = engines.TABLE_BYTES * float(self.rows) * self.columns
        if self.options.null in {"permutation", "pearson"} or self.further:
            held += self._relabelled(threads)
        if self.vectors:
            # With the diagonal beside the vectors of a cubic trace.
            beside = self.rows > EXACT_TRACE_ROWS and self.options.null != "spectral"
            held += self._swept(self.vectors + beside, threads)
        return held

    def _swept(self, vectors: int, threads: int) -> float:
        """Return the bytes that products of a matrix with so many vectors take: one set for each strip under way."""
        return 8.0 * self.rows * vectors * (threads + SWEPT)

    def _relabelled(self, threads: int) -> float:
        """Return the bytes that sums over relabellings take."""
        n, first, second, permutations = self.rows, self.first, self.second, self.options.permutations
        if self.at_random and self.paired:
            return 8.0 * n * n * (first + second)
        if self.at_random:
            return self._swept(min(TOGETHER_ROWS, permutations) + 1, threads)
        if not self.paired:
            first = max([first, *(one.matrices for one in self.further)])
            return 8.0 * first * (SUMS * min(n, 2 * BLOCKS) ** 2 + permutations) + TILE_BYTES * threads
        circle, orders = self.circle, self.orders
        stacked = first >= shifts.MANY and second * orders >= shifts.MANY
        lines = max(block.count for block in plan_blocks(circle, n - circle, first + second if stacked else 1))
        # As `shift_sums` goes: transforms of the second side are held for some orders, of the first where it multiplies
        # all at once.
        together = second * min(orders, max(1, shifts.HELD_ENTRIES // (second * circle * lines)))
        blocks = BLOCK_SHARE * threads * ((2 + first if stacked else 3) + together) * lines * circle
        spectra = (threads + UNDER_WAY) * first * together * circle
        return 8.0 * (blocks + spectra + SUMS * first * second * orders * circle)

    def step(self, *, few: bool) -> str:
        """Return in words what will be computed, of matrices that are products of few columns or not."""
        permutations, circle = self.options.permutations, self.circle
        count = f"{self.first} + {self.second}" if self.paired else f"{self.first}"
        counted = f"{count} kernel {'matrix' if max(self.first, self.second) == 1 else 'matrices'}"
        if not self.permuted:
            return f"{counted} in tiles, for the {self.options.null} null"
        if self.at_random:
            return f"{counted} {'whole' if self.paired else 'in tiles'}, under {permutations:,} random permutations"
        way = "as products of few columns" if few else "in tiles"
        if not self.paired:
            return f"{counted} {way}, summed over blocks of rows, under {permutations:,} permutations of these"
        if not few:
            blocks = len(plan_blocks(circle, self.rows - circle))
            way = f"a block of lags at a time, {blocks:,} block{'' if blocks == 1 else 's'}"
        return f"{counted} {way}, under {self.orders * circle:,} cyclic relabellings"

    def operations(self, ranks: Sequence[int] | None = None) -> dict[str, float]:
        """Return how many operations of which kind a test takes; of matrices of low rank, if their ranks are known."""
        first, second, permutations, pairs = self.first, self.second, self.options.permutations, float(self.rows) ** 2
        matrices = first + second * self.paired
        passes = {"distance": len(self.sides) * pairs, "product": self.columns * pairs, "kernel": matrices * pairs}
        if self.coco:
            return passes | {"relabelled": 6.0 * permutations * pairs}
        if not self.permuted:
            # Sums, then the sums of squares and of products, then what the vectors need.
            return {"distance": 4.0 * matrices * pairs, "product": 2.0 * matrices * self.vectors * pairs}
        if self.at_random and self.paired:
            return passes | {"relabelled": 6.0 * permutations * first * second * pairs}
        if self.at_random:
            return passes | {"product": (self.columns + permutations * matrices) * pairs}
        if ranks is not None:
            return {"product": 1e4 * self.rows * matrices + 150.0 * self.rows * math.prod(ranks)}
        if not self.paired:
            blocks = float(min(self.rows, 2 * BLOCKS)) ** 2
            return passes | {"product": self.columns * pairs + permutations * first * blocks}
        return passes | {"lag": (first + second * self.orders) * pairs, "pair": first * second * self.orders * pairs}


def held_by_stacks(rows: int, matrices: int, engine: Engine) -> float:
    """Return the bytes that blocks of lines of many matrices take while they are under way."""
    return STACKED_BYTES * min(HELD_ENTRIES, 128 * rows * matrices) * engine.threads


def piece_bytes(columns: int) -> int:
    """Return what a piece of a file takes while it is read and worked on (in Parquet its pages too)."""
    return PIECE_BYTES + COLUMN_BYTES * columns
