"""What is decided of numbers that are equal but for rounding: the same, whichever way rounding went."""

import numpy as np
import pytest

from kerntest.learning.cross_validation import smoothest
from kerntest.learning.scores import levelled
from kerntest.learning.solvers.preimage import largest_first
from kerntest.matrices.eigen import largest_entries

ROUNDINGS = [np.random.default_rng(seed).choice([-1e-15, 0.0, 1e-15], 6) for seed in range(8)]


@pytest.mark.parametrize("off", ROUNDINGS)
def test_rounding_decides_nothing(off):
    scores = np.array([0.5, 0.3, 0.3, 0.3, 0.4, 0.9]) * (1 + off)
    assert smoothest(scores, [np.array([9, 1, 2, 2, 9, 9]), np.array([9, 9, 1, 2, 9, 9])]) == 3
    axis = np.array([0.1, -0.7, 0.7, -0.7, 0.2, 0.7]) * (1 + off)
    assert largest_entries(np.column_stack([axis, -axis])).tolist() == [1, 1]
    found = largest_first(np.array([[2.0, 5.0, 2.0, 5.0, 3.0, 2.0]]) * (1 + off), 4, 1e-10)
    assert found.tolist() == [[1, 3, 4, 0]]
    level = levelled(np.array([7.0, -7.0, 7.0, 0.0, -7.0, 1e-3]) + off)
    assert [len({*level[[0, 2]]}), len({*level[[1, 4]]}), len({*level})] == [1, 1, 4]


def test_differences_that_are_no_rounding_decide():
    assert smoothest(np.array([0.3, 0.3 * (1 - 1e-8)]), [np.array([2, 1])]) == 1
    assert largest_entries(np.array([[0.7], [-0.7 * (1 + 1e-6)]])).tolist() == [1]
    assert largest_first(np.array([[1.0, 1.0 + 1e-9]]), 2, 1e-10).tolist() == [[1, 0]]
    assert levelled(np.array([1.0, 1.0 + 1e-9])).tolist() == [1.0, 1.0 + 1e-9]
    assert levelled(np.array([np.inf, -np.inf, np.inf])).tolist() == [np.inf, -np.inf, np.inf]
    assert levelled(np.empty(0)).shape == (0,)
