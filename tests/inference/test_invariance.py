"""What must not change a result, and what must."""

import itertools

import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_results import assert_same, assert_same_statistic
from tolerances import assert_close

from kerntest import mmd_test, parse_kernel

# The family, and a curve.
NULLS = ({}, {"kernel": "gaussian", "bandwidth": "median", "null": "moments"})
# Of a family the reported kernel hangs on the relabellings.
ONE = {"kernel": "gaussian", "bandwidth": "median"}


def frames(n_x=40, n_y=55, seed=0, shift=0.4):
    rng = np.random.default_rng(seed)

    def frame(n, moved):
        return pd.DataFrame(
            {
                "price": rng.normal(size=n) + moved,
                "weight": rng.lognormal(size=n),
                "city": rng.choice(["Bern", "Oslo", "Rome"], n, p=[0.5 - moved / 2, 0.3, 0.2 + moved / 2]),
                "new": rng.random(n) < 0.5,
            }
        )

    return frame(n_x, shift), frame(n_y, 0.0)


@pytest.mark.parametrize("options", NULLS)
def test_the_number_of_threads_changes_nothing(options):
    x, y = frames(300, 350)
    one = mmd_test(x, y, threads=1, **options)
    assert_same(mmd_test(x, y, threads=3, **options), one)


@pytest.mark.parametrize("options", NULLS)
def test_the_order_of_rows_leaves_the_statistic(options):
    x, y = frames()
    expected = mmd_test(x, y, **ONE | options)
    for seed in range(3):
        shuffled = (frame.sample(frac=1, random_state=seed) for frame in (x, y))
        assert_same_statistic(mmd_test(*shuffled, **ONE | options), expected)


@pytest.mark.parametrize("n", [20, 1001], ids=["all pairs", "a sample of pairs"])
def test_bandwidths_do_not_depend_on_the_order_of_rows(n):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(n, 2)), rng.lognormal(size=(n, 2))
    options = {"kernel": "gaussian", "bandwidth": "median", "null": "moments"}
    expected = mmd_test(x, y, **options)
    for sides in ((rng.permutation(x), rng.permutation(y)), (y, x)):
        found = mmd_test(*sides, **options)
        assert_close(found.bandwidth, expected.bandwidth)
        assert_close(found.statistic, expected.statistic, scale=1.0)


@pytest.mark.parametrize("options", NULLS)
@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_which_file_is_x_does_not_matter(shift, options):
    x, y = frames(shift=shift)
    one, other = mmd_test(x, y, **ONE | options), mmd_test(y, x, **ONE | options)
    assert_same_statistic(other, one)
    assert (one.n_x, one.n_y) == (other.n_y, other.n_x)


def test_the_p_value_is_that_of_all_splits_whichever_file_is_x():
    """All 70 splits of eight rows, by many random relabellings: no order of the rows is left to matter."""
    x, y = np.array([0.1, 0.7, 2.0, 2.2]), np.array([1.0, 3.1, 3.5, 4.2])
    pooled, K = np.concatenate([x, y]), parse_kernel("gaussian(1)")
    values = [
        naive.mmd2_unbiased(K(pooled).tolist(), [int(row in members) for row in range(8)])
        for members in itertools.combinations(range(8), 4)
    ]
    exact = np.mean(np.array(values) >= values[0] - 1e-12)
    for sides in ((x, y), (y, x), (x[::-1], y)):
        found = mmd_test(*sides, kernel="gaussian(1)", scale="none", permutations=4000)
        assert found.p_value == pytest.approx(exact, rel=0, abs=5 * np.sqrt(exact * (1 - exact) / 4000 * 8))


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    factor=st.sampled_from([1000.0, 1e-6, -1.0, 0.001]),
    offset=st.sampled_from([0.0, 5.0, -1e3]),
)
def test_the_unit_of_a_column_does_not_matter(seed, factor, offset):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(25, 2)) + 0.3
    # A column that is turned round has its rows in another order.
    factor = abs(factor)
    change = np.array([factor, 1.0]), np.array([0.0, offset])
    one = mmd_test(x, y, threads=1, permutations=200)
    other = mmd_test(x * change[0] + change[1], y * change[0] + change[1], threads=1, permutations=200)
    assert other.p_value == one.p_value
    # Scaling loses the digits that the offset takes.
    digits = 1.0 + abs(offset)
    assert_close(other.statistic, one.statistic, scale=1.0, condition=digits)


def test_the_unit_does_matter_without_scaling():
    x, y = frames()
    x, y = x[["price", "weight"]], y[["price", "weight"]]
    one = mmd_test(x, y, scale="none", kernel="gaussian(1)")
    assert mmd_test(x * 1000, y * 1000, scale="none", kernel="gaussian(1000)").p_value == one.p_value
    other = mmd_test(x * [1000, 1], y * [1000, 1], scale="none", kernel="gaussian(1)")
    assert abs(other.statistic - one.statistic) > 1e-3


@pytest.mark.parametrize("options", NULLS)
def test_the_order_of_columns_does_not_matter(options):
    x, y = frames()
    one = mmd_test(x, y, **options)
    turned = ["new", "weight", "city", "price"]
    assert_same(mmd_test(x, y[turned], **options), one)
    other = mmd_test(x[turned], y[turned], **options)
    assert_close([other.statistic, other.p_value], [one.statistic, one.p_value], scale=1.0)


def test_the_seed_decides():
    x, y = frames(shift=0.15)
    found = [mmd_test(x, y, seed=seed) for seed in (0, 0, 1, 2)]
    assert_same(found[1], found[0])
    assert len({result.p_value for result in found}) > 1
    # Another seed is another set of relabellings of the same statistic.
    by_kernel = {result.kernel: result.statistic for result in found}
    assert_close([by_kernel[result.kernel] for result in found], [result.statistic for result in found])
