"""The grid of costs and bandwidths, and cross-validation."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from learning.alike import assert_models_alike, assert_records_alike
from learning.svm_cases import bundled, clouds, raises
from tolerances import SAME_MACHINE

from kerntest import SVM, train_svm
from kerntest.errors import UsageError
from kerntest.learning.cross_validation import draw_folds, train_test_split

# Machines stop at a duality gap of 1e-6: that is how far they are the same.
GAP = 1e-6 / SAME_MACHINE


@pytest.fixture
def four_cells(monkeypatch):
    """Let a grid be of two costs and two bandwidths: what holds for every cell needs no more of them."""
    monkeypatch.setattr("kerntest.learning.machines.svm_learner.COSTS", (1.0, 100.0))
    monkeypatch.setattr("kerntest.learning.machines.svm_learner.MULTIPLES", (0.5, 2.0))


def frame_of(X, y):
    return pd.DataFrame({**{f"x{k}": column for k, column in enumerate(X.T)}, "y": y})


def noisy(n=70, seed=0, classes=2):
    X, y = clouds(n, separation=1.2, seed=seed, classes=classes)
    return X, y


@pytest.mark.parametrize("seed", [0, 1])
def test_the_chosen_cell_is_the_best_then_the_cheapest_then_the_widest(seed):
    X, y = noisy(40, seed=seed)
    result = train_svm(frame_of(X, y), "y", grid=True, cv=2, seed=seed)
    cells = result.grid.cells
    assert len(cells) == 25
    assert {cell.C for cell in cells} == {0.1, 1, 10, 100, 1000}
    assert {cell.multiple for cell in cells} == {0.25, 0.5, 1, 2, 4}
    top = max(cell.mean for cell in cells)
    tied = [cell for cell in cells if cell.mean >= top - 1e-9]
    widest = min(tied, key=lambda cell: (cell.C, -cell.bandwidth))
    chosen = cells[result.grid.chosen]
    assert chosen == widest
    assert (result.C, result.bandwidth, result.kernel) == (chosen.C, chosen.bandwidth, chosen.kernel)


@pytest.mark.usefixtures("four_cells")
def test_bandwidths_of_the_grid_are_multiples_of_the_median():
    X, y = noisy()
    median = train_svm(frame_of(X, y), "y").bandwidth
    for cell in train_svm(frame_of(X, y), "y", grid=True, cv=2).grid.cells:
        np.testing.assert_allclose(cell.bandwidth, cell.multiple * median, rtol=1e-12)


def by_hand(X, y, folds, cell, **options):
    """The score of a cell by a loop over the same folds; columns are scaled by the whole training part."""
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = []
    for fold in range(folds.max() + 1):
        train, test = folds != fold, folds == fold
        machine = SVM(C=cell.C, kernel=cell.kernel, scale="none", **options).fit(scaled[train], y[train])
        predicted = machine.predict(scaled[test])
        if options.get("task") == "regress":
            scores.append(-np.sqrt(np.mean((predicted - y[test]) ** 2)))
        else:
            scores.append(np.mean(predicted == y[test]))
    return np.mean(scores), np.std(scores, ddof=1) / np.sqrt(len(scores))


@pytest.mark.usefixtures("four_cells")
@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"method": "perceptron"}])
def test_the_score_of_a_cell_is_that_of_a_loop_over_the_folds(options):
    X, y = noisy(45, classes=3)
    result = train_svm(frame_of(X, y), "y", grid=True, cv=3, seed=5, **options)
    folds = draw_folds(len(y), 3, 5, labels=y)
    # The perceptron has no cost: its grid is one of bandwidths.
    assert len(result.grid.cells) == (2 if options.get("method") == "perceptron" else 4)
    for cell in result.grid.cells:
        mean, error = by_hand(X, y, folds, cell, seed=5, **options)
        np.testing.assert_allclose((cell.mean, cell.standard_error), (mean, error), rtol=1e-12)


@pytest.mark.usefixtures("four_cells")
def test_the_score_of_a_regression_is_minus_its_rmse():
    X, y = bundled("diabetes")
    X, y = X[::3, :4], y[::3]
    result = train_svm(frame_of(X, y), "y", task="regress", grid=True, cv=3, seed=1, epsilon=10.0)
    assert result.grid.score == "negative RMSE"
    folds = draw_folds(len(y), 3, 1)
    for cell in result.grid.cells:
        mean, error = by_hand(X, y, folds, cell, task="regress", epsilon=10.0)
        # A grid stops at a gap of 1e-3.
        np.testing.assert_allclose((cell.mean, cell.standard_error), (mean, error), rtol=1e-3)
    assert result.grid.cells[result.grid.chosen].mean == max(cell.mean for cell in result.grid.cells)


def test_cross_validation_without_a_grid_is_of_the_options_as_they_are():
    X, y = noisy(60)
    result = train_svm(frame_of(X, y), "y", cv=6, C=3.0, bandwidth=0.8, seed=2)
    (cell,) = result.grid.cells
    assert (cell.C, cell.kernel, result.grid.folds) == (3.0, "gaussian(0.8)", 6)
    assert (result.C, result.bandwidth) == (3.0, 0.8)
    mean, error = by_hand(X, y, draw_folds(len(y), 6, 2, labels=y), cell)
    np.testing.assert_allclose((cell.mean, cell.standard_error), (mean, error), rtol=1e-12)


@pytest.mark.usefixtures("four_cells")
def test_nothing_that_is_fitted_depends_on_the_test_rows(tmp_path):
    X, y = noisy(60)
    _, test = train_test_split(y, 60, 0.3, 7)
    changed = X.copy()
    changed[test] = 100 * changed[test] - 50
    for name, columns in (("a", X), ("b", changed)):
        train_svm(
            frame_of(columns, y),
            "y",
            test_fraction=0.3,
            grid=True,
            cv=3,
            probability=True,
            seed=7,
            output=tmp_path / name,
        )
    assert_models_alike(tmp_path / "a", tmp_path / "b", condition=GAP)


@pytest.mark.usefixtures("four_cells")
def test_a_test_file_changes_nothing_that_is_fitted(tmp_path):
    X, y = noisy(60)
    rng = np.random.default_rng(0)
    one = train_svm(frame_of(X, y), "y", grid=True, cv=2, test=frame_of(X + 3, y), output=tmp_path / "a")
    two = train_svm(frame_of(X, y), "y", grid=True, cv=2, test=frame_of(rng.normal(size=X.shape), y))
    train_svm(frame_of(X, y), "y", grid=True, cv=2, output=tmp_path / "b")
    assert_models_alike(tmp_path / "a", tmp_path / "b", condition=GAP)
    assert_records_alike(asdict(one.grid), asdict(two.grid), condition=GAP)
    assert_records_alike(asdict(one.train), asdict(two.train), condition=GAP)
    assert one.accuracy != two.accuracy


@pytest.mark.usefixtures("four_cells")
def test_the_number_of_threads_changes_nothing(tmp_path):
    X, y = noisy(50, classes=3)
    options = {"grid": True, "cv": 2, "probability": True, "test_fraction": 0.25}
    results = [
        train_svm(frame_of(X, y), "y", threads=threads, output=tmp_path / str(threads), **options) for threads in (1, 2)
    ]
    assert_models_alike(tmp_path / "1", tmp_path / "2", condition=GAP)
    for part in ("grid", "train", "test"):
        one, two = (asdict(getattr(result, part)) for result in results)
        assert_records_alike(one, two, condition=GAP)


@pytest.mark.usefixtures("four_cells")
def test_progress_runs_to_its_end():
    X, y = noisy(40)
    seen = []
    train_svm(frame_of(X, y), "y", grid=True, cv=2, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)


def test_a_kernel_without_a_free_bandwidth_has_a_grid_of_costs():
    X, y = noisy(50)
    result = train_svm(frame_of(X, y), "y", kernel="linear", grid=True, cv=3)
    assert [cell.C for cell in result.grid.cells] == [0.1, 1, 10, 100, 1000]
    assert {cell.kernel for cell in result.grid.cells} == {"linear"}


@pytest.mark.usefixtures("four_cells")
@pytest.mark.parametrize("options", [{"nu": 0.3}, {"hard_margin": True, "kernel": "laplacian"}])
def test_a_machine_without_a_cost_has_a_grid_of_bandwidths(options):
    X, y = noisy(24)
    result = train_svm(frame_of(X, y), "y", grid=True, cv=2, **options)
    assert [cell.multiple for cell in result.grid.cells] == [0.5, 2]


@pytest.mark.parametrize("options", [{"grid": True}, {"cv": 3}])
def test_one_class_has_no_score_to_choose_by(options):
    X, _ = noisy(40)
    error = raises(UsageError, "usage.grid", lambda: train_svm(X, task="one-class", **options))
    assert "one class" in error.message


def test_a_largest_nu_is_feasible_in_the_folds_too():
    X, y = noisy(41)
    largest = 2 * min(np.bincount(y)) / 41
    result = train_svm(frame_of(X, y), "y", nu=largest * (1 - 1e-9), cv=3)
    assert result.grid.cells[0].mean > 0


@pytest.mark.usefixtures("four_cells")
def test_what_held_out_rows_say_is_near_what_new_rows_say():
    X, y = noisy(120, seed=3)
    new, truth = noisy(2000, seed=4)
    result = train_svm(frame_of(X, y), "y", grid=True, test=frame_of(new, truth))
    cell = result.grid.cells[result.grid.chosen]
    # Five standard errors of both.
    assert abs(cell.mean - result.accuracy) < 5 * np.hypot(cell.standard_error, 0.5 / np.sqrt(2000))
    assert result.judged_on == "test"
