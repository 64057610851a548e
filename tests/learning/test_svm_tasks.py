"""The nearest mean, the perceptron, probabilities and explicit features."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from learning.alike import assert_decide_alike
from learning.svm_cases import bundled, clouds, coefficients_of, gaussian, laplacian, student_t
from tolerances import SAME_MACHINE, assert_close

from kerntest import SVM, train_svm

KERNELS = {
    "gaussian(1.3)": lambda X, Z: gaussian(X, Z, 1.3),
    "laplacian(2)": lambda X, Z: laplacian(X, Z, 2.0),
    "student-t(0.8)": lambda X, Z: student_t(X, Z, 0.8),
    "linear": lambda X, Z: X @ Z.T,
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_nearest_mean_is_the_class_at_the_least_distance_in_the_feature_space(classes, kernel):
    X, y = clouds(70, classes=classes)
    new, _ = clouds(50, classes=classes, seed=1)
    machine = SVM(method="mean", kernel=kernel, scale="none").fit(X, y)
    k = KERNELS[kernel]
    own = np.diag(k(new, new))
    squared = np.empty((50, classes))
    for c in range(classes):
        rows = X[y == c]
        squared[:, c] = own - 2 * k(new, rows).mean(axis=1) + k(rows, rows).mean()
    np.testing.assert_array_equal(machine.predict(new), squared.argmin(axis=1))
    scores = machine.decision_function(new)
    if classes == 2:
        np.testing.assert_allclose(scores, (squared[:, 0] - squared[:, 1]) / 2, rtol=0, atol=1e-12)
    else:
        np.testing.assert_allclose(scores[:, :1] - scores, (squared - squared[:, :1]) / 2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"grid": True, "cv": 2}])
def test_every_machine_is_judged_beside_the_nearest_mean_with_the_kernel_that_was_chosen(options):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 2))
    table = pd.DataFrame(X, columns=list("ab")).assign(y=(np.sin(4 * X[:, 0]) * X[:, 1] > 0).astype(int))
    result = train_svm(table, "y", test_fraction=0.3, seed=4, **options)
    mean = train_svm(table, "y", test_fraction=0.3, seed=4, method="mean", kernel=result.kernel)
    assert result.baseline.accuracy == mean.accuracy == mean.baseline.accuracy
    assert result.baseline.balanced_accuracy == mean.balanced_accuracy


def test_the_perceptron_separates_what_is_separable_and_counts_its_mistakes():
    X, y = clouds(100, separation=7.0, seed=2)
    machine = SVM(method="perceptron", kernel="linear", scale="none", seed=3).fit(X, y)
    assert machine.score(X, y) == 1.0
    assert machine.fit_.converged
    signs = np.where(y == 1, 1.0, -1.0)
    alpha = signs * coefficients_of(machine, 100)[:, 0]
    assert (alpha >= 0).all()
    assert (alpha == np.round(alpha)).all()
    assert machine.fit_.iterations == alpha.sum() > 0
    assert machine.model.expansion.intercepts[0] == signs @ alpha
    # Novikoff: at most (radius / margin)^2 mistakes, in the space with the intercept.
    hard = SVM(C=1e4, kernel="linear", scale="none").fit(X, y)
    w = np.append(X[hard.fit_.support].T @ hard.model.expansion.coefficients[:, 0], hard.model.expansion.intercepts[0])
    extended = np.column_stack([X, np.ones(100)])
    margin = (signs * (extended @ w)).min() / np.linalg.norm(w)
    assert margin > 0
    assert alpha.sum() <= (extended**2).sum(axis=1).max() / margin**2


def test_the_perceptron_by_hand():
    X, y = clouds(25, separation=2.5, classes=3)
    machine = SVM(method="perceptron", kernel="gaussian(1)", scale="none", seed=9).fit(X, y)
    K, total = gaussian(X, X, 1.0), 0
    for place, (i, j) in enumerate(combinations(range(3), 2)):
        rows = np.flatnonzero((y == i) | (y == j))
        signs = np.where(y[rows] == j, 1.0, -1.0)
        beta, b, rng = np.zeros(len(rows)), 0.0, np.random.default_rng((9, 1))
        for _ in range(100):
            made = 0
            for row in rng.permutation(len(rows)):
                if signs[row] * (K[rows[row], rows] @ beta + b) <= 0:
                    beta[row] += signs[row]
                    b += signs[row]
                    made += 1
            total += made
            if made == 0:
                break
        np.testing.assert_array_equal(coefficients_of(machine, 25)[rows, place].astype(int), beta.astype(int))
        assert machine.model.expansion.intercepts[place] == int(b)
    assert machine.fit_.iterations == total


def test_the_perceptron_says_that_it_has_not_settled():
    X, y = clouds(60, separation=0.5)
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    result = train_svm(table, "y", method="perceptron", kernel="linear")
    assert not result.converged
    assert any("still makes mistakes" in warning for warning in result.warnings)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_perceptron_depends_on_the_seed_only(seed):
    X, y = clouds(60)
    first, second = (SVM(method="perceptron", seed=seed, threads=t).fit(X, y).decision_function(X) for t in (1, 2))
    # Coefficients are whole numbers, each a mistake that was made.
    assert_close(first, second, share=SAME_MACHINE)
    assert (SVM(method="perceptron", seed=7).fit(X, y).decision_function(X) != first).any()


@pytest.mark.parametrize("options", [{"C": 0.3}, {"nu": 0.4}, {"class_weight": "balanced"}, {"method": "perceptron"}])
def test_probabilities_of_two_classes_never_contradict_the_decision(options):
    X, y = clouds(160, separation=1.0)
    X, y = X[40:], np.where(np.arange(120) % 5 == 0, 1, y[40:])
    machine = SVM(probability=True, seed=2, **options).fit(X, y)
    found, scores = machine.predict_proba(X), machine.decision_function(X)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert ((found[:, 1] > 0.5) == (scores > 0)).all()
    np.testing.assert_array_equal(found.argmax(axis=1), machine.predict(X))
    # Monotone in the score, and even where the score is 0.
    assert (np.diff(found[np.argsort(scores, kind="stable"), 1]) >= 0).all()
    assert machine.model.probabilities(np.array([[0.0]])).tolist() == [[0.5, 0.5]]


def test_probabilities_of_several_classes_sum_to_one_and_decide():
    X, y = bundled("wine")
    X, y = X[::2, :4], y[::2]
    machine = SVM(probability=True, C=1.0).fit(X, y)
    found = machine.predict_proba(X)
    assert found.shape == (89, 3)
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(found.argmax(axis=1), machine.predict(X))


def test_probabilities_are_those_of_the_seed():
    X, y = clouds(100)
    first, again, other = (SVM(probability=True, seed=s, threads=t).fit(X, y) for s, t in ((1, 1), (1, 2), (2, 1)))
    # Sigmoids of scores from machines, which stop at a gap of 1e-6.
    close = np.abs(first.predict_proba(X) - again.predict_proba(X)).max()
    assert close < 1e-5
    assert np.abs(first.predict_proba(X) - other.predict_proba(X)).max() > 10 * max(close, 1e-5)
    assert_decide_alike(first, other, X)


def test_probabilities_are_about_right_where_the_truth_is_known():
    # Two normal clouds with unit variance: log odds are separation * (x - separation / 2).
    X, y = clouds(600, 1, separation=2.0)
    machine = SVM(kernel="linear", scale="none", probability=True).fit(X, y)
    at = np.linspace(-1, 3, 9)
    truth = 1 / (1 + np.exp(-2.0 * (at - 1)))
    np.testing.assert_allclose(machine.predict_proba(at[:, None])[:, 1], truth, rtol=0, atol=0.08)


@pytest.mark.parametrize("kernel", ["gaussian(1.5)", "laplacian(3)", "student-t"])
def test_nystroem_features_of_all_rows_are_the_kernel(kernel):
    X, y = clouds(80)
    exact = SVM(kernel=kernel, scale="none", tolerance=1e-10).fit(X, y)
    explicit = SVM(kernel=kernel, scale="none", tolerance=1e-10, features="nystroem:80").fit(X, y)
    new, _ = clouds(40, seed=5)
    np.testing.assert_allclose(explicit.decision_function(new), exact.decision_function(new), rtol=0, atol=1e-6)
    result = train_svm(np.column_stack([X, y]), "x3", kernel=kernel, scale="none", features="nystroem:80")
    assert result.feature_error < 1e-9


@pytest.mark.parametrize(("kind", "counts"), [("nystroem", (5, 20, 60)), ("fourier", (30, 300, 3000))])
def test_the_error_of_features_falls_with_their_number(kind, counts):
    X, y = clouds(150)
    options = {"kernel": "gaussian(2)", "scale": "none"}
    table = np.column_stack([X, y])
    errors = [train_svm(table, "x3", features=f"{kind}:{m}", **options).feature_error for m in counts]
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 0


def test_the_reported_error_of_features_is_that_of_all_pairs():
    X, y = clouds(90)
    machine = SVM(kernel="gaussian(2)", scale="none", features="fourier:200", seed=6).fit(X, y)
    features = machine.model.features
    Z = np.sqrt(2 / 200) * np.cos(X @ features.projection + features.offsets)
    error = np.sqrt(np.mean((Z @ Z.T - gaussian(X, X, 2.0)) ** 2))
    result = train_svm(
        np.column_stack([X, y]), "x3", kernel="gaussian(2)", scale="none", features="fourier:200", seed=6
    )
    np.testing.assert_allclose(result.feature_error, error, rtol=1e-9)
    w, b = machine.model.expansion.coefficients[:, 0], machine.model.expansion.intercepts[0]
    np.testing.assert_allclose(machine.decision_function(X), Z @ w + b, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("task", "target"), [("regress", True), ("one-class", False)])
def test_features_are_for_the_other_tasks_too(task, target):
    X, _ = clouds(70)
    y = np.sin(X[:, 0]) if target else None
    exact = SVM(task=task, kernel="gaussian(1.5)", scale="none", tolerance=1e-9).fit(X, y)
    explicit = SVM(task=task, kernel="gaussian(1.5)", scale="none", tolerance=1e-9, features="nystroem:70").fit(X, y)
    found = exact.decision_function(X)
    np.testing.assert_allclose(explicit.decision_function(X), found, rtol=0, atol=1e-5 * np.abs(found).max())


def test_features_of_categories():
    X, y = clouds(60)
    table = pd.DataFrame({"a": X[:, 0], "colour": np.array(["red", "blue", "green"])[np.arange(60) % 3]})
    exact = SVM(tolerance=1e-9).fit(table, y)
    explicit = SVM(tolerance=1e-9, features="nystroem:60").fit(table, y)
    np.testing.assert_allclose(explicit.decision_function(table), exact.decision_function(table), rtol=0, atol=1e-5)
