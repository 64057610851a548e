"""Test whether two files come from the same distribution: ``kerntest mmd``."""

from __future__ import annotations

import os
import sys
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kerntest.cli.completion import ColumnNames
from kerntest.cli.console import is_terminal, progress_bar
from kerntest.cli.delivery import Delivery, gate
from kerntest.cli.documented import EXIT_CODES, DocumentedCommand, Manual, option
from kerntest.cli.options import (
    COUNT,
    POSITIVE,
    PROBABILITY,
    SEED,
    Bandwidth,
    KernelText,
    OneOf,
    OutputPath,
    result_options,
)
from kerntest.errors import KerntestError, UsageError
from kerntest.report.summary import two_sample_notes, two_sample_summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.cli.documented import AnyCommand
    from kerntest.report.record import TwoSampleResult

MANUAL = Manual(
    examples=(
        ("Compare two files", "kerntest mmd before.csv after.csv"),
        (
            "A gate in a pipeline: exit code 1 when the data have drifted",
            "kerntest mmd before.csv after.csv --fail-on reject",
        ),
        (
            "JSON for programs, of some columns",
            "kerntest mmd before.csv after.csv --columns 'order_value_eur,items' --json",
        ),
        ("Read one of the two from a pipe", "head -n 101 after.csv | kerntest mmd before.csv -"),
        (
            "Choose the kernel and its bandwidth",
            "kerntest mmd iris_versicolor.csv iris_virginica.csv --kernel 'gaussian(1.5)'",
        ),
        ("Where do they differ?", "kerntest mmd before.csv after.csv --explain --plot drift.png"),
    ),
    arguments=(
        ("X", "CSV or Parquet file, gzip and zstd too; a folder of Parquet; a quoted glob; or - for stdin."),
        ("Y", "The file to compare with it; it must have the same columns."),
    ),
    notes=(
        (
            "How to read the result",
            (
                "The p-value is the chance of a difference at least this large if both files came from the same "
                "distribution. A small one (at most alpha) says that they differ; a large one does not prove that they are "
                "equal. The effect size, from 0 to 1, says how much they differ, whatever the number of rows."
            ),
        ),
        (
            "Nulls",
            (
                "permutation is exact for any number of rows and judges a whole family of kernels together; its p-value "
                "is at least 1 / permutations. The others take one kernel and have no such floor. moments: a Pearson III "
                "curve through the exact mean, variance and skewness of the permutation distribution; right to an eighth "
                "at p-values down to 0.001 wherever it was measured. pearson: a curve through four moments; as good in "
                "the body, less sure below 0.001. spectral: weighted chi-squares; good for the unbiased estimate, too "
                "cautious for the biased one in many dimensions. gamma: two moments; it rejects up to three times too "
                "often at p = 0.001."
            ),
        ),
    ),
    exit_codes=EXIT_CODES,
)


def _columns_option(name: str, text: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for an option that names columns; given twice, the names add up."""
    return option(name, type=ColumnNames(), multiple=True, metavar="NAMES", topic="Columns and rows", help=text)


@click.command(
    cls=DocumentedCommand, manual=MANUAL, short_help="Test whether two files come from the same distribution."
)
@click.argument("x", type=click.Path(allow_dash=True, readable=False))
@click.argument("y", type=click.Path(allow_dash=True, readable=False))
@option(
    "--kernel",
    type=KernelText(),
    default="auto",
    metavar="TEXT",
    topic="Test",
    help="Kernel, such as 'laplacian' or 'gaussian(1.5) + 0.5*linear'; auto tries a family of them and gives one "
    "p-value for all. `kerntest kernels` lists them.",
)
@option(
    "--bandwidth",
    type=Bandwidth(),
    default="auto",
    metavar="VALUE",
    topic="Test",
    help="Bandwidth of a kernel that names none: auto (several, judged together), median (of the distances), a "
    "number, or several: 0.5,1,2.",
)
@option(
    "--estimator",
    type=OneOf("unbiased", "biased"),
    default="unbiased",
    metavar="NAME",
    topic="Test",
    help="Estimate of MMD^2 that is tested: unbiased (may be negative) or biased. Both are reported.",
)
@option(
    "--null",
    type=OneOf("permutation", "moments", "gamma", "spectral", "pearson"),
    default="permutation",
    metavar="NAME",
    topic="Test",
    help="Where the p-value comes from: permutation (exact); or, approximately and for one kernel, moments, gamma, "
    "spectral or pearson (see below).",
)
@option(
    "--permutations",
    type=COUNT,
    default=1000,
    metavar="N",
    topic="Test",
    help="Relabellings to use at least; the smallest possible p-value is 1/N.",
)
@option(
    "--resampling",
    type=OneOf("shifts", "random"),
    default="shifts",
    metavar="NAME",
    topic="Test",
    help="Relabellings of the permutation null: all cyclic shifts of the rows in random order, or ordinary random "
    "permutations (much slower).",
)
@option("--alpha", type=PROBABILITY, default=0.05, metavar="P", topic="Test", help="Level of the test.")
@option(
    "--min-effect",
    type=POSITIVE,
    metavar="D",
    topic="Test",
    help="Reject only if MMD is surely at least D: its lower confidence bound at level 1 - alpha, at the median "
    "bandwidth unless the kernel is given.",
)
@option("--seed", type=SEED, default=0, metavar="N", topic="Test", help="Seed; the same seed gives the same p-value.")
@option(
    "--scale",
    type=OneOf("standardize", "none"),
    default="standardize",
    metavar="RULE",
    topic="Columns and rows",
    help="standardize brings every numeric column to mean 0 and standard deviation 1; none leaves the units.",
)
@_columns_option("--columns", "Columns to use, such as 'price,size:weight,temp_*' (a:b is a range).")
@_columns_option("--exclude", "Columns to leave out, written the same way.")
@option("--common", is_flag=True, topic="Columns and rows", help="Use the columns that both files have.")
@_columns_option("--categorical", "Columns of numbers that are codes for categories.")
@option(
    "--decimal",
    type=OneOf("auto", ".", ","),
    default="auto",
    metavar="MARK",
    topic="Columns and rows",
    help="Decimal mark in CSV: auto, '.' or ','; auto warns where it found a comma.",
)
@option(
    "--missing",
    type=OneOf("error", "drop"),
    default="error",
    metavar="RULE",
    topic="Columns and rows",
    help="Missing values: error (stop and count them) or drop (leave out their rows).",
)
@option(
    "--explain",
    is_flag=True,
    topic="Where they differ",
    help="Also test each column alone (p-values corrected for all of them), and show the most typical rows.",
)
@option(
    "--witness",
    type=OutputPath(),
    metavar="FILE",
    topic="Where they differ",
    help="Write the witness function at every row to a .csv or .parquet file: positive where X is denser.",
)
@option(
    "--plot",
    type=OutputPath(),
    metavar="FILE",
    topic="Where they differ",
    help="Draw the null distribution, the witness function and, with --explain, the columns into a .png, .svg or "
    ".pdf file.",
)
@option(
    "--threads",
    type=COUNT,
    metavar="N",
    topic="Test",
    help="Threads to use; the result does not depend on it.  [default: all cores]",
)
@result_options
def mmd(x: str, y: str, *, fail_on: str | None, **options: Any) -> int:
    """Test whether X and Y come from the same distribution.

    The test compares the rows of both files, all columns together, by the maximum mean discrepancy (MMD): it sees
    differences of any kind, not only of means, and by default its p-value is exact for any number of rows.
    """
    asked = {name: options.pop(name) for name in ("output_format", "as_json", "output", "quiet", "verbose")}
    delivery = Delivery.asked_for(**asked)
    _check_files(x, y, {"-o": delivery.output, "--witness": options["witness"], "--plot": options["plot"]})
    result = _tested(x, y, options, quiet=delivery.messages.quiet)
    delivery.messages.explain(two_sample_notes(result))
    delivery.deliver(result, lambda: two_sample_summary(result), result.warnings)
    return gate(result.reject, fail_on, delivery.messages)


def _check_files(x: str, y: str, outputs: dict[str, str | None]) -> None:
    """Refuse what cannot work: stdin twice, a keyboard as a table, outputs over each other or over the data.

    Raises
    ------
    UsageError
        As above.
    """
    if x == y == "-":
        raise UsageError(
            "X and Y cannot both be read from stdin", hint="give one of them as a file", code="usage.stdin_twice"
        )
    if "-" in {x, y} and (sys.stdin is None or is_terminal(sys.stdin)):
        raise UsageError(
            f"- reads a table from stdin, but stdin is {'closed' if sys.stdin is None else 'a terminal'}",
            hint="send it a file: `kerntest mmd before.csv - < after.csv`",
            code="usage.stdin_terminal",
        )
    for (one, first), (other, second) in combinations(outputs.items(), 2):
        if first is not None and second is not None and os.path.realpath(first) == os.path.realpath(second):
            raise UsageError(
                f"{one} and {other} would both write {second}",
                hint="give each a file of its own",
                code="usage.output_twice",
                where={"file": second},
            )
    for source, (name, output) in product((x, y), outputs.items()):
        if output is not None and _same_file(source, output):
            raise UsageError(
                f"{name} {output} would replace the data in {source}",
                hint="write the result to another file",
                code="usage.output_is_input",
                where={"file": output},
            )


def _same_file(source: str, output: str) -> bool:
    """Whether an output is, under whatever name, one of the files that a source means."""
    from kerntest.data.paths import find_files  # noqa: PLC0415 - numerics are loaded only to compute

    try:
        return Path(output).is_file() and any(file.samefile(output) for _, file in find_files(source, source).files)
    except (OSError, KerntestError):
        return False


def _tested(x: str, y: str, options: dict[str, Any], *, quiet: bool) -> TwoSampleResult:
    """Run the test, with a progress bar where somebody is looking."""
    from kerntest.inference.two_sample import mmd_test  # noqa: PLC0415 - numerics are loaded only to compute

    for name in ("columns", "exclude", "categorical"):
        options[name] = ",".join(options[name]) or None
    options["categorical"] = options["categorical"] or ()
    try:
        with progress_bar(quiet=quiet) as progress:
            return mmd_test(x, y, **options, progress=progress)
    except KerntestError as error:
        if "position" in error.where:
            # So that the message can point at the character.
            error.where.setdefault("text", options["kernel"])
            error.hint = error.hint or "`kerntest kernels` shows how each kernel is written"
        raise
