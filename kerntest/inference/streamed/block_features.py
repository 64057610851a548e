"""Features of every kernel of a family at many rows, summed over runs of rows.

The mean discrepancy of explicit features needs nothing of the rows but sums of their features. Nystroem features
z(x) = P' k(C, x) are linear in the values k(C, x), so that these are summed, and P is applied to few sums in the end.
The kernels of a family share the landmarks C, and with them the distances.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerntest.errors import UsageError
from kerntest.kernels.base import DensePairs, Points
from kerntest.kernels.stationary import Gaussian, Laplacian, Laplacian2, Matern, RationalQuadratic, StudentT
from kerntest.matrices.factor import FEATURE_STREAM, parse_features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.kernels.base import Array, Kernel

# Kernel values computed together: they and their distances stay in the second-level cache of a core.
TOGETHER = 2**15
# Eigenvalues of K(C, C) below this share of the largest show nothing, and their inverses would enlarge rounding.
SMALLEST_SHARE = 1e-7


Summed: TypeAlias = Callable[[int, int, NDArray[np.intp]], "Array"]
"""Called with (start, stop, starts): sums over runs of the rows from `start` up to `stop`, shape (len(starts), F, D). Each
run goes up to where the next starts, counted from `start`."""


class BlockFeatures(Protocol):
    """Features of F kernels, D values a kernel before they are projected.

    Attributes
    ----------
    kernels : tuple of Kernel
    width : int
        D.
    """

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """As above."""
        ...

    @property
    def width(self) -> int:
        """As above."""
        ...

    def over(self, points: Points) -> Summed:
        """Return what sums the values of some of these rows."""
        ...

    def projected(self, member: int, sums: Array) -> Array:
        """Return the features of one kernel that sums of values stand for, shape (k, D) to (k, r)."""
        ...

    def of(self, member: int, points: Points) -> Array:
        """Return the features of one kernel at each row, shape (n, r)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Landmarks:
    """Nystroem features of several kernels on the same landmarks.

    Parameters
    ----------
    kernels : tuple of F Kernel
    landmarks : Points
        C, M rows.
    projections : tuple of ndarray, shape (M, r_f)
        K(C, C)^(-1/2) of each kernel.
    """

    kernels: tuple[Kernel, ...]
    landmarks: Points
    projections: tuple[Array, ...]

    @property
    def width(self) -> int:
        """Number of landmarks M."""
        return len(self.landmarks)

    def over(self, points: Points) -> Summed:
        """Return what sums k(x, C) over runs of these rows. Cost: O(m M (p + F)) time for m of them."""
        width = self.width
        # Slices of one whole share what kernels derive from rows.
        whole = Points(
            np.asfortranarray(np.concatenate([self.landmarks.numeric, points.numeric])),
            np.asfortranarray(np.concatenate([self.landmarks.codes, points.codes])),
        )
        landmarks = whole.take(slice(0, width))

        def summed(start: int, stop: int, starts: NDArray[np.intp]) -> Array:
            pairs = DensePairs(whole.take(slice(width + start, width + stop)), landmarks)
            pairs.halve_bandwidths()
            found = np.empty((len(starts), len(self.kernels), width))
            for member, kernel in enumerate(self.kernels):
                found[:, member] = np.add.reduceat(kernel.evaluate(pairs), starts, axis=0)
            return found

        return summed

    def projected(self, member: int, sums: Array) -> Array:
        """Return sums of features from sums of k(x, C)."""
        return np.asarray(sums @ self.projections[member])

    def of(self, member: int, points: Points) -> Array:
        """Return the features of one kernel at each row."""
        alone = replace(self, kernels=(self.kernels[member],), projections=(self.projections[member],))
        return self.projected(member, values_at(alone, points)[:, 0])


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """Random Fourier features of one kernel or several, as cosines and sines: |z(x)|^2 = 1.

    Parameters
    ----------
    kernels : tuple of F Kernel
    frequencies : tuple of ndarray, shape (p, M / 2)
    """

    kernels: tuple[Kernel, ...]
    frequencies: tuple[Array, ...]

    @property
    def width(self) -> int:
        """Number of features M."""
        return 2 * int(self.frequencies[0].shape[1])

    def over(self, points: Points) -> Summed:
        """Return what sums features over runs of these rows. Cost: O(F m M p) time for m of them."""
        half = self.width // 2

        def summed(start: int, stop: int, starts: NDArray[np.intp]) -> Array:
            found = np.empty((len(starts), len(self.kernels), self.width))
            for member, frequencies in enumerate(self.frequencies):
                waves = points.numeric[start:stop] @ frequencies
                found[:, member, :half] = np.add.reduceat(np.cos(waves), starts, axis=0)
                found[:, member, half:] = np.add.reduceat(np.sin(waves), starts, axis=0)
            found *= math.sqrt(1.0 / half)
            return found

        return summed

    def projected(self, member: int, sums: Array) -> Array:
        """Return the sums: they are of features already."""
        del member
        return sums

    def of(self, member: int, points: Points) -> Array:
        """Return the features of one kernel at each row."""
        alone = replace(self, kernels=(self.kernels[member],), frequencies=(self.frequencies[member],))
        return values_at(alone, points)[:, 0]


def make_block_features(text: str, kernels: Sequence[Kernel], sample: Points, seed: int) -> BlockFeatures:
    """Return features for the kernels of a family.

    Parameters
    ----------
    text : str
        "nystroem:128" or "fourier:1000".
    kernels : sequence of Kernel
        Every bandwidth chosen.
    sample : Points
        Rows drawn at random, in random order: the first different ones are the landmarks.
    seed : int
        Of random frequencies.

    Raises
    ------
    UsageError
        If it asks for no features, or for Fourier features of a kernel that is not one of differences of numbers; or if a
        kernel is not positive definite.
    """
    kind, count = parse_features(text)
    for kernel in kernels:
        refuse_indefinite(kernel)
    if kind == "fourier":
        p = sample.numeric.shape[1]
        return Waves(tuple(kernels), tuple(_frequencies(kernel, p, max(1, count // 2), seed) for kernel in kernels))
    landmarks = sample.take(distinct_rows(sample)[:count])
    projections = []
    for kernel in kernels:
        values, vectors = np.linalg.eigh(kernel(landmarks))
        kept = values > SMALLEST_SHARE * float(values[-1])
        projections.append(vectors[:, kept] / np.sqrt(values[kept]))
    return Landmarks(tuple(kernels), landmarks, tuple(projections))


def distinct_rows(points: Points) -> NDArray[np.intp]:
    """Return the first of each set of equal rows, in their order: a second one as a landmark shows nothing more."""
    whole = np.column_stack([points.numeric, points.codes])
    if not len(whole):
        return np.arange(0)
    return np.sort(np.unique(whole, axis=0, return_index=True)[1])


def refuse_indefinite(kernel: Kernel) -> None:
    """Refuse a kernel that no features stand for.

    Raises
    ------
    UsageError
        As above.
    """
    if not kernel.positive_definite:
        raise UsageError(
            f"the kernel '{kernel}' is not positive definite: no features stand for it",
            hint="--method exact takes it, or choose another kernel",
            code="usage.features",
        )


def _frequencies(kernel: Kernel, p: int, count: int, seed: int) -> Array:
    """Return random frequencies whose cosines average to the kernel (Rahimi and Recht 2007), shape (p, count).

    The Laplacian is a product of characteristic functions of Cauchy variables; the others are mixtures of Gaussians
    of random scale: of chi-square for the Matern family, of Gamma for powers of 1 + |x - y|^2.

    Raises
    ------
    UsageError
        If the kernel is none of these.
    """
    rng = np.random.default_rng((seed, FEATURE_STREAM))
    scale = float(getattr(kernel, "bandwidth", None) or 1.0)
    if isinstance(kernel, Laplacian):
        return rng.standard_cauchy(size=(p, count)) / scale
    normal = rng.normal(size=(p, count))
    if isinstance(kernel, Gaussian):
        return normal / scale
    if isinstance(kernel, Laplacian2 | Matern):
        nu = kernel.nu if isinstance(kernel, Matern) else 0.5
        return normal / (np.sqrt(rng.chisquare(2 * nu, count) / (2 * nu)) * scale)
    if isinstance(kernel, RationalQuadratic):
        return normal * np.sqrt(rng.gamma(kernel.alpha, 1 / kernel.alpha, count)) / scale
    if isinstance(kernel, StudentT):
        power = (kernel.df + 1) / 2
        return normal * np.sqrt(rng.gamma(power, 2 / kernel.df, count)) / scale
    raise UsageError(
        f"random Fourier features are for kernels of differences of numbers, not for '{kernel}'",
        hint="--features nystroem:300 is for every kernel",
        code="usage.features",
    )


def values_at(features: BlockFeatures, points: Points) -> Array:
    """Return the values before projection at each row, shape (n, F, D)."""
    summed = features.over(points)
    cuts = [*range(0, len(points), 256), len(points)]
    return np.concatenate([summed(start, stop, np.arange(stop - start)) for start, stop in pairwise(cuts)])
