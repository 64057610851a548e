"""The plan of a fit before it runs: what, in how much memory, and about how long by a rehearsal on a part of the rows."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.memory import PROGRAM_BYTES, refuse_beyond
from kerntest.engines.setting import announce, plan_wanted
from kerntest.errors import KerntestError
from kerntest.report.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine

# Rows of the larger rehearsal, and of the smaller one.
REHEARSED = (1600, 800)
# What a model that is applied to rows takes for each thread (measured: 50 to 80 MB).
PIECE_BYTES = 70 * 10**6
# A table on its way from the file to the encoded rows: bytes for each number.
COPIES = 8


@dataclass(frozen=True, slots=True)
class FitWork:
    """A fit as far as its cost goes.

    Parameters
    ----------
    command : str
    rows, columns : int
    method : str
        How it is solved, in a word.
    step : str
        The same in a sentence.
    held : float
        Bytes that the method holds: matrices, or features.
    rehearse : callable
        From an array of rows to the fit of these rows.
    least_power : float
        Of the number of rows: the time grows at least so fast, which few rows may not show.
    """

    command: str
    rows: int
    columns: int
    method: str
    step: str
    held: float
    rehearse: Callable[[NDArray[np.intp]], object]
    least_power: float = 1.0


def prepare_fit(work: FitWork, engine: Engine) -> None:
    """Tell the plan of a fit to whoever listens.

    Raises
    ------
    UndecidedError
        If it takes more memory than is allowed.
    """
    memory = PROGRAM_BYTES + 8 * COPIES * work.rows * work.columns + work.held
    refuse_beyond(
        memory,
        engine.memory,
        f"kerntest {work.command} of {work.rows:,} rows takes",
        "--features nystroem:500 takes less, or less with fewer features",
    )
    if not plan_wanted(work.rows):
        return
    announce(
        Plan(
            schema="kerntest.plan/1",
            command=work.command,
            method=work.method,
            engine="local",
            where=f"{engine.here.threads} thread{'' if engine.here.threads == 1 else 's'} of this process",
            dtype="float64",
            rows=work.rows,
            columns=work.columns,
            work=(work.step,),
            memory_bytes=int(memory),
            memory_limit=engine.memory,
            seconds=_expected_time(work),
        )
    )


def announce_rows(command: str, rows: int, columns: int, *, step: str, seconds: float, engine: Engine) -> None:
    """Tell the plan of a model that is applied to rows.

    Parameters
    ----------
    command : str
    rows, columns : int
    step : str
        What will be computed.
    seconds : float
        About how long on one thread.
    engine : Engine
    """
    count = f"{engine.threads} thread{'' if engine.threads == 1 else 's'}"
    announce(
        Plan(
            schema="kerntest.plan/1",
            command=command,
            method="exact",
            engine=engine.name,
            where=f"{count} of {'a Dask cluster' if engine.name == 'dask' else 'this process'}",
            dtype="float64",
            rows=rows,
            columns=columns,
            work=(step,),
            memory_bytes=PROGRAM_BYTES + (engine.threads if engine.name == "local" else 1) * PIECE_BYTES,
            memory_limit=engine.memory,
            seconds=seconds / engine.threads,
        )
    )


def _expected_time(work: FitWork) -> float | None:
    """Return about how many seconds the fit takes, by a power of the number of rows through two rehearsals."""
    sizes = [min(size, work.rows // share) for size, share in zip(REHEARSED, (2, 4), strict=True)]
    times = []
    for size in sizes:
        # Twice: the first time loads and allocates.
        for _ in range(2):
            started = time.perf_counter()
            try:
                work.rehearse(np.unique(np.linspace(0, work.rows - 1, size).astype(np.intp)))
            except KerntestError:
                # What few rows cannot do all may.
                return None
            seconds = time.perf_counter() - started
        times.append(seconds)
    more, fewer = (max(seconds, 1e-9) for seconds in times)
    ratio = sizes[0] / sizes[1]
    power = max(math.log(more / fewer) / math.log(ratio), work.least_power)
    # What few rows take more than that is what it costs to begin.
    scaled = ratio**power
    growing = max((more - fewer) * scaled / (scaled - 1.0), 0.3 * more)
    return float(more + growing * ((work.rows / sizes[0]) ** min(power, 3.0) - 1.0))
