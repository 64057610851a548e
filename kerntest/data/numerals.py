"""Numbers written with a decimal comma, and with points or commas between thousands: read, and never in silence."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.forms import is_number
from kerntest.data.suspicion import NEARLY_ALL, has_comma, present_counts, stray_problem
from kerntest.data.table import Column, Remark, Table
from kerntest.data.wording import option_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kerntest.data.csv_options import Decimal

_EXPONENT = r"(?:[eE][+-]?\d+)?"
# Neither reading takes a number with a leading zero such as 007,5: that is a name.
_WHOLE = r"(?:0|[1-9]\d*)"


@dataclass(frozen=True, slots=True)
class _Notation:
    """One way to write numbers: the mark before the fraction, and the one between groups of thousands."""

    decimal: str
    thousands: str

    def matcher(self) -> Callable[[str], re.Match[str] | None]:
        """Return the function that says whether a text is a number in this notation."""
        point, group = re.escape(self.decimal), re.escape(self.thousands)
        whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|{_WHOLE})"
        number = rf"[ \t]*[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+){_EXPONENT}[ \t]*"
        return re.compile(number, re.ASCII).fullmatch

    def value(self, text: str) -> float:
        """Return the number that a text in this notation is."""
        return float(text.replace(self.thousands, "").replace(self.decimal, "."))


_NOTATIONS = {",": _Notation(",", "."), ".": _Notation(".", ",")}
# 1,234 and 1.234: a fraction of three digits or a group of three.
_EITHER = {
    mark: re.compile(rf"[ \t]*[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}[ \t]*", re.ASCII).fullmatch for mark in ",."
}


def read_numerals(
    columns: Sequence[Column],
    table: Table,
    decimal: Decimal,
    as_typed: Callable[[Sequence[str]], Sequence[Column]],
) -> list[Column]:
    """Return the columns with those as numbers that are numbers in another notation, and remarks on them.

    Parameters
    ----------
    columns : sequence of Column
        As the parser typed them: 1,5 is text. Columns to keep as text are not among them.
    table : Table
        For its name, its delimiter and its lines.
    decimal : {"auto", ".", ","}
        "," and "." are believed. "auto" looks for decimal commas, but not where the comma is the delimiter: there a
        quoted ``"1,234"`` is more likely 1234, and `suspicion.doubted` asks.
    as_typed : callable
        Reads columns again as text, by name.

    Returns
    -------
    list of Column
    """
    if decimal == "auto" and table.delimiter == ",":
        return list(columns)
    mark = "," if decimal == "auto" else decimal
    read = {column.name: _in_notation(column, table, mark) for column in columns if column.kind == "text"}
    found = {name: column for name, column in read.items() if column is not None}
    texts = {column.name: column for column in columns if column.name in found}
    sure = [name for name, column in texts.items() if _holds(column, mark) and not _is_ambiguous(column, mark)]
    if decimal == "auto" and not sure:
        # 1.234.567 alone may be the number of a version; beside a decimal comma it is 1234567.
        found = {name: column for name, column in found.items() if _holds(texts[name], mark)}
    if mark == "," and (sure or decimal == ","):
        # In such a file 1.234 is 1234 unless its column says otherwise, and so the parser took it for a fraction.
        pointed = [column.name for column in columns if column.kind == "number" and _has_fractions(column)]
        for column in as_typed(pointed) if pointed else ():
            if _is_ambiguous(column, ".") and (in_thousands := _in_notation(column, table, ",")) is not None:
                found[column.name], texts[column.name] = in_thousands, column
    if decimal == "auto":
        found = {
            name: replace(column, remarks=(_remark(texts[name]),)) if column.kind == "number" else column
            for name, column in found.items()
        }
    return [found.get(column.name, column) for column in columns]


def _has_fractions(column: Column) -> bool:
    """Say whether some number of the column is not whole."""
    present = column.values[np.isfinite(column.values)]
    return bool(np.any(present != np.floor(present)))


def _holds(column: Column, mark: str) -> bool:
    """Say whether the mark stands in some value of a text column."""
    return any(mark in level for level in column.levels)


def _is_ambiguous(column: Column, mark: str) -> bool:
    """Say whether the mark, wherever it stands in a column of text, could be decimal or between thousands."""
    marked = [level for level in column.levels if mark in level or _NOTATIONS[mark].thousands in level]
    return bool(marked) and all(map(_EITHER[mark], marked))


def _in_notation(column: Column, table: Table, mark: str) -> Column | None:
    """Return the text column as numbers; with a problem where less than half are none, and None where more are none.

    Only a column in which the notation shows is taken: one with a comma before a fraction, say.
    """
    notation = _NOTATIONS[mark]
    is_numeral = notation.matcher()
    counts = present_counts(column, table.na)
    total = int(counts.sum())
    numbers = np.full(len(column.levels) + 1, np.nan)
    strange: list[int] = []
    n_strange = 0
    shows = contradicts = False
    for index, level in enumerate(column.levels):
        if is_numeral(level):
            numbers[index] = notation.value(level)
            shows = shows or notation.decimal in level or notation.thousands in level
            continue
        if not counts[index]:
            continue
        strange.append(index)
        n_strange += int(counts[index])
        # Other numbers among the strange values may say that this is not the notation.
        contradicts = contradicts or is_number(level) or has_comma(level)
        if 2 * n_strange >= total or (contradicts and n_strange > (1 - NEARLY_ALL) * total + 1e-9):
            return None
    if not shows:
        return None
    if strange:
        return replace(column, problem=stray_problem(column, table, strange, total - n_strange, total))
    return Column(column.name, "number", numbers[column.values])


def _remark(text: Column) -> Remark:
    """Return what is told of a column of text that was read as numbers with a decimal comma: sure, or a guess."""
    commas, points = _NOTATIONS[","], _NOTATIONS["."]
    for mark in ",.":
        if _is_ambiguous(text, mark):
            example = _example(text, mark)
            return Remark(
                f"{example} in column {text.name!r} was read as {commas.value(example):.15g}, but could be "
                f"{points.value(example):.15g}; --decimal . reads it so, --exclude {option_value([text.name])} leaves the "
                "column out"
            )
    example = _example(text, ",.")
    return Remark("numbers with a decimal comma were read as such", f"{example} is {commas.value(example):.15g}")


def _example(column: Column, marks: str) -> str:
    """Return the first value of a text column with one of the marks in it."""
    return next(level for level in column.levels if any(mark in level for mark in marks)).strip()
