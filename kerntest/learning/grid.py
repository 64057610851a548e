"""Choosing the cost and the bandwidth by cross-validation inside the training part."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.local import LocalEngine
from kerntest.errors import UndecidedError, UsageError
from kerntest.kernels.base import Points
from kerntest.learning.kernel_choice import at_multiples
from kerntest.learning.svm_model import fit_rows
from kerntest.learning.ties import smoothest
from kerntest.matrices.matrix import matrix_of
from kerntest.report.svm_record import GridCell, GridSearch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Kernel
    from kerntest.learning.svm_machines import Machine
    from kerntest.learning.svm_options import SvmOptions
    from kerntest.learning.training_rows import TrainingRows

# Costs, and bandwidths as multiples of the median.
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
# Relative duality gap of the machines of a grid.
GRID_TOLERANCE = 1e-3
# How far a nu stays below the largest one, where rounding decides.
BELOW_LARGEST = 1e-9
TIES = "the best mean over the folds; of equal ones the smallest C, then the largest bandwidth"


@dataclass(frozen=True, slots=True)
class _Cell:
    """One bandwidth in one fold: every cost is fitted there, one after another."""

    multiple: float
    fold: int


def search(
    rows: TrainingRows,
    options: SvmOptions,
    folds: NDArray[np.intp],
    engine: Engine,
    *,
    whole_grid: bool,
    progress: Progress | None = None,
) -> tuple[GridSearch, float, Kernel | None]:
    """Return the grid with its scores, and the cost and the kernel that it chooses.

    Parameters
    ----------
    rows : TrainingRows
        The training part.
    options : SvmOptions
    folds : ndarray of int, shape (n,)
        Fold of each row.
    engine : Engine
    whole_grid : bool
        Whether to try all costs and bandwidths; otherwise the cross-validation of the options as they are.
    progress : callable, optional

    Raises
    ------
    UsageError, UndecidedError
        If there is nothing to score by, or a machine cannot be fitted in a fold.

    Notes
    -----
    Cost: that of a fit for each cell of the grid and fold; the matrix of a bandwidth is shared by all costs of a fold.
    """
    if options.task == "one-class":
        raise UsageError(
            "one class has no score to cross-validate by",
            hint="leave out --grid and --cv; --nu sets the share of outliers",
            code="usage.grid",
        )
    _check_nu(options, rows)
    count = int(folds.max()) + 1
    has_cost = options.nu is None and not options.hard_margin and options.method == "svm"
    costs = COSTS if whole_grid and has_cost else (options.C,)
    several = whole_grid and rows.chosen is not None and rows.chosen.free.free
    multiples: Sequence[float] = MULTIPLES if several else (1.0,)
    kernels = _kernels(rows, multiples if several else None, options.seed)
    # Which cell is best does not hang on the last digits of a machine; a score of the options as they are may.
    rough = replace(options, tolerance=max(options.tolerance, GRID_TOLERANCE)) if whole_grid else options
    cells = [_Cell(multiple, fold) for multiple in multiples for fold in range(count)]
    alone = LocalEngine(1)

    def work(cell: _Cell) -> list[float]:
        train, test = np.flatnonzero(folds != cell.fold), np.flatnonzero(folds == cell.fold)
        return _scores(with_kernel(rows, kernels[cell.multiple]), train, test, costs, options=rough, engine=alone)

    values = np.array(list(engine.map(work, cells, progress))).reshape(len(multiples), count, len(costs))
    found = [
        GridCell(
            C=cost,
            multiple=multiple,
            bandwidth=getattr(kernels[multiple], "bandwidth", None),
            kernel=str(kernels[multiple]) if kernels[multiple] is not None else "precomputed",
            mean=float(values[i, :, j].mean()),
            standard_error=float(values[i, :, j].std(ddof=1) / math.sqrt(count)) if count > 1 else None,
        )
        for i, multiple in enumerate(multiples)
        for j, cost in enumerate(costs)
    ]
    orders = [np.array([-cell.C for cell in found]), np.array([cell.multiple for cell in found])]
    chosen_cell = smoothest(np.array([-cell.mean for cell in found]), orders)
    best = found[chosen_cell]
    score = "accuracy" if options.task == "classify" else "negative RMSE"
    result = GridSearch(score, count, TIES, tuple(found), chosen_cell, best.mean)
    return result, best.C, kernels[best.multiple]


def _kernels(rows: TrainingRows, multiples: Sequence[float] | None, seed: int) -> dict[float, Kernel | None]:
    """Return the kernel at each multiple of the median bandwidth."""
    if rows.chosen is None or multiples is None or not isinstance(rows.points, Points):
        return {1.0: rows.kernel}
    return dict(zip(multiples, at_multiples(rows.chosen, multiples, rows.points, seed), strict=True))


def with_kernel(rows: TrainingRows, kernel: Kernel | None) -> TrainingRows:
    """Return rows with another kernel in place of theirs."""
    if rows.chosen is None or kernel is None:
        return rows
    return replace(rows, chosen=replace(rows.chosen, kernel=kernel))


def _scores(
    rows: TrainingRows,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    costs: Sequence[float],
    *,
    options: SvmOptions,
    engine: Engine,
) -> list[float]:
    """Return the score on one fold for every cost."""
    part, held = _parted(rows, train, test)
    options, kernel = _feasible(options, part), rows.kernel
    matrix = None
    if isinstance(part.points, Points) and kernel is not None and options.features is None:
        matrix = matrix_of(kernel, part.points)
    results = []
    start: tuple[Machine, ...] | None = None
    for cost in costs:
        with _said_of_folds(kernel):
            fitted = fit_rows(part, options, engine, C=cost, matrix=matrix, start=start)
        # From a smaller cost to the next a start saves half the work, but not where the matrix has low rank.
        solved = [one.solution for one in fitted.machines]
        start = fitted.machines if all(one and "factor" not in one.method for one in solved) else None
        scores = fitted.model.scores(held.points, engine)
        if options.task == "classify":
            results.append(float(np.mean(fitted.model.codes(scores) == held.codes)))
        else:
            results.append(-float(np.sqrt(np.mean((scores[:, 0] - held.targets[:, 0]) ** 2))))
    return results


def _parted(rows: TrainingRows, train: NDArray[np.intp], test: NDArray[np.intp]) -> tuple[TrainingRows, TrainingRows]:
    """Return the rows of a fold to fit to and to judge by; of a matrix both against the rows to fit to."""
    part, held = rows.take(train), rows.take(test)
    if isinstance(part.points, Points):
        return part, held
    return _columns(part, train), _columns(held, train)


def _columns(rows: TrainingRows, columns: NDArray[np.intp]) -> TrainingRows:
    return replace(rows, points=np.asarray(rows.points)[:, columns])


def _feasible(options: SvmOptions, part: TrainingRows) -> SvmOptions:
    """Return the options for a part of the rows: a nu that all rows allow is brought down to what the part allows.

    The shares of the classes differ from fold to fold by a row, and with them the largest nu.
    """
    largest = largest_nu(part.codes) if len(part.codes) else 0.0
    if options.nu is None or not 0 < largest < options.nu:
        return options
    return replace(options, nu=largest * (1.0 - BELOW_LARGEST))


def _check_nu(options: SvmOptions, rows: TrainingRows) -> None:
    """Refuse a nu that all rows together do not allow, before any fold is fitted."""
    if options.nu is None or rows.classes is None:
        return
    largest = largest_nu(rows.codes)
    if options.nu > largest * (1.0 + 1e-12):
        raise UsageError(
            f"nu = {options.nu:g} is infeasible: the sizes of the classes allow at most {largest:.4g}",
            hint=f"--nu {math.floor(largest * 1000) / 1000:g}, or class weights with --C",
            code="usage.nu",
        )


def largest_nu(codes: NDArray[np.intp]) -> float:
    """Return the largest nu that every pair of classes allows, 2 min(n_i, n_j) / (n_i + n_j) (Chang and Lin 2001)."""
    counts = np.bincount(codes)
    fewest, most = float(counts.min()), float(counts.max())
    return 2.0 * fewest / (fewest + most)


@contextmanager
def _said_of_folds(kernel: Kernel | None) -> Iterator[None]:
    """Say of an error that it came up in a fold, and with which kernel: all rows together may be fine."""
    try:
        yield
    except (UsageError, UndecidedError) as error:
        of = "" if kernel is None else f" with the kernel '{kernel}'"
        raise type(error)(
            f"in a fold of the cross-validation{of}: {error.message}",
            hint=error.hint,
            code=error.code,
            where=error.where,
        ) from error


def held_out_scores(
    rows: TrainingRows, options: SvmOptions, *, C: float, folds: NDArray[np.intp], engine: Engine
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the scores of every row by a machine that has not seen it, shape (n, J): what probabilities are fitted to."""
    alone = LocalEngine(1)

    def work(fold: int) -> tuple[NDArray[np.intp], np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        part, held = _parted(rows, train, test)
        with _said_of_folds(rows.kernel):
            fitted = fit_rows(part, _feasible(options, part), alone, C=C)
        return test, fitted.model.scores(held.points, alone)

    parts = list(engine.map(work, range(int(folds.max()) + 1)))
    scores = np.empty((len(rows), parts[0][1].shape[1]))
    for test, found in parts:
        scores[test] = found
    return scores
