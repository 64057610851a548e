"""Kernels of equality: all that counts is in which columns two rows agree.

They see every column they are given, numeric ones by equality. Binding an expression to a table gives them the
category columns where there are any (see `binding`). On categories they are characteristic. On numeric columns they
see only values that occur more than once: to them two continuous distributions, however different, look alike.
`OnColumns` knows which case it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from kerntest.kernels.arrays import shaped
from kerntest.kernels.atoms import Atom, BandwidthAtom

if TYPE_CHECKING:
    from kerntest.kernels.algebra import Kind
    from kerntest.kernels.base import Array, Metric, Pairs, Points


class Discrete(Atom):
    """A kernel of equality: k(x, x) = 1. Characteristic (on categories) and infinitely divisible."""

    kind: ClassVar[Kind] = "discrete"

    @property
    def positive_definite(self) -> bool:
        """Always: a product of positive definite kernels of one column."""
        return True

    @property
    def characteristic(self) -> bool:
        """Always, on category columns: strictly positive definite on finitely many levels."""
        return True

    @property
    def infinitely_divisible(self) -> bool:
        """Always: a power is the same kernel, or that with another bandwidth."""
        return True

    def diagonal(self, points: Points) -> Array:
        """Return 1 for every row."""
        return np.ones(len(points))


@dataclass(frozen=True, slots=True)
class Delta(Discrete):
    """k(x, y) = 1 where x and y agree in every column, else 0."""

    name: ClassVar[str] = "delta"
    formula: ClassVar[str] = "1 if x = y, else 0"
    remark: ClassVar[str] = "for one or two category columns; over many columns hardly any two rows agree"

    def evaluate(self, pairs: Pairs) -> Array:
        """Return 1.0 where x and y agree, else 0.0."""
        return shaped(pairs.equal().astype(np.float64), pairs.shape)


@dataclass(frozen=True, slots=True)
class Hamming(BandwidthAtom, Discrete):
    """k(x, y) = exp(-(number of columns in which x and y differ) / h).

    Parameters
    ----------
    bandwidth : float or None
        h, in columns.
    """

    name: ClassVar[str] = "hamming"
    formula: ClassVar[str] = "exp(-(number of columns that differ) / bandwidth)"
    remark: ClassVar[str] = "for category columns, any number of them"
    metric: ClassVar[Metric] = "mismatches"

    def evaluate(self, pairs: Pairs) -> Array:
        """Return k(x, y) for every pair."""
        bandwidth = self.chosen_bandwidth

        def values() -> Array:
            count = pairs.mismatches()
            for differ in pairs.unequal():
                count = count + differ
            scaled = np.multiply(count, -1 / bandwidth)
            return np.exp(scaled, out=scaled)

        return shaped(pairs.values_of(Hamming, bandwidth, 1, values), pairs.shape)
