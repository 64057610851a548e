"""Results as people read them, drawn by rich: the same content in any width, with or without colour."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from string import ascii_lowercase
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kerntest.report.summaries.words import Cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from kerntest.report.summaries.words import ResultTable, Summary

STYLES = {"": "", "chosen": "bold green", "right": "green", "doubtful": "yellow", "wrong": "red"}
# Between two columns; the least room for a name, and for a text beside others.
GAP = 2
LEAST = {"name": 8, "text": 11}
# A long name is best broken after one of these.
_SEAMS = re.compile(r"[^_\-. ]*[_\-. ]*")
# Stands for a blank while lines are broken: rich breaks at every blank, also at those that are not to be broken at.
_NO_BREAK = "\ue000"


def summary_text(summary: Summary, *, width: int, colour: bool) -> str:
    """Return a summary as text."""
    parts: list[RenderableType] = [Text(summary.title, style="bold")]
    parts.append(_labelled([(f"  {label}", _held(text)) for label, text in summary.lines]))
    for table in summary.tables:
        parts += _table(table, width)
    if summary.decision:
        parts.append(Text(f"{summary.answer}: {_held(summary.decision)}", style="bold"))
    if summary.warnings:
        parts.append(Text("Warnings:", style="yellow"))
        parts.append(_labelled([("  -", _held(warning)) for warning in summary.warnings]))
    return _drawn(Group(*parts), width=width, colour=colour)


def sections_text(sections: Sequence[tuple[str, list[tuple[str, str]]]], *, width: int, colour: bool) -> str:
    """Return lists of terms and texts, each below its heading."""
    parts: list[RenderableType] = []
    for heading, rows in sections:
        parts.append(Text(heading, style="bold"))
        if rows:
            parts.append(_labelled([(f"  {label}", text) for label, text in rows]))
    return _drawn(Group(*parts), width=width, colour=colour)


def _held(text: str) -> str:
    """Return text in which no line ends between a number and its percent sign."""
    return text.replace(" %", f"{_NO_BREAK}%")


def _labelled(rows: list[tuple[str, str]]) -> RenderableType:
    """Return labels beside texts; a text too long for its line goes on in the next, nothing is cut off."""
    grid = Table.grid(padding=(0, GAP))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(overflow="fold")
    for label, text in rows:
        grid.add_row(Text(label), Text(text))
    return grid


def _table(table: ResultTable, width: int) -> list[RenderableType]:
    """Return a table with its title and notes; numbers are never broken, names where they must be."""
    # Marks stand in the margin.
    margin = 0 if table.columns[0][1] == "mark" else GAP
    table = _fitted(table, width - margin)
    widths = _widths(table, width - margin)
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="" if table.title else "bold")
    for place, (heading, kind) in enumerate(table.columns):
        grid.add_column(
            Text(heading, overflow="fold"),
            justify="right" if kind == "number" else "left",
            style="" if kind in {"number", "text"} or (place and kind == "word") else "cyan",
            overflow="fold",
            width=widths[place],
        )
    for row in table.rows:
        cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
        texts = [
            _broken(cell.text, most) if kind == "name" else cell.text
            for cell, most, (_, kind) in zip(cells, widths, table.columns, strict=True)
        ]
        grid.add_row(*(Text(text, style=STYLES[cell.role]) for text, cell in zip(texts, cells, strict=True)))
    return [
        *([Text(table.title, style="bold")] if table.title else []),
        *([Padding(grid, (0, 0, 0, margin))] if table.rows else []),
        *(Padding(Text(note, overflow="fold"), (0, 0, 0, GAP)) for note in table.notes),
    ]


def _needed(table: ResultTable, limits: dict[str, int]) -> list[int]:
    """Return how many characters each column takes, of some kinds at most so many."""
    rows = [[heading for heading, _ in table.columns], *table.rows]
    return [
        min(max(cell_len(cell.text if isinstance(cell, Cell) else cell) for cell in column), limits.get(kind, 10**6))
        for column, (_, kind) in zip(zip(*rows, strict=True), table.columns, strict=True)
    ]


def _fitted(table: ResultTable, width: int) -> ResultTable:
    """Return a table with letters for its headings, or fewer of its numbers, where they do not fit."""
    kinds, sizes = [kind for _, kind in table.columns], _needed(table, LEAST)

    def fits(sizes: Sequence[int]) -> bool:
        return sum(sizes) + GAP * (len(sizes) - 1) <= width

    numbers = [place for place, kind in enumerate(kinds) if place and kind == "number"]
    if fits(sizes) or not numbers:
        return table
    if table.lettered:
        (first, *others), letters = table.columns, ascii_lowercase[: len(table.rows)]
        rows = tuple((f"{letter} {row[0]}", *row[1:]) for letter, row in zip(letters, table.rows, strict=True))
        columns = (first, *((letter, kind) for letter, (_, kind) in zip(letters, others, strict=True)))
        short = replace(table, columns=columns, rows=rows)
        return short if fits(_needed(short, LEAST)) else replace(table, rows=(), notes=("too wide: --json has it",))
    at = [heading for heading, _ in table.columns].index(table.keep) if table.keep else numbers[0]
    shown = [place for place in range(len(kinds)) if place not in numbers]
    for place in sorted(numbers, key=lambda place: (abs(place - at), place)):
        if place != at and not fits([sizes[one] for one in [*shown, place]]):
            break
        shown.append(place)
    shown.sort()
    hidden = [heading for place, (heading, _) in enumerate(table.columns) if place not in shown]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in shown),
        rows=tuple(tuple(row[place] for place in shown) for row in table.rows),
        notes=(f"no room for {', '.join(hidden)}: --json has all", *table.notes),
    )


def _widths(table: ResultTable, width: int) -> list[int]:
    """Return the widths of columns: names and texts share the room that others leave, what short ones leave included.

    Beside texts, which fold anywhere, names have a third of it.
    """
    widths, kinds = _needed(table, {}), [kind for _, kind in table.columns]
    left = width + GAP - sum(size + GAP for size, kind in zip(widths, kinds, strict=True) if kind not in LEAST)
    for kind, share in (("name", 3 if "text" in kinds else 1), ("text", 1)):
        places, room = [place for place, one in enumerate(kinds) if one == kind], left // share
        for rank, place in enumerate(sorted(places, key=widths.__getitem__)):
            least = LEAST[kind] if kind == "name" else 1
            widths[place] = min(widths[place], max(least, room // (len(places) - rank) - GAP))
            room -= widths[place] + GAP
            left -= widths[place] + GAP
    return widths


def _broken(name: str, most: int) -> str:
    """Return a name in lines of at most `most` characters, broken after its parts where they fit."""
    lines = [""]
    for part in _SEAMS.findall(name):
        if len(lines[-1]) + len(part) <= most:
            lines[-1] += part
        else:
            lines += [part[start : start + most] for start in range(0, len(part), most)]
    return "\n".join(line for line in lines if line.strip())


def _drawn(content: RenderableType, *, width: int, colour: bool) -> str:
    """Return what rich draws, as text without blanks at the ends of lines; names are printed as they are."""
    canvas = io.StringIO()
    console = Console(
        file=canvas,
        width=width,
        # Without a height rich ignores the width on a dumb terminal.
        height=25,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(content)
    lines = canvas.getvalue().replace(_NO_BREAK, " ").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)
