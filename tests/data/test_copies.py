"""Rows that are copies, told from rows that chance makes equal: what tests warn of and learners keep together."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kerntest import hsic_joint, hsic_pairs, hsic_select, hsic_test, mmd_test, read_table
from kerntest.data.diagnostics import copies_of

SAMPLES = Path(__file__).parents[2] / "sample_data"
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


def noise(r, n=120, digits=None):
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
        lambda r: noise(r, 3000, 1),
        lambda r: pd.DataFrame(drawn := r.normal(size=3000).round(1)).assign(again=(drawn + 0.05 * r.normal(size=3000)).round(1)),
        lambda r: pd.DataFrame({"cm": (h := r.normal(170, 10, 5000)).round(), "inch": (h / 2.54).round()}),
        lambda r: pd.DataFrame(r.integers(0, 100, (1600, 2))),
        lambda r: pd.DataFrame({"rain": np.where(r.random(900) < 0.6, 0, r.exponential(size=900)), "m": r.integers(1, 13, 900)}),
        lambda r: pd.DataFrame(code := r.integers(0, 50, 2000)).assign(name=code * 7 % 50),
        lambda r: pd.DataFrame({"zip": (z := r.integers(0, 60, 5000)), "city": z // 2, "state": z // 9, "id": r.integers(0, 40, 5000)}),
        lambda r: pd.DataFrame({"age": (a := r.integers(18, 80, 5000)), "born": 2024 - a - r.integers(0, 2, 5000)}),
        lambda r: pd.DataFrame(r.integers(0, 10, (50_000, 3))),
        lambda _: pd.DataFrame({"f": np.repeat(np.arange(30), 80), "g": np.tile(np.arange(12), 200)}),
    ],
    ids=[
        "titanic", "answers", "the same answer", "baskets", "iris", "wine", "many alike", "rounded", "twice", "units", "whole", "rain", "code and name",
        "places", "ages", "digits", "design",
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(2))
def test_rows_that_are_equal_by_chance(drawn, seed):
    assert copies_of(columns_of(drawn(np.random.default_rng(seed)))) is None


@pytest.mark.parametrize(
    ("drawn", "times"),
    [
        *product(
            [noise, answers, lambda r: noise(r, digits=1), sample("iris.csv"), sample("wine.csv")], [1.5, 2, 8, 36]
        ),
        (sample("machines.csv"), 2),
        *product([lambda r: noise(r)[[0, 1]].round(1), lambda r: pd.DataFrame(r.integers(0, 100, (150, 2)))], [8, 36]),
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
    assert f"280 {SAID}" in text
    warnings = test(once.assign(a=np.arange(40))).warnings
    assert not [text for text in warnings if "repeat" in text]
    assert any("'a' counts the rows" in text for text in warnings)
