"""What a fitted machine says of itself, recomputed from the dense matrix; margins, votes and labels."""

import datetime as dt
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from learning.alike import assert_decide_alike
from learning.svm_cases import bundled, clouds, coefficients_of, gaussian, raises
from scipy.optimize import minimize

from kerntest import SVM, train_svm
from kerntest.errors import DataError, UsageError


def frame_of(X, y):
    return pd.DataFrame({**{f"x{k}": column for k, column in enumerate(X.T)}, "y": y})


def pair_by_hand(K, signs, costs, beta, b):
    """Primal and dual objective of one machine, by loops."""
    f = K @ beta
    primal = 0.5 * beta @ f
    for i in range(len(signs)):
        primal += costs[i] * max(1 - signs[i] * (f[i] + b), 0.0)
    return primal, signs @ beta - 0.5 * beta @ f


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("weights", [None, "balanced", "0:2,2:0.5"])
def test_the_certificate_of_several_classes_is_the_sum_over_their_pairs(C, weights):
    X, y = clouds(90, separation=1.2, classes=3)
    X, y = X[:80], np.where(np.arange(80) % 7 == 0, 0, y[:80])
    result = train_svm(frame_of(X, y), "y", C=C, kernel="gaussian(1.5)", scale="none", class_weight=weights)
    machine = SVM(C=C, kernel="gaussian(1.5)", scale="none", class_weight=weights).fit(X, y)
    factors = np.ones(3)
    if weights == "balanced":
        factors = len(y) / (3 * np.bincount(y))
    elif weights:
        factors = np.array([2.0, 1.0, 0.5])
    K = gaussian(X, X, 1.5)
    coefficients = coefficients_of(machine, len(y))
    primal, dual, gaps = 0.0, 0.0, []
    bounded = np.zeros(len(y), dtype=bool)
    for place, (i, j) in enumerate(combinations(range(3), 2)):
        rows = np.flatnonzero((y == i) | (y == j))
        signs, costs = np.where(y[rows] == j, 1.0, -1.0), C * factors[y[rows]]
        beta = coefficients[rows, place]
        assert (coefficients[np.setdiff1d(np.arange(len(y)), rows), place] == 0).all()
        assert (signs * beta >= 0).all()
        assert (signs * beta <= costs * (1 + 1e-12)).all()
        np.testing.assert_allclose(beta.sum(), 0, rtol=0, atol=1e-11 * np.abs(beta).sum())
        bounded[rows] |= signs * beta >= costs * (1 - 1e-9)
        made, bound = pair_by_hand(K[np.ix_(rows, rows)], signs, costs, beta, result.intercept[place])
        primal, dual = primal + made, dual + bound
        gaps.append((made - bound) / made)
    np.testing.assert_allclose(result.objective, primal, rtol=1e-10)
    np.testing.assert_allclose(result.dual_objective, dual, rtol=1e-10)
    np.testing.assert_allclose(result.duality_gap, max(gaps), rtol=0, atol=1e-10)
    assert result.duality_gap <= 1e-6
    assert result.converged
    assert result.n_support == int((coefficients != 0).any(axis=1).sum())
    assert result.n_bounded == int(bounded.sum())
    np.testing.assert_allclose(result.lambda_, 1 / (2 * len(y) * C), rtol=1e-15)


def test_the_optimum_is_that_of_a_general_solver():
    X, y = clouds(30)
    K, signs = gaussian(X, X, 1.0), np.where(y == 1, 1.0, -1.0)
    machine = SVM(C=2.0, kernel="gaussian(1)", scale="none", tolerance=1e-9).fit(X, y)
    Q = signs[:, None] * K * signs
    found = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.zeros(30),
        jac=lambda a: Q @ a - 1,
        bounds=[(0, 2)] * 30,
        constraints={"type": "eq", "fun": lambda a: signs @ a, "jac": lambda _: signs},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    np.testing.assert_allclose(machine.fit_.dual_objective, -found.fun, rtol=1e-7)


@pytest.mark.parametrize(("C", "epsilon"), [(1.0, 0.1), (20.0, 10.0)])
def test_the_certificate_of_a_regression(C, epsilon):
    X, y = bundled("diabetes")
    result = train_svm(
        frame_of(X, y), "y", task="regress", C=C, epsilon=epsilon, kernel="gaussian(4)", scale="none", tolerance=1e-8
    )
    machine = SVM(task="regress", C=C, epsilon=epsilon, kernel="gaussian(4)", scale="none", tolerance=1e-8).fit(X, y)
    K, beta = gaussian(X, X, 4.0), coefficients_of(machine, len(y))[:, 0]
    errors = np.abs(y - K @ beta - result.intercept)
    primal = 0.5 * beta @ K @ beta + C * np.maximum(errors - epsilon, 0).sum()
    dual = y @ beta - epsilon * np.abs(beta).sum() - 0.5 * beta @ K @ beta
    np.testing.assert_allclose(result.objective, primal, rtol=1e-9)
    np.testing.assert_allclose(result.dual_objective, dual, rtol=1e-7)
    np.testing.assert_allclose(result.duality_gap, (primal - dual) / primal, rtol=0, atol=1e-8)
    assert result.n_support == int((beta != 0).sum())
    assert result.n_bounded == int((np.abs(beta) >= C * (1 - 1e-9)).sum())
    np.testing.assert_allclose(result.rmse, np.sqrt(np.mean((machine.predict(X) - y) ** 2)), rtol=1e-12)


@pytest.mark.parametrize("nu", [0.07, 0.1, 0.45])
def test_a_one_class_machine_leaves_out_the_share_nu_of_its_rows(nu):
    X, _ = clouds(120)
    result = train_svm(X, task="one-class", nu=nu, kernel="gaussian(1.5)", scale="none")
    machine = SVM(task="one-class", nu=nu, kernel="gaussian(1.5)", scale="none").fit(X)
    scores = machine.decision_function(X)
    beta = coefficients_of(machine, 120)[:, 0]
    np.testing.assert_allclose(scores, gaussian(X, X, 1.5) @ beta + result.intercept, rtol=0, atol=1e-10)
    assert result.outliers == np.mean(scores < 0)
    # Rows in front of the plane have no coefficient, rows behind it have all of it: nu lies between the two shares.
    tolerance = 1e-6 * np.abs(scores).max()
    assert (scores < -tolerance).mean() <= nu <= (scores < tolerance).mean()
    assert result.n_support / 120 >= nu
    assert result.n_bounded / 120 <= nu
    assert (machine.predict(X) == (scores >= 0)).all()


def test_one_class_calls_a_tenth_outliers_by_default():
    X, _ = clouds(200)
    result = train_svm(X, task="one-class")
    assert result.nu == 0.1
    assert abs(result.outliers - 0.1) < 0.03


@pytest.mark.parametrize("scale", [1.0, 1e-3, 50.0])
def test_a_hard_margin_is_as_wide_as_geometry_says(scale):
    # The nearest two of these are (0, 0) and (3, 4) on either side: half of their distance of 5.
    X = scale * np.array([[0.0, 0.0], [-1.0, -2.0], [-3.0, 0.0], [3.0, 4.0], [6.0, 8.0], [3.0, 9.0]])
    machine = SVM(kernel="linear", scale="none", hard_margin=True).fit(X, [0, 0, 0, 1, 1, 1])
    w = X[machine.fit_.support].T @ machine.model.expansion.coefficients[:, 0]
    np.testing.assert_allclose(1 / np.linalg.norm(w), 2.5 * scale, rtol=1e-6)
    np.testing.assert_allclose(w / np.linalg.norm(w), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(machine.decision_function(X[[0, 3]]), [-1, 1], rtol=1e-6)
    np.testing.assert_array_equal(machine.fit_.support, [0, 3])
    assert machine.fit_.n_bounded == 0
    assert machine.fit_.C is None


def test_a_hard_margin_leaves_no_row_inside():
    X, y = clouds(80)
    machine = SVM(kernel="gaussian(0.4)", scale="none", hard_margin=True).fit(X, y)
    margins = np.where(y == 1, 1, -1) * machine.decision_function(X)
    np.testing.assert_allclose(margins.min(), 1, rtol=1e-4)
    np.testing.assert_allclose(margins[machine.fit_.support], 1, rtol=1e-4)


@pytest.mark.parametrize("nu", [0.1, 0.25, 0.5, 0.8])
def test_nu_lies_between_the_shares_of_margin_errors_and_of_support_vectors(nu):
    X, y = clouds(80)
    machine = SVM(nu=nu, kernel="laplacian(1)", scale="none").fit(X, y)
    margins = np.where(y == 1, 1, -1) * machine.decision_function(X)
    assert (margins < 1 - 1e-4).mean() <= nu <= len(machine.fit_.support) / 80
    np.testing.assert_allclose(np.abs(machine.model.expansion.coefficients).sum(), nu * 80 * machine.fit_.C, rtol=1e-5)


@pytest.mark.parametrize(("n", "nu"), [(30, 0.02), (30, 0.1), (50, 0.05)])
def test_a_small_nu_gives_a_certified_machine_or_none(n, nu):
    X, y = clouds(n)
    try:
        machine = SVM(nu=nu, kernel="gaussian(1.5)", scale="none").fit(X, y)
    except UsageError:
        # Few support vectors need margins that no cost in double precision reaches: refused by name.
        raises(UsageError, "usage.nu", lambda: SVM(nu=nu, kernel="gaussian(1.5)", scale="none").fit(X, y))
    else:
        assert machine.fit_.converged
        assert machine.fit_.gap <= 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_classes_far_apart_have_a_hard_margin(seed):
    X, y = clouds(20, separation=8.0, seed=seed)
    machine = SVM(kernel="linear", scale="none", hard_margin=True, tolerance=1e-10).fit(X, y)
    np.testing.assert_allclose((np.where(y == 1, 1, -1) * machine.decision_function(X)).min(), 1, rtol=1e-4)


def test_ties_of_votes_go_to_the_first_class():
    X, y = clouds(60, separation=2.0, classes=3)
    angle = 2 * np.pi * y / 3
    X = 0.5 * np.random.default_rng(1).normal(size=(60, 2)) + 1.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    machine = SVM(C=1.0, kernel="linear", scale="none").fit(X, np.array(["c", "a", "b"])[y])
    grid = np.stack(np.meshgrid(np.linspace(-0.5, 0.5, 81), np.linspace(-0.5, 0.5, 81)), axis=-1).reshape(-1, 2)
    scores, predicted = machine.decision_function(grid), machine.predict(grid)
    tied = 0
    for row in range(len(grid)):
        votes = {"a": 0, "b": 0, "c": 0}
        for place, (i, j) in enumerate(combinations("abc", 2)):
            votes[j if scores[row, place] > 0 else i] += 1
        tied += max(votes.values()) == 1
        assert predicted[row] == next(name for name in "abc" if votes[name] == max(votes.values()))
    assert tied > 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (2, 10),
        (-1, 1),
        (0.5, 1.5),
        (False, True),
        ("Ja", "nein"),
        ("10", "2"),
        (dt.date(2019, 12, 31), dt.date(2020, 1, 1)),
    ],
)
@pytest.mark.parametrize("given", ["array", "column"])
def test_the_second_of_the_sorted_labels_is_positive_and_labels_come_back_in_kind(first, second, given):
    X, y = clouds(40, separation=6.0)
    labels = [(first, second)[k] for k in 1 - y]
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    machine = SVM()
    machine = machine.fit(table.assign(y=labels), "y") if given == "column" else machine.fit(table, labels)
    predicted = machine.predict(table)
    if isinstance(first, dt.date):
        labels = [str(label) for label in labels]
    assert predicted.tolist() == labels
    if not isinstance(labels[0], str):
        assert predicted.dtype == np.array(labels).dtype
    assert ((machine.decision_function(table) > 0) == (y == 0)).all()
    assert machine.score(table, labels) == 1.0


@pytest.mark.parametrize("kind", ["category", "string", "object"])
def test_classes_are_sorted_whatever_the_order_of_a_pandas_type(kind):
    X, y = clouds(40, separation=6.0)
    labels = pd.Series(np.array(["z", "a"])[y])
    labels = pd.Series(pd.Categorical(labels, categories=["z", "a"])) if kind == "category" else labels.astype(kind)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    for machine in (SVM().fit(table, labels), SVM().fit(table.assign(y=labels), "y")):
        assert machine.classes_ == ("a", "z")
        assert machine.predict(table).tolist() == labels.tolist()


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
def test_times_without_hours_are_the_same_labels_in_an_array_as_in_a_column(unit):
    X, y = clouds(40, separation=6.0)
    days = pd.to_datetime(["2020-01-01", "2021-06-30"]).as_unit(unit)[y]
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    column = SVM().fit(table.assign(y=days), "y")
    assert column.classes_ == ("2020-01-01", "2021-06-30")
    assert SVM().fit(table, days.to_numpy()).classes_ == column.classes_


@pytest.mark.parametrize("values", [[True, False], [1, 0], [0.5, 1.5]])
def test_an_array_of_objects_holds_what_its_objects_are(values):
    X, y = clouds(40, separation=6.0)
    labels = np.array(values, dtype=object)[y]
    assert SVM().fit(X, labels).predict(X).tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("values", "weight"), [((False, True), {True: 3.0}), ((0.0, 1.0), {1.0: 3.0}), ((0, 1), {1: 3})]
)
def test_weights_are_for_the_classes_themselves(values, weight):
    X, y = clouds(40)
    plain = SVM(class_weight={"b": 3.0}).fit(X, np.array(["a", "b"])[y])
    ours = SVM(class_weight=weight).fit(X, np.array(values)[y])
    assert_decide_alike(ours, plain, X)
    unweighted = SVM().fit(X, np.array(values)[y]).decision_function(X)
    assert np.abs(ours.decision_function(X) - unweighted).max() > 0.01


def test_every_pair_of_classes_is_counted():
    X, y = clouds(60, classes=4)
    seen = []
    train_svm(
        pd.DataFrame(X, columns=["a", "b"]).assign(y=y), "y", progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(done, 6) for done in range(1, 7)]


def warned(y, n=200, **options):
    X, _ = clouds(n)
    return " | ".join(train_svm(frame_of(X, y), "y", test_fraction=0.3, **options).warnings)


def test_machines_that_say_little_are_told():
    rng = np.random.default_rng(2)
    coins = rng.integers(0, 2, 200)
    assert "training rows are support vectors: the kernel may be too narrow" in warned(coins, bandwidth=0.01)
    assert "training rows are support vectors: the cost may be too small" in warned(coins, C=0.001)
    assert "support vectors" not in warned((clouds(200)[0][:, 0] > 0).astype(int))
    rare = (np.arange(200) % 8 == 0).astype(int)
    assert "--class-weight balanced" in warned(rare, C=0.1)
    told = warned(rare, bandwidth=0.2, C=100.0)
    assert "'0' for every row would be right as often, or nearly so; --class-weight balanced" in told


def test_probabilities_of_a_precomputed_matrix_are_those_of_its_kernel():
    X, y = clouds(80, classes=3)
    given = SVM(kernel="precomputed", probability=True, tolerance=1e-9).fit(gaussian(X, X, 1.0), y)
    named = SVM(kernel="gaussian(1)", scale="none", probability=True, tolerance=1e-9).fit(X, y)
    np.testing.assert_allclose(given.predict_proba(gaussian(X, X, 1.0)), named.predict_proba(X), rtol=0, atol=1e-5)


def test_a_model_file_that_is_there_is_noticed_before_anything_is_fitted(tmp_path):
    (tmp_path / "m").write_text("mine")
    X, y = clouds(40, classes=3)
    seen = []
    raises(
        DataError,
        "data.exists",
        lambda: train_svm(frame_of(X, y), "y", output=tmp_path / "m", progress=lambda *done: seen.append(done)),
    )
    assert not seen
