"""Run `kerntest` in tests: in this process where that is enough, as a process of its own where it is not."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from kerntest.cli.main import run

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Outcome:
    """Exit code, stdout and stderr of one command line."""

    code: int
    out: str
    err: str


def run_here(capture, *arguments):
    """Run a command line in this process; `capture` is pytest's capfdbinary."""
    capture.readouterr()
    code = run([str(argument) for argument in arguments])
    sys.stdout.flush()
    captured = capture.readouterr()
    return Outcome(code, captured.out.decode(), captured.err.decode())


def environment(**variables):
    """Return the environment of a process that finds this checkout, with nothing set that changes what it prints."""
    plain = {name: value for name, value in os.environ.items() if name not in UNSET}
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**plain, "PYTHONPATH": os.pathsep.join(paths), **variables}


def run_process(*arguments, **options):
    """Run `python -m kerntest` with these arguments."""
    options = {"env": environment(), "stdin": subprocess.DEVNULL, "timeout": 120, **options}
    command = [sys.executable, "-m", "kerntest", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False, **options)
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def put_on_path(folder):
    """Make `kerntest` and `python` in `folder` mean this checkout and this interpreter; return the PATH for that."""
    folder.mkdir()
    for name, words in (("kerntest", "-m kerntest"), ("python", "")):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])


UNSET = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "KERNTEST_DEBUG", "TTY_COMPATIBLE", "_KERNTEST_COMPLETE"}
