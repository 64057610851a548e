"""Operators are arithmetic on kernel matrices, and keep what is known of their operands."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerntest.errors import UndecidedError, UsageError
from kerntest.kernels.algebra import Constant, Normalised, Power, Product, Sum
from kerntest.kernels.base import Columns, DensePairs, Points
from kerntest.kernels.columns import OnColumns
from kerntest.kernels.discrete import Delta, Hamming
from kerntest.kernels.dot import Exponential, Linear, Polynomial
from kerntest.kernels.stationary import Gaussian, Laplacian, Matern, Periodic, StudentT
from kerntest.kernels.text import parse_kernel

X = np.random.default_rng(3).normal(size=(8, 2))
Y = np.random.default_rng(4).normal(size=(5, 2))

small = st.sampled_from(
    [
        Gaussian(1.5),
        Laplacian(0.5),
        StudentT(1.0, 3.0),
        Matern(2.0, 2.5),
        Linear(),
        Polynomial(2, 0.5, 1),
        Periodic(3.0),
        Exponential(0.2),
    ]
)


@given(k=small, l=small, c=st.floats(0.01, 100), p=st.integers(1, 6))
def test_operators_are_arithmetic_on_matrices(k, l, c, p):  # noqa: E741  # k and l are the field's names for kernels
    def same(kernel, expected):
        np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-11, atol=1e-11)

    K, L = k(X, Y), l(X, Y)
    same(k + l, K + L)
    same(k * l, K * L)
    same(c * k, c * K)
    same(k * c, c * K)
    same(c + k, c + K)
    same(k + c, c + K)
    same(k**p, K**p)
    same(k + l * k + c, K + L * K + c)
    same((k + l) * (k + c), (K + L) * (K + c))


@given(k=small, l=small)
def test_normalised_has_a_unit_diagonal_and_no_scale(k, l):  # noqa: E741  # as above
    kernel = Normalised(k * l)
    np.testing.assert_allclose(np.diag(kernel(X)), 1.0, rtol=1e-7, atol=0)
    np.testing.assert_allclose(Normalised(9 * k * l)(X), kernel(X), rtol=1e-12, atol=1e-12)
    assert np.abs(kernel(X)).max() <= 1 + 1e-7


@given(k=small, l=small, p=st.integers(1, 4), c=st.just(0) | st.floats(1e-9, 10))
@settings(max_examples=30)
def test_the_algebra_stays_positive_definite(k, l, p, c):  # noqa: E741  # as above
    kernel = (k + l) ** p * k + c
    assert kernel.positive_definite
    K = kernel(X)
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * np.trace(K)


def test_sums_and_products_are_opened():
    a, b, c = Gaussian(1), Laplacian(1), Linear()
    assert (a + b) + c == a + (b + c) == Sum((a, b, c))
    assert (a * b) * c == a * (b * c) == Product((a, b, c))
    assert a * 0.5 == 0.5 * a
    assert (a + b) * c != a + b * c


def test_equal_kernels_are_equal_whatever_number_type_they_were_given():
    assert Gaussian(2) == Gaussian(2.0) == Gaussian(np.float64(2)) == Gaussian(np.int64(2))
    assert type(Gaussian(np.float64(2)).bandwidth) is float


@pytest.mark.parametrize("exponent", [0.5, 2.5])
def test_a_broken_power_needs_an_infinitely_divisible_kernel(exponent):
    for kernel in (Gaussian(1), Gaussian(1) * Delta(), Hamming(1), Exponential(), Periodic(), Normalised(StudentT(1))):
        assert (kernel**exponent).positive_definite
    for kernel in (Linear(), Polynomial(), Gaussian(1) + Laplacian(1), Gaussian(1) * Linear()):
        with pytest.raises(UsageError, match="need not be positive definite") as caught:
            kernel**exponent
        assert caught.value.exit_code == 2
        assert "whole exponent" in caught.value.hint


@pytest.mark.parametrize("exponent", [0, -1, float("nan"), float("inf"), "two"])
def test_exponents_that_are_none(exponent):
    with pytest.raises(UsageError, match="the exponent of a power must be"):
        Power(Gaussian(1), exponent)


def test_negative_weights_are_refused():
    with pytest.raises(UsageError, match=r"the weight of a kernel must be zero or positive, not -0\.5"):
        -0.5 * Gaussian(1)
    with pytest.raises(UsageError, match="zero or positive, not -2"):
        Gaussian(1) + -2


def test_operators_refuse_what_is_no_kernel():
    for other in ("gaussian", None, [1.0]):
        with pytest.raises(TypeError, match="unsupported operand"):
            Gaussian(1) + other
        with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
            Gaussian(1) * other
    with pytest.raises(UsageError, match="a sum needs two kernels or more, not 1"):
        Sum((Linear(),))
    with pytest.raises(UsageError, match="cannot stand inside a product") as caught:
        Product((Linear(), parse_kernel("a: linear")))
    assert "outermost" in caught.value.hint


@pytest.mark.parametrize(
    "kernel",
    [
        Exponential(),
        Polynomial(1000),
        Linear() ** 1000,
        Linear() ** 4,
        Linear() * Linear() * Linear(),
        1 + Linear() ** 2 * Linear(),
        1e75 * Linear() + 1e75 * Linear() * Linear(),
    ],
    ids=str,
)
def test_overflow_is_an_error_that_names_the_kernel(kernel):
    huge = Points.of(np.array([[1e70], [2e70]]) if "e+75" in str(kernel) else np.array([[1e60], [2e60]]))
    for use in (kernel, kernel.diagonal):
        with pytest.raises(UndecidedError, match="overflows on these data") as caught:
            use(huge)
        assert caught.value.exit_code == 4
        assert "scale the columns" in caught.value.hint


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Gaussian(0), "bandwidth of gaussian must be positive, not 0"),
        (lambda: Gaussian(-1.5), "bandwidth of gaussian must be positive, not -1.5"),
        (lambda: Laplacian(float("nan")), "bandwidth of laplacian must be a finite number, not nan"),
        (lambda: Laplacian(float("inf")), "bandwidth of laplacian must be a finite number, not inf"),
        (lambda: Hamming(0), "bandwidth of hamming must be positive, not 0"),
        (lambda: Gaussian("wide"), "bandwidth of gaussian must be a number, not 'wide'"),
        (lambda: Gaussian(True), "bandwidth of gaussian must be a number, not True"),
        (lambda: Gaussian(1e-200), "bandwidth of gaussian must be between 1e-75 and 1e"),
        (lambda: Gaussian(10**400), "bandwidth of gaussian must be a finite number"),
        (lambda: StudentT(1, 0), "df of student-t must be positive, not 0"),
        (lambda: StudentT(1, None), "df of student-t must be a number, not None"),
        (lambda: Matern(1, 101), "nu of matern must be positive and at most 100, not 101"),
        (lambda: Periodic(0), "period of periodic must be positive, not 0"),
        (lambda: Periodic(1, None), "bandwidth of periodic must be a number, not None"),
        (lambda: Polynomial(2.5), "degree of polynomial must be a whole number from 1 to 1000, not 2.5"),
        (lambda: Polynomial(0), "degree of polynomial must be a whole number from 1 to 1000, not 0"),
        (lambda: Exponential(-1), "gain of exponential must be positive, not -1"),
    ],
)
def test_arguments_are_checked(build, message):
    with pytest.raises(UsageError, match=message.replace(".", r"\.")) as caught:
        build()
    assert caught.value.exit_code == 2
    assert caught.value.code == "usage.kernel_argument"


def test_positive_definite_polynomials():
    assert Polynomial(3, 0, 0).positive_definite
    assert not Polynomial(3, -1, 0).positive_definite
    assert not Polynomial(3, 1, -1).positive_definite
    assert not (Gaussian(1) + Polynomial(3, 1, -1)).positive_definite


def test_gamma_is_the_same_bandwidth():
    assert Gaussian(2).gamma == pytest.approx(1 / 8, rel=1e-15)
    assert Gaussian().gamma is None


def test_resolve_asks_the_rule_for_each_open_bandwidth():
    asked = []

    def rule(metric, columns):
        asked.append((metric, columns))
        return float(len(asked))

    kernel = Gaussian() + 0.5 * Laplacian() * Hamming() + Normalised(StudentT(df=3)) ** 2 + Periodic() + Gaussian(7)
    assert kernel.free
    done = kernel.resolve(rule)
    assert not done.free
    metrics = ["euclidean", "manhattan", "mismatches", "euclidean"]
    assert asked == [(metric, None) for metric in metrics]
    assert str(done) == (
        "gaussian(1) + 0.5*laplacian(2)*hamming(3) + normalise(student-t(4, df=3))^2 + periodic + gaussian(7)"
    )


def test_resolve_tells_the_rule_the_columns_of_the_table():
    asked = []

    def rule(metric, columns):
        asked.append((metric, columns))
        return 1.0

    inner = OnColumns(Gaussian() + Linear(), Columns((1,), ()))
    OnColumns(inner * Hamming(), Columns((2, 5), (1,))).resolve(rule)
    assert asked == [("euclidean", Columns((5,), ())), ("mismatches", Columns((2, 5), (1,)))]


def test_an_open_bandwidth_cannot_be_evaluated():
    for kernel in (Gaussian(), Hamming(), Linear() + Laplacian()):
        with pytest.raises(UsageError, match="has no bandwidth yet") as caught:
            kernel(X)
        assert "resolve" in caught.value.hint


class OneForAll(DensePairs):
    """Pairs without category columns whose counts are one number for all, as a layout may return them."""

    def mismatches(self):
        return np.zeros((1, 1))

    def equal(self):
        return np.ones((1, 1), dtype=bool)


@pytest.mark.parametrize("kernel", [Hamming(1.0), Delta(), Constant(2), Linear() + Delta()])
def test_quantities_that_only_broadcast_still_give_full_arrays(kernel):
    nothing = Points.of(np.empty((4, 0)))
    values = kernel.evaluate(OneForAll(nothing, nothing))
    assert values.shape == (4, 4)
    values[0, 0] = 5.0
    assert values[1, 1] != 5.0
