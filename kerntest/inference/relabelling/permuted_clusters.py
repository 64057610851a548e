"""Two variables over rows of which some belong together, under every relabelling of whole clusters.

With A centred and B of a side that is constant within clusters, <A, B_p> is the sum over pairs of clusters of the sums of A
there times B. Clusters of one size that stand one after another on a circle change places by shifts: all these are as
quick as shifts of rows. So do many clusters of several sizes on circles of their own; few are permuted at random.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.errors import UndecidedError, counted, either, option
from kerntest.inference.relabelling.circles import (
    Circles,
    Entries,
    by_products,
    centring_of,
    circle_sums,
    on_circles,
    usual_orders,
)
from kerntest.inference.relabelling.designs import UNEVEN, UNLIKE, orders_of
from kerntest.inference.relabelling.permuted_pairs import Orders, TwoVariables, pairs_of
from kerntest.inference.relabelling.shifts import circle_length, is_smooth, orders_needed
from kerntest.inference.sides import ORDER_STREAM, Resampling
from kerntest.inference.statistic import centring_divisors
from kerntest.matrices.passes import HELD_ENTRIES
from kerntest.report.results.record import ALL_PERMUTATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from kerntest.inference.family import Family
    from kerntest.inference.verdict import Relabelled
    from kerntest.kernels.base import Array, Kernel

# So many rows at most, or clusters where their sums do, are permuted as whole matrices where shifts can do it too.
FEW_CLUSTERS = 300
# Where a side is alike in most clusters those that change the statistic have such a share of the rows at least; of less than
# the second share a test tells that the others are not tested.
FEWEST_MOVED, MOST_TOLD = 0.2, 0.5
# What goes by places in clusters is told from this share of a side on; so many categories of a column are looked at.
MOST_KEPT, LEVELS = 0.5, 20


class Exchanged(NamedTuple):
    """Which clusters may change places: how many of each size, or of all, and the `rows` of those of so many that others can follow.

    Of a size in which a side is alike none changes places: so many rows are `alike`, of all `n`.
    """

    counts: list[int]
    rows: int
    alike: int
    n: int

    @classmethod
    def of(cls, units: NDArray[np.intp], sides: Sequence[NDArray[Any]]) -> Self:
        """Return them of clusters, as codes from 0; sides have shape (n, columns)."""
        n = len(units)
        if any(_constant_within(units, side) for side in sides):
            return cls([len(np.bincount(units))], n, 0, n)
        rows = rows_by_size(units)
        alike = [any((side[some] == side[some[0]]).all() for side in sides) for some in rows]
        counts = [0 if one else len(some) for some, one in zip(rows, alike, strict=True)]
        moved = sum(some.size for some, count in zip(rows, counts, strict=True) if count > 1)
        return cls(
            counts, moved, sum(some.size for some, one in zip(rows, alike, strict=True) if one and len(some) > 1), n
        )

    @property
    def clusters(self) -> int:
        """How many clusters change places."""
        return sum(count for count in self.counts if count > 1)

    @property
    def relabellings(self) -> int:
        """How many relabellings there are at most: of some 20 clusters more than anybody can ask for."""
        return math.prod(map(orders_of, self.counts))

    @property
    def by_likeness(self) -> bool:
        """Whether of the rows that keep their place most are in clusters of which a side is alike."""
        return 2 * self.alike > self.n - self.rows

    @property
    def too_few(self) -> bool:
        """Whether the statistic is nearly the same whichever clusters change places: a side is alike in most."""
        return self.by_likeness and self.rows < FEWEST_MOVED * self.n


def rows_by_size(units: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of the clusters of each size, shape (clusters, size); in each in their order, which may be one of time."""
    sizes, order = np.bincount(units), np.argsort(units, kind="stable")
    # Sorted, the rows of a cluster stand together.
    return [order[np.repeat(sizes == size, sizes)].reshape(-1, size) for size in np.unique(sizes)]


def kept_by_place(units: NDArray[np.intp], numeric: Array, codes: NDArray[Any]) -> float:
    """Return which share of the variance of columns is between the places of rows in clusters of their size, above chance.

    Of numbers, shape (n, columns), and of codes of categories.
    """
    several = [some for some in rows_by_size(units) if len(some) > 1]
    starts = np.cumsum([0, *(some.shape[1] for some in several)])
    rows = np.concatenate([some.ravel() for some in several])
    places = np.concatenate(
        [np.tile(start + np.arange(some.shape[1]), len(some)) for start, some in zip(starts, several, strict=False)]
    )
    if len(rows) <= starts[-1]:
        return 0.0
    levels = [
        column == level for column in codes[rows].T for level in np.unique(column, return_counts=True)[0][:LEVELS]
    ]
    columns = np.column_stack([numeric[rows], *levels]).astype(np.float64)
    columns -= columns.mean(axis=0)
    means = np.column_stack([np.bincount(places, column) for column in columns.T]) / np.bincount(places)[:, None]
    total = float(np.square(columns).sum())
    rest = total - float(np.square(means[places]).sum())
    # In so many means as there are places is as much of what is independent.
    return 1.0 - rest / total * (len(rows) - 1) / (len(rows) - int(starts[-1])) if total > 0.0 else 0.0


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
    # A call that compares the rows of each cluster with each other, if there is one.
    within: Callable[[], str] = str

    usual: ClassVar[Resampling] = "random"
    exchangeable: ClassVar[bool] = False

    def by_shifts_if_less(self) -> Self:
        """Return the test by cyclic shifts of clusters where they are of one size, and matrices of their sums would be more."""
        resampling: Resampling = "shifts" if self.shifted else "random"
        # Together kernels tell larger clusters from what they are relabelled to, one by one less.
        how = "smallest" if self.uneven else self.options.judge
        return replace(self, options=replace(self.options, resampling=resampling, judge=how))

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

    @property
    def _sides(self) -> list[tuple[Array, NDArray[Any]]]:
        """The numbers and the codes of both sides."""
        return [(side.numeric, side.codes) for side in self.points]

    @cached_property
    def _exchanged(self) -> Exchanged:
        """Which clusters may change places."""
        return Exchanged.of(self.units, self._values)

    @cached_property
    def uneven(self) -> bool:
        """Whether clusters have more rows, or fewer, where the side that moves between them is larger, as in `Design.uneven`."""
        if self._constant is None or (self._sizes == self._sizes[0]).all():
            return False
        first, side = np.unique(self.units, return_index=True)[1], self.points[self._constant]
        codes = [
            one == level for one in side.codes[first].T for level in np.unique(one, return_counts=True)[0][:LEVELS]
        ]
        columns = np.column_stack([side.numeric[first], *codes]).astype(np.float64)
        products = (columns - columns.mean(axis=0)) * (self._sizes - self._sizes.mean())[:, None]
        sums = np.abs(products.sum(axis=0))
        # Two groups of as many clusters are two standard deviations apart.
        much = 2.0 * sums > UNLIKE * columns.std(axis=0) * self.units.size
        return bool((much & (np.square(sums) > UNEVEN * np.square(products).sum(axis=0))).any())

    @property
    def circle(self) -> int:
        """How many of the rows are shifted: those of whole clusters."""
        return self.stride * circle_length(len(self._sizes))

    @property
    def stride(self) -> int:
        """Which shifts are relabellings: those by whole clusters."""
        return int(self._sizes[0])

    @property
    def dense(self) -> int:
        """Of how many rows, or sums over clusters, random permutations hold whole matrices; 0 where they go by circles."""
        if self._constant is not None:
            return len(self._sizes) if len(self._sizes) <= FEW_CLUSTERS else 0
        # All relabellings take no longer on circles than some.
        return self.n if self.n <= FEW_CLUSTERS and not self.complete and not self.places else 0

    @property
    def places(self) -> int:
        """How many pairs of clusters there are, if all products of entries between them serve all relabellings."""
        count = len(self._sizes)
        few = by_products(count**2, orders_needed(self.options.permutations, count)) and is_smooth(count)
        return count**2 if few and self._constant is None and bool((self._sizes == self._sizes[0]).all()) else 0

    @property
    def cosets(self) -> int:
        """In how many random orders clusters are shifted on circles."""
        return 1 if self.dense or self.complete else usual_orders(len(self._sizes))

    def orders(self, at_least: int) -> Orders:
        """Return the rows of clusters one after another, the clusters in random orders."""
        rng, count = np.random.default_rng((self.options.seed, ORDER_STREAM)), len(self._sizes)
        rows = np.argsort(self.units, kind="stable").reshape(count, -1)
        return [rng.permutation(rows).ravel() for _ in range(orders_needed(at_least, circle_length(count)))]

    @property
    def shifted(self) -> bool:
        """Whether clusters of one size stand on one circle, all rows of which are shifted; of few clusters, or sums, others cost less."""
        few = (self.complete or self.places) if self._constant is None else len(self._sizes) <= FEW_CLUSTERS
        return not few and bool((self._sizes == self._sizes[0]).all())

    @cached_property
    def _codes(self) -> NDArray[np.intp]:
        """Which clusters are equal in the side that is constant within them; if none is, no two."""
        if self._constant is None:
            return np.arange(len(self._sizes))
        first = np.unique(self.units, return_index=True)[1]
        return np.unique(self._values[self._constant][first], axis=0, return_inverse=True)[1].ravel()

    @property
    def ways(self) -> int:
        """How many different relabellings there are, as far as anybody can ask for them."""
        if self._constant is None or len(self._sizes) > FEW_CLUSTERS:
            return self._exchanged.relabellings
        return math.factorial(len(self._codes)) // math.prod(map(math.factorial, np.bincount(self._codes).tolist()))

    def checked(self) -> Self:
        """Return the same; refuse clusters of which no number of relabellings can reject, before anything is computed."""
        self._refuse_few(self.different(self.options.permutations))
        return self

    def _refuse_few(self, different: int) -> None:
        """Refuse so few different relabellings that their smallest p-value is above alpha."""
        moved = self._exchanged
        if moved.too_few:
            raise self._alike("undecided.degenerate_kernel")
        if different * self.options.alpha >= 1.0:
            return
        hint = "more clusters would"
        # Of clusters of several sizes fewer change places.
        if moved.relabellings < (every := orders_of(len(self._sizes))) and every * self.options.alpha >= 1.0:
            hint += ", or clusters of one size, or a side that is constant within them"
        told = (
            f"{counted(different, 'relabelling')} of clusters cannot give a p-value below {1.0 / different:.2g}, and "
        )
        raise UndecidedError(f"{told}alpha is {self.options.alpha:g}", hint=hint, code="undecided.floor")

    def _alike(self, code: str) -> UndecidedError:
        """Return the error for clusters that may change places without a change of the statistic."""
        way_out = f"by {either('`kerntest mmd --by` and --paired', 'mmd_test with by= and paired=')}"
        if within := self.within():
            way_out = f"as {within} does"
        hint = (
            f"leave out {option('cluster')} where the rows of a cluster are independent of each other; or compare groups of rows, "
            f"each with one row of every cluster, {way_out}"
        )
        told = "the statistic is the same whichever clusters change places: a side is alike in all of them"
        if self._exchanged.clusters:
            told = f"no more than {self._moved()} can change places with a change of the statistic: a side is alike in the others"
        return UndecidedError(told, hint=hint, code=code)

    def _moved(self) -> str:
        moved = self._exchanged
        return f"{moved.clusters:,} of {counted(len(self._sizes), 'cluster')} ({moved.rows:,} of {self.n:,} rows)"

    def told_of_uneven(self) -> list[str]:
        """Return the warning of clusters that have more rows where a side is larger."""
        if not self.uneven:
            return []
        told = (
            f"clusters of {self.name!r} have more rows the larger a side is, or fewer: relabelled they are no longer what they were, and "
            "the p-value is approximate, at times far too small; kernels are judged one by one"
        )
        groups = either("`kerntest mmd --by` and --cluster", "mmd_test with by= and cluster=")
        return [f"{told}; of groups {groups} rejects far less often what is nothing"]

    def held_back(self, *, rejects: bool) -> list[str]:
        """Return the warning where clusters of most rows keep their place, or, where nothing was found, change it for nearly the same."""
        if self._exchanged.rows >= MOST_TOLD * self.n:
            kept = (
                0.0
                if rejects or self._constant is not None
                else max(kept_by_place(self.units, *one) for one in self._sides)
            )
            return [self._of_places(kept)] if kept >= MOST_KEPT else []
        why = (
            "a side is alike in the others"
            if self._exchanged.by_likeness
            else "too few of the others have as many rows"
        )
        told = f"{self._moved()} can change places, {why}: what depends on each other within these is not tested"
        return [f"{told}{self._or_within()}"]

    def _of_places(self, kept: float) -> str:
        """Return the warning where so large a share of a side goes by the places of rows in their clusters."""
        told = (
            f"{min(kept, 0.99):.0%} of how a side varies goes by the place of a row in its cluster, as with visits or phases that all have in "
            "common, and hardly changes where clusters change places: what depends on these is not tested"
        )
        return f"{told}{self._or_within()}"

    def _or_within(self) -> str:
        within = self.within()
        return f"; {within} compares rows of the same cluster with each other" if within else ""

    def relabelled(self, family: Family, at_least: int) -> Relabelled:
        """Return <A, B> of all pairs under at least so many relabellings, in the time of random permutations or less."""
        found = super().relabelled(family, at_least)
        self._refuse_few(found.different)
        way = "permutations" if self.options.resampling == "random" and self.dense else "cyclic shifts"
        way = ALL_PERMUTATIONS if self.complete else way
        moved, every = self._exchanged.clusters, len(self._sizes)
        some = f"{every:,}" if moved == every else f"{moved:,} of {every:,}"
        return found._replace(resampling=f"{way} of {some} whole clusters ({self.name})")

    def degenerate(self, kernels: tuple[Kernel, ...]) -> UndecidedError:
        """Return the error for clusters that may change places without a change of the statistic."""
        error = super().degenerate(kernels)
        return error if self._constant is not None else self._alike(error.code)

    def _permuted(self, family: Family, at_least: int) -> Array:
        """Return <A, B> of all pairs under random permutations of few clusters or rows, or under shifts of many."""
        if self.dense:
            return super()._permuted(family, at_least)
        rng, sides = np.random.default_rng((self.options.seed, ORDER_STREAM)), family.sides()
        moved = 1 if self._constant is None else self._constant
        pairs = [pair if moved == 1 else pair[::-1] for pair in pairs_of(family)]
        if self._constant is None:
            rows = self._rows_on_circles(rng)
            order = own = np.concatenate([some.ravel() for some in rows])
            of_clusters = None
        else:
            rows = on_circles(np.arange(len(self._sizes))[:, None], rng)
            drawn = np.concatenate(rows, axis=1)[0]
            places = np.argsort(drawn)[self.units]
            order = np.argsort(places, kind="stable")
            of_clusters, own = places[order], np.unique(self.units, return_index=True)[1][drawn]
        stay = self.points[1 - moved].take(order).by_columns()
        centrings = [centring_of(kernel, stay, self.engine, hollow=self.options.hollow) for kernel in sides[1 - moved]]
        first = Entries(sides[1 - moved], stay, centrings, of_clusters)
        second = Entries(sides[moved], self.points[moved].take(own).by_columns())
        circles = Circles.of(rows, at_least, rng)
        return circle_sums(first, second, circles, pairs, engine=self.engine, progress=self.progress)

    def _rows_on_circles(self, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Return the rows of clusters of one size on circles, and on one of length 1 those that keep their place."""
        moving = list(zip(rows_by_size(self.units), self._exchanged.counts, strict=True))
        fixed = [rows.reshape(-1, 1) for rows, count in moving if count < 2]
        circles = [circle for rows, count in moving if count > 1 for circle in on_circles(rows, rng)]
        # Transforms run along the longer of two circles.
        return sorted([*circles, *([np.concatenate(fixed)] if fixed else [])], key=lambda rows: rows.shape[1])

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
        if self._constant is not None:
            every = self._orders_of_all(self._codes, at_least)
            # It is y that moves: where x is constant, to where x would come from.
            return every if self._constant == 1 else [np.argsort(p) for p in every]
        rng, every = np.random.default_rng((self.options.seed, ORDER_STREAM)), [np.arange(self.n)]
        of_size = rows_by_size(self.units)
        for _ in range(at_least - 1):
            p = np.empty(self.n, dtype=np.intp)
            for rows in of_size:
                p[rows] = rng.permutation(rows)
            every.append(p)
        return every
