"""Missing values are counted and refused, or their rows left out."""

import numpy as np
import pandas as pd
import pytest

from kerntest import read_table
from kerntest.data.rows import apply_missing, check_usable
from kerntest.errors import DataError


@pytest.fixture
def sales(tmp_path):
    rows = ["1,a,true,2024-01-01"] * 40
    for row in (5, 6, 7):
        rows[row] = "NA,a,true,2024-01-01"
    rows[7] = ",,,"
    path = tmp_path / "sales.csv"
    path.write_text("price,city,ok,day\n" + "\n".join(rows) + "\n")
    return read_table(path, name="sales.csv")


def test_error_counts_per_column(sales):
    with pytest.raises(
        DataError, match=r"^sales\.csv has 6 missing values: price 3, city 1, ok 1, day 1 \(the first in line 7\)$"
    ) as caught:
        apply_missing(sales, "error")
    error = caught.value
    assert (error.exit_code, error.code) == (3, "data.missing_values")
    assert error.hint == "--missing drop leaves those rows out; --exclude price,city,ok,day leaves the columns out"
    assert error.where == {"file": "sales.csv", "line": 7, "column": "price"}


def test_one_missing_value_in_a_frame():
    table = read_table(pd.DataFrame({"a": [1.0, 2.0], "unit price": [1.0, None]}))
    with pytest.raises(DataError, match=r"^x has 1 missing value: unit price 1 \(the first in row 2\)$") as caught:
        apply_missing(table, "error")
    assert caught.value.hint.endswith("--exclude 'unit price' leaves the column out")
    assert caught.value.where["row"] == 2


def test_drop(sales):
    complete, n_dropped = apply_missing(sales, "drop")
    assert (n_dropped, complete.n_rows) == (3, 37)
    assert all(column.n_missing == 0 and len(column.values) == 37 for column in complete.columns)
    assert complete.place(5) == "line 10"
    assert apply_missing(complete, "error") == (complete, 0)


def test_only_selected_columns_count(sales):
    complete, n_dropped = apply_missing(sales.select(["city"]), "drop")
    assert (n_dropped, complete.n_rows) == (1, 39)


def test_nothing_left():
    table = read_table(pd.DataFrame({"a": [1.0, None], "b": [None, None]}), name="y")
    with pytest.raises(DataError, match=r"^every row of y has a missing value: a 1, b 2$") as caught:
        apply_missing(table, "drop")
    assert (caught.value.exit_code, caught.value.code) == (3, "data.no_rows_left")
    assert "--exclude b" in caught.value.hint


def test_infinities_of_arrays_and_frames_name_the_row():
    table = read_table(np.array([[1.0, 2.0], [3.0, -np.inf], [np.inf, -np.inf]]))
    with pytest.raises(DataError, match=r"^x, row 3: column 'x1' holds 'inf', .* \(1 such value\)$") as caught:
        check_usable(table)
    assert (caught.value.exit_code, caught.value.code) == (3, "data.infinite_values")
    assert caught.value.where == {"file": "x", "row": 3, "column": "x1", "value": "inf"}
    with pytest.raises(DataError, match=r"row 2: column 'x2' holds '-inf', .* \(2 such values\)$"):
        check_usable(table.select(["x2"]))
    assert check_usable(read_table(np.array([1.0, np.nan]))).n_rows == 2
