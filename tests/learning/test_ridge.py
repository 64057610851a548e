"""Ridge regression in Python: what it fits, against naive systems, refits and peers; how it chooses; what intervals hold."""

import math
import re
from fractions import Fraction

import naive
import numpy as np
import pandas as pd
import pytest
from learning.svm_cases import gaussian, raises, wave
from scipy.stats import t
from scipy.stats import t as student
from tolerances import assert_close

from kerntest import KernelRidge, compute_on, parse_kernel, predict_file, train_ridge, train_svm
from kerntest.engines.engine import PROGRAM_BYTES
from kerntest.errors import DataError, UndecidedError, UsageError

X, Y = wave(60)
REST = wave(20, seed=1)[0]
FEW = gaussian(X[:14], X[:14], 1.0)
TWO = np.column_stack([Y, 10 + Y**2])[:14]
WEIGHTS = pytest.mark.parametrize("weights", [None, np.random.default_rng(5).uniform(0.2, 3.0, 14)], ids=["one", "own"])
close = np.testing.assert_allclose


def given_matrix(penalty, K, y, weights=None, **options):
    return KernelRidge(penalty, "precomputed", **options).fit(K, y, sample_weight=weights)


def listed(weights):
    return None if weights is None else weights.tolist()


# What is fitted


@WEIGHTS
@pytest.mark.parametrize("penalty", [1e-3, 0.7])
def test_a_regression_is_its_linear_system_its_hat_matrix_and_its_refits(weights, penalty):
    fitted, w = given_matrix(penalty, FEW, TWO, weights), np.ones(14) if weights is None else weights
    hat = np.array(naive.ridge_hat(FEW.tolist(), penalty, listed(weights)))
    close(fitted.effective_df_, np.trace(hat), rtol=1e-10)
    for place, one in enumerate(fitted.fit_.targets):
        y = TWO[:, place]
        alpha, b = naive.ridge(FEW.tolist(), y.tolist(), penalty, listed(weights))
        close(fitted.predict(FEW)[:, place], FEW @ alpha + b, rtol=1e-9, atol=1e-9)
        close(fitted.fit_.fitted[:, place], FEW @ alpha + b, rtol=1e-9, atol=1e-9)
        left_out = naive.ridge_left_out(FEW.tolist(), y.tolist(), penalty, list(range(14)), listed(weights))
        close(fitted.fit_.left_out[:, place], left_out, rtol=1e-6, atol=1e-8)
        close(one.loo_rmse, np.sqrt(np.average(np.square(left_out), weights=w)), rtol=1e-6)
        squares = np.average((y - hat @ y) ** 2, weights=w)
        close(one.gcv_rmse, np.sqrt(squares) / (1 - np.trace(hat) / 14), rtol=1e-9)
    by_gcv = given_matrix(penalty, FEW, TWO[:, 0], weights, criterion="gcv")
    close(by_gcv.grid_.cells[0].score, fitted.fit_.targets[0].gcv_rmse, rtol=1e-12)
    # As many folds as rows are leave-one-out.
    folds = [given_matrix(penalty, FEW, TWO[:, 0], weights, criterion="cv", cv=k).grid_.cells[0].score for k in (2, 14)]
    close(folds[1], fitted.fit_.targets[0].loo_rmse, rtol=1e-10)
    assert folds[0] != pytest.approx(folds[1])


@WEIGHTS
def test_the_evidence_is_that_of_a_gaussian_process_with_a_flat_prior_on_its_mean(weights):
    y, penalty = 1e4 * TWO[:, 0], 0.3
    fitted = given_matrix(penalty, FEW, y, weights, criterion="evidence")
    scale, noise = fitted.model.scales[0] ** 2, np.ones(14) if weights is None else 1 / weights
    M = FEW + penalty * np.diag(noise)
    inverse = np.linalg.inv(M)
    precision = inverse.sum()
    mean = inverse.sum(axis=0) @ y / precision
    quadratic = (y - mean) @ inverse @ (y - mean)
    close(scale, quadratic / 13, rtol=1e-10)
    # The integral over b of N(y; b 1, scale M).
    expected = 0.5 * math.log(2 * math.pi * scale / precision) - 0.5 * quadratic / scale
    expected -= 0.5 * np.linalg.slogdet(2 * math.pi * scale * M)[1]
    close([fitted.fit_.log_evidence, -fitted.grid_.cells[0].score], expected, rtol=1e-10)


@pytest.mark.parametrize("count", [7, 30])
def test_clusters_are_left_out_together(count):
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y, place=np.arange(60) % count)
    found = train_ridge(table, "y", cluster="place", lambda_=0.1, kernel="gaussian(1)", scale="none")
    groups = (np.arange(60) % count).tolist()
    left_out = naive.ridge_left_out(gaussian(X, X, 1.0).tolist(), Y.tolist(), 0.1, groups)
    close(found.loo_rmse, np.sqrt(np.mean(np.square(left_out))), rtol=1e-9)
    options, spread = {"lambda_": 0.1, "kernel": "gaussian(1)", "scale": "none"}, np.empty(60)
    for group in range(count):
        out = np.arange(60) % count == group
        own = KernelRidge(**options).fit(X[~out], Y[~out])
        spread[out] = own.predict(X[out], return_std=True)[1] / own.model.scales[0]
    whole = KernelRidge(**options).fit(X, Y).model
    # Of new clusters errors vary as those left out do, and only the clusters are independent.
    deviations, sizes = whole.scales[0] * spread, np.bincount(groups)
    deviations *= max(np.sqrt(np.mean((left_out / deviations) ** 2)), 1.0)
    reach = student.ppf(0.95, sizes.sum() ** 2 / (sizes @ sizes) - 1)
    assert found.loo_coverage == np.mean(np.abs(left_out) <= reach * deviations)


@WEIGHTS
@pytest.mark.parametrize("criterion", ["loo", "gcv", "cv", "evidence"])
def test_features_give_what_their_products_give(weights, criterion):
    thin = KernelRidge(kernel="gaussian(1)", features="fourier:5", scale="none", criterion=criterion)
    thin.fit(X[:14], TWO, sample_weight=weights)
    features = thin.model.features
    Z = np.sqrt(2 / 5) * np.cos(X[:14] @ features.projection + features.offsets)
    dense = given_matrix(None, Z @ Z.T, TWO, weights, criterion=criterion)
    # What is tried follows the size of the kernel, which that of the features is near.
    scores, others = (
        {cell.lambda_: (cell.score, cell.effective_df) for cell in one.grid_.cells} for one in (thin, dense)
    )
    both = [penalty for penalty in scores if penalty > 1e-5 and penalty in others]
    assert len(both) > 10
    close([scores[penalty] for penalty in both], [others[penalty] for penalty in both], rtol=1e-6)
    fixed = [one.set_params(lambda_=0.1, criterion="loo") for one in (thin, dense)]
    for one, rows in zip(fixed, (X[:14], Z @ Z.T), strict=True):
        one.fit(rows, TWO, sample_weight=weights)
    close(fixed[0].predict(X[:14]), fixed[1].predict(Z @ Z.T), rtol=1e-7, atol=1e-8)
    for name in ("effective_df", "condition_number", "n_zero", "left_out", "log_evidence"):
        close(getattr(fixed[0].fit_, name), getattr(fixed[1].fit_, name), rtol=1e-7, atol=1e-9)


def test_whole_weights_are_repeated_rows_and_those_of_zero_are_not_there():
    repeats = np.arange(60) % 4
    options = {"lambda_": 0.2, "kernel": "gaussian(1)", "scale": "none"}
    weighted = KernelRidge(**options).fit(X, np.where(repeats, Y, 1e6), sample_weight=repeats)
    repeated = KernelRidge(**options).fit(np.repeat(X, repeats, axis=0), np.repeat(Y, repeats))
    close(weighted.predict(REST), repeated.predict(REST), rtol=1e-8, atol=1e-9)
    close(weighted.effective_df_, repeated.effective_df_, rtol=1e-9)
    plain, tiny = (KernelRidge().fit(X, Y, sample_weight=np.full(60, one)) for one in (1.0, 1e-10))
    close([tiny.lambda_, tiny.loo_rmse_], [plain.lambda_ * 1e-10, plain.loo_rmse_], rtol=1e-7)
    close(tiny.predict(X), plain.predict(X), rtol=1e-6)


def test_several_targets_share_lambda_and_bandwidth_and_are_otherwise_alone():
    targets = np.column_stack([Y, 100 * Y**2 + 5, np.cos(X[:, 0])])
    ours = KernelRidge().fit(X, targets)
    best = ours.grid_.cells[ours.grid_.chosen]
    for place, (mean, deviation) in enumerate(zip(*(one.T for one in ours.predict(X, return_std=True)), strict=True)):
        alone = KernelRidge(ours.lambda_, best.kernel).fit(X, targets[:, place])
        close(alone.predict(X, return_std=True), (mean, deviation), rtol=1e-8, atol=1e-9)
        close(ours.noise_[place], alone.noise_[0], rtol=1e-9)
    relative = np.mean(np.square([one.loo_rmse for one in ours.fit_.targets]) / targets.var(axis=0))
    close(best.score, np.sqrt(relative), rtol=1e-10)
    # The scores do not depend on the units of a target.
    other = KernelRidge().fit(X, targets * [1.0, 1e-6, 1e3])
    assert other.lambda_ == ours.lambda_
    close(other.score(X, targets * [1.0, 1e-6, 1e3]), ours.score(X, targets), rtol=1e-6)


def test_tables_with_categories_and_dates_are_learned_like_by_svm():
    colour, days = np.array(["red", "green"])[np.arange(60) % 2], pd.date_range("2024-01-01", periods=60)
    table = pd.DataFrame({"size": X[:, 0], "colour": colour, "day": days, "ok": X[:, 1] > 0})
    y = table["size"] + 2.0 * (table["colour"] == "red")
    ours = KernelRidge().fit(table, y)
    assert ours.score(table, y) > 0.95
    assert ours.model.encoder.names == ("size", "colour", "day", "ok")
    with_target = table.assign(y=y, z=-y)
    by_name = KernelRidge().fit(with_target, ["y", "z"])
    assert by_name.model.targets == ("y", "z")
    close(by_name.predict(with_target)[:, 0], -by_name.predict(table)[:, 1], rtol=1e-7, atol=1e-9)
    close(KernelRidge().fit(with_target.drop(columns="z"), "y").predict(table), ours.predict(table), rtol=1e-10)
    assert KernelRidge().fit(table, pd.DataFrame({"first": y, "second": -y})).model.targets == ("first", "second")


# How lambda and the bandwidth are chosen


def test_the_grid_has_every_cell_and_the_best_one_is_chosen():
    ours = KernelRidge().fit(X, Y)
    cells, chosen = ours.grid_.cells, ours.grid_.cells[ours.grid_.chosen]
    assert len(cells) == len({(cell.lambda_, cell.kernel) for cell in cells}) == 200
    assert chosen.score <= min(cell.score for cell in cells) * (1 + 1e-9)
    assert chosen.lambda_ == ours.lambda_
    close([ours.loo_rmse_, ours.effective_df_], [chosen.score, chosen.effective_df], rtol=1e-12)
    # The score of a cell elsewhere in the grid is what a fit with its options finds.
    alone = KernelRidge(cells[57].lambda_, cells[57].kernel).fit(X, Y)
    close([alone.loo_rmse_, alone.effective_df_], [cells[57].score, cells[57].effective_df], rtol=1e-8)


EDGES = {
    "the best lambda is the smallest": lambda x, noise: x[:, 0] + 2 * x[:, 1] + 0 * noise,
    "the best lambda is the largest": lambda x, noise: noise + 0 * x[:, 0],
    "bandwidth is the smallest": lambda x, noise: np.sign(np.sin(14 * x[:, 0])) + 0 * noise,
    "bandwidth is the largest": lambda x, noise: x[:, 0] + 0.01 * noise,
    None: lambda x, noise: np.sin(3 * x[:, 0]) + 0.3 * noise,
    # At an edge, but by less than 1 %.
    "": lambda x, noise: x[:, 0] + 0.1 * noise,
}


@pytest.mark.parametrize("told", EDGES)
def test_a_best_cell_at_an_end_of_the_grid_is_told(told):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(80, 2))
    y = EDGES[told](x, rng.normal(size=80))
    result = train_ridge(np.column_stack([x, y]), "x3")
    found = [warning for warning in result.warnings if "of the grid" in warning]
    assert len(found) == bool(told)
    assert all(told in warning for warning in found)
    close(result.loo_r2, 1 - result.loo_rmse**2 / y.var(), rtol=1e-9, atol=1e-12)


# Deviations and intervals


def test_noise_deviations_and_intervals_are_those_of_a_gaussian_process_with_an_unknown_mean():
    ours = KernelRidge(0.1, "gaussian(1.3)", scale="none").fit(X, Y)
    scale = ours.model.scales[0] ** 2
    mean, own = ours.predict(REST, return_std=True, noise=False)
    deviation = ours.predict(REST, return_std=True)[1]
    close(deviation**2, own**2 + ours.noise_[0] ** 2, rtol=1e-10)
    close(ours.predict_interval(REST, 0.9)[1], mean + t.ppf(0.95, 59) * deviation, rtol=1e-10)
    K, cross = gaussian(X, X, 1.3), gaussian(REST, X, 1.3)
    inverse = np.linalg.inv(K + 0.1 * np.eye(60))
    left = 1 - cross @ inverse.sum(axis=1)
    variance = 1 - np.einsum("ij,jk,ik->i", cross, inverse, cross) + left**2 / inverse.sum()
    close(own**2, scale * variance, rtol=1e-8)


# Systems near or beyond rounding


@pytest.mark.parametrize("penalty", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize(
    "kernel", ["gaussian(3)", "gaussian(1)", "exponential(0.5)", "polynomial(3,1,1)", "laplacian(1)"]
)
@pytest.mark.parametrize("repeats", [1, 2])
def test_away_from_the_rows_predictions_are_as_right_as_by_solving_the_system(kernel, penalty, repeats):
    rng = np.random.default_rng(8)
    rows = np.repeat(rng.normal(size=(16 // repeats, 1)), repeats, axis=0)
    y = np.sin(rows[:, 0]) + 0.1 * rng.normal(size=len(rows))
    weights = rng.uniform(0.5, 2.0, len(rows)) if repeats == 2 else np.ones(len(rows))
    rest, parsed = np.array([[0.0], [4.0], [7.0]]), parse_kernel(kernel)
    K, cross = parsed(rows), parsed(rest, rows)
    exact = [[Fraction(value) for value in row] for row in K.tolist()]
    alpha, b = naive.ridge(exact, [*map(Fraction, y)], Fraction(penalty), [*map(Fraction, weights)])
    expected = [float(b + sum(Fraction(k) * a for k, a in zip(row, alpha, strict=True))) for row in cross.tolist()]
    condition = np.linalg.eigvalsh(K)[-1] * weights.max() / penalty
    own = weights if repeats == 2 else None
    for fitted, new in (
        (KernelRidge(penalty, kernel, scale="none").fit(rows, y, sample_weight=own), rest),
        (given_matrix(penalty, K, y, own), cross),
    ):
        assert_close(fitted.predict(new), expected, condition=condition, share=4 * np.finfo(float).eps)


@pytest.mark.parametrize(("rows", "bandwidth", "zero"), [(10, 2.0, 0), (8, 5.0, 1)])
def test_an_ill_conditioned_system_tells_of_directions_only_where_some_are_zero(rows, bandwidth, zero):
    x = np.linspace(0, 1, rows)
    result = train_ridge(np.column_stack([x, np.sin(9 * x)]), "x2", lambda_=1e-30, bandwidth=bandwidth)
    warning = next(one for one in result.warnings if "ill-conditioned" in one)
    assert result.n_zero == zero
    assert ("without the 1 direction whose" in warning) == (zero == 1)
    assert "0 direction" not in warning


# What is refused


K60 = X @ X.T
NOISE = np.random.default_rng(0).normal(size=(60, 60))
AT_7 = np.arange(60) == 7
TWICE = pd.DataFrame(np.column_stack([Y, -Y]), columns=["a", "a"])


@pytest.mark.parametrize(
    ("error", "code", "data", "y", "weights"),
    [
        (UsageError, "usage.target", X, None, None),
        (UsageError, "usage.target", K60, None, None),
        (DataError, "data.rows_do_not_pair", X, Y[:-1], None),
        (DataError, "data.constant_target", X, np.ones(60), None),
        (DataError, "data.target_not_numeric", X, np.array(["a", "b"] * 30), None),
        (DataError, "data.missing_values", X, np.where(AT_7, np.nan, Y), None),
        (DataError, "data.infinite_values", X, np.where(AT_7, np.inf, Y), None),
        *((DataError, "data.target_size", data, Y / 3 * size, None) for data in (X, K60) for size in (1e260, 1e308)),
        (DataError, "data.wrong_shape", X, [[1.0, 2.0], [1.0], *[[1.0, 2.0]] * 58], None),
        (DataError, "data.duplicate_columns", X, TWICE, None),
        *((DataError, "data.weights", X, Y, np.full(60, weight)) for weight in (-1.0, 0.0, "a")),
        *((DataError, "data.weights", X, Y, np.where(AT_7, one, 1.0)) for one in (5e-324, 1e-80, 1e80, 1e308)),
        (DataError, "data.rows_do_not_pair", X, Y, np.ones(59)),
        (DataError, "data.missing_values", X, Y, np.full(60, np.nan)),
        (UsageError, "usage.weights", K60, Y, np.arange(60.0)),
        (UndecidedError, "undecided.not_positive_definite", NOISE + NOISE.T, Y, None),
        (UndecidedError, "undecided.overflow", K60 * 1e307, Y, None),
    ],
)
def test_data_that_cannot_be_are_refused_and_weights_do_not_blame_the_target(error, code, data, y, weights):
    regression = KernelRidge(0.1, "precomputed" if len(data) == data.shape[1] else "gaussian")
    found = raises(error, code, lambda: regression.fit(data, y, sample_weight=weights))
    if weights is not None and code != "usage.weights":
        assert "sample_weight" in found.message


def test_what_a_fit_does_not_have_is_refused():
    one, two = KernelRidge(0.1).fit(X, Y), KernelRidge(0.1).fit(X, np.column_stack([Y, -Y]))
    matrix, table = given_matrix(0.1, K60, Y), np.column_stack([X, Y])
    for error, code, call in (
        (DataError, "data.wrong_shape", lambda: two.score(X, Y)),
        (DataError, "data.wrong_shape", lambda: one.score(X, np.column_stack([Y, -Y]))),
        (UsageError, "usage.interval", lambda: one.predict_interval(X, 90)),
        (UsageError, "usage.no_intervals", lambda: matrix.predict(K60, return_std=True)),
        (UsageError, "usage.bandwidth_twice", lambda: KernelRidge(kernel="gaussian(1)", bandwidth=2.0).fit(X, Y)),
        (UsageError, "usage.target", lambda: train_ridge(table, 2)),
        (DataError, "data.target_size", lambda: train_ridge(np.column_stack([X, Y * 1e260]), "x3")),
    ):
        raises(error, code, call)


def test_names_with_commas_are_targets_alone_and_beside_others_and_dates_are_told():
    table = pd.DataFrame(np.column_stack([X, Y, -Y]), columns=["a", "b", "wear, mean", "power"])
    for target in ("wear, mean", ["wear, mean"], pd.Index(["wear, mean"])):
        assert train_ridge(table, target, lambda_=0.1).targets == ("wear, mean",)
    assert train_ridge(table, ["wear, mean", "power"], lambda_=0.1).targets == ("wear, mean", "power")
    assert train_ridge(table, ["b,power", "a"], lambda_=0.1).targets == ("a", "b", "power")
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(60), unit="D")
    result = train_ridge(table.assign(y=days), "y", lambda_=0.1)
    assert any("days since 1970-01-01" in warning for warning in result.warnings)


def test_the_report_says_whether_rows_or_clusters_were_left_out():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=60), "who": np.repeat(np.arange(12), 5)})
    table["y"] = table["a"] + rng.normal(size=60)
    assert "exact leave-one-cluster-out" in train_ridge(table, "y", cluster="who").summary()
    assert "exact leave-one-out" in train_ridge(table, "y", exclude="who").summary()


def told_of_fit(noise, scale, columns="x", n=200, **options):
    """Warnings of a regression whose test rows have so many times the noise of its training rows."""
    drawn = np.random.default_rng(7)
    table = pd.DataFrame({"x": drawn.uniform(-3, 3, n), "z": drawn.normal(size=n)})
    table["y"] = np.sin(2 * table["x"]) + noise * np.where(np.arange(n) < n // 2, 1, scale) * drawn.normal(size=n)
    return " | ".join(train_ridge(table[: n // 2], "y", columns=columns, test=table[n // 2 :], **options).warnings)


def test_intervals_that_hold_too_few_rows_are_told():
    told = "intervals of 90 % hold 'y' in "
    found = told_of_fit(0.1, 3)
    assert told in found
    assert "% of 100 test rows, too few for chance" in found
    assert told not in told_of_fit(0.1, 1)
    assert told not in told_of_fit(0.1, 3, intervals=False)
    # Two thirds of twelve rows are no proof.
    assert told not in told_of_fit(0.1, 2, n=24)


def test_a_target_that_is_the_sum_of_columns_is_told():
    drawn = np.random.default_rng(1)
    table = pd.DataFrame(drawn.normal(size=(120, 3)), columns=list("abc"))
    table = table.assign(sum=table["a"] + table["b"], noisy=table["a"] + table["b"] + 0.05 * drawn.normal(size=120))
    told = "the columns all but determine 'sum' (r2 = 1 on "
    for train, options, rows in (
        (train_ridge, {}, "rows left out, one at a time"),
        (train_ridge, {"cv": 5}, "rows held out in 5 folds"),
        (train_ridge, {"test_fraction": 0.3}, "36 test rows"),
        (train_svm, {"task": "regress", "C": 100.0, "epsilon": 0.001, "cv": 5}, "rows held out in 5 folds"),
    ):
        found = train(table, "sum", columns="a,b,c", kernel="linear", **options)
        assert [text for text in found.warnings if text.startswith(f"{told}{rows})")]
        found = train(table, "noisy", columns="a,b,c", kernel="linear", **options)
        assert not any("all but determine" in text for text in found.warnings)


def test_what_is_predicted_no_better_than_by_its_mean_is_told():
    told = "'y' is predicted no better than by its mean (r2 = -0."
    assert told in told_of_fit(0.1, 1, "z")
    assert "its mean" not in told_of_fit(0.1, 1)
    drawn = np.random.default_rng(1)
    table = pd.DataFrame(drawn.normal(size=(60, 3)), columns=list("xyz")).assign(w=lambda rows: rows["x"])
    found = train_ridge(table, ["y", "w"], columns="x,z")
    assert [told in text for text in found.warnings if "its mean" in text] == [True]
    assert "on rows left out, one at a time)" in " ".join(found.warnings)
    assert "Predictions of rows left out, one at a time, have r2 = " in str(found)
    found = train_svm(table, "y", task="regress", columns="x,z", test_fraction=0.5)
    assert any(text.startswith(told) and "on 30 test rows" in text for text in found.warnings)
    for train, options in ((train_svm, {"task": "regress"}), (train_ridge, {})):
        found = train(table, "y", columns="x,z", cv=5, **options)
        assert any(text.startswith(told) and "on rows held out in 5 folds" in text for text in found.warnings)
        assert f"(root mean square, r2 = {found.grid.r2:.4g})" in " ".join(str(found).split())
        assert found.grid.r2 < 0
    fit = train_ridge(table, "y", columns="x,z", cv=5, lambda_=0.1, bandwidth=1.0).grid
    assert fit.r2 == pytest.approx(1 - (fit.rmse / table["y"].std(ddof=0)) ** 2, rel=1e-12)


def test_the_headline_is_the_score_of_the_folds_that_were_asked_for():
    table = pd.DataFrame({"x": X[:, 0], "y": Y, "z": Y**2 + X[:, 0]})
    found = train_ridge(table, "y", columns="x", cv=5)
    score = found.grid.best.score
    assert score != found.loo_rmse
    r2 = 1.0 - score**2 / table["y"].var(ddof=0)
    assert f"left out in 5 folds are off by {score:.4g} (root mean square, r2 = {r2:.4g})." in str(found)
    found = train_ridge(table, ["y", "z"], columns="x", cv=5)
    assert f"left out in 5 folds have r2 = {1.0 - found.grid.best.score**2:.4g}, the mean" in str(found)


def fan(growth, n, seed=3):
    """Rows of a line whose noise has standard deviation 0.3 + growth x, at x between 0 and 1."""
    drawn = np.random.default_rng(seed)
    x = drawn.uniform(0, 1, n)
    return pd.DataFrame({"x": x, "y": 5 * x + (0.3 + growth * x) * drawn.normal(size=n)})


@pytest.mark.parametrize(
    ("even", "transformation"), [(np.square, "square root"), (np.exp, "logarithm"), (np.sqrt, "square")]
)
def test_a_transformation_is_named_only_where_it_evens_errors(even, transformation):
    """What follows a hint is not sent back, and no root is taken of what may be below 0."""
    table = fan(0, 600).assign(y=lambda table: table["y"] + 2.0)

    def told(table):
        found = train_ridge(table, "y", bandwidth="median")
        return [one for one in found.warnings if "errors of one size" in one]

    (text,) = told(table.assign(y=even(table["y"])))
    assert text.endswith(f"; predict the {transformation} of 'y', of which they are alike, in its place")
    assert told(table) == []


def test_intervals_are_told_to_hold_too_few_where_errors_grow_with_the_prediction(tmp_path):
    def told(table, **options):
        found = train_ridge(table, "y", bandwidth="median", **options)
        return [text for text in found.warnings if "errors of one size" in text]

    path, rows, new = tmp_path / "fan.kt", tmp_path / "new.csv", fan(2, 6000, seed=4)
    new.to_csv(rows, index=False)
    (text,) = told(fan(2, 600), output=path)
    regression = KernelRidge.load(path)
    (uneven,) = regression.model.uneven
    low, high = regression.predict_interval(new[["x"]], 0.9)
    order = np.argsort(regression.predict(new[["x"]]))
    held = ((low <= new["y"]) & (new["y"] <= high)).to_numpy()[order]
    # Four standard errors of the shares of 200 rows left out.
    assert abs(uneven.low - held[:2000].mean()) < 0.03
    assert abs(uneven.high - held[-2000:].mean()) < 4 * math.sqrt(0.2 * 0.8 / 200)
    assert uneven.high < 0.85
    assert uneven.low > 0.95
    assert "errors grow with the prediction of 'y': those of 90 % hold " in text
    assert f"{100 * uneven.high:.3g} % of that with the highest (rows left out, one at a time)" in text
    shown = predict_file(path, rows, output=tmp_path / "out.csv", interval=0.9).warnings
    assert [one for one in shown if "errors grow with the prediction" in one]
    assert predict_file(path, rows, output=tmp_path / "out.csv", std=True).warnings == ()
    shrinking = fan(2, 600).assign(y=lambda table: table["y"] - 10 * table["x"])
    assert "errors shrink with the prediction" in told(shrinking)[0]
    # Neither of them can be taken to another scale.
    assert text.endswith("(rows left out, one at a time)")
    assert told(shrinking)[0].endswith("(rows left out, one at a time)")
    # One third need not be held too rarely where the other is held nearly always.
    (text,) = told(fan(0.25, 600, seed=10))
    low, high = (float(one) / 100 for one in re.findall(r"hold ([\d.]+) % .* and ([\d.]+) %", text)[0])
    assert 1.0 - 1.5 * 0.1 < high <= low - 0.1
    # One noise, and logarithms of a target of which it is a share.
    alarms = [told(fan(0, 200, seed)) for seed in range(20)]
    assert sum(map(len, alarms)) == 0
    factors = fan(0, 600).assign(y=lambda table: np.exp(table["y"]))
    assert len(told(factors)) == 1
    assert told(factors.assign(y=np.log(factors["y"]))) == []


@pytest.mark.parametrize("features", [None, "nystroem:1200"])
def test_what_a_plan_has_room_for_runs_and_what_it_has_not_is_refused_at_once(features):
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(1300, 3)), columns=["a", "b", "y"])
    # Of so many features nearly as much again in matrices of the square of their number.
    need = 8 * 1300 * 8 * 1300 if features is None else 8 * (10 * 1300 * 1200 + 8 * 1200**2)
    with compute_on(threads=1, memory=PROGRAM_BYTES + need + 10**6):
        assert train_ridge(table, "y", features=features).r2 is not None
    with compute_on(threads=1, memory=PROGRAM_BYTES + need - 10**6), pytest.raises(UndecidedError, match="allow"):
        train_ridge(table, "y", features=features)


def test_folds_judge_what_is_given_and_a_score_that_chose_is_told_of():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "y"])
    given = train_ridge(table, "y", lambda_=1.0, bandwidth=2.0, cv=5)
    assert given.criterion == "cv"
    assert (given.grid.folds, len(given.grid.cells)) == (5, 1)
    assert f"judged by  exact 5-fold cross-validation: RMSE {given.grid.best.score:.4g}\n" in given.summary()
    assert f"rows left out in 5 folds are off by {given.grid.best.score:.4g}" in " ".join(given.summary().split())
    assert not any("too good" in one for one in given.warnings)
    for options, rows in (({"cv": 4}, "rows held out in 4 folds"), ({}, "rows left out, one at a time")):
        chosen = train_ridge(table, "y", **options)
        told = f"the decision is of {rows}, of the best of 200 cells, which they chose: a little too good"
        assert any(one.startswith(told) for one in chosen.warnings)
        few = train_ridge(table[:30], "y", **options)
        told = f"the decision is of {rows}, of the best of 200 cells, which they chose: too good, of so few rows often by a tenth and more"
        (way,) = [one.removeprefix(told) for one in few.warnings if one.startswith(told)]
        assert way.endswith("criterion='evidence' chooses less by chance")
        for fair in ({"test_fraction": 0.3, **options}, {"criterion": "evidence"}):
            assert not any("too good" in one for one in train_ridge(table[:30], "y", **fair).warnings)


def test_rows_that_stay_with_their_copies_are_no_clusters():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=["a", "b", "y"])
    words = train_ridge(pd.concat([table, table]), "y").summary()
    assert "cluster" not in words
    assert "exact leave-one-out, copies of a row together" in words
    assert "of training rows left out, each with its copies" in words


def test_a_target_of_two_values_is_told_of_classes():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    told = "'y' has two values: train_svm predicts which of them"
    two = train_ridge(table.assign(y=np.where(table.a > 0, 3.0, 7.0)), "y", exclude="b")
    assert any(one.startswith(told) for one in two.warnings)
    assert not any(
        "two values" in one for one in train_ridge(table.assign(y=table.a + rng.normal(size=60)), "y").warnings
    )


def test_a_cell_that_few_clusters_have_chosen_is_told_to_be_far_too_good_by_chance():
    rng = np.random.default_rng(0)
    for clusters, told in (
        (8, "so few as 8 clusters chose: by chance it may be far too good"),
        (30, "too good, of so few rows"),
        (60, "a little too good"),
    ):
        case = np.repeat([f"c{k}" for k in range(clusters)], 6)
        table = pd.DataFrame({"case": case, "x": rng.normal(size=6 * clusters), "y": rng.normal(size=6 * clusters)})
        for options in ({}, {"cv": 4}):
            found = train_ridge(table, "y", cluster="case", **options)
            assert any(told in text for text in found.warnings)


def test_of_two_predictions_errors_do_not_shrink_with_the_one_that_leaves_a_row_out():
    """Left out, the higher a row is the lower it is predicted: thirds of such predictions sort rows by their own errors."""
    rng = np.random.default_rng(4)
    group = np.repeat([0.0, 1.0], [60, 240])
    skewed = pd.DataFrame({"group": group, "y": 0.5 * group + rng.exponential(size=300)})
    assert not [text for text in train_ridge(skewed, "y").warnings if "errors shrink" in text or "errors grow" in text]


def test_a_date_has_no_root():
    rng, n = np.random.default_rng(5), 80
    days = np.sort(rng.exponential(3000.0, size=n))
    table = pd.DataFrame(
        {"x": days + 2000.0 * rng.normal(size=n), "day": pd.Timestamp("1970-01-02") + pd.to_timedelta(days, unit="D")}
    )
    told = " | ".join(train_ridge(table, "day").warnings)
    assert "are predicted in days" in told
    assert "in its place" not in told
    assert "predict the square root of 'day'" in " | ".join(train_ridge(table.assign(day=days + 1.0), "day").warnings)


def test_a_report_says_which_errors_are_weighted():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "y"]).assign(w=rng.uniform(0.5, 9.0, 40))
    told = str(train_ridge(frame, "y", weights="w"))
    for words in (
        "leave-one-out: weighted RMSE",
        "on 40 training rows, each of them counted once",
        "(weighted root mean",
    ):
        assert words in told
    assert "weighted" not in str(train_ridge(frame[["a", "y"]], "y"))
