"""The two-sample test: whether two tables come from the same distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from kerntest.data.formats.dialect import CsvOptions
from kerntest.errors import UsageError, one_of, option, telling
from kerntest.inference import exact
from kerntest.inference.comparison import Comparison
from kerntest.inference.family import BandwidthOption, check_bandwidth
from kerntest.inference.method import Way
from kerntest.inference.sides import Options, Reading
from kerntest.inference.sizes.margins import Asked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from kerntest.data.missing import MissingPolicy
    from kerntest.engines.engine import Progress
    from kerntest.inference.sides import Estimator, Judge, Method, NullMethod, Scale
    from kerntest.kernels.base import Kernel
    from kerntest.report.results.groups_record import GroupsResult
    from kerntest.report.results.two_sample_record import TwoSampleResult


@overload
def mmd_test(x: Any, y: Any, *, by: None = None, **options: Any) -> TwoSampleResult: ...
@overload
def mmd_test(x: Any, y: Any = None, *others: Any, **options: Any) -> TwoSampleResult | GroupsResult: ...


# A kernel that overflows is found by its sums, and refused by name.
@telling
@np.errstate(over="ignore", invalid="ignore")
def mmd_test(
    x: Any,
    y: Any = None,
    *others: Any,
    by: str | None = None,
    reference: str | float | None = None,
    kernel: Kernel | str = "auto",
    bandwidth: BandwidthOption = "auto",
    estimator: Estimator = "unbiased",
    null: NullMethod = "permutation",
    permutations: int = 1000,
    alpha: float = 0.05,
    scale: Scale = "standardize",
    seed: int = 0,
    judge: Judge = "together",
    resampling: Literal["blocks", "random"] = "blocks",
    min_effect: float | str | None = None,
    margin: float | str | None = None,
    explain: bool = False,
    witness: str | PathLike[str] | None = None,
    plot: str | PathLike[str] | None = None,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    common: bool = False,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    cluster: str | None = None,
    paired: str | None = None,
    strata: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    method: Method = "auto",
    features: str | None = None,
    **csv: Any,
) -> TwoSampleResult | GroupsResult:
    """Test whether two samples, or several, come from the same distribution, by the maximum mean discrepancy.

    Parameters
    ----------
    x, y : path, "-", ndarray of shape (n,) or (n, p), DataFrame, pyarrow Table or kerntest.Table
        The samples: n_x and n_y rows of the same columns, at least two rows each. With `by` there is no y.
    *others : as y
        Further samples: each of y and these is compared with x.
    by : str, optional
        The column of x that says which group a row is in. Two groups are two samples. More are tested all together, by one
        exact p-value, and two by two; groups of a single row take no part.
    reference : str or number, optional
        With `by`: the group with which each of the others is compared, in place of every two; of two groups the first.
    kernel : Kernel or str
        A kernel or its text, such as "gaussian(1.5) + 0.5*laplacian(2)". "auto": Gaussian, Laplacian and, from three
        columns on, additive, each on a grid of bandwidths, judged by one p-value. Text and boolean columns get a kernel
        of their own in a product.
    bandwidth : "auto", "median", float or sequence of float
        For bandwidths that the kernel leaves open, in units of the scaled columns.
    estimator : "unbiased" or "biased"
        Which estimate of MMD^2 is tested (Gretton et al. 2012, eqs. 3 and 5).
    null : "permutation", "moments", "gamma", "spectral" or "pearson"
        Exact p-value over relabellings; or, for one kernel, approximate and without a floor: a Pearson III curve
        through the exact mean, variance and skewness of the permutation distribution ("moments"), Gretton's Gamma
        for the biased statistic, a weighted sum of chi-squares, a Pearson curve through four moments.
    permutations : int
        Relabellings to use; all there are where they are fewer.
    alpha : float
        Level of the decision.
    scale : "standardize" or "none"
        Whether numeric columns are brought to pooled mean 0 and standard deviation 1.
    seed : int
        Of the random order of the rows and the draw of relabellings. The result depends on nothing else that is random,
        nor on the number of threads; rows in another order, or X and Y exchanged, move the p-value within its Monte-Carlo
        error.
    judge : "together" or "smallest"
        How several kernels come to one p-value: by how their statistics vary together under relabelling, which sees
        differences that no kernel shows alone, or by the smallest p-value of a kernel. With one kernel there is no
        difference.
    resampling : "blocks" or "random"
        Relabellings of the permutation null: permutations of some hundred blocks of random rows, or of all rows, which
        take much longer and see no more.
    min_effect : float or str, optional
        The smallest MMD that matters; as "0.2sd" that of a shift of one column by 0.2 of its standard deviation within the
        samples, and strata, in the column in which MMD shows it least. To reject, the lower confidence bound of MMD, at level 1 - alpha
        under the named kernel or the Gaussian at the median bandwidth, must also reach it.
    margin : float or str, optional
        The MMD within which the samples count as the same, or a shift as in `min_effect`: `result.margin.verdict` is "same"
        where the upper confidence bound of MMD, at level 1 - alpha, is below it, "differ" where the lower one is above it,
        else "undecided". Of several samples each pair has its own, at alpha over the number of pairs, and so it has of
        `min_effect`.
    explain : bool
        Also find the columns that differ, by how much and from what to what, and the most typical rows:
        `result.explanation`. Each column is tested alone, over permutations of blocks, and all others without it for the
        first columns: as many as 100 million pairs of rows times columns allow.
    witness : path, optional
        CSV or Parquet file for the witness function of the reported kernel at every row, each left out of its own mean.
    plot : path, optional
        PNG, SVG or PDF file for a picture: the null distribution, the witness function, and with `explain` the
        effect sizes of the columns and both distributions of the first six; of several samples the effect sizes of the
        pairs. Needs matplotlib.
    columns, exclude : str or sequence of str, optional
        Columns to use or to leave out: names, ranges `a:b`, wildcards `temp_*`.
    common : bool
        Use the columns that both tables have and leave out the others.
    categorical : str or sequence of str
        Numeric columns to take as categories.
    missing : "error", "drop" or "indicator"
        Refuse missing values, leave out their rows, or take them as information: a column of numbers with gaps becomes
        two, the number, gaps filled with the mean of both tables, and whether it is there; in one of categories "missing"
        is one more.
    cluster : str, optional
        The column that says which rows belong together, such as those of a patient: relabellings move them together. Each
        cluster is in one of both tables.
    paired : str, optional
        The column that says which rows of x and of y are of the same case, as before and after: relabellings exchange
        these.
    strata : str, optional
        The column within whose values rows are compared, such as a shop or a machine: relabellings stay within, and the
        statistic is the weighted mean of the differences there, so that a change of their mix alone changes nothing.
    threads : int, optional
        All processors by default.
    progress : callable, optional
        Called with (done, total) now and then.
    method : "auto", "exact" or "features"
        "exact" compares all pairs of rows. "auto" is exact where that is no more work than about two minutes on two
        processors, counted from rows, columns and kernels alone, else by features, and the warnings say so.
        "features" replaces every kernel value by that of explicit features and reads files piece by piece, so that
        they may be of any size; the p-value is exact for the kernel that the features stand for. Relabellings permute
        blocks of rows drawn at random. At least 200 rows each.
    features : str, optional
        "nystroem:N", by N sampled rows, for every kernel; or "fourier:N", N random ones, for kernels of differences of
        numbers. Default "nystroem:300".
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    TwoSampleResult or GroupsResult
        A frozen record; its fields are those of the JSON. The second of more than two samples.

    Warns
    -----
    KerntestWarning
        Of each of the `warnings` of the result.

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
    Cost: O(n^2 (p + F) / 2) time for the values of F kernels, computed once whatever the number of relabellings is, and
    O(F R b^2) for R relabellings of b blocks of rows; O(F b^2 + F R + n p) memory, n = n_x + n_y: never an n x n array.
    With N features: three passes over the files, O(n N p) time, and memory for a few pieces of them.

    Each pair of several samples is tested as if it were alone: its kernels, its scale and its relabellings come from its own
    rows, so that no other group can make it reject. p-values of pairs are corrected by Holm, over as many relabellings as
    let twice the smallest one be at most alpha after it. k groups of one table are tested all together by the weighted mean

        sum_{g<h} n_g n_h MMD^2(g, h) / sum_{g<h} n_g n_h

    which is <A, B> for L_ij = 1/(n_g - 1) where rows i and j are both in g (1/n_g: biased), times (n - 1) or n over the
    denominator; relabellings are those of `hsic_test`. Cost: that of the pairs, about n^2 (p + F) for all of them, and
    O(F n^2 log n).

    References
    ----------
    Gretton, Borgwardt, Rasch, Schoelkopf and Smola (2012), "A kernel two-sample test", JMLR 13; Domingo-Enrich, Dwivedi
    and Mackey (2025), "Cheap permutation testing", for blocks; Chatterjee and Bhattacharya (2025), "Boosting the power of
    kernel two-sample tests", for several kernels judged together; Rizzo and Szekely (2010), "DISCO analysis", for the
    weighted mean; Holm (1979).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> mmd_test(rng.normal(size=(100, 2)), rng.normal(size=(120, 2)) + 1.0).reject
    True
    >>> import pandas as pd
    >>> sizes = [*rng.normal(size=80), *rng.normal(size=40) + 2.0]
    >>> table = pd.DataFrame({"size": sizes, "kind": np.repeat(["a", "b", "c"], 40)})
    >>> [(pair.x, pair.y, pair.reject) for pair in mmd_test(table, by="kind").pairs]
    [('a', 'c', True), ('b', 'c', True), ('a', 'b', False)]
    """
    one_of("resampling", resampling, ("blocks", "random"))
    options = Options(estimator, null, permutations, alpha, scale, seed, resampling, judge)
    check_bandwidth(bandwidth)
    size = Asked(margin, min_effect)
    size.check()
    reading = Reading(
        columns,
        exclude,
        common=common,
        categorical=categorical,
        missing=missing,
        csv=CsvOptions.of(**csv, seed=seed),
        cluster=cluster,
        paired=paired,
        strata=strata,
    )
    exact_only = {
        option("explain", True): explain,
        option("witness"): witness is not None,
        option("plot"): plot is not None,
    }
    exact_only[option("resampling", "random")] = resampling == "random"
    exact_only |= {option(name): one is not None for name, one in reading.design.items()}
    single = options.null != "permutation"
    others_than = [option("null", null)] * single + [option("resampling", "random")] * (resampling == "random")
    if reading.apart and others_than:
        asked = next(option(name) for name, one in reading.design.items() if one is not None)
        said = f"{asked} says which relabellings there are, and {others_than[0]} takes others"
        raise UsageError(said, hint=f"leave out {others_than[0]}", code="usage.design")
    way = Way.of(method, features, exact_only, kernels=(kernel,), bandwidth=bandwidth, single=single)
    files = None
    if witness is not None or plot is not None:
        from kerntest.inference.explain.pictures import Files  # noqa: PLC0415 - few need it

        files = Files(witness, plot)
    run = exact.RunOfTest(options, threads)
    told = (kernel, bandwidth, features, size, explain, files, threads, progress)
    comparison = Comparison(run, options, reading, way, *told)
    if by is None and reference is None and y is not None and not others:
        return comparison.of(x, y)
    from kerntest.inference.screens import groups  # noqa: PLC0415 - few need it

    if by is not None:
        return groups.compare_groups(comparison, x, (y, *others), by, reference)
    return groups.compare_tables(comparison, (x, y, *others), reference)
