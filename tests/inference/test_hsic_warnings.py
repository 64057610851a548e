"""What the independence test warns of, and where it must keep quiet."""

import numpy as np
import pandas as pd
import pytest
from two_variables import arrays, columns_of

from kerntest import hsic_test

GAUSSIANS = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"}


def warnings_of(*data, **options):
    return " | ".join(hsic_test(*data, **(GAUSSIANS | options)).warnings)


# Rows that repeat others


@pytest.mark.parametrize("times", [2, 3, 5, 20])
def test_rows_that_were_copied(times):
    x, y = (np.tile(side, (times, 1)) for side in arrays(30))
    found = warnings_of(x, y)
    assert f"{30 * (times - 1)} rows of {30 * times} repeat another row" in found
    assert "p-value is then too small" in found


@pytest.mark.parametrize("name", ["a", "z"])
def test_equal_numbers_with_other_categories_are_no_copies(name):
    """Whatever the column of categories is called: rows are put into an order by their names."""
    x, y = (np.tile(side, (2, 1)) for side in arrays(40))
    data = columns_of(x, y).assign(**{name: ["left"] * 40 + ["right"] * 40})
    assert "repeat" not in " | ".join(hsic_test(data, y_columns="y1").warnings)


# Rows that follow one another


def walks(n=200, seed=0):
    return np.random.default_rng(seed).normal(size=(2, n)).cumsum(axis=1)


def test_two_random_walks():
    found = warnings_of(*walks())
    assert found.startswith("neighbouring rows are alike in 'x1', 'y1': if the rows are a series in time")
    assert "--time-series" in found


def test_series_are_looked_at_in_the_order_of_the_file():
    x, y = walks()
    order = np.random.default_rng(1).permutation(len(x))
    assert "neighbouring" not in warnings_of(x[order], y[order])


def test_a_series_on_one_side_only_does_no_harm():
    x, y = walks()
    assert "neighbouring" not in warnings_of(x, np.random.default_rng(3).permutation(y))
    assert "neighbouring" not in warnings_of(np.random.default_rng(3).permutation(x), y)


def test_a_counter_beside_a_walk():
    data = pd.DataFrame({"day": np.arange(200), "level": walks()[0]})
    assert "neighbouring rows are alike in 'day', 'level'" in warnings_of(data)


def test_rows_with_missing_values_do_not_hide_a_series():
    x, y = walks()
    x[::17] = np.nan
    assert "neighbouring rows are alike in 'x1', 'y1'" in warnings_of(x, y, missing="drop")


def independent_columns():
    """Return columns without any order in them: of few values, of many zeros, and of rare events."""
    rng = np.random.default_rng(7)
    n = 3000
    return {
        "two values": rng.integers(0, 2, (2, n)),
        "three values": rng.integers(0, 3, (2, n)),
        "mostly zero": np.where(rng.random((2, n)) < 0.9, 0.0, rng.normal(size=(2, n))),
        "rare": (rng.random((2, n)) < 0.02).astype(int),
        "plain": rng.normal(size=(2, n)),
    }


@pytest.mark.parametrize("kind", independent_columns())
def test_ties_are_no_series(kind):
    """Equal values must not be ranked in the order of the file: the ranks would then run with the rows."""
    x, y = independent_columns()[kind]
    assert "neighbouring" not in warnings_of(x, y, null="moments")


def test_independent_rows_are_rarely_taken_for_series():
    rng = np.random.default_rng(5)
    for _ in range(50):
        assert "neighbouring" not in warnings_of(*rng.normal(size=(2, 60)), permutations=60)


# Relabellings


def test_of_few_rows_all_pairings_are_too_few():
    found = warnings_of(*arrays(4), alpha=0.01)
    assert "the test cannot reject; it takes more rows" in found


def test_a_floor_above_alpha_in_series_has_another_way_out():
    """The shifts of a series are as many as it has rows: asking for more relabellings gives no more of them."""
    found = warnings_of(*arrays(30), time_series=True, min_lag=12)
    assert "is 0.125, above alpha = 0.05" in found
    assert "--permutations" not in found


def test_series_say_that_their_p_value_is_asymptotic():
    found = warnings_of(*walks(), time_series=True, min_lag=20)
    assert "asymptotic" in found
    assert "minimum lag of 20 rows" in found
    assert "neighbouring" not in found


def test_a_few_rows_have_fewer_pairings_than_relabellings():
    result = hsic_test(np.arange(4.0), np.arange(4.0), alpha=0.02)
    assert result.null.p_floor == 1 / 24
    assert any("is 0.0417, above alpha = 0.02" in warning for warning in result.warnings)
    curve = hsic_test(np.arange(6.0), np.arange(6.0) ** 2, null="moments")
    assert any("of 6 rows no curve" in warning for warning in curve.warnings)
    enough = hsic_test(np.arange(8.0), np.arange(8.0) ** 2, null="moments")
    assert not any("no curve" in warning for warning in enough.warnings)
