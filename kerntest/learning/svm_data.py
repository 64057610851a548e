"""From tables and arrays to the rows of a machine, and to a fitted one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.errors import DataError, UsageError
from kerntest.kernels.base import Points
from kerntest.learning.calibration import fit_sigmoid
from kerntest.learning.encoding import Encoder
from kerntest.learning.folds import plain_folds, sparse_classes_warning, stratified_folds
from kerntest.learning.given_values import target_of
from kerntest.learning.grid import held_out_scores
from kerntest.learning.kernel_choice import ChosenKernel, choose_kernel
from kerntest.learning.svm_fit import Rows, SvmFit, fit_rows
from kerntest.learning.training import Classes, Labelled, TrainingOptions, read_labelled, varied_numbers_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.svm_options import SvmOptions

# Folds whose held-out scores probabilities are fitted to.
PROBABILITY_FOLDS = 5
# Beyond so many different numbers, and this share of the rows, numbers are hardly classes.
MANY_CLASSES, MANY_SHARE = 20, 0.1


def as_rows(X: Any) -> Any:
    """Return lists of numbers as an array, and everything else as it is."""
    return np.asarray(X, dtype=np.float64) if isinstance(X, (list, tuple)) else X


def with_target(X: Any, y: Any, options: SvmOptions) -> Labelled:
    """Return X with its target, a column of X or values beside it."""
    if options.task == "one-class":
        return read_labelled(X, None, TrainingOptions(), name="X")
    if y is None:
        raise _no_target(options)
    if isinstance(y, str):
        return read_labelled(X, y, TrainingOptions(), name="X")
    labelled = read_labelled(X, None, TrainingOptions(), name="X")
    return replace(labelled, target=target_of(y, labelled.n))


def _no_target(options: SvmOptions) -> UsageError:
    return UsageError(f"task={options.task!r} needs y", hint="fit(X, y)", code="usage.target")


def given_rows(X: Any, y: Any, options: SvmOptions) -> Rows:
    """Return the rows of a precomputed matrix."""
    matrix = _matrix(X)
    if not len(matrix) or matrix.shape[0] != matrix.shape[1]:
        raise DataError(
            f"a precomputed matrix has shape (n, n), not {matrix.shape}",
            hint="entry i, j is the kernel of training rows i and j",
            code="data.wrong_shape",
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10 * float(np.abs(matrix).max(initial=0.0))):
        raise DataError("a precomputed matrix must be symmetric", hint="K = (K + K.T) / 2", code="data.not_symmetric")
    if options.task == "one-class":
        return Rows(matrix, None, None, None, None, None)
    if y is None:
        raise _no_target(options)
    target = target_of(y, len(matrix))
    if options.task == "regress":
        return Rows(matrix, None, None, varied_numbers_of(target, "y"), None, "y")
    classes = Classes.of(target, "y")
    return Rows(matrix, None, classes.codes(target, "y"), None, classes, "y")


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


def rows_of(labelled: Labelled, options: SvmOptions) -> tuple[Rows, dict[str, str], list[str]]:
    """Return the rows of a table as a machine takes them, the columns left out with reasons, and warnings."""
    fitted = Encoder.fit(labelled.features, options.scale)
    warnings = list(fitted.warnings)
    name = labelled.read.name
    codes, numbers, classes = None, None, None
    if labelled.target is not None and options.task == "regress":
        numbers = varied_numbers_of(labelled.target, name)
    elif labelled.target is not None:
        classes = Classes.of(labelled.target, name)
        codes = classes.codes(labelled.target, name)
        if classes.kind == "number" and len(classes.names) > max(MANY_CLASSES, MANY_SHARE * labelled.n):
            warnings.append(
                f"column {labelled.target.name!r} has {len(classes.names):,} different numbers in {labelled.n:,} rows, each "
                "taken for a class; --task regress predicts numbers"
            )
    target = None if labelled.target is None else labelled.target.name
    rows = Rows(fitted.points, fitted.encoder, codes, numbers, classes, target)
    return rows, dict(zip(fitted.left_out, fitted.warnings, strict=True)), warnings


def chosen_kernel(rows: Rows, options: SvmOptions, left_out: Mapping[str, str]) -> ChosenKernel:
    """Return the kernel of the options for the rows of a table, of which some columns were left out for a reason."""
    if rows.encoder is None or not isinstance(rows.points, Points):
        message = "a table has an encoder"
        raise TypeError(message)
    return choose_kernel(options.kernel, options.bandwidth, rows.encoder, rows.points, options.seed, left_out=left_out)


def fit_machine(
    rows: Rows, chosen: ChosenKernel | None, options: SvmOptions, engine: Engine, C: float | None = None
) -> SvmFit:
    """Return the fitted machine, with probabilities where they were asked for."""
    kernel = None if chosen is None else chosen.kernel
    fit = fit_rows(rows, kernel, options, engine, C=C)
    if not options.probability or rows.codes is None:
        return fit
    folds, _ = folds_of(rows, PROBABILITY_FOLDS, options.seed)
    cost = options.C if C is None else C
    scores = held_out_scores(rows, kernel, options, C=cost, folds=folds, engine=engine)
    through = len(fit.model.pairs) == 1
    sigmoids = []
    for place, (i, j) in enumerate(fit.model.pairs):
        members = (rows.codes == i) | (rows.codes == j)
        sigmoids.append(fit_sigmoid(scores[members, place], rows.codes[members] == j, through_threshold=through))
    return replace(fit, model=replace(fit.model, sigmoids=tuple(sigmoids)))


def folds_of(rows: Rows, count: int, seed: int) -> tuple[NDArray[np.intp], list[str]]:
    """Return the fold of each row, by class where there are classes, and warnings."""
    if rows.codes is None:
        return plain_folds(len(rows), count, seed), []
    names = None if rows.classes is None else rows.classes.names
    folds = stratified_folds(rows.codes, count, seed, names)
    warning = sparse_classes_warning(rows.codes, count, names)
    return folds, [] if warning is None else [warning]
