"""The plan of a test by features: the first pass is done, the second is estimated from the sampled rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kerntest.engines.memory import PROGRAM_BYTES
from kerntest.engines.setting import announce, plan_wanted
from kerntest.inference.planning import described
from kerntest.report.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.engines.base import Engine
    from kerntest.inference.streamed.survey import Survey

# What a piece of a file takes while it is read and worked on, and for each column (in Parquet: its pages).
PIECE_BYTES, COLUMN_BYTES = 90 * 10**6, 3 * 10**6


def piece_bytes(found: Survey) -> int:
    """Return what a piece of the files takes."""
    return PIECE_BYTES + COLUMN_BYTES * len(found.columns)


def announce_features(
    command: str,
    found: Survey,
    *,
    step: str,
    held: float,
    rehearse: Callable[[], object],
    spent: float,
    engine: Engine,
) -> None:
    """Tell the plan of a test by features to whoever listens.

    Parameters
    ----------
    command : str
    found : Survey
    step : str
        What the second pass computes.
    held : float
        Bytes of the sums.
    rehearse : callable
        The work of the second pass on the sampled rows.
    spent : float
        Seconds that the first pass took: the second reads the files again.
    engine : Engine
    """
    rows = sum(found.n)
    if not plan_wanted(rows):
        return
    rehearse()
    started = time.perf_counter()
    rehearse()
    each = (time.perf_counter() - started) / max(len(found.sample), 1)
    pieces = f"{found.n_pieces:,} piece{'' if found.n_pieces == 1 else 's'}"
    announce(
        Plan(
            schema="kerntest.plan/1",
            command=command,
            method="features",
            engine=engine.name,
            where=described(engine),
            dtype="float64",
            rows=rows,
            columns=len(found.columns),
            work=(f"{step}, in {pieces} read twice",),
            memory_bytes=int(PROGRAM_BYTES + engine.threads * piece_bytes(found) + held),
            memory_limit=engine.memory,
            seconds=spent + each * rows / engine.threads,
        )
    )
