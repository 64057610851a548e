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

import io
import os
import stat
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerntest import __version__
from kerntest.errors import DataError
from kerntest.learning.archive import MOST_MEMBERS, open_archive
from kerntest.learning.fields import damaged
from kerntest.learning.manifest import (
    ARRAY_NAME,
    FORMAT_VERSION,
    LARGEST_MANIFEST,
    MANIFEST,
    manifest_bytes,
    read_manifest,
)
from kerntest.learning.npy import LARGEST_MODEL, pack, unpack
from kerntest.report.write import check_writable, write_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class ModelFile:
    """What a model file holds, checked.

    Parameters
    ----------
    manifest : dict
        `manifest.json` as JSON gives it; what the learner put in is not checked beyond being JSON.
    arrays : dict of str to ndarray
        By name, read-only.
    name : str
        How messages call the file.
    """

    manifest: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    name: str

    @property
    def kind(self) -> str:
        """Which learner wrote it."""
        return str(self.manifest["kind"])

    def array(self, name: str, dtype: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """Return an array that must have this dtype and shape, None for a length that may be any.

        Raises
        ------
        ModelError
            If it is not there, or of another dtype or shape.
        """
        if name not in self.arrays:
            raise damaged(self.name, f"it has no array {name!r}")
        array = self.arrays[name]
        fits = array.ndim == len(shape) and all(
            wanted is None or length == wanted for length, wanted in zip(array.shape, shape, strict=True)
        )
        if not fits or array.dtype.name != dtype:
            wanted_shape = ", ".join("any" if length is None else str(length) for length in shape)
            raise damaged(
                self.name,
                f"the array {name!r} is {array.dtype.name} of shape {array.shape}, not {dtype} of shape ({wanted_shape})",
            )
        return array


def write_model(
    path: str | os.PathLike[str], manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, force: bool
) -> None:
    """Write a model to a file: afterwards it is whole, or as it was before.

    Parameters
    ----------
    path : str or PathLike
        A new file; a device or a pipe is written too.
    manifest, arrays : mapping
        As in `model_bytes`.
    force : bool
        Whether a file that is there may be replaced.

    Raises
    ------
    DataError
        If the file exists and `force` is not given, if it cannot be written, or if the model is larger than the
        format allows.

    Notes
    -----
    Cost: O(size) time; the whole file is in memory once.
    """
    new = not force
    check_writable(Path(path), new=new)
    write_file(Path(path), model_bytes(manifest, arrays), new=new)


def model_bytes(manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a model as the bytes of its file: the same bytes for equal content, whatever the order of the keys.

    Parameters
    ----------
    manifest : mapping
        What JSON can hold, with `kind`; `format_version`, `kerntest_version` and `members` are filled in.
    arrays : mapping of str to ndarray
        Of the dtypes of the format, finite.

    Raises
    ------
    DataError
        If the model is larger than the format allows.
    ValueError
        If the manifest is not strict JSON, or an array is not as the format wants it.
    """
    if not isinstance(manifest.get("kind"), str) or len(arrays) >= MOST_MEMBERS:
        message = f"a model has a kind, and fewer than {MOST_MEMBERS} arrays"
        raise ValueError(message)
    if not all(map(ARRAY_NAME.fullmatch, arrays)):
        message = f"names of arrays are lower-case identifiers, not {sorted(arrays)}"
        raise ValueError(message)
    packed = {name: pack(name, arrays[name]) for name in sorted(arrays)}
    versions = {"format_version": FORMAT_VERSION, "kerntest_version": __version__}
    members = {name: one.described.to_plain() for name, one in packed.items()}
    text = manifest_bytes({**manifest, **versions, "members": members})
    total = sum(len(one.header) + len(one.entries) for one in packed.values())
    for what, size, largest in (("description", len(text), LARGEST_MANIFEST), ("model", total, LARGEST_MODEL)):
        if size > largest:
            raise DataError(
                f"the {what} has {size:,} bytes, more than the {largest:,} that a model file may have",
                hint="fit it to fewer rows, or leave out text columns with very many different values",
                code="data.too_large",
            )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, MANIFEST, text)
        for name, one in packed.items():
            _add(archive, f"{name}.npy", one.header, one.entries)
    return file.getvalue()


def _add(archive: zipfile.ZipFile, name: str, *parts: bytes | memoryview) -> None:
    """Append a member that looks the same whenever and wherever it is written."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    # Known in advance, it tells zipfile whether zip64 is needed.
    info.file_size = sum(len(part) for part in parts)
    with archive.open(info, "w") as member:
        for part in parts:
            member.write(part)


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a model file, whoever wrote it.

    Raises
    ------
    DataError
        If the file does not exist, or the system refuses to read it.
    ModelError
        If it is no model, a newer one than this version can read, or not as it was written.

    Notes
    -----
    Cost: O(size) time, and memory for the arrays; nothing is allocated for more bytes than the file has.
    """
    with open_archive(path) as archive:
        size = archive.size(MANIFEST)
        if size > LARGEST_MANIFEST:
            raise damaged(archive.model, f"{MANIFEST} has {size:,} bytes, more than {LARGEST_MANIFEST:,}")
        manifest, members = read_manifest(b"".join(archive.chunks(MANIFEST, [size])), archive.model)
        expected = {f"{name}.npy" for name in members} | {MANIFEST}
        for member in sorted(expected ^ set(archive.members)):
            raise damaged(archive.model, f"{member} is {'missing' if member in expected else 'not in its manifest'}")
        arrays = {name: unpack(archive, name, described) for name, described in members.items()}
    return ModelFile(manifest, arrays, os.fspath(path))
