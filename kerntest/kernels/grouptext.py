"""The part of a kernel text that names columns: where each group's names and kernel begin and end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from kerntest.errors import UsageError
from kerntest.kernels.columns import QUOTES, ColumnName

LONGEST = 60


@dataclass(frozen=True, slots=True)
class GroupSpan:
    """One group: its columns, and where in the text its kernel stands.

    Parameters
    ----------
    names : tuple of ColumnName
        At least one.
    start, end : int
        The kernel is text[start:end].
    """

    names: tuple[ColumnName, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of text and the mark that ends it: `,`, `:`, `;`, or nothing at the end of the text."""

    start: int
    end: int
    mark: str


def split_groups(text: str) -> tuple[GroupSpan, ...]:
    """Return the groups of a kernel text; none if it names no columns.

    Raises
    ------
    UsageError
        If a group is empty, has no colon or no name, or if a quote is not closed.
    """
    pieces = _pieces(text)
    if not any(piece.mark in (":", ";") for piece in pieces[:-1]):
        return ()
    groups: list[GroupSpan] = []
    group: list[_Piece] = []
    for piece in pieces:
        group.append(piece)
        if piece.mark in (";", ""):
            groups.append(_group(text, group))
            group = []
    return tuple(groups)


def _pieces(text: str) -> list[_Piece]:
    """Cut the text at the marks that stand outside quotes. Only a piece that begins with a quote is quoted."""
    pieces: list[_Piece] = []
    start = 0
    while True:
        position = _after_quote(text, _after_space(text, start))
        while position < len(text) and text[position] not in ",:;":
            position += 1
        mark = text[position : position + 1]
        pieces.append(_Piece(start, position, mark))
        if not mark:
            return pieces
        start = position + 1


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _after_quote(text: str, position: int) -> int:
    """Return the position after the quoted name that begins here, or `position` if none does.

    A doubled quote stands for one.
    """
    quote = text[position : position + 1]
    if not quote or quote not in QUOTES:
        return position
    end = position + 1
    while True:
        end = text.find(quote, end)
        if end < 0:
            _fail(text, position, f"the quote {quote} is never closed", f"add another {quote}")
        if text[end + 1 : end + 2] != quote:
            return end + 1
        end += 2


def _group(text: str, pieces: list[_Piece]) -> GroupSpan:
    start, end = pieces[0].start, pieces[-1].end
    first = _after_space(text, start)
    if first >= end:
        _fail(text, min(first, end), "empty group", "write 'columns: kernel' between two ';'")
    colon = next((number for number, piece in enumerate(pieces) if piece.mark == ":"), None)
    if colon is None:
        _fail(text, first, f"a ':' is missing in the group '{text[first:end].rstrip()}'", "write 'columns: kernel'")
    names = tuple(_name(text, piece) for piece in pieces[: colon + 1])
    if _after_space(text, pieces[colon].end + 1) >= end:
        _fail(text, pieces[colon].end, "no kernel after the ':'", "write 'columns: kernel'")
    return GroupSpan(names, pieces[colon].end + 1, end)


def _name(text: str, piece: _Piece) -> ColumnName:
    first = _after_space(text, piece.start)
    after = _after_quote(text, first)
    if after > first:
        rest = _after_space(text, after)
        if rest < piece.end:
            _fail(text, rest, "text after a quoted column", "put the whole name in quotes, or a ',' behind it")
        quote = text[first]
        return ColumnName(text[first + 1 : after - 1].replace(2 * quote, quote), position=first + 1)
    name = text[first : piece.end].strip()
    if not name:
        _fail(text, piece.end, "a column name is missing", "write 'columns: kernel', or '*' for all other columns")
    return ColumnName(name, wildcard="*" in name, position=first + 1)


def _fail(text: str, position: int, what: str, hint: str) -> NoReturn:
    place = position + 1
    raise UsageError(
        f"{what} at character {place} of {shortened(text)}",
        hint=hint,
        code="usage.kernel_text",
        where={"position": place},
    )


def shortened(text: str) -> str:
    """Return the text in quotes, on one line; of a long one only the beginning."""
    return repr(text) if len(text) <= LONGEST else repr(text[:LONGEST]) + "..."
