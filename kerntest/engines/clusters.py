"""Clusters of Dask workers: reached, or started on this machine; looked over, and left in silence."""

from __future__ import annotations

import logging
import os
import platform
import signal
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import kerntest
from kerntest.errors import MissingExtraError, UndecidedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds that a scheduler gets to answer, and then to show a worker.
ANSWER = 10.0
WORKER_PATIENCE = 30.0
# Seconds that connections get to close.
FAREWELL = 3.0
# Whose log records are kept off the terminal: what matters of them reaches the caller as exceptions.
LOGGERS = ("asyncio", "bokeh", "distributed", "tornado")
SILENT = logging.CRITICAL + 1


@contextmanager
def connected(scheduler: str | None, workers: int) -> Iterator[Any]:
    """Yield a client of a cluster: of a running one, or of processes of this machine that end with it.

    Parameters
    ----------
    scheduler : str or None
        Address of a running scheduler.
    workers : int
        Processes to start without it, of one thread each.

    Raises
    ------
    MissingExtraError, UsageError, UndecidedError
        See `DaskEngine.opened`.
    """
    try:
        import distributed  # noqa: PLC0415 - optional, and slow to load
    except ImportError as error:
        raise MissingExtraError(
            "a cluster needs Dask, which is not installed", hint="pip install 'kerntest[dask]'"
        ) from error
    with _silence(), ExitStack() as stack:
        if scheduler is None:
            yield _started(distributed, workers, stack)
        else:
            yield _reached(distributed, scheduler, stack)


def _reached(distributed: Any, scheduler: str, stack: ExitStack) -> Any:
    """Return a client of a running cluster, to be closed with the stack."""
    try:
        distributed.comm.registry.get_backend(distributed.comm.addressing.parse_address(scheduler)[0])
        client = distributed.Client(scheduler, timeout=ANSWER, set_as_default=False)
    except OSError as error:
        raise UndecidedError(
            f"no Dask scheduler answers at {scheduler!r}",
            hint="start one with `dask scheduler`, which prints its address",
            code="undecided.cluster",
        ) from error
    except (TypeError, ValueError) as error:
        encrypted = scheduler.startswith(("tls:", "wss:"))
        raise UsageError(
            f"{scheduler!r} needs certificates, which Dask's configuration does not name"
            if encrypted
            else f"{scheduler!r} is no address of a scheduler",
            hint="name them there under distributed.comm.tls" if encrypted else "write --scheduler tcp://HOST:8786",
            code="usage.scheduler",
        ) from error
    except Exception as error:
        # What a stranger says is read as lengths and pickles, and can fail in any way.
        raise UndecidedError(
            f"what answers at {scheduler!r} is no Dask scheduler",
            hint="`dask scheduler` prints the address of one when it starts",
            code="undecided.cluster",
        ) from error
    stack.callback(_leave, client)
    try:
        client.wait_for_workers(1, timeout=WORKER_PATIENCE)
    except TimeoutError as error:
        raise UndecidedError(
            f"the Dask scheduler at {scheduler!r} has no workers",
            hint=f"start some with `dask worker {scheduler}`",
            code="undecided.cluster",
        ) from error
    _look_over(client)
    return client


def _look_over(client: Any) -> None:
    """Refuse workers that could not do our work, or would do it differently.

    Raises
    ------
    UndecidedError
        As above.
    """

    def versions() -> tuple[str | None, str]:
        # Inside another function, so that it travels by itself to where there may be no kerntest.
        from platform import python_version_tuple  # noqa: PLC0415 - runs elsewhere

        python = ".".join(python_version_tuple()[:2])
        try:
            from kerntest import __version__  # noqa: PLC0415 - runs elsewhere
        except ImportError:
            return None, python
        return __version__, python

    ours = kerntest.__version__, ".".join(platform.python_version_tuple()[:2])
    found = client.run(versions, on_error="return")
    for address, theirs in sorted(found.items()):
        if theirs == ours:
            continue
        if not isinstance(theirs, tuple):
            has = f"cannot run our Python {ours[1]}"
        elif theirs[0] is None:
            has = "has no kerntest"
        else:
            has = f"has kerntest {theirs[0]} on Python {theirs[1]}, not {ours[0]} on {ours[1]}"
        raise UndecidedError(
            f"the worker at {address} {has}",
            hint=f"install kerntest {ours[0]} with Python {ours[1]} on every worker",
            code="undecided.cluster",
        )


def _started(distributed: Any, workers: int, stack: ExitStack) -> Any:
    """Return a client of processes of this machine, to be ended with the stack."""
    from dask import config  # noqa: PLC0415 - optional

    folder = stack.enter_context(TemporaryDirectory(prefix="kerntest-", ignore_cleanup_errors=True))
    # Dask has its processes hand back memory at every chance: half of our time would go into getting it again. And its
    # scheduler would leave a folder among the temporary files.
    settings = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None, "temporary-directory": folder}
    with _interrupts_wait(), config.set(settings):
        try:
            cluster = distributed.LocalCluster(
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
            raise UndecidedError(
                f"no processes could be started on this machine: {error}",
                hint='in a script, put the call under `if __name__ == "__main__":`; or compute with --engine local',
                code="undecided.cluster",
            ) from error
        stack.callback(_end, cluster)
        client = distributed.Client(cluster, set_as_default=False)
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
    found = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in LOGGERS]
    loggers = [logging.getLogger(name) for name in {*found, *LOGGERS}]
    before = [(logger, logger.level) for logger in loggers if logger.level != logging.NOTSET or "." not in logger.name]
    for logger, _ in before:
        logger.setLevel(SILENT)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)
