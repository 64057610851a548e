"""What `inspect_table` reports, and that it agrees with what a test then does."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kerntest import inspect_table, mmd_test
from kerntest.errors import DataError, UsageError
from kerntest.report.write import json_text


def one(source, **options):
    """Return the report of a table's only column."""
    (column,) = inspect_table(source, **options).columns
    return column


def test_the_json_is_strict_whatever_is_in_the_table():
    frame = pd.DataFrame({"inf": [np.inf, 1.0], "huge": [1.7e308, 1.7e308], "none": [np.nan, np.nan], "i": [[1], [2]]})
    columns = json.loads(json_text(inspect_table(frame).to_dict()))["columns"]
    assert [column["use"] for column in columns] == ["refused", "left out", "refused", "refused"]
    assert columns[1]["mean"] == 1.7e308
    assert columns[2]["note"] == "has no values"


def test_values_that_are_not_numbers_have_their_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("price\n" + "".join("abc\n" if i == 35 else f"{i}\n" for i in range(100)))
    column = one(path)
    assert (column.type, column.use, column.line, column.value) == ("number", "refused", 37, "abc")
    assert column.note == "line 37: holds 'abc', which is not a number (99 of 100 values are)"
    assert (column.minimum, column.maximum, column.levels) == (0, 99, ())
    as_text = one(path, categorical="price")
    assert (as_text.type, as_text.use, as_text.different) == ("text", "left out", 100)
    assert as_text.note == "has 100 different values in 100 rows: it identifies rows"
    path.write_text("v\n1\ninf\n3\n")
    column = one(path)
    assert (column.use, column.line, column.value) == ("refused", 3, "inf")
    assert column.note == "line 3: holds 'inf', which is not a finite number (1 such value)"
    assert (column.minimum, column.mean, column.maximum) == (1, 2, 3)


def test_missing_values_dates_counters_and_constants():
    frame = pd.DataFrame(
        {
            "m": [np.nan] + [float(i % 7) for i in range(29)],
            "day": pd.to_datetime(["2024-01-31T00:00"] * 29 + ["2024-03-01T12:00"]),
            "id": np.arange(30),
            "same": [1.5] * 30,
            "word": ["u", None] * 15,
        }
    )
    missing, day, counter, number, text = inspect_table(frame).columns
    assert (missing.use, missing.missing) == ("used", 1)
    assert missing.note == "missing='drop' leaves 1 row out"
    assert (day.type, day.minimum, day.mean, day.maximum) == ("date", "2024-01-31", None, "2024-03-01T12:00:00")
    assert day.note == "a date differs between any two batches"
    assert counter.note == "counts the rows or identifies them: consider exclude='id'"
    assert (number.use, number.note) == ("left out", "has one value in all rows, unless the other file has others")
    assert (text.use, text.missing, text.different) == ("left out", 15, 1)


def test_the_most_frequent_values_are_five_at_most():
    column = one(pd.DataFrame({"t": [f"v{i}" for i in range(9) for _ in range(10 - i)]}))
    assert [(level.value, level.count) for level in column.levels] == [(f"v{i}", 10 - i) for i in range(5)]
    assert column.different == 9


def test_columns_are_chosen_as_for_a_test():
    table = pd.DataFrame([[1.0] * 4], columns=["price", "items", "payment", "hours"])
    report = inspect_table(table, columns="items,p*,price:items", exclude="items")
    assert [column.name for column in report.columns] == ["price", "payment"]
    for options, message in (
        ({"columns": "itms"}, "column 'itms' is not in x"),
        ({"exclude": "*"}, "no column of x is"),
    ):
        with pytest.raises(UsageError, match=message):
            inspect_table(table, **options)


def test_the_verdicts_are_what_a_test_does():
    rows = {"a": np.arange(40.0) % 7, "k": [1] * 40, "id": [f"r{i}" for i in range(40)], "inf": [np.inf, *range(39)]}
    frame = pd.DataFrame(rows | {"n": [[i] for i in range(40)]})
    by_use = {}
    for column in inspect_table(frame).columns:
        by_use.setdefault(column.use, []).append(column.name)
    assert by_use == {"used": ["a"], "left out": ["k", "id"], "refused": ["inf", "n"]}
    assert one(pa.table({"v": [[1], [2, 3]]})).note.startswith("is of type list<")
    for name in by_use["refused"]:
        with pytest.raises(DataError):
            mmd_test(frame, frame, columns=name)
    # Two files have different identifiers.
    other = frame.assign(id=[f"s{i}" for i in range(40)])
    found = mmd_test(frame, other, exclude=by_use["refused"], permutations=1)
    assert list(found.columns_left_out) == by_use["left out"]


@pytest.mark.parametrize(
    "values", [[3.0, 1.0, 2.0], [4.0, 1.0, 2.0, 8.0], [5.0], [-1.7e308, 1.7e308, 1.6e308, 1.5e308]]
)
def test_medians_and_different_values_are_those_of_numpy(values):
    column = one(pd.DataFrame({"a": [*values, values[0], np.nan]}))
    kept = np.array([*values, values[0]])
    assert column.median == pytest.approx(np.median(kept / 2) * 2, rel=1e-15)
    assert column.different == len(values)


def test_what_leaves_no_row_is_no_way_out():
    told = str(inspect_table(pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [np.nan, np.nan, 3.0]})))
    assert "0 of 3 rows complete: a test needs missing='indicator'" in told
    told = str(inspect_table(pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [1.0, np.nan, 3.0]})))
    assert "1 of 3 rows complete: a test needs missing='drop' or missing='indicator'" in " ".join(told.split())
