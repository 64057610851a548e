"""Where blocks are computed.

An engine knows no statistics: it runs independent pieces of work and hands back their results in the order of the
work, so that sums have a fixed order whatever runs side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (pieces done, pieces in all), from the thread that called the engine."""


# Computing fewer kernel values takes some tens of milliseconds: less than it takes to send rows to a cluster.
FEW_ENTRIES = 2**22
# Results that are sums over all rows come in at most so many pieces: each of them may have to cross a network.
PIECES = 256


class Engine(Protocol):
    """Runs independent pieces of work.

    Attributes
    ----------
    name : {"local", "gpu", "dask"}
    threads : int
        How many pieces run at the same time.
    memory : int or None
        Bytes that the computation may take in one process; None for the default limits of each method.
    dtype : str
        The float type in which everything is computed.
    device : str or None
        The GPU in words, where there is one.
    here : Engine
        The engine for pieces that write into memory of this process, or are too small to be sent.
    """

    name: str
    threads: int
    memory: int | None
    dtype: str
    device: str | None

    @property
    def here(self) -> Engine:
        """The threads of this process."""
        ...

    def send(self, array: Any) -> Any:
        """Return an array where work computes: itself, or a copy on a GPU, which numpy's functions take alike."""
        ...

    def map(
        self,
        work: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
        *,
        total: int | None = None,
    ) -> Iterator[Result]:
        """Yield work(item) for every item, in the order of `items`.

        Parameters
        ----------
        work : callable
            A function of the item alone: without memory of earlier items, and without effect but its result. It may
            run in another process.
        items : iterable
        progress : callable, optional
        total : int, optional
            Number of items, where `items` has no length.
        """
        ...


def enough_for(engine: Engine, entries: float) -> Engine:
    """Return where to compute so many kernel values: the threads of this process where sending would take longer."""
    return engine if entries >= FEW_ENTRIES else engine.here


def in_pieces(items: Sequence[Item], most: int = PIECES) -> list[Sequence[Item]]:
    """Return items in at most so many runs of neighbours, equally long but for the last.

    They depend on the number of items alone, so that sums within and over them are the same on every engine.
    """
    size = max(1, -(-len(items) // most))
    return [items[start : start + size] for start in range(0, len(items), size)]
