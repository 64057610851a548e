"""A model on disk: a zip archive of arrays, and one JSON text that says what they mean.

Reading a model runs no code of it: there is no pickle anywhere, and every size, name and checksum is verified before
use. This page is the format, version 1; whoever can read zip, JSON and little-endian numbers can read a model.

**The archive.** A zip file (with zip64 records from 4 GiB on) whose members are stored, neither compressed nor
encrypted. The directory ends with the file: no comment behind it. Members, in this order: ``manifest.json``, then one
``NAME.npy`` for each array, by name. Names of arrays are lower-case ASCII letters, digits and ``_``, begin with a
letter and have at most 63 characters. The writer dates every member 1980-01-01 and gives all the same permissions, so
that equal models are equal byte by byte. At most 1000 members and 64 GiB in all.

**manifest.json.** One JSON object (RFC 8259) in ASCII, at most 64 MB, no key twice, no NaN or infinity. Numbers have
the 17 digits that bring every float64 back. Its fields:

================== ============ =======================================================================================
format_version     whole number 1 here. Look at it first: a larger one means another format than this page describes
kind               text         which learner wrote the rest: ``svm``, ``ridge``, ``kpca``, ...
kerntest_version   text         of the kerntest that wrote it
members            object       for the name of each array ``{"dtype", "shape", "nbytes", "sha256"}``
parameters         object       those of the Python class that fits the same model to the same rows; not in older files
(any other)                     what the learner needs besides arrays: its parameters, its kernel as a text that
                                `kerntest.kernels.text.parse_kernel` reads, its columns as `Encoder.to_plain` gives them
================== ============ =======================================================================================

``dtype`` is one of float64, float32, int64, int32, uint8, bool; ``shape`` a list of up to 8 whole numbers; ``nbytes``
the product of the shape and of the bytes of one entry; ``sha256`` the digest in hexadecimal of the whole member, its
header included, as ``unzip -p MODEL NAME.npy | sha256sum`` prints it.

**NAME.npy.** As `numpy.save` writes it: the bytes ``93 4E 55 4D 50 59 01 00``; the length h of the header, two bytes,
little-endian, at most 1024; the header, h bytes of ASCII such as
``{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }``, filled with blanks and ended by a newline; then
``nbytes`` bytes of entries: little-endian, the last index fastest (C order), ``bool`` as 0 or 1. So the entries are
the last ``nbytes`` bytes of the member, and a reader that believes the manifest may skip the header. ``descr`` is
``<f8 <f4 <i8 <i4 |u1 |b1`` for the dtypes in the order above. All floats are finite.

**Versions.** Within a format version, manifests may gain fields. Whatever an older reader would misunderstand raises
``format_version``, and a reader refuses what is newer than itself. ``manifest.json`` stays where it is.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from kerntest import __version__
from kerntest.data.source import PARQUET_MAGIC, open_file, unreadable
from kerntest.errors import DataError, ModelError, listed, one_line, shown_value
from kerntest.report.write import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import BinaryIO

    from numpy.typing import NDArray

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
ARRAY_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
MEMBER_NAME = re.compile(rf"{re.escape(MANIFEST)}|{ARRAY_NAME.pattern}\.npy", re.ASCII)
# What each dtype is called in the header of an .npy file.
DTYPES = {"float64": "<f8", "float32": "<f4", "int64": "<i8", "int32": "<i4", "uint8": "|u1", "bool": "|b1"}
MOST_DIMENSIONS = 8
MOST_MEMBERS = 1000
LARGEST_MODEL = 2**36
LARGEST_MANIFEST = 64 * 2**20
LONGEST_DIRECTORY = 2**20
LONGEST_HEADER = 1024
LONGEST_WORD = 40
# Larger counts are no floats; larger whole numbers are not shown in messages.
LARGEST_COUNT = 2**53
_SHOWN_BITS = 64

# Before the header of an .npy file: eight bytes, and two for its length.
_LEAD = 10
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q4sLQL")
# Before the name of a member, where it stands.
_LOCAL = 30
_ENCRYPTED = 0x1 | 0x40 | 0x2000
# What zipfile raises on bytes that are no archive.
_MALFORMED = (zipfile.BadZipFile, EOFError, IndexError, KeyError, OverflowError, RuntimeError, ValueError, struct.error)
_types_of = cache(get_type_hints)


@dataclass(frozen=True, slots=True)
class Member:
    """What the manifest says of an array; the digest is that of the whole member."""

    dtype: Literal["float64", "float32", "int64", "int32", "uint8", "bool"]
    shape: tuple[int, ...]
    nbytes: int
    sha256: str

    def flaw(self) -> str | None:
        """Return what is wrong with it."""
        itemsize = np.dtype(DTYPES[self.dtype]).itemsize
        # Lengths of 0 do not excuse others that no array could have.
        if len(self.shape) > MOST_DIMENSIONS or itemsize * math.prod(max(1, n) for n in self.shape) > LARGEST_MODEL:
            return "shape is larger than that of any model"
        if self.nbytes != itemsize * math.prod(self.shape):
            return f"nbytes must be {itemsize * math.prod(self.shape)}, as dtype and shape say, not {self.nbytes}"
        return None

    def header(self, length: int | None = None) -> bytes:
        """Return how the .npy file begins, filled with blanks to a length."""
        stream = io.BytesIO()
        described = {"descr": DTYPES[self.dtype], "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(stream, described)
        found = stream.getvalue()
        if length is None:
            return found
        text = found[_LEAD:].rstrip().ljust(length - _LEAD - 1) + b"\n"
        return found[: _LEAD - 2] + len(text).to_bytes(2, "little") + text


@dataclass(frozen=True, slots=True, eq=False)
class ModelFile:
    """What a model file holds, checked; what the learner put into the manifest only for being JSON. Arrays are read-only."""

    manifest: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    name: str

    @property
    def kind(self) -> str:
        """Which learner wrote it."""
        return str(self.manifest["kind"])

    def array(self, name: str, dtype: Literal["float64", "int64"], dimensions: int) -> NDArray[Any]:
        """Return an array of this kind of numbers and so many dimensions; ModelError if there is none."""
        array = self.arrays.get(name)
        if array is None or array.ndim != dimensions or array.dtype.kind != dtype[0]:
            raise damaged(self.name, f"its array {name!r} is missing, or not {dtype} of {dimensions} dimensions")
        return array.astype(dtype, copy=False)

    def field(self, name: str, kind: Any) -> Any:
        """Return a field of the manifest that must be of a type."""
        if name not in self.manifest:
            raise damaged(self.name, f"{name} is missing in its manifest")
        return from_plain(kind, self.manifest[name], self.name, name)


def write_model(
    path: str | os.PathLike[str], manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, force: bool
) -> None:
    """Write a model to a new file, or with `force` to one that is there: afterwards it is whole, or as it was before.

    DataError if that cannot be, or the model is larger than the format allows. The whole file is in memory once.
    """
    write_file(Path(path), model_bytes(manifest, arrays), new=not force)


def model_bytes(manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a model as the bytes of its file: the same bytes for equal content, whatever the order of the keys.

    `format_version`, `kerntest_version` and `members` are filled in. ValueError for arrays that the format cannot hold.
    """
    contents: dict[str, list[memoryview]] = {}
    members = {}
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        dtype: Any = array.dtype.name
        if dtype not in DTYPES or array.ndim > MOST_DIMENSIONS:
            raise ValueError(f"the array {name!r} is {dtype} of {array.ndim} dimensions, which no model has")
        if not np.isfinite(array).all():
            raise ValueError(f"the array {name!r} has entries that are not finite")
        member = Member(dtype, array.shape, array.nbytes, "")
        entries = np.asarray(array, dtype=DTYPES[dtype], order="C").reshape(-1).view(np.uint8).data
        digest = hashlib.sha256(member.header())
        digest.update(entries)
        contents[f"{name}.npy"] = [memoryview(member.header()), entries]
        members[name] = to_plain(replace(member, sha256=digest.hexdigest()))
    versions = {"format_version": FORMAT_VERSION, "kerntest_version": __version__}
    plain = {**manifest, **versions, "members": members}
    text = json.dumps(plain, allow_nan=False, ensure_ascii=True, indent=1, sort_keys=True).encode("ascii") + b"\n"
    total = sum(map(len, chain.from_iterable(contents.values())))
    for what, size, largest in (("description", len(text), LARGEST_MANIFEST), ("model", total, LARGEST_MODEL)):
        if size > largest:
            raise DataError(
                f"the {what} has {size:,} bytes, more than the {largest:,} that a model file may have",
                hint="fit it to fewer rows, or leave out text columns with very many different values",
                code="data.too_large",
            )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, parts in [(MANIFEST, [memoryview(text)]), *contents.items()]:
            # Looks the same whenever and wherever it is written.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            # Known in advance, it tells zipfile whether zip64 is needed.
            info.file_size = sum(map(len, parts))
            with archive.open(info, "w") as stream:
                stream.writelines(parts)
    return file.getvalue()


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a model file, whoever wrote it.

    DataError if the file is not there or cannot be read; ModelError if it is no model, a newer one than this version
    can read, or not as it was written. Nothing is allocated for more bytes than the file has.
    """
    name, location = os.fspath(path), Path(path)
    # What cannot be looked at cannot be opened either, and that says why.
    with suppress(OSError, ValueError):
        if not stat.S_ISREG(location.stat().st_mode):
            what = "a folder" if location.is_dir() else "no regular file"
            raise _no_model(name, what, "name the file of the model")
    with open_file(location, name) as file:
        try:
            return _checked(file, name)
        except OSError as error:
            raise unreadable(name, error) from error
        except _MALFORMED as error:
            raise damaged(name, f"zip: {one_line(str(error)) or type(error).__name__}") from error


def _no_model(model: str, what: str, hint: str = "a model is what svm, ridge and kpca write with -o") -> ModelError:
    """Return the error for a file that never was a model."""
    return ModelError(
        f"{model} is not a model: it is {what}", hint=hint, code="model.not_a_model", where={"file": model}
    )


def _checked(file: BinaryIO, model: str) -> ModelFile:
    """Return what an open file holds."""
    size = os.fstat(file.fileno()).st_size
    _check_ends(file, size, model)
    zipped = zipfile.ZipFile(file)
    infos = {info.filename: info for info in zipped.infolist()}
    if not MOST_MEMBERS >= len(zipped.infolist()) == len(infos):
        raise damaged(model, f"it holds more than {MOST_MEMBERS:,} members, or one of them twice")
    for info in infos.values():
        _check_member(info, size, model)
    if MANIFEST not in infos:
        raise _no_model(model, f"a zip archive without {MANIFEST}")
    # Members that share bytes would make little stand for much.
    if sum(info.file_size for info in infos.values()) > size:
        raise damaged(model, "its members are larger than the file")
    described = infos.pop(MANIFEST)
    if described.file_size > LARGEST_MANIFEST:
        raise damaged(model, f"{MANIFEST} has {described.file_size:,} bytes, more than {LARGEST_MANIFEST:,}")
    manifest = _manifest(zipped.read(described), model)
    members = _members(ModelFile(manifest, {}, model))
    for member in sorted({f"{name}.npy" for name in members} ^ infos.keys()):
        raise damaged(model, f"{member} is {'not in its manifest' if member in infos else 'missing'}")
    arrays = {name: _array(zipped, infos[f"{name}.npy"], member, model) for name, member in members.items()}
    return ModelFile(manifest, arrays, model)


def _check_ends(file: BinaryIO, size: int, model: str) -> None:
    """Refuse a file that does not begin with a member, or does not end with a directory of a size that models have."""
    start = file.read(4096)
    if not start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        hint = "the model comes first, then the data: kerntest COMMAND MODEL DATA"
        if not start:
            raise _no_model(model, "empty")
        if start.startswith(PARQUET_MAGIC):
            raise _no_model(model, "a Parquet table", hint)
        if b"\0" not in start and start[0] < 0x80:
            raise _no_model(model, "text, such as a CSV table", hint)
        raise _no_model(model, "neither a zip archive nor text")
    file.seek(max(0, size - _END.size - _END64.size))
    tail = file.read()
    end = tail[-_END.size :]
    if len(end) < _END.size or not end.startswith(b"PK\x05\x06"):
        raise damaged(model, "the directory at its end is missing: it was cut off, or something was added to it")
    *_, length, first, comment = _END.unpack(end)
    behind = len(end)
    if tail[-_END.size - 20 :].startswith(b"PK\x06\x07"):
        behind += _END64.size
        mark, *_, length, first, _, _, place, _ = _END64.unpack(tail[: _END64.size].ljust(_END64.size))
        comment |= mark != b"PK\x06\x06" or place != size - behind
    if comment or first + length + behind != size or length > LONGEST_DIRECTORY:
        raise damaged(model, "its directory does not stand where it should, or is longer than that of any model")


def _check_member(info: zipfile.ZipInfo, size: int, model: str) -> None:
    """Refuse a member that no model has: by its name, its kind, or its place in the file."""
    name = info.orig_filename
    flaws = {
        "a member that no model has": not MEMBER_NAME.fullmatch(name),
        "a link or another special file": stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG},
        "which is encrypted": info.flag_bits & _ENCRYPTED,
        "which is compressed, as members of a model never are": info.compress_type != zipfile.ZIP_STORED
        or info.compress_size != info.file_size,
        "which reaches beyond the end of the file": not 0 <= info.header_offset <= size - _LOCAL - info.file_size,
    }
    for flaw, found in flaws.items():
        if found:
            raise damaged(model, f"it holds {shown_value(name)}, {flaw}")


def _manifest(content: bytes, model: str) -> dict[str, Any]:
    """Return the object that strict JSON says."""
    try:
        manifest = json.loads(
            content.decode("utf-8"), parse_constant=_finite, parse_float=_finite, object_pairs_hook=_without_repeats
        )
    except RecursionError as error:
        raise damaged(model, f"{MANIFEST} is nested too deeply") from error
    except ValueError as error:
        raise damaged(model, f"{MANIFEST} is not strict JSON: {one_line(str(error))}") from error
    if not isinstance(manifest, dict):
        raise damaged(model, f"{MANIFEST} must be an object")
    return manifest


def _finite(text: str) -> float:
    """Return a number; refuse those that JSON does not have, or no float can hold."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"it holds {shown_value(text)}, which is no finite number")
    return number


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse one that says two things under one key, of which readers would believe either."""
    plain = dict(pairs)
    if len(plain) < len(pairs):
        raise ValueError("an object has the same key twice")
    return plain


def _members(file: ModelFile) -> dict[str, Member]:
    """Return what a manifest says of arrays, if it has what every manifest has; the version is looked at first."""
    version, writer = (file.manifest.get(name) for name in ("format_version", "kerntest_version"))
    if isinstance(version, int) and version > FORMAT_VERSION:
        known = isinstance(writer, str) and len(writer) <= LONGEST_WORD and writer.isprintable()
        shown = str(version) if version < 10**6 else "of a huge number"
        raise ModelError(
            f"{file.name} was written by a newer kerntest (format {shown}; this one reads up to {FORMAT_VERSION}): upgrade",
            hint=f"kerntest {writer if known else 'of a newer version'} can read it",
            code="model.newer_format",
            where={"file": file.name},
        )
    if not file.field("format_version", int):
        raise damaged(file.name, "format_version must be at least 1")
    for name in ("kind", "kerntest_version"):
        word = file.field(name, str)
        if not 0 < len(word) <= LONGEST_WORD or not word.isprintable():
            raise damaged(file.name, f"{name} must be a short text")
    members: dict[str, Member] = file.field("members", dict[str, Member])
    for name in members:
        if not ARRAY_NAME.fullmatch(name):
            raise damaged(file.name, f"members: no array of a model can be named {shown_value(name)}")
    return members


def _array(zipped: zipfile.ZipFile, info: zipfile.ZipInfo, member: Member, model: str) -> NDArray[Any]:
    """Return an array, read-only: the bytes of its member, which are checked against the manifest before they are read."""
    name, length = info.filename, info.file_size - member.nbytes
    if not _LEAD < length <= _LEAD + LONGEST_HEADER:
        raise damaged(model, f"{name} has {info.file_size:,} bytes, and its manifest says {member.nbytes:,}")
    content = zipped.read(info)
    if hashlib.sha256(content).hexdigest() != member.sha256:
        raise damaged(model, f"the checksum of {name} is not that of its manifest")
    if content[:length] != member.header(length):
        raise damaged(model, f"the header of {name} is not that of {member.dtype} of shape {member.shape} in C order")
    if member.dtype == "bool" and np.frombuffer(content, np.uint8)[length:].max(initial=0) > 1:
        raise damaged(model, f"{name} has entries that are neither true nor false")
    array = np.ndarray(member.shape, DTYPES[member.dtype], content, length)
    native = np.require(array, array.dtype.newbyteorder("="), "A")
    if not np.isfinite(native).all():
        raise damaged(model, f"{name} has entries that are not finite")
    native.flags.writeable = False
    return native


def damaged(model: str, reason: str) -> ModelError:
    """Return the error for a model that is not as it was written."""
    return ModelError(
        f"{model} is damaged: {reason}",
        hint="copy the file again from where it came, or train the model again",
        code="model.damaged",
        where={"file": model},
    )


def to_plain(value: Any) -> Any:
    """Return a value as JSON can hold it: of a dataclass its `stored_fields()`, else the fields without their defaults."""
    if is_dataclass(value):
        usual = {one.name: one.default for one in fields(value)}
        changed = [name for name, default in usual.items() if default is MISSING or getattr(value, name) != default]
        names = value.stored_fields() if hasattr(value, "stored_fields") else changed
        return {name: to_plain(getattr(value, name)) for name in names}
    return [to_plain(one) for one in value] if isinstance(value, tuple) else value


def from_plain(kind: Any, plain: Any, model: str, place: str) -> Any:
    """Return the value of a type that `to_plain` wrote; ModelError, which says where, if it is none.

    A dataclass may say more of itself: `flaw()`, what is wrong with a value whose types are right.
    """
    if (kind is str and isinstance(plain, str)) or (kind is int and type(plain) is int and 0 <= plain <= LARGEST_COUNT):
        return plain
    # Whole numbers too, as other writers of JSON may have them.
    if kind is float and type(plain) in {int, float}:
        with suppress(OverflowError):
            if math.isfinite(number := float(plain)):
                return number
    if is_dataclass(kind):
        return _record(kind, plain, model, place)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return None if plain is None else from_plain(inner[0], plain, model, place)
    if origin is tuple and isinstance(plain, list):
        kinds = inner[:1] * len(plain) if inner[1:] == (...,) else inner
        if len(kinds) == len(plain):
            pairs = zip(kinds, plain, strict=True)
            return tuple(from_plain(one, item, model, f"{place}[{k}]") for k, (one, item) in enumerate(pairs))
    if origin is dict and isinstance(plain, dict):
        return {key: from_plain(inner[1], one, model, f"{place}.{one_line(key)[:40]}") for key, one in plain.items()}
    if origin is Literal and isinstance(plain, str) and plain in inner:
        return plain
    raise damaged(model, f"{place} must be {_wanted(kind)}, not {_shown(plain)}")


def _record(kind: Any, plain: Any, model: str, place: str) -> Any:
    """Return the dataclass that an object stands for; neither may have fields that the other has not."""
    if not isinstance(plain, dict):
        raise damaged(model, f"{place} must be an object, not {_shown(plain)}")

    def check(names: Iterable[str], required: Iterable[str]) -> None:
        for name in required:
            if name not in plain:
                raise damaged(model, f"{place}.{name} is missing in its manifest")
        # They may change what the others mean.
        if strange := sorted(plain.keys() - set(names)):
            raise damaged(model, f"{place} has unknown fields: {listed(strange)}")

    types, known = _types_of(kind), {one.name: one.default is MISSING for one in fields(kind)}
    check(known, [name for name, needed in known.items() if needed])
    made = kind(
        **{name: from_plain(types[name], plain[name], model, f"{place}.{name}") for name in known if name in plain}
    )
    if hasattr(made, "stored_fields"):
        check(made.stored_fields(), made.stored_fields())
    if flaw := made.flaw() if hasattr(made, "flaw") else None:
        raise damaged(model, f"{place}.{flaw}")
    return made


def _wanted(kind: Any) -> str:
    """Return what a type is called in messages."""
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    known = {
        str: "a text",
        int: f"a whole number from 0 to {LARGEST_COUNT:,}",
        float: "a finite number",
        dict: "an object",
        tuple: "a list",
    }
    return known[get_origin(kind) or kind]


def _shown(value: Any) -> str:
    """Return a value of JSON for a message: short, and on one line."""
    if isinstance(value, str):
        return shown_value(value)
    if isinstance(value, (list, dict)):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value):,}"
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return "a huge number"
    return json.dumps(value)
