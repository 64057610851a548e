"""Learning, predicting and inspecting from the shell, on the sample data, and whatever is wrong with that."""

import csv
import io
import json
import shutil

import numpy as np
import pytest
from pyarrow import parquet
from records import assert_alike
from tolerances import SAME_MACHINE, assert_close


@pytest.fixture
def here(tmp_path, shop, monkeypatch):
    """Stand in a copy of the sample data."""
    shutil.copytree(shop, tmp_path / "data")
    monkeypatch.chdir(tmp_path / "data")
    return tmp_path / "data"


def check_failure(outcome, code, message, hint=""):
    lines = outcome.err.splitlines()
    assert (outcome.code, outcome.out) == (code, "")
    assert len(lines) == 2
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert lines[1].startswith("hint: ")
    assert hint in lines[1]


def test_from_a_table_to_predictions(kerntest, here):
    fitted = kerntest("svm", "iris.csv", "--target", "species", "--test-fraction", "0.3", "-o", "iris.kt", "--json")
    assert fitted.code == 0
    assert fitted.err == "wrote iris.kt\n"
    result = json.loads(fitted.out)
    assert result["accuracy"] > 0.9
    assert result["accuracy"] >= result["baseline"]["accuracy"]
    assert result["converged"]
    assert 0 <= result["duality_gap"] <= 1e-6
    assert (result["n_train"], result["n_test"], result["model"]) == (105, 45, "iris.kt")
    written = kerntest("predict", "iris.kt", "iris.csv", "--keep", "species")
    rows = list(csv.DictReader(io.StringIO(written.out)))
    assert [int(row["row"]) for row in rows] == list(range(1, 151))
    assert sum(row["species"] == row["prediction"] for row in rows) >= 140
    assert kerntest("predict", "iris.kt", "iris.csv", "-o", "out.parquet", "--keep", "species").code == 0
    stored = parquet.read_table(here / "out.parquet")
    assert stored.column_names == ["row", "species", "prediction"]
    assert stored["prediction"].to_pylist() == [row["prediction"] for row in rows]
    told = json.loads(kerntest("inspect", "iris.kt", "--json").out)
    assert told["classes"] == result["classes"]
    assert told["kernel"] == result["kernel"]


def test_numbers_probabilities_and_outliers(kerntest, here):
    del here
    numbers = kerntest(
        "svm",
        "machines.csv",
        "--target",
        "wear_um",
        "--task",
        "regress",
        "--test-fraction",
        "0.3",
        "-o",
        "w.kt",
        "--json",
    )
    result = json.loads(numbers.out)
    assert result["r2"] > 0
    predicted = json.loads(kerntest("predict", "w.kt", "machines.csv", "-o", "w.csv", "--json").out)
    assert predicted["numbers"]["minimum"] < predicted["numbers"]["mean"] < predicted["numbers"]["maximum"]
    assert kerntest("svm", "wine.csv", "--target", "cultivar", "--probability", "-q", "-o", "v.kt").code == 0
    rows = list(csv.DictReader(io.StringIO(kerntest("predict", "v.kt", "wine.csv", "--proba").out)))
    for row in rows:
        chances = {name.removeprefix("p:"): float(value) for name, value in row.items() if name.startswith("p:")}
        assert sum(chances.values()) == pytest.approx(1.0, abs=1e-9)
        assert row["prediction"] == max(chances, key=chances.get)
    unlike = kerntest("svm", "before.csv", "--task", "one-class", "--nu", "0.05", "--test", "after.csv", "-o", "u.kt")
    assert "% of 450 test rows are outliers." in unlike.out
    counts = json.loads(kerntest("predict", "u.kt", "before.csv", "-o", "u.csv", "--json").out)["predictions"]
    assert counts["false"] <= 0.05 * 400 + 1
    assert counts["true"] + counts["false"] == 400


def test_the_same_seed_gives_the_same_model_whatever_the_threads(kerntest, here):
    del here
    line = ("svm", "wine.csv", "--target", "cultivar", "--test-fraction", "0.3", "--cv", "3", "-q", "--json")
    found = []
    for name, threads in (("one.kt", 1), ("two.kt", 2)):
        result = json.loads(kerntest(*line, "-o", name, "--threads", threads).out)
        rows = csv.DictReader(io.StringIO(kerntest("predict", name, "wine.csv", "--decision").out))
        found.append(({name: result[name] for name in ("kernel", "C", "grid", "test", "n_support")}, list(rows)))
    assert_alike(found[0][0], found[1][0])
    assert [row["prediction"] for row in found[0][1]] == [row["prediction"] for row in found[1][1]]
    scores = [np.array([[float(row[name]) for name in row if "decision" in name] for row in one]) for _, one in found]
    assert scores[0].shape == (178, 3)
    # The machines of both were chosen and solved by the same sums; their gap of 1e-6 permits more.
    assert_close(*scores, share=SAME_MACHINE)


def test_a_model_is_not_overwritten_unless_asked(kerntest, here):
    line = ("svm", "iris.csv", "--target", "species", "-o", "iris.kt")
    (here / "iris.kt").write_text("mine")
    check_failure(kerntest(*line), 3, "iris.kt exists already", "--force")
    assert (here / "iris.kt").read_text() == "mine"
    assert kerntest(*line, "--force").code == 0
    assert (here / "iris.kt").read_bytes().startswith(b"PK")


BAD = {
    "target_not_there": (["iris.csv", "--target", "spesies"], 2, "column 'spesies' is not in iris.csv", "'species'"),
    "no_target": (["iris.csv"], 2, "--task classify needs --target", "--target names"),
    "one_class_only": (
        ["one.csv", "--target", "species"],
        3,
        "species = setosa: there is one class only",
        "two classes",
    ),
    "more_folds_than_rows": (["few.csv", "--target", "species", "--cv", "9"], 3, "into 9 folds", "at most 6"),
    "infeasible_nu": (["uneven.csv", "--target", "uneven", "--nu", "0.9"], 2, "nu = 0.9 is infeasible", "--nu 0."),
    "constant_columns": (["same.csv", "--target", "y"], 3, "no column is left to learn from", "two different values"),
    "unlabelled": (["unlabelled.csv", "--target", "species"], 3, "species 1 (the first in line 3)", "--missing drop"),
    "too_many_classes": (["many.csv", "--target", "y"], 3, "10,000 different values", "--task regress"),
    "text_as_number": (["iris.csv", "--target", "species", "--task", "regress"], 3, "holds text", "--task classify"),
    "unknown_class": (
        ["iris.csv", "--target", "species", "--test", "odd.csv"],
        3,
        "species has 'rose', which no row of the training part has",
        "setosa",
    ),
    "no_such_test_file": (["iris.csv", "--target", "species", "--test", "no.csv"], 3, "no.csv does not exist", ""),
}


@pytest.fixture
def bad(here):
    """Add files with something wrong in them."""
    lines = (here / "iris.csv").read_text().splitlines()
    files = {
        "one.csv": lines[:51],
        "few.csv": [lines[0], *lines[48:54]],
        "same.csv": ["a,b,y", *["1,2,no", "1,2,yes"] * 10],
        "unlabelled.csv": [*lines[:2], lines[2].rpartition(",")[0] + ",", *lines[3:]],
        "many.csv": ["a,y", *(f"{k % 97},{k}" for k in range(10_000))],
        "odd.csv": [lines[0], lines[1], lines[2].rpartition(",")[0] + ",rose"],
    }
    few = [f"{line},{'a' if k < 10 else 'b'}" for k, line in enumerate(lines[1:])]
    files["uneven.csv"] = [f"{lines[0]},uneven", *few]
    for name, content in files.items():
        (here / name).write_text("\n".join(content) + "\n")
    return here


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_learned_is_told_in_two_lines(kerntest, bad, name):
    arguments, code, message, hint = BAD[name]
    check_failure(kerntest("svm", *arguments, "-o", "m.kt"), code, message, hint)
    assert not (bad / "m.kt").exists()


def broken(content, name):
    """Return a model file with something wrong."""
    if name == "truncated":
        return content[: len(content) // 2]
    if name == "corrupted":
        return content[:2000] + bytes([content[2000] ^ 0xFF]) + content[2001:]
    if name == "newer":
        return content.replace(b'"format_version": 1', b'"format_version": 2')
    return {"empty": b"", "text": b"a,b\n1,2\n", "binary": bytes(range(256)), "pickle": b"\x80\x04K\x01."}[name]


@pytest.mark.parametrize("name", ["truncated", "corrupted", "newer", "empty", "text", "binary", "pickle"])
def test_a_model_that_is_none_is_5_and_two_lines(kerntest, here, name):
    (here / "bad.kt").write_bytes(broken((here / "species.kt").read_bytes(), name))
    for command in (["predict", "bad.kt", "iris.csv"], ["inspect", "bad.kt"]):
        check_failure(kerntest(*command), 5, "bad.kt")


def test_stdin_is_read_and_stdout_is_whole_or_empty(kerntest, here):
    piped = kerntest("predict", "species.kt", "-", stdin=here / "iris.csv")
    assert piped.code == 0
    assert piped.out == kerntest("predict", "species.kt", "iris.csv").out
    (here / "late.csv").write_text((here / "iris.csv").read_text() + "oops,1,1,1,setosa\n")
    check_failure(kerntest("predict", "species.kt", "late.csv"), 3, "line 152", "correct the value")


def test_what_is_said_of_the_judgement_is_true(kerntest, here):
    told = kerntest("svm", here / "iris.csv", "--target", "species", "--cv", "3").out
    assert "accuracy and classes are of the rows that it has learned from" in told
    assert "the decision is of rows held out in 3 folds" in " ".join(told.split())
    rng = np.random.default_rng(0)
    lines = [f"{a},{b},{'bad' if row % 8 == 0 else 'good'}" for row, (a, b) in enumerate(rng.normal(size=(160, 2)))]
    (here / "unequal.csv").write_text("\n".join(["a,b,c", *lines]), encoding="utf-8")
    unequal = ("svm", here / "unequal.csv", "--target", "c", "--test-fraction", "0.5", "--json")
    way_out = "--class-weight balanced makes the smaller classes count"
    assert way_out in kerntest(*unequal).err
    assert way_out not in kerntest(*unequal, "--class-weight", "balanced").err
    narrow = ("--kernel", "gaussian(0.01)")
    assert "--grid looks for better" in kerntest(*unequal, *narrow).err
    assert "--grid" not in kerntest(*unequal, *narrow, "--grid").err
