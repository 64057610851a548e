"""How well classes and numbers are predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from kerntest.errors import DataError
from kerntest.learning.ties import levelled
from kerntest.report.learning_record import ClassificationMetrics, ClassMetrics, RegressionMetrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array, Codes

CONFIDENCE = 0.95
# A probability of 0 for what happened has an infinite logarithm; no fitted probability is known to more digits.
SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


def classification_metrics(
    true: Codes,
    predicted: Codes,
    scores: Array | None,
    classes: tuple[str, ...],
    *,
    probabilities: Array | None = None,
) -> ClassificationMetrics:
    """Return how well classes are predicted.

    Parameters
    ----------
    true, predicted : ndarray of int, shape (n,)
        Places in `classes`; n >= 1.
    scores : ndarray, shape (n,) or (n, c), or None
        For two classes the score of the second; for c > 2 one score for each class. Their order is all that counts.
    classes : tuple of str, length c
        What the classes are called.
    probabilities : ndarray, shape (n, c), optional
        Of each class; rows sum to 1.

    Notes
    -----
    Cost: O(n + c^2), and O(c n log n) with scores.
    """
    count = len(classes)
    n = len(true)
    confusion = np.bincount(true * count + predicted, minlength=count * count).reshape(count, count)
    correct = np.diag(confusion)
    support, called = confusion.sum(axis=1), confusion.sum(axis=0)
    precision, recall, f1 = _ratio(correct, called), _ratio(correct, support), _ratio(2 * correct, support + called)
    hits = int(correct.sum())
    return ClassificationMetrics(
        n=n,
        accuracy=hits / n,
        accuracy_interval=wilson_interval(hits, n),
        balanced_accuracy=float(np.nanmean(recall)),
        macro_f1=float(np.nanmean(f1)),
        classes=tuple(
            ClassMetrics(
                name, _number(precision[place]), _number(recall[place]), _number(f1[place]), int(support[place])
            )
            for place, name in enumerate(classes)
        ),
        confusion=tuple(map(tuple, confusion.tolist())),
        roc_auc=None if scores is None else _area(true, scores, count),
        log_loss=None if probabilities is None else log_loss(true, probabilities),
        brier=None if probabilities is None else brier_score(true, probabilities),
    )


def regression_metrics(true: Array, predicted: Array) -> RegressionMetrics:
    """Return how well numbers are predicted. Values up to 1e300 do not overflow.

    Parameters
    ----------
    true, predicted : ndarray, shape (n,)
        Finite; n >= 1.

    Notes
    -----
    Cost: O(n).
    """
    errors = np.abs(true - predicted)
    rmse = root_mean_square(errors)
    varies = true.min() < true.max()
    # A product, unlike a power, goes to infinity without an error.
    ratio = rmse / root_mean_square(true - _mean(true)) if varies else 0.0
    return RegressionMetrics(
        n=len(true),
        rmse=rmse,
        mae=_mean(errors),
        r2=1.0 - ratio * ratio if varies else None,
        max_error=float(errors.max()),
    )


def wilson_interval(hits: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Wilson's confidence interval of a share.

    With p = hits / n and z the quantile of the normal distribution (Wilson 1927):

        (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    It stays within [0, 1] and, unlike p +- z sqrt(p (1 - p) / n), has a width where all rows are hits.

    Parameters
    ----------
    hits, n : int
        0 <= hits <= n, n >= 1.
    confidence : float
        In (0, 1).
    """
    share, z = hits / n, float(ndtri((1.0 + confidence) / 2.0))
    centre = share + z * z / (2.0 * n)
    reach = z * np.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n))
    low, high = ((centre + sign * reach) / (1.0 + z * z / n) for sign in (-1.0, 1.0))
    # The ends of the scale are reached exactly, not but for rounding.
    return 0.0 if hits == 0 else float(low), 1.0 if hits == n else float(high)


def roc_auc(positive: NDArray[np.bool_], scores: Array) -> float | None:
    """Return the area under the ROC curve; None where one class is absent.

    It is the probability that a positive row has a higher score than a negative one, ties counting half. With R the sum
    of the ranks of the positive rows, tied scores at their average rank (Mann and Whitney 1947):

        (R - n+ (n+ + 1) / 2) / (n+ n-)

    Parameters
    ----------
    positive : ndarray of bool, shape (n,)
    scores : ndarray, shape (n,)

    Notes
    -----
    Cost: O(n log n).
    """
    positives = int(np.count_nonzero(positive))
    negatives = len(positive) - positives
    if positives == 0 or negatives == 0:
        return None
    ranks = float(_average_ranks(levelled(scores))[positive].sum())
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives)


def roc_curve(positive: NDArray[np.bool_], scores: Array) -> tuple[Array, Array, Array]:
    """Return the rates of false and of true positives for every threshold that matters.

    A row is called positive where its score is at least the threshold.

    Parameters
    ----------
    positive : ndarray of bool or of 0 and 1, shape (n,)
    scores : ndarray, shape (n,)

    Returns
    -------
    false_positive_rate, true_positive_rate : ndarray, shape (t + 1,)
        From (0, 0) to (1, 1).
    thresholds : ndarray, shape (t + 1,)
        Infinity, where nothing is called positive, then the t different scores, descending.

    Raises
    ------
    DataError
        If all rows are positive, or none is.

    Notes
    -----
    Cost: O(n log n). The area under its straight pieces is `roc_auc`.
    """
    truth = np.asarray(positive, dtype=np.bool_)
    if truth.all() or not truth.any():
        raise DataError(
            f"there is no ROC curve: {'all' if truth.all() else 'none'} of the rows are of the positive class",
            hint="judge on rows of both classes",
            code="data.one_class",
        )
    scores = levelled(scores)
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    last_of_ties = np.append(np.nonzero(np.diff(ordered))[0], len(ordered) - 1)
    hits = np.cumsum(truth[order])[last_of_ties]
    alarms = last_of_ties + 1 - hits
    thresholds = np.append(np.inf, ordered[last_of_ties])
    return np.append(0.0, alarms / alarms[-1]), np.append(0.0, hits / hits[-1]), thresholds


def log_loss(true: Codes, probabilities: Array) -> float:
    """Return the mean of -log(probability of the true class), probabilities of at least 2e-16 (natural logarithm).

    Parameters
    ----------
    true : ndarray of int, shape (n,)
    probabilities : ndarray, shape (n, c)
    """
    of_true = probabilities[np.arange(len(true)), true]
    return float(-np.log(np.clip(of_true, SMALLEST_PROBABILITY, 1.0)).mean())


def brier_score(true: Codes, probabilities: Array) -> float:
    """Return the mean squared error of the probabilities: of the second of two classes, or summed over more (Brier 1950).

    Parameters
    ----------
    true : ndarray of int, shape (n,)
    probabilities : ndarray, shape (n, c)
    """
    errors = probabilities.copy()
    errors[np.arange(len(true)), true] -= 1.0
    errors = errors[:, 1:] if probabilities.shape[1] == 2 else errors
    return float(np.square(errors).sum(axis=1).mean())


def _area(true: Codes, scores: Array, count: int) -> float | None:
    """Return the area under the ROC curve of two classes, or its mean over the classes, each against all others."""
    if count == 2:
        return roc_auc(true == 1, scores)
    areas = [roc_auc(true == place, scores[:, place]) for place in range(count)]
    defined = [area for area in areas if area is not None]
    return sum(defined) / len(defined) if defined else None


def _average_ranks(values: Array) -> Array:
    """Return ranks from 1 on, tied values at their average rank."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Array = (np.cumsum(counts) - (counts - 1) / 2)[codes]
    return ranks


def _ratio(part: NDArray[np.integer], whole: NDArray[np.integer]) -> Array:
    """Return part / whole, NaN for 0 / 0."""
    ratio = np.full(part.shape, np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(values: Array) -> float:
    """Return the mean; the sum of values near the largest number does not overflow."""
    largest = float(np.abs(values).max()) or 1.0
    return float((values / largest).mean()) * largest


def root_mean_square(values: Array) -> float:
    """Return sqrt(mean(values^2)); squares neither overflow nor vanish."""
    largest = float(np.abs(values).max()) or 1.0
    return float(np.sqrt(np.square(values / largest).mean())) * largest
