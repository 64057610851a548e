"""What is found of each column, and what in the data would make a test mislead."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from kerntest.data.copies import copies_warning, row_keys
from kerntest.data.kinds import date_text, forms_in, meant_as, present_counts
from kerntest.data.messages import counted, one_line, option_value
from kerntest.data.rows import check_usable, reason_to_leave_out
from kerntest.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.rows import Pooled
    from kerntest.data.table import Column, Table

Use = Literal["used", "left out", "refused"]
LEVELS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ColumnUse:
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
    """What there is to say of the finite numbers of a column."""

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


def verdict_on(column: Column, table: Table) -> ColumnUse:
    """Return what a two-sample test would do with a column of the table."""
    try:
        check_usable(table.select([column.name]))
    except DataError as error:
        line, value = error.where.get("line"), error.where.get("value")
        return ColumnUse(
            "refused",
            _without_names(error.message, column, table),
            line if isinstance(line, int) else None,
            None if value is None else str(value),
        )
    n_missing = column.n_missing
    if n_missing == table.n_rows:
        return ColumnUse("refused", "has no values")
    reason = reason_to_leave_out(column.take(~column.missing))
    if reason is not None:
        note = _without_names(reason, column, table).removesuffix(" and is left out")
        return ColumnUse("left out", f"{note}, unless the other file has others" if "one value" in note else note)
    notes = []
    if n_missing:
        notes.append(f"--missing drop leaves {counted(n_missing, 'row')} out, otherwise a test stops")
    if column.kind == "date":
        notes.append("a date differs between any two batches")
    elif column.kind == "number" and counts_rows(column.values[~column.missing]):
        notes.append(f"counts the rows or identifies them: consider --exclude {option_value([column.name])}")
    return ColumnUse("used", "; ".join(notes) or None)


def _without_names(message: str, column: Column, table: Table) -> str:
    """Return a message without the names of the table and the column, which stand beside it."""
    for prefix in (f"{table.name}, ", f"{table.name}: "):
        message = message.removeprefix(prefix)
    return message.replace(f"column {column.name!r} ", "", 1)


LARGEST_RATIO = 20
LARGEST_SHARE = 0.1
SIGNIFICANT = 0.01
FEWEST_ROWS = 20
_FAR_MORE = 5
_COUNTS = "counts the rows or identifies them: its whole numbers are all different and run in one direction"


def misleading(matched: tuple[Table, Table], used: tuple[Table, Table], pooled: Pooled) -> tuple[str, ...]:
    """Return what a reader must know before believing a two-sample test of these tables."""
    return (
        *_left_out_unevenly(matched, used),
        *unequal_sizes([table.name for table in used], [table.n_rows for table in used]),
        *_of_columns(used, pooled),
        *repeated_rows([table.name for table in used], pooled.numeric, pooled.codes, pooled.n_x),
    )


def _of_columns(used: tuple[Table, Table], pooled: Pooled) -> list[str]:
    """Return the warnings about columns that differ between any two batches, in the order of the columns."""
    warnings = []
    for in_x, in_y in zip(used[0].columns, used[1].columns, strict=True):
        if in_x.name not in pooled.numeric_names:
            continue
        trouble = _time_trouble(in_x, in_y, used)
        if trouble is not None:
            warnings.append(f"column {in_x.name!r} {trouble}; leave it out with --exclude {option_value([in_x.name])}")
    return warnings


def _time_trouble(in_x: Column, in_y: Column, used: tuple[Table, Table]) -> str | None:
    """Return why a column of numbers or dates differs between any two batches; None if it need not."""
    ranges = [(float(column.values.min()), float(column.values.max())) for column in (in_x, in_y)]
    apart = apart_text(ranges, [table.name for table in used])
    columns = (in_x.values, in_y.values)
    return time_trouble(
        in_x.kind, apart, counts=lambda: all(map(counts_rows, columns)), runs=lambda: all(map(_runs_like_time, columns))
    )


def time_trouble(kind: str, apart: str | None, counts: Callable[[], bool], runs: Callable[[], bool]) -> str | None:
    """Return why a column differs between any two batches, from what is known of it; None if it need not."""
    if kind == "date":
        if apart is not None:
            return f"is a date, and {apart}: any two batches differ in it"
        return "is a date: time itself differs between any two batches, so that a difference in it says little"
    if counts():
        if apart is not None:
            return f"counts the rows, and {apart}: any two batches differ in it"
        return _COUNTS
    if apart is not None and runs():
        return f"runs in one direction like a time or a counter, and {apart}: any two batches differ in it"
    return None


def apart_text(ranges: Sequence[tuple[float, float]], names: Sequence[str]) -> str | None:
    """Return how the ranges of a column in two tables lie apart; None where they overlap."""
    (x_low, x_high), (y_low, y_high) = ranges
    x_name, y_name = map(one_line, names)
    if x_high < y_low:
        return f"all of it in {y_name} lies above all of it in {x_name}"
    if y_high < x_low:
        return f"all of it in {x_name} lies above all of it in {y_name}"
    return None


def counts_rows(values: NDArray[np.float64]) -> bool:
    """Say whether numbers are whole, all different, and increase or decrease along the file, as a counter does."""
    if len(values) < FEWEST_ROWS or not bool(np.all(values == np.floor(values))):
        return False
    steps = np.diff(values)
    return bool(np.all(steps > 0) or np.all(steps < 0))


def counters(columns: Iterable[Column]) -> list[str]:
    """Return the warnings about columns of one table that count its rows, missing values aside."""
    return [
        f"column {column.name!r} {_COUNTS}; leave it out with --exclude {option_value([column.name])}"
        for column in columns
        if column.kind == "number" and counts_rows(column.values[~column.missing])
    ]


def _runs_like_time(values: NDArray[np.float64]) -> bool:
    """Say whether numbers never turn back along the file and seldom stand still, as the time of orders does."""
    steps = np.diff(values)
    turns_back = bool(np.any(steps > 0) and np.any(steps < 0))
    return len(values) >= FEWEST_ROWS and not turns_back and int(np.count_nonzero(steps)) > len(steps) // 2


def unequal_sizes(names: Sequence[str], n_rows: Sequence[int]) -> list[str]:
    """Return the warning about a table that is much shorter than the other."""
    (few, small), (many, large) = sorted(zip(n_rows, names, strict=True), key=lambda table: table[0])
    if many <= LARGEST_RATIO * few:
        return []
    return [
        (
            f"{one_line(large)} has {many / few:.0f} times as many rows as {one_line(small)}: "
            f"what the test can see is set by the {few:,} rows of the smaller one; give it more rows"
        )
    ]


def repeated_rows(
    names: Sequence[str],
    numeric: NDArray[np.float64],
    codes: NDArray[np.int64],
    n_x: int,
    *,
    totals: Sequence[int] | None = None,
) -> list[str]:
    """Return the warnings about rows that occur more than once, where chance would hardly repeat one."""
    keys = row_keys([*numeric.T, *codes.T])
    each = keys[:n_x], keys[n_x:]
    drawn = [len(own) for own in each]
    totals = drawn if totals is None else totals
    sampled = sum(drawn) < sum(totals)
    warnings = []
    for name, rows, total in zip(names, (slice(n_x), slice(n_x, None)), totals, strict=True):
        warnings += copies_warning([*numeric[rows].T, *codes[rows].T], name=name, total=total)
    shares = [float(np.isin(own, other).mean()) for own, other in (each, each[::-1])]
    if max(shares) > LARGEST_SHARE and _share_more_than_chance(*each):
        first = 0 if shares[0] >= shares[1] else 1
        name, other = (one_line(names[place]) for place in (first, 1 - first))
        found = f"{_percent(shares[first])} of those of {name} are also in {other}"
        if sampled:
            found = (
                f"{_percent(shares[first])} of {len(each[first]):,} sampled rows of {name} are also among "
                f"{len(each[1 - first]):,} of {other}"
            )
        warnings.append(
            f"the files share rows: {found}; the samples are not independent, and the p-value is not valid; "
            "take the shared rows out of one of them"
        )
    return warnings


def _share_more_than_chance(in_x: NDArray[np.uint64], in_y: NDArray[np.uint64]) -> bool:
    """Say whether rows of one table equal rows of the other far more often than rows of the same table do.

    Rows that chance makes equal, because they hold few or coarsely rounded values, are so within the tables as well.
    """
    n_x, n_y = len(in_x), len(in_y)
    if min(n_x, n_y) < FEWEST_ROWS:
        return False
    _, position = np.unique(np.concatenate([in_x, in_y]), return_inverse=True)
    counts_x = np.bincount(position[:n_x], minlength=int(position.max()) + 1)
    counts_y = np.bincount(position[n_x:], minlength=len(counts_x))
    equal_within = sum(int((counts * (counts - 1)).sum()) // 2 for counts in (counts_x, counts_y))
    pairs_within = (n_x * (n_x - 1) + n_y * (n_y - 1)) // 2
    # One more, since none seen does not mean that there can be none.
    expected_between = (equal_within + 1) / pairs_within * n_x * n_y
    return int((counts_x * counts_y).sum()) > _FAR_MORE * expected_between


def _left_out_unevenly(matched: tuple[Table, Table], used: tuple[Table, Table]) -> list[str]:
    """Return the warning about missing values that cost one table more of its rows than the other."""
    missing = {
        in_x.name: in_x.n_missing + in_y.n_missing
        for in_x, in_y in zip(matched[0].columns, matched[1].columns, strict=True)
    }
    n_rows = [table.n_rows for table in matched]
    dropped = [whole.n_rows - kept.n_rows for whole, kept in zip(matched, used, strict=True)]
    return left_out_unevenly([table.name for table in matched], n_rows, dropped, missing)


def left_out_unevenly(
    names: Sequence[str], n_rows: Sequence[int], dropped: Sequence[int], missing: Mapping[str, int]
) -> list[str]:
    """Return the same from the rows of each table, those left out of it, and the missing values of each column."""
    p_value = proportions_p_value(dropped[0], n_rows[0], dropped[1], n_rows[1])
    if p_value >= SIGNIFICANT:
        return []
    shares = [_percent(count / rows) for count, rows in zip(dropped, n_rows, strict=True)]
    emptiest = max(missing, key=lambda name: missing[name])
    x_name, y_name = map(one_line, names)
    return [
        (
            f"missing values cost {x_name} {shares[0]} of its rows and {y_name} {shares[1]} (p = {p_value:.2g}): what is "
            f"left may differ for that reason alone; --exclude {option_value([emptiest])} keeps more rows"
        )
    ]


def proportions_p_value(hits_x: int, n_x: int, hits_y: int, n_y: int) -> float:
    """Return the two-sided p-value of the z-test that two proportions are equal, with the pooled variance."""
    pooled = (hits_x + hits_y) / (n_x + n_y)
    variance = pooled * (1 - pooled) * (1 / n_x + 1 / n_y)
    if variance == 0:
        return 1.0
    return math.erfc(abs(hits_x / n_x - hits_y / n_y) / math.sqrt(2 * variance))


def _percent(share: float) -> str:
    """Return a share in per cent: ``"12 %"``."""
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else "less than 1 %"
