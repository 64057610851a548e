"""Rows far away from the others must not cost the others their distances."""

import naive
import numpy as np
import pytest
from tolerances import assert_close

from kerntest import mmd_test
from kerntest.errors import UndecidedError
from kerntest.kernels.base import DensePairs, Points
from kerntest.matrices.passes import LagPairs


def crowds(columns, far):
    """Two crowds of rows, `far` apart; 14 rows of p columns."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(14, columns)) + np.tile([0.0, far], 7)[:, None]


@pytest.mark.parametrize("columns", [1, 2, 3, 6])
@pytest.mark.parametrize("far", [0.0, 1e4, 1e9, 1e12])
def test_squared_distances_keep_their_digits(columns, far):
    X = crowds(columns, far)
    exact = np.array([[sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for y in X] for x in X])
    points = Points.of(X)
    dense = DensePairs(points.take(slice(0, 14)), points.take(slice(0, 14))).squared_distance()
    near = exact < 1e3
    np.testing.assert_allclose(dense[near], exact[near], rtol=1e-6, atol=1e-9)
    lags = LagPairs(points.take(slice(0, 8)), points.take(slice(0, 14)), 7).squared_distance()
    expected = np.array([[exact[i, i + k] for i in range(8)] for k in range(7)])
    np.testing.assert_allclose(lags, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("columns", [1, 3])
def test_sentinels_do_not_blind_the_test(columns):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(60, columns)), rng.normal(size=(60, columns)) + 1.5
    x[:6] = y[:6] = 1e10
    options = {"kernel": "gaussian(1.5)", "scale": "none", "estimator": "biased"}
    result = mmd_test(x, y, **options)
    K = naive.gram(lambda a, b: naive.gaussian(a, b, 1.5), np.concatenate([x, y]))
    expected = naive.mmd2_biased(K, [1] * 60 + [0] * 60)
    assert_close(result.statistic, expected)
    assert result.p_value <= 0.01
    assert mmd_test(x, y, null="moments", **options).p_value <= 0.01


@pytest.mark.parametrize("size", [1e160, 1e-200])
def test_distances_out_of_range_are_refused(size):
    rng = np.random.default_rng(2)
    with pytest.raises(UndecidedError, match="no bandwidth can be chosen"):
        mmd_test(rng.normal(size=20) * size, rng.normal(size=20) * size, scale="none")
