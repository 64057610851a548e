"""Project rows on components: ``kerntest transform``."""

from __future__ import annotations

from typing import Any

import click

from kerntest.cli.applying import DATA_ARGUMENT, UNKNOWN, RowDelivery, keep_option, missing_option, rows_output
from kerntest.cli.console import progress_bar
from kerntest.cli.delivery import gate_option
from kerntest.cli.documented import EXIT_CODES, Manual, option
from kerntest.cli.options import COUNT
from kerntest.cli.run import ComputingCommand, engine_options, join_names
from kerntest.cli.shared_options import csv_options, report_options
from kerntest.report.results.row_reports import TransformReport, transform_summary

PROJECTION = "Projection"

MANUAL = Manual(
    examples=(
        ("Where do these rows lie on the components? As CSV on stdout", "kerntest transform shop.kt after.csv"),
        (
            "Into a file, beside all columns of the data",
            "kerntest transform shop.kt after.csv --keep '*' -o projected.parquet",
        ),
        (
            "Take the noise away: back from the components to the columns",
            "kerntest transform shop.kt after.csv --denoise -o smooth.csv",
        ),
        ("Which rows are least like those of the model?", "kerntest transform shop.kt after.csv --residual"),
        ("Rows with missing values keep their place", "kerntest transform shop.kt with_missing.csv --missing empty"),
    ),
    arguments=(("MODEL", "A file that `kerntest kpca ... -o MODEL` wrote."), DATA_ARGUMENT),
    notes=(
        (
            "What is written",
            (
                "A line for each row of DATA, in its order: row, its number from 1; the columns named in --keep; pc1, pc2, ..., "
                "its scores, centred with the means of the training rows. With --reconstruct instead the columns of the model "
                "in their own units: the row whose image in feature space is nearest to the projection, its pre-image; and "
                "reconstruction_error, how far it is from the row in scaled units (a category that changed counts as 1). The "
                "fewer components, the smoother the pre-images. Columns of DATA are found by name, in any order; those that "
                "the model does not know are ignored, and stderr names them."
            ),
        ),
        (
            "Pre-images",
            (
                "They are found by the fixed point of Mika et al. (1999) for the Gaussian, and by what corresponds to it for "
                "other kernels of distances, their sums and products, and kernels of column groups; for the linear kernel "
                "exactly. Of a category the level is taken that fits best. Kernels of the inner product other than linear "
                "have none."
            ),
        ),
    ),
    exit_codes=EXIT_CODES,
)


@click.command(cls=ComputingCommand, manual=MANUAL)
@click.argument("model", type=click.Path(readable=False))
@click.argument("data", type=click.Path(allow_dash=True, readable=False))
@option("--components", type=COUNT, metavar="K", topic=PROJECTION, help="Use the first K only.  [default: all]")
@option(
    "--reconstruct",
    "--denoise",
    "reconstruct",
    is_flag=True,
    topic=PROJECTION,
    help="Write pre-images of the projections, in the columns and units of the data, instead of scores.",
)
@option(
    "--residual",
    is_flag=True,
    topic=PROJECTION,
    help="Add how far each row is from its projection in feature space, squared: large for rows unlike the training rows.",
)
@keep_option(PROJECTION)
@missing_option("scores")
@UNKNOWN
@csv_options
@rows_output("scores or pre-images")
@gate_option(example="incomplete>0")
@report_options
@engine_options("local", "dask")
def transform(model: str, data: str, **options: Any) -> int:
    """Project the rows of a file of any size on the components of a model, or reconstruct them from their projections.

    The columns are found by name and become what they were in training. A missing column, a value that is no number
    where numbers were, and a category that no training row had stop the run and are named.
    """
    rows = RowDelivery.asked_for("transform", model, data, options, "scores", record=TransformReport)
    report = _transformed(model, data, options, quiet=rows.delivery.messages.quiet)
    return rows.deliver(report, transform_summary, f"{report.transformed:,} transformed")


def _transformed(model: str, data: str, options: dict[str, Any], *, quiet: bool) -> TransformReport:
    """Run the model over the rows, with a progress bar where somebody is looking."""
    import kerntest  # noqa: PLC0415 - numerics are loaded only to compute

    join_names(options, "keep")
    with progress_bar(quiet=quiet, doing="projecting") as progress:
        return kerntest.transform_file(model, data, progress=progress, **options)
