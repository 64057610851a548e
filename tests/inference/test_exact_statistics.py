"""Both estimates and the effect size of both tests against sums over whole matrices, whichever way they are computed."""

import math

import naive
import numpy as np
import pytest
from tolerances import assert_close

from kerntest import hsic_test, mmd_test, parse_kernel
from kerntest.engines.engine import Engine
from kerntest.errors import UndecidedError
from kerntest.inference.statistic import SumsOfGroups, low_rank_pair
from kerntest.kernels.base import Points

ESTIMATORS = ("unbiased", "biased")


def dense_hsic(K, L):
    """Return both estimates (Song et al. 2012, eq. 5; Gretton et al. 2008, eq. 4) and the effect size."""
    n = len(K)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    hollow = [np.where(np.eye(n, dtype=bool), 0.0, M) for M in (K, L)]

    def inner(A, B):
        crossed = 2 / (n - 2) * (A.sum(axis=0) @ B.sum(axis=0))
        return np.vdot(A, B) + A.sum() * B.sum() / ((n - 1) * (n - 2)) - crossed

    unbiased = inner(*hollow)
    effect = unbiased / math.sqrt(inner(hollow[0], hollow[0]) * inner(hollow[1], hollow[1]))
    return unbiased / (n * (n - 3)), np.vdot(centred, L) / n**2, max(effect, 0.0)


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


def test_two_matrices_of_high_rank_take_the_lags():
    """Both have the form, but too many correlations between them."""
    x, y = (Points.of(rows(300, 1, seed)) for seed in (0, 1))
    wide, linear = parse_kernel("gaussian(1.5)"), parse_kernel("linear")
    assert low_rank_pair(wide, x, wide, y, Engine(1)) is None
    assert low_rank_pair(wide, x, linear, y, Engine(1)) is not None


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


def effect_of(K, labels, mmd2):
    """Return the effect size from sums over the whole matrix."""
    K = np.array(K)
    np.fill_diagonal(K, 0.0)
    member = np.eye(2)[1 - np.array(labels, dtype=int)]
    return SumsOfGroups(member, K @ member, member.T @ np.square(K) @ member).effect(mmd2)


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
    # The oracle goes through all quadruples of rows.
    if len(labels) < 12 or (text, shift) == (KERNELS[0], 1.0):
        assert_close(result.effect_size**2, naive.effect_between(K, labels) ** 2, scale=1.0)
    assert_close(result.effect_size**2, effect_of(K, labels, result.mmd2_unbiased) ** 2, scale=1.0)


@pytest.mark.usefixtures("without_shifts")
def test_the_effect_size_does_not_depend_on_how_many_rows_each_sample_has():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1600, 1)), rng.normal(size=(1600, 1)) + 1.0
    whole = mmd_of(x, y, "gaussian(1)", null="moments").effect_size
    for few in (40, 160):
        found = [mmd_of(x, y[i : i + few], "gaussian(1)", null="moments").effect_size for i in range(0, 1600, few)]
        assert np.mean(found) == pytest.approx(whole, abs=4 * np.std(found) / np.sqrt(len(found)) + 0.01)


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
    unbiased, biased, _ = dense_hsic(K, np.outer(a, a))
    result = mmd_of(x, y, text, null="moments")
    size = effect_of(K, a, result.mmd2_unbiased)
    assert_close(result.mmd2_unbiased, unbiased * total * (total - 3) * factor, scale=1.0)
    assert_close(result.mmd2_biased, biased * total**2 * (1 / n + 1 / (n + 50)) ** 2, scale=1.0)
    assert_close(result.effect_size**2, size**2, scale=1.0)


def test_the_standard_error_is_that_of_the_witness_function():
    x, y = rows(9, 2, 1) + 1.0, rows(14, 2, 2)
    K = parse_kernel("gaussian(1)")(np.concatenate([x, y]))
    np.fill_diagonal(K, 0.0)
    at_x = K[:9, :9].sum(axis=1) / 8 - K[:9, 9:].sum(axis=1) / 14
    at_y = K[9:, :9].sum(axis=1) / 9 - K[9:, 9:].sum(axis=1) / 13
    result = mmd_of(x, y, "gaussian(1)", alpha=0.9)
    error = math.sqrt(4 * (at_x.var(ddof=1) / 9 + at_y.var(ddof=1) / 14) / result.mmd2_unbiased) / 2
    assert_close(result.mmd_standard_error, error)


@pytest.mark.parametrize("columns", [1, 3])
def test_rows_far_away_do_not_cost_the_others_their_distances(columns):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(60, columns)), rng.normal(size=(60, columns)) + 1.5
    x[:6] = y[:6] = 1e10
    options = {"kernel": "gaussian(1.5)", "scale": "none", "estimator": "biased"}
    result = mmd_test(x, y, **options)
    K = naive.gram(lambda a, b: naive.gaussian(a, b, 1.5), np.concatenate([x, y]))
    assert_close(result.statistic, naive.mmd2_biased(K, [1] * 60 + [0] * 60))
    assert result.p_value <= 0.01
    assert mmd_test(x, y, null="moments", **options).p_value <= 0.01


@pytest.mark.parametrize(("size", "why"), [(1e160, "distances .* beyond the range"), (1e-200, "all pairs .* equal")])
def test_distances_out_of_range_are_refused(size, why):
    with pytest.raises(UndecidedError, match=f"^no bandwidth can be chosen: {why}"):
        mmd_test(rows(20, 1, 1) * size, rows(20, 1, 2) * size, scale="none")
