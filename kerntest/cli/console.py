"""What people see beside results, on stderr: messages, errors in our own words, and the progress bar."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import stat
import sys
import textwrap
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib import import_module
from itertools import takewhile
from typing import IO, Any

import click

from kerntest.cli.manual import DocumentedCommand, DocumentedGroup
from kerntest.cli.options import see_help
from kerntest.errors import DataError, KerntestError, UndecidedError, UsageError, called_elsewhere, suggest
from kerntest.report.summaries.words import visible

ProgressCallback = Callable[[int, int], None]
PIPED_WIDTH, NARROWEST, PICTURE_WIDTH = 100, 40, 72
PATIENCE_SECONDS = 1.0
# From when on the time left is known: the first pieces of the work are ready all at once, or much later than the others.
SECONDS_TO_JUDGE, SHARE_TO_JUDGE = 5.0, 0.05
SECONDS_A_TICK, SECONDS_FOR_A_TURN = 0.5, 1.0
# To the start of the line, and wipe it.
WIPED = "\r\x1b[2K"
# What shells add to the number of the signal that ended a process.
SHELL_SIGNAL = 128
COLOURS = {"error": "red", "warning": "yellow", "hint": "cyan"}
# Holds something while a line stands in place, and whose turn it is to write: that of the main thread, or the one of the line.
_IN_PLACE: list[bool] = []
_TURN = threading.RLock()
# Nothing stands in place any more where the process is about to end.
_ENDING = threading.Event()
# Quoted text of more than 200 characters, of which 60 are shown.
_LONG_QUOTE = re.compile(r"(['\"])((?:(?!\1).){60})(?:(?!\1).){141,}\1")


def say(text: str, *, label: str = "") -> None:
    """Write one message to stderr; on a terminal one with a label is broken between words, never inside one."""
    if label and is_terminal(sys.stderr):
        broken = textwrap.wrap(f"{label}: {text}", terminal_width(), break_long_words=False, break_on_hyphens=False)
        text = "\n".join(broken).removeprefix(f"{label}:").lstrip()
    if label and uses_colour(sys.stderr):
        label = click.style(f"{label}:", fg=COLOURS.get(label), bold=True)
    elif label:
        label += ":"
    write(f"{label} {text}\n" if label else f"{text}\n")


def write(text: str, *, in_place: bool = False) -> None:
    """Write to stderr; what stands `in_place` is wiped off its line by what is written next."""
    # A stderr that nobody reads holds up whoever writes to it, but not the end.
    mine = _TURN.acquire(timeout=SECONDS_FOR_A_TURN)
    try:
        if in_place and (_ENDING.is_set() or not mine):
            return
        shown = f"{WIPED}{text}" if _IN_PLACE else text
        if in_place:
            # Before it is written: a signal may come at any time.
            _IN_PLACE[:] = [True]
        # A stderr that is closed, full, or in the middle of what a signal has interrupted is no reason to fail.
        with suppress(Exception):
            sys.stderr.write(shown)
            sys.stderr.flush()
        if not in_place:
            _IN_PLACE.clear()
    finally:
        if mine:
            _TURN.release()


def end(text: str = "") -> None:
    """Write the last message; no line appears after it."""
    _ENDING.set()
    write(text)


def is_terminal(stream: IO[Any] | None) -> bool:
    """Whether somebody is looking at this stream, or typing into it."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def uses_colour(stream: IO[Any] | None) -> bool:
    """Whether to write colours to this stream: a terminal that has them, and no NO_COLOR (no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Return the width of the terminal, also of one that shows what goes into a pipe; 100 where there is none."""
    width = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns
    # A pager, or tail, writes to the terminal that stderr goes to.
    with suppress(OSError, ValueError, AttributeError):
        if not os.environ.get("COLUMNS") and stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode):
            width = min(width, os.get_terminal_size(sys.stderr.fileno()).columns or width)
    return max(NARROWEST, width)


@contextmanager
def progress_bar(*, quiet: bool, doing: str = "testing") -> Iterator[ProgressCallback | None]:
    """Give a function that shows (done, total) on stderr once a second has passed; None where nobody is looking."""
    if quiet or not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = _PatientBar(doing)
    # Only who computes has work that takes long.
    with import_module("kerntest.engines.engine").told_to(bar.begin):
        try:
            yield bar.advance
        finally:
            bar.close()


class _PatientBar:
    """A line that waits before it appears: what is done, how far that is and, once that tells it, the time left.

    `begin` and `advance` may be called from any thread. Another one draws the line anew each second, for nothing else may be
    heard of for minutes: then it says how long that has taken.
    """

    def __init__(self, doing: str) -> None:
        self._usual = self._doing = doing
        self._began = self._started = time.monotonic()
        self._appears = self._started + PATIENCE_SECONDS
        self._lock, self._drawn, self._over = threading.Lock(), "", threading.Event()
        # When, at how much and of how much what is under way was first seen; when last, at how much, in how many steps.
        self._first, self._last = (0.0, 0, 0), (0.0, 0, 0)
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def begin(self, doing: str) -> None:
        """Show that something else has begun, of which nobody knows how far it is; nothing in particular, what is usual."""
        with self._lock:
            self._doing = _in_one_line(visible(doing), 20) or self._usual
            self._began, self._first = time.monotonic() if doing else self._started, (0.0, 0, 0)

    def advance(self, done: int, total: int) -> None:
        """Show how far the usual work is."""
        now = time.monotonic()
        with self._lock:
            # What is whole tells of nothing that may come after it.
            if total != self._first[2] or done < self._last[1]:
                self._doing, self._began = self._usual, self._started
                self._first, self._last = (now, done, total), (now, done, 0)
            elif done > self._last[1]:
                self._last = now, done, self._last[2] + 1
            self._draw(now)

    def _go_on(self) -> None:
        """Draw the line each second."""
        while not self._over.wait(SECONDS_A_TICK):
            with self._lock:
                if not self._over.is_set():
                    self._draw(time.monotonic())

    def _draw(self, now: float) -> None:
        """Draw the line as it is now."""
        (since, start, total), (at, done, steps) = self._first, self._last
        if not total or (done >= total and now > at + SECONDS_A_TICK):
            line = f"{self._doing} {timedelta(seconds=int(now - self._began))}"
        else:
            share, left, taken = min(done / total, 1.0), "", at - since
            known = share >= SHARE_TO_JUDGE or (now - since >= 4 * SECONDS_TO_JUDGE and share >= SHARE_TO_JUDGE / 5)
            if now - since >= SECONDS_TO_JUDGE and known and done > start:
                # A step that takes longer than two of the others puts the end off.
                late = (now - since) if now - at > 2 * taken / max(steps, 1) else taken
                seconds = late * (total - done) / (done - start) - (now - at if late == taken else 0.0)
                left = f" {timedelta(seconds=max(round(seconds), 1))} left" if done < total else ""
            width = max(10, min(40, terminal_width() - len(self._doing) - 20))
            line = f"{self._doing} {'#' * round(share * width):.<{width}} {int(100 * share):>3}%{left}"
        if now >= self._appears and (line != self._drawn or not _IN_PLACE):
            self._drawn = line
            write(_in_one_line(line), in_place=True)

    def close(self) -> None:
        """Wipe the line off the screen."""
        self._over.set()
        with self._lock:
            # What is done later by threads that go on is not shown any more.
            self._appears = math.inf
            write("")


def _in_one_line(text: str, less: int = 0) -> str:
    """Return as much of a text as one line of the terminal has room for: a line that it breaks could not be wiped."""
    room = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns - 1 - less
    return next(text[:end] for end in range(len(text), -1, -1) if _cells(text[:end]) <= room or not end)


def _cells(text: str) -> int:
    """Return how many cells of the terminal a text takes: East Asian wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


class InterruptionError(KerntestError):
    """Ctrl-C, or another signal that ends a run: exit code 128 and its number."""


def _from_click(error: click.ClickException) -> KerntestError:
    """Return click's error as one of ours, with a hint."""
    ctx: Any = getattr(error, "ctx", None)
    see = see_help(ctx)
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        commands = ctx.command.documented() if isinstance(ctx.command, DocumentedGroup) else {}
        if owner := next((owner for owner, command in commands.items() if name in _option_names(command)), None):
            see = f"it stands after the command: `{ctx.command_path} {owner} ... {name}`"
        elif elsewhere := called_elsewhere(name.lstrip("-"), None, _option_names(ctx.command)):
            see = elsewhere
        elif close := suggest(
            name.lstrip("-"), list(plain := {one.lstrip("-"): one for one in _option_names(ctx.command)})
        ):
            see = f"did you mean {plain[close]}?"
        return UsageError(f"no such option: {name}", hint=see, code="usage.unknown_option", where={"value": name})
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return UsageError(
            f"missing argument {error.param.human_readable_name}",
            hint=f"the usage is `{ctx.command_path} {' '.join(ctx.command.collect_usage_pieces(ctx))}`; {see}",
            code="usage.missing_argument",
        )
    message = error.format_message().strip().replace("requires an argument", "needs a value")
    if message.startswith("Got unexpected extra argument"):
        see = f"quote names that contain blanks, and globs; {see}"
    where = None
    if isinstance(error, click.BadOptionUsage):
        where = {"value": error.option_name}
        see = ctx.command.about(ctx, error.option_name) if isinstance(ctx.command, DocumentedCommand) else see
    return UsageError(message[:1].lower() + message[1:].rstrip("."), hint=see, where=where)


def _option_names(command: click.Command) -> tuple[str, ...]:
    """Return the long names of the options of a command."""
    return (*(name for param in command.params for name in param.opts if name.startswith("--")), "--help")


def from_exception(error: BaseException) -> KerntestError:
    """Return any exception as one of our errors: memory and files are the user's world, the rest is a bug."""
    if isinstance(error, KerntestError):
        return error
    if isinstance(error, click.ClickException):
        return _from_click(error)
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        # Of a signal we have handled, its number and the word that tells of it.
        number, told = error.args or (signal.SIGINT, "interrupted")
        ended = InterruptionError(told, code=told.replace(" ", "_"))
        ended.exit_code = SHELL_SIGNAL + number
        return ended
    if isinstance(error, MemoryError):
        hint = "use fewer rows, by --sample or --where, or fewer columns"
        return UndecidedError("not enough memory", hint=hint, code="undecided.memory")
    if isinstance(error, OSError):
        return DataError(
            f"{f'{error.filename}: ' if error.filename else ''}{(error.strerror or str(error)).lower()}",
            hint="check the name, the permissions and the free space",
            code="data.system",
            where={"file": str(error.filename)} if error.filename else None,
        )
    return KerntestError(
        f"internal error: {type(error).__name__}: {error}",
        hint="this is a bug in kerntest: please report it with the output of the same command with KERNTEST_DEBUG=1",
    )


def report(error: KerntestError, *, as_json: bool) -> None:
    """Write an error to stderr: a line, a picture of the place in a kernel text, and a hint; or one line of JSON."""
    message = _brief(error.message)
    if as_json:
        told = {"code": error.code, "exit_code": error.exit_code, "message": message, "hint": error.hint}
        document = {"schema": "kerntest.error/1", "error": {**told, "where": error.where}}
        # ASCII, since stderr is in the locale's encoding; default, since an error must be told whatever is in it.
        say(json.dumps(document, default=str))
        return
    say(visible(message), label="" if isinstance(error, InterruptionError) else "error")
    text, position = error.where.get("text"), error.where.get("position")
    if isinstance(text, str) and text and isinstance(position, int):
        for line in picture(text, position):
            say(line)
    if error.hint is not None:
        say(visible(_brief(error.hint)), label="hint")


def _brief(text: str) -> str:
    """Return a message, of what it quotes at length only the beginning: a kernel may be of any length."""
    return _LONG_QUOTE.sub(lambda found: f"{found[1]}{found[2]}{found[1]}...", text)


def picture(text: str, position: int) -> tuple[str, str]:
    """Return a text and, below it, a caret under the character at `position`, counted from 1.

    Of a long text only the surroundings of the character are shown. A position behind the end points there.
    """
    index = min(max(position - 1, 0), len(text))
    start = max(0, min(index - PICTURE_WIDTH // 2, len(text) - PICTURE_WIDTH))
    before, after = visible(text[start:index]), visible(text[index : start + PICTURE_WIDTH])
    lead = "  ..." if start else "  "
    trail = "..." if start + PICTURE_WIDTH < len(text) else ""
    return f"{lead}{before}{after}{trail}", f"{' ' * (len(lead) + _cells(before))}^"


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON; it may be one that cannot be parsed."""
    # What stands behind -- is no option.
    options = list(takewhile(lambda argument: argument != "--", arguments))
    formats = re.findall(r"(?:^|\0)--format[=\0]([^\0]*)", "\0".join(options))
    return "--json" in options or (bool(formats) and formats[-1].casefold() in {"json", "jsonl"})
