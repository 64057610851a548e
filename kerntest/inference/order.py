"""The order of the pooled rows of two samples: first a canonical one, then a random one.

Rows are sorted by their values before anything is drawn at random. What follows then depends on the rows as a set, so
that the test is exact for every single seed, and not only on average over seeds, where files are sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.inference.labels import Labels
    from kerntest.kernels.base import Array, Codes

# Tells the stream of random orders from other streams of the same seed.
ORDER_STREAM = 0


def canonical_order(
    numeric: Array, codes: Codes, numeric_names: Sequence[str], category_names: Sequence[str], labels: Labels
) -> NDArray[np.intp]:
    """Return the rows in ascending order of their values, columns compared in the order of their names.

    Rows that are equal in every column are told apart by their label; kernels cannot tell them apart at all.

    Parameters
    ----------
    numeric : ndarray, shape (n, p)
    codes : ndarray, shape (n, q)
    numeric_names, category_names : sequence of str
    labels : ndarray of uint8, shape (n,)

    Notes
    -----
    Cost: O((p + q) n log n) time.
    """
    keys = sorted(
        [(name, column) for name, column in zip(numeric_names, numeric.T, strict=True)]
        + [(name, column) for name, column in zip(category_names, codes.T, strict=True)],
        key=lambda named: named[0],
    )
    # lexsort takes the most important key last.
    return np.lexsort([labels, *(column for _, column in reversed(keys))])


def random_orders(labels: Labels, orders: int, seed: int) -> tuple[NDArray[np.intp], list[Labels]]:
    """Return a random order of the rows, and the labels along it in `orders` orders of which the first is the true one.

    Parameters
    ----------
    labels : ndarray of uint8, shape (n,)
    orders : int
    seed : int

    Returns
    -------
    order : ndarray of int, shape (n,)
        Which row stands at each place.
    labellings : list of ndarray of uint8, shape (n,)
        The label at each place: labels[order], then independent random rearrangements of it.
    """
    rng = np.random.default_rng((seed, ORDER_STREAM))
    order = rng.permutation(len(labels))
    observed = labels[order]
    return order, [observed] + [rng.permutation(observed) for _ in range(orders - 1)]
