"""Joint independence of d groups of columns: dHSIC, and what it becomes when rows of the groups are paired anew.

    dHSIC_b = mean_ij prod_g K^g_ij + prod_g mean_ij K^g_ij - (2/n) sum_i prod_g mean_k K^g_ik

(Pfister, Buehlmann, Schoelkopf and Peters 2018, definition 2.6) is the squared distance between the mean embedding of
the joint distribution and that of the product of its margins. With d = 2 it is HSIC_b. A relabelling permutes the rows
of every group but the first, each group whole and by a permutation of its own: this destroys the dependence between
groups and keeps that between the columns of a group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.engines.setting import allowed_bytes
from kerntest.errors import UndecidedError
from kerntest.inference.nulls.permutation import ROUNDING_UNITS
from kerntest.kernels.base import DensePairs, Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.base import Engine, Progress
    from kerntest.kernels.base import Array, Kernel

# Entries of all matrices that relabelling holds: 1 GB.
LARGEST_ENTRIES = 2**27
# Rows and columns of a tile of kernel values: its few arrays stay in the second-level cache of a core.
TILE = 256
# Entries of a strip of gathered values (256 KB, and three of them), and the fewest rows that are worth a call.
STRIP_ENTRIES, FEWEST_STRIP_ROWS = 2**15, 64
# Relabellings of one piece of work: each strip of the first matrix is read once for all of them.
TOGETHER = 16


def largest_rows(d: int) -> int:
    """Return the largest number of rows that can be relabelled in d groups: d matrices of 1 GB in all, or what is allowed."""
    return math.isqrt(allowed_bytes(8 * LARGEST_ENTRIES) // (8 * d))


def refuse_too_many(n: int, d: int) -> None:
    """Refuse to relabel more rows than d whole matrices have room for.

    Parameters
    ----------
    n, d : int
        Rows and groups.

    Raises
    ------
    UndecidedError
        If d matrices of n x n would take more than 1 GB, or than is allowed.
    """
    most = largest_rows(d)
    if n > most:
        raise UndecidedError(
            f"the joint test of {d} groups holds {d} whole matrices: {n:,} rows are more than {most:,}",
            hint=f"test the pairs with --pairwise, which has no such limit, or a random sample of {most:,} rows",
            code="undecided.memory",
        )


def joint_bound(kernels: Sequence[Kernel], points: Sequence[Points]) -> float:
    """Return how far rounding can move dHSIC_b between two relabellings that are equal.

    With s = sqrt(k(x, x)) and |K_ij| <= s_i s_j, the absolute values of all that is summed add up to at most

        (mean_i prod_g s^g_i + prod_g mean_i s^g_i)^2

    for the observed pairing of rows, and for any that ties with it.

    Parameters
    ----------
    kernels, points
        As in `relabelled_joint`; the kernels positive definite.

    Notes
    -----
    Cost: O(d n) time.
    """
    lengths = [np.sqrt(np.abs(kernel.diagonal(group))) for kernel, group in zip(kernels, points, strict=True)]
    together = float(np.mean(np.prod(lengths, axis=0)))
    apart = math.prod(float(length.mean()) for length in lengths)
    return ROUNDING_UNITS * float(np.finfo(np.float64).eps) * (together + apart) ** 2


def relabelled_joint(
    kernels: Sequence[Kernel],
    points: Sequence[Points],
    permutations: Sequence[Sequence[NDArray[np.integer[Any]]]],
    engine: Engine,
    progress: Progress | None = None,
) -> Array:
    """Return dHSIC_b when row p_g(i) of each group g is paired with row i of the first.

    Parameters
    ----------
    kernels : sequence of d Kernel
        d >= 2, one for each group.
    points : sequence of d Points
        n rows each, row i of all of them being the same case.
    permutations : sequence of R sequences of d - 1 ndarray of int, shape (n,)
        The permutations p_2 .. p_d of each relabelling.
    engine : Engine
    progress : callable, optional
        Called with (parts done, parts in all).

    Returns
    -------
    ndarray, shape (R,)

    Raises
    ------
    UndecidedError
        If n is too large: see `refuse_too_many`.

    Notes
    -----
    Cost: O(R d n^2 / 2) time, at most 8 d n^2 bytes: d - 1 matrices of the distinct rows of a group, and half of one.
    Values do not depend on the number of threads, nor on which relabellings are asked for together.
    """
    n, d = len(points[0]), len(kernels)
    refuse_too_many(n, d)
    # The matrix of the first group is held as strips only: its whole is gone before the others are made.
    strips, first_means = _strips(_table(kernels[0], points[0], engine))
    others = [_table(kernel, group, engine) for kernel, group in zip(kernels[1:], points[1:], strict=True)]
    other_means = [table.row_means() for table in others]
    work = _Relabelling(strips, first_means, others, other_means, _product_of_margins([first_means, *other_means]))
    parts = [permutations[start : start + TOGETHER] for start in range(0, len(permutations), TOGETHER)]
    # Whole matrices stay where they are: other processes would each need a copy.
    return np.concatenate([np.empty(0), *engine.here.map(work, parts, progress)])


def _product_of_margins(row_means: Sequence[Array] | Array) -> float:
    """Return prod_g mean_ij K^g_ij from the means of the rows of every K^g, shape (d, n)."""
    return math.prod(float(means.mean()) for means in row_means)


def _by_columns(points: Points) -> Points:
    """Return the points with columns side by side in memory, as the tiles walk down them."""
    return Points(np.asfortranarray(points.numeric), np.asfortranarray(points.codes))


def _tile(kernel: Kernel, points: Points, rows: slice, columns: slice) -> Array:
    """Return the entries of K for some rows and columns."""
    here = points.take(rows)
    tile = kernel.evaluate(DensePairs(here, points.take(columns)))
    if rows.start == columns.start:
        np.fill_diagonal(tile, kernel.diagonal(here))
    return tile


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A kernel matrix through the m distinct rows of its group: K_ij = values[place_i, place_j].

    Equal rows share their entries, so that relabellings which only exchange them tie. A group of
    categories has a table that stays in the cache.

    Parameters
    ----------
    values : ndarray, shape (m, m)
        Symmetric.
    place : ndarray of int, shape (n,)
    """

    values: Array
    place: NDArray[np.intp]

    def row_means(self) -> Array:
        """Return mean_k K_ik, shape (n,)."""
        counts = np.bincount(self.place, minlength=len(self.values)).astype(np.float64)
        # Not a BLAS product: its rounding would depend on the number of threads.
        means: Array = np.einsum("ij,j->i", self.values, counts)[self.place] / len(self.place)
        return means


def _table(kernel: Kernel, points: Points, engine: Engine) -> _Table:
    """Return the kernel matrix of a group, each unordered pair of distinct rows evaluated once."""
    rows, place = _distinct(points)
    m = len(rows)
    values = np.empty((m, m))

    def fill(start: int) -> None:
        here = slice(start, min(start + TILE, m))
        for left in range(start, m, TILE):
            there = slice(left, min(left + TILE, m))
            tile = _tile(kernel, rows, here, there)
            values[here, there] = np.triu(tile) + np.triu(tile, 1).T if left == start else tile
            if left > start:
                values[there, here] = tile.T

    for _ in engine.here.map(fill, range(0, m, TILE)):
        pass
    return _Table(values, place)


def _distinct(points: Points) -> tuple[Points, NDArray[np.intp]]:
    """Return the distinct rows, and which of them each row is."""
    columns = [*points.numeric.T, *points.codes.T]
    order = np.lexsort(columns)
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for column in columns:
        ascending = column[order]
        new[1:] |= ascending[1:] != ascending[:-1]
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.cumsum(new) - 1
    return _by_columns(points.take(order[new])), place


@dataclass(frozen=True, slots=True, eq=False)
class _Strip:
    """Rows [start, start + h) of the first matrix in the columns from `start` on, those beyond its square doubled.

    Summed over all strips, K_ij times any symmetric matrix is then the sum over all i, j.
    """

    start: int
    values: Array


def _strips(table: _Table) -> tuple[list[_Strip], Array]:
    """Return the first matrix as strips, and the means of its rows."""
    n = len(table.place)
    height = max(FEWEST_STRIP_ROWS, STRIP_ENTRIES // n)
    strips = []
    for start in range(0, n, height):
        here = table.place[start : start + height]
        values = table.values[here[:, None], table.place[start:]]
        values[:, len(here) :] *= 2.0
        strips.append(_Strip(start, values))
    return strips, table.row_means()


@dataclass(frozen=True, slots=True, eq=False)
class _Relabelling:
    """The work on some relabellings: dHSIC_b under each."""

    strips: Sequence[_Strip]
    first_means: Array
    others: Sequence[_Table]
    other_means: Sequence[Array]
    margins: float

    def __call__(self, permutations: Sequence[Sequence[NDArray[np.integer[Any]]]]) -> Array:
        """Return the statistics, shape (len(permutations),)."""
        n = len(self.first_means)
        places = [[table.place[p] for table, p in zip(self.others, each, strict=True)] for each in permutations]
        sums: Array = np.zeros(len(permutations))
        scratch = np.empty((3, self.strips[0].values.size))
        for strip in self.strips:
            for number, each in enumerate(places):
                sums[number] += self._strip_sum(strip, each, scratch)
        crossed = np.array([self._crossed_rows(each) for each in permutations])
        return sums / n**2 + self.margins - 2.0 * crossed

    def _strip_sum(self, strip: _Strip, places: Sequence[NDArray[np.intp]], scratch: Array) -> float:
        """Return the sum over a strip of its entries times those of all other matrices."""
        shape, size = strip.values.shape, strip.values.size
        between, product, gathered = scratch
        product, gathered = product[:size].reshape(shape), gathered[:size].reshape(shape)
        for number, (table, place) in enumerate(zip(self.others, places, strict=True)):
            columns = place[strip.start :]
            _gather(table.values, columns[: shape[0]], columns, between, product if number == 0 else gathered)
            if number > 0:
                np.multiply(product, gathered, out=product)
        # Row by row: the running sums of one long product would lose digits.
        return float(np.vecdot(strip.values, product).sum())

    def _crossed_rows(self, permutation: Sequence[NDArray[np.integer[Any]]]) -> float:
        """Return mean_i prod_g mean_k K^g_ik."""
        product = self.first_means.copy()
        for means, p in zip(self.other_means, permutation, strict=True):
            product *= means[p]
        return float(product.mean())


def _gather(table: Array, rows: NDArray[np.intp], columns: NDArray[np.intp], between: Array, out: Array) -> None:
    """Write table[rows_i, columns_j] into `out`.

    Whole rows are moved as they lie in memory, single entries only inside what was moved: both steps stay in the cache.
    With few distinct rows the columns are taken first, and then once for all rows that are equal.

    Parameters
    ----------
    table : ndarray, shape (m, m)
    rows, columns : ndarray of int, shapes (h,) and (w,)
    between : ndarray
        Room for h * m or m * w entries, whichever is less.
    out : ndarray, shape (h, w)
    """
    m, (h, w) = len(table), out.shape
    # "clip" writes into `out` at once, where the default would write into a copy first.
    if 4 * m <= 3 * h:
        some_columns = between[: m * w].reshape(m, w)
        np.take(table, columns, axis=1, out=some_columns, mode="clip")
        np.take(some_columns, rows, axis=0, out=out, mode="clip")
    else:
        some_rows = between[: h * m].reshape(h, m)
        np.take(table, rows, axis=0, out=some_rows, mode="clip")
        np.take(some_rows, columns, axis=1, out=out, mode="clip")
