"""What must not change the result of an independence test, and what must."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from two_variables import arrays, columns_of, frame

from kerntest import hsic_test
from kerntest.inference.options import Options
from kerntest.inference.pair_analysis import analyse_pair

MEDIAN = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
WAYS = (
    {},
    MEDIAN,
    MEDIAN | {"null": "moments"},
    MEDIAN | {"null": "gamma"},
    MEDIAN | {"resampling": "random", "permutations": 200},
)


def numbers(result):
    """Return everything that a result says, without what names its inputs or takes time."""
    plain = result.to_dict()
    del plain["provenance"]
    return plain


def members(result, *names):
    return {tuple(getattr(one, name) for name in names): (one.z, one.p_value) for one in result.family.members}


def assert_turned(one, other):
    """Compare two results of which one has x and y exchanged: all but the order of two factors to the last bit."""
    assert other.p_value == one.p_value
    assert other.null == one.null
    assert (other.kernel_x, other.kernel_y) == (one.kernel_y, one.kernel_x)
    assert (other.columns_x, other.columns_y) == (one.columns_y, one.columns_x)
    for name in ("statistic", "hsic_unbiased", "hsic_biased", "effect_size"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-12, atol=1e-15, err_msg=name)
    if one.family:
        assert members(other, "kernel_y", "kernel_x") == members(one, "kernel_x", "kernel_y")


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_nothing(threads, options):
    data = frame(600)
    one, other = (hsic_test(data, y_columns="price", threads=count, **options) for count in (1, threads))
    assert other.p_value == one.p_value
    assert numbers(other) == numbers(one)


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_the_order_of_rows_changes_nothing(options):
    data = frame(50)
    expected = numbers(hsic_test(data, y_columns="price", **options))
    for seed in range(4):
        shuffled = data.sample(frac=1, random_state=seed)
        assert numbers(hsic_test(shuffled, y_columns="price", **options)) == expected


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), decimals=st.integers(0, 3), p=st.integers(1, 2))
def test_the_order_of_rows_with_ties_changes_nothing(seed, decimals, p):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(15, p)).round(decimals), rng.normal(size=(15, 1)).round(decimals)
    expected = numbers(hsic_test(x, y, threads=1, permutations=150))
    order = rng.permutation(15)
    assert numbers(hsic_test(x[order], y[order], threads=1, permutations=150)) == expected


def test_the_order_of_rows_changes_nothing_where_bandwidths_come_from_a_sample_of_pairs():
    x, y = arrays(2300, 2, 2)
    order = np.random.default_rng(0).permutation(2300)
    expected = hsic_test(x, y, **MEDIAN)
    assert numbers(hsic_test(x[order], y[order], **MEDIAN)) == numbers(expected)
    assert hsic_test(y, x, **MEDIAN).p_value == expected.p_value


@pytest.mark.parametrize("sort_by", ["x", "y"])
@pytest.mark.parametrize("options", WAYS[:3], ids=str)
def test_a_sorted_file_is_no_other_file(options, sort_by):
    """Bandwidths must not come from the first rows, nor relabellings lean on the order."""
    x, y = arrays(120, strength=0.4)
    order = np.argsort((x if sort_by == "x" else y)[:, 0])
    expected = hsic_test(x, y, **options)
    found = hsic_test(x[order], y[order], **options)
    assert (found.p_value, found.statistic, found.kernel) == (expected.p_value, expected.statistic, expected.kernel)


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("strength", [0.0, 0.4])
def test_which_is_x_does_not_matter_for_named_columns(strength, options):
    data = columns_of(*arrays(60, 2, 1, strength=strength))
    one = hsic_test(data, x_columns="x1,x2", y_columns="y1", **options)
    other = hsic_test(data, x_columns="y1", y_columns="x1,x2", **options)
    assert_turned(one, other)


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("strength", [0.0, 0.4])
def test_which_is_x_does_not_matter_for_arrays(strength, options):
    x, y = arrays(60, 2, 1, strength=strength)
    one, other = hsic_test(x, y, **options), hsic_test(y, x, **options)
    assert other.columns_x == ("x1",)
    other = replace(other, columns_x=("y1",), columns_y=("x1", "x2"))
    assert_turned(one, other)


@pytest.mark.parametrize("values", ["ranks", "two values", "three values"])
def test_which_is_x_does_not_matter_for_arrays_with_the_same_values(values):
    """Nothing but the pairing tells x and y apart: ranks, or columns with as many of each value."""
    rng = np.random.default_rng(2)
    held = {"ranks": np.arange(30), "two values": np.arange(30) % 2, "three values": np.arange(30) % 3}[values]
    for _ in range(4):
        x, y = rng.permutation(held), rng.permutation(held)
        one, other = (hsic_test(*pair, threads=1, **MEDIAN) for pair in ((x, y), (y, x)))
        assert other.p_value == one.p_value
        np.testing.assert_allclose(other.statistic, one.statistic, rtol=1e-12)


@settings(max_examples=25, deadline=None)
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
        np.testing.assert_allclose(other.statistic, one.statistic, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(other.effect_size, one.effect_size, rtol=1e-6, atol=1e-6)


def test_a_bandwidth_of_each_side_is_its_own():
    """A thousand times larger on one side, either side: some other programs use the bandwidth of x for y."""
    x, y = arrays(100, strength=0.4)
    one = hsic_test(x, y, null="moments", scale="none", **MEDIAN)
    for data in ((1000 * x, y), (x, 1000 * y)):
        other = hsic_test(*data, null="moments", scale="none", **MEDIAN)
        np.testing.assert_allclose(other.p_value, one.p_value, rtol=1e-8)
        np.testing.assert_allclose(other.statistic, one.statistic, rtol=1e-10)


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
    np.testing.assert_allclose(other.p_value, one.p_value, rtol=0 if one.null.exact else 1e-8)
    np.testing.assert_allclose(other.statistic, one.statistic, rtol=1e-10)


@pytest.mark.parametrize("kernel", ["laplacian2(1)", "matern(1, 0.5)", "gaussian(1)", "laplacian(1)", "student-t(1)"])
@pytest.mark.parametrize("resampling", ["shifts", "random"])
def test_equal_rows_tie(resampling, kernel):
    """Relabellings that pair equal rows differently are one relabelling, in any number of columns.

    Here are two different rows of three columns on each side, so that sums differ by far more than 1e-6 of their
    range or not at all.
    """
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, y = rng.integers(0, 2, (2, 12)).astype(float)
        options = Options("unbiased", "permutation", 300, 0.05, "standardize", 0, resampling)
        data = np.column_stack([x, x, 1 - x]), np.column_stack([y, 2 * y, y])
        analysis = analyse_pair(*data, options, kernels=(kernel, kernel), threads=1)
        values, p_value = analysis.relabelled, analysis.result.p_value
        assert p_value == np.mean(values >= values[0] - 1e-6 * np.ptp(values)), seed


def test_the_seed_decides():
    x, y = arrays(strength=0.3)
    found = [hsic_test(x, y, seed=seed, **MEDIAN) for seed in (0, 0, 1, 2)]
    assert numbers(found[0]) == numbers(found[1])
    assert len({result.p_value for result in found}) == 3
    # Another seed is another set of relabellings of the same statistic.
    np.testing.assert_allclose([result.statistic for result in found], found[0].statistic, rtol=1e-13)


@pytest.mark.parametrize("name", ["kernel_x", "kernel_y"])
def test_each_side_has_its_kernel(name):
    x, y = arrays(30, 2, 1)
    one = hsic_test(x, y, **{"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"} | {name: "laplacian(3)"})
    assert getattr(one, name) == "laplacian(3)"
    other = hsic_test(y, x, **{"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"} | {name: "laplacian(3)"})
    # The other variable has it now: another test.
    assert abs(other.statistic / one.statistic - 1) > 1e-3
