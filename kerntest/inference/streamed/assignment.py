"""Rows to blocks at random, in no memory: a pseudo-random permutation of the row numbers.

A Feistel network on the bits of a number is a permutation whatever its round function is (Luby and Rackoff 1988).
Numbers that it takes beyond n are sent through it again until they come back (cycle walking, Black and Rogaway 2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Tells these streams from other streams of the same seed.
ASSIGNMENT_STREAM = 5
ROUNDS = 8
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose bits have nothing left in common with those given: splitmix64 (Steele et al. 2014)."""
    values = values + _GOLDEN
    values = (values ^ (values >> _SHIFT_1)) * _MIX_1
    values = (values ^ (values >> _SHIFT_2)) * _MIX_2
    return values ^ (values >> _SHIFT_3)


@dataclass(frozen=True, slots=True)
class RandomOrder:
    """A pseudo-random permutation of range(n), any part of which can be asked for.

    Parameters
    ----------
    n : int
        Rows.
    seed, stream : int
        The same order for the same three numbers, on every machine.
    """

    n: int
    seed: int
    stream: int

    def places(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the place of each row in the order.

        Parameters
        ----------
        rows : ndarray of int, shape (m,)
            In range(n).

        Returns
        -------
        ndarray of int64, shape (m,)

        Notes
        -----
        Cost: O(m) time and memory; at most two walks a row on average.
        """
        keys = np.random.default_rng((self.seed, ASSIGNMENT_STREAM, self.stream)).integers(
            0, 2**64, ROUNDS, dtype=np.uint64
        )
        # At least one bit on either side.
        bits = max(2, (self.n - 1).bit_length())
        values = self._walked(rows.astype(np.uint64), bits, keys)
        (outside,) = np.nonzero(values >= self.n)
        while len(outside):
            again = self._walked(values[outside], bits, keys)
            values[outside] = again
            outside = outside[again >= self.n]
        return values.astype(np.int64)

    def _walked(self, values: NDArray[np.uint64], bits: int, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the network's image of numbers of so many bits; its halves are changed in turn."""
        low_bits = np.uint64(bits // 2)
        low_mask = (np.uint64(1) << low_bits) - np.uint64(1)
        high_mask = (np.uint64(1) << np.uint64(bits - bits // 2)) - np.uint64(1)
        low, high = values & low_mask, values >> low_bits
        for number, key in enumerate(keys):
            if number % 2:
                low = low ^ (mixed(high ^ key) & low_mask)
            else:
                high = high ^ (mixed(low ^ key) & high_mask)
        return (high << low_bits) | low


@dataclass(frozen=True, slots=True)
class Blocks:
    """How the rows of one table lie in blocks: free ones of equal size, and a few that keep their table.

    Parameters
    ----------
    n : int
        Rows.
    free : int
        Blocks that relabellings move, of `size` rows each.
    size : int
    fixed : int
        Blocks that the other rows lie in, of any size.
    """

    n: int
    free: int
    size: int
    fixed: int

    @property
    def fixed_rows(self) -> int:
        """Rows beyond the free blocks."""
        return self.n - self.free * self.size

    @property
    def count(self) -> int:
        """All blocks."""
        return self.free + self.fixed

    def of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the block of each place in a random order: free ones first."""
        blocks = places // self.size
        beyond = places - self.free * self.size
        (late,) = np.nonzero(beyond >= 0)
        blocks[late] = self.free + beyond[late] * self.fixed // max(self.fixed_rows, 1)
        return blocks

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of rows of each block, shape (free + fixed,)."""
        found = np.full(self.count, self.size, dtype=np.int64)
        if self.fixed:
            # Block j holds the places r with floor(r fixed / rows) = j.
            starts = -(-np.arange(self.fixed + 1) * self.fixed_rows // self.fixed)
            found[self.free :] = np.diff(starts)
        return found
