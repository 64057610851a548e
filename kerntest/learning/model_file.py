"""A model on disk: a zip archive of arrays, and one JSON text that says what they mean.

Reading a model runs no code of it: there is no pickle anywhere, and every size, name and checksum is verified before
use. This page is the format, version 1; whoever can read zip, JSON and little-endian numbers can read a model.

**The archive.** A zip file (with zip64 records from 4 GiB on) whose members are stored, neither compressed nor
encrypted. The directory ends with the file: no comment behind it. Members, in this order: ``manifest.json``, then one
``NAME.npy`` for each array, by name. Names of arrays are lower-case ASCII letters, digits and ``_``, begin with a
letter and have at most 63 characters. The writer dates every member 1980-01-01 and gives all the same permissions, so
that equal models are equal byte by byte. The directory has at most 1 MiB.

**manifest.json.** One JSON object (RFC 8259) in ASCII, at most 64 MB, no key twice, no NaN or infinity. Numbers have
the 17 digits that bring every float64 back. Its fields:

================== ============ =======================================================================================
format_version     whole number 1 here. Look at it first: a larger one means another format than this page describes
kind               text         which learner wrote the rest: ``svm``, ``ridge``, ``kpca``, ``unmix``, ``cca``
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
little-endian; the header, h bytes of ASCII such as
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
import stat
import struct
import zipfile
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from kerntest import __version__
from kerntest.data.source import PARQUET_MAGIC, open_file, unreadable
from kerntest.dataclass import dataclass
from kerntest.errors import (
    DataError,
    ModelError,
    UndecidedError,
    UsageError,
    either,
    listed,
    one_line,
    option,
    shown_value,
)
from kerntest.kernels.base import Array, Kernel, Points
from kerntest.kernels.elementary import by_covariance
from kerntest.kernels.text import parse_kernel
from kerntest.learning.rows.encoding import Encoder
from kerntest.learning.rows.ranges import ColumnRange
from kerntest.learning.rows.targets import Classes
from kerntest.learning.rows.training_rows import ConstantColumn
from kerntest.matrices.expansion import Expansion, GivenExpansion
from kerntest.matrices.factor import FeatureKind, FeatureMap
from kerntest.report.results.learning_record import Importance
from kerntest.report.write import check_model_name, write_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from typing import BinaryIO

    from kerntest.learning.learner import FittedModel

Model = TypeVar("Model", bound="FittedModel")
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 64 * 2**20
LONGEST_DIRECTORY = 2**20
# Before the entries of an .npy file.
LONGEST_HEADER = 4096
# Of a value in a message.
LONGEST_SHOWN = 40
# Larger counts are no floats.
LARGEST_COUNT = 2**53
# Where the name in the file, not in an object within it, is another one.
NAMES = {"columns": "centres", "kind": "features", "lambda_": "lambda"}
# The field whose null says that a part is not there.
ABSENT = {"spread": "spread_floor"}
# What files of before do not have, and others only where there is any.
LATER = {"owners", "importance", "ranges", "left_out", "uneven", "clustered"}
# What zipfile and numpy raise on bytes that are no archive of arrays.
_MALFORMED = (zipfile.BadZipFile, EOFError, IndexError, KeyError, OverflowError, RuntimeError, ValueError, struct.error)
# What annotations of models name that their modules import for types only.
_TYPES = {
    one.__name__: one
    for one in (
        Classes,
        ColumnRange,
        ConstantColumn,
        Encoder,
        Expansion,
        FeatureMap,
        GivenExpansion,
        Importance,
        Kernel,
        Points,
    )
} | {"Array": Array, "NDArray": NDArray}


@dataclass(frozen=True)
class Member:
    """What the manifest says of an array; the digest is that of the whole member."""

    dtype: Literal["float64", "float32", "int64", "int32", "uint8", "bool"]
    shape: tuple[int, ...]
    nbytes: int
    sha256: str

    def flaw(self) -> str | None:
        """Return what is wrong with it."""
        size = np.dtype(self.dtype).itemsize * math.prod(self.shape)
        return None if self.nbytes == size else f"nbytes must be {size}, as dtype and shape say, not {self.nbytes}"


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds, checked; what the learner put into the manifest only for being JSON. Arrays are read-only.

    An object within the manifest is read as a file of its own, which `place` names.
    """

    manifest: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    name: str
    place: str = ""

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
            raise damaged(self.name, f"{self.place}{name} is missing in its manifest")
        return from_plain(kind, self.manifest[name], self.name, f"{self.place}{name}")


def save_model(path: str | PathLike[str], model: FittedModel, parameters: dict[str, Any], *, force: bool) -> None:
    """Write a model, and what it was asked for with, to a new file, or with `force` to one that is there."""
    check_model_name(path)
    manifest: dict[str, Any] = {"kind": model.KIND, "kernel": None, "parameters": parameters}
    arrays: dict[str, NDArray[Any]] = {}
    _put(model, "", manifest, arrays)
    write_file(Path(path), model_bytes(manifest, arrays), new=not force)


def _put(part: Any, prefix: str, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Put each field of a dataclass where it is stored: numbers of `Points` and parts with arrays one by one."""
    kind: Any = type(part)
    for name in _hints(kind):
        stored, value = prefix + NAMES.get(name, name), getattr(part, name)
        if isinstance(value, np.ndarray):
            arrays[stored] = value
        elif isinstance(value, Points):
            arrays[f"{stored}_numeric"], arrays[f"{stored}_codes"] = value.numeric, value.codes
        elif isinstance(value, (Expansion, GivenExpansion, FeatureMap)):
            _put(value, "", manifest, arrays)
        elif name in LATER and not value:
            continue
        elif name in ABSENT and value is not None:
            _put(value, f"{name}_", manifest, arrays)
        else:
            manifest[ABSENT.get(stored, stored)] = str(value) if isinstance(value, Kernel) else to_plain(value)


def model_bytes(manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a model as the bytes of its file, the same for equal content; it is in memory once beside its arrays.

    `format_version`, `kerntest_version` and `members` are filled in. ValueError for numbers that are not finite.
    """
    contents: dict[str, list[Any]] = {}
    members = {}
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        if not np.isfinite(array).all():
            raise ValueError(f"the array {name!r} has entries that are not finite")
        stored = array.astype(array.dtype.newbyteorder("<"), copy=False)
        parts = contents[f"{name}.npy"] = [_header(stored), stored.reshape(-1).view(np.uint8).data]
        digest = hashlib.sha256(parts[0])
        digest.update(parts[1])
        told = {"dtype": array.dtype.name, "shape": array.shape, "nbytes": array.nbytes, "sha256": digest.hexdigest()}
        members[name] = told
    plain = {**manifest, "format_version": FORMAT_VERSION, "kerntest_version": __version__, "members": members}
    text = json.dumps(plain, allow_nan=False, ensure_ascii=True, indent=1, sort_keys=True).encode("ascii") + b"\n"
    if len(text) > LARGEST_MANIFEST:
        raise DataError(
            f"the description has {len(text):,} bytes, more than the {LARGEST_MANIFEST:,} that a model file may have",
            hint="leave out text columns with very many different values",
            code="data.too_large",
        )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, parts in [(MANIFEST, [text]), *contents.items()]:
            # Looks the same whenever and wherever it is written.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            # Known in advance, it tells zipfile whether zip64 is needed.
            info.file_size = sum(map(len, parts))
            with archive.open(info, "w") as stream:
                stream.writelines(parts)
    return file.getvalue()


def _header(array: NDArray[Any]) -> bytes:
    """Return how the .npy file of an array begins."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return header.getvalue()


def read_model(path: str | PathLike[str]) -> ModelFile:
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
            raise damaged(name, one_line(str(error)) or type(error).__name__) from error


def _no_model(model: str, what: str, hint: str = "") -> ModelError:
    """Return the error for a file that never was a model."""
    told = f"{model} is not a model: it is {what}"
    hint = hint or f"a model is what svm, ridge, kpca, unmix and cca write with {option('o')}"
    return ModelError(told, hint=hint, code="model.not_a_model", where={"file": model})


def _refuse_others(start: bytes, model: str) -> None:
    """Refuse what does not begin as a model, and say what it is."""
    hint = "the model comes first, then the data: kerntest COMMAND MODEL DATA"
    if not start:
        raise _no_model(model, "empty")
    if start.startswith(PARQUET_MAGIC):
        raise _no_model(model, "a Parquet table", hint)
    if not start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        text = b"\0" not in start and start[0] < 0x80
        raise _no_model(model, *(("text, such as a CSV table", hint) if text else ("neither a zip archive nor text",)))


def _checked(file: BinaryIO, model: str) -> ModelFile:
    """Return what an open file holds."""
    size, start = os.fstat(file.fileno()).st_size, file.read(4096)
    _refuse_others(start, model)
    # The end of the directory: 22 bytes, of which the last two are the length of a comment behind it.
    file.seek(max(0, size - 22))
    end = file.read()
    if not end.startswith(b"PK\x05\x06") or not end.endswith(b"\0\0"):
        raise damaged(model, "the directory at its end is missing: it was cut off, or something was added to it")
    if int.from_bytes(end[12:16], "little") > LONGEST_DIRECTORY:
        raise damaged(model, "its directory is longer than that of any model")
    zipped = zipfile.ZipFile(file)
    infos = {info.filename: info for info in zipped.infolist()}
    if MANIFEST not in infos:
        raise _no_model(model, f"a zip archive without {MANIFEST}")
    described = infos.pop(MANIFEST)
    every = [described, *infos.values()]
    flaws = {
        "one of its members twice": len(every) < len(zipped.infolist()),
        "something before its members": min(info.header_offset for info in every) != 0,
        # Neither small files nor members that share bytes stand for much.
        "compressed members": any(info.compress_type or info.compress_size != info.file_size for info in every),
        "members larger than the file": sum(info.file_size for info in every) > size,
        f"a {MANIFEST} of more than {LARGEST_MANIFEST:,} bytes": described.file_size > LARGEST_MANIFEST,
    }
    for flaw in (flaw for flaw, found in flaws.items() if found):
        raise damaged(model, f"it holds {flaw}")
    try:
        manifest = json.loads(zipped.read(described).decode("utf-8"))
    except (RecursionError, ValueError) as error:
        raise damaged(model, f"{MANIFEST} is not JSON: {one_line(str(error))}") from error
    if not isinstance(manifest, dict):
        raise damaged(model, f"{MANIFEST} must be an object")
    found = ModelFile(manifest, {}, model)
    members = _members(found)
    for member in sorted({f"{name}.npy" for name in members} ^ infos.keys()):
        raise damaged(model, f"{one_line(member)} is {'not in its manifest' if member in infos else 'missing'}")
    found.arrays.update({name: _array(zipped, infos[f"{name}.npy"], one, model) for name, one in members.items()})
    return found


def _members(file: ModelFile) -> dict[str, Member]:
    """Return what a manifest says of arrays, if it has what every manifest has; the version is looked at first."""
    version, writer = (file.manifest.get(name) for name in ("format_version", "kerntest_version"))
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ModelError(
            f"{file.name} was written by a newer kerntest (format {_shown(version)}; this one reads up to "
            f"{FORMAT_VERSION}): upgrade",
            hint=f"kerntest {one_line(writer) if isinstance(writer, str) else 'of a newer version'} can read it",
            code="model.newer_format",
            where={"file": file.name},
        )
    if not file.field("format_version", int):
        raise damaged(file.name, "format_version must be at least 1")
    for name in ("kind", "kerntest_version"):
        file.field(name, str)
    members: dict[str, Member] = file.field("members", dict[str, Member])
    return members


def _array(zipped: zipfile.ZipFile, info: zipfile.ZipInfo, member: Member, model: str) -> NDArray[Any]:
    """Return an array, read-only: the bytes of its member, which are checked against the manifest before they are read."""
    name, length = info.filename, info.file_size - member.nbytes
    if not 0 < length <= LONGEST_HEADER:
        raise damaged(model, f"{name} has {info.file_size:,} bytes, and its manifest says {member.nbytes:,}")
    content = zipped.read(info)
    if hashlib.sha256(content).hexdigest() != member.sha256:
        raise damaged(model, f"the checksum of {name} is not that of its manifest")
    array = np.ndarray(member.shape, np.dtype(member.dtype).newbyteorder("<"), content, length)
    header = _header(array)
    # Blanks fill it to some length.
    if content[:8] != header[:8] or content[10:length].split() != header[10:].split():
        raise damaged(model, f"the header of {name} is not that of {member.dtype} of shape {member.shape} in C order")
    if member.dtype == "bool" and np.frombuffer(content, np.uint8)[length:].max(initial=0) > 1:
        raise damaged(model, f"{name} has entries that are neither true nor false")
    native = np.require(array, member.dtype, "A")
    if not np.isfinite(native).all():
        raise damaged(model, f"{name} has entries that are not finite")
    native.flags.writeable = False
    return native


def damaged(model: str, reason: str) -> ModelError:
    """Return the error for a model that is not as it was written."""
    hint = "copy the file again from where it came, or train the model again"
    return ModelError(f"{model} is damaged: {reason}", hint=hint, code="model.damaged", where={"file": model})


def model_of(file: ModelFile, kind: type[Model]) -> Model:
    """Return the model that a file holds; ModelError if it is not a whole one of this kind."""
    if file.kind != kind.KIND:
        raise ModelError(
            f"{file.name} holds a {file.kind!r} model, not {kind.CALLED}",
            hint=f"{either('`kerntest inspect`', 'inspect_model()')} says what a model holds",
            code="model.kind",
            where={"file": file.name},
        )
    encoder, n_train = file.field("encoder", Encoder | None), file.field("n_train", int)
    if not n_train:
        raise damaged(file.name, "n_train must be at least 1")
    expansion, features = _functions(file, encoder, n_train)
    if expansion.owners and kind.KIND != "svm":
        raise damaged(file.name, "owners belong to models of pairs of classes")
    made: Model = _part(file, kind, encoder=encoder, n_train=n_train, expansion=expansion, features=features)
    weighed = [one.name for one in made.importance.columns] if made.importance else []
    if len(set(weighed)) < len(weighed) or not set(weighed) <= set(encoder.names if encoder else ()):
        raise damaged(file.name, "importance is not of its columns, each once")
    return made


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of a dataclass."""
    hints = get_type_hints(kind, localns=_TYPES, include_extras=True)
    return {one.name: hints[one.name] for one in fields(kind)}


def _part(file: ModelFile, kind: Any, prefix: str = "", /, **made: Any) -> Any:
    """Return a dataclass of what `_put` stored, and of what is made of it already; a field may be newer than the file.

    It may say more of itself: `flaw()`, what is wrong with values whose types are right.
    """
    newer = {one.name for one in fields(kind) if one.default is not MISSING}
    for name, hint in _hints(kind).items():
        stored = name if file.place else prefix + NAMES.get(name, name)
        if name in made:
            continue
        if get_origin(hint) is Annotated:
            made[name] = file.array(stored, "float64", hint.__metadata__[0])
        elif hint is Points:
            numeric, codes = file.array(f"{stored}_numeric", "float64", 2), file.array(f"{stored}_codes", "int64", 2)
            made[name] = Points(numeric, codes)
        elif name in ABSENT and not file.place:
            there = file.field(ABSENT[name], float | None) is not None
            made[name] = _part(file, get_args(hint)[0], f"{name}_") if there else None
        elif hint is Kernel:
            made[name] = _kernel(file, made["encoder"], stored)
        elif stored in file.manifest or name not in newer:
            made[name] = file.field(stored, hint)
    part = kind(**made)
    if flaw := part.flaw() if hasattr(part, "flaw") else None:
        raise damaged(file.name, f"{file.place}{flaw}")
    return part


def _functions(
    file: ModelFile, encoder: Encoder | None, n_train: int
) -> tuple[Expansion | GivenExpansion, FeatureMap | None]:
    """Return the functions of rows of a model, and the features that they are linear in, if they are."""
    kind = file.field("features", FeatureKind | None)
    if encoder is not None and kind is None:
        expansion = _part(file, Expansion, kernel=_kernel(file, encoder))
        _check_points(expansion.centres, encoder, file.name)
        return expansion, None
    given = _part(file, GivenExpansion, columns=file.array("centres", "int64", 1).astype(np.intp, copy=False))
    features, width = None, n_train
    if encoder is not None:
        features = _part(file, FeatureMap, kind=kind, kernel=_kernel(file, encoder))
        _check_points(features.landmarks, encoder, file.name)
        width = features.size
    if given.columns.max(initial=-1) >= width or (features and width != len(given.coefficients)):
        raise damaged(file.name, "its centres and its training rows or features do not fit together")
    return given, features


def _kernel(file: ModelFile, encoder: Encoder | None, name: str = "kernel") -> Kernel:
    """Return a kernel of a model, bound to its columns; ModelError if it cannot be read, or leaves a bandwidth open."""
    text = file.field(name, str)
    if encoder is None:
        raise damaged(file.name, f"its {name} has no columns")
    try:
        kernel = encoder.bound(parse_kernel(text)).kernel
    except UsageError as error:
        raise damaged(file.name, f"its kernel {text!r} cannot be read: {error.message}") from error
    if kernel.free:
        raise damaged(file.name, f"its kernel {text!r} has no bandwidth")
    if not by_covariance(kernel):
        return kernel
    S = np.array(encoder.moments[1:])
    if not len(S) or (S != S.T).any() or not (S.diagonal() > 0.0).all():
        raise damaged(file.name, f"its kernel {text!r} needs the moments of its columns, with a covariance")
    try:
        return kernel.whitened(encoder.moments_of)
    except UndecidedError as error:
        raise damaged(file.name, error.message) from error


def _check_points(points: Points, encoder: Encoder, model: str) -> None:
    """Refuse rows that are not those of the columns of a model."""
    widths = len(encoder.numeric), len(encoder.categories)
    if len(points) != len(points.codes) or (len(points) and (points.numeric.shape[1], points.codes.shape[1]) != widths):
        raise damaged(model, "its centres and its columns do not fit together")
    levels = [len(column.levels) for column in encoder.categories]
    if len(points) and ((points.codes < 0) | (points.codes >= levels)).any():
        raise damaged(model, "its centres hold categories that its columns do not have")


def to_plain(value: Any) -> Any:
    """Return a value as JSON can hold it: of a dataclass its `stored_fields()`, else the fields without their defaults."""
    if is_dataclass(value):
        usual = {one.name: one.default for one in fields(value)}
        changed = [name for name, default in usual.items() if default is MISSING or getattr(value, name) != default]
        names = value.stored_fields() if hasattr(value, "stored_fields") else changed
        return {name: to_plain(getattr(value, name)) for name in names}
    return [to_plain(one) for one in value] if isinstance(value, tuple) else value


def from_plain(kind: Any, plain: Any, model: str, place: str) -> Any:
    """Return the value of a type that `to_plain` wrote; ModelError, which says where, if it is none."""
    origin, inner = get_origin(kind), get_args(kind)
    if (kind in {str, bool} and isinstance(plain, kind)) or (
        kind is int and type(plain) is int and 0 <= plain <= LARGEST_COUNT
    ):
        return plain
    # Whole numbers too, as other writers of JSON may have them.
    if kind is float and type(plain) in {int, float} and abs(plain) < math.inf:
        with suppress(OverflowError):
            return float(plain)
    if is_dataclass(kind) and isinstance(plain, dict):
        # Strange fields may change what the others mean.
        if strange := sorted(plain.keys() - {one.name for one in fields(kind)}):
            raise damaged(model, f"{place} has unknown fields: {listed(strange)}")
        return _part(ModelFile(plain, {}, model, f"{place}."), kind)
    if origin in {Union, UnionType}:
        return None if plain is None else from_plain(inner[0], plain, model, place)
    if origin is Literal and isinstance(plain, str) and plain in inner:
        return plain
    if origin is tuple and isinstance(plain, list):
        kinds = inner[:1] * len(plain) if inner[1:] == (...,) else inner
        if len(kinds) == len(plain):
            pairs = enumerate(zip(kinds, plain, strict=True))
            return tuple(from_plain(one, item, model, f"{place}[{k}]") for k, (one, item) in pairs)
    if origin is dict and isinstance(plain, dict):
        return {key: from_plain(inner[1], one, model, f"{place}.{one_line(key)[:40]}") for key, one in plain.items()}
    wanted: dict[Any, str] = {
        str: "a text",
        int: f"a whole number from 0 to {LARGEST_COUNT:,}",
        float: "a finite number",
        bool: "true or false",
    }
    wanted |= {tuple: "a list", Literal: " or ".join(map(repr, inner))}
    raise damaged(model, f"{place} must be {wanted.get(origin or kind, 'an object')}, not {_shown(plain)}")


def _shown(value: Any) -> str:
    """Return a value of JSON for a message: short, and on one line."""
    if isinstance(value, (list, dict)):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value):,}"
    return shown_value(value) if isinstance(value, str) else json.dumps(value)[:LONGEST_SHOWN]
