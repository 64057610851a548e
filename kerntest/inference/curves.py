"""Verdicts without a joint p-value: one kernel, and a curve for its null distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.labels import LabelMatrix, label_matrix
from kerntest.inference.nulls.gamma import gamma_moments, gamma_p_value
from kerntest.inference.nulls.moments import (
    Invariants,
    Moments,
    centre,
    kernel_invariants,
    kernel_spectrum,
    label_invariants,
    moments_p_value,
    permutation_moments,
)
from kerntest.inference.nulls.pearson import pearson_tail
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.nulls.spectral import label_spectrum, spectral_p_value
from kerntest.inference.statistic import Discrepancy, discrepancy
from kerntest.inference.sweep import sweep
from kerntest.inference.verdict import Verdict, degenerate_kernel, overflow, relabel
from kerntest.report import record

if TYPE_CHECKING:
    from kerntest.engines.base import Engine, Progress
    from kerntest.inference.family import Family
    from kerntest.inference.options import Options
    from kerntest.inference.sample import Sample
    from kerntest.kernels.base import Array, Kernel

# The kurtosis of the Pearson null comes from at least so many relabellings.
KURTOSIS_RELABELLINGS = 5000


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """One kernel on the rows of a test, with the observed <A, B>."""

    kernel: Kernel
    sample: Sample
    options: Options
    engine: Engine
    progress: Progress | None
    family: Family
    label: LabelMatrix
    found: Discrepancy
    value: float

    @property
    def n(self) -> int:
        return len(self.sample.points)

    @property
    def hollow(self) -> bool:
        return self.options.estimator == "unbiased"

    @property
    def rounding(self) -> float:
        largest = float(self.kernel.diagonal(self.sample.points).max())
        return tie_tolerance(largest, self.n, math.sqrt(self.label.squared_norm))


def curve_verdict(
    family: Family, sample: Sample, options: Options, engine: Engine, progress: Progress | None
) -> Verdict:
    """Judge one kernel by the curve that the null names.

    Raises
    ------
    UndecidedError
        If the kernel is degenerate, or there are too few rows for the curve.
    """
    (kernel,) = family.kernels
    n, n_x = len(sample.points), int(sample.labels.sum())
    label = label_matrix(n_x, n - n_x, options.estimator)
    found = discrepancy(kernel, sample.points, sample.labels, engine)
    value = (found.unbiased if options.estimator == "unbiased" else found.biased) / label.factor
    if not math.isfinite(value):
        raise overflow(kernel)
    setting = _Setting(kernel, sample, options, engine, progress, family, label, found, value)
    curve = {"moments": _moments, "gamma": _gamma, "spectral": _spectral, "pearson": _pearson}[options.null]
    try:
        p_value, null = curve(setting)
    except OverflowError as error:
        raise overflow(kernel) from error
    return Verdict(p_value, kernel, found, null, None, None, ())


def _moments(setting: _Setting) -> tuple[float, record.Null]:
    moments, exact = _exact_moments(setting)
    return moments_p_value(setting.value, moments), _null(
        "moments", setting, moments, "exact" if exact else "stochastic"
    )


def _exact_moments(setting: _Setting) -> tuple[Moments, bool]:
    invariants, exact = kernel_invariants(
        setting.kernel,
        setting.sample.points,
        setting.engine,
        hollow=setting.hollow,
        seed=setting.options.seed,
        progress=setting.progress,
    )
    moments = permutation_moments(invariants, label_invariants(setting.label), setting.n)
    if not moments.standard_deviation > setting.rounding:
        raise degenerate_kernel(setting.family)
    return moments, exact


def _pearson(setting: _Setting) -> tuple[float, record.Null]:
    moments, exact = _exact_moments(setting)
    shifts = replace(setting.options, resampling="shifts")
    wanted = max(KURTOSIS_RELABELLINGS, setting.options.permutations)
    sums = relabel((setting.kernel,), setting.sample, shifts, setting.engine, None, relabellings=wanted).sums[0]
    kurtosis = float(np.mean((sums - sums.mean()) ** 4) / sums.var() ** 2)
    z = (setting.value - moments.mean) / moments.standard_deviation
    null = _null("pearson", setting, moments, "exact" if exact else "stochastic")
    null = replace(null, permutations=len(sums), kurtosis=kurtosis)
    return pearson_tail(z, moments.skewness, kurtosis), null


def _gamma(setting: _Setting) -> tuple[float, record.Null]:
    n, sample = setting.n, setting.sample
    centring, diagonal = centre(setting.kernel, sample.points, setting.engine, hollow=False)
    in_x = sample.labels == 1
    sides = np.column_stack([in_x, ~in_x]).astype(np.float64)
    swept = sweep(
        setting.kernel,
        sample.points,
        np.zeros((n, 0)),
        setting.engine,
        centring=centring,
        square_vectors=sides,
        progress=setting.progress,
    )
    # Sums of A_ij^2 over i != j by the kind of the pair, then weighted by B_ij^2.
    squares = sides.T @ swept.squares - np.diag([(diagonal[in_x] ** 2).sum(), (diagonal[~in_x] ** 2).sum()])
    none, one, both = setting.label.between
    total = squares[0, 0] * both**2 + squares[1, 1] * none**2 + 2.0 * squares[0, 1] * one**2
    trace_a, trace_b = float(diagonal.sum()), label_invariants(setting.label).trace
    mean_square = float(total) / (n * (n - 1))
    _refuse_constant(setting, diagonal, swept.total_square)
    p_value = gamma_p_value(setting.value, trace_a, trace_b, mean_square, n)
    mean, variance = gamma_moments(trace_a, trace_b, mean_square, n)
    moments = Moments(mean * n**2, math.sqrt(variance) * n**2, 2.0 * math.sqrt(variance) / mean)
    return max(p_value, float(np.finfo(np.float64).tiny)), _null("gamma", setting, moments, None)


def _spectral(setting: _Setting) -> tuple[float, record.Null]:
    n = setting.n
    a, exact = kernel_spectrum(
        setting.kernel,
        setting.sample.points,
        setting.engine,
        hollow=setting.hollow,
        seed=setting.options.seed,
        progress=setting.progress,
    )
    centring, diagonal = centre(setting.kernel, setting.sample.points, setting.engine, hollow=setting.hollow)
    swept = sweep(setting.kernel, setting.sample.points, np.zeros((n, 0)), setting.engine, centring=centring)
    _refuse_constant(setting, diagonal, swept.total_square)
    b = label_spectrum(setting.label)
    powers = [
        float((a.values**k) @ a.multiplicities) * float((b.values**k) @ b.multiplicities) / n**k for k in (1, 2, 3)
    ]
    deviation = math.sqrt(2.0 * powers[1])
    moments = Moments(powers[0], deviation, 8.0 * powers[2] / deviation**3)
    p_value = spectral_p_value(setting.value, a, b, n)
    return p_value, _null("spectral", setting, moments, "exact" if exact else "leading eigenvalues")


def _refuse_constant(setting: _Setting, diagonal: Array, total_square: float) -> None:
    """Refuse a kernel whose statistic no relabelling changes, told by its exact permutation variance.

    Raises
    ------
    UndecidedError
        As above.
    """
    # Only the mean and the variance are asked for: the sums of third order are not needed.
    a = Invariants(float(diagonal.sum()), total_square, float(diagonal @ diagonal), 0.0, 0.0, 0.0, 0.0, 0.0)
    if not permutation_moments(a, label_invariants(setting.label), setting.n).standard_deviation > setting.rounding:
        raise degenerate_kernel(setting.family)


def _null(method: str, setting: _Setting, moments: Moments, trace: str | None) -> record.Null:
    """Return the record of a null whose moments are those of <A, B>."""
    factor = setting.label.factor
    return record.Null(
        method=method,
        permutations=None,
        requested=None,
        p_floor=None,
        exact=False,
        resampling=None,
        orders=None,
        mean=factor * moments.mean,
        standard_deviation=factor * moments.standard_deviation,
        skewness=moments.skewness,
        trace=trace,
    )
