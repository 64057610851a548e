"""Squared distances of no rows at all, and of rows farther apart than numbers reach."""

import numpy as np
import pytest

from kerntest.errors import UndecidedError
from kerntest.kernels.bandwidth import BandwidthChooser
from kerntest.kernels.base import DensePairs, Points, left_factor, right_factor


@pytest.mark.parametrize(("m", "n"), [(0, 0), (0, 3), (3, 0)])
def test_no_rows_have_no_distances(m, n):
    some, others = Points.of(np.ones((m, 2))), Points.of(np.zeros((n, 2)))
    assert DensePairs(some, others).squared_distance().shape == (m, n)


def test_rows_beyond_the_range_of_numbers_have_no_bandwidth_and_no_other_warning():
    points = Points.of(np.random.default_rng(0).normal(size=(30, 2)) * 1e307)
    with pytest.raises(UndecidedError, match="beyond the range of numbers"):
        BandwidthChooser(points, 0).median("euclidean", None)


def test_no_rows_have_empty_factors():
    nothing = np.empty((0, 3))
    assert left_factor(nothing).shape == right_factor(nothing).shape == (0, 5)
