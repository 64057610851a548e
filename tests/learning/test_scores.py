"""Scores, metrics and probabilities, each against plain counting, a naive loop or scikit-learn. Inside: they take arrays."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from kerntest.learning.scores import (
    BLOCK,
    Sigmoid,
    classification_metrics,
    couple,
    fit_sigmoid,
    log_loss,
    regression_metrics,
    roc_auc,
    roc_curve,
    sigmoid_probability,
)

CLASSES = ("ant", "bee", "cat", "dog")
# Few different scores among them, so that ties are common; those that differ do so by more than rounding.
scored = st.lists(
    st.tuples(st.booleans(), st.one_of(st.floats(-5, 5, width=16), st.sampled_from([0.0, 1.0]))),
    min_size=1,
    max_size=40,
)


def example(count, n=60, seed=0):
    """Return true and predicted codes, scores and probabilities of a mediocre classifier."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, count, n)
    scores = rng.normal(size=(n, count)).round(1)
    scores[np.arange(n), true] += 1.0
    # Again: 0.1 + 1.0 is not 1.1.
    scores = scores.round(1)
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return true, scores.argmax(axis=1), scores, probabilities


def naive_auc(positive, scores):
    """Return the share of pairs, one of each class, in which the positive row has the higher score."""
    above = [
        1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0
        for i, j in itertools.product(range(len(scores)), repeat=2)
        if positive[i] and not positive[j]
    ]
    return sum(above) / len(above) if above else None


@pytest.mark.parametrize("count", [2, 3, 4])
def test_classification_agrees_with_scikit_learn(count):
    true, predicted, scores, probabilities = example(count)
    ranked = (scores[:, 1] - scores[:, 0]).round(1) if count == 2 else scores
    found = classification_metrics(true, predicted, ranked, CLASSES[:count], probabilities=probabilities)
    np.testing.assert_array_equal(found.confusion, metrics.confusion_matrix(true, predicted))
    np.testing.assert_allclose(found.accuracy, metrics.accuracy_score(true, predicted), rtol=1e-12)
    np.testing.assert_allclose(found.balanced_accuracy, metrics.balanced_accuracy_score(true, predicted), rtol=1e-12)
    parts = np.array([(part.precision, part.recall, part.f1, part.support) for part in found.classes]).T
    np.testing.assert_allclose(parts, metrics.precision_recall_fscore_support(true, predicted), rtol=1e-12)
    np.testing.assert_allclose(found.macro_f1, metrics.f1_score(true, predicted, average="macro"), rtol=1e-12)
    np.testing.assert_allclose(found.log_loss, metrics.log_loss(true, probabilities), rtol=1e-12)
    if count == 2:
        np.testing.assert_allclose(found.roc_auc, metrics.roc_auc_score(true, ranked), rtol=1e-12)
        np.testing.assert_allclose(found.brier, metrics.brier_score_loss(true, probabilities[:, 1]), rtol=1e-12)
    else:
        areas = [metrics.roc_auc_score(true == place, scores[:, place]) for place in range(count)]
        np.testing.assert_allclose(found.roc_auc, np.mean(areas), rtol=1e-12)
        errors = probabilities - np.eye(count)[true]
        np.testing.assert_allclose(found.brier, np.square(errors).sum() / len(true), rtol=1e-12)


def test_a_class_that_is_not_there_is_left_out_of_the_means():
    true, scores = np.array([0, 0, 1, 1]), np.array([[2, 1, 0], [1, 1, 5], [0, 3, 0], [1, 0, 1.0]])
    found = classification_metrics(true, np.array([0, 2, 1, 0]), scores, CLASSES[:3])
    areas = [naive_auc(true == place, scores[:, place]) for place in range(3)]
    assert areas[2] is None
    assert found.roc_auc == (areas[0] + areas[1]) / 2
    assert (found.classes[2].recall, found.classes[2].precision) == (None, 0.0)
    assert found.balanced_accuracy == 0.5
    assert found.log_loss is found.brier is None
    ones = np.ones(4, dtype=int)
    assert classification_metrics(ones, ones, np.arange(4.0), CLASSES[:2]).roc_auc is None
    assert classification_metrics(ones, ones, np.ones((4, 3)), CLASSES[:3]).roc_auc is None


@given(scored)
def test_the_curve_is_counted_at_every_threshold_and_has_the_area_of_pairs_in_order(rows):
    positive, scores = np.array([p for p, _ in rows]), np.array([s for _, s in rows])
    found, expected = roc_auc(positive, scores), naive_auc(positive, scores)
    if expected is None:
        assert found is None
        return
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    false_rate, true_rate = roc_curve(positive, scores)
    for place, threshold in enumerate([math.inf, *sorted(set(scores.tolist()), reverse=True)]):
        called = scores >= threshold
        assert true_rate[place] == np.count_nonzero(called & positive) / np.count_nonzero(positive)
        assert false_rate[place] == np.count_nonzero(called & ~positive) / np.count_nonzero(~positive)
    np.testing.assert_allclose(np.trapezoid(true_rate, false_rate), found, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1.0, 1e300])
def test_regression_agrees_with_scikit_learn_in_any_unit(unit):
    rng = np.random.default_rng(0)
    true = rng.normal(size=50) * 3 + 10
    predicted = true + rng.normal(size=50)
    found = regression_metrics(true * unit, predicted * unit)
    np.testing.assert_allclose(found.r2, metrics.r2_score(true, predicted), rtol=1e-9)
    np.testing.assert_allclose(found.rmse / unit, metrics.root_mean_squared_error(true, predicted), rtol=1e-12)
    np.testing.assert_allclose(found.mae / unit, metrics.mean_absolute_error(true, predicted), rtol=1e-12)
    np.testing.assert_allclose(found.max_error / unit, metrics.max_error(true, predicted), rtol=1e-12)
    assert regression_metrics(np.full(3, 0.1), true[:3]).r2 is None


# Sigmoids


def naive_gradient(slope, offset, scores, positive):
    """Return the gradient of the cross-entropy of Platt's targets, one row at a time."""
    positives = sum(positive)
    high, low = (positives + 1) / (positives + 2), 1 / (len(positive) - positives + 2)
    terms = [
        (high if is_positive else low) - 1 / (1 + math.exp(slope * f + offset))
        for f, is_positive in zip(scores, positive, strict=True)
    ]
    return math.fsum(term * f for term, f in zip(terms, scores, strict=True)), math.fsum(terms)


@given(st.lists(st.tuples(st.booleans(), st.floats(-4, 4)), min_size=1, max_size=40))
def test_the_sigmoid_is_the_most_likely_and_never_contradicts_the_score(drawn):
    positive, scores = np.array([p for p, _ in drawn]), np.array([f for _, f in drawn])
    found = fit_sigmoid(scores, positive, through_threshold=False)
    by_slope, by_offset = naive_gradient(found.slope, found.offset, scores, positive)
    np.testing.assert_allclose(by_offset, 0.0, atol=1e-8)
    spread = float(scores.std()) or 1.0
    assert found.slope < 0
    if found.slope * spread < -2e-9:
        np.testing.assert_allclose(by_slope, 0.0, atol=1e-8)
    else:
        assert by_slope / spread <= 1e-7  # turned around the scores would be better: they are not
    through = fit_sigmoid(scores, positive, through_threshold=True)
    by_slope, _ = naive_gradient(through.slope, 0.0, scores, positive)
    unit = float(np.sqrt(np.square(scores).mean())) or 1.0
    assert through.offset == 0.0 > through.slope
    if through.slope * unit < -2e-9:
        np.testing.assert_allclose(by_slope, 0.0, atol=1e-8)
    else:
        assert by_slope / unit <= 1e-8  # a positive slope would be better: none is allowed
    p = sigmoid_probability(through, scores)
    assert (p[scores > 0] >= 0.5).all()
    assert (p[scores < 0] <= 0.5).all()


def test_certain_separable_and_constant_scores_have_finite_losses_and_sigmoids():
    true, wrong = np.array([0, 1]), np.array([[0.0, 1.0], [0.5, 0.5]])
    np.testing.assert_allclose(log_loss(true, wrong), metrics.log_loss(true, wrong), rtol=1e-12)
    far = np.array([-1e9, -1.0, 1.0, 1e9])
    for through in (True, False):
        one, other = (fit_sigmoid(far[1:3] * unit, far[1:3] > 0, through_threshold=through) for unit in (1.0, 1e150))
        np.testing.assert_allclose(other.slope * 1e150, one.slope, rtol=1e-8)
    found = fit_sigmoid(far, far > 0, through_threshold=False)
    by_slope, by_offset = naive_gradient(found.slope, found.offset, far, far > 0)
    np.testing.assert_allclose([by_slope / 1e9, by_offset], 0.0, atol=1e-8)
    positive = np.array([True, False, False, False])
    found = fit_sigmoid(np.full(4, 3.0), positive, through_threshold=False)
    assert -1e-9 <= found.slope < 0.0
    np.testing.assert_allclose(sigmoid_probability(found, np.array([3.0])), (2 / 3 + 3 / 5) / 4, rtol=1e-12)
    wrong_way = fit_sigmoid(
        np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, True, True, False]), through_threshold=False
    )
    np.testing.assert_allclose(sigmoid_probability(wrong_way, np.array([0.0, 9.0])), (3 * 4 / 5 + 1 / 3) / 4, rtol=1e-7)
    flat = fit_sigmoid(np.zeros(4), positive, through_threshold=True)
    np.testing.assert_allclose([flat.slope, flat.offset], 0.0, atol=1e-8)
    p = sigmoid_probability(Sigmoid(-1.0, 0.5), np.array([-1e300, -800.0, 0.0, 800.0, 1e300]))
    np.testing.assert_allclose(p, [0.0, 0.0, 1 / (1 + math.exp(0.5)), 1.0, 1.0], rtol=1e-14, atol=1e-300)


# Coupling


def random_pairs(n, k, seed=0):
    """Return r_ij of n rows with r_ij + r_ji = 1."""
    r = np.triu(np.random.default_rng(seed).random((n, k, k)), 1)
    return r + np.tril(1.0 - r.transpose(0, 2, 1), -1)


def naive_coupling(r):
    """Return the coupled probabilities of one row by the system [Q e; e' 0] [p; b] = [0; 1]."""
    k = len(r)
    system = np.zeros((k + 1, k + 1))
    system[:k, k] = system[k, :k] = 1.0
    for i in range(k):
        for j in range(k):
            system[i, j] = sum(r[m][i] ** 2 for m in range(k) if m != i) if i == j else -r[j][i] * r[i][j]
    return np.linalg.solve(system, np.eye(k + 1)[k])[:k]


@pytest.mark.parametrize("k", [2, 3, 5])
def test_coupling_solves_its_system_and_gives_consistent_pairs_back(k):
    r = random_pairs(20, k)
    np.testing.assert_allclose(couple(r), [naive_coupling(row) for row in r], rtol=1e-9, atol=1e-12)
    p = np.random.default_rng(2).dirichlet(np.ones(k), size=30)
    consistent = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    np.testing.assert_allclose(couple(consistent), p, rtol=1e-6, atol=1e-9)
    # Every pair is certain of the class of the lower number: class 0 wins all of its pairs.
    certain = couple(np.triu(np.ones((3, k, k)), 1))
    assert (certain >= 0).all()
    assert (certain[:, 0] > 0.99).all()
    np.testing.assert_allclose(certain.sum(axis=1), 1.0, rtol=1e-12)


def test_certain_circles_are_shared_equally_and_blocks_change_nothing():
    circle = np.array([[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]])
    np.testing.assert_allclose(couple(circle), np.full((1, 3), 1 / 3), rtol=1e-6)
    r = random_pairs(2 * BLOCK // 31**2 + 3, 30)
    together = couple(r)
    for place in (0, len(r) // 2, len(r) - 1):
        np.testing.assert_allclose(together[place], couple(r[place : place + 1])[0], rtol=1e-9)
