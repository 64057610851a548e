"""Screens of many pairs and selections of columns, drawn for people: a line for each pair, the surest first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kerntest.cli.console import summary_text
from kerntest.report.independence_summary import screen_summary, selection_summary
from kerntest.report.summary import counted, number, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from kerntest.report.independence_record import PairEffect, ScreenResult, SelectionResult

ROWS_SHOWN = 30
UNTESTED_SHOWN = 5
DIGITS = 2
# A coefficient of correlation that nobody would look at twice.
FAINT = 0.1
ABSENT = "-"
# Between two columns of the table, and the least room for a name.
GAP = 2
NARROWEST_NAME = 8
# A long name is best broken after one of these.
_SEAMS = re.compile(r"[^_\-. ]*[_\-. ]*")
# Narrower tables would lose numbers.
NARROWEST = 78


def screen_text(result: ScreenResult, *, width: int, colour: bool) -> str:
    """Return a screen drawn as a table: the same content in any width, with or without colour.

    Narrower than 78 characters the columns would lose numbers and names: the terminal then wraps the lines itself.
    """
    width = max(width, NARROWEST)
    tested = [pair for pair in result.pairs if pair.p_value is not None]
    shown = tested[:ROWS_SHOWN]
    body: list[RenderableType] = [_pairs(result, shown, width)] if shown else []
    if len(tested) > len(shown):
        body.append(_line(f"and {len(tested) - len(shown):,} more: --format csv shows all"))
    body += [_line(text) for text in _legend(result, shown)]
    body += [_line(text) for text in _untested(result)]
    return summary_text(screen_summary(result), width=width, colour=colour, body=body)


def _pairs(result: ScreenResult, shown: list[PairEffect], width: int) -> RenderableType:
    """Return the pairs, one below the other."""
    columns: list[tuple[str, Callable[[PairEffect], str]]] = [
        ("effect", lambda pair: _number(pair.effect_size)),
        ("p", lambda pair: _number(pair.p_adjusted)),
        ("p perm.", lambda pair: _number(pair.p_permutation)),
        ("r", lambda pair: _coefficient(pair.pearson)),
        ("rho", lambda pair: _coefficient(pair.spearman)),
        ("tau", lambda pair: _coefficient(pair.kendall)),
    ]
    if any(pair.p_step_down is not None for pair in shown):
        columns.insert(2, ("p exact", lambda pair: _number(pair.p_step_down)))
    if len({pair.n for pair in shown}) > 1:
        columns.insert(0, ("n", lambda pair: f"{pair.n:,}"))
    target = result.target
    rows = [
        (
            pair.reject,
            (pair.x, pair.y) if target is None else (_other(pair, target),),
            tuple(show(pair) for _, show in columns),
        )
        for pair in shown
    ]
    return _grid(("x", "y") if target is None else ("column",), tuple(heading for heading, _ in columns), rows, width)


def _other(pair: PairEffect, target: str) -> str:
    """Return the column of a pair that is not the target."""
    return pair.y if pair.x == target else pair.x


def _legend(result: ScreenResult, shown: list[PairEffect]) -> list[str]:
    """Return what the columns of the table mean, and what the coefficients missed."""
    lines = [f"* p at most alpha = {number(result.alpha)}"] if any(pair.reject for pair in shown) else []
    lines.append("p: corrected for all tests; p perm.: over relabellings of this pair alone")
    if any(pair.p_step_down is not None for pair in shown):
        lines.append("p exact: corrected over relabellings that all tests share")
    lines.append(f"r, rho, tau: Pearson, Spearman, Kendall; {ABSENT} where a column is not a number")
    found = [pair for pair in result.pairs if pair.reject]
    missed = [pair for pair in found if _faint(pair)]
    if missed:
        which = "all" if len(missed) == len(found) else f"{len(missed):,} of the {len(found):,}"
        lines.append(f"r, rho and tau are all below {FAINT} in {which} marked: they miss the dependence")
    return lines


def _faint(pair: PairEffect) -> bool:
    """Whether the coefficients have values and none of them shows anything."""
    values = [value for value in (pair.pearson, pair.spearman, pair.kendall) if value is not None]
    return bool(values) and all(abs(value) < FAINT for value in values)


def _untested(result: ScreenResult) -> list[str]:
    """Return the pairs that could not be tested, and why."""
    pairs = [pair for pair in result.pairs if pair.p_value is None]
    lines = [
        f"not tested: {visible(pair.x)}, {visible(pair.y)}: {visible(pair.note or 'no reason given')}"
        for pair in pairs[:UNTESTED_SHOWN]
    ]
    if len(pairs) > UNTESTED_SHOWN:
        lines.append(f"and {counted(len(pairs) - UNTESTED_SHOWN, 'more pair')} not tested")
    return lines


def selection_text(result: SelectionResult, *, width: int, colour: bool) -> str:
    """Return a selection drawn as a table: the same content in any width, with or without colour."""
    width = max(width, NARROWEST)
    rows = [
        (
            step.significant,
            (step.column,),
            (str(step.step), *map(_number, (step.effect_size, step.gain, step.p_value, step.p_alone))),
        )
        for step in result.selected
    ]
    grid = _grid(("column",), ("step", "effect", "gain", "p", "p alone"), rows, width)
    legend = [
        f"* in this step and all before it p is at most alpha = {number(result.alpha)} and the effect grew",
        "effect: of the columns up to this step together; p: of the step; p alone: of the column by itself",
    ]
    body = [grid, *(_line(text) for text in legend)]
    return summary_text(selection_summary(result), width=width, colour=colour, body=body)


def _grid(
    names: tuple[str, ...],
    numbers: tuple[str, ...],
    rows: Sequence[tuple[bool, tuple[str, ...], tuple[str, ...]]],
    width: int,
) -> Table:
    """Return a table whose numbers are never broken, and whose names are where they must.

    Parameters
    ----------
    names, numbers : tuple of str
        Headings of the columns that hold names, and of those that hold numbers.
    rows : sequence of (bool, tuple of str, tuple of str)
        Whether a row is marked, its names and its numbers.
    width : int
        Of the screen.
    """
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    grid.add_column("", no_wrap=True, style="green")
    for heading in names:
        grid.add_column(heading, overflow="fold", style="cyan")
    for heading in numbers:
        grid.add_column(heading, justify="right", no_wrap=True)
    taken = len(_mark(marked=True)) + GAP
    taken += sum(
        max(len(text) for text in texts) + GAP for texts in zip(numbers, *(row[2] for row in rows), strict=True)
    )
    longest = [max(len(visible(name)) for name in column) for column in zip(*(row[1] for row in rows), strict=True)]
    room = _rooms(longest, width - taken - GAP * (len(names) - 1))
    for marked, texts, shown in rows:
        broken = (Text(_broken(visible(text), most)) for text, most in zip(texts, room, strict=True))
        grid.add_row(_mark(marked=marked), *broken, *shown)
    return grid


def _rooms(longest: list[int], room: int) -> list[int]:
    """Share the room among columns of names: what a short one leaves goes to the others."""
    rooms: dict[int, int] = {}
    left = room
    for rank, place in enumerate(sorted(range(len(longest)), key=longest.__getitem__)):
        rooms[place] = max(NARROWEST_NAME, min(longest[place], left // (len(longest) - rank)))
        left -= rooms[place]
    return [rooms[place] for place in range(len(longest))]


def _broken(name: str, most: int) -> str:
    """Return a name in lines of at most `most` characters, broken after its parts where they fit."""
    lines = [""]
    for part in _SEAMS.findall(name):
        if len(lines[-1]) + len(part) <= most:
            lines[-1] += part
        else:
            lines += [part[start : start + most] for start in range(0, len(part), most)]
    return "\n".join(line for line in lines if line)


def _mark(*, marked: bool) -> str:
    return " *" if marked else "  "


def _line(text: str) -> RenderableType:
    """Return a remark, indented like the table."""
    return Padding(Text(text), (0, 0, 0, 2))


def _number(value: float | None) -> str:
    return ABSENT if value is None else number(value, DIGITS)


def _coefficient(value: float | None) -> str:
    """Return a coefficient of correlation to two decimals, so that a column of them can be read at a glance."""
    return ABSENT if value is None else f"{round(value, 2) + 0.0:.2f}"
