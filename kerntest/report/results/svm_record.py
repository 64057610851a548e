"""Results of support vector machines, field by field their JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kerntest.report.results.record import Record

if TYPE_CHECKING:
    from kerntest.report.results.learning_record import ClassificationMetrics, RegressionMetrics
    from kerntest.report.results.record import Provenance


@dataclass(frozen=True, slots=True)
class GridCell(Record):
    """One cost and bandwidth of a grid.

    Parameters
    ----------
    C : float
    multiple : float
        Of the median bandwidth.
    bandwidth : float or None
        Of a kernel that has one.
    kernel : str
    mean : float
        Of the score over the folds.
    standard_error : float or None
        Of that mean.
    """

    C: float
    multiple: float
    bandwidth: float | None
    kernel: str
    mean: float
    standard_error: float | None


@dataclass(frozen=True, slots=True)
class GridSearch(Record):
    """A grid of costs and bandwidths judged by cross-validation inside the training part.

    Parameters
    ----------
    score : str
        "accuracy", or "negative RMSE".
    folds : int
    tie_rule : str
        Which cell is chosen.
    cells : tuple of GridCell
    chosen : int
        Its place among the cells.
    mean : float
        Its score on rows held out, a mean over the folds.
    """

    score: str
    folds: int
    tie_rule: str
    cells: tuple[GridCell, ...]
    chosen: int
    mean: float


@dataclass(frozen=True, slots=True)
class Baseline(Record):
    """The nearest-mean classifier with the same kernel, on the rows that the machine is judged by."""

    method: str
    accuracy: float
    balanced_accuracy: float


@dataclass(frozen=True, slots=True)
class SvmResult(Record):
    """A fitted support vector machine, judged.

    Parameters
    ----------
    schema : str
        "kerntest.svm/1".
    task : str
        "classify", "regress" or "one-class".
    method : str
        "svm", "mean" or "perceptron".
    target : str or None
    classes : tuple of str
        Sorted; scores above 0 are for the second of two.
    n_train, n_test : int
    judged_on : str
        "test", or "train" where there is no test part.
    accuracy, balanced_accuracy, roc_auc, confusion : optional
        Of a classifier, on that part.
    rmse, r2 : float or None
        Of a regression, on that part.
    outliers : float or None
        Of a one-class machine: the share of rows with a decision below 0, on that part.
    train, test : ClassificationMetrics, RegressionMetrics or None
        In full.
    baseline : Baseline or None
        The nearest mean in the same feature space.
    kernel : str
        As resolved; given back as `kernel=` it gives the same machine.
    bandwidth, gamma : float or None
        Of a kernel that has one bandwidth; gamma = 1 / (2 bandwidth^2) for the Gaussian.
    C, nu, lambda_ : float or None
        The cost; the share of support vectors asked for; 1 / (2 n C).
    n_support : int
        Different rows with a coefficient in any pair of classes.
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
    features : str or None
        Explicit features, and
    feature_error : float or None
        the root mean square error of the kernel values that they stand for.
    grid : GridSearch or None
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
    task: str
    method: str
    target: str | None
    classes: tuple[str, ...]
    n_train: int
    n_test: int
    judged_on: str
    accuracy: float | None
    balanced_accuracy: float | None
    roc_auc: float | None
    confusion: tuple[tuple[int, ...], ...] | None
    rmse: float | None
    r2: float | None
    outliers: float | None
    train: ClassificationMetrics | RegressionMetrics | None
    test: ClassificationMetrics | RegressionMetrics | None
    baseline: Baseline | None
    kernel: str
    bandwidth: float | None
    gamma: float | None
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
    features: str | None
    feature_error: float | None
    probability: bool
    grid: GridSearch | None
    model: str | None
    columns: tuple[str, ...]
    columns_left_out: tuple[str, ...]
    cluster: str | None
    n_clusters: int | None
    warnings: tuple[str, ...]
    provenance: Provenance
