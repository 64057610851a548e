"""The plan of a computation: told before it begins, and right about rows, memory, way and, roughly, time."""

import functools
import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import kerntest
from kerntest import parse_kernel
from kerntest.engines.engine import ALONE, ONLY_PLAN, allowed_bytes
from kerntest.engines.plan import UNITS
from kerntest.errors import UndecidedError
from kerntest.inference.relabelling.shifts import circle_length, transform_work
from kerntest.inference.work_of_tests import Step
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Gaussian
from kerntest.learning.machines.svm_fit import Pilot, pilot
from kerntest.learning.work_of_fits import CALLS, CALLS_OF_GROUP, FEATURE_POWERS, POWERS, kept_by_machine
from kerntest.matrices.factor import expected_rank, low_rank_factor


class HeardError(Exception):
    """Ends a computation with its plan."""


def stop(plan):
    raise HeardError(plan)


@pytest.fixture
def sizeless(monkeypatch):
    """Without the step that follows every two-sample test, whatever its kernels: what the others take is exact."""
    nothing = Step.sure("sizes", lambda _threads: 0.0, {})
    monkeypatch.setattr("kerntest.inference.comparison.size_work", lambda *_rows: nothing)


@pytest.fixture(autouse=True)
def units(monkeypatch):
    """Every machine is as fast as that where the built-in costs were measured: only the count of units is tested."""
    monkeypatch.setattr("kerntest.engines.plan.costs", lambda: UNITS)


def peak_of(run):
    """The most bytes that a run holds at a time."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


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
    assert plan.work == (
        "5 kernel matrices in tiles, summed over blocks of rows, under 1,000 permutations of these",
        "the size of the difference, or the shift that would have been found",
    )
    assert plan.memory_limit is None
    assert 10**8 < plan.memory_bytes < 13 * 10**7
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
        (lambda: kerntest.mmd_test(normal(1500, 3), normal(1500, 3, 1)), 0.9),
        (lambda: kerntest.mmd_test(normal(1000, 3), normal(1000, 3, 1), explain=True), 0.91),
        (lambda: kerntest.hsic_test(normal(2000, 3), normal(2000, 3, 1)), 0.6),
        (lambda: kerntest.hsic_pairs(pd.DataFrame(normal(1000, 8)).add_prefix("c")), 0.11),
        (lambda: kerntest.hsic_select(pd.DataFrame(normal(1000, 8)).add_prefix("c"), "c0", 2), 0.22),
        (lambda: kerntest.train_svm(rows_of(3000), "side", exclude="wave"), 0.28),
        (lambda: kerntest.train_ridge(rows_of(500), "wave", exclude="side"), 0.5),
        (lambda: kerntest.train_kpca(rows_of(3000)[["a", "b", "c"]]), 0.31),
    ],
)
def test_the_time_is_that_of_the_machine_where_costs_were_measured(monkeypatch, run, seconds):
    # The clock of a machine that is tried.
    monkeypatch.setattr("kerntest.learning.machines.svm.pilot", lambda *_: Pilot(750, 0.007, 10))
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
    assert plan.memory_bytes > 110e6 + 8 * 3000 * vectors * 5


def test_a_fit_beyond_the_memory_is_refused_with_the_way_out():
    with (
        pytest.raises(
            UndecidedError, match=r"kerntest ridge of 5,000 rows takes .*, and memory= allows 300 MB"
        ) as caught,
        kerntest.compute_on(memory="300MB"),
    ):
        kerntest.train_ridge(rows_of(5000), "wave", exclude="side")
    assert caught.value.hint == "features='nystroem:200' fits into it"
    for train, target, n in [(kerntest.train_ridge, "wave", 20_000), (kerntest.train_svm, "side", 20_000)]:
        run = functools.partial(train, rows_of(n), target, exclude=("wave" if target == "side" else "side"))
        with kerntest.compute_on(memory="250MB"):
            with pytest.raises(UndecidedError) as caught:
                run(features="nystroem:400")
            found = re.fullmatch(r"features='(nystroem:\d+)' fits into it", caught.value.hint)
            # What is named is accepted.
            assert run(features=found[1]).features == found[1]


def test_machines_leave_room_for_blocks_beside_the_rows_that_they_keep():
    with kerntest.compute_on(memory="300MB"):
        whole = allowed_bytes(10**9)
        for beside in (1, 2):
            assert 0 < kept_by_machine(beside) < 0.9 * whole / beside - 8 * 2**19


def test_what_features_of_ridge_regression_take_is_in_its_plan():
    """Of few features, what is left out of the rows for each lambda is larger than these."""
    table = rows_of(20_000)
    for features in ("nystroem:5", "nystroem:40"):
        run = functools.partial(kerntest.train_ridge, table, "wave", exclude="side", features=features)
        with kerntest.compute_on(threads=1):
            peak = peak_of(run)
        assert peak < planned(run, threads=1).memory_bytes - 110e6


def test_memory_is_measured_where_the_process_is_there_for_one_command(monkeypatch):
    monkeypatch.setattr("kerntest.engines.engine._resident_bytes", lambda: 10**10)
    monkeypatch.setattr("kerntest.engines.engine._free_bytes", lambda: 0)

    def run():
        return kerntest.mmd_test(normal(300), normal(300, seed=1), kernel="gaussian(1)", threads=2)

    reckoned, token = planned(run), ALONE.set(True)
    try:
        assert reckoned.memory_bytes < 2e8
        assert 1e10 < planned(run).memory_bytes < 1.01e10
        with pytest.raises(UndecidedError, match=r"takes 10 GB, and memory= allows 9 GB"):
            planned(run, memory="9GB")
        # What is free for the next arrays is taken by nobody.
        monkeypatch.setattr("kerntest.engines.engine._free_bytes", lambda: 4 * 10**9)
        assert 6e9 < planned(run, memory="9GB").memory_bytes < 6.1e9
        # What a dry run accepts, a run does that takes a little more than that by then.
        limit = f"{planned(run).memory_bytes}"
        only = ONLY_PLAN.set(True)
        with pytest.raises(UndecidedError):
            planned(run, memory=limit)
        ONLY_PLAN.reset(only)
        planned(run, memory=limit)
    finally:
        ALONE.reset(token)


@pytest.mark.usefixtures("sizeless")
def test_rows_that_belong_together_take_more():
    x, y = (table(900, 3, unit=np.arange(900) // 4 + 1000 * side) for side in (0, 1))
    plain, clusters = (
        planned(functools.partial(kerntest.mmd_test, x, y, cluster=cluster, columns="c*"), threads=1)
        for cluster in (None, "unit")
    )
    assert clusters.seconds > 1.5 * plain.seconds
    # Sums of every row over its unit in each of 200 blocks, two arrays of them; so few rows have no factors.
    assert 8 * 1800 * 200 < clusters.memory_bytes - plain.memory_bytes <= 16 * 1800 * 200


def test_clusters_of_several_sizes_take_tiles_alone():
    def run(rows):
        sizes = np.random.default_rng(0).integers(1, 12, rows)
        data = table(rows, 2, who=np.repeat(np.arange(rows), sizes)[:rows])
        return lambda: kerntest.hsic_test(data, x_columns="c0", y_columns="c1", cluster="who")

    few, more = (planned(run(rows), threads=1) for rows in (2000, 20_000))
    assert "in tiles, under 1,000 cyclic shifts of clusters" in more.work[0]
    assert more.memory_bytes < 6e8
    assert more.seconds > 20 * few.seconds


def test_few_clusters_take_the_products_of_entries_between_them(counted):
    def run(clusters):
        data = table(3000, 2, who=np.arange(3000) % clusters)
        options = {
            "x_columns": "c0",
            "y_columns": "c1",
            "cluster": "who",
            "kernel_x": "gaussian",
            "kernel_y": "gaussian",
        }
        return lambda: kerntest.hsic_test(data, **options)

    few, more = (certain(counted("product", run(clusters))) for clusters in (10, 20))
    pairs = (more - few) / (300.0 * 3000**2 / 2)
    # Of several bandwidths each.
    assert pairs == pytest.approx(round(pairs))
    assert pairs > 1
    # Shifts of all rows are not among it.
    assert certain(counted("fft", run(10))) == 0.0


@pytest.mark.usefixtures("sizeless")
def test_a_factor_that_is_tried_takes_its_first_columns_and_the_matrix_of_a_sample():
    def run(rows):
        return lambda: kerntest.mmd_test(normal(rows, 5), normal(rows, 5, 1), kernel="laplacian(1)")

    few, more = (planned(run(rows), threads=1).memory_bytes for rows in (1000, 1001))
    # Of up to 2,000 rows the whole matrix is looked at.
    tried = 20 * 2002 * 32 + 24 * 600**2
    assert tried < more - few < 1.2 * tried


# Counts, one unit at a time


@pytest.fixture
def counted(monkeypatch):
    """Return the number of units of one kind that a run takes, least and most: nothing else takes any time."""

    def of(unit, run, **options):
        monkeypatch.setattr("kerntest.engines.plan.costs", lambda: dict.fromkeys(UNITS, 0.0) | {unit: 1.0})
        return planned(run, threads=1, **options).seconds_range

    return of


def table(n, columns, **more):
    return pd.DataFrame(normal(n, columns)).add_prefix("c").assign(**more)


def certain(found):
    assert found[0] == found[1]
    return found[0]


@pytest.mark.usefixtures("sizeless")
def test_a_two_sample_test_takes_every_value_once_and_its_blocks_under_each_permutation(counted):
    def run(**options):
        return lambda: kerntest.mmd_test(normal(300, 3), normal(200, 3, 1), **{"kernel": "gaussian(1)"} | options)

    assert certain(counted("exp", run())) == 500**2 / 2
    assert certain(counted("product", run(permutations=500))) == pytest.approx(5 * 500**2 / 2 + 500 * 200**2)
    by_rows = certain(counted("exp", run(resampling="random", permutations=1000)))
    assert by_rows == 4 * 500**2 / 2
    assert certain(counted("exp", run(null="gamma"))) == 5 * 500**2 / 2
    moments, spectral = (certain(counted("product", run(null=null))) for null in ("moments", "spectral"))
    # An exact trace multiplies the matrix with as many vectors as rows, twice.
    assert moments - spectral == pytest.approx(2 * 500 * 500**2 / 2)
    assert certain(counted("product", run(null="pearson"))) > moments


def test_an_independence_test_takes_a_transform_of_every_line_for_each_order(counted):
    def run(**options):
        kernels = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"}
        return lambda: kerntest.hsic_test(normal(200, 3), normal(200, 3, 1), **kernels | options)

    # A thousand shifts are five orders of 200 rows, of the second side alone.
    each = transform_work(200)
    assert certain(counted("fft", run())) == pytest.approx(each * (1 + 5) * 200**2 / 2)
    assert certain(counted("fft", run(permutations=200))) == pytest.approx(each * (1 + 1) * 200**2 / 2)
    assert certain(counted("exp", run())) == (1 + 5) * 200**2 / 2
    assert certain(counted("gather", run(resampling="random"))) == pytest.approx(1.3 * 1000 * 200**2)
    # And of every kernel of it.
    several = counted("fft", run(kernel_y="gaussian", bandwidth=[0.5, 1.5]))
    assert certain(several) == pytest.approx(each * (1 + 5 * 2) * 200**2 / 2)
    low, high = counted("product", run(statistic="coco"))
    assert 2 * low < high < 5 * low
    # Both sides are decomposed once for kcc; for kmi the products of every relabelling too, whose ranks a sample tells.
    ones, every = (counted("spectrum", run(statistic=name))[0] for name in ("kcc", "kmi"))
    assert ones <= 2 * 200**3
    assert every > 100 * ones


def test_transforms_of_large_prime_factors_take_longer():
    assert transform_work(4000) == pytest.approx(1.1, abs=0.01)
    # 27,170 = 2 * 5 * 11 * 13 * 19; 10 * 2^12 is longer.
    assert transform_work(27_170) > 1.7 * transform_work(40_960)
    # 17,520 = 240 * 73 and 17,519, which is prime, took 2.2 and 8.2 times as long as 17,496 = 2^3 * 3^7.
    assert transform_work(17_520) == pytest.approx(2.3 * transform_work(17_496), rel=0.1)
    assert transform_work(17_519) > 7 * transform_work(17_496)


def test_series_are_shifted_on_a_circle_of_all_of_their_rows(counted):
    """Others leave rows aside until a transform is fast, here three of 1,004 = 4 * 251."""
    assert circle_length(1004) == 1001
    kernels = {"kernel_x": "gaussian(1)", "kernel_y": "gaussian(1)"}
    taken = counted("fft", lambda: kerntest.hsic_test(normal(1004, 3), normal(1004, 3, 1), time_series=True, **kernels))
    assert certain(taken) == pytest.approx(transform_work(1004) * 2 * 1004**2 / 2)


def test_pairs_on_single_columns_are_correlations_of_factors(counted):
    def run(columns):
        x, y = (normal(2500, columns, seed) for seed in (0, 1))
        return lambda: kerntest.hsic_test(x, y, kernel_x="gaussian(1)", kernel_y="gaussian(1)")

    # Ten to forty columns a side, and no line of a matrix.
    assert max(counted("exp", run(1))) < 2500**2 / 4 < 2500**2 / 2 < min(counted("exp", run(6)))


def test_canonical_pairs_are_counted_by_their_landmarks_directions_penalties_and_folds(counted):
    def run(**options):
        return lambda: kerntest.train_cca(table(200, 4), y_columns="c0", **options)

    # Eleven penalties in five folds, of each two decompositions, and all rows.
    assert certain(counted("spectrum", run())) == (2.5 + 2 * 5 + 0.5 * 56) * 200**3
    assert certain(counted("spectrum", run(lambda_=0.1, cv=3))) == (2.5 + 2 * 3 + 0.5 * 4) * 200**3
    assert certain(counted("spectrum", run(features="nystroem:50", lambda_=0.1))) == (2.5 + 2 * 5 + 0.5 * 6) * 50**3
    assert certain(counted("spectrum", run(kernel="linear", lambda_=0.1))) == (2 + 2 * 5 + 0.5 * 6) * 3**3


def test_screens_are_counted_by_their_pairs_steps_and_groups(counted):
    # Text of six levels, whose matrices have six columns as factors.
    text = pd.DataFrame(np.random.default_rng(0).integers(0, 6, (300, 8))).add_prefix("c").astype(str) + "x"
    few, many = (
        certain(counted("call", lambda count=count: kerntest.hsic_pairs(text.iloc[:, :count]))) for count in (4, 8)
    )
    # Of each pair, and of each column of each factor.
    assert (many - few) == pytest.approx((28 - 6) * 1500 + 4 * (150 + 10) * 6)
    with_gaps = table(300, 4)
    with_gaps.iloc[0, 0] = np.nan
    alone = certain(counted("fft", lambda: kerntest.hsic_pairs(with_gaps)))
    together = certain(counted("fft", lambda: kerntest.hsic_pairs(table(300, 4))))
    # Four orders of 300 rows of the three columns that come second in a pair, and one of the three that come first.
    each = transform_work(300)
    assert together == pytest.approx(each * ((3 + 3 * 4) * 300**2 / 2 + 6 * 2 * 4 * 300))
    # The three pairs with the column that has a gap are of the same rows; the others have two columns on a side.
    of_gap = transform_work(circle_length(299)) * ((1 + 3 * 4) * 299**2 / 2 + 3 * 2 * 4 * 299)
    assert alone == pytest.approx(of_gap + each * ((2 + 2 * 4) * 300**2 / 2 + 3 * 2 * 4 * 300))
    # Of many rows of few different values no lines are made.
    levels = pd.DataFrame(np.random.default_rng(0).integers(0, 5, (20_000, 4))).add_prefix("c")
    assert certain(counted("fft", lambda: kerntest.hsic_pairs(levels))) < 300 * 20_000 * transform_work(20_000)
    one, two = (certain(counted("call", lambda k=k: kerntest.hsic_select(table(300, 5), "c0", k))) for k in (1, 2))
    assert (one, two) == (300 * 4, pytest.approx(300 * 4 + 3 * (300 + 150 * 60)))


def test_a_joint_test_takes_and_holds_the_different_rows_of_each_group(counted):
    def run(data, groups="c0,c1,c2", permutations=1000):
        return functools.partial(kerntest.hsic_joint, data, groups, permutations=permutations)

    # So few rows are one strip.
    groups = [certain(counted("gather", run(table(99, 4), names))) for names in ("c0,c1,c2", "c*")]
    assert groups == [pytest.approx(1.4 * others * 1000 * 99**2) for others in (2, 3)]
    codes = np.random.default_rng(0).integers(0, 5, (2000, 3))
    several, few = table(2000, 3), pd.DataFrame(codes.astype(float)).add_prefix("c")
    many, moved = (certain(counted("gather", run(data))) for data in (several, few))
    area = 1000 * 2000 * (2000 + 64) / 2
    # Every two groups are tested beside it, once.
    assert many == pytest.approx(2 * 1.4 * area, rel=1e-3)
    assert moved == pytest.approx(2 * (0.4 * 5 / 64 + 5 / 2000) * area, rel=1e-2)
    # What two matrices of all rows take; relabellings are held beside them.
    held, less, short = (
        planned(run(data, permutations=count), threads=1).memory_bytes
        for data, count in ((several, 1000), (few, 1000), (few, 10))
    )
    assert held - less == pytest.approx(8 * 2 * (2000**2 - 25), abs=2)
    assert less - short == pytest.approx(4 * 990 * 2 * 2000, abs=2)


def machine(n, **options):
    return lambda: kerntest.train_svm(rows_of(n), "side", **{"exclude": "wave"} | options)


def test_machines_of_a_part_of_the_rows_tell_what_one_of_all_takes(counted, monkeypatch):
    numbers, seen = normal(2400, 10), []

    def run(**options):
        rows = (
            pd.DataFrame(numbers).add_prefix("c").assign(side=np.where(numbers[:, 0] > numbers[:, 1] ** 2, "in", "out"))
        )
        return lambda: kerntest.train_svm(rows, "side", **options)

    def heard(rows, options):
        seen.append(pilot(rows, options))
        return seen[-1]

    monkeypatch.setattr("kerntest.learning.machines.svm.pilot", heard)
    low, high = counted("second", run())
    assert 0.0 < low < high < 5 * low
    assert counted("second", run(features="fourier:20"))[0] > 0.0
    assert [one.rows for one in seen] == [600, 600]
    monkeypatch.setattr("kerntest.learning.machines.svm.pilot", lambda *_: Pilot(600, 1.0, 100))
    assert counted("second", run()) == pytest.approx([4**power for power in POWERS])
    assert counted("second", run(features="fourier:20")) == pytest.approx([4**power for power in FEATURE_POWERS])
    # One machine is found on one thread.
    assert planned(run(), threads=2).seconds_range == pytest.approx(counted("second", run()))
    # Systems of a search have as many free rows as those of a part, at most.
    assert counted("product", run(grid=True))[1] > 20 * 0.1 * 100 / 600 * 2400**3
    folds = counted("second", run(cv=5))
    assert folds == pytest.approx([4**power * (1 + 5 * 0.8**power) for power in POWERS])


def test_a_machine_takes_from_a_few_to_many_values_for_each_pair_of_rows(counted):
    low, high = counted("exp", machine(900))
    assert (low, high) == pytest.approx(((1 + 1.1) * 900**2, (8 + 2) * 900**2))
    searched = [counted("exp", machine(900, **options))[0] for options in ({}, {"cv": 5}, {"grid": True})]
    assert searched[0] < searched[1] < searched[2] / 3
    # A grid may go on beyond its edges: within them it would be four times as much at most.
    least, most = counted("exp", machine(900, grid=True))
    assert most > 5 * least
    plan = planned(machine(900), threads=1)
    assert plan.seconds == pytest.approx((plan.seconds_range[0] * plan.seconds_range[1]) ** 0.5)
    assert plan.memory_range[0] < plan.memory_range[1] == plan.memory_bytes


def test_machines_of_many_classes_are_counted_by_their_pairs(counted):
    classes = [table(200, 3, label=[f"k{one % count}" for one in range(200)]) for count in (2, 20)]
    two, many = (counted("call", lambda one=one: kerntest.train_svm(one, "label")) for one in classes)
    # 190 pairs of 20 rows are solved together, one of 200 alone.
    assert [b - a for a, b in zip(two, many, strict=True)] == [190 * 200 - alone for alone in CALLS]


def test_a_ridge_regression_takes_a_spectrum_for_each_bandwidth(counted):
    def run(n, **options):
        return lambda: kerntest.train_ridge(rows_of(n), "wave", exclude="side", **options)

    assert certain(counted("spectrum", run(400, bandwidth="median"))) == pytest.approx((0.35 + 0.25) * 400**3)
    assert certain(counted("spectrum", run(400))) == pytest.approx(10 * (0.35 + 0.25) * 400**3)
    assert certain(counted("spectrum", run(400, features="nystroem:50"))) == 0.0
    # A fold of five takes a fifth of a fifth of the matrix, for each lambda.
    one, folds = (certain(counted("product", run(400, bandwidth="median", **some))) for some in ({}, {"cv": 5}))
    assert folds - one == pytest.approx(20 * 5 * 80**2 * (400 + 80 / 3) / 2)
    # Rows that are alone in their cluster are judged all at once.
    shops = table(400, 2, shop=np.repeat(np.arange(395), [6, *[1] * 394]).astype(str))
    alone, calls = (
        certain(counted("call", lambda of=of: kerntest.train_ridge(shops, "c0", bandwidth="median", **of)))
        for of in ({"exclude": "shop"}, {"cluster": "shop"})
    )
    assert calls - alone == pytest.approx(20 * CALLS_OF_GROUP)
    # One column has a factor of few columns, and no spectrum of all rows.
    thin = certain(
        counted("spectrum", lambda: kerntest.train_ridge(rows_of(1500)[["a", "wave"]], "wave", bandwidth="median"))
    )
    assert thin == 0.0


def test_a_ridge_regression_that_does_not_hold_its_features_takes_some_steps(counted, monkeypatch):
    def run():
        return kerntest.train_ridge(rows_of(900), "wave", exclude="side", features="nystroem:40")

    assert certain(counted("exp", run)) == 10 * 40 * 900
    monkeypatch.setattr("kerntest.learning.machines.ridge_fit.DIRECT_VALUES", 40 * 900 - 1)
    # On 900 rows lambda and the bandwidth are chosen, by ten matrices; then features are made in each step.
    assert counted("exp", run) == pytest.approx((10 * 900**2 + 4 * 40 * 900, 10 * 900**2 + 6 * 40 * 900))


def test_components_take_all_values_once_where_they_are_kept_and_for_each_pass_where_not(counted):
    run = functools.partial(kerntest.train_kpca, table(2000, 3))
    assert certain(counted("exp", run)) == (1 + 0.5) * 2000**2
    least, most = counted("product", run)
    assert least < most
    dense = certain(counted("spectrum", functools.partial(kerntest.train_kpca, table(300, 3), solver="dense")))
    assert dense == 300**3


def test_a_ridge_regression_without_room_is_refused_before_anything_is_counted():
    with pytest.raises(UndecidedError, match="kernel matrix of 30,000 rows take several matrices"):
        planned(lambda: kerntest.train_ridge(table(30_000, 3), "c0", features="none"))


def test_what_nobody_asks_for_is_not_counted(monkeypatch):
    # Where it is defined last: a module that is imported meanwhile would keep what stands for it.
    counting = ["inference.sizes.work_of_sizes", "inference.work_of_tests", "learning.work_of_fits", "kernels.counting"]
    for module in ("inference.features.work_of_features", "inference.screens.work_of_screens", *counting):
        monkeypatch.setattr(f"kerntest.{module}.work_of_values", pytest.fail)
    kerntest.mmd_test(normal(60), normal(50, seed=1), permutations=20)
    machine(100)()


def test_a_plan_is_later_by_what_went_before():
    plan = planned(machine(900), threads=1)
    later = plan.later(3.0)
    assert later.seconds_range == tuple(one + 3.0 for one in plan.seconds_range)
    assert later.seconds == pytest.approx((later.seconds_range[0] * later.seconds_range[1]) ** 0.5)
    assert (later.work, later.memory_range) == (plan.work, plan.memory_range)


@pytest.mark.parametrize(("rows", "known"), [(2500, True), (2000, False)])
def test_a_rank_is_expected_of_many_rows_alone(rows, known):
    one = Points.of(normal(rows, 1))
    few, many = expected_rank(Gaussian(2.0), one, 1e-12)
    assert (few == many < 60) is known
    assert np.isinf(expected_rank(Gaussian(0.05), Points.of(normal(rows, 4)), 1e-12)[0])
    total = expected_rank(parse_kernel("gaussian(2) + gaussian(2)"), one, 1e-12)[1]
    assert total == (2 * many if known else np.inf)


def test_a_sum_of_more_columns_than_a_third_of_the_rows_has_no_factor():
    kernel = parse_kernel("gaussian(2) + gaussian(1) + gaussian(0.5)")
    assert low_rank_factor(kernel, Points.of(normal(2500, 1))).rank < 2500 / 3
    assert low_rank_factor(kernel, Points.of(normal(250, 1))) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_canonical_pairs_hold_no_more_than_planned_however_few_features_a_side_has(threads):
    """A yes or no has one feature, made of the kernel values of all landmarks."""
    x = normal(12_000)
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "yes": np.where(x[:, 0] > x[:, 1], "yes", "no")})
    given = functools.partial(kerntest.train_cca, table, y_columns="yes", components=1, threads=threads)
    plan, small = planned(given), planned(lambda: kerntest.train_cca(table[:100], y_columns="yes", lambda_=0.1))
    peak = peak_of(given)
    # That of few rows is what the program itself takes.
    assert peak < plan.memory_bytes - small.memory_range[0]
    assert plan.memory_range[0] < plan.memory_range[1]


@pytest.mark.parametrize("target", ["c0", None])
def test_a_screen_holds_the_factors_of_a_few_columns_at_a_time_as_planned(monkeypatch, target):
    for module in ("many_pairs", "work_of_screens"):
        monkeypatch.setattr(f"kerntest.inference.screens.{module}.HELD_NUMBERS", 2**16)
    data, columns = normal(6000, 30), 30 if target else 8
    table = pd.DataFrame(data[:, :columns], columns=[f"c{place}" for place in range(columns)])
    given = functools.partial(kerntest.hsic_pairs, table, target=target, threads=1)
    plan, small = planned(given), planned(lambda: kerntest.hsic_pairs(table[:50], target=target))
    peak = peak_of(given)
    more = plan.memory_bytes - small.memory_bytes
    assert 0.5 * more < peak < 1.1 * more
    # Of some 30 columns each.
    assert peak < 8 * 6000 * (30 * 10 + 10 * columns)


def test_a_two_sample_test_by_features_counts_what_follows_its_sums():
    def run(permutations, **options):
        tables = (normal(600, seed=seed) for seed in (0, 1))
        return kerntest.mmd_test(*tables, method="features", permutations=permutations, kernel="gaussian", **options)

    plans = [planned(lambda count=count: run(count), threads=1) for count in (100, 100_100)]
    few, many = (plan.seconds_range for plan in plans)
    # So many times the labels of as many blocks as there are rows are drawn, for each of some kernels.
    assert many[0] - few[0] > 1e5 * 1200 * 4 * 60 * UNITS["entry"]
    # The shift that would have been found is looked for, or is not.
    assert few[1] - few[0] > 0.05


def test_a_two_sample_test_by_features_counts_each_column_of_categories():
    def plan(categories):
        tables = [
            pd.DataFrame(normal(5000, seed=seed)).assign(
                **{f"k{place}": list("abcd" * 1250) for place in range(categories)}
            )
            for seed in (0, 1)
        ]
        return planned(lambda: kerntest.mmd_test(*tables, method="features", kernel="gaussian(1)"), threads=1)

    one, five = (plan(count).seconds_range[0] for count in (1, 5))
    assert five - one > 10_000 * 300 * 4 * 10 * UNITS["entry"]


def test_measures_by_singular_values_of_few_rows_count_the_columns_that_matrices_have():
    data = normal(1000)
    for statistic, most in (("kcc", 0.5), ("kmi", 0.5), ("coco", 0.5)):
        plan = planned(
            lambda statistic=statistic: kerntest.hsic_test(
                data, x_columns="x1", y_columns="x2", statistic=statistic, kernel_x="gaussian", kernel_y="gaussian"
            ),
            threads=1,
        )
        # As matrices of full rank it was said to take two seconds.
        assert plan.seconds_range[1] < most


def test_an_explanation_of_few_rows_counts_the_terms_of_its_kernels():
    def seconds(columns):
        tables = (normal(15, columns, seed=seed) for seed in (0, 1))
        run = functools.partial(kerntest.mmd_test, *tables, explain=True)
        return planned(run, threads=1).seconds_range[0]

    # Each of so many tests has kernels that are sums over as many columns.
    assert seconds(60) > 7 * seconds(15)


def test_an_explanation_counts_the_different_values_of_each_column():
    answers = [np.round(2 * normal(600, 8, seed)) for seed in (0, 1)]
    few, many = (
        planned(lambda tables=tables: kerntest.mmd_test(*tables, explain=True), threads=1).seconds
        - planned(lambda tables=tables: kerntest.mmd_test(*tables), threads=1).seconds
        for tables in (answers, [normal(600, 8, seed) for seed in (0, 1)])
    )
    assert many - few > 8 * 3 * 400 * 500 * 900 * UNITS["product"]


def test_intervals_of_predictions_take_more_than_products_of_square_matrices(tmp_path):
    X = normal(400, 3)
    frame = pd.DataFrame(X, columns=[*"abc"]).assign(y=X[:, 0])
    frame.to_csv(tmp_path / "x.csv", index=False)
    kerntest.train_ridge(tmp_path / "x.csv", target="y", bandwidth="median", output=tmp_path / "m.kt")
    plain, wide = (
        planned(lambda interval=interval: kerntest.predict_file(tmp_path / "m.kt", tmp_path / "x.csv", output=tmp_path / "o.csv", interval=interval), threads=1)
        for interval in (None, 0.9)
    )  # fmt: skip
    assert wide.seconds - plain.seconds > 1.25 * 400 * 320**2 * UNITS["product"]


def test_sets_of_rows_that_are_under_way_together_may_be_at_their_largest_together_or_not():
    values = np.random.default_rng(0).normal(size=(20_000, 5))
    for column in range(5):
        values[100 * column : 100 * column + 50, column] = np.nan
    gaps = planned(lambda: kerntest.hsic_pairs(pd.DataFrame(values, columns=list("abcde"))), threads=2)
    whole = planned(lambda: kerntest.hsic_pairs(pd.DataFrame(np.nan_to_num(values), columns=list("abcde"))), threads=2)
    assert whole.memory_range[1] - whole.memory_range[0] < 0.5 * (gaps.memory_range[1] - gaps.memory_range[0])
