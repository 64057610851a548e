"""The two-sample test: do two tables come from the same distribution?"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

import kerntest
from kerntest.data.columns import match_tables
from kerntest.data.missing import apply_missing
from kerntest.data.pooling import Pooled, pool
from kerntest.data.read import read_table
from kerntest.data.scaling import standardize
from kerntest.data.table import Table
from kerntest.engines.local import LocalEngine
from kerntest.errors import UndecidedError, UsageError, suggest
from kerntest.inference.family import BandwidthOption, Family, check_bandwidth, choose_kernels
from kerntest.inference.labels import Estimator, Labels, LabelSide, label_matrix
from kerntest.inference.nulls.moments import kernel_invariants, label_invariants, moments_p_value, permutation_moments
from kerntest.inference.nulls.permutation import COMBINATION, Judged, judge, tie_tolerance
from kerntest.inference.order import canonical_order, random_orders
from kerntest.inference.shifts import circle_length, orders_needed, shift_sums
from kerntest.inference.statistic import Discrepancy, discrepancy
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import Kernel, Points
from kerntest.kernels.characteristic import why_not_characteristic
from kerntest.report import record
from kerntest.report.summary import decision_sentence

if TYPE_CHECKING:
    from pathlib import Path

    from kerntest.engines.base import Engine, Progress

TwoSampleResult = record.TwoSampleResult

NullMethod: TypeAlias = Literal["permutation", "moments"]
Scale: TypeAlias = Literal["standardize", "none"]
# The moments need four different rows.
FEWEST_ROWS = 4
LIBRARIES = ("numpy", "scipy", "pyarrow")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a two-sample test that are not about reading tables, checked."""

    estimator: Estimator
    null: NullMethod
    permutations: int
    alpha: float
    scale: Scale
    seed: int

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises
        ------
        UsageError
            If a name is unknown or a number out of range.
        """
        one_of("estimator", self.estimator, ("unbiased", "biased"))
        one_of("null", self.null, ("permutation", "moments"))
        one_of("scale", self.scale, ("standardize", "none"))
        if not 0 < self.alpha < 1:
            raise UsageError(
                f"alpha must be between 0 and 1, not {self.alpha:g}", hint="0.05 is usual", code="usage.alpha"
            )
        whole_number("permutations", self.permutations, at_least=1)
        whole_number("seed", self.seed, at_least=0)


@dataclass(frozen=True, slots=True)
class Sample:
    """The pooled rows as kernels see them: scaled, in canonical order.

    Parameters
    ----------
    points : Points
        n rows.
    labels : ndarray of uint8, shape (n,)
        1 for rows of X.
    numeric_names, category_names : tuple of str
    """

    points: Points
    labels: Labels
    numeric_names: tuple[str, ...]
    category_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a null says: a p-value, the kernel it is reported for, and how it was found."""

    p_value: float
    kernel: Kernel
    null: record.Null
    family: record.Family | None
    warnings: tuple[str, ...]


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
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    common: bool = False,
    categorical: str | Sequence[str] = (),
    missing: Literal["error", "drop"] = "error",
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
    null : "permutation" or "moments"
        Exact p-value over relabellings, or a Pearson III curve through the exact mean, variance and skewness of the
        permutation distribution: approximate, without a floor, for one kernel.
    permutations : int
        Relabellings to use at least. All n cyclic ones cost no more than a few, so that up to n come for nothing.
    alpha : float
        Level of the decision.
    scale : "standardize" or "none"
        Whether numeric columns are brought to pooled mean 0 and standard deviation 1.
    seed : int
        Of the random order of the rows. The result depends on nothing else that is random: not on the order of rows
        in the files, nor on the number of threads.
    columns, exclude : str or sequence of str, optional
        Columns to use or to leave out: names, ranges `a:b`, wildcards `temp_*`.
    common : bool
        Use the columns that both tables have and leave out the others.
    categorical : str or sequence of str
        Numeric columns to take as categories.
    missing : "error" or "drop"
        What to do with rows that have missing values.
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
        If the kernel cannot tell any two relabellings apart, or overflows.

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
    started = time.perf_counter()
    options = Options(estimator, null, permutations, alpha, scale, seed)
    check_bandwidth(bandwidth)
    engine = LocalEngine(threads)
    tables = _two_tables(x, y, columns=columns, exclude=exclude, common=common, categorical=categorical)
    used, dropped = _without_missing(tables.matched, missing)
    pooled = pool(*used)
    sample = lay_out(pooled, scale)
    chooser = BandwidthChooser(sample.points, seed)
    family = choose_kernels(
        kernel,
        bandwidth,
        numeric_names=sample.numeric_names,
        category_names=sample.category_names,
        chooser=chooser,
        single=null == "moments",
    )
    if null == "permutation":
        verdict = _permutation_verdict(family, sample, options, engine, progress)
    else:
        verdict = _moments_verdict(family, sample, options, engine, progress)
    found = discrepancy(verdict.kernel, sample.points, sample.labels, engine)
    names = tuple(name for name in used[0].names if name not in {*pooled.left_out, *family.unused})
    warnings = (*tables.warnings, *dropped, *pooled.warnings, *_kernel_warnings(family, verdict), *verdict.warnings)
    statistic = found.unbiased if estimator == "unbiased" else found.biased
    subject = "the two files" if tables.read[0].sha256 else "the two samples"
    return record.TwoSampleResult(
        schema="kerntest.mmd/1",
        command="mmd",
        statistic=statistic,
        estimator=estimator,
        p_value=verdict.p_value,
        alpha=alpha,
        reject=verdict.p_value <= alpha,
        decision=decision_sentence(verdict.p_value, alpha, subject),
        kernel=str(verdict.kernel),
        bandwidth=getattr(verdict.kernel, "bandwidth", None),
        gamma=getattr(verdict.kernel, "gamma", None),
        n_x=pooled.n_x,
        n_y=pooled.n_y,
        columns=names,
        columns_left_out=(*pooled.left_out, *family.unused),
        mmd2_unbiased=found.unbiased,
        mmd2_biased=found.biased,
        mmd=math.sqrt(max(found.unbiased, 0.0)),
        mmd_standard_error=_standard_error(found, verdict, alpha),
        effect_size=found.effect_size,
        null=verdict.null,
        family=verdict.family,
        warnings=warnings,
        provenance=record.Provenance(
            version=kerntest.__version__,
            seed=seed,
            inputs=tuple(
                record.InputRecord(read.name, read.format, read.n_rows, kept.n_rows, read.sha256, read.delimiter)
                for read, kept in zip(tables.read, used, strict=True)
            ),
            kernel=str(kernel),
            bandwidth=family.rule,
            scale=scale,
            dtype="float64",
            threads=engine.threads,
            libraries={name: version(name) for name in LIBRARIES},
            seconds=time.perf_counter() - started,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Tables:
    """Both tables as read, and with the same columns."""

    read: tuple[Table, Table]
    matched: tuple[Table, Table]
    warnings: tuple[str, ...]


def _two_tables(x: Any, y: Any, *, columns: Any, exclude: Any, common: bool, categorical: Any) -> _Tables:
    read = (
        read_table(x, name=None if _is_path(x) else "x", categorical=categorical),
        read_table(y, name=None if _is_path(y) else "y", categorical=categorical),
    )
    first, second, warnings = match_tables(
        *read, columns=columns, exclude=exclude, common=common, categorical=categorical
    )
    return _Tables(read, (first, second), (*read[0].warnings, *read[1].warnings, *warnings))


def _is_path(source: str | Path | object) -> bool:
    return isinstance(source, (str, Table)) or hasattr(source, "__fspath__")


def _without_missing(tables: tuple[Table, Table], policy: Literal["error", "drop"]) -> tuple[list[Table], list[str]]:
    """Return both tables without missing values, and a warning for each that lost rows."""
    used, warnings = [], []
    one_of("missing", policy, ("error", "drop"))
    for table in tables:
        kept, dropped = apply_missing(table, policy)
        used.append(kept)
        if dropped:
            rows = "1 row" if dropped == 1 else f"{dropped:,} rows"
            warnings.append(f"{table.name}: {rows} of {table.n_rows:,} with missing values left out")
    return used, warnings


def lay_out(pooled: Pooled, scale: Scale) -> Sample:
    """Return the pooled rows scaled and in canonical order."""
    labels = (np.arange(pooled.n_x + pooled.n_y) < pooled.n_x).astype(np.uint8)
    order = canonical_order(pooled.numeric, pooled.codes, pooled.numeric_names, pooled.category_names, labels)
    numeric = pooled.numeric[order]
    if scale == "standardize":
        numeric = standardize(numeric)[0]
    points = Points(numeric, pooled.codes[order])
    return Sample(points, labels[order], pooled.numeric_names, pooled.category_names)


def _permutation_verdict(
    family: Family, sample: Sample, options: Options, engine: Engine, progress: Progress | None
) -> Verdict:
    """Judge the family over all cyclic relabellings of as many random orders as are needed."""
    n = len(sample.points)
    n_x = int(sample.labels.sum())
    circle = circle_length(n)
    orders = orders_needed(options.permutations, circle)
    order, labellings = random_orders(sample.labels, orders, options.seed)
    label = label_matrix(n_x, n - n_x, options.estimator)
    points = sample.points.take(order)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = shift_sums(
            family.kernels,
            points,
            LabelSide(label, labellings, circle),
            circle=circle,
            orders=orders,
            engine=engine,
            progress=progress,
        ).reshape(len(family.kernels), orders * circle)
    refuse_overflow(family.kernels, sums)
    other_norm = math.sqrt(label.squared_norm)
    tolerances = np.array([tie_tolerance(float(k.diagonal(points).max()), n, other_norm) for k in family.kernels])
    judged = judge(sums, tolerances)
    refuse_degenerate(judged, family)
    used = orders * circle
    chosen = judged.selected
    null = record.Null(
        method="permutation",
        permutations=used,
        requested=options.permutations,
        p_floor=1.0 / used,
        exact=True,
        resampling="cyclic shifts",
        orders=orders,
        mean=float(label.factor * judged.mean[chosen]),
        standard_deviation=float(label.factor * judged.standard_deviation[chosen]),
        skewness=float(judged.skewness[chosen]),
        trace=None,
    )
    members = tuple(
        record.FamilyMember(str(kernel), float(z), float(p))
        for kernel, z, p in zip(family.kernels, judged.z, judged.p_values, strict=True)
    )
    together = record.Family(COMBINATION, members, family.thinning) if len(members) > 1 else None
    warnings = []
    if null.p_floor is not None and null.p_floor > options.alpha:
        warnings.append(
            f"the smallest p-value that {used:,} relabellings can give is {null.p_floor:.3g}, above alpha = "
            f"{options.alpha:g}: the test cannot reject; use more --permutations"
        )
    return Verdict(judged.p_value, family.kernels[chosen], null, together, tuple(warnings))


def _moments_verdict(
    family: Family, sample: Sample, options: Options, engine: Engine, progress: Progress | None
) -> Verdict:
    """Judge one kernel by the exact moments of its permutation distribution."""
    (kernel,) = family.kernels
    n = len(sample.points)
    n_x = int(sample.labels.sum())
    if n < FEWEST_ROWS:
        raise UndecidedError("the moments of the null need at least 4 rows", code="undecided.too_few_rows")
    label = label_matrix(n_x, n - n_x, options.estimator)
    invariants, exact = kernel_invariants(
        kernel,
        sample.points,
        engine,
        hollow=options.estimator == "unbiased",
        seed=options.seed,
        progress=progress,
    )
    moments = permutation_moments(invariants, label_invariants(label), n)
    largest = float(kernel.diagonal(sample.points).max())
    if not moments.standard_deviation > tie_tolerance(largest, n, math.sqrt(label.squared_norm)):
        raise degenerate_kernel(family)
    found = discrepancy(kernel, sample.points, sample.labels, engine)
    value = (found.unbiased if options.estimator == "unbiased" else found.biased) / label.factor
    null = record.Null(
        method="moments",
        permutations=None,
        requested=None,
        p_floor=None,
        exact=False,
        resampling=None,
        orders=None,
        mean=label.factor * moments.mean,
        standard_deviation=label.factor * moments.standard_deviation,
        skewness=moments.skewness,
        trace="exact" if exact else "stochastic",
    )
    return Verdict(moments_p_value(value, moments), kernel, null, None, ())


def refuse_overflow(kernels: Sequence[Kernel], sums: np.ndarray[Any, Any]) -> None:
    """Refuse sums that are not finite.

    Raises
    ------
    UndecidedError
        Naming the kernel.
    """
    for kernel, values in zip(kernels, sums, strict=True):
        if not np.isfinite(values).all():
            raise UndecidedError(
                f"the kernel '{kernel}' overflows on these rows",
                hint="--scale standardize, or a smaller gain or degree, keeps it in range",
                code="undecided.overflow",
            )


def refuse_degenerate(judged: Judged, family: Family) -> None:
    """Refuse a family of which no member can tell any two relabellings apart.

    Raises
    ------
    UndecidedError
        As above.
    """
    if judged.degenerate.all():
        raise degenerate_kernel(family)


def degenerate_kernel(family: Family) -> UndecidedError:
    """Return the error for kernels that find all pairs of rows equally similar."""
    return UndecidedError(
        f"the kernel '{family.kernels[0]}' finds all pairs of different rows equally similar: nothing can be tested",
        hint="its bandwidth is far too small or far too large for these rows; try --bandwidth median",
        code="undecided.degenerate_kernel",
    )


def _standard_error(found: Discrepancy, verdict: Verdict, alpha: float) -> float | None:
    """Return the standard error of MMD, or None where MMD is not clearly above 0 and the error means nothing."""
    if verdict.p_value > alpha or not math.isfinite(found.standard_error):
        return None
    return found.standard_error


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


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the allowed names.

    Raises
    ------
    UsageError
        With the name that was meant, if one is close.
    """
    if value not in allowed:
        meant = suggest(str(value), allowed)
        raise UsageError(
            f"{name} must be {' or '.join(allowed)}, not {value!r}",
            hint=f"did you mean '{meant}'?" if meant else None,
            code=f"usage.{name}",
        )


def whole_number(name: str, value: int, *, at_least: int) -> None:
    """Refuse a value that is not a whole number from `at_least` on.

    Raises
    ------
    UsageError
        As above.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise UsageError(f"{name} must be a whole number of at least {at_least}, not {value!r}", code=f"usage.{name}")
