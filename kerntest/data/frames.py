"""pandas frames to tables, and columns back to frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kerntest.data.selection import Patterns, match_names
from kerntest.data.table import Column, Table, refuse_duplicates, refuse_empty
from kerntest.data.typed import column_of, unusable_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from kerntest.data.table import Kind


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


def frame_of(columns: Mapping[str, NDArray[Any]], kinds: Mapping[str, Kind]) -> Any:
    """Return columns as a DataFrame: dates, days since 1970-01-01, as times, booleans, "true" and "false", as such."""
    import pandas as pd  # noqa: PLC0415 - 0.3 s of import

    frame = pd.DataFrame(columns)
    for name, kind in kinds.items():
        if kind == "date":
            frame[name] = pd.to_datetime(frame[name], unit="D")
        elif kind == "boolean":
            frame[name] = frame[name].map({"true": True, "false": False})
    return frame
