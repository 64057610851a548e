"""scikit-learn's protocol: its own checks, and its pipelines, searches, calibrations and frames on our learners."""

import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
import pytest
from command_line import modules_of
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_checks

from kerntest import SVM, KernelCCA, KernelICA, KernelPCA, KernelRidge, compute_on
from kerntest.errors import DataError, UsageError

LEARNERS = {
    "classifier": SVM(),
    "regressor": SVM(task="regress"),
    "outlier_detector": SVM(task="one-class"),
    "ridge": KernelRidge(),
    "kpca": KernelPCA(),
    "unmix": KernelICA(),
    "cca": KernelCCA(components=1),
}
# Checks of scikit-learn that do not pass, of which learners, and why; kerntest-learning(7) tells them.
FAILING = {
    "check_do_not_raise_errors_in_init_or_set_params": (
        LEARNERS,
        "an option that cannot be is refused where it is given, not where it is used",
    ),
    "check_dtype_object": (
        LEARNERS,
        "a cell that is no number is a ValueError, as every error of data, and no TypeError",
    ),
    "check_supervised_y_2d": (("classifier", "regressor"), "a target of one column is taken without a warning"),
    "check_sample_weight_equivalence_on_dense_data": (
        ("classifier", "regressor", "outlier_detector", "ridge"),
        "scales, medians of distances and folds are of the rows, whatever their weights",
    ),
}


def checks():
    """Yield every check of every learner, those that fail marked with their reason."""
    with warnings.catch_warnings():
        # That the learners do not inherit from its classes.
        warnings.simplefilter("ignore")
        found = [
            (name, estimator_checks.estimator_checks_generator(one, legacy=True)) for name, one in LEARNERS.items()
        ]
        for name, check in [(name, check) for name, every in found for _, check in every]:
            called = getattr(check, "func", check).__name__
            learners, reason = FAILING.get(called, ((), ""))
            marks = [pytest.mark.xfail(reason=reason)] if name in learners else []
            yield pytest.param(name, check, id=f"{name}-{called}", marks=marks)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "check"), list(checks()))
def test_the_checks_of_scikit_learn_pass(name, check, tmp_path, monkeypatch):
    # Where some of them leave arrays behind.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    check(clone(LEARNERS[name]))


rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(60, 2)), rng.normal(size=(20, 2))
NUMBERS = np.sin(X[:, 0]) + X[:, 1]
PLACES = np.digitize(NUMBERS, (-0.5, 0.5))
NAMES = np.array(["high", "low", "middle"])[[1, 2, 0]][PLACES]
FRAME, NEW_FRAME = (
    pd.DataFrame(rows, columns=["a", "b"], index=[f"row {place}" for place in range(len(rows))]) for rows in (X, NEW)
)
FIXED = {"kernel": "gaussian(1.3)"}


def test_learners_are_told_apart():
    kinds = {name: (is_classifier(one), is_regressor(one), is_outlier_detector(one)) for name, one in LEARNERS.items()}
    assert kinds == {
        "classifier": (True, False, False),
        "regressor": (False, True, False),
        "outlier_detector": (False, False, True),
        "ridge": (False, True, False),
        "kpca": (False, False, False),
        "unmix": (False, False, False),
        "cca": (False, False, False),
    }


def test_only_who_asks_for_scikit_learn_loads_it():
    loaded = modules_of(
        "from kerntest import SVM, KernelPCA; SVM().fit([[0], [1], [2], [4]], list('abab')); KernelPCA()"
    )
    assert not {name for name in loaded if name.startswith("sklearn")}


def test_without_scikit_learn_nothing_fitted_is_our_error_alone(monkeypatch):
    monkeypatch.delitem(sys.modules, "sklearn.exceptions")
    with pytest.raises(UsageError, match="this machine is not fitted") as caught:
        SVM().predict(X)
    assert not isinstance(caught.value, AttributeError)


def test_what_fit_has_seen_is_kept_and_forgotten():
    machine = SVM()
    for name in ("n_features_in_", "feature_names_in_", "classes_", "offset_"):
        assert not hasattr(machine, name)
    named = FRAME.assign(c=1.0, place=PLACES)
    machine.fit(named, "place")
    # The target is none of the columns; one with a single value is.
    assert (machine.n_features_in_, machine.feature_names_in_.tolist()) == (3, ["a", "b", "c"])
    assert machine.classes_.tolist() == [0, 1, 2]
    machine.fit(X, PLACES)
    assert (machine.n_features_in_, hasattr(machine, "feature_names_in_")) == (2, False)
    machine.fit(named, "place").set_params(C=2.0)
    assert not hasattr(machine, "n_features_in_")
    assert not hasattr(machine, "feature_names_in_")
    with pytest.raises(AttributeError):
        _ = machine.feature_names_in_
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    assert SVM(kernel="precomputed").fit(K, PLACES).n_features_in_ == 60


def test_a_loaded_model_knows_the_columns_that_it_needs(tmp_path):
    KernelPCA(2, **FIXED).fit(FRAME.assign(c=1.0)).save(tmp_path / "m")
    loaded = KernelPCA.load(tmp_path / "m")
    assert (loaded.n_features_in_, loaded.feature_names_in_.tolist()) == (2, ["a", "b"])
    KernelPCA(2, **FIXED).fit(np.column_stack([np.ones(60), X])).save(tmp_path / "n")
    loaded = KernelPCA.load(tmp_path / "n")
    np.testing.assert_allclose(
        loaded.transform(np.column_stack([np.zeros(20), NEW])),
        KernelPCA(2, **FIXED).fit(X).transform(NEW),
        rtol=0,
        atol=1e-9,
    )


def test_columns_without_names_on_one_side_go_by_their_places(tmp_path):
    by_name = KernelRidge(0.4, **FIXED).fit(FRAME.assign(c=1.0), NUMBERS)
    expected = by_name.predict(NEW_FRAME[["b", "a"]].assign(c=1.0))
    with pytest.warns(UserWarning, match="those of the fit had names"):
        np.testing.assert_allclose(by_name.predict(np.column_stack([NEW, np.ones(20)])), expected, rtol=0, atol=1e-12)
    by_place = KernelRidge(0.4, **FIXED).fit(np.column_stack([X, np.ones(60)]), NUMBERS)
    with pytest.warns(UserWarning, match="those of the fit had none"):
        np.testing.assert_allclose(by_place.predict(NEW_FRAME.assign(c=1.0)), expected, rtol=0, atol=1e-12)
    # Without a warning where the names are those of columns of arrays.
    turned = pd.DataFrame({"x2": NEW[:, 1], "x1": NEW[:, 0]})
    np.testing.assert_allclose(by_place.predict(turned), expected, rtol=0, atol=1e-12)
    for machine, rows in ((by_place, NEW_FRAME), (by_place, tmp_path / "new.csv")):
        NEW_FRAME.assign(c=1.0).to_csv(tmp_path / "new.csv")
        with pytest.raises(DataError, match=r"lacks|no column"):
            machine.predict(rows)
    for machine in (by_name, by_place):
        with pytest.raises(DataError, match="X has 2 features, but KernelRidge is expecting 3 features as input"):
            machine.predict(NEW)


@pytest.mark.parametrize("method", ["svm", "mean"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_largest_decision_is_of_the_predicted_class(method, classes):
    angle = 2 * np.pi * (np.arange(100) % classes) / classes
    rows = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.2 * np.random.default_rng(1).normal(size=(100, 2))
    machine = SVM(method=method, kernel="linear").fit(rows, np.array(list("cabde"))[np.arange(100) % classes])
    # In the middle there are ties of votes.
    grid = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 41)] * 2), axis=-1).reshape(-1, 2)
    decision = machine.decision_function(grid)
    assert decision.shape == (len(grid), classes)[: 1 + (classes > 2)]
    places = (decision > 0).astype(int) if classes == 2 else decision.argmax(axis=1)
    np.testing.assert_array_equal(machine.classes_[places], machine.predict(grid))


def test_where_is_computed_is_asked_when_it_is():
    machine = SVM()
    with compute_on(threads=3):
        assert (machine.engine.threads, SVM(threads=2).engine.threads) == (3, 2)
    assert machine.engine is SVM().engine


def test_methods_are_there_where_they_mean_something():
    given = {
        "decision_function": (SVM(), SVM(task="one-class")),
        "predict_proba": (SVM(probability=True),),
        "score": (SVM(), SVM(task="regress")),
        "score_samples": (SVM(task="one-class"),),
    }
    for name, there in given.items():
        for learner in (SVM(), SVM(probability=True), SVM(task="regress"), SVM(task="one-class")):
            expected = repr(learner) in map(repr, there) or (
                name in {"decision_function", "score"} and learner.probability
            )
            assert hasattr(learner, name) == expected
            assert hasattr(learner.fit(X, NUMBERS > 0 if learner.task == "classify" else NUMBERS), name) == expected
            assert hasattr(learner, "classes_") == (learner.task == "classify")


def test_one_class_is_in_front_of_its_offset():
    machine = SVM(task="one-class", nu=0.3)
    inside = machine.fit_predict(X)
    np.testing.assert_array_equal(inside, machine.predict(X))
    assert 0.2 < (inside == -1).mean() <= 0.3
    decision, level = machine.decision_function(X), machine.score_samples(X)
    np.testing.assert_array_equal(np.where(decision >= 0, 1, -1), inside)
    np.testing.assert_allclose(level - machine.offset_, decision, rtol=0, atol=1e-12)
    # Kernel values and coefficients are positive.
    assert 0 < machine.offset_ < len(X)
    assert level.min() > 0
    there = {name: hasattr(machine, name) for name in ("score", "predict_proba", "classes_")}
    assert there == dict.fromkeys(there, False)
    for learner in (SVM(), SVM(task="regress")):
        assert not any(hasattr(learner, name) for name in ("score_samples", "fit_predict", "offset_"))


COLUMNS = ColumnTransformer(
    [("numbers", StandardScaler(), ["a"]), ("towns", OneHotEncoder(sparse_output=False), ["town"])]
)


def test_learners_stand_in_pipelines_behind_other_columns():
    table = FRAME.assign(town=np.array(["Bonn", "Ulm"])[PLACES % 2])
    for learner, y in ((SVM(C=10.0), NAMES), (KernelRidge(0.1), NUMBERS), (SVM(task="regress"), NUMBERS)):
        search = GridSearchCV(
            make_pipeline(COLUMNS, learner), {f"{type(learner).__name__.lower()}__scale": ["none"]}, cv=3
        )
        assert search.fit(table, y).score(table, y) > 0.5
        np.testing.assert_array_equal(search.predict(table), search.best_estimator_.predict(table))
    # And before others, as columns of a table.
    inside = ColumnTransformer([("kernel", KernelPCA(2, **FIXED), ["a", "b"])], remainder="passthrough")
    found = inside.set_output(transform="pandas").fit_transform(table)
    assert list(found.columns) == ["kernel__pc1", "kernel__pc2", "remainder__town"]
    assert list(found.index) == list(FRAME.index)


@pytest.mark.parametrize("y", [NAMES, NAMES == "low"])
def test_machines_are_calibrated_and_scored_by_class(y):
    calibrated = CalibratedClassifierCV(SVM(), cv=3).fit(X, y)
    found = calibrated.predict_proba(NEW)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert (calibrated.predict(X) == y).mean() > 0.8
    scoring = "roc_auc" if y.dtype == bool else "roc_auc_ovr"
    assert cross_val_score(SVM(probability=True), X, y, cv=3, scoring=scoring).min() > 0.8
    held_out = cross_val_predict(SVM(), X, y, cv=3, method="decision_function")
    assert held_out.shape == ((60,) if y.dtype == bool else (60, 3))


def test_scores_are_those_of_the_cross_validation():
    places = np.arange(60) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cross_val_score(KernelRidge(0.4, **FIXED), FRAME, NUMBERS, cv=[(places != 0, places == 0)])
    fitted = KernelRidge(0.4, **FIXED).fit(FRAME[places != 0], NUMBERS[places != 0])
    left = NUMBERS[places == 0] - fitted.predict(FRAME[places == 0])
    expected = 1 - (left**2).sum() / ((NUMBERS[places == 0] - NUMBERS[places == 0].mean()) ** 2).sum()
    np.testing.assert_allclose(found, [expected], rtol=1e-12)


def test_components_come_as_the_frames_that_are_asked_for():
    pca = KernelPCA(2, **FIXED).fit(FRAME)
    plain = pca.transform(NEW_FRAME)
    assert isinstance(plain, np.ndarray)
    expected = pd.DataFrame(plain, columns=["pc1", "pc2"], index=NEW_FRAME.index)
    assert pca.set_output(transform=None) is pca
    assert isinstance(pca.transform(NEW_FRAME), np.ndarray)
    pd.testing.assert_frame_equal(
        pca.set_output(transform="pandas").transform(NEW_FRAME), expected, check_column_type=False
    )
    assert list(pca.transform([[0.0, 1.0]] * 3).index) == [0, 1, 2]
    # What was asked for is kept by copies and new parameters.
    for one in (clone(pca), pca.set_params(seed=1)):
        assert isinstance(one.fit_transform(FRAME), pd.DataFrame)
    np.testing.assert_allclose(
        pca.fit(FRAME).inverse_transform(expected), pca.inverse_transform(plain), rtol=0, atol=1e-12
    )
    assert isinstance(pca.set_output(transform="default").transform(FRAME), np.ndarray)
    with config_context(transform_output="pandas"):
        assert isinstance(pca.transform(FRAME), np.ndarray)
        assert isinstance(KernelPCA(2, **FIXED).fit_transform(FRAME), pd.DataFrame)
    with pytest.raises(UsageError, match="transform must be"):
        pca.set_output(transform="panda")
    for checked in (
        estimator_checks.check_set_output_transform,
        estimator_checks.check_set_output_transform_pandas,
        estimator_checks.check_global_output_transform_pandas,
        estimator_checks.check_transformer_get_feature_names_out,
        estimator_checks.check_get_feature_names_out_error,
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            checked("KernelPCA", KernelPCA())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X[:, 0], r"X has shape \(60,\), not \(rows, columns\). Reshape your data"),
        (X[None], r"X has shape \(1, 60, 2\)"),
        (X + 1j, "Complex data not supported"),
        (X[:, :0], r"0 feature\(s\)"),
        (X[:1], "X has 1 sample"),
        (np.where(np.arange(60)[:, None] == 7, np.nan, X), r"missing values \(NaN\).*row 8"),
        (np.array([["a", 1.0]] * 60, dtype=object), "rows are equally many numbers each"),
    ],
)
def test_arrays_that_are_no_rows_are_refused(rows, message):
    with pytest.raises(DataError, match=message):
        KernelPCA().fit(rows)


def test_numbers_are_taken_in_whatever_array_they_come():
    class Numbers:
        def __array__(self, dtype=None, copy=None):
            return np.array(X, dtype=dtype)

    expected = KernelPCA(2, **FIXED).fit(X).transform(X)
    series = SVM(task="regress").fit(FRAME["a"], NUMBERS).predict(NEW_FRAME["a"])
    np.testing.assert_allclose(
        series, SVM(task="regress").fit(X[:, :1], NUMBERS).predict(NEW[:, :1]), rtol=0, atol=1e-9
    )
    for rows in (Numbers(), X.astype(object), X.tolist(), np.asfortranarray(X)):
        np.testing.assert_allclose(KernelPCA(2, **FIXED).fit(rows).transform(rows), expected, rtol=0, atol=1e-9)


def test_a_target_of_one_column_is_a_target():
    for y in (NUMBERS[:, None], pd.DataFrame({"y": NUMBERS})):
        found = SVM(task="regress").fit(X, y).predict(NEW)
        np.testing.assert_allclose(found, SVM(task="regress").fit(X, NUMBERS).predict(NEW), rtol=0, atol=1e-9)
    assert KernelRidge(0.4).fit(X, NUMBERS[:, None]).predict(NEW).shape == (20,)


def test_a_fold_that_lacks_a_category_has_a_score_with_the_option_that_its_warning_names():
    """As `kerntest predict` refuses and takes it; the warning of scikit-learn shows the hint."""
    frame = pd.DataFrame({"a": np.sin(np.arange(60)), "c": ["x"] * 30 + ["y"] * 29 + ["z"]})
    y = frame.a > 0
    with pytest.warns(UserWarning, match="unknown='ignore'"):
        assert np.isnan(cross_val_score(SVM(), frame, y)).tolist() == [False] * 4 + [True]
    with pytest.warns(UserWarning, match="taken as different from every known value"):
        assert (cross_val_score(SVM(unknown="ignore"), frame, y) > 0.5).all()


@pytest.mark.parametrize("estimator", [SVM, KernelRidge])
def test_rows_without_a_target_are_left_out_of_both(estimator):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.r_[np.nan, np.arange(19.0)]
    with pytest.raises(DataError, match="y has 1 missing value") as caught:
        estimator().fit(X, y)
    assert caught.value.hint == "leave those rows out of both: there = pandas.notna(y), then X[there] and y[there]"
