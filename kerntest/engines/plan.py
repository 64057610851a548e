"""What a computation will take, told before it begins: its work, counted, times what a unit of each kind costs here.

Whoever computes counts its work in a few kinds of units, and the bytes that it holds; what hangs on values that nobody has
seen yet is counted as least and as most. What units cost is measured once on a machine, in a third of a second, and kept in
the user's cache folder, by the versions of kerntest, numpy and BLAS and by the processor.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import kerntest
from kerntest.dataclass import dataclass
from kerntest.engines.engine import CURRENT, Engine, loaded_blas, one_blas_thread, peak_bytes, refuse_beyond

if TYPE_CHECKING:
    from collections.abc import Callable

# Units of work by their kind.
Work: TypeAlias = Mapping[str, float]
# Seconds of a unit on one thread of an AMD EPYC (Zen 3) with OpenBLAS: said where no costs are kept.
UNITS = {
    # A multiplication with an addition inside a product of matrices.
    "product": 4.5e-11,
    # A step over the entries of arrays of a megabyte; an exponential.
    "entry": 2.3e-10,
    "exp": 5.0e-9,
    # An entry of real transforms of some thousand entries.
    "fft": 2.9e-9,
    # An entry of a large matrix found at its relabelled place.
    "gather": 1.3e-9,
    # A cube of the rows in an eigendecomposition, per entry of that cube.
    "spectrum": 4.2e-10,
    # A call of numpy by the interpreter for a few numbers.
    "call": 4.8e-7,
    # A byte of text that is read as a number.
    "text": 2.4e-8,
}
# What was measured on a part of the work itself: processor time of one thread, of which the second is the unit.
SECOND = "second"
# A measurement is the least of so many.
REPEATS = 3
# Rows and columns of the Gram matrix by which a GPU is measured: it must be large to take any time.
GPU_ROWS, GPU_COLUMNS = 8192, 16
# Starting a cluster of processes on this machine, in seconds.
CLUSTER_START = 4.0
# A table on its way from the file to the rows that are computed with: bytes for each number, where they are not measured.
TABLE_BYTES = 64


@dataclass(frozen=True)
class Plan:
    """A computation before it begins.

    Parameters
    ----------
    schema, command : str
    method : str
        "exact" or "features"; of a learner, how it is solved.
    engine, where : str
        "local", "gpu" or "dask"; and in words.
    dtype : str
    rows, columns : int
    work : tuple of str
        What will be computed, step by step.
    memory_bytes : int
        What it takes in one process, at most about.
    memory_limit : int or None
        What was allowed.
    seconds : float
        About how long on an idle machine, mostly within a factor of two; the geometric mean of `seconds_range`.
    seconds_range, memory_range : tuple of two numbers
        The least and the most, which differ where the values of the table decide.
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
    seconds_range: tuple[float, float]
    memory_range: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        return asdict(self)

    def later(self, seconds: float) -> Plan:
        """Return the plan of the same after so many seconds of something else."""
        low, high = (one + seconds for one in self.seconds_range)
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Plan(**fields | {"seconds": math.sqrt(low * high), "seconds_range": (low, high)})


def plan_wanted(rows: int) -> bool:
    """Whether anybody listens to the plan of a table with so many rows."""
    current = CURRENT.get()
    return current.planned is not None and rows >= current.planned_from


def count_wanted(rows: int) -> bool:
    """Whether anybody asks what a table with so many rows takes: who listens to the plan, or who has set a limit."""
    return plan_wanted(rows) or CURRENT.get().engine.memory is not None


def added(*works: Work, times: float = 1.0) -> dict[str, float]:
    """Return the units of all together, so many times."""
    kinds = (*UNITS, SECOND)
    return {
        unit: times * sum(one.get(unit, 0.0) for one in works) for unit in kinds if any(unit in one for one in works)
    }


def taken_by_rows(rows: float, columns: int) -> float:
    """Return the bytes that the program and a table that was read take."""
    return CURRENT.get().taken(TABLE_BYTES * rows * columns)


def seconds_of(work: Work, engine: Engine) -> float:
    """Return how long units take that the threads of an engine share."""
    known = {SECOND: 1.0, **(costs() if engine.name != "gpu" else _gpu_costs(engine))}
    return sum(known[unit] * count for unit, count in work.items()) / engine.threads


def tell(
    command: str,
    rows: int,
    columns: int,
    *,
    steps: tuple[str, ...],
    memory: tuple[float, float],
    work: Work,
    engine: Engine,
    most: Work | None = None,
    method: str = "exact",
    besides: float = 0.0,
    refusal: tuple[str, str] | None = None,
) -> None:
    """Refuse what takes more memory than is allowed, and tell the plan of what does not to whoever listens.

    Memory is in bytes, least and most, all in all. It takes units of work in all threads together, at `most` others, besides
    seconds that are known already. The refusal says what takes too much memory, with its verb, and what takes less.
    """
    # Reading a table may have taken more than what follows.
    least, needed = (max(int(one), peak_bytes()) for one in memory)
    if refusal is not None:
        refuse_beyond(needed, engine.memory, *refusal)
    planned = CURRENT.get().planned
    if planned is None or not plan_wanted(rows):
        return
    besides += CLUSTER_START if engine.name == "dask" else 0.0
    low, high = (besides + seconds_of(units, engine) for units in (work, most or work))
    count = f"{engine.threads} thread{'' if engine.threads == 1 else 's'} of"
    where = {"local": f"{count} this process", "dask": f"{count} a Dask cluster"}.get(engine.name, str(engine.device))
    place, ranges = (engine.name, where, engine.dtype), (math.sqrt(low * high), (low, high), (least, needed))
    planned(Plan("kerntest.plan/1", command, method, *place, rows, columns, steps, needed, engine.memory, *ranges))


# What units cost


@lru_cache(maxsize=1)
def costs() -> Work:
    """Return the seconds of each unit on one thread of this machine: as they are kept, else measured and kept."""
    machine = _machine()
    try:
        file = cache_folder() / f"costs-{zlib.crc32(machine.encode()):08x}.json"
        # What was written by others, or cut off, is measured anew.
        with suppress(ValueError, KeyError, TypeError):
            kept = json.loads(file.read_text("utf-8"))
            if kept["machine"] == machine:
                found = {unit: float(kept["seconds"][unit]) for unit in UNITS}
                if all(0.0 < one < 1.0 for one in found.values()):
                    return found
    except FileNotFoundError:
        pass
    except (OSError, RuntimeError):
        return UNITS
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=file.parent, prefix=file.name, delete=False, encoding="utf-8"
        ) as kept:
            found = measured()
            json.dump({"machine": machine, "seconds": found}, kept)
        Path(kept.name).replace(file)
        return found
    return UNITS


def cache_folder() -> Path:
    """Return the folder of this user's caches, by the convention of the platform."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named) / "kerntest"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "kerntest" / "Cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "kerntest"


def _machine() -> str:
    """Return what costs depend on, in words."""
    parts = ("internal_api", "version", "architecture")
    # In whatever order they were loaded.
    blas = ", ".join(sorted(" ".join(str(one.get(part)) for part in parts) for one in loaded_blas()))
    model = platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    return f"kerntest {kerntest.__version__}; numpy {np.__version__}; {blas}; {platform.machine()} {model}"


def measured() -> dict[str, float]:
    """Return the seconds of each unit, in processor time: other work on the machine is no part of it."""
    rng = np.random.default_rng(0)
    block, square, lines = rng.random((400, 400)), rng.random((384, 384)), rng.random((64, 4000))
    symmetric, large, out = square[:200, :200] + square[:200, :200].T, rng.random((1500, 1500)), np.zeros((400, 400))
    order, few = rng.permutation(1500), np.ones(4)
    text = ("\n".join(f"{one:.6g}" for one in square.ravel()[:20_000])).encode()

    def gather() -> None:
        for row in order[:300]:
            large[row].take(order)

    def entry() -> None:
        for _ in range(20):
            np.add(block, out, out=out)

    def call() -> None:
        for _ in range(2000):
            np.add(few, few)

    works: dict[str, tuple[Callable[[], Any], float]] = {
        "product": (lambda: square @ square, 384.0**3),
        "entry": (entry, 20.0 * 400**2),
        "exp": (lambda: np.exp(block, out=out), 400.0**2),
        "fft": (lambda: np.fft.rfft(lines, axis=1), float(lines.size)),
        "gather": (gather, 300.0 * 1500),
        "spectrum": (lambda: np.linalg.eigh(symmetric), 200.0**3),
        "call": (call, 2000.0),
        "text": (lambda: np.array(text.split(), dtype=np.float64), float(len(text))),
    }
    with one_blas_thread():
        return {unit: _least(work) / count for unit, (work, count) in works.items()}


def _least(work: Callable[[], Any]) -> float:
    """Return the least processor time of some runs, after one to warm up."""
    taken = []
    for _ in range(REPEATS + 1):
        started = time.thread_time()
        work()
        taken.append(time.thread_time() - started)
    # A clock of coarse steps may show none.
    return max(min(taken[1:]), 1e-7)


def _gpu_costs(engine: Engine) -> Work:
    """Return what units cost on a GPU: those of this machine, times what a Gram matrix takes there beside what it would here."""
    points = engine.send(np.linspace(0.0, 1.0, GPU_ROWS * GPU_COLUMNS).reshape(GPU_ROWS, GPU_COLUMNS))
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        float(np.exp(points @ -points.T).sum())
        taken.append(time.perf_counter() - started)
    known, pairs = costs(), float(GPU_ROWS) ** 2
    share = min(taken) / (pairs * (known["exp"] + known["entry"] + GPU_COLUMNS * known["product"]))
    return {unit: share * seconds for unit, seconds in known.items()}
