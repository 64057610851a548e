"""Missing values as information: a column with gaps becomes its values, filled, and whether a value is there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from kerntest.data.column_types import as_text
from kerntest.data.columns import standardize
from kerntest.data.table import Column, Remark, Table, refuse_duplicates
from kerntest.errors import one_of, shown_value, taken_as_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

MissingPolicy: TypeAlias = Literal["error", "drop", "indicator"]
# The category of a value that is missing; of numbers a column beside them says which are missing and which present.
GAP, PRESENCE = "(missing)", ("missing", "present")
# Numbers that stand for the gaps of columns, by their names; None where gaps are a category of their own.
Fillings: TypeAlias = "Mapping[str, float | None]"
# Where a word such as None makes more than this share of a text column missing, that is told.
MANY_MISSING = 0.05
# Words that answers may be, too: none, and does not apply.
MAYBE_VALUES = {"None", "N/A", "n/a"}


def check_policy(missing: str) -> None:
    """Refuse what is no way to take missing values."""
    one_of("missing", missing, get_args(MissingPolicy))


def presence_name(name: str) -> str:
    """Return what the column is called that says where another has gaps."""
    return f"{name} missing"


def in_tables(names: Sequence[str], every: Collection[str]) -> list[str]:
    """Return columns as they are in a table: of those that say where another has gaps, that one; `every` are all names."""
    of = {presence_name(name): name for name in every}
    return list(dict.fromkeys(of.get(name, name) for name in names))


def fillings(tables: Sequence[Table], names: Sequence[str] | None = None) -> dict[str, float | None]:
    """Return what fills the gaps of columns, all that have any or those named: means of all tables together.

    Numbers that are all the same where they are present say no more than a category would.
    """
    found: dict[str, float | None] = {}
    for columns in zip(*(table.columns for table in tables), strict=True):
        name = columns[0].name
        if name in names if names is not None else any(column.n_missing for column in columns):
            present = np.concatenate([column.values[~column.missing] for column in columns])
            varies = not columns[0].is_category and len(present) > 0 and present.min() < present.max()
            found[name] = float(standardize(present[:, None])[1][0]) if varies else None
    return found


def filled(table: Table, by: Fillings) -> Table:
    """Return the table with no gaps in some of its columns; beside each of numbers stands whether a value is there."""
    if not by:
        return table
    columns = tuple(one for column in table.columns for one in _filled(column, by))
    refuse_duplicates([column.name for column in columns], table.name)
    return replace(table, columns=columns)


def _filled(column: Column, by: Fillings) -> Iterator[Column]:
    """Yield what a column becomes."""
    value = by.get(column.name)
    if column.name not in by:
        yield column
    elif value is None:
        yield with_gap_level(column)
    else:
        yield replace(column, values=np.where(column.missing, value, column.values), digits=None)
        yield Column(presence_name(column.name), "text", presence(column), PRESENCE)


def presence(column: Column) -> NDArray[np.int64]:
    """Return which values are there, as codes of `PRESENCE`, shape (n,)."""
    return (~column.missing).astype(np.int64)


def with_gap_level(column: Column) -> Column:
    """Return a column as categories of which one is that of its missing values."""
    text = as_text(column)
    levels = tuple(sorted({*text.levels, GAP}))
    # The last place is that of code -1.
    codes = np.array([levels.index(level) for level in (*text.levels, GAP)], dtype=np.int64)
    return replace(text, values=codes[text.values], levels=levels)


def with_words(table: Table, as_typed: Callable[[Sequence[str]], Sequence[Column]]) -> Table:
    """Return the table with a warning for each text column of which a word makes more than 5 % missing."""

    def told(column: Column) -> Column:
        if column.kind != "text" or column.problem is not None or column.n_missing <= MANY_MISSING * table.n_rows:
            return column
        (typed,) = as_typed([column.name])
        counts = typed.take(column.missing).level_counts
        # A column of empty fields has no word.
        if counts.max(initial=0) <= MANY_MISSING * table.n_rows:
            return column
        most = int(np.argmax(counts))
        word = typed.levels[most]
        # What else may "NA" be?
        if word not in MAYBE_VALUES:
            return column
        said = f"{shown_value(word)} in column {column.name!r} is taken as missing, in {counts[most]:,} of "
        remark = Remark(f"{said}{table.n_rows:,} rows; if it is a value, {taken_as_value(word, table.na)}")
        return replace(column, emptied_by=word, remarks=(*column.remarks, remark))

    return replace(table, columns=tuple(map(told, table.columns)))
