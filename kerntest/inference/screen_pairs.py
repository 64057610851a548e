"""Pairs of columns of a table, each over the rows in which neither is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.rows import arrange, reason_to_leave_out, recoded
from kerntest.engines.local import LocalEngine
from kerntest.inference.screening import ScreenedPair, ScreenOptions, screen
from kerntest.inference.screens.correlations import correlations
from kerntest.inference.sides import FEWEST_ROWS, Variable

# From so many sets of rows, sets are tested side by side.
MANY_SETS = 4
# Steps of progress in one set.
STEPS = 1000

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column
    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Kernel


@dataclass(frozen=True, slots=True, eq=False)
class TestedPair:
    """One pair of columns, tested or not.

    Parameters
    ----------
    names : (str, str)
    n : int
        Rows in which neither is missing.
    found : ScreenedPair or None
    kernels : (Kernel, Kernel) or None
    correlations : tuple of float or None
        Pearson, Spearman, Kendall.
    note : str or None
        Why it could not be tested.
    rows : int
        Which set of rows it was tested on; pairs with the same one share their relabellings.
    """

    names: tuple[str, str]
    n: int
    found: ScreenedPair | None
    kernels: tuple[Kernel, Kernel] | None
    correlations: tuple[float | None, ...]
    note: str | None
    rows: int


def tested_pairs(
    columns: Sequence[Column],
    pairs: Sequence[tuple[int, int]],
    options: ScreenOptions,
    engine: Engine,
    *,
    keep: bool,
    progress: Progress | None,
) -> list[TestedPair]:
    """Return what is found for each pair over the rows in which neither column is missing.

    Pairs with the same rows are tested together and share the matrices of their columns.

    Parameters
    ----------
    columns : sequence of Column
    pairs : sequence of (int, int)
    options : ScreenOptions
    engine : Engine
    keep : bool
        Whether to keep the relabelled statistics.
    progress : callable, optional
    """
    present = [~column.missing for column in columns]
    together: dict[bytes, list[int]] = {}
    for index, (a, b) in enumerate(pairs):
        together.setdefault(np.packbits(present[a] & present[b]).tobytes(), []).append(index)
    results: dict[int, TestedPair] = {}
    sets = list(together.values())
    if len(sets) < MANY_SETS:
        for done, members in enumerate(sets):
            inner = _share(progress, done, len(sets))
            found = _over_rows(columns, *_of(members, pairs, present), options, engine, keep=keep, progress=inner)
            results.update(zip(members, (replace(one, rows=done) for one in found), strict=True))
            if progress is not None:
                progress((done + 1) * STEPS, len(sets) * STEPS)
    else:
        # Many small pieces of work: side by side, each on one thread.
        alone = LocalEngine(1)

        def work(members: list[int]) -> list[TestedPair]:
            return _over_rows(columns, *_of(members, pairs, present), options, alone, keep=keep, progress=None)

        for done, (members, found) in enumerate(zip(sets, engine.map(work, sets, progress), strict=True)):
            results.update(zip(members, (replace(one, rows=done) for one in found), strict=True))
    return [results[index] for index in range(len(pairs))]


def _of(
    members: Sequence[int], pairs: Sequence[tuple[int, int]], present: Sequence[NDArray[np.bool_]]
) -> tuple[list[tuple[int, int]], NDArray[np.intp]]:
    """Return pairs that share their rows, and these rows."""
    a, b = pairs[members[0]]
    return [pairs[index] for index in members], np.flatnonzero(present[a] & present[b])


def _share(progress: Progress | None, done: int, total: int) -> Progress | None:
    """Return `progress` as seen by one of several screens."""
    if progress is None:
        return None
    return lambda step, steps: progress(done * STEPS + step * STEPS // steps, total * STEPS)


def _over_rows(
    columns: Sequence[Column],
    pairs: Sequence[tuple[int, int]],
    rows: NDArray[np.intp],
    options: ScreenOptions,
    engine: Engine,
    *,
    keep: bool,
    progress: Progress | None,
) -> list[TestedPair]:
    """Return what is found for pairs of columns over the same rows."""
    n = len(rows)
    involved = sorted({place for pair in pairs for place in pair})
    taken = {place: recoded(columns[place].take(rows)) for place in involved}
    notes = {place: _untestable(taken[place], n) for place in involved}
    tested = [place for place in involved if notes[place] is None]
    within = {place: k for k, place in enumerate(tested)}
    wanted = [(within[a], within[b]) for a, b in pairs if a in within and b in within]
    found: list[ScreenedPair] = []
    kernels: list[Kernel] = []
    if wanted:
        variables = [Variable.of(arrange([taken[place]], n), "standardize") for place in tested]
        found, kernels = screen(variables, wanted, options, engine, keep=keep, progress=progress)
    beside = _correlations(taken, pairs)
    remaining = iter(found)
    results = []
    for (a, b), three in zip(pairs, beside, strict=True):
        names = (columns[a].name, columns[b].name)
        note = notes[a] or notes[b]
        if note is not None:
            results.append(TestedPair(names, n, None, None, three, note, 0))
            continue
        one = next(remaining)
        if one.p_value is None:
            note = "no pairing of the rows changes the statistic"
        results.append(TestedPair(names, n, one, (kernels[within[a]], kernels[within[b]]), three, note, 0))
    return results


def _untestable(column: Column, n: int) -> str | None:
    """Return why a column cannot be tested over the rows of a pair; None if it can."""
    if n < FEWEST_ROWS:
        return f"{n} {'row' if n == 1 else 'rows'} without missing values; the test needs at least {FEWEST_ROWS}"
    if column.values.min() == column.values.max():
        return f"{column.name!r} has one value in the rows without missing values"
    return reason_to_leave_out(column)


def _correlations(taken: dict[int, Column], pairs: Sequence[tuple[int, int]]) -> list[tuple[float | None, ...]]:
    """Return Pearson, Spearman and Kendall of each pair; those of text columns are None."""
    numeric = [place for place, column in taken.items() if column.kind != "text"]
    numbers = [index for index, pair in enumerate(pairs) if set(pair) <= set(numeric)]
    found = np.full((3, len(pairs)), np.nan)
    if numbers:
        values = np.column_stack([taken[place].values.astype(np.float64) for place in numeric])
        within = [(numeric.index(pairs[index][0]), numeric.index(pairs[index][1])) for index in numbers]
        found[:, numbers] = correlations(values, within)
    return [tuple(None if np.isnan(one) else one for one in three) for three in found.T.tolist()]
