"""What the independence test warns of, and where it must keep quiet."""

import numpy as np
import pandas as pd
import pytest
from two_variables import arrays, columns_of

from kerntest import hsic_pairs, hsic_test

GAUSSIANS = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"}


def warnings_of(*data, **options):
    return " | ".join(hsic_test(*data, **(GAUSSIANS | options)).warnings)


def test_columns_of_one_name_in_both_files_are_named_once():
    x, y = (pd.DataFrame({"level": side}) for side in (FIRST, SECOND))
    assert "neighbouring rows are alike in 'level' of both files: " in warnings_of(x, y)


def test_the_order_of_the_rows_is_what_is_tested_where_nothing_else_is_on_a_side():
    data = pd.DataFrame({"day": np.arange(1.0, 101.0), "rank": np.random.default_rng(4).permutation(100).astype(float)})
    (told,) = [text for text in hsic_test(data, x_columns="day", y_columns="rank").warnings if "'day'" in text]
    assert told.endswith("it is their order that is tested")


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

FIRST, SECOND = np.random.default_rng(0).normal(size=(2, 200)).cumsum(axis=1)
ORDER, N = np.random.default_rng(1).permutation(200), 3000
RNG = np.random.default_rng(7)
# Columns without any order in them: equal values must not be ranked in the order of the file.
WITHOUT_ORDER = {
    "two values": RNG.integers(0, 2, (2, N)),
    "three values": RNG.integers(0, 3, (2, N)),
    "mostly zero": np.where(RNG.random((2, N)) < 0.9, 0.0, RNG.normal(size=(2, N))),
    "rare": (RNG.random((2, N)) < 0.02).astype(int),
    "plain": RNG.normal(size=(2, N)),
}
# A trend that all rows are sorted by, and two kinds of rows one below the other: independent rows all the same.
SIZE = np.sort(RNG.gamma(2.0, size=300).round(1))
KIND = np.repeat([0.0, 2.0, 3.0], 100)
SORTED = {
    "sorted by size": (SIZE + RNG.normal(size=300), SIZE - RNG.normal(size=300)),
    "sorted by x": (SIZE, SIZE + RNG.normal(size=300)),
    "in groups": (KIND + RNG.normal(size=300), KIND - RNG.normal(size=300)),
    "in groups, sorted within": (KIND, np.sort(RNG.normal(size=(3, 300 // 3)), axis=1).ravel()),
    "nearly sorted groups": (KIND + 0.1 * RNG.normal(size=300), KIND),
}
# As a table is that is sorted by one column and, where that is tied, by another.
TIES = np.sort(RNG.gamma(2.0, size=300).round(0))
WITHIN = TIES + 0.3 * RNG.normal(size=300)
SORTED["one within another"] = (
    np.repeat(np.linspace(0, 1, 60), 5),
    np.sort(RNG.normal(size=(60, 5)) + np.linspace(0, 40, 60)[:, None], axis=1).ravel(),
)
SORTED["by ties"] = (TIES, WITHIN[np.lexsort([WITHIN, TIES])])
YEARS = np.arange(1950, 2010)
SERIES = {
    "two random walks": ((FIRST, SECOND), "'x1', 'y1'"),
    "with missing values": ((np.where(np.arange(200) % 17, FIRST, np.nan), SECOND), "'x1', 'y1'"),
    "a counter beside a walk": ((pd.DataFrame({"day": np.arange(200), "level": FIRST}),), "'day', 'level'"),
    "in another order": ((FIRST[ORDER], SECOND[ORDER]), None),
    # One on one side only does no harm.
    "x alone": ((FIRST, SECOND[ORDER]), None),
    "y alone": ((FIRST[ORDER], SECOND), None),
    **{kind: (tuple(columns), None) for kind, columns in WITHOUT_ORDER.items()},
    **{kind: (columns, None) for kind, columns in SORTED.items()},
    "several rows of a case": (
        tuple(
            np.repeat(RNG.normal(size=(1, 60)) + RNG.normal(size=(2, 60)), 4, axis=1) + 0.2 * RNG.normal(size=(2, 240))
        ),
        "'x1', 'y1'",
    ),
    # Where a column tells the time, a trend alone makes a series of noise.
    "years": ((pd.DataFrame({"year": YEARS, "a": np.linspace(0, 9, 60) + RNG.normal(size=60)}),), "'year', 'a'"),
    "years four times": (
        (pd.DataFrame({"year": np.repeat(YEARS, 4), "a": np.repeat(np.linspace(0, 9, 60), 4) + RNG.normal(size=240)}),),
        "'year', 'a'",
    ),
}


@pytest.mark.parametrize("kind", SERIES)
def test_rows_that_follow_one_another(kind):
    data, told = SERIES[kind]
    found = warnings_of(*data, missing="drop", null="moments", alpha=0.999)
    assert (f"neighbouring rows are alike in {told}: if the rows are a series in time" in found) == (told is not None)
    assert ("neighbouring" in found) == ("time_series=True" in found) == (told is not None)


def autoregressive(rng, n, coefficient):
    """A stationary series of n values with variance 1."""
    values = np.zeros(n + 200)
    for t, shock in enumerate(rng.normal(size=n + 199)):
        values[t + 1] = coefficient * values[t] + shock
    return values[200:] / values[200:].std()


@pytest.mark.parametrize("seed", range(3))
def test_times_of_large_and_of_small_values_follow_one_another(seed):
    rng = np.random.default_rng(seed)
    level, size, other = (autoregressive(rng, 800, 0.97) for _ in range(3))
    size, other = (np.exp(0.7 * one) * rng.normal(size=800) for one in (size, other))
    options = {"null": "moments", "alpha": 0.999}
    # Where one side is a series by far.
    for x, y in ((level, size), (size, level)):
        assert "neighbouring rows are alike in 'x1', 'y1'" in warnings_of(x, y, **options)
    assert "neighbouring" not in warnings_of(level, rng.permutation(size), **options)
    # An order with ties is none.
    order = np.sort(level.round(1))
    assert "neighbouring" not in warnings_of(
        order + 0.5 * rng.normal(size=800), np.exp(order) * rng.normal(size=800), **options
    )
    # Where a column tells the time.
    table = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=800), "x": size, "y": other})
    options |= {"x_columns": "x", "y_columns": "y"}
    assert "neighbouring rows are alike in 'x', 'y'" in warnings_of(table, **options)
    assert "neighbouring" not in warnings_of(table.drop(columns="day"), **options)
    assert "neighbouring" not in warnings_of(table.assign(y=rng.permutation(other)), **options)


def told_of(table, **options):
    return " | ".join(hsic_test(table, **options).warnings)


def in_words(values, words=("low", "middle", "high")):
    return pd.qcut(values, len(words), labels=list(words)).astype(str)


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("words", [("low", "high"), ("low", "middle", "high")], ids=len)
def test_categories_follow_one_another(words, timed):
    rng = np.random.default_rng(6)
    kind, value = in_words(autoregressive(rng, 500, 0.95), words), autoregressive(rng, 500, 0.95)
    table = pd.DataFrame({"kind": kind, "value": value})
    if timed:
        table.insert(0, "day", pd.date_range("2020-01-01", periods=500))
    options = {"alpha": 0.999, "permutations": 99, "x_columns": "kind", "y_columns": "value"}
    told = "neighbouring rows are alike in 'kind', 'value': if the rows are a series in time"
    assert told in told_of(table, **options)
    both = table.assign(value=in_words(value))
    assert (told in told_of(both, **options)) == timed
    screened = " | ".join(hsic_pairs(table[["kind", "value"]], alpha=0.999).warnings)
    assert "neighbouring rows are alike in 'kind', 'value'" in screened
    assert "x_columns='kind', y_columns='value', time_series=True tests series" in screened
    ends = table[["kind", "value"]].assign(value=table["value"].where(np.arange(500) > 2))
    assert "time_series=True, missing='drop' tests" in " | ".join(hsic_pairs(ends, alpha=0.999).warnings)
    # A test of series takes no row out of the middle.
    gaps = table[["kind", "value"]].assign(value=table["value"].where(~np.isin(np.arange(500), (100, 400))))
    filled = "of rows without gaps, the longest from row 102 to row 400, or once gaps are filled in, "
    found = " | ".join(hsic_pairs(gaps, alpha=0.999).warnings)
    assert f"{filled}hsic_test with x_columns='kind', y_columns='value', time_series=True tests series" in found
    assert f"{filled}time_series=True tests series" in told_of(gaps, missing="drop", **options)
    # In no order, and where groups stand together or come in a design.
    for other in (rng.permutation(kind), np.sort(kind), np.resize(np.repeat(words, 5), 500)):
        assert "neighbouring" not in told_of(table.assign(kind=other).drop(columns="day", errors="ignore"), **options)
    assert "neighbouring" not in told_of(table.assign(kind=rng.permutation(kind)), **options)


@pytest.mark.parametrize("units", [("month", "day"), ("year", "month", "day"), ("Week", "weekDay")], ids=" ".join)
def test_units_of_time_tell_it_together(units):
    """Neither month nor day tells the time of a row: by themselves they are a group and an order within it."""
    rng = np.random.default_rng(6)
    day = pd.date_range("2020-10-20", periods=150)
    parts = {"Week": np.arange(150) // 7, "weekDay": np.arange(150) % 7}
    parts |= {"year": day.year, "month": day.month + 12 * (day.year - 2020) * (len(units) == 2), "day": day.day}
    series = {"x": autoregressive(rng, 150, 0.4), "y": autoregressive(rng, 150, 0.4)}
    table = pd.DataFrame({unit: parts[unit] for unit in units} | series)
    options = {"alpha": 0.999, "permutations": 99, "x_columns": "x", "y_columns": "y"}
    told = "neighbouring rows are alike in 'x', 'y'"
    assert told in told_of(table, **options)
    (pair,) = (text for text in hsic_pairs(table, target="x", alpha=0.999).warnings if "neighbouring" in text)
    assert "'y'" in pair
    # Called otherwise, in another order, or of rows without one.
    assert told not in told_of(table.rename(columns=dict(zip(units, "abc", strict=False))), **options)
    assert told not in told_of(table.assign(**{units[-1]: rng.permutation(parts[units[-1]])}), **options)
    assert told not in told_of(table.assign(y=rng.permutation(table["y"])), **options)


def test_clusters_of_categories_that_follow_time_are_told():
    rng = np.random.default_rng(7)
    day = pd.date_range("2020-01-01", periods=1440)
    table = pd.DataFrame({"month": day.strftime("%Y-%m"), "kind": in_words(autoregressive(rng, 1440, 0.99))})
    table["value"] = autoregressive(rng, 1440, 0.99)
    options = {"cluster": "month", "x_columns": "kind", "y_columns": "value", "alpha": 0.999, "permutations": 99}
    told = "'month' follows time, and neighbouring ones are alike in 'kind'"
    assert told in told_of(table, **options)
    # Where the column of time is left out.
    dated = table.assign(month=np.repeat(np.arange(48), 30), day=day)
    assert told in told_of(dated, exclude="day", **options)
    assert told not in told_of(table.assign(kind=rng.permutation(table["kind"])), **options)


def test_short_series_beside_their_time_are_told_where_both_follow_it():
    """Of 27 rows that keep .7 of each value a quarter was falsely rejected, and one in six of these told."""
    rng, year = np.random.default_rng(5), np.arange(1990, 2017)

    def told(make):
        table = pd.DataFrame({"year": year, "x": make(), "y": make()})
        return "neighbouring" in told_of(table, x_columns="x", y_columns="y", permutations=60, alpha=0.999)

    assert sum(told(lambda: autoregressive(rng, 27, 0.9)) for _ in range(30)) > 20
    assert sum(told(lambda: rng.normal(size=27)) for _ in range(60)) <= 1


def test_years_of_a_panel_that_follow_one_another_are_no_clusters():
    """Of two walks that countries share, years as clusters rejected in half of the tables, and nothing was said."""
    rng, country, year = np.random.default_rng(3), np.repeat(np.arange(20), 24), np.tile(np.arange(1990, 2014), 20)

    def told(made, clock=year):
        of_years = {name: made(24)[year - 1990] + rng.normal(size=480) for name in "xy"}
        table = pd.DataFrame({"country": country, "year": clock, **of_years})
        options = {"x_columns": "x", "y_columns": "y", "permutations": 99, "alpha": 0.999}
        return "'year' follows time" in told_of(table, cluster="year", **options)

    def walk(n):
        return rng.normal(size=n).cumsum()

    assert sum(told(walk) for _ in range(10)) >= 8
    assert told(walk, pd.to_datetime([f"{one}-01-01" for one in year]))
    assert not any(told(lambda n: rng.normal(size=n)) for _ in range(20))


def test_independent_rows_are_rarely_taken_for_series():
    rng = np.random.default_rng(5)
    for _ in range(50):
        assert "neighbouring" not in warnings_of(*rng.normal(size=(2, 60)), permutations=60, alpha=0.999)
        kind = in_words(rng.normal(size=60))
        table = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=60), "x": kind, "y": rng.normal(size=60)})
        assert "neighbouring" not in told_of(table, permutations=60, alpha=0.999, x_columns="x", y_columns="y")


def test_a_table_that_is_sorted_by_one_column_and_within_it_by_another_is_no_series():
    table = pd.DataFrame(
        {"z": np.repeat(np.arange(30) ** 2, 10), "a": np.sort(RNG.normal(size=(30, 10)), axis=1).ravel()}
    )
    table["b"] = table["a"] + 0.1 * RNG.normal(size=300)
    options = {"x_columns": "a", "y_columns": "b"}
    assert "neighbouring" not in " | ".join(hsic_test(table, **options).warnings)
    assert "neighbouring" in " | ".join(hsic_test(table.drop(columns="z"), **options).warnings)


def test_the_order_of_rows_is_told_where_it_may_have_made_the_result():
    """Where nothing is found, too small a p-value does no harm."""
    assert "neighbouring" not in warnings_of(FIRST, SECOND, null="moments", alpha=1e-30)
    # A column that says when is looked at also where it is not tested.
    date = pd.date_range("2024-01-01", periods=200)
    trend = [np.linspace(0, 6, 200) + RNG.normal(size=200) for _ in range(2)]
    table = pd.DataFrame({"date": date, "a": trend[0], "b": trend[1]})
    options = {"x_columns": "a", "y_columns": "b"}
    assert "'a', 'b'" in " | ".join(hsic_test(table, **options).warnings)
    assert "neighbouring" not in " | ".join(hsic_test(table.drop(columns="date"), **options).warnings)


# Relabellings


def test_a_floor_above_alpha_in_series_has_another_way_out():
    """The shifts of a series are as many as it has rows: asking for more relabellings gives no more of them."""
    found = warnings_of(*arrays(30), time_series=True, min_lag=12)
    assert "is 0.125, above alpha = 0.05" in found
    assert "permutations=" not in found


def test_series_say_that_their_p_value_is_asymptotic():
    found = warnings_of(FIRST, SECOND, time_series=True, min_lag=20)
    assert "asymptotic" in found
    assert "neighbouring" not in found


def test_a_few_rows_have_fewer_pairings_than_relabellings():
    result = hsic_test(np.arange(4.0), np.arange(4.0), alpha=0.02)
    assert result.null.p_floor == 1 / 24
    assert "is 0.0417, above alpha = 0.02: the test cannot reject; it takes more rows" in " | ".join(result.warnings)
    curve = hsic_test(np.arange(6.0), np.arange(6.0) ** 2, null="moments")
    assert any("of 6 rows no curve" in warning for warning in curve.warnings)
    enough = hsic_test(np.arange(8.0), np.arange(8.0) ** 2, null="moments")
    assert not any("no curve" in warning for warning in enough.warnings)


def test_periods_of_scaled_columns_are_told():
    table = pd.DataFrame({"wind": RNG.uniform(0, 360, 200), "heat": RNG.normal(size=200)})
    told = "the period of 'periodic(period=360)' is in units of the scaled columns: scale='none' takes it in their own"
    for scale, known in (("standardize", True), ("none", False)):
        found = hsic_test(table, x_columns="wind", y_columns="heat", kernel_x="periodic(360)", scale=scale)
        assert any(text == f"x: {told}" for text in found.warnings) == known
