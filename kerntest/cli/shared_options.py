"""Options that commands share, each in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kerntest.cli.documented import option, stacked
from kerntest.cli.options import (
    COUNT,
    PROBABILITY,
    SEED,
    VERBOSITY,
    ColumnNames,
    KernelText,
    OneOf,
    OutputPath,
    Quantity,
    format_options,
)
from kerntest.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.cli.documented import AnyCommand

ROWS = "Columns and rows"


def columns_option(name: str, text: str, *, topic: str = ROWS) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for an option that names columns; given twice, the names add up."""
    return option(name, type=ColumnNames(), multiple=True, metavar="NAMES", topic=topic, help=text)


def estimator_option(estimated: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --estimator."""
    return option(
        "--estimator",
        type=OneOf("unbiased", "biased"),
        default="unbiased",
        metavar="NAME",
        topic="Test",
        help=f"Estimate of {estimated} that is tested: unbiased (may be negative) or biased. Both are reported.",
    )


def null_option(one_kernel: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --null; `one_kernel` is what the approximate ones are for."""
    return option(
        "--null",
        type=OneOf("permutation", "moments", "gamma", "spectral", "pearson"),
        default="permutation",
        metavar="NAME",
        topic="Test",
        help=f"Where the p-value comes from: permutation (exact); or, approximately and for {one_kernel}, moments, gamma, "
        "spectral or pearson (see below).",
    )


def permutations_option(number: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --permutations; `number` says what N is of those that are used."""
    return option(
        "--permutations",
        type=COUNT,
        default=1000,
        metavar="N",
        topic="Test",
        help=f"Relabellings to use{number}; the smallest possible p-value is 1/N.",
    )


def resampling_option(usual: str, meaning: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --resampling; `usual` names the default, and `meaning` says what it is."""
    return option(
        "--resampling",
        type=OneOf(usual, "random"),
        default=usual,
        metavar="NAME",
        topic="Test",
        help=f"Relabellings of the permutation null: {meaning}, or ordinary random permutations (much slower).",
    )


JUDGE = option(
    "--judge",
    type=OneOf("together", "smallest"),
    default="together",
    metavar="NAME",
    topic="Test",
    help="How several kernels come to one p-value: together (how unusual their statistics are as a whole, given how they "
    "vary together: sees what no kernel shows alone) or smallest (the smallest p-value of any of them, corrected).",
)
ALPHA = option("--alpha", type=PROBABILITY, default=0.05, metavar="P", topic="Test", help="Level of the test.")
SEED_OPTION = option(
    "--seed", type=SEED, default=0, metavar="N", topic="Test", help="Seed; the same seed gives the same p-value."
)
SCALE = option(
    "--scale",
    type=OneOf("standardize", "none"),
    default="standardize",
    metavar="RULE",
    topic=ROWS,
    help="standardize brings every numeric column to mean 0 and standard deviation 1; none leaves the units.",
)
CATEGORICAL = columns_option("--categorical", "Columns of numbers that are codes for categories.")


CSV = "How CSV is written"
CSV_WORDS = frozenset({"decimal", "na", "delimiter", "encoding", "header", "comment"})


csv_options = stacked(
    option(
        "--decimal",
        type=OneOf("auto", ".", ","),
        default="auto",
        metavar="MARK",
        topic=CSV,
        help="Decimal mark: auto, '.' or ','; auto warns where it found a comma.",
    ),
    option(
        "--na",
        metavar="VALUES",
        topic=CSV,
        help="Words that are missing values, such as '?,unknown'; '' for none. An empty field always is one; between "
        "quotes a word is text in a column of text.  [default: NA, N/A, #N/A, NaN, nan, null, NULL, None, n/a]",
    ),
    option(
        "--delimiter",
        metavar="CHAR",
        topic=CSV,
        help="What stands between fields: one character, or tab, space, comma, semicolon or bar.  [default: found]",
    ),
    option("--encoding", metavar="NAME", topic=CSV, help="Such as latin-1 or utf-16.  [default: utf-8]"),
    option(
        "--no-header",
        "header",
        is_flag=True,
        flag_value=False,
        default=True,
        show_default=False,
        topic=CSV,
        help="The first line is a row; the columns are called x1, x2 and so on.",
    ),
    option("--comment", metavar="TEXT", topic=CSV, help="Lines that begin so, such as '#', are no rows."),
)


def method_options(kinds: str, usual: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --method and --features; `kinds` says what null goes with features, `usual` which."""
    return stacked(
        option(
            "--method",
            type=OneOf("exact", "features"),
            metavar="NAME",
            topic="Test",
            help="exact compares all pairs of rows. features, for any number of rows, stands for the kernel by a few "
            f"hundred columns, reads files piece by piece and never holds them; {kinds}. The error is told.  [default: exact]",
        ),
        option(
            "--features",
            metavar="KIND:M",
            topic="Test",
            help="Features of --method features: nystroem:M (kernel values at M random rows) or fourier:M (random waves, for "
            f"numbers). More take longer and come nearer to the kernel.  [default: {usual}]",
        ),
    )


def chosen_method(options: dict[str, Any]) -> None:
    """Make --method of what was given: --features alone asks for it; neither leaves the test as it is."""
    if options["features"] is not None and options["method"] == "exact":
        raise UsageError(
            "--features does not go with --method exact",
            hint="leave out one of the two: --features alone asks for --method features",
            code="usage.contradiction",
        )
    if options["method"] is None:
        options["method"] = "exact" if options["features"] is None else "features"
    if options["features"] is None:
        del options["features"]


FORCE = option(
    "--force",
    is_flag=True,
    topic="Output",
    help="Replace a model file that is there already; any other output replaces its file without being told to.",
)
FOLDS = Quantity(int, lambda value: 2 <= value <= 1000, "a whole number from 2 to 1000")
JUDGED = "Choosing and judging"
MISSING = option(
    "--missing",
    type=OneOf("error", "drop"),
    default="error",
    metavar="RULE",
    topic=ROWS,
    help="Missing values: error (stop and count them) or drop (leave out their rows).",
)
CLUSTER = option(
    "--cluster",
    type=ColumnNames(),
    metavar="NAME",
    topic=ROWS,
    help="Column, such as a patient or a shop, whose rows of one value stay together in test parts and folds; not learned "
    "from.",
)
TEST = option(
    "--test", type=click.Path(readable=False), metavar="FILE", topic=JUDGED, help="Rows to judge by, in a file."
)


def test_fraction_option(drawn: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --test-fraction; `drawn` says how, such as "drawn by class"."""
    return option(
        "--test-fraction",
        type=PROBABILITY,
        metavar="SHARE",
        topic=JUDGED,
        help=f"Share of the rows of TRAIN to hold out and judge by, {drawn}.",
    )


def kernel_option(topic: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --kernel."""
    return option(
        "--kernel",
        type=KernelText(),
        default="gaussian",
        metavar="TEXT",
        topic=topic,
        help="Kernel, such as 'laplacian' or 'gaussian(1.5) + 0.5*linear'; `kerntest kernels` lists them.",
    )


def features_option(topic: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --features."""
    return option(
        "--features",
        metavar="KIND:M",
        topic=topic,
        help="For very many rows: nystroem:M or fourier:M, M explicit features instead of the kernel; the error is told.",
    )


def seed_option(topic: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --seed."""
    return option(
        "--seed",
        type=SEED,
        default=0,
        metavar="N",
        topic=topic,
        help="Seed of all that is drawn at random: parts, folds, features.",
    )


def model_output(purpose: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --output, for the model."""
    return option(
        "-o",
        "--output",
        type=OutputPath(),
        metavar="MODEL",
        topic="Output",
        help=f"Keep the model in a file, {purpose}.",
    )


report_options = stacked(
    option(
        "--report",
        type=OutputPath(allow_dash=True),
        metavar="FILE",
        topic="Output",
        help="Write the report to FILE instead of stdout.",
    ),
    format_options(),
    VERBOSITY,
)
