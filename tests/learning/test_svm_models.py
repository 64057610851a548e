"""Model files of machines: they decide as the machine did, in any process, and damaged ones are refused."""

import json
import pickle
import subprocess
import sys
import zipfile
from functools import cache

import numpy as np
import pandas as pd
import pytest
from learning.alike import assert_decide_alike, size_of_terms
from learning.svm_cases import bundled, clouds, gaussian, raises
from model_archives import archive, members_of
from tolerances import SAME_MACHINE, assert_close

from kerntest import SVM, train_svm
from kerntest.errors import ModelError

READER = """
import pickle, sys
from kerntest import SVM
found = []
for path, X in pickle.load(sys.stdin.buffer):
    one = SVM.load(path, threads=1)
    proba = one.predict_proba(X) if one.model.sigmoids else None
    found.append((one.decision_function(X), one.predict(X), proba, getattr(one, "classes_", None)))
pickle.dump(found, sys.stdout.buffer)
"""
X, Y = clouds(60, 3, classes=3)
TWO, COLOURS = (Y > 0).astype(int), np.array(["red", "blue", "green"])
MIXED = pd.DataFrame({"a": X[:, 0], "colour": COLOURS[np.arange(60) % 3], "b": X[:, 1] ** 2, "ok": X[:, 2] > 0})
MATRIX = gaussian(X, X, 1.0)
KINDS = {
    "two classes": (X, TWO, {}),
    "several classes": (X, COLOURS[Y], {"C": 3.0}),
    "probabilities": (X, TWO, {"probability": True}),
    "probabilities of several": (X, Y, {"probability": True}),
    "nystroem": (X, Y, {"features": "nystroem:20"}),
    "fourier": (X, TWO, {"features": "fourier:50"}),
    "regress": (X, X[:, 0] ** 2, {"task": "regress"}),
    "one-class": (X, None, {"task": "one-class"}),
    "mean": (X, Y, {"method": "mean"}),
    "perceptron": (X, Y, {"method": "perceptron"}),
    "categories": (MIXED, TWO, {}),
    "groups": (MIXED, TWO, {"kernel": "a: gaussian; colour: delta; b, ok: 0.5*laplacian"}),
    "categories by nystroem": (MIXED, TWO, {"features": "nystroem:15"}),
    "precomputed": (MATRIX, Y, {"kernel": "precomputed"}),
    "nu": (X, TWO, {"nu": 0.3}),
    "linear": (X, TWO, {"kernel": "linear", "scale": "none"}),
}


@cache
def fitted(kind):
    data, y, options = KINDS[kind]
    return SVM(**options).fit(data, y), data


def agree(found, machine, data):
    """Fail unless decisions by the very numbers of a machine are its own, but for rounding of the sums."""
    largest = (
        float(np.square(X).sum(axis=1).max())
        if str(getattr(machine.model.expansion, "kernel", "")) == "linear"
        else 1.0
    )
    scale = largest * size_of_terms(machine)
    assert_close(found, machine.decision_function(data), scale=scale, share=SAME_MACHINE)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """Return what another process makes of every kind of model: one start for all."""
    folder = tmp_path_factory.mktemp("models")
    asked = []
    for place, kind in enumerate(KINDS):
        machine, data = fitted(kind)
        machine.save(folder / f"{place}.model")
        asked.append((str(folder / f"{place}.model"), data))
    found = subprocess.run([sys.executable, "-c", READER], input=pickle.dumps(asked), capture_output=True, check=True)
    return dict(zip(KINDS, pickle.loads(found.stdout), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_another_process_decides_and_predicts_the_same(kind, elsewhere):
    (machine, data), (decision, predicted, proba, classes) = fitted(kind), elsewhere[kind]
    agree(decision, machine, data)
    np.testing.assert_array_equal(predicted, machine.predict(data))
    assert predicted.dtype == machine.predict(data).dtype
    np.testing.assert_array_equal(classes, getattr(machine, "classes_", None))
    if proba is not None:
        # A sigmoid is nowhere steeper than its slope says, and coupling adds up as many as there are classes.
        steep = sum(abs(one.slope) for one in machine.model.sigmoids)
        assert_close(
            proba, machine.predict_proba(data), scale=max(1.0, steep) * size_of_terms(machine), share=SAME_MACHINE
        )


def test_the_command_and_the_class_write_the_same_model(tmp_path):
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y)
    result = train_svm(table, "y", output=tmp_path / "a", C=2.0)
    machine = SVM(C=2.0, kernel=result.kernel).fit(table, "y")
    written = SVM.load(tmp_path / "a")
    assert_decide_alike(machine, written, table)
    np.testing.assert_array_equal(written.classes_, machine.classes_)
    assert written.model.target == machine.model.target
    assert str(written.model.expansion.kernel) == str(machine.model.expansion.kernel)
    assert written.model.encoder == machine.model.encoder
    assert result.model == str(tmp_path / "a")


def read_by_hand(path, rows):
    """The decisions of a gaussian machine of numbers, from the description of the format alone."""
    with zipfile.ZipFile(path) as zipped:
        manifest = json.loads(zipped.read("manifest.json"))

        def array(name):
            fields = manifest["members"][name]
            content = zipped.read(f"{name}.npy")[-fields["nbytes"] :] if fields["nbytes"] else b""
            return np.frombuffer(content, np.dtype(fields["dtype"]).newbyteorder("<")).reshape(fields["shape"])

        centres, coefficients, intercepts = map(array, ("centres_numeric", "coefficients", "intercepts"))
    bandwidth = float(manifest["kernel"].removeprefix("gaussian(").removesuffix(")"))
    columns = manifest["encoder"]["columns"]
    scaled = (rows - [column["centre"] for column in columns]) / [column["spread"] for column in columns]
    squared = ((scaled[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-squared / (2 * bandwidth**2)) @ coefficients + intercepts


def test_a_reader_of_twenty_lines_decides_the_same(tmp_path):
    rows, y = bundled("iris")
    rows = 3 * rows + 10
    machine = SVM(C=5.0).fit(rows, y)
    machine.save(tmp_path / "m")
    found = read_by_hand(tmp_path / "m", rows)
    np.testing.assert_allclose(
        found.squeeze(), machine.decision_function(rows), rtol=0, atol=1e-9 * np.abs(found).max()
    )


def changed(tmp_path, kind, change):
    """Return what loading, and then using, a model says after its manifest was changed."""
    machine, data = fitted(kind)
    machine.save(tmp_path / "m", force=True)
    manifest, members = members_of((tmp_path / "m").read_bytes())
    change(manifest)
    (tmp_path / "m").write_bytes(archive(manifest, members))

    def use():
        loaded = SVM.load(tmp_path / "m")
        loaded.predict(data)
        if loaded.model.sigmoids:
            loaded.predict_proba(data)

    return use


def put(**fields):
    return lambda manifest: manifest.update(fields)


DAMAGED = {
    "another task": ("two classes", put(task="cluster")),
    "another method": ("two classes", put(method="forest")),
    "a regression by means": ("regress", put(method="mean")),
    "an open bandwidth": ("two classes", put(kernel="gaussian")),
    "no kernel": ("two classes", put(kernel=None)),
    "an unknown column": ("groups", put(kernel="z: gaussian(1)")),
    "one class": ("two classes", put(classes={"names": ["0"], "kind": "number"})),
    "no classes": ("two classes", put(classes=None, pairs=[])),
    "no pairs": ("two classes", put(pairs=[])),
    "a pair too many": ("two classes", put(pairs=[[0, 1], [0, 1]])),
    "a pair of no class": ("two classes", put(pairs=[[0, 2]])),
    "equal pairs": ("several classes", put(pairs=[[0, 1], [0, 1], [1, 2]])),
    "a class more than means": ("mean", put(classes={"names": ["0", "1", "2", "3"], "kind": "number"})),
    "a sigmoid too few": ("probabilities of several", put(sigmoids=[{"slope": -1.0, "offset": 0.0}])),
    "a sigmoid too many": ("two classes", put(sigmoids=[{"slope": -1.0, "offset": 0.0}] * 2)),
    "features of no kind": ("fourier", put(features="wavelets")),
    "features of the other kind": ("fourier", put(features="nystroem")),
    "no features": ("nystroem", put(features=None)),
    "features that are not there": ("two classes", put(features="nystroem")),
    "no encoder": ("two classes", put(encoder=None)),
    "several scores for one number": ("several classes", put(task="regress", classes=None, pairs=[])),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_model_is_refused_before_it_is_used(name, tmp_path):
    kind, change = DAMAGED[name]
    use = changed(tmp_path, kind, change)
    with pytest.raises(ModelError) as caught:
        use()
    assert caught.value.message.isprintable()
    assert caught.value.exit_code == 5


def test_another_kind_of_model_is_refused(tmp_path):
    error = raises(ModelError, "model.kind", changed(tmp_path, "two classes", put(kind="ridge")))
    assert "'ridge'" in error.message
