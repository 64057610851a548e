"""The independence test as one Python call: its numbers, and what its record says."""

import math

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import assert_close
from two_variables import arrays, frame

from kerntest import hsic_test

ONE_PAIR = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}


# The numbers


@settings(max_examples=30, deadline=None)
@given(n=st.integers(4, 30), p=st.integers(1, 3), q=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_limits_of_the_numbers(n, p, q, seed):
    x, y = arrays(n, p, q, strength=seed % 3, seed=seed)
    result = hsic_test(x, y, permutations=50, threads=1)
    assert 1 / result.null.permutations <= result.p_value <= 1
    assert 0 <= result.effect_size <= 1
    assert result.hsic_biased >= 0
    assert (result.effect_size == 0) == (result.hsic_unbiased <= 0)
    assert result.null.p_floor == 1 / min(result.null.permutations, math.factorial(n))


# What the record says


def test_the_decision_is_a_sentence_about_the_columns():
    data = frame()
    found = hsic_test(data, x_columns="weight", y_columns="price")
    assert found.reject
    assert found.decision.startswith("'weight' and 'price' depend on each other (p = ")
    rng = np.random.default_rng(0)
    nothing = hsic_test(rng.normal(size=30), rng.normal(size=30), alpha=0.001)
    assert not nothing.reject
    assert nothing.decision.startswith("No dependence found between 'x1' and 'y1' at alpha = 0.001")
    several = hsic_test(data, y_columns="price")
    assert several.decision.startswith("'weight' and 4 more columns (x) and 'price' (y) depend on each other")
    two = hsic_test(data, x_columns="weight,city", y_columns="price")
    assert two.decision.startswith("'weight', 'city' (x) and 'price' (y) depend on each other")


def test_the_decision_tells_columns_of_one_name_apart(tmp_path):
    rng = np.random.default_rng(0)
    paths = [str(tmp_path / name) for name in ("x.csv", "y.csv")]
    for path in paths:
        pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"]).to_csv(path, index=False)
    several = hsic_test(*paths, alpha=0.001).decision
    assert f"between 'a', 'b' of {paths[0]} and 'a', 'b' of {paths[1]} at" in several
    one = hsic_test(paths[0], paths[0], x_columns="a", y_columns="a").decision
    assert one.startswith("'a' (x) and 'a' (y) depend")


def test_a_bandwidth_goes_to_the_kernel_that_leaves_one_open():
    x, y = arrays()
    result = hsic_test(x, y, kernel_x="gaussian(2)", kernel_y="laplacian", bandwidth=0.7)
    assert (result.kernel_x, result.kernel_y) == ("gaussian(2)", "laplacian(0.7)")
    several = hsic_test(x, y, kernel_x="gaussian", kernel_y="laplacian", bandwidth=[0.5, 1, 2])
    assert {(one.kernel_x, one.kernel_y) for one in several.family.members} == {
        (f"gaussian({a})", f"laplacian({b})") for a in ("0.5", "1", "2") for b in ("0.5", "1", "2")
    }


# Each side


def test_a_bandwidth_of_each_side_is_its_own():
    """A thousand times larger on one side, either side: some other programs use the bandwidth of x for y."""
    x, y = arrays(100, strength=0.4)
    one = hsic_test(x, y, null="moments", scale="none", **ONE_PAIR)
    for data in ((1000 * x, y), (x, 1000 * y)):
        other = hsic_test(*data, null="moments", scale="none", **ONE_PAIR)
        assert_close([other.p_value, other.statistic], [one.p_value, one.statistic], scale=1.0)
