"""Warnings where a test would mislead: raised where deserved, silent elsewhere."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from counted import calls_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kerntest import read_table
from kerntest.data.columns import match_tables
from kerntest.data.diagnostics import misleading, proportions_p_value
from kerntest.data.rows import apply_missing, pool

SAMPLES = Path(__file__).parents[2] / "sample_data"
rng = np.random.default_rng(0)


def found(x, y, **options):
    """Return the warnings about two sources, rows with missing values left out."""
    tables = [
        read_table(pd.DataFrame(source) if isinstance(source, dict) else source, name=name)
        for source, name in ((x, "before"), (y, "after"))
    ]
    matched = match_tables(*tables, **options)[:2]
    used = tuple(apply_missing(table, "drop")[0] for table in matched)
    return misleading(matched, pool(*used))


def only(warnings):
    assert len(warnings) == 1, warnings
    assert "\n" not in warnings[0]
    return warnings[0]


def noise(n, seed=0):
    return np.random.default_rng(seed).normal(size=n)


# Counters


@pytest.mark.parametrize("step", [1, 7, -1])
def test_a_counter_whose_ranges_lie_apart(step):
    x = {"order_id": 1000 + step * np.arange(50), "v": noise(50)}
    y = {"order_id": 9000 + step * np.arange(60), "v": noise(60, 1)}
    assert only(found(x, y)) == (
        "column 'order_id' counts the rows, and all of it in after lies above all of it in before: "
        "any two batches differ in it; leave it out with --exclude order_id"
    )
    assert found(x, y, exclude="order_id") == []


def test_row_numbers_that_start_anew():
    x, y = ({"row number": np.arange(n), "v": noise(n, n)} for n in (50, 80))
    text = only(found(x, y))
    assert text.startswith("column 'row number' counts the rows or identifies them: ")
    assert text.endswith("leave it out with --exclude 'row number'")


def test_a_time_as_numbers():
    x = {"seconds": np.cumsum(rng.random(50)), "v": noise(50)}
    y = {"seconds": 1000 + np.cumsum(rng.random(50)), "v": noise(50, 1)}
    assert "runs in one direction like a time or a counter, and all of it in after lies above" in only(found(x, y))
    assert found(x, x | {"v": noise(50, 1)}) == []


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(1).permutation(50),
        np.sort(np.random.default_rng(1).integers(0, 30, 50)),
        np.sort(np.random.default_rng(1).normal(size=50)),
        np.array([*range(49), 0]),
    ],
    ids=["shuffled", "sorted with ties", "sorted fractions", "not to the end"],
)
def test_what_is_no_counter(values):
    assert found({"a": values, "v": noise(50)}, {"a": values, "v": noise(50, 1)}) == []


def test_few_rows_count_nothing():
    assert found({"a": np.arange(19)}, {"a": np.arange(100, 119)}) == []


def test_ranges_apart_alone_are_a_difference_and_no_warning():
    assert found({"a": noise(50)}, {"a": noise(50, 1) + 100}) == []


# Dates


def days(first, n):
    return pd.to_datetime(first) + pd.to_timedelta(np.arange(n) % 9, unit="D")


def test_dates():
    apart = found({"day": days("2024-01-01", 30)}, {"day": days("2024-02-01", 30)})
    assert only(apart).startswith("column 'day' is a date, and all of it in after lies above all of it in before: any")
    overlapping = found({"day": days("2024-01-01", 30)}, {"day": days("2024-01-05", 30)})
    assert only(overlapping).startswith("column 'day' is a date: time itself differs between any two batches")
    assert "--exclude day" in only(overlapping)
    assert "before lies above" in only(found({"day": days("2024-03-01", 30)}, {"day": days("2024-02-01", 30)}))


# Sizes


def test_very_unequal_sizes():
    assert found({"v": noise(400)}, {"v": noise(20, 1)}) == []
    assert only(found({"v": noise(420)}, {"v": noise(20, 1)})) == (
        "before has 21 times as many rows as after: what the test can see is set by the 20 rows of the smaller one; "
        "give it more rows"
    )
    assert "after has 25 times" in only(found({"v": noise(4)}, {"v": noise(100, 1)}))


# Repeated rows


def test_rows_that_occur_more_than_once():
    x, y = {"v": noise(100), "t": ["a", "b"] * 50}, {"v": noise(100, 1), "t": ["a", "b"] * 50}
    copied = {name: np.concatenate([values, values[:7]]) for name, values in x.items()}
    assert only(found(copied, y)) == (
        "before: 7 rows of 107 repeat another row: the test takes copies for independent rows, and its p-value is then "
        "too small; keep one of each"
    )
    assert found({name: values[:105] for name, values in copied.items()}, y) == []


@pytest.mark.parametrize(
    "draw",
    [
        lambda r: {"v": np.round(r.normal(size=2000), 1)},
        lambda r: {"v": np.round(r.exponential(10, size=5000), 1)},
        lambda r: {"v": r.integers(0, 10, 500)},
        lambda r: {"v": r.integers(0, 100, 3000), "t": r.choice(["a", "b"], 3000)},
        lambda r: {"t": r.choice(["a", "b"], 500), "b": r.random(500) < 0.5},
        lambda r: {"v": r.random(500) < 0.1, "w": np.round(r.random(500), 1)},
        lambda r: {"v": np.where(r.random(500) < 0.5, 0.0, np.round(r.exponential(size=500), 2))},
        lambda r: {"age": np.round(r.normal(40, 12, 20000)), "income": np.round(r.lognormal(8, 0.5, 20000), -2)},
    ],
    ids=["rounded", "more rounded", "digits", "whole", "categories", "coarse", "half zero", "large"],
)
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_chance_repeats_raise_no_warning(draw, seed):
    r = np.random.default_rng(seed)
    assert found(draw(r), draw(r)) == []


@pytest.mark.parametrize("name", ["iris.csv", "wine.csv", "before.csv"])
def test_a_file_with_itself_shares_its_rows(name):
    text = only(found(SAMPLES / name, SAMPLES / name))
    assert text.startswith("the files share rows: 100 % of those of before are also in after; ")
    assert "not independent" in text


def test_a_part_that_is_in_both_files():
    whole = np.random.default_rng(0).normal(size=(400, 2))
    assert "15 % of those of before are also in after" in only(found(whole[:200], whole[170:]))
    assert found(whole[:200], whole[185:]) == []
    # Of few rows nothing can be told.
    assert found(whole[:19], whole[:19]) == []


def test_minus_zero_is_zero_and_columns_do_not_swap():
    r = np.random.default_rng(0)
    x = np.column_stack([np.zeros(40), r.normal(size=40)])
    assert "share rows" in only(found(x, x * [-1.0, 1.0]))
    both = r.normal(size=(40, 2))
    assert found(both, both[:, ::-1].copy()) == []


# Missing values


def test_rows_left_out_unevenly():
    x = {"v": noise(200), "w": np.where(np.arange(200) < 30, np.nan, noise(200, 1))}
    y = {"v": noise(300, 2), "w": np.where(np.arange(300) < 9, np.nan, noise(300, 3))}
    text = only(found(x, y))
    assert text.startswith("missing values cost before 15 % of its rows and after 3 % (p = ")
    assert text.endswith("--exclude w keeps more rows")
    y["w"][:40] = np.nan
    assert found(x, y) == []


@given(st.integers(0, 50), st.integers(0, 60))
def test_the_test_of_proportions_is_that_of_a_table(hits_x, hits_y):
    p_value = proportions_p_value(hits_x, 50, hits_y, 60)
    if 0 < hits_x + hits_y < 110:
        table = [[hits_x, 50 - hits_x], [hits_y, 60 - hits_y]]
        np.testing.assert_allclose(p_value, stats.chi2_contingency(table, correction=False).pvalue, rtol=1e-9, atol=0)
    else:
        assert p_value == 1


# The sample data


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("before.csv", "after.csv"),
        ("before.csv", "same_week.csv"),
        ("before.parquet", "after.parquet"),
        ("same_week.csv", "after.csv"),
        ("gaussian.csv", "laplace.csv"),
        ("iris_versicolor.csv", "iris_virginica.csv"),
    ],
)
def test_the_sample_data_raise_no_false_alarm(x, y):
    assert found(SAMPLES / x, SAMPLES / y) == []


@pytest.mark.parametrize("name", ["iris.csv", "wine.csv", "breast_cancer.csv"])
@pytest.mark.parametrize("seed", range(5))
def test_halves_of_the_measured_data_raise_no_false_alarm(name, seed):
    table = read_table(SAMPLES / name)
    order = np.random.default_rng(seed).permutation(table.n_rows)
    halves = table.take(order[: table.n_rows // 2]), table.take(order[table.n_rows // 2 :])
    assert misleading(halves, pool(*halves)) == []


def test_the_file_with_missing_values_deserves_one():
    assert "10 %" in only(found(SAMPLES / "before.csv", SAMPLES / "with_missing.csv"))


def test_the_warnings_reach_the_result():
    from kerntest import mmd_test  # noqa: PLC0415 - the other tests need no numerics

    x = pd.DataFrame({"id": np.arange(40), "v": noise(40)})
    y = pd.DataFrame({"id": np.arange(100, 140), "v": noise(40, 1)})
    result = mmd_test(x, y, permutations=20)
    assert "--exclude id" in only(result.warnings)


def test_looking_takes_no_more_calls_for_many_rows_than_for_few():
    calls = []
    for n in (200, 200, 20_000):
        r = np.random.default_rng(0)
        tables = tuple(read_table(r.normal(size=(n, 5)), name=name) for name in "xy")
        pooled = pool(*tables)
        assert misleading(tables, pooled) == []
        calls.append(calls_of(misleading, tables, pooled))
    assert calls[2] < 1.5 * calls[1]
