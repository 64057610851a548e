"""Where blocks are computed: on threads of this process, or elsewhere (`dask`, `gpu`).

An engine knows no statistics: it runs independent pieces of work and hands back their results in the order of the
work, so that sums have a fixed order whatever runs side by side.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from threadpoolctl import ThreadpoolController

from kerntest.errors import UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

Item = TypeVar("Item")
Result = TypeVar("Result")
# Called with (pieces done, pieces in all), from the thread that called the engine.
Progress: TypeAlias = Callable[[int, int], None]

# Computing fewer kernel values takes some tens of milliseconds: less than it takes to send rows to a cluster.
FEW_ENTRIES = 2**22
# Results that are sums over all rows come in at most so many pieces: each of them may have to cross a network.
PIECES = 256


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
        self.threads = threads or available_threads()
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
        count = length(items, total)
        keep_freed_memory()
        with one_blas_thread():
            for done, result in enumerate(self._results(work, items, count), start=1):
                yield result
                if progress is not None:
                    progress(done, count)

    def _results(self, work: Callable[[Item], Result], items: Iterable[Item], count: int) -> Iterator[Result]:
        workers = min(self.threads, count)
        if workers <= 1:
            yield from map(work, items)
            return
        with ThreadPoolExecutor(workers) as pool:
            # In a copy of the caller's context: how numpy treats overflow (np.errstate) is part of it.
            yield from in_order(lambda item: pool.submit(copy_context().run, work, item), items, workers)


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


def length(items: Iterable[Item], total: int | None) -> int:
    """Return the number of items: as told, else as counted."""
    return len(items) if isinstance(items, Sized) else total or 0


def enough_for(engine: Engine, entries: float) -> Engine:
    """Return where to compute so many kernel values: the threads of this process where sending would take longer."""
    return engine if entries >= FEW_ENTRIES else engine.here


def in_pieces(items: Sequence[Item], most: int = PIECES) -> list[Sequence[Item]]:
    """Return items in at most so many runs of neighbours, equally long but for the last.

    They depend on the number of items alone, so that sums within and over them are the same on every engine.
    """
    size = max(1, -(-len(items) // most))
    return [items[start : start + size] for start in range(0, len(items), size)]


def show_memory(size: float) -> str:
    """Return an amount of memory as people read it: 1.4 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def available_threads() -> int:
    """Return the number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Let the C library keep the memory of blocks for the next ones, up to 64 MB.

    glibc gives larger arrays back to the system and takes them anew, page by page, which costs more than a kernel
    function. What it takes for large grows, to at most 32 MB, with the arrays that were freed: so one is.
    """
    import numpy as np  # noqa: PLC0415 - for this alone

    np.empty(2**25 - 2**16, dtype=np.uint8)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread, so that its rounding does not depend on the machine."""
    limit: AbstractContextManager[Any] = _controller(len(sys.modules)).limit(limits=1, user_api="blas")
    return limit


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Return what holds BLAS back. Finding the libraries takes 2 ms: done again only when more modules are loaded."""
    del modules
    return ThreadpoolController()
