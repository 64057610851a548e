"""Strata, pairs and clusters whose rows are not independent are told, with the way that is."""

import numpy as np
import pandas as pd
import pytest
from scipy import signal

from kerntest import hsic_test, mmd_test
from kerntest.errors import DataError

pytestmark = pytest.mark.usefixtures("without_shifts")


def crossed(own, seed=4, subjects=20, trials=40, order=None):
    """Subjects under two conditions, whose difference varies from subject to subject by so much."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(1, subjects + 1), 2 * trials)
    condition = np.tile(np.repeat([0, 1], trials), subjects)
    level = 0.7 * rng.normal(size=subjects)[subject - 1] + own * rng.normal(size=(subjects, 2))[subject - 1, condition]
    time = level + 0.3 * condition + rng.normal(size=len(level))
    table = pd.DataFrame({"subject": subject, "condition": np.where(condition, "B", "A"), "time": time})
    return table if order is None else table.sample(frac=1.0, random_state=order)


def test_cases_of_which_each_differs_in_its_own_way_are_to_be_paired():
    told = "rows with the same 'subject' are alike, and the test takes rows for independent: paired='subject' compares"
    varies = "the difference varies from one 'subject' to another more than rows by chance"
    for table in (crossed(0.5), crossed(0.5, order=0)):
        found = mmd_test(table, by="condition", columns="time")
        assert found.reject
        (text,) = found.warnings
        assert text.startswith(told)
        found = mmd_test(table, by="condition", columns="time", strata="subject")
        assert found.reject
        (text,) = found.warnings
        assert text.startswith(varies)
        assert "paired='subject'" in text
        # Which of the two conditions a row is of says nothing of others.
        (text,) = mmd_test(table, by="condition", columns="time", paired="subject").warnings
        assert "strata" not in text
        files = [table[table.condition == one].drop(columns="condition") for one in "AB"]
        assert any(text.startswith(told) for text in mmd_test(*files, columns="time").warnings)
    # All differ by as much.
    for options in ({}, {"strata": "subject"}):
        found = mmd_test(crossed(0.0), by="condition", columns="time", **options)
        assert found.reject
        assert not [text for text in found.warnings if "paired" in text]


def test_series_within_strata_are_told_in_any_order_of_the_groups():
    rng = np.random.default_rng(7)
    subject, condition = (one.ravel() for one in np.meshgrid(np.arange(15), [0, 1], indexing="ij"))
    waves = signal.lfilter([1.0], [1.0, -0.8], rng.normal(size=(30, 150)))[:, 50:]
    table = pd.DataFrame(
        {
            "subject": np.repeat(subject, 100),
            "condition": np.repeat(np.where(condition, "B", "A"), 100),
            "second": np.tile(np.arange(100), 30),
            "wave": waves.ravel() + np.repeat(condition, 100),
        }
    )
    told = "they do not change places, and the p-value is far too small; paired='subject' relabels whole cases"
    # One series of each subject, of whose rows chance says the condition.
    drawn = table.assign(condition=rng.permutation(table.condition))
    drawn["wave"] = np.repeat(waves[::2], 2, axis=0).ravel() + (drawn.condition == "B")
    alone = table.assign(wave=rng.permutation(waves.ravel()) + np.repeat(condition, 100))
    for some, known in ((table, True), (drawn[drawn.index // 100 % 2 == 0], False), (alone, False)):
        for order in (
            ["condition", "subject", "second"],
            ["subject", "second", "condition"],
            ["second", "subject", "condition"],
        ):
            if known or order[0] != "condition":
                found = mmd_test(some.sort_values(order), by="condition", columns="wave", strata="subject")
                assert found.reject
                assert any(told in text for text in found.warnings) == known


def test_clusters_of_other_times_each_are_told_where_both_sides_follow_these():
    rng = np.random.default_rng(2)
    years = np.sort(np.array([rng.choice(10, 6, replace=False) for _ in range(60)]), axis=1).ravel()
    x, y = (0.5 * years + rng.normal(size=360) for _ in range(2))
    panel = pd.DataFrame({"firm": np.repeat(np.arange(60), 6), "year": 1990 + years, "x": x, "y": y})
    options = {"x_columns": "x", "y_columns": "y", "cluster": "firm"}
    told = "rows of 'firm' change places by their order, and those in one place have different 'year'"
    found = hsic_test(panel, **options)
    assert found.reject
    assert any(told in text for text in found.warnings)
    # Of a dependence within rows alone it is no matter.
    common = rng.normal(size=360)
    alone = panel.assign(x=common + rng.normal(size=360), y=common + rng.normal(size=360))
    found = hsic_test(alone, **options)
    assert found.reject
    assert not any("change places" in text for text in found.warnings)


def test_rows_of_clusters_in_no_order_of_time_are_told():
    rng = np.random.default_rng(1)
    person, year = np.repeat(np.arange(40), 6), np.tile(np.arange(1980, 1986), 40)
    x, y = (np.repeat(rng.normal(size=40), 6) + 0.4 * (year - 1982.5) + rng.normal(size=240) for _ in range(2))
    panel = pd.DataFrame({"person": person, "year": year, "x": x, "y": y})
    told = "rows of 'person' change places by their order in the file, which is not that of 'year'"
    options = {"x_columns": "x", "y_columns": "y", "cluster": "person"}
    mixed = panel.sample(frac=1.0, random_state=0)
    months = {"year": pd.to_datetime(mixed.year.astype(str), format="%Y")}
    for some in (mixed, mixed.assign(**months)):
        (text,) = hsic_test(some, **options).warnings
        assert text.startswith(told)
        assert text.endswith("sort the file by 'year'")
    # In time, or in the same order for each; or no column of time, or nothing that changes places with other times.
    found = [hsic_test(some, **options).p_value for some in (panel, mixed.sort_values("year"))]
    assert min(found) > 0.05
    same = panel.assign(order=np.tile([3, 1, 5, 0, 2, 4], 40)).sort_values(["person", "order"], kind="stable")
    dose = mixed.assign(x=rng.normal(size=40)[mixed.person])
    for some in (
        panel,
        mixed.sort_values("year"),
        same,
        mixed.rename(columns={"year": "u"}).assign(u=mixed.year - 1980),
        dose,
    ):
        assert not [text for text in hsic_test(some, **options).warnings if "change places" in text]


def numbered_in_centres(seed=0, patients=30, visits=4):
    """Patients of two centres, numbered from 1 in each, each under one treatment."""
    rng, n = np.random.default_rng(seed), 2 * patients
    treat, level = rng.permuted(np.tile(["A", "P"], patients)), rng.normal(size=n)
    table = pd.DataFrame(
        {
            "center": np.repeat(["n", "s"], patients),
            "id": np.tile(np.arange(1, patients + 1), 2),
            "treat": treat,
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(20, 60, n),
        }
    )
    table = table.loc[np.repeat(np.arange(n), visits)].reset_index(drop=True)
    table["visit"] = np.tile(np.arange(1, visits + 1), n)
    table["y"] = np.repeat(level + (treat == "A"), visits) + 0.2 * rng.normal(size=len(table))
    return table


def test_cases_that_are_numbered_anew_in_each_centre_are_not_named_by_their_numbers():
    table = numbered_in_centres()
    told = (
        "the values of 'id' start again in each 'center', and a column of both together, in cluster=, names the cases"
    )
    compared = {"by": "treat", "columns": "y,visit"}
    for found in (
        mmd_test(table, **compared),
        hsic_test(table, x_columns="treat", y_columns="y"),
    ):
        assert found.reject
        assert [text for text in found.warnings if "'id'" in text and text.endswith(told)]
    for strata in (None, "center"):
        with pytest.raises(DataError, match="clusters of 'id' have rows in both tables") as caught:
            mmd_test(table, **compared, cluster="id", strata=strata)
        assert caught.value.hint == told
    # Where nothing else tells, strata in which each cluster is in one group say that it may be so.
    few = table.drop(columns=["sex", "age"])
    with pytest.raises(DataError, match="clusters of 'id' have rows in both tables") as caught:
        mmd_test(few, **compared, cluster="id", strata="center")
    assert caught.value.hint.startswith(told.replace("the", "if the", 1).replace("'center', and", "'center',"))
    assert "; else mmd_test(data, by='treat', columns='y,visit', paired='id')" in caught.value.hint
    named = table.assign(case=table.center + table.id.astype(str))
    assert mmd_test(named, **compared, cluster="case", strata="center").units == 60


def test_patients_under_one_treatment_after_the_other_have_one_number():
    rng = np.random.default_rng(1)
    patient = np.repeat(np.arange(1, 31), 8)
    treat, visit = np.tile(np.repeat(["A", "P"], 4), 30), np.tile(np.arange(1, 9), 30)
    level = rng.normal(size=30)[patient - 1] + 0.5 * (treat == "A")
    table = pd.DataFrame({"id": patient, "treat": treat, "visit": visit, "sex": np.where(patient % 3, "f", "m")})
    table["y"] = level + 0.5 * rng.normal(size=240)
    texts = mmd_test(table, by="treat", columns="y").warnings
    with pytest.raises(DataError, match="clusters of 'id' have rows in both tables") as caught:
        mmd_test(table, by="treat", columns="y", cluster="id")
    assert not [text for text in (*texts, caught.value.hint) if "start again" in text]
