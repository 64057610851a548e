"""From tables and arrays to the rows of a machine, and to a fitted one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kerntest.errors import DataError, UsageError
from kerntest.kernels.base import Points
from kerntest.learning.calibration import fit_sigmoid
from kerntest.learning.encoding import Encoder
from kerntest.learning.folds import plain_folds, sparse_classes_warning, stratified_folds
from kerntest.learning.given_matrix import training_matrix
from kerntest.learning.given_values import target_of
from kerntest.learning.grid import held_out_scores
from kerntest.learning.kernel_choice import ChosenKernel, choose_kernel
from kerntest.learning.svm_fit import Rows, SvmFit, fit_rows
from kerntest.learning.svm_options import LARGEST_COST, SMALLEST_COST
from kerntest.learning.training import (
    Classes,
    Labelled,
    TrainingOptions,
    hardly_classes,
    read_labelled,
    varied_numbers_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from kerntest.data.table import Column
    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array
    from kerntest.learning.svm_options import SvmOptions

# Folds whose held-out scores probabilities are fitted to.
PROBABILITY_FOLDS = 5
# Beyond so many different numbers, and this share of the rows, numbers are hardly classes.
MANY_CLASSES, MANY_SHARE = 20, 0.1
# And beyond this share, with fewer than two rows of a class, nothing is: every pair of classes would be fitted in vain.
HARDLY_REPEATED = 0.5


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
    matrix = training_matrix(X)
    if options.task == "one-class":
        return Rows(matrix, None, None, None, None, None)
    if y is None:
        raise _no_target(options)
    target = target_of(y, len(matrix))
    if options.task == "regress":
        return Rows(matrix, None, None, _target_numbers(target, "y"), None, "y")
    classes = Classes.of(target, "y")
    return Rows(matrix, None, classes.codes(target, "y"), None, classes, "y")


def _target_numbers(target: Column, table: str) -> Array:
    """Return numbers to predict; refuse those of which the solver could not square the products.

    Raises
    ------
    DataError
        As above; if they are none, or all the same.
    """
    numbers = varied_numbers_of(target, table)
    half = float(numbers.max()) / 2 - float(numbers.min()) / 2
    if not SMALLEST_COST <= half <= LARGEST_COST:
        size = "large" if half > 1 else "small"
        raise DataError(
            f"column {target.name!r} of {table} has numbers too {size} to learn: they range over {half:.3g} to either side",
            hint="bring them to other units",
            code="data.target_size",
            where={"file": table, "column": target.name},
        )
    return numbers


def rows_of(labelled: Labelled, options: SvmOptions) -> tuple[Rows, dict[str, str], list[str]]:
    """Return the rows of a table as a machine takes them, the columns left out with reasons, and warnings."""
    fitted = Encoder.fit(labelled.features, options.scale)
    warnings = list(fitted.warnings)
    name = labelled.read.name
    codes, numbers, classes = None, None, None
    if labelled.target is not None and options.task == "regress":
        numbers = _target_numbers(labelled.target, name)
        if labelled.target.kind == "date":
            warnings.append(f"column {labelled.target.name!r} holds dates: they are predicted in days since 1970-01-01")
    elif labelled.target is not None:
        classes = Classes.of(labelled.target, name)
        codes = classes.codes(labelled.target, name)
        if len(classes.names) > max(MANY_CLASSES, HARDLY_REPEATED * labelled.n):
            raise hardly_classes(labelled.target, len(classes.names), name)
        if classes.kind == "number" and len(classes.names) > max(MANY_CLASSES, MANY_SHARE * labelled.n):
            warnings.append(
                f"column {labelled.target.name!r} has {len(classes.names):,} different numbers in {labelled.n:,} rows, each "
                "taken for a class; --task regress predicts numbers"
            )
    target = None if labelled.target is None else labelled.target.name
    rows = Rows(fitted.points, fitted.encoder, codes, numbers, classes, target, labelled.clusters)
    return rows, dict(zip(fitted.left_out, fitted.warnings, strict=True)), warnings


def chosen_kernel(rows: Rows, options: SvmOptions, left_out: Mapping[str, str]) -> ChosenKernel:
    """Return the kernel of the options for the rows of a table, of which some columns were left out for a reason."""
    if rows.encoder is None or not isinstance(rows.points, Points):
        message = "a table has an encoder"
        raise TypeError(message)
    return choose_kernel(options.kernel, options.bandwidth, rows.encoder, rows.points, options.seed, left_out=left_out)


def fit_machine(
    rows: Rows,
    chosen: ChosenKernel | None,
    options: SvmOptions,
    engine: Engine,
    *,
    C: float | None = None,
    progress: Progress | None = None,
) -> SvmFit:
    """Return the fitted machine, with probabilities where they were asked for."""
    kernel = None if chosen is None else chosen.kernel
    fit = fit_rows(rows, kernel, options, engine, C=C, progress=progress)
    if not options.probability or rows.codes is None:
        return fit
    folds = _probability_folds(rows, options.seed)
    cost = options.C if C is None else C
    scores = held_out_scores(rows, kernel, options, C=cost, folds=folds, engine=engine)
    through = len(fit.model.pairs) == 1
    sigmoids = []
    for place, (i, j) in enumerate(fit.model.pairs):
        members = (rows.codes == i) | (rows.codes == j)
        sigmoids.append(fit_sigmoid(scores[members, place], rows.codes[members] == j, through_threshold=through))
    return replace(fit, model=replace(fit.model, sigmoids=tuple(sigmoids)))


def _probability_folds(rows: Rows, seed: int) -> NDArray[np.intp]:
    """Return the folds whose held-out scores probabilities are fitted to.

    Raises
    ------
    DataError
        If the rows are too few for them.
    """
    try:
        return folds_of(rows, PROBABILITY_FOLDS, seed)[0]
    except DataError as error:
        raise DataError(
            f"--probability holds rows out: {error.message}",
            hint=f"leave it out, or give at least {PROBABILITY_FOLDS} rows, and 2 of each class",
            code=error.code,
            where=error.where,
        ) from error


def folds_of(rows: Rows, count: int, seed: int) -> tuple[NDArray[np.intp], list[str]]:
    """Return the fold of each row, by class where there are classes, and warnings."""
    if rows.codes is None:
        return plain_folds(len(rows), count, seed, rows.clusters), []
    names = None if rows.classes is None else rows.classes.names
    folds = stratified_folds(rows.codes, count, seed, names, rows.clusters)
    warning = sparse_classes_warning(rows.codes, count, names, rows.clusters)
    return folds, [] if warning is None else [warning]
