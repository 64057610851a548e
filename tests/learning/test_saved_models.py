"""Model files of every learner: they do what was fitted, in any process, and damaged ones are refused."""

import json
import pickle
import subprocess
import sys
import zipfile
from functools import cache

import numpy as np
import pandas as pd
import pytest
from learning.alike import size_of_terms
from learning.svm_cases import bundled, clouds, gaussian, raises
from model_archives import array_of, members_of, rewritten
from tolerances import SAME_MACHINE, assert_close

from kerntest import SVM, KernelPCA, KernelRidge
from kerntest.errors import DataError, ModelError

READER = """
import kerntest, pickle, sys
found = []
for kind, path, methods, data in pickle.load(sys.stdin.buffer):
    model = getattr(kerntest, kind).load(path, threads=1)
    found.append([getattr(model, method)(data) for method in methods])
pickle.dump(found, sys.stdout.buffer)
"""
X, Y = clouds(60, 3, classes=3)
TWO, COLOURS = (Y > 0).astype(int), np.array(["red", "blue", "green"])
MIXED = pd.DataFrame({"a": X[:, 0], "colour": COLOURS[np.arange(60) % 3], "b": X[:, 1] ** 2, "ok": X[:, 2] > 0})
MATRIX = gaussian(X, X, 1.0)
NUMBERS = np.sin(X[:, 0]) + 0.1 * X[:, 1]
PAIR = np.column_stack([NUMBERS, NUMBERS**2])
GROUPS = "a: gaussian; colour: delta; b, ok: 0.5*laplacian"
KINDS = {
    "two classes": (SVM(), X, TWO),
    "several classes": (SVM(C=3.0), X, COLOURS[Y]),
    # At so small a cost all rows support it.
    "many classes": (SVM(C=1e-3), X, np.arange(60) % 6),
    "probabilities": (SVM(probability=True), X, TWO),
    "probabilities of several": (SVM(probability=True), X, Y),
    "features": (SVM(features="nystroem:20"), X, Y),
    "fourier": (SVM(features="fourier:50"), X, TWO),
    "machine for numbers": (SVM(task="regress"), X, X[:, 0] ** 2),
    "one-class": (SVM(task="one-class"), X, None),
    "mean": (SVM(method="mean"), X, Y),
    "perceptron": (SVM(method="perceptron"), X, Y),
    "groups": (SVM(kernel=GROUPS), MIXED, TWO),
    "categories by nystroem": (SVM(features="nystroem:15"), MIXED, TWO),
    "precomputed": (SVM(kernel="precomputed"), MATRIX, Y),
    "regression": (KernelRidge(), X, NUMBERS),
    "two targets": (KernelRidge(0.1), X, PAIR),
    "regression of features": (KernelRidge(features="nystroem:20"), X, NUMBERS),
    "regression of waves": (KernelRidge(features="fourier:40", bandwidth=2.0), X, NUMBERS),
    "no intervals": (KernelRidge(intervals=False), X, NUMBERS),
    "regression of groups": (KernelRidge(kernel=GROUPS), MIXED, NUMBERS),
    "regression of a matrix": (KernelRidge(kernel="precomputed"), MATRIX, NUMBERS),
    "linear": (KernelRidge(kernel="linear", scale="none"), X, NUMBERS),
    "components": (KernelPCA(3), MIXED, None),
    "axes": (KernelPCA(3, "linear"), X, None),
    "components of features": (KernelPCA(3, features="nystroem:20"), X, None),
    "components of a matrix": (KernelPCA(3, "precomputed"), MATRIX, None),
    "constant column": (KernelPCA(2, kernel="gaussian(1)"), MIXED[["a"]].assign(same=2.5, b=MIXED["b"]), None),
    "two columns": (KernelRidge(0.1), pd.DataFrame({"a": [1, 5, 1, 5], "b": list("xyyx")}), NUMBERS[:4]),
}


@cache
def fitted(kind):
    learner, data, y = KINDS[kind]
    return learner.fit(data, y), data


def told(learner):
    """Return what is asked of a model, by how much rounding may change what it says."""
    model, condition = learner.model, {"condition": getattr(learner.fit_, "condition_number", 1e4)}
    if isinstance(learner, KernelRidge):
        return {"predict": condition, **({"predict_interval": condition} if model.spread is not None else {})}
    if isinstance(learner, KernelPCA):
        return {"transform": condition, **({} if model.encoder is None else {"denoise": {"condition": 1e5}})}
    # A sigmoid is nowhere steeper than its slope says, and coupling adds up as many as there are classes.
    scale, steep = size_of_terms(learner), max(1.0, sum(abs(one.slope) for one in model.sigmoids))
    asked = {"pair_scores": {"scale": scale}, "predict": {"scale": scale}}
    return asked | ({"predict_proba": {"scale": scale * steep}} if model.sigmoids else {})


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """Return what another process makes of every kind of model: one start for all."""
    folder, asked = tmp_path_factory.mktemp("models"), []
    for place, kind in enumerate(KINDS):
        learner, data = fitted(kind)
        learner.save(folder / str(place))
        asked.append((type(learner).__name__, str(folder / str(place)), list(told(learner)), data))
    found = subprocess.run([sys.executable, "-c", READER], input=pickle.dumps(asked), capture_output=True, check=True)
    return dict(zip(KINDS, pickle.loads(found.stdout), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_does_in_another_process_what_it_did_and_is_written_as_it_was_read(kind, elsewhere, tmp_path):
    learner, data = fitted(kind)
    for (method, permitted), found in zip(told(learner).items(), elsewhere[kind], strict=True):
        here, there = (
            pd.DataFrame(np.column_stack(one) if isinstance(one, tuple) else one)
            for one in (getattr(learner, method)(data), found)
        )
        assert (here.dtypes == there.dtypes).all()
        numbers = here.select_dtypes(float).columns
        assert_close(there[numbers], here[numbers], share=SAME_MACHINE, **permitted)
        pd.testing.assert_frame_equal(there.drop(columns=numbers), here.drop(columns=numbers))
    learner.save(tmp_path / "a")
    loaded = type(learner).load(tmp_path / "a")
    loaded.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    np.testing.assert_array_equal(getattr(loaded, "classes_", 0), getattr(learner, "classes_", 0))
    raises(DataError, "data.exists", lambda: learner.save(tmp_path / "a"))


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
    return gaussian(scaled, centres, bandwidth) @ coefficients + intercepts


def test_a_reader_of_twenty_lines_decides_the_same(tmp_path):
    rows, y = bundled("iris")
    rows = 3 * rows + 10
    machine = SVM(C=5.0).fit(rows, y)
    machine.save(tmp_path / "m")
    found = read_by_hand(tmp_path / "m", rows)
    np.testing.assert_allclose(found, machine.pair_scores(rows), rtol=0, atol=1e-9 * np.abs(found).max())


def numbered(*names):
    return {"names": list(names), "kind": "number"}


SIGMOID = {"slope": -1.0, "offset": 0.0}
DAMAGED = [
    ("two classes", {"task": "cluster"}),
    ("two classes", {"method": "forest"}),
    ("machine for numbers", {"method": "mean"}),
    ("two classes", {"kernel": "gaussian"}),
    ("two classes", {"kernel": None}),
    ("groups", {"kernel": "z: gaussian(1)"}),
    ("two classes", {"classes": numbered("0")}),
    ("two classes", {"classes": None, "pairs": []}),
    *(("two classes", {"pairs": pairs}) for pairs in ([], [[0, 1], [0, 1]], [[0, 2]])),
    *(("several classes", {"pairs": pairs}) for pairs in ([[0, 1], [0, 1], [1, 2]], [[0, 2], [0, 1], [1, 2]])),
    ("mean", {"classes": numbered("0", "1", "2", "3")}),
    ("probabilities of several", {"sigmoids": [SIGMOID]}),
    ("two classes", {"sigmoids": [SIGMOID] * 2}),
    *(("fourier", {"features": kind}) for kind in ("wavelets", "nystroem")),
    ("features", {"features": None}),
    ("two classes", {"features": "nystroem"}),
    ("two classes", {"encoder": None}),
    ("several classes", {"task": "regress", "classes": None, "pairs": []}),
    *(("regression", {"targets": targets}) for targets in ([], ["a", "b"])),
    ("two targets", {"targets": ["a", "a"]}),
    ("regression", {"lambda": 0.0}),
    ("regression", {"n_train": 10**400}),
    ("regression", {"spread_floor": "x"}),
    ("regression of features", {"features": "fourier"}),
]


# Of several parts that do not fit one another the message says which: they never index into nothing.
CONSTANT = {"name": "same", "place": 1, "value": 1.0}
NUMBER = {"name": "a", "kind": "number", "centre": 3.0, "spread": 2.0}
TEXT = {"name": "b", "kind": "text", "levels": ["x", "y"]}
STANDARDIZED = {"columns": [NUMBER, TEXT], "scale": "standardize"}
ENCODERS = [
    ({"columns": [NUMBER]}, "encoder.scale is missing"),
    ({"scale": "log", "columns": [NUMBER]}, "encoder.scale must be 'standardize' or 'together' or 'none', not 'log'"),
    ({"scale": "none", "columns": [NUMBER]}, "encoder.scale must be 'standardize' where"),
    ({**STANDARDIZED, "columns": []}, "encoder.columns must be one column or more"),
    ({**STANDARDIZED, "columns": [TEXT, TEXT]}, "each with a name of its own"),
    ({**STANDARDIZED, "units": 1}, "encoder has unknown fields: units"),
    *(
        ({**STANDARDIZED, "columns": [{**NUMBER, **wrong}]}, message)
        for wrong, message in [
            ({"written": "date, year first"}, "a way to write a number"),
            ({"kind": "complex"}, "kind must be 'number' or 'boolean' or 'text' or 'date', not 'complex'"),
            ({"centre": True}, "centre must be a finite number, not true"),
            ({"centre": 10**400}, "centre must be a finite number, not 1000000"),
            ({"spread": 0}, "spread must be a positive number, not 0"),
        ]
    ),
    *(
        ({"scale": "none", "columns": [{**TEXT, "levels": levels}]}, message)
        for levels, message in [
            ([], "levels must be texts in ascending order, all different"),
            (["x", 1], "levels[1] must be a text, not 1"),
        ]
    ),
]
APART = [
    *(("two columns", {"encoder": plain}, message) for plain, message in ENCODERS),
    ("constant column", {"eigenvalues": lambda found: found[:1]}, "do not fit together"),
    ("constant column", {"eigenvalues": lambda found: found[::-1]}, "positive and descending"),
    ("constant column", {"eigenvalues": lambda found: found - found[0]}, "positive and descending"),
    ("constant column", {"mean": lambda found: found[:3]}, "mean and its centres"),
    ("constant column", {"trace": 0.0}, "trace must be a positive number"),
    ("constant column", {"trace": 1e-3}, "trace is less than the sum"),
    ("constant column", {"kernel": "gausian(1)"}, "cannot be read"),
    ("constant column", {"kernel": "gaussian"}, "has no bandwidth"),
    ("constant column", {"constants": [{**CONSTANT, "name": "b"}]}, "columns of their own"),
    ("constant column", {"constants": [{**CONSTANT, "place": 9}]}, "each in its place"),
    ("constant column", {"n_train": 0}, "n_train must be at least 1"),
    ("constant column", {"kind": "svm"}, "'svm' model, not kernel principal components"),
    ("constant column", {"centres_numeric": lambda found: found[:, :1]}, "centres and its columns do not fit together"),
    *(("components", {"centres_codes": lambda found, by=by: found + by}, "that its columns do not") for by in (-1, 1)),
    ("features", {"classes": numbered("0.0", "1", "2")}, "numbers in their shortest form"),
    ("fourier", {"offsets": lambda found: found[:-1]}, "do not fit together"),
    *(("many classes", {"owners": owners}, "do not fit together") for owners in ([], [0], [6] * 60, [0] * 59)),
    ("many classes", {"coefficients": lambda found: found[:, :-1]}, "do not fit together"),
    ("components", {"owners": [0, 1, 2] * 20}, "owners belong to models of pairs"),
    *(
        (kind, parts, "do not fit together")
        for kind in ("features", "fourier")
        for parts in (
            {"centres": lambda found: found + 1},
            {"centres": lambda found: found[::-1] + 1},
            {"offsets": lambda found: np.append(found, 0.5)},
        )
    ),
]


def test_a_loaded_machine_has_probabilities_where_it_was_saved_with_some(tmp_path):
    """Whatever is said of it afterwards: what there is counts, not what would be fitted."""
    with_some, without = SVM(probability=True).fit(X, Y), SVM().fit(X, Y)
    for place, machine in enumerate((with_some, without)):
        machine.save(tmp_path / str(place))
        loaded = SVM.load(tmp_path / str(place))
        assert loaded.probability == machine.probability == hasattr(loaded, "predict_proba")
        loaded.probability = not loaded.probability
        assert hasattr(loaded, "predict_proba") == machine.probability
    loaded = SVM.load(tmp_path / "0")
    found = loaded.predict_proba(X)
    assert_close(found, with_some.predict_proba(X))
    assert_close(found.sum(axis=1), np.ones(60))
    np.testing.assert_array_equal(loaded.predict(X), with_some.predict(X))
    with pytest.raises(AttributeError, match="fit it with probability=True"):
        _ = SVM.load(tmp_path / "1").predict_proba
    fresh = SVM.load(tmp_path / "1").set_params(probability=True)
    assert hasattr(fresh, "predict_proba")
    assert not hasattr(fresh.set_params(probability=False), "predict_proba")


@pytest.mark.parametrize(("kind", "parts", "message"), [*((*one, "") for one in DAMAGED), *APART])
def test_a_damaged_model_is_refused_before_it_is_used(kind, parts, message, tmp_path):
    learner, _ = fitted(kind)
    learner.save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    arrays = {name: wrong(array_of(content, name)) for name, wrong in parts.items() if callable(wrong)}
    (tmp_path / "m").write_bytes(rewritten(content, {} if arrays else parts, arrays))
    with pytest.raises(ModelError) as caught:
        type(learner).load(tmp_path / "m")
    assert message in caught.value.message
    assert caught.value.message.isprintable()
    assert caught.value.exit_code == 5
    # Put together again as it was, it is read.
    (tmp_path / "m").write_bytes(rewritten(content))
    assert type(learner).load(tmp_path / "m").model.n_train == learner.model.n_train
    other = SVM if isinstance(learner, KernelRidge) else KernelRidge
    raises(ModelError, "model.kind", lambda: other.load(tmp_path / "m"))


def test_whole_numbers_and_words_for_missing_values_are_read_as_others_write_them(tmp_path):
    model, path = fitted("two columns")[0], tmp_path / "m.kt"
    model.save(path)
    assert members_of(path.read_bytes())[0]["encoder"] == STANDARDIZED
    whole = {**STANDARDIZED, "columns": [{**NUMBER, "centre": 3, "spread": 2}, TEXT], "na": ["-", "NA"]}
    path.write_bytes(rewritten(path.read_bytes(), {"encoder": whole}))
    KernelRidge.load(path).save(path, force=True)
    assert members_of(path.read_bytes())[0]["encoder"] == {**STANDARDIZED, "na": ["-", "NA"]}
