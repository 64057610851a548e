"""Warnings where a test would mislead: raised where deserved, silent elsewhere."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kerntest import (
    hsic_joint,
    hsic_pairs,
    hsic_select,
    hsic_test,
    mmd_test,
    read_table,
    train_cca,
    train_kpca,
    train_svm,
    train_unmix,
)
from kerntest.data.columns import match_tables, pool
from kerntest.data.diagnostics.copies import copies_of, repeated_in
from kerntest.data.diagnostics.misleading import proportions_p_value, telling_apart, two_sample_warnings
from kerntest.data.facts import TableFacts
from kerntest.data.gaps import apply_missing

pytestmark = pytest.mark.usefixtures("without_shifts")

SAMPLES = Path(__file__).parents[2] / "sample_data"


def found(x, y, **options):
    """Return the warnings about two sources, rows with missing values left out."""
    tables = [
        read_table(pd.DataFrame(source) if isinstance(source, dict) else source, name=name)
        for source, name in ((x, "before"), (y, "after"))
    ]
    matched = match_tables(*tables, **options)[:2]
    used = [apply_missing(table, "drop")[0] for table in matched]
    pooled = pool(*used)
    facts, names = [TableFacts.of(table) for table in matched], (*pooled.numeric_names, *pooled.category_names)
    return [*two_sample_warnings(facts, names), *telling_apart(facts, names, ()), *repeated_in(used, pooled)]


def noise(n, seed=0):
    return np.random.default_rng(seed).normal(size=n)


def days(first, n=30):
    return pd.to_datetime(first) + pd.to_timedelta(np.arange(n) % 9, unit="D")


APART = "all of it in after lies above all of it in before: any two batches differ in it; leave it out with exclude='a'"
COUNTS = "counts the rows or identifies them: in each table its whole numbers are all different and run in one direction; leave it out with"
TIMES = np.cumsum(np.random.default_rng(0).random((2, 50)), axis=1)


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        *((1000 + k * np.arange(50), 9000 + k * np.arange(60), f"counts the rows, and {APART}") for k in (1, 7, -1)),
        (np.arange(50), np.arange(80), f"{COUNTS} exclude='a'"),
        (TIMES[0], 1000 + TIMES[1], f"runs in one direction like a time or a counter, and {APART}"),
        (TIMES[0], TIMES[1], None),
        (np.arange(19), np.arange(100, 119), None),
        # What is no counter, wherever it lies.
        *((np.random.default_rng(1).permutation(50), shift + np.random.default_rng(2).permutation(50), None) for shift in (0, 99)),
        (np.sort(np.random.default_rng(1).integers(0, 30, 50)), np.sort(np.random.default_rng(2).integers(0, 30, 50)), None),
        (np.sort(noise(50)), np.sort(noise(50, 1)), None),
        (np.array([*range(49), 0]), np.array([*range(100, 149), 0]), None),
        (noise(50), noise(50, 1) + 100, None),
        (days("2024-01-01"), days("2024-02-01"), f"is a date, and {APART}"),
        (days("2024-03-01"), days("2024-02-01"), "is a date, and all of it in before lies above all of it in after: any"),
        (days("2024-01-01"), days("2024-01-05"), "is a date: time itself differs between any two batches"),
    ],
)  # fmt: skip
def test_columns_that_count_or_follow_time(x, y, said):
    x, y = {"a": x, "v": noise(len(x))}, {"a": y, "v": noise(len(y), len(x))}
    warnings = found(x, y)
    assert len(warnings) == (said is not None)
    assert not warnings or warnings[0].startswith(f"column 'a' {said}")
    assert found(x, y, exclude="a") == []
    renamed = [{"row number": side["a"], "v": side["v"]} for side in (x, y)]
    assert not warnings or found(*renamed)[0].endswith("leave it out with exclude='row number'")


def test_rows_of_which_a_column_may_name_pairs_are_told():
    n, rng = 40, np.random.default_rng(0)
    level, order = rng.normal(size=n), rng.permutation(n)

    def told(ids, later=None, **options):
        later = ids if later is None else later
        before = pd.DataFrame({"id": ids, "v": level + 0.1 * noise(n)})
        after = pd.DataFrame({"id": later, "v": level + 0.1 * noise(n, 1)}).iloc[order]
        return [one for one in mmd_test(before, after, **options).warnings if "'id'" in one]

    paired = (
        "column 'id' has values that are in both samples, once in each: if rows of one value are of one case, as before and after, "
        "they are not independent: paired='id' compares each with its own"
    )
    names = np.array([f"P{k}" for k in rng.permutation(n)])
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n), unit="D")
    for ids in (names, rng.permutation(10 * n)[:n], dates, np.arange(n)):
        assert told(ids) == [f"{paired}; else leave it out with exclude='id'"]
        assert told(ids, columns="v") == [paired]
        assert told(ids, paired="id") == []
    # Numbers of rows are such seldom.
    before, after = (pd.DataFrame({"rownames": np.arange(n), "v": level + 0.1 * noise(n, seed)}) for seed in (0, 1))
    (found,) = [one for one in mmd_test(before, after).warnings if "'rownames'" in one]
    assert found.startswith(
        "column 'rownames' numbers the rows of both samples: leave it out with exclude='rownames'; only if"
    )
    # Some have gone, and others come.
    assert told(names, np.where(np.arange(n) < 10, "Q" + names.astype(object), names))
    assert not told(names, np.where(np.arange(n) < 30, "Q" + names.astype(object), names))
    # Measurements, several rows of one, and numbers of the rows that are not used.
    assert told(level) == told(np.arange(n) // 2, columns="v") == []
    counted = pd.DataFrame({"row": np.arange(n), "v": level})
    assert mmd_test(counted, counted.assign(v=noise(n, 2)), columns="v").warnings == ()


@pytest.mark.parametrize("method", ["exact", "features"])
def test_a_second_name_of_the_samples_is_told(method):
    n, code = 660, np.repeat([3.0, 8.0, 5.0], 220)
    names = np.array(["north", "south", "west"])
    table = pd.DataFrame(
        {"side": names[(code > 3.0) + (code > 5.0) * 1], "v": noise(n), "kind": np.tile([*"ab"], n // 2)}
    )
    table["site"], table["code"] = [f"{side} {k % 4}" for k, side in enumerate(table["side"])], code

    def told(data, **options):
        options |= {"permutations": 100, "method": method, "features": "nystroem:20" if method == "features" else None}
        return [one for one in mmd_test(data, by="side", **options).warnings if "apart" in one]

    said = "the samples apart: no value is in both; if"
    (text,) = told(table)
    assert text.startswith(f"columns 'site', 'code' each alone tell {said} they are other names of them")
    assert text.endswith("leave them out with exclude='site,code'")
    (text,) = told(table[code != 3.0], exclude="site")
    assert text == (
        f"column 'code' alone tells {said} it is another name of them, such as a code or a batch, leave it out with exclude='code'"
    )
    # Far from one another, and below 0.
    (text,) = told(table.assign(code=1e6 * code - 4e6), exclude="site")
    assert text.startswith("column 'code' alone tells")
    # Too many to be codes.
    assert told(table.assign(code=1000.0 * code + np.arange(n)), exclude="site") == []
    assert told(table, exclude="site,code") == []
    # One value in both is enough, numbers that are no codes may differ, and a column alone is what is asked about.
    table.loc[[0, 300, 500], ["site", "code"]] = "everywhere", 7.0
    assert told(table) == []
    assert told(table.assign(v=code + 0.01 * noise(n)), columns="v,kind") == []
    assert told(table.assign(v=code), columns="v") == []


def test_where_gaps_alone_tell_the_samples_apart_the_column_that_has_them_is_left_out():
    n = 60
    table = pd.DataFrame({"side": np.repeat([*"xy"], n // 2), "v": noise(n), "w": noise(n)})
    table.loc[table.side == "x", "v"] = np.nan

    def told(**options):
        return [one for one in mmd_test(table, by="side", missing="indicator", **options).warnings if "apart" in one]

    (text,) = told()
    assert text.startswith("column 'v missing' alone tells")
    assert text.endswith("leave it out with exclude='v'")
    assert told(exclude="v") == []
    learned = train_svm(table, "side", missing="indicator")
    assert any(
        "column 'v missing' alone predicts 'side'" in one and one.endswith("exclude='v'") for one in learned.warnings
    )


@pytest.mark.parametrize("method", ["exact", "features"])
def test_of_a_column_without_a_value_in_common_one_warning_is_enough(method):
    x, y = (
        pd.DataFrame({"v": noise(210, seed), "shop": np.tile([*letters], 70)})
        for seed, letters in ((0, "abc"), (1, "def"))
    )
    options = {"method": method, "features": "nystroem:20" if method == "features" else None}
    (text,) = [one for one in mmd_test(x, y, permutations=50, **options).warnings if "'shop'" in one]
    assert text.startswith("column 'shop' has no value in common: a, b, c in x, d, e, f in y; ")
    assert text.endswith("or leave it out with exclude='shop'")


def test_that_cases_are_apart_is_told_where_they_are_told():
    case = np.repeat(np.arange(40), 6)
    rows = {"patient": 100 + case, "day": np.tile(np.arange(6), 40), "v": noise(40)[case] + 0.3 * noise(240, 1)}
    table = pd.DataFrame(rows | {"arm": np.where(case % 2, "u", "v")})
    (text,) = [one for one in mmd_test(table, by="arm").warnings if "'patient'" in one]
    assert text.endswith("cluster='patient' relabels them together")


def test_rare_values_need_not_be_in_both_samples():
    def named(values):
        return ({"v": noise(40), "name": [f"{letter}{k % values}" for k in range(40)]} for letter in "xy")

    assert found(*named(25)) == []
    assert len(found(*named(20))) == 1


def test_very_unequal_sizes():
    assert found({"v": noise(400)}, {"v": noise(20, 1)}) == []
    said = "before has 21 times as many rows as after: what the test can see is set by the 20 rows of the smaller one; "
    assert found({"v": noise(420)}, {"v": noise(20, 1)}) == [said + "give it more rows"]
    assert "after has 25 times" in found({"v": noise(4)}, {"v": noise(100, 1)})[0]


# Repeated rows


def test_rows_that_occur_more_than_once():
    x, y = ({"v": noise(100, seed), "t": ["a", "b"] * 50} for seed in range(2))
    copied = {name: np.concatenate([values, values[:7]]) for name, values in x.items()}
    said = (
        "before: 7 rows of 107 repeat another row: the test takes copies for independent rows, and its p-value is then "
    )
    assert found(copied, y) == [said + "too small; keep one of each"]
    assert found({name: values[:105] for name, values in copied.items()}, y) == []


@pytest.mark.parametrize("name", ["iris.csv", "wine.csv", "before.csv"])
def test_a_file_with_itself_shares_its_rows_and_its_halves_do_not(name):
    (text,) = found(SAMPLES / name, SAMPLES / name)
    assert text.startswith("the files have the same rows in the same order: ")
    shuffled = read_table(SAMPLES / name).take(np.random.default_rng(0).permutation(read_table(SAMPLES / name).n_rows))
    (text,) = found(SAMPLES / name, shuffled)
    assert text.startswith("the files share rows: 100 % of those of before are also in after; ")
    assert "not independent" in text
    table = read_table(SAMPLES / name)
    for seed in range(5):
        halves = np.array_split(np.random.default_rng(seed).permutation(table.n_rows), 2)
        assert found(*(table.take(half) for half in halves)) == []
    assert found(SAMPLES / "before.parquet", SAMPLES / "after.parquet") == []
    assert found(SAMPLES / "same_week.csv", SAMPLES / "after.csv") == []


def test_a_file_with_itself_is_told_where_its_values_repeat():
    coarse = np.random.default_rng(0).normal(size=2000).round(1)
    said = (
        "the files have the same rows in the same order: they are one and the same, and the p-value is not "
        "valid; compare different ones"
    )
    assert found({"v": coarse}, {"v": coarse}) == [said]
    assert found({"v": coarse}, {"v": coarse[::-1].copy()}) == []
    numbered = [{"n": np.arange(2000.0) + first, "v": coarse} for first in (0, 2000)]
    assert found(*numbered)[-1] == said.replace(" in the same", ", but for numbers of rows, in the same")
    # A dose that every animal of both groups had in turn, or ten after ten of them.
    said = "the files have the same rows in the same order, by a design if they are not one and the same: they say nothing of a difference"
    for doses in (np.repeat([0.5, 1.0, 2.0], 10), np.tile([0.5, 1.0, 2.0], 10)):
        assert found({"dose": doses}, {"dose": doses}) == [said]
    assert found({"v": np.zeros(50), "w": noise(50)}, {"v": np.zeros(50), "w": noise(50, 1)}) == []


def test_numbers_of_rows_and_a_coarse_column_make_no_rows_of_both_files():
    rng = np.random.default_rng(0)
    x, y = (
        {"rownames": np.arange(1, n + 1), "kind": rng.integers(0, 2, n), "sort": rng.integers(0, 2, n)}
        for n in (300, 200)
    )
    assert not [text for text in found(x, y) if "share rows" in text]
    # Real ones are told beside numbers of the rows.
    level = rng.normal(size=300)
    x, y = ({"rownames": np.arange(1, 201), "v": level[part]} for part in (slice(0, 200), slice(100, 300)))
    assert [text for text in found(x, y) if "share rows: 50 %" in text]


def test_a_part_that_is_in_both_files():
    whole = np.random.default_rng(0).normal(size=(400, 2))
    assert "15 % of those of before are also in after" in found(whole[:200], whole[170:])[0]
    assert found(whole[:200], whole[185:]) == []
    # Of few rows nothing can be told.
    assert found(whole[:19], whole[:19]) == []
    # Minus zero is zero, and columns do not swap.
    zeros = np.column_stack([np.zeros(40), whole[:40, 0]])
    assert "share rows" in found(zeros, zeros[::-1] * [-1.0, 1.0])[0]
    assert found(whole, whole[:, ::-1].copy()) == []


# Missing values


def test_rows_left_out_unevenly():
    x = {"v": noise(200), "w": np.where(np.arange(200) < 30, np.nan, noise(200, 1))}
    y = {"v": noise(300, 2), "w": np.where(np.arange(300) < 9, np.nan, noise(300, 3))}
    (text,) = found(x, y)
    assert text.startswith("missing values cost before 15 % of its rows and after 3 % (p = ")
    assert text.endswith("missing='indicator' keeps all rows, and exclude='w' keeps some of them")
    y["w"][:40] = np.nan
    assert found(x, y) == []
    assert "10 %" in found(SAMPLES / "before.csv", SAMPLES / "with_missing.csv")[0]


@given(st.integers(0, 50), st.integers(0, 60))
def test_the_test_of_proportions_is_that_of_a_table(hits_x, hits_y):
    p_value = proportions_p_value(hits_x, 50, hits_y, 60)
    if 0 < hits_x + hits_y < 110:
        table = [[hits_x, 50 - hits_x], [hits_y, 60 - hits_y]]
        expected = stats.chi2_contingency(table, correction=False)
        # Of few rows the squares say too much where they say something.
        exact = expected.pvalue < 0.01 and expected.expected_freq.min() < 5
        peer = stats.fisher_exact(table) if exact else expected
        np.testing.assert_allclose(p_value, peer.pvalue, rtol=1e-9, atol=0)
    else:
        assert p_value == 1


def test_one_row_of_few_that_is_left_out_says_nothing():
    assert proportions_p_value(0, 400, 1, 40) == pytest.approx(40 / 440)
    assert proportions_p_value(0, 400, 6, 60) == pytest.approx(3.9e-6, rel=0.01)
    one = {"v": np.where(np.arange(8) < 1, np.nan, noise(8, 1)), "w": noise(8, 2)}
    assert not any("missing values cost" in text for text in found({"v": noise(400), "w": noise(400, 3)}, one))


# Rows that are copies, told from rows that chance makes equal.

# Dawson (1995): passengers and crew by class, sex, age and whether they survived.
TITANIC = (
    (35, "3 m child no"), (17, "3 f child no"), (118, "1 m adult no"), (154, "2 m adult no"), (387, "3 m adult no"),
    (670, "crew m adult no"), (4, "1 f adult no"), (13, "2 f adult no"), (89, "3 f adult no"), (3, "crew f adult no"),
    (5, "1 m child yes"), (11, "2 m child yes"), (13, "3 m child yes"), (1, "1 f child yes"), (13, "2 f child yes"),
    (14, "3 f child yes"), (57, "1 m adult yes"), (14, "2 m adult yes"), (75, "3 m adult yes"), (192, "crew m adult yes"),
    (140, "1 f adult yes"), (80, "2 f adult yes"), (76, "3 f adult yes"), (20, "crew f adult yes"),
)  # fmt: skip


def titanic(r):
    del r
    return pd.DataFrame([row.split() for count, row in TITANIC for _ in range(count)])


def normals(r, n=120, digits=None):
    drawn = r.normal(size=(n, 3))
    return pd.DataFrame(drawn if digits is None else np.round(drawn, digits))


def answers(r, n=400, alike=0.5):
    """Ten answers from 1 to 5 that go together."""
    drawn = np.sqrt(alike) * r.normal(size=(n, 1)) + np.sqrt(1 - alike) * r.normal(size=(n, 10))
    return pd.DataFrame(np.clip(np.round(3 + 1.1 * drawn), 1, 5))


def always_the_same_answer(r):
    """One in ten gives the same answer to all questions."""
    table = answers(r, alike=0.3)
    table.iloc[:40] = r.choice([1, 2, 3, 3, 3, 4, 5], size=(40, 1))
    return table


def baskets(r):
    """Rare things that are bought together."""
    kinds = r.integers(0, 3, 2000)
    return pd.DataFrame(r.random((2000, 20)) < r.dirichlet(np.ones(20) / 3, 3)[kinds])


def sample(name):
    return lambda _: pd.read_csv(SAMPLES / name)


def columns_of(frame):
    names = [f"c{place}" for place in range(frame.shape[1])]
    table = read_table(frame.set_axis(names, axis=1))
    return [table[name].values for name in names]  # noqa: PD011 - a column of kerntest


@pytest.mark.parametrize(
    "drawn",
    [
        titanic,
        answers,
        always_the_same_answer,
        baskets,
        sample("iris.csv"),
        sample("wine.csv"),
        lambda r: answers(r, 5000, 0.8),
        lambda r: normals(r, 3000, 1),
        lambda r: pd.DataFrame(drawn := r.normal(size=3000).round(1)).assign(again=(drawn + 0.05 * r.normal(size=3000)).round(1)),
        lambda r: pd.DataFrame({"cm": (h := r.normal(170, 10, 5000)).round(), "inch": (h / 2.54).round()}),
        lambda r: pd.DataFrame(r.integers(0, 100, (1600, 2))),
        lambda r: pd.DataFrame({"rain": np.where(r.random(900) < 0.6, 0, r.exponential(size=900)), "m": r.integers(1, 13, 900)}),
        lambda r: pd.DataFrame(code := r.integers(0, 50, 2000)).assign(name=code * 7 % 50),
        lambda r: pd.DataFrame({"zip": (z := r.integers(0, 60, 5000)), "city": z // 2, "state": z // 9, "id": r.integers(0, 40, 5000)}),
        lambda r: pd.DataFrame({"age": (a := r.integers(18, 80, 5000)), "born": 2024 - a - r.integers(0, 2, 5000)}),
        lambda r: pd.DataFrame(r.integers(0, 10, (50_000, 3))),
        lambda _: pd.DataFrame({"f": np.repeat(np.arange(30), 80), "g": np.tile(np.arange(12), 200)}),
        lambda r: pd.DataFrame({"dose": r.choice([0.0125, 0.05, 0.2, 1, 3, 10, 25, 50], 80), "sex": r.choice(["f", "m"], 80)}),
        lambda r: pd.DataFrame({"level": stats.zscore(r.integers(1, 11, 80))}),
        lambda r: pd.DataFrame({"v": np.round(r.normal(size=2000), 1)}),
        lambda r: pd.DataFrame({"v": np.round(r.exponential(10, size=5000), 1)}),
        lambda r: pd.DataFrame({"v": r.integers(0, 100, 3000), "t": r.choice(["a", "b"], 3000)}),
        lambda r: pd.DataFrame({"t": r.choice(["a", "b"], 500), "b": r.random(500) < 0.5}),
        lambda r: pd.DataFrame({"v": np.where(r.random(500) < 0.5, 0.0, np.round(r.exponential(size=500), 2))}),
        lambda r: pd.DataFrame({"age": np.round(r.normal(40, 12, 20000)), "income": np.round(r.lognormal(8, 0.5, 20000), -2)}),
    ],
    ids=[
        "titanic", "answers", "the same answer", "baskets", "iris", "wine", "many alike", "rounded", "twice", "units", "whole", "rain", "code and name",
        "places", "ages", "digits", "design", "doses", "levels", "normal", "exponential", "whole and text", "categories", "half zero", "large",
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(2))
def test_rows_that_are_equal_by_chance(drawn, seed):
    r = np.random.default_rng(seed)
    tables = drawn(r), drawn(r)
    assert [copies_of(columns_of(table)) for table in tables] == [None, None]
    if len(tables[0].columns) < 3 and not tables[0].equals(tables[1]):
        assert (
            found(*(table.set_axis([f"c{place}" for place in range(table.shape[1])], axis=1) for table in tables)) == []
        )


def test_round_numbers_in_one_column_are_no_copies():
    r = np.random.default_rng(0)
    tips = np.where(
        r.random(90) < 0.4, r.choice([2.0, 3.0, 3.5, 5.0], 90, p=[0.5, 0.3, 0.1, 0.1]), r.gamma(4, 0.8, 90)
    ).round(2)
    assert copies_of([tips]) is None
    # In pounds, written in kilogrammes; some that were weighed in kilogrammes.
    pounds = np.round(r.normal(160, 30, 1500)) * 0.45359237
    assert copies_of([np.where(r.random(1500) < 0.9, pounds, r.normal(72, 13, 1500)).round(2)]) is None
    once = r.normal(size=200)
    assert copies_of([np.concatenate([once, once[:30]])]).repeats == 30
    drawn = r.choice(once, 200)
    assert copies_of([drawn]).repeats == 200 - len(np.unique(drawn))
    assert copies_of([np.repeat(once, 5)]).repeats == 800


@pytest.mark.parametrize(
    ("drawn", "times"),
    [
        *product(
            [normals, answers, lambda r: normals(r, digits=1), sample("iris.csv"), sample("wine.csv")], [1.5, 2, 8, 36]
        ),
        (sample("machines.csv"), 2),
        *product(
            [lambda r: normals(r)[[0, 1]].round(1), lambda r: pd.DataFrame(r.integers(0, 100, (150, 2)))], [8, 36]
        ),
        *((lambda r, n=n: normals(r, n), 8) for n in (6, 10, 19, 20, 22)),
        (lambda r: normals(r, 12, 4).assign(t=["a", "b"] * 6), 8),
    ],
)
def test_rows_that_were_copied(drawn, times):
    once = drawn(np.random.default_rng(0))
    different = len(once.drop_duplicates())
    n = int(times * len(once))
    found = copies_of(columns_of(once.iloc[np.arange(n) % len(once)]))
    assert found is not None
    assert found.repeats == n - different
    sizes = np.bincount(found.group)
    np.testing.assert_allclose(found.inflation, np.square(sizes).sum() / n - 1, rtol=1e-12, atol=0)
    for rows in np.unique(found.group)[:5]:
        assert len(once.iloc[np.flatnonzero(found.group == rows) % len(once)].drop_duplicates()) == 1


def test_missing_values_are_equal_and_so_are_zeros_of_either_sign():
    r = np.random.default_rng(0)
    once = r.normal(size=(60, 3))
    once[::3, 0], once[:, 2] = np.nan, 0.0
    twice = np.concatenate([once, once * [1.0, 1.0, -1.0]])
    assert copies_of(list(twice.T)).repeats == 60
    assert copies_of(list(once.T)) is None
    assert copies_of([np.ones(30), np.zeros(30, dtype=np.int64)]) is None


OTHERS = pd.DataFrame(np.random.default_rng(1).normal(size=(300, 3)), columns=list("abc")).assign(a=np.arange(300))
SAID = "rows of 320 repeat another row: the test takes copies for independent rows, and its p-value is then too small"


@pytest.mark.parametrize(
    "test",
    [
        lambda data: hsic_test(data, x_columns="a", y_columns="b"),
        lambda data: hsic_test(data, x_columns="a", y_columns="b", method="features"),
        hsic_pairs,
        lambda data: hsic_pairs(data, target="c"),
        lambda data: hsic_select(data, "c", 1),
        lambda data: hsic_joint(data, ["a", "b", "c"]),
        lambda data: mmd_test(data, OTHERS),
    ],
    ids=["pair", "features", "pairs", "target", "select", "joint", "mmd"],
)
def test_every_test_says_so(test):
    once = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    (text,) = [text for text in test(pd.concat([once] * 8)).warnings if "repeat" in text]
    assert f"280 {SAID}" in text.replace(" in the columns tested; where the others do not tell them apart", "")
    warnings = test(once.assign(a=np.arange(40))).warnings
    assert not [text for text in warnings if "repeat" in text]
    assert any("'a' counts the rows" in text for text in warnings)


# One value beside which all others look alike


def sample_with(value, n=250):
    r = np.random.default_rng(0)
    frame = pd.DataFrame({"v": r.normal(size=n), "w": r.normal(size=n), "kind": r.choice(["a", "b"], n)})
    frame.loc[7, "v"] = value
    return frame


FAR = (
    "so far from all other values that these look alike once standardised: correct it, or where='v != {}' leaves it out"
)


@pytest.mark.parametrize(
    ("told", "place"),
    [
        (lambda data: mmd_test(sample_with(0.0), data), "row 8 of y"),
        (lambda data: mmd_test(data, by="kind", permutations=200), "row 8 of kind = b"),
        (lambda data: mmd_test(sample_with(0.0), data, method="features", features="nystroem:20"), "one row"),
        (lambda data: hsic_test(data, x_columns="v,w", y_columns="kind"), "row 8 of data"),
        (hsic_pairs, "row 8 of data"),
        (lambda data: hsic_select(data, "kind", 1), "row 8 of data"),
        (lambda data: train_svm(data, target="kind"), "row 8 of train"),
        (lambda data: train_kpca(data.assign(w=data["w"].where(data.index > 3)), missing="drop"), "row 8 of train"),
        (lambda data: train_unmix(data, exclude="kind"), "row 8 of train"),
        (lambda data: train_cca(data, x_columns="v", y_columns="w"), "row 8 of train"),
    ],
    ids=["mmd", "groups", "features", "hsic", "pairs", "select", "svm", "kpca", "unmix", "cca"],
)
def test_one_value_beside_which_all_others_look_alike(told, place):
    for value, shown in ((2e20, "2e+20"), (-4000.0, "-4000")):
        (text,) = [one for one in told(sample_with(value)).warnings if "alike once" in one]
        assert text == f"column 'v' is {shown} in {place}, {FAR.format(shown)}"
    assert not [one for one in told(sample_with(40.0)).warnings if "alike once" in one]


def test_values_of_any_size_and_dates_that_are_far_from_all_others():
    def lone(values, **options):
        data = pd.DataFrame({"a day": values, "w": noise(len(values))})
        return [one for one in train_kpca(data, **options).warnings if "alike once" in one]

    (text,) = lone([*noise(40), 1e300])
    assert text.startswith("column 'a day' is 1e+300 in row 41 of train, so far")
    (text,) = lone([*map(str, days("2024-01-01")), "0024-01-05 00:00:00"])
    assert "is 0024-01-05 in row 31 of train" in text
    assert "where=\"`a day` != '0024-01-05'\"" in text
    assert lone([*noise(40), 1e20], scale="none") == []
    # Of few rows nothing can be told, a single 1 is a value, and of several none is alone.
    for values in ([*noise(18), 4000.0], [0.0] * 40 + [1.0], [*noise(40), 4000.0, 4001.0], np.geomspace(1, 1e6, 40)):
        assert lone(values) == []


@pytest.mark.parametrize("method", ["exact", "features"])
def test_a_rare_value_as_large_as_those_of_other_columns_is_none_to_correct(method):
    n, rng = 500, np.random.default_rng(3)
    pixels = {f"p{k}": np.where(rng.random(n) < 0.3, rng.integers(1, 256, n), 0.0) for k in range(4)}

    def lone(value, name="edge", most=0.0, **others):
        edge = np.full(n, most)
        edge[[7, 0]] = value, 2.0
        data = pd.DataFrame(pixels | {name: edge} | others)
        options = {"permutations": 50, "method": method, "features": "nystroem:20" if method == "features" else None}
        told = mmd_test(data, data[::-1].assign(**{name: edge * (np.arange(n) != 7)}), **options).warnings
        return [one for one in told if "alike once" in one]

    assert lone(78.0) == []
    assert lone(143.0) == []
    # Larger than any of the others, or among numbers that are not nearly always one, it is told.
    for value in (9999.0, 1e100):
        (text,) = lone(value)
        assert text.startswith("column 'edge' is ")
    assert len(lone(200.0, most=rng.normal(size=n) / 10)) == 1
    # A few columns are no measure of what is usual.
    pixels = {"p0": pixels["p0"], "p1": pixels["p1"]}
    assert len(lone(78.0)) == 1
