"""From the names of columns to their positions: which columns each part of a kernel text sees in a given table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kerntest.errors import UsageError, suggest
from kerntest.kernels.additive import Additive, AdditiveSum
from kerntest.kernels.algebra import Atom, Expression, Kind, leaves
from kerntest.kernels.base import Columns, Kernel
from kerntest.kernels.columns import BoundGroups, ColumnGroups, ColumnName, Group, OnColumns
from kerntest.kernels.discrete import Hamming
from kerntest.kernels.stationary import Gaussian

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REST = ColumnName("*", wildcard=True)


@dataclass(frozen=True, slots=True)
class Bound:
    """A kernel bound to a table.

    Parameters
    ----------
    kernel : Kernel
        The kernel; its text names the columns unless it sees all columns of a table of one kind.
    unused : tuple of str
        Columns that no group names: the kernel does not see them.
    """

    kernel: Kernel
    unused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Table:
    """The names of the columns: numeric ones, then category ones."""

    numeric: tuple[str, ...]
    categories: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.numeric + self.categories

    def columns(self, chosen: set[str]) -> Columns:
        return Columns(
            tuple(position for position, name in enumerate(self.numeric) if name in chosen),
            tuple(position for position, name in enumerate(self.categories) if name in chosen),
        )

    def named(self, columns: Columns) -> tuple[str, ...]:
        numeric = tuple(self.numeric[position] for position in columns.numeric)
        return numeric + tuple(self.categories[position] for position in columns.categories)


def bind(kernel: Kernel, numeric_names: Sequence[str], category_names: Sequence[str]) -> Bound:
    """Find the columns that each part of a kernel sees.

    Within a group, kernels of numbers see the numeric columns; delta and hamming see the category columns or, in a
    group without any, the numeric ones by equality. Columns of a kind that no kernel of their group looks at get one
    of their own: a hamming for categories, a gaussian for numbers, their bandwidth to be chosen. A kernel without
    groups is one group of all columns.

    Parameters
    ----------
    kernel : Kernel
        What `parse_kernel` returned.
    numeric_names, category_names : sequence of str
        The names of the columns, in the order in which `Points` holds them.

    Returns
    -------
    Bound
        The kernel for this table. Parsing its text and binding that again gives an equal kernel.

    Raises
    ------
    UsageError
        If a column is not in the table or is in two groups, if a kernel of numbers is given none, or if the kernel is
        bound already.
    """
    table = _Table(tuple(numeric_names), tuple(category_names))
    groups: list[Group] = []
    used: set[str] = set()
    for expression, chosen in _assigned(kernel, table):
        used |= chosen
        for part, columns in _covering(expression, table.columns(chosen), table):
            names = tuple(ColumnName(name) for name in table.named(columns))
            groups.append(Group(names, OnColumns(_localised(part, columns), columns)))
    unused = tuple(name for name in table.names if name not in used)
    one_kind = not (table.numeric and table.categories)
    if len(groups) == 1 and one_kind and not unused:
        return Bound(groups[0].kernel.parts[0], unused)
    return Bound(BoundGroups(tuple(groups)), unused)


def _assigned(kernel: Kernel, table: _Table) -> list[tuple[Expression, set[str]]]:
    """Return the expression of each group with the names of its columns; groups left without columns drop out."""
    if isinstance(kernel, ColumnGroups):
        groups = kernel.groups
    elif isinstance(kernel, Expression):
        groups = (Group((REST,), kernel),)
    else:
        raise _bound_already(kernel)
    taken = _owners(groups, table)
    assigned = []
    for number, group in enumerate(groups):
        chosen = {name for name, owner in taken.items() if owner == number}
        if any(wanted.is_rest for wanted in group.names):
            chosen |= set(table.names) - set(taken)
        if chosen:
            assigned.append((group.kernel, chosen))
    if not assigned:
        raise UsageError(
            f"the kernel '{kernel}' has no column to see",
            hint="name columns that are there, or '*' for the rest",
            code="usage.kernel_columns",
        )
    return assigned


def _owners(groups: tuple[Group, ...], table: _Table) -> dict[str, int]:
    """Return the number of the group that names each column, for the columns that one does."""
    taken: dict[str, int] = {}
    for number, group in enumerate(groups):
        for wanted in group.names:
            for name in () if wanted.is_rest else _matching(wanted, table.names):
                if taken.setdefault(name, number) != number:
                    raise UsageError(
                        f"column '{name}' is in two groups of the kernel",
                        hint="name each column once",
                        code="usage.kernel_columns",
                        where=_place(wanted, name),
                    )
    return taken


def _matching(wanted: ColumnName, names: tuple[str, ...]) -> list[str]:
    found = [name for name in names if wanted.matches(name)]
    if not found:
        meant = suggest(wanted.text, names)
        at = f" (character {wanted.position} of the kernel)" if wanted.position else ""
        what = "no column matches" if wanted.wildcard else "there is no column"
        raise UsageError(
            f"{what} '{wanted.text}'{at}",
            hint=f"did you mean '{meant}'?" if meant else f"the columns are {_listed(names)}",
            code="usage.unknown_column",
            where=_place(wanted, wanted.text),
        )
    return found


def _place(wanted: ColumnName, column: str) -> dict[str, str | int]:
    where: dict[str, str | int] = {"column": column, "value": wanted.text}
    return where | ({"position": wanted.position} if wanted.position else {})


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _bound_already(kernel: Kernel) -> UsageError:
    return UsageError(
        f"the kernel '{kernel}' is bound to columns already",
        hint="bind the kernel that parse_kernel returned",
        code="usage.bound_kernel",
    )


def _covering(expression: Expression, columns: Columns, table: _Table) -> Iterator[tuple[Expression, Columns]]:
    """Yield expressions with their columns, so that each kind of column in the group is seen by some kernel."""
    kinds: set[Kind] = set()
    for leaf in leaves(expression):
        kinds |= leaf.kinds
        if "numeric" in leaf.kinds and not columns.numeric:
            raise _needs_numbers(leaf, table.named(columns))
    numeric, categories = Columns(columns.numeric, ()), Columns((), columns.categories)
    if kinds == {"numeric"} and columns.categories:
        yield expression, numeric
        yield Hamming(), categories
    elif kinds == {"discrete"} and columns.numeric and columns.categories:
        yield Gaussian(), numeric
        yield expression, categories
    else:
        yield expression, columns


def _needs_numbers(leaf: Expression, names: tuple[str, ...]) -> UsageError:
    verb = "holds" if len(names) == 1 else "hold"
    return UsageError(
        f"{leaf.name} needs a numeric column; {_listed(names)} {verb} text",
        hint="use delta or hamming for columns of text",
        code="usage.kernel_columns",
        where={"column": names[0], "value": leaf.name},
    )


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
        if columns.categories:
            return OnColumns(expression, Columns((), tuple(range(len(columns.categories)))))
        return OnColumns(expression, Columns(tuple(range(len(columns.numeric))), ()))
    return expression.with_parts(tuple(_localised(part, columns) for part in expression.parts))
