"""The nulls of a two-sample test without resampling, against a long permutation run."""

import functools
import math

import numpy as np
import pytest
from tolerances import assert_close

from kerntest import mmd_test
from kerntest.errors import UndecidedError, UsageError

CURVES = ("moments", "gamma", "spectral", "pearson")


def samples(n_x, n_y, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_x, 2)), rng.normal(size=(n_y, 2)) + shift


MEDIAN = {"kernel": "gaussian", "bandwidth": "median"}


@functools.cache
def long_run(sizes, estimator, permutations, **samples_of):
    return mmd_test(*samples(*sizes, **samples_of), permutations=permutations, estimator=estimator, **MEDIAN)


@pytest.mark.parametrize("null", CURVES)
@pytest.mark.parametrize("sizes", [(80, 80), (40, 150)])
def test_every_curve_agrees_with_a_long_permutation_run(null, sizes):
    x, y = samples(*sizes, seed=3, shift=0.22)
    estimator = "biased" if null == "gamma" else "unbiased"
    exact = long_run(sizes, estimator, 50_000, seed=3, shift=0.22).p_value
    found = mmd_test(x, y, null=null, estimator=estimator, **MEDIAN)
    assert 0.003 < exact < 0.1
    # The Gamma has two moments only: its tail is known to be short.
    assert found.p_value == pytest.approx(exact, rel=0.45 if null == "gamma" else 0.15)
    assert found.null.method == null
    assert found.null.p_floor is None
    assert not found.null.exact


@pytest.mark.parametrize("null", CURVES)
def test_curves_have_the_scale_of_the_statistic(null):
    x, y = samples(60, 90, seed=4)
    expected = long_run((60, 90), "biased", 20_000, seed=4).null
    found = mmd_test(x, y, null=null, estimator="biased", **MEDIAN).null
    # The Gamma has the two moments of the limit, which differ by O(1/n) from those of 150 rows.
    assert found.mean == pytest.approx(expected.mean, rel=0.05)
    assert found.standard_deviation == pytest.approx(expected.standard_deviation, rel=0.1)


def test_gamma_tests_the_biased_statistic_and_says_so():
    x, y = samples(30, 30)
    result = mmd_test(x, y, kernel="gaussian", null="gamma")
    assert result.estimator == "biased"
    assert result.statistic == result.mmd2_biased
    assert any("biased statistic" in warning for warning in result.warnings)


@pytest.mark.parametrize("null", CURVES)
def test_curves_refuse_a_degenerate_kernel_and_a_family(null):
    x, y = samples(20, 20)
    with pytest.raises(UndecidedError, match="equally similar"):
        mmd_test(x, y, kernel="gaussian(1e-9)", null=null)
    with pytest.raises(UsageError, match="one bandwidth"):
        mmd_test(x, y, kernel="gaussian", bandwidth=(1.0, 2.0), null=null)


def test_random_resampling_agrees_with_shifts():
    x, y = samples(60, 60, seed=6, shift=0.35)
    shifts = mmd_test(x, y, permutations=10_000)
    randomly = mmd_test(x, y, permutations=4_000, resampling="random")
    assert randomly.null.resampling == "random permutations"
    assert randomly.null.permutations == 4_000
    assert_close(randomly.statistic, shifts.statistic)
    error = math.sqrt(shifts.p_value / 4_000) + math.sqrt(shifts.p_value / 10_000)
    assert abs(randomly.p_value - shifts.p_value) < 5 * error + 1 / 4_000
