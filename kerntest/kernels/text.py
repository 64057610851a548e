"""From a text to a kernel: "age, income: gaussian(1.5) + 0.5*linear; city: delta".

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
from typing import TYPE_CHECKING, NoReturn, TypeVar

from kerntest.errors import UsageError, suggest
from kerntest.kernels import ALIASES, NAMES, NORMALISE, canonical
from kerntest.kernels.algebra import Constant, Expression, Normalised, Power, Product, Sum
from kerntest.kernels.catalogue import KERNELS, usage
from kerntest.kernels.columns import Additive, ColumnGroups, Group
from kerntest.kernels.grouptext import GroupSpan, shortened, split_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.kernels.algebra import Atom
    from kerntest.kernels.base import Kernel

# Far below Python's own limit; nobody writes, or reads, fifty parentheses within each other.
DEEPEST = 50

NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?")
SIGNED = re.compile(rf"[+-]?\s*({NUMBER.pattern}|(nan|inf(inity)?)\b)", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(-[A-Za-z][A-Za-z0-9_]*)*")
SPACE = re.compile(r"\s*")

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
    groups = split_groups(text)
    if not groups:
        return _Reader(text, 0, len(text)).whole_sum()
    return _located(text, 0, lambda: ColumnGroups(tuple(_group(text, group) for group in groups)))


def _group(text: str, span: GroupSpan) -> Group:
    return Group(span.names, _Reader(text, span.start, span.end).whole_sum())


def _located(text: str, position: int, build: Callable[[], Built]) -> Built:
    """Return build(); an error it raises without a place gets this one, and the text it happened in."""
    try:
        return build()
    except UsageError as error:
        if error.code == "usage.kernel_text":
            raise
        place = error.where.get("position", position + 1)
        message = f"{error.message}, at character {place} of {shortened(text)}"
        where = error.where | {"position": place}
        raise UsageError(message, hint=error.hint, code="usage.kernel_text", where=where) from None


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
        self.space()
        if self.position == self.end:
            self.fail("the kernel text is empty", hint="for example 'gaussian', or 'gaussian(1.5) + linear'")
        kernel = self.sum()
        if self.position < self.end:
            self.unexpected()
        return kernel

    def sum(self) -> Expression:
        """Read products joined by plus signs."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"more than {DEEPEST} parentheses within each other", hint="leave out those that are not needed")
        terms = [self.product()]
        while self.accept("+"):
            terms.append(self.product())
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Sum(tuple(terms))

    def product(self) -> Expression:
        """Read powers joined by asterisks."""
        factors = [self.power()]
        while not self.at("**") and self.accept("*"):
            factors.append(self.power())
        return factors[0] if len(factors) == 1 else Product(tuple(factors))

    def power(self) -> Expression:
        """Read an operand and the exponent that may follow it."""
        operand = self.operand()
        if not (self.accept("^") or self.accept("**")):
            return operand
        start = self.position
        exponent = self.number("an exponent")
        kernel = _located(self.text, start, lambda: Power(operand, exponent))
        if self.at("^") or self.at("**"):
            self.fail("an exponent on an exponent", hint="write (kernel^2)^3, or multiply the exponents")
        return kernel

    def operand(self) -> Expression:
        """Read a number, a named kernel, or a sum in parentheses."""
        start = self.position
        if self.accept("("):
            kernel = self.sum()
            self.close(start)
            return kernel
        number = self.match(NUMBER)
        if number is not None:
            return _located(self.text, start, lambda: Constant(float(number)))
        name = self.match(NAME)
        if name is not None:
            return self.named(name, start)
        return self.missing_operand()

    def missing_operand(self) -> NoReturn:
        """Say why no kernel begins here."""
        if self.position == self.end:
            self.fail(
                "a kernel is missing at the end", hint="write a kernel after the last sign, or leave the sign out"
            )
        if self.at("-"):
            self.fail("a kernel cannot have a negative weight", hint="the sum would not need to be positive definite")
        self.unexpected()

    def named(self, word: str, start: int) -> Expression:
        """Read what follows the name of a kernel."""
        name = canonical(word)
        if name == NORMALISE:
            opened = self.position
            if not self.accept("("):
                self.fail(f"'{word}' needs a kernel in parentheses", hint="for example normalise(polynomial)")
            kernel = self.sum()
            self.close(opened)
            return Normalised(kernel)
        if name not in KERNELS:
            self.unknown(word, start)
        named = KERNELS[name]
        opened = self.position
        if not self.accept("("):
            return named()
        if issubclass(named, Additive):
            return self.additive(opened)
        values, places = self.arguments(named)
        self.close(opened)
        return self.built(named, values, places)

    def additive(self, opened: int) -> Additive:
        """Read any number of bandwidths up to the closing parenthesis."""
        bandwidths: list[float] = []
        while not self.at(")"):
            place = self.position
            bandwidths.append(self.number("a bandwidth", f"write {Additive.usage}"))
            self.built(lambda bandwidth: Additive((bandwidth,)), {"bandwidth": bandwidths[-1]}, {"bandwidth": place})
            if not self.accept(","):
                break
        self.close(opened)
        return Additive(tuple(bandwidths))

    def built(self, kernel: Callable[..., Built], values: dict[str, float], places: dict[str, int]) -> Built:
        """Return the kernel with these arguments; if one is refused, the error points at it."""
        try:
            return kernel(**values)
        except UsageError as error:
            place = places.get(str(error.where.get("argument")), self.position)
            self.fail(error.message, hint=error.hint, at=place, value=str(error.where.get("value", "")))

    def arguments(self, kernel: type[Atom]) -> tuple[dict[str, float], dict[str, int]]:
        """Read the arguments of a kernel up to the closing parenthesis; return their values and places."""
        names = [each.name for each in fields(kernel)]
        choices = {each.name: "leave it out to have it chosen" for each in fields(kernel) if each.default is None}
        values: dict[str, float] = {}
        places: dict[str, int] = {}
        named = False
        if self.at(")"):
            return values, places
        while True:
            start = self.position
            name = self.argument_name(kernel, names)
            if name is None:
                if len(places) >= len(names):
                    self.fail(f"too many arguments for '{kernel.name}'", hint=f"write {usage(kernel)}")
                if named:
                    self.fail("an argument without a name after one with a name", hint=f"write {usage(kernel)}")
                name = names[len(places)]
            else:
                named = True
            if name in values:
                self.fail(f"'{name}' is given twice", hint=f"write {usage(kernel)}", at=start, value=name)
            places[name] = self.position
            values[name] = self.number(f"a number for '{name}'", choices.get(name))
            if not self.accept(","):
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
            self.fail(
                f"'{kernel.name}' has no argument '{word}'", hint=f"{hint}write {usage(kernel)}", at=start, value=word
            )
        return name

    def number(self, what: str, hint: str | None = None) -> float:
        """Read a number, which may have a sign."""
        start = self.position
        found = self.match(SIGNED)
        if found is None:
            word = self.match(NAME)
            self.position = start
            self.fail(f"{what} is missing", hint=hint, value=word)
        return float(re.sub(r"\s", "", found))

    def close(self, opened: int) -> None:
        """Read the parenthesis that closes the one at `opened`."""
        if self.accept(")"):
            return
        if self.position < self.end:
            self.unexpected()
        self.fail("this parenthesis is never closed", hint="add a ')'", at=opened)

    def unknown(self, word: str, start: int) -> NoReturn:
        """Say that no kernel has this name."""
        head, hyphen, _ = word.partition("-")
        if hyphen and canonical(head) in KERNELS:
            self.subtracted(start + len(head))
        meant = suggest(word.replace("_", "-"), (*NAMES, NORMALISE, *ALIASES))
        found = f"did you mean '{meant}'? " if meant else ""
        self.fail(f"unknown kernel '{word}'", hint=f"{found}`kerntest kernels` lists them", at=start, value=word)

    def subtracted(self, position: int) -> NoReturn:
        """Say that there is no minus sign."""
        self.fail(
            "kernels cannot be subtracted: the difference need not be positive definite",
            hint="use '+', '*' and '^'",
            at=position,
            value="-",
        )

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
        self.fail(f"unexpected {mark!r}", hint=hints.get(mark, "kernels are joined by '+' and '*'"), value=mark)

    def fail(self, what: str, *, hint: str | None = None, at: int | None = None, value: str | None = None) -> NoReturn:
        """Raise the error, with its place."""
        place = (self.position if at is None else at) + 1
        where: dict[str, str | int] = {"position": place}
        if value is not None:
            where["value"] = value
        raise UsageError(
            f"{what} at character {place} of {shortened(self.text)}", hint=hint, code="usage.kernel_text", where=where
        )

    def space(self) -> None:
        """Skip white space."""
        self.match(SPACE, spaced=False)

    def match(self, pattern: re.Pattern[str], *, spaced: bool = True) -> str | None:
        """Read what matches, and the space after it; None if nothing does."""
        found = pattern.match(self.text, self.position, self.end)
        if found is None:
            return None
        self.position = found.end()
        if spaced:
            self.space()
        return found.group()

    def at(self, mark: str) -> bool:
        """Return whether `mark` stands here."""
        return self.text.startswith(mark, self.position, self.end)

    def accept(self, mark: str) -> bool:
        """Read `mark` and the space after it, if it stands here."""
        if not self.at(mark):
            return False
        self.position += len(mark)
        self.space()
        return True
