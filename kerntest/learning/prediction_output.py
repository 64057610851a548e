"""Tables of predictions on their way out, a block at a time: CSV or Parquet, whole or not there."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kerntest.errors import UsageError
from kerntest.report.write import encoded, opened_whole, write_standard_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike
    from typing import BinaryIO

# Of the predictions that go to the standard output once they are all there, so many bytes are held in memory.
_IN_MEMORY = 1 << 24


class Sink(Protocol):
    """Takes Arrow tables with the same columns, one after another."""

    def write(self, table: Any) -> None:
        """Write rows."""
        ...


def file_format(path: str) -> Literal["csv", "parquet"]:
    """Return what a name says that a table of predictions is to be.

    Raises
    ------
    UsageError
        If it ends in neither .csv nor .parquet.
    """
    suffix = Path(path).suffix.lower()
    if suffix in {".parquet", ".pq"}:
        return "parquet"
    if suffix == ".csv" or path.startswith("/dev/"):
        return "csv"
    raise UsageError(
        f"rows are written as .csv or .parquet, not as {suffix or 'a file without a suffix'}",
        hint=f"-o {Path(path).with_suffix('.csv')}",
        code="usage.output_format",
        where={"file": path},
    )


@contextmanager
def open_sink(output: str | PathLike[str] | BinaryIO | None) -> Iterator[Sink]:
    """Open what takes predictions; nothing is seen of them before the block has ended well.

    Raises
    ------
    DataError, UsageError
        If it cannot be written.
    """
    if output is None:
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spooled:
            yield _CsvSink(spooled)
            spooled.seek(0)
            write_standard_bytes(iter(lambda: spooled.read(1 << 20), b""))
        return
    if not isinstance(output, (str, os.PathLike)):
        yield _CsvSink(output)
        return
    path = os.fspath(output)
    kind = file_format(path)
    with opened_whole(path) as file:
        if kind == "csv":
            yield _CsvSink(file)
            return
        with _parquet_sink(file) as sink:
            yield sink


class _CsvSink:
    """Writes CSV in UTF-8; a missing value is an empty field."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._begun = False

    def write(self, table: Any) -> None:
        """Write rows, below the header where they are the first."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not self._begun:
            writer.writerow(table.column_names)
            self._begun = True
        writer.writerows(zip(*map(_fields, table.columns), strict=True))
        self._file.write(encoded(text.getvalue()))


def _fields(column: Any) -> list[Any]:
    """Return values as the CSV shows them."""
    values: list[Any] = column.to_pylist()
    if str(column.type) == "bool":
        return [None if value is None else "true" if value else "false" for value in values]
    return values


@contextmanager
def _parquet_sink(file: BinaryIO) -> Iterator[_ParquetSink]:
    sink = _ParquetSink(file)
    try:
        yield sink
    except BaseException:
        with suppress(Exception):
            sink.close()
        raise
    sink.close()


class _ParquetSink:
    """Writes Parquet with the types of the first rows."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Write rows."""
        from pyarrow import parquet  # noqa: PLC0415 - 90 ms that CSV does not need

        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the end."""
        if self._writer is not None:
            self._writer.close()
