"""How well classes and numbers are predicted, compared with plain counting and with scikit-learn."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

pytest.importorskip("sklearn")

from sklearn import metrics

from kerntest.errors import DataError
from kerntest.learning.scores import (
    brier_score,
    classification_metrics,
    log_loss,
    regression_metrics,
    roc_auc,
    roc_curve,
    wilson_interval,
)

CLASSES = ("ant", "bee", "cat", "dog")
# Few different scores among them, so that ties are common; those that differ do so by more than rounding.
scored = st.lists(
    st.tuples(st.booleans(), st.one_of(st.floats(-5, 5, width=16), st.sampled_from([0.0, 1.0]))),
    min_size=1,
    max_size=40,
)
codes = st.integers(2, 4).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), min_size=1, max_size=30),
    )
)
quantities = st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=1, max_size=30)


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


def ratio(part, whole):
    return part / whole if whole else None


@given(codes)
def test_classes_are_counted(drawn):
    count, rows = drawn
    true, predicted = np.array(rows).T
    found = classification_metrics(true, predicted, None, CLASSES[:count])
    recalls, f1s = [], []
    for code, judged in enumerate(found.classes):
        hits = sum(t == p == code for t, p in rows)
        there, called = sum(t == code for t, _ in rows), sum(p == code for _, p in rows)
        assert judged.name == CLASSES[code]
        assert (judged.precision, judged.recall) == (ratio(hits, called), ratio(hits, there))
        assert judged.f1 == ratio(2 * hits, there + called)
        assert judged.support == there
        recalls.append(judged.recall)
        f1s.append(judged.f1)
        for other in range(count):
            assert found.confusion[code][other] == sum((t, p) == (code, other) for t, p in rows)
    defined = [recall for recall in recalls if recall is not None]
    np.testing.assert_allclose(found.balanced_accuracy, sum(defined) / len(defined), rtol=1e-12)
    defined = [f1 for f1 in f1s if f1 is not None]
    np.testing.assert_allclose(found.macro_f1, sum(defined) / len(defined), rtol=1e-12)
    assert found.n == len(rows)
    assert found.accuracy == sum(t == p for t, p in rows) / len(rows)
    assert found.roc_auc is found.log_loss is found.brier is None


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
        indicator = np.eye(count)[true]
        np.testing.assert_allclose(found.brier, np.square(probabilities - indicator).sum() / len(true), rtol=1e-12)


def test_the_area_of_many_classes_is_that_of_scikit_learn():
    true, _, _, probabilities = example(4)
    found = classification_metrics(true, true, probabilities, CLASSES)
    np.testing.assert_allclose(
        found.roc_auc, metrics.roc_auc_score(true, probabilities, multi_class="ovr", average="macro"), rtol=1e-12
    )


def test_a_class_that_is_not_there_is_left_out_of_the_means():
    true, scores = np.array([0, 0, 1, 1]), np.array([[2, 1, 0], [1, 1, 5], [0, 3, 0], [1, 0, 1.0]])
    predicted = np.array([0, 2, 1, 0])
    found = classification_metrics(true, predicted, scores, CLASSES[:3])
    areas = [naive_auc(true == place, scores[:, place]) for place in range(3)]
    assert areas[2] is None
    assert found.roc_auc == (areas[0] + areas[1]) / 2
    assert found.classes[2].recall is None
    assert found.classes[2].precision == 0.0
    assert found.balanced_accuracy == 0.5


def test_with_one_class_there_is_no_area():
    ones = np.ones(4, dtype=int)
    assert classification_metrics(ones, ones, np.arange(4.0), CLASSES[:2]).roc_auc is None
    assert classification_metrics(ones, ones, np.ones((4, 3)), CLASSES[:3]).roc_auc is None


@given(scored)
def test_the_area_is_the_share_of_pairs_in_order(rows):
    positive, scores = np.array([p for p, _ in rows]), np.array([s for _, s in rows])
    found, expected = roc_auc(positive, scores), naive_auc(positive, scores)
    assert (found is None) == (expected is None)
    if expected is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@given(scored)
def test_the_curve_is_counted_at_every_threshold_and_has_the_area(rows):
    positive, scores = np.array([p for p, _ in rows]), np.array([s for _, s in rows])
    if positive.all() or not positive.any():
        with pytest.raises(DataError, match=r"there is no ROC curve: (all|none) of the rows"):
            roc_curve(positive, scores)
        return
    false_rate, true_rate, thresholds = roc_curve(positive, scores)
    assert list(thresholds) == [math.inf, *sorted(set(scores.tolist()), reverse=True)]
    for place, threshold in enumerate(thresholds):
        called = scores >= threshold
        assert true_rate[place] == np.count_nonzero(called & positive) / np.count_nonzero(positive)
        assert false_rate[place] == np.count_nonzero(called & ~positive) / np.count_nonzero(~positive)
    assert (false_rate[-1], true_rate[-1]) == (1.0, 1.0)
    np.testing.assert_allclose(np.trapezoid(true_rate, false_rate), roc_auc(positive, scores), rtol=1e-12)


def test_scores_that_differ_by_rounding_alone_are_tied():
    positive = np.array([True, False, True, False, True, False])
    scores = np.array([0.3, 0.1 + 0.2, 5.0, 5.0 * (1 + 1e-15), -7.0, -1e-16])
    level = np.array([0.3, 0.3, 5.0, 5.0, -7.0, 0.0])
    for rounded in (scores, -scores[::-1]):
        exact = level if rounded is scores else -level[::-1]
        truth = positive if rounded is scores else positive[::-1]
        assert roc_auc(truth, rounded) == roc_auc(truth, exact) == naive_auc(truth, exact)
        for found, expected in zip(roc_curve(truth, rounded), roc_curve(truth, exact), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_the_curve_is_that_of_scikit_learn():
    true, _, scores, _ = example(2)
    ranked = (scores[:, 1] - scores[:, 0]).round(1)
    expected = metrics.roc_curve(true, ranked, drop_intermediate=False)
    for found, other in zip(roc_curve(true, ranked), expected, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-12)


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (0, 10), (10, 10), (7, 10), (1, 1000), (999_999, 1_000_000)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_wilson_intervals_are_those_of_scipy(hits, n, confidence):
    expected = binomtest(hits, n).proportion_ci(confidence, method="wilson")
    found = wilson_interval(hits, n, confidence)
    np.testing.assert_allclose(found, (expected.low, expected.high), rtol=1e-9, atol=1e-15)
    assert 0.0 <= found[0] <= hits / n <= found[1] <= 1.0


def test_ends_of_intervals_are_exact():
    for n in range(1, 200):
        assert wilson_interval(n, n)[1] == 1.0
        assert wilson_interval(0, n)[0] == 0.0


def test_certain_and_wrong_has_a_finite_loss():
    true, wrong = np.array([0, 1]), np.array([[0.0, 1.0], [0.5, 0.5]])
    np.testing.assert_allclose(log_loss(true, wrong), metrics.log_loss(true, wrong), rtol=1e-12)
    assert log_loss(true, np.eye(2)) == 0.0
    assert brier_score(true, np.eye(2)) == 0.0
    assert brier_score(true, np.eye(2)[::-1]) == 1.0
    assert brier_score(np.array([0]), np.array([[0.0, 1.0, 0.0]])) == 2.0


def test_what_is_given_is_not_changed():
    true, predicted, scores, probabilities = example(3)
    kept = [array.copy() for array in (true, predicted, scores, probabilities)]
    classification_metrics(true, predicted, scores, CLASSES[:3], probabilities=probabilities)
    for array, copy in zip((true, predicted, scores, probabilities), kept, strict=True):
        np.testing.assert_array_equal(array, copy)


@given(quantities)
def test_errors_are_summed(rows):
    true, predicted = np.array(rows).T
    found = regression_metrics(true, predicted)
    errors = [abs(t - p) for t, p in rows]
    np.testing.assert_allclose(found.mae, math.fsum(errors) / len(rows), rtol=1e-12)
    np.testing.assert_allclose(found.rmse, math.hypot(*errors) / math.sqrt(len(rows)), rtol=1e-12)
    assert found.max_error == max(errors)
    assert (found.r2 is None) == (len(set(true.tolist())) == 1)


def test_regression_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    true = rng.normal(size=50) * 3 + 1e4
    predicted = true + rng.normal(size=50)
    found = regression_metrics(true, predicted)
    np.testing.assert_allclose(found.r2, metrics.r2_score(true, predicted), rtol=1e-9)
    np.testing.assert_allclose(found.rmse, metrics.root_mean_squared_error(true, predicted), rtol=1e-12)
    np.testing.assert_allclose(found.mae, metrics.mean_absolute_error(true, predicted), rtol=1e-12)
    np.testing.assert_allclose(found.max_error, metrics.max_error(true, predicted), rtol=1e-12)


def test_the_mean_explains_nothing_and_the_truth_everything():
    true = np.array([1.0, 2.0, 6.0])
    assert regression_metrics(true, true).r2 == 1.0
    np.testing.assert_allclose(regression_metrics(true, np.full(3, 3.0)).r2, 0.0, atol=1e-12)
    assert regression_metrics(true, -true).r2 < 0
    assert regression_metrics(np.full(3, 0.1), true).r2 is None


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e300])
def test_the_unit_of_the_numbers_matters_to_no_ratio(unit):
    rng = np.random.default_rng(1)
    true, predicted = rng.normal(size=(2, 20))
    plain, scaled = regression_metrics(true, predicted), regression_metrics(true * unit, predicted * unit)
    np.testing.assert_allclose(scaled.r2, plain.r2, rtol=1e-12)
    np.testing.assert_allclose(scaled.rmse / unit, plain.rmse, rtol=1e-12)
    np.testing.assert_allclose(scaled.mae / unit, plain.mae, rtol=1e-12)


def test_records_are_strict_json():
    true, predicted, _, probabilities = example(3)
    plain = classification_metrics(true, predicted, None, CLASSES[:3], probabilities=probabilities).to_dict()
    again = json.loads(json.dumps(plain, allow_nan=False))
    assert again == plain
    assert again["classes"][0]["name"] == "ant"
    assert len(again["accuracy_interval"]) == 2
    plain = regression_metrics(np.ones(3), np.zeros(3)).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == {
        "n": 3,
        "rmse": 1.0,
        "mae": 1.0,
        "r2": None,
        "max_error": 1.0,
    }
