"""What a file holds, drawn for people: a line for each column, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from kerntest.cli.console import drawn
from kerntest.report.summary import counted, number, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kerntest.report.table_report import ColumnReport, TableReport

_COLOURS = {"used": "green", "left out": "yellow", "refused": "red"}
_WIDEST_VALUE = 24
NARROWEST = 40
# Room for the words of texts that fold.
LEAST = 11
# Characters of a line that never fold: the types, the counts, and what stands between columns.
FIXED = 35


def report_text(report: TableReport, *, width: int, colour: bool) -> str:
    """Return a report drawn as a table: the same content in any width, with or without colour.

    Narrower than 40 characters the columns would have no room: the terminal then wraps the lines itself.
    """
    width = max(width, NARROWEST)
    parts: list[RenderableType] = [
        Text(f"{visible(report.name)}: {counted(report.rows, 'row')}, {_columns_in_words(report)}", style="bold"),
        Text(f"  {_origin(report)}"),
        _grid(report, width),
    ]
    if report.warnings:
        parts.append(Text("Warnings:", style="yellow"))
        parts.append(_indented([visible(warning) for warning in report.warnings]))
    return drawn(Group(*parts), width=width, colour=colour)


def _indented(texts: list[str]) -> RenderableType:
    """Return texts as a list, their further lines below the first."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for text in texts:
        grid.add_row(Text("  -"), Text(text))
    return grid


def _columns_in_words(report: TableReport) -> str:
    """Return the number of columns, and how many of them a test would not use."""
    unused = [column for column in report.columns if column.use != "used"]
    words = counted(len(report.columns), "column")
    return f"{words}, of which a test would use {len(report.columns) - len(unused):,}" if unused else words


def _origin(report: TableReport) -> str:
    """Return the format and the size of what was read."""
    words = [report.format if report.delimiter is None else f"{report.format} with delimiter {report.delimiter!r}"]
    if report.compression is not None:
        words.append(f"compressed with {report.compression}")
    if len(report.files) > 1:
        words.append(f"{len(report.files):,} files, {visible(report.files[0])} to {visible(report.files[-1])}")
    if report.bytes is not None:
        words.append(counted(report.bytes, "byte"))
    if report.complete_rows < report.rows:
        words.append(f"{report.complete_rows:,} of {counted(report.rows, 'row')} complete")
    return ", ".join(words)


def _grid(report: TableReport, width: int) -> RenderableType:
    """Return the columns, one below the other; a text too long for its place goes on in the next line."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    # Names are what people look for: on a narrow screen the other texts fold first, but none of them to nothing.
    longest = max(len(visible(column.name)) for column in report.columns) + 2
    grid.add_column("  column", overflow="fold", style="cyan", min_width=min(longest, (width - FIXED) // 3))
    grid.add_column("type", no_wrap=True)
    grid.add_column("missing", justify="right", no_wrap=True)
    grid.add_column("different", justify="right", no_wrap=True)
    grid.add_column("values", overflow="fold", min_width=LEAST)
    grid.add_column("in a test", overflow="fold", min_width=LEAST)
    for column in report.columns:
        verdict = Text(column.use, style=_COLOURS[column.use])
        if column.note is not None:
            verdict.append(f": {visible(column.note)}", style="default")
        grid.add_row(
            Text(f"  {visible(column.name)}"),
            Text(column.type),
            Text(f"{column.missing:,}"),
            Text(f"{column.different:,}"),
            Text(values_text(column)),
            verdict,
        )
    return grid


def values_text(column: ColumnReport) -> str:
    """Return the range of numbers and dates, the most frequent values of the others, and how many numbers are in text."""
    parts = []
    if column.levels:
        parts = [f"{_cut(level.value)} {level.count:,}" for level in column.levels]
        parts += ["..."] * (column.different > len(column.levels))
    elif column.minimum is not None and column.maximum is not None:
        ends = [end if isinstance(end, str) else number(end) for end in (column.minimum, column.maximum)]
        if ends[0] == ends[1] and column.different == 1:
            return ends[0]
        parts = [f"{ends[0]} to {ends[1]}"]
        moments = {"mean": column.mean, "sd": column.deviation, "median": column.median}
        parts += [f"{name} {number(value)}" for name, value in moments.items() if value is not None]
    if column.numbers is not None and 0 < column.numbers < 1:
        # Neither all nor none.
        percent = min(99, max(1, round(100 * column.numbers)))
        parts.append(f"{percent} % of the values are {'dates' if column.type == 'date' else 'numbers'}")
    return ", ".join(parts)


def _cut(value: str) -> str:
    """Return a value on one line, cut if it is long."""
    text = visible(value)
    return text if len(text) <= _WIDEST_VALUE else f"{text[: _WIDEST_VALUE - 3]}..."
