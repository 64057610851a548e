"""Kernels of the inverse covariance, in tests and learners: Hotelling's T^2, units of no consequence, what a model keeps."""

import itertools

import numpy as np
import pandas as pd
import pytest
from model_archives import rewritten
from tolerances import STATISTIC, assert_close

import kerntest
from kerntest import KernelPCA, KernelRidge, hsic_test, mmd_test
from kerntest.errors import ModelError, UndecidedError
from kerntest.inference.relabelling.designs import BlockedRows
from kerntest.learning.model_file import read_model


def hotelling(rows, in_x):
    """Return T^2 = n_x n_y / n d'S^-1 d for d the difference of the means and S the pooled covariance within the samples."""
    x, y = rows[in_x], rows[~in_x]
    within = ((x - x.mean(0)).T @ (x - x.mean(0)) + (y - y.mean(0)).T @ (y - y.mean(0))) / (len(rows) - 2)
    d = x.mean(0) - y.mean(0)
    return len(x) * len(y) / len(rows) * float(d @ np.linalg.solve(within, d))


def samples(n_x, n_y, p, shift, seed=0):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(p, p))
    return (rng.normal(size=(n_x, p)) + shift) @ mixing, rng.normal(size=(n_y, p)) @ mixing


@pytest.mark.parametrize(("n_x", "n_y", "p"), [(5, 5, 2), (6, 4, 3), (3, 7, 1)])
@pytest.mark.parametrize("seed", range(4))
def test_unregularised_the_permutation_p_is_that_of_hotelling(n_x, n_y, p, seed):
    """Over all splits, from which both tests take theirs."""
    x, y = samples(n_x, n_y, p, 0.8, seed)
    rows = np.concatenate([x, y])
    splits = np.zeros((len(list(itertools.combinations(range(n_x + n_y), n_x))), n_x + n_y), dtype=bool)
    for split, chosen in zip(splits, itertools.combinations(range(n_x + n_y), n_x), strict=True):
        split[list(chosen)] = True
    statistics = np.array([hotelling(rows, split) for split in splits])
    # Halves that change places have the same statistic, but for rounding.
    expected = float(np.mean(statistics >= statistics[0] * (1 - 1e-9)))
    found = mmd_test(x, y, kernel="mahalanobis(0)", estimator="biased")
    assert found.null.permutations == len(splits)
    assert found.p_value == pytest.approx(expected, rel=1e-12)


def test_unregularised_it_is_increasing_in_hotelling_over_the_relabellings_of_the_test():
    """The relabellings of many rows are seen only from inside; the test takes rows in the order of their values."""
    x, y = samples(70, 50, 4, 0.25)
    rows = np.concatenate([x, y])
    order = np.argsort(rows[:, 0])
    rows, labels = rows[order], np.repeat([True, False], [70, 50])[order]
    blocks = BlockedRows.of(labels, 0)
    T2 = []
    for moved in blocks.relabellings(1000, 0):
        in_x = np.repeat(np.concatenate([moved, blocks.in_x[blocks.free :]]), np.diff(blocks.starts))
        T2.append(hotelling(rows[blocks.order], in_x))
    found = mmd_test(x, y, kernel="mahalanobis(0)", estimator="biased", permutations=1000)
    assert found.null.permutations == len(T2)
    assert found.p_value == pytest.approx(np.mean(np.array(T2) >= T2[0] * (1 - 1e-9)), rel=1e-12)
    assert 0.002 < found.p_value < 0.5
    # MMD^2 = d'S_T^-1 d for the covariance of all rows, of which S within is a part: a / (1 + c a) for a = d'S^-1 d.
    a = T2[0] * 120 / (70 * 50) / 118
    assert found.mmd2_biased == pytest.approx(120 * a / (1 + 70 * 50 / 120 * a), rel=1e-9)


@pytest.mark.parametrize("kernel", ["mahalanobis", "mahalanobis(laplacian2)"])
def test_units_and_without_a_share_linear_combinations_make_no_difference(kernel):
    x, y = samples(40, 50, 3, 0.3)
    plain, scaled = (
        mmd_test(x * unit, y * unit, kernel=kernel, scale="none") for unit in (1.0, np.array([1000.0, 1.0, 1e-4]))
    )
    assert_close(scaled.mmd2_unbiased, plain.mmd2_unbiased, scale=plain.mmd2_biased)
    assert scaled.p_value == plain.p_value
    name = kernel.replace("mahalanobis", "mahalanobis(0)").replace("(0)(laplacian2)", "(laplacian2, 0)")
    turn = np.random.default_rng(1).normal(size=(3, 3))
    plain, turned = (mmd_test(x @ one, y @ one, kernel=name, scale="none") for one in (np.eye(3), turn))
    assert_close(turned.mmd2_unbiased, plain.mmd2_unbiased, scale=plain.mmd2_biased, condition=np.linalg.cond(turn))


@pytest.mark.parametrize("kernel", ["mahalanobis(0)", "mahalanobis(gaussian(1), 0.1)"])
def test_far_off_columns_keep_their_digits(kernel):
    """An offset takes 1e-10 of the columns away, and the kernel measures from the means."""
    x, y = samples(80, 90, 3, 0.3)
    near, far = (mmd_test(x + offset, y + offset, kernel=kernel, scale="none") for offset in (0.0, 1e6))
    assert_close(far.mmd2_unbiased, near.mmd2_unbiased, scale=near.mmd2_biased, share=1e-7)
    near, far = (hsic_test(x[:, :2] + one, x[:, 2] - one, kernel_x=kernel, scale="none") for one in (0.0, 1e6))
    assert_close(far.hsic_unbiased, near.hsic_unbiased, scale=near.hsic_biased, share=1e-7)
    models = [KernelRidge(1.0, kernel, scale="none").fit(x + one, x[:, 0]).predict(y + one) for one in (0.0, 1e6)]
    assert_close(*models, share=1e-6)


def test_independence_by_features_and_by_matrices():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)) @ np.array([[1.0, 0.9], [0.0, 0.2]])
    y = (x @ [1.0, -1.0]) ** 2 + 0.1 * rng.normal(size=300)
    options = {"kernel_x": "mahalanobis(gaussian)", "bandwidth": "median"}
    exact, features = hsic_test(x, y, **options), hsic_test(x, y, method="features", features="nystroem:300", **options)
    assert exact.kernel_x.startswith("mahalanobis(gaussian(")
    assert_close(features.hsic_biased, exact.hsic_biased, share=1e-6)
    # Along the narrow direction, which no plain kernel of the standardised columns looks at.
    assert exact.effect_size > 1.2 * hsic_test(x, y, kernel_x="gaussian", bandwidth="median").effect_size


def frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    long = rng.normal(size=n)
    table = pd.DataFrame({"a": 100 * long, "b": long + 0.1 * rng.normal(size=n), "town": rng.choice(["x", "y"], n)})
    return table.assign(up=np.where(table.b - table.a / 100 > 0, "yes", "no"), z=table.b - table.a / 100)


@pytest.mark.parametrize(
    ("train", "apply", "options"),
    [
        (kerntest.train_svm, kerntest.predict_file, {"target": "up", "exclude": "z"}),
        (kerntest.train_svm, kerntest.predict_file, {"target": "up", "exclude": "z", "features": "nystroem:40"}),
        (kerntest.train_ridge, kerntest.predict_file, {"target": "z", "exclude": "up"}),
        (kerntest.train_kpca, kerntest.transform_file, {"columns": "a,b,town"}),
    ],
)
@pytest.mark.parametrize("kernel", ["a, b: mahalanobis(gaussian(1), 0.05); town: delta", "mahalanobis(laplacian, 0)"])
def test_a_model_keeps_the_covariance_of_its_training_rows(tmp_path, train, apply, options, kernel):
    table, model = frame(), tmp_path / "m.kt"
    train(table, kernel=kernel, output=str(model), **options)
    every = {}
    for name, rows in {"whole": table, "part": table.iloc[3:10]}.items():
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        apply(str(model), str(tmp_path / f"{name}.csv"), output=str(tmp_path / f"{name}.out.csv"))
        every[name] = pd.read_csv(tmp_path / f"{name}.out.csv").iloc[:, 1:]
    some = every["whole"].iloc[3:10].reset_index(drop=True)
    if not pd.api.types.is_numeric_dtype(some.iloc[:, 0]):
        assert (some == every["part"]).all(axis=None)
    else:
        assert_close(every["part"], some, scale=float(np.abs(every["whole"].to_numpy()).max()), condition=1e2)


def test_the_narrow_direction_is_learned():
    table = frame()
    features = table[["a", "b"]]
    model = KernelRidge(kernel="mahalanobis(0)", lambda_=1e-3).fit(features[:80], table.z[:80])
    assert model.score(features[80:], table.z[80:]) > 0.999
    components = KernelPCA(2, kernel="mahalanobis(0)").fit(features)
    # White rows have the same variance in every direction.
    assert_close(components.explained_variance_ratio_, [0.5, 0.5], share=1e-6)


def test_a_singular_covariance_is_refused_with_a_way_out():
    x, y = samples(20, 20, 2, 0.5)
    x, y = (np.column_stack([one, one.sum(axis=1)]) for one in (x, y))
    with pytest.raises(UndecidedError, match=r"mahalanobis\(gaussian, 0\)' has no matrix") as caught:
        mmd_test(x, y, kernel="mahalanobis(gaussian, 0)")
    hint = caught.value.hint.split(" adds")[0]
    assert (caught.value.exit_code, hint) == (4, "mahalanobis(gaussian, 0.01)")
    assert mmd_test(x, y, kernel=hint).p_value <= 1
    # More columns than rows, too.
    wide = np.random.default_rng(0).normal(size=(2, 10, 30))
    assert 0 < mmd_test(*wide, kernel="mahalanobis").p_value <= 1


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        (None, "needs the moments"),
        ([[0.0, 0.0], [1.0, 0.0]], "means and a line for each numeric column"),
        ([[0.0], [1.0]], "means and a line for each numeric column"),
        ([[0.0, 0.0], [1.0, 0.5], [0.4, 1.0]], "with a covariance"),
        ([[0.0, 0.0], [1.0, 0.5], [0.5, -1.0]], "with a covariance"),
        ([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]], "singular"),
        ("none", "moments must be a list"),
    ],
)
def test_a_model_with_a_strange_covariance_is_refused(tmp_path, moments, message):
    model = tmp_path / "m.kt"
    kerntest.train_ridge(
        frame(), target="z", exclude="up,town", kernel="mahalanobis(gaussian(1), 0)", output=str(model)
    )
    encoder = read_model(model).manifest["encoder"] | {"moments": moments}
    if moments is None:
        del encoder["moments"]
    model.write_bytes(rewritten(model.read_bytes(), {"encoder": encoder}))
    with pytest.raises(ModelError, match=message):
        kerntest.inspect_model(str(model))


def test_engines_agree():
    x, y = samples(60, 70, 3, 0.3)
    usual = mmd_test(x, y, kernel="mahalanobis(gaussian)")
    with kerntest.compute_on(threads=3):
        again = mmd_test(x, y, kernel="mahalanobis(gaussian)")
    assert (again.p_value, again.statistic) == (usual.p_value, pytest.approx(usual.statistic, rel=STATISTIC))
    assert KernelRidge(kernel="mahalanobis(gaussian(2))").fit(x, x[:, 0] ** 2).score(x, x[:, 0] ** 2) > 0.9
