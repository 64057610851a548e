import csv
import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from model_archives import valid_model

from kerntest import SVM, inspect_model

ROWS = [
    f"{k * 7 % 11},{'red' if k % 3 else 'blue'},{'true' if k % 2 else 'false'},{'yes' if k * 7 % 11 > 5 else 'no'}"
    for k in range(40)
]


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.csv").write_text("\n".join(["price,colour,new,bought", *ROWS]) + "\n")
    machine = SVM(probability=True).fit("shop.csv", "bought")
    machine.save("shop.kt")
    return machine


def test_a_model_tells_what_it_is_and_needs(kerntest, model):
    outcome = kerntest("inspect", "shop.kt")
    assert (outcome.code, outcome.err) == (0, "")
    support = len(model.model.expansion.centres)
    for text in (
        "shop.kt: Support vector machine\n",
        "classify, predicts bought\n",
        "2: no, yes\n",
        f"{support} training rows\n",
        "  probability  yes\n",
        "  scale        standardize\n",
        "version 1, written by kerntest",
        "  price   number   mean ",
        "  colour  text     2: blue, red\n",
        "  new     boolean  2: false, true\n",
    ):
        assert text in outcome.out


def test_the_same_as_json_and_csv(kerntest, model):
    del model
    plain = json.loads(kerntest("inspect", "shop.kt", "--json").out)
    assert plain == inspect_model("shop.kt").to_dict()
    assert (plain["schema"], plain["kind"], plain["classes"]) == ("kerntest.model/1", "svm", ["no", "yes"])
    assert [column["levels"] for column in plain["columns"]] == [None, ["blue", "red"], ["false", "true"]]
    rows = list(csv.DictReader(io.StringIO(kerntest("inspect", "shop.kt", "--format", "csv").out)))
    assert [row["sha256"] for row in rows] == [plain["sha256"]]


def test_the_name_does_not_matter(kerntest, model):
    del model
    shutil.copy("shop.kt", "anything")
    assert kerntest("inspect", "anything").out.startswith("anything: Support vector machine")


@pytest.mark.parametrize("task", ["regress", "one-class"])
def test_other_tasks(kerntest, model, task):
    del model
    machine = SVM(task=task, scale="none").fit("shop.csv", "price" if task == "regress" else None)
    machine.save("other.kt")
    text = kerntest("inspect", "other.kt").out
    assert f"  task       {task}" in text
    assert "probability" not in text
    assert "classes" not in text


def test_features_and_matrices(kerntest, model):
    del model
    SVM(features="nystroem:5").fit("shop.csv", "bought").save("features.kt")
    text = kerntest("inspect", "features.kt").out
    assert "  features     nystroem:" in text
    SVM(kernel="precomputed").fit(np.eye(6), ["a", "b"] * 3).save("matrix.kt")
    assert "  kernel       precomputed\n" in kerntest("inspect", "matrix.kt").out


def test_a_kind_that_is_not_known_is_named(kerntest, model):
    del model
    Path("future.kt").write_bytes(valid_model({"kind": "forest"}, {"values": np.ones(2)}))
    assert kerntest("inspect", "future.kt").out.startswith("future.kt: forest\n")


@pytest.mark.parametrize("place", [60, 1000, -10])
def test_damage_is_5(kerntest, model, place):
    del model
    content = bytearray(Path("shop.kt").read_bytes())
    content[place] ^= 0xFF
    Path("broken.kt").write_bytes(content)
    for arguments in (["inspect", "broken.kt"], ["predict", "broken.kt", "shop.csv"]):
        outcome = kerntest(*arguments)
        assert (outcome.code, outcome.out) == (5, "")
        assert len(outcome.err.splitlines()) == 2


def test_other_archives_are_no_models(kerntest, model):
    del model
    with zipfile.ZipFile("book.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
    outcome = kerntest("inspect", "book.xlsx")
    assert outcome.code == 3
    assert "is a zip archive or an Excel workbook" in outcome.err


def test_options_of_tables_are_refused(kerntest, model):
    del model
    outcome = kerntest("inspect", "shop.kt", "--columns", "price")
    assert outcome.code == 2
    assert outcome.err.startswith("error: --columns is for tables, and shop.kt is a model\n")
