"""Components of rows far from the origin, of kernels at their limits, and of what is no matrix, kernel or row at all."""

import numpy as np
import pytest
from model_archives import archive, members_of
from tolerances import SAME_MACHINE, assert_close

from kerntest import KernelPCA, inspect_model, train_kpca
from kerntest.errors import DataError, ModelError, UndecidedError, UsageError

RNG = np.random.default_rng(60)


def svd_components(X, new, count):
    """Return eigenvalues, scores of new rows and what they leave, by the singular values of the centred rows."""
    mean = X.mean(axis=0)
    singular, axes = np.linalg.svd(X - mean, full_matrices=False)[1:]
    scores = (new - mean) @ axes[:count].T
    left = np.sum((new - mean) ** 2, axis=1) - np.sum(scores**2, axis=1)
    return singular[:count] ** 2, scores, left


@pytest.mark.parametrize("solver", ["auto", "dense", "lanczos"])
@pytest.mark.parametrize("shape", [(200, 5), (30, 80)])
def test_rows_far_from_the_origin_have_the_linear_components_of_rows_near_it(shape, solver):
    near, new = RNG.normal(size=shape), RNG.normal(size=(20, shape[1]))
    # Whole sixteenths survive the addition of a power of two to the last digit.
    near, new = np.round(near * 16) / 16, np.round(new * 16) / 16
    far = 2.0**27
    eigenvalues, scores, left = svd_components(near, new, 3)
    found = KernelPCA(3, "linear", scale="none", solver=solver).fit(near + far)
    np.testing.assert_allclose(found.eigenvalues_, eigenvalues, rtol=1e-12, atol=0)
    np.testing.assert_allclose(np.abs(found.transform(new + far)), np.abs(scores), rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.residuals(new + far), left, rtol=0, atol=1e-5)
    # Less the offset: a share of it would pass anything. Numbers of this size are 3e-8 apart.
    back = found.inverse_transform(found.transform(near + far)) - far
    np.testing.assert_allclose(back.mean(axis=0), near.mean(axis=0), rtol=0, atol=1e-7)


def test_the_linear_kernel_keeps_axes_and_mean_whatever_the_number_of_rows(tmp_path):
    for shape in ((500, 4), (20, 50)):
        found = KernelPCA(3, "linear").fit(RNG.normal(size=shape))
        assert found.model.expansion.centres.numeric.shape == (4, shape[1])
        np.testing.assert_array_equal(found.model.mean, [0.0, 0.0, 0.0, 1.0])
        found.save(tmp_path / f"{shape[1]}.kt")
        rows = RNG.normal(size=(5, shape[1]))
        loaded = KernelPCA.load(tmp_path / f"{shape[1]}.kt")
        assert_close(loaded.transform(rows), found.transform(rows), share=SAME_MACHINE)


def test_a_solver_that_is_asked_for_is_used_for_the_linear_kernel_too():
    X = RNG.normal(size=(60, 4))
    fits = {solver: KernelPCA(2, "linear", solver=solver).fit(X) for solver in ("auto", "dense", "lanczos")}
    assert {asked: found.fit_.solver for asked, found in fits.items()} == {
        "auto": "covariance",
        "dense": "dense",
        "lanczos": "lanczos",
    }
    for found in fits.values():
        np.testing.assert_allclose(found.transform(X), fits["auto"].transform(X), rtol=0, atol=1e-11)


def test_a_solver_without_effect_is_refused():
    with pytest.raises(UsageError, match="features and the solver dense contradict each other"):
        KernelPCA(2, features="nystroem:5", solver="dense")


def test_rounding_of_a_wide_kernel_is_not_taken_for_a_kernel_that_is_not_positive_definite():
    assert KernelPCA(2, "gaussian(1e7)").fit(RNG.normal(size=(60, 4))).fit_.warnings == ()


def test_shares_relative_to_their_own_sum_are_told_where_negative_eigenvalues_make_the_trace_less():
    K = RNG.normal(size=(50, 50))
    few, many = KernelPCA(1, "precomputed").fit(K + K.T), KernelPCA(20, "precomputed").fit(K + K.T)
    assert "shares those of their own sum, which is more than the" in many.fit_.warnings[0]
    np.testing.assert_allclose(many.explained_variance_ratio_.sum(), 1.0, rtol=1e-12, atol=0)
    assert "not positive definite" in few.fit_.warnings[0]


def test_equal_eigenvalues_are_told_for_their_axes_are_arbitrary():
    X = RNG.normal(size=(40, 2))
    assert KernelPCA(3, "delta").fit(X).fit_.warnings == (
        "pc1 and pc2 have the same eigenvalue to rounding, and so have later ones: which axes they are is arbitrary",
    )
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert KernelPCA(2, "linear").fit(square).fit_.warnings == (
        "pc1 and pc2 have the same eigenvalue to rounding: which axes they are is arbitrary",
    )
    assert KernelPCA(3, "gaussian").fit(X).fit_.warnings == ()


def test_residuals_of_explicit_features_are_what_the_report_says_of_the_training_rows():
    X = RNG.normal(size=(200, 3))
    for features in ("fourier:50", "nystroem:20"):
        found = KernelPCA(3, "gaussian(1)", features=features).fit(X)
        left = (1.0 - found.model.explained) * found.model.trace / len(X)
        np.testing.assert_allclose(found.residuals(X).mean(), left, rtol=1e-10, atol=0)


def test_a_matrix_whose_sums_overflow_is_refused():
    with pytest.raises(UndecidedError, match="sums of the kernel matrix overflow"):
        KernelPCA(2, "precomputed").fit(np.eye(3) * 1e308)


@pytest.mark.parametrize("solver", ["auto", "dense", "lanczos"])
@pytest.mark.parametrize("size", [1e160, 1.5e308])
def test_columns_whose_products_overflow_are_refused_unless_they_are_scaled(size, solver):
    X = RNG.uniform(-1.0, 1.0, size=(40, 3)) * size
    with pytest.raises(UndecidedError, match="the kernel 'linear' overflows"):
        KernelPCA(2, "linear", scale="none", solver=solver).fit(X)
    found = KernelPCA(2, "linear", solver=solver).fit(X)
    np.testing.assert_allclose(
        found.eigenvalues_, KernelPCA(2, "linear").fit(X / size).eigenvalues_, rtol=1e-10, atol=0
    )


@pytest.mark.parametrize("rows", [[[1, 2], [3, 4, 5]], [["a", "b"], ["c", "d"]], [[1, {}], [2, 3]]])
def test_lists_that_are_no_rows_of_numbers_are_refused(rows):
    with pytest.raises(DataError, match="rows in lists are equally many numbers each"):
        KernelPCA(1).fit(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": None}, "a kernel is a text or a Kernel, not None"),
        ({"kernel": 3}, "a kernel is a text or a Kernel, not 3"),
        ({"bandwidth": None}, "a bandwidth must be positive and finite, not None"),
        ({"features": 5}, "5 are no features"),
    ],
)
def test_options_of_another_type_are_refused_in_words(options, message):
    with pytest.raises(UsageError, match=message):
        KernelPCA(**options)


@pytest.mark.parametrize("scores", [[["a", "b"]], [[1.0, 2.0], [3.0]], None])
def test_scores_that_are_no_numbers_are_refused(scores):
    found = KernelPCA(2).fit(RNG.normal(size=(30, 3)))
    with pytest.raises(DataError, match=r"scores have shape \(rows, 2\) and are finite numbers, not of type"):
        found.inverse_transform(scores)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"trace": 1e-320}, "trace is less than the sum of its eigenvalues"), ({"n_train": 10**400}, "n_train")],
)
def test_a_model_whose_numbers_cannot_be_is_refused(tmp_path, wrong, message):
    KernelPCA(2).fit(RNG.normal(size=(30, 3))).save(tmp_path / "m.kt")
    manifest, members = members_of((tmp_path / "m.kt").read_bytes())
    (tmp_path / "m.kt").write_bytes(archive(manifest | wrong, members))
    with pytest.raises(ModelError, match=message):
        KernelPCA.load(tmp_path / "m.kt")


@pytest.mark.parametrize(("kernel", "support"), [("linear", None), ("gaussian", 20)])
def test_a_linear_model_keeps_axes_and_no_training_rows(tmp_path, kernel, support):
    X = np.random.default_rng(0).normal(size=(20, 3))
    train_kpca(X, kernel=kernel, output=tmp_path / "m.kt")
    assert inspect_model(tmp_path / "m.kt").n_support == support
