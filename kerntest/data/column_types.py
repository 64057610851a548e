"""What kind of column it is: numbers, dates or categories, whatever it is written as."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kerntest.data.table import MISSING, Column, ColumnProblem, Remark, Table, comment_hint
from kerntest.data.written_values import (
    FORMS,
    PLAIN,
    Dressed,
    Form,
    form_of,
    forms_with,
    has_comma,
    is_number,
    may_be_read,
    undressed,
)
from kerntest.errors import option_value, shown_value, taken_as_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Kind

_MICROSECONDS_PER_DAY = 86_400_000_000
# Around a value of CSV they are none of it.
BLANKS = " \t"


def text_column(name: str, codes: NDArray[np.int64], levels: Sequence[str | None]) -> Column:
    """Return a text column from codes (-1 = missing) into levels in any order, repeated, unused or None (missing)."""
    used = np.bincount(codes[codes >= 0], minlength=len(levels)) > 0
    kept = sorted({level for level, is_used in zip(levels, used, strict=True) if is_used and level is not None})
    position = {level: index for index, level in enumerate(kept)}
    # One more place at the end: index -1 finds it.
    renamed = [-1 if level is None else position.get(level, -1) for level in levels] + [-1]
    return Column(name, "text", np.array(renamed, dtype=np.int64)[codes], tuple(kept))


def without_blanks(column: Column, na: Sequence[str] = ()) -> Column:
    """Return a text column of CSV without blanks around its values; missing is what is empty then, or a word of `na`."""
    if column.kind != "text" or all(level and level == level.strip(BLANKS) for level in column.levels):
        return column
    # A word without blanks around it was quoted, or it would be missing already.
    bare = [(level, level.strip(BLANKS)) for level in column.levels]
    kept = [None if not word or (word != level and word in na) else word for level, word in bare]
    return replace(text_column(column.name, column.values, kept), problem=column.problem)


def as_text(column: Column) -> Column:
    """Return the column as text: numbers in their shortest form (1, 0.5), dates in ISO form.

    1 and 1.0 are the same number and become the same text, whatever type the file gave them. A text column keeps
    its values; what made it unusable as numbers is forgiven.
    """
    if column.is_category:
        curable = column.problem is None or column.problem.curable
        return replace(column, kind="text", problem=None if curable else column.problem)
    present = np.unique(column.values[~np.isnan(column.values)])
    codes = np.searchsorted(present, column.values)
    codes[column.missing] = -1
    shown = date_text if column.kind == "date" else number_text
    return text_column(column.name, codes.astype(np.int64), [shown(value) for value in present.tolist()])


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the number; whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def date_text(day: float) -> str:
    """Return days since 1970-01-01 as an ISO date, with the time of day where there is one."""
    moment = np.datetime64(round(day * _MICROSECONDS_PER_DAY), "us")
    return str(moment.astype("datetime64[D]")) if day.is_integer() else str(moment)


# At this share of numbers, values with a comma are taken for mistakes and not for numbers in another notation.
NEARLY_ALL = 0.9
# Where a word such as None makes more than this share of a text column missing, that is told.
MANY_MISSING = 0.05
# So few different strange values may stand for a missing one.
_FEW = 3
# Numbers with a unit are categories where there are so few of them, and each occurs so often on average.
_FEW_SIZES, _OFTEN = 20, 2
_MOST_UNITS = 5
# Milliseconds since 1970.
_DAY, _SINCE_1973, _UNTIL_2100 = 86_400_000, 10**11, 4_102_444_800_000


@dataclass(frozen=True, slots=True)
class TextMeaning:
    """What the values of a text column would be as numbers or dates, and the other forms that read as many of them."""

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


def meant_as(column: Column, na: Sequence[str] = (), decimal: str = "auto") -> TextMeaning | None:
    """Return what the values of a text column would be if more than half are numbers or dates; else None.

    A quoted word for a missing value is missing among numbers. Cost: a few looks at each different value, and for a
    column of real text at half of them.
    """
    counts = present_counts(column, na)
    total = int(counts.sum())
    found: dict[str, list[float | None]] = {form.name: [None] * len(column.levels) for form in FORMS}
    dressed: dict[int, Dressed] = {}
    n_strange = 0
    for index, (level, count) in enumerate(zip(column.levels, counts.tolist(), strict=True)):
        likely = count and may_be_read(level)
        strange = not (likely and has_comma(level))
        for form in FORMS if likely else ():
            if (value := form.read(level)) is not None:
                found[form.name][index] = value
                strange = False
        if strange and likely and (worn := undressed(level)) is not None:
            dressed[index] = worn
            strange = False
        n_strange += count * strange
        if 2 * n_strange >= total:
            return None
    others = _dressed_forms(column, dressed, counts, decimal)
    if 2 * (n_strange + (0 if others else int(counts[list(dressed)].sum()))) >= total:
        return None
    for form in others:
        found[form.name] = [
            None if not count else form.amount(dressed[k]) if k in dressed else form.read(column.levels[k])
            for k, count in enumerate(counts.tolist())
        ]
    forms = [*FORMS, *others]
    weights = {form: _n_values(found[form.name], counts) for form in forms}
    best = max(forms, key=weights.__getitem__) if any(weights.values()) else others[-1] if others else PLAIN
    rivals = (
        form
        for form in forms
        if weights[form] == weights[best] and found[form.name] != found[best.name] and form != best
    )
    return TextMeaning(best, found[best.name], weights[best], total, tuple(rivals))


def _n_values(values: Sequence[float | None], counts: NDArray[np.int64]) -> int:
    """Return how many rows hold a level that has a value."""
    return int(counts[[value is not None for value in values]].sum())


def _dressed_forms(
    column: Column, dressed: Mapping[int, Dressed], counts: NDArray[np.int64], decimal: str
) -> list[Form]:
    """Return the forms of numbers with the unit that most of them have; none where units make names or categories of them."""
    worn, weights = list(dressed.values()), Counter[str]()
    for index, one in dressed.items():
        weights[one.unit] += int(counts[index])
    few = len(column.levels) <= _FEW_SIZES and _OFTEN * len(column.levels) <= int(counts.sum())
    if not worn or (few and all(one.unit and not one.is_currency for one in worn)):
        return []
    if len(weights) > 1 and (
        all(one.is_code for one in worn) or len(weights) > _MOST_UNITS or 2 * len(weights) > len(worn)
    ):
        return []
    # 1.200 kg is what 1.200 is, but 1.200 EUR may well be 1200.
    unsure = any("," in one.number or one.is_currency for one in worn)
    return forms_with(max(weights, key=weights.__getitem__), "." if decimal == "auto" and not unsure else decimal)


def in_form(column: Column, name: str, na: Sequence[str] = ()) -> Column | None:
    """Return a text column whose values are all written in a form as what they are; None where some are not."""
    form = form_of(name)
    values = [np.nan if level in na else form.read_again(level) for level in column.levels]
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


def understood(column: Column, table: Table, decimal: str = "auto", *, quoted: bool = False) -> Column:
    """Return the text column as numbers or dates where all values are; with a problem where only more than half are.

    A column in which most values are written like 001 holds names (postcodes, item numbers) and raises no doubt; nor do
    plain numbers where `quoted` says that they were typed as text.
    """
    reading = meant_as(column, table.na, decimal)
    if reading is None or (quoted and reading.form == PLAIN):
        return column
    if reading.n_fitting == reading.total:
        if reading.others:
            return replace(column, problem=_ambiguous_problem(column, table, reading))
        return _as_read(column, reading.form, reading.values)
    counts = present_counts(column, table.na)
    strange = [index for index, value in enumerate(reading.values) if value is None and counts[index]]
    commas = [index for index in strange if has_comma(column.levels[index])]
    problem = stray_problem(column, table, strange, reading.n_fitting, reading.total, form=reading.form)
    if commas and reading.form == PLAIN and reading.n_fitting < NEARLY_ALL * reading.total - 1e-9:
        problem = value_problem(
            column,
            table,
            first_row(column, commas),
            "a number written with a comma, which is not read",
            hint=f"{_DECIMAL_HINT}; --categorical {option_value([column.name])} treats the column as text",
        )
    return replace(column, problem=problem)


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


def forms_in(column: Column, na: Sequence[str] = ()) -> list[Form]:
    """Return the forms in which values of a text column may be numbers or dates."""
    reading = meant_as(column, na)
    return [*FORMS, *([] if reading is None or reading.form in FORMS else [reading.form])]


def _form_of_both(columns: Sequence[Column], tables: Sequence[Table]) -> Form:
    """Return the form in which most values of two columns are written."""
    for column in columns:
        if column.kind != "text":
            return column.form
    pairs = list(zip(columns, tables, strict=True))
    forms = {form.name: form for column, table in pairs for form in forms_in(column, table.na)}
    weights = {
        name: sum(
            _n_values([form.read(level) for level in column.levels], present_counts(column, table.na))
            for column, table in pairs
        )
        for name, form in forms.items()
    }
    return forms[max(forms, key=weights.__getitem__)]


def first_row(column: Column, levels: Collection[int]) -> int:
    """Return the first row that holds one of these levels."""
    return int(np.argmax(np.isin(column.values, list(levels))))


_DECIMAL_HINT = "--decimal ',' or --decimal '.' says what the comma is: decimal, or between thousands"


def value_problem(
    column: Column,
    table: Table,
    row: int,
    said: str,
    *,
    hint: str,
    value: str = "",
    kind: Kind = "number",
    code: str = "",
) -> ColumnProblem:
    """Return the problem of a column with a value that it should not hold, by default the text in that row."""
    value = value or column.levels[column.values[row]]
    return ColumnProblem(
        message=f"{table.name}, {table.place(row)}: column {column.name!r} holds {shown_value(value)}, {said}",
        hint=hint,
        code=code or ("data.not_a_number" if kind == "number" else "data.not_a_date"),
        where={**table.where(row), "column": column.name, "value": value},
        curable=True,
        kind=kind,
    )


def stray_problem(
    column: Column, table: Table, levels: list[int], n_numbers: int, total: int, *, form: Form = PLAIN, among: str = ""
) -> ColumnProblem:
    """Return the problem of a column of numbers or dates with other values among them."""
    word, comment = option_value([column.name]), comment_hint([column.name])
    return value_problem(
        column,
        table,
        first_row(column, levels),
        f"which is not a {form.noun} ({n_numbers:,} of {total:,} values{among} are)",
        hint=(f"{comment}; " if comment else missing_hint([column.levels[index] for index in levels], table))
        + f"correct it, or treat the column as text with --categorical {word}, or leave it out with --exclude {word}",
        kind=form.kind,
    )


def missing_hint(values: Sequence[str], table: Table) -> str:
    """Return the beginning of a hint for strange values that may stand for a missing one; else nothing."""
    words = list(dict.fromkeys(values))
    # Errors of spreadsheets begin so, too: #REF!
    if table.format == "csv" and any(comment_hint([word]) and not word[1:2].isupper() for word in words):
        return f"{comment_hint(['#'])}; "
    odd = any(character.isdigit() or character in ',"' for word in words for character in word)
    if table.format != "csv" or len(words) > _FEW or odd:
        return ""
    kept = table.na if table.has_missing or table.na != MISSING else ()
    return f"--na {option_value([*kept, *words], None)} reads {'it' if len(words) == 1 else 'them'} as missing; "


def _ambiguous_problem(column: Column, table: Table, reading: TextMeaning) -> ColumnProblem:
    """Return the problem of a column of which all values can be read in two ways."""
    forms = (reading.form, reading.others[0])
    differing = [k for k, level in enumerate(column.levels) if forms[1].read(level) != reading.values[k]]
    row, word = first_row(column, differing), option_value([column.name])
    readings = [_shown(form, column.levels[column.values[row]]) for form in forms]
    if reading.form.kind == "number":
        ways, hint, code = " or ".join(readings), _DECIMAL_HINT, ""
    else:
        ways = " and ".join(f"{shown} as a {form.noun}" for shown, form in zip(readings, forms, strict=True))
        hint, code = f"write the dates as {readings[0]}", "data.ambiguous_dates"
    hint += f", or treat the column as text with --categorical {word}, or leave it out with --exclude {word}"
    said = f"which is {ways}, and no value tells which"
    return value_problem(column, table, row, said, hint=hint, kind=reading.form.kind, code=code)


def _shown(form: Form, text: str) -> str:
    """Return what a value in a form is, for a message."""
    value = form.read(text)
    if value is None:
        return text
    return date_text(value) if form.kind == "date" else f"{value:.6g}" if form.unit == "hours" else number_text(value)


def _date_like(values: NDArray[np.float64]) -> str | None:
    """Return the first of numbers that are all dates of 1800 to 2100 such as 19580329; None where some is not."""
    present = values[~np.isnan(values)]
    if not len(present) or present.min() < 18000101 or present.max() > 21001231 or np.any(present % 1):
        return None
    different = np.unique(present).astype(np.int64)
    months, days = different // 100 - 197000, different % 100
    first = (months // 100 * 12 + months % 100 - 1).astype("datetime64[M]")
    lengths = ((first + 1).astype("datetime64[D]") - first.astype("datetime64[D]")).astype(np.int64)
    valid = (months % 100 >= 1) & (months % 100 <= 12) & (days >= 1) & (days <= lengths)
    return str(int(present[0])) if len(different) > 1 and valid.all() else None


def _milliseconds_like(values: NDArray[np.float64]) -> float | None:
    """Return the first of numbers that are all dates up to 2100 in milliseconds since 1970, as pandas writes them in JSON.

    They are whole days, or whole seconds since 1973.
    """
    present = values[~np.isnan(values)]
    if not len(present) or present.min() == present.max() or not _SINCE_1973 <= present.max() <= _UNTIL_2100:
        return None
    low = float(present.min())
    unit = 1000 if low >= _SINCE_1973 else _DAY
    return None if low < -_UNTIL_2100 or np.any(present % unit) else float(present[0])


def with_remark(text: Column, column: Column, table: Table) -> Column:
    """Return a column with what is told of how it was read from text, or why it was not; as it is where all is plain."""
    remark, used = None, "and is used as numbers"
    if column.written:
        form = column.form
        examples = [level for level in text.levels if form.read(level) is not None and not is_number(level)]
        example = next((level for level in examples if not form.mark or form.read(level)), examples[0])
        kept = "; --categorical {} keeps them as text" if form.is_dressed else ""
        remark = Remark(form.said, f"{example.strip()} is {_shown(form, example)}", kept)
    elif text.kind == "number" and (day := _date_like(column.values)) is not None:
        remark = Remark(
            f"column {column.name!r} looks like dates written as numbers, {used}, in which the days of two "
            f"months are far apart; {day} is a date if written {day[:4]}-{day[4:6]}-{day[6:]}"
        )
    elif text.kind == "number" and (moment := _milliseconds_like(column.values)) is not None:
        remark = Remark(
            f"column {column.name!r} looks like dates in milliseconds, {used}; {moment:.0f} is a date if "
            f"written {date_text(moment / _DAY)}"
        )
    elif column.kind == "text" and column.problem is None and (size := _size(column, table.na)):
        remark = Remark(
            f"{size} and its like in column {column.name!r} are taken for categories, since there are only few; without "
            "the unit they are numbers"
        )
    return column if remark is None else replace(column, remarks=(*column.remarks, remark))


def _size(column: Column, na: Sequence[str]) -> str | None:
    """Return a value of a text column whose few values are all numbers with one unit, such as 10 mm."""
    levels = [level for level in column.levels if level not in na]
    if not levels or len(levels) > _FEW_SIZES:
        return None
    units = {None if (worn := undressed(level)) is None else worn.unit for level in levels}
    return levels[0] if len(units) == 1 and units.isdisjoint({None, ""}) else None


def with_words(table: Table, as_typed: Callable[[Sequence[str]], Sequence[Column]]) -> Table:
    """Return the table with a warning for each text column of which a word makes more than 5 % missing."""

    def told(column: Column) -> Column:
        if column.kind != "text" or column.problem is not None or column.n_missing <= MANY_MISSING * table.n_rows:
            return column
        (typed,) = as_typed([column.name])
        counts = np.bincount(typed.values[(typed.values >= 0) & column.missing], minlength=len(typed.levels) or 1)
        most = int(np.argmax(counts))
        if counts[most] <= MANY_MISSING * table.n_rows:
            return column
        word = typed.levels[most]
        said = f"{shown_value(word)} in column {column.name!r} is taken as missing, in {counts[most]:,} of "
        remark = Remark(f"{said}{table.n_rows:,} rows; if it is a value, {taken_as_value(word, table.na)}")
        return replace(column, emptied_by=word, remarks=(*column.remarks, remark))

    return replace(table, columns=tuple(map(told, table.columns)))
