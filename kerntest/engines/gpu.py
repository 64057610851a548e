"""A GPU, through PyTorch: arrays there take part in numpy's functions, so that every formula is written once, in float64.

What is large goes there by `GpuEngine.send`: rows, vectors, factors. Kernel matrices are then computed, transformed and
summed there block by block, and only sums come back; all else runs on threads of this process.
"""

# ruff: noqa: D102, N802 - numpy names these methods

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from kerntest.engines.engine import Engine, Item, Result, show_memory
from kerntest.errors import MissingExtraError, UndecidedError, UsageError, option

try:
    import torch
except ImportError as error:
    raise MissingExtraError(
        "a GPU needs PyTorch, which is not installed",
        hint="`pip install '.[gpu]'` in the folder of kerntest, or `pip install torch`",
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray


VARIABLE = "KERNTEST_DEVICE"
# Where PyTorch has another name, or none of the same meaning.
_UFUNCS = {np.equal: torch.eq, np.power: torch.pow, np.invert: torch.bitwise_not, np.conjugate: torch.conj_physical}
_NAMES = {"axis": "dim"}


class GpuEngine(Engine):
    """Threads of this process, which send the large arrays of their work to a GPU.

    The environment variable KERNTEST_DEVICE names another device of PyTorch: "cuda:1", or "cpu", the processors, to try
    the same code without a GPU.

    Raises
    ------
    UndecidedError
        If there is no GPU.
    UsageError
        If KERNTEST_DEVICE names no device.
    """

    name = "gpu"

    def __init__(self, threads: int | None = None, memory: int | None = None) -> None:
        super().__init__(threads, memory)
        asked = os.environ.get(VARIABLE, "cuda").removeprefix("torch:")
        try:
            self._place = torch.device(asked)
        except RuntimeError as error:
            hint = "cuda, cuda:1 or cpu"
            raise UsageError(f"{VARIABLE}={asked} names no device", hint=hint, code="usage.device") from error
        self.device = "the processors"
        if self._place.type != "cpu":
            if (self._place.index or 0) >= torch.cuda.device_count():
                hint = f"leave out {option('engine', 'gpu')}: the processors of this machine do the same"
                raise UndecidedError("no GPU was found on this machine", hint=hint, code="undecided.no_gpu")
            of = torch.cuda.get_device_properties(self._place)
            # "NVIDIA H200, 139 GB"
            self.device = f"{of.name}, {show_memory(of.total_memory)}"
        self.device += f", PyTorch {torch.__version__.partition('+')[0]}"

    @property
    def here(self) -> Engine:
        """The threads of this process."""
        return Engine(self.threads, self.memory)

    def send(self, array: NDArray[Any]) -> Any:
        """Return a copy on the device."""
        # PyTorch refuses arrays that may be read only.
        return DeviceArray(torch.as_tensor(np.array(array, order="C")).to(self._place))

    def results(self, work: Callable[[Item], Result], items: Iterable[Item], count: int) -> Iterator[Result]:
        """Yield the results of so many items."""
        try:
            yield from super().results(work, items, count)
        except torch.cuda.OutOfMemoryError as error:
            hint = f"{option('threads', 1)} takes less of it; or leave out {option('engine', 'gpu')}"
            message = "the GPU has too little memory for this test"
            raise UndecidedError(message, hint=hint, code="undecided.memory") from error


class DeviceArray(NDArrayOperatorsMixin):
    """A tensor that numpy's functions hand on to PyTorch (NEP 13 and 18); `np.asarray` copies it to this process."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.flags = SimpleNamespace(writeable=True)
        self.shape, self.strides, self.size = tuple(tensor.shape), tensor.stride(), tensor.numel()

    def __len__(self) -> int:
        return len(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.tensor.cpu().numpy(), dtype=dtype)

    def __getitem__(self, key: Any) -> DeviceArray:
        return DeviceArray(self.tensor[_tensors(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tensor[_tensors(key)] = self._operand(value)

    @property
    def T(self) -> DeviceArray:
        return DeviceArray(self.tensor.T)

    def copy(self) -> DeviceArray:
        return DeviceArray(self.tensor.clone())

    def reshape(self, *shape: Any) -> DeviceArray:
        return DeviceArray(self.tensor.reshape(*shape))

    def transpose(self, *axes: int) -> DeviceArray:
        return DeviceArray(self.tensor.permute(*axes))

    def strided(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> DeviceArray:
        """Return a view of what begins here; strides count entries."""
        return DeviceArray(self.tensor.as_strided(shape, strides))

    def astype(self, dtype: Any) -> DeviceArray:
        return DeviceArray(self.tensor.to(_kind(dtype)))

    def sum(self, axis: int | None = None) -> DeviceArray:
        return DeviceArray(self.tensor.sum(dim=axis))

    def min(self, initial: float) -> float:
        return min(initial, float(self.tensor.min())) if self.size else initial

    def max(self, initial: float) -> float:
        return max(initial, float(self.tensor.max())) if self.size else initial

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (None,), **options: Any) -> Any:
        """Apply a ufunc, or sum by `np.add.reduce`; what PyTorch does not know is computed by numpy in this process."""
        (target,) = out
        function: Any = _UFUNCS.get(ufunc) or getattr(torch, ufunc.__name__, None)
        operands = [self._operand(each) for each in inputs]
        written = target.tensor if isinstance(target, DeviceArray) else None
        if method == "reduce" and ufunc is np.add:
            result = operands[0].sum(dim=options["axis"])
        elif method != "__call__":
            return NotImplemented
        elif function is None:
            result = self._operand(ufunc(*(np.asarray(DeviceArray(each)) for each in operands)))
        else:
            result = function(*operands) if written is None else function(*operands, out=written)
        if np.geterr()["over"] == "raise" and bool(torch.isinf(result).any()):
            raise FloatingPointError("overflow")
        if target is None:
            return DeviceArray(result)
        if written is not result:
            target[...] = DeviceArray(result) if written is not None else np.asarray(DeviceArray(result))
        return target

    def _operand(self, value: Any) -> torch.Tensor:
        if isinstance(value, DeviceArray):
            return value.tensor
        if np.ndim(value):
            return torch.as_tensor(np.array(value, order="C")).to(self.tensor.device)
        # A number beside an array may stay in this process.
        return torch.tensor(float(value), dtype=torch.float64)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        name = function.__name__
        given = {_NAMES.get(key, key): _tensors(value) for key, value in options.items()}
        makers: dict[str, Any] = {"zeros_like": torch.zeros, "ones_like": torch.ones, "empty_like": torch.empty}
        if name in makers:
            kind = _kind(given.get("dtype", np.float64))
            return DeviceArray(makers[name](given.get("shape", inputs[0].shape), dtype=kind, device=self.tensor.device))
        if name == "vdot":
            return DeviceArray(torch.vdot(*(each.tensor.flatten() for each in inputs)))
        if name == "fill_diagonal":
            self.tensor.fill_diagonal_(inputs[1])
            return None
        found = getattr(torch.fft, name, None) or getattr(torch, name, None)
        return NotImplemented if found is None else DeviceArray(found(*_tensors(inputs), **given))


def _tensors(value: Any) -> Any:
    """Return arguments, or an index, as PyTorch takes them."""
    if isinstance(value, (list, tuple)):
        return type(value)(_tensors(each) for each in value)
    return value.tensor if isinstance(value, DeviceArray) else value


def _kind(dtype: Any) -> torch.dtype:
    kind: torch.dtype = getattr(torch, np.dtype(dtype).name)
    return kind
