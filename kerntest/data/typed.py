"""Arrow columns to typed columns of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from kerntest.data.buffers import bits, fixed_width, joined
from kerntest.data.buffers import missing as missing_of
from kerntest.data.categories import as_text, text_column
from kerntest.data.selection import Patterns, match_names
from kerntest.data.table import Column, Problem, Table, refuse_duplicates, refuse_empty
from kerntest.data.wording import option_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

BOOLEAN_LEVELS = ("false", "true")
_TICKS_PER_DAY = {"day": 1, "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


def column_of(name: str, data: Any, table_name: str, *, as_category: bool = False) -> Column:
    """Return the typed column that an Arrow column holds; one that we cannot use keeps its problem.

    Parameters
    ----------
    name : str
        Name of the column.
    data : pyarrow.ChunkedArray, shape (n,)
        Its values.
    table_name : str
        How messages call the table.
    as_category : bool
        Treat the values as text whatever they are: integers exactly, other numbers in their shortest form.
    """
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
    problem = Problem(
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
    """Return the table that an Arrow table holds.

    Raises
    ------
    DataError
        There are no rows or no columns, or a column name occurs twice.
    UsageError
        `categorical` names a column that is not there.
    """
    names = [str(column_name) for column_name in arrow.column_names]
    refuse_empty(name, arrow.num_rows, len(names))
    refuse_duplicates(names, name)
    as_category = set(match_names(categorical, names, name))
    columns = tuple(
        column_of(column_name, values, name, as_category=column_name in as_category)
        for column_name, values in zip(names, arrow.columns, strict=True)
    )
    return Table(name, columns, arrow.num_rows, file_format, sha256=sha256, notes=warnings)
