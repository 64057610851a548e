"""pandas frames to tables. pandas itself is not imported: the caller has it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kerntest.data.selection import Patterns, match_names
from kerntest.data.table import Column, Table, refuse_duplicates, refuse_empty
from kerntest.data.typed import column_of, unusable_column


def table_of_frame(frame: Any, name: str, categorical: Patterns = None) -> Table:
    """Return the table of a pandas DataFrame or Series; the index is left out.

    Raises
    ------
    DataError
        There are no rows or no columns, or a column name occurs twice.
    UsageError
        `categorical` names a column that is not there.
    """
    frame = frame.to_frame() if frame.ndim == 1 else frame
    names = [str(label) for label in frame.columns]
    refuse_empty(name, len(frame), len(names))
    refuse_duplicates(names, name)
    as_category = set(match_names(categorical, names, name))
    columns = tuple(
        _column(column_name, frame.iloc[:, position], name, as_category=column_name in as_category)
        for position, column_name in enumerate(names)
    )
    return Table(name, columns, len(frame), "frame")


def _column(column_name: str, series: Any, table_name: str, *, as_category: bool) -> Column:
    """Return the column of one Series; mixed Python objects cannot be used."""
    try:
        values = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        return unusable_column(column_name, len(series), "holds values of mixed or unknown types", table_name)
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    return column_of(column_name, chunked, table_name, as_category=as_category)
