"""What a pass over rows finds of their columns, batch by batch: facts that merge in order, and a random sample.

A whole table is one batch. What is told of a single column to people, for `kerntest inspect`, stands at the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data.column_types import date_text, first_row, number_text, stray_problem
from kerntest.data.columns import check_usable, laid_below, reason_to_leave_out, standardize
from kerntest.data.written_values import form_of, forms_in, meant_as, present_counts, strange_levels
from kerntest.dataclass import dataclass
from kerntest.errors import DataError, counted, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Kind, Table

# Of fewer rows it is not told whether they count, or repeat each other.
FEWEST_ROWS = 20
# A text column with more different values than this is no column of categories.
MOST_LEVELS = 10_000
LEVELS_SHOWN = 5
# Whole numbers of at most so many different values may be codes; the first rows tell of most that there are more.
MOST_CODES, FIRST_LOOKED_AT = 200, 1000
# Tells the stream of sampled rows from other streams of the same seed.
SAMPLE_STREAM = 7
# Share of a variance that numbers have which look alike: a tenth of their spread is left to them.
NEXT_TO_EQUAL = 0.01
# A lone value is as any if its column is nearly always another one, as pixels at an edge are 0, and if so many of the others,
# by their number and as a share of them, are as far in such a share of the rows.
FEWEST_AS_FAR, SHARE_AS_FAR, ROWS_AS_FAR = 3, 0.25, 0.01
_GOLDEN, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose bits have nothing left in common with those given: splitmix64 (Steele et al. 2014)."""
    values = values + _GOLDEN
    values = (values ^ (values >> _SHIFT_1)) * _MIX_1
    values = (values ^ (values >> _SHIFT_2)) * _MIX_2
    return values ^ (values >> _SHIFT_3)


def random_keys(rows: NDArray[np.integer], seed: tuple[int, ...]) -> NDArray[np.uint64]:
    """Return a random key for each row, which depends on the seed and its number, from 0, alone."""
    start = np.random.default_rng(seed).integers(0, 2**64, dtype=np.uint64)
    return mixed(mixed(rows.astype(np.uint64) ^ start) + start)


@dataclass()
class NumberFacts:
    """What is known of the values of one column of numbers, in the order of the rows.

    `offset` is their mean less the first of them, which keeps the digits of a large mean, `squares` the sum of their
    squared deviations from the mean; `up` and `down` count the steps from one to the next.
    """

    count: int
    first: float
    last: float
    low: float
    high: float
    offset: float
    squares: float
    whole: bool
    up: int
    down: int

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(cls, values: NDArray[np.float64]) -> NumberFacts:
        """Return the facts about some values, at least one."""
        moved, steps = values - values[0], np.diff(values)
        offset = moved.mean()
        moved -= offset
        ends = (values[0], values[-1], values.min(), values.max(), offset, np.square(moved).sum())
        first, last, low, high, offset, squares = map(float, ends)
        whole = bool(np.all(values == np.floor(values)))
        up, down = (int(np.count_nonzero(turned)) for turned in (steps > 0, steps < 0))
        return cls(len(values), first, last, low, high, offset, squares, whole, up, down)

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
    def lone_value(self) -> float | None:
        """The value, if there is one, beside which the others are next to equal, once their spread is that of all."""
        far = max(self.low, self.high, key=lambda value: abs(value - self.mean))
        own = (far - self.mean) ** 2 * self.count / max(self.count - 1, 1)
        # Of two different values each is alone.
        told = self.count >= FEWEST_ROWS and len({self.first, self.low, self.high, self.last}) > 2
        return far if told and self.squares - own < NEXT_TO_EQUAL * self.squares else None

    @property
    def counts_rows(self) -> bool:
        """Whether these are whole, all different, and run in one direction along the file, as a counter does."""
        return self.count >= FEWEST_ROWS and self.whole and self.count - 1 in {self.up, self.down}

    @property
    def may_differ(self) -> bool:
        """Whether these are whole, and all of them can be different."""
        return self.whole and self.count <= self.high - self.low + 1.0

    @property
    def counts_cases(self) -> bool:
        """Whether these are whole, some of them equal, and run in one direction along the file, as numbers of cases do."""
        return self.whole and 0 in {self.up, self.down} and 0 < self.up + self.down < self.count - 1

    @property
    def runs(self) -> bool:
        """Whether these never turn back and seldom stand still, as the time of orders does."""
        steps = self.up + self.down
        return self.count >= FEWEST_ROWS and steps in {self.up, self.down} and steps > (self.count - 1) // 2


def counts_rows(values: NDArray[np.float64]) -> bool:
    """Say whether numbers are whole, all different, and increase or decrease along the file, as a counter does."""
    return len(values) >= FEWEST_ROWS and NumberFacts.of(values).counts_rows


@dataclass(frozen=True, eq=False)
class RandomRows:
    """The rows with the smallest of random keys, ascending, each key once: a uniform sample, whatever it is put together from."""

    keys: NDArray[np.uint64]
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, table: Table, rows: NDArray[np.intp], before: int, most: int, seed: tuple[int, int]) -> RandomRows:
        """Return at most so many of some rows; keys depend on the seed and the numbers of rows in the input alone."""
        keys = random_keys(before + rows, (seed[0], SAMPLE_STREAM, seed[1]))
        chosen = np.argpartition(keys, most)[:most] if len(keys) > most else np.arange(len(keys))
        chosen = chosen[np.argsort(keys[chosen], kind="stable")]
        return cls(keys[chosen], tuple(column.take(rows[chosen]) for column in table.columns))

    def with_others(self, other: RandomRows, most: int) -> RandomRows:
        """Return at most so many of these and other rows."""
        keys, order = np.unique(np.concatenate([self.keys, other.keys]), return_index=True)
        columns = map(laid_below, self.columns, other.columns)
        return RandomRows(keys[:most], tuple(column.take(order[:most]) for column in columns))


@dataclass(frozen=True, eq=False)
class OtherKind:
    """A column that is not of the kind that was asked for, in some rows; `strange` are its levels that are not."""

    column: Column
    table: Table
    strange: list[int]
    kind: Kind

    @classmethod
    def of(cls, column: Column, table: Table, kind: Kind) -> OtherKind:
        """Return what is known of a column; DataError if it cannot be used."""
        if column.problem is not None:
            raise column.problem.error
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
            form = form_of("", self.kind)
            raise stray_problem(self.column, self.table, self.strange, n_fitting, total, form=form).error


@dataclass(eq=False)
class TableFacts:
    """What is known of some rows of a table; of numbers and levels from the rows without missing values.

    `strange` counts the values that are not of the kind that a column should have; `levels` are the different values of
    a column of categories, and `codes` of whole numbers, None where they are too many.
    """

    name: str
    kinds: Mapping[str, Kind]
    rows: int = 0
    used: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    first_missing: tuple[Table, int] | None = None
    numbers: dict[str, NumberFacts] = field(default_factory=dict)
    levels: dict[str, set[str] | None] = field(default_factory=dict)
    codes: dict[str, set[float] | None] = field(default_factory=dict)
    others: dict[str, OtherKind] = field(default_factory=dict)
    strange: Counter[str] = field(default_factory=Counter)
    sample: RandomRows | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        kinds: Mapping[str, Kind] | None = None,
        *,
        before: int = 0,
        sampled: int = 0,
        seed: tuple[int, int] = (0, 0),
        gaps: bool = False,
    ) -> TableFacts:
        """Return what some rows tell, so many rows of the input before them; DataError if a value cannot be used.

        With `gaps` all rows are used, and a column tells of the values that it has.
        """
        kinds = kinds or {column.name: column.kind for column in table.columns}
        found = cls(table.name, kinds, table.n_rows)
        complete = np.full(table.n_rows, fill_value=True) if gaps else complete_rows(table)
        found.missing.update({column.name: count for column in table.columns if (count := column.n_missing)})
        odd = [column for column in table.columns if column.kind != kinds[column.name]]
        found.others = {column.name: OtherKind.of(column, table, kinds[column.name]) for column in odd}
        found.strange.update({name: other.n_strange for name, other in found.others.items()})
        if found.others:
            return found
        check_usable(table)
        found.used = int(np.count_nonzero(complete))
        if found.missing:
            found.first_missing = table, int(np.argmin(complete))
        for column in table.columns if found.used else ():
            kept = column.take(complete & ~column.missing) if found.missing else column
            if column.is_category:
                levels = kept.used_levels
                found.levels[column.name] = levels if len(levels) <= MOST_LEVELS else None
            elif len(kept.values):
                found.numbers[column.name] = facts = NumberFacts.of(kept.values)
                found.codes[column.name] = _codes(kept.values, facts.low, facts.high) if facts.whole else None
        if sampled and found.used:
            found.sample = RandomRows.of(table, np.flatnonzero(complete), before, sampled, seed)
        return found

    def add(self, later: TableFacts, sampled: int) -> None:
        """Take in the rows after these, and keep so many in the sample."""
        self.rows += later.rows
        self.used += later.used
        self.missing.update(later.missing)
        self.strange.update(later.strange)
        self.first_missing = self.first_missing or later.first_missing
        self.others = later.others | self.others
        for name, facts in later.numbers.items():
            if name in self.numbers:
                self.numbers[name].add(facts)
            else:
                self.numbers[name] = replace(facts)
        for name, levels in later.levels.items():
            self.levels[name] = _together(self.levels.get(name, set()), levels, MOST_LEVELS)
        for name, codes in later.codes.items():
            self.codes[name] = _together(self.codes.get(name, set()), codes, MOST_CODES)
        if self.sample is not None and later.sample is not None:
            self.sample = self.sample.with_others(later.sample, sampled)
        self.sample = self.sample or later.sample


def _codes(values: NDArray[np.float64], low: float, high: float) -> set[float] | None:
    """Return the different ones of whole numbers between two of them, None where they are too many."""
    if len(set(values[:FIRST_LOOKED_AT].tolist())) > MOST_CODES:
        return None
    # To count is a tenth of the work of sorting.
    if high - low < MOST_LEVELS:
        found = {low + place for place in np.bincount((values - low).astype(np.intp)).nonzero()[0].tolist()}
    else:
        found = {*np.unique(values, return_counts=True)[0].tolist()}
    return found if len(found) <= MOST_CODES else None


def _together(known: set[Any] | None, later: set[Any] | None, most: int) -> set[Any] | None:
    both = None if known is None or later is None else known | later
    return None if both is None or len(both) > most else both


def complete_rows(table: Table) -> NDArray[np.bool_]:
    """Return which rows have every value."""
    complete = np.ones(table.n_rows, dtype=bool)
    for column in table.columns:
        complete &= ~column.missing
    return complete


# What there is to say of a single column


def type_of(column: Column) -> str:
    """Return the type that people would give the column: numbers with a stray value among them are numbers."""
    return column.kind if column.problem is None else column.problem.kind or "other"


def usable(table: Table) -> Table:
    """Return the table without the columns of a type that cannot be used."""
    return replace(table, columns=tuple(column for column in table.columns if type_of(column) != "other"))


def described(column: Column, na: Sequence[str]) -> dict[str, Any]:
    """Return the range, mean, median and deviation of a column's finite numbers; of text how many values are numbers."""
    found: dict[str, Any] = dict.fromkeys(("minimum", "mean", "median", "deviation", "maximum", "numbers"))
    values, kind = column.values, column.kind
    if column.is_category:
        found["numbers"] = share_of_numbers(column, na)
        reading = meant_as(column, na) if column.problem is not None and column.problem.kind is not None else None
        if reading is None:
            return found
        # One more place at the end: code -1 (missing) finds it.
        values, kind = np.array([*reading.values, None], dtype=np.float64)[column.values], reading.form.kind
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return found
    low, high = float(values.min()), float(values.max())
    if kind == "date":
        return found | {"minimum": date_text(low), "maximum": date_text(high)}
    # Not `np.quantile`, which loads numpy.ma: 10 ms.
    halves = [(len(values) - 1) // 2, len(values) // 2]
    # Sums of huge numbers may overflow elsewhere.
    _, (mean,), (spread,) = standardize(values[:, None])
    moments = {
        "mean": float(mean),
        "median": float((np.partition(values, halves)[halves] / 2).sum()),
        "deviation": float(spread) * (low < high),
    }
    return found | {"minimum": low, "maximum": high} | moments


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
    counts = column.level_counts
    first = np.argsort(-counts, kind="stable")[:LEVELS_SHOWN]
    return [(column.levels[index], int(counts[index])) for index in first if counts[index]]


def use_of(column: Column, table: Table) -> dict[str, Any]:
    """Return what a two-sample test would do with a column of the table, why, and the value that stops it with its line."""
    use, notes, where, present = "used", [], {}, column.take(~column.missing)
    try:
        check_usable(table.select([column.name]))
        if column.n_missing == table.n_rows:
            use, notes = "refused", ["has no values"]
        elif (reason := reason_to_leave_out(present)) is not None:
            more = ", unless the other file has others" if "one value" in reason else ""
            use, notes = "left out", [reason.removesuffix(" and is left out") + more]
        else:
            if column.n_missing:
                notes.append(f"{option('missing', 'drop')} leaves {counted(column.n_missing, 'row')} out")
            if column.kind == "date":
                notes.append("a date differs between any two batches")
            elif column.kind == "number" and counts_rows(present.values):
                notes.append(f"counts the rows or identifies them: consider {option('exclude', [column.name])}")
    except DataError as error:
        use, notes, where = "refused", [error.message], error.where
    # The names of the table and the column stand beside it.
    note = "; ".join(notes).removeprefix(f"{table.name}, ").removeprefix(f"{table.name}: ")
    note = note.replace(f"column {column.name!r} ", "", 1)
    return {"use": use, "note": note or None, "line": where.get("line"), "value": where.get("value")}


# Columns of which standardising leaves little


def lone_values(*tables: Table) -> Iterator[str]:
    """Yield a warning for each column of tables, one below the other, with one value beside which all others look alike."""
    numbers = [
        columns for columns in zip(*(table.columns for table in tables), strict=True) if not columns[0].is_category
    ]
    for columns in numbers:
        values = _below_each_other(columns)
        present = values[~np.isnan(values)]
        if len(present) < FEWEST_ROWS or (low := float(present.min())) == (high := float(present.max())):
            continue
        # In parts of the range, which may be larger than any number.
        parts = present / 2.0 / (high / 2.0 - low / 2.0)
        far = high if 2.0 * parts.mean() < parts.min() + parts.max() else low
        others = present != far
        if np.count_nonzero(others) < len(present) - 1 or present[others].min() == present[others].max():
            continue
        if np.var(parts[others]) < NEXT_TO_EQUAL * np.var(parts) and not _usual(
            far, present, (_below_each_other(one) for one in numbers if one is not columns)
        ):
            yield _told_of_lone_value(
                columns[0].name, columns[0].kind, far, _place(tables, int(np.argmax(values == far)))
            )


def _below_each_other(columns: Sequence[Column]) -> NDArray[np.float64]:
    return columns[0].values if len(columns) == 1 else np.concatenate([column.values for column in columns])


def _usual(far: float, values: NDArray[np.float64], others: Iterable[NDArray[np.float64]]) -> bool:
    """Say whether a lone value is one of a column that is nearly always the same, and is no further off than others go."""
    middle = float(np.partition(values, len(values) // 2)[len(values) // 2])
    if 2 * np.count_nonzero(values == middle) <= len(values):
        return False
    shares = [float(np.mean(one >= far if far > middle else one <= far)) for one in others]
    return sum(share >= ROWS_AS_FAR for share in shares) >= max(FEWEST_AS_FAR, SHARE_AS_FAR * len(shares))


def lone_values_among(facts: TableFacts) -> Iterator[str]:
    """Yield the same from facts about a table, and its random rows."""
    rows = {} if facts.sample is None else {one.name: one.values for one in facts.sample.columns}
    for name, found in facts.numbers.items():
        if (value := found.lone_value) is not None:
            own = rows[name][~np.isnan(rows[name])]
            if not _usual(value, own, (rows[other] for other in facts.numbers if other != name)):
                yield _told_of_lone_value(name, facts.kinds[name], value, "one row")


def _place(tables: Sequence[Table], row: int) -> str:
    """Return where a row of tables, one below the other, stands."""
    for table in tables:
        if row < table.n_rows:
            break
        row -= table.n_rows
    place = table.place(row)
    return place if " of " in place else f"{place} of {table.files[0] if table.files else table.name}"


def _told_of_lone_value(name: str, kind: Kind, value: float, place: str) -> str:
    from kerntest.data.condition import as_name  # noqa: PLC0415 - seldom needed

    shown = date_text(value) if kind == "date" else number_text(value)
    left_out = f"{as_name(name)} != {repr(shown) if kind == 'date' else shown}"
    return (
        f"column {name!r} is {shown} in {place}, so far from all other values that these look alike once standardised: "
        f"correct it, or {option('where', left_out)} leaves it out"
    )


# Shares of a variance


def explained_share(levels: NDArray[np.intp], values: NDArray[np.float64]) -> float:
    """Return the share of the variance that lies between levels."""
    centred = scaled(values)
    counts = np.bincount(levels)
    sums = np.bincount(levels, weights=centred)
    present = counts > 0
    return float(np.sum(sums[present] ** 2 / counts[present]) / np.sum(centred**2))


def scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers of mean 0, of which squares neither overflow nor vanish."""
    largest = float(np.abs(values).max()) or 1.0
    centred = values / largest
    centred = centred - centred.mean()
    return np.asarray(centred / (float(np.abs(centred).max()) or 1.0))
