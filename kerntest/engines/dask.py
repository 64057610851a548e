"""A cluster of Dask workers: one that runs somewhere, or processes of this machine.

Work is a task whose result lies on every worker; a task more is some items of it. Dask runs again what was lost with a
worker. Results come back in the order of the items, so that sums are taken alike on any number of workers.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Sized
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from itertools import cycle, islice
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.engine import Engine, Item, Result, in_order
from kerntest.errors import KerntestError, MissingExtraError, UndecidedError, UsageError, as_typed, option

try:
    import cloudpickle
    import dask
    import distributed
    from distributed.comm.core import CommClosedError
except ImportError as error:
    raise MissingExtraError(
        "a cluster needs Dask, which is not installed",
        hint="`pip install '.[dask]'` in the folder of kerntest, or `pip install dask distributed`",
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


# Their calls have no types.
Client: Any = distributed.Client
LocalCluster: Any = distributed.LocalCluster
# Tasks under way for each worker thread: one that runs, and others so that it never waits.
AHEAD = 3
# Tasks for each worker thread in all, where there are items enough: the scheduler needs a millisecond for each.
SHARE = 32
# Seconds that a scheduler gets to answer, and then to show a worker.
ANSWER = 10.0
WORKER_PATIENCE = 30.0
# How often a thread gets the time to begin.
BEGINNINGS = 10
# Seconds that connections get to close.
FAREWELL = 3.0
# Whose log records are kept off the terminal: what matters of them reaches the caller as exceptions.
LOGGERS = ("asyncio", "bokeh", "distributed", "tornado")
SILENT = logging.CRITICAL + 1
SETTINGS = {
    # Work may hold tables of any size.
    "distributed.admin.large-graph-warning-threshold": "1PB",
    # Dask has its processes hand back memory at every chance: half of our time would go into getting it again.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}


class DaskEngine(Engine):
    """Runs pieces of work on the workers of a cluster; those that are not worth sending on threads `here`."""

    name = "dask"

    def __init__(self, client: Any, here: Engine) -> None:
        super().__init__(max(1, sum(client.nthreads().values())), here.memory)
        self._client, self._here = client, here

    def __reduce__(self) -> tuple[type[Engine], tuple[int, int | None]]:
        """Work that holds its engine runs, on a worker, in the one thread that it has there."""
        return Engine, (1, self.memory)

    @property
    def here(self) -> Engine:
        """The threads of this process."""
        return self._here

    def results(self, work: Callable[[Item], Result], items: Iterable[Item], count: int) -> Iterator[Result]:
        """Yield the results of about so many items; a single one is not worth sending."""
        if isinstance(items, Sized) and count <= 1:
            yield from self._here.results(work, items, count)
            return
        for part in self._parts(work, iter(items), max(1, count // (SHARE * self.threads))):
            yield from part

    def _parts(self, work: Callable[[Any], Any], items: Iterator[Any], size: int) -> Iterator[list[Any]]:
        """Yield the results of so many items after another."""
        client = self._client
        try:
            packed = client.submit(bytes, cloudpickle.dumps(work), pure=False)
            # A copy for every worker, each the input of its share of the tasks: they would gather where a single one lies.
            options = {"allow_other_workers": True, "pure": False}
            copies = cycle([client.submit(bytes, packed, workers=[worker], **options) for worker in client.nthreads()])

            settings = np.geterr(), KerntestError.typed

            def submit(some: list[Any]) -> Any:
                # As bytes: Dask would look into tuples and lists for futures.
                return client.submit(_run, next(copies), cloudpickle.dumps(some), settings, pure=False)

            yield from in_order(submit, iter(lambda: list(islice(items, size)), []), AHEAD * self.threads)
        except distributed.KilledWorker as error:
            hint = "they may lack memory: start fewer on each machine, or give them more"
            raise _failed("the workers of the cluster were lost again and again", hint) from error
        except (distributed.CancelledError, CommClosedError) as error:
            hint = "look at its scheduler and its workers, then run this again"
            raise _failed("the cluster was lost, and did not come back", hint) from error


def _failed(message: str, hint: str) -> UndecidedError:
    return UndecidedError(message, hint=hint, code="undecided.cluster")


@lru_cache(maxsize=2)
def _unpacked(work: bytes) -> Any:
    """Return work on a worker, once for all of its items."""
    return cloudpickle.loads(work)


def _run(work: bytes, items: bytes, settings: tuple[dict[str, Any], bool]) -> list[Any]:
    """Return, on a worker, the results of some items, with overflow treated and errors told as where the work comes from."""
    overflow, typed = settings
    with np.errstate(**overflow), as_typed(typed=typed):
        return list(Engine(1).map(_unpacked(work), cloudpickle.loads(items)))


@contextmanager
def on_cluster(
    scheduler: str | None = None, workers: int | None = None, memory: int | None = None
) -> Iterator[DaskEngine]:
    """Connect to the cluster of a scheduler, or start one on this machine, and leave or end it afterwards."""
    here = Engine(workers, memory)
    with _silence(), ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="kerntest-", ignore_cleanup_errors=True))
        # Dask's scheduler would leave a folder among the temporary files.
        stack.enter_context(dask.config.set(SETTINGS | {"temporary-directory": folder}))
        client = _started(here.threads, folder, stack) if scheduler is None else _reached(scheduler, stack)
        yield DaskEngine(client, here)


def _reached(scheduler: str, stack: ExitStack) -> Any:
    """Return a client of a running cluster, to be closed with the stack."""
    try:
        distributed.comm.registry.get_backend(distributed.comm.addressing.parse_address(scheduler)[0])
        client = begun(Client, scheduler, timeout=ANSWER, set_as_default=False)
    except OSError as error:
        hint = "start one with `dask scheduler`, which prints its address"
        raise _failed(f"no Dask scheduler answers at {scheduler!r}", hint) from error
    except (TypeError, ValueError) as error:
        what, hint = "is no address of a scheduler", f"write {option('scheduler', 'tcp://HOST:8786')}"
        if scheduler.startswith(("tls:", "wss:")):
            what = "needs certificates, which Dask's configuration does not name"
            hint = "name them there under distributed.comm.tls"
        raise UsageError(f"{scheduler!r} {what}", hint=hint, code="usage.scheduler") from error
    except Exception as error:
        # What a stranger says is read as lengths and pickles, and can fail in any way.
        hint = "`dask scheduler` prints the address of one when it starts"
        raise _failed(f"what answers at {scheduler!r} is no Dask scheduler", hint) from error
    stack.callback(_leave, client)
    try:
        client.wait_for_workers(1, timeout=WORKER_PATIENCE)
    except TimeoutError as error:
        hint = f"start some with `dask worker {scheduler}`"
        raise _failed(f"the Dask scheduler at {scheduler!r} has no workers", hint) from error
    _look_over(client)
    return client


def _look_over(client: Any) -> None:
    """Refuse workers that could not do our work, or would do it differently."""

    def installed() -> str:
        # Inside another function, so that it travels by itself to where there may be no kerntest.
        from platform import python_version_tuple  # noqa: PLC0415 - runs elsewhere

        try:
            from kerntest import __version__  # noqa: PLC0415 - runs elsewhere
        except ImportError:
            return "no kerntest"
        return f"kerntest {__version__} on Python {'.'.join(python_version_tuple()[:2])}"

    ours = installed()
    for address, theirs in sorted(client.run(installed, on_error="return").items()):
        if theirs != ours:
            has = theirs if isinstance(theirs, str) else "a Python that cannot run ours"
            raise _failed(f"the worker at {address} has {has}, not {ours}", f"install {ours} on every worker")


def begun(kind: Any, *args: Any, **options: Any) -> Any:
    """Return a client or a cluster, whose thread Dask gives ten seconds to begin: a machine with other work needs more."""
    for _ in range(BEGINNINGS - 1):
        with suppress(AssertionError):
            return kind(*args, **options)
    return kind(*args, **options)


def _started(workers: int, folder: str, stack: ExitStack) -> Any:
    """Return a client of processes of this machine, to be ended with the stack."""
    with _interrupts_wait():
        try:
            cluster = begun(
                LocalCluster,
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                # Work is cut to the memory that it may take; workers that are paused or restarted would not help it.
                memory_limit=0,
                dashboard_address=None,
                # A free port, where the default warns of the second cluster on a machine.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                silence_logs=SILENT,
                local_directory=folder,
            )
        except (OSError, RuntimeError, TimeoutError) as error:
            hint = "in a script, put the call under `if __name__ == '__main__':`"
            hint += f"; or compute with {option('engine', 'local')}"
            raise _failed(f"no processes could be started on this machine: {error}", hint) from error
        stack.callback(_end, cluster)
        client = begun(Client, cluster, set_as_default=False)
        stack.callback(_leave, client)
    return client


def _leave(client: Any) -> None:
    # Whatever is wrong with a connection no longer matters.
    with suppress(Exception):
        client.close(timeout=FAREWELL)


def _end(cluster: Any) -> None:
    """End the processes of a cluster at once: asked to, they would finish their tasks first."""
    nannies = list(cluster.workers.values())
    for nanny in nannies:
        nanny.auto_restart = False
    # Closing fails where a worker is just being started in place of another, which it may be once: its auto_restart was
    # read before. What was half closed does not close again unless it is said to be running.
    for _ in range(2):
        _kill(nannies)
        try:
            cluster.close(timeout=FAREWELL)
        except Exception:  # noqa: BLE001 - of whatever kind: there is nothing else to do with it
            cluster.status = type(cluster.status).running
        else:
            break
    _kill(nannies)


def _kill(nannies: list[Any]) -> None:
    for nanny in nannies:
        if nanny.pid:
            with suppress(OSError):
                os.kill(nanny.pid, getattr(signal, "SIGKILL", signal.SIGTERM))


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Hold back Ctrl-C until after the block, and for good from the processes and threads that start inside.

    A terminal sends it to all of them: each would show a traceback, where only the caller has to decide what follows.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker  # noqa: PLC0415 - only where processes start

    # Starting inside the block it would let interrupts through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep log records of Dask, and of what it is built on, off the terminal."""
    with ExitStack() as stack:
        for name in {*LOGGERS, *(one for one in logging.root.manager.loggerDict if one.partition(".")[0] in LOGGERS)}:
            logger = logging.getLogger(name)
            if logger.level != logging.NOTSET or name in LOGGERS:
                stack.callback(logger.setLevel, logger.level)
                logger.setLevel(SILENT)
        yield
