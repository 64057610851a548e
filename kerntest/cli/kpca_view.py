"""Kernel principal components, drawn for people: one line for each component."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kerntest.cli.console import summary_text
from kerntest.report.kpca_summary import goes_with, kpca_summary
from kerntest.report.summary import number

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kerntest.report.kpca_record import KpcaResult

# More components than this are left to --json.
SHOWN = 12


def kpca_text(result: KpcaResult, *, width: int, colour: bool) -> str:
    """Return components drawn as a table: the same content in any width, with or without colour."""
    return summary_text(kpca_summary(result), width=width, colour=colour, body=_components(result), answer="Result")


def _components(result: KpcaResult) -> list[RenderableType]:
    """Return eigenvalues, shares of the variance, and the columns that each component goes with."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column("  component", no_wrap=True, style="cyan")
    for heading in ("eigenvalue", "% of variance", "together"):
        table.add_column(Text(heading), justify="right", no_wrap=True)
    table.add_column(Text("goes with (correlation)"), overflow="fold")
    together = 0.0
    for place, (value, ratio) in enumerate(zip(result.eigenvalues, result.explained_variance_ratio, strict=True)):
        together += ratio
        if place >= SHOWN:
            continue
        shares = (f"{100 * ratio:.1f}", f"{100 * together:.1f}")
        table.add_row(f"  pc{place + 1}", number(value), *shares, Text(goes_with(result, place)))
    parts: list[RenderableType] = [Text("Components:", style="bold"), table]
    more = result.components - SHOWN
    if more > 0:
        parts.append(Padding(Text(f"and {more:,} more, in all {100 * together:.1f} %: --json has them"), (0, 0, 0, 2)))
    return parts
