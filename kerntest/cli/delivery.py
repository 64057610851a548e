"""Results on their way out: to stdout or a file in the format asked for, and what goes with them to stderr."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from kerntest.cli.console import PIPED_WIDTH, Messages, terminal_width, uses_colour
from kerntest.cli.options import chosen_format
from kerntest.errors import UsageError
from kerntest.report.record import Record, flatten
from kerntest.report.summary import visible
from kerntest.report.write import csv_text, json_text, put_in_place, write_file, write_standard_output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kerntest.cli.gates import Gate
    from kerntest.report.summary import Summary

# The format that the name of a file asks for.
NAMED = {".json": "json", ".jsonl": "jsonl", ".csv": "csv"}


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where a result goes, a file or stdout (None), and as what; what else is said; what makes a run fail that went well."""

    output_format: str
    output: str | None
    messages: Messages
    gates: tuple[Gate, ...] = ()

    @classmethod
    def asked_for(
        cls,
        *,
        output_format: str | None,
        as_json: bool,
        output: str | None,
        fail_on: tuple[Gate, ...],
        quiet: bool,
        verbose: bool,
    ) -> Delivery:
        """Make the delivery that the options ask for; UsageError where they contradict each other."""
        if quiet and verbose:
            raise UsageError("-q and -v contradict each other", hint="give one of them", code="usage.contradiction")
        if not as_json:
            output_format = output_format or NAMED.get(PurePath(output or "").suffix.lower())
        shown_as = chosen_format(output_format, as_json=as_json)
        return cls(shown_as, None if output == "-" else output, Messages(quiet, verbose), fail_on)

    def check_gates(self, record: type[Record]) -> None:
        """Refuse gates on what no result of this kind has, before the work is done."""
        for gate in self.gates:
            gate.check_field(record)

    def deliver(self, result: Any, summarise: Callable[[Any], Summary], rows: Sequence[dict[str, Any]] = ()) -> None:
        """Write a result in full, let every file take its name, then say on stderr what only a table says by itself.

        `rows` are what CSV and JSON lines hold, where that is not the whole result.
        """
        for gate in self.gates:
            gate.check(result)
        if self.output is None:
            colour, width = uses_colour(sys.stdout), terminal_width()
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        else:
            colour, width, encoding = False, PIPED_WIDTH, "utf-8"
        if self.output_format == "table":
            from kerntest.cli.drawing import summary_text  # noqa: PLC0415 - rich is loaded only to draw

            text = summary_text(summarise(result), width=width, colour=colour)
        else:
            encoding = "utf-8"
            text = self._written(result, rows)
        if self.output is None:
            write_standard_output(text, encoding=encoding)
        else:
            write_file(self.output, text)
        # All that the run has written is whole by now.
        put_in_place()
        self.messages.wrote(self.output)
        if self.output is not None or self.output_format != "table":
            self.messages.warn([visible(warning) for warning in getattr(result, "warnings", ())])

    def code(self, result: Record) -> int:
        """Return the exit code of a run: 1 if a gate failed, which stderr then tells."""
        decided = [(gate, *gate.code(result)) for gate in self.gates]
        for gate, code, why in decided:
            if doubt := gate.doubt(result):
                self.messages.note(visible(doubt))
            if code:
                self.messages.note(f"exit code {code}, because of --fail-on {visible(gate.text)}{visible(why)}")
        return max((code for _, code, _ in decided), default=0)

    def _written(self, result: Any, rows: Sequence[dict[str, Any]]) -> str:
        """Return a result as programs read it."""
        if self.output_format == "json":
            return json_text(result.to_dict())
        plain = rows or [result.to_dict()]
        if self.output_format == "jsonl":
            return "".join(json_text(row, indent=None) for row in plain)
        return csv_text([flatten(row) for row in plain])
