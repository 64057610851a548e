"""Learners with limits made small, for more rows than tests have: factors, conjugate gradients, memory; and no way out.

What is decided of numbers that are equal but for rounding is looked at inside too: it must not hang on rounding.
"""

import numpy as np
import pytest
from command_line import ROOT, run_here
from learning.svm_cases import raises, wave
from tolerances import SAME_MACHINE, assert_close

from kerntest import KernelRidge, parse_kernel, train_ridge
from kerntest.engines.engine import Engine
from kerntest.errors import UndecidedError
from kerntest.kernels.base import Points
from kerntest.learning.cross_validation import smoothest
from kerntest.learning.machines import ridge_fit
from kerntest.learning.scores import levelled
from kerntest.learning.solvers import least_squares
from kerntest.learning.solvers.preimage import PreImageSearch, largest_first
from kerntest.matrices.matrix import largest_entries


def test_a_factor_of_low_rank_changes_nothing(monkeypatch):
    X, y = wave(300, 1)
    monkeypatch.setattr(least_squares, "LEAST_ROWS", 250)
    thin = KernelRidge(threads=1).fit(X, y)
    monkeypatch.setattr(least_squares, "LEAST_ROWS", 10**9)
    dense = KernelRidge(threads=1).fit(X, y)
    assert thin.lambda_ == dense.lambda_
    for one, other in zip(thin.grid_.cells, dense.grid_.cells, strict=True):
        np.testing.assert_allclose(one.score, other.score, rtol=1e-5)
        np.testing.assert_allclose(one.effective_df, other.effective_df, rtol=1e-4)
    rest = wave(40, 1, seed=1)[0]
    found, expected = (one.predict(rest, return_std=True) for one in (thin, dense))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_conjugate_gradients_find_what_eigenvalues_find_on_any_number_of_threads(monkeypatch, weighted, tmp_path):
    X, y = wave(600)
    Y = np.column_stack([y, y**2])
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 600) if weighted else None
    options = {"lambda_": 0.05, "bandwidth": 1.0, "features": "nystroem:60"}
    direct = KernelRidge(**options).fit(X, Y, sample_weight=weights)
    monkeypatch.setattr(ridge_fit, "DIRECT", 0)
    monkeypatch.setattr(least_squares, "ROWS_PER_CENTRE", 5)
    stepwise = KernelRidge(**options).fit(X, Y, sample_weight=weights)
    assert stepwise.fit_.converged
    assert stepwise.fit_.iterations > 1
    assert stepwise.loo_rmse_ is None
    rest = wave(30, seed=1)[0]
    np.testing.assert_allclose(stepwise.predict(rest), direct.predict(rest), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(stepwise.model.scales, direct.model.scales, rtol=1e-6)
    np.testing.assert_allclose(
        [one.gcv_rmse for one in stepwise.fit_.targets], [one.gcv_rmse for one in direct.fit_.targets], rtol=0.02
    )
    np.testing.assert_allclose(stepwise.effective_df_, direct.effective_df_, rtol=0, atol=0.9)
    exact = direct.predict(rest, return_std=True)[1]
    # Deviations come from the rows of the preconditioner: half of the rows here, then all.
    assert np.abs(stepwise.predict(rest, return_std=True)[1] / exact - 1).mean() < 0.01
    monkeypatch.setattr(least_squares, "ROWS_PER_CENTRE", 10)
    from_all, alone = (KernelRidge(threads=threads, **options).fit(X, Y, sample_weight=weights) for threads in (3, 1))
    assert from_all.fit_.iterations <= 3
    assert_close(from_all.predict(rest), alone.predict(rest), condition=alone.fit_.condition_number, share=SAME_MACHINE)
    np.testing.assert_allclose(from_all.predict(rest, return_std=True)[1], exact, rtol=1e-6)
    from_all.save(tmp_path / "m")
    loaded = KernelRidge.load(tmp_path / "m").predict(rest, return_std=True)
    np.testing.assert_allclose(loaded, from_all.predict(rest, return_std=True), rtol=1e-12)


@pytest.mark.parametrize(
    ("features", "rows", "direct"),
    [
        (None, 10**6, True),
        ("nystroem:1000", 19_000, True),
        ("nystroem:1000", 19_001, False),
        # What is taken unasked where a matrix is too much: less is held, and more landmarks are no more work.
        ("nystroem:2000", 4_933, False),
        ("nystroem:100", 200_000, True),
        ("nystroem:100", 200_001, False),
        ("nystroem:200", 300_000, False),
        # Random waves have no other way, and a system of no more features than rows is none.
        ("fourier:200", 300_000, True),
        ("fourier:1000", 19_001, False),
        ("nystroem:9000", 2668, True),
        ("nystroem:9000", 2669, False),
    ],
)
def test_many_values_of_features_are_not_held(features, rows, direct):
    assert ridge_fit.is_direct(range(rows), features) is direct


def test_progress_of_choosing_and_of_the_steps_is_one(monkeypatch):
    X, y = wave(900)
    monkeypatch.setattr(ridge_fit, "DIRECT", 0)
    monkeypatch.setattr(ridge_fit, "CHOOSING_ROWS", 100)
    monkeypatch.setattr(least_squares, "ROWS_PER_CENTRE", 2)
    told = []
    result = train_ridge(
        np.column_stack([X, y]), "x3", features="nystroem:40", threads=1, progress=lambda *one: told.append(one)
    )
    # For very many rows lambda is chosen on some.
    assert result.grid.n_rows == 100
    shares = [done / total for done, total in told]
    assert len(shares) > 12
    assert shares == sorted(shares)
    assert 0 < shares[0] < 1 / 3
    assert 1 / 3 < shares[-1] <= 1


RNG = np.random.default_rng(0)
HALF = RNG.normal(size=(40, 40))
SYSTEM = HALF @ HALF.T + 0.1 * np.eye(40)
INVERSE, DIAGONAL = np.linalg.inv(SYSTEM), SYSTEM.diagonal()[:, None]


@pytest.mark.parametrize(
    ("precondition", "steps", "units"),
    [
        (lambda x: x / DIAGONAL, range(2, 201), [1.0, 1e6, 1e-6]),
        (lambda x: INVERSE @ x, [1], [1.0, 1.0, 1.0]),
        (lambda x: x, [0], [0.0, 0.0, 0.0]),
    ],
    ids=["diagonal", "perfect", "nothing to do"],
)
def test_several_systems_are_solved_at_once(precondition, steps, units):
    right = RNG.normal(size=(40, 3))
    solved, taken, converged = least_squares.conjugate_gradients(lambda x: SYSTEM @ x, precondition, right * units)
    assert (taken in steps, converged) == (True, True)
    assert (np.abs(SYSTEM @ solved - right * units) <= 1e-5 * np.array(units)).all()


def test_more_rows_than_memory_bears_are_refused_before_anything_is_computed(monkeypatch):
    X, y = wave(200)
    monkeypatch.setattr(ridge_fit, "MEMORY", 10**6)
    error = raises(UndecidedError, "undecided.memory", lambda: KernelRidge().fit(X, y))
    assert "features='nystroem" in error.hint
    monkeypatch.setattr(ridge_fit, "DIRECT", 0)
    monkeypatch.setattr(ridge_fit, "MEMORY", 10**9)
    error = raises(UndecidedError, "undecided.memory", lambda: KernelRidge(features="fourier:50").fit(X, y))
    assert error.message == "fourier:50 is too much for 200 rows"


def searched(kernel, centres, weights, start):
    """Return pre-images that are looked for from `start` on, and from the first centres."""
    scores, of_centres = np.zeros((len(weights), 1)), np.zeros((len(centres), 1))
    search = PreImageSearch(parse_kernel(kernel), Points.of(centres))
    return search.find(weights, scores, of_centres, Engine(1), Points.of(start))


@pytest.mark.parametrize(("weights", "settles"), [([-1.0, -0.5], False), ([1.0, -0.5], True)])
def test_where_all_weights_repel_the_best_place_is_given_and_said_not_to_have_settled(weights, settles):
    found = searched("gaussian(1)", np.array([[0.0], [5.0]]), np.array([weights]), np.array([[5.0]]))
    assert found.converged.all() == settles
    # Of places that all repel, the one where the sum is least below 0.
    np.testing.assert_allclose(found.points.numeric, [[0.0]] if settles else [[5.0]], rtol=0, atol=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_rounding_decides_nothing(seed):
    off = np.random.default_rng(seed).choice([-1e-15, 0.0, 1e-15], 6)
    scores = np.array([0.5, 0.3, 0.3, 0.3, 0.4, 0.9]) * (1 + off)
    assert smoothest(scores, [np.array([9, 1, 2, 2, 9, 9]), np.array([9, 9, 1, 2, 9, 9])]) == 3
    axis = np.array([0.1, -0.7, 0.7, -0.7, 0.2, 0.7]) * (1 + off)
    assert largest_entries(np.column_stack([axis, -axis])).tolist() == [1, 1]
    found = largest_first(np.array([[2.0, 5.0, 2.0, 5.0, 3.0, 2.0]]) * (1 + off), 4, 1e-10)
    assert found.tolist() == [[1, 3, 4, 0]]
    level = levelled(np.array([7.0, -7.0, 7.0, 0.0, -7.0, 1e-3]) + off)
    assert [len({*level[[0, 2]]}), len({*level[[1, 4]]}), len({*level})] == [1, 1, 4]


def test_differences_that_are_no_rounding_decide():
    assert smoothest(np.array([0.3, 0.3 * (1 - 1e-8)]), [np.array([2, 1])]) == 1
    assert smoothest(np.array([-5.0, -6.0, -6.0]), [np.array([3.0, 2.0, 1.0])]) == 1
    assert largest_entries(np.array([[0.7], [-0.7 * (1 + 1e-6)]])).tolist() == [1]
    assert largest_first(np.array([[1.0, 1.0 + 1e-9]]), 2, 1e-10).tolist() == [[1, 0]]
    for values in ([1.0, 1.0 + 1e-9], [np.inf, -np.inf, np.inf], []):
        assert levelled(np.array(values)).tolist() == values


def test_conjugate_gradients_that_have_not_converged_are_told(capfdbinary, monkeypatch):
    for module, name, value in (
        (ridge_fit, "DIRECT", 0),
        (least_squares, "STEPS", 1),
        (least_squares, "ROWS_PER_CENTRE", 1),
    ):
        monkeypatch.setattr(module, name, value)
    data, given = ROOT / "sample_data" / "machines.csv", "--features nystroem:50 --lambda 0.1 --bandwidth 2"
    outcome = run_here(capfdbinary, "ridge", data, "--target", "wear_um", *given.split())
    assert outcome.code == 0
    told = " ".join(outcome.out.split())
    for text in (
        "1 step of conjugate gradients, not converged",
        "by generalised cross-validation",
        "conjugate gradients stopped after 1 steps before they had converged",
        "leave-one-out of 300 rows is not computed with conjugate gradients",
    ):
        assert text in told
