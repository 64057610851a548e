"""Compressed bytes to the bytes in them: gzip, zstd, bzip2 and xz, told by their first octets."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Literal

from kerntest.engines.plan import bytes_to_read, refuse_to_read
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Compression = Literal["gzip", "zstd", "bzip2", "xz"]

# Suffixes of compressed files, behind which the true one stands: orders.parquet.gz.
SUFFIXES = frozenset({".gz", ".zst", ".zstd", ".bz2", ".xz"})
# What reading damaged bytes may raise.
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError)
# So many octets tell a compression.
MAGIC_BYTES = 6
# Unpacked, no file may be larger than this or than half of the machine's memory: 1 MB can hold 1 GB of zeros.
LARGEST_UNPACKED = 8 << 30
_CHUNK = 1 << 20
_MAGIC: Mapping[Compression, re.Pattern[bytes]] = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "bzip2": re.compile(rb"BZh[1-9](?:1A|\x17r)"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
}
_UNPACK = {"gzip": "gunzip", "zstd": "unzstd", "bzip2": "bunzip2", "xz": "unxz"}
_ZIP_MAGIC = b"PK\x03\x04"


def compression_of(content: bytes) -> Compression | None:
    """Tell how the bytes are compressed from their first few; None where they are not."""
    return next((method for method, magic in _MAGIC.items() if magic.match(content)), None)


def unpacked(content: bytes, name: str) -> tuple[bytes, Compression | None]:
    """Return the bytes without their compression, and what it was.

    Unpacking goes chunk by chunk and stops at the limit (8 GiB, or half of the machine's memory where that is less),
    so that a small file that unpacks to something enormous takes no more memory than that.

    Raises
    ------
    DataError
        The compressed bytes are truncated or damaged, too large, compressed twice, or in a format that is not read.
    """
    method = compression_of(content)
    if method is not None:
        content = _read_all(unpacking(io.BytesIO(content), name, method), name)
        again = compression_of(content)
        if again is not None:
            raise DataError(
                f"{name} is compressed twice, with {again} within {method}",
                hint=f"unpack it once: `{_UNPACK[method]}` does that",
                code="data.compressed",
                where={"file": name},
            )
    _refuse_others(content, name)
    return content, method


def head_of(file: IO[bytes], n_bytes: int) -> bytes:
    """Return the first `n_bytes` of an open file without its compression; as many as there are in a damaged one."""
    magic = file.read(MAGIC_BYTES)
    file.seek(0)
    method = compression_of(magic)
    if method is None:
        return file.read(n_bytes)
    stream, head = unpacking(file, "", method), b""
    with suppress(DataError):
        while len(head) < n_bytes and (chunk := stream.read(n_bytes - len(head))):
            head += chunk
    return head


class _Unpacking:
    """A stream of what is in an open compressed file; every failure to unpack it becomes a DataError."""

    closed = False

    def __init__(self, file: IO[bytes], name: str, method: Compression) -> None:
        self._stream = _opened(file, method)
        self._name, self._method = name, method

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        try:
            return bytes(self._stream.read(size))
        except DAMAGE as error:
            cut = isinstance(error, EOFError) or "truncated" in str(error).lower()
            raise DataError(
                f"{self._name} is compressed with {self._method}, but it is truncated or damaged: "
                f"{'it ends too early' if cut else 'its bytes do not unpack'}",
                hint="copy or compress it again",
                code="data.damaged_compression",
                where={"file": self._name},
            ) from error

    def close(self) -> None:
        """Leave the file to its owner."""


def unpacking(file: IO[bytes], name: str, method: Compression) -> _Unpacking:
    """Return a stream of what is in an open compressed file, for readers that do not hold it in memory."""
    return _Unpacking(file, name, method)


def _opened(file: IO[bytes], method: Compression) -> Any:
    if method == "gzip":
        return gzip.GzipFile(fileobj=file)
    if method in {"bzip2", "xz"}:
        return _Members(file, bz2.BZ2Decompressor if method == "bzip2" else lzma.LZMADecompressor)
    import pyarrow as pa  # noqa: PLC0415 - 70 ms that an array does not need

    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")


class _Members:
    """What is in members of bzip2 or xz one after the other; Python's own files pass over damage after the first."""

    closed = False

    def __init__(self, file: IO[bytes], member: Callable[[], Any]) -> None:
        self._file, self._member = file, member
        self._current = member()
        self._packed = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, fewer than asked for only at the end."""
        pieces: list[bytes] = []
        missing = size
        while missing and self._fed():
            pieces.append(self._current.decompress(self._packed, missing))
            self._packed = b""
            missing -= len(pieces[-1]) if size >= 0 else 0
        return b"".join(pieces)

    def _fed(self) -> bool:
        """Say whether there is more to come, once the current member has what it needs for that."""
        if self._current.eof:
            # Between members of xz there may be zeros.
            rest = (self._current.unused_data or self._file.read(_CHUNK)).lstrip(b"\0")
            if not rest:
                return False
            self._current, self._packed = self._member(), rest
        elif self._current.needs_input:
            self._packed = self._file.read(_CHUNK)
            if not self._packed:
                raise EOFError("the end is missing")
        return True

    def close(self) -> None:
        """Leave the file to its owner."""


def _read_all(stream: _Unpacking, name: str) -> bytes:
    """Read the stream to its end."""
    limit = largest_unpacked()
    return read_chunks(stream, name, limit)


def read_chunks(stream: Any, name: str, limit: int | None = None) -> bytes:
    """Read a stream to its end, or until it is clear that it is too large.

    Raises
    ------
    DataError
        If it holds more than `limit` bytes.
    UndecidedError
        If it holds more than --memory allows.
    """
    whole = io.BytesIO()
    allowed = bytes_to_read()
    while chunk := stream.read(_CHUNK):
        whole.write(chunk)
        if allowed is not None and whole.tell() > allowed:
            refuse_to_read(whole.tell(), name)
        if limit is not None and whole.tell() > limit:
            raise too_large(name, limit)
    return whole.getvalue()


def largest_unpacked() -> int:
    """Return how many bytes a compressed file may unpack to on this machine."""
    half = half_of_memory()
    return LARGEST_UNPACKED if half is None else min(LARGEST_UNPACKED, half)


def half_of_memory() -> int | None:
    """Return half of the machine's memory in bytes; None where the system does not tell."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not POSIX
        return None
    return memory // 2 if memory > 0 else None


def too_large(name: str, limit: int) -> DataError:
    """Return the error for a file that would fill the memory."""
    return DataError(
        f"{name} unpacks to more than {limit / 2**30:,.1f} GiB, which is not read into memory",
        hint="write a file with fewer rows or columns",
        code="data.too_large",
        where={"file": name},
    )


def _refuse_others(content: bytes, name: str) -> None:
    """Refuse compressed bytes that are not read, with a clear line."""
    if content.startswith(_ZIP_MAGIC):
        raise DataError(
            f"{name} is a zip archive or an Excel workbook, not CSV or Parquet",
            hint="unpack it, or save the sheet as CSV",
            code="data.compressed",
            where={"file": name},
        )
