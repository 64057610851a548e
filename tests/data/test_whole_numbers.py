"""Whole numbers of more digits than a floating-point number has, which identify rows."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from kerntest import inspect_table, mmd_test, read_table
from kerntest.errors import DataError
from kerntest.inference.features import inputs

FIRST = 4_611_686_018_427_388_000
NAMES = [FIRST + 3 * (k // 4) for k in range(40)]
SAID = "whole numbers of many digits were read as categories in id"


@pytest.fixture(params=["csv", "json", "parquet", "frame", "nullable", "decimal", "arrow", "beyond"])
def source(request, tmp_path):
    """Return ten cases of four rows, in every kind of source."""
    form = request.param
    names = [10 * name for name in NAMES] if form == "beyond" else NAMES
    frame, path = pd.DataFrame({"id": names, "v": np.arange(40.0) % 7}), tmp_path / f"x.{form}"
    if form in {"csv", "beyond"}:
        frame.to_csv(path, index=False)
    elif form == "json":
        frame.to_json(path, orient="records", lines=True)
    elif form == "parquet":
        frame.to_parquet(path)
    elif form == "decimal":
        table = pa.table({"id": pa.array(frame["id"]).cast(pa.decimal128(38, 0)), "v": frame["v"]})
        parquet.write_table(table, path)
    elif form == "arrow":
        return pa.table(frame)
    else:
        return frame.astype({"id": "Int64"}) if form == "nullable" else frame
    return path


def test_whole_numbers_that_doubles_merge_are_categories_with_every_digit(source):
    column = read_table(source)["id"]
    assert (column.kind, len(column.levels)) == ("text", 10)
    assert set(map(len, column.levels)) <= {19, 20}
    report = inspect_table(source)
    assert report.columns[0].different == 10
    assert any(SAID in warning for warning in report.warnings)


def test_conditions_take_every_digit(source):
    names = sorted(map(int, read_table(source)["id"].levels))
    for text, rows in (
        (f"id == {names[1]}", 4),
        (f"id == '{names[1]}'", 4),
        (f"id in ({names[0]}, {names[2]})", 8),
        (f"{names[1]} < id <= {names[4]}", 12),
        (f"id != {names[0]} and v >= 0", 36),
        ("id > 1", 40),
    ):
        assert read_table(source, where=text).n_rows == rows
    with pytest.raises(DataError, match="has no row"):
        read_table(source, where=f"id == {names[1] + 1}")


def test_numbers_that_stay_apart_stay_numbers(csv):
    times = [1_700_000_000_000_000_000 + 1_000_003 * k for k in range(40)]
    for k, name in enumerate(("x.csv", "y.csv")):
        csv("t,v\n" + "".join(f"{time + 5 * k},{time % 7}\n" for time in times), name)
    table = read_table("x.csv")
    assert (table["t"].kind, table.warnings) == ("number", ())
    # The nearest number is another time.
    assert read_table("x.csv", where=f"t == {times[3]}").n_rows == 1
    assert read_table("x.csv", where=f"t <= {times[3]}").n_rows == 4
    with pytest.raises(DataError, match="has no row"):
        read_table("x.csv", where=f"t == {times[3] + 1}")
    # Together the two files merge.
    assert any("many digits were read as categories in t" in one for one in mmd_test("x.csv", "y.csv").warnings)


def test_what_one_file_needs_as_categories_is_so_in_the_other(csv):
    csv("id,v\n" + "".join(f"{name},{k % 7}\n" for k, name in enumerate(NAMES)), "x.csv")
    # Every other case, which are apart by more than 512; and small numbers.
    csv("id,v\n" + "".join(f"{FIRST + 3 * 1000 * k},{k % 7}\n" for k in range(40)), "y.csv")
    csv("id,v\n" + "".join(f"{k % 4},{k % 7}\n" for k in range(40)), "z.csv")
    csv("id,v\n" + "".join(f"{k / 4},{k % 7}\n" for k in range(40)), "f.csv")
    assert read_table("y.csv")["id"].kind == "number"
    for name in ("y.csv", "z.csv"):
        assert mmd_test("x.csv", name).columns == ("id", "v")
    with pytest.raises(DataError, match=r"column 'id' is text in x\.csv and number in f\.csv") as caught:
        mmd_test("x.csv", "f.csv")
    assert "categorical" in caught.value.hint


def test_cases_are_told_apart_by_every_digit(csv):
    rng = np.random.default_rng(0)
    for name, shift, step in (("x.csv", 0, 64), ("y.csv", 0, 64), ("u.csv", 5000, 1024), ("w.csv", 5001, 1024)):
        cases = 1_500_000_000_000_000_000 + step * np.arange(40) + shift
        csv("pid,x\n" + "".join(f"{case},{rng.normal()}\n" for case in cases), name)
    result = mmd_test("x.csv", "y.csv", paired="pid")
    assert "40 pairs" in str(result.null)
    # Each file alone has none that merge.
    assert read_table("u.csv")["pid"].kind == "number"
    assert "80 whole clusters" in str(mmd_test("u.csv", "w.csv", cluster="pid").null)


def test_models_know_categories_by_every_digit(csv, kerntest):
    csv("id,y\n" + "".join(f"{name},{k // 4 % 2}\n" for k, name in enumerate(NAMES)), "x.csv")
    assert kerntest("svm", "x.csv", "--target", "y", "-o", "m.kt").code == 0
    # The first and the last case alone stay apart as numbers.
    pd.DataFrame({"id": [NAMES[0], NAMES[-1]]}).to_parquet("z.parquet")
    csv("id\n" + "".join(f"{NAMES[row]}\n" for row in (0, -1)), "z.csv")
    for name in ("z.csv", "z.parquet"):
        outcome = kerntest("predict", "m.kt", name)
        assert outcome.code == 0
        assert [line.split(",")[1] for line in outcome.out.splitlines()[1:]] == ["0", "1"]


def test_large_files_take_every_digit_too(tmp_path, kerntest, monkeypatch):
    """Files in pieces have the types of their first rows."""
    monkeypatch.setattr(inputs, "SMALL_BYTES", 0)
    rng = np.random.default_rng(0)
    for name, more in (("x", 0), ("y", 1)):
        frame = pd.DataFrame({"id": FIRST + 2 * rng.integers(0, 3, 3000) + more, "v": rng.normal(size=3000)})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        frame.to_parquet(tmp_path / f"{name}.parquet")
    for form in ("csv", "parquet"):
        paths = [str(tmp_path / f"{name}.{form}") for name in "xy"]
        outcome = kerntest("mmd", *paths, "--method", "features", "--json", "--where", f"id < {FIRST + 4}")
        result = json.loads(outcome.out)
        assert (result["x_rows"] if "x_rows" in result else result["n_x"]) in range(1900, 2100)
        assert result["p_value"] < 0.01
