"""The tail of the Pearson III curve."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import assert_close

from kerntest.inference.nulls.approximations import log_upper_tail


def erlang_log_tail(k, x):
    """Return log P(G >= x) for a Gamma variable of whole shape k: log(e^-x sum_{j < k} x^j / j!), to all digits."""
    terms = [j * math.log(x) - math.lgamma(j + 1) for j in range(k)]
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms)) - x


def test_agrees_with_scipy_on_a_grid():
    from scipy.stats import pearson3  # noqa: PLC0415 - loads slowly

    z = np.linspace(-2.5, 12, 30)[:, None]
    skewness = np.array([0.003, 0.05, 0.3, 1.0, 2.0, 2.9, 6.0])
    expected = pearson3.logsf(z, skewness)
    # Below the left end of the distribution the tail is all of it.
    assert_close(log_upper_tail(z, skewness), expected)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 100, 10_000, 200_000])
def test_closed_form_for_whole_shapes_down_to_the_deepest_tails(k):
    z = np.array([-0.5, 0.0, 1.0, 3.0, 8.0, 20.0, 33.0, 34.5, 36.0, 38.0, 50.0, 100.0, 580.0, 620.0, 1e4, 1e6])
    # The sum takes long where it has many terms.
    z = z[:: 4 if k > 10_000 else 1]
    expected = [erlang_log_tail(k, k + one * math.sqrt(k)) for one in z]
    assert_close(log_upper_tail(z, 2 / math.sqrt(k)), expected)


@pytest.mark.parametrize("skewness", [0.0, -0.7, 1e-5, 9.9e-5])
def test_without_skewness_the_gaussian_tail(skewness):
    from scipy.special import log_ndtr  # noqa: PLC0415 - the oracle of this test alone

    z = np.linspace(-5, 60, 40)
    assert_close(log_upper_tail(z, skewness), log_ndtr(-z))


@given(z=st.floats(-30, 1e4), step=st.floats(1e-3, 1e4), skewness=st.floats(-1, 20) | st.floats(1e-4, 0.1))
def test_falls_with_z(z, step, skewness):
    higher, lower = log_upper_tail([z, z + step], skewness)
    assert higher <= 0
    # At most rounding: the logarithm of a tail near e^-600 has about nine digits where the shape is large.
    assert lower <= higher + 1e-6
    assert np.isfinite(lower)


def test_falls_strictly_across_the_change_of_method():
    for skewness in (1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 3.0):
        z = np.linspace(1, 700, 20_000)
        assert (np.diff(log_upper_tail(z, skewness)) < 0).all()


def test_scalars_and_arrays_broadcast():
    assert log_upper_tail(1.5, 0.4).shape == ()
    assert log_upper_tail(1e4, 0.4).shape == ()
    assert log_upper_tail(np.zeros((3, 1)), np.ones(4)).shape == (3, 4)
    deep = log_upper_tail(np.array([1.0, 1e4]), 0.4)
    assert_close(deep, [log_upper_tail(1.0, 0.4), log_upper_tail(1e4, 0.4)])
