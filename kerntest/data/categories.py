"""Columns as categories: codes into sorted levels. Needs no Arrow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.selection import Patterns, match_names
from kerntest.data.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_MICROSECONDS_PER_DAY = 86_400_000_000
# Around a value of CSV they are none of it.
BLANKS = " \t"


def text_column(name: str, codes: NDArray[np.int64], levels: Sequence[str | None]) -> Column:
    """Return a text column from codes (-1 = missing) into levels in any order, repeated, unused or None (missing)."""
    used = np.bincount(codes[codes >= 0], minlength=len(levels)) > 0
    kept = sorted({level for level, is_used in zip(levels, used, strict=True) if is_used and level is not None})
    position = {level: index for index, level in enumerate(kept)}
    # One more place at the end: index -1 finds it.
    renamed = [-1 if level is None else position.get(level, -1) for level in levels] + [-1]
    return Column(name, "text", np.array(renamed, dtype=np.int64)[codes], tuple(kept))


def without_blanks(column: Column, na: Sequence[str] = ()) -> Column:
    """Return a text column of CSV without blanks around its values; missing is what is empty then, or a word of `na`."""
    if column.kind != "text" or all(level and level == level.strip(BLANKS) for level in column.levels):
        return column
    # A word without blanks around it was quoted, or it would be missing already.
    bare = [(level, level.strip(BLANKS)) for level in column.levels]
    kept = [None if not word or (word != level and word in na) else word for level, word in bare]
    return replace(text_column(column.name, column.values, kept), problem=column.problem)


def as_text(column: Column) -> Column:
    """Return the column as text: numbers in their shortest form (1, 0.5), dates in ISO form.

    1 and 1.0 are the same number and become the same text, whatever type the file gave them. A text column keeps
    its values; what made it unusable as numbers is forgiven.
    """
    if column.is_category:
        curable = column.problem is None or column.problem.curable
        return replace(column, kind="text", problem=None if curable else column.problem)
    present = np.unique(column.values[~np.isnan(column.values)])
    codes = np.searchsorted(present, column.values)
    codes[column.missing] = -1
    if column.kind == "date":
        levels = [date_text(day) for day in present.tolist()]
    else:
        levels = [number_text(value) for value in present.tolist()]
    return text_column(column.name, codes.astype(np.int64), levels)


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the number; whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def date_text(day: float) -> str:
    """Return days since 1970-01-01 as an ISO date, with the time of day where there is one."""
    moment = np.datetime64(round(day * _MICROSECONDS_PER_DAY), "us")
    return str(moment.astype("datetime64[D]")) if day.is_integer() else str(moment)


def with_categories(table: Table, categorical: Patterns) -> Table:
    """Return the table with the columns that `categorical` names as text; UsageError for one that is not there."""
    wanted = set(match_names(categorical, table.names, table.name))
    columns = tuple(as_text(column) if column.name in wanted else column for column in table.columns)
    return replace(table, columns=columns)
