"""Rows into folds for cross-validation, and into a training and a test part, every class spread evenly.

What is drawn depends on the seed, on the number of rows and on their classes, and on nothing else.
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


def plain_folds(n: int, k: int, seed: int) -> Rows:
    """Return the fold of each row, drawn at random; sizes of folds differ by at most one.

    Parameters
    ----------
    n : int
        Rows.
    k : int
        Folds, at least 2.
    seed : int

    Returns
    -------
    ndarray of int, shape (n,)
        In [0, k).

    Raises
    ------
    UsageError
        If `k` is no whole number of at least 2.
    DataError
        If there are fewer rows than folds.

    Notes
    -----
    Cost: O(n).
    """
    _check_folds(n, k)
    rng = np.random.default_rng((seed, FOLD_STREAM))
    return _dealt(rng.permutation(n), k, rng)


def stratified_folds(labels: Codes, k: int, seed: int, classes: Sequence[str] | None = None) -> Rows:
    """Return the fold of each row, every class spread evenly.

    Rows of a class stand together, in random order, and are dealt to the folds in turn like cards. So the rows of a
    class in two folds differ in number by at most one, and so do the rows in all.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
        The class of each row.
    k : int
        Folds, at least 2.
    seed : int
    classes : sequence of str, optional
        What the classes are called in messages.

    Returns
    -------
    ndarray of int, shape (n,)
        In [0, k).

    Raises
    ------
    UsageError
        If `k` is no whole number of at least 2.
    DataError
        If there are fewer rows than folds, or only one row of a class: whatever is fitted to the other folds has never
        seen it.

    Notes
    -----
    Cost: O(n log n). `sparse_classes_warning` tells of classes that not every fold can have.
    """
    _check_folds(len(labels), k)
    _check_classes(labels, k, classes)
    rng = np.random.default_rng((seed, FOLD_STREAM))
    shuffled = rng.permutation(len(labels))
    return _dealt(shuffled[np.argsort(labels[shuffled], kind="stable")], k, rng)


def sparse_classes_warning(labels: Codes, k: int, classes: Sequence[str] | None = None) -> str | None:
    """Return a warning that names the classes with fewer rows than there are folds; None without any.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
    k : int
        Folds.
    classes : sequence of str, optional
        What the classes are called.
    """
    codes, counts = np.unique(labels, return_counts=True)
    found = zip(codes.tolist(), counts.tolist(), strict=True)
    sparse = [(_class_name(code, classes), count) for code, count in found if count < k]
    if not sparse:
        return None
    named = ", ".join(f"{name} ({counted(count, 'row')})" for name, count in sparse[:CLASSES_NAMED])
    more = f" and {len(sparse) - CLASSES_NAMED} more" if len(sparse) > CLASSES_NAMED else ""
    return f"not every one of {k} folds has a row of each class: {named}{more}"


def train_test_split(labels: Codes | None, n: int, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Return the rows to train on and the rows to test on.

    The test part has the nearest whole number to `fraction * n` of rows. With labels each class has its share of them,
    rounded so that the shares add up; a class with two rows or more has at least one in both parts as long as the parts
    are large enough, and the only row of a class is for training.

    Parameters
    ----------
    labels : ndarray of int, shape (n,), or None
        The class of each row; None to draw without regard to classes.
    n : int
        Rows.
    fraction : float
        Share of the rows to test on, in (0, 1).
    seed : int

    Returns
    -------
    train, test : ndarray of int
        Both ascending; together every row once.

    Raises
    ------
    UsageError
        If `fraction` is not between 0 and 1.
    DataError
        If it leaves no row to train on, or none to test on.

    Notes
    -----
    Cost: O(n log n).
    """
    tested = _test_rows(n, fraction)
    rng = np.random.default_rng((seed, SPLIT_STREAM))
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


def _check_classes(labels: Codes, k: int, classes: Sequence[str] | None) -> None:
    codes, counts = np.unique(labels, return_counts=True)
    if counts.min() < 2:
        name = _class_name(int(codes[np.argmin(counts)]), classes)
        raise DataError(
            f"only 1 row has class {name}: of {k} folds, the one with that row is predicted by a fit that never saw it",
            hint="leave out classes of one row, or merge them with others",
            code="data.folds",
        )


def _class_name(code: int, classes: Sequence[str] | None) -> str:
    return repr(classes[code] if classes is not None else code)
