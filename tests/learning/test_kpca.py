"""`KernelPCA` beside scikit-learn, textbook loops and itself."""

import naive
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from tolerances import SAME_MACHINE, assert_close

import kerntest
from kerntest import KernelPCA, KerntestError, parse_kernel
from kerntest.errors import DataError, UndecidedError, UsageError

# The search for a pre-image ends where a step is less than 1e-8 of the spread of a column.
STAYS = 1e-7
RNG = np.random.default_rng(0)
N = 260
X = RNG.normal(size=(N, 5)) @ RNG.normal(size=(5, 5))
NEW = RNG.normal(size=(40, 5))


def up_to_sign(ours, theirs, atol):
    signs = np.sign(np.sum(ours * theirs, axis=0))
    np.testing.assert_allclose(ours, theirs * signs, rtol=0, atol=atol)


def spread(found):
    """Return how many times the first eigenvalue is the last: rounding in scores is divided by the root of each."""
    return float(found.eigenvalues_[0] / found.eigenvalues_[-1])


def frame(n=80):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 50, n), unit="D"),
            "new": rng.random(n) < 0.5,
            "price": 100 + 5 * rng.normal(size=n),
        }
    )


@pytest.mark.parametrize("solver", ["auto", "lanczos", "dense"])
@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        ("gaussian(3)", {"kernel": "rbf", "gamma": 1 / 18}),
        ("polynomial(degree=2, gain=0.1, offset=1)", {"kernel": "poly", "degree": 2, "gamma": 0.1, "coef0": 1}),
    ],
)
def test_eigenvalues_and_scores_of_old_and_new_rows_are_those_of_scikit_learn(kernel, theirs, solver):
    ours = KernelPCA(6, kernel, solver=solver, scale="none").fit(X)
    peer = Peer(6, eigen_solver="dense", **theirs).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, peer.eigenvalues_, rtol=1e-11, atol=0)
    scale = np.sqrt(peer.eigenvalues_[0])
    up_to_sign(ours.transform(X), peer.transform(X), 1e-10 * scale)
    up_to_sign(ours.transform(NEW), peer.transform(NEW), 1e-10 * scale)


def test_the_linear_kernel_gives_ordinary_principal_components():
    ours = KernelPCA(5, "linear", scale="none").fit(X + 1000)
    peer = PCA(svd_solver="full").fit(X + 1000)
    np.testing.assert_allclose(ours.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-10, atol=1e-13)
    up_to_sign(ours.transform(NEW + 1000), peer.transform(NEW + 1000), 1e-9)
    three = KernelPCA(3, "linear", scale="none").fit(X)
    peer = PCA(3).fit(X)
    expected = peer.inverse_transform(peer.transform(NEW))
    np.testing.assert_allclose(three.inverse_transform(three.transform(NEW)), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(three.residuals(NEW), ((NEW - expected) ** 2).sum(axis=1), rtol=0, atol=1e-11)
    np.testing.assert_allclose(three.reconstruction_error(NEW) ** 2, three.residuals(NEW), rtol=0, atol=1e-11)


def test_more_columns_than_rows_make_no_difference_to_the_linear_kernel():
    wide = np.random.default_rng(2).normal(size=(30, 80))
    ours, peer = KernelPCA(4, "linear", scale="none").fit(wide), PCA(4, svd_solver="full").fit(wide)
    up_to_sign(ours.transform(wide), peer.transform(wide), 1e-10)
    np.testing.assert_allclose(ours.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-10, atol=0)
    expected = peer.inverse_transform(peer.transform(wide))
    np.testing.assert_allclose(ours.denoise(wide), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel", ["gaussian(2)", "laplacian(4)", "linear"])
def test_scores_and_residuals_are_those_of_the_textbook(kernel):
    few, other = X[:12], NEW[:4]
    k = parse_kernel(kernel)
    K = k(few).tolist()
    rows = k(other, few).tolist()
    found = KernelPCA(3, kernel, scale="none").fit(few)
    up_to_sign(found.transform(other), np.array(naive.component_scores(K, rows, 3)), 1e-9)
    own = np.diag(k(other))
    expected = [naive.distance_to_projection(K, row, mine, 3) for row, mine in zip(rows, own, strict=True)]
    np.testing.assert_allclose(found.residuals(other), expected, rtol=0, atol=1e-9)


def test_scores_of_the_training_rows_have_mean_0_and_sums_of_squares_that_are_the_eigenvalues():
    found = KernelPCA(5).fit(X)
    scores = found.transform(X)
    np.testing.assert_allclose(scores.mean(axis=0), 0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(scores.T @ scores, np.diag(found.eigenvalues_), rtol=0, atol=1e-10)
    assert (scores[np.argmax(np.abs(scores), axis=0), range(5)] > 0).all()
    assert_close(KernelPCA(5).fit_transform(X), scores, condition=spread(found), share=SAME_MACHINE)


def test_shares_of_the_variance_are_those_of_the_trace():
    few = X[:60]
    K = parse_kernel("gaussian(2)")(few)
    H = np.eye(60) - 1 / 60
    found = KernelPCA(4, "gaussian(2)", scale="none").fit(few)
    np.testing.assert_allclose(
        found.explained_variance_ratio_, found.eigenvalues_ / np.trace(H @ K @ H), rtol=1e-12, atol=0
    )
    everything = KernelPCA(59, "gaussian(2)", scale="none").fit(few)
    assert everything.model.explained == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(everything.residuals(few), 0, rtol=0, atol=1e-12)


def test_a_precomputed_matrix_gives_the_same_scores():
    kernel = parse_kernel("gaussian(2)")
    direct = KernelPCA(4, "gaussian(2)", scale="none").fit(X)
    given = KernelPCA(4, "precomputed").fit(kernel(X))
    np.testing.assert_allclose(given.eigenvalues_, direct.eigenvalues_, rtol=1e-12, atol=0)
    np.testing.assert_allclose(given.transform(kernel(NEW, X)), direct.transform(NEW), rtol=0, atol=1e-11)
    with pytest.raises(UsageError, match="no columns to go back to"):
        given.inverse_transform(given.transform(kernel(NEW, X)))
    with pytest.raises(DataError, match="40 columns"):
        given.transform(kernel(NEW))
    with pytest.raises(DataError, match="symmetric"):
        KernelPCA(2, "precomputed").fit(np.triu(np.ones((4, 4))))


def test_units_do_not_matter_unless_scaling_is_off():
    scaled = X * [1, 1000, 0.001, 5, 1]
    np.testing.assert_allclose(
        KernelPCA(3).fit(X).transform(X), KernelPCA(3).fit(scaled).transform(scaled), rtol=0, atol=1e-10
    )
    one = KernelPCA(3, scale="none").fit(X).transform(X)
    assert np.abs(one - KernelPCA(3, scale="none").fit(scaled).transform(scaled)).max() > 0.1


def test_categories_dates_and_truth_values_take_part_and_come_back():
    table = frame()
    found = KernelPCA(30).fit(table)
    assert str(found.model.kernel).startswith("size, when, price: gaussian(")
    back = found.inverse_transform(found.transform(table))
    assert list(back.columns) == list(table.columns)
    assert (back["colour"] == table["colour"]).mean() > 0.95
    assert (back["new"] == table["new"]).mean() > 0.95
    assert back["when"].dtype.kind == "M"
    assert (back["when"] - table["when"]).abs().max() < pd.Timedelta(days=25)
    assert ((back["price"] - table["price"]) ** 2).mean() < table["price"].var()
    # The order of columns is free, their names are not.
    turned = found.transform(table[table.columns[::-1]])
    assert_close(turned, found.transform(table), condition=spread(found), share=SAME_MACHINE)
    with pytest.raises(DataError, match="price"):
        found.transform(table.drop(columns="price"))


def test_constant_columns_take_no_part_and_come_back_where_they_were():
    wider = np.column_stack([np.full(N, 7.0), X[:, :2], np.full(N, -1.0), X[:, 2:]])
    found, plain = KernelPCA(4).fit(wider), KernelPCA(4).fit(X)
    assert_close(found.transform(wider), plain.transform(X), condition=spread(plain), share=SAME_MACHINE)
    back = found.denoise(wider[:10])
    np.testing.assert_array_equal(back[:, [0, 3]], np.tile([7.0, -1.0], (10, 1)))
    assert_close(back[:, [1, 2, 4, 5, 6]], plain.denoise(X[:10]), share=STAYS)


def test_nystroem_with_every_row_is_exact_and_with_some_is_near_and_says_how_near():
    exact = KernelPCA(4, "gaussian(2)", scale="none").fit(X)
    every = KernelPCA(4, "gaussian(2)", features=f"nystroem:{N}", scale="none").fit(X)
    np.testing.assert_allclose(every.eigenvalues_, exact.eigenvalues_, rtol=1e-8, atol=0)
    np.testing.assert_allclose(every.transform(NEW), exact.transform(NEW), rtol=0, atol=1e-6)
    np.testing.assert_allclose(every.residuals(NEW), exact.residuals(NEW), rtol=0, atol=1e-6)
    np.testing.assert_allclose(every.denoise(NEW[:5]), exact.denoise(NEW[:5]), rtol=0, atol=1e-4)
    some = KernelPCA(4, "gaussian(4)", features="nystroem:90", scale="none").fit(X)
    whole = KernelPCA(4, "gaussian(4)", scale="none").fit(X)
    assert 0 < some.fit_.feature_error < 0.05
    np.testing.assert_allclose(some.explained_variance_ratio_, whole.explained_variance_ratio_, rtol=0, atol=0.02)
    # Shares are those of all variance, also of what the features miss; so are residuals.
    few = KernelPCA(4, "gaussian(1)", features="nystroem:20", scale="none").fit(X)
    assert (
        few.explained_variance_ratio_ < KernelPCA(4, "gaussian(1)", scale="none").fit(X).explained_variance_ratio_
    ).all()
    missed = (1 - few.model.explained) * few.model.trace
    assert few.residuals(X).sum() == pytest.approx(missed, rel=1e-9)


def test_fourier_features_are_near_too_and_have_no_pre_images():
    found = KernelPCA(2, "gaussian(4)", features="fourier:400", scale="none").fit(X)
    whole = KernelPCA(2, "gaussian(4)", scale="none").fit(X)
    np.testing.assert_allclose(found.explained_variance_ratio_, whole.explained_variance_ratio_, rtol=0, atol=0.05)
    with pytest.raises(UsageError, match="Fourier features have no pre-images"):
        found.denoise(NEW)


def test_fewer_components_are_delivered_where_the_rank_is_less_and_it_is_said():
    found = KernelPCA(10, "linear").fit(X)
    assert found.model.n_components == 5
    assert "10 components were asked for, and there are 5" in found.fit_.warnings[0]
    assert KernelPCA(5, "linear").fit(X).fit_.warnings == ()


def test_a_kernel_that_is_not_positive_definite_is_told():
    K = RNG.normal(size=(50, 50))
    found = KernelPCA(3, "precomputed").fit(K + K.T)
    assert "not positive definite" in found.fit_.warnings[0]
    assert (found.eigenvalues_ > 0).all()


def test_rows_that_a_kernel_takes_for_equal_have_no_component():
    with pytest.raises(UndecidedError, match="takes all rows for equal"):
        KernelPCA(2, "precomputed").fit(np.ones((10, 10)))
    with pytest.raises(DataError, match="no column is left"):
        KernelPCA(2).fit(np.ones((10, 2)))


def test_a_model_is_the_same_after_the_file(tmp_path):
    for number, (found, rows) in enumerate(
        (
            (KernelPCA(3).fit(frame()), frame()),
            (KernelPCA(3, "linear").fit(X), NEW),
            (KernelPCA(3, features="nystroem:50").fit(X), NEW),
            (KernelPCA(3, "precomputed").fit(X @ X.T), NEW @ X.T),
        )
    ):
        path = tmp_path / f"{number}.kt"
        found.save(path)
        loaded = KernelPCA.load(path)
        assert_close(loaded.transform(rows), found.transform(rows), condition=spread(found), share=SAME_MACHINE)
        np.testing.assert_array_equal(loaded.eigenvalues_, found.eigenvalues_)
        assert_close(loaded.explained_variance_ratio_, found.explained_variance_ratio_, share=SAME_MACHINE)
        if number == 0:
            back, expected = loaded.denoise(rows), found.denoise(rows)
            assert back[["colour", "new"]].equals(expected[["colour", "new"]])
            assert_close(back[["size", "price"]], expected[["size", "price"]], share=STAYS)
        elif number < 3:
            assert_close(loaded.denoise(rows), found.denoise(rows), share=STAYS)
        with pytest.raises(DataError, match="exists already"):
            found.save(path)
        found.save(path, force=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"components": 0}, "components must be a whole number of at least 1, not 0"),
        ({"components": 1.5}, "not 1.5"),
        ({"components": True}, "not True"),
        ({"solver": "arnoldi"}, "solver must be auto or lanczos or dense"),
        ({"scale": "minmax"}, "scale must be"),
        ({"seed": -1}, "seed must be"),
        ({"bandwidth": 0.0}, "must be positive"),
        ({"features": "random:5"}, "'random:5' are no features"),
        ({"kernel": "precomputed", "features": "nystroem:5"}, "contradict"),
        ({"kernel": "precomputed", "bandwidth": 1.0}, "contradict"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_options_that_cannot_be_are_refused_at_once(options, message):
    with pytest.raises(UsageError, match=message):
        KernelPCA(**options)


def test_what_is_not_fitted_or_has_another_shape_is_refused():
    with pytest.raises(UsageError, match="not fitted"):
        KernelPCA().transform(X)
    found = KernelPCA(3).fit(X)
    for wrong in (np.zeros(3), np.zeros((2, 2)), np.full((1, 3), np.nan)):
        with pytest.raises(DataError, match=r"scores have shape \(rows, 3\)"):
            found.inverse_transform(wrong)
    with pytest.raises(KerntestError):
        KernelPCA(2, "gausian").fit(X)


def test_columns_that_the_kernel_does_not_see_are_not_asked_for(tmp_path):
    table = frame()
    found = KernelPCA(2, "size, price: gaussian(1)").fit(table)
    assert found.model.encoder.names == ("size", "price")
    fewer = found.transform(table[["price", "size"]])
    assert_close(fewer, found.transform(table), condition=spread(found), share=SAME_MACHINE)
    result = kerntest.train_kpca(table, kernel="size, price: gaussian(1)", output=tmp_path / "m.kt")
    assert result.columns == ("size", "price")
    assert result.columns_left_out == ("colour", "when", "new")


def test_columns_go_with_components_by_correlations_and_shares_of_variance():
    table = frame().assign(same=1.0)
    result = kerntest.train_kpca(table, components=3)
    scores = KernelPCA(3).fit_transform(table)
    days = (table["when"] - table["when"].min()).dt.days
    for one in result.associations:
        column = days if one.column == "when" else table[one.column]
        if one.measure == "pearson":
            expected = [np.corrcoef(column, score)[0, 1] for score in scores.T]
        else:
            groups = [[score[column == level] for level in column.unique()] for score in scores.T]
            expected = [
                np.sqrt(sum(len(group) * group.mean() ** 2 for group in found) / (score @ score))
                for found, score in zip(groups, scores.T, strict=True)
            ]
        np.testing.assert_allclose(one.values, expected, rtol=0, atol=1e-9)
    measures = {one.column: one.measure for one in result.associations}
    assert measures == {"size": "pearson", "when": "pearson", "price": "pearson", "colour": "eta", "new": "eta"}
    strongest = [max(map(abs, one.values)) for one in result.associations]
    assert strongest == sorted(strongest, reverse=True)


def test_wine_comes_apart_in_two_components_as_the_picture_shows():
    data = load_wine()
    scores = KernelPCA(2).fit_transform(data.data)
    centres = np.stack([scores[data.target == k].mean(axis=0) for k in range(3)])
    nearest = ((scores[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == data.target).mean() > 0.95


def test_eigenvalues_that_have_not_converged_are_told(monkeypatch):
    monkeypatch.setattr("kerntest.matrices.eigen.STEPS", 2)
    found = KernelPCA(5, "gaussian(0.3)", solver="lanczos", scale="none").fit(X)
    assert "--solver dense" in found.fit_.warnings[-1]


@pytest.mark.parametrize("count", [1, 30, 38, 120])
def test_any_number_of_components_is_the_first_so_many(count):
    found = KernelPCA(count, "gaussian(3)", scale="none").fit(X)
    expected = KernelPCA(N - 1, "gaussian(3)", scale="none", solver="dense").fit(X)
    assert found.fit_.solver == ("lanczos" if count <= 38 else "dense")
    np.testing.assert_allclose(
        found.eigenvalues_, expected.eigenvalues_[:count], rtol=0, atol=1e-12 * expected.eigenvalues_[0]
    )
