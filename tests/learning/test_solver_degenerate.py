"""Data on which solvers break."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning.solver_problems import GivenMatrix, checked, classification, gaussian, one_class, two_clouds


@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_opposite_labels_on_equal_points(C):
    X = np.repeat(np.random.default_rng(0).normal(size=(150, 2)), 2, axis=0)
    checked(gaussian(X, 1.0), classification(np.tile([1.0, -1.0], 150), C))


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("places", [20, 120])
def test_every_point_ten_times_with_random_labels(places, C):
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(places, 2)), 10, axis=0)
    checked(gaussian(X, 1.0), classification(rng.choice([-1.0, 1.0], 10 * places), C))


@pytest.mark.parametrize("C", [1e-8, 1e-6])
def test_costs_so_small_that_all_of_the_smaller_class_is_bounded(C):
    X, y = two_clouds(300)
    y[:200] = -1.0
    solution = checked(gaussian(X, 0.5), classification(y, C))
    np.testing.assert_allclose(np.abs(solution.coefficients[y > 0]), C, rtol=1e-12)


@pytest.mark.parametrize("C", [1e6, 1e8])
def test_large_costs_on_classes_that_can_be_separated(C):
    X, y = two_clouds(300, separation=10)
    solution = checked(gaussian(X, 0.5), classification(y, C))
    assert (y * (solution.outputs + solution.intercept) > 1 - 1e-5).all()


def test_large_costs_on_classes_that_overlap():
    X, y = two_clouds(200)
    checked(gaussian(X, 0.5), classification(y, 1e6))


@pytest.mark.parametrize("few", [1, 2, 3])
@pytest.mark.parametrize("n", [400, 1300])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_few_rows_of_one_class(n, few, C):
    X, _ = two_clouds(n)
    y = -np.ones(n)
    y[:few] = 1.0
    solution = checked(gaussian(X, 0.5), classification(y, C))
    # Of 1,300 rows at most 70 systems; some 280 from a random subset without a row of that class.
    assert n < 1000 or solution.iterations < 150


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("labels", [[1, -1], [1, 1, -1], [1, -1, -1], [1, -1, 1, -1]])
def test_two_to_four_rows(labels, C):
    X = np.arange(len(labels), dtype=float)[:, None]
    checked(gaussian(X, 0.5), classification(labels, C))


@pytest.mark.parametrize("positive", [50, 30])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_constant_rows(positive, C):
    y = np.where(np.arange(100) < positive, 1.0, -1.0)
    solution = checked(gaussian(np.ones((100, 3)), 0.5), classification(y, C))
    assert -1 - 1e-6 <= solution.intercept <= 1 + 1e-6


@pytest.mark.parametrize("gamma", [1e-6, 1e-3, 1e2, 1e4])
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("n", [150, 1010])
def test_bandwidths_from_far_too_large_to_far_too_small(n, gamma, C):
    X, y = two_clouds(n)
    checked(gaussian(X, gamma), classification(y, C))


def test_rows_far_from_a_crowd():
    X, y = two_clouds(300)
    X[0] += 1e6
    checked(gaussian(X, 0.5), classification(y, 1.0))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 100.0])
def test_a_linear_kernel_that_is_not_scaled(scale):
    X, y = two_clouds(1500, d=3)
    X = scale * (X - X.mean(axis=0))
    checked(GivenMatrix(X @ X.T), classification(y, 1.0), factor=X)


def test_a_cubic_kernel():
    X, y = two_clouds(300)
    checked(GivenMatrix((1 + X @ X.T) ** 3), classification(y, 1.0))


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_random_labels(C):
    X, _ = two_clouds(600)
    y = np.random.default_rng(5).choice([-1.0, 1.0], 600)
    checked(gaussian(X, 0.5), classification(y, C))


def test_random_labels_with_large_costs_are_solved_the_careful_way():
    """What subsets say of the whole leads nowhere here."""
    rng = np.random.default_rng(1)
    matrix = gaussian(rng.normal(size=(610, 2)), 5.0)
    solution = checked(matrix, classification(rng.choice([-1.0, 1.0], 610), 1e4))
    # Some processors try the active set first.
    assert solution.method.endswith("Newton")


def test_a_matrix_of_zeros():
    checked(GivenMatrix(np.zeros((40, 40))), classification(np.where(np.arange(40) < 15, 1.0, -1.0), 2.0))


@pytest.mark.parametrize("nu", [1e-3, 1.0])
def test_the_one_class_problem_with_all_rows_or_a_share_of_one(nu):
    X, _ = two_clouds(60)
    checked(gaussian(X, 0.5), one_class(60, nu))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 40),
    repeats=st.sampled_from([1, 2, 5]),
    grid=st.booleans(),
    C=st.sampled_from([1e-6, 1e-3, 0.1, 1.0, 30.0, 1e4, 1e6]),
    gamma=st.sampled_from([1e-6, 1e-2, 0.5, 10.0, 1e4]),
    weighted=st.booleans(),
)
def test_small_problems_of_any_kind_are_certified(*, seed, n, repeats, grid, C, gamma, weighted):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, 2)).astype(float) if grid else rng.normal(size=(n, 2))
    X = np.repeat(X, repeats, axis=0)
    y = rng.choice([-1.0, 1.0], len(X))
    y[:2] = 1.0, -1.0
    costs = C * (rng.integers(1, 10, len(X)) if weighted else np.ones(len(X)))
    checked(gaussian(X, gamma), classification(y, costs))
