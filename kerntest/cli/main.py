"""The command line: builds the group of commands, runs one of them, and is the only place that leaves the process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from typing import TYPE_CHECKING, NoReturn

import click

from kerntest import __version__
from kerntest.cli import console
from kerntest.cli.manual import DocumentedGroup, Manual
from kerntest.errors import KerntestWarning, UsageError, as_typed
from kerntest.report.write import remove_temporary_files, written_together

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

PROGRAM = "kerntest"
COMPLETION_VARIABLE = "_KERNTEST_COMPLETE"
# What ends a run early, and is told; the exit code is that of a shell, 128 and the number of the signal.
ENDINGS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
SECONDS_TO_UNWIND, SECONDS_TO_ANSWER = 0.2, 1.5
# Held by the thread that tells of a failure, so that an interruption is told once, and whole.
_telling = threading.Lock()
_told = threading.Event()

# Where each command lives, and what it does in a few words: a command is loaded when it is asked for.
COMMANDS = {
    "mmd": ("mmd", "mmd", "Test whether files, or groups of rows, come from the same distribution."),
    "hsic": ("hsic", "hsic", "Test whether columns depend on one another."),
    "svm": ("learn", "svm", "Learn to predict a column: classes, numbers, outliers."),
    "ridge": ("learn", "ridge", "Learn to predict numbers, with intervals."),
    "kpca": ("learn", "kpca", "Find the shape of rows: principal components."),
    "cca": ("learn", "cca", "Find functions of some columns and of others that go together."),
    "unmix": ("learn", "unmix", "Find the independent sources of mixed columns."),
    "predict": ("apply", "predict", "Apply a model to the rows of a file."),
    "transform": ("apply", "transform", "Project rows on components, or go back from them."),
    "inspect": ("show", "inspect_file", "Show what a table or a model holds."),
    "kernels": ("show", "kernels", "List the kernels: formula, properties, when to use."),
    "completion": ("show", "completion", "Print the script for Tab completion in a shell."),
}

MANUAL = Manual(
    examples={
        "Do two files come from the same distribution?": "kerntest mmd before.csv after.csv",
        "Do the groups of one?": "kerntest mmd iris.csv --by species",
        "Which columns depend on one another?": "kerntest hsic machines.csv --pairwise",
        "Learn to predict a column, judged on rows held out": "kerntest svm iris.csv --target species --test-fraction "
        "0.3",
        "What shape do the rows have?": "kerntest kpca wine.csv --color cultivar --plot wine.png",
        "Which functions of these columns and of those go together?": "kerntest cca iris.csv --x 'sepal_*' --y 'petal_*'",
        "Which independent sources are the columns mixtures of?": "kerntest unmix mixed.csv --plot mixed.png",
        "Predict a number, with intervals": "kerntest ridge machines.csv --target wear_um --test-fraction 0.3",
        "Which kernels are there?": "kerntest kernels",
        "Stop a pipeline when the data have drifted": "kerntest mmd before.csv after.csv --fail-on reject",
    }
)


@click.group(
    PROGRAM,
    cls=DocumentedGroup,
    manual=MANUAL,
    homes=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
)
@click.version_option(__version__, "-V", "--version", prog_name=PROGRAM, message="%(prog)s %(version)s")
def group() -> None:
    """Kernel methods on tables.

    Two-sample tests and tests of independence with exact p-values, support vector machines, ridge regression, principal and independent components, from CSV or Parquet files to a table for people or JSON for programs.
    """


@as_typed()
def run(arguments: Sequence[str], *, alone: bool = False) -> int:
    """Run one command line, for which the process may be there alone; return its exit code. Failures become messages."""
    _told.clear()
    if not (arguments or os.environ.get(COMPLETION_VARIABLE)):
        # Help that nobody asked for is no result: a script that has lost its command must not go on.
        console.say(group.get_help(click.Context(group, info_name=PROGRAM, **group.context_settings)))
        return UsageError.exit_code
    try:
        if os.environ.get(COMPLETION_VARIABLE):
            from click.shell_completion import shell_complete  # noqa: PLC0415 - only a shell's Tab key needs it

            return shell_complete(group, {}, PROGRAM, COMPLETION_VARIABLE, os.environ[COMPLETION_VARIABLE])
        with (
            warnings.catch_warnings(),
            written_together(),
            group.make_context(PROGRAM, list(arguments), obj=alone) as context,
        ):
            # The command tells those of the result itself.
            warnings.simplefilter("ignore", KerntestWarning)
            return group.invoke(context) or 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one place where every error ends
        failure = console.from_exception(error)
        with _telling:
            if os.environ.get("KERNTEST_DEBUG", "0") not in {"", "0"}:
                console.say("".join(traceback.format_exception(error)).rstrip())
            console.report(failure, as_json=console.wants_json(arguments))
            _told.set()
        return failure.exit_code


def main() -> NoReturn:
    """Run the command line of this process and leave with its exit code."""
    _prepare_process()
    code = run(sys.argv[1:], alone=True)
    # Everything is written and closed. Threads of the libraries that read files may still be starting, and taking the
    # interpreter down around them can end in an abort.
    _leave_at_once(code)


def _prepare_process() -> None:
    """Make the process end as shells expect: at once when told to, silently when nobody reads the output."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    endings = {int(getattr(signal, name)): told for name, told in ENDINGS.items() if hasattr(signal, name)}
    unwinding = threading.Event()

    def unwind(number: int, frame: FrameType | None) -> None:
        """Let temporary files go; leave at once when told again."""
        del frame
        if unwinding.is_set():
            _leave_at_once(console.SHELL_SIGNAL + number)
        unwinding.set()
        raise KeyboardInterrupt(number, endings[number])

    for number in endings:
        # What was started with `nohup` is to go on.
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, unwind)
    if hasattr(signal, "pthread_kill"):
        seen, told = os.pipe()
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        threading.Thread(target=_see_to_the_end, args=(seen, unwinding, endings), daemon=True).start()
    if not sys.warnoptions and not os.environ.get("KERNTEST_DEBUG"):
        # What our libraries say to programmers is no message to users; ours go through the record.
        warnings.simplefilter("ignore")


def _see_to_the_end(seen: int, unwinding: threading.Event, endings: dict[int, str]) -> None:
    """Send the main thread a signal again that it has not handled a moment later, and end what does not end after it.

    A signal that comes just before the main thread waits for a lock, after Python has looked for signals, does not end the
    waiting; and unwinding does not end the process by itself: a pool of threads is left only when its threads are done.
    """
    main, since = threading.main_thread().ident, None
    while main is not None and (number := os.read(seen, 1)[0]) in endings:
        if unwinding.wait(SECONDS_TO_UNWIND):
            time.sleep(SECONDS_TO_UNWIND)
            # A stderr that nobody reads may hold up the telling, but not the end.
            _telling.acquire(timeout=1.0)
            _leave_at_once(console.SHELL_SIGNAL + number, "" if _told.is_set() else f"{endings[number]}\n")
        since = time.monotonic() if since is None else since
        if time.monotonic() - since > SECONDS_TO_ANSWER:
            # The main thread is inside a factorisation or a product, for who knows how long.
            _leave_at_once(console.SHELL_SIGNAL + number, f"{endings[number]}\n")
        signal.pthread_kill(main, number)


def _leave_at_once(code: int, message: str = "") -> NoReturn:
    """End the process without waiting for threads, leaving folders and the terminal as they were found."""
    remove_temporary_files()
    console.end(message)
    os._exit(code)
