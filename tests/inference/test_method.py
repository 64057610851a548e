"""Which way a test goes where nobody says: by kernel matrices, or by features where these are too much work."""

import math
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from kerntest import DataWarning, compute_on, hsic_test, mmd_test
from kerntest.errors import UndecidedError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore::kerntest.KerntestWarning")
WORK = "kerntest.inference.method.MOST_WORK"
INSISTS = "features stand for the kernel matrices of"


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")) for _ in range(2)]
    for name, frame in zip("xy", frames, strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        frame.to_parquet(tmp_path / f"{name}.parquet")
    return tmp_path, frames


def of_samples(tables, **options):
    return mmd_test(*tables, **options)


def of_columns(tables, **options):
    return hsic_test(tables[0], x_columns="a,b", y_columns="c", **options)


TESTS = pytest.mark.parametrize("test", [of_samples, of_columns])


@TESTS
def test_beyond_the_bound_a_test_goes_by_features_and_says_so(tables, monkeypatch, test):
    _, frames = tables
    usual = test(frames)
    assert usual.method == "exact"
    assert not any(INSISTS in warning for warning in usual.warnings)
    monkeypatch.setattr(WORK, 1e6)
    with pytest.warns(
        DataWarning, match=r"more work than is done unasked \([\d.,]+ times as much\); method='exact' insists on these"
    ):
        found = test(frames)
    asked = test(frames, method="features")
    assert found.method == "features"
    assert (found.statistic, found.p_value) == (asked.statistic, asked.p_value)
    assert found.null.method == asked.null.method
    assert set(found.warnings) - set(asked.warnings) == {text for text in found.warnings if INSISTS in text}
    insisting = test(frames, method="exact")
    assert (insisting.method, insisting.statistic, insisting.p_value) == ("exact", usual.statistic, usual.p_value)
    assert not any(INSISTS in warning for warning in insisting.warnings)
    assert test(frames, features="nystroem:50").approximation.features == "nystroem:50"


# Nanoseconds of a pair of rows: sides, columns, and kernels of each test, by hand.
AUTO, LAGS = 15 * 1.5, 5.5


WORKS = [
    (of_samples, {}, 5 + 0.3 + AUTO),
    (of_samples, {"kernel": "gaussian"}, 5 + 0.3 + 8 * 1.5),
    (of_samples, {"kernel": "gaussian(1)"}, 5 + 0.3 + 1.5),
    (of_samples, {"kernel": "gaussian", "bandwidth": "median"}, 5 + 0.3 + 1.5),
    (of_samples, {"bandwidth": (1.0, 2.0)}, 5 + 0.3 + 6 * 1.5),
    (of_samples, {"columns": "a,b"}, 5 + 0.2 + AUTO),
    (of_samples, {"null": "moments"}, 5 + 0.3 + 40),
    (of_samples, {"where": "a > -9", "missing": "drop"}, 5 + 0.3 + AUTO),
    (of_columns, {}, 10 + 0.3 + 6 * LAGS),
    (of_columns, {"kernel_x": "linear"}, 10 + 0.3 + 4 * LAGS),
    (of_columns, {"null": "moments"}, 10 + 0.3 + 80),
]


@pytest.mark.usefixtures("without_shifts")
@pytest.mark.parametrize("place", range(len(WORKS)))
def test_the_work_is_counted_from_rows_columns_and_kernels(tables, monkeypatch, place):
    test, options, work = WORKS[place]
    folder, frames = tables
    rows = 600 if test is of_samples else 300
    files = [[folder / f"{name}.{ending}" for name in "xy"] for ending in ("csv", "parquet")]

    def of_a_large_file(data):
        # As it is of files that are too large to be read before that is known.
        with monkeypatch.context() as large:
            large.setattr("kerntest.data.read.LARGE_BYTES", 0)
            large.setattr("kerntest.inference.features.inputs.SMALL_BYTES", 0)
            return test(data, **options)

    def computed(**place):
        with compute_on(**place):
            return test(frames, **options)

    ways = [
        *(partial(test, data, **options) for data in files),
        *(partial(of_a_large_file, data) for data in files),
        *(partial(computed, **place) for place in ({"threads": 1}, {"threads": 3}, {"memory": "2GB"})),
    ]
    # By all ways where it hangs on the rows that are read alone, else by one of them.
    if set(options) - {"where", "missing"}:
        ways = [ways[place % len(ways)]]
    for most, method in ((work * rows**2 * 1.001, "exact"), (work * rows**2 * 0.999, "features")):
        monkeypatch.setattr(WORK, most)
        for way in (partial(test, frames, **options), *ways):
            assert way().method == method


def test_a_plan_says_why_features_are_taken_and_what_matrices_would_cost(tables, monkeypatch):
    _, frames = tables
    monkeypatch.setattr(WORK, 1.0)
    plans = []
    with compute_on(planned=plans.append):
        for options in ({}, {"method": "features"}):
            mmd_test(*frames, permutations=20, **options)
    (_, why), alone = (plan.work for plan in plans)
    assert "more work than is done unasked (10,008,000 times as much); method='exact' insists on these" in why
    assert len(alone) == 1


def test_rows_that_are_chosen_count(tables, monkeypatch):
    folder, _ = tables
    monkeypatch.setattr(WORK, (5 + 0.3 + AUTO) * 500**2)
    monkeypatch.setattr("kerntest.data.read.LARGE_BYTES", 0)
    monkeypatch.setattr("kerntest.inference.features.inputs.SMALL_BYTES", 0)
    for ending in ("csv", "parquet"):
        files = [folder / f"{name}.{ending}" for name in "xy"]
        assert mmd_test(*files).method == "features"
        assert mmd_test(*files, sample=250).method == "exact"
        assert mmd_test(*files, sample=251).method == "features"
        assert mmd_test(*files, where="a > 0").method == "exact"


@pytest.mark.parametrize(
    ("test", "options"),
    [
        (of_samples, {"explain": True}),
        (of_samples, {"resampling": "random", "permutations": 50}),
        (of_columns, {"statistic": "coco"}),
        (of_columns, {"null": "permutation"}),
        (of_columns, {"null": "pearson"}),
        (of_columns, {"judge": "smallest"}),
        (of_columns, {"permutations": 200}),
        (of_columns, {"bandwidth": (1.0, 2.0)}),
        (of_columns, {"time_series": True}),
    ],
)
def test_what_has_no_form_by_features_stays_exact_or_is_refused_with_its_cost(tables, monkeypatch, test, options):
    _, frames = tables
    monkeypatch.setattr(WORK, 4e6)
    assert test(frames, **options).method == "exact"
    monkeypatch.setattr(WORK, 1e4)
    with pytest.raises(
        UndecidedError, match=r"is more work than is done unasked \([\d.,]+ times as much\), and .* has no other"
    ) as caught:
        test(frames, **options)
    assert caught.value.code == "undecided.work"
    # A random part of a series is none.
    part = (
        "^where= takes a stretch of some"
        if "time_series" in options
        else r"^where= or sample=\d+ takes a part of the rows"
    )
    assert re.match(f"{part}.*; method='exact' insists$", caught.value.hint)
    assert test(frames, **options, method="exact").method == "exact"


def test_the_sample_that_a_refusal_names_is_not_refused(tables, monkeypatch):
    _, frames = tables
    monkeypatch.setattr(WORK, 1e5)
    with pytest.raises(UndecidedError) as caught:
        mmd_test(*frames, explain=True)
    few = int(caught.value.hint.split("sample=")[1].split()[0])
    assert few == float(f"{math.sqrt(1e5 / (5 + 0.3 + AUTO)) / 2:.1g}")
    assert mmd_test(*frames, explain=True, sample=few).method == "exact"


def test_what_features_cannot_do_stays_exact(tables, monkeypatch):
    _, (x, y) = tables
    monkeypatch.setattr(WORK, 1.0)
    assert mmd_test(x.head(199), y).method == "exact"
    assert mmd_test(x.head(200), y).method == "features"
    assert mmd_test(x, y, kernel="polynomial(3, 1, -2)").method == "exact"
    # Tables whose rows pair go by features, too, and so do files of them.
    assert hsic_test(x, y.rename(columns=str.upper)).method == "features"


def test_two_files_whose_rows_pair(tables, monkeypatch):
    folder, _ = tables
    monkeypatch.setattr(WORK, 1.0)
    monkeypatch.setattr("kerntest.data.read.LARGE_BYTES", 0)
    found = hsic_test(folder / "x.csv", folder / "y.csv", x_columns="a,b", y_columns="c")
    assert (found.method, found.n, found.columns_x, found.columns_y) == ("features", 300, ("a", "b"), ("c",))


def test_options_of_the_method():
    with pytest.raises(UsageError, match="method must be auto or exact or features"):
        mmd_test([[1.0]], [[1.0]], method="other")


def test_the_command_says_how_to_insist(kerntest, tables, monkeypatch):
    folder, _ = tables
    monkeypatch.setattr(WORK, 1.0)
    outcome = kerntest("mmd", str(folder / "x.csv"), str(folder / "y.csv"), "--json")
    assert outcome.code == 0
    assert "--method exact insists on these" in " ".join(outcome.err.split())
    outcome = kerntest("hsic", str(folder / "x.csv"), "--x", "a", "--y", "b")
    assert "moments" in outcome.out
    outcome = kerntest("hsic", str(folder / "x.csv"), "--x", "a", "--y", "b", "--method", "exact")
    assert "permutation" in outcome.out
    outcome = kerntest("hsic", str(folder / "x.csv"), "--x", "a", "--y", "b", "--null", "permutation")
    assert (outcome.code, outcome.out) == (4, "")
    assert "--null permutation has no other" in outcome.err
