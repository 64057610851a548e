"""One cluster of two processes for all tests of it: starting takes longer than most of them."""

from contextlib import ExitStack

import pytest

OPENED = pytest.StashKey()
# What Dask's processes do all the time: it takes them longer than the work of these tests.
WATCHING = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}


@pytest.fixture
def engine(request):
    """Return the engine of a cluster that ends with the tests of this folder, not minutes later with all tests."""
    pytest.importorskip("distributed")
    from dask import config  # noqa: PLC0415 - needs what may not be there

    from kerntest.engines.dask import DaskEngine  # noqa: PLC0415 - the same

    folder = request.node.getparent(pytest.Dir)
    if OPENED not in folder.stash:
        stack = ExitStack()
        stack.enter_context(config.set(WATCHING))
        folder.stash[OPENED] = stack.enter_context(DaskEngine.opened(workers=2))

        def end():
            del folder.stash[OPENED]
            stack.close()

        folder.addfinalizer(end)
    return folder.stash[OPENED]
