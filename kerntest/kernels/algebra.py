"""Kernels made of kernels: constants, sums, products, powers, normalised kernels, and kernels of some of the columns.

All of these keep positive definiteness: sums and products of positive definite kernels are positive definite
(Schur), weights are not negative, and an exponent that is not whole is accepted only over an infinitely divisible
kernel, one whose every positive power is positive definite.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np

from kerntest.dataclass import dataclass
from kerntest.errors import UndecidedError, option
from kerntest.kernels import ADDITIVE, EXP, NORMALISE
from kerntest.kernels.base import (
    Array,
    BandwidthRule,
    Columns,
    Kernel,
    MomentsRule,
    Pairs,
    Points,
    raised,
    refused,
)
from kerntest.kernels.exponential import exponential

Kind: TypeAlias = Literal["numeric", "discrete"]

# How tightly a text binds: an operand that binds less tightly than its operator asks for is put in parentheses.
IN_SUM, IN_PRODUCT, IN_POWER, ATOMIC = 1, 2, 3, 4
# Squares of a bandwidth, products with a shape parameter and products of weights must neither vanish nor overflow.
SMALLEST, LARGEST = 1e-75, 1e75
QUOTES = "'\"`"
# Of a group whose table is not known yet.
UNKNOWN = Columns((), ())

# What an argument may be: "must be ...", and whether a number is.
Domain: TypeAlias = tuple[str, Callable[[float], bool]]
POSITIVE: Domain = ("positive", lambda value: value > 0)
NOT_NEGATIVE: Domain = ("zero or positive", lambda value: value >= 0)


def check_number(value: object, owner: str, argument: str, domain: Domain) -> float:
    """Return the value of an argument of a kernel as a float after checking that it is a finite number in its domain."""
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    finite, (words, contains) = math.isfinite(number), domain
    needs = {
        "a finite number": finite,
        words: contains(number),
        f"between {SMALLEST} and {LARGEST} in size": number == 0 or SMALLEST <= abs(number) <= LARGEST,
    }
    wanted = next((need for need, met in needs.items() if not met), None)
    if wanted is None:
        return number
    shown = format_number(number) if finite else repr(value)
    way_out = "left out, it is found from the data; " if argument == "bandwidth" else ""
    hint = f"{way_out}`kerntest kernels` shows how each kernel is written"
    message = f"{argument} of {owner} must be {wanted}, not {shown}"
    raise refused(message, hint, "kernel_argument", argument=argument, value=shown)


def format_number(value: float) -> str:
    """Return the shortest text that reads back as `value`; whole numbers without a decimal point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


class Expression(Kernel):
    """A kernel that `+`, `*` and `**` combine with other kernels and with numbers."""

    precedence: ClassVar[int] = ATOMIC

    @property
    def kinds(self) -> frozenset[Kind]:
        """Which kinds of columns decide the value: none for a constant."""
        return frozenset[Kind]().union(*(part.kinds for part in self.parts))

    @property
    def infinitely_divisible(self) -> bool:
        """Whether every positive power of this kernel is positive definite."""
        return bool(self.parts) and all(part.infinitely_divisible for part in self.parts)

    @property
    def leaves(self) -> list[Expression]:
        """The kernels of the expression that are not made of others, from left to right, constants included."""
        return [leaf for part in self.parts for leaf in part.leaves] or [self]

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

    __rmul__ = __mul__

    def __pow__(self, exponent: float) -> Expression:
        """Return this kernel raised to a positive power, entry by entry."""
        return Power(self, exponent)


def _combination(kind: type[Combination], *values: Any) -> Expression:
    """Return kernels and numbers combined; what is neither is left to Python to refuse."""
    operands = tuple(Constant(float(value)) if isinstance(value, Real) else value for value in values)
    if not all(isinstance(operand, Expression) for operand in operands):
        return cast("Expression", NotImplemented)
    return kind(operands)


@dataclass(frozen=True)
class Constant(Expression):
    """k(x, y) = c for a number c >= 0: it sees nothing of the rows."""

    name = "constant"
    formula = "c"
    infinitely_divisible = True

    value: float

    def __post_init__(self) -> None:
        """Check the number and keep it as a float."""
        object.__setattr__(self, "value", check_number(self.value, "a kernel", "the weight", NOT_NEGATIVE))

    def evaluate(self, pairs: Pairs) -> Array:
        """Return c for every pair."""
        return np.full(pairs.shape, self.value)

    def __str__(self) -> str:
        """Return the number."""
        return format_number(self.value)


def writeable(values: Array) -> Array:
    """Return the array itself, or a copy where it is kept for others."""
    return values if values.flags.writeable else values.copy()


@dataclass(frozen=True)
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

    def with_parts(self, parts: tuple[Any, ...]) -> Self:
        """Return the same operation on other kernels."""
        return type(self)(parts)

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the values of all operands combined; numbers after the first are applied as numbers."""
        first, *others = sorted(self.operands, key=lambda operand: type(operand) is Constant)
        total = first.evaluate(pairs)
        for operand in others:
            value = operand.value if type(operand) is Constant else operand.evaluate(pairs)
            with refuse_overflow(self):
                total = self.operation(total, value, out=total if total.flags.writeable else None)
        return total

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
        nowhere = Points.of(np.zeros((1, 0)))
        numbers = [factor for factor in self.parts if not factor.kinds]
        varying = [factor.characteristic for factor in self.parts if factor.kinds]
        return bool(varying) and all(varying) and all(number.diagonal(nowhere)[0] > 0 for number in numbers)


@dataclass(frozen=True)
class Modified(Expression):
    """One kernel changed in a way that keeps what is known of it."""

    kernel: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The kernel inside."""
        return (self.kernel,)

    def with_parts(self, parts: tuple[Any, ...]) -> Self:
        """Return the same change of another kernel."""
        return replace(self, kernel=parts[0])


@dataclass(frozen=True)
class Power(Modified):
    """k(x, y)^p, entry by entry, for a whole p > 0, or any over an infinitely divisible kernel.

    It is characteristic where k is: every characteristic kernel here is universal on bounded data, and so is its
    product with itself; a broken power of an infinitely divisible one stays in its family (gaussian^p is a wider
    gaussian).
    """

    name = "power"
    formula = "k(x,y)^p"
    precedence = IN_POWER

    exponent: float

    def __post_init__(self) -> None:
        """Check the exponent and keep it as a float."""
        exponent = check_number(self.exponent, "a power", "the exponent", POSITIVE)
        object.__setattr__(self, "exponent", exponent)
        if not exponent.is_integer() and not self.kernel.infinitely_divisible:
            hint = "take a whole exponent: the kernel inside is not infinitely divisible"
            message, value = f"the kernel '{self}' need not be positive definite", format_number(exponent)
            raise refused(message, hint, "kernel_argument", argument="exponent", value=value)

    def evaluate(self, pairs: Pairs) -> Array:
        """Return k(x, y)^p for every pair."""
        values = writeable(self.kernel.evaluate(pairs))
        with refuse_overflow(self):
            return raised(values, self.exponent)

    def __str__(self) -> str:
        """Return base^exponent."""
        return f"{self.kernel.enclosed(ATOMIC)}^{format_number(self.exponent)}"


class Normalised(Modified):
    """k(x, y) / sqrt(k(x, x) k(y, y)): 1 on the diagonal. A row with k(x, x) = 0 gives 0."""

    name = NORMALISE
    formula = "k(x,y) / sqrt(k(x,x) k(y,y))"

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the normalised value for every pair."""
        values = writeable(self.kernel.evaluate(pairs))
        values *= pairs.at_x(self._inverse_root(pairs.x))
        values *= pairs.at_y(self._inverse_root(pairs.y))
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


class Exponentiated(Modified):
    """exp(k(x, y)), a sum of all powers of k with positive weights, and so is each of its own powers, exp(p k(x, y)).

    It sees what k does, since exp(k) - k is positive definite.
    """

    name = EXP
    formula = "exp(k(x,y))"
    infinitely_divisible = True

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the exponential of the kernel for every pair."""
        values = writeable(self.kernel.evaluate(pairs))
        with refuse_overflow(self):
            return exponential(values, out=values)

    def __str__(self) -> str:
        """Return exp(kernel)."""
        return f"{self.name}({self.kernel})"


# Kernels of some of the columns


@dataclass(frozen=True)
class ColumnName:
    """A column as the user wrote it; in a wildcard `*` stands for any characters, alone for all that no other group names."""

    text: str
    wildcard: bool = False
    # Where it stands in the kernel text, counted from 1; 0 when it comes from elsewhere.
    position: int = field(default=0, compare=False)

    @property
    def is_rest(self) -> bool:
        """Whether this is the lone `*`."""
        return self.wildcard and self.text == "*"

    def matches(self, name: str) -> bool:
        """Return whether the column called `name` is meant."""
        pattern = ".*".join(map(re.escape, self.text.split("*") if self.wildcard else [self.text]))
        return re.fullmatch(pattern, name, flags=re.DOTALL) is not None

    def __str__(self) -> str:
        """Return the name, in quotes where it would be read as something else without them."""
        odd = self.text != self.text.strip() or set(self.text) & set(",:;" if self.wildcard else ",:;*")
        if self.text and self.text[0] not in QUOTES and not odd:
            return self.text
        quote = next((quote for quote in QUOTES if quote not in self.text), QUOTES[0])
        return quote + self.text.replace(quote, 2 * quote) + quote


@dataclass(frozen=True)
class OnColumns(Modified):
    """A kernel that is given only some of the columns, by their positions among those that this one is given.

    One that is a factor of `ColumnGroups` knows their names, too; and at first only these, until `bind` knows the table.
    """

    name = "columns"
    formula = "k(x_c,y_c)"

    columns: Columns = UNKNOWN
    names: tuple[ColumnName, ...] = ()

    @property
    def bound(self) -> Columns:
        """The positions of the columns, which must be known."""
        if self.columns == UNKNOWN:
            raise self.unbound()
        return self.columns

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of columns that the kernel compares: equality of numeric columns is about numeric ones."""
        numeric = self.columns.numeric and not self.columns.categories and self.kernel.kinds
        return frozenset[Kind](("numeric",)) if numeric else self.kernel.kinds

    @property
    def characteristic(self) -> bool:
        """Whether the kernel is, and does not see numeric columns through their equality alone."""
        return self.kernel.characteristic and not self.only_sees_ties

    @property
    def only_sees_ties(self) -> bool:
        """Whether this compares numeric columns by equality: blind to all but values that occur repeatedly."""
        return not self.kernel.parts and self.kernel.kinds == {"discrete"} and bool(self.columns.numeric)

    def resolve(self, rule: BandwidthRule, columns: Columns | None = None) -> Kernel:
        """Return this kernel with each missing bandwidth set to rule(metric, columns of the table)."""
        return self.with_parts((self.kernel.resolve(rule, self._of_table(columns)),))

    def whitened(self, rule: MomentsRule, columns: Columns | None = None) -> Kernel:
        """Return this kernel with each matrix that a covariance has to give from rule(columns of the table)."""
        return self.with_parts((self.kernel.whitened(rule, self._of_table(columns)),))

    def _of_table(self, columns: Columns | None) -> Columns:
        """Return the columns by their positions in the table, of which `columns` are those that this kernel is given."""
        inner = self.bound
        if columns is None:
            return inner
        numeric, categories = (
            tuple(all_of[c] for c in some) for all_of, some in zip(columns[:2], inner[:2], strict=True)
        )
        return Columns(numeric, categories, inner.root)

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the kernel of the columns, for every pair."""
        return self.kernel.evaluate(pairs.restrict(self.bound))

    def enclosed(self, at_least: int) -> str:
        """Return the text of the kernel, in parentheses where it binds less tightly than that."""
        return str(self) if self.names else self.kernel.enclosed(at_least)

    def __str__(self) -> str:
        """Return the text of the kernel, behind the names of its columns."""
        return f"{', '.join(map(str, self.names))}: {self.kernel}" if self.names else str(self.kernel)


class ColumnGroups(Product):
    """A product over groups of columns: each an `OnColumns`; bound to a table, their columns do not overlap."""

    __slots__ = ()

    symbol = "; "
    characteristic = Kernel.characteristic

    def __post_init__(self) -> None:
        """Check that only one group takes the rest of the columns."""
        loose = [one for one in self.operands if isinstance(one, OnColumns) and one.columns == UNKNOWN]
        rests = [name for one in loose for name in one.names if name.is_rest]
        if len(rests) > 1:
            message = "'*' stands for the rest of the columns and can be used once"
            raise refused(message, "name the columns of the other group", value="*", position=rests[1].position)


class AdditiveSum(Sum):
    """An additive kernel over known columns: its operands are each an `OnColumns` of one column."""

    __slots__ = ()

    precedence = ATOMIC
    # It does not see how columns hang together.
    characteristic = False

    def __str__(self) -> str:
        """Return additive(bandwidths), with one for all where they are equal."""
        given = [getattr(leaf, "bandwidth", None) for leaf in self.leaves]
        every = [float(one) for one in given if one is not None]
        shown = ", ".join(map(format_number, every[:1] if len(set(every)) == 1 else every))
        return f"{ADDITIVE}({shown})" if shown else ADDITIVE


def terms(kernel: Kernel) -> tuple[Kernel, ...]:
    """Return the kernels of which this one is the sum."""
    if isinstance(kernel, ColumnGroups) and len(kernel.parts) == 1:
        return terms(kernel.parts[0])
    return kernel.operands if isinstance(kernel, Sum) else (kernel,)


@contextmanager
def refuse_overflow(kernel: object) -> Iterator[None]:
    """Turn an overflow of the array operations inside into an UndecidedError that names the kernel."""
    try:
        with np.errstate(over="raise"):
            yield
    except FloatingPointError as error:
        raise overflow(kernel) from error


def smaller_gain(columns: int = 0) -> str:
    """Return how kernels of inner products of so many columns, or of some, are kept in range."""
    gain = f"{1 / columns:.1g}" if columns else "0.1"
    return f"a smaller gain, as in exp({gain}*linear) or polynomial(gain={gain}), degree or exponent keeps it in range"


def overflow(kernel: object) -> UndecidedError:
    """Return the error for a kernel whose values or sums are beyond the range of numbers."""
    own = f"{option('scale', 'standardize')} of columns as they are"
    return UndecidedError(
        f"the kernel '{kernel}' overflows on these rows",
        hint=f"{smaller_gain()}, and so does {own}",
        code="undecided.overflow",
    )


def has_bandwidth(kernel: Kernel) -> bool:
    """Say whether a kernel, or a part of it, has a bandwidth."""
    return getattr(kernel, "bandwidth", None) is not None or any(map(has_bandwidth, kernel.parts))
