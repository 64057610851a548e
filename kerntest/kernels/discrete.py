"""Kernels of equality: all that counts is in which columns two rows agree.

They see every column they are given, numeric ones by equality. Binding an expression to a table gives them the
category columns where there are any (see `columns.bind`). On categories they are characteristic: strictly positive definite
on finitely many levels. On numeric columns they see only values that occur more than once: to them two continuous
distributions, however different, look alike. `OnColumns` knows which case it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from kerntest.kernels.algebra import Atom, BandwidthAtom
from kerntest.kernels.base import shaped

if TYPE_CHECKING:
    from kerntest.kernels.algebra import Kind
    from kerntest.kernels.base import Array, Metric, Pairs


@dataclass(frozen=True, slots=True)
class Delta(Atom):
    """k(x, y) = 1 where x and y agree in every column, else 0."""

    name: ClassVar[str] = "delta"
    formula: ClassVar[str] = "1 if x = y, else 0"
    remark: ClassVar[str] = "for one or two category columns; over many columns hardly any two rows agree"
    kind: ClassVar[Kind] = "discrete"
    characteristic = True
    infinitely_divisible = True

    def evaluate(self, pairs: Pairs) -> Array:
        """Return 1.0 where x and y agree, else 0.0."""
        return shaped(pairs.equal().astype(np.float64), pairs.shape)


@dataclass(frozen=True, slots=True)
class Hamming(BandwidthAtom):
    """k(x, y) = exp(-(number of columns in which x and y differ) / h), with h in columns."""

    name: ClassVar[str] = "hamming"
    formula: ClassVar[str] = "exp(-(number of columns that differ) / bandwidth)"
    remark: ClassVar[str] = "for category columns, any number of them"
    kind: ClassVar[Kind] = "discrete"
    metric: ClassVar[Metric] = "mismatches"
    squarings: ClassVar[int] = 1

    def values(self, pairs: Pairs, bandwidth: float) -> Array:
        """Return k(x, y) as a new array."""
        count = pairs.mismatches()
        for difference in pairs.differences():
            count = count + (difference != 0)
        scaled = np.multiply(count, -1 / bandwidth)
        return np.exp(scaled, out=scaled)
