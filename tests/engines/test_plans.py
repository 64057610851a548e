"""The plan of a computation: told before it begins, and right about rows, memory, way and, roughly, time."""

import functools

import numpy as np
import pandas as pd
import pytest

import kerntest
from kerntest.engines.plan import UNITS
from kerntest.errors import UndecidedError


class HeardError(Exception):
    """Ends a computation with its plan."""


def stop(plan):
    raise HeardError(plan)


@pytest.fixture(autouse=True)
def units(monkeypatch):
    """Every machine is as fast as that where the built-in costs were measured: only the count of units is tested."""
    monkeypatch.setattr("kerntest.engines.plan.costs", lambda: UNITS)


def planned(run, **options):
    """Return the plan that a computation announces, and run nothing after it."""
    with pytest.raises(HeardError) as caught, kerntest.compute_on(planned=stop, **options):
        run()
    return caught.value.args[0]


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
    ("rows", "p", "options", "said"),
    [
        (200, 2, {"kernel_y": "laplacian"}, "cyclic relabellings"),
        (200, 2, {"resampling": "random"}, "1,000 random permutations"),
        (200, 2, {"null": "moments"}, "in tiles, for the moments null"),
        (5000, 1, {"bandwidth": "median"}, "1 + 1 kernel matrix as products of few columns"),
        (3000, 4, {"bandwidth": "median"}, "a block of lags at a time"),
    ],
)
def test_the_way_of_an_independence_test_is_told(rows, p, options, said):
    options = {"kernel_x": "gaussian", "kernel_y": "gaussian", **options}
    plan = planned(lambda: kerntest.hsic_test(normal(rows, p), normal(rows, p, seed=1), **options))
    assert (plan.command, plan.rows, plan.columns) == ("hsic", rows, 2 * p)
    assert said in plan.work[0]


def test_plans_are_told_from_so_many_rows_on_and_inside_only():
    heard = []
    for rows in (110, 111):
        with kerntest.compute_on(planned=heard.append, planned_from=rows):
            kerntest.mmd_test(normal(60), normal(50, seed=1), permutations=20)
    kerntest.mmd_test(normal(60), normal(50, seed=1), permutations=20)
    assert len(heard) == 1


def test_threads_of_a_function_keep_the_memory_of_the_choice():
    with pytest.raises(UndecidedError, match="memory= allows 200 MB"), kerntest.compute_on(memory="200MB", threads=4):
        kerntest.mmd_test(normal(30_000, 5), normal(30_000, 5, 1), threads=2)


def rows_of(n, seed=0):
    x = normal(n, 3, seed)
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(
        side=np.where(x[:, 0] > 0, "left", "right"), wave=np.sin(2 * x[:, 0]) + 0.3 * normal(n, 1, 2)[:, 0]
    )


@pytest.mark.parametrize(
    ("run", "seconds"),
    [
        (lambda: kerntest.mmd_test(normal(1500, 3), normal(1500, 3, 1)), 0.26),
        (lambda: kerntest.mmd_test(normal(1000, 3), normal(1000, 3, 1), explain=True), 0.59),
        (lambda: kerntest.hsic_test(normal(2000, 3), normal(2000, 3, 1)), 0.6),
        (lambda: kerntest.hsic_pairs(pd.DataFrame(normal(1000, 8)).add_prefix("c")), 0.11),
        (lambda: kerntest.hsic_select(pd.DataFrame(normal(1000, 8)).add_prefix("c"), "c0", 2), 0.22),
        (lambda: kerntest.train_svm(rows_of(3000), "side", exclude="wave"), 0.36),
        (lambda: kerntest.train_ridge(rows_of(500), "wave", exclude="side"), 0.5),
        (lambda: kerntest.train_kpca(rows_of(3000)[["a", "b", "c"]]), 0.31),
    ],
)
def test_the_time_is_that_of_the_machine_where_costs_were_measured(run, seconds):
    assert planned(run, threads=1).seconds == pytest.approx(seconds, rel=0.35)


def test_an_explanation_is_counted_step_by_step():
    def plans(rows, **options):
        x, y = (rows_of(rows, seed)[["a", "b", "c", "side"]] for seed in (0, 1))
        return [
            planned(functools.partial(kerntest.mmd_test, x, y, explain=way, **options), threads=1)
            for way in (False, True)
        ]

    for rows, options, left_out in ((1000, {"kernel": "a: gaussian"}, ""), (2500, {}, " of the first 2")):
        test, explained = plans(rows, **options)
        without = f"tests of all columns without each{left_out}"
        assert explained.work == (*test.work, "tests of 4 columns alone", without)
        assert explained.seconds > (0 if left_out else 2) * test.seconds
    test, explained = plans(4000, kernel="a: gaussian(1)")
    assert explained.work == (*test.work, "tests of 4 columns alone")
    assert explained.memory_bytes >= test.memory_bytes


def test_fewer_threads_are_used_where_the_memory_is_short():
    x, y = normal(20_000, 5), normal(20_000, 5, seed=1)
    run = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
    plenty = planned(lambda: kerntest.hsic_test(x, y, **run), threads=16)
    short = planned(lambda: kerntest.hsic_test(x, y, **run), threads=16, memory=plenty.memory_bytes // 2)
    assert plenty.where == "16 threads of this process"
    assert int(short.where.split()[0]) < 16
    assert short.memory_bytes <= plenty.memory_bytes // 2


def test_what_would_be_refused_has_no_plan():
    x = normal(10_000, 3)
    options = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median", "resampling": "random"}
    with pytest.raises(UndecidedError, match="10,000 rows are more than"), kerntest.compute_on(memory="2GB"):
        kerntest.hsic_test(x[:, :2], x[:, 2:], **options)
    with pytest.raises(UndecidedError, match="random permutations of 10 kernels"):
        planned(lambda: kerntest.hsic_test(x[:, :2], x[:, 2:], **{**options, "bandwidth": [0.5, 1, 2, 4, 8]}))


@pytest.mark.parametrize(("null", "vectors"), [("moments", 121), ("pearson", 121), ("spectral", 60)])
def test_the_memory_of_a_curve_is_that_of_its_vectors(null, vectors):
    x, y = normal(1500, 3), normal(1500, 3, 1)
    plan = planned(lambda: kerntest.mmd_test(x, y, kernel="laplacian(1)", null=null), threads=2)
    assert plan.memory_bytes > 130e6 + 8 * 3000 * vectors * 9


def test_a_fit_beyond_the_memory_is_refused_with_the_way_out():
    with (
        pytest.raises(
            UndecidedError, match=r"kerntest ridge of 5,000 rows takes .*, and memory= allows 300 MB"
        ) as caught,
        kerntest.compute_on(memory="300MB"),
    ):
        kerntest.train_ridge(rows_of(5000), "wave", exclude="side")
    assert "features='nystroem:500'" in caught.value.hint
