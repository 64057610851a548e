"""Where and within how much memory is computed: chosen once, around everything, so that no statistic needs to know of it.

And the plan that says beforehand what a computation will take. Whoever computes counts bytes and operations; what an
operation takes was measured once (`COSTS`), and how fast this machine is beside that one a small Gram matrix tells.
"""

from __future__ import annotations

import math
import re
import time
import weakref
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from kerntest.engines.engine import Engine, show_memory
from kerntest.errors import UndecidedError, UsageError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

EngineName: TypeAlias = Literal["auto", "local", "gpu", "dask"]
ENGINES = ("auto", "local", "gpu", "dask")

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


class _Setting(NamedTuple):
    """An engine, who is told of plans from so many rows on, and the arrays of tables that were read and may be there still."""

    engine: Engine
    planned: Callable[[Plan], None] | None
    planned_from: int
    read: list[weakref.ref[Any]]

    def taken(self) -> int:
        """Return the bytes that the program and the tables take."""
        alive = [array for array in (reference() for reference in self.read) if array is not None]
        return PROGRAM_BYTES + sum(int(array.nbytes) for array in alive)


_CURRENT: ContextVar[_Setting | None] = ContextVar("kerntest setting", default=None)


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
    name = _chosen(engine, scheduler)
    allowed = None if memory is None else parse_memory(memory)
    with ExitStack() as stack:
        if name == "dask":
            from kerntest.engines.dask import on_cluster  # noqa: PLC0415 - only a cluster needs Dask

            made: Engine = stack.enter_context(on_cluster(scheduler, threads, allowed))
        elif name == "gpu":
            from kerntest.engines.gpu import GpuEngine  # noqa: PLC0415 - only a GPU needs its packages

            made = GpuEngine(threads, allowed)
        else:
            made = Engine(threads, allowed)
        token = _CURRENT.set(_Setting(made, planned, planned_from, []))
        try:
            yield made
        finally:
            _CURRENT.reset(token)


def _chosen(engine: str, scheduler: str | None) -> str:
    """Return the engine that the options mean."""
    if engine not in ENGINES:
        close = suggest(str(engine), ENGINES)
        raise UsageError(
            f"there is no engine {engine!r}",
            hint=f"did you mean {close!r}?" if close else "it is auto, local, gpu or dask",
            code="usage.engine",
        )
    if scheduler is not None and engine not in {"auto", "dask"}:
        raise UsageError(
            f"a scheduler is for the engine dask, not for {engine}",
            hint="leave out --engine, or --scheduler",
            code="usage.contradiction",
        )
    if engine == "auto":
        return "local" if scheduler is None else "dask"
    return engine


def engine_of(threads: int | None = None) -> Engine:
    """Return the engine that `compute_on` chose, or so many threads of this process, which mean nothing to the others."""
    current = _CURRENT.get()
    if current is None:
        return Engine(threads)
    if threads is not None and current.engine.name == "local":
        return Engine(threads, current.engine.memory)
    return current.engine


# Memory


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


def refuse_beyond(need: float, memory: int | None, what: str, hint: str) -> None:
    """Refuse what takes more bytes than were allowed (None: any); `what` names it, with its verb."""
    if memory is not None and need > memory:
        raise UndecidedError(
            f"{what} {show_memory(need)}, and --memory allows {show_memory(memory)}",
            hint=hint,
            code="undecided.memory",
        )


def allowed_bytes(usual: int) -> int:
    """Return the bytes that a method may hold: as many as it usually does, or two thirds of what `compute_on` allows."""
    memory = engine_of().memory
    return usual if memory is None else max(0, 2 * (memory - PROGRAM_BYTES) // 3)


def bytes_to_read() -> int | None:
    """Return how many bytes of a file may be in memory now; None for any."""
    current = _CURRENT.get()
    if current is None or current.engine.memory is None:
        return None
    return max(0, current.engine.memory - current.taken())


def refuse_to_read(size: float, name: str) -> None:
    """Refuse to read what takes so many bytes, if that is more than is allowed beside all that was read before."""
    current = _CURRENT.get()
    if current is not None:
        refuse_beyond(
            size + current.taken(),
            current.engine.memory,
            f"reading {name} takes at least",
            "give it more --memory, or fewer rows or columns; mmd and hsic read files of any size with --method features",
        )


def note_read(arrays: Iterable[Any]) -> None:
    """Take note of the arrays of a table that was read: they take memory for as long as somebody holds them."""
    current = _CURRENT.get()
    if current is not None and current.engine.memory is not None:
        current.read.extend(weakref.ref(array) for array in arrays)


def fitting(engine: Engine, held: Callable[[int], float], *, what: str, hint: str) -> Engine:
    """Return the engine with as many threads as memory allows, of which so many hold `held` bytes beside the program.

    What one thread holds may be refused already; `what` says of whom, with its verb.
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


# Plans


def plan_wanted(rows: int) -> bool:
    """Whether anybody listens to the plan of a table with so many rows."""
    current = _CURRENT.get()
    return current is not None and current.planned is not None and rows >= current.planned_from


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

    It holds so many bytes beside the program, and takes operations, of each of `COSTS` so many in all threads together,
    besides seconds that are known already. The refusal says what takes too much memory, with its verb, and what takes less.
    """
    if refusal is not None:
        refuse_beyond(PROGRAM_BYTES + held, engine.memory, *refusal)
    current = _CURRENT.get()
    if current is None or current.planned is None or rows < current.planned_from:
        return
    seconds = sum(COSTS[name] * count for name, count in operations.items()) * _pace(engine) / engine.threads
    current.planned(
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
            seconds=besides + seconds + (CLUSTER_START if engine.name == "dask" else 0.0),
        )
    )


def prepare_fit(command: str, rows: int, columns: int, *, step: str, held: float, engine: Engine, **told: Any) -> None:
    """Tell the plan of a fit, which threads of this process compute, as `tell`."""
    tell(
        command,
        rows,
        columns,
        steps=(step,),
        held=TABLE_BYTES * rows * columns + held,
        engine=engine.here,
        refusal=(
            f"kerntest {command} of {rows:,} rows takes",
            "--features nystroem:500 takes less, or less with fewer features",
        ),
        **told,
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
