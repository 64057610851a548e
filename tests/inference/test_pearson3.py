"""The tail of the Pearson III curve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tolerances import assert_close

from kerntest.inference.nulls.approximations import SMALLEST, upper_tail


def test_agrees_with_scipy_down_to_the_smallest_number():
    z = np.r_[np.linspace(-2.5, 12, 30), 20.0, 50.0, 1e4][:, None]
    skewness = np.array([0.003, 0.05, 0.3, 1.0, 2.0, 2.9, 6.0])
    # Below the left end of the distribution the tail is all of it.
    expected = np.maximum(stats.pearson3.sf(z, skewness), SMALLEST)
    assert_close(np.log(upper_tail(z, skewness)), np.log(expected))


@pytest.mark.parametrize("skewness", [0.0, -0.7, 1e-5, 9.9e-5])
def test_without_skewness_the_gaussian_tail(skewness):
    z = np.linspace(-5, 60, 40)
    assert_close(np.log(upper_tail(z, skewness)), np.maximum(stats.norm.logsf(z), np.log(SMALLEST)))


@given(z=st.floats(-30, 1e4), step=st.floats(1e-3, 1e4), skewness=st.floats(-1, 20) | st.floats(1e-4, 0.1))
def test_falls_with_z_and_is_never_nothing(z, step, skewness):
    higher, lower = upper_tail([z, z + step], skewness)
    # At most rounding: a tail near e^-600 has about nine digits where the shape is large.
    assert 0 < lower <= higher * (1 + 1e-6) <= 1 + 1e-6
