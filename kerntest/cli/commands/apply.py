"""Apply a model to a table of any size: ``kerntest predict`` and ``kerntest transform``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kerntest.cli import options as common
from kerntest.cli.manual import DATA, Manual
from kerntest.cli.run import ComputingCommand, Run, gate_option
from kerntest.report.results import application_record as record
from kerntest.report.summaries.words import name_list, visible
from kerntest.report.write import STANDARD_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable


_predictions, _projection, _data = (
    partial(common.option, topic=topic) for topic in ("Predictions", "Projection", "Data")
)
# What each does in words, what it makes, the count of rows that have it, and its record.
APPLYING: dict[str, tuple[str, str, str, type[record.ApplicationReport]]] = {
    "predict": ("predicting", "predictions", "predicted", record.PredictionReport),
    "transform": ("projecting", "scores", "transformed", record.TransformReport),
}
LARGE_DATA = f"{DATA} It may be larger than memory."

PREDICT = Manual(
    examples={
        "Which species are these? As CSV on stdout": "kerntest predict species.kt iris_virginica.csv",
        "Into a file, with probabilities and all columns of the data": "kerntest predict species.kt iris.csv --proba "
        "--keep '*' -o predicted.parquet",
        "Rows with missing values keep their place, without a prediction": "kerntest predict orders.kt "
        "with_missing.csv --missing empty",
        "The decision function too, and what was predicted as JSON": "kerntest predict species.kt iris.csv --decision "
        "-o predicted.csv --json",
        "Of a ridge regression, with intervals that hold 90 % of new values": "kerntest predict wear.kt machines.csv "
        "--interval 0.9",
        "A gate on the data: exit code 1 if any value is far from the training rows": "kerntest predict species.kt "
        "iris.csv --fail-on 'outside_rows>0'",
        "From a pipe": "head -n 20 iris.csv | kerntest predict species.kt -",
    },
    arguments={
        "MODEL": "A file that `kerntest svm ... -o MODEL` or `kerntest ridge ... -o MODEL` wrote.",
        "DATA": LARGE_DATA,
    },
    notes={
        "What is written": "A line for each row of DATA, in its order: row, its number from 1; the columns named in "
        "--keep; prediction, a class or number as in training, or for a one-class model true for rows like the "
        "training rows and false for outliers, whose share --fail-on 'outliers>0.1' judges; with --decision the decision function, above 0 for the second class, "
        "one for each pair of several; with --proba the probability of each class. A ridge regression writes a column "
        "with the name of each target (TARGET_predicted beside a target in --keep) instead of prediction; with --std its standard deviation, TARGET_std, and with "
        "--interval also the ends of the interval, TARGET_low and TARGET_high. Columns of DATA are found by name, in "
        "any order; those that the model does not know are ignored, and stderr names them."
    },
)

TRANSFORM = Manual(
    examples={
        "Where do these rows lie on the components? As CSV on stdout": "kerntest transform shop.kt after.csv",
        "Into a file, beside all columns of the data": "kerntest transform shop.kt after.csv --keep '*' -o "
        "projected.parquet",
        "Take the noise away: back from the components to the columns": "kerntest transform shop.kt after.csv "
        "--denoise -o smooth.csv",
        "Which rows are least like those of the model?": "kerntest transform shop.kt after.csv --residual",
        "Rows with missing values keep their place": "kerntest transform shop.kt with_missing.csv --missing empty",
    },
    arguments={
        "MODEL": "A file that `kerntest kpca ... -o MODEL`, `kerntest unmix` or `kerntest cca` wrote.",
        "DATA": LARGE_DATA,
    },
    notes={
        "What is written": "A line for each row of DATA, in its order: row, its number from 1; the columns named in "
        "--keep; pc1, pc2, ... (of unmix s1, s2, ..., of cca x1, x2, ..., y1, y2, ...), its scores, centred with the means of the training rows. With --reconstruct instead "
        "the columns of the model in their own units: the row whose image in feature space is nearest to the "
        "projection, its pre-image; and reconstruction_error, how far it is from the row in scaled units (a category "
        "that changed counts as 1). The fewer components, the smoother the pre-images. Columns of DATA are found by "
        "name, in any order; those that the model does not know are ignored, and stderr names them.",
        "Pre-images": "They are found by the fixed point of Mika et al. (1999) for the Gaussian, and by what "
        "corresponds to it for other kernels of distances, their sums and products, and kernels of column groups; for "
        "the linear kernel exactly. Of a category the level is taken that fits best. Kernels of the inner product "
        "other than linear have none.",
    },
)


def _applying(
    manual: Manual, topic: str, empty: str, written: str, *own: Callable[[Any], Any]
) -> Callable[[common.AnyCommand], common.AnyCommand]:
    """Return the decorator of a command with options of its `own`; `empty` is left so where a value is missing."""
    return common.stacked(
        click.command(cls=ComputingCommand, manual=manual),
        click.argument("model", type=click.Path(readable=False)),
        common.data_argument("data"),
        *own,
        common.columns(
            "--keep",
            help="Columns of DATA to hand through, such as 'id,price:weight,temp_*'; '*' for all. Of CSV they stay as "
            "typed.",
            topic=topic,
        ),
        _data(
            "--missing",
            of=("error", "drop", "empty"),
            help=f"Rows with a missing value: error (stop), drop (leave them out) or empty (leave their {empty} empty).",
        ),
        _data(
            "--unknown",
            of=("error", "ignore"),
            help="Categories that no training row had: error (stop) or ignore (different from every known one; "
            "'unknown_rows>0' is a gate on them).",
        ),
        common.csv_options,
        common.SAMPLE_SEED,
        common.option(
            "-o",
            "--output",
            type=common.OutputPath(allow_dash=True),
            topic="Output",
            help=f"Write the {written} to a .csv, .parquet or .jsonl file instead of stdout; stdout then gets a report.",
        ),
        gate_option(example="outside_rows>0"),
        common.report_options,
        common.engine_options("local", "dask"),
    )


@_applying(
    PREDICT,
    "Predictions",
    "prediction",
    "predictions",
    _predictions(
        "--proba", "--probability", "proba", is_flag=True, help="Add the probability of each class, in columns p:CLASS."
    ),
    _predictions("--decision", is_flag=True, help="Add the decision function, or one for each pair of classes."),
    _predictions("--std", is_flag=True, help="Of a ridge regression: add standard deviations of new values."),
    _predictions(
        "--interval",
        type=common.PROBABILITY,
        help="Of a ridge regression: add the ends of intervals that hold new values with this probability, such as "
        "0.9, over all rows: one noise for all gives all much the same width.",
    ),
)
def predict(model: str, data: str, **options: Any) -> int:
    """Apply a model to the rows of a file of any size.

    The columns are found by name and become what they were in training. A missing column, a value that is no number
    where numbers were, and a category that no training row had stop the run and are named.
    """
    return _applied("predict", model, data, options)


@_applying(
    TRANSFORM,
    "Projection",
    "scores",
    "scores or pre-images",
    _projection("--components", type=common.COUNT, metavar="K", help="Use the first K only.  [default: all]"),
    _projection(
        "--reconstruct",
        "--denoise",
        "reconstruct",
        is_flag=True,
        help="Write pre-images of the projections, in the columns and units of the data, instead of scores.",
    ),
    _projection(
        "--side",
        type=common.one_of("x", "y"),
        help="Of canonical correlations: the functions of x or of y alone; DATA needs no columns of the other.",
    ),
    _projection(
        "--residual",
        is_flag=True,
        help="Add how far each row is from its projection in feature space, squared: large for rows unlike the "
        "training rows.",
    ),
)
def transform(model: str, data: str, **options: Any) -> int:
    """Project the rows of a file of any size on the components of a model, or reconstruct them from their projections.

    The columns are found by name and become what they were in training. A missing column, a value that is no number
    where numbers were, and a category that no training row had stop the run and are named.
    """
    return _applied("transform", model, data, options)


def _applied(command: str, model: str, data: str, options: dict[str, Any]) -> int:
    """Apply a model; deliver the report where there is to be one: stdout has room for the rows or for the report."""
    doing, made, done, kind = APPLYING[command]
    options["output"] = None if options["output"] == STANDARD_OUTPUT else options["output"]
    asked, run = "--report -" if options["report"] == STANDARD_OUTPUT else "", Run(options)
    asked = asked or (f"--format {run.format}" if run.format != "table" else "")
    reported = options["output"] is not None or run.output is not None
    if asked and not reported:
        raise common.contradiction(
            f"{asked} is for the report, and stdout gets the {made} as CSV",
            f"-o FILE.csv puts the {made} into a file, --report FILE the report",
        )
    run.check(kind, {"DATA": data}, f"kerntest {command} {model} - < new.csv", model)
    report = run.call(f"{command}_file", model, data, doing=doing, **options)
    if reported:
        run.tell(report)
    else:
        run.check_gates(report.to_dict())
        run.warn(report.warnings)
    if report.columns_ignored and (not reported or run.format != "table"):
        run.note(f"not used by {visible(report.model)}: {name_list(report.columns_ignored)}")
    if not reported and getattr(report, "task", None) == "one-class":
        run.note("prediction: true for rows like the training rows, false for outliers")
    run.wrote(report.output)
    run.explain([f"{report.rows:,} rows, {getattr(report, done):,} {done}, {report.seconds:.3g} seconds"])
    return run.code(report)
