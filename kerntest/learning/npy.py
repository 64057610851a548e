"""Arrays as members of a model: a header that says dtype and shape, then the entries; checked against the manifest."""

from __future__ import annotations

import hashlib
import io
import math
import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.learning.fields import Fields, damaged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kerntest.learning.archive import Archive

# What each dtype is called in the header of an .npy file.
DTYPES = {"float64": "<f8", "float32": "<f4", "int64": "<i8", "int32": "<i4", "uint8": "|u1", "bool": "|b1"}
MOST_DIMENSIONS = 8
LARGEST_MODEL = 2**36
LONGEST_HEADER = 1024
# Bytes that one read asks for.
CHUNK = 2**20

_LEAD = b"\x93NUMPY\x01\x00"
# The eight bytes above, and two for the length of the rest.
_BEFORE = len(_LEAD) + 2
_HEADER = re.compile(
    rb"\{'descr': '([^']{1,20})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n",
)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Described:
    """What the manifest says of an array.

    Parameters
    ----------
    dtype : str
        One of `DTYPES`.
    shape : tuple of int
    nbytes : int
        Of the entries alone.
    sha256 : str
        Of the whole member.
    """

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    sha256: str

    def to_plain(self) -> dict[str, Any]:
        """Return the description as JSON can hold it."""
        return {"dtype": self.dtype, "shape": list(self.shape), "nbytes": self.nbytes, "sha256": self.sha256}

    @classmethod
    def from_plain(cls, plain: Any, model: str, place: str) -> Described:
        """Return the description that `to_plain` wrote.

        Raises
        ------
        ModelError
            If it is none, or its numbers do not agree.
        """
        fields = Fields.of(plain, model, place, names=("dtype", "shape", "nbytes", "sha256"))
        dtype = fields.one_of("dtype", tuple(DTYPES))
        shape = fields.items("shape")
        lengths = [Fields({"length": length}, model, f"{place}.shape").whole("length", at_least=0) for length in shape]
        itemsize = np.dtype(DTYPES[dtype]).itemsize
        # Lengths of 0 do not excuse others that no array could have.
        if len(lengths) > MOST_DIMENSIONS or math.prod(max(1, length) for length in lengths) * itemsize > LARGEST_MODEL:
            raise damaged(model, f"{place}.shape is larger than that of any model", code="model.unsafe")
        if fields.whole("nbytes", at_least=0) != math.prod(lengths) * itemsize:
            raise fields.refuse("nbytes", f"{math.prod(lengths) * itemsize}, as dtype and shape say")
        if not _DIGEST.fullmatch(fields.text("sha256")):
            raise fields.refuse("sha256", "64 hexadecimal digits")
        return cls(dtype, tuple(lengths), fields.whole("nbytes", at_least=0), fields.text("sha256"))


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """An array as the bytes of a member.

    Parameters
    ----------
    header : bytes
    entries : memoryview
        Of bytes; shared with the array where it had the right layout already.
    described : Described
    """

    header: bytes
    entries: memoryview
    described: Described


def pack(name: str, array: NDArray[Any]) -> Packed:
    """Return an array as the bytes of a member.

    Raises
    ------
    ValueError
        If it is of a dtype that models do not have, has too many dimensions, or an entry is not finite.

    Notes
    -----
    Cost: O(size) time; a copy where the array is not little-endian and in C order.
    """
    dtype = np.asarray(array).dtype.name
    if dtype not in DTYPES or np.ndim(array) > MOST_DIMENSIONS:
        message = f"the array {name!r} is {dtype} of {np.ndim(array)} dimensions, which no model has"
        raise ValueError(message)
    laid_out = np.asarray(array, dtype=DTYPES[dtype], order="C")
    if not np.isfinite(laid_out).all():
        message = f"the array {name!r} has entries that are not finite"
        raise ValueError(message)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(laid_out))
    header, entries = stream.getvalue(), _bytes_of(laid_out).data
    digest = hashlib.sha256(header)
    digest.update(entries)
    return Packed(header, entries, Described(dtype, laid_out.shape, laid_out.nbytes, digest.hexdigest()))


def unpack(archive: Archive, name: str, described: Described) -> NDArray[Any]:
    """Return an array of an archive, read-only.

    Raises
    ------
    ModelError
        If the member is not what the manifest says.

    Notes
    -----
    Cost: O(size) time, and no memory but that of the array, which is never larger than the member.
    """
    member, model = f"{name}.npy", archive.model
    length = archive.size(member) - described.nbytes
    if not _BEFORE < length <= _BEFORE + LONGEST_HEADER:
        raise damaged(model, f"{member} has {archive.size(member):,} bytes, and its manifest says {described.nbytes:,}")
    chunks = archive.chunks(member, chain([length], _pieces(described.nbytes)))
    header = next(chunks)
    _check_header(header, member, described, model)
    array = np.empty(described.shape, dtype=DTYPES[described.dtype])
    entries = _bytes_of(array)
    digest = hashlib.sha256(header)
    filled = 0
    for chunk in chunks:
        digest.update(chunk)
        entries[filled : filled + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
        filled += len(chunk)
    if digest.hexdigest() != described.sha256:
        raise damaged(model, f"the checksum of {member} is not that of its manifest")
    if described.dtype == "bool" and entries.max(initial=0) > 1:
        raise damaged(model, f"{member} has entries that are neither true nor false")
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    if not np.isfinite(native).all():
        raise damaged(model, f"{member} has entries that are not finite")
    native.flags.writeable = False
    return native


def _pieces(size: int) -> Iterator[int]:
    """Yield the sizes of reads that together make `size`."""
    for start in range(0, size, CHUNK):
        yield min(CHUNK, size - start)


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the entries of an array in C order as bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)


def _check_header(header: bytes, member: str, described: Described, model: str) -> None:
    """Refuse the header of an .npy file that does not say what the manifest says."""
    found = _HEADER.fullmatch(header[_BEFORE:])
    if not header.startswith(_LEAD) or int.from_bytes(header[8:10], "little") != len(header) - _BEFORE or not found:
        raise damaged(model, f"the header of {member} is not that of an array in format 1.0")
    descr, fortran, shape = (part.decode("ascii", errors="replace") for part in found.groups())
    if descr != DTYPES[described.dtype]:
        raise damaged(model, f"{member} is of type {descr!r}, and {described.dtype} in its manifest")
    if fortran == "True":
        raise damaged(model, f"{member} is in Fortran order, and arrays of a model are in C order")
    # As Python writes a tuple: (3,) and (3, 4).
    if f"({shape})" != str(described.shape):
        raise damaged(model, f"{member} is of shape ({shape}), and {described.shape} in its manifest")
