"""Model files of regressions and components: they do what was fitted, and damaged ones are refused."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from learning.svm_cases import gaussian, raises
from model_archives import archive, members_of
from tolerances import SAME_MACHINE, assert_close

from kerntest import SVM, KernelPCA, KernelRidge, predict_file
from kerntest.errors import DataError, ModelError, UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=60)
TWO = np.column_stack([Y, Y**2])
MIXED = pd.DataFrame({"a": X[:, 0], "colour": np.array(["red", "blue", "green"])[np.arange(60) % 3], "ok": X[:, 2] > 0})
MATRIX = gaussian(X, X, 1.0)
KINDS = {
    "one target": (KernelRidge(), X, Y),
    "two targets": (KernelRidge(0.1), X, TWO),
    "nystroem": (KernelRidge(features="nystroem:20"), X, Y),
    "fourier": (KernelRidge(features="fourier:40", bandwidth=2.0), X, Y),
    "no intervals": (KernelRidge(intervals=False), X, Y),
    "categories": (KernelRidge(), MIXED, Y),
    "groups": (KernelRidge(kernel="a: gaussian; colour: delta; ok: 0.5*hamming"), MIXED, Y),
    "matrix": (KernelRidge(kernel="precomputed"), MATRIX, Y),
    "linear": (KernelRidge(kernel="linear", scale="none"), X, Y),
    "components": (KernelPCA(3), MIXED, None),
    "axes": (KernelPCA(3, "linear"), X, None),
    "components of features": (KernelPCA(3, features="nystroem:20"), X, None),
    "components of a matrix": (KernelPCA(3, "precomputed"), MATRIX, None),
}


@cache
def fitted(kind):
    learner, data, y = KINDS[kind]
    return learner.fit(data, y), data


def told(learner, data):
    """Return what a model says of rows; of deviations the squares, which are what is summed."""
    if isinstance(learner, KernelPCA):
        return [learner.transform(data)]
    spread = [] if learner.model.spread is None else [learner.predict(data, return_std=True)[1] ** 2]
    return [learner.predict(data), *spread]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_does_from_its_file_what_it_did_and_is_written_as_it_was_read(kind, tmp_path):
    learner, data = fitted(kind)
    learner.save(tmp_path / "a")
    loaded = type(learner).load(tmp_path / "a")
    loaded.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    raises(DataError, "data.exists", lambda: learner.save(tmp_path / "a"))
    condition = getattr(learner.fit_, "condition_number", 1e4)
    for found, expected in zip(told(loaded, data), told(learner, data), strict=True):
        assert_close(found, expected, condition=condition, share=SAME_MACHINE)
    if isinstance(learner, KernelPCA) and kind != "components of a matrix":
        back, expected = (pd.DataFrame(one.denoise(data)).select_dtypes(float) for one in (loaded, learner))
        assert_close(back, expected, share=1e-7)


def put(**fields):
    return lambda manifest: manifest.update(fields)


DAMAGED = {
    "no targets": ("one target", put(targets=[])),
    "too many targets": ("one target", put(targets=["a", "b"])),
    "targets twice": ("two targets", put(targets=["a", "a"])),
    "a lambda of 0": ("one target", put(**{"lambda": 0.0})),
    "more rows than floats can count": ("one target", put(n_train=10**400)),
    "a floor that is text": ("one target", put(spread_floor="x")),
    "other features": ("nystroem", put(features="fourier")),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_manifests_are_refused(name, tmp_path):
    kind, change = DAMAGED[name]
    fitted(kind)[0].save(tmp_path / "m")
    manifest, members = members_of((tmp_path / "m").read_bytes())
    change(manifest)
    (tmp_path / "m").write_bytes(archive(manifest, members))
    with pytest.raises(ModelError) as caught:
        KernelRidge.load(tmp_path / "m")
    assert caught.value.exit_code == 5
    assert "\n" not in caught.value.message


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in a folder with models of one target and two, and rows of which one lacks a value."""
    monkeypatch.chdir(tmp_path)
    table = MIXED.assign(y=TWO[:, 0], z=TWO[:, 1])
    table.to_csv("train.csv", index=False)
    KernelRidge(0.1).fit(table, ["y", "z"]).save("two.kt")
    for name, intervals in (("one.kt", True), ("plain.kt", False)):
        KernelRidge(0.1, intervals=intervals).fit(table.drop(columns="z"), "y").save(name)
    SVM(task="regress").fit(table.drop(columns="z"), "y").save("svm.kt")
    MIXED.head(10).assign(a=MIXED["a"].where(MIXED.index != 3), id=range(10)).to_csv("new.csv", index=False)


def test_predictions_of_a_file_have_the_names_of_the_targets(folder):
    del folder
    report = predict_file("two.kt", "new.csv", output="out.csv", interval=0.8, keep="id", missing="empty")
    names = [f"{target}{end}" for target in ("y", "z") for end in ("", "_std", "_low", "_high")]
    assert report.columns == ("row", "id", *names)
    assert (report.kind, report.task, report.target) == ("ridge", "regress", "y, z")
    assert set(report.by_target) == {"y", "z"}
    written = pd.read_csv("out.csv")
    assert written["y"].isna().tolist() == [place == 3 for place in range(10)]
    loaded, complete = KernelRidge.load("two.kt"), MIXED.head(10).drop(index=3)
    expected = [*loaded.predict(complete, return_std=True), *loaded.predict_interval(complete, 0.8)]
    found = written[names].dropna().to_numpy().reshape(9, 2, 4)
    np.testing.assert_allclose(found, np.stack(expected, axis=2), rtol=1e-10)
    report = predict_file("one.kt", "new.csv", output="b.csv", missing="drop", block=64)
    assert (report.columns, report.by_target) == (("row", "y"), None)
    values = pd.read_csv("b.csv")["y"]
    np.testing.assert_allclose(
        [report.numbers.minimum, report.numbers.maximum], [values.min(), values.max()], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("code", "model", "options"),
    [
        ("usage.no_intervals", "plain.kt", {"interval": 0.9}),
        ("usage.no_intervals", "svm.kt", {"std": True}),
        ("usage.no_decision", "one.kt", {"proba": True}),
        ("usage.no_decision", "one.kt", {"decision": True}),
        ("usage.interval", "one.kt", {"interval": 90}),
    ],
)
def test_what_a_model_does_not_have_is_refused(folder, code, model, options):
    del folder
    raises(UsageError, code, lambda: predict_file(model, "train.csv", **options))


def test_targets_whose_columns_would_have_one_name_are_refused(tmp_path):
    KernelRidge(0.1).fit(X, pd.DataFrame({"y": Y, "y_std": Y**2})).save(tmp_path / "m")
    pd.DataFrame(X).to_csv(tmp_path / "x.csv", index=False)
    raises(UsageError, "usage.output_names", lambda: predict_file(tmp_path / "m", tmp_path / "x.csv", std=True))
