"""Kernels of some of the columns: by position once the table is known, by name before.

`ColumnGroups` is what a text like "age: gaussian; city: delta" says, `BoundGroups` what it means for a table, and
`binding` goes from one to the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import ClassVar, NoReturn

import numpy as np

from kerntest.errors import UsageError
from kerntest.kernels.algebra import Atom, Expression, Kind, Modified
from kerntest.kernels.base import Array, BandwidthRule, Columns, Kernel, Pairs, Points, refuse_overflow, writeable

QUOTES = "'\"`"


@dataclass(frozen=True, slots=True)
class OnColumns(Modified):
    """A kernel that is given only some of the columns. Its text is that of the kernel.

    Parameters
    ----------
    kernel : Expression
        The kernel.
    columns : Columns
        Positions among the columns that this one is given; where two of these are nested, the inner positions
        count within the outer ones.
    """

    name: ClassVar[str] = "columns"
    formula: ClassVar[str] = "k(x_c,y_c)"

    columns: Columns

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of columns that the kernel compares: equality of numeric columns is about numeric ones."""
        if self.columns.numeric and not self.columns.categories and self.kernel.kinds:
            return frozenset[Kind](("numeric",))
        return self.kernel.kinds

    @property
    def characteristic(self) -> bool:
        """Whether the kernel is, and does not see numeric columns through their equality alone."""
        return self.kernel.characteristic and not self.only_sees_ties

    @property
    def only_sees_ties(self) -> bool:
        """Whether this compares numeric columns by equality: blind to all but values that occur repeatedly."""
        return isinstance(self.kernel, Atom) and self.kernel.kind == "discrete" and bool(self.columns.numeric)

    def resolve(self, rule: BandwidthRule, columns: Columns | None = None) -> Expression:
        """Return this kernel with each missing bandwidth set to rule(metric, columns of the table)."""
        return replace(self, kernel=self.kernel.resolve(rule, _within(columns, self.columns)))

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the kernel of the columns, for every pair."""
        return self.kernel.evaluate(pairs.restrict(self.columns))

    def diagonal(self, points: Points) -> Array:
        """Return the diagonal of the kernel of the columns."""
        return self.kernel.diagonal(points.select(self.columns))

    def enclosed(self, at_least: int) -> str:
        """Return the text of the kernel, in parentheses where it binds less tightly than that."""
        return self.kernel.enclosed(at_least)

    def __str__(self) -> str:
        """Return the text of the kernel."""
        return str(self.kernel)


def _within(outer: Columns | None, inner: Columns) -> Columns:
    if outer is None:
        return inner
    return Columns(
        tuple(outer.numeric[position] for position in inner.numeric),
        tuple(outer.categories[position] for position in inner.categories),
    )


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column as the user wrote it.

    Parameters
    ----------
    text : str
        The name, or the pattern.
    wildcard : bool
        Whether `*` in the text stands for any characters. A lone `*` is all columns that no other group names.
    position : int
        Where it stands in the kernel text, counted from 1; 0 when it comes from elsewhere.
    """

    text: str
    wildcard: bool = False
    position: int = field(default=0, compare=False)

    @property
    def is_rest(self) -> bool:
        """Whether this is the lone `*`."""
        return self.wildcard and self.text == "*"

    def matches(self, name: str) -> bool:
        """Return whether the column called `name` is meant."""
        if not self.wildcard:
            return name == self.text
        pattern = ".*".join(re.escape(piece) for piece in self.text.split("*"))
        return re.fullmatch(pattern, name, flags=re.DOTALL) is not None

    def __str__(self) -> str:
        """Return the name, in quotes where it would be read as something else without them."""
        special = ",:;" if self.wildcard else ",:;*"
        odd = self.text != self.text.strip() or any(mark in self.text for mark in special)
        if self.text and self.text[0] not in QUOTES and not odd:
            return self.text
        quote = next((quote for quote in QUOTES if quote not in self.text), QUOTES[0])
        return quote + self.text.replace(quote, 2 * quote) + quote


@dataclass(frozen=True, slots=True)
class Group:
    """A kernel for some columns.

    Parameters
    ----------
    names : tuple of ColumnName
        The columns.
    kernel : Expression
        The kernel that sees them.
    """

    names: tuple[ColumnName, ...]
    kernel: Expression

    def __str__(self) -> str:
        """Return "names: kernel"."""
        return f"{', '.join(map(str, self.names))}: {self.kernel}"


@dataclass(frozen=True, slots=True)
class Groups(Kernel):
    """A product of kernels for groups of columns.

    Parameters
    ----------
    groups : tuple of Group
        At least one.
    """

    name: ClassVar[str] = "groups"
    formula: ClassVar[str] = "k_1(x_1,y_1) k_2(x_2,y_2) ..."

    groups: tuple[Group, ...]

    @property
    def positive_definite(self) -> bool:
        """Whether the kernel of every group is."""
        return all(group.kernel.positive_definite for group in self.groups)

    @property
    def characteristic(self) -> bool:
        """Whether the kernel of every group is."""
        return all(group.kernel.characteristic for group in self.groups)

    @property
    def free(self) -> bool:
        """Whether a bandwidth is still to be chosen in some group."""
        return any(group.kernel.free for group in self.groups)

    def __str__(self) -> str:
        """Return the groups, separated by semicolons."""
        return "; ".join(map(str, self.groups))


class Unbound(Kernel):
    """A kernel of the columns of a table that is not known yet: `bind` makes one of it that can be evaluated."""

    __slots__ = ()

    # What it says of columns.
    wanting: ClassVar[str]

    def resolve(self, rule: BandwidthRule, columns: Columns | None = None) -> NoReturn:
        """Refuse: a bandwidth belongs to columns."""
        del rule, columns
        raise self._unbound()

    def evaluate(self, pairs: Pairs) -> NoReturn:
        """Refuse: which columns are meant is not known."""
        del pairs
        raise self._unbound()

    def diagonal(self, points: Points) -> NoReturn:
        """Refuse: which columns are meant is not known."""
        del points
        raise self._unbound()

    def _unbound(self) -> UsageError:
        return UsageError(
            f"the kernel '{self}' {self.wanting}, but not of which table",
            hint="bind(kernel, numeric_names, category_names) finds them",
            code="usage.unbound_kernel",
        )


@dataclass(frozen=True, slots=True)
class ColumnGroups(Unbound, Groups):
    """Groups of columns that are known by name only: `bind` finds the columns.

    Raises
    ------
    UsageError
        If the lone `*` stands in two places.
    """

    wanting: ClassVar[str] = "names columns"

    def __post_init__(self) -> None:
        """Check that only one group takes the rest of the columns."""
        rests = [name for group in self.groups for name in group.names if name.is_rest]
        if len(rests) > 1:
            raise UsageError(
                "'*' stands for the rest of the columns and can be used once",
                hint="name the columns of the other group",
                code="usage.kernel_columns",
                where={"value": "*", "position": rests[1].position},
            )


@dataclass(frozen=True, slots=True)
class BoundGroups(Groups):
    """Groups of columns of one table: each has an `OnColumns` as its kernel, and their columns do not overlap."""

    def resolve(self, rule: BandwidthRule, columns: Columns | None = None) -> BoundGroups:
        """Return this kernel with each missing bandwidth set to rule(metric, columns of its group)."""
        return BoundGroups(tuple(replace(group, kernel=group.kernel.resolve(rule, columns)) for group in self.groups))

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the product over the groups, in their order."""
        first, *others = self.groups
        total = writeable(first.kernel.evaluate(pairs))
        with refuse_overflow(self):
            for group in others:
                np.multiply(total, group.kernel.evaluate(pairs), out=total)
        return total

    def diagonal(self, points: Points) -> Array:
        """Return the product of the diagonals."""
        first, *others = self.groups
        total = first.kernel.diagonal(points)
        with refuse_overflow(self):
            for group in others:
                np.multiply(total, group.kernel.diagonal(points), out=total)
        return total
