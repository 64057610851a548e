"""Kernel texts: what is read, how it is printed, what columns it means, and what is said about a text that is none."""

import operator
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_texts import texts

from kerntest import mmd_test, parse_kernel
from kerntest.errors import UndecidedError, UsageError


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("gaussian(bandwidth=1.50)", "gaussian(1.5)"),
        (" RBF ( 1e0 ) ", "gaussian(1)"),
        ("gaussian(+.5)", "gaussian(0.5)"),
        ("gaussian(1e22)", "gaussian(1e+22)"),
        ("student-t(1.5, 3)", "student-t(1.5, df=3)"),
        ("Student_T(df=3)", "student-t(df=3)"),
        ("matern(1, nu=2.5)", "matern(1, nu=2.5)"),
        ("periodic(2, 0.5)", "periodic(period=2, bandwidth=0.5)"),
        ("periodic(bandwidth=1)", "periodic"),
        ("poly(2, offset=-1)", "polynomial(degree=2, offset=-1)"),
        ("laplacian(2)*0.5", "0.5*laplacian(2)"),
        ("(linear+1)*delta", "(linear + 1)*delta"),
        ("linear+(1+delta)", "linear + 1 + delta"),
        ("linear ** 2 * delta", "linear^2*delta"),
        ("(linear*delta)^2", "(linear*delta)^2"),
        ("normalize(linear + 1)", "normalise(linear + 1)"),
        ("EXP( linear*0.5 )^.5", "exp(0.5*linear)^0.5"),
        ("((gaussian))", "gaussian"),
        ("linear\n+\tdelta", "linear + delta"),
        ("additive(1,2,3)", "additive(1, 2, 3)"),
        ("Mahalanobis()", "mahalanobis(0.01)"),
        ("mahalanobis(.5)*linear", "mahalanobis(0.5)*linear"),
        ("mahalanobis(share = 0)", "mahalanobis(0)"),
        ("mahalanobis(2*rbf(1) + linear)^2", "mahalanobis(2*gaussian(1) + linear, 0.01)^2"),
        ("mahalanobis(matern(nu=2.5), share=0.1)", "mahalanobis(matern(nu=2.5), 0.1)"),
        ("mahalanobis(linear, 0.1)", "mahalanobis(0.1)"),
        ("age,income : gaussian(1.5);city:delta", "age, income: gaussian(1.5); city: delta"),
        ("'a,b;c:d*', \"it's\", `\"` : linear", "'a,b;c:d*', it's, '\"': linear"),
        ("'it''s': linear", "it's: linear"),
        ("größe, 東京: linear", "größe, 東京: linear"),
        ("temp_*, 'temp_*': linear; *: delta", "temp_*, 'temp_*': linear; *: delta"),
    ],
)
def test_read_and_print(text, printed):
    read = parse_kernel(text)
    assert str(read) == printed
    assert parse_kernel(printed) == read != parse_kernel(f"({printed}) + 1" if ":" not in printed else f"{printed} + 1")
    assert hash(parse_kernel(printed)) == hash(read)


NAMES = "gaussian laplacian laplacian2 student-t rational-quadratic matern periodic linear polynomial exponential delta hamming additive mahalanobis"
ALIASES = "rbf student rq poly"


ERRORS = [
    ("gausian(1.5)", 1, r"unknown kernel 'gausian' at character 1 of 'gausian\(1.5\)'", "did you mean 'gaussian'?"),
    ("", 1, "the kernel text is empty", "for example 'gaussian'"),
    ("(linear", 1, "this parenthesis is never closed at character 1", r"add a '\)'"),
    ("linear)", 7, r"unexpected '\)' at character 7", "no parenthesis is open"),
    ("()", 2, r"unexpected '\)' at character 2", "no parenthesis"),
    ("student-t(2, dof=3)", 14, "'student-t' has no argument 'dof'", r"did you mean 'df'\? write student-t\("),
    ("gaussian(sigma=3)", 10, "'gaussian' has no argument 'sigma'", r"write gaussian\(bandwidth\)"),
    ("gaussian(1, 2)", 13, "too many arguments for 'gaussian'", r"write gaussian\(bandwidth\)"),
    ("gaussian(bandwidth=1, bandwidth=2)", 23, "'bandwidth' is given twice", "write gaussian"),
    ("polynomial(degree=2, 1)", 22, "an argument without a name after one with a name", "write polynomial"),
    ("additive(-1)", 10, "bandwidth of additive must be positive, not -1, at character 10", "found from the data"),
    ("additive(1 2)", 12, "unexpected '2' at character 12", "joined by"),
    ("additive(", 10, "a bandwidth is missing at character 10", "write additive"),
    ("mahalanobis(delta)", 1, "'delta' cannot stand in mahalanobis", r"such as mahalanobis\(gaussian\)"),
    ("mahalanobis(additive)", 1, "'additive' cannot stand in mahalanobis", "a kernel of numbers"),
    ("2*mahalanobis(mahalanobis + 1)", 3, r"'mahalanobis\(0.01\) \+ 1' cannot stand in", "each once"),
    ("mahalanobis(linear, -1)", 1, "share of mahalanobis must be zero or positive, not -1", "`kerntest kernels`"),
    ("mahalanobis(0.1, linear)", 16, "unexpected ','", "joined by"),
    (
        "mahalanobis(linear, share)",
        21,
        "a share of the variances is missing",
        r"write mahalanobis\(kernel=linear, share=0.01\)",
    ),
    ("gaussian(1e-200)", 10, "bandwidth of gaussian must be between 1e-75 and 1e", "found from the data"),
    ("matern(1, 101)", 11, "nu of matern must be positive and at most 100, not 101", "`kerntest kernels`"),
    ("student-t(1, df=0)", 17, "df of student-t must be positive, not 0", "`kerntest kernels`"),
    ("polynomial(0)", 12, "degree of polynomial must be a whole number from 1 to 1000, not 0", "`kerntest kernels`"),
    ("linear + gaussian(-1)", 19, "gaussian must be positive, not -1, at character 19", "found from the data"),
    ("gaussian(nan)", 10, "must be a finite number, not nan", "found from the data"),
    ("gaussian(median)", 10, "a number for 'bandwidth' is missing", "leave it out to have it chosen"),
    ("periodic(bandwidth=auto)", 20, "a number for 'bandwidth' is missing", None),
    ("-1*linear", 1, "a kernel cannot have a negative weight at character 1", "positive definite"),
    ("1e999*linear", 1, "weight of a kernel must be a finite number, not inf, at character 1", "`kerntest kernels`"),
    ("linear - delta", 8, "kernels cannot be subtracted: the difference need not be positive definite", "use '\\+'"),
    ("gaussian-delta", 9, "kernels cannot be subtracted", "use '\\+'"),
    ("linear +", 9, "a kernel is missing at the end", "leave the sign out"),
    ("+ linear", 1, r"unexpected '\+'", "joined by"),
    ("linear ^ two", 10, "an exponent is missing", None),
    ("linear^0", 8, "the exponent of a power must be positive, not 0, at character 8", "`kerntest kernels`"),
    ("linear^0.5", 8, r"'linear\^0.5' need not be positive definite, at character 8", "whole exponent"),
    ("2^3^2", 4, "an exponent on an exponent", "multiply the exponents"),
    ("linear delta", 8, "unexpected 'd' at character 8", "joined by"),
    ("linear/2", 7, "unexpected '/'", r"0.5\*kernel"),
    ("2*exp", 6, "'exp' needs a kernel in parentheses", r"exp\(polynomial\)"),
    ("normalise", 10, "'normalise' needs a kernel in parentheses", r"normalise\(polynomial\)"),
    ("a: linear; delta", 12, "a ':' is missing in the group 'delta' at character 12", "columns: kernel"),
    ("a: linear;", 11, "empty group at character 11", "columns: kernel"),
    ("a: ", 2, "no kernel after the ':'", "columns: kernel"),
    (": linear", 1, "a column name is missing", "for all other columns"),
    ("a,,b: linear", 3, "a column name is missing", "for all other columns"),
    ("'a: linear", 1, "the quote ' is never closed", "add another '"),
    ("'a' b: linear", 5, "text after a quoted column", "whole name in quotes"),
    ("a: linear: delta", 10, "unexpected ':'", "separate groups by ';'"),
    ("*: linear; *: delta", 12, r"'\*' stands for the rest of the columns and can be used once", "name the columns"),
    ("x" * 100, 1, "at character 1 of 'x{60}'\\.\\.\\.$", "`kerntest kernels`"),
]


@pytest.mark.parametrize(("text", "position", "message", "hint"), ERRORS, ids=[case[0][:30] for case in ERRORS])
def test_errors_say_where_and_how_to_go_on(text, position, message, hint):
    with pytest.raises(UsageError, match=message) as caught:
        parse_kernel(text)
    error = caught.value
    assert (error.exit_code, error.code) == (2, "usage.kernel_text")
    assert error.where["position"] == position
    assert error.where.get("value") == ("gausian" if text.startswith("gausian") else error.where.get("value"))
    assert "\n" not in error.message
    assert error.hint is hint or re.search(hint, error.hint)


@pytest.mark.parametrize("opening", ["(", "normalise("])
def test_depth_is_limited(opening):
    assert parse_kernel(opening * 50 + "linear" + ")" * 50)
    for depth in (51, 10_000):
        with pytest.raises(UsageError, match="more than 50 parentheses within each other"):
            parse_kernel(opening * depth + "linear" + ")" * depth)


@given(texts)
def test_random_texts_round_trip(text):
    kernel = parse_kernel(text)
    printed = str(kernel)
    assert parse_kernel(printed) == kernel
    assert str(parse_kernel(printed)) == printed


words = [*f"{NAMES} {ALIASES} ** 0.5 1e999 nan df= bandwidth= normalise( exp( é".split(), *"()+*^:;,-=/ '\"`\n"]


@given(st.text(max_size=30) | st.lists(st.sampled_from(words), max_size=15).map("".join))
def test_any_text_is_a_kernel_or_a_usage_error(text):
    try:
        kernel = parse_kernel(text)
    except UsageError as error:
        assert 1 <= error.where["position"] <= len(text) + 1  # noqa: PT017  # which of the two it is, is open
    else:
        assert parse_kernel(str(kernel)) == kernel


# Operators of kernels, as their texts


def test_operators_are_those_of_texts():
    k, h = parse_kernel("gaussian(1.5)"), parse_kernel("polynomial(2, 0.5)")
    for kernel, text in (
        (k + h, f"{k} + {h}"),
        (k * h, f"{k}*{h}"),
        (3 * k, f"3*{k}"),
        (k * 3, f"3*{k}"),
        (0.5 + k, f"0.5 + {k}"),
        (k + 0.5, f"{k} + 0.5"),
        (k**4, f"{k}^4"),
        ((k + h) * (k + 2), f"({k} + {h})*({k} + 2)"),
    ):
        assert (str(kernel), kernel) == (text, parse_kernel(text))


def test_operators_refuse_what_is_no_kernel():
    kernel = parse_kernel("gaussian(1)")
    for other in ("gaussian", None, [1.0]):
        for operation in (operator.add, operator.mul):
            with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
                operation(kernel, other)
    with pytest.raises(UsageError, match=r"the weight of a kernel must be zero or positive, not -0\.5"):
        -0.5 * kernel
    for exponent in (0, -1, float("nan"), float("inf"), "two"):
        with pytest.raises(UsageError, match="the exponent of a power must be"):
            kernel**exponent


@pytest.mark.parametrize("exponent", [0.5, 2.5])
def test_a_broken_power_needs_an_infinitely_divisible_kernel(exponent):
    for text in ("gaussian(1)*delta", "hamming(1)", "exponential", "periodic", "normalise(student-t(1))", "2"):
        assert (parse_kernel(text) ** exponent).positive_definite
    for text in ("linear", "polynomial", "gaussian(1) + laplacian(1)", "gaussian(1)*linear", "additive(1)"):
        with pytest.raises(UsageError, match="need not be positive definite") as caught:
            parse_kernel(text) ** exponent
        assert (caught.value.exit_code, "whole exponent" in caught.value.hint) == (2, True)


@pytest.mark.parametrize(
    "text", ["exponential", "polynomial(1000)", "linear^4", "linear*linear*linear", "1 + linear^2*linear"]
)
def test_overflow_is_an_error_that_names_the_kernel(text):
    with pytest.raises(UndecidedError, match="overflows on these rows") as caught:
        parse_kernel(text)(np.array([[1e80], [2e80]]))
    assert (caught.value.exit_code, "a smaller gain, as in exp(0.1*linear)" in caught.value.hint) == (4, True)


def test_what_is_open_has_no_values():
    with pytest.raises(UsageError, match="has no bandwidth yet"):
        parse_kernel("linear + laplacian")(np.eye(2))
    with pytest.raises(UsageError, match="has no covariance yet") as caught:
        parse_kernel("linear + mahalanobis")(np.eye(2))
    assert "mmd_test" in caught.value.hint
    for text in ("price: gaussian", "additive(1)"):
        with pytest.raises(UsageError, match="but not of which table"):
            parse_kernel(text)(np.eye(2))


# What a text means for the columns of a table


def table(columns="price weight temp_in temp_out", categories="city shop", seed=0):
    rng = np.random.default_rng(seed)
    numbers = {name: rng.normal(size=40) for name in columns.split()}
    return pd.DataFrame(numbers | {name: rng.choice(["a", "b", "c"], 40) for name in categories.split()})


def found(text, **columns):
    return mmd_test(table(**columns), table(seed=1, **columns), kernel=text, null="gamma")


def shown(text, **columns):
    """Return the kernel of a test without the bandwidths that it chose."""
    printed = re.sub(r"\(\d+\.\d{8,}(, \d+\.\d+)*\)", "", found(text, **columns).kernel)
    return printed if "hamming" in text else re.sub(r"hamming\(\d\)", "hamming", printed)


@pytest.mark.parametrize(
    ("text", "printed", "left_out"),
    [
        ("gaussian(2)", "price, weight, temp_in, temp_out: gaussian(2); city, shop: hamming", ""),
        ("delta", "price, weight, temp_in, temp_out: gaussian; city, shop: delta", ""),
        ("price, weight: gaussian(1.5); city: hamming(0.8)", None, "temp_in temp_out shop"),
        ("temp_*: laplacian; price: linear", "temp_in, temp_out: laplacian; price: linear", "weight city shop"),
        ("price: linear; *: laplacian", "price: linear; weight, temp_in, temp_out: laplacian; city, shop: hamming", ""),
        ("price, city: linear", "price: linear; city: hamming", "weight temp_in temp_out shop"),
        ("price, city: delta", "price: gaussian; city: delta", "weight temp_in temp_out shop"),
        (
            "*out: linear; p*e, 'city': linear + delta",
            "temp_out: linear; price, city: linear + delta",
            "weight temp_in shop",
        ),
        ("additive", "price, weight, temp_in, temp_out, city, shop: additive", ""),
    ],
)
def test_columns_of_a_mixed_table(text, printed, left_out):
    assert shown(text) == (printed or text)
    assert found(text).columns_left_out == tuple(left_out.split())
    # What is printed means the same.
    assert found(found(text).kernel).kernel == found(text).kernel


def test_each_column_of_an_additive_kernel_has_its_own_median():
    x, y = table("c a b", ""), table("c a b", "", seed=1)
    printed = mmd_test(x, y, kernel="a, b: additive", scale="none", null="gamma").kernel
    pooled = np.concatenate([x[["a", "b"]].to_numpy(), y[["a", "b"]].to_numpy()])
    distances = np.abs(pooled[:, None] - pooled[None, :])[np.triu_indices(len(pooled), 1)]
    medians = [float(one) for one in printed.removeprefix("a, b: additive(").removesuffix(")").split(",")]
    np.testing.assert_allclose(medians, np.median(distances, axis=0), rtol=1e-9)


@pytest.mark.parametrize(
    ("text", "columns", "categories", "printed"),
    [
        ("b, a: gaussian(1.5)", "a b", "", "gaussian(1.5)"),
        ("a: gaussian(1.5)", "a b", "", "a: gaussian(1.5)"),
        ("a, b: delta", "", "a b", "delta"),
        ("a: delta; *: hamming", "", "a", "delta"),
        ("additive(2, 2)", "a b", "", "additive(2)"),
        ("additive(2)", "a", "", "gaussian(2)"),
        ("0.5*additive(1, 3) + gaussian(1)", "a b", "", "0.5*additive(1, 3) + gaussian(1)"),
    ],
)
def test_tables_of_one_kind(text, columns, categories, printed):
    assert shown(text, columns=columns, categories=categories) == printed


@pytest.mark.parametrize(
    ("text", "message", "hint", "code", "position"),
    [
        ("price, wieght: linear", "there is no column 'wieght' (character 8", "did you mean 'weight'", "unknown_column", 8),
        ("zzz: linear", "there is no column 'zzz'", "the columns are 'price', 'weight'", "unknown_column", 1),
        ("zz*: linear", "no column matches 'zz*'", "the columns are", "unknown_column", 1),
        ("'temp_*': linear", "there is no column 'temp_*'", "did you mean", "unknown_column", 1),
        ("price: linear; price: delta", "column 'price' is in two groups", "once", "kernel_columns", 16),
        ("temp_*: linear; temp_in: delta", "column 'temp_in' is in two groups", "once", "kernel_columns", 17),
        ("city: gaussian", "gaussian needs a numeric column; 'city' holds text", "delta or hamming", "kernel_columns", None),
        ("city, shop: delta + linear", "linear needs a numeric column; 'city', 'shop' hold text", "delta or hamming", "kernel_columns", None),
        ("additive(1, 2)", "the kernel 'additive(1, 2)' has 2 bandwidths for 4 numeric columns", "one for each", "kernel_argument", None),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_meant(text, message, hint, code, position):
    with pytest.raises(UsageError) as caught:
        found(text)
    error = caught.value
    assert message in error.message
    assert hint in error.hint
    assert (error.exit_code, error.code, error.where.get("position")) == (2, f"usage.{code}", position)


NOT = ": a value of zero does not mean that the distributions are equal"


@pytest.mark.parametrize(
    ("text", "columns", "categories", "reason"),
    [
        ("gaussian(1) + linear", "a", "", None),
        ("a: gaussian; b: delta", "a", "b", None),
        ("normalise(exponential)^2", "a", "", None),
        ("2^2*gaussian", "a", "", None),
        ("gaussian + delta", "a", "", None),
        ("linear", "a", "", "'linear' sees only differences of means"),
        ("polynomial(2)", "a", "", "'polynomial(degree=2)' sees only moments up to order 2"),
        ("linear^2 + 0.5*linear*polynomial", "a", "", "'linear^2 + 0.5*linear*polynomial' sees only moments up to order 4"),
        ("1 + periodic(2)", "a", "", "'1 + periodic(period=2)' cannot tell values apart that differ by its period, 2"),
        ("exp(gaussian(1))", "a b", "", None),
        ("exp(linear)", "a b", "", "'exp(linear)' is not known to see every difference"),
        ("normalise(linear)", "a b", "", "'normalise(linear)' is not known to see every difference"),
        ("gaussian(2)*linear", "a", "", "'gaussian(2)*linear' is not known to see every difference"),
        ("gaussian(2) + delta", "a", "b", "'a, b: gaussian(2) + delta' sees numeric columns and categories apart, not how they hang together"),
        ("polynomial(2, offset=-1)", "a", "", "'polynomial(degree=2, offset=-1)' is not positive definite"),
        ("a: 2; b: delta", "a", "b", "'a: 2' is constant and sees nothing"),
        ("linear", "a", "b", "'a: linear' sees only differences of means"),
        ("additive(1)", "a b", "", "'additive' sees each column alone, not how they hang together"),
    ],
)  # fmt: skip
def test_what_a_kernel_cannot_see_is_a_warning(text, columns, categories, reason):
    told = [one for one in found(text, columns=columns, categories=categories).warnings if one.endswith(NOT)]
    assert told == ([] if reason is None else [reason + NOT])
