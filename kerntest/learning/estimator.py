"""What `SVM`, `KernelRidge` and `KernelPCA` share: parameters, the model and its file; and what Python callers hand over."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

import numpy as np

from kerntest.data.columns import match_names, split_patterns
from kerntest.data.messages import counted
from kerntest.data.table import Column
from kerntest.engines.setting import engine_of
from kerntest.errors import DataError, UsageError
from kerntest.learning.learner import FitT, ModelT
from kerntest.learning.saved_models import load_model, save_model
from kerntest.learning.training_rows import TrainingOptions, TrainingRows, read_labelled, varied_numbers_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from kerntest.data.table import Table
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.training_rows import Labelled

# Targets whose coefficients and scales are still numbers, with every lambda; weights whose products are.
LARGEST_TARGET = 1e250
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-75, 1e75
# Units of numpy's times that Arrow does not have.
_TIMES = {
    **dict.fromkeys(("generic", "Y", "M", "W", "D"), "datetime64[D]"),
    **dict.fromkeys(("h", "m", "s"), "datetime64[s]"),
    **{unit: f"datetime64[{unit}]" for unit in ("ms", "us")},
}


class Estimator(Generic[ModelT, FitT]):
    """What `SVM`, `KernelRidge` and `KernelPCA` share: parameters, the model and its file."""

    MODEL: ClassVar[type]
    # What one is called in messages.
    CALLED: ClassVar[str]

    def __init__(self, options: Any, threads: int | None) -> None:
        self.options = options
        self.threads = threads
        self._engine = engine_of(threads)
        self._model: ModelT | None = None
        self.fit_: FitT | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn asks for them."""
        del deep
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self.options, name, self.threads) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, and forget what was fitted."""
        unknown = [name for name in params if name not in self.get_params()]
        if unknown:
            raise UsageError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}",
                hint=f"they are {', '.join(self.get_params())}",
                code="usage.parameter",
            )
        vars(self).update(vars(type(self)(**{**self.get_params(), **params})))
        return self

    @property
    def _estimator_type(self) -> str:
        return "transformer"

    def __sklearn_tags__(self) -> Any:
        made = import_module("sklearn.utils")
        kind = self._estimator_type
        return made.Tags(
            kind,
            made.TargetTags(required=kind in {"classifier", "regressor"}),
            classifier_tags=made.ClassifierTags() if kind == "classifier" else None,
            regressor_tags=made.RegressorTags() if kind == "regressor" else None,
        )

    @property
    def model(self) -> ModelT:
        """What was fitted; UsageError if nothing was."""
        if self._model is None:
            raise UsageError(f"{self.CALLED} not fitted", hint="call fit first", code="usage.not_fitted")
        return self._model

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model to a file that the command line and `load` read."""
        save_model(path, self.model, force=force)

    @classmethod
    def load(cls, path: str | PathLike[str], *, threads: int | None = None) -> Self:
        """Return one that works with the model of a file."""
        model: Any = load_model(path, cls.MODEL)
        loaded = cls(**cls._loaded(model), threads=threads)
        loaded._model = model
        return loaded

    @classmethod
    def _loaded(cls, model: ModelT) -> dict[str, Any]:
        """Return the parameters that a model file knows."""
        del model
        return {}

    def _points(self, X: Any) -> Points | Array:
        """Return new rows as the model takes them."""
        if self.model.encoder is None:
            return rows_against(X, self.model.n_train)
        labelled = read_labelled(as_rows(X), (), TrainingOptions(), name="X")
        points: Points = self.model.encoder.transform(labelled.features).points
        return points


def as_rows(X: Any) -> Any:
    """Return lists of numbers as an array, and everything else as it is."""
    if not isinstance(X, (list, tuple)):
        return X
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            "rows in lists are equally many numbers each",
            hint="hand over a DataFrame where there is text",
            code="data.not_numeric",
        ) from error


def training_matrix(X: Any) -> Array:
    """Return a precomputed matrix of the training rows, shape (n, n) and symmetric."""
    matrix = _matrix(X)
    if not len(matrix) or matrix.shape[0] != matrix.shape[1]:
        raise DataError(
            f"a precomputed matrix has shape (n, n), not {matrix.shape}",
            hint="entry i, j is the kernel of training rows i and j",
            code="data.wrong_shape",
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10 * float(np.abs(matrix).max(initial=0.0))):
        raise DataError("a precomputed matrix must be symmetric", hint="K = (K + K.T) / 2", code="data.not_symmetric")
    return matrix


def rows_against(X: Any, n_train: int) -> Array:
    """Return further rows of a precomputed matrix, shape (m, n_train)."""
    matrix = _matrix(X)
    if matrix.shape[1] != n_train:
        raise DataError(
            f"the rows of the matrix have {matrix.shape[1]:,} columns, and the machine was fitted to {n_train:,} rows",
            hint="entry i, j is the kernel of row i and training row j: hand over all training rows",
            code="data.wrong_shape",
        )
    return matrix


def _matrix(X: Any) -> Array:
    """Return kernel values as a matrix of finite numbers."""
    try:
        matrix = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            "a precomputed matrix holds numbers, and nothing else",
            hint="hand over an array of shape (rows, training rows)",
            code="data.not_numeric",
        ) from error
    if matrix.ndim != 2:
        raise DataError(
            f"a precomputed matrix has two dimensions, not shape {matrix.shape}",
            hint="one row alone is K[None, :]",
            code="data.wrong_shape",
        )
    if not np.isfinite(matrix).all():
        row, column = (int(place) + 1 for place in np.argwhere(~np.isfinite(matrix))[0])
        raise DataError(
            f"a precomputed matrix has finite entries, not {matrix[row - 1, column - 1]} in row {row:,}, column {column:,}",
            hint="look at the kernel of these two rows",
            code="data.wrong_shape",
        )
    return matrix


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

    from kerntest.data.in_memory import column_of as typed_column  # noqa: PLC0415 - the same

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


def with_targets(X: Any, y: Any, sample_weight: Any) -> Labelled:
    """Return X with its targets, columns of X or values beside it, and weights."""
    if y is None:
        raise UsageError("a regression needs y", hint="fit(X, y)", code="usage.target")
    names = [y] if isinstance(y, str) else y
    if isinstance(names, (list, tuple)) and names and all(isinstance(name, str) for name in names):
        labelled = read_labelled(X, names, TrainingOptions(), name="X")
    else:
        labelled = read_labelled(X, (), TrainingOptions(), name="X")
        labelled = replace(labelled, targets=tuple(given_targets(y, labelled.n)))
    if sample_weight is None:
        return labelled
    return replace(labelled, beside=(target_of(sample_weight, labelled.n, name="sample_weight"),))


def rows_of_matrix(X: Any, y: Any, sample_weight: Any) -> TrainingRows:
    """Return the rows of a precomputed matrix."""
    matrix = training_matrix(X)
    if y is None:
        raise UsageError("a regression needs y", hint="fit(K, y)", code="usage.target")
    columns = given_targets(y, len(matrix))
    numbers, weights = numbers_to_learn(columns, "y"), None
    if sample_weight is not None:
        weights = checked_weights(target_of(sample_weight, len(matrix), name="sample_weight"), "K")
        if not weights.all():
            raise UsageError(
                "weights of 0 leave rows out, which a precomputed matrix still has",
                hint="leave the rows and columns out of the matrix",
                code="usage.weights",
            )
    return TrainingRows(matrix, names=tuple(column.name for column in columns), targets=numbers, weights=weights)


def target_names(target: str | Sequence[str], table: Table) -> tuple[str, ...]:
    """Return the targets that names ask for; a text may name several with commas between them, unless it is a name."""
    if target is not None and not isinstance(target, Iterable):
        raise UsageError(
            f"target must be the name of a column, or a list of names, not {target!r}",
            hint=f"the columns are {', '.join(table.names[:12])}",
            code="usage.target",
        )
    texts = [target] if isinstance(target, str) else map(str, () if target is None else target)
    patterns = [pattern for text in texts for pattern in ([text] if text in table.names else split_patterns(text))]
    return tuple(match_names(patterns, table.names, table.name))


def numbers_to_learn(columns: Sequence[Column], table: str) -> Array:
    """Return targets of numbers, shape (n, T)."""
    return np.stack([_learned_numbers(column, table) for column in columns], axis=1)


def told_of_dates(columns: Sequence[Column]) -> list[str]:
    """Return what targets of dates are predicted as."""
    return [
        f"column {column.name!r} holds dates: they are predicted in days since 1970-01-01"
        for column in columns
        if column.kind == "date"
    ]


def _learned_numbers(column: Column, table: str) -> Array:
    """Return a target of numbers; refuse those of which differences and scales could leave the range of numbers."""
    numbers = varied_numbers_of(column, table)
    largest = float(np.abs(numbers).max())
    if largest > LARGEST_TARGET:
        raise DataError(
            f"column {column.name!r} of {table} has numbers too large to learn: one of size {largest:.3g}",
            hint="bring them to other units",
            code="data.target_size",
            where={"file": table, "column": column.name},
        )
    return numbers


def checked_weights(column: Column, table: str) -> Array:
    """Return weights of rows: 0, or numbers whose products are neither too large nor too small; not all 0."""
    weights = np.empty(0) if column.is_category else np.asarray(column.values, dtype=np.float64)
    wrong = ~(weights >= 0) | ~np.isfinite(weights)
    if wrong.any() or not weights.any():
        what = column.kind if column.is_category else f"{weights[wrong][0]:g}" if wrong.any() else "0 everywhere"
        raise DataError(
            f"column {column.name!r} of {table} holds {what}, and weights are positive, or 0 to leave a row out",
            hint="--weights names a column such as a number of repeats, or 1 / (variance of the row)",
            code="data.weights",
            where={"file": table, "column": column.name},
        )
    extreme = (weights > 0) & ((weights < SMALLEST_WEIGHT) | (weights > LARGEST_WEIGHT))
    if extreme.any():
        raise DataError(
            f"column {column.name!r} of {table} holds {weights[extreme][0]:g}, and weights that are not 0 must be between "
            f"{SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}",
            hint="bring them to other units",
            code="data.weights",
            where={"file": table, "column": column.name},
        )
    return weights
