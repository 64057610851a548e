"""Apply a model to a table: ``kerntest predict``."""

from __future__ import annotations

from typing import Any

import click

from kerntest.cli.applying import DATA_ARGUMENT, UNKNOWN, RowDelivery, keep_option, missing_option, rows_output
from kerntest.cli.console import progress_bar
from kerntest.cli.delivery import gate_option
from kerntest.cli.documented import EXIT_CODES, Manual, option
from kerntest.cli.options import PROBABILITY
from kerntest.cli.run import ComputingCommand, engine_options, join_names
from kerntest.cli.shared_options import csv_options, report_options
from kerntest.report.results.row_reports import PredictionReport, prediction_summary

PREDICTIONS = "Predictions"

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
        (
            "Of a ridge regression, with intervals that hold 90 % of new values",
            "kerntest predict wear.kt machines.csv --interval 0.9",
        ),
        ("From a pipe", "head -n 20 iris.csv | kerntest predict species.kt -"),
    ),
    arguments=(
        ("MODEL", "A file that `kerntest svm ... -o MODEL` or `kerntest ridge ... -o MODEL` wrote."),
        DATA_ARGUMENT,
    ),
    notes=(
        (
            "What is written",
            (
                "A line for each row of DATA, in its order: row, its number from 1; the columns named in --keep; prediction, a "
                "class or number as in training, or for a one-class model true for rows like the training rows and false "
                "for outliers; with --decision the decision function, above 0 for the second class, one for each pair of "
                "several; with --proba the probability of each class. A ridge regression writes a column with the name of each "
                "target instead of prediction; with --std its standard deviation, TARGET_std, and with --interval also "
                "the ends of the interval, TARGET_low and TARGET_high. Columns of DATA are found by name, in any order; those "
                "that the model does not know are ignored, and stderr names them."
            ),
        ),
    ),
    exit_codes=EXIT_CODES,
)


@click.command(cls=ComputingCommand, manual=MANUAL)
@click.argument("model", type=click.Path(readable=False))
@click.argument("data", type=click.Path(allow_dash=True, readable=False))
@option("--proba", is_flag=True, topic=PREDICTIONS, help="Add the probability of each class, in columns p:CLASS.")
@option(
    "--decision", is_flag=True, topic=PREDICTIONS, help="Add the decision function, or one for each pair of classes."
)
@option("--std", is_flag=True, topic=PREDICTIONS, help="Of a ridge regression: add standard deviations of new values.")
@option(
    "--interval",
    type=PROBABILITY,
    metavar="P",
    topic=PREDICTIONS,
    help="Of a ridge regression: add the ends of intervals that hold new values with this probability, such as 0.9.",
)
@keep_option(PREDICTIONS)
@missing_option("prediction")
@UNKNOWN
@csv_options
@rows_output("predictions")
@gate_option(example="incomplete>0")
@report_options
@engine_options("local", "dask")
def predict(model: str, data: str, **options: Any) -> int:
    """Apply a model to the rows of a file of any size.

    The columns are found by name and become what they were in training. A missing column, a value that is no number
    where numbers were, and a category that no training row had stop the run and are named.
    """
    rows = RowDelivery.asked_for("predict", model, data, options, "predictions", record=PredictionReport)
    report = _predicted(model, data, options, quiet=rows.delivery.messages.quiet)
    return rows.deliver(report, prediction_summary, f"{report.predicted:,} predicted")


def _predicted(model: str, data: str, options: dict[str, Any], *, quiet: bool) -> PredictionReport:
    """Run the model over the rows, with a progress bar where somebody is looking."""
    import kerntest  # noqa: PLC0415 - numerics are loaded only to compute

    join_names(options, "keep")
    with progress_bar(quiet=quiet, doing="predicting") as progress:
        return kerntest.predict_file(model, data, progress=progress, **options)
