"""The additive kernel, and kernels whose values at half a bandwidth are a power of those at the whole."""

import naive
import numpy as np
import pytest
from tolerances import SAME_MACHINE, assert_close

from kerntest.errors import UsageError
from kerntest.kernels.algebra import Sum
from kerntest.kernels.bandwidth import BandwidthChooser, median_distance
from kerntest.kernels.base import Columns, DensePairs, Points
from kerntest.kernels.catalogue import why_not_characteristic
from kerntest.kernels.columns import Additive, OnColumns, bind
from kerntest.kernels.stationary import Gaussian
from kerntest.kernels.text import parse_kernel
from kerntest.matrices.lags import LagPairs

rng = np.random.default_rng(5)
ROWS = Points(rng.normal(size=(14, 3)) * [1, 2, 3], rng.integers(0, 3, size=(14, 2)))
NUMERIC, CATEGORIES = ("a", "b", "c"), ("d", "e")


def bound(text, numeric=NUMERIC, categories=CATEGORIES):
    return bind(parse_kernel(text), numeric, categories).kernel


def test_the_sum_over_columns_of_a_gaussian_of_each_and_of_equal_categories():
    rows = np.hstack([ROWS.numeric, ROWS.codes]).tolist()
    expected = naive.gram(lambda x, y: naive.additive(x, y, (0.5, 1.0, 2.0)), rows)
    assert_close(bound("additive(0.5, 1, 2)")(ROWS), expected)
    assert_close(bound("additive(0.5, 1, 2)").diagonal(ROWS), np.full(14, 5.0))


def test_each_column_gets_its_own_median():
    resolved = bound("additive").resolve(BandwidthChooser(ROWS, 0).median)
    medians = [median_distance(column) for column in ROWS.numeric.T]
    assert str(resolved) == f"a, b, c, d, e: additive({', '.join(map(repr, medians))})"
    assert bind(parse_kernel(str(resolved)), NUMERIC, CATEGORIES).kernel == resolved


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("additive", "additive"),
        ("additive(2)", "additive(2)"),
        ("additive(2, 2, 2)", "additive(2)"),
        ("additive(1,2,3)", "additive(1, 2, 3)"),
        ("0.5*additive + gaussian(1)", "0.5*additive + gaussian(1)"),
        ("additive(1) + additive(2)", "additive(1) + additive(2)"),
        ("normalise(additive(2))", "normalise(additive(2))"),
    ],
)
def test_text(text, printed):
    kernel = bound(text, categories=())
    assert str(kernel) == printed
    assert bound(printed, categories=()) == kernel


def test_of_one_column_it_is_a_gaussian():
    assert bound("additive(2)", ("a",), ()) == OnColumns(Gaussian(2), Columns((0,), ()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("additive(1, 2)", "the kernel 'additive(1, 2)' has 2 bandwidths for 3 numeric columns"),
        ("additive(-1)", "bandwidth of additive must be positive, not -1, at character 10 of 'additive(-1)'"),
        ("additive(1 2)", "unexpected '2' at character 12 of 'additive(1 2)'"),
        ("additive(", "a bandwidth is missing at character 10 of 'additive('"),
        ("additive(wide)", "a bandwidth is missing at character 10 of 'additive(wide)'"),
    ],
)
def test_errors(text, message):
    with pytest.raises(UsageError) as caught:
        bound(text)
    assert caught.value.message == message


def test_before_its_columns_are_known_it_has_no_values():
    for call in (
        lambda: Additive()(ROWS),
        lambda: Additive().resolve(lambda *_: 1.0),
        lambda: Additive().diagonal(ROWS),
    ):
        with pytest.raises(UsageError, match="not of which table"):
            call()


def test_what_it_does_not_see():
    reason = why_not_characteristic(bound("additive(1)"))
    assert reason.startswith("'additive' sees each column alone, not how they hang together")
    assert not Additive().characteristic
    assert isinstance(bound("additive(1)", categories=()), Sum)


@pytest.mark.parametrize("lay_out", [lambda x: DensePairs(x, x), lambda x: LagPairs(x.take(slice(0, 9)), x, 6)])
@pytest.mark.parametrize(
    "text", ["gaussian", "laplacian", "laplacian2", "hamming", "student-t", "d: hamming; *: gaussian"]
)
def test_half_the_bandwidth_is_a_power_of_the_whole(text, lay_out):
    alone, together = lay_out(ROWS), lay_out(ROWS)
    together.halve_bandwidths()
    for exponent in (2, 1, 0, -2, -3, -5):
        kernel = bound(text).resolve(lambda *_, at=exponent: 2.0**at)
        expected = kernel.evaluate(alone)
        # A squaring doubles what rounding did to the value before it: 4^5 times in five halvings of a Gaussian.
        assert_close(kernel.evaluate(together), expected, scale=1.0, share=SAME_MACHINE)
    # A bandwidth that is no half of the last one.
    assert_close(
        bound(text).resolve(lambda *_: 3.0).evaluate(together), bound(text).resolve(lambda *_: 3.0).evaluate(alone)
    )


def test_kept_values_are_not_written_into():
    pairs = DensePairs(ROWS, ROWS)
    pairs.halve_bandwidths()
    wide = Gaussian(2.0).evaluate(pairs).copy()
    for text in (
        "gaussian(2) + gaussian(2)",
        "gaussian(2)*3",
        "gaussian(2)^3",
        "normalise(gaussian(2))",
        "a: gaussian(2); *: gaussian(2)",
    ):
        bound(text, categories=()).evaluate(pairs)
        np.testing.assert_array_equal(Gaussian(2.0).evaluate(pairs), wide)  # the very array that is kept


def test_powers_of_tiny_values_stay_normal_numbers():
    far = Points.of(np.array([[0.0], [40.0]]))
    pairs = DensePairs(far, far)
    pairs.halve_bandwidths()
    for exponent in range(2, -8, -1):
        value = Gaussian(2.0**exponent).evaluate(pairs)[0, 1]
        assert value == 0.0 or value >= np.finfo(float).tiny
