"""One cluster of two processes for all tests of it: starting takes longer than most of them."""

import pytest


@pytest.fixture(scope="session")
def engine():
    pytest.importorskip("distributed")
    from kerntest.engines.dask import DaskEngine  # noqa: PLC0415 - needs what may not be there

    with DaskEngine.opened(workers=2) as opened:
        yield opened
