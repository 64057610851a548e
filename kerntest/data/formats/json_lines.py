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

from kerntest.data.columns import Patterns, match_names
from kerntest.data.in_memory import table_of_arrow
from kerntest.data.kinds import understood, with_remark
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kerntest.data.source import Source
    from kerntest.data.table import Column, Table

_LARGEST_BLOCK = (1 << 31) - 1
# How Arrow tells what it objects to: rows are counted from 0, and blank lines are none.
_IN_ROW = re.compile(r"JSON parse error: (?:Column\(/(.*?)\) )?(.*?)\.? in row (\d+)")


def read_json_lines(source: Source, categorical: Patterns = None) -> Table:
    """Parse JSON lines; several files are laid one below the other, and a name that a line lacks is missing there."""
    arrow, lines, file_of = _parsed(source)
    table = table_of_arrow(
        arrow,
        name=source.name,
        file_format="json",
        sha256=source.sha256,
        warnings=source.warnings,
        categorical=categorical,
    )
    table = replace(
        table,
        lines=lines,
        file_of=file_of if len(source.parts) > 1 else None,
        files=tuple(name for name, _ in source.parts),
        compression=source.compression,
        size=source.size,
        na=(),
    )
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


def _parsed(source: Source) -> tuple[Any, Any, Any]:
    """Return the Arrow table of all files, on which line each row stands, and in which file."""
    tables, lines = [], []
    for name, content in source.parts:
        tables.append(_parse(name, content))
        present = [number for number, line in enumerate(content.split(b"\n"), start=1) if line.strip()]
        lines.append(np.array(present, dtype=np.int64))
    try:
        arrow = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise _malformed(source.name, str(error)) from error
    known = all(len(one) == table.num_rows for one, table in zip(lines, tables, strict=True))
    file_of = np.repeat(np.arange(len(tables), dtype=np.int32), [table.num_rows for table in tables])
    return arrow, np.concatenate(lines) if known else None, file_of if known else None


def _parse(name: str, content: bytes) -> Any:
    """Return the Arrow table of one file."""
    try:
        return arrow_json.read_json(
            pa.BufferReader(content.removeprefix(b"\xef\xbb\xbf")),
            # A type is told from all values of a column, and a line may be as long as it likes.
            read_options=arrow_json.ReadOptions(block_size=min(len(content) + 1, _LARGEST_BLOCK), use_threads=False),
        )
    except pa.ArrowException as error:
        lines = [(number, line) for number, line in enumerate(content.split(b"\n"), start=1) if line.strip()]
        for number, line in lines:
            try:
                is_object = isinstance(json.loads(line.removeprefix(b"\xef\xbb\xbf")), dict)
            except json.JSONDecodeError as reason:
                trouble = f"{reason.msg} at character {reason.colno}"
                raise _malformed(name, trouble[:1].lower() + trouble[1:], number) from error
            except ValueError as reason:
                raise _malformed(name, str(reason), number) from error
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
