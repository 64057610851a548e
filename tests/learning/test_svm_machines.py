"""Machines beside those of scikit-learn, their claims recomputed from the dense matrix; baselines, probabilities, features."""

import datetime as dt
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from learning.svm_cases import bundled, clouds, coefficients_of, cubic, frame_of, gaussian, laplacian, student_t
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

from kerntest import SVM, inspect_model, train_svm
from kerntest.errors import UsageError
from kerntest.learning.machines.svm_search import told_of_baseline
from kerntest.report.summaries.learner_summary import svm_summary

# LIBSVM keeps kernel values in single precision: its decisions are good to some 1e-6.
DECISIONS = 1e-4
KERNELS = {
    "gaussian(3)": lambda X, Z: gaussian(X, Z, 3.0),
    "laplacian(20)": lambda X, Z: laplacian(X, Z, 20.0),
    "student-t(0.8)": lambda X, Z: student_t(X, Z, 0.8),
    "polynomial(3, 0.1, 1)": cubic,
    "linear": lambda X, Z: X @ Z.T,
}
GAUSSIAN = {"kernel": "gaussian(1.5)", "scale": "none"}


def close(ours, theirs, share=DECISIONS):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=share * np.abs(theirs).max())


def signs_of(y):
    return np.where(y == 1, 1.0, -1.0)


def never_lower(K, ours, peer, linear, epsilon=0.0):
    """Fail unless the dual objective of coefficients is at least that of a peer's; return it."""
    theirs = np.zeros(len(K))
    theirs[peer.support_] = peer.dual_coef_[0]
    mine, other = (linear @ beta - epsilon * np.abs(beta).sum() - 0.5 * beta @ K @ beta for beta in (ours, theirs))
    assert mine >= other - 1e-9 * max(abs(mine), abs(other))
    return mine


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("name", "C"), [("cancer", 0.1), ("iris", 10.0)])
def test_two_classes_are_those_of_svc(name, C, kernel):
    X, y = bundled(name)
    y = (y == 1).astype(int)
    K = KERNELS[kernel](X, X)
    peer = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K, y)
    ours = SVM(C=C, kernel=kernel, scale="none", tolerance=1e-9).fit(X, y)
    theirs = peer.decision_function(K)
    close(ours.decision_function(X), theirs)
    clear = np.abs(theirs) > DECISIONS * np.abs(theirs).max()
    assert (ours.predict(X) == peer.predict(K))[clear].all()
    beta = coefficients_of(ours, len(y))[:, 0]
    np.testing.assert_allclose(ours.fit_.dual_objective, never_lower(K, beta, peer, signs_of(y)), rtol=1e-9)


@pytest.mark.parametrize(("name", "nu", "bandwidth"), [("cancer", 0.05, 5.0), ("cancer", 0.5, 5.0), ("iris", 0.2, 2.0)])
def test_nu_machines_are_those_of_nusvc(name, nu, bandwidth):
    X, y = bundled(name)
    peer = NuSVC(nu=nu, gamma=0.5 / bandwidth**2, tol=1e-10, decision_function_shape="ovo").fit(X, y)
    ours = SVM(nu=nu, bandwidth=bandwidth, scale="none", tolerance=1e-9).fit(X, y)
    sign = 1.0 if name == "cancer" else -1.0
    close(ours.pair_scores(X), sign * peer.decision_function(X))
    if name == "cancer":
        # The cost at which the two problems have the same solution.
        np.testing.assert_allclose(ours.fit_.C, np.abs(peer.dual_coef_).max(), rtol=1e-4)
        margins = signs_of(y) * ours.decision_function(X)
        assert (margins < 1 - 1e-4).mean() <= nu <= len(ours.fit_.support) / len(y)


@pytest.mark.parametrize("kernel", ["gaussian(3)", "laplacian(20)", "polynomial(3, 0.1, 1)"])
@pytest.mark.parametrize(("C", "epsilon"), [(1.0, 0.1), (50.0, 20.0), (300.0, 0.0)])
def test_regressions_are_those_of_svr_and_certified(C, epsilon, kernel):
    X, y = bundled("diabetes")
    X, y = X[::2], y[::2]
    K, options = KERNELS[kernel](X, X), {"C": C, "epsilon": epsilon, "kernel": kernel, "tolerance": 1e-9}
    peer = SVR(C=C, epsilon=epsilon, kernel="precomputed", tol=1e-6).fit(K, y)
    ours = SVM(**options, scale="none", task="regress").fit(X, y)
    close(ours.predict(X), peer.predict(K))
    beta = coefficients_of(ours, len(y))[:, 0]
    dual = never_lower(K, beta, peer, y, epsilon)
    assert np.abs(beta).max() <= C * (1 + 1e-12)
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    result = train_svm(frame_of(X, y), "y", **options, scale="none", task="regress")
    primal = 0.5 * beta @ K @ beta + C * np.maximum(np.abs(y - K @ beta - result.intercept) - epsilon, 0).sum()
    np.testing.assert_allclose(result.objective, primal, rtol=1e-7)
    # The solver moves the target's mean to 0, which the sum of the coefficients cancels.
    np.testing.assert_allclose(result.dual_objective, dual, rtol=1e-7)
    np.testing.assert_allclose(result.duality_gap, (primal - dual) / primal, rtol=0, atol=1e-7)
    assert result.n_support == int((beta != 0).sum())
    assert result.n_bounded == int((np.abs(beta) >= C * (1 - 1e-9)).sum())
    np.testing.assert_allclose(result.rmse, np.sqrt(np.mean((ours.predict(X) - y) ** 2)), rtol=1e-9)


@pytest.mark.parametrize("nu", [None, 0.02, 0.5, 0.95])
def test_one_class_machines_are_those_of_oneclasssvm_and_leave_out_the_share_nu(nu):
    X, _ = bundled("wine")
    n, share = len(X), nu or 0.1
    peer = OneClassSVM(nu=share, gamma=0.05, tol=1e-9).fit(X)
    ours = SVM(task="one-class", nu=nu, bandwidth=10**0.5, scale="none", tolerance=1e-9).fit(X)
    theirs, mine = peer.decision_function(X), ours.decision_function(X)
    # Differences of sums of nu n kernel values: that is their scale.
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5 * share * n)
    beta = coefficients_of(ours, n)[:, 0]
    np.testing.assert_allclose(beta.sum(), share * n, rtol=1e-12)
    never_lower(gaussian(X, X, 10**0.5), beta, peer, np.zeros(n))
    options = {"task": "one-class", "nu": nu, "kernel": "gaussian(3.1622776601683795)", "scale": "none"}
    loose, result = (train_svm(X, tolerance=gap, **options) for gap in (1e-6, 1e-9))
    outlying = mine < -1e-6 * abs(result.intercept)
    assert loose.outliers == result.outliers == outlying.mean() <= result.nu == share
    np.testing.assert_allclose(mine, gaussian(X, X, 10**0.5) @ beta + result.intercept, rtol=0, atol=1e-9 * n)
    # Rows in front of the plane have no coefficient, rows behind it have all of it: nu lies between the two shares.
    tolerance = 1e-6 * np.abs(mine).max()
    assert (mine < -tolerance).mean() <= share <= (mine < tolerance).mean()
    assert result.n_bounded / n <= share <= result.n_support / n
    assert (ours.predict(X) == np.where(outlying, -1, 1)).all()


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("weights", [None, "balanced", "0:2,2:0.5"])
def test_the_certificate_of_several_classes_is_the_sum_over_their_pairs(C, weights):
    X, y = clouds(90, separation=1.2, classes=3)
    X, y = X[:80], np.where(np.arange(80) % 7 == 0, 0, y[:80])
    result = train_svm(frame_of(X, y), "y", C=C, class_weight=weights, **GAUSSIAN)
    machine = SVM(C=C, class_weight=weights, **GAUSSIAN).fit(X, y)
    factors = {None: np.ones(3), "balanced": 80 / (3 * np.bincount(y))}.get(weights, np.array([2.0, 1.0, 0.5]))
    K, coefficients = gaussian(X, X, 1.5), coefficients_of(machine, 80)
    primal, dual, gaps, bounded = 0.0, 0.0, [], np.zeros(80, dtype=bool)
    for place, (i, j) in enumerate(combinations(range(3), 2)):
        rows = np.flatnonzero((y == i) | (y == j))
        signs, costs = np.where(y[rows] == j, 1.0, -1.0), C * factors[y[rows]]
        beta = coefficients[rows, place]
        assert (np.delete(coefficients[:, place], rows) == 0).all()
        assert (signs * beta >= 0).all()
        assert (signs * beta <= costs * (1 + 1e-12)).all()
        np.testing.assert_allclose(beta.sum(), 0, rtol=0, atol=1e-11 * np.abs(beta).sum())
        bounded[rows] |= signs * beta >= costs * (1 - 1e-9)
        f = K[np.ix_(rows, rows)] @ beta
        made = 0.5 * beta @ f + costs @ np.maximum(1 - signs * (f + result.intercept[place]), 0.0)
        bound = signs @ beta - 0.5 * beta @ f
        primal, dual, gaps = primal + made, dual + bound, [*gaps, (made - bound) / made]
    np.testing.assert_allclose((result.objective, result.dual_objective), (primal, dual), rtol=1e-10)
    np.testing.assert_allclose(result.duality_gap, max(gaps), rtol=0, atol=1e-10)
    assert result.converged
    assert result.duality_gap <= 1e-6
    assert (result.n_support, result.n_bounded) == ((coefficients != 0).any(axis=1).sum(), bounded.sum())
    np.testing.assert_allclose(result.lambda_, 1 / (2 * 80 * C), rtol=1e-15)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 50.0])
def test_a_hard_margin_is_as_wide_as_geometry_says(scale):
    # The nearest two of these are (0, 0) and (3, 4) on either side: half of their distance of 5.
    X = scale * np.array([[0.0, 0.0], [-1.0, -2.0], [-3.0, 0.0], [3.0, 4.0], [6.0, 8.0], [3.0, 9.0]])
    machine = SVM(kernel="linear", scale="none", hard_margin=True).fit(X, [0, 0, 0, 1, 1, 1])
    w = X[machine.fit_.support].T @ machine.model.expansion.coefficients[:, 0]
    np.testing.assert_allclose(w, np.array([0.6, 0.8]) / (2.5 * scale), rtol=1e-6)
    np.testing.assert_allclose(machine.decision_function(X[[0, 3]]), [-1, 1], rtol=1e-6)
    assert machine.fit_.support.tolist() == [0, 3]
    assert (machine.fit_.n_bounded, machine.fit_.C) == (0, None)


def test_ties_of_votes_go_to_the_first_class():
    y = np.arange(60) % 3
    angle = 2 * np.pi * y / 3
    X = 0.5 * np.random.default_rng(1).normal(size=(60, 2)) + 1.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    machine = SVM(C=1.0, kernel="linear", scale="none").fit(X, np.array(["c", "a", "b"])[y])
    grid = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 81)] * 2), axis=-1).reshape(-1, 2)
    tied = 0
    for scores, predicted in zip(machine.pair_scores(grid), machine.predict(grid), strict=True):
        votes = dict.fromkeys("abc", 0)
        for score, (i, j) in zip(scores, combinations("abc", 2), strict=True):
            votes[j if score > 0 else i] += 1
        tied += max(votes.values()) == 1
        assert predicted == next(name for name in "abc" if votes[name] == max(votes.values()))
    assert tied > 0


DAYS = pd.to_datetime(["2020-01-01", "2021-06-30"])
# The two classes in their order, as what they may be given.
CLASSES = [
    *((2, 10), (-1, 1), (0.5, 1.5), (False, True), ("Ja", "nein"), ("10", "2")),
    (dt.date(2019, 12, 31), dt.date(2020, 1, 1)),
    pd.Series(["a", "z"]).astype(pd.CategoricalDtype(["z", "a"])),
    pd.Series(["a", "z"], dtype="string"),
    *(DAYS.as_unit(unit) for unit in ("ns", "s")),
]


@pytest.mark.parametrize("values", CLASSES, ids=str)
@pytest.mark.parametrize("given", ["as they are", "array", "column"])
def test_the_second_of_the_sorted_labels_is_positive_and_labels_come_back_in_kind(values, given):
    X, codes = clouds(40, separation=6.0)
    # The second class comes first.
    codes = 1 - codes
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    labels = [values[k] for k in codes] if isinstance(values, tuple) else values.take(codes)
    array = np.array(labels, dtype=object) if isinstance(values, tuple) else labels.to_numpy()
    beside = {"as they are": labels, "array": array, "column": "y"}[given]
    machine = SVM().fit(table.assign(y=np.asarray(labels)) if given == "column" else table, beside)
    plain = not isinstance(values, tuple) or isinstance(values[0], dt.date)
    names = [str(one).removesuffix(" 00:00:00") for one in values] if plain else list(values)
    assert machine.classes_.tolist() == names
    predicted = machine.predict(table)
    assert predicted.tolist() == [names[k] for k in codes]
    assert isinstance(names[0], str) or predicted.dtype == np.array(labels).dtype
    assert ((machine.decision_function(table) > 0) == (codes == 1)).all()
    assert machine.score(table, predicted.tolist()) == 1.0


def test_machines_that_say_little_are_told():
    def told(y, **options):
        return " | ".join(train_svm(frame_of(clouds(200)[0], y), "y", test_fraction=0.3, **options).warnings)

    coins, rare = np.random.default_rng(2).integers(0, 2, 200), (np.arange(200) % 8 == 0).astype(int)
    assert "training rows are support vectors: the kernel may be too narrow" in told(coins, bandwidth=0.01)
    assert "training rows are support vectors: the cost may be too small" in told(coins, C=0.001)
    assert "support vectors" not in told((clouds(200)[0][:, 0] > 0).astype(int))
    assert "every row is predicted as '0'; class_weight='balanced'" in told(rare, C=0.1)
    nearly = told(rare, bandwidth=0.2, C=100.0)
    assert "'0' for every row would be right as often, or nearly so; class_weight='balanced'" in nearly
    # Of classes of one size too, where it is right no more often.
    assert any(
        "for every row would be right as often, or nearly so" in told(coins, C=1.0, seed=seed) for seed in range(6)
    )
    # Classes that are to count alike have chance to be compared with.
    assert "told apart no better than by chance (balanced" in told(rare, class_weight="balanced")
    assert "by chance" not in told((clouds(200)[0][:, 0] > 1).astype(int), class_weight="balanced")


def test_a_cost_and_an_epsilon_out_of_proportion_to_the_target_are_told_in_place_of_the_columns():
    X, _ = bundled("iris")
    table = frame_of(X[:, :3], X[:, 3])

    def told(units, **options):
        scaled = table.assign(y=units * table["y"])
        result = train_svm(scaled, "y", task="regress", test_fraction=0.3, **options)
        return result.r2, " | ".join(result.warnings)

    r2, small = told(1e4)
    assert r2 < 0.05
    assert "C = 1 is small beside the spread of 'y' (standard deviation 1.0" in small
    assert "support vectors are at their bound; grid=True chooses it, or try C=10000" in small
    assert "its mean" not in small
    r2, large = told(1e-4)
    assert r2 < 0.05
    assert "predicted as the same number: epsilon = 0.1 is large beside the spread of 'y'" in large
    assert "try epsilon=1e-05" in large
    assert "its mean" not in large
    for units, options in ((1.0, {}), (1e4, {"C": 1e4}), (1e4, {"grid": True}), (1e-4, {"C": 1e-4, "epsilon": 1e-5})):
        r2, fine = told(units, **options)
        assert r2 > 0.85
        assert "the spread of" not in fine
    # Where both are in proportion, the columns are to blame.
    noise = table.assign(y=np.random.default_rng(0).normal(size=len(table)))
    assert "its mean" in " | ".join(train_svm(noise, "y", task="regress", test_fraction=0.3).warnings)
    with pytest.warns(UserWarning, match="C = 1 is small beside the spread"):
        SVM(task="regress").fit(X[:, :3], 1e5 * X[:, 3])


def test_a_cost_below_the_spread_is_told_where_not_even_its_own_rows_are_learned():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(150, 3)), rng.normal(size=150)

    def told(y, **options):
        return " | ".join(train_svm(frame_of(X, y), "y", task="regress", test_fraction=0.3, **options).warnings)

    signal = 5.0 * (np.sin(4.0 * X[:, 0]) + 0.1 * noise)
    for options in ({}, {"cv": 5}):
        held = told(signal, **options)
        assert "holds the machine back: " in held
        assert "predicted hardly better than by their mean (r2 = 0.0" in held
        assert "its mean" not in held
    # Noise looks alike, and that is said.
    assert "grid=True looks for better, or the columns say little of 'y'" in told(5.0 * noise)
    for y, options in ((5.0 * X[:, 0], {}), (signal, {"C": 10.0}), (signal, {"grid": True}), (0.5 * noise, {})):
        assert "holds the machine back" not in told(y, **options)


def test_rows_of_one_class_are_no_reason_for_weights():
    X, y = clouds(200, separation=8.0)
    frame = frame_of(X, y)
    found = train_svm(frame, "y", test=frame[frame["y"] == 0])
    told = " | ".join(found.warnings)
    assert "no test row has class '1': they do not show how it is predicted" in told
    assert "class_weight" not in told
    assert (found.baseline.method, found.baseline.accuracy, found.baseline.balanced_accuracy) in {
        ("nearest mean", 1.0, 1.0),
        ("largest class", 1.0, 1.0),
    }
    assert "no test row" not in " | ".join(train_svm(frame, "y", test_fraction=0.3).warnings)


@pytest.mark.parametrize("kernel", ["gaussian(1.5)", "linear"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_nearest_mean_scores_its_own_rows_as_it_scores_others(classes, kernel):
    X, y = clouds(120, classes=classes)
    frame = frame_of(X, y)
    # With copies, which are one row of the matrix.
    frame = pd.concat([frame, frame[:30]])
    own, others = (train_svm(frame, "y", kernel=kernel, test=test).baseline for test in (None, frame))
    assert own.method == others.method == "nearest mean"
    assert own.score == pytest.approx(others.score, abs=1e-12)
    assert own.balanced_accuracy == pytest.approx(others.balanced_accuracy, abs=1e-12)


def test_the_baseline_is_the_better_of_two():
    X, _ = clouds(200)
    rare = (np.arange(200) % 8 == 0).astype(int)
    # Columns that say nothing: the nearest mean errs on half of the rows.
    found = train_svm(frame_of(X, rare), "y", test_fraction=0.3)
    share = sum(found.confusion[0]) / found.n_test
    assert (found.baseline.method, found.baseline.balanced_accuracy) == ("largest class", 0.5)
    assert found.baseline.accuracy == pytest.approx(share)
    assert f"largest class: {100 * share:.3g} %, balanced 50 %" in found.summary()
    X, y = clouds(200, separation=6.0)
    assert train_svm(frame_of(X, y), "y").baseline.method == "nearest mean"
    # It is told of where it is better by the score that is asked for.
    told = "the nearest mean with the same kernel predicts better: "
    fewer = np.flatnonzero((y == 1) | (np.arange(200) < 60))
    small = train_svm(frame_of(X[fewer], y[fewer]), "y", C=1e-6, cv=5, select_by="balanced-accuracy")
    (text,) = [one for one in small.warnings if one.startswith(told)]
    score = f"balanced accuracy {100 * small.baseline.score:.3g} % in place of 50 %"
    assert text == f"{told}{score}; grid=True looks for better options"
    # Where mistakes do not count alike accuracy says nothing, and the nearest mean takes no weights.
    weighted = {"C": 1e-6, "cv": 5, "class_weight": {0: 1.0, 1: 1.1}}
    (text,) = [
        one
        for one in train_svm(frame_of(X[fewer], y[fewer]), "y", select_by="balanced-accuracy", **weighted).warnings
        if one.startswith(told)
    ]
    assert text.endswith("; grid=True looks for better options")
    small = train_svm(frame_of(X[fewer], y[fewer]), "y", **weighted)
    assert (small.baseline.method, [one for one in small.warnings if one.startswith(told)]) == ("nearest mean", [])
    worse = SimpleNamespace(balanced_accuracy=0.5)
    (text,) = told_of_baseline(small.baseline, None, worse, "balanced-accuracy", n=200, grid=True, weighted=True)
    assert text.endswith("; method='mean' without class_weight= takes it")
    assert not [one for one in train_svm(frame_of(X, y), "y", C=10.0).warnings if one.startswith(told)]
    for options in ({"features": "fourier:50"}, {"method": "mean"}):
        assert train_svm(frame_of(X, y), "y", **options).baseline.method == "largest class"


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_nearest_mean_is_the_class_at_the_least_distance_in_the_feature_space(classes, kernel):
    (X, y), (new, _), k = clouds(70, classes=classes), clouds(50, classes=classes, seed=1), KERNELS[kernel]
    machine = SVM(method="mean", kernel=kernel, scale="none").fit(X, y)
    of_class = [X[y == c] for c in range(classes)]
    squared = np.column_stack([k(rows, rows).mean() - 2 * k(new, rows).mean(axis=1) for rows in of_class])
    np.testing.assert_array_equal(machine.predict(new), squared.argmin(axis=1))
    scores, halves = machine.decision_function(new), (squared - squared[:, :1]) / -2
    close(scores if classes == 2 else scores - scores[:, :1], halves[:, 1] if classes == 2 else halves, 1e-11)


@pytest.mark.parametrize("method", ["svm", "mean", "perceptron"])
def test_exclusive_or_takes_a_product_of_columns(method):
    """The four corners of a square in two diagonal classes: no line has more than three on their sides."""
    corners = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]).repeat(5, axis=0)
    rows, classes = corners + 0.01 * np.random.default_rng(0).normal(size=corners.shape), corners.prod(axis=1) > 0
    scores = {
        kernel: SVM(10.0, kernel, method=method).fit(rows, classes).score(rows, classes)
        for kernel in ("linear", "linear^2")
    }
    assert scores["linear^2"] == 1.0
    assert scores["linear"] <= 0.75


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_perceptron_by_hand(classes):
    X, y = clouds(8 * classes, separation=2.0, classes=classes)
    machine = SVM(method="perceptron", kernel="gaussian(0.7)", scale="none", seed=9).fit(X, y)
    K, W, b = gaussian(X, X, 0.7), np.zeros((classes, len(X))), np.zeros(classes)
    sums, rng, total, made, visited = np.zeros((classes, len(X) + 1)), np.random.default_rng((9, 1)), 0, 1, 0
    while made:
        made = 0
        for row in rng.permutation(len(X)):
            scores = W @ K[row] + b
            wrong = max((c for c in range(classes) if c != y[row]), key=lambda c: scores[c])
            if scores[y[row]] <= scores[wrong]:
                W[[y[row], wrong], row] += [1, -1]
                b[[y[row], wrong]] += [1, -1]
                made += 1
            sums += np.column_stack([W, b])
            visited += 1
        total += made
    expected = np.column_stack([W, b])[1:] if classes == 2 else sums / visited
    np.testing.assert_allclose(
        coefficients_of(machine, len(X)).T, expected[:, :-1], rtol=0, atol=1e-9 * np.abs(expected).max()
    )
    np.testing.assert_allclose(
        machine.model.expansion.intercepts, expected[:, -1], rtol=0, atol=1e-9 * np.abs(expected).max()
    )
    assert (machine.fit_.iterations, machine.fit_.converged) == (total, True)
    told = svm_summary(train_svm(frame_of(X, y), "y", method="perceptron"))
    assert ("structured and averaged" in str(told)) == (classes > 2)
    assert machine.decision_function(X).shape == ((len(X),) if classes == 2 else (len(X), classes))


@pytest.mark.parametrize("options", [{"C": 0.3}, {"nu": 0.4}, {"method": "perceptron"}])
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


def test_weights_of_classes_leave_probabilities_those_of_rows_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = rng.random(1500) < 1.0 / (1.0 + np.exp(3.0 - 1.5 * X[:, 0]))
    weighted = SVM(probability=True, class_weight="balanced").fit(X[:900], y[:900])
    found = weighted.predict_proba(X[900:])[:, 1]
    # Of rare rows the weights make many predictions; 0.3 and more where they inflated the probabilities, too.
    error = np.sqrt(y.mean() * (1.0 - y.mean()) / 600)
    assert abs(found.mean() - y[900:].mean()) < 3.0 * error
    assert weighted.predict(X[900:]).mean() > 2.0 * y.mean()


def test_probabilities_are_of_machines_with_the_same_cost():
    X, y = clouds(120, separation=1.0)
    options = {"scale": "none", "probability": True, "tolerance": 1e-9}
    # A kernel eight times as large costs an eighth.
    one, other = (SVM(C=C, kernel=k, **options).fit(X, y) for C, k in ((8.0, "gaussian(1)"), (1.0, "8*gaussian(1)")))
    close(one.predict_proba(X), other.predict_proba(X), 1e-5)


@pytest.mark.parametrize(
    "options",
    [{"kernel": "laplacian(3)"}, {"kernel": "student-t"}, {"task": "regress"}, {"task": "one-class"}, {"colour": True}],
)
def test_nystroem_features_of_all_rows_are_the_kernel(options):
    X, y = clouds(70)
    table = pd.DataFrame(X, columns=["a", "b"])
    if options.get("colour"):
        table, options = table.assign(colour=np.array(["red", "blue", "green"])[np.arange(70) % 3]), {}
    exact = SVM(tolerance=1e-9, **options).fit(table, y)
    explicit = SVM(tolerance=1e-9, features="nystroem:70", **options).fit(table, y)
    close(explicit.pair_scores(table), exact.pair_scores(table), 1e-5)
    target = None if options.get("task") == "one-class" else "y"
    trained = table.assign(y=y) if target else table
    assert train_svm(trained, target, features="nystroem:70", **options).feature_error < 1e-8


def test_probabilities_of_noise_do_not_turn_the_scores_around():
    """Scores of held-out rows go the wrong way by chance, and those of rows that are learned from never do."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 5)), rng.choice(["x", "y", "z"], 90)
    found = train_svm(frame_of(X, y), "y", probability=True)
    assert found.roc_auc > 0.5
    # That of the shares of the classes is 1.098, and known on rows that are learned from.
    assert found.train.log_loss < 1.1


@pytest.mark.parametrize(
    ("measure", "told"),
    [
        ("accuracy", "% of rows held out in 5 folds are classified correctly (nearest mean: "),
        ("balanced-accuracy", "The balanced accuracy of rows held out in 5 folds is "),
        ("f1", "The macro F1 of rows held out in 5 folds is "),
        ("auc", "The ROC AUC of rows held out in 5 folds is "),
        ("log-loss", "The log-loss of rows held out in 5 folds is "),
    ],
)
def test_the_baseline_is_judged_on_the_same_rows_and_by_the_same_score(measure, told):
    """What nearest means get in the same folds; and the share of the largest class, whose log-loss is the entropy about."""
    X, y = clouds(120)
    data, asked = frame_of(X, y), {"cv": 5, "select_by": measure}
    found = train_svm(data, "y", **asked)
    if measure == "log-loss":
        shares = np.bincount(y.astype(int)) / len(y)
        assert found.baseline.score == pytest.approx(-(shares * np.log(shares)).sum(), abs=0.01)
    else:
        mean = train_svm(data, "y", method="mean", **asked).grid.mean
        assert found.baseline.score == pytest.approx(mean, abs=1e-12)
    assert f" ({found.baseline.method}: " in found.summary()
    assert told in " ".join(found.summary().split())
    # With the kernel that was chosen.
    best = train_svm(data, "y", grid=True, test_fraction=0.3)
    mean = train_svm(data, "y", method="mean", kernel=best.kernel, test_fraction=0.3)
    assert best.baseline.accuracy == pytest.approx(mean.accuracy, abs=1e-12)
    on_test_rows = " ".join(train_svm(data, "y", test_fraction=0.3, **asked).summary().split())
    name = told.partition(" of rows")[0]
    # Without probabilities test rows have no log-loss.
    assert (
        f"{name} of 36 test rows" if measure != "log-loss" else "are classified correctly (nearest mean"
    ) in on_test_rows


@pytest.mark.parametrize("classes", [2, 5])
def test_equal_rows_are_one_centre_of_a_model_with_the_same_decisions(classes, tmp_path):
    """Of a table of categories like that of a ship's passengers, and of numbers with copies among them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"class": rng.choice(list("123"), 400), "sex": rng.choice(["man", "woman"], 400)})
    y = (rng.integers(0, classes, 400) + (frame.sex == "man")) % classes
    machine = SVM().fit(frame, y)
    # Of several classes a row keeps a coefficient for each class that it is told from, and so do those of each class.
    assert machine.fit_.n_support == len(machine.model.expansion.centres) <= 6 * (1 if classes == 2 else classes)
    mismatches = (frame.to_numpy()[:, None] != frame.to_numpy()).sum(axis=2)
    K = np.exp(-mismatches / machine.model.kernel.bandwidth)
    peer = SVC(C=1.0, kernel="precomputed", tol=1e-9, decision_function_shape="ovo").fit(K, y)
    sign = 1.0 if classes == 2 else -1.0
    close(machine.pair_scores(frame).reshape(400, -1), sign * peer.decision_function(K).reshape(400, -1), share=1e-3)
    train_svm(frame.assign(y=y), "y", output=tmp_path / "m.kt")
    assert inspect_model(tmp_path / "m.kt").n_support == machine.fit_.n_support


def test_equal_rows_in_a_crowd_of_others_are_found_and_no_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    X = np.vstack([X, X[:30], X[:10]])
    y = np.arange(130) % 2
    machine = SVM(C=1e-3, kernel="gaussian(0.1)", scale="none").fit(X, y)
    assert (len(machine.fit_.support), machine.fit_.n_support) == (130, 90)
    assert (
        "90 of 90 different ones of 130 training rows are support vectors: the kernel may be too narrow"
        in machine.fit_.warnings[0]
    )
    # Every row is at its bound, and those of different classes cancel.
    beta = np.zeros(130)
    beta[machine.fit_.support] = 1e-3 * signs_of(y)
    expected = gaussian(X, X, 0.1) @ beta + machine.model.expansion.intercepts
    np.testing.assert_allclose(machine.decision_function(X), expected, rtol=0, atol=1e-12)


def test_every_line_about_rows_that_are_known_says_so():
    data = frame_of(*clouds(60))
    for asked, known in (({"cv": 3}, " of 60 training rows"), ({"test_fraction": 0.3}, "")):
        found = train_svm(data, "y", probability=True, **asked)
        judged = found.test or found.train
        lines = [line.split(maxsplit=1) for line in found.summary().splitlines()]
        told = dict(line for line in lines if len(line) == 2)
        assert told["ROC"] == f"AUC      {judged.roc_auc:.4g}{known}"
        assert told["probability"] == f"log loss {judged.log_loss:.4g}, Brier score {judged.brier:.4g}{known}"


@pytest.mark.parametrize("task", ["classify", "several", "regress", "one-class"])
def test_a_row_of_weight_2_counts_like_two_and_of_weight_0_is_not_there(task):
    X, y = clouds(150, 3, classes=3 if task == "several" else 2, separation=1.0)
    weights = np.random.default_rng(0).integers(0, 4, 150)
    target = {"regress": X[:, 0] ** 2, "one-class": None}.get(task, y)
    given = {"nu": 0.3} if task == "one-class" else {"C": 1.5, "class_weight": {1: 2.0} if task == "classify" else None}
    options = GAUSSIAN | given | {"task": "classify" if task == "several" else task, "tolerance": 1e-10}
    weighted = SVM(**options).fit(X, target, sample_weight=weights)
    repeated = SVM(**options).fit(np.repeat(X, weights, axis=0), None if target is None else np.repeat(target, weights))
    plain = SVM(**options).fit(X, target)
    found, expected, other = (one.pair_scores(X) for one in (weighted, repeated, plain))
    close(found, expected, 1e-7)
    assert np.abs(found - other).max() > 0.01


def test_weights_beside_those_of_scikit_learn():
    X, y = clouds(200, separation=1.0)
    weights = np.random.default_rng(1).uniform(0.1, 3.0, 200)
    machine = SVM(C=2.0, tolerance=1e-9, **GAUSSIAN).fit(X, y, sample_weight=weights)
    peer = SVC(C=2.0, gamma=1 / (2 * 1.5**2), tol=1e-7).fit(X, y, sample_weight=weights)
    close(machine.decision_function(X), peer.decision_function(X))
    K = gaussian(X, X, 1.5)
    matrix = SVM(C=2.0, tolerance=1e-9, kernel="precomputed").fit(K, y, sample_weight=weights)
    close(matrix.decision_function(K), machine.decision_function(X), 1e-7)
    for options in ({"nu": 0.1}, {"hard_margin": True}, {"method": "mean"}, {"method": "perceptron"}):
        with pytest.raises(UsageError, match="sample_weight and "):
            SVM(**options).fit(X, y, sample_weight=weights)
