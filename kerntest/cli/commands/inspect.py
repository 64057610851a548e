"""Show what a file holds, a table or a model: ``kerntest inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kerntest
from kerntest.cli import options as common
from kerntest.cli.manual import DocumentedCommand, Manual
from kerntest.cli.run import Run, check_stdin, join_names
from kerntest.errors import UsageError

if TYPE_CHECKING:
    from kerntest.report.results.inspection_record import ColumnReport

# The name of the first member, at its place in the header of that member.
MANIFEST_AT = 30
MODEL_START = b"manifest.json"

MANUAL = Manual(
    examples={
        "What is in this file, and would a test use it?": "kerntest inspect before.csv",
        "Only some columns, for programs": "kerntest inspect before.csv --columns 'items,site_*' --json",
        "Many files with one header, as one table": "kerntest inspect 'iris_*.csv'",
        "A compressed file from a pipe": "gzip -c after.csv | kerntest inspect -",
        "One line for each column, for a spreadsheet": "kerntest inspect wine.csv --format csv",
        "What is in a model, and which columns does it need?": "kerntest inspect species.kt",
    },
    arguments={
        "FILE": "CSV, Parquet or JSON lines, also compressed with gzip, zstd, bzip2 or xz; a quoted glob of such "
        "files with one header; a folder of Parquet files; or - for stdin. Or a model file."
    },
    notes={
        "What a test would do with a column": "used: it takes part. left out: it cannot tell anything, because it "
        "holds one value or identifies rows; the test goes on with a warning. refused: a test stops with an error, "
        "because of a value that is not a number among numbers, an infinite one, or a type that is not supported; "
        "--exclude leaves the column out."
    },
    never=("1", "4"),
)


@click.command("inspect", cls=DocumentedCommand, manual=MANUAL)
@common.data_argument("file")
@common.columns(
    "--columns", help="Columns to show, such as 'price,size:weight,temp_*' (a:b is a range).", topic="Columns"
)
@common.columns("--exclude", help="Columns to leave out, written the same way.", topic="Columns")
@common.columns("--categorical", help="Columns of numbers that are codes for categories.", topic="Columns")
@common.csv_options
@common.format_options()
def inspect_file(file: str, **options: Any) -> None:
    """Show what FILE holds: rows, format, and for each column its type, missing values, range or most frequent values.

    For each column it also says whether a two-sample test would use it, and if not, why. Of a model it shows what the
    model predicts, from which columns, and how.
    """
    run = Run(options)
    check_stdin({"FILE": file}, "kerntest inspect - < before.csv")
    if is_model(file):
        given = {name for name, value in options.items() if value not in ((), "auto", None, True)}
        if given:
            raise UsageError(
                f"--{min(given).replace('header', 'no-header')} is for tables, and {file} is a model",
                hint="leave it out",
                code="usage.contradiction",
                where={"file": file},
            )
        from kerntest.report.results.inspection_record import model_summary  # noqa: PLC0415 - --help must start at once

        run.tell(kerntest.inspect_model(file), model_summary)
        return
    from kerntest.report.results.inspection_record import table_summary  # noqa: PLC0415 - as above

    report = kerntest.inspect_table(file, **join_names(options))
    run.tell(report, table_summary, [_csv_row(column) for column in report.columns])


def is_model(path: str) -> bool:
    """Say whether a file is a model, whole or damaged: a zip archive that begins with a manifest, or named .kt."""
    location = Path(path)
    try:
        if not location.is_file():
            return False
        with location.open("rb") as file:
            head = file.read(len(MODEL_START) + MANIFEST_AT)
    except (OSError, ValueError):
        return False
    begins = head.startswith(b"PK\x03\x04") and head[MANIFEST_AT:] == MODEL_START
    return begins or location.suffix.lower() == ".kt"


def _csv_row(column: ColumnReport) -> dict[str, Any]:
    """Return one column as a row of CSV; its levels are one text."""
    levels = ";".join(f"{level.value}={level.count}" for level in column.levels)
    return {**column.to_dict(), "levels": levels}
