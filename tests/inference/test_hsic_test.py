"""The independence test as one Python call: its numbers, and what its record says."""

import math

import naive
import numpy as np
import pandas as pd
import pytest
from catalogue_kernels import CATEGORIES, GROUPED, NUMERIC, UNBOUND, mixed_points, naive_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import assert_close
from two_variables import arrays, frame

from kerntest import hsic_test

ESTIMATORS = ("unbiased", "biased")
ONE_PAIR = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}


def mixed_frame(n, seed):
    """Return the rows of `mixed_points` under their names."""
    points = mixed_points(n, seed)
    codes = {
        name: [f"level {code}" for code in column] for name, column in zip(CATEGORIES, points.codes.T, strict=True)
    }
    return pd.DataFrame(dict(zip(NUMERIC, points.numeric.T, strict=True)) | codes)


def scaled_rows(x):
    return ((x - x.mean(axis=0)) / x.std(axis=0)).tolist()


# The numbers


@pytest.mark.parametrize("text", [*UNBOUND, *GROUPED])
def test_the_numbers_of_every_kernel_are_those_of_the_textbook(text):
    """Kernels on groups of columns see numbers and categories; the others the three numbers."""
    n = 9
    x = mixed_frame(n, 1)[[*NUMERIC, *(CATEGORIES if text in GROUPED else ())]]
    y = mixed_frame(n, 2)[list(NUMERIC)]
    if text == "delta":
        x = x.round()
    K = naive.gram((UNBOUND | GROUPED)[text], x.assign(**dict.fromkeys(CATEGORIES, "")).to_numpy().tolist())
    if text in GROUPED:
        K = naive_matrix(text, n, 1)
    L = naive_matrix("laplacian(0.7)", n, 2)
    result = hsic_test(x, y, kernel_x=text, kernel_y="laplacian(0.7)", scale="none", permutations=20)
    size = np.abs(K).max()
    assert_close(result.hsic_unbiased, naive.hsic_unbiased(K, L), scale=size)
    assert_close(result.hsic_biased, naive.hsic_biased(K, L), scale=size)
    assert_close(result.effect_size**2, naive.hsic_effect(K, L) ** 2)


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


def test_fields_of_the_record():
    result = hsic_test(*arrays(45, 2, 1), kernel_x="gaussian(2)", kernel_y="laplacian(0.5)")
    assert (result.statistic_name, result.n) == ("hsic", 45)
    assert (result.kernel_x, result.kernel_y) == ("gaussian(2)", "laplacian(0.5)")
    assert result.kernel == "gaussian(2) on x, laplacian(0.5) on y"
    assert (result.bandwidth_x, result.gamma_x, result.bandwidth_y) == (2.0, 0.125, 0.5)
    assert (result.columns_x, result.columns_y, result.columns) == (("x1", "x2"), ("y1",), ("x1", "x2", "y1"))
    assert (result.lags, result.coco, result.witness_correlation) == (None, None, None)
    null = result.null
    assert (null.permutations, null.orders, null.resampling) == (1035, 23, "cyclic shifts")
    assert result.provenance.kernel == "x: gaussian(2); y: laplacian(0.5)"


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


@pytest.mark.parametrize("null", ["permutation", "moments"])
@pytest.mark.parametrize("offset", [100.0, 1e3, 1e4])
def test_an_offset_does_not_matter_to_the_linear_kernel(offset, null):
    """HSIC of linear kernels is the squared covariance, wherever the origin is: years, days since 1970."""
    x, y = arrays(50, strength=0.0)
    y += 0.4 * x
    options = {"kernel_x": "linear", "kernel_y": "linear", "scale": "none", "null": null}
    near, far = hsic_test(x, y, **options), hsic_test(x + offset, y + offset, **options)
    np.testing.assert_allclose(far.statistic, near.statistic, rtol=1e-3)
    np.testing.assert_allclose(far.p_value, near.p_value, rtol=1e-2)
