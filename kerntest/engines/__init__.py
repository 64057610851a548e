"""Where blocks are computed: `compute_on` chooses it once, around everything, so that no statistic needs to know of it."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from kerntest.engines.engine import CURRENT, Engine, Setting, blas_threads, parse_memory
from kerntest.errors import UsageError, option, shown_argument, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EngineName: TypeAlias = Literal["auto", "local", "gpu", "dask"]


@contextmanager
def compute_on(
    engine: EngineName = "auto",
    *,
    scheduler: str | None = None,
    memory: str | int | None = None,
    threads: int | None = None,
    planned: Callable[[Any], None] | None = None,
    planned_from: int = 0,
) -> Iterator[Engine]:
    """Compute what stands inside the `with` on an engine.

    Parameters
    ----------
    engine : {"auto", "local", "gpu", "dask"}
        "local": threads of this process. "gpu": a GPU, through PyTorch (extra `gpu`), for the passes over kernel
        matrices. "dask": a cluster (extra `dask`). "auto": the cluster where a scheduler is named, else local.
    scheduler : str, optional
        Address of a Dask scheduler, such as "tcp://10.0.0.1:8786"; without it "dask" starts a cluster of processes on
        this machine.
    memory : str or int, optional
        What the computation may take in one process: "4GB", or bytes.
    threads : int, optional
        Threads of this process, or processes of a cluster that is started here; all processors by default.
    planned : callable, optional
        Called with the plan of each computation before it begins.
    planned_from : int
        Only of tables with so many rows or more.

    Yields
    ------
    Engine

    Raises
    ------
    UsageError
        If an option is wrong, or options contradict each other.
    UndecidedError
        If there is no GPU, or no such cluster; MissingExtraError if a package is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import kerntest
    >>> rng = np.random.default_rng(0)
    >>> with kerntest.compute_on(threads=1, memory="1GB"):
    ...     kerntest.mmd_test(rng.normal(size=50), rng.normal(size=50) + 2.0).reject
    True
    """
    names = get_args(EngineName)
    if not isinstance(engine, str) or engine not in names:
        close = suggest(str(engine), names)
        hint = f"did you mean {close!r}?" if close else "it is auto, local, gpu or dask"
        raise UsageError(f"there is no engine {shown_argument(engine)}", hint=hint, code="usage.engine")
    if scheduler is not None and engine not in {"auto", "dask"}:
        raise UsageError(
            f"a scheduler is for the engine dask, not for {engine}",
            hint=f"leave out {option('engine')}, or {option('scheduler')}",
            code="usage.contradiction",
        )
    if not isinstance(scheduler, str | None):
        hint = "write 'tcp://HOST:8786'"
        raise UsageError(
            f"scheduler must be an address, not {shown_argument(scheduler)}", hint=hint, code="usage.scheduler"
        )
    allowed = None if memory is None else parse_memory(memory)
    with ExitStack() as stack:
        if engine == "dask" or scheduler is not None:
            from kerntest.engines.dask import on_cluster  # noqa: PLC0415 - only a cluster needs Dask

            made: Engine = stack.enter_context(on_cluster(scheduler, threads, allowed))
        elif engine == "gpu":
            from kerntest.engines.gpu import GpuEngine  # noqa: PLC0415 - only a GPU needs its packages

            made = GpuEngine(threads, allowed)
        else:
            made = Engine(threads, allowed)
        if threads is not None and made.name != "dask":
            # Its own threads are among those that were asked for.
            stack.enter_context(blas_threads(threads))
        token = CURRENT.set(Setting(made, planned, planned_from, []))
        try:
            yield made
        finally:
            CURRENT.reset(token)
