"""Kernels in words: from a text to a kernel and to the columns of a table, and what each kernel cannot see, in a sentence.

A text is such as "age, income: gaussian(1.5) + 0.5*linear; city: delta".

The grammar; spaces are free, names fold case and take `_` for `-`:

    kernel   = sum | group (";" group)*
    group    = column ("," column)* ":" sum
    sum      = product ("+" product)*
    product  = power ("*" power)*
    power    = operand (("^" | "**") number)?
    operand  = number | name ("(" argument ("," argument)* ")")? | ("normalise" | "exp")? "(" sum ")"
             | "mahalanobis" ("(" (sum | (sum ",")? ("share" "=")? number) ")")?
    argument = (name "=")? number

`str(kernel)` writes it. The reader descends by hand and evaluates nothing but numbers.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

from kerntest.errors import UsageError, shown_argument, suggest
from kerntest.kernels import ADDITIVE, ALIASES, AROUND, EXP, MAHALANOBIS, NAMES, NORMALISE, algebra, canonical
from kerntest.kernels.algebra import AdditiveSum, ColumnGroups, ColumnName, Expression, OnColumns
from kerntest.kernels.base import Columns, Kernel, refused
from kerntest.kernels.elementary import Additive, Atom, Gaussian, Hamming, Linear, Mahalanobis, Periodic, Polynomial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# A new kernel is one class, and its name in `kernels/__init__`.
KERNELS: dict[str, type[Atom | Additive | Mahalanobis]] = {
    **{name: Atom.NAMED[name] for name in NAMES if name in Atom.NAMED},
    ADDITIVE: Additive,
    MAHALANOBIS: Mahalanobis,
}

# Far below Python's own limit; nobody writes, or reads, fifty parentheses within each other.
DEEPEST = 50
# Of a text so much is shown in messages.
LONGEST = 60

NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?")
SIGNED = re.compile(rf"[+-]?\s*({NUMBER.pattern}|(nan|inf(inity)?)\b)", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(-[A-Za-z][A-Za-z0-9_]*)*")
SPACE = re.compile(r"\s*")
SHARE = re.compile(r"share\s*=", re.IGNORECASE)
POWER = re.compile(r"\^|\*\*")
# What stands before a mark or the end: it may begin with a name in quotes, in which a doubled quote stands for one.
QUOTED = r"(?P<quote>['\"`])(?P<name>(?:(?!(?P=quote)).|(?P=quote){2})*+)(?P=quote)"
PIECE = re.compile(rf"\s*(?P<all>(?P<quoted>{QUOTED})?[^,:;]*)(?P<mark>[,:;]|\Z)", re.DOTALL)
UNEXPECTED = {
    ")": "no parenthesis is open here",
    ":": "separate groups by ';'",
    "/": "write 0.5*kernel for half of it",
}
COLUMNS_HINT = "write 'columns: kernel'"

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
        An `Expression`; `ColumnGroups` if the text names columns. Bandwidths not given are free.

    Raises
    ------
    UsageError
        If the text is no kernel; ``where["position"]`` is the character, counted from 1.
    """
    return _Reader(text).kernel()


class _Reader:
    """Reads a kernel from text[position:end]; positions count from 0 inside, from 1 in messages."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            hint = "such as 'gaussian(1.5)'; `kerntest kernels` lists them"
            raise UsageError(f"a kernel is a text, not {shown_argument(text)}", hint=hint, code="usage.kernel")
        self.text, self.position, self.end = text, 0, len(text)
        # Parentheses around what is read; the whole sum has none.
        self.depth = -1

    def kernel(self) -> Kernel:
        """Return the kernel of the whole text."""
        groups: list[list[re.Match[str]]] = [[]]
        for piece in PIECE.finditer(self.text):
            quote = piece["all"][:1]
            if not piece["quoted"] and quote in tuple(algebra.QUOTES):
                self.fail(f"the quote {quote} is never closed", f"add another {quote}", at=piece.start("all"))
            groups[-1].append(piece)
            if piece["mark"] == ";":
                groups.append([])
            if not piece["mark"]:
                break
        if not {piece["mark"] for pieces in groups for piece in pieces} & {":", ";"}:
            return self.whole_sum(0, len(self.text))
        return self.built(ColumnGroups, tuple(map(self.group, groups)), at=0)

    def group(self, pieces: list[re.Match[str]]) -> OnColumns:
        """Return a group from what stands between its marks: names up to the first colon, and the kernel behind it."""
        first, end = pieces[0].start("all"), pieces[-1].end("all")
        if first == end:
            self.fail("empty group", f"{COLUMNS_HINT} between two ';'", at=first)
        colon = next((number for number, piece in enumerate(pieces) if piece["mark"] == ":"), None)
        if colon is None:
            self.fail(f"a ':' is missing in the group '{self.text[first:end].rstrip()}'", COLUMNS_HINT, at=first)
        names = tuple(map(self.column_name, pieces[: colon + 1]))
        start = pieces[colon].end()
        if not self.text[start:end].strip():
            self.fail("no kernel after the ':'", COLUMNS_HINT, at=start - 1)
        return OnColumns(self.whole_sum(start, end), names=names)

    def column_name(self, piece: re.Match[str]) -> ColumnName:
        """Return the name of a column."""
        position = piece.start("all") + 1
        if piece["quoted"]:
            rest = self.after_space(piece.end("quoted"))
            if rest < piece.end("all"):
                self.fail("text after a quoted column", "put the whole name in quotes, or a ',' behind it", at=rest)
            return ColumnName(piece["name"].replace(2 * piece["quote"], piece["quote"]), position=position)
        name = piece["all"].strip()
        if not name:
            self.fail("a column name is missing", f"{COLUMNS_HINT}, or '*' for all other columns", at=piece.end("all"))
        return ColumnName(name, wildcard="*" in name, position=position)

    def whole_sum(self, start: int, end: int) -> Expression:
        """Return the kernel that makes up the whole of a stretch of text."""
        self.position, self.end = start, end
        self.match(SPACE)
        if self.position == end:
            self.fail("the kernel text is empty", "for example 'gaussian', or 'gaussian(1.5) + linear'")
        kernel = self.sum()
        if self.position < end:
            self.unexpected()
        return kernel

    def sum(self) -> Expression:
        """Read products joined by plus signs."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"more than {DEEPEST} parentheses within each other", "leave out those that are not needed")
        kernel = self.joined(lambda: self.joined(self.power, "*", algebra.Product), "+", algebra.Sum)
        self.depth -= 1
        return kernel

    def joined(self, read: Callable[[], Expression], sign: str, kind: type[algebra.Combination]) -> Expression:
        """Read one operand or more with a sign between them."""
        operands = [read()]
        while self.accept(sign):
            operands.append(read())
        return operands[0] if len(operands) == 1 else kind(tuple(operands))

    def power(self) -> Expression:
        """Read an operand and the exponent that may follow it."""
        operand = self.operand()
        if self.match(POWER) is None:
            return operand
        start = self.position
        kernel = self.built(algebra.Power, operand, self.number("an exponent"), at=start)
        if POWER.match(self.text, self.position, self.end):
            self.fail("an exponent on an exponent", "write (kernel^2)^3, or multiply the exponents")
        return kernel

    def operand(self) -> Expression:
        """Read a number, a named kernel, or a sum in parentheses."""
        start = self.position
        if self.accept("("):
            return self.enclosed(start)
        if (number := self.match(NUMBER)) is not None:
            return self.built(algebra.Constant, float(number), at=start)
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
        if name in AROUND:
            if not self.accept("("):
                self.fail(f"'{word}' needs a kernel in parentheses", f"for example {name}(polynomial)")
            return {NORMALISE: algebra.Normalised, EXP: algebra.Exponentiated}[name](self.enclosed(opened))
        if name not in KERNELS:
            if "-" in word and canonical(word.partition("-")[0]) in KERNELS:
                self.subtracted(start + word.index("-"))
            hint = f"{_meant(word.replace('_', '-'), (*NAMES, *AROUND, *ALIASES))}`kerntest kernels` lists them"
            self.fail(f"unknown kernel '{word}'", hint, at=start, value=word)
        named = KERNELS[name]
        if not self.accept("("):
            return named()
        if issubclass(named, Additive):
            bandwidths: list[float] = []
            while not self.at(")"):
                place = self.position
                bandwidths.append(self.number("a bandwidth", f"write {Additive.usage()}"))
                self.built(Additive, (bandwidths[-1],), at=place)
                if not self.accept(","):
                    break
            self.close(opened)
            return Additive(tuple(bandwidths))
        if issubclass(named, Mahalanobis):
            return self.mahalanobis(start, opened)
        values, places = self.arguments(named)
        self.close(opened)
        return self.built(lambda: named(**values), at=self.position, places=places)

    def mahalanobis(self, start: int, opened: int) -> Mahalanobis:
        """Read a kernel, its share, or both; a number alone is the share."""
        given: dict[str, Any] = {}
        share = self.match(SHARE)
        if share is None and not self.at(")"):
            given["kernel"] = kernel = self.sum()
            if isinstance(kernel, algebra.Constant):
                given = {"share": kernel.value}
            elif self.accept(","):
                share = self.match(SHARE) or ","
        if share is not None:
            given["share"] = self.number("a share of the variances", f"write {Mahalanobis.usage()}")
        self.close(opened)
        return self.built(lambda: Mahalanobis(**given), at=start)

    def arguments(self, kernel: type[Atom]) -> tuple[dict[str, float], dict[str, int]]:
        """Read the arguments of a kernel up to the closing parenthesis; return their values and places."""
        may_stay_open = {each.name: each.default is None for each in fields(kernel)}
        names, hint = list(may_stay_open), f"write {kernel.usage()}"
        values: dict[str, float] = {}
        places: dict[str, int] = {}
        named = False
        while values or not self.at(")"):
            start = self.position
            word = self.match(NAME)
            if word is not None and self.accept("="):
                named, name = True, word.lower().replace("-", "_")
                if name not in names:
                    message = f"'{kernel.name}' has no argument '{word}'"
                    self.fail(message, _meant(name, names) + hint, at=start, value=word)
            else:
                self.position = start
                if len(places) >= len(names):
                    self.fail(f"too many arguments for '{kernel.name}'", hint)
                if named:
                    self.fail("an argument without a name after one with a name", hint)
                name = names[len(places)]
            if name in values:
                self.fail(f"'{name}' is given twice", hint, at=start, value=name)
            places[name] = self.position
            way_out = "leave it out to have it chosen" if may_stay_open[name] else None
            values[name] = self.number(f"a number for '{name}'", way_out)
            if not self.accept(","):
                break
        return values, places

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
        self.fail(f"unexpected {mark!r}", UNEXPECTED.get(mark, "kernels are joined by '+' and '*'"), value=mark)

    def fail(self, what: str, hint: str | None, *, at: int | None = None, value: str | None = None) -> NoReturn:
        """Raise an error with its place: here, if no other is given; and the text, on one line, or its beginning."""
        position = (self.position if at is None else at) + 1
        shown = repr(self.text) if len(self.text) <= LONGEST else repr(self.text[:LONGEST]) + "..."
        where: dict[str, str | int] = {"position": position} | ({} if value is None else {"value": value})
        message = f"{what} at character {position} of {shown}"
        raise UsageError(message, hint=hint, code="usage.kernel_text", where=where)

    def built(
        self, make: Callable[..., Built], *values: object, at: int, places: dict[str, int] | None = None
    ) -> Built:
        """Return make(values); where it refuses one of them, the error points at its place in the text."""
        try:
            return make(*values)
        except UsageError as error:
            place = (places or {}).get(str(error.where.get("argument")), at)
            place, value = int(error.where.get("position", place + 1)) - 1, error.where.get("value")
            self.fail(f"{error.message},", error.hint, at=place, value=None if value is None else str(value))

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Read what matches, and the space after it; None if nothing does."""
        found = pattern.match(self.text, self.position, self.end)
        if found is None:
            return None
        self.position = min(self.after_space(found.end()), self.end)
        return found.group()

    def after_space(self, position: int) -> int:
        """Return where the next character stands that is no space."""
        found = SPACE.match(self.text, position)
        return found.end() if found else position

    def at(self, mark: str) -> bool:
        """Return whether `mark` stands here."""
        return self.text.startswith(mark, self.position, self.end)

    def accept(self, mark: str) -> bool:
        """Read `mark` and the space after it, if it stands here."""
        return self.match(re.compile(re.escape(mark))) is not None


def _meant(word: str, names: Sequence[str]) -> str:
    """Return a question about the name most like a word, if there is one."""
    meant = suggest(word, tuple(names))
    return f"did you mean '{meant}'? " if meant else ""


# What a kernel means for the columns of a table


class Bound(NamedTuple):
    """A kernel bound to a table, and the columns that it does not see, as no group names them."""

    kernel: Kernel
    unused: tuple[str, ...]


def bind(kernel: Kernel, numeric_names: Sequence[str], category_names: Sequence[str]) -> Bound:
    """Find the columns that each part of a kernel sees, of a table with these columns.

    Within a group, kernels of numbers see the numeric columns; delta and hamming see the category columns or, in a
    group without any, the numeric ones by equality. Columns of a kind that no kernel of their group looks at get one
    of their own: a hamming for categories, a gaussian for numbers, their bandwidth to be chosen. A kernel without
    groups is one group of all columns. Parsing the text of what is returned and binding that again gives an equal kernel.
    """
    numeric, categories = tuple(numeric_names), tuple(category_names)
    names, kinds = numeric + categories, (numeric, categories)
    everything = OnColumns(cast("Expression", kernel), names=(ColumnName("*", wildcard=True),))
    groups = cast("tuple[OnColumns, ...]", kernel.parts) if isinstance(kernel, ColumnGroups) else (everything,)
    if any(any(group.columns) for group in groups):
        raise _bound_already(kernel)
    owners = _owners(groups, names)
    covered: list[tuple[Expression, Columns]] = []
    for number, group in enumerate(groups):
        first, second = ([at for at, name in enumerate(some) if owners.get(name) == number] for some in kinds)
        covered += _covering(group.kernel, Columns(tuple(first), tuple(second)), categories) if first or second else ()
    if not covered:
        hint = "name columns that are there, or '*' for the rest"
        raise refused(f"the kernel '{kernel}' has no column to see", hint)
    if len(covered) == 1 and not (numeric and categories) and len(owners) == len(names):
        return Bound(_localised(*covered[0]), ())
    factors = []
    for part, seen in covered:
        shown = [*map(numeric.__getitem__, seen.numeric), *map(categories.__getitem__, seen.categories)]
        factors.append(OnColumns(_localised(part, seen), seen, tuple(map(ColumnName, shown))))
    return Bound(ColumnGroups(tuple(factors)), tuple(name for name in names if name not in owners))


def _bound_already(kernel: Kernel) -> UsageError:
    hint = "bind the kernel that parse_kernel returned"
    return refused(f"the kernel '{kernel}' is bound to columns already", hint, "bound_kernel")


def _owners(groups: Sequence[OnColumns], names: tuple[str, ...]) -> dict[str, int]:
    """Return the number of the group of each column, for the columns that have one."""
    owners: dict[str, int] = {}
    rest: dict[str, int] = {}
    for number, group in enumerate(groups):
        for wanted in group.names:
            if wanted.is_rest:
                rest = dict.fromkeys(names, number)
                continue
            found = [name for name in names if wanted.matches(name)]
            place: dict[str, Any] = {"position": wanted.position} if wanted.position else {}
            if not found:
                at = f" (character {wanted.position} of the kernel)" if wanted.position else ""
                what = "no column matches" if wanted.wildcard else "there is no column"
                hint = _meant(wanted.text, names).rstrip() or f"the columns are {_listed(names)}"
                place |= {"column": wanted.text, "value": wanted.text}
                raise refused(f"{what} '{wanted.text}'{at}", hint, "unknown_column", **place)
            for name in found:
                if owners.setdefault(name, number) != number:
                    place |= {"column": name, "value": wanted.text}
                    raise refused(f"column '{name}' is in two groups of the kernel", "name each column once", **place)
    return rest | owners


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _covering(
    expression: Expression, columns: Columns, categories: tuple[str, ...]
) -> Iterator[tuple[Expression, Columns]]:
    """Yield expressions with their columns, so that each kind of column in the group is seen by some kernel."""
    for leaf in expression.leaves:
        if "numeric" in leaf.kinds and not columns.numeric:
            names = [categories[place] for place in columns.categories]
            verb = "holds" if len(names) == 1 else "hold"
            message = f"{leaf.name} needs a numeric column; {_listed(names)} {verb} text"
            raise refused(message, "use delta or hamming for columns of text", column=names[0], value=leaf.name)
    of_numbers, of_codes = Columns(columns.numeric, ()), Columns((), columns.categories)
    if expression.kinds == {"numeric"} and columns.categories:
        yield expression, of_numbers
        yield Hamming(), of_codes
    elif expression.kinds == {"discrete"} and columns.numeric and columns.categories:
        yield Gaussian(), of_numbers
        yield expression, of_codes
    else:
        yield expression, columns


def _localised(expression: Expression, columns: Columns) -> Expression:
    """Return the expression with delta and hamming restricted to the columns they are for.

    They would compare all columns of the group; the positions are those within the group. Kernels of numbers see
    nothing but numeric columns anyhow.
    """
    if isinstance(expression, Mahalanobis):
        return expression
    if isinstance(expression, (OnColumns, AdditiveSum)):
        raise _bound_already(expression)
    if isinstance(expression, Additive):
        return expression.over(columns)
    if isinstance(expression, Atom) and expression.kind == "discrete" and columns.numeric:
        places = tuple(range(len(columns.categories or columns.numeric)))
        return OnColumns(expression, Columns((), places) if columns.categories else Columns(places, ()))
    return expression.with_parts(tuple(_localised(part, columns) for part in expression.parts))


def plain(kernel: Kernel) -> Kernel:
    """Return the kernel of the first group of columns, without its columns."""
    if isinstance(kernel, ColumnGroups):
        kernel = kernel.parts[0]
    return kernel.kernel if isinstance(kernel, OnColumns) and not isinstance(kernel, Mahalanobis) else kernel


def is_additive(kernel: Kernel) -> bool:
    """Whether a kernel is an additive one over the columns of a table."""
    return isinstance(plain(kernel), AdditiveSum)


# What there is to say about kernels


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
    parts: tuple[Any, ...] = kernel.parts if isinstance(kernel, ColumnGroups) else (kernel,)
    culprit = next(one for one in parts if not one.characteristic)
    limit = _limit(culprit) or "is not known to see every difference"
    # The text of an additive kernel has a number for each column.
    name = ADDITIVE if is_additive(culprit) else str(culprit)
    return f"'{name}' {limit}: a value of zero does not mean that the distributions are equal"


def _limit(kernel: Expression) -> str | None:
    """Return what the kernel sees only, as the end of a sentence."""
    if not kernel.positive_definite:
        return "is not positive definite"
    order = _moment_order(kernel)
    if order is not None:
        few = {0: "is constant and sees nothing", 1: "sees only differences of means"}
        return few.get(int(order), f"sees only moments up to order {algebra.format_number(order)}")
    if isinstance(kernel, Periodic):
        return f"cannot tell values apart that differ by its period, {algebra.format_number(kernel.period)}"
    if isinstance(kernel, OnColumns) and kernel.only_sees_ties:
        return "sees only values that occur more than once in a numeric column"
    if isinstance(kernel, (Additive, AdditiveSum)):
        return "sees each column alone, not how they hang together"
    if isinstance(kernel, algebra.Sum) and len(kernel.kinds) > 1:
        return "sees numeric columns and categories apart, not how they hang together"
    # Moments of rows divided by their size, or of all orders: of neither the data nor any fixed order.
    if isinstance(kernel, algebra.Normalised | algebra.Exponentiated) and _moment_order(kernel.kernel) is not None:
        return None
    varying = [part for part in kernel.parts if not isinstance(part, algebra.Constant)]
    return _limit(varying[0]) if len(varying) == 1 else None


def _moment_order(kernel: Expression) -> float | None:
    """Return p where the kernel is a polynomial of degree p in <x, y>, else None."""
    if not kernel.kinds or algebra.Constant(0) in (kernel.parts if isinstance(kernel, algebra.Product) else ()):
        return 0.0
    if isinstance(kernel, Linear):
        return 1.0
    if isinstance(kernel, Polynomial):
        return kernel.degree if kernel.gain else 0.0
    if not isinstance(kernel, algebra.Sum | algebra.Product | algebra.Power | OnColumns):
        return None
    if isinstance(kernel, OnColumns) and kernel.only_sees_ties:
        return None
    orders = [_moment_order(part) for part in kernel.parts]
    known = [order for order in orders if order is not None]
    if len(known) < len(orders):
        return None
    if isinstance(kernel, algebra.Power):
        return known[0] * kernel.exponent
    return max(known) if isinstance(kernel, algebra.Sum) else sum(known)
