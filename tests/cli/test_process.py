"""What only a real process shows: signals, closed pipes, full disks, locales, threads that do not stop."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from command_line import environment, run_process

posix = pytest.mark.skipif(os.name != "posix", reason="signals, pipes and devices of POSIX")

# `kerntest` with a stand-in for the numerics, whose behaviour the name of the first file chooses.
PROGRAM = """
import faulthandler, hashlib, signal, sys, threading, time, types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from example_results import two_sample_result
from kerntest.cli import console, main
from kerntest.report import write

# What hangs tells where, and ends.
faulthandler.dump_traceback_later(120, exit=True)

def work():
    while True:
        sum(range(1000))

def mmd_test(x, y, **options):
    if x == "busy":
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(work) for _ in range(2)]
            print("ready", file=sys.stderr, flush=True)
            futures[0].result()
    if x == "deaf":
        print("ready", file=sys.stderr, flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
    if x == "bar":
        with ThreadPoolExecutor(1) as pool:
            pool.submit(work)
            options["progress"](1, 2)
    if x == "unseen":
        with ThreadPoolExecutor(1) as pool:
            # Where a signal reaches another thread, the main one goes on waiting for its lock.
            def interrupt():
                time.sleep(0.1)
                signal.pthread_kill(threading.get_ident(), signal.SIGINT)
                work()
            pool.submit(interrupt).result()
    if x == "slow-write":
        def fsync(descriptor):
            print("ready", file=sys.stderr, flush=True)
            time.sleep(600)
        write.os.fsync = fsync
        # However slow the machine, there is time to clean up.
        main.SECONDS_TO_UNWIND = 600
    if x == "bug":
        raise ZeroDivisionError("oops")
    if x == "long":
        return two_sample_result(columns=tuple(f"column_{index}" for index in range(100_000)))
    return two_sample_result(names=(x, y), warnings=("careful",))

if hasattr(signal, "pthread_sigmask"):
    # What started the tests may hold interrupts back.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # Or have told them to outlive its terminal.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
console.PATIENCE_SECONDS = 0
module = types.ModuleType("kerntest.inference.two_sample")
module.mmd_test = mmd_test
sys.modules["kerntest.inference.two_sample"] = module
main.main()
"""


@contextmanager
def started(*arguments, **options):
    """Run the program meanwhile; whatever happens, it has ended afterwards."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **options}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], **options) as process:
        try:
            yield process
        finally:
            process.kill()


def until_ready(process):
    """Wait for the program to say that it is at work; one that says anything else is told in full."""
    line = process.stderr.readline()
    assert line == b"ready\n", (line + process.communicate(timeout=600)[1]).decode()


def finish(*arguments, **options):
    with started(*arguments, **options) as process:
        out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def test_a_bug_is_70_through_the_whole_process():
    code, out, err = finish("mmd", "bug", "y")
    assert (code, out) == (70, b"")
    assert err.startswith(b"error: internal error: ZeroDivisionError")
    assert b"Traceback" not in err


@posix
def test_json_is_utf8_in_any_locale_and_needs_no_stderr():
    plain = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
    code, out, err = finish("mmd", "größe.csv", "y", "--json", stderr=subprocess.DEVNULL, env=plain)
    assert (code, err) == (0, None)
    document = json.loads(out.decode("utf-8"))
    assert document["provenance"]["inputs"][0]["name"].encode("utf-8", "surrogateescape") == "größe.csv".encode()
    assert document["warnings"] == ["careful"]
    code, out, err = finish("mmd", "x", "y", "--null", "größe", "--json", env=plain)
    assert (code, out) == (2, b"")
    assert json.loads(err.decode("ascii"))["error"]["code"] == "usage.choice"


@posix
@pytest.mark.parametrize("arguments", [["mmd", "long", "y", "--json"], ["mmd", "--help"]])
def test_a_closed_stdout_is_141_and_silent(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        code, _, err = finish(*arguments, stdout=writer)
    finally:
        os.close(writer)
    # The shell shows a death by signal 13 as 128 + 13 = 141.
    assert code == -signal.SIGPIPE
    assert err == b""


@posix
def test_an_interruption_ends_what_does_not_listen():
    with started("mmd", "deaf", "y") as process:
        until_ready(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


@posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux")
@pytest.mark.parametrize("arguments", [["mmd", "x", "y"], ["--help"]])
def test_a_full_disk_is_3(arguments):
    with Path("/dev/full").open("wb") as full:
        code, _, err = finish(*arguments, stdout=full)
    assert code == 3
    assert b"no space left on device" in err.lower()
    assert b"Traceback" not in err
    assert b"Exception ignored" not in err


ENDINGS = {"SIGINT": (130, "interrupted"), "SIGTERM": (143, "terminated"), "SIGHUP": (129, "hung up")}


LOADING = """
import os, signal, sys, types
import kerntest.__main__ as program
loading = types.ModuleType("kerntest.cli.main")
loading.main = lambda: os.kill(os.getpid(), signal.SIGINT)
sys.modules["kerntest.cli.main"] = loading
program.main()
"""


@posix
def test_an_interruption_while_the_program_loads_is_no_traceback():
    ended = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, timeout=600, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


@posix
def test_a_signal_that_does_not_wake_the_main_thread_ends_the_run():
    assert finish("mmd", "unseen", "y") == (130, b"", b"interrupted\n")


@posix
@pytest.mark.parametrize("name", ENDINGS)
def test_a_signal_ends_busy_threads(name):
    code, told = ENDINGS[name]
    with started("mmd", "busy", "y") as process:
        until_ready(process)
        process.send_signal(getattr(signal, name))
        # The threads never end by themselves.
        out, err = process.communicate(timeout=600)
    assert process.returncode == code
    assert (out, err) == (b"", f"{told}\n".encode())


def rest_of(terminal):
    """Return what comes from a terminal until nobody writes to it any more."""
    shown = b""
    with suppress(OSError):  # Linux says end of file so
        while piece := os.read(terminal, 4096):
            shown += piece
    return shown


@posix
@pytest.mark.parametrize("signals", [1, 2])
def test_an_interruption_wipes_the_progress_bar(signals):
    pty = pytest.importorskip("pty")

    ours, theirs = pty.openpty()
    shown = b""
    try:
        with started("mmd", "bar", "y", stderr=theirs, env=environment(TERM="xterm")) as process:
            os.close(theirs)
            while not shown.endswith(b"50%"):
                shown += os.read(ours, 4096)
            for _ in range(signals):
                process.send_signal(signal.SIGINT)
                # Two that come at once are one.
                time.sleep(0.02)
            shown += rest_of(ours)
            process.communicate(timeout=600)
    finally:
        os.close(ours)
    assert process.returncode == 130
    wipe, after = b"\r\x1b[2K", shown.partition(b"50%")[2]
    assert after.startswith(wipe)
    assert after.replace(wipe, b"") in ([b"interrupted\r\n"] if signals == 1 else [b"interrupted\r\n", b""])


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_while_writing_leaves_the_old_file(tmp_path, name):
    target = tmp_path / "result.json"
    target.write_text("old")
    with started("mmd", "slow-write", "y", "--json", "-o", str(target)) as process:
        until_ready(process)
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(getattr(signal, name))
        _, err = process.communicate(timeout=600)
    code, told = ENDINGS[name]
    assert process.returncode == code
    assert json.loads(err)["error"]["exit_code"] == code
    assert json.loads(err)["error"]["message"] == told
    assert target.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


@posix
def test_a_closed_stdout_descriptor_is_3():
    command = [sys.executable, "-c", PROGRAM, "mmd", "x", "y"]
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    done = subprocess.run(closed, capture_output=True, env=environment(), timeout=600, check=False)
    assert done.returncode == 3
    assert b"the standard output is closed" in done.stderr


@posix
@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colours_on_a_terminal_obey_no_color(no_color, coloured):
    pty = pytest.importorskip("pty")

    ours, theirs = pty.openpty()
    try:
        with started("mmd", "x", "y", stdout=theirs, env=environment(NO_COLOR=no_color, TERM="xterm")) as process:
            os.close(theirs)
            shown = rest_of(ours)
            process.communicate(timeout=600)
    finally:
        os.close(ours)
    assert process.returncode == 0
    assert (b"\x1b[" in shown) is coloured
    assert b"Decision: The two files differ" in shown


@posix
@pytest.mark.parametrize(("columns", "width"), [("", 60), ("80", 80)])
def test_what_a_pager_shows_is_as_wide_as_its_terminal(columns, width):
    pty = pytest.importorskip("pty")
    termios = pytest.importorskip("termios")

    ours, theirs = pty.openpty()
    try:
        termios.tcsetwinsize(theirs, (24, 60))
        with started("mmd", "x", "y", stderr=theirs, env=environment(COLUMNS=columns)) as process:
            os.close(theirs)
            shown, _ = process.communicate(timeout=600)
    finally:
        os.close(ours)
    assert max(map(len, shown.decode().splitlines())) in range(width - 12, width + 1)


def test_python_m_kerntest_is_kerntest():
    done = run_process("mdm")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == ["error: no such command: 'mdm'", "hint: did you mean `kerntest mmd`?"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of a process as Linux counts it")
@pytest.mark.parametrize(
    ("rows", "options"), [(2500, []), (25_000, ["--method", "features", "--features", "nystroem:20"])]
)
def test_what_memory_accepts_stays_below_it(tmp_path, rows, options):
    for name, seed in (("x.csv", 0), ("y.csv", 1)):
        table = np.random.default_rng(seed).normal(size=(rows, 5))
        np.savetxt(tmp_path / name, table, "%.6g", ",", header="a,b,c,d,e", comments="")
    words = [sys.executable, "-m", "kerntest", "mmd", "x.csv", "y.csv", *options, "--memory", "200MB", "--threads", "1"]
    plan = json.loads(subprocess.check_output([*words, "--dry-run", "--json"], cwd=tmp_path, env=environment()))
    # A shift is looked for among rows that do not differ. The peak of a process counts that of the one that it was started from.
    program = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)"
    program += "; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    watched = [sys.executable, "-c", program, *words, "-q"]
    peak = 1024 * int(subprocess.check_output(watched, cwd=tmp_path, env=environment()))
    assert peak <= 200e6
    assert peak <= 1.05 * plan["memory_bytes"] <= 1.4 * peak
