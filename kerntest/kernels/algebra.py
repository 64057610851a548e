"""Kernels made of kernels: constants, sums, products, powers and normalised kernels.

All of these keep positive definiteness: sums and products of positive definite kernels are positive definite
(Schur), weights are not negative, and an exponent that is not whole is accepted only over an infinitely divisible
kernel, one whose every positive power is positive definite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

import numpy as np

from kerntest.errors import UsageError
from kerntest.kernels import NORMALISE
from kerntest.kernels.base import (
    Array,
    BandwidthRule,
    Columns,
    Kernel,
    Pairs,
    Points,
    raised,
    refuse_overflow,
    writeable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Kind: TypeAlias = Literal["numeric", "discrete"]

# How tightly a text binds: an operand that binds less tightly than its operator asks for is put in parentheses.
IN_SUM, IN_PRODUCT, IN_POWER, ATOMIC = 1, 2, 3, 4
# Squares of a bandwidth, products with a shape parameter and products of weights must neither vanish nor overflow.
SMALLEST, LARGEST = 1e-75, 1e75


# What an argument may be: "must be ...", and whether a number is.
Domain: TypeAlias = tuple[str, Callable[[float], bool]]
POSITIVE: Domain = ("positive", lambda value: value > 0)
NOT_NEGATIVE: Domain = ("zero or positive", lambda value: value >= 0)


def check_number(value: object, owner: str, argument: str, domain: Domain) -> float:
    """Return the value of an argument of a kernel as a float after checking that it is a finite number in its domain."""
    shown, wanted = repr(value), "a number"
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        words, contains = domain
        if not math.isfinite(number):
            shown, wanted = str(value), "a finite number"
        elif not contains(number):
            shown, wanted = format_number(number), words
        elif number and not SMALLEST <= abs(number) <= LARGEST:
            shown, wanted = format_number(number), f"between {SMALLEST} and {LARGEST} in size"
        else:
            return number
    raise UsageError(
        f"{argument} of {owner} must be {wanted}, not {shown}",
        hint=f"{'left out, it is found from the data; ' if argument == 'bandwidth' else ''}"
        "`kerntest kernels` shows how each kernel is written",
        code="usage.kernel_argument",
        where={"argument": argument, "value": shown},
    )


def format_number(value: float) -> str:
    """Return the shortest text that reads back as `value`; whole numbers without a decimal point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


class Expression(Kernel):
    """A kernel that `+`, `*` and `**` combine with other kernels and with numbers."""

    precedence: ClassVar[int] = ATOMIC

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The kernels that this one is made of; none for an atom."""
        return ()

    def with_parts(self, parts: tuple[Expression, ...]) -> Expression:
        """Return the same operation on other kernels."""
        del parts
        return self

    @property
    def kinds(self) -> frozenset[Kind]:
        """Which kinds of columns decide the value: none for a constant."""
        return frozenset[Kind]().union(*(part.kinds for part in self.parts))

    @property
    def infinitely_divisible(self) -> bool:
        """Whether every positive power of this kernel is positive definite."""
        return bool(self.parts) and all(part.infinitely_divisible for part in self.parts)

    def resolve(self, rule: BandwidthRule, columns: Columns | None = None) -> Expression:
        """Return this kernel with each missing bandwidth set to rule(metric, columns)."""
        return self.with_parts(tuple(part.resolve(rule, columns) for part in self.parts))

    def enclosed(self, at_least: int) -> str:
        """Return the text, in parentheses where it binds less tightly than that."""
        return str(self) if self.precedence >= at_least else f"({self})"

    def __add__(self, other: Expression | float) -> Expression:
        """Return the sum of two kernels, or of a kernel and a constant."""
        return _combination(Sum, self, other)

    def __radd__(self, other: float) -> Expression:
        """Return the sum of a constant and this kernel."""
        return _combination(Sum, other, self)

    def __mul__(self, other: Expression | float) -> Expression:
        """Return the product of two kernels, or this kernel scaled by a number."""
        return _combination(Product, self, other)

    def __rmul__(self, other: float) -> Expression:
        """Return this kernel scaled by a number."""
        return _combination(Product, other, self)

    def __pow__(self, exponent: float) -> Expression:
        """Return this kernel raised to a positive power, entry by entry."""
        return Power(self, exponent)


def _combination(kind: type[Combination], *values: Any) -> Expression:
    """Return kernels and numbers combined; what is neither is left to Python to refuse."""
    operands = tuple(Constant(float(value)) if isinstance(value, Real) else value for value in values)
    if not all(isinstance(operand, Expression) for operand in operands):
        return cast("Expression", NotImplemented)
    return kind(operands)


def leaves(kernel: Expression) -> Iterator[Expression]:
    """Yield the kernels of the expression that are not made of others, from left to right, constants included."""
    if not kernel.parts:
        yield kernel
    for part in kernel.parts:
        yield from leaves(part)


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """k(x, y) = c for a number c >= 0: it sees nothing of the rows."""

    name: ClassVar[str] = "constant"
    formula: ClassVar[str] = "c"
    infinitely_divisible = True

    value: float

    def __post_init__(self) -> None:
        """Check the number and keep it as a float."""
        object.__setattr__(self, "value", check_number(self.value, "a kernel", "the weight", NOT_NEGATIVE))

    def evaluate(self, pairs: Pairs) -> Array:
        """Return c for every pair."""
        return np.full(pairs.shape, self.value)

    def diagonal(self, points: Points) -> Array:
        """Return c for every row."""
        return np.full(len(points), self.value)

    def __str__(self) -> str:
        """Return the number."""
        return format_number(self.value)


def combined(kernel: Kernel, operation: np.ufunc, operands: Iterable[Array | float]) -> Array:
    """Return arrays, or numbers after the first, combined by an operation one after another."""
    remaining: Iterator[Any] = iter(operands)
    total = writeable(next(remaining))
    with refuse_overflow(kernel):
        for operand in remaining:
            operation(total, operand, out=total)
    return total


@dataclass(frozen=True, slots=True)
class Combination(Expression):
    """Two kernels or more, combined entry by entry; operands that are the same operation are opened: (a + b) + c = a + (b + c)."""

    symbol: ClassVar[str]
    operation: ClassVar[np.ufunc]

    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        """Open the operands that are the same operation."""
        opened = [part for one in self.operands for part in (one.parts if type(one) is type(self) else (one,))]
        object.__setattr__(self, "operands", tuple(opened))

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The operands."""
        return self.operands

    def with_parts(self, parts: tuple[Expression, ...]) -> Expression:
        """Return the same operation on other kernels."""
        return type(self)(parts)

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the combined values; numbers are applied as numbers, without an array of their own."""
        numbers = [operand.value for operand in self.operands if isinstance(operand, Constant)]
        others = (operand.evaluate(pairs) for operand in self.operands if not isinstance(operand, Constant))
        first = next(others, None)
        if first is None:
            first = np.full(pairs.shape, numbers.pop())
        return combined(self, self.operation, chain([first], numbers, others))

    def diagonal(self, points: Points) -> Array:
        """Return the combined diagonals."""
        return combined(self, self.operation, (operand.diagonal(points) for operand in self.operands))

    def __str__(self) -> str:
        """Return the operands joined by the symbol."""
        return self.symbol.join(operand.enclosed(self.precedence + 1) for operand in self.operands)


class Sum(Combination):
    """k(x, y) = k_1(x, y) + ... + k_m(x, y)."""

    name = "sum"
    formula = "k(x,y) + l(x,y)"
    precedence = IN_SUM
    symbol = " + "
    operation = np.add
    infinitely_divisible = False

    @property
    def characteristic(self) -> bool:
        """Whether some term is, and compares all kinds of columns that the sum does.

        gaussian + delta is not: it sees the numeric columns and the categories, each apart, but never how they
        hang together.
        """
        return self.positive_definite and any(term.characteristic and term.kinds == self.kinds for term in self.parts)


class Product(Combination):
    """k(x, y) = k_1(x, y) ... k_m(x, y); a `Constant` among the factors scales the others and comes first."""

    name = "product"
    formula = "k(x,y) l(x,y)"
    precedence = IN_PRODUCT
    symbol = "*"
    operation = np.multiply

    def __post_init__(self) -> None:
        """Open the factors that are products, and put numbers first."""
        super().__post_init__()
        ordered = sorted(self.operands, key=lambda factor: not isinstance(factor, Constant))
        object.__setattr__(self, "operands", tuple(ordered))

    @property
    def characteristic(self) -> bool:
        """Whether all factors are, positive numbers apart; a zero weight loses it."""
        return bool(self.kinds) and all(factor.characteristic or _is_positive_number(factor) for factor in self.parts)


@dataclass(frozen=True, slots=True)
class Modified(Expression):
    """One kernel changed in a way that keeps what is known of it."""

    kernel: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The kernel inside."""
        return (self.kernel,)

    def with_parts(self, parts: tuple[Expression, ...]) -> Expression:
        """Return the same change of another kernel."""
        return replace(self, kernel=parts[0])


@dataclass(frozen=True, slots=True)
class Power(Modified):
    """k(x, y)^p, entry by entry, for a whole p > 0, or any over an infinitely divisible kernel.

    It is characteristic where k is: every characteristic kernel here is universal on bounded data, and so is its
    product with itself; a broken power of an infinitely divisible one stays in its family (gaussian^p is a wider
    gaussian).
    """

    name: ClassVar[str] = "power"
    formula: ClassVar[str] = "k(x,y)^p"
    precedence: ClassVar[int] = IN_POWER

    exponent: float

    def __post_init__(self) -> None:
        """Check the exponent and keep it as a float."""
        exponent = check_number(self.exponent, "a power", "the exponent", POSITIVE)
        object.__setattr__(self, "exponent", exponent)
        if not exponent.is_integer() and not self.kernel.infinitely_divisible:
            raise UsageError(
                f"the kernel '{self}' need not be positive definite",
                hint="take a whole exponent: the kernel inside is not infinitely divisible",
                code="usage.kernel_argument",
                where={"argument": "exponent", "value": format_number(exponent)},
            )

    def evaluate(self, pairs: Pairs) -> Array:
        """Return k(x, y)^p for every pair."""
        values = writeable(self.kernel.evaluate(pairs))
        with refuse_overflow(self):
            return raised(values, self.exponent)

    def diagonal(self, points: Points) -> Array:
        """Return k(x, x)^p for every row."""
        values = self.kernel.diagonal(points)
        with refuse_overflow(self):
            return raised(values, self.exponent)

    def __str__(self) -> str:
        """Return base^exponent."""
        return f"{self.kernel.enclosed(ATOMIC)}^{format_number(self.exponent)}"


def _is_positive_number(kernel: Expression) -> bool:
    nowhere = Points.of(np.zeros((1, 0)))
    return not kernel.kinds and bool(kernel.diagonal(nowhere)[0] > 0)


@dataclass(frozen=True, slots=True)
class Normalised(Modified):
    """k(x, y) / sqrt(k(x, x) k(y, y)): 1 on the diagonal. A row with k(x, x) = 0 gives 0."""

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
