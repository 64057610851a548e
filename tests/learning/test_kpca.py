"""`KernelPCA` beside scikit-learn, textbook loops and itself; far rows, kernels at their limits, and what is refused."""

import naive
import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from tolerances import SAME_MACHINE, assert_close

from kerntest import KernelPCA, parse_kernel, train_kpca
from kerntest.errors import DataError, UndecidedError, UsageError

RNG = np.random.default_rng(0)
N = 260
X = RNG.normal(size=(N, 5)) @ RNG.normal(size=(5, 5))
NEW = RNG.normal(size=(40, 5))
SYMMETRIC = RNG.normal(size=(50, 50))
SYMMETRIC += SYMMETRIC.T
every_solver = pytest.mark.parametrize("solver", ["auto", "lanczos", "dense"])


def up_to_sign(ours, theirs, atol):
    signs = np.sign(np.sum(ours * theirs, axis=0))
    np.testing.assert_allclose(ours, theirs * signs, rtol=0, atol=atol)


def spread(found):
    """Return how many times the first eigenvalue is the last: rounding in scores is divided by the root of each."""
    return float(found.eigenvalues_[0] / found.eigenvalues_[-1])


def frame(n=80):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"size": rng.normal(size=n), "colour": rng.choice(["red", "green", "blue"], n)})
    days = pd.to_timedelta(rng.integers(0, 50, n), unit="D")
    return table.assign(
        when=pd.Timestamp("2026-01-01") + days, new=rng.random(n) < 0.5, price=100 + 5 * rng.normal(size=n)
    )


@every_solver
@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        ("gaussian(3)", {"kernel": "rbf", "gamma": 1 / 18}),
        ("polynomial(degree=2, gain=0.1, offset=1)", {"kernel": "poly", "degree": 2, "gamma": 0.1, "coef0": 1}),
    ],
)
def test_eigenvalues_and_scores_of_old_and_new_rows_are_those_of_scikit_learn(kernel, theirs, solver):
    ours = KernelPCA(6, kernel, solver=solver, scale="none").fit(X)
    scores = ours.transform(X)
    np.testing.assert_allclose(scores.mean(axis=0), 0, rtol=0, atol=1e-10)
    assert (scores[np.argmax(np.abs(scores), axis=0), range(6)] > 0).all()
    peer = Peer(6, eigen_solver="dense", **theirs).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, peer.eigenvalues_, rtol=1e-11, atol=0)
    scale = np.sqrt(peer.eigenvalues_[0])
    up_to_sign(scores, peer.transform(X), 1e-10 * scale)
    up_to_sign(ours.transform(NEW), peer.transform(NEW), 1e-10 * scale)


@pytest.mark.parametrize("shape", [(N, 5), (30, 80)])
def test_the_linear_kernel_gives_ordinary_principal_components(shape):
    rows, new = (np.random.default_rng(seed).normal(size=shape) + 1000 for seed in (2, 3))
    ours, peer = KernelPCA(4, "linear", scale="none").fit(rows), PCA(4, svd_solver="full").fit(rows)
    np.testing.assert_allclose(ours.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-10, atol=1e-13)
    up_to_sign(ours.transform(new), peer.transform(new), 1e-9)
    expected = peer.inverse_transform(peer.transform(new))
    for found in (ours.inverse_transform(ours.transform(new)), ours.denoise(new)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.residuals(new), ((new - expected) ** 2).sum(axis=1), rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(ours.reconstruction_error(new) ** 2, ours.residuals(new), rtol=1e-9, atol=1e-8)


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


def test_nystroem_with_every_row_is_exact_and_with_some_is_near_and_says_how_near():
    exact = KernelPCA(4, "gaussian(2)", scale="none").fit(X)
    every = KernelPCA(4, "gaussian(2)", features=f"nystroem:{N}", scale="none").fit(X)
    np.testing.assert_allclose(every.eigenvalues_, exact.eigenvalues_, rtol=1e-8, atol=0)
    np.testing.assert_allclose(every.transform(NEW), exact.transform(NEW), rtol=0, atol=1e-6)
    np.testing.assert_allclose(every.residuals(NEW), exact.residuals(NEW), rtol=0, atol=1e-6)
    back, expected = (one.inverse_transform(exact.transform(NEW)) for one in (every, exact))
    np.testing.assert_allclose(back, expected, rtol=0, atol=1e-4)
    options = {"kernel": "gaussian(4)", "scale": "none", "components": 4}
    some, whole = train_kpca(X, features="nystroem:90", **options), train_kpca(X, **options)
    assert 0 < some.feature_error < 0.05
    np.testing.assert_allclose(some.explained_variance_ratio, whole.explained_variance_ratio, rtol=0, atol=0.02)
    # Shares are those of all variance, also of what the features miss; so are residuals.
    few = KernelPCA(4, "gaussian(1)", features="nystroem:20", scale="none").fit(X)
    all_of_it = KernelPCA(4, "gaussian(1)", scale="none").fit(X)
    assert (few.explained_variance_ratio_ < all_of_it.explained_variance_ratio_).all()
    missed = (1 - few.model.explained) * few.model.trace
    assert few.residuals(X).sum() == pytest.approx(missed, rel=1e-9)


SQUARE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
SAME = "pc1 and pc2 have the same eigenvalue to rounding{}: which axes they are is arbitrary"


@pytest.mark.parametrize(
    ("components", "kernel", "rows", "told"),
    [
        (10, "linear", X, "10 components were asked for, and there are 5: no further eigenvalue is above rounding"),
        (3, "delta", X[:40], SAME.format(", and so have later ones")),
        (2, "linear", SQUARE, SAME.format("")),
        (1, "precomputed", SYMMETRIC, "the kernel is not positive definite: HKH has an eigenvalue of "),
        (20, "precomputed", SYMMETRIC, "their shares those of their own sum, which is more than the "),
        (5, "linear", X, None),
        (3, "gaussian", X, None),
        # Rounding of a wide kernel is no negative eigenvalue.
        (2, "gaussian(1e7)", NEW, None),
    ],
)
def test_what_a_reader_of_components_must_know_is_told(components, kernel, rows, told):
    found = KernelPCA(components, kernel).fit(rows)
    assert (told or "") in "".join(found.fit_.warnings)
    assert len(found.fit_.warnings) == (told is not None)
    assert (found.eigenvalues_ > 0).all()
    if told and kernel != "precomputed":
        assert sum(told in one for one in train_kpca(rows, components=components, kernel=kernel).warnings) == 1
    if components == 20:
        np.testing.assert_allclose(found.explained_variance_ratio_.sum(), 1.0, rtol=1e-12, atol=0)


def test_eigenvalues_that_have_not_converged_are_told(monkeypatch):
    monkeypatch.setattr("kerntest.matrices.matrix.STEPS", 2)
    found = KernelPCA(5, "gaussian(0.3)", solver="lanczos", scale="none").fit(X)
    assert "solver='dense'" in found.fit_.warnings[-1]


@pytest.mark.parametrize("count", [1, 30, 38, 120])
def test_any_number_of_components_is_the_first_so_many(count):
    found = KernelPCA(count, "gaussian(3)", scale="none").fit(X)
    expected = KernelPCA(N - 1, "gaussian(3)", scale="none", solver="dense").fit(X)
    assert found.fit_.solver == ("lanczos" if count <= 38 else "dense")
    np.testing.assert_allclose(
        found.eigenvalues_, expected.eigenvalues_[:count], rtol=0, atol=1e-12 * expected.eigenvalues_[0]
    )


def test_columns_that_the_kernel_does_not_see_are_not_asked_for(tmp_path):
    table = frame()
    found = KernelPCA(2, "size, price: gaussian(1)").fit(table)
    assert found.model.encoder.names == ("size", "price")
    fewer = found.transform(table[["price", "size"]])
    assert_close(fewer, found.transform(table), condition=spread(found), share=SAME_MACHINE)
    result = train_kpca(table, kernel="size, price: gaussian(1)", output=tmp_path / "m.kt")
    assert result.columns == ("size", "price")
    assert result.columns_left_out == ("colour", "when", "new")


def test_columns_go_with_components_by_correlations_and_shares_of_variance():
    table = frame().assign(same=1.0)
    result = train_kpca(table, components=3)
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


def svd_components(X, new, count):
    """Return eigenvalues, scores of new rows and what they leave, by the singular values of the centred rows."""
    mean = X.mean(axis=0)
    singular, axes = np.linalg.svd(X - mean, full_matrices=False)[1:]
    scores = (new - mean) @ axes[:count].T
    left = np.sum((new - mean) ** 2, axis=1) - np.sum(scores**2, axis=1)
    return singular[:count] ** 2, scores, left


@every_solver
@pytest.mark.parametrize("shape", [(200, 5), (30, 80)])
def test_rows_far_from_the_origin_have_the_linear_components_of_rows_near_it(shape, solver):
    near, new = RNG.normal(size=shape), RNG.normal(size=(20, shape[1]))
    # Whole sixteenths survive the addition of a power of two to the last digit.
    near, new = np.round(near * 16) / 16, np.round(new * 16) / 16
    far = 2.0**27
    eigenvalues, scores, left = svd_components(near, new, 3)
    found = KernelPCA(3, "linear", scale="none", solver=solver).fit(near + far)
    assert found.model.expansion.centres.numeric.shape == (4, shape[1])
    if solver != "auto":
        assert found.fit_.solver == solver
    np.testing.assert_allclose(found.eigenvalues_, eigenvalues, rtol=1e-12, atol=0)
    np.testing.assert_allclose(np.abs(found.transform(new + far)), np.abs(scores), rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.residuals(new + far), left, rtol=0, atol=1e-5)
    # Less the offset: a share of it would pass anything. Numbers of this size are 3e-8 apart.
    back = found.inverse_transform(found.transform(near + far)) - far
    np.testing.assert_allclose(back.mean(axis=0), near.mean(axis=0), rtol=0, atol=1e-7)


@every_solver
@pytest.mark.parametrize("size", [1e160, 1.5e308])
def test_columns_whose_products_overflow_are_refused_unless_they_are_scaled(size, solver):
    rows = RNG.uniform(-1.0, 1.0, size=(40, 3)) * size
    with pytest.raises(UndecidedError, match="the kernel 'linear' overflows"):
        KernelPCA(2, "linear", scale="none", solver=solver).fit(rows)
    found, expected = KernelPCA(2, "linear", solver=solver).fit(rows), KernelPCA(2, "linear").fit(rows / size)
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-10, atol=0)


@pytest.mark.parametrize(
    ("error", "rows", "kernel", "message"),
    [
        (UndecidedError, np.ones((10, 10)), "precomputed", "takes all rows for equal"),
        (UndecidedError, np.eye(3) * 1e308, "precomputed", "sums of the kernel matrix overflow"),
        (DataError, np.triu(np.ones((4, 4))), "precomputed", "symmetric"),
        (DataError, np.ones((10, 2)), "gaussian", "no column is left"),
        (UsageError, X, "gausian", "unknown kernel"),
        *(
            (DataError, rows, "gaussian", "rows are equally many numbers each")
            for rows in ([[1, 2], [3, 4, 5]], [["a", "b"], ["c", "d"]], [[1, {}], [2, 3]])
        ),
    ],
)
def test_rows_without_components_are_refused(error, rows, kernel, message):
    with pytest.raises(error, match=message):
        KernelPCA(2, kernel).fit(rows)


def test_all_shares_of_a_result_are_rounded_alike():
    # Components that leave out less than can be written are not all of it, in the table either.
    table = pd.DataFrame(RNG.normal(size=(60, 14)) * ([1.0] * 13 + [1e-3]), columns=[f"x{k}" for k in range(14)])
    for count, told in ((13, "99.9"), (14, "100")):
        words = str(train_kpca(table, components=count, kernel="linear", scale="none"))
        assert f"{count} components explain {told} % of the variance." in words
        assert f"and {count - 12} more, in all {told} %: to_dict() has them" in words
    for scale, told in ((1e-3, "99.9"), (0.0, "100.0")):
        (line,) = [
            line
            for line in str(
                train_kpca(
                    pd.DataFrame({"a": table.x0, "b": table.x0 + scale * table.x1}),
                    components=1,
                    kernel="linear",
                    scale="none",
                )
            ).splitlines()
            if line.startswith("  pc1 ")
        ]
        assert line.split()[2:4] == [told, told]


def test_scores_of_another_shape_are_refused():
    found = KernelPCA(3).fit(X)
    for wrong in (np.zeros(3), np.zeros((2, 2)), np.full((1, 3), np.nan), [["a", "b"]], [[1.0, 2.0], [3.0]], None):
        with pytest.raises(DataError, match=r"scores have shape \(rows, 3\) and are finite numbers, not of"):
            found.inverse_transform(wrong)
    given = KernelPCA(2, "precomputed").fit(np.eye(5) + 1)
    with pytest.raises(UsageError, match="no columns to go back to"):
        given.inverse_transform(np.zeros((1, 2)))
    with pytest.raises(DataError, match="4 columns"):
        given.transform(np.ones((2, 4)))


def test_a_component_goes_with_whether_values_are_there():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    frame.loc[:90, ["a", "b"]] = np.nan
    found = train_kpca(frame, components=1, missing="indicator")
    column, measure, (value,) = vars(found.associations[0]).values()
    assert column in {"a missing", "b missing"}
    assert measure == "eta"
    assert value > 0.9
    assert f"{column} ({value:.2f})" in str(found)
