"""Slow references for support vector solvers: everything from the dense matrix, by loops or by the book."""

import numpy as np


def certificate(K, problem, solution):
    """Primal and dual objective and the relative gap, from scratch."""
    beta = solution.coefficients
    a = problem.signs * beta
    f = K @ beta
    primal = 0.5 * float(beta @ f) + solution.intercept * problem.total
    for i in range(len(problem)):
        slack = problem.margins[i] - problem.signs[i] * (f[i] + solution.intercept)
        primal += problem.costs[i] * max(slack, 0.0)
    dual = float(problem.margins @ a) - 0.5 * float(beta @ f)
    return primal, dual, (primal - dual) / max(abs(primal), np.finfo(float).tiny)


def coordinate_ascent(K, problem, *, tolerance=1e-11, steps=200_000):
    """The dual optimum by moving the pair of rows that contradict one another most, one pair at a time."""
    y, C, o = problem.signs, problem.costs, problem.margins
    high = np.where(y > 0, C, 0.0)
    low = high - C
    beta = np.zeros(len(y))
    left = problem.total
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
    return beta


def dual_objective(K, problem, beta):
    """What coordinate ascent maximises."""
    return float(problem.margins @ (problem.signs * beta) - 0.5 * beta @ K @ beta)


def primal_of(K, problem, beta, intercept):
    """The primal objective at given coefficients and intercept."""
    slack = problem.margins - problem.signs * (K @ beta + intercept)
    return float(0.5 * beta @ K @ beta + problem.costs @ np.maximum(slack, 0) + intercept * problem.total)
