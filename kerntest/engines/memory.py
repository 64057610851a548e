"""Amounts of memory: read from what people type, and shown as they read them."""

from __future__ import annotations

import math
import re
import weakref
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kerntest.errors import UndecidedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)
# What the program takes with its libraries, before there is any data.
PROGRAM_BYTES = 130 * 10**6
SMALLEST = 2 * 10**8
# What reading text takes besides the text itself, for each value: numbers, their text, and where their rows begin.
BYTES_A_VALUE = 48


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is allowed while tables are read, and the arrays of those that were read and are still there."""

    memory: int
    arrays: list[weakref.ref[Any]] = field(default_factory=list)

    def taken(self) -> int:
        """Return the bytes of the program and of the tables."""
        alive = [array for array in (reference() for reference in self.arrays) if array is not None]
        return PROGRAM_BYTES + sum(int(array.nbytes) for array in alive)


_READING: ContextVar[_Reading | None] = ContextVar("kerntest memory for reading", default=None)


@contextmanager
def reading_within(memory: int | None) -> Iterator[None]:
    """Refuse what is read inside the `with` where it would take more than so many bytes in all; None allows any."""
    token = _READING.set(None if memory is None else _Reading(memory))
    try:
        yield
    finally:
        _READING.reset(token)


def bytes_to_read() -> int | None:
    """Return how many bytes of a file may be in memory now; None for any."""
    reading = _READING.get()
    return None if reading is None else max(0, reading.memory - reading.taken())


def refuse_to_read(size: float, name: str) -> None:
    """Refuse to read what takes so many bytes, if that is more than is allowed beside all that was read before.

    Raises
    ------
    UndecidedError
        As above.
    """
    reading = _READING.get()
    if reading is not None:
        refuse_beyond(
            size + reading.taken(),
            reading.memory,
            f"reading {name} takes at least",
            "give it more --memory, or fewer rows or columns; mmd and hsic read files of any size with --method features",
        )


def note_read(arrays: Iterable[Any]) -> None:
    """Take note of the arrays of a table that was read: they take memory for as long as somebody holds them."""
    reading = _READING.get()
    if reading is not None:
        reading.arrays.extend(weakref.ref(array) for array in arrays)


def parse_memory(amount: str | int) -> int:
    """Return an amount of memory in bytes.

    Parameters
    ----------
    amount : str or int
        "4GB", "500 MB", "2GiB", or bytes.

    Raises
    ------
    UsageError
        If it is no amount, or less than 200 MB.
    """
    found = _AMOUNT.fullmatch(str(amount)) if isinstance(amount, (str, int)) else None
    if found is None:
        raise UsageError(
            f"{str(amount)!r} is no amount of memory", hint="write --memory 4GB, or 500MB", code="usage.memory"
        )
    size = float(found[1]) * _UNITS[(found[2] or "").lower()]
    if not SMALLEST <= size < math.inf:
        shown = str(amount).strip()
        if shown.isdigit():
            shown += " byte" if size == 1 else " bytes"
        raise UsageError(
            f"{shown} of memory is too little: the program itself takes 130 MB",
            hint="write --memory 4GB, or 500MB",
            code="usage.memory",
        )
    return int(size)


def show_memory(size: float) -> str:
    """Return an amount of memory as people read it: 1.4 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def refuse_beyond(need: float, memory: int | None, what: str, hint: str) -> None:
    """Refuse work that would take more memory than was allowed.

    Parameters
    ----------
    need : float
        Bytes that it takes.
    memory : int or None
        Bytes that were allowed; None for any.
    what : str
        What needs it, with its verb: "the blocks of 1,000,000 rows take".
    hint : str

    Raises
    ------
    UndecidedError
        As above.
    """
    if memory is not None and need > memory:
        raise UndecidedError(
            f"{what} {show_memory(need)}, and --memory allows {show_memory(memory)}",
            hint=hint,
            code="undecided.memory",
        )
