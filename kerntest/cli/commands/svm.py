"""Learn to predict a column: ``kerntest svm``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from kerntest.cli import options as common
from kerntest.cli.manual import DATA, Manual
from kerntest.cli.run import ComputingCommand, Run, gate_option, join_names
from kerntest.errors import UsageError
from kerntest.report.results.learning_record import SvmResult

MACHINE = "Machine"
SHARE = common.quantity("share", float, lambda value: 0 < value <= 1, "a number above 0 and at most 1")
NOT_NEGATIVE = common.quantity("e", float, lambda value: 0 <= value < float("inf"), "a number from 0 up")

MANUAL = Manual(
    examples={
        "Learn to tell three species apart, judge on rows held out": "kerntest svm iris.csv --target species "
        "--test-fraction 0.3",
        "Choose the cost and the bandwidth, and keep the model": "kerntest svm breast_cancer.csv --target diagnosis "
        "--test-fraction 0.3 --grid -o diagnosis.kt",
        "Predict a number": "kerntest svm machines.csv --target wear_um --task regress --test-fraction 0.3",
        "Learn what rows usually look like, and find others among new ones": "kerntest svm before.csv --task "
        "one-class --nu 0.05 --test after.csv",
        "Probabilities of classes, in the model too": "kerntest svm wine.csv --target cultivar --test-fraction 0.3 "
        "--probability -o wine.kt",
        "How well would it do? Five folds, no model": "kerntest svm wine.csv --target cultivar --cv 5 --json",
        "Rare classes count as much as frequent ones": "kerntest svm breast_cancer.csv --target diagnosis "
        "--class-weight balanced --test-fraction 0.3",
    },
    arguments={"TRAIN": DATA},
    notes={
        "What is fitted": "The machine minimises 1/2 |w|^2 + C sum(slack), and prints lambda = 1/(2 n C) too. A "
        "larger C follows the training rows more closely. The duality gap says how far the result can be from the "
        "best one, relative to it. Of two classes, sorted, a positive decision is for the second. Several classes are "
        "told apart in pairs, which vote; ties go to the first class. Numbers are standardised by the training rows, "
        "categories compared by how many differ, and the model keeps all of that: new rows need the same columns, in "
        "any order.",
        "How to read the result": "Believe the accuracy on test rows, which the machine has not seen; that on "
        "training rows is too good. --grid chooses by cross-validation inside the training rows only. The nearest "
        "mean is a simple classifier with the same kernel: a machine that is no better has not paid for itself. "
        "Balanced accuracy is the mean recall of the classes, and says more where one class is rare. Copies of a row "
        "stay on one side of every split, and so do all rows of a patient, a recording or a shop if --cluster names "
        "the column that tells them apart.",
    },
    never=("5",),
)

_machine = partial(common.option, topic=MACHINE)


@click.command(cls=ComputingCommand, manual=MANUAL)
@common.data_argument("train")
@common.column("--target", help="Column to predict; none for one-class.")
@common.columns("--columns", help="Columns to learn from, such as 'price,size:weight,temp_*' (a:b is a range).")
@common.columns("--exclude", help="Columns to leave out.")
@common.TABLE
@common.CLUSTER
@_machine(
    "--task",
    type=common.one_of("classify", "regress", "one-class"),
    default="classify",
    help="classify (two classes or more), regress (predict a number) or one-class (tell rows like these from others).",
)
@_machine(
    "--method",
    type=common.one_of("svm", "mean", "perceptron"),
    default="svm",
    help="svm; or, of classes, the nearest mean or the perceptron with the same kernel.",
)
@common.learner_options(MACHINE)
@_machine(
    "--bandwidth",
    type=common.bandwidth("auto", "median"),
    default="median",
    help="Bandwidth of a kernel that names none: median (of the distances of training rows) or a number.",
)
@_machine("--C", "C", type=common.POSITIVE, default=1.0, metavar="COST", help="Cost of a violation of the margin.")
@_machine(
    "--nu",
    type=SHARE,
    metavar="SHARE",
    help="Instead of --C: at most this share of margin errors, at least this share of support vectors. For one-class "
    "the share of training rows to call outliers (0.1 without it).",
)
@_machine("--hard-margin", is_flag=True, help="No errors at all on the training rows.")
@_machine(
    "--epsilon",
    type=NOT_NEGATIVE,
    default=0.1,
    metavar="E",
    help="Of regress: errors up to E, in units of the target, cost nothing.",
)
@_machine(
    "--class-weight",
    metavar="WEIGHTS",
    help="Factors of C by class: balanced, or such as 'good:1,bad:5'.",
)
@_machine("--probability", is_flag=True, help="Fit probabilities of the classes, on rows held out.")
@_machine(
    "--tolerance",
    type=common.POSITIVE,
    default=1e-6,
    metavar="GAP",
    help="Duality gap, relative to the objective, at which to stop.",
)
@common.engine_options()
@common.held_out_options("drawn by class")
@common.option(
    "--grid",
    is_flag=True,
    topic=common.JUDGED,
    help="Choose C and the bandwidth by cross-validation of the training rows.",
)
@common.option(
    "--cv",
    type=common.FOLDS,
    topic=common.JUDGED,
    help="Folds; without --grid, the cross-validated score of the options as they are.  [default: with --grid 5]",
)
@common.model_options(
    "for `kerntest predict`",
    "the decision regions of two columns, the ROC curve, the confusion matrix and the grid, or a regression with "
    "its residuals, or the scores of outliers, into a .png, .svg or .pdf file",
)
@gate_option(example="accuracy<0.9")
@common.report_options
def svm(train: str, **options: Any) -> int:
    """Learn to predict a column from the others with a support vector machine.

    The machine tells classes apart, two or many, predicts numbers, or finds rows unlike those of TRAIN. It is judged on
    rows that it has not seen, beside the nearest mean, and kept in a model file with everything that new rows need.
    """
    _check_used(click.get_current_context())
    run = Run(options)
    run.check(SvmResult, {"TRAIN": train, "--test": options["test"]}, "kerntest svm - --target species < iris.csv")
    result = run.call("train_svm", train, doing="fitting", **join_names(options))
    from kerntest.report.summaries.learner_summary import learner_notes, svm_summary  # noqa: PLC0415 - --help must start at once

    return run.deliver(result, learner_notes(result), svm_summary)


def _check_used(ctx: click.Context) -> None:
    """Refuse options that others leave without effect, so that none is ignored in silence."""
    task, method, nu = ctx.params["task"], ctx.params["method"], ctx.params["nu"]
    grid, hard, is_svm = ctx.params["grid"], ctx.params["hard_margin"], method == "svm"
    unused = (
        ("C", nu is not None, "--nu", "nu takes the place of the cost"),
        ("C", hard, "--hard-margin", "leave out one of the two"),
        ("C", task == "one-class", "--task one-class", "--nu sets the share of outliers"),
        ("C", not is_svm, f"--method {method}", "it has no cost"),
        ("C", grid, "--grid", "the grid chooses the cost; --cv judges one that is given"),
        ("bandwidth", grid, "--grid", "the grid chooses the bandwidth; --kernel 'gaussian(1.5)' fixes it"),
        ("epsilon", task != "regress", f"--task {task}", "it is for --task regress"),
        ("tolerance", not is_svm, f"--method {method}", "it has no duality gap"),
    )
    for name, useless, what, hint in unused:
        if useless and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--{name} does not go with {what}", hint=hint, code="usage.contradiction")
