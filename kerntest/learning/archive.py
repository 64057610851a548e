"""Zip archives from strangers: every name, size and place is checked before anything is read or allocated.

Only what a model consists of is let in (see `kerntest.learning.modelfile`): members that are stored as they are, so
that no archive can be larger inside than outside.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kerntest.data.paths import unreadable
from kerntest.data.source import PARQUET_MAGIC
from kerntest.data.wording import shown_value
from kerntest.errors import DataError, ModelError, suggest
from kerntest.learning.fields import damaged
from kerntest.learning.manifest import ARRAY_NAME, MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

MEMBER_NAME = re.compile(rf"{re.escape(MANIFEST)}|{ARRAY_NAME.pattern}\.npy", re.ASCII)
MOST_MEMBERS = 1000
LONGEST_DIRECTORY = 2**20

# Of a first member, and of a directory without members.
_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_LOCAL_HEADER = 30
_ENCRYPTED = 0x1 | 0x40 | 0x2000
# What zipfile raises on bytes that are no archive.
_MALFORMED = (zipfile.BadZipFile, EOFError, IndexError, KeyError, OverflowError, RuntimeError, ValueError, struct.error)


@dataclass(frozen=True, slots=True, eq=False)
class Archive:
    """An archive whose directory has been checked.

    Parameters
    ----------
    model : str
        How messages call it.
    zipped : ZipFile
    members : dict of str to ZipInfo
        By name, in the order of the directory.
    """

    model: str
    zipped: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]

    def size(self, member: str) -> int:
        """Return the bytes of a member."""
        return self.members[member].file_size

    def chunks(self, member: str, sizes: Iterable[int]) -> Iterator[bytes]:
        """Yield the bytes of a member in pieces of these sizes, which together are its size.

        Raises
        ------
        ModelError
            If the member ends too early, or is not what the directory says.
        """
        with _guarded(self.model), self.zipped.open(self.members[member]) as stream:
            for size in sizes:
                yield stream.read(size)


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open the archive that a model file is.

    Raises
    ------
    DataError
        If the file does not exist, or the system refuses to read it.
    ModelError
        If it is no such archive.
    """
    model = os.fspath(path)
    with _opened(Path(path), model) as file:
        try:
            yield _checked(file, model)
        except OSError as error:
            raise unreadable(model, error) from error


@contextmanager
def _guarded(model: str) -> Iterator[None]:
    """Turn what zipfile raises on malformed archives into our error."""
    try:
        yield
    except _MALFORMED as error:
        raise damaged(model, f"zip: {str(error) or type(error).__name__}") from error


def _opened(path: Path, model: str) -> BinaryIO:
    """Open a regular file."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return path.open("rb")
    except FileNotFoundError as error:
        raise _missing(path, model) from error
    except (OSError, ValueError) as error:
        raise unreadable(model, error) from error
    raise _no_model(model, "a folder" if stat.S_ISDIR(mode) else "no regular file", "name the file of the model")


def _missing(path: Path, model: str) -> DataError:
    """Return the error for a file that is not there."""
    try:
        close = suggest(path.name, tuple(entry.name for entry in path.parent.iterdir()))
    except OSError:
        close = None
    return DataError(
        f"{model} does not exist",
        hint=f"did you mean '{path.parent / close}'?" if close else f"looked in {path.parent.resolve()}",
        code="data.missing_file",
        where={"file": model},
    )


def _no_model(model: str, what: str, hint: str | None = None) -> ModelError:
    """Return the error for a file that never was a model."""
    return ModelError(
        f"{model} is not a model: it is {what}",
        hint=hint or "a model is what svm, ridge and kpca write with -o",
        code="model.not_a_model",
        where={"file": model},
    )


def _checked(file: BinaryIO, model: str) -> Archive:
    """Return the archive in a file, after a look at its start, its end and its directory."""
    size = os.fstat(file.fileno()).st_size
    _check_start(file.read(4096), model)
    _check_end(file, size, model)
    with _guarded(model):
        file.seek(0)
        zipped = zipfile.ZipFile(file)
    members: dict[str, zipfile.ZipInfo] = {}
    for info in zipped.infolist():
        _check_member(info, size, model)
        if info.filename in members:
            raise damaged(model, f"it holds {info.filename} twice", code="model.unsafe")
        members[info.filename] = info
    if MANIFEST not in members:
        raise _no_model(model, f"a zip archive without {MANIFEST}")
    # Members that share bytes would make little stand for much.
    if sum(info.file_size for info in members.values()) > size:
        raise damaged(model, "its members are larger than the file", code="model.unsafe")
    return Archive(model, zipped, members)


def _check_start(start: bytes, model: str) -> None:
    """Refuse a file that does not begin as a zip archive does, and say what it may be instead."""
    if start.startswith(_STARTS):
        return
    if not start:
        raise _no_model(model, "empty")
    hint = "the model comes first, then the data: kerntest COMMAND MODEL DATA"
    if start.startswith(PARQUET_MAGIC):
        raise _no_model(model, "a Parquet table", hint)
    if b"\0" not in start and start[0] < 0x80:
        raise _no_model(model, "text, such as a CSV table", hint)
    raise _no_model(model, "neither a zip archive nor text")


def _check_end(file: BinaryIO, size: int, model: str) -> None:
    """Refuse an archive whose directory is not right before its end, or longer than that of any model."""
    file.seek(max(0, size - _END.size - _LOCATOR64.size - _END64.size))
    tail = file.read()
    end, locator = tail[-_END.size :], tail[-_END.size - _LOCATOR64.size : -_END.size]
    if len(end) < _END.size or not end.startswith(b"PK\x05\x06"):
        raise damaged(model, "the directory at its end is missing: it was cut off, or something was added to it")
    *_, entries, length, start, comment = _END.unpack(end)
    behind = len(end)
    if locator.startswith(b"PK\x06\x07"):
        behind = len(tail)
        place = _LOCATOR64.unpack(locator)[2]
        if not tail.startswith(b"PK\x06\x06") or place != size - behind:
            raise damaged(model, "the directory at its end is malformed")
        *_, entries, length, start = _END64.unpack(tail[: _END64.size])
    if comment or start + length + behind != size:
        raise damaged(model, "its directory does not stand where it should")
    if entries > MOST_MEMBERS or length > LONGEST_DIRECTORY:
        raise damaged(model, f"it has {entries:,} members, more than any model", code="model.unsafe")


def _check_member(info: zipfile.ZipInfo, size: int, model: str) -> None:
    """Refuse a member that no model has: by its name, its kind, or its place in the file."""
    name = info.orig_filename
    if not MEMBER_NAME.fullmatch(name):
        raise damaged(model, f"it holds {shown_value(name)}, a member that no model has", code="model.unsafe")
    if stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG}:
        raise damaged(model, f"{name} is a link or another special file", code="model.unsafe")
    if info.flag_bits & _ENCRYPTED:
        raise damaged(model, f"{name} is encrypted", code="model.unsafe")
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise damaged(model, f"{name} is compressed, and members of a model never are", code="model.unsafe")
    if info.header_offset < 0 or info.header_offset + _LOCAL_HEADER + info.file_size > size:
        raise damaged(model, f"{name} reaches beyond the end of the file")
