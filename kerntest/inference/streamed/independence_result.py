"""The record of an independence test on explicit features."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

import kerntest
from kerntest.data.copies import copies_warning
from kerntest.data.diagnostics import counters
from kerntest.engines.base import Engine
from kerntest.inference.exact import kernel_warnings, library_versions, runs_of, series_warning, variable_names
from kerntest.inference.relabelling.pairings import centred_matrix
from kerntest.inference.streamed.verdict import LARGE_ERROR, LEFT_OUT
from kerntest.matrices.factor import feature_error
from kerntest.report import record
from kerntest.report.approximation import PairApproximation
from kerntest.report.independence_record import IndependenceResult
from kerntest.report.independence_summary import independence_sentence
from kerntest.report.summary import percent

if TYPE_CHECKING:
    from kerntest.inference.family import Family
    from kerntest.inference.sides import Groups
    from kerntest.inference.streamed.feature_sums import SideFeatures
    from kerntest.inference.streamed.feature_verdict import Found
    from kerntest.inference.streamed.independence import FeatureTest
    from kerntest.inference.streamed.survey import Survey
    from kerntest.inference.verdict import Verdict
    from kerntest.kernels.base import Points

# Rows at which the error of a centred matrix is measured.
ERROR_ROWS = 1000


def feature_result(
    test: FeatureTest,
    verdict: Verdict,
    family: Family,
    *,
    found: Found,
    known: Survey,
    groups: Groups,
    engine: Engine,
    warnings: tuple[str, ...],
    started: float,
) -> IndependenceResult:
    """Return the record of a test: what was found, and what it was found with.

    Parameters
    ----------
    test : FeatureTest
    verdict : Verdict
    family : Family
        One pair of kernels.
    found : Found
    known : Survey
    groups : Groups
        The columns of each side.
    engine : Engine
    warnings : tuple of str
        Beside those of the file, the kernels and the verdict.
    started : float
        When, as `time.perf_counter` says it.
    """
    options, dependence = test.options, verdict.found
    values = {"unbiased": dependence.unbiased, "biased": dependence.biased}
    texts = [str(kernel) for kernel in verdict.kernels]
    unused = {*known.left_out, *family.unused}
    used = [tuple(name for name in table.names if name not in unused) for table in groups.tables]
    approximation = _approximation(test, found)
    return IndependenceResult(
        schema="kerntest.hsic/1",
        command="hsic",
        statistic=values[options.estimator],
        statistic_name="hsic",
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
        n=found.sums.n,
        columns=used[0] + used[1],
        columns_x=used[0],
        columns_y=used[1],
        hsic_unbiased=dependence.unbiased,
        hsic_biased=dependence.biased,
        effect_size=dependence.effect_size,
        coco=None,
        witness_correlation=None,
        null=verdict.null,
        family=None,
        lags=None,
        warnings=(
            *groups.warnings,
            *(text for text in known.warnings if text not in groups.warnings),
            *series_warning([runs_of(table.columns) for table in groups.tables]),
            *(text for table in groups.tables for text in counters(table.columns)),
            *copies_warning([*known.sample.numeric.T, *known.sample.codes.T], total=sum(known.n)),
            *kernel_warnings(family, verdict.kernels),
            *warnings,
            *_large_errors(approximation),
            *verdict.warnings,
        ),
        provenance=_provenance(test, family, known, engine, started),
        columns_left_out=tuple(name for table in groups.tables for name in table.names if name in unused),
        method="features",
        approximation=approximation,
    )


def _approximation(test: FeatureTest, found: Found) -> PairApproximation:
    """Return how well the features stand for the kernels, at rows that had no say in them."""
    seed = test.options.seed
    x, y = (
        _errors(side, rows, seed) for side, rows in zip((found.features.x, found.features.y), found.others, strict=True)
    )
    return PairApproximation(
        features=test.features,
        kind=found.features.x.features.kind,
        number_x=found.features.x.rank,
        number_y=found.features.y.rank,
        kernel_error_x=x[0],
        kernel_error_y=y[0],
        matrix_error_x=x[1],
        matrix_error_y=y[1],
        rows_sampled=len(found.rows),
    )


def _errors(side: SideFeatures, rows: Points, seed: int) -> tuple[float, float]:
    """Return the root mean square error of kernel values, and the relative error of the centred matrix.

    Cost: O(m^2 (p + r)) time and O(m^2) memory for up to 400 and 1,000 rows.
    """
    points = side.points(rows)
    kernel_error = feature_error(side.features, points, Engine(1), seed)
    some = points.take(np.arange(min(len(points), ERROR_ROWS)))
    features = side.features.of_block(some)
    exact = centred_matrix(side.features.kernel(some), "biased")
    apart = exact - centred_matrix(features @ features.T, "biased")
    size = float(np.linalg.norm(exact))
    return kernel_error, float(np.linalg.norm(apart)) / size if size > 0 else 0.0


def _large_errors(approximation: PairApproximation) -> list[str]:
    """Return a warning for each side whose features leave out much of its kernel."""
    errors = {"x": approximation.matrix_error_x, "y": approximation.matrix_error_y}
    return [
        f"{side}: the features leave out {percent(error)} {LEFT_OUT}"
        for side, error in errors.items()
        if error > LARGE_ERROR
    ]


def _provenance(test: FeatureTest, family: Family, known: Survey, engine: Engine, started: float) -> record.Provenance:
    """Return what is needed to run a test again and get the same numbers."""
    texts = [str(kernel) for kernel in test.kernels]
    return record.Provenance(
        version=kerntest.__version__,
        seed=test.options.seed,
        inputs=known.inputs,
        kernel=texts[0] if texts[0] == texts[1] else f"x: {texts[0]}; y: {texts[1]}",
        bandwidth=family.rule,
        scale=test.options.scale,
        dtype="float64",
        threads=engine.threads,
        libraries=library_versions(),
        seconds=time.perf_counter() - started,
        engine=engine.name,
    )
