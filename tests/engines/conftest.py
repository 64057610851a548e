"""Every engine by its name, and one cluster of two processes for all tests of it: starting takes longer than most."""

import os
from contextlib import contextmanager

import pytest

import kerntest

OPENED = pytest.StashKey()
# What Dask's processes do all the time: it takes them longer than the work of these tests.
WATCHING = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}


@pytest.fixture
def cluster(request):
    """Return a cluster of Dask's own that ends with the tests of this folder, not minutes later with all tests."""
    distributed = pytest.importorskip("distributed")
    from dask import config  # noqa: PLC0415 - needs what may not be there

    from kerntest.engines.dask import begun  # noqa: PLC0415 - as above

    folder = request.node.getparent(pytest.Dir)
    if OPENED not in folder.stash:
        workers = str(request.getfixturevalue("tmp_path_factory").mktemp("workers"))
        with config.set(WATCHING | {"temporary-directory": workers}):
            found = folder.stash[OPENED] = begun(
                distributed.LocalCluster,
                n_workers=2,
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                silence_logs=100,
                local_directory=workers,
            )

        def end():
            del folder.stash[OPENED]
            # Where the machine has other work it may take longer than Dask waits.
            found.close(timeout=600)

        folder.addfinalizer(end)
    return folder.stash[OPENED]


@pytest.fixture
def on(request, monkeypatch):
    """Return what computes on the named engine; little work is sent away too."""
    monkeypatch.setattr("kerntest.engines.engine.FEW_ENTRIES", 0)

    @contextmanager
    def computing(name):
        if name == "dask":
            with kerntest.compute_on(scheduler=request.getfixturevalue("cluster").scheduler_address) as engine:
                yield engine
            return
        if name == "gpu":
            torch = pytest.importorskip("torch")
            # Its threads wait for each other busily, which takes most of the time where the machine has other work.
            torch.set_num_threads(1)
            # A GPU only where somebody names it.
            monkeypatch.setenv("KERNTEST_DEVICE", os.environ.get("KERNTEST_DEVICE", "cpu"))
        threads = {"one thread": 1}.get(name, 3)
        with kerntest.compute_on(name if name == "gpu" else "local", threads=threads) as engine:
            yield engine

    return computing
