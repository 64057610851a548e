"""Gates: when a run fails that went well, by a verdict or by a number of its report."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from kerntest.cli.options import Value, option
from kerntest.errors import UndecidedError, UsageError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kerntest.cli.options import AnyCommand
    from kerntest.report.results.record import Record

VERDICTS = ("reject", "accept")
_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_CONDITION = re.compile(r"\s*(?P<name>.*\S)\s*(?P<sign>[<>]=?)\s*(?P<limit>[^<>=\s]+)\s*")


@dataclass(frozen=True, slots=True)
class Gate:
    """A verdict, or a number of the report and its limit."""

    text: str
    name: str = ""
    sign: str = ""
    limit: float = math.nan

    def check_field(self, record: type[Record]) -> None:
        """Refuse a name that no report of this kind has, before the work is done, as far as can be told."""
        kinds = {field.name: str(field.type) for field in fields(record)}  # type: ignore[arg-type]  # all are dataclasses
        known = {name.rstrip("_"): kinds[name] for name in record.names()}
        numbers = [name for name, kind in known.items() if re.match(r"(int|float)\b", kind)]
        if self.name and self.name.partition(".")[0] not in known:
            raise self._refused(known, numbers)
        if known.get(self.name) in {"str", "bool"}:
            raise self._refused(known, numbers, "is no number in the report")

    def check(self, result: Record) -> None:
        """Refuse a name that is no number of the report; a number below what is null might be there."""
        found, numbers = _leaves_and_numbers(result)
        parts = self.name.split(".")
        above = (".".join(parts[:count]) for count in range(1, len(parts)))
        if self.name and self.name not in found and not any(found.get(name, 0) is None for name in above):
            raise self._refused(numbers, numbers)
        if isinstance(found.get(self.name), (str, bool)):
            raise self._refused(found, numbers, "is no number in the report")

    def _refused(self, known: Mapping[str, Any] | Sequence[str], numbers: Sequence[str], what: str = "") -> UsageError:
        """Return the error for a name that the report does not have, or that is no number there."""
        close = None if what else suggest(self.name, tuple(known))
        return UsageError(
            f"--fail-on: {self.name!r} {what}" if what else f"--fail-on: the report has no {self.name!r}",
            hint=f"did you mean {close!r}?" if close else f"numbers are {_some(numbers)}",
            code="usage.gate",
            where={"value": self.name},
        )

    def code(self, result: Record) -> tuple[int, str]:
        """Return the exit code, 1 if the gate failed, and why."""
        found, numbers = _leaves_and_numbers(result)
        value = found.get(self.name) if self.name else None
        failed = isinstance(value, (int, float)) and _COMPARISONS[self.sign](value, self.limit)
        if getattr(result, "tests", None) == 0 and not failed:
            raise self._undecided("nothing was tested", "the report says for each pair why it was not tested")
        if not self.name:
            return int(getattr(result, "reject", None) == (self.text == "reject")), ""
        if value is None:
            raise self._undecided(f"{self.name} is null in the report", f"numbers are {_some(numbers)}")
        return int(failed), f": {self.name} is {value:.6g}"

    def _undecided(self, why: str, hint: str) -> UndecidedError:
        message = f"--fail-on {self.text} has nothing to decide on: {why}"
        return UndecidedError(message, hint=hint, code="undecided.gate")

    def doubt(self, result: Record) -> str:
        """Return what is wrong with judging by this number: a learner knows the rows that it has learned from."""
        found, numbers = _leaves_and_numbers(result)
        own = self.name.removeprefix("train.")
        if not own or found.get("judged_on") != "train" or found.get(f"train.{own}") is None:
            return ""
        held_out = [name for name in ("grid.mean", f"loo_{own}") if name in numbers]
        way_out = f"{held_out[0]} is of rows held out" if held_out else "--test-fraction 0.3 holds rows out"
        return f"--fail-on {self.text} judges the rows that were learned from, which is too good; {way_out}"


def gate_of(text: str) -> Gate:
    """Return a condition as a gate, or raise ValueError."""
    if found := _CONDITION.fullmatch(text):
        gate = Gate(text.strip(), found["name"], found["sign"], float(found["limit"]))
        if math.isfinite(gate.limit):
            return gate
    raise ValueError


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")


def _leaves_and_numbers(result: Record) -> tuple[dict[str, Any], list[str]]:
    """Return what a report holds by its dotted names, and which of these are numbers."""
    found = dict(_leaves(result.to_dict()))
    return found, [name for name, one in found.items() if isinstance(one, (int, float)) and not isinstance(one, bool)]


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


def gate_option(*verdicts: str, example: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --fail-on; only tests have verdicts."""
    either = "on reject (p <= alpha) or on accept (p > alpha), or " if verdicts else ""
    return option(
        "--fail-on",
        type=Value(
            "when",
            f"{', '.join(verdicts)}{' or ' if verdicts else ''}NAME<NUMBER, with <, <=, > or >=",
            lambda text: Gate(text.casefold()) if text.casefold() in verdicts else gate_of(text),
            "usage.choice",
            words=verdicts,
            hint="quote it for the shell, such as 'accuracy<0.9'",
        ),
        multiple=True,
        topic="Output",
        help=f"Make a gate: exit with 1 {either}when a number of the report is below or above a limit, such as "
        f"'{example}'; the names are those of the JSON (test.rmse is rmse in test). Given again, each of them can fail.",
    )
