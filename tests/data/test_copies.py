"""Rows that are equal in the columns of a test: copies, or different rows that other columns of their table tell apart."""

import numpy as np
import pandas as pd
import pytest

from kerntest import hsic_pairs, hsic_test, mmd_test
from kerntest.data.diagnostics.copies import copies_of

RNG = np.random.default_rng(6)
# Places of two persons or three, by numbers that nobody would choose; the persons differ in what is not tested.
PLACES = (
    pd.DataFrame(RNG.normal(size=(60, 2)), columns=["rent", "wage"]).loc[np.arange(140) % 60].reset_index(drop=True)
)
PERSONS = PLACES.assign(age=RNG.integers(20, 80, 140), height=RNG.normal(size=140))
HOUSEHOLDS = PLACES.assign(name=[f"person {place}" for place in RNG.permutation(140)])


def said(result):
    """Return the warnings about copies."""
    return [text for text in result.warnings if "repeat another row" in text]


def both(table):
    """Return two tables, each with rows that are equal in the columns of places."""
    return table.iloc[np.arange(140) % 2 == 0], table.iloc[np.arange(140) % 2 == 1]


@pytest.mark.parametrize("table", [PERSONS, HOUSEHOLDS], ids=["numbers", "names"])
def test_rows_that_other_columns_tell_apart_are_no_copies(table):
    """Of columns that were not chosen, and of those that a test leaves out."""
    asked = {"x_columns": "rent", "y_columns": "wage"}
    assert not said(hsic_test(table, **asked))
    assert not said(hsic_pairs(table, columns="rent,wage"))
    kinds = np.repeat(["a", "b"], 70)
    assert not said(mmd_test(table.assign(kind=kinds), by="kind", columns="rent,wage"))
    # Of three groups there is a test of all rows against their group.
    assert not said(mmd_test(table.assign(kind=np.arange(140) // 47), by="kind", columns="rent,wage"))
    # With nothing that tells them apart they are.
    assert said(hsic_test(table[["rent", "wage"]], **asked))
    assert said(hsic_pairs(table[["rent", "wage"]]))
    assert said(mmd_test(PLACES.assign(kind=kinds), by="kind"))


def test_copies_of_all_columns_are_told_whatever_is_tested():
    """Judged by all columns, in which they are equal; a number of the row tells none apart."""
    coarse = pd.DataFrame(RNG.integers(0, 4, (100, 2)), columns=["left", "right"])
    table = coarse.assign(weight=RNG.normal(size=100)).loc[np.arange(200) // 2].reset_index(drop=True)
    asked = {"x_columns": "left", "y_columns": "right"}
    assert "100 rows of 200 repeat another row" in said(hsic_test(table.rename_axis("n").reset_index(), **asked))[0]
    # Where nothing else is known, chance explains what columns of four values have in common.
    assert not said(hsic_test(table[["left", "right"]].sample(frac=1.0, random_state=0), **asked))


@pytest.mark.parametrize("options", [{"where": "age > 30"}, {"missing": "drop"}], ids=["where", "missing"])
def test_rows_are_found_again_where_some_were_left_out(options):
    """By their number: a wrong one would find other rows, which differ."""
    twice = PERSONS.loc[np.arange(280) // 2].reset_index(drop=True)
    twice.loc[[3, 10], "wage"] = np.nan
    options = {"missing": "drop"} | options
    assert said(hsic_test(twice, x_columns="rent", y_columns="wage", **options))


def test_rows_of_one_cluster_or_pair_are_no_copies():
    """The design says what belongs together."""
    visits = PLACES.assign(patient=np.arange(140) % 60).sort_values("patient")
    x, y = visits[visits.patient < 30], visits[visits.patient >= 30]
    assert said(mmd_test(x.drop(columns="patient"), y.drop(columns="patient")))
    assert not said(mmd_test(x, y, cluster="patient"))
    before = PLACES[:60].assign(case=np.arange(60))
    paired = mmd_test(before, before.assign(wage=before.wage + 0.1 * (before.case % 3)), paired="case")
    assert not [text for text in paired.warnings if "share rows" in text or "repeat" in text]


def test_by_features_the_columns_that_are_not_read_are_named():
    """They may tell rows apart."""
    x, y = (pd.concat([one] * 6, ignore_index=True) for one in both(PERSONS))
    told = mmd_test(x, y, columns="rent,wage", method="features", features="nystroem:20")
    assert "repeat another row in the columns tested; where the others do not tell them apart:" in said(told)[0]
    plain = mmd_test(x[["rent", "wage"]], y[["rent", "wage"]], method="features", features="nystroem:20")
    assert "in the columns tested" not in said(plain)[0]


def test_rows_of_one_case_that_other_columns_tell_apart_are_told_by_its_name():
    """As those of a patient at two visits, of which the test sees what does not change."""
    visits = PERSONS.assign(patient=np.arange(140) % 60 + 100, land="here")
    for found in (hsic_test(visits, x_columns="rent", y_columns="wage"), hsic_pairs(visits, columns="rent,wage")):
        (text,) = [text for text in found.warnings if "'patient'" in text and "values of another" in text]
        assert text.startswith("80 rows of 140 have the values of another with the same 'patient': ")
    assert not hsic_test(visits, x_columns="rent", y_columns="wage", cluster="patient").warnings
    # A column of few values is no name of cases.
    plain = visits.drop(columns="patient")
    assert not [text for text in hsic_test(plain, x_columns="rent", y_columns="wage").warnings if "another" in text]


def test_rows_that_are_all_there_twice_are_copies_whatever_values_they_have():
    rng = np.random.default_rng(0)
    some = [rng.integers(0, levels, 400).astype(float) for levels in (40, 2, 2, 3)]
    assert copies_of(some) is None
    twice = [np.repeat(one, 2) for one in some]
    found = copies_of(twice)
    assert found is not None
    np.testing.assert_array_equal(found.group[::2], found.group[1::2])
    # Sorted, they may be counts; of a table of counts are as many as there are.
    order = np.lexsort(twice)
    assert copies_of([one[order] for one in twice]) is None
    times = rng.integers(1, 4, 400)
    assert copies_of([np.repeat(one, times) for one in some[1:]]) is None
    # Chance that puts equal rows side by side is no reason.
    assert copies_of([rng.integers(0, 2, 400).astype(float) for _ in range(2)]) is None


def test_amounts_that_are_mostly_0_beside_round_ones_are_no_copies():
    rng, n = np.random.default_rng(0), 1000
    exact = np.round(np.exp(rng.normal(7, 1, n)), 2)
    favourite = rng.choice(
        [500.0, 1000, 1500, 2000, 2500, 3000, 5000, 800], n, p=[0.1, 0.35, 0.1, 0.2, 0.1, 0.08, 0.05, 0.02]
    )
    amount = np.where(rng.random(n) < 0.4, 0, np.where(rng.random(n) < 0.2, favourite, exact))
    other = np.where(rng.random(n) < 0.95, 0, np.round(np.exp(rng.normal(6, 1, n)), 2))
    asked = {"x_columns": "amount", "y_columns": "other"}
    table = pd.DataFrame({"amount": amount, "other": other})
    assert not said(hsic_test(table, **asked))
    assert said(hsic_test(pd.concat([table.assign(amount=exact)] * 2), **asked))
