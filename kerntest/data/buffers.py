"""Arrow arrays to numpy by way of their buffers.

pyarrow's own `to_numpy` imports pandas where that is installed (0.3 s), and its compute module takes 20 ms; the memory
layout is public and stable (https://arrow.apache.org/docs/format/Columnar.html).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


def fixed_width(chunk: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return the values of a fixed-width Arrow array as a view of `dtype`; what stands at missing ones is arbitrary."""
    buffer = chunk.buffers()[1]
    if buffer is None or len(chunk) == 0:
        return np.zeros(len(chunk), dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype)[chunk.offset : chunk.offset + len(chunk)]


def bits(chunk: Any) -> NDArray[np.bool_]:
    """Return the values of an Arrow array of booleans; what stands at missing ones is arbitrary."""
    return _unpacked(chunk, chunk.buffers()[1])


def missing(chunk: Any) -> NDArray[np.bool_]:
    """Return the mask of the missing values of an Arrow array."""
    if chunk.null_count == 0:
        return np.zeros(len(chunk), dtype=bool)
    return ~_unpacked(chunk, chunk.buffers()[0])


def joined(data: Any, dtype: DTypeLike) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a fixed-width Arrow ChunkedArray, and the mask of those that are missing."""
    values = [np.empty(0, dtype=dtype), *(fixed_width(chunk, dtype) for chunk in data.chunks)]
    masks = [np.empty(0, dtype=bool), *(missing(chunk) for chunk in data.chunks)]
    return np.concatenate(values), np.concatenate(masks)


def _unpacked(chunk: Any, buffer: Any) -> NDArray[np.bool_]:
    """Return one boolean per value from a buffer of one bit per value; without a buffer all are false."""
    if buffer is None or len(chunk) == 0:
        return np.zeros(len(chunk), dtype=bool)
    octets = np.frombuffer(buffer, dtype=np.uint8)
    unpacked = np.unpackbits(octets, count=chunk.offset + len(chunk), bitorder="little")
    return unpacked[chunk.offset :].astype(bool)
