"""Arrays on a device that take part in numpy's elementwise functions."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.engines.device import Device, DeviceArray

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "remainder": operator.mod,
    "negative": operator.neg,
    "not_equal": operator.ne,
    "equal": operator.eq,
}
_FUNCTIONS = {"exp": "exp", "log1p": "log1p", "sqrt": "sqrt", "sin": "sin", "square": "square", "absolute": "abs"}


class Values(NDArrayOperatorsMixin):
    """An array on a device, to numpy's elementwise functions.

    Parameters
    ----------
    array : array of the device
    device : Device
    """

    __slots__ = ("array", "device")

    def __init__(self, array: DeviceArray, device: Device) -> None:
        self.array, self.device = array, device

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self.array.shape)

    def copy(self) -> Values:
        """Return the same values, to be replaced apart."""
        return Values(self.array, self.device)

    def astype(self, dtype: Any) -> Values:
        """Return numbers: 1 for True."""
        del dtype
        return Values(self.device.rounded(self.array), self.device)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        """Apply one of numpy's elementwise functions on the device."""
        if method != "__call__" or set(options) - {"dtype"}:
            return NotImplemented
        operands = [self._operand(each) for each in inputs]
        name = ufunc.__name__
        if name == "minimum":
            result = self.device.xp.clip(operands[0], max=operands[1])
        elif name in _FUNCTIONS:
            result = getattr(self.device.xp, _FUNCTIONS[name])(*operands)
        elif name in _OPERATORS:
            result = _OPERATORS[name](*operands)
        else:
            return NotImplemented
        if out is None:
            return Values(result, self.device)
        (target,) = out
        if isinstance(target, Values):
            target.array = result
        else:
            np.copyto(target, self.device.fetch(result))
        return target

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        """Return ones of the same shape: the only such function that kernels use."""
        del types, arguments, options
        if function is not np.ones_like:
            return NotImplemented
        return Values(self.device.xp.ones_like(self.array), self.device)

    def _operand(self, value: Any) -> Any:
        """Return what the library takes: its arrays, floats, never booleans among numbers."""
        if isinstance(value, np.ndarray) and value.ndim:
            return self.device.send(value)
        if not isinstance(value, Values):
            return float(value)
        is_bool = value.array.dtype == self.device.xp.bool
        return self.device.rounded(value.array) if is_bool else value.array
