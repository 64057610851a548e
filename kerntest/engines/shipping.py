"""Work on its way to other processes: its large arrays travel apart from it, each of them once.

Needs cloudpickle, which comes with Dask: work is often a function inside another one, which pickle refuses.
"""

from __future__ import annotations

import io
import pickle
import threading
import time
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np

from kerntest.engines.local import keep_freed_memory, one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

# Arrays of at least so many bytes travel apart.
LARGE = 2**16


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]  # ships no types
    """Pickles work without its large arrays, for each of which it writes down a name that tells of its contents."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.arrays: dict[str, NDArray[Any]] = {}
        # By identity, to name an array that is met twice once; they are kept alive, so that no other takes its place.
        self._met: dict[int, tuple[NDArray[Any], str]] = {}

    def persistent_id(self, value: Any) -> str | None:
        """Return the name of a large array; None for whatever is pickled as it is."""
        if type(value) is not np.ndarray or value.nbytes < LARGE or value.dtype.hasobject:
            return None
        if id(value) not in self._met:
            # Rows or columns side by side stay so: arithmetic in another order would round differently.
            laid = value if value.flags.c_contiguous or value.flags.f_contiguous else np.ascontiguousarray(value)
            name = name_of(laid)
            self.arrays[name] = laid
            self._met[id(value)] = (value, name)
        return self._met[id(value)][1]


class _Unpacker(pickle.Unpickler):
    def __init__(self, body: bytes, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().__init__(io.BytesIO(body))
        self._arrays = arrays

    def persistent_load(self, pid: str) -> NDArray[Any]:
        return self._arrays[pid]


def name_of(array: NDArray[Any]) -> str:
    """Return a name for a contiguous array: the same for the same entries in the same layout. Cost: 1 ns a byte."""
    digest = blake2b(f"{array.dtype.str} {array.shape} {array.strides}".encode(), digest_size=16)
    digest.update(array.ravel(order="K").view(np.uint8).data)
    return digest.hexdigest()


def pack(work: Any) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """Return work as bytes, and its large arrays by the names that stand for them there."""
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(work)
    return file.getvalue(), packer.arrays


class Shipped:
    """Packed work in the memory of a worker: unpacked for its first item, and kept so for as long as it lies there.

    Parameters
    ----------
    body : bytes
        From `pack`.
    names : sequence of str
        The names of its large arrays.
    """

    def __init__(self, body: bytes, names: Sequence[str]) -> None:
        self._body, self._names = body, names
        self._lock = threading.Lock()
        self._work: Callable[[Any], Any] | None = None

    def __reduce__(self) -> tuple[type[Shipped], tuple[bytes, Sequence[str]]]:
        """Return what makes it again elsewhere: it goes on as it came."""
        return Shipped, (self._body, self._names)

    def unpacked(self, arrays: Sequence[NDArray[Any]]) -> Callable[[Any], Any]:
        """Return the work, given its large arrays in the order of their names."""
        with self._lock:
            if self._work is None:
                self._work = _Unpacker(self._body, dict(zip(self._names, arrays, strict=True))).load()
            return self._work


class _SharedHold:
    """BLAS held to one thread for as long as any thread of this process wants it.

    The limit is one for the process: threads that set and restored it each on its own would lift it for one another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._hold: AbstractContextManager[Any] | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._holders == 0:
                self._hold = one_blas_thread()
                self._hold.__enter__()
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if self._holders == 0 and self._hold is not None:
                    self._hold.__exit__(None, None, None)


_one_blas_thread_for_all = _SharedHold()


def run(
    shipped: Shipped, arrays: Sequence[NDArray[Any]], items: bytes, errors: dict[str, Any]
) -> tuple[list[Any], float]:
    """Return, on a worker, work(item) for some items, and the seconds that they took.

    Parameters
    ----------
    shipped, arrays
        The work.
    items : bytes
        A pickled sequence.
    errors : dict
        How numpy treats overflow and the like where the work comes from, see `numpy.errstate`.
    """
    work = shipped.unpacked(arrays)
    keep_freed_memory()
    started = time.perf_counter()
    with _one_blas_thread_for_all(), np.errstate(**errors):
        results = [work(item) for item in pickle.loads(items)]  # noqa: S301 - from the engine that sent the work
    return results, time.perf_counter() - started
