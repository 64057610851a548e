"""Features for both variables of an independence test, chosen from a sample of the rows.

What is chosen for x (bandwidth, landmarks) comes from some rows and what is chosen for y from others, as if each were
drawn by itself from all rows. Then it does not matter to either how the rows of x and y are paired, and a permutation
test on the features is exact for any number of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.inference.streamed.block_features import distinct_rows
from kerntest.inference.streamed.feature_sums import SideFeatures, variable_at
from kerntest.kernels.dot import Linear
from kerntest.matrices.factor import make_features

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.kernels.base import Columns, Kernel, Points
    from kerntest.matrices.factor import FeatureMap

# Tells the stream that splits the sample from other streams of the same seed.
SPLIT_STREAM = 6
MOST_DRAWN = 10**9 - 1
# Nystroem features with an eigenvalue of K(C, C) below this share of the largest cost time and show nothing: they are
# left out. Each would add less than this share to k(x, x), on average over the landmarks.
SMALLEST_SHARE = 1e-7


def split_sample(n: int, sampled: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which rows of a random sample speak for x, and which for y: as if drawn apart from all n rows.

    Two sets of h rows, each drawn by itself from n, share a hypergeometric number of rows: as many are shared here.

    Parameters
    ----------
    n : int
        All rows.
    sampled : int
        Rows of the sample: all of them, or twice as many as either side gets.
    seed : int

    Returns
    -------
    ndarray, ndarray of int
        Places in the sample, each in a random order of its own: the first few are a random choice too.
    """
    rng = np.random.default_rng((seed, SPLIT_STREAM))
    if sampled >= n:
        return rng.permutation(n), rng.permutation(n)
    half = sampled // 2
    # numpy draws from fewer than 1e9 rows: of more none is shared, but for one chance in a thousand.
    shared = int(rng.hypergeometric(half, min(n, MOST_DRAWN) - half, half))
    order = rng.permutation(sampled)
    return order[:half], rng.permutation(order[half - shared : 2 * half - shared])


def side_features(text: str, kernel: Kernel, columns: Columns, *, rows: Points, seed: int) -> SideFeatures:
    """Return features of one variable.

    Parameters
    ----------
    text : str
        "nystroem:100" or "fourier:500".
    kernel : Kernel
        Every bandwidth chosen.
    columns : Columns
        Which columns of the rows the variable is.
    rows : Points
        Rows that speak for it, all columns, in random order.
    seed : int

    Raises
    ------
    UsageError
        As in `make_features`.
    """
    origin = np.zeros(len(columns.numeric))
    if isinstance(kernel, Linear):
        # Only to that one every origin is the same; a far one would take its digits away.
        origin = rows.select(columns).numeric.mean(axis=0)
    points = variable_at(rows, columns, origin)
    features = without_small(make_features(text, kernel, points.take(distinct_rows(points)), seed))
    return SideFeatures(columns, origin, features, features.of_block(points).mean(axis=0))


def without_small(features: FeatureMap) -> FeatureMap:
    """Return Nystroem features without those of the smallest eigenvalues."""
    if features.kind != "nystroem":
        return features
    # Columns of the projection are eigenvectors over the roots of their eigenvalues.
    inverse = np.square(features.projection).sum(axis=0)
    kept = inverse * SMALLEST_SHARE <= inverse.min()
    return replace(features, projection=np.ascontiguousarray(features.projection[:, kept]))
