"""Functions of a model at many rows: over its centres, its features, or the columns of a precomputed matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kerntest.kernels.base import Points
from kerntest.learning.expansion import Expansion
from kerntest.matrices.factor import BLOCK

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array
    from kerntest.learning.expansion import GivenExpansion
    from kerntest.matrices.factor import FeatureMap


def expanded(
    expansion: Expansion | GivenExpansion, features: FeatureMap | None, points: Points | Array, engine: Engine
) -> Array:
    """Return functions at n rows, shape (n, J).

    Parameters
    ----------
    expansion : Expansion or GivenExpansion
        Over centres; or over features, or the columns of a precomputed matrix.
    features : FeatureMap or None
    points : Points, or rows of a precomputed matrix
    engine : Engine
    """
    if isinstance(expansion, Expansion):
        return expansion(as_points(points), engine)
    if features is None:
        return expansion(np.asarray(points), engine)
    return _through_features(expansion, features, as_points(points), engine)


def _through_features(expansion: GivenExpansion, features: FeatureMap, points: Points, engine: Engine) -> Array:
    """Return functions of features, a block of rows at a time: the features of all rows may be too many."""
    result = np.empty((len(points), len(expansion.intercepts)))
    step = max(16, BLOCK // max(features.size, 1))
    starts = list(range(0, len(points), step))

    def work(start: int) -> Array:
        return expansion(features.of_block(points.take(slice(start, start + step))), engine)

    for start, values in zip(starts, engine.map(work, starts), strict=True):
        result[start : start + step] = values
    return result


def as_points(rows: Points | Array) -> Points:
    """Return rows that are points as such.

    Raises
    ------
    TypeError
        If they are rows of a matrix.
    """
    if not isinstance(rows, Points):
        message = "this model takes points, not rows of a matrix"
        raise TypeError(message)
    return rows
