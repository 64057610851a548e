"""What a kernel is, and what it may ask about the pairs of rows it is evaluated on.

A kernel never sees how its pairs are laid out. It asks a `Pairs` object for inner products, squared distances and
the like, each an array of one shape, and combines them entry by entry. Whoever lays the pairs out (a dense block, a
block of lags) computes each quantity once, so that the kernels of a sum or of a family share it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerntest.errors import UsageError
from kerntest.kernels.exponential import exponential

if TYPE_CHECKING:
    from kerntest.engines.engine import Engine

Array: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
Metric: TypeAlias = Literal["euclidean", "manhattan", "mismatches"]
# Squared distances by expansion are wrong by about 1e-15 of the largest squared norm: it may be so many times the
# square of a small distance: the 2 % quantile of those between rows a few places apart.
LOST_DIGITS, NEAR, NEIGHBOURS = 1e5, 0.02, (1, 2, 3, 7)
# Of rows that others are compared with so many are looked at together with those.
SOME_ROWS = 64
# Rounding of a squared distance from a product, in units of the largest squared norm.
ROUNDING_UNITS = 32.0
# Exponents are not seen to be so far off.
UNSEEN = 1e-9
# Its square is a normal number.
SMALLEST_BASE = 1e-150
# Beyond so many halvings at once an exponential is cheaper, and more exact.
MOST_HALVINGS = 2
# From so many rows on one pass over a tile for all columns saves more than the time that loading it takes.
MANY_ROWS = 4000
BandwidthRule: TypeAlias = Callable[[Metric, "Columns | None"], float]
MomentsRule: TypeAlias = Callable[["Columns | None"], "Array"]


class Columns(NamedTuple):
    """Positions among the numeric columns and among the categories; of numeric X (X - m) W, if `root` is W above m in bytes."""

    numeric: tuple[int, ...]
    categories: tuple[int, ...]
    root: bytes = b""


class Points:
    """Rows as kernels see them.

    What is derived from rows, such as their squared norms, is computed once for the whole and shared by its slices.

    Parameters
    ----------
    numeric : ndarray of float64, shape (n, p)
        Numeric columns, scaled as the caller wants them.
    codes : ndarray of int64, shape (n, q)
        Category columns as codes; only their equality means something.
    """

    # How much higher and wider tiles are best.
    scale: ClassVar[int] = 1

    def __init__(self, numeric: Array, codes: Codes, expandable: bool | None = None) -> None:
        self.numeric, self.codes, self._expandable = numeric, codes, expandable
        self._whole: tuple[Points, slice] | None = None
        self._derived: dict[Hashable, Array] = {}
        self._selected: dict[Columns, Points] = {}

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.numeric)

    def __reduce__(self) -> tuple[type[Points], tuple[Array, Codes, bool | None]]:
        """Rows travel alone: what is derived is derived again, but how distances are computed stays as of the whole."""
        return Points, (self.numeric, self.codes, self._expandable if self._whole is None else self.expandable)

    @classmethod
    def of(cls, numeric: Array) -> Points:
        """Make points without category columns from an array of shape (n,) or (n, p)."""
        numeric = np.asarray(numeric, dtype=np.float64)
        return cls(numeric[:, None] if numeric.ndim == 1 else numeric, np.empty((len(numeric), 0), dtype=np.int64))

    def sent(self, engine: Engine) -> Points:
        """Return the rows where an engine computes."""
        numeric = engine.send(self.numeric)
        return self if numeric is self.numeric else SentPoints(self, numeric, engine)

    def by_columns(self) -> Points:
        """Return the rows with columns side by side in memory: arithmetic runs down them, one at a time."""
        return Points(np.asfortranarray(self.numeric), np.asfortranarray(self.codes))

    def take(self, rows: NDArray[np.intp] | slice) -> Points:
        """Return the named rows, in that order; a slice shares what is derived from the whole."""
        if isinstance(rows, slice):
            taken = Points(self.numeric[rows], self.codes[rows])
            taken._whole = (self, rows)
            return taken
        # `take` is four times as fast as an index, but not for rows of no columns.
        codes = self.codes.take(rows, axis=0) if self.codes.size else self.codes[rows]
        return Points(self.numeric.take(rows, axis=0) if self.numeric.size else self.numeric[rows], codes)

    def select(self, columns: Columns) -> Points:
        """Return the named columns of every row."""
        if self._whole is not None:
            whole, rows = self._whole
            return whole.select(columns).take(rows)
        if columns not in self._selected:
            numeric = self.numeric[:, list(columns.numeric)]
            if columns.root:
                *W, m = np.frombuffer(columns.root).reshape(len(columns.numeric) + 1, -1)
                numeric = (numeric - m) @ np.array(W)
            chosen = Points(numeric, self.codes[:, list(columns.categories)])
            self._selected[columns] = chosen.by_columns()
        return self._selected[columns]

    @property
    def whole(self) -> Points:
        """The rows of which these are a slice, or a slice of a slice; these rows themselves if they are not."""
        return self if self._whole is None else self._whole[0].whole

    @property
    def expandable(self) -> bool:
        """Whether |x|^2 + |y|^2 - 2<x, y> keeps the digits of the distances between these rows (of the whole).

        Its error is a few units in the last place of the largest squared norm: too much where some rows lie far away
        from a crowd of others, which would then collapse. Judged by the distances between rows a few places apart.
        Cost: O(n p), once.
        """
        if self._whole is not None:
            return self.whole.expandable
        if self._expandable is None:
            _, largest, farthest = self.reach
            self._expandable = bool(np.isfinite(largest) and largest <= farthest)
        return self._expandable

    @cached_property
    def reach(self) -> tuple[Array, float, float]:
        """The mean, the largest squared distance from it, and up to which one the expansion keeps the digits."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = self.numeric.mean(axis=0)
            return mean, float(squared_norms(self.numeric - mean).max(initial=0.0)), _farthest(self.numeric)

    def expansion_of(self, others: Points) -> Array | None:
        """Return `left_factor` of other rows, to be multiplied with the right one of these; None where digits are lost."""
        whole = self.whole
        if others.whole is whole or not whole.expandable:
            return others.derive(left_factor) if whole.expandable else None
        # Rows far away are as far from all of these: what matters is how far away these may be near others.
        origin, largest, farthest = whole.reach
        farthest = min(farthest, _farthest(np.concatenate([others.numeric, whole.numeric[:SOME_ROWS]])))
        return left_factor(others.numeric, origin) if largest <= farthest else None

    @cached_property
    def rounding(self) -> float:
        """How far rounding can move a squared distance between these rows (of the whole) from 0."""
        if self._whole is not None:
            return self.whole.rounding
        if not self.expandable:
            return 0.0
        squares = self.derive(right_factor)[:, -1]
        return ROUNDING_UNITS * float(np.finfo(np.float64).eps) * float(squares.max(initial=0.0))

    def derive(self, compute: Callable[..., Array], *arguments: Hashable) -> Array:
        """Return compute(numeric, *arguments), an entry for each row, computed once for the whole of which this is a slice."""
        if self._whole is not None:
            whole, rows = self._whole
            return whole.derive(compute, *arguments)[rows]
        key = compute, *arguments
        if key not in self._derived:
            self._derived[key] = self._computed(compute, *arguments)
        return self._derived[key]

    def _computed(self, compute: Callable[..., Array], *arguments: Hashable) -> Array:
        return compute(self.numeric, *arguments)


class SentPoints(Points):
    """Rows on a GPU. What is derived from them is derived in this process, and sent."""

    scale = 5

    def __init__(self, here: Points, numeric: Array, engine: Engine) -> None:
        super().__init__(numeric, engine.send(here.codes), here.expandable)
        self._here, self._engine = here, engine

    def select(self, columns: Columns) -> Points:
        """Return the named columns of every row."""
        if columns not in self._selected:
            self._selected[columns] = self._here.select(columns).sent(self._engine)
        return self._selected[columns]

    def _computed(self, compute: Callable[..., Array], *arguments: Hashable) -> Array:
        sent: Array = self._engine.send(self._here.derive(compute, *arguments))
        return sent


def squared_norms(rows: Array) -> Array:
    """Return |x|^2 of every row, shape (n,)."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _farthest(rows: Array) -> float:
    """Return how far from the origin, squared, the expansion keeps the digits of distances between rows a few places apart."""
    steps = [rows[step:] - rows[:-step] for step in NEIGHBOURS if step < len(rows)]
    squared = np.concatenate([squared_norms(one) for one in steps] or [np.empty(0)])
    squared = squared[squared > 0]
    # Not np.quantile, which imports numpy.ma: 13 ms of a small test.
    at = int(NEAR * (len(squared) - 1))
    return LOST_DIGITS * float(np.partition(squared, at)[at]) if len(squared) else 0.0


def _centred(numeric: Array, origin: Array | None = None) -> tuple[Array, Array, Array]:
    """Return rows less an origin, their mean if none is given (no rows have none), their squares, and ones."""
    if origin is None and len(numeric):
        origin = numeric.mean(axis=0)
    X = numeric if origin is None else numeric - origin
    return X, (X * X).sum(axis=1, keepdims=True), np.ones((len(X), 1))


def left_factor(numeric: Array, origin: Array | None = None) -> Array:
    """Return rows u(x) with <u(x), v(y)> = |x - y|^2, for v = `right_factor`: one product gives squared distances.

    The mean of all rows, of other ones that are compared with the y that of those, is moved to the origin first: the
    expanded square loses digits with the distance from it.
    """
    X, squares, ones = _centred(numeric, origin)
    return np.hstack([-2.0 * X, squares, ones])


def right_factor(numeric: Array) -> Array:
    """Return rows v(y), see `left_factor`."""
    X, squares, ones = _centred(numeric)
    return np.hstack([X, ones, squares])


class Pairs(ABC):
    """Pairs (x, y) of rows in some layout, and the quantities that kernels are made of.

    A quantity has the shape `shape`. It may be shared with other kernels: callers must not write into it.
    """

    # Whether squared distances were found as |x|^2 + |y|^2 - 2<x, y>.
    expanded = False
    # Values by which a kernel finds those of half its bandwidth, see `halve_bandwidths`.
    halved: dict[Hashable, tuple[float, Array, float | None]] | None = None

    def __init__(self, x: Points, y: Points, shape: tuple[int, ...]) -> None:
        self.x, self.y, self.shape = x, y, shape
        self._kept: dict[str, Array] = {}
        self._parts: dict[Columns, Self] = {}

    @abstractmethod
    def over(self, x: Points, y: Points) -> Self:
        """Return other rows laid out alike."""

    @abstractmethod
    def at_x(self, values: Array) -> Array:
        """Return numbers of the rows x where the pairs of each are."""

    @abstractmethod
    def at_y(self, values: Array) -> Array:
        """Return numbers of the rows y where the pairs of each are."""

    @abstractmethod
    def _inner_product(self) -> Array: ...

    @abstractmethod
    def _squared_distance(self) -> Array: ...

    def restrict(self, columns: Columns) -> Self:
        """Return the same pairs with only the named columns of each row; asked twice, the same object."""
        if columns not in self._parts:
            self._parts[columns] = self.over(self.x.select(columns), self.y.select(columns))
            if self.halved is not None:
                self._parts[columns].halve_bandwidths()
        return self._parts[columns]

    def _keep(self, name: str, compute: Callable[[], Array]) -> Array:
        if name not in self._kept:
            self._kept[name] = compute()
        return self._kept[name]

    def inner_product(self) -> Array:
        """Return <x, y> over the numeric columns."""
        return self._keep("inner", self._inner_product)

    def squared_distance(self) -> Array:
        """Return |x - y|^2 over the numeric columns, never negative."""
        return self._keep("squared", self._squared_distance)

    def squared_over(self, unit: float) -> Array:
        """Return |x - y|^2 where it will be divided by a unit: 0 where it is no more than rounding, if that would be seen.

        A narrow kernel would else tell equal rows apart, and its matrix would not be positive definite.
        """
        squared = self.squared_distance()
        if (floor := self._rounding) <= UNSEEN * unit:
            return squared
        squared = squared.copy()
        squared[squared <= floor] = 0.0
        return squared

    def manhattan(self) -> Array:
        """Return |x - y|_1 over the numeric columns."""
        return self._keep("manhattan", lambda: self.summed(np.abs))

    def mismatches(self) -> Array:
        """Return the number of category columns in which x and y differ."""
        return self._keep("mismatches", self._mismatches)

    def _mismatches(self) -> Array:
        total = self._zeros()
        for left, right in zip(self.x.codes.T, self.y.codes.T, strict=True):
            total += self.at_x(left) != self.at_y(right)
        return total

    def differences(self) -> Iterator[Array]:
        """Yield x_c - y_c for each numeric column c, one at a time; the caller may write into what it gets."""
        for left, right in zip(self.x.numeric.T, self.y.numeric.T, strict=True):
            yield np.subtract(self.at_x(left), self.at_y(right))

    def summed(self, function: Callable[..., Any]) -> Array:
        """Return a function of the differences, which writes to `out`, summed over the numeric columns."""
        total: Array | None = None
        for difference in self.differences():
            function(difference, out=difference)
            total = difference if total is None else np.add(total, difference, out=total)
        return self._zeros() if total is None else total

    def _zeros(self) -> Array:
        return np.zeros_like(self.x.numeric, shape=self.shape, order="C")

    @property
    def _rounding(self) -> float:
        """How far the squared distances may be from those of equal rows, by rounding."""
        return max(self.x.rounding, self.y.rounding) if self.expanded else 0.0

    def distance(self) -> Array:
        """Return |x - y| over the numeric columns as a new array, 0 where it is no more than rounding.

        The root of a rounding error is a hundred million times larger: equal rows must not be told apart by it.
        """
        squared = self.squared_distance()
        rooted: Array = np.sqrt(squared)
        if (floor := self._rounding) > 0:
            rooted[squared <= floor] = 0.0
        return rooted

    def exponential_manhattan(self, bandwidth: float) -> Array:
        """Return exp(-|x - y|_1 / bandwidth) as a new array."""
        return exponential(self.manhattan(), -1 / bandwidth)

    def all_mismatches(self) -> Array:
        """Return the number of columns in which x and y differ, numeric ones included."""
        count = self.mismatches()
        for difference in self.differences():
            count = count + (difference != 0)
        return count

    def halve_bandwidths(self) -> None:
        """From now on keep the values of each kind of kernel: at half a bandwidth they are a power of those at the whole.

        Kernels are then to be evaluated from wide to narrow, and what they return may be read only.
        """
        self.halved = {}

    def values_of(self, kind: Hashable, bandwidth: float, squarings: int, compute: Callable[[], Array]) -> Array:
        """Return compute(), or powers of values kept of a bandwidth that halvings lead to this one.

        k(half the bandwidth) = k^(2^squarings) for kernels of this kind; 0 squarings: there is no such rule.
        """
        if self.halved is None or not squarings:
            return compute()
        wide, known, least = self.halved.get(kind, (0.0, None, None))
        share, halvings = math.frexp(wide / bandwidth)
        smallest: float | None = None
        if known is not None and share == 0.5 and 1 <= halvings <= MOST_HALVINGS + 1:
            values = known
            # Of the last of a family nobody asks.
            smallest = float(values.min(initial=1.0)) if least is None else least
            for _ in range((halvings - 1) * squarings):
                # No power falls below the smallest normal number: arithmetic with such is slow.
                if smallest < SMALLEST_BASE:
                    values, smallest = np.maximum(values, SMALLEST_BASE), SMALLEST_BASE
                values = np.square(values, out=None if values is known else values)
                smallest *= smallest
        else:
            values = compute()
        values.flags.writeable = False
        self.halved[kind] = bandwidth, values, smallest
        return values


class DensePairs(Pairs):
    """All pairs of the rows of x with the rows of y: shape (len(x), len(y))."""

    def __init__(self, x: Points, y: Points) -> None:
        super().__init__(x, y, (len(x), len(y)))

    def over(self, x: Points, y: Points) -> DensePairs:
        """Return all pairs of these rows."""
        return DensePairs(x, y)

    def at_x(self, values: Array) -> Array:
        """Return a column."""
        return values[:, None]

    def at_y(self, values: Array) -> Array:
        """Return a row."""
        return values[None, :]

    def _inner_product(self) -> Array:
        return self.x.numeric @ self.y.numeric.T

    def _squared_distance(self) -> Array:
        """Return |x - y|^2, by one matrix product where that keeps the digits, else column by column."""
        x, y = self.x, self.y
        if not len(x) or not len(y):
            return np.zeros(self.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            left = y.expansion_of(x)
            if left is None:
                return self.summed(np.square)
        self.expanded, squared = True, left @ y.derive(right_factor).T
        return np.maximum(squared, 0.0, out=squared)

    def manhattan(self) -> Array:
        """Return |x - y|_1 over the numeric columns."""
        if len(self.x.whole) < MANY_ROWS or not isinstance(self.x.numeric, np.ndarray):
            return super().manhattan()
        from scipy.spatial.distance import cdist  # noqa: PLC0415 - a small test starts without it

        return self._keep("manhattan", lambda: np.asarray(cdist(self.x.numeric, self.y.numeric, "cityblock")))


class RowPairs(Pairs):
    """The pairs (x_i, y_i) of as many rows x as y: shape (n,)."""

    def __init__(self, x: Points, y: Points) -> None:
        super().__init__(x, y, (len(x),))

    def over(self, x: Points, y: Points) -> RowPairs:
        """Return the pairs of these rows."""
        return RowPairs(x, y)

    def at_x(self, values: Array) -> Array:
        """Return the numbers as they are."""
        return values

    at_y = at_x

    def _inner_product(self) -> Array:
        products: Array = (self.x.numeric * self.y.numeric).sum(axis=1)
        return products

    def _squared_distance(self) -> Array:
        return squared_norms(self.x.numeric - self.y.numeric)

    def manhattan(self) -> Array:
        """Return |x - y|_1 over the numeric columns."""
        return self._keep("manhattan", lambda: np.abs(self.x.numeric - self.y.numeric).sum(axis=1))


class Kernel(ABC):
    """A symmetric function of two rows, and what is known of it.

    Subclasses are frozen dataclasses. `str(kernel)` is a text that `parse_kernel` reads back as an equal kernel.
    """

    name: ClassVar[str]
    formula: ClassVar[str]

    @property
    def parts(self) -> tuple[Any, ...]:
        """The kernels that this one is made of; none for one by itself."""
        return ()

    @property
    def positive_definite(self) -> bool:
        """Whether every kernel matrix is positive semi-definite."""
        return all(part.positive_definite for part in self.parts)

    @property
    def characteristic(self) -> bool:
        """Whether MMD = 0 implies equal distributions of the columns that the kernel sees."""
        return bool(self.parts) and all(part.characteristic for part in self.parts)

    @property
    def free(self) -> bool:
        """Whether a bandwidth is still to be chosen somewhere in this kernel."""
        return any(part.free for part in self.parts)

    def evaluate(self, pairs: Pairs) -> Array:
        """Return k(x, y) for every pair, as an array of shape `pairs.shape`: a new one, or read only."""
        del pairs
        raise self.unbound()

    def diagonal(self, points: Points) -> Array:
        """Return k(x, x) for every row, shape (n,)."""
        return self.evaluate(RowPairs(points, points))

    def unbound(self) -> UsageError:
        """Return the error of a kernel that is asked for values before it knows the table."""
        hint = "bind(kernel, numeric_names, category_names) finds them"
        return refused(f"the kernel '{self}' is one of columns, but not of which table", hint, "unbound_kernel")

    def with_parts(self, parts: tuple[Any, ...]) -> Self:
        """Return the same operation on other kernels."""
        del parts
        return self

    def resolve(self, rule: BandwidthRule, columns: Columns | None = None) -> Kernel:
        """Return this kernel with each missing bandwidth set to rule(metric, columns)."""
        return self.with_parts(tuple(part.resolve(rule, columns) for part in self.parts))

    def whitened(self, rule: MomentsRule, columns: Columns | None = None) -> Kernel:
        """Return this kernel with each matrix that a covariance has to give from the moments of columns, rule(columns)."""
        return self.with_parts(tuple(part.whitened(rule, columns) for part in self.parts))

    def __call__(self, x: Points | Array, y: Points | Array | None = None) -> Array:
        """Return the dense kernel matrix, shape (len(x), len(y)). For tests and small data."""
        left = x if isinstance(x, Points) else Points.of(x)
        right = left if y is None else y if isinstance(y, Points) else Points.of(y)
        return self.evaluate(DensePairs(left, right))


def refused(message: str, hint: str, code: str = "kernel_columns", **where: str | int) -> UsageError:
    """Return the error of a kernel that cannot be meant so."""
    return UsageError(message, hint=hint, code=f"usage.{code}", where=where)


def raised(values: Array, exponent: float) -> Array:
    """Return values^exponent. Small whole exponents by repeated squaring: several times faster than `power`."""
    if not exponent.is_integer() or exponent > 64:
        return np.power(values, exponent, out=values)
    # Digit by digit of the exponent, from the highest.
    result: Array = values.copy()
    for digit in f"{int(exponent):b}"[1:]:
        np.multiply(result, result, out=result)
        if digit == "1":
            np.multiply(result, values, out=result)
    return result
