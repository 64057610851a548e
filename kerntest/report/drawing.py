"""Results as people read them, drawn by rich: the same content in any width, with or without colour."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from html import escape
from string import ascii_lowercase
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kerntest.errors import either
from kerntest.report.summaries.words import Cell

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rich.console import RenderableType

    from kerntest.report.summaries.words import ResultTable, Summary

STYLES = {"": "", "chosen": "bold green", "right": "green", "doubtful": "yellow", "wrong": "red"}
# Between two columns; the room that a name or a text beside others has as long as there are numbers to leave out, and the
# least. What stands for what there is no room for.
GAP, READABLE, LEAST, GONE = 2, {"name": 16, "text": 24}, {"name": 8, "text": 12}, "..."
# Names up to so many cells are rather whole than beside texts.
WHOLE = 40
# While lines are broken: stands for a blank, since rich breaks at every one, also at those that are not to be broken at;
# and, a blank without a width, behind the parts of a long name, where it is best broken.
_NO_BREAK, _SEAM = "\ue000", "\x1f"
_MARKED = re.compile(r"[\\`*\[\]<>|~$&#]|(?<!\w)_|_(?!\w)")
_PARTS = re.compile(r"[_\-./ ]+(?=[^_\-./ ])")


def summary_text(summary: Summary, *, width: int, colour: bool) -> str:
    """Return a summary as text."""
    parts: list[RenderableType] = [Text(summary.title, style="bold")]
    parts.append(_labelled([(f"  {label}", text) for label, text in summary.lines], width))
    for table in summary.tables:
        parts += _table(table, width)
    if summary.decision:
        parts.append(Text(f"{summary.answer}: {_held(summary.decision, width)}", style="bold"))
    if summary.warnings:
        parts.append(Text("Warnings:", style="yellow"))
        parts.append(_labelled([("  -", warning) for warning in summary.warnings], width))
    return _drawn(Group(*parts), width=width, colour=colour)


def _held(text: str, room: int) -> str:
    """Return text in which no line ends between a number and its percent sign, and names longer than a line end as they may."""
    words = (word if cell_len(word) <= room else _PARTS.sub(rf"\g<0>{_SEAM}", word) for word in text.split(" "))
    return " ".join(words).replace(" %", f"{_NO_BREAK}%")


def _labelled(rows: list[tuple[str, str]], width: int) -> RenderableType:
    """Return labels beside texts; a text too long for its line goes on in the next, nothing is cut off."""
    grid = Table.grid(padding=(0, GAP))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(overflow="fold")
    room = width - GAP - max((cell_len(label) for label, _ in rows), default=0)
    for label, text in rows:
        grid.add_row(Text(label), Text(_held(text, room)))
    return grid


def _table(table: ResultTable, width: int) -> list[RenderableType]:
    """Return a table with its title and notes: what does not fit in is shortened or left out, and told."""
    # Marks stand in the margin.
    margin = 0 if table.columns[0][1] == "mark" else GAP
    table, below = _without_texts(table, width - margin)
    table, widths = _fitted(table, width - margin)
    drawn: list[RenderableType] = []
    if below and table.rows:
        drawn.append(_grid(table, widths, (), header=True))
        for row, texts in zip(table.rows, below, strict=True):
            drawn += [_grid(table, widths, [row]), *(Padding(text, (0, 0, 0, GAP)) for text in texts)]
    elif table.rows:
        drawn.append(_grid(table, widths, table.rows, header=True))
    return [
        *([Text(table.title, style="bold")] if table.title else []),
        *(Padding(one, (0, 0, 0, margin)) for one in drawn),
        *(Padding(Text(note, overflow="fold"), (0, 0, 0, GAP)) for note in table.notes),
    ]


def _grid(
    table: ResultTable, widths: Sequence[int], rows: Sequence[Sequence[str | Cell]], *, header: bool = False
) -> Table:
    """Return rows in the columns of a table, which are so wide."""
    grid = Table(
        box=None,
        pad_edge=False,
        padding=(0, GAP, 0, 0),
        header_style="" if table.title else "bold",
        show_header=header,
    )
    for place, ((heading, kind), room) in enumerate(zip(table.columns, widths, strict=True)):
        grid.add_column(
            Text(heading, overflow="fold"),
            justify="right" if kind == "number" else "left",
            style="" if kind in {"number", "text"} or (place and kind == "word") else "cyan",
            overflow="fold",
            no_wrap=kind != "text",
            width=room,
        )
    for row in rows:
        grid.add_row(*map(_styled, row))
    return grid


def _styled(cell: str | Cell) -> Text:
    return Text(cell.text, style=STYLES[cell.role]) if isinstance(cell, Cell) else Text(cell)


def _without_texts(table: ResultTable, width: int) -> tuple[ResultTable, list[list[Text]]]:
    """Return a table without the texts that have no room beside its other columns, and what stands below each row."""
    sizes, others = _sizes(table), list(range(len(table.columns)))
    texts = sorted((place for place in others if table.columns[place][1] == "text"), key=lambda place: sizes[place])
    beside, below = table, list[int]()
    # Two lines each for texts, before names are shortened.
    roomy = {"name": WHOLE, "text": max(READABLE["text"], -(-max((sizes[place] for place in texts), default=0) // 2))}
    while texts and len(others) > 1 and _least(beside, roomy) > width:
        others.remove(place := texts.pop())
        below.append(place)
        columns = tuple(table.columns[place] for place in others)
        beside = replace(table, columns=columns, rows=tuple(tuple(row[at] for at in others) for row in table.rows))
    told = [[_styled(row[place]) for place in sorted(below) if _text(row[place]).strip("- ")] for row in table.rows]
    return beside, told if below else []


def _sizes(table: ResultTable) -> list[int]:
    """Return how many cells each column takes in full."""
    rows = [[heading for heading, _ in table.columns], *([_text(cell) for cell in row] for row in table.rows)]
    return [max(map(cell_len, one)) for one in zip(*rows, strict=True)]


def _text(cell: str | Cell) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def _least(table: ResultTable, least: Mapping[str, int]) -> int:
    """Return how many cells a table takes at least, its names and texts shortened to so many."""
    needed = [min(size, least.get(kind, size)) for size, (_, kind) in zip(_sizes(table), table.columns, strict=True)]
    return sum(needed) + GAP * (len(needed) - 1)


def _fitted(table: ResultTable, width: int) -> tuple[ResultTable, list[int]]:
    """Return a table that fits, and the width of each column.

    Names and texts are shortened as far as they stay readable, then there are letters for headings, or fewer numbers, then
    names and texts are shortened further.
    """
    headings, hidden = [heading for heading, _ in table.columns], ""
    if _least(table, READABLE) > width and table.lettered:
        rows = tuple((f"{letter} {row[0]}", *row[1:]) for letter, row in zip(ascii_lowercase, table.rows, strict=False))
        columns = zip([headings[0], *ascii_lowercase[: len(rows)]], (kind for _, kind in table.columns), strict=True)
        table = replace(table, columns=tuple(columns), rows=rows)
        if _least(table, LEAST) > width:
            return replace(table, rows=(), notes=(f"too wide: {either('--json', 'to_dict()')} has it",)), _sizes(table)
    elif _least(table, READABLE) > width:
        table, hidden = _with_fewer_numbers(table, width)
    sizes, kinds = _sizes(table), [kind for _, kind in table.columns]
    fixed = sum(size for size, kind in zip(sizes, kinds, strict=True) if kind not in LEAST) + GAP * (len(sizes) - 1)
    room = _level([size for size, kind in zip(sizes, kinds, strict=True) if kind in LEAST], width - fixed)
    widths = [max(min(size, room), 1) if kind in LEAST else size for size, kind in zip(sizes, kinds, strict=True)]
    rows = _within(table, dict(zip(range(len(kinds)), widths, strict=True)))
    lost = [hidden] * bool(hidden) + ["whole names"] * (rows != table.rows)
    told = (f"no room for {', '.join(lost)}: {either('--json', 'to_dict()')} has all",) if lost else ()
    return replace(table, rows=rows, notes=(*told, *table.notes)), widths


def _with_fewer_numbers(table: ResultTable, width: int) -> tuple[ResultTable, str]:
    """Return a table that fits with readable names, without the numbers that are furthest from the one to keep; and these."""
    headings = [heading for heading, _ in table.columns]
    numbers = [place for place, (_, kind) in enumerate(table.columns) if place and kind == "number"]
    at = headings.index(table.keep) if table.keep else min(numbers, default=0)
    numbers.sort(key=lambda place: (abs(place - at), place))
    shown, narrow = list(range(len(headings))), table
    while len(numbers) > 1 and _least(narrow, READABLE) > width:
        shown.remove(numbers.pop())
        narrow = replace(
            table,
            columns=tuple(table.columns[place] for place in shown),
            rows=tuple(tuple(row[place] for place in shown) for row in table.rows),
        )
    gone = {heading for place, heading in enumerate(headings) if place not in shown}
    notes = tuple(note for note in (_explaining(note, gone) for note in table.notes) if note)
    return replace(narrow, notes=notes), ", ".join(one for one in headings if one in gone)


def _explaining(note: str, gone: set[str]) -> str:
    """Return a note such as "p: of a pair; r, tau: coefficients" without what it says of headings that are gone."""
    kept, about = list[str](), True
    for part in note.split("; "):
        names, colon, _ = part.partition(": ")
        # What follows without a heading goes with the one before.
        about = not gone.issuperset(names.split(", ")) if colon else about
        kept += [part] * about
    return "; ".join(kept)


def _level(sizes: Sequence[int], room: int) -> int:
    """Return the largest width such that columns of these sizes, none of them wider, have room beside one another."""
    return max(
        (most for most in range(max(sizes, default=0) + 1) if sum(min(one, most) for one in sizes) <= room), default=0
    )


def _within(table: ResultTable, widths: Mapping[int, int]) -> tuple[tuple[str | Cell, ...], ...]:
    """Return the rows of a table of which no name, and no word of a text, is wider than its column."""
    named = [place for place, (_, kind) in enumerate(table.columns) if kind == "name"]
    names = dict.fromkeys(_text(row[place]) for row in table.rows for place in named)
    # Those that are wider than their column stand in the widest.
    most = max((widths[place] for place in named), default=0)
    ways = [
        {name: _shortened(name, most, share) for name in names if cell_len(name) > most} for share in (0.5, 1.0, 0.0)
    ]
    # In the way that keeps most of them apart; those that differ between the same beginnings and ends stand from there on.
    short = max(ways, key=lambda way: len({*way.values()}))
    for alike in [[name for name in short if short[name] == one] for one in dict.fromkeys(short.values())]:
        if len(alike) > 1:
            shortest = min(map(len, alike))
            first = next((k for k in range(shortest) if len({name[k] for name in alike}) > 1), shortest)
            short |= {name: f"{GONE}{_shortened(name[max(first - 1, 0) :], most - len(GONE), 1.0)}" for name in alike}

    def within(cell: str | Cell, place: int) -> str | Cell:
        text, kind = _text(cell), table.columns[place][1]
        if kind == "name" and cell_len(text) > widths[place]:
            text = short[text]
        elif kind == "text":
            text = " ".join(_shortened(word, widths[place]) for word in text.split(" "))
        return Cell(text, cell.role) if isinstance(cell, Cell) else text

    return tuple(tuple(within(cell, place) for place, cell in enumerate(row)) for row in table.rows)


def _shortened(name: str, most: int, share: float = 0.5) -> str:
    """Return a name in so many cells, of which its beginning has a share, cut where one of its parts ends if that is near."""
    room = most - cell_len(GONE)
    if cell_len(name) <= most or room < 1:
        return name if cell_len(name) <= most else GONE[: max(most, 1)]
    tail = _first(name[::-1], math.floor((1 - share) * room))[::-1]
    begins = [found.end() for found in _PARTS.finditer(tail)]
    tail = tail[begins[0] :] if begins and 2 * begins[0] < len(tail) and share > 0 else tail
    head = _first(name, room - cell_len(tail))
    ends = [found.end() for found in _PARTS.finditer(head)]
    head = head[: ends[-1]] if ends and 2 * ends[-1] > len(head) and share < 1 else head
    return f"{head}{GONE}{tail}"


def _first(text: str, most: int) -> str:
    """Return the beginning of a text in so many cells."""
    return chop_cells(text, most)[0] if most > 1 else text[:most] if text[:1].isascii() else ""


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
        texts = [_text(cell) for cell in cells]
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
    texts = [[_text(cell) for cell in row] for row in (headings, *rows)]
    head, *told = [[_unmarked(text) for text in row] for row in texts]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *told))


def _unmarked(text: str) -> str:
    """Return text of which Markdown makes nothing else; an underscore inside a word is none."""
    return _MARKED.sub(r"\\\g<0>", text.strip())
