"""Learn to predict numbers, with intervals: ``kerntest ridge``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from kerntest.cli import options as common
from kerntest.cli.manual import DATA, Manual
from kerntest.cli.run import ComputingCommand, Run, gate_option, join_names
from kerntest.errors import UsageError
from kerntest.report.results.learning_record import RidgeResult

REGRESSION = "Regression"

MANUAL = Manual(
    examples={
        "Predict a number, judge on rows held out": "kerntest ridge machines.csv --target wear_um --test-fraction 0.3",
        "Keep the model, and predict with intervals": "kerntest ridge machines.csv --target wear_um -o machines.kt",
        "Draw the fit over one column, with its band": "kerntest ridge machines.csv --target wear_um --columns temp_c "
        "--plot wear.png",
        "Lambda and bandwidth as given, as JSON": "kerntest ridge machines.csv --target wear_um --lambda 0.1 "
        "--bandwidth 2 --json",
        "Two targets at once, chosen by the evidence of the Gaussian process": "kerntest ridge machines.csv --target "
        "wear_um,power_kw --criterion evidence",
        "Judge on a production line of which no row was seen": "kerntest ridge machines.csv --target wear_um "
        "--cluster line --test-fraction 0.3",
        "For very many rows: 100 centres instead of all rows": "kerntest ridge machines.csv --target wear_um "
        "--features nystroem:100",
    },
    arguments={"TRAIN": DATA},
    notes={
        "What is fitted": "sum_i w_i (y_i - f(x_i) - b)^2 + lambda |f|^2 is minimised, with b free, so that (K + "
        "lambda I) alpha = y - b; lambda/n is printed too. A larger lambda or bandwidth gives a smoother function. "
        "What is not given is chosen over 20 lambdas and 10 bandwidths (a tenth of the median to 6.3 times), by exact "
        "leave-one-out: one eigendecomposition for each bandwidth gives all of it, without a single refit. gcv, cv "
        "(exact k folds) and evidence are alternatives. Of equal cells the smoothest is chosen: the largest lambda, "
        "then the largest bandwidth. Several targets share lambda and bandwidth.",
        "How to read the result": "Believe the error on test rows, or that of rows left out; that on training rows is "
        "too good. r2 is 1 for a perfect prediction and 0 for one that is no better than the mean. Intervals come "
        "from the Gaussian process of which the regression is the mean, with noise and scale estimated; how many test "
        "rows they hold says whether to believe them. Copies of a row stay on one side of every split and are left "
        "out together, and so are all rows of a patient, a recording or a shop if --cluster names the column that "
        "tells them apart. Effective degrees of freedom say how flexible the function is: between 1, the mean, and n.",
    },
    never=("5",),
)

_regression = partial(common.option, topic=REGRESSION)
_judged = partial(common.option, topic=common.JUDGED)


@click.command(cls=ComputingCommand, manual=MANUAL)
@common.data_argument("train")
@common.columns(
    "--target",
    multiple=True,
    metavar="NAMES",
    help="Column to predict, or several: 'wear,power'.",
)
@common.columns("--columns", help="Columns to learn from, such as 'price,size:weight,temp_*' (a:b is a range).")
@common.columns("--exclude", help="Columns to leave out.")
@common.column("--weights", help="Column of weights of rows; 2 counts twice.")
@common.TABLE
@common.CLUSTER
@common.learner_options(REGRESSION)
@_regression(
    "--bandwidth",
    type=common.bandwidth("auto", "median"),
    default="auto",
    help="Bandwidth of a kernel that names none: auto (chosen), median (of the distances of training rows) or a "
    "number.",
)
@_regression(
    "--lambda",
    "lambda_",
    type=common.POSITIVE,
    metavar="L",
    help="Penalty of (K + lambda I) alpha = y.  [default: chosen]",
)
@_regression(
    "--no-intervals",
    is_flag=True,
    help="Keep nothing for --interval in the model, whose file is much smaller then.",
)
@common.engine_options()
@common.held_out_options("drawn at random")
@_judged(
    "--criterion",
    type=common.one_of("loo", "gcv", "cv", "evidence"),
    default="loo",
    help="What chooses lambda and bandwidth: loo (leave-one-out), gcv, cv (k folds), all exact, or evidence.",
)
@_judged("--cv", type=common.FOLDS, help="Choose by so many folds: --criterion cv.  [default: 5]")
@_judged(
    "--interval",
    type=common.PROBABILITY,
    default=0.9,
    help="Probability of the predictive intervals that are judged by how many rows they hold.",
)
@common.model_options(
    "for `kerntest predict`",
    "the fit with its band over one column, or predictions against truth; residuals; the grid: .png, .svg or .pdf",
)
@gate_option(example="r2<0.5")
@common.report_options
def ridge(train: str, **options: Any) -> int:
    """Learn to predict numbers from the other columns with kernel ridge regression.

    Lambda and bandwidth are chosen by exact leave-one-out unless they are given. The regression is judged on rows that it
    has not seen, and kept in a model file with everything that predictions and their intervals need.
    """
    if not options["target"]:
        raise UsageError("--target is missing", hint="it names the column to predict", code="usage.target")
    run = Run(options)
    example = "kerntest ridge - --target wear_um < machines.csv"
    run.check(RidgeResult, {"TRAIN": train, "--test": options["test"]}, example)
    options["intervals"] = not options.pop("no_intervals")
    if len(options["target"]) == 1:
        (options["target"],) = options["target"]
    result = run.call("train_ridge", train, doing="fitting", **join_names(options))
    from kerntest.report.summaries.learner_summary import learner_notes, ridge_summary  # noqa: PLC0415 - --help must start at once

    return run.deliver(result, learner_notes(result), ridge_summary)
