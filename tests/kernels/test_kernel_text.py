"""Kernel texts: what is read, how it is printed, and what is said about a text that is none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_expressions import expressions

from kerntest.errors import UsageError
from kerntest.kernels import ALIASES, NAMES
from kerntest.kernels.algebra import Constant, Expression, Normalised
from kerntest.kernels.base import Kernel
from kerntest.kernels.columns import ColumnGroups, ColumnName, Group
from kerntest.kernels.discrete import Delta, Hamming
from kerntest.kernels.dot import Exponential, Linear, Polynomial
from kerntest.kernels.stationary import Gaussian, Laplacian, Matern, Periodic, RationalQuadratic, StudentT
from kerntest.kernels.text import parse_kernel


@pytest.mark.parametrize(
    ("text", "kernel", "printed"),
    [
        ("gaussian", Gaussian(), "gaussian"),
        ("gaussian()", Gaussian(), "gaussian"),
        ("gaussian(1.5)", Gaussian(1.5), "gaussian(1.5)"),
        ("gaussian(bandwidth=1.50)", Gaussian(1.5), "gaussian(1.5)"),
        (" RBF ( 1e0 ) ", Gaussian(1), "gaussian(1)"),
        ("gaussian(+.5)", Gaussian(0.5), "gaussian(0.5)"),
        ("gaussian(1e22)", Gaussian(1e22), "gaussian(1e+22)"),
        ("student-t(1.5, 3)", StudentT(1.5, 3), "student-t(1.5, df=3)"),
        ("Student_T(df=3)", StudentT(df=3), "student-t(df=3)"),
        ("student(2)", StudentT(2), "student-t(2)"),
        ("rq(alpha=2, bandwidth=1)", RationalQuadratic(1, 2), "rational-quadratic(1, alpha=2)"),
        ("matern(1, nu=2.5)", Matern(1, 2.5), "matern(1, nu=2.5)"),
        ("periodic(2, 0.5)", Periodic(2, 0.5), "periodic(period=2, bandwidth=0.5)"),
        ("periodic(bandwidth=1)", Periodic(), "periodic"),
        ("poly(2, offset=-1)", Polynomial(2, 1, -1), "polynomial(degree=2, offset=-1)"),
        ("polynomial(3)", Polynomial(3), "polynomial"),
        ("exponential(gain=2)", Exponential(2), "exponential(gain=2)"),
        ("delta*hamming(2)", Delta() * Hamming(2), "delta*hamming(2)"),
        ("1 + gaussian(2)", 1 + Gaussian(2), "1 + gaussian(2)"),
        ("0.5*laplacian(2)", 0.5 * Laplacian(2), "0.5*laplacian(2)"),
        ("laplacian(2)*0.5", 0.5 * Laplacian(2), "0.5*laplacian(2)"),
        ("linear + 2*linear*delta", Linear() + 2 * Linear() * Delta(), "linear + 2*linear*delta"),
        ("(linear+1)*delta", (Linear() + 1) * Delta(), "(linear + 1)*delta"),
        ("linear+(1+delta)", Linear() + 1 + Delta(), "linear + 1 + delta"),
        ("linear^2", Linear() ** 2, "linear^2"),
        ("linear ** 2 * delta", Linear() ** 2 * Delta(), "linear^2*delta"),
        ("(linear*delta)^2", (Linear() * Delta()) ** 2, "(linear*delta)^2"),
        ("(linear^2)^3", (Linear() ** 2) ** 3, "(linear^2)^3"),
        ("gaussian(1)^0.5", Gaussian(1) ** 0.5, "gaussian(1)^0.5"),
        ("normalize(linear + 1)", Normalised(Linear() + 1), "normalise(linear + 1)"),
        ("NORMALISE(linear)^2", Normalised(Linear()) ** 2, "normalise(linear)^2"),
        ("((gaussian))", Gaussian(), "gaussian"),
        ("2", Constant(2), "2"),
        ("linear\n+\tdelta", Linear() + Delta(), "linear + delta"),
    ],
)
def test_read_and_print(text, kernel, printed):
    read = parse_kernel(text)
    assert read == kernel
    assert str(read) == printed
    assert parse_kernel(printed) == kernel


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("age: linear", [(["age"], Linear())]),
        ("age,income : gaussian(1.5);city:delta", [(["age", "income"], Gaussian(1.5)), (["city"], Delta())]),
        ("unit price: linear", [(["unit price"], Linear())]),
        ("'a,b;c:d*', \"it's\", `\"` : linear", [(["a,b;c:d*", "it's", '"'], Linear())]),
        ("'it''s': linear", [(["it's"], Linear())]),
        ("driver's: linear", [(["driver's"], Linear())]),
        ("größe, 東京: linear", [(["größe", "東京"], Linear())]),
        ("a: polynomial(2, 1) + linear; b: delta", [(["a"], Polynomial(2, 1) + Linear()), (["b"], Delta())]),
    ],
)
def test_column_groups(text, groups):
    expected = ColumnGroups(tuple(Group(tuple(map(ColumnName, names)), kernel) for names, kernel in groups))
    read = parse_kernel(text)
    assert read == expected
    assert parse_kernel(str(read)) == read


def test_wildcards_are_not_quoted_and_quoted_stars_are_no_wildcards():
    read = parse_kernel("temp_*, 'temp_*': linear; *: delta")
    wild, literal = read.groups[0].names
    assert (wild.wildcard, literal.wildcard) == (True, False)
    assert read.groups[1].names[0].is_rest
    assert str(read) == "temp_*, 'temp_*': linear; *: delta"
    assert parse_kernel(str(read)) == read


@pytest.mark.parametrize("name", [*NAMES, *ALIASES])
def test_every_name_is_read_in_any_spelling(name):
    text = f"{name}(linear)" if name.startswith("normali") else name
    assert parse_kernel(text) == parse_kernel(text.upper().replace("-", "_"))


ERRORS = [
    ("gausian(1.5)", 1, r"unknown kernel 'gausian' at character 1 of 'gausian\(1.5\)'", "did you mean 'gaussian'?"),
    ("linear + bogus", 10, "unknown kernel 'bogus' at character 10", "`kerntest kernels` lists them"),
    ("exp(1)", 1, "unknown kernel 'exp'", "`kerntest kernels`"),
    ("", 1, "the kernel text is empty", "for example 'gaussian'"),
    ("   ", 4, "the kernel text is empty", "for example"),
    ("(linear", 1, "this parenthesis is never closed at character 1", r"add a '\)'"),
    ("gaussian(1.5", 9, "this parenthesis is never closed at character 9", r"add a '\)'"),
    ("linear)", 7, r"unexpected '\)' at character 7", "no parenthesis is open"),
    ("()", 2, r"unexpected '\)' at character 2", "no parenthesis"),
    ("student-t(2, dof=3)", 14, "'student-t' has no argument 'dof'", r"did you mean 'df'\? write student-t\("),
    ("gaussian(sigma=3)", 10, "'gaussian' has no argument 'sigma'", r"write gaussian\(bandwidth\)"),
    ("gaussian(1, 2)", 13, "too many arguments for 'gaussian'", r"write gaussian\(bandwidth\)"),
    ("delta(1)", 7, "too many arguments for 'delta'", "write delta"),
    ("gaussian(bandwidth=1, bandwidth=2)", 23, "'bandwidth' is given twice", "write gaussian"),
    ("gaussian(1, bandwidth=2)", 13, "'bandwidth' is given twice", "write gaussian"),
    ("polynomial(degree=2, 1)", 22, "an argument without a name after one with a name", "write polynomial"),
    ("gaussian(0)", 10, "bandwidth of gaussian must be positive, not 0, at character 10", "found from the data"),
    (
        "linear + gaussian(-1)",
        19,
        "bandwidth of gaussian must be positive, not -1, at character 19",
        "found from the data",
    ),
    ("gaussian(nan)", 10, "must be a finite number, not nan", "found from the data"),
    ("gaussian(-inf)", 10, "must be a finite number, not -inf", "found from the data"),
    ("gaussian(1e999)", 10, "must be a finite number, not inf", "found from the data"),
    ("student-t(1, df=0)", 17, "df of student-t must be positive, not 0", "`kerntest kernels`"),
    ("polynomial(2.5)", 12, "degree of polynomial must be a whole number", "`kerntest kernels`"),
    ("gaussian(median)", 10, "a number for 'bandwidth' is missing", "leave it out to have it chosen"),
    ("periodic(bandwidth=auto)", 20, "a number for 'bandwidth' is missing", None),
    ("gaussian(1,)", 12, "too many arguments", "write gaussian"),
    ("student-t(1,)", 13, "a number for 'df' is missing", None),
    ("-1*linear", 1, "a kernel cannot have a negative weight at character 1", "positive definite"),
    ("linear + -2*delta", 10, "a kernel cannot have a negative weight at character 10", "positive definite"),
    (
        "1e999*linear",
        1,
        "the weight of a kernel must be a finite number, not inf, at character 1",
        "`kerntest kernels`",
    ),
    ("linear - delta", 8, "kernels cannot be subtracted: the difference need not be positive definite", "use '\\+'"),
    ("gaussian(1)-delta", 12, "kernels cannot be subtracted", "use '\\+'"),
    ("gaussian-delta", 9, "kernels cannot be subtracted", "use '\\+'"),
    ("linear +", 9, "a kernel is missing at the end", "leave the sign out"),
    ("linear *", 9, "a kernel is missing at the end", "leave the sign out"),
    ("+ linear", 1, r"unexpected '\+'", "joined by"),
    ("linear ^", 9, "an exponent is missing", None),
    ("linear ^ two", 10, "an exponent is missing", None),
    ("linear^0", 8, "the exponent of a power must be positive, not 0, at character 8", "`kerntest kernels`"),
    ("linear^0.5", 8, r"'linear\^0.5' need not be positive definite, at character 8", "whole exponent"),
    ("2^3^2", 4, "an exponent on an exponent", "multiply the exponents"),
    ("linear delta", 8, "unexpected 'd' at character 8", "joined by"),
    ("linear/2", 7, "unexpected '/'", r"0.5\*kernel"),
    ("normalise", 10, "'normalise' needs a kernel in parentheses", r"normalise\(polynomial\)"),
    ("normalise(linear, 2)", 17, "unexpected ','", "joined by"),
    ("a: linear; delta", 12, "a ':' is missing in the group 'delta' at character 12", "columns: kernel"),
    ("a: linear;", 11, "empty group at character 11", "columns: kernel"),
    ("; a: linear", 1, "empty group at character 1", "columns: kernel"),
    ("a: linear;; b: delta", 11, "empty group at character 11", "columns: kernel"),
    ("a: ", 2, "no kernel after the ':'", "columns: kernel"),
    (": linear", 1, "a column name is missing", "for all other columns"),
    ("a,,b: linear", 3, "a column name is missing", "for all other columns"),
    ("'a: linear", 1, "the quote ' is never closed", "add another '"),
    ("'a' b: linear", 5, "text after a quoted column", "whole name in quotes"),
    ("a: linear: delta", 10, "unexpected ':'", "separate groups by ';'"),
    ("a: gausian", 4, "unknown kernel 'gausian' at character 4", "did you mean 'gaussian'"),
    ("*: linear; *: delta", 12, r"'\*' stands for the rest of the columns and can be used once", "name the columns"),
    ("a, *, *: linear", 7, "can be used once", "name the columns"),
    ("x" * 100, 1, "at character 1 of 'x{60}'\\.\\.\\.$", "`kerntest kernels`"),
]


@pytest.mark.parametrize(("text", "position", "message", "hint"), ERRORS, ids=[case[0][:30] for case in ERRORS])
def test_errors_say_where_and_how_to_go_on(text, position, message, hint):
    with pytest.raises(UsageError, match=message) as caught:
        parse_kernel(text)
    error = caught.value
    assert (error.exit_code, error.code) == (2, "usage.kernel_text")
    assert error.where["position"] == position
    assert "\n" not in error.message
    if hint is None:
        assert error.hint is None
    else:
        assert re.search(hint, error.hint)


def test_the_value_is_told_to_programs():
    with pytest.raises(UsageError, match="gausian") as caught:
        parse_kernel("gausian(1.5)")
    assert caught.value.where == {"position": 1, "value": "gausian"}


@pytest.mark.parametrize("opening", ["(", "normalise("])
def test_depth_is_limited(opening):
    assert parse_kernel(opening * 50 + "linear" + ")" * 50)
    for depth in (51, 10_000):
        with pytest.raises(UsageError, match="more than 50 parentheses within each other"):
            parse_kernel(opening * depth + "linear" + ")" * depth)


def test_long_sums_are_no_problem():
    kernel = parse_kernel(" + ".join(["gaussian(2)"] * 5000))
    assert len(kernel.parts) == 5000
    assert parse_kernel(str(kernel)) == kernel


@given(expressions)
def test_random_expressions_round_trip(kernel):
    text = str(kernel)
    again = parse_kernel(text)
    assert again == kernel
    assert str(again) == text


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@given(st.lists(st.tuples(st.lists(names, min_size=1, max_size=3), expressions), min_size=1, max_size=3))
def test_random_groups_round_trip(groups):
    kernel = ColumnGroups(tuple(Group(tuple(map(ColumnName, columns)), inner) for columns, inner in groups))
    assert parse_kernel(str(kernel)) == kernel


words = [
    *NAMES,
    *ALIASES,
    *"()+*^:;,-=/ '\"`",
    "**",
    "0.5",
    "1e999",
    "nan",
    "df=",
    "bandwidth=",
    "normalise(",
    "é",
    "\n",
]


@given(st.text(max_size=30) | st.lists(st.sampled_from(words), max_size=15).map("".join))
def test_any_text_is_a_kernel_or_a_usage_error(text):
    try:
        kernel = parse_kernel(text)
    except UsageError as error:
        assert 1 <= error.where["position"] <= len(text) + 1  # noqa: PT017  # which of the two it is, is open
    else:
        assert isinstance(kernel, Kernel)
        assert isinstance(kernel, Expression | ColumnGroups)
        assert parse_kernel(str(kernel)) == kernel
