"""What a column holds, and what a two-sample test would do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from kerntest.data.arranging import reason_to_leave_out
from kerntest.data.categories import date_text
from kerntest.data.misleading import counts_rows
from kerntest.data.missing import check_usable
from kerntest.data.suspicion import forms_in, meant_as, present_counts
from kerntest.data.wording import counted, option_value
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerntest.data.table import Column, Table

Use = Literal["used", "left out", "refused"]
LEVELS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a test would do with a column, why, and where in the file the reason stands."""

    use: Use
    note: str | None = None
    line: int | None = None
    value: str | None = None


def type_of(column: Column) -> str:
    """Return the type that people would give the column: numbers with a stray value among them are numbers."""
    if column.problem is None:
        return column.kind
    return column.problem.kind if column.problem.curable else "other"


def count_different(column: Column) -> int:
    """Return the number of different values, missing ones aside. Cost: O(n log n)."""
    return len(np.unique(column.values[~column.missing]))


@dataclass(frozen=True, slots=True)
class Numbers:
    """What there is to say of the finite numbers of a column.

    Parameters
    ----------
    minimum, maximum : float, str or None
        Of dates in ISO form.
    mean, median, deviation : float or None
        The standard deviation has the divisor n; None of dates.
    share : float or None
        Of a text column: how much of its values are numbers or dates, between 0 and 1.
    """

    minimum: float | str | None = None
    maximum: float | str | None = None
    mean: float | None = None
    median: float | None = None
    deviation: float | None = None
    share: float | None = None


def numbers_of(column: Column, na: Sequence[str]) -> Numbers:
    """Return what there is to say of the numbers in a column; of one of text or truth values how many there are."""
    values, kind, share = column.values, column.kind, None
    if column.is_category:
        share = share_of_numbers(column, na)
        reading = meant_as(column, na) if column.problem is not None and column.problem.curable else None
        if reading is None:
            return Numbers(share=share)
        # One more place at the end: code -1 (missing) finds it.
        values, kind = np.array([*reading.values, None], dtype=np.float64)[column.values], reading.form.kind
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return Numbers(share=share)
    low, high = float(values.min()), float(values.max())
    if kind == "date":
        return Numbers(date_text(low), date_text(high), share=share)
    # A power of two taken out keeps sums of huge numbers from overflowing, and costs no digit.
    exponent = max(0, int(np.frexp(max(abs(low), abs(high)))[1]) - 500)
    scaled = np.ldexp(values, -exponent)
    mean, median, deviation = (float(np.ldexp(f(scaled), exponent)) for f in (np.mean, np.median, np.std))
    return Numbers(low, high, mean, median, deviation, share)


def share_of_numbers(column: Column, na: Sequence[str]) -> float | None:
    """Return how much of the values of a text column are numbers or dates; None where it holds none at all."""
    counts = present_counts(column, na)
    total = int(counts.sum())
    if column.kind != "text" or not total:
        return None
    forms = forms_in(column, na)
    strange = [index for index, level in enumerate(column.levels) if all(form.read(level) is None for form in forms)]
    return 1 - int(counts[strange].sum()) / total


def frequent_levels(column: Column) -> list[tuple[str, int]]:
    """Return the most frequent values of a text or boolean column, and how many rows hold each."""
    if type_of(column) not in {"text", "boolean"}:
        return []
    counts = np.bincount(column.values[column.values >= 0], minlength=len(column.levels))
    first = np.argsort(-counts, kind="stable")[:LEVELS_SHOWN]
    return [(column.levels[index], int(counts[index])) for index in first if counts[index]]


def complete_rows(table: Table) -> int:
    """Return how many rows lack no value; columns of a type that cannot be used do not count."""
    complete = np.ones(table.n_rows, dtype=bool)
    for column in table.columns:
        if type_of(column) != "other":
            complete &= ~column.missing
    return int(np.count_nonzero(complete))


def verdict_on(column: Column, table: Table) -> Verdict:
    """Return what a two-sample test would do with a column of the table."""
    try:
        check_usable(table.select([column.name]))
    except DataError as error:
        line, value = error.where.get("line"), error.where.get("value")
        return Verdict(
            "refused",
            _without_names(error.message, column, table),
            line if isinstance(line, int) else None,
            None if value is None else str(value),
        )
    n_missing = column.n_missing
    if n_missing == table.n_rows:
        return Verdict("refused", "has no values")
    reason = reason_to_leave_out(column.take(~column.missing))
    if reason is not None:
        note = _without_names(reason, column, table).removesuffix(" and is left out")
        return Verdict("left out", f"{note}, unless the other file has others" if "one value" in note else note)
    notes = []
    if n_missing:
        notes.append(f"--missing drop leaves {counted(n_missing, 'row')} out, otherwise a test stops")
    if column.kind == "date":
        notes.append("a date differs between any two batches")
    elif column.kind == "number" and counts_rows(column.values[~column.missing]):
        notes.append(f"counts the rows or identifies them: consider --exclude {option_value([column.name])}")
    return Verdict("used", "; ".join(notes) or None)


def _without_names(message: str, column: Column, table: Table) -> str:
    """Return a message without the names of the table and the column, which stand beside it."""
    for prefix in (f"{table.name}, ", f"{table.name}: "):
        message = message.removeprefix(prefix)
    return message.replace(f"column {column.name!r} ", "", 1)
