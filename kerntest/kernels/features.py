"""Explicit features of a kernel, for more rows than kernel matrices bear: Nystroem's method and random Fourier features.

z(x) with <z(x), z(y)> near k(x, y): K(x, C) K(C, C)^(-1/2) for M random rows C (Williams and Seeger 2001), or
sqrt(2/M) cos(W x + c) with random frequencies W, for the Gaussian (Rahimi and Recht 2007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import numpy as np

from kerntest.errors import UsageError
from kerntest.kernels.base import DensePairs, Kernel, Points
from kerntest.kernels.stationary import Gaussian

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Array

FeatureKind: TypeAlias = Literal["nystroem", "fourier"]
FEATURE_STREAM = 4
# Pairs of rows at which the error of the features is measured.
ERROR_ROWS = 400
# Entries of the features of one block of rows.
BLOCK = 2**19
# Eigenvalues of K(C, C) below this share of the largest are rounding.
SMALLEST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class FeatureMap:
    """Explicit features.

    Parameters
    ----------
    kind : "nystroem" or "fourier"
    kernel : Kernel
    landmarks : Points
        C, M rows; none for Fourier features.
    projection : ndarray, shape (M, r)
        K(C, C)^(-1/2); W' of shape (p, M) for Fourier features.
    offsets : ndarray, shape (M,)
        c; empty for Nystroem.
    """

    kind: FeatureKind
    kernel: Kernel
    landmarks: Points
    projection: Annotated[Array, 2]
    offsets: Annotated[Array, 1]

    def flaw(self) -> str | None:
        """Return what is wrong with it, if a stranger wrote it."""
        inputs, offsets = len(self.landmarks), 0
        if self.kind == "fourier":
            inputs, offsets = self.landmarks.numeric.shape[1], self.size
        fits = len(self.projection) == inputs and len(self.offsets) == offsets
        return None if fits else "its features do not fit together"

    @property
    def size(self) -> int:
        """Number of features."""
        return int(self.projection.shape[1])

    def __call__(self, points: Points, engine: Engine) -> Array:
        """Return the features of n rows, shape (n, size). Cost: O(n M (p + size)) time."""
        result = np.empty((len(points), self.size))
        step = max(16, BLOCK // max(self.size, 1))
        starts = list(range(0, len(points), step))

        def work(start: int) -> Array:
            return self.of_block(points.take(slice(start, start + step)))

        for start, values in zip(starts, engine.here.map(work, starts), strict=True):
            result[start : start + step] = values
        return result

    def diagonal(self, points: Points) -> Array:
        """Return the prior variance of a function at n rows, shape (n,).

        k(x, x) for Nystroem, whose features lack a part of it that no row of the centres tells of; |z(x)|^2 for random
        Fourier features, which are a process of their own. Cost: O(n M p) for these.
        """
        if self.kind == "nystroem":
            return self.kernel.diagonal(points)
        result = np.empty(len(points))
        step = max(16, BLOCK // max(self.size, 1))
        for start in range(0, len(points), step):
            values = self.of_block(points.take(slice(start, start + step)))
            result[start : start + step] = np.einsum("ij,ij->i", values, values)
        return result

    def of_block(self, points: Points, onto: Array | None = None) -> Array:
        """Return the features of a few rows, all at once; or their products with a matrix, shape (size, k)."""
        if self.kind == "fourier":
            waves: Array = points.numeric @ self.projection + self.offsets
            np.cos(waves, out=waves)
            waves *= math.sqrt(2.0 / self.size)
            return waves if onto is None else waves @ onto
        projection = self.projection if onto is None else self.projection @ onto
        values: Array = self.kernel.evaluate(DensePairs(points, self.landmarks)) @ projection
        return values


def parse_features(text: str) -> tuple[FeatureKind, int]:
    """Return the kind and the number of features that a text like 'nystroem:500' asks for.

    Raises
    ------
    UsageError
        If it asks for neither.
    """
    kind, _, count = str(text).strip().lower().partition(":")
    if kind not in {"nystroem", "fourier"} or not count.isdigit() or not 1 <= int(count) <= 10**5:
        raise UsageError(
            f"{text!r} are no features",
            hint="write --features nystroem:500 or --features fourier:2000",
            code="usage.features",
        )
    return ("nystroem" if kind == "nystroem" else "fourier"), int(count)


def make_features(text: str, kernel: Kernel, points: Points, seed: int) -> FeatureMap:
    """Return features for a kernel.

    Raises
    ------
    UsageError
        If the kernel has no Fourier features here: they are for the Gaussian of numbers.
    """
    kind, count = parse_features(text)
    rng = np.random.default_rng((seed, FEATURE_STREAM))
    if kind == "fourier":
        if not isinstance(kernel, Gaussian) or points.codes.shape[1] or kernel.bandwidth is None:
            raise UsageError(
                f"random Fourier features are for the Gaussian of numbers, not for '{kernel}'",
                hint=f"--features nystroem:{count} is for every kernel",
                code="usage.features",
            )
        frequencies = rng.normal(size=(points.numeric.shape[1], count)) / float(kernel.bandwidth)
        nothing = Points(np.empty((0, points.numeric.shape[1])), np.empty((0, 0), dtype=np.int64))
        return FeatureMap(kind, kernel, nothing, frequencies, rng.uniform(0.0, 2.0 * np.pi, count))
    chosen = np.sort(rng.choice(len(points), min(count, len(points)), replace=False))
    landmarks = Points(points.numeric[chosen], points.codes[chosen])
    values, vectors = np.linalg.eigh(kernel(landmarks))
    kept = values > SMALLEST * float(values[-1])
    return FeatureMap(kind, kernel, landmarks, vectors[:, kept] / np.sqrt(values[kept]), np.empty(0))


def feature_error(features: FeatureMap, points: Points, engine: Engine, seed: int) -> float:
    """Return the root mean square of <z(x), z(y)> - k(x, y) over pairs of up to 400 random rows."""
    rng = np.random.default_rng((seed, FEATURE_STREAM, 1))
    rows = np.sort(rng.choice(len(points), min(ERROR_ROWS, len(points)), replace=False))
    sample = Points(points.numeric[rows], points.codes[rows])
    Z = features(sample, engine)
    return float(np.sqrt(np.mean((Z @ Z.T - features.kernel(sample)) ** 2)))
