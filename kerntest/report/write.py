"""Results as bytes, and bytes into files: strict JSON, CSV, Parquet, and files that are either whole or not there."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shlex
import stat
import sys
import tempfile
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from kerntest.errors import DataError, UsageError, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike
    from typing import BinaryIO


class _Complete(NamedTuple):
    """A file that is whole and on the disk, and waits for its name; `new` if no other may have it."""

    temporary: Path
    target: Path
    name: str
    new: bool


# What stands for the standard output where a file is named.
STANDARD_OUTPUT = "-"
_WAITING: ContextVar[list[_Complete] | None] = ContextVar("kerntest files that wait for their names", default=None)
# All temporary files there are, whichever thread writes them.
_TEMPORARY: set[Path] = set()


def json_text(plain: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Return strict JSON (RFC 8259) that ends in a newline; text that is not ASCII stays as it is.

    Raises
    ------
    ValueError
        A number is not finite: records turn these into None before they come here.
    """
    return json.dumps(plain, allow_nan=False, ensure_ascii=False, indent=indent) + "\n"


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return CSV with a header from the keys of the first row; None is an empty field, truth is true or false."""
    told = ((str(one).lower() if isinstance(one, bool) else one for one in row.values()) for row in rows)
    return _csv_lines([rows[0].keys(), *told])


def _csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    """Return CSV; floats keep every digit, because csv writes their repr, and None is empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def encoded(text: str, encoding: str = "utf-8") -> bytes:
    r"""Return text as bytes; what the encoding cannot say is written ``\udc..``, which inside JSON is still JSON."""
    return text.encode(encoding, errors="backslashreplace")


RowFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
# What other files are called, by the option that writes them.
_REPORTS = (".json", ".jsonl", ".csv", ".tsv", ".md", ".html", ".txt", ".parquet")
NO_MODELS = dict.fromkeys(_REPORTS, "report") | dict.fromkeys((".png", ".svg", ".pdf"), "plot")
ROW_FORMATS: dict[str, RowFormat] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
# Of what goes to the standard output once it is all there, so many bytes are held in memory.
_IN_MEMORY = 1 << 24


def parquet_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows, each with the keys of the first, as Parquet; a column of numbers and texts becomes one of texts."""
    # 60 ms that other formats do not need.
    pa = import_module("pyarrow")

    def column(values: list[Any]) -> Any:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.array([None if value is None else str(value) for value in values])

    file = io.BytesIO()
    with closing(RowWriter(file, "parquet")) as writer:
        writer.write(pa.table({key: column([row[key] for row in rows]) for key in rows[0]}))
    return file.getvalue()


def as_rows(path: str) -> str:
    """Return the name that a file of rows can have in the place of another: x.csv for x.xlsx and for x.csv.gz."""
    inner = Path(path).with_suffix("")
    return str(inner if inner.suffix.lower() in ROW_FORMATS else Path(path).with_suffix(".csv"))


def rows_format(path: str) -> RowFormat:
    """Return what a name says that a table of rows is to be: it ends in .csv, .jsonl or .parquet."""
    suffix = Path(path).suffix.lower()
    if suffix in ROW_FORMATS:
        return ROW_FORMATS[suffix]
    if path == STANDARD_OUTPUT or path.startswith("/dev/"):
        return "csv"
    raise UsageError(
        f"rows are written as .csv, .jsonl or .parquet, not as {suffix or 'a file without a suffix'}",
        hint=option("o", as_rows(path)),
        code="usage.output_format",
        where={"file": path},
    )


@contextmanager
def open_rows(output: str | PathLike[str] | BinaryIO | None) -> Iterator[RowWriter]:
    """Open what takes rows: a file, an open file, or (None or ``-``) the standard output."""
    if output is not None and not isinstance(output, (str, os.PathLike)):
        yield RowWriter(output)
        return
    name = STANDARD_OUTPUT if output is None else os.fspath(output)
    with opened_whole(name) as file, closing(RowWriter(file, rows_format(name))) as rows:
        yield rows


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as JSON has it: no number that is not finite, dates as texts."""
    plain = (bool, int, float, str, type(None))
    told = ((name, one if isinstance(one, plain) else str(one)) for name, one in row.items())
    return {name: None if isinstance(one, float) and not math.isfinite(one) else one for name, one in told}


class RowWriter:
    """Writes rows of Arrow tables with the same columns: CSV or JSON lines in UTF-8, or Parquet with the types of the first."""

    def __init__(self, file: Any, kind: RowFormat = "csv") -> None:
        self._file, self._kind, self._begun = file, kind, False
        self._parquet: Any = None

    def write(self, table: Any) -> None:
        """Write rows, below a header where they are the first."""
        if self._kind == "parquet":
            from pyarrow import parquet  # noqa: PLC0415 - 90 ms that CSV does not need

            self._parquet = self._parquet or parquet.ParquetWriter(self._file, table.schema)
            self._parquet.write_table(table)
            return
        if self._kind == "jsonl":
            self._file.write(encoded("".join(json_text(_finite(row), indent=None) for row in table.to_pylist())))
            return
        header = [] if self._begun else [table.column_names]
        self._begun = True
        # Arrow's words of truth are those of the CSV.
        columns = (column.cast("string") if str(column.type) == "bool" else column for column in table.columns)
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        self._file.write(encoded(_csv_lines([*header, *rows])))

    def close(self) -> None:
        """Write the end of Parquet."""
        if self._parquet is not None:
            self._parquet.close()


def write_standard_output(text: str, *, encoding: str = "utf-8") -> None:
    """Write text to the standard output and flush it, in this encoding whatever the locale is.

    Raises
    ------
    DataError
        The standard output is closed, or its disk is full.
    """
    _write_standard([encoded(text, encoding)])


def _write_standard(chunks: Iterable[bytes]) -> None:
    """Write bytes to the standard output, piece by piece, and flush it."""
    if sys.stdout is None:
        raise DataError("the standard output is closed", hint="open it, or send it to a file", code="data.output")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise _unwritable("the standard output", error) from error


def check_model_name(path: str | PathLike[str]) -> None:
    """Refuse a name that says of a model that it is a report, a table or a picture."""
    file, ending = os.fspath(path), Path(path).suffix.lower()
    if ending in NO_MODELS:
        told, kept = (
            f"{file} would hold a model, and {ending} is not what models are called",
            Path(path).with_suffix(".kt"),
        )
        hint = f"{option('o', str(kept))} keeps the model, {option(NO_MODELS[ending], file)} is for the {NO_MODELS[ending]}"
        raise UsageError(told, hint=hint, code="usage.model_name", where={"file": file})


def check_writable(path: str | Path, *, new: bool = False) -> None:
    """Raise the DataError that writing `path` would raise, as far as can be told before the work is done.

    With `new` a file must not be there yet.
    """
    if path == STANDARD_OUTPUT:
        return
    target = _target(path)
    if target.is_dir():
        raise _refused(path, "it is a folder", "name a file in it")
    if not target.parent.is_dir():
        # As it was typed, unless the link that was typed is there and leads to nowhere.
        folder = target.parent if Path(path).parent.is_dir() else Path(path).parent
        raise _refused(
            path, f"the folder {folder} does not exist", f"make it with `mkdir -p {shlex.quote(str(folder))}`"
        )
    blocked = target if target.exists() else target.parent
    if not os.access(blocked, os.W_OK) or (_is_replaceable(target) and not os.access(target.parent, os.W_OK)):
        raise _refused(path, "permission denied", "choose another place, or change the permissions")
    if new and target.is_file():
        raise _exists(str(path))


def write_file(path: str | Path, content: str | bytes, *, new: bool = False) -> None:
    """Write bytes, or text in UTF-8, to a file: afterwards the file is whole, or it is as it was before.

    The content goes to a temporary file beside the target, is forced to the disk, and takes the target's name in one
    step, at the end of `written_together` where that is around it. A link is followed; a device or a pipe, which cannot
    be replaced, is written directly.

    Raises
    ------
    DataError
        The folder is missing, nothing may be written there, or the disk is full; or a file is there that must be `new`.
    """
    with opened_whole(path, new=new) as file:
        file.write(encoded(content) if isinstance(content, str) else content)


@contextmanager
def opened_whole(path: str | Path, *, new: bool = False) -> Iterator[BinaryIO]:
    """Open a file to be written piece by piece: it is whole at the end of the block, or as it was if the block failed.

    ``-`` is the standard output, which sees nothing before the block has ended.

    Raises
    ------
    DataError
        As `write_file`.
    """
    if path == STANDARD_OUTPUT:
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spooled:
            yield spooled  # type: ignore[misc]  # a file like any other
            spooled.seek(0)
            _write_standard(iter(lambda: spooled.read(1 << 20), b""))
        return
    check_writable(path, new=new)
    target = _target(path)
    try:
        if not _is_replaceable(target):
            with target.open("wb") as file:
                yield file
            return
        with written_together(), _temporary_file(target) as (file, temporary):
            yield file
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            _waiting().append(_Complete(temporary, target, str(path), new))
    except OSError as error:
        raise _unwritable(str(path), error) from error


@contextmanager
def written_together() -> Iterator[None]:
    """Let the files that are written inside take their names together, when all of them are whole.

    A failure before, Ctrl-C too, leaves every one as it was. Inside another such block, the outer one decides.

    Raises
    ------
    DataError
        If a file cannot take its name.
    """
    if _WAITING.get() is not None:
        yield
        return
    token = _WAITING.set([])
    try:
        yield
        put_in_place()
    finally:
        for file in _waiting():
            _remove(file.temporary)
        _WAITING.reset(token)


def put_in_place() -> None:
    """Give the files that wait for it their names: those first that must be new, so that nothing is done if one is not.

    Raises
    ------
    DataError
        As `written_together`.
    """
    waiting = _waiting()
    waiting.sort(key=lambda file: not file.new)
    while waiting:
        file = waiting[0]
        try:
            (_claim if file.new else Path.replace)(file.temporary, file.target)
        except FileExistsError as error:
            raise _exists(file.name) from error
        except OSError as error:
            raise _unwritable(file.name, error) from error
        _TEMPORARY.discard(file.temporary)
        del waiting[0]


def remove_temporary_files() -> None:
    """Remove what is not whole or waits for its name, for a process that leaves at once."""
    for temporary in tuple(_TEMPORARY):
        _remove(temporary)


def _waiting() -> list[_Complete]:
    found = _WAITING.get()
    return [] if found is None else found


def _claim(temporary: Path, target: Path) -> None:
    """Give a file a name that none has; FileExistsError if one has it, whoever was faster."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except (OSError, AttributeError):
        # A file system without links.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        temporary.replace(target)
    else:
        temporary.unlink()


@contextmanager
def _temporary_file(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a file beside `target`, which is removed on any failure, Ctrl-C too."""
    temporary = target.with_name(f".kerntest-{os.urandom(8).hex()}.tmp")
    _TEMPORARY.add(temporary)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(descriptor, "wb") as file:
            yield file, temporary
    except BaseException:
        _remove(temporary)
        raise


def _remove(temporary: Path) -> None:
    _TEMPORARY.discard(temporary)
    with suppress(OSError):
        temporary.unlink()


def _target(path: str | Path) -> Path:
    """Return where the bytes end up: links followed, for a link must survive the replacement of its file.

    The name of a device such as /dev/stdout stays as it is: what it leads to may have no name.
    """
    named = Path(path)
    return Path(os.path.realpath(named)) if _is_replaceable(named) else named


def _is_replaceable(path: Path) -> bool:
    """Whether `path` is a regular file or nothing yet."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def _exists(name: str) -> DataError:
    return DataError(
        f"{name} exists already",
        hint=f"{option('force', True)} overwrites it; {option('o')} names another file",
        code="data.exists",
        where={"file": name},
    )


def _unwritable(name: str, error: OSError) -> DataError:
    """Return the error for an output that the system refuses."""
    reason = (error.strerror or str(error)).lower()
    return _refused(name, reason, "choose another place for it, or free some space")


def _refused(name: str | Path, reason: str, hint: str) -> DataError:
    """Return the error for an output that cannot be written."""
    return DataError(f"cannot write {name}: {reason}", hint=hint, code="data.output", where={"file": str(name)})
