"""For which rows of a table a condition on its columns holds, such as `year == 2009 and price > 0`.

    condition  = both { "or" both }
    both       = one { "and" one }
    one        = "not" one | "(" condition ")" | value [ compared ]
    compared   = sign value { sign value } | ["not"] "in" "(" value { "," value } ")" | "is" ["not"] "missing"
    value      = number | 'text' | true | false | name | `name` | "name"

A date may be compared with a year, or with a month such as '2015-03'. A condition is worked out while it is read; nothing
of it is ever run as a program.
"""

from __future__ import annotations

import math
import operator
import re
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from kerntest.data.columns import check_usable
from kerntest.data.table import unknown_column
from kerntest.data.written_values import OFFSET, PLAIN, YEAR_FIRST, days_of, is_number
from kerntest.errors import UsageError, option, shown_value, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from kerntest.data.table import Column, Table

    Mask: TypeAlias = NDArray[np.bool_]
    Compare: TypeAlias = Callable[[Any, Any], Any]

_SIGNS = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
# 0 < x is x > 0.
_TURNED = {operator.lt: operator.gt, operator.le: operator.ge, operator.gt: operator.lt, operator.ge: operator.le}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
      | (?P<sign>==|!=|<>|<=|>=|=|<|>)
      | (?P<mark>[(),])
      | (?P<word>[^\W\d][\w.]*)
    )""",
    re.VERBOSE,
)
# Of more digits no number is as large.
_WHOLE = re.compile(r"\s*[+-]?\d{1,300}\s*").fullmatch
_PLAIN_NAME = re.compile(r"[^\W\d][\w.]*")
_KEYWORDS = {"and", "or", "not", "in", "is"}
_TRUTH = {"true", "false"}
_NO_PARTS = "texts are compared whole: name = 'a', or name in ('a', 'b')"
_NO_FORMULAS = "nothing is computed; a name with blanks or signs stands between backquotes: `unit price`"
_TWO = "`and` or `or` stands between conditions, and a text or a date between single quotes"
# What other languages have, and what stands for it here.
_INSTEAD = {
    "&": "write `and`",
    "|": "write `or`",
    "!": "write `not`",
    "~": f"write `not`; {_NO_PARTS}",
    "[": "write values between parentheses: site in ('north', 'south')",
    ";": "a comma stands between values, and `and` or `or` between conditions",
    "between": "write both bounds: 2 <= items <= 4",
    ")": "leave it out: nothing is opened before it",
    "(": "there are no functions: compare a column with a value or with another column",
} | dict.fromkeys(("like", "ilike", "contains", "startswith", "endswith", "matches", "regexp"), _NO_PARTS)
_NOTHING = {"none", "null", "nan", "na"}


def as_name(name: str) -> str:
    """Return a name as it stands in a condition."""
    plain = _PLAIN_NAME.fullmatch(name) and name.casefold() not in _KEYWORDS | _TRUTH
    return name if plain else f"`{name.replace('`', '``')}`"


def other_than(name: str, values: Sequence[str]) -> str:
    """Return the condition that a column has none of some values, texts or numbers, as they are shown."""
    listed = ", ".join(value if is_number(value) else _quoted(value) for value in values)
    return f"{as_name(name)} not in ({listed})"


class Truth(NamedTuple):
    """For which rows something holds, and for which it does not; for neither where a value is missing."""

    holds: Mask
    fails: Mask

    @classmethod
    def of(cls, found: Mask, missing: Mask) -> Truth:
        """Return what was found, where no value is missing."""
        return cls(found & ~missing, ~found & ~missing)

    def negated(self) -> Truth:
        """Return the contrary."""
        return Truth(self.fails, self.holds)

    def with_other(self, other: Truth) -> Truth:
        """Return where both hold."""
        return Truth(self.holds & other.holds, self.fails | other.fails)


_NO_ROWS = Truth(np.empty(0, dtype=bool), np.empty(0, dtype=bool))


class _Token(NamedTuple):
    """A piece of a condition: what it is, its text without quotes, and where it begins, counted from 0."""

    kind: str
    text: str
    at: int

    def is_word(self, *words: str) -> bool:
        """Say whether it is one of these words, in whatever case."""
        return self.kind == "word" and self.text.casefold() in words


class Condition:
    """A condition, read from its text; UsageError at the place that cannot be read.

    Of a table `columns` are those that it looked at.
    """

    def __init__(self, text: str, table: Table | None = None) -> None:
        if not isinstance(text, str):
            told = f"where must be a condition, not {text!r}"
            raise UsageError(told, hint=_such_as(), code="usage.where")
        self.text, self.table = text, table
        self.columns: dict[str, Column] = {}
        self._absent: list[tuple[str, Column]] = []
        self._tokens, self._place = list(self._read()), 0
        try:
            self.truth = self._either()
        except RecursionError:
            self._fail("too many parentheses, or `not`, within one another", "write fewer of them")
        if self._now.kind != "end":
            what = f"{shown_value(self._now.text)} after a whole condition"
            self._fail(
                what, _INSTEAD.get(self._now.text.casefold(), _TWO) if self._now.kind in {"word", "mark"} else _TWO
            )

    def meant(self) -> str | None:
        """Return the value of a column that is most like one that it does not have."""
        return next(filter(None, (suggest(text, list(column.levels)) for text, column in self._absent)), None)

    def _read(self) -> Iterator[_Token]:
        """Yield the pieces of the text, and its end."""
        at = 0
        while rest := self.text[at:].strip():
            begins, found = len(self.text) - len(self.text[at:].lstrip()), _TOKEN.match(self.text, at)
            if found is None:
                mark, quoted = rest[0], rest[0] in "'\"`"
                hint = "close it with the same sign" if quoted else _INSTEAD.get(mark, _NO_FORMULAS)
                raise self._error(f"{mark} is not closed" if quoted else f"{mark!r} has no meaning here", hint, begins)
            kind = str(found.lastgroup)
            piece = found[kind]
            if kind in {"text", "quoted"}:
                piece = piece[1:-1].replace(2 * piece[0], piece[0])
            yield _Token(kind, piece, begins)
            at = found.end()
        yield _Token("end", "", len(self.text.rstrip()))

    def _error(self, what: str, hint: str, at: int) -> UsageError:
        where: dict[str, str | int] = {"text": self.text, "position": at + 1}
        return UsageError(f"condition for rows: {what}", hint=hint, code="usage.where", where=where)

    def _fail(self, what: str, hint: str, token: _Token | None = None) -> NoReturn:
        """Refuse a piece, by default the one that comes next."""
        raise self._error(what, hint, (token or self._now).at)

    @property
    def _now(self) -> _Token:
        """The next piece."""
        return self._tokens[self._place]

    def _accept(self, *words: str) -> bool:
        """Step over a word or a mark, if it comes next."""
        found = self._now.is_word(*words) or (self._now.kind == "mark" and self._now.text in words)
        self._place += found
        return found

    def _close(self, opened: int) -> None:
        """Step over the end of a parenthesis."""
        if not self._accept(")"):
            self._fail(f"the parenthesis at character {opened + 1} is not closed here", "write )")

    def _either(self) -> Truth:
        """Read conditions of which one holds: not (not a and not b)."""
        found = self._both()
        while self._accept("or"):
            found = found.negated().with_other(self._both().negated()).negated()
        return found

    def _both(self) -> Truth:
        """Read conditions that all hold."""
        found = self._one()
        while self._accept("and"):
            found = found.with_other(self._one())
        return found

    def _one(self) -> Truth:
        """Read a condition without `and` and `or` outside of parentheses."""
        opened = self._now.at
        if self._accept("not"):
            return self._one().negated()
        if self._accept("("):
            found = self._either()
            self._close(opened)
            return found
        value = self._value()
        negated = self._accept("not")
        if self._accept("in"):
            found = self._among(value)
            return found.negated() if negated else found
        if negated:
            self._fail("`not` without `in`", "write `not` before the whole comparison")
        if self._accept("is"):
            negated = self._accept("not")
            if not self._accept("missing", "null"):
                self._fail("`is` without `missing`", "write `is missing` or `is not missing`; == compares values")
            missing = self._named(value).missing if self.table else _NO_ROWS.holds
            return Truth(~missing, missing) if negated else Truth(missing, ~missing)
        if self._now.kind != "sign":
            return self._by_itself(value)
        parts = []
        while self._now.kind == "sign":
            sign, self._place = self._now, self._place + 1
            other = self._value()
            parts.append(self._compared(value, sign, other))
            value = other
        return reduce(Truth.with_other, parts)

    def _value(self) -> _Token:
        """Step over a number, a text or a name."""
        token = self._now
        if token.kind not in {"number", "text", "quoted", "word"} or token.is_word(*_KEYWORDS):
            ends = token.kind == "end"
            what = "a value is missing at the end" if ends else f"{token.text!r} instead of a value"
            usual = f"write a column, a number or 'a text', {_such_as()}"
            self._fail(what, f"one of {', '.join(_SIGNS)} stands between values" if token.kind == "sign" else usual)
        self._place += 1
        return token

    # What is found of a table; without one a condition is only read.

    def _column(self, token: _Token) -> Column | None:
        """Return the column that is meant; None where a value is: in double quotes where no column is called so, too."""
        if self.table is None or token.kind in {"number", "text"}:
            return None
        names = self.table.names
        if token.text not in names:
            if token.kind == "quoted" or token.is_word(*_TRUTH):
                return None
            self._unknown(token)
        self.columns[token.text] = check_usable(self.table.select([token.text])).columns[0]
        return self.columns[token.text]

    def _unknown(self, token: _Token) -> NoReturn:
        """Refuse a name that no column has."""
        table: Any = self.table
        error = unknown_column(
            token.text, table.name, table.names, f"condition for rows: no column of {table.name} is {token.text!r}"
        )
        error.where |= {"text": self.text, "position": token.at + 1}
        if token.text.casefold() in _NOTHING:
            error.hint = "write `is missing` or `is not missing`"
        elif any(one.is_category and token.text in one.levels for one in table.columns):
            error.hint = f"a text stands between single quotes: {_quoted(token.text)}"
        elif self.columns and token.kind == "word" and not str(error.hint).endswith("?"):
            error.hint = f"{error.hint}; a text stands between single quotes"
        raise error

    def _named(self, token: _Token) -> Column:
        """Return the column that a value must be."""
        column = self._column(token)
        if column is None and token.kind == "quoted":
            self._unknown(token)
        return column or self._fail(f"{token.text!r} is no column", f"name one, {_such_as()}", token)

    def _by_itself(self, token: _Token) -> Truth:
        """Return for which rows a column of true and false is true."""
        if self.table is None:
            return _NO_ROWS
        column = self._named(token)
        if not column.is_category or not _of_truth(column):
            what = f"column {column.name!r} is {column.kind}, and neither true nor false"
            self._fail(what, f"compare it, as in {_shown(column)}", token)
        return self._with_value(column, operator.eq, _Token("text", "true", token.at))

    def _among(self, token: _Token) -> Truth:
        """Read values between parentheses, and return for which rows a column has one of them."""
        opened = self._now.at
        if not self._accept("("):
            self._fail("`in` without a list", "write values between parentheses: site in ('north', 'south')")
        values = [self._value()]
        while self._accept(","):
            values.append(self._value())
        self._close(opened)
        if self.table is None:
            return _NO_ROWS
        column, found = self._named(token), np.zeros(self.table.n_rows, dtype=bool)
        for value in values:
            if self._column(value) is not None:
                self._fail("a column among values", "in (...) lists numbers, and texts between single quotes", value)
            found |= self._with_value(column, operator.eq, value).holds
        return Truth.of(found, column.missing)

    def _compared(self, left: _Token, sign: _Token, right: _Token) -> Truth:
        """Return for which rows two values, of which a column is at least one, compare so."""
        if self.table is None:
            return _NO_ROWS
        compare, first, second = _SIGNS[sign.text], self._column(left), self._column(right)
        if first is None and second is None:
            self._fail("two values and no column", f"name a column, {_such_as()}", left)
        if second is None:
            return self._with_value(first, compare, right)
        if first is None:
            return self._with_value(second, _TURNED.get(compare, compare), left)
        if first.digits is not None and second.digits is not None:
            return Truth.of(compare(first.digits, second.digits), first.missing | second.missing)
        if first.is_category != second.is_category or "date" in {first.kind, second.kind} != {"date"}:
            both = f"columns {first.name!r} ({first.kind}) and {second.name!r} ({second.kind})"
            self._fail(f"{both} cannot be compared", "compare columns of one kind", sign)
        values, others = first.values, second.values
        if first.is_category:
            levels = {level: place for place, level in enumerate(sorted({*first.levels, *second.levels}))}
            values, others = (np.array([*map(levels.get, one.levels), -1])[one.values] for one in (first, second))
        return Truth.of(compare(values, others), first.missing | second.missing)

    def _with_value(self, column: Column | None, compare: Compare, token: _Token) -> Truth:
        """Return for which rows a column compares so with a value, which is read as those of the column are."""
        if column is None:
            return _NO_ROWS
        is_number_here = token.kind == "number"
        if column.kind == "date" and (span := days_of(token.text)) is not None:
            return Truth.of(_of_days(column.values, compare, span), column.missing)
        if not column.is_category:
            plain = is_number_here or (column.form == PLAIN and is_number(token.text))
            number = _number(token.text) if plain else column.form.read_again(token.text)
            if number is None and column.kind == "date":
                # Without an offset it is one of UTC.
                number = YEAR_FIRST.read(token.text)
            if number is None and column.kind == "date" and OFFSET.read(token.text) is not None:
                what = f"column {column.name!r} has no UTC offsets, and {shown_value(token.text)} has one"
                self._fail(what, "leave the offset out", token)
            if number is None or (is_number_here and column.kind == "date"):
                what = f"column {column.name!r} holds {column.kind}s, and {shown_value(token.text)} is none"
                self._fail(what, f"write a value as the column has it: {_shown(column)}", token)
            # Floating-point numbers are compared as such.
            values, number = (column.values, float(number)) if column.digits is None else (column.digits, number)
            return Truth.of(compare(values, number), column.missing)
        if is_number_here:
            # Numbers that were taken for texts are numbers here.
            numbers = [_number(level) if is_number(level) else math.nan for level in column.levels]
            if numbers and all(map(math.isnan, numbers)):
                what = f"column {column.name!r} holds text, and {token.text} is a number"
                self._fail(what, f"text stands between single quotes: {_shown(column)}", token)
            wanted = _number(token.text)
            levels = np.array([compare(number, wanted) for number in numbers], dtype=bool)
        else:
            fold = str.casefold if _of_truth(column) else str
            levels = np.array([compare(fold(level), fold(token.text)) for level in column.levels], dtype=bool)
        if compare is operator.eq and not levels.any():
            self._absent.append((token.text, column))
        return Truth.of(np.append(levels, False)[column.values], column.missing)


def _of_days(values: NDArray[np.float64], compare: Compare, span: tuple[float, float]) -> Mask:
    """Return which dates compare so with a year or month: later ones come after all of its days."""
    after, before = values >= span[1], values < span[0]
    within: Mask = ~after & ~before
    found: dict[Compare, Mask] = {operator.lt: before, operator.le: ~after, operator.gt: after, operator.ge: ~before}
    found |= {operator.eq: within, operator.ne: ~within}
    return found[compare]


def _number(text: str) -> float:
    """Return a number, whole ones with every digit."""
    return int(text) if _WHOLE(text) else float(text)


def _quoted(text: str) -> str:
    """Return a text as it stands in a condition."""
    return "'" + text.replace("'", "''") + "'"


def _such_as() -> str:
    """Return an example."""
    return f"such as {option('where', 'year == 2009 and price > 0')}"


def _of_truth(column: Column) -> bool:
    """Say whether all texts of a column are true or false."""
    return _TRUTH.issuperset(map(str.casefold, column.levels))


def _shown(column: Column) -> str:
    """Return a comparison of a column with a value that it could have."""
    value = {"number": "0", "date": "'2025-12-31'"}.get(column.kind, _quoted((column.levels or ("a",))[0]))
    return f"{as_name(column.name)} == {value}"
