"""The independence test: whether two groups of columns depend on each other."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from kerntest.data.columns import split_patterns
from kerntest.data.diagnostics.dependent_rows import order_warnings, several_series
from kerntest.data.diagnostics.dependent_units import clusters_in_time, clusters_out_of_order
from kerntest.data.diagnostics.series import FOLLOWING, no_series
from kerntest.data.facts import lone_values
from kerntest.data.formats.dialect import CsvOptions, CsvWords
from kerntest.data.gaps import longest_stretch, rows_with_all
from kerntest.errors import DataError, UsageError, one_of, option, telling, whole_number
from kerntest.inference import exact
from kerntest.inference.explain.cross_covariance import spectral_verdict
from kerntest.inference.family import BandwidthOption, Family, choose_pair
from kerntest.inference.method import ByFeatures, Way
from kerntest.inference.relabelling.designs_of_columns import clusters_of
from kerntest.inference.relabelling.permuted_clusters import ClusteredVariables
from kerntest.inference.relabelling.permuted_pairs import TwoSeries, TwoVariables, pairs_of
from kerntest.inference.sides import Groups, Options, Paired, Reading, pair_up, read_pair
from kerntest.inference.verdict import Verdict, verdict_of
from kerntest.inference.work_of_tests import step_of_test
from kerntest.kernels.elementary import moved_to_origin
from kerntest.report.results.independence_record import IndependenceResult, KernelPair
from kerntest.report.summaries.test_summary import SPECTRAL, independence_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike
    from typing import Unpack

    from numpy.typing import NDArray

    from kerntest.data.missing import MissingPolicy
    from kerntest.data.table import Table
    from kerntest.engines.engine import Progress
    from kerntest.inference.exact import Statistic
    from kerntest.inference.explain.pictures import Files
    from kerntest.inference.sides import Estimator, Judge, Method, NullMethod, Scale
    from kerntest.kernels.base import Kernel
    from kerntest.report.results.record import Provenance


PERMUTATIONS = 1000
# Groups of which a screen of all pairs is read.
MOST_GROUPS = 20


@telling
@np.errstate(over="ignore", invalid="ignore")
def hsic_test(
    x: Any,
    y: Any = None,
    *,
    x_columns: str | Sequence[str] | None = None,
    y_columns: str | Sequence[str] | None = None,
    kernel_x: Kernel | str = "auto",
    kernel_y: Kernel | str = "auto",
    bandwidth: BandwidthOption = "auto",
    statistic: Statistic = "hsic",
    estimator: Estimator = "unbiased",
    null: NullMethod | None = None,
    permutations: int = PERMUTATIONS,
    alpha: float = 0.05,
    scale: Scale = "standardize",
    seed: int = 0,
    judge: Judge = "together",
    resampling: Literal["shifts", "random"] = "shifts",
    time_series: bool = False,
    min_lag: int | None = None,
    method: Method = "auto",
    features: str | None = None,
    witness: str | PathLike[str] | None = None,
    plot: str | PathLike[str] | None = None,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    cluster: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **csv: Unpack[CsvWords],
) -> IndependenceResult:
    """Test whether x and y are independent, by the Hilbert-Schmidt independence criterion.

    Parameters
    ----------
    x : path, "-", ndarray of shape (n,) or (n, p), DataFrame, pyarrow Table or kerntest.Table
        n rows, at least 4. Without `y` a table with both groups of columns.
    y : as x, optional
        Row i of it belongs to row i of x.
    x_columns, y_columns : str or sequence of str, optional
        The columns of each group: names, ranges `a:b`, wildcards `temp_*`. Of one table, one of the two alone is
        tested against all other columns, and neither is needed where there are two columns.
    kernel_x, kernel_y : Kernel or str
        A kernel or its text for each side. "auto": Gaussian, Laplacian and, where a side has several columns, additive,
        each with up to three bandwidths, pairs of one kind judged by one p-value. Text and boolean columns get a kernel of their own in a product.
    bandwidth : "auto", "median", float or sequence of float
        For bandwidths that the kernels leave open, in units of the scaled columns.
    statistic : "hsic", "coco", "kcc" or "kmi"
        HSIC, the sum of all squared singular values of the cross-covariance operator of x and y; COCO, the largest one; or,
        of operators that are normalised, KCC, the largest one, which is the regularised kernel canonical correlation
        (Fukumizu, Bach and Gretton 2007), and KMI, -1/2 sum_i log(1 - s_i^2), the kernel mutual information (Gretton et al.
        2005). All but HSIC are for one pair of kernels, by random permutations.
    estimator : "unbiased" or "biased"
        Which estimate of HSIC is tested (Song et al. 2012, eq. 5; Gretton et al. 2008, eq. 4).
    null : "permutation", "moments", "gamma", "spectral" or "pearson"
        Exact p-value over relabellings, or, for one pair of kernels, an approximate one without a floor; as in
        `mmd_test`. "gamma" is that of Gretton et al. (2008) for the biased statistic. "permutation" by default, and
        "moments" with features.
    permutations : int
        Relabellings to use at least. All n cyclic ones cost no more than a few, so that up to n come for nothing.
    alpha : float
        Level of the decision.
    scale : "standardize" or "none"
        Whether numeric columns are brought to mean 0 and standard deviation 1.
    seed : int
        Of the random order of the rows. The result depends on nothing else that is random, nor on the number of
        threads; rows in another order, or x and y exchanged, move the p-value within its Monte-Carlo error, but with
        `cluster` the order of the rows of each matters.
    judge : "together" or "smallest"
        How several kernels come to one p-value: by how their statistics vary together under relabelling, which sees
        differences that no kernel shows alone, or by the smallest p-value of a kernel. With one kernel there is no
        difference.
    resampling : "shifts" or "random"
        Relabellings of the permutation null: all cyclic ones, or ordinary random permutations, which take longer and
        hold whole matrices.
    time_series : bool
        Rows are stationary series in the order of time: the shift test (Chwialkowski and Gretton 2014), asymptotic.
    min_lag : int, optional
        For time series: the smallest shift that stands for independence, 1 by default: with more, rows of the same time that are alike as one
        series follows the other are found oftener, and what both remember counts in the p-value.
    method : "auto", "exact" or "features"
        The kernel matrices as they are ("auto" where that is no more work than about two minutes on two processors,
        counted from rows, columns and kernels alone, else features, and the warnings say so), or explicit features of one pair of kernels (auto: Gaussian at the median
        bandwidths), for any number of rows: one file with all columns is read row group by row group and never held.
        Its null is moments, gamma or spectral.
    features : str, optional
        With `method="features"`: "nystroem:M" for M random rows of each side as landmarks, 200 by default; or
        "fourier:M", for the Gaussian of numbers.
    witness : path, optional
        CSV or Parquet file for the witness functions f(x) and g(y) at every row: the pair of unit norm with the
        largest covariance.
    plot : path, optional
        PNG, SVG or PDF file for a picture: the null distribution and the witness functions. Needs matplotlib.
    columns, exclude : str or sequence of str, optional
        Columns that take part on either side, or do not.
    categorical : str or sequence of str
        Numeric columns to take as categories.
    missing : "error", "drop" or "indicator"
        Refuse missing values on either side, leave out their rows, or take them as information, as in `mmd_test`.
    cluster : str, optional
        The column that says which rows belong together, such as those of a patient. A side that is constant within
        clusters moves between them; else clusters of one size exchange their rows, in the order of the table.
    threads : int, optional
        All processors by default.
    progress : callable, optional
        Called with (blocks done, blocks in all).
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    IndependenceResult
        A frozen record; its fields are those of the JSON.

    Warns
    -----
    KerntestWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError
        If an option makes no sense, or names a column that is not there.
    DataError
        If a table cannot be read, rows do not pair, or there is nothing to test.
    UndecidedError
        If the kernels cannot tell rows apart, or there are too many rows for what was asked for.
    MissingExtraError
        If a picture was asked for and matplotlib is not installed.

    Notes
    -----
    Cost: O(n^2 (p + log n)) time for each kernel and O(n^2) for each pair of them, O(64 n) to O(128 n) numbers per
    thread for one pair; never n x n. With M features O(n (M p + M^2)) time, and memory that does not grow with n.

    Examples
    --------
    >>> import numpy as np
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> hsic_test(np.cos(angle), np.sin(angle)).reject
    True
    """
    one_of("resampling", resampling, ("shifts", "random"))
    one_of("statistic", statistic, get_args(exact.Statistic))
    options = Options(
        estimator, "permutation" if null is None else null, permutations, alpha, scale, seed, resampling, judge
    )
    others_than = {
        option("statistic", statistic): statistic != "hsic",
        option("time-series", True): time_series,
        option("resampling", "random"): resampling == "random",
    }
    exact_only = others_than | {
        option("min-lag"): min_lag is not None,
        f"{option('bandwidth')} of several values": not isinstance(bandwidth, str) and np.size(bandwidth) > 1,
        option("witness"): witness is not None,
        option("plot"): plot is not None,
        option("cluster"): cluster is not None,
    }
    beside = {
        option("null", null): null in {"permutation", "pearson"},
        option("judge", judge): judge != "together",
        option("permutations"): permutations != PERMUTATIONS,
    }
    kernels = kernel_x, kernel_y
    single = options.null != "permutation" or statistic != "hsic"
    way = Way.of(method, features, exact_only, kernels=kernels, bandwidth=bandwidth, single=single, beside=beside)
    read: Any = {"x_columns": x_columns, "y_columns": y_columns, "cluster": cluster}
    reading = Reading(columns, exclude, False, categorical, missing, CsvOptions.of(**csv, seed=seed), **read)
    others_than |= {option("null", null): options.null != "permutation"}
    for odd in [one for one, there in others_than.items() if there and cluster is not None]:
        said = f"{option('cluster', cluster)} says which relabellings there are, and {odd} takes others"
        raise UsageError(said, hint=f"leave out {odd}", code="usage.design")

    def by_features(x: Any, y: Any, why: Sequence[str] = ()) -> IndependenceResult:
        from kerntest.inference.features import product_sums, two_passes  # noqa: PLC0415 - few need them

        asked, own = features or product_sums.FEATURES, replace(options, null="moments" if null is None else null)
        survey = two_passes.Survey("hsic", own, asked, reading, threads=threads, progress=progress, why=why)
        return product_sums.hsic_by_features(x, y, survey, independence_result, kernels=kernels, bandwidth=bandwidth)

    _check_statistic(statistic, options, bandwidth, time_series=time_series, min_lag=min_lag)
    files = _files(witness, plot)
    run = exact.RunOfTest(options, threads, statistic)
    with way.tables(read_pair, x, y, reading) as groups:
        if isinstance(groups, ByFeatures):
            return by_features(*groups)
    options = run.options
    groups = groups.with_gaps(missing)
    if time_series and missing == "error":
        _refuse_missing(groups)
    paired = pair_up(groups, missing, scale, cluster)
    first, second = paired.variables
    test = TwoVariables(options, run.engine, progress, (first.points, second.points))
    if cluster is not None:
        test = _of_clusters(test, groups, paired, reading, x)
        run.options = test.options
    if time_series:
        _refuse_gaps(paired, groups)
        test = TwoSeries(options, run.engine, progress, test.points, min_lag)
    relabellings = test.different(permutations)
    family = choose_pair(
        kernels,
        bandwidth,
        paired.variables,
        seed=seed,
        single=single,
        relabellings=relabellings,
    )
    points = moved_to_origin(first.points, family.sides()[0]), moved_to_origin(second.points, family.sides()[1])
    both = list(zip(points, family.sides(), strict=True))
    run.refuse_dense(both, test.dense, "shifts")
    run.prepare(
        "hsic",
        paired.n,
        len(first.names + second.names),
        lambda: [
            step_of_test(
                both,
                replace(run.options, permutations=relabellings),
                pairs=pairs_of(family),
                statistic=statistic,
                whole=test.dense,
                cosets=test.cosets,
                places=test.places,
                circle=test.circle,
                stride=test.stride,
            )
        ],
    )
    test = replace(test, points=points, engine=run.engine)
    verdict = (
        _as_exact(verdict_of(test, family, chain.from_iterable(map(lone_values, groups.tables))), test)
        if statistic == "hsic"
        else spectral_verdict(test, family, statistic)
    )
    rejects = verdict.p_value <= alpha
    invalid = tuple(_series_warnings(groups, paired, rejects=rejects)) if time_series else ()
    result = independence_result(
        run,
        verdict,
        family,
        run.provenance(groups.read, [paired.n] * 2, kernels, family.rule),
        doubt=" These are no stationary series, and the p-value is not valid: see the warnings."
        * bool(invalid and rejects),
        groups=groups,
        unused=[one.left_out for one in paired.arranged],
        n=paired.n,
        statistic=statistic,
        warnings=(
            *groups.warnings,
            *paired.warnings,
            *(
                invalid
                if time_series
                else _cluster_warnings(test, groups, paired, rejects=rejects)
                if isinstance(test, ClusteredVariables)
                else _row_warnings(groups, paired, rejects=rejects, without=_without_ways(statistic, options))
            ),
        ),
    )
    if files is not None:
        files.write_of(exact.IndependenceAnalysis(result, verdict, paired, groups))
    return result


def _as_exact(verdict: Verdict, test: TwoVariables) -> Verdict:
    """Return a verdict that is approximate where clusters are no longer what they were once they are relabelled."""
    exact_ = verdict.null.exact and not (isinstance(test, ClusteredVariables) and test.uneven)
    return verdict._replace(null=replace(verdict.null, exact=exact_))


def _files(witness: str | PathLike[str] | None, plot: str | PathLike[str] | None) -> Files | None:
    """Return what is to be written beside the result, if anything."""
    if witness is None and plot is None:
        return None
    from kerntest.inference.explain import pictures  # noqa: PLC0415 - few need it

    return pictures.Files(witness, plot)


def _of_clusters(
    test: TwoVariables, groups: Groups, paired: Paired, reading: Reading, source: Any
) -> ClusteredVariables:
    """Return the test of rows of which some belong together."""
    cluster = str(reading.cluster)
    units = clusters_of(groups, paired.origin, cluster)
    within = partial(_within_clusters, groups, paired, reading, source, units=units, alpha=test.options.alpha)
    rows = ClusteredVariables(test.options, test.engine, test.progress, test.points, units, cluster, within)
    rows = rows.by_shifts_if_less()
    return rows.checked() if test.options.null == "permutation" else rows


def _within_clusters(
    groups: Groups, paired: Paired, reading: Reading, source: Any, *, units: NDArray[np.intp], alpha: float
) -> str:
    """Return the call of mmd that compares the rows of each cluster, where a side is a column of few groups and enough have several."""
    from kerntest.inference.screens.row_groups import call_of  # noqa: PLC0415 - few need it

    patterns = reading.x_columns, reading.y_columns
    for (side, _), named in zip(groups.sides() * (len(groups.read) == 1), patterns[::-1], strict=False):
        rows = side.columns[0].take(paired.origin)
        _, group, counts = np.unique(rows.values, return_inverse=True, return_counts=True)
        cells = np.unique(units * len(counts) + group, return_counts=True)[0] // len(counts)
        parted, pairs = np.count_nonzero(np.bincount(cells) > 1), math.comb(len(counts), 2)
        if len(side.columns) == 1 and len(counts) <= MOST_GROUPS and 0.5 ** (parted - 1) * pairs <= alpha:
            columns = {"columns": reading.columns, "exclude": reading.exclude} if named is None else {"columns": named}
            told = {"by": [*side.names], **columns, "paired": [reading.cluster]}
            return call_of("mmd", reading, source, **told, categorical=split_patterns(reading.categorical))
    return ""


def independence_result(
    run: exact.RunOfTest,
    verdict: Verdict,
    family: Family,
    provenance: Provenance,
    *,
    groups: Groups,
    unused: Sequence[Sequence[str]],
    n: int,
    warnings: Sequence[str],
    statistic: Statistic = "hsic",
    doubt: str = "",
    **more: Any,
) -> IndependenceResult:
    """Return the record of a test; `unused` are columns of each side, and `doubt` goes with its decision."""
    kernel_x, kernel_y = verdict.kernels
    used = [
        tuple(name for name in table.names if name not in {*one, *unseen})
        for table, one, unseen in zip(groups.tables, unused, family.left_out, strict=True)
    ]
    left_out = [
        name for table, names in zip(groups.tables, used, strict=True) for name in table.names if name not in names
    ]
    return IndependenceResult(
        schema="kerntest.hsic/1",
        command="hsic",
        **run.fields(verdict, family, KernelPair, warnings),
        provenance=provenance,
        statistic_name=statistic,
        reject=verdict.p_value <= run.options.alpha,
        decision=independence_sentence(verdict.p_value, run.options.alpha, variable_names(used, groups)) + doubt,
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
        coco=verdict.spectral if statistic == "coco" else None,
        penalties=verdict.penalties,
        witness_correlation=verdict.witness_correlation,
        lags=verdict.lags,
        columns_left_out=tuple(dict.fromkeys(left_out)),
        **more,
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


def _check_statistic(
    statistic: Statistic, options: Options, bandwidth: BandwidthOption, *, time_series: bool, min_lag: int | None
) -> None:
    """Refuse options of an independence test that make no sense together."""
    shifts = options.null == "permutation" and options.resampling == "shifts"
    several = not isinstance(bandwidth, str) and np.size(bandwidth) > 1
    series, only = (
        f"{option('time-series', True)} tests rows in the order of time",
        f"{option('statistic', 'hsic')} judges several bandwidths together",
    )
    called = "" if statistic == "hsic" else SPECTRAL[statistic][0]
    one_of_them = f"leave out {option('time-series', True)}, or {option('statistic', statistic)}"
    refusals = (
        (
            "time_series",
            time_series and called,
            f"the shift test of series is one of HSIC, not of {statistic.upper()}",
            one_of_them,
        ),
        (
            "time_series",
            time_series and not shifts,
            "series have one null, the shift test",
            f"leave out {option('null')} and {option('resampling')}, or {option('time-series', True)}",
        ),
        ("min_lag", min_lag is not None and not time_series, "min_lag is for time series", series),
        (
            "bandwidth_family",
            called and several,
            f"the {called} is tested for one pair of kernels: give one bandwidth",
            only,
        ),
    )
    for code, refused, message, hint in refusals:
        if refused:
            raise UsageError(message, hint=hint, code=f"usage.{code}")
    if min_lag is not None:
        whole_number("min_lag", min_lag, at_least=1)


def _refuse_gaps(paired: Paired, groups: Groups) -> None:
    """Refuse a series that lost rows in its middle: what is left would not be one step apart."""
    table = groups.tables[0]
    gaps = np.flatnonzero(np.diff(table.numbers()[paired.origin]) > 1)
    if len(gaps):
        row = int(paired.origin[gaps[0]]) + 1
        said = "a row is left out here, inside the series, which would close the gap and shift all lags"
        raise _gap(table, row, said, paired.origin)


def _refuse_missing(groups: Groups) -> None:
    """Refuse series without a value in some row: leaving the row out would be no way out."""
    columns = [(table, column) for table in groups.tables for column in table.columns]
    for table, column in columns:
        if column.n_missing:
            said = f"column {column.name!r} has no value, and a series has one in every row"
            kept = rows_with_all([one for _, one in columns if len(one.missing) == table.n_rows])
            raise _gap(table, int(np.argmax(column.missing)), said, kept)


def _gap(table: Table, row: int, said: str, kept: NDArray[np.intp]) -> DataError:
    """Return the error for a series that does not go on in every row, with the longest stretch in which it does."""
    stretch, way = longest_stretch(table, kept), f"by {option('where')} and not {option('sample')}"
    return DataError(
        f"{table.name}, {table.place(row)}: {said}",
        hint=f"test a stretch without gaps{f', {stretch},' if stretch else ''} {way}; fill in missing values",
        code="data.gap",
        where=table.where(row),
    )


def _series_warnings(groups: Groups, paired: Paired, *, rejects: bool) -> Iterator[str]:
    """Yield why rows are no two stationary series."""
    yield from several_series(groups.sides(), paired.origin, rejects=rejects)
    yield from no_series(groups.tables, paired.origin, rejects=rejects)


def _cluster_warnings(test: ClusteredVariables, groups: Groups, paired: Paired, *, rejects: bool) -> list[str]:
    """Return what to know of clusters: that most keep their place, follow one another on both sides, or have rows in no order of time."""
    cluster, held_back = test.name, [*test.told_of_uneven(), *test.held_back(rejects=rejects)]
    told = [list(clusters_in_time(side.columns, read, cluster, FOLLOWING)) for side, read in groups.sides()]
    if rejects and all(told):
        return [*held_back, *told[0]]
    sides = [side.take(paired.origin) for side, _ in groups.sides()]
    holding = next(read for read in groups.read if cluster in read.names)
    return [*held_back, *clusters_out_of_order(sides, holding.take(paired.origin), cluster, rejects=rejects)]


def _without_ways(statistic: Statistic, options: Options) -> str:
    """Return the options with which there are no tests of clusters and series."""
    given = {"statistic": statistic != "hsic" and statistic, "null": options.null != "permutation" and options.null}
    return " and ".join(option(name, value) for name, value in given.items() if value)


def _row_warnings(groups: Groups, paired: Paired, *, rejects: bool, without: str) -> list[str]:
    """Return warnings where rows follow one another, count, or repeat each other."""
    in_order = order_warnings(groups.sides(), rejects=rejects, rows=paired.origin, without=without)
    return [*in_order, *exact.paired_copies(paired, groups.tables)]
