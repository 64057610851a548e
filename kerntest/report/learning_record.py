"""How well a learner predicts, as frozen records: the `train` and `test` parts of the JSON of learners."""

from __future__ import annotations

from dataclasses import dataclass

from kerntest.report.record import Record


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class ClassificationMetrics(Record):
    """How well a classifier predicts the classes of some rows.

    Parameters
    ----------
    n : int
        Rows.
    accuracy : float
        Share of the rows whose class is predicted.
    accuracy_interval : (float, float)
        Wilson's interval for it, at 95 %: of rows that the classifier has not seen.
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
        against all others. None without scores, or where fewer than two classes are there.
    log_loss : float or None
        Mean of -log(probability of the true class); None without probabilities.
    brier : float or None
        Mean squared error of the probabilities: of the second class where there are two (between 0 and 1), otherwise
        summed over the classes (between 0 and 2). None without probabilities.
    """

    n: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    balanced_accuracy: float
    macro_f1: float
    classes: tuple[ClassMetrics, ...]
    confusion: tuple[tuple[int, ...], ...]
    roc_auc: float | None
    log_loss: float | None
    brier: float | None


@dataclass(frozen=True, slots=True)
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
