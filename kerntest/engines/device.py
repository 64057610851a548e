"""A device that computes whole blocks of arrays: a GPU, through CuPy or PyTorch.

Code for a device is written once, with the functions of the array API standard (https://data-apis.org/array-api): it
runs on any library that has them. The few things that the standard lacks are methods of `Device`.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kerntest.engines.memory import refuse_beyond, show_memory
from kerntest.errors import MissingExtraError, UndecidedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

DeviceArray: TypeAlias = Any
"""An array of the device's own library."""

# The part of the free memory that blocks may take: the libraries keep work space of their own.
SHARE = 0.6
VARIABLE = "KERNTEST_DEVICE"
WAY_OUT = "leave out --engine gpu: the processors of this machine do the same in float64"


class Device:
    """Where arrays live, the functions for them, and what is known of their precision.

    Parameters
    ----------
    xp : module
        Functions of the array API standard.
    place : object
        The device as that library names it.
    label : str
        What it is, in words: "NVIDIA H200, 139 GB, PyTorch 2.8".
    free : callable
        Returns the bytes that are free on the device.
    memory : int, optional
        Bytes that blocks may take; a share of what is free by default.
    precision : {"float32", "float64"}
        Of entries and transforms; sums over blocks are float64 always.

    Attributes
    ----------
    error : float
        The largest error of a statistic against float64 that was measured on a part of the work, in standard
        deviations of the statistic over the relabellings.
    """

    def __init__(
        self,
        xp: Any,
        place: Any,
        *,
        label: str,
        free: Callable[[], int],
        memory: int | None = None,
        precision: str = "float32",
    ) -> None:
        self.xp, self.place, self.label, self.precision = xp, place, label, precision
        self.memory = memory
        self.error = 0.0
        self.single = getattr(xp, precision)
        self.double = xp.float64
        self._free = free

    def describe(self) -> str:
        """Return what the device is, in words."""
        return self.label

    def allowed(self) -> int:
        """Return the bytes that blocks may take."""
        free = int(SHARE * self._free())
        return free if self.memory is None else min(free, self.memory)

    def most(self, each: float, wanted: int, what: str) -> int:
        """Return how many of `wanted` things of `each` so many bytes the device holds at once, at least one.

        Raises
        ------
        UndecidedError
            If not even one.
        """
        allowed = self.allowed()
        hint = "leave out --engine gpu, or allow more --memory"
        refuse_beyond(each, allowed, f"on the device {what} takes", hint)
        return min(wanted, int(allowed // each)) if each > 0 else wanted

    def in_double(self) -> Device:
        """Return the same device computing in float64, for what float32 cannot tell apart."""
        return Device(self.xp, self.place, label=self.label, free=self._free, memory=self.memory, precision="float64")

    @property
    def rounding(self) -> float:
        """The distance from 1 to the next number of the precision."""
        return float(np.finfo(self.precision).eps)

    def send(self, values: NDArray[Any], kind: str | None = None) -> DeviceArray:
        """Return a copy on the device, of the precision or of another kind of number ("float64", "int32")."""
        # A new array: libraries share memory with arrays of this process where they can, and some refuse read-only ones.
        return self.xp.asarray(np.array(values, dtype=kind or self.precision, order="C"), device=self.place)

    def fetch(self, values: DeviceArray) -> NDArray[Any]:
        """Return a copy in this process."""
        if hasattr(values, "cpu"):
            values = values.cpu().numpy()
        elif hasattr(values, "get"):
            values = values.get()
        return np.array(values)

    def zeros(self, shape: tuple[int, ...], dtype: Any = None) -> DeviceArray:
        """Return zeros, float64 unless another type is named."""
        return self.xp.zeros(shape, dtype=self.double if dtype is None else dtype, device=self.place)

    def rounded(self, values: DeviceArray) -> DeviceArray:
        """Return values in the precision of the device."""
        return self.xp.astype(values, self.single, copy=False)

    def doubled(self, values: DeviceArray) -> DeviceArray:
        """Return values in float64, or complex128."""
        wide = self.double if self.xp.isdtype(values.dtype, "real floating") else self.xp.complex128
        return self.xp.astype(values, wide, copy=False)

    def window(self, values: DeviceArray, count: int) -> DeviceArray:
        """Return w[k, i] = values[i + k] for k < count: a view where the library has such views, else a copy."""
        size = values.shape[0] - count + 1
        if hasattr(values, "unfold"):
            return values.unfold(0, size, 1)
        if self.xp.__name__.endswith("cupy"):
            from cupy.lib.stride_tricks import as_strided  # noqa: PLC0415 - only where cupy is the library

            return as_strided(values, (count, size), 2 * values.strides)
        # Copies of the whole one after another, read in rows that are longer by one: each row begins one place later.
        copies = self.xp.broadcast_to(values[None, :], (count + 1, values.shape[0]))
        longer = values.shape[0] + 1
        return self.xp.reshape(self.xp.reshape(copies, (-1,))[: count * longer], (count, longer))[:, :size]

    def shifted_sum(self, values: DeviceArray) -> DeviceArray:
        """Return s[j] = sum_k values[k, j - k], shape (m + count - 1,), for values of shape (count, m)."""
        xp, (count, size) = self.xp, values.shape
        padded = xp.concat([values, self.zeros((count, count), values.dtype)], axis=1)
        wide = size + count - 1
        # Read in rows shorter by one, each line begins one place later than the line before.
        return xp.sum(xp.reshape(xp.reshape(padded, (-1,))[: count * wide], (count, wide)), axis=0)


def find_device(memory: int | None = None) -> Device:
    """Return the GPU: through CuPy where it sees one, else through PyTorch.

    The environment variable KERNTEST_DEVICE chooses: "cupy", "torch", "torch:cuda:1"; "torch:cpu" runs the same code on
    the processors, to try it without a GPU.

    Parameters
    ----------
    memory : int, optional
        Bytes that blocks may take on the device.

    Raises
    ------
    MissingExtraError
        If the packages are not installed.
    UndecidedError
        If they see no GPU.
    UsageError
        If KERNTEST_DEVICE names no device.
    """
    asked = os.environ.get(VARIABLE, "")
    library, _, place = asked.partition(":")
    if library not in {"", "cupy", "torch"}:
        raise UsageError(
            f"{VARIABLE}={asked} names no device",
            hint="cupy, torch, torch:cuda:1 or torch:cpu",
            code="usage.device",
        )
    missing: list[str] = []
    for name, found in (("cupy", _cupy), ("torch", _torch)):
        if library in {"", name}:
            try:
                device = found(place, memory)
            except ImportError as error:
                missing.append(error.name or name)
                continue
            if device is not None:
                return device
    if "array_api_compat" in missing or len(missing) == (1 if library else 2):
        raise MissingExtraError(
            f"a GPU needs Python packages that are not installed: {', '.join(sorted(set(missing)))}",
            hint="pip install 'kerntest[gpu]'",
        )
    raise UndecidedError("no GPU was found on this machine", hint=WAY_OUT, code="undecided.no_gpu")


def _cupy(place: str, memory: int | None) -> Device | None:
    import array_api_compat.cupy as xp  # noqa: PLC0415 - only a GPU needs it
    import cupy  # noqa: PLC0415

    number = int(place) if place.isdigit() else 0
    try:
        if cupy.cuda.runtime.getDeviceCount() <= number:
            return None
        name = cupy.cuda.runtime.getDeviceProperties(number)["name"].decode()
        cupy.cuda.Device(number).use()
        total = cupy.cuda.runtime.memGetInfo()[1]
    except cupy.cuda.runtime.CUDARuntimeError:
        return None
    label = f"{name}, {show_memory(total)}, CuPy {cupy.__version__}"
    return Device(
        xp, cupy.cuda.Device(number), label=label, free=lambda: cupy.cuda.runtime.memGetInfo()[0], memory=memory
    )


def _torch(place: str, memory: int | None) -> Device | None:
    import array_api_compat.torch as xp  # noqa: PLC0415 - only a GPU needs it
    import torch  # noqa: PLC0415 - the library itself, for what the standard has no word for

    version = f"PyTorch {torch.__version__.partition('+')[0]}"
    if place == "cpu":
        return Device(xp, "cpu", label=f"the processors, {version}", free=_free_here, memory=memory)
    if not torch.cuda.is_available():
        return None
    here = torch.device(place or "cuda")
    if (here.index or 0) >= torch.cuda.device_count():
        return None
    of = torch.cuda.get_device_properties(here)
    label = f"{of.name}, {show_memory(of.total_memory)}, {version}"
    return Device(xp, here, label=label, free=lambda: torch.cuda.mem_get_info(here)[0], memory=memory)


def _free_here() -> int:
    """Return the bytes of memory that are free on this machine, as far as it tells."""
    try:
        return math.prod(os.sysconf(name) for name in ("SC_PAGE_SIZE", "SC_AVPHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return 2**32
