"""The forms in which numbers and dates are written, and what a text in one of them is."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Literal

from kerntest.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from kerntest.data.table import Column

_NUMBER = re.compile(r"[ \t]*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[ \t]*", re.ASCII)
_MINUS = "\u2212\u2013-"
_SIGN = rf"[+{_MINUS}]"
# Before a number only a currency may stand: other letters make it a code.
_CURRENCY = (
    r"(?:[^\W\d_]{0,3}[$\xa2-\xa5\u20a0-\u20cf]|EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|ZAR)"
)
_UNIT = r"(?!(?:st|nd|rd|th)\b)(?:[^\W\d_]|[°$\xa2-\xa5\u20a0-\u20cf])(?:[^\W\d_]|[ ./²³°·%$\u20a0-\u20cf]|(?<=m)[23])*"
_BETWEEN_THOUSANDS = "['\u2019\xa0\u202f\u2009 ]"
_GROUPS = rf"[1-9]\d{{0,2}}(?:{_BETWEEN_THOUSANDS}\d{{3}})+(?:[.,]\d*)?"
_DRESSED = re.compile(
    rf"(?P<before>{_SIGN})?\s*(?P<currency>{_CURRENCY})?\s*(?P<after>{_SIGN})?\s*"
    rf"(?P<number>{_GROUPS}|\d[\d.,]*(?:[eE][+-]?\d+)?|[.,]\d+)(?P<blank>\s*)(?P<unit>{_UNIT})?",
)
_BRACKETS = re.compile(rf"({_CURRENCY}?)\s*\(([^()]*)\)(.*)")
# A text begins so if some form reads it: a quick way to tell most others.
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_may_be_read = re.compile(rf"\s*(?:(?i:{_MONTH})[a-z]*\.? |(?:{_SIGN}|{_CURRENCY}|[\s.(])*)\d").match
_STARTS_WITH_CURRENCY = re.compile(_CURRENCY)
_BETWEEN = re.compile(_BETWEEN_THOUSANDS)
_LONGEST_UNIT = 16
# By the mark before the fraction, the one between groups of thousands.
THOUSANDS = {".": ",", ",": "."}
# A number with a leading zero such as 007,5 is a name.
_MARKED = {
    point: re.compile(
        rf"[ \t]*[+-]?(?:(?:[1-9]\d{{0,2}}(?:[{group}]\d{{3}})+|0|[1-9]\d*)(?:[{point}]\d*)?|[{point}]\d+)"
        r"(?:[eE][+-]?\d+)?[ \t]*",
        re.ASCII,
    ).fullmatch
    for point, group in THOUSANDS.items()
}
# A value that is typed as a number with commas in it.
has_comma = re.compile(r"[ \t]*[+-]?\d+(?:,\d+)+(?:\.\d*)?[ \t]*", re.ASCII).fullmatch
has_leading_zero = re.compile(r"[ \t]*[+-]?0[0-9xX]", re.ASCII).match
_PERCENT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+))[ \t\xa0\u202f]*%\s*")
_PERCENT_COMMA = re.compile(r"\s*([+-]?\d+(?:,\d+)?)[ \t\xa0\u202f]*%\s*")
_CLOCK = r"(\d{1,2}):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?(?:[ ]?([AaPp])\.?[Mm]\.?)?"
_TIME = re.compile(rf"\s*{_CLOCK}\s*", re.ASCII)
# A sign, days, and a clock or hours, minutes and seconds: 0 days 00:40:37, 1h 30m.
_SPAN = re.compile(
    r"\s*(?P<sign>[+-]?)(?:(?P<d>\d+)\s?d(?:ays?)?,?)?\s*(?:"
    r"(?P<own>[+-]?)(?P<H>\d+):(?P<M>[0-5]\d)(?::(?P<S>[0-5]\d(?:\.\d+)?))?|"
    r"(?:(?P<h>\d+(?:\.\d+)?)\s?h(?:(?:ou)?rs?)?)?\s*(?:(?P<m>\d+(?:\.\d+)?)\s?m(?:in(?:ute)?s?)?)?\s*"
    r"(?:(?P<s>\d+(?:\.\d+)?)\s?s(?:ec(?:ond)?s?)?)?)\s*",
    re.ASCII,
)
_SECOND = 10**9
_HOUR = 3600 * _SECOND
_DAY = 24 * _HOUR
# Nanoseconds of its parts.
_PARTS = {"d": _DAY, "H": _HOUR, "M": 60 * _SECOND, "S": _SECOND, "h": _HOUR, "m": 60 * _SECOND, "s": _SECOND}
_LATER = rf"(?:[ T]+{_CLOCK})?\s*"
_LAST = re.compile(rf"\s*(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_LATER}", re.ASCII)
_FIRST = re.compile(rf"\s*(\d{{4}})([/.-])(\d{{1,2}})\2(\d{{1,2}}){_LATER}", re.ASCII)
# Behind a date with or without a clock.
_OFFSET = re.compile(r"(?:Z|([+-])(\d\d):?(\d\d)|(?<=:\d\d)([+-])(\d\d))\s*$", re.ASCII)
_YEAR = r"(1[5-9]\d\d|2[01]\d\d|2200)"
_ONE_YEAR = re.compile(rf"\s*{_YEAR}\s*", re.ASCII)
_YEAR_MONTH = re.compile(rf"\s*{_YEAR}(?:-(0[1-9]|1[0-2])|[ -]({_MONTH})[a-z]*\.?)\s*", re.ASCII | re.IGNORECASE)
_QUARTER = re.compile(rf"\s*{_YEAR}[ -]Q([1-4])\s*", re.ASCII | re.IGNORECASE)
_WEEK = re.compile(rf"\s*{_YEAR}[ -]?W(0[1-9]|[1-4]\d|5[0-3])\s*", re.ASCII | re.IGNORECASE)
_NAMED = re.compile(rf"\s*(\d{{1,2}})[ -]([A-Za-z]{{3}})[a-z]*\.?[ -](\d{{4}}){_LATER}", re.ASCII)
_MONTH_NAMED = re.compile(rf"\s*([A-Za-z]{{3}})[a-z]*\.? (\d{{1,2}}),? (\d{{4}}){_LATER}", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_EPOCH = date(1970, 1, 1).toordinal()
# Years of two digits lie between 1969 and 2068, as POSIX has them.
_PIVOT = 69


@dataclass(frozen=True)
class Form:
    """One way in which the values of a column are written; of numbers with a unit it is told by unit and decimal mark."""

    name: str
    kind: Literal["number", "date"]
    noun: str
    said: str
    example: str = "12.5"
    reader: Callable[[str], float | None] | None = None
    unit: str = ""
    mark: str = ""

    def read(self, text: str) -> float | None:
        """Return what a text in this form is; None of other texts."""
        if self.reader is not None:
            return self.reader(text)
        found = undressed(text)
        return None if found is None or found.unit != self.unit else marked_number(found.number, self.mark)

    def read_again(self, text: str) -> float | None:
        """Return what a text is in a column that is known to be written so: dates may have the year first, too."""
        value = self.read(text)
        return _year_first(text) if value is None and self.kind == "date" and self != OFFSET else value


@dataclass(frozen=True)
class Dressed:
    """A number with a currency sign or a unit, brackets for minus, a typographer's minus or marks between thousands."""

    number: str
    unit: str
    is_currency: bool
    is_code: bool


def undressed(text: str) -> Dressed | None:
    """Return what a text is if it is a number, whatever stands beside it; else None."""
    text = text.strip()
    bracketed = _BRACKETS.fullmatch(text) if "(" in text else None
    found = _DRESSED.fullmatch("".join(bracketed.groups()) if bracketed else text)
    if found is None or len(found["unit"] or "") > _LONGEST_UNIT:
        return None
    signs = [sign for sign in ("-" if bracketed else "", found["before"], found["after"]) if sign]
    if len(signs) > 1:
        return None
    sign = "-" if signs and signs[0] in _MINUS else ""
    number, unit, currency = sign + _BETWEEN.sub("", found["number"]), (found["unit"] or "").strip(), found["currency"]
    # Without a unit a plain blank stands between two numbers.
    if " " in found["number"] and not (unit or currency):
        return None
    if all(marked_number(number, mark) is None for mark in THOUSANDS):
        return None
    is_currency = bool(currency or (unit and _STARTS_WITH_CURRENCY.match(unit)))
    is_code = len(unit) == 1 and unit.isalpha() and not found["blank"] and not currency
    return Dressed(number, f"{currency or ''} {unit}".strip(), is_currency, is_code)


def is_number(text: str) -> bool:
    """Say whether a value is typed as a number; ``001`` and ``0x1f`` are names and not numbers."""
    return _NUMBER.fullmatch(text) is not None and has_leading_zero(text) is None


def marked_number(text: str, mark: str) -> float | None:
    """Return a number with this decimal mark, and perhaps the other mark between thousands."""
    return float(text.replace(THOUSANDS[mark], "").replace(mark, ".")) if _MARKED[mark](text) else None


def is_numeral(text: str) -> bool:
    """Say whether a value is typed as a number with any decimal mark, and perhaps marks between thousands."""
    return is_number(text) or any(marked_number(text, mark) is not None for mark in THOUSANDS)


def _plain(text: str) -> float | None:
    """Return a plain number."""
    return float(text) if is_number(text) else None


def _percent(pattern: re.Pattern[str], text: str) -> float | None:
    """Return a percentage: 21.2% is 21.2."""
    found = pattern.fullmatch(text)
    return None if found is None else float(found[1].replace(",", "."))


# Whole nanoseconds are divided once, as those of typed files are: the same value is the same number.
def _clock(hour: str, minute: str, second: str | None, half: str | None) -> int | None:
    """Return the nanoseconds since midnight of a time of day."""
    whole = int(hour)
    if half is not None:
        if not 1 <= whole <= 12:
            return None
        whole = whole % 12 + 12 * (half in "pP")
    return None if whole > 23 else whole * _HOUR + int(minute) * 60 * _SECOND + round(float(second or 0) * _SECOND)


def _time(text: str) -> float | None:
    """Return a time of day in hours."""
    found = _TIME.fullmatch(text)
    since_midnight = None if found is None else _clock(*found.groups())
    return None if since_midnight is None else since_midnight / _HOUR


def _duration(text: str) -> float | None:
    """Return a duration in hours; of a clock without days none, which tells a time of day."""
    found = _SPAN.fullmatch(text)
    if found is None or (found["H"] and not found["d"]):
        return None
    parts = {part: round(float(found[part]) * size) for part, size in _PARTS.items() if found[part]}
    sign = -1 if found["sign"] == "-" else 1
    if found["own"]:
        # As in -1 days +23:00:00.
        of_days = sign * parts.pop("d")
        return (of_days + (-1 if found["own"] == "-" else 1) * sum(parts.values())) / _HOUR
    return sign * sum(parts.values()) / _HOUR if parts else None


def _has_parts(text: str) -> bool:
    """Say whether a text is a duration of several units: one of a single unit may be a number of metres."""
    found = _SPAN.fullmatch(text)
    return found is not None and sum(found[part] is not None for part in "dHhms") > 1


def _days(year: str, month: int, day: str, clock: tuple[str, ...], ahead: int = 0) -> float | None:
    """Return a date, with the time of day where there is one, in days since 1970-01-01, from nanoseconds `ahead` of UTC."""
    since_midnight = _clock(*clock) if clock[0] else 0
    full = int(year) if len(year) > 2 else int(year) + (1900 if int(year) >= _PIVOT else 2000)
    try:
        whole = (date(full, month, int(day)).toordinal() - _EPOCH) * _DAY - ahead
        return None if since_midnight is None else (whole + since_midnight) / _DAY
    except ValueError:
        return None


def _month_named(text: str) -> float | None:
    """Return a date whose month is a name: 13 Jan 2025 or Jan 13, 2025."""
    named = _NAMED.fullmatch(text)
    if (found := named or _MONTH_NAMED.fullmatch(text)) is None:
        return None
    day, month = (found[1], found[2].casefold()) if named else (found[2], found[1].casefold())
    return _days(found[3], _MONTHS.index(month) + 1, day, found.groups()[3:]) if month in _MONTHS else None


def _year_last(text: str, *, day_first: bool) -> float | None:
    """Return a date with the year last; the month may be a name, and between points it stands second."""
    if (not day_first or _NAMED.fullmatch(text)) and (value := _month_named(text)) is not None:
        return value
    if (found := _LAST.fullmatch(text)) is None or (found[2] == "." and not day_first):
        return None
    day, month = (found[1], found[3]) if day_first else (found[3], found[1])
    return _days(found[4], int(month), day, found.groups()[4:])


def _year_first(text: str) -> float | None:
    """Return a date such as 2025/01/13."""
    found = _FIRST.fullmatch(text)
    return None if found is None else _days(found[1], int(found[3]), found[4], found.groups()[4:])


def _with_offset(text: str) -> float | None:
    """Return a time such as 2025-01-13T08:30:00+02:00 in UTC."""
    offset = _OFFSET.search(text)
    found = None if offset is None else _FIRST.fullmatch(text[: offset.start()])
    if offset is None or found is None:
        return None
    sign, hours, minutes = offset[1] or offset[4], int(offset[2] or offset[5] or 0), int(offset[3] or 0)
    ahead = (hours * 3600 + minutes * 60) * _SECOND * (-1 if sign == "-" else 1)
    return _days(found[1], int(found[3]), found[4], found.groups()[4:], ahead)


def _year_month(text: str) -> float | None:
    """Return the first day of a month such as 1949-01 or 1949 Jan."""
    if (found := _YEAR_MONTH.fullmatch(text)) is None:
        return None
    month = int(found[2]) if found[2] else _MONTHS.index(found[3].casefold()) + 1
    return _days(found[1], month, "1", ("",))


def _year_quarter(text: str) -> float | None:
    """Return the first day of a quarter such as 1970 Q1."""
    found = _QUARTER.fullmatch(text)
    return None if found is None else _days(found[1], 3 * int(found[2]) - 2, "1", ("",))


def _year_week(text: str) -> float | None:
    """Return the Monday of a week such as 1991 W06 (ISO 8601)."""
    found = _WEEK.fullmatch(text)
    try:
        week = None if found is None else date.fromisocalendar(int(found[1]), int(found[2]), 1)
        return None if week is None else float(week.toordinal() - _EPOCH)
    except ValueError:
        return None


def days_of(text: str) -> tuple[float, float] | None:
    """Return the first day of a year, month or quarter, and the first one after it; None of other texts."""
    first, months = _year_month(text), 1
    if first is None:
        first, months = _year_quarter(text), 3
    if first is None:
        found = _ONE_YEAR.fullmatch(text)
        first, months = None if found is None else _days(found[1], 1, "1", ("",)), 12
    if first is None:
        return None
    begins = date.fromordinal(int(first) + _EPOCH)
    month = begins.year * 12 + begins.month - 1 + months
    return first, float(date(month // 12, month % 12 + 1, 1).toordinal() - _EPOCH)


def _of_parts(levels: Sequence[str]) -> Form | None:
    """Return the form of texts that are all months of a year, all quarters or all weeks. Seasons such as 2003-04, each of a year and the next, are none."""
    if levels and all(map(_QUARTER.fullmatch, levels)):
        return QUARTER
    if levels and all(_year_week(level) is not None for level in levels):
        return WEEK
    found = [_YEAR_MONTH.fullmatch(level) for level in levels]
    seasons = all(one[2] and not (int(one[1]) + 1 - int(one[2])) % 100 for one in found if one)
    return MONTH if all(found) and not seasons else None


_PERCENTS, _DATES = "percents were read as numbers", "dates were read {} first"
_TYPOGRAPHIC, _WITH, _COMMA = "typographic number", "number with ", " and decimal comma"
PLAIN = Form("", "number", "number", "", reader=_plain)
STORED = Form("number stored as text", "number", "number", "numbers stored as text were read as numbers", reader=_plain)
YEAR_FIRST = Form("date, year first", "date", "date", "", "2025-12-31", _year_first)
# As typed files have them, too.
OFFSET = Form(
    "date, with UTC offset", "date", "date with a UTC offset", "", "2025-12-31T08:30:00+02:00", reader=_with_offset
)
# In the order in which they are preferred where several read all values of a column.
FORMS = (
    PLAIN,
    Form("percent", "number", "percentage", _PERCENTS, "12.5%", partial(_percent, _PERCENT), "%"),
    Form(
        "percent with decimal comma", "number", "percentage", _PERCENTS, "12,5%", partial(_percent, _PERCENT_COMMA), "%"
    ),
    Form("time of day", "number", "time of day", "times of day were read as hours", "12:30", _time, "hours"),
    YEAR_FIRST,
    OFFSET,
    Form("date, month named", "date", "date", "", "31 Dec 2025", _month_named),
    Form(
        "date, day first",
        "date",
        "date with the day first",
        _DATES.format("day"),
        "31/12/2025",
        partial(_year_last, day_first=True),
    ),
    Form(
        "date, month first",
        "date",
        "date with the month first",
        _DATES.format("month"),
        "12/31/2025",
        partial(_year_last, day_first=False),
    ),
)

# Of a column all of whose values are so: a season such as 2019-20 among them makes all of them text.
MONTH = Form(
    "date, month of a year", "date", "month of a year", "months were read as their first days", "2025-12", _year_month
)
QUARTER = Form(
    "date, quarter of a year",
    "date",
    "quarter of a year",
    "quarters were read as their first days",
    "2025 Q4",
    _year_quarter,
)
WEEK = Form(
    "date, week of a year", "date", "week of a year", "weeks were read as their Mondays", "2025 W07", _year_week
)
DURATION = Form("duration", "number", "duration", "durations were read as hours", "1h 30m", _duration, "hours")


def date_form(dayfirst: bool | None) -> str:
    """Return the form of dates with the day or the month first; nothing where that is not said."""
    return "" if dayfirst is None else f"date, {'day' if dayfirst else 'month'} first"


_FORM_OF = {form.name: form for form in (*FORMS, DURATION, MONTH, QUARTER, WEEK, STORED)}


def forms_with(unit: str, decimal: str = "auto") -> list[Form]:
    """Return the forms of numbers with a unit, or of those in typographer's signs without one, by decimal mark."""
    name, noun = (_WITH + unit, _WITH + unit) if unit else (_TYPOGRAPHIC, "number")
    said = f"{'numbers with a currency or unit' if unit else 'numbers in other signs'} were read as numbers"
    return [
        Form(name + end, "number", noun, said, f"12 {unit}" if unit else "12.5", None, unit, mark)
        for mark, end in ((".", ""), (",", _COMMA))
        if decimal in {"auto", mark}
    ]


def form_of(name: str, kind: str = "number") -> Form:
    """Return the form of this name, without one the plain form of a kind; KeyError where there is none."""
    name = "date, year first" if kind == "date" and not name else name
    if name in _FORM_OF:
        return _FORM_OF[name]
    bare = name.removesuffix(_COMMA)
    unit = bare.removeprefix(_WITH)
    if bare != _TYPOGRAPHIC and (unit == bare or (found := undressed(f"1 {unit}")) is None or found.unit != unit):
        raise KeyError(name)
    return forms_with("" if bare == _TYPOGRAPHIC else unit)[name != bare]


# What a column of text is written as.

# Numbers with a unit are categories where there are so few of them, and each occurs so often on average.
FEW_SIZES, _OFTEN = 20, 2
_MOST_UNITS = 5


@dataclass(frozen=True)
class TextMeaning:
    """What the values of a text column would be as numbers or dates, and the other forms that read as many of them."""

    form: Form
    values: list[float | None]
    n_fitting: int
    total: int
    others: tuple[Form, ...] = ()


def present_counts(column: Column, na: Sequence[str]) -> NDArray[np.int64]:
    """Return how often each level of a text column occurs; words for a missing value do not count."""
    counts = column.level_counts
    counts[[level in na for level in column.levels]] = 0
    return counts


def meant_as(column: Column, na: Sequence[str] = (), decimal: str = "auto") -> TextMeaning | None:
    """Return what the values of a text column would be if more than half are numbers or dates; else None.

    A quoted word for a missing value is missing among numbers. Cost: a few looks at each different value, and for a
    column of real text one.
    """
    counts, levels = present_counts(column, na), column.levels
    total = int(counts.sum())
    likely = [k for k, level in enumerate(levels) if counts[k] and _may_be_read(level)]
    if 2 * int(counts[likely].sum()) <= total:
        return None
    if int(counts[likely].sum()) == total and (form := _of_parts([levels[k] for k in likely])):
        return TextMeaning(form, [form.read(level) for level in levels], total, total)

    def read_by(forms: Iterable[Form]) -> dict[Form, dict[int, float]]:
        return {form: {k: value for k in likely if (value := form.read(levels[k])) is not None} for form in forms}

    found = read_by((*FORMS, DURATION) if any(_has_parts(levels[k]) for k in likely) else FORMS)
    read = {k for k in likely if has_comma(levels[k])}.union(*found.values())
    dressed = {k: worn for k in likely if k not in read and (worn := undressed(levels[k])) is not None}
    others = _dressed_forms(column, dressed, counts, decimal)
    if 2 * int(counts[list(read.union(dressed if others else ()))].sum()) <= total:
        return None
    found |= read_by(others)
    weights = {form: int(counts[list(values)].sum()) for form, values in found.items()}
    best = max(found, key=weights.__getitem__) if any(weights.values()) else others[-1] if others else PLAIN
    rivals = [form for form in found if weights[form] == weights[best] and found[form] != found[best] and form != best]
    return TextMeaning(best, [found[best].get(k) for k in range(len(levels))], weights[best], total, tuple(rivals))


def _dressed_forms(
    column: Column, dressed: Mapping[int, Dressed], counts: NDArray[np.int64], decimal: str
) -> list[Form]:
    """Return the forms of numbers with the unit that most of them have; none where units make names or categories of them."""
    worn, weights = list(dressed.values()), Counter[str]()
    for index, one in dressed.items():
        weights[one.unit] += int(counts[index])
    few = len(column.levels) <= FEW_SIZES and _OFTEN * len(column.levels) <= int(counts.sum())
    # Nor where one of a few categories, such as $25000 or more, is all that is written so.
    if not worn or (
        few and (all(one.unit and not one.is_currency for one in worn) or 2 * len(worn) < len(column.levels))
    ):
        return []
    if len(weights) > 1 and (
        all(one.is_code for one in worn) or len(weights) > _MOST_UNITS or 2 * len(weights) > len(worn)
    ):
        return []
    # 1.200 kg is what 1.200 is, but 1.200 EUR may well be 1200.
    unsure = any("," in one.number or one.is_currency for one in worn)
    return forms_with(max(weights, key=weights.__getitem__), "." if decimal == "auto" and not unsure else decimal)


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
