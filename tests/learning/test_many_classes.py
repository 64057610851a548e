"""Many classes of few rows: their pairs are solved together, kept by row and class, and vote a block of rows at a time."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from learning.solver_problems import best_dual
from learning.svm_cases import clouds, coefficients_of, frame_of, gaussian
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC
from tolerances import SAME_MACHINE, assert_close

from kerntest import SVM, inspect_model, predict_file, train_svm
from kerntest.learning.machines import svm_fit
from kerntest.learning.solvers import stacked
from kerntest.learning.solvers.hinge import solve_hinge
from kerntest.learning.solvers.problem import Problem
from kerntest.learning.solvers.stacked import Stack, solve_stack, stacks
from kerntest.matrices.matrix import GivenMatrix
from kerntest.report.summaries.words import natural_order


def uneven(classes=12, seed=0, d=6):
    """Classes of 1, 2, 3 ... rows, in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(classes), np.arange(classes) + 1))
    return rng.normal(size=(classes, d))[y] + 0.7 * rng.normal(size=(len(y), d)), y


def stack_of(X, y, C, gamma=0.3):
    """The problems of all pairs of classes as one stack."""
    K = gaussian(X, X, (0.5 / gamma) ** 0.5)
    members = [np.flatnonzero((y == i) | (y == j)) for i, j in combinations(np.unique(y), 2)]
    width = max(map(len, members))
    matrices = np.zeros((len(members), width, width)) + np.eye(width)
    signs, costs = np.ones((len(members), width)), np.zeros((len(members), width))
    for place, rows in enumerate(members):
        matrices[place, : len(rows), : len(rows)] = K[np.ix_(rows, rows)]
        signs[place, : len(rows)] = np.where(y[rows] == y[rows].max(), 1.0, -1.0)
        costs[place, : len(rows)] = C if np.isscalar(C) else C[rows]
    return Stack(matrices, signs, costs)


def check_certified(K, problem, solution):
    """What is told of a solution is so, and it is the best."""
    y, C, beta = problem.signs, problem.costs, solution.coefficients
    assert ((y * beta >= 0) & (y * beta <= C)).all()
    assert abs(beta.sum()) <= 2e-15 * np.abs(beta).sum()
    np.testing.assert_allclose(solution.outputs, K @ beta, rtol=0, atol=1e-12 * np.abs(beta).sum())
    dual = np.abs(beta).sum() - 0.5 * beta @ K @ beta
    primal = 0.5 * beta @ K @ beta + C @ np.maximum(1 - y * (K @ beta + solution.intercept), 0.0)
    told = solution.objective, solution.dual_objective, solution.gap
    np.testing.assert_allclose(told, (primal, dual, (primal - dual) / primal), rtol=1e-9, atol=1e-11)
    assert solution.converged
    assert 0 <= solution.gap <= 1e-6
    assert primal >= best_dual(K, problem) * (1 - 1e-7) >= dual * (1 - 2e-7)
    np.testing.assert_allclose(solution.intercept, problem.intercept(beta, solution.outputs), rtol=0, atol=1e-9)


@pytest.mark.parametrize("C", [0.01, 0.3, 10.0, 1e4, "by row"])
def test_a_stack_has_the_solution_of_each_of_its_problems(C):
    X, y = uneven(7)
    stack = stack_of(X, y, np.random.default_rng(1).uniform(0.1, 5.0, len(y)) if C == "by row" else C)
    found = solve_stack(stack, 1e-6)
    assert sorted(found) == list(range(21))
    for place, solution in found.items():
        m = np.count_nonzero(stack.costs[place])
        K, y_m, C_m = stack.matrices[place][:m, :m], stack.signs[place][:m], stack.costs[place][:m]
        check_certified(K, Problem(y_m, C_m, np.ones(m)), solution)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 1e4, "by row"])
def test_a_problem_of_some_hundred_rows_is_solved_in_few_systems(C):
    rng = np.random.default_rng(0)
    y = np.repeat([-1.0, 1.0], [60, 90])
    # One class is wider than the other.
    X = rng.normal(size=(150, 8)) * np.where(y > 0, 1.0, 0.4)[:, None] + 0.7 * y[:, None]
    costs = rng.uniform(0.3, 3.0, 150) if C == "by row" else np.full(150, C)
    K, problem = gaussian(X, X, 4.0), Problem(y, costs, np.ones(150))
    solution = solve_hinge(GivenMatrix(K), problem)
    check_certified(K, problem, solution)
    assert solution.iterations <= 25


@pytest.mark.parametrize("weights", [None, "balanced"])
def test_pairs_of_middling_classes_share_the_matrix_of_all_rows(weights, monkeypatch):
    """They are what each would be by itself, in any order of rows."""
    X, y = clouds(330, 5, classes=3, separation=2.0)
    kept = (y != 2) | (np.arange(330) < 120)
    X, y = X[kept], y[kept]
    kernel = "gaussian(2)"
    parts, alone = [], svm_fit.Machines._alone
    # Which matrix is theirs cannot be seen from outside.
    monkeypatch.setattr(svm_fit.Machines, "_alone", lambda *asked: parts.append(1) or alone(*asked))
    together = SVM(C=2.0, kernel=kernel, scale="none", class_weight=weights).fit(X, y)
    assert len(parts) == 3
    monkeypatch.setattr(svm_fit, "SHARED_BYTES", 0)
    apart = SVM(C=2.0, kernel=kernel, scale="none", class_weight=weights).fit(X, y)
    assert len(parts) == 3
    assert together.fit_.gap <= 1e-6
    assert together.fit_.n_bounded == apart.fit_.n_bounded
    assert_close(together.fit_.objective, apart.fit_.objective, share=1e-6)
    np.testing.assert_allclose(together.pair_scores(X), apart.pair_scores(X), rtol=0, atol=1e-3)
    assert (together.predict(X) == apart.predict(X)).all()


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 100.0])
def test_a_stack_is_settled_by_a_system_or_two(C):
    X, y = uneven(30, d=20)
    found = solve_stack(stack_of(X, y, C, gamma=1 / 40), 1e-6)
    assert len(found) == 435
    assert np.mean([one.iterations for one in found.values()]) < 1.2


def test_what_a_few_steps_of_pairs_do_not_settle_begins_again_with_more(monkeypatch):
    X, y = clouds(300, 2, classes=10, separation=0.5)
    stack = stack_of(X, y, 10.0, gamma=0.25)
    again = solve_stack(stack, 1e-6)
    monkeypatch.setattr(stacked, "STEPS", (1,))
    once = solve_stack(stack, 1e-6)
    assert len(once) < 40
    assert len(again) > 42
    assert np.mean([one.iterations for one in again.values()]) < 2.5


def test_problems_of_like_size_are_stacked_and_large_ones_are_alone():
    sizes = np.random.default_rng(0).integers(2, 120, 3000)
    pieces = stacks(sizes)
    assert sorted(place for piece in pieces for place in piece) == list(range(3000))
    for piece in pieces:
        own = sizes[piece]
        if own.max() > stacked.MOST_ROWS:
            assert len(piece) == 1
        assert own.min() >= 0.75 * own.max() - 4
        assert len(piece) == 1 or len(piece) * own.max() ** 2 <= stacked.ENTRIES
    assert len(pieces) < 60 + (sizes > stacked.MOST_ROWS).sum()


@pytest.mark.parametrize(("C", "weights", "even"), [(5.0, None, False), (5.0, "balanced", False), (0.02, None, True)])
def test_many_classes_are_those_of_svc(C, weights, even):
    X, y = clouds(80, 6, classes=8) if even else uneven()
    peer = SVC(C=C, gamma=0.3, tol=1e-9, decision_function_shape="ovo", class_weight=weights).fit(X, y)
    ours = SVM(C=C, kernel=f"gaussian({(0.5 / 0.3) ** 0.5!r})", scale="none", class_weight=weights, tolerance=1e-9)
    theirs, mine = -peer.decision_function(X), ours.fit(X, y).pair_scores(X)
    # Where all rows are at their bounds, the intercept is the middle of its interval.
    assert even == (np.abs(ours.model.expansion.coefficients) >= C).any(axis=1).all()
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-4)
    assert all(one.method == "stacked" for one in ours.fit_.solutions)


@pytest.mark.parametrize("options", [{}, {"features": "nystroem:40"}, {"kernel": "precomputed"}, {"threads": 3}])
@pytest.mark.parametrize("nu", [None, 0.05])
def test_scores_of_pairs_are_sums_over_the_rows_of_both_classes(options, nu, tmp_path):
    X, y = clouds(75, 3, classes=5, separation=1.0)
    new = X[::4] + 0.1
    K, across = gaussian(X, X, 1.2), gaussian(new, X, 1.2)
    given, seen = (K, across) if options.get("kernel") else (X, new)
    machine = SVM(**{"kernel": "gaussian(1.2)", "scale": "none", "nu": nu, **options}).fit(given, y)
    scores = machine.pair_scores(seen)
    if "features" in options:
        features, expansion = machine.model.features, machine.model.expansion
        Z = gaussian(new, features.landmarks.numeric, 1.2) @ features.projection
        np.testing.assert_allclose(scores, Z @ expansion.coefficients + expansion.intercepts, rtol=0, atol=1e-10)
    else:
        beta = coefficients_of(machine, 75)
        for place, (i, j) in enumerate(combinations(range(5), 2)):
            assert not beta[(y != i) & (y != j), place].any()
        expected = across @ beta + machine.model.expansion.intercepts
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-10)
    votes = np.zeros((len(new), 5), dtype=int)
    for row, line in enumerate(scores):
        for score, (i, j) in zip(line, combinations(range(5), 2), strict=True):
            votes[row, j if score > 0 else i] += 1
    assert (machine.predict(seen) == votes.argmax(axis=1)).all()
    machine.save(tmp_path / "m.kt")
    loaded = SVM.load(tmp_path / "m.kt")
    np.testing.assert_array_equal(loaded.predict(seen), machine.predict(seen))
    assert_close(loaded.pair_scores(seen), scores, share=SAME_MACHINE)


def test_votes_are_counted_for_every_class():
    X, y = clouds(60, 2, classes=6)
    model, scores = SVM().fit(X, y).model, np.random.default_rng(0).normal(size=(500, 15))
    votes = np.zeros((500, 6))
    for column, (i, j) in zip(scores.T, combinations(range(6), 2), strict=True):
        votes[:, j] += column > 0
        votes[:, i] += column <= 0
    np.testing.assert_array_equal(model.codes(scores), votes.argmax(axis=1))
    # Scores of classes are the votes, told apart by how clear they are.
    np.testing.assert_allclose(model.class_scores(scores), votes, rtol=0, atol=5 / 3)


def test_rows_in_blocks_are_predicted_alike(monkeypatch):
    X, y = uneven()
    machine = SVM(probability=False).fit(X, y)
    whole, scores, accuracy = machine.predict(X), machine.pair_scores(X), machine.score(X, y)
    monkeypatch.setattr("kerntest.matrices.expansion.EXPANSION_BLOCK", 20 * len(machine.fit_.support))
    np.testing.assert_array_equal(machine.predict(X), whole)
    assert_close(machine.pair_scores(X), scores, share=SAME_MACHINE)
    assert machine.score(X, y) == accuracy == np.mean(whole == y)


def test_reports_name_classes_as_people_count(tmp_path):
    X, y = clouds(120, 3, classes=14, separation=4.0)
    frame = pd.DataFrame(X).assign(y=[f"class {k}" for k in y])
    result = train_svm(frame, "y", output=tmp_path / "m")
    names = [f"class {k}" for k in range(14)]
    assert result.classes == tuple(sorted(names))
    told = result.summary()
    places = [told.index(f"\n  {name} ") for name in names[:12]]
    assert places == sorted(places)
    for text in (told, inspect_model(tmp_path / "m").summary()):
        assert "class 0, class 1, class 2" in " ".join(text.split())
    # A matrix has its rows and columns in that order too.
    few = train_svm(frame[frame.y.isin(names[5:12])].reset_index(drop=True), "y")
    lines = few.summary().split("Confusion matrix")[1].splitlines()[2:9]
    assert [line.split()[1 if "class" in line else 0] for line in lines] == [str(k) for k in range(5, 12)]
    for place, line in enumerate(lines):
        own = few.classes.index(names[5 + place])
        assert [int(one) for one in line.split()[-7:]][place] == few.confusion[own][own]
        assert sum(int(one) for one in line.split()[-7:]) == sum(few.confusion[own])
    for some in (["10", "9", "-1.5"], ["x10y2", "x9", "x10y1"], ["nan", "9", "10"], ["9" * 5000, "1"]):
        ordered = [some[place] for place in natural_order(some)]
        assert ordered == {"10": ["-1.5", "9", "10"], "x10y2": ["x9", "x10y1", "x10y2"]}.get(some[0], ordered)
    assert natural_order(["nan", "9", "10"]) == [1, 2, 0]


def test_the_area_of_several_classes_is_that_of_what_they_are_predicted_by(tmp_path):
    X, y = clouds(240, 2, classes=3, separation=1.0)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    result = train_svm(frame, "y", probability=True)
    machine = SVM(probability=True).fit(X, y)
    found = machine.predict_proba(X)
    kept = train_svm(frame, "y", probability=True, output=tmp_path / "y.kt")
    assert "y.kt; predict writes probabilities with proba=True" in " ".join(str(kept).split())
    numbers = train_svm(frame.assign(y=10 * y + np.arange(240) // 3 % 9), "y")
    assert "y: 27 numbers, each taken for a class (task='regress' predicts numbers)" in " ".join(str(numbers).split())
    assert_close(result.roc_auc, roc_auc_score(y, found, multi_class="ovr"))
    plain = train_svm(frame, "y")
    scores = SVM().fit(X, y).decision_function(X)
    assert_close(plain.roc_auc, np.mean([roc_auc_score(y == k, scores[:, k]) for k in range(3)]))


def test_pairs_of_large_classes_and_of_small_ones_stand_in_their_order():
    X, y = clouds(150, 4, classes=2, separation=3.0)
    more, few = clouds(24, 4, classes=4, seed=2, separation=2.0)
    X, y = np.vstack([X, more + 4.0]), np.concatenate([y, few + 2])
    machine = SVM(C=2.0, kernel="gaussian(2)", scale="none", tolerance=1e-9).fit(X, y)
    assert {one.method == "stacked" for one in machine.fit_.solutions} == {True, False}
    for (i, j), column in zip(combinations(range(6), 2), machine.pair_scores(X).T, strict=True):
        rows = (y == i) | (y == j)
        alone = SVM(C=2.0, kernel="gaussian(2)", scale="none", tolerance=1e-9).fit(X[rows], y[rows])
        np.testing.assert_allclose(column[rows], alone.pair_scores(X[rows]), rtol=0, atol=1e-4)


def test_the_report_of_predictions_says_that_a_model_has_probabilities(tmp_path):
    X, y = clouds(90, 2, classes=3)
    frame, path, rows = pd.DataFrame(X, columns=["a", "b"]).assign(y=y), tmp_path / "y.kt", tmp_path / "rows.csv"
    frame.to_csv(rows, index=False)
    for probability in (True, False):
        train_svm(frame, "y", probability=probability, output=path, force=True)
        found = predict_file(path, rows, output=tmp_path / "out.csv")
        assert found.probability is probability
        assert ("has probabilities (proba=True writes them)" in str(found)) is probability
    train_svm(frame, "y", probability=True, output=path, force=True)
    assert "writes them" not in str(predict_file(path, rows, proba=True, output=tmp_path / "out.csv"))


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"kernel": "linear", "class_weight": {2: 9.0}}])
def test_probabilities_change_no_prediction(options, tmp_path):
    """Neither do they change what is told of predictions: scores of folds, of test rows, and what columns are worth."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [400, 40, 40])
    X = rng.normal(size=(480, 2)) + np.array([[0.0, 0.0], [1.2, 0.0], [0.0, 1.2]])[y]
    held, table = np.arange(480) % 3 == 0, tmp_path / "rows.csv"
    frame_of(X, y).to_csv(table, index=False)
    machines = [SVM(probability=asked, **options).fit(X[~held], y[~held]) for asked in (False, True)]
    predicted = [machine.predict(X[held]) for machine in machines]
    probable = machines[1].classes_[machines[1].predict_proba(X[held]).argmax(axis=1)]
    # Otherwise nothing is seen here.
    assert (probable != predicted[0]).any()
    np.testing.assert_array_equal(*predicted)
    np.testing.assert_array_equal(
        machines[1].classes_[machines[1].decision_function(X[held]).argmax(axis=1)], predicted[1]
    )
    told = {"cv": 3, "select_by": "balanced-accuracy", "test_fraction": 0.3, "seed": 1, **options}
    without, with_some = (
        train_svm(table, "y", probability=asked, output=tmp_path / f"{asked}.kt", **told) for asked in (False, True)
    )
    for name in ("confusion", "accuracy", "balanced_accuracy", "importance"):
        assert getattr(with_some, name) == getattr(without, name), name
    assert with_some.grid.best.mean == without.grid.best.mean
    files = [tmp_path / f"{asked}.csv" for asked in (False, True)]
    for model, file in zip((without, with_some), files, strict=True):
        predict_file(model.model, table, output=file)
    assert files[0].read_text() == files[1].read_text()
