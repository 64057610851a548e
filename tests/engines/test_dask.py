"""Clusters of Dask: reached or started, looked over, left or ended; and workers that die."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import suppress

import numpy as np
import pytest
from records import assert_same

import kerntest
from kerntest.engines.engine import enough_for
from kerntest.errors import UndecidedError, UsageError, as_typed

distributed = pytest.importorskip("distributed")
config = pytest.importorskip("dask.config")

begun = pytest.importorskip("kerntest.engines.dask").begun

PATIENCE = 600.0


def wait_until(holds):
    """Wait for something to hold; on the slowest machine it does after a while."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def pids(cluster):
    """Return the processes of the workers that answer."""
    with begun(distributed.Client, cluster, set_as_default=False) as client:
        return {pid for pid in client.run(os.getpid, on_error="return").values() if isinstance(pid, int)}


def test_items_run_in_other_processes(cluster):
    """Of a running cluster, which is left running."""
    for _ in range(2):
        with kerntest.compute_on(scheduler=cluster.scheduler_address, memory=10**9) as engine:
            assert (engine.threads, engine.memory) == (2, 10**9)
            # Little work stays here.
            assert [enough_for(engine, size) is engine for size in (1e9, 1000)] == [True, False]
            found = set(engine.map(lambda _: (time.sleep(0.02), os.getpid())[1], range(20)))
        assert found == pids(cluster)
        assert os.getpid() not in found


def test_workers_name_options_as_who_asked_for_the_work_writes_them(cluster):
    def told(_):
        from kerntest.errors import option  # noqa: PLC0415 - runs elsewhere

        return option("missing", "drop")

    with kerntest.compute_on(scheduler=cluster.scheduler_address) as engine:
        assert set(engine.map(told, range(4))) == {"missing='drop'"}
        with as_typed():
            assert set(engine.map(told, range(4))) == {"--missing drop"}


def test_a_thread_that_is_late_gets_its_time_again():
    late = iter([AssertionError] * 3)

    def kind(name, *, size):
        for error in late:
            raise error
        return name, size

    assert begun(kind, "a", size=2) == ("a", 2)


def test_work_is_unpacked_once_by_each_worker_and_its_items_travel_together(cluster, monkeypatch):
    class Work:
        def __setstate__(self, state):
            self.unpacked = os.urandom(8).hex()

        def __getstate__(self):
            return {"a": 1}

        def __call__(self, _):
            return self.unpacked

    submitted, submit = [], distributed.Client.submit
    monkeypatch.setattr(
        distributed.Client, "submit", lambda *args, **options: submitted.append(1) or submit(*args, **options)
    )
    with kerntest.compute_on(scheduler=cluster.scheduler_address) as engine:
        assert 1 <= len(set(engine.map(Work(), range(5000)))) <= 2
    assert len(submitted) < 100


def test_work_that_holds_its_engine_computes_with_one_thread_there(cluster):
    with kerntest.compute_on(scheduler=cluster.scheduler_address) as engine:
        found = list(engine.map(lambda item: (engine.name, engine.threads, list(engine.map(abs, [item, 1]))), [-2, -3]))
    assert found == [("local", 1, [2, 1]), ("local", 1, [3, 1])]


@pytest.mark.thorough
@pytest.mark.parametrize("lost", [pytest.param(1, id="one of two"), pytest.param(2, id="all workers")])
def test_workers_that_die_change_nothing(cluster, lost):
    x, y = (np.random.default_rng(seed).normal(size=(2400, 3)) for seed in (0, 1))
    killed = []

    def kill(*_):
        if not killed:
            for pid in sorted(pids(cluster))[:lost]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    def test(progress=None):
        return kerntest.hsic_test(x, y, kernel_x="laplacian", kernel_y="laplacian", progress=progress)

    with kerntest.compute_on(scheduler=cluster.scheduler_address):
        found = test(kill)
    assert len(killed) == lost
    assert_same(found, test())
    wait_until(lambda: len(pids(cluster) - set(killed)) == 2)


def test_work_that_kills_every_worker_is_given_up():
    """On a cluster of its own: Dask may not replace a worker that is killed before it has quite started."""

    def work(_):
        os.kill(os.getpid(), signal.SIGKILL)

    with (
        config.set({"distributed.scheduler.allowed-failures": 0}),
        kerntest.compute_on("dask", threads=1) as engine,
        pytest.raises(UndecidedError, match="lost again and again") as caught,
    ):
        list(engine.map(work, range(2)))
    assert (caught.value.exit_code, caught.value.code) == (4, "undecided.cluster")


def test_a_cluster_that_ends_meanwhile_is_said(tmp_path):
    """Of threads, which share the process with its scheduler: nothing of it is left to come back."""
    with config.set({"temporary-directory": str(tmp_path), "distributed.comm.timeouts.connect": "1s"}):
        options = {"processes": False, "protocol": "tcp://", "dashboard_address": None, "silence_logs": 100}
        own = begun(distributed.LocalCluster, 1, **options)
        with kerntest.compute_on(scheduler=own.scheduler_address) as engine:
            results = engine.map(abs, range(2000))
            next(results)
            own.close()
            with pytest.raises(UndecidedError, match="the cluster was lost"):
                list(results)


def refused(scheduler, kind=UndecidedError):
    """Return the error of a scheduler that cannot be used."""
    with pytest.raises(kind) as caught, kerntest.compute_on(scheduler=scheduler):
        pass
    return caught.value


def test_workers_of_another_version_are_refused(cluster, monkeypatch):
    monkeypatch.setattr(kerntest, "__version__", "99.0")
    error = refused(cluster.scheduler_address)
    assert error.message.startswith("the worker at tcp://")
    assert f" on Python {sys.version_info[0]}.{sys.version_info[1]}, not kerntest 99.0 on" in error.message
    assert "install kerntest 99.0" in error.hint
    for answer, has in (("no kerntest", "no kerntest"), (SystemError("odd"), "a Python that cannot run ours")):
        monkeypatch.setattr(distributed.Client, "run", lambda *_, answer=answer, **__: {"tcp://10.0.0.2:1": answer})
        assert f"the worker at tcp://10.0.0.2:1 has {has}, not" in refused(cluster.scheduler_address).message


def test_a_scheduler_that_does_not_answer_is_an_error_soon(monkeypatch):
    monkeypatch.setattr("kerntest.engines.dask.ANSWER", 0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    error = refused(address)
    assert error.message == f"no Dask scheduler answers at '{address}'"
    assert (error.exit_code, "dask scheduler" in error.hint) == (4, True)
    error = refused("nonsense://x", UsageError)
    assert (error.message, error.code) == ("'nonsense://x' is no address of a scheduler", "usage.scheduler")


def test_a_scheduler_without_workers_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr("kerntest.engines.dask.WORKER_PATIENCE", 0.2)
    no_dashboard = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}}
    with (
        config.set({"temporary-directory": str(tmp_path)}),
        begun(distributed.LocalCluster, n_workers=0, processes=False, protocol="tcp://", **no_dashboard) as own,
    ):
        error = refused(own.scheduler_address)
    assert error.message.endswith("has no workers")
    assert "dask worker tcp://" in error.hint


SCRIPT = """
    import os, signal, sys, time
    from pathlib import Path
    import kerntest
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
        with kerntest.compute_on("dask", threads=1) as engine:
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
    # What the script leaves behind is told here: among the files of all tests it would be an error of whoever comes last.
    (own := tmp_path / "own").mkdir()
    with subprocess.Popen(
        [sys.executable, script, *begun],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(own)},
    ) as running:
        try:
            wait_until(lambda: running.poll() is not None or any(path.exists() for path in begun[1:]))
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGINT)
            out, err = running.communicate(timeout=PATIENCE)
            assert (out, err, running.returncode) == ("on purpose\ninterrupted\n", "", 0)
            wait_until(lambda: group_is_gone(running.pid))
            assert not list(own.iterdir())
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
