"""Options that the tests share, each in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.cli.completion import ColumnNames
from kerntest.cli.documented import option
from kerntest.cli.options import COUNT, PROBABILITY, SEED, OneOf

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


PERMUTATIONS = option(
    "--permutations",
    type=COUNT,
    default=1000,
    metavar="N",
    topic="Test",
    help="Relabellings to use at least; the smallest possible p-value is 1/N.",
)
RESAMPLING = option(
    "--resampling",
    type=OneOf("shifts", "random"),
    default="shifts",
    metavar="NAME",
    topic="Test",
    help="Relabellings of the permutation null: all cyclic shifts of the rows in random order, or ordinary random "
    "permutations (much slower).",
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


def decimal_option(topic: str = ROWS) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --decimal."""
    return option(
        "--decimal",
        type=OneOf("auto", ".", ","),
        default="auto",
        metavar="MARK",
        topic=topic,
        help="Decimal mark in CSV: auto, '.' or ','; auto warns where it found a comma.",
    )
