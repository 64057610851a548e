"""What the independence test takes: one table or two, which columns and which rows of them, and of what kind."""

import naive
import numpy as np
import pandas as pd
import pytest
from tolerances import assert_close
from two_variables import arrays, columns_of, frame

from kerntest import hsic_test
from kerntest.errors import DataError

MEDIAN = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}


def outcome(result):
    return result.p_value, result.statistic, result.kernel


def assert_same_numbers(one, other):
    assert one.p_value == other.p_value
    assert_close(one.statistic, other.statistic)


# One table or two

OTHERS = ("weight", "depth", "city", "new", "sold")


@pytest.mark.parametrize(
    ("options", "x", "y"),
    [
        ({"exclude": "depth,city,new,sold"}, ("weight",), ("price",)),
        ({"y_columns": "price"}, OTHERS, ("price",)),
        ({"x_columns": "price"}, ("price",), OTHERS),
        ({"y_columns": "price", "exclude": "sold"}, OTHERS[:-1], ("price",)),
        ({"x_columns": "weight:city", "y_columns": "price"}, ("weight", "depth", "city"), ("price",)),
        ({"x_columns": ["new", "depth"], "y_columns": "p*"}, ("depth", "new"), ("price",)),
        ({"x_columns": "*e*", "y_columns": "city", "exclude": "new"}, ("weight", "depth", "price"), ("city",)),
        ({"x_columns": None, "y_columns": ["price"], "exclude": "sold,new"}, ("weight", "depth", "city"), ("price",)),
    ],
)
def test_columns_of_one_table_are_those_of_two(options, x, y):
    result = hsic_test(frame(), **options)
    assert (result.columns_x, result.columns_y) == (x, y)
    assert_same_numbers(result, hsic_test(frame()[list(x)], frame()[list(y)]))


def test_columns_of_two_tables_are_chosen_in_each():
    data = frame()
    first, second = data[["weight", "depth", "city"]], data[["price", "new", "depth"]]
    result = hsic_test(first, second, x_columns="weight,city", exclude="depth,new")
    assert (result.columns_x, result.columns_y) == (("weight", "city"), ("price",))
    assert_same_numbers(result, hsic_test(data, x_columns="weight,city", y_columns="price"))
    # A name may stand in both.
    both = hsic_test(first, second, x_columns="depth", y_columns="depth", **MEDIAN)
    assert both.columns == ("depth", "depth")
    assert_close(both.effect_size, 1.0)


# Missing values


def test_rows_with_missing_values_on_either_side_can_be_dropped():
    data = frame()
    data.loc[[2, 5], "weight"] = np.nan
    data.loc[[5, 7, 30, 31], "city"] = None
    options = {"x_columns": "weight,depth", "y_columns": "city,price"}
    result = hsic_test(data, missing="drop", **options)
    assert outcome(result) == outcome(hsic_test(data.drop(index=[2, 5, 7, 30, 31]), **options))
    assert result.warnings[0] == "data: 5 rows of 40 with missing values left out; exclude='city' keeps more of them"
    assert [(one.rows, one.rows_used) for one in result.provenance.inputs] == [(40, 35)]
    # A column that is alone on its side cannot be spared, and a row or two need no word.
    alone = hsic_test(data, x_columns="weight,depth", y_columns="city", missing="drop").warnings[0]
    assert alone == "data: 5 rows of 40 with missing values left out"
    assert not hsic_test(data, x_columns="weight", y_columns="price", missing="drop").warnings
    # Those of columns that are not used do not matter.
    assert hsic_test(data, x_columns="depth", y_columns="price").n == 40
    assert hsic_test(data, x_columns="weight", y_columns="price", missing="drop").n == 38


def holed(n, in_x, in_y):
    """Return two arrays with missing values at some places of each."""
    x, y = arrays(n, 2, 1)
    x[in_x], y[in_y] = np.nan, np.nan
    return x, y


def test_rows_that_are_missing_in_one_of_two_tables_are_dropped_from_both():
    complete = np.setdiff1d(np.arange(50), [0, 3, 49])
    result = hsic_test(*holed(50, ([0, 3], [0, 1]), 49), missing="drop")
    assert outcome(result) == outcome(hsic_test(*(side[complete] for side in arrays(50, 2, 1))))
    assert [(one.rows, one.rows_used) for one in result.provenance.inputs] == [(50, 47)] * 2


def with_constant(side):
    x, y = arrays()
    (x if side == "x" else y)[:] = 3.0
    return x, y


TOO_FEW = "; the test needs at least 4"


@pytest.mark.parametrize(
    ("data", "missing", "message", "code"),
    [
        ((arrays()[0], arrays(39)[1]), "error", "^x has 40 rows and y 39: rows cannot be paired$", "rows_do_not_pair"),
        (
            holed(8, 0, 1),
            "error",
            r"^x has 2 missing values \(NaN\): x1 1, x2 1 \(the first in row 1\)$",
            "missing_values",
        ),
        (
            holed(9, [], [4, 8]),
            "error",
            r"^y has 2 missing values \(NaN\): y1 2 \(the first in row 5\)$",
            "missing_values",
        ),
        ((frame()[["weight", "city"]].shift(1),), "error", "^data has 2 .*: weight 1, city 1 ", "missing_values"),
        *((arrays(n), "error", f"^x and y has {n} rows?{TOO_FEW}", "too_few_rows") for n in (1, 2, 3)),
        (holed(8, slice(3), slice(5, None)), "drop", f"2 rows without missing values{TOO_FEW}", "too_few_rows"),
        # Each file has complete rows of its own, but none are complete in both: the message must not blame one of them.
        (holed(8, slice(5), [0, 1, 2, 3, 5, 6, 7]), "drop", "^x and y has 0 rows", "too_few_rows"),
        *(
            (with_constant(one), "error", f"^no column is left to test among {one}1 of {one}: ", "no_columns")
            for one in "xy"
        ),
    ],
)
def test_data_that_cannot_be_used(data, missing, message, code):
    with pytest.raises(DataError, match=message) as caught:
        hsic_test(*data, missing=missing)
    assert caught.value.code == f"data.{code}"
    assert caught.value.exit_code == 3
    assert ("mmd_test" in caught.value.hint) == (code == "rows_do_not_pair")


# Kinds of columns


def test_text_and_booleans_are_categories_and_dates_are_numbers():
    data = frame()
    result = hsic_test(data, x_columns="city", y_columns="new", kernel_x="delta", kernel_y="delta")
    K, L = (naive.gram(naive.delta, [[value] for value in data[name]]) for name in ("city", "new"))
    assert_close(result.hsic_biased, naive.hsic_biased(K, L))
    days = (data["sold"] - pd.Timestamp("1970-01-01")).dt.days.astype(float)
    dated, counted = (hsic_test(one[["sold", "price"]], **MEDIAN) for one in (data, data.assign(sold=days)))
    assert outcome(dated) == outcome(counted)


@pytest.mark.parametrize("name", ["x1", "y1"])
def test_numbers_can_be_categories(name):
    """In one table, or in one of two, which have columns of their own: a name needs to be in one of them only."""
    x, y = (side.round() for side in arrays(50))
    data = columns_of(x, y)
    result = hsic_test(data, categorical=name)
    assert [kernel.startswith("hamming(") for kernel in (result.kernel_x, result.kernel_y)] == [
        name == "x1",
        name == "y1",
    ]
    for pair in ((data[["x1"]], data[["y1"]]), (x, y)):
        assert_same_numbers(hsic_test(*pair, categorical=name), result)


# Columns that cannot tell anything


def test_constant_and_identifying_columns_and_such_that_no_kernel_names_are_left_out():
    data = frame().assign(batch=7.0, name=[f"item {row}" for row in range(40)])
    result = hsic_test(data, y_columns="price")
    assert outcome(result) == outcome(hsic_test(frame(), y_columns="price"))
    assert result.columns_left_out == ("batch", "name")
    assert result.columns_x == OTHERS
    text = " | ".join(result.warnings)
    assert "column 'batch' has one value in all rows and is left out" in text
    assert "column 'name' has 40 different values in 40 rows: it identifies rows and is left out" in text
    options = {"x_columns": "weight,depth,city,batch,name", "y_columns": "price"}
    result = hsic_test(data, kernel_x="weight: gaussian; city: delta", **options)
    assert result.columns == ("weight", "city", "price")
    assert set(result.columns_left_out) == {"depth", "batch", "name"}


def test_a_column_left_out_of_one_table_is_said_to_be_even_if_the_other_has_its_name():
    x = pd.DataFrame({"a": np.ones(30), "b": np.arange(30.0) ** 2})
    result = hsic_test(x, pd.DataFrame({"a": np.arange(30.0)[::-1] % 7}))
    assert (result.columns_x, result.columns_y, result.columns_left_out) == (("b",), ("a",), ("a",))


def test_a_column_that_is_constant_once_rows_are_dropped():
    x, y = arrays(30, 2, 1)
    x[:, 1] = 0.0
    x[4, 1], y[4] = 1.0, np.nan
    result = hsic_test(x, y, missing="drop")
    assert (result.columns, result.columns_left_out) == (("x1", "y1"), ("x2",))


# Few rows, few values


@pytest.mark.parametrize("n", [4, 5, 6, 7])
@pytest.mark.parametrize("options", [{}, {"null": "moments"}, {"resampling": "random"}], ids=str)
def test_the_fewest_rows(n, options):
    result = hsic_test(*arrays(n, seed=n), **options)
    assert result.n == n
    assert 0 < result.p_value <= 1


@pytest.mark.parametrize("kernel", ["auto", "delta", "gaussian(1)", "linear"])
def test_columns_of_two_values(kernel):
    """Every characteristic kernel on two values is the same test: that of the fourfold table."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, 40).astype(float)
    y = np.where(rng.random(40) < 0.75, x, 1 - x)
    result = hsic_test(x, y, kernel_x=kernel, kernel_y=kernel)
    assert result.p_value == hsic_test(x, y, kernel_x="delta", kernel_y="delta").p_value
    assert_close(result.effect_size, hsic_test(x, y, **MEDIAN).effect_size)
