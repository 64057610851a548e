"""Threads of this process: order, errors, progress, and BLAS held to one thread."""

import platform
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from kerntest.engines.local import LocalEngine, available_threads
from kerntest.errors import UsageError


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 50])
def test_results_come_in_the_order_of_the_work(threads, count):
    def work(item):
        # The later a piece is handed out, the sooner it is done.
        time.sleep(0.0005 * (count - item) / max(count, 1))
        return item * item

    assert list(LocalEngine(threads).map(work, range(count))) == [item * item for item in range(count)]


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_of_the_work_reach_the_caller(threads):
    def work(item):
        if item == 3:
            raise ZeroDivisionError(f"piece {item}")
        return item

    seen = []
    with pytest.raises(ZeroDivisionError, match="piece 3"):
        seen.extend(LocalEngine(threads).map(work, range(50)))
    assert seen == [0, 1, 2]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPool")]


def test_work_not_begun_is_dropped_after_an_error():
    begun = []

    def work(item):
        begun.append(item)
        if item == 0:
            raise ValueError("first")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="first"):
        list(LocalEngine(2).map(work, range(1000)))
    assert len(begun) < 20


def test_few_results_wait():
    """Pieces under way stay few, however slowly the caller takes them."""
    begun = []
    results = LocalEngine(2).map(begun.append, range(100))
    next(results)
    # Time for more to begin, if anything let them.
    time.sleep(0.02)
    assert len(begun) <= 4
    results.close()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_progress_counts_up_to_the_total_on_the_calling_thread(threads):
    calls = []

    def progress(done, total):
        calls.append((done, total, threading.get_ident()))

    list(LocalEngine(threads).map(lambda item: item, range(9), progress))
    assert calls == [(done, 9, threading.get_ident()) for done in range(1, 10)]


@pytest.mark.parametrize("threads", [0, -1])
def test_less_than_one_thread_is_refused(threads):
    with pytest.raises(UsageError, match=f"^threads must be at least 1, not {threads}$") as caught:
        LocalEngine(threads)
    assert caught.value.exit_code == 2
    assert caught.value.code == "usage.threads"


def test_all_processors_by_default():
    assert LocalEngine().threads == available_threads() >= 1


@pytest.mark.parametrize("threads", [1, 2])
def test_blas_runs_on_one_thread_meanwhile_and_is_restored(threads):
    before = blas_threads()
    assert before, f"numpy {np.__version__} has no BLAS that threadpoolctl knows"
    during = list(LocalEngine(threads).map(lambda _: blas_threads(), range(4)))
    assert all(set(one) == {1} for one in during)
    assert blas_threads() == before


def test_blas_is_restored_after_an_error():
    before = blas_threads()
    with pytest.raises(ZeroDivisionError):
        list(LocalEngine(2).map(lambda item: 1 // item, range(4)))
    assert blas_threads() == before


@pytest.mark.parametrize("threads", [1, 2])
def test_work_sees_how_its_caller_treats_overflow(threads):
    huge = np.full(3, 1e300)
    with np.errstate(over="ignore"):
        assert all(np.isinf(one).all() for one in LocalEngine(threads).map(lambda _: huge * huge, range(4)))
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        list(LocalEngine(threads).map(lambda _: huge * huge, range(4)))


def test_threads_run_side_by_side():
    both = threading.Barrier(2, timeout=600)
    assert len(list(LocalEngine(2).map(lambda _: both.wait(), range(2)))) == 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")
def test_blocks_get_the_memory_of_earlier_blocks():
    code = """
import resource
import numpy as np
from kerntest.engines.local import LocalEngine

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def work(item):
    first, second = np.ones(2**18), np.ones(2**18)
    return float((first + second).sum())

list(LocalEngine(1).map(work, range(3)))
before = faults()
list(LocalEngine(1).map(work, range(50)))
print(faults() - before)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    # 150 arrays of 2 MB are 77,000 pages.
    assert int(found.stdout) < 10_000
