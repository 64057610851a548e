"""Run `kerntest` in tests: in this process where that is enough, as a process of its own where it is not."""

import io
import os
import shlex
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from kerntest.cli.main import run

ROOT = Path(__file__).parents[1]
# What every command that reads tables hands on where nobody says how CSV is written.
CSV_AS_USUAL = {"decimal": "auto", "na": None, "delimiter": None, "encoding": None, "header": True, "comment": None}


@dataclass(frozen=True)
class Outcome:
    """Exit code, stdout and stderr of one command line."""

    code: int
    out: str
    err: str


def run_here(capture, *arguments, stdin=None):
    """Run a command line in this process, with a file as stdin; `capture` is pytest's capfdbinary."""
    capture.readouterr()
    before = sys.stdin
    with ExitStack() as stack:
        if stdin is not None:
            sys.stdin = stack.enter_context(Path(stdin).open(encoding="utf-8"))
            stack.callback(setattr, sys, "stdin", before)
        code = run([str(argument) for argument in arguments])
    sys.stdout.flush()
    captured = capture.readouterr()
    return Outcome(code, captured.out.decode(), captured.err.decode())


@contextmanager
def streams(stdin, stdout, stderr):
    """Let these files be descriptors 0, 1 and 2 of this process, and what Python reads and writes by them."""
    names, numbers = ("stdin", "stdout", "stderr"), range(3)
    before = [getattr(sys, name) for name in names]
    with ExitStack() as stack:
        for number, name, file in zip(numbers, names, (stdin, stdout, stderr), strict=True):
            if number:
                before[number].flush()
            kept = os.dup(number)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, number)
            os.dup2(file.fileno(), number)
            mode = "w" if number else "r"
            setattr(sys, name, stack.enter_context(open(number, mode, encoding="utf-8", closefd=False)))
            stack.callback(setattr, sys, name, before[number])
        yield


def run_line(line, *, stdout, stderr, code=0, home=None):
    """Run a line for a shell here, `kerntest` in this process, and return its exit code as with `pipefail`.

    It has commands between pipes, at most one file to write to, and `$?`, the exit `code` of the line before.
    """
    reader = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    reader.whitespace_split, reader.commenters = True, ""
    commands = [[]]
    for word in reader:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(str(code) if word == "$?" else word)
    *commands[-1], sign, name = commands[-1] if commands[-1][-2:-1] in ([">"], [">>"]) else [*commands[-1], "", ""]
    assert not any(set(word) <= set("|&;<>()`") for words in commands for word in words), f"too much of a line: {line}"
    codes = []
    with ExitStack() as stack:
        given = stack.enter_context(Path(os.devnull).open("rb"))
        files = [stack.enter_context(TemporaryFile()) for _ in commands[1:]]
        if sign:
            target = Path(name.replace("~", str(home), 1))
            stdout = stack.enter_context(target.open("ab" if sign == ">>" else "wb"))
        for words, written in zip(commands, [*files, stdout], strict=True):
            if words[0] == "kerntest":
                with streams(given, written, stderr):
                    codes.append(run(words[1:]))
            else:
                done = subprocess.run(words, stdin=given, stdout=written, stderr=stderr, timeout=600, check=False)
                codes.append(done.returncode)
            written.seek(0, os.SEEK_SET if written in files else os.SEEK_END)
            given = written
    return next(filter(None, reversed(codes)), 0)


def environment(**variables):
    """Return the environment of a process that finds this checkout and its tests, and nothing that changes what it prints."""
    plain = {name: value for name, value in os.environ.items() if name not in UNSET}
    paths = [str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**plain, "PYTHONPATH": os.pathsep.join(paths), **variables}


def modules_of(statement, *arguments):
    """Return the modules that a new interpreter has loaded after a statement, which may read arguments."""
    command = [sys.executable, "-c", f"import sys\n{statement}\nprint()\nprint(*sys.modules)", *map(str, arguments)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, timeout=600)
    return set(done.stdout.splitlines()[-1].split())


def run_process(*arguments, **options):
    """Run `python -m kerntest` with these arguments."""
    options = {"env": environment(), "stdin": subprocess.DEVNULL, "timeout": 600, **options}
    command = [sys.executable, "-m", "kerntest", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False, **options)
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


UNSET = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "KERNTEST_DEBUG", "TTY_COMPATIBLE", "_KERNTEST_COMPLETE"}


class Terminal(io.StringIO):
    def isatty(self):
        return True
