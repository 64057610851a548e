"""What a reader must know of how a support vector machine was fitted, and of the search that chose its options."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.diagnostics.copies import in_percent
from kerntest.errors import either, listed, option
from kerntest.kernels.algebra import has_bandwidth, smaller_gain
from kerntest.kernels.base import Points
from kerntest.learning.cross_validation import CLASSES_NAMED, EQUAL_SCORES
from kerntest.learning.machines.svm_search import AXES, MEASURES, edges
from kerntest.learning.scores import regression_metrics, told_of_errors
from kerntest.matrices.different import equal_rows
from kerntest.matrices.expansion import Expansion
from kerntest.matrices.matrix import matrix_of
from kerntest.report.summaries.words import number

if TYPE_CHECKING:
    from kerntest.learning.machines.svm_fit import SvmFit
    from kerntest.learning.machines.svm_options import SvmOptions
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.report.results.learning_record import ClassificationMetrics, GridSearch

# A cost that is less than this share of the spread of a target holds the machine back if so many coefficients are at their
# bound: a cost of the spread then raised r2 by 0.01 to 0.15 (150 to 3,000 rows, whatever the noise). One up to the spread
# does where even the rows that are learned from are predicted by no more than such an r2; of noise they are, too.
SMALL_COST, HELD_BACK, HARDLY_LEARNED = 0.1, 0.9, 0.1
# A relative duality gap above this says nothing good of a machine.
USABLE_GAP = 0.1
# A share of support vectors at which a machine has learned the rows by heart.
NEARLY_ALL = 0.9
# If so many of the support vectors are at their bound, it is the bound that makes them many. A kernel that is above this between
# rows, as of ten medians, tells them apart at large costs alone; so many rows tell that.
MOSTLY, TOO_WIDE, ROWS_COMPARED = 0.5, 0.99, 500
# Where different rows are no more than this share of all, any machine may need each of them.
FEW_DIFFERENT = 0.1
# Of fewer rows any machine may need nearly all.
FEWEST_HEART = 50
# A kernel whose largest value at a single row is so many times the usual one sees little but the outermost rows.
TOO_STEEP = 100.0
# So few rows say nothing of how classes are predicted. Classes are unequal if one has such a share of the rows, and a machine
# is little better than that one if it gets no larger share of the others right.
FEWEST_JUDGED, UNEQUAL, LITTLE_BETTER = 20, 0.75, 0.1
# Classes that count alike are told apart by no more than chance up to so many standard errors.
BY_CHANCE = 2.0


def fit_warnings(rows: TrainingRows, fit: SvmFit, search: GridSearch | None, options: SvmOptions) -> list[str]:
    """Return what a reader must know of how a machine was fitted."""
    gap, model = fit.gap, fit.model
    by_pairs = rows.classes is not None and model.method == "svm"
    stopped = "" if fit.converged else ", and SMO stopped before it was reached"
    state = "usable, not exact" if (gap or 0.0) <= USABLE_GAP else f"far from the best; {_easier(rows)}"
    cases = {
        "the kernel is not positive definite: the machine is a stationary point of a problem without a single "
        f"solution{stopped}": by_pairs and gap is None,
        f"the solver stopped at a relative duality gap of {gap or 0.0:.1e}: the machine is {state}": (
            gap is not None and not fit.converged
        ),
        "the perceptron still makes mistakes on the training rows: the classes may not be separable": (
            model.method == "perceptron" and not fit.converged
        ),
    }
    # A cost that holds the machine back is told, and then the columns are not to blame.
    blamed = not fit.units
    of_search = [] if search is None else useless(rows, search, options, blamed) or edge_warnings(search, options.seed)
    of_rows = _learned_by_heart(rows, fit, search) if by_pairs else []
    return [*(text for text, applies in cases.items() if applies), *of_rows, *of_search, *fit.units]


def _learned_by_heart(rows: TrainingRows, fit: SvmFit, search: GridSearch | None) -> list[str]:
    """Return a warning where nearly all rows are support vectors, of numbers, as rows of categories alone often are."""
    n = len(rows)
    # Equal rows of two classes need one another in any machine: rows are counted one by one, too.
    if n < FEWEST_HEART or len(fit.support) < NEARLY_ALL * n or not (rows.encoder is None or rows.encoder.numeric):
        return []
    different = _different(rows, fit)
    if fit.n_support < NEARLY_ALL * different or different <= FEW_DIFFERENT * n:
        return []
    cells = () if search is None else search.cells
    # A narrow kernel needs every row; a small cost or a wide kernel holds rows at their bound. The best of several is not to blame.
    chosen_cost, chosen_kernel = (
        len({key(cell) for cell in cells}) > 1 for key in (attrgetter("C"), attrgetter("multiple"))
    )
    like, bounded = _likeness(rows), fit.n_bounded >= MOSTLY * fit.n_support
    narrow = like is not None and (like * (different - 1) < 1.0 or not bounded)
    causes = {
        "the kernel may be too narrow, or ": narrow and not chosen_kernel,
        "the kernel may be too wide, or ": like is not None and like > TOO_WIDE and bounded and not chosen_kernel,
        "the cost may be too small, or ": bounded and not narrow and not chosen_cost,
    }
    cause = "".join(text for text, applies in causes.items() if applies)
    way_out = "" if len(cells) > 1 else f"; {option('grid', True)} looks for better"
    of = f"{n:,}" if different == n else f"{different:,} different ones of {n:,}"
    little = "the columns say little of the target" if cause else "the columns may say little of the target"
    return [f"{fit.n_support:,} of {of} training rows are support vectors: {cause}{little}{way_out}"]


def _likeness(rows: TrainingRows) -> float | None:
    """Return the value of the kernel between a row and others, in the median of some rows, where 1 is that of a row with itself.

    None of kernels without a bandwidth, which are not narrow.
    """
    kernel, points = rows.kernel, rows.points
    if kernel is None or not isinstance(points, Points) or not (kernel.positive_definite and has_bandwidth(kernel)):
        return None
    # Copies of a row are no others.
    found = equal_rows([points.numeric, points.codes])
    different = np.arange(len(rows)) if found is None else found[0]
    some = different[np.linspace(0, len(different) - 1, min(len(different), ROWS_COMPARED)).astype(np.intp)]
    K = matrix_of(kernel, points.take(some)).block(slice(None), slice(None))
    own = np.diag(K)
    return float(np.median((K.sum(axis=1) - own) / own)) / (len(own) - 1)


def _different(rows: TrainingRows, fit: SvmFit) -> int:
    """Return how many different rows there are, as a machine counts those that it keeps."""
    expansion, points = fit.model.expansion, rows.points
    if not isinstance(expansion, Expansion) or not isinstance(points, Points):
        return len(rows.merged()[0])
    owners = [rows.codes.reshape(-1, 1)] if expansion.owners else []
    found = equal_rows([points.numeric, points.codes, *owners])
    return len(rows) if found is None else len(found[0])


def told_of_units(rows: TrainingRows, fit: SvmFit, options: SvmOptions) -> list[str]:
    """Return a warning about a cost or an epsilon that are out of proportion to the spread of what is to be predicted."""
    if options.task != "regress" or (fit.search is not None and len(fit.search.cells) > 1):
        return []
    name, spread, bounded, C = rows.names[0], float(rows.targets.std()), fit.n_bounded, options.C
    units = f"the spread of {name!r} (standard deviation {spread:.4g}), in whose units it is"
    if options.epsilon >= spread:
        told = "every row is predicted as the same number: " if not bounded and not fit.n_support else ""
        better = option("epsilon", float(f"{spread / 10:.1g}"))
        return [
            f"{told}epsilon = {options.epsilon:g} is large beside {units}: errors up to it cost nothing; try {better}"
        ]
    if spread <= C or bounded < HELD_BACK * fit.n_support:
        return []
    held = f"{bounded:,} of {fit.n_support:,} different support vectors are at their bound"
    grid = option("grid", True)
    if SMALL_COST * spread > C:
        better = f"{grid} chooses it, or try {option('C', float(f'{spread:.1g}'))}"
        return [f"C = {C:g} is small beside {units}: {held}; {better}"]
    r2 = regression_metrics(rows.targets[:, 0], fit.model.scores(rows.points, options.engine)[:, 0]).r2
    if r2 is None or r2 > HARDLY_LEARNED:
        return []
    # More cost learns more of these rows, be it noise.
    learned = f"the rows that are learned from are predicted hardly better than by their mean (r2 = {number(r2)})"
    told = f"C = {C:g}, less than {units}, holds the machine back: {held}, and {learned}"
    return [f"{told}; {grid} looks for better, or the columns say little of {name!r}"]


def useless(rows: TrainingRows, search: GridSearch, options: SvmOptions, blamed: bool) -> list[str]:
    """Return a warning where no cell of a grid, or the only one, is better than the largest class, or the mean, for every row.

    Its edges say nothing then. Of a mean it is told where the columns are `blamed`.
    """
    if rows.classes is None and blamed:
        return told_of_errors(rows.names[0], search.r2, f"rows held out in {search.folds} folds")
    single = len(search.cells) == 1
    if rows.classes is None or search.score != MEASURES["accuracy"] or (single and options.weights is not None):
        return []
    counts = np.bincount(rows.codes)
    share, largest = float(counts.max()) / len(rows), rows.classes.names[int(counts.argmax())]
    # Folds of unequal sizes make a row's difference.
    if search.mean > share + 1.0 / len(rows):
        return []
    which = "over the folds the machine is right no" if single else "no cell of the grid is right"
    by = " by more than one row" if search.mean > share * (1.0 + EQUAL_SCORES) else ""
    told = f"{which} more often than {largest!r} for every row ({in_percent(share)}){by}"
    if options.weights is not None:
        told += f", and class weights cost accuracy: {option('select-by', 'balanced-accuracy')} chooses by all classes alike"
    return [told]


def _easier(rows: TrainingRows) -> str:
    """Return what makes machines easier to find."""
    if rows.kernel is not None and isinstance(rows.points, Points):
        values = rows.kernel.diagonal(rows.points)
        if (usual := float(np.median(values))) * TOO_STEEP < (largest := float(values.max())):
            told = f"the kernel is {usual:.0e} at the usual row and {largest:.0e} at the outermost"
            return f"{told}: {smaller_gain(len(rows.columns))}"
    return f"a smaller {option('C')} is easier to reach"


def class_warnings(metrics: ClassificationMetrics, options: SvmOptions) -> list[str]:
    """Return what is to know of how classes are predicted: one alone, no better than by one or by chance, or not shown."""
    warnings, predicted = list[str](), [one.name for one in metrics.classes if one.precision is not None]
    largest = max(metrics.classes, key=lambda one: one.support)
    share, way_out = largest.support / metrics.n, ""
    uneven = options.method == "svm" and options.nu is None and options.weights is None and share >= UNEQUAL
    way_out = f"; {option('class-weight', 'balanced')} makes the smaller classes count" if uneven else way_out
    if absent := [repr(one.name) for one in metrics.classes if not one.support]:
        which = listed(absent, CLASSES_NAMED)
        warnings.append(f"no test row has class {which}: they do not show how it is predicted")
    there = [(one.recall, one.support) for one in metrics.classes if one.support and one.recall is not None]
    error = math.sqrt(sum(recall * (1.0 - recall) / support for recall, support in there)) / len(there)
    # Rows of one class do not show that others are forgotten.
    if metrics.n < FEWEST_JUDGED or share == 1.0:
        pass
    elif len(predicted) == 1:
        warnings.append(f"every row is predicted as {predicted[0]!r}{way_out}")
    elif options.weights is None and metrics.accuracy - share <= LITTLE_BETTER * (1.0 - share) * uneven:
        warnings.append(f"{largest.name!r} for every row would be right as often, or nearly so{way_out}")
    elif options.weights is not None and metrics.balanced_accuracy - 1.0 / len(there) <= BY_CHANCE * error:
        told = f"balanced {in_percent(metrics.balanced_accuracy)} of them right, +- {in_percent(error)}"
        warnings.append(f"the classes are told apart no better than by chance ({told})")
    return warnings


def edge_warnings(search: GridSearch, seed: int = 0) -> list[str]:
    """Return a warning for the cost and for the bandwidth if the best one is the last of the grid, and better than the next.

    The options that it tells judge the same score in the same folds.
    """
    best, found = search.best, []
    measure = next((name for name, score in MEASURES.items() if score == search.score), None)
    asked = {"cv": search.folds, "task": None if measure else "regress", "select-by": measure, "seed": seed or None}
    same = [option(name, value) for name, value in asked.items() if value not in {None, "accuracy"}]
    means = {(cell.multiple, cell.C): cell.mean for cell in search.cells}
    for axis, largest in edges(means, (best.multiple, best.C)):
        name, factor = AXES[axis][:2]
        told = f"the {'largest' if largest else 'smallest'} {name} of the grid is the best"
        beyond = factor if largest else 1.0 / factor
        if name == "cost":
            # Four digits of a bandwidth say as much.
            kernel = str(best.kernel)
            if best.bandwidth is not None:
                kernel = kernel.replace(repr(best.bandwidth), f"{best.bandwidth:.4g}")
            cell = [option("kernel", kernel), option("C", float(f"{best.C * beyond:g}"))]
            told += f": {either(' ', ', ').join([*cell, *same])} judges one beyond"
        elif best.bandwidth is not None:
            cell = [option("bandwidth", float(f"{best.bandwidth * beyond:.4g}")), option("C", best.C)]
            told += f": {either(' ', ', ').join([*cell, *same])} judges one beyond"
        found.append(told)
    return found
