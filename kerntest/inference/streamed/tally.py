"""What a first pass over rows finds out, piece by piece: sums that merge in order, and a random sample."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.kinds import forms_in, present_counts, strange_levels, stray_problem
from kerntest.data.rows import check_usable
from kerntest.data.table import FORMS
from kerntest.inference.streamed.assignment import mixed
from kerntest.inference.streamed.rows import complete_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table
    from kerntest.inference.streamed.rows import Piece, RowReader
    from kerntest.kernels.base import Array

# A text column with more different values than this is no column of categories.
MOST_LEVELS = 10_000
# Tells the stream of sampled rows from other streams of the same seed.
SAMPLE_STREAM = 7


@dataclass(slots=True)
class NumberFacts:
    """What is known of the values of one column of numbers, in the order of the rows.

    Parameters
    ----------
    count : int
    offset, squares : float
        Their mean less the first of them, which keeps the digits of a large mean, and the sum of their squared deviations
        from it.
    low, high, first, last : float
    whole : bool
        Whether all are whole numbers.
    up, down : int
        Steps from one to the next that go up, and down; the others stand still.
    """

    count: int
    offset: float
    squares: float
    low: float
    high: float
    first: float
    last: float
    whole: bool
    up: int
    down: int

    @classmethod
    def of(cls, values: Array) -> NumberFacts:
        """Return the facts about some values, at least one."""
        first = float(values[0])
        moved = values - first
        middle = float(moved.mean())
        moved -= middle
        squares = float(moved @ moved)
        steps = np.diff(values)
        return cls(
            len(values),
            middle,
            squares,
            float(values.min()),
            float(values.max()),
            first,
            float(values[-1]),
            bool(np.all(values == np.floor(values))),
            int(np.count_nonzero(steps > 0)),
            int(np.count_nonzero(steps < 0)),
        )

    def add(self, later: NumberFacts) -> None:
        """Take in the values after these (Chan, Golub and LeVeque 1983)."""
        total = self.count + later.count
        apart = (later.first - self.first) + (later.offset - self.offset)
        self.squares += later.squares + apart * apart * (self.count * later.count / total)
        self.offset += apart * (later.count / total)
        self.up += later.up + (later.first > self.last)
        self.down += later.down + (later.first < self.last)
        self.count, self.last = total, later.last
        self.low, self.high = min(self.low, later.low), max(self.high, later.high)
        self.whole = self.whole and later.whole

    @property
    def mean(self) -> float:
        """Their mean."""
        return self.first + self.offset

    @property
    def counts_rows(self) -> bool:
        """Whether these are whole, all different, and run in one direction."""
        return self.whole and self.count - 1 in {self.up, self.down}

    @property
    def runs(self) -> bool:
        """Whether these never turn back and seldom stand still."""
        return not (self.up and self.down) and self.up + self.down > (self.count - 1) // 2


@dataclass(slots=True, eq=False)
class RandomRows:
    """The rows with the smallest of random keys: a uniform sample, whatever pieces it is put together from.

    Parameters
    ----------
    keys : ndarray of uint64, shape (m,)
        Ascending.
    numbers : dict of str to ndarray, shape (m,)
    texts : dict of str to list of str
    """

    keys: NDArray[np.uint64]
    numbers: dict[str, Array]
    texts: dict[str, list[str]]

    def add(self, other: RandomRows, most: int) -> None:
        """Take in other rows, and keep those with the smallest keys."""
        keys = np.concatenate([self.keys, other.keys])
        order = np.argsort(keys, kind="stable")[:most]
        self.keys = keys[order]
        for name, values in other.numbers.items():
            self.numbers[name] = np.concatenate([self.numbers[name], values])[order]
        for name, texts in other.texts.items():
            both = self.texts[name] + texts
            self.texts[name] = [both[row] for row in order.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Turned:
    """A column that is not of the kind that was asked for, in some rows.

    Parameters
    ----------
    column : Column
    table : Table
        With the column.
    levels : list of int
        Of text where numbers or dates were asked for: those that are none.
    wanted : str
        The kind that was asked for.
    """

    column: Column
    table: Table
    levels: list[int]
    wanted: str

    @classmethod
    def of(cls, column: Column, table: Table, wanted: str) -> Turned:
        """Return what is known of a column.

        Raises
        ------
        DataError
            If it cannot be used.
        """
        if column.problem is not None:
            raise column.problem.error()
        forms = [form for form in forms_in(column, table.na) if form.kind == wanted] if column.kind == "text" else []
        levels = strange_levels(column, table.na, forms) if forms else []
        return cls(column, replace(table, columns=(column,)), levels, wanted)

    def n_strange(self, n_present: int) -> int:
        """Return how many values are not of the kind that was asked for, of so many."""
        if self.column.kind != "text":
            return n_present
        return int(present_counts(self.column, self.table.na)[self.levels].sum())

    @property
    def place(self) -> str:
        """Where the first value stands that is not of the kind that was asked for, and the value."""
        if not self.column.is_category:
            return ""
        # One more place at the end: code -1 (missing) finds it.
        odd = np.zeros(len(self.column.levels) + 1, dtype=bool)
        odd[self.levels or slice(0, -1)] = True
        row = int(np.argmax(odd[self.column.values]))
        return f"{self.table.place(row)}: {self.column.levels[self.column.values[row]]!r}"

    def refuse_stray(self, n_fitting: int, total: int) -> None:
        """Raise DataError if more than half of all values are numbers or dates: then this is a mistake and not text."""
        if self.levels and 2 * n_fitting > total:
            form = next(form for form in FORMS if form.kind == self.wanted)
            raise stray_problem(self.column, self.table, self.levels, n_fitting, total, form=form).error()


@dataclass(slots=True, eq=False)
class Tally:
    """What is known of some rows of one input.

    Parameters
    ----------
    source, number : int
        Of the piece.
    rows, used : int
        All of them, and those without missing values.
    missing : dict of str to int
        Missing values of each column that has some.
    first_missing : (Table, int) or None
        Where the first is: a table and a row of it.
    numbers : dict of str to NumberFacts
    levels : dict of str to set of str, or None
        The different values of each category column; None where there are too many.
    turned : dict of str to Turned
        Columns that are not of the kind that was asked for.
    fitting : dict of str to ndarray of int, shape (2,)
        Of each column of numbers or dates: how many values are such, and how many there are.
    sample : RandomRows or None
    """

    source: int
    number: int
    rows: int = 0
    used: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    first_missing: tuple[Table, int] | None = None
    numbers: dict[str, NumberFacts] = field(default_factory=dict)
    levels: dict[str, set[str] | None] = field(default_factory=dict)
    turned: dict[str, Turned] = field(default_factory=dict)
    fitting: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    sample: RandomRows | None = None

    def add(self, later: Tally, most: int) -> None:
        """Take in the rows after these."""
        self.rows += later.rows
        self.used += later.used
        for name, count in later.missing.items():
            self.missing[name] = self.missing.get(name, 0) + count
        self.first_missing = self.first_missing or later.first_missing
        for name, facts in later.numbers.items():
            if name in self.numbers:
                self.numbers[name].add(facts)
            else:
                self.numbers[name] = facts
        for name, levels in later.levels.items():
            known = self.levels.get(name, set())
            both = None if known is None or levels is None else known | levels
            self.levels[name] = None if both is None or len(both) > MOST_LEVELS else both
        self.turned = {**later.turned, **self.turned}
        for name, counts in later.fitting.items():
            self.fitting[name] = self.fitting.get(name, 0) + counts
        if self.sample is None:
            self.sample = later.sample
        elif later.sample is not None:
            self.sample.add(later.sample, most)


@dataclass(frozen=True, slots=True, eq=False)
class Tallier:
    """The work of the first pass on one piece.

    Parameters
    ----------
    reader : RowReader
    seed : int
    most : int
        Rows of the sample.
    """

    reader: RowReader
    seed: int
    most: int

    def __call__(self, piece: Piece) -> Tally:
        """Return what the rows of a piece tell.

        Raises
        ------
        DataError
            If a file is damaged, or a value is infinite or a stray text among numbers.
        """
        tally = Tally(piece.source, piece.number)
        for table in self.reader.tables(piece):
            tally.add(self._of(table, piece, piece.rows_before + tally.rows), self.most)
        return tally

    def _of(self, table: Table, piece: Piece, rows_before: int) -> Tally:
        found = Tally(piece.source, piece.number, rows=table.n_rows)
        kinds = {one.name: one.kind for one in self.reader.wanted}
        for column in table.columns:
            kind = kinds[column.name]
            if kind in {"number", "date"}:
                n_present = len(column.values) - column.n_missing
                found.fitting[column.name] = np.array([n_present, n_present])
            if column.kind != kind:
                turned = Turned.of(column, table, kind)
                found.turned[column.name] = turned
                if column.name in found.fitting:
                    found.fitting[column.name][0] -= turned.n_strange(n_present)
        if found.turned:
            return found
        check_usable(table)
        complete = complete_rows(table)
        rows = np.arange(table.n_rows)
        if complete is not None:
            found.missing = {column.name: column.n_missing for column in table.columns if column.n_missing}
            found.first_missing = table, int(np.argmin(complete))
            rows, table = np.flatnonzero(complete), table.take(complete)
        found.used = table.n_rows
        if not table.n_rows:
            return found
        for column in table.columns:
            if column.is_category:
                used = np.flatnonzero(np.bincount(column.values, minlength=len(column.levels)))
                found.levels[column.name] = {column.levels[code] for code in used.tolist()}
            else:
                found.numbers[column.name] = NumberFacts.of(column.values)
        found.sample = self._sampled(table, piece.source, rows_before + rows)
        return found

    def _sampled(self, table: Table, source: int, numbers: NDArray[np.int64]) -> RandomRows:
        """Return the rows with the smallest keys, which depend on the seed and the number of the row alone."""
        start = np.random.default_rng((self.seed, SAMPLE_STREAM, source)).integers(0, 2**64, dtype=np.uint64)
        keys = mixed(mixed(numbers.astype(np.uint64) ^ start) + start)
        rows = np.argpartition(keys, self.most)[: self.most] if len(keys) > self.most else np.arange(len(keys))
        rows = rows[np.argsort(keys[rows], kind="stable")]
        chosen = table.take(rows)
        return RandomRows(
            keys[rows],
            {column.name: column.values for column in chosen.columns if not column.is_category},
            {column.name: list(_texts(column)) for column in chosen.columns if column.is_category},
        )


def _texts(column: Column) -> Iterator[str]:
    return (column.levels[code] for code in column.values.tolist())
