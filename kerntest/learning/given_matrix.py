"""Matrices of kernel values, and rows of numbers, that a Python caller hands over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.errors import DataError

if TYPE_CHECKING:
    from kerntest.kernels.base import Array, Kernel

PRECOMPUTED = "precomputed"


def is_precomputed(kernel: Kernel | str) -> bool:
    """Say whether rows are rows of a matrix of kernel values."""
    return isinstance(kernel, str) and kernel.strip().lower() == PRECOMPUTED


def as_rows(X: Any) -> Any:
    """Return lists of numbers as an array, and everything else as it is.

    Raises
    ------
    DataError
        If lists hold anything else, or are not equally long.
    """
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
    """Return a precomputed matrix of the training rows, shape (n, n).

    Raises
    ------
    DataError
        If it is none, or not symmetric.
    """
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
    """Return further rows of a precomputed matrix, shape (m, n_train).

    Raises
    ------
    DataError
        If they are none.
    """
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
