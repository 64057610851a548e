"""The plan of an exact test before it runs: what, where, in how much memory, and about how long.

The time comes from a rehearsal: the same computation on a part of the rows, scaled up by the law of its cost.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.local import LocalEngine
from kerntest.engines.memory import PROGRAM_BYTES, refuse_beyond
from kerntest.engines.setting import announce, plan_wanted
from kerntest.errors import KerntestError
from kerntest.inference.invariants import EXACT_TRACE_ROWS, PROBES
from kerntest.inference.permuted_blocks import BLOCKS
from kerntest.inference.randomly import TOGETHER
from kerntest.inference.relabelling import refuse_whole
from kerntest.inference.shifts import HELD_ENTRIES as TRANSFORMED_ENTRIES
from kerntest.inference.shifts import MANY, circle_length, orders_needed
from kerntest.matrices.factor import FEW_ROWS, low_rank_factor
from kerntest.matrices.lags import HELD_ENTRIES, plan_blocks
from kerntest.report.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine
    from kerntest.inference.sides import Options
    from kerntest.kernels.base import Kernel, Points

# Rows of a rehearsal: beyond `FEW_ROWS`, so that it goes the same way; more where the cost is nearly linear.
REHEARSED = 4800
REHEARSED_MANY = 600
REHEARSED_LOW_RANK = 20_000
REHEARSED_ON_A_GPU = 16_384
# Of so few rows the time is not worth a rehearsal: seconds for each entry of a matrix (measured: 5e-9 to 3e-8).
SMALL = 1500
SMALL_COST = 2e-8
# What a number of the table takes on its way from the file to the circle.
COPIES = 8
# Of measured peaks: what tiles and FFT take besides the arrays of a block, finished pieces that wait, copies of the sums
# while they are judged, and of vectors while a matrix is multiplied with them.
BLOCK_SHARE = 1.3
UNDER_WAY = 3
SUMS = 8
SWEPT = 8
# A tile of the matrices of a two-sample test with the arrays that go with it.
TILE_BYTES = 2**22
# The same of blocks of many matrices, in bytes for each entry.
STACKED_BYTES = 24.0
# Starting a cluster of processes on this machine, in seconds.
CLUSTER_START = 4.0

ABOUT_FEATURES = "--method features takes any number of rows"


@dataclass(frozen=True, slots=True)
class Further:
    """What an exact test computes besides, once or several times.

    Parameters
    ----------
    what : str
    times : int
    matrices : int
        How many are held at once.
    rehearse : callable
        As in `Work`, of one of them.
    linear : bool
        Whether the time grows about with the rows, not with their square.
    """

    what: str
    times: int
    matrices: int
    rehearse: Callable[[NDArray[np.intp], Engine], object]
    linear: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """An exact test as far as its cost goes.

    Parameters
    ----------
    command : str
    sides : sequence of (Points, sequence of Kernel)
        The kernels over the rows, on one side (the other is the label) or on two.
    columns : int
    options : Options
    rehearse : callable
        From an array of rows and an engine to the test of these rows.
    further : sequence of Further
    """

    command: str
    sides: Sequence[tuple[Points, Sequence[Kernel]]]
    columns: int
    options: Options
    rehearse: Callable[[NDArray[np.intp], Engine], object]
    further: Sequence[Further] = ()

    @property
    def rows(self) -> int:
        """Number of rows n."""
        return len(self.sides[0][0])

    @property
    def matrices(self) -> tuple[int, int]:
        """How many matrices stand on each side."""
        counts = [len(kernels) for _, kernels in self.sides]
        return counts[0], (counts[1] if len(counts) > 1 else 1)


def prepare(work: Work, engine: Engine) -> Engine:
    """Tell the plan of a test to whoever listens, and return the engine on which it fits into the memory.

    Raises
    ------
    UndecidedError
        If it does not, even on one thread.
    """
    engine = _fitting(work, engine)
    if work.options.resampling == "random" and len(work.sides) > 1 and work.options.null == "permutation":
        refuse_whole(work.rows, sum(work.matrices))
    if plan_wanted(work.rows):
        announce(_plan(work, engine))
    return engine


def _fitting(work: Work, engine: Engine) -> Engine:
    """Return the engine with as many threads as the memory allows."""
    if engine.memory is None:
        return engine
    refuse_beyond(_memory(work, 1), engine.memory, f"the exact test of {work.rows:,} rows takes", ABOUT_FEATURES)
    if engine.name != "local":
        return engine
    threads = engine.threads
    while threads > 1 and _memory(work, threads) > engine.memory:
        threads -= 1
    return LocalEngine(threads, engine.memory)


def _memory(work: Work, threads: int) -> int:
    """Return the bytes that a test takes, about: the program, the rows, the blocks under way, and the sums."""
    held: float = 8 * COPIES * work.rows * work.columns
    null = work.options.null
    if null in {"permutation", "pearson"} or work.further:
        held += _of_relabellings(work, threads)
    if null in {"moments", "pearson"}:
        held += _of_sweeps(work.rows, work.rows if work.rows <= EXACT_TRACE_ROWS else 2 * PROBES + 1, threads)
    elif null == "spectral":
        held += _of_sweeps(work.rows, work.rows if work.rows <= EXACT_TRACE_ROWS else PROBES, threads)
    return int(PROGRAM_BYTES + held)


def _of_relabellings(work: Work, threads: int) -> float:
    """Return the bytes that sums over relabellings take."""
    n, (first, second) = work.rows, work.matrices
    if work.options.resampling == "random":
        if len(work.sides) > 1:
            return 8.0 * n * n * (first + second)
        return _of_sweeps(n, min(TOGETHER, work.options.permutations) + 1, threads)
    if len(work.sides) == 1:
        first = max([first, *(one.matrices for one in work.further)])
        sums = min(n, 2 * BLOCKS) ** 2 * first
        return 8.0 * (SUMS * sums + first * work.options.permutations) + TILE_BYTES * threads
    circle = circle_length(n)
    orders = orders_needed(work.options.permutations, circle) if work.options.null == "permutation" else 1
    stacked = first >= MANY and second * orders >= MANY
    lines = max(block.count for block in plan_blocks(circle, n - circle, first + second if stacked else 1))
    # As `shift_sums` goes: transforms of the second side are held for some orders, of the first where it multiplies
    # all at once.
    together = second * min(orders, max(1, TRANSFORMED_ENTRIES // (second * circle * lines)))
    arrays = (2 + first if stacked else 3) + together
    blocks = BLOCK_SHARE * threads * arrays * lines * circle
    spectra = (threads + UNDER_WAY) * first * together * circle
    return 8.0 * (blocks + spectra + SUMS * first * second * orders * circle)


def _of_sweeps(n: int, vectors: int, threads: int) -> float:
    """Return the bytes that products of a matrix with so many vectors take: one set for each strip under way."""
    return 8.0 * n * vectors * (threads + SWEPT)


def _plan(work: Work, engine: Engine) -> Plan:
    """Return the plan of a test."""
    seconds, low_rank = _expected_time(work, engine)
    first, second = work.matrices
    what = "matrix" if max(first, second) == 1 else "matrices"
    counted = f"{first} kernel {what}" if len(work.sides) == 1 else f"{first} + {second} kernel {what}"
    circle = circle_length(work.rows)
    if work.options.null != "permutation":
        step = f"{counted} in tiles, for the {work.options.null} null"
    elif work.options.resampling == "random":
        whole = "whole" if len(work.sides) > 1 else "in tiles"
        step = f"{counted} {whole}, under {work.options.permutations:,} random permutations"
    elif len(work.sides) == 1:
        way = "as products of few columns" if low_rank else "in tiles"
        step = f"{counted} {way}, summed over blocks of rows, under {work.options.permutations:,} permutations of these"
    else:
        orders = orders_needed(work.options.permutations, circle)
        blocks = len(plan_blocks(circle, work.rows - circle))
        way = (
            "as products of few columns"
            if low_rank
            else f"a block of lags at a time, {blocks:,} block{'' if blocks == 1 else 's'}"
        )
        step = f"{counted} {way}, under {orders * circle:,} cyclic relabellings"
    memory = _memory(work, engine.threads if engine.name == "local" else 1)
    steps = (step, *(one.what for one in work.further))
    return _told(work.command, work.rows, work.columns, steps=steps, memory=memory, engine=engine, seconds=seconds)


def _told(
    command: str,
    rows: int,
    columns: int,
    *,
    steps: tuple[str, ...],
    memory: float,
    engine: Engine,
    seconds: float | None,
) -> Plan:
    return Plan(
        schema="kerntest.plan/1",
        command=command,
        method="exact",
        engine=engine.name,
        where=described(engine),
        dtype=engine.dtype,
        rows=rows,
        columns=columns,
        work=steps,
        memory_bytes=int(memory),
        memory_limit=engine.memory,
        seconds=seconds,
    )


def held_by_stacks(rows: int, matrices: int, engine: Engine) -> float:
    """Return the bytes that blocks of lines of many matrices take while they are under way."""
    return STACKED_BYTES * min(HELD_ENTRIES, 128 * rows * matrices) * engine.threads


def announce_many(
    command: str,
    rows: int,
    columns: int,
    *,
    step: str,
    held: float,
    rehearse: Callable[[NDArray[np.intp]], object],
    engine: Engine,
) -> None:
    """Tell the plan of a test of many columns to whoever listens.

    Parameters
    ----------
    command : str
    rows, columns : int
    step : str
        What will be computed.
    held : float
        Bytes of whatever is kept besides the table.
    rehearse : callable
        From an array of rows to the test of these rows, whose cost grows with the square of their number.
    engine : Engine

    Raises
    ------
    UndecidedError
        If it takes more memory than is allowed.
    """
    memory = PROGRAM_BYTES + 8 * COPIES * rows * columns + held
    refuse_beyond(
        memory, engine.memory, f"this test of {rows:,} rows takes", "test fewer columns, or a part of the rows"
    )
    if not plan_wanted(rows):
        return
    seconds = None
    chosen = _some_rows(rows, min(REHEARSED_MANY, rows // 2))
    with suppress(KerntestError):
        fewer, more = (_timed(rehearse, some) for some in (chosen[::2], chosen))
        slope = max(more - fewer, 0.3 * more) / (_quadratic(len(chosen)) - _quadratic(len(chosen[::2])))
        seconds = slope * _quadratic(rows)
    announce(_told(command, rows, columns, steps=(step,), memory=memory, engine=engine, seconds=seconds))


def described(engine: Engine) -> str:
    """Return an engine in words."""
    count = f"{engine.threads} thread{'' if engine.threads == 1 else 's'}"
    if engine.name == "gpu":
        return str(engine.device)
    return f"{count} of this process" if engine.name == "local" else f"{count} of a Dask cluster"


def _expected_time(work: Work, engine: Engine) -> tuple[float | None, bool]:
    """Return about how many seconds the test takes, None if that cannot be said, and whether all its matrices are of low rank."""
    n = work.rows
    low_rank = n > FEW_ROWS and work.options.null == "permutation" and _all_low_rank(work)
    rehearsed = engine.here if engine.name == "dask" else engine
    most = REHEARSED_ON_A_GPU if engine.name == "gpu" else REHEARSED

    def scaled(rehearse: Callable[[NDArray[np.intp], Engine], object], most: int, law: Callable[[int], float]) -> float:
        """Return the time of a part: two rehearsals tell what it costs to begin from what each further row costs."""
        rows = _some_rows(n, min(most, n // 2))
        fewer, more = (_timed(lambda part: rehearse(part, rehearsed), some) for some in (rows[::2], rows))
        slope = max(more - fewer, 0.3 * more) / (law(len(rows)) - law(len(rows[::2])))
        return more + slope * (law(n) - law(len(rows)))

    try:
        if n <= SMALL:
            seconds = SMALL_COST * n * n * sum(work.matrices)
        elif low_rank:
            seconds = scaled(work.rehearse, max(most, REHEARSED_LOW_RANK), _nearly_linear)
        else:
            seconds = scaled(work.rehearse, most, _quadratic)
        for one in work.further:
            seconds += one.times * scaled(one.rehearse, most, _nearly_linear if one.linear else _quadratic)
    except KerntestError:
        # What these rows cannot tell the others may.
        return None, low_rank
    if engine.name == "dask":
        seconds = CLUSTER_START + seconds * rehearsed.threads / engine.threads
    return seconds, low_rank


def _timed(rehearse: Callable[[NDArray[np.intp]], object], rows: NDArray[np.intp]) -> float:
    started = time.perf_counter()
    rehearse(rows)
    return time.perf_counter() - started


def _all_low_rank(work: Work) -> bool:
    rows = _some_rows(work.rows, REHEARSED)
    return all(
        low_rank_factor(kernel, points.take(rows)) is not None for points, kernels in work.sides for kernel in kernels
    )


def _some_rows(n: int, count: int) -> NDArray[np.intp]:
    """Return `count` rows spread over all."""
    return np.unique(np.linspace(0, n - 1, min(count, n)).astype(np.intp))


def _quadratic(n: int) -> float:
    return n * n * math.log(n)


def _nearly_linear(n: int) -> float:
    return n * math.log(n)
