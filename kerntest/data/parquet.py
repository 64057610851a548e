"""Parquet bytes to a table. Imported only when there is Parquet to read: a small CSV starts faster without."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from kerntest.data.compression import half_of_memory, too_large
from kerntest.data.source import PARQUET_MAGIC, Source
from kerntest.data.typed import table_of_arrow
from kerntest.engines.plan import refuse_to_read
from kerntest.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.data.selection import Patterns
    from kerntest.data.table import Table

# pandas writes its row labels as columns of this name.
PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def read_parquet(source: Source, categorical: Patterns = None) -> Table:
    """Parse Parquet bytes; several parts (of a folder) are laid one below the other.

    Raises
    ------
    DataError
        A part is damaged, the parts have different columns, or there are no rows.
    """
    tables = [(name, _parse(name, content)) for name, content in source.parts]
    first_name, first = tables[0]
    for name, table in tables[1:]:
        if not table.schema.equals(first.schema):
            raise DataError(
                f"{name} has other columns or types than {first_name}",
                hint=f"Parquet files that are read together need one schema; these differ in {_difference(first, table)}",
                code="data.schemas_differ",
                where={"file": name},
            )
    arrow = pa.concat_tables([table for _, table in tables])
    labels = [name for name in arrow.column_names if PANDAS_INDEX.fullmatch(name)]
    warnings = tuple(f"{name!r} of {source.name} holds the row labels of pandas and is left out" for name in labels)
    table = table_of_arrow(
        arrow.drop_columns(labels) if labels else arrow,
        name=source.name,
        file_format="parquet",
        sha256=source.sha256,
        warnings=(*source.warnings, *warnings),
        categorical=categorical,
    )
    return replace(
        table,
        files=tuple(name for name, _ in source.parts),
        file_of=_file_of([part.num_rows for _, part in tables]),
        compression=source.compression,
        size=source.size,
    )


def _file_of(n_rows: list[int]) -> NDArray[np.int32] | None:
    """Return which of several files each row comes from; None where there is one."""
    return None if len(n_rows) == 1 else np.repeat(np.arange(len(n_rows), dtype=np.int32), n_rows)


def _parse(name: str, content: bytes) -> Any:
    """Return the Arrow table of one file's bytes; whatever Arrow objects to is a DataError."""
    where = {"file": name}
    if len(content) < 3 * len(PARQUET_MAGIC) or not content.endswith(PARQUET_MAGIC):
        raise DataError(
            f"{name} begins like Parquet but does not end like it: it is truncated",
            hint="copy or write it again",
            code="data.malformed_parquet",
            where=where,
        )
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        _refuse_too_large(name, file.metadata)
        table = file.read()
        # Damage can hide in text: check it here, and decode the names, before anybody stumbles over them.
        table.validate(full=True)
        str(table.schema)
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise malformed_parquet(name, error) from error
    return table


def malformed_parquet(name: str, error: Exception) -> DataError:
    """Return the error for whatever Arrow objects to."""
    foreign = isinstance(error, NotImplementedError)
    return DataError(
        f"{name} is malformed Parquet: it {'needs what is not read here' if foreign else 'is truncated or damaged'}",
        hint="write it again, with the usual options" if foreign else "copy or write it again",
        code="data.malformed_parquet",
        where={"file": name},
    )


def _refuse_too_large(name: str, metadata: Any) -> None:
    """Refuse a file that would fill half of the memory: run lengths make billions of equal values very small."""
    limit = half_of_memory()
    unpacked = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
    # Every column becomes an array of eight bytes a row.
    arrays = 8 * metadata.num_rows * metadata.num_columns
    if limit is not None and max(unpacked, arrays) > limit:
        raise too_large(name, limit)
    refuse_to_read(unpacked + arrays, name)


def _difference(first: Any, other: Any) -> str:
    """Return the first column in which two schemas differ."""
    for field in (*first.schema, *other.schema):
        kinds = [
            table.schema.field(field.name).type if field.name in table.column_names else None
            for table in (first, other)
        ]
        if kinds[0] != kinds[1]:
            return f"column {field.name!r}"
    return "the order of the columns"
