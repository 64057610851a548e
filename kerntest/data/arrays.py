"""Arrays that a Python caller hands over, to tables. Needs no Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.categories import with_categories
from kerntest.data.table import Column, Table, refuse_empty
from kerntest.errors import DataError

if TYPE_CHECKING:
    from kerntest.data.selection import Patterns


def table_of_array(array: Any, name: str, categorical: Patterns = None) -> Table:
    """Return the table of a numeric array: one column for 1-D, else its columns, named x1, x2, ...

    Raises
    ------
    DataError
        The array is not numeric, not 1-D or 2-D, or empty.
    UsageError
        `categorical` names a column that is not there.
    """
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"{name} is an array of {array.dtype}, not of numbers",
            hint="hand over a DataFrame where there is text, or convert with .astype(float)",
            code="data.not_numeric",
            where={"file": name},
        )
    if array.ndim not in {1, 2}:
        raise DataError(
            f"{name} is an array of {array.ndim} dimensions",
            hint="hand over an array of shape (rows,) or (rows, columns)",
            code="data.wrong_shape",
            where={"file": name},
        )
    n_rows, n_columns = array.shape if array.ndim == 2 else (len(array), 1)
    refuse_empty(name, n_rows, n_columns)
    values = np.ma.filled(array.astype(np.float64), np.nan).reshape(n_rows, n_columns)
    columns = tuple(Column(f"x{j + 1}", "number", values[:, j].copy()) for j in range(n_columns))
    return with_categories(Table(name, columns, n_rows, "array"), categorical)
