"""An independence test from end to end: columns to variables, kernels, verdict and record."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

import kerntest
from kerntest.data.checks import one_of, whole_number
from kerntest.engines.setting import engine_of
from kerntest.errors import DataError, UsageError
from kerntest.inference.analysis import library_versions
from kerntest.inference.nulls.permutation import JUDGES
from kerntest.inference.pair_family import PairFamily, choose_pair
from kerntest.inference.pair_verdict import (
    PairVerdict,
    different_pairings,
    pair_curve_verdict,
    pair_permutation_verdict,
)
from kerntest.inference.pair_warnings import pair_warnings
from kerntest.inference.planning import Work, prepare
from kerntest.inference.series import shift_verdict, shifts_of
from kerntest.inference.sides import Groups, Paired, Reading, pair_up, read_pair
from kerntest.inference.strongest import coco_verdict
from kerntest.kernels.dot import moved_to_origin
from kerntest.report import record
from kerntest.report.independence_record import IndependenceResult, KernelPair, KernelPairs
from kerntest.report.independence_summary import independence_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.family import BandwidthOption
    from kerntest.inference.pair_verdict import Variables
    from kerntest.inference.sides import Options
    from kerntest.kernels.base import Kernel

Statistic: TypeAlias = Literal["hsic", "coco"]


@dataclass(frozen=True, slots=True, eq=False)
class IndependenceAnalysis:
    """An independence test with what it was made from, for pictures and witness functions.

    Parameters
    ----------
    result : IndependenceResult
    paired : Paired
        Both variables, x first.
    kernels : (Kernel, Kernel)
        The pair that is reported.
    relabelled : ndarray, shape (R,), or None
        The statistic under every relabelling, the observed first.
    groups : Groups
        The tables with the columns of each side.
    """

    result: IndependenceResult
    paired: Paired
    kernels: tuple[Kernel, Kernel]
    relabelled: np.ndarray[Any, Any] | None
    groups: Groups


@np.errstate(over="ignore", invalid="ignore")
def analyse_pair(
    x: Any,
    y: Any,
    options: Options,
    *,
    kernels: tuple[Kernel | str, Kernel | str] = ("auto", "auto"),
    bandwidth: BandwidthOption = "auto",
    statistic: Statistic = "hsic",
    time_series: bool = False,
    min_lag: int | None = None,
    reading: Reading | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> IndependenceAnalysis:
    """Run the test of `hsic_test` and keep what it was made from. Arguments, errors and cost as there."""
    started = time.perf_counter()
    one_of("statistic", statistic, ("hsic", "coco"))
    if time_series and statistic == "coco":
        raise UsageError(
            "the shift test of time series is one of HSIC, not of the constrained covariance",
            hint="leave out --time-series, or --statistic coco",
            code="usage.time_series",
        )
    if min_lag is not None and not time_series:
        raise UsageError(
            "min_lag is for time series",
            hint="--time-series tests rows in the order of time",
            code="usage.min_lag",
        )
    if min_lag is not None:
        whole_number("min_lag", min_lag, at_least=1)
    engine = engine_of(threads)
    reading = reading or Reading()
    groups = read_pair(x, y, reading)
    paired = pair_up(groups, reading.missing, options.scale)
    if time_series:
        _refuse_gaps(paired, groups)
    options, adapted = fitting(options, statistic)
    first, second = paired.variables
    single = options.null != "permutation" or statistic == "coco"
    if statistic == "coco" and not isinstance(bandwidth, str) and np.size(bandwidth) > 1:
        raise UsageError(
            "the constrained covariance is tested for one pair of kernels: give one bandwidth",
            hint="--statistic hsic judges several bandwidths together",
            code="usage.bandwidth_family",
        )
    relabellings = shifts_of(paired.n, min_lag) if time_series else max(options.permutations, paired.n)
    family = choose_pair(
        kernels,
        bandwidth,
        (first, second),
        seed=options.seed,
        single=single,
        relabellings=different_pairings(relabellings, paired.n),
    )
    first = replace(first, points=moved_to_origin(first.points, family.first.kernels))
    second = replace(second, points=moved_to_origin(second.points, family.second.kernels))
    engine = prepare(_work(family, (first, second), options, statistic), engine)
    if time_series:
        verdict = shift_verdict(family, (first, second), options, engine, progress, minimum=min_lag)
    elif statistic == "coco":
        verdict = coco_verdict(family, (first, second), options, engine, progress)
    elif options.null == "permutation":
        verdict = pair_permutation_verdict(family, (first, second), options, engine, progress)
    else:
        verdict = pair_curve_verdict(family, (first, second), options, engine, progress)
    result = _result(
        options,
        verdict,
        family,
        paired,
        groups,
        statistic=statistic,
        asked=kernels,
        engine=engine,
        warnings=(
            *groups.warnings,
            *paired.warnings,
            *pair_warnings(groups, paired, family, verdict, time_series=time_series),
            *adapted,
            *verdict.warnings,
        ),
        started=started,
    )
    return IndependenceAnalysis(result, paired, verdict.kernels, verdict.relabelled, groups)


def _work(family: PairFamily, variables: Variables, options: Options, statistic: Statistic) -> Work:
    """Return the test as far as its cost goes."""
    sides = [(one.points, side.kernels) for one, side in zip(variables, (family.first, family.second), strict=True)]
    columns = sum(len(one.names) for one in variables)
    return Work("hsic", sides, columns, options, statistic)


def _refuse_gaps(paired: Paired, groups: Groups) -> None:
    """Refuse a series that lost rows in its middle: what is left would not be one step apart."""
    gaps = np.flatnonzero(np.diff(paired.origin) > 1)
    if len(gaps):
        table = groups.tables[0]
        row = int(paired.origin[gaps[0]]) + 1
        raise DataError(
            f"{table.name}, {table.place(row)}: a row with missing values inside the series; leaving it out would close "
            "the gap and shift all lags",
            hint="fill the value in, or test the longest stretch without gaps",
            code="data.gap",
            where=table.where(row),
        )


def fitting(options: Options, statistic: Statistic) -> tuple[Options, tuple[str, ...]]:
    """Return options that fit the null and the statistic, and a warning where one had to change."""
    if statistic == "coco":
        return replace(options, estimator="biased"), ()
    if options.null == "gamma" and options.estimator == "unbiased":
        warning = "the Gamma null is a law of the biased statistic: that one is tested and reported"
        return replace(options, estimator="biased"), (warning,)
    return options, ()


def _result(
    options: Options,
    verdict: PairVerdict,
    family: PairFamily,
    paired: Paired,
    groups: Groups,
    *,
    statistic: Statistic,
    asked: tuple[Kernel | str, Kernel | str],
    engine: Engine,
    warnings: tuple[str, ...],
    started: float,
) -> IndependenceResult:
    """Return the record of a test: what was found, and what it was found with."""
    found = verdict.found
    values = {"unbiased": found.unbiased, "biased": found.biased}
    texts = [str(kernel) for kernel in verdict.kernels]
    used = _columns_used(groups, paired, family)
    left_out = [
        name for table, names in zip(groups.tables, used, strict=True) for name in table.names if name not in names
    ]
    members = tuple(KernelPair(str(k), str(h), z, p, u) for k, h, z, p, u in verdict.members)
    return IndependenceResult(
        schema="kerntest.hsic/1",
        command="hsic",
        statistic=values[options.estimator] if verdict.coco is None else verdict.coco,
        statistic_name=statistic,
        estimator=options.estimator,
        p_value=verdict.p_value,
        alpha=options.alpha,
        reject=verdict.p_value <= options.alpha,
        decision=independence_sentence(verdict.p_value, options.alpha, variable_names(used, groups)),
        kernel=f"{texts[0]} on x, {texts[1]} on y",
        kernel_x=texts[0],
        kernel_y=texts[1],
        bandwidth_x=getattr(verdict.kernels[0], "bandwidth", None),
        bandwidth_y=getattr(verdict.kernels[1], "bandwidth", None),
        gamma_x=getattr(verdict.kernels[0], "gamma", None),
        gamma_y=getattr(verdict.kernels[1], "gamma", None),
        n=paired.n,
        columns=used[0] + used[1],
        columns_x=used[0],
        columns_y=used[1],
        hsic_unbiased=found.unbiased,
        hsic_biased=found.biased,
        effect_size=found.effect_size,
        coco=verdict.coco,
        witness_correlation=verdict.witness_correlation,
        null=verdict.null,
        family=KernelPairs(options.judge, JUDGES[options.judge], members, family.thinning, verdict.p_clearest)
        if members
        else None,
        lags=verdict.lags,
        warnings=warnings,
        provenance=provenance_of(
            options, groups, paired.n, asked=asked, rule=family.rule, engine=engine, started=started
        ),
        columns_left_out=tuple(dict.fromkeys(left_out)),
    )


def _columns_used(groups: Groups, paired: Paired, family: PairFamily) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of x and of y that the kernels saw, in the order of the tables."""
    unused = [
        {*one.left_out, *side.unused} for one, side in zip(paired.arranged, (family.first, family.second), strict=True)
    ]
    first, second = (
        tuple(name for name in table.names if name not in without)
        for table, without in zip(groups.tables, unused, strict=True)
    )
    return first, second


def variable_names(used: Sequence[tuple[str, ...]], groups: Groups) -> tuple[str, str]:
    """Return how a sentence calls both variables, so that it is clear which columns belong to which."""
    x, y = (_columns_in_words(columns) for columns in used)
    files = [table.name for table in groups.tables]
    if x == y and files[0] != files[1]:
        return f"{x} of {files[0]}", f"{y} of {files[1]}"
    if x == y or max(map(len, used)) > 1:
        return f"{x} (x)", f"{y} (y)"
    return x, y


def _columns_in_words(columns: tuple[str, ...]) -> str:
    """Return one or two columns by name, more by their number."""
    if len(columns) <= 2:
        return ", ".join(map(repr, columns))
    return f"{columns[0]!r} and {len(columns) - 1} more columns"


def provenance_of(
    options: Options,
    groups: Groups,
    rows_used: int,
    *,
    asked: tuple[Kernel | str, ...],
    rule: str,
    engine: Engine,
    started: float,
) -> record.Provenance:
    """Return what is needed to run a test again and get the same numbers."""
    texts = [str(kernel) for kernel in asked]
    kernel = (
        texts[0]
        if len(set(texts)) == 1
        else "; ".join(f"{name}: {text}" for name, text in zip("xy", texts, strict=False))
    )
    return record.Provenance(
        version=kerntest.__version__,
        seed=options.seed,
        inputs=tuple(
            record.InputRecord(
                read.name,
                read.format,
                read.n_rows,
                rows_used,
                read.sha256,
                read.delimiter,
                read.compression,
                len(read.files) or None,
            )
            for read in groups.read
        ),
        kernel=kernel,
        bandwidth=rule,
        scale=options.scale,
        dtype=engine.dtype,
        threads=engine.threads,
        libraries=library_versions(),
        seconds=time.perf_counter() - started,
        engine=engine.name,
        device=engine.device,
    )
