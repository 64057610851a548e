"""Fitted ridge regressions, drawn for people, with the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kerntest.cli.console import summary_text
from kerntest.report.ridge_summary import ridge_summary
from kerntest.report.summary import number

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kerntest.report.ridge_record import RidgeGrid, RidgeResult

GAP = 2


def ridge_text(result: RidgeResult, *, width: int, colour: bool) -> str:
    """Return a regression drawn as a table: the same content with or without colour; a narrow page shows less grid."""
    body: list[RenderableType] = []
    if result.grid is not None and len(result.grid.cells) > 1:
        body += _grid(result.grid, width)
    return summary_text(ridge_summary(result), width=width, colour=colour, body=body)


def _grid(grid: RidgeGrid, width: int) -> list[RenderableType]:
    """Return the scores of a grid: lambdas down, bandwidths across, as many as there is room for."""
    lambdas = sorted({cell.lambda_ for cell in grid.cells})
    multiples = sorted({cell.multiple for cell in grid.cells})
    cells = {(cell.multiple, cell.lambda_): cell for cell in grid.cells}
    chosen = grid.cells[grid.chosen]
    headings = {
        multiple: number(multiple) if one.bandwidth is None else number(one.bandwidth, 3)
        for multiple, one in ((multiple, cells[multiple, lambdas[0]]) for multiple in multiples)
    }
    texts = {place: number(cell.score, 4) for place, cell in cells.items()}
    widths = {
        multiple: max(len(headings[multiple]), *(len(texts[multiple, one]) + 1 for one in lambdas)) + GAP
        for multiple in multiples
    }
    shown = _around(multiples, chosen.multiple, widths, width - 12)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="")
    table.add_column("  lambda", no_wrap=True, style="cyan")
    for multiple in shown:
        table.add_column(Text(headings[multiple]), justify="right", no_wrap=True)
    for one in lambdas:
        row = [
            Text(f"*{texts[multiple, one]}", style="bold green")
            if cells[multiple, one] is chosen
            else Text(texts[multiple, one])
            for multiple in shown
        ]
        table.add_row(f"  {number(one)}", *row)
    of = "bandwidths" if cells[multiples[0], lambdas[0]].bandwidth is not None else "bandwidths / median"
    some = "" if len(shown) == len(multiples) else f" {len(shown)} of {len(multiples)} (--json has all)"
    heading = f"Grid, {grid.score}, {of} across{some} (* chosen):"
    rule = Padding(Text(f"tie rule: {grid.tie_rule}", overflow="fold"), (0, 0, 0, 2))
    return [Text(heading, style="bold"), table, rule]


def _around(multiples: list[float], best: float, widths: dict[float, int], room: int) -> list[float]:
    """Return as many neighbours of the best bandwidth as fit side by side, the nearest ones."""
    at = multiples.index(best)
    nearest = sorted(multiples, key=lambda multiple: (abs(multiples.index(multiple) - at), multiple))
    shown: list[float] = []
    for multiple in nearest:
        if shown and sum(widths[one] for one in [*shown, multiple]) > room:
            break
        shown.append(multiple)
    return sorted(shown)
