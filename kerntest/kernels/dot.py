"""Kernels of the inner product <x, y>. They depend on where the origin is, hence on the scaling of the columns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from kerntest.kernels.algebra import POSITIVE, Atom, Domain, argument
from kerntest.kernels.base import Points, raised, refuse_overflow, shaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.kernels.algebra import Kind
    from kerntest.kernels.base import Array, Kernel, Pairs

FINITE = Domain("finite", lambda _: True)
WHOLE = Domain("a whole number from 1 to 1000", lambda value: value.is_integer() and 1 <= value <= 1000)


class Dot(Atom):
    """A function of <x, y> alone: positive definite where its power series has no negative coefficient."""

    kind: ClassVar[Kind] = "numeric"

    def evaluate(self, pairs: Pairs) -> Array:
        """Return k(x, y) for every pair."""
        with refuse_overflow(self):
            return self._of_inner_product(shaped(pairs.inner_product().copy(), pairs.shape))

    def diagonal(self, points: Points) -> Array:
        """Return k(x, x) for every row."""
        with refuse_overflow(self):
            return self._of_inner_product(np.square(points.numeric).sum(axis=1))

    @abstractmethod
    def _of_inner_product(self, inner: Array) -> Array:
        """Return the kernel's values; may be written over `inner`."""


@dataclass(frozen=True, slots=True)
class Linear(Dot):
    """k(x, y) = <x, y>. The test with it compares the means and nothing else."""

    name: ClassVar[str] = "linear"
    formula: ClassVar[str] = "<x,y>"
    remark: ClassVar[str] = "compares means only"

    def _of_inner_product(self, inner: Array) -> Array:
        return inner


@dataclass(frozen=True, slots=True)
class Polynomial(Dot):
    """k(x, y) = (gain <x, y> + offset)^degree. The test with it compares moments up to order `degree`."""

    name: ClassVar[str] = "polynomial"
    formula: ClassVar[str] = "(gain <x,y> + offset)^degree"
    remark: ClassVar[str] = "compares moments up to the degree only"

    degree: float = argument(WHOLE, 3.0)
    gain: float = argument(FINITE, 1.0)
    offset: float = argument(FINITE, 1.0)

    @property
    def positive_definite(self) -> bool:
        """Whether neither gain nor offset is negative."""
        return self.gain >= 0 and self.offset >= 0

    def _of_inner_product(self, inner: Array) -> Array:
        np.multiply(inner, self.gain, out=inner)
        np.add(inner, self.offset, out=inner)
        return raised(inner, self.degree)


@dataclass(frozen=True, slots=True)
class Exponential(Dot):
    """k(x, y) = exp(gain <x, y>), with one over the square of a length as gain.

    Its power series has only positive coefficients: universal on bounded data, hence characteristic (Steinwart and
    Christmann 2008, cor. 4.57). Its power p is the same kernel with p times the gain.
    """

    name: ClassVar[str] = "exponential"
    formula: ClassVar[str] = "exp(gain <x,y>)"
    remark: ClassVar[str] = "compares all moments; grows fast, so scale the columns"
    characteristic = True
    infinitely_divisible = True

    gain: float = argument(POSITIVE, 1.0)

    def _of_inner_product(self, inner: Array) -> Array:
        np.multiply(inner, self.gain, out=inner)
        return np.exp(inner, out=inner)


def moved_to_origin(points: Points, kernels: Sequence[Kernel]) -> Points:
    """Return rows with their mean at the origin where every kernel is the linear one, which centring makes blind to it.

    A common offset would only take digits away from all that is computed.
    """
    if not all(isinstance(kernel, Linear) for kernel in kernels):
        return points
    return Points(points.numeric - points.numeric.mean(axis=0), points.codes)
