"""Whatever is handed over for an argument from Python, errors are in our own words, and name it."""

import inspect
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest

import kerntest
from kerntest.errors import UsageError

RNG = np.random.default_rng(0)
DATA = pd.DataFrame(
    {"a": RNG.normal(size=24), "b": RNG.normal(size=24), "c": list("xy") * 12, "t": RNG.normal(size=24)}
)
FEW = {"permutations": 8}
CALLS = {
    "mmd_test": {"x": DATA[["a", "b"]], "y": DATA[["b", "a"]].set_axis(["a", "b"], axis=1), **FEW},
    "hsic_test": {"x": DATA, "x_columns": "a", "y_columns": "b", **FEW},
    "hsic_pairs": {"data": DATA[["a", "b", "t"]], **FEW},
    "hsic_select": {"data": DATA, "target": "b", "k": 1, **FEW},
    "hsic_joint": {"data": DATA, "groups": "a,b,c", **FEW},
    "train_svm": {"train": DATA, "target": "c"},
    "train_ridge": {"train": DATA, "target": "b", "lambda_": 0.1, "bandwidth": 1.0},
    "train_kpca": {"train": DATA},
    "predict_file": {"model": "model.kt", "data": "data.csv", "output": "rows.csv"},
    "transform_file": {"model": "axes.kt", "data": "data.csv", "output": "rows.csv"},
    "inspect_table": {"source": DATA},
    "inspect_model": {"path": "model.kt"},
    "read_table": {"source": DATA},
    "parse_kernel": {"text": "gaussian(1)"},
    "compute_on": {},
}
OF_ROWS = ("output", "keep", "missing", "unknown", "threads", "block")
OF_CSV = ("decimal", "na", "delimiter", "encoding", "header", "comment")
ODD = (None, -1, 2.5, "", "x", [], {}, True, np.nan, [None], b"x", np.arange(2), pd.DataFrame(), object())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table and models of it."""
    place = tmp_path_factory.mktemp("wrong")
    DATA.to_csv(place / "data.csv", index=False)
    kerntest.SVM().fit(DATA[["a", "b"]], DATA["c"]).save(place / "model.kt")
    kerntest.KernelPCA(1).fit(DATA[["a", "b"]]).save(place / "axes.kt")
    return place


def called(name, arguments):
    if name == "compute_on":
        with kerntest.compute_on(**arguments):
            return
    getattr(kerntest, name)(**arguments)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_another_kind_is_refused_in_our_words_or_taken(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    known = inspect.signature(getattr(kerntest, name)).parameters
    named = [one for one in known if one not in {"progress", "planned", "csv", "options", "test", "others"}]
    named += OF_ROWS if "options" in known else ()
    named += OF_CSV if {"csv", "options"} & {*known} else ()
    refused = []
    for argument, value in product(named, ODD):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                called(name, CALLS[name] | {argument: value})
            except kerntest.KerntestError as error:
                refused.append(error)
    assert len(refused) > len(named)
    assert not [error for error in refused if "\n" in error.message]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: kerntest.hsic_joint(DATA, None), "groups must be a list of names, not None"),
        (
            lambda: kerntest.mmd_test(DATA, DATA, explain=pd.DataFrame()),
            "explain must be True or False, not a DataFrame",
        ),
        (lambda: kerntest.mmd_test(DATA, DATA, alpha="x"), "alpha must be between 0 and 1, not 'x'"),
        (lambda: kerntest.mmd_test(DATA, DATA, witness=3), "witness must be text or a path, not 3"),
        (lambda: kerntest.mmd_test(DATA, DATA, null=[1]), "null must be .*, not \\[1\\]"),
        (lambda: kerntest.train_svm(DATA, "c", test_fraction="x"), "test_fraction must be a number, not 'x'"),
        (lambda: kerntest.read_table("a.csv", delimiter=3), "delimiter must be text, not 3"),
        (lambda: kerntest.parse_kernel(3), "a kernel is a text, not 3"),
        (lambda: kerntest.inspect_model(None), "path must be text or a path, not None"),
    ],
)
def test_the_argument_is_named(call, told):
    with pytest.raises(kerntest.KerntestError, match=f"^{told}$") as caught:
        call()
    assert caught.value.code.startswith("usage.")


def test_errors_of_a_callers_own_functions_stay_as_they_are():
    """An error is not that of an argument where all of them fit."""

    def progress(*_):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        kerntest.mmd_test(DATA[["a"]], DATA[["a"]] + 1, progress=progress)


def test_an_argument_that_is_given_twice_is_told_with_what_was_meant():
    with pytest.raises(TypeError, match="multiple values for argument 'x'") as caught:
        kerntest.hsic_test(DATA, x="a", y="b")
    assert isinstance(caught.value, kerntest.KerntestError)
    assert caught.value.hint == "did you mean x_columns?"


@pytest.mark.parametrize("values", [DATA["t"], DATA["t"].to_numpy(), DATA["t"].tolist(), [1.0] * 24])
def test_values_in_place_of_names_and_files_lead_to_the_classes(folder, values):
    for train, estimator in ((kerntest.train_svm, "SVM"), (kerntest.train_ridge, "KernelRidge")):
        with pytest.raises(UsageError, match=r"^target must be the name of a column of train, not a \w+$") as told:
            train(DATA[["a", "b"]], values)
        assert told.value.hint == f"kerntest.{estimator}().fit(X, y) takes values"
    for apply, model, way in (
        (kerntest.predict_file, "model.kt", "load(model).predict(data) of SVM or KernelRidge"),
        (kerntest.transform_file, "axes.kt", "load(model).transform(data) of KernelPCA, KernelICA or KernelCCA"),
    ):
        with pytest.raises(UsageError, match=r"^data must be text or a path, not a \w+$") as told:
            apply(folder / model, values)
        assert told.value.hint == f"{way} takes arrays and frames"


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: kerntest.SVM(gamma=2), "the bandwidth 1 / sqrt(2 gamma) here: bandwidth=0.5"),
        (lambda: kerntest.KernelRidge(alpha=0.1), "it is lambda_=0.1 here"),
        (lambda: kerntest.KernelRidge(length_scale=3), "it is bandwidth=3 here"),
        (lambda: kerntest.train_svm(DATA, "c", degree=3), "kernel='polynomial(3)'"),
        # It has no lambda.
        (lambda: kerntest.SVM(alpha=1.0), "help(kerntest.SVM) says what it takes"),
    ],
)
def test_names_of_other_libraries_lead_to_ours(call, hint):
    with pytest.raises(UsageError) as caught:
        call()
    assert hint in caught.value.hint
