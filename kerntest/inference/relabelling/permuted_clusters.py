"""Two variables over rows of which some belong together, under every relabelling of whole clusters.

With A centred and B of a side that is constant within clusters, <A, B_p> is the sum over pairs of clusters of the sums of A
there times B. Clusters of one size that stand one after another on a circle change places by shifts: all these are as
quick as shifts of rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.errors import UndecidedError, counted, either, option
from kerntest.inference.relabelling.permuted_pairs import Orders, TwoVariables
from kerntest.inference.relabelling.shifts import circle_length, orders_needed
from kerntest.inference.sides import ORDER_STREAM, Held, Resampling
from kerntest.inference.statistic import centring_divisors
from kerntest.matrices.passes import HELD_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from numpy.typing import NDArray

    from kerntest.inference.family import Family
    from kerntest.inference.verdict import Relabelled
    from kerntest.kernels.base import Array, Kernel

# So many clusters at most are permuted as matrices of their sums where shifts can do it too.
FEW_CLUSTERS = 300
# Of what has room so much is advised: of fewer rows there may be more kernels.
ROOM = 0.7


def exchanged(units: NDArray[np.intp], sides: Sequence[NDArray[Any]]) -> list[int]:
    """Return how many clusters of each size, or of all, may change places; of a size in which a side is alike none does.

    `units` are codes of clusters from 0; sides have shape (n, columns).
    """
    sizes, order = np.bincount(units), np.argsort(units, kind="stable")
    if any(_constant_within(units, side) for side in sides):
        return [len(sizes)]
    # Sorted, the rows of a cluster stand together.
    rows = [order[np.repeat(sizes == size, sizes)].reshape(-1, size) for size in np.unique(sizes)]
    return [0 if any((side[some] == side[some[0]]).all() for side in sides) else len(some) for some in rows]


def most_relabellings(exchanged: Sequence[int]) -> int:
    """Return how many relabellings there are at most: of some 20 clusters more than anybody can ask for."""
    return math.prod(math.factorial(min(count, 20)) for count in exchanged)


def _constant_within(units: NDArray[np.intp], side: NDArray[Any]) -> bool:
    """Say whether a side has one value in all rows of each cluster."""
    first = np.unique(units, return_index=True)[1][units]
    return bool((side == side[first]).all())


@dataclass(frozen=True, eq=False)
class ClusteredVariables(TwoVariables):
    """x and y over rows of which some belong together: `units`, shape (n,), are codes of clusters from 0.

    A side that is constant within clusters moves between them. Where neither is, clusters of one size exchange their rows,
    in their order.
    """

    units: NDArray[np.intp]
    name: str

    usual: ClassVar[Resampling] = "random"
    exchangeable: ClassVar[bool] = False

    def by_shifts_if_less(self) -> Self:
        """Return the test by cyclic shifts of clusters where they are of one size, and matrices of their sums would be more."""
        sizes = self._sizes
        shifted = (sizes == sizes[0]).all() and (self._constant is None or len(sizes) > FEW_CLUSTERS)
        return replace(self, options=replace(self.options, resampling="shifts" if shifted else "random"))

    @cached_property
    def _sizes(self) -> NDArray[np.intp]:
        """How many rows each cluster has."""
        return np.bincount(self.units)

    @cached_property
    def _constant(self) -> int | None:
        """Which side is constant within clusters."""
        return next((side for side in (1, 0) if _constant_within(self.units, self._values[side])), None)

    @cached_property
    def _values(self) -> list[Array]:
        """The columns of both sides."""
        return [np.hstack([side.numeric, side.codes]) for side in self.points]

    @cached_property
    def _exchanged(self) -> list[int]:
        """How many clusters may change places."""
        return exchanged(self.units, self._values)

    @property
    def circle(self) -> int:
        """How many of the rows are shifted: those of whole clusters."""
        return self.stride * circle_length(len(self._sizes))

    @property
    def stride(self) -> int:
        """Which shifts are relabellings: those by whole clusters."""
        return int(self._sizes[0])

    @property
    def dense(self) -> Held:
        """Of how many rows, or sums over clusters, random permutations hold whole matrices, and which part is small enough."""
        what = "rows" if self._constant is None else f"clusters of {self.name!r}"
        return Held(self.n if self._constant is None else len(self._sizes), what, self._part)

    def _part(self, most: int) -> str:
        """Return what takes a part of the rows that is of so many rows, or clusters, at most.

        A share f of the rows has one of a cluster of size s with probability 1 - (1 - f)^s.
        """
        f = most / self.n if self._constant is None else 0.99
        while self._constant is not None and float(np.sum(-np.expm1(self._sizes * np.log1p(-f)))) > most:
            f *= 0.95
        # No more than two digits, rounded down.
        digits = 10 ** max(0, math.floor(math.log10(ROOM * f * self.n)) - 1)
        few = int(ROOM * f * self.n) // digits * digits
        return f"{option('sample', few)} takes a part of the rows; clusters of one size have no such limit"

    def orders(self, at_least: int) -> Orders:
        """Return the rows of clusters one after another, the clusters in random orders."""
        rng, count = np.random.default_rng((self.options.seed, ORDER_STREAM)), len(self._sizes)
        rows = np.argsort(self.units, kind="stable").reshape(count, -1)
        return [rng.permutation(rows).ravel() for _ in range(orders_needed(at_least, circle_length(count)))]

    def different(self, relabellings: int) -> int:
        """Return how many of so many relabellings can be different."""
        return min(relabellings, most_relabellings(self._exchanged))

    def checked(self) -> Self:
        """Return the same; refuse clusters of which no number of relabellings can reject, before anything is computed."""
        self._refuse_few(self.different(self.options.permutations))
        return self

    def _refuse_few(self, different: int) -> None:
        """Refuse so few different relabellings that their smallest p-value is above alpha."""
        if different * self.options.alpha >= 1.0:
            return
        if not any(self._exchanged) and np.bincount(self._sizes).max() > 1:
            raise self._alike("undecided.degenerate_kernel")
        hint = "more clusters would"
        if self._constant is None:
            hint += ", or clusters of one size, or a side that is constant within them"
        told = (
            f"{counted(different, 'relabelling')} of clusters cannot give a p-value below {1.0 / different:.2g}, and "
        )
        raise UndecidedError(f"{told}alpha is {self.options.alpha:g}", hint=hint, code="undecided.floor")

    def _alike(self, code: str) -> UndecidedError:
        """Return the error for clusters that may change places without a change of the statistic."""
        hint = (
            f"leave out {option('cluster')} where the rows of a cluster are independent of each other; or compare groups of rows, "
            f"each with one row of every cluster, by {either('`kerntest mmd --by` and --paired', 'mmd_test with by= and paired=')}"
        )
        told = "the statistic is the same whichever clusters change places: a side is alike in all of them"
        return UndecidedError(told, hint=hint, code=code)

    def relabelled(self, family: Family, at_least: int) -> Relabelled:
        """Return <A, B> of all pairs under at least so many relabellings, in the time of random permutations or less."""
        found = super().relabelled(family, at_least)
        self._refuse_few(found.different)
        way = "permutations" if self.options.resampling == "random" else "cyclic shifts"
        moved, every = sum(count for count in self._exchanged if count > 1), len(self._sizes)
        some = f"{every:,}" if moved == every else f"{moved:,} of {every:,}"
        return found._replace(resampling=f"{way} of {some} whole clusters ({self.name})")

    def degenerate(self, kernels: tuple[Kernel, ...]) -> UndecidedError:
        """Return the error for clusters that may change places without a change of the statistic."""
        error = super().degenerate(kernels)
        return error if self._constant is not None else self._alike(error.code)

    def _matrices(self, family: Family) -> list[Array]:
        """Return sums over pairs of clusters of the side that stays, and one entry of each of the other."""
        side = self._constant
        if side is None:
            return super()._matrices(family)
        first = np.unique(self.units, return_index=True)[1]
        kernels = family.sides()
        own = np.stack([kernel(self.points[side].take(first)) for kernel in kernels[side]])
        summed = np.stack([self._summed(kernel, 1 - side) for kernel in kernels[1 - side]])
        return [summed, own] if side == 1 else [own, summed]

    def _summed(self, kernel: Kernel, side: int) -> Array:
        """Return the sums of a centred matrix over pairs of clusters, of some rows at a time."""
        points, sizes, hollow = self.points[side], self._sizes, self.options.hollow
        order = np.argsort(self.units, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        columns, height = points.take(order), max(1, HELD_ENTRIES // self.n)

        def strip(rows: NDArray[np.intp]) -> Array:
            K = np.array(kernel(points.take(order[rows]), columns), dtype=np.float64)
            if hollow:
                K[np.arange(len(rows)), rows] = 0.0
            return np.asarray(np.add.reduceat(K, starts, axis=1))

        strips = [np.arange(start, min(start + height, self.n)) for start in range(0, self.n, height)]
        of_rows = np.concatenate(list(self.engine.here.map(strip, strips, self.progress)))
        centre, grand = centring_divisors(self.n, hollow=hollow)
        S: Array = np.add.reduceat(of_rows, starts, axis=0)
        rows = S.sum(axis=1)
        outer = np.outer(sizes, rows / centre)
        S -= outer + outer.T
        S += np.outer(sizes, sizes) * (rows.sum() / grand)
        if hollow:
            # Centring does not reach the diagonal, which stays 0.
            S[np.diag_indices_from(S)] += 2.0 * rows / centre - sizes * (rows.sum() / grand)
        return S

    def _permutations(self, at_least: int) -> list[NDArray[np.intp]]:
        """Return which cluster, or which row of one of its size, takes the place of each."""
        rng = np.random.default_rng((self.options.seed, ORDER_STREAM))
        sizes = self._sizes
        if self._constant is not None:
            return [np.arange(len(sizes)), *(rng.permutation(len(sizes)) for _ in range(at_least - 1))]
        # In each cluster its rows keep their order, which may be one of time.
        order = np.argsort(self.units, kind="stable")
        of_size = [order[np.repeat(sizes == size, sizes)].reshape(-1, size) for size in np.unique(sizes)]
        every = [np.arange(self.n)]
        for _ in range(at_least - 1):
            p = np.empty(self.n, dtype=np.intp)
            for rows in of_size:
                p[rows] = rng.permutation(rows)
            every.append(p)
        return every
