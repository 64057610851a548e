"""Kernels on a device: the same `evaluate`, on arrays that are elsewhere.

A kernel combines what `Pairs` gives it by numpy's elementwise functions. `Values` takes part in these through numpy's
own protocol for foreign arrays (`__array_ufunc__`) and hands them on to the library of the device, so that there is
one formula for each kernel. Nothing is written in place there: `out=` names what stands for the result afterwards.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kerntest.errors import UndecidedError
from kerntest.kernels.algebra import Expression, leaves
from kerntest.kernels.base import Array, Columns, Kernel, Pairs, Points, left_factor, right_factor
from kerntest.kernels.columns import Groups
from kerntest.kernels.device_values import Values
from kerntest.kernels.stationary import Matern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.engines.device import Device, DeviceArray

# Up to so many columns, differences column by column move less memory than a product in float64.
FEW_COLUMNS = 2
# Matrix products of tiles have at least so many rows.
LEAST_HEIGHT = 32
CLOSED_FORMS = (0.5, 1.5, 2.5)


def evaluated(kernel: Kernel, pairs: DevicePairs) -> DeviceArray:
    """Return k(x, y) for every pair as an array of the device, in its precision.

    Parameters
    ----------
    kernel : Kernel
        One that `refuse_host_only` lets pass.
    pairs : DevicePairs

    Notes
    -----
    Cost: a few passes over `pairs.shape` entries for each kernel of the expression.
    """
    found: Any = kernel.evaluate(pairs)
    # A kernel that sees nothing of the rows has made its constants here.
    if isinstance(found, np.ndarray):
        return pairs.device.send(found)
    return pairs.device.rounded(found.array)


def refuse_host_only(kernels: Sequence[Kernel]) -> None:
    """Refuse kernels whose formula needs functions that devices do not have.

    Raises
    ------
    UndecidedError
        For matern with a nu that has no closed form: it needs Bessel functions.
    """
    for kernel in kernels:
        for leaf in _leaves(kernel):
            if isinstance(leaf, Matern) and leaf.nu not in CLOSED_FORMS:
                raise UndecidedError(
                    f"the kernel '{leaf}' needs Bessel functions, which a GPU does not have",
                    hint="matern with nu=0.5, 1.5 or 2.5 runs on a GPU; or leave out --engine gpu",
                    code="undecided.gpu_kernel",
                )


def _leaves(kernel: Kernel) -> Iterator[Kernel]:
    if isinstance(kernel, Groups):
        for group in kernel.groups:
            yield from leaves(group.kernel)
    elif isinstance(kernel, Expression):
        yield from leaves(kernel)


class DeviceRows:
    """Some rows of a whole on a device, column by column, and what is derived from the whole.

    Parameters
    ----------
    points : Points
        The whole: what rows are moved by, and how distances are computed, is decided for all of it.
    places : ndarray of int, shape (m,)
        Which of its rows.
    device : Device
    """

    def __init__(self, points: Points, places: NDArray[np.intp], device: Device) -> None:
        self.points, self.places, self.device = points, places, device
        self._sent: dict[str, DeviceArray] = {}
        self._values: dict[Callable[[Points], Array], DeviceArray] = {}
        self._selected: dict[Columns, DeviceRows] = {}
        self.numeric_columns = points.numeric.shape[1]
        self.category_columns = points.codes.shape[1]

    def __len__(self) -> int:
        """Return the number of rows m."""
        return len(self.places)

    def select(self, columns: Columns) -> DeviceRows:
        """Return the named columns of every row."""
        if columns not in self._selected:
            self._selected[columns] = DeviceRows(self.points.select(columns), self.places, self.device)
        return self._selected[columns]

    def _send(self, name: str, compute: Callable[[], NDArray[Any]], kind: str) -> DeviceArray:
        """Return compute(), one entry or row for each row of the whole, with a row for each of its columns."""
        if name not in self._sent:
            self._sent[name] = self.device.send(compute()[self.places].T, kind)
        return self._sent[name]

    @property
    def keeps_distances(self) -> bool:
        """Whether few digits of the rows keep the distances between them."""
        return self.points.expandable

    def short_columns(self) -> DeviceArray:
        """Return the numeric columns in the precision of the device, shape (p, m), their medians moved to 0.

        The crowd keeps its digits then, and others lose none that count. Float64 where even so too few would be left.
        """
        kind = self.device.precision if self.keeps_distances else "float64"
        return self._send("short", lambda: self.points.derive("less medians", _less_medians), kind)

    def long_columns(self) -> DeviceArray:
        """Return the numeric columns in float64, shape (p, m)."""
        return self._send("long", lambda: self.points.derive("less medians", _less_medians), "float64")

    def codes(self) -> DeviceArray:
        """Return the codes of the category columns, shape (q, m)."""
        return self._send("codes", lambda: self.points.codes, "int32")

    def ranks(self) -> DeviceArray:
        """Return codes of the different values of every numeric column, shape (p, m)."""
        return self._send("ranks", lambda: self.points.derive("ranks", _ranks), "int32")

    def left_factor(self) -> DeviceArray:
        """Return u with <u(x), v(y)> = |x - y|^2, float64, shape (p + 2, m)."""
        return self._send("left", lambda: self.points.derive("left factor", left_factor), "float64")

    def right_factor(self) -> DeviceArray:
        """Return v, see `left_factor`."""
        return self._send("right", lambda: self.points.derive("right factor", right_factor), "float64")

    def coordinates(self) -> DeviceArray:
        """Return the numeric columns as they are, float64, shape (p, m)."""
        return self._send("coordinates", lambda: self.points.numeric, "float64")

    def each(self, values: Callable[[Points], Array]) -> DeviceArray:
        """Return values(x) for every row, shape (m,), computed in float64 where the rows come from."""
        if values not in self._values:
            self._values[values] = self.device.send(values(self.points)[self.places])
        return self._values[values]


def _less_medians(numeric: Array) -> Array:
    return numeric - np.median(numeric, axis=0) if len(numeric) else numeric


def _ranks(numeric: Array) -> Array:
    columns = [np.unique(column, return_inverse=True)[1] for column in numeric.T]
    return np.column_stack(columns).astype(np.float64) if columns else numeric


class DevicePairs(Pairs):
    """Pairs (x, y) of rows on a device. The layout says how one value for each row becomes one for each pair.

    Parameters
    ----------
    x, y : DeviceRows
        Rows of one whole.
    shape : (int, int)
    """

    def __init__(self, x: DeviceRows, y: DeviceRows, shape: tuple[int, int]) -> None:
        self.x, self.y, self.shape = x, y, shape
        self.device = x.device
        self._kept: dict[str, Any] = {}
        self._parts: dict[Columns, DevicePairs] = {}

    @abstractmethod
    def _left(self, values: DeviceArray) -> DeviceArray:
        """Return values[x] for every pair."""

    @abstractmethod
    def _right(self, values: DeviceArray) -> DeviceArray:
        """Return values[y] for every pair."""

    @abstractmethod
    def _product(self, left: DeviceArray, right: DeviceArray) -> DeviceArray:
        """Return sum_c left[c, x] right[c, y] for every pair."""

    @abstractmethod
    def _of(self, x: DeviceRows, y: DeviceRows) -> DevicePairs:
        """Return the same pairs of other columns."""

    def restrict(self, columns: Columns) -> DevicePairs:
        """Return the same pairs with only the named columns of each row."""
        if columns not in self._parts:
            self._parts[columns] = self._of(self.x.select(columns), self.y.select(columns))
        return self._parts[columns]

    def _keep(self, name: str, compute: Callable[[], DeviceArray]) -> Array:
        if name not in self._kept:
            self._kept[name] = compute()
        return self._wrapped(self._kept[name])

    def _wrapped(self, array: DeviceArray) -> Array:
        # To numpy's functions this is an array.
        return cast("Array", Values(array, self.device))

    def _full(self, values: DeviceArray | None, *, of: Any = None) -> DeviceArray:
        """Return the sum over no columns where there are none."""
        return self.device.zeros(self.shape, self.device.single if of is None else of) if values is None else values

    def inner_product(self) -> Array:
        """Return <x, y> over the numeric columns."""
        return self._keep("inner", self._inner)

    def _inner(self) -> DeviceArray:
        if not self.x.numeric_columns:
            return self._full(None)
        return self.device.rounded(self._product(self.x.coordinates(), self.y.coordinates()))

    def squared_distance(self) -> Array:
        """Return |x - y|^2 over the numeric columns, never negative."""
        return self._keep("squared", lambda: self.device.rounded(self._squared()))

    def _squared(self) -> DeviceArray:
        if self.x.numeric_columns > FEW_COLUMNS and self.x.keeps_distances:
            squared = self._product(self.x.left_factor(), self.y.right_factor())
            return self.device.xp.clip(squared, min=0.0)
        return self._full(self._summed(self.device.xp.square))

    def _summed(self, function: Callable[[DeviceArray], DeviceArray]) -> DeviceArray | None:
        """Return sum_c function(x_c - y_c); None of no columns."""
        total = None
        left, right = self.x.short_columns(), self.y.short_columns()
        for column in range(self.x.numeric_columns):
            term = function(self._left(left[column, :]) - self._right(right[column, :]))
            total = term if total is None else total + term
        return total

    def distance(self) -> Array:
        """Return |x - y| over the numeric columns as a new array, 0 where it is no more than rounding."""
        return self._keep("distance", self._distance)

    def _distance(self) -> DeviceArray:
        xp = self.device.xp
        squared = self._squared()
        if self.x.numeric_columns > FEW_COLUMNS:
            # The root of a rounding error is large: equal rows must not be told apart by it.
            squared = xp.where(squared <= self.x.points.rounding, xp.zeros_like(squared), squared)
        return self.device.rounded(xp.sqrt(squared))

    def manhattan(self) -> Array:
        """Return |x - y|_1 over the numeric columns."""
        return self._keep("manhattan", lambda: self.device.rounded(self._full(self._summed(self.device.xp.abs))))

    def mismatches(self) -> Array:
        """Return the number of category columns in which x and y differ."""
        return self._keep("mismatches", self._mismatches)

    def _mismatches(self) -> DeviceArray:
        total = None
        for differ in self._differing(self.x.codes(), self.y.codes(), self.x.category_columns):
            counted = self.device.rounded(differ)
            total = counted if total is None else total + counted
        return self._full(total)

    def _differing(self, left: DeviceArray, right: DeviceArray, count: int) -> Iterator[DeviceArray]:
        """Yield where x and y differ, for each column of codes."""
        for column in range(count):
            yield self._left(left[column, :]) != self._right(right[column, :])

    def equal(self) -> NDArray[np.bool_]:
        """Return whether x and y agree in every column, numeric ones included."""
        differ = self._full(None, of=self.device.xp.bool)
        for one in self._differing(self.x.codes(), self.y.codes(), self.x.category_columns):
            differ = differ | one
        for one in self._differing(self.x.ranks(), self.y.ranks(), self.x.numeric_columns):
            differ = differ | one
        return cast("NDArray[np.bool_]", Values(~differ, self.device))

    def unequal(self) -> Iterator[NDArray[np.bool_]]:
        """Yield whether x_c != y_c for each numeric column c: by the values as they are, not rounded ones."""
        for one in self._differing(self.x.ranks(), self.y.ranks(), self.x.numeric_columns):
            yield cast("NDArray[np.bool_]", Values(one, self.device))

    def differences(self) -> Iterator[Array]:
        """Yield x_c - y_c for each numeric column c, in float64: what a kernel makes of it may need all its digits."""
        left, right = self.x.long_columns(), self.y.long_columns()
        for column in range(self.x.numeric_columns):
            yield self._wrapped(self._left(left[column, :]) - self._right(right[column, :]))

    def of_left(self, values: Callable[[Points], Array]) -> Array:
        """Return values(x) for the x of each pair."""
        return self._wrapped(self._left(self.x.each(values)))

    def of_right(self, values: Callable[[Points], Array]) -> Array:
        """Return values(y) for the y of each pair."""
        return self._wrapped(self._right(self.y.each(values)))


class DenseOnDevice(DevicePairs):
    """All pairs of the rows of x with the rows of y: shape (len(x), len(y))."""

    def __init__(self, x: DeviceRows, y: DeviceRows) -> None:
        super().__init__(x, y, (len(x), len(y)))

    def _left(self, values: DeviceArray) -> DeviceArray:
        return values[:, None]

    def _right(self, values: DeviceArray) -> DeviceArray:
        return values[None, :]

    def _product(self, left: DeviceArray, right: DeviceArray) -> DeviceArray:
        return self.device.xp.matmul(self.device.xp.matrix_transpose(left), right)

    def _of(self, x: DeviceRows, y: DeviceRows) -> DenseOnDevice:
        return DenseOnDevice(x, y)


class LagsOnDevice(DevicePairs):
    """The pairs (row i, row i + start + k) for k < count and i < size: shape (count, size).

    Parameters
    ----------
    rows : DeviceRows
        At least size + start + count - 1 rows.
    start, count, size : int
    """

    def __init__(self, rows: DeviceRows, start: int, count: int, size: int) -> None:
        super().__init__(rows, rows, (count, size))
        self._start = start

    def _left(self, values: DeviceArray) -> DeviceArray:
        return values[None, : self.shape[1]]

    def _right(self, values: DeviceArray) -> DeviceArray:
        count, size = self.shape
        return self.device.window(values[self._start : self._start + size + count - 1], count)

    def _of(self, x: DeviceRows, y: DeviceRows) -> LagsOnDevice:
        del y
        return LagsOnDevice(x, self._start, *self.shape)

    def _product(self, left: DeviceArray, right: DeviceArray) -> DeviceArray:
        """Return the products through those of tiles of rows with all rows that they meet, of which a part is kept."""
        xp, (count, size) = self.device.xp, self.shape
        height = min(max(count, LEAST_HEIGHT), size)
        met = height + count - 1
        # One row more than is kept, so that the products can be read in rows longer by one: each then begins at the
        # lag `start` of its own row.
        above = self._tiles(left, 0, height, height + 1)
        below = self._tiles(right, self._start, height, met)
        products = xp.matmul(xp.matrix_transpose(above), below)
        tiles = products.shape[0]
        skewed = xp.reshape(products, (tiles, -1))[:, : height * (met + 1)]
        lines = xp.permute_dims(xp.reshape(skewed, (tiles, height, met + 1))[:, :, :count], (2, 0, 1))
        return xp.reshape(lines, (count, tiles * height))[:, :size]

    def _tiles(self, values: DeviceArray, first: int, step: int, length: int) -> DeviceArray:
        """Return values[:, first + b step + j] for every tile b and j < length, shape (tiles, len(values), length)."""
        xp, place = self.device.xp, self.device.place
        tiles = -(-self.shape[1] // step)
        starts = first + step * xp.arange(tiles, device=place)
        index = starts[:, None] + xp.arange(length, device=place)[None, :]
        # What lies beyond the last row is not kept.
        index = xp.reshape(xp.clip(index, max=values.shape[1] - 1), (-1,))
        taken = xp.reshape(xp.take(values, index, axis=1), (values.shape[0], tiles, length))
        return xp.permute_dims(taken, (1, 0, 2))
