"""JSON lines to a table: one object a line, whose names are the columns."""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from kerntest.data.typed import table_of_arrow
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kerntest.data.selection import Patterns
    from kerntest.data.source import Source
    from kerntest.data.table import Table

_LARGEST_BLOCK = (1 << 31) - 1


def read_json_lines(source: Source, categorical: Patterns = None) -> Table:
    """Parse JSON lines; several files are laid one below the other, and a name that a line lacks is missing there.

    Raises
    ------
    DataError
        A line is no object, or a column changes its type.
    """
    arrow, lines, file_of = _parsed(source)
    table = table_of_arrow(
        arrow,
        name=source.name,
        file_format="json",
        sha256=source.sha256,
        warnings=source.warnings,
        categorical=categorical,
    )
    return replace(
        table,
        lines=lines,
        file_of=file_of if len(source.parts) > 1 else None,
        files=tuple(name for name, _ in source.parts),
        compression=source.compression,
        size=source.size,
    )


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
        for number, line in enumerate(content.split(b"\n"), start=1):
            try:
                if line.strip() and not isinstance(json.loads(line.removeprefix(b"\xef\xbb\xbf")), dict):
                    raise _malformed(name, "it holds no object", number) from error
            except ValueError as reason:
                raise _malformed(name, str(reason), number) from error
        raise _malformed(name, str(error)) from error


def _malformed(name: str, reason: str, line: int | None = None) -> DataError:
    """Return the error for text that is not JSON lines."""
    place = name if line is None else f"{name}, line {line}"
    first = reason.splitlines()[0] if reason else "it cannot be read"
    return DataError(
        f"{place} is malformed JSON: {first[:1].lower()}{first[1:]}",
        hint="each line is one object, and each name has values of one type",
        code="data.malformed_json",
        where={"file": name} if line is None else {"file": name, "line": line},
    )
