"""Canonical correlations: functions, correlations left out and p-values by dense matrices, scikit-learn's, and files."""

import contextlib
import json
import re

import naive
import numpy as np
import pandas as pd
import pytest
from model_archives import archive, members_of
from sklearn.cross_decomposition import CCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kerntest import KernelCCA, hsic_test, inspect_model, train_cca, transform_file
from kerntest.errors import DataError, KerntestWarning, ModelError, UndecidedError, UsageError
from kerntest.learning.components import cca_fit
from kerntest.learning.cross_validation import draw_folds

WIDTHS = (1.3, 0.8)


def two_sides(n, seed=0, noise=0.3, columns=(2, 1)):
    """Rows in which y follows the square of the first column of x."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns[0]))
    Y = np.column_stack([X[:, 0] ** 2, *rng.normal(size=(columns[1] - 1, n))]) + noise * rng.normal(
        size=(n, columns[1])
    )
    return X, Y


@contextlib.contextmanager
def raises(error, told, code):
    with pytest.raises(error, match=re.escape(told)) as caught:
        yield
    assert caught.value.code == code


def frame(X, Y):
    names = [f"x{place}" for place in range(1, X.shape[1] + 1)], [f"y{place}" for place in range(1, Y.shape[1] + 1)]
    return pd.DataFrame(np.column_stack([X, Y]), columns=names[0] + names[1]), *names


class ByHand:
    """The pairs of some rows by dense matrices: f = (K~ + p I)^-1 K~ g / s and g = (L~ + q I)^-1 L~ f / s."""

    def __init__(self, X, Y, kernels, penalties):
        self.rows, self.kernels, self.penalties = (X, Y), kernels, penalties
        self.raw = [np.array(naive.gram(kernel, one)) for kernel, one in zip(kernels, (X, Y), strict=True)]
        self.K = [np.array(naive.doubly_centred(one)) for one in self.raw]
        n = len(X)
        smooth = [np.linalg.solve(K + p * np.eye(n), K) for K, p in zip(self.K, penalties, strict=True)]
        values, vectors = np.linalg.eig(smooth[0] @ smooth[1])
        # The first few: there are pairs of no variance.
        order = np.argsort(-values.real)[:3]
        self.singular = np.sqrt(np.maximum(values.real[order], 0.0))
        f = vectors.real[:, order]
        self.values = [f, smooth[1] @ f / self.singular]

    def at(self, X, Y, count):
        """Return the first few f and g at other rows, up to scale: K~(x, .) a with (K~ + p I) a = g / s."""
        found = []
        for side, rows in enumerate((X, Y)):
            n, own = len(self.K[side]), self.rows[side]
            others = self.values[1 - side][:, :count] / self.singular[:count]
            a = np.linalg.solve(self.K[side] + self.penalties[side] * np.eye(n), others)
            k = np.array([[self.kernels[side](x, z) for z in own] for x in rows])
            found.append((k - self.raw[side].mean(axis=0)) @ (a - a.mean(axis=0)))
        return found

    def correlations(self, X, Y, count):
        return [np.corrcoef(f, g)[0, 1] for f, g in zip(*(one.T for one in self.at(X, Y, count)), strict=True)]


def gaussians():
    return [lambda a, b, width=width: naive.gaussian(a, b, width) for width in WIDTHS]


def penalties_of(X, Y, share):
    return [
        share * np.trace(np.array(naive.doubly_centred(naive.gram(kernel, one))))
        for kernel, one in zip(gaussians(), (X, Y), strict=True)
    ]


@pytest.mark.parametrize("share", [0.3, 1e-2])
def test_pairs_and_new_rows_are_those_of_dense_matrices(share):
    (X, Y), (NEW, OTHERS) = two_sides(40), two_sides(7, seed=1)
    by_hand = ByHand(X, Y, gaussians(), penalties_of(X, Y, share))
    found = fit_with_widths(X, Y, share)
    np.testing.assert_allclose(found.fit_.singular, by_hand.singular[:2], rtol=1e-6)
    np.testing.assert_allclose(found.fit_.penalties, by_hand.penalties, rtol=1e-9)
    ours, theirs = found.transform(NEW, OTHERS), by_hand.at(NEW, OTHERS, 2)
    at_rows = by_hand.at(X, Y, 2)
    for mine, hand, trained in zip(ours, theirs, at_rows, strict=True):
        scaled = hand / trained.std(axis=0)
        np.testing.assert_allclose(np.abs(mine), np.abs(scaled), atol=1e-5)
    np.testing.assert_allclose(found.correlations_, by_hand.correlations(X, Y, 2), atol=1e-6)


def fit_with_widths(X, Y, share, **options):
    """Scaled so that one bandwidth is each side's own."""
    a, b = WIDTHS
    scaled = KernelCCA(2, kernel="gaussian(1)", lambda_=share, scale="none", **options)
    scaled.fit(X / a, Y / b)
    plain, score = scaled.transform, scaled.score
    scaled.transform = lambda X, Y: plain(X / a, Y / b)
    scaled.score = lambda X, Y: score(X / a, Y / b)
    return scaled


def test_correlations_left_out_are_those_of_fits_without_the_fold():
    X, Y = two_sides(36)
    found = fit_with_widths(X, Y, 0.05, cv=4, seed=3)
    folds, whole = draw_folds(36, 4, 3), penalties_of(X, Y, 0.05)
    held = []
    for fold in range(4):
        own = folds != fold
        by_hand = ByHand(X[own], Y[own], gaussians(), [one * own.mean() for one in whole])
        held.append(by_hand.correlations(X[~own], Y[~own], 2))
        # The first pair on these rows, as the picture has it, up to sign and scale.
        f, g = (one[:, 0] for one in by_hand.at(X[~own], Y[~own], 1))
        for ours, theirs in zip(found.fit_.held[~own].T, (f, g), strict=True):
            assert abs(np.corrcoef(ours, theirs)[0, 1]) == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(found.fit_.left_out, np.mean(held, axis=0), atol=1e-5)


def test_lambda_has_the_largest_correlation_of_the_first_pair_left_out():
    table, x, y = frame(*two_sides(80, noise=1.0))
    result = train_cca(table, x_columns=x, y_columns=y)
    tried = {one.lambda_: one.correlation for one in result.lambdas}
    assert list(tried) == list(cca_fit.SHARES)
    assert tried[result.lambda_] == max(tried.values()) == result.pairs[0].left_out == result.correlation
    # Of linear functions of a column each none changes with it: of equal ones the largest is chosen.
    assert train_cca(table, x_columns="x1", y_columns="y1", kernel="linear").lambda_ == 1.0
    alone = train_cca(table, x_columns=x, y_columns=y, lambda_=0.1)
    assert (alone.lambda_, alone.lambdas) == (0.1, ())
    assert alone.correlation == pytest.approx(tried[0.1], abs=1e-9)


@pytest.mark.parametrize("shape", [(5, 4), (2, 6)])
def test_without_a_penalty_linear_pairs_are_those_of_scikit_learn(shape):
    rng = np.random.default_rng(5)
    common = rng.normal(size=(200, 2))
    X, Y = (
        np.column_stack([common + 0.5 * rng.normal(size=(200, 2)), rng.normal(size=(200, width - 2))])
        @ rng.normal(size=(width, width))
        + 10
        for width in shape
    )
    ours, theirs = KernelCCA(2, kernel="linear", lambda_=0).fit(X, Y), CCA(2, max_iter=5000, tol=1e-12).fit(X, Y)
    for mine, hers in zip(ours.transform(X, Y), theirs.transform(X, Y), strict=True):
        for place in range(2):
            assert abs(np.corrcoef(mine[:, place], hers[:, place])[0, 1]) == pytest.approx(1.0, abs=1e-8)
        np.testing.assert_allclose([mine.mean(axis=0), mine.std(axis=0)], [[0, 0], [1, 1]], atol=1e-9)
    expected = [np.corrcoef(*pair)[0, 1] for pair in zip(*(one.T for one in theirs.transform(X, Y)), strict=True)]
    np.testing.assert_allclose(ours.correlations_, expected, atol=1e-9)
    # Both rise together, and the largest of x is positive.
    x, y = ours.transform(X, Y)
    assert (np.einsum("ij,ij->j", x, y) > 0).all()
    assert (x[np.abs(x).argmax(axis=0), [0, 1]] > 0).all()


@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
def test_the_first_singular_value_is_the_kernel_canonical_correlation_of_the_test(kernel):
    X, Y = two_sides(150, columns=(3, 2))
    tested = hsic_test(
        X,
        Y,
        statistic="kcc",
        kernel_x=kernel,
        kernel_y=kernel,
        bandwidth="auto" if kernel == "linear" else "median",
        permutations=20,
    )
    found = KernelCCA(1, kernel=kernel, lambda_=0.03 * 150**-0.25).fit(X, Y)
    assert found.fit_.singular[0] == pytest.approx(tested.statistic, rel=1e-8)
    np.testing.assert_allclose(found.fit_.penalties, tested.penalties, rtol=1e-8)
    assert found.correlations_[0] == pytest.approx(tested.witness_correlation, rel=1e-7)


def test_of_independent_columns_training_correlations_are_high_and_those_held_out_are_not():
    rng = np.random.default_rng(0)
    table, x, y = frame(rng.normal(size=(200, 4)), rng.normal(size=(200, 4)))
    result = train_cca(table, lambda_=1e-4, x_columns=x, y_columns=y, test_fraction=0.4)
    assert result.pairs[0].train > 0.95
    assert abs(result.pairs[0].test) < 0.3
    assert abs(result.pairs[0].left_out) < 0.3
    # Of many such tables as many p-values are small as should be: 3.5 standard errors.
    small = 0
    for seed in range(60):
        table, x, y = frame(*np.random.default_rng(seed).normal(size=(2, 50, 2)))
        result = train_cca(table, lambda_=0.1, kernel="linear", x_columns=x, y_columns=y, test_fraction=0.4)
        small += result.p_value <= 0.2
    assert abs(small / 60 - 0.2) < 3.5 * np.sqrt(0.2 * 0.8 / 60)


def test_a_correlation_that_chance_alone_gives_is_told():
    told = "on 60 rows left out can be chance, which alone gives up to "

    def found(X, Y, **options):
        table, x, y = frame(X, Y)
        result = train_cca(table, x_columns=x, y_columns=y, **options)
        return result.correlation, [text.split(told)[1][:4] for text in result.warnings if told in text]

    drawn = np.random.default_rng(0).normal(size=(60, 4))
    unrelated = drawn[:, :2], drawn[:, 2:]
    # The best of several lambdas is larger by chance.
    for options, reach in (({}, 3 / 60**0.5), ({"lambda_": 0.1}, 2 / 60**0.5)):
        correlation, said = found(*unrelated, **options)
        assert 0 < correlation < reach
        assert said == [f"{reach:.2g}"]
    assert found(*two_sides(60))[1] == []
    assert found(*unrelated, test_fraction=0.3)[1] == []


def test_test_rows_judge_by_their_own_correlation_and_permutations():
    table, x, y = frame(*two_sides(160))
    result = train_cca(table[:100], test=table[100:], x_columns=x, y_columns=y)
    found = KernelCCA(2, lambda_=result.lambda_).fit(table[:100][x], table[:100][y])
    a, b = found.transform(table[100:][x], table[100:][y])
    for place, pair in enumerate(result.pairs):
        assert pair.test == pytest.approx(np.corrcoef(a[:, place], b[:, place])[0, 1], abs=1e-9)
    assert found.score(table[100:][x], table[100:][y]) == pytest.approx(result.correlation, abs=1e-9)
    assert (result.p_value, result.judged_on) == (0.001, "test")
    # Rows of one cluster are no pairs to exchange.
    clustered = train_cca(
        table.assign(shop=np.arange(160) // 4), test_fraction=0.3, x_columns=x, y_columns=y, cluster="shop"
    )
    assert (clustered.p_value, clustered.cluster) == (None, "shop")
    (told,) = [one for one in clustered.warnings if "there is no p-value" in one]
    assert told.endswith("hsic_test with the same columns and cluster='shop' gives one")


def test_loadings_are_correlations_of_columns_with_their_own_functions():
    X, Y = two_sides(120, columns=(3, 2))
    table, x, y = frame(X, Y)
    result = train_cca(table.assign(kind=np.where(X[:, 0] > 0, "a", "b")), y_columns=y, lambda_=0.01)
    found = KernelCCA(2, lambda_=0.01).fit(table.assign(kind=np.where(X[:, 0] > 0, "a", "b"))[[*x, "kind"]], table[y])
    variates = found.transform(table.assign(kind=np.where(X[:, 0] > 0, "a", "b"))[[*x, "kind"]], table[y])
    for told, own, values in zip((result.associations_x, result.associations_y), (x, y), variates, strict=True):
        by_name = {one.column: one for one in told}
        for name in own:
            expected = [np.corrcoef(table[name], values[:, place])[0, 1] for place in range(2)]
            np.testing.assert_allclose(by_name[name].values, expected, atol=1e-9)
    assert {one.column: one.measure for one in result.associations_x}["kind"] == "eta"


def test_more_rows_than_landmarks_are_told_and_come_near_to_all_of_them(monkeypatch):
    monkeypatch.setattr("kerntest.learning.components.cca.EXACT_ROWS", 150)
    monkeypatch.setattr("kerntest.learning.components.cca.LANDMARKS", 60)
    X, Y = two_sides(300)
    whole = KernelCCA(1, lambda_=0.01, features="none").fit(X, Y)
    with pytest.warns(
        KerntestWarning, match=r"^60 of the 300 rows, drawn at random, are landmarks.*features='none' takes all"
    ):
        part = KernelCCA(1, lambda_=0.01).fit(X, Y)
    assert len(part.model.expansion.coefficients) == 60
    assert len(whole.model.expansion.coefficients) == 300
    np.testing.assert_allclose(part.fit_.singular, whole.fit_.singular, atol=1e-2)
    # Linear functions need none.
    assert len(KernelCCA(1, kernel="linear", lambda_=0.01).fit(X, Y).model.expansion.coefficients) == 3


def test_files_give_the_variates_of_both_sides_or_of_one(tmp_path, kerntest):
    X, Y = two_sides(60)
    table, x, y = frame(X, Y)
    table["city"] = np.where(X[:, 1] > 0, "Rome", "Oslo")
    table.to_csv(tmp_path / "d.csv", index=False)
    result = train_cca(tmp_path / "d.csv", y_columns=y, output=tmp_path / "m.kt", seed=2)
    assert (result.columns_x, result.columns_y) == ((*x, "city"), tuple(y))
    loaded = KernelCCA.load(tmp_path / "m.kt")
    assert loaded.get_params()["seed"] == 2
    expected = loaded.transform(table[[*x, "city"]], table[y])
    np.testing.assert_allclose(np.array([*expected]).std(axis=1), 1.0, atol=1e-9)
    transform_file(tmp_path / "m.kt", tmp_path / "d.csv", output=tmp_path / "v.csv")
    written = pd.read_csv(tmp_path / "v.csv")
    assert list(written) == ["row", "x1", "x2", "y1", "y2"]
    np.testing.assert_allclose(written[["x1", "x2", "y1", "y2"]], np.hstack(expected), atol=1e-9)
    for side, names, values in (("x", [*x, "city"], expected[0]), ("y", y, expected[1])):
        table[names].to_csv(tmp_path / f"{side}.csv", index=False)
        transform_file(tmp_path / "m.kt", tmp_path / f"{side}.csv", output=tmp_path / "v.csv", side=side, components=1)
        np.testing.assert_allclose(pd.read_csv(tmp_path / "v.csv")[f"{side}1"], values[:, 0], atol=1e-9)
    report = inspect_model(tmp_path / "m.kt")
    assert (report.kind, report.columns_x, report.columns_y) == ("cca", (*x, "city"), tuple(y))
    np.testing.assert_allclose(report.correlations, [pair.train for pair in result.pairs])
    # A long path breaks the line.
    shown = " ".join(kerntest("inspect", tmp_path / "m.kt").out.split())
    assert "Canonical correlations" in shown
    assert "on the training rows" in shown
    with raises(DataError, "lacks 3 columns", "data.columns_differ"):
        transform_file(tmp_path / "m.kt", tmp_path / "y.csv", output=tmp_path / "v.csv")
    with raises(UsageError, "reconstruct=True is for components", "usage.no_preimages"):
        transform_file(tmp_path / "m.kt", tmp_path / "d.csv", output=tmp_path / "v.csv", reconstruct=True)
    with raises(UsageError, "has 2 components, not 3", "usage.components"):
        transform_file(tmp_path / "m.kt", tmp_path / "d.csv", output=tmp_path / "v.csv", components=3)


def damaged_fields(manifest):
    """Yield manifests and arrays that no fit makes."""
    yield manifest, {"y_coefficients": np.ones((3, 2))}
    yield manifest, {"y_intercepts": np.zeros(1)}
    yield manifest, {"correlations": np.zeros(1)}
    yield manifest, {"correlations": np.zeros(0), "y_intercepts": np.zeros(0), "intercepts": np.zeros(0)}
    yield {**manifest, "y_kernel": "y1: gaussian"}, {}
    yield {**manifest, "y_kernel": "strange: gaussian(1)"}, {}
    yield {**manifest, "lambda": -1.0}, {}
    yield {**manifest, "encoder": None}, {}


def test_damaged_models_are_refused(tmp_path):
    KernelCCA(2, lambda_=0.1).fit(*two_sides(30)).save(tmp_path / "m")
    manifest, members = members_of((tmp_path / "m").read_bytes())
    for changed, arrays in damaged_fields(manifest):
        (tmp_path / "m").write_bytes(archive(changed, {**members, **arrays}))
        with pytest.raises(ModelError, match="is damaged"):
            KernelCCA.load(tmp_path / "m")


TABLE = frame(*two_sides(30, columns=(2, 2)))[0].assign(kind=["a", "b"] * 15)


@pytest.mark.parametrize(
    ("error", "told", "code", "options"),
    [
        (UsageError, "which of the 5 columns of train are x, and which are y", "usage.no_groups", {}),
        (UsageError, "column 'x1' is in both", "usage.column_twice", {"x_columns": "x*", "y_columns": "x1"}),
        (UsageError, "no column of train is left for y_columns=", "usage.no_columns", {"x_columns": "*"}),
        (UsageError, "column 'z' is not in train", "usage.unknown_column", {"x_columns": "z"}),
        (UsageError, "lambda must be between 0", "usage.lambda", {"lambda_": -1.0}),
        (UsageError, "cv must be", "usage.cv", {"cv": 1}),
        (UsageError, "components must be", "usage.components", {"components": 0}),
        (UsageError, "have features on landmarks", "usage.features", {"features": "fourier:9"}),
        (UsageError, "not a precomputed matrix", "usage.precomputed", {"kernel": "precomputed"}),
        (UsageError, "names columns", "usage.kernel_groups", {"kernel": "x1: linear; *: gaussian", "y_columns": "y*"}),
        (
            UsageError,
            "have no use for the kernel",
            "usage.kernel_covariance",
            {"kernel": "mahalanobis", "y_columns": "y*"},
        ),
        (DataError, "column 'kind' holds categories", "data.no_columns", {"y_columns": "kind", "kernel": "linear"}),
    ],
)
def test_what_cannot_be_is_refused(error, told, code, options):
    with raises(error, told, code):
        train_cca(TABLE, **options)


def test_too_few_rows_and_sides_that_say_nothing_are_refused():
    with raises(UndecidedError, "5 rows are too few to choose lambda", "undecided.too_few_rows"):
        KernelCCA().fit(*two_sides(5))
    alone = KernelCCA(1, lambda_=0.1).fit(*two_sides(5))
    assert alone.fit_.left_out == ()
    with raises(DataError, "no column of y is left", "data.no_columns"):
        train_cca(TABLE.assign(y1=1.0), y_columns="y1", exclude="y2,kind")
    with pytest.warns(KerntestWarning, match="^3 pairs were asked for, and there is 1$"):
        assert len(KernelCCA(3, kernel="linear").fit(*two_sides(30)).correlations_) == 1


def test_rows_of_arrays_and_frames_are_paired():
    X, Y = two_sides(40)
    table, x, y = frame(X, Y)
    options = {"components": 2, "lambda_": 0.1}
    arrays, frames = KernelCCA(**options).fit(X, Y), KernelCCA(**options).fit(table[x], table[y])
    np.testing.assert_allclose(arrays.transform(X, Y), frames.transform(table[x], table[y]), atol=1e-9)
    np.testing.assert_allclose(arrays.fit_transform(X, Y[:, 0]), arrays.transform(X), atol=1e-12)
    assert list(frames.get_feature_names_out()) == ["x1", "x2"]
    assert frames.n_features_in_ == 2
    with raises(DataError, "X has 40 rows and y 39", "data.rows_do_not_pair"):
        KernelCCA().fit(X, Y[1:])
    with raises(DataError, "X has 40 rows and y 39", "data.rows_do_not_pair"):
        arrays.score(X, Y[1:])
    with raises(UsageError, "X and y both have a column 'x1'", "usage.column_twice"):
        KernelCCA().fit(table[x], table[x])
    with raises(UsageError, "requires y to be passed", "usage.target"):
        KernelCCA().fit(X)
    piped = make_pipeline(StandardScaler(), KernelCCA(1, lambda_=0.1)).fit(X, Y)
    assert piped.transform(X).shape == (40, 1)
    assert piped.score(X, Y) > 0.8


def test_the_command_tells_what_to_believe_and_draws(kerntest, tmp_path):
    frame(*two_sides(90))[0].to_csv(tmp_path / "d.csv", index=False)
    told = kerntest("cca", tmp_path / "d.csv", "--y", "y1", "--test-fraction", "0.3", "--plot", tmp_path / "p.png")
    assert (told.code, (tmp_path / "p.png").exists()) == (0, True)
    assert "on 27 test rows (p = 0.001)" in told.out
    result = json.loads(kerntest("cca", tmp_path / "d.csv", "--y", "y1", "--json", "--lambda", "0.1").out)
    assert result["schema"] == "kerntest.cca/1"
    assert (result["lambda"], result["lambdas"], result["p_value"], result["judged_on"]) == (0.1, [], None, "train")
    assert set(result["pairs"][0]) == {"x", "y", "singular_value", "train", "left_out", "test"}
    assert kerntest("cca", tmp_path / "d.csv", "--y", "y1", "--fail-on", "correlation<0.3").code == 0
    assert kerntest("cca", tmp_path / "d.csv", "--y", "y1", "--fail-on", "correlation>0.3").code == 1


@pytest.mark.filterwarnings("ignore::kerntest.KerntestWarning")
def test_gaps_that_are_information_go_with_their_side(tmp_path):
    X, Y = two_sides(80, columns=(2, 2))
    table, x, y = frame(X, Y)
    # Whether the second of y is there says where x1 is.
    table.loc[X[:, 0] > 0, "y2"] = np.nan
    result = train_cca(table, x_columns=x, y_columns=y, missing="indicator", output=tmp_path / "m")
    assert result.correlation > 0.7
    table[y].to_csv(tmp_path / "y.csv", index=False)
    table.to_csv(tmp_path / "d.csv", index=False)
    written = []
    for name, side in (("d", None), ("y", "y")):
        transform_file(tmp_path / "m", tmp_path / f"{name}.csv", output=tmp_path / "v.csv", side=side)
        written.append(pd.read_csv(tmp_path / "v.csv")[["y1", "y2"]])
    np.testing.assert_allclose(*written, atol=1e-9)
    with raises(UsageError, "does not see whether a value of 'y2' is there", "usage.missing"):
        train_cca(table, x_columns=x, y_columns=y, missing="indicator", kernel="linear")


def test_a_model_tells_the_correlations_of_rows_left_out(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    result = train_cca(frame, x_columns="a", y_columns="b,c", output=tmp_path / "m.kt", components=1)
    report = inspect_model(tmp_path / "m.kt")
    assert report.correlations_left_out == (result.pairs[0].left_out,)
    assert f"{result.pairs[0].left_out:.2g} on rows left out in folds" in report.summary()


@pytest.mark.parametrize(("given", "lambdas"), [({}, "the largest that is tried"), ({"lambda_": 0.1}, "--")])
def test_folds_without_a_pair_are_told_as_such(given, lambdas):
    """One row alone makes a side vary: without it there is nothing to go with."""
    frame = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40) == 7}).astype(float)
    with pytest.warns(KerntestWarning, match="without the rows of one of 5 folds there is no pair"):
        result = train_cca(frame, x_columns="a", y_columns="b", kernel="linear", **given)
    assert result.correlation is None
    assert (lambdas in " ".join(result.warnings)) == (not given)
    assert "without those of a fold there is no pair" in " ".join(result.summary().split())
    assert "as given" not in result.summary()


def test_a_correlation_that_few_rows_make_is_told():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 2)), columns=["x", "y"])
    table.loc[::30] += 12.0
    (text,) = [
        one
        for one in train_cca(table, x_columns="x", y_columns="y", kernel="linear").warnings
        if "few rows make" in one
    ]
    assert "that of the ranks of both functions is 0." in text
    assert not [
        one
        for one in train_cca(
            table[table.x < 6.0].assign(y=lambda one: one.x + one.y), x_columns="x", y_columns="y"
        ).warnings
        if "few rows" in one
    ]
