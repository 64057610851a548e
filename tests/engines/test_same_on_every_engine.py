"""Whole tests on a cluster give what threads of this process give, to the last bit of every p-value."""

from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from records import assert_alike
from tolerances import SAME_MACHINE, assert_close

from kerntest import KernelRidge, compute_on, hsic_joint, hsic_pairs, hsic_select, hsic_test, mmd_test, train_svm
from kerntest.inference.shifts import circle_length

distributed = pytest.importorskip("distributed")

# More than look for matrices of low rank, with rows that keep their partner: 2110 = 2 * 5 * 211.
ROWS = 2110


@pytest.fixture
def tasks(monkeypatch):
    """How many tasks the cluster was given; little work is sent to it too."""
    monkeypatch.setattr("kerntest.engines.base.FEW_ENTRIES", 0)
    submitted, submit = [], distributed.Client.submit
    monkeypatch.setattr(
        distributed.Client, "submit", lambda *args, **options: submitted.append(1) or submit(*args, **options)
    )
    return submitted


@contextmanager
def on_cluster(engine):
    with compute_on(scheduler=engine._client.scheduler.address, threads=2) as connected:
        assert connected.name == "dask"
        yield


def mixed(rows, seed):
    rng = np.random.default_rng(seed)
    return {
        "a": rng.normal(size=rows),
        "b": rng.integers(0, 4, size=rows),
        "c": rng.choice(["red", "green", "blue"], size=rows),
    }


def tables(*columns):
    return [pa.table(one) for one in columns]


def pair(rows):
    x, y = mixed(rows, 1), mixed(rows, 2)
    y["a"] = y["a"] + 0.5 * x["a"]
    return x, y


def two_samples(**options):
    x, y = pair(ROWS // 2)
    return mmd_test(*tables(x, y), **options)


def two_variables(rows=ROWS, **options):
    x, y = pair(rows)
    return hsic_test(*tables(x, y), **options)


def numbers(rows, count, seed=0):
    values = np.random.default_rng(seed).normal(size=(rows, count))
    values[:, 1] += values[:, 0]
    return values


CASES = {
    "a family of kernels": two_samples,
    "one kernel": lambda: two_samples(kernel="laplacian", bandwidth="median"),
    "moments of two samples": lambda: mmd_test(numbers(300, 3), numbers(300, 3, 1), null="moments", kernel="laplacian"),
    "two families": lambda: two_variables(600),
    "two kernels": lambda: two_variables(kernel_x="laplacian", kernel_y="laplacian", bandwidth="median"),
    "low rank": lambda: hsic_test(*numbers(ROWS, 2).T, kernel_x="gaussian", kernel_y="gaussian", bandwidth="median"),
    "moments of two variables": lambda: hsic_test(
        numbers(400, 3), numbers(400, 3, 1), null="moments", kernel_x="laplacian", kernel_y="laplacian"
    ),
    "random permutations": lambda: hsic_test(
        numbers(300, 2),
        numbers(300, 2, 1),
        resampling="random",
        permutations=100,
        kernel_x="gaussian",
        kernel_y="laplacian",
    ),
    "covariance": lambda: hsic_test(*numbers(300, 2).T, statistic="coco", permutations=200),
}


def test_some_rows_keep_their_partner():
    assert circle_length(ROWS) < ROWS


@pytest.mark.parametrize("case", CASES)
def test_tests_are_the_same(engine, tasks, case):
    with on_cluster(engine):
        found = CASES[case]()
    assert len(tasks) > 0
    with compute_on("local", threads=2):
        expected = CASES[case]()
    assert found.p_value == expected.p_value
    for part in ("value", "unbiased", "biased", "effect_size"):
        if hasattr(expected.statistic, part):
            # Kernels, and so their statistics, have the scale 1.
            assert_close(
                getattr(found.statistic, part), getattr(expected.statistic, part), scale=1.0, share=SAME_MACHINE
            )


@pytest.mark.parametrize("holes", [0.0, 0.1], ids=["whole rows", "missing values"])
def test_screens_are_the_same(engine, tasks, holes):
    """With missing values every pair has rows of its own: each is a piece of work by itself."""
    values = numbers(400, 8)
    values[np.random.default_rng(3).random(values.shape) < holes] = np.nan
    table = pa.table(dict(zip("abcdefgh", values.T, strict=True))).to_pandas()
    with on_cluster(engine):
        found = hsic_pairs(table, permutations=200)
    assert len(tasks) > 0
    with compute_on("local", threads=2):
        expected = hsic_pairs(table, permutations=200)
    for name in ("p_value", "p_adjusted", "p_permutation"):
        ours, theirs = ([getattr(pair, name) for pair in one.pairs] for one in (found, expected))
        assert_close(ours, theirs, scale=1.0, share=SAME_MACHINE)


def test_joint_tests_and_selections_are_the_same(engine, tasks):
    table = pa.table(dict(zip("abcd", numbers(300, 4).T, strict=True)))

    def both():
        joint = hsic_joint(table, ["a", "b", "c"], permutations=100)
        return joint.p_value, hsic_select(table, "d", permutations=100).to_dict()["selected"]

    with on_cluster(engine):
        found = both()
    assert len(tasks) > 0
    with compute_on("local", threads=2):
        expected = both()
    assert found[0] == expected[0]
    assert_alike(found[1], expected[1])


def test_models_are_the_same(engine, tasks):
    X, y = numbers(400, 2), numbers(400, 3)[:, 1]
    a, b = numbers(60, 2).T
    labelled = pa.table({"a": a, "b": b, "t": np.where(a > 0, "yes", "no")})

    def both():
        grid = train_svm(labelled, "t", kernel="linear", grid=True).to_dict()["grid"]
        return grid, KernelRidge(0.1).fit(X, y).predict(np.tile(X, (12, 1)))

    with on_cluster(engine):
        found = both()
    assert len(tasks) > 0
    with compute_on("local", threads=2):
        expected = both()
    assert_alike(found[0], expected[0])
    assert_close(found[1], expected[1], share=SAME_MACHINE)
