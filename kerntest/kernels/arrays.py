"""Small operations on arrays of kernel values."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UndecidedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kerntest.kernels.base import Array


def shaped(values: Array, shape: tuple[int, int]) -> Array:
    """Return `values` if it has this shape, else a copy of it broadcast to it."""
    return values if values.shape == shape else np.broadcast_to(values, shape).copy()


def writeable(values: Array) -> Array:
    """Return the array itself, or a copy where it is kept for others."""
    return values if values.flags.writeable else values.copy()


def raised(values: Array, exponent: float) -> Array:
    """Return values^exponent. Small whole exponents by repeated squaring: several times faster than `power`."""
    if not exponent.is_integer() or exponent > 64:
        return np.power(values, exponent, out=values)
    remaining = int(exponent)
    result: Array | None = None
    while True:
        if remaining % 2:
            result = values.copy() if result is None else np.multiply(result, values, out=result)
        remaining //= 2
        if not remaining and result is not None:
            return result
        np.multiply(values, values, out=values)


@contextmanager
def refuse_overflow(kernel: object) -> Iterator[None]:
    """Turn an overflow of the array operations inside into an UndecidedError that names the kernel."""
    try:
        with np.errstate(over="raise"):
            yield
    except FloatingPointError as error:
        raise UndecidedError(
            f"the kernel '{kernel}' overflows on these data",
            hint="scale the columns, or choose a smaller gain, degree or exponent",
            code="undecided.overflow",
        ) from error
