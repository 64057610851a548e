"""Test whether columns depend on one another: ``kerntest hsic``."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kerntest.cli import options as common
from kerntest.cli.completion import columns_named
from kerntest.cli.manual import DATA, Manual
from kerntest.cli.run import ENGINE_PARAMETERS, VERDICTS, ComputingCommand, Run, gate_option
from kerntest.report.results import independence_record as record
from kerntest.report.summaries import test_summary as words

if TYPE_CHECKING:
    from kerntest.report.results.record import Record

MANY = "Many tests at once"
DELIVERY = ("output_format", "json", "output", "fail_on", "quiet", "verbose")
RESULT_PARAMETERS = frozenset({"data", *DELIVERY, *ENGINE_PARAMETERS})


class Mode(NamedTuple):
    """One of the tests of the command: the function that makes it, and which options of that function belong to others."""

    function: str
    record: type[Record]
    others: str = ""


_TEST = ("hsic_test", record.IndependenceResult)
_PAIRS = ("hsic_pairs", record.ScreenResult)
# By the option that asks for it.
MODES = {
    "": Mode(*_TEST, "time_series min_lag"),
    "--time-series": Mode(*_TEST, "statistic null permutations resampling features cluster"),
    "--pairwise": Mode(*_PAIRS, "target"),
    "--target": Mode(*_PAIRS, "x_columns y_columns"),
    "--select": Mode("hsic_select", record.SelectionResult),
    "--joint": Mode("hsic_joint", record.JointResult),
}
# What parameters of the functions are called here.
CALLED = {"x": "data", "y": "other", "k": "select", "groups": "joint"}

# What an option needs that stands without it.
_NEEDS = {"select": "--target", "correction": "--pairwise or --target", "min_lag": "--time-series"}
_ONE_PAIR = "belongs to the test of one pair: `kerntest hsic DATA --x a --y b"
# The way out, for options under some switches; the first that fits. No switches stand for all.
_HINTS = (
    ("pairwise", "--target", "--pairwise tests every pair, --target every pair with one column: choose one of them"),
    (
        "x_columns y_columns",
        "--target --select",
        "--columns names the columns to test against the target, or to select from",
    ),
    ("x_columns y_columns columns", "--joint", "--joint itself names the columns: --joint a,b,c"),
    ("null resampling", "--time-series", "series have one null, the shift test"),
    ("permutations", "--time-series", "the shift test uses every shift there is; --min-lag says from which on"),
    ("statistic", "--time-series", "the shift test is one of HSIC"),
    ("null", "--joint", "the joint test has one null, random permutations of whole groups"),
    (
        "null",
        "--pairwise --target",
        "pairs have the moments p-value, which can be corrected, and the permutation p-value",
    ),
    ("kernel bandwidth", "--select", "the selection has a kernel of its own, Gaussian at the median bandwidth"),
    ("plot", "--select", "`kerntest hsic DATA --target NAME --plot FILE` draws every column against the target"),
    ("plot", "--joint", "--plot draws the test of one pair of groups, or a heat map of many pairs"),
    ("correction", "--select", "the p-value of each step takes the choice among the columns into account"),
    ("select", "", "`kerntest hsic DATA --target NAME --select 3` finds three columns on which NAME depends"),
    ("correction", "", "a single test has nothing to correct for"),
    (
        "time_series",
        "",
        f"p-values of shifts are at least 1/n, too large for many pairs: --time-series {_ONE_PAIR} --time-series`",
    ),
    ("min_lag", "", "the smallest shift is one of a test of series"),
    ("method", "", f"--method features {_ONE_PAIR} --method features`"),
    ("features", "", f"--features {_ONE_PAIR} --features KIND:M`"),
    ("other", "", "give one file: this is about columns of one table"),
    ("scale", "", "columns are always standardised here"),
    ("kernel_x kernel_y", "", "--kernel is the kernel of all columns here"),
    ("witness", "", f"--witness {_ONE_PAIR} --witness FILE`"),
    ("cluster", "", f"--cluster {_ONE_PAIR} --cluster NAME`"),
    ("statistic", "", f"--statistic {_ONE_PAIR} --statistic coco`"),
)

MANUAL = Manual(
    examples={
        "Does wear depend on temperature and load?": "kerntest hsic machines.csv --x temp_c,load_percent --y wear_um",
        "Every pair of columns, the surest dependence first": "kerntest hsic machines.csv --pairwise",
        "Which columns does one depend on?": "kerntest hsic machines.csv --target wear_um",
        "The two columns that together say most about it": "kerntest hsic machines.csv --target wear_um --select 2",
        "Two files, row by row": "kerntest hsic gaussian.csv laplace.csv",
        "Series: is the dependence more than that each follows its own past?": "kerntest hsic river.csv --x rain_mm "
        "--y level_cm --time-series --min-lag 10",
        "Independent in pairs, dependent all together": "kerntest hsic stairs.csv --joint "
        "lower_switch,upper_switch,lamp",
        "Pictures: the functions of x and of y that go together": "kerntest hsic machines.csv --x temp_c --y wear_um "
        "--statistic coco --plot wear.png",
        "A gate in a pipeline, with JSON for programs": "kerntest hsic machines.csv --x shaft_x_um --y shaft_y_um "
        "--json --fail-on reject",
        "All pairs as JSON lines": "kerntest hsic machines.csv --pairwise --format jsonl",
    },
    arguments={
        "DATA": DATA,
        "Y": "A second file, whose row i is the same case as row i of DATA: its columns are tested against those.",
    },
    notes={
        "How to read the result": "The p-value is the chance of a dependence at least this clear if x and y were "
        "independent. A small one (at most alpha) says that they depend on each other, in whatever way; a large one "
        "does not prove that they are independent. The effect size, from 0 to 1, says how strongly, whatever the "
        "number of rows. A dependence is no cause. Where --y says which group a row is in, `kerntest mmd DATA --by y` "
        "tests the same, and says which groups differ, two by two.",
        "Several kernels": "auto is a family of pairs of kernels, 18 or 27 up to 2,000 rows: Gaussian with Gaussian, "
        "Laplacian with Laplacian and, where a side has several columns, additive kernels, which look at each column "
        "alone; each with several bandwidths. --judge together asks how unusual their statistics are as a whole, "
        "given how these rise and fall together under relabelling; only an excess counts. The pair shown is the one "
        "with the largest z, its statistic in standard deviations of the null; -v lists all of them.",
        "Many tests at once": "--pairwise and --target test each pair with one kernel at the median bandwidth. p is "
        "the p-value by the moments of the permutation distribution, corrected for all pairs: holm keeps the chance "
        "of any false finding below alpha, bh the expected share of false ones among the findings. p perm. is that of "
        "the pair alone over relabellings, not corrected. r, rho and tau are the coefficients of Pearson, Spearman "
        "and Kendall: where they are near 0 and p is small, the dependence is one that they miss.",
        "Nulls": "permutation is exact for any number of rows and judges a whole family of pairs of kernels together; "
        "its p-value is at least 1 / permutations. Its relabellings are all cyclic shifts of the rows in random order. "
        "By features the null is moments. The others take one pair of kernels and have no such floor. "
        "moments: a Pearson III curve through the exact mean, variance and skewness of the permutation distribution. "
        "pearson: a curve through four moments. spectral: weighted chi-squares. gamma: two moments of the biased "
        "statistic, as in the literature; it rejects too often at small p. Series have a null of their own, the shift "
        "test, which is asymptotic.",
    },
)


_test, _many, _series = (partial(common.option, topic=topic) for topic in ("Test", "Many tests at once", "Series"))
_kernel = partial(common.kernel, topic="Test")
_picture = partial(common.option, type=common.OutputPath(allow_dash=True), topic="How they depend")


@click.command(cls=ComputingCommand, manual=MANUAL)
@common.data_argument("data")
@common.data_argument("other", metavar="[Y]", required=False)
@common.columns(
    "--x",
    "x_columns",
    help="Columns of x, such as 'price,size:weight,temp_*' (a:b is a range). Without it all that are not in --y.",
)
@common.columns("--y", "y_columns", help="Columns of y, written the same way. Without it all that are not in --x.")
@common.COLUMNS
@common.SCALE
@common.csv_options
@common.option(
    "--missing",
    type=common.one_of("error", "drop", "indicator"),
    topic=common.ROWS,
    help="Missing values: error (stop and count them), drop (leave out their rows; of many tests each drops those of "
    "its own columns) or indicator (take them as information: beside a number, its gaps filled with the mean, stands "
    "whether it is there; a category has one more).  [default: error; with --pairwise or --target, without --select: drop]",
)
@_kernel(
    "--kernel",
    help="Kernel on both sides, such as 'laplacian' or 'gaussian(1.5) + 0.5*linear'; auto tries a family of pairs of "
    "Gaussian, Laplacian and additive ones and gives one p-value for all. `kerntest kernels` lists them.  [default: "
    "auto; of many tests: gaussian]",
)
@_kernel("--kernel-x", help="Kernel on x, instead of --kernel.")
@_kernel("--kernel-y", help="Kernel on y, instead of --kernel.")
@_test(
    "--bandwidth",
    type=common.bandwidth("auto", "median"),
    help="Bandwidth of a kernel that names none: auto (several, judged together), median (of the distances), a "
    "number, or several: 0.5,1,2.  [default: auto; of many tests: median]",
)
@_test(
    "--statistic",
    of=("hsic", "coco", "kcc", "kmi"),
    help="hsic sums all ways in which functions of x and y go together. For one pair of kernels: coco, the constrained "
    "covariance, is the strongest one; kcc, the kernel canonical correlation, the strongest correlation, which finds fine "
    "patterns; kmi is the kernel mutual information.",
)
@common.test_options("nystroem:200", "shifts")
@_many("--pairwise", is_flag=True, help="Test every pair of columns, or those between --x and --y, and rank them.")
@common.column("--target", topic=MANY, help="Test every column against this one.")
@_many(
    "--select",
    type=common.COUNT,
    metavar="K",
    help="Select K columns one after another, each the one that adds most to the dependence on --target.",
)
@_many(
    "--correction",
    type=common.one_of("holm", "bh", "none"),
    help="Correction of p-values for many tests: holm, bh (Benjamini-Hochberg) or none.  [default: holm]",
)
@common.columns(
    "--joint",
    callback=None,
    topic=MANY,
    help="Test whether columns are independent all together, not only in pairs (dHSIC). Given once, each column is a "
    "group of its own; given several times, each list is a group.",
)
@_series(
    "--time-series",
    is_flag=True,
    help="Rows are in the order of time: shift one series against the other instead of relabelling rows.",
)
@common.option(
    "--cluster",
    topic="Test",
    shell_complete=columns_named,
    metavar="NAME",
    help="Column that says which rows belong together, such as a patient: a side that is constant within clusters moves "
    "between them; else clusters of one size exchange their rows, in the order of the file.",
)
@_series(
    "--min-lag",
    type=common.COUNT,
    metavar="N",
    help="Smallest shift, in rows, that stands for independence: twice the longest delay with which one series may follow "
    "the other. What is tested are rows of the same time.  [default: 1]",
)
@_picture(
    "--witness",
    help="Write the functions f(x) and g(y) with the largest covariance, at every row, to a .csv, .parquet or .jsonl file.",
)
@_picture(
    "--plot",
    help="Draw the null distribution and these functions, or of many tests a heat map, into a .png, .svg or .pdf file.",
)
@common.engine_options("local", "gpu", "dask")
@gate_option(*VERDICTS, example="effect_size>0.2")
@common.result_options
@click.pass_context
def hsic(ctx: click.Context, /, **options: Any) -> int:
    """Test whether columns depend on one another, in whatever way.

    The test compares the columns of --x with those of --y, numbers and categories alike, by the Hilbert-Schmidt
    independence criterion (HSIC): it sees dependence of any kind, not only rising or falling lines, and by default its
    p-value is exact for any number of rows.
    """
    run = Run(options)
    switch = _switch(options)
    mode = MODES[switch]
    import kerntest  # noqa: PLC0415 - numerics are loaded only to compute

    taken = set(inspect.signature(getattr(kerntest, mode.function)).parameters) - set(mode.others.split())
    _check_options(ctx, switch, taken)
    common.choose_test(ctx, options, by_features="moments")
    sources = {"DATA": options["data"], "Y": options["other"]}
    run.check(mode.record, sources, "kerntest hsic - --x price --y size < data.csv")
    result = run.call(mode.function, **_arguments(taken, options))
    return run.deliver(result, words.notes_of(result), result.rows_of_tests())


def _switch(options: dict[str, Any]) -> str:
    """Return the option that asks for a test; what contradicts it is found by `_check_options`."""
    if options["joint"]:
        return "--joint"
    if options["target"] is not None:
        return "--target" if options["select"] is None else "--select"
    return "--pairwise" if options["pairwise"] else "--time-series" if options["time_series"] else ""


def _check_options(ctx: click.Context, switch: str, taken: set[str]) -> None:
    """Refuse options that mean nothing to the test that was asked for, which takes these parameters."""
    known = {CALLED.get(name, name) for name in taken} | common.CSV_WORDS | RESULT_PARAMETERS | {switch[2:]}
    known |= {"kernel"} if "kernel_x" in taken else set()
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name not in known and common.is_given(ctx, name):
            shown = "a second file" if isinstance(parameter, click.Argument) else common.option_name(parameter)
            wrong = f"needs {_NEEDS[name]}" if name in _NEEDS and not switch else f"does not go with {switch}"
            fitting = (
                hint for names, some, hint in _HINTS if name in names.split() and (not some or switch in some.split())
            )
            usual = f"leave out one of the two; see `{ctx.command_path} --help`"
            raise common.contradiction(f"{shown} {wrong}", next(fitting, usual))


def _arguments(taken: set[str], options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that a function takes; what was not given is left to the library."""
    if "kernel_x" in taken:
        both = options["kernel"]
        if None not in (both, options["kernel_x"], options["kernel_y"]):
            raise common.contradiction(
                "--kernel, --kernel-x and --kernel-y contradict each other",
                "--kernel is for the side that has none of its own: leave it out",
            )
        for name in ("kernel_x", "kernel_y"):
            options[name] = both if options[name] is None else options[name]
    if len(options["joint"]) == 1:
        # Each list is a group, or each column of a single one.
        (options["joint"],) = options["joint"]
    given = {name: options.get(CALLED.get(name, name)) for name in sorted(taken | common.CSV_WORDS)}
    return {name: value for name, value in given.items() if value is not None and value != ()}
