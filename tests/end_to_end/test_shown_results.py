"""In Python a result shows itself as the command prints it, and in notebooks in full."""

import dataclasses
import html
import re
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

import kerntest as library
from kerntest import mmd_test
from kerntest.errors import as_typed

# What is typed, and what is called.
SHOWN = {
    "mmd before.csv after.csv": lambda: library.mmd_test("before.csv", "after.csv"),
    "hsic machines.csv --x load_percent --y temp_c": lambda: library.hsic_test(
        "machines.csv", x_columns="load_percent", y_columns="temp_c"
    ),
    "hsic machines.csv --target wear_um": lambda: library.hsic_pairs("machines.csv", target="wear_um"),
    "hsic machines.csv --target wear_um --select 1": lambda: library.hsic_select("machines.csv", "wear_um", k=1),
    "hsic machines.csv --joint load_percent,temp_c": lambda: library.hsic_joint("machines.csv", "load_percent,temp_c"),
    "svm iris.csv --target species": lambda: library.train_svm("iris.csv", "species"),
    "ridge river.csv --target level_cm": lambda: library.train_ridge("river.csv", "level_cm"),
    "kpca iris.csv --exclude species": lambda: library.train_kpca("iris.csv", exclude="species"),
    "inspect iris.csv": lambda: library.inspect_table("iris.csv"),
    "inspect species.kt": lambda: library.inspect_model("species.kt"),
    "predict species.kt iris.csv --report -": lambda: library.predict_file("species.kt", "iris.csv", output="out.csv"),
    "transform axes.kt iris.csv --report -": lambda: library.transform_file("axes.kt", "iris.csv", output="out.csv"),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory, shop):
    """Return a folder with sample data and models of them."""
    folder = tmp_path_factory.mktemp("shown")
    for name in ("before.csv", "after.csv", "machines.csv", "river.csv", "iris.csv"):
        shutil.copy(shop / name, folder)
    library.SVM().fit(folder / "iris.csv", "species").save(folder / "species.kt")
    library.KernelPCA(2).fit(library.read_table(shop / "iris.csv").select(("petal_width_cm",))).save(folder / "axes.kt")
    return folder


@pytest.mark.parametrize("command", SHOWN)
def test_a_result_shows_itself_as_the_command_prints_it(kerntest, models, monkeypatch, command):
    monkeypatch.chdir(models)
    words = command.split()
    printed = kerntest(*words, *(("-o", "out.csv") if "--report" in words else ()))
    (models / "out.csv").unlink(missing_ok=True)
    with warnings.catch_warnings(), as_typed():
        warnings.simplefilter("ignore")
        result = SHOWN[command]()
        assert f"{result!r}\n" == result.summary() == str(result) + "\n" == printed.out
    (models / "out.csv").unlink(missing_ok=True)
    assert len(result.to_frame()) >= 1
    assert max(map(len, result.summary(width=52).splitlines())) <= 52 < max(map(len, result.summary().splitlines()))
    # In a notebook the same words stand in cells: not broken, and nothing in them is taken for a tag.
    shown, parts = result._repr_html_(), result.in_words()
    cells = re.findall(r"<(?:td|th|b|p|li)\b[^>]*>((?:(?!<(?:b|p|td|th)).)*?)</", shown)
    told = [html.unescape(cell) for cell in cells]
    assert parts.title in told
    assert {text for _, text in parts.lines} <= set(told)
    assert set(parts.warnings) <= set(told)
    for table in parts.tables:
        assert {heading for heading, _ in table.columns} <= set(told)
        for row in table.rows:
            assert {getattr(cell, "text", cell) for cell in row} <= set(told)
    assert not parts.decision or f"{parts.answer}: {parts.decision}" in told


def test_names_are_no_tags_in_notebooks():
    frame = pd.DataFrame({"<b>a</b>": [1.0, 2.0, 4.0], "c & d": ["x", "y", "<i>"]})
    shown = library.inspect_table(frame)._repr_html_()
    assert "&lt;b&gt;a&lt;/b&gt;" in shown
    assert "c &amp; d" in shown
    assert "<i>" not in shown
    # Numbers stand at the right.
    assert re.search(r'<td style="text-align: right">3</td>', shown)


def test_records_inside_a_result_name_their_fields():
    result = mmd_test(np.arange(40.0), np.arange(40.0) + 3.0, permutations=100)
    assert repr(result.null).startswith("Null(method='permutation', permutations=100")
    assert dataclasses.replace(result, alpha=0.2).alpha == 0.2
