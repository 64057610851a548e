"""Learners take features where kernel matrices are too much work, say so, and are told to insist."""

import numpy as np
import pandas as pd
import pytest
from tolerances import SAME_MACHINE, assert_close

from kerntest import SVM, DataWarning, KernelPCA, KernelRidge, compute_on, train_kpca, train_ridge, train_svm
from kerntest.errors import UsageError
from kerntest.learning.components.kpca import KpcaLearner
from kerntest.learning.machines.ridge import RidgeLearner
from kerntest.learning.machines.svm import SvmLearner
from kerntest.matrices.matrix import FactorMatrix, KernelMatrix

pytestmark = pytest.mark.filterwarnings("ignore::kerntest.KerntestWarning")
WORK = "kerntest.learning.learner.MOST_WORK"
TOLD = "features stand for the kernel matrices of"


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    y = X[:, 0] + X[:, 1] ** 2
    data = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    return data.assign(two=np.where(y > 1, "u", "v"), three=np.array(["p", "q", "r"])[np.arange(240) % 3])


def of_classes(frame, **options):
    return train_svm(frame[["a", "b", "c", "two"]], "two", **options)


def of_three(frame, **options):
    return train_svm(frame[["a", "b", "c", "three"]], "three", **options)


def of_numbers(frame, **options):
    return train_svm(frame[["a", "b", "c", "y"]], "y", task="regress", **options)


def of_one_class(frame, **options):
    return train_svm(frame[["a", "b", "c"]], task="one-class", **options)


def of_ridge(frame, **options):
    return train_ridge(frame[["a", "b", "c", "y"]], "y", **options)


def of_components(frame, **options):
    return train_kpca(frame[["a", "b", "c"]], **options)


# Nanoseconds by hand: of 240 rows, three pairs of classes of 80 rows each, ten bandwidths.
CASES = [
    (of_classes, {}, 80 * 240**2),
    (of_classes, {"cv": 3}, 4 * 80 * 240**2),
    (of_classes, {"grid": True}, 10 * 80 * 240**2),
    (of_classes, {"test_fraction": 0.5}, 80 * 120**2),
    (of_three, {}, 3 * 80 * 160**2),
    (of_classes, {"nu": 0.2}, 240 * 240**2),
    (of_numbers, {}, 240 * 240**2),
    (of_one_class, {}, 80 * 240**2),
    (of_one_class, {"nu": 0.2}, 80 * 240**2),
    (of_ridge, {}, 10 * 0.2 * 240**3),
    (of_ridge, {"bandwidth": 2.0}, 0.2 * 240**3),
    (of_components, {}, 100 * 240**2),
]


@pytest.mark.parametrize(("train", "options", "work"), CASES)
def test_beyond_the_bound_features_are_taken_and_told(frame, monkeypatch, train, options, work):
    usual = train(frame, **options)
    assert usual.features is None
    assert not any(TOLD in warning for warning in usual.warnings)
    monkeypatch.setattr(WORK, 1.001 * work)
    assert train(frame, **options).features is None
    monkeypatch.setattr(WORK, 0.999 * work)
    for place in ({"threads": 1}, {"memory": "2GB"}):
        with compute_on(**place):
            found = train(frame, **options)
        # 240 rows could have more landmarks than there are rows: these are the most.
        assert found.features == ("nystroem:2000" if train is of_ridge else "nystroem:1000")
        assert any(warning.startswith(TOLD) and warning.endswith("insists on these") for warning in found.warnings)
        assert found.feature_error is not None
    insisting = train(frame, **options, features="none")
    assert (insisting.features, insisting.kernel) == (None, usual.kernel)
    assert not any(TOLD in warning for warning in insisting.warnings)
    asked = train(frame, **options, features="nystroem:30")
    assert asked.features == "nystroem:30"
    assert not any(TOLD in warning for warning in asked.warnings)


@pytest.mark.parametrize("options", [{"task": "regress"}, {"task": "one-class"}, {"nu": 0.4}], ids=str)
def test_machines_of_features_make_few_entries_of_the_matrix(monkeypatch, options):
    """By products with features outputs take n M, by entries n^2 M."""
    rng, made = np.random.default_rng(1), list[int]()

    def counting(block):
        def counted(self, *args, **more):
            found = block(self, *args, **more)
            made.append(found.size)
            return found

        return counted

    for kind in (FactorMatrix, KernelMatrix):
        monkeypatch.setattr(kind, "block", counting(kind.block))
    X = rng.normal(size=(1500, 2))
    z = np.sin(X[:, 0]) + 0.3 * rng.normal(size=len(X))
    y = None if "one-class" in options.values() else z if "task" in options else np.where(z > 0, "a", "b")
    SVM(features="nystroem:40", **options).fit(X, y)
    assert 0 < sum(made) < len(X) ** 2


@pytest.mark.parametrize(
    ("learner", "rows", "landmarks"),
    [
        (SvmLearner, 40_000, 500),
        (SvmLearner, 36_000, 600),
        (SvmLearner, 10**6, 200),
        (RidgeLearner, 4_933, 2000),
        (RidgeLearner, 190_000, 1000),
        (RidgeLearner, 300_000, 700),
        (RidgeLearner, 10**7, 200),
        (KpcaLearner, 49_000, 1000),
        (KpcaLearner, 300_000, 500),
    ],
)
def test_landmarks_become_fewer_with_the_rows(frame, monkeypatch, learner, rows, landmarks):
    monkeypatch.setattr(WORK, 1.0)
    budget, power, most = learner.LANDMARKS
    # As if each of the 240 rows were many.
    monkeypatch.setattr(learner, "LANDMARKS", (budget * 240 / rows, power, most))
    train = {SvmLearner: of_classes, RidgeLearner: of_ridge, KpcaLearner: of_components}[learner]
    assert train(frame).features == f"nystroem:{landmarks}"


@pytest.mark.parametrize(
    ("train", "options"),
    [
        (of_classes, {"kernel": "linear"}),
        (of_classes, {"method": "mean"}),
        (of_classes, {"kernel": "polynomial(3, 1, -2)"}),
        (of_components, {"kernel": "linear"}),
        (of_components, {"solver": "dense"}),
    ],
)
def test_what_is_little_work_or_has_no_features_stays(frame, monkeypatch, train, options):
    monkeypatch.setattr(WORK, 1.0)
    assert train(frame, **options).features is None


@pytest.mark.parametrize("made", [SVM, KernelRidge, KernelPCA])
def test_estimators_keep_their_parameters_and_take_features_all_the_same(frame, monkeypatch, tmp_path, made):
    X, y = frame[["a", "b", "c"]].to_numpy(), frame["two" if made is SVM else "y"].to_numpy()
    monkeypatch.setattr(WORK, 1.0)
    estimator = made()
    with pytest.warns(DataWarning, match="features='none' insists on these"):
        estimator.fit(X, y)
    assert estimator.get_params()["features"] is None
    assert estimator.model.features.kind == "nystroem"
    estimator.save(tmp_path / "m.kt")
    loaded = made.load(tmp_path / "m.kt")
    applied = "transform" if made is KernelPCA else "predict"
    before, after = (getattr(one, applied)(X[:9]) for one in (estimator, loaded))
    if before.dtype.kind == "f":
        assert_close(after, before, share=SAME_MACHINE, condition=100)
    else:
        assert np.array_equal(after, before)
    insisting = made(features="none").fit(X, y)
    assert insisting.get_params()["features"] == "none"
    assert insisting.model.features is None
    # Fitted again, it is asked again.
    monkeypatch.setattr(WORK, 1e18)
    assert estimator.fit(X, y).model.features is None


def test_none_goes_with_what_features_do_not_go_with(frame):
    assert of_classes(frame, features="none", method="mean").features is None
    assert of_components(frame, features="none", solver="dense").features is None
    with pytest.raises(UsageError, match="are no features"):
        of_ridge(frame, features="nothing")


def test_the_command_insists(kerntest, frame, tmp_path, monkeypatch):
    frame.drop(columns=["two", "three"]).to_csv(tmp_path / "f.csv", index=False)
    monkeypatch.setattr(WORK, 1.0)
    outcome = kerntest("ridge", str(tmp_path / "f.csv"), "--target", "y", "--json")
    assert outcome.code == 0
    assert "--features none insists on these" in " ".join(outcome.err.split())
    outcome = kerntest("ridge", str(tmp_path / "f.csv"), "--target", "y", "--features", "none")
    assert outcome.code == 0
    assert "insists on these" not in " ".join((outcome.out + outcome.err).split())
