"""Kernels in words: from a text to a kernel, what there is to say about each, and what one cannot see, in a sentence.

A text is such as "age, income: gaussian(1.5) + 0.5*linear; city: delta".

The grammar; spaces are free, names fold case and take `_` for `-`:

    kernel   = sum | group (";" group)*
    group    = column ("," column)* ":" sum
    sum      = product ("+" product)*
    product  = power ("*" power)*
    power    = operand (("^" | "**") number)?
    operand  = number | name ("(" argument ("," argument)* ")")? | "normalise" "(" sum ")" | "(" sum ")"
    argument = (name "=")? number

`str(kernel)` writes it. The reader descends by hand and evaluates nothing but numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from kerntest.errors import UsageError, suggest
from kerntest.kernels import ADDITIVE, ALIASES, NAMES, NORMALISE, canonical
from kerntest.kernels.algebra import Constant, Expression, Normalised, Power, Product, Sum, format_number
from kerntest.kernels.column_groups import (
    QUOTES,
    Additive,
    AdditiveSum,
    BoundGroups,
    ColumnGroups,
    ColumnName,
    Group,
    OnColumns,
    is_additive,
)
from kerntest.kernels.elementary import Atom, Linear, Periodic, Polynomial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kerntest.kernels.base import Kernel

# A new kernel is one class, and its name in `kernels/__init__`.
KERNELS: dict[str, type[Atom | Additive]] = {name: Atom.NAMED.get(name, Additive) for name in NAMES}

# Far below Python's own limit; nobody writes, or reads, fifty parentheses within each other.
DEEPEST = 50
# Of a text so much is shown in messages.
LONGEST = 60

NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?")
SIGNED = re.compile(rf"[+-]?\s*({NUMBER.pattern}|(nan|inf(inity)?)\b)", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(-[A-Za-z][A-Za-z0-9_]*)*")
SPACE = re.compile(r"\s*")
# A name in quotes, in which a doubled quote stands for one.
QUOTED = re.compile(r"(['\"`])((?:(?!\1).|\1\1)*+)\1", re.DOTALL)

MARK = re.compile("[,:;]")

Built = TypeVar("Built")


def parse_kernel(text: str) -> Kernel:
    """Read a kernel from its text.

    Parameters
    ----------
    text : str
        For example "gaussian(1.5) + 0.5*linear", or with columns "age: gaussian; city: delta; *: laplacian".

    Returns
    -------
    Kernel
        An `Expression`, or `ColumnGroups` if the text names columns. Bandwidths not given are free.

    Raises
    ------
    UsageError
        If the text is no kernel; ``where["position"]`` is the character, counted from 1.
    """
    groups: list[list[_Piece]] = [[]]
    for piece in _pieces(text):
        groups[-1].append(piece)
        if piece.mark == ";":
            groups.append([])
    if not any(piece.mark in (":", ";") for pieces in groups for piece in pieces):
        return _Reader(text, 0, len(text)).whole_sum()
    return _built(text, 0, ColumnGroups, tuple(_group(text, group) for group in groups))


class _Piece(NamedTuple):
    """A stretch of text, from its first character that is no space, and the mark that ends it: `,`, `:`, `;`, or none."""

    first: int
    # The name in quotes that it may begin with.
    quoted: re.Match[str] | None
    end: int
    mark: str


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield what stands between the marks outside quotes. Only a piece that begins with a quote is quoted."""
    end = -1
    while end < len(text):
        first = _after_space(text, end + 1)
        quoted = QUOTED.match(text, first)
        if quoted is None and text[first : first + 1] in tuple(QUOTES):
            _fail(text, first, f"the quote {text[first]} is never closed", hint=f"add another {text[first]}")
        mark = MARK.search(text, quoted.end() if quoted else first)
        end = mark.start() if mark else len(text)
        yield _Piece(first, quoted, end, text[end : end + 1])


def _group(text: str, pieces: list[_Piece]) -> Group:
    """Return a group from its pieces: names up to the first colon, and the kernel behind it."""
    hint = "write 'columns: kernel'"
    first, end = pieces[0].first, pieces[-1].end
    if first >= end:
        _fail(text, min(first, end), "empty group", hint=f"{hint} between two ';'")
    colon = next((number for number, piece in enumerate(pieces) if piece.mark == ":"), None)
    if colon is None:
        _fail(text, first, f"a ':' is missing in the group '{text[first:end].rstrip()}'", hint=hint)
    names = tuple(_column_name(text, piece) for piece in pieces[: colon + 1])
    start = pieces[colon].end + 1
    if _after_space(text, start) >= end:
        _fail(text, start - 1, "no kernel after the ':'", hint=hint)
    return Group(names, _Reader(text, start, end).whole_sum())


def _column_name(text: str, piece: _Piece) -> ColumnName:
    if piece.quoted:
        rest = _after_space(text, piece.quoted.end())
        if rest < piece.end:
            hint = "put the whole name in quotes, or a ',' behind it"
            _fail(text, rest, "text after a quoted column", hint=hint)
        quote, name = piece.quoted.groups()
        return ColumnName(name.replace(2 * quote, quote), position=piece.first + 1)
    name = text[piece.first : piece.end].strip()
    if not name:
        _fail(text, piece.end, "a column name is missing", hint="write 'columns: kernel', or '*' for all other columns")
    return ColumnName(name, wildcard="*" in name, position=piece.first + 1)


def _after_space(text: str, position: int) -> int:
    found = SPACE.match(text, position)
    return found.end() if found else position


def _fail(text: str, position: int, what: str, *, hint: str | None, value: str | None = None) -> NoReturn:
    """Raise an error of the text, with its place and the text, on one line, or its beginning."""
    shown = repr(text) if len(text) <= LONGEST else repr(text[:LONGEST]) + "..."
    where: dict[str, str | int] = {"position": position + 1}
    if value is not None:
        where["value"] = value
    message = f"{what} at character {position + 1} of {shown}"
    raise UsageError(message, hint=hint, code="usage.kernel_text", where=where)


def _built(
    text: str, position: int, make: Callable[..., Built], *values: object, places: Mapping[str, int] | None = None
) -> Built:
    """Return make(values); where it refuses one of them, the error points at its place in the text."""
    try:
        return make(*values)
    except UsageError as error:
        if error.code == "usage.kernel_text":
            raise
        place = (places or {}).get(str(error.where.get("argument")), position)
        place = int(error.where.get("position", place + 1)) - 1
        value = error.where.get("value")
        _fail(text, place, f"{error.message},", hint=error.hint, value=None if value is None else str(value))


@dataclass(slots=True)
class _Reader:
    """Reads one sum from text[position:end]; positions count from 0 inside, from 1 in messages."""

    text: str
    position: int
    end: int
    # Parentheses around what is read; the whole sum has none.
    depth: int = -1

    def whole_sum(self) -> Expression:
        """Return the kernel that makes up the whole of the text."""
        self.match(SPACE)
        if self.position == self.end:
            self.fail("the kernel text is empty", "for example 'gaussian', or 'gaussian(1.5) + linear'")
        kernel = self.sum()
        if self.position < self.end:
            self.unexpected()
        return kernel

    def sum(self) -> Expression:
        """Read products joined by plus signs."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"more than {DEEPEST} parentheses within each other", "leave out those that are not needed")
        terms = self.joined(self.product, "+")
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Sum(terms)

    def product(self) -> Expression:
        """Read powers joined by asterisks."""
        factors = self.joined(self.power, "*")
        return factors[0] if len(factors) == 1 else Product(factors)

    def joined(self, read: Callable[[], Expression], sign: str) -> tuple[Expression, ...]:
        """Read one operand or more with a sign between them."""
        operands = [read()]
        while self.accept(sign):
            operands.append(read())
        return tuple(operands)

    def power(self) -> Expression:
        """Read an operand and the exponent that may follow it."""
        operand = self.operand()
        if not (self.accept("^") or self.accept("**")):
            return operand
        start = self.position
        kernel = _built(self.text, start, Power, operand, self.number("an exponent"))
        if self.at("^") or self.at("**"):
            self.fail("an exponent on an exponent", "write (kernel^2)^3, or multiply the exponents")
        return kernel

    def operand(self) -> Expression:
        """Read a number, a named kernel, or a sum in parentheses."""
        start = self.position
        if self.accept("("):
            return self.enclosed(start)
        if (number := self.match(NUMBER)) is not None:
            return _built(self.text, start, Constant, float(number))
        if (name := self.match(NAME)) is not None:
            return self.named(name, start)
        if self.position == self.end:
            self.fail("a kernel is missing at the end", "write a kernel after the last sign, or leave the sign out")
        if self.at("-"):
            self.fail("a kernel cannot have a negative weight", "the sum would not need to be positive definite")
        return self.unexpected()

    def enclosed(self, opened: int) -> Expression:
        """Read the rest of a sum in parentheses."""
        kernel = self.sum()
        self.close(opened)
        return kernel

    def named(self, word: str, start: int) -> Expression:
        """Read what follows the name of a kernel."""
        name, opened = canonical(word), self.position
        if name == NORMALISE:
            if not self.accept("("):
                self.fail(f"'{word}' needs a kernel in parentheses", "for example normalise(polynomial)")
            return Normalised(self.enclosed(opened))
        if name not in KERNELS:
            if "-" in word and canonical(word.partition("-")[0]) in KERNELS:
                self.subtracted(start + word.index("-"))
            meant = suggest(word.replace("_", "-"), (*NAMES, NORMALISE, *ALIASES))
            found = f"did you mean '{meant}'? " if meant else ""
            self.fail(f"unknown kernel '{word}'", f"{found}`kerntest kernels` lists them", at=start, value=word)
        named = KERNELS[name]
        if not self.accept("("):
            return named()
        if issubclass(named, Additive):
            bandwidths = self.bandwidths()
            self.close(opened)
            return Additive(bandwidths)
        values, places = self.arguments(named)
        self.close(opened)
        return _built(self.text, self.position, lambda: named(**values), places=places)

    def bandwidths(self) -> tuple[float, ...]:
        """Read any number of bandwidths up to the closing parenthesis."""
        found: list[float] = []
        while not self.at(")"):
            place = self.position
            found.append(self.number("a bandwidth", f"write {Additive.usage()}"))
            _built(self.text, place, Additive, (found[-1],))
            if not self.accept(","):
                break
        return tuple(found)

    def arguments(self, kernel: type[Atom]) -> tuple[dict[str, float], dict[str, int]]:
        """Read the arguments of a kernel up to the closing parenthesis; return their values and places."""
        may_stay_open = {each.name: each.default is None for each in fields(kernel)}
        names, hint = list(may_stay_open), f"write {kernel.usage()}"
        values: dict[str, float] = {}
        places: dict[str, int] = {}
        named = False
        while values or not self.at(")"):
            start = self.position
            name = self.argument_name(kernel, names)
            if name is None and len(places) >= len(names):
                self.fail(f"too many arguments for '{kernel.name}'", hint)
            if name is None and named:
                self.fail("an argument without a name after one with a name", hint)
            named = name is not None
            name = name or names[len(places)]
            if name in values:
                self.fail(f"'{name}' is given twice", hint, at=start, value=name)
            places[name] = self.position
            way_out = "leave it out to have it chosen" if may_stay_open[name] else None
            values[name] = self.number(f"a number for '{name}'", way_out)
            if not self.accept(","):
                break
        return values, places

    def argument_name(self, kernel: type[Atom], names: list[str]) -> str | None:
        """Read "name =" if it is there and return the name."""
        start = self.position
        word = self.match(NAME)
        if word is None or not self.accept("="):
            self.position = start
            return None
        name = word.lower().replace("-", "_")
        if name not in names:
            meant = suggest(name, names)
            hint = f"did you mean '{meant}'? " if meant else ""
            what = f"'{kernel.name}' has no argument '{word}'"
            self.fail(what, f"{hint}write {kernel.usage()}", at=start, value=word)
        return name

    def number(self, what: str, hint: str | None = None) -> float:
        """Read a number, which may have a sign."""
        found = self.match(SIGNED)
        if found is None:
            word = NAME.match(self.text, self.position, self.end)
            self.fail(f"{what} is missing", hint, value=word and word.group())
        return float(re.sub(r"\s", "", found))

    def close(self, opened: int) -> None:
        """Read the parenthesis that closes the one at `opened`."""
        if not self.accept(")"):
            if self.position < self.end:
                self.unexpected()
            self.fail("this parenthesis is never closed", "add a ')'", at=opened)

    def subtracted(self, position: int) -> NoReturn:
        """Say that there is no minus sign."""
        what = "kernels cannot be subtracted: the difference need not be positive definite"
        self.fail(what, "use '+', '*' and '^'", at=position, value="-")

    def unexpected(self) -> NoReturn:
        """Say that what stands here cannot."""
        mark = self.text[self.position]
        if mark == "-":
            self.subtracted(self.position)
        hints = {
            ")": "no parenthesis is open here",
            ":": "separate groups by ';'",
            "/": "write 0.5*kernel for half of it",
        }
        self.fail(f"unexpected {mark!r}", hints.get(mark, "kernels are joined by '+' and '*'"), value=mark)

    def fail(self, what: str, hint: str | None, *, at: int | None = None, value: str | None = None) -> NoReturn:
        """Raise the error, with its place: here, if no other is given."""
        _fail(self.text, self.position if at is None else at, what, hint=hint, value=value)

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Read what matches, and the space after it; None if nothing does."""
        found = pattern.match(self.text, self.position, self.end)
        if found is None:
            return None
        self.position = min(_after_space(self.text, found.end()), self.end)
        return found.group()

    def at(self, mark: str) -> bool:
        """Return whether `mark` stands here."""
        return self.text.startswith(mark, self.position, self.end)

    def accept(self, mark: str) -> bool:
        """Read `mark` and the space after it, if it stands here."""
        return self.match(re.compile(re.escape(mark))) is not None


def kernel_entries() -> list[dict[str, Any]]:
    """Return what there is to say about each kernel, in the order of the catalogue."""
    return [
        {
            "name": name,
            "usage": kernel.usage(),
            "formula": kernel.formula,
            "positive_definite": kernel().positive_definite,
            "characteristic": kernel().characteristic,
            "remark": kernel.remark,
            "aliases": [alias for alias, meant in ALIASES.items() if meant == name],
        }
        for name, kernel in KERNELS.items()
    ]


def why_not_characteristic(kernel: Kernel) -> str | None:
    """Return what any kernel, bound to columns or not, does not see, as one sentence; None for a characteristic one."""
    if kernel.characteristic:
        return None
    culprit = kernel
    if isinstance(kernel, BoundGroups):
        culprit = next(one for one in kernel.parts if not one.characteristic)
    limit = _limit(culprit) if isinstance(culprit, Expression) else None
    consequence = "a value of zero does not mean that the distributions are equal"
    # Its text has a number for each column.
    name = ADDITIVE if is_additive(culprit) else str(culprit)
    return f"'{name}' {limit or 'is not known to see every difference'}: {consequence}"


def _limit(kernel: Expression) -> str | None:
    """Return what the kernel sees only, as the end of a sentence."""
    if not kernel.positive_definite:
        return "is not positive definite"
    order = _moment_order(kernel)
    if order is not None:
        few = {0: "is constant and sees nothing", 1: "sees only differences of means"}
        return few.get(int(order), f"sees only moments up to order {format_number(order)}")
    if isinstance(kernel, Periodic):
        return f"cannot tell values apart that differ by its period, {format_number(kernel.period)}"
    if isinstance(kernel, OnColumns) and kernel.only_sees_ties:
        return "sees only values that occur more than once in a numeric column"
    if isinstance(kernel, (Additive, AdditiveSum)):
        return "sees each column alone, not how they hang together"
    if isinstance(kernel, Sum) and len(kernel.kinds) > 1:
        return "sees numeric columns and categories apart, not how they hang together"
    # Moments of rows divided by their size: of neither the data nor any fixed order.
    if isinstance(kernel, Normalised) and _moment_order(kernel.kernel) is not None:
        return None
    varying = [part for part in kernel.parts if not isinstance(part, Constant)]
    return _limit(varying[0]) if len(varying) == 1 else None


def _moment_order(kernel: Expression) -> float | None:
    """Return p where the kernel is a polynomial of degree p in <x, y>, else None."""
    if not kernel.kinds:
        return 0.0
    if isinstance(kernel, Linear):
        return 1.0
    if isinstance(kernel, Polynomial):
        return kernel.degree if kernel.gain else 0.0
    if isinstance(kernel, Power):
        order = _moment_order(kernel.kernel)
        return None if order is None else order * kernel.exponent
    if isinstance(kernel, OnColumns) and not kernel.only_sees_ties:
        return _moment_order(kernel.kernel)
    if isinstance(kernel, Sum | Product):
        if isinstance(kernel, Product) and any(part == Constant(0) for part in kernel.parts):
            return 0.0
        orders = [order for order in map(_moment_order, kernel.parts) if order is not None]
        if len(orders) == len(kernel.parts):
            return max(orders) if isinstance(kernel, Sum) else sum(orders)
    return None
