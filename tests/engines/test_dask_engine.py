"""A cluster of two processes of this machine: order, errors, what is sent, workers that die."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from threadpoolctl import threadpool_info
from tolerances import SAME_MACHINE, assert_close

import kerntest
from kerntest.engines import clusters
from kerntest.engines import dask as engine_module
from kerntest.engines.dask import DaskEngine
from kerntest.engines.local import LocalEngine
from kerntest.errors import DataError, MissingExtraError, UndecidedError, UsageError
from kerntest.inference.shifts import shift_sums
from kerntest.kernels.base import Points
from kerntest.kernels.stationary import Gaussian
from kerntest.matrices.lags import KernelStack

distributed = pytest.importorskip("distributed")
config = pytest.importorskip("dask.config")


PATIENCE = 600.0


def wait_until(holds):
    """Wait for something to hold; on the slowest machine it does after a while."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def scattered(engine, monkeypatch):
    """What is sent to the workers, as it goes."""
    sent, scatter = [], engine._client.scatter

    def counted(values, **options):
        sent.extend(values)
        return scatter(values, **options)

    monkeypatch.setattr(engine._client, "scatter", counted)
    return sent


def pids(engine):
    """Return the processes of the workers that answer."""
    return {pid for pid in engine._client.run(os.getpid, on_error="return").values() if isinstance(pid, int)}


def test_it_says_what_it_is(engine):
    assert (engine.name, engine.dtype, engine.device, engine.threads) == ("dask", "float64", None, 2)
    assert isinstance(engine.here, LocalEngine)
    assert engine.here.threads == 2


@pytest.mark.parametrize("count", [0, 1, 2, 7, 200])
def test_results_come_in_the_order_of_the_items(engine, count):
    def work(item):
        time.sleep(0.01 * (item % 7 == 0))
        return item * item

    assert list(engine.map(work, range(count))) == [item * item for item in range(count)]


def test_items_may_come_one_by_one(engine):
    drawn, calls = [], []

    def items():
        for item in range(40):
            drawn.append(item)
            yield item

    results = engine.map(lambda item: -item, items(), lambda done, total: calls.append((done, total)), total=40)
    assert next(results) == 0
    assert len(drawn) < 20
    assert list(results) == [-item for item in range(1, 40)]
    assert calls == [(done, 40) for done in range(1, 41)]


def test_every_worker_has_tasks_in_front_of_it(engine, monkeypatch):
    under_way, first = [], engine_module._Run._first

    def counted(run):
        under_way.append(len(run._window))
        return first(run)

    monkeypatch.setattr(engine_module._Run, "_first", counted)
    assert list(engine.map(lambda item: -item, range(40))) == [-item for item in range(40)]
    assert max(under_way) == under_way[0] == engine_module.AHEAD * engine.threads


def test_progress_is_told_on_the_calling_thread(engine):
    calls = []
    list(engine.map(lambda item: item, range(9), lambda *state: calls.append((*state, threading.get_ident()))))
    assert calls == [(done, 9, threading.get_ident()) for done in range(1, 10)]


def test_items_run_in_other_processes(engine):
    found = set(engine.map(lambda _: (time.sleep(0.02), os.getpid())[1], range(20)))
    assert found <= pids(engine)
    assert os.getpid() not in found


def test_tuples_lists_and_large_items_arrive_as_they_are(engine):
    large = np.arange(3e5)
    items = [(len, [1, 2]), {"a": large}, [large[::2], "text"], Points.of(large)]
    found = list(engine.map(lambda item: (type(item).__name__, item), items))
    assert [name for name, _ in found] == ["tuple", "dict", "list", "Points"]
    assert found[0][1] == (len, [1, 2])
    np.testing.assert_array_equal(found[2][1][0], large[::2])
    np.testing.assert_array_equal(found[3][1].numeric[:, 0], large)


def test_results_can_be_written_to(engine):
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


def test_blas_runs_on_one_thread(engine):
    def work(_):
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    assert all(set(one) == {1} for one in engine.map(work, range(4)))


def test_work_that_holds_its_engine_computes_with_one_thread_there(engine):
    found = list(engine.map(lambda item: (engine.name, engine.threads, list(engine.map(abs, [item, 1]))), [-2, -3]))
    assert found == [("local", 1, [2, 1]), ("local", 1, [3, 1])]


def test_large_arrays_are_sent_once_for_all_work(engine, scattered):
    rows = np.random.default_rng(1).integers(0, 9, size=(5000, 4)).astype(float)
    expected = [float(rows.sum()) + item for item in range(30)]
    assert list(engine.map(lambda item: float(rows.sum()) + item, range(30))) == expected
    assert list(engine.map(lambda item: float(rows.copy().sum()) + item, range(30))) == expected
    assert sum(isinstance(value, np.ndarray) for value in scattered) == 1
    again = rows.copy()
    assert list(engine.map(lambda item: float(again.sum()) + item, range(30))) == expected
    assert sum(isinstance(value, np.ndarray) for value in scattered) == 1
    assert len(scattered) == 1 + 3


def test_what_no_work_needs_any_more_makes_room(engine, scattered, monkeypatch):
    monkeypatch.setattr(engine_module, "KEPT_BYTES", 200_000)
    rows = [np.full(20_000, float(k)) for k in range(3)]
    for one in [*rows, rows[2], rows[0]]:
        assert list(engine.map(lambda item, one=one: one[item], range(3))) == [one[0]] * 3
    # Only the last one fits: the first had to make room for the others, and is sent again.
    assert sum(isinstance(value, np.ndarray) for value in scattered) == 4


def test_work_is_unpacked_once_by_each_worker(engine):
    class Work:
        def __setstate__(self, state):
            self.unpacked = uuid.uuid4().hex

        def __getstate__(self):
            return {"a": 1}

        def __call__(self, _):
            time.sleep(0.002)
            return self.unpacked

    assert 1 <= len(set(engine.map(Work(), range(60)))) <= 2


def test_tasks_hold_many_short_items(engine, monkeypatch):
    submitted, submit = [], engine._client.submit
    monkeypatch.setattr(
        engine._client, "submit", lambda *args, **options: submitted.append(1) or submit(*args, **options)
    )
    assert list(engine.map(abs, range(5000))) == list(range(5000))
    assert len(submitted) < 500


def stack_of(rows):
    points = Points.of(np.random.default_rng(0).normal(size=(rows, 3)))
    order = np.random.default_rng(1).permutation(rows)
    return KernelStack([(points, (Gaussian(1.0), Gaussian(2.0)))], [order], rows, centred_by_rows=True)


@pytest.mark.thorough
@pytest.mark.parametrize("lost", [pytest.param(1, id="one of two"), pytest.param(2, id="all workers")])
def test_workers_that_die_change_nothing(engine, lost):
    stack, killed = stack_of(2400), []

    def kill(*_):
        if not killed:
            for pid in sorted(pids(engine))[:lost]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    def summed(where, progress=None):
        return shift_sums(stack, stack, n=2400, circle=2400, orders=1, engine=where, progress=progress)

    found, expected = summed(engine, kill), summed(LocalEngine(2))
    assert len(killed) == lost
    assert_close(found.values, expected.values, share=SAME_MACHINE)
    assert_close(found.rows_first, expected.rows_first, share=SAME_MACHINE)
    wait_until(lambda: len(pids(engine) - set(killed)) == 2)


def test_work_that_kills_every_worker_is_given_up(monkeypatch):
    """On a cluster of its own: Dask may not replace a worker that is killed before it has quite started."""
    monkeypatch.setattr(engine_module, "ROUNDS", 1)

    def work(_):
        os.kill(os.getpid(), signal.SIGKILL)

    with DaskEngine.opened(workers=1) as engine:
        monkeypatch.setattr(engine._client.cluster.scheduler, "allowed_failures", 0)
        with pytest.raises(UndecidedError, match="lost again and again") as caught:
            list(engine.map(work, range(2)))
    assert (caught.value.exit_code, caught.value.code) == (4, "undecided.cluster")


def test_a_running_cluster_is_used_and_left_running(engine):
    address = engine._client.scheduler.address
    with DaskEngine.opened(address, memory=10**9) as other:
        assert (other.threads, other.memory) == (2, 10**9)
        assert list(other.map(lambda item: item + 1, range(20))) == list(range(1, 21))
    assert list(engine.map(abs, range(5))) == list(range(5))


def test_workers_of_another_version_are_refused(engine, monkeypatch):
    monkeypatch.setattr(kerntest, "__version__", "99.0")
    with (
        pytest.raises(
            UndecidedError, match=r"^the worker at tcp://\S+ has kerntest \S+ on Python .*, not 99.0 on"
        ) as caught,
        DaskEngine.opened(engine._client.scheduler.address),
    ):
        pass
    assert "install kerntest 99.0" in caught.value.hint


def test_workers_without_kerntest_are_refused(engine, monkeypatch):
    monkeypatch.setattr(distributed.Client, "run", lambda *_, **__: {"tcp://10.0.0.2:1": (None, "3.11")})
    with (
        pytest.raises(UndecidedError, match=r"^the worker at tcp://10.0.0.2:1 has no kerntest$"),
        DaskEngine.opened(engine._client.scheduler.address),
    ):
        pass


def test_a_scheduler_that_does_not_answer_is_an_error_soon(monkeypatch):
    monkeypatch.setattr(clusters, "ANSWER", 0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(UndecidedError, match=f"^no Dask scheduler answers at '{address}'$") as caught, _opened(address):
        pass
    assert caught.value.exit_code == 4
    assert "dask scheduler" in caught.value.hint


def test_what_is_no_address_is_an_error_of_usage():
    with (
        pytest.raises(UsageError, match=r"^'nonsense://x' is no address of a scheduler") as caught,
        _opened("nonsense://x"),
    ):
        pass
    assert caught.value.code == "usage.scheduler"


def test_a_scheduler_without_workers_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(clusters, "WORKER_PATIENCE", 0.2)
    no_dashboard = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}}
    with (
        config.set({"temporary-directory": str(tmp_path)}),
        distributed.LocalCluster(n_workers=0, processes=False, protocol="tcp://", **no_dashboard) as cluster,
        pytest.raises(UndecidedError, match=r"has no workers$") as caught,
        _opened(cluster.scheduler_address),
    ):
        pass
    assert "dask worker tcp://" in caught.value.hint


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError) as caught, _opened(None):
        pass
    assert caught.value.hint == "pip install 'kerntest[dask]'"


@contextmanager
def _opened(scheduler):
    with DaskEngine.opened(scheduler) as opened:
        yield opened


SCRIPT = """
    import os, signal, sys, time
    from pathlib import Path
    from kerntest.engines.dask import DaskEngine
    from kerntest.errors import DataError

    def fails(item):
        raise DataError("on purpose")

    def dies_once(item):
        number, path = item
        if number == 3 and not Path(path).exists():
            Path(path).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    def never_ends(path):
        Path(path).touch()
        time.sleep(3600)

    def main():
        # As at a terminal, also where the tests run in the background of a shell.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        with DaskEngine.opened(workers=1) as engine:
            assert list(engine.map(abs, range(8))) == list(range(8))
            died = sys.argv[1]
            assert list(engine.map(dies_once, [(number, died) for number in range(8)])) == list(range(8))
            try:
                list(engine.map(fails, range(8)))
            except DataError as error:
                print(error, flush=True)
            try:
                list(engine.map(never_ends, sys.argv[2:]))
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                raise SystemExit(0) from None

    if __name__ == "__main__":
        main()
"""


def group_is_gone(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_nothing_is_said_of_lost_workers_errors_and_interrupts(tmp_path):
    """A terminal sends Ctrl-C to every process: only ours may answer, and all of them end, whatever they do."""
    script, begun = tmp_path / "script.py", [tmp_path / name for name in ("died", "first", "second")]
    script.write_text(textwrap.dedent(SCRIPT))
    with subprocess.Popen(
        [sys.executable, script, *begun],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            wait_until(lambda: running.poll() is not None or begun[1].exists())
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGINT)
            out, err = running.communicate(timeout=PATIENCE)
            assert (out, err, running.returncode) == ("on purpose\ninterrupted\n", "", 0)
            wait_until(lambda: group_is_gone(running.pid))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
