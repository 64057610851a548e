"""Scores into probabilities: sigmoids and the coupling of pairs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

pytest.importorskip("sklearn")

from sklearn import calibration

from kerntest.learning.scores import BLOCK, Sigmoid, couple, fit_sigmoid, sigmoid_probability

rows = st.lists(st.tuples(st.booleans(), st.floats(-4, 4)), min_size=1, max_size=40)


def scores_of(n=200, seed=0, separation=1.0):
    """Return scores and the positive rows among them, whose scores are higher on average."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    return rng.normal(size=n) + separation * np.where(positive, 1.0, -1.0), positive


def naive_loss(slope, offset, scores, positive):
    """Return the cross-entropy of Platt's targets, one row at a time."""
    positives = sum(positive)
    high, low = (positives + 1) / (positives + 2), 1 / (len(positive) - positives + 2)
    total = 0.0
    for f, is_positive in zip(scores, positive, strict=True):
        z = slope * f + offset
        target = high if is_positive else low
        # log p = -log(1 + exp(z)), log(1 - p) = z - log(1 + exp(z))
        log_sum = max(z, 0.0) + math.log1p(math.exp(-abs(z)))
        total += target * log_sum + (1 - target) * (log_sum - z)
    return total


def naive_gradient(slope, offset, scores, positive):
    positives = sum(positive)
    high, low = (positives + 1) / (positives + 2), 1 / (len(positive) - positives + 2)
    terms = [
        (high if is_positive else low) - 1 / (1 + math.exp(slope * f + offset))
        for f, is_positive in zip(scores, positive, strict=True)
    ]
    return math.fsum(term * f for term, f in zip(terms, scores, strict=True)), math.fsum(terms)


@given(rows)
def test_the_fit_is_a_minimum(drawn):
    positive, scores = np.array([p for p, _ in drawn]), np.array([f for _, f in drawn])
    found = fit_sigmoid(scores, positive, through_threshold=False)
    by_slope, by_offset = naive_gradient(found.slope, found.offset, scores, positive)
    np.testing.assert_allclose([by_slope, by_offset], 0.0, atol=1e-8)


@given(rows)
def test_the_fit_through_the_threshold_is_a_minimum_among_its_like(drawn):
    positive, scores = np.array([p for p, _ in drawn]), np.array([f for _, f in drawn])
    found = fit_sigmoid(scores, positive, through_threshold=True)
    by_slope, _ = naive_gradient(found.slope, 0.0, scores, positive)
    assert found.offset == 0.0
    unit = float(np.sqrt(np.square(scores).mean())) or 1.0
    assert found.slope < 0.0
    if found.slope * unit < -2e-9:
        np.testing.assert_allclose(by_slope, 0.0, atol=1e-8)
    else:
        assert by_slope / unit <= 1e-8  # a positive slope would be better: none is allowed


@pytest.mark.parametrize("separation", [0.0, 0.5, 3.0, -1.0])
def test_an_optimiser_finds_the_same(separation):
    scores, positive = scores_of(separation=separation)
    found = fit_sigmoid(scores, positive, through_threshold=False)
    best = minimize(lambda ab: naive_loss(*ab, scores, positive), [0.0, 0.0], method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose([found.slope, found.offset], best.x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("separation", [0.3, 1.0, 3.0])
def test_the_sigmoid_is_that_of_scikit_learn(separation):
    scores, positive = scores_of(separation=separation)
    slope, offset = calibration._sigmoid_calibration(scores, positive.astype(int))
    found = fit_sigmoid(scores, positive, through_threshold=False)
    np.testing.assert_allclose(found.slope, slope, rtol=2e-3)
    np.testing.assert_allclose(found.offset, offset, rtol=2e-3, atol=2e-3)
    ours = naive_loss(found.slope, found.offset, scores, positive)
    assert ours <= naive_loss(slope, offset, scores, positive) + 1e-10


@given(rows)
def test_probabilities_through_the_threshold_never_contradict_the_score(drawn):
    positive, scores = np.array([p for p, _ in drawn]), np.array([f for _, f in drawn])
    fitted = fit_sigmoid(scores, positive, through_threshold=True)
    p = sigmoid_probability(fitted, scores)
    assert (p[scores > 0] >= 0.5).all()
    assert (p[scores < 0] <= 0.5).all()
    assert sigmoid_probability(fitted, np.zeros(1))[0] == 0.5


def test_scores_that_point_the_wrong_way_give_one_half():
    scores, positive = scores_of(separation=-1.0)
    assert fit_sigmoid(scores, positive, through_threshold=False).slope > 0
    p = sigmoid_probability(fit_sigmoid(scores, positive, through_threshold=True), scores)
    np.testing.assert_allclose(p, 0.5, rtol=1e-7)
    np.testing.assert_array_equal(np.sign(p - 0.5), np.sign(scores))


def test_separable_scores_have_a_finite_slope():
    scores = np.array([-2.0, -1.0, 1.0, 2.0])
    for through_threshold in (False, True):
        found = fit_sigmoid(scores, scores > 0, through_threshold=through_threshold)
        assert -100 < found.slope < -0.1
    far = np.array([-1e9, -1.0, 1.0, 1e9])
    found = fit_sigmoid(far, far > 0, through_threshold=False)
    by_slope, by_offset = naive_gradient(found.slope, found.offset, far, far > 0)
    np.testing.assert_allclose([by_slope / 1e9, by_offset], 0.0, atol=1e-8)


@pytest.mark.parametrize("through_threshold", [True, False])
@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1e6, 1e150])
def test_the_unit_of_the_scores_does_not_matter(unit, through_threshold):
    scores, positive = scores_of()
    plain = fit_sigmoid(scores, positive, through_threshold=through_threshold)
    scaled = fit_sigmoid(scores * unit, positive, through_threshold=through_threshold)
    np.testing.assert_allclose(scaled.slope * unit, plain.slope, rtol=1e-8)
    np.testing.assert_allclose(scaled.offset, plain.offset, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_constant_scores_give_the_share_of_the_class(value):
    positive = np.array([True, False, False, False])
    found = fit_sigmoid(np.full(4, value), positive, through_threshold=False)
    high, low = 2 / 3, 1 / 5
    assert found.slope == 0.0
    np.testing.assert_allclose(sigmoid_probability(found, np.array([value])), (high + 3 * low) / 4, rtol=1e-12)
    flat = fit_sigmoid(np.zeros(4), positive, through_threshold=True)
    np.testing.assert_allclose([flat.slope, flat.offset], 0.0, atol=1e-8)


@pytest.mark.parametrize("through_threshold", [True, False])
def test_a_single_class_can_be_fitted(through_threshold):
    scores = np.linspace(0.5, 2.0, 9)
    found = fit_sigmoid(scores, np.ones(9, dtype=bool), through_threshold=through_threshold)
    p = sigmoid_probability(found, scores)
    assert ((p > 0.5) & (p < 1.0)).all()


def test_swapping_the_classes_swaps_the_probabilities():
    scores, positive = scores_of()
    for through_threshold in (True, False):
        found = fit_sigmoid(scores, positive, through_threshold=through_threshold)
        swapped = fit_sigmoid(-scores, ~positive, through_threshold=through_threshold)
        p, q = sigmoid_probability(found, scores), sigmoid_probability(swapped, -scores)
        np.testing.assert_allclose(p + q, 1.0, rtol=1e-9)


def test_probabilities_neither_overflow_nor_warn():
    p = sigmoid_probability(Sigmoid(-1.0, 0.5), np.array([-1e300, -800.0, 0.0, 800.0, 1e300]))
    np.testing.assert_allclose(p, [0.0, 0.0, 1 / (1 + math.exp(0.5)), 1.0, 1.0], rtol=1e-14, atol=1e-300)


def test_a_calibrated_sigmoid_is_found_again():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=200_000)
    positive = rng.random(len(scores)) < 1 / (1 + np.exp(-1.7 * scores + 0.4))
    found = fit_sigmoid(scores, positive, through_threshold=False)
    np.testing.assert_allclose([found.slope, found.offset], [-1.7, 0.4], atol=0.03)


def random_pairs(n, k, seed=0):
    """Return r_ij of n rows with r_ij + r_ji = 1."""
    r = np.triu(np.random.default_rng(seed).random((n, k, k)), 1)
    return r + np.tril(1.0 - r.transpose(0, 2, 1), -1)


def naive_coupling(r):
    """Return the coupled probabilities of one row by exact elimination of [Q e; e' 0] [p; b] = [0; 1]."""
    k = len(r)
    r = [[Fraction(float(value)) for value in line] for line in r]
    system = [[Fraction(0)] * (k + 2) for _ in range(k + 1)]
    for i in range(k):
        for j in range(k):
            system[i][j] = sum(r[m][i] ** 2 for m in range(k) if m != i) if i == j else -r[j][i] * r[i][j]
        system[i][k] = system[k][i] = Fraction(1)
    system[k][k + 1] = Fraction(1)
    for i in range(k + 1):
        pivot = next(line for line in range(i, k + 1) if system[line][i])
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [value / system[i][i] for value in system[i]]
        for line in range(k + 1):
            if line != i:
                system[line] = [a - system[line][i] * b for a, b in zip(system[line], system[i], strict=True)]
    return [float(system[i][k + 1]) for i in range(k)]


@pytest.mark.parametrize("k", [2, 3, 5])
def test_coupling_solves_its_system(k):
    r = random_pairs(20, k)
    np.testing.assert_allclose(couple(r), [naive_coupling(row) for row in r], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_coupling_minimises_its_sum(k):
    def disagreement(p, r):
        return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(k) for j in range(k) if j != i)

    rng = np.random.default_rng(1)
    for row, p in zip(random_pairs(5, k), couple(random_pairs(5, k)), strict=True):
        for _ in range(50):
            other = rng.dirichlet(np.ones(k))
            near = p + 1e-3 * (other - p)
            assert disagreement(near, row) >= disagreement(p, row)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_consistent_pairs_give_their_probabilities_back(k):
    p = np.random.default_rng(2).dirichlet(np.ones(k), size=30)
    r = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    np.testing.assert_allclose(couple(r), p, rtol=1e-6, atol=1e-9)


def test_two_classes_are_their_pair():
    r = random_pairs(50, 2)
    np.testing.assert_allclose(couple(r), np.column_stack([r[:, 0, 1], r[:, 1, 0]]), rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 8])
def test_certain_pairs_are_coupled(k):
    # Every pair is certain of the class of the lower number: class 0 wins all of its pairs.
    r = np.triu(np.ones((3, k, k)), 1)
    p = couple(r)
    assert np.isfinite(p).all()
    assert (p[:, 0] > 0.99).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p >= 0).all()


def test_certain_circles_are_shared_equally():
    r = np.array([[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]])
    np.testing.assert_allclose(couple(r), np.full((1, 3), 1 / 3), rtol=1e-6)


def test_rows_are_coupled_one_by_one():
    k = 30
    r = random_pairs(2 * BLOCK // (k + 1) ** 2 + 3, k)
    together = couple(r)
    for place in (0, len(r) // 2, len(r) - 1):
        np.testing.assert_allclose(together[place], couple(r[place : place + 1])[0], rtol=1e-9)
    kept = r.copy()
    couple(r)
    np.testing.assert_array_equal(r, kept)
    assert couple(r[:0]).shape == (0, k)
