"""Test whether files, or groups of rows, come from the same distribution: ``kerntest mmd``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import click

from kerntest.cli import options as common
from kerntest.cli.completion import columns_named
from kerntest.cli.manual import DATA, Manual
from kerntest.cli.run import MARGIN_VERDICTS, VERDICTS, ComputingCommand, Run, gate_option
from kerntest.report.results.groups_record import GroupsResult
from kerntest.report.results.two_sample_record import TwoSampleResult
from kerntest.report.summaries.test_summary import notes_of

MANUAL = Manual(
    examples={
        "Compare two files": "kerntest mmd before.csv after.csv",
        "A gate in a pipeline: exit code 1 when the data have drifted": "kerntest mmd before.csv after.csv --fail-on "
        "reject",
        "JSON for programs, of some columns": "kerntest mmd before.csv after.csv --columns 'order_value_eur,items' "
        "--json",
        "Read one of the two from a pipe": "head -n 101 after.csv | kerntest mmd before.csv -",
        "Only orders of several items, 200 of each file at random": "kerntest mmd before.csv after.csv --where 'items > 1' "
        "--sample 200",
        "Groups of the rows of one file: all together, and two by two": "kerntest mmd iris.csv --by species --plot "
        "species.png",
        "Each group against one of them": "kerntest mmd iris.csv --by species --reference setosa",
        "Several files, each against the first": "kerntest mmd before.csv after.csv same_week.csv --fail-on reject",
        "Orders of the same payment compared with each other": "kerntest mmd before.csv after.csv --strata payment",
        "Choose the kernel and its bandwidth": "kerntest mmd iris_versicolor.csv iris_virginica.csv --kernel "
        "'gaussian(1.5)'",
        "Are they the same, but for less than a shift of one column by 0.3 standard deviations?": "kerntest mmd before.csv "
        "after.csv --margin 0.3sd --fail-on differ,undecided",
        "Where do they differ?": "kerntest mmd before.csv after.csv --explain --plot drift.png",
        "The smallest p-value of any of three bandwidths, corrected": "kerntest mmd gaussian.csv laplace.csv --kernel "
        "gaussian --bandwidth 0.2,0.5,1 --judge smallest",
    },
    arguments={
        "X": DATA,
        "Y": "The file to compare with it, which must have the same columns; of several, each is compared with X. With "
        "--by there is none.",
    },
    notes={
        "How to read the result": "The p-value is the chance of a difference at least this large if both files came "
        "from the same distribution. A small one (at most alpha) says that they differ; a large one does not prove "
        "that they are equal. The effect size, from 0 to 1, says how much they differ, "
        "as if as many rows came from each, whatever their number.",
        "Groups": "--by COLUMN compares the groups of rows that a column names. Two groups are what two files are. Of "
        "more, one exact p-value says whether they differ at all, and this is the one that a gate judges; then every two, "
        "or with --reference each and that one, are compared as two files with their rows would be, so that no third "
        "group makes them differ, and their p-values are corrected by Holm, over as many relabellings as it takes. The "
        "effect sizes of pairs stand under one kernel, to be compared with each other. Of several files there are the "
        "pairs only, and the smallest corrected p-value is that of the result.",
        "Several kernels": "auto is a family of some 15 kernels: Gaussian and Laplacian ones of many bandwidths and, "
        "from three columns on, additive ones, which look at each column alone. --judge together asks how unusual "
        "their statistics are as a whole, given how these rise and fall together under relabelling: kernels that say "
        "the same count about once, several that each say a little add up, and only an excess counts. The kernel "
        "shown is the one with the largest z, its statistic in standard deviations of the null, by features that of the "
        "largest effect size; -v lists all of them.",
        "Same or different": "A large p-value does not say that two files are the same. Where no difference is found, the "
        "decision says which shift of one column would have been found in four of five cases. --margin D asks the opposite "
        "question: the files are the same if MMD is surely below D, and the chance of saying so of files that are D apart or "
        "more is at most alpha. It is measured by a kernel chosen beforehand, the Gaussian at the median bandwidth unless "
        "--kernel names another, and so are the intervals of MMD and of the effect size, which are given where MMD^2 is above "
        "four of its standard errors. --fail-on takes same, differ and undecided then, or several with commas. Of several "
        "groups or files each pair has its own verdict, at alpha over the number of pairs; --fail-on takes these for differ if "
        "one is, for same if all are.",
        "Nulls": "permutation is exact for any number of rows and judges a whole family of kernels together; its "
        "p-value is at least 1 / permutations. Its relabellings permute 100 to 200 blocks of random rows, so that "
        "each kernel value is computed once, whatever their number; where there are at most 5,000 relabellings of all "
        "rows, it takes those. By features it permutes blocks too. The others take one kernel and have no such "
        "floor. moments: a Pearson III curve through the exact mean, variance and skewness of the permutation "
        "distribution; right to an eighth at p-values down to 0.001 wherever it was measured. pearson: a curve "
        "through four moments; as good in the body, less sure below 0.001. spectral: weighted chi-squares; good for "
        "the unbiased estimate, too cautious for the biased one in many dimensions. gamma: two moments; it rejects up "
        "to three times too often at p = 0.001.",
    },
)

_test = partial(common.option, topic="Test")


def _size(text: str) -> str:
    """Return the text of an MMD, or of a shift in standard deviations, as it is."""
    if 0 < float(text.strip().casefold().removesuffix("sd")) < math.inf:
        return text
    raise ValueError


SIZE = common.Value("d", "a positive number, or standard deviations such as 0.2sd", _size, "usage.range")
_where = partial(common.option, topic="Where they differ")
_together = partial(common.option, topic="Rows that belong together", shell_complete=columns_named, metavar="NAME")


@click.command(cls=ComputingCommand, manual=MANUAL)
@common.data_argument("x")
@common.data_argument("y", nargs=-1, metavar="[Y]...")
@common.column(
    "--by",
    topic="Groups",
    help="Compare groups of the rows of X: those that have one value in this column, such as a sex, a species or a year.",
)
@common.option(
    "--reference",
    metavar="VALUE",
    topic="Groups",
    help="Compare each group with the one that has this value, not every two.",
)
@common.kernel(
    "--kernel",
    default="auto",
    topic="Test",
    help="Kernel, such as 'laplacian' or 'gaussian(1.5) + 0.5*linear'; auto tries a family of Gaussian, Laplacian and "
    "additive ones and gives one p-value for all. `kerntest kernels` lists them.",
)
@_test(
    "--bandwidth",
    type=common.bandwidth("auto", "median"),
    default="auto",
    help="Bandwidth of a kernel that names none: auto (several, judged together), median (of the distances), a "
    "number, or several: 0.5,1,2.",
)
@common.test_options("nystroem:300", "blocks")
@_test(
    "--min-effect",
    type=SIZE,
    metavar="D",
    help="Reject only if MMD is surely at least D: its lower confidence bound at level 1 - alpha, at the median "
    "bandwidth unless the kernel is given. D is an MMD, or 0.2sd: that of a shift of one column by 0.2 standard deviations.",
)
@_test(
    "--margin",
    type=SIZE,
    metavar="D",
    help="Are they the same? Say `same` if MMD is surely below D, `differ` if it is surely above, else `undecided`, each at "
    "level 1 - alpha; D as in --min-effect. The p-value stands beside it.",
)
@_together(
    "--cluster",
    help="Column that says which rows belong together, such as a patient, session or shop: they are relabelled together. "
    "Each cluster is in one of both files.",
)
@_together(
    "--paired",
    help="Column that says which rows of X and of Y are the same case, such as before and after: these change places.",
)
@_together(
    "--strata",
    help="Column within whose values rows are compared, such as a shop: a change of their mix alone is no difference.",
)
@common.option("--common", is_flag=True, topic=common.ROWS, help="Use the columns that both files have.")
@common.TABLE
@_where(
    "--explain",
    is_flag=True,
    help="Also test each column alone: its effect size, what it was and what it is, and a p-value corrected for all "
    "columns; and show the most typical rows.",
)
@_where(
    "--witness",
    type=common.OutputPath(allow_dash=True),
    help="Write the witness function of the kernel shown at every row to a .csv, .parquet or .jsonl file: positive where X is "
    "denser.",
)
@_where(
    "--plot",
    type=common.OutputPath(allow_dash=True),
    help="Draw the null distribution, the witness function and, with --explain, effect sizes and distributions of the "
    "columns into a .png, .svg or .pdf file; of several groups or files the effect sizes of the pairs.",
)
@common.engine_options("local", "gpu", "dask")
@gate_option(*VERDICTS, *MARGIN_VERDICTS, example="effect_size>0.2")
@common.result_options
@click.pass_context
def mmd(ctx: click.Context, /, x: str, y: tuple[str, ...], **options: Any) -> int:
    """Test whether X and Y, or groups of the rows of X, come from the same distribution.

    The test compares the rows of both files, all columns together, by the maximum mean discrepancy (MMD): it sees
    differences of any kind, not only of means, and by default its p-value is exact for any number of rows.
    """
    run = Run(options)
    common.choose_test(ctx, options)
    named = {"Y" if place == 1 else f"Y {place}": one for place, one in enumerate(y, 1)}
    records = (TwoSampleResult, GroupsResult) if options["by"] is not None else (GroupsResult,) if len(y) > 1 else ()
    run.check(records or (TwoSampleResult,), {"X": x} | named, "kerntest mmd before.csv - < after.csv")
    result: TwoSampleResult | GroupsResult = run.call("mmd_test", x, *y, **options)
    return run.deliver(result, notes_of(result), result.rows_of_tests())
