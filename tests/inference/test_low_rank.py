"""Sums over matrices of low rank against the matrices themselves."""

import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_MACHINE, assert_close

from kerntest import hsic_pairs, hsic_test, mmd_test
from kerntest.engines.local import LocalEngine
from kerntest.inference import relabelling, screening, shifts, statistic, verdict
from kerntest.inference.low_rank_invariants import low_rank_invariants
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.relabelling import shifted_statistics
from kerntest.inference.shifts import correlations_needed, low_rank_sums
from kerntest.inference.statistic import dependence, inner, label_matrix, low_rank_pair
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel
from kerntest.matrices.factor import low_rank

ENGINE = LocalEngine(1)


def points(seed: int, n: int, columns: int = 1) -> Points:
    return Points.of(np.random.default_rng(seed).normal(size=(n, columns)))


def few_values(seed: int, n: int) -> Points:
    return Points.of(np.random.default_rng(seed).poisson(2.0, n).astype(float))


def factored(text: str, rows: Points):
    factor = low_rank(parse_kernel(text), rows)
    assert factor is not None
    return factor


@pytest.mark.parametrize("text", ["gaussian(1)", "gaussian(0.6)", "rational-quadratic(2)", "linear", "polynomial(2)"])
def test_the_factor_is_the_centred_matrix(text):
    rows = points(0, 600)
    factor = factored(text, rows)
    K = parse_kernel(text)(rows)
    H = np.eye(600) - 1 / 600
    assert_close(factor.columns @ factor.columns.T, H @ K @ H, scale=np.abs(K).max())
    assert_close(factor.diagonal, np.diagonal(H @ K @ H))


@pytest.mark.parametrize("text", ["laplacian(1)", "gaussian(0.001)", "matern(1, nu=0.5)", "polynomial(3, 1, -20)"])
def test_matrices_without_the_form_are_left_alone(text):
    assert low_rank(parse_kernel(text), points(0, 900)) is None


def test_any_kernel_on_few_different_rows_has_the_form():
    rows = few_values(0, 500)
    factor = factored("laplacian(1)", rows)
    assert factor.rank <= len(np.unique(rows.numeric))


def test_two_matrices_of_high_rank_take_the_lags():
    """Both have the form, but too many correlations between them."""
    x, y = points(0, 300), points(1, 300)
    kernel = parse_kernel("gaussian(1.5)")
    assert low_rank(kernel, x) is not None
    assert low_rank_pair(kernel, x, kernel, y, ENGINE) is None
    assert low_rank_pair(kernel, x, parse_kernel("linear"), y, ENGINE) is not None


@pytest.mark.parametrize("hollow", [True, False], ids=["U-centred", "HKH"])
@pytest.mark.parametrize(("n", "circle", "orders"), [(240, 240, 1), (241, 240, 3), (200, 187, 2)])
def test_every_relabelling_is_that_of_the_lags(n, circle, orders, hollow):
    rng = np.random.default_rng(n)
    x, y = points(3, n), few_values(4, n)
    kernel_x, kernel_y = parse_kernel("gaussian(2)"), parse_kernel("laplacian(0.7)")
    places = [rng.permutation(n) for _ in range(orders)]
    expected = shifted_statistics(
        [(x, (kernel_x,))],
        [(y, (kernel_y,))],
        places[0],
        places,
        circle=circle,
        estimator="unbiased" if hollow else "biased",
        engine=ENGINE,
    )
    still, moved = factored("gaussian(2)", x), factored("laplacian(0.7)", y)
    found = low_rank_sums(still, moved, places, circle, hollow=hollow, engine=ENGINE)
    assert_close(found.ravel(), expected.ravel(), scale=n**2)


def test_threads_and_blocks_give_the_same(monkeypatch):
    x, y = factored("gaussian(1)", points(0, 400)), factored("gaussian(2)", points(1, 400))
    places = [np.random.default_rng(k).permutation(400) for k in range(2)]
    one = low_rank_sums(x, y, places, 399, hollow=True, engine=LocalEngine(1))
    assert_close(low_rank_sums(x, y, places, 399, hollow=True, engine=LocalEngine(3)), one, share=SAME_MACHINE)
    monkeypatch.setattr(shifts, "CORRELATED_ENTRIES", 1200)
    several = low_rank_sums(x, y, places, 399, hollow=True, engine=LocalEngine(2))
    assert_close(several, one, scale=np.abs(one).max())


@pytest.mark.parametrize("tolerance", [1e-15, 1e-9, 1e-3])
def test_correlations_that_are_left_out_add_up_to_no_more_than_the_tolerance(tolerance):
    x, y = factored("gaussian(1.5)", points(0, 300)), factored("gaussian(2)", points(1, 300))
    orders = [np.random.default_rng(k).permutation(300) for k in range(2)]
    every = low_rank_sums(x, y, orders, 299, hollow=False, engine=ENGINE, tolerance=0.0)
    found = low_rank_sums(x, y, orders, 299, hollow=False, engine=ENGINE, tolerance=tolerance)
    scale = x.lengths.sum() * y.lengths.sum()
    assert (np.abs(every - found) <= (tolerance + 1e-15) * scale).all()
    needed = correlations_needed(x, y, tolerance)
    assert needed.sum() < x.rank * y.rank or tolerance < 1e-12
    bounds = np.outer(x.lengths, np.sort(y.lengths)[::-1])
    kept = np.arange(y.rank) < needed[:, None]
    assert bounds[~kept].sum() <= tolerance * scale
    assert bounds[~kept].max(initial=0.0) <= bounds[kept].min()


def test_pairs_of_a_family_by_correlations_or_by_lags(monkeypatch):
    """An additive kernel on each side, whose lines no other pair needs."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(2100, 2))
    y = np.column_stack([x[:, 0] + rng.normal(size=2100), rng.normal(size=2100)])
    calls = []
    original = relabelling._cheaper_by_factors

    def counted(*arguments):
        calls.append(original(*arguments))
        return calls[-1]

    monkeypatch.setattr(relabelling, "_cheaper_by_factors", counted)
    by_correlations = hsic_test(x, y)
    assert [[pair[:2] for pair in found] for found in calls] == [[(4, 4)]]
    monkeypatch.setattr(relabelling, "_cheaper_by_factors", lambda *_: [])
    by_lags = hsic_test(x, y)
    assert by_correlations.p_value == by_lags.p_value
    assert by_correlations.family is not None
    assert by_lags.family is not None
    for one, other in zip(by_correlations.family.members, by_lags.family.members, strict=True):
        assert one.kernel_x == other.kernel_x
        assert_close(one.z, other.z, scale=10.0)
        assert one.p_value == other.p_value


@given(st.integers(10, 20), st.integers(0, 2**16), st.sampled_from(["gaussian(1)", "linear", "laplacian(1)"]))
@settings(max_examples=20, deadline=None)
def test_both_estimates_are_those_of_the_formula(n, seed, text):
    x, y = few_values(seed, n), few_values(seed + 1, n)
    first, second = low_rank(parse_kernel(text), x), low_rank(parse_kernel("linear"), y)
    if first is None or second is None:
        return
    K, L = parse_kernel(text)(x), parse_kernel("linear")(y)
    size = np.abs(K).max() * np.abs(L).max()
    assert_close(inner(first, second, hollow=False) / n**2, naive.hsic_biased(K, L), scale=size)
    unbiased = inner(first, second, hollow=True) / (n * (n - 3))
    assert_close(unbiased, naive.hsic_unbiased(K, L), scale=size)


def test_the_dependence_is_that_of_the_whole_matrices(monkeypatch):
    x, y = points(0, 800), few_values(1, 800)
    kernels = parse_kernel("gaussian(1)"), parse_kernel("gaussian(2)")
    found = dependence(kernels[0], x, kernels[1], y, ENGINE)
    monkeypatch.setattr(statistic, "low_rank_pair", lambda *_: None)
    direct = dependence(kernels[0], x, kernels[1], y, ENGINE)
    for name in ("unbiased", "biased", "effect_size"):
        assert_close(getattr(found, name), getattr(direct, name))


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_a_test_of_two_columns_is_the_same_either_way(estimator, monkeypatch):
    rng = np.random.default_rng(5)
    x = rng.normal(size=1500)
    y = np.sin(3 * x) + 2 * rng.normal(size=1500)
    options = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median", "estimator": estimator}
    fast = hsic_test(x, y, **options)
    monkeypatch.setattr(relabelling, "low_rank_pair", lambda *_: None)
    monkeypatch.setattr(statistic, "low_rank_pair", lambda *_: None)
    whole = hsic_test(x, y, **options)
    assert fast.p_value == whole.p_value
    assert_close(fast.statistic, whole.statistic)
    assert_close(fast.null.standard_deviation, whole.null.standard_deviation)


def test_tied_relabellings_count_as_ties(monkeypatch):
    """Of two binary columns most relabellings tie with others; rounding of a factor must not part them."""
    rng = np.random.default_rng(2)
    x, y = (rng.integers(0, 2, 300).astype(float) for _ in range(2))
    options = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)", "permutations": 3000}
    fast = hsic_test(x, y, **options)
    monkeypatch.setattr(relabelling, "low_rank_pair", lambda *_: None)
    assert fast.p_value == hsic_test(x, y, **options).p_value


def test_a_screen_of_pairs_with_their_own_rows_is_the_same_either_way(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 3))
    X[:, 1] += 0.3 * X[:, 0] ** 2
    X[rng.random((900, 3)) < 0.1] = np.nan
    fast = hsic_pairs(X, permutations=900)
    monkeypatch.setattr(screening, "low_rank", lambda *_: None)
    whole = hsic_pairs(X, permutations=900)
    for one, other in zip(fast.pairs, whole.pairs, strict=True):
        assert one.p_permutation == other.p_permutation
        assert_close(one.p_value, other.p_value)
        assert_close(one.hsic_unbiased, other.hsic_unbiased)
        assert_close(one.effect_size, other.effect_size)


def test_many_columns_to_cube_are_swept_instead():
    assert low_rank_invariants(factored("gaussian(0.45)", points(0, 1500)), hollow=True) is None


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("permutations", [3000])
def test_a_test_of_two_samples_of_one_column_is_the_same_either_way(estimator, permutations, monkeypatch):
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=1100), rng.normal(0.05, 1.05, size=1001)
    options = {"kernel": "gaussian(1)", "estimator": estimator, "permutations": permutations}
    fast = mmd_test(x, y, **options)
    monkeypatch.setattr(verdict, "FEW_ROWS", 10_000)
    monkeypatch.setattr(statistic, "FEW_ROWS", 10_000)
    whole = mmd_test(x, y, **options)
    assert fast.p_value == whole.p_value
    for name in ("statistic", "mmd2_biased", "mmd2_unbiased", "effect_size"):
        assert_close(getattr(fast, name), getattr(whole, name))
    assert_close(fast.null.standard_deviation, whole.null.standard_deviation)


def test_a_family_takes_factors_and_lags_side_by_side(monkeypatch):
    """The Gaussians of the default family have factors, its Laplacians have none."""
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=1200), rng.normal(0.06, 1.0, size=1000)
    fast = mmd_test(x, y)
    monkeypatch.setattr(verdict, "FEW_ROWS", 10_000)
    monkeypatch.setattr(statistic, "FEW_ROWS", 10_000)
    whole = mmd_test(x, y)
    assert (fast.kernel, fast.p_value) == (whole.kernel, whole.p_value)
    for one, other in zip(fast.family.members, whole.family.members, strict=True):
        assert (one.kernel, one.p_value) == (other.kernel, other.p_value)
        assert_close(one.z, other.z)


@pytest.mark.parametrize("bandwidth", [1e3, 1e4, 1e5])
def test_moments_of_a_nearly_constant_kernel_are_those_of_the_linear_one(bandwidth):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1200, 3)), 1.1 * rng.normal(size=(1200, 3))
    found, linear = (
        mmd_test(x, y, scale="none", kernel=kernel, null="moments") for kernel in (f"gaussian({bandwidth:g})", "linear")
    )
    # exp(-|x-y|^2 / (2 s^2)) is 1 - |x-y|^2 / (2 s^2) + ..., which centring turns into <x, y> / s^2: the next term is a
    # share of some |x-y|^2 / s^2 of it. Entries of 1 leave few digits to differences of 1 / s^2.
    next_term = 100.0 / bandwidth**2
    label = label_matrix(1200, 1200, "unbiased")
    rounding = label.factor * tie_tolerance(1.0, 2400, math.sqrt(label.squared_norm))
    z, expected = ((one.statistic - one.null.mean) / one.null.standard_deviation for one in (found, linear))
    np.testing.assert_allclose(found.null.skewness, linear.null.skewness, rtol=max(next_term, 1e-8))
    apart = next_term * expected + rounding / found.null.standard_deviation
    assert apart < 0.1
    np.testing.assert_allclose(z, expected, rtol=0, atol=apart)
    # The tail of the curve falls by less than 1 + z of itself for each unit of z.
    np.testing.assert_allclose(found.p_value, linear.p_value, rtol=(1 + expected) * apart)
