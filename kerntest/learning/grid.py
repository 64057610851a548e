"""Choosing the cost and the bandwidth by cross-validation inside the training part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.engines.local import LocalEngine
from kerntest.errors import UsageError
from kerntest.kernels.base import Points
from kerntest.learning.kernel_choice import at_multiple
from kerntest.learning.solvers.matrices import matrix_of
from kerntest.learning.svm_fit import fit_rows
from kerntest.report.svm_record import GridCell, GridSearch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Kernel
    from kerntest.learning.kernel_choice import ChosenKernel
    from kerntest.learning.machines import Machine
    from kerntest.learning.svm_fit import Rows
    from kerntest.learning.svm_options import SvmOptions

# Costs, and bandwidths as multiples of the median.
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
# Relative duality gap of the machines of a grid.
GRID_TOLERANCE = 1e-3
TIES = "the best mean over the folds; of equal ones the smallest C, then the largest bandwidth"


@dataclass(frozen=True, slots=True)
class _Cell:
    """One bandwidth in one fold: every cost is fitted there, one after another."""

    multiple: float
    fold: int


def search(
    rows: Rows,
    chosen: ChosenKernel | None,
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
    rows : Rows
        The training part.
    chosen : ChosenKernel or None
        None for a precomputed matrix.
    options : SvmOptions
    folds : ndarray of int, shape (n,)
        Fold of each row.
    engine : Engine
    whole_grid : bool
        Whether to try all costs and bandwidths; otherwise the cross-validation of the options as they are.
    progress : callable, optional

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
    count = int(folds.max()) + 1
    costs = COSTS if whole_grid and options.nu is None and options.method == "svm" else (options.C,)
    several = whole_grid and chosen is not None and chosen.free.free
    multiples: Sequence[float] = MULTIPLES if several else (1.0,)
    kernels = _kernels(rows, chosen, multiples if several else None, options.seed)
    # Which cell is best does not hang on the last digits of a machine.
    rough = replace(options, tolerance=max(options.tolerance, GRID_TOLERANCE))
    cells = [_Cell(multiple, fold) for multiple in multiples for fold in range(count)]
    alone = LocalEngine(1)

    def work(cell: _Cell) -> list[float]:
        train, test = np.flatnonzero(folds != cell.fold), np.flatnonzero(folds == cell.fold)
        return _scores(rows, train, test, kernels[cell.multiple], costs, options=rough, engine=alone)

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
    best = max(found, key=lambda cell: (round(cell.mean, 12), -cell.C, cell.multiple))
    score = "accuracy" if options.task == "classify" else "negative RMSE"
    result = GridSearch(score, count, TIES, tuple(found), found.index(best))
    return result, best.C, kernels[best.multiple]


def _kernels(
    rows: Rows, chosen: ChosenKernel | None, multiples: Sequence[float] | None, seed: int
) -> dict[float, Kernel | None]:
    """Return the kernel at each multiple of the median bandwidth."""
    if chosen is None or multiples is None or not isinstance(rows.points, Points):
        return {1.0: None if chosen is None else chosen.kernel}
    points = rows.points
    return {multiple: at_multiple(chosen, multiple, points, seed) for multiple in multiples}


def _scores(
    rows: Rows,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    kernel: Kernel | None,
    costs: Sequence[float],
    *,
    options: SvmOptions,
    engine: Engine,
) -> list[float]:
    """Return the score on one fold for every cost."""
    part, held = rows.take(train), rows.take(test)
    if not isinstance(part.points, Points):
        # Rows of a matrix: training rows against training rows, test rows against training rows.
        part, held = _columns(part, train), _columns(held, train)
    matrix = None
    if isinstance(part.points, Points) and kernel is not None and options.features is None:
        matrix = matrix_of(kernel, part.points)
    results = []
    start: tuple[Machine, ...] | None = None
    for cost in costs:
        fitted = fit_rows(part, kernel, options, engine, C=cost, matrix=matrix, start=start)
        # From a smaller cost to the next a start saves half the work, but not where the matrix has low rank.
        warm = fitted.machines and not any("factor" in one.solution.method for one in fitted.machines)
        start = fitted.machines if warm else None
        scores = fitted.model.scores(held.points, engine)
        if options.task == "classify":
            results.append(float(np.mean(fitted.model.codes(scores) == held.codes)))
        else:
            truth = np.zeros(len(test)) if held.numbers is None else held.numbers
            results.append(-float(np.sqrt(np.mean((scores[:, 0] - truth) ** 2))))
    return results


def _columns(rows: Rows, columns: NDArray[np.intp]) -> Rows:
    return replace(rows, points=np.asarray(rows.points)[:, columns])


def held_out_scores(
    rows: Rows, kernel: Kernel | None, options: SvmOptions, *, C: float, folds: NDArray[np.intp], engine: Engine
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the scores of every row by a machine that has not seen it, shape (n, J): what probabilities are fitted to."""
    alone = LocalEngine(1)

    def work(fold: int) -> tuple[NDArray[np.intp], np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        part, held = rows.take(train), rows.take(test)
        if not isinstance(part.points, Points):
            part, held = _columns(part, train), _columns(held, train)
        fitted = fit_rows(part, kernel, options, alone, C=C)
        return test, fitted.model.scores(held.points, alone)

    parts = list(engine.map(work, range(int(folds.max()) + 1)))
    scores = np.empty((len(rows), parts[0][1].shape[1]))
    for test, found in parts:
        scores[test] = found
    return scores
