"""Two tables laid one below the other, without the columns that tell nothing."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerntest import read_table
from kerntest.data.rows import pool
from kerntest.errors import DataError


def pooled(x, y):
    return pool(read_table(pd.DataFrame(x), name="x"), read_table(pd.DataFrame(y), name="y"))


def refused(match, code, x, y):
    with pytest.raises(DataError, match=match) as caught:
        pooled(x, y)
    assert (caught.value.exit_code, caught.value.code) == (3, code)
    assert caught.value.hint
    return caught.value


def test_rows_of_x_first_and_levels_of_both():
    result = pooled(
        {"a": [1.0, 2.0], "t": ["m", "z"], "b": [True, True], "c": [5, 6]},
        {"a": [3.0, 4.0, 5.0], "t": ["a", "m", "m"], "b": [False, True, True], "c": [7, 8, 9]},
    )
    assert (result.n_x, result.n_y) == (2, 3)
    assert (result.numeric_names, result.category_names) == (("a", "c"), ("t", "b"))
    np.testing.assert_array_equal(result.numeric, [[1, 5], [2, 6], [3, 7], [4, 8], [5, 9]])
    np.testing.assert_array_equal(result.codes, [[1, 1], [2, 1], [0, 0], [1, 1], [1, 1]])
    assert result.levels == (("a", "m", "z"), ("false", "true"))
    assert (result.left_out, result.warnings) == ((), ())
    assert (result.numeric.dtype, result.codes.dtype) == (np.float64, np.int64)


def test_only_one_kind_of_column():
    numbers = pooled({"a": [1, 2]}, {"a": [3, 4]})
    assert (numbers.numeric.shape, numbers.codes.shape) == ((4, 1), (4, 0))
    texts = pooled({"a": ["p", "q"]}, {"a": ["p", "p"]})
    assert (texts.numeric.shape, texts.codes.shape) == ((4, 0), (4, 1))


def test_constant_columns_are_left_out():
    result = pooled(
        {"version": [3, 3], "a": [1, 2], "t": ["u", "u"], "b": [True, True]},
        {"version": [3, 3], "a": [1, 2], "t": ["u", "u"], "b": [True, True]},
    )
    assert result.left_out == ("version", "t", "b")
    assert result.warnings[0] == "column 'version' has one value in all rows and is left out"
    # Constant within each table, but not over both: the plainest difference there is.
    assert pooled({"a": [1, 1]}, {"a": [2, 2]}).left_out == ()
    assert pooled({"a": ["u", "u"]}, {"a": ["v", "v"]}).left_out == ()


def test_columns_that_identify_rows_are_left_out():
    def batch(start, n_different, n):
        return {"id": [f"id{start + min(i, n_different - 1)}" for i in range(n)], "a": list(range(n))}

    result = pooled(batch(0, 20, 20), batch(100, 20, 20))
    assert result.left_out == ("id",)
    assert result.warnings == ("column 'id' has 40 different values in 40 rows: it identifies rows and is left out",)
    # 36 of 40 is not more than 90 %; and of few rows nothing can be told.
    assert pooled(batch(0, 18, 20), batch(100, 18, 20)).left_out == ()
    assert pooled(batch(0, 9, 9), batch(100, 10, 10)).left_out == ()
    assert pooled(batch(0, 10, 10), batch(100, 10, 10)).left_out == ("id",)
    numbers = {"a": np.arange(50.0)}
    assert pooled(numbers, numbers).left_out == ()


def test_dates_are_numbers():
    days = {"day": pd.to_datetime(["1970-01-01", "1970-01-03"])}
    result = pooled(days, days)
    assert result.numeric[:, 0].tolist() == [0, 2, 0, 2]
    assert result.warnings == ()


def test_no_column_left():
    same = {"v": [1, 1], "w": ["a", "a"]}
    refused(
        "no column of x and y is left to compare: column 'v' has one value in all rows", "data.no_columns", same, same
    )


@pytest.mark.parametrize(("n_x", "n_y", "match"), [(1, 5, "^x has 1 row; the test"), (5, 1, "^y has 1 row; the test")])
def test_too_few_rows(n_x, n_y, match):
    error = refused(match, "data.too_few_rows", {"a": np.arange(n_x)}, {"a": np.arange(n_y)})
    assert "at least 2" in error.message


def test_missing_values_are_refused():
    refused("^y has 1 missing value: a 1", "data.missing_values", {"a": [1, 2]}, {"a": [1, None]})


WORDS = st.lists(st.sampled_from(["", "a", "b", "B", "é", "zz"]), min_size=2, max_size=15)


@given(WORDS, WORDS)
def test_codes_stand_for_the_values(in_x, in_y):
    x = read_table(pd.DataFrame({"t": in_x, "k": np.arange(len(in_x))}), name="x")
    y = read_table(pd.DataFrame({"t": in_y, "k": np.arange(len(in_y))}), name="y")
    result = pool(x, y)
    if len({*in_x, *in_y}) == 1 or "t" in result.left_out:
        assert result.left_out == ("t",)
        return
    assert result.levels == (tuple(sorted({*in_x, *in_y})),)
    assert [result.levels[0][code] for code in result.codes[:, 0]] == in_x + in_y
