"""Where a table's bytes come from, and what they are: told by their content, not by the name."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kerntest.errors import DataError, suggest

PARQUET_MAGIC = b"PAR1"
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
_COMPRESSED = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ\x00": ("xz", "unxz"),
}
_ZIP_MAGIC = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of one table.

    Parameters
    ----------
    name : str
        How messages call it.
    format : {"csv", "parquet"}
        What the bytes are.
    parts : tuple of (str, bytes)
        Name and content of each file: one, or for a folder of Parquet several, sorted by name.
    sha256 : str
        Digest of the bytes of all parts, in order.
    """

    name: str
    format: Literal["csv", "parquet"]
    parts: tuple[tuple[str, bytes], ...]
    sha256: str


def open_source(path: str | Path, name: str | None = None) -> Source:
    """Read the bytes of a file, of a folder of Parquet, or of stdin (``"-"``).

    Raises
    ------
    DataError
        The file is missing, unreadable, empty, compressed, or named Parquet without being it; the folder has no Parquet.
    """
    if str(path) == "-":
        return _source(name or "<stdin>", ((name or "<stdin>", sys.stdin.buffer.read()),))
    shown = name or str(path)
    if not str(path):
        raise DataError("the name of the file is empty", code="data.missing_file", hint="name a file, or - for stdin")
    location = Path(path)
    if not _is_folder(location, shown):
        return _source(shown, ((shown, _read_bytes(location, shown)),), suffix=location.suffix)
    files = sorted(file for file in location.glob("*.parquet") if not file.name.startswith("."))
    if not files:
        raise DataError(
            f"{shown} is a folder without Parquet files",
            hint="name one file, or a folder that holds *.parquet files",
            code="data.empty_folder",
            where={"file": shown},
        )
    names = [f"{shown.rstrip('/')}/{file.name}" for file in files]
    parts = tuple((part, _read_bytes(file, part)) for part, file in zip(names, files, strict=True))
    return _source(shown, parts, suffix=".parquet")


def _source(name: str, parts: tuple[tuple[str, bytes], ...], suffix: str = "") -> Source:
    """Tell the format of the parts and digest them."""
    formats = [_format_of(part_name, content, suffix) for part_name, content in parts]
    digest = hashlib.sha256()
    for _, content in parts:
        digest.update(content)
    return Source(name=name, format=formats[0], parts=parts, sha256=digest.hexdigest())


def _is_folder(location: Path, shown: str) -> bool:
    """Say whether the path is a folder; a path that the system refuses to look at is an error of ours."""
    try:
        return location.is_dir()
    except (OSError, ValueError) as error:
        raise _unreadable(shown, error) from error


def _read_bytes(location: Path, shown: str) -> bytes:
    """Read a whole file; every failure of the system becomes a DataError."""
    try:
        return location.read_bytes()
    except FileNotFoundError as error:
        raise DataError(
            f"{shown} does not exist", hint=_nearby(location), code="data.missing_file", where={"file": shown}
        ) from error
    except (OSError, ValueError) as error:
        raise _unreadable(shown, error) from error


def _unreadable(shown: str, error: OSError | ValueError) -> DataError:
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
    close = suggest(location.name, names)
    return f"did you mean '{folder / close}'?" if close else f"looked in {folder.resolve()}"


def _format_of(name: str, content: bytes, suffix: str) -> Literal["csv", "parquet"]:
    """Tell what the bytes are from their first few, and refuse what cannot be read."""
    where = {"file": name}
    if not content:
        raise DataError(f"{name} is empty", hint="it has 0 bytes: look at what wrote it", code="data.empty_file", where=where)
    _refuse_compressed(name, content)
    if content.startswith(PARQUET_MAGIC):
        return "parquet"
    if suffix.lower() in PARQUET_SUFFIXES:
        text = b"\0" not in content[:4096]
        raise DataError(
            f"{name} is named {suffix} but it is not Parquet",
            hint="its content looks like CSV: give it a name without .parquet" if text else "the file may be damaged",
            code="data.not_parquet",
            where=where,
        )
    return "csv"


def _refuse_compressed(name: str, content: bytes) -> None:
    """Refuse compressed bytes with a clear line: the one place where reading them would begin."""
    for magic, (method, command) in _COMPRESSED.items():
        if content.startswith(magic):
            raise DataError(
                f"{name} is compressed with {method}; decompress it first",
                hint=f"`{command}` does that",
                code="data.compressed",
                where={"file": name},
            )
    if content.startswith(_ZIP_MAGIC):
        raise DataError(
            f"{name} is a zip archive or an Excel workbook, not CSV or Parquet",
            hint="unpack it, or save the sheet as CSV",
            code="data.compressed",
            where={"file": name},
        )
