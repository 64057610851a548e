"""Where blocks are computed.

An engine knows no statistics: it runs independent pieces of work and hands back their results in the order of the
work, so that sums have a fixed order whatever runs side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (pieces done, pieces in all), from the thread that called the engine."""


class Engine(Protocol):
    """Runs independent pieces of work."""

    threads: int

    def map(
        self, work: Callable[[Item], Result], items: Sequence[Item], progress: Progress | None = None
    ) -> Iterator[Result]:
        """Yield work(item) for every item, in the order of `items`."""
        ...
