"""JSON lines as a table."""

from __future__ import annotations

import json
import re
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from kerntest.data.column_types import understood, with_remark
from kerntest.data.columns import Patterns, match_names
from kerntest.data.in_memory import of_source, table_of_arrow
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kerntest.data.source import Source
    from kerntest.data.table import Column, Table

_LARGEST_BLOCK = (1 << 31) - 1
# How Arrow tells what it objects to: rows are counted from 0, and blank lines are none.
_IN_ROW = re.compile(r"JSON parse error: (?:Column\(/(.*?)\) )?(.*?)\.? in row (\d+)")


def read_json_lines(source: Source, categorical: Patterns = None) -> Table:
    """Parse JSON lines; several files are laid one below the other, and a name that a line lacks is missing there."""
    arrow, lines, n_rows = _parsed(source)
    table = of_source(table_of_arrow(arrow, source.name, "json", categorical), source, n_rows)
    table = replace(table, lines=lines, file_of=None if lines is None else table.file_of, na=())
    forced = match_names(categorical, table.names, source.name)
    return replace(
        table,
        columns=tuple(
            column if column.name in forced else with_remark(column, _meant(column, table), table)
            for column in table.columns
        ),
    )


def _meant(column: Column, table: Table) -> Column:
    """Return a column of text as what it is written as; JSON has numbers, so that numbers between quotes are text."""
    return understood(column, table, quoted=True) if column.kind == "text" and column.problem is None else column


@contextmanager
def parquet_of_json(source: Source) -> Iterator[Path]:
    """Give JSON lines as a temporary Parquet file, which can be read in pieces."""
    from pyarrow import parquet  # noqa: PLC0415 - 70 ms that a whole table does not need

    with tempfile.TemporaryDirectory(prefix="kerntest-") as folder:
        copy = Path(folder) / "input.parquet"
        parquet.write_table(_parsed(source)[0], copy)
        yield copy


def _parsed(source: Source) -> tuple[Any, NDArray[np.int64] | None, list[int]]:
    """Return the Arrow table of all files, on which line each row stands, and how many rows each file has."""
    tables = [_parse(name, content) for name, content in source.parts]
    try:
        arrow = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise _malformed(source.name, str(error)) from error
    lines = [number for _, content in source.parts for number, _ in _present(content)]
    n_rows = [table.num_rows for table in tables]
    known = n_rows == [len(_present(content)) for _, content in source.parts]
    return arrow, np.array(lines, dtype=np.int64) if known else None, n_rows


def _present(content: bytes) -> list[tuple[int, bytes]]:
    """Return the lines that are not blank, with their numbers."""
    return [(number, line) for number, line in enumerate(content.split(b"\n"), start=1) if line.strip()]


def _parse(name: str, content: bytes) -> Any:
    """Return the Arrow table of one file."""
    try:
        return arrow_json.read_json(
            pa.BufferReader(content.removeprefix(b"\xef\xbb\xbf")),
            # A type is told from all values of a column, and a line may be as long as it likes.
            read_options=arrow_json.ReadOptions(block_size=min(len(content) + 1, _LARGEST_BLOCK), use_threads=False),
        )
    except pa.ArrowException as error:
        lines = _present(content)
        for number, line in lines:
            try:
                is_object = isinstance(json.loads(line.removeprefix(b"\xef\xbb\xbf")), dict)
            except ValueError as reason:
                trouble = str(reason)
                if isinstance(reason, json.JSONDecodeError):
                    trouble = f"{reason.msg[:1].lower()}{reason.msg[1:]} at character {reason.colno}"
                raise _malformed(name, trouble, number) from error
            if not is_object:
                raise _malformed(name, "it holds no object", number) from error
        found = _IN_ROW.match(str(error))
        if found is None or int(found[3]) >= len(lines):
            raise _malformed(name, str(error)) from error
        subject = f"column {found[1]!r} " if found[1] else ""
        raise _malformed(name, f"{subject}{found[2].rstrip('.')}", lines[int(found[3])][0]) from error


def _malformed(name: str, reason: str, line: int | None = None) -> DataError:
    """Return the error for text that is not JSON lines."""
    place = name if line is None else f"{name}, line {line}"
    first = reason.splitlines()[0] if reason else "it cannot be read"
    return DataError(
        f"{place} is malformed JSON: {first}",
        hint="each line is one object, and each name has values of one type",
        code="data.malformed_json",
        where={"file": name} if line is None else {"file": name, "line": line},
    )
