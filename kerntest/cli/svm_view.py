"""Fitted support vector machines, drawn for people: classes one by one, the confusion matrix, the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kerntest.cli.console import summary_text
from kerntest.report.learner_summary import PARTS
from kerntest.report.learning_record import ClassificationMetrics
from kerntest.report.summary import number, visible
from kerntest.report.svm_summary import svm_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from kerntest.report.svm_record import GridCell, GridSearch, SvmResult

# More classes than this are left to --json: nobody reads a larger matrix in a terminal.
CLASSES_SHOWN = 12
LONGEST_NAME = 20
GAP = 2
ABSENT = "-"


def svm_text(result: SvmResult, *, width: int, colour: bool) -> str:
    """Return a machine drawn as a table: the same content in any width, with or without colour."""
    judged = result.train if result.judged_on == "train" else result.test
    body: list[RenderableType] = []
    if result.grid is not None and len(result.grid.cells) > 1:
        body += _grid(result.grid)
    if isinstance(judged, ClassificationMetrics):
        body += _classes(judged, result.judged_on, width)
    return summary_text(svm_summary(result), width=width, colour=colour, body=body)


def _classes(judged: ClassificationMetrics, part: str, width: int) -> list[RenderableType]:
    """Return precision, recall and F1 of each class, and where its rows went."""
    total = len(judged.classes)
    # The most frequent ones where there are too many, in the order of the classes.
    largest = sorted(range(total), key=lambda k: (-judged.classes[k].support, k))[:CLASSES_SHOWN]
    shown = sorted(largest)
    names = _short([judged.classes[k].name for k in shown])
    letters = names
    matrix: list[RenderableType] = []
    if total == len(shown):
        counts = [[f"{count:,}" for count in row] for row in judged.confusion]
        if _matrix_width(names, counts) > width:
            # Letters stand above the columns, and both tables say for which class.
            letters = [chr(ord("a") + place) for place in range(len(names))]
            names = [f"{letter} {name}" for letter, name in zip(letters, names, strict=True)]
        fits = _matrix_width(letters, counts) <= width
        matrix = _confusion(letters, counts) if fits else [_line("the confusion matrix is too wide: --json has it")]
    else:
        matrix = [_line(f"and {total - len(shown):,} more classes: --json has all, with the confusion matrix")]
    table = _table(["class", "rows", "precision", "recall", "F1"])
    for name, k in zip(names, shown, strict=True):
        one = judged.classes[k]
        table.add_row(
            Text(f"  {name}"), f"{one.support:,}", *(_share(value) for value in (one.precision, one.recall, one.f1))
        )
    return [Text(f"Classes, on the {PARTS[part]} rows:", style="bold"), table, *matrix]


def _matrix_width(names: Sequence[str], counts: Sequence[Sequence[str]]) -> int:
    """Return how many characters a line of the confusion matrix takes."""
    columns = zip(names, zip(*counts, strict=True), strict=True)
    return 2 + max(map(len, names)) + sum(GAP + max(map(len, (name, *column))) for name, column in columns)


def _confusion(names: Sequence[str], counts: Sequence[Sequence[str]]) -> list[RenderableType]:
    """Return the confusion matrix."""
    table = _table(["", *names])
    for place, (name, row) in enumerate(zip(names, counts, strict=True)):
        cells = [Text(text, style="green" if place == column else "") for column, text in enumerate(row)]
        table.add_row(Text(f"  {name}"), *cells)
    return [Text("Confusion matrix, true classes down, predicted ones across:", style="bold"), table]


def _grid(grid: GridSearch) -> list[RenderableType]:
    """Return the scores of a grid: bandwidths down, costs across, the chosen cell marked."""
    costs = sorted({cell.C for cell in grid.cells})
    multiples = sorted({cell.multiple for cell in grid.cells})
    by_place = {(cell.multiple, cell.C): cell for cell in grid.cells}
    chosen = grid.cells[grid.chosen]
    scores = "accuracy in %" if grid.score == "accuracy" else "RMSE"
    table = _table(["bandwidth", *(f"C = {number(cost)}" for cost in costs)])
    for multiple in multiples:
        first = by_place[multiple, costs[0]]
        size = f"{number(multiple)} x median" if first.bandwidth is None else number(first.bandwidth)
        texts = [_marked(by_place[multiple, cost], chosen, grid.score) for cost in costs]
        table.add_row(f"  {size}", *texts)
    heading = f"Grid, mean {scores} over {grid.folds} folds (* chosen):"
    rule = Padding(Text(f"tie rule: {grid.tie_rule}", overflow="fold"), (0, 0, 0, 2))
    return [Text(heading, style="bold"), table, rule]


def _marked(cell: GridCell, chosen: GridCell, score: str) -> Text:
    """Return the score of a cell, with a star on the chosen one."""
    text = f"{100 * cell.mean:.1f}" if score == "accuracy" else number(-cell.mean)
    if cell is chosen:
        return Text(f"*{text}", style="bold green")
    return Text(text)


def _table(headings: Sequence[str]) -> Table:
    """Return a table of names and numbers: the numbers are never broken."""
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="")
    table.add_column(f"  {headings[0]}", overflow="fold", style="cyan")
    for heading in headings[1:]:
        table.add_column(Text(heading), justify="right", no_wrap=True)
    return table


def _short(names: Sequence[str]) -> list[str]:
    """Return names on one line each, the longest ones cut."""
    texts = [visible(name) for name in names]
    return [text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 3]}..." for text in texts]


def _share(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}"


def _line(text: str) -> RenderableType:
    """Return a remark, indented like the table."""
    return Padding(Text(text), (0, 0, 0, 2))
