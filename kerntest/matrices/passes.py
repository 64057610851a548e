"""Passes over kernel matrices that are never whole: in strips of tiles, or a block of lags at a time.

For lags the rows lie on a circle of length n. Lag k of a symmetric matrix K is its circular diagonal K[i, (i + k) mod n],
and lags 0 .. floor(n / 2) hold every entry. Rows beyond the circle ("fixed" rows, see shifts.py) meet it in blocks of
their own: one line for each of them, against every row of the circle.
"""

from __future__ import annotations

from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.lib.stride_tricks import as_strided

from kerntest.dataclass import dataclass
from kerntest.engines.engine import Engine, Progress, enough_for, of_triangle
from kerntest.kernels.algebra import terms
from kerntest.kernels.base import Array, Columns, DensePairs, Kernel, Pairs, Points, left_factor, right_factor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

# Rows of a tile, of two megabytes: of smaller ones many threads would wait for the interpreter.
TILE = 512


@dataclass(frozen=True)
class Centring:
    """How K becomes its centring A: A_ij = K_ij - row_i - row_j + grand, `hollow` with a zero diagonal (U-centring)."""

    row: Array
    grand: float
    hollow: bool


@dataclass(frozen=True)
class CentredProduct(Kernel):
    """The kernel of A o L off its diagonal, A a centring of K: its rows carry their part of the centring as a column."""

    name = "centred product"
    formula = "(k(x,y) - r(x) - r(y) + g) l(x,y)"
    positive_definite = False

    kernel: Kernel
    columns: Columns
    row: Columns
    grand: float
    factor: tuple[Kernel, Columns] | None

    @classmethod
    def of(
        cls, kernel: Kernel, points: Points, centring: Centring, factor: tuple[Kernel, Points] | None
    ) -> tuple[Points, CentredProduct]:
        """Return rows side by side and the kernel of them; without L if there is no factor."""
        parts = [points, Points.of(centring.row), *([] if factor is None else [factor[1]])]
        numbers = np.cumsum([0, *(part.numeric.shape[1] for part in parts)]).tolist()
        codes = np.cumsum([0, *(part.codes.shape[1] for part in parts)]).tolist()
        places = [
            Columns(tuple(range(*p)), tuple(range(*q))) for p, q in zip(pairwise(numbers), pairwise(codes), strict=True)
        ]
        joined = Points(np.hstack([part.numeric for part in parts]), np.hstack([part.codes for part in parts]))
        other = None if factor is None else (factor[0], places[2])
        return joined, cls(kernel, places[0], places[1], centring.grand, other)

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the entries."""
        row = pairs.restrict(self.row)
        values = self.kernel.evaluate(pairs.restrict(self.columns))
        values -= row.at_x(row.x.numeric[:, 0]) + (row.at_y(row.y.numeric[:, 0]) - self.grand)
        if self.factor is not None:
            kernel, columns = self.factor
            values *= kernel.evaluate(pairs.restrict(columns))
        return values


@dataclass(frozen=True)
class Sweep:
    """Sums over a symmetric matrix M: M V, sum_ij M_ij^2, and if asked for sum_j M_ij^2, shape (n, 1), and sum_ij M_ij^3."""

    product: Array
    total_square: float
    squares: Array
    cubes: float


def sweep(
    kernel: Kernel,
    points: Points,
    vectors: Array,
    engine: Engine,
    *,
    centring: Centring | None = None,
    third_order: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Return products with V and sums of the kernel matrix without its diagonal, or of its centring, diagonal included.

    Those of third order only if asked for. Cost: O(n^2 (p + q) / 2) time for q vectors, O(n q) memory for each strip under way.
    """

    def sums(M: Array) -> tuple[list[Array], list[Any]]:
        if not third_order:
            return [M], [np.vdot(M, M), 0.0]
        square = M * M
        return [M, square], [np.vdot(M, M), np.vdot(square, M)]

    engine = enough_for(engine, len(points) ** 2 / 2)
    tiles, multiplied = [(kernel, points, centring)], [vectors, np.ones((len(points), 1))]
    (product, squares), (total_square, cubes) = sum_tiles(tiles, sums, multiplied, engine, progress)
    return Sweep(product, float(total_square), squares, float(cubes))


def sum_tiles(
    matrices: Sequence[tuple[Kernel, Points, Centring | None]],
    sums: Callable[..., tuple[Sequence[Array], Sequence[Any]]],
    vectors: Sequence[Array],
    engine: Engine,
    progress: Progress | None = None,
) -> tuple[list[Array], Array]:
    """Return sums over matrices on the same n rows, one strip of tiles after another, each unordered pair of rows once.

    Of the tiles of all matrices `sums` makes symmetric ones, which are multiplied with the vectors, and numbers to add up.
    A strip is the rows [start, stop) against themselves and all rows after them. Sums have a fixed order.
    """
    n = len(vectors[0])
    placed = [(kernel, points.by_columns().sent(engine), centring) for kernel, points, centring in matrices]
    tile = TILE * placed[0][1].scale
    # A strip of a small matrix is one tile high; of a large one a few, so that strips stay few.
    height = tile * max(1, n // (64 * tile))
    multiplied = [engine.send(some) for some in vectors]

    def strip(start: int) -> tuple[list[Array], Array]:
        products, totals = [np.zeros((n - start, some.shape[1])) for some in vectors], np.zeros(1)
        for top in range(start, min(start + height, n), tile):
            rows = slice(top, min(top + tile, n))
            for left in range(top, n, tile):
                columns = slice(left, min(left + tile, n))
                made, numbers = sums(*(_tile(*matrix, rows, columns) for matrix in placed))
                # A tile off the diagonal stands for its mirror image too.
                mirrored = left > top
                for product, M, V in zip(products, made, multiplied, strict=False):
                    product[rows.start - start : rows.stop - start] += M @ V[columns]
                    if mirrored:
                        product[columns.start - start : columns.stop - start] += M.T @ V[rows]
                totals = totals + (1 + mirrored) * np.array([float(one) for one in numbers])
        return products, totals

    starts = list(range(0, n, height))
    products, totals = [np.zeros(some.shape) for some in vectors], np.zeros(1)
    for start, (parts, numbers) in zip(starts, engine.map(strip, starts, of_triangle(progress)), strict=True):
        for product, part in zip(products, parts, strict=True):
            product[start:] += part
        totals = totals + numbers
    return products, totals


def _tile(kernel: Kernel, points: Points, centring: Centring | None, rows: slice, columns: slice) -> Array:
    """Return the entries of a kernel matrix, or of its centring, for some rows and columns."""
    tile = kernel.evaluate(DensePairs(points.take(rows), points.take(columns)))
    if centring is not None:
        tile -= centring.row[rows, None]
        tile -= centring.row[columns] - centring.grand
    if rows.start == columns.start and (centring is None or centring.hollow):
        np.fill_diagonal(tile, 0.0)
    return tile


# Lags

# Entries of one tile, whose arrays take a megabyte each.
TILE_ENTRIES = 2**17
# Entries of a block over all matrices that are held together: their transforms take 64 MB.
HELD_ENTRIES = 2**23
# Up to this many numeric columns, summing squared differences column by column beats a matrix product, which must
# compute twice as many entries as the tile needs and pick half of them.
FEW_COLUMNS = 2
# Rows lie at most so many bandwidths from the middle, over all columns, for powers that neither overflow nor lose digits.
FAR = 64.0


@dataclass(frozen=True)
class Block:
    """Lines [start, start + count) of one kind: circular diagonals ("lags"), or fixed rows against the circle."""

    kind: Literal["lags", "fixed"]
    start: int
    count: int

    def halved(self, circle: int) -> list[int]:
        """Return the lines of the block whose entries would count twice if every line stood for two.

        A line stands for K[i, i + k] and K[i + k, i], but lag 0 is the diagonal, and lag n/2 of an even circle holds
        each of its entries twice.
        """
        once = (0, circle // 2) if circle % 2 == 0 else (0,)
        return [lag - self.start for lag in once if self.kind == "lags" and 0 <= lag - self.start < self.count]


def kept_together(kernels: Sequence[Kernel]) -> int:
    """Return how many matrices are held while lines of these kernels are made: distances and values of each term, which they share."""
    return 2 * max(len(terms(kernel)) for kernel in kernels) if len(kernels) > 1 else 1


def plan_blocks(circle: int, fixed: int, held: int = 1) -> list[Block]:
    """Return the blocks that cover all pairs with at least one row on the circle.

    Their boundaries depend on the sizes alone, so that sums over blocks are the same on any number of threads. A
    block has 128 lines; fewer, down to 64, on circles beyond 16,384 rows, to bound its memory (8 n bytes a line);
    fewer again where the lines of `held` matrices are held together.
    """
    lines = min(128, max(64, 2**21 // circle))
    if held > 1:
        lines = min(lines, max(8, HELD_ENTRIES // (circle * held)))
    count = circle // 2 + 1
    blocks = [Block("lags", start, min(lines, count - start)) for start in range(0, count, lines)]
    return blocks + [Block("fixed", start, min(lines, fixed - start)) for start in range(0, fixed, lines)]


def add_row_sums(rows: Array, values: Array, block: Block, circle: int) -> None:
    """Add to the row sums of a matrix, the circle first, what a block of its lines contributes."""
    rows[:circle] += values.sum(axis=0)
    if block.kind == "fixed":
        first = circle + block.start
        rows[first : first + block.count] += values.sum(axis=1)
        return
    # The mirror image: K[i + k, i] belongs to the row at i + k. Not of lines that hold both already: the first, the last.
    once = block.halved(circle)
    first, stop = int(0 in once), block.count - int(block.count - 1 in once)
    if first >= stop:
        return
    values, reach = values[first:stop], stop - first - 1
    ends = np.hstack([values[:, circle - reach :], values[:, :reach]])
    reached = np.concatenate([_skewed(ends, reach).sum(axis=0), _skewed(values, reach).sum(axis=0)])
    # The first of them is the row at which the first of these lines arrives.
    rows[:circle] += np.roll(reached, block.start + first)


def _skewed(values: Array, reach: int) -> Array:
    """Return the view s[k, j] = values[k, reach + j - k] of all j that every k has, for reach + 1 lines."""
    down, across = values.strides
    shape, strides = (reach + 1, values.shape[1] - reach), (down - across, across)
    if not isinstance(values, np.ndarray):
        return values[0, reach:].strided(shape, strides)
    return as_strided(values[0, reach:], shape, strides, writeable=False)


def square_sum(values: Array, block: Block, circle: int) -> float:
    """Return what a block of lines, shape (block.count, circle), contributes to the sum of squares of its matrix."""
    once = sum(float(np.vdot(values[line], values[line])) for line in block.halved(circle))
    return 2.0 * float(np.vdot(values, values)) - once


class LaidOut:
    """The rows of a kernel matrix in their order, of which the first `circle` lie on the circle."""

    def __init__(self, points: Points, circle: int) -> None:
        self.circle, self.tile = circle, TILE_ENTRIES
        self.fixed = points.take(slice(circle, None))
        # Lags reach at most half the circle beyond its end: rows are repeated so that no index needs a modulo.
        around = np.arange(circle + circle // 2 + 1) % circle
        self.wrapped = Points(points.numeric[around], points.codes[around]).by_columns()

    def sent(self, engine: Engine) -> LaidOut:
        """Return the rows where an engine computes."""
        there = copy(self)
        there.fixed, there.wrapped = self.fixed.sent(engine), self.wrapped.sent(engine)
        there.tile = TILE_ENTRIES * there.wrapped.scale**2
        return there

    def tiles(self, block: Block) -> Iterator[tuple[Pairs, slice]]:
        """Yield the block's pairs in tiles small enough for the cache, with the columns of the block they fill."""
        width = max(self.tile // block.count, 1)
        lines = slice(block.start, block.start + block.count)
        for start in range(0, self.circle, width):
            stop = min(start + width, self.circle)
            here = self.wrapped.take(slice(start, stop))
            if block.kind == "fixed":
                yield DensePairs(self.fixed.take(lines), here), slice(start, stop)
            else:
                there = self.wrapped.take(slice(start + block.start, stop + block.start + block.count - 1))
                yield LagPairs(here, there, block.count), slice(start, stop)


def window(values: NDArray[Any], lags: int) -> NDArray[Any]:
    """Return the view w[k, i] = values[i + k] of shape (lags, len(values) - lags + 1)."""
    if not isinstance(values, np.ndarray):
        return values.strided((lags, len(values) - lags + 1), 2 * values.strides)
    # Not by `as_strided`, which holds the interpreter for 20 microseconds a call: other threads wait.
    values = np.ascontiguousarray(values)
    (step,) = values.strides
    view: NDArray[Any] = np.ndarray((lags, len(values) - lags + 1), values.dtype, values.data, strides=(step, step))
    view.flags.writeable = False
    return view


class LagPairs(Pairs):
    """The pairs (x_i, y_{i+k}) for k < lags and all i of m rows, with m + lags - 1 rows y: shape (lags, m)."""

    def __init__(self, x: Points, y: Points, lags: int) -> None:
        super().__init__(x, y, (lags, len(x)))
        self.lags = lags

    def over(self, x: Points, y: Points) -> LagPairs:
        """Return the same lags of other rows."""
        return LagPairs(x, y, self.lags)

    def at_x(self, values: Array) -> Array:
        """Return a row."""
        return values[None, :]

    def at_y(self, values: Array) -> Array:
        """Return a row for each lag, which begins that much later."""
        return window(values, self.lags)

    def _by_product(self, left: Array, right: Array, least: float = -np.inf) -> Array:
        """Return <left_i, right_{i+k}>, or `least` if it is less, by small matrix products: a skewed part is kept."""
        if not isinstance(left, np.ndarray):
            total = np.zeros_like(left, shape=self.shape)
            for column, met in zip(left.T, right.T, strict=True):
                total += column[None, :] * window(met, self.lags)
            return np.maximum(total, least, out=total)
        result = np.empty(self.shape)
        height = max(self.lags // 2, 32)
        # The odd row length keeps the steps of the skewed view off powers of two, which would collide in the cache.
        buffer = np.empty((height, 2 * ((height + self.lags) // 2) + 1))
        step, across = buffer.strides
        skewed = as_strided(buffer, (self.lags, height), (across, step + across))
        across_right = right.T
        for start in range(0, len(left), height):
            tile = left[start : start + height]
            rows, met = len(tile), len(tile) + self.lags - 1
            np.matmul(tile, across_right[:, start : start + met], out=buffer[:rows, :met])
            np.maximum(skewed[:, :rows], least, out=result[:, start : start + rows])
        return result

    def _inner_product(self) -> Array:
        return self._by_product(self.x.numeric, self.y.numeric)

    def _squared_distance(self) -> Array:
        if self.x.numeric.shape[1] <= FEW_COLUMNS or not self.x.expandable:
            return self.summed(np.square)
        self.expanded = True
        return self._by_product(self.x.derive(left_factor), self.y.derive(right_factor), 0.0)

    def exponential_manhattan(self, bandwidth: float) -> Array:
        """Return exp(-|x - y|_1 / bandwidth) as a new array.

        With u = exp(x_c / bandwidth) and v = exp(y_c / bandwidth), a column has the factor u v / max(u, v)^2: two steps a
        pair and column instead of three and an exponential (8 ns a pair instead of 13, five columns). Exactly 1 where x = y.
        """
        powers, met = (rows.derive(_powers, bandwidth) for rows in (self.x, self.y))
        columns = powers.shape[1] - 1
        if not columns or self.x.whole is not self.y.whole:
            return super().exponential_manhattan(bandwidth)
        values = np.maximum(powers[:, 0], window(met[:, 0], self.lags))
        step = np.empty_like(values, order="C")
        for column in range(1, columns):
            np.maximum(powers[:, column], window(met[:, column], self.lags), out=step)
            np.multiply(values, step, out=values)
        np.square(values, out=values)
        np.multiply(powers[:, columns], window(met[:, columns], self.lags), out=step)
        divided: Array = np.divide(step, values, out=step)
        return divided


def _powers(numeric: Array, bandwidth: float) -> Array:
    """Return exp((x_c - middle_c) / bandwidth) for every column c of every row x, and after them their product.

    One empty column where some row lies too far out.
    """
    n, columns = numeric.shape
    lowest, highest = numeric.min(axis=0, initial=np.inf), numeric.max(axis=0, initial=-np.inf)
    # Halves, since a sum may overflow.
    if not ((highest / 2 - lowest / 2) / bandwidth).sum() <= FAR:
        return np.empty((n, 1))
    powers = np.empty((n, columns + 1), order="F")
    np.exp((numeric - (lowest / 2 + highest / 2)) / bandwidth, out=powers[:, :columns])
    powers[:, columns] = 1.0
    # In the order in which the maxima are multiplied.
    for column in range(columns):
        powers[:, columns] *= powers[:, column]
    return powers


class KernelStack:
    """Kernel matrices over the same rows in one or more orders of them, the first the observed, laid out in lines.

    Kernels of one source share its distances, and those whose bandwidths halve from one to the next their values.
    `hollow` sets the diagonals to zero; `centred_by_rows` says that row sums are wanted, for a centring after the sums.
    """

    def __init__(
        self,
        sources: Sequence[tuple[Points, Sequence[Kernel]]],
        orders: Sequence[NDArray[np.intp]],
        circle: int,
        *,
        hollow: bool = False,
        centred_by_rows: bool = False,
    ) -> None:
        self.sources, self.orders, self.circle, self.n = sources, orders, circle, len(orders[0])
        self.hollow, self.centred_by_rows = hollow, centred_by_rows
        self.members = sum(len(kernels) for _, kernels in sources)
        self.kept = max(kept_together(kernels) for _, kernels in sources)
        self.laid = [[LaidOut(points.take(order), circle) for points, _ in sources] for order in orders]

    def sent(self, engine: Engine) -> KernelStack:
        """Return the same with its rows where an engine computes."""
        there = copy(self)
        there.laid = [[rows.sent(engine) for rows in of_order] for of_order in self.laid]
        return there

    def rows(self) -> Array:
        """Return the rows of the first source, where they are."""
        return self.laid[0][0].wrapped.numeric

    def diagonals(self) -> Array:
        """Return the diagonals of the matrices along the places of the first order, shape (members, n)."""
        every = [kernel.diagonal(points) for points, kernels in self.sources for kernel in kernels]
        return np.stack(every)[:, self.orders[0]]

    def lines(self, order: int, block: Block, out: Array) -> Iterator[int]:
        """Write the block's entries of one member after another into `out`; yields its number."""
        number = 0
        for rows, (_, kernels) in zip(self.laid[order], self.sources, strict=True):
            # Kept alive, the tiles share their distances between the kernels; a single kernel needs no such memory.
            kept = list(rows.tiles(block)) if len(kernels) > 1 else None
            for pairs, _ in kept or ():
                pairs.halve_bandwidths()
            for kernel in kernels:
                for pairs, columns in kept if kept is not None else rows.tiles(block):
                    out[:, columns] = kernel.evaluate(pairs)
                if self.hollow and block.kind == "lags" and block.start == 0:
                    out[0] = 0.0
                yield number
                number += 1

    def fixed_entries(self, order: int) -> Array:
        """Return the entries between fixed rows in one order, shape (members, fixed, fixed)."""
        entries: list[NDArray[Any]] = []
        for rows, (_, kernels) in zip(self.laid[order], self.sources, strict=True):
            pairs = DensePairs(rows.fixed, rows.fixed)
            entries += [kernel.evaluate(pairs) for kernel in kernels]
        stacked: Array = np.stack(entries)
        if self.hollow:
            places = np.arange(stacked.shape[1])
            stacked[:, places, places] = 0.0
        return stacked
