"""Kernels whose matrix is not positive semi-definite."""

import numpy as np
import pytest
from learning.naive_qp import coordinate_ascent, dual_objective
from learning.solver_problems import (
    GivenMatrix,
    check_claims,
    classification,
    dense,
    gaussian,
    one_class,
    two_clouds,
)
from tolerances import SAME_MACHINE, assert_close

from kerntest.learning.solvers import problem as problems
from kerntest.learning.solvers.hinge import solve_hinge
from kerntest.learning.solvers.problem import solve_indefinite


def sigmoid(X):
    return GivenMatrix(np.tanh(0.5 * X @ X.T - 1))


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_a_stationary_point_of_the_sigmoid_kernel(C):
    X, y = two_clouds(150)
    matrix, problem = sigmoid(X), classification(y, C)
    assert np.linalg.eigvalsh(matrix.matrix).min() < -0.1
    solution = solve_indefinite(matrix, problem)
    check_claims(matrix.matrix, problem, solution)
    assert solution.converged
    assert solution.gap is None
    assert solution.violation <= 1.01e-3


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_on_a_positive_definite_matrix_it_finds_the_optimum(C):
    X, y = two_clouds(60)
    matrix, problem = gaussian(X, 0.7), classification(y, C)
    K = dense(matrix)
    reference = dual_objective(K, problem, coordinate_ascent(K, problem, tolerance=1e-9, steps=20_000))
    solution = solve_indefinite(matrix, problem, tolerance=1e-6)
    np.testing.assert_allclose(solution.dual_objective, reference, rtol=1e-6)
    np.testing.assert_allclose(solution.dual_objective, solve_hinge(matrix, problem).dual_objective, rtol=2e-6)


def test_a_sum_that_is_not_zero():
    X, _ = two_clouds(60)
    matrix, problem = gaussian(X, 0.7), one_class(60, 0.3)
    solution = solve_indefinite(matrix, problem, tolerance=1e-7)
    check_claims(dense(matrix), problem, solution)
    np.testing.assert_allclose(solution.dual_objective, solve_hinge(matrix, problem).dual_objective, rtol=2e-6)


def test_its_objective_on_the_sigmoid_kernel_is_not_far_below_that_of_scikit_learn():
    SVC = pytest.importorskip("sklearn.svm").SVC
    X, y = two_clouds(150)
    matrix, problem = sigmoid(X), classification(y, 1.0)
    peer = SVC(C=1.0, kernel="precomputed", tol=1e-6).fit(matrix.matrix, y)
    beta = np.zeros(150)
    beta[peer.support_] = peer.dual_coef_[0]
    solution = solve_indefinite(matrix, problem, tolerance=1e-6)
    # There are many stationary points.
    assert solution.dual_objective >= 0.95 * dual_objective(matrix.matrix, problem, beta)


def test_a_cache_of_two_rows_changes_nothing():
    X, y = two_clouds(80)
    once = solve_indefinite(sigmoid(X), classification(y, 1.0))
    again = solve_indefinite(sigmoid(X), classification(y, 1.0), kept_bytes=0)
    # Steps are the same, and what rounding adds is at most the size of the coefficients.
    assert_close(again.coefficients, once.coefficients, condition=once.iterations, share=SAME_MACHINE)


def test_few_steps_give_a_usable_solution_that_says_so(monkeypatch):
    monkeypatch.setattr(problems, "STEPS", 0)
    monkeypatch.setattr(problems, "LEAST_STEPS", 5)
    X, y = two_clouds(80)
    matrix, problem = sigmoid(X), classification(y, 1.0)
    solution = solve_indefinite(matrix, problem)
    assert not solution.converged
    assert solution.iterations == 5
    check_claims(matrix.matrix, problem, solution)


def test_the_least_sum_that_a_start_can_have_is_kept():
    X, _ = two_clouds(10)
    solution = solve_indefinite(gaussian(X, 0.5), one_class(10, 0.05))
    np.testing.assert_allclose(solution.coefficients.sum(), 0.5, rtol=1e-12)
