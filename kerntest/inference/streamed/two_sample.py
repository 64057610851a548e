"""The two-sample test by explicit features: two passes over files of any size."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import kerntest
from kerntest.engines.base import Engine
from kerntest.engines.plan import PROGRAM_BYTES, refuse_beyond, tell
from kerntest.engines.setting import engine_of
from kerntest.inference.exact import check_minimum, fitting, kernel_warnings, library_versions, minimum_effect
from kerntest.inference.family import check_bandwidth, choose_kernels, two_sample_exponents
from kerntest.inference.planning import piece_bytes, pieces_read_twice
from kerntest.inference.sides import Reading
from kerntest.inference.statistic import label_matrix
from kerntest.inference.streamed.block_features import make_block_features
from kerntest.inference.streamed.block_sums import BlockSummer, block_sums, plan_blocks
from kerntest.inference.streamed.blocked import Blocked
from kerntest.inference.streamed.survey import SAMPLED_ROWS, survey
from kerntest.inference.streamed.verdict import LARGE_ERROR, LEFT_OUT, features_verdict
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.columns import is_additive
from kerntest.kernels.dot import Linear
from kerntest.matrices.factor import parse_features
from kerntest.report import record
from kerntest.report.summary import decision_sentence, percent

if TYPE_CHECKING:
    from kerntest.engines.base import Progress
    from kerntest.inference.family import BandwidthOption, Family
    from kerntest.inference.sides import Options
    from kerntest.inference.streamed.survey import Survey
    from kerntest.inference.streamed.verdict import FeaturesVerdict
    from kerntest.kernels.base import Array, Kernel, Points

DEFAULT_FEATURES = "nystroem:300"
# Some hundred features leave out much of what kernels see whose bandwidth is below so many factors of two of the median.
NARROWEST = -1
# Rows on which features are compared with the kernel.
ERROR_ROWS = 800


@np.errstate(over="ignore", invalid="ignore")
def analyse_by_features(
    x: Any,
    y: Any,
    options: Options,
    *,
    features: str | None = None,
    kernel: Kernel | str = "auto",
    bandwidth: BandwidthOption = "auto",
    min_effect: float | None = None,
    reading: Reading | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> record.TwoSampleResult:
    """Run the test of `mmd_test` with ``method="features"``. Arguments and errors as there.

    Notes
    -----
    Cost: two passes over the files and O(n M (p + F)) time, M features of F kernels; memory for a few pieces of the files
    and the sums over blocks, whatever n is.
    """
    started = time.perf_counter()
    features = DEFAULT_FEATURES if features is None else features
    kind, number = parse_features(features)
    check_bandwidth(bandwidth)
    check_minimum(min_effect)
    options, adapted = fitting(options)
    engine = engine_of(threads)
    # Landmarks are rows of the sample, and others show how far the features are from the kernel.
    sampled = max(SAMPLED_ROWS, number + ERROR_ROWS if kind == "nystroem" else 0)
    with survey(
        (x, y), reading or Reading(), options.scale, options.seed, engine, progress=progress, sampled=sampled
    ) as surveyed:
        blocks = plan_blocks(surveyed.n, surveyed.names)
        families = _families(
            surveyed, options, kernel, bandwidth, measured=min_effect is not None, waves=kind == "fourier"
        )
        # Only to the linear kernel every origin is the same; a far one would take its digits away.
        linear = all(isinstance(one, Linear) for one in families.all)
        found = surveyed.about_its_mean() if linear else surveyed
        made = make_block_features(features, families.all, found.sample, options.seed)
        numbers = len(families.all) * made.width * sum(each.count for each in blocks)
        kernels, columns = len(families.all), len(found.columns)
        engine = _within_memory(engine, numbers, piece_bytes(columns))
        tell(
            "mmd",
            sum(found.n),
            columns,
            steps=(
                f"{made.width:,} features of each of {kernels} kernels, summed over blocks of rows"
                + pieces_read_twice(found.n_pieces),
            ),
            held=engine.threads * piece_bytes(columns) + 8.0 * numbers * (engine.threads + 3),
            operations={"kernel": 3.0 * kernels * made.width * sum(found.n)},
            engine=engine,
            method="features",
            besides=time.perf_counter() - started,
        )
        work = BlockSummer(found.reader, made, blocks, options.seed)
        sums = block_sums(work, found.pieces(), engine, progress, total=found.n_pieces)
    blocked = [
        Blocked.of(made.projected(member, sums[0][:, member]), made.projected(member, sums[1][:, member]), blocks)
        for member in range(len(families.all))
    ]
    verdict = features_verdict(families.judged, blocked[: len(families.judged.kernels)], options, engine)
    chosen = families.all.index(verdict.kernel)
    sampled_features = made.of(chosen, found.sample)
    minimum = None
    if min_effect is not None:
        place = families.measured
        minimum = _minimum_effect(min_effect, families.all[place], blocked[place], options.alpha)
    errors = _errors(verdict.kernel, made.width if kind == "nystroem" else 0, found.sample, sampled_features)
    approximation = record.Approximation(
        features=features.strip().lower(),
        kind=kind,
        number=made.width,
        **errors,
        rows_sampled=len(found.sample),
        blocks=sum(each.free for each in blocks),
        rows_per_block=blocks[0].size,
        fixed_rows=sum(each.fixed_rows for each in blocks),
    )
    warnings = (
        *found.warnings,
        *kernel_warnings(families.judged, (verdict.kernel,)),
        *adapted,
        *_large_error(approximation),
        *verdict.warnings,
    )
    return _result(
        options,
        found,
        families.judged,
        verdict,
        effect_size=_effect_size(sampled_features, verdict.unbiased, found.n),
        minimum=minimum,
        approximation=approximation,
        kernel=str(kernel),
        warnings=warnings,
        engine=engine,
        started=started,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Families:
    """The kernels that are judged, and all that features are made of.

    Parameters
    ----------
    judged : Family
    all : tuple of Kernel
        Those that are judged first.
    measured : int
        Which of them the smallest effect is measured with.
    """

    judged: Family
    all: tuple[Kernel, ...]
    measured: int


def _families(
    found: Survey, options: Options, kernel: Kernel | str, bandwidth: BandwidthOption, *, measured: bool, waves: bool
) -> _Families:
    """Return the kernels of the test, their bandwidths chosen on the sample, as many as the exact test has."""

    def exponents(base: Kernel, chooser: BandwidthChooser) -> list[int]:
        """Those of the exact test that features can stand for; random waves only for all columns together."""
        exponents = [] if waves and is_additive(base) else two_sample_exponents(base, chooser)
        return [exponent for exponent in exponents if exponent >= NARROWEST]

    choose = partial(
        choose_kernels,
        numeric_names=found.layout.numeric_names,
        category_names=found.layout.category_names,
        chooser=BandwidthChooser(found.sample, options.seed),
        exponents=exponents,
        relabellings=options.permutations,
    )
    judged = choose(kernel, bandwidth, single=options.null != "permutation")
    if judged.thinning:
        judged = replace(
            judged, thinning=f"{sum(found.n):,} rows: bandwidths of the exact test from half the median on"
        )
    if not measured or len(judged.kernels) == 1:
        return _Families(judged, judged.kernels, 0)
    (extra,) = choose("auto", "median", single=True).kernels
    return _Families(judged, (*judged.kernels, extra), len(judged.kernels))


def _within_memory(engine: Engine, numbers: int, piece: int) -> Engine:
    """Return the engine with as many threads as the memory allows.

    Parameters
    ----------
    engine : Engine
    numbers : int
        Of the sums over blocks, which each piece under way has once, and the result too.
    piece : int
        Bytes that a piece takes beside them.

    Raises
    ------
    UndecidedError
        If it does not allow one.
    """

    def need(threads: int) -> int:
        return PROGRAM_BYTES + threads * piece + 8 * numbers * (threads + 3)

    if engine.memory is None:
        return engine
    refuse_beyond(need(1), engine.memory, "the sums over blocks take", "fewer --features take less")
    threads = engine.threads
    while threads > 1 and need(threads) > engine.memory:
        threads -= 1
    return Engine(threads, engine.memory) if engine.name == "local" else engine


def _errors(kernel: Kernel, landmarks: int, sample: Points, Z: Array) -> dict[str, float]:
    """Return how far features Z are from a kernel, on sampled rows that are no landmarks where there are enough."""
    rows = np.arange(len(sample))
    if len(rows) > landmarks + ERROR_ROWS // 2:
        rows = rows[landmarks:]
    rows = rows[:ERROR_ROWS]
    Z = Z[rows]
    K = kernel(sample.take(rows))
    difference = Z @ Z.T - K
    off = ~np.eye(len(rows), dtype=bool)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    moved = difference - difference.mean(axis=0) - difference.mean(axis=1)[:, None] + difference.mean()
    size = float(np.linalg.norm(centred))
    return {
        "kernel_error": float(np.sqrt(np.mean(np.square(difference[off])))),
        "matrix_error": float(np.linalg.norm(moved)) / size if size else 0.0,
    }


def _large_error(approximation: record.Approximation) -> list[str]:
    """Return a warning where the features leave out much of the kernel."""
    if not approximation.matrix_error > LARGE_ERROR:
        return []
    return [f"the {approximation.features} features leave out {percent(approximation.matrix_error)} {LEFT_OUT}"]


def _effect_size(Z: Array, unbiased: float, n: tuple[int, ...]) -> float:
    """Return the correlation between the kernel matrix and the label, <A, A> estimated on the sampled rows.

    <A, A> / (n (n - 3)) estimates the same number whatever n is (Szekely and Rizzo 2014).
    """
    m, total = len(Z), sum(n)
    Z = Z - Z.mean(axis=0)
    # The kernel matrix without its diagonal: its squares and its rows, which sum to -|z|^2.
    own = np.einsum("ir,ir->i", Z, Z)
    squares = float(np.square(Z.T @ Z).sum()) - float(own @ own)
    norm = squares - 2.0 / (m - 2) * float(own @ own) + float(own.sum()) ** 2 / ((m - 1) * (m - 2))
    label = label_matrix(n[0], n[1], "unbiased")
    scale = math.sqrt(max(norm, 0.0) / (m * (m - 3)) * total * (total - 3) * label.squared_norm)
    correlation = unbiased / label.factor / scale if scale > 0 else 0.0
    return math.sqrt(min(max(correlation, 0.0), 1.0))


def _minimum_effect(minimum: float, kernel: Kernel, blocked: Blocked, alpha: float) -> record.MinimumEffect:
    """Return whether MMD reaches the minimum under `kernel`, by its lower Gaussian confidence bound."""
    unbiased = blocked.observed("unbiased")
    return minimum_effect(minimum, kernel, unbiased, blocked.standard_error(unbiased), alpha)


def _result(
    options: Options,
    found: Survey,
    family: Family,
    verdict: FeaturesVerdict,
    *,
    effect_size: float,
    minimum: record.MinimumEffect | None,
    approximation: record.Approximation,
    kernel: str,
    warnings: tuple[str, ...],
    engine: Engine,
    started: float,
) -> record.TwoSampleResult:
    """Return the record of a test: what was found, and what it was found with."""
    reject = verdict.p_value <= options.alpha and (minimum is None or minimum.reached)
    subject = "the two files" if found.inputs[0].sha256 else "the two samples"
    error = verdict.standard_error
    return record.TwoSampleResult(
        schema="kerntest.mmd/1",
        command="mmd",
        statistic=verdict.unbiased if options.estimator == "unbiased" else verdict.biased,
        estimator=options.estimator,
        p_value=verdict.p_value,
        alpha=options.alpha,
        reject=reject,
        decision=decision_sentence(verdict.p_value, options.alpha, subject, minimum),
        kernel=str(verdict.kernel),
        bandwidth=getattr(verdict.kernel, "bandwidth", None),
        gamma=getattr(verdict.kernel, "gamma", None),
        n_x=found.n[0],
        n_y=found.n[1],
        columns=tuple(name for name in found.columns if name not in family.unused),
        columns_left_out=(*found.left_out, *family.unused),
        mmd2_unbiased=verdict.unbiased,
        mmd2_biased=verdict.biased,
        mmd=math.sqrt(max(verdict.unbiased, 0.0)),
        mmd_standard_error=error if verdict.p_value <= options.alpha and math.isfinite(error) else None,
        effect_size=effect_size,
        null=verdict.null,
        family=verdict.family,
        minimum_effect=minimum,
        method="features",
        approximation=approximation,
        warnings=warnings,
        provenance=record.Provenance(
            version=kerntest.__version__,
            seed=options.seed,
            inputs=found.inputs,
            kernel=kernel,
            bandwidth=f"{family.rule}, on {len(found.sample):,} sampled rows" if family.thinning else family.rule,
            scale=options.scale,
            dtype="float64",
            threads=engine.threads,
            libraries=library_versions(),
            seconds=time.perf_counter() - started,
            engine=engine.name,
        ),
    )
