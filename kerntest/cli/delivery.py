"""Results on their way out: what form, to where, and with which exit code."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from kerntest.cli.console import PIPED_WIDTH, Messages, terminal_width, uses_colour
from kerntest.cli.documented import option
from kerntest.cli.options import OneOf, chosen_format, option_name
from kerntest.errors import UndecidedError, UsageError, suggest
from kerntest.report.results.record import Record, flatten
from kerntest.report.summaries.words import visible
from kerntest.report.write import csv_text, json_text, put_in_place, write_file, write_standard_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import click

    from kerntest.cli.documented import AnyCommand
    from kerntest.report.results.record import Record
    from kerntest.report.summaries.words import Summary

VERDICTS = ("reject", "accept")
_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_NUMBER = re.compile(r"(int|float)\b")
_CONDITION = re.compile(r"\s*(?P<name>.*\S)\s*(?P<sign>[<>]=?)\s*(?P<limit>[^<>=\s]+)\s*")


@dataclass(frozen=True, slots=True)
class Gate:
    """When a run fails that went well."""

    text: str
    name: str = ""
    sign: str = ""
    limit: float = math.nan

    def check_field(self, record: type[Record]) -> None:
        """Refuse a name that no report of this kind has, before the work is done, as far as can be told."""
        known = {field.name.rstrip("_"): str(field.type) for field in fields(record)}  # type: ignore[arg-type]  # all are dataclasses
        numbers = [name for name, kind in known.items() if _NUMBER.match(kind)]
        if self.name and self.name.partition(".")[0] not in known:
            raise self._unknown(tuple(known), numbers)
        if known.get(self.name) in {"str", "bool"}:
            raise self._no_number(numbers)

    def check(self, result: Record) -> None:
        """Refuse a name that is no number of the report."""
        if not self.name:
            return
        found = dict(_leaves(result.to_dict()))
        numbers = tuple(name for name, value in found.items() if _is_number(value))
        if self.name not in found and not any(found.get(name, 0) is None for name in _above(self.name)):
            raise self._unknown(numbers, numbers)
        if isinstance(found.get(self.name), (str, bool)):
            raise self._no_number(numbers)

    def code(self, result: Record) -> tuple[int, str]:
        """Return the exit code, 1 if the gate failed, and why."""
        found = dict(_leaves(result.to_dict()))
        value = found.get(self.name) if self.name else None
        failed = isinstance(value, (int, float)) and _COMPARISONS[self.sign](value, self.limit)
        if getattr(result, "tests", None) == 0 and not failed:
            raise self._undecided("nothing was tested", "the report says for each pair why it was not tested")
        if not self.name:
            return int(getattr(result, "reject", None) == (self.text == "reject")), ""
        if value is None:
            names = [name for name, one in found.items() if _is_number(one)]
            raise self._undecided(f"{self.name} is null in the report", f"numbers are {_some(names)}")
        return int(failed), f": {self.name} is {value:.6g}"

    def doubt(self, result: Record) -> str:
        """Return what is wrong with judging by this number: a learner knows the rows that it has learned from."""
        found = dict(_leaves(result.to_dict()))
        own = self.name.removeprefix("train.")
        if not own or found.get("judged_on") != "train" or found.get(f"train.{own}") is None:
            return ""
        held_out = [name for name in ("grid.mean", f"loo_{own}") if _is_number(found.get(name))]
        way_out = f"{held_out[0]} is of rows held out" if held_out else "--test-fraction 0.3 holds rows out"
        return f"--fail-on {self.text} judges the rows that were learned from, which is too good; {way_out}"

    def _undecided(self, why: str, hint: str) -> UndecidedError:
        return UndecidedError(
            f"--fail-on {self.text} has nothing to decide on: {why}", hint=hint, code="undecided.gate"
        )

    def _unknown(self, known: tuple[str, ...], numbers: Sequence[str]) -> UsageError:
        close = suggest(self.name, known)
        return UsageError(
            f"--fail-on: the report has no {self.name!r}",
            hint=f"did you mean {close!r}?" if close else f"numbers are {_some(numbers)}",
            code="usage.gate",
            where={"value": self.name},
        )

    def _no_number(self, numbers: Sequence[str]) -> UsageError:
        return UsageError(
            f"--fail-on: {self.name!r} is no number in the report",
            hint=f"numbers are {_some(numbers)}",
            code="usage.gate",
            where={"value": self.name},
        )


class GateType(OneOf):
    """A gate; only tests have verdicts."""

    name = "gate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Gate:  # type: ignore[override]  # a word, or more
        """Return the gate."""
        if isinstance(value, Gate):
            return value
        if str(value).casefold() in self.words:
            return Gate(super().convert(value, param, ctx))
        found = _CONDITION.fullmatch(str(value))
        try:
            limit = float(found["limit"]) if found else math.nan
        except ValueError:
            limit = math.nan
        if found is None or not math.isfinite(limit):
            close = suggest(str(value), self.words)
            words = f"{', '.join(self.words)} or " if self.words else ""
            raise UsageError(
                f"{option_name(param)} must be {words}NAME<NUMBER, with <, <=, > or >=, not {str(value)!r}",
                hint=f"did you mean {close!r}?" if close else "quote it for the shell, such as 'accuracy<0.9'",
                code="usage.choice",
                where={"value": str(value)},
            )
        return Gate(str(value).strip(), found["name"], found["sign"], limit)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")


def _leaves(plain: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a report holds, with its dotted name; items of lists by their place, from 0, and by their name."""
    if isinstance(plain, Mapping):
        items = list(plain.items())
    elif isinstance(plain, list):
        items = list(enumerate(plain))
        items += [(item["name"], item) for item in plain if isinstance(item, Mapping) and "name" in item]
    else:
        yield prefix.removesuffix("."), plain
        return
    for key, value in items:
        yield from _leaves(value, f"{prefix}{key}.")


def _above(name: str) -> list[str]:
    """Return the names of what a nested name stands in."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def gate_option(*verdicts: str, example: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --fail-on; tests have verdicts."""
    either = "on reject (p <= alpha) or on accept (p > alpha), or " if verdicts else ""
    return option(
        "--fail-on",
        type=GateType(*verdicts),
        multiple=True,
        metavar="WHEN",
        topic="Output",
        help=f"Make a gate: exit with 1 {either}when a number of the report is below or above a limit, such as "
        f"'{example}'; the names are those of the JSON (test.rmse is rmse in test). Given again, each of them can fail.",
    )


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
