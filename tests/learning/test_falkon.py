"""Preconditioned conjugate gradients, and the regression on centres that they solve."""

import numpy as np
import pytest
from tolerances import SAME_MACHINE, assert_close

from kerntest.engines.engine import Engine
from kerntest.learning.solvers.falkon import centre_ridge, conjugate_gradients


def problem(n=300, m=30, seed=0):
    """Return kernel values of rows and centres, features of the centres' kernel, targets and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))

    def gaussian(A, B):
        return np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2) / 2)

    values, vectors = np.linalg.eigh(gaussian(X[:m], X[:m]))
    kept = values > 1e-10 * values[-1]
    projection = vectors[:, kept] / np.sqrt(values[kept])
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * rng.normal(size=(n, 2)) + 5.0
    return gaussian(X, X[:m]), projection, Y, rng.uniform(0.5, 2.0, n)


def test_several_systems_are_solved_at_once():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 40))
    A = A @ A.T + 0.1 * np.eye(40)
    units = np.array([1.0, 1e6, 1e-6])
    right = rng.normal(size=(40, 3)) * units
    diagonal = A.diagonal()[:, None]
    solved, steps, converged = conjugate_gradients(lambda x: A @ x, lambda x: x / diagonal, right)
    assert converged
    assert 1 < steps <= 200
    np.testing.assert_allclose(A @ solved / units, right / units, rtol=0, atol=1e-5)


def test_a_perfect_preconditioner_takes_one_step():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 20))
    A = A @ A.T + np.eye(20)
    inverse = np.linalg.inv(A)
    solved, steps, converged = conjugate_gradients(lambda x: A @ x, lambda x: inverse @ x, rng.normal(size=(20, 4)))
    assert (steps, converged) == (1, True)
    assert np.isfinite(solved).all()


def test_nothing_on_the_right_is_nothing_to_do():
    solved, steps, converged = conjugate_gradients(lambda x: x, lambda x: x, np.zeros((5, 2)))
    assert (steps, converged) == (0, True)
    assert not solved.any()


@pytest.mark.parametrize("threads", [1, 3])
def test_the_regression_on_centres_is_the_dense_one(threads):
    K, projection, Y, weights = problem()
    found = centre_ridge(
        lambda rows: K[rows],
        projection,
        targets=Y,
        weights=weights,
        lambda_=0.3,
        engine=Engine(threads),
        seed=0,
    )
    Z = K @ projection
    total = weights.sum()
    mean = weights @ Z / total
    Zc, Yc = Z - mean, Y - weights @ Y / total
    M = Zc.T @ (weights[:, None] * Zc) + 0.3 * np.eye(len(mean))
    g = np.linalg.solve(M, Zc.T @ (weights[:, None] * Yc))
    np.testing.assert_allclose(found.weights, g, rtol=0, atol=1e-5 * np.abs(g).max())
    # Values of kernels are of order 1; features are their products with the projection.
    assert_close(found.mean, mean, scale=1.0, condition=np.linalg.norm(projection, 2), share=SAME_MACHINE)
    np.testing.assert_allclose(found.residuals, Yc - Zc @ g, rtol=0, atol=1e-6)
    hat = np.eye(len(mean)) - 0.3 * np.linalg.inv(M)
    # All rows serve the preconditioner here, so that the posterior is exact.
    np.testing.assert_allclose(found.posterior @ found.posterior.T, hat, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.degrees, 1 + np.trace(hat), rtol=0.1)
    assert found.converged


def test_any_number_of_threads_gives_the_same():
    K, projection, Y, weights = problem()
    options = {"targets": Y, "weights": weights, "lambda_": 0.3, "seed": 0}
    one, other = (
        centre_ridge(lambda rows: K[rows], projection, engine=Engine(threads), **options) for threads in (1, 2)
    )
    assert_close(one.weights, other.weights, condition=one.condition, share=SAME_MACHINE)
    assert one.degrees == pytest.approx(other.degrees, rel=SAME_MACHINE * one.condition)
    assert abs(one.steps - other.steps) <= 1
