"""Commands that show what there is: ``kerntest inspect``, files; ``kernels``; ``completion``, words for the Tab key."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

import kerntest
from kerntest.cli import options as common
from kerntest.cli.console import progress_bar
from kerntest.cli.manual import DocumentedCommand, Manual
from kerntest.cli.run import Run, check_stdin
from kerntest.errors import UsageError
from kerntest.report.summaries.words import ResultTable, Summary
from kerntest.report.write import write_standard_output

FILES = Manual(
    examples={
        "What is in this file, and would a test use it?": "kerntest inspect before.csv",
        "Only some columns, for programs": "kerntest inspect before.csv --columns 'items,site_*' --json",
        "The rows for which a condition holds": "kerntest inspect before.csv --where 'items > 2 and payment == \"card\"'",
        "Many files with one header, as one table": "kerntest inspect 'iris_*.csv'",
        "A compressed file from a pipe": "gzip -c after.csv | kerntest inspect -",
        "One line for each column, for a spreadsheet": "kerntest inspect wine.csv --format csv",
        "What is in a model, and which columns does it need?": "kerntest inspect species.kt",
    },
    arguments={
        "FILE": "CSV, Parquet or JSON lines, also compressed with gzip, zstd, bzip2 or xz; a quoted glob of such "
        "files with one header; a folder of Parquet files; or - for stdin. Or a model file."
    },
    notes={
        "What a test would do with a column": "used: it takes part. left out: it cannot tell anything, because it "
        "holds one value or identifies rows; the test goes on with a warning. refused: a test stops with an error, "
        "because of a value that is not a number among numbers, an infinite one, or a type that is not supported; "
        "--exclude leaves the column out."
    },
    never=("1", "4"),
)


@click.command("inspect", cls=DocumentedCommand, manual=FILES)
@common.data_argument("file")
@common.COLUMNS
@common.csv_options
@common.SAMPLE_SEED
@common.format_options
@common.QUIET
def inspect_file(file: str, **options: Any) -> None:
    """Show what FILE holds: rows, format, and for each column its type, missing values, range or most frequent values.

    For each column it also says whether a two-sample test would use it, and if not, why. Of a model it shows what the
    model predicts, from which columns, and how.
    """
    run = Run(options)
    check_stdin({"FILE": file}, "kerntest inspect - < before.csv")
    if not _is_model(Path(file)):
        with progress_bar(quiet=run.quiet, doing="inspecting"):
            report = kerntest.inspect_table(file, **options)
        shown = (";".join(f"{level.value}={level.count}" for level in column.levels) for column in report.columns)
        rows = [{**one.to_dict(), "levels": levels} for one, levels in zip(report.columns, shown, strict=True)]
        run.tell(report, rows)
        return
    if given := {
        name
        for name, value in options.items()
        if value not in ("auto", None) and (name, value) not in {("seed", 0), ("header", True)}
    }:
        raise UsageError(
            f"--{min(given).replace('header', 'no-header')} is for tables, and {file} is a model",
            hint="leave it out",
            code="usage.contradiction",
            where={"file": file},
        )
    model = kerntest.inspect_model(file)
    run.tell(model, [one.to_dict() for one in model.columns])


def _is_model(path: Path) -> bool:
    """Say whether a file is a model, whole or damaged: it begins as one, or is named .kt."""
    from kerntest.data.source import begins_as_model  # noqa: PLC0415 - --help must start at once

    try:
        # The bytes of a pipe come once.
        with path.open("rb") if path.is_file() else BytesIO() as file:
            return begins_as_model(file.read(64)) or (path.is_file() and path.suffix.lower() == ".kt")
    except OSError:
        return False


SCHEMA = "kerntest.kernels/1"
HEADING = "Kernels k(x, y) of two rows; |x-y| is the Euclidean distance, |x-y|_1 the Manhattan distance"
ALGEBRA = {
    "gaussian(1.5) + 0.5*linear": "sums, products and positive weights",
    "normalise(polynomial(degree=2)) * laplacian^2": "powers and normalisation",
    "exp(0.5*laplacian + delta)": "the exponential of a kernel",
    "mahalanobis(gaussian, 0.1)": "a gaussian of the Mahalanobis distance, a tenth of the variances added to the covariance",
    "age, income: gaussian; city: delta; *: laplacian": "a kernel for each group of columns, multiplied",
}

KERNELS = Manual(
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


@click.command(cls=DocumentedCommand, manual=KERNELS)
@common.format_options
def kernels(**options: Any) -> None:
    """List the kernels that --kernel knows, with their formulas, and how to combine them."""
    from kerntest.kernels.text import kernel_entries  # noqa: PLC0415 - numerics are loaded only when used

    rows = kernel_entries()
    algebra = [{"example": example, "meaning": meaning} for example, meaning in ALGEBRA.items()]
    listed = SimpleNamespace(to_dict=lambda: {"schema": SCHEMA, "kernels": rows, "algebra": algebra})
    Run(options).tell(listed, [row | {"aliases": ";".join(row["aliases"])} for row in rows], _summary(rows))


def _summary(rows: list[dict[str, Any]]) -> Summary:
    """Return the kernels as people read them."""
    told: dict[str, tuple[str, ...]] = {}
    for row in rows:
        definite = "positive definite" if row["positive_definite"] else "not always positive definite"
        seen = "characteristic" if row["characteristic"] else "not characteristic"
        called = [f"also called {', '.join(row['aliases'])}"] * bool(row["aliases"])
        told[row["usage"]] = (row["formula"], "; ".join([definite, seen, *called]), row["remark"])
    told["Kernels make kernels"] = tuple(f"{example}  ({meaning})" for example, meaning in ALGEBRA.items())
    tables = (ResultTable((("", "text"),), (), title, notes) for title, notes in told.items())
    return Summary(HEADING, (), "", (), tuple(tables))


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
    from click import shell_completion as shells  # noqa: PLC0415 - only this command needs it

    completers = {"bash": shells.BashComplete, "zsh": shells.ZshComplete, "fish": shells.FishComplete}
    script = completers[shell](click.Command("kerntest"), {}, "kerntest", "_KERNTEST_COMPLETE")
    # Not script.source(): for bash that first starts bash to ask for its version.
    write_standard_output(script.source_template % script.source_vars())
