"""The shift test for two series: every shift against dense matrices, its level, and the lag that it finds."""

import itertools
import re
from pathlib import Path

import naive
import numpy as np
import pandas as pd
import pytest
from records import assert_same, numbers
from scipy.special import bdtrc
from tolerances import assert_close

from kerntest import hsic_test, parse_kernel
from kerntest.errors import DataError

GAUSSIANS = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(0.7)"}
MEDIAN = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
ESTIMATORS = ("unbiased", "biased")


def autoregressive(rng, n, memory, count=2):
    """Return independent stationary series, shape (count, n): each value is `memory` times the last and noise."""
    noise = rng.normal(size=(count, n + 50))
    series = np.zeros_like(noise)
    for row in range(1, n + 50):
        series[:, row] = memory * series[:, row - 1] + noise[:, row]
    return series[:, 50:]


def lagged(n=150, lag=3, seed=0):
    """Return x, and y that follows the square of x so many rows later."""
    rng = np.random.default_rng(seed)
    long = rng.normal(size=n + 2 * abs(lag))
    x = long[abs(lag) : abs(lag) + n]
    y = long[abs(lag) - lag : abs(lag) - lag + n] ** 2 + 0.2 * rng.normal(size=n)
    return x, y


def all_shifts(x, y, estimator, kernels=("gaussian(1)", "gaussian(0.7)")):
    """Return the estimate of HSIC when row i of x meets row i + t of y, for every t, from dense centred matrices."""
    A, B = (
        np.array(naive.centred[estimator](parse_kernel(text)(side).tolist()))
        for text, side in zip(kernels, (x, y), strict=True)
    )
    values = [np.vdot(A, np.roll(B, (-shift, -shift), axis=(0, 1))) for shift in range(len(x))]
    n = len(x)
    return np.array(values) / (n**2 if estimator == "biased" else n * (n - 3))


def naive_memory(values):
    """1 + 2 times the sum of the autocorrelations up to the first below 0.05, or a quarter of the lags."""
    rest = values - values.mean()
    r = [np.sum(rest[lag:] * rest[: len(rest) - lag]) / np.sum(rest**2) for lag in range(1, len(rest) // 4 + 1)]
    return 1 + 2 * sum(itertools.takewhile(lambda one: one >= 0.05, r))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("n", "minimum"), [(4, 1), (5, 2), (40, 1), (41, 7), (97, 48), (100, 50), (120, 6)])
def test_every_shift_is_that_of_dense_matrices(n, minimum, estimator):
    x, y = autoregressive(np.random.default_rng(n), n, 0.7)
    values = all_shifts(x, y, estimator)
    result = hsic_test(
        x, y, time_series=True, min_lag=minimum, scale="none", estimator=estimator, alpha=0.9, **GAUSSIANS
    )
    used = values[minimum : n - minimum + 1]
    assert len(used) == result.lags.shifts == n - 2 * minimum + 1
    assert_close(result.statistic, values[0])
    rounding = 1e-12
    memory = result.lags.memory
    assert memory == (1.0 if minimum == 1 else pytest.approx(naive_memory(used)))
    exceeding = np.count_nonzero(used >= values[0] - rounding)
    assert result.p_value == pytest.approx((memory + exceeding) / (memory + len(used)), rel=1e-12)
    together = np.append(used, values[0])
    assert_close(result.null.mean, together.mean())
    assert_close(result.null.standard_deviation, together.std())
    # Of several the shortest, forwards before backwards.
    strongest = np.flatnonzero(values >= values.max() - rounding)
    signed = [int(lag) if lag <= n // 2 else int(lag) - n for lag in strongest]
    assert result.lags.strongest == min(signed, key=lambda lag: (abs(lag), lag < 0))
    assert_close(result.lags.statistic_at_strongest, values.max())


def test_all_shifts_stand_for_independence_unless_a_delay_is_to_be_found():
    x, y = np.random.default_rng(0).normal(size=(2, 40))
    lags = hsic_test(x, y, time_series=True, **GAUSSIANS).lags
    assert (lags.minimum, lags.shifts, lags.memory) == (1, 39, 1.0)


def test_nothing_is_random_in_a_shift_test():
    x, y = lagged(60)
    one = hsic_test(x, y, time_series=True, **MEDIAN)
    other = hsic_test(x, y, time_series=True, seed=5, permutations=7, **MEDIAN)
    assert_same(numbers(other) | {"null": None}, numbers(one) | {"null": None})
    assert (other.null.permutations, other.null.mean) == (one.null.permutations, pytest.approx(one.null.mean))


def test_of_equal_lags_the_shortest_is_the_strongest():
    """Two series of period 10 that are in step at every tenth shift: which it is must not hang on rounding."""
    x = np.tile(np.random.default_rng(0).normal(size=10), 8)
    for lag in (0, 2, -3, 5):
        found = hsic_test(x, np.roll(x, lag), time_series=True, **GAUSSIANS)
        assert found.lags.strongest == lag


def test_a_clock_is_no_stationary_series():
    years, y = np.arange(1700.0, 1900.0), lagged(200)[1]
    said = "runs in one direction like a time or a counter: that is no stationary series"
    clocked = hsic_test(years, 0.01 * years + y, time_series=True)
    assert clocked.reject
    assert clocked.decision.endswith("no stationary series, and the p-value is not valid: see the warnings.")
    assert "not valid" not in hsic_test(*lagged(200, 0), time_series=True).decision
    assert [text for text in hsic_test(years, y, time_series=True).warnings if said in text]
    assert not [text for text in hsic_test(*lagged(200), time_series=True).warnings if "stationary series, and" in text]


@pytest.mark.parametrize(("lag", "later", "earlier"), [(4, "y", "x"), (-4, "x", "y")])
def test_a_delay_is_told_with_how_to_test_it(lag, later, earlier):
    """A minimum, which was named for it, leaves rows of the same time to be tested: nothing was found, and no more was said."""
    x, y = lagged(160, lag)
    said = (
        f"rows of the same time are tested, and the statistic is largest where {later} is taken 4 rows later than {earlier}: to test that "
        f"delay, put beside each {earlier} the {later} of 4 rows later, best in other data than those that showed it"
    )
    for minimum in None, 8:
        found = hsic_test(x, y, time_series=True, min_lag=minimum, **GAUSSIANS)
        assert not found.reject
        assert (found.lags.strongest, found.warnings[1:]) == (lag, (said,))
    # As it says.
    side = {"x": x[:-4], "y": y[:-4]} | {later: {"x": x, "y": y}[later][4:]}
    moved = hsic_test(side["x"], side["y"], time_series=True, **GAUSSIANS)
    assert moved.reject
    assert (moved.lags.strongest, len(moved.warnings)) == (0, 1)
    # Of what is far clearer at a delay where the test rejects, too.
    both = hsic_test(x, y + 0.6 * np.square(x), time_series=True, **GAUSSIANS)
    assert both.reject
    assert both.warnings[1:] == (said,)


def test_a_walk_with_noise_is_told_by_its_earlier_steps():
    """Noise on a random walk makes its steps turn back, so that without them it looks as if it came back itself."""
    rng = np.random.default_rng(0)
    walks = np.cumsum(rng.normal(size=(20, 2, 400)), axis=2)
    noisy = walks + 1.5 * rng.normal(size=walks.shape)
    told = "wander like random walks"
    found = [hsic_test(*some, time_series=True, alpha=0.999, **GAUSSIANS) for some in noisy]
    assert sum(any(told in text for text in one.warnings) for one in found) >= 10
    for some in autoregressive(rng, 400, 0.5), rng.normal(size=(2, 400)):
        assert not any(told in text for text in hsic_test(*some, time_series=True, alpha=0.999, **GAUSSIANS).warnings)


@pytest.mark.parametrize("minimum", [1, 10])
def test_a_long_memory_makes_no_dependence(minimum):
    """With neighbours left out and the observed shift counted once, 14 of 60 such pairs were found dependent."""
    pairs = [autoregressive(np.random.default_rng((5, seed)), 300, 0.95) for seed in range(60)]
    found = sum(hsic_test(*one, time_series=True, min_lag=minimum, threads=1).reject for one in pairs)
    assert bdtrc(found - 1, 60, 0.05) > 1e-3


def test_a_delay_is_found_where_it_is_kept_out_of_the_null():
    """A river rises hours after the rain and stays so for long: shifts about the delay exceed what is seen at none."""
    river = Path(__file__).parents[2] / "sample_data" / "river.csv"
    told = {"x_columns": "rain_mm", "y_columns": "level_cm", "time_series": True}
    every, far = hsic_test(river, **told), hsic_test(river, min_lag=6, **told)
    assert every.lags.strongest == far.lags.strongest == 3
    assert far.p_value <= 0.05 < every.p_value
    assert far.lags.memory > 1.0
    assert any(
        "y is taken 3 rows later" in text and "min_lag=6 keeps that delay out" in text for text in every.warnings
    )
    assert not any("min_lag" in text for text in far.warnings)


def test_a_minimum_that_cannot_reject_names_one_that_can():
    x, y = autoregressive(np.random.default_rng(9), 200, 0.6)
    options = {"time_series": True, **MEDIAN}
    (told,) = (text for text in hsic_test(x, y, min_lag=95, **options).warnings if "cannot reject" in text)
    named = int(re.search(r"or min_lag=1; up to about (\d+) may do$", told).group(1))
    assert 20 < named < 95
    assert hsic_test(x, y, min_lag=named, **options).null.p_floor <= 0.05


@pytest.mark.parametrize(("n", "memory"), [(56, 0.8), (120, 0.9), (200, 0.97)])
def test_a_minimum_that_is_named_can_reject(n, memory):
    """Hints that looked at the shifts alone ran in a circle: 4 for a delay, which cannot reject, and 1 in its place."""
    named = 0
    for seed in range(4):
        x, y = autoregressive(np.random.default_rng(seed), n + 2, memory)
        x, y = x[2:], x[:-2] + 0.2 * y[2:]
        for minimum in (None, 4, n // 2 - 1):
            told = hsic_test(x, y, time_series=True, min_lag=minimum, threads=1).warnings
            for hint in re.findall(r"min_lag=(\d+)", " ".join(told)):
                named += 1
                assert hsic_test(x, y, time_series=True, min_lag=int(hint), threads=1).null.p_floor <= 0.05
    assert named >= 3


def test_trends_on_both_sides_are_told():
    rng, told = np.random.default_rng(1), "wander like random walks or follow a trend"
    noise, line = rng.normal(size=(2, 400)), np.linspace(0.0, 1.5, 400)
    options = {"time_series": True, "alpha": 0.999, **GAUSSIANS}
    found = hsic_test(*(noise + line), **options)
    assert any(told in text for text in found.warnings)
    assert "no stationary series" in found.decision
    assert not any(told in text for text in hsic_test(noise[0] + line, noise[1], **options).warnings)
    # Of too few rows nobody can tell.
    few = hsic_test(noise[0, :25], noise[0, :25] ** 2, **options)
    assert few.reject
    assert not any(told in text for text in few.warnings)


@pytest.mark.parametrize("options", [{}, MEDIAN, MEDIAN | {"estimator": "biased"}], ids=str)
@pytest.mark.parametrize("lag", [-11, 0, 3])
def test_the_strongest_lag_has_its_sign(lag, options):
    """At a lag above 0 row i of x goes with row i + lag of y: y follows x. Exchanged, x follows y."""
    x, y = lagged(150, lag)
    options = options | {"time_series": True}
    forth, back = hsic_test(x, y, **options), hsic_test(y, x, **options)
    assert forth.lags.strongest == lag
    assert back.lags.strongest == -lag
    assert back.p_value == forth.p_value
    assert (back.kernel_x, back.kernel_y) == (forth.kernel_y, forth.kernel_x)
    assert forth.lags.statistic_at_strongest >= forth.statistic - 1e-9 * abs(forth.statistic)
    if not lag:
        assert forth.p_value == forth.null.p_floor
        assert_close(forth.lags.statistic_at_strongest, forth.statistic)


def series_p_values(repetitions, n, memory, **options):
    found = []
    for repetition in range(repetitions):
        x, y = autoregressive(np.random.default_rng((9, repetition)), n, memory)
        found.append(hsic_test(x, y, threads=1, **options).p_value)
    return np.array(found)


@pytest.mark.parametrize(
    ("options", "repetitions"),
    [(MEDIAN, 40), *(pytest.param(*one, marks=pytest.mark.thorough) for one in ((MEDIAN, 200), ({}, 100)))],
    ids=["few", "gaussian", "auto"],
)
def test_the_level_on_independent_series_that_remember(options, repetitions):
    """Pairs of series with a correlation of 0.7 from row to row: bounds that chance breaks once in a million."""
    p = series_p_values(repetitions, 200, 0.7, time_series=True, min_lag=20, **options)
    for alpha in (0.02, 0.05, 0.1, 0.2, 0.5):
        rejections = np.sum(p <= alpha)
        assert rejections == 0 or bdtrc(rejections - 1, len(p), alpha) > 1e-6, (alpha, rejections)
    # Not by never rejecting.
    assert np.mean(p <= 0.5) > 0.3


@pytest.mark.thorough
def test_rows_that_remember_are_no_sample_of_independent_ones():
    """What the shift test is for: the same series, taken for independent rows, look dependent."""
    p = series_p_values(30, 200, 0.9, permutations=200, **MEDIAN)
    assert np.mean(p <= 0.05) > 0.3
    shifted = series_p_values(30, 200, 0.9, time_series=True, min_lag=20, **MEDIAN)
    assert np.mean(shifted <= 0.05) < 0.3


def test_a_gap_inside_a_series_is_refused_and_missing_ends_are_not():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=60), rng.normal(size=60)
    x[[0, 59]] = np.nan
    assert hsic_test(x, y, time_series=True, missing="drop").n == 58
    x[30] = np.nan
    with pytest.raises(DataError, match="row 31: a row is left out here, inside the series") as caught:
        hsic_test(x, y, time_series=True, missing="drop")
    assert caught.value.code == "data.gap"
    assert "the longest from row 2 to row 30, by where= and" in str(caught.value.hint)
    y[40] = np.nan
    with pytest.raises(DataError, match="row 1: column") as caught:
        hsic_test(x, y, time_series=True)
    assert "the longest from row 2 to row 30, by" in str(caught.value.hint)


def panel(rng, firms=10, years=20):
    """Independent x and y of firms one below the other: a level of each, and noise."""
    n = firms * years
    level, noise = 2.0 * rng.normal(size=(2, firms)), 0.5 * rng.normal(size=(2, n))
    table = pd.DataFrame(
        {"firm": np.repeat(np.arange(firms), years), "year": np.tile(np.arange(1935, 1935 + years), firms)}
    )
    return table.assign(**dict(zip("xy", np.repeat(level, years, axis=1) + noise, strict=True)))


SERIES_OF_PANEL = {"x_columns": "x", "y_columns": "y", "time_series": True, "threads": 1, **GAUSSIANS}


def told_of_order(table, **options):
    found = hsic_test(table, **SERIES_OF_PANEL | options)
    return next((text for text in found.warnings if "several series" in text or "order of" in text), "")


def test_series_one_below_the_other_are_told():
    """Taken for one series they were found dependent in 40 % of cases, and nothing was said."""
    table, several = (
        panel(np.random.default_rng(0)),
        "the rows are several series, and the shift test takes them for one; ",
    )
    told = "'year' starts again 9 times: " + several
    ways = "cluster='firm', without time_series=True, relabels each as a whole, where= tests one of them"
    assert told_of_order(table) == told + ways
    assert told_of_order(table[:80]).endswith(ways)
    # The newest first; of few series, or of ones that no column names, there are no clusters to move.
    assert told_of_order(table[::-1]) == told + ways
    assert told_of_order(table.drop(columns="firm")) == told + "where= tests one of them"
    assert told_of_order(table[:60]) == f"'year' starts again 2 times: {several}where= tests one of them"
    assert told_of_order(table[table.firm == 3], alpha=0.999) == ""
    named = table.assign(firm="firm " + table.firm.astype(str))
    assert told_of_order(named.sort_values("year", kind="stable"), alpha=0.999).startswith(
        "rows with the same 'firm' are alike"
    )


def test_clusters_that_are_named_keep_the_level():
    rng, options = np.random.default_rng(1), {"x_columns": "x", "y_columns": "y", "cluster": "firm", "threads": 1}
    found = sum(hsic_test(panel(rng), **options, **GAUSSIANS).reject for _ in range(40))
    assert bdtrc(found - 1, 40, 0.05) > 1e-3


def test_rows_in_no_order_of_time_are_told():
    rng = np.random.default_rng(2)
    day = pd.date_range("2020-10-20", periods=150)
    table = pd.DataFrame({"date": day, "x": rng.normal(size=150), "y": rng.normal(size=150)})
    told = "the rows are not in the order of 'date': if it tells their time, shifts of them are none in time; sort the file by it"
    assert told_of_order(table.sample(frac=1, random_state=0)) == told
    years = table.assign(date=np.arange(1850, 2000)).rename(columns={"date": "year"})
    assert told_of_order(years.sample(frac=1, random_state=0)) == told.replace("date", "year")
    # In order, also the newest first, in which some overlap, and where a unit of time starts again.
    shaken = table.assign(date=day + pd.to_timedelta(rng.integers(0, 3, 150), "D"))
    units = table.assign(month=day.month, day=day.day).drop(columns="date")
    for ordered in (table, table[::-1], shaken, units, units.assign(year=day.year), units.assign(year=day.year)[::-1]):
        assert told_of_order(ordered, alpha=0.999) == ""
