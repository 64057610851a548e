"""A cluster of Dask workers: one that runs somewhere, or processes of this machine.

Work is sent once to every worker, its large arrays once for all work that needs them; then a task is some items of it.
Results come back in the order of the items, so that sums are taken alike on any number of workers. A worker that dies
costs what it was computing: Dask runs that again elsewhere.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.local import LocalEngine, length
from kerntest.errors import UndecidedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Item, Progress, Result

# Tasks under way for each worker thread: one that runs, and others so that it never waits.
AHEAD = 3
# Tasks take about so many seconds: the scheduler needs a millisecond for each. More where an item alone does.
TASK_SECONDS = 0.2
# Items of more bytes travel by themselves, which Dask wants of large arguments.
LARGE_ITEMS = 2**20
# Arrays that no work needs any more stay on the workers, should later work need them, up to so many bytes.
KEPT_BYTES = 2**30
# So often in a row what lies on lost workers is sent again.
ROUNDS = 5
# Seconds that a cluster gets to show a worker.
WORKER_PATIENCE = 30.0


class DaskEngine:
    """Runs pieces of work on the workers of a cluster; `opened` makes one.

    Parameters
    ----------
    client : distributed.Client
    here : LocalEngine
        For pieces that are not worth sending.
    """

    name = "dask"
    dtype = "float64"
    device: str | None = None

    def __init__(self, client: Any, here: LocalEngine) -> None:
        self.threads = max(1, sum(client.nthreads().values()))
        self.memory = here.memory
        self._client, self._here = client, here
        self._store = _Store(client)

    @classmethod
    @contextmanager
    def opened(
        cls, scheduler: str | None = None, workers: int | None = None, memory: int | None = None
    ) -> Iterator[DaskEngine]:
        """Connect to a cluster, or start one on this machine, and leave or end it afterwards.

        Parameters
        ----------
        scheduler : str, optional
            Address of a running scheduler, such as "tcp://10.0.0.1:8786". Its workers need the same kerntest.
        workers : int, optional
            Processes of a cluster that is started here; all processors by default. Then a script must guard what it
            does by `if __name__ == "__main__":`, since every process reads it too.
        memory : int, optional
            Bytes that the computation may take in one process.

        Raises
        ------
        MissingExtraError
            If Dask is not installed.
        UsageError
            If the address is none, or `workers` is not positive.
        UndecidedError
            If no scheduler answers, no worker is there, or workers have no kerntest or another version of it.
        """
        from kerntest.engines.clusters import connected  # noqa: PLC0415 - only a cluster needs it

        here = LocalEngine(workers, memory)
        with connected(scheduler, here.threads) as client:
            yield cls(client, here)

    def __reduce__(self) -> tuple[type[LocalEngine], tuple[int, int | None]]:
        """Work that holds its engine runs, on a worker, in the one thread that it has there."""
        return LocalEngine, (1, self.memory)

    @property
    def here(self) -> LocalEngine:
        """The threads of this process."""
        return self._here

    def send(self, array: Any) -> Any:
        """Return the array itself: work takes its arrays along."""
        return array

    def map(
        self,
        work: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
        *,
        total: int | None = None,
    ) -> Iterator[Result]:
        """Yield work(item) for every item, in the order of `items`; see `Engine`.

        Raises
        ------
        UndecidedError
            If the cluster is lost, or loses workers again and again.
        """
        count = length(items, total)
        if isinstance(items, Sized) and count <= 1:
            yield from self._here.map(work, items, progress)
            return
        results = _Run(self._client, self._store, work, self.threads).results(iter(items), count)
        for done, result in enumerate(results, start=1):
            yield result
            if progress is not None:
                progress(done, count)


class _LostError(Exception):
    """Nothing could be sent: workers are lost."""


@dataclass(slots=True, eq=False)
class _Task:
    """Some items, and the future of their results; None as long as they are not under way."""

    items: list[Any]
    future: Any = None


class _Run:
    """One piece of work over many items."""

    def __init__(self, client: Any, store: _Store, work: Callable[[Any], Any], threads: int) -> None:
        from kerntest.engines.shipping import Shipped, pack  # noqa: PLC0415 - needs Dask

        body, self._arrays = pack(work)
        self._shipped = Shipped(body, list(self._arrays))
        self._client, self._store, self._threads = client, store, threads
        # Futures of the work and of its large arrays.
        self._sent: tuple[Any, list[Any]] | None = None
        # Items in one task, see `_learn`.
        self._together, self._left = 1, 0
        self._window: deque[_Task] = deque()
        self._losses = _losses()

    def results(self, items: Iterator[Any], count: int) -> Iterator[Any]:
        """Yield the results of the items."""
        self._left = count
        try:
            self._fill(items)
            while self._window:
                found = self._first()
                self._window.popleft()
                # Before the caller works on what was found, so that no worker waits for it.
                self._fill(items)
                yield from found
        finally:
            futures = [task.future for task in self._window if task.future is not None]
            if futures:
                self._client.cancel(futures, force=True)

    def _fill(self, items: Iterator[Any]) -> None:
        """Put tasks under way, up to the width of the window."""
        while len(self._window) < AHEAD * self._threads:
            # Towards the end tasks get shorter, so that all workers finish together.
            share = -(-self._left // (2 * self._threads)) if self._left else self._together
            some = list(islice(items, max(1, min(self._together, share))))
            if not some:
                break
            self._left = max(0, self._left - len(some))
            self._window.append(_Task(some))
        with suppress(_LostError):
            self._submit()

    def _first(self) -> list[Any]:
        """Return the results of the first task, sending what was lost with workers once more.

        Raises
        ------
        UndecidedError
            If it is lost again and again.
        """
        found: list[Any]
        for _ in range(ROUNDS):
            try:
                self._submit()
                found, seconds = self._window[0].future.result()
            except _LostError:
                self._await_workers()
            except self._losses:
                self._await_workers()
            else:
                self._learn(seconds / max(len(found), 1))
                return found
        raise UndecidedError(
            "the workers of the cluster were lost again and again",
            hint="they may lack memory: start fewer on each machine, or give them more",
            code="undecided.cluster",
        )

    def _learn(self, seconds: float) -> None:
        """Choose how many items a task takes from what one takes; the results do not depend on it."""
        wanted = int(TASK_SECONDS / max(seconds, 1e-6))
        self._together = max(1, min(wanted, 2 * self._together))

    def _submit(self) -> None:
        """Put all tasks of the window under way that are not.

        Raises
        ------
        _LostError
            If workers are lost meanwhile.
        """
        failures: tuple[type[Exception], ...] = (OSError, *self._losses)
        try:
            if self._sent is None:
                held = self._store.futures(self._arrays)
                self._sent = self._client.scatter([self._shipped], hash=False)[0], held
            for task in self._window:
                if task.future is None:
                    task.future = self._submitted(task.items, *self._sent)
        except failures as error:
            raise _LostError from error

    def _submitted(self, items: list[Any], work: Any, held: list[Any]) -> Any:
        import cloudpickle  # noqa: PLC0415 - comes with Dask

        from kerntest.engines.shipping import run  # noqa: PLC0415 - needs Dask

        # As bytes: Dask would look into tuples and lists for futures.
        packed = cloudpickle.dumps(items)
        if len(packed) > LARGE_ITEMS:
            (packed,) = self._client.scatter([packed], hash=False)
        return self._client.submit(run, work, held, packed, np.geterr(), pure=False)

    def _await_workers(self) -> None:
        """Take all that was sent and is not done for lost, and wait until there are workers again.

        Raises
        ------
        UndecidedError
            If there are none for a while.
        """
        self._store.forget()
        self._sent = None
        for task in self._window:
            if task.future is not None and task.future.status != "finished":
                task.future = None
        try:
            self._client.wait_for_workers(1, timeout=WORKER_PATIENCE)
        except OSError as error:
            raise UndecidedError(
                "the cluster was lost, and did not come back",
                hint="look at its scheduler and its workers, then run this again",
                code="undecided.cluster",
            ) from error


class _Store:
    """Arrays that lie on the workers, by their names: work that comes later finds those of earlier work."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._held: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def futures(self, arrays: Mapping[str, NDArray[Any]]) -> list[Any]:
        """Return a future for every array, sending those that are not there yet."""
        missing = [name for name in arrays if name not in self._held or self._held[name][0].status != "finished"]
        if missing:
            futures = self._client.scatter([arrays[name] for name in missing], hash=False)
            for name, future in zip(missing, futures, strict=True):
                self._held[name] = future, arrays[name].nbytes
            if sum(arrays[name].nbytes for name in missing) > LARGE_ITEMS:
                self._spread(futures)
        for name in arrays:
            self._held.move_to_end(name)
        excess = sum(size for _, size in self._held.values()) - KEPT_BYTES
        for name in [name for name in self._held if name not in arrays]:
            if excess <= 0:
                break
            # Workers drop it when no work under way needs it.
            excess -= self._held.pop(name)[1]
        return [self._held[name][0] for name in arrays]

    def _spread(self, futures: list[Any]) -> None:
        """Have every worker fetch arrays: tasks would gather where the arrays are.

        Dask's own broadcast waits for ever for a worker that died just before.
        """
        asked = [
            self._client.submit(_fetched, futures, workers=[worker], allow_other_workers=True, pure=False)
            for worker in self._client.nthreads()
        ]
        for one in asked:
            one.result()

    def forget(self) -> None:
        """Take nothing for granted: the next work sends all of its arrays."""
        self._held.clear()


def _fetched(values: Sequence[Any]) -> int:
    return len(values)


def _losses() -> tuple[type[Exception], ...]:
    """Return what a future raises when workers, and what lay on them, are lost."""
    from distributed import CancelledError, KilledWorker  # noqa: PLC0415 - optional
    from distributed.comm.core import CommClosedError  # noqa: PLC0415 - optional

    return CancelledError, KilledWorker, CommClosedError
