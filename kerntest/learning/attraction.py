"""How strongly centres attract a row: the weights of the fixed point that finds pre-images.

For a kernel of distances, the gradient of k(x, z) in column c of z is -w_c(x, z) (z_c - x_c) with w_c >= 0. A row z at which
sum_i g_i k(x_i, z) is stationary is therefore a weighted mean of the centres x_i in each column,

    z_c = sum_i g_i w_c(x_i, z) x_ic / sum_i g_i w_c(x_i, z),

the fixed point of Mika et al. (1999), in which w is the Gaussian itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.errors import UsageError
from kerntest.kernels.algebra import Constant, Power, Product, Sum
from kerntest.kernels.columns import BoundGroups, OnColumns
from kerntest.kernels.discrete import Delta, Hamming
from kerntest.kernels.dot import Linear
from kerntest.kernels.stationary import Gaussian, Laplacian, Laplacian2, Matern, RationalQuadratic, StudentT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.kernels.base import Array, DensePairs, Kernel

HINT = "kernels of distances have: gaussian, laplacian, laplacian2, student-t, rational-quadratic, matern; linear alone"
# Where a distance is 0 the weights of kernels with a kink there have none: as if it were this share of the bandwidth.
KINK = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Attraction:
    """The weights of some columns.

    Parameters
    ----------
    columns : tuple of int
        Positions among the numeric columns.
    weights : ndarray, shape (b, m)
        w(x_i, z) for b rows z and m centres, the same in these columns.
    """

    columns: tuple[int, ...]
    weights: Array


def attractions(kernel: Kernel, pairs: DensePairs) -> list[Attraction]:
    """Return the weights of every numeric column that the kernel sees, once each.

    Parameters
    ----------
    kernel : Kernel
        With every bandwidth chosen.
    pairs : DensePairs
        b rows against m centres.

    Raises
    ------
    UsageError
        If a part of the kernel is none of distances, or two parts that are added or multiplied see different columns.
    """
    width = pairs.x.numeric.shape[1]
    return _attractions(kernel, pairs, tuple(range(width)))


def check_attracts(kernel: Kernel) -> None:
    """Refuse a kernel that has no pre-images here.

    Raises
    ------
    UsageError
        As above.
    """
    parts: Sequence[Kernel] = ()
    if isinstance(kernel, BoundGroups):
        parts = [group.kernel for group in kernel.groups]
    elif isinstance(kernel, (OnColumns, Sum, Product)) or (isinstance(kernel, Power) and kernel.exponent >= 1.0):
        parts = kernel.parts
    elif not isinstance(kernel, (*_RADIAL, Laplacian, Constant, Hamming, Delta)):
        raise _refused(kernel)
    if isinstance(kernel, OnColumns) and kernel.only_sees_ties:
        raise _refused(kernel, "of numbers has no pre-images: it only tells equal ones from others")
    for part in parts:
        check_attracts(part)


def _refused(kernel: Kernel, why: str = "has no pre-images") -> UsageError:
    if isinstance(kernel, Linear):
        why = "has pre-images only by itself, not beside categories and other kernels"
    return UsageError(f"the kernel '{kernel}' {why}", hint=HINT, code="usage.no_preimages")


def _attractions(kernel: Kernel, pairs: DensePairs, columns: tuple[int, ...]) -> list[Attraction]:
    if isinstance(kernel, _RADIAL):
        return [Attraction(columns, _radial(kernel, pairs))]
    if isinstance(kernel, Laplacian):
        return _by_column(kernel, pairs, columns)
    if isinstance(kernel, (Constant, Hamming, Delta)):
        return []
    if isinstance(kernel, OnColumns):
        inner = tuple(columns[place] for place in kernel.columns.numeric)
        return _attractions(kernel.kernel, pairs.restrict(kernel.columns), inner)
    if isinstance(kernel, BoundGroups):
        return _of_product([group.kernel for group in kernel.groups], pairs, columns)
    if isinstance(kernel, Product):
        return _of_product(kernel.parts, pairs, columns)
    if isinstance(kernel, Sum):
        return _merged([found for part in kernel.parts for found in _attractions(part, pairs, columns)])
    if isinstance(kernel, Power):
        outer = kernel.exponent * kernel.kernel.evaluate(pairs) ** (kernel.exponent - 1.0)
        return [Attraction(one.columns, one.weights * outer) for one in _attractions(kernel.kernel, pairs, columns)]
    raise _refused(kernel)


def _of_product(parts: Sequence[Kernel], pairs: DensePairs, columns: tuple[int, ...]) -> list[Attraction]:
    """Return the weights of k_1 k_2 ...: those of each factor times the other factors."""
    values = [part.evaluate(pairs) for part in parts]
    found = []
    for place, part in enumerate(parts):
        others = [value for other, value in enumerate(values) if other != place]
        for one in _attractions(part, pairs, columns):
            weights = one.weights
            for value in others:
                weights = weights * value
            found.append(Attraction(one.columns, weights))
    return _merged(found)


def _merged(found: list[Attraction]) -> list[Attraction]:
    """Return weights with those of the same columns added up."""
    by_column: dict[int, Array] = {}
    for one in found:
        for column in one.columns:
            by_column[column] = by_column[column] + one.weights if column in by_column else one.weights
    groups: dict[int, list[int]] = {}
    for column, weights in by_column.items():
        groups.setdefault(id(weights), []).append(column)
    return [Attraction(tuple(columns), by_column[columns[0]]) for columns in groups.values()]


def _radial(kernel: Kernel, pairs: DensePairs) -> Array:
    """Return w = -2 dk/d(d^2) up to a positive factor that is the same for all pairs."""
    if isinstance(kernel, Gaussian):
        return kernel.evaluate(pairs) / kernel.chosen_bandwidth**2
    if isinstance(kernel, StudentT):
        scale = kernel.df * kernel.chosen_bandwidth**2
        return kernel.evaluate(pairs) * ((kernel.df + 1.0) / scale) / (1.0 + pairs.squared_distance() / scale)
    if isinstance(kernel, RationalQuadratic):
        scale = 2.0 * kernel.alpha * kernel.chosen_bandwidth**2
        return kernel.evaluate(pairs) * (2.0 * kernel.alpha / scale) / (1.0 + pairs.squared_distance() / scale)
    if isinstance(kernel, Laplacian2):
        return _with_kink(kernel.evaluate(pairs), pairs.distance(), kernel.chosen_bandwidth)
    if isinstance(kernel, Matern):
        return _matern(kernel, pairs)
    message = f"{kernel} is not radial"
    raise TypeError(message)


def _matern(kernel: Matern, pairs: DensePairs) -> Array:
    """Return the weights of a Matern kernel: of smoothness nu they are one of smoothness nu - 1.

    With z = sqrt(2 nu) d / s: d/dz [z^nu K_nu(z)] = -z^nu K_(nu-1)(z), and K_(nu-1) = K_(1-nu).
    """
    nu, bandwidth = kernel.nu, kernel.chosen_bandwidth
    if nu > 1.0:
        rougher = Matern(bandwidth * math.sqrt((nu - 1.0) / nu), nu=nu - 1.0)
        return rougher.evaluate(pairs) * (nu / ((nu - 1.0) * bandwidth**2))
    from scipy.special import kve  # noqa: PLC0415 - 0.2 s of import that only this branch needs

    z = np.maximum(pairs.distance() * (math.sqrt(2.0 * nu) / bandwidth), KINK)
    factor = 2.0 ** (1.0 - nu) / math.gamma(nu) * 2.0 * nu / bandwidth**2
    weights: Array = kve(1.0 - nu, z) * np.exp(-z) * z ** (nu - 1.0) * factor
    return weights


def _with_kink(values: Array, distances: Array, bandwidth: float) -> Array:
    """Return exp(-d / s) / (s d): a centre that is hit attracts strongly, not infinitely."""
    return values / (bandwidth * np.maximum(distances, KINK * bandwidth))


def _by_column(kernel: Laplacian, pairs: DensePairs, columns: tuple[int, ...]) -> list[Attraction]:
    """Return the weights of a sum of absolute differences: k / (s |z_c - x_c|), its own for each column."""
    values, bandwidth = kernel.evaluate(pairs), kernel.chosen_bandwidth
    return [
        Attraction((column,), _with_kink(values, np.abs(difference), bandwidth))
        for column, difference in zip(columns, pairs.differences(), strict=True)
    ]


_RADIAL = (Gaussian, StudentT, RationalQuadratic, Laplacian2, Matern)
