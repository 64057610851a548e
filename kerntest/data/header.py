"""The names in the header of a file, read in no time however large the file is: for a shell that completes them."""

from __future__ import annotations

import csv
import json
from typing import IO, TYPE_CHECKING

from kerntest.data.compression import head_of
from kerntest.data.dialect import sniff_delimiter, split_header, split_separator
from kerntest.data.paths import find_files
from kerntest.data.source import PARQUET_MAGIC, format_of_head

if TYPE_CHECKING:
    from pathlib import Path

_HEAD_BYTES = 1 << 16


def header_names(path: str | Path) -> tuple[str, ...]:
    """Return the column names of a CSV or Parquet file, or of the first one that a glob or a folder means.

    Stdin and everything that is no regular file has none, since reading it would take its data away or wait for it.

    Raises
    ------
    DataError, OSError, ValueError, UnicodeDecodeError, pyarrow.ArrowException
        The file is not there or not readable.
    """
    if str(path) in {"", "-"}:
        return ()
    location = find_files(path, str(path)).files[0][1]
    if not location.is_file():
        return ()
    with location.open("rb") as file:
        if file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC:
            return _parquet_names(file)
        file.seek(0)
        head = head_of(file, _HEAD_BYTES)
    return _csv_names(head)


def _parquet_names(file: IO[bytes]) -> tuple[str, ...]:
    """Return the names in the schema, which stands at the end of the file."""
    from pyarrow import parquet  # noqa: PLC0415 - 90 ms that a CSV does not need

    return tuple(parquet.read_schema(file).names)


def _json_names(head: bytes) -> tuple[str, ...]:
    """Return the names in the first object of JSON lines."""
    try:
        return tuple(json.loads(head.split(b"\n", 1)[0]))
    except ValueError:
        return ()


def _csv_names(head: bytes) -> tuple[str, ...]:
    """Return the names in the first record of the beginning of a CSV file."""
    # A line that the beginning cuts may end within a character.
    if format_of_head(head) == "json":
        return _json_names(head)
    text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="ignore").encode("utf-8")
    try:
        text, separator = split_separator(text)
        fields, _, _ = split_header(text, separator or sniff_delimiter(text))
    except csv.Error:
        return ()
    names = [field.strip() or f"unnamed_{position}" for position, field in enumerate(fields, start=1)]
    # A first column without a name is an index.
    return tuple(names[1:] if len(names) > 1 and not fields[0].strip() else names)
