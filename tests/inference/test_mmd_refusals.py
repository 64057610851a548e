"""What the two-sample test refuses, and how it says so."""

import warnings

import numpy as np
import pytest
from two_samples import arrays, frames

from kerntest import mmd_test
from kerntest.errors import DataError, UndecidedError, UsageError


def refused(error, message, *data, code=None, **options):
    with pytest.raises(error, match=message) as caught:
        mmd_test(*(data or arrays()), **options)
    assert code is None or caught.value.code == code
    return caught.value


@pytest.mark.parametrize(
    ("name", "value", "message", "code"),
    [
        ("alpha", 0, "^alpha must be between 0 and 1, not 0$", "usage.alpha"),
        ("alpha", 1.0, "^alpha must be between 0 and 1, not 1$", "usage.alpha"),
        ("alpha", float("nan"), "^alpha must be between 0 and 1, not nan$", "usage.alpha"),
        ("permutations", 0, "^permutations must be a whole number of at least 1, not 0$", "usage.permutations"),
        ("permutations", 99.5, "^permutations must be a whole number of at least 1, not 99.5$", "usage.permutations"),
        ("seed", -1, "^seed must be a whole number of at least 0, not -1$", "usage.seed"),
        ("seed", True, "^seed must be a whole number of at least 0, not True$", "usage.seed"),
        ("estimator", "unbiasd", "^estimator must be unbiased or biased, not 'unbiasd'$", "usage.estimator"),
        ("null", "momemts", "^null must be permutation or moments.*, not 'momemts'$", "usage.null"),
        ("scale", "standardise", "^scale must be standardize or none, not 'standardise'$", "usage.scale"),
        ("missing", "dorp", "^missing must be error or drop, not 'dorp'$", "usage.missing"),
        ("threads", 0, "^threads must be at least 1, not 0$", "usage.threads"),
        ("bandwidth", -1, "^a bandwidth must be positive and finite, not -1$", "usage.bandwidth"),
        ("bandwidth", "medain", "^'medain' is no bandwidth$", "usage.bandwidth"),
        ("kernel", "gausian", "^unknown kernel 'gausian' at character 1", "usage.kernel_text"),
        ("kernel", "colour: delta", "^there is no column 'colour'", "usage.unknown_column"),
        ("columns", "colour", "^column 'colour' is in neither x nor y$", "usage.unknown_column"),
    ],
)
def test_options_that_cannot_be(name, value, message, code):
    error = refused(UsageError, message, code=code, **{name: value})
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [("estimator", "unbiasd", "unbiased"), ("null", "momemts", "moments"), ("scale", "standardise", "standardize")],
)
def test_names_nearly_right_have_a_suggestion(name, value, meant):
    assert refused(UsageError, "must be", **{name: value}).hint == f"did you mean '{meant}'?"


def test_options_are_checked_before_files_are_read():
    refused(UsageError, "^alpha must be", "nowhere.csv", "nor_here.csv", alpha=2)
    refused(UsageError, "no bandwidth", "nowhere.csv", "nor_here.csv", bandwidth="x")


def test_a_bandwidth_beside_a_fixed_kernel():
    error = refused(
        UsageError, "^the kernel 'gaussian\\(1\\)' leaves no bandwidth open", kernel="gaussian(1)", bandwidth=2.0
    )
    assert error.code == "usage.bandwidth_twice"


def test_several_bandwidths_with_a_curve():
    refused(UsageError, "^this null judges one kernel", kernel="gaussian", bandwidth=[1, 2], null="moments")


def test_a_kernel_of_numbers_on_text():
    x, y = frames()
    error = refused(UsageError, "^gaussian needs a numeric column", x[["city"]], y[["city"]], kernel="gaussian")
    assert error.exit_code == 2


@pytest.mark.parametrize("source", [[1.0, 2.0, 3.0], 3, None])
def test_what_is_no_table(source):
    error = refused(UsageError, "^x is a .*, which cannot be read as a table$", source, arrays()[1])
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("x", "message", "code"),
    [
        (np.zeros((1, 2)), "^x has 1 row; the test needs at least 2 in each table$", "data.too_few_rows"),
        (np.zeros((0, 2)), "^x has no rows$", "data.no_rows"),
        (np.zeros((3, 2, 2)), "^x is an array of 3 dimensions$", "data.wrong_shape"),
        (np.array([["a", "b"]] * 3), "^x is an array of <U1, not of numbers$", "data.not_numeric"),
        (np.zeros((3, 1)), "^x and y have 1 and 2 columns$", "data.columns_differ"),
        (np.array([[1, 2], [np.nan, 4.0]]), "^x has 1 missing value: x1 1", "data.missing_values"),
        (np.array([[1, 2], [np.inf, 4.0]]), "^x, row 2: column 'x1' holds 'inf'", "data.infinite_values"),
    ],
)
def test_data_that_cannot_be_used(x, message, code):
    error = refused(DataError, message, x, arrays()[1], code=code)
    assert error.exit_code == 3


def test_a_file_that_is_not_there():
    error = refused(DataError, "no_such_file.csv", "no_such_file.csv", arrays()[1])
    assert error.exit_code == 3


def test_only_constant_columns():
    error = refused(DataError, "^no column of x and y is left to compare", np.ones((4, 2)), np.ones((5, 2)))
    assert error.code == "data.no_columns"
    assert error.exit_code == 3


@pytest.mark.parametrize("null", ["permutation", "moments"])
@pytest.mark.parametrize("kernel", ["gaussian(1e-9)", "gaussian(1e9)", "laplacian(1e-9)"])
def test_a_kernel_to_which_all_rows_are_alike(kernel, null):
    error = refused(UndecidedError, "finds all pairs of different rows equally similar", kernel=kernel, null=null)
    assert error.exit_code == 4
    assert error.code == "undecided.degenerate_kernel"
    assert "--bandwidth median" in error.hint


def test_one_degenerate_member_of_a_family_does_no_harm():
    x, y = arrays()
    with_it = mmd_test(x, y, kernel="gaussian", bandwidth=[1e-9, 1.0])
    assert with_it.kernel == "gaussian(1)"
    assert with_it.p_value == mmd_test(x, y, kernel="gaussian", bandwidth=1.0).p_value


@pytest.mark.parametrize("null", ["permutation", "moments"])
@pytest.mark.parametrize(("kernel", "size"), [("exponential", 1e3), ("exponential + gaussian(1)", 1e3)])
def test_a_kernel_that_overflows(kernel, size, null):
    x, y = arrays()
    error = refused(UndecidedError, "overflows on these", x * size, y * size, kernel=kernel, scale="none", null=null)
    assert error.exit_code == 4
    assert error.code == "undecided.overflow"


@pytest.mark.parametrize("threads", [1, 2])
def test_inner_products_that_overflow(threads):
    x, y = arrays(300, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        error = refused(
            UndecidedError, "overflows", x * 1e200, y * 1e200, kernel="linear", scale="none", threads=threads
        )
    assert error.exit_code == 4


@pytest.mark.parametrize("resampling", ["blocks", "random"])
def test_sums_that_overflow_though_the_kernel_does_not(resampling):
    size = np.sqrt(np.finfo(float).max) / 2
    error = refused(
        UndecidedError,
        "^the kernel 'linear' overflows",
        size * np.repeat([0.9, 1.0], 20),
        size * np.repeat([0.8, 0.7], 20),
        kernel="linear",
        scale="none",
        resampling=resampling,
    )
    assert error.code == "undecided.overflow"


def test_the_moments_need_four_rows_and_that_is_the_fewest_there_are():
    x, y = np.array([0.0, 1.0]), np.array([0.5, 3.0])
    assert 0 < mmd_test(x, y, null="moments").p_value <= 1
