"""Text columns that were meant to be numbers or dates: read where all values are, refused when used where most are."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.categories import date_text, number_text
from kerntest.data.forms import FORM_OF, FORMS, PLAIN, Form, may_be_read
from kerntest.data.table import MISSING, Column, Problem, Table
from kerntest.data.wording import listed, option_value, shown_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

# At this share of numbers, values with a comma are taken for mistakes and not for numbers in another notation.
NEARLY_ALL = 0.9
_WITH_COMMA = re.compile(r"[ \t]*[+-]?\d+(?:,\d+)+(?:\.\d*)?[ \t]*", re.ASCII)
# Where a word such as None makes more than this share of a text column missing, that is told.
MANY_MISSING = 0.05
# So few different strange values may stand for a missing one.
_FEW = 3


def has_comma(text: str) -> bool:
    """Say whether a value is typed as a number with commas in it."""
    return _WITH_COMMA.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Reading:
    """What the values of a text column would be as numbers or dates.

    Parameters
    ----------
    form : Form
        In which most of them are written.
    values : list of float or None
        Of each level in that form.
    n_fitting : int
        Values written so.
    total : int
        Of all values, missing ones and the words for them aside.
    others : tuple of Form
        Further forms in which all values are written, and mean something else.
    """

    form: Form
    values: list[float | None]
    n_fitting: int
    total: int
    others: tuple[Form, ...] = ()


def present_counts(column: Column, na: Sequence[str]) -> NDArray[np.int64]:
    """Return how often each level of a text column occurs; words for a missing value do not count."""
    counts: NDArray[np.int64] = np.bincount(column.values[column.values >= 0], minlength=len(column.levels))
    counts[[level in na for level in column.levels]] = 0
    return counts


def meant_as(column: Column, na: Sequence[str] = ()) -> Reading | None:
    """Return what the values of a text column would be if more than half are numbers or dates; else None.

    A quoted word for a missing value is missing among numbers. Cost: a few looks at each different value, and for a
    column of real text at half of them.
    """
    counts = present_counts(column, na)
    total = int(counts.sum())
    if not total:
        return None
    found: dict[str, list[float | None]] = {form.name: [None] * len(column.levels) for form in FORMS}
    weights = dict.fromkeys(found, 0)
    n_strange = 0
    for index, (level, count) in enumerate(zip(column.levels, counts.tolist(), strict=True)):
        likely = count and may_be_read(level)
        strange = not (likely and has_comma(level))
        for form in FORMS if likely else ():
            if (value := form.read(level)) is not None:
                found[form.name][index] = value
                weights[form.name] += count
                strange = False
        n_strange += count * strange
        if 2 * n_strange >= total:
            return None
    best = max(FORMS, key=lambda form: weights[form.name])
    others = [
        form
        for form in FORMS
        if form != best and weights[form.name] == weights[best.name] and found[form.name] != found[best.name]
    ]
    return Reading(best, found[best.name], weights[best.name], total, tuple(others))


def in_form(column: Column, name: str, na: Sequence[str] = ()) -> Column | None:
    """Return a text column whose values are all written in a form as what they are; None where some are not."""
    form = FORM_OF[name]
    values = [np.nan if level in na else form.read(level) for level in column.levels]
    return None if None in values else _as_read(column, form, values)


def as_written(table: Table, written: Mapping[str, str]) -> Table:
    """Return the table in which columns of text are read in the forms that another table has told, where they can be."""
    columns = (
        (in_form(column, written[column.name], table.na) or column)
        if column.kind == "text" and written.get(column.name)
        else column
        for column in table.columns
    )
    return replace(table, columns=tuple(columns))


def _as_read(column: Column, form: Form, values: Sequence[float | None]) -> Column:
    """Return a text column as the numbers or dates that its levels are."""
    # One more place at the end: code -1 (missing) finds it. None becomes NaN.
    numbers = np.array([*values, None], dtype=np.float64)[column.values]
    return Column(column.name, form.kind, numbers, written=form.name)


def understood(column: Column, table: Table) -> Column:
    """Return the text column as numbers or dates where all values are; with a problem where only more than half are.

    A column in which most values are written like 001 holds names (postcodes, item numbers) and raises no doubt.
    """
    reading = meant_as(column, table.na)
    if reading is None:
        return column
    if reading.n_fitting == reading.total:
        if reading.others:
            return replace(column, problem=_ambiguous_problem(column, table, reading))
        return _as_read(column, reading.form, reading.values)
    counts = present_counts(column, table.na)
    strange = [index for index, value in enumerate(reading.values) if value is None and counts[index]]
    commas = [index for index in strange if has_comma(column.levels[index])]
    if commas and reading.form == PLAIN and reading.n_fitting < NEARLY_ALL * reading.total - 1e-9:
        return replace(column, problem=_comma_problem(column, table, commas))
    return replace(
        column, problem=stray_problem(column, table, strange, reading.n_fitting, reading.total, form=reading.form)
    )


def settled(columns: tuple[Column, Column], tables: tuple[Table, Table]) -> tuple[Column, Column]:
    """Return one column of two tables, text in one of them or in both, as the values of both together say.

    If one is written in a form, so is the other where it can be. Else more than half of all values decide: numbers or
    dates with others among them are refused when used, fewer are text.
    """
    found = list(columns)
    for k, other in ((0, columns[1]), (1, columns[0])):
        if found[k].kind == "text" and other.written:
            found[k] = in_form(found[k], other.written, tables[k].na) or found[k]
    texts = [k for k, column in enumerate(found) if column.kind == "text"]
    problems = [column.problem for column in found if column.problem is not None]
    if not texts or any(column.kind == "boolean" for column in found) or not all(one.curable for one in problems):
        return found[0], found[1]
    if len(texts) == 2 and not problems:
        return found[0], found[1]
    form = _form_of_both(found, tables)
    strange = {k: strange_levels(found[k], tables[k].na, (form,)) for k in texts}
    n_strange = sum(int(present_counts(found[k], tables[k].na)[strange[k]].sum()) for k in texts)
    total = sum(len(column.values) - column.n_missing for column in found)
    if 2 * n_strange >= total:
        return replace(found[0], problem=None), replace(found[1], problem=None)
    for k in texts:
        if strange[k] and found[k].problem is None:
            problem = stray_problem(
                found[k], tables[k], strange[k], total - n_strange, total, form=form, among=" of both tables"
            )
            found[k] = replace(found[k], problem=problem)
    return found[0], found[1]


def strange_levels(column: Column, na: Sequence[str], forms: Sequence[Form]) -> list[int]:
    """Return the levels of a text column that occur and are in none of the forms, nor numbers with commas."""
    counts = present_counts(column, na)
    return [
        index
        for index, level in enumerate(column.levels)
        if counts[index] and not has_comma(level) and all(form.read(level) is None for form in forms)
    ]


def _form_of_both(columns: Sequence[Column], tables: Sequence[Table]) -> Form:
    """Return the form in which most values of two columns are written."""
    weights = dict.fromkeys(FORM_OF, 0)
    for column, table in zip(columns, tables, strict=True):
        if column.kind != "text":
            return FORM_OF[column.written or ("date, year first" if column.kind == "date" else "")]
        counts = present_counts(column, table.na)
        for form in FORMS:
            weights[form.name] += sum(
                count
                for level, count in zip(column.levels, counts.tolist(), strict=True)
                if form.read(level) is not None
            )
    return max(FORMS, key=lambda form: weights[form.name])


def _first_row(column: Column, levels: list[int]) -> int:
    """Return the first row that holds one of these levels."""
    wanted: NDArray[np.bool_] = np.zeros(len(column.levels) + 1, dtype=bool)
    wanted[levels] = True
    return int(np.argmax(wanted[column.values]))


def stray_problem(
    column: Column,
    table: Table,
    levels: list[int],
    n_numbers: int,
    total: int,
    *,
    form: Form = PLAIN,
    among: str = "",
) -> Problem:
    """Return the problem of a column of numbers or dates with other values among them."""
    row = _first_row(column, levels)
    value = column.levels[column.values[row]]
    word = option_value([column.name])
    return Problem(
        message=f"{table.name}, {table.place(row)}: column {column.name!r} holds {shown_value(value)}, "
        f"which is not a {form.noun} ({n_numbers:,} of {total:,} values{among} are)",
        hint=missing_hint([column.levels[index] for index in levels], table.na)
        + f"correct it, or treat the column as text with --categorical {word}, or leave it out with --exclude {word}",
        code="data.not_a_number" if form.kind == "number" else "data.not_a_date",
        where={**table.where(row), "column": column.name, "value": value},
        curable=True,
        kind=form.kind,
    )


def missing_hint(values: Sequence[str], na: Sequence[str]) -> str:
    """Return the beginning of a hint for strange values that may stand for a missing one; else nothing."""
    words = sorted(set(values), key=list(values).index)
    if len(words) > _FEW or any(character.isdigit() or character in ',"' for word in words for character in word):
        return ""
    kept = [] if tuple(na) == MISSING else list(na)
    return f"--na {option_value([*kept, *words])} reads {'it' if len(words) == 1 else 'them'} as missing; "


def _ambiguous_problem(column: Column, table: Table, reading: Reading) -> Problem:
    """Return the problem of a column of which all values can be read in two ways."""
    other = next(form for form in reading.others)
    differing = [k for k, level in enumerate(column.levels) if other.read(level) != reading.values[k]]
    row = _first_row(column, differing)
    value = column.levels[column.values[row]]
    word = option_value([column.name])
    ways = " and ".join(f"{_shown(form, value)} as a {form.noun}" for form in (reading.form, other))
    return Problem(
        message=f"{table.name}, {table.place(row)}: column {column.name!r} holds {shown_value(value)}, which is {ways}, "
        "and no value tells which",
        hint=f"write the dates as {_shown(reading.form, value)}, or treat the column as text with --categorical {word}, "
        f"or leave it out with --exclude {word}",
        code="data.ambiguous_dates",
        where={**table.where(row), "column": column.name, "value": value},
        curable=True,
        kind="date",
    )


def _shown(form: Form, text: str) -> str:
    """Return what a value in a form is, for a message."""
    value = form.read(text)
    if value is None:
        return text
    return date_text(value) if form.kind == "date" else number_text(float(f"{value:.15g}"))


def told(read: Sequence[tuple[Column, Column]], table_name: str) -> tuple[str, ...]:
    """Return a line for each form in which columns were read: of which text what was made."""
    by_form: dict[str, list[tuple[Column, Column]]] = {}
    for text, column in read:
        if column.written:
            by_form.setdefault(FORM_OF[column.written].said, []).append((text, column))
    lines = []
    for said, columns in by_form.items():
        text, column = columns[0]
        form = FORM_OF[column.written]
        example = next(level for level in text.levels if form.read(level) is not None)
        names = listed([column.name for _, column in columns])
        lines.append(f"{table_name}: {said} in {names} ({example.strip()} is {_shown(form, example)})")
    return tuple(lines)


def with_words(table: Table, as_typed: Callable[[Sequence[str]], Sequence[Column]]) -> Table:
    """Return the table with a warning for each text column of which a word makes more than 5 % missing.

    Parameters
    ----------
    table : Table
    as_typed : callable
        Gives columns as text in which only empty fields are missing, by name.
    """
    columns, warnings = [], []
    for column in table.columns:
        word = ""
        if column.kind == "text" and column.problem is None and column.n_missing > MANY_MISSING * table.n_rows:
            (typed,) = as_typed([column.name])
            counts = np.bincount(typed.values[(typed.values >= 0) & column.missing], minlength=len(typed.levels) or 1)
            most = int(np.argmax(counts))
            if counts[most] > MANY_MISSING * table.n_rows:
                word = typed.levels[most]
                warnings.append(
                    f"{table.name}: {shown_value(word)} in column {column.name!r} is taken as missing, in "
                    f"{counts[most]:,} of {table.n_rows:,} rows; if it is a value, --na '' takes it as such (--na names "
                    "the words that are missing)"
                )
        columns.append(replace(column, emptied_by=word))
    return replace(table, columns=tuple(columns), warnings=(*table.warnings, *warnings))


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
