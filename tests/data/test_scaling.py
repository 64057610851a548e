"""Mean 0, standard deviation 1, whatever the offset and the magnitude."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kerntest.data.columns import standardize


def test_agrees_with_the_textbook():
    numeric = np.random.default_rng(0).normal(3, 2, size=(500, 4))
    before = numeric.copy()
    scaled, mean, scale = standardize(numeric)
    np.testing.assert_array_equal(numeric, before)
    np.testing.assert_allclose(mean, numeric.mean(axis=0), rtol=1e-12, atol=0)
    np.testing.assert_allclose(scale, numeric.std(axis=0), rtol=1e-12, atol=0)
    np.testing.assert_allclose(scaled, (numeric - mean) / scale, rtol=0, atol=1e-12)


@pytest.mark.parametrize("magnitude", [1e-310, 1e-300, 1e-160, 1.0, 1e160, 1e300, 8e307])
def test_magnitude_does_not_matter(magnitude):
    base = np.array([[-1.0], [0.5], [1.0], [2.0]])
    scaled, mean, scale = standardize(base * magnitude)
    np.testing.assert_allclose(scaled, standardize(base)[0], rtol=1e-12, atol=0)
    np.testing.assert_allclose(mean / magnitude, [0.625], rtol=1e-12, atol=0)
    np.testing.assert_allclose(scale / magnitude, base.std(axis=0), rtol=1e-12, atol=0)


def test_a_huge_offset_does_not_cost_the_digits():
    base = np.random.default_rng(1).integers(0, 2, size=(1000, 1)).astype(float)
    scaled, mean, scale = standardize(base + 1e15)
    np.testing.assert_allclose(scaled, standardize(base)[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(scale, base.std(axis=0), rtol=1e-12, atol=0)
    np.testing.assert_allclose(mean, base.mean(axis=0) + 1e15, rtol=1e-15, atol=0)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e-310])
def test_constant_columns_become_zero(value):
    scaled, mean, scale = standardize(np.full((7, 2), value))
    np.testing.assert_array_equal(scaled, np.zeros((7, 2)))
    np.testing.assert_array_equal(mean, [value, value])
    np.testing.assert_array_equal(scale, [1, 1])


def test_no_columns():
    scaled, mean, scale = standardize(np.empty((5, 0)))
    assert (scaled.shape, mean.shape, scale.shape) == ((5, 0), (0,), (0,))


def test_multiplying_a_column_changes_nothing():
    numeric = np.random.default_rng(2).normal(size=(300, 3))
    scaled, _, _ = standardize(numeric * np.array([1000.0, 0.001, 1024.0]))
    np.testing.assert_allclose(scaled, standardize(numeric)[0], rtol=1e-12, atol=1e-12)


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 20), st.integers(1, 3)),
        elements=st.floats(-1e9, 1e9, allow_subnormal=False),
    )
)
def test_mean_zero_and_deviation_one(numeric):
    scaled, _, scale = standardize(numeric)
    varies = numeric.max(axis=0) > numeric.min(axis=0)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), np.where(varies, 1, 0), rtol=1e-9, atol=0)
    assert np.all(scale > 0)
