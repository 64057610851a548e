"""Problems that solvers are tried on, and what every solution of one must satisfy."""

import numpy as np
from learning.naive_qp import certificate

from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Gaussian
from kerntest.learning.solvers.hinge import solve_hinge
from kerntest.learning.solvers.problem import Problem
from kerntest.matrices.matrix import GivenMatrix, Repeated, matrix_of


def gaussian(X, gamma):
    return matrix_of(Gaussian((1 / (2 * gamma)) ** 0.5), Points.of(X))


def dense(matrix):
    return matrix.block(slice(None), slice(None))


def classification(y, C):
    y = np.asarray(y, dtype=float)
    return Problem(y, np.full(len(y), float(C)) if np.isscalar(C) else np.asarray(C, dtype=float), np.ones(len(y)))


def regression(matrix, z, C, epsilon):
    """Epsilon regression as two rows for each case, with its matrix."""
    n = len(z)
    signs = np.r_[np.ones(n), -np.ones(n)]
    problem = Problem(signs, np.full(2 * n, float(C)), np.r_[z - epsilon, -z - epsilon])
    return Repeated(matrix, np.r_[np.arange(n), np.arange(n)]), problem


def one_class(n, nu):
    return Problem(np.ones(n), np.ones(n), np.zeros(n), nu * n)


def two_clouds(n, d=2, seed=0, separation=1.5):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return rng.normal(size=(n, d)) + separation * y[:, None] / 2, y


def checked(matrix, problem, *, tolerance=1e-6, **options):
    """Solve, recompute every claim of the solution from the dense matrix, and return it."""
    solution = solve_hinge(matrix, problem, tolerance=tolerance, **options)
    check_claims(dense(matrix), problem, solution)
    assert solution.converged
    assert solution.gap <= tolerance
    return solution


def check_claims(K, problem, solution):
    beta = solution.coefficients
    a = problem.signs * beta
    assert (a >= 0).all()
    assert (a <= problem.costs).all()
    size = max(np.abs(beta).sum(), 1e-300)
    assert abs(beta.sum() - problem.total) <= 1e-12 * size
    np.testing.assert_allclose(solution.outputs, K @ beta, rtol=0, atol=1e-10 * size * np.abs(K).max())
    primal, dual, gap = certificate(K, problem, solution)
    # What rounding of K beta does to the objectives.
    outputs = np.abs(K) @ np.abs(beta)
    rounding = 4e-16 * float(np.abs(beta) @ outputs + problem.costs @ outputs) + 1e-13 * size
    np.testing.assert_allclose(solution.objective, primal, rtol=1e-12, atol=rounding)
    np.testing.assert_allclose(solution.dual_objective, dual, rtol=1e-12, atol=rounding)
    if solution.gap is not None:
        floor = max(abs(primal), 1e-300)
        np.testing.assert_allclose(solution.gap, max(gap, 0), rtol=0, atol=1e-12 + 2 * rounding / floor)


__all__ = [
    "GivenMatrix",
    "check_claims",
    "checked",
    "classification",
    "dense",
    "gaussian",
    "one_class",
    "regression",
    "two_clouds",
]
