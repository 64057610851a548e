"""Warnings of results are Python warnings too, at the line of the caller; the command tells each once."""

import warnings

import numpy as np
import pytest
from command_line import ROOT

import kerntest
from kerntest.errors import UsageError

DATA = ROOT / "sample_data"
ROWS = np.random.default_rng(0).normal(size=(40, 2))
CALLS = {
    "mmd_test": lambda: kerntest.mmd_test(ROWS, ROWS),
    "hsic_pairs": lambda: kerntest.hsic_pairs(np.vstack([ROWS, ROWS])),
    "train_svm": lambda: kerntest.train_svm(DATA / "iris.csv", "species"),
    "SVM": lambda: kerntest.SVM().fit(np.vstack([ROWS, ROWS]), ["a", "b"] * 40),
    "KernelRidge": lambda: kerntest.KernelRidge().fit(np.vstack([ROWS, ROWS]), np.tile(ROWS[:, 0], 2)),
    "KernelPCA": lambda: kerntest.KernelPCA(components=50, kernel="linear").fit_transform(ROWS),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_is_emitted_at_the_line_of_the_caller(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = CALLS[name]()
    assert {(warning.category, warning.filename) for warning in caught} == {(kerntest.KerntestWarning, __file__)}
    texts = [str(warning.message) for warning in caught]
    assert len(set(texts)) == len(texts)
    assert texts == list(dict.fromkeys(getattr(result, "warnings", texts)))
    assert not [text for text in texts if "--" in text]


@pytest.mark.parametrize(
    "call",
    [
        lambda: kerntest.mmd_test(ROWS, ROWS, kernl="linear"),
        lambda: kerntest.hsic_pairs(DATA / "iris.csv", colums="a"),
        lambda: kerntest.train_ridge(DATA / "iris.csv", "sepal_length_cm", gridd=1),
        lambda: kerntest.predict_file(DATA / "species.kt", DATA / "iris.csv", probba=True),
    ],
)
def test_a_misspelt_argument_is_none(call):
    with pytest.raises(TypeError, match=r"unexpected keyword argument '(kernl|colums|gridd|probba)'"):
        call()


def test_an_argument_of_another_name_is_told():
    told = {
        "kernel_x or kernel_y": lambda: kerntest.hsic_test(ROWS, kernel="linear"),
        "columns": lambda: kerntest.mmd_test(ROWS, ROWS, colums="a"),
        "nu": lambda: kerntest.SVM(nnu=0.5),
    }
    for meant, call in told.items():
        with pytest.raises(UsageError, match="got an unexpected keyword argument") as caught:
            call()
        assert caught.value.hint == f"did you mean {meant}?"
    with pytest.raises(UsageError, match=r"^SVM\(\) got an unexpected keyword argument 'missing'$") as caught:
        kerntest.SVM(missing="drop")
    assert caught.value.hint == "help(kerntest.SVM) says what it takes"


def test_warnings_can_be_filtered():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kerntest.KerntestWarning, match="not valid"):
            kerntest.mmd_test(ROWS, ROWS)
        # By the name of before, too.
        warnings.simplefilter("ignore", kerntest.DataWarning)
        assert kerntest.mmd_test(ROWS, ROWS).warnings


def test_the_command_tells_a_warning_once(kerntest):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = kerntest("svm", DATA / "iris.csv", "--target", "species", "--json")
    assert outcome.err.count("learned from") == 1
