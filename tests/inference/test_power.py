"""Differences that must be seen, and balanced designs, which are no evidence of a dependence."""

import numpy as np
import pytest

from kerntest import hsic_test, mmd_test


def gaussian_and_laplace(n, seed):
    """Two distributions of equal mean and variance."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.laplace(scale=np.sqrt(0.5), size=n)


def share_rejected(pairs, **options):
    return np.mean([mmd_test(x, y, **options).reject for x, y in pairs])


@pytest.mark.thorough
def test_equal_mean_and_variance():
    """The power at 500 rows each is about 0.9; 3 of 8 or fewer come with probability 4 in 10^4."""
    pairs = [gaussian_and_laplace(500, seed) for seed in range(8)]
    by_family = share_rejected(pairs)
    assert by_family > 0.4
    # What a median bandwidth alone makes of the same data.
    assert by_family >= share_rejected(pairs, kernel="gaussian", bandwidth="median")


def test_a_flipped_correlation_between_equal_margins():
    rng = np.random.default_rng(2)
    x = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 150)
    y = rng.multivariate_normal([0, 0], [[1, -0.7], [-0.7, 1]], 150)
    assert mmd_test(x, y).p_value <= 0.002
    assert not any(mmd_test(x, y, columns=name).p_value <= 0.002 for name in ("x1", "x2"))


def wiggles(seed):
    """A uniform sample, and one in narrow stripes: a difference far below the median distance."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0, 1, 400), (rng.integers(0, 30, 400) + rng.uniform(0, 0.3, 400)) / 30


def test_a_difference_at_a_small_scale():
    """To which one median bandwidth is nearly blind, and the family is not."""
    pairs = [wiggles(seed) for seed in range(4)]
    assert share_rejected(pairs) >= 0.75
    assert share_rejected(pairs, kernel="gaussian", bandwidth="median") <= 0.5


@pytest.mark.parametrize("jitter", [0.0, 0.2])
def test_a_full_factorial(jitter):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, y = (grid.ravel() + jitter * rng.normal(size=64) for grid in np.meshgrid(np.arange(8.0), np.arange(8.0)))
        assert hsic_test(x, y, seed=seed).p_value > 0.2
