import csv
import gzip
import io
import json
import re
import sys
from pathlib import Path

import pytest

from kerntest import inspect_table

SAMPLES = Path(__file__).parents[2] / "sample_data"


@pytest.fixture(autouse=True)
def among_the_sample_data(monkeypatch):
    monkeypatch.chdir(SAMPLES)


def test_the_table_for_people(kerntest):
    outcome = kerntest("inspect", "before.csv")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "before.csv: 400 rows, 6 columns"
    assert lines[1].startswith("  format  csv with delimiter ',', ")
    assert lines[2].split() == ["column", "type", "missing", "different", "values", "in", "a", "test"]
    assert re.fullmatch(r"  order_value_eur +number +0 +387 +11\.22 to 181\.1, mean 54\.64, sd 28\.48, +used", lines[3])
    assert lines[4].split() == ["median", "49.09"]
    assert re.fullmatch(r"  payment +text +0 +3 +card 167, invoice 126, wallet 107 +used", lines[-2])


def test_complete_rows_and_numbers_among_other_values(kerntest, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    path = tmp_path / "a.csv"
    path.write_text("price,t\n" + "".join(f"{k if k % 8 else '?'},{k if k < 8 else 'x'}\n" for k in range(32)) + "5,\n")
    text = kerntest("inspect", str(path)).out
    assert "32 of 33 rows complete" in text
    assert "88 % of the values are numbers" in text
    report = json.loads(kerntest("inspect", str(path), "--json", "--na", "?").out)
    assert report["complete_rows"] == 28
    price, other = report["columns"]
    assert (price["type"], price["numbers"], price["missing"]) == ("number", None, 4)
    assert (other["type"], other["numbers"]) == ("text", 0.25)
    assert {"mean", "median", "deviation"} <= price.keys()


def test_the_json_is_the_record(kerntest):
    outcome = kerntest("inspect", "with_missing.csv", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out) == inspect_table("with_missing.csv").to_dict()


def test_the_csv_has_a_line_for_each_column(kerntest):
    rows = list(csv.DictReader(io.StringIO(kerntest("inspect", "before.csv", "--format", "csv").out)))
    assert [row["name"] for row in rows][:2] == ["order_value_eur", "items"]
    assert rows[4]["levels"] == "card=167;invoice=126;wallet=107"
    assert (rows[0]["minimum"], rows[0]["use"], rows[0]["note"]) == ("11.22", "used", "")


def test_options_reach_the_library(kerntest):
    outcome = kerntest(
        "inspect",
        "before.csv",
        "--columns",
        "items,pay*",
        "--columns",
        "first_order",
        "--exclude",
        "payment",
        "--json",
        "--categorical",
        "items",
    )
    columns = json.loads(outcome.out)["columns"]
    assert [(column["name"], column["type"]) for column in columns] == [("items", "text"), ("first_order", "boolean")]
    assert columns[0]["levels"][0]["value"] == "1"


def test_the_decimal_mark(kerntest, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("v;w\n1,5;1\n2,5;2\n")
    outcome = kerntest("inspect", str(path), "--json")
    assert json.loads(outcome.out)["columns"][0]["maximum"] == 2.5
    assert outcome.err.startswith("warning: ")
    assert "decimal comma" in outcome.err
    assert kerntest("inspect", str(path), "--decimal", ",", "--json").err == ""
    wrong = kerntest("inspect", str(path), "--decimal", ";")
    assert (wrong.code, wrong.out) == (2, "")
    shown = kerntest("inspect", str(path))
    assert "Warnings:\n  - " in shown.out
    assert shown.err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.csv"], 3, "error: nowhere.csv does not exist"),
        (["no*.csv"], 3, "error: no file matches no*.csv"),
        (["before.csv", "--columns", "itms"], 2, "error: column 'itms' is not in before.csv"),
        (["before.csv", "--format", "yaml"], 2, "error: --format must be table, json or csv"),
        ([], 2, "error: "),
    ],
)
def test_mistakes(kerntest, arguments, code, message):
    outcome = kerntest("inspect", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(message)


def test_a_terminal_is_no_table(kerntest, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    outcome = kerntest("inspect", "-")
    assert outcome.code == 2
    assert "stdin is closed" in outcome.err


def test_stdin_and_many_files(kerntest, tmp_path):
    packed = tmp_path / "before.csv.gz"
    packed.write_bytes(gzip.compress(Path("before.csv").read_bytes()))
    piped = kerntest("inspect", "-", stdin=packed)
    assert piped.out.startswith("<stdin>: 400 rows, 6 columns\n  format  csv with delimiter ',', compressed with gzip")
    many = kerntest("inspect", "iris_*.csv").out
    assert many.startswith("iris_*.csv: 100 rows, 4 columns\n")
    assert "2 files, iris_versicolor.csv to iris_virginica.csv" in many


@pytest.fixture
def wide(tmp_path):
    path = tmp_path / "[bold]wide.csv"
    names = [f"[red]column {i}[/red] :smile: \\[x" for i in range(200)]
    rows = [",".join("nan" if i == 7 else str(i * j % 11) for i in range(200)) for j in range(30)]
    path.write_text("\n".join([",".join(names), *rows]))
    return path


@pytest.mark.parametrize("width", [40, 150])
def test_a_wide_table_is_a_long_list_and_nothing_is_cut_off(kerntest, wide, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    text, columns = kerntest("inspect", wide).out, inspect_table(wide).columns
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in text
    assert "[bold]wide.csv" in text.replace("\n", "")
    if width == 150:
        # Those that hold one value and the empty one take a line or two more.
        assert len(lines) <= 203 + 2 * sum(column.use != "used" for column in columns)
        for column in columns:
            assert f"  {column.name}  " in text


def test_names_and_values_cannot_move_the_cursor(kerntest, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "a.csv"
    path.write_text('"na\x1b[2Jme",t\n1,"a\x07\nb"\n2,c\n')
    text = kerntest("inspect", path).out
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "na\\x1b[2Jme" in text
    assert "a\\x07\\nb 1, c 1" in text


@pytest.mark.parametrize("name", ["before.csv", "iris.csv", "wine.csv", "breast_cancer.csv", "with_missing.csv"])
def test_all_columns_of_the_sample_data_can_be_used(kerntest, name):
    assert {column["use"] for column in json.loads(kerntest("inspect", name, "--json").out)["columns"]} == {"used"}


@pytest.mark.parametrize("width", [50, 80])
def test_no_word_of_a_verdict_is_lost_on_a_narrow_screen(kerntest, tmp_path, monkeypatch, width):
    path = tmp_path / "a.csv"
    rows = [f"{value},{'abcdefgh' * 4}{value}" for value in range(60)]
    path.write_text("\n".join(["a measurement with a rather long name in millimetres,text", *rows]))
    monkeypatch.setenv("COLUMNS", str(width))
    out = kerntest("inspect", path).out
    assert max(map(len, out.splitlines())) <= width
    for word in ("inatest", "identifie", "rows"):
        assert word in "".join(out.split())
