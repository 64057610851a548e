"""Where a table's bytes come from, and what they are: told by their content, not by the name."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kerntest.data.compression import SUFFIXES, read_chunks, unpacked
from kerntest.data.paths import PARQUET_SUFFIXES, find_files, read_bytes
from kerntest.errors import DataError

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
    """The bytes of one table.

    Parameters
    ----------
    name : str
        How messages call it.
    format : {"csv", "parquet", "json"}
        What the bytes are.
    parts : tuple of (str, bytes)
        Name and content of each file, without compression: one, or of a folder or a glob several, sorted by name.
    sha256 : str
        Of one file: the digest of its bytes as stored. Of several: the digest of their digests, each in hexadecimal
        on a line of its own, which a shell can check: ``sha256sum part-* | cut -d' ' -f1 | sha256sum``.
    size : int
        Bytes as stored, of all files together.
    compression : str or None
        "gzip", "zstd", "bzip2" or "xz", several with commas between them, or None.
    warnings : tuple of str
        What was found but is not read.
    """

    name: str
    format: Format
    parts: tuple[tuple[str, bytes], ...]
    sha256: str
    size: int
    compression: str | None = None
    warnings: tuple[str, ...] = ()


def open_source(path: str | Path, name: str | None = None) -> Source:
    """Read the bytes of a file, of those that a glob matches, of a folder of Parquet, or of stdin (``"-"``).

    Raises
    ------
    DataError
        A file is missing, unreadable, empty, damaged, or named Parquet without being it; nothing matches the glob; the
        folder has no Parquet; or the files are not all of one format.
    """
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
