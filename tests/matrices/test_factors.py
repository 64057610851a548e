"""Incomplete Cholesky factors of kernel matrices against the matrices."""

import tracemalloc

import numpy as np
import pytest

from kerntest import parse_kernel
from kerntest.engines.engine import Engine
from kerntest.kernels.base import Points
from kerntest.matrices import factor as factors
from kerntest.matrices.factor import kernel_factor, pivoted_factor
from kerntest.matrices.matrix import KernelMatrix


def points_of(n, p=2, seed=0):
    return Points.of(np.random.default_rng(seed).normal(size=(n, p)))


def product(factor):
    return factor.columns @ factor.columns.T


@pytest.mark.parametrize("tolerance", [0.5, 1e-2, 1e-6, 1e-12])
def test_the_residual_is_what_is_missing_and_within_the_tolerance(tolerance):
    points, kernel = points_of(200), parse_kernel("gaussian(1)")
    K, factor = kernel(points), kernel_factor(kernel, points, tolerance=tolerance)
    missing = K - product(factor)
    assert factor.complete
    assert factor.residual <= tolerance * len(points)
    np.testing.assert_allclose(np.trace(missing), factor.residual, rtol=1e-6, atol=1e-13 * len(points))
    assert np.linalg.eigvalsh(missing).min() > -1e-12
    assert np.abs(missing).max() <= factor.residual + 1e-12


def test_too_few_columns_are_no_complete_factor():
    points, kernel = points_of(300), parse_kernel("gaussian(0.2)")
    factor = kernel_factor(kernel, points, most=100)
    assert factor.columns.shape == (300, 100)
    assert not factor.complete
    np.testing.assert_allclose(np.trace(kernel(points) - product(factor)), factor.residual, rtol=1e-10)


def test_the_kernel_matrix_is_never_formed(monkeypatch):
    kernel, shapes = parse_kernel("gaussian(1)"), []
    evaluate = type(kernel).evaluate

    def watched(self, pairs):
        shapes.append(pairs.shape)
        return evaluate(self, pairs)

    monkeypatch.setattr(type(kernel), "evaluate", watched)
    factor = kernel_factor(kernel, points_of(1000))
    assert factor.complete
    # Whole rows of pivots, and blocks among candidates.
    assert shapes.count((1, 1000)) == factor.columns.shape[1]
    assert max(rows * columns for rows, columns in shapes) <= 32**2


# Of two rows, 1 and -1, the first has k(x, x) = 0 but k(x, y) = -2.
def test_many_pivots_at_once_are_held_once():
    n, most = 5000, 300
    matrix = KernelMatrix(parse_kernel("gaussian(2)"), points_of(n, 4))
    told = matrix, 1e-2, most, np.arange(250)
    pivoted_factor(*told)
    tracemalloc.start()
    try:
        G = pivoted_factor(*told)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert G.shape[1] > 150
    # Beside the room for the first columns, which has no page then.
    assert peak < 1.5 * 8 * n * most


@pytest.mark.parametrize("rows", [points_of(100), Points.of(np.array([1.0, -1.0]))])
@pytest.mark.parametrize("text", ["polynomial(1, offset=-1)", "gaussian(1) + polynomial(1, gain=-1, offset=0)"])
def test_a_kernel_that_is_not_positive_definite_has_no_complete_factor(text, rows):
    factor = kernel_factor(parse_kernel(text), rows)
    assert not factor.complete
    assert np.isfinite(factor.columns).all()


def test_pivots_do_not_hang_on_rounding():
    left = np.array([0.5, 1.0, 0.2, 1.0, 0.5, 1.0, 0.5])
    for seed in range(10):
        off = np.random.default_rng(seed).choice([-1e-15, 0.0, 1e-15], 7)
        assert sorted(factors._largest(left * (1 + off), 1)) == [1]
        assert sorted(factors._largest(left * (1 + off), 2)) == [1, 3]
        assert sorted(factors._largest(left * (1 + off), 5)) == [0, 1, 3, 4, 5]
        assert sorted(factors._largest(left * (1 + off), 7)) == list(range(7))


@pytest.mark.parametrize(("text", "most"), [("fourier:4000", 0.05), ("nystroem:60", 1e-6)])
def test_products_of_features_are_near_the_kernel(text, most):
    points, kernel = points_of(60), parse_kernel("gaussian(1)")
    features = factors.make_features(text, kernel, points, 0)
    assert factors.feature_error(features, points, Engine(1), 0) < most
    Z = features(points, Engine(1))
    np.testing.assert_allclose(Z @ Z.T, kernel(points), rtol=0, atol=5 * most)
