"""Problems that solvers are tried on, what every solution of one must satisfy, and slow references by loops or by the book."""

import numpy as np

from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Gaussian
from kerntest.learning.solvers.hinge import solve_hinge
from kerntest.learning.solvers.problem import Problem
from kerntest.matrices.matrix import Repeated, matrix_of


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
    problem = Problem(np.repeat([1.0, -1.0], n), np.full(2 * n, float(C)), np.r_[z - epsilon, -z - epsilon])
    return Repeated(matrix, np.tile(np.arange(n), 2)), problem


def one_class(n, nu):
    return Problem(np.ones(n), np.ones(n), np.zeros(n), nu * n)


def two_clouds(n, d=2, seed=0, separation=1.5):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return rng.normal(size=(n, d)) + separation * y[:, None] / 2, y


def rings(n, d, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    r = np.linalg.norm(X, axis=1) + 0.3 * rng.normal(size=n)
    return X, np.where(r > np.median(r), 1.0, -1.0)


def coin(n, seed=5):
    return np.random.default_rng(seed).choice([-1.0, 1.0], n)


def dual_of(K, problem, beta):
    return float(problem.margins @ (problem.signs * beta) - 0.5 * beta @ K @ beta)


def primal_of(K, problem, beta, intercept):
    """The primal objective at given coefficients and intercept, its slack by a loop."""
    f, primal = K @ beta, 0.5 * float(beta @ K @ beta) + intercept * problem.total
    for i in range(len(problem)):
        primal += problem.costs[i] * max(problem.margins[i] - problem.signs[i] * (f[i] + intercept), 0.0)
    return primal


def best_dual(K, problem, *, tolerance=1e-9, steps=20_000):
    """The dual optimum by moving the pair of rows that contradict one another most, one pair at a time."""
    y, C, o = problem.signs, problem.costs, problem.margins
    high = np.where(y > 0, C, 0.0)
    low = high - C
    beta, left = np.zeros(len(y)), problem.total
    for i in range(len(y)):
        beta[i] = min(max(left, low[i]), high[i])
        left -= beta[i]
    assert abs(left) < 1e-9 * max(1.0, abs(problem.total))
    for _ in range(steps):
        v = y * o - K @ beta
        i = max((i for i in range(len(y)) if beta[i] < high[i]), key=lambda i: v[i], default=None)
        j = min((j for j in range(len(y)) if beta[j] > low[j]), key=lambda j: v[j], default=None)
        if i is None or j is None or v[i] - v[j] <= tolerance:
            break
        step = min((v[i] - v[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12), high[i] - beta[i], beta[j] - low[j])
        beta[i] += step
        beta[j] -= step
    return dual_of(K, problem, beta)


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
    primal, dual = primal_of(K, problem, beta, solution.intercept), dual_of(K, problem, beta)
    # What rounding of K beta does to the objectives.
    outputs = np.abs(K) @ np.abs(beta)
    rounding = 4e-16 * float(np.abs(beta) @ outputs + problem.costs @ outputs) + 1e-13 * size
    np.testing.assert_allclose(solution.objective, primal, rtol=1e-12, atol=rounding)
    np.testing.assert_allclose(solution.dual_objective, dual, rtol=1e-12, atol=rounding)
    if solution.gap is not None:
        floor = max(abs(primal), 1e-300)
        np.testing.assert_allclose(
            solution.gap, max((primal - dual) / floor, 0), rtol=0, atol=1e-12 + 2 * rounding / floor
        )
