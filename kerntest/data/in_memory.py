"""Arrow, pandas and numpy as tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from kerntest.data.column_types import as_text, text_column
from kerntest.data.columns import Patterns, match_names
from kerntest.data.table import Column, ColumnProblem, Table, refuse_duplicates, refuse_empty
from kerntest.errors import option_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import DTypeLike, NDArray

    from kerntest.data.source import Source
    from kerntest.data.table import Kind


BOOLEAN_LEVELS = ("false", "true")
_TICKS_PER_DAY = {"day": 1, "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


# Arrow's own `to_numpy` imports pandas, which takes 0.3 s.


def _fixed_width(chunk: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return the values of a fixed-width Arrow array as a view of `dtype`; what stands at missing ones is arbitrary."""
    buffer = chunk.buffers()[1]
    if buffer is None or len(chunk) == 0:
        return np.zeros(len(chunk), dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype)[chunk.offset : chunk.offset + len(chunk)]


def _bits(chunk: Any, place: int) -> NDArray[np.bool_]:
    """Return one of an Arrow array's buffers of one bit a value: 0, what is there, or 1, values of booleans."""
    buffer = chunk.buffers()[place]
    if buffer is None or len(chunk) == 0:
        return np.zeros(len(chunk), dtype=bool)
    octets = np.frombuffer(buffer, dtype=np.uint8)
    return np.unpackbits(octets, count=chunk.offset + len(chunk), bitorder="little")[chunk.offset :].astype(bool)


def _missing(chunk: Any) -> NDArray[np.bool_]:
    """Return the mask of the missing values of an Arrow array."""
    return ~_bits(chunk, 0) if chunk.null_count else np.zeros(len(chunk), dtype=bool)


def _joined(pieces: Iterable[NDArray[Any]], dtype: DTypeLike) -> NDArray[Any]:
    """Return the values of all chunks, of which there may be none, as one new array."""
    return np.concatenate([np.empty(0, dtype=dtype), *pieces], dtype=dtype, casting="unsafe")


def column_of(name: str, data: Any, table_name: str, *, as_category: bool = False) -> Column:
    """Return the typed column that an Arrow column holds; one that we cannot use keeps its problem."""
    kind = data.type
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if is_text or types.is_dictionary(kind) or (as_category and types.is_integer(kind)):
        encoded = data if types.is_dictionary(kind) else data.dictionary_encode()
        value = encoded.type.value_type
        column = None if types.is_nested(value) or types.is_binary(value) else _encoded(name, encoded)
    else:
        column = _plain(name, data)
    if column is None:
        return _unusable(
            name, len(data), f"is of type {kind}, which is neither number, text, boolean nor date", table_name
        )
    return as_text(column) if as_category else column


def _plain(name: str, data: Any) -> Column | None:
    """Return a column of numbers, booleans or dates; None for any other type."""
    kind = data.type
    if types.is_null(kind):
        return Column(name, "number", np.full(len(data), np.nan))
    if types.is_decimal(kind):
        data, kind = data.cast(pa.float64()), pa.float64()
    if types.is_boolean(kind):
        codes = _joined((np.where(_missing(chunk), -1, _bits(chunk, 1)) for chunk in data.chunks), np.int64)
        return Column(name, "boolean", codes, BOOLEAN_LEVELS)
    is_date = types.is_date(kind) or types.is_timestamp(kind)
    if not (is_date or types.is_integer(kind) or types.is_floating(kind)):
        return None
    letter = "u" if types.is_unsigned_integer(kind) else "f" if types.is_floating(kind) else "i"
    dtype = f"{letter}{kind.bit_width // 8}"
    values = _joined((_fixed_width(chunk, dtype) for chunk in data.chunks), np.float64)
    if is_date:
        values /= _TICKS_PER_DAY["day" if types.is_date32(kind) else getattr(kind, "unit", "ms")]
    values[_joined(map(_missing, data.chunks), bool)] = np.nan
    return Column(name, "date" if is_date else "number", values)


def _encoded(name: str, data: Any) -> Column:
    """Return a text column from an Arrow dictionary of scalars."""
    codes: list[NDArray[np.int64]] = []
    levels: list[str | None] = []
    # Every chunk has a dictionary of its own, laid behind the others; equal levels meet in `text_column`.
    for chunk in data.chunks:
        positions = _fixed_width(chunk.indices, f"i{data.type.index_type.bit_width // 8}") + np.int64(len(levels))
        codes.append(np.where(_missing(chunk.indices), -1, positions))
        levels += [None if level is None else str(level) for level in chunk.dictionary.to_pylist()]
    return text_column(name, _joined(codes, np.int64), levels)


def _unusable(name: str, n_rows: int, trouble: str, table_name: str) -> Column:
    """Return an empty column that raises, when used, that column `name` of the table `trouble`."""
    problem = ColumnProblem(
        message=f"{table_name}: column {name!r} {trouble}",
        hint=f"--exclude {option_value([name])} leaves it out",
        code="data.unusable_type",
        where={"file": table_name, "column": name},
        curable=False,
    )
    return Column(name, "text", np.full(n_rows, -1, dtype=np.int64), problem=problem)


def table_of_arrow(arrow: Any, name: str, file_format: str, categorical: Patterns = None) -> Table:
    """Return the table that an Arrow table holds."""
    columns = zip(map(str, arrow.column_names), arrow.columns, strict=True)
    return _table(name, file_format, arrow.num_rows, list(columns), categorical)


def table_of_frame(frame: Any, name: str, categorical: Patterns = None) -> Table:
    """Return the table of a pandas DataFrame or Series; the index is left out."""
    frame = frame.to_frame() if frame.ndim == 1 else frame
    columns: list[tuple[str, Any]] = []
    for position, label in enumerate(frame.columns):
        try:
            values = pa.array(frame.iloc[:, position], from_pandas=True)
            columns.append((str(label), values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])))
        except (pa.ArrowException, TypeError, ValueError):
            columns.append((str(label), None))
    return _table(name, "frame", len(frame), columns, categorical)


def _table(
    name: str, file_format: str, n_rows: int, columns: Sequence[tuple[str, Any]], categorical: Patterns
) -> Table:
    """Return the table of Arrow columns; None stands for one of mixed Python objects."""
    names = [column_name for column_name, _ in columns]
    refuse_empty(name, n_rows, len(names))
    refuse_duplicates(names, name)
    texts = match_names(categorical, names, name)
    typed = tuple(
        _unusable(one, n_rows, "holds values of mixed or unknown types", name)
        if data is None
        else column_of(one, data, name, as_category=one in texts)
        for one, data in columns
    )
    return Table(name, typed, n_rows, file_format)


def of_source(table: Table, source: Source, n_rows: Sequence[int], notes: tuple[str, ...] = ()) -> Table:
    """Return the table with what is known of its files, which have so many rows each."""
    return replace(
        table,
        sha256=source.sha256,
        notes=(*source.warnings, *notes),
        files=tuple(name for name, _ in source.parts),
        file_of=np.repeat(np.arange(len(n_rows), dtype=np.int32), n_rows) if len(n_rows) > 1 else None,
        compression=source.compression,
        size=source.size,
    )


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
