"""Where tables come from: paths, globs, folders, stdin, compressed or not, with their digests."""

from __future__ import annotations

import bz2
import glob
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import stat
import sys
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from kerntest.data.messages import listed
from kerntest.engines.plan import bytes_to_read, refuse_to_read
from kerntest.errors import DataError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
_FOLDERS_BELOW = 2


@dataclass(frozen=True, slots=True)
class Found:
    """The files that a path means."""

    files: tuple[tuple[str, Path], ...]
    warnings: tuple[str, ...] = ()


def find_files(path: str | Path, shown: str) -> Found:
    """Return the files that a path means.

    A path that exists is that file or folder, whatever characters are in its name. Otherwise ``*``, ``?`` and
    ``[...]`` make it a glob: all files that match, ``**`` for folders of any depth.
    """
    location = Path(path)
    try:
        entries = sorted(location.iterdir()) if location.is_dir() else None
        is_glob = glob.has_magic(str(path)) and not os.path.lexists(path)
        matches = glob.glob(str(path), recursive=True) if is_glob else []  # noqa: PTH207 - Path.glob takes no absolute one
    except (OSError, ValueError) as error:
        raise unreadable(shown, error) from error
    if entries is not None:
        return _in_folder(location, shown, entries)
    if not is_glob:
        return Found(((shown, location),))
    files = sorted({match for match in matches if not Path(match).is_dir()})
    if not files:
        raise DataError(
            f"no file matches {shown}",
            hint=f"looked in {_fixed_part(str(path))}",
            code="data.missing_file",
            where={"file": shown},
        )
    return Found(tuple((match, Path(match)) for match in files))


def _fixed_part(pattern: str) -> Path:
    """Return the folder of a glob down to the first name with a wildcard."""
    folder = Path(pattern).parent
    while glob.has_magic(str(folder)):
        folder = folder.parent
    return folder.absolute()


def _in_folder(folder: Path, shown: str, entries: list[Path]) -> Found:
    """Return the Parquet files that stand in a folder; those in folders below it and all else are not read."""
    entries = [entry for entry in entries if not entry.name.startswith((".", "_"))]
    files = [entry for entry in entries if entry.suffix.lower() in PARQUET_SUFFIXES and not entry.is_dir()]
    root = shown.rstrip("/")
    if not files:
        raise _no_parquet(folder, shown, [entry for entry in entries if entry.is_dir()])
    others = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries if entry not in set(files)]
    ignored = (f"of the folder {shown} only the Parquet files are read, not {listed(others, 5)}",) if others else ()
    return Found(tuple((f"{root}/{file.name}", file) for file in files), ignored)


def _no_parquet(folder: Path, shown: str, below: list[Path]) -> DataError:
    """Return the error for a folder without Parquet, with the glob that finds what is in the folders below it."""
    pattern = ""
    for depth in range(1, _FOLDERS_BELOW + 1):
        stars = "/".join(["*"] * depth)
        if below and not pattern and next(folder.glob(f"{stars}/*.parquet"), None) is not None:
            pattern = f"{shown.rstrip('/')}/{stars}/*.parquet"
    return DataError(
        f"{shown} is a folder without Parquet files",
        hint=f"folders in it hold some: '{pattern}' reads them"
        if pattern
        else "name one file, a folder that holds *.parquet files, or a quoted glob such as 'data/part-*.csv'",
        code="data.empty_folder",
        where={"file": shown},
    )


def read_bytes(location: Path, shown: str) -> bytes:
    """Read a whole file; every failure of the system becomes a DataError."""
    with _told_apart(location, shown):
        status = location.stat()
        if not stat.S_ISFIFO(status.st_mode):
            refuse_to_read(status.st_size, shown)
            return location.read_bytes()
        with location.open("rb") as pipe:
            return read_chunks(pipe, shown)


def open_file(location: Path, shown: str) -> BinaryIO:
    """Open a file for reading; every failure of the system becomes a DataError."""
    with _told_apart(location, shown):
        return location.open("rb")


@contextmanager
def _told_apart(location: Path, shown: str) -> Iterator[None]:
    """Turn what the system says about a file into our errors."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(
            f"{shown} does not exist", hint=_nearby(location), code="data.missing_file", where={"file": shown}
        ) from error
    except (OSError, ValueError) as error:
        raise unreadable(shown, error) from error


def unreadable(shown: str, error: OSError | ValueError) -> DataError:
    """Return the error for a file that is there but cannot be read."""
    denied = isinstance(error, PermissionError)
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return DataError(
        f"{shown} cannot be read: {reason.lower()}",
        hint="ask its owner for the right to read it" if denied else "check the path and the disk",
        code="data.permission_denied" if denied else "data.unreadable",
        where={"file": shown},
    )


def _nearby(location: Path) -> str:
    """Return a hint for a path that is not there: a name like it in the same folder, or where we looked."""
    folder = location.parent
    try:
        names = tuple(entry.name for entry in folder.iterdir())
    except OSError:
        return f"the folder {folder} is not there or cannot be listed"
    # Without their endings, which make any two names alike; of equal ones the one with the same ending.
    by_stem = {Path(name).stem: name for name in sorted(names, key=lambda name: Path(name).suffix == location.suffix)}
    close = suggest(location.stem, tuple(by_stem))
    return f"did you mean '{folder / by_stem[close]}'?" if close else f"looked in {folder.resolve()}"


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
    """Read a stream to its end, or until it is clear that it is too large."""
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


Format = Literal["csv", "parquet", "json"]
PARQUET_MAGIC = b"PAR1"
# So much of a file tells its format.
HEAD_BYTES = 1 << 16
_TITLES = {"csv": "CSV", "parquet": "Parquet", "json": "JSON lines"}
# JSON that is not one object a line: an array of objects, or an object over several lines.
_JSON_KEY = re.compile(rb'\{\s*"[^"]*"\s*:')
_OTHER_JSON = re.compile(rb"\s*(?:\[\s*\{|\{\s*\n)")


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of one table."""

    name: str
    format: Format
    parts: tuple[tuple[str, bytes], ...]
    sha256: str
    size: int
    compression: str | None = None
    warnings: tuple[str, ...] = ()


def open_source(path: str | Path, name: str | None = None) -> Source:
    """Read the bytes of a file, of those that a glob matches, of a folder of Parquet, or of stdin (``"-"``)."""
    if str(path) == "-":
        return _source(name or "<stdin>", ((name or "<stdin>", read_chunks(sys.stdin.buffer, name or "<stdin>")),))
    shown = name or str(path)
    if not str(path):
        raise DataError("the name of the file is empty", code="data.missing_file", hint="name a file, or - for stdin")
    found = find_files(path, shown)
    stored = tuple((part, read_bytes(location, part)) for part, location in found.files)
    suffixes = tuple(_suffix(location) for _, location in found.files)
    return _source(shown, stored, suffixes, found.warnings)


def _suffix(location: Path) -> str:
    """Return the suffix that tells the format: the one before that of a compression."""
    return Path(location.stem).suffix if location.suffix.lower() in SUFFIXES else location.suffix


def _source(
    name: str,
    stored: tuple[tuple[str, bytes], ...],
    suffixes: tuple[str, ...] = ("",),
    warnings: tuple[str, ...] = (),
) -> Source:
    """Digest the files as stored, unpack them, and tell their format."""
    parts, formats, methods = [], [], set()
    for (part_name, content), suffix in zip(stored, suffixes, strict=True):
        plain, method = unpacked(content, part_name)
        formats.append(_format_of(part_name, plain, suffix))
        parts.append((part_name, plain))
        methods.add(method or "")
    for (part_name, _), part_format in zip(parts, formats, strict=True):
        if part_format != formats[0]:
            raise DataError(
                f"{part_name} is {_TITLES[part_format]}, but {parts[0][0]} is {_TITLES[formats[0]]}",
                hint="files that are read together must have one format",
                code="data.formats_differ",
                where={"file": part_name},
            )
    return Source(
        name=name,
        format=formats[0],
        parts=tuple(parts),
        sha256=_digest([content for _, content in stored]),
        size=sum(len(content) for _, content in stored),
        compression=", ".join(sorted(methods - {""})) or None,
        warnings=warnings,
    )


def _digest(contents: list[bytes]) -> str:
    """Return the digest of one file's bytes, or of the digests of several."""
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode("ascii")).hexdigest()


def format_of_head(head: bytes) -> Format:
    """Tell what bytes are from their beginning: Parquet, JSON with one object in a line, or else CSV."""
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"{"):
        return "csv"
    line = text.split(b"\n", 1)[0]
    try:
        return "json" if isinstance(json.loads(line), dict) else "csv"
    except ValueError:
        # One object may be longer than the beginning.
        return "json" if len(line) == len(text) and _JSON_KEY.match(text) else "csv"


def _format_of(name: str, content: bytes, suffix: str) -> Format:
    """Tell what the bytes are from their first few, and refuse what cannot be read."""
    where = {"file": name}
    if not content:
        raise DataError(f"{name} is empty", hint="it has 0 bytes", code="data.empty_file", where=where)
    found = format_of_head(content[:HEAD_BYTES])
    if found == "parquet":
        return found
    if suffix.lower() in PARQUET_SUFFIXES:
        text = b"\0" not in content[:4096]
        raise DataError(
            f"{name} is named {suffix} but it is not Parquet",
            hint="its content looks like CSV: give it a name without .parquet" if text else "the file may be damaged",
            code="data.not_parquet",
            where=where,
        )
    if found == "csv" and _OTHER_JSON.match(content):
        raise DataError(
            f"{name} is JSON, but not one object a line",
            hint="JSON lines are read: `jq -c '.[]'` makes them of a list",
            code="data.json",
            where=where,
        )
    return found
