"""Rows of any number in random order, through temporary files: files may be sorted.

The place of every row in the order is a function of its number, so that the rows can be dealt out to temporary files as
they are read: one for each stretch of the order, small enough to be put into order in memory.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import DataError
from kerntest.inference.streamed.assignment import RandomOrder
from kerntest.kernels.base import Points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kerntest.engines.base import Engine, Item, Progress
    from kerntest.kernels.base import Array

# Tells the order of the rows from other random orders of the same seed.
ORDER_STREAM = 2
# Numbers in one temporary file (32 MB).
STRETCH_ENTRIES = 2**22


@dataclass(frozen=True, slots=True)
class Shuffled:
    """Rows in temporary files.

    Parameters
    ----------
    folder : Path
        One file for each stretch of the order, named by its number: rows of (place, numbers, codes).
    n : int
        Rows.
    stretch : int
        Rows in each file but the last.
    numbers, categories : int
        Columns.
    """

    folder: Path
    n: int
    stretch: int
    numbers: int
    categories: int

    def __iter__(self) -> Iterator[Points]:
        """Yield all rows in the random order, a stretch at a time."""
        for number in range(-(-self.n // self.stretch)):
            yield self._ordered(number)

    def _ordered(self, number: int) -> Points:
        """Return the rows of one stretch in their order."""
        count = min(self.stretch, self.n - number * self.stretch)
        rows = np.fromfile(self.folder / str(number)).reshape(-1, 1 + self.numbers + self.categories)
        places = rows[:, 0].astype(np.int64) - number * self.stretch
        if len(rows) != count:
            raise DataError(
                "the rows of the file changed while it was read",
                hint="run the test again on a file that nothing writes to",
                code="data.changed",
            )
        ordered = np.empty_like(rows)
        ordered[places] = rows
        return Points(
            np.ascontiguousarray(ordered[:, 1 : 1 + self.numbers]), ordered[:, 1 + self.numbers :].astype(np.int64)
        )


@contextmanager
def shuffled(
    n: int,
    pieces: Iterable[Item],
    numbered: Callable[[Item], Iterable[tuple[int, Points]]],
    *,
    seed: int,
    engine: Engine,
    progress: Progress | None = None,
    total: int | None = None,
) -> Iterator[Shuffled]:
    """Give rows in random order; the temporary files are removed at the end, whatever happens.

    Parameters
    ----------
    n : int
        Rows in all.
    pieces : iterable
        Parts of the files that can be read by themselves.
    numbered : callable
        Gives the rows of a piece, some at a time, and how many rows of all pieces stand before these.
    seed : int
        Of the order, which is the same whatever the pieces are.
    engine : Engine
        Threads of this process.
    progress, total : optional
        As in `Engine.map`.

    Raises
    ------
    DataError
        If the temporary files cannot be written.

    Notes
    -----
    Cost: O(n (p + q)) time, 8 n (p + q + 1) bytes on disk; memory for a few pieces and one stretch.
    """
    work = partial(_dealt, RandomOrder(n, seed, ORDER_STREAM), numbered)
    with tempfile.TemporaryDirectory(prefix="kerntest-") as name:
        folder = Path(name)
        shape, stretch = (0, 0), 1
        for parts in engine.map(work, pieces, progress, total=total):
            for places, rows in parts:
                shape = rows.numeric.shape[1], rows.codes.shape[1]
                stretch = max(1, STRETCH_ENTRIES // (1 + sum(shape)))
                _write(folder, places, rows, stretch)
        yield Shuffled(folder, n, stretch, *shape)


def _dealt(
    order: RandomOrder, numbered: Callable[[Item], Iterable[tuple[int, Points]]], piece: Item
) -> list[tuple[Array, Points]]:
    """Return the rows of a piece, ascending by their place in the order, and these places."""
    parts = []
    for before, rows in numbered(piece):
        places = order.places(np.arange(before, before + len(rows)))
        ascending = np.argsort(places)
        parts.append((places[ascending].astype(np.float64), rows.take(ascending)))
    return parts


def _write(folder: Path, places: Array, rows: Points, stretch: int) -> None:
    """Add rows, ascending by their place, to the files of their stretches."""
    whole = np.column_stack([places, rows.numeric, rows.codes.astype(np.float64)])
    if not len(whole):
        return
    first, last = int(places[0]) // stretch, int(places[-1]) // stretch
    cuts = np.searchsorted(places, np.arange(first, last + 2) * stretch)
    for number, (start, stop) in enumerate(pairwise(cuts), start=first):
        if start < stop:
            try:
                with (folder / str(number)).open("ab") as file:
                    file.write(whole[start:stop].tobytes())
            except OSError as error:
                raise DataError(
                    f"a temporary file in {folder.parent} cannot be written: {error.strerror or error}",
                    hint="TMPDIR names a folder with more room; --null moments needs none",
                    code="data.temporary",
                ) from error
