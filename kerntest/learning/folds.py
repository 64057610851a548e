"""Rows into folds for cross-validation, and into a training and a test part, every class spread evenly.

What is drawn depends on the seed, on the number of rows, on their classes and clusters, and on nothing else. The rows of
a cluster are never parted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import DataError, UsageError
from kerntest.report.summary import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.kernels.base import Codes

    Rows = NDArray[np.intp]

# Tell the streams of folds and of test rows from each other and from other streams of the same seed.
FOLD_STREAM, SPLIT_STREAM = 20, 21
CLASSES_NAMED = 5


def plain_folds(n: int, k: int, seed: int, clusters: Rows | None = None) -> Rows:
    """Return the fold of each row, drawn at random; sizes of folds differ by at most one, where there are no clusters.

    Parameters
    ----------
    n : int
        Rows.
    k : int
        Folds, at least 2.
    seed : int
    clusters : ndarray of int, shape (n,), optional
        Equal for rows that stay together.

    Returns
    -------
    ndarray of int, shape (n,)
        In [0, k).

    Raises
    ------
    UsageError
        If `k` is no whole number of at least 2.
    DataError
        If there are fewer rows, or clusters, than folds.

    Notes
    -----
    Cost: O(n).
    """
    _check_folds(n, k)
    rng = np.random.default_rng((seed, FOLD_STREAM))
    if clusters is not None:
        return _whole_folds(np.zeros(n, dtype=np.intp), clusters, k, rng)
    return _dealt(rng.permutation(n), k, rng)


def stratified_folds(
    labels: Codes, k: int, seed: int, classes: Sequence[str] | None = None, clusters: Rows | None = None
) -> Rows:
    """Return the fold of each row, every class spread evenly.

    Rows of a class stand together, in random order, and are dealt to the folds in turn like cards. So the rows of a
    class in two folds differ in number by at most one, and so do the rows in all. Clusters go whole to the folds, the
    largest first, each to the fold that has the least of its classes.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
        The class of each row.
    k : int
        Folds, at least 2.
    seed : int
    classes : sequence of str, optional
        What the classes are called in messages.
    clusters : ndarray of int, shape (n,), optional
        Equal for rows that stay together.

    Returns
    -------
    ndarray of int, shape (n,)
        In [0, k).

    Raises
    ------
    UsageError
        If `k` is no whole number of at least 2.
    DataError
        If there are fewer rows or clusters than folds, or only one row or cluster with a class: whatever is fitted to the
        other folds has never seen it.

    Notes
    -----
    Cost: O(n log n). `sparse_classes_warning` tells of classes that not every fold can have.
    """
    _check_folds(len(labels), k)
    _check_classes(labels, k, classes, clusters)
    rng = np.random.default_rng((seed, FOLD_STREAM))
    if clusters is not None:
        return _whole_folds(labels, clusters, k, rng)
    shuffled = rng.permutation(len(labels))
    return _dealt(shuffled[np.argsort(labels[shuffled], kind="stable")], k, rng)


def sparse_classes_warning(
    labels: Codes, k: int, classes: Sequence[str] | None = None, clusters: Rows | None = None
) -> str | None:
    """Return a warning that names the classes with fewer rows, or clusters, than there are folds; None without any.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
    k : int
        Folds.
    classes : sequence of str, optional
        What the classes are called.
    clusters : ndarray of int, shape (n,), optional
    """
    codes, counts = _units_of_classes(labels, clusters)
    found = zip(codes.tolist(), counts.tolist(), strict=True)
    sparse = [(_class_name(code, classes), count) for code, count in found if count < k]
    if not sparse:
        return None
    unit = "row" if clusters is None else "cluster"
    named = ", ".join(f"{name} ({counted(count, unit)})" for name, count in sparse[:CLASSES_NAMED])
    more = f" and {len(sparse) - CLASSES_NAMED} more" if len(sparse) > CLASSES_NAMED else ""
    return f"not every one of {k} folds has a row of each class: {named}{more}"


def train_test_split(
    labels: Codes | None, n: int, fraction: float, seed: int, clusters: Rows | None = None
) -> tuple[Rows, Rows]:
    """Return the rows to train on and the rows to test on.

    The test part has the nearest whole number to `fraction * n` of rows. With labels each class has its share of them,
    rounded so that the shares add up; a class with two rows or more has at least one in both parts as long as the parts
    are large enough, and the only row of a class is for training. Clusters are drawn whole, in random order, each if it
    brings the test part nearer to its share of the rows of every class.

    Parameters
    ----------
    labels : ndarray of int, shape (n,), or None
        The class of each row; None to draw without regard to classes.
    n : int
        Rows.
    fraction : float
        Share of the rows to test on, in (0, 1).
    seed : int
    clusters : ndarray of int, shape (n,), optional
        Equal for rows that stay together.

    Returns
    -------
    train, test : ndarray of int
        Both ascending; together every row once.

    Raises
    ------
    UsageError
        If `fraction` is not between 0 and 1.
    DataError
        If it leaves no row to train on, or none to test on; if there is one cluster only.

    Notes
    -----
    Cost: O(n log n).
    """
    tested = _test_rows(n, fraction)
    rng = np.random.default_rng((seed, SPLIT_STREAM))
    if clusters is not None:
        drawn = _whole_part(np.zeros(n, dtype=np.intp) if labels is None else labels, clusters, fraction, rng)
        return np.flatnonzero(~drawn), np.flatnonzero(drawn)
    shuffled = rng.permutation(n)
    if labels is None:
        return np.sort(shuffled[tested:]), np.sort(shuffled[:tested])
    _, codes, sizes = np.unique(labels[shuffled], return_inverse=True, return_counts=True)
    by_class = np.argsort(codes, kind="stable")
    place_in_class = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    in_test = place_in_class < np.repeat(_shares(sizes, tested), sizes)
    return np.sort(shuffled[by_class[~in_test]]), np.sort(shuffled[by_class[in_test]])


def _dealt(order: Rows, k: int, rng: np.random.Generator) -> Rows:
    """Return the fold of each row when the rows, in this order, are dealt to folds in turn, the first at random."""
    folds = np.empty(len(order), dtype=np.intp)
    folds[order] = rng.permutation(k)[np.arange(len(order)) % k]
    return folds


def _contents(labels: Codes, clusters: Rows) -> tuple[Rows, NDArray[np.float64]]:
    """Return the cluster of each row, from 0 without gaps, and the rows of each class in each cluster, shape (G, c)."""
    _, place = np.unique(clusters, return_inverse=True)
    _, codes = np.unique(labels, return_inverse=True)
    contents = np.zeros((int(place.max()) + 1, int(codes.max()) + 1))
    np.add.at(contents, (place, codes), 1.0)
    return place, contents


def _whole_folds(labels: Codes, clusters: Rows, k: int, rng: np.random.Generator) -> Rows:
    """Return the fold of each row, clusters whole: the largest first, each where the classes are least even without it."""
    place, contents = _contents(labels, clusters)
    if len(contents) < k:
        raise DataError(
            f"{counted(len(contents), 'cluster')} cannot be divided into {k} folds",
            hint=f"ask for at most {len(contents)} folds" if len(contents) > 1 else "at least 2 clusters are needed",
            code="data.folds",
        )
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
        raise DataError(
            "all rows are in one cluster: none is left to test on",
            hint="name another column as --cluster, or the rows to test on with --test",
            code="data.test_fraction",
        )
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
    if not drawn.any():
        if nearest < 0:
            raise DataError(
                "every cluster has all rows of a class: none can be spared to test on",
                hint="name another column as --cluster, or the rows to test on with --test",
                code="data.test_fraction",
            )
        drawn[nearest] = True
    return drawn[place]


def _shares(sizes: Rows, total: int) -> Rows:
    """Return how many rows of each class are tested: `total` in all, in proportion to the sizes of the classes.

    Parameters
    ----------
    sizes : ndarray of int, shape (c,)
        Rows of each class, at least 1.
    total : int
        In [1, sum(sizes) - 1].
    """
    quotas = sizes * (total / sizes.sum())
    # A row of each class in either part, where it has two; without the bounds where the parts are too small for that.
    fewest, most = np.minimum(sizes - 1, 1), sizes - 1
    if total < fewest.sum():
        fewest = np.zeros_like(sizes)
    if total > most.sum():
        most = sizes
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
        raise UsageError(
            f"the test fraction must be between 0 and 1, not {fraction:g}",
            hint="0.25 tests on a quarter of the rows",
            code="usage.test_fraction",
        )
    tested = round(fraction * n)
    if not 0 < tested < n:
        part = "test" if tested == 0 else "train"
        raise DataError(
            f"a test fraction of {fraction:g} leaves none of {counted(n, 'row')} to {part} on",
            hint="at least 2 rows are needed" if n < 2 else f"{0.5 if n < 8 else 0.25:g} leaves rows to both",
            code="data.test_fraction",
        )
    return tested


def _check_folds(n: int, k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 2:
        raise UsageError(
            f"folds must be a whole number of at least 2, not {k!r}",
            hint="5 is usual, 10 for a few hundred rows",
            code="usage.folds",
        )
    if n < k:
        raise DataError(
            f"{counted(n, 'row')} cannot be divided into {k} folds",
            hint=f"ask for at most {n} folds" if n >= 2 else "at least 2 rows are needed",
            code="data.folds",
        )


def _units_of_classes(labels: Codes, clusters: Rows | None) -> tuple[Rows, Rows]:
    """Return the classes, and how many rows or clusters have each."""
    if clusters is not None:
        labels = np.unique(np.column_stack([labels, clusters]), axis=0)[:, 0]
    codes, counts = np.unique(labels, return_counts=True)
    return codes, counts


def _check_classes(labels: Codes, k: int, classes: Sequence[str] | None, clusters: Rows | None) -> None:
    codes, counts = _units_of_classes(labels, clusters)
    if counts.min() < 2:
        name = _class_name(int(codes[np.argmin(counts)]), classes)
        unit = "row" if clusters is None else "cluster"
        raise DataError(
            f"only 1 {unit} has class {name}: of {k} folds, the one with that {unit} is predicted by a fit that never saw "
            "it",
            hint=f"leave out classes of one {unit}, or merge them with others",
            code="data.folds",
        )


def _class_name(code: int, classes: Sequence[str] | None) -> str:
    return repr(classes[code] if classes is not None else code)
