"""Random orders of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.inference.labels import Labels

# Tells the stream of random orders from other streams of the same seed.
ORDER_STREAM = 0


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
