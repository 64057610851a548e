"""What the independence test refuses, and how it says so."""

import numpy as np
import pytest
from two_variables import arrays, frame

from kerntest import hsic_test
from kerntest.errors import UndecidedError, UsageError

NULLS = ("permutation", "moments", "gamma", "spectral", "pearson")


def refused(error, message, *data, code=None, **options):
    with pytest.raises(error, match=message) as caught:
        hsic_test(*(data or arrays()), **options)
    assert code is None or caught.value.code == code
    return caught.value


@pytest.mark.parametrize(
    ("name", "value", "message", "code"),
    [
        ("statistic", "cocoo", r"^statistic must be hsic or coco, not 'cocoo'$", "usage.statistic"),
        ("x_columns", "colour", r"^column 'colour' is not in x$", "usage.unknown_column"),
        ("y_columns", "colour", r"^column 'colour' is not in y$", "usage.unknown_column"),
        ("exclude", "colour", r"^column 'colour' is not in x or y$", "usage.unknown_column"),
        ("exclude", "y1", r"^no column of y is left for --y$", "usage.no_columns"),
    ],
)
def test_options_that_cannot_be(name, value, message, code):
    assert refused(UsageError, message, code=code, **{name: value}).exit_code == 2


# Which columns


def test_columns_that_cannot_be_told_apart():
    error = refused(UsageError, r"^which of the 6 columns of data are x, and which are y\?$", frame())
    assert error.code == "usage.no_groups"
    refused(UsageError, r"^which of the 3 columns", np.zeros((5, 3)), code="usage.no_groups")
    refused(UsageError, r"^which of the 1 columns", np.zeros((5, 1)), code="usage.no_groups")


def test_a_column_in_both_groups():
    error = refused(
        UsageError,
        r"^column 'depth' is in both --x and --y$",
        frame(),
        x_columns="weight,depth",
        y_columns="depth,price",
        code="usage.column_twice",
    )
    assert "depends on itself" in error.hint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_columns": "*"}, r"^no column of data is left for --x$"),
        ({"x_columns": "*"}, r"^no column of data is left for --y$"),
        ({"x_columns": "price", "y_columns": "depth", "exclude": "depth"}, r"^no column of data is left for --y$"),
    ],
)
def test_a_group_without_columns(options, message):
    refused(UsageError, message, frame(), code="usage.no_columns", **options)


# Kernels and bandwidths


def test_a_kernel_of_numbers_on_text():
    refused(UsageError, "needs a numeric column", frame(), x_columns="city", y_columns="price", kernel_x="gaussian")


def test_kernels_to_which_all_rows_are_alike_in_series():
    refused(UndecidedError, "one value of the statistic only", kernel_x="gaussian(1e-9)", time_series=True)


def test_shifts_of_a_series_that_all_give_one_value():
    """Other pairings of the rows would not: of a series they stand for nothing."""
    x = np.array([0.0, 1.0, 0.0, 1.0])
    with pytest.raises(UndecidedError, match="one value of the statistic only"):
        hsic_test(x, x, time_series=True, min_lag=2, kernel_x="gaussian(1)", kernel_y="gaussian(1)", alpha=0.9)


def test_few_rows_whose_relabellings_all_tie_have_p_value_one():
    """Every shift of an order that alternates gives one value: no fault of the kernels."""
    x, y = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 0, 1])
    found = [
        hsic_test(x, y, kernel_x="delta", kernel_y="delta", permutations=4, seed=seed).p_value for seed in range(30)
    ]
    assert 1.0 in found


# The constrained covariance


@pytest.mark.parametrize(
    ("message", "options", "code"),
    [
        *((f"the null '{null}' is one of HSIC", {"null": null}, "usage.null") for null in NULLS[1:]),
        ("positive definite", {"kernel_x": "polynomial(2, 1, -1)"}, None),
        ("one bandwidth", {"kernel_x": "gaussian", "bandwidth": [1, 2]}, "usage.bandwidth_family"),
        # The shift test is one of HSIC: a result must not carry the name of another statistic.
        ("series", {"time_series": True}, "usage.time_series"),
    ],
)
def test_coco_has_one_null_and_one_pair_of_positive_definite_kernels(message, options, code):
    error = refused(UsageError, message, statistic="coco", permutations=20, code=code, **options)
    # The null is the permutation null already: it is no way out.
    assert "null" in options or "--null permutation" not in (error.hint or "")


def test_a_minimum_lag_without_series_is_refused():
    refused(UsageError, "min_lag", min_lag=5)
