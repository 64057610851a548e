"""Learn from a table: ``kerntest svm``, ``kerntest ridge``, ``kerntest kpca``, ``kerntest unmix``, ``kerntest cca``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kerntest.cli import options as common
from kerntest.cli.manual import DATA, Manual
from kerntest.cli.run import ComputingCommand, Run, gate_option
from kerntest.errors import UsageError
from kerntest.report.results.component_record import CcaResult, KpcaResult, UnmixResult
from kerntest.report.results.learning_record import RidgeResult, SvmResult

if TYPE_CHECKING:
    from kerntest.report.results.record import Record

SHARE = common.quantity("share", float, lambda value: 0 < value <= 1, "a number above 0 and at most 1")
NOT_NEGATIVE = common.quantity("e", float, lambda value: 0 <= value < float("inf"), "a number from 0 up")
_machine, _regression, _components, _sources, _pairs, _judged = (
    partial(common.option, topic=topic)
    for topic in ("Machine", "Regression", "Components", "Sources", "Pairs", common.JUDGED)
)


def _fitted(name: str, record: type[Record], train: str, options: dict[str, Any], example: str) -> int:
    """Fit, deliver the result in words, and return the exit code."""
    run = Run(options)
    run.check(record, {"TRAIN": train, "--test": options.get("test")}, f"kerntest {name} - {example}")
    result = run.call(f"train_{name}", train, doing="fitting", **options)
    from kerntest.report.summaries.learner_summary import learner_notes  # noqa: PLC0415 - --help must start at once

    return run.deliver(result, learner_notes(result))


SVM = Manual(
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
        "training rows is too good. --grid chooses by cross-validation inside the training rows only; from 800 rows on cells "
        "that fall behind are given up on the way (unless a class is rare), and told in brackets. Where the best cell is on an edge, the grid goes on "
        "beyond it. --select-by says what the best is. The nearest "
        "mean is a simple classifier with the same kernel: a machine that is no better has not paid for itself. "
        "Balanced accuracy is the mean recall of the classes, and says more where one class is rare. Copies of a row "
        "stay on one side of every split (unless the columns have so few values that equal rows are no wonder), and so do all rows of a patient, a recording or a shop if --cluster names "
        "the column that tells them apart.",
    },
    never=("5",),
)


@click.command(cls=ComputingCommand, manual=SVM)
@common.data_argument("train")
@common.column("--target", help="Column to predict; none for one-class.")
@common.LEARNED_TABLE
@_machine(
    "--task",
    of=("classify", "regress", "one-class"),
    help="classify (two classes or more), regress (predict a number) or one-class (tell rows like these from others).",
)
@_machine(
    "--method",
    of=("svm", "mean", "perceptron"),
    help="svm; or, of classes with the same kernel, mean (the nearest) or perceptron (of several the structured one, "
    "averaged).",
)
@common.learner_options("Machine", "median", "auto")
@_machine(
    "--C",
    "C",
    type=common.POSITIVE,
    default=1.0,
    metavar="COST",
    help="Cost of a violation of the margin; of regress in units of the target, whose standard deviation is a good "
    "first guess.",
)
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
    help="Of regress: errors up to E, in units of the target, cost nothing; a tenth of its standard deviation is a good "
    "first guess.",
)
@_machine("--class-weight", metavar="WEIGHTS", help="Factors of C by class: balanced, or such as 'good:1,bad:5'.")
@_machine(
    "--probability",
    "--proba",
    is_flag=True,
    help="Fit probabilities of the classes, on rows held out; they change no prediction.",
)
@_machine(
    "--tolerance",
    type=common.POSITIVE,
    default=1e-6,
    metavar="GAP",
    help="Duality gap, relative to the objective, at which to stop.",
)
@common.engine_options()
@common.HELD_OUT
@common.UNKNOWN
@_judged("--grid", is_flag=True, help="Choose C and the bandwidth by cross-validation of the training rows.")
@_judged(
    "--cv",
    type=common.FOLDS,
    help="Folds; without --grid, the cross-validated score of the options as they are.  [default: with --grid 5]",
)
@_judged(
    "--select-by",
    of=("accuracy", "balanced-accuracy", "f1", "auc", "log-loss"),
    help="What --grid and --cv judge classes by: accuracy, balanced-accuracy (the mean recall of the classes), f1 (their "
    "mean F1), auc (the area under the ROC curve), or log-loss (of probabilities).",
)
@common.model_options(
    "for `kerntest predict`",
    "the decision regions of two columns, the ROC curve, the confusion matrix, the grid, what the columns are worth; or a "
    "regression with its residuals, or the scores of outliers, into a .png, .svg or .pdf file",
)
@gate_option(example="accuracy<0.9")
@common.report_options
def svm(train: str, **options: Any) -> int:
    """Learn to predict a column from the others with a support vector machine.

    The machine tells classes apart, two or many, predicts numbers, or finds rows unlike those of TRAIN. It is judged on
    rows that it has not seen, beside the nearest mean, and kept in a model file with everything that new rows need. Of
    --test-fraction or --test it also tells what each column is worth: how much accuracy is lost where it is shuffled.
    """
    _check_used(click.get_current_context())
    return _fitted("svm", SvmResult, train, options, "--target species < iris.csv")


def _check_used(ctx: click.Context) -> None:
    """Refuse options that others leave without effect, so that none is ignored in silence."""
    task, method, nu, grid, hard = (ctx.params[name] for name in ("task", "method", "nu", "grid", "hard_margin"))
    unused = (
        ("C", nu is not None, "--nu", "nu takes the place of the cost"),
        ("C", hard, "--hard-margin", "leave out one of the two"),
        ("C", task == "one-class", "--task one-class", "--nu sets the share of outliers"),
        ("C", method != "svm", f"--method {method}", "it has no cost"),
        ("C", grid, "--grid", "the grid chooses the cost; --cv judges one that is given"),
        ("bandwidth", grid, "--grid", "the grid chooses the bandwidth; --kernel 'gaussian(1.5)' fixes it"),
        ("epsilon", task != "regress", f"--task {task}", "it is for --task regress"),
        ("select_by", not grid and ctx.params["cv"] is None, "a machine without --grid or --cv", "add --grid"),
        ("tolerance", method != "svm", f"--method {method}", "it has no duality gap"),
    )
    for name, useless, what, hint in unused:
        if useless and common.is_given(ctx, name):
            raise common.contradiction(f"--{name.replace('_', '-')} does not go with {what}", hint)


RIDGE = Manual(
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
        "rows they hold says whether to believe them. The noise is one for all rows, and so nearly is the width: where "
        "errors grow with the prediction, low ones are held too often and high ones too rarely, which a warning tells. Copies of a row (unless the columns have so few values that equal rows are no wonder) stay on one side of every split and are left "
        "out together, and so are all rows of a patient, a recording or a shop if --cluster names the column that "
        "tells them apart. Effective degrees of freedom say how flexible the function is: between 1, the mean, and n.",
    },
    never=("5",),
)


@click.command(cls=ComputingCommand, manual=RIDGE)
@common.data_argument("train")
@common.columns("--target", help="Column to predict, or several: 'wear,power'.")
@common.column(
    "--weights", help="Column of weights of rows: an error of weight 2 counts twice. Columns are scaled without them."
)
@common.LEARNED_TABLE
@common.learner_options("Regression", "auto", "median")
@_regression(
    "--lambda",
    "lambda_",
    type=common.POSITIVE,
    metavar="L",
    help="Penalty of (K + lambda I) alpha = y.  [default: chosen]",
)
@_regression(
    "--no-intervals", is_flag=True, help="Keep nothing for --interval in the model, whose file is much smaller then."
)
@common.engine_options()
@common.HELD_OUT
@common.UNKNOWN
@_judged(
    "--criterion",
    of=("loo", "gcv", "cv", "evidence"),
    help="What chooses lambda and bandwidth: loo (leave-one-out), gcv, cv (k folds), all exact, or evidence.",
)
@_judged(
    "--cv", type=common.FOLDS, help="Choose, or judge what is given, by so many folds: --criterion cv.  [default: 5]"
)
@_judged(
    "--interval",
    type=common.PROBABILITY,
    default=0.9,
    help="Probability of the predictive intervals that are judged by how many rows they hold.",
)
@common.model_options(
    "for `kerntest predict`",
    "the fit with its band over one column, or predictions against truth; residuals; the grid; what the "
    "columns are worth: .png, .svg or .pdf",
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
    options["intervals"] = not options.pop("no_intervals")
    return _fitted("ridge", RidgeResult, train, options, "--target wear_um < machines.csv")


KPCA = Manual(
    examples={
        "Draw 13 columns in two, coloured by a fourteenth": "kerntest kpca wine.csv --color cultivar --plot wine.png",
        "Keep the components, to project other rows on them": "kerntest kpca before.csv --components 5 -o week.kt",
        "Ordinary principal components": "kerntest kpca iris.csv --exclude species --kernel linear",
        "Eigenvalues and shares of the variance for a program": "kerntest kpca wine.csv --exclude cultivar --json",
        "Very many rows: 300 explicit features instead of the kernel matrix": "kerntest kpca machines.csv --features "
        "nystroem:300 -o machines.kt",
    },
    arguments={"DATA": DATA},
    notes={
        "What is found": "The directions of largest variance of the rows in the feature space of the kernel, which "
        "are curves in the space of the columns; with --kernel linear, ordinary principal components. Eigenvalues are "
        "those of the centred kernel matrix HKH, shares of the variance are relative to its trace. Scores have mean "
        "0, and the one that is largest in size is positive. Numbers are standardised by the training rows, "
        "categories compared by how many differ, and the model keeps all of that: new rows need the same columns, in "
        "any order.",
        "How to read the result": "The table names the columns that go with a component: the correlation, for "
        "categories the correlation ratio. A nonlinear component may go with none and still have a shape: draw it. "
        "Shares of the variance compare components of one kernel, never two kernels or bandwidths: a narrow one "
        "spreads the variance over many components, whatever the rows are like. The column named in --color takes no "
        "part: rows without a value in it stay, and are drawn grey.",
    },
    never=("5",),
)


@click.command(cls=ComputingCommand, manual=KPCA)
@common.data_argument("train", metavar="DATA")
@common.column("--color", help="Column that takes no part and colours the picture.")
@common.LEARNED_TABLE
@_components("--components", type=common.COUNT, default=2, metavar="K", help="How many components.")
@common.learner_options("Components", "median")
@_components(
    "--solver",
    of=("auto", "lanczos", "dense"),
    help="How eigenvalues are found: auto takes the faster one.",
)
@common.engine_options()
@common.model_options(
    "for `kerntest transform`", "the rows in the first two components, and the scree, into a .png, .svg or .pdf file"
)
@gate_option(example="explained<0.5")
@common.report_options
def kpca(train: str, **options: Any) -> int:
    """Find the shape of the rows: their principal components in the feature space of a kernel.

    Few numbers for each row that tell most of how it differs from the others. The model keeps everything that new rows
    need: `kerntest transform` projects them, and goes back from projections to columns, which takes noise away.
    """
    return _fitted("kpca", KpcaResult, train, options, "< iris.csv")


UNMIX = Manual(
    examples={
        "Which sources are the columns mixtures of?": "kerntest unmix mixed.csv --plot mixed.png",
        "Does dependence remain in rows held out? And keep the map": "kerntest unmix mixed.csv --test-fraction 0.3 -o mixed.kt",
        "Two sources of four columns, whose principal components are unmixed": "kerntest unmix iris.csv --components 2",
        "Minimise HSIC itself, with a narrower kernel": "kerntest unmix mixed.csv --contrast hsic --bandwidth 0.5",
        "The mixing matrix for a program": "kerntest unmix mixed.csv --json",
    },
    arguments={"DATA": DATA},
    notes={
        "What is found": "The columns are taken for mixtures x = m + A s of sources that are independent of each other. "
        "The rows are made white, which leaves a rotation to find: a search turns each pair of columns by all angles, from "
        "the axes and from --restarts random rotations; from where each ends the likelihood is maximised, with densities "
        "that are learned from the rows, and the likeliest is taken. HSIC is what is told, not what is minimised: it uses "
        "the rows less well, clearly so for heavy tails. --contrast hsic goes on from there to the nearest least sum over pairs of "
        "HSIC, of a Gaussian. Sources have mean 0 and standard deviation 1. Their order and "
        "signs mean nothing: the first makes most of the variance of the columns, and the largest entry of each is "
        "positive. Categories take no part.",
        "How to read the result": "The table names the columns that go with a source. Skewness and kurtosis say how "
        "it differs from a Gaussian, whose are 0. Of Gaussian sources all rotations are independent, so that no method "
        "can tell which they were: sources that look so are called undetermined. With --test or --test-fraction the sum "
        "over pairs of HSIC is tested on rows held out: what is left there may be sources that hang together, "
        "mixtures that are not linear, or errors of the estimation, by which some 11 in 100 tables of independent "
        "sources are rejected at 0.05.",
    },
    never=("5",),
)


@click.command(cls=ComputingCommand, manual=UNMIX)
@common.data_argument("train", metavar="DATA")
@common.column("--color", help="Column that takes no part and colours the picture.")
@common.LEARNED_TABLE
@_sources("--components", type=common.COUNT, metavar="K", help="How many sources.  [default: as many as columns]")
@_sources(
    "--contrast",
    of=("likelihood", "hsic"),
    help="What is made extreme: the likelihood, which uses the rows best, or from there on hsic, the dependence that is told.",
)
@_sources(
    "--restarts", type=common.SEED, default=3, metavar="N", help="Random rotations to begin the search from, too."
)
@_sources(
    "--bandwidth",
    type=common.POSITIVE,
    default=1.0,
    metavar="W",
    help="Bandwidth of the Gaussian of HSIC, in standard deviations of a source.",
)
@_sources(
    "--seed", type=common.SEED, default=0, help="Seed of all that is drawn at random: parts, rotations, relabellings."
)
@common.engine_options()
@common.HELD_OUT
@common.model_options(
    "for `kerntest transform`",
    "the two columns that depend most, the first two sources and the mixing matrix, into a .png, .svg or .pdf file",
)
@gate_option(example="test.p_value<0.01")
@common.report_options
def unmix(train: str, **options: Any) -> int:
    """Find the independent sources of which the columns are linear mixtures: kernel independent component analysis.

    Voices in several microphones, signals in several electrodes, markets in several prices. The model keeps the map:
    `kerntest transform` gives the sources of new rows, and mixes them again.
    """
    return _fitted("unmix", UnmixResult, train, options, "< mixed.csv")


CCA = Manual(
    examples={
        "Which functions of sepals and of petals go together?": "kerntest cca iris.csv --x 'sepal_*' --y 'petal_*'",
        "Judge on rows held out, with a p-value, and draw": "kerntest cca iris.csv --x 'sepal_*' --y 'petal_*' "
        "--test-fraction 0.3 --plot iris.png",
        "Classical canonical correlations, with loadings": "kerntest cca iris.csv --x 'sepal_*' --y 'petal_*' --kernel linear",
        "Keep the functions, for new rows": "kerntest cca machines.csv --x temp_c,load_percent --y wear_um,power_kw -o machines.kt",
        "Correlations and loadings for a program": "kerntest cca iris.csv --x 'sepal_*' --y 'petal_*' --json",
    },
    arguments={"DATA": DATA},
    notes={
        "What is found": "Pairs of a function of x and a function of y with the largest correlation, each pair uncorrelated "
        "with those before. With --kernel linear they are linear in the columns, as in classical canonical correlation "
        "analysis; with others they are curves. Without a penalty functions of a flexible kernel correlate perfectly on any "
        "rows: lambda, a share of the variance of each side in feature space, keeps them smooth, and is chosen so that the "
        "first pair has the largest mean correlation on rows left out in folds. The regularised correlation that is made "
        "largest is that of `kerntest hsic --statistic kcc` for the same penalty.",
        "How to read the result": "Believe the correlations on test rows, then those on rows left out, which chose lambda and "
        "are a little too good. Those on the training rows say nothing: with a flexible kernel they are near 1 for columns that "
        "are independent. p is the chance of so large a correlation of the first pair on the test rows if x and y were "
        "independent, by random permutations of these. The table names the columns that go with each function: the "
        "correlation, with --kernel linear the loading, for categories the correlation ratio. Signs mean nothing; both "
        "functions of a pair rise together.",
    },
    never=("5",),
)


@click.command(cls=ComputingCommand, manual=CCA)
@common.data_argument("train", metavar="DATA")
@common.columns(
    "--x",
    "x_columns",
    help="Columns of x, such as 'price,size:weight,temp_*' (a:b is a range). Without it all that are not in --y.",
)
@common.columns("--y", "y_columns", help="Columns of y, written the same way. Without it all that are not in --x.")
@common.LEARNED_TABLE
@_pairs("--components", type=common.COUNT, default=2, metavar="K", help="How many pairs.")
@common.learner_options(
    "Pairs",
    "median",
    features="nystroem:M: M random rows as landmarks of the functions; none takes all rows.  [default: none "
    "up to 1,000 rows, nystroem:500 beyond]",
)
@_pairs(
    "--lambda",
    "lambda_",
    type=NOT_NEGATIVE,
    metavar="L",
    help="Penalty as a share of the variance of each side: 1e-6 is little, 1 much.  [default: chosen]",
)
@common.engine_options()
@common.HELD_OUT
@common.UNKNOWN
@_judged("--cv", type=common.FOLDS, default=5, help="Folds in which rows are left out.")
@common.model_options(
    "for `kerntest transform`",
    "the first pair on rows held out, the correlations of all pairs and of each lambda, into a .png, .svg or .pdf file",
)
@gate_option(example="correlation<0.3")
@common.report_options
def cca(train: str, **options: Any) -> int:
    """Find functions of some columns and of others that go together: canonical correlations, by kernels.

    What in the brain goes with what on the screen, what in the soil with what in the crop. Judged on rows that the functions
    were not fitted to; the model gives them for new rows by `kerntest transform`, for one side alone with --side.
    """
    return _fitted("cca", CcaResult, train, options, "--y 'petal_*' < iris.csv")
