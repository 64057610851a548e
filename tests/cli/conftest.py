from functools import partial

import pytest
from command_line import UNSET, run_here


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kerntest(capfdbinary):
    """Run a command line in this process."""
    return partial(run_here, capfdbinary)
