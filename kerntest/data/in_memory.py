"""Arrow, pandas and numpy as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from kerntest.data.columns import Patterns, match_names
from kerntest.data.kinds import as_text, text_column
from kerntest.data.messages import option_value
from kerntest.data.table import Column, ColumnProblem, Table, bits, fixed_width, joined, refuse_duplicates, refuse_empty
from kerntest.data.table import missing as missing_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.table import Kind


BOOLEAN_LEVELS = ("false", "true")
_TICKS_PER_DAY = {"day": 1, "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


def column_of(name: str, data: Any, table_name: str, *, as_category: bool = False) -> Column:
    """Return the typed column that an Arrow column holds; one that we cannot use keeps its problem."""
    kind = data.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if _is_text(kind) or types.is_dictionary(data.type) or (as_category and types.is_integer(kind)):
        return _encoded(name, data, table_name)
    column = _plain(name, data)
    if column is None:
        return _unusable(name, data, table_name)
    return as_text(column) if as_category else column


def _is_text(kind: Any) -> bool:
    """Say whether the Arrow type holds strings."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _plain(name: str, data: Any) -> Column | None:
    """Return a column of numbers, booleans or dates; None for any other type."""
    kind = data.type
    if types.is_null(kind):
        return Column(name, "number", np.full(len(data), np.nan))
    if types.is_decimal(kind):
        data, kind = data.cast(pa.float64()), pa.float64()
    if types.is_integer(kind) or types.is_floating(kind):
        signs = "u" if types.is_unsigned_integer(kind) else "i" if types.is_integer(kind) else "f"
        values, missing = joined(data, f"{signs}{kind.bit_width // 8}")
        values = values.astype(np.float64)
        values[missing] = np.nan
        return Column(name, "number", values)
    if types.is_boolean(kind):
        codes = [np.where(missing_of(chunk), -1, bits(chunk)).astype(np.int64) for chunk in data.chunks]
        return Column(name, "boolean", np.concatenate([np.empty(0, dtype=np.int64), *codes]), BOOLEAN_LEVELS)
    if types.is_date(kind) or types.is_timestamp(kind):
        ticks, missing = joined(data, f"i{kind.bit_width // 8}")
        days = ticks / _TICKS_PER_DAY["day" if types.is_date32(kind) else "ms" if types.is_date64(kind) else kind.unit]
        days[missing] = np.nan
        return Column(name, "date", days)
    return None


def _encoded(name: str, data: Any, table_name: str) -> Column:
    """Return a text column from strings, integers or an Arrow dictionary of scalars."""
    if not types.is_dictionary(data.type):
        data = data.dictionary_encode()
    if types.is_nested(data.type.value_type) or types.is_binary(data.type.value_type):
        return _unusable(name, data, table_name)
    codes: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    levels: list[str | None] = []
    # Every chunk has a dictionary of its own, laid behind the others; equal levels meet in `text_column`.
    for chunk in data.chunks:
        positions = fixed_width(chunk.indices, f"i{data.type.index_type.bit_width // 8}") + np.int64(len(levels))
        codes.append(np.where(missing_of(chunk.indices), -1, positions))
        levels += [None if level is None else str(level) for level in chunk.dictionary.to_pylist()]
    return text_column(name, np.concatenate(codes), levels)


def _unusable(name: str, data: Any, table_name: str) -> Column:
    """Return a column of a type that we cannot use, with the problem to raise when somebody does."""
    return unusable_column(
        name, len(data), f"is of type {data.type}, which is neither number, text, boolean nor date", table_name
    )


def unusable_column(name: str, n_rows: int, trouble: str, table_name: str) -> Column:
    """Return an empty column that raises, when used, that column `name` of the table `trouble`."""
    problem = ColumnProblem(
        message=f"{table_name}: column {name!r} {trouble}",
        hint=f"--exclude {option_value([name])} leaves it out",
        code="data.unusable_type",
        where={"file": table_name, "column": name},
        curable=False,
    )
    return Column(name, "text", np.full(n_rows, -1, dtype=np.int64), problem=problem)


def table_of_arrow(
    arrow: Any,
    *,
    name: str,
    file_format: str,
    sha256: str | None = None,
    warnings: tuple[str, ...] = (),
    categorical: Patterns = None,
) -> Table:
    """Return the table that an Arrow table holds."""
    names = [str(column_name) for column_name in arrow.column_names]
    refuse_empty(name, arrow.num_rows, len(names))
    refuse_duplicates(names, name)
    as_category = set(match_names(categorical, names, name))
    columns = tuple(
        column_of(column_name, values, name, as_category=column_name in as_category)
        for column_name, values in zip(names, arrow.columns, strict=True)
    )
    return Table(name, columns, arrow.num_rows, file_format, sha256=sha256, notes=warnings)


def table_of_frame(frame: Any, name: str, categorical: Patterns = None) -> Table:
    """Return the table of a pandas DataFrame or Series; the index is left out."""
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
