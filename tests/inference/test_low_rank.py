"""Sums over matrices of low rank against the matrices themselves."""

import math

import numpy as np
import pytest
from tolerances import assert_close

from kerntest import hsic_pairs, mmd_test, parse_kernel
from kerntest.engines.engine import Engine
from kerntest.inference.nulls.moments import low_rank_invariants
from kerntest.inference.nulls.permutation import tie_tolerance
from kerntest.inference.relabelling.shifts import correlations_needed, low_rank_sums
from kerntest.inference.screens import many_pairs
from kerntest.inference.statistic import LabelMatrix, low_rank_pair
from kerntest.kernels.base import Points
from kerntest.matrices.factor import low_rank

ENGINE = Engine(1)


def points(seed: int, n: int, columns: int = 1) -> Points:
    return Points.of(np.random.default_rng(seed).normal(size=(n, columns)))


def factored(text: str, rows: Points):
    factor = low_rank(parse_kernel(text), rows)
    assert factor is not None
    return factor


def test_two_matrices_of_high_rank_take_the_lags():
    """Both have the form, but too many correlations between them."""
    x, y = points(0, 300), points(1, 300)
    kernel = parse_kernel("gaussian(1.5)")
    assert low_rank(kernel, x) is not None
    assert low_rank_pair(kernel, x, kernel, y, ENGINE) is None
    assert low_rank_pair(kernel, x, parse_kernel("linear"), y, ENGINE) is not None


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


def test_a_screen_of_pairs_with_their_own_rows_is_the_same_either_way(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 3))
    X[:, 1] += 0.3 * X[:, 0] ** 2
    X[rng.random((900, 3)) < 0.1] = np.nan
    fast = hsic_pairs(X, permutations=900)
    monkeypatch.setattr(many_pairs, "low_rank", lambda *_: None)
    whole = hsic_pairs(X, permutations=900)
    for one, other in zip(fast.pairs, whole.pairs, strict=True):
        assert one.p_permutation == other.p_permutation
        assert_close(one.p_value, other.p_value)
        assert_close(one.hsic_unbiased, other.hsic_unbiased)
        assert_close(one.effect_size, other.effect_size)


def test_many_columns_to_cube_are_swept_instead():
    assert low_rank_invariants(factored("gaussian(0.45)", points(0, 1500)), hollow=True) is None


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
    label = LabelMatrix(1200, 1200, "unbiased")
    rounding = label.factor * tie_tolerance(1.0, 2400, math.sqrt(label.squared_norm))
    z, expected = ((one.statistic - one.null.mean) / one.null.standard_deviation for one in (found, linear))
    np.testing.assert_allclose(found.null.skewness, linear.null.skewness, rtol=max(next_term, 1e-8))
    apart = next_term * expected + rounding / found.null.standard_deviation
    assert apart < 0.1
    np.testing.assert_allclose(z, expected, rtol=0, atol=apart)
    # The tail of the curve falls by less than 1 + z of itself for each unit of z.
    np.testing.assert_allclose(found.p_value, linear.p_value, rtol=(1 + expected) * apart)
