"""Both estimates, the effect size and the standard error by direct sums."""

import math

import naive
import numpy as np
import pytest
from tolerances import SAME_MACHINE, assert_close

from kerntest.engines.local import LocalEngine
from kerntest.inference.statistic import discrepancy
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel
from kerntest.matrices import matrix as sweeping
from kerntest.matrices.matrix import Centring, sweep

ENGINE = LocalEngine(1)
SIZES = [(2, 2), (2, 3), (3, 2), (2, 20), (20, 2), (11, 12), (9, 20)]
KERNELS = ["gaussian(0.7)", "laplacian(2)", "linear", "polynomial(2)", "normalise(polynomial(2))", "matern(1, 2.5)"]


def data(n_x, n_y, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat([1, 0], [n_x, n_y]).astype(np.uint8))
    return Points.of(rng.normal(size=(n_x + n_y, 3)) + shift * labels[:, None]), labels


@pytest.mark.parametrize("text", KERNELS)
@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
def test_both_estimates_are_the_naive_ones(n_x, n_y, text):
    points, labels = data(n_x, n_y)
    kernel = parse_kernel(text)
    K = kernel(points).tolist()
    found = discrepancy(kernel, points, labels, ENGINE)
    size = np.abs(K).max()
    assert_close(found.unbiased, naive.mmd2_unbiased(K, labels), scale=size)
    assert_close(found.biased, naive.mmd2_biased(K, labels), scale=size)


@pytest.mark.parametrize("text", KERNELS)
@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_effect_size_by_explicit_u_centred_matrices(n_x, n_y, text, shift):
    points, labels = data(n_x, n_y, shift=shift)
    kernel = parse_kernel(text)
    A = naive.u_centred(kernel(points).tolist())
    B = naive.u_centred(naive.label_gram(labels.tolist()))
    scale = math.sqrt(naive.matrix_inner(A, A) * naive.matrix_inner(B, B))
    expected = math.sqrt(min(max(naive.matrix_inner(A, B) / scale, 0.0), 1.0))
    found = discrepancy(kernel, points, labels, ENGINE).effect_size
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_effect_size_grows_from_0_to_1():
    sizes = []
    for shift in (0.0, 0.5, 1.0, 3.0, 30.0):
        points, labels = data(60, 60, shift=shift)
        sizes.append(discrepancy(parse_kernel("gaussian(3)"), points, labels, ENGINE).effect_size)
    assert sizes == sorted(sizes)
    assert 0 <= sizes[0] < 0.3
    # Two far clusters: the kernel matrix is nearly the label matrix.
    assert 0.8 < sizes[-1] <= 1
    cluster = Points.of(np.repeat([0.0, 50.0], 10))
    same = discrepancy(parse_kernel("gaussian(1)"), cluster, np.repeat([1, 0], 10).astype(np.uint8), ENGINE)
    assert_close(same.effect_size, 1.0)


def test_a_kernel_without_differences_has_no_effect():
    points, labels = data(5, 6)
    found = discrepancy(parse_kernel("3"), points, labels, ENGINE)
    assert_close([found.unbiased, found.biased, found.effect_size], [0.0] * 3, scale=1.0)


def test_the_standard_error_is_that_of_repeated_samples():
    """Simulated: the spread of MMD over 150 data sets with a clear difference, within 15 % of the average error."""
    rng = np.random.default_rng(3)
    labels = np.repeat([1, 0], [80, 120]).astype(np.uint8)
    kernel = parse_kernel("gaussian(1)")
    found = [discrepancy(kernel, Points.of(rng.normal(size=200) + 1.0 * labels), labels, ENGINE) for _ in range(150)]
    spread = np.std([math.sqrt(one.unbiased) for one in found])
    errors = np.mean([one.standard_error for one in found])
    # The spread of 150 values has a standard error of 6 %; the formula is the leading term in 1/n.
    np.testing.assert_allclose(errors, spread, rtol=0.15)


def test_no_standard_error_of_a_negative_estimate():
    seeds = (seed for seed in range(50) if discrepancy(parse_kernel("linear"), *data(9, 9, seed), ENGINE).unbiased < 0)
    found = discrepancy(parse_kernel("linear"), *data(9, 9, next(seeds)), ENGINE)
    assert found.unbiased < 0
    assert math.isnan(found.standard_error)
    assert found.effect_size == 0.0


@pytest.mark.parametrize("hollow", [None, False, True])
@pytest.mark.parametrize("n", [3, 16, 17, 90])
def test_sweep_by_dense_algebra(n, hollow, monkeypatch):
    """With small tiles, so that all kinds of tiles and, at 90 rows, several tiles a strip occur."""
    monkeypatch.setattr(sweeping, "TILE", 8 if n < 90 else 1)
    rng = np.random.default_rng(n)
    points, kernel = Points.of(rng.normal(size=(n, 2))), parse_kernel("polynomial(2)")
    vectors, weights = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    M = kernel(points)
    centring = None
    if hollow is not None:
        centring = Centring(rng.normal(size=n), 0.3, hollow=hollow)
        M = M - centring.row[:, None] - centring.row[None, :] + centring.grand
    if hollow is not False:
        np.fill_diagonal(M, 0.0)
    found = sweep(kernel, points, vectors, ENGINE, centring=centring, square_vectors=weights, cubes=True)
    assert_close(found.product, M @ vectors)
    assert_close(found.total_square, (M**2).sum())
    assert_close(found.squares, M**2 @ weights)
    assert_close(found.cubes, (M**3).sum())
    plain = sweep(kernel, points, vectors, ENGINE, centring=centring)
    assert_close(plain.product, found.product, share=SAME_MACHINE)
    assert plain.squares.shape == (n, 0)
    assert plain.cubes == 0.0


def test_sweep_is_the_same_on_any_number_of_threads():
    points, kernel, vectors = data(300, 400)[0], parse_kernel("gaussian(1)"), np.ones((700, 2))
    one, three = (
        sweep(kernel, points, vectors, LocalEngine(threads), square_vectors=vectors, cubes=True) for threads in (1, 3)
    )
    assert_close(one.product, three.product, share=SAME_MACHINE)
    assert_close(one.squares, three.squares, share=SAME_MACHINE)
    assert_close([one.total_square, one.cubes], [three.total_square, three.cubes], share=SAME_MACHINE)
