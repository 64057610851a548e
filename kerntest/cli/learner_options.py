"""Options that the commands of learners share, each in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kerntest.cli.completion import ColumnNames
from kerntest.cli.documented import option
from kerntest.cli.options import (
    PROBABILITY,
    SEED,
    VERBOSITY,
    KernelText,
    OneOf,
    OutputPath,
    Quantity,
    format_options,
)
from kerntest.cli.shared_options import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.cli.documented import AnyCommand

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


def report_options(function: AnyCommand) -> AnyCommand:
    """Add --fail-on, --report, --format, --json, --quiet and --verbose, in this order."""
    decorators = (
        *VERBOSITY,
        format_options(),
        option(
            "--report",
            type=OutputPath(allow_dash=True),
            metavar="FILE",
            topic="Output",
            help="Write the report to FILE instead of stdout.",
        ),
    )
    for decorator in decorators:
        function = decorator(function)
    return function
