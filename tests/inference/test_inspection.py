"""What `inspect_table` reports, and that it agrees with what a test then does."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tolerances import assert_close

import kerntest
from kerntest import inspect_table, mmd_test
from kerntest.errors import DataError, UsageError
from kerntest.report.write import json_text

SAMPLES = Path(__file__).parents[2] / "sample_data"


def one(source, **options):
    """Return the report of a table's only column."""
    (column,) = inspect_table(source, **options).columns
    return column


def test_a_file_of_the_sample_data():
    report = kerntest.inspect_table(SAMPLES / "before.csv", name="before.csv")
    assert isinstance(report, kerntest.TableReport)
    assert (report.schema, report.command) == ("kerntest.table/1", "inspect")
    assert (report.name, report.format, report.delimiter, report.compression) == ("before.csv", "csv", ",", None)
    assert (report.rows, report.bytes) == (400, (SAMPLES / "before.csv").stat().st_size)
    assert len(report.sha256) == 64
    assert [column.type for column in report.columns] == ["number"] * 4 + ["text", "boolean"]
    assert {(column.use, column.note, column.missing) for column in report.columns} == {("used", None, 0)}
    frame = pd.read_csv(SAMPLES / "before.csv")
    for column in report.columns[:4]:
        values = frame[column.name]
        assert (column.different, column.minimum, column.maximum) == (values.nunique(), values.min(), values.max())
        assert_close([column.mean, column.deviation], [values.mean(), values.std(ddof=0)])
        assert column.median == values.median()
    counts = frame["payment"].value_counts()
    assert [(level.value, level.count) for level in report.columns[4].levels] == list(counts.items())
    # A boolean has its values in lower case, as a CSV file has them.
    assert {level.value for level in report.columns[5].levels} == {"true", "false"}


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
    assert missing.note == "--missing drop leaves 1 row out, otherwise a test stops"
    assert (day.type, day.minimum, day.mean, day.maximum) == ("date", "2024-01-31", None, "2024-03-01T12:00:00.000000")
    assert day.note == "a date differs between any two batches"
    assert counter.note == "counts the rows or identifies them: consider --exclude id"
    assert (number.use, number.note) == ("left out", "has one value in all rows, unless the other file has others")
    assert (text.use, text.missing, text.different) == ("left out", 15, 1)


def test_the_most_frequent_values_are_five_at_most():
    column = one(pd.DataFrame({"t": [f"v{i}" for i in range(9) for _ in range(10 - i)]}))
    assert [(level.value, level.count) for level in column.levels] == [(f"v{i}", 10 - i) for i in range(5)]
    assert column.different == 9


def test_columns_are_chosen_as_for_a_test():
    report = inspect_table(SAMPLES / "before.csv", columns="items,p*,order_value_eur:items", exclude="items")
    assert [column.name for column in report.columns] == ["order_value_eur", "payment"]
    for source, options, message in (
        (SAMPLES / "before.csv", {"columns": "itms"}, r"column 'itms' is not in .*before\.csv"),
        (np.ones((2, 1)), {"exclude": "x1"}, "no column of x is selected"),
    ):
        with pytest.raises(UsageError, match=message):
            inspect_table(source, **options)


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
