"""Values that a Python caller hands over beside rows: labels or numbers, as the column that they would be in a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.table import Column
from kerntest.data.wording import counted
from kerntest.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Units of numpy's times that Arrow does not have.
_TIMES = {
    **dict.fromkeys(("generic", "Y", "M", "W", "D"), "datetime64[D]"),
    **dict.fromkeys(("h", "m", "s"), "datetime64[s]"),
    **{unit: f"datetime64[{unit}]" for unit in ("ms", "us")},
}


def target_of(values: Any, n_rows: int, *, name: str = "y") -> Column:
    """Return what a Python caller hands over beside n rows to be predicted: a column without missing values.

    Parameters
    ----------
    values : as in `column_of`
    n_rows : int
    name : str
        What the values are called.

    Raises
    ------
    DataError
        If they are not one value for each row.
    """
    column = column_of(values, name)
    if len(column.values) != n_rows:
        raise DataError(
            f"X has {n_rows:,} rows and {name} {len(column.values):,} values",
            hint=f"value i of {name} belongs to row i of X",
            code="data.rows_do_not_pair",
        )
    if column.n_missing:
        raise DataError(
            f"{name} has {counted(column.n_missing, 'missing value')}",
            hint="leave those rows out",
            code="data.missing_values",
        )
    if not column.is_category and np.isinf(column.values).any():
        row = int(np.argmax(np.isinf(column.values)))
        raise DataError(
            f"{name} holds {column.values[row]} at row {row + 1:,}, which is not a finite number",
            hint="correct it, or leave the row out",
            code="data.infinite_values",
            where={"row": row + 1, "column": name},
        )
    return column


def column_of(values: Any, name: str) -> Column:
    """Return values that a Python caller hands over as the column that they would be in a table.

    Parameters
    ----------
    values : sequence, ndarray, pandas Series or other array with an Arrow form, n values
        None, NaN, NaT and NA are missing.
    name : str

    Raises
    ------
    DataError
        If they are no sequence of numbers, truth values, texts or dates.
    """
    if _is_typed(values):
        return _by_arrow(values, name)
    array = _as_array(values, name)
    if array.dtype.kind in "iuf":
        return Column(name, "number", array.astype(np.float64))
    if array.dtype.kind == "b":
        return Column(name, "boolean", array.astype(np.int64), ("false", "true"))
    return _by_arrow(array, name)


def _is_typed(values: Any) -> bool:
    """Say whether values are a series of pandas, or of another library that hands over Arrow data."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, (pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray)):
        return True
    hands_over = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    return hands_over and not hasattr(values, "columns")


def _as_array(values: Any, name: str) -> NDArray[Any]:
    """Return values as an array of one dimension; missing ones as None or NaN."""
    try:
        array = np.asanyarray(values)
    except ValueError as error:
        raise _no_column(name, "holds sequences of different lengths") from error
    if array.ndim != 1:
        raise DataError(
            f"{name} has shape {array.shape}, not (n,)",
            hint="hand over one value for each row",
            code="data.wrong_shape",
        )
    if isinstance(array, np.ma.MaskedArray):
        objects = np.array(array.data, dtype=object)
        objects[np.ma.getmaskarray(array)] = None
        return objects
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        # Beside text numpy makes text of every value: a NaN would be called "nan".
        return np.array(values, dtype=object)
    return np.asarray(array)


def _by_arrow(values: Any, name: str) -> Column:
    """Return the column of values that have types of their own: text, dates, Python objects, missing ones."""
    import pyarrow as pa  # noqa: PLC0415 - 70 ms that an array of numbers does not need

    from kerntest.data.typed import column_of as typed_column  # noqa: PLC0415 - the same

    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = values.astype(_TIMES.get(np.datetime_data(values.dtype)[0], "datetime64[ns]"))
    elif isinstance(values, np.ndarray) and values.dtype.kind == "T":
        values = values.astype(object)
    streamed = hasattr(values, "__arrow_c_stream__") and "pandas" not in type(values).__module__
    try:
        found = pa.chunked_array(values) if streamed else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _no_column(name, "holds values of mixed or unknown types") from error
    column = typed_column(name, found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found]), name)
    if column.problem is not None:
        raise _no_column(name, f"is of type {found.type}, which is neither number, text, boolean nor date")
    return column


def _no_column(name: str, trouble: str) -> DataError:
    return DataError(
        f"{name} {trouble}",
        hint="hand over one number, truth value, text or date for each row",
        code="data.unusable_type",
    )
