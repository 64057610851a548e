"""Kernels of some of the columns: by name as they are written, by position once `bind` knows the table.

`ColumnGroups` is what a text like "age: gaussian; city: delta" says, `BoundGroups` what it means for a table. `Additive` is
every column alone, and becomes an `AdditiveSum`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from kerntest.errors import UsageError, suggest
from kerntest.kernels import ADDITIVE
from kerntest.kernels.algebra import (
    ATOMIC,
    POSITIVE,
    Expression,
    Modified,
    Product,
    Sum,
    check_number,
    format_number,
    leaves,
)
from kerntest.kernels.base import Array, BandwidthRule, Columns, Kernel, Pairs, Points
from kerntest.kernels.elementary import Atom, Delta, Gaussian, Hamming

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kerntest.kernels.algebra import Kind

QUOTES = "'\"`"


@dataclass(frozen=True, slots=True)
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
        if not self.wildcard:
            return name == self.text
        return re.fullmatch(".*".join(map(re.escape, self.text.split("*"))), name, flags=re.DOTALL) is not None

    def __str__(self) -> str:
        """Return the name, in quotes where it would be read as something else without them."""
        special = ",:;" if self.wildcard else ",:;*"
        odd = self.text != self.text.strip() or any(mark in self.text for mark in special)
        if self.text and self.text[0] not in QUOTES and not odd:
            return self.text
        quote = next((quote for quote in QUOTES if quote not in self.text), QUOTES[0])
        return quote + self.text.replace(quote, 2 * quote) + quote


@dataclass(frozen=True, slots=True)
class OnColumns(Modified):
    """A kernel that is given only some of the columns, by their positions among those that this one is given.

    One that is a factor of `BoundGroups` knows their names, too.
    """

    name: ClassVar[str] = "columns"
    formula: ClassVar[str] = "k(x_c,y_c)"

    columns: Columns
    names: tuple[ColumnName, ...] = ()

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of columns that the kernel compares: equality of numeric columns is about numeric ones."""
        if self.columns.numeric and not self.columns.categories and self.kernel.kinds:
            return frozenset(("numeric",))
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
        inner = self.columns
        if columns is not None:
            numeric, categories = columns.numeric, columns.categories
            inner = Columns(tuple(numeric[c] for c in inner.numeric), tuple(categories[c] for c in inner.categories))
        return replace(self, kernel=self.kernel.resolve(rule, inner))

    def evaluate(self, pairs: Pairs) -> Array:
        """Return the kernel of the columns, for every pair."""
        return self.kernel.evaluate(pairs.restrict(self.columns))

    def diagonal(self, points: Points) -> Array:
        """Return the diagonal of the kernel of the columns."""
        return self.kernel.diagonal(points.select(self.columns))

    def enclosed(self, at_least: int) -> str:
        """Return the text of the kernel, in parentheses where it binds less tightly than that."""
        return str(self) if self.names else self.kernel.enclosed(at_least)

    def __str__(self) -> str:
        """Return the text of the kernel, behind the names of its columns."""
        return f"{', '.join(map(str, self.names))}: {self.kernel}" if self.names else str(self.kernel)


@dataclass(frozen=True, slots=True)
class Group:
    """A kernel for some columns."""

    names: tuple[ColumnName, ...]
    kernel: Expression

    def __str__(self) -> str:
        """Return "names: kernel"."""
        return f"{', '.join(map(str, self.names))}: {self.kernel}"


@dataclass(frozen=True, slots=True)
class ColumnGroups(Kernel):
    """Groups of columns that are known by name only: a product of their kernels, once `bind` has found the columns."""

    groups: tuple[Group, ...]

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

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The kernel of every group."""
        return tuple(group.kernel for group in self.groups)

    def __str__(self) -> str:
        """Return the groups joined by semicolons."""
        return "; ".join(map(str, self.groups))


class BoundGroups(Product):
    """A product over groups of columns of one table: each an `OnColumns`, and their columns do not overlap."""

    __slots__ = ()

    symbol = "; "
    characteristic = Kernel.characteristic


@dataclass(frozen=True, slots=True)
class Additive(Expression):
    """k(x, y) = sum_c exp(-(x_c - y_c)^2 / (2 s_c^2)) + (number of category columns in which x and y agree).

    One bandwidth for all numeric columns, or one for each; none where they are to be chosen, each for its own column. It sees
    a few columns that differ among many that do not.
    """

    name: ClassVar[str] = ADDITIVE
    formula: ClassVar[str] = "sum_c exp(-(x_c-y_c)^2 / (2 bandwidth_c^2))"
    remark: ClassVar[str] = "each column alone, summed up: sees a few columns that differ among many that do not"

    bandwidths: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the bandwidths and keep them as floats."""
        checked = tuple(check_number(one, self.name, "bandwidth", POSITIVE) for one in self.bandwidths)
        object.__setattr__(self, "bandwidths", checked)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Numbers, and categories where there are any."""
        return frozenset(("numeric", "discrete"))

    @property
    def free(self) -> bool:
        """Whether the bandwidths are still to be chosen."""
        return not self.bandwidths

    @classmethod
    def usage(cls) -> str:
        """Return how to write the kernel."""
        return "additive(bandwidth, ...)"

    def over(self, columns: Columns) -> Expression:
        """Return the sum over these columns, at least one of them numeric."""
        p = len(columns.numeric)
        if len(self.bandwidths) not in (0, 1, p):
            raise UsageError(
                f"the kernel '{self}' has {len(self.bandwidths)} bandwidths for {p} numeric columns",
                hint="give one for all, or one for each",
                code="usage.kernel_argument",
                where={"argument": "bandwidth", "value": str(self)},
            )
        given = self.bandwidths * p if len(self.bandwidths) == 1 else self.bandwidths or (None,) * p
        numeric = [OnColumns(Gaussian(one), Columns((place,), ())) for place, one in enumerate(given)]
        categories = [OnColumns(Delta(), Columns((), (place,))) for place in range(len(columns.categories))]
        terms = (*numeric, *categories)
        return AdditiveSum(terms) if len(terms) > 1 else terms[0]

    def __str__(self) -> str:
        """Return additive(bandwidths)."""
        return f"{ADDITIVE}({', '.join(map(format_number, self.bandwidths))})" if self.bandwidths else ADDITIVE


class AdditiveSum(Sum):
    """An additive kernel over known columns: its operands are each an `OnColumns` of one column."""

    __slots__ = ()

    precedence = ATOMIC
    # It does not see how columns hang together.
    characteristic = False

    def __str__(self) -> str:
        """Return additive(bandwidths), with one for all where they are equal."""
        kernels = [term.parts[0] for term in self.operands]
        bandwidths = [one.bandwidth for one in kernels if isinstance(one, Gaussian) and one.bandwidth is not None]
        return str(Additive(tuple(bandwidths[:1] if len(set(bandwidths)) == 1 else bandwidths)))


def plain(kernel: Kernel) -> Kernel:
    """Return the kernel of the first group of columns, without its columns."""
    if isinstance(kernel, BoundGroups):
        kernel = kernel.parts[0]
    return kernel.kernel if isinstance(kernel, OnColumns) else kernel


def is_additive(kernel: Kernel) -> bool:
    """Whether a kernel is an additive one over the columns of a table."""
    return isinstance(plain(kernel), AdditiveSum)


class Bound(NamedTuple):
    """A kernel bound to a table, and the columns that it does not see, as no group names them."""

    kernel: Kernel
    unused: tuple[str, ...]


def bind(kernel: Kernel, numeric_names: Sequence[str], category_names: Sequence[str]) -> Bound:
    """Find the columns that each part of a kernel sees, of a table with these columns.

    Within a group, kernels of numbers see the numeric columns; delta and hamming see the category columns or, in a
    group without any, the numeric ones by equality. Columns of a kind that no kernel of their group looks at get one
    of their own: a hamming for categories, a gaussian for numbers, their bandwidth to be chosen. A kernel without
    groups is one group of all columns. Parsing the text of what is returned and binding that again gives an equal kernel.
    """
    numeric, categories = tuple(numeric_names), tuple(category_names)
    factors: list[OnColumns] = []
    unused = set(numeric + categories)
    for expression, chosen in _assigned(kernel, numeric + categories):
        unused -= chosen
        columns = Columns(
            tuple(place for place, name in enumerate(numeric) if name in chosen),
            tuple(place for place, name in enumerate(categories) if name in chosen),
        )
        for part, seen in _covering(expression, columns, categories):
            names = [*(numeric[place] for place in seen.numeric), *(categories[place] for place in seen.categories)]
            factors.append(OnColumns(_localised(part, seen), seen, tuple(map(ColumnName, names))))
    if len(factors) == 1 and not (numeric and categories) and not unused:
        return Bound(factors[0].kernel, ())
    return Bound(BoundGroups(tuple(factors)), tuple(name for name in numeric + categories if name in unused))


def _assigned(kernel: Kernel, names: tuple[str, ...]) -> list[tuple[Expression, set[str]]]:
    """Return the expression of each group with the names of its columns; groups left without columns drop out."""
    everything = Group((ColumnName("*", wildcard=True),), cast("Expression", kernel))
    groups = kernel.groups if isinstance(kernel, ColumnGroups) else (everything,)
    owners = _owners(groups, names)
    rest = next((number for number, group in enumerate(groups) if any(one.is_rest for one in group.names)), None)
    chosen = [{name for name in names if owners.get(name, rest) == number} for number in range(len(groups))]
    assigned = [(group.kernel, some) for group, some in zip(groups, chosen, strict=True) if some]
    if not assigned:
        raise UsageError(
            f"the kernel '{kernel}' has no column to see",
            hint="name columns that are there, or '*' for the rest",
            code="usage.kernel_columns",
        )
    return assigned


def _owners(groups: tuple[Group, ...], names: tuple[str, ...]) -> dict[str, int]:
    """Return the number of the group that names each column, for the columns that one does."""
    owners: dict[str, int] = {}
    for number, group in enumerate(groups):
        for wanted in group.names:
            for name in () if wanted.is_rest else _matching(wanted, names):
                if owners.setdefault(name, number) != number:
                    raise UsageError(
                        f"column '{name}' is in two groups of the kernel",
                        hint="name each column once",
                        code="usage.kernel_columns",
                        where=_place(wanted, name),
                    )
    return owners


def _matching(wanted: ColumnName, names: tuple[str, ...]) -> list[str]:
    found = [name for name in names if wanted.matches(name)]
    if not found:
        meant = suggest(wanted.text, names)
        at = f" (character {wanted.position} of the kernel)" if wanted.position else ""
        raise UsageError(
            f"{'no column matches' if wanted.wildcard else 'there is no column'} '{wanted.text}'{at}",
            hint=f"did you mean '{meant}'?" if meant else f"the columns are {_listed(names)}",
            code="usage.unknown_column",
            where=_place(wanted, wanted.text),
        )
    return found


def _place(wanted: ColumnName, column: str) -> dict[str, str | int]:
    where: dict[str, str | int] = {"column": column, "value": wanted.text}
    return where | ({"position": wanted.position} if wanted.position else {})


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _bound_already(kernel: Kernel) -> UsageError:
    return UsageError(
        f"the kernel '{kernel}' is bound to columns already",
        hint="bind the kernel that parse_kernel returned",
        code="usage.bound_kernel",
    )


def _covering(
    expression: Expression, columns: Columns, categories: tuple[str, ...]
) -> Iterator[tuple[Expression, Columns]]:
    """Yield expressions with their columns, so that each kind of column in the group is seen by some kernel."""
    kinds: set[Kind] = set()
    for leaf in leaves(expression):
        kinds |= leaf.kinds
        if "numeric" in leaf.kinds and not columns.numeric:
            names = [categories[place] for place in columns.categories]
            raise UsageError(
                f"{leaf.name} needs a numeric column; {_listed(names)} {'holds' if len(names) == 1 else 'hold'} text",
                hint="use delta or hamming for columns of text",
                code="usage.kernel_columns",
                where={"column": names[0], "value": leaf.name},
            )
    of_numbers, of_codes = Columns(columns.numeric, ()), Columns((), columns.categories)
    if kinds == {"numeric"} and columns.categories:
        yield expression, of_numbers
        yield Hamming(), of_codes
    elif kinds == {"discrete"} and columns.numeric and columns.categories:
        yield Gaussian(), of_numbers
        yield expression, of_codes
    else:
        yield expression, columns


def _localised(expression: Expression, columns: Columns) -> Expression:
    """Return the expression with delta and hamming restricted to the columns they are for.

    They would compare all columns of the group; the positions are those within the group. Kernels of numbers see
    nothing but numeric columns anyhow.
    """
    if isinstance(expression, (OnColumns, AdditiveSum)):
        raise _bound_already(expression)
    if isinstance(expression, Additive):
        return expression.over(columns)
    if isinstance(expression, Atom):
        if expression.kind == "numeric" or not columns.numeric:
            return expression
        places = tuple(range(len(columns.categories or columns.numeric)))
        return OnColumns(expression, Columns((), places) if columns.categories else Columns(places, ()))
    return expression.with_parts(tuple(_localised(part, columns) for part in expression.parts))
