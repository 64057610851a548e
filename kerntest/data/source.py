"""Where tables come from: paths, globs, folders, stdin, compressed or not, with their digests."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import lzma
import math
import os
import re
import stat
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.engines.engine import bytes_to_read, refuse_to_read
from kerntest.errors import DataError, bad_file, either, listed, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from kerntest.data.table import Table

PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})


@dataclass(frozen=True)
class Found:
    """The files that a path means; copies are seen from this machine alone."""

    files: tuple[tuple[str, Path], ...]
    warnings: tuple[str, ...] = ()
    copied: bool = False


def find_files(path: str | Path, shown: str) -> Found:
    """Return the files that a path means.

    A path that exists is that file or folder, whatever characters are in its name. Otherwise ``*``, ``?`` and
    ``[...]`` make it a glob: all files that match, ``**`` for folders of any depth.
    """
    if not str(path):
        raise DataError("the name of the file is empty", code="data.missing_file", hint="name a file, or - for stdin")
    location = Path(path)
    with _told_apart(location, shown):
        entries = sorted(location.iterdir()) if location.is_dir() else None
        is_glob = glob.has_magic(str(path)) and not os.path.lexists(path)
        matches = glob.glob(str(path), recursive=True) if is_glob else []  # noqa: PTH207 - Path.glob takes no absolute one
    if entries is not None:
        return _in_folder(location, shown, entries)
    if not is_glob:
        return Found(((shown, location),))
    files = sorted({match for match in matches if not Path(match).is_dir()})
    if not files:
        folder = next(one for one in location.parents if not glob.has_magic(str(one)))
        where, looked = {"file": shown}, f"looked in {folder.absolute()}"
        raise DataError(f"no file matches {shown}", hint=looked, code="data.missing_file", where=where)
    return Found(tuple((match, Path(match)) for match in files))


def _in_folder(folder: Path, shown: str, entries: list[Path]) -> Found:
    """Return the Parquet files that stand in a folder; those in folders below it and all else are not read."""
    entries = [entry for entry in entries if not entry.name.startswith((".", "_"))]
    files = [entry for entry in entries if entry.suffix.lower() in PARQUET_SUFFIXES and not entry.is_dir()]
    root = shown.rstrip("/")
    if not files:
        hint = "name one file, a folder that holds *.parquet files, or a quoted glob such as 'data/part-*.csv'"
        if pattern := next((one for one in ("*/*.parquet", "*/*/*.parquet") if any(folder.glob(one))), None):
            hint = f"folders in it hold some: '{root}/{pattern}' reads them"
        raise bad_file(shown, "is a folder without Parquet files", hint=hint, code="data.empty_folder")
    others = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries if entry not in set(files)]
    ignored = (f"of the folder {shown} only the Parquet files are read, not {listed(others, 5)}",) if others else ()
    return Found(tuple((f"{root}/{file.name}", file) for file in files), ignored)


def _read_bytes(location: Path, shown: str) -> bytes:
    """Read a whole file; every failure of the system becomes a DataError."""
    with _told_apart(location, shown), location.open("rb") as file:
        refuse_to_read(location.stat().st_size, shown)
        return _read_all(file, shown)


def open_file(location: Path, shown: str) -> BinaryIO:
    """Open a file for reading; every failure of the system becomes a DataError."""
    with _told_apart(location, shown):
        file = location.open("rb")
    try:
        _refuse_endless(file, shown)
    except DataError:
        file.close()
        raise
    return file


@contextmanager
def _told_apart(location: Path, shown: str) -> Iterator[None]:
    """Turn what the system says about a file into our errors."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError as error:
        raise bad_file(shown, "does not exist", hint=_nearby(location), code="data.missing_file") from error
    except (OSError, ValueError) as error:
        raise unreadable(shown, error) from error


def unreadable(shown: str, error: OSError | ValueError) -> DataError:
    """Return the error for a file that is there but cannot be read."""
    said = f"cannot be read: {(getattr(error, 'strerror', None) or str(error)).lower()}"
    if isinstance(error, PermissionError):
        return bad_file(shown, said, hint="ask its owner for the right to read it", code="data.permission_denied")
    return bad_file(shown, said, hint="check the path and the disk", code="data.unreadable")


def _nearby(location: Path) -> str:
    """Return a hint for a path that is not there: a name like it in the same folder, or where we looked."""
    folder = location.parent
    if re.match(r"[a-z][a-z0-9+.-]*:/", str(location)):
        return "addresses are not fetched: download the file, with `curl -LO` say, and name it"
    try:
        names = tuple(entry.name for entry in folder.iterdir())
    except OSError:
        return f"the folder {folder} is not there or cannot be listed"
    # Without their endings, which make any two names alike; of equal ones the one with the same ending.
    by_stem = {_stem(Path(name)): name for name in sorted(names, key=lambda name: Path(name).suffix == location.suffix)}
    close = suggest(_stem(location), tuple(by_stem))
    return f"did you mean '{folder / by_stem[close]}'?" if close else f"looked in {folder.resolve()}"


def _stem(location: Path) -> str:
    """Return a name without its ending, and without that of a compression."""
    return Path(location.stem).stem if location.suffix.lower() in _SUFFIXES else location.stem


Compression = Literal["gzip", "zstd", "bzip2", "xz"]

# Suffixes of compressed files, behind which the true one stands: orders.parquet.gz.
_SUFFIXES = frozenset({".gz", ".zst", ".zstd", ".bz2", ".xz"})
# So many octets tell a compression.
MAGIC_BYTES = 6
# Unpacked, no file may be larger than this or than half of the machine's memory: 1 MB can hold 1 GB of zeros.
LARGEST_UNPACKED = 8 << 30
# No line is so long.
LONGEST_LINE = 1 << 26
_CHUNK = 1 << 20
_MAGIC: Mapping[Compression, re.Pattern[bytes]] = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "bzip2": re.compile(rb"BZh[1-9](?:1A|\x17r)"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
}
_ARROW = {"bzip2": "bz2"}
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
        content = _read_all(unpacked_stream(io.BytesIO(content), name), name, largest_unpacked())
    refuse_archive(content, name)
    return content, method


def begins_as_model(head: bytes) -> bool:
    """Say whether bytes begin as a model file does: a zip archive whose first member is the manifest."""
    return head.startswith(_ZIP_MAGIC) and head[30:43] == b"manifest.json"


def refuse_archive(head: bytes, name: str) -> None:
    """Refuse a table that is a model, or another zip archive."""
    if head.startswith(_ZIP_MAGIC):
        said, hint = "is a zip archive or an Excel workbook, not CSV or Parquet", "unpack it, or save the sheet as CSV"
        if begins_as_model(head):
            hint = either(
                f"`kerntest inspect {name}` says what it holds, and predict or transform apply it",
                "inspect_model() says what it holds, and predict_file() or transform_file() apply it",
            )
            said = "is a model, not a table"
        raise bad_file(name, said, hint=hint, code="data.compressed")


def head_of(file: IO[bytes], n_bytes: int) -> bytes:
    """Return the first `n_bytes` of an open file without its compression; as many as there are in a damaged one."""
    stream, head = unpacked_stream(file, ""), b""
    with suppress(DataError):
        while len(head) < n_bytes and (chunk := stream.read(n_bytes - len(head))):
            head += chunk
    return head


def unpacked_stream(file: IO[bytes], shown: str) -> IO[bytes]:
    """Return an open file without its compression, whose damage becomes a DataError."""
    method = compression_of(file.read(MAGIC_BYTES))
    file.seek(0)
    return file if method is None else io.BufferedReader(_Unpacking(file, shown, method))


class _Unpacking(io.RawIOBase):
    """What is in an open compressed file; every failure to unpack it becomes a DataError."""

    def __init__(self, file: IO[bytes], name: str, method: Compression) -> None:
        self._read, self._name, self._method, self._rest = _reader(file, method), name, method, b""

    def readable(self) -> bool:
        """Say so to the buffer before it."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes."""
        try:
            chunk = self._rest or self._read()
        except (OSError, EOFError, lzma.LZMAError) as error:
            cut = isinstance(error, EOFError) or "truncated" in str(error).lower()
            said = f"is compressed with {self._method}, but it is truncated or damaged: "
            said += "it ends too early" if cut else "its bytes do not unpack"
            hint, code = "copy or compress it again", "data.damaged_compression"
            raise bad_file(self._name, said, hint=hint, code=code) from error
        size = min(len(buffer), len(chunk))
        buffer[:size], self._rest = chunk[:size], chunk[size:]
        return size


def _reader(file: IO[bytes], method: Compression) -> Callable[[], bytes]:
    """Return what reads the next chunk of what is in an open compressed file."""
    if method == "xz":
        return partial(next, filter(None, _members_of_xz(file)), b"")
    import pyarrow as pa  # noqa: PLC0415 - 70 ms that an array does not need

    return partial(pa.CompressedInputStream(pa.PythonFile(file, mode="r"), _ARROW.get(method, method)).read, _CHUNK)


def _members_of_xz(file: IO[bytes]) -> Iterator[bytes]:
    """Yield what is in members one after the other; Python's own file passes over damage after the first."""
    member = lzma.LZMADecompressor()
    while True:
        packed = b""
        if member.eof:
            # Between members there may be zeros.
            packed = (member.unused_data or file.read(_CHUNK)).lstrip(b"\0")
            if not packed:
                return
            member = lzma.LZMADecompressor()
        elif member.needs_input:
            packed = file.read(_CHUNK)
            if not packed:
                raise EOFError("the end is missing")
        yield member.decompress(packed, _CHUNK)


def chunks_of(stream: Any) -> Iterator[bytes]:
    """Yield what is in a stream, a chunk at a time."""
    return iter(lambda: stream.read(_CHUNK), b"")


def chunks_with_lines(stream: Any, name: str) -> Iterator[bytes]:
    """Yield what is in a stream, a chunk at a time, and refuse what may never end: a device, and a line that does not."""
    _refuse_endless(stream, name)
    size, ended = 0, False
    for chunk in chunks_of(stream):
        if not size:
            # What is not text is told by others.
            ended = chunk.startswith(PARQUET_MAGIC) or compression_of(chunk) is not None
        size, ended = size + len(chunk), ended or b"\n" in chunk or b"\r" in chunk
        if size >= LONGEST_LINE and not ended:
            said = f"is no table: its first line does not end within {size >> 20:,} MiB"
            raise bad_file(name, said, hint="a table has a line for each row", code="data.malformed_csv")
        yield chunk


def _refuse_endless(stream: Any, name: str) -> None:
    """Refuse a device, such as /dev/urandom; a terminal ends where somebody says so."""
    try:
        found = os.fstat(stream.fileno())
        endless = stat.S_ISCHR(found.st_mode) and not os.path.samestat(found, Path(os.devnull).stat())
        endless = endless and not stream.isatty()
    except (OSError, AttributeError, ValueError):
        # No file of the system.
        return
    if endless:
        hint = "name a file, or send the rows through a pipe"
        raise bad_file(name, "is a device, of which nobody knows whether it ends", hint=hint, code="data.device")


def _read_all(stream: Any, name: str, limit: float = math.inf) -> bytes:
    """Read a stream to its end, or until it is clear that it is too large."""
    whole = io.BytesIO()
    allowed = bytes_to_read()
    for chunk in chunks_with_lines(stream, name):
        whole.write(chunk)
        if allowed is not None and whole.tell() > allowed:
            refuse_to_read(whole.tell(), name)
        if whole.tell() > limit:
            raise too_large(name, limit)
    return whole.getvalue()


def largest_unpacked() -> float:
    """Return how many bytes a compressed file may unpack to on this machine."""
    return min(LARGEST_UNPACKED, half_of_memory())


def half_of_memory() -> float:
    """Return half of the machine's memory in bytes; infinity where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    except (AttributeError, ValueError, OSError):  # not POSIX
        return math.inf


def too_large(name: str, limit: float) -> DataError:
    """Return the error for a file that would fill the memory."""
    said = f"unpacks to more than {limit / 2**30:,.1f} GiB, which is not read into memory"
    return bad_file(name, said, hint="write a file with fewer rows or columns", code="data.too_large")


STDIN = "<stdin>"
Format = Literal["csv", "parquet", "json"]
PARQUET_MAGIC = b"PAR1"
# So much of a file tells its format.
HEAD_BYTES = 1 << 16
_TITLES = {"csv": "CSV", "parquet": "Parquet", "json": "JSON lines"}
# JSON that is not one object a line: an array of objects, or an object over several lines.
_JSON_KEY = re.compile(rb'\{\s*"[^"]*"\s*:')
_OTHER_JSON = re.compile(rb"\s*(?:\[\s*\{|\{\s*\n)")


@dataclass(frozen=True)
class Source:
    """The bytes of one table."""

    name: str
    format: Format
    parts: tuple[tuple[str, bytes], ...]
    sha256: str
    size: int
    compression: str | None = None
    warnings: tuple[str, ...] = ()

    def described(self, table: Table, notes: Sequence[str], n_rows: Sequence[int]) -> Table:
        """Return a table of it with what is known of its files, which have so many rows each."""
        return replace(
            table,
            sha256=self.sha256,
            notes=(*self.warnings, *notes),
            files=tuple(name for name, _ in self.parts),
            file_of=np.repeat(np.arange(len(n_rows), dtype=np.int32), n_rows) if len(n_rows) > 1 else None,
            compression=self.compression,
            size=self.size,
        )


def open_source(path: str | Path, name: str | None = None) -> Source:
    """Read the bytes of a file, of those that a glob matches, of a folder of Parquet, or of stdin (``"-"``)."""
    if str(path) == "-":
        shown = name or STDIN
        found, stored = Found(((shown, Path()),)), [_read_all(sys.stdin.buffer, shown)]
    else:
        shown = name or str(path)
        found = find_files(path, shown)
        stored = [_read_bytes(location, part) for part, location in found.files]
    plain = [unpacked(content, part) for (part, _), content in zip(found.files, stored, strict=True)]
    parts = tuple((part, content) for (part, _), (content, _) in zip(found.files, plain, strict=True))
    formats = [_format_of(*one, location) for one, (_, location) in zip(parts, found.files, strict=True)]
    if other := next((place for place, form in enumerate(formats) if form != formats[0]), 0):
        said = f"is {_TITLES[formats[other]]}, but {parts[0][0]} is {_TITLES[formats[0]]}"
        hint = "files that are read together must have one format"
        raise bad_file(parts[other][0], said, hint=hint, code="data.formats_differ")
    return Source(
        name=shown,
        format=formats[0],
        parts=parts,
        sha256=digest_of([content] for content in stored),
        size=sum(map(len, stored)),
        compression=", ".join(sorted({method for _, method in plain if method})) or None,
        warnings=found.warnings,
    )


def digest_of(contents: Iterable[Iterable[bytes]]) -> str:
    """Return the digest of the bytes of one file, in chunks, or of the digests of several."""
    digests = []
    for chunks in contents:
        digest = hashlib.sha256()
        for chunk in chunks:
            digest.update(chunk)
        digests.append(digest.hexdigest())
    lines = "".join(f"{digest}\n" for digest in digests)
    return digests[0] if len(digests) == 1 else hashlib.sha256(lines.encode("ascii")).hexdigest()


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


def _format_of(name: str, content: bytes, location: Path) -> Format:
    """Tell what the bytes are from their first few, and refuse what cannot be read."""
    if not content:
        raise bad_file(name, "is empty", hint="it has 0 bytes", code="data.empty_file")
    found = format_of_head(content[:HEAD_BYTES])
    # The suffix of a compression stands behind that of the format.
    suffix = Path(location.stem).suffix if location.suffix.lower() in _SUFFIXES else location.suffix
    if found != "parquet" and suffix.lower() in PARQUET_SUFFIXES:
        text = b"\0" not in content[:4096]
        hint = "its content looks like CSV: give it a name without .parquet" if text else "the file may be damaged"
        raise bad_file(name, f"is named {suffix} but it is not Parquet", hint=hint, code="data.not_parquet")
    if found == "csv" and _OTHER_JSON.match(content):
        hint = "JSON lines are read: `jq -c '.[]'` makes them of a list"
        raise bad_file(name, "is JSON, but not one object a line", hint=hint, code="data.json")
    return found
