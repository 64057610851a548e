"""What holds for every null without resampling: matrices known entry by entry, against all relabellings of their rows.

It looks inside: a test shows the one p-value that it needs.
"""

import functools
import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tolerances import SAME_MACHINE, STATISTIC, assert_close

from kerntest import parse_kernel
from kerntest.engines.engine import Engine
from kerntest.errors import UndecidedError
from kerntest.inference.nulls import moments
from kerntest.inference.nulls.approximations import (
    CURVES,
    SMALLEST,
    MatrixPair,
    curve_p_value,
    moments_p_value,
    pearson_tail,
    upper_tail,
    weighted_chi_square_tail,
)
from kerntest.inference.nulls.moments import (
    CentredKernel,
    CentredLabel,
    Invariants,
    Moments,
    Spectrum,
    centre,
    completed,
    permutation_moments,
)
from kerntest.inference.statistic import LabelMatrix
from kerntest.kernels.base import Points

ENGINE = Engine(1)
ESTIMATORS = ("unbiased", "biased")
# The diagonal of the last three is not constant.
KERNELS = ["gaussian(0.8)", "laplacian(1.5)", "linear", "polynomial(2)", "exponential(0.5) + gaussian(1)"]


def points_of(n, seed=1):
    return Points.of(np.random.default_rng(seed).normal(size=(n, 2)))


def centred(text, n, estimator, seed=1):
    return np.array(naive.centred[estimator](parse_kernel(text)(points_of(n, seed)).tolist()))


def invariants_of(M):
    """Return the invariants of a symmetric matrix by their definitions."""
    d = np.diag(M)
    sums = d.sum(), (M**2).sum(), (d**2).sum(), (d**3).sum(), d @ np.diag(M @ M), d @ M @ d
    return Invariants(*map(float, sums), float(np.trace(M @ M @ M)), float((M**3).sum()))


class Dense:
    """A centred matrix that is there, as curves see it."""

    def __init__(self, matrix):
        self.matrix = matrix

    def first_invariants(self):
        return invariants_of(self.matrix)

    def invariants(self):
        return invariants_of(self.matrix), True

    def spectrum(self):
        return Spectrum(np.linalg.eigvalsh(self.matrix), np.ones(len(self.matrix))), True


class DensePair(MatrixPair):
    """Two of them."""

    def __init__(self, A, B, value, *, factor=1.0, rounding=0.0, relabellings=6000):
        self.A, self.B, self.n, self.value, self.matrices = A, B, len(A), value, (Dense(A), Dense(B))
        self.factor, self.rounding, self.relabellings = factor, rounding, relabellings

    def squared_products(self):
        return float(((self.A * self.B) ** 2)[~np.eye(self.n, dtype=bool)].sum())

    def relabelled(self, at_least):
        orders = [np.random.default_rng(seed).permutation(self.n) for seed in range(max(at_least, self.relabellings))]
        return np.array([np.vdot(self.A, self.B[np.ix_(p, p)]) for p in orders])

    def degenerate(self):
        return UndecidedError("nothing can be tested", hint="", code="undecided.degenerate_kernel")


def pair(n, estimator, value=0.0, **options):
    return DensePair(centred("gaussian(1)", n, estimator), centred("gaussian(2)", n, estimator, 2), value, **options)


@functools.cache
def many_relabelled(n, estimator):
    return pair(n, estimator).relabelled(20_000)


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("n", [30, 60])
def test_tails_are_those_of_relabellings(name, n):
    estimator = "biased" if name == "gamma" else "unbiased"
    sums = many_relabelled(n, estimator)
    for level in (0.2, 0.05, 0.01):
        found = CURVES[name](pair(n, estimator, np.quantile(sums, 1 - level)))
        # The Gamma has two moments only: its tail is known to be short.
        assert found.p_value == pytest.approx(level, rel=0.5 if name == "gamma" else 0.3)
    if name != "spectral":
        assert found.moments.mean == pytest.approx(sums.mean(), abs=0.2 * sums.std())
        assert found.moments.standard_deviation == pytest.approx(sums.std(), rel=0.1)


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_tails_fall_from_one_to_nearly_nothing_but_never_to_nothing(name, estimator):
    values = np.r_[-50.0, np.linspace(-1, 5, 40), 1e3, 1e9]
    if name == "gamma" and estimator == "unbiased":
        # A trace of 0 has no Gamma.
        with pytest.raises(UndecidedError, match="a positive mean and variance"):
            CURVES[name](pair(12, estimator))
        return
    known = pair(12, estimator)
    known.relabelled = functools.cache(known.relabelled)
    tails = []
    for value in values:
        known.value = float(value)
        tails.append(CURVES[name](known).p_value)
    assert tails[0] == pytest.approx(1.0, abs=1e-9)
    assert all(0 < p <= 1 for p in tails)
    assert (np.diff(tails) <= 1e-9).all()
    assert tails[-1] < 1e-12


@pytest.mark.parametrize("name", CURVES)
def test_scales_of_the_matrices_change_no_p_value_and_the_record_has_that_of_the_statistic(name):
    plain = pair(20, "biased", 0.9, factor=0.5)
    moved = DensePair(3.0 * plain.A, 7.0 * plain.B, 0.9 * 21.0, factor=0.5 / 21.0)
    (p, null), (q, other) = (curve_p_value(name, one) for one in (plain, moved))
    assert_close(p, q)
    tail = CURVES[name](plain)
    assert (null.method, null.exact, null.p_floor) == (name, False, None)
    assert_close(null.mean, 0.5 * tail.moments.mean)
    assert_close([null.mean, null.standard_deviation], [other.mean, other.standard_deviation])
    assert (null.permutations, null.trace) == (
        (6000 if name == "pearson" else None),
        (None if name == "gamma" else "exact"),
    )


@pytest.mark.parametrize("name", CURVES)
def test_a_statistic_that_no_relabelling_changes_is_refused(name):
    constant = np.eye(8) - 1 / 8
    for A, B in ((constant, centred("linear", 8, "biased")), (np.zeros((8, 8)), constant)):
        with pytest.raises(UndecidedError, match="nothing can be tested"):
            CURVES[name](DensePair(A, B, 1.0, rounding=1e-12))


def assert_invariants(found, M):
    size = np.abs(M).max() ** 3 * len(M) ** 2
    for name in Invariants._fields:
        expected = getattr(invariants_of(M), name)
        np.testing.assert_allclose(getattr(found, name), expected, rtol=STATISTIC, atol=STATISTIC * size, err_msg=name)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("n_x", "n_y"), [(2, 2), (3, 2), (2, 9), (9, 2), (7, 7), (40, 23)])
def test_a_label_has_the_invariants_and_the_eigenvalues_of_its_matrix(n_x, n_y, estimator):
    B = np.array(naive.centred[estimator](naive.label_gram([1] * n_x + [0] * n_y)))
    label = LabelMatrix(n_x, n_y, estimator)
    assert_invariants(CentredLabel(label).first_invariants(), B)
    spectrum = CentredLabel(label).spectrum()[0]
    # The vector of ones has eigenvalue 0.
    values = np.append(np.repeat(spectrum.values, spectrum.multiplicities.astype(int)), 0.0)
    assert_close(np.sort(values), np.linalg.eigvalsh(B))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("text", KERNELS)
@pytest.mark.parametrize("n", [5, 300])
def test_a_kernel_has_the_invariants_and_the_eigenvalues_of_its_matrix(n, text, estimator):
    points, kernel, hollow = points_of(n), parse_kernel(text), estimator == "unbiased"
    A = centred(text, n, estimator)
    found, exact = CentredKernel(kernel, points, ENGINE, hollow=hollow, seed=0).invariants()
    assert exact
    assert_invariants(found, A)
    first = CentredKernel(kernel, points, ENGINE, hollow=hollow).first_invariants()
    assert_close([first.trace, first.trace_square], [found.trace, found.trace_square])
    spectrum, exact = CentredKernel(kernel, points, ENGINE, hollow=hollow, seed=0).spectrum()
    assert exact
    assert_close(spectrum.values, np.linalg.eigvalsh(A))
    centring, diagonal = centre(kernel, points, ENGINE, hollow=hollow)
    centred_matrix = kernel(points) - centring.row[:, None] - centring.row + centring.grand
    assert_close(centred_matrix[0, 1:], A[0, 1:], scale=np.abs(A).max())
    assert_close(diagonal, np.diag(A), scale=np.abs(A).max())


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("text", ["gaussian(0.2)", "gaussian(1.5)", "laplacian(0.5)", "polynomial(2)"])
def test_what_random_vectors_estimate_is_close(text, estimator, monkeypatch):
    points, kernel, hollow = points_of(600), parse_kernel(text), estimator == "unbiased"
    exact, _ = CentredKernel(kernel, points, ENGINE, hollow=hollow, seed=0).invariants()
    every, _ = CentredKernel(kernel, points, ENGINE, hollow=hollow, seed=0).spectrum()
    monkeypatch.setattr(moments, "EXACT_TRACE_ROWS", 100)
    monkeypatch.setattr(moments, "low_rank", lambda *_: None)
    found, is_exact = CentredKernel(kernel, points, ENGINE, hollow=hollow, seed=0).invariants()
    assert not is_exact
    np.testing.assert_allclose(found.trace_cube, exact.trace_cube, rtol=0.01)
    for name in ("trace", "trace_square", "diagonal_square", "diagonal_cube", "diagonal_form", "entry_cubes"):
        assert_close(getattr(found, name), getattr(exact, name))
    again, _ = CentredKernel(kernel, points, Engine(2), hollow=hollow, seed=0).invariants()
    other, _ = CentredKernel(kernel, points, ENGINE, hollow=hollow, seed=1).invariants()
    assert_close(again.trace_cube, found.trace_cube, share=SAME_MACHINE)
    assert text == "polynomial(2)" or other.trace_cube != found.trace_cube
    leading, is_exact = CentredKernel(kernel, points, ENGINE, hollow=hollow, seed=0).spectrum()
    assert not is_exact
    size = np.abs(every.values).sum()
    # What is left over is dropped where its squares are less than 1e-12 of all.
    assert leading.values @ leading.multiplicities == pytest.approx(every.values.sum(), abs=1e-6 * size)
    assert_close(leading.values**2 @ leading.multiplicities, (every.values**2).sum(), scale=size**2)
    # One step of subspace iteration.
    assert leading.values.max() == pytest.approx(every.values.max(), rel=0.06)


def test_values_whose_cubes_are_no_floats_have_moments():
    """Rows 24 bandwidths apart: kernel values of 1e-125, whose sums have a variance of 1e-250."""
    far = Points.of(np.array([0.0, 24.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0]))
    a, b = (
        CentredKernel(parse_kernel("gaussian(1)"), points, ENGINE, hollow=True, seed=0).invariants()[0]
        for points in (far, points_of(8))
    )
    found = permutation_moments(a, b, 8)
    assert 0 < found.standard_deviation < 1e-120
    assert math.isfinite(found.skewness)


@pytest.mark.parametrize("skewness", [-0.7, 0.0, 1e-5, 9.9e-5, 0.003, 0.05, 0.3, 0.5, 1.0, 2.0, 2.9, 6.0])
def test_a_curve_of_three_moments_is_that_of_pearson_iii_and_one_of_four_with_its_kurtosis(skewness):
    z = np.r_[np.linspace(-5, 12, 36), 20.0, 50.0, 1e4]
    # A negative skewness counts as none.
    law = stats.pearson3(skewness) if skewness > 1e-4 else stats.norm
    expected = np.maximum(law.sf(z), SMALLEST)
    found = [moments_p_value(4.0 * one + 3.0, Moments(3.0, 4.0, skewness)) for one in z]
    assert_close(np.log(found), np.log(expected))
    for one, p in zip(z, found, strict=True):
        if skewness in {0.0, 0.5, 2.0} and one < 12:
            assert pearson_tail(one, skewness, 3.0 + 1.5 * skewness**2) == pytest.approx(p, rel=1e-8)


@given(z=st.floats(-30, 1e4), step=st.floats(1e-3, 1e4), skewness=st.floats(-1, 20) | st.floats(1e-4, 0.1))
def test_a_curve_of_three_moments_falls_and_is_never_nothing(z, step, skewness):
    higher, lower = upper_tail([z, z + step], skewness)
    # At most rounding: a tail near e^-600 has about nine digits where the shape is large.
    assert 0 < lower <= higher * (1 + 1e-6) <= 1 + 1e-6


PEARSON_SYSTEM = ("beta", 2, 5), ("beta", 0.7, 3), ("t", 9), ("gamma", 3), ("gamma", 0.5), ("f", 5, 20), ("norm",)


@pytest.mark.parametrize("name", [*PEARSON_SYSTEM, ("betaprime", 4, 12)])
@pytest.mark.parametrize("level", [0.9, 0.5, 0.05, 1e-3, 1e-6])
def test_the_curve_of_four_moments_is_exact_for_members_of_the_system(name, level):
    law = getattr(stats, name[0])(*name[1:])
    mean, variance, skewness, excess = (float(value) for value in law.stats("mvsk"))
    z = (law.isf(level) - mean) / math.sqrt(variance)
    assert pearson_tail(z, skewness, excess + 3) == pytest.approx(level, rel=1e-4)


def test_the_curve_of_four_moments_at_and_beyond_the_ends_of_an_interval():
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
    points = [float(np.quantile(drawn, 1 - level)) for level in (0.9, 0.5, 0.1, 0.01, 0.001)]
    tails = [weighted_chi_square_tail(x, np.array(weights), np.array(counts)) for x in points]
    # 400 of the draws lie beyond the 0.1 % point: a standard error of 5 %.
    assert tails == pytest.approx([0.9, 0.5, 0.1, 0.01, 0.001], rel=0.12)
    middle = float(np.dot(weights, counts)) + np.linspace(-0.01, 0.01, 21)
    assert (np.diff([weighted_chi_square_tail(x, np.array(weights), np.array(counts)) for x in middle]) <= 1e-9).all()


def test_a_rest_that_cancels_keeps_its_sum_of_squares():
    spectrum = completed(np.array([3.0]), 3.0, 10.0, 5)
    assert_close(spectrum.values @ spectrum.multiplicities, 3.0)
    assert_close(spectrum.values**2 @ spectrum.multiplicities, 10.0)
