"""Options that the commands of learners share, each in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerntest.cli.documented import option
from kerntest.cli.options import COUNT, VERBOSITY, OutputPath, format_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.cli.documented import AnyCommand

THREADS = option(
    "--threads",
    type=COUNT,
    metavar="N",
    topic="Output",
    help="Threads to use; the result does not depend on it.  [default: all cores]",
)
FORCE = option("--force", is_flag=True, topic="Output", help="Replace a model file that is there already.")


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
    """Add --report, --format, --json, --quiet and --verbose, in this order."""
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
