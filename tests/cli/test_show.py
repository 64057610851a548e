"""Commands that show what there is: a line for each column, whatever it is called; models and kernels; nothing cut off."""

import csv
import gzip
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from model_archives import valid_model

from kerntest import SVM, KernelPCA, inspect_model, inspect_table, parse_kernel

SAMPLES = Path(__file__).parents[2] / "sample_data"


@pytest.fixture(autouse=True)
def among_the_sample_data(tmp_path, monkeypatch):
    shutil.copytree(SAMPLES, tmp_path / "data")
    monkeypatch.chdir(tmp_path / "data")


@pytest.fixture
def told(kerntest):
    """Return what `inspect --json` says."""
    return lambda *arguments: json.loads(kerntest("inspect", *arguments, "--json").out)


@pytest.fixture
def rows(kerntest):
    """Return what a command writes as CSV."""
    return lambda *arguments: list(csv.DictReader(io.StringIO(kerntest(*arguments, "--format", "csv").out)))


def test_complete_rows_and_numbers_among_other_values(kerntest, told, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    lines = [f"{k if k % 8 else '?'},{k if k < 8 else 'x'}\n" for k in range(32)]
    Path("a.csv").write_text("price,t\n" + "".join(lines) + "5,\n")
    text = kerntest("inspect", "a.csv").out
    assert "32 of 33 rows complete" in text
    assert "88 % of the values are numbers" in text
    report = told("a.csv", "--na", "?")
    assert report["complete_rows"] == 28
    price, other = report["columns"]
    assert (price["type"], price["numbers"], price["missing"]) == ("number", None, 4)
    assert (other["type"], other["numbers"]) == ("text", 0.25)
    assert {"mean", "median", "deviation"} <= price.keys()


def test_quiet_tells_no_warnings(kerntest):
    Path("a.csv").write_text("a;b\n1,5;2\n2,5;3\n")
    told = kerntest("inspect", "a.csv", "--json")
    assert "warning: " in told.err
    quiet = kerntest("inspect", "a.csv", "--json", "-q")
    assert (quiet.out, quiet.err, quiet.code) == (told.out, "", 0)
    model = kerntest("inspect", "species.kt", "-q")
    assert (model.err, model.code) == ("", 0)


def test_csv_has_a_line_for_each_column(rows):
    lines = rows("inspect", "before.csv")
    assert [line["name"] for line in lines][:2] == ["order_value_eur", "items"]
    assert lines[4]["levels"] == "card=167;invoice=126;wallet=107"
    assert (lines[0]["minimum"], lines[0]["use"], lines[0]["note"]) == ("11.22", "used", "")


def test_options_reach_the_library(told):
    chosen = ["--columns", "items,pay*", "--columns", "first_order", "--exclude", "payment", "--categorical", "items"]
    columns = told("before.csv", *chosen)["columns"]
    assert [(column["name"], column["type"]) for column in columns] == [("items", "text"), ("first_order", "boolean")]
    assert columns[0]["levels"][0]["value"] == "1"


def test_warnings_stand_below_the_table_or_on_stderr(kerntest):
    Path("a.csv").write_text("v;w\n1,5;1\n2,5;2\n")
    outcome = kerntest("inspect", "a.csv", "--json")
    assert json.loads(outcome.out)["columns"][0]["maximum"] == 2.5
    assert outcome.err.startswith("warning: ")
    assert "decimal comma" in outcome.err
    assert kerntest("inspect", "a.csv", "--decimal", ",", "--json").err == ""
    shown = kerntest("inspect", "a.csv")
    assert "Warnings:\n  - " in shown.out
    assert shown.err == ""


def test_stdin_and_many_files(kerntest):
    Path("before.csv.gz").write_bytes(gzip.compress(Path("before.csv").read_bytes()))
    piped = kerntest("inspect", "-", stdin=Path("before.csv.gz").absolute())
    assert piped.out.startswith("<stdin>: 400 rows, 6 columns\n  format  csv with delimiter ',', compressed with gzip")
    many = kerntest("inspect", "iris_*.csv").out
    assert many.startswith("iris_*.csv: 100 rows, 4 columns\n")
    assert "2 files, iris_versicolor.csv to iris_virginica.csv" in many


@pytest.mark.parametrize("width", [40, 150])
def test_a_wide_table_is_a_long_list_and_nothing_is_cut_off(kerntest, width, monkeypatch):
    wide = Path("[bold]wide.csv")
    names = [f"[red]column {i}[/red] :smile: \\[x" for i in range(200)]
    drawn = np.random.default_rng(0).integers(0, 11, (30, 200))
    drawn[:, ::11] = 0
    lines = [",".join("nan" if i == 7 else str(one) for i, one in enumerate(row)) for row in drawn]
    wide.write_text("\n".join([",".join(names), *lines]))
    monkeypatch.setenv("COLUMNS", str(width))
    text, columns = kerntest("inspect", wide).out, inspect_table(wide).columns
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in text
    assert "[bold]wide.csv" in text.replace("\n", "")
    if width == 150:
        # Those that hold one value and the empty one take a line or two more.
        assert len(lines) <= 203 + 2 * sum(column.use != "used" for column in columns)
        assert all(f"  {column.name}  " in text for column in columns)


@pytest.mark.parametrize("width", [80, 100])
def test_no_word_is_lost_on_a_narrow_screen_and_no_name_moves_the_cursor(kerntest, monkeypatch, width):
    lines = [f"{value},{'abcdefgh' * 4}{value}" for value in range(60)]
    Path("a.csv").write_text("\n".join(["a measurement with a rather long name in millimetres,text", *lines]))
    monkeypatch.setenv("COLUMNS", str(width))
    out = kerntest("inspect", "a.csv").out
    assert max(map(len, out.splitlines())) <= width
    assert all(word in "".join(out.split()) for word in ("different", "identifies", "rows"))
    Path("b.csv").write_text('"na\x1b[2Jme",t\n1,"a\x07\nb"\n2,c\n')
    text = kerntest("inspect", "b.csv").out
    assert not {"\x1b", "\x07"} & set(text)
    assert "na\\x1b[2Jme" in text
    assert "a\\x07\\nb 1, c 1" in text


# Models.


def test_a_model_tells_what_it_is_whatever_its_name(kerntest, told, rows):
    SVM(probability=True).fit("iris.csv", "species").save("iris.kt")
    shutil.copy("iris.kt", "anything")
    assert kerntest("inspect", "anything").out.startswith("anything: Support vector machine\n")
    text, support = kerntest("inspect", "iris.kt").out, len(SVM.load("iris.kt").model.expansion.centres)
    for part in (
        f"{support} different training rows\n",
        "classify, predicts species\n",
        "  probability  yes\n",
        "number  mean ",
    ):
        assert part in text
    assert told("iris.kt") == inspect_model("iris.kt").to_dict()
    # A line for each column, as of a table.
    needed = inspect_model("iris.kt").columns
    assert [(row["name"], float(row["centre"])) for row in rows("inspect", "iris.kt")] == [
        (one.name, one.centre) for one in needed
    ]
    for option in (["--columns", "price"], ["--no-header"]):
        refused = kerntest("inspect", "iris.kt", *option)
        assert refused.code == 2
        assert refused.err.startswith(f"error: {option[0]} is for tables, and iris.kt is a model\n")


@pytest.mark.parametrize(
    ("options", "target", "said"),
    [
        ({"task": "regress", "scale": "none"}, "petal_width_cm", ["task       regress", "scale      none", "as it is"]),
        ({"task": "one-class"}, None, ["task       one-class"]),
        ({"features": "nystroem:5"}, "species", ["features     nystroem:", "3: setosa, versicolor, virginica"]),
    ],
)
def test_other_models_tell_what_they_have(kerntest, options, target, said):
    SVM(**options).fit("iris.csv", target).save("other.kt")
    text = kerntest("inspect", "other.kt").out
    assert all(part in text for part in said)
    assert ("probability" in text) == ("classes" in text) == ("task" not in options)
    assert ("training rows" in text) == ("features" not in options)


def test_matrices_and_kinds_that_are_not_known_are_named(kerntest):
    SVM(kernel="precomputed").fit(np.eye(6), ["a", "b"] * 3).save("matrix.kt")
    assert "  kernel       precomputed\n" in kerntest("inspect", "matrix.kt").out
    for kernel, support in (("gaussian", 6), ("linear", None)):
        KernelPCA(2, kernel).fit(np.eye(6)).save("axes.kt", force=True)
        assert inspect_model("axes.kt").n_support == support
    Path("future.kt").write_bytes(valid_model({"kind": "forest\x1b"}, {"values": np.ones(2)}))
    assert kerntest("inspect", "future.kt").out.startswith("future.kt: forest\\x1b\n")


# Kernels.


def test_kernels_are_listed_for_people_and_for_programs(kerntest, rows):
    document, text = json.loads(kerntest("kernels", "--json").out), kerntest("kernels").out
    assert document["schema"] == "kerntest.kernels/1"
    assert max(map(len, text.splitlines())) <= 100
    for kernel in document["kernels"]:
        assert f"\n{kernel['name']}" in text
        assert "".join(kernel["formula"].split()) in "".join(text.split())
        assert {type(kernel["positive_definite"]), type(kernel["characteristic"])} == {bool}
    assert [row["formula"] for row in rows("kernels")] == [kernel["formula"] for kernel in document["kernels"]]
    assert len(document["algebra"]) == 5
    for example in document["algebra"]:
        parse_kernel(example["example"])
    assert kerntest("kernels", "extra").code == kerntest("kernels", "--format", "yaml").code == 2
