"""The choice of a cost and a bandwidth by cross-validation, in rounds, after which the worse cells are given up.

A first look fits to one fold and judges by the others: small machines, judged by many rows. The better third goes on. Then
each fold is held out in turn, for the better half of the cells so far. All machines of a bandwidth share its matrix, and those of one training part go from cost to cost, each from the one
before. Cells that are given up are told with the score that they had by then.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kerntest.engines.engine import Engine
from kerntest.errors import either, option
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Linear
from kerntest.learning.cross_validation import EQUAL_SCORES, held_out, named, smoothest, telling_of_folds
from kerntest.learning.machines.svm_fit import Machines
from kerntest.learning.scores import Sigmoid, classification_metrics, fit_sigmoid, levelled, root_mean_square
from kerntest.learning.solvers.smoothed import WHOLE_ROWS
from kerntest.matrices.matrix import matrix_of
from kerntest.report.results.learning_record import GridCell, GridSearch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Codes, Kernel
    from kerntest.learning.machines.svm_fit import SvmOptions
    from kerntest.learning.machines.svm_model import SvmModel
    from kerntest.learning.rows.training_rows import TrainingRows

# The relative duality gap of the machines of a grid, where they are certified.
GRID_TOLERANCE = 1e-3
# Of fewer rows every cell is judged in every fold: the half of them says too little, and all take a second. So many cells
# go on in any case.
MANY_ROWS, LEAST_CELLS = 800, 3
# With fewer folds a first look would be no smaller than a fold; a class has at least so many rows in it.
LEAST_FOLDS, LEAST_OF_CLASS = 4, 5
# Rows that the first look judges by.
JUDGED_ROWS = 4000
# Systems of a fit from which on the next cost, a hard one too, starts from it: it saves four fifths there.
HARD = 50
# Bytes of whole matrices that are kept for further rounds.
KEPT_BYTES = 2 * 10**8
# What a cell of a fold takes in units of one of the first look, for the progress.
PIECES = 8
# What cells may be chosen by: in words, and as a field of the metrics.
MEASURES = {
    "accuracy": ("accuracy", "accuracy"),
    "balanced-accuracy": ("balanced accuracy", "balanced_accuracy"),
    "f1": ("macro F1", "macro_f1"),
    "auc": ("ROC AUC", "roc_auc"),
    "log-loss": ("negative log-loss", "log_loss"),
}
TIES = "the best mean over the folds; of equal ones the smallest C, then the largest bandwidth"


class Round(NamedTuple):
    """Rows to fit to and to judge by; costs are multiplied by `share` where few rows stand for all."""

    train: NDArray[np.intp]
    held: NDArray[np.intp]
    share: float = 1.0
    pieces: int = PIECES


class Search:
    """A grid of kernels, by the multiple of their bandwidths, and costs, to be judged in folds of some rows."""

    def __init__(
        self,
        rows: TrainingRows,
        folds: NDArray[np.intp],
        kernels: Mapping[float, Kernel | None],
        costs: Sequence[float],
        options: SvmOptions,
        *,
        select_by: str = "accuracy",
    ) -> None:
        self.rows, self.kernels, self.select_by = rows, kernels, select_by
        self.cells, self.several = list(product(kernels, costs)), len(kernels) * len(costs) > 1
        # Which cell is best does not hang on the last digits of a machine; a score of the options as they are may.
        tolerance = max(options.tolerance, GRID_TOLERANCE) if self.several else options.tolerance
        self.options = replace(options, tolerance=tolerance)
        self.halved = self.several and len(rows) >= MANY_ROWS
        exact = options.nu is not None or options.hard_margin or options.features is not None or rows.kernel is None
        kinds = [kernel is not None and kernel.positive_definite for kernel in kernels.values()]
        # The linear kernel has few columns, by which certified machines are found as quickly.
        linear = isinstance(rows.kernel, Linear)
        plain = options.task == "classify" and options.method == "svm" and not exact
        self.choosing = self.halved and plain and all(kinds) and not linear
        self.rounds = [
            Round(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(int(folds.max()) + 1)
        ]
        self.count = len(self.rounds)
        first = self._first_look()
        if first is not None:
            self.rounds.insert(0, first)
        self._kept: dict[float, Array] = {}

    def _first_look(self) -> Round | None:
        """Return a round that fits to few rows, the first fold; None where there are too few folds, or rows of a class.

        A nu that all rows allow may be too small for few.
        """
        held, train = self.rounds[0][:2]
        enough = self.halved and self.count >= LEAST_FOLDS and self.options.nu is None
        if self.rows.classes is not None:
            sizes = np.bincount(self.rows.codes[train], minlength=len(self.rows.classes.names))
            enough = enough and bool(sizes.min() >= LEAST_OF_CLASS)
        if not enough:
            return None
        few, judged = _thinned(train, WHOLE_ROWS), _thinned(held, JUDGED_ROWS)
        return Round(few, judged, len(held) / len(few), pieces=1)

    def alive(self) -> list[int]:
        """Return how many cells are judged in each round."""
        counts = [len(self.cells)]
        for part in self.rounds[:-1]:
            least = min(LEAST_CELLS, counts[-1]) if self.halved else counts[-1]
            counts.append(max(-(-counts[-1] // (2 if part.share == 1.0 else 3)), least))
        return counts

    def found(self, engine: Engine, progress: Progress | None = None) -> GridSearch:
        """Return the grid with the mean score of each cell, higher ones better, over the folds that it was judged in."""
        multiples, costs = np.array(self.cells).T
        counts, left, done = self.alive(), np.arange(len(self.cells)), 0
        total = sum(part.pieces * count for part, count in zip(self.rounds, counts, strict=True))
        scores, first = np.full((len(self.cells), len(self.rounds)), np.nan), len(self.rounds) - self.count
        # Matrices that are kept are in this process.
        where = engine.here if len(self.rows) <= WHOLE_ROWS else engine
        for place, (part, count) in enumerate(zip(self.rounds, counts, strict=True)):
            if count < len(left):
                # The first look counts until there is a fold.
                means = scores[left, first if place > first else 0 : place].mean(axis=1)
                left = left[np.lexsort([-multiples[left], costs[left], -levelled(means)])[:count]]
            tried = {
                float(multiple): np.sort(left[multiples[left] == multiple]) for multiple in np.unique(multiples[left])
            }
            works = [(multiple, costs[places].tolist(), part) for multiple, places in tried.items()]
            for places, found in zip(tried.values(), where.map(self._scores, works), strict=True):
                scores[places, place] = found
                done += part.pieces * len(places)
                if progress is not None:
                    progress(done, total)
        folds, cells = scores[:, first:], []
        for (multiple, cost), own, looked in zip(self.cells, folds, scores[:, 0].tolist(), strict=True):
            known = own[~np.isnan(own)]
            error = float(known.std(ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else None
            mean = float(known.mean()) if len(known) else looked
            cells.append(GridCell(cost, *named(multiple, self.kernels[multiple]), mean, error, len(known)))
        chosen = int(left[smoothest(-folds[left].mean(axis=1), [-costs[left], multiples[left]])])
        fits = int(np.count_nonzero(~np.isnan(folds)))
        score = "negative RMSE" if self.rows.classes is None else MEASURES[self.select_by][0]
        return GridSearch(score, self.count, TIES, tuple(cells), chosen, cells[chosen].mean, fits)

    def _scores(self, work: tuple[float, list[float], Round]) -> list[float]:
        """Return the scores of some costs, ascending, with one kernel, in one round."""
        multiple, costs, part = work
        rows, alone, results, start = self.rows.with_kernel(self.kernels[multiple]), Engine(1), [], None
        with telling_of_folds(rows.kernel):
            own, held = held_out(rows, part.train, part.held)
            whole = self._entries(multiple, rows, part)
            inner = None if whole is None else whole[0]
            machines = Machines(own, self.options.feasible(own), alone, choosing=self.choosing, inner=inner)
            for cost in costs:
                fit = machines.fit(part.share * cost, start)
                # A certified machine is found as quickly from nothing, but where it has become hard.
                hard = start is not None or fit.iterations > HARD * len(fit.solutions)
                start = fit.solutions if hard else None
                model = fit.model
                if whole is None:
                    found = model.scores(held.points, alone)
                else:
                    found = model.expansion.of(whole[1][:, fit.support])
                results.append(self._score(model, held, found))
        return results

    def _entries(self, multiple: float, rows: TrainingRows, part: Round) -> tuple[Array, Array] | None:
        """Return the matrix of the rows to fit to, and that of those to judge by against them; None where it is not small."""
        kernel, points = rows.kernel, rows.points
        if not self.choosing or len(part.train) > WHOLE_ROWS or kernel is None or not isinstance(points, Points):
            return None
        if len(rows) > WHOLE_ROWS:
            own = points.take(np.concatenate([part.train, part.held]))
            train, held = slice(0, len(part.train)), slice(len(part.train), None)
            matrix = matrix_of(kernel, own)
            return matrix.block(train, train), matrix.block(held, train)
        K = self._kept.get(multiple)
        if K is None:
            K = matrix_of(kernel, points).block(slice(None), slice(None))
            if 8 * len(rows) ** 2 * len(self.kernels) <= KEPT_BYTES:
                self._kept[multiple] = K
        return K.take(part.train, axis=0).take(part.train, axis=1), K.take(part.held, axis=0).take(part.train, axis=1)

    def _score(self, model: SvmModel, held: TrainingRows, found: Array) -> float:
        """Return how well rows are predicted, higher for better."""
        if held.classes is None:
            return -root_mean_square(found[:, 0] - held.targets[:, 0])
        if self.select_by == "accuracy":
            return float(np.mean(model.codes(found) == held.codes))
        given = None
        if self.select_by == "log-loss":
            # Of the probabilities that --probability would give: by sigmoids of scores of rows held out.
            pairs = list(combinations(range(len(held.classes.names)), 2))
            given = replace(model, sigmoids=sigmoids(pairs, held.codes, model.pair_scores(found))).probabilities(found)
        codes, by_class = model.codes(found), model.class_scores(found)
        metrics = classification_metrics(held.codes, codes, by_class, held.classes.names, probabilities=given)
        value = getattr(metrics, MEASURES[self.select_by][1])
        # A fold with one of the classes only has no ranking of both.
        return 0.5 if value is None else -value if self.select_by == "log-loss" else value


def sigmoids(pairs: Sequence[tuple[int, int]], codes: Codes, scores: Array) -> tuple[Sigmoid, ...]:
    """Return what makes probabilities of the scores of pairs of classes, by those of rows that were held out."""
    made = []
    for (i, j), column in zip(pairs, scores.T, strict=True):
        members = (codes == i) | (codes == j)
        # A fold may have no row of two rare classes.
        if not members.any():
            made.append(Sigmoid(-1.0, 0.0))
            continue
        made.append(fit_sigmoid(column[members], codes[members] == j, through_threshold=len(pairs) == 1))
    return tuple(made)


def edge_warnings(search: GridSearch, seed: int = 0) -> list[str]:
    """Return a warning for the cost and for the bandwidth if the best one is the last of the grid, and better than the next.

    The options that it tells judge the same score in the same folds.
    """
    best, found = search.best, []
    measure = next((name for name, (score, _) in MEASURES.items() if score == search.score), None)
    asked = {"cv": search.folds, "task": None if measure else "regress", "select-by": measure, "seed": seed or None}
    same = [option(name, value) for name, value in asked.items() if value not in {None, "accuracy"}]
    means = {(cell.C, cell.multiple): cell.mean for cell in search.cells}
    for place, (name, factor) in enumerate((("cost", 10.0), ("bandwidth", 2.0))):
        values = sorted({key[place] for key in means})
        own = (best.C, best.multiple)
        if len(values) < 2 or own[place] not in {values[0], values[-1]}:
            continue
        largest = own[place] == values[-1]
        inner = values[-2 if largest else 1]
        beside = means[(inner, best.multiple) if name == "cost" else (best.C, inner)]
        if best.mean - beside <= EQUAL_SCORES * abs(best.mean):
            continue
        told = f"the {'largest' if largest else 'smallest'} {name} of the grid is the best"
        beyond = factor if largest else 1.0 / factor
        if name == "cost":
            cell = [option("kernel", str(best.kernel)), option("C", float(f"{best.C * beyond:g}"))]
            told += f": {either(' ', ', ').join([*cell, *same])} judges one beyond"
        elif best.bandwidth is not None:
            cell = [option("bandwidth", float(f"{best.bandwidth * beyond:.4g}")), option("C", best.C)]
            told += f": {either(' ', ', ').join([*cell, *same])} judges one beyond"
        found.append(told)
    return found


def _thinned(rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return evenly spaced ones of some rows, so many at most."""
    return rows[:: -(-len(rows) // most)]
