"""The plan of a test: told before anything is computed, and right about rows, memory and way."""

import numpy as np
import pandas as pd
import pytest
from same_results import assert_same
from tolerances import assert_close

import kerntest
from kerntest.engines.setting import PlanOnlyError
from kerntest.errors import UndecidedError
from kerntest.inference import planning


def planned(run, **options):
    """Return the plans that a computation announces, and run nothing after the first."""
    heard = []

    def listen(plan):
        heard.append(plan)
        raise PlanOnlyError(plan)

    with pytest.raises(PlanOnlyError), kerntest.compute_on(planned=listen, **options):
        run()
    return heard[0]


@pytest.fixture
def no_rehearsal(monkeypatch):
    """Plan by the sizes alone, in tests that do not look at the seconds."""
    monkeypatch.setattr(planning, "_timed", lambda *_: 1e-3)


def normal(n, p=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def test_a_small_two_sample_test():
    plan = planned(lambda: kerntest.mmd_test(normal(60), normal(50, seed=1), kernel="gaussian"), threads=1)
    assert (plan.schema, plan.command, plan.method, plan.engine) == ("kerntest.plan/1", "mmd", "exact", "local")
    assert (plan.rows, plan.columns, plan.dtype) == (110, 2, "float64")
    assert plan.where == "1 thread of this process"
    assert plan.work == ("5 kernel matrices in tiles, summed over blocks of rows, under 1,000 permutations of these",)
    assert plan.memory_limit is None
    assert plan.memory_bytes > 130 * 10**6
    assert 0 < plan.seconds < 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "cyclic relabellings"),
        ({"resampling": "random"}, "1,000 random permutations"),
        ({"null": "moments"}, "in tiles, for the moments null"),
    ],
)
def test_the_way_of_an_independence_test_is_told(options, said):
    def run():
        kerntest.hsic_test(normal(200), normal(200, 1, seed=1), kernel_x="gaussian", kernel_y="laplacian", **options)

    plan = planned(run)
    assert (plan.command, plan.rows, plan.columns) == ("hsic", 200, 3)
    assert said in plan.work[0]


def test_low_rank_is_told():
    x = normal(5000, 1)
    options = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
    plan = planned(lambda: kerntest.hsic_test(x, normal(5000, 1, seed=1), **options))
    assert "1 + 1 kernel matrix as products of few columns" in plan.work[0]
    plan = planned(lambda: kerntest.hsic_test(normal(3000, 4), normal(3000, 4, seed=1), **options))
    assert "a block of lags at a time" in plan.work[0]


def test_time_and_memory_grow_with_the_rows(monkeypatch):
    # A rehearsal on a clock that counts entries of matrices: nothing here hangs on how busy the machine is.
    rehearsed = []
    monkeypatch.setattr(planning, "_timed", lambda _, rows: rehearsed.append(len(rows)) or 3e-8 * len(rows) ** 2)
    plans = [planned(lambda n=n: kerntest.mmd_test(normal(n, 3), normal(n, 3, 1)), threads=1) for n in (500, 5000)]
    assert rehearsed
    assert plans[1].seconds > 3 * plans[0].seconds
    assert plans[1].memory_bytes > plans[0].memory_bytes


def test_an_explanation_is_counted_step_by_step(monkeypatch):
    monkeypatch.setattr(planning, "_timed", lambda _, rows: 1e-8 * len(rows) ** 2)

    def plans(rows, **options):
        x, y = (
            pd.DataFrame(normal(rows, 3, seed), columns=["a", "b", "c"]).assign(d=np.resize(["u", "v", "w"], rows))
            for seed in (0, 1)
        )
        return [
            planned(lambda explain=explain: kerntest.mmd_test(x, y, explain=explain, **options), threads=1)
            for explain in (False, True)
        ]

    test, explained = plans(1000, kernel="a: gaussian")
    assert explained.work == (*test.work, "tests of 4 columns alone", "tests of all columns without each")
    # On this clock a rehearsal of any part of 1,000 rows takes as long. That of columns alone grows about with the rows.
    linear = 0.01 + 0.0075 * np.diff([n * np.log(n) for n in (1000, 2000)])[0] / (
        1000 * np.log(1000) - 500 * np.log(500)
    )
    assert_close(explained.seconds, 5 * test.seconds + linear)
    test, explained = plans(2500)
    assert explained.work == (
        *test.work,
        "tests of 4 columns alone",
        "tests of all columns without each of the first 2",
    )
    test, explained = plans(4000, kernel="a: gaussian(1)")
    assert explained.work == (*test.work, "tests of 4 columns alone")
    assert explained.memory_bytes > test.memory_bytes


def test_the_explanation_of_a_few_rows_is_rehearsed():
    plan = planned(lambda: kerntest.mmd_test(normal(2), normal(3, seed=1), explain=True))
    assert plan.seconds > 0


def test_the_result_is_the_same_with_and_without_a_plan():
    x, y = normal(220), normal(200, seed=1)
    alone = kerntest.mmd_test(x, y)
    heard = []
    with kerntest.compute_on(planned=heard.append):
        found = kerntest.mmd_test(x, y)
    assert_same(found, alone)
    assert len(heard) == 1


@pytest.mark.usefixtures("no_rehearsal")
def test_what_does_not_fit_is_refused_before_it_is_computed():
    x, y = normal(30_000, 5), normal(30_000, 5, 1)
    with (
        pytest.raises(
            UndecidedError, match=r"exact test of 60,000 rows takes .*, and --memory allows 200 MB"
        ) as caught,
        kerntest.compute_on(memory="200MB"),
    ):
        kerntest.mmd_test(x, y)
    assert "--method features" in caught.value.hint


@pytest.mark.usefixtures("no_rehearsal")
def test_fewer_threads_are_used_where_the_memory_is_short():
    x, y = normal(20_000, 5), normal(20_000, 5, seed=1)
    run = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
    plenty = planned(lambda: kerntest.hsic_test(x, y, **run), threads=16)
    short = planned(lambda: kerntest.hsic_test(x, y, **run), threads=16, memory=plenty.memory_bytes // 2)
    assert plenty.where == "16 threads of this process"
    assert int(short.where.split()[0]) < 16
    assert short.memory_bytes <= plenty.memory_bytes // 2


def test_whole_matrices_keep_to_the_memory():
    x = normal(2500, 3)
    options = {"resampling": "random", "bandwidth": "median", "permutations": 3}
    both = {"kernel_x": "gaussian", "kernel_y": "gaussian"}
    with pytest.raises(UndecidedError, match="--memory allows 200 MB"), kerntest.compute_on(memory="200MB"):
        kerntest.hsic_test(x, normal(2500, 1, 1), **both, **options)
    # Of two samples the matrix is formed tile by tile.
    with kerntest.compute_on(memory="200MB"):
        assert 0 < kerntest.mmd_test(x, normal(2500, 3, 1), kernel="gaussian", **options).p_value <= 1


def test_what_would_be_refused_has_no_plan():
    x = normal(10_000, 3)
    options = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median", "resampling": "random"}
    with pytest.raises(UndecidedError, match="10,000 rows are more than"), kerntest.compute_on(memory="2GB"):
        kerntest.hsic_test(x[:, :2], x[:, 2:], **options)
    with pytest.raises(UndecidedError, match="random permutations of 10 kernels"):
        planned(lambda: kerntest.hsic_test(x[:, :2], x[:, 2:], **{**options, "bandwidth": [0.5, 1, 2, 4, 8]}))


@pytest.mark.usefixtures("no_rehearsal")
@pytest.mark.parametrize(("null", "vectors"), [("moments", 121), ("pearson", 121), ("spectral", 60)])
def test_the_memory_of_a_curve_is_that_of_its_vectors(null, vectors):
    x, y = normal(1500, 3), normal(1500, 3, 1)
    plan = planned(lambda: kerntest.mmd_test(x, y, kernel="laplacian(1)", null=null), threads=2)
    assert plan.memory_bytes > 130e6 + 8 * 3000 * vectors * 9


@pytest.mark.usefixtures("no_rehearsal")
def test_a_family_takes_more_memory_than_one_kernel():
    x, y = normal(1500, 3), normal(1500, 3, 1)
    family, one = (
        planned(lambda kernel=kernel: kerntest.mmd_test(x, y, kernel=kernel), threads=2)
        for kernel in ("auto", "laplacian(1)")
    )
    assert family.memory_bytes > one.memory_bytes
