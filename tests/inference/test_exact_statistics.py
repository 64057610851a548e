"""Both estimates and the effect size of both tests against sums over whole matrices, whichever way they are computed."""

import math

import naive
import numpy as np
import pytest
from tolerances import assert_close

from kerntest import hsic_test, mmd_test, parse_kernel

ESTIMATORS = ("unbiased", "biased")


def dense_hsic(K, L):
    """Return both estimates (Song et al. 2012, eq. 5; Gretton et al. 2008, eq. 4) and the effect size."""
    n = len(K)
    H = np.eye(n) - 1 / n
    hollow = [np.where(np.eye(n, dtype=bool), 0.0, M) for M in (K, L)]

    def inner(A, B):
        crossed = 2 / (n - 2) * (A.sum(axis=0) @ B.sum(axis=0))
        return np.vdot(A, B) + A.sum() * B.sum() / ((n - 1) * (n - 2)) - crossed

    unbiased = inner(*hollow)
    effect = unbiased / math.sqrt(inner(hollow[0], hollow[0]) * inner(hollow[1], hollow[1]))
    return unbiased / (n * (n - 3)), np.vdot(H @ K @ H, L) / n**2, max(effect, 0.0)


def rows(n, p, seed):
    return np.random.default_rng(seed).normal(size=(n, p))


def assert_hsic(x, y, kernel_x, kernel_y, expected=None, **options):
    result = hsic_test(x, y, kernel_x=kernel_x, kernel_y=kernel_y, scale="none", permutations=20, threads=2, **options)
    K, L = (parse_kernel(kernel)(side) for kernel, side in ((kernel_x, x), (kernel_y, y)))
    unbiased, biased, squared = expected or dense_hsic(K, L)
    size = np.abs(K).max() * np.abs(L).max()
    assert_close(result.hsic_unbiased, unbiased, scale=size)
    assert_close(result.hsic_biased, biased, scale=size)
    # The root makes much of the last digits of a small correlation: compare what it is the root of.
    assert_close(result.effect_size**2, squared, scale=1.0)
    return result


@pytest.mark.parametrize("n", [4, 5, 6, 7])
@pytest.mark.parametrize("text", ["gaussian(1.5)", "polynomial(3)", "linear"])
def test_hsic_of_the_fewest_rows_is_what_it_estimates(n, text):
    x, y = rows(n, 2, 3), rows(n, 1, 4)
    K, L = parse_kernel(text)(x).tolist(), parse_kernel("laplacian(0.7)")(y).tolist()
    expected = naive.hsic_unbiased(K, L), naive.hsic_biased(K, L), naive.hsic_effect(K, L) ** 2
    assert_hsic(x, y, text, "laplacian(0.7)", expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("n", "p", "kernels"),
    [
        (256, 3, ("gaussian(1.5)", "laplacian(0.7)")),
        (257, 3, ("polynomial(3)", "laplacian(0.7)")),
        (700, 2, ("gaussian(1.5)*laplacian(2)", "polynomial(2)")),
        (700, 1, ("gaussian(1.5)", "gaussian(0.7)")),
        (700, 1, ("gaussian(1.5) + 2*linear", "linear")),
        (2003, 3, ("gaussian(0.5)", "laplacian(0.7)")),
        (2100, 1, ("gaussian(1.5)", "polynomial(2)")),
        (2100, 2, ("additive(1)", "additive(2)")),
    ],
    ids=["tile", "two tiles", "strips", "factors", "factors of a sum", "lines", "factors of many rows", "additive"],
)
def test_hsic_is_that_of_whole_matrices(n, p, kernels, estimator):
    x = rows(n, p, 1)
    y = x**2 + rows(n, p, 2)
    if "additive" in kernels[0]:
        K, L = (sum(np.exp(-((c[:, None] - c) ** 2) / 2 / h**2) for c in side.T) for side, h in ((x, 1.0), (y, 2.0)))
        result = hsic_test(
            x, y, kernel_x=kernels[0], kernel_y=kernels[1], scale="none", permutations=20, estimator=estimator
        )
        assert_close([result.hsic_unbiased, result.hsic_biased, result.effect_size**2], dense_hsic(K, L), scale=4.0)
        return
    assert_hsic(x, y, *kernels, estimator=estimator)


@pytest.mark.parametrize("p", [1, 3])
def test_the_reported_pair_of_a_family_is_measured_as_it_is_alone(p):
    """Of many rows by the sums over the shifts, or by correlations of factors."""
    x = rows(2050, p, 1)
    y = x[:, :1] ** 2 + 3 * rows(2050, 1, 2)
    result = hsic_test(x, y, permutations=20)
    alone = hsic_test(x, y, permutations=20, null="moments", kernel_x=result.kernel_x, kernel_y=result.kernel_y)
    names = ("hsic_unbiased", "hsic_biased", "effect_size")
    assert_close([getattr(result, name) for name in names], [getattr(alone, name) for name in names])


@pytest.mark.parametrize("text", ["gaussian(1.5)", "linear", "delta", "laplacian(1) + 0.5*linear"])
def test_the_effect_of_a_variable_on_itself_is_one(text):
    x = rows(50, 3, 1).round()
    result = hsic_test(x, x, kernel_x=text, kernel_y=text, permutations=20)
    assert_close(result.effect_size, 1.0)


def test_columns_with_an_offset_keep_their_digits():
    """The U-centring subtracts sums: a linear kernel far from the origin is the hardest case."""
    x = rows(200, 1, 0)
    y = x + rows(200, 1, 1)
    for first, second in (("linear", "gaussian(1.5)"), ("gaussian(1.5)", "linear")):
        near, far = (
            hsic_test(x + by, y + by, kernel_x=first, kernel_y=second, scale="none", permutations=20)
            for by in (0.0, 1e5)
        )
        for name in ("hsic_unbiased", "hsic_biased"):
            np.testing.assert_allclose(getattr(far, name), getattr(near, name), rtol=1e-9)


# Two samples

SIZES = [(2, 2), (2, 3), (3, 2), (2, 20), (20, 2), (11, 12), (9, 20)]
KERNELS = ["gaussian(0.7)", "laplacian(2)", "linear", "polynomial(2)", "normalise(polynomial(2))", "matern(1, 2.5)"]


def mmd_of(x, y, text, **options):
    return mmd_test(x, y, kernel=text, scale="none", permutations=20, **options)


@pytest.mark.parametrize("text", KERNELS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_mmd_is_that_of_double_sums(sizes, text, shift):
    x, y = rows(sizes[0], 3, 1) + shift, rows(sizes[1], 3, 2)
    K = parse_kernel(text)(np.concatenate([x, y])).tolist()
    labels = [1] * sizes[0] + [0] * sizes[1]
    result = mmd_of(x, y, text)
    size = np.abs(K).max()
    assert_close(result.mmd2_unbiased, naive.mmd2_unbiased(K, labels), scale=size)
    assert_close(result.mmd2_biased, naive.mmd2_biased(K, labels), scale=size)
    squared = min(naive.hsic_effect(K, naive.label_gram(labels)) ** 2, 1.0)
    assert_close(result.effect_size**2, squared, scale=1.0)


@pytest.mark.parametrize(
    ("n", "p", "text"), [(400, 3, "laplacian(1)"), (1200, 1, "gaussian(1)"), (1200, 2, "gaussian(1)")]
)
def test_mmd_of_many_rows_is_that_of_whole_matrices(n, p, text):
    """By tiles, and by a factor of low rank."""
    x, y = rows(n, p, 1) + 0.2, rows(n + 50, p, 2)
    K = parse_kernel(text)(np.concatenate([x, y]))
    a = np.repeat([1.0, 0.0], [len(x), len(y)])
    factor = 1 / (n * (n - 1)) + 1 / ((n + 50) * (n + 49)) + 2 / (n * (n + 50))
    total = len(a)
    unbiased, biased, squared = dense_hsic(K, np.outer(a, a))
    result = mmd_of(x, y, text, null="moments")
    assert_close(result.mmd2_unbiased, unbiased * total * (total - 3) * factor, scale=1.0)
    assert_close(result.mmd2_biased, biased * total**2 * (1 / n + 1 / (n + 50)) ** 2, scale=1.0)
    assert_close(result.effect_size**2, squared, scale=1.0)


def test_the_standard_error_is_that_of_the_witness_function():
    x, y = rows(9, 2, 1) + 1.0, rows(14, 2, 2)
    K = parse_kernel("gaussian(1)")(np.concatenate([x, y]))
    np.fill_diagonal(K, 0.0)
    at_x = K[:9, :9].sum(axis=1) / 8 - K[:9, 9:].sum(axis=1) / 14
    at_y = K[9:, :9].sum(axis=1) / 9 - K[9:, 9:].sum(axis=1) / 13
    result = mmd_of(x, y, "gaussian(1)", alpha=0.9)
    error = math.sqrt(4 * (at_x.var() / 9 + at_y.var() / 14) / result.mmd2_unbiased) / 2
    assert_close(result.mmd_standard_error, error)


def test_no_standard_error_of_a_negative_estimate():
    found = [mmd_of(rows(9, 3, seed), rows(9, 3, seed + 100), "linear", alpha=0.999) for seed in range(20)]
    negative = [one for one in found if one.mmd2_unbiased < 0]
    assert negative
    assert all((one.mmd_standard_error, one.effect_size) == (None, 0.0) for one in negative)
