"""Kernels of the inner product <x, y>. They depend on where the origin is, hence on the scaling of the columns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from kerntest.kernels.arguments import FINITE, POSITIVE, WHOLE
from kerntest.kernels.arrays import raised, refuse_overflow, shaped
from kerntest.kernels.atoms import Atom
from kerntest.kernels.base import Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.kernels.algebra import Kind
    from kerntest.kernels.base import Array, Kernel, Pairs


class Dot(Atom):
    """A function of <x, y> alone."""

    kind: ClassVar[Kind] = "numeric"

    @property
    def positive_definite(self) -> bool:
        """Whether the power series of the function has no negative coefficient."""
        return True

    def evaluate(self, pairs: Pairs) -> Array:
        """Return k(x, y) for every pair.

        Raises
        ------
        UndecidedError
            If a value is too large for a float.
        """
        with refuse_overflow(self):
            inner = shaped(pairs.inner_product().copy(), pairs.shape)
            return self._of_inner_product(inner)

    def diagonal(self, points: Points) -> Array:
        """Return k(x, x) for every row; `evaluate` says what it raises."""
        with refuse_overflow(self):
            inner: Array = np.square(points.numeric).sum(axis=1)
            return self._of_inner_product(inner)

    @abstractmethod
    def _of_inner_product(self, inner: Array) -> Array:
        """Return the kernel's values; may be written over `inner`."""


@dataclass(frozen=True, slots=True)
class Linear(Dot):
    """k(x, y) = <x, y>. The test with it compares the means and nothing else."""

    name: ClassVar[str] = "linear"
    formula: ClassVar[str] = "<x,y>"
    remark: ClassVar[str] = "compares means only"

    @property
    def characteristic(self) -> bool:
        """Never: it sees differences of means only."""
        return False

    def _of_inner_product(self, inner: Array) -> Array:
        return inner


@dataclass(frozen=True, slots=True)
class Polynomial(Dot):
    """k(x, y) = (gain <x, y> + offset)^degree. The test with it compares moments up to order `degree`.

    Parameters
    ----------
    degree : float
        A whole number from 1 to 1000.
    gain, offset : float
        Positive definite when neither is negative.
    """

    name: ClassVar[str] = "polynomial"
    formula: ClassVar[str] = "(gain <x,y> + offset)^degree"
    remark: ClassVar[str] = "compares moments up to the degree only"

    degree: float = field(default=3.0, metadata=WHOLE)
    gain: float = field(default=1.0, metadata=FINITE)
    offset: float = field(default=1.0, metadata=FINITE)

    @property
    def positive_definite(self) -> bool:
        """Whether neither gain nor offset is negative."""
        return self.gain >= 0 and self.offset >= 0

    @property
    def characteristic(self) -> bool:
        """Never: it sees moments up to the degree only."""
        return False

    def _of_inner_product(self, inner: Array) -> Array:
        np.multiply(inner, self.gain, out=inner)
        np.add(inner, self.offset, out=inner)
        return raised(inner, self.degree)


@dataclass(frozen=True, slots=True)
class Exponential(Dot):
    """k(x, y) = exp(gain <x, y>). Universal on bounded data, hence characteristic.

    Parameters
    ----------
    gain : float
        Positive; one over the square of a length.
    """

    name: ClassVar[str] = "exponential"
    formula: ClassVar[str] = "exp(gain <x,y>)"
    remark: ClassVar[str] = "compares all moments; grows fast, so scale the columns"

    gain: float = field(default=1.0, metadata=POSITIVE)

    @property
    def characteristic(self) -> bool:
        """Always: its power series has only positive coefficients (Steinwart and Christmann 2008, cor. 4.57)."""
        return True

    @property
    def infinitely_divisible(self) -> bool:
        """Always: its power p is the exponential kernel with p times the gain."""
        return True

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
