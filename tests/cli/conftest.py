import sys
import types

import pytest
from example_results import two_sample_result

from kerntest.cli.main import run


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
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "KERNTEST_DEBUG", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def mmd_test(monkeypatch):
    """Put a stand-in where `kerntest mmd` looks for the numerics."""
    stand_in = StandInTest()
    module = types.ModuleType("kerntest.inference.two_sample")
    module.mmd_test = stand_in
    monkeypatch.setitem(sys.modules, "kerntest.inference.two_sample", module)
    return stand_in


class Outcome:
    """Exit code, stdout and stderr of one command line."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def kerntest(capfdbinary):
    """Run a command line in this process."""

    def invoke(*arguments):
        capfdbinary.readouterr()
        code = run(list(arguments))
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return Outcome(code, captured.out.decode(), captured.err.decode())

    return invoke
