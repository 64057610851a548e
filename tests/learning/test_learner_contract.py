"""What holds for every learner: its functions by a double loop over rows, its parameters, its file, its place in pipelines."""

import inspect
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from learning.svm_cases import raises
from model_archives import archive, members_of
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from kerntest import SVM, KernelPCA, KernelRidge, parse_kernel, train_kpca, train_ridge, train_svm
from kerntest.errors import ModelError, UsageError

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(24, 2)), rng.normal(size=(5, 2))
NUMBERS = X[:, 0] ** 2 + 0.3 * X[:, 1]
CLASSES = (NUMBERS > 0.6).astype(int)
TABLE = pd.DataFrame(X, columns=["a", "b"])


def k(x, z):
    """The Gaussian kernel of bandwidth 1.3."""
    return math.exp(-sum((a - b) ** 2 for a, b in zip(x, z, strict=True)) / (2 * 1.3**2))


K = np.array([[k(x, z) for z in X] for x in X])
AT_NEW = np.array([[k(x, z) for z in X] for x in NEW])
FIXED = {"kernel": "gaussian(1.3)", "scale": "none"}


def machine_by_hand():
    """Decisions of the machine of C = 2: the dual by projected steps of pairs, each solved exactly."""
    signs, alpha = np.where(CLASSES == 1, 1.0, -1.0), np.zeros(len(X))
    for _ in range(3000):
        slopes = signs - K @ (signs * alpha)
        up = np.where(signs > 0, alpha < 2.0, alpha > 0)
        down = np.where(signs > 0, alpha > 0, alpha < 2.0)
        i, j = np.argmax(np.where(up, slopes, -np.inf)), np.argmin(np.where(down, slopes, np.inf))
        if slopes[i] - slopes[j] < 1e-12:
            break
        step = (slopes[i] - slopes[j]) / (K[i, i] + K[j, j] - 2 * K[i, j])
        room = [2.0 - alpha[i] if signs[i] > 0 else alpha[i], alpha[j] if signs[j] > 0 else 2.0 - alpha[j]]
        step = min(step, *room)
        alpha[i] += signs[i] * step
        alpha[j] -= signs[j] * step
    slopes = signs - K @ (signs * alpha)
    return AT_NEW @ (signs * alpha) + slopes[(alpha > 1e-9) & (alpha < 2.0 - 1e-9)].mean()


def regression_by_hand():
    """Predictions of (K + 0.4 I) a + b = y with sum a = 0."""
    n = len(X)
    system = np.block([[K + 0.4 * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    found = np.linalg.solve(system, np.append(NUMBERS, 0.0))
    return AT_NEW @ found[:n] + found[n]


def components_by_hand():
    """Scores on the first component of HKH, of which the largest of the training rows is positive."""
    H = np.eye(len(X)) - 1 / len(X)
    values, vectors = np.linalg.eigh(H @ K @ H)
    axis = vectors[:, -1] / math.sqrt(values[-1])
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    return (AT_NEW - K.mean(axis=0)) @ H @ axis


LEARNERS = {
    "svm": (SVM(C=2.0, tolerance=1e-10, **FIXED), CLASSES, "decision_function", machine_by_hand),
    "ridge": (KernelRidge(0.4, **FIXED), NUMBERS, "predict", regression_by_hand),
    "kpca": (KernelPCA(1, **FIXED), None, "transform", components_by_hand),
}
every = pytest.mark.parametrize("name", LEARNERS)


@every
def test_new_rows_are_as_by_hand_from_arrays_tables_matrices_and_files(name, tmp_path):
    learner, y, method, by_hand = LEARNERS[name]
    expected = by_hand().reshape(-1)
    fitted = clone(learner).fit(X, y)
    framed = clone(learner).fit(TABLE, y)
    given = clone(learner).set_params(kernel="precomputed").fit(K, y)
    fitted.save(tmp_path / "m")
    loaded = type(learner).load(tmp_path / "m")
    turned = pd.DataFrame(NEW, columns=["a", "b"])[["b", "a"]].assign(beside="c")
    for one, rows in ((fitted, NEW), (framed, turned), (given, AT_NEW), (loaded, NEW), (fitted, NEW.tolist())):
        found = np.asarray(getattr(one, method)(rows)).reshape(-1)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@every
def test_parameters_are_set_and_copied(name):
    learner = LEARNERS[name][0]
    copy = clone(learner)
    assert copy.get_params() == learner.get_params() | {"threads": None}
    assert repr(type(learner)(scale="none")) == f"{type(learner).__name__}(scale='none')"
    assert copy.set_params(scale="standardize", threads=2).get_params()["scale"] == "standardize"
    with pytest.raises(UsageError, match="no parameter 'gamma'"):
        copy.set_params(gamma=2.0)
    forgetful = copy.fit(X, LEARNERS[name][1]).set_params(seed=3)
    with pytest.raises(NotFittedError, match="not fitted") as told:
        getattr(forgetful, LEARNERS[name][2])(X)
    # In another process, too, and where scikit-learn is not loaded.
    for error in (told.value, pickle.loads(pickle.dumps(told.value))):
        assert isinstance(error, UsageError)
        assert (error.code, error.hint, str(error)) == ("usage.not_fitted", "call fit first", told.value.message)


OTHERS = {
    "svm": {"C": np.float64(3.0), "class_weight": {True: 2.0}, "features": "nystroem:10", "probability": True},
    "ridge": {"criterion": "gcv", "bandwidth": 0.7, "intervals": False},
    "kpca": {"kernel": parse_kernel("laplacian(2)"), "seed": 4, "scale": "none"},
}


@every
def test_a_loaded_model_has_the_parameters_of_its_fit(name, tmp_path):
    learner, y, method, _ = LEARNERS[name]
    for options in ({}, OTHERS[name]):
        fitted = type(learner)(**options).fit(X, CLASSES > 0 if name == "svm" else y)
        fitted.save(tmp_path / "m", force=True)
        loaded = type(learner).load(tmp_path / "m", threads=1)
        asked = fitted.get_params() | {"threads": 1}
        for one in ("kernel", "class_weight"):
            if not isinstance(asked.get(one), str | None):
                asked[one] = str(asked[one]) if one == "kernel" else {"true": 2.0}
        assert loaded.get_params() == asked
        again = clone(loaded).fit(X, CLASSES > 0 if name == "svm" else y)
        np.testing.assert_allclose(getattr(again, method)(NEW), getattr(fitted, method)(NEW), rtol=0, atol=1e-9)
        manifest, members = members_of((tmp_path / "m").read_bytes())
        for parameters in ({"gamma": 1}, {"seed": "a"}, {"features": 3}, [], "linear"):
            (tmp_path / "m").write_bytes(archive({**manifest, "parameters": parameters}, members))
            with pytest.raises(ModelError):
                type(learner).load(tmp_path / "m")
        # Files of before show some.
        del manifest["parameters"]
        (tmp_path / "m").write_bytes(archive(manifest, members))
        old = type(learner).load(tmp_path / "m").get_params()
        assert {one: old[one] for one in ("features", "scale")} == {one: asked[one] for one in ("features", "scale")}
        assert old["kernel"] == manifest["kernel"]


def test_a_grid_leaves_the_parameters_that_it_has_chosen(tmp_path):
    found = train_svm(TABLE.assign(y=CLASSES), "y", grid=True, cv=2, output=tmp_path / "m")
    loaded = SVM.load(tmp_path / "m")
    assert (loaded.C, loaded.kernel) == (found.C, found.kernel)
    again = clone(loaded).fit(TABLE, CLASSES)
    np.testing.assert_allclose(again.decision_function(TABLE), loaded.decision_function(TABLE), rtol=0, atol=1e-9)


@every
def test_a_function_takes_the_options_of_its_class_and_its_record_ends_with_how_it_was_made(name):
    learner, *_ = LEARNERS[name]
    train = {"svm": train_svm, "ridge": train_ridge, "kpca": train_kpca}[name]
    fields = list(train(TABLE.assign(y=CLASSES), **({} if name == "kpca" else {"target": "y"})).to_dict())
    assert (fields[:3], fields[-2:]) == (["schema", "command", "n_train"], ["warnings", "provenance"])
    assert fields.index("model") > fields.index("train")
    own, shown = inspect.signature(type(learner)).parameters, inspect.signature(train).parameters
    assert list(own)[1] == "kernel"
    assert [one.default for one in own.values()] == list(type(learner)().get_params().values())
    # What is done with categories of new rows is for who has some, such as those of a table to judge by.
    assert own.keys() - shown.keys() == (set() if "test" in shown else {"unknown"})
    assert all(shown[option].default == own[option].default for option in own.keys() & shown.keys())
    assert ("cluster" in shown) == ("test" in shown) == (name != "kpca")
    target = {} if name == "kpca" else {"target": "a"}
    for word in ("gamma", *(() if "test" in shown else ("test", "cluster"))):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{word}'"):
            train(TABLE.round(), **target, **{word: TABLE})


CANNOT = {
    "features": ["nystrom", "nystroem", "nystroem:0", "fourier:-3", 5],
    "scale": ["minmax"],
    "seed": [-1, 1.5],
    "threads": [0],
    "kernel": [None],
    "bandwidth": ["medain", -1.0, 0.0, math.inf, None],
}
OWN = {
    "lambda": ("ridge", "lambda_", [0.0, math.nan, True, 1e-320, 1e-76, 1e76, 1e300]),
    "criterion": ("ridge", "criterion", ["aic"]),
    "cv": ("ridge", "cv", [1]),
    "components": ("kpca", "components", [0, 1.5, True]),
    "solver": ("kpca", "solver", ["arnoldi"]),
}
REFUSED = [
    *((name, f"usage.{one}", {one: value}) for name in LEARNERS for one in CANNOT for value in CANNOT[one]),
    *((name, f"usage.{one}", {option: value}) for one, (name, option, values) in OWN.items() for value in values),
    *((name, "usage.contradiction", {"kernel": "precomputed", "features": "nystroem:5"}) for name in LEARNERS),
    *((name, "usage.contradiction", {"kernel": "precomputed", "bandwidth": 1.0}) for name in LEARNERS),
    ("ridge", "usage.contradiction", {"cv": 5, "criterion": "gcv"}),
    ("kpca", "usage.contradiction", {"features": "nystroem:5", "solver": "dense"}),
]


@pytest.mark.parametrize(("name", "code", "options"), REFUSED)
def test_options_that_cannot_be_are_refused_at_once(name, code, options):
    raises(UsageError, code, lambda: type(LEARNERS[name][0])(**options))


@every
def test_a_table_is_refused_a_matrix_and_a_part_twice_given(name):
    train = {"svm": train_svm, "ridge": train_ridge, "kpca": train_kpca}[name]
    target = {} if name == "kpca" else {"target": "y"}
    table = TABLE.assign(y=NUMBERS.round())
    raises(UsageError, "usage.precomputed", lambda: train(table, **target, kernel="precomputed"))
    if target:
        raises(UsageError, "usage.contradiction", lambda: train(table, **target, test=table, test_fraction=0.5))


def test_folds_of_a_matrix_are_those_of_its_rows_and_columns():
    rows = np.random.default_rng(3).normal(size=(60, 2))
    matrix = np.exp(-((rows[:, None] - rows[None]) ** 2).sum(axis=2) / 2)
    labels = (rows[:, 0] > 0).astype(int)
    given = cross_val_score(SVM(kernel="precomputed"), matrix, labels, cv=3)
    assert given.tolist() == cross_val_score(SVM(kernel="gaussian(1)", scale="none"), rows, labels, cv=3).tolist()
