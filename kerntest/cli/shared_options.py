"""Options that the tests share, each in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kerntest.cli.completion import ColumnNames
from kerntest.cli.documented import option
from kerntest.cli.options import COUNT, PROBABILITY, SEED, OneOf
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


def csv_options(command: AnyCommand) -> AnyCommand:
    """Add the options that say how CSV is written."""
    decorators = (
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
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def method_options(kinds: str, usual: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator that adds --method and --features; `kinds` says what null goes with features, `usual` which."""
    decorators = (
        option(
            "--features",
            metavar="KIND:M",
            topic="Test",
            help="Features of --method features: nystroem:M (kernel values at M random rows) or fourier:M (random waves, for "
            f"numbers). More take longer and come nearer to the kernel.  [default: {usual}]",
        ),
        option(
            "--method",
            type=OneOf("exact", "features"),
            metavar="NAME",
            topic="Test",
            help="exact compares all pairs of rows. features, for any number of rows, stands for the kernel by a few "
            f"hundred columns, reads files piece by piece and never holds them; {kinds}. The error is told.  [default: exact]",
        ),
    )

    def decorate(function: AnyCommand) -> AnyCommand:
        for decorator in decorators:
            function = decorator(function)
        return function

    return decorate


def chosen_method(options: dict[str, Any]) -> None:
    """Make --method of what was given: --features alone asks for it; neither leaves the test as it is.

    Raises
    ------
    UsageError
        If they contradict each other.
    """
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
