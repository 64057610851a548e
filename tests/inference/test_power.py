"""Differences that must be seen."""

import numpy as np
import pandas as pd
import pytest

from kerntest import hsic_test, mmd_test


def gaussian_and_laplace(n, seed):
    """Two distributions of equal mean and variance."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.laplace(scale=np.sqrt(0.5), size=n)


@pytest.mark.parametrize("null", ["permutation", "moments"])
@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_a_clear_shift(estimator, null):
    rng = np.random.default_rng(0)
    result = mmd_test(rng.normal(size=(60, 3)), rng.normal(size=(80, 3)) + 1.0, estimator=estimator, null=null)
    assert result.reject
    assert result.p_value <= 1e-3
    assert result.mmd > 0.1
    assert 0.2 < result.effect_size < 1
    assert 0 < result.mmd_standard_error < result.mmd


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


def shares(rng):
    return (pd.DataFrame({"city": rng.choice(["a", "b", "c"], 300, p=p)}) for p in ([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]))


def linked(rng):
    """Equal numbers, equal shares of the categories; only their link differs."""
    for sign in (1, -1):
        number = rng.normal(size=200)
        flag = np.where(sign * number + rng.normal(size=200) > 0, "yes", "no")
        yield pd.DataFrame({"number": number, "flag": flag})


def few(rng):
    return rng.normal(size=(5, 2)) + 3, rng.normal(size=(200, 2))


@pytest.mark.parametrize("draw", [shares, linked, few])
def test_categories_their_links_and_few_rows_against_many(draw):
    assert mmd_test(*draw(np.random.default_rng(5))).p_value <= 0.01


# Dependence


MEDIAN = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
WAYS = {"auto": {}, "gaussian": MEDIAN, "moments": {"null": "moments"}}


def ten_columns(rng):
    """Return ten columns, and ten that follow them closely."""
    x = rng.normal(size=(200, 10))
    return x, x + 0.5 * rng.normal(size=(200, 10))


def parabola(rng):
    x = rng.normal(size=100)
    return x, x**2 + 0.3 * rng.normal(size=100)


def circle(rng):
    angle = rng.uniform(0, 2 * np.pi, 150)
    return np.cos(angle), np.sin(angle) + 0.1 * rng.normal(size=150)


def spread(rng):
    x = rng.normal(size=200)
    return x, x * rng.normal(size=200)


def category(rng):
    x = rng.integers(0, 3, 90)
    return x, (x == 1) + 0.5 * rng.normal(size=90)


FOUND = [(data, way) for data in (ten_columns, parabola, spread, category) for way in ("auto", "gaussian", "moments")]


@pytest.mark.parametrize(("data", "way"), [*FOUND, (circle, "auto")])
def test_dependence_is_found_every_time(data, way):
    for repetition in range(2):
        x, y = data(np.random.default_rng((5, repetition)))
        result = hsic_test(x, y, seed=repetition, permutations=200, **WAYS[way])
        assert 0 < result.p_value <= 0.05, repetition
