"""What shape the rows have: ``kerntest kpca``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from kerntest.cli import options as common
from kerntest.cli.manual import DATA, Manual
from kerntest.cli.run import ComputingCommand, Run, gate_option, join_names
from kerntest.report.results.learning_record import KpcaResult

COMPONENTS = "Components"

MANUAL = Manual(
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
        "part.",
    },
    never=("5",),
)

_components = partial(common.option, topic=COMPONENTS)


@click.command(cls=ComputingCommand, manual=MANUAL)
@common.data_argument("train", metavar="DATA")
@common.columns("--columns", help="Columns to take part, such as 'price,size:weight,temp_*' (a:b is a range).")
@common.columns("--exclude", help="Columns to leave out.")
@common.column("--color", help="Column that takes no part and colours the picture.")
@common.TABLE
@_components("--components", type=common.COUNT, default=2, metavar="K", help="How many components.")
@common.learner_options(COMPONENTS)
@_components(
    "--bandwidth",
    type=common.bandwidth("median", several=False),
    default="median",
    help="Bandwidth of a kernel that names none: median (of the distances of the rows) or a number.",
)
@_components(
    "--solver",
    type=common.one_of("auto", "lanczos", "dense"),
    default="auto",
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
    run = Run(options)
    run.check(KpcaResult, {"DATA": train}, "kerntest kpca - < iris.csv")
    result = run.call("train_kpca", train, doing="fitting", **join_names(options))
    from kerntest.report.summaries.learner_summary import kpca_notes, kpca_summary  # noqa: PLC0415 - --help must start at once

    return run.deliver(result, kpca_notes(result), kpca_summary)
