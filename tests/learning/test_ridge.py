"""Ridge regression in Python: what it fits, how it chooses, and what its intervals hold."""

from dataclasses import asdict

import naive
import numpy as np
import pandas as pd
import pytest
from learning.alike import assert_records_alike
from learning.svm_cases import bundled, gaussian, raises
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge as PeerRidge
from tolerances import SAME_MACHINE, assert_close

from kerntest import KernelRidge, train_ridge
from kerntest.errors import DataError, UndecidedError, UsageError


def wave(n=120, d=2, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1:].sum(axis=1) + noise * rng.normal(size=n)


def standardised(X, Z=None):
    return ((X if Z is None else Z) - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("penalty", [1e-6, 0.1, 10.0])
@pytest.mark.parametrize("name", ["diabetes", "cancer"])
def test_predictions_are_those_of_scikit_learn_on_the_centred_kernel(name, penalty):
    X, y = bundled(name)
    y = y.astype(float)
    rest, X, y = X[::7], X[1::3], y[1::3]
    ours = KernelRidge(penalty, "gaussian(4)", scale="none").fit(X, y)
    n = len(X)
    H = np.eye(n) - 1 / n
    K, cross = gaussian(X, X, 4.0), gaussian(rest, X, 4.0)
    peer = PeerRidge(alpha=penalty, kernel="precomputed").fit(H @ K @ H, y - y.mean())
    expected = (cross - K.mean(axis=0)) @ H @ peer.dual_coef_ + y.mean()
    np.testing.assert_allclose(ours.predict(rest), expected, rtol=1e-6, atol=1e-8 * np.abs(y).max())


def test_without_an_intercept_to_speak_of_it_is_scikit_learns_regression():
    # A constant added to the kernel is an intercept with a penalty that vanishes.
    X, y = wave(60)
    ours = KernelRidge(0.3, "gaussian(1)", scale="none").fit(X, y)
    peer = PeerRidge(alpha=0.3, kernel="precomputed").fit(gaussian(X, X, 1.0) + 1e7, y)
    rest = wave(20, seed=1)[0]
    expected = peer.predict(gaussian(rest, X, 1.0) + 1e7)
    np.testing.assert_allclose(ours.predict(rest), expected, rtol=0, atol=1e-6)


def test_a_linear_kernel_is_ordinary_ridge_regression():
    X, y = wave(80, 3)
    ours = KernelRidge(2.0, "linear", scale="none").fit(X, y)
    centred = X - X.mean(axis=0)
    slope = np.linalg.solve(centred.T @ centred + 2.0 * np.eye(3), centred.T @ (y - y.mean()))
    rest = wave(10, 3, seed=1)[0]
    np.testing.assert_allclose(ours.predict(rest), (rest - X.mean(axis=0)) @ slope + y.mean(), rtol=1e-10)
    df = 1 + np.trace(np.linalg.solve(centred.T @ centred + 2.0 * np.eye(3), centred.T @ centred))
    np.testing.assert_allclose(ours.effective_df_, df, rtol=1e-10)


@pytest.mark.parametrize("penalty", [1e-12, 1e-40])
def test_directions_that_are_nothing_but_rounding_stay_out(penalty):
    X, y = wave(60, 3)
    far = 100.0 * wave(5, 3, seed=1)[0]
    slope = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]
    expected = (far - X.mean(axis=0)) @ slope + y.mean()
    np.testing.assert_allclose(KernelRidge(penalty, "linear", scale="none").fit(X, y).predict(far), expected, rtol=1e-8)
    twice = KernelRidge(penalty, "gaussian(1)").fit(np.repeat(X[:20], 2, axis=0), y[:40])
    np.testing.assert_allclose(twice.predict(X[:20]), y[:40].reshape(20, 2).mean(axis=1), rtol=1e-6)


def test_a_matrix_with_repeated_rows_is_interpolated_by_their_means_with_the_smallest_lambda():
    X, y = wave(40)
    K = gaussian(X[:20], X[:20], 1.0)
    fitted = KernelRidge(1e-40, "precomputed").fit(np.kron(K, np.ones((2, 2))), y)
    np.testing.assert_allclose(fitted.predict(np.kron(K, np.ones((1, 2)))), y.reshape(20, 2).mean(axis=1), rtol=1e-6)


def test_the_root_mean_square_of_leave_one_out_is_that_of_refits():
    X, y = wave(25)
    ours = KernelRidge(0.1, "gaussian(1)", scale="none").fit(X, y)
    residuals = naive.ridge_left_out(gaussian(X, X, 1.0).tolist(), y.tolist(), 0.1, list(range(25)))
    np.testing.assert_allclose(ours.fit_.left_out[:, 0], residuals, rtol=1e-9)
    np.testing.assert_allclose(ours.loo_rmse_, np.sqrt(np.mean(np.square(residuals))), rtol=1e-10)


def test_the_grid_has_every_cell_and_the_best_one_is_chosen():
    X, y = wave()
    ours = KernelRidge().fit(X, y)
    grid = ours.grid_
    assert len(grid.cells) == 200
    scores = np.array([cell.score for cell in grid.cells])
    chosen = grid.cells[grid.chosen]
    assert chosen.score <= scores.min() * (1 + 1e-9)
    assert chosen.lambda_ == ours.lambda_
    np.testing.assert_allclose(ours.loo_rmse_, chosen.score, rtol=1e-12)
    np.testing.assert_allclose(ours.effective_df_, chosen.effective_df, rtol=1e-12)
    # The score of a cell elsewhere in the grid is what a fit with its options finds.
    other = grid.cells[57]
    alone = KernelRidge(other.lambda_, other.kernel).fit(X, y)
    np.testing.assert_allclose(alone.loo_rmse_, other.score, rtol=1e-8)


@pytest.mark.parametrize("criterion", ["loo", "gcv", "cv", "evidence"])
def test_every_criterion_finds_a_good_cell(criterion):
    X, y = wave()
    rest, truth = wave(400, seed=1)
    ours = KernelRidge(criterion=criterion).fit(X, y)
    assert ours.grid_.criterion == criterion
    assert np.sqrt(np.mean((ours.predict(rest) - truth) ** 2)) < 0.36


def test_scores_of_other_criteria_are_those_of_the_chosen_fit():
    X, y = wave(60)
    given = {"lambda_": 0.1, "bandwidth": 1.0}
    by_gcv = KernelRidge(criterion="gcv", **given).fit(X, y)
    np.testing.assert_allclose(by_gcv.grid_.cells[0].score, by_gcv.fit_.targets[0].gcv_rmse, rtol=1e-12)
    by_evidence = KernelRidge(criterion="evidence", **given).fit(X, y)
    np.testing.assert_allclose(by_evidence.grid_.cells[0].score, -by_evidence.fit_.log_evidence, rtol=1e-12)
    folds = [KernelRidge(criterion="cv", cv=k, **given).fit(X, y).grid_.cells[0].score for k in (2, 60)]
    # As many folds as rows are leave-one-out.
    np.testing.assert_allclose(folds[1], by_gcv.loo_rmse_, rtol=1e-10)
    assert folds[0] != folds[1]


def test_where_nothing_depends_on_anything_the_mean_is_predicted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    for criterion in ("loo", "evidence"):
        ours = KernelRidge(criterion=criterion).fit(X, y)
        assert np.std(ours.predict(X)) < 0.35
        assert np.std(ours.predict(rng.normal(size=(500, 3)))) < 0.25


def test_the_same_on_any_number_of_threads():
    X, y = wave(90)
    ours, alone = (KernelRidge(threads=threads).fit(X, y) for threads in (2, 1))
    for one, other in zip(ours.predict(X, return_std=True), alone.predict(X, return_std=True), strict=True):
        assert_close(one, other, condition=alone.fit_.condition, share=SAME_MACHINE)
    assert ours.grid_.chosen == alone.grid_.chosen
    assert_records_alike(asdict(ours.grid_), asdict(alone.grid_), condition=1e3)


def test_several_targets_share_lambda_and_bandwidth_and_are_otherwise_alone():
    X, y = wave()
    Y = np.column_stack([y, 100 * y**2 + 5, np.cos(X[:, 0])])
    ours = KernelRidge().fit(X, Y)
    assert ours.predict(X).shape == (120, 3)
    kernel = ours.grid_.cells[ours.grid_.chosen].kernel
    for place in range(3):
        alone = KernelRidge(ours.lambda_, kernel).fit(X, Y[:, place])
        mean, deviation = alone.predict(X, return_std=True)
        np.testing.assert_allclose(ours.predict(X)[:, place], mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ours.predict(X, return_std=True)[1][:, place], deviation, rtol=1e-8)
        np.testing.assert_allclose(ours.noise_[place], alone.noise_[0], rtol=1e-9)
    relative = np.sqrt(np.mean(np.square([one.loo_rmse for one in ours.fit_.targets]) / Y.var(axis=0)))
    np.testing.assert_allclose(ours.grid_.cells[ours.grid_.chosen].score, relative, rtol=1e-10)
    # The scores do not depend on the units of a target.
    other = KernelRidge().fit(X, Y * [1.0, 1e-6, 1e3])
    assert other.lambda_ == ours.lambda_
    np.testing.assert_allclose(other.score(X, Y * [1.0, 1e-6, 1e3]), ours.score(X, Y), rtol=1e-6)


def test_whole_weights_predict_like_repeated_rows():
    X, y = wave(40)
    repeats = np.arange(40) % 3
    options = {"lambda_": 0.2, "kernel": "gaussian(1)", "scale": "none"}
    weighted = KernelRidge(**options).fit(X, y, sample_weight=repeats)
    repeated = KernelRidge(**options).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    rest = wave(30, seed=3)[0]
    np.testing.assert_allclose(weighted.predict(rest), repeated.predict(rest), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(weighted.effective_df_, repeated.effective_df_, rtol=1e-9)


def test_equal_weights_of_any_size_scale_lambda_only():
    X, y = wave(40)
    plain = KernelRidge(0.2, "gaussian(1)").fit(X, y)
    heavy = KernelRidge(0.6, "gaussian(1)").fit(X, y, sample_weight=np.full(40, 3.0))
    np.testing.assert_allclose(heavy.predict(X), plain.predict(X), rtol=1e-9)
    np.testing.assert_allclose(heavy.loo_rmse_, plain.loo_rmse_, rtol=1e-9)


def test_noise_and_deviations_are_those_of_a_gaussian_process_regressor():
    X, y = wave(70)
    ours = KernelRidge(0.1, "gaussian(1.3)", scale="none").fit(X, y)
    scale = ours.model.scales[0] ** 2
    # An unknown mean is a constant in the kernel whose variance is huge.
    peer = GaussianProcessRegressor(scale * RBF(1.3) + 1e6, alpha=scale * 0.1, optimizer=None).fit(X, y)
    rest = wave(15, seed=2)[0]
    mean, deviation = peer.predict(rest, return_std=True)
    ours_mean, ours_deviation = ours.predict(rest, return_std=True, noise=False)
    np.testing.assert_allclose(ours_mean, mean, rtol=0, atol=1e-4)
    np.testing.assert_allclose(ours_deviation, deviation, rtol=1e-3)
    with_noise = ours.predict(rest, return_std=True)[1]
    np.testing.assert_allclose(with_noise**2, ours_deviation**2 + ours.noise_[0] ** 2, rtol=1e-10)


def test_intervals_hold_what_they_promise_when_the_data_are_a_gaussian_process():
    rng = np.random.default_rng(0)
    held = {0.5: [], 0.9: []}
    for _ in range(12):
        X = rng.uniform(-4, 4, size=(260, 1))
        K = gaussian(X, X, 1.0)
        y = 7.0 + 2.0 * np.linalg.cholesky(K + 1e-9 * np.eye(260)) @ rng.normal(size=260) + 0.5 * rng.normal(size=260)
        ours = KernelRidge(criterion="evidence", scale="none").fit(X[:60], y[:60])
        for probability, hits in held.items():
            low, high = ours.predict_interval(X[60:], probability)
            hits.append(np.mean((y[60:] >= low) & (y[60:] <= high)))
    # Twelve fits of 60 rows: the standard error of the mean over them is below 0.02.
    for probability, hits in held.items():
        assert abs(np.mean(hits) - probability) < 0.05


EDGES = {
    "the best lambda is the smallest": lambda x, noise: x[:, 0] + 2 * x[:, 1] + 0 * noise,
    "the best lambda is the largest": lambda x, noise: noise + 0 * x[:, 0],
    "bandwidth is the smallest": lambda x, noise: np.sign(np.sin(40 * x[:, 0])) + 0.01 * noise,
    "bandwidth is the largest": lambda x, noise: x[:, 0] + 0.1 * noise,
    None: lambda x, noise: np.sin(3 * x[:, 0]) + 0.3 * noise,
}


@pytest.mark.parametrize("told", EDGES)
def test_a_best_cell_at_an_end_of_the_grid_is_told(told):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(80, 2))
    y = EDGES[told](x, rng.normal(size=80))
    result = train_ridge(np.column_stack([x, y]), "x3")
    found = [warning for warning in result.warnings if "of the grid" in warning]
    assert len(found) == (told is not None)
    assert all(told in warning for warning in found)
    np.testing.assert_allclose(result.loo_r2, 1 - result.loo_rmse**2 / y.var(), rtol=1e-9, atol=1e-12)


def test_the_estimated_noise_is_that_of_the_data():
    X, y = wave(400, 1, noise=0.3)
    found = KernelRidge(criterion="evidence").fit(X, y).noise_[0]
    np.testing.assert_allclose(found, 0.3, rtol=0.12)


def test_leaving_rows_out_tells_of_intervals_too():
    X, y = wave(200, 1)
    fit = KernelRidge().fit(X, y).fit_
    reach = fit.model.reach(0.9)
    share = np.mean(np.abs(fit.left_out) <= reach * fit.left_out_spread)
    assert 0.83 < share < 0.97


def test_tables_with_categories_and_dates_are_learned_like_by_svm():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=150),
            "colour": rng.choice(["red", "green", "blue"], 150),
            "day": pd.date_range("2024-01-01", periods=150),
            "ok": rng.random(150) > 0.5,
        }
    )
    y = table["size"] + 2.0 * (table["colour"] == "red") + rng.normal(size=150) * 0.1
    ours = KernelRidge().fit(table, y)
    assert ours.score(table, y) > 0.95
    assert ours.model.encoder.names == ("size", "colour", "day", "ok")
    with_target = table.assign(y=y, z=-y)
    by_name = KernelRidge().fit(with_target, ["y", "z"])
    assert by_name.model.targets == ("y", "z")
    np.testing.assert_allclose(by_name.predict(with_target)[:, 0], -by_name.predict(table)[:, 1], rtol=1e-7, atol=1e-9)
    alone = KernelRidge().fit(with_target.drop(columns="z"), "y")
    np.testing.assert_allclose(alone.predict(table), ours.predict(table), rtol=1e-10)
    framed = KernelRidge().fit(table, pd.DataFrame({"first": y, "second": -y}))
    assert framed.model.targets == ("first", "second")


def test_a_precomputed_matrix_is_the_kernel():
    X, y = wave(50)
    rest = wave(9, seed=1)[0]
    direct = KernelRidge(kernel="gaussian(1)", scale="none").fit(X, y)
    given = KernelRidge(kernel="precomputed").fit(gaussian(X, X, 1.0), y)
    assert given.lambda_ == direct.lambda_
    np.testing.assert_allclose(given.predict(gaussian(rest, X, 1.0)), direct.predict(rest), rtol=1e-7)
    raises(UsageError, "usage.no_intervals", lambda: given.predict(gaussian(rest, X, 1.0), return_std=True))


def test_as_many_centres_as_rows_are_the_exact_regression():
    X, y = wave(80)
    options = {"lambda_": 0.05, "bandwidth": 0.5}
    exact = KernelRidge(**options).fit(X, y)
    centred = KernelRidge(features="nystroem:80", **options).fit(X, y)
    rest = wave(20, seed=1)[0]
    for one, other in zip(centred.predict(rest, return_std=True), exact.predict(rest, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(centred.loo_rmse_, exact.loo_rmse_, rtol=1e-6)
    assert centred.fit_.feature_error < 1e-8


def test_a_kernel_that_is_not_definite_is_refused():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(20, 20))
    raises(
        UndecidedError,
        "undecided.not_positive_definite",
        lambda: KernelRidge(kernel="precomputed").fit(K + K.T, rng.normal(size=20)),
    )


REFUSED = [
    (UsageError, "usage.lambda", {"lambda_": 0.0}),
    (UsageError, "usage.lambda", {"lambda_": float("nan")}),
    (UsageError, "usage.lambda", {"lambda_": True}),
    (UsageError, "usage.criterion", {"criterion": "aic"}),
    (UsageError, "usage.bandwidth", {"bandwidth": "medain"}),
    (UsageError, "usage.bandwidth", {"bandwidth": -1.0}),
    (UsageError, "usage.cv", {"criterion": "cv", "cv": 1}),
    (UsageError, "usage.contradiction", {"cv": 5, "criterion": "gcv"}),
    (UsageError, "usage.contradiction", {"kernel": "precomputed", "features": "nystroem:5"}),
    (UsageError, "usage.contradiction", {"kernel": "precomputed", "bandwidth": 1.0}),
    (UsageError, "usage.features", {"features": "nystrom"}),
    (UsageError, "usage.scale", {"scale": "minmax"}),
    (UsageError, "usage.seed", {"seed": -1}),
]


@pytest.mark.parametrize(("error", "code", "options"), REFUSED)
def test_options_that_cannot_be_are_refused_at_once(error, code, options):
    raises(error, code, lambda: KernelRidge(**options))


def test_data_that_cannot_be_are_refused():
    X, y = wave(30)
    fit = KernelRidge(0.1).fit
    raises(UsageError, "usage.target", lambda: fit(X))
    raises(DataError, "data.rows_do_not_pair", lambda: fit(X, y[:-1]))
    raises(DataError, "data.constant_target", lambda: fit(X, np.ones(30)))
    raises(DataError, "data.target_not_numeric", lambda: fit(X, np.array(["a", "b"] * 15)))
    raises(DataError, "data.missing_values", lambda: fit(X, np.where(np.arange(30) == 3, np.nan, y)))
    raises(DataError, "data.infinite_values", lambda: fit(X, np.where(np.arange(30) == 3, np.inf, y)))
    raises(DataError, "data.weights", lambda: fit(X, y, sample_weight=np.full(30, -1.0)))
    raises(DataError, "data.weights", lambda: fit(X, y, sample_weight=np.zeros(30)))
    raises(DataError, "data.weights", lambda: fit(X, y, sample_weight=["a", "b"] * 15))
    raises(DataError, "data.rows_do_not_pair", lambda: fit(X, y, sample_weight=np.ones(29)))
    matrix = KernelRidge(kernel="precomputed").fit
    raises(UsageError, "usage.weights", lambda: matrix(X @ X.T, y, sample_weight=np.arange(30.0)))
    raises(UsageError, "usage.target", lambda: matrix(X @ X.T))
    raises(UsageError, "usage.bandwidth_twice", lambda: KernelRidge(kernel="gaussian(1)", bandwidth=2.0).fit(X, y))
    raises(UsageError, "usage.not_fitted", lambda: KernelRidge().predict(X))
    raises(UsageError, "usage.interval", lambda: KernelRidge(0.1).fit(X, y).predict_interval(X, 90))


def test_rows_of_weight_zero_are_not_there():
    X, y = wave(40)
    kept = np.arange(40) % 4 > 0
    wild = np.where(kept, y, 1e6)
    zeroed = KernelRidge().fit(X, wild, sample_weight=kept.astype(float))
    alone = KernelRidge().fit(X[kept], y[kept])
    np.testing.assert_allclose(zeroed.predict(X), alone.predict(X), rtol=1e-9, atol=1e-10)


def test_standardised_columns_make_units_irrelevant():
    X, y = wave(50)
    one, other = KernelRidge().fit(X, y), KernelRidge().fit(X * [1e6, 1e-6] + 5, y)
    np.testing.assert_allclose(other.predict(X * [1e6, 1e-6] + 5), one.predict(X), rtol=1e-6, atol=1e-7)
    assert np.allclose(standardised(X).std(axis=0), 1.0, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e200, 1e-200, 2.0**40])
def test_targets_of_any_size_are_learned_alike(unit):
    X, y = wave(60)
    plain, scaled = KernelRidge().fit(X, y), KernelRidge().fit(X, y * unit)
    assert scaled.lambda_ == plain.lambda_
    for one, other in zip(scaled.predict(X, return_std=True), plain.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(one / unit, other, rtol=1e-6)
    np.testing.assert_allclose(scaled.loo_rmse_ / unit, plain.loo_rmse_, rtol=1e-9)
    np.testing.assert_allclose(scaled.grid_.cells[3].score / unit, plain.grid_.cells[3].score, rtol=1e-6)
    by_evidence = [KernelRidge(criterion="evidence").fit(X, one) for one in (y, y * unit)]
    ours, other = (one.fit_.log_evidence for one in by_evidence)
    np.testing.assert_allclose(other, ours - 59 * np.log(unit), rtol=1e-9)
