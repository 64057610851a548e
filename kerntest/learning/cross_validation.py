"""Folds, a training and a test part, every class spread evenly; and grids that are judged by folds.

What is drawn depends on the seed, on the number of rows, on their classes and clusters, and on nothing else. The rows of
a cluster are never parted.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import DataError, UndecidedError, UsageError, counted, listed, option, whole_number
from kerntest.kernels.base import Points

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Array, Codes, Kernel
    from kerntest.learning.rows.training_rows import TrainingRows

    Rows = NDArray[np.intp]

# Tell the streams of folds and of test rows from each other and from other streams of the same seed.
FOLD_STREAM, SPLIT_STREAM = 20, 21
CLASSES_NAMED = 5
# Scores of a grid that differ by less than this share of the best are equal, for rounding could have made the difference,
# another one on another processor: they come from systems of a condition of up to 1e7.
EQUAL_SCORES = 1e-9


def draw_folds(
    n: int,
    k: int,
    seed: int,
    *,
    labels: Codes | None = None,
    classes: Sequence[str] = (),
    clusters: Rows | None = None,
    target: str | None = None,
) -> Rows:
    """Return the fold of each row, from 0 to k - 1, every class spread evenly.

    Rows of a class stand together, in random order, and are dealt to the folds in turn like cards. So the rows of a
    class in two folds differ in number by at most one, and so do the rows in all. Clusters go whole to the folds, the
    largest first, each to the fold that has the least of its classes.
    """
    whole_number("folds", k, at_least=2)
    _check_enough(n, "row", k)
    labels = np.zeros(n, dtype=np.intp) if labels is None else labels
    unit, lone = (
        _unit(clusters),
        [classes[code] for code, count in sorted(_sizes(labels, clusters)) if count < 2 and classes],
    )
    if lone:
        which = f"class {lone[0]!r}" if len(lone) == 1 else f"each of the classes {listed(list(map(repr, lone)))}"
        what = f"{which} has only 1 {unit}: one of {k} folds is predicted by a fit that never saw it"
        way_out = f"leave out classes of one {unit}"
        if target is not None:
            from kerntest.data.condition import other_than  # noqa: PLC0415 - seldom needed

            way_out = f"{option('where', other_than(target, lone))} leaves {'it' if len(lone) == 1 else 'them'} out"
        raise DataError(what, hint=f"{way_out}, or merge with other classes", code="data.folds")
    rng = np.random.default_rng((seed, FOLD_STREAM))
    if clusters is not None:
        return _whole_folds(labels, clusters, k, rng)
    shuffled = rng.permutation(n)
    folds = np.empty(n, dtype=np.intp)
    folds[shuffled[np.argsort(labels[shuffled], kind="stable")]] = rng.permutation(k)[np.arange(n) % k]
    return folds


def folds_of(rows: TrainingRows, count: int, seed: int) -> tuple[NDArray[np.intp], list[str]]:
    """Return the fold of each row, by class where there are classes, and warnings."""
    codes, names, clusters = rows.codes, () if rows.classes is None else rows.classes.names, rows.clusters
    labels = codes if names else None
    target = next(iter(rows.names), None)
    folds = draw_folds(len(rows), count, seed, labels=labels, classes=names, clusters=clusters, target=target)
    warning = sparse_classes_warning(codes, count, names, clusters) if names else None
    return folds, [] if warning is None else [warning]


def sparse_classes_warning(labels: Codes, k: int, classes: Sequence[str], clusters: Rows | None = None) -> str | None:
    """Return a warning that names the classes with fewer rows, or clusters, than there are folds; None without any."""
    sparse = [(repr(classes[code]), count) for code, count in sorted(_sizes(labels, clusters)) if count < k]
    if not sparse:
        return None
    named = listed([f"{name} ({counted(count, _unit(clusters))})" for name, count in sparse], CLASSES_NAMED)
    return f"not every one of {k} folds has a row of each class: {named}"


def train_test_split(
    labels: Codes | None, n: int, fraction: float, seed: int, clusters: Rows | None = None
) -> tuple[Rows, Rows]:
    """Return the rows to train on and the rows to test on, both ascending.

    The test part has the nearest whole number to `fraction * n` of rows. With labels each class has its share of them,
    rounded so that the shares add up; a class with two rows or more has at least one in both parts as long as the parts
    are large enough, and the only row of a class is for training. Clusters are drawn whole, in random order, each if it
    brings the test part nearer to its share of the rows of every class.
    """
    tested = _test_rows(n, fraction)
    rng = np.random.default_rng((seed, SPLIT_STREAM))
    labels = np.zeros(n, dtype=np.intp) if labels is None else labels
    if clusters is not None:
        drawn = _whole_part(labels, clusters, fraction, rng)
        return np.flatnonzero(~drawn), np.flatnonzero(drawn)
    shuffled = rng.permutation(n)
    _, codes, sizes = np.unique(labels[shuffled], return_inverse=True, return_counts=True)
    by_class = np.argsort(codes, kind="stable")
    place_in_class = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    in_test = place_in_class < np.repeat(_shares(sizes, tested), sizes)
    return np.sort(shuffled[by_class[~in_test]]), np.sort(shuffled[by_class[in_test]])


def _contents(labels: Codes, clusters: Rows) -> tuple[Rows, NDArray[np.float64]]:
    """Return the cluster of each row, from 0 without gaps, and the rows of each class in each cluster, shape (G, c)."""
    place, codes = (np.unique(values, return_inverse=True)[1] for values in (clusters, labels))
    contents = np.zeros((int(place.max()) + 1, int(codes.max()) + 1))
    np.add.at(contents, (place, codes), 1.0)
    return place, contents


def _whole_folds(labels: Codes, clusters: Rows, k: int, rng: np.random.Generator) -> Rows:
    """Return the fold of each row, clusters whole: the largest first, each where the classes are least even without it."""
    place, contents = _contents(labels, clusters)
    _check_enough(len(contents), "cluster", k)
    shares = contents / contents.sum(axis=0)
    order = rng.permutation(len(contents))
    order = order[np.argsort(-contents[order].sum(axis=1), kind="stable")]
    filled, fold_of = np.zeros((k, contents.shape[1])), np.empty(len(contents), dtype=np.intp)
    for unit in order:
        # What the sum of squares of filled shares grows by; of equal folds the emptiest in all.
        fold = np.argmin(filled @ shares[unit] + 1e-9 * filled.sum(axis=1))
        filled[fold] += shares[unit]
        fold_of[unit] = fold
    return rng.permutation(k)[fold_of][place]


def _whole_part(labels: Codes, clusters: Rows, fraction: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which rows are in a test part of whole clusters; every class has a cluster to train on."""
    place, contents = _contents(labels, clusters)
    if len(contents) < 2:
        raise _no_part("all rows are in one cluster: none is left to test on")
    totals = contents.sum(axis=0)
    shares = contents / totals
    tested, drawn = np.zeros_like(totals), np.zeros(len(contents), dtype=bool)
    # The step that brings the shares nearest, where none does: both parts have rows.
    nearest, least = -1, np.inf
    for unit in rng.permutation(len(contents)):
        moved = tested + shares[unit]
        if np.any(moved > 1.0 - 0.5 / totals):
            continue
        change = float(np.square(moved - fraction).sum() - np.square(tested - fraction).sum())
        if change < least:
            nearest, least = int(unit), change
        if change < 0:
            tested, drawn[unit] = moved, True
    if nearest < 0:
        raise _no_part("every cluster has all rows of a class: none can be spared to test on")
    drawn[nearest] |= not drawn.any()
    return drawn[place]


def _no_part(why: str) -> DataError:
    hint = f"name another column as {option('cluster')}, or the rows to test on with {option('test')}"
    return DataError(why, hint=hint, code="data.test_fraction")


def _shares(sizes: Rows, total: int) -> Rows:
    """Return how many rows of each class are tested: `total` in all, in proportion to the sizes of the classes."""
    quotas = sizes * (total / sizes.sum())
    # A row of each class in either part, where it has two; without the bounds where the parts are too small for that.
    fewest = np.minimum(sizes - 1, 1) if total >= np.minimum(sizes - 1, 1).sum() else np.zeros_like(sizes)
    most = sizes - 1 if total <= (sizes - 1).sum() else sizes
    shares: Rows = np.clip(np.floor(quotas).astype(np.intp), fewest, most)
    while (missing := total - int(shares.sum())) != 0:
        # Those furthest from their quota first, one row each.
        step = 1 if missing > 0 else -1
        (movable,) = np.nonzero(shares < most if missing > 0 else shares > fewest)
        furthest = np.argsort(step * (shares - quotas)[movable], kind="stable")
        shares[movable[furthest[: abs(missing)]]] += step
    return shares


def _test_rows(n: int, fraction: float) -> int:
    """Return how many of `n` rows are tested."""
    if not 0 < fraction < 1:
        what = f"the test fraction must be between 0 and 1, not {fraction:g}"
        raise UsageError(what, hint="0.25 tests on a quarter of the rows", code="usage.test_fraction")
    tested = round(fraction * n)
    if not 0 < tested < n:
        part = "train" if tested else "test"
        what = f"a test fraction of {fraction:g} leaves none of {counted(n, 'row')} to {part} on"
        hint = "at least 2 rows are needed" if n < 2 else f"{0.5 if n < 8 else 0.25:g} leaves rows to both"
        raise DataError(what, hint=hint, code="data.test_fraction")
    return tested


def _check_enough(count: int, unit: str, k: int) -> None:
    """Refuse more folds than there are rows or clusters."""
    if count < k:
        hint = f"ask for at most {count} folds" if count > 1 else f"at least 2 {unit}s are needed"
        raise DataError(f"{counted(count, unit)} cannot be divided into {k} folds", hint=hint, code="data.folds")


def _sizes(labels: Codes, clusters: Rows | None) -> list[tuple[int, int]]:
    """Return the classes with how many rows or clusters have each, the rarest first."""
    if clusters is not None:
        labels = np.unique(np.column_stack([labels, clusters]), axis=0)[:, 0]
    codes, counts = np.unique(labels, return_counts=True)
    return sorted(zip(codes.tolist(), counts.tolist(), strict=True), key=lambda one: one[1])


def _unit(clusters: Rows | None) -> str:
    return "row" if clusters is None else "cluster"


def named(multiple: float, kernel: Kernel | None) -> tuple[float, float | None, str]:
    """Return what a cell of a grid says of its kernel: the multiple of the median, the bandwidth, and the text."""
    return multiple, getattr(kernel, "bandwidth", None), "precomputed" if kernel is None else str(kernel)


def smoothest(scores: Array, orders: Sequence[Array]) -> int:
    """Return the place of the lowest score; of scores equal to nine digits the one that is last by the orders, in turn."""
    best = float(scores.min())
    ties = np.flatnonzero(scores <= best + EQUAL_SCORES * abs(best))
    return int(ties[np.lexsort([order[ties] for order in reversed(orders)])[-1]])


def held_out(rows: TrainingRows, train: Rows, held: Rows) -> tuple[TrainingRows, TrainingRows]:
    """Return rows to fit to and rows to judge by; of a matrix both against the rows to fit to."""
    part, others = rows.take(train), rows.take(held)
    if not isinstance(rows.points, Points):
        part, others = (replace(one, points=np.asarray(one.points)[:, train]) for one in (part, others))
    return part, others


@contextmanager
def telling_of_folds(kernel: Kernel | None) -> Iterator[None]:
    """Say of an error that it came up in a fold, and with which kernel: all rows together may be fine."""
    try:
        yield
    except (UsageError, UndecidedError) as error:
        of = "" if kernel is None else f" with the kernel '{kernel}'"
        told = f"in a fold of the cross-validation{of}: {error.message}"
        raise type(error)(told, hint=error.hint, code=error.code, where=error.where) from error
