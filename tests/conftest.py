"""What holds for all tests: nothing hangs on how fast the machine is, and nothing outlives its module."""

import compileall
import os
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import command_line
import hypothesis
import pytest
from threadpoolctl import threadpool_limits

# No test asks the clock: a busy machine is no fault.
COMMON = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
# The same examples on every machine; --hypothesis-profile=searching looks for others.
hypothesis.settings.register_profile("kerntest", derandomize=True, max_examples=50, **COMMON)
hypothesis.settings.register_profile("searching", **COMMON)
hypothesis.settings.load_profile("kerntest")

# Processes that tests start find the package compiled, whatever PYTHONDONTWRITEBYTECODE says.
compileall.compile_dir(Path(__file__).parents[1] / "kerntest", quiet=2)

# Seconds that processes and threads get which have been told to end.
PATIENCE = 60.0
# What libraries keep for as long as the interpreter runs.
KEPT_FILES = ("pymp-", "matplotlib-")
KEPT_PROCESSES = (b"resource_tracker", b"forkserver")


def children():
    """Return the commands of the processes that this one has started and not waited for, by their ids; on Linux."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if int(parent) == os.getpid() and not any(name in command for name in KEPT_PROCESSES):
            found[int(folder.name)] = command.replace(b"\0", b" ").decode(errors="replace") or state.decode()
    return found


def threads():
    """Return the names of the threads that the end of the interpreter would wait for."""
    return {one.ident: one.name for one in threading.enumerate() if not one.daemon}


def left_in(folder):
    """Return what there is of processes, threads and temporary files, by a key for each."""
    files = [path.name for path in folder.iterdir() if not path.name.startswith(KEPT_FILES)]
    return {**children(), **threads(), **{name: name for name in files}}


def check_nothing_is_left(folder, before, whom):
    """Fail if something that was not there before stays for long."""
    end = time.monotonic() + PATIENCE
    while (
        left := {key: told for key, told in left_in(folder).items() if key not in before}
    ) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left, f"left behind by {whom}"


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """Keep BLAS from waiting for its own threads, which takes most of the time on a machine that is busy."""
    with threadpool_limits(1, user_api="blas"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder(tmp_path_factory):
    """Have temporary files of this process, and of those that it starts, in a folder where nobody else makes any."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        # What units of work cost here is measured anew, and kept where nobody else looks.
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("caches")))
        # That of fonts takes seconds to make.
        patch.setenv("MPLCONFIGDIR", os.environ.get("MPLCONFIGDIR") or str(caches / "matplotlib"))
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        before = left_in(folder)
        yield folder
        check_nothing_is_left(folder, before, "all tests")


@pytest.fixture(scope="module", autouse=True)
def nothing_outlives_its_module(request, own_temporary_folder):
    """Fail where a process, a thread or a temporary file of a module is still there when its tests are over."""
    before = left_in(own_temporary_folder)
    yield
    # Some share a cluster, see `tests/engines/conftest.py`: it ends with their folder.
    if not any(
        {"cluster", "on"} & set(item.fixturenames) for item in request.session.items if item.path == request.path
    ):
        check_nothing_is_left(own_temporary_folder, before, request.path.name)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """Leave nothing set that changes what commands print."""
    for name in command_line.UNSET:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kerntest(capfdbinary):
    """Run a command line in this process."""
    return partial(command_line.run_here, capfdbinary)


@pytest.fixture
def without_shifts(monkeypatch):
    """Tests that find nothing do not say what they would have found: it takes longer than they do."""
    for module in ("kerntest.inference.comparison", "kerntest.inference.features.block_sums"):
        monkeypatch.setattr(f"{module}.smallest_shift", lambda *_, **__: None)
