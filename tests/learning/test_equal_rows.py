"""Equal rows of one label are one row for the solver, and what it finds is what it finds of all of them, and what scikit-learn does."""

import numpy as np
import pytest
from learning.svm_cases import frame_of, gaussian
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from tolerances import assert_close

from kerntest import SVM, train_svm
from kerntest.learning.rows import training_rows

WIDTH = 1.5
OPTIONS = {"scale": "none", "tolerance": 1e-10}
# LIBSVM keeps kernel values in single precision, and stops at a violation of this.
PEER = {"gamma": 1 / (2 * WIDTH**2), "tol": 1e-9}
TASKS = {
    "classes": {"C": 3.0},
    "noisy": {"C": 100.0},
    "weights": {"C": 1.0, "class_weight": {"b": 4.0}},
    "nu": {"nu": 0.7},
    "separable": {"hard_margin": True},
    "several": {"C": 2.0},
    "numbers": {"C": 1.5, "task": "regress"},
    "rows": {"nu": 0.3, "task": "one-class"},
}
# Weights are factors of C.
UNWEIGHTED = {"nu", "separable"}


def counts(n=400, seed=0):
    """Return two columns of counts with some 40 different rows, and what is to be predicted of each task."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.poisson(1.5, n), rng.poisson(2.0, n)]).astype(float)
    score = X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=n)
    names = np.array(["a", "b", "c"])
    two = names[(score > 0.3).astype(int)]
    targets = {
        "several": names[np.digitize(score, [0.0, 1.0])],
        "separable": names[((X[:, 0] + X[:, 1]) % 2).astype(int)],
        "numbers": np.round(2.0 * score) / 2.0,
        "rows": None,
    }
    return X, {name: targets.get(name, two) for name in TASKS}


def moved(*fits):
    """How far apart two solutions may be with these gaps: |w - w'|^2 / 2 is no more than what each misses of the optimum."""
    return sum(np.sqrt(2.0 * fit.gap * abs(fit.objective)) for fit in fits)


def scores_of(machine, X):
    return machine.predict(X) if machine.task == "regress" else machine.pair_scores(X)


@pytest.mark.parametrize(
    ("task", "weighted"),
    [*((task, False) for task in TASKS), *((task, True) for task in TASKS if task not in UNWEIGHTED)],
)
def test_merged_rows_have_the_solution_of_all_rows(task, weighted):
    X, targets = counts()
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(X)) if weighted else None
    merged = SVM(kernel=f"gaussian({WIDTH})", **TASKS[task], **OPTIONS).fit(X, targets[task], weights)
    # Of a matrix that is given every row is one.
    K = gaussian(X, X, WIDTH)
    whole = SVM(kernel="precomputed", **TASKS[task], **OPTIONS).fit(K, targets[task], weights)
    ours, theirs = merged.fit_, whole.fit_
    few, every = (sum(len(one.coefficients) for one in fit.solutions) for fit in (ours, theirs))
    assert few < 0.5 * every
    assert ours.converged
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=ours.gap + theirs.gap + 1e-9)
    found, expected = scores_of(merged, X), scores_of(whole, K)
    # The intercept is that of rows in the margin: it moves as far as their scores do.
    np.testing.assert_allclose(found, expected, rtol=0, atol=4.0 * moved(ours, theirs) + 1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("task", ["classes", "weights", "nu", "numbers", "rows"])
def test_merged_rows_beside_those_of_scikit_learn(task):
    X, targets = counts(seed=2)
    options = TASKS[task]
    ours = SVM(kernel=f"gaussian({WIDTH})", **options, **OPTIONS).fit(X, targets[task])
    peer = {
        "nu": lambda: NuSVC(nu=0.7, **PEER),
        "numbers": lambda: SVR(C=options.get("C"), epsilon=0.1, **PEER),
        "rows": lambda: OneClassSVM(nu=0.3, **PEER),
    }.get(task, lambda: SVC(C=options["C"], class_weight=options.get("class_weight"), **PEER))()
    peer.fit(X) if targets[task] is None else peer.fit(X, targets[task])
    theirs = peer.predict(X) if task == "numbers" else peer.decision_function(X)
    assert_close(scores_of(ours, X), theirs, condition=1e4)


@pytest.mark.parametrize(
    "options", [{"C": 2.0}, {"features": "nystroem:20"}, {"probability": True}, {"kernel": "laplacian"}]
)
def test_what_is_told_of_a_machine_is_that_of_all_rows(options, monkeypatch, tmp_path):
    X, targets = counts(seed=3)
    fitted = SVM(**options, tolerance=1e-10).fit(X, targets["classes"])
    # The machine of all rows by the same features, folds and medians: there is no option for it.
    monkeypatch.setattr(training_rows, "MERGED", 0.0)
    whole = SVM(**options, tolerance=1e-10).fit(X, targets["classes"])
    assert len(whole.fit_.solutions[0].coefficients) == len(X)
    near = 4.0 * moved(fitted.fit_, whole.fit_) + 1e-8
    np.testing.assert_allclose(fitted.decision_function(X), whole.decision_function(X), rtol=0, atol=near)
    if fitted.probability:
        np.testing.assert_allclose(fitted.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-4)
    # A row has the coefficient that its copies have.
    support = set(fitted.fit_.support.tolist())
    of_row = {}
    for place, row in enumerate(zip(*X.T.tolist(), targets["classes"].tolist(), strict=True)):
        of_row.setdefault(row, set()).add(place in support)
    assert all(len(found) == 1 for found in of_row.values())
    if "features" not in options:
        different = {row[:2] for row, found in of_row.items() if found == {True}}
        assert fitted.fit_.n_support == len(different) == len(fitted.model.expansion.coefficients)
    fitted.save(tmp_path / "m.model")
    loaded = SVM.load(tmp_path / "m.model")
    np.testing.assert_allclose(loaded.decision_function(X), fitted.decision_function(X), rtol=1e-12, atol=1e-12)


def test_a_grid_of_merged_rows_has_the_scores_of_all_rows(monkeypatch):
    X, targets = counts(900, seed=4)
    data = frame_of(X, targets["classes"])
    merged = train_svm(data, "y", grid=True)
    monkeypatch.setattr(training_rows, "MERGED", 0.0)
    whole = train_svm(data, "y", grid=True)
    assert (merged.grid.best.C, merged.grid.best.multiple) == (whole.grid.best.C, whole.grid.best.multiple)
    cells = {(one.C, one.multiple): one for one in whole.grid.cells}
    both = [(one, cells[one.C, one.multiple]) for one in merged.grid.cells]
    judged = [(one.mean, other.mean) for one, other in both if one.folds == other.folds == 5]
    assert len(judged) >= 3
    # Machines to choose from are no nearer to the best than that a row in two hundred may fall on the other side.
    for one, other in judged:
        assert abs(one - other) <= 0.005 + 1e-12


def test_different_rows_stay_as_they_are():
    X, targets = counts()
    X = X + np.random.default_rng(0).normal(size=X.shape)
    few = np.vstack([X, X[:30]])
    for rows in (X, few):
        target = np.resize(targets["classes"], len(rows))
        machine = SVM().fit(rows, target)
        assert len(machine.fit_.solutions[0].coefficients) == len(rows)


def test_few_different_rows_are_not_blamed_for_needing_all():
    X = np.random.default_rng(0).integers(0, 2, (1000, 3)).astype(float)
    machine = SVM().fit(X, X.sum(axis=1) % 2)
    assert machine.score(X, X.sum(axis=1) % 2) == 1.0
    assert not machine.fit_.warnings


def test_support_vectors_are_counted_among_rows_of_their_kind_and_what_a_grid_chose_is_not_blamed():
    different = np.random.default_rng(1).normal(size=(60, 3))
    X, y = np.repeat(different, 3, axis=0), np.repeat(np.arange(60) % 2, 3)

    def told(**options):
        return [one for one in train_svm(frame_of(X, y), "y", **options).warnings if "support vectors" in one]

    among = " of 60 different ones of 180 training rows are support vectors: "
    other = "or the columns say little of the target; grid=True looks for better"
    assert told(C=1e-4) == [f"60{among}the cost may be too small, {other}"]
    assert told(C=1e4, bandwidth=0.01) == [f"60{among}the kernel may be too narrow, {other}"]
    # Of so wide a kernel it is the cost, and the width, that hold rows at their bound; no linear kernel is narrow.
    wide = f"{among}the kernel may be too wide, or the cost may be too small, {other}"
    assert told(bandwidth=1000.0) == [f"60{wide}"]
    assert told(C=1e-3, kernel="linear") == [f"60{among}the cost may be too small, {other}"]
    # A narrow one is told by its values, where a rare class is at its bound too.
    (narrow,) = told(C=0.1, bandwidth=0.001)
    assert narrow == f"60{among}the kernel may be too narrow, {other}"
    assert told(grid=True) == [f"58{among}the columns may say little of the target"]
    # Folds that judge one cell have chosen nothing.
    assert told(C=1e-4, cv=5) == told(C=1e-4)
    # Wherever equal rows have both classes each of them is needed, by any machine.
    crossed = train_svm(frame_of(np.repeat(different, 20, axis=0), np.arange(1200) % 20 == 0), "y")
    assert "support vectors" not in " | ".join(crossed.warnings)
