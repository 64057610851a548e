"""Tables and typed columns, and the forms in which numbers and dates are written."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kerntest.data.messages import listed, option_value
from kerntest.errors import DataError, UsageError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import DTypeLike, NDArray


def fixed_width(chunk: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return the values of a fixed-width Arrow array as a view of `dtype`; what stands at missing ones is arbitrary."""
    buffer = chunk.buffers()[1]
    if buffer is None or len(chunk) == 0:
        return np.zeros(len(chunk), dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype)[chunk.offset : chunk.offset + len(chunk)]


def bits(chunk: Any) -> NDArray[np.bool_]:
    """Return the values of an Arrow array of booleans; what stands at missing ones is arbitrary."""
    return _unpacked(chunk, chunk.buffers()[1])


def missing(chunk: Any) -> NDArray[np.bool_]:
    """Return the mask of the missing values of an Arrow array."""
    if chunk.null_count == 0:
        return np.zeros(len(chunk), dtype=bool)
    return ~_unpacked(chunk, chunk.buffers()[0])


def joined(data: Any, dtype: DTypeLike) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a fixed-width Arrow ChunkedArray, and the mask of those that are missing."""
    values = [np.empty(0, dtype=dtype), *(fixed_width(chunk, dtype) for chunk in data.chunks)]
    masks = [np.empty(0, dtype=bool), *(missing(chunk) for chunk in data.chunks)]
    return np.concatenate(values), np.concatenate(masks)


def _unpacked(chunk: Any, buffer: Any) -> NDArray[np.bool_]:
    """Return one boolean per value from a buffer of one bit per value; without a buffer all are false."""
    if buffer is None or len(chunk) == 0:
        return np.zeros(len(chunk), dtype=bool)
    octets = np.frombuffer(buffer, dtype=np.uint8)
    unpacked = np.unpackbits(octets, count=chunk.offset + len(chunk), bitorder="little")
    return unpacked[chunk.offset :].astype(bool)


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
_BEGINNING = re.compile(rf"\s*(?:{_SIGN}|{_CURRENCY}|[\s.(])*\d")
_STARTS_WITH_CURRENCY = re.compile(_CURRENCY)
_BETWEEN = re.compile(_BETWEEN_THOUSANDS)
_LONGEST_UNIT = 16
# The mark before the fraction and the one between thousands. A number with a leading zero is a name.
_AMOUNT = {
    mark: re.compile(
        rf"-?(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|0|[1-9]\d*)?(?:{point}\d*)?(?:[eE][+-]?\d+)?", re.ASCII
    ).fullmatch
    for mark, point, group in ((".", r"\.", ","), (",", ",", r"\."))
}
_LEADING_ZERO = re.compile(r"[ \t]*[+-]?0[0-9xX]", re.ASCII)
_PERCENT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+))[ \t\xa0\u202f]*%\s*")
_PERCENT_COMMA = re.compile(r"\s*([+-]?\d+(?:,\d+)?)[ \t\xa0\u202f]*%\s*")
_CLOCK = r"(\d{1,2}):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?(?:[ ]?([AaPp])\.?[Mm]\.?)?"
_TIME = re.compile(rf"\s*{_CLOCK}\s*", re.ASCII)
_LATER = rf"(?:[ T]+{_CLOCK})?\s*"
_LAST = re.compile(rf"\s*(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_LATER}", re.ASCII)
_FIRST = re.compile(rf"\s*(\d{{4}})([/.-])(\d{{1,2}})\2(\d{{1,2}}){_LATER}(?:Z|[+-]\d\d:?\d\d)?", re.ASCII)
_NAMED = re.compile(rf"\s*(\d{{1,2}})[ -]([A-Za-z]{{3}})[a-z]*\.?[ -](\d{{4}}){_LATER}", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_EPOCH = date(1970, 1, 1).toordinal()
# Years of two digits lie between 1969 and 2068, as POSIX has them.
_PIVOT = 69


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which the values of a column are written."""

    name: str
    kind: Kind
    noun: str
    said: str
    read: Callable[[str], float | None]
    unit: str = ""
    amount: Callable[[Dressed], float | None] | None = None

    def read_again(self, text: str) -> float | None:
        """Return what a text is in a column that is known to be written so: dates may have the year first, too."""
        value = self.read(text)
        return _year_first(text) if value is None and self.kind == "date" else value

    @property
    def example(self) -> str:
        """A value that is written so."""
        return _EXAMPLES.get(self.name) or (f"12 {self.unit}" if self.unit else "12.5")

    @property
    def is_dressed(self) -> bool:
        """Whether something stands beside the numbers that is not read."""
        return self.name.startswith(_WITH)


@dataclass(frozen=True, slots=True)
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
    number, unit = sign + _BETWEEN.sub("", found["number"]), (found["unit"] or "").strip()
    # Without a unit a plain blank stands between two numbers.
    if " " in found["number"] and not (unit or found["currency"]):
        return None
    if not (_AMOUNT["."](number) or _AMOUNT[","](number)):
        return None
    currency = found["currency"] or ""
    is_currency = bool(currency or (unit and _STARTS_WITH_CURRENCY.match(unit)))
    is_code = len(unit) == 1 and unit.isalpha() and not found["blank"] and not currency
    return Dressed(number, f"{currency} {unit}".strip(), is_currency, is_code)


def may_be_read(text: str) -> bool:
    """Say whether a text begins like all that some form reads: a quick way to tell most others."""
    return _BEGINNING.match(text) is not None


def is_number(text: str) -> bool:
    """Say whether a value is typed as a number; ``001`` and ``0x1f`` are names and not numbers."""
    return _NUMBER.fullmatch(text) is not None and _LEADING_ZERO.match(text) is None


def _plain(text: str) -> float | None:
    """Return a plain number."""
    return float(text) if is_number(text) else None


def _percent(pattern: re.Pattern[str]) -> Callable[[str], float | None]:
    """Return the reader of percents: 21.2% is 21.2."""

    def value(text: str) -> float | None:
        found = pattern.fullmatch(text)
        return None if found is None else float(found[1].replace(",", "."))

    return value


def _hours(hour: str, minute: str, second: str | None, half: str | None) -> float | None:
    """Return the hours since midnight of a time of day."""
    whole = int(hour)
    if half is not None:
        if not 1 <= whole <= 12:
            return None
        whole = whole % 12 + 12 * (half in "pP")
    return None if whole > 23 else whole + int(minute) / 60 + float(second or 0) / 3600


def _time(text: str) -> float | None:
    """Return a time of day in hours."""
    found = _TIME.fullmatch(text)
    return None if found is None else _hours(*found.groups())


def _days(year: str, month: int, day: str, clock: tuple[str | None, ...]) -> float | None:
    """Return a date, with the time of day where there is one, in days since 1970-01-01."""
    hour, minute, second, half = clock
    hours = 0.0 if hour is None or minute is None else _hours(hour, minute, second, half)
    full = int(year) if len(year) > 2 else int(year) + (1900 if int(year) >= _PIVOT else 2000)
    try:
        return None if hours is None else date(full, month, int(day)).toordinal() - _EPOCH + hours / 24
    except ValueError:
        return None


def _date(*, day_first: bool) -> Callable[[str], float | None]:
    """Return the reader of dates with the year last; the month may be a name, and between points it stands second."""

    def value(text: str) -> float | None:
        if (found := _NAMED.fullmatch(text)) is not None:
            month = found[2].casefold()
            return _days(found[3], _MONTHS.index(month) + 1, found[1], found.groups()[3:]) if month in _MONTHS else None
        if (found := _LAST.fullmatch(text)) is None or (found[2] == "." and not day_first):
            return None
        day, month_number = (found[1], found[3]) if day_first else (found[3], found[1])
        return _days(found[4], int(month_number), day, found.groups()[4:])

    return value


def _year_first(text: str) -> float | None:
    """Return a date such as 2025/01/13."""
    found = _FIRST.fullmatch(text)
    return None if found is None else _days(found[1], int(found[3]), found[4], found.groups()[4:])


def _amount(mark: str, unit: str) -> Callable[[Dressed], float | None]:
    """Return the reader of numbers with this unit, or with none, and this decimal mark."""

    def value(found: Dressed) -> float | None:
        if found.unit != unit or not _AMOUNT[mark](found.number):
            return None
        return float(found.number.replace("." if mark == "," else ",", "").replace(",", "."))

    return value


def _undressing(amount: Callable[[Dressed], float | None]) -> Callable[[str], float | None]:
    """Return the reader of texts that are such numbers."""

    def value(text: str) -> float | None:
        found = undressed(text)
        return None if found is None else amount(found)

    return value


PLAIN = Form("", "number", "number", "", _plain)
_PERCENTS, _DATES = "percents were read as numbers", "dates were read {} first"
_TYPOGRAPHIC, _WITH, _COMMA = "typographic number", "number with ", " and decimal comma"
_EXAMPLES = {
    "percent": "12.5%",
    "percent with decimal comma": "12,5%",
    "time of day": "12:30",
    "date, year first": "2025-12-31",
    "date, day first": "31/12/2025",
    "date, month first": "12/31/2025",
}
# In the order in which they are preferred where several read all values of a column.
FORMS = (
    PLAIN,
    Form("percent", "number", "percentage", _PERCENTS, _percent(_PERCENT), "%"),
    Form("percent with decimal comma", "number", "percentage", _PERCENTS, _percent(_PERCENT_COMMA), "%"),
    Form("time of day", "number", "time of day", "times of day were read as hours", _time, "hours"),
    Form("date, year first", "date", "date", _DATES.format("year"), _year_first),
    Form("date, day first", "date", "date with the day first", _DATES.format("day"), _date(day_first=True)),
    Form("date, month first", "date", "date with the month first", _DATES.format("month"), _date(day_first=False)),
)
_FORM_OF = {form.name: form for form in FORMS}


def forms_with(unit: str, decimal: str = "auto") -> list[Form]:
    """Return the forms of numbers with a unit, or of those in typographer's signs without one, by decimal mark."""
    name, noun = (_WITH + unit, _WITH + unit) if unit else (_TYPOGRAPHIC, "number")
    said = f"{'numbers with a currency or unit' if unit else 'numbers in other signs'} were read as numbers"
    return [
        Form(name + end, "number", noun, said, _undressing(_amount(mark, unit)), unit, _amount(mark, unit))
        for mark, end in ((".", ""), (",", _COMMA))
        if decimal in {"auto", mark}
    ]


def form_of(name: str) -> Form:
    """Return the form of this name; KeyError where there is none."""
    if name in _FORM_OF:
        return _FORM_OF[name]
    bare = name.removesuffix(_COMMA)
    unit = bare.removeprefix(_WITH)
    if bare != _TYPOGRAPHIC and (unit == bare or (found := undressed(f"1 {unit}")) is None or found.unit != unit):
        raise KeyError(name)
    return forms_with("" if bare == _TYPOGRAPHIC else unit)[name != bare]


Kind = Literal["number", "boolean", "text", "date"]
# Words that stand for a missing value in CSV; an empty field always does.
MISSING = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None", "n/a", "#N/A")


@dataclass(frozen=True, slots=True)
class ColumnProblem:
    """Why a column cannot be used as it is; raised only when somebody uses it.

    Reading happens before selection, and a column that is left out must not fail the run.
    """

    message: str
    hint: str
    code: str
    where: Mapping[str, str | int]
    curable: bool
    kind: Kind = "number"

    def error(self) -> DataError:
        """Return the error to raise."""
        return DataError(self.message, hint=self.hint, code=self.code, where=self.where)


@dataclass(frozen=True, slots=True)
class Remark:
    """What a reader should know of how a column was read."""

    said: str
    example: str = ""
    way_out: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One named, typed column of n values.

    Parameters
    ----------
    name : str
        As in the header.
    kind : {"number", "boolean", "text", "date"}
        What all values of the column are.
    values : ndarray, shape (n,)
        float64 with NaN for missing (number; date: days since 1970-01-01), or int64 codes into `levels` with -1
        for missing (boolean, text).
    levels : tuple of str
        The different values of a boolean or text column, sorted; empty for number and date.
    problem : ColumnProblem, optional
        Why the column cannot be used as it is.
    written : str
        In which form its numbers or dates were written, of `forms`; empty for plain ones.
    emptied_by : str
        The word, such as None, for which many values of a text column in CSV are missing; empty where few are.
    remarks : tuple of Remark
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    levels: tuple[str, ...] = ()
    problem: ColumnProblem | None = None
    written: str = ""
    emptied_by: str = ""
    remarks: tuple[Remark, ...] = ()

    @property
    def is_category(self) -> bool:
        """Whether the values are codes into `levels`."""
        return self.kind in {"boolean", "text"}

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Mask of the missing values, shape (n,)."""
        missing: NDArray[np.bool_] = self.values < 0 if self.is_category else np.isnan(self.values)
        return missing

    @property
    def n_missing(self) -> int:
        """Number of missing values."""
        return int(np.count_nonzero(self.missing))

    def take(self, rows: NDArray[Any]) -> Column:
        """Return the column at these rows (indices or a mask); the levels stay."""
        return replace(self, values=self.values[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Typed columns of equal length, and where they came from.

    Parameters
    ----------
    name : str
        How messages call it: the path as typed, ``"<stdin>"``, or ``"x"`` and ``"y"`` for arrays.
    columns : tuple of Column
        In the order of the file.
    n_rows : int
        Number of rows.
    format : str
        ``"csv"``, ``"parquet"``, ``"json"``, ``"array"`` or ``"frame"``.
    sha256 : str or None
        Digest of the file's bytes as stored, of several files of their digests (see `Source`); None for arrays and
        frames.
    delimiter : str or None
        Between the fields of a CSV file.
    notes : tuple of str
        What a reader should know about how the table was read, its columns aside.
    lines : ndarray of int64, shape (n_rows,), optional
        Line of the file on which each row begins, counted from 1; None where there are no lines.
    files : tuple of str
        The files that were read, in order; empty for arrays and frames.
    file_of : ndarray of int32, shape (n_rows,), optional
        Which of several files each row comes from; None where there is one, or where it cannot be told.
    compression : str or None
        "gzip", "zstd", "bzip2" or "xz", where the files were compressed.
    size : int or None
        Bytes of all files together, as stored.
    na : tuple of str
        Words that stood for a missing value in CSV.
    has_missing : bool
        Whether values may be missing, in any column.
    """

    name: str
    columns: tuple[Column, ...]
    n_rows: int
    format: str
    sha256: str | None = None
    delimiter: str | None = None
    notes: tuple[str, ...] = ()
    lines: NDArray[np.int64] | None = None
    files: tuple[str, ...] = ()
    file_of: NDArray[np.int32] | None = None
    compression: str | None = None
    size: int | None = None
    na: tuple[str, ...] = MISSING
    has_missing: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know about how the table and the columns that are left of it were read."""
        found: dict[str, list[tuple[str, Remark]]] = {}
        for column in self.columns:
            for remark in column.remarks:
                found.setdefault(remark.said, []).append((column.name, remark))
        lines = []
        for said, told in found.items():
            names, first = [name for name, _ in told], told[0][1]
            where = f" in {listed(names)} ({first.example})" if first.example else ""
            lines.append(f"{self.name}: {said}{where}{first.way_out.replace('{}', option_value(names))}")
        return (*self.notes, *lines)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise unknown_column(name, self.name, self.names)

    def select(self, names: Sequence[str]) -> Table:
        """Return the table of these columns, in this order; UsageError for a name that is not there."""
        by_name = {column.name: column for column in self.columns}
        for name in names:
            if name not in by_name:
                raise unknown_column(name, self.name, self.names)
        return replace(self, columns=tuple(by_name[name] for name in names))

    def take(self, rows: NDArray[Any]) -> Table:
        """Return the table at these rows (indices or a mask)."""
        columns = tuple(column.take(rows) for column in self.columns)
        n_rows = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        lines, file_of = (None if places is None else places[rows] for places in (self.lines, self.file_of))
        return replace(self, columns=columns, n_rows=n_rows, lines=lines, file_of=file_of)

    def place(self, row: int) -> str:
        """Return where row `row` (counted from 0) stands, for a message: ``"line 37"`` or, without lines, ``"row 36"``.

        Of several files it says which: ``"line 37 of part-2.csv"``.
        """
        place = f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"
        return place if self.file_of is None else f"{place} of {self.files[self.file_of[row]]}"

    def where(self, row: int) -> dict[str, str | int]:
        """Return where row `row` (counted from 0) stands, for a program."""
        if self.lines is None:
            return {"file": self.name, "row": row + 1}
        file = self.name if self.file_of is None else self.files[self.file_of[row]]
        return {"file": file, "line": int(self.lines[row])}


def unknown_column(name: str, table_name: str, names: Sequence[str]) -> UsageError:
    """Return the error for a column that is not there: did you mean this one, or else here they all are."""
    close = suggest(name, tuple(names))
    hint = f"did you mean {close!r}?" if close else comment_hint(names) or f"the columns are {listed(names, 20)}"
    return UsageError(
        f"column {name!r} is not in {table_name}",
        hint=hint,
        code="usage.unknown_column",
        where={"file": table_name, "column": name},
    )


def comment_hint(names: Sequence[str]) -> str:
    """Return the hint for a file whose first line seems to be a comment; else nothing."""
    commented = bool(names) and names[0].startswith("#")
    return "if lines that begin with # are comments, --comment '#' leaves them out" if commented else ""


def no_header_hint(names: Sequence[str], others: Sequence[str] | None = None) -> str:
    """Return the hint for names, of two files where there are others, of which some are numbers or dates; else nothing."""
    odd = all(any(form.read(name) is not None for name in some for form in FORMS) for some in (names, others or names))
    return "if the first line is a row and not a header, --no-header says so" if odd else ""


def refuse_duplicates(names: Sequence[str], table_name: str) -> None:
    """Refuse a table in which a column name occurs twice: columns are told apart by name."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise DataError(
            f"{table_name} has more than one column named {listed([repr(name) for name in repeated])}",
            hint=no_header_hint(names) or "give every column a name of its own",
            code="data.duplicate_columns",
            where={"file": table_name, "column": repeated[0]},
        )


def refuse_empty(table_name: str, n_rows: int, n_columns: int) -> None:
    """Refuse a table without rows or without columns."""
    if n_rows == 0 or n_columns == 0:
        raise DataError(
            f"{table_name} has no {'columns' if n_columns == 0 else 'rows'}",
            hint="a table needs at least one column and one row",
            code="data.no_rows" if n_columns else "data.no_columns",
            where={"file": table_name},
        )
