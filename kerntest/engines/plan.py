"""Memory and time of a computation: what it may take, and the plan that says beforehand what it will.

Whoever computes counts bytes and operations; what an operation takes was measured once (`COSTS`), and how fast this
machine is beside that one a small Gram matrix tells.
"""

from __future__ import annotations

import math
import re
import time
import weakref
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.engine import Engine
from kerntest.errors import UndecidedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)
# What the program takes with its libraries, before there is any data.
PROGRAM_BYTES = 130 * 10**6
SMALLEST = 2 * 10**8
# What reading text takes besides the text itself, for each value: numbers, their text, and where their rows begin.
BYTES_A_VALUE = 48
# A table on its way from the file to the rows that are computed with: bytes for each number.
TABLE_BYTES = 64

# Seconds of one operation on one thread of a Xeon of 2.1 GHz with OpenBLAS (kerntest's own passes, timed at n = 1,000 to
# 8,000 and solved for the operations).
COSTS = {
    # The distance of two rows with all that is done once for a pair of them; a kernel of this distance, with its sums.
    "distance": 5e-9,
    "kernel": 1.5e-9,
    # An entry of a matrix in a block of lags, Fourier transform included; the product of two of them.
    "lag": 4e-9,
    "pair": 0.5e-9,
    # A multiplication with an addition inside a product of matrices.
    "product": 1e-10,
    # An entry of a matrix found at its relabelled place.
    "relabelled": 1.3e-9,
    # A cube of the rows in an eigendecomposition, per entry of that cube.
    "spectrum": 4e-10,
}
# The rows, columns and seconds of the small Gram matrix on that machine.
PROBE_ROWS, PROBE_COLUMNS, PROBE_SECONDS = 512, 16, 2e-3
# On a GPU a matrix must be large before it takes any time.
GPU_ROWS = 8192
# Starting a cluster of processes on this machine, in seconds.
CLUSTER_START = 4.0


def parse_memory(amount: str | int) -> int:
    """Return an amount of memory in bytes: "4GB", "500 MB", "2GiB", or bytes."""
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
    """Refuse what takes more bytes than were allowed (None: any); `what` names it, with its verb."""
    if memory is not None and need > memory:
        raise UndecidedError(
            f"{what} {show_memory(need)}, and --memory allows {show_memory(memory)}",
            hint=hint,
            code="undecided.memory",
        )


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is allowed while tables are read, and the arrays of those that were read and are still there."""

    memory: int
    arrays: list[weakref.ref[Any]] = field(default_factory=list)

    def taken(self) -> int:
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
    """Refuse to read what takes so many bytes, if that is more than is allowed beside all that was read before."""
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


@dataclass(frozen=True, slots=True)
class Plan:
    """A computation before it begins.

    Parameters
    ----------
    schema : str
    command : str
    method : str
        "exact" or "features"; of a learner, how it is solved.
    engine : str
        "local", "gpu" or "dask".
    where : str
        The engine in words.
    dtype : str
    rows, columns : int
    work : tuple of str
        What will be computed, step by step.
    memory_bytes : int
        What it takes in one process, about.
    memory_limit : int or None
        What was allowed.
    seconds : float
        About how long, mostly within a factor of three.
    """

    schema: str
    command: str
    method: str
    engine: str
    where: str
    dtype: str
    rows: int
    columns: int
    work: tuple[str, ...]
    memory_bytes: int
    memory_limit: int | None
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        return asdict(self)


# Who is told of plans, and from how many rows on.
_LISTENER: ContextVar[tuple[Callable[[Plan], None], int] | None] = ContextVar("kerntest plans", default=None)


@contextmanager
def telling(listener: Callable[[Plan], None] | None, rows: int) -> Iterator[None]:
    """Tell the listener of every computation inside the `with` on tables of so many rows or more."""
    token = _LISTENER.set(None if listener is None else (listener, rows))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def plan_wanted(rows: int) -> bool:
    """Whether anybody listens to the plan of a table with so many rows."""
    listening = _LISTENER.get()
    return listening is not None and rows >= listening[1]


def fitting(engine: Engine, held: Callable[[int], float], *, what: str, hint: str) -> Engine:
    """Return the engine with as many threads as memory allows, of which so many hold `held` bytes beside the program.

    Raises
    ------
    UndecidedError
        If one thread takes more than is allowed already; `what` says of whom, with its verb.
    """
    if engine.memory is None:
        return engine
    refuse_beyond(PROGRAM_BYTES + held(1), engine.memory, what, hint)
    if engine.name != "local":
        return engine
    threads = engine.threads
    while threads > 1 and PROGRAM_BYTES + held(threads) > engine.memory:
        threads -= 1
    return Engine(threads, engine.memory)


def tell(
    command: str,
    rows: int,
    columns: int,
    *,
    steps: tuple[str, ...],
    held: float,
    operations: Mapping[str, float],
    engine: Engine,
    method: str = "exact",
    besides: float = 0.0,
    refusal: tuple[str, str] | None = None,
) -> None:
    """Refuse what takes more memory than is allowed, and tell the plan of what does not to whoever listens.

    Parameters
    ----------
    command : str
    rows, columns : int
    steps : tuple of str
        What will be computed.
    held : float
        Bytes beside the program.
    operations : mapping from str to float
        How many of each of `COSTS`, in all threads together.
    engine : Engine
    method : str
    besides : float
        Seconds that are known already.
    refusal : (str, str), optional
        What takes too much memory, with its verb, and what takes less.

    Raises
    ------
    UndecidedError
        As above.
    """
    if refusal is not None:
        refuse_beyond(PROGRAM_BYTES + held, engine.memory, *refusal)
    listening = _LISTENER.get()
    if listening is None or rows < listening[1]:
        return
    seconds = sum(COSTS[name] * count for name, count in operations.items()) * _pace(engine) / engine.threads
    if engine.name == "dask":
        seconds += CLUSTER_START
    listening[0](
        Plan(
            schema="kerntest.plan/1",
            command=command,
            method=method,
            engine=engine.name,
            where=_described(engine),
            dtype=engine.dtype,
            rows=rows,
            columns=columns,
            work=steps,
            memory_bytes=int(PROGRAM_BYTES + held),
            memory_limit=engine.memory,
            seconds=besides + seconds,
        )
    )


def prepare_fit(
    command: str,
    rows: int,
    columns: int,
    *,
    method: str,
    step: str,
    held: float,
    operations: Mapping[str, float],
    engine: Engine,
) -> None:
    """Tell the plan of a fit, which threads of this process compute, as `tell`."""
    tell(
        command,
        rows,
        columns,
        steps=(step,),
        held=TABLE_BYTES * rows * columns + held,
        operations=operations,
        engine=engine.here,
        method=method,
        refusal=(
            f"kerntest {command} of {rows:,} rows takes",
            "--features nystroem:500 takes less, or less with fewer features",
        ),
    )


def _pace(engine: Engine) -> float:
    """Return how long this machine takes for what took a second where the costs were measured."""
    rows = GPU_ROWS if engine.name == "gpu" else PROBE_ROWS
    points = engine.send(np.linspace(0.0, 1.0, rows * PROBE_COLUMNS).reshape(rows, PROBE_COLUMNS))
    fastest = min(_gram_seconds(points) for _ in range(3))
    return fastest / (PROBE_SECONDS * (rows / PROBE_ROWS) ** 2)


def _gram_seconds(points: Any) -> float:
    started = time.perf_counter()
    float(np.exp(points @ -points.T).sum())
    return time.perf_counter() - started


def _described(engine: Engine) -> str:
    """Return an engine in words."""
    if engine.name == "gpu":
        return str(engine.device)
    count = f"{engine.threads} thread{'' if engine.threads == 1 else 's'}"
    return f"{count} of this process" if engine.name == "local" else f"{count} of a Dask cluster"
