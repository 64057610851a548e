"""The one way of every exact test: sides, kernels, plan, verdict, record."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

import kerntest
from kerntest.data.diagnostics import copies_warning
from kerntest.data.facts import counts_rows
from kerntest.errors import UsageError, listed, one_of
from kerntest.inference.verdict import Verdict, judged_together
from kerntest.kernels.text import why_not_characteristic
from kerntest.report.results import record
from kerntest.report.results.independence_record import IndependenceResult, KernelPair
from kerntest.report.summaries.independence_summary import independence_sentence
from kerntest.report.summaries.two_sample_summary import decision_sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table
    from kerntest.engines.engine import Engine
    from kerntest.inference.family import Family
    from kerntest.inference.sides import Groups, Options, Paired, Sample
    from kerntest.inference.statistic import Effect
    from kerntest.kernels.base import Array, Kernel

Statistic: TypeAlias = Literal["hsic", "coco"]

# Neighbouring rows that are this much alike, in standard errors of the serial correlation, are no random sample.
SERIAL_ERRORS = 6.0
FEWEST_ROWS_IN_SERIES = 30


@dataclass(frozen=True, slots=True, eq=False)
class TwoSampleAnalysis:
    """A two-sample test with what it was made from, for pictures and the witness function: `tables` has the rows used."""

    result: record.TwoSampleResult
    verdict: Verdict
    sample: Sample
    tables: tuple[Table, Table]


@dataclass(frozen=True, slots=True, eq=False)
class IndependenceAnalysis:
    """An independence test with what it was made from, for pictures and witness functions."""

    result: IndependenceResult
    verdict: Verdict
    paired: Paired
    groups: Groups


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


def fitting(options: Options, statistic: Statistic = "hsic") -> tuple[Options, tuple[str, ...]]:
    """Return options that fit the null and the statistic, and a warning where one had to change."""
    if statistic == "coco":
        return replace(options, estimator="biased"), ()
    if options.null == "gamma" and options.estimator == "unbiased":
        warning = "the Gamma null is a law of the biased statistic: that one is tested and reported"
        return replace(options, estimator="biased"), (warning,)
    return options, ()


# The smallest effect that matters


def check_minimum(min_effect: float | None) -> None:
    """Refuse a smallest effect that is not positive and finite."""
    if min_effect is None:
        return
    is_number = isinstance(min_effect, (int, float, np.number))
    if not is_number or not 0 < min_effect < math.inf:
        raise UsageError(
            f"min_effect must be positive, not {f'{min_effect:g}' if is_number else repr(min_effect)}",
            hint="it is a value of MMD; 0.1 is a small difference",
            code="usage.min_effect",
        )


def minimum_effect(minimum: float, kernel: Kernel, found: Effect, alpha: float) -> record.MinimumEffect:
    """Return whether the lower Gaussian confidence bound of MMD reaches a minimum; without a standard error it is 0."""
    mmd = math.sqrt(max(found.unbiased, 0.0))
    error = found.standard_error if math.isfinite(found.standard_error) else None
    lower = 0.0 if error is None else max(mmd + NormalDist().inv_cdf(alpha) * error, 0.0)
    return record.MinimumEffect(minimum, str(kernel), mmd, error, lower, lower >= minimum)


# Records


def _found(options: Options, verdict: Verdict) -> dict[str, Any]:
    """Return the fields that all records have."""
    return {
        "statistic": verdict.found.estimate(options.estimator) if verdict.coco is None else verdict.coco,
        "estimator": options.estimator,
        "p_value": verdict.p_value,
        "alpha": options.alpha,
        "effect_size": verdict.found.effect_size,
        "null": verdict.null,
    }


def two_sample_result(
    options: Options,
    verdict: Verdict,
    family: Family,
    *,
    n: tuple[int, ...],
    columns: Sequence[str],
    left_out: tuple[str, ...],
    files: bool,
    minimum: record.MinimumEffect | None,
    **told: Any,
) -> record.TwoSampleResult:
    """Return the record of a test: what was found, and what it was found with."""
    found, (kernel,), rejects = verdict.found, verdict.kernels, verdict.p_value <= options.alpha
    left_out = (*left_out, *family.unused)
    subject = "the two files" if files else "the two samples"
    return record.TwoSampleResult(
        schema="kerntest.mmd/1",
        command="mmd",
        **_found(options, verdict),
        reject=rejects and (minimum is None or minimum.reached),
        decision=decision_sentence(verdict.p_value, options.alpha, subject, minimum),
        kernel=str(kernel),
        bandwidth=getattr(kernel, "bandwidth", None),
        gamma=getattr(kernel, "gamma", None),
        n_x=n[0],
        n_y=n[1],
        columns=tuple(name for name in columns if name not in left_out),
        columns_left_out=left_out,
        mmd2_unbiased=found.unbiased,
        mmd2_biased=found.biased,
        mmd=math.sqrt(max(found.unbiased, 0.0)),
        # Where MMD is not clearly above 0 its error means nothing.
        mmd_standard_error=found.standard_error if rejects and math.isfinite(found.standard_error) else None,
        family=judged_together(family, verdict.judged, options.judge, record.FamilyMember),
        minimum_effect=minimum,
        **told,
    )


def independence_result(
    options: Options,
    verdict: Verdict,
    family: Family,
    groups: Groups,
    *,
    unused: Sequence[tuple[str, ...]],
    n: int,
    statistic: Statistic = "hsic",
    **told: Any,
) -> IndependenceResult:
    """Return the record of a test: what was found, and what it was found with; `unused` are columns of each side."""
    kernel_x, kernel_y = verdict.kernels
    used, left_out = [], []
    for table, one, unseen in zip(groups.tables, unused, family.left_out, strict=True):
        used.append(tuple(name for name in table.names if name not in {*one, *unseen}))
        left_out += [name for name in table.names if name not in used[-1]]
    return IndependenceResult(
        schema="kerntest.hsic/1",
        command="hsic",
        **_found(options, verdict),
        statistic_name=statistic,
        reject=verdict.p_value <= options.alpha,
        decision=independence_sentence(verdict.p_value, options.alpha, variable_names(used, groups)),
        kernel=f"{kernel_x} on x, {kernel_y} on y",
        kernel_x=str(kernel_x),
        kernel_y=str(kernel_y),
        bandwidth_x=getattr(kernel_x, "bandwidth", None),
        bandwidth_y=getattr(kernel_y, "bandwidth", None),
        gamma_x=getattr(kernel_x, "gamma", None),
        gamma_y=getattr(kernel_y, "gamma", None),
        n=n,
        columns=used[0] + used[1],
        columns_x=used[0],
        columns_y=used[1],
        hsic_unbiased=verdict.found.unbiased,
        hsic_biased=verdict.found.biased,
        coco=verdict.coco,
        witness_correlation=verdict.witness_correlation,
        family=judged_together(family, verdict.judged, options.judge, KernelPair),
        lags=verdict.lags,
        columns_left_out=tuple(dict.fromkeys(left_out)),
        **told,
    )


def variable_names(used: Sequence[tuple[str, ...]], groups: Groups) -> tuple[str, str]:
    """Return how a sentence calls both variables, so that it is clear which columns belong to which."""
    # One or two columns by name, more by their number.
    x, y = (
        ", ".join(map(repr, columns)) if len(columns) <= 2 else f"{columns[0]!r} and {len(columns) - 1} more columns"
        for columns in used
    )
    files = [table.name for table in groups.tables]
    if x == y and files[0] != files[1]:
        return f"{x} of {files[0]}", f"{y} of {files[1]}"
    if x == y or max(map(len, used)) > 1:
        return f"{x} (x)", f"{y} (y)"
    return x, y


def inputs_of(read: Sequence[Table], rows_used: Sequence[int]) -> tuple[record.InputRecord, ...]:
    """Return what inputs are called, and how many of their rows were used."""
    return tuple(record.InputRecord.of(one, rows) for one, rows in zip(read, rows_used, strict=False))


def provenance_of(
    options: Options,
    inputs: tuple[record.InputRecord, ...],
    *,
    asked: tuple[Kernel | str, ...],
    rule: str,
    engine: Engine,
    started: float,
) -> record.Provenance:
    """Return what is needed to run a test again and get the same numbers."""
    texts = [str(kernel) for kernel in asked]
    same = len(set(texts)) == 1
    return record.Provenance(
        version=kerntest.__version__,
        seed=options.seed,
        inputs=inputs,
        kernel=texts[0] if same else "; ".join(f"{name}: {text}" for name, text in zip("xy", texts, strict=True)),
        bandwidth=rule,
        scale=options.scale,
        dtype=engine.dtype,
        threads=engine.threads,
        libraries=record.library_versions(),
        seconds=time.perf_counter() - started,
        engine=engine.name,
        device=engine.device,
    )


# What a reader must know before believing a test


def kernel_warnings(family: Family, kernels: tuple[Kernel, ...]) -> list[str]:
    """Return warnings where the kernels do not see everything."""
    warnings = []
    if family.unused:
        names = ", ".join(family.unused)
        warnings.append(f"columns that the kernel does not name are left out: {names} (add '*: ...' to use them)")
    # What the reported kernels do not see, others of their family may.
    all_seen = any(all(kernel.characteristic for kernel in member) for member in family.members)
    statistic = "HSIC" if len(kernels) > 1 else "MMD"
    square = "" if len(kernels) > 1 else "^2"
    for kernel, side in zip(kernels, ("x: ", "y: ") if len(kernels) > 1 else ("",), strict=True):
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
    if not all(alike):
        return []
    names = listed([repr(names[0]) for names in alike])
    warning = (
        f"neighbouring rows are alike in {names}: if the rows are a series in time, the p-value is far too small; "
        "--time-series tests series"
    )
    return [warning]


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
