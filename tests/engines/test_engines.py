"""What every engine does: results in order, errors as they are, and the same tests and models as on one thread."""

import functools
import os
import subprocess
import sys
import threading
import time
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import two_samples
import two_variables
from pyarrow import parquet
from records import assert_alike
from threadpoolctl import threadpool_info
from tolerances import STATISTIC

import kerntest
from kerntest.engines.engine import in_pieces
from kerntest.errors import DataError, MissingExtraError, UndecidedError, UsageError

ENGINES = ["one thread", "three threads", "gpu", "dask"]
AWAY = ["three threads", "gpu", "dask"]


@pytest.fixture(params=ENGINES)
def engine(request, on):
    with on(request.param) as opened:
        yield opened


def test_it_says_what_it_is(on):
    for name in ENGINES:
        with on(name) as engine:
            assert engine.name == (name if name in AWAY[1:] else "local")
            assert engine.threads == {"one thread": 1, "dask": 2}.get(name, 3)
            assert (engine.dtype, engine.memory, engine.here.name) == ("float64", None, "local")
            assert (engine.device is not None) == (name == "gpu")


@pytest.mark.parametrize("count", [0, 1, 2, 7, 200])
def test_results_come_in_the_order_of_the_items(engine, count):
    def work(item):
        time.sleep(0.005 * (item % 7 == 0))
        return item * item

    assert list(engine.map(work, range(count))) == [item * item for item in range(count)]


def test_items_may_come_one_by_one_and_progress_is_told_on_the_calling_thread(engine):
    drawn, calls = [], []

    def items():
        for item in range(40):
            drawn.append(item)
            yield item

    results = engine.map(
        lambda item: -item, items(), lambda *done: calls.append((*done, threading.get_ident())), total=40
    )
    assert next(results) == 0
    assert len(drawn) < 20
    assert list(results) == [-item for item in range(1, 40)]
    assert calls == [(done, 40, threading.get_ident()) for done in range(1, 41)]


def test_what_goes_and_comes_is_as_it_was(engine):
    large = np.arange(3e5)
    items = [(len, [1, 2]), {"a": large}, [large[::2], "text"]]
    found = list(engine.map(lambda item: (type(item).__name__, item), items))
    assert [name for name, _ in found] == ["tuple", "dict", "list"]
    assert found[0][1] == (len, [1, 2])
    np.testing.assert_array_equal(found[2][1][0], large[::2])
    for result in engine.map(lambda item: {"sums": np.full(20_000, float(item))}, range(3)):
        result["sums"] += 1


def test_errors_of_the_work_come_back_as_themselves(engine):
    def work(item):
        if item == 3:
            raise DataError("no number in row 3", hint="look at it", code="data.number", where={"line": 3})
        return 1 // (item - 5)

    with pytest.raises(DataError, match=r"^no number in row 3$") as caught:
        list(engine.map(work, range(50)))
    assert (caught.value.hint, caught.value.code, caught.value.where) == ("look at it", "data.number", {"line": 3})
    with pytest.raises(ZeroDivisionError):
        list(engine.map(work, range(4, 50)))
    assert list(engine.map(abs, [-1, 2])) == [1, 2]


def test_work_sees_how_its_caller_treats_overflow(engine):
    huge = np.full(3, 1e300)
    with np.errstate(over="ignore"):
        assert all(np.isinf(one).all() for one in engine.map(lambda _: huge * huge, range(4)))
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        list(engine.map(lambda _: huge * huge, range(4)))


def test_blas_runs_on_one_thread_meanwhile_and_is_restored(engine):
    # In here it is sent as it is: elsewhere the folder `tests` may be another.
    def blas_threads(_=None):
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = blas_threads()
    assert before, f"numpy {np.__version__} has no BLAS that threadpoolctl knows"
    assert all(set(one) == {1} for one in engine.map(blas_threads, range(4)))
    with pytest.raises(ZeroDivisionError):
        list(engine.map(lambda item: 1 // item, range(4)))
    assert blas_threads() == before


def printed_with_two_threads(ask):
    """Return the words that a program prints, in a process whose BLAS has two threads that threads() tells."""
    threads = (
        "import numpy; from threadpoolctl import threadpool_info as info\n"
        "def threads(): return [one['num_threads'] for one in info() if one['user_api'] == 'blas']\n"
        "before = threads()\n"
    )
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", threads + ask]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()


def test_blas_takes_no_more_threads_than_were_asked_for_wherever_it_is_loaded():
    told = printed_with_two_threads(
        "import kerntest\n"
        "with kerntest.compute_on(threads=1):\n"
        "    import scipy.linalg; inside = threads()\n"
        "print(set(inside) == {1}, set(threads()) == set(before))"
    )
    assert told == ["True", "True"]


def test_blas_that_a_piece_of_work_loads_is_held_by_all_of_them():
    """Only the thread that set the threads of BLAS first could: those of another library were a dozen times as slow."""
    told = printed_with_two_threads(
        "from kerntest.engines.engine import Engine, one_blas_thread\n"
        "def work(item):\n"
        "    import scipy.linalg\n"
        "    with one_blas_thread(): return threads()\n"
        "print({1} == {*sum(Engine(2).map(work, range(8)), [])}, {*threads()} == {*before})"
    )
    assert told == ["True", "True"]


def test_work_not_begun_is_dropped_after_an_error_and_few_results_wait():
    begun = []

    def work(item):
        begun.append(item)
        if item == 0:
            raise ValueError("first")
        time.sleep(0.001)

    both = threading.Barrier(2, timeout=600)
    with kerntest.compute_on(threads=2) as engine:
        # They run side by side.
        assert len(list(engine.map(lambda _: both.wait(), range(2)))) == 2
        with pytest.raises(ValueError, match="first"):
            list(engine.map(work, range(1000)))
        assert len(begun) < 20
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPool")]
        begun.clear()
        results = engine.map(begun.append, range(100))
        next(results)
        # Time for more to begin, if anything let them.
        time.sleep(0.02)
        assert len(begun) <= 4
        results.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "^threads must be at least 1, not 0$"),
        ({"engine": "loca"}, "no engine 'loca'"),
        ({"engine": "spark"}, "no engine 'spark'"),
        ({"engine": "local", "scheduler": "tcp://127.0.0.1:1"}, "not for local"),
        ({"engine": "gpu", "scheduler": "tcp://127.0.0.1:1"}, "not for gpu"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message) as caught, kerntest.compute_on(**arguments):
        pass
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_the_choice_holds_inside_and_ends_outside():
    x, y = two_samples.frames(40, 50)

    def provenance(**options):
        found = kerntest.mmd_test(x, y, **options).provenance
        return found.engine, found.threads

    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with kerntest.compute_on(threads=3, memory="2GB") as engine:
        assert (engine.threads, engine.memory) == (3, 2 * 10**9)
        assert provenance() == ("local", 3)
        # Of a function's own, and for threads that the engine starts.
        assert provenance(threads=2) == ("local", 2)
        assert set(engine.map(lambda _: provenance(), range(4))) == {("local", 3)}
        with kerntest.compute_on(threads=1) as inner:
            assert (provenance(), inner.memory) == (("local", 1), None)
        assert provenance() == ("local", 3)
    with pytest.raises(ZeroDivisionError), kerntest.compute_on(threads=3):
        raise ZeroDivisionError
    assert provenance() == ("local", processors)


# Whole tests and models


def numbers(rows, count, seed=0):
    values = np.random.default_rng(seed).normal(size=(rows, count))
    values[:, 1] += values[:, 0]
    return values


def frame(rows, names, holes=0.0):
    values = numbers(rows, len(names))
    values[np.random.default_rng(3).random(values.shape) < holes] = np.nan
    return pd.DataFrame(values, columns=list(names))


def screened(holes):
    found = kerntest.hsic_pairs(frame(300, "abcdef", holes), permutations=200)
    return [(pair.p_value, pair.p_adjusted, pair.p_permutation) for pair in found.pairs]


def learned():
    """Return what is found by a grid, by a regression, and by a model for the rows of files, which workers read."""
    X, y = numbers(400, 2), numbers(400, 3)[:, 1]
    a, b = numbers(60, 2).T
    table = pa.table({"a": a, "b": b, "t": np.where(a > 0, "yes", "no")})
    with TemporaryDirectory() as folder:
        model, parts, out = f"{folder}/m.kt", f"{folder}/rows.parquet", f"{folder}/out.parquet"
        grid = kerntest.train_svm(table, "t", kernel="linear", grid=True, output=model).to_dict()["grid"]
        parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), parts, row_group_size=90)
        told = kerntest.predict_file(model, parts, decision=True, output=out, block=40).predictions
        decided = parquet.read_table(out).to_pydict()
    return grid, kerntest.KernelRidge(0.1).fit(X, y).predict(np.tile(X, (12, 1))).tolist(), told, decided


def found_by(test, *tables, **options):
    """Return what a test finds."""
    found = test(*tables, **options)
    return found.p_value, found.statistic, found.effect_size


x, y = two_samples.frames(90, 115)
data = two_variables.frame(150)
sides = data[["weight", "city"]], data[["depth", "price"]]
mmd, hsic = functools.partial(found_by, kerntest.mmd_test), functools.partial(found_by, kerntest.hsic_test)
one_kernel = {"kernel_x": "gaussian", "kernel_y": "gaussian", "bandwidth": "median"}
CASES = {
    "two samples": lambda: mmd(x, y),
    "two samples, one kernel": lambda: mmd(x, y, kernel="laplacian", bandwidth="median"),
    "two samples, moments": lambda: mmd(x, y, kernel="matern(nu=1.2)", null="moments"),
    "two samples, random permutations": lambda: mmd(
        x, y, kernel="student-t * hamming", resampling="random", permutations=100
    ),
    "two variables": lambda: hsic(*sides),
    "two variables, one kernel": lambda: hsic(*sides, kernel_x="laplacian", kernel_y="laplacian", bandwidth="median"),
    # More rows than look for matrices of low rank, some of which keep their partner: 2110 = 2 * 5 * 211.
    "two variables, low rank": lambda: hsic(*numbers(2110, 2).T, **one_kernel),
    "two variables, moments": lambda: hsic(*sides, null="moments", kernel_x="laplacian", kernel_y="laplacian"),
    "two variables, random permutations": lambda: hsic(*sides, **one_kernel, resampling="random", permutations=100),
    "covariance": lambda: hsic(*sides, statistic="coco", permutations=200),
    "canonical correlation": lambda: hsic(*sides, statistic="kcc", permutations=200),
    "a screen": lambda: screened(0.0),
    "a screen with missing values": lambda: screened(0.1),
    "a selection": lambda: kerntest.hsic_select(frame(300, "abcd"), "d", permutations=100).to_dict()["selected"],
    "a joint test": lambda: kerntest.hsic_joint(frame(200, "abc"), list("abc"), permutations=100).p_value,
    "models": learned,
}


@functools.cache
def on_one_thread(case):
    with kerntest.compute_on("local", threads=1):
        return CASES[case]()


@pytest.mark.parametrize("away", AWAY)
@pytest.mark.parametrize("case", CASES)
def test_results_are_the_same_on_every_engine(on, case, away):
    expected = on_one_thread(case)
    with on(away):
        found = CASES[case]()
    assert_alike(found, expected, share=STATISTIC)


def test_errors_of_pieces_of_a_file_come_back_with_their_lines(on, tmp_path):
    table = frame(500, "ab").assign(t=np.arange(500.0))
    kerntest.train_ridge(table, "t", lambda_=0.1, output=tmp_path / "m.kt")
    table.loc[[440, 444], "a"] = np.nan
    table.to_csv(tmp_path / "rows.csv", index=False)
    with on("dask"), pytest.raises(DataError, match=r"rows\.csv, line 442: column 'a' has no value") as caught:
        kerntest.predict_file(tmp_path / "m.kt", tmp_path / "rows.csv", output=tmp_path / "out.csv", block=3000)
    assert caught.value.where["line"] == 442
    assert "missing='drop'" in caught.value.hint


# What tests divide their work by


@pytest.mark.parametrize(("count", "most"), [(0, 4), (1, 4), (4, 4), (5, 4), (8, 4), (9, 4), (7800, 256), (3, 1)])
def test_pieces_are_runs_that_cover_the_items(count, most):
    pieces = in_pieces(list(range(count)), most)
    assert [item for piece in pieces for item in piece] == list(range(count))
    assert len(pieces) <= most
    assert len({len(piece) for piece in pieces[:-1]}) <= 1


# A GPU


def test_what_overflows_on_a_gpu_is_refused(on):
    huge = np.full((40, 1), 1e100) * np.arange(1, 41)[:, None]
    with on("gpu"), pytest.raises(UndecidedError, match="overflows"):
        kerntest.mmd_test(huge, huge[::-1] + 1e99, kernel="polynomial(7)", scale="none")


def test_too_little_memory_of_a_gpu_is_said(on):
    torch = pytest.importorskip("torch")

    def work(_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with on("gpu") as engine, pytest.raises(UndecidedError, match="too little memory"):
        list(engine.map(work, [1]))


def test_a_missing_package_names_the_extra(monkeypatch):
    for engine, package, packages in (("gpu", "torch", "torch"), ("dask", "distributed", "dask distributed")):
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.delitem(sys.modules, f"kerntest.engines.{engine}", raising=False)
        with pytest.raises(MissingExtraError) as caught, kerntest.compute_on(engine):
            pass
        assert (caught.value.exit_code, caught.value.hint) == (
            4,
            f"`pip install '.[{engine}]'` in the folder of kerntest, or `pip install {packages}`",
        )


def test_no_gpu_and_no_such_device_are_said(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("KERNTEST_DEVICE", "abacus:1")
    with pytest.raises(UsageError, match="KERNTEST_DEVICE=abacus:1"), kerntest.compute_on("gpu"):
        pass
    monkeypatch.delenv("KERNTEST_DEVICE")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(UndecidedError, match="no GPU was found") as caught, kerntest.compute_on("gpu"):
        pass
    assert (caught.value.exit_code, "engine='gpu'" in caught.value.hint) == (4, True)
