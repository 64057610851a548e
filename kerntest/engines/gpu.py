"""A GPU for whole blocks of entries, and the threads of this process for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.engines.device import Device, find_device
from kerntest.engines.local import LocalEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kerntest.engines.base import Item, Progress, Result


class GpuEngine:
    """Computes blocks on a device (see `Device`) and runs pieces of other work on threads of this process.

    Entries are float32, less the mean of their matrix; sums over blocks are float64. How far this is from float64 is
    measured on some lines of each computation and kept in `arrays.error`.

    Parameters
    ----------
    threads : int, optional
        Threads of this process; all processors by default.
    memory : int, optional
        Bytes that blocks may take on the device; a share of what is free there by default.
    device : Device, optional
        The device, where it is known already; else it is found, see `find_device`.

    Raises
    ------
    UsageError
        If `threads` is not positive.
    MissingExtraError
        If CuPy or PyTorch, or array-api-compat, is not installed.
    UndecidedError
        If there is no GPU.
    """

    name = "gpu"

    def __init__(self, threads: int | None = None, memory: int | None = None, *, device: Device | None = None) -> None:
        self._here = LocalEngine(threads, memory)
        self.threads = self._here.threads
        self.memory = memory
        self.arrays = find_device(memory) if device is None else device
        self.dtype = self.arrays.precision

    @property
    def here(self) -> LocalEngine:
        """The threads of this process."""
        return self._here

    def map(
        self,
        work: Callable[[Item], Result],
        items: Iterable[Item],
        progress: Progress | None = None,
        *,
        total: int | None = None,
    ) -> Iterator[Result]:
        """Yield work(item) for every item, on threads of this process; see `Engine`."""
        return self._here.map(work, items, progress, total=total)
