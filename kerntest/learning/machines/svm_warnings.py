"""What a reader must know of how a support vector machine was fitted, and of the search that chose its options."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.diagnostics.copies import in_percent
from kerntest.errors import either, listed, option
from kerntest.kernels.algebra import smaller_gain
from kerntest.kernels.base import Points
from kerntest.learning.cross_validation import CLASSES_NAMED
from kerntest.learning.machines.svm_search import AXES, MEASURES, edges
from kerntest.learning.scores import told_of_errors

if TYPE_CHECKING:
    from kerntest.learning.machines.svm_fit import SvmFit
    from kerntest.learning.machines.svm_options import SvmOptions
    from kerntest.learning.rows.training_rows import TrainingRows
    from kerntest.report.results.learning_record import ClassificationMetrics, GridSearch

# A relative duality gap above this says nothing good of a machine.
USABLE_GAP = 0.1
# A share of support vectors at which a machine has learned the rows by heart.
NEARLY_ALL = 0.9
# Where different rows are no more than this share of all, any machine may need each of them.
FEW_DIFFERENT = 0.1
# A kernel whose largest value at a single row is so many times the usual one sees little but the outermost rows.
TOO_STEEP = 100.0
# So few rows say nothing of how classes are predicted. Classes are unequal if one has such a share of the rows, and a machine
# is little better than that one if it gets no larger share of the others right.
FEWEST_JUDGED, UNEQUAL, LITTLE_BETTER = 20, 0.75, 0.1
# Classes that count alike are told apart by no more than chance up to so many standard errors.
BY_CHANCE = 2.0


def fit_warnings(rows: TrainingRows, fit: SvmFit, search: GridSearch | None, options: SvmOptions) -> list[str]:
    """Return what a reader must know of how a machine was fitted."""
    gap, n, support, model = fit.gap, len(rows), len(fit.support), fit.model
    by_pairs = rows.classes is not None and model.method == "svm"
    stopped = "" if fit.converged else ", and SMO stopped before it was reached"
    state = "usable, not exact" if (gap or 0.0) <= USABLE_GAP else f"far from the best; {_easier(rows)}"
    # A narrow kernel needs every row; a small cost holds every row at its bound.
    cause = (
        "the cost may be too small" if fit.n_bounded >= NEARLY_ALL * fit.n_support else "the kernel may be too narrow"
    )
    way_out = "" if search is not None and len(search.cells) > 1 else f"; {option('grid', True)} looks for better"
    of_numbers = rows.encoder is None or rows.encoder.numeric
    once = ", equal ones counted once," if fit.n_support < support else ""
    cases = {
        "the kernel is not positive definite: the machine is a stationary point of a problem without a single "
        f"solution{stopped}": by_pairs and gap is None,
        f"the solver stopped at a relative duality gap of {gap or 0.0:.1e}: the machine is {state}": (
            gap is not None and not fit.converged
        ),
        "the perceptron still makes mistakes on the training rows: the classes may not be separable": (
            model.method == "perceptron" and not fit.converged
        ),
        f"{fit.n_support:,} of {n:,} training rows{once} are support vectors: {cause}, or the columns say little of the "
        f"target{way_out}": of_numbers
        and by_pairs
        and support >= NEARLY_ALL * n
        and n >= 50
        and fit.n_support > FEW_DIFFERENT * n,
    }
    # A cost that holds the machine back is told, and then the columns are not to blame.
    blamed = not options.told_of_units(rows, fit)
    of_search = [] if search is None else useless(rows, search, options, blamed) or edge_warnings(search, options.seed)
    return [*(text for text, applies in cases.items() if applies), *of_search]


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
    told = f"{which} more often than {largest!r} for every row ({in_percent(share)})"
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
