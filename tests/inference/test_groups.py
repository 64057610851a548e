"""Several samples: groups of the rows of one table, and tables; each pair as if it were alone, and all groups together."""

import json
import math
import re
from itertools import combinations

import naive
import numpy as np
import pandas as pd
import pytest
from records import differences
from scipy.special import bdtrc
from tolerances import assert_close

from kerntest import DataWarning, TwoSampleResult, compute_on, hsic_test, mmd_test, read_table, train_ridge
from kerntest.engines.engine import Engine
from kerntest.errors import DataError, UndecidedError, UsageError
from kerntest.inference.statistic import between_groups
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Gaussian

FIXED = {"kernel": "gaussian(1)", "scale": "none"}
# What a test of two files has, and the record of a pair.
OF_A_PAIR = (
    "n_x",
    "n_y",
    "mmd2_unbiased",
    "mmd2_biased",
    "mmd",
    "mmd_standard_error",
    "effect_size",
    "p_value",
    "kernel",
)


def frame_of(sizes=(12, 7, 9), shifts=None, seed=0, p=2):
    """Return groups a, b, c, ... of so many rows, in mixed order."""
    rng, shifts = np.random.default_rng(seed), np.arange(len(sizes)) / 2 if shifts is None else shifts
    group = np.repeat([chr(ord("a") + k) for k in range(len(sizes))], sizes)
    rows = rng.normal(size=(len(group), p)) + np.repeat(shifts, sizes)[:, None]
    order = rng.permutation(len(group))
    frame = pd.DataFrame(rows[order], columns=[f"x{k}" for k in range(p)])
    frame["group"] = group[order]
    return frame


def files_of(frame, *names):
    return [frame[frame["group"] == name].drop(columns="group").reset_index(drop=True) for name in names]


def gram_of(frame):
    rows = frame.drop(columns="group").to_numpy().tolist()
    return naive.gram(naive.gaussian, rows)


def within(K, labels, g, h):
    """Return the kernel matrix of the rows of two groups, and their labels, 1 for g."""
    rows = [i for i, one in enumerate(labels) if one in (g, h)]
    return [[K[i][j] for j in rows] for i in rows], [int(labels[i] == g) for i in rows]


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("sizes", [(12, 7, 9), (2, 3, 20, 5), (8, 8, 8)])
def test_the_statistic_is_the_mean_of_mmd2_over_pairs_of_rows_of_different_groups(sizes, estimator):
    frame = frame_of(sizes, np.arange(len(sizes)) / 3)
    K, labels = gram_of(frame), frame["group"].tolist()
    pairs = list(combinations(sorted(set(labels)), 2))
    weights = [labels.count(g) * labels.count(h) for g, h in pairs]
    two = {pair: within(K, labels, *pair) for pair in pairs}
    expected = {
        name: sum(w * of(*two[pair]) for w, pair in zip(weights, pairs, strict=True)) / sum(weights)
        for name, of in naive.mmd2.items()
    }
    result = mmd_test(frame, by="group", estimator=estimator, permutations=60, **FIXED)
    assert_close([result.mmd2_unbiased, result.mmd2_biased], [expected["unbiased"], expected["biased"]])
    assert result.statistic == (result.mmd2_unbiased if estimator == "unbiased" else result.mmd2_biased)
    for (g, h), (M, own) in two.items():
        places = sorted(set(labels)).index(g), sorted(set(labels)).index(h)
        size = naive.effect_between(M, own)
        assert_close(result.effect_sizes[places[0]][places[1]], size, scale=1.0)
        assert result.effect_sizes[places[1]][places[0]] == result.effect_sizes[places[0]][places[1]]
    assert all(line[k] is None for k, line in enumerate(result.effect_sizes))


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_all_together_is_one_inner_product_of_centred_matrices(estimator):
    """<A, B> with L_ij = 1/(n_g - 1), or 1/n_g, in group g; the null distribution is on the scale of the statistic."""
    frame = frame_of((6, 3, 4))
    K, labels = gram_of(frame), frame["group"].tolist()
    hollow, n = estimator == "unbiased", len(labels)
    L = [[float(a == b) / (labels.count(a) - hollow) for b in labels] for a in labels]
    A, B = naive.centred[estimator](K), naive.centred[estimator](L)
    pairs = sum(labels.count(g) * labels.count(h) for g, h in combinations("abc", 2))
    scale = (n - hollow) / pairs
    result = mmd_test(frame, by="group", estimator=estimator, null="moments", **FIXED)
    assert_close(result.statistic, scale * naive.matrix_inner(A, B))
    # The exact mean and variance over all permutations (Kazi-Aoul et al. 1995) are what a large sample of them has.
    rng, C = np.random.default_rng(0), np.array(B)
    sums = np.array([np.sum(np.array(A) * C[np.ix_(p, p)]) for p in (rng.permutation(n) for _ in range(20_000))])
    assert_close(result.null.mean, scale * sums.mean(), scale=scale * sums.std(), share=0.03)
    assert_close(result.null.standard_deviation, scale * sums.std(), share=0.03)
    assert_close(result.effect_size, naive.effect_between(K, labels), scale=1.0)


def test_equal_groups_are_an_independence_test_of_the_rows_and_the_delta_kernel():
    """Of groups of one size the weights are equal; then it is also the k-sample statistic of others, by one-hot labels."""
    frame = frame_of((15, 15, 15))
    K, labels = gram_of(frame), frame["group"].tolist()
    result = mmd_test(frame, by="group")
    same = hsic_test(frame, y_columns="group", kernel_y="delta")
    assert result.p_value == same.p_value
    assert result.null.permutations == same.null.permutations
    fixed = mmd_test(frame, by="group", **FIXED)
    # That correlation, but for HSIC(L, L), which is that of these rows there and of all others here.
    n, k, L = 45, 3, [[float(a == b) for b in labels] for a in labels]
    A, B = naive.u_centred(K), naive.u_centred(L)
    own = naive.matrix_inner(B, B) / (n * (n - 3)) / ((k - 1) / k**2)
    distances = naive.matrix_inner(A, B) / 14 * (n - 1) / (n**2 * (k - 1) / k / 2) * k * (k - 1) / 2
    hsic = naive.matrix_inner(A, B) / (n * (n - 3))
    expected = naive.hsic_effect(K, L) ** 2 * math.sqrt(own) * distances / k**3 / hsic
    assert_close(fixed.effect_size**2, expected, scale=1.0)


def test_two_groups_are_two_files():
    frame = frame_of((20, 25))
    found, expected = mmd_test(frame, by="group", explain=True), mmd_test(*files_of(frame, "a", "b"), explain=True)
    assert isinstance(found, TwoSampleResult)
    one, other = found.to_dict(), expected.to_dict()
    assert [record["name"] for record in one["provenance"]["inputs"]] == ["x, group = a", "x, group = b"]
    assert found.decision == expected.decision.replace("samples", "groups")
    for rows in (one["explanation"], other["explanation"]):
        del rows["rows"]
    for name in ("provenance", "decision"):
        del one[name], other[name]
    assert list(differences(one, other)) == []
    # The other way round with a reference.
    turned = mmd_test(frame, by="group", reference="b")
    assert turned.p_value == mmd_test(*files_of(frame, "b", "a")).p_value
    assert (turned.n_x, turned.n_y) == (25, 20)


@pytest.mark.parametrize("options", [{}, {"null": "moments"}, {"method": "features", "features": "nystroem:20"}])
def test_a_pair_is_the_test_of_two_files_with_its_rows(options):
    sizes = (250, 200, 220) if "features" in options else (30, 20, 25)
    frame = frame_of(sizes)
    result = mmd_test(frame, by="group", permutations=200, **options)
    for pair in result.pairs:
        alone = mmd_test(*files_of(frame, pair.x, pair.y), permutations=200, **options)
        for name in OF_A_PAIR:
            # Text columns are coded, and rows placed, by the values that there are: nothing else is in common.
            assert list(differences(getattr(pair, name), getattr(alone, name))) == []
        assert pair.permutations == alone.null.permutations


def test_a_third_group_cannot_change_a_pair():
    frame = frame_of((30, 25, 28), (0.0, 0.0, 0.0))
    other = frame.copy()
    third = other["group"] == "c"
    other.loc[third, ["x0", "x1"]] = 50.0 + 9.0 * other.loc[third, ["x0", "x1"]] ** 3
    one, two = ({(p.x, p.y): p for p in mmd_test(each, by="group").pairs} for each in (frame, other))
    assert [getattr(one["a", "b"], name) for name in OF_A_PAIR] == [getattr(two["a", "b"], name) for name in OF_A_PAIR]
    assert not two["a", "b"].reject
    assert two["a", "c"].reject
    assert two["b", "c"].reject


def test_p_values_are_corrected_by_holm_over_enough_relabellings():
    frame = frame_of((40,) * 7, (0, 0, 0, 0, 0, 0, 5))
    result = mmd_test(frame, by="group", alpha=0.01, permutations=100, bandwidth="median", kernel="gaussian")
    assert result.tests == len(result.pairs) == 21
    assert {pair.permutations for pair in result.pairs} == {4200}
    p = np.array([pair.p_value for pair in result.pairs])
    assert (np.diff(p) >= 0).all()
    expected = np.minimum(np.maximum.accumulate(p * np.arange(21, 0, -1)), 1.0)
    assert_close([pair.p_adjusted for pair in result.pairs], expected)
    assert {(pair.x, pair.y) for pair in result.pairs if pair.reject} == {(one, "g") for one in "abcdef"}
    assert result.rejected == 6
    assert result.reject


def test_a_reference_is_compared_with_each_and_groups_stand_in_the_order_of_their_values():
    frame = frame_of((12, 13, 14, 15))
    frame["year"] = frame.pop("group").map({"a": 2010, "b": 9, "c": 2008, "d": 2009.5})
    result = mmd_test(frame, by="year", reference=2008, **FIXED)
    assert [(one.name, one.n) for one in result.groups] == [("9", 13), ("2008", 14), ("2009.5", 15), ("2010", 12)]
    assert {(pair.x, pair.y) for pair in result.pairs} == {("2008", one) for one in ("9", "2009.5", "2010")}
    assert result.reference == "2008"
    assert result.to_dict() | {"provenance": 0} == mmd_test(frame, by="year", reference="2008", **FIXED).to_dict() | {
        "provenance": 0
    }
    assert len(result.to_frame()) == 3
    assert "year" not in result.columns


def test_several_tables_are_each_compared_with_the_first(tmp_path):
    frame = frame_of((30, 25, 28, 20), (0.0, 0.0, 0.0, 3.0))
    for name, rows in zip("abcd", files_of(frame, *"abcd"), strict=True):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    paths = [str(tmp_path / f"{name}.csv") for name in "abcd"]
    result = mmd_test(*paths, explain=True)
    for pair in result.pairs:
        alone = mmd_test(pair.x, pair.y, explain=True)
        assert [getattr(pair, name) for name in (*OF_A_PAIR, "explanation")] == [
            getattr(alone, name) for name in (*OF_A_PAIR, "explanation")
        ]
    assert [pair.y for pair in result.pairs if pair.reject] == paths[3:]
    assert result.p_value == min(pair.p_adjusted for pair in result.pairs) == result.pairs[0].p_adjusted
    assert result.effect_size == max(pair.effect_size for pair in result.pairs)
    assert result.statistic is result.kernel is result.null is result.by is None
    assert [one.name for one in result.provenance.inputs] == paths
    # Of arrays and of one name twice, the places tell.
    arrays = [one.to_numpy() for one in files_of(frame, *"abc")]
    assert [one.name for one in mmd_test(*arrays, **FIXED).groups] == ["x", "y", "y2"]
    assert [one.name for one in mmd_test(*paths[:1] * 3, **FIXED).groups] == [f"{paths[0]} ({k})" for k in (1, 2, 3)]


def test_by_features_the_smallest_corrected_p_value_stands_for_all_groups():
    frame = frame_of((250, 200, 220))
    result = mmd_test(frame, by="group", method="features", permutations=200)
    assert {pair.method for pair in result.pairs} == {"features"}
    assert result.p_value == min(pair.p_adjusted for pair in result.pairs)
    assert result.statistic is None
    assert any("no test of all groups together" in text for text in result.warnings)
    with pytest.raises(UndecidedError, match="no pair can be tested: x, group = a has 12 rows") as caught:
        mmd_test(frame_of(), by="group", method="features")
    assert "method='exact' takes fewer rows" in caught.value.hint


def test_groups_of_one_row_and_rows_without_a_group_are_left_out_and_told():
    frame = frame_of((12, 13, 14))
    frame.loc[frame.index[frame["group"] == "a"][1:], "group"] = "d"
    frame.loc[frame.index[frame["group"] == "b"][:5], "group"] = None
    with pytest.raises(DataError, match="has 5 missing values: group 5"):
        mmd_test(frame, by="group")
    with pytest.warns(DataWarning, match="column 'group': 5 rows of 39 with missing values left out"):
        result = mmd_test(frame, by="group", missing="drop", **FIXED)
    assert "1 group of 'group' with fewer than two rows left out: 'a'" in result.warnings
    assert [(one.name, one.n) for one in result.groups] == [("b", 8), ("c", 14), ("d", 11)]
    assert result.n == 33
    # Or they are a group of their own.
    found = mmd_test(frame, by="group", missing="indicator", **FIXED)
    assert [(one.name, one.n) for one in found.groups] == [("(missing)", 5), ("b", 8), ("c", 14), ("d", 11)]
    # Two are left: two samples.
    two = frame[frame["group"].isin(["a", "b", "c"])]
    assert isinstance(mmd_test(two, by="group", missing="drop"), TwoSampleResult)
    with pytest.raises(DataError, match="the reference 'a' has fewer than two rows"):
        mmd_test(frame, by="group", reference="a", missing="drop")


def test_numbers_of_which_most_are_alone_are_no_groups():
    frame = frame_of((12, 13, 14)).assign(group=np.maximum(np.arange(39) // 2, np.arange(39) - 7))
    with pytest.raises(UsageError, match="25 of 32 groups in 'group' have fewer than two rows") as caught:
        mmd_test(frame, by="group")
    assert "hsic_test(data, y_columns='group') tests" in caught.value.hint
    # What the call does with gaps leaves rows.
    frame.loc[frame.index[::2], "x0"] = np.nan
    frame.loc[frame.index[1::2], "x1"] = np.nan
    with pytest.raises(UsageError) as caught:
        mmd_test(frame, by="group")
    assert "hsic_test(data, y_columns='group', missing='indicator') tests" in caught.value.hint


@pytest.mark.parametrize(("rows", "told"), [(1, "100,000 of 100,000 groups"), (2, "1,249,975,000 pairs")])
def test_very_many_groups_are_refused_before_anything_is_made_of_each_or_of_each_two(rows, told):
    """Of so many rows a step for each two groups takes minutes, and a list of them more memory than there is."""
    frame = pd.DataFrame({"rownames": np.arange(100_000) // rows, "x": 0.5, "kind": ["u", "v"] * 50_000})
    with pytest.raises(UsageError, match=told) as caught:
        mmd_test(frame, by="rownames")
    # What numbers the rows is no measurement on which others may depend.
    of_groups = "name a column in by= whose values occur in many rows; by='kind' does"
    assert (caught.value.hint == of_groups) == (rows == 1)


def test_pairs_without_a_common_stratum_are_left_out():
    frame = frame_of((30, 30, 30))
    frame["site"] = np.where(
        frame["group"] == "c", np.arange(90) % 2 + 1, np.where(frame["group"] == "b", 0, np.arange(90) % 3)
    )
    found = mmd_test(frame, by="group", strata="site", **FIXED)
    (apart,) = [pair for pair in found.pairs if pair.p_value is None]
    assert (apart.x, apart.y) == ("b", "c")
    assert "no value of 'site' is in both" in apart.note
    assert found.decision.startswith("2 of 2 tested pairs differ, 1 cannot be tested")
    # Each pair has its own rows of 'a', and some pair uses each.
    count = int(((frame["group"] == "a") & (frame["site"] == 0)).sum())
    assert [(one.name, one.n) for one in found.groups] == [("a", 30), ("b", 30), ("c", 30)]
    assert found.n == found.provenance.inputs[0].rows_used == 90
    assert {(one.y, one.n_x) for one in found.pairs[:2]} == {("b", count), ("c", 30 - count)}
    assert re.search(rf"a +b +{count} +30 ", str(found))
    without = mmd_test(frame, by="group", strata="site", where="group <> 'c' or site = 1", reference="b", **FIXED)
    assert [one.n for one in without.groups] == [count, 30, 0]
    assert without.decision.startswith("1 of 1 tested group differs from 'b', 1 cannot be tested")
    with pytest.raises(DataError, match="no value of 'site' is in both") as caught:
        mmd_test(frame[frame["group"] != "a"], by="group", strata="site")
    assert caught.value.hint == "leave out strata='site'"


def test_missing_values_of_other_columns_cost_rows():
    frame = frame_of((12, 13, 14))
    frame.loc[frame.index[frame["group"] == "a"][2:], "x0"] = np.nan
    with pytest.raises(DataError, match="x has 10 missing values: x0 10"):
        mmd_test(frame, by="group")
    result = mmd_test(frame, by="group", missing="drop", **FIXED)
    assert [(one.name, one.n) for one in result.groups] == [("a", 2), ("b", 13), ("c", 14)]
    result = mmd_test(frame, by="group", missing="indicator", bandwidth="median", kernel="gaussian")
    assert result.columns == ("x0", "x0 missing", "x1")
    assert result.n == 39
    alone = mmd_test(*files_of(frame, "a", "b"), missing="indicator", bandwidth="median", kernel="gaussian")
    (pair,) = [one for one in result.pairs if (one.x, one.y) == ("a", "b")]
    assert pair.p_value == alone.p_value


def test_pairs_that_cannot_be_tested_say_why():
    frame = pd.DataFrame({"x": [*[1.0] * 20, *np.arange(10.0)], "group": np.repeat(["a", "b", "c"], 10)})
    result = mmd_test(frame, by="group", **FIXED)
    (untested,) = [pair for pair in result.pairs if pair.p_value is None]
    assert (untested.x, untested.y, untested.reject, untested.p_adjusted) == ("a", "b", False, None)
    assert "no column" in untested.note
    assert result.tests == 2
    assert result.pairs[-1] is untested
    assert "not tested: a, b: no column" in result.summary()
    frame["x"] = [*[1.0] * 29, 2.0]
    frame["group"] = np.where(np.arange(30) < 29, frame["group"], "d")
    tables = [pd.DataFrame({"x": [1.0, 1.0, 1.0]})] * 3
    with pytest.raises(UndecidedError, match="no pair can be tested"):
        mmd_test(*tables)


def test_near_copies_of_a_warning_are_one():
    frame = frame_of((40, 50, 60)).sort_values("group").assign(number=np.arange(150))
    result = mmd_test(frame, by="group", **FIXED)
    (text,) = [text for text in result.warnings if "counts the rows" in text]
    assert text.startswith("all 3 pairs, such as '")
    pairs = [one for pair in result.pairs for one in pair.warnings if "counts the rows" in one]
    assert len(set(pairs)) == 3
    # Of some pairs only, their number is told.
    frame.loc[frame["group"] == "c", "number"] = np.random.default_rng(0).permutation(60)
    result = mmd_test(frame, by="group", **FIXED)
    assert not [text for text in result.warnings if "all 3 pairs" in text]


def test_warnings_of_groups_name_neither_their_one_table_nor_like_columns_one_by_one(tmp_path):
    frame = frame_of((30, 660), (0, 0)).sort_values("group")
    frame = frame.assign(row=np.arange(690), number=np.arange(690), born=[f"2 Jan {1500 + k}" for k in range(690)])
    frame.to_csv(tmp_path / "all.csv", index=False)
    warnings = mmd_test(tmp_path / "all.csv", by="group").warnings
    assert not [text for text in warnings if "all.csv" in text]
    (text,) = [text for text in warnings if "counts the rows" in text]
    assert text.startswith("each of the columns 'row', 'number' counts the rows, and all of it in group = b lies above")
    assert text.endswith("leave them out with exclude='row,number'")
    assert any(text.startswith("group = b has 22 times as many rows as group = a") for text in warnings)
    assert any(text.startswith("column 'born' is a date") for text in warnings)


def test_what_tells_few_rows_of_many_groups_apart_is_told():
    rng = np.random.default_rng(3)

    def told(rows, groups, **others):
        group = np.repeat([*"abcdef"[:groups]], rows)
        table = pd.DataFrame({"g": group, "v": rng.normal(size=len(group))} | {k: f(group) for k, f in others.items()})
        return mmd_test(table, by="g", permutations=100).warnings

    def site(group):
        return [f"S{one}" for one in group]

    for rows, groups in ((6, 2), (10, 2), (2, 6), (4, 6)):
        found = [one for one in told(rows, groups, site=site) if "'site' alone tells the samples apart" in one]
        assert len(found) == 1
        assert ("both" if groups == 2 else "two of them" if rows == 2 else "apart") in found[0]
    # Chance does that to one column in 35.
    assert not any("apart" in one for one in told(4, 2, site=site))
    (found,) = (one for one in told(2, 6, rownames=lambda group: 1 + np.arange(len(group))) if "rownames" in one)
    assert found.endswith("leave it out with exclude='rownames'")
    missing = pd.DataFrame({"g": ["a", "b", None] * 10, "v": np.r_[rng.normal(size=28), np.nan, np.nan]})
    (own,) = (one for one in mmd_test(missing, by="g", missing="indicator").warnings if "(missing)" in one)
    assert own.endswith(
        "without a value of 'g' are a group of their own, '(missing)'; where='g is not missing' leaves them out"
    )
    # One row is no group, and is left out.
    alone = mmd_test(missing.assign(g=[*"ab"] * 14 + ["a", None]), by="g", missing="indicator").warnings
    assert not any("a group of their own" in one for one in alone)
    with pytest.raises(UsageError, match="here all are categories"):
        mmd_test(pd.DataFrame({"g": [*"ab"] * 10, "k": [*"xyyxz"] * 4}), by="g", margin="0.2sd")


def test_few_rows_are_told_of_where_no_corrected_p_value_can_reject():
    frame = frame_of((4, 4, 4), (0, 9, 18))
    result = mmd_test(frame, by="group", **FIXED)
    assert not any(pair.reject for pair in result.pairs)
    (told,) = [text for text in result.warnings if "for want of rows" in text]
    # 2 of the 70 ways to choose 4 rows of 8.
    assert "3 pairs" in told
    assert "0.029, 0.086 corrected" in told


def frame_with(values):
    return pd.DataFrame({"x": np.arange(float(len(values))), "g": values})


@pytest.mark.parametrize(
    ("call", "error", "message", "hint"),
    [
        (lambda: mmd_test(frame_of()), UsageError, "x is one table", "by='group' compares the groups"),
        (lambda: mmd_test(frame_of(), by="grup"), UsageError, "'grup' is not in x", "did you mean 'group'"),
        (
            lambda: mmd_test(frame_of(), frame_of(), by="group"),
            UsageError,
            "by='group' compares groups of the",
            "leave out by=",
        ),
        (
            lambda: mmd_test(frame_of(), by="group", reference="z"),
            UsageError,
            "no group 'z'",
            "the groups are 'a', 'b', 'c'",
        ),
        (
            lambda: mmd_test(frame_of(), frame_of(), reference="a"),
            UsageError,
            "reference='a' needs by=",
            "by= names groups",
        ),
        (lambda: mmd_test(frame_of(), by="group", common=True), UsageError, "common=True is for two", "leave it out"),
        (lambda: mmd_test(frame_of(), by="group", columns="group"), UsageError, "no column of x is left", "columns="),
        (
            lambda: mmd_test(frame_of(), by="group", witness="rows.csv"),
            UsageError,
            "witness= is about two",
            "where=\"group in ('a', 'b')\"",
        ),
        (
            lambda: mmd_test(frame_with(["a"] * 9), by="g"),
            DataError,
            "column 'g' of x has one value: 'a'",
            "another column",
        ),
        (lambda: mmd_test(frame_with([*"abc"]), by="g"), DataError, "all groups of 'g'", "two rows"),
        (
            lambda: mmd_test(frame_with([f"{k:03}" for k in range(200)] * 2), by="g"),
            UsageError,
            "200 groups in 'g' make 19,900 pairs, more than 200",
            "reference='000' compares each with that one",
        ),
        (
            lambda: mmd_test(frame_with(np.repeat(np.arange(300), 2)), by="g"),
            UsageError,
            "300 groups in 'g' make 44,850 pairs",
            "y_columns='g'",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_way_out(call, error, message, hint):
    with pytest.raises(error, match=message.replace("(", r"\(")) as caught:
        call()
    assert hint in caught.value.hint


def test_the_hint_that_takes_two_groups_works(tmp_path):
    for values in (["a b", "it's", "c"] * 20, [2007, 2008, 2009] * 20):
        frame = frame_of((20, 20, 20)).assign(**{"my group": values}).drop(columns="group")
        with pytest.raises(UsageError) as caught:
            mmd_test(frame, by="my group", witness=tmp_path / "rows.csv")
        where = eval(caught.value.hint.partition("where=")[2].partition(" takes")[0])
        assert isinstance(mmd_test(frame, by="my group", witness=tmp_path / "rows.csv", where=where), TwoSampleResult)


def test_what_is_computed_of_groups_hangs_neither_on_threads_nor_on_their_order():
    rows = np.random.default_rng(0).normal(size=(700, 3))
    codes = np.random.default_rng(1).integers(0, 5, 700)
    one, two = (between_groups(Gaussian(1.0), Points.of(rows), codes, Engine(threads)) for threads in (1, 3))
    assert (one.effect_sizes == two.effect_sizes).all()
    turned = between_groups(Gaussian(1.0), Points.of(rows), 4 - codes, Engine(1))
    assert_close(turned.unbiased[::-1, ::-1], one.unbiased, scale=1.0)


def test_the_record_is_told_as_a_table_and_as_json():
    frame = frame_of((30, 25, 28), (0.0, 0.0, 3.0))
    result = mmd_test(frame, by="group", explain=True)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["schema"] == "kerntest.mmd.groups/1"
    assert plain["effect_sizes"][0][0] is None
    rows = result.to_frame()
    assert {*plain["pairs"][0], "p_value_together"} == {*rows.columns}
    # The test of all groups goes with every pair; where there is none, the corrected p-values say all.
    assert (rows["p_value_together"] == result.p_value).all()
    assert (
        mmd_test(*(part.drop(columns="group") for _, part in frame.groupby("group")))
        .to_frame()["p_value_together"]
        .isna()
        .all()
    )
    told = result.summary(80)
    assert max(map(len, told.splitlines())) <= 80
    assert "a (30), b (25), c (28)" in told
    assert "2 of 3 pairs differ (corrected" in " ".join(told.split())
    assert "Columns of each pair, the largest effect first" in told
    assert "| --- | ---: |" in result.to_markdown()
    many = mmd_test(frame_of((5,) * 14, (0,) * 14), by="group", explain=True, kernel="gaussian", bandwidth="median")
    assert len(many.summary().splitlines()) < 100
    assert "and 61 more" in many.summary()


def rejections(repetitions, sizes, shifts):
    """Return how often all groups together and each pair were said to differ."""
    together, pairs = 0, dict.fromkeys(combinations("abc", 2), 0)
    for repetition in range(repetitions):
        frame = frame_of(sizes, shifts, seed=(7, repetition))
        result = mmd_test(frame, by="group", seed=repetition, permutations=199, bandwidth="median", threads=1)
        together += result.reject
        for pair in result.pairs:
            pairs[pair.x, pair.y] += pair.reject
    return together, pairs


REPETITIONS = [40, pytest.param(200, marks=pytest.mark.thorough)]


@pytest.mark.usefixtures("without_shifts")
@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("sizes", [(12, 12, 12), (40, 10, 6)])
def test_the_level_holds_where_no_group_differs(repetitions, sizes):
    """Of a correct test, each bound is violated with probability 10^-6."""
    together, pairs = rejections(repetitions, sizes, (0.0, 0.0, 0.0))
    for count in (together, max(pairs.values())):
        assert count == 0 or bdtrc(count - 1, repetitions, 0.05) > 1e-6


@pytest.mark.usefixtures("without_shifts")
@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("sizes", [(12, 12, 12), (40, 10, 6)])
def test_a_third_group_that_differs_makes_no_equal_pair_reject_and_is_found(repetitions, sizes):
    together, pairs = rejections(repetitions, sizes, (0.0, 0.0, 4.0))
    assert pairs["a", "b"] == 0 or bdtrc(pairs["a", "b"] - 1, repetitions, 0.05) > 1e-6
    assert together == pairs["a", "c"] == repetitions
    assert pairs["b", "c"] >= 0.9 * repetitions


def test_groups_of_a_file_are_read_as_the_options_say(tmp_path):
    frame = frame_of((30, 25, 28))
    frame.insert(0, "kept", frame["x0"] > -9)
    frame.to_csv(tmp_path / "all.csv", index=False)
    found = mmd_test(tmp_path / "all.csv", by="group", where="x0 > -1", columns="x*,group", sample=60, **FIXED)
    table = read_table(tmp_path / "all.csv", where="x0 > -1", sample=60)
    expected = mmd_test(table, by="group", exclude="kept", **FIXED)
    one, other = found.to_dict(), expected.to_dict()
    assert one["columns"] == ["x0", "x1"]
    assert one["provenance"]["inputs"][0]["chosen_by"] is not None
    assert list(differences(one["pairs"], other["pairs"])) == []
    assert one["p_value"] == other["p_value"]


def test_columns_that_tell_nothing_are_told_of_where_no_pair_uses_them():
    frame = frame_of((20, 20, 20)).assign(same=1.0, half=lambda one: (one["group"] == "c") * 1.0)
    told = "column 'same' has one value in all rows and is left out"
    for result in (mmd_test(frame, by="group", **FIXED), mmd_test(*files_of(frame, *"abc"), **FIXED)):
        assert [text for text in result.warnings if "is left out" in text] == [told]
        assert result.columns_left_out == ("same",)
        assert "half" in result.columns


def test_one_plan_counts_all_pairs_and_all_groups_together():
    frame, plans = frame_of((60, 50, 40, 30)), []
    with compute_on("local", threads=1, planned=plans.append):
        mmd_test(frame, by="group", explain=True)
        mmd_test(frame, by="group", reference="a")
    pairwise, against = plans
    assert (pairwise.rows, pairwise.columns) == (180, 2)
    assert [step.partition(",")[0] for step in pairwise.work][1:] == ["6 pairs"]
    assert "cyclic relabellings" in pairwise.work[0]
    assert against.work[1].startswith("3 pairs")
    assert against.seconds < pairwise.seconds


def test_one_plan_counts_all_pairs_by_features():
    frame, plans = frame_of((400, 400, 400)), []
    with compute_on("local", threads=1, planned=plans.append):
        mmd_test(frame, by="group", method="features")
        mmd_test(*files_of(frame, *"ab"), method="features")
    every, one = plans
    assert (every.rows, one.rows) == (1200, 800)
    assert every.work[0].startswith("3 pairs by features, each of about ")
    # Three times the work, and passes that are measured.
    assert every.seconds > 1.5 * one.seconds


def test_the_work_of_all_pairs_is_told_once_the_same_by_plan_and_run(monkeypatch):
    frame, plans = frame_of((400, 400, 250)), []
    frame.loc[::40, "x0"] = np.nan
    # Units of a pair of rows: a side, two columns, 15 kernels that are summed. Two pairs are less than their share.
    each = 5 + 0.2 + 15 * 1.5
    work = each * (800**2 + 2 * 650**2)
    for most, pairs in ((3 * each * 680**2, 1), (work / 2.5, 3), (1.001 * work, 0)):
        monkeypatch.setattr("kerntest.inference.method.MOST_WORK", most)
        plans.clear()
        with compute_on("local", threads=1, planned=plans.append):
            found = mmd_test(frame, by="group", missing="drop", permutations=300)
        assert [pair.method for pair in found.pairs].count("features") == pairs
        said = (
            f"features stand for the kernel matrices of {pairs} of 3 pairs, of up to 800 rows: all pairs are more work than "
            f"is done unasked ({work / most:.1f} times as much); method='exact' insists on these"
        )
        assert [text for text in found.warnings if "stand for the kernel" in text] == [said] * (pairs > 0)
        assert (said in plans[0].work) == (pairs > 0)
    monkeypatch.setattr("kerntest.inference.method.MOST_WORK", work / 20)
    with pytest.raises(UndecidedError, match="the exact test of 2 pairs, each of up to 800 rows is more work"):
        mmd_test(*files_of(frame, *"abc"), missing="drop", explain=True)


def test_progress_rises_to_its_end():
    told = []
    mmd_test(frame_of((60, 50, 40)), by="group", explain=True, progress=lambda done, steps: told.append(done / steps))
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_by_features_progress_is_the_share_of_the_rows_that_are_summed(monkeypatch):
    monkeypatch.setattr("kerntest.inference.features.inputs.BATCH_ROWS", 100)
    told, sizes = [], (1000, 600, 400)
    options = {"by": "group", "method": "features", "features": "nystroem:20", "threads": 1}
    mmd_test(frame_of(sizes), progress=lambda done, steps: told.append(done / steps), **options)
    # A pair has so many pieces, each of as much work: no pass over them before tells any.
    pieces = [sum(sizes[place] // 100 for place in pair) for pair in ((0, 1), (0, 2), (1, 2))]
    shares = np.arange(1, sum(pieces) + 1) / sum(pieces)
    np.testing.assert_allclose(told, shares, atol=0.001)


def test_rows_without_a_group_are_counted():
    frame = frame_of((40, 40, 40), (0.0, 0.0, 0.0))
    frame.loc[[3, 50], "group"] = None
    names = sorted(frame["group"].dropna().unique())
    part = frame[frame["group"] != names[2]]
    two = mmd_test(part, by="group", missing="drop")
    said = f"x: 2 rows of {len(part)} without a value of 'group' left out"
    assert [text for text in two.warnings if "without a" in text] == [said]
    three = mmd_test(frame, by="group", missing="drop", **FIXED)
    assert "118 of 120 rows used" in three.summary()


def test_names_of_cases_are_no_numbers_though_most_of_them_look_so(tmp_path):
    rng, names = np.random.default_rng(3), [*map(str, range(100, 139)), "139a"]
    rows = pd.DataFrame({"subject": np.repeat(names, 5), "group": np.repeat(["a", "b"], 100)})
    rows["v"] = np.repeat(rng.normal(size=40), 5) + 0.3 * rng.normal(size=200)
    rows.to_csv(tmp_path / "visits.csv", index=False)
    path = tmp_path / "visits.csv"
    told = " | ".join(mmd_test(path, by="group", columns="v", permutations=50).warnings)
    assert "rows with the same 'subject' are alike" in told
    found = mmd_test(path, by="group", cluster="subject", permutations=50)
    assert "40 whole clusters (subject)" in found.null.resampling
    assert train_ridge(path, "v", columns="group", cluster="subject").n_clusters == 40


def test_relabellings_of_very_many_cases_are_more_than_a_float_holds():
    sizes = np.repeat(np.arange(1, 18), 21)
    rows = pd.DataFrame({"school": np.repeat(np.arange(len(sizes)), sizes)})
    rows = rows.assign(sex=np.resize(["f", "m"], len(rows)), score=np.random.default_rng(0).normal(size=len(rows)))
    with pytest.raises(DataError, match="clusters of 'school' have rows in both"):
        mmd_test(rows, by="sex", cluster="school")
