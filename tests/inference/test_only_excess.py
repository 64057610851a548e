"""Samples that are too much alike, and designs that are balanced, are no evidence of a difference or a dependence."""

import numpy as np
import pytest

from kerntest import hsic_test, mmd_test


@pytest.mark.parametrize("p", [1, 4])
def test_a_file_against_itself(p):
    x = np.random.default_rng(p).normal(size=(60, p))
    assert mmd_test(x, x).p_value == 1.0


@pytest.mark.parametrize("p", [1, 2, 4])
def test_rows_paired_by_design(p):
    for seed in range(6):
        rng = np.random.default_rng((seed, p))
        x = rng.normal(size=(60, p))
        assert mmd_test(x, rng.permutation(x) + 1e-3 * rng.normal(size=x.shape), seed=seed).p_value > 0.2


@pytest.mark.parametrize("jitter", [0.0, 0.2])
def test_a_full_factorial(jitter):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, y = (grid.ravel() + jitter * rng.normal(size=64) for grid in np.meshgrid(np.arange(8.0), np.arange(8.0)))
        assert hsic_test(x, y, seed=seed).p_value > 0.2
