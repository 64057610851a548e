import sys
import types
from functools import partial

import pytest
from command_line import UNSET, run_here
from example_results import two_sample_result


class StandInTest:
    """Stands in for `mmd_test`: keeps what it was asked, and gives back a prepared result or error."""

    def __init__(self):
        self.calls = []
        self.result = two_sample_result()
        self.error = None

    def __call__(self, x, y, **options):
        self.calls.append((x, y, options))
        if self.error is not None:
            raise self.error
        return self.result

    @property
    def options(self):
        """The options of the last call."""
        return self.calls[-1][2]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def mmd_test(monkeypatch):
    """Put a stand-in where `kerntest mmd` looks for the numerics."""
    stand_in = StandInTest()
    module = types.ModuleType("kerntest.inference.two_sample")
    module.mmd_test = stand_in
    monkeypatch.setitem(sys.modules, "kerntest.inference.two_sample", module)
    return stand_in


@pytest.fixture
def kerntest(capfdbinary):
    """Run a command line in this process."""
    return partial(run_here, capfdbinary)
