"""The moments of <A, B> over all relabellings against all relabellings."""

import itertools
import math

import naive
import numpy as np
import pytest
from tolerances import SAME_MACHINE, STATISTIC, assert_close
from two_samples import sample_of

from kerntest.engines.local import LocalEngine
from kerntest.inference.family import Family
from kerntest.inference.nulls import invariants
from kerntest.inference.nulls.invariants import centre, kernel_invariants, label_invariants
from kerntest.inference.nulls.moments import (
    Moments,
    moments_p_value,
    permutation_moments,
)
from kerntest.inference.relabelling.permuted_blocks import TwoSamples
from kerntest.inference.sides import Options
from kerntest.inference.statistic import label_matrix
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel

ENGINE = LocalEngine(1)
ESTIMATORS = ("unbiased", "biased")
# The diagonal of the last three is not constant.
KERNELS = ["gaussian(0.8)", "laplacian(1.5)", "linear", "polynomial(2)", "exponential(0.5) + gaussian(1)"]


def points_of(n, seed=1):
    return Points.of(np.random.default_rng(seed).normal(size=(n, 2)))


def invariants_of(kernel, points, estimator):
    return kernel_invariants(kernel, points, ENGINE, hollow=estimator == "unbiased", seed=0)


def brute_invariants(M):
    """Return the invariants of a symmetric matrix by their definitions."""
    M = np.asarray(M)
    d = np.diag(M)
    return {
        "trace": d.sum(),
        "trace_square": (M**2).sum(),
        "diagonal_square": (d**2).sum(),
        "diagonal_cube": (d**3).sum(),
        "diagonal_with_square": d @ np.diag(M @ M),
        "diagonal_form": d @ M @ d,
        "trace_cube": np.trace(M @ M @ M),
        "entry_cubes": (M**3).sum(),
    }


def assert_invariants(found, M):
    size = np.abs(np.asarray(M)).max() ** 3 * len(M) ** 2
    for name, value in brute_invariants(M).items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=STATISTIC, atol=STATISTIC * size, err_msg=name)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("text", KERNELS)
@pytest.mark.parametrize(("n_x", "n_y"), [(2, 2), (2, 3), (3, 3), (2, 4), (4, 2), (3, 4), (5, 2)])
def test_equal_all_permutations(n_x, n_y, text, estimator):
    n = n_x + n_y
    points, kernel = points_of(n), parse_kernel(text)
    A = naive.centred[estimator](kernel(points).tolist())
    B = naive.centred[estimator](naive.label_gram([1] * n_x + [0] * n_y))
    values = np.array(naive.permuted_inner_products(A, B))
    found = permutation_moments(
        invariants_of(kernel, points, estimator)[0], label_invariants(label_matrix(n_x, n_y, estimator)), n
    )
    size = np.abs(values).max()
    assert_close(found.mean, values.mean(), scale=size)
    assert_close(found.standard_deviation, values.std(), scale=size)
    skewness = np.mean((values - values.mean()) ** 3) / values.std() ** 3
    np.testing.assert_allclose(found.skewness, skewness, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_equal_all_splits_of_more_rows(estimator):
    """Permutations beyond 7 rows are too many; the splits that they make are not."""
    n_x, n_y = 5, 7
    n = n_x + n_y
    points, kernel = points_of(n), parse_kernel("polynomial(2)")
    K = kernel(points)
    label = label_matrix(n_x, n_y, estimator)
    statistic = naive.mmd2[estimator]
    values = []
    for members in itertools.combinations(range(n), n_x):
        labels = [int(i in members) for i in range(n)]
        values.append(statistic(K.tolist(), labels) / label.factor)
    values = np.array(values)
    found = permutation_moments(invariants_of(kernel, points, estimator)[0], label_invariants(label), n)
    assert_close(found.mean, values.mean(), scale=values.std())
    assert_close(found.standard_deviation, values.std())
    skewness = np.mean((values - values.mean()) ** 3) / values.std() ** 3
    assert_close(found.skewness, skewness)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("n_x", "n_y"), [(2, 2), (2, 3), (3, 2), (2, 9), (9, 2), (7, 7), (4, 31), (40, 23)])
def test_label_invariants_by_brute_force(n_x, n_y, estimator):
    B = naive.centred[estimator](naive.label_gram([1] * n_x + [0] * n_y))
    assert_invariants(label_invariants(label_matrix(n_x, n_y, estimator)), B)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("text", KERNELS)
@pytest.mark.parametrize("n", [5, 140])
def test_kernel_invariants_by_brute_force(n, text, estimator):
    points, kernel = points_of(n), parse_kernel(text)
    K = kernel(points)
    A = naive.centred[estimator](K.tolist())
    found, exact = invariants_of(kernel, points, estimator)
    assert exact
    assert_invariants(found, A)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_centring(estimator):
    points, kernel = points_of(20), parse_kernel("polynomial(2)")
    K = kernel(points)
    centring, diagonal = centre(kernel, points, ENGINE, hollow=estimator == "unbiased")
    A = K - centring.row[:, None] - centring.row[None, :] + centring.grand
    if centring.hollow:
        np.fill_diagonal(A, 0.0)
    assert_close(A, naive.centred[estimator](K.tolist()))
    assert_close(diagonal, np.diag(A))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("text", ["gaussian(0.2)", "gaussian(1.5)", "laplacian(0.5)", "polynomial(2)"])
def test_the_stochastic_trace_is_close(text, estimator, monkeypatch):
    points, kernel = points_of(600), parse_kernel(text)
    exact, was_exact = invariants_of(kernel, points, estimator)
    monkeypatch.setattr(invariants, "EXACT_TRACE_ROWS", 100)
    monkeypatch.setattr(invariants, "low_rank", lambda *_: None)
    estimated, is_exact = invariants_of(kernel, points, estimator)
    assert was_exact
    assert not is_exact
    np.testing.assert_allclose(estimated.trace_cube, exact.trace_cube, rtol=0.01)
    for name in ("trace", "trace_square", "diagonal_square", "diagonal_cube", "diagonal_form", "entry_cubes"):
        assert_close(getattr(estimated, name), getattr(exact, name))


def test_the_stochastic_trace_repeats_with_its_seed(monkeypatch):
    monkeypatch.setattr(invariants, "EXACT_TRACE_ROWS", 100)
    points, kernel = points_of(300), parse_kernel("gaussian(0.2)")

    def trace(seed, threads):
        found, _ = kernel_invariants(kernel, points, LocalEngine(threads), hollow=True, seed=seed)
        return found.trace_cube

    assert_close(trace(0, 2), trace(0, 1), share=SAME_MACHINE)
    assert trace(0, 1) != trace(1, 1)


@pytest.mark.parametrize(("n_x", "n_y", "p", "estimator"), [(30, 30, 2, "biased"), (20, 80, 1, "unbiased")])
def test_the_curve_is_close_to_a_long_permutation_run(n_x, n_y, p, estimator):
    n = n_x + n_y
    rng = np.random.default_rng(5)
    points, kernel = Points.of(rng.normal(size=(n, p))), parse_kernel(f"gaussian({math.sqrt(p)})")
    labels = np.repeat([1, 0], [n_x, n_y]).astype(np.uint8)
    label = label_matrix(n_x, n_y, estimator)
    options = Options(estimator, "permutation", 40_000, 0.05, "none", 1, "random")
    values = (
        TwoSamples(options, LocalEngine(2), None, sample_of(points, labels))
        .relabelled(Family(((kernel,),)), 40_000)
        .sums[0]
    )
    curve = permutation_moments(invariants_of(kernel, points, estimator)[0], label_invariants(label), n)
    np.testing.assert_allclose(values.mean(), curve.mean, rtol=0, atol=6 * values.std() / math.sqrt(len(values)))
    np.testing.assert_allclose(values.std(), curve.standard_deviation, rtol=0.02)
    for level, apart in ((0.3, 0.03), (0.05, 0.04), (0.01, 0.08), (0.001, 0.15)):
        found = moments_p_value(np.quantile(values, 1 - level), curve)
        assert abs(math.log10(found / level)) < apart


def test_the_p_value_is_never_zero_however_far_out():
    for skewness in (0.0, 0.5, 2.0):
        curve = Moments(0.0, 1.0, skewness)
        far = [moments_p_value(value, curve) for value in (10.0, 40.0, 1e3, 1e6, 1e12)]
        assert all(0 < p < 1e-3 for p in far)
        assert far == sorted(far, reverse=True)
    assert moments_p_value(-100.0, Moments(0.0, 1.0, 0.5)) == 1.0
    assert_close(moments_p_value(7.0, Moments(3.0, 4.0, 0.0)), 0.15865525393145707)


def test_values_whose_cubes_are_no_floats_have_moments():
    """Rows 24 bandwidths apart: kernel values of 1e-125, whose sums have a variance of 1e-250."""
    far = Points.of(np.array([0.0, 24.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0]))
    a, _ = invariants_of(parse_kernel("gaussian(1)"), far, "unbiased")
    b, _ = invariants_of(parse_kernel("gaussian(1)"), points_of(8), "unbiased")
    found = permutation_moments(a, b, 8)
    assert 0 < found.standard_deviation < 1e-120
    assert math.isfinite(found.skewness)
