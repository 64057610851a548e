"""Show what a file holds and what a test would do with it: ``kerntest inspect``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kerntest.cli.console import say, terminal_width, uses_colour
from kerntest.cli.documented import EXIT_CODES, DocumentedCommand, Manual
from kerntest.cli.inputs import check_stdin, join_names
from kerntest.cli.options import chosen_format, format_options
from kerntest.cli.shared_options import columns_option, decimal_option
from kerntest.report.summary import visible
from kerntest.report.write import csv_text, json_text, write_standard_output

if TYPE_CHECKING:
    from kerntest.report.table_report import ColumnReport, TableReport

MANUAL = Manual(
    examples=(
        ("What is in this file, and would a test use it?", "kerntest inspect before.csv"),
        ("Only some columns, for programs", "kerntest inspect before.csv --columns 'items,site_*' --json"),
        ("Many files with one header, as one table", "kerntest inspect 'iris_*.csv'"),
        ("A compressed file from a pipe", "gzip -c after.csv | kerntest inspect -"),
        ("One line for each column, for a spreadsheet", "kerntest inspect wine.csv --format csv"),
    ),
    arguments=(
        (
            "FILE",
            (
                "CSV or Parquet file, also compressed with gzip or zstd; a quoted glob of such files with one header; "
                "a folder of Parquet files; or - for stdin."
            ),
        ),
    ),
    notes=(
        (
            "What a test would do with a column",
            (
                "used: it takes part. left out: it cannot tell anything, because it holds one value or identifies rows; "
                "the test goes on with a warning. refused: a test stops with an error, because of a value that is not a "
                "number among numbers, an infinite one, or a type that is not supported; --exclude leaves the column out."
            ),
        ),
    ),
    exit_codes=tuple((code, text) for code, text in EXIT_CODES if code in {"0", "2", "3", "70", "130", "141"}),
)


@click.command(
    "inspect", cls=DocumentedCommand, manual=MANUAL, short_help="Show the columns of a file and what a test would use."
)
@click.argument("file", type=click.Path(allow_dash=True, readable=False))
@columns_option("--columns", "Columns to show, such as 'price,size:weight,temp_*' (a:b is a range).", topic="Columns")
@columns_option("--exclude", "Columns to leave out, written the same way.", topic="Columns")
@columns_option("--categorical", "Columns of numbers that are codes for categories.", topic="Columns")
@decimal_option("Columns")
@format_options()
def inspect_file(file: str, *, output_format: str | None, as_json: bool, **options: Any) -> None:
    """Show what FILE holds: rows, format, and for each column its type, missing values, range or most frequent values.

    For each column it also says whether a two-sample test would use it, and if not, why.
    """
    shown_as = chosen_format(output_format, as_json=as_json)
    check_stdin({"FILE": file}, "kerntest inspect - < before.csv")
    from kerntest.inference.inspection import inspect_table  # noqa: PLC0415 - numerics are loaded only to compute

    join_names(options, "columns", "exclude", "categorical")
    _deliver(inspect_table(file, **options), shown_as)


def _deliver(report: TableReport, shown_as: str) -> None:
    """Write the report to stdout, and on stderr the warnings that only a table shows by itself."""
    if shown_as == "table":
        from kerntest.cli.table_view import report_text  # noqa: PLC0415 - rich is loaded only to draw

        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        text = report_text(report, width=terminal_width(), colour=uses_colour(sys.stdout))
        write_standard_output(text, encoding=encoding)
        return
    plain = report.to_dict()
    write_standard_output(
        json_text(plain) if shown_as == "json" else csv_text([_csv_row(column) for column in report.columns])
    )
    for warning in report.warnings:
        say(visible(warning), label="warning")


def _csv_row(column: ColumnReport) -> dict[str, Any]:
    """Return one column as a row of CSV; its levels are one text."""
    levels = ";".join(f"{level.value}={level.count}" for level in column.levels)
    return {**column.to_dict(), "levels": levels}
