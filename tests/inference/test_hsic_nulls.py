"""The five nulls of the independence test: each against its definition, over all pairings where they can be listed."""

import itertools
import math

import naive
import numpy as np
import pytest
from scipy import stats
from scipy.special import bdtrc
from tolerances import assert_close
from two_variables import arrays

from kerntest import hsic_test
from kerntest.inference.relabelling import designs

ESTIMATORS = ("unbiased", "biased")
# Diagonals that are constant, and such that are not, on both sides.
PAIRS = [
    ("gaussian(0.8)", "laplacian(1.5)"),
    ("gaussian(1)", "polynomial(2)"),
    ("linear", "linear"),
    ("polynomial(2)", "exponential(0.5) + gaussian(1)"),
]
MEDIAN = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}


def matrices(x, y, kernels):
    """Return the kernel matrices of unscaled columns."""
    import kerntest  # noqa: PLC0415 - only this helper reads texts

    return [kerntest.parse_kernel(text)(side) for text, side in zip(kernels, (x, y), strict=True)]


def factor(n, estimator):
    """Return the number by which <A, B> is the estimate of HSIC."""
    return 1 / n**2 if estimator == "biased" else 1 / (n * (n - 3))


def all_values(K, L, estimator):
    """Return the estimate of HSIC under every one of the n! pairings of the rows."""
    A, B = (naive.centred[estimator](M.tolist()) for M in (K, L))
    return factor(len(K), estimator) * np.array(naive.permuted_inner_products(A, B))


def skewness(values):
    return np.mean((values - values.mean()) ** 3) / values.std() ** 3


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kernels", PAIRS, ids=" and ".join)
@pytest.mark.parametrize("n", [4, 6])
def test_moments_are_those_of_all_pairings(n, kernels, estimator):
    x, y = arrays(n, 2, 1, seed=n)
    values = all_values(*matrices(x, y, kernels), estimator)
    options = {"kernel_x": kernels[0], "kernel_y": kernels[1], "estimator": estimator, "scale": "none"}
    result = hsic_test(x, y, null="moments", **options)
    null, size = result.null, np.abs(values).max()
    assert_close(null.mean, values.mean(), scale=size)
    assert_close(null.standard_deviation, values.std(), scale=size)
    np.testing.assert_allclose(null.skewness, skewness(values), rtol=1e-6, atol=1e-7)
    # Pearson's type III is what scipy calls pearson3; a negative skewness counts as none.
    z = (result.statistic - values.mean()) / values.std()
    assert result.p_value == pytest.approx(stats.pearson3.sf(z, max(skewness(values), 0)), rel=1e-4, abs=1e-10)


@pytest.mark.parametrize("kernels", [("gaussian(0.8)", "gaussian(1.5)"), ("laplacian(1)", "matern(1, 2.5)")])
@pytest.mark.parametrize("n", [6, 12, 40])
def test_gamma_is_that_of_the_paper(n, kernels):
    x, y = arrays(n, 1, 1, strength=0.3, seed=n)
    K, L = (M.tolist() for M in matrices(x, y, kernels))
    mean, variance = naive.hsic_gamma_moments(K, L)
    result = hsic_test(x, y, kernel_x=kernels[0], kernel_y=kernels[1], null="gamma", scale="none")
    assert result.statistic == result.hsic_biased
    assert_close(result.statistic, naive.hsic_biased(K, L))
    assert_close(result.null.mean, mean)
    assert_close(result.null.standard_deviation, math.sqrt(variance))
    # n HSIC_b ~ Gamma(shape = mean^2 / variance, scale = n variance / mean).
    shape, scale = mean**2 / variance, n * variance / mean
    assert_close(result.p_value, stats.gamma.sf(n * result.statistic, shape, scale=scale))


@pytest.mark.parametrize("kernel", ["delta", "gaussian(1)", "laplacian(2)"])
@pytest.mark.parametrize("resampling", ["shifts", "random"])
def test_two_values_have_the_p_value_of_their_fourfold_table(resampling, kernel):
    """HSIC_b is then (n_11 - n_1. n_.1 / n)^2 times a constant, and n_11 hypergeometric: ties count, all of them."""
    n, permutations = 12, 4000
    options = {"kernel_x": kernel, "kernel_y": kernel, "estimator": "biased", "permutations": permutations}
    for seed in range(2):
        x, y = np.random.default_rng((1, seed)).integers(0, 2, (2, n))
        table = stats.hypergeom(n, x.sum(), y.sum())
        possible = np.arange(n + 1)
        apart = np.abs(possible - x.sum() * y.sum() / n)
        exact = table.pmf(possible)[apart >= apart[(x * y).sum()] - 1e-9].sum()
        p_value = hsic_test(x, y, resampling=resampling, **options).p_value
        assert p_value == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / permutations) + 1e-9)


def p_values_of_all_pairings(x, y, seed, permutations, **options):
    """Return the p-value of every way to pair the rows."""
    options |= {"seed": seed, "permutations": permutations, "threads": 1}
    pairings = itertools.permutations(range(len(x)))
    return np.array([hsic_test(x, y[list(order)], **options).p_value for order in pairings])


X, Y = np.array([0.1, 1.0, 2.5, 2.7, 5.0]), np.array([3.0, 1.2, 0.7, 0.2, 2.0])


@pytest.mark.parametrize("options", [{}, MEDIAN, MEDIAN | {"estimator": "biased"}], ids=str)
def test_exact_over_all_pairings_for_every_random_order(options, monkeypatch):
    """The definition of exactness without chance: of all pairings of the rows, at most a share a has p <= a.

    With one order of the rows, shifts are a group of relabellings, and this holds for every single seed.
    """
    # Else all relabellings of so few rows would be used.
    monkeypatch.setattr(designs, "ALL", 0)
    # Of four rows most relabellings tie in the unbiased estimate.
    n = 5 if options == MEDIAN else 4
    for seed in range(1 if n == 5 else 2):
        p = p_values_of_all_pairings(X[:n], Y[:n], seed, n, **options)
        for alpha in np.arange(1, n + 1) / n:
            assert np.mean(p <= alpha + 1e-12) <= alpha + 1e-12, (seed, alpha)
        if options:
            # No two relabellings tie: the p-values are uniform.
            each = math.factorial(n) // n
            np.testing.assert_array_equal(np.bincount((n * p).round().astype(int), minlength=n + 1), [0, *[each] * n])


@pytest.mark.parametrize("ones", [1, 2])
def test_the_gamma_null_of_a_rare_flag_is_no_smaller_than_its_outcomes_allow(ones):
    """By two moments of a sum of many squares 37 % of independent flags were found at 5 %, some with p below 1e-50."""
    p = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        flag = np.zeros(100)
        flag[rng.choice(100, ones, replace=False)] = 1.0
        p.append(hsic_test(rng.lognormal(size=100), flag, null="gamma", threads=1).p_value)
    assert bdtrc(np.sum(np.array(p) <= 0.05) - 1, 60, 0.05) > 1e-3
    assert min(p) > 1e-3
