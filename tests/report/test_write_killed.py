"""Writing when the world ends: the process killed, the disk full. The old file stays, or none is there."""

import os
import signal
import subprocess
import sys

import pytest
from command_line import ROOT, environment

posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

KILLED = """
import os, pathlib, signal, sys
from kerntest.report import write

def kill(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

# Between the temporary file, complete and on the disk, and its new name.
os.replace = os.rename = pathlib.Path.replace = pathlib.Path.rename = kill
write.write_file(sys.argv[1], "new\\n" * 1000)
"""
FULL = """
import resource, signal, sys
from kerntest.cli import main

# The system refuses to let any file grow beyond this; without the signal, write() fails as it does on a full disk.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
sys.argv = ["kerntest", *sys.argv[1:]]
main.main()
"""


def run(program, *arguments):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment())


@posix
@pytest.mark.parametrize("old", ["old", None])
def test_a_process_killed_before_the_rename_leaves_the_old_file_or_none(tmp_path, old):
    target = tmp_path / "result.json"
    if old is not None:
        target.write_text(old)
    done = run(KILLED, target)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (target.read_text() if target.exists() else None) == old
    # What a killed process cannot remove has a name that nobody takes for a result.
    left = [file.name for file in tmp_path.iterdir() if file != target]
    assert len(left) == 1
    assert left[0].startswith(".kerntest-")
    assert left[0].endswith(".tmp")


@posix
@pytest.mark.parametrize("old", ["old", pytest.param(None, marks=pytest.mark.thorough)])
def test_a_full_disk_is_exit_code_3_and_leaves_the_old_file_or_none(tmp_path, old):
    target = tmp_path / "result.json"
    if old is not None:
        target.write_text(old)
    data = ROOT / "sample_data"
    arguments = ["mmd", data / "iris_versicolor.csv", data / "iris_virginica.csv", "--permutations", "20", "--json"]
    done = run(FULL, *arguments, "-o", target)
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    assert "result.json" in done.stderr
    assert "Traceback" not in done.stderr
    assert (target.read_text() if target.exists() else None) == old
    assert [file for file in tmp_path.iterdir() if file != target] == []
