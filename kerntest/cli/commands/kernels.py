"""What can be typed: ``kerntest kernels``, the kernels, and ``kerntest completion``, the Tab key."""

from __future__ import annotations

import sys
from typing import Any

import click

from kerntest.cli import options as common
from kerntest.cli.console import terminal_width, uses_colour
from kerntest.cli.manual import DocumentedCommand, Manual
from kerntest.report.write import csv_text, json_text, write_standard_output

SCHEMA = "kerntest.kernels/1"
HEADING = "Kernels k(x, y) of two rows; |x-y| is the Euclidean distance, |x-y|_1 the Manhattan distance"
ALGEBRA = (
    ("gaussian(1.5) + 0.5*linear", "sums, products and positive weights"),
    ("normalise(polynomial(degree=2)) * laplacian^2", "powers and normalisation"),
    ("age, income: gaussian; city: delta; *: laplacian", "a kernel for each group of columns, multiplied"),
)

MANUAL = Manual(
    examples={
        "List the kernels": "kerntest kernels",
        "The same for programs": "kerntest kernels --json",
        "Use one of them": "kerntest mmd before.csv after.csv --kernel 'student-t(2, df=3)'",
    },
    notes={
        "What the words mean": "positive definite: it can be used in a test at all. characteristic: it sees every "
        "difference between distributions if there are enough rows; the others see only some, such as differences of "
        "means."
    },
    never=("1", "4", "5"),
)


@click.command(cls=DocumentedCommand, manual=MANUAL)
@common.format_options()
def kernels(*, output_format: str | None, as_json: bool) -> None:
    """List the kernels that --kernel knows, with their formulas, and how to combine them."""
    shown_as = common.chosen_format(output_format, as_json=as_json)
    from kerntest.kernels.text import kernel_entries  # noqa: PLC0415 - numerics are loaded only when used

    rows = kernel_entries()
    if shown_as == "table":
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        write_standard_output(_table(rows), encoding=encoding)
    elif shown_as == "json":
        algebra = [{"example": example, "meaning": meaning} for example, meaning in ALGEBRA]
        write_standard_output(json_text({"schema": SCHEMA, "kernels": rows, "algebra": algebra}))
    else:
        write_standard_output(csv_text([{**row, "aliases": ";".join(row["aliases"])} for row in rows]))


def _table(rows: list[dict[str, Any]]) -> str:
    """Return the kernels as people read them."""
    sections: list[tuple[str, list[tuple[str, str]]]] = [(HEADING, [])]
    for row in rows:
        properties = [
            "positive definite" if row["positive_definite"] else "not always positive definite",
            "characteristic" if row["characteristic"] else "not characteristic",
        ]
        if row["aliases"]:
            properties.append(f"also called {', '.join(row['aliases'])}")
        details = (row["formula"], "; ".join(properties), row["remark"])
        sections.append((f"  {row['usage']}", [("", detail) for detail in details]))
    sections.append(("Kernels make kernels", list(ALGEBRA)))
    from kerntest.cli.drawing import sections_text  # noqa: PLC0415 - rich is loaded only to draw

    return sections_text(sections, width=terminal_width(), colour=uses_colour(sys.stdout))


SHELLS = Manual(
    examples={
        "bash: for this and every later shell": "kerntest completion bash >> ~/.bashrc",
        "zsh: for every later shell": "kerntest completion zsh >> ~/.zshrc",
        "fish: for every later shell": "kerntest completion fish > ~/.config/fish/completions/kerntest.fish",
    },
    arguments={"SHELL": "bash, zsh or fish."},
    never=("1", "4", "5"),
)


@click.command(cls=DocumentedCommand, manual=SHELLS)
@click.argument("shell", type=common.one_of("bash", "zsh", "fish"))
def completion(shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, file names and kernel names."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - only this command needs it

    completer = get_completion_class(shell)
    if completer is None:  # pragma: no cover - click has had all three since 8.0
        raise click.UsageError(f"click cannot complete for {shell}")
    script = completer(click.Command("kerntest"), {}, "kerntest", "_KERNTEST_COMPLETE")
    # Not script.source(): for bash that first starts bash to ask for its version.
    write_standard_output(script.source_template % script.source_vars())
