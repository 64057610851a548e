"""What the commands share that apply a model to the rows of a file: options, and where rows and report go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kerntest.cli.documented import option
from kerntest.cli.options import OneOf, OutputPath
from kerntest.cli.run import check_outputs, check_stdin, report_delivery
from kerntest.cli.shared_options import columns_option
from kerntest.errors import UsageError
from kerntest.report.summaries.words import name_list, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from kerntest.cli.delivery import Delivery
    from kerntest.cli.documented import AnyCommand
    from kerntest.report.results.record import Record
    from kerntest.report.results.row_reports import PredictionReport, TransformReport
    from kerntest.report.summaries.words import Summary

DATA = "Data"
DATA_ARGUMENT = (
    "DATA",
    (
        "CSV, Parquet or JSON lines, also compressed; a folder of Parquet; a quoted glob; or - for stdin. It may be larger "
        "than memory."
    ),
)
UNKNOWN = option(
    "--unknown",
    type=OneOf("error", "ignore"),
    default="error",
    metavar="RULE",
    topic=DATA,
    help="Categories that no training row had: error (stop) or ignore (different from every known one).",
)


def keep_option(topic: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --keep."""
    return columns_option(
        "--keep",
        "Columns of DATA to hand through, such as 'id,price:weight,temp_*'; '*' for all. Of CSV they stay as typed.",
        topic=topic,
    )


def missing_option(made: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --missing; `made` is what the model makes of a row, such as "prediction"."""
    return option(
        "--missing",
        type=OneOf("error", "drop", "empty"),
        default="error",
        metavar="RULE",
        topic=DATA,
        help=f"Rows with a missing value: error (stop), drop (leave them out) or empty (leave their {made} empty).",
    )


def rows_output(made: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --output, which takes the rows."""
    return option(
        "-o",
        "--output",
        type=OutputPath(),
        metavar="FILE",
        topic="Output",
        help=f"Write the {made} to a .csv or .parquet file instead of stdout; stdout then gets a report.",
    )


@dataclass(frozen=True, slots=True)
class RowDelivery:
    """Where the report goes, and whether there is to be one: stdout has room for the rows or for the report."""

    delivery: Delivery
    reported: bool

    @classmethod
    def asked_for(
        cls, command: str, model: str, data: str, options: dict[str, Any], made: str, *, record: type[Record]
    ) -> RowDelivery:
        """Take out of the options what says where results go."""
        given = options["report"]
        delivery = report_delivery(options)
        delivery.check_gates(record)
        reported = options["output"] is not None or delivery.output is not None
        hint = f"-o FILE.csv puts the {made} into a file, --report FILE the report"
        if not reported and given == "-":
            raise UsageError(
                f"--report - would go between the {made}, which stdout gets as CSV",
                hint=hint,
                code="usage.contradiction",
            )
        if not reported and delivery.output_format != "table":
            raise UsageError(
                f"--format {delivery.output_format} is for the report, and stdout gets the {made} as CSV",
                hint=hint,
                code="usage.contradiction",
            )
        check_stdin({"DATA": data}, f"kerntest {command} {model} - < new.csv")
        check_outputs((data,), {"-o": options["output"], "--report": delivery.output}, model=model)
        return cls(delivery, reported)

    def deliver(
        self, report: PredictionReport | TransformReport, summarise: Callable[[Any], Summary], done: str
    ) -> int:
        """Write the report, say on stderr what it does not (with -v what was `done`), and return the exit code."""
        messages = self.delivery.messages
        if self.reported:
            self.delivery.deliver(report, summarise)
        else:
            for gate in self.delivery.gates:
                gate.check(report)
            messages.warn([visible(warning) for warning in report.warnings])
        if report.columns_ignored and (not self.reported or self.delivery.output_format != "table"):
            messages.note(f"not used by {visible(report.model)}: {name_list(report.columns_ignored)}")
        messages.wrote(report.output)
        messages.explain([f"{report.rows:,} rows, {done}, {report.seconds:.3g} seconds"])
        return self.delivery.code(report)
