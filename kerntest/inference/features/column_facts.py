"""What a pass over rows finds of their columns, block by block: facts that merge in order, and a random sample."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.diagnostics import FEWEST_ROWS
from kerntest.data.kinds import first_row, forms_in, present_counts, strange_levels, stray_problem
from kerntest.data.rows import check_usable
from kerntest.data.table import FORMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Kind, Table

# A text column with more different values than this is no column of categories.
MOST_LEVELS = 10_000
# Tells the stream of sampled rows from other streams of the same seed.
SAMPLE_STREAM = 7
_GOLDEN, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose bits have nothing left in common with those given: splitmix64 (Steele et al. 2014)."""
    values = values + _GOLDEN
    values = (values ^ (values >> _SHIFT_1)) * _MIX_1
    values = (values ^ (values >> _SHIFT_2)) * _MIX_2
    return values ^ (values >> _SHIFT_3)


@dataclass(slots=True)
class NumberFacts:
    """What is known of the values of one column of numbers, in the order of the rows.

    `offset` is their mean less the first of them, which keeps the digits of a large mean, `squares` the sum of their
    squared deviations from the mean; `up` and `down` count the steps from one to the next.
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
    def of(cls, values: NDArray[np.float64]) -> NumberFacts:
        """Return the facts about some values, at least one."""
        first = float(values[0])
        moved = values - first
        middle = float(moved.mean())
        moved -= middle
        steps = np.diff(values)
        with np.errstate(over="ignore"):
            squares = float(moved @ moved)
        return cls(
            count=len(values),
            offset=middle,
            squares=squares,
            low=float(values.min()),
            high=float(values.max()),
            first=first,
            last=float(values[-1]),
            whole=bool(np.all(values == np.floor(values))),
            up=int(np.count_nonzero(steps > 0)),
            down=int(np.count_nonzero(steps < 0)),
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
        """Whether these are whole, all different, and run in one direction along the file, as a counter does."""
        return self.count >= FEWEST_ROWS and self.whole and self.count - 1 in {self.up, self.down}

    @property
    def runs(self) -> bool:
        """Whether these never turn back and seldom stand still, as the time of orders does."""
        steps = self.up + self.down
        return self.count >= FEWEST_ROWS and steps in {self.up, self.down} and steps > (self.count - 1) // 2


@dataclass(slots=True, eq=False)
class RandomRows:
    """The rows with the smallest of random keys, ascending: a uniform sample, whatever it is put together from."""

    keys: NDArray[np.uint64]
    columns: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, table: Table, rows: NDArray[np.int64], most: int, seed: int, source: int) -> RandomRows:
        """Return at most so many rows of a table; the keys depend on the seed and the numbers of the rows alone."""
        start = np.random.default_rng((seed, SAMPLE_STREAM, source)).integers(0, 2**64, dtype=np.uint64)
        keys = mixed(mixed(rows.astype(np.uint64) ^ start) + start)
        chosen = np.argpartition(keys, most)[:most] if len(keys) > most else np.arange(len(keys))
        chosen = chosen[np.argsort(keys[chosen], kind="stable")]
        return cls(keys[chosen], {column.name: _plain_values(column.take(chosen)) for column in table.columns})

    def with_others(self, other: RandomRows, most: int) -> RandomRows:
        """Return at most so many of these and other rows."""
        keys = np.concatenate([self.keys, other.keys])
        order = np.argsort(keys, kind="stable")[:most]
        columns = {name: np.concatenate([values, other.columns[name]])[order] for name, values in self.columns.items()}
        return RandomRows(keys[order], columns)


def _plain_values(column: Column) -> NDArray[Any]:
    """Return numbers, or the texts that codes stand for."""
    return np.array(column.levels, dtype=object)[column.values] if column.is_category else column.values


@dataclass(frozen=True, slots=True, eq=False)
class Turned:
    """A column that is not of the kind that was asked for, in some rows; `strange` are its levels that are not."""

    column: Column
    table: Table
    strange: list[int]
    kind: Kind

    @classmethod
    def of(cls, column: Column, table: Table, kind: Kind) -> Turned:
        """Return what is known of a column; DataError if it cannot be used."""
        if column.problem is not None:
            raise column.problem.error()
        forms = [form for form in forms_in(column, table.na) if form.kind == kind] if column.kind == "text" else []
        strange = strange_levels(column, table.na, forms) if forms else []
        return cls(column, replace(table, columns=(column,)), strange, kind)

    @property
    def n_strange(self) -> int:
        """How many values are not of the kind that was asked for."""
        if self.column.kind != "text":
            return len(self.column.values) - self.column.n_missing
        return int(present_counts(self.column, self.table.na)[self.strange].sum())

    @property
    def place(self) -> str:
        """Where the first of these values stands, and the value."""
        if not self.column.is_category:
            return ""
        row = first_row(self.column, self.strange or list(range(len(self.column.levels))))
        return f"{self.table.place(row)}: {self.column.levels[self.column.values[row]]!r}"

    def refuse_stray(self, n_fitting: int, total: int) -> None:
        """Raise DataError if more than half of all values are numbers or dates: then this is a mistake and not text."""
        if self.strange and 2 * n_fitting > total:
            form = next(form for form in FORMS if form.kind == self.kind)
            raise stray_problem(self.column, self.table, self.strange, n_fitting, total, form=form).error()


@dataclass(slots=True, eq=False)
class TableFacts:
    """What is known of some rows of one input.

    `present` and `strange` count, of each column that should be one of numbers or dates, the values and those that are
    none; `levels` are the different values of a column of categories, None where they are too many.
    """

    source: int
    rows: int = 0
    used: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    first_missing: tuple[Table, int] | None = None
    numbers: dict[str, NumberFacts] = field(default_factory=dict)
    levels: dict[str, set[str] | None] = field(default_factory=dict)
    turned: dict[str, Turned] = field(default_factory=dict)
    present: Counter[str] = field(default_factory=Counter)
    strange: Counter[str] = field(default_factory=Counter)
    sample: RandomRows | None = None

    @classmethod
    def of(
        cls, table: Table, kinds: Mapping[str, Kind], before: int, source: int, *, most: int, seed: int
    ) -> TableFacts:
        """Return what some rows tell, so many rows of the input before them; DataError if a value cannot be used."""
        found = cls(source, rows=table.n_rows)
        for column in table.columns:
            kind = kinds[column.name]
            if kind in {"number", "date"}:
                found.present[column.name] = len(column.values) - column.n_missing
            if column.kind != kind:
                found.turned[column.name] = turned = Turned.of(column, table, kind)
                found.strange[column.name] = turned.n_strange
        if found.turned:
            return found
        check_usable(table)
        rows = before + np.arange(table.n_rows)
        complete = complete_rows(table)
        if complete is not None:
            found.missing.update({column.name: column.n_missing for column in table.columns if column.n_missing})
            found.first_missing = table, int(np.argmin(complete))
            rows, table = rows[complete], table.take(complete)
        found.used = table.n_rows
        if not table.n_rows:
            return found
        for column in table.columns:
            if column.is_category:
                used = np.flatnonzero(np.bincount(column.values, minlength=len(column.levels)))
                found.levels[column.name] = {column.levels[code] for code in used.tolist()}
            else:
                found.numbers[column.name] = NumberFacts.of(column.values)
        found.sample = RandomRows.of(table, rows, most, seed, source)
        return found

    def add(self, later: TableFacts, most: int) -> None:
        """Take in the rows after these."""
        self.rows += later.rows
        self.used += later.used
        self.missing.update(later.missing)
        self.present.update(later.present)
        self.strange.update(later.strange)
        self.first_missing = self.first_missing or later.first_missing
        self.turned = {**later.turned, **self.turned}
        for name, facts in later.numbers.items():
            if name in self.numbers:
                self.numbers[name].add(facts)
            else:
                self.numbers[name] = facts
        for name, levels in later.levels.items():
            known = self.levels.get(name, set())
            both = None if known is None or levels is None else known | levels
            self.levels[name] = None if both is None or len(both) > MOST_LEVELS else both
        if self.sample is None:
            self.sample = later.sample
        elif later.sample is not None:
            self.sample = self.sample.with_others(later.sample, most)


def complete_rows(table: Table) -> NDArray[np.bool_] | None:
    """Return which rows have every value; None where all have."""
    complete: NDArray[np.bool_] | None = None
    for column in table.columns:
        missing = column.missing
        if missing.any():
            complete = ~missing if complete is None else complete & ~missing
    return complete
