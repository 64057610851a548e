"""Text columns that were meant to be numbers: found by reading their different values, reported when used."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.table import Column, Problem, Table
from kerntest.data.wording import option_value, shown_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

# At this share of numbers, the other values are taken for mistakes and not for text.
MEANT_AS_NUMBERS = 0.9
_NUMBER = re.compile(r"[ \t]*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[ \t]*", re.ASCII)
_WITH_COMMA = re.compile(r"[ \t]*[+-]?\d+(?:,\d+)+(?:\.\d*)?[ \t]*", re.ASCII)
_LEADING_ZERO = re.compile(r"[ \t]*[+-]?0[0-9xX]", re.ASCII)


def is_number(text: str) -> bool:
    """Say whether a value is typed as a number; ``001`` and ``0x1f`` are names and not numbers."""
    return _NUMBER.fullmatch(text) is not None and _LEADING_ZERO.match(text) is None


def doubted(column: Column, table: Table) -> Column:
    """Return the text column, with a problem where at least 90 % of its values are numbers and the others not.

    A column with leading zeros holds names (postcodes, item numbers) and raises no doubt. Cost: one look at each
    different value, and for a column of real text few of them.
    """
    counts = np.bincount(column.values[column.values >= 0], minlength=len(column.levels))
    total = int(counts.sum())
    strange: list[int] = []
    with_comma: list[int] = []
    n_strange = 0
    for index, level in enumerate(column.levels):
        if _LEADING_ZERO.match(level):
            return column
        if is_number(level):
            continue
        if _WITH_COMMA.fullmatch(level):
            with_comma.append(index)
            continue
        strange.append(index)
        n_strange += int(counts[index])
        if n_strange > (1 - MEANT_AS_NUMBERS) * total + 1e-9:
            return column
    if not strange and not with_comma:
        return column
    n_numbers = total - n_strange - int(counts[with_comma].sum())
    if with_comma and n_numbers < MEANT_AS_NUMBERS * total - 1e-9:
        return replace(column, problem=_comma_problem(column, table, with_comma))
    return replace(column, problem=stray_problem(column, table, sorted(strange + with_comma), n_numbers, total))


def _first_row(column: Column, levels: list[int]) -> int:
    """Return the first row that holds one of these levels."""
    wanted: NDArray[np.bool_] = np.zeros(len(column.levels) + 1, dtype=bool)
    wanted[levels] = True
    return int(np.argmax(wanted[column.values]))


def stray_problem(column: Column, table: Table, levels: list[int], n_numbers: int, total: int) -> Problem:
    """Return the problem of a column of numbers with a stray value."""
    row = _first_row(column, levels)
    value = column.levels[column.values[row]]
    word = option_value([column.name])
    return Problem(
        message=f"{table.name}, {table.place(row)}: column {column.name!r} holds {shown_value(value)}, "
        f"which is not a number ({n_numbers:,} of {total:,} values are)",
        hint=f"correct it, or treat the column as text with --categorical {word}, or leave it out with --exclude {word}",
        code="data.not_a_number",
        where={**table.where(row), "column": column.name, "value": value},
        curable=True,
    )


def _comma_problem(column: Column, table: Table, levels: list[int]) -> Problem:
    """Return the problem of a column whose numbers are written with commas."""
    row = _first_row(column, levels)
    value = column.levels[column.values[row]]
    word = option_value([column.name])
    return Problem(
        message=f"{table.name}, {table.place(row)}: column {column.name!r} holds {shown_value(value)}, "
        "a number written with a comma, which is not read",
        hint="--decimal , or --decimal . says what the comma is: decimal, or between thousands; "
        f"--categorical {word} treats the column as text",
        code="data.not_a_number",
        where={**table.where(row), "column": column.name, "value": value},
        curable=True,
    )
