"""Every closed form of the path of ridge regressions against as many refits, linear systems or dense formulas."""

import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge as PeerRidge

from kerntest.errors import UndecidedError
from kerntest.learning.cross_validation import smoothest
from kerntest.learning.solvers.ridge_path import RidgePath, dense_spectrum, thin_spectrum

LAMBDAS = np.array([1e-6, 1e-3, 0.1, 1.0, 30.0])


def problem(n=14, d=2, targets=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.stack([np.sin((1 + t) * X[:, 0]) + 0.2 * rng.normal(size=n) + 10 * t for t in range(targets)], axis=1)
    return X, Y


def gram(X, Z=None, bandwidth=1.0):
    Z = X if Z is None else Z
    squared = ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-squared / (2 * bandwidth**2))


def path_of(K, Y, weights=None):
    return RidgePath(dense_spectrum(K.copy(), np.ones(len(K)) if weights is None else weights), Y)


WEIGHTS = (None, np.random.default_rng(5).uniform(0.2, 3.0, 14))


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
@pytest.mark.parametrize("penalty", [1e-3, 0.7])
def test_coefficients_solve_the_whole_linear_system(weights, penalty):
    X, Y = problem()
    K = gram(X)
    path = path_of(K, Y, weights)
    found = path.coefficients(penalty)
    listed = None if weights is None else weights.tolist()
    for t in range(2):
        alpha, b = naive.ridge(K.tolist(), Y[:, t].tolist(), penalty, listed)
        np.testing.assert_allclose(found[:, t], alpha, rtol=1e-9, atol=1e-9 * np.abs(alpha).max())
        residuals = path.scaled_residuals(np.array([penalty]))[:, t, 0] / path.spectrum.roots
        np.testing.assert_allclose(Y[:, t] - residuals, K @ np.array(alpha) + b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
def test_leave_one_out_is_as_many_refits_as_rows(weights):
    X, Y = problem()
    K = gram(X)
    found = path_of(K, Y, weights).left_out(LAMBDAS)
    listed = None if weights is None else weights.tolist()
    for place, penalty in enumerate(LAMBDAS):
        for t in range(2):
            expected = naive.ridge_left_out(K.tolist(), Y[:, t].tolist(), penalty, list(range(14)), listed)
            np.testing.assert_allclose(found[:, t, place], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
def test_k_folds_are_k_refits(weights):
    X, Y = problem()
    K = gram(X)
    folds = np.array([0, 1, 2, 0, 1, 2, 0, 0, 0, 1, 2, 2, 1, 0])
    found = path_of(K, Y, weights).left_out(LAMBDAS[1:], folds)
    listed = None if weights is None else weights.tolist()
    for place, penalty in enumerate(LAMBDAS[1:]):
        expected = naive.ridge_left_out(K.tolist(), Y[:, 1].tolist(), penalty, folds.tolist(), listed)
        np.testing.assert_allclose(found[:, 1, place], expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
def test_degrees_slack_and_gcv_come_from_the_hat_matrix(weights):
    X, Y = problem()
    K = gram(X)
    path = path_of(K, Y, weights)
    penalty = 0.3
    hat = np.array(naive.ridge_hat(K.tolist(), penalty, None if weights is None else weights.tolist()))
    lambdas = np.array([penalty])
    np.testing.assert_allclose(path.degrees(lambdas), [np.trace(hat)], rtol=1e-10)
    np.testing.assert_allclose(path.slack(lambdas)[:, 0], 1 - np.diag(hat), rtol=1e-9)
    w = np.ones(14) if weights is None else weights
    squares = (w[:, None] * (Y - hat @ Y) ** 2).sum(axis=0) / w.sum()
    np.testing.assert_allclose(path.generalised(lambdas)[:, 0], squares / (1 - np.trace(hat) / 14) ** 2, rtol=1e-9)


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
def test_the_evidence_is_that_of_a_gaussian_process_with_a_flat_prior_on_its_mean(weights):
    X, Y = problem()
    K = gram(X)
    penalty = 0.3
    y = Y[:, 0]
    path = path_of(K, Y[:, :1], weights)
    noise = np.ones(14) if weights is None else 1 / weights
    scale = path.scales(np.array([penalty]))[0, 0]
    M = K + penalty * np.diag(noise)
    inverse, ones = np.linalg.inv(M), np.ones(14)
    precision = ones @ inverse @ ones
    mean = ones @ inverse @ y / precision
    quadratic = (y - mean) @ inverse @ (y - mean)
    np.testing.assert_allclose(scale, quadratic / 13, rtol=1e-10)
    determinant = np.linalg.slogdet(2 * math.pi * scale * M)[1]
    # The integral over b of N(y; b 1, scale M).
    expected = -0.5 * (determinant + quadratic / scale) + 0.5 * math.log(2 * math.pi * scale / precision)
    np.testing.assert_allclose(path.log_evidence(np.array([penalty]))[0, 0], expected, rtol=1e-10)


def test_the_variance_is_that_of_the_process_with_an_unknown_mean():
    X, Y = problem()
    Z = np.random.default_rng(1).normal(size=(6, 2))
    K, cross = gram(X), gram(Z, X)
    penalty = 0.05
    path = path_of(K, Y)
    B = path.posterior(penalty, share=0.0)
    middle = K.mean(axis=0)
    centred = 1.0 - 2 * cross.mean(axis=1) + K.mean()
    found = penalty / 14 + centred - np.square((cross - middle) @ B).sum(axis=1)
    inverse, ones = np.linalg.inv(K + penalty * np.eye(14)), np.ones(14)
    left = 1 - cross @ inverse @ ones
    expected = 1 - np.einsum("ij,jk,ik->i", cross, inverse, cross) + left**2 / (ones @ inverse @ ones)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_fit_and_spread_are_those_of_scikit_learn_where_the_intercept_plays_no_part():
    # Rows in pairs x, -x, an odd kernel and odd targets: the mean of everything is 0, and centring changes nothing.
    rng = np.random.default_rng(2)
    half = rng.normal(size=(10, 3))
    X, y = np.concatenate([half, -half]), np.concatenate([np.sin(half[:, 0]), -np.sin(half[:, 0])])

    def odd(A, B):
        return gram(A, B) - gram(A, -B)

    K, Z = odd(X, X), rng.normal(size=(7, 3))
    path = path_of(K, y[:, None])
    for penalty in (1e-4, 0.1, 3.0):
        peer = PeerRidge(alpha=penalty, kernel="precomputed").fit(K, y)
        ours = odd(Z, X) @ path.coefficients(penalty)[:, 0] + path.means[0]
        np.testing.assert_allclose(ours, peer.predict(odd(Z, X)), rtol=1e-8, atol=1e-10)


def test_spread_is_that_of_a_gaussian_process_regressor_when_the_mean_is_known():
    # The mean gets a prior variance of 1e7 instead of an infinite one: k + 1e7, and agreement to that.
    X, Y = problem(n=30)
    penalty, wide = 0.1, 1e7
    process = GaussianProcessRegressor(RBF(1.0), alpha=penalty, optimizer=None)
    process.kernel = RBF(1.0) + wide
    process.fit(X, Y[:, 0])
    Z = np.random.default_rng(3).normal(size=(5, 2))
    mean, spread = process.predict(Z, return_std=True)
    K, cross = gram(X), gram(Z, X)
    path = path_of(K, Y[:, :1])
    alpha = path.coefficients(penalty)[:, 0]
    b = path.means[0] - K.mean(axis=0) @ alpha
    np.testing.assert_allclose(cross @ alpha + b, mean, rtol=1e-5, atol=1e-5)
    B = path.posterior(penalty, share=0.0)
    centred = 1.0 - 2 * cross.mean(axis=1) + K.mean()
    variance = penalty / 30 + centred - np.square((cross - K.mean(axis=0)) @ B).sum(axis=1)
    np.testing.assert_allclose(np.sqrt(variance), spread, rtol=1e-4)


def test_whole_weights_are_repeated_rows():
    X, Y = problem()
    repeats = np.array([1, 2, 3, 1, 1, 2, 1, 1, 4, 1, 2, 1, 1, 3])
    rows = np.repeat(np.arange(14), repeats)
    weighted = path_of(gram(X), Y, repeats.astype(float))
    repeated = path_of(gram(X[rows]), Y[rows])
    for penalty in (1e-3, 0.5):
        summed = np.zeros((14, 2))
        np.add.at(summed, rows, repeated.coefficients(penalty))
        np.testing.assert_allclose(summed, weighted.coefficients(penalty), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(repeated.means, weighted.means, rtol=1e-12)
    np.testing.assert_allclose(repeated.degrees(LAMBDAS), weighted.degrees(LAMBDAS), rtol=1e-9)


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
def test_a_thin_factor_gives_what_its_product_gives(weights):
    rng = np.random.default_rng(4)
    G = rng.normal(size=(14, 5)) + 3.0
    Y = problem()[1]
    thin = RidgePath(thin_spectrum(G.copy(), np.ones(14) if weights is None else weights), Y)
    dense = path_of(G @ G.T, Y, weights)
    assert thin.spectrum.values.shape == (5,)
    assert not thin.spectrum.complete
    folds = np.arange(14) % 4
    lambdas = LAMBDAS[1:]
    for name in ("degrees", "left_out", "generalised", "scales", "log_evidence", "slack", "scaled_residuals"):
        np.testing.assert_allclose(getattr(thin, name)(lambdas), getattr(dense, name)(lambdas), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(thin.left_out(lambdas, folds), dense.left_out(lambdas, folds), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(thin.condition(0.1), dense.condition(0.1), rtol=1e-9)
    assert thin.spectrum.n_zero == dense.spectrum.n_zero == 8


def test_eigenvectors_are_orthogonal_to_the_constant_however_many_eigenvalues_are_zero():
    rng = np.random.default_rng(0)
    for weights in (np.ones(40), rng.uniform(0.1, 5.0, 40)):
        K = gram(np.repeat(rng.normal(size=(8, 2)), 5, axis=0))
        spectrum = dense_spectrum(K, weights)
        assert spectrum.vectors.shape == (40, 39)
        assert np.abs(spectrum.roots @ spectrum.vectors).max() < 1e-13
        assert np.abs(spectrum.vectors.T @ spectrum.vectors - np.eye(39)).max() < 1e-12
        assert spectrum.n_zero == 32


@pytest.mark.parametrize("penalty", [1e-7, 1e-10, 1e-14, 1e-20])
def test_tiny_penalties_on_repeated_rows_predict_the_means_of_the_repeats(penalty):
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(6, 1)) * 3, 3, axis=0)
    y = rng.normal(size=18)
    K = gram(X, bandwidth=0.3)
    path = path_of(K, y[:, None])
    alpha = path.coefficients(penalty)[:, 0]
    fitted = K @ alpha + path.means[0] - K.mean(axis=0) @ alpha
    np.testing.assert_allclose(fitted, y.reshape(6, 3).mean(axis=1).repeat(3), rtol=0, atol=max(100 * penalty, 1e-11))
    # Without a row, its two twins say what is there.
    others = (y.reshape(6, 3).sum(axis=1).repeat(3) - y) / 2
    left_out = path.left_out(np.array([penalty]))[:, 0, 0]
    np.testing.assert_allclose(left_out, y - others, rtol=0, atol=max(100 * penalty, 1e-10))
    assert path.condition(penalty) > 1 / penalty


def test_leave_one_out_keeps_its_digits_where_the_fit_goes_through_every_row():
    X, Y = problem(n=10, targets=1)
    K = gram(X, bandwidth=0.4)
    found = path_of(K, Y).left_out(np.array([1e-13]))[:, 0, 0]
    expected = naive.ridge_left_out(K.tolist(), Y[:, 0].tolist(), 1e-13, list(range(10)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_matrix_that_is_not_definite_is_noticed():
    K = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(UndecidedError, match="not positive definite"):
        dense_spectrum(K, np.ones(3))


def test_of_equal_scores_the_smoothest_is_taken():
    scores = np.array([2.0, 1.0, 1.0 + 1e-12, 1.0, 3.0])
    lambdas = np.array([9.0, 1.0, 5.0, 5.0, 9.0])
    widths = np.array([9.0, 9.0, 1.0, 2.0, 9.0])
    assert smoothest(scores, [lambdas, widths]) == 3
    assert smoothest(np.array([-5.0, -6.0, -6.0]), [np.array([3.0, 2.0, 1.0])]) == 1


@settings(deadline=None, max_examples=25)
@given(
    n=st.integers(3, 10),
    seed=st.integers(0, 2**32 - 1),
    exponent=st.floats(-6, 3),
    bandwidth=st.floats(0.2, 5),
    weighted=st.booleans(),
    repeats=st.integers(1, 2),
)
def test_whatever_the_rows_are_the_closed_forms_are_those_of_refits(*, n, seed, exponent, bandwidth, weighted, repeats):
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n, 2)), repeats, axis=0)
    y = rng.normal(size=len(X))
    weights = rng.uniform(0.1, 3.0, len(X)) if weighted else None
    penalty = 10.0**exponent
    K = gram(X, bandwidth=bandwidth)
    path = path_of(K, y[:, None], weights)
    lambdas = np.array([penalty])
    slack = path.slack(lambdas)[:, 0]
    assert (slack > 0).all()
    assert (slack <= 1 + 1e-12).all()
    degrees = path.degrees(lambdas)[0]
    assert 1 <= degrees <= len(X) + 1e-9
    np.testing.assert_allclose(len(X) - slack.sum(), degrees, rtol=1e-9)
    # Leave one row out for real.
    row = int(rng.integers(len(X)))
    kept = np.arange(len(X)) != row
    listed = None if weights is None else weights[kept].tolist()
    alpha, b = naive.ridge(K[np.ix_(kept, kept)].tolist(), y[kept].tolist(), penalty, listed)
    expected = y[row] - b - K[row, kept] @ np.array(alpha)
    found = path.left_out(lambdas)[row, 0, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
