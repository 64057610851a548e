"""A two-sample test from end to end: tables to rows, kernels, verdict and record."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

import kerntest
from kerntest.data.misleading import misleading
from kerntest.data.pooling import Pooled, pool
from kerntest.engines.setting import engine_of
from kerntest.errors import UsageError
from kerntest.inference.explain import explain_columns, explanation_work, typical_rows
from kerntest.inference.family import BandwidthOption, Family, check_bandwidth, choose_kernels
from kerntest.inference.labelled import curve_verdict
from kerntest.inference.planning import Work, prepare
from kerntest.inference.sides import Groups, Reading, Sample, lay_out, read_two, without_missing
from kerntest.inference.statistic import discrepancy
from kerntest.inference.verdict import Verdict, different_relabellings, permutation_verdict
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.catalogue import why_not_characteristic
from kerntest.report import record
from kerntest.report.summary import decision_sentence

if TYPE_CHECKING:
    from kerntest.data.table import Table
    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.sides import Options
    from kerntest.kernels.base import Kernel

LIBRARIES = ("numpy", "scipy", "pyarrow")


@dataclass(frozen=True, slots=True, eq=False)
class TwoSampleAnalysis:
    """A two-sample test with what it was made from, for pictures and for the witness function.

    Parameters
    ----------
    result : TwoSampleResult
    sample : Sample
        The pooled rows, scaled.
    verdict : Verdict
    tables : (Table, Table)
        X and Y with the rows that were used.
    """

    result: record.TwoSampleResult
    sample: Sample
    verdict: Verdict
    tables: tuple[Table, Table]


# A kernel that overflows is found by its sums, and refused by name.
@np.errstate(over="ignore", invalid="ignore")
def analyse_two_samples(
    x: Any,
    y: Any,
    options: Options,
    *,
    kernel: Kernel | str = "auto",
    bandwidth: BandwidthOption = "auto",
    min_effect: float | None = None,
    explain: bool = False,
    reading: Reading | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> TwoSampleAnalysis:
    """Run the test of `mmd_test` and keep what it was made from. Arguments, errors and cost as there."""
    started = time.perf_counter()
    check_bandwidth(bandwidth)
    check_minimum(min_effect)
    engine = engine_of(threads)
    reading = reading or Reading()
    tables = read_two(x, y, reading)
    matched = tables.tables[0], tables.tables[1]
    used, dropped = without_missing(matched, reading.missing)
    pooled = pool(*used)
    sample = lay_out(pooled, options.scale)
    chooser = BandwidthChooser(sample.points, options.seed)
    choose = partial(
        choose_kernels, numeric_names=sample.numeric_names, category_names=sample.category_names, chooser=chooser
    )
    relabellings = different_relabellings(sample.labels, options)
    family = choose(kernel, bandwidth, single=options.null != "permutation", relabellings=relabellings)
    options, adapted = fitting(options)
    judged_by = permutation_verdict if options.null == "permutation" else curve_verdict
    work = Work(
        "mmd",
        [(sample.points, family.kernels)],
        len(sample.numeric_names) + len(sample.category_names),
        options,
        further=explanation_work(sample, options) if explain else (),
    )
    engine = prepare(work, engine)
    verdict = judged_by(family, sample, options, engine, progress)
    found = verdict.found
    minimum = None
    if min_effect is not None:
        measure = family if len(family.kernels) == 1 else choose("auto", "median", single=True)
        minimum = _minimum_effect(min_effect, measure.kernels[0], verdict, sample, alpha=options.alpha, engine=engine)
    explanation = None
    if explain:
        rows = typical_rows(sample, verdict.kernel, found.witness, used)
        columns = explain_columns(sample, options, engine, read=matched, used=used, progress=progress)
        explanation = record.Explanation(columns, rows)
    result = _result(
        options,
        verdict,
        family,
        pooled,
        tables=tables,
        used=used,
        kernel=str(kernel),
        engine=engine,
        minimum=minimum,
        explanation=explanation,
        warnings=(
            *tables.warnings,
            *dropped,
            *misleading(matched, used, pooled),
            *pooled.warnings,
            *kernel_warnings(family, verdict.kernel),
            *adapted,
            *verdict.warnings,
        ),
        started=started,
    )
    return TwoSampleAnalysis(result, sample, verdict, used)


def _result(
    options: Options,
    verdict: Verdict,
    family: Family,
    pooled: Pooled,
    *,
    tables: Groups,
    used: tuple[Table, Table],
    kernel: str,
    engine: Engine,
    minimum: record.MinimumEffect | None,
    explanation: record.Explanation | None,
    warnings: tuple[str, ...],
    started: float,
) -> record.TwoSampleResult:
    """Return the record of a test: what was found, and what it was found with."""
    found = verdict.found
    reject = verdict.p_value <= options.alpha and (minimum is None or minimum.reached)
    subject = "the two files" if tables.read[0].sha256 else "the two samples"
    return record.TwoSampleResult(
        schema="kerntest.mmd/1",
        command="mmd",
        statistic=found.unbiased if options.estimator == "unbiased" else found.biased,
        estimator=options.estimator,
        p_value=verdict.p_value,
        alpha=options.alpha,
        reject=reject,
        decision=decision_sentence(verdict.p_value, options.alpha, subject, minimum),
        kernel=str(verdict.kernel),
        bandwidth=getattr(verdict.kernel, "bandwidth", None),
        gamma=getattr(verdict.kernel, "gamma", None),
        n_x=pooled.n_x,
        n_y=pooled.n_y,
        columns=tuple(name for name in used[0].names if name not in {*pooled.left_out, *family.unused}),
        columns_left_out=(*pooled.left_out, *family.unused),
        mmd2_unbiased=found.unbiased,
        mmd2_biased=found.biased,
        mmd=math.sqrt(max(found.unbiased, 0.0)),
        mmd_standard_error=_standard_error(verdict, options.alpha),
        effect_size=found.effect_size,
        null=verdict.null,
        family=verdict.family,
        minimum_effect=minimum,
        explanation=explanation,
        warnings=warnings,
        provenance=record.Provenance(
            version=kerntest.__version__,
            seed=options.seed,
            inputs=tuple(
                record.InputRecord(
                    read.name,
                    read.format,
                    read.n_rows,
                    kept.n_rows,
                    read.sha256,
                    read.delimiter,
                    read.compression,
                    len(read.files) or None,
                )
                for read, kept in zip(tables.read, used, strict=True)
            ),
            kernel=kernel,
            bandwidth=family.rule,
            scale=options.scale,
            dtype=engine.dtype,
            threads=engine.threads,
            libraries=library_versions(),
            seconds=time.perf_counter() - started,
            engine=engine.name,
            device=engine.device,
        ),
    )


def fitting(options: Options) -> tuple[Options, tuple[str, ...]]:
    """Return options that fit the null, and a warning where one had to change."""
    if options.null == "gamma" and options.estimator == "unbiased":
        warning = "the Gamma null is a law of the biased statistic: that one is tested and reported"
        return replace(options, estimator="biased"), (warning,)
    return options, ()


def check_minimum(min_effect: float | None) -> None:
    """Refuse a smallest effect that cannot be.

    Raises
    ------
    UsageError
        If it is not positive and finite.
    """
    if min_effect is None:
        return
    is_number = isinstance(min_effect, (int, float, np.number))
    if not is_number or not 0 < min_effect < math.inf:
        raise UsageError(
            f"min_effect must be positive, not {f'{min_effect:g}' if is_number else repr(min_effect)}",
            hint="it is a value of MMD; 0.1 is a small difference",
            code="usage.min_effect",
        )


def _minimum_effect(
    minimum: float, kernel: Kernel, verdict: Verdict, sample: Sample, *, alpha: float, engine: Engine
) -> record.MinimumEffect:
    """Return whether MMD reaches the minimum under `kernel`, by its lower Gaussian confidence bound."""
    found = verdict.found
    if kernel != verdict.kernel:
        found = discrepancy(kernel, sample.points, sample.labels, engine)
    mmd = math.sqrt(max(found.unbiased, 0.0))
    error = found.standard_error if math.isfinite(found.standard_error) else None
    lower = 0.0 if error is None else max(mmd + float(ndtri(alpha)) * error, 0.0)
    return record.MinimumEffect(minimum, str(kernel), mmd, error, lower, lower >= minimum)


@cache
def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that make the numbers, without importing them."""
    return {name: version(name) for name in LIBRARIES}


def _standard_error(verdict: Verdict, alpha: float) -> float | None:
    """Return the standard error of MMD, or None where MMD is not clearly above 0 and the error means nothing."""
    error = verdict.found.standard_error
    return None if verdict.p_value > alpha or not math.isfinite(error) else error


def kernel_warnings(family: Family, kernel: Kernel) -> list[str]:
    """Return what a reader must know about the kernel."""
    warnings = []
    if family.unused:
        names = ", ".join(family.unused)
        warnings.append(f"columns that the kernel does not name are left out: {names} (add '*: ...' to use them)")
    # What the reported kernel does not see, others of its family may.
    reason = None if any(one.characteristic for one in family.kernels) else why_not_characteristic(kernel)
    if reason is not None:
        warnings.append(reason)
    if not kernel.positive_definite:
        warnings.append(
            f"the kernel '{kernel}' is not positive definite: MMD^2 is then no squared distance and may be "
            "negative; the p-value is valid all the same"
        )
    return warnings
