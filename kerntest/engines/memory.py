"""Amounts of memory: read from what people type, and shown as they read them."""

from __future__ import annotations

import math
import re

from kerntest.errors import UndecidedError, UsageError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)
# What the program takes with its libraries, before there is any data.
PROGRAM_BYTES = 130 * 10**6
SMALLEST = 2 * 10**8


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
        raise UsageError(
            f"{str(amount).strip()} of memory are too few: the program itself takes 130 MB",
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
