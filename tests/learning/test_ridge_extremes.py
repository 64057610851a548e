"""Ridge regressions of extreme sizes, of kernels that see nothing, and of targets and weights in odd shapes."""

from fractions import Fraction

import naive
import numpy as np
import pandas as pd
import pytest
from learning.svm_cases import gaussian, raises
from tolerances import assert_close

from kerntest import KernelRidge, parse_kernel, train_ridge
from kerntest.errors import DataError, UndecidedError, UsageError


def wave(n=60, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + noise * rng.normal(size=n)


X, Y = wave()


@pytest.mark.parametrize("rows", [60, 1200])
@pytest.mark.parametrize("bandwidth", [1e9, 1e70])
@pytest.mark.parametrize("criterion", ["loo", "gcv", "evidence"])
def test_a_kernel_that_is_constant_to_rounding_predicts_the_mean(rows, bandwidth, criterion):
    inputs, target = wave(rows)
    fitted = KernelRidge(kernel=f"gaussian({bandwidth})", criterion=criterion).fit(inputs, target)
    mean, deviation = fitted.predict(inputs[:3], return_std=True)
    np.testing.assert_allclose(mean, target.mean(), rtol=1e-9)
    np.testing.assert_allclose(deviation, target.std(ddof=1) * np.sqrt(1 + 1 / rows), rtol=1e-3)
    np.testing.assert_allclose(fitted.effective_df_, 1.0, rtol=1e-9)


def test_a_constant_matrix_predicts_the_mean():
    fitted = KernelRidge(kernel="precomputed").fit(np.ones((60, 60)), Y)
    np.testing.assert_allclose(fitted.predict(np.ones((2, 60))), Y.mean(), rtol=1e-12)


@pytest.mark.parametrize("size", [3, 40, 300])
@pytest.mark.parametrize("penalty", [1e-6, 0.1])
def test_deviations_with_fourier_features_are_those_of_their_own_process(size, penalty):
    fitted = KernelRidge(penalty, "gaussian(1)", features=f"fourier:{size}", scale="none").fit(X, Y)
    features, scale = fitted.model.features, fitted.model.scales[0]
    new = np.concatenate([X[:5], wave(20, seed=2)[0]])
    phases = [one @ features.projection + features.offsets for one in (X, new)]
    Z, Z_new = (np.sqrt(2 / size) * np.cos(phase) for phase in phases)
    # Weights with a normal prior, seen through rows less their mean.
    centred = Z - Z.mean(axis=0)
    covariance = np.linalg.inv(centred.T @ centred / penalty + np.eye(size))
    apart = Z_new - Z.mean(axis=0)
    variance = np.einsum("ij,jk,ik->i", apart, covariance, apart) + penalty / len(X)
    found = fitted.predict(new, return_std=True, noise=False)[1]
    np.testing.assert_allclose(found, scale * np.sqrt(variance), rtol=1e-5)


def test_rows_left_out_are_judged_by_the_intervals_that_predictions_have():
    fitted = KernelRidge(0.1, "gaussian(1)", features="nystroem:5", scale="none").fit(X, Y)
    landmarks = fitted.model.features.landmarks.numeric
    cross = gaussian(X, landmarks, 1.0)
    seen = np.einsum("ij,jk,ik->i", cross, np.linalg.inv(gaussian(landmarks, landmarks, 1.0)), cross)
    Z = cross @ fitted.model.features.projection
    centred = Z - Z.mean(axis=0)
    hat = centred @ np.linalg.solve(centred.T @ centred + 0.1 * np.eye(5), centred.T) + 1 / len(X)
    expected = fitted.model.scales[0] * np.sqrt(0.1 / (1 - np.diag(hat)) + 1 - seen)
    np.testing.assert_allclose(fitted.fit_.left_out_spread[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("probability", [1 - 2.0**-53, 1e-12])
def test_intervals_of_extreme_probabilities_have_finite_ends_on_both_sides(probability):
    fitted = KernelRidge(0.1).fit(X, Y)
    low, high = fitted.predict_interval(X, probability)
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert (low <= high).all()


@pytest.mark.parametrize("penalty", [1e-320, 1e-76, 1e76, 1e300])
def test_a_lambda_out_of_the_range_of_eigenvalues_is_refused(penalty):
    raises(UsageError, "usage.lambda", lambda: KernelRidge(penalty))


def test_the_smallest_lambda_leaves_rows_out_like_interpolation():
    fitted = KernelRidge(1e-75, "laplacian(1)", scale="none").fit(X, Y)
    apart = np.abs(X[:, None] - X[None]).sum(axis=2)
    K = np.exp(-apart)
    bordered = np.block([[K, np.ones((60, 1))], [np.ones((1, 60)), np.zeros((1, 1))]])
    inverse = np.linalg.inv(bordered)
    expected = (inverse @ np.append(Y, 0.0) / np.diag(inverse))[:60]
    np.testing.assert_allclose(fitted.fit_.left_out[:, 0], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", [1e260, 1.7e308])
def test_targets_whose_scales_would_overflow_are_refused(size):
    target = Y / np.abs(Y).max() * size
    raises(DataError, "data.target_size", lambda: KernelRidge().fit(X, target))
    raises(DataError, "data.target_size", lambda: KernelRidge(kernel="precomputed").fit(X @ X.T, target))
    raises(DataError, "data.target_size", lambda: train_ridge(np.column_stack([X, target]), "x3"))


def test_a_matrix_whose_sums_overflow_is_refused():
    error = raises(
        UndecidedError, "undecided.overflow", lambda: KernelRidge(kernel="precomputed").fit(X @ X.T * 1e307, Y)
    )
    assert "precomputed matrix" in error.message


@pytest.mark.parametrize("unit", [1e-10, 1e-4, 1e6])
def test_the_lambdas_that_are_tried_follow_the_size_of_the_weights(unit):
    plain = KernelRidge().fit(X, Y, sample_weight=np.ones(60))
    scaled = KernelRidge().fit(X, Y, sample_weight=np.full(60, unit))
    np.testing.assert_allclose(scaled.lambda_, plain.lambda_ * unit, rtol=1e-9)
    np.testing.assert_allclose(scaled.predict(X), plain.predict(X), rtol=1e-6)


@pytest.mark.parametrize("weight", [5e-324, 1e-80, 1e80, 1e308])
def test_weights_whose_products_are_no_numbers_are_refused_by_their_name(weight):
    weights = np.where(np.arange(60) == 7, weight, 1.0)
    error = raises(DataError, "data.weights", lambda: KernelRidge().fit(X, Y, sample_weight=weights))
    assert "'sample_weight'" in error.message


def test_messages_about_weights_do_not_blame_the_target():
    fit = KernelRidge(0.1).fit
    short = raises(DataError, "data.rows_do_not_pair", lambda: fit(X, Y, sample_weight=np.ones(3)))
    assert "sample_weight 3 values" in short.message
    missing = raises(DataError, "data.missing_values", lambda: fit(X, Y, sample_weight=np.full(60, np.nan)))
    assert missing.message.startswith("sample_weight")


def test_targets_of_dates_are_told_to_be_predicted_in_days():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(60), unit="D")
    result = train_ridge(pd.DataFrame(X, columns=["a", "b"]).assign(y=days), "y", lambda_=0.1)
    assert any("days since 1970-01-01" in warning for warning in result.warnings)


def test_a_score_needs_the_targets_of_the_fit():
    two = KernelRidge(0.1).fit(X, np.column_stack([Y, -Y]))
    raises(DataError, "data.wrong_shape", lambda: two.score(X, Y))
    raises(DataError, "data.wrong_shape", lambda: KernelRidge(0.1).fit(X, Y).score(X, np.column_stack([Y, -Y])))


def test_two_targets_of_one_name_are_refused_before_a_model_has_them():
    twice = pd.DataFrame(np.column_stack([Y, -Y]), columns=["a", "a"])
    raises(DataError, "data.duplicate_columns", lambda: KernelRidge(0.1).fit(X, twice))


def test_targets_and_options_of_the_wrong_type_are_refused():
    raises(DataError, "data.wrong_shape", lambda: KernelRidge(0.1).fit(X, [[1.0, 2.0], [1.0], *[[1.0, 2.0]] * 58]))
    raises(UsageError, "usage.target", lambda: train_ridge(np.column_stack([X, Y]), 2))
    raises(UsageError, "usage.features", lambda: KernelRidge(features=5))


def test_folds_may_be_counted_by_numpy():
    ours, plain = (KernelRidge(criterion="cv", cv=folds).fit(X, Y) for folds in (np.int64(4), 4))
    assert ours.lambda_ == plain.lambda_


def test_names_with_commas_are_targets_alone_and_beside_others():
    table = pd.DataFrame(np.column_stack([X, Y, -Y]), columns=["a", "b", "wear, mean", "power"])
    for target in ("wear, mean", ["wear, mean"], pd.Index(["wear, mean"])):
        assert train_ridge(table, target, lambda_=0.1).targets == ("wear, mean",)
    assert train_ridge(table, ["wear, mean", "power"], lambda_=0.1).targets == ("wear, mean", "power")
    assert train_ridge(table, ["b,power", "a"], lambda_=0.1).targets == ("a", "b", "power")


@pytest.mark.parametrize(("rows", "bandwidth", "zero"), [(10, 2.0, 0), (8, 5.0, 1)])
def test_an_ill_conditioned_system_tells_of_directions_only_where_some_are_zero(rows, bandwidth, zero):
    x = np.linspace(0, 1, rows)
    result = train_ridge(np.column_stack([x, np.sin(9 * x)]), "x2", lambda_=1e-30, bandwidth=bandwidth)
    warning = next(one for one in result.warnings if "ill-conditioned" in one)
    assert result.n_zero == zero
    assert ("without the 1 direction whose" in warning) == (zero == 1)
    assert "0 direction" not in warning


@pytest.mark.parametrize("penalty", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize(
    "kernel", ["gaussian(3)", "gaussian(1)", "exponential(0.5)", "polynomial(3,1,1)", "laplacian(1)"]
)
@pytest.mark.parametrize("repeats", [1, 2])
def test_away_from_the_rows_predictions_are_as_right_as_by_solving_the_system(kernel, penalty, repeats):
    rng = np.random.default_rng(8)
    X = np.repeat(rng.normal(size=(16 // repeats, 1)), repeats, axis=0)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))
    weights = rng.uniform(0.5, 2.0, len(X)) if repeats == 2 else np.ones(len(X))
    rest = np.array([[0.0], [4.0], [7.0]])
    parsed = parse_kernel(kernel)
    K, cross = parsed(X), parsed(rest, X)
    exact = [[Fraction(value) for value in row] for row in K.tolist()]
    alpha, b = naive.ridge(exact, [*map(Fraction, y)], Fraction(penalty), [*map(Fraction, weights)])
    expected = [float(b + sum(Fraction(k) * a for k, a in zip(row, alpha, strict=True))) for row in cross.tolist()]
    condition = np.linalg.eigvalsh(K)[-1] * weights.max() / penalty
    given = {"sample_weight": weights} if repeats == 2 else {}
    for fitted, new in (
        (KernelRidge(penalty, kernel, scale="none").fit(X, y, **given), rest),
        (KernelRidge(penalty, "precomputed", scale="none").fit(K, y, **given), cross),
    ):
        assert_close(fitted.predict(new), expected, condition=condition, share=4 * np.finfo(float).eps)
