"""The grid of costs and bandwidths, and cross-validation."""

import re
from dataclasses import asdict, replace

import numpy as np
import pytest
from learning.alike import assert_models_alike, assert_records_alike
from learning.svm_cases import bundled, clouds, frame_of, gaussian, raises
from sklearn.metrics import get_scorer
from tolerances import SAME_MACHINE

from kerntest import SVM, train_svm
from kerntest.errors import UsageError
from kerntest.learning.cross_validation import draw_folds, train_test_split
from kerntest.learning.machines.svm_warnings import edge_warnings
from kerntest.learning.solvers.hinge import solve_hinge
from kerntest.learning.solvers.problem import Problem
from kerntest.learning.solvers.smoothed import CostPath
from kerntest.matrices.matrix import GivenMatrix
from kerntest.report.results.learning_record import GridCell, GridSearch

# Machines stop at a duality gap of 1e-6: that is how far they are the same.
GAP = 1e-6 / SAME_MACHINE


@pytest.fixture
def not_beyond(monkeypatch):
    """Let a grid stay as it is, wherever its best cell is."""
    monkeypatch.setattr("kerntest.learning.machines.svm_search.MOST_BEYOND", 0)


@pytest.fixture
def four_cells(monkeypatch, not_beyond):  # noqa: ARG001 - it acts by being there
    """Let a grid be of two costs and two bandwidths: what holds for every cell needs no more of them."""
    monkeypatch.setattr("kerntest.learning.machines.svm.COSTS", (1.0, 100.0))
    monkeypatch.setattr("kerntest.learning.machines.svm.MULTIPLES", (0.5, 2.0))


def noisy(n=70, seed=0, classes=2):
    return clouds(n, separation=1.2, seed=seed, classes=classes)


@pytest.mark.usefixtures("not_beyond")
@pytest.mark.parametrize("seed", [0, 1])
def test_the_chosen_cell_is_the_best_then_the_cheapest_then_the_widest(seed):
    table = frame_of(*noisy(40, seed=seed))
    result = train_svm(table, "y", grid=True, cv=2, seed=seed)
    cells, median = result.grid.cells, train_svm(table, "y").bandwidth
    expected = [(C, multiple, multiple * median) for multiple in (0.25, 0.5, 1, 2, 4) for C in (0.1, 1, 10, 100, 1000)]
    np.testing.assert_allclose([(cell.C, cell.multiple, cell.bandwidth) for cell in cells], expected, rtol=1e-12)
    top = max(cell.mean for cell in cells)
    tied = [cell for cell in cells if cell.mean >= top - 1e-9]
    chosen = cells[result.grid.chosen]
    assert chosen == min(tied, key=lambda cell: (cell.C, -cell.bandwidth))
    assert (result.C, result.bandwidth, result.kernel) == (chosen.C, chosen.bandwidth, chosen.kernel)


def assert_by_hand(cell, X, y, folds, rtol=1e-12, **options):
    """Return the errors of a loop over the folds, and fail unless the score of a cell is theirs.

    Columns are scaled by the whole training part.
    """
    scaled, scores, errors = (X - X.mean(axis=0)) / X.std(axis=0), [], np.empty(len(y))
    for fold in range(folds.max() + 1):
        train, test = folds != fold, folds == fold
        machine = SVM(C=cell.C, kernel=cell.kernel, scale="none", **options).fit(scaled[train], y[train])
        errors[test] = wrong = machine.predict(scaled[test]) - y[test]
        scores.append(-np.sqrt(np.mean(wrong**2)) if options.get("task") == "regress" else np.mean(wrong == 0))
    # Every row is predicted once: the error of the score is over rows, of a root by its slope.
    regression = options.get("task") == "regress"
    values = np.square(errors) if regression else errors == 0
    error = np.std(values, ddof=1) / np.sqrt(len(y)) / (2 * np.sqrt(np.mean(values)) if regression else 1)
    expected = np.mean(scores), error
    np.testing.assert_allclose((cell.mean, cell.standard_error), expected, rtol=rtol)
    return errors


@pytest.mark.usefixtures("four_cells")
@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"method": "perceptron"}])
def test_the_score_of_a_cell_is_that_of_a_loop_over_the_folds(options):
    X, y = noisy(45, classes=3)
    result = train_svm(frame_of(X, y), "y", grid=True, cv=3, seed=5, **options)
    # The perceptron has no cost: its grid is one of bandwidths.
    assert len(result.grid.cells) == (2 if options.get("method") == "perceptron" else 4)
    for cell in result.grid.cells:
        assert_by_hand(cell, X, y, draw_folds(len(y), 3, 5, labels=y), seed=5, **options)


@pytest.mark.usefixtures("four_cells")
def test_the_score_of_a_regression_is_minus_its_rmse():
    X, y = bundled("diabetes")
    X, y = X[::3, :4], y[::3]
    result = train_svm(frame_of(X, y), "y", task="regress", grid=True, cv=3, seed=1, epsilon=10.0)
    assert result.grid.score == "negative RMSE"
    assert result.grid.mean == result.grid.best.mean < 0
    errors = [
        # A grid stops at a gap of 1e-3.
        assert_by_hand(cell, X, y, draw_folds(len(y), 3, 1), rtol=1e-3, task="regress", epsilon=10.0)
        for cell in result.grid.cells
    ]
    # Folds of 50, 49 and 49 rows: r2 is of all together.
    unexplained = np.mean(np.square(errors[result.grid.chosen])) / y.var()
    np.testing.assert_allclose(1 - result.grid.r2, unexplained, rtol=2e-3)
    assert result.grid.cells[result.grid.chosen].mean == max(cell.mean for cell in result.grid.cells)


def test_cross_validation_without_a_grid_is_of_the_options_as_they_are():
    X, y = noisy(60)
    result = train_svm(frame_of(X, y), "y", cv=6, C=3.0, bandwidth=0.8, seed=2)
    (cell,) = result.grid.cells
    assert (cell.C, cell.kernel, result.grid.folds) == (3.0, "gaussian(0.8)", 6)
    assert (result.C, result.bandwidth) == (3.0, 0.8)
    assert_by_hand(cell, X, y, draw_folds(len(y), 6, 2, labels=y))


@pytest.mark.usefixtures("four_cells")
def test_nothing_that_is_fitted_depends_on_the_test_rows(tmp_path):
    X, y = noisy(60)
    options = {"grid": True, "cv": 3, "seed": 7, "probability": True}
    _, test = train_test_split(y, 60, 0.3, 7)
    changed = X.copy()
    changed[test] = 100 * changed[test] - 50
    one = train_svm(frame_of(X, y), "y", test_fraction=0.3, output=tmp_path / "a", **options)
    two = train_svm(frame_of(changed, y), "y", test_fraction=0.3, output=tmp_path / "b", **options)
    own = np.setdiff1d(np.arange(60), test)
    train_svm(frame_of(X[own], y[own]), "y", test=frame_of(X + 3, y), output=tmp_path / "c", **options)
    for other in "bc":
        # What columns are worth is told by the test rows.
        assert_models_alike(tmp_path / "a", tmp_path / other, condition=GAP, but="importance")
    for part in ("grid", "train"):
        assert_records_alike(asdict(getattr(one, part)), asdict(getattr(two, part)), condition=GAP)
    assert one.accuracy != two.accuracy


@pytest.mark.usefixtures("four_cells")
def test_the_number_of_threads_changes_nothing_and_progress_runs_to_its_end(tmp_path):
    table, seen = frame_of(*noisy(50, classes=3)), []
    options = {"grid": True, "cv": 2, "probability": True, "test_fraction": 0.25}
    one, two = (
        train_svm(table, "y", threads=n, output=tmp_path / str(n), progress=lambda *done: seen.append(done), **options)
        for n in (1, 2)
    )
    assert_models_alike(tmp_path / "1", tmp_path / "2", condition=GAP)
    for part in ("grid", "train", "test"):
        assert_records_alike(asdict(getattr(one, part)), asdict(getattr(two, part)), condition=GAP)
    assert [total for _, total in seen[:4]] == [seen[-1][0]] * 4
    assert seen[:4] == sorted(seen[:4])


@pytest.mark.usefixtures("four_cells")
@pytest.mark.parametrize(
    ("options", "cells"),
    [
        ({"kernel": "linear"}, [(1.0, 1.0), (1.0, 100.0)]),
        ({"nu": 0.3}, [(0.5, 1.0), (2.0, 1.0)]),
        ({"hard_margin": True, "kernel": "laplacian"}, [(0.5, 1.0), (2.0, 1.0)]),
    ],
)
def test_a_grid_has_only_what_there_is_to_choose(options, cells):
    result = train_svm(frame_of(*noisy(24)), "y", grid=True, cv=2, **options)
    assert [(cell.multiple, cell.C) for cell in result.grid.cells] == cells


def large(n=300, seed=0):
    """Two classes of two columns, of so many rows that cells are given up."""
    X, y = clouds(n, separation=1.2, seed=seed)
    X[:, 1] += np.where(y == 1, X[:, 0] ** 2 / 4, 0.0)
    return X, y


@pytest.mark.usefixtures("not_beyond")
@pytest.mark.parametrize(
    ("classes", "options"),
    [(2, {}), (2, {"class_weight": {0: 1, 1: 3}}), (2, {"kernel": "laplacian"}), (2, {"nu": 0.7}), (3, {})],
)
def test_cells_are_given_up_and_what_is_left_is_judged_in_every_fold(classes, options, monkeypatch):
    X, y = large()
    if classes == 3:
        y[X[:, 1] > np.quantile(X[:, 1], 0.7)] = 2
    monkeypatch.setattr("kerntest.learning.machines.svm_search.MANY_ROWS", 300)
    raced = train_svm(frame_of(X, y), "y", grid=True, seed=1, **options).grid
    monkeypatch.setattr("kerntest.learning.machines.svm_search.MANY_ROWS", 10**6)
    whole = train_svm(frame_of(X, y), "y", grid=True, seed=1, **options).grid
    cells, folds = len(whole.cells), [cell.folds for cell in raced.cells]
    assert (whole.fits, {cell.folds for cell in whole.cells}) == (5 * cells, {5})
    # A third after the first look, which a nu may not allow, then the half after each fold, three at least.
    left = {25: (9, 5, 3, 3, 3), 5: (5, 3, 3, 3, 3)}[cells]
    pattern = sorted((sum(place < one for one in left) for place in range(cells)), reverse=True)
    # Up to three that were given up with scores above the best are judged by all.
    again = folds.count(5) - left[-1]
    assert 0 <= again <= 3
    assert raced.fits == sum(folds) <= sum(left) + 5 * again
    if not again:
        assert sorted(folds, reverse=True) == pattern
    assert raced.cells[raced.chosen].folds == 5
    assert raced.mean == max(cell.mean for cell in raced.cells if cell.folds == 5)
    for cell, other in zip(raced.cells, whole.cells, strict=True):
        assert (cell.C, cell.multiple, cell.kernel) == (other.C, other.multiple, other.kernel)
        assert (cell.standard_error is None) == (cell.folds < 2)
        if cell.folds == 5:
            # Rows may differ whose score is next to 0.
            assert abs(cell.mean - other.mean) <= 3 / 300
    assert raced.mean >= whole.mean - 2 * whole.best.standard_error


@pytest.mark.usefixtures("four_cells")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("select_by", "score", "peer"),
    [
        ("balanced-accuracy", "balanced accuracy", "balanced_accuracy"),
        ("f1", "macro F1", "f1_macro"),
        ("auc", "ROC AUC", "roc_auc"),
    ],
)
def test_cells_are_chosen_by_what_is_asked_for(select_by, score, peer, classes):
    X, y = noisy(60, classes=classes)
    grid = train_svm(frame_of(X, y), "y", grid=True, cv=3, seed=5, select_by=select_by).grid
    assert grid.score == score
    assert grid.best.mean == grid.mean == max(cell.mean for cell in grid.cells)
    if classes == 3 and select_by == "auc":
        return
    folds, scaled = draw_folds(len(y), 3, 5, labels=y), (X - X.mean(axis=0)) / X.std(axis=0)
    for cell in grid.cells:
        own = []
        for fold in range(3):
            train, test = folds != fold, folds == fold
            machine = SVM(C=cell.C, kernel=cell.kernel, scale="none").fit(scaled[train], y[train])
            own.append(get_scorer(peer)(machine, scaled[test], y[test]))
        np.testing.assert_allclose(cell.mean, np.mean(own), rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_log_loss_of_a_fold_is_that_of_the_sigmoid_through_its_scores(classes):
    X, y = noisy(90, classes=classes)
    options = {"cv": 3, "seed": 5, "probability": True}
    by_loss = train_svm(frame_of(X, y), "y", select_by="log-loss", **options).grid
    assert by_loss.score == "negative log-loss"
    # Better than telling nothing, and no better than machines that have seen the rows.
    assert -np.log(classes) < by_loss.mean < 0
    folds, scaled = draw_folds(len(y), 3, 5, labels=y), (X - X.mean(axis=0)) / X.std(axis=0)
    if classes == 3:
        return
    own = []
    for fold in range(3):
        machine = SVM(kernel=by_loss.best.kernel, scale="none").fit(scaled[folds != fold], y[folds != fold])
        score, second = machine.decision_function(scaled[folds == fold]), y[folds == fold] == 1
        target = np.where(second, (second.sum() + 1) / (second.sum() + 2), 1 / ((~second).sum() + 2))
        slopes = np.linspace(0, 5, 5001)[:, None]
        p = 1 / (1 + np.exp(-slopes * score))
        best = np.argmin(-(target * np.log(p) + (1 - target) * np.log(1 - p)).sum(axis=1))
        own.append(np.log(np.where(second, p[best], 1 - p[best])).mean())
    np.testing.assert_allclose(by_loss.mean, np.mean(own), rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"select_by": "auc"},
        {"select_by": "f1", "task": "regress", "cv": 3},
        {"select_by": "log-loss", "method": "mean", "cv": 3},
    ],
)
def test_what_cannot_be_chosen_by_is_refused(options):
    raises(UsageError, "usage.contradiction", lambda: train_svm(frame_of(*noisy(40)), "y", **options))


@pytest.mark.usefixtures("not_beyond")
@pytest.mark.parametrize("seed", range(4))
def test_cells_go_out_by_the_mean_over_the_folds_so_far(seed, monkeypatch):
    # Inside: scores as they are drawn, in every second case few of them different, so that ties come up.
    drawn = np.random.default_rng(seed).integers(1, (5, 1000)[seed % 2], size=(6, 5, 5)) / 4
    costs, multiples, looks = (0.1, 1.0, 10.0, 100.0, 1000.0), (0.25, 0.5, 1.0, 2.0, 4.0), []

    def scores(search, work):
        multiple, tried, part = work
        place = 0 if part.share > 1 else 1 + [tuple(one.held) for one in search.rounds[1:]].index(tuple(part.held))
        looks.append((part, place))
        return [(drawn[place, multiples.index(multiple), costs.index(cost)], 0.0, part.held) for cost in tried]

    monkeypatch.setattr("kerntest.learning.machines.svm_search.MANY_ROWS", 300)
    monkeypatch.setattr("kerntest.learning.machines.svm_search.JUDGED_ROWS", 100)
    monkeypatch.setattr("kerntest.learning.machines.svm_search.Search._scores", scores)
    grid = train_svm(frame_of(*large()), "y", grid=True).grid
    (first, _), *_ = looks
    # The first look: a fold, and so many of the other rows, evenly.
    assert (len(first.train), len(first.held), first.share) == (60, 80, 4.0)
    left = list(np.ndindex(5, 5))
    judged = dict.fromkeys(left, 0)
    for place, count in enumerate((25, 9, 5, 3, 3, 3)):
        means = drawn[:1] if place <= 1 else drawn[1:place]
        left = sorted(left, key=lambda cell, means=means: (-round(means.mean(axis=0)[cell], 9), cell[1], -cell[0]))[
            :count
        ]
        judged |= dict.fromkeys(left, place)
    best = min(left, key=lambda cell: (-round(drawn[1:].mean(axis=0)[cell], 9), cell[1], -cell[0]))
    assert (grid.best.multiple, grid.best.C) == (multiples[best[0]], costs[best[1]])
    for cell, (place, folds) in zip(grid.cells, judged.items(), strict=True):
        own = drawn[1 : 1 + folds, *place] if folds else drawn[:1, *place]
        assert (cell.folds, cell.mean) == (folds, pytest.approx(own.mean()))
        assert (cell.standard_error is None) == (folds < 2)


@pytest.mark.usefixtures("not_beyond")
@pytest.mark.parametrize(("rare", "fits"), [(10, 125), (25, 25 + 13 + 7 + 4 + 3), (100, 9 + 5 + 3 + 3 + 3)])
def test_of_rare_classes_fewer_cells_are_given_up(rare, fits):
    # Three classes of n rows are worth 9 / sum 1 / n: 86, 194 and 900.
    X, y = large(900)
    y[:rare] = 2
    X[:rare] += 2
    found = train_svm(frame_of(X, y), "y", grid=True).grid
    # And what three cells take that were given up with scores above the best.
    assert fits <= found.fits <= fits + 15 * (fits < 125)


@pytest.mark.usefixtures("not_beyond")
def test_a_cell_that_was_given_up_with_a_score_above_the_best_is_judged_by_all_folds(monkeypatch):
    """Large costs were better by a first look alone: 0.8 there, and 0.7 in the folds."""

    def scores(self, work):
        multiple, costs, part = work
        steady = [multiple == self.multiples[1] and cost == 1.0 for cost in costs]
        lucky = [0.1 * (part.pieces == 1 and cost >= 100.0) + cost * 1e-9 for cost in costs]
        return [(0.75 if one else 0.7 + luck, 0.01, part.held) for one, luck in zip(steady, lucky, strict=True)]

    monkeypatch.setattr("kerntest.learning.machines.svm_search.Search._scores", scores)
    found = train_svm(frame_of(*large(900)), "y", grid=True).grid
    assert (found.mean, found.best.C, found.best.folds) == (0.75, 1.0, 5)


@pytest.mark.usefixtures("not_beyond")
def test_the_report_counts_first_looks_and_says_what_stands_in_brackets():
    told = str(train_svm(frame_of(*large(900)), "y", grid=True))
    assert re.search(r"\d\d fits and a first look at 25 in place of 125", " ".join(told.split()))
    assert "(" in told.split("Grid, ")[1].split("tie rule", maxsplit=1)[0]
    assert "in brackets: given up after fewer folds, or a first look" in told
    told = str(train_svm(frame_of(*large(90)), "y", grid=True))
    assert "in brackets" not in told
    assert "first look" not in told


@pytest.mark.parametrize(("whole", "kept"), [(True, 10**6), (False, 10**6), (False, 10**5)])
def test_a_path_of_costs_takes_few_systems(whole, kept, monkeypatch):
    # Inside: a wrong start costs time alone. Of many rows it is a part of them, and a triangle is kept, or some rows.
    monkeypatch.setattr("kerntest.learning.solvers.smoothed.WHOLE_ROWS", 1500 if whole else 100)
    monkeypatch.setattr("kerntest.learning.solvers.smoothed.PART", 1000 if whole else 100)
    X, y = large()
    matrix, signs, ones, used = GivenMatrix(gaussian(X, X, 1.0)), 2.0 * y - 1, np.ones(300), 0
    path = CostPath(matrix, None, kept)
    for cost in (0.1, 1.0, 10.0, 100.0):
        problem = Problem(signs, cost * ones, ones)
        found = path.at(problem)
        used += found.iterations
        # A smoothed machine is nearly the one of its cost: its coefficients are feasible, its outputs its own.
        np.testing.assert_allclose(found.outputs, matrix.matrix @ found.coefficients, atol=1e-3)
        assert np.abs(found.coefficients).max() <= cost * (1 + 1e-9)
        exact = solve_hinge(matrix, problem)
        slack = np.maximum(problem.slack(found.outputs, found.intercept), 0.0)
        objective = 0.5 * found.coefficients @ found.outputs + cost * slack.sum()
        assert exact.objective * (1 - 1e-9) <= objective <= 1.02 * exact.objective
        assert np.mean((found.outputs + found.intercept > 0) == (exact.outputs + exact.intercept > 0)) >= 0.98
    assert used <= 42


@pytest.mark.parametrize("width", [0.2, 0.4])
def test_a_path_may_begin_at_a_large_cost(width, monkeypatch):
    # Inside: on a fine chess board nothing leads there but smaller costs.
    monkeypatch.setattr("kerntest.learning.solvers.smoothed.WHOLE_ROWS", 150)
    monkeypatch.setattr("kerntest.learning.solvers.smoothed.PART", 150)
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 8, (900, 2))
    signs = 2.0 * (np.floor(X).sum(axis=1) % 2) - 1
    matrix = GivenMatrix(gaussian(X / 2.3, X / 2.3, width))
    problem = Problem(signs, np.full(900, 1000.0), np.ones(900))
    found, exact = CostPath(matrix, None, 10**8).at(problem), solve_hinge(matrix, problem)
    slack = np.maximum(problem.slack(found.outputs, found.intercept), 0.0)
    objective = 0.5 * found.coefficients @ found.outputs + 1000.0 * slack.sum()
    assert objective <= 1.05 * exact.objective


def test_matrices_of_some_rows_and_of_all_give_the_same_first_look(monkeypatch):
    table = frame_of(*large())
    monkeypatch.setattr("kerntest.learning.machines.svm_search.MANY_ROWS", 300)
    whole = train_svm(table, "y", grid=True).grid
    monkeypatch.setattr("kerntest.learning.machines.svm_search.WHOLE_ROWS", 60)
    for cell, other in zip(train_svm(table, "y", grid=True).grid.cells, whole.cells, strict=True):
        if cell.folds == other.folds == 0:
            assert cell.mean == pytest.approx(other.mean, abs=1e-9)


def test_probabilities_of_classes_that_are_in_no_fold_together():
    X, y = noisy(60)
    y[:4] = [2, 2, 3, 3]
    assert train_svm(frame_of(X, y), "y", cv=5, select_by="log-loss").grid.mean < 0


@pytest.mark.parametrize(
    ("means", "told"),
    [
        ([[1, 2, 3], [4, 5, 4], [3, 2, 1]], []),
        (
            [[1, 1, 1], [1, 2, 3], [1, 1, 1]],
            ["the largest cost of the grid is the best: kernel='k(2)', C=1000, cv=5"],
        ),
        (
            [[1, 1, 1], [3, 2, 1], [1, 1, 1]],
            ["the smallest cost of the grid is the best: kernel='k(2)', C=0.1, cv=5"],
        ),
        # What is as good one step inside needs nothing beyond.
        ([[1, 1, 1], [3, 3, 1], [1, 1, 1]], []),
        (
            [[1, 1, 3], [1, 1, 2], [1, 1, 1]],
            [
                "the largest cost of the grid is the best: kernel='k(1)', C=1000, cv=5",
                "the smallest bandwidth of the grid is the best: bandwidth=0.5, C=100, cv=5",
            ],
        ),
        (
            [[1, 1, 1], [1, 2, 1], [1, 3, 1]],
            ["the largest bandwidth of the grid is the best: bandwidth=8, C=10, cv=5"],
        ),
    ],
)
def test_a_best_cell_at_the_edge_of_the_grid_is_warned_of(means, told):
    # Inside: no rows have a certain cell as the best one.
    cells = tuple(
        GridCell(C, width / 2, width, f"k({width})", float(mean), None, 5)
        for width, line in zip((1, 2, 4), means, strict=True)
        for C, mean in zip((1, 10, 100), line, strict=True)
    )
    chosen = int(np.argmax([cell.mean for cell in cells]))
    search = GridSearch("accuracy", 5, "", cells, chosen, cells[chosen].mean, fits=45)
    assert edge_warnings(search) == [f"{one} judges one beyond" for one in told]
    # What is judged, and in which folds, is told where it is not the default.
    for score, seed, more in (
        ("macro F1", 0, ", select_by='f1'"),
        ("negative log-loss", 7, ", select_by='log-loss', seed=7"),
        ("negative RMSE", 0, ", task='regress'"),
    ):
        assert edge_warnings(replace(search, score=score), seed) == [f"{one}{more} judges one beyond" for one in told]


def test_a_kernel_to_go_beyond_the_largest_cost_has_four_digits():
    cells = tuple(GridCell(C, 1.0, 10 / 3, f"gaussian({10 / 3})", C, None, 5) for C in (1.0, 10.0))
    (told,) = edge_warnings(GridSearch("accuracy", 5, "", cells, 1, 10.0))
    assert "kernel='gaussian(3.333)', C=100, cv=5 judges" in told


@pytest.mark.usefixtures("not_beyond")
def test_the_edge_of_a_grid_is_warned_of_with_the_result(monkeypatch):
    monkeypatch.setattr("kerntest.learning.machines.svm.MULTIPLES", (1e-3, 0.5))
    result = train_svm(frame_of(*noisy(60)), "y", grid=True, cv=3)
    assert [
        one for one in result.warnings if one.startswith("the largest bandwidth of the grid is the best: bandwidth=")
    ]
    result = train_svm(frame_of(*noisy(60)), "y", grid=True, cv=3, select_by="f1", seed=2)
    assert [one for one in result.warnings if one.endswith(", cv=3, select_by='f1', seed=2 judges one beyond")]


def test_one_class_has_no_score_to_choose_by():
    raises(UsageError, "usage.grid", lambda: train_svm(noisy(40)[0], task="one-class", cv=3))


@pytest.mark.parametrize("options", [{"cv": 3}, {"probability": True}])
def test_a_largest_nu_is_feasible_in_the_folds_too(options):
    X, y = noisy(41)
    largest = 2 * min(np.bincount(y)) / 41
    # At 3 % less it is feasible in every fold.
    at_most, less = (train_svm(frame_of(X, y), "y", nu=largest * (1 - short), **options) for short in (1e-9, 0.03))
    assert at_most.accuracy == less.accuracy
    if at_most.grid is None:
        np.testing.assert_allclose(at_most.train.log_loss, less.train.log_loss, rtol=1e-2)
    else:
        assert at_most.grid.mean == less.grid.mean


@pytest.mark.parametrize("many", [False, True])
def test_a_grid_goes_beyond_an_edge_on_which_its_best_cell_is(many, monkeypatch):
    # A fine chess board wants narrower kernels than a quarter of the median, and every cell of one is better than the next.
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 8, (500, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    monkeypatch.setattr("kerntest.learning.machines.svm_search.MANY_ROWS", 500 if many else 10**6)
    monkeypatch.setattr("kerntest.learning.machines.svm.COSTS", (10.0, 100.0))
    result = train_svm(frame_of(X, y), "y", grid=True)
    grid, steps = result.grid, result.grid.beyond.count("smallest bandwidth")
    multiples = sorted({cell.multiple for cell in grid.cells})
    assert steps
    assert multiples == [0.25 / 2**step for step in range(steps, 0, -1)] + [0.25, 0.5, 1, 2, 4]
    assert [(cell.multiple, cell.C) for cell in grid.cells] == [
        (multiple, C) for multiple in multiples for C in sorted({cell.C for cell in grid.cells})
    ]
    assert grid.best.multiple < 0.25
    assert grid.best.folds == 5
    assert grid.mean == max(cell.mean for cell in grid.cells if cell.folds == 5)
    assert (result.kernel, result.C) == (grid.best.kernel, grid.best.C)
    times = f" ({steps} times)" if steps > 1 else ""
    told = " ".join(result.summary().split())
    assert "; the grid went beyond its " in told
    assert f"smallest bandwidth{times}" in told
    assert (grid.seconds_saved > 0) == (grid.fits < 5 * len(grid.cells)) == many
    # A score is that of the same folds, however it came to the grid.
    kernel, C = grid.best.kernel, grid.best.C
    assert train_svm(frame_of(X, y), "y", cv=5, kernel=kernel, C=C).grid.mean == pytest.approx(grid.mean, abs=0.01)


def test_a_grid_goes_beyond_its_edges_so_far_and_no_farther(monkeypatch):
    # Inside: scores that grow without end.
    def scores(_, work):
        multiple, tried, part = work
        return [(np.log(cost) - np.log(multiple) + part.held[0], 0.0, part.held) for cost in tried]

    monkeypatch.setattr("kerntest.learning.machines.svm_search.Search._scores", scores)
    grid = train_svm(frame_of(*noisy(40)), "y", grid=True).grid
    assert grid.beyond == ("largest cost", "smallest bandwidth") * 2
    assert (grid.best.C, grid.best.multiple) == (1e5, 0.0625)
    assert (len(grid.cells), grid.fits) == (49, 245)


@pytest.mark.parametrize(("weights", "more"), [(None, False), ("balanced", True)])
def test_a_grid_that_is_no_better_than_the_largest_class_is_told_of_instead_of_its_edges(weights, more):
    y = np.arange(80) % 4 == 0
    # A fourth of the rows of either value is of the smaller class.
    X = np.column_stack([np.arange(80) // 4 % 2, np.arange(80) // 8 % 2]).astype(float)
    result = train_svm(frame_of(X, y.astype(int)), "y", grid=True, cv=3, class_weight=weights)
    (told,) = [text for text in result.warnings if "of the grid" in text]
    assert told.startswith("no cell of the grid is right more often than '0' for every row (75 %)")
    assert ("select_by='balanced-accuracy'" in told) == more
    # Nor is a single machine, judged in folds; weights of classes ask for something else than accuracy.
    single = train_svm(frame_of(X, y.astype(int)), "y", cv=3, class_weight=weights).warnings
    said = "over the folds the machine is right no more often than '0' for every row (75 %)"
    assert any(text.startswith(said) for text in single) == (weights is None)


@pytest.mark.parametrize(("better", "more"), [(0.0, ""), (0.0125, " by more than one row")])
def test_a_grid_that_is_right_in_one_row_more_than_the_largest_class_is_not_called_no_better(monkeypatch, better, more):
    def scores(_, work):
        _, tried, part = work
        return [(0.75 + better, 0.0, np.zeros(len(part.held), dtype=np.intp)) for _ in tried]

    monkeypatch.setattr("kerntest.learning.machines.svm_search.Search._scores", scores)
    (told,) = [text for text in train_svm(frame_of(*rare(80)), "y", grid=True).warnings if "of the grid" in text]
    assert told == f"no cell of the grid is right more often than '0' for every row (75 %){more}"


def rare(n):
    return np.random.default_rng(0).normal(size=(n, 2)), (np.arange(n) % 4 == 0).astype(int)
