"""What people see beside results: messages and the progress bar, on stderr."""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import IO, Any

ProgressCallback = Callable[[int, int], None]
PIPED_WIDTH = 100
NARROWEST = 40
PATIENCE_SECONDS = 1.0
# From when on the time left is known: the first pieces of the work are ready all at once, or much later than the others.
SECONDS_TO_JUDGE, SHARE_TO_JUDGE = 5.0, 0.05
# To the start of the line, and wipe it.
WIPED = "\r\x1b[2K"
# Holds something while a line stands in place.
_IN_PLACE: list[bool] = []


def say(text: str, *, label: str = "", whole: bool = False) -> None:
    """Write one message to stderr; a stderr that is closed or full is no reason to fail.

    On a terminal lines end between words, unless the text is to stay `whole`.
    """
    if sys.stderr is None:
        return
    shown = f"{label}: {text}" if label else text
    if not whole and is_terminal(sys.stderr):
        shown = textwrap.fill(shown, terminal_width(sys.stderr), break_long_words=False, break_on_hyphens=False)
    if label and uses_colour(sys.stderr):
        colour = {"error": "1;31", "warning": "1;33", "hint": "1;36"}.get(label, "1")
        shown = shown.replace(f"{label}:", f"\x1b[{colour}m{label}:\x1b[0m", 1)
    _write(f"{shown}\n")


def _write(text: str, *, in_place: bool = False) -> None:
    """Write to stderr; what stands `in_place` is wiped off its line by what is written next."""
    shown = f"{WIPED}{text}" if _IN_PLACE else text
    if in_place:
        # Before it is written: a signal may come at any time.
        _IN_PLACE[:] = [True]
    with suppress(OSError, ValueError):
        sys.stderr.write(shown)
        sys.stderr.flush()
    if not in_place:
        _IN_PLACE.clear()


def is_terminal(stream: IO[Any] | None) -> bool:
    """Whether somebody is looking at this stream, or typing into it."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def uses_colour(stream: IO[Any] | None) -> bool:
    """Whether to write colours to this stream: a terminal that has them, and no NO_COLOR (no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width(stream: IO[Any] | None = None) -> int:
    """Return the width of the terminal that a stream leads to, or stdout; 100 where there is none."""
    columns = PIPED_WIDTH
    with suppress(OSError, ValueError):
        columns = columns if stream is None else os.get_terminal_size(stream.fileno()).columns
    return max(NARROWEST, shutil.get_terminal_size((columns, 24)).columns)


@contextmanager
def progress_bar(*, quiet: bool, doing: str = "testing") -> Iterator[ProgressCallback | None]:
    """Give a function that draws (done, total) on stderr once a second has passed; None where nobody is looking."""
    if quiet or not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = _PatientBar(PATIENCE_SECONDS, doing)
    try:
        yield bar.advance
    finally:
        bar.close()


class _PatientBar:
    """A progress bar that waits before it appears; `advance` may be called from any thread.

    It is one line, which no thread of its own draws: nothing comes after what a run that is interrupted says last.
    """

    def __init__(self, patience: float, doing: str = "testing") -> None:
        self._doing = doing
        self._appears = time.monotonic() + patience
        self._lock = threading.Lock()
        self._drawn = ""
        # When and where the stage that is under way was first seen.
        self._since, self._from, self._total = 0.0, 0, 0

    def advance(self, done: int, total: int) -> None:
        """Show how far the work is."""
        now = time.monotonic()
        with self._lock:
            if total != self._total or done < self._from:
                self._since, self._from, self._total = now, done, total
            line = self._line(done, total, now - self._since)
            if now >= self._appears and line != self._drawn:
                self._drawn = line
                _write(line, in_place=True)

    def _line(self, done: int, total: int, seconds: float) -> str:
        """Return the bar with the share that is done, and once that tells it, the time left."""
        share = min(done / max(total, 1), 1.0)
        width = max(10, min(40, terminal_width() - len(self._doing) - 20))
        full = round(share * width)
        left = ""
        if seconds >= SECONDS_TO_JUDGE and share >= SHARE_TO_JUDGE and done > self._from:
            left = f" {timedelta(seconds=round(seconds * (total - done) / (done - self._from)))} left"
        return f"{self._doing} {'#' * full}{'.' * (width - full)} {int(100 * share):>3}%{left}"

    def close(self) -> None:
        """Wipe the bar off the screen."""
        with self._lock:
            # What is done later by threads that go on is not shown any more.
            self._appears = math.inf
            if self._drawn:
                _write("")
