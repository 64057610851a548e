"""What a column holds, and what a two-sample test would do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from kerntest.data.arranging import reason_to_leave_out
from kerntest.data.categories import date_text
from kerntest.data.forms import is_number
from kerntest.data.misleading import counts_rows
from kerntest.data.missing import check_usable
from kerntest.data.wording import counted, option_value
from kerntest.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    return "number" if column.problem.curable else "other"


def count_different(column: Column) -> int:
    """Return the number of different values, missing ones aside. Cost: O(n log n)."""
    return len(np.unique(column.values[~column.missing]))


def range_of(column: Column) -> tuple[float | str | None, float | None, float | str | None]:
    """Return minimum, mean and maximum of the finite numbers, and of dates the first and the last in ISO form."""
    numbers = column.values
    if column.is_category:
        if column.problem is None or not column.problem.curable:
            return None, None, None
        numbers = _numbers_among(column)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) == 0:
        return None, None, None
    low, high = float(numbers.min()), float(numbers.max())
    if column.kind == "date":
        return date_text(low), None, date_text(high)
    # Halves cannot overflow, and what they lose is far below what a mean is read for.
    return (
        low,
        2 * float(np.mean(numbers / 2)) if abs(low) > 1e300 or abs(high) > 1e300 else float(numbers.mean()),
        high,
    )


def _numbers_among(column: Column) -> NDArray[np.float64]:
    """Return the values of a text column that are numbers, NaN for the others."""
    levels = np.array([float(level) if is_number(level) else np.nan for level in column.levels] + [np.nan])
    values: NDArray[np.float64] = levels[column.values]
    return values


def frequent_levels(column: Column) -> list[tuple[str, int]]:
    """Return the most frequent values of a text or boolean column, and how many rows hold each."""
    if type_of(column) not in {"text", "boolean"}:
        return []
    counts = np.bincount(column.values[column.values >= 0], minlength=len(column.levels))
    first = np.argsort(-counts, kind="stable")[:LEVELS_SHOWN]
    return [(column.levels[index], int(counts[index])) for index in first if counts[index]]


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
