"""What the independence test refuses, and how it says so."""

import warnings

import numpy as np
import pytest
from two_variables import arrays, frame

from kerntest import hsic_test
from kerntest.errors import DataError, UndecidedError, UsageError

NULLS = ("permutation", "moments", "gamma", "spectral", "pearson")


def refused(error, message, *data, code=None, **options):
    with pytest.raises(error, match=message) as caught:
        hsic_test(*(data or arrays()), **options)
    assert code is None or caught.value.code == code
    return caught.value


@pytest.mark.parametrize(
    ("name", "value", "message", "code"),
    [
        ("alpha", 0, r"^alpha must be between 0 and 1, not 0$", "usage.alpha"),
        ("permutations", 0, r"^permutations must be a whole number of at least 1, not 0$", "usage.permutations"),
        ("seed", -1, r"^seed must be a whole number of at least 0, not -1$", "usage.seed"),
        ("estimator", "unbiasd", r"^estimator must be unbiased or biased, not 'unbiasd'$", "usage.estimator"),
        ("statistic", "cocoo", r"^statistic must be hsic or coco, not 'cocoo'$", "usage.statistic"),
        ("null", "momemts", r"^null must be permutation or moments.*, not 'momemts'$", "usage.null"),
        ("resampling", "shift", r"^resampling must be shifts or random, not 'shift'$", "usage.resampling"),
        ("scale", "standardise", r"^scale must be standardize or none, not 'standardise'$", "usage.scale"),
        ("missing", "dorp", r"^missing must be error or drop, not 'dorp'$", "usage.missing"),
        ("threads", 0, r"^threads must be at least 1, not 0$", "usage.threads"),
        ("bandwidth", -1, r"^a bandwidth must be positive and finite, not -1$", "usage.bandwidth"),
        ("bandwidth", "medain", r"^'medain' is no bandwidth$", "usage.bandwidth"),
        ("kernel_x", "gausian", r"^unknown kernel 'gausian' at character 1", "usage.kernel_text"),
        ("kernel_y", "colour: delta", r"^there is no column 'colour'", "usage.unknown_column"),
        ("x_columns", "colour", r"^column 'colour' is not in x$", "usage.unknown_column"),
        ("y_columns", "colour", r"^column 'colour' is not in y$", "usage.unknown_column"),
        ("exclude", "colour", r"^column 'colour' is not in x or y$", "usage.unknown_column"),
        ("exclude", "y1", r"^no column of y is selected$", "usage.no_columns"),
    ],
)
def test_options_that_cannot_be(name, value, message, code):
    assert refused(UsageError, message, code=code, **{name: value}).exit_code == 2


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [("statistic", "cocoo", "coco"), ("null", "momemts", "moments"), ("resampling", "shift", "shifts")],
)
def test_names_nearly_right_have_a_suggestion(name, value, meant):
    assert refused(UsageError, "must be", **{name: value}).hint == f"did you mean '{meant}'?"


def test_options_are_checked_before_files_are_read():
    refused(UsageError, "^alpha must be", "nowhere.csv", alpha=2)
    refused(UsageError, "^statistic must be", "nowhere.csv", statistic="x")


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


@pytest.mark.parametrize("source", [[1.0, 2.0, 3.0], 3])
def test_what_is_no_table(source):
    refused(UsageError, r"^x is a .*, which cannot be read as a table$", source, arrays()[1])
    refused(UsageError, r"^y is a .*, which cannot be read as a table$", arrays()[0], source)
    refused(UsageError, r"^data is a .*, which cannot be read as a table$", source)


@pytest.mark.parametrize(
    ("y", "message", "code"),
    [
        (np.zeros((0, 2)), r"^y has no rows$", "data.no_rows"),
        (np.zeros((40, 2, 2)), r"^y is an array of 3 dimensions$", "data.wrong_shape"),
        (np.array([["a"]] * 40), r"^y is an array of <U1, not of numbers$", "data.not_numeric"),
        (np.array([1.0] * 39 + [np.inf]), r"^y, row 40: column 'y1' holds 'inf'", "data.infinite_values"),
    ],
)
def test_data_that_cannot_be_used(y, message, code):
    assert refused(DataError, message, arrays()[0], y, code=code).exit_code == 3


def test_a_file_that_is_not_there():
    assert refused(DataError, "no_such_file.csv", "no_such_file.csv", y_columns="a").exit_code == 3


# Kernels and bandwidths


def test_a_bandwidth_beside_two_fixed_kernels():
    refused(
        UsageError,
        "leaves no bandwidth open",
        kernel_x="gaussian(1)",
        kernel_y="linear",
        bandwidth=2.0,
        code="usage.bandwidth_twice",
    )


def test_a_kernel_of_numbers_on_text():
    refused(UsageError, "needs a numeric column", frame(), x_columns="city", y_columns="price", kernel_x="gaussian")


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("side", ["x", "y", "both"])
@pytest.mark.parametrize("kernel", ["gaussian(1e-09)", "gaussian(1000000000)", "laplacian(1e-09)"])
def test_kernels_to_which_all_rows_are_alike(kernel, side, null):
    kernels = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"}
    kernels |= {f"kernel_{one}": kernel for one in ("xy" if side == "both" else side)}
    error = refused(
        UndecidedError, "give one value of the statistic only", code="undecided.degenerate_kernel", null=null, **kernels
    )
    assert error.exit_code == 4
    assert "--bandwidth median" in error.hint
    assert f"'{kernels['kernel_x']}'" in error.message
    assert f"'{kernels['kernel_y']}'" in error.message


def test_kernels_to_which_all_rows_are_alike_in_series():
    refused(UndecidedError, "one value of the statistic only", kernel_x="gaussian(1e-9)", time_series=True)


def test_shifts_of_a_series_that_all_give_one_value():
    """Other pairings of the rows would not: of a series they stand for nothing."""
    x = np.array([0.0, 1.0, 0.0, 1.0])
    with pytest.raises(UndecidedError, match="one value of the statistic only"):
        hsic_test(x, x, time_series=True, min_lag=2, kernel_x="gaussian(1)", kernel_y="gaussian(1)", alpha=0.9)


def test_one_degenerate_pair_of_a_family_does_no_harm():
    x, y = arrays()
    kernels = {"kernel_x": "gaussian", "kernel_y": "gaussian"}
    with_it = hsic_test(x, y, bandwidth=[1e-9, 1.0], **kernels)
    assert (with_it.kernel_x, with_it.kernel_y) == ("gaussian(1)", "gaussian(1)")
    assert with_it.p_value == hsic_test(x, y, bandwidth=1.0, **kernels).p_value


def test_few_rows_whose_relabellings_all_tie_have_p_value_one():
    """Every shift of an order that alternates gives one value: no fault of the kernels."""
    x, y = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 0, 1])
    found = [
        hsic_test(x, y, kernel_x="delta", kernel_y="delta", permutations=4, seed=seed).p_value for seed in range(30)
    ]
    assert 1.0 in found


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize(("side", "other"), [("x", "y"), ("y", "x")])
@pytest.mark.parametrize("kernel", ["exponential", "exponential + gaussian(1)"])
def test_a_kernel_that_overflows_is_named(kernel, side, other, null):
    x, y = arrays()
    kernels = {f"kernel_{side}": kernel, f"kernel_{other}": "gaussian(1)"}
    error = refused(
        UndecidedError, "^the kernel 'exponential.*' overflows", 1e3 * x, 1e3 * y, scale="none", null=null, **kernels
    )
    assert (error.code, error.exit_code) == ("undecided.overflow", 4)


@pytest.mark.parametrize("null", ["permutation", "moments", "gamma"])
@pytest.mark.parametrize("size", [1e160, 1e200])
@pytest.mark.parametrize(("side", "other"), [("x", "y"), ("y", "x")])
def test_inner_products_that_overflow(side, other, size, null):
    x, y = arrays(30)
    data = (x * size, y) if side == "x" else (x, y * size)
    kernels = {f"kernel_{side}": "linear", f"kernel_{other}": "gaussian(1)"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(UndecidedError, "^the kernel 'linear' overflows", *data, scale="none", null=null, **kernels)


@pytest.mark.parametrize("null", ["moments", "spectral", "pearson"])
def test_sums_that_overflow_though_the_kernels_do_not(null):
    """Third powers of entries of 1e120 are beyond the range of numbers."""
    x, y = arrays(30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UndecidedError) as caught:
            hsic_test(1e60 * x, y, kernel_x="linear", kernel_y="gaussian(1)", scale="none", null=null)
    assert caught.value.code == "undecided.overflow"


# The constrained covariance


@pytest.mark.parametrize("null", NULLS[1:])
def test_coco_has_the_permutation_null_only(null):
    error = refused(
        UsageError, f"the null '{null}' is one of HSIC", statistic="coco", null=null, permutations=20, code="usage.null"
    )
    assert error.exit_code == 2


def test_coco_needs_positive_definite_kernels():
    refused(UsageError, "positive definite", statistic="coco", kernel_x="polynomial(2, 1, -1)", permutations=20)


def test_coco_judges_one_pair_of_kernels_and_says_so():
    error = refused(
        UsageError,
        "one bandwidth",
        statistic="coco",
        kernel_x="gaussian",
        kernel_y="gaussian",
        bandwidth=[1, 2],
        permutations=20,
        code="usage.bandwidth_family",
    )
    # The null is the permutation null already: it is no way out.
    assert "--null permutation" not in error.hint


def test_coco_is_no_test_of_series():
    """The shift test is one of HSIC: a result must not carry the name of another statistic."""
    refused(UsageError, "series", statistic="coco", time_series=True)


def test_a_minimum_lag_without_series_is_refused():
    refused(UsageError, "min_lag", min_lag=5)
