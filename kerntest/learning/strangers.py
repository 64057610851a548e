"""Categories of new rows that no training row had: matched by what they mean, and counted over all blocks of a file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.categories import text_column
from kerntest.data.forms import is_number
from kerntest.data.wording import counted, listed, shown_value
from kerntest.report.prediction_report import UnknownLevels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table
    from kerntest.learning.encoding import ColumnSpec, Encoder

# Values of a column that are told.
VALUES_TOLD = 20


def known_levels(table: Any, encoder: Encoder) -> Any:
    """Return a table whose values of text are those of the model where they mean the same.

    `1.0` is the level `1`, and `TRUE` the level `true`, if just one level of the column is that number or truth value
    and none is the text itself. A file read as a whole tells numbers and truth values by all values of a column; here
    every value speaks for itself, so that it means the same in every block.
    """
    specs = {column.name: column for column in encoder.categories}
    columns = tuple(
        _known(column, specs[column.name]) if column.name in specs and column.kind == "text" else column
        for column in table.columns
    )
    return replace(table, columns=columns)


def _known(column: Column, spec: ColumnSpec) -> Column:
    known = set(spec.levels)
    if column.problem is not None or known.issuperset(column.levels):
        return column
    by_meaning: dict[float | str, list[str]] = {}
    for level in spec.levels:
        meant = _meaning(level)
        if meant is not None:
            by_meaning.setdefault(meant, []).append(level)
    if not by_meaning:
        return column
    levels = []
    for level in column.levels:
        alike = [] if level in known else by_meaning.get(_meaning(level) or "", [])
        levels.append(alike[0] if len(alike) == 1 else level)
    return text_column(column.name, column.values, levels) if levels != list(column.levels) else column


def _meaning(text: str) -> float | str | None:
    """Return the number or the truth value that a text is; None for any other."""
    if text.casefold() in {"true", "false"}:
        return text.casefold()
    if not is_number(text):
        return None
    value = float(text)
    # Zero is false to Python; larger numbers are not all told apart.
    return f"number {value + 0.0!r}" if abs(value) < 2**53 else None


@dataclass(slots=True, eq=False)
class Strangers:
    """Unknown values met in some rows, by column."""

    values: dict[str, dict[str, None]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    @classmethod
    def met(cls, encoder: Encoder, table: Table, codes: NDArray[np.int64]) -> Strangers:
        """Return the unknown values of a block, whose codes are -1."""
        found = cls()
        for place, spec in enumerate(encoder.categories):
            strange = np.flatnonzero(codes[:, place] < 0)
            if not len(strange):
                continue
            column = table[spec.name]
            codes_met = column.values[strange].tolist() if column.is_category else []
            found.rows[spec.name] = len(strange)
            found.values[spec.name] = dict.fromkeys(column.levels[code] for code in codes_met)
        return found

    def add(self, other: Strangers) -> None:
        """Take note of what was met in the next rows."""
        for name, count in other.rows.items():
            self.rows[name] = self.rows.get(name, 0) + count
            met = self.values.setdefault(name, {})
            if len(met) < VALUES_TOLD:
                met |= other.values[name]

    def records(self) -> tuple[UnknownLevels, ...]:
        """Return them as they are reported."""
        return tuple(UnknownLevels(name, tuple(self.values[name])[:VALUES_TOLD], self.rows[name]) for name in self.rows)

    def warnings(self, data: str, model: str) -> list[str]:
        """Return a warning for each column."""
        return [
            f"{data}: column {name!r} holds {listed([shown_value(value) for value in self.values[name]], 5)}, unknown to "
            f"{model}, in {counted(count, 'row')}: taken as different from every known value"
            for name, count in self.rows.items()
        ]
