"""Columns of a new table where a fitted learner expects them: found by name, of the kind that they were."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.arranging import EXACT_INTEGERS
from kerntest.data.categories import as_text, date_text, number_text
from kerntest.data.forms import form_of, is_number
from kerntest.data.suspicion import missing_hint
from kerntest.data.table import comment_hint
from kerntest.data.wording import counted, listed, shown_value
from kerntest.errors import DataError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.forms import Form
    from kerntest.data.table import Column, Table
    from kerntest.kernels.base import Array, Codes
    from kerntest.learning.encoding import ColumnSpec

LEVELS_SHOWN = 5
# As columns are called in a file without a header.
_BY_POSITION = re.compile(r"x[1-9]\d*", re.ASCII)
_LIKE_A_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_NUMBER_WITH_COMMA = re.compile(r"\s*[+-]?[\d.]+(?:,\d+)+[\d.]*\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Categories of one column that no training row had.

    Parameters
    ----------
    column : ColumnSpec
    values : tuple of str
        In the order in which they are met.
    first_row : int
        The first row that holds one, counted from 0.
    n_rows : int
        How many rows do.
    """

    column: ColumnSpec
    values: tuple[str, ...]
    first_row: int
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Incoming:
    """A table of new rows that has the columns of a model.

    Parameters
    ----------
    table : Table
        With these columns, as `select_specs` returns it, without missing values.
    model : str
        How messages call the model.
    """

    table: Table
    model: str

    def numbers(self, spec: ColumnSpec) -> Array:
        """Return a column of numbers or dates, shape (n,), in its own units.

        Raises
        ------
        DataError
            If it is of another kind, and not all of its values are numbers.
        """
        values: Array
        column = self.table[spec.name]
        if column.kind == spec.kind:
            values = column.values
            return values
        if not column.is_category:
            raise self._kinds_differ(spec, column, 0)
        form = _form(spec)
        read = [form.read_again(level) for level in column.levels]
        odd = np.array([value is None for value in read])[column.values]
        if column.kind == "boolean":
            raise self._kinds_differ(spec, column, int(np.argmax(odd)))
        if odd.any():
            raise self._not_a_number(spec, column, odd)
        values = np.array(read, dtype=np.float64)[column.values]
        return values

    def codes(self, spec: ColumnSpec) -> tuple[Codes, Unknown | None]:
        """Return a column of categories as codes into the levels of the model, shape (n,); -1 for unknown ones.

        Raises
        ------
        DataError
            If it is of another kind, and nothing in it can be a level of the model.
        """
        column = self.table[spec.name]
        text = as_text(column) if not column.is_category else column
        places = np.array(_places(spec, column.kind, text.levels), dtype=np.int64)
        codes: Codes = places[text.values]
        strange = codes < 0
        if not strange.any():
            return codes, None
        first = int(np.argmax(strange))
        if not column.is_category and strange.all() and not _alike(column, spec.levels):
            raise self._kinds_differ(spec, column, first)
        met, rows = np.unique(text.values[strange], return_index=True)
        values = tuple(text.levels[code] for code in met[np.argsort(rows)])
        return codes, Unknown(spec, values, first, int(np.count_nonzero(strange)))

    def unknown_levels(self, strange: Sequence[Unknown]) -> DataError:
        """Return the error for categories that no training row had: the first column in full, the others by name."""
        first = strange[0]
        name, value = first.column.name, first.values[0]
        row = first.first_row
        close = suggest(value, first.column.levels) if len(first.values) == 1 else None
        others = listed([repr(one.column.name) for one in strange[1:]])
        return DataError(
            f"column {name!r} of {self.table.name} holds {_values(first)}, unknown to {self.model}, in "
            f"{counted(first.n_rows, 'row')} (the first in {self.table.place(row)})"
            + (f"; so {'does' if len(strange) == 2 else 'do'} {others}" if strange[1:] else ""),
            hint=f"did you mean {close!r}? Correct the value, or leave those rows out"
            if close
            else "correct the value, or leave those rows out; "
            f"{listed([repr(level) for level in first.column.levels], LEVELS_SHOWN)} are known",
            code="data.unknown_level",
            where={**self.table.where(row), "column": name, "value": value},
        )

    def unknown_warning(self, stranger: Unknown) -> str:
        """Return the warning about categories that no training row had."""
        return (
            f"{self.table.name}: column {stranger.column.name!r} holds {_values(stranger)}, unknown to {self.model}, in "
            f"{counted(stranger.n_rows, 'row')}: taken as different from every known value"
        )

    def not_finite(self, spec: ColumnSpec, row: int, value: float) -> DataError:
        """Return the error for an infinity, and for a number so large that it is one after scaling."""
        column = self.table[spec.name]
        shown = column.levels[column.values[row]].strip() if column.is_category else str(value)
        trouble = (
            f"too far from the training rows of {self.model} to be scaled (their mean is {spec.centre:g}, their "
            f"standard deviation {spec.spread:g})"
            if math.isfinite(value)
            else f"which is {'beyond 1.8e308, the largest number' if is_number(shown) else 'not a finite number'}"
        )
        return DataError(
            f"{self.table.name}, {self.table.place(row)}: column {spec.name!r} holds {shown_value(shown)}, {trouble}",
            hint="correct the value, or leave its row out",
            code="data.infinite_values",
            where={**self.table.where(row), "column": spec.name, "value": shown},
        )

    def _not_a_number(self, spec: ColumnSpec, column: Column, odd: NDArray[np.bool_]) -> DataError:
        """Return the error for text among what were numbers."""
        row = int(np.argmax(odd))
        value = column.levels[column.values[row]]
        total, n_odd = len(odd), int(np.count_nonzero(odd))
        form = _form(spec)
        strange = [column.levels[code] for code in np.unique(column.values[odd])]
        hint = f"{missing_hint(strange, self.table)}correct the value, or leave its row out"
        if 2 * n_odd > total > 1:
            hint = f"write {spec.name!r} as in training, such as {form.example}, or train with rows written as these"
        if _NUMBER_WITH_COMMA.fullmatch(value):
            hint = "--decimal ',' or --decimal '.' says what the comma is: decimal, or between thousands"
        return DataError(
            f"{self.table.name}, {self.table.place(row)}: column {spec.name!r} holds {shown_value(value)}, which is "
            f"not a {form.noun} ({total - n_odd:,} of {total:,} values are), but {self.model} was fitted to "
            f"{spec.kind}s" + (f" written as {spec.written}" if spec.written else ""),
            hint=hint,
            code="data.types_differ",
            where={**self.table.where(row), "column": spec.name, "value": value},
        )

    def _kinds_differ(self, spec: ColumnSpec, column: Column, row: int) -> DataError:
        """Return the error for a column of another kind, with a value that shows it."""
        value = _value(column, row)
        known = f"; the values known are {listed(spec.levels, LEVELS_SHOWN)}" if spec.is_category else ""
        return DataError(
            f"column {spec.name!r} is {column.kind} in {self.table.name} and {spec.kind} in {self.model} "
            f"({self.table.place(row)}: {shown_value(value)})",
            hint=f"give it as {spec.kind}, as in training{known}",
            code="data.types_differ",
            where={**self.table.where(row), "column": spec.name, "value": value},
        )


def _form(spec: ColumnSpec) -> Form:
    """Return the form in which a column of numbers or dates was written; plain dates have the year first."""
    return form_of(spec.written or ("date, year first" if spec.kind == "date" else ""))


def select_specs(table: Table, specs: Sequence[ColumnSpec], model: str) -> Table:
    """Return the columns of a model as they are in a table of new rows, in the order of the model.

    Raises
    ------
    DataError
        If a column is not there, or of a type that we do not know.
    """
    names = [spec.name for spec in specs]
    present, wanted = set(table.names), set(names)
    absent = [name for name in names if name not in present]
    if absent:
        raise _columns_missing(absent, table, [name for name in table.names if name not in wanted], model)
    chosen = table.select(names)
    for spec, column in zip(specs, chosen.columns, strict=True):
        if column.problem is not None and not column.problem.curable:
            raise DataError(
                column.problem.message,
                hint=f"{model} was fitted to {spec.kind} there",
                code=column.problem.code,
                where=column.problem.where,
            )
    return chosen


def _columns_missing(absent: list[str], table: Table, others: Sequence[str], model: str) -> DataError:
    """Return the error that lists the columns that are not there, and what they may be called instead."""
    meant = {name: suggest(name, tuple(others)) for name in absent}
    found = {name: close for name, close in meant.items() if close}
    by_position = [all(_BY_POSITION.fullmatch(name) for name in names) for names in (absent, table.names)]
    if table.format == "csv" and by_position == [True, False]:
        hint = f"{model} knows its columns by position: if {table.name} has no header, --no-header says so"
    elif table.format == "csv" and by_position == [False, True]:
        hint = f"{model} knows its columns by name: {table.name} needs a header, and no --no-header"
    elif not found:
        hint = comment_hint(table.names) or f"the columns are {listed(table.names, 20)}"
    elif len(absent) == 1:
        hint = f"did you mean {found[absent[0]]!r}?"
    else:
        hint = f"did you mean {listed([f'{close!r} for {name!r}' for name, close in found.items()])}?"
    return DataError(
        f"{table.name} has no column {absent[0]!r}, which {model} needs"
        if len(absent) == 1
        else f"{table.name} lacks {len(absent):,} columns that {model} needs: "
        f"{listed([repr(name) for name in absent], 20)}",
        hint=hint,
        code="data.columns_differ",
        where={"file": table.name, "column": absent[0]},
    )


def _places(spec: ColumnSpec, kind: str, levels: Sequence[str]) -> list[int]:
    """Return the place of each level of a column among those of the model, -1 for none.

    The same text, else the only one that means the same: 1.0 and 1 for a column that came as numbers, True and true
    where either side took the texts for booleans. Which kind a file's column is depends on all of its values.
    """
    known = {level: code for code, level in enumerate(spec.levels)}
    meaning = (
        _meaning_of_number if kind == "number" else _meaning_of_boolean if "boolean" in {kind, spec.kind} else None
    )
    if meaning is None:
        return [known.get(level, -1) for level in levels]
    by_meaning: dict[float | str | None, list[int]] = {}
    for level, code in known.items():
        by_meaning.setdefault(meaning(level), []).append(code)
    places = []
    for level in levels:
        meant = meaning(level)
        alike = [] if meant is None else by_meaning.get(meant, [])
        places.append(known[level] if level in known and alike else alike[0] if len(alike) == 1 else -1)
    return places


def _meaning_of_number(text: str) -> float | None:
    """Return the number that a text is; None for other texts, and beyond 2^53, where numbers are not all told apart."""
    number = float(text) if is_number(text) else math.inf
    return number if abs(number) < EXACT_INTEGERS else None


def _meaning_of_boolean(text: str) -> str:
    """Return true or false for each way to write them, other texts as they are."""
    folded = text.casefold()
    return folded if folded in {"true", "false"} else text


def _alike(column: Column, levels: Sequence[str]) -> bool:
    """Say whether some level looks like the values of a column of numbers or dates."""
    fits = is_number if column.kind == "number" else _LIKE_A_DATE.match
    return any(fits(level) for level in levels)


def _values(stranger: Unknown) -> str:
    """Return unknown values in quotes."""
    return listed([shown_value(value) for value in stranger.values], LEVELS_SHOWN)


def _value(column: Column, row: int) -> str:
    """Return a value as text."""
    if column.is_category:
        return column.levels[int(column.values[row])]
    value = float(column.values[row])
    return date_text(value) if column.kind == "date" else number_text(value)
