"""What kind of column it is: numbers, dates or categories, whatever it is written as."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kerntest.data import written_values as forms
from kerntest.data.table import EXACT_INTEGERS, MISSING, Column, ColumnProblem, Remark, Table, comment_hint
from kerntest.errors import DataError, option, shown_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import DTypeLike, NDArray

    from kerntest.data.table import Kind

_MICROSECONDS_PER_DAY = 86_400_000_000
# Around a value of CSV they are none of it.
BLANKS = " \t"


def text_column(name: str, codes: NDArray[np.int64], levels: Sequence[str | None]) -> Column:
    """Return a text column from codes (-1 = missing) into levels in any order, repeated, unused or None (missing)."""
    used = np.bincount(codes[codes >= 0]).nonzero()[0].tolist()
    kept = sorted({level for code in used if (level := levels[code]) is not None})
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
        lasting = column.problem if column.problem is not None and column.problem.kind is None else None
        return replace(column, kind="text", problem=lasting)
    values = column.values if column.digits is None else column.digits
    present = np.unique(values[~column.missing])
    codes = np.searchsorted(present, values)
    codes[column.missing] = -1
    shown: Any = date_text if column.kind == "date" else number_text if column.digits is None else str
    found = text_column(column.name, codes.astype(np.int64), [shown(value) for value in present.tolist()])
    return replace(found, digits=column.digits)


def as_label(column: Column) -> Column:
    """Return a column that tells rows apart: text where it cannot be used as what most of its values are."""
    return column if column.problem is None else as_text(column)


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the number; whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def date_text(day: float) -> str:
    """Return days since 1970-01-01 as an ISO date, with the time of day where there is one."""
    moment = np.datetime64(round(day * _MICROSECONDS_PER_DAY), "us")
    return str(moment.astype("datetime64[D]")) if day.is_integer() else str(moment).removesuffix(".000000")


# At this share of numbers, values with a comma are taken for mistakes and not for numbers in another notation.
NEARLY_ALL = 0.9
# Stands for a value that nobody knows in many files.
UNKNOWN = "?"
# So few different strange values may stand for a missing one.
_FEW = 3
# Milliseconds since 1970.
_DAY, _SINCE_1973, _UNTIL_2100 = 86_400_000, 10**11, 4_102_444_800_000


def in_form(column: Column, form: forms.Form, na: Sequence[str] = ()) -> Column | None:
    """Return a text column whose values are all written in a form as what they are; None where some are not."""
    values = [np.nan if level in na else form.read_again(level) for level in column.levels]
    return None if None in values else _as_read(column, form, values)


def as_written(table: Table, written: Mapping[str, str]) -> Table:
    """Return the table in which columns of text are read in the forms that another table has told, where they can be."""
    columns = (
        (in_form(column, forms.form_of(written[column.name]), table.na) or column)
        if column.kind == "text" and written.get(column.name)
        else column
        for column in table.columns
    )
    return replace(table, columns=tuple(columns))


def _as_read(column: Column, form: forms.Form, values: Sequence[float | None]) -> Column:
    """Return a text column as the numbers or dates that its levels are."""
    # One more place at the end: code -1 (missing) finds it. None becomes NaN.
    numbers = np.array([*values, None], dtype=np.float64)[column.values]
    return Column(column.name, form.kind, numbers, written=form.name)


def understood(
    column: Column, table: Table, decimal: str = "auto", *, dayfirst: bool | None = None, quoted: bool = False
) -> Column:
    """Return the text column as numbers or dates where all values are; with a problem where only more than half are.

    A column in which most values are written like 001 holds names (postcodes, item numbers) and raises no doubt; nor do
    whole numbers where `quoted` says that they were typed as text. Dates that no value tells have the day first or not.
    """
    reading = forms.meant_as(column, table.na, decimal)
    if reading is None:
        return column
    if quoted and reading.form == forms.PLAIN:
        # Fractions are no names.
        fractions = reading.n_fitting == reading.total and any(one is not None and one % 1 for one in reading.values)
        return _as_read(column, forms.STORED, reading.values) if fractions else column
    if reading.n_fitting == reading.total:
        if reading.others:
            wanted = forms.date_form(dayfirst)
            form = next((one for one in (reading.form, *reading.others) if one.name == wanted), None)
            found = None if form is None else in_form(column, form, table.na)
            return found or replace(column, problem=_ambiguous_problem(column, table, reading))
        return _as_read(column, reading.form, reading.values)
    counts = forms.present_counts(column, table.na)
    strange = [index for index, value in enumerate(reading.values) if value is None and counts[index]]
    other = {forms.YEAR_FIRST: forms.OFFSET, forms.OFFSET: forms.YEAR_FIRST}.get(reading.form)
    if other is not None and all(other.read(column.levels[index]) is not None for index in strange):
        held = f"{reading.n_fitting:,} of {reading.total:,} values have"
        return replace(column, problem=offset_problem(column, table, strange, held))
    commas = [index for index in strange if forms.has_comma(column.levels[index])]
    problem = stray_problem(column, table, strange, reading.n_fitting, reading.total, form=reading.form)
    if commas and reading.form == forms.PLAIN and reading.n_fitting < NEARLY_ALL * reading.total - 1e-9:
        said = "a number written with a comma, which is not read"
        hint = f"{decimal_hint()}; {option('categorical', [column.name])} treats the column as text"
        problem = value_problem(column, table, first_row(column, commas), said, hint=hint)
    return replace(column, problem=problem)


def settled(columns: tuple[Column, Column], tables: tuple[Table, Table]) -> tuple[Column, Column]:
    """Return one column of two tables, text in one of them or in both, as the values of both together say.

    If one is written in a form, so is the other where it can be. Else more than half of all values decide: numbers or
    dates with others among them are refused when used, fewer are text.
    """
    found = list(columns)
    for k, other in ((0, columns[1]), (1, columns[0])):
        if found[k].kind == "text" and other.written:
            found[k] = in_form(found[k], other.form, tables[k].na) or found[k]
    texts = [k for k, column in enumerate(found) if column.kind == "text"]
    problems = [column.problem for column in found if column.problem is not None]
    alike = len(texts) == 2 and not problems
    if alike or not texts or any(one.kind == "boolean" for one in found) or any(one.kind is None for one in problems):
        return found[0], found[1]
    counts = {k: forms.present_counts(found[k], tables[k].na) for k in texts}
    form = next((column.form for column in found if column.kind != "text"), None)
    if form is None:
        # That in which most values are written.
        known = {one.name: one for k in texts for one in forms.forms_in(found[k], tables[k].na)}
        fitting = {
            one: sum(int(counts[k][[one.read(level) is not None for level in found[k].levels]].sum()) for k in texts)
            for one in known.values()
        }
        form = max(fitting, key=fitting.__getitem__)
    strange = {k: forms.strange_levels(found[k], tables[k].na, (form,)) for k in texts}
    n_strange = sum(int(counts[k][strange[k]].sum()) for k in texts)
    total = sum(len(column.values) - column.n_missing for column in found)
    if 2 * n_strange >= total:
        return replace(found[0], problem=None), replace(found[1], problem=None)
    for k in texts:
        if strange[k] and found[k].problem is None:
            n_numbers = total - n_strange
            problem = stray_problem(
                found[k], tables[k], strange[k], n_numbers, total, form=form, among=" of both tables"
            )
            found[k] = replace(found[k], problem=problem)
    return found[0], found[1]


def first_row(column: Column, levels: Collection[int]) -> int:
    """Return the first row that holds one of these levels."""
    return int(np.argmax(np.isin(column.values, list(levels))))


def decimal_hint() -> str:
    """Return the hint for numbers with a comma."""
    return f"{option('decimal', ',')} or {option('decimal', '.')} says what the comma is: decimal, or between thousands"


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
    error = DataError(
        f"{table.name}, {table.place(row)}: column {column.name!r} holds {shown_value(value)}, {said}",
        hint=hint,
        code=code or f"data.not_a_{kind}",
        where={**table.where(row), "column": column.name, "value": value},
    )
    return ColumnProblem(error, kind)


def stray_problem(
    column: Column, table: Table, levels: list[int], n_numbers: int, total: int, *, form: forms.Form, among: str = ""
) -> ColumnProblem:
    """Return the problem of a column of numbers or dates with other values among them."""
    comment = comment_hint([column.name])
    hint = f"{comment}; " if comment else missing_hint([column.levels[index] for index in levels], table)
    if not comment and total - n_numbers == 1 and first_row(column, levels) == 0 and table.format == "csv":
        hint = "if that line belongs to the header, as one of units does, take it out; "
    row = first_row(column, levels)
    zero = form.kind == "number" and forms.has_leading_zero(column.levels[column.values[row]]) is not None
    said = f"which is not a {form.noun} ({n_numbers:,} of {total:,} values{among} are)"
    said += ": it has a leading zero" * zero
    # Codes such as 007 are no mistakes.
    hint += _or_text(column).removeprefix("or ") if zero else f"correct it, {_or_text(column)}"
    return value_problem(column, table, row, said, hint=hint, kind=form.kind)


def _or_text(column: Column) -> str:
    """Return the end of a hint about values that are not numbers or dates."""
    ways = [option(name, [column.name]) for name in ("categorical", "exclude")]
    if identifies_rows(len(column.levels), len(column.values)):
        return f"or leave the column out with {ways[1]}"
    return f"or treat the column as text with {ways[0]}, or leave it out with {ways[1]}"


# A text column with more different values than this share of the rows identifies rows; of fewer rows all must differ.
IDENTIFIES_ROWS = 0.9
FEWEST_ROWS_TO_TELL, FEWEST_DIFFERENT_ROWS = 20, 10


def identifies_rows(n_levels: int, n_rows: int) -> bool:
    """Say whether a text column with so many different values names rows, and not categories."""
    if n_rows < FEWEST_ROWS_TO_TELL:
        return n_rows >= FEWEST_DIFFERENT_ROWS and n_levels == n_rows
    return n_levels > IDENTIFIES_ROWS * n_rows


def missing_hint(values: Sequence[str], table: Table) -> str:
    """Return the beginning of a hint for strange values that may stand for a missing one; else nothing."""
    words = list(dict.fromkeys(values))
    # Errors of spreadsheets begin so, too: #REF!
    if table.format == "csv" and any(comment_hint([word]) and not word[1:2].isupper() for word in words):
        return f"{comment_hint(['#'])}; "
    odd = any(character.isdigit() or character in ',"' for word in words for character in word)
    if table.format not in {"csv", "frame"} or len(words) > _FEW or odd:
        return ""
    if table.format == "frame":
        return f"None in {'its' if len(words) == 1 else 'their'} place is missing; "
    kept = table.na if table.has_missing or table.na != MISSING else ()
    return f"{option('na', [*kept, *words], most=None)} reads {'it' if len(words) == 1 else 'them'} as missing; "


def offset_problem(column: Column, table: Table, levels: Collection[int], held: str) -> ColumnProblem:
    """Return the problem of times of which some have a UTC offset; `levels` differ in that from what others `held`."""
    row = first_row(column, levels)
    has = forms.OFFSET.read(column.levels[column.values[row]]) is not None
    said = f"which has {'a' if has else 'no'} UTC offset, and {held} {'none' if has else 'one'}"
    hint = f"give all times an offset or none, {_or_text(column)}"
    return value_problem(column, table, row, said, hint=hint, kind="date", code="data.mixed_offsets")


def _ambiguous_problem(column: Column, table: Table, reading: forms.TextMeaning) -> ColumnProblem:
    """Return the problem of a column of which all values can be read in two ways."""
    ways_to_read = (reading.form, reading.others[0])
    differing = [k for k, level in enumerate(column.levels) if ways_to_read[1].read(level) != reading.values[k]]
    row = first_row(column, differing)
    readings = [_shown(form, column.levels[column.values[row]]) for form in ways_to_read]
    if reading.form.kind == "number":
        ways, hint, code = " or ".join(readings), decimal_hint(), ""
    else:
        ways = " and ".join(f"{shown} as a {form.noun}" for shown, form in zip(readings, ways_to_read, strict=True))
        first = [option("dayfirst", either) for either in (True, False)]
        hint, code = f"{first[0]} reads the day first, {first[1]} the month", "data.ambiguous_dates"
    said = f"which is {ways}, and no value tells which"
    return value_problem(
        column, table, row, said, hint=f"{hint}, {_or_text(column)}", kind=reading.form.kind, code=code
    )


def _shown(form: forms.Form, text: str) -> str:
    """Return what a value in a form is, for a message."""
    value = form.read(text)
    if value is None:
        return text
    return date_text(value) if form.kind == "date" else f"{value:.6g}" if form.unit == "hours" else number_text(value)


def _dates_like(values: NDArray[np.float64]) -> str:
    """Return what is told of numbers that may well be dates; nothing of others.

    Either all are dates of 1800 to 2100 such as 19580329; or up to 2100 in milliseconds since 1970, as pandas writes them
    in JSON, and whole days, or whole seconds since 1973.
    """
    present = values[~np.isnan(values)]
    if not len(present) or (low := float(present.min())) == (high := float(present.max())):
        return ""
    if low >= 18000101 and high <= 21001231 and not np.any(present % 1):
        days = present.astype(np.int64)
        months, days = days // 100 - 197000, days % 100
        first = (months // 100 * 12 + months % 100 - 1).astype("datetime64[M]")
        lengths = (first + np.timedelta64(1, "M")).astype("datetime64[D]") - first.astype("datetime64[D]")
        if np.all((months % 100 >= 1) & (months % 100 <= 12) & (days >= 1) & (days <= lengths.astype(np.int64))):
            way = "written as numbers, and is used as numbers, in which the days of two months are far apart"
            return f"{way}; {present[0]:.0f} is a date if written {first[0]}-{days[0]:02}"
    unit = 1000 if low >= _SINCE_1973 else _DAY
    if _SINCE_1973 <= high <= _UNTIL_2100 and low >= -_UNTIL_2100 and not np.any(present % unit):
        day = date_text(float(present[0]) / _DAY)
        return f"in milliseconds, and is used as numbers; {present[0]:.0f} is a date if written {day}"
    return ""


# Numbers that stand for a missing one.
STAND_INS = (-99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0)


def _stands_in(values: NDArray[np.float64]) -> float | None:
    """Return such a number if several values are, and it is farther from all others than these are from one another."""
    present = values[np.isfinite(values)]
    if len(present) < FEWEST_ROWS_TO_TELL:
        return None
    low, high = float(present.min()), float(present.max())
    for number in {low, high}.intersection(STAND_INS):
        others = present[present != number]
        if 2 <= len(present) - len(others) < len(others):
            nearest, spread = float(np.abs(others - number).min()), float(np.ptp(others))
            if nearest > spread:
                return number
    return None


def _may_be_missing(column: Column, table: Table, word: str, count: int, why: str) -> Remark:
    """Return what is told of a value in so many rows that may stand for a missing one."""
    kept = table.na if table.has_missing or table.na != MISSING else ()
    said = f"column {column.name!r} holds {word} in {count:,} of {table.n_rows:,} rows, {why}"
    return Remark(f"{said}: if it stands for a missing one, {option('na', [*kept, word], most=None)} reads it so")


def with_remark(text: Column, column: Column, table: Table) -> Column:
    """Return a column with what is told of how it was read from text, or why it was not; as it is where all is plain."""
    remark = None
    if text.kind == "text" and column.written and (form := column.form).said:
        examples = [level for level in text.levels if form.read(level) is not None and not forms.is_number(level)]
        examples = examples or [level for level in text.levels if (form.read(level) or 0.0) % 1]
        example = next((level for level in examples if not form.mark or form.read(level)), examples[0])
        remark = Remark(
            form.said, f"{example.strip()} is {_shown(form, example)}", dressed=bool(form.unit and form.reader is None)
        )
    elif text.kind == "number" and table.format == "csv" and (odd := _stands_in(column.values)):
        held = number_text(odd), int(np.count_nonzero(column.values == odd))
        remark = _may_be_missing(column, table, *held, "far from its other values")
    elif column.kind == "text" and table.format == "csv" and UNKNOWN in column.levels and column.problem is None:
        held = UNKNOWN, int(np.count_nonzero(column.values == column.levels.index(UNKNOWN)))
        remark = _may_be_missing(column, table, *held, "a category like the others")
    elif text.kind == "number" and (way := _dates_like(column.values)):
        remark = Remark(f"column {column.name!r} looks like dates {way}")
    elif column.kind == "text" and column.problem is None and (size := _size(column, table.na)):
        said = f"{size} and its like in column {column.name!r} are taken for categories, since there are only few; "
        remark = Remark(f"{said}without the unit they are numbers")
    elif table.format != "csv" and len(column.levels) > forms.FEW_SIZES and all(map(forms.is_numeral, column.levels)):
        said = f"numbers in column {column.name!r} are stored as text, such as {column.levels[0].strip()}, and taken for names"
        remark = Remark(f"{said}; stored as numbers they are amounts")
    return column if remark is None else replace(column, remarks=(*column.remarks, remark))


def texts_understood(table: Table, texts: Collection[str], dayfirst: bool | None = None) -> Table:
    """Return a table of typed columns whose texts are read as what they are written as, but for some.

    Whole numbers stay texts: who has types has numbers.
    """

    def read(column: Column) -> Column:
        if column.problem is not None or column.name in texts:
            return column
        found = understood(column, table, dayfirst=dayfirst, quoted=True) if column.kind == "text" else column
        return told_apart(with_remark(column, found, table))

    return replace(table, columns=tuple(map(read, table.columns)))


def told_apart(column: Column, others: Sequence[Column] = ()) -> Column:
    """Return whole numbers as text if different ones, of the column and others, would be one as floating-point numbers."""
    both = (column, *others)
    if column.kind != "number" or any(one.digits is None for one in both):
        return column
    whole = np.unique(np.concatenate([np.asarray(one.digits)[~one.missing] for one in both]))
    numbers = whole.astype(np.float64)
    if not (equal := np.flatnonzero(numbers[1:] == numbers[:-1])).size:
        return column
    first, second = whole[equal[0] : equal[0] + 2]
    remark = Remark("whole numbers of many digits were read as categories", f"{first} and {second} would be one number")
    return replace(as_text(column), remarks=(*column.remarks, remark))


def _size(column: Column, na: Sequence[str]) -> str | None:
    """Return a value of a text column whose few values are all numbers with one unit, such as 10 mm."""
    levels = [level for level in column.levels if level not in na]
    # A lone value, such as 2. Middle Atlantic, is a label.
    if not 1 < len(levels) <= forms.FEW_SIZES:
        return None
    units = {None if (worn := forms.undressed(level)) is None else worn.unit for level in levels}
    return levels[0] if len(units) == 1 and units.isdisjoint({None, ""}) else None


# What Arrow holds.

BOOLEAN_LEVELS = ("false", "true")
_TICKS_PER_DAY = {"day": 1, "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6}


# Arrow's own `to_numpy` imports pandas, which takes 0.3 s.


def _fixed_width(chunk: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return the values of a fixed-width Arrow array as a view of `dtype`; what stands at missing ones is arbitrary."""
    buffer = chunk.buffers()[1]
    if buffer is None or len(chunk) == 0:
        return np.zeros(len(chunk), dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype)[chunk.offset : chunk.offset + len(chunk)]


def _bits(chunk: Any, place: int) -> NDArray[np.bool_]:
    """Return one of an Arrow array's buffers of one bit a value: 0, what is there, or 1, values of booleans."""
    buffer = chunk.buffers()[place]
    if buffer is None or len(chunk) == 0:
        return np.zeros(len(chunk), dtype=bool)
    octets = np.frombuffer(buffer, dtype=np.uint8)
    return np.unpackbits(octets, count=chunk.offset + len(chunk), bitorder="little")[chunk.offset :].astype(bool)


def _missing(chunk: Any) -> NDArray[np.bool_]:
    """Return the mask of the missing values of an Arrow array."""
    return ~_bits(chunk, 0) if chunk.null_count else np.zeros(len(chunk), dtype=bool)


def _joined(pieces: Iterable[NDArray[Any]], dtype: DTypeLike) -> NDArray[Any]:
    """Return the values of all chunks, of which there may be none, as one new array."""
    return np.concatenate([np.empty(0, dtype=dtype), *pieces], dtype=dtype, casting="unsafe")


def column_of(name: str, data: Any, table_name: str, *, as_category: bool = False) -> Column:
    """Return the typed column that an Arrow column holds; one that we cannot use keeps its problem."""
    from pyarrow import types  # noqa: PLC0415 - 70 ms that an array does not need

    kind = data.type
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if is_text or types.is_dictionary(kind) or (as_category and types.is_integer(kind)):
        encoded = data if types.is_dictionary(kind) else data.dictionary_encode()
        value = encoded.type.value_type
        column = None if types.is_nested(value) or types.is_binary(value) else _encoded(name, encoded)
    else:
        column = _plain(name, data)
    if column is None:
        return unusable(
            name, len(data), f"is of type {kind}, which is neither number, text, boolean nor date", table_name
        )
    return as_text(column) if as_category else column


def _plain(name: str, data: Any) -> Column | None:
    """Return a column of numbers, booleans or dates; None for any other type."""
    import pyarrow as pa  # noqa: PLC0415 - the same
    from pyarrow import types  # noqa: PLC0415 - the same

    kind = data.type
    if types.is_null(kind):
        return Column(name, "number", np.full(len(data), np.nan))
    if types.is_decimal(kind):
        try:
            kind = pa.float64() if kind.scale else pa.int64()
            data = data.cast(kind)
        except pa.ArrowInvalid:
            data, kind = data.cast(pa.float64()), pa.float64()
    if types.is_boolean(kind):
        codes = _joined((np.where(_missing(chunk), -1, _bits(chunk, 1)) for chunk in data.chunks), np.int64)
        return Column(name, "boolean", codes, BOOLEAN_LEVELS)
    is_date = types.is_date(kind) or types.is_timestamp(kind)
    # Times of day and durations are hours, as where they are written.
    hours = "time of day" if types.is_time(kind) else "duration" if types.is_duration(kind) else ""
    if not (is_date or hours or types.is_integer(kind) or types.is_floating(kind)):
        return None
    letter = "u" if types.is_unsigned_integer(kind) else "f" if types.is_floating(kind) else "i"
    dtype = f"{letter}{kind.bit_width // 8}"
    ticks, unit = [_fixed_width(chunk, dtype) for chunk in data.chunks], getattr(kind, "unit", "ms")
    large = types.is_integer(kind) and any(
        max(int(chunk.max(initial=0)), -int(chunk.min(initial=0))) >= EXACT_INTEGERS for chunk in ticks
    )
    digits = _joined(ticks, dtype) if large else None
    if unit == "ns" and (is_date or hours):
        # Nanoseconds since 1970 are no float64, but microseconds are: as a file with these has them.
        ticks, unit = [chunk // 1000 + chunk % 1000 / 1000 for chunk in ticks], "us"
    values = _joined(ticks, np.float64)
    if is_date or hours:
        values /= _TICKS_PER_DAY["day" if types.is_date32(kind) else unit] / (24 if hours else 1)
    values[_joined(map(_missing, data.chunks), bool)] = np.nan
    written = forms.OFFSET.name if is_date and getattr(kind, "tz", None) else hours
    return Column(name, "date" if is_date else "number", values, written=written, digits=digits)


def _encoded(name: str, data: Any) -> Column:
    """Return a text column from an Arrow dictionary of scalars."""
    codes: list[NDArray[np.int64]] = []
    levels: list[str | None] = []
    # Every chunk has a dictionary of its own, laid behind the others; equal levels meet in `text_column`.
    for chunk in data.chunks:
        positions = _fixed_width(chunk.indices, f"i{data.type.index_type.bit_width // 8}") + np.int64(len(levels))
        codes.append(np.where(_missing(chunk.indices), -1, positions))
        levels += [None if level is None else str(level) for level in chunk.dictionary.to_pylist()]
    return text_column(name, _joined(codes, np.int64), levels)


def unusable(name: str, n_rows: int, trouble: str, table_name: str) -> Column:
    """Return an empty column that raises, when used, that column `name` of the table `trouble`."""
    error = DataError(
        f"{table_name}: column {name!r} {trouble}",
        hint=f"{option('exclude', [name])} leaves it out",
        code="data.unusable_type",
        where={"file": table_name, "column": name},
    )
    return Column(name, "text", np.full(n_rows, -1, dtype=np.int64), problem=ColumnProblem(error))
