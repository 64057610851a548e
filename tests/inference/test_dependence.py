"""Both estimates of HSIC and the effect size against the sums over rows of the textbook."""

import functools
import itertools

import naive
import numpy as np
import pytest
from catalogue_kernels import GROUPED, UNBOUND, kernel_of, mixed_points, naive_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import assert_close

from kerntest.engines.local import LocalEngine
from kerntest.inference import dependence as module
from kerntest.inference.dependence import dependence, effect_size, factor, pair_sums
from kerntest.inference.invariants import centre
from kerntest.kernels.base import Points

ENGINE = LocalEngine(1)
TEXTS = [*UNBOUND, *GROUPED]
ROWS = 8


def found_for(text_x, text_y, n=ROWS, threads=1):
    kernels = kernel_of(text_x), kernel_of(text_y)
    return dependence(kernels[0], mixed_points(n, 1), kernels[1], mixed_points(n, 2), LocalEngine(threads))


@functools.cache
def oracle(text_x, text_y):
    K, L = naive_matrix(text_x, ROWS, 1), naive_matrix(text_y, ROWS, 2)
    return naive.hsic_unbiased(K, L), naive.hsic_biased(K, L), naive.hsic_effect(K, L)


def assert_textbook(found, expected, size):
    unbiased, biased, effect = expected
    assert_close(found.unbiased, unbiased, scale=size)
    assert_close(found.biased, biased, scale=size)
    # The root makes much of the last digits of a small correlation: compare what it is the root of.
    assert_close(found.effect_size**2, effect**2)


@pytest.mark.parametrize("text_y", ["laplacian(0.7)", "price, city: laplacian(2) + delta"])
@pytest.mark.parametrize("text_x", TEXTS)
def test_every_kernel_gives_the_numbers_of_the_textbook(text_x, text_y):
    size = np.abs(naive_matrix(text_x, ROWS, 1)).max()
    assert_textbook(found_for(text_x, text_y), oracle(text_x, text_y), size)


@pytest.mark.parametrize("text", TEXTS)
def test_it_does_not_matter_which_is_called_x(text):
    one = dependence(kernel_of(text), mixed_points(40, 1), kernel_of("delta"), mixed_points(40, 2), ENGINE)
    other = dependence(kernel_of("delta"), mixed_points(40, 2), kernel_of(text), mixed_points(40, 1), ENGINE)
    for name in ("unbiased", "biased", "effect_size"):
        assert_close(getattr(other, name), getattr(one, name))


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_the_fewest_rows(n):
    x, y = mixed_points(n, 3), mixed_points(n, 4)
    kernels = kernel_of("gaussian(1.5)"), kernel_of("polynomial(3)")
    K, L = kernels[0](x).tolist(), kernels[1](y).tolist()
    found = dependence(kernels[0], x, kernels[1], y, ENGINE)
    expected = naive.hsic_unbiased(K, L), naive.hsic_biased(K, L), naive.hsic_effect(K, L)
    assert_textbook(found, expected, np.abs(L).max())


@settings(max_examples=25, deadline=None)
@given(n=st.integers(4, 60), tile=st.integers(1, 70), seed=st.integers(0, 2**32 - 1))
def test_any_number_of_rows_and_tiles(n, tile, seed):
    x, y = mixed_points(n, seed), mixed_points(n, seed // 2)
    kernels = kernel_of("gaussian(1.5)"), kernel_of("linear")
    A, B = (naive.u_centred(kernel(side).tolist()) for kernel, side in zip(kernels, (x, y), strict=True))
    C, D = (naive.doubly_centred(kernel(side).tolist()) for kernel, side in zip(kernels, (x, y), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TILE", tile)
        found = dependence(kernels[0], x, kernels[1], y, ENGINE)
    assert_close(found.unbiased, naive.matrix_inner(A, B) / (n * (n - 3)))
    assert_close(found.biased, naive.matrix_inner(C, D) / n**2)


@pytest.mark.parametrize("n", [256, 257, 700])
@pytest.mark.parametrize("text", ["gaussian(1.5)", "polynomial(3)", "city: delta"])
def test_several_tiles_and_strips(text, n):
    x, y = mixed_points(n, 1), mixed_points(n, 2)
    kernels = kernel_of(text), kernel_of("laplacian(0.7)")
    H = np.eye(n) - 1 / n
    K, L = kernels[0](x), kernels[1](y)
    found = found_for(text, "laplacian(0.7)", n)
    assert_close(found.biased, np.vdot(H @ K @ H, L) / n**2, scale=np.abs(K).max())
    A, B = (np.where(np.eye(n, dtype=bool), 0.0, M) for M in (K, L))
    # The closed form of Song et al. (2012, eq. 5).
    closed = np.vdot(A, B) + A.sum() * B.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (A.sum(axis=0) @ B.sum(axis=0))
    assert_close(found.unbiased, closed / (n * (n - 3)), scale=np.abs(K).max())


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_nothing(threads):
    assert found_for("gaussian(1.5)", "linear", 900, threads) == found_for("gaussian(1.5)", "linear", 900)


def test_the_unbiased_estimate_is_zero_on_average_and_the_biased_one_is_not():
    """Over all pairings of five rows: E[HSIC_u] = 0 under independence, and tr A tr B / (n^2 (n - 1)) for HSIC_b."""
    x, y = mixed_points(5, 1), mixed_points(5, 2)
    kernels = kernel_of("gaussian(1.5)"), kernel_of("linear")
    found = [
        dependence(kernels[0], x, kernels[1], y.take(np.array(p)), ENGINE) for p in itertools.permutations(range(5))
    ]
    unbiased, biased = ([getattr(one, name) for one in found] for name in ("unbiased", "biased"))
    assert min(unbiased) < 0 < max(unbiased)
    assert abs(np.mean(unbiased)) < 1e-14
    A, B = (naive.doubly_centred(kernel(side).tolist()) for kernel, side in zip(kernels, (x, y), strict=True))
    assert min(biased) >= 0
    assert_close(np.mean(biased), np.trace(A) * np.trace(B) / (25 * 4))


def test_the_effect_of_a_variable_on_itself_is_one():
    x = mixed_points(50, 1)
    for text in ("gaussian(1.5)", "linear", "city: delta", "gaussian(1.5)*hamming(2)"):
        found = dependence(kernel_of(text), x, kernel_of(text), x, ENGINE)
        assert_close(found.effect_size, 1.0)


def test_the_effect_is_a_root_that_is_never_negative():
    assert effect_size(0.25, 1.0, 1.0) == 0.5
    assert effect_size(-0.25, 1.0, 1.0) == 0.0
    assert effect_size(1.0 + 1e-12, 1.0, 1.0) == 1.0
    assert effect_size(0.0, 0.0, 1.0) == 0.0
    assert effect_size(1e-30, -1e-30, 1.0) == 0.0


def test_factors():
    assert_close(factor(10, "biased"), 1 / 100)
    assert_close(factor(10, "unbiased"), 1 / 70)


@pytest.mark.parametrize("hollow", [True, False])
@pytest.mark.parametrize("n", [20, 300])
def test_squared_products_of_the_centred_entries(n, hollow):
    x, y = mixed_points(n, 1), mixed_points(n, 2)
    kernels = kernel_of("gaussian(1.5)"), kernel_of("polynomial(2)")
    centrings = tuple(
        centre(kernel, side, ENGINE, hollow=hollow)[0] for kernel, side in zip(kernels, (x, y), strict=True)
    )
    found = pair_sums(kernels[0], x, kernels[1], y, ENGINE, centrings=centrings)
    K, L = kernels[0](x), kernels[1](y)
    A, B = (np.array((naive.u_centred if hollow else naive.doubly_centred)(M.tolist())) for M in (K, L))
    off = ~np.eye(n, dtype=bool)
    assert_close(found.mixed_square, ((A * B) ** 2)[off].sum())
    assert_close(found.product, (K * L)[off].sum())
    assert_close([found.square_k, found.square_l], [(M[off] ** 2).sum() for M in (K, L)])
    for rows, M in ((found.rows_k, K), (found.rows_l, L)):
        assert_close(rows, M.sum(axis=1) - np.diag(M))


def test_columns_with_an_offset_keep_their_digits():
    """The U-centring subtracts sums: a linear kernel far from the origin is the hardest case."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = x + rng.normal(size=200)
    near, far = (
        dependence(kernel_of("linear"), Points.of(x + by), kernel_of("gaussian(1.5)"), Points.of(y), ENGINE)
        for by in (0.0, 1e3)
    )
    np.testing.assert_allclose([far.unbiased, far.biased], [near.unbiased, near.biased], rtol=1e-7)
