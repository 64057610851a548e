"""Which files a path means: one, those that a quoted glob matches, or the Parquet files of a folder."""

from __future__ import annotations

import glob
import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kerntest.data.compression import read_chunks
from kerntest.data.wording import listed
from kerntest.engines.plan import refuse_to_read
from kerntest.errors import DataError, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
_FOLDERS_BELOW = 2


@dataclass(frozen=True, slots=True)
class Found:
    """The files that a path means.

    Parameters
    ----------
    files : tuple of (str, Path)
        How messages call each file, and where it is; sorted by name.
    warnings : tuple of str
        What in a folder is not read.
    """

    files: tuple[tuple[str, Path], ...]
    warnings: tuple[str, ...] = ()


def find_files(path: str | Path, shown: str) -> Found:
    """Return the files that a path means.

    A path that exists is that file or folder, whatever characters are in its name. Otherwise ``*``, ``?`` and
    ``[...]`` make it a glob: all files that match, ``**`` for folders of any depth.

    Raises
    ------
    DataError
        Nothing matches a glob, a folder holds no Parquet, or the system refuses to look.
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
