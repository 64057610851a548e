"""Apply a model to a table: ``kerntest predict``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kerntest.cli.console import progress_bar, summary_text
from kerntest.cli.delivery import Delivery
from kerntest.cli.documented import EXIT_CODES, DocumentedCommand, Manual, option
from kerntest.cli.inputs import check_outputs, check_stdin, join_names
from kerntest.cli.learner_options import THREADS, report_options
from kerntest.cli.options import OneOf, OutputPath
from kerntest.cli.shared_options import columns_option, decimal_option
from kerntest.errors import UsageError
from kerntest.report.summary import name_list, visible

if TYPE_CHECKING:
    from kerntest.report.prediction_report import PredictionReport

PREDICTIONS = "Predictions"
DATA = "Data"
DELIVERY = ("output_format", "as_json", "report", "quiet", "verbose")

MANUAL = Manual(
    examples=(
        ("Which species are these? As CSV on stdout", "kerntest predict species.kt iris_virginica.csv"),
        (
            "Into a file, with probabilities and all columns of the data",
            "kerntest predict species.kt iris.csv --proba --keep '*' -o predicted.parquet",
        ),
        (
            "Rows with missing values keep their place, without a prediction",
            "kerntest predict orders.kt with_missing.csv --missing empty",
        ),
        (
            "The decision function too, and what was predicted as JSON",
            "kerntest predict species.kt iris.csv --decision -o predicted.csv --json",
        ),
        ("From a pipe", "head -n 20 iris.csv | kerntest predict species.kt -"),
    ),
    arguments=(
        ("MODEL", "A file that `kerntest svm ... -o MODEL` wrote."),
        (
            "DATA",
            (
                "CSV or Parquet file, gzip and zstd too; a folder of Parquet; a quoted glob; or - for stdin. It may be larger "
                "than memory."
            ),
        ),
    ),
    notes=(
        (
            "What is written",
            (
                "A line for each row of DATA, in its order: row, its number from 1; the columns named in --keep; prediction, a "
                "class or number as in training, or for a one-class model true for rows like the training rows and false "
                "for outliers; with --decision the decision function, above 0 for the second class, one for each pair of "
                "several; with --proba the probability of each class. Columns of DATA are found by name, in any order; those "
                "that the model does not know are ignored, and stderr names them."
            ),
        ),
    ),
    exit_codes=tuple((code, text) for code, text in EXIT_CODES if code != "1"),
)


@click.command(cls=DocumentedCommand, manual=MANUAL, short_help="Apply a model to the rows of a file.")
@click.argument("model", type=click.Path(readable=False))
@click.argument("data", type=click.Path(allow_dash=True, readable=False))
@option("--proba", is_flag=True, topic=PREDICTIONS, help="Add the probability of each class, in columns p:CLASS.")
@option(
    "--decision", is_flag=True, topic=PREDICTIONS, help="Add the decision function, or one for each pair of classes."
)
@columns_option(
    "--keep",
    "Columns of DATA to hand through, such as 'id,price:weight,temp_*'; '*' for all. Of CSV they stay as typed.",
    topic=PREDICTIONS,
)
@option(
    "--missing",
    type=OneOf("error", "drop", "empty"),
    default="error",
    metavar="RULE",
    topic=DATA,
    help="Rows with a missing value: error (stop), drop (leave them out) or empty (leave their prediction empty).",
)
@option(
    "--unknown",
    type=OneOf("error", "ignore"),
    default="error",
    metavar="RULE",
    topic=DATA,
    help="Categories that no training row had: error (stop) or ignore (different from every known one).",
)
@decimal_option(DATA)
@option(
    "-o",
    "--output",
    type=OutputPath(),
    metavar="FILE",
    topic="Output",
    help="Write the predictions to a .csv or .parquet file instead of stdout; stdout then gets a report.",
)
@report_options
@THREADS
def predict(model: str, data: str, **options: Any) -> None:
    """Apply a model to the rows of a file of any size.

    The columns are found by name and become what they were in training. A missing column, a value that is no number
    where numbers were, and a category that no training row had stop the run and are named.
    """
    given = {("output" if name == "report" else name): options.pop(name) for name in DELIVERY}
    delivery = Delivery.asked_for(**given)
    reported = options["output"] is not None or delivery.output is not None
    if not reported and delivery.output_format != "table":
        raise UsageError(
            f"--format {delivery.output_format} is for the report, and stdout gets the predictions as CSV",
            hint="-o FILE.csv puts the predictions into a file, --report FILE the report",
            code="usage.contradiction",
        )
    check_stdin({"DATA": data}, f"kerntest predict {model} - < new.csv")
    check_outputs((model, data), {"-o": options["output"], "--report": delivery.output})
    report = _predicted(model, data, options, quiet=delivery.messages.quiet)
    if reported:
        delivery.deliver(report, lambda **page: _draw(report, **page), report.warnings)
    else:
        delivery.messages.warn([visible(warning) for warning in report.warnings])
    if report.columns_ignored and (not reported or delivery.output_format != "table"):
        delivery.messages.note(f"not used by {visible(report.model)}: {name_list(report.columns_ignored)}")
    if report.output is not None:
        delivery.messages.note(f"wrote {visible(report.output)}")
    delivery.messages.explain([f"{report.rows:,} rows, {report.predicted:,} predicted, {report.seconds:.3g} seconds"])


def _predicted(model: str, data: str, options: dict[str, Any], *, quiet: bool) -> PredictionReport:
    """Run the model over the rows, with a progress bar where somebody is looking."""
    import kerntest  # noqa: PLC0415 - numerics are loaded only to compute

    join_names(options, "keep")
    with progress_bar(quiet=quiet, doing="predicting") as progress:
        return kerntest.predict_file(model, data, progress=progress, **options)


def _draw(report: PredictionReport, **page: Any) -> str:
    from kerntest.report.prediction_report import prediction_summary  # noqa: PLC0415 - --help must start at once

    return summary_text(prediction_summary(report), answer="Result", **page)
