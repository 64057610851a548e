"""Results of learners, field by field their JSON."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from kerntest.dataclass import dataclass
from kerntest.report.results.record import Record, Result

if TYPE_CHECKING:
    from kerntest.report.results.record import Provenance


@dataclass(frozen=True)
class ClassMetrics(Record):
    """One class of a classifier.

    Parameters
    ----------
    name : str
    precision : float or None
        Share of the rows predicted as this class that have it; None where none is.
    recall : float or None
        Share of the rows of this class that are predicted as such; None where there is none.
    f1 : float or None
        2 TP / (2 TP + FP + FN); None where the class is neither there nor predicted.
    support : int
        Rows of this class.
    """

    name: str
    precision: float | None
    recall: float | None
    f1: float | None
    support: int


@dataclass(frozen=True)
class ClassificationMetrics(Record):
    """How well a classifier predicts the classes of some rows.

    Parameters
    ----------
    n : int
        Rows.
    accuracy : float
        Share of the rows whose class is predicted.
    accuracy_interval : (float, float) or None
        Wilson's interval for it, at 95 %: of rows that the classifier has not seen. Of rows that stay together it is over
        their clusters, and None where these are fewer than 8.
    balanced_accuracy : float
        Mean recall of the classes that are there.
    macro_f1 : float
        Mean F1 of the classes that are there or predicted.
    classes : tuple of ClassMetrics
        In the order of the rows and columns of `confusion`.
    confusion : tuple of tuple of int
        Rows by their true class (down) and their predicted class (across).
    roc_auc : float or None
        Area under the ROC curve of the scores: with two classes the probability that a row of the second class has a
        higher score than one of the first, ties counting half; with more, the mean over the classes that are there, each
        against all others: of the scores, with fitted probabilities of those. None without scores, or where fewer than
        two classes are there.
    log_loss : float or None
        Mean of -log(probability of the true class); None without probabilities.
    brier : float or None
        Mean squared error of the probabilities: of the second class where there are two (between 0 and 1), otherwise
        summed over the classes (between 0 and 2). None without probabilities.
    """

    n: int
    accuracy: float
    accuracy_interval: tuple[float, float] | None
    balanced_accuracy: float
    macro_f1: float
    classes: tuple[ClassMetrics, ...]
    confusion: tuple[tuple[int, ...], ...]
    roc_auc: float | None
    log_loss: float | None
    brier: float | None


@dataclass(frozen=True)
class RegressionMetrics(Record):
    """How well a regression predicts the numbers of some rows, in their own units.

    Parameters
    ----------
    n : int
        Rows.
    rmse : float
        sqrt of the mean squared error.
    mae : float
        Mean absolute error.
    r2 : float or None
        1 - (sum of squared errors) / (sum of squares about the mean of these rows); negative where that mean predicts
        better. None where the truth is constant.
    max_error : float
        Largest absolute error.
    """

    n: int
    rmse: float
    mae: float
    r2: float | None
    max_error: float


@dataclass(frozen=True)
class ColumnImportance(Record):
    """What one column is worth: by how much rows are predicted worse where its values are shuffled, and the error of that.

    The error is over clusters of rows that stay together, and None of fewer than 8.
    """

    name: str
    mean: float
    standard_error: float | None


@dataclass(frozen=True)
class Importance(Record):
    """What the columns of a model are worth, on rows that it has not learned from.

    Parameters
    ----------
    score : str
        "accuracy", or "balanced accuracy" where classes have weights, of which so much is lost, or "RMSE", which rises by so
        much, in units of the target.
    rows : int
        How many rows were looked at, of balanced accuracy as many of each class as there are, and
    shuffles : int
        how often with other values of each column.
    columns : tuple of ColumnImportance
        The most first. Columns that say the same share what they are worth; below 0 is chance.
    """

    score: Literal["accuracy", "balanced accuracy", "RMSE"]
    rows: int
    shuffles: int
    columns: tuple[ColumnImportance, ...]

    @property
    def none(self) -> bool:
        """Whether no column counts, as where every row is predicted as one class."""
        return all(not one.mean and not one.standard_error for one in self.columns)


@dataclass(frozen=True)
class Grid(Record):
    """Cells that were tried, the chosen one at a place among them by a rule for ties; their score is that of so many folds."""

    score: str
    folds: int | None
    tie_rule: str
    cells: tuple[Any, ...]
    chosen: int
    # The fields of a cell with its option and its score, and the sign of a better one.
    OPTION: ClassVar[str]
    SCORE: ClassVar[str]
    SIGN: ClassVar[float]

    @property
    def best(self) -> Any:
        """The chosen cell."""
        return self.cells[self.chosen]

    @property
    def columns(self) -> tuple[str, list[tuple[Any, ...]]]:
        """Bandwidths or, where a kernel has several, their multiples, by name; and the cells of each."""
        called = "bandwidth / median" if self.best.bandwidth is None else "bandwidth"
        return called, [tuple(cells) for _, cells in groupby(self.cells, key=lambda cell: cell.multiple)]


@dataclass(frozen=True)
class GridCell(Record):
    """One cost and bandwidth (and its multiple of the median) of a grid, with the mean over so many folds, or a first look."""

    C: float
    multiple: float
    bandwidth: float | None
    kernel: str
    mean: float
    standard_error: float | None
    folds: int = 0


@dataclass(frozen=True)
class GridSearch(Grid):
    """A grid of costs and bandwidths judged by cross-validation inside the training part.

    Parameters
    ----------
    score : str
        "accuracy", "balanced accuracy", "macro F1", "ROC AUC" or "negative log-loss"; of numbers "negative RMSE".
    folds : int
    tie_rule : str
        Which cell is chosen.
    cells : tuple of GridCell
    chosen : int
        Its place among the cells.
    mean : float
        Its score on rows held out, a mean over the folds; higher is better: minus the RMSE, minus the log-loss.
    r2 : float or None
        Of numbers, what it explains of the rows held out, all folds together.
    fits : int
        How many machines were fitted to all but one fold: fewer than cells times folds where cells were given up. First
        looks, at few rows, are not among them.
    beyond : tuple of str
        The edges that the grid was taken beyond, one for each step: "largest cost", "smallest bandwidth", ...
    seconds_saved : float
        About how long the other fits would have taken, on one thread.
    """

    folds: int
    cells: tuple[GridCell, ...]
    mean: float
    r2: float | None = None
    fits: int = 0
    beyond: tuple[str, ...] = ()
    seconds_saved: float = 0.0
    OPTION, SCORE, SIGN = "C", "mean", 1.0


# What options of classifiers are chosen by, as a search calls it, and the field of the metrics.
SCORES = {
    "accuracy": "accuracy",
    "balanced accuracy": "balanced_accuracy",
    "macro F1": "macro_f1",
    "ROC AUC": "roc_auc",
    "negative log-loss": "log_loss",
}


@dataclass(frozen=True)
class Baseline(Record):
    """What a machine must be better than, on the rows that it is judged by: the better one of two.

    Where it is judged by folds alone, means over them. `score` is what options are chosen by, else the accuracy too.

    `method` is "nearest mean", with the same kernel, or "largest class", that of most training rows, for every row. Of
    features, and beside the nearest mean itself, it is the largest class.
    """

    method: str
    accuracy: float
    balanced_accuracy: float
    score: float


@dataclass(frozen=True, kw_only=True)
class LearnerResult(Result):
    """What the results of all learners hold.

    Parameters
    ----------
    schema : str
        Such as "kerntest.svm/1".
    n_train, n_test : int
    judged_on : str
        "test", or "train" where there is no test part.
    kernel : str
        As resolved; given back as `kernel=` it gives the same model.
    bandwidth, gamma : float or None
        Of a kernel that has one bandwidth; gamma = 1 / (2 bandwidth^2) for the Gaussian.
    features : str or None
        Explicit features, and
    feature_error : float or None
        the root mean square error of the kernel values that they stand for.
    model : str or None
        The file that the model was written to.
    columns, columns_left_out : tuple of str
    """

    WORDS = "summaries.learner_summary.{command}_summary"
    schema: str
    command: str
    n_train: int
    n_test: int
    judged_on: str
    kernel: str
    bandwidth: float | None
    gamma: float | None
    features: str | None
    feature_error: float | None
    model: str | None
    columns: tuple[str, ...]
    columns_left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    provenance: Provenance
    LAST = (
        *("kernel", "bandwidth", "gamma", "features", "feature_error", "model", "columns", "columns_left_out"),
        *("cluster", "n_clusters", "n_test_clusters", *Record.LAST),
    )


@dataclass(frozen=True, kw_only=True)
class PredictorResult(LearnerResult):
    """What the results of learners with a target hold, beside what all learners have.

    Parameters
    ----------
    target : str or None
        Of several the first.
    rmse, r2 : float or None
        Of a regression, on the part that it is judged on.
    cluster : str or None
        The column whose rows of one value stay together.
    n_clusters : int or None
        Sets of training rows that no split parts, copies of a row among them; None where every row is on its own.
    n_test_clusters : int or None
        Those of test rows: standard errors and intervals are over them.
    importance : Importance or None
        What each column is worth on the rows held out, or some of them; None without them, and where it would take more
        than 10^8 kernel values.
    """

    target: str | None
    rmse: float | None
    r2: float | None
    cluster: str | None
    n_clusters: int | None
    n_test_clusters: int | None
    importance: Importance | None


@dataclass(frozen=True, kw_only=True)
class SvmResult(PredictorResult):
    """A fitted support vector machine, judged.

    Beside what every `PredictorResult` holds:

    Parameters
    ----------
    task : str
        "classify", "regress" or "one-class".
    method : str
        "svm", "mean" or "perceptron".
    classes : tuple of str
        Sorted; scores above 0 are for the second of two.
    accuracy, balanced_accuracy, roc_auc, confusion : optional
        Of a classifier, on that part.
    outliers : float or None
        Of a one-class machine: the share of rows with a score below -1e-6 |offset|, on that part.
    train, test : ClassificationMetrics, RegressionMetrics or None
        In full.
    baseline : Baseline or None
        Of classes: the nearest mean, or the largest class, whichever is better.
    C, nu, lambda_ : float or None
        The cost; the share of support vectors asked for; 1 / (2 n C).
    n_support : int
        Different rows with a coefficient in any pair of classes: equal rows are one.
    n_bounded : int
        How many of them are at their upper bound in any pair.
    objective, dual_objective : float or None
        1/2 |w|^2 + C sum(slack), and the bound from below; sums over the pairs of classes.
    duality_gap : float or None
        (objective - dual_objective) / objective; the largest over the pairs.
    intercept : float or tuple of float
        One for each pair of classes.
    iterations : int
        Linear systems solved; mistakes of a perceptron.
    converged : bool
    grid : GridSearch or None
    """

    task: str
    method: str
    classes: tuple[str, ...]
    accuracy: float | None
    balanced_accuracy: float | None
    roc_auc: float | None
    confusion: tuple[tuple[int, ...], ...] | None
    outliers: float | None
    train: ClassificationMetrics | RegressionMetrics | None
    test: ClassificationMetrics | RegressionMetrics | None
    baseline: Baseline | None
    C: float | None
    nu: float | None
    lambda_: float | None
    n_support: int
    n_bounded: int
    objective: float | None
    dual_objective: float | None
    duality_gap: float | None
    intercept: float | tuple[float, ...]
    iterations: int
    converged: bool
    probability: bool
    grid: GridSearch | None


@dataclass(frozen=True)
class RidgeCell(Record):
    """One lambda and bandwidth of a grid, with what the criterion says: smaller is better."""

    lambda_: float
    multiple: float
    bandwidth: float | None
    kernel: str
    score: float
    effective_df: float


@dataclass(frozen=True)
class RidgeGrid(Grid):
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
    rmse, r2 : float or None
        Of rows held out in the folds of "cv"; of several targets no RMSE, and the mean r2.
    """

    cells: tuple[RidgeCell, ...]
    criterion: str
    n_rows: int
    rmse: float | None = None
    r2: float | None = None
    OPTION, SCORE, SIGN = "lambda_", "score", -1.0


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
        Estimated standard deviation of the noise, of a row of the mean weight.
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


@dataclass(frozen=True, kw_only=True)
class RidgeResult(PredictorResult):
    """A fitted kernel ridge regression, judged.

    Beside what every `PredictorResult` holds:

    Parameters
    ----------
    targets : tuple of str
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
    condition_number : float
        Of the centred kernel matrix + lambda.
    n_zero : int
        Eigenvalues of the centred kernel matrix that are 0 to rounding.
    solver : str
        "eigenvalues" or "conjugate gradients".
    iterations : int
        Of conjugate gradients.
    converged : bool
    weights : str or None
        The column of the weights of rows.
    grid : RidgeGrid or None
    """

    targets: tuple[str, ...]
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
    condition_number: float
    n_zero: int
    solver: str
    iterations: int
    converged: bool
    weights: str | None
    grid: RidgeGrid | None
