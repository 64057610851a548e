"""Nulls without resampling: each formula against its definition, and all of them against a long permutation run."""

import functools
import math

import naive
import numpy as np
import pytest
from scipy import stats
from tolerances import assert_close

from kerntest import mmd_test
from kerntest.engines.local import LocalEngine
from kerntest.errors import UndecidedError, UsageError
from kerntest.inference.nulls import invariants as invariants_module
from kerntest.inference.nulls.invariants import kernel_spectrum
from kerntest.inference.nulls.pearson import pearson_tail
from kerntest.inference.nulls.spectral import completed, label_spectrum, spectral_p_value, weighted_chi_square_tail
from kerntest.inference.statistic import label_matrix
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel

ENGINE = LocalEngine(1)
CURVES = ("moments", "gamma", "spectral", "pearson")


def samples(n_x, n_y, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_x, 2)), rng.normal(size=(n_y, 2)) + shift


def dense_label(n_x, n_y, estimator):
    labels = np.repeat([1, 0], [n_x, n_y])
    centred = naive.u_centred if estimator == "unbiased" else naive.doubly_centred
    return labels, np.asarray(centred(naive.label_gram(labels)))


PEARSON_SYSTEM = [
    ("beta", (2, 5)),
    ("beta", (0.7, 3)),
    ("t", (9,)),
    ("gamma", (3,)),
    ("gamma", (0.5,)),
    ("f", (5, 20)),
    ("betaprime", (4, 12)),
    ("norm", ()),
]


@pytest.mark.parametrize(("name", "shape"), PEARSON_SYSTEM)
@pytest.mark.parametrize("level", [0.9, 0.5, 0.05, 1e-3, 1e-6])
def test_pearson_curve_is_exact_for_members_of_the_system(name, shape, level):
    law = getattr(stats, name)(*shape)
    mean, variance, skewness, excess = (float(value) for value in law.stats("mvsk"))
    z = (law.isf(level) - mean) / math.sqrt(variance)
    assert pearson_tail(z, skewness, excess + 3) == pytest.approx(level, rel=1e-4)


def test_pearson_tail_at_and_beyond_the_ends_of_a_bounded_curve():
    # Beta(2, 5): skewness and kurtosis of a curve on a bounded interval.
    assert pearson_tail(-10.0, 0.596, 2.88) == 1.0
    assert 0 < pearson_tail(50.0, 0.596, 2.88) < 1e-300


@pytest.mark.parametrize(
    ("weights", "counts"),
    [([1.0], [1.0]), ([2.0], [3.0]), ([1.0, 0.5, 0.1], [1.0, 1.0, 1.0]), ([1.0, -0.3], [1.0, 4.0])],
)
def test_weighted_chi_squares_against_simulation(weights, counts):
    rng = np.random.default_rng(0)
    drawn = sum(w * rng.chisquare(c, 400_000) for w, c in zip(weights, counts, strict=True))
    for level in (0.9, 0.5, 0.1, 0.01, 0.001):
        point = float(np.quantile(drawn, 1 - level))
        # 400 of the draws lie beyond the 0.1 % point: a standard error of 5 %.
        assert weighted_chi_square_tail(point, np.array(weights), np.array(counts)) == pytest.approx(level, rel=0.12)


def test_weighted_chi_squares_fall_steadily_through_the_mean():
    weights, counts = np.array([1.0, 0.4]), np.array([1.0, 2.0])
    points = np.linspace(-0.5, 60.0, 400)
    tails = np.array([weighted_chi_square_tail(x, weights, counts) for x in points])
    assert np.all(np.diff(tails) <= 1e-9)
    assert tails[0] == 1.0
    assert 0 < tails[-1] < 1e-10


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("sizes", [(4, 7), (6, 6), (2, 9)])
def test_label_spectrum_is_that_of_the_dense_matrix(estimator, sizes):
    _, B = dense_label(*sizes, estimator)
    spectrum = label_spectrum(label_matrix(*sizes, estimator))
    repeated = np.repeat(spectrum.values, spectrum.multiplicities.astype(int))
    # The vector of ones has eigenvalue 0.
    assert_close(np.sort(np.append(repeated, 0.0)), np.linalg.eigvalsh(B))


@pytest.mark.parametrize("hollow", [True, False])
def test_leading_eigenvalues_give_the_same_p_value_as_all(monkeypatch, hollow):
    points = Points.of(np.random.default_rng(1).normal(size=(300, 2)))
    kernel = parse_kernel("gaussian(1)")
    label = label_spectrum(label_matrix(150, 150, "unbiased" if hollow else "biased"))
    every, exact = kernel_spectrum(kernel, points, ENGINE, hollow=hollow, seed=0)
    monkeypatch.setattr(invariants_module, "EXACT_TRACE_ROWS", 100)
    leading, estimated = kernel_spectrum(kernel, points, ENGINE, hollow=hollow, seed=0)
    assert exact
    assert not estimated
    assert leading.values @ leading.multiplicities == pytest.approx(every.values.sum(), abs=1e-6)
    value = 4.0 if hollow else 9.0
    assert spectral_p_value(value, leading, label, 300) == pytest.approx(
        spectral_p_value(value, every, label, 300), rel=0.02
    )


def test_a_rest_that_cancels_keeps_its_sum_of_squares():
    spectrum = completed(np.array([3.0]), 3.0, 10.0, 5)
    assert_close(spectrum.values @ spectrum.multiplicities, 3.0)
    assert_close(spectrum.values**2 @ spectrum.multiplicities, 10.0)


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
