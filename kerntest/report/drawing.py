"""Results as people read them: the same content in any width, with or without colour."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from itertools import zip_longest
from string import ascii_lowercase
from typing import TYPE_CHECKING

from kerntest.report.summaries.words import Cell, cells

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from kerntest.report.summaries.words import ResultTable, Summary

BOLD, CYAN, YELLOW = "1", "36", "33"
# What roles look like on a terminal (ECMA-48).
ROLES = {"": "", "chosen": "1;32", "right": "32", "doubtful": YELLOW, "wrong": "31"}
# Between two columns; the least room for a name or a text beside others, which are broken where they must be.
GAP, LEAST = 2, {"name": 8, "text": 12}
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
# Lines end behind a word, but not between a number and its percent sign; in a name behind its parts, too.
_WORDS = re.compile(r"\s*\S+(?: %\S*)?\s*")
_PARTS = re.compile(r"(?<=[_\-.])(?=[^_\-. ])")


def summary_text(summary: Summary, *, width: int, colour: bool) -> str:
    """Return a summary as text."""
    lines = _paragraph(summary.title, BOLD, width)
    lines += _labelled([(f"  {label}", text) for label, text in summary.lines], width)
    for table in summary.tables:
        lines += _table(table, width)
    if summary.decision:
        lines += _paragraph(f"{summary.answer}: {summary.decision}", BOLD, width)
    if summary.warnings:
        lines += _paragraph("Warnings:", YELLOW, width)
        lines += _labelled([("  -", warning) for warning in summary.warnings], width)
    text = "".join(f"{line}\n" for line in lines)
    return text if colour else _COLOURS.sub("", text)


def _paragraph(text: str, style: str, width: int, margin: int = 0) -> list[str]:
    """Return a text as lines."""
    return _grid([[(text, style)]], ["text"], width, margin)


def _labelled(rows: list[tuple[str, str]], width: int) -> list[str]:
    """Return labels beside texts; a text too long for its line goes on in the next, nothing is cut off."""
    return _grid([[(label, CYAN), (text, "")] for label, text in rows], ["word", "text"], width)


def _table(table: ResultTable, width: int) -> list[str]:
    """Return a table with its title and notes; numbers are never broken, names where they must be."""
    # Marks stand in the margin.
    margin = 0 if table.columns[0][1] == "mark" else GAP
    table = _fitted(table, width - margin)
    kinds = [kind for _, kind in table.columns]
    usual = [
        "" if kind in {"number", "text"} or (place and kind == "word") else CYAN for place, kind in enumerate(kinds)
    ]
    rows = [[(heading, "" if table.title else BOLD) for heading, _ in table.columns]]
    for row in table.rows:
        told = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
        rows.append([(text, ROLES[role] or style) for (text, role), style in zip(told, usual, strict=True)])
    lines = _paragraph(table.title, BOLD, width) if table.title else []
    lines += _grid(rows, kinds, width, margin) if table.rows else []
    for note in table.notes:
        lines += _paragraph(note, "", width, GAP)
    return lines


def _grid(rows: Sequence[Sequence[tuple[str, str]]], kinds: Sequence[str], width: int, margin: int = 0) -> list[str]:
    """Return rows of texts with their styles, in columns of some kinds, as lines; numbers stand on the right."""
    sizes = [max(cells(text) for text, _ in column) for column in zip(*rows, strict=True)]
    while sum(sizes) + GAP * (len(sizes) - 1) + margin > width:
        wide = [place for place, kind in enumerate(kinds) if sizes[place] > LEAST.get(kind, width)]
        sizes[max(wide or range(len(sizes)), key=sizes.__getitem__)] -= 1
    lines = []
    for row in rows:
        broken = [_broken(text, size, kind) for (text, _), size, kind in zip(row, sizes, kinds, strict=True)]
        for parts in zip_longest(*broken, fillvalue=""):
            line = " " * margin
            for part, (_, style), size, kind in zip(parts, row, sizes, kinds, strict=True):
                shown = f"\x1b[{style}m{part}\x1b[0m" if style and part.strip() else part
                blank = " " * (size - cells(part))
                line += (f"{blank}{shown}" if kind == "number" else f"{shown}{blank}") + " " * GAP
            lines.append(line.rstrip())
    return lines


def _broken(text: str, width: int, kind: str) -> list[str]:
    """Return a text as lines of at most so many cells: one broken between words or parts, or, where it must be, anywhere."""
    lines, line = [], ""
    for word in _WORDS.findall(text):
        for part in _PARTS.split(word) if kind == "name" else [word]:
            left = part
            if line and cells(f"{line}{part}".rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            while cells(left.rstrip()) > width:
                fitting = next(count for count in range(len(left), 0, -1) if count == 1 or cells(left[:count]) <= width)
                lines.append(left[:fitting])
                left = left[fitting:]
            line += left
    return [*lines, line.rstrip()]


def _fits(table: ResultTable, width: int) -> bool:
    """Whether there is room for a table whose long names and texts are broken."""
    rows = [[heading for heading, _ in table.columns], *table.rows]
    sizes = [
        max(cells(cell.text if isinstance(cell, Cell) else cell) for cell in one) for one in zip(*rows, strict=True)
    ]
    needed = (min(size, LEAST.get(kind, size)) for size, (_, kind) in zip(sizes, table.columns, strict=True))
    return sum(needed) + GAP * (len(sizes) - 1) <= width


def _fitted(table: ResultTable, width: int) -> ResultTable:
    """Return a table with letters for its headings, or fewer of its numbers, where they do not fit."""
    if _fits(table, width):
        return table
    headings = [heading for heading, _ in table.columns]
    if table.lettered:
        rows = tuple((f"{letter} {row[0]}", *row[1:]) for letter, row in zip(ascii_lowercase, table.rows, strict=False))
        columns = zip([headings[0], *ascii_lowercase[: len(rows)]], (kind for _, kind in table.columns), strict=True)
        short = replace(table, columns=tuple(columns), rows=rows)
        return short if _fits(short, width) else replace(table, rows=(), notes=("too wide: --json has it",))
    numbers = [place for place, (_, kind) in enumerate(table.columns) if place and kind == "number"]
    at = headings.index(table.keep) if table.keep else min(numbers, default=0)
    numbers.sort(key=lambda place: (abs(place - at), place))
    shown, narrow = list(range(len(headings))), table
    while len(numbers) > 1 and not _fits(narrow, width):
        shown.remove(numbers.pop())
        narrow = replace(
            table,
            columns=tuple(table.columns[place] for place in shown),
            rows=tuple(tuple(row[place] for place in shown) for row in table.rows),
        )
    hidden = ", ".join(heading for place, heading in enumerate(headings) if place not in shown)
    return replace(narrow, notes=(f"no room for {hidden}: --json has all", *table.notes)) if hidden else table


def summary_html(summary: Summary) -> str:
    """Return a summary as HTML, for notebooks: in full, whatever the width."""
    parts = [f"<p><b>{escape(summary.title)}</b></p>", _rows_html([[label, text] for label, text in summary.lines])]
    for table in summary.tables:
        headings = [heading for heading, _ in table.columns]
        right = [place for place, (_, kind) in enumerate(table.columns) if kind == "number"]
        parts += [f"<p><b>{escape(table.title)}</b></p>"] if table.title else []
        parts += [_rows_html(table.rows, headings, right)] if table.rows else []
        parts += [f"<p>{escape(note)}</p>" for note in table.notes]
    parts += [f"<p><b>{escape(f'{summary.answer}: {summary.decision}')}</b></p>"] if summary.decision else []
    if summary.warnings:
        parts.append(f"<p>Warnings:</p><ul>{''.join(f'<li>{escape(one)}</li>' for one in summary.warnings)}</ul>")
    return "\n".join(parts)


def _rows_html(rows: Sequence[Sequence[str | Cell]], headings: Sequence[str] = (), right: Collection[int] = ()) -> str:
    """Return rows of texts as a table; those at some places stand at the right."""

    def line(cells: Sequence[str | Cell], tag: str) -> str:
        texts = [cell.text if isinstance(cell, Cell) else cell for cell in cells]
        sides = ["right" if place in right else "left" for place in range(len(texts))]
        return "".join(
            f'<{tag} style="text-align: {side}">{escape(text)}</{tag}>' for text, side in zip(texts, sides, strict=True)
        )

    shown = (
        [line(headings, "th"), *(line(row, "td") for row in rows)] if headings else [line(row, "td") for row in rows]
    )
    return f"<table>{''.join(f'<tr>{one}</tr>' for one in shown)}</table>"
