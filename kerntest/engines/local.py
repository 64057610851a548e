"""The process itself and its threads."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from threadpoolctl import ThreadpoolController

from kerntest.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from kerntest.engines.base import Item, Progress, Result


def available_threads() -> int:
    """Return the number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalEngine:
    """Runs pieces of work on threads of this process.

    numpy and the FFT release the interpreter lock, so threads are enough. BLAS is held to one thread meanwhile: its
    own threads would compete with ours, and its rounding depends on their number.

    Parameters
    ----------
    threads : int, optional
        How many; all processors that this process may use by default.
    memory : int, optional
        Bytes that the computation may take.

    Raises
    ------
    UsageError
        If `threads` is not positive.
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
    def here(self) -> LocalEngine:
        """The engine itself."""
        return self

    def send(self, array: Any) -> Any:
        """Return the array itself."""
        return array

    def map(
        self,
        work: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
        *,
        total: int | None = None,
    ) -> Iterator[Result]:
        """Yield work(item) for every item, in the order of `items`; see `Engine`."""
        count = length(items, total)
        keep_freed_memory()
        with one_blas_thread():
            for done, result in enumerate(_ordered(work, items, min(self.threads, count)), start=1):
                yield result
                if progress is not None:
                    progress(done, count)


def length(items: Iterable[Item], total: int | None) -> int:
    """Return the number of items: as told, else as counted."""
    return len(items) if isinstance(items, Sized) else total or 0


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


def _ordered(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    if workers <= 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        # A window of pieces is under way, so that finished results waiting for an earlier one stay few.
        window: deque[Future[Result]] = deque()
        for item in items:
            # In a copy of the caller's context: how numpy treats overflow (np.errstate) is part of it.
            window.append(pool.submit(copy_context().run, work, item))
            if len(window) > workers:
                yield window.popleft().result()
        while window:
            yield window.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
