"""The plan of a computation before it runs: its memory by what it holds, its time by what its operations cost.

Whoever computes counts the operations; what each of them takes was measured once (`COSTS`), and how fast this machine is
beside that one a small Gram matrix tells.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.local import LocalEngine
from kerntest.engines.memory import PROGRAM_BYTES, refuse_beyond
from kerntest.engines.setting import announce, plan_wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kerntest.engines.base import Engine

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
# A table on its way from the file to the rows that are computed with: bytes for each number.
TABLE_BYTES = 64


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
    return LocalEngine(threads, engine.memory)


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
    if not plan_wanted(rows):
        return
    seconds = sum(COSTS[name] * count for name, count in operations.items()) * _pace(engine) / engine.threads
    if engine.name == "dask":
        seconds += CLUSTER_START
    announce(
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
