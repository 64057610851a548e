"""What must not change the result of an independence test, and what must."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_results import assert_same, assert_same_statistic
from tolerances import assert_close
from two_variables import arrays, columns_of, frame

from kerntest import hsic_test, parse_kernel

MEDIAN = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
WAYS = (
    {},
    MEDIAN,
    MEDIAN | {"null": "moments"},
    MEDIAN | {"null": "gamma"},
    MEDIAN | {"resampling": "random", "permutations": 200},
)


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_the_number_of_threads_changes_nothing(options):
    data = frame(150)
    one = hsic_test(data, y_columns="price", threads=1, **options)
    assert_same(hsic_test(data, y_columns="price", threads=3, **options), one)


@pytest.mark.parametrize("options", WAYS[1:], ids=str)
def test_the_order_of_rows_leaves_the_statistic(options):
    data = frame(50)
    expected = hsic_test(data, y_columns="price", **options)
    for order in (data.sample(frac=1, random_state=0), data.sort_values("price"), data.sort_values("weight")):
        assert_same_statistic(hsic_test(order, y_columns="price", **options), expected)


@pytest.mark.parametrize("n", [40, 2001], ids=["all pairs", "a sample of pairs"])
def test_bandwidths_depend_neither_on_the_order_of_rows_nor_on_the_side(n):
    x, y = arrays(n, 2, 2)
    order = np.random.default_rng(0).permutation(n)
    options = MEDIAN | {"null": "moments"}
    expected = hsic_test(x, y, **options)
    shuffled, turned = hsic_test(x[order], y[order], **options), hsic_test(y, x, **options)
    wanted = [expected.bandwidth_x, expected.bandwidth_y, expected.statistic]
    assert_close([shuffled.bandwidth_x, shuffled.bandwidth_y, shuffled.statistic], wanted, scale=1.0)
    assert_close([turned.bandwidth_y, turned.bandwidth_x, turned.statistic], wanted, scale=1.0)


@pytest.mark.parametrize("options", WAYS[1:], ids=str)
@pytest.mark.parametrize("strength", [0.0, 0.4])
def test_which_is_x_does_not_matter(strength, options):
    x, y = arrays(60, 2, 1, strength=strength)
    one, other = hsic_test(x, y, **options), hsic_test(y, x, **options)
    assert_same_statistic(other, one)
    assert_close([other.bandwidth_y, other.bandwidth_x], [one.bandwidth_x, one.bandwidth_y])
    assert (other.columns_x, other.columns_y) == (("x1",), ("y1", "y2"))


def test_the_p_value_is_that_of_all_pairings_whichever_is_x():
    """All 120 pairings of five rows, by many random permutations."""
    x, y = np.array([0.1, 1.0, 2.5, 2.7, 5.0]), np.array([0.4, 1.2, 2.0, 3.2, 2.9])
    A, B = (naive.u_centred(parse_kernel("gaussian(1)")(side).tolist()) for side in (x, y))
    values = np.array(naive.permuted_inner_products(A, B))
    exact = np.mean(values >= values[0] - 1e-12)
    options = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)", "scale": "none", "permutations": 5000}
    for sides in ((x, y), (y, x), (x[::-1], y[::-1])):
        found = hsic_test(*sides, **options)
        assert found.p_value == pytest.approx(exact, rel=0, abs=5 * np.sqrt(exact * (1 - exact) / 5000 * 5))


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 1000),
    factor=st.sampled_from([1000.0, 1e-6, 0.001, 3.7]),
    offset=st.sampled_from([0.0, 5.0, -1e3]),
    named=st.booleans(),
)
def test_the_unit_of_a_column_does_not_matter(seed, factor, offset, named):
    x, y = arrays(25, 2, 1, strength=0.3, seed=seed)
    options = {"threads": 1, "permutations": 150}

    def tested(x, y):
        if named:
            return hsic_test(columns_of(x, y), x_columns="x1,x2", y_columns="y1", **options)
        return hsic_test(x, y, **options)

    one = tested(x, y)
    of_one = x.copy()
    of_one[:, 1] = factor * (x[:, 1] + offset)
    for other in (tested(of_one, y), tested(x, factor * (y + offset))):
        assert other.p_value == one.p_value
        # Scaling loses the digits that the offset takes.
        assert_close(other.statistic, one.statistic, scale=1.0, condition=1.0 + abs(offset))


def test_a_bandwidth_of_each_side_is_its_own():
    """A thousand times larger on one side, either side: some other programs use the bandwidth of x for y."""
    x, y = arrays(100, strength=0.4)
    one = hsic_test(x, y, null="moments", scale="none", **MEDIAN)
    for data in ((1000 * x, y), (x, 1000 * y)):
        other = hsic_test(*data, null="moments", scale="none", **MEDIAN)
        assert_close([other.p_value, other.statistic], [one.p_value, one.statistic], scale=1.0)


def test_the_unit_does_matter_without_scaling():
    x, y = arrays()
    options = {"scale": "none", "kernel_y": "gaussian(1)"}
    one = hsic_test(x, y, kernel_x="gaussian(1)", **options)
    assert hsic_test(1000 * x, y, kernel_x="gaussian(1000)", **options).p_value == one.p_value
    assert abs(hsic_test(5 * x, y, kernel_x="gaussian(1)", **options).statistic - one.statistic) > 1e-3


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


@pytest.mark.parametrize("options", WAYS[:3], ids=str)
def test_the_order_of_columns_does_not_matter(options):
    data = frame(60)
    one = hsic_test(data, y_columns="price", **options)
    other = hsic_test(data[["sold", "price", "new", "city", "weight", "depth"]], y_columns="price", **options)
    assert_close([other.p_value, other.statistic], [one.p_value, one.statistic], scale=1.0)


def test_the_seed_decides():
    x, y = arrays(strength=0.3)
    found = [hsic_test(x, y, seed=seed, **MEDIAN) for seed in (0, 0, 1, 2)]
    assert_same(found[1], found[0])
    assert len({result.p_value for result in found}) == 3
    # Another seed is another set of relabellings of the same statistic.
    assert_close([result.statistic for result in found], [found[0].statistic] * 4)


@pytest.mark.parametrize("name", ["kernel_x", "kernel_y"])
def test_each_side_has_its_kernel(name):
    x, y = arrays(30, 2, 1)
    one = hsic_test(x, y, **{"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"} | {name: "laplacian(3)"})
    assert getattr(one, name) == "laplacian(3)"
    other = hsic_test(y, x, **{"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"} | {name: "laplacian(3)"})
    # The other variable has it now: another test.
    assert abs(other.statistic / one.statistic - 1) > 1e-3
