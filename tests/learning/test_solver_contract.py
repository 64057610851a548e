"""What every solution must satisfy, whatever way the solver went."""

import numpy as np
import pytest
from learning.naive_qp import coordinate_ascent, dual_objective, primal_of
from learning.solver_problems import (
    GivenMatrix,
    check_claims,
    checked,
    classification,
    dense,
    gaussian,
    one_class,
    regression,
    two_clouds,
)

from kerntest.learning.solvers.active_set import single_changes
from kerntest.learning.solvers.hinge import solve_hinge
from kerntest.learning.solvers.problem import Problem, feasible
from kerntest.learning.solvers.systems import Counter, DenseSystem

COSTS = [1e-6, 0.1, 1.0, 100.0, 1e5]


def rings(n, d, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    r = np.linalg.norm(X, axis=1) + 0.3 * rng.normal(size=n)
    return X, np.where(r > np.median(r), 1.0, -1.0)


@pytest.mark.parametrize("C", COSTS)
@pytest.mark.parametrize("n", [30, 150, 700])
def test_claims_hold_on_two_clouds_in_the_plane(n, C):
    X, y = two_clouds(n)
    checked(gaussian(X, 0.5), classification(y, C))


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(("n", "d"), [(250, 20), (1300, 20), (1300, 6)])
def test_claims_hold_where_the_matrix_has_full_rank(n, d, C):
    X, y = rings(n, d)
    checked(gaussian(X, 1 / d), classification(y, C))


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_claims_hold_where_a_factor_of_low_rank_leads_the_way(C):
    X, y = two_clouds(2000, separation=2.5)
    solution = checked(gaussian(X, 0.1), classification(y, C))
    assert solution.method == "factor"


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_claims_hold_where_single_precision_leads_the_way(C):
    X, y = rings(1500, 30)
    solution = checked(gaussian(X, 1 / 30), classification(y, C))
    assert solution.method == "active set"


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_claims_hold_where_entries_are_fetched_and_not_made_again(C):
    # Up to 1,500 rows the whole matrix is held.
    X, y = rings(1700, 20)
    solution = checked(GivenMatrix(dense(gaussian(X, 1 / 20))), classification(y, C))
    assert solution.method == "active set"


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_claims_hold_where_levels_lead_the_way(C):
    rng = np.random.default_rng(3)
    X = 4 * rng.random((1200, 2))
    y = np.where(np.floor(X).sum(axis=1) % 2, 1.0, -1.0)
    solution = checked(gaussian(X, 5.0), classification(y, C))
    assert solution.method == "levels"


@pytest.mark.parametrize("n", [60, 300, 1200])
def test_a_tighter_tolerance_is_kept_too(n):
    X, y = two_clouds(n)
    checked(gaussian(X, 0.5), classification(y, 1.0), tolerance=1e-9)


@pytest.mark.parametrize(
    ("n", "nu"), [(40, 0.01), (40, 0.1), (40, 0.5), (40, 0.9), (500, 0.1), (500, 0.9), (1500, 0.01), (1500, 0.5)]
)
def test_the_one_class_problem(n, nu):
    X, _ = two_clouds(n)
    solution = checked(gaussian(X, 0.5), one_class(n, nu))
    np.testing.assert_allclose(solution.coefficients.sum(), nu * n, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("n", [40, 400, 900])
def test_epsilon_regression(n, epsilon):
    rng = np.random.default_rng(n)
    X = np.sort(6 * rng.random((n, 1)), axis=0)
    matrix, problem = regression(gaussian(X, 0.5), np.sin(X[:, 0]) + 0.1 * rng.normal(size=n), 5.0, epsilon)
    solution = checked(matrix, problem)
    # The pair of rows of one case are not both in use.
    both = (solution.coefficients[:n] != 0) & (solution.coefficients[n:] != 0)
    assert epsilon == 0 or not both.any()


@pytest.mark.parametrize("n", [40, 400, 1500])
def test_unequal_costs(n):
    X, y = two_clouds(n)
    costs = np.where(y > 0, 10.0, 0.2) * (1 + np.arange(n) % 3)
    checked(gaussian(X, 0.5), classification(y, costs))


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
def test_an_exact_factor_of_few_columns(C):
    X, y = two_clouds(1500, d=4)
    X = X - X.mean(axis=0)
    solution = checked(GivenMatrix(X @ X.T), classification(y, C), factor=X)
    assert solution.method == "exact factor"


def test_every_seed_gives_the_same_solution_within_the_gap():
    X, y = rings(1300, 5)
    problem = classification(y, 3.0)
    duals = [checked(gaussian(X, 0.2), problem, seed=seed).dual_objective for seed in (0, 0, 1, 2)]
    np.testing.assert_allclose(duals, duals[0], rtol=2e-6)


@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("n", [6, 17, 40])
def test_the_optimum_is_that_of_coordinate_ascent(n, C):
    X, y = two_clouds(n, seed=n)
    matrix, problem = gaussian(X, 0.7), classification(y, C)
    K = dense(matrix)
    reference = dual_objective(K, problem, coordinate_ascent(K, problem, tolerance=1e-9, steps=20_000))
    solution = checked(matrix, problem, tolerance=1e-9)
    np.testing.assert_allclose(solution.dual_objective, reference, rtol=1e-8)


def test_the_one_class_optimum_is_that_of_coordinate_ascent():
    X, _ = two_clouds(40)
    matrix, problem = gaussian(X, 0.7), one_class(40, 0.3)
    K = dense(matrix)
    reference = dual_objective(K, problem, coordinate_ascent(K, problem, tolerance=1e-9, steps=20_000))
    np.testing.assert_allclose(checked(matrix, problem, tolerance=1e-9).dual_objective, reference, rtol=1e-8)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_decision_values_are_those_of_scikit_learn(C):
    SVC = pytest.importorskip("sklearn.svm").SVC
    X, y = two_clouds(400)
    solution = checked(gaussian(X, 0.5), classification(y, C), tolerance=1e-9)
    peer = SVC(C=C, gamma=0.5, tol=1e-10).fit(X, y)
    ours = solution.outputs + solution.intercept
    # Its matrix is in single precision.
    np.testing.assert_allclose(ours, peer.decision_function(X), rtol=0, atol=1e-5 * max(1, C))
    free = np.abs(peer.dual_coef_[0]) < C
    assert set(peer.support_[free]) <= set(np.flatnonzero(solution.coefficients))


def test_the_intercept_minimises_the_primal_objective():
    X, y = two_clouds(200)
    for C in (0.01, 1.0, 50.0):
        matrix, problem = gaussian(X, 0.5), classification(y, C)
        K = dense(matrix)
        solution = checked(matrix, problem)
        best = primal_of(K, problem, solution.coefficients, solution.intercept)
        for shift in (-0.1, -1e-4, 1e-4, 0.1):
            assert primal_of(K, problem, solution.coefficients, solution.intercept + shift) >= best * (1 - 1e-12)


def test_the_intercept_is_the_middle_of_its_interval_where_no_row_is_free():
    # Opposite labels on the same points: all at their cost, any b in [-1, 1] is as good.
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 2, axis=0)
    solution = checked(gaussian(X, 1.0), classification(np.tile([1.0, -1.0], 20), 0.3))
    np.testing.assert_allclose(np.abs(solution.coefficients), 0.3, rtol=1e-12)
    np.testing.assert_allclose(solution.intercept, 0.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("d", "kept"), [(2, 0), (2, 10_000), (30, 0), (30, 1_000_000)])
def test_little_memory_gives_a_solution_that_is_certified_or_says_that_it_is_not(kept, d):
    X, y = rings(1100, d)
    matrix, problem = gaussian(X, 1 / d), classification(y, 1.0)
    solution = solve_hinge(matrix, problem, kept_bytes=kept)
    check_claims(dense(matrix), problem, solution)
    assert solution.converged == (solution.gap <= 1e-6)


def test_rows_that_are_not_kept_are_made_again():
    X, y = rings(1100, 30)
    matrix, problem = gaussian(X, 1 / 30), classification(y, 1.0)
    enough = 8 * 1100 * 40
    solution = solve_hinge(matrix, problem, kept_bytes=enough)
    check_claims(dense(matrix), problem, solution)
    whole = checked(matrix, problem)
    assert solution.dual_objective <= whole.objective * (1 + 1e-12)
    np.testing.assert_allclose(solution.dual_objective, whole.dual_objective, rtol=1e-3)


def test_a_matrix_that_is_not_positive_semidefinite_is_refused_or_not_certified_wrongly():
    X, y = two_clouds(80)
    K = np.tanh(0.5 * X @ X.T - 1)
    with pytest.raises(np.linalg.LinAlgError):
        solve_hinge(GivenMatrix(K), classification(y, 100.0))


@pytest.mark.parametrize(("n", "factor"), [(150, 0.3), (150, 1.0), (150, 3.0), (1500, 0.3), (1500, 3.0)])
def test_a_start_from_other_costs_leads_to_the_same_optimum(n, factor):
    X, y = two_clouds(n)
    matrix = gaussian(X, 0.5)
    start = checked(matrix, classification(y, 1.0))
    cold = checked(matrix, classification(y, factor))
    warm = checked(matrix, classification(y, factor), start=start)
    np.testing.assert_allclose(warm.dual_objective, cold.dual_objective, rtol=2e-6)


def test_the_violation_is_that_of_the_worst_pair():
    X, y = two_clouds(60)
    matrix, problem = gaussian(X, 0.5), classification(y, 1.0)
    solution = checked(matrix, problem, tolerance=1e-9)
    v = problem.signs * problem.margins - solution.outputs
    beta = solution.coefficients
    high = np.where(y > 0, 1.0, 0.0)
    pairs = [v[i] - v[j] for i in range(60) if beta[i] < high[i] for j in range(60) if beta[j] > high[j] - 1]
    np.testing.assert_allclose(solution.violation, max(*pairs, 0.0), rtol=0, atol=1e-12)
    assert solution.violation < 1e-5


def test_a_problem_of_rows_keeps_its_total():
    problem = Problem(np.ones(4), np.ones(4), np.zeros(4), 2.0)
    part = problem.rows(np.array([0, 2]), 2.0)
    assert (len(part), part.total, list(part.costs)) == (2, 2.0, [2.0, 2.0])


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_changes_of_one_row_after_another_lead_to_the_optimum(C):
    X, y = two_clouds(40, separation=1.0)
    matrix, problem = gaussian(X, 0.5), classification(y, C)
    optimum = checked(matrix, problem)
    start = feasible(problem, 0.5 * optimum.coefficients)
    point = single_changes(DenseSystem(dense(matrix), problem, Counter()), start, ridge=1e-10, tolerance=1e-8)
    assert point.reached
    a = y * point.coefficients
    assert (a >= -1e-12 * C).all()
    assert (a <= C * (1 + 1e-12)).all()
    assert dual_objective(dense(matrix), problem, point.coefficients) == pytest.approx(
        optimum.dual_objective, rel=optimum.gap + 1e-8, abs=0
    )
