"""The one way of every exact test: what it takes, counted before it runs, and the record of what it found."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import kerntest
from kerntest.data.diagnostics.copies import copies_warning, unused
from kerntest.engines import engine as engines
from kerntest.engines.plan import added, count_wanted, taken_by_rows, tell
from kerntest.errors import UndecidedError, option
from kerntest.inference.verdict import Verdict, judged_together
from kerntest.kernels.elementary import Periodic
from kerntest.kernels.text import why_not_characteristic
from kerntest.report.results import record, two_sample_record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kerntest.data.table import Table
    from kerntest.inference.family import Family
    from kerntest.inference.sides import Groups, Options, Paired, Resampling, Sample, Scale
    from kerntest.inference.work_of_tests import Side, Step
    from kerntest.kernels.base import Kernel
    from kerntest.report.results.independence_record import IndependenceResult

Statistic: TypeAlias = Literal["hsic", "coco", "kcc", "kmi"]

# Random permutations work on whole matrices: so many entries of all of them together (1 GB).
DENSE_ENTRIES = 2**27


class TwoSampleAnalysis(NamedTuple):
    """A two-sample test with what it was made from, for pictures and the witness function: `tables` has the rows used."""

    result: two_sample_record.TwoSampleResult
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
        if statistic != "hsic":
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
            "statistic": verdict.found.estimate(self.options.estimator)
            if verdict.spectral is None
            else verdict.spectral,
            "estimator": self.options.estimator,
            "p_value": verdict.p_value,
            "alpha": self.options.alpha,
            "effect_size": verdict.found.effect_size,
            "null": verdict.null,
            "family": judged_together(family, verdict.judged, self.options.judge, member),
            "warnings": (
                *warnings,
                *kernel_warnings(family, verdict.kernels, self.options.scale),
                *self.adapted,
                *verdict.warnings,
            ),
        }

    def prepare(
        self,
        command: str,
        n: int,
        columns: int,
        steps: Callable[[], Sequence[Step]],
    ) -> None:
        """Tell what steps over n rows take, if anybody asks, and find the engine on which they fit into the memory."""
        if count_wanted(n):
            self.announce(command, n, columns, steps())

    def refuse_dense(self, sides: Sequence[Side], n: int, others: Resampling) -> None:
        """Refuse random permutations whose matrices of n rows are too large to be held; other relabellings hold none."""
        count = sum(len(kernels) for _, kernels in sides)
        allowed = engines.allowed_bytes(8 * DENSE_ENTRIES)
        most = math.isqrt(allowed // (8 * count))
        if self.options.resampling == "random" and self.options.null == "permutation" and n > most:
            names = ["gaussian" if points.numeric.shape[1] else "hamming" for points, _ in sides]
            ways = [option(f"kernel-{side}", name) for side, name in zip("xy", names, strict=True)]
            single = f"; or take one kernel for each side: {' '.join([*ways, option('bandwidth', 'median')])}"
            fits = count > len(sides) and n <= math.isqrt(allowed // (8 * len(sides)))
            raise UndecidedError(
                f"random permutations of {count} kernels hold whole matrices: {n:,} rows are more than {most:,}",
                hint=f"{option('resampling', others)} has no such limit{single if fits else ''}",
                code="undecided.memory",
            )

    def announce(self, command: str, n: int, columns: int, steps: Sequence[Step]) -> None:
        """Tell what steps over n rows take, and find the engine on which they fit into the memory."""
        taken = taken_by_rows(n, columns)

        def need(threads: int) -> float:
            return taken + max(step.held(threads) for step in steps)

        self.engine = engines.fitting(
            self.engine,
            need,
            what=f"the exact test of {n:,} rows takes",
            hint=f"{option('method', 'features')} takes any number of rows",
        )
        threads = self.engine.threads if self.engine.name == "local" else 1
        tell(
            command,
            n,
            columns,
            steps=tuple(step.what for step in steps),
            memory=(taken + max((step.least or step.held)(threads) for step in steps), need(threads)),
            work=added(*(step.work for step in steps)),
            most=added(*(step.most for step in steps)),
            engine=self.engine,
        )


# What a reader must know before believing a test


def kernel_warnings(family: Family, kernels: tuple[Kernel, ...], scale: Scale) -> list[str]:
    """Return warnings where the kernels do not see everything, or have periods of columns that were scaled."""
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
        if f"{Periodic.name}(" in str(kernel) and scale != "none":
            warnings.append(
                f"{side}the period of '{kernel}' is in units of the scaled columns: {option('scale', 'none')} takes it in their own"
            )
        if not kernel.positive_definite:
            warnings.append(
                f"{side}the kernel '{kernel}' is not positive definite: {statistic}{square} is then no squared distance "
                "and may be negative; the p-value is valid all the same"
            )
    return warnings


def paired_copies(paired: Paired, tables: Sequence[Table]) -> list[str]:
    """Return the warning about copies among the rows of a test; of each variable the table that it is of."""
    points = [one.points for one in paired.variables]
    sides = [
        (table, table.numbers()[paired.origin], one.names) for table, one in zip(tables, paired.variables, strict=True)
    ]
    return copies_warning([column for one in points for column in (*one.numeric.T, *one.codes.T)], others=unused(sides))
