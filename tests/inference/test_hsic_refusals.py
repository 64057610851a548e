"""What the independence test refuses, and how it says so."""

import numpy as np
import pandas as pd
import pytest
from two_variables import arrays, frame

from kerntest import hsic_test, mmd_test
from kerntest.errors import DataError, UndecidedError, UsageError

CURVES = ("moments", "gamma", "spectral", "pearson")
SERIES, COCO = {"time_series": True}, {"statistic": "coco", "permutations": 20}
KCC = COCO | {"statistic": "kcc"}
X_AND_Y, NO_INTEGER = (
    {"x_columns": "weight,depth", "y_columns": "depth,price"},
    "^min_lag must be a whole number of at least 1",
)


def refused(error, message, *data, code=None, **options):
    with pytest.raises(error, match=message) as caught:
        hsic_test(*(data or arrays()), **options)
    assert code is None or caught.value.code == f"usage.{code}"
    return caught.value


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        ({"statistic": "cocoo"}, "^statistic must be hsic or coco or kcc or kmi, not 'cocoo'$", "statistic"),
        ({"x_columns": "colour"}, "^column 'colour' is not in x$", "unknown_column"),
        ({"y_columns": "colour"}, "^column 'colour' is not in y$", "unknown_column"),
        ({"exclude": "colour"}, "^column 'colour' is not in x or y$", "unknown_column"),
        ({"columns": "colour"}, "^column 'colour' is not in x or y$", "unknown_column"),
        ({"categorical": "colour"}, "^column 'colour' is not in x or y$", "unknown_column"),
        ({"exclude": "y1"}, "^no column of y is left for y_columns=$", "no_columns"),
        ({"columns": "x1"}, "^no column of y is left for y_columns=$", "no_columns"),
        ({"min_lag": 5}, "^min_lag is for time series$", "min_lag"),
        (SERIES | {"min_lag": 21}, "^no shift of 40 rows is at least 21 rows away from both ends$", "min_lag"),
        *((SERIES | {"min_lag": lag}, NO_INTEGER, "min_lag") for lag in (0, -3, 2.5, True)),
        *((SERIES | {"null": null}, "^series have one null, the shift test$", "time_series") for null in CURVES),
        (SERIES | {"resampling": "random"}, "^series have one null, the shift test$", "time_series"),
        *((COCO | {"null": null}, f"the null '{null}' is one of HSIC", "null") for null in CURVES),
        (COCO | {"kernel_x": "polynomial(2, 1, -1)"}, "positive definite", "indefinite_kernel"),
        (COCO | {"kernel_x": "gaussian", "bandwidth": [1, 2]}, "one bandwidth", "bandwidth_family"),
        # The shift test is one of HSIC: a result must not carry the name of another statistic.
        (COCO | SERIES, "series", "time_series"),
        (KCC | SERIES, "^the shift test of series is one of HSIC, not of KCC$", "time_series"),
        (KCC | {"null": "moments"}, "the kernel canonical correlation has the permutation null", "null"),
        (KCC | {"kernel_x": "polynomial(2, 1, -1)"}, "the kernel canonical correlation needs", "indefinite_kernel"),
        (KCC | {"bandwidth": [1, 2]}, "the kernel canonical correlation is tested for one pair", "bandwidth_family"),
    ],
    ids=str,
)
def test_options_that_cannot_be(options, message, code):
    error = refused(UsageError, message, code=code, **options)
    assert error.exit_code == 2
    # The null of COCO is the permutation null already: it is no way out.
    assert "null" in options or "statistic" not in options or "null='permutation'" not in (error.hint or "")


@pytest.mark.parametrize(
    ("data", "options", "message", "code"),
    [
        (frame(), {}, r"^which of the 6 columns of data are x, and which are y\?$", "no_groups"),
        (np.zeros((5, 3)), {}, "^which of the 3 columns", "no_groups"),
        (np.zeros((5, 1)), {}, "^data has 1 column to test, and it takes two", "no_groups"),
        (frame(), {"y_columns": "*"}, "^no column of data is left for x_columns=$", "no_columns"),
        (frame(), {"x_columns": "*"}, "^no column of data is left for y_columns=$", "no_columns"),
        (frame(), X_AND_Y | {"exclude": "depth,price"}, "^no column of data is left for y_columns=$", "no_columns"),
        (frame(), X_AND_Y, "^column 'depth' is in both x_columns= and y_columns=$", "column_twice"),
        (frame(), {"x_columns": "city", "y_columns": "price", "kernel_x": "gaussian"}, "needs a numeric column", None),
    ],
)
def test_columns_that_cannot_be(data, options, message, code):
    refused(UsageError, message, data, code=code, **options)


def test_rows_that_cannot_tell():
    refused(UndecidedError, "^the Gamma null needs at least 6 rows$", *arrays(5), null="gamma")
    one_value, series = "one value of the statistic only", {"time_series": True}
    refused(UndecidedError, one_value, kernel_x="gaussian(1e-9)", **series)
    # Other pairings of the rows would not give one value: of a series they stand for nothing.
    x = np.array([0.0, 1.0, 0.0, 1.0])
    kernels = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"}
    refused(UndecidedError, one_value, x, x, min_lag=2, alpha=0.9, **kernels, **series)


def test_few_rows_whose_relabellings_all_tie_have_p_value_one():
    """Every shift of an order that alternates gives one value: no fault of the kernels."""
    x, y = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 0, 1])
    options = {"kernel_x": "delta", "kernel_y": "delta", "permutations": 4}
    assert 1.0 in [hsic_test(x, y, seed=seed, **options).p_value for seed in range(30)]


def test_where_one_value_hides_all_others_the_hint_names_it():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    table.loc[7, "a"] = 1e300
    for test in (
        lambda: hsic_test(table, x_columns="a", y_columns="b"),
        lambda: mmd_test(table[:30], table[30:], columns="a"),
    ):
        with pytest.raises(UndecidedError) as refused:
            test()
        assert refused.value.hint.startswith("column 'a' is 1e+300 in row 8 of ")


def test_columns_of_the_first_table_in_place_of_a_second_are_told(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=["a", "b", "c"])
    table.to_csv(tmp_path / "f.csv", index=False)
    for given in (table, str(tmp_path / "f.csv")):
        with pytest.raises(UsageError, match=r"there is no table a,b, and .* has columns of that name") as caught:
            hsic_test(given, "a,b")
        assert caught.value.hint == "did you mean y_columns='a,b'?"
    with pytest.raises(DataError, match="nowhere does not exist"):
        hsic_test(table, "nowhere")
