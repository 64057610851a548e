"""Where, and within how much memory, is computed, and what that will take.

An engine knows no statistics: it runs independent pieces of work, on threads of this process or elsewhere (`dask`, `gpu`),
and hands back their results in the order of the work, so that sums have a fixed order whatever runs side by side.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from kerntest.errors import UndecidedError, UsageError, option

if TYPE_CHECKING:
    from kerntest.engines.plan import Plan

Item = TypeVar("Item")
Result = TypeVar("Result")
# Called with (pieces done, pieces in all), from the thread that called the engine.
Progress: TypeAlias = Callable[[int, int], None]

# How finely the progress of a part is told.
PART = 1_000_000
# Told what is done that no progress tells of: its name when it begins, nothing when it is over.
_TOLD: ContextVar[Callable[[str], None]] = ContextVar("kerntest work", default=lambda _doing: None)

# Computing fewer kernel values takes some tens of milliseconds: less than it takes to send rows to a cluster.
FEW_ENTRIES = 2**22
# What tells a BLAS that is loaded on how many threads it computes.
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
# Results that are sums over all rows come in at most so many pieces: each of them may have to cross a network.
PIECES = 256
# The largest arrays that the C library of GNU may keep when they are freed.
HEAP_BYTES = 2**25
# What it calls the number of places from which threads take memory.
ARENA_MAX = -8


class Engine:
    """Runs independent pieces of work on threads of this process; the engines of other places are made of it.

    numpy and the FFT release the interpreter lock, so threads are enough. BLAS is held to one thread meanwhile: its
    own threads would compete with ours, and its rounding depends on their number.

    Attributes
    ----------
    name : {"local", "gpu", "dask"}
    threads : int
        How many pieces run at the same time; all processors that this process may use by default.
    memory : int or None
        Bytes that the computation may take in one process; None for the default limits of each method.
    dtype : str
        The float type in which everything is computed.
    device : str or None
        The GPU in words, where there is one.
    """

    name = "local"
    dtype = "float64"
    device: str | None = None

    def __init__(self, threads: int | None = None, memory: int | None = None) -> None:
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise UsageError(
                f"threads must be at least 1, not {threads!r}", hint="leave it out for all cores", code="usage.threads"
            )
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.threads = threads or available or 1
        self.memory = memory

    @property
    def here(self) -> Engine:
        """The threads of this process: for pieces that write into its memory, or are too small to be sent."""
        return self

    def send(self, array: Any) -> Any:
        """Return an array where work computes: itself, or a copy on a GPU, which numpy's functions take alike."""
        return array

    def map(
        self,
        work: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
        *,
        total: int | None = None,
    ) -> Iterator[Result]:
        """Yield work(item) for every item, in the order of `items`.

        `work` is a function of the item alone, without effect but its result: it may run in another process. `total` is the
        number of items where `items` has no length.
        """
        count = len(items) if isinstance(items, Sized) else total or 0
        keep_freed_memory()
        with one_blas_thread():
            done = itertools.count(1)
            # `enumerate` would hold each result while the next is computed.
            for result in self.results(work, items, count):
                yield result
                del result
                if progress is not None:
                    progress(next(done), count)

    def results(self, work: Callable[[Item], Result], items: Iterable[Item], count: int) -> Iterator[Result]:
        """Yield the results of about so many items."""
        workers = min(self.threads, count)
        if workers <= 1:
            yield from map(work, items)
            return
        with ThreadPoolExecutor(workers) as pool:
            # In a copy of the caller's context: how numpy treats overflow (np.errstate) is part of it.
            yield from in_order(lambda item: pool.submit(copy_context().run, work, item), items, workers)


@contextmanager
def told_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Let somebody know of all that is `doing` inside."""
    token = _TOLD.set(tell)
    try:
        yield
    finally:
        _TOLD.reset(token)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Let whoever waits know what is done inside, which may take long."""
    _TOLD.get()(what)
    try:
        yield
    finally:
        _TOLD.get()("")


def of_triangle(progress: Progress | None) -> Progress | None:
    """Return the progress of the lines of a triangle, of which each is shorter than the one before, by its entries."""
    if progress is None:
        return None
    return lambda done, lines: progress(done * (2 * lines - done + 1), lines * (lines + 1))


def part_of(progress: Progress | None, place: int, parts: int) -> Progress | None:
    """Return the progress of one of several parts of equal work, by its place from 0, as that of the whole."""
    if progress is None:
        return None
    return lambda done, total: progress(place * PART + PART * done // total, parts * PART)


def in_order(submit: Callable[[Item], Any], items: Iterable[Item], ahead: int) -> Iterator[Any]:
    """Yield the results of the futures of all items; so many are under way, so that few results wait for an earlier one."""
    window: deque[Any] = deque()
    try:
        for item in items:
            window.append(submit(item))
            if len(window) > ahead:
                yield window.popleft().result()
        while window:
            yield window.popleft().result()
    finally:
        for future in window:
            future.cancel()


def enough_for(engine: Engine, entries: float) -> Engine:
    """Return where to compute so many kernel values: the threads of this process where sending would take longer."""
    return engine if entries >= FEW_ENTRIES else engine.here


def in_pieces(items: Sequence[Item], most: int = PIECES) -> list[Sequence[Item]]:
    """Return items in at most so many runs of neighbours, equally long but for the last.

    They depend on the number of items alone, so that sums within and over them are the same on every engine.
    """
    size = max(1, -(-len(items) // most))
    return [items[start : start + size] for start in range(0, len(items), size)]


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Let the C library keep the memory of blocks for the next ones, up to 64 MB.

    glibc gives larger arrays back to the system and takes them anew, page by page, which costs more than a kernel
    function. What it takes for large grows, to at most 32 MB, with the arrays that were freed: so one is. In a process that
    is there for one command all threads take it from one place, or each would keep as much.
    """
    if ALONE.get() and (option := _of_c_library("mallopt")) is not None:
        option(ARENA_MAX, 1)
    np.empty(HEAP_BYTES - 2**16, dtype=np.uint8)


@contextmanager
def blas_threads(most: int) -> Iterator[None]:
    """Let BLAS compute on so many threads at most; libraries that are loaded inside start with as many."""
    usual = {library.filepath: library.num_threads for library in _blas()}
    full = max(usual.values(), default=most)
    most = min(most, full)
    held = [library for library in _blas() if usual[library.filepath] > most]
    named = {name: os.environ.get(name) for name in BLAS_VARIABLES}
    os.environ.update(dict.fromkeys(BLAS_VARIABLES, str(most)))
    for library in held:
        _set_threads(library, most)
    try:
        yield
    finally:
        for name, before in named.items():
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before
        for library in _blas():
            threads = usual.get(library.filepath, full)
            if library.num_threads != threads:
                _set_threads(library, threads)


class _Held:
    """How many hold BLAS to one thread, and how many threads each library, by its file, had before."""

    def __init__(self) -> None:
        self.lock, self.holders, self.threads = threading.Lock(), 0, dict[str, int]()


_HELD = _Held()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread, so that its rounding does not depend on the machine.

    Of several threads that do, the last one lets it go: until then a library that is loaded meanwhile is held too.
    """
    with _HELD.lock:
        _HELD.holders += 1
        for library in _blas():
            if (threads := library.num_threads) != 1:
                _HELD.threads.setdefault(library.filepath, threads)
                _set_threads(library, 1)
    try:
        yield
    finally:
        with _HELD.lock:
            _HELD.holders -= 1
            if not _HELD.holders:
                for library in _blas():
                    if threads := _HELD.threads.pop(library.filepath, 0):
                        _set_threads(library, threads)


def _set_threads(library: Any, threads: int) -> None:
    """Let a library compute on so many threads, whichever thread asks: threadpoolctl 3.8 heeds the first one alone, which must let go."""
    let_go = getattr(library, "clear_controlling_thread", lambda **_: None)
    let_go(force=True)
    library.set_num_threads(threads)
    let_go(force=True)


def _blas() -> list[Any]:
    return [one for one in _controller(len(sys.modules)).lib_controllers if one.user_api == "blas"]


def loaded_blas() -> list[dict[str, Any]]:
    """Return what is known of the BLAS libraries that are loaded."""
    return [one for one in _controller(len(sys.modules)).info() if one.get("user_api") == "blas"]


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:  # noqa: ARG001 - what was found is kept for as many modules
    """Return what holds BLAS back. Finding the libraries takes 2 ms: done again only when more modules are loaded."""
    return ThreadpoolController()


class Setting(NamedTuple):
    """An engine, who is told of plans from so many rows on, and the arrays of tables that were read and may be there still."""

    engine: Engine
    planned: Callable[[Plan], None] | None = None
    planned_from: int = 0
    read: Sequence[weakref.ref[Any]] = ()

    def taken(self, reckoned: float | None = None) -> float:
        """Return the bytes that the program and the tables take: measured where the process is there for one command.

        Elsewhere that many beside the program, or what the arrays of the tables take that were read.
        """
        if ALONE.get() and (resident := _resident_bytes()):
            later = REPORT_BYTES + ("scipy.linalg" not in sys.modules) * SCIPY_BYTES + ONLY_PLAN.get() * RUN_BYTES
            return resident - _free_bytes() + later
        if reckoned is None:
            reckoned = sum(array.nbytes for reference in self.read if (array := reference()) is not None)
        return PROGRAM_BYTES + reckoned


def _resident_bytes() -> int:
    """Return how much of the memory this process has now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - pathlib reads it in twice the time
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError, ValueError):
        return 0


class _Allocated(ctypes.Structure):
    """What the C library of GNU tells of its memory."""

    # Ten sizes, of which one is that of free blocks.
    _fields_ = tuple((name, ctypes.c_size_t) for name in (*"abcdefgh", "free", "top"))


def _free_bytes() -> int:
    """Return how much of the memory of this process is free for the next arrays; 0 where the C library does not tell."""
    if (tell := _of_c_library("mallinfo2")) is None:
        return 0
    tell.restype = _Allocated
    return int(tell().free)


def _of_c_library(name: str) -> Any:
    """Return a function of the C library; None where it has none."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None


def peak_bytes() -> int:
    """Return the most memory that this process has had, where it is there for one command alone; 0 where nobody says."""
    if not ALONE.get():
        return 0
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - as above
            return next((1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)
    except (OSError, ValueError, IndexError):
        return 0


# Whether this process is there for one command alone.
ALONE: ContextVar[bool] = ContextVar("kerntest alone", default=False)
# Whether it ends with the plan.
ONLY_PLAN: ContextVar[bool] = ContextVar("kerntest only plan", default=False)
_USUAL = Setting(Engine())
CURRENT: ContextVar[Setting] = ContextVar("kerntest setting", default=_USUAL)


def engine_of(threads: int | None = None) -> Engine:
    """Return the engine that `compute_on` chose, or so many threads of this process, which mean nothing to the others."""
    # Whoever asks is about to have large arrays.
    keep_freed_memory()
    engine = CURRENT.get().engine
    return engine if threads is None or engine.name != "local" else Engine(threads, engine.memory)


# Memory

_AMOUNT = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
# What the program takes with its libraries, before there is any data; and the least that may be allowed.
PROGRAM_BYTES, SMALLEST = 110 * 10**6, 2 * 10**8
# What comes after a table has been read: what reports are written with, small arrays, and mostly scipy where it is not there yet.
REPORT_BYTES, SCIPY_BYTES = 18 * 10**6, 10**7
# By how much two processes that do the same differ: what one that ends with its plan accepts, one that goes on does.
RUN_BYTES = 6 * 10**6
# What reading text takes besides the text itself, for each value: numbers, their text, and where their rows begin.
BYTES_A_VALUE = 48


def parse_memory(amount: str | int) -> int:
    """Return an amount of memory in bytes: "4GB", "500 MB", "2GiB", or bytes."""
    found = _AMOUNT.fullmatch(str(amount)) if isinstance(amount, (str, int)) else None
    trouble = f"{str(amount)!r} is no amount of memory"
    if found is not None:
        size = float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2].lower() or " ")
        if SMALLEST <= size < math.inf:
            return int(size)
        unit = "" if found[2] else " byte" if size == 1 else " bytes"
        trouble = f"{str(amount).strip()}{unit} of memory is too little: the program itself takes {show_memory(PROGRAM_BYTES)}"
    raise UsageError(trouble, hint=f"write {option('memory', '4GB')}, or 500MB", code="usage.memory")


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
        message = f"{what} {show_memory(need)}, and {option('memory')} allows {show_memory(memory)}"
        raise UndecidedError(message, hint=hint, code="undecided.memory")


def machine_bytes() -> float:
    """Return the memory of this machine; infinite where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf


def allowed_bytes(usual: int) -> int:
    """Return the bytes that a method may hold: as many as it usually does, or two thirds of what `compute_on` allows."""
    memory = engine_of().memory
    return usual if memory is None else max(0, 2 * (memory - PROGRAM_BYTES) // 3)


def memory_to_hold(size: float) -> str | None:
    """Return the memory, as it is typed, of which a method may hold so many bytes; None where this machine has less."""
    needed = math.ceil((1.5 * size + PROGRAM_BYTES) / 1e9)
    return f"{needed}GB" if needed * 1e9 <= machine_bytes() else None


def bytes_to_read() -> float | None:
    """Return how many bytes of a file may be in memory now; None for any."""
    current = CURRENT.get()
    return None if current.engine.memory is None else max(0, current.engine.memory - current.taken())


def refuse_to_read(size: float, name: str) -> None:
    """Refuse to read what takes so many bytes, if that is more than is allowed beside all that was read before."""
    current = CURRENT.get()
    hint = f"give it more {option('memory')}, or a file of fewer rows or columns"
    refuse_beyond(size + current.taken(), current.engine.memory, f"reading {name} takes at least", hint)


def note_read(arrays: Iterable[Any]) -> None:
    """Take note of the arrays of a table that was read: they take memory for as long as somebody holds them."""
    current = CURRENT.get()
    if current.engine.memory is not None and isinstance(current.read, list):
        current.read.extend(weakref.ref(array) for array in arrays)


def fitting(engine: Engine, need: Callable[[int], float], *, what: str, hint: str) -> Engine:
    """Return the engine with as many threads as memory allows, of which so many `need` bytes.

    What one thread needs may be refused already; `what` says of whom, with its verb.
    """
    if engine.memory is None:
        return engine
    refuse_beyond(need(1), engine.memory, what, hint)
    threads = engine.threads
    while engine.name == "local" and threads > 1 and need(threads) > engine.memory:
        threads -= 1
    return engine if threads == engine.threads else Engine(threads, engine.memory)
