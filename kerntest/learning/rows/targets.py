"""Targets and weights: classes and numbers, from the columns of a table or from what Python callers hand over."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.column_types import as_text, number_text
from kerntest.data.columns import EXACT_INTEGERS, recoded
from kerntest.data.table import Column, Kind
from kerntest.errors import DataError, UsageError, counted, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# More classes than this are no classes.
MOST_CLASSES = 500
# Targets whose coefficients and scales are still numbers, with every lambda; weights whose products are.
LARGEST_TARGET = 1e250
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-75, 1e75
# Units of numpy's times that Arrow does not have.
_TIMES = {
    **dict.fromkeys(("generic", "Y", "M", "W", "D"), "datetime64[D]"),
    **dict.fromkeys(("h", "m", "s"), "datetime64[s]"),
    **{unit: f"datetime64[{unit}]" for unit in ("ms", "us")},
}


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The classes of a target of this kind, sorted: numbers by value, texts by their characters."""

    names: tuple[str, ...]
    kind: Kind

    def flaw(self) -> str | None:
        """Return what is wrong with them, if a stranger wrote them."""
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            return "names must be two classes or more, all different"
        if self.kind == "number" and not all(map(_is_number, self.names)):
            return "names must be numbers in their shortest form"
        if self.kind == "boolean" and self.names != ("false", "true"):
            return "names must be 'false' and 'true'"
        return None

    @classmethod
    def of(cls, target: Column, table: str) -> Classes:
        """Return the classes of a column: two or more, at most 500."""
        present = np.unique(target.values).tolist()
        if len(present) > MOST_CLASSES:
            raise hardly_classes(target, len(present), table)
        if target.is_category:
            names = tuple(target.levels[code] for code in present)
        else:
            names = as_text(target).levels if target.kind == "date" else tuple(map(number_text, present))
        if len(names) < 2:
            raise DataError(
                f"every row of {table} has {target.name} = {names[0] if names else '(nothing)'}: there is one class only",
                hint="a classifier needs rows of at least two classes",
                code="data.one_class",
                where={"file": table, "column": target.name},
            )
        return cls(names, target.kind)

    def codes(self, column: Column, table: str) -> NDArray[np.intp]:
        """Return the place of each row's class; DataError for one that is none of these."""
        as_names = recoded(column if column.is_category else as_text(column))
        place = {name: k for k, name in enumerate(self.names)}
        unknown = [level for level in as_names.levels if level not in place]
        if unknown:
            raise DataError(
                f"{table}: {column.name} has {listed([repr(level) for level in unknown])}, which no row of the "
                "training part has",
                hint=f"the classes are {listed(list(self.names))}",
                code="data.unknown_class",
                where={"file": table, "column": column.name, "value": unknown[0]},
            )
        places = np.array([place[level] for level in as_names.levels], dtype=np.intp)
        return np.asarray(places[as_names.values])

    def values(self, codes: NDArray[np.intp]) -> NDArray[Any]:
        """Return classes as they stood in the data: numbers, truth values or texts."""
        if self.kind == "number":
            numbers = np.array([float(name) for name in self.names])
            whole = bool(np.all(numbers == np.floor(numbers)) and np.all(np.abs(numbers) < EXACT_INTEGERS))
            return (numbers.astype(np.int64) if whole else numbers)[codes]
        if self.kind == "boolean":
            return np.array([name == "true" for name in self.names])[codes]
        return np.array(self.names, dtype=object)[codes]


def _is_number(text: str) -> bool:
    """Say whether a text is what we write for a finite number."""
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and number_text(number) == text


def hardly_classes(target: Column, count: int, table: str) -> DataError:
    """Return the error for a target with more different values than classes can be."""
    fewer = (
        f"merge rare values, or name another --target: classes have several rows, and there are at most {MOST_CLASSES}"
    )
    hint = fewer if target.is_category else "--task regress predicts numbers"
    what = f"has {count:,} different values, which are too many for classes"
    return unfit(target, table, what, hint, "data.too_many_classes")


def unfit(column: Column, table: str, what: str, hint: str, code: str) -> DataError:
    """Return the error for a column that is not what it was named for."""
    where = {"file": table, "column": column.name}
    return DataError(f"column {column.name!r} of {table} {what}", hint=hint, code=code, where=where)


def numbers_of(target: Column, table: str) -> Array:
    """Return a target of numbers; DataError if it holds text."""
    if target.is_category:
        hint, what = "`kerntest svm --task classify` predicts classes", f"holds {target.kind}, not numbers to predict"
        raise unfit(target, table, what, hint, "data.target_not_numeric")
    return np.asarray(target.values, dtype=np.float64)


def varied_numbers_of(target: Column, table: str) -> Array:
    """Return a target of numbers to learn from, which are not all the same."""
    numbers = numbers_of(target, table)
    if numbers.min() == numbers.max():
        what = "has one value in all rows: there is nothing to predict"
        raise unfit(target, table, what, "name another --target", "data.constant_target")
    return numbers


def numbers_to_learn(columns: Sequence[Column], table: str) -> Array:
    """Return targets of numbers, shape (n, T); refuse those of which differences and scales could leave the range."""
    targets = np.stack([varied_numbers_of(column, table) for column in columns], axis=1)
    for column, largest in zip(columns, np.abs(targets).max(axis=0), strict=True):
        if largest > LARGEST_TARGET:
            what = f"has numbers too large to learn: one of size {largest:.3g}"
            raise unfit(column, table, what, "bring them to other units", "data.target_size")
    return targets


def told_of_dates(columns: Sequence[Column]) -> list[str]:
    """Return what targets of dates are predicted as."""
    told = "column {!r} holds dates: they are predicted in days since 1970-01-01"
    return [told.format(column.name) for column in columns if column.kind == "date"]


def checked_weights(column: Column, table: str, *, positive: bool = False) -> Array:
    """Return weights of rows: 0, or numbers whose products are neither too large nor too small; not all 0, or none."""
    weights = np.empty(0) if column.is_category else np.asarray(column.values, dtype=np.float64)
    wrong = ~(weights >= 0) | ~np.isfinite(weights)
    extreme = (weights > 0) & ((weights < SMALLEST_WEIGHT) | (weights > LARGEST_WEIGHT))
    if wrong.any() or not weights.any():
        what = column.kind if column.is_category else f"{weights[wrong][0]:g}" if wrong.any() else "0 everywhere"
        wanted = "positive, or 0 to leave a row out"
        hint = "--weights names a column such as a number of repeats, or 1 / (variance of the row)"
    elif extreme.any():
        what, hint = f"{weights[extreme][0]:g}", "bring them to other units"
        wanted = f"0 or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
    elif positive and not weights.all():
        raise UsageError(
            "weights of 0 leave rows out, which a precomputed matrix still has",
            hint="leave the rows and columns out of the matrix",
            code="usage.weights",
        )
    else:
        return weights
    raise unfit(column, table, f"holds {what}, and weights are {wanted}", hint, "data.weights")


def target_of(values: Any, n_rows: int, *, name: str = "y") -> Column:
    """Return what is handed over beside n rows to be predicted: a column without missing values."""
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
    """Return values as the column that they would be in a table; None, NaN, NaT and NA are missing."""
    # A series of pandas, or of another library that hands over Arrow data.
    typed = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    if (typed or type(values).__module__.startswith("pandas.")) and not hasattr(values, "columns"):
        return _by_arrow(values, name)
    array = _as_array(values, name)
    if array.dtype.kind in "iuf":
        return Column(name, "number", array.astype(np.float64))
    if array.dtype.kind == "b":
        return Column(name, "boolean", array.astype(np.int64), ("false", "true"))
    return _by_arrow(array, name)


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

    from kerntest.data.column_types import column_of as typed_column  # noqa: PLC0415 - the same

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


def given_targets(y: Any, n: int) -> list[Column]:
    """Return one target or several, shape (n,) or (n, T), or a DataFrame, as columns."""
    if hasattr(y, "columns") and hasattr(y, "iloc"):
        names = [str(name) for name in y.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(
                f"y has two columns {twice!r}", hint="give each target a name of its own", code="data.duplicate_columns"
            )
        return [target_of(y.iloc[:, place], n, name=name) for place, name in enumerate(names)]
    if isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple, np.ndarray)):
        try:
            y = np.asarray(y)
        except ValueError as error:
            raise DataError(
                "y holds rows of different lengths", hint="every row has all targets", code="data.wrong_shape"
            ) from error
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1]:
        return [target_of(column, n, name=f"y{place}") for place, column in enumerate(y.T, start=1)]
    return [target_of(y, n)]
