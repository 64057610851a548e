"""What the independence test takes: one table or two, which columns and which rows of them, and of what kind."""

import naive
import numpy as np
import pandas as pd
import pytest
from tolerances import STATISTIC, assert_close
from two_variables import arrays, columns_of, frame

from kerntest import hsic_test
from kerntest.errors import DataError

MEDIAN = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}


def outcome(result):
    return result.p_value, result.statistic, result.kernel


def same_numbers(one, other):
    """Say whether two results are equal but for rounding."""
    return one.p_value == other.p_value and np.isclose(one.statistic, other.statistic, rtol=STATISTIC, atol=0)


# One table or two


def test_two_columns_need_no_names():
    data = frame()[["weight", "price"]]
    result = hsic_test(data)
    assert (result.columns_x, result.columns_y) == (("weight",), ("price",))
    assert outcome(result) == outcome(hsic_test(data, x_columns="weight", y_columns="price"))
    assert outcome(hsic_test(frame(), exclude="depth,city,new,sold")) == outcome(result)
    assert hsic_test(np.column_stack(arrays())).columns == ("x1", "x2")


def test_one_group_alone_is_tested_against_all_other_columns():
    data = frame()
    others = ("weight", "depth", "city", "new", "sold")
    by_y = hsic_test(data, y_columns="price", null="moments")
    assert (by_y.columns_x, by_y.columns_y) == (others, ("price",))
    by_x = hsic_test(data, x_columns="price", null="moments")
    assert (by_x.columns_x, by_x.columns_y) == (("price",), others)
    assert_close([by_x.p_value, by_x.statistic], [by_y.p_value, by_y.statistic])
    assert hsic_test(data, y_columns="price", exclude="sold").columns_x == others[:-1]


@pytest.mark.parametrize(
    ("options", "x", "y"),
    [
        ({"x_columns": "weight:city", "y_columns": "price"}, ("weight", "depth", "city"), ("price",)),
        ({"x_columns": ["new", "depth"], "y_columns": "p*"}, ("depth", "new"), ("price",)),
        ({"x_columns": "*e*", "y_columns": "city", "exclude": "new"}, ("weight", "depth", "price"), ("city",)),
        ({"x_columns": [], "y_columns": ["price"], "exclude": "sold,new"}, ("weight", "depth", "city"), ("price",)),
    ],
)
def test_names_ranges_and_wildcards(options, x, y):
    result = hsic_test(frame(), **options)
    assert (result.columns_x, result.columns_y) == (x, y)


def test_columns_of_two_tables_are_chosen_in_each():
    data = frame()
    first, second = data[["weight", "depth", "city"]], data[["price", "new", "depth"]]
    result = hsic_test(first, second, x_columns="weight,city", exclude="depth,new")
    assert (result.columns_x, result.columns_y) == (("weight", "city"), ("price",))
    assert same_numbers(result, hsic_test(data, x_columns="weight,city", y_columns="price"))
    # A name may stand in both.
    both = hsic_test(first, second, x_columns="depth", y_columns="depth", **MEDIAN)
    assert both.columns == ("depth", "depth")
    assert_close(both.effect_size, 1.0)


def test_rows_of_two_tables_must_pair():
    x, y = arrays()
    with pytest.raises(DataError, match=r"^x has 40 rows and y 39: rows cannot be paired$") as caught:
        hsic_test(x, y[:-1])
    assert (caught.value.code, caught.value.exit_code) == ("data.rows_do_not_pair", 3)
    assert "kerntest mmd" in caught.value.hint


# Missing values


def holed(x_rows=(2, 5), y_rows=(5, 7, 30)):
    """Return a frame with missing numbers and text, and the rows that have none."""
    data = frame()
    data.loc[list(x_rows), "weight"] = np.nan
    data.loc[list(y_rows), "city"] = None
    kept = np.setdiff1d(np.arange(len(data)), [*x_rows, *y_rows])
    return data, kept


@pytest.mark.parametrize("options", [{}, {"null": "moments"}], ids=str)
def test_rows_with_missing_values_on_either_side_can_be_dropped(options):
    data, kept = holed()
    options |= {"x_columns": "weight,depth", "y_columns": "city,price"}
    result = hsic_test(data, missing="drop", **options)
    whole = hsic_test(data.iloc[kept], **options)
    assert outcome(result) == outcome(whole)
    assert result.n == 36
    assert result.warnings[0] == "data: 4 rows of 40 with missing values left out"
    assert [(one.rows, one.rows_used) for one in result.provenance.inputs] == [(40, 36)]


def test_missing_values_of_columns_that_are_not_used_do_not_matter():
    data, kept = holed()
    options = {"x_columns": "depth", "y_columns": "price"}
    assert outcome(hsic_test(data, **options)) == outcome(hsic_test(frame(), **options))
    one_sided = hsic_test(data, x_columns="weight", y_columns="price", missing="drop")
    assert one_sided.n == 38
    assert len(kept) == 36


def test_rows_that_are_missing_in_one_of_two_tables_are_dropped_from_both():
    x, y = arrays(50, 2, 1)
    complete = np.setdiff1d(np.arange(50), [0, 3, 49])
    x_holed, y_holed = x.copy(), y.copy()
    x_holed[[0, 3], [0, 1]] = np.nan
    y_holed[49] = np.nan
    result = hsic_test(x_holed, y_holed, missing="drop")
    assert outcome(result) == outcome(hsic_test(x[complete], y[complete]))
    assert result.warnings[0] == "x and y: 3 rows of 50 with missing values left out"
    assert [(one.rows, one.rows_used) for one in result.provenance.inputs] == [(50, 47)] * 2


def test_missing_values_are_refused_unless_they_may_be_dropped():
    data, _ = holed()
    message = r"^data has 5 missing values: weight 2, city 3 \(the first in row 3\)$"
    with pytest.raises(DataError, match=message) as caught:
        hsic_test(data, x_columns="weight,depth", y_columns="city,price")
    assert caught.value.code == "data.missing_values"
    x, y = arrays()
    y[[4, 9]] = np.nan
    with pytest.raises(DataError, match=r"^y has 2 missing values: y1 2 \(the first in row 5\)$"):
        hsic_test(x, y)


def test_too_few_rows_without_missing_values():
    x, y = arrays(8)
    x[:3], y[5:] = np.nan, np.nan
    with pytest.raises(DataError, match="2 rows without missing values; the test needs at least 4") as caught:
        hsic_test(x, y, missing="drop")
    assert caught.value.code == "data.too_few_rows"
    # Each file has complete rows of its own, but none are complete in both: the message must not blame one of them.
    x[3:5] = np.nan
    y[:4] = np.nan
    with pytest.raises(DataError, match="x and y"):
        hsic_test(x, y, missing="drop")


# Kinds of columns


def test_text_and_booleans_are_categories():
    data = frame()
    result = hsic_test(data, x_columns="city", y_columns="new", kernel_x="delta", kernel_y="delta")
    K, L = (naive.gram(naive.delta, [[value] for value in data[name]]) for name in ("city", "new"))
    A, B = np.array(naive.doubly_centred(K)), np.array(naive.doubly_centred(L))
    assert_close(result.hsic_biased, np.vdot(A, B) / 40**2)
    default = hsic_test(data, x_columns="city,new", y_columns="price")
    assert "hamming(" in default.kernel_x
    assert default.kernel_y.startswith(("gaussian", "laplacian"))


def test_dates_are_numbers():
    data = frame()
    days = (data["sold"] - pd.Timestamp("1970-01-01")).dt.days.astype(float)
    dated = hsic_test(data, x_columns="sold", y_columns="price", **MEDIAN)
    counted = hsic_test(data.assign(sold=days), x_columns="sold", y_columns="price", **MEDIAN)
    assert outcome(dated) == outcome(counted)


@pytest.mark.parametrize("side", ["x", "y"])
def test_numbers_can_be_categories_in_one_table(side):
    data = columns_of(*arrays(50)).round()
    result = hsic_test(data, categorical=f"{side}1")
    kernels = {"x": result.kernel_x, "y": result.kernel_y}
    assert kernels[side].startswith("hamming(")
    assert not kernels["y" if side == "x" else "x"].startswith("hamming(")


@pytest.mark.parametrize("name", ["x1", "y1"])
def test_numbers_can_be_categories_in_one_of_two_tables(name):
    """The tables of a pair have columns of their own: a name needs to be in one of them only."""
    data = columns_of(*arrays(50)).round()
    assert same_numbers(hsic_test(data[["x1"]], data[["y1"]], categorical=name), hsic_test(data, categorical=name))


def test_columns_of_two_arrays_have_different_names():
    x, y = (side.round() for side in arrays(50))
    assert hsic_test(x, y, categorical="y1").kernel_y.startswith("hamming(")
    assert hsic_test(x, y, y_columns="y1").columns == ("x1", "y1")


# Columns that cannot tell anything


def test_constant_and_identifying_columns_and_such_that_no_kernel_names_are_left_out():
    data = frame().assign(batch=7.0, name=[f"item {row}" for row in range(40)])
    result = hsic_test(data, y_columns="price")
    assert outcome(result) == outcome(hsic_test(frame(), y_columns="price"))
    assert result.columns_left_out == ("batch", "name")
    assert result.columns_x == ("weight", "depth", "city", "new", "sold")
    text = " | ".join(result.warnings)
    assert "column 'batch' has one value in all rows and is left out" in text
    assert "column 'name' has 40 different values in 40 rows: it identifies rows and is left out" in text
    options = {"x_columns": "weight,depth,city,batch,name", "y_columns": "price"}
    result = hsic_test(data, kernel_x="weight: gaussian; city: delta", **options)
    assert result.columns == ("weight", "city", "price")
    assert set(result.columns_left_out) == {"depth", "batch", "name"}


def test_a_column_left_out_of_one_table_is_said_to_be_even_if_the_other_has_its_name():
    x = pd.DataFrame({"a": np.ones(30), "b": np.arange(30.0) ** 2})
    y = pd.DataFrame({"a": np.arange(30.0)[::-1] % 7})
    result = hsic_test(x, y)
    assert (result.columns_x, result.columns_y) == (("b",), ("a",))
    assert result.columns_left_out == ("a",)


def test_a_column_that_is_constant_once_rows_are_dropped():
    x, y = arrays(30, 2, 1)
    x[:, 1] = 0.0
    x[4, 1], y[4] = 1.0, np.nan
    result = hsic_test(x, y, missing="drop")
    assert result.columns_left_out == ("x2",)
    assert result.columns == ("x1", "y1")


@pytest.mark.parametrize("constant", ["x", "y"])
def test_a_side_with_nothing_to_tell(constant):
    x, y = arrays()
    (x if constant == "x" else y)[:] = 3.0
    with pytest.raises(DataError, match=rf"^no column is left to test among {constant}1 of {constant}: ") as caught:
        hsic_test(x, y)
    assert (caught.value.code, caught.value.exit_code) == ("data.no_columns", 3)


# Few rows, few values


@pytest.mark.parametrize("n", [4, 5, 6, 7])
@pytest.mark.parametrize("options", [{}, {"null": "moments"}, {"resampling": "random"}], ids=str)
def test_the_fewest_rows(n, options):
    result = hsic_test(*arrays(n, seed=n), **options)
    assert result.n == n
    assert 0 < result.p_value <= 1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_fewer_rows_are_refused(n):
    with pytest.raises(DataError, match=f"{n} row.*the test needs at least 4") as caught:
        hsic_test(*arrays(n))
    assert (caught.value.code, caught.value.exit_code) == ("data.too_few_rows", 3)


@pytest.mark.parametrize("kernel", ["auto", "delta", "gaussian(1)", "linear"])
def test_columns_of_two_values(kernel):
    """Every characteristic kernel on two values is the same test: that of the fourfold table."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, 40).astype(float)
    y = np.where(rng.random(40) < 0.75, x, 1 - x)
    result = hsic_test(x, y, kernel_x=kernel, kernel_y=kernel)
    assert result.p_value == hsic_test(x, y, kernel_x="delta", kernel_y="delta").p_value
    assert_close(result.effect_size, hsic_test(x, y, **MEDIAN).effect_size)
