"""How well classes and numbers are predicted, and scores into probabilities.

A sigmoid makes probabilities of the scores of two classes, and pairs of classes are coupled into all of them. Scores must
come from rows that the classifier did not see when it was fitted (held-out folds): on its own rows it is surer than it
should be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve

from kerntest.dataclass import dataclass
from kerntest.errors import counted, option
from kerntest.learning.intervals import interval_of_share, over_classes, standard_error, too_few
from kerntest.report.results import learning_record as records
from kerntest.report.summaries.words import number, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array, Codes

# A probability of 0 for what happened has an infinite logarithm; no fitted probability is known to more digits.
SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)
MOST_STEPS = 200
# One row has the word where it makes so much of the squared error.
MOST_OF_ONE = 0.5
# So few clusters may by chance be predicted well by one cell of many.
FEW_TO_CHOOSE = 20
# The best of 200 cells of a ridge regression had errors of rows left out 21, 13, 8 and 5 % below those of other rows, in the
# median of 450 to 600 tables, of 20, 40, 100 and 200 rows.
FEW_TO_FLATTER = 50
# Newton's decrement, squared standard errors away from the minimum, at which the fit is done.
SMALLEST_DECREMENT = 1e-20
# Keeps the Hessian positive definite where a step leads to nothing but certain probabilities (Lin, Lin and Weng 2007).
RIDGE = 1e-12
# The least slope of scores of mean square 1, so that classes with equal chances still are in the order of the scores.
FLATTEST = 1e-9
# A pair of classes is never told apart with certainty: with exact zeros the coupling has no unique solution.
LEAST_CERTAIN = 1e-7
# Scores that differ by less than this share of the largest are equal: rounding could have made the difference.
EQUAL_SCORES = 1e-10
# What is measured has errors: more than this share of the variance is explained by what was computed of one another.
ALL_BUT_KNOWN = 0.9999
# Numbers in one block of rows that are coupled at once.
BLOCK = 2**20


def classification_metrics(
    true: Codes,
    predicted: Codes,
    scores: Array | None,
    classes: tuple[str, ...],
    *,
    probabilities: Array | None = None,
    clusters: Codes | None = None,
) -> records.ClassificationMetrics:
    """Return how well classes are predicted, as places in `classes`.

    Scores are those of the second of two classes, or one for each class: their order is all that counts. Rows of one of
    the `clusters` are not independent.
    """
    count, n = len(classes), len(true)
    confusion = np.bincount(true * count + predicted, minlength=count * count).reshape(count, count)
    correct, support, called = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    with np.errstate(invalid="ignore"):
        # Precision, recall and F1; 0 / 0 is NaN.
        ratios = np.stack([correct / called, correct / support, 2 * correct / (support + called)])
    told = [[None if np.isnan(value) else value for value in line] for line in ratios.tolist()]
    hits = int(correct.sum())
    return records.ClassificationMetrics(
        n=n,
        accuracy=hits / n,
        accuracy_interval=interval_of_share(true == predicted, clusters),
        balanced_accuracy=float(np.nanmean(ratios[1])),
        macro_f1=float(np.nanmean(ratios[2])),
        classes=tuple(map(records.ClassMetrics, classes, *told, support.tolist())),
        confusion=tuple(map(tuple, confusion.tolist())),
        roc_auc=None if scores is None else _area(true, scores, count),
        log_loss=None if probabilities is None else log_loss(true, probabilities),
        brier=None if probabilities is None else brier_score(true, probabilities),
    )


def regression_metrics(true: Array, predicted: Array) -> records.RegressionMetrics:
    """Return how well numbers are predicted. Values up to 1e300 do not overflow."""
    errors = np.abs(true - predicted)
    rmse = root_mean_square(errors)
    return records.RegressionMetrics(len(true), rmse, _mean(errors), explained(rmse, true), float(errors.max()))


def explained(rmse: float, true: Array) -> float | None:
    """Return r2, the share of the variance of some numbers that predictions with this error explain; None of equal ones."""
    if true.min() == true.max():
        return None
    ratio = rmse / root_mean_square(true - _mean(true))
    # A product, unlike a power, goes to infinity without an error.
    return 1.0 - ratio * ratio


def roc_auc(positive: NDArray[np.bool_], scores: Array) -> float | None:
    """Return the area under the ROC curve; None where one class is absent.

    It is the probability that a positive row has a higher score than a negative one, ties counting half. With R the sum
    of the ranks of the positive rows, tied scores at their average rank (Mann and Whitney 1947):

        (R - n+ (n+ + 1) / 2) / (n+ n-)
    """
    positives = int(np.count_nonzero(positive))
    negatives = len(positive) - positives
    if not positives * negatives:
        return None
    ranks = float(average_ranks(levelled(scores))[positive].sum())
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives)


def roc_curve(positive: NDArray[np.bool_], scores: Array) -> tuple[Array, Array]:
    """Return the rates of false and of true positives of rows of both classes at all scores, descending, after infinity.

    A row is called positive where its score is at least the threshold. The area under the straight pieces is `roc_auc`.
    """
    scores = levelled(scores)
    order = np.argsort(-scores, kind="stable")
    last_of_ties = np.append(np.nonzero(np.diff(scores[order]))[0], len(order) - 1)
    hits = np.cumsum(positive[order])[last_of_ties]
    alarms = last_of_ties + 1 - hits
    return np.append(0.0, alarms / alarms[-1]), np.append(0.0, hits / hits[-1])


def levelled(values: Array) -> Array:
    """Return values with those that are equal but for rounding made equal, shape (n,)."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    finite = ascending[np.isfinite(ascending)]
    with np.errstate(over="ignore", invalid="ignore"):
        new = np.diff(ascending, prepend=-np.inf) > EQUAL_SCORES * float(np.abs(finite).max(initial=0.0))
    level = np.empty_like(values)
    level[order] = ascending[np.maximum.accumulate(np.where(new, np.arange(len(values)), 0))]
    return level


def log_losses(true: Codes, probabilities: Array) -> Array:
    """Return -log(probability of the true class) of n rows, probabilities of at least 2e-16 (natural logarithm)."""
    of_true = probabilities[np.arange(len(true)), true]
    return np.asarray(-np.log(np.clip(of_true, SMALLEST_PROBABILITY, 1.0)))


def log_loss(true: Codes, probabilities: Array) -> float:
    """Return the mean of -log(probability of the true class)."""
    return float(log_losses(true, probabilities).mean())


def error_of_score(
    score: str | None, values: NDArray[Any], true: Codes | None, clusters: Codes | None = None
) -> float | None:
    """Return the standard error of a score of n rows, each predicted once; None of rows in too few clusters.

    The `values` of rows are absolute errors of numbers, which have no score but their root mean square, log-losses, or
    placements for the area under the ROC curve, and the classes predicted for all other scores. Scores that are a mean over classes take their sizes as given. Others than
    means have the error of what they add to first order, as DeLong, DeLong and Clarke-Pearson (1988) of the area.
    """
    if too_few(clusters):
        return None
    if true is None:
        size = root_mean_square(values)
        # d sqrt(m) = d m / (2 sqrt(m)); squares must not overflow.
        values = 0.5 * size * np.square(values / (size or 1.0))
    elif score == "macro_f1":
        right, count = values == true, int(max(values.max(), true.max())) + 1
        sums = np.bincount(true, minlength=count) + np.bincount(values, minlength=count)
        called = np.maximum(sums, 1)
        f1 = 2 * np.bincount(true, weights=right, minlength=count) / called
        added = (2 * right - f1[true]) / called[true] - f1[values] / called[values]
        values = len(true) / np.count_nonzero(sums) * added
    elif score != "log_loss":
        values = values if score == "roc_auc" else np.asarray(values == true, dtype=np.float64)
        values = values if score == "accuracy" else over_classes(values, true)[1]
    return standard_error(values, clusters)


def placements(true: Codes, scores: Array, count: int) -> Array:
    """Return of each of n rows on the right side of which share of the others it is, over classes as `over_classes` takes them.

    Of class t, with V_c the share of the rows of c, or of all others, that are on the right side of it (ties count half):

        V_t + sum_{c != t} n_t / (n - n_c) V_c
    """
    n, sizes, found = len(true), np.bincount(true, minlength=count), np.zeros(len(true))
    for place, column in enumerate([-scores, scores] if count == 2 else scores.T):
        own, ranks = true == place, average_ranks(levelled(column))
        if 0 < sizes[place] < n:
            found[own] += (ranks[own] - average_ranks(ranks[own])) / (n - sizes[place])
            below = (ranks[~own] - average_ranks(ranks[~own])) / sizes[place]
            found[~own] += sizes[true[~own]] / (n - sizes[place]) * (1.0 - below)
    return found


def brier_score(true: Codes, probabilities: Array) -> float:
    """Return the mean squared error of the probabilities: of the second of two classes, or summed over more (Brier 1950)."""
    errors = probabilities.copy()
    errors[np.arange(len(true)), true] -= 1.0
    return float(np.square(errors[:, int(errors.shape[1] == 2) :]).sum(axis=1).mean())


def _area(true: Codes, scores: Array, count: int) -> float | None:
    """Return the area under the ROC curve of two classes, or its mean over the classes, each against all others."""
    if count == 2:
        return roc_auc(true == 1, scores)
    return _known_mean([roc_auc(true == place, scores[:, place]) for place in range(count)])


def _known_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def average_ranks(values: Array) -> Array:
    """Return ranks from 1 on, tied values at their average rank."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[codes])


def _mean(values: Array) -> float:
    """Return the mean; the sum of values near the largest number does not overflow."""
    largest = float(np.abs(values).max()) or 1.0
    return float((values / largest).mean()) * largest


def root_mean_square(values: Array) -> float:
    """Return sqrt(mean(values^2)); squares neither overflow nor vanish."""
    largest = float(np.abs(values).max()) or 1.0
    return float(np.sqrt(np.square(values / largest).mean())) * largest


@dataclass(frozen=True)
class Sigmoid:
    """The probability of the positive class as a function of the score f: 1 / (1 + exp(slope f + offset))."""

    slope: float
    offset: float


def fit_sigmoid(scores: Array, positive: NDArray[np.bool_], *, through_threshold: bool) -> Sigmoid:
    """Return the sigmoid that fits best, by maximum likelihood (Platt 1999).

    With p_i = 1 / (1 + exp(A f_i + B)), A and B minimise

        - sum_i (t_i log p_i + (1 - t_i) log(1 - p_i))

    over targets t = (n+ + 1) / (n+ + 2) for positive rows and 1 / (n- + 2) for the others, which no finite sigmoid
    reaches and no separable scores can drive to infinity. The minimum is found by Newton's method with backtracking
    (Lin, Lin and Weng 2007). `through_threshold` keeps B = 0 and A < 0: the probability exceeds 1/2 only where the score
    exceeds 0, and never contradicts the predicted class. Without it B is free, and A < 0 still: scores that go the wrong
    way in held-out folds, as those of noise may, give every row the share of the positive ones.
    """
    positives = int(np.count_nonzero(positive))
    target = np.where(positive, (positives + 1) / (positives + 2), 1 / (len(positive) - positives + 2))
    largest = float(np.abs(scores).max()) or 1.0
    scaled = scores / largest
    # Centred and scaled the two parameters hardly depend on each other.
    centre = 0.0 if through_threshold else float(scaled.mean())
    unit = root_mean_square(scaled - centre) or 1.0
    design = ((scaled - centre) / unit)[:, None]
    if through_threshold:
        return Sigmoid(min(*_newton(design, target, np.zeros(1)), -FLATTEST) / unit / largest, 0.0)
    start = np.array([0.0, -np.log(target.mean() / (1.0 - target.mean()))])
    slope, offset = _newton(np.column_stack([design, np.ones(len(design))]), target, start)
    if slope > -FLATTEST:
        # The best of those that do not turn the scores around: where these say nothing, each row has the usual chance.
        slope, offset = -FLATTEST, float(start[1])
    return Sigmoid(slope / unit / largest, offset - slope * centre / unit)


def sigmoid_probability(sigmoid: Sigmoid, scores: Array) -> Array:
    """Return the probability of the positive class at each score: 1 / (1 + exp(slope f + offset))."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # Scores as small as numbers get have slopes as large as they get.
        moved = np.where(scores == 0, 0.0, sigmoid.slope * scores)
    return _sigmoid(moved + sigmoid.offset)


def _sigmoid(z: Array) -> Array:
    """Return 1 / (1 + exp(z)), of whichever size; `scipy.special` takes 50 ms to load."""
    smaller = np.exp(-np.abs(z))
    return np.where(z > 0, smaller, 1.0) / (1.0 + smaller)


def couple(pairwise: Array) -> Array:
    """Return probabilities of all classes from those of pairs, by the second method of Wu, Lin and Weng (2004).

    With r_ij the probability of class i where it is i or j, shape (n, k, k), the result p, shape (n, k), minimises

        sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2        subject to sum_i p_i = 1,

    which is the linear system [Q e; e' 0] [p; b] = [0; 1] with Q_ii = sum_{j != i} r_ji^2 and Q_ij = -r_ji r_ij. Its
    solution is unique and positive for 0 < r_ij < 1: they are kept 1e-7 away from 0 and 1, as in LIBSVM. Consistent
    pairs, r_ij = p_i / (p_i + p_j), give p back. The most probable class need not be the one with the most votes.
    """
    n, k, _ = pairwise.shape
    step = max(1, BLOCK // (k + 1) ** 2)
    if n > step:
        return np.concatenate([couple(pairwise[start : start + step]) for start in range(0, n, step)])
    r = np.clip(pairwise, LEAST_CERTAIN, 1.0 - LEAST_CERTAIN)
    reverse = r.transpose(0, 2, 1)
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = -r * reverse
    system[:, :k, k] = system[:, k, :k] = 1.0
    classes = np.arange(k)
    system[:, classes, classes] = (np.square(reverse) * (1.0 - np.eye(k))).sum(axis=2)
    # Rounding alone can take a tiny probability below 0.
    found = np.maximum(np.linalg.solve(system, np.eye(k + 1)[:, k:])[:, :k, 0], 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _newton(design: Array, target: Array, start: Array) -> list[float]:
    """Return the w that minimise the cross-entropy of `target`, in (0, 1), and p = 1 / (1 + exp(design @ w)): it is convex."""
    parameters = start
    for _ in range(MOST_STEPS):
        z = design @ parameters
        p, value = _sigmoid(z), _cross_entropy(z, target)
        gradient = design.T @ (target - p)
        hessian = (design.T * (p * (1.0 - p))) @ design + RIDGE * np.eye(len(start))
        direction = -solve(hessian, gradient, assume_a="pos")
        decrement, length = float(-gradient @ direction), 1.0
        if decrement <= SMALLEST_DECREMENT:
            break
        # Rounding of the value must not refuse the last steps.
        while _cross_entropy(z + length * (design @ direction), target) > value - (
            1e-4 * length * decrement - 1e-14 * value
        ):
            length /= 2.0
        parameters = parameters + length * direction
    return [float(parameter) for parameter in parameters]


def _cross_entropy(z: Array, target: Array) -> float:
    """Return -sum(t log p + (1 - t) log(1 - p)) for p = 1 / (1 + exp(z)): log(1 + exp(z)) - (1 - t) z, summed.

    The two terms nearly cancel where |z| is large; here they do not meet.
    """
    return float((np.log1p(np.exp(-np.abs(z))) + np.where(z > 0, target, target - 1.0) * z).sum())


def told_of_errors(name: str, r2: float | None, rows: str, worst: float = 0.0) -> list[str]:
    """Return a warning about predictions of a target that are no better than its mean on the same rows, or too good.

    `worst` is the share of the squared errors that is of one row.
    """
    if r2 is not None and r2 > ALL_BUT_KNOWN:
        told = f"the columns all but determine {name!r} (r2 = {number(r2)} on {rows})"
        way_out = f"{option('exclude')} leaves out what nobody knows before {name!r}"
        return [f"{told}, as where it is a sum of some of them, or one in other units; {way_out}"]
    if r2 is None or r2 > 0.0:
        return []
    told = f"{name!r} is predicted no better than by its mean (r2 = {number(r2)} on {rows})"
    if worst > MOST_OF_ONE:
        return [
            f"{told}: one row makes {percent(worst)} of the squared error, and may lie far from those that are learned from"
        ]
    return [f"{told}: the columns may say nothing of it, or rows may be too few"]


def over_targets(metrics: Sequence[records.IntervalMetrics]) -> records.IntervalMetrics:
    """Return the mean over the targets, of the RMSE the root mean square, of the largest error the largest."""
    r2, coverage = (_known_mean(getattr(one, name) for one in metrics) for name in ("r2", "coverage"))
    rmse, mae = root_mean_square(np.array([one.rmse for one in metrics])), _mean(np.array([one.mae for one in metrics]))
    return records.IntervalMetrics(metrics[0].n, rmse, mae, r2, max(one.max_error for one in metrics), coverage)


def told_of_choice(cells: int, n: int, clusters: Codes | None, of_few: str = "") -> str:
    """Return that a score is of the best of several cells on the n rows that chose it, which is too good, too.

    `of_few` is what else a reader of few rows should know or do.
    """
    if cells < 2:
        return ""
    count = n if clusters is None else len(np.unique(clusters))
    chosen = f", of the best of {cells:,} cells, which"
    if clusters is not None and count < FEW_TO_CHOOSE:
        return (
            f"{chosen} so few as {counted(count, 'cluster')} chose: by chance it may be far too good, as that of one cell named "
            "beforehand is not"
        )
    if count < FEW_TO_FLATTER:
        return f"{chosen} they chose: too good, of so few rows often by a tenth and more{of_few}"
    return f"{chosen} they chose: a little too good; {option('test-fraction', 0.3)} judges it by others"
