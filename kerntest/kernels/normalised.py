"""Kernels divided by the size of their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from kerntest.kernels.algebra import Modified
from kerntest.kernels.arrays import writeable
from kerntest.kernels.names import NORMALISE

if TYPE_CHECKING:
    from kerntest.kernels.base import Array, Pairs, Points


@dataclass(frozen=True, slots=True)
class Normalised(Modified):
    """k(x, y) / sqrt(k(x, x) k(y, y)): 1 on the diagonal. A row with k(x, x) = 0 gives 0.

    Parameters
    ----------
    kernel : Expression
        The kernel to normalise.
    """

    name: ClassVar[str] = NORMALISE
    formula: ClassVar[str] = "k(x,y) / sqrt(k(x,x) k(y,y))"

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the normalised value for every pair."""
        values = writeable(self.kernel.evaluate(pairs))
        values *= pairs.of_left(self._inverse_root)
        values *= pairs.of_right(self._inverse_root)
        return values

    def diagonal(self, points: Points) -> Array:
        """Return 1 for every row, 0 where the kernel itself vanishes."""
        return (self.kernel.diagonal(points) > 0).astype(np.float64)

    def _inverse_root(self, points: Points) -> Array:
        values = self.kernel.diagonal(points)
        return np.divide(values > 0, np.sqrt(np.where(values > 0, values, 1.0)), dtype=np.float64)

    def __str__(self) -> str:
        """Return normalise(kernel)."""
        return f"{self.name}({self.kernel})"
