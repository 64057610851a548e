"""Rows that belong together, pairs and strata: relabellings and statistics as their definitions say, and their level."""

import itertools
import math
from dataclasses import replace

import naive
import numpy as np
import pandas as pd
import pytest
from command_line import run_process
from scipy.stats import binom

from kerntest import hsic_test, mmd_test
from kerntest.data.columns import pool
from kerntest.engines.engine import Engine
from kerntest.errors import DataError, UndecidedError, UsageError
from kerntest.inference import exact
from kerntest.inference.family import Family
from kerntest.inference.relabelling import circles, designs, permuted_blocks, permuted_clusters
from kerntest.inference.relabelling.circles import Circles
from kerntest.inference.relabelling.designs import BlockedRows, Cosets, Design
from kerntest.inference.relabelling.designs_of_columns import designed
from kerntest.inference.relabelling.permuted_blocks import TwoSamples
from kerntest.inference.relabelling.permuted_clusters import ClusteredVariables
from kerntest.inference.sides import Options, Reading, lay_out, read_two
from kerntest.kernels.base import Points
from kerntest.kernels.text import parse_kernel


def clusters(count, first, *, size=4, within=0.3, seed=0, shift=0.0, unequal=False):
    """Return rows of clusters, alike within, each in one of three shops."""
    rng = np.random.default_rng((seed, first))
    sizes = rng.integers(1, 2 * size, count) if unequal else np.full(count, size)
    centres = rng.normal(size=(count, 2)) + shift
    rows = np.repeat(centres, sizes, axis=0) + within * rng.normal(size=(sizes.sum(), 2))
    who = np.repeat(np.arange(count) + first, sizes)
    return pd.DataFrame({"who": who, "shop": [f"s{one % 3}" for one in who], "u": rows[:, 0], "v": rows[:, 1]})


def pairs(count, seed=0, shift=0.0, few=0):
    """Return two measurements of each case, much alike; the second in another order, and some cases in one table only."""
    rng = np.random.default_rng((seed, 5))
    cases = 3.0 * rng.normal(size=(count, 2))
    first, second = (cases + 0.2 * rng.normal(size=cases.shape) for _ in range(2))
    x = pd.DataFrame({"case": np.arange(count), "u": first[:, 0], "v": first[:, 1]})
    y = pd.DataFrame({"case": np.arange(count), "u": second[:, 0] + shift, "v": second[:, 1]})
    return x.iloc[few:], y.sample(frac=1.0, random_state=1)


def uneven_pairs(count):
    """Return as many cases with 1 to 3 rows before and 1 to 4 after."""
    x, y = pairs(count)
    return x.loc[np.repeat(np.arange(count), np.arange(count) % 3 + 1)], y.loc[
        np.repeat(np.arange(count), np.arange(count) % 4 + 1)
    ]


TABLES = {
    "cluster": (clusters(5, 0, unequal=True), clusters(6, 10, unequal=True)),
    "paired": pairs(7),
    "uneven pairs": uneven_pairs(7),
    "strata": (clusters(6, 0), clusters(8, 10)),
    "cluster strata": (clusters(9, 0, unequal=True), clusters(12, 10, unequal=True)),
}


def columns_of(case):
    return {
        "cluster": {"cluster": "who", "exclude": "shop"},
        "paired": {"paired": "case"},
        "uneven pairs": {"paired": "case"},
        "strata": {"strata": "shop", "exclude": "who"},
        "cluster strata": {"cluster": "who", "strata": "shop"},
    }[case]


def sample_of(case):
    """Return the pooled rows of a case as a test sees them."""
    reading = Reading(**columns_of(case))
    groups = read_two(*TABLES[case], reading)
    used, design, _ = designed(groups, groups.tables, reading)
    return lay_out(pool(*used), "standardize", design)


def naive_discrepancy(K, in_x, units, strata, *, hollow, paired=False):
    """Return MMD^2 within strata, by double loops: means over pairs of rows of different units, or over all pairs.

    Of pairs the difference of means of each case counts as it does of strata.
    """
    total, shares, weights = 0.0, {}, [1.0] * len(K)
    if paired:
        of_side = [sum(1 for j in range(len(K)) if (units[j], in_x[j]) == (units[i], in_x[i])) for i in range(len(K))]
        weights = [2.0 * (1.0 - of_side[i] / units.count(units[i])) for i in range(len(K))]
    for one in set(strata):
        m, n = (
            math.fsum(weights[i] for i, s in enumerate(strata) if s == one and in_x[i] == side)
            for side in (True, False)
        )
        shares[one] = m * n / (m + n)
    for s, t in itertools.product(shares, repeat=2):
        for left, right in itertools.product((True, False), repeat=2):
            rows = [i for i in range(len(K)) if strata[i] == s and in_x[i] == left]
            columns = [j for j in range(len(K)) if strata[j] == t and in_x[j] == right]
            every = list(itertools.product(rows, columns))
            apart = [(i, j) for i, j in every if units[i] != units[j]]
            used = apart if hollow and apart else every
            mean = math.fsum(weights[i] * weights[j] * K[i][j] for i, j in used)
            mean /= math.fsum(weights[i] * weights[j] for i, j in used)
            total += (1.0 if left == right else -1.0) * shares[s] * shares[t] * mean
    return total / sum(shares.values()) ** 2


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("case", TABLES)
def test_every_relabelling_has_the_statistic_of_its_labels(case, estimator):
    sample, kernel = sample_of(case), parse_kernel("gaussian(1)")
    options = Options(estimator, "permutation", 30, 0.9, "standardize", 0)
    test = TwoSamples(options, Engine(1), None, sample)
    relabelled = test.relabelled(Family(((kernel,),)), 30)
    blocks = BlockedRows.of(sample.labels, 0, sample.design)
    moved = blocks.relabellings(30, 0)
    K, hollow = kernel(sample.points).tolist(), estimator == "unbiased"
    assert relabelled.sums.shape == (1, len(moved))
    for g in [0, 1, 2, 7, len(moved) - 1]:
        labels = np.concatenate([moved[g], blocks.in_x[blocks.free :]])[blocks.of_rows()]
        assert g > 0 or (labels == (sample.labels == 1)).all()
        told = labels.tolist(), sample.design.units.tolist(), sample.design.strata.tolist()
        wanted = naive_discrepancy(K, *told, hollow=hollow, paired=sample.design.swaps)
        assert test.factor * relabelled.sums[0, g] == pytest.approx(wanted, abs=1e-12)
    found = test.effect((kernel,))
    assert found.estimate(estimator) == pytest.approx(test.factor * relabelled.sums[0, 0], abs=1e-12)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("case", TABLES)
def test_of_rows_that_weigh_nothing_the_statistic_is_that_of_the_others(case, plain):
    """Times 4 / k sum_s m n / (m + n): the variance is then about that of others, whatever m and n of the k rows are."""
    sample, kernel = sample_of(case), parse_kernel("gaussian(1)")
    sample = replace(sample, design=None) if plain else sample
    options = Options("unbiased", "permutation", 40, 0.9, "standardize", 0)
    test, rng = TwoSamples(options, Engine(1), None, sample), np.random.default_rng(5)
    there = np.flatnonzero(rng.random(len(sample.labels)) < 0.8)
    weights = np.zeros(len(sample.labels))
    weights[there] = 1.0
    blocks = BlockedRows.of(sample.labels, 0, sample.design)._replace(weights=weights)
    moved, K = blocks.relabellings(40, 0), kernel(sample.points)
    held = np.eye(len(blocks.in_x))[blocks.of_rows()] * weights[:, None]
    diagonal = held.sum(axis=0)
    sums = (held.T @ K @ held - np.diag(diagonal))[None], diagonal[None]
    found = test.over_blocks((kernel,), sample.points, sums, blocks, moved)[0]
    design = sample.design or Design(np.arange(len(weights)), np.zeros(len(weights), dtype=np.intp), False, "")
    strata, units = design.strata[there], design.units[there]
    compared = 0
    for g in range(len(moved)):
        labels = np.concatenate([moved[g], blocks.in_x[blocks.free :]])[blocks.of_rows()][there]
        n_x, n = np.bincount(strata, weights=labels), np.bincount(strata)
        held_by = [[len(set(units[(strata == s) & (labels == side)])) for side in (True, False)] for s in set(strata)]
        if np.min(held_by) < 2:
            continue
        precision = 4.0 / len(there) * float((n_x * (n - n_x) / n).sum())
        wanted = naive_discrepancy(
            K[np.ix_(there, there)].tolist(), labels.tolist(), units.tolist(), strata.tolist(), hollow=True
        )
        assert test.factor * found[g] == pytest.approx(wanted * precision, abs=1e-12)
        compared += 1
    assert compared >= 5
    # One row of a sample tells nothing.
    if int(design.strata.max()) == 0:
        alone = np.zeros(len(weights))
        alone[[*np.flatnonzero(sample.labels)[:1], *np.flatnonzero(sample.labels == 0)]] = 1.0
        blocks, held = blocks._replace(weights=alone), np.eye(len(blocks.in_x))[blocks.of_rows()] * alone[:, None]
        diagonal = held.sum(axis=0)
        sums = (held.T @ K @ held - np.diag(diagonal))[None], diagonal[None]
        first = test.over_blocks((kernel,), sample.points, sums, blocks, moved[:1])
        assert first == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("case", TABLES)
def test_units_move_whole_and_within_strata(case):
    sample = sample_of(case)
    blocks, design = BlockedRows.of(sample.labels, 3, sample.design), sample.design
    moved = blocks.relabellings(20, 3)
    seen = np.array([np.concatenate([one, blocks.in_x[blocks.free :]])[blocks.of_rows()] for one in moved])
    assert len(np.unique(seen, axis=0)) > 5
    for labels in seen:
        if design.swaps:
            # Both sides of each pair change places, or neither.
            changed = np.bincount(design.units, weights=labels != sample.labels)
            assert np.isin(changed / np.bincount(design.units), (0, 1)).all()
            continue
        for unit in set(design.units.tolist()):
            assert len(set(labels[design.units == unit].tolist())) == 1
        _, first = np.unique(design.units, return_index=True)
        for one in set(design.strata.tolist()):
            inside = first[design.strata[first] == one]
            assert labels[inside].sum() == (sample.labels[inside] == 1).sum()


@pytest.mark.parametrize("case", TABLES)
def test_further_relabellings_are_of_other_blocks_of_units(case, monkeypatch):
    """Units of other labels, which a design allows: more relabellings of the same blocks would tell no more."""
    for name, value in {"BLOCKS": 6, "FEWEST": 2, "FEWEST_OF_STRATUM": 1, "ALL": 1, "OF_COSET": 3}.items():
        monkeypatch.setattr(designs, name, value)
    sample, kernel = sample_of(case), parse_kernel("gaussian(1)")
    test = TwoSamples(Options("unbiased", "permutation", 7, 0.9, "standardize", 0), Engine(1), None, sample)
    found, cosets = test.relabelled(Family(((kernel,),)), 7), list(Cosets(sample, 7, 0))
    assert found.orders == len(cosets) == 3
    assert len({tuple(blocks.of_rows().tolist()) for blocks, _ in cosets}) == 3
    every = [
        np.concatenate([one, blocks.in_x[blocks.free :]])[blocks.of_rows()] for blocks, moved in cosets for one in moved
    ]
    assert (every[0] == sample.labels).all()
    K, units, strata = kernel(sample.points).tolist(), sample.design.units, sample.design.strata
    first, swaps = np.unique(units, return_index=True)[1], sample.design.swaps
    for labels, told in zip(every, found.sums[0], strict=True):
        if swaps:
            changed = np.bincount(units, weights=labels != sample.labels)
            assert np.isin(changed / np.bincount(units), (0, 1)).all()
        else:
            assert (labels == labels[first][units]).all()
            in_x = [np.bincount(strata[first], weights=some[first]) for some in (labels, sample.labels)]
            assert (in_x[0] == in_x[1]).all()
        told_of = labels.tolist(), units.tolist(), strata.tolist()
        wanted = naive_discrepancy(K, *told_of, hollow=True, paired=swaps)
        assert test.factor * told == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("case", TABLES)
def test_kernels_whose_sums_are_made_one_after_the_other_say_the_same(case, monkeypatch):
    # Many kernels over many blocks take too much memory at once, which no small table shows.
    at_once = mmd_test(*TABLES[case], **columns_of(case))
    monkeypatch.setattr(permuted_blocks, "HELD_SUMS", 1)
    alone = mmd_test(*TABLES[case], **columns_of(case))
    assert alone.p_value == at_once.p_value
    assert alone.statistic == pytest.approx(at_once.statistic, rel=1e-12)


def test_all_relabellings_of_few_clusters_or_pairs_are_used():
    few = mmd_test(clusters(4, 0), clusters(5, 10), cluster="who", exclude="shop")
    assert (few.null.permutations, few.units) == (math.comb(9, 4), 9)
    assert few.null.resampling == "all permutations of 9 whole clusters (who)"
    assert mmd_test(*pairs(7), paired="case").null.permutations == 2**7
    # All swapped is none swapped: each value of the statistic is there twice.
    assert mmd_test(*pairs(7, shift=2.0), paired="case").p_value == 2 / 2**7
    with pytest.raises(UndecidedError, match=r"cannot give a p-value below 0\.1, and alpha is 0.05") as caught:
        mmd_test(clusters(3, 0), clusters(3, 10), cluster="who", exclude="shop")
    assert caught.value.code == "undecided.floor"


def test_pairs_show_what_is_hidden_by_the_spread_of_cases():
    x, y = pairs(80, shift=0.3)
    paired, plain = mmd_test(x, y, paired="case"), mmd_test(x, y, exclude="case")
    assert paired.p_value == 0.001
    assert plain.p_value > 0.5
    assert paired.effect_size > 0
    assert plain.effect_size == 0
    assert mmd_test(*pairs(80), paired="case").p_value > 0.05


def test_groups_of_pairs_have_the_rows_that_any_pair_of_them_uses():
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {"case": np.tile(np.arange(20), 3), "time": np.repeat(["a", "b", "c"], 20), "v": rng.normal(size=60)}
    )
    # One case has no row at a, another one none at b.
    found = mmd_test(frame.drop(index=[3, 25]), by="time", paired="case")
    assert {(pair.x, pair.y): (pair.n_x, pair.n_y) for pair in found.pairs} == {
        ("a", "b"): (18, 18),
        ("a", "c"): (19, 19),
        ("b", "c"): (19, 19),
    }
    assert [one.n for one in found.groups] == [19, 19, 20]


def test_a_change_of_the_mix_of_strata_is_no_difference():
    rng = np.random.default_rng(2)

    def table(n, share, shift=0.0):
        shop = np.where(rng.random(n) < share, "north", "south")
        return pd.DataFrame({"shop": shop, "u": 3.0 * (shop == "north") + rng.normal(size=n) + shift})

    x, y = table(300, 0.8), table(250, 0.3)
    assert mmd_test(x, y, exclude="shop").p_value == 0.001
    result = mmd_test(x, y, strata="shop")
    assert result.p_value > 0.05
    assert result.effect_size < 0.1
    assert result.strata == "shop"
    moved = mmd_test(x, table(250, 0.3, 0.8), strata="shop", explain=True)
    assert moved.p_value == 0.001
    assert moved.explanation.columns[0].p_adjusted == pytest.approx(0.001)
    hidden = mmd_test(x, y, strata="shop", explain=True).explanation.columns[0]
    assert hidden.p_adjusted > 0.05
    assert hidden.effect_size < 0.1


def test_the_standard_error_is_that_of_clusters():
    found = []
    for seed in range(60):
        x, y = clusters(20, 0, seed=seed, size=6), clusters(20, 100, seed=seed, size=6, shift=1.5)
        options = {"kernel": "gaussian(2)", "scale": "none", "permutations": 20}
        plain = mmd_test(x, y, exclude="who,shop", **options)
        own = mmd_test(x, y, cluster="who", exclude="shop", **options)
        found.append((own.mmd, own.mmd_standard_error or np.nan, plain.mmd_standard_error or np.nan))
    mmd, own, plain = np.array(found).T
    assert np.nanmean(own) == pytest.approx(mmd.std(), rel=0.25)
    assert np.nanmean(plain) < 0.6 * mmd.std()


def test_strata_of_one_row_a_side_have_no_standard_error():
    x, y = pairs(40, shift=4.0)
    options = {"kernel": "gaussian(2)", "scale": "none"}
    found = mmd_test(x, y, strata="case", **options)
    assert found.p_value == 0.001
    assert found.mmd_standard_error is None
    assert "some strata have too few rows for a standard error" in found.summary()
    with pytest.raises(UndecidedError, match="have one row of a table") as caught:
        mmd_test(x, y, strata="case", min_effect=0.01, **options)
    assert "paired=" in caught.value.hint
    assert mmd_test(x, y, paired="case", min_effect=0.01, **options).minimum_effect.reached


@pytest.mark.usefixtures("without_shifts")
@pytest.mark.thorough
@pytest.mark.parametrize("case", ["clusters", "unequal clusters", "pairs", "strata"])
def test_the_level_is_kept_where_rows_are_no_independent_draws(case):
    rejected, plain = 0, 0
    for seed in range(300):
        options = {"permutations": 200, "seed": seed, "kernel": "gaussian", "bandwidth": "median"}
        if case == "pairs":
            tables, design, without = pairs(40, seed), {"paired": "case"}, "case"
        elif case == "strata":
            rng = np.random.default_rng(seed)
            made = [rng.random(n) < share for n, share in ((150, 0.7), (100, 0.4))]
            tables = [pd.DataFrame({"s": one, "u": 2.0 * one + rng.normal(size=len(one))}) for one in made]
            design, without = {"strata": "s"}, "s"
        else:
            unequal = case.startswith("unequal")
            count, size = (60, 5) if unequal else (12, 20)
            tables = [clusters(count, first, size=size, seed=seed, unequal=unequal) for first in (0, 100)]
            tables = [one.drop(columns="shop") for one in tables]
            design, without = {"cluster": "who"}, "who"
        rejected += mmd_test(*tables, **design, **options).reject
        # Some tell that the rows are no independent draws.
        if seed < 100:
            plain += mmd_test(*tables, exclude=without, **options).reject
    low, high = binom.ppf([0.0005, 0.9995], 300, 0.05)
    assert low <= rejected <= high
    assert plain > 50 if case != "pairs" else plain == 0


def test_what_is_no_design_is_refused(tmp_path):
    x, y = clusters(6, 0), clusters(6, 3)
    with pytest.raises(
        DataError, match=r"3 clusters of 'who' have rows in both tables \(the first in x, row 13\)"
    ) as caught:
        mmd_test(x, y, cluster="who", alpha=0.3)
    assert caught.value.hint.startswith("paired='who', without cluster='who', compares rows")
    with pytest.raises(DataError, match="3 clusters of 'who' have rows in both tables") as caught:
        mmd_test(x, y, cluster="who", strata="shop", alpha=0.3)
    # Beside strata, pairs would be refused.
    assert caught.value.hint.startswith("paired='who', without cluster='who' and strata='shop', compares rows")
    with pytest.raises(UsageError, match="exclude each other"):
        mmd_test(x, y, paired="who", strata="shop")
    with pytest.raises(DataError, match="no value of 'who' is in both"):
        mmd_test(x, clusters(6, 50), paired="who")
    mixed = clusters(8, 50).assign(shop="s1")
    mixed.loc[:1, "shop"] = "s2"
    with pytest.raises(DataError, match="1 cluster of 'who' is in several strata of 'shop'"):
        mmd_test(x, mixed, cluster="who", strata="shop")
    with pytest.raises(UsageError, match="says which relabellings there are"):
        mmd_test(x, mixed, cluster="who", null="moments", kernel="gaussian(1)")
    with pytest.raises(UsageError, match="needs method='exact'"):
        mmd_test(x, mixed, cluster="who", method="features")
    lost = mmd_test(*pairs(40, few=3), paired="case")
    assert lost.warnings[0] == "3 rows without a partner in the other table (case) left out"
    assert (lost.n_x, lost.n_y, lost.units) == (37, 37, 37)
    x.loc[5, "who"] = np.nan
    x.to_csv(tmp_path / "x.csv", index=False)
    mixed.to_csv(tmp_path / "y.csv", index=False)
    done = run_process("mmd", "x.csv", "y.csv", "--cluster", "who", cwd=tmp_path)
    assert done.code == 3
    assert "line 7: no value of 'who', which --cluster who needs" in done.err
    assert "--where 'who is not missing'" in done.err
    words = "mmd", "x.csv", "y.csv", "--cluster", "who", "--exclude", "shop", "--where", "who is not missing"
    assert run_process(*words, cwd=tmp_path).code == 0


def test_missing_values_and_chosen_rows_keep_their_clusters():
    x, y = clusters(10, 0), clusters(12, 20)
    for table, row in ((x, 3), (x, 17), (y, 0)):
        table.loc[row, "u"] = np.nan
    found = mmd_test(x, y, cluster="who", missing="drop", exclude="shop")
    expected = mmd_test(x.dropna(), y.dropna(), cluster="who", exclude="shop")
    assert found.p_value == expected.p_value
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    chosen = mmd_test(x, y, cluster="who", missing="drop", exclude="shop", where="who != 4")
    expected = mmd_test(x[x.who != 4].dropna(), y.dropna(), cluster="who", exclude="shop")
    assert chosen.statistic == pytest.approx(expected.statistic, rel=1e-12)


def test_an_unused_column_of_clusters_is_told_where_the_test_rejects():
    x, y = clusters(12, 0, size=8, shift=1.0), clusters(12, 20, size=8)
    told = "rows with the same 'who' are alike, and the test takes rows for independent: cluster='who' relabels them together"
    assert told in mmd_test(x, y, exclude="who,shop").warnings
    assert not mmd_test(x, y, exclude="shop", cluster="who").warnings
    assert told not in mmd_test(x, x.assign(who=x.who + 20), exclude="who,shop").warnings
    rng = np.random.default_rng(0)
    apart = [one.assign(who=rng.permutation(one.who)) for one in (x, y)]
    assert not [text for text in mmd_test(*apart, exclude="who,shop").warnings if "who" in text]
    # Also where it is tested itself, as a number; not where it is in another order, or measures something.
    assert told in mmd_test(x, y, exclude="shop").warnings
    assert told not in mmd_test(*apart, exclude="shop").warnings
    assert told not in mmd_test(*(one.assign(who=one.who + 0.5) for one in (x, y)), exclude="shop").warnings


def test_several_rows_of_a_case_and_groups_with_designs_are_told():
    x, y = pairs(12)
    doubled = pd.concat([x, x.assign(u=x.u + 0.1)])
    told = mmd_test(doubled, y, paired="case").warnings
    assert any("up to 3 rows of one case" in text and "by the difference of its means" in text for text in told)
    table = pd.concat([x.assign(t="a"), y.assign(t="b"), y.assign(t="c", u=y.u + 0.3)])
    found = mmd_test(table, by="t", paired="case")
    assert found.warnings[0].startswith("with paired= there is no test of all groups together") or found.warnings[
        0
    ].startswith("with paired")
    assert not any("by features" in text for text in found.warnings)


# Two variables


def by_case(count, *, size=5, unequal=False, seed=0, effect=0.0):
    """Return a dose for each case and several values of each, alike within cases; one of them follows the dose."""
    rng = np.random.default_rng((seed, 8))
    sizes = rng.integers(2, 2 * size, count) if unequal else np.full(count, size)
    dose = rng.normal(size=count)
    levels = effect * dose + rng.normal(size=count)
    values = np.repeat(levels, sizes) + 0.3 * rng.normal(size=sizes.sum())
    return pd.DataFrame({"who": np.repeat(np.arange(count), sizes), "dose": np.repeat(dose, sizes), "value": values})


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("sides", [("dose", "value"), ("value", "dose")])
def test_a_side_that_is_constant_within_clusters_moves_between_them(sides, estimator):
    table, n = by_case(8, unequal=True), 0
    options = Options(estimator, "permutation", 12, 0.9, "standardize", 0, resampling="random")
    points = [Points.of(table[name].to_numpy()) for name in sides]
    kernel = parse_kernel("gaussian(1)")
    test = ClusteredVariables(options, Engine(1), None, tuple(points), table["who"].to_numpy(), "clusters")
    found = test.relabelled(Family(((kernel, kernel),)), 12).sums[0]
    first = np.unique(table["who"], return_index=True)[1]
    place = sides.index("dose")
    for p, one in zip(test._permutations(12), found, strict=True):
        moved = list(points)
        # Cluster c of y stands where c was, or that of x where p takes it.
        moved[place] = points[place].take(first[p if place else np.argsort(p)][table["who"].to_numpy()])
        left, right = (kernel(some).tolist() for some in moved)
        wanted = naive.hsic[estimator](left, right)
        n += 1
        assert test.factor * one == pytest.approx(wanted, abs=1e-12)
    assert n == 12


def test_clusters_of_one_size_exchange_their_rows():
    table = by_case(8)
    table["other"] = np.random.default_rng(1).normal(size=len(table))
    points = tuple(Points.of(table[name].to_numpy()) for name in ("value", "other"))
    options = Options("unbiased", "permutation", 30, 0.9, "standardize", 0, resampling="random")
    who = table["who"].to_numpy()
    test = ClusteredVariables(options, Engine(1), None, points, who, "clusters")
    for p in test._permutations(30):
        assert sorted(p) == list(range(len(table)))
        # Each cluster comes from one.
        assert len({(a, b) for a, b in zip(who.tolist(), who[p].tolist(), strict=True)}) == 8
    sizes = by_case(6, size=3).iloc[:12].assign(who=[0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3], other=range(12))
    others = ", or clusters of one size, or a side that is constant within them"
    # Three clusters of one size have too few relabellings, too.
    for some, way_out in ((sizes, others), (sizes[sizes.who > 0], ""), (by_case(3).assign(other=range(15)), "")):
        with pytest.raises(UndecidedError, match="cannot give a p-value below") as caught:
            hsic_test(some, x_columns="value", y_columns="other", cluster="who")
        assert caught.value.hint == f"more clusters would{way_out}"


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("y", ["other", "dose"])
def test_clusters_of_one_size_change_places_by_shifts(y, estimator, monkeypatch):
    monkeypatch.setattr(permuted_clusters, "FEW_CLUSTERS", 3)
    monkeypatch.setattr(circles, "FEW_PLACES", 0)
    # Rows of a cluster need not stand together.
    table = by_case(7, size=3).sample(frac=1.0, random_state=0)
    table["other"] = np.random.default_rng(1).normal(size=len(table))
    points = tuple(Points.of(table[name].to_numpy()) for name in ("value", y))
    options = Options(estimator, "permutation", 20, 0.9, "standardize", 0, resampling="random")
    test = ClusteredVariables(options, Engine(1), None, points, table["who"].to_numpy(), "who").by_shifts_if_less()
    kernel = parse_kernel("gaussian(1)")
    found = test.relabelled(Family(((kernel, kernel),)), 20)
    assert found.resampling == "cyclic shifts of 7 whole clusters (who)"
    first, wanted = test.orders(20)[0], []
    for order in test.orders(20):
        for shift in range(0, 21, 3):
            p = np.empty(21, dtype=np.intp)
            p[first] = np.roll(order, -shift)
            left, right = (kernel(some).tolist() for some in (points[0], points[1].take(p)))
            wanted.append(naive.hsic[estimator](left, right))
    assert test.factor * found.sums[0] == pytest.approx(np.array(wanted), abs=1e-12)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
@pytest.mark.parametrize("y", ["other", "dose"])
@pytest.mark.parametrize("few_places", [0, 10**6])
def test_clusters_of_several_sizes_change_places_on_circles_of_their_own(y, estimator, few_places, monkeypatch):
    monkeypatch.setattr(permuted_clusters, "FEW_CLUSTERS", 3)
    # Several tiles between two circles, which transforms or products of all entries serve.
    monkeypatch.setattr(circles, "TILE", 5)
    monkeypatch.setattr(circles, "FEW_PLACES", few_places)
    laid, of = [], Circles.of
    monkeypatch.setattr(Circles, "of", lambda rows, *told: laid.extend([rows, of(rows, *told)]) or laid[1])
    table = by_case(9, size=3).iloc[:-1]
    # Of two and three rows, one of one, which stands still; rows of a cluster need not stand together.
    table["who"] = np.repeat(np.arange(11), [2, 3, 2, 3, 3, 2, 1, 3, 3, 2, 2])
    table["dose"] = np.random.default_rng(2).normal(size=11)[table["who"]]
    table["other"] = np.random.default_rng(1).normal(size=len(table))
    table = table.sample(frac=1.0, random_state=0)
    who = table["who"].to_numpy()
    points = tuple(Points.of(table[name].to_numpy()) for name in ("value", y))
    options = Options(estimator, "permutation", 20, 0.9, "standardize", 0, resampling="random")
    kernels = parse_kernel("gaussian(1)"), parse_kernel("laplacian(1)")
    family = Family(tuple(itertools.product(kernels, kernels)))
    found = ClusteredVariables(options, Engine(1), None, points, who, "who").relabelled(family, 20)
    assert found.resampling == f"cyclic shifts of {11 if y == 'dose' else '10 of 11'} whole clusters (who)"
    (rows, drawn), first = laid, np.unique(who, return_index=True)[1]
    wanted = []
    assert len(found.sums.T) == len(drawn.orders) * len(drawn.steps) == 200 if y == "other" else 88
    some = slice(None, None, 23)
    for order, steps in list(itertools.product(drawn.orders, drawn.steps))[some]:
        p = np.arange(len(who) if y == "other" else 11)
        for own, places, step in zip(rows, order, steps, strict=True):
            p[own] = np.roll(own[:, places], -step, axis=1)
        moved = points[1].take(p if y == "other" else first[p][who])
        assert y == "dose" or all(len(set(who[p[who == one]])) == 1 for one in range(11))
        for pair in family.members:
            left, right = (kernel(some).tolist() for kernel, some in zip(pair, (points[0], moved), strict=True))
            wanted.append(naive.hsic[estimator](left, right))
    assert len(set(map(tuple, np.round(found.sums.T, 10)))) > 20
    factor = ClusteredVariables(options, Engine(1), None, points, who, "who").factor
    assert factor * found.sums.T[some].ravel() == pytest.approx(np.array(wanted), abs=1e-12)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_few_clusters_of_one_size_change_places_by_products_between_them(estimator, monkeypatch):
    """Shifts of all rows, of which one in so many is one of clusters, took 70 s for ten of 500 rows; now 2."""
    # Each place of a cluster is a tile of its own, and orders are looked up one by one.
    monkeypatch.setattr(circles, "TILE", 5)
    monkeypatch.setattr(circles, "LOOKED_UP", 1)
    monkeypatch.setattr(circles, "SHARES", 2)
    laid, of = [], Circles.of
    monkeypatch.setattr(Circles, "of", lambda rows, *told: laid.extend([rows, of(rows, *told)]) or laid[1])
    table = by_case(8, size=4).sample(frac=1.0, random_state=0)
    who = table["who"].to_numpy()
    points = Points.of(table["value"].to_numpy()), Points.of(np.random.default_rng(1).normal(size=32))
    options = Options(estimator, "permutation", 20, 0.9, "standardize", 0, resampling="random")
    test = ClusteredVariables(options, Engine(1), None, points, who, "who").by_shifts_if_less()
    assert (test.places, test.dense, test.shifted) == (64, 0, False)
    kernels = parse_kernel("gaussian(1)"), parse_kernel("laplacian(1)")
    family = Family(tuple(itertools.product(kernels, kernels)))
    found = test.relabelled(family, 20)
    assert found.resampling == "cyclic shifts of 8 whole clusters (who)"
    ((own,), drawn), wanted = laid, []
    assert found.sums.shape[1] == len(drawn.orders) * len(drawn.steps)
    some = slice(None, None, 7)
    for (places,), (step,) in list(itertools.product(drawn.orders, drawn.steps))[some]:
        p = np.empty(32, dtype=np.intp)
        p[own] = np.roll(own[:, places], -step, axis=1)
        for pair in family.members:
            left, right = (
                kernel(one).tolist() for kernel, one in zip(pair, (points[0], points[1].take(p)), strict=True)
            )
            wanted.append(naive.hsic[estimator](left, right))
    assert test.factor * found.sums.T[some].ravel() == pytest.approx(np.array(wanted), abs=1e-12)


def moved_clusters(who, constant):
    """Yield which row stands for each where clusters of one size change places; of a constant side those of any size."""
    rows = [np.flatnonzero(who == one) for one in range(who.max() + 1)]
    for order in itertools.permutations(range(len(rows))):
        p = np.empty(len(who), dtype=np.intp)
        if constant:
            p = np.array([rows[order[one]][0] for one in who])
        elif all(len(rows[a]) == len(rows[b]) for a, b in enumerate(order)):
            for own, other in zip(rows, order, strict=True):
                p[own] = rows[other]
        else:
            continue
        yield p


@pytest.mark.parametrize(
    ("sizes", "dose", "ways"),
    [
        ([3] * 5, None, 120),
        ([1] * 5, None, 120),
        ([2, 3, 2, 3, 2, 3], None, 36),
        ([3] * 6, [1, 1, 1, 0, 2, 2], 60),
        ([2, 2, 3, 3, 2, 3, 2], [0, 0, 1, 0, 1, 0, 1], 35),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_all_relabellings_of_few_clusters_of_two_variables_are_used(sizes, dose, ways, swapped):
    who, rng = np.repeat(np.arange(len(sizes)), sizes), np.random.default_rng(4)
    values = rng.normal(size=(2, len(who)))
    values[1] = np.array(dose)[who] + 0.0 if dose else values[1] + values[0]
    table = pd.DataFrame({"who": who, "a": values[0], "b": values[1]})
    sides = ["b", "a"] if swapped else ["a", "b"]
    told = {"x_columns": sides[0], "y_columns": sides[1], "scale": "none", "estimator": "biased"}
    told |= {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)", "cluster": None if max(sizes) == 1 else "who"}
    one, other = (hsic_test(table, **told, seed=seed) for seed in (0, 1))
    K, L = (np.exp(-np.square(some[:, None] - some) / 2.0) for some in values)
    A = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    found = np.array([(A * L[np.ix_(p, p)]).sum() for p in moved_clusters(who, dose is not None)])
    # The first is the observed one.
    assert one.p_value == pytest.approx(np.mean(found >= found[0] - 1e-9))
    assert one.null.permutations == ways
    assert one.null.p_floor == 1.0 / ways <= one.p_value
    assert one.null.resampling.startswith("all permutations")
    assert one.null.mean == pytest.approx(found.mean() / len(who) ** 2)
    assert other.p_value == one.p_value
    assert not any("Monte-Carlo" in text for text in one.warnings)


def test_no_p_value_of_sampled_relabellings_is_below_their_floor():
    table = by_case(8, size=3, effect=5.0)
    for seed in range(3):
        found = hsic_test(table, x_columns="dose", y_columns="value", cluster="who", permutations=200, seed=seed)
        assert found.null.p_floor == 1.0 / found.null.permutations <= found.p_value


def test_plans_count_the_orders_in_which_clusters_are_shifted(tmp_path):
    table = by_case(40, size=20)
    table["other"] = np.random.default_rng(1).normal(size=len(table))
    table.to_csv(tmp_path / "x.csv", index=False)
    done = run_process("hsic", "x.csv", "--x", "value", "--y", "other", "--cluster", "who", "--dry-run", cwd=tmp_path)
    assert "under 1,000 cyclic relabellings" in done.out


def test_few_relabellings_of_many_rows_are_all_used():
    table = by_case(6, size=130)
    table["who"] = np.repeat(np.arange(6), [120, 140, 120, 140, 120, 140])
    table["other"] = np.random.default_rng(1).normal(size=len(table))
    found = hsic_test(table, x_columns="value", y_columns="other", cluster="who")
    assert found.null.permutations == 36
    assert found.p_value == pytest.approx(round(36 * found.p_value) / 36)
    assert hsic_test(table, x_columns="value", y_columns="other", cluster="who", seed=1).p_value == found.p_value


def test_clusters_have_no_limit_of_memory(monkeypatch):
    monkeypatch.setattr(exact, "DENSE_ENTRIES", 2 * 300**2)
    table = by_case(90, size=4, unequal=True)
    table["other"] = np.random.default_rng(1).normal(size=len(table))
    own = {"x_columns": "value", "kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
    assert len(table) > 300
    found = hsic_test(table, y_columns="other", **own, cluster="who")
    assert found.null.resampling == f"cyclic shifts of {len(np.unique(table.who))} whole clusters (who)"
    with pytest.raises(UndecidedError, match="rows are more than"):
        hsic_test(table, y_columns="other", **own, resampling="random", permutations=10)
    monkeypatch.undo()
    monkeypatch.setattr(permuted_clusters, "FEW_CLUSTERS", 1000)
    wanted = hsic_test(table, y_columns="other", **own, cluster="who", permutations=4000)
    error = math.sqrt(wanted.p_value * (1.0 - wanted.p_value) / 1000)
    assert wanted.null.resampling.startswith("permutations of")
    assert wanted.statistic == pytest.approx(found.statistic, rel=1e-9)
    assert abs(wanted.p_value - found.p_value) < 5 * error


def test_clusters_that_are_alike_on_one_side_decide_nothing():
    table = by_case(18, size=10)
    table["day"] = np.tile(np.arange(10.0), 18)
    with pytest.raises(UndecidedError, match="a side is alike in all of them") as caught:
        hsic_test(table, x_columns="value", y_columns="day", cluster="who")
    assert caught.value.code == "undecided.degenerate_kernel"
    assert (
        hsic_test(
            table.assign(day=table.day + 0.1 * table.value), x_columns="value", y_columns="day", cluster="who"
        ).p_value
        < 1
    )


def test_dependence_between_clusters_is_not_that_of_rows():
    table = by_case(14, size=20)
    own = hsic_test(table, x_columns="dose", y_columns="value", cluster="who")
    plain = hsic_test(table, x_columns="dose", y_columns="value")
    assert own.p_value > 0.05
    assert plain.p_value < 0.01
    assert own.null.resampling == "permutations of 14 whole clusters (who)"
    assert own.statistic == pytest.approx(
        hsic_test(table, x_columns="dose", y_columns="value", kernel_x=own.kernel_x, kernel_y=own.kernel_y).statistic,
        rel=1e-9,
    )
    assert hsic_test(by_case(40, effect=2.0), x_columns="dose", y_columns="value", cluster="who").p_value == 0.001
    with pytest.raises(UsageError, match="says which relabellings there are"):
        hsic_test(table, x_columns="dose", y_columns="value", cluster="who", statistic="coco")
    done = run_process("hsic", "-", "--pairwise", "--cluster", "who")
    assert done.code == 2
    assert "--cluster NAME" in done.err


@pytest.mark.thorough
@pytest.mark.parametrize("few_clusters", [3, 300])
@pytest.mark.parametrize("sides", ["dose", "values"])
def test_the_level_is_kept_between_clusters(sides, few_clusters, monkeypatch):
    monkeypatch.setattr(permuted_clusters, "FEW_CLUSTERS", few_clusters)
    options = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median", "permutations": 200}
    rejected, plain = 0, 0
    for seed in range(240):
        table = by_case(16, size=6, unequal=True, seed=seed)
        if sides == "values":
            # Each its own side, alike within clusters of a few sizes.
            table = by_case(24, size=2, unequal=True, seed=seed)
            table["dose"] += 0.3 * np.random.default_rng((seed, 9)).normal(size=len(table))
        told = {"x_columns": "dose", "y_columns": "value", "seed": seed, **options}
        rejected += hsic_test(table, cluster="who", **told).reject
        # Some tell that the rows are no independent draws.
        if seed < 60:
            plain += hsic_test(table, **told).reject
    low, high = binom.ppf([0.0005, 0.9995], 240, 0.05)
    assert low <= rejected <= high
    assert plain > 18


def test_clusters_that_cannot_reject_are_refused_before_anything_is_computed(monkeypatch):
    table = by_case(6, size=10)
    table["who"] = np.repeat(np.arange(6), [8, 9, 10, 11, 10, 12])
    table["other"] = np.random.default_rng(0).normal(size=60)
    monkeypatch.setattr(ClusteredVariables, "relabelled", None)
    with pytest.raises(UndecidedError, match=r"2 relabellings of clusters cannot give a p-value below 0\.5"):
        hsic_test(table, x_columns="value", y_columns="other", cluster="who")


def test_only_clusters_of_one_size_are_said_to_change_places():
    table = by_case(12, size=10).iloc[:-5]
    table["other"] = np.random.default_rng(0).normal(size=len(table))
    found = hsic_test(table, x_columns="value", y_columns="other", cluster="who", permutations=99)
    assert found.null.resampling == "permutations of 11 of 12 whole clusters (who)"


def repeated(incomplete, seed=0):
    """Forty persons with an effect of what was shown within each; so many have no last row."""
    rng = np.random.default_rng(seed)
    who, shown = np.repeat(np.arange(40), 4), np.tile(["high", "low", "high", "low"], 40)
    table = pd.DataFrame({"who": [f"p{one:02d}" for one in who], "shown": shown, "sex": rng.permutation(40)[who] % 2})
    table["rated"] = rng.normal(size=40)[who] + (shown == "high") + 0.5 * rng.normal(size=160)
    table["other"] = rng.normal(size=160)
    last = [4 * one + one % 4 for one in range(incomplete)]
    return table.drop(index=last)


def test_clusters_of_which_few_rows_change_the_statistic_decide_nothing():
    told = {"x_columns": "shown", "y_columns": "rated", "cluster": "who"}
    # Of six one row is missing: elsewhere the same was shown in the same order.
    with pytest.raises(UndecidedError, match=r"no more than 6 of 40 clusters \(18 of 154 rows\)") as caught:
        hsic_test(repeated(6), **told)
    assert caught.value.code == "undecided.degenerate_kernel"
    within = "mmd_test(data, by='shown', columns='rated', paired='who')"
    assert within in caught.value.hint
    assert mmd_test(repeated(6), by="shown", columns="rated", paired="who").reject
    with pytest.raises(DataError, match="40 clusters of 'who' have rows in both tables") as caught:
        mmd_test(repeated(6), by="shown", columns="rated", cluster="who")
    assert caught.value.hint.startswith(f"{within} compares rows of the same cluster with each other; ")
    # That would be refused.
    assert "hsic_test" not in caught.value.hint
    # Of more rows the others are told, and none where most take part, or where a side says nothing within.
    (text,) = hsic_test(repeated(16), **told).warnings
    assert text == (
        "16 of 40 clusters (48 of 144 rows) can change places, a side is alike in the others: what depends on each other "
        f"within these is not tested; {within} compares rows of the same cluster with each other"
    )
    assert not hsic_test(repeated(26), **told).warnings
    assert not hsic_test(repeated(6), **told | {"x_columns": "sex"}).warnings
    # Two sides of numbers have no groups to compare.
    assert not hsic_test(repeated(6), **told | {"x_columns": "other"}).warnings


def test_what_goes_by_places_in_clusters_is_told_where_nothing_is_found():
    rng = np.random.default_rng(0)
    who, place = np.repeat(np.arange(40), 4), np.tile(np.arange(4), 40)
    # In three of forty treatment began a visit earlier.
    late = place >= np.where(who < 3, 1, 2)
    table = pd.DataFrame(
        {"who": who, "phase": np.where(late, "treated", "before"), "day": 30.0 * place + rng.integers(-3, 4, 160)}
    )
    table["value"] = rng.normal(size=40)[who] + 2.0 * (place >= 2) + 0.3 * rng.normal(size=160)
    told = "of how a side varies goes by the place of a row in its cluster"
    within = "mmd_test(data, by='phase', columns='value', paired='who') compares rows"
    found = hsic_test(table, x_columns="phase", y_columns="value", cluster="who")
    assert not found.reject
    assert any(told in text and within in text for text in found.warnings)
    assert mmd_test(table, by="phase", columns="value", paired="who").reject
    assert any(told in text for text in hsic_test(table, x_columns="day", y_columns="value", cluster="who").warnings)
    # In no order of visits, or where something is found, there is nothing to tell.
    drawn = table.assign(
        phase=rng.permutation(table["phase"]), day=rng.permutation(table["day"]), late=rng.normal(size=160)
    )
    for x in ("phase", "day"):
        assert not any(told in text for text in hsic_test(drawn, x_columns=x, y_columns="late", cluster="who").warnings)
    clear = hsic_test(table.assign(copy=table["value"]), x_columns="copy", y_columns="value", cluster="who")
    assert clear.reject
    assert not any(told in text for text in clear.warnings)


def test_the_share_that_goes_by_places_is_that_above_chance():
    rng = np.random.default_rng(0)
    units, place = np.repeat(np.arange(30), 5), np.tile(np.arange(5), 30)
    none = np.zeros((150, 0), dtype=np.intp)
    assert permuted_clusters.kept_by_place(units, 1.0 * place[:, None], none) == pytest.approx(1.0)
    assert (
        abs(np.mean([permuted_clusters.kept_by_place(units, rng.normal(size=(150, 1)), none) for _ in range(200)]))
        < 0.01
    )
    half = place[:, None] / place.std() + rng.normal(size=(150, 1))
    assert permuted_clusters.kept_by_place(units, half, none) == pytest.approx(0.5, abs=0.15)
    assert permuted_clusters.kept_by_place(units, np.zeros((150, 0)), place[:, None]) == pytest.approx(1.0)


def test_the_call_that_asks_of_whole_cases_keeps_the_column_of_groups():
    rng = np.random.default_rng(0)
    table = by_case(40, size=4).assign(side=rng.permutation(np.repeat([0, 1], 20))[np.arange(160) // 4])
    # A few change sides.
    table.loc[table.index % 16 == 0, "side"] ^= 1
    for exclude, left in (("side,dose", "'dose'"), ("s*,dose", "'dose'"), ("side", None), ("dose", "'dose'")):
        with pytest.raises(DataError, match="rows in both tables") as caught:
            mmd_test(table, by="side", exclude=exclude, cluster="who")
        excluded = f", exclude={left}" if left else ""
        assert f"hsic_test(data, x_columns='side'{excluded}, cluster='who') exchanges whole cases" in caught.value.hint
    assert hsic_test(table, x_columns="side", exclude="dose", cluster="who").n == 160


def test_rows_without_a_value_of_a_design_are_dropped_with_the_others():
    x, y = (one.astype({"who": object}) for one in (clusters(12, 0), clusters(12, 20, shift=2.0)))
    x.loc[x.index[:3], "shop"] = None
    x.loc[x.index[2:5], "who"] = None
    for design, lost in (("cluster", 3), ("strata", 3)):
        column = {"cluster": "who", "strata": "shop"}[design]
        options = {design: column, "exclude": "shop" if design == "cluster" else "who"}
        found = mmd_test(x, y, **options, missing="drop")
        assert f"{lost} rows without a value of {column!r} left out" in found.warnings
        wanted = mmd_test(x[x[column].notna()], y, **options)
        assert (found.p_value, found.n_x) == (wanted.p_value, len(x) - lost)
        with pytest.raises(DataError, match=f"no value of '{column}'"):
            mmd_test(x, y, **options)
    table = x.assign(other=np.random.default_rng(0).normal(size=len(x)))
    names = {"x_columns": "u", "y_columns": "other", "cluster": "who"}
    found = hsic_test(table, **names, missing="drop")
    assert "3 rows without a value of 'who' left out" in found.warnings
    wanted = hsic_test(table[table.who.notna()], **names)
    assert (found.p_value, found.n) == (wanted.p_value, len(x) - 3)
    with pytest.raises(DataError, match="every row of x has a missing value"):
        mmd_test(x.assign(who=None), y, cluster="who", exclude="shop", missing="drop")


def test_a_column_of_two_kinds_is_no_column_of_cases():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"kind": np.repeat(["a", "b", "c"], 60), "sex": np.tile(["f", "m"], 90)})
    table["size"] = (
        np.repeat([0.0, 1.0, 2.0], 60) + (table.sex == "m") + np.sin(np.arange(180) / 9) + 0.2 * rng.normal(size=180)
    )
    with pytest.raises(
        UndecidedError, match=r"no pair can be tested: 4 relabellings by swaps within 2 pairs \(sex\)"
    ) as caught:
        mmd_test(table, by="kind", paired="sex")
    assert caught.value.hint == "strata='sex', without paired='sex', compares rows within each 'sex'"
    # Nor is one to be swapped where its rows follow time.
    (text,) = [one for one in mmd_test(table, by="kind", strata="sex").warnings if "neighbouring rows" in one]
    assert "paired=" not in text
    assert (
        "number stretches of rows within each 'sex' in a column 'stretch': cluster='stretch' beside strata='sex'"
        in text
    )
    stretch = table.kind + table.sex + (np.arange(180) // 20).astype(str)
    assert mmd_test(table.assign(stretch=stretch), by="kind", strata="sex", cluster="stretch").tests == 3
    few = table[table.kind != "c"].groupby(["kind", "sex"]).head(1)
    with pytest.raises(UndecidedError, match="4 relabellings by swaps within 2 pairs") as caught:
        mmd_test(few, by="kind", paired="sex")
    assert caught.value.hint == "more pairs would"


def test_clusters_of_sizes_that_no_other_has_are_told():
    table = by_case(24, size=30)
    sizes = [*range(6, 22), 3, 3, 3, 3, 4, 4, 4, 4]
    table = pd.concat([own.head(size) for (_, own), size in zip(table.groupby("who"), sizes, strict=True)])
    table["other"] = np.random.default_rng(1).normal(size=len(table))
    found = hsic_test(table, x_columns="value", y_columns="other", cluster="who")
    assert found.warnings[0] == (
        "8 of 24 clusters (28 of 244 rows) can change places, too few of the others have as many rows: what depends on each "
        "other within these is not tested"
    )


def test_whole_cases_are_offered_only_where_that_test_can_reject():
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(30), 4)
    table = pd.DataFrame({"who": [f"p{one:02d}" for one in people], "half": np.tile([1, 1, 2, 2], 30)})
    table["value"] = rng.normal(size=30)[people] + 0.1 * rng.normal(size=120)
    with pytest.raises(UndecidedError, match="a side is alike"):
        hsic_test(table, x_columns="half", y_columns="value", cluster="who")
    with pytest.raises(DataError, match="rows in both tables") as caught:
        mmd_test(table, by="half", columns="value", cluster="who")
    assert "hsic" not in caught.value.hint
    assert "strata='who', without cluster='who', asks what differs within one case" in caught.value.hint


def test_the_same_table_twice_is_told_of_pairs_too():
    x, y = pairs(30)
    told = "the files have the same rows in every pair: they are one and the same; compare different ones"
    assert told in mmd_test(x, x.sample(frac=1.0, random_state=1), paired="case").warnings
    assert not any("one and the same" in text for text in mmd_test(x, y, paired="case").warnings)
    # Other cases with the same rows are no copies of their pairs.
    assert told not in mmd_test(x, x.assign(case=x.case.to_numpy()[::-1]), paired="case").warnings


def clusters_of(sizes, rng, first=0):
    means = np.repeat(rng.normal(size=len(sizes)), sizes)
    a = means + 0.5 * rng.normal(size=len(means))
    return pd.DataFrame({"c": np.repeat(np.arange(len(sizes)) + first, sizes), "a": a, "b": rng.normal(size=len(a))})


@pytest.mark.usefixtures("without_shifts")
def test_of_clusters_of_other_sizes_in_each_file_kernels_are_judged_one_by_one():
    """Together they tell clusters of the observed sizes from the mixtures of relabellings: 20 of 60 are rejected then."""
    rng, rejected = np.random.default_rng(3), 0
    for seed in range(60):
        x, y = clusters_of([20] * 20, rng), clusters_of([4] * 10, rng, 100)
        found = mmd_test(x, y, cluster="c", seed=seed, permutations=100)
        rejected += found.reject
        assert any("the p-value is approximate" in text for text in found.warnings)
        assert not found.null.exact
    assert rejected <= 8
    even = [
        mmd_test(clusters_of(sizes, rng), clusters_of(sizes, rng, 100), cluster="c")
        for sizes in ([7] * 9, range(3, 12))
    ]
    even.append(mmd_test(clusters_of([1] * 40, rng), clusters_of([1] * 40, rng), paired="c"))
    assert not any("are no longer what they were" in text for one in even for text in one.warnings)
    assert not any("approximate" in one.decision for one in even)


def cases_of(sizes, case_means, rng, shift=0.0):
    rows = np.repeat(case_means, sizes) + shift + rng.normal(size=sum(sizes))
    return pd.DataFrame({"c": np.repeat(np.arange(len(sizes)), sizes), "a": rows})


@pytest.mark.usefixtures("without_shifts")
def test_cases_with_more_rows_on_one_side_are_compared_by_their_means():
    """By rows a tenth to a third of what does not differ was rejected, and of what differs an eighth (cases differ much)."""
    rng, rejected, found = np.random.default_rng(4), [0, 0], 0
    for seed in range(60):
        for place, sizes in enumerate(([10] * 20, rng.integers(1, 9, 20))):
            means = 3.0 * rng.normal(size=20)
            x, y = cases_of(sizes, means, rng), cases_of([1] * 20, means, rng)
            result = mmd_test(x, y, paired="c", seed=seed, permutations=100)
            rejected[place] += result.reject
            assert not result.null.exact
            assert "approximate" in result.decision
            assert not any("relabelled they are" in text for text in result.warnings)
        y = cases_of([1] * 20, means, rng, 1.0)
        found += mmd_test(x, y, paired="c", seed=seed, permutations=100).reject
    assert max(rejected) <= 8
    assert found >= 30


def test_clusters_with_more_rows_in_one_group_are_told_by_hsic_too():
    rng = np.random.default_rng(0)
    sizes = np.r_[np.full(6, 30), np.full(90, 2)]
    who, group = np.repeat(np.arange(96), sizes), np.repeat(np.r_[np.full(6, "a"), np.full(90, "b")], sizes)
    table = pd.DataFrame({"who": who, "group": group, "y": rng.normal(size=96)[who] + 0.1 * rng.normal(size=360)})
    told = "clusters of 'who' have more rows the larger a side is"
    found = hsic_test(table, x_columns="group", y_columns="y", cluster="who")
    assert not found.null.exact
    assert any(told in text and "mmd_test with by=" in text for text in found.warnings)
    mixed = table.assign(group=rng.permutation(np.repeat(["a", "b"], 48))[who])
    even = hsic_test(mixed, x_columns="group", y_columns="y", cluster="who")
    assert even.null.exact
    assert not any(told in text for text in even.warnings)


@pytest.mark.usefixtures("without_shifts")
def test_clusters_of_nearly_one_size_stay_exact():
    rng = np.random.default_rng(0)
    for lost, still in ((5, True), (30, False)):
        sizes = np.r_[np.full(lost, 3), np.full(60 - lost, 4), np.full(33, 4)]
        table = clusters_of(sizes, rng).assign(group=np.repeat(["a", "b"], [sizes[:60].sum(), 132]))
        for found in (
            mmd_test(table, by="group", columns="a", cluster="c", permutations=100),
            hsic_test(table, x_columns="group", y_columns="a", cluster="c", permutations=100),
        ):
            assert found.null.exact == still
            assert any("the p-value is approximate" in text for text in found.warnings) != still


def test_strata_that_are_too_small_are_named_and_left_out():
    rng = np.random.default_rng(0)
    sites = np.repeat(["big", "case", "other", "small"], [20, 3, 20, 20])
    table = pd.DataFrame({"site": sites, "rx": np.resize(["a", "b"], 63), "v": rng.normal(size=63)})
    told = r"1 of the 4 strata of 'site' has one row of a table: case \(3 of 63 rows\)"
    with pytest.raises(UndecidedError, match=told) as caught:
        mmd_test(table, by="rx", strata="site", min_effect=0.1)
    way, _, rest = caught.value.hint.partition(" leaves it out; ")
    assert (way, rest) == ("""where="site not in ('case')\"""", "or leave out min_effect=")
    where = "site not in ('case')"
    assert mmd_test(table, by="rx", strata="site", min_effect=0.1, where=where).minimum_effect is not None


def test_pairs_that_cannot_reject_are_not_offered_for_shared_clusters():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"litter": np.repeat([1, 2], 40), "diet": np.resize(["chow", "fat"], 80)})
    table = table.assign(sex=np.resize(["f", "f", "m", "m"], 80), v=rng.normal(size=80))
    for strata, dropped in (({}, ""), ({"strata": "sex"}, " and strata='sex'")):
        with pytest.raises(DataError, match="2 clusters of 'litter' have rows in both") as caught:
            mmd_test(table, by="diet", columns="v", cluster="litter", **strata)
        assert f"strata='litter', without cluster='litter'{dropped}, asks" in caught.value.hint
        assert "paired" not in caught.value.hint
        assert "hsic" not in caught.value.hint
    assert mmd_test(table, by="diet", columns="v", strata="litter").n_x == 40


def test_too_few_clusters_of_groups_ask_for_clusters():
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(6), 10)
    table = pd.DataFrame({"who": who, "dose": [f"d{one}" for one in who // 2], "v": rng.normal(size=60)})
    with pytest.raises(UndecidedError, match="no pair can be tested") as caught:
        mmd_test(table, by="dose", cluster="who")
    assert caught.value.hint.startswith(
        "give more clusters, each with another value of 'who', to every group; or fewer,"
    )
