"""Results of ridge regressions, field by field their JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kerntest.report.results.learning_record import RegressionMetrics
from kerntest.report.results.record import Record

if TYPE_CHECKING:
    from kerntest.report.results.record import Provenance


@dataclass(frozen=True, slots=True)
class RidgeCell(Record):
    """One lambda and bandwidth of a grid.

    Parameters
    ----------
    lambda_ : float
    multiple : float
        Of the median bandwidth.
    bandwidth : float or None
        Of a kernel that has one.
    kernel : str
    score : float
        What the criterion says; smaller is better.
    effective_df : float
    """

    lambda_: float
    multiple: float
    bandwidth: float | None
    kernel: str
    score: float
    effective_df: float


@dataclass(frozen=True, slots=True)
class RidgeGrid(Record):
    """A grid of lambdas and bandwidths on the training rows.

    Parameters
    ----------
    criterion : str
        "loo", "gcv", "cv" or "evidence".
    score : str
        What the scores are: "RMSE", "relative RMSE" (of several targets: root of the mean over them of the mean
        squared error relative to the variance), or "negative log evidence".
    folds : int or None
        Of "cv".
    n_rows : int
        Rows that it was computed on: all, or those that stand for many.
    tie_rule : str
        Which cell is chosen.
    cells : tuple of RidgeCell
        The lambdas of the first bandwidth, then those of the next.
    chosen : int
        Its place among the cells.
    """

    criterion: str
    score: str
    folds: int | None
    n_rows: int
    tie_rule: str
    cells: tuple[RidgeCell, ...]
    chosen: int


@dataclass(frozen=True, slots=True)
class IntervalMetrics(RegressionMetrics):
    """How well numbers are predicted; of several targets each value is a mean, of the RMSE the root mean square.

    Parameters
    ----------
    n, rmse, mae, r2, max_error
        As in `RegressionMetrics`.
    coverage : float or None
        Share of the rows within their predictive interval; None without intervals.
    """

    coverage: float | None


@dataclass(frozen=True, slots=True)
class TargetFit(Record):
    """One target of a regression.

    Parameters
    ----------
    name : str
    intercept : float
    loo_rmse, loo_r2 : float or None
        Of leave-one-out.
    gcv_rmse : float
        Root of generalised cross-validation.
    noise : float
        Estimated standard deviation of the noise, of a row of weight 1.
    scale : float
        Estimated standard deviation of the prior, in units of the kernel.
    train, test : IntervalMetrics or None
    """

    name: str
    intercept: float
    loo_rmse: float | None
    loo_r2: float | None
    gcv_rmse: float
    noise: float
    scale: float
    train: IntervalMetrics
    test: IntervalMetrics | None


@dataclass(frozen=True, slots=True)
class RidgeResult(Record):
    """A fitted kernel ridge regression, judged.

    Parameters
    ----------
    schema : str
        "kerntest.ridge/1".
    target : str
        Of several the first.
    targets : tuple of str
    n_train, n_test : int
    judged_on : str
        "test", or "train" where there is no test part.
    rmse, r2 : float or None
        On that part.
    lambda_ : float
        Of sum_i w_i (y_i - f(x_i) - b)^2 + lambda |f|^2; in the JSON "lambda".
    lambda_per_row : float
        lambda / (number of training rows).
    criterion : str
        What chose lambda and the bandwidth; "none" if both were given.
    loo_rmse : float or None
        Root mean squared error of leave-one-out, with weights a weighted mean; None with conjugate gradients.
    loo_r2 : float or None
        1 - (mean squared error of leave-one-out) / (variance of the target); of several targets the mean.
    loo_coverage : float or None
        Share of the training rows within the interval that the other rows predict.
    gcv_rmse : float
        Root of generalised cross-validation.
    effective_df : float
        Trace of the hat matrix, the intercept counting 1.
    log_evidence : float or None
        Of the Gaussian process, summed over the targets.
    interval : float
        Probability of the predictive intervals that coverages are of.
    train, test : IntervalMetrics or None
    fits : tuple of TargetFit
        Each target by itself.
    kernel : str
        As resolved; given back as `kernel=` it gives the same regression.
    bandwidth, gamma : float or None
        Of a kernel that has one bandwidth; gamma = 1 / (2 bandwidth^2) for the Gaussian.
    condition_number : float
        Of the centred kernel matrix + lambda.
    n_zero : int
        Eigenvalues of the centred kernel matrix that are 0 to rounding.
    solver : str
        "eigenvalues" or "conjugate gradients".
    iterations : int
        Of conjugate gradients.
    converged : bool
    features : str or None
        Explicit features, and
    feature_error : float or None
        the root mean square error of the kernel values that they stand for.
    weights : str or None
        The column of the weights of rows.
    grid : RidgeGrid or None
    model : str or None
        The file that the model was written to.
    columns, columns_left_out : tuple of str
    cluster : str or None
        The column whose rows of one value stay together.
    n_clusters : int or None
        Sets of training rows that no split parts, copies of a row among them; None where every row is on its own.
    """

    schema: str
    command: str
    target: str
    targets: tuple[str, ...]
    n_train: int
    n_test: int
    judged_on: str
    rmse: float
    r2: float | None
    lambda_: float
    lambda_per_row: float
    criterion: str
    loo_rmse: float | None
    loo_r2: float | None
    loo_coverage: float | None
    gcv_rmse: float
    effective_df: float
    log_evidence: float | None
    interval: float
    train: IntervalMetrics
    test: IntervalMetrics | None
    fits: tuple[TargetFit, ...]
    kernel: str
    bandwidth: float | None
    gamma: float | None
    condition_number: float
    n_zero: int
    solver: str
    iterations: int
    converged: bool
    features: str | None
    feature_error: float | None
    weights: str | None
    grid: RidgeGrid | None
    model: str | None
    columns: tuple[str, ...]
    columns_left_out: tuple[str, ...]
    cluster: str | None
    n_clusters: int | None
    warnings: tuple[str, ...]
    provenance: Provenance
