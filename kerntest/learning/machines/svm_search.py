"""The choice of a cost and a bandwidth by cross-validation, in rounds, after which the worse cells are given up.

A first look fits to one fold and judges by the others: small machines, judged by many rows. The better third goes on. Then
each fold is held out in turn, for the better half of the cells so far. Those with the best scores of the cells that were given up are
judged in the other folds too where these are above all that are left. All machines of a bandwidth share its matrix, and those
of one training part go from cost to cost, each from the one before. Cells that are given up are told with the score that they
had by then.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, groupby, product
from operator import itemgetter
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from kerntest.engines.engine import Engine
from kerntest.errors import option
from kerntest.kernels.base import Points
from kerntest.kernels.elementary import Linear
from kerntest.learning.cross_validation import EQUAL_SCORES, held_out, named, smoothest, telling_of_folds
from kerntest.learning.machines.baselines import largest_class
from kerntest.learning.machines.svm_fit import Machines
from kerntest.learning.scores import (
    Sigmoid,
    classification_metrics,
    error_of_score,
    explained,
    fit_sigmoid,
    levelled,
    log_losses,
    placements,
    root_mean_square,
)
from kerntest.learning.solvers.smoothed import WHOLE_ROWS
from kerntest.matrices.matrix import matrix_of
from kerntest.report.results.learning_record import SCORES, Baseline, GridCell, GridSearch
from kerntest.report.summaries.words import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Codes, Kernel
    from kerntest.learning.machines.svm_model import SvmModel
    from kerntest.learning.machines.svm_options import SvmOptions
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.report.results.learning_record import ClassificationMetrics

# The relative duality gap of the machines of a grid, where they are certified.
GRID_TOLERANCE = 1e-3
# Of fewer rows every cell is judged in every fold: the half of them says too little, and all take a second. So many cells
# go on in any case.
MANY_ROWS, LEAST_CELLS = 800, 3
# What rows must be worth, all classes alike, for cells to be given up by some folds, and by a first look: of ten sets of 1,000
# rows with 30 in a class, which are worth 116, up to five chose a cell more than a standard error below the best after a
# first look, and none after a fold; with 20 of them two did after a fold. With 100 in it, worth 360, none did in either way.
ENOUGH_TO_GIVE_UP, ENOUGH_TO_LOOK = 100.0, 250.0
# With fewer folds a first look would be no smaller than a fold; a class has at least so many rows in it.
LEAST_FOLDS, LEAST_OF_CLASS = 4, 5
# Rows that the first look judges by.
JUDGED_ROWS = 4000
# Systems of a fit from which on the next cost, a hard one too, starts from it: it saves four fifths there.
HARD = 50
# The axes of a grid: in words, the step beyond an edge, and how far it goes at most; and so many steps in all.
AXES = ("bandwidth", 2.0, 2.0**-5, 2.0**5), ("cost", 10.0, 1e-4, 1e5)
MOST_BEYOND = 4
# What no clock tells from nothing.
TINY_SECONDS = 1e-9
# Bytes of whole matrices that are kept for further rounds.
KEPT_BYTES = 2 * 10**8
# What a cell of a fold takes in units of one of the first look, for the progress.
PIECES = 8
# What cells may be chosen by, in words.
MEASURES = dict(zip(("accuracy", "balanced-accuracy", "f1", "auc", "log-loss"), SCORES, strict=True))
TIES = "the best mean over the folds; of equal ones the smallest C, then the largest bandwidth"


# A multiple of the bandwidths, and a cost.
Cell: TypeAlias = "tuple[float, float]"


class Round(NamedTuple):
    """Rows to fit to and to judge by; costs are multiplied by `share` where few rows stand for all."""

    train: NDArray[np.intp]
    held: NDArray[np.intp]
    share: float = 1.0
    pieces: int = PIECES


class Search:
    """A grid of kernels, by the multiples of their bandwidths, and costs, to be judged in folds of some rows.

    `kernel_at` gives the kernel of a multiple; one that is `widening` goes beyond an edge on which the best cell is.
    """

    def __init__(
        self,
        rows: TrainingRows,
        folds: NDArray[np.intp],
        kernel_at: Callable[[float], Kernel | None],
        grid: tuple[Sequence[float], Sequence[float]],
        options: SvmOptions,
        *,
        select_by: str = "accuracy",
        widening: bool = False,
    ) -> None:
        self.rows, self.kernel_at, self.select_by, self.widening = rows, kernel_at, select_by, widening
        self.multiples, self.costs = map(list, grid)
        several = len(self.cells) > 1
        # Which cell is best does not hang on the last digits of a machine; a score of the options as they are may.
        tolerance = max(options.tolerance, GRID_TOLERANCE) if several else options.tolerance
        self.options = replace(options, tolerance=tolerance)
        many, worth = several and len(rows) >= MANY_ROWS, _worth(rows)
        self.choosing, self.halved = many and self._plain(), many and worth >= ENOUGH_TO_GIVE_UP
        self.rounds = [
            Round(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(int(folds.max()) + 1)
        ]
        self.count = len(self.rounds)
        if self.halved and worth >= ENOUGH_TO_LOOK and (first := self._first_look()) is not None:
            self.rounds.insert(0, first)
        self.first = len(self.rounds) - self.count
        # The score of every cell in every round, and the seconds of a thread that it took; NaN where it was not judged.
        self.scores: dict[Cell, Array] = {}
        self.seconds: dict[Cell, Array] = {}
        # What was found of the rows of each fold, for the error of the score: every row is predicted once.
        self.of_rows: dict[Cell, dict[int, Array]] = {}
        self.done = self.total = 0
        self._kernels: dict[float, Any] = {}
        self._kept: dict[float, Array] = {}

    @property
    def cells(self) -> list[Cell]:
        """The cells of the grid, costs within multiples."""
        return list(product(self.multiples, self.costs))

    def _plain(self) -> bool:
        """Say whether machines to choose by are those of classes and costs, on a matrix that any cost allows."""
        options, kernel = self.options, self.rows.kernel
        exact = options.nu is not None or options.hard_margin or options.features is not None
        plain = options.task == "classify" and options.method == "svm" and not exact
        # The linear kernel has few columns, by which certified machines are found as quickly.
        return plain and kernel is not None and kernel.positive_definite and not isinstance(kernel, Linear)

    def _first_look(self) -> Round | None:
        """Return a round that fits to few rows, the first fold; None where there are too few folds, or rows of a class.

        A nu that all rows allow may be too small for few.
        """
        held, train = self.rounds[0][:2]
        few, judged = _thinned(train, WHOLE_ROWS), _thinned(held, JUDGED_ROWS)
        if self.rows.classes is not None:
            sizes = np.bincount(self.rows.codes[few], minlength=len(self.rows.classes.names))
            if sizes.min() < LEAST_OF_CLASS:
                return None
        if self.count < LEAST_FOLDS or self.options.nu is not None:
            return None
        return Round(few, judged, len(held) / len(few), pieces=1)

    def alive(self, count: int) -> list[int]:
        """Return how many of so many cells are judged in each round."""
        counts = [count]
        for part in self.rounds[:-1]:
            least = min(LEAST_CELLS, counts[-1]) if self.halved else counts[-1]
            counts.append(max(-(-counts[-1] // (2 if part.share == 1.0 else 3)), least))
        return counts

    def judged(self) -> tuple[int, int]:
        """Return how many cells are judged over all rounds, within the grid and if it goes beyond its edges as far as may be."""
        counts, longest = self.alive(len(self.cells)), 1 + max(len(self.multiples), len(self.costs))
        wider = sum(self.alive(counts[-1] + longest)) - counts[-1] * len(counts)
        again = LEAST_CELLS * self.count * self.halved
        return sum(counts), sum(counts) + again + MOST_BEYOND * (wider + again) * self.widening

    def found(self, engine: Engine, progress: Progress | None = None) -> GridSearch:
        """Return the grid with the mean score of each cell, higher ones better, over the folds that it was judged in."""
        # Matrices that are kept are in this process.
        told = engine.here if self.choosing else engine, progress
        beyond = list[str]()
        left = self._race(self.cells, *told)
        self._judge_better(*told)
        while self.widening and len(beyond) < MOST_BEYOND and (new := self._widened(self._best(), beyond)):
            left = self._race([*left, *new], *told)
            self._judge_better(*told)
        every, cells, chosen = self.cells, list[GridCell](), self._best()
        for cell in every:
            (multiple, cost), count = cell, len(self.of_rows.get(cell, ()))
            mean, error = self._mean(cell), self._error(cell) if count > 1 else None
            cells.append(GridCell(cost, *named(multiple, self._kernel(multiple)), mean, error, count))
        place = every.index(chosen)
        fits = int(sum(np.count_nonzero(~np.isnan(scores[self.first :])) for scores in self.scores.values()))
        score = "negative RMSE" if self.rows.classes is None else MEASURES[self.select_by]
        found = score, self.count, TIES, tuple(cells), place, cells[place].mean, self._explained(chosen), fits
        return GridSearch(*found, tuple(beyond), self._seconds_saved())

    def _mean(self, cell: Cell) -> float:
        """Return the mean score of a cell over its folds, or else that of its first look."""
        own = self.scores[cell][self.first :]
        known = own[~np.isnan(own)]
        return float(known.mean() if len(known) else self.scores[cell][0])

    def _error(self, cell: Cell) -> float | None:
        """Return the standard error of the score of a cell over the rows that it was judged by: folds, even in classes, hide most of it."""
        found, rows = self.of_rows[cell], self.rows
        held = np.concatenate([self.rounds[place].held for place in found])
        clusters = None if rows.clusters is None else rows.clusters[held]
        score, true = (None, None) if rows.classes is None else (SCORES[MEASURES[self.select_by]], rows.codes[held])
        return error_of_score(score, np.concatenate(list(found.values())), true, clusters)

    def _explained(self, cell: Cell) -> float | None:
        """Return r2 of the rows of all folds together, each predicted by the machine that has not seen it."""
        if self.rows.classes is not None:
            return None
        errors = np.concatenate(list(self.of_rows[cell].values()))
        return explained(root_mean_square(errors), self.rows.targets[:, 0])

    def _race(self, left: list[Cell], engine: Engine, progress: Progress | None) -> list[Cell]:
        """Return the cells that are left of some when all but the better ones have been given up, round by round."""
        for cell in left:
            for record in (self.scores, self.seconds):
                record.setdefault(cell, np.full(len(self.rounds), np.nan))
        counts = self.alive(len(left))
        known = [sum(not np.isnan(self.scores[cell][place]) for cell in left) for place in range(len(self.rounds))]
        self.total = self.done + sum(
            part.pieces * max(count - there, 0) for part, count, there in zip(self.rounds, counts, known, strict=True)
        )
        for place, count in enumerate(counts):
            if count < len(left):
                # The first look counts until there is a fold.
                seen = slice(self.first if place > self.first else 0, place)
                means = levelled(np.array([self.scores[cell][seen].mean() for cell in left]))
                ranked = sorted(
                    zip(left, means.tolist(), strict=True), key=lambda one: (-one[1], one[0][1], -one[0][0])
                )
                left = [cell for cell, _ in ranked[:count]]
            self._judge(left, place, engine, progress)
        return left

    def _judge_better(self, engine: Engine, progress: Progress | None) -> None:
        """Judge in every fold the few best of the cells that were given up with scores above the best: others fell behind since."""
        best = self._mean(self._best())
        means = {cell: mean for cell in self.cells if (mean := self._mean(cell)) > best}
        better = sorted(means, key=lambda one: -means[one])[:LEAST_CELLS]
        self.total = self.done + PIECES * int(sum(np.isnan(self.scores[cell][self.first :]).sum() for cell in better))
        for place in range(self.first, len(self.rounds)):
            self._judge(better, place, engine, progress)

    def _judge(self, cells: list[Cell], place: int, engine: Engine, progress: Progress | None) -> None:
        """Judge those of some cells that were not yet, in a round: all costs of a kernel as one piece of work."""
        part, new = self.rounds[place], sorted(cell for cell in cells if np.isnan(self.scores[cell][place]))
        tried = {multiple: [cost for _, cost in own] for multiple, own in groupby(new, key=itemgetter(0))}
        works = [(multiple, costs, part) for multiple, costs in tried.items()]
        for (multiple, costs, _), found in zip(works, engine.map(self._scores, works), strict=True):
            for cost, (score, seconds, of_rows) in zip(costs, found, strict=True):
                self.scores[multiple, cost][place], self.seconds[multiple, cost][place] = score, seconds
                if place >= self.first:
                    self.of_rows.setdefault((multiple, cost), {})[place] = of_rows
            self.done += part.pieces * len(costs)
            if progress is not None:
                progress(self.done, max(self.total, self.done))

    def _best(self) -> Cell:
        """Return the best of the cells that were judged in every fold."""
        whole = {cell: float(own[self.first :].mean()) for cell, own in self.scores.items()}
        left = [cell for cell, mean in whole.items() if not math.isnan(mean)]
        multiples, costs = np.array(left).T
        return left[smoothest(-np.array([whole[cell] for cell in left]), [-costs, multiples])]

    def _widened(self, best: Cell, beyond: list[str]) -> list[Cell]:
        """Return the new cells of a grid beyond the edges on which the best cell is, if it is on any and better than inside."""
        before = set(self.cells)
        means = {cell: self._mean(cell) for cell in before}
        for axis, largest in edges(means, best):
            values, (name, factor, least, most) = (self.multiples, self.costs)[axis], AXES[axis]
            value = float(f"{(values[-1] * factor if largest else values[0] / factor):.12g}")
            if least <= value <= most:
                values.append(value)
                values.sort()
                beyond.append(f"{'largest' if largest else 'smallest'} {name}")
        return [cell for cell in self.cells if cell not in before]

    def _seconds_saved(self) -> float:
        """Return about how many seconds of a thread the fits would have taken that were not made.

        A cell takes as long in every fold; one that was only looked at, in proportion to that.
        """
        seconds = np.array([self.seconds[cell] for cell in self.scores])
        folds = seconds[:, self.first :]
        made = ~np.isnan(folds)
        judged = made.any(axis=1)
        each = np.full(len(folds), np.nan)
        each[judged] = np.nansum(folds[judged], axis=1) / made[judged].sum(axis=1)
        if not judged.all():
            each[~judged] = seconds[~judged, 0] * (each[judged].sum() / max(seconds[judged, 0].sum(), TINY_SECONDS))
        return float((each * (~made).sum(axis=1)).sum())

    def _kernel(self, multiple: float) -> Any:
        """Return the kernel of a multiple of the bandwidths, made once."""
        if multiple not in self._kernels:
            self._kernels[multiple] = self.kernel_at(multiple)
        return self._kernels[multiple]

    def _scores(self, work: tuple[float, list[float], Round]) -> list[tuple[float, float, Array]]:
        """Return the scores of some costs, ascending, with one kernel, in one round, the seconds that they took, and what was found of rows."""
        multiple, costs, part = work
        rows, alone, results, start = self.rows.with_kernel(self._kernel(multiple)), Engine(1), [], None
        began = thread_time()
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
                    found = model.expansion.of(whole[1][:, fit.standing])
                results.append(self._judged(model, held, found))
        seconds = (thread_time() - began) / len(costs)
        return [(score, seconds, of_rows) for score, of_rows in results]

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
            if 8 * len(rows) ** 2 * len(self.multiples) <= KEPT_BYTES:
                self._kept[multiple] = K
        return K.take(part.train, axis=0).take(part.train, axis=1), K.take(part.held, axis=0).take(part.train, axis=1)

    def _judged(self, model: SvmModel, held: TrainingRows, found: Array) -> tuple[float, Array]:
        """Return how well rows are predicted, higher for better, and what the error of that is found from, as `error_of_score`."""
        if held.classes is None:
            errors = np.abs(found[:, 0] - held.targets[:, 0])
            return -root_mean_square(errors), errors
        codes, names = model.codes(found), held.classes.names
        if self.select_by == "accuracy":
            return float(np.mean(codes == held.codes)), codes
        if self.select_by == "log-loss":
            # Of the probabilities that --probability would give: by sigmoids of scores of rows held out.
            pairs, weighted = list(combinations(range(len(names)), 2)), self.options.weights is not None
            made = sigmoids(pairs, held.codes, model.pair_scores(found), weighted=weighted)
            losses = log_losses(held.codes, replace(model, sigmoids=made).probabilities(found))
            return -float(losses.mean()), losses
        by_class = model.class_scores(found)
        score = _score_of(classification_metrics(held.codes, codes, by_class, names), self.select_by)
        return score, placements(held.codes, by_class, len(names)) if self.select_by == "auc" else codes


def _score_of(metrics: ClassificationMetrics, select_by: str) -> float:
    """Return how well classes are predicted, higher for better."""
    value: float | None = getattr(metrics, SCORES[MEASURES[select_by]])
    # A fold with one of the classes only has no ranking of both.
    return 0.5 if value is None else -value if select_by == "log-loss" else value


def baseline_of(parts: Sequence[tuple[TrainingRows, TrainingRows]], options: SvmOptions, select_by: str) -> Baseline:
    """Return what predicts the second rows of each part better from the first: the nearest mean, or the largest class."""
    found = {"largest class": [largest_class(own, seen) for own, seen in parts]}
    # It has no probabilities.
    if options.features is None and options.method != "mean" and select_by != "log-loss":
        found["nearest mean"] = [_nearest_mean(own, seen, options) for own, seen in parts]
    every = [
        (float(np.mean([_score_of(one, select_by) for one in metrics])), name, metrics)
        for name, metrics in found.items()
    ]
    score, method, best = max(every, key=itemgetter(0, 1))
    accuracy, balanced = (
        float(np.mean([getattr(one, name) for one in best])) for name in ("accuracy", "balanced_accuracy")
    )
    return Baseline(method, accuracy, balanced, -score if select_by == "log-loss" else score)


def told_of_baseline(
    baseline: Baseline | None,
    search: GridSearch | None,
    metrics: Any,
    select_by: str,
    *,
    n: int,
    grid: bool,
    weighted: bool,
) -> list[str]:
    """Return a warning where the nearest mean has a better score of n rows, by more than the standard error of a share.

    Where classes are `weighted` not all mistakes count as much, and accuracy says nothing of which method is better.
    """
    if baseline is None or baseline.method != "nearest mean" or (weighted and select_by == "accuracy"):
        return []
    own, other = search.best.mean if search is not None else _score_of(metrics, select_by), baseline.score
    if other - own <= math.sqrt(other * (1.0 - other) / n):
        return []
    without = f" without {option('class-weight')}" if weighted else ""
    way_out = f"{option('method', 'mean')}{without} takes it"
    if not grid:
        way_out = f"{option('grid', True)} looks for better options"
    scores = f"{MEASURES[select_by]} {percent(other)} in place of {percent(own)}"
    return [f"the nearest mean with the same kernel predicts better: {scores}; {way_out}"]


def _nearest_mean(own: TrainingRows, seen: TrainingRows, options: SvmOptions) -> ClassificationMetrics:
    """Return how well rows are predicted by the nearest mean of the classes of others."""
    names = () if own.classes is None else own.classes.names
    machines = Machines(own, options, options.engine, "mean")
    # Its own rows by the entries that make its intercepts.
    found = machines.mean_scores() if seen is own else machines.fit(1.0).model.scores(seen.points, options.engine)
    by_class = found[:, 1] - found[:, 0] if len(names) == 2 else found
    return classification_metrics(seen.codes, found.argmax(axis=1), by_class, names)


def sigmoids(pairs: Sequence[tuple[int, int]], codes: Codes, scores: Array, *, weighted: bool) -> tuple[Sigmoid, ...]:
    """Return what makes probabilities of the scores of pairs of classes, by those of rows that were held out.

    Where costs of the classes are weighted, scores of 0 are no even chances.
    """
    made, threshold = [], len(pairs) == 1 and not weighted
    for (i, j), column in zip(pairs, scores.T, strict=True):
        members = (codes == i) | (codes == j)
        # A fold may have no row of two rare classes.
        if not members.any():
            made.append(Sigmoid(-1.0, 0.0))
            continue
        made.append(fit_sigmoid(column[members], codes[members] == j, through_threshold=threshold))
    return tuple(made)


def edges(means: Mapping[Cell, float], best: Cell) -> Iterator[tuple[int, bool]]:
    """Yield the axis, 0 for multiples and 1 for costs, and whether it is its largest value, of each edge that the best cell is on.

    It must be better than the cell beside it.
    """
    for axis in (1, 0):
        values = sorted({cell[axis] for cell in means})
        if len(values) < 2 or best[axis] not in {values[0], values[-1]}:
            continue
        largest = best[axis] == values[-1]
        inner = values[-2 if largest else 1]
        beside = means[(inner, best[1]) if axis == 0 else (best[0], inner)]
        if means[best] - beside > EQUAL_SCORES * abs(means[best]):
            yield axis, largest


def _worth(rows: TrainingRows) -> float:
    """Return how many rows of equal classes say as much of the mean over the k classes: k^2 / sum_c 1/n_c."""
    if rows.classes is None:
        return float(len(rows))
    sizes = np.bincount(rows.codes, minlength=len(rows.classes.names))
    return float(len(sizes) ** 2 / np.sum(1.0 / np.maximum(sizes, 1)))


def _thinned(rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return evenly spaced ones of some rows, so many at most."""
    return rows[:: -(-len(rows) // most)]
