"""From tables and arrays to the rows of a ridge regression: points, targets and weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.selection import match_names, split_patterns
from kerntest.data.wording import counted
from kerntest.errors import DataError, UsageError
from kerntest.kernels.base import Points
from kerntest.learning.encoding import Encoder
from kerntest.learning.estimator import target_of, training_matrix
from kerntest.learning.training_rows import TrainingOptions, numbers_of, read_labelled, varied_numbers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table
    from kerntest.kernels.base import Array
    from kerntest.learning.encoding import Scale
    from kerntest.learning.training_rows import Labelled

# Targets whose coefficients and scales are still numbers, with every lambda; weights whose products are.
LARGEST_TARGET = 1e250
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-75, 1e75


@dataclass(frozen=True, slots=True, eq=False)
class RidgeRows:
    """The rows of a ridge regression.

    Parameters
    ----------
    points : Points or ndarray, shape (n, n)
        Rows, or a matrix of kernel values.
    encoder : Encoder or None
    targets : ndarray, shape (n, T)
    names : tuple of str
        Of the T targets.
    weights : ndarray, shape (n,), or None
        All positive.
    clusters : ndarray of int, shape (n,), or None
        Equal for rows that no fold parts.
    """

    points: Points | Array
    encoder: Encoder | None
    targets: Array
    names: tuple[str, ...]
    weights: Array | None = None
    clusters: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: NDArray[np.intp]) -> RidgeRows:
        """Return some of the rows, of points."""
        if not isinstance(self.points, Points):
            message = "rows of a matrix stay together"
            raise TypeError(message)
        points = Points(self.points.numeric[rows], self.points.codes[rows])
        weights = None if self.weights is None else self.weights[rows]
        clusters = None if self.clusters is None else self.clusters[rows]
        return replace(self, points=points, targets=self.targets[rows], weights=weights, clusters=clusters)


def target_names(target: str | Sequence[str], table: Table) -> tuple[str, ...]:
    """Return the targets that names ask for; a text may name several with commas between them, unless it is a name.

    Raises
    ------
    UsageError
        If a name is not there.
    """
    if target is not None and not isinstance(target, Iterable):
        raise UsageError(
            f"target must be the name of a column, or a list of names, not {target!r}",
            hint=f"the columns are {', '.join(table.names[:12])}",
            code="usage.target",
        )
    texts = [target] if isinstance(target, str) else map(str, () if target is None else target)
    patterns = [pattern for text in texts for pattern in ([text] if text in table.names else split_patterns(text))]
    return tuple(match_names(patterns, table.names, table.name))


def rows_of(labelled: Labelled, scale: Scale, n_targets: int) -> tuple[RidgeRows, dict[str, str], list[str]]:
    """Return the rows of a table, the columns left out with reasons, and warnings.

    The columns beside the first target are the further targets, and then the weights if there are any.

    Raises
    ------
    DataError
        If a target holds text or one value only, or weights cannot be.
    """
    name = labelled.read.name
    columns = _columns(labelled)
    targets = np.stack([_learned_numbers(column, name) for column in columns[:n_targets]], axis=1)
    weights = None if len(columns) == n_targets else checked_weights(columns[n_targets], name)
    if weights is not None and not weights.all():
        kept = np.flatnonzero(weights)
        rows, left_out, warnings = rows_of(labelled.take(kept), scale, n_targets)
        return rows, left_out, [f"{name}: {counted(len(weights) - len(kept), 'row')} of weight 0 left out", *warnings]
    dates = [
        f"column {column.name!r} holds dates: they are predicted in days since 1970-01-01"
        for column in columns[:n_targets]
        if column.kind == "date"
    ]
    clusters, alone = labelled.clusters, []
    if clusters is not None and clusters.min() == clusters.max():
        clusters = None
        alone = ["all rows that are learned from are in one cluster, which cannot be left out: they are, one at a time"]
    fitted = Encoder.fit(labelled.features, scale)
    names = tuple(column.name for column in columns[:n_targets])
    rows = RidgeRows(fitted.points, fitted.encoder, targets, names, weights, clusters)
    return rows, dict(zip(fitted.left_out, fitted.warnings, strict=True)), [*fitted.warnings, *dates, *alone]


def _learned_numbers(column: Column, table: str) -> Array:
    """Return a target of numbers; refuse those of which differences and scales could leave the range of numbers.

    Raises
    ------
    DataError
        As above; if they are none, or all the same.
    """
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


def test_rows(tested: Labelled, rows: RidgeRows) -> tuple[RidgeRows, list[str]]:
    """Return further rows as the regression takes them, and warnings.

    Raises
    ------
    DataError
        If they do not fit the training rows.
    """
    if rows.encoder is None:
        message = "a table has an encoder"
        raise TypeError(message)
    found = rows.encoder.transform(tested.features, name="the training part")
    columns = _columns(tested)[: len(rows.names)]
    targets = np.stack([numbers_of(column, tested.read.name) for column in columns], axis=1)
    return RidgeRows(found.points, rows.encoder, targets, rows.names), [*tested.warnings, *found.warnings]


def _columns(labelled: Labelled) -> list[Column]:
    return [*labelled.targets, *labelled.beside]


def checked_weights(column: Column, table: str) -> Array:
    """Return weights of rows: 0, or numbers whose products are neither too large nor too small; not all 0.

    Raises
    ------
    DataError
        If they are anything else.
    """
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


def with_targets(X: Any, y: Any, sample_weight: Any) -> tuple[Labelled, int]:
    """Return X with its targets, columns of X or values beside it, and how many targets there are."""
    names = (
        [y] if isinstance(y, str) else list(y) if isinstance(y, (list, tuple)) and all(map(_is_name, y)) and y else None
    )
    if y is None:
        raise UsageError("a regression needs y", hint="fit(X, y)", code="usage.target")
    if names is not None:
        labelled = read_labelled(X, names, TrainingOptions(), name="X")
    else:
        labelled = read_labelled(X, (), TrainingOptions(), name="X")
        labelled = replace(labelled, targets=tuple(given_targets(y, labelled.n)))
    if sample_weight is not None:
        weights = target_of(sample_weight, labelled.n, name="sample_weight")
        labelled = replace(labelled, beside=(weights,))
    return labelled, len(labelled.targets)


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def given_targets(y: Any, n: int) -> list[Column]:
    """Return one target or several, shape (n,) or (n, T), or a DataFrame, as columns.

    Raises
    ------
    DataError
        If they are not one value for each row.
    """
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


def given_rows(X: Any, y: Any, sample_weight: Any) -> RidgeRows:
    """Return the rows of a precomputed matrix.

    Raises
    ------
    DataError, UsageError
        If matrix, targets and weights do not fit together.
    """
    matrix = training_matrix(X)
    if y is None:
        raise UsageError("a regression needs y", hint="fit(K, y)", code="usage.target")
    columns = given_targets(y, len(matrix))
    targets = np.stack([_learned_numbers(column, "y") for column in columns], axis=1)
    weights = None
    if sample_weight is not None:
        weights = checked_weights(target_of(sample_weight, len(matrix), name="sample_weight"), "K")
    if weights is not None and not weights.all():
        raise UsageError(
            "weights of 0 leave rows out, which a precomputed matrix still has",
            hint="leave the rows and columns out of the matrix",
            code="usage.weights",
        )
    return RidgeRows(matrix, None, targets, tuple(column.name for column in columns), weights)
