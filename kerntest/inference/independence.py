"""The independence test: whether two groups of columns depend on each other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from kerntest.data.checks import one_of
from kerntest.data.csv_options import CsvOptions
from kerntest.errors import UsageError, telling
from kerntest.inference.pair_analysis import Statistic, analyse_pair
from kerntest.inference.pair_picture import pair_figure
from kerntest.inference.pair_witness import pair_witness_bytes
from kerntest.inference.sides import Method, MissingPolicy, NullMethod, Options, Reading, Scale
from kerntest.inference.witness import witness_kind
from kerntest.report import independence_record
from kerntest.report.plot import picture_bytes, picture_kind
from kerntest.report.write import check_writable, write_file, written_together

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Unpack

    from kerntest.data.csv_options import CsvWords
    from kerntest.engines.base import Progress
    from kerntest.inference.family import BandwidthOption
    from kerntest.inference.sides import Estimator, Judge
    from kerntest.kernels.base import Kernel

IndependenceResult = independence_record.IndependenceResult


@telling
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
    permutations: int = 1000,
    alpha: float = 0.05,
    scale: Scale = "standardize",
    seed: int = 0,
    judge: Judge = "together",
    resampling: Literal["shifts", "random"] = "shifts",
    time_series: bool = False,
    min_lag: int | None = None,
    method: Method = "exact",
    features: str | None = None,
    witness: str | PathLike[str] | None = None,
    plot: str | PathLike[str] | None = None,
    columns: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    missing: MissingPolicy = "error",
    threads: int | None = None,
    progress: Progress | None = None,
    **csv: Unpack[CsvWords],
) -> independence_record.IndependenceResult:
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
    statistic : "hsic" or "coco"
        HSIC, the sum of all squared singular values of the cross-covariance operator of x and y, or COCO, the largest
        one (Gretton et al. 2005): for one pair of kernels, by random permutations.
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
        threads; rows in another order, or x and y exchanged, move the p-value within its Monte-Carlo error.
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
        For time series: the smallest shift that stands for independence; a twentieth of the rows by default.
    method : "exact" or "features"
        The kernel matrices as they are, or explicit features of one pair of kernels (auto: Gaussian at the median
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
    missing : "error" or "drop"
        What to do with rows that have missing values on either side.
    threads : int, optional
        All processors by default.
    progress : callable, optional
        Called with (blocks done, blocks in all).
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment; as in `read_table`.

    Returns
    -------
    IndependenceResult
        A frozen record; its fields are those of the JSON.

    Warns
    -----
    DataWarning
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
    one_of("method", method, ("exact", "features"))
    null = null or ("permutation" if method == "exact" else "moments")
    one_of("resampling", resampling, ("shifts", "random"))
    options = Options(estimator, null, permutations, alpha, scale, seed, resampling, judge)
    reading = Reading(
        columns,
        exclude,
        categorical=categorical,
        missing=missing,
        csv=CsvOptions.of(**csv),
        x_columns=x_columns,
        y_columns=y_columns,
    )
    if method == "features":
        from kerntest.inference.streamed.independence import (  # noqa: PLC0415 - few need it
            DEFAULT_FEATURES,
            FeatureTest,
            analyse_features,
        )

        asked = {
            f"--statistic {statistic}": statistic != "hsic",
            "--time-series": time_series,
            "--min-lag": min_lag is not None,
        }
        asked |= {"--witness": witness is not None, "--plot": plot is not None}
        _refuse_with_features([option for option, given in asked.items() if given])
        test = FeatureTest(options, (kernel_x, kernel_y), bandwidth, features or DEFAULT_FEATURES)
        return analyse_features(x, y, test, reading, threads=threads, progress=progress)
    if features is not None:
        raise UsageError(
            f"features {features!r} need method features",
            hint="add --method features, or leave out --features",
            code="usage.method",
        )
    for path in (witness, plot):
        if path is not None:
            check_writable(os.fspath(path))
    written_as = None if witness is None else witness_kind(witness)
    drawn_as = None if plot is None else picture_kind(plot)
    analysis = analyse_pair(
        x,
        y,
        options,
        kernels=(kernel_x, kernel_y),
        bandwidth=bandwidth,
        statistic=statistic,
        time_series=time_series,
        min_lag=min_lag,
        reading=reading,
        threads=threads,
        progress=progress,
    )
    with written_together():
        if witness is not None and written_as is not None:
            write_file(os.fspath(witness), pair_witness_bytes(analysis, written_as))
        if plot is not None and drawn_as is not None:
            write_file(os.fspath(plot), picture_bytes(pair_figure(analysis), drawn_as))
    return analysis.result


def _refuse_with_features(asked: Sequence[str]) -> None:
    """Refuse options that need the kernel matrices.

    Raises
    ------
    UsageError
        Naming the first.
    """
    if asked:
        raise UsageError(
            f"{asked[0]} needs --method exact",
            hint=f"leave out {asked[0]}, or --method features",
            code="usage.method",
        )
