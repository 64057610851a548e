"""The two-sample test: whether two tables come from the same distribution."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

import kerntest
from kerntest.data.misleading import misleading
from kerntest.data.pooling import pool
from kerntest.engines.local import LocalEngine
from kerntest.errors import UsageError
from kerntest.inference.curves import curve_verdict
from kerntest.inference.explain import explain_columns, typical_rows
from kerntest.inference.family import BandwidthOption, Family, check_bandwidth, choose_kernels
from kerntest.inference.options import MissingPolicy, NullMethod, Options, Resampling, Scale
from kerntest.inference.picture import two_sample_figure
from kerntest.inference.sample import Reading, Sample, lay_out, read_two, without_missing
from kerntest.inference.statistic import discrepancy
from kerntest.inference.verdict import Verdict, permutation_verdict
from kerntest.inference.witness import witness_bytes, witness_kind
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.characteristic import why_not_characteristic
from kerntest.report import record
from kerntest.report.plot import picture_bytes, picture_kind
from kerntest.report.summary import decision_sentence
from kerntest.report.write import check_writable, write_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from kerntest.data.numerals import Decimal
    from kerntest.data.table import Table
    from kerntest.engines.base import Progress
    from kerntest.inference.labels import Estimator
    from kerntest.kernels.base import Kernel

TwoSampleResult = record.TwoSampleResult

LIBRARIES = ("numpy", "scipy", "pyarrow")


def mmd_test(
    x: Any,
    y: Any,
    *,
    kernel: Kernel | str = "auto",
    bandwidth: BandwidthOption = "auto",
    estimator: Estimator = "unbiased",
    null: NullMethod = "permutation",
    permutations: int = 1000,
    alpha: float = 0.05,
    scale: Scale = "standardize",
    seed: int = 0,
    resampling: Resampling = "shifts",
    min_effect: float | None = None,
    explain: bool = False,
    witness: str | PathLike[str] | None = None,
    plot: str | PathLike[str] | None = None,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    common: bool = False,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    decimal: Decimal = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> record.TwoSampleResult:
    """Test whether two samples come from the same distribution, by the maximum mean discrepancy.

    Parameters
    ----------
    x, y : path, "-", ndarray of shape (n,) or (n, p), DataFrame, pyarrow Table or kerntest.Table
        The samples: n_x and n_y rows of the same columns, at least two rows each.
    kernel : Kernel or str
        A kernel or its text, such as "gaussian(1.5) + 0.5*laplacian(2)". "auto": Gaussian and Laplacian, each on a
        grid of bandwidths, judged by one p-value. Text and boolean columns get a kernel of their own in a product.
    bandwidth : "auto", "median", float or sequence of float
        For bandwidths that the kernel leaves open, in units of the scaled columns.
    estimator : "unbiased" or "biased"
        Which estimate of MMD^2 is tested (Gretton et al. 2012, eqs. 3 and 5).
    null : "permutation", "moments", "gamma", "spectral" or "pearson"
        Exact p-value over relabellings; or, for one kernel, approximate and without a floor: a Pearson III curve
        through the exact mean, variance and skewness of the permutation distribution ("moments"), Gretton's Gamma
        for the biased statistic, a weighted sum of chi-squares, a Pearson curve through four moments.
    permutations : int
        Relabellings to use at least. All n cyclic ones cost no more than a few, so that up to n come for nothing.
    alpha : float
        Level of the decision.
    scale : "standardize" or "none"
        Whether numeric columns are brought to pooled mean 0 and standard deviation 1.
    seed : int
        Of the random order of the rows. The result depends on nothing else that is random: not on the order of rows
        in the files, nor on the number of threads.
    resampling : "shifts" or "random"
        Relabellings of the permutation null: all cyclic ones, or ordinary random permutations, which take longer.
    min_effect : float, optional
        The smallest MMD that matters. To reject, the lower confidence bound of MMD, at level 1 - alpha under the
        named kernel or the Gaussian at the median bandwidth, must also reach it.
    explain : bool
        Also find the columns that differ and the most typical rows: `result.explanation`.
    witness : path, optional
        CSV or Parquet file for the witness function at every row, each left out of its own mean.
    plot : path, optional
        PNG, SVG or PDF file for a picture: the null distribution, the witness function, and with `explain` the
        columns. Needs matplotlib.
    columns, exclude : str or sequence of str, optional
        Columns to use or to leave out: names, ranges `a:b`, wildcards `temp_*`.
    common : bool
        Use the columns that both tables have and leave out the others.
    categorical : str or sequence of str
        Numeric columns to take as categories.
    missing : "error" or "drop"
        What to do with rows that have missing values.
    decimal : "auto", "." or ","
        The decimal mark in CSV files; "auto" also reads columns of numbers with a decimal comma, with a warning, where
        the comma is not the delimiter.
    threads : int, optional
        All processors by default.
    progress : callable, optional
        Called with (done, total) now and then.

    Returns
    -------
    TwoSampleResult
        A frozen record; its fields are those of the JSON.

    Raises
    ------
    UsageError
        If an option is wrong or names a column that is not there.
    DataError
        If a table cannot be read or used.
    UndecidedError
        If the kernel cannot tell any two relabellings apart, or overflows; if matplotlib is missing for a picture.

    Notes
    -----
    Cost: O(n^2 (p + log n)) time for each kernel and O(n) memory, n = n_x + n_y; never an n x n array.

    References
    ----------
    Gretton, Borgwardt, Rasch, Schoelkopf and Smola (2012), "A kernel two-sample test", JMLR 13.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> mmd_test(rng.normal(size=(100, 2)), rng.normal(size=(120, 2)) + 1.0).reject
    True
    """
    options = Options(estimator, null, permutations, alpha, scale, seed, resampling)
    witness_as = None if witness is None else witness_kind(witness)
    plot_as = None if plot is None else picture_kind(plot)
    for path in (witness, plot):
        if path is not None:
            check_writable(os.fspath(path))
    analysis = analyse_two_samples(
        x,
        y,
        options,
        kernel=kernel,
        bandwidth=bandwidth,
        min_effect=min_effect,
        explain=explain,
        reading=Reading(columns, exclude, common=common, categorical=categorical, missing=missing, decimal=decimal),
        threads=threads,
        progress=progress,
    )
    if witness is not None and witness_as is not None:
        found = analysis.verdict.found.witness
        write_file(os.fspath(witness), witness_bytes(analysis.sample, found, analysis.tables, witness_as))
    if plot is not None and plot_as is not None:
        write_file(os.fspath(plot), picture_bytes(two_sample_figure(analysis), plot_as))
    return analysis.result


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
    _check_minimum(min_effect)
    engine = LocalEngine(threads)
    reading = reading or Reading()
    tables = read_two(x, y, reading)
    used, dropped = without_missing(tables.matched, reading.missing)
    pooled = pool(*used)
    sample = lay_out(pooled, options.scale)
    chooser = BandwidthChooser(sample.points, options.seed)
    choose = partial(
        choose_kernels, numeric_names=sample.numeric_names, category_names=sample.category_names, chooser=chooser
    )
    family = choose(kernel, bandwidth, single=options.null != "permutation")
    options, adapted = _fitting(options)
    judged_by = permutation_verdict if options.null == "permutation" else curve_verdict
    verdict = judged_by(family, sample, options, engine, progress)
    found = verdict.found
    minimum = None
    if min_effect is not None:
        measure = family if len(family.kernels) == 1 else choose("auto", "median", single=True)
        minimum = _minimum_effect(min_effect, measure.kernels[0], verdict, sample, alpha=options.alpha, engine=engine)
    explanation = None
    if explain:
        rows = typical_rows(sample, found.witness, used)
        explanation = record.Explanation(explain_columns(sample, options, engine, progress), rows)
    reject = verdict.p_value <= options.alpha and (minimum is None or minimum.reached)
    subject = "the two files" if tables.read[0].sha256 else "the two samples"
    result = record.TwoSampleResult(
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
        warnings=(
            *tables.warnings,
            *dropped,
            *misleading(tables.matched, used, pooled),
            *pooled.warnings,
            *_kernel_warnings(family, verdict),
            *adapted,
            *verdict.warnings,
        ),
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
            kernel=str(kernel),
            bandwidth=family.rule,
            scale=options.scale,
            dtype="float64",
            threads=engine.threads,
            libraries=library_versions(),
            seconds=time.perf_counter() - started,
        ),
    )
    return TwoSampleAnalysis(result, sample, verdict, used)


def _fitting(options: Options) -> tuple[Options, tuple[str, ...]]:
    """Return options that fit the null, and a warning where one had to change."""
    if options.null == "gamma" and options.estimator == "unbiased":
        warning = "the Gamma null is a law of the biased statistic: that one is tested and reported"
        return replace(options, estimator="biased"), (warning,)
    return options, ()


def _check_minimum(min_effect: float | None) -> None:
    """Refuse a smallest effect that cannot be.

    Raises
    ------
    UsageError
        If it is not positive and finite.
    """
    if min_effect is not None and not (math.isfinite(min_effect) and min_effect > 0):
        raise UsageError(
            f"min_effect must be positive, not {min_effect:g}",
            hint="it is a value of MMD; 0.1 is a small difference",
            code="usage.min_effect",
        )


def _minimum_effect(
    minimum: float, kernel: Kernel, verdict: Verdict, sample: Sample, *, alpha: float, engine: LocalEngine
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


def _kernel_warnings(family: Family, verdict: Verdict) -> list[str]:
    """Return what a reader must know about the kernel."""
    warnings = []
    if family.unused:
        names = ", ".join(family.unused)
        warnings.append(f"columns that the kernel does not name are left out: {names} (add '*: ...' to use them)")
    reason = why_not_characteristic(verdict.kernel)
    if reason is not None:
        warnings.append(reason)
    if not verdict.kernel.positive_definite:
        warnings.append(
            f"the kernel '{verdict.kernel}' is not positive definite: MMD^2 is then no squared distance and may be "
            "negative; the p-value is valid all the same"
        )
    return warnings
