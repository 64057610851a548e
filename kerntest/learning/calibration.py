"""Scores into probabilities: a sigmoid for two classes, and pairs of classes coupled into all of them.

Scores must come from rows that the classifier did not see when it was fitted (held-out folds): on its own rows a
classifier is surer than it should be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve
from scipy.special import expit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

MOST_STEPS = 200
# Newton's decrement, squared standard errors away from the minimum, at which the fit is done.
SMALLEST_DECREMENT = 1e-20
# Keeps the Hessian positive definite where a step leads to nothing but certain probabilities (Lin, Lin and Weng 2007).
RIDGE = 1e-12
# The least slope of scores of mean square 1, so that classes with equal chances still are in the order of the scores.
FLATTEST = 1e-9
# A pair of classes is never told apart with certainty: with exact zeros the coupling has no unique solution.
LEAST_CERTAIN = 1e-7
# Numbers in one block of rows that are coupled at once.
BLOCK = 2**20


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """The probability of the positive class as a function of the score f: 1 / (1 + exp(slope f + offset)).

    Parameters
    ----------
    slope : float
        Negative where higher scores mean the positive class.
    offset : float
        0 where the probability is 1/2 exactly at score 0.
    """

    slope: float
    offset: float


def fit_sigmoid(scores: Array, positive: NDArray[np.bool_], *, through_threshold: bool) -> Sigmoid:
    """Return the sigmoid that fits best, by maximum likelihood (Platt 1999).

    With p_i = 1 / (1 + exp(A f_i + B)), A and B minimise

        - sum_i (t_i log p_i + (1 - t_i) log(1 - p_i))

    over targets t = (n+ + 1) / (n+ + 2) for positive rows and 1 / (n- + 2) for the others, which no finite sigmoid
    reaches and no separable scores can drive to infinity. The minimum is found by Newton's method with backtracking
    (Lin, Lin and Weng 2007).

    Parameters
    ----------
    scores : ndarray, shape (n,)
        Finite, of rows held out from the fit.
    positive : ndarray of bool, shape (n,)
        Rows of the positive class, the one that a score above 0 predicts.
    through_threshold : bool
        Keep B = 0 and A <= 0. Then the probability exceeds 1/2 only where the score exceeds 0: it never contradicts the
        predicted class. Where higher scores do not go with the positive class, A is nearly 0: every probability is 1/2
        but for what lets the larger one be that of the predicted class.

    Notes
    -----
    Cost: O(n) for each of some ten steps. Multiplying the scores by a positive number divides A by it.
    """
    positives = int(np.count_nonzero(positive))
    target = np.where(positive, (positives + 1) / (positives + 2), 1 / (len(positive) - positives + 2))
    largest = float(np.abs(scores).max()) or 1.0
    scaled = scores / largest
    if through_threshold:
        unit = float(np.sqrt(np.square(scaled).mean())) or 1.0
        (slope,) = _newton((scaled / unit)[:, None], target, np.zeros(1))
        return Sigmoid(min(slope, -FLATTEST) / unit / largest, 0.0)
    # Centred and scaled the two parameters hardly depend on each other, and constant scores are seen as such.
    start = float(-np.log(target.mean() / (1.0 - target.mean())))
    if scores.min() == scores.max():
        return Sigmoid(0.0, start)
    centre, unit = float(scaled.mean()), float(scaled.std())
    design = np.column_stack([(scaled - centre) / unit, np.ones(len(scores))])
    slope, offset = _newton(design, target, np.array([0.0, start]))
    return Sigmoid(slope / unit / largest, offset - slope * centre / unit)


def sigmoid_probability(sigmoid: Sigmoid, scores: Array) -> Array:
    """Return the probability of the positive class at each score: 1 / (1 + exp(slope f + offset)).

    Parameters
    ----------
    sigmoid : Sigmoid
    scores : ndarray, any shape

    Returns
    -------
    ndarray, the same shape
        In [0, 1].
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # Scores as small as numbers get have slopes as large as they get.
        moved = np.where(scores == 0, 0.0, sigmoid.slope * scores)
    probability: Array = expit(-(moved + sigmoid.offset))
    return probability


def couple(pairwise: Array) -> Array:
    """Return probabilities of all classes from those of pairs, by the second method of Wu, Lin and Weng (2004).

    With r_ij the probability of class i where it is i or j, the result p minimises

        sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2        subject to sum_i p_i = 1,

    which is the linear system [Q e; e' 0] [p; b] = [0; 1] with Q_ii = sum_{j != i} r_ji^2 and Q_ij = -r_ji r_ij. Its
    solution is unique and positive for 0 < r_ij < 1. Consistent pairs, r_ij = p_i / (p_i + p_j), give p back.

    Parameters
    ----------
    pairwise : ndarray, shape (n, k, k)
        r_ij of each row; r_ij + r_ji = 1. The diagonal is not read. Kept 1e-7 away from 0 and 1, as in LIBSVM.

    Returns
    -------
    ndarray, shape (n, k)
        Positive; rows sum to 1.

    Notes
    -----
    Cost: O(n k^3). The class with the largest probability need not be the one with the most votes when k > 2.
    """
    n, k, _ = pairwise.shape
    coupled = np.empty((n, k))
    step = max(1, BLOCK // (k + 1) ** 2)
    for start in range(0, n, step):
        coupled[start : start + step] = _coupled(pairwise[start : start + step])
    return coupled


def _coupled(pairwise: Array) -> Array:
    """Return the coupled probabilities of one block of rows."""
    n, k, _ = pairwise.shape
    r = np.clip(pairwise, LEAST_CERTAIN, 1.0 - LEAST_CERTAIN)
    reverse = r.transpose(0, 2, 1)
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = -r * reverse
    system[:, :k, k] = system[:, k, :k] = 1.0
    classes = np.arange(k)
    squares = np.square(reverse)
    squares[:, classes, classes] = 0.0
    system[:, classes, classes] = squares.sum(axis=2)
    right = np.zeros((n, k + 1, 1))
    right[:, k] = 1.0
    found = np.linalg.solve(system, right)[:, :k, 0]
    # Rounding alone can take a tiny probability below 0.
    found = np.maximum(found, 0.0)
    normalised: Array = found / found.sum(axis=1, keepdims=True)
    return normalised


def _newton(design: Array, target: Array, start: Array) -> list[float]:
    """Return the parameters w that minimise the cross-entropy of `target` and p = 1 / (1 + exp(design @ w)).

    Parameters
    ----------
    design : ndarray, shape (n, d)
    target : ndarray, shape (n,)
        In (0, 1).
    start : ndarray, shape (d,)

    Notes
    -----
    Cost: O(n d^2) for each step. The function is convex; near its minimum the decrement is squared by every step.
    """
    parameters = start
    value = _cross_entropy(design @ parameters, target)
    for _ in range(MOST_STEPS):
        p = expit(-(design @ parameters))
        gradient = design.T @ (target - p)
        hessian = (design.T * (p * (1.0 - p))) @ design + RIDGE * np.eye(len(start))
        direction = -solve(hessian, gradient, assume_a="pos")
        decrement = float(-gradient @ direction)
        if decrement <= SMALLEST_DECREMENT:
            break
        length = 1.0
        while True:
            moved = parameters + length * direction
            moved_value = _cross_entropy(design @ moved, target)
            # Rounding of the value must not refuse the last steps.
            if moved_value <= value - 1e-4 * length * decrement + 1e-14 * value:
                break
            length /= 2.0
        parameters, value = moved, moved_value
    return [float(parameter) for parameter in parameters]


def _cross_entropy(z: Array, target: Array) -> float:
    """Return -sum(t log p + (1 - t) log(1 - p)) for p = 1 / (1 + exp(z)): log(1 + exp(z)) - (1 - t) z, summed.

    The two terms nearly cancel where |z| is large; here they do not meet.
    """
    return float((np.log1p(np.exp(-np.abs(z))) + np.where(z > 0, target, target - 1.0) * z).sum())
