"""The exact mean, variance and skewness of <A, B> over all n! relabellings, and a Pearson III tail through them.

A and B are symmetric with zero row sums. Each moment is a sum of products of an invariant of A and one of B. The first
two are those of Kazi-Aoual et al. (1995). The third is E[T^3] = sum_P m_P(A) m_P(B) / (n)_|P| over the set partitions
P of the six index places of A_ij A_kl A_mn: m_P sums over indices that are equal within the parts of P and different
between them, and comes by Moebius inversion from unrestricted sums, most of which vanish with the row sums.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kerntest.inference.nulls.pearson import log_upper_tail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kerntest.kernels.base import Array

# Differences of sums below this share of the sums are rounding.
CANCELLED = 1e-12

Places: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Invariants:
    """The sums over a centred matrix M, with diagonal d, that three moments are made of."""

    # sum d_i, sum M_ij^2, sum d_i^2, sum d_i^3.
    trace: float
    trace_square: float
    diagonal_square: float
    diagonal_cube: float
    # sum_i d_i (M^2)_ii, sum_ij d_i M_ij d_j.
    diagonal_with_square: float
    diagonal_form: float
    # tr M^3, sum_ij M_ij^3.
    trace_cube: float
    entry_cubes: float

    def third_order(self) -> Array:
        """Return the eight unrestricted sums of third order, in the order of `_TERMS`."""
        t = self.trace
        return np.array(
            [
                t**3,
                t * self.diagonal_square,
                self.diagonal_cube,
                t * self.trace_square,
                self.diagonal_with_square,
                self.diagonal_form,
                self.trace_cube,
                self.entry_cubes,
            ]
        )


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean, standard deviation and skewness of <A, B> over all relabellings."""

    mean: float
    standard_deviation: float
    skewness: float


def permutation_moments(a: Invariants, b: Invariants, n: int) -> Moments:
    """Return the exact moments of sum_ij A_ij B_{p(i) p(j)} for a uniform permutation p of n >= 4 rows.

    Cost: O(1), from the invariants of both matrices.
    """
    mean = a.trace * b.trace / (n - 1)
    spread = _spread(a, n) * _spread(b, n) * 2.0 / ((n - 1) ** 2 * (n + 1) * (n - 2))
    tips = _tips(a, n) * _tips(b, n) / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    variance = max(spread + tips, 0.0)
    third_a, third_b = a.third_order(), b.third_order()
    raw = 0.0
    for parts, weights in _third_moment_table():
        if n >= parts:
            raw += float(np.dot(weights, third_a)) * float(np.dot(weights, third_b)) / math.perm(n, parts)
    central = raw - 3.0 * mean * variance - mean**3
    # Of values whose cubes are too small for a float nothing is known.
    cubed = variance**1.5
    skewness = central / cubed if cubed > 0 else 0.0
    return Moments(float(mean), math.sqrt(variance), float(skewness))


def moments_p_value(value: float, moments: Moments) -> float:
    """Return the upper tail at `value` of the Pearson III curve through the moments; never 0."""
    z = (value - moments.mean) / moments.standard_deviation
    return max(math.exp(float(log_upper_tail(z, moments.skewness))), sys.float_info.min)


def _spread(m: Invariants, n: int) -> float:
    return _difference((n - 1) * m.trace_square, m.trace**2)


def _tips(m: Invariants, n: int) -> float:
    return _difference(n * (n + 1) * m.diagonal_square, (n - 1) * (m.trace**2 + 2.0 * m.trace_square))


def _difference(a: float, b: float) -> float:
    """Return a - b, or 0 where it is no more than their rounding: a statistic that cannot vary has variance 0."""
    return 0.0 if abs(a - b) <= CANCELLED * (abs(a) + abs(b)) else a - b


_TERMS = ("ttt", "ts", "ddd", "tq", "dq", "dmd", "cube", "entries")


@cache
def _third_moment_table() -> list[tuple[int, Array]]:
    """Return, for every set partition of the six places, its number of parts and its weights on the eight sums."""
    table = []
    for partition in _set_partitions(tuple(range(6))):
        weights: Counter[str] = Counter()
        for merger in _set_partitions(tuple(range(len(partition)))):
            merged = tuple(tuple(place for part in group for place in partition[part]) for group in merger)
            term = _term(merged)
            if term is not None:
                # Moebius function of the lattice of partitions.
                weights[term] += math.prod((-1) ** (len(g) - 1) * math.factorial(len(g) - 1) for g in merger)
        if weights:
            table.append((len(partition), np.array([float(weights[term]) for term in _TERMS])))
    return table


def _set_partitions(items: tuple[int, ...]) -> Iterator[Places]:
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for partition in _set_partitions(rest):
        yield ((first,), *partition)
        for k, part in enumerate(partition):
            yield (*partition[:k], (first, *part), *partition[k + 1 :])


def _term(partition: Places) -> str | None:
    """Return which sum of third order a partition stands for: three edges on its parts; None if it vanishes."""
    if any(len(part) == 1 for part in partition):
        # A free index sums over a whole row, which is zero.
        return None
    part_of = {place: k for k, part in enumerate(partition) for place in part}
    edges = [(part_of[2 * e], part_of[2 * e + 1]) for e in range(3)]
    loops = [u for u, v in edges if u == v]
    nodes = len(partition)
    if len(loops) == 3:
        return {3: "ttt", 2: "ts", 1: "ddd"}[nodes]
    if len(loops) == 2:
        return "dmd"
    if len(loops) == 1:
        return "tq" if nodes == 3 else "dq"
    return "cube" if nodes == 3 else "entries"
