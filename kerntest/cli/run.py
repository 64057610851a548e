"""The one way of a command: inputs and outputs are checked, its function called on its engine, its result told and judged."""

from __future__ import annotations

import math
import operator
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import chain, combinations, product
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from kerntest.cli.console import PIPED_WIDTH, is_terminal, progress_bar, say, terminal_width, uses_colour
from kerntest.cli.manual import DocumentedCommand
from kerntest.cli.options import Value, contradiction, option
from kerntest.dataclass import dataclass
from kerntest.errors import KerntestError, UndecidedError, UsageError, suggest
from kerntest.report.results.record import Record, flatten
from kerntest.report.summaries.words import plan_notes, plan_summary, show_times, visible
from kerntest.report.write import (
    ROW_FORMATS,
    STANDARD_OUTPUT,
    as_rows,
    csv_text,
    json_text,
    parquet_bytes,
    put_in_place,
    write_file,
    write_standard_output,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import click

    from kerntest.cli.options import AnyCommand
    from kerntest.engines.plan import Plan
    from kerntest.report.results.record import Result
    from kerntest.report.summaries.words import Summary

# The format that the name of a file asks for.
NAMED: dict[str, str] = {
    ".txt": "table",
    ".md": "markdown",
    ".html": "html",
    ".json": "json",
} | ROW_FORMATS
# For people, who find the warnings in it.
TOLD = {"table", "markdown", "html"}
# Names of what a report is not written as.
OTHERS = {".xlsx", ".xls", ".feather", ".arrow", ".pdf", ".docx", ".png", ".svg", ".kt", ".tsv", ".yaml", ".xml"}
OTHERS |= {".gz", ".zst", ".bz2", ".xz", ".zip"}
# A computation of so many rows that takes so many seconds is announced unasked, a shorter one where somebody waits for it.
ROWS_TO_WAIT_FOR, SECONDS_TO_WAIT, LONG = 15_000, 10.0, 300.0
# Processor seconds that loading the program takes, at most.
LOADING = 0.5
# Parameters that the engine takes before a command runs.
ENGINE_PARAMETERS = ("engine", "scheduler", "memory", "dry_run")
VERDICTS, MARGIN_VERDICTS = ("reject", "accept"), ("same", "differ", "undecided")
# What a report has only if it is asked for.
MISSED = {
    "test": "--test-fraction 0.3, or a file as --test, gives rows to judge by",
    "grid": "--cv 5, or --grid, judges by rows held out in folds",
    "importance": "--test-fraction 0.3, or a file as --test, gives rows to judge by",
    "margin": "--margin asks whether samples are the same within it",
}
HOLDS_OUT = "--test-fraction"
# What people call the score of rows held out in folds.
_IN_FOLDS, MEAN_OF_FOLDS = re.compile(r"cv|cross|fold|grid|mean_"), "grid.mean"
_R_SQUARED = re.compile(r"r[-_ ]?sq(uared?)?$", re.IGNORECASE)
_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_CONDITION = re.compile(r"\s*(?P<name>.*\S)\s*(?P<sign>[<>]=?)\s*(?P<limit>[^<>=\s]+)\s*")


class _Entries(int):
    """How many entries a list of a report has."""


@dataclass(frozen=True)
class Gate:
    """What makes a run fail that went well: a verdict, or a number of the report beyond its limit."""

    text: str
    name: str = ""
    sign: str = ""
    limit: float = math.nan

    @classmethod
    def of(cls, text: str, verdicts: Sequence[str]) -> Gate:
        """Return the gate that a text stands for, or raise ValueError."""
        words = [word.strip() for word in text.casefold().split(",")]
        if {*words} <= {*verdicts} and (len(words) == 1 or {*words} <= {*MARGIN_VERDICTS}):
            return cls(",".join(dict.fromkeys(words)))
        found = _CONDITION.fullmatch(text)
        if found is None or not math.isfinite(limit := float(found["limit"])):
            raise ValueError
        return cls(text.strip(), found["name"], found["sign"], limit)

    def check(self, found: Mapping[str, Any]) -> None:
        """Refuse a name that is no number of a report with these leaves; below what is null there might be one."""
        parts = self.name.split(".")
        above = [name for count in range(1, len(parts)) if (name := ".".join(parts[:count])) in found]
        there = self.name in found and not isinstance(found[self.name], (str, bool))
        if self.name and not there and (self.name in found or all(found[name] not in {None, ()} for name in above)):
            no_number = f"{self.name!r} is no number in the report"
            name = _R_SQUARED.sub("r2", self.name)
            close = None if self.name in found else _nearest(name, _numbers(found))
            meant = f"did you mean {close!r}?" if close else _some_numbers(found, name.rpartition(".")[0])
            # A regression whose folds were asked for has their RMSE in place of a mean.
            of_folds = next((one for one in (MEAN_OF_FOLDS, "grid.rmse") if one in _numbers(found)), None)
            known = self.name in found or str(close).startswith("grid.")
            if of_folds and not known and _IN_FOLDS.match(self.name):
                score = "score" if of_folds == MEAN_OF_FOLDS else "RMSE"
                meant = f"did you mean {of_folds!r}, the {score} of rows held out in folds?"
            if above and isinstance(found[above[-1]], _Entries):
                rows = f"{above[-1]}_rows"
                of_rows = f"{rows!r} (rows with any of them) and " if rows in found else ""
                meant = f"{of_rows}{above[-1]!r} (how many entries it has): always there, 0 where there is none"
            raise UsageError(
                f"--fail-on: {no_number if self.name in found else f'the report has no {self.name!r}'}",
                hint=meant,
                code="usage.gate",
                where={"value": self.name},
            )

    def decide(self, result: Record, offered: Collection[str]) -> tuple[bool, list[str]]:
        """Return whether the gate failed, and what to say of that: options that are `offered` may help."""
        found = dict(_leaves(result.to_dict()))
        value = found.get(self.name) if self.name else None
        failed = value is not None and _COMPARISONS[self.sign](value, self.limit)
        if found.get("tests") == 0 and not failed:
            raise self._undecided("nothing was tested", "the report says for each pair why it was not tested")
        if self.name and value is None:
            way_out = next(
                (
                    hint
                    for part, hint in MISSED.items()
                    if found.get(part, 0) is None and self.name.startswith(part) and hint.split()[0] in offered
                ),
                None,
            )
            raise self._undecided(f"{self.name} is null in the report", way_out or _some_numbers(found))
        if not self.name:
            verdict = found.get("margin.verdict")
            failed = (
                found.get("reject") == (self.text == "reject") if verdict is None else verdict in self.text.split(",")
            )
        said, own = [], self.name.removeprefix("train.")
        if own and found.get("judged_on") == "train" and found.get(f"train.{own}") is not None:
            # A learner knows the rows that it has learned from.
            held_out = [name for name in (f"grid.{own}", MEAN_OF_FOLDS, f"loo_{own}") if name in _numbers(found)]
            what = f"the {found['grid.score']} of" if held_out[:1] == [MEAN_OF_FOLDS] else "of"
            way_out = f"{held_out[0]} is {what} rows held out" if held_out else f"{HOLDS_OUT} 0.3 holds rows out"
            told = f"--fail-on {self.text} judges the rows that were learned from, which is too good"
            # Of what no rows are held out for, nothing else can be asked.
            said += [f"{told}; {way_out}"] if held_out or HOLDS_OUT in offered else []
        if failed:
            why = f": {self.name} is {value:.6g}" if self.name else ""
            said.append(f"exit code 1, because of --fail-on {self.text}{why}")
        return failed, said

    def _undecided(self, why: str, hint: str) -> UndecidedError:
        message = f"--fail-on {self.text} has nothing to decide on: {why}"
        return UndecidedError(message, hint=hint, code="undecided.gate")


def _numbers(found: Mapping[str, Any]) -> list[str]:
    """Return the names of numbers, and then of lists, which count their entries."""
    sure = {name: one for name, one in found.items() if not isinstance(one, bool)}
    return [name for kinds in ((int, float), (tuple,)) for name, one in sure.items() if isinstance(one, kinds)]


def _nearest(name: str, numbers: Sequence[str]) -> str | None:
    """Return the number that a name may mean: of the same part, of the same name in another, or else if the part is none."""
    part, _, last = name.rpartition(".")
    beside = {one.rpartition(".")[2]: one for one in numbers if one.rpartition(".")[0] == part}
    if close := suggest(last, tuple(beside)):
        return beside[close]
    if part and not beside:
        return suggest(name, tuple(numbers))
    # Of test rows rather than of those that were learned from.
    elsewhere = sorted(
        (one for one in numbers if one.rpartition(".")[2] == last), key=lambda one: not one.startswith("test.")
    )
    found = [one for one in elsewhere if one.startswith(part)] or elsewhere
    return found[0] if found else None if part else suggest(name, tuple(numbers))


def _some_numbers(found: Mapping[str, Any], part: str = "") -> str:
    """Return a hint with some names of numbers, of a part if there are some, else those of parts last."""
    names = [name for name in _numbers(found) if part and name.startswith(f"{part}.")] or _numbers(found)
    names = sorted(names, key=lambda name: name.count("."))
    return f"numbers are {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}"


def _fields(record: type[Record]) -> dict[str, Any]:
    """Return what a report has, as far as its fields tell, with dotted names: a number, a text, () for a list, or None for what only the result can tell."""
    samples = {"int": 0, "float": 0.0, "str": "", "bool": False}
    kinds = {field.name: str(field.type).removesuffix(" | None") for field in fields(record)}  # type: ignore[arg-type]  # all are dataclasses
    known = dict(chain.from_iterable(vars(sys.modules[one.__module__]).items() for one in record.__mro__))
    found: dict[str, Any] = {}
    for name in record.names():
        promised = [known.get(part) for part in kinds[name].split(" | ")]
        parts = [part for part in promised if isinstance(part, type) and issubclass(part, Record)]
        if len(parts) < len(promised):
            found[name.rstrip("_")] = () if kinds[name].startswith("tuple[") else samples.get(kinds[name])
            item = known.get(kinds[name].removeprefix("tuple[").removesuffix(", ...]"))
            if isinstance(item, type) and issubclass(item, Record) and "name" in item.names():
                # Of several, each with a name.
                found |= {f"{name}.NAME.{inner}": value for inner, value in _fields(item).items()}
            continue
        # A field may hold what has more fields than it promises.
        for part in chain.from_iterable((one, *one.__subclasses__()) for one in parts):
            found |= {f"{name}.{inner}": value for inner, value in _fields(part).items()}
    return found


def _leaves(plain: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a report holds, with its dotted name; of lists how many items, and these by their place, from 0, and by their name."""
    if isinstance(plain, Mapping):
        items = list(plain.items())
    elif isinstance(plain, list):
        yield prefix.removesuffix("."), _Entries(len(plain))
        items = list(enumerate(plain))
        items += [(item["name"], item) for item in plain if isinstance(item, Mapping) and "name" in item]
    else:
        yield prefix.removesuffix("."), plain
        return
    for key, value in items:
        yield from _leaves(value, f"{prefix}{key}.")


class GateText(Value):
    """The type of a gate."""

    def nearest(self, text: str) -> str:
        """Return what to type instead of a text that is no gate."""
        verdicts = self.words
        if "," in text:
            nearest = [suggest(one.strip(), verdicts) for one in text.casefold().split(",")]
            words = [one for one in dict.fromkeys(nearest) if one]
            without = next((f"--fail-on {one}" for one in words if one in VERDICTS), "")
            of_margin = ",".join(one for one in words if one in MARGIN_VERDICTS)
            if without and of_margin:
                return f"--fail-on {of_margin} with --margin, or {without} without it"
            if words:
                return without or f"--fail-on {of_margin}"
        name, _, value = (one.strip(" ='\"") for one in text.partition("="))
        if value.casefold() in verdicts or name.casefold() in verdicts:
            return f"--fail-on {(value if value.casefold() in verdicts else name).casefold()}: the verdict alone"
        if name and value and not name.endswith(("<", ">")):
            return f"a number is below or above a limit: --fail-on '{name}<{value}' or '{name}>{value}'"
        return super().nearest(text) or "quote it for the shell, such as 'accuracy<0.9'"


def gate_option(*verdicts: str, example: str) -> Callable[[AnyCommand], AnyCommand]:
    """Return the decorator for --fail-on; only tests have verdicts."""
    either = "on reject (p <= alpha) or on accept (p > alpha), or " if verdicts else ""
    if "same" in verdicts:
        either = "on reject (p <= alpha, and the minimum of --min-effect is reached) or on accept (all else), or "
        either += "with --margin on same, differ or undecided (several with commas), or "
    return option(
        "--fail-on",
        type=GateText(
            "when",
            f"{', '.join(verdicts)}{' or ' if verdicts else ''}NAME<NUMBER, with <, <=, > or >=",
            lambda text: Gate.of(text, verdicts),
            "usage.choice",
            words=verdicts,
        ),
        multiple=True,
        topic="Output",
        help=f"Make a gate: exit with 1 {either}when a number of the report is below or above a limit, such as "
        f"'{example}'; the names are those of the JSON (test.rmse is rmse in test). A list counts its entries, 0 if it is empty: 'warnings>0' goes with every report. Given again, each of them can fail.",
    )


class Run:
    """One run of a command: how its result is told, and as what and where, is taken out of its options.

    Where there is an option --report, it says where the result goes, and -o is for the model or the rows.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.offered = {f"--{name.replace('_', '-')}" for name in options}
        self.quiet, self.verbose = options.pop("quiet", False), options.pop("verbose", False)
        if self.quiet and self.verbose:
            raise contradiction("-q and -v contradict each other")
        own = "report" if "report" in options else "output"
        self._own = "--report" if own == "report" else "-o"
        file, asked = options.pop(own, None), options.pop("output_format")
        suffix = PurePath(file or "").suffix.lower()
        if file and suffix in OTHERS:
            raise UsageError(
                f"a report is written as .txt, .json, .jsonl, .csv, .md, .html or .parquet, not as {suffix}",
                hint=f"{self._own} {as_rows(file)}",
                code="usage.output_format",
                where={"file": file},
            )
        self.format = asked or NAMED.get(suffix, "table")
        self.output = None if file == STANDARD_OUTPUT else file
        if self.format == "parquet" and self.output is None and is_terminal(sys.stdout):
            raise _no_text("--format parquet", f"{self._own} result.parquet")
        if options.get("plot") == STANDARD_OUTPUT and is_terminal(sys.stdout):
            raise _no_text("--plot -", "--plot result.png")
        self.files = {"-o": options.get("output"), self._own: self.output}
        self.files |= {f"--{name}": options.get(name) for name in ("witness", "plot")}
        self.gates = options.pop("fail_on", ())
        with_margin = options.get("margin") is not None
        for gate in self.gates:
            if not gate.name and {*gate.text.split(",")} & {*(VERDICTS if with_margin else MARGIN_VERDICTS)}:
                raise UsageError(
                    f"--fail-on {gate.text} {'does not go with' if with_margin else 'needs'} --margin",
                    hint=f"{', '.join(MARGIN_VERDICTS)} are its verdicts, {' and '.join(VERDICTS)} those of a test without it",
                    code="usage.gate",
                    where={"value": gate.text},
                )

    def check(
        self,
        record: type[Record] | Sequence[type[Record]],
        sources: Mapping[str, str | None],
        example: str,
        model: str = "",
    ) -> None:
        """Refuse gates on what no such record, or none of several, has, sources that cannot be read, and outputs over each other or over these."""
        records = record if isinstance(record, Sequence) else (record,)
        self.check_gates(dict(chain.from_iterable(_fields(one).items() for one in records)))
        read = {name: source for name, source in sources.items() if source is not None}
        check_stdin(read, example)
        written = [(name, file) for name, file in self.files.items() if file is not None]
        outputs = [*written, *([("the result", STANDARD_OUTPUT)] if self.output is None else [])]
        for (one, first), (other, second) in combinations(outputs, 2):
            if os.path.realpath(first) == os.path.realpath(second):
                message, hint = f"{one} and {other} would both write {second}", "give each a file of its own"
                if second == STANDARD_OUTPUT:
                    message = f"{one} and {other} would both go to the standard output"
                    hint = f"{self._own} FILE takes the result"
                raise UsageError(message, hint=hint, code="usage.output_twice", where={"file": second})
        inputs = [("data in", source) for source in read.values()] + [("model", model)] * bool(model)
        for (called, source), (name, output) in product(inputs, written):
            if _same_file(source, output):
                message, hint = (
                    f"{name} {output} would replace the {called} {source}",
                    "write the result to another file",
                )
                raise UsageError(message, hint=hint, code="usage.output_is_input", where={"file": output})

        named = NAMED.get(PurePath(self.output or "").suffix.lower(), self.format)
        if self.format != named:
            message = f"--format {self.format} contradicts the name {self.output}, which asks for {named}"
            raise contradiction(message, "leave out --format, or end the name otherwise")

    def check_gates(self, plain: Mapping[str, Any]) -> None:
        """Refuse gates on what is no number of a report."""
        for gate in self.gates:
            gate.check(dict(_leaves(plain)))

    def call(self, function: str, *data: Any, doing: str = "testing", **options: Any) -> Any:
        """Call a function of kerntest, with a progress bar where somebody is looking."""
        import kerntest  # noqa: PLC0415 - numerics are loaded only to compute

        try:
            with progress_bar(quiet=self.quiet, doing=doing) as progress:
                return getattr(kerntest, function)(*data, progress=progress, **options)
        except KerntestError as error:
            texts = [text for name, text in options.items() if name.startswith("kernel") and text is not None]
            if "position" in error.where and texts:
                # An error about a place in a kernel shows the text that it quotes, or names something of.
                said, value = error.message, str(error.where.get("value", ""))
                error.where.setdefault("text", max(texts, key=lambda text: (repr(text) in said, value in text)))
                error.hint = error.hint or "`kerntest kernels` shows how each kernel is written"
            raise

    def deliver(self, result: Result, notes: Sequence[str], rows: Sequence[dict[str, Any]] = ()) -> int:
        """Write the result, say on stderr what it does not, and return the exit code."""
        self.explain(notes)
        self.tell(result, rows)
        self.wrote(self.files["--witness"], self.files["--plot"], getattr(result, "model", None))
        return self.code(result)

    def tell(self, result: Any, rows: Sequence[dict[str, Any]] = (), words: Summary | None = None) -> None:
        """Write a result in full, let every file take its name, then say on stderr what only a table says by itself.

        `rows` are what CSV and JSON lines hold, where that is not the whole result, and `words` what a table of what is
        no result says.
        """
        self.check_gates(result.to_dict())
        if self.format in TOLD:
            told = self._in_words(words or result.in_words())
        elif self.format == "json":
            told = json_text(result.to_dict())
        elif self.format == "jsonl":
            told = "".join(json_text(row, indent=None) for row in rows or [result.to_dict()])
        else:
            flat = [flatten(row) for row in rows or [result.to_dict()]]
            told = csv_text(flat) if self.format == "csv" else parquet_bytes(flat)
        if self.output is None and isinstance(told, str):
            encoding = getattr(sys.stdout, "encoding", None) if self.format == "table" else None
            write_standard_output(told, encoding=encoding or "utf-8")
        else:
            write_file(self.output or STANDARD_OUTPUT, told)
        # All that the run has written is whole by now.
        put_in_place()
        self.wrote(self.output)
        if self.output is not None or self.format not in TOLD:
            self.warn(getattr(result, "warnings", ()))

    def _in_words(self, words: Summary) -> str | bytes:
        """Return words as the text of a format for people."""
        from kerntest.report import drawing  # noqa: PLC0415 - only tables need it

        if self.format != "table":
            return drawing.summary_markdown(words) if self.format == "markdown" else drawing.html_page(words)
        if self.output is None:
            return drawing.summary_text(words, width=terminal_width(), colour=uses_colour(sys.stdout))
        return drawing.summary_text(words, width=PIPED_WIDTH, colour=False)

    def note(self, text: str) -> None:
        """Say what was done."""
        if not self.quiet:
            say(text)

    def wrote(self, *files: str | None) -> None:
        """Say which files were written; None was not asked for."""
        for file in files:
            if file not in {None, STANDARD_OUTPUT}:
                self.note(f"wrote {visible(file)}")

    def explain(self, texts: Sequence[str]) -> None:
        """Say what was chosen, if asked with -v."""
        for text in texts if self.verbose else ():
            say(text)

    def warn(self, texts: Sequence[str]) -> None:
        """Pass warnings on."""
        for text in () if self.quiet else texts:
            say(visible(text), label="warning")

    def code(self, result: Record) -> int:
        """Return the exit code of a run: 1 if a gate failed, which stderr then tells."""
        decided = [gate.decide(result, self.offered) for gate in self.gates]
        for text in chain.from_iterable(said for _, said in decided):
            self.note(visible(text))
        return int(any(failed for failed, _ in decided))


def _no_text(option: str, other: str) -> UsageError:
    """Return the error for what a terminal cannot show."""
    hint = f"{other} writes a file; or send it to one: `> {other.rpartition(' ')[2]}`"
    return UsageError(
        f"{option} is no text, and the standard output is a terminal", hint=hint, code="usage.output_terminal"
    )


def check_stdin(sources: Mapping[str, str], example: str) -> None:
    """Refuse to read stdin twice, or a table from the keyboard."""
    from_stdin = [name for name, source in sources.items() if source == "-"]
    if len(from_stdin) > 1:
        raise UsageError(
            f"{' and '.join(from_stdin)} cannot both be read from stdin",
            hint="give one of them as a file",
            code="usage.stdin_twice",
        )
    if from_stdin and (sys.stdin is None or is_terminal(sys.stdin)):
        raise UsageError(
            f"- reads a table from stdin, but stdin is {'closed' if sys.stdin is None else 'a terminal'}",
            hint=f"send it a file: `{example}`",
            code="usage.stdin_terminal",
        )


def _same_file(source: str, output: str) -> bool:
    """Whether an output is, under whatever name, one of the files that a source means."""
    from kerntest.data.source import find_files  # noqa: PLC0415 - numerics are loaded only to compute

    try:
        if source == "-":
            return os.path.samestat(os.fstat(sys.stdin.fileno()), Path(output).stat())
        return Path(output).is_file() and any(file.samefile(output) for _, file in find_files(source, source).files)
    except (OSError, ValueError, KerntestError):
        return False


class ComputingCommand(DocumentedCommand):
    """A command that runs on the engine that its options name, and can tell its plan instead."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command on its engine."""
        import kerntest  # noqa: PLC0415 - --help must start at once
        from kerntest.engines.engine import ALONE, ONLY_PLAN  # noqa: PLC0415 - as above

        asked = {name: ctx.params.pop(name) for name in ENGINE_PARAMETERS if name in ctx.params}
        only_plan, verbose, quiet = asked.pop("dry_run"), ctx.params["verbose"], ctx.params["quiet"]
        if only_plan and quiet:
            raise contradiction("--dry-run and -q contradict each other")
        patience = SECONDS_TO_WAIT if is_terminal(sys.stderr) else LONG
        # What loading the program and reading the table have taken belongs to the time of the command.
        started = max(0.0, time.process_time() - LOADING)

        def planned(plan: Plan) -> None:
            plan = plan.later(time.process_time() - started)
            seconds = plan.seconds
            if only_plan:
                run = Run({"output_format": ctx.params["output_format"]})
                run.tell(plan, [plan.to_dict() | {"work": "; ".join(plan.work)}], plan_summary(plan))
                ctx.exit()
            elif verbose:
                for note in plan_notes(plan):
                    say(note)
            elif seconds > patience:
                # Nobody should find out by waiting.
                tests = plan.method == "exact" and plan.command in {"mmd", "hsic"} and seconds > LONG
                # Of a series a random part is none.
                word = "--where takes a stretch" if ctx.params.get("time_series") else "--sample takes a part"
                others = f"; {word} of the rows" if tests else ""
                takes = f"this takes {show_times(*plan.seconds_range)} ({plan.where})"
                say(f"{takes}; --dry-run shows the plan{others}", label="note")

        ALONE.set(bool(ctx.obj))
        ONLY_PLAN.set(only_plan)
        with kerntest.compute_on(
            **asked,
            threads=ctx.params["threads"],
            planned=None if quiet else planned,
            planned_from=0 if only_plan or verbose else ROWS_TO_WAIT_FOR,
        ):
            return super().invoke(ctx)
