"""Results as people read them, drawn by rich: the same content in any width, with or without colour."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html import escape
from string import ascii_lowercase
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kerntest.errors import either
from kerntest.report.summaries.words import Cell

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rich.console import RenderableType

    from kerntest.report.summaries.words import ResultTable, Summary

STYLES = {"": "", "chosen": "bold green", "right": "green", "doubtful": "yellow", "wrong": "red"}
# Between two columns; the least room for a name or a text beside others, which are broken where they must be.
GAP, LEAST = 2, {"name": 8, "text": 12}
# While lines are broken: stands for a blank, since rich breaks at every one, also at those that are not to be broken at;
# and, a blank without a width, behind the parts of a long name, where it is best broken.
_NO_BREAK, _SEAM = "\ue000", "\x1f"
_MARKED = re.compile(r"[\\`*\[\]<>|~$&#]|(?<!\w)_|_(?!\w)")
_PARTS = re.compile(r"[_\-.]+(?=[^_\-. ])")


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
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="" if table.title else "bold")
    for place, (heading, kind) in enumerate(table.columns):
        grid.add_column(
            Text(heading, overflow="fold"),
            justify="right" if kind == "number" else "left",
            style="" if kind in {"number", "text"} or (place and kind == "word") else "cyan",
            overflow="fold",
            no_wrap=kind not in LEAST,
        )
    for row in table.rows:
        cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
        grid.add_row(
            *(
                Text(_PARTS.sub(rf"\g<0>{_SEAM}", text) if kind == "name" else text, style=STYLES[role])
                for (text, role), (_, kind) in zip(cells, table.columns, strict=True)
            )
        )
    return [
        *([Text(table.title, style="bold")] if table.title else []),
        *([Padding(grid, (0, 0, 0, margin))] if table.rows else []),
        *(Padding(Text(note, overflow="fold"), (0, 0, 0, GAP)) for note in table.notes),
    ]


def _fits(table: ResultTable, width: int) -> bool:
    """Whether there is room for a table whose long names and texts are broken."""
    rows = [[heading for heading, _ in table.columns], *table.rows]
    sizes = [
        max(cell_len(cell.text if isinstance(cell, Cell) else cell) for cell in one) for one in zip(*rows, strict=True)
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
        return (
            short
            if _fits(short, width)
            else replace(table, rows=(), notes=(f"too wide: {either('--json', 'to_dict()')} has it",))
        )
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
    return (
        replace(narrow, notes=(f"no room for {hidden}: {either('--json', 'to_dict()')} has all", *table.notes))
        if hidden
        else table
    )


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
    lines = canvas.getvalue().replace(_NO_BREAK, " ").replace(_SEAM, "").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


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


def html_page(summary: Summary) -> str:
    """Return a summary as a document of its own."""
    head = (
        f'<meta charset="utf-8">\n<title>{escape(summary.title)}</title>\n<style>td, th {{ padding: 0 0.6em; }}</style>'
    )
    return f"<!DOCTYPE html>\n{head}\n{summary_html(summary)}\n"


def summary_markdown(summary: Summary) -> str:
    """Return a summary as Markdown with the tables of GitHub: in full, whatever the width."""
    parts = [f"## {_unmarked(summary.title)}"]
    parts += [_rows_markdown(summary.lines, ["", ""], [])] if summary.lines else []
    for table in summary.tables:
        headings = [heading for heading, _ in table.columns]
        right = [place for place, (_, kind) in enumerate(table.columns) if kind == "number"]
        parts += [f"**{_unmarked(table.title)}**"] if table.title else []
        parts += [_rows_markdown(table.rows, headings, right)] if table.rows else []
        parts += ["\n".join(f"- {_unmarked(note)}" for note in table.notes)] if table.notes else []
    parts += [f"**{_unmarked(f'{summary.answer}: {summary.decision}')}**"] if summary.decision else []
    if summary.warnings:
        parts += ["Warnings:", "\n".join(f"- {_unmarked(warning)}" for warning in summary.warnings)]
    return "\n\n".join(parts) + "\n"


def _rows_markdown(rows: Sequence[Sequence[str | Cell]], headings: Sequence[str], right: Collection[int]) -> str:
    """Return rows of texts as a table; those at some places stand at the right."""
    rule = ["---:" if place in right else "---" for place in range(len(headings))]
    texts = [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in (headings, *rows)]
    head, *told = [[_unmarked(text) for text in row] for row in texts]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *told))


def _unmarked(text: str) -> str:
    """Return text of which Markdown makes nothing else; an underscore inside a word is none."""
    return _MARKED.sub(r"\\\g<0>", text.strip())
