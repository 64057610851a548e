"""Rows of two dependent variables with features of both, for tests of what is summed over them."""

import numpy as np

from kerntest.inference.streamed.feature_sums import PairFeatures, pair_sums
from kerntest.inference.streamed.pair_features import side_features
from kerntest.kernels.base import Columns, Points
from kerntest.kernels.columns import bind
from kerntest.kernels.text import parse_kernel

X, Y = Columns((0, 1), ()), Columns((2,), (0,))


def mixed_rows(n, seed=0, strength=0.0, offset=0.0):
    """Return rows of three numbers and a category with three levels; the third number follows the first."""
    rng = np.random.default_rng(seed)
    numeric = rng.normal(size=(n, 3)) + offset
    numeric[:, 2] += strength * numeric[:, 0] ** 2
    return Points(numeric, rng.integers(0, 3, (n, 1)))


def features_of(rows, kernels=("gaussian(1)", "laplacian(2) * hamming(1)"), text="nystroem:20", columns=(X, Y)):
    """Return features of (numbers 0 and 1) and of (number 2 and the category), or of other columns."""
    sides = []
    for kernel, some in zip(kernels, columns, strict=True):
        names = [f"n{k}" for k in some.numeric], [f"c{k}" for k in some.categories]
        bound = bind(parse_kernel(kernel), *names).kernel
        sides.append(side_features(text, bound, some, rows=rows, seed=0))
    return PairFeatures(*sides)


def slices(n, height):
    return [slice(start, start + height) for start in range(0, n, height)]


def summed(features, rows, engine, height=1000):
    """Return the sums over rows that are read `height` at a time."""
    return pair_sums(features, slices(len(rows), height), Reader(rows), engine)


class Reader:
    """Gives slices of rows, each as two parts."""

    def __init__(self, rows):
        self.rows = rows

    def __call__(self, piece):
        part = Points(self.rows.numeric[piece], self.rows.codes[piece])
        cut = len(part) // 3
        for some in (slice(0, cut), slice(cut, None)):
            yield Points(part.numeric[some], part.codes[some])


def explicit(side, rows):
    """Return the centred features of rows, and their kernel matrix before centring."""
    values = side(rows) + side.centre
    return values - values.mean(axis=0), values @ values.T
