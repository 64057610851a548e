"""What rows are to become: classes, numbers and weights of rows, from columns of a table or from what Python callers hand over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.column_types import as_text, number_text
from kerntest.data.column_types import column_of as typed_column
from kerntest.data.columns import check_usable
from kerntest.data.gaps import apply_missing
from kerntest.data.read import read_table
from kerntest.data.table import EXACT_INTEGERS, Column, Kind, Table
from kerntest.data.written_values import is_number
from kerntest.dataclass import dataclass
from kerntest.errors import DataError, UsageError, either, listed, option
from kerntest.learning.rows.encoding import TRAINING_PART, level_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array

# More classes than this are no classes.
MOST_CLASSES = 500
# Targets whose coefficients and scales are still numbers, with every lambda; weights whose products are.
LARGEST_TARGET = 1e250
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-75, 1e75


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a target of this kind, sorted: numbers by value, texts by their characters."""

    names: tuple[str, ...]
    kind: Kind

    def flaw(self) -> str | None:
        """Return what is wrong with them, if a stranger wrote them."""
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            return "names must be two classes or more, all different"
        if self.kind == "number" and not all(
            is_number(name) and number_text(float(name)) == name for name in self.names
        ):
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
            what = f"is {names[0] if names else '(nothing)'} in every row: there is one class only"
            raise unfit(target, table, what, "a classifier needs rows of at least two classes", "data.one_class")
        return cls(names, target.kind)

    def codes(self, column: Column, table: str) -> NDArray[np.intp]:
        """Return the place of each row's class; DataError for one that is none of these."""
        if column.kind == self.kind == "number":
            numbers = np.array(list(map(float, self.names)))
            places = np.searchsorted(numbers, column.values)
            if (numbers.take(places, mode="clip") == column.values).all():
                return places
        codes, unknown = level_codes(column.name, self.names, as_text(column))
        if unknown.rows:
            what = f"has {unknown.shown}, which no row of {TRAINING_PART} has"
            hint = f"the classes are {listed(list(self.names))}"
            raise unfit(column, table, what, hint, "data.unknown_class", value=unknown.values[0])
        return np.asarray(codes, dtype=np.intp)

    def values(self, codes: NDArray[np.intp]) -> NDArray[Any]:
        """Return classes as they stood in the data: numbers, truth values or texts."""
        if self.kind == "number":
            numbers = np.array([float(name) for name in self.names])
            whole = bool(np.all(numbers == np.floor(numbers)) and np.all(np.abs(numbers) < EXACT_INTEGERS))
            return (numbers.astype(np.int64) if whole else numbers)[codes]
        if self.kind == "boolean":
            return np.array([name == "true" for name in self.names])[codes]
        return np.array(self.names, dtype=object)[codes]


def hardly_classes(target: Column, count: int, table: str, most: int = MOST_CLASSES) -> DataError:
    """Return the error for a target with more different values than classes can be."""
    fewer = f"merge rare values, or name another {option('target')}: of so many rows there are at most"
    hint = f"{fewer} {most}" if target.is_category else f"{option('task', 'regress')} predicts numbers"
    what = f"has {count:,} different values, which are {'too many' if target.is_category else 'continuous, too many'} for classes"
    return unfit(target, table, what, hint, "data.too_many_classes")


def unfit(column: Column, table: str, what: str, hint: str, code: str, **where: str) -> DataError:
    """Return the error for a column that is not what it was named for."""
    where = {"file": table, "column": column.name, **where}
    return DataError(f"column {column.name!r} of {table} {what}", hint=hint, code=code, where=where)


def numbers_of(target: Column, table: str) -> Array:
    """Return a target of numbers; DataError if it holds text."""
    if target.is_category:
        hint, what = (
            either("`kerntest svm --task classify`", "train_svm") + " predicts classes",
            f"holds {target.kind}, not numbers to predict",
        )
        raise unfit(target, table, what, hint, "data.target_not_numeric")
    return np.asarray(target.values, dtype=np.float64)


def numbers_to_learn(columns: Sequence[Column], table: str) -> Array:
    """Return targets of numbers that vary, shape (n, T); refuse those of which differences and scales could leave the range."""
    targets = np.stack([numbers_of(column, table) for column in columns], axis=1)
    for column, numbers in zip(columns, targets.T, strict=True):
        if numbers.min() == numbers.max():
            what = "has one value in all rows: there is nothing to predict"
            raise unfit(column, table, what, f"name another {option('target')}", "data.constant_target")
        if (largest := float(np.abs(numbers).max())) > LARGEST_TARGET:
            what = f"has numbers too large to learn: one of size {largest:.3g}"
            raise unfit(column, table, what, "bring them to other units", "data.target_size")
    return targets


def told_of_dates(columns: Sequence[Column]) -> list[str]:
    """Return what targets of dates are predicted as."""
    told = "column {!r} holds dates: they are predicted in days since 1970-01-01"
    return [told.format(column.name) for column in columns if column.kind == "date"]


def checked_weights(column: Column, table: str, *, positive: bool = False) -> Array:
    """Return weights of rows: 0, or numbers whose products are neither too large nor too small; not all 0, or none."""
    weights = np.full(1, np.nan) if column.is_category else np.asarray(column.values, dtype=np.float64)
    odd = weights[(weights != 0) & ~((weights >= SMALLEST_WEIGHT) & (weights <= LARGEST_WEIGHT))]
    if len(odd) or not weights.any():
        what = column.kind if column.is_category else f"{odd[0]:g}" if len(odd) else "zero everywhere"
        wanted = f"0, which leaves a row out, or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        hint = f"{option('weights')} names a column such as a number of repeats, or 1 / (variance of the row)"
        raise unfit(column, table, f"holds {what}, and weights are {wanted}", hint, "data.weights")
    if positive and not weights.all():
        told, hint = "weights of 0 leave rows out, which a precomputed matrix still has", "leave them out of the matrix"
        raise UsageError(told, hint=hint, code="usage.weights")
    return weights


def target_of(values: Any, n_rows: int, *, name: str = "y") -> Column:
    """Return what is handed over beside n rows to be predicted: a column without missing values."""
    column = column_of(values, name)
    return _paired(Table(name, (column,), len(column.values), "array"), n_rows)[0]


def _paired(table: Table, n_rows: int) -> tuple[Column, ...]:
    """Return the columns of a table that has a value for each of n rows."""
    if table.n_rows != n_rows:
        raise DataError(
            f"X has {n_rows:,} rows and {table.name} {table.n_rows:,} values",
            hint=f"value i of {table.name} belongs to row i of X",
            code="data.rows_do_not_pair",
        )
    checked = check_usable(table)
    try:
        return apply_missing(checked, "error", table.names)[0].columns
    except DataError as error:
        error.hint = (
            f"leave those rows out of both: there = pandas.notna({table.name}), then X[there] and {table.name}[there]"
        )
        raise


def column_of(values: Any, name: str) -> Column:
    """Return values as the column that they would be in a table; None, NaN, NaT and NA are missing."""
    pandas = type(values).__module__.startswith("pandas.")
    streamed = hasattr(values, "__arrow_c_stream__") and not pandas
    if not (pandas or streamed or hasattr(values, "__arrow_c_array__")) or hasattr(values, "columns"):
        try:
            array = np.asanyarray(values)
        except ValueError as error:
            raise _no_column(name, "holds sequences of different lengths") from error
        if array.ndim != 1:
            raise _no_column(name, f"has shape {array.shape}, not (n,)", "data.wrong_shape")
        if array.dtype.kind in "iuf":
            return Column(name, "number", np.ma.filled(array.astype(np.float64), np.nan))
        if isinstance(values, np.ndarray) or array.dtype.kind == "M":
            # Of the units of numpy's times, and of its texts, Arrow does not have all.
            values = array.astype({"M": "datetime64[us]", "T": object}.get(array.dtype.kind, array.dtype))
    import pyarrow as pa  # noqa: PLC0415 - 70 ms that an array of numbers does not need

    try:
        found = pa.chunked_array(values) if streamed else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _no_column(name, "holds values of mixed or unknown types") from error
    return typed_column(name, found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found]), name)


def _no_column(name: str, trouble: str, code: str = "data.unusable_type") -> DataError:
    hint = "hand over one number, truth value, text or date for each row"
    return DataError(f"{name} {trouble}", hint=hint, code=code)


def given_targets(y: Any, n: int) -> list[Column]:
    """Return one target or several, shape (n,) or (n, T), or a frame, as columns."""
    if hasattr(y, "columns"):
        return [*_paired(read_table(y, name="y"), n)]
    if isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple, np.ndarray)):
        try:
            y = np.asarray(y)
        except ValueError as error:
            raise _no_column("y", "holds rows of different lengths", "data.wrong_shape") from error
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1]:
        return [target_of(column, n, name=f"y{place}") for place, column in enumerate(y.T, start=1)]
    return [target_of(y, n)]
